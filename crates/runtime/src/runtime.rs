//! The runtime: a project with everything that its runs share.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use llm_do_core::{
    AgentSpec, ApprovalMode, ApprovalRequest, Approver, CallableAgent, Clock, Context, Event, EventBody,
    Grant, Input, Key, Limits, LinkedPrograms, ModelChoice, Models, Name, NeedSpec, NoModels, NoPrices,
    Payload, Prices, Random, RunId, Status, SystemClock, SystemRandom, Usage, UsageByModel, nearest,
};
use llm_do_secrets::SecretFiles;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use crate::approval_controller::ApprovalBuilder;
use crate::assess::AgentCallPolicy;
use crate::broker::{Broker, GrantId};
use crate::created::CreatedAgents;
use crate::descriptors::{ContentStore, Descriptors};
use crate::link_error::{LinkError, LinkErrors};
use crate::message_log::{LoggedMessage, MessageLog};
use crate::project::{Linked, Project};
use crate::retry::RetryPolicy;
use crate::run::{Options, Run, RunBuilder, start};
use crate::session::Session;
use crate::state::RunState;
use crate::store::{NoStore, Store, StoreError};
use crate::subscribers::{Subscriber, Subscribers};
use crate::sync::Mutex;

/// Nested agents permitted where nothing else is said.
pub const DEFAULT_DEPTH: u32 = 5;
/// The most nested agents that can be permitted.
pub const MAX_DEPTH: u32 = 64;
/// Equal failing calls after which an agent is stopped.
const DEFAULT_REPEATS: u32 = 3;
/// How long code that watches for cancellation may take to react.
const DEFAULT_GRACE: Duration = Duration::from_secs(2);
/// How long a shutdown waits for blocking code that cannot be stopped.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(10);

/// Runs the agents, tools and entries of a project.
///
/// Cloning it gives another handle to the same runtime. Grants and usage live as long as it does.
#[derive(Clone)]
pub struct Runtime {
    shared: Arc<Shared>,
}

/// What all runs of a runtime share.
pub(crate) struct Shared {
    pub(crate) project: Arc<Linked>,
    pub(crate) created: CreatedAgents,
    pub(crate) context: Arc<Context>,
    pub(crate) models: Arc<dyn Models>,
    pub(crate) model: Option<ModelChoice>,
    pub(crate) entry_model: Option<ModelChoice>,
    pub(crate) prices: Arc<dyn Prices>,
    /// Where texts lie that are too long for a conversation.
    pub(crate) contents: ContentStore,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) approver_limit: Option<Duration>,
    pub(crate) mode: ApprovalMode,
    pub(crate) agent_calls: AgentCallPolicy,
    pub(crate) denials_end_runs: bool,
    pub(crate) limits: Limits,
    pub(crate) max_depth: u32,
    pub(crate) repeat_limit: u32,
    pub(crate) retry: RetryPolicy,
    pub(crate) grace: Duration,
    pub(crate) root: Option<PathBuf>,
    pub(crate) secret_files: SecretFiles,
    pub(crate) subscribers: Vec<Subscriber>,
    pub(crate) readings: Subscribers,
    /// Runs in progress: none of them can be resumed.
    pub(crate) running: Mutex<HashMap<RunId, Weak<RunState>>>,
    pub(crate) broker: Broker,
    pub(crate) usage: Mutex<UsageByModel>,
    pub(crate) messages: MessageLog,
    pub(crate) tasks: TaskTracker,
    pub(crate) still_running: StillRunning,
}

impl Shared {
    /// A version 7 id: the time first, so that ids sort by age.
    pub(crate) fn new_run_id(&self) -> RunId {
        let mut random = [0; 10];
        let bits = self.random.bits().to_le_bytes();
        random[..8].copy_from_slice(&bits);
        random[8..].copy_from_slice(&self.random.bits().to_le_bytes()[..2]);
        let milliseconds = u64::try_from(self.clock.now().as_millisecond()).unwrap_or_default();
        RunId(uuid::Builder::from_unix_timestamp_millis(milliseconds, &random).into_uuid())
    }
}

impl Runtime {
    /// Begins a runtime for a project.
    pub fn builder(project: Project) -> RuntimeBuilder {
        RuntimeBuilder::new(project)
    }

    /// Runs an agent, tool or entry by name.
    pub fn run(&self, name: impl Into<Name>, input: impl Into<Input>) -> RunBuilder {
        RunBuilder::new(self, name.into(), input.into())
    }

