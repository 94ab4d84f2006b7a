//! Calls that are running now, and what belongs to each.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use llm_do_core::{
    Access, CallInfo, CallKind, CallOrigin, Context, Conversation, Key, Message, Model, ModelChoice,
    ModelSession, Name, Part, Payload, Role, RunId, ServerTool, Step, StepKind, ToolDefinition, ToolResult,
    Tune, Usage, UsageByModel,
};
use tokio_util::sync::CancellationToken;

use crate::budget::CeilingId;
use crate::descriptors::Descriptors;
use crate::project::plan::{CallTarget, Plan, TargetKind};
use crate::record::replay::RecordedRequest;
use crate::state::cancel_state::CancelState;
use crate::state::control;
use crate::state::instances::Instances;
use crate::state::repeats::Repeats;
use crate::state::stopwatch::Stopwatch;
use crate::sync::Mutex;

/// One call from its start to its end.
pub(crate) struct LiveCall {
    pub(crate) info: Arc<CallInfo>,
    pub(crate) name: Name,
    pub(crate) input: Payload,
    pub(crate) origin: CallOrigin,
    pub(crate) target: Option<CallTarget>,
    pub(crate) parent: Option<Arc<LiveCall>>,
    pub(crate) cancel: CancellationToken,
    /// What it and everything below it may do: the lesser of its caller's access and its own definition's.
    pub(crate) access: Access,
    /// How many calls are on its path, tools included.
    pub(crate) level: u32,
    /// How long it may run.
    pub(crate) time_limit: Option<Duration>,
    /// The nearest stopwatch: its own where the call has a time limit.
    pub(crate) watch: Option<Arc<Stopwatch>>,
    usage: Mutex<UsageByModel>,
    /// The agent in whose name it acts. An agent's own frame is set when its loop is entered.
    frame: OnceLock<Arc<AgentFrame>>,
    /// How often this call has made each inner call, for their keys.
    occurrences: Mutex<HashMap<String, u32>>,
    /// Tokens made ahead for inner calls, so that code that drops one cancels just that one.
    prepared: Mutex<HashMap<Key, CancellationToken>>,
    /// Set when the call's own time limit ended it.
    pub(crate) timed_out: OnceLock<()>,
    /// Whether a person cancelled it.
    pub(crate) cancel_state: CancelState,
    /// Whether the called agent begins with the conversation of its caller.
    pub(crate) fork: bool,
}

/// The turn of an agent whose calls are being run.
#[derive(Clone)]
pub(crate) struct Turn {
    /// The message of the model.
    pub(crate) message: Arc<Message>,
    /// The key of each call of it.
    pub(crate) keys: Vec<Key>,
    /// The answers so far, in the order of the calls.
    pub(crate) results: Vec<ToolResult>,
}

/// What belongs to one agent call, or to the code outside any: plan, rights, instances, conversation.
pub(crate) struct AgentFrame {
    pub(crate) plan: Arc<Plan>,
    pub(crate) ceiling: CeilingId,
    pub(crate) instances: Arc<Instances>,
    pub(crate) agent_state: Arc<AgentState>,
    /// The tools that the model is offered.
    pub(crate) offered: Arc<[Arc<ToolDefinition>]>,
    /// The context values of its tools.
    pub(crate) context: Arc<Context>,
}

/// The conversation of an agent with its models. A chat keeps it over turns.
pub(crate) struct AgentState {
    pub(crate) conversation_state: tokio::sync::Mutex<ConversationState>,
    pub(crate) repeats: Mutex<Repeats>,
    /// The model that answered last, for tools that look at their call.
    pub(crate) model: Mutex<Option<Name>>,
    /// The instructions, where they are made from the first input.
    pub(crate) instructions: OnceLock<Arc<str>>,
    /// The tools of the provider that it is offered, once that is decided.
    pub(crate) server_tools: OnceLock<Vec<ServerTool>>,
    /// The turn whose calls are being run.
    pub(crate) turn: Mutex<Option<Turn>>,
    /// What was changed of the agent's settings.
    pub(crate) tuned: Mutex<Tune>,
    /// The model that a person chose, whatever the agent says.
    pub(crate) chosen: Mutex<Option<ModelChoice>>,
    /// The texts that are too long for the conversation, where the agent can read them.
    pub(crate) descriptors: OnceLock<Descriptors>,
    /// The bytes of results of the current turn.
    pub(crate) results: AtomicU64,
}

