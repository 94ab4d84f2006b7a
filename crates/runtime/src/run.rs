//! Runs: one entry call from its start to its end.
//!
//! A run is a task of the runtime; what the user holds is a handle. Dropping the handle cancels the run,
//! and the task still closes what it opened.

pub(crate) mod approval;
mod continued;
pub(crate) mod ending;
pub(crate) mod report;
pub(crate) mod resume;
pub(crate) mod revocation;
pub(crate) mod session;

use std::future::{Future, IntoFuture};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use llm_do_core::{
    ApprovalMode, Approver, Attachment, CallInfo, CallOrigin, Context, Conversation, Effect, Engine, Event,
    EventBody, Failure, FailureKind, Halt, Input, Key, Limits, Message, ModelChoice, Name, Outcome, Output,
    Payload, ProjectChanges, ProjectState, RunId, RunStart, Settlement, Step, StepKind, StepResult, nearest,
};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::ending::{RunEnd, can_resume, ending, status_of_halt};
use self::report::{RunError, RunReport};
use crate::budget::Budget;
use crate::call::dispatch;
use crate::engine::Embedded;
use crate::gate;
use crate::gate::verdict::Verdict;
use crate::record::changes::BUILD;
use crate::record::log::{EventReader, RunLog};
use crate::record::replay::Replay;
use crate::record::store::{ClaimedRun, Durability, NoStore, RunWriter, Store, StoreError};
use crate::record::subscribers::Subscriber;
use crate::record::unknown::UnknownCall;
use crate::state::instances::Instances;
use crate::state::live::{AgentFrame, AgentState, LiveCall};
use crate::state::run_state::{RunSettings, RunState};
use crate::state::shared::Shared;
use crate::timing::milliseconds;

/// A run that is about to start. Awaiting it starts it and returns its report.
#[must_use = "a run starts when it is awaited or started"]
pub struct RunBuilder {
    shared: Arc<Shared>,
    entry: Name,
    input: Input,
    attachments: Vec<Attachment>,
    options: Options,
}

/// What a run may be started with.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) mode: Option<ApprovalMode>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) model: Option<ModelChoice>,
    pub(crate) entry_model: Option<ModelChoice>,
    pub(crate) fallbacks: Vec<ModelChoice>,
    pub(crate) limits: Limits,
    pub(crate) timeout: Option<Duration>,
    pub(crate) answer_within: Option<Duration>,
    pub(crate) context: Context,
    pub(crate) subscribers: Vec<Subscriber>,
    pub(crate) agent_state: Option<Arc<AgentState>>,
    pub(crate) instances: Option<Arc<Instances>>,
    /// The recorded session of which it is a turn.
    pub(crate) session: Option<RunId>,
    /// The ordinal of the user's message: the first part of every key.
    pub(crate) ordinal: u32,
    /// The agent in whose name the call is made.
    pub(crate) agent: Option<Name>,
    /// Why an approval is asked for, if the run only asks for one and calls nothing.
    pub(crate) reason: Option<String>,
    /// The limits that replace those of a recorded run.
    pub(crate) new_limits: Option<Limits>,
    /// What a person said about calls of a recorded run.
    pub(crate) settled: Vec<(UnknownCall, Settlement)>,
    /// What is different from the record that is continued.
    pub(crate) changes: ProjectChanges,
}

impl Options {
    /// The options with which a recorded run was started, but for its wall time: whoever continues it sets another. The agent is the one in whose name its root acts, if there is one.
    pub(crate) fn from_record(begun: &RunStart, agent: Name) -> Self {
        let values = begun.context.iter();
        let context = values.fold(Context::default(), |context, (name, value)| {
            context.with_named(name.clone(), value.clone())
        });
        Self {
            model: begun.model.clone().map(ModelChoice::Named),
            entry_model: begun.entry_model.clone().map(ModelChoice::Named),
            fallbacks: begun.fallbacks.iter().cloned().map(ModelChoice::Named).collect(),
            limits: begun.limits.clone(),
            answer_within: begun.answer_within_ms.map(Duration::from_millis),
            context,
            ordinal: begun.ordinal,
            agent: Some(agent).filter(|agent| !agent.is_empty()),
            ..Self::default()
        }
    }
}

