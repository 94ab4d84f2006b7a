//! The arguments of the command line.

mod user;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use llm_do::model::{Cassette, CassetteMode};

use crate::command_order::command_first;
use crate::exit::Exit;
use crate::output;
use crate::problem::Problem;
use crate::python_flags;
use crate::screen::Paint;

pub(crate) use user::{AuthAction, AuthArguments, ConfigAction, ConfigArguments};

const EXAMPLES: &str = "\
Examples:
  llm-do init hello                         a project to start from
  llm-do run hello \"Good morning\"           run it
  llm-do hello \"Good morning\"               the same, in short
  cd hello && llm-do run \"Good morning\"     inside a project, PATH can be left out
  cat notes.txt | llm-do run summary.agent  input from a pipe
  cat err.log | llm-do run hello \"Why?\"     a prompt, followed by a pipe
  llm-do check hello --reach                what it can touch, before it runs

Exit codes: 0 done, 1 failed, 2 bad usage or project, 3 provider, 4 limit,
            5 denied, 6 output does not fit, 124 out of time, 129 hung up,
            130 interrupted, 141 stdout closed, 143 terminated.";

const PATH_OR_PROMPT: &str = "\
One argument alone is PATH if it names a file or directory that exists, or looks like a path (`a/b`, `x.agent`); \
otherwise it is the prompt for the project of the current directory. `-p` gives the prompt in any case.";

/// Runs agents (prompt files) and tools (code) under one calling convention.
#[derive(Debug, Parser)]
#[command(name = "llm-do", version, after_help = EXAMPLES, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs a project and prints its answer. `llm-do PATH [PROMPT]` means the same
    Run(RunArguments),
    /// Talks with a project over several turns, with memory
    Chat(ChatArguments),
    /// Finds every problem of a project, without running its code unless you trust it
    Check(CheckArguments),
    /// Lists agents, toolsets and tools with schemas, approvals and needs
    List(ListArguments),
    /// Calls any agent or tool of a project by name
    Call(CallArguments),
    /// Writes a project to start from
    Init(InitArguments),
    /// Lists providers and known models, or shows what one model can do and costs, without any request
    Models(ModelsArguments),
    /// Shows what a project does without a question, and agrees to it
    Trust(TrustArguments),
    /// Shows and changes your own settings: default model, aliases, providers, prices
    Config(ConfigArguments),
    /// Stores keys of providers, and lists which keys are found
    Auth(AuthArguments),
    /// Prints the JSON Schemas of project files, of your configuration and of the output
    Schema(SchemaArguments),
    /// Shows what is set up, and tries providers, local servers and models
    Doctor(DoctorArguments),
    /// Prints completions for a shell
    Completions(CompletionArguments),
}

#[derive(Debug, Args)]
#[command(after_help = PATH_OR_PROMPT)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) project: ProjectArguments,
    #[command(flatten)]
    pub(crate) prompt: PromptArguments,
    #[command(flatten)]
    pub(crate) input: InputArguments,
    #[command(flatten)]
    pub(crate) options: RunOptions,
    /// Goes on as a chat after the answer
    #[arg(long)]
    pub(crate) chat: bool,
}

#[derive(Debug, Args)]
#[command(after_help = PATH_OR_PROMPT)]
pub(crate) struct ChatArguments {
    #[command(flatten)]
    pub(crate) project: ProjectArguments,
    #[command(flatten)]
    pub(crate) prompt: PromptArguments,
    /// Attaches a file to the first message (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// The prompt, in one of two ways.
#[derive(Debug, Args)]
pub(crate) struct PromptArguments {
    /// The prompt, or the first message of a chat. Text from a pipe or a file on stdin is added after the prompt of `run`,
    /// and is the whole input if there is none
    #[arg(id = "prompt")]
    pub(crate) positional: Option<String>,
    /// The prompt, also if it looks like a path
    #[arg(
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
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) project: ProjectArguments,
    /// Shows what the entry can touch, by which path and behind which approval
    #[arg(long)]
    pub(crate) reach: bool,
    /// Run no Python file of the project, and list what could not be verified so; the default unless it is trusted
    #[arg(long = "static")]
    pub(crate) is_static: bool,
    /// Run the Python files of the project to find everything, although it is not trusted
    #[arg(long, conflicts_with = "is_static")]
    pub(crate) run_code: bool,
    /// How to print it; `mermaid` draws the reach as a graph
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) output: CheckOutput,
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    pub(crate) project: ProjectArguments,
    /// How to print it
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) output: ListOutput,
}

