//! Runs and their trees of calls, built from events.

mod call;

use std::collections::HashMap;
use std::time::{Duration, Instant};

pub(crate) use call::{Call, CallState};
use llm_do_core::{
    ApprovalRequest, CallKind, CallResult, ContextUse, Decision, Event, EventBody, Key, Limits, ModelResult,
    Money, Name, Payload, Quantity, RunId, Status, Usage, UsageByModel,
};
use std::sync::Arc;

/// The index of a call in the tree, which never changes.
pub(crate) type CallIndex = usize;

/// Everything that has happened since the UI was opened.
#[derive(Default)]
pub(crate) struct CallTree {
    calls: Vec<Call>,
    indices: HashMap<(RunId, Key), CallIndex>,
    /// The calls at the top, one per run.
    roots: Vec<CallIndex>,
    runs: HashMap<RunId, RunState>,
    /// The run that began last.
    current: Option<RunId>,
    /// What all runs used.
    usage: UsageByModel,
    /// How full the context window of the top agent's model is.
    context: Option<WindowUse>,
    /// Every question that was asked, with what it touches.
    asked: Vec<(RunId, Arc<ApprovalRequest>)>,
}

/// How full the context window of a model is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WindowUse {
    pub(crate) used: u64,
    pub(crate) window: u64,
    /// Whether the number is an estimate, as the model has not reported one since.
    pub(crate) is_estimate: bool,
}

/// One run.
pub(crate) struct RunState {
    pub(crate) started: Instant,
    pub(crate) limits: Limits,
    pub(crate) usage: Usage,
    /// How it ended; none while it goes on.
    pub(crate) status: Option<Status>,
    pub(crate) duration: Option<Duration>,
    pub(crate) calls: u64,
}

impl CallTree {
    /// Applies an event.
    pub(crate) fn read(&mut self, event: &Event, now: Instant) {
        match &event.body {
            EventBody::RunStarted(start) => self.begin(event.call.run, &start.limits, now),
            EventBody::CallStarted { kind, name, input, .. } => self.start(event, *kind, name, input, now),
            EventBody::ModelRequest { context, .. } => {
                self.note_context(event, *context);
                self.talk(event);
            }
            EventBody::ModelResponse { .. } => self.talk(event),
            EventBody::ApprovalRequested(request) => self.ask(event.call.run, request),
            EventBody::ApprovalDecided { id, decision, .. } => self.decide(event.call.run, id, decision),
            EventBody::Stderr { text } => self.at(event, |call| call.stderr.push(text.clone())),
            EventBody::ToolProgress(delta) => self.at(event, |call| call.progress = Some(delta.text.clone())),
            EventBody::CallFinished { result, duration_ms, usage, .. } => {
                let duration = Duration::from_millis(*duration_ms);
                self.at(event, |call| call.finish(result.clone(), duration, *usage));
            }
            EventBody::RunFinished { status, duration_ms, usage, .. } => {
                self.end(event.call.run, *status, *duration_ms, usage, now);
            }
            _ => {}
        }
    }

    fn begin(&mut self, id: RunId, limits: &Limits, now: Instant) {
        let run = RunState {
            started: now,
            limits: limits.clone(),
            usage: Usage::default(),
            status: None,
            duration: None,
            calls: 0,
        };
        self.runs.insert(id, run);
        self.current = Some(id);
    }

    fn start(&mut self, event: &Event, kind: CallKind, name: &Name, input: &Payload, now: Instant) {
        let run = event.call.run;
        let parent = event.call.parent.as_ref().and_then(|parent| self.index(run, parent));
        let index = self.calls.len();
        match parent {
            Some(parent) => self.calls[parent].children.push(index),
            None => self.roots.push(index),
        }
        let level = parent.map_or(0, |parent| self.calls[parent].level + 1);
        self.calls.push(Call::new(event, kind, name, input, parent, level, now));
        self.indices.insert((run, event.call.id.clone()), index);
        if let Some(run) = self.runs.get_mut(&run).filter(|_| level > 0) {
            run.calls += 1;
        }
    }

    /// Applies an extension of a budget, for which there is no event.
    pub(crate) fn extend(&mut self, what: Quantity, limit: u64) {
        let Some(run) = self.current.and_then(|id| self.runs.get_mut(&id)) else { return };
        match what {
            Quantity::Cost => run.limits.cost = Some(Money(limit)),
            Quantity::Tokens => run.limits.tokens = Some(limit),
            Quantity::ToolCalls => run.limits.tool_calls = Some(limit),
            Quantity::Requests => run.limits.requests = Some(limit),
        }
    }

    /// Returns how full the context window of the top agent's model is, if its size is known.
    pub(crate) fn context(&self) -> Option<WindowUse> {
        self.context
    }

    fn note_context(&mut self, event: &Event, context: Option<ContextUse>) {
        if event.call.depth == 1 {
            let window_use = |ContextUse { used, window }| WindowUse { used, window, is_estimate: true };
            self.context = context.map(window_use);
        }
    }

    /// What a model reports takes the place of the estimate.
    fn note_reported(&mut self, event: &Event, usage: &Usage) {
        let used = usage.total_input() + usage.output;
        if let Some(context) = self.context.as_mut().filter(|_| event.call.depth == 1 && used > 0) {
            (context.used, context.is_estimate) = (used, false);
        }
    }

