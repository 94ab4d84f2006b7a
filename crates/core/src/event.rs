//! Events: the only way out of the runtime, and the record it keeps.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    AnsweredBy, ApprovalMode, ApprovalRequest, CallInfo, CallOrigin, Decision, Digest, Effect, Failure,
    Grant, Head, Key, Limits, Message, ModelError, ModelResponse, Money, Name, Output, Payload, PinnedParts,
    ProjectChanges, ProjectSource, ProjectState, Quantity, Sample, SessionStart, SessionState, TurnEnd,
    TurnStart, Usage, UsageByModel,
};

/// The id of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub uuid::Uuid);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The place in the run's record: gapless. Deltas and progress have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The step it belongs to.
    pub key: Key,
    /// When, in RFC 3339.
    pub time: jiff::Timestamp,
    /// Whose it is.
    #[serde(flatten)]
    pub call: Arc<CallInfo>,
    /// What happened.
    #[serde(flatten)]
    pub body: EventBody,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventBody {
    /// A run began.
    RunStarted(Box<RunStart>),
    /// A run was continued from its record.
    RunResumed {
        /// Whether the project changed since the run was last started or continued.
        changed: bool,
        /// What changed.
        #[serde(default, skip_serializing_if = "ProjectChanges::is_empty")]
        changes: ProjectChanges,
        /// The project from now on.
        #[serde(flatten)]
        state: Box<ProjectState>,
        /// The version of this program.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        build: String,
        /// The limits from now on, if other ones were given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<Limits>,
    },
    /// A call of an agent, tool or entry began.
    CallStarted {
        /// What is called.
        kind: CallKind,
        /// Its name.
        name: Name,
        /// What it was given.
        input: Payload,
        /// Who asked.
        origin: CallOrigin,
        /// Whether it begins with the conversation of the agent that called it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        fork: bool,
    },
    /// The gate let a call pass; its effect begins now.
    CallExecuting {
        /// The digest of the arguments.
        permit: Digest,
        /// Whether it may be repeated.
        effect: Effect,
    },
    /// A model is asked.
    ModelRequest {
        /// The model.
        model: Name,
        /// The ordinal of the turn.
        turn: u32,
        /// The messages since the previous request.
        messages: Vec<Arc<Message>>,
        /// How many of the messages before them are still valid, if later ones were dropped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<usize>,
        /// The instructions, with the first request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructions: Option<Arc<str>>,
        /// The history.
        head: Head,
        /// The output tokens that the budget allows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_output: Option<u64>,
        /// What the budget keeps for it until it is answered, if tokens or cost are limited.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reserved: Option<Reserved>,
        /// How many requests of the same step came before it.
        #[serde(default, skip_serializing_if = "is_first")]
        attempt: u32,
        /// How much of the model's context window it takes, if the window is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<ContextUse>,
    },
    /// The model said more; not recorded.
    TextDelta(Delta),
    /// The model thought more; not recorded.
    ThinkingDelta(Delta),
    /// A model answered, or failed to.
    ModelResponse {
        /// The model that answered.
        model: Name,
        /// The answer.
        #[serde(flatten)]
        result: ModelResult,
        /// How long it took.
        duration_ms: u64,
    },
    /// A person is asked.
    ApprovalRequested(Arc<ApprovalRequest>),
    /// The gate decided about a call.
    ApprovalDecided {
        /// The call.
        id: Key,
        /// What it decided.
        #[serde(flatten)]
        decision: Arc<Decision>,
        /// Who was asked and answered, if it depends on that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered_by: Option<AnsweredBy>,
    },
    /// A tool reported progress; not recorded.
    ToolProgress(Delta),
    /// A line of a call's error log.
    Stderr {
        /// The line.
        text: String,
    },
    /// A call ended.
    CallFinished {
        /// What was called.
        kind: CallKind,
        /// Its name.
        name: Name,
        /// What it gave.
        #[serde(flatten)]
        result: CallResult,
        /// How long it took since it was begun, or entered again by the process that continued the run.
        duration_ms: u64,
        /// How long it ran in all processes together, without what it waited for people, if its time is limited.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ran_ms: Option<u64>,
        /// What it and everything below it used.
        usage: Usage,
    },
    /// A value was taken from outside.
    Sampled {
        /// Which.
        sample: Sample,
        /// The value.
        value: u64,
    },
    /// A person said what became of a call that may have happened before a crash.
    OutcomeSettled {
        /// What the person said.
        #[serde(flatten)]
        settlement: Settlement,
    },
    /// A toolset was opened anew for a call that had used it before a restart, and what it kept is gone.
    InstanceLost {
        /// The toolset.
        toolset: Name,
    },
    /// A person took back a grant that the run had.
    GrantRevoked {
        /// What was granted.
        grant: Grant,
    },
    /// An agent was added to the project.
    AgentAdded {
        /// Its name.
        name: Name,
        /// The agent that created it, which may call it from now on.
        creator: Name,
    },
    /// A person raised a limit.
    BudgetExtended {
        /// The call whose limit it is; empty if it is one of the run.
        limit_of: Key,
        /// What is limited.
        what: Quantity,
        /// How much more there is.
        by: u64,
    },
    /// A session began.
    SessionStarted(Box<SessionStart>),
    /// A turn of a session begins.
    TurnStarted(TurnStart),
    /// A turn of a session has ended.
    TurnEnded(Box<TurnEnd>),
    /// A turn that was cut off is not continued.
    TurnDropped {
        /// Its number.
        ordinal: u32,
    },
    /// The user went back: a turn and those after it are no longer in the conversation.
    WentBack {
        /// The first turn that was dropped.
        turn: u32,
        /// What the next turn begins with.
        state: Box<SessionState>,
    },
    /// The user chose the model of a session, or left it to the agent again.
    ModelChosen {
        /// The model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Name>,
    },
    /// The user named a session.
    SessionTitled {
        /// The name.
        title: String,
    },
    /// Something that a person should know.
    Notice {
        /// The words.
        text: String,
    },
    /// A run ended.
    RunFinished {
        /// How.
        status: Status,
        /// What it gave.
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        output: Option<Output>,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// What it used.
        usage: UsageByModel,
        /// How long it took.
        duration_ms: u64,
    },
}