#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct CallArguments {
    #[command(flatten)]
    pub(crate) project: ProjectArguments,
    /// The agent or tool, or `toolset.tool` if a name is ambiguous
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) input: InputArguments,
    /// Prints the gate's decision and runs nothing. Exit codes: 0 it would run, 5 it would ask or is blocked, 1 it
    /// cannot be done, 2 the name or the input is wrong
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Calls in the name of an agent: with its toolsets, settings and rules
    #[arg(long = "as", value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// Where to write it; the directory is made if need be
    #[arg(default_value = ".")]
    pub(crate) directory: PathBuf,
    /// What to start from
    #[arg(long, value_enum, default_value_t)]
    pub(crate) template: Template,
}

#[derive(Debug, Args)]
pub(crate) struct ModelsArguments {
    /// A project file, a directory or an agent file, whose providers, keys and prices count too; without one, the project
    /// of the current directory if there is one
    pub(crate) path: Option<PathBuf>,
    /// Shows one model, as `provider:model`, or `model` if only one provider has it
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Lists known models with prices and context sizes: of one provider, or of all
    #[arg(long, value_name = "PROVIDER", num_args = 0..=1, default_missing_value = "", conflicts_with = "model")]
    pub(crate) list: Option<String>,
    /// Sets a key of the manifest (`runtime.max_depth=3`) or of an agent (`agents.NAME.model=test`), repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// How to print it
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) output: ListOutput,
}

#[derive(Debug, Args)]
pub(crate) struct TrustArguments {
    /// A project file, a directory or an agent file; without one, the project of the current directory
    pub(crate) path: Option<PathBuf>,
    /// Lists the directories that are trusted
    #[arg(long, conflicts_with_all = ["revoke", "own", "below", "expect", "owner"])]
    pub(crate) list: bool,
    /// Takes the trust in a directory back
    #[arg(long, conflicts_with_all = ["own", "below", "expect", "owner"])]
    pub(crate) revoke: bool,
    /// The project is your own work: `check`, `list` and the like may run its code
    #[arg(long)]
    pub(crate) own: bool,
    /// Trusts every project below a directory, whatever it does
    #[arg(long, conflicts_with_all = ["own", "expect", "owner"])]
    pub(crate) below: bool,
    /// Agrees without a question if the powers have this digest
    #[arg(long, value_name = "DIGEST")]
    pub(crate) expect: Option<String>,
    /// Accepts files that belong to this user
    #[arg(long, value_name = "UID")]
    pub(crate) owner: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArguments {
    /// Which schema; without one, all in one object
    #[arg(value_enum)]
    pub(crate) which: Option<SchemaKind>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// A project whose providers and models are tried too; without one, that of the current directory if there is one
    pub(crate) path: Option<PathBuf>,
    /// A model to try, as `provider:model` (repeatable); the request asks for one word
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Vec<String>,
    /// What stdout carries
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) output: ListOutput,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionArguments {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// The project and changes to it.
#[derive(Debug, Args)]
pub(crate) struct ProjectArguments {
    /// A project file, a directory or an agent file; without one, the project of the current directory or above it
    pub(crate) path: Option<PathBuf>,
    /// Sets a key of the manifest (`runtime.max_depth=3`) or of an agent (`agents.NAME.model=test`), repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// What a run is given.
#[derive(Debug, Args)]
pub(crate) struct InputArguments {
    /// The input as JSON, from a file (`@FILE`) or from stdin (`-`); through a pipe it attaches no files
    #[arg(long, value_name = "JSON|@FILE|-")]
    pub(crate) input_json: Option<String>,
    /// Attaches a file (repeatable); its type is found from its content
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,
}

/// How a run behaves.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// The model of the entry agent, and of agents that name none, as `provider:model`, or `model` if only one provider has it;
    /// LLM_DO_MODEL is only for agents that name none
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// What happens to calls that must ask
    #[arg(short = 'a', long, value_enum, value_name = "MODE")]
    pub(crate) approve: Option<Approve>,
    /// The same as `--approve all`
    #[arg(long, conflicts_with_all = ["approve", "reject_all"])]
    pub(crate) approve_all: bool,
    /// The same as `--approve none`
    #[arg(long, conflicts_with = "approve")]
    pub(crate) reject_all: bool,
    /// Asks a program: JSON lines over a descriptor (`3`, or `3,4` to read and write) or a Unix socket
    #[arg(long, value_name = "FD|SOCKET", conflicts_with_all = ["approve_all", "reject_all", "approve"])]
    pub(crate) approvals_from: Option<String>,
    /// Starts a program and asks it: JSON lines over its stdin and stdout, as for `--approvals-from`
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["approve_all", "reject_all", "approve", "approvals_from"])]
    pub(crate) approve_with: Option<String>,
    /// Trusts the project for this run, or exactly the powers of a digest; `none` runs it without its powers
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(crate) trust: Option<String>,
    /// Nested agents on one path; a project can only lower it, as with the other `--max` flags
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) max_depth: Option<u32>,
    /// Model turns of one agent call
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,
    /// Tool and agent calls of the run
    #[arg(long, value_name = "N")]
    pub(crate) max_calls: Option<u64>,
    /// Tokens of the run, in and out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// US dollars that the run may cost
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) max_cost: Option<f64>,
    /// The wall time of the run: seconds, or `90s`, `5m`, `1h`
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// What stdout carries: the answer, one object, or every event as a line
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) output: Output,
    /// Writes everything that the agent says to stdout as it arrives, not only its answer
    #[arg(long, conflicts_with = "tui")]
    pub(crate) stream: bool,
    /// Shows calls and results on stderr; `-vv` also streamed text, `-vvv` also whole requests
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(flatten)]
    pub(crate) cassette: CassetteArguments,
    /// Shows lines on stderr instead of the terminal UI
    #[arg(long)]
    pub(crate) headless: bool,
    /// Draws the terminal UI, even if stdout is not a terminal
    #[arg(long, conflicts_with_all = ["headless", "plain"])]
    pub(crate) tui: bool,
    /// Says everything in plain lines that are never painted over, for screen readers
    #[arg(long, conflicts_with = "headless")]
    pub(crate) plain: bool,
    /// Keeps no record of the run; this version never keeps one
    #[arg(long)]
    pub(crate) no_record: bool,
}

