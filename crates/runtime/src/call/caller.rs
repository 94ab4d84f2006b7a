//! What tool code holds: the way back into the runtime.
//!
//! An inner call is a task of the runtime. Tool code that drops its future cancels it, and its clean-up is
//! awaited before the tool's own call ends. A halt never reaches tool code: the call does not return, and
//! the tool is dropped.

use std::future::pending;
use std::sync::{Arc, OnceLock};

use futures::future::{BoxFuture, join_all};
use llm_do_core::{
    Access, AgentSpec, BlockingWork, CallContext, CallContextParts, CallOrigin, CallableAgent, Caller,
    Cancellation, Delta, Effect, Event, EventBody, Failure, FailureKind, Halt, InnerEffect, Inspection, Key,
    ModelError, Name, NoticeSink, Outcome, Payload, Remaining, Remark, Sample, Step, StepKind, StepResult,
    Tool, ToolDefinition, ToolError, ToolReply, Trace, Tune, UsageByModel,
};
use llm_do_secrets::StreamMask;
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::call::unresolved;
use crate::model::ask::{check_compatible, check_price};
use crate::project::plan::{TargetKind, ToolSource};
use crate::state::control;
use crate::state::created::{Creator, refused};
use crate::state::fork;
use crate::state::in_flight::Leaf;
use crate::state::instances::Opener;
use crate::state::live::{AgentFrame, LiveCall};
use crate::state::run_state::RunState;
use crate::state::scope::RunScope;
use crate::state::shared::Shared;
use crate::state::stopwatch::Activity;
use crate::sync::Mutex;

/// The tool that a call is of, opening its toolset where need be.
pub(crate) async fn tool_of(run: &RunState, call: &LiveCall) -> Result<Arc<dyn Tool>, Failure> {
    let frame = call.callers_frame();
    match call.target.as_ref().map(|target| &target.kind) {
        Some(TargetKind::Tool(ToolSource::Shared(tool)) | TargetKind::Entry(tool)) => Ok(tool.clone()),
        Some(TargetKind::Tool(ToolSource::Slot { slot, definition })) => {
            let opener = opener(run, call, opener_of(call), frame);
            frame.instances.tool(*slot, definition, &opener).await
        }
        Some(TargetKind::Agent) | None => {
            Err(Failure::new(FailureKind::Unknown, format!("`{}` is not a tool", call.name)))
        }
    }
}

/// For whom and for how long a toolset is opened: in the name of one call, while another waits for it.
pub(crate) fn opener<'a>(
    run: &'a RunState,
    waiting: &'a LiveCall,
    owner: &'a LiveCall,
    frame: &'a AgentFrame,
) -> Opener<'a> {
    Opener {
        plan: &frame.plan,
        call: &owner.info,
        context: &frame.context,
        cancel: &waiting.cancel,
        tasks: &run.shared.tasks,
    }
}

/// The call that a toolset is opened for: the agent, or the root.
fn opener_of(call: &LiveCall) -> &LiveCall {
    let mut opener = call;
    while let Some(parent) = &opener.parent {
        if matches!(opener.target.as_ref().map(|target| &target.kind), Some(TargetKind::Agent)) {
            break;
        }
        opener = parent;
    }
    opener
}

/// The root of the run that a call belongs to.
fn root_of(call: &LiveCall) -> &LiveCall {
    let mut root = call;
    while let Some(parent) = &root.parent {
        root = parent;
    }
    root
}

/// What the agent was given in whose name a call acts.
fn agent_input_of(call: &LiveCall) -> Option<Payload> {
    let agent = opener_of(call);
    let is_agent = matches!(agent.target.as_ref().map(|target| &target.kind), Some(TargetKind::Agent));
    is_agent.then(|| agent.input.clone())
}

fn context(
    call: &LiveCall,
    input: &Payload,
    cancellation: Cancellation,
    caller: Arc<dyn Caller>,
) -> CallContext {
    let frame = call.frame();
    CallContext::new(CallContextParts {
        info: call.info.clone(),
        input: input.clone(),
        agent: frame.plan.spec.clone(),
        model: frame.agent_state.model.lock().clone(),
        context: frame.context.clone(),
        cancellation,
        caller,
    })
}

