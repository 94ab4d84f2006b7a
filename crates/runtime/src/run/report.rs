//! What a run gives to whoever started it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use llm_do_core::{
    ApprovalRequest, Event, EventBody, Failure, FailureKind, Key, Message, Output, ProjectChanges, RunId,
    Status, Trace, UsageByModel,
};
use serde::de::DeserializeOwned;

use crate::record::log::RunLog;
use crate::record::message_log::call_messages;

/// What a run gave, and what it took.
#[derive(Clone)]
pub struct RunReport {
    /// The run.
    pub id: RunId,
    /// How it ended.
    pub status: Status,
    /// What it gave.
    pub output: Option<Output>,
    /// The failure that it ended in, where it ended in one.
    pub failure: Option<Failure>,
    /// What it used, per model.
    pub usage: UsageByModel,
    /// The messages of the agent that it was started for.
    pub messages: Vec<Arc<Message>>,
    /// Whether a call had to ask and nobody could be asked.
    pub nobody_to_ask: bool,
    /// Whether the run is recorded, has no result yet, and can be continued by itself
    /// ([`Runtime::resume`](crate::Runtime::resume)). A turn of a session is continued by the next one.
    pub can_resume: bool,
    /// What was different from the record when the run was continued; empty for a new one.
    pub changes: ProjectChanges,
    /// How long it took.
    pub duration: Duration,
    pub(super) log: Option<Arc<RunLog>>,
}

impl RunReport {
    pub(super) fn unstarted(id: RunId) -> Self {
        Self {
            id,
            status: Status::Failed,
            output: None,
            failure: None,
            usage: UsageByModel::default(),
            messages: Vec::new(),
            nobody_to_ask: false,
            can_resume: false,
            changes: ProjectChanges::default(),
            duration: Duration::ZERO,
            log: None,
        }
    }

    /// A run that was not started because it could not be recorded.
    pub(super) fn unrecorded(id: RunId) -> Self {
        Self { status: Status::Record, ..Self::unstarted(id) }
    }

    /// Returns the answer as text; empty where there is none.
    pub fn text(&self) -> Arc<str> {
        self.output.as_ref().map(Output::to_text).unwrap_or_default()
    }

    /// Reads the answer as a Rust value.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        match &self.output {
            Some(output) => output.parse(),
            None => Err(Failure::new(FailureKind::Output, "the run gave no answer")),
        }
    }

    /// Returns the recorded events.
    pub fn events(&self) -> Vec<Arc<Event>> {
        self.log.as_ref().map(|log| log.events()).unwrap_or_default()
    }

    /// Returns the tree of calls.
    pub fn trace(&self) -> Trace {
        Trace::from_events(&self.events())
    }

    /// Returns the messages of one agent call: what it was given, what its model answered and the results of its tools.
    ///
    /// [`trace`](Self::trace) has the keys of the calls. In a chat, the top agent's messages of earlier turns are in
    /// [`messages`](Self::messages) only.
    pub fn messages_of(&self, call: &Key) -> Vec<Arc<Message>> {
        call_messages(&self.events(), call)
    }

    /// Returns the questions that nobody has answered, oldest first: those for which a parked run waits.
    pub fn open_requests(&self) -> Vec<Arc<ApprovalRequest>> {
        let mut open: Vec<Arc<ApprovalRequest>> = Vec::new();
        for event in self.events() {
            match &event.body {
                EventBody::ApprovalRequested(request) => {
                    open.retain(|other| other.id != request.id);
                    open.push(request.clone());
                }
                EventBody::ApprovalDecided { id, .. } => open.retain(|other| other.id != *id),
                _ => {}
            }
        }
        open
    }

    /// Returns the lines that calls wrote to their error log, in order.
    pub fn stderr_log(&self) -> Vec<String> {
        let lines = self.events().into_iter().filter_map(|event| match &event.body {
            EventBody::Stderr { text } => Some(text.clone()),
            _ => None,
        });
        lines.collect()
    }
}

impl fmt::Debug for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunReport")
            .field("status", &self.status)
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}

/// A run that gave no answer. The report says what it did and used until then.
#[derive(Clone)]
pub struct RunError {
    /// What was done and used.
    pub report: Box<RunReport>,
    message: String,
}

impl RunError {
    pub(crate) fn new(report: RunReport, message: String) -> Self {
        Self { report: Box::new(report), message }
    }

    /// How the run ended.
    pub fn status(&self) -> Status {
        self.report.status
    }
}

/// As people read it: a program whose `main` returns the error prints this.
impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RunError {}
