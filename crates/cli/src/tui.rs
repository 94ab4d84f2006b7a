//! Runs and chats in the terminal UI: handles the commands of the person.

use std::collections::VecDeque;
use std::io::{IsTerminal, stdout};
use std::path::Path;
use std::sync::Arc;

use llm_do::model::{
    BuiltinProvider, Environment, KnownModel, Message, ModelChoice, Part, Role, known_models, providers,
};
use llm_do::project::LoadedProject;
use llm_do::value::{Input, Name};
use llm_do::{RunError, RunReport, Session};
use llm_do_tui::{OfferedModel, Theme, TuiHandle, UiCommand, UiOptions, UiUpdate};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::advice;
use crate::approvals;
use crate::commands::short_count;
use crate::environment::state_directory;
use crate::exit::Exit;
use crate::host::Host;
use crate::input;
use crate::model_name;
use crate::output;
use crate::problem::Problem;
use crate::screen::Paint;
use crate::text::notice_line;

/// The terminal UI at work.
pub(crate) struct Ui {
    pub(crate) tui: TuiHandle,
    commands: UnboundedReceiver<UiCommand>,
    /// Messages that arrived during a turn.
    waiting: VecDeque<UiCommand>,
}

impl Ui {
    /// Takes the terminal.
    pub(crate) fn open(ui_options: UiOptions) -> Result<Self, Problem> {
        let (tui, commands) = TuiHandle::open(ui_options).map_err(|error| {
            Problem::with_hint(format!("the terminal cannot be used: {error}"), "use `--headless`")
        })?;
        Ok(Self { tui, commands, waiting: VecDeque::new() })
    }

    /// Returns the next command of the person; none if the UI has ended.
    async fn next_command(&mut self) -> Option<UiCommand> {
        match self.waiting.pop_front() {
            Some(command) => Some(command),
            None => self.commands.recv().await,
        }
    }
}

/// Returns what the UI starts with.
pub(crate) fn ui_options(
    project: &LoadedProject,
    entry: Name,
    chat: bool,
    awaits_input: bool,
    verbose: u8,
) -> UiOptions {
    let input_schema = input::own_schema(project, &entry);
    let root = project.project.root_outline();
    let callables =
        root.callables.iter().map(|callable| (callable.name.clone(), callable.definition.input.clone()));
    UiOptions {
        theme: theme(),
        chat,
        awaits_input,
        input_schema,
        callables: callables.collect(),
        directory: std::env::current_dir().unwrap_or_else(|_| ".".into()),
        history: state_directory().map(|directory| directory.join("messages")),
        unfolded: verbose > 0,
        edit: Arc::new(approvals::edit_at_terminal),
        ..UiOptions::new(entry)
    }
}

/// The models that the person can choose from a list: those that the project names, then those of providers that can be
/// asked; all known ones if no provider can.
pub(crate) fn offered_models(project: &LoadedProject, environment: &Environment) -> Vec<OfferedModel> {
    let outlines = project.project.outline();
    let of_agents =
        outlines.iter().filter_map(|outline| Some(outline.agent.as_ref()?.model.as_ref()?.name()));
    let mut names: Vec<String> =
        project.model.iter().cloned().chain(of_agents.map(|name| name.to_string())).collect();
    names.sort_unstable();
    names.dedup();
    let of_project =
        names.into_iter().map(|name| OfferedModel { name, description: "of this project".to_owned() });
    let mut offered: Vec<OfferedModel> = of_project.collect();
    let has_key =
        |provider: &&BuiltinProvider| provider.key_env.iter().any(|name| environment.get(name).is_some());
    let hosted =
        || providers().iter().filter(|provider| provider.needs_key && provider.name != "openai-chat");
    let is_any_set = hosted().any(|provider| has_key(&provider));
    let usable = hosted().filter(|provider| !is_any_set || has_key(provider));
    for model in usable.flat_map(|provider| known_models(provider.name)) {
        if offered.iter().all(|other| other.name != model.name) {
            offered.push(OfferedModel { description: describe_model(&model), name: model.name });
        }
    }
    offered
}

fn describe_model(model: &KnownModel) -> String {
    let context = model.context.map(|tokens| format!(", {} tokens", short_count(tokens))).unwrap_or_default();
    format!("${} in, ${} out{context}", model.price.input, model.price.output)
}

/// The colors, where they are wanted, for the background that the terminal tells of.
fn theme() -> Theme {
    let background = std::env::var("COLORFGBG").unwrap_or_default();
    Theme { colors: Paint::for_stderr().has_colors(), light: is_light(&background) }
}