/// Reads a value that is there: `null` is an answer, too.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Output>, D::Error> {
    Output::deserialize(deserializer).map(Some)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde wants")]
fn is_first(attempt: &u32) -> bool {
    *attempt == 0
}

/// How much of a model's context window a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextUse {
    /// Tokens of instructions, tools and messages: what the last answer reported, and an estimate of what is new.
    pub used: u64,
    /// How many tokens the model reads and writes in one request.
    pub window: u64,
}

/// What a budget keeps for a request whose answer is not known yet. If none is ever recorded, all of it counts as used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserved {
    /// Tokens, in and out.
    pub tokens: u64,
    /// What they cost at most; nothing if the price is unknown.
    pub cost: Money,
}

/// What became of a call that must happen at most once, began, and has no recorded end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Settlement {
    /// It happened, and gave this.
    Happened {
        /// What it gave.
        output: Output,
    },
    /// It did not happen: it is done now.
    DidNotHappen,
    /// Nobody knows. Its caller is told so, and decides.
    Unknown,
}

/// What a run was started with: all that is needed to continue it in another process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStart {
    /// The name of what is run.
    pub entry: Name,
    /// What it was given.
    pub input: Payload,
    /// The digest of agents, prompts, definitions and loop that this run is bound to.
    pub pin: Digest,
    /// The digests of the parts of which the pin is made.
    #[serde(default, skip_serializing_if = "PinnedParts::is_empty")]
    pub parts: PinnedParts,
    /// The digest of the files that define the project ([`ProjectBundle`](crate::ProjectBundle)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<Digest>,
    /// How the run treats what must ask.
    pub mode: ApprovalMode,
    /// The limits of the run.
    pub limits: Limits,
    /// The ordinal of the user's message: the first part of every key.
    pub ordinal: u32,
    /// The version of the format of events.
    #[serde(default)]
    pub format: u32,
    /// The version of the program that began the run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub build: String,
    /// The directory of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    /// What the project was loaded from, if the program said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ProjectSource>,
    /// The model of agents that name none, if it was given by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Name>,
    /// The model of the agent that is run, whatever its file says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_model: Option<Name>,
    /// The models to turn to if the others are down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<Name>,
    /// The wall time after which the run is stopped. It does not hold when the run is continued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How long a question may wait for its answer, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_within_ms: Option<u64>,
    /// The session of which it is a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<RunId>,
    /// Whether it continues an earlier conversation: a turn of a session, or a run that began with messages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_turn: bool,
    /// The context values that were given to this run by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<Name, Value>,
}

