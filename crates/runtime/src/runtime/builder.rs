//! Collects and checks what a runtime needs besides its project.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use llm_do_core::{
    ApprovalMode, Approver, Clock, Context, Event, Limits, LinkedPrograms, ModelChoice, Models, Name,
    NeedSpec, NoModels, NoPrices, Prices, ProjectBundle, ProjectSource, Random, SystemClock, SystemRandom,
    Usage, nearest,
};
use llm_do_secrets::{KnownSecrets, SecretFiles};
use serde_json::Value;
use tokio_util::task::TaskTracker;

use super::Runtime;
use crate::descriptors::{ContentStore, Descriptors};
use crate::project::Project;
use crate::project::agent_call_policy::AgentCallPolicy;
use crate::project::link_error::{LinkError, LinkErrors};
use crate::record::message_log::MessageLog;
use crate::record::store::{NoStore, Store};
use crate::record::subscribers::{Subscriber, Subscribers};
use crate::retry::RetryPolicy;
use crate::state::broker::Broker;
use crate::state::created::CreatedAgents;
use crate::state::shared::{DEFAULT_DEPTH, MAX_DEPTH, Shared, StillRunning};
use crate::sync::Mutex;

/// Equal failing calls after which an agent is stopped.
const DEFAULT_REPEATS: u32 = 3;
/// How long code that watches for cancellation may take to react.
const DEFAULT_GRACE: Duration = Duration::from_secs(2);

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
    source: Option<ProjectSource>,
    bundle: Option<Box<dyn FnOnce() -> ProjectBundle + Send>>,
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
    pub(super) fn new(project: Project) -> Self {
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
            source: None,
            bundle: None,
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
    pub fn provided_per_run<T: 'static>(mut self) -> Self {
        self.expected.insert(NeedSpec::typed::<T>());
        self
    }

    /// Says that runs will provide a value of this name themselves, so that it is checked at the call.
    pub fn provided_per_run_named(mut self, name: impl Into<String>) -> Self {
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

    /// Says what the project was loaded from. The record names it, so that another process can load the project again.
    pub fn project_source(mut self, source: ProjectSource) -> Self {
        self.source = Some(source);
        self
    }

    /// Gives the files that define the project to the record, so that a resume can say which of them changed. They are asked
    /// for once, if runs are recorded.
    pub fn bundle(mut self, bundle: impl FnOnce() -> ProjectBundle + Send + 'static) -> Self {
        self.bundle = Some(Box::new(bundle));
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
        let bundle = self.bundle.filter(|_| self.store.is_recording()).map(|bundle| {
            let bundle = bundle();
            (bundle.digest(), Arc::new(bundle))
        });
        let known_secrets = KnownSecrets::default();
        known_secrets.add(self.models.secrets());
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
            source: self.source,
            bundle,
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
            known_secrets,
            subscribers: self.subscribers,
            readings: Subscribers::default(),
            running: Mutex::default(),
            broker: Broker::default(),
            appending: tokio::sync::Mutex::default(),
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