/// Reads `foreground;background`, numbers of the sixteen colors.
fn is_light(colors: &str) -> bool {
    matches!(colors.rsplit(';').next(), Some("7" | "15"))
}

/// Talks with a project, or runs it once, until the person leaves or the run is over.
pub(crate) async fn converse(
    host: Host,
    ui: Ui,
    demo: Vec<String>,
    first: Option<Input>,
    chat: bool,
) -> Exit {
    let session = host.runtime.session(host.project.entry.clone());
    let sessions = vec![ChatSession { session, chosen: None }];
    let mut table = Table { host, ui, sessions, current: 0, exit: Exit::Done, chat, leaves: false };
    table.begin(demo, first).await;
    table.work().await;
    table.end().await
}

/// Runs one prepared call to its end.
pub(crate) async fn call(host: Host, ui: Ui, run: llm_do::call::RunBuilder) -> Exit {
    let mut table =
        Table { host, ui, sessions: Vec::new(), current: 0, exit: Exit::Done, chat: false, leaves: false };
    table.run(run).await;
    table.end().await
}

/// One conversation, and the model that the person chose for it.
struct ChatSession {
    session: Session,
    chosen: Option<String>,
}

/// The conversations of a person, one of them in progress.
struct Table {
    host: Host,
    ui: Ui,
    sessions: Vec<ChatSession>,
    current: usize,
    exit: Exit,
    chat: bool,
    leaves: bool,
}

impl Table {
    /// Says what is to be said first.
    async fn begin(&mut self, demo: Vec<String>, first: Option<Input>) {
        let mut inputs: VecDeque<Input> = demo.into_iter().map(Input::from).collect();
        inputs.extend(first);
        let says_something = !inputs.is_empty();
        for input in inputs {
            if self.leaves {
                return;
            }
            if self.chat {
                self.ui.tui.send(UiUpdate::UserMessage(words_of(&input)));
            }
            self.turn(input).await;
        }
        if says_something && self.chat && !self.leaves {
            self.ui.tui.send(UiUpdate::Ready);
        }
    }

    async fn work(&mut self) {
        while !self.leaves {
            match self.ui.next_command().await {
                Some(command) => self.handle_command(command).await,
                None => break,
            }
        }
    }

    async fn end(mut self) -> Exit {
        if let Err(error) = self.ui.tui.close() {
            output::to_stderr(&format!("error: {error}"));
            self.exit = Exit::Failed;
        }
        for chat in self.sessions {
            let notices = chat.session.close().await;
            notices.iter().for_each(|text| output::to_stderr(&notice_line(text)));
        }
        self.host.runtime.shutdown().await;
        self.exit
    }

    /// Does what the person wants while nothing runs.
    async fn handle_command(&mut self, command: UiCommand) {
        match command {
            UiCommand::Send { text, attachments } => match input::attachments(&attachments) {
                Ok(attachments) => self.turn(Input::from(text).with_attachments(attachments)).await,
                Err(problem) => {
                    self.remark(problem.to_string());
                    self.ui.tui.send(UiUpdate::Rejected);
                }
            },
            UiCommand::SubmitInput(value) => self.turn(value.into()).await,
            UiCommand::Call { name, input } => {
                let run = self.host.prepare(name.as_str(), input.into());
                self.run(run).await;
            }
            UiCommand::UseModel(model) => self.use_model(model).await,
            UiCommand::Fork(number) => self.fork(number).await,
            UiCommand::GoBack(number) => self.go_back(number).await,
            UiCommand::Clear => self.clear().await,
            UiCommand::Save(path) => self.save(&path).await,
            other => {
                self.leaves |= handle_immediately(&other, &self.host, &self.ui.tui);
                // Nobody waits for the end of these, and a word about it would send what waits for something else.
                return;
            }
        }
        if !self.leaves {
            self.ui.tui.send(UiUpdate::Ready);
        }
    }

    /// One message and its answer. Meanwhile the person may stop it, look at grants, or leave.
    async fn turn(&mut self, input: Input) {
        let Self { host, ui, sessions, current, .. } = self;
        let Some(ChatSession { session, .. }) = sessions.get_mut(*current) else { return };
        ui.tui.send(UiUpdate::Busy);
        let sent =
            session.send_watched(input, |run| host.with_timeout(run), |run| host.interrupts().watch(run));
        let (result, leaves) = attended(sent, host, ui).await;
        self.finish(&result, leaves).await;
    }