/// The conversation itself, and the caches that models keep of it.
#[derive(Default)]
pub(crate) struct ConversationState {
    pub(crate) conversation: Conversation,
    /// The messages of the user that are still in the conversation.
    pub(crate) turns: Vec<UserTurn>,
    /// Whether events have shown the instructions.
    pub(crate) introduced: bool,
    /// How many messages events have shown already.
    pub(crate) announced: usize,
    /// How many messages are still valid, if events have shown others after them.
    pub(crate) kept: Option<usize>,
    /// What the last answer reported about the length of the conversation.
    pub(crate) measured: Option<Measured>,
    pub(crate) model_handles: Vec<ModelHandle>,
    /// The model that answered last, by the name by which it was chosen.
    pub(crate) answered: Option<Name>,
    /// What the model is told with the next message: how the last turn of the session was ended early.
    pub(crate) note: Option<String>,
}

/// What the last answer reported about the length of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Measured {
    /// The model that reported it, where it is known.
    pub(crate) model: Option<Name>,
    /// The tokens of the whole conversation, the answer included.
    pub(crate) tokens: u64,
    /// How many messages they cover.
    pub(crate) messages: usize,
}

/// A message of the user in a session, and what there was before it.
#[derive(Clone)]
pub(crate) struct UserTurn {
    pub(crate) ordinal: u32,
    /// What the user wrote.
    pub(crate) text: String,
    /// Its place in the conversation.
    pub(crate) position: usize,
    /// The long texts that could be read before it.
    pub(crate) descriptors: Option<Descriptors>,
}

/// A model that takes part in a conversation.
pub(crate) struct ModelHandle {
    /// The name by which it was chosen.
    pub(crate) name: Name,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) session: Box<dyn ModelSession>,
}

impl ConversationState {
    /// Drops the messages from a place on. Events say so with the next request.
    pub(crate) fn cut(&mut self, position: usize) {
        self.conversation.truncate(position);
        self.turns.retain(|turn| turn.position < position);
        self.announced = self.announced.min(position);
        self.kept = Some(self.announced);
        self.measured = None;
        self.note = None;
    }

    /// Continues with the messages of a recorded request, whatever this program would have sent: a changed text must not
    /// make a run impossible to resume. Returns whether they differ.
    pub(crate) fn adopt(&mut self, request: &RecordedRequest) -> bool {
        if self.conversation.head() == request.head {
            return false;
        }
        let mut recorded = self.conversation.clone();
        recorded.truncate(request.kept.unwrap_or(self.announced));
        request.messages.iter().for_each(|message| recorded.push(message.clone()));
        let is_recorded = recorded.head() == request.head;
        if is_recorded {
            self.conversation = recorded;
        }
        is_recorded
    }

    /// Puts the note about the last turn before a message of the user.
    pub(crate) fn with_note(&mut self, message: Arc<Message>) -> Arc<Message> {
        let Some(note) = self.note.take() else { return message };
        let mut message = Message::clone(&message);
        message.parts.insert(0, Part::text(note));
        Arc::new(message)
    }

