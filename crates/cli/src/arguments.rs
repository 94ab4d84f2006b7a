//! The arguments of the command line.

mod examples;
mod records;
mod user;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use llm_do::model::{Cassette, CassetteMode};

use crate::command_error::CommandError;
use crate::command_order::command_first;
use crate::console::Paint;
use crate::exit::Exit;
use crate::output;
use crate::python_flags;

use examples::{
    CALL_EXAMPLES, CHAT_EXAMPLES, CHECK_EXAMPLES, COMPLETION_EXAMPLES, DOCTOR_EXAMPLES, EXAMPLES,
    INIT_EXAMPLES, LIST_EXAMPLES, MODELS_EXAMPLES, PATH_OR_PROMPT, RUN_EXAMPLES, SCHEMA_EXAMPLES,
    TRUST_EXAMPLES,
};
pub(crate) use records::{
    ApprovalsArguments, ApproveArguments, ChangedChoice, ChatsAction, ChatsArguments, CutOffChoice,
    DenyArguments, ForgetArguments, PruneArguments, RecordArguments, RepairArguments, ResumeArguments,
    RunsAction, RunsArguments, SessionArguments, ShowArguments, ShowOutput, UsageArguments, UsageGroup,
};
pub(crate) use user::{AuthAction, AuthArguments, ConfigAction, ConfigArguments};

/// Run agents (prompt files) and tools (code) that call each other in one way.
#[derive(Debug, Parser)]
#[command(name = "llm-do", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a project and print its answer; `llm-do PATH [PROMPT]` is short for it
    Run(RunArguments),
    /// Chat with a project over several turns
    Chat(ChatArguments),
    /// List recorded chats, show one, or forget it
    Chats(ChatsArguments),
    /// Continue a recorded run where it stopped
    Resume(ResumeArguments),
    /// List the questions that wait for an answer, or show one
    Approvals(ApprovalsArguments),
    /// Answer a question: allow the call
    Approve(ApproveArguments),
    /// Answer a question: deny the call
    Deny(DenyArguments),
    /// List recorded runs
    Runs(RunsArguments),
    /// Show what happened in a recorded run
    Show(ShowArguments),
    /// Add up the tokens and costs of recorded runs
    Usage(UsageArguments),
    /// Find the problems of a project; its code runs only if you trust it
    Check(CheckArguments),
    /// List the agents, toolsets and tools of a project
    List(ListArguments),
    /// Call one agent or tool of a project by name
    Call(CallArguments),
    /// Create a project from a template
    Init(InitArguments),
    /// List providers and models, or show the abilities and price of one; sends no request
    Models(ModelsArguments),
    /// Show what a project may do without asking you, and trust it
    Trust(TrustArguments),
    /// Show and change your settings: default model, aliases, providers, prices
    Config(ConfigArguments),
    /// Store the API keys of providers, and list those that are found
    Auth(AuthArguments),
    /// Print the JSON Schemas of project files, your configuration and the output
    Schema(SchemaArguments),
    /// Check your setup: keys, local model servers, sandbox, Python
    Doctor(DoctorArguments),
    /// Print shell completions
    Completions(CompletionArguments),
}

#[derive(Debug, Args)]
#[command(after_help = format!("{PATH_OR_PROMPT}\n\n{RUN_EXAMPLES}"))]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) project: ProjectArguments,
    #[command(flatten)]
    pub(crate) prompt: PromptArguments,
    #[command(flatten)]
    pub(crate) input: InputArguments,
    #[command(flatten)]
    pub(crate) options: RunOptions,
    /// Continue as a chat after the answer
    #[arg(long)]
    pub(crate) chat: bool,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{PATH_OR_PROMPT}\n\n{CHAT_EXAMPLES}"))]