    async fn run(&mut self, run: llm_do::call::RunBuilder) {
        self.ui.tui.send(UiUpdate::Busy);
        let run = run.start();
        self.host.interrupts().watch(run.canceller());
        let (result, leaves) = attended(run, &self.host, &mut self.ui).await;
        self.finish(&result, leaves).await;
    }

    async fn finish(&mut self, result: &Result<RunReport, RunError>, leaves: bool) {
        self.host.interrupts().rest();
        self.host.runtime.readers_done().await;
        let report = match result {
            Ok(report) => report,
            Err(error) => &error.report,
        };
        self.exit = self.host.exit_of(report);
        for warning in self.host.tape_warnings() {
            self.remark(format!("warning: {warning}"));
        }
        if let Some(hint) = advice::hint(report) {
            self.remark(format!("hint: {hint}"));
        }
        if !stdout().is_terminal() {
            self.host.answer.finish(report);
        }
        if self.exit == Exit::Usage {
            self.ui.tui.send(UiUpdate::Rejected);
        }
        self.leaves |= leaves || !self.chat || self.host.interrupts().must_leave();
    }

    /// Has answers from another model, and shows which one it is.
    async fn use_model(&mut self, model: String) {
        match model_name::complete(&model, Some(&self.host.project)) {
            Ok(name) => {
                self.choose_model(&name).await;
                self.remark(format!("from now on answers come from `{name}`"));
            }
            Err(problem) => self.remark(problem.to_string()),
        }
    }

    async fn choose_model(&mut self, name: &str) {
        let Some(chat) = self.sessions.get_mut(self.current) else { return };
        chat.session.use_model(Some(ModelChoice::from(name))).await;
        chat.chosen = Some(name.to_owned());
        self.show_model();
    }

    /// Shows which model answers in the current conversation.
    fn show_model(&self) {
        let chosen = self.sessions.get(self.current).and_then(|chat| chat.chosen.clone());
        self.ui.tui.send(UiUpdate::Model(chosen.or_else(|| self.host.model.clone())));
    }

    /// Goes on in a copy of the conversation, or in another one.
    async fn fork(&mut self, number: Option<u32>) {
        let count = self.sessions.len();
        match number.map(|number| number as usize) {
            Some(number) if (1..=count).contains(&number) => self.current = number - 1,
            Some(number) => {
                return self.remark(format!("there is no conversation {number}; {}", numbered(count)));
            }
            None => {
                let Some(chat) = self.sessions.get_mut(self.current) else { return };
                let copy = ChatSession { session: chat.session.fork().await, chosen: chat.chosen.clone() };
                self.sessions.push(copy);
                self.current = count;
            }
        }
        self.show_model();
        self.remark(format!(
            "this is conversation {} of {}; `/fork N` goes to another one",
            self.current + 1,
            self.sessions.len()
        ));
    }

    async fn go_back(&mut self, number: Option<u32>) {
        let Some(ChatSession { session, .. }) = self.sessions.get_mut(self.current) else { return };
        let Some(number) = number else {
            let turns = session.turns().await;
            let lines = turns.iter().map(|turn| format!("{}  {}", turn.ordinal, first_line(&turn.text)));
            let lines: Vec<String> = lines.collect();
            let message = if lines.is_empty() { "nothing was said yet".to_owned() } else { lines.join("\n") };
            return self.remark(message);
        };
        match session.go_back(number).await {
            Ok(text) => {
                self.remark(format!("back to before message {number}; what calls have done is not undone"));
                self.ui.tui.send(UiUpdate::Draft(text));
            }
            Err(failure) => self.remark(failure.message),
        }
    }

    async fn clear(&mut self) {
        let session = self.host.runtime.session(self.host.project.entry.clone());
        if let Some(chat) = self.sessions.get_mut(self.current) {
            let notices = std::mem::replace(&mut chat.session, session).close().await;
            let chosen = chat.chosen.clone();
            notices.iter().for_each(|text| self.remark(notice_line(text)));
            if let Some(chosen) = chosen {
                self.choose_model(&chosen).await;
            }
        }
        self.remark("a new conversation".to_owned());
    }

    async fn save(&mut self, path: &Path) {
        let Some(ChatSession { session, .. }) = self.sessions.get(self.current) else { return };
        let messages = session.messages().await;
        let text = match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => serde_json::to_string_pretty(&messages).unwrap_or_default(),
            _ => markdown_of(&messages),
        };
        let shown = path.display();
        let message = match write_new(path, &text) {
            Ok(()) => format!("{} messages written to `{shown}`", messages.len()),
            Err(error) => format!("`{shown}` was not written: {error}"),
        };
        self.remark(message);
    }

    fn remark(&self, message: String) {
        self.ui.tui.send(UiUpdate::Info(message));
    }
}

