//! What passes between the UI and the program around it.

use std::path::PathBuf;
use std::sync::Arc;

use llm_do_core::{Key, Name, RunId, Schema};
use serde_json::Value;

use crate::Theme;

/// Edits arguments outside of the UI, which has left the terminal meanwhile; the error is shown.
pub type EditOutside = Arc<dyn Fn(&Value) -> Result<Value, String> + Send + Sync>;

/// What the UI begins with.
#[derive(Clone)]
pub struct Opening {
    /// The colors.
    pub theme: Theme,
    /// What is talked with or run.
    pub entry: Name,
    /// Whether there are several turns.
    pub chat: bool,
    /// Whether the first message is still to be written.
    pub asks: bool,
    /// The schema of a typed input, for which a form is shown.
    pub input_schema: Option<Schema>,
    /// The model that answers; none if no model does.
    pub model: Option<String>,
    /// The models that can be chosen from a list.
    pub models: Vec<OfferedModel>,
    /// What can be called by name, with the schema of its input.
    pub callables: Vec<(Name, Schema)>,
    /// Where `@file` looks.
    pub directory: PathBuf,
    /// Where what was sent is kept.
    pub history: Option<PathBuf>,
    /// Whether thoughts, arguments and results are shown at length.
    pub unfolded: bool,
    /// Edits arguments in the person's own editor.
    pub edit: EditOutside,
}

impl Opening {
    /// A single run in black and white that has its input, with nothing to complete and no editor outside.
    pub fn new(entry: impl Into<Name>) -> Self {
        Self {
            theme: Theme::default(),
            entry: entry.into(),
            chat: false,
            asks: false,
            input_schema: None,
            model: None,
            models: Vec::new(),
            callables: Vec::new(),
            directory: PathBuf::new(),
            history: None,
            unfolded: false,
            edit: Arc::new(|_| Err("there is no editor".to_owned())),
        }
    }
}

/// A model that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedModel {
    /// The full name.
    pub name: String,
    /// What it costs and takes, in a few words.
    pub description: String,
}

/// What the person wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Wish {
    /// To say something, with files.
    Send {
        /// The words.
        text: String,
        /// The files.
        attachments: Vec<PathBuf>,
    },
    /// To give a typed input.
    Give(Value),
    /// To call something by name, beside the conversation.
    Call {
        /// The name.
        name: String,
        /// What it is given.
        input: Value,
    },
    /// To stop what runs.
    Interrupt,
    /// To stop one call and everything below it.
    Cancel {
        /// Its run.
        run: RunId,
        /// The call.
        call: Key,
    },
    /// To have answers from another model.
    UseModel(String),
    /// To see what was allowed.
    ListGrants,
    /// To take one of them back.
    Revoke(String),
    /// To go on in a copy of the conversation, or in another one.
    Fork(Option<u32>),
    /// To go back to before a message, or to see the messages.
    GoBack(Option<u32>),
    /// To begin anew.
    Clear,
    /// To write the conversation to a file.
    Save(PathBuf),
    /// To leave.
    Quit,
}

impl Wish {
    /// What the person wrote, where it goes to an agent or tool.
    pub(crate) fn words(&self) -> Option<String> {
        match self {
            Self::Send { text, .. } => Some(text.clone()),
            Self::Give(value) => Some(value.to_string()),
            Self::Call { name, input } => Some(format!("/call {name} {input}")),
            _ => None,
        }
    }
}

/// What the UI is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// Words to show.
    Remark(String),
    /// What the person said without typing it here.
    Said(String),
    /// A text for the input.
    Draft(String),
    /// The model that answers from now on.
    Model(Option<String>),
    /// What was sent last was refused before anything was done with it: the person gets it back.
    Refused,
    /// A run or another piece of work begins.
    Busy,
    /// What was wished for is done: a message, a call, or something about the conversation. Other wishes are granted
    /// without this word, also while a turn goes on.
    Ready,
    /// The work is over; the terminal is given back.
    Leave,
}