    /// Appends a message. Where the model may go back to earlier messages, those that it is given show their number.
    pub(crate) fn append(&mut self, message: Arc<Message>, shows_positions: bool) {
        let position = self.conversation.messages().len();
        if !shows_positions || message.role != Role::User {
            return self.conversation.push(message);
        }
        let mut message = Message::clone(&message);
        match message.parts.first_mut() {
            Some(Part::Text { text, .. }) => *text = control::mark(position, text).into(),
            Some(Part::ToolResult(result)) => result.text = control::mark(position, &result.text).into(),
            _ => message.parts.insert(0, Part::text(control::mark(position, ""))),
        }
        self.conversation.push(message);
    }
}

impl AgentState {
    pub(crate) fn new(conversation: Conversation) -> Self {
        Self::with_state(ConversationState { conversation, ..ConversationState::default() })
    }

    pub(crate) fn with_state(conversation_state: ConversationState) -> Self {
        Self {
            conversation_state: tokio::sync::Mutex::new(conversation_state),
            repeats: Mutex::default(),
            model: Mutex::default(),
            instructions: OnceLock::new(),
            server_tools: OnceLock::new(),
            turn: Mutex::default(),
            tuned: Mutex::default(),
            chosen: Mutex::default(),
            descriptors: OnceLock::new(),
            results: AtomicU64::new(0),
        }
    }
}

impl AgentFrame {
    /// Returns whether long results are cut: nothing that the model is offered reads them. It may be that this call may not
    /// use what does.
    pub(crate) fn cuts_results(&self) -> bool {
        let is_offered = |reader: &Name| self.offered.iter().any(|definition| definition.name == *reader);
        self.plan.cuts_results || self.plan.reader.as_ref().is_some_and(|reader| !is_offered(reader))
    }

    /// The instructions of the agent; none for code outside any.
    pub(crate) fn instructions(&self) -> Option<&Arc<str>> {
        self.agent_state.instructions.get().or_else(|| self.plan.spec.as_ref().map(|spec| &spec.instructions))
    }
}

impl LiveCall {
    /// The root of a run: code outside any agent, or in the name of one.
    pub(crate) fn root(run: RunId, frame: AgentFrame, cancel: CancellationToken) -> Self {
        let owner = frame.plan.owner();
        let access = frame.plan.spec.as_ref().map_or(Access::Admin, |spec| spec.access);
        let info =
            CallInfo { run, id: Key::root(), parent: None, depth: 0, path: "".into(), agent: owner.clone() };
        Self {
            info: Arc::new(info),
            name: owner,
            input: Payload::null(),
            origin: CallOrigin::Embedder,
            target: None,
            parent: None,
            cancel,
            access,
            level: 0,
            time_limit: None,
            watch: None,
            usage: Mutex::default(),
            frame: OnceLock::from(Arc::new(frame)),
            occurrences: Mutex::default(),
            prepared: Mutex::default(),
            timed_out: OnceLock::new(),
            cancel_state: CancelState::default(),
            fork: false,
        }
    }

    /// A call below another one.
    pub(crate) fn below(
        parent: &Arc<LiveCall>,
        step: &Step,
        origin: CallOrigin,
        target: Option<CallTarget>,
        run_limit: Option<Duration>,
    ) -> Self {
        let name = step.name.clone();
        let is_agent = matches!(target.as_ref().map(|target| &target.kind), Some(TargetKind::Agent));
        let depth = parent.info.depth + u32::from(is_agent);
        let own_limit = target.as_ref().and_then(|target| target.definition.time_limit);
        let time_limit = [own_limit, run_limit].into_iter().flatten().min();
        let watch = match time_limit {
            Some(_) => Some(Stopwatch::start(parent.watch.clone())),
            None => parent.watch.clone(),
        };
        let info = CallInfo {
            run: parent.info.run,
            id: step.key.clone(),
            parent: Some(parent.info.id.clone()),
            depth,
            path: parent.path_below(&name).into(),
            agent: if is_agent { name.clone() } else { parent.info.agent.clone() },
        };
        let cancel = parent.token_for(&info.id);
        let access = target.as_ref().map_or(parent.access, |target| parent.access.min(target.ceiling));
        let frame = if is_agent { OnceLock::new() } else { OnceLock::from(parent.frame().clone()) };
        Self {
            info: Arc::new(info),
            name,
            input: step.payload.clone(),
            origin,
            target,
            parent: Some(parent.clone()),
            cancel,
            access,
            level: parent.level + 1,
            time_limit,
            watch,
            usage: Mutex::default(),
            frame,
            occurrences: Mutex::default(),
            prepared: Mutex::default(),
            timed_out: OnceLock::new(),
            cancel_state: CancelState::default(),
            fork: matches!(step.kind, StepKind::Call { fork: true, .. }),
        }
    }

