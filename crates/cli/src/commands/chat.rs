//! `llm-do chat`: several turns with memory, line by line.

use std::io::{BufRead, IsTerminal, stdin};

use llm_do::approval::Grant;
use llm_do::model::ModelChoice;
use llm_do::value::{Input, Schema};
use llm_do::{RunError, RunReport, Session};
use rustyline::error::ReadlineError;

use crate::arguments::{ChatArguments, Output};
use crate::environment::state_directory;
use crate::exit::Exit;
use crate::history::History;
use crate::host::{self, Host, Plan};
use crate::input;
use crate::location;
use crate::model_name;
use crate::output::{self, usage_line};
use crate::problem::Problem;
use crate::surface::Surface;
use crate::text::{notice_line, visible};
use crate::tui;
use crate::typed_input::TextSource;

/// How many messages can be recalled.
const MAX_RECALLED: usize = 1_000;

const HELP: &str = "\
/help            this text
/model           shows the model that answers; `/model NAME` chooses another
/usage           what this conversation used so far
/approvals       what you allowed for this session
/revoke N        takes grant N back
/call NAME JSON  calls an agent or tool beside the conversation
/quit            leaves (also exit, quit or Ctrl-D)
A line that ends in \\ goes on in the next one. Ctrl-C stops a turn.";

/// Talks with a project.
pub(crate) fn chat(arguments: &ChatArguments) -> Result<Exit, Problem> {
    let (location, prompt) = location::locate_with_prompt(
        &arguments.project,
        arguments.prompt.positional.as_deref(),
        arguments.prompt.flag.as_deref(),
    )?;
    let project = host::load(&location, arguments.options.trust.as_deref())?;
    if !project.allow_cli_input {
        return Err(Problem::with_hint(
            "this project takes no input from the command line",
            "its manifest says `allow_cli_input: false`; use `llm-do run`",
        ));
    }
    let attachments = input::attachments(&arguments.attach)?;
    let first = match &prompt {
        Some(prompt) => {
            let schema = input::own_schema(&project, &project.entry);
            let input = input::from_text(prompt, schema.as_ref(), TextSource::ChatLine)?;
            Some(input.with_attachments(attachments))
        }
        None if attachments.is_empty() => None,
        None => {
            return Err(Problem::with_hint("`--attach` goes with the first message", "give a prompt too"));
        }
    };
    let surface = Surface::of_chat(&arguments.options)?;
    let plan = Plan::new(project, &arguments.options, surface)?;
    plan.check_model(&plan.project.entry)?;
    let demo = plan.project.demo.clone();
    let (entry, awaits_input) = (plan.project.entry.clone(), demo.is_empty() && first.is_none());
    let plan = plan.shown(&entry, true, awaits_input);
    host::block_on(async {
        Ok(match Host::start(plan)? {
            (host, Some(ui)) => tui::converse(host, ui, demo, first, true).await,
            (host, None) => converse(host, demo, first).await,
        })
    })
}

/// Holds a conversation until the person leaves; the exit is that of the last turn. What the project begins it with
/// is shown as if the person had written it.
pub(crate) async fn converse(host: Host, demo: Vec<String>, first: Option<Input>) -> Exit {
    let session = host.runtime.session(host.project.entry.clone());
    let schema = input::own_schema(&host.project, &host.project.entry);
    let mut chat = Chat { session, schema, model: host.model.clone(), host, exit: Exit::Done };
    for prompt in demo {
        chat.say(&format!("> {}", visible(&prompt)));
        chat.turn(Input::from(prompt)).await;
    }
    if let Some(input) = first {
        chat.turn(input).await;
    }
    let mut lines = if chat.host.screen.plain { Lines::Plain } else { Lines::open() };
    while !chat.host.interrupts().must_leave() {
        let (rest, line) = lines.next().await;
        lines = rest;
        match line {
            Line::Text(text) if text.trim().is_empty() => {}
            Line::Text(text) if ["/quit", "exit", "quit"].contains(&text.trim()) => break,
            Line::Text(text) => chat.take(text.trim()).await,
            Line::Interrupted => chat.host.screen.line("/quit or Ctrl-D leaves"),
            Line::Unreadable => chat.refuse("error: a line is not UTF-8 text, so it was not sent"),
            Line::End => break,
        }
    }
    let notices = chat.session.close().await;
    notices.iter().for_each(|text| chat.host.screen.line(&notice_line(text)));
    chat.host.runtime.shutdown().await;
    chat.exit
}