/// The context of an assessment: it looks, and can do nothing.
pub(crate) fn looking_only(run: &RunState, call: &Arc<LiveCall>, input: &Payload) -> CallContext {
    let looking = LookingOnly {
        shared: run.shared.clone(),
        call: call.clone(),
        notices: run.notices(&call.info),
        run_notices: run.run_notices(),
    };
    context(call, input, Cancellation::new(call.cancel.clone()), Arc::new(looking))
}

/// The agents that the code of a call may call.
fn agents_of(shared: &Shared, call: &LiveCall) -> Vec<CallableAgent> {
    let plan = &call.frame().plan;
    // Where the agent lists a tool of the same name, the name means the tool.
    shared.callable_agents(|name| plan.may_call_agent(name) && !plan.has_tool_named(name))
}

/// Finds an agent that the code of a call may call.
fn find_agent(shared: &Shared, call: &LiveCall, name: &Name) -> Result<CallableAgent, Failure> {
    let agents = agents_of(shared, call);
    let found = agents.iter().find(|agent| agent.definition.name == *name);
    found.cloned().ok_or_else(|| unresolved::explain_agent(shared, &call.frame().plan, name, &agents))
}

/// The agent in whose name a call creates agents, with what it may do at most.
fn creator_of(call: &LiveCall) -> Creator<'_> {
    Creator { plan: &call.frame().plan, access: opener_of(call).access }
}

struct LookingOnly {
    shared: Arc<Shared>,
    call: Arc<LiveCall>,
    notices: NoticeSink,
    run_notices: NoticeSink,
}

impl LookingOnly {
    fn refusal() -> Failure {
        Failure::new(FailureKind::Tool, "an assessment must have no effects, so it cannot call or ask")
    }
}

impl Caller for LookingOnly {
    fn call(self: Arc<Self>, _name: Name, _input: Payload) -> BoxFuture<'static, Outcome> {
        Box::pin(std::future::ready(Outcome::Failed(Self::refusal())))
    }

    fn approve(self: Arc<Self>, _effect: InnerEffect) -> BoxFuture<'static, Outcome> {
        Box::pin(std::future::ready(Outcome::Failed(Self::refusal())))
    }

    fn sample(self: Arc<Self>, _sample: Sample) -> BoxFuture<'static, Outcome> {
        Box::pin(std::future::ready(Outcome::Sample(0)))
    }

    fn blocking(self: Arc<Self>, _work: BlockingWork) -> BoxFuture<'static, ToolReply> {
        Box::pin(std::future::ready(Err(ToolError::new(Self::refusal().message))))
    }

    /// What code prints while it assesses a call would be lost otherwise.
    fn say(&self, remark: Remark) {
        if let Remark::Notice(text) | Remark::Stderr(text) = remark {
            // A run that has ended has nobody to tell.
            let _ = self.notices.send(text);
        }
    }

    fn run_notices(&self) -> NoticeSink {
        self.run_notices.clone()
    }

    fn inspect(&self) -> Inspection {
        Inspection::default()
    }

    fn access(&self) -> Option<Access> {
        Some(opener_of(&self.call).access)
    }

    fn agent_input(&self) -> Option<Payload> {
        agent_input_of(&self.call)
    }

    fn agents(&self) -> Vec<CallableAgent> {
        agents_of(&self.shared, &self.call)
    }

    fn find_agent(&self, name: &Name) -> Result<CallableAgent, Failure> {
        find_agent(&self.shared, &self.call, name)
    }

    fn check_agent(&self, spec: &AgentSpec) -> Result<(), Failure> {
        self.shared.check_agent(spec, &creator_of(&self.call))
    }

    fn add_agent(&self, _spec: AgentSpec) -> Result<(), Failure> {
        Err(Self::refusal())
    }
}

/// The way back into the runtime for one tool call.
pub(crate) struct ToolCaller {
    scope: RunScope,
    call: Arc<LiveCall>,
    /// Ends the inner calls when the tool's own call ends.
    inner_cancel: CancellationToken,
    inner: TaskTracker,
    activity: Activity,
    /// Gone once the tool has called something.
    leaf: Mutex<Option<Leaf>>,
    in_flight: Mutex<usize>,
    halt: OnceLock<Halt>,
    halted: Notify,
    progress: Mutex<Progress>,
    /// Set when the tool's own call ends: nothing begins and nothing is said after that.
    settled: Mutex<bool>,
}

/// What a tool has reported while it runs.
struct Progress {
    next: u64,
    /// Finds known secrets across the parts of a report.
    mask: StreamMask,
}