    /// Asks for the approval of an effect that the embedding program is about to have, outside any call.
    pub fn approve(&self, name: impl Into<Name>, payload: impl Into<Value>) -> ApprovalBuilder {
        ApprovalBuilder::new(self.shared.clone(), name.into(), Payload::new(payload.into()))
    }

    /// Begins a conversation of several turns with memory.
    pub fn session(&self, name: impl Into<Name>) -> Session {
        Session::new(self.clone(), name.into())
    }

    /// Goes on with a recorded run, in its own approval mode or a stricter one, and within its own limits. What is
    /// recorded as done is not done again. The approver, models and context are those of this runtime.
    pub async fn resume(&self, run: RunId) -> Result<Run, StoreError> {
        let events = self.shared.store.read(run).await?;
        let begun = events.iter().find_map(|event| match &event.body {
            EventBody::RunStarted { entry, input, mode, limits, ordinal, .. } => {
                let mode = Some(stricter(*mode, self.shared.mode));
                // The root acts in the name of nobody, or of the agent that the call was made for.
                let agent = Some(event.call.agent.clone()).filter(|agent| !agent.is_empty());
                let (limits, ordinal) = (limits.clone(), *ordinal);
                let options = Options { mode, limits, ordinal, agent, ..Options::default() };
                Some((entry.clone(), input.clone(), options))
            }
            _ => None,
        });
        let unsaid = || StoreError(format!("the record of run {run} does not say what was run"));
        let (entry, input, options) = begun.ok_or_else(unsaid)?;
        if let Some(status) = ended(&events) {
            return Err(StoreError(format!(
                "run {run} has ended ({}): there is nothing to resume",
                status.as_str()
            )));
        }
        if self.shared.running.lock().contains_key(&run) {
            return Err(StoreError(format!("run {run} is still running")));
        }
        Ok(start(self.shared.clone(), run, entry, input, options, events))
    }