struct Chat {
    session: Session,
    /// The schema of a typed input, which may be written as JSON.
    schema: Option<Schema>,
    /// The model that answers; none if the entry is a function.
    model: Option<String>,
    host: Host,
    exit: Exit,
}

impl Chat {
    async fn take(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "/help" => self.say(HELP),
            "/usage" => self.say(&usage_line(&self.session.usage().total())),
            "/approvals" | "/grants" => self.say(&grants(&self.host)),
            "/revoke" => self.say(&revoke(&self.host, rest.trim())),
            "/call" => self.call(rest.trim()).await,
            "/model" => self.use_model(rest.trim()).await,
            _ if word.starts_with('/') && word.len() > 1 && !word[1..].contains('/') => {
                self.say(&unknown_command(word));
            }
            _ => match input::from_text(line, self.schema.as_ref(), TextSource::ChatLine) {
                Ok(input) => self.turn(input).await,
                Err(problem) => self.refuse(&problem.to_string()),
            },
        }
    }

    /// Shows the model that answers, or chooses another.
    async fn use_model(&mut self, name: &str) {
        if name.is_empty() {
            let shown = self.model.as_deref().map(visible);
            return self.say(&match shown {
                Some(model) => format!("the model is `{model}`; `/model NAME` chooses another"),
                None => "no model answers here: the entry is a function".to_owned(),
            });
        }
        match model_name::complete(name, Some(&self.host.project)) {
            Ok(name) => {
                self.session.use_model(Some(ModelChoice::from(name.as_str()))).await;
                self.say(&format!("from now on answers come from `{}`", visible(&name)));
                self.model = Some(name);
            }
            Err(problem) => self.refuse(&problem.to_string()),
        }
    }

    async fn turn(&mut self, input: Input) {
        let host = &self.host;
        let sent = self.session.send_watched(
            input,
            |run| host.with_timeout(run),
            |run| host.interrupts().watch(run),
        );
        let result = sent.await;
        self.end(&result).await;
    }

    async fn call(&mut self, line: &str) {
        let (name, json) = line.split_once(' ').unwrap_or((line, "{}"));
        let Ok(value) = llm_do_core::parse_strict(json) else {
            return self.say("write `/call NAME {\"key\": \"value\"}`");
        };
        let input = Input::from(value);
        if input.names_files() {
            let hint = "use `llm-do call PATH NAME --attach FILE`";
            return self.refuse(&input::attaching("the line", hint).to_string());
        }
        let run = self.host.prepare(name, input).start();
        self.host.interrupts().watch(run.canceller());
        let result = run.await;
        self.end(&result).await;
    }

    async fn end(&mut self, result: &Result<RunReport, RunError>) {
        self.host.interrupts().rest();
        self.host.runtime.readers_done().await;
        self.exit = self.host.print(result);
    }

    fn refuse(&mut self, message: &str) {
        self.exit = Exit::Usage;
        self.say(message);
    }

    fn say(&self, text: &str) {
        if self.host.output == Output::Text {
            self.host.screen.line(text);
        } else {
            output::to_stderr(text);
        }
    }
}

fn unknown_command(word: &str) -> String {
    let names = HELP.lines().filter_map(|line| line.strip_prefix('/')?.split_whitespace().next());
    match llm_do_core::misspelled(word.trim_start_matches('/'), names) {
        Some(near) => format!("there is no command `{}`; did you mean `/{near}`?", visible(word)),
        None => format!("there is no command `{}`; /help lists them", visible(word)),
    }
}