impl ToolCaller {
    pub(crate) fn new(scope: &RunScope, call: &Arc<LiveCall>, leaf: Leaf) -> Arc<Self> {
        let mask = scope.run.shared.known_secrets.mask();
        Arc::new(Self {
            leaf: Mutex::new(Some(leaf)),
            scope: scope.clone(),
            call: call.clone(),
            inner_cancel: call.cancel.child_token(),
            inner: TaskTracker::new(),
            activity: Activity::running(call.watch.as_ref()),
            in_flight: Mutex::new(0),
            halt: OnceLock::new(),
            halted: Notify::new(),
            progress: Mutex::new(Progress { next: 0, mask: StreamMask::new(&mask) }),
            settled: Mutex::new(false),
        })
    }

    pub(crate) fn context(self: &Arc<Self>, input: &Payload, cancellation: Cancellation) -> CallContext {
        context(&self.call, input, cancellation, self.clone())
    }

    /// Resolves when an inner step has halted the run.
    pub(crate) async fn halted(&self) -> Halt {
        loop {
            let news = self.halted.notified();
            match self.halt.get() {
                Some(halt) => return halt.clone(),
                None => news.await,
            }
        }
    }

    /// Ends what is left of inner calls and waits for it: nothing runs on unseen.
    pub(crate) async fn settle(&self) {
        {
            let mut settled = self.settled.lock();
            if !*settled {
                let rest = self.progress.lock().mask.finish();
                self.report(rest);
            }
            *settled = true;
        }
        self.inner_cancel.cancel();
        self.inner.close();
        self.inner.wait().await;
    }

    /// Reports progress: a part of the output of a command, say, which may be cut anywhere.
    fn report(&self, text: String) {
        if text.is_empty() {
            return;
        }
        let (run, info) = (&self.scope.run, &self.call.info);
        let text = run.shared.redactor().text(text);
        let mut progress = self.progress.lock();
        let delta = Delta { attempt: 0, index: progress.next, text };
        progress.next += 1;
        run.log.pass(info, &info.id, EventBody::ToolProgress(delta));
    }

    /// Does something, unless the tool's own call has ended; it does not end meanwhile.
    fn unless_settled<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        let settled = self.settled.lock();
        (!*settled).then(act)
    }

    /// Performs an inner step as a task that outlives a dropped future by its clean-up only.
    async fn perform(self: Arc<Self>, step: Step) -> Outcome {
        if self.inner_cancel.is_cancelled() {
            return self.ended().await;
        }
        let token = self.inner_cancel.child_token();
        if !matches!(step.kind, StepKind::Sample(_)) {
            drop(self.leaf.lock().take());
            self.call.prepare(step.key.clone(), token.clone());
        }
        let (caller, given_up) = (self.clone(), token.clone());
        let resting = Resting::begin(&self);
        let begun = self.unless_settled(|| {
            self.inner.spawn(async move {
                let performed = caller.scope.perform(step).await;
                caller.notice(&performed, &given_up);
                performed
            })
        });
        let Some(task) = begun else { return self.ended().await };
        let cancel_on_drop = token.drop_guard();
        let performed = task.await;
        cancel_on_drop.disarm();
        drop(resting);
        match performed {
            Ok(Err(_)) if *self.settled.lock() => self.ended().await,
            Ok(performed) => self.answer(performed).await,
            Err(error) => Outcome::Failed(Failure::new(
                FailureKind::Panic,
                format!("the inner call broke off: {error}"),
            )),
        }
    }

    /// Notices a halt below, whether or not tool code looks. An inner call that was given up says nothing.
    fn notice(&self, performed: &StepResult, given_up: &CancellationToken) {
        match performed {
            Err(Halt::Interrupted) if given_up.is_cancelled() => {}
            Err(halt) => self.set_halt(halt.clone()),
            Ok(_) => {}
        }
    }

    fn set_halt(&self, halt: Halt) {
        let _ = self.halt.set(halt);
        self.halted.notify_waiters();
    }

    /// The halt below this call, which wins over whatever its code answered.
    pub(crate) fn halt(&self) -> Option<Halt> {
        self.halt.get().cloned()
    }

    /// Gives an outcome to tool code; a halt stops here and goes up by another way.
    async fn answer(&self, performed: StepResult) -> Outcome {
        match performed {
            Ok(outcome) => outcome,
            Err(halt) => {
                self.set_halt(halt);
                pending().await
            }
        }
    }

    /// A context that outlives its call can do nothing more; in a call that is being cancelled, nothing returns.
    async fn ended(&self) -> Outcome {
        let is_settled = *self.settled.lock();
        if !is_settled {
            return self.answer(Err(Halt::Interrupted)).await;
        }
        let message = format!("the call of `{}` has ended", self.call.name);
        Outcome::Failed(Failure::new(FailureKind::Tool, message))
    }

    fn step(&self, key: Key, kind: StepKind, name: Name, payload: Payload, effect: Effect) -> Step {
        Step { key, call: self.call.info.id.clone(), kind, name, payload, effect }
    }
}