pub(crate) struct ChatArguments {
    #[command(flatten)]
    pub(crate) project: ProjectArguments,
    #[command(flatten)]
    pub(crate) prompt: PromptArguments,
    /// Attach a file to the first message; can be repeated
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub(crate) attach: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// The prompt, in one of two ways.
#[derive(Debug, Args)]
pub(crate) struct PromptArguments {
    /// The prompt, or the first message of a chat. `run` adds text from stdin (a pipe or a file) after the prompt, or uses it
    /// as the whole input if no prompt is given
    #[arg(id = "prompt", value_name = "PROMPT")]
    pub(crate) positional: Option<String>,
    /// The prompt, even if it looks like a path
    #[arg(
        help_heading = "Input",
        short = 'p',
        long = "prompt",
        id = "prompt_flag",
        value_name = "TEXT",
        conflicts_with = "prompt",
        allow_hyphen_values = true
    )]
    pub(crate) flag: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) project: ProjectArguments,
    /// Show what the entry can reach: through which calls, and behind which approvals
    #[arg(long)]
    pub(crate) reach: bool,
    /// Do not run Python files of the project, and list what could not be checked without them. The default, unless you
    /// trust the project
    #[arg(long = "static")]
    pub(crate) is_static: bool,
    /// Run the Python files of the project even if you do not trust it, to check everything
    #[arg(long, conflicts_with = "is_static")]
    pub(crate) run_code: bool,
    /// The output format; `mermaid` prints the reach as a graph and needs `--reach`
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) output: CheckOutput,
}

#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    pub(crate) project: ProjectArguments,
    /// The output format
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) output: ListOutput,
}

#[derive(Debug, Args)]
#[command(allow_missing_positional = true, after_help = CALL_EXAMPLES)]
pub(crate) struct CallArguments {
    #[command(flatten)]
    pub(crate) project: ProjectArguments,
    /// The agent or tool to call; `toolset.tool` if the name is ambiguous
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) input: InputArguments,
    /// Print whether the call would run, ask or be blocked, and run nothing. Exit codes: 0 it would run, 5 it would ask or
    /// is blocked, 1 it cannot be done, 2 the name or the input is wrong
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Call in the name of an agent, with its toolsets, settings and rules
    #[arg(long = "as", value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

#[derive(Debug, Args)]
#[command(after_help = INIT_EXAMPLES)]
pub(crate) struct InitArguments {
    /// Where to write the project; the directory is created if it does not exist
    #[arg(default_value = ".")]
    pub(crate) directory: PathBuf,
    /// What the project contains
    #[arg(long, value_enum, default_value_t)]
    pub(crate) template: Template,
}

#[derive(Debug, Args)]
#[command(after_help = MODELS_EXAMPLES)]
pub(crate) struct ModelsArguments {
    /// A project (manifest, directory or agent file) whose providers, keys and prices are shown too. Default: the project of
    /// the current directory, if there is one
    pub(crate) path: Option<PathBuf>,
    /// Show one model: `provider:model`, or `model` if only one provider has it
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// List known models with prices and context sizes, of one provider or of all
    #[arg(long, value_name = "PROVIDER", num_args = 0..=1, default_missing_value = "", conflicts_with = "model")]
    pub(crate) list: Option<String>,
    /// Set a key of the manifest (`runtime.max_depth=3`) or of an agent (`agents.NAME.model=test`) for this command; can be
    /// repeated. A value is JSON (`'agents.NAME.tools=["read_file"]'`); what is not JSON is text
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// The output format
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) output: ListOutput,
}

#[derive(Debug, Args)]
#[command(after_help = TRUST_EXAMPLES)]
pub(crate) struct TrustArguments {
    /// A project: a manifest, a directory or an agent file. Default: the project of the current directory
    pub(crate) path: Option<PathBuf>,
    /// List the directories that you trust
    #[arg(long, conflicts_with_all = ["revoke", "own", "below", "expect", "owner"])]
    pub(crate) list: bool,
    /// Stop trusting the directory
    #[arg(long, conflicts_with_all = ["own", "below", "expect", "owner"])]
    pub(crate) revoke: bool,
    /// Mark the project as your own work, so that `check`, `list` and similar commands may run its code
    #[arg(long)]
    pub(crate) own: bool,
    /// Trust every project below the directory, whatever it does
    #[arg(long, conflicts_with_all = ["own", "expect", "owner"])]
    pub(crate) below: bool,
    /// Trust without asking, if the powers of the project have this digest; for scripts
    #[arg(long, value_name = "DIGEST")]
    pub(crate) expect: Option<String>,
    /// Accept files that belong to this user id
    #[arg(long, value_name = "UID")]
    pub(crate) owner: Option<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = SCHEMA_EXAMPLES)]