/// What the person allowed for the session.
pub(crate) fn grants(host: &Host) -> String {
    let grants = host.runtime.grants();
    if grants.is_empty() {
        return "nothing is allowed beyond single calls".to_owned();
    }
    let lines = grants.iter().map(|(id, Grant { subject, scope, .. })| {
        format!("{}  {} > {}: {scope}", id.0, subject.agent, subject.name)
    });
    visible(&lines.collect::<Vec<_>>().join("\n"))
}

/// Takes something back that the person allowed, and says what came of it.
pub(crate) fn revoke(host: &Host, number: &str) -> String {
    let grants = host.runtime.grants();
    match grants.iter().find(|(id, _)| id.0.to_string() == number) {
        Some((id, _)) => {
            host.runtime.revoke(*id);
            "taken back".to_owned()
        }
        None if number.is_empty() => "write `/revoke N`; /approvals lists the numbers".to_owned(),
        None => format!("there is no grant `{}`; /approvals lists them", visible(number)),
    }
}

/// Where lines come from.
enum Lines {
    Terminal(Box<LineEditor>),
    /// A terminal that is listened to: the line is read as the terminal itself edits it.
    Plain,
    Pipe,
}

/// A line editor that remembers what was sent, in earlier chats too.
struct LineEditor {
    editor: rustyline::DefaultEditor,
    history: Option<History>,
}

enum Line {
    Text(String),
    Interrupted,
    /// Bytes that are not text.
    Unreadable,
    End,
}

impl Lines {
    fn open() -> Self {
        if !stdin().is_terminal() {
            return Self::Pipe;
        }
        LineEditor::open().map_or(Self::Pipe, |editor| Self::Terminal(Box::new(editor)))
    }

    /// Reads the next message where it blocks nobody.
    async fn next(self) -> (Self, Line) {
        let read = tokio::task::spawn_blocking(move || match self {
            Self::Terminal(mut editor) => {
                let line = editor.read();
                (Self::Terminal(editor), line)
            }
            Self::Plain => {
                output::to_stderr("Your message, then Enter:");
                (Self::Plain, read_pipe())
            }
            Self::Pipe => (Self::Pipe, read_pipe()),
        });
        read.await.unwrap_or((Self::Pipe, Line::End))
    }
}

impl LineEditor {
    fn open() -> rustyline::Result<Self> {
        let config = rustyline::Config::builder().max_history_size(MAX_RECALLED)?.build();
        let mut editor = rustyline::DefaultEditor::with_config(config)?;
        let history = state_directory().map(|directory| History::new(directory.join("history")));
        for entry in history.iter().flat_map(History::entries) {
            editor.add_history_entry(entry)?;
        }
        Ok(Self { editor, history })
    }

    /// Reads a message: a line, and further ones while they end in a backslash.
    fn read(&mut self) -> Line {
        let read = message(|is_first| match self.editor.readline(if is_first { "> " } else { ". " }) {
            Ok(line) => Line::Text(line),
            Err(ReadlineError::Interrupted) => Line::Interrupted,
            Err(_) => Line::End,
        });
        if let Line::Text(text) = &read {
            self.remember(text);
        }
        read
    }

    /// Keeps a message, unless the one before was the same. A history that cannot be written is not worth an error.
    fn remember(&mut self, text: &str) {
        if let (Ok(true), Some(history)) = (self.editor.add_history_entry(text), &self.history) {
            let _ = history.add(text);
        }
    }
}

fn read_pipe() -> Line {
    message(|_| {
        let mut bytes = Vec::new();
        match stdin().lock().read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => Line::End,
            Ok(_) => match String::from_utf8(bytes) {
                Ok(text) => Line::Text(text.trim_end_matches(['\n', '\r']).to_owned()),
                Err(_) => Line::Unreadable,
            },
        }
    })
}

fn message(mut next: impl FnMut(bool) -> Line) -> Line {
    let mut text = String::new();
    loop {
        match next(text.is_empty()) {
            Line::Text(line) => match line.strip_suffix('\\') {
                Some(part) => {
                    text.push_str(part);
                    text.push('\n');
                }
                None => return Line::Text(text + &line),
            },
            Line::End if !text.is_empty() => return Line::Text(text),
            other => return other,
        }
    }
}