impl RunBuilder {
    pub(crate) fn new(shared: Arc<Shared>, entry: Name, input: Input) -> Self {
        let options = Options { ordinal: 1, ..Options::default() };
        Self { shared, entry, input, attachments: Vec::new(), options }
    }

    pub(crate) fn with_options(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Attaches a file: by path, or bytes with a media type.
    pub fn attach(mut self, attachment: Attachment) -> Self {
        self.attachments.push(attachment);
        self
    }

    /// Sets the model of agents that name none.
    pub fn model(self, model: impl Into<ModelChoice>) -> Self {
        self.with_options(|options| options.model = Some(model.into()))
    }

    /// Sets the model of the agent that is run, even if it names another one.
    pub fn entry_model(self, model: impl Into<ModelChoice>) -> Self {
        self.with_options(|options| options.entry_model = Some(model.into()))
    }

    /// Adds a model to turn to when the others are down.
    pub fn fallback_model(self, model: impl Into<ModelChoice>) -> Self {
        self.with_options(|options| options.fallbacks.push(model.into()))
    }

    /// Sets who answers approval requests of this run.
    pub fn approver(self, approver: impl Approver + 'static) -> Self {
        self.with_options(|options| options.approver = Some(Arc::new(approver)))
    }

    /// Sets how this run treats what must ask.
    pub fn approval_mode(self, mode: ApprovalMode) -> Self {
        self.with_options(|options| options.mode = Some(mode))
    }

    /// Sets limits of this run; those not given are the runtime's.
    pub fn limits(self, limits: Limits) -> Self {
        self.with_options(|options| options.limits = limits)
    }

    /// Sets the wall time after which the run is stopped, waiting for a person included.
    pub fn timeout(self, limit: Duration) -> Self {
        self.with_options(|options| options.timeout = Some(limit))
    }

    /// Sets how long a question of this run may wait for its answer while the run is parked
    /// ([`ApprovalMode::Park`]). Afterwards its call is denied.
    pub fn answer_within(self, limit: Duration) -> Self {
        self.with_options(|options| options.answer_within = Some(limit))
    }

    /// Provides a context value for this run.
    pub fn provide<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.with_options(|options| options.context = std::mem::take(&mut options.context).with(value))
    }

    /// Provides a context value by name for this run.
    pub fn provide_named(self, name: impl Into<Name>, value: Value) -> Self {
        self.with_options(|options| {
            options.context = std::mem::take(&mut options.context).with_named(name, value)
        })
    }

    /// Reads the events of this run, in a task of its own: a slow or panicking reader never harms the run.
    pub fn on_event(self, subscriber: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.with_options(|options| options.subscribers.push(Arc::new(subscriber)))
    }

    /// Makes the call in the name of an agent: with its toolsets, settings, rules and access.
    pub fn as_agent(self, agent: impl Into<Name>) -> Self {
        self.with_options(|options| options.agent = Some(agent.into()))
    }

    /// Says what the gate would answer. Nobody is asked, nothing is recorded and nothing runs.
    pub async fn judge(self) -> Verdict {
        let payload = self.input.with_attachments(self.attachments).into_payload();
        let log = Arc::new(RunLog::new(self.shared.clock.clone(), Vec::new()));
        let (id, ordinal) = (self.shared.new_run_id(), self.options.ordinal);
        let settings = settings(&self.shared, self.options);
        let state = RunState::new(id, self.shared, settings, log, None, CancellationToken::new());
        judge(&Arc::new(state), self.entry, payload, ordinal).await
    }

    /// Starts from the messages of an earlier run.
    pub fn messages(self, messages: impl IntoIterator<Item = Arc<Message>>) -> Self {
        let conversation = Conversation::from_messages(messages);
        self.with_options(|options| options.agent_state = Some(Arc::new(AgentState::new(conversation))))
    }

    /// What the run is given.
    pub(crate) fn payload(&self) -> Payload {
        self.input.clone().with_attachments(self.attachments.iter().cloned()).into_payload()
    }