pub(crate) struct SchemaArguments {
    /// Which schema to print. Default: all, in one object
    #[arg(value_enum)]
    pub(crate) which: Option<SchemaKind>,
}

#[derive(Debug, Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub(crate) struct DoctorArguments {
    /// A project whose providers and models are checked too. Default: the project of the current directory, if there is one
    pub(crate) path: Option<PathBuf>,
    /// Send this model (`provider:model`) a request for one word; can be repeated
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Vec<String>,
    /// The output format
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) output: ListOutput,
}

#[derive(Debug, Args)]
#[command(after_help = COMPLETION_EXAMPLES)]
pub(crate) struct CompletionArguments {
    /// Which shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// The project and changes to it.
#[derive(Debug, Args)]
pub(crate) struct ProjectArguments {
    /// A project: a manifest, a directory or an agent file. Default: the project of the current directory or above it
    pub(crate) path: Option<PathBuf>,
    /// Set a key of the manifest (`runtime.max_depth=3`) or of an agent (`agents.NAME.model=test`) for this command; can be
    /// repeated. A value is JSON (`'agents.NAME.tools=["read_file"]'`); what is not JSON is text
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// What a run is given.
#[derive(Debug, Args)]
pub(crate) struct InputArguments {
    /// The input as JSON: literal, from a file (`@FILE`) or from stdin (`-`). JSON from a pipe cannot attach files
    #[arg(long, help_heading = "Input", value_name = "JSON|@FILE|-")]
    pub(crate) input_json: Option<String>,
    /// Attach a file; can be repeated. Its type is detected from its content
    #[arg(long, help_heading = "Input", value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,
}

/// How a run behaves.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// The model of the entry agent and of agents that name none: `provider:model`, or `model` if only one provider has it.
    /// LLM_DO_MODEL sets a default that applies only to agents that name none
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// What to do with calls that need approval. Default: `approvals.mode` of your configuration or the project, else `prompt`
    #[arg(help_heading = "Approvals and trust", short = 'a', long, value_enum, value_name = "MODE")]
    pub(crate) approve: Option<Approve>,
    /// Same as `--approve all`
    #[arg(help_heading = "Approvals and trust", long, conflicts_with_all = ["approve", "reject_all"])]
    pub(crate) approve_all: bool,
    /// Same as `--approve none`
    #[arg(help_heading = "Approvals and trust", long, conflicts_with = "approve")]
    pub(crate) reject_all: bool,
    /// Deny what is parked and not answered within this time: `90s`, `5m`, `24h`
    #[arg(help_heading = "Approvals and trust", long, value_name = "TIME", value_parser = duration)]
    pub(crate) answer_within: Option<Duration>,
    /// Ask a running program, in JSON lines over a file descriptor (`3`; `3,4` to read and write) or a Unix socket
    #[arg(help_heading = "Approvals and trust", long, value_name = "FD|SOCKET", conflicts_with_all = ["approve_all", "reject_all", "approve"])]
    pub(crate) approvals_from: Option<String>,
    /// Start a program and ask it, in the same JSON lines over its stdin and stdout
    #[arg(help_heading = "Approvals and trust", long, value_name = "COMMAND", conflicts_with_all = ["approve_all", "reject_all", "approve", "approvals_from"])]
    pub(crate) approve_with: Option<String>,
    /// Trust the project for this run; with a digest, only if its powers have that digest. `--trust=none` runs it without its
    /// powers
    #[arg(help_heading = "Approvals and trust", long, value_name = "DIGEST", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(crate) trust: Option<String>,
    /// Limit how deep agents call agents. The smaller of the flag and the project's own limit applies, as for all limits
    #[arg(help_heading = "Limits", long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) max_depth: Option<u32>,
    /// Limit the model turns of each agent call
    #[arg(help_heading = "Limits", long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub(crate) max_turns: Option<u32>,
    /// Limit the tool and agent calls of the run
    #[arg(help_heading = "Limits", long, value_name = "N")]
    pub(crate) max_calls: Option<u64>,
    /// Limit the tokens of the run, input and output together
    #[arg(help_heading = "Limits", long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true)]
    pub(crate) max_tokens: Option<u64>,
    /// Limit the cost of the run, in US dollars
    #[arg(help_heading = "Limits", long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true)]
    pub(crate) max_cost: Option<f64>,
    /// Stop the run after this time: `90` or `90s`, `5m`, `1h`
    #[arg(help_heading = "Limits", long, value_name = "TIME", value_parser = duration, allow_negative_numbers = true)]
    pub(crate) timeout: Option<Duration>,
    /// What to print on stdout
    #[arg(help_heading = "Output", long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) output: Output,
    /// Print everything that the entry agent writes as it arrives, not only its answer
    #[arg(help_heading = "Output", long, conflicts_with = "tui")]
    pub(crate) stream: bool,
    /// Show calls and results on stderr; `-vv` adds streamed text, `-vvv` whole requests
    #[arg(help_heading = "Output", short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(flatten)]
    pub(crate) cassette: CassetteArguments,
    /// Show lines on stderr instead of the terminal UI
    #[arg(help_heading = "Output", long)]
    pub(crate) headless: bool,
    /// Show the terminal UI even if stdout is not a terminal
    #[arg(help_heading = "Output", long, conflicts_with_all = ["headless", "plain"])]
    pub(crate) tui: bool,
    /// Show plain sentences that are never redrawn, for screen readers
    #[arg(help_heading = "Output", long, conflicts_with = "headless")]
    pub(crate) plain: bool,
    #[command(flatten)]
    pub(crate) record: RecordArguments,
    /// Do not record the run
    #[arg(help_heading = "Record", long, conflicts_with = "record")]
    pub(crate) no_record: bool,
}

/// What a run that goes on has sent to providers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SentRequests {
    /// All requests.
    pub(crate) requests: usize,
    /// Those that were answered, or refused.
    pub(crate) answers: usize,
}