    /// Returns a context value that was provided to the runtime.
    pub fn provided<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.shared.context.get()
    }

    /// Returns the definitions of all agents that can be called now, those included that were added.
    pub fn agents(&self) -> Vec<CallableAgent> {
        self.shared.callable_agents(|_| true)
    }

    /// Adds an agent, which can be called by name at once, or puts it in the place of a generated one. A call
    /// that runs keeps the agent with which it began.
    pub fn add_agent(&self, spec: AgentSpec) -> Result<(), LinkErrors> {
        self.shared.add_agent(spec, None)
    }

    /// Lists the grants that people gave.
    pub fn grants(&self) -> Vec<(GrantId, Grant)> {
        self.shared.broker.grants()
    }

    /// Takes a grant back; says whether it was there.
    pub fn revoke(&self, grant: GrantId) -> bool {
        self.shared.broker.revoke(grant)
    }

    /// Cancels one call of a run and everything below it; says whether it was running. The rest of the run goes on.
    ///
    /// The caller, a model or code, reads that a person cancelled it ([`FailureKind::Cancelled`]), once everything below
    /// it has ended. Where this returns `true`, the call gives nothing else, even if it was just about to. A question that
    /// it waited for is withdrawn. What it had done is not undone. Cancelling the call that the run was started for
    /// cancels the run, as [`Run::cancel`] does.
    ///
    /// [`FailureKind::Cancelled`]: llm_do_core::FailureKind::Cancelled
    pub fn cancel_call(&self, run: RunId, call: &Key) -> bool {
        let running = self.shared.running.lock().get(&run).and_then(Weak::upgrade);
        running.is_some_and(|run| run.cancel_call(call))
    }

    /// Lists the approval requests that wait for an answer, oldest first.
    pub fn open_requests(&self) -> Vec<Arc<ApprovalRequest>> {
        self.shared.broker.open_requests()
    }

    /// Returns what all runs used, per model.
    pub fn usage(&self) -> UsageByModel {
        self.shared.usage.lock().clone()
    }

    /// Returns the messages of all agent calls of runs that have ended, nested calls included, oldest first. Empty
    /// unless the runtime was built with [`keep_messages`](RuntimeBuilder::keep_messages).
    pub fn messages(&self) -> Vec<LoggedMessage> {
        self.shared.messages.list()
    }

    /// Lists the paths of blocking tools that outlived their calls and still run.
    pub fn still_running(&self) -> Vec<String> {
        self.shared.still_running.list()
    }

    /// Waits until the readers of all runs that have ended have read everything. A run in progress is waited for.
    pub async fn readers_done(&self) {
        self.shared.readings.done().await;
    }

    /// Waits until every run has ended, and for blocking code as long as is reasonable.
    pub async fn shutdown(self) {
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        let _ = tokio::time::timeout(SHUTDOWN_LIMIT, self.shared.still_running.none()).await;
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

fn stricter(one: ApprovalMode, other: ApprovalMode) -> ApprovalMode {
    let strictness = |mode| match mode {
        ApprovalMode::ApproveAll => 0,
        ApprovalMode::Prompt => 1,
        ApprovalMode::RejectAll => 2,
    };
    if strictness(one) >= strictness(other) { one } else { other }
}

/// How a run ended, where it ended for good.
fn ended(events: &[Arc<Event>]) -> Option<Status> {
    let last = events.iter().rev().find_map(|event| match &event.body {
        EventBody::RunFinished { status, .. } => Some(Some(*status)),
        EventBody::RunResumed { .. } => Some(None),
        _ => None,
    });
    let is_final =
        |status: &Status| matches!(status, Status::Done | Status::Failed | Status::Denied | Status::Output);
    last.flatten().filter(is_final)
}

/// Collects what a runtime needs besides its project.
#[must_use]
pub struct RuntimeBuilder {
    project: Project,
    context: Context,
    expected: HashSet<NeedSpec>,
    models: Arc<dyn Models>,
    model: Option<ModelChoice>,
    entry_model: Option<ModelChoice>,
    spill: Option<PathBuf>,
    prices: Arc<dyn Prices>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    store: Arc<dyn Store>,
    approver: Option<Arc<dyn Approver>>,
    approver_limit: Option<Duration>,
    mode: ApprovalMode,
    agent_calls: AgentCallPolicy,
    denials_end_runs: bool,
    limits: Limits,
    repeat_limit: u32,
    retry: RetryPolicy,
    grace: Duration,
    root: Option<PathBuf>,
    secret_files: SecretFiles,
    subscribers: Vec<Subscriber>,
    kept_messages: usize,
}

/// The context values that every agent call has of its own.
const OWN_NEEDS: [fn() -> NeedSpec; 2] = [NeedSpec::typed::<Descriptors>, NeedSpec::typed::<LinkedPrograms>];

impl RuntimeBuilder {
    fn new(project: Project) -> Self {
        let linked = project.linked().clone();
        Self {
            project,
            context: linked.context.clone(),
            expected: HashSet::new(),
            models: Arc::new(NoModels),
            model: None,
            entry_model: None,
            prices: Arc::new(NoPrices),
            spill: None,
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
            store: Arc::new(NoStore),
            approver: None,
            approver_limit: None,
            mode: ApprovalMode::default(),
            agent_calls: AgentCallPolicy::default(),
            denials_end_runs: false,
            limits: Limits::default(),
            repeat_limit: DEFAULT_REPEATS,
            retry: RetryPolicy::default(),
            grace: DEFAULT_GRACE,
            root: linked.directory.clone(),
            secret_files: SecretFiles::default(),
            subscribers: Vec::new(),
            kept_messages: 0,
        }
    }

    /// Provides a context value by its type.
    pub fn provide<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.context = self.context.with(value);
        self
    }

    /// Provides a context value by name, for tools that are not written in Rust.
    pub fn provide_named(mut self, name: impl Into<Name>, value: Value) -> Self {
        self.context = self.context.with_named(name, value);
        self
    }

    /// Says that runs will provide a value of this type themselves, so that it is checked at the call.
    pub fn expect<T: 'static>(mut self) -> Self {
        self.expected.insert(NeedSpec::typed::<T>());
        self
    }

    /// Says that runs will provide a value of this name themselves, so that it is checked at the call.
    pub fn expect_named(mut self, name: impl Into<String>) -> Self {
        self.expected.insert(NeedSpec::named(name));
        self
    }

    /// Sets the catalog in which models are found by name.
    pub fn models(mut self, models: impl Models + 'static) -> Self {
        self.models = Arc::new(models);
        self
    }

    /// Sets the model of agents that name none.
    pub fn model(mut self, model: impl Into<ModelChoice>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the model of the agent that is run, even if it names another one.
    pub fn entry_model(mut self, model: impl Into<ModelChoice>) -> Self {
        self.entry_model = Some(model.into());
        self
    }

    /// Sets the directory for texts that are too long to be kept in memory; by default that for temporary files.
    pub fn spill_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.spill = Some(directory.into());
        self
    }

    /// Sets what models cost.
    pub fn prices(mut self, prices: impl Prices + 'static) -> Self {
        self.prices = Arc::new(prices);
        self
    }

    /// Sets the clock that dates events.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the source of chance.
    pub fn random(mut self, random: impl Random + 'static) -> Self {
        self.random = Arc::new(random);
        self
    }

    /// Sets where records are kept, so that runs can be resumed.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = store;
        self
    }

    /// Sets who answers approval requests. Without one, what must ask is denied.
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Sets how long a request may wait for its answer before it is denied.
    pub fn approver_time_limit(mut self, limit: Duration) -> Self {
        self.approver_limit = Some(limit);
        self
    }

    /// Sets how runs treat what must ask.
    pub fn approval_mode(mut self, mode: ApprovalMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets when calls of agents must ask.
    pub fn agent_calls(mut self, policy: AgentCallPolicy) -> Self {
        self.agent_calls = policy;
        self
    }

    /// Ends a run at its first denial, instead of answering the caller with it.
    pub fn denials_end_runs(mut self, end: bool) -> Self {
        self.denials_end_runs = end;
        self
    }

    /// Sets the limits of each run.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how many equal failing calls an agent may make before it is stopped.
    pub fn repeat_limit(mut self, limit: u32) -> Self {
        self.repeat_limit = limit.max(1);
        self
    }

    /// Sets how often, and after what waits, a provider that failed is asked again.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Sets how long code that watches for cancellation may take to react.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the project's root, below which agents and tools may attach files.
    pub fn root(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// Sets which files below the root are secret: a model or code attaches one only after somebody agreed to it.
    pub fn secret_files(mut self, secret_files: SecretFiles) -> Self {
        self.secret_files = secret_files;
        self
    }

    /// Reads the events of all runs, in a task per run.
    pub fn on_event(mut self, subscriber: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.subscribers.push(Arc::new(subscriber));
        self
    }

    /// Keeps the latest messages of all agent calls, at most this many, for [`Runtime::messages`]. A runtime keeps none
    /// otherwise: it may live long.
    pub fn keep_messages(mut self, max: usize) -> Self {
        self.kept_messages = max;
        self
    }

    /// Checks what can be checked before the first run.
    pub fn build(self) -> Result<Runtime, LinkErrors> {
        let mut problems = self.missing_needs();
        problems.extend(self.bad_limits());
        problems.extend(self.unknown_overrides());
        if !problems.is_empty() {
            return Err(LinkErrors(problems));
        }
        let shared = Shared {
            project: self.project.linked().clone(),
            created: CreatedAgents::default(),
            context: Arc::new(self.context),
            models: self.models,
            model: self.model,
            entry_model: self.entry_model,
            prices: self.prices,
            contents: ContentStore::new(self.spill.unwrap_or_else(std::env::temp_dir)),
            clock: self.clock,
            random: self.random,
            store: self.store,
            approver: self.approver,
            approver_limit: self.approver_limit,
            mode: self.mode,
            agent_calls: self.agent_calls,
            denials_end_runs: self.denials_end_runs,
            max_depth: self.limits.depth.unwrap_or(DEFAULT_DEPTH),
            limits: self.limits,
            repeat_limit: self.repeat_limit,
            retry: self.retry,
            grace: self.grace,
            root: self.root,
            secret_files: self.secret_files,
            subscribers: self.subscribers,
            readings: Subscribers::default(),
            running: Mutex::default(),
            broker: Broker::default(),
            usage: Mutex::default(),
            messages: MessageLog::new(self.kept_messages),
            tasks: TaskTracker::new(),
            still_running: StillRunning::default(),
        };
        Ok(Runtime { shared: Arc::new(shared) })
    }

    fn missing_needs(&self) -> Vec<LinkError> {
        let linked = self.project.linked();
        let plans = linked.agents.values().chain([&linked.root]);
        // A tool that several agents list is reported once.
        let definitions: BTreeMap<_, _> = plans
            .flat_map(|plan| plan.targets())
            .map(|target| (target.definition.name.clone(), target.definition.clone()))
            .collect();
        let mut problems = Vec::new();
        for definition in definitions.values() {
            for need in &definition.needs {
                let is_own = OWN_NEEDS.iter().any(|own| own() == *need);
                if !is_own && !self.context.meets(need) && !self.expected.contains(need) {
                    let provided = self.context.provided();
                    problems.push(LinkError::MissingNeed {
                        tool: definition.name.clone(),
                        need: need.clone(),
                        provided,
                    });
                }
            }
        }
        problems
    }

    fn unknown_overrides(&self) -> Vec<LinkError> {
        let agents = &self.project.linked().agents;
        let names = self.agent_calls.overrides.iter().map(|special| &special.agent);
        let unknown =
            names.filter(|name| !agents.contains_key(*name)).map(|name| LinkError::UnknownOverride {
                name: name.clone(),
                nearest: nearest(name, agents.keys().map(Name::as_str)).map(str::to_owned),
            });
        unknown.collect()
    }

    fn bad_limits(&self) -> Vec<LinkError> {
        let mut problems = Vec::new();
        if let Some(depth) = self.limits.depth.filter(|depth| *depth == 0 || *depth > MAX_DEPTH) {
            let problem = format!("the depth {depth} is not between 1 and {MAX_DEPTH}");
            let hint = format!("nested agents use memory and money; {DEFAULT_DEPTH} is the default");
            problems.push(LinkError::BadLimit { problem, hint });
        }
        problems.extend(self.unpriced_limits());
        problems
    }

    /// A cost limit can be kept only where the price is known.
    fn unpriced_limits(&self) -> Vec<LinkError> {
        let linked = self.project.linked();
        let fallback = self.model.as_ref().or(linked.model.as_ref()).map(ModelChoice::name);
        let agents = linked.agents.values().filter_map(|plan| plan.spec.as_ref());
        let limited = agents.filter(|spec| self.limits.cost.is_some() || spec.limits.cost.is_some());
        let unpriced = limited.filter_map(|spec| {
            let model = spec.model.as_ref().map(ModelChoice::name).or(fallback)?;
            let sample = Usage { input: 1_000, output: 1_000, requests: 1, ..Usage::default() };
            self.prices.price(model, &sample).is_none().then(|| LinkError::BadLimit {
                problem: format!(
                    "the cost of agent `{}` is limited and the price of its model `{model}` is unknown",
                    spec.name
                ),
                hint: "give a price for the model, or limit tokens instead".to_owned(),
            })
        });
        unpriced.collect()
    }
}

/// Blocking code. It cannot be stopped, only listed once it has outlived its call, and waited for.
#[derive(Debug, Default)]
pub(crate) struct StillRunning {
    state: Arc<StillRunningState>,
}

#[derive(Debug, Default)]
struct StillRunningState {
    pieces: Mutex<BTreeMap<u64, Piece>>,
    changed: tokio::sync::Notify,
}

#[derive(Debug)]
struct Piece {
    path: String,
    left_behind: bool,
}

impl StillRunning {
    /// Registers a piece of blocking code: one guard for the code, one for the call that waits for it.
    pub(crate) fn begin(&self, path: String) -> (CodeGuard, CallGuard) {
        let mut pieces = self.state.pieces.lock();
        let id = pieces.keys().next_back().map_or(0, |last| last + 1);
        pieces.insert(id, Piece { path, left_behind: false });
        let state = &self.state;
        (CodeGuard { state: state.clone(), id }, CallGuard { state: state.clone(), id })
    }

    fn list(&self) -> Vec<String> {
        let pieces = self.state.pieces.lock();
        pieces.values().filter(|piece| piece.left_behind).map(|piece| piece.path.clone()).collect()
    }

    async fn none(&self) {
        loop {
            let changed = self.state.changed.notified();
            if self.state.pieces.lock().is_empty() {
                return;
            }
            changed.await;
        }
    }
}

/// Lives as long as the code runs.
pub(crate) struct CodeGuard {
    state: Arc<StillRunningState>,
    id: u64,
}

impl Drop for CodeGuard {
    fn drop(&mut self) {
        self.state.pieces.lock().remove(&self.id);
        self.state.changed.notify_waiters();
    }
}

/// Lives as long as the call waits for the code.
pub(crate) struct CallGuard {
    state: Arc<StillRunningState>,
    id: u64,
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        if let Some(piece) = self.state.pieces.lock().get_mut(&self.id) {
            piece.left_behind = true;
        }
    }
}