    /// Starts the run as a task. Must be called inside a Tokio runtime.
    pub fn start(self) -> Run {
        let id = self.shared.new_run_id();
        self.start_as(id)
    }

    /// Starts the run under an id that is known already.
    pub(crate) fn start_as(self, id: RunId) -> Run {
        let payload = self.input.with_attachments(self.attachments).into_payload();
        start(self.shared, id, self.entry, payload, self.options, None)
    }

    /// Runs to the end on an executor of its own, for programs that are not async. Subscribers have read
    /// everything when it returns; blocking code that outlived its call is left behind.
    pub fn blocking(self) -> Result<RunReport, RunError> {
        let id = self.shared.new_run_id();
        let ran = block_on(async {
            let mut run = self.start();
            let readings = std::mem::take(&mut run.readings);
            let report = run.await;
            let _ = tokio::time::timeout(READING_LIMIT, futures::future::join_all(readings)).await;
            report
        });
        ran.unwrap_or_else(|message| Err(RunError::new(RunReport::unstarted(id), message)))
    }
}

/// Runs a future to its end on an executor of its own.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let executor = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let executor = executor.map_err(|error| format!("no executor could be started: {error}"))?;
    let output = executor.block_on(future);
    executor.shutdown_background();
    Ok(output)
}

/// How long a blocking run waits for its subscribers.
const READING_LIMIT: Duration = Duration::from_secs(10);

impl IntoFuture for RunBuilder {
    type Output = Result<RunReport, RunError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.start().await })
    }
}

/// A run in progress. Awaiting it gives its report; dropping it cancels the run.
pub struct Run {
    id: RunId,
    log: Arc<RunLog>,
    cancel: CancellationToken,
    task: JoinHandle<Result<RunReport, RunError>>,
    readings: Vec<oneshot::Receiver<()>>,
    _cancel_on_drop: DropGuard,
}

impl Run {
    /// Returns the run's id.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// Reads the events of the run from the first one.
    pub fn events(&self) -> EventReader {
        EventReader::new(self.log.clone())
    }

    /// Cancels the whole tree. The run still ends in order: await it.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Returns a handle with which other code can cancel the run.
    pub fn canceller(&self) -> Canceller {
        Canceller(self.cancel.clone())
    }
}

/// Cancels a run from elsewhere.
#[derive(Debug, Clone)]
pub struct Canceller(CancellationToken);

impl Canceller {
    /// Cancels the whole tree.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

impl Future for Run {
    type Output = Result<RunReport, RunError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.task).poll(context).map(|joined| {
            joined.unwrap_or_else(|error| {
                Err(RunError::new(RunReport::unstarted(self.id), format!("the run broke off: {error}")))
            })
        })
    }
}

/// Starts a run, or goes on with a recorded one.
pub(crate) fn start(
    shared: Arc<Shared>,
    id: RunId,
    entry: Name,
    input: Payload,
    options: Options,
    claimed: Option<ClaimedRun>,
) -> Run {
    let cancel = CancellationToken::new();
    let (writer, earlier) = claimed.map(|claimed| (claimed.writer, claimed.events)).unzip();
    let earlier = earlier.unwrap_or_default();
    let mut replay = (!earlier.is_empty()).then(|| Box::new(Replay::from_events(&earlier)));
    if let Some(replay) = &mut replay {
        if options.changes.concern_project() {
            replay.outdate_decisions();
        }
        options
            .settled
            .iter()
            .for_each(|(call, settlement)| replay.settle(call.step.clone(), settlement.clone()));
    }
    let earlier_events = earlier.len();
    let log = Arc::new(RunLog::new(shared.clock.clone(), earlier));
    let subscribers = shared.subscribers.iter().chain(&options.subscribers);
    let readings = subscribers
        .map(|subscriber| {
            let reader = EventReader::starting_at(log.clone(), earlier_events);
            shared.readings.read(reader, subscriber.clone(), &shared.tasks)
        })
        .collect();
    let (timeout, ordinal) = (options.timeout, options.ordinal);
    let settings = settings(&shared, options);
    let state = Arc::new(RunState::new(id, shared.clone(), settings, log.clone(), replay, cancel.clone()));
    shared.running.lock().insert(id, Arc::downgrade(&state));
    let task = shared.tasks.spawn(execute(state, writer, entry, input, timeout, ordinal));
    Run { id, log, cancel: cancel.clone(), task, readings, _cancel_on_drop: cancel.drop_guard() }
}