/// Waits for a run while the person may want something.
async fn attended<T>(work: impl Future<Output = T>, host: &Host, ui: &mut Ui) -> (T, bool) {
    let mut work = std::pin::pin!(work);
    let mut leaves = false;
    loop {
        tokio::select! {
            result = &mut work => return (result, leaves),
            command = ui.commands.recv() => match command {
                Some(UiCommand::Quit) if leaves => leave_at_once(host),
                // Also where the run is not known yet: it is about to be.
                Some(UiCommand::Interrupt) => host.interrupts().cancel(),
                Some(UiCommand::Quit) => {
                    leaves = true;
                    host.interrupts().cancel();
                }
                // The UI keeps messages back during a turn; one that it sent just before this began is not lost.
                Some(command @ (UiCommand::Send { .. } | UiCommand::SubmitInput(_) | UiCommand::Call { .. })) => ui.waiting.push_back(command),
                Some(command) => leaves |= handle_immediately(&command, host, &ui.tui),
                // The UI is gone: nobody could answer a question any more.
                None if leaves => return (work.await, true),
                None => {
                    leaves = true;
                    host.interrupts().cancel();
                }
            },
        }
    }
}

/// Leaves without waiting for what does not stop.
fn leave_at_once(host: &Host) -> ! {
    llm_do_tui::restore();
    llm_do_sandbox::end_all_commands();
    approvals::abandon_editor();
    let exit = host.interrupts().signal().map_or(Exit::Interrupted, Exit::from);
    std::process::exit(exit.code().into());
}

/// Does what needs no conversation; says whether the person leaves.
fn handle_immediately(command: &UiCommand, host: &Host, tui: &TuiHandle) -> bool {
    match command {
        UiCommand::Interrupt => host.interrupts().cancel_running(),
        UiCommand::Cancel { run, call } => {
            if !host.runtime.cancel_call(*run, call) {
                tui.send(UiUpdate::Info("that call has ended already".to_owned()));
            }
        }
        UiCommand::ListGrants => tui.send(UiUpdate::Info(crate::commands::grants(host))),
        UiCommand::Revoke(number) => tui.send(UiUpdate::Info(crate::commands::revoke(host, number))),
        UiCommand::Quit => {
            host.interrupts().cancel_running();
            return true;
        }
        _ => tui.send(UiUpdate::Info("not while a turn runs; Esc stops it".to_owned())),
    }
    false
}

fn words_of(input: &Input) -> String {
    let payload = input.clone().into_payload();
    payload.lone_text().unwrap_or(payload.text()).to_owned()
}

fn first_line(text: &str) -> String {
    crate::text::shortened(text, 70)
}

/// Writes a file that is not there yet.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    let mut file = std::fs::File::options().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}

/// A conversation as Markdown.
fn markdown_of(messages: &[Arc<Message>]) -> String {
    let mut text = String::new();
    for message in messages {
        let is_result = |part: &Part| matches!(part, Part::ToolResult(_));
        let who = match message.role {
            Role::Assistant => "Model",
            // Providers want results in a message of the user.
            Role::User if !message.parts.is_empty() && message.parts.iter().all(is_result) => "Tool results",
            Role::User => "You",
        };
        text.push_str(&format!("## {who}\n\n"));
        for part in &message.parts {
            text.push_str(&part_of(part));
        }
    }
    text
}

fn part_of(part: &Part) -> String {
    match part {
        Part::Text { text, .. } => format!("{text}\n\n"),
        Part::Thinking { text, .. } => format!("> {}\n\n", text.replace('\n', "\n> ")),
        Part::ToolCall(call) => format!("Calls `{}`:\n\n~~~~json\n{}\n~~~~\n\n", call.name, call.arguments),
        Part::ToolResult(result) => {
            format!("Result of `{}`:\n\n~~~~\n{}\n~~~~\n\n", result.name, result.text)
        }
        Part::Attachment(attachment) => format!("[{}]\n\n", attachment.name),
        Part::Opaque(block) => format!("[a block of {}]\n\n", block.provider),
    }
}

/// Which conversations there are.
fn numbered(count: usize) -> String {
    match count {
        1 => "there is only this one".to_owned(),
        _ => format!("there are 1 to {count}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_light_background_is_known_by_its_color() {
        assert!(is_light("0;15") && is_light("0;default;7"));
        assert!(!is_light("15;0") && !is_light("") && !is_light("7;default"));
    }
}