    fn talk(&mut self, event: &Event) {
        self.at(event, |call| call.talk(&event.body));
        let EventBody::ModelResponse { result: ModelResult::Response(response), .. } = &event.body else {
            return;
        };
        self.note_reported(event, &response.usage);
        if let Some(run) = self.runs.get_mut(&event.call.run) {
            run.usage += response.usage;
        }
        let mut above = self.index(event.call.run, &event.call.id);
        while let Some(index) = above {
            self.calls[index].usage += response.usage;
            above = self.calls[index].parent;
        }
    }

    fn ask(&mut self, run: RunId, request: &Arc<ApprovalRequest>) {
        self.asked.push((run, request.clone()));
        if let Some(index) = self.index(run, &request.id) {
            self.calls[index].state = CallState::Asking;
        }
    }

    fn decide(&mut self, run: RunId, id: &Key, decision: &Decision) {
        if let Some(index) = self.index(run, id) {
            let call = &mut self.calls[index];
            if call.state == CallState::Asking {
                call.state = CallState::Running;
            }
            // Defaults that were filled in would only hide what was asked for.
            if let Decision::Allow(permit) = decision
                && permit.edited
            {
                call.input = permit.arguments.clone();
                call.version += 1;
            }
        }
    }

    fn end(&mut self, id: RunId, status: Status, duration_ms: u64, usage: &UsageByModel, now: Instant) {
        self.usage.merge(usage);
        if let Some(run) = self.runs.get_mut(&id) {
            run.status = Some(status);
            run.duration = Some(Duration::from_millis(duration_ms));
            run.usage = usage.total();
        }
        for call in self.calls.iter_mut().rev().filter(|call| call.run == id) {
            call.break_off(now);
        }
    }

    fn at(&mut self, event: &Event, change: impl FnOnce(&mut Call)) {
        if let Some(index) = self.index(event.call.run, &event.call.id) {
            let call = &mut self.calls[index];
            change(call);
            call.version += 1;
        }
    }

    fn index(&self, run: RunId, key: &Key) -> Option<CallIndex> {
        self.indices.get(&(run, key.clone())).copied()
    }

    /// The call that an event belongs to.
    pub(crate) fn call_of(&self, event: &Event) -> Option<&Call> {
        self.index(event.call.run, &event.call.id).map(|index| &self.calls[index])
    }

    pub(crate) fn call(&self, index: CallIndex) -> Option<&Call> {
        self.calls.get(index)
    }

    pub(crate) fn roots(&self) -> &[CallIndex] {
        &self.roots
    }

    /// The run that began last.
    pub(crate) fn run(&self) -> Option<&RunState> {
        self.current.and_then(|id| self.runs.get(&id))
    }

    /// Whether others ran before the run that began last.
    pub(crate) fn has_earlier_runs(&self) -> bool {
        self.runs.len() > 1
    }

    /// Whether anything runs.
    pub(crate) fn is_running(&self) -> bool {
        self.run().is_some_and(|run| run.status.is_none())
    }

    /// What all runs that have ended used, and the one that goes on.
    pub(crate) fn total(&self) -> Usage {
        let mut total = self.usage.total();
        if let Some(run) = self.run().filter(|run| run.status.is_none()) {
            total += run.usage;
        }
        total
    }

    pub(crate) fn usage(&self) -> &UsageByModel {
        &self.usage
    }

    /// The calls that run now, callers before what they called.
    pub(crate) fn running(&self) -> Vec<CallIndex> {
        let mut found = Vec::new();
        let mut open: Vec<CallIndex> = self.roots.iter().rev().copied().collect();
        // Only the newest run can still go on; older trees are not walked.
        open.truncate(1);
        while let Some(index) = open.pop() {
            let call = &self.calls[index];
            if call.is_open() {
                found.push(index);
                open.extend(call.children.iter().rev());
            }
        }
        found
    }

    /// The earlier questions about the same tool in the name of the same agent.
    pub(crate) fn asked_before<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> impl Iterator<Item = &'a ApprovalRequest> + 'a {
        let current = self.current;
        self.asked
            .iter()
            .filter(move |(run, other)| {
                (Some(*run) != current || other.id != request.id)
                    && (&other.agent, &other.toolset, &other.name)
                        == (&request.agent, &request.toolset, &request.name)
            })
            .map(|(_, other)| &**other)
    }

    /// The call in whose course a question is asked.
    pub(crate) fn caller_of(&self, request: &ApprovalRequest) -> Option<&Call> {
        let asked = self.calls.get(self.index(self.current?, &request.id)?)?;
        self.calls.get(asked.parent?)
    }

    /// Whether a call or one below it waits for a person.
    pub(crate) fn waits_below(&self, index: CallIndex) -> bool {
        let call = &self.calls[index];
        call.state == CallState::Asking
            || call.is_open() && call.children.iter().any(|child| self.waits_below(*child))
    }
}

impl From<&CallResult> for CallState {
    fn from(result: &CallResult) -> Self {
        match result {
            CallResult::Output(_) => Self::Done,
            CallResult::Error(failure) if failure.is_denial() => Self::Denied,
            CallResult::Error(_) => Self::Failed,
        }
    }
}
