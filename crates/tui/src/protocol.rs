//! The values that pass between the UI and the program around it.

use std::path::PathBuf;
use std::sync::Arc;

use llm_do_core::{Key, Name, RunId, Schema};
use serde_json::Value;

use crate::Theme;

/// Edits arguments outside of the UI, which has released the terminal meanwhile; an error is shown to the person.
pub type ExternalEditor = Arc<dyn Fn(&Value) -> Result<Value, String> + Send + Sync>;

/// What the UI starts with.
#[derive(Clone)]
pub struct UiOptions {
    /// The colors.
    pub theme: Theme,
    /// The agent or function that is talked to or run.
    pub entry: Name,
    /// Whether there are several turns.
    pub chat: bool,
    /// Whether the person still has to write the first message.
    pub awaits_input: bool,
    /// The schema of a typed input, for which a form is shown.
    pub input_schema: Option<Schema>,
    /// The model that answers; none if no model does.
    pub model: Option<String>,
    /// The models that can be chosen from a list.
    pub models: Vec<OfferedModel>,
    /// What `/call` can call, with the schema of its input.
    pub callables: Vec<(Name, Schema)>,
    /// The directory in which `@file` is completed.
    pub directory: PathBuf,
    /// The file that keeps sent messages, for ↑ and ↓.
    pub history: Option<PathBuf>,
    /// Whether thoughts, arguments and results are shown in full.
    pub unfolded: bool,
    /// Edits arguments in the person's own editor.
    pub edit: ExternalEditor,
}

impl UiOptions {
    /// Options for a single run in black and white that has its input, with nothing to complete and no external editor.
    pub fn new(entry: impl Into<Name>) -> Self {
        Self {
            theme: Theme::default(),
            entry: entry.into(),
            chat: false,
            awaits_input: false,
            input_schema: None,
            model: None,
            models: Vec::new(),
            callables: Vec::new(),
            directory: PathBuf::new(),
            history: None,
            unfolded: false,
            edit: Arc::new(|_| Err("no editor is available".to_owned())),
        }
    }
}

/// A model that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedModel {
    /// The full name.
    pub name: String,
    /// Its price and context size, in one line.
    pub description: String,
}

/// What the person asks the program to do.
#[derive(Debug, Clone, PartialEq)]
pub enum UiCommand {
    /// Send a message.
    Send {
        /// The message.
        text: String,
        /// The files that go with it.
        attachments: Vec<PathBuf>,
    },
    /// Send the value of a typed input.
    SubmitInput(Value),
    /// Call an agent or tool by name, beside the conversation.
    Call {
        /// The name.
        name: String,
        /// The input.
        input: Value,
    },
    /// Stop the current turn.
    Interrupt,
    /// Stop one call and everything below it.
    Cancel {
        /// The run that the call belongs to.
        run: RunId,
        /// The call.
        call: Key,
    },
    /// Let another model answer from now on.
    UseModel(String),
    /// List what was allowed for the session.
    ListGrants,
    /// Revoke one of the entries of that list.
    Revoke(String),
    /// Continue in a copy of the conversation, or switch to the one with this number.
    Fork(Option<u32>),
    /// Go back to before the message with this number, or list the messages.
    GoBack(Option<u32>),
    /// Start a new conversation.
    Clear,
    /// Write the conversation to a file.
    Save(PathBuf),
    /// Name the chat in the record.
    Title(String),
    /// Exit.
    Quit,
}

impl UiCommand {
    /// Returns what the person typed for an agent or tool, as it is shown in the transcript.
    pub(crate) fn to_text(&self) -> Option<String> {
        match self {
            Self::Send { text, .. } => Some(text.clone()),
            Self::SubmitInput(value) => Some(value.to_string()),
            Self::Call { name, input } => Some(format!("/call {name} {input}")),
            _ => None,
        }
    }
}

/// What the program tells the UI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UiUpdate {
    /// Show a text.
    Info(String),
    /// Show a message of the person that was not typed here.
    UserMessage(String),
    /// Put a text into the input.
    Draft(String),
    /// This model answers from now on.
    Model(Option<String>),
    /// What was sent last was rejected before anything was done with it: put it back into the input.
    Rejected,
    /// A run or another piece of work begins.
    Busy,
    /// A message, a call or a change of the conversation is done. Other commands are done without this update, also
    /// during a turn.
    Ready,
    /// The work is over: restore the terminal.
    Close,
}