/// The run's own options, completed by the runtime's.
fn settings(shared: &Shared, options: Options) -> RunSettings {
    let own_context =
        options.context.all_named().map(|(name, value)| (name.clone(), value.clone())).collect();
    RunSettings {
        own_context,
        timeout: options.timeout,
        answer_within: options.answer_within,
        mode: options.mode.unwrap_or(shared.mode),
        approver: options.approver.or_else(|| shared.approver.clone()),
        model: options.model.or_else(|| shared.model.clone()),
        entry_model: options.entry_model.or_else(|| shared.entry_model.clone()),
        fallbacks: options.fallbacks,
        limits: merged(options.limits, &shared.limits),
        context: if options.context.is_empty() {
            shared.context.clone()
        } else {
            Arc::new(Context::clone(&shared.context).and(&options.context))
        },
        agent_state: options.agent_state,
        instances: options.instances,
        session: options.session,
        agent: options.agent,
        reason: options.reason,
        new_limits: options.new_limits,
        settled: options.settled,
        changes: options.changes,
    }
}

pub(crate) fn merged(own: Limits, shared: &Limits) -> Limits {
    Limits {
        depth: own.depth.or(shared.depth).map(|depth| depth.min(crate::state::shared::MAX_DEPTH)),
        turns: own.turns.or(shared.turns),
        repeats: own.repeats.or(shared.repeats),
        tool_calls: own.tool_calls.or(shared.tool_calls),
        requests: own.requests.or(shared.requests),
        created_agents: own.created_agents.or(shared.created_agents),
        parallel: own.parallel.or(shared.parallel),
        result_bytes: own.result_bytes.or(shared.result_bytes),
        tokens: own.tokens.or(shared.tokens),
        cost: own.cost.or(shared.cost),
        time: own.time.or(shared.time),
    }
}

async fn execute(
    run: Arc<RunState>,
    writer: Option<Arc<dyn RunWriter>>,
    entry: Name,
    input: Payload,
    timeout: Option<Duration>,
    ordinal: u32,
) -> Result<RunReport, RunError> {
    let started = Instant::now();
    let root = root_of(&run);
    let registered = run.register(root.clone());
    let _alarm = timeout.map(|limit| Alarm::set(&run, limit));
    let performed = AssertUnwindSafe(async {
        open_record(&run, writer).await.map_err(|error| Halt::Record(error.to_string()))?;
        begin(&run, &root.info, &entry, &input, ordinal).await?;
        enter(&run, entry, input, ordinal).await
    });
    // Whatever breaks, the run ends in order: what it opened is closed, and its readers see the end.
    let performed = performed.catch_unwind().await.unwrap_or_else(|_| Ok(Outcome::Failed(broke_off())));
    root.frame().instances.close().await;
    drop(registered);
    finish(&run, &root, performed, started, ordinal).await
}

fn broke_off() -> Failure {
    Failure::new(FailureKind::Panic, "the run broke off in a panic")
}

/// The code outside any agent sees everything, that in the name of an agent what the agent sees. Instances are
/// opened on demand and closed with the run.
fn root_of(run: &Arc<RunState>) -> Arc<LiveCall> {
    let named = run.options.agent.as_ref().and_then(|agent| run.shared.agent(agent));
    let plan = named.unwrap_or_else(|| run.shared.project.root.clone());
    let frame = AgentFrame {
        ceiling: Budget::ROOT,
        instances: Arc::new(Instances::new(&plan)),
        agent_state: Arc::new(AgentState::new(Conversation::default())),
        offered: plan.offered.clone(),
        context: run.options.context.clone(),
        plan,
    };
    let root = Arc::new(LiveCall::root(run.id, frame, run.cancel.clone()));
    root.frame().instances.send_notices_to(run.notices(&root.info));
    root
}

