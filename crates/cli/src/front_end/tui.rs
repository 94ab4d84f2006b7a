//! The terminal UI as a front end: starts it, and turns its messages into requests.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use llm_do::model::{BuiltinProvider, Environment, KnownModel, known_models, providers};
use llm_do::project::LoadedProject;
use llm_do::value::{Input, Name};
use llm_do_tui::{OfferedModel, Theme, TuiHandle, UiCommand, UiOptions, UiUpdate};
use tokio::sync::mpsc::UnboundedReceiver;

use super::UserRequest;
use crate::approvals;
use crate::command_error::CommandError;
use crate::config;
use crate::console::Paint;
use crate::environment::state_directory;
use crate::input;
use crate::text::short_count;

/// The terminal UI.
pub(crate) struct TuiFrontEnd {
    pub(crate) handle: TuiHandle,
    requests: UnboundedReceiver<UiCommand>,
    /// Messages that arrived during a turn.
    waiting: VecDeque<UserRequest>,
}

impl TuiFrontEnd {
    /// Takes the terminal.
    pub(crate) fn open(ui_options: UiOptions) -> Result<Self, CommandError> {
        let (handle, requests) = TuiHandle::open(ui_options).map_err(|error| {
            CommandError::with_hint(format!("the terminal cannot be used: {error}"), "use `--headless`")
        })?;
        Ok(Self { handle, requests, waiting: VecDeque::new() })
    }

    pub(super) async fn next(&mut self) -> Option<UserRequest> {
        match self.waiting.pop_front() {
            Some(request) => Some(request),
            None => self.requests.recv().await.map(request),
        }
    }

    pub(super) async fn next_during_run(&mut self) -> Option<UserRequest> {
        loop {
            match self.requests.recv().await.map(request)? {
                // The UI holds messages back during a turn; one that it sent just before the turn began is not lost.
                message @ (UserRequest::Send(_) | UserRequest::Call { .. }) => {
                    self.waiting.push_back(message)
                }
                other => return Some(other),
            }
        }
    }

    pub(super) fn show_message(&self, text: &str) {
        self.handle.send(UiUpdate::UserMessage(text.to_owned()));
    }

    pub(super) fn remark(&self, text: &str) {
        self.handle.send(UiUpdate::Info(text.to_owned()));
    }

    pub(super) fn offer_draft(&self, text: &str) {
        self.handle.send(UiUpdate::Draft(text.to_owned()));
    }

    pub(super) fn show_busy(&self) {
        self.handle.send(UiUpdate::Busy);
    }

    pub(super) fn show_ready(&self) {
        self.handle.send(UiUpdate::Ready);
    }

    pub(super) fn give_back(&self) {
        self.handle.send(UiUpdate::Rejected);
    }

    pub(super) fn show_model(&self, model: Option<&str>) {
        self.handle.send(UiUpdate::Model(model.map(str::to_owned)));
    }

    pub(super) fn close(&self) -> io::Result<()> {
        self.handle.close()
    }
}

fn request(command: UiCommand) -> UserRequest {
    match command {
        UiCommand::Send { text, attachments } => match input::attachments(&attachments) {
            Ok(attachments) => UserRequest::Send(Input::from(text).with_attachments(attachments)),
            Err(error) => UserRequest::Invalid(error.to_string()),
        },
        UiCommand::SubmitInput(value) => UserRequest::Send(value.into()),
        UiCommand::Call { name, input } => UserRequest::Call { name, input: input.into() },
        UiCommand::Interrupt => UserRequest::Interrupt,
        UiCommand::Cancel { run, call } => UserRequest::Cancel { run, call },
        UiCommand::UseModel(model) => UserRequest::UseModel(model),
        UiCommand::ListGrants => UserRequest::ListGrants,
        UiCommand::Revoke(number) => UserRequest::Revoke(number),
        UiCommand::Fork(number) => UserRequest::Fork(number),
        UiCommand::GoBack(number) => UserRequest::GoBack(number),
        UiCommand::Clear => UserRequest::Clear,
        UiCommand::Title(title) => UserRequest::Title(title),
        UiCommand::Save(path) => UserRequest::Save(path),
        UiCommand::Quit => UserRequest::Quit,
    }
}

/// Returns what the terminal UI starts with.
pub(crate) fn ui_options(project: &LoadedProject, environment: &Environment, entry: Name) -> UiOptions {
    let root = project.project.root_outline();
    let callables =
        root.callables.iter().map(|callable| (callable.name.clone(), callable.definition.input.clone()));
    UiOptions {
        theme: theme(),
        input_schema: input::own_schema(project, &entry),
        models: offered_models(project, environment),
        callables: callables.collect(),
        directory: std::env::current_dir().unwrap_or_else(|_| ".".into()),
        history: state_directory().map(|directory| directory.join("messages")),
        edit: Arc::new(approvals::edit_at_terminal),
        ..UiOptions::new(entry)
    }
}

/// Returns the models that can be chosen from a list: those that the project names, the user's aliases, then those of
/// providers that have a key; all known ones if no provider has one.
fn offered_models(project: &LoadedProject, environment: &Environment) -> Vec<OfferedModel> {
    let mut offered = models_of(project);
    offered.extend(aliases(project));
    let has_key =
        |provider: &&BuiltinProvider| provider.key_env.iter().any(|name| environment.get(name).is_some());
    let hosted =
        || providers().iter().filter(|provider| provider.needs_key && provider.name != "openai-chat");
    let is_any_set = hosted().any(|provider| has_key(&provider));
    let usable = hosted().filter(|provider| !is_any_set || has_key(provider));
    for model in usable.flat_map(|provider| known_models(provider.name)) {
        if offered.iter().all(|other| other.name != model.name) {
            let note = if is_any_set { "" } else { "; no key is set" };
            let description = format!("{}{note}", describe_model(&model));
            offered.push(OfferedModel { description, name: model.name });
        }
    }
    offered
}

fn models_of(project: &LoadedProject) -> Vec<OfferedModel> {
    let outlines = project.project.outline();
    let of_agents =
        outlines.iter().filter_map(|outline| Some(outline.agent.as_ref()?.model.as_ref()?.name()));
    let mut names: Vec<String> =
        project.model.iter().cloned().chain(of_agents.map(|name| name.to_string())).collect();
    names.sort_unstable();
    names.dedup();
    let offered = |name| OfferedModel { name, description: "of this project".to_owned() };
    names.into_iter().map(offered).collect()
}

/// The user's own names for models, so that such a name is not taken for part of another one.
fn aliases(project: &LoadedProject) -> Vec<OfferedModel> {
    // Starting the session has reported a configuration that cannot be read.
    let aliases = config::current(Some(&project.root)).map(|user| user.models().aliases).unwrap_or_default();
    let offered = |(name, model)| OfferedModel { name, description: format!("your alias of {model}") };
    aliases.into_iter().map(offered).collect()
}

fn describe_model(model: &KnownModel) -> String {
    let context = model.context.map(|tokens| format!(", {} tokens", short_count(tokens))).unwrap_or_default();
    format!("${} in, ${} out{context}", model.price.input, model.price.output)
}

/// The colors, if they are wanted, for the background that the terminal reports.
fn theme() -> Theme {
    let background = std::env::var("COLORFGBG").unwrap_or_default();
    Theme { colors: Paint::for_stderr().has_colors(), light: is_light(&background) }
}

/// Reads `foreground;background`, numbers of the sixteen colors.
fn is_light(colors: &str) -> bool {
    matches!(colors.rsplit(';').next(), Some("7" | "15"))
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