/// A recording in the place of the network.
#[derive(Debug, Args)]
pub(crate) struct CassetteArguments {
    /// Replays the traffic with providers from a file, without keys; records it if the file does not exist
    #[arg(long, value_name = "FILE")]
    pub(crate) cassette: Option<PathBuf>,
    /// What to do with the cassette
    #[arg(long, value_enum, default_value_t, value_name = "MODE", requires = "cassette")]
    pub(crate) cassette_mode: Taping,
}

impl CassetteArguments {
    /// Opens the cassette that is named.
    pub(crate) fn tape(&self) -> Result<Option<Cassette>, Problem> {
        let mode = match self.cassette_mode {
            Taping::Auto => CassetteMode::Auto,
            Taping::Record => CassetteMode::Record,
            Taping::Replay => CassetteMode::Replay { strict: true },
            Taping::Lenient => CassetteMode::Replay { strict: false },
        };
        let open = |path| {
            Cassette::open(path, mode).map_err(|error| {
                let message = match std::error::Error::source(&error) {
                    Some(cause) => format!("{error}: {cause}"),
                    None => error.to_string(),
                };
                match error.hint() {
                    Some(hint) => Problem::with_hint(message, hint),
                    None => Problem::usage(message),
                }
            })
        };
        self.cassette.as_ref().map(open).transpose()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Taping {
    /// Replay if the file has recordings, else record
    #[default]
    Auto,
    /// Record anew
    Record,
    /// Replay; a request that was not recorded is an error
    Replay,
    /// Replay; a request that was not recorded gets the nearest answer
    Lenient,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// Ask at the terminal
    Prompt,
    /// Allow them; what is blocked stays blocked
    All,
    /// Deny them
    None,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    #[default]
    Text,
    Json,
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
    /// The header of an agent file
    Agent,
    /// The object of `--output json`, which also ends `--output jsonl`
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
    /// An agent with tools in Python, one of which asks before it writes
    Python,
}

/// Reads the arguments. What is not a command and no flag of the whole program is a path to run.
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
    Command(Box<Problem>),
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
        if let Some(hint) = python_flags::hint(error) {
            output::to_stderr(&Paint::for_stderr().message(&format!("hint: {hint}")));
        }
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Done,
            _ => Exit::Usage,
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match &text[number.len()..] {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        "h" => 3600.0,
        unit => return Err(format!("`{unit}` is not a unit: write `90`, `90s`, `5m` or `1h`")),
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
    if amount.is_finite() && amount >= 0.0 {
        Ok(amount)
    } else {
        Err("expected US dollars, such as `0.50`".to_owned())
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
        for wrong in ["", "x", "-1", "5d", "0", "nan", "inf", "1e400"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