/// Lets the log write the record: that of a run which was claimed, or a new one.
async fn open_record(run: &RunState, claimed: Option<Arc<dyn RunWriter>>) -> Result<(), StoreError> {
    // An approval outside any call leaves nothing to resume.
    let store: &dyn Store = if run.options.reason.is_some() { &NoStore } else { &*run.shared.store };
    let writer = match claimed {
        Some(writer) => writer,
        None => store.begin(run.id).await?,
    };
    if let Some((digest, bundle)) = &run.shared.bundle {
        writer.keep_bundle(*digest, bundle);
    }
    run.log.write_to(writer);
    Ok(())
}

/// Records that the run begins, or that it goes on.
async fn begin(
    run: &RunState,
    root: &Arc<CallInfo>,
    entry: &Name,
    input: &Payload,
    ordinal: u32,
) -> Result<(), Halt> {
    let key = Key::root();
    let Some(replay) = &run.replay else {
        let start = run_start(run, entry, input, ordinal);
        return run.log.commit(root, &key, EventBody::RunStarted(Box::new(start)), Durability::Process).await;
    };
    continued::restore(run, root, replay);
    let changes = run.options.changes.clone();
    let limits = run.options.new_limits.clone();
    let state = Box::new(run.shared.project_state());
    let changed = changes.concern_project();
    let body = EventBody::RunResumed { changed, changes, state, build: BUILD.to_owned(), limits };
    run.log.commit(root, &key, body, Durability::Process).await?;
    for (call, settlement) in &run.options.settled {
        let body = EventBody::OutcomeSettled { settlement: settlement.clone() };
        run.log.commit(&call.call, &call.step, body, Durability::Power).await?;
    }
    continued::note_unanswered(run, replay);
    change_notices(&run.options.changes).into_iter().for_each(|text| run.notice(root, text));
    Ok(())
}

/// What a person should know about a project or a program that is not the one of the record.
fn change_notices(changes: &ProjectChanges) -> Vec<String> {
    let project = match changes.to_string() {
        _ if !changes.concern_project() => None,
        names if names.is_empty() => Some("the project has changed since this run was recorded".to_owned()),
        names => Some(format!("the project has changed since this run was recorded: {names}")),
    };
    let build = changes.earlier_build.as_ref().map(|earlier| {
        format!("this run was recorded by version {earlier} of this program, and is continued by {BUILD}")
    });
    project.into_iter().chain(build).collect()
}

/// What the record says about how a run was started.
fn run_start(run: &RunState, entry: &Name, input: &Payload, ordinal: u32) -> RunStart {
    let settings = &run.options;
    let ProjectState { parts, project, bundle, source, .. } = run.shared.project_state();
    let named = |choice: &ModelChoice| match choice {
        ModelChoice::Named(name) => Some(name.clone()),
        // A model that the program made is not data: the program that continues the run gives it again.
        ModelChoice::Given(_) => None,
    };
    RunStart {
        mode: settings.mode,
        limits: settings.limits.clone(),
        ordinal,
        build: BUILD.to_owned(),
        parts,
        project,
        bundle,
        source,
        model: settings.model.as_ref().and_then(named),
        entry_model: settings.entry_model.as_ref().and_then(named),
        fallbacks: settings.fallbacks.iter().filter_map(named).collect(),
        timeout_ms: settings.timeout.map(whole_milliseconds),
        answer_within_ms: settings.answer_within.map(whole_milliseconds),
        session: settings.session,
        is_turn: settings.agent_state.is_some(),
        context: settings.own_context.clone(),
        ..RunStart::new(entry, input.clone(), run.shared.project.pin)
    }
}

fn whole_milliseconds(limit: Duration) -> u64 {
    u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)
}

async fn enter(run: &Arc<RunState>, entry: Name, input: Payload, ordinal: u32) -> StepResult {
    if let Some(failure) = unknown_agent(run) {
        return Ok(Outcome::Failed(failure));
    }
    let engine = Embedded::new(run.clone());
    match run.options.reason.clone() {
        None => engine.perform(first_step(entry, input, ordinal)).await,
        Some(reason) => engine.perform(approval_step(entry, input, ordinal, reason)).await.map(as_value),
    }
}