    fn path_below(&self, name: &str) -> String {
        match (self.info.path.is_empty(), self.kind()) {
            (true, _) => name.to_owned(),
            (false, CallKind::Agent) => format!("{} > {name}", self.info.path),
            (false, _) => format!("{}() > {name}", self.info.path),
        }
    }

    /// What the call is of.
    pub(crate) fn kind(&self) -> CallKind {
        match self.target.as_ref().map(|target| &target.kind) {
            Some(TargetKind::Agent) => CallKind::Agent,
            Some(TargetKind::Tool(_)) => CallKind::Tool,
            Some(TargetKind::Entry(_)) => CallKind::Entry,
            None => CallKind::Unknown,
        }
    }

    /// The frame of the agent in whose name the call acts; before an agent's own is open, its caller's.
    pub(crate) fn frame(&self) -> &Arc<AgentFrame> {
        match (self.frame.get(), &self.parent) {
            (Some(frame), _) => frame,
            (None, Some(parent)) => parent.frame(),
            (None, None) => unreachable!("a root is made with its frame"),
        }
    }

    /// The frame of the caller, by whose rules the call is judged.
    pub(crate) fn callers_frame(&self) -> &Arc<AgentFrame> {
        self.parent.as_ref().map_or_else(|| self.frame(), |parent| parent.frame())
    }

    pub(crate) fn set_frame(&self, frame: Arc<AgentFrame>) {
        // Set once, when the agent's loop is entered.
        let _ = self.frame.set(frame);
    }

    /// Adds usage to the call and all its callers.
    pub(crate) fn add_usage(&self, model: &Name, usage: Usage) {
        self.usage.lock().add(model, usage);
        if let Some(parent) = &self.parent {
            parent.add_usage(model, usage);
        }
    }

    /// What the call and everything below it used.
    pub(crate) fn usage(&self) -> UsageByModel {
        self.usage.lock().clone()
    }

    /// Returns the token of an inner call: the one made ready for it, or a new one.
    pub(crate) fn token_for(&self, key: &Key) -> CancellationToken {
        self.prepared.lock().remove(key).unwrap_or_else(|| self.cancel.child_token())
    }

    /// Makes ready the token of an inner call.
    pub(crate) fn prepare(&self, key: Key, token: CancellationToken) {
        self.prepared.lock().insert(key, token);
    }

    /// Returns how long a call with a time limit has been running.
    pub(crate) fn running_time(&self) -> Option<Duration> {
        let watch = self.watch.as_ref().filter(|_| self.time_limit.is_some());
        watch.map(|watch| watch.elapsed())
    }

    /// Returns whether this is the call that a run was started for.
    pub(crate) fn is_top(&self) -> bool {
        self.parent.as_ref().is_some_and(|parent| parent.parent.is_none())
    }

    /// The key of an inner call by code: independent of the order in which calls arrive.
    pub(crate) fn inner_key(&self, name: &str, input: &Payload) -> Key {
        let base = format!("{name}#{}", input.digest().prefix(32));
        let mut occurrences = self.occurrences.lock();
        let count = occurrences.entry(base.clone()).or_insert(0);
        let key = self.info.id.child(format_args!("{base}.{count}"));
        *count += 1;
        key
    }
}
