//! Sessions, as a record keeps them.
//!
//! A session has events of its own, beside those of the runs that are its turns. Each event that changes the
//! conversation says what the next turn begins with, so that a session can be restored from its own events alone.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Digest, Head, Message, Name, ProjectSource, RunId, ServerTool, Status, Tune, UsageByModel};

/// How a session began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionStart {
    /// The name of the agent or function that answers.
    pub entry: Name,
    /// The version of the format of events.
    pub format: u32,
    /// The version of the program that began it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub build: String,
    /// The directory of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    /// What the project was loaded from, if the program said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ProjectSource>,
    /// The session of which it is a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkedFrom>,
    /// The turns that it took over from that session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<InheritedTurn>,
    /// What its first turn begins with.
    pub state: SessionState,
}

impl SessionStart {
    /// The start of an empty session.
    pub fn new(entry: impl Into<Name>, format: u32) -> Self {
        Self {
            entry: entry.into(),
            format,
            build: String::new(),
            project: None,
            source: None,
            forked_from: None,
            turns: Vec::new(),
            state: SessionState::default(),
        }
    }
}

/// The place at which a session was forked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkedFrom {
    /// The session.
    pub session: RunId,
    /// Its last turn by then.
    pub turn: u32,
}

/// A turn that begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnStart {
    /// Its number.
    pub ordinal: u32,
    /// Its run.
    pub run: RunId,
    /// What the user wrote.
    pub text: String,
    /// The place of that message in the conversation.
    pub position: usize,
}

/// A turn that a session took over from the one from which it was forked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InheritedTurn {
    /// Its number.
    pub ordinal: u32,
    /// What the user wrote.
    pub text: String,
    /// The beginning of the answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
    /// The place of that message in the conversation.
    pub position: usize,
    /// The file descriptors that there were before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub descriptors: Vec<RecordedDescriptor>,
}

/// A turn that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// Its number.
    pub ordinal: u32,
    /// Its run.
    pub run: RunId,
    /// How it ended.
    pub status: Status,
    /// The beginning of the answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
    /// What it used.
    pub usage: UsageByModel,
    /// What the next turn begins with.
    pub state: SessionState,
}

/// What the next turn of a session begins with, as a change from what was recorded before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionState {
    /// How many of the earlier messages are still in the conversation.
    pub kept: usize,
    /// The messages behind them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Arc<Message>>,
    /// The history that they make.
    pub head: Head,
    /// The turns that are no longer in the conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped_turns: Vec<u32>,
    /// How many messages the events of runs have shown.
    pub shown: usize,
    /// How many of those are still valid, if later ones were dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_kept: Option<usize>,
    /// Whether events of runs have shown the instructions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub introduced: bool,
    /// The instructions, if they were made from the first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Arc<str>>,
    /// The tools of the provider that are offered, once that is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_tools: Option<Vec<ServerTool>>,
    /// What was changed of the agent's settings.
    #[serde(default, skip_serializing_if = "is_untuned")]
    pub tuned: Tune,
    /// The model that the user chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Name>,
    /// The model that answered last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Name>,
    /// What the model is told with the next message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What the last answer reported about the length of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredLength>,
    /// The file descriptors, if they are not those of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptors: Option<Vec<RecordedDescriptor>>,
}

fn is_untuned(tune: &Tune) -> bool {
    *tune == Tune::default()
}

/// What an answer reported about the length of its conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredLength {
    /// The model that reported it, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Name>,
    /// The tokens of the whole conversation, the answer included.
    pub tokens: u64,
    /// How many messages they cover.
    pub messages: usize,
}

/// A file descriptor of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedDescriptor {
    /// Its name.
    pub name: String,
    /// Where its text came from.
    pub source: String,
    /// The digest of its text.
    pub digest: Digest,
    /// Its text, where it is recorded for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Arc<str>>,
}