/// A recording in the place of the network.
#[derive(Debug, Args)]
pub(crate) struct CassetteArguments {
    /// Replay the requests to providers from a file, without keys; if the file does not exist, record them
    #[arg(help_heading = "Recorded requests", long, value_name = "FILE")]
    pub(crate) cassette: Option<PathBuf>,
    /// Whether to record or to replay
    #[arg(
        help_heading = "Recorded requests",
        long,
        value_enum,
        default_value_t,
        value_name = "MODE",
        requires = "cassette"
    )]
    pub(crate) cassette_mode: CassetteModeArgument,
}

impl CassetteArguments {
    /// Opens the cassette that is named.
    pub(crate) fn open(&self) -> Result<Option<Cassette>, CommandError> {
        self.open_as(match self.cassette_mode {
            CassetteModeArgument::Auto => CassetteMode::Auto,
            CassetteModeArgument::Record => CassetteMode::Record,
            CassetteModeArgument::Replay => CassetteMode::Replay { strict: true },
            CassetteModeArgument::Lenient => CassetteMode::Replay { strict: false },
        })
    }

    /// Opens the cassette that is named for a run that goes on. A recording goes on behind what it holds; one with more than
    /// the requests of the run was replayed, and is replayed from where it was.
    pub(crate) fn open_to_resume(&self, sent: &SentRequests) -> Result<Option<Cassette>, CommandError> {
        let is_recording = match self.cassette_mode {
            CassetteModeArgument::Auto => {
                let cassette = self.open_as(CassetteMode::Auto)?;
                cassette.is_none_or(|cassette| cassette.unused().len() <= sent.requests)
            }
            CassetteModeArgument::Record => true,
            CassetteModeArgument::Replay | CassetteModeArgument::Lenient => false,
        };
        if is_recording {
            return self.open_as(CassetteMode::Append);
        }
        Ok(self.open()?.inspect(|cassette| cassette.pass_over(sent.answers)))
    }