impl RunStart {
    /// The version of the format in which events are written today.
    pub const FORMAT: u32 = 1;

    /// The start of a run for which nothing is set.
    pub fn new(entry: impl Into<Name>, input: Payload, pin: Digest) -> Self {
        Self {
            entry: entry.into(),
            input,
            pin,
            parts: PinnedParts::default(),
            bundle: None,
            mode: ApprovalMode::default(),
            limits: Limits::default(),
            ordinal: 1,
            format: Self::FORMAT,
            build: String::new(),
            project: None,
            source: None,
            model: None,
            entry_model: None,
            fallbacks: Vec::new(),
            timeout_ms: None,
            answer_within_ms: None,
            session: None,
            is_turn: false,
            context: BTreeMap::new(),
        }
    }

    /// Returns the project as it was.
    pub fn state(&self) -> ProjectState {
        ProjectState {
            pin: Some(self.pin),
            parts: self.parts.clone(),
            project: self.project.clone(),
            bundle: self.bundle,
            source: self.source.clone(),
        }
    }
}

/// A piece of streamed text. A piece of a new attempt replaces those of earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    /// The attempt within the step.
    pub attempt: u32,
    /// The place within the attempt.
    pub index: u64,
    /// The text.
    pub text: String,
}

/// How a model request ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ModelResult {
    /// With an answer.
    Response(Arc<ModelResponse>),
    /// With an error.
    Failed {
        /// The error.
        error: ModelError,
    },
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallResult {
    /// With a value.
    Output(Output),
    /// With a failure.
    Error(Failure),
}

impl fmt::Display for CallResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(output) => fmt::Display::fmt(output, f),
            Self::Error(failure) => write!(f, "error: {}", failure.message),
        }
    }
}

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallKind {
    /// A prompt.
    Agent,
    /// Code.
    Tool,
    /// Code at the root of a run.
    Entry,
    /// A tool that ran at the provider.
    ServerTool,
    /// A name that means nothing here.
    Unknown,
}

impl CallKind {
    /// Returns the word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Tool => "tool",
            Self::Entry => "entry",
            Self::ServerTool => "server_tool",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for CallKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// With an answer.
    Done,
    /// With a failure of the called agent, tool or entry.
    Failed,
    /// The provider or the network failed.
    Provider,
    /// A budget or limit is used up.
    Limit,
    /// The called tool was denied, or a call had to ask and nobody could be asked.
    Denied,
    /// The answer does not fit the output schema.
    Output,
    /// The wall time of the run is over.
    TimedOut,
    /// Interrupted by a signal, or stopped at an approval.
    Interrupted,
    /// It waits for answers to questions, and can be resumed once there are some.
    Parked,
    /// A call that began before a crash may have happened; a person must decide.
    Unknown,
    /// The record of the run could not be written.
    Record,
}

impl Status {
    /// Returns the word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Provider => "provider",
            Self::Limit => "limit",
            Self::Denied => "denied",
            Self::Output => "output",
            Self::TimedOut => "timed_out",
            Self::Interrupted => "interrupted",
            Self::Unknown => "unknown",
            Self::Parked => "parked",
            Self::Record => "record",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl EventBody {
    /// Returns whether the event is recorded. Deltas and progress are not.
    pub fn is_recorded(&self) -> bool {
        !matches!(self, Self::TextDelta(_) | Self::ThinkingDelta(_) | Self::ToolProgress(_))
    }
}
