//! What a tool sees of its call, and what it may do through it.
//!
//! A [`CallContext`] is owned: tool code may keep it, clone it and use it in parallel. Everything it does
//! goes through a [`Caller`], which the runtime implements, and so through the gate.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    Access, AgentSpec, Attachment, Context, Failure, FailureKind, Input, Key, Message, Name, NoticeSink,
    Outcome, Output, Payload, Remaining, RunId, ToolDefinition, ToolReply, Trace, UsageByModel,
    input_attachments, nearest,
};

/// Who a call is: written on each of its events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallInfo {
    /// The run.
    pub run: RunId,
    /// The call's id: its key. Empty for the root of a run.
    #[serde(rename = "call")]
    pub id: Key,
    /// The calling call.
    #[serde(default)]
    pub parent: Option<Key>,
    /// How many agents are on the path: 0 for code outside any agent.
    pub depth: u32,
    /// The chain of callers, such as `main > organize() > namer`.
    pub path: Arc<str>,
    /// The agent in whose name it acts.
    pub agent: Name,
}

/// What tool code can do through its call. The runtime implements it.
///
/// No method returns a halt: a call that must not go on does not return, and its tool is dropped.
pub trait Caller: Send + Sync {
    /// Calls a tool or agent by name.
    fn call(self: Arc<Self>, name: Name, input: Payload) -> BoxFuture<'static, Outcome>;
    /// Puts an inner effect to the gate.
    fn approve(self: Arc<Self>, effect: InnerEffect) -> BoxFuture<'static, Outcome>;
    /// Takes a recorded sample of the clock or of chance.
    fn sample(self: Arc<Self>, sample: Sample) -> BoxFuture<'static, Outcome>;
    /// Runs blocking code where it harms nobody.
    fn blocking(self: Arc<Self>, work: BlockingWork) -> BoxFuture<'static, ToolReply>;
    /// Says something to whoever watches.
    fn say(&self, remark: Remark);
    /// Returns a way to tell people something in the name of the run, also after the call has ended.
    fn run_notices(&self) -> NoticeSink {
        NoticeSink::none()
    }
    /// Looks at the call as it is now.
    fn inspect(&self) -> Inspection;
    /// Returns the calls of the whole run so far.
    fn trace(&self) -> Trace {
        Trace::default()
    }
    /// Returns what the whole run used so far.
    fn run_usage(&self) -> UsageByModel {
        UsageByModel::default()
    }
    /// Describes the tools that the code of the call may call; agents are in [`agents`](Self::agents).
    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        Vec::new()
    }
    /// Calls the agent in whose name the call acts once more for each prompt, each with the conversation so far.
    fn fork(self: Arc<Self>, prompts: Vec<String>) -> BoxFuture<'static, Result<Vec<Outcome>, Failure>> {
        let failure =
            Failure::new(FailureKind::Tool, format!("{} children cannot be forked here", prompts.len()));
        Box::pin(std::future::ready(Err(failure)))
    }
    /// Returns what the agent was given in whose name the call acts.
    fn agent_input(&self) -> Option<Payload> {
        None
    }
    /// Describes the agents that the code of the call may call.
    fn agents(&self) -> Vec<CallableAgent> {
        Vec::new()
    }
    /// Returns an agent that the code of the call may call, or why it may not.
    fn find_agent(&self, name: &Name) -> Result<CallableAgent, Failure> {
        let agents = self.agents();
        let found = agents.iter().find(|agent| agent.definition.name == *name);
        found.cloned().ok_or_else(|| unknown_agent(name, &agents))
    }
    /// What the agent in whose name the call acts may do: the lesser of its own access and its caller's.
    fn access(&self) -> Option<Access> {
        None
    }
    /// What is left of the budgets that bind the call.
    fn remaining(&self) -> Remaining {
        self.inspect().remaining
    }
    /// Says why the agent in whose name the call acts could not go on with another model, if that is so.
    fn check_model(&self, _name: &Name) -> Result<(), Failure> {
        Ok(())
    }
    /// Says why an agent could not be added from here, if that is so.
    fn check_agent(&self, _spec: &AgentSpec) -> Result<(), Failure> {
        Err(Failure::new(FailureKind::Tool, "no agent can be added from here"))
    }
    /// Adds an agent that can be called at once, or puts it in the place of a generated one.
    fn add_agent(&self, spec: AgentSpec) -> Result<(), Failure> {
        self.check_agent(&spec)
    }
}

/// Blocking code of a sync tool.
pub type BlockingWork = Box<dyn FnOnce() -> ToolReply + Send>;

/// An effect inside a tool that wants its own approval.
#[derive(Debug, Clone, PartialEq)]
pub struct InnerEffect {
    /// The name of the effect, such as `deploy.push`.
    pub name: Name,
    /// What it would do, exactly.
    pub payload: Payload,
    /// Why.
    pub reason: String,
}

/// A value from outside that is recorded, so that code that runs again sees the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sample {
    /// Milliseconds since 1970.
    Clock,
    /// 64 random bits.
    Random,
}