    fn open_as(&self, mode: CassetteMode) -> Result<Option<Cassette>, CommandError> {
        let open = |path| {
            Cassette::open(path, mode).map_err(|error| {
                let message = match std::error::Error::source(&error) {
                    Some(cause) => format!("{error}: {cause}"),
                    None => error.to_string(),
                };
                match error.hint() {
                    Some(hint) => CommandError::with_hint(message, hint),
                    None => CommandError::usage(message),
                }
            })
        };
        self.cassette.as_ref().map(open).transpose()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CassetteModeArgument {
    /// Replay if the file has recordings, else record
    #[default]
    Auto,
    /// Record, and replace what the file holds
    Record,
    /// Replay; fail on a request that was not recorded
    Replay,
    /// Replay; answer a request that was not recorded with the most similar recording
    Lenient,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// Ask at the terminal
    Prompt,
    /// Allow them; calls that are blocked stay blocked
    All,
    /// Deny them
    None,
    /// Leave the questions open and end; `llm-do approve` and `llm-do deny` answer them, `llm-do resume` goes on
    Park,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// The answer
    #[default]
    Text,
    /// One JSON object about the run
    Json,
    /// Every event as a line of JSON, then that object
    Jsonl,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckOutput {
    #[default]
    Text,
    Json,
    Mermaid,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListOutput {
    #[default]
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaKind {
    /// The manifest, `project.json`
    Manifest,
    /// The front matter of an agent file
    Agent,
    /// The object that `--output json` prints
    Output,
    /// Your configuration, `config.toml`
    Config,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Template {
    /// One agent
    #[default]
    Minimal,
    /// An agent that calls others
    Nested,
    /// An agent with a typed input and a structured answer
    TypedInput,
    /// An agent with Python tools, one of which asks before it writes
    Python,
}

/// Reads the arguments. If the first is neither a command nor a flag of the whole program, it is a path to run.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Command, Refused> {
    let arguments = command_first(arguments.collect(), &mut Cli::command())
        .map_err(|problem| Refused::Command(Box::new(problem)))?;
    Cli::try_parse_from(arguments).map(|cli| cli.command).map_err(Refused::Arguments)
}

/// Returns the command that a mistyped path may have been meant as.
pub(crate) fn command_like(path: &str) -> Option<String> {
    let command = Cli::command();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    llm_do_core::misspelled(path, names).map(str::to_owned)
}

/// Arguments that are not a command: a mistake, or a question for help.
#[derive(Debug)]
pub(crate) enum Refused {
    /// What the parser says.
    Arguments(clap::Error),
    /// A command that does not exist.
    Command(Box<CommandError>),
}

impl Refused {
    /// Answers on the right stream.
    pub(crate) fn show(&self) -> Exit {
        let error = match self {
            Self::Arguments(error) => error,
            Self::Command(problem) => return problem.show(),
        };
        // clap leaves the text in the buffer of stdout, where an error of the last write would be lost.
        let printed = error.print().and_then(|()| io::stdout().flush());
        output::is_read(printed);
        if let Some(hint) = python_flags::hint(error).or_else(|| unquoted_prompt(error)) {
            output::to_stderr(&Paint::for_stderr().message(&format!("hint: {hint}")));
        }
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Done,
            _ => Exit::Usage,
        }
    }
}

/// Says what to do about a prompt whose words are separate arguments.
fn unquoted_prompt(error: &clap::Error) -> Option<String> {
    let takes_prompt =
        error.get(ContextKind::Usage).is_some_and(|usage| usage.to_string().contains("[PROMPT]"));
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_word = error.kind() == ErrorKind::UnknownArgument && !argument.starts_with('-');
    (is_word && takes_prompt).then(|| "put a prompt of several words in quotes".to_owned())
}

fn duration(text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match &text[number.len()..] {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        unit => return Err(format!("`{unit}` is not a unit: write `90`, `90s`, `5m`, `1h` or `2d`")),
    };
    let amount: f64 =
        number.parse().map_err(|_| "expected a number of seconds, or `90s`, `5m`".to_owned())?;
    Duration::try_from_secs_f64(amount * seconds)
        .ok()
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "a time must be more than nothing".to_owned())
}

fn dollars(text: &str) -> Result<f64, String> {
    let amount: f64 =
        text.trim_start_matches('$').parse().map_err(|_| "expected US dollars, such as `0.50`")?;
    match amount {
        _ if !amount.is_finite() => Err("expected US dollars, such as `0.50`".to_owned()),
        _ if amount < 0.0 => Err("must be positive".to_owned()),
        _ => Ok(amount),
    }
}

/// Writes completions for a shell.
pub(crate) fn completions(shell: clap_complete::Shell) {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "llm-do", &mut text);
    output::to_stdout(&String::from_utf8_lossy(&text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_have_units() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2d"), Ok(Duration::from_secs(172_800)));
        for wrong in ["", "x", "-1", "5w", "0", "nan", "inf", "1e400"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