/// Puts an effect of the embedding program to the gate.
fn approval_step(name: Name, payload: Payload, ordinal: u32, reason: String) -> Step {
    let kind = StepKind::Gate { reason: Some(reason) };
    let key = Key::root().child(ordinal).child("gate");
    Step { key, call: Key::root(), kind, name, payload, effect: Effect::Pure }
}

/// Makes what the gate allowed the value of a run.
fn as_value(decided: Outcome) -> Outcome {
    match decided.into_permit() {
        Ok(permit) => Outcome::Value(Output::json(permit.arguments.value().clone())),
        Err(failure) => Outcome::Failed(failure),
    }
}

fn first_step(entry: Name, input: Payload, ordinal: u32) -> Step {
    Step {
        key: Key::root().child(ordinal),
        call: Key::root(),
        kind: StepKind::Call { origin: CallOrigin::Embedder, fork: false },
        name: entry,
        payload: input,
        effect: Effect::Calls,
    }
}

/// A call in the name of an agent that does not exist.
fn unknown_agent(run: &RunState) -> Option<Failure> {
    let agent = run.options.agent.as_ref()?;
    let agents = run.shared.agent_names();
    if agents.contains(agent) {
        return None;
    }
    let failure = Failure::new(FailureKind::Unknown, format!("there is no agent `{agent}`"));
    Some(match nearest(agent, agents.iter().map(Name::as_str)) {
        Some(near) => failure.with_hint(format!("did you mean `{near}`?")),
        None => failure,
    })
}

/// Puts a call to the gate as a run would, closes what that opened, and goes no further.
async fn judge(run: &Arc<RunState>, entry: Name, input: Payload, ordinal: u32) -> Verdict {
    let root = root_of(run);
    let _registered = run.register(root.clone());
    let step = first_step(entry, input, ordinal);
    let target = match unknown_agent(run) {
        Some(failure) => Err(failure),
        None => dispatch::resolve(run, &root, &step, CallOrigin::Embedder),
    };
    let call = LiveCall::below(&root, &step, CallOrigin::Embedder, target.as_ref().ok().cloned(), None);
    let call = Arc::new(call);
    let verdict = match &target {
        Ok(target) => gate::judge(run, &call, target).await,
        Err(failure) => Verdict::refused(failure, &call),
    };
    root.frame().instances.close().await;
    verdict
}

/// Stops a run when its wall time is over.
struct Alarm(JoinHandle<()>);

impl Alarm {
    fn set(run: &Arc<RunState>, limit: Duration) -> Self {
        let run = run.clone();
        Self(tokio::spawn(async move {
            tokio::time::sleep(limit).await;
            run.halt(Halt::TimedOut);
        }))
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn finish(
    run: &RunState,
    root: &Arc<LiveCall>,
    performed: StepResult,
    started: Instant,
    ordinal: u32,
) -> Result<RunReport, RunError> {
    let mut ended = ending(run, performed);
    let usage = root.usage();
    let body = EventBody::RunFinished {
        status: ended.status,
        output: ended.output.clone(),
        error: ended.error.clone(),
        usage: usage.clone(),
        duration_ms: milliseconds(started),
    };
    if let Err(halt) = run.log.commit(&root.info, &Key::root(), body, Durability::Process).await {
        ended = RunEnd { status: status_of_halt(&halt), error: Some(halt.to_string()), ..ended };
    }
    run.log.close();
    let can_resume = can_resume(run, ordinal);
    run.shared.messages.add_run(&run.log.events());
    run.shared.running.lock().remove(&run.id);
    run.shared.broker.forget_restored(run.id);
    let messages = match run.top.get() {
        Some(agent_state) => agent_state.conversation_state.lock().await.conversation.messages().to_vec(),
        None => Vec::new(),
    };
    let report = RunReport {
        id: run.id,
        status: ended.status,
        output: ended.output,
        failure: ended.failure,
        usage,
        messages,
        nobody_to_ask: run.had_nobody_to_ask(),
        can_resume,
        changes: run.options.changes.clone(),
        duration: started.elapsed(),
        log: Some(run.log.clone()),
    };
    match ended.error {
        None => Ok(report),
        Some(message) => Err(RunError::new(report, message)),
    }
}