/// Something said while a call runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remark {
    /// How far the work is; seen live, not recorded.
    Progress(String),
    /// Something a person should know.
    Notice(String),
    /// A line of the call's error log.
    Stderr(String),
}

/// A look at a call.
#[derive(Debug, Clone, Default)]
pub struct Inspection {
    /// The messages of the agent's conversation so far.
    pub messages: Vec<Arc<Message>>,
    /// What the call and everything below it used.
    pub usage: UsageByModel,
    /// What is left of the budget.
    pub remaining: Remaining,
    /// What the call may name.
    pub callables: Vec<Name>,
    /// The calls made below this one so far.
    pub trace: Trace,
    /// The lines that the agent's call and everything below it wrote to its error log.
    pub stderr: Vec<String>,
}

/// An agent that can be called.
#[derive(Debug, Clone)]
pub struct CallableAgent {
    /// Its definition, as a tool.
    pub definition: Arc<ToolDefinition>,
    /// Whether its input has a schema of its own, and is not just a text.
    pub has_own_input: bool,
    /// Whether an agent or code created it.
    pub generated: bool,
}

/// Explains that there is no agent of a name, with the nearest name and all others.
pub fn unknown_agent(name: &Name, agents: &[CallableAgent]) -> Failure {
    let names: Vec<&str> = agents.iter().map(|agent| agent.definition.name.as_str()).collect();
    let failure = Failure::new(FailureKind::Unknown, format!("there is no agent `{name}` to call here"));
    match nearest(name, names.iter().copied()) {
        Some(near) => failure.with_hint(format!("did you mean `{near}`? there are: {}", names.join(", "))),
        None if names.is_empty() => failure.with_hint("no agent can be called from here"),
        None => failure.with_hint(format!("there are: {}", names.join(", "))),
    }
}

/// What a tool sees of its call.
#[derive(Clone)]
pub struct CallContext(Arc<CallContextParts>);

/// What a [`CallContext`] is made of.
pub struct CallContextParts {
    /// Who the call is.
    pub info: Arc<CallInfo>,
    /// What it was given.
    pub input: Payload,
    /// The agent in whose name it acts, where there is one.
    pub agent: Option<Arc<AgentSpec>>,
    /// The name of that agent's model, where one is resolved.
    pub model: Option<Name>,
    /// The context values.
    pub context: Arc<Context>,
    /// The signal to stop.
    pub cancellation: Cancellation,
    /// The way back into the runtime.
    pub caller: Arc<dyn Caller>,
}

impl CallContext {
    /// Puts a context together.
    pub fn new(parts: CallContextParts) -> Self {
        Self(Arc::new(parts))
    }

    /// Returns who the call is.
    pub fn info(&self) -> &CallInfo {
        &self.0.info
    }

    /// Returns the run's id.
    pub fn run_id(&self) -> RunId {
        self.0.info.run
    }

    /// Returns the call's key: stable over a resume, so it serves as an idempotency key.
    pub fn key(&self) -> &Key {
        &self.0.info.id
    }

    /// Returns the chain of callers.
    pub fn path(&self) -> &str {
        &self.0.info.path
    }

    /// Returns how many agents are on the path.
    pub fn depth(&self) -> u32 {
        self.0.info.depth
    }

    /// Returns the agent in whose name the call acts.
    pub fn agent(&self) -> Option<&AgentSpec> {
        self.0.agent.as_deref()
    }

    /// Returns what that agent may do here: the lesser of its own access and its caller's.
    pub fn access(&self) -> Option<Access> {
        self.0.caller.access()
    }

    /// Returns what is left of the budgets that bind the call.
    pub fn remaining(&self) -> Remaining {
        self.0.caller.remaining()
    }

    /// Returns the model of that agent.
    pub fn model(&self) -> Option<&Name> {
        self.0.model.as_ref()
    }

    /// Returns what the call was given.
    pub fn input(&self) -> &Payload {
        &self.0.input
    }

    /// Returns the attachments of the input.
    pub fn attachments(&self) -> Vec<Attachment> {
        input_attachments(&self.0.input)
    }

    /// Returns the context values.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// Calls a tool or an agent by name, through the same gate and into the same trace.
    pub async fn call(&self, name: impl Into<Name>, input: impl Into<Input>) -> Result<Output, Failure> {
        let payload = input.into().into_payload();
        self.0.caller.clone().call(name.into(), payload).await.into_output()
    }