impl Caller for ToolCaller {
    fn call(self: Arc<Self>, name: Name, input: Payload) -> BoxFuture<'static, Outcome> {
        let key = self.call.inner_key(&name, &input);
        let step = self.step(
            key,
            StepKind::Call { origin: CallOrigin::Code, fork: false },
            name,
            input,
            Effect::Calls,
        );
        Box::pin(self.perform(step))
    }

    fn fork(self: Arc<Self>, prompts: Vec<String>) -> BoxFuture<'static, Result<Vec<Outcome>, Failure>> {
        let frame = self.call.frame();
        let owner = frame.plan.spec.as_ref().map(|spec| spec.name.clone());
        let (Some(name), true) = (owner, frame.agent_state.turn.lock().is_some()) else {
            return Box::pin(std::future::ready(Err(fork::no_turn())));
        };
        let child = |prompt: String| {
            let input = Payload::new(json!({ "input": prompt }));
            let key = self.call.inner_key("fork", &input);
            let kind = StepKind::Call { origin: CallOrigin::Code, fork: true };
            self.clone().perform(self.step(key, kind, name.clone(), input, Effect::Calls))
        };
        let children: Vec<_> = prompts.into_iter().map(child).collect();
        Box::pin(async move { Ok(join_all(children).await) })
    }

    fn approve(self: Arc<Self>, effect: InnerEffect) -> BoxFuture<'static, Outcome> {
        let key = self.call.inner_key(&effect.name, &effect.payload).child("gate");
        let kind = StepKind::Gate { reason: Some(effect.reason) };
        let step = self.step(key, kind, effect.name, effect.payload, Effect::Pure);
        Box::pin(self.perform(step))
    }

    fn sample(self: Arc<Self>, sample: Sample) -> BoxFuture<'static, Outcome> {
        let input = Payload::null();
        let name = match sample {
            Sample::Clock => "clock",
            Sample::Random => "random",
        };
        let key = self.call.inner_key(name, &input);
        let step = self.step(key, StepKind::Sample(sample), name.into(), input, Effect::Pure);
        Box::pin(self.perform(step))
    }

    fn blocking(self: Arc<Self>, work: BlockingWork) -> BoxFuture<'static, ToolReply> {
        let (running, waiting) = self.scope.run.shared.still_running.begin(self.call.info.path.to_string());
        Box::pin(async move {
            let _waiting = waiting;
            let task = tokio::task::spawn_blocking(move || {
                let reply = work();
                drop(running);
                reply
            });
            match task.await {
                Ok(reply) => reply,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(error) => Err(ToolError::new(error)),
                },
            }
        })
    }

    fn say(&self, remark: Remark) {
        let run = &self.scope.run;
        let key = &self.call.info.id;
        self.unless_settled(|| match remark {
            Remark::Notice(text) => run.notice(&self.call.info, text),
            Remark::Stderr(text) => {
                let text = run.shared.redactor().text(text);
                run.note(&self.call, key, EventBody::Stderr { text });
            }
            Remark::Progress(text) => {
                let text = self.progress.lock().mask.push(text);
                self.report(text);
            }
        });
    }

    fn run_notices(&self) -> NoticeSink {
        self.scope.run.run_notices()
    }

    fn inspect(&self) -> Inspection {
        let (run, frame) = (&self.scope.run, self.call.frame());
        let messages = frame
            .agent_state
            .conversation_state
            .try_lock()
            .map(|conversation_state| conversation_state.conversation.messages().to_vec());
        let agents = agents_of(&run.shared, &self.call);
        let names = agents.into_iter().map(|agent| agent.definition.name.clone());
        let mut callables: Vec<Name> = frame.plan.names().map(Name::from).chain(names).collect();
        callables.sort();
        callables.dedup();
        Inspection {
            messages: messages.unwrap_or_default(),
            usage: self.call.usage(),
            remaining: self.remaining(),
            callables,
            trace: self.trace().below(&self.call.info.id),
            stderr: stderr_of(run, opener_of(&self.call)),
        }
    }

    fn trace(&self) -> Trace {
        Trace::from_events(&self.scope.run.log.events())
    }

    fn run_usage(&self) -> UsageByModel {
        root_of(&self.call).usage()
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        let targets = self.call.frame().plan.targets();
        let tools = targets.filter(|target| matches!(target.kind, TargetKind::Tool(_)));
        let mut definitions: Vec<_> = tools.map(|target| target.definition.clone()).collect();
        definitions.sort_by(|one, other| one.name.cmp(&other.name));
        definitions.dedup_by(|one, other| one.name == other.name);
        definitions
    }

    fn agent_input(&self) -> Option<Payload> {
        agent_input_of(&self.call)
    }

    fn agents(&self) -> Vec<CallableAgent> {
        agents_of(&self.scope.run.shared, &self.call)
    }

    fn find_agent(&self, name: &Name) -> Result<CallableAgent, Failure> {
        find_agent(&self.scope.run.shared, &self.call, name)
    }

    fn access(&self) -> Option<Access> {
        let is_agents = self.call.frame().plan.spec.is_some();
        is_agents.then(|| opener_of(&self.call).access)
    }

    fn remaining(&self) -> Remaining {
        let run = &self.scope.run;
        let left = run.budget.remaining(self.call.frame().ceiling);
        let max_depth = run.options.limits.depth.unwrap_or(run.shared.max_depth);
        Remaining {
            depth: max_depth.saturating_sub(self.call.info.depth),
            tool_calls: left.tool_calls,
            tokens: left.tokens,
            cost: left.cost.map(llm_do_core::Money),
        }
    }

    fn check_model(&self, name: &Name) -> Result<(), Failure> {
        let (run, frame) = (&self.scope.run, self.call.frame());
        let Some(spec) = &frame.plan.spec else { return Ok(()) };
        let tune = Tune { model: Some(name.clone()), ..Tune::default() };
        if let Some(refusal) = control::refusal(&tune, &spec.tuning) {
            return Err(Failure::new(FailureKind::Arguments, refusal));
        }
        let unusable = |error: ModelError| Failure::new(FailureKind::Arguments, error.to_string());
        check_compatible(spec, name).map_err(unusable)?;
        let model = run.shared.resolve_model(name).map_err(unusable)?;
        check_price(run, frame, model.name())
    }

    fn check_agent(&self, spec: &AgentSpec) -> Result<(), Failure> {
        self.scope.run.shared.check_agent(spec, &creator_of(&self.call))
    }

    fn add_agent(&self, spec: AgentSpec) -> Result<(), Failure> {
        let shared = &self.scope.run.shared;
        let creator = creator_of(&self.call);
        let added = self.unless_settled(|| {
            shared.check_agent(&spec, &creator)?;
            let (name, creator) = (spec.name.clone(), creator.plan.owner());
            shared.add_agent(spec, Some(creator.clone())).map_err(refused)?;
            // The name that its creator may call is there after a restart too.
            let call = &self.call;
            self.scope.run.note(call, &call.info.id, EventBody::AgentAdded { name, creator });
            Ok(())
        });
        added.unwrap_or_else(|| Err(Failure::new(FailureKind::Tool, "the call has ended")))
    }
}

/// What a call and everything below it wrote to its error log.
fn stderr_of(run: &RunState, call: &LiveCall) -> Vec<String> {
    let line = |event: &Arc<Event>| match &event.body {
        EventBody::Stderr { text } if event.call.id.is_within(&call.info.id) => Some(text.clone()),
        _ => None,
    };
    run.log.events().iter().filter_map(line).collect()
}

/// While inner steps are in flight, the tool itself does not count as running.
struct Resting(Arc<ToolCaller>);

impl Resting {
    fn begin(caller: &Arc<ToolCaller>) -> Self {
        let mut in_flight = caller.in_flight.lock();
        *in_flight += 1;
        if *in_flight == 1 {
            caller.activity.rests();
        }
        drop(in_flight);
        Self(caller.clone())
    }
}

impl Drop for Resting {
    fn drop(&mut self) {
        let mut in_flight = self.0.in_flight.lock();
        *in_flight -= 1;
        if *in_flight == 0 {
            self.0.activity.runs();
        }
    }
}