    /// Forks the agent in whose name the call acts: each child has its conversation up to this call, and a prompt of
    /// its own. They run side by side; one that fails leaves the others alone.
    pub async fn fork(
        &self,
        prompts: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Vec<Result<Output, Failure>>, Failure> {
        let prompts = prompts.into_iter().map(Into::into).collect();
        let outcomes = self.0.caller.clone().fork(prompts).await?;
        Ok(outcomes.into_iter().map(Outcome::into_output).collect())
    }

    /// Returns the lines that were written so far to the error log of the call and of everything below it.
    pub fn stderr_log(&self) -> Vec<String> {
        self.0.caller.inspect().stderr
    }

    /// Puts an inner effect to the gate before doing it. Returns only when it is allowed, with exactly what
    /// was allowed: a person may have edited it.
    pub async fn approve(
        &self,
        name: impl Into<Name>,
        payload: impl Into<Value>,
        reason: impl Into<String>,
    ) -> Result<Payload, Failure> {
        let effect =
            InnerEffect { name: name.into(), payload: Payload::new(payload.into()), reason: reason.into() };
        self.0.caller.clone().approve(effect).await.into_permit().map(|permit| permit.arguments.clone())
    }

    /// Returns the time in milliseconds since 1970, recorded so that a resumed call sees the same.
    pub async fn now(&self) -> u64 {
        self.0.caller.clone().sample(Sample::Clock).await.into_sample()
    }

    /// Returns random bits, recorded so that a resumed call sees the same.
    pub async fn random(&self) -> u64 {
        self.0.caller.clone().sample(Sample::Random).await.into_sample()
    }

    /// Runs blocking code on threads of its own. It cannot be stopped: past its time limit the call is
    /// answered with an error while the code runs on, listed as still running.
    pub async fn blocking(&self, work: impl FnOnce() -> ToolReply + Send + 'static) -> ToolReply {
        self.0.caller.clone().blocking(Box::new(work)).await
    }

    /// Returns the signal to stop. Holding it gives the call a grace time when it is cancelled.
    pub fn cancellation(&self) -> Cancellation {
        self.0.cancellation.observe()
    }

    /// Returns the way to report progress.
    pub fn progress(&self) -> Progress {
        Progress(self.clone())
    }

    /// Tells people something.
    pub fn notice(&self, text: impl Into<String>) {
        self.0.caller.say(Remark::Notice(text.into()));
    }

    /// Returns a way to tell people something in the name of the run, also after the call has ended.
    pub fn run_notices(&self) -> NoticeSink {
        self.0.caller.run_notices()
    }

    /// Writes a line to the call's error log.
    pub fn stderr(&self, text: impl Into<String>) {
        self.0.caller.say(Remark::Stderr(text.into()));
    }

    /// Looks at the call as it is now: messages, usage, budget, callables, trace.
    pub fn inspect(&self) -> Inspection {
        self.0.caller.inspect()
    }

    /// Returns the calls of the whole run so far, this one included. [`inspect`](Self::inspect) has those below it.
    pub fn trace(&self) -> Trace {
        self.0.caller.trace()
    }

    /// Returns what the whole run used so far, per model. [`inspect`](Self::inspect) has what this call used.
    pub fn run_usage(&self) -> UsageByModel {
        self.0.caller.run_usage()
    }

    /// Returns what the agent was given in whose name the call acts, where there is one.
    pub fn agent_input(&self) -> Option<Payload> {
        self.0.caller.agent_input()
    }

    /// Describes the tools that the code of the call may call.
    pub fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        self.0.caller.tools()
    }

    /// Describes the agents that the code of the call may call.
    pub fn agents(&self) -> Vec<CallableAgent> {
        self.0.caller.agents()
    }

    /// Returns an agent that the code of the call may call, or why it may not.
    pub fn find_agent(&self, name: &Name) -> Result<CallableAgent, Failure> {
        self.0.caller.find_agent(name)
    }

    /// Says why the agent in whose name the call acts could not go on with another model: what its file does not
    /// allow, or a model that cannot be asked.
    pub fn check_model(&self, name: &Name) -> Result<(), Failure> {
        self.0.caller.check_model(name)
    }

    /// Says why an agent could not be added from here: a name that is taken, or more than the agent holds in
    /// whose name the call acts.
    pub fn check_agent(&self, spec: &AgentSpec) -> Result<(), Failure> {
        self.0.caller.check_agent(spec)
    }

    /// Adds an agent, which can be called by name at once, or puts it in the place of a generated one. It is
    /// given no more than the agent holds in whose name the call acts.
    pub fn add_agent(&self, spec: AgentSpec) -> Result<(), Failure> {
        self.0.caller.add_agent(spec)
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext").field("info", &self.0.info).finish_non_exhaustive()
    }
}

/// Reports how far a call is.
#[derive(Debug, Clone)]
pub struct Progress(CallContext);

impl Progress {
    /// Reports progress in words.
    pub fn report(&self, text: impl Into<String>) {
        self.0.0.caller.say(Remark::Progress(text.into()));
    }
}

/// The signal that a call shall stop.
#[derive(Debug, Clone)]
pub struct Cancellation {
    token: CancellationToken,
    observed: Arc<AtomicBool>,
}

impl Cancellation {
    /// Wraps a token.
    pub fn new(token: CancellationToken) -> Self {
        Self { token, observed: Arc::default() }
    }

    /// Returns whether the call shall stop.
    pub fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits until the call shall stop.
    pub async fn cancelled(&self) {
        self.token.cancelled().await;
    }

    /// Returns whether tool code holds the signal, and so deserves time to react to it.
    pub fn is_observed(&self) -> bool {
        self.observed.load(Ordering::Relaxed)
    }

    fn observe(&self) -> Self {
        self.observed.store(true, Ordering::Relaxed);
        self.clone()
    }
}
