//! The calls of one turn: performed, answered, and stopped early if they must be.
//!
//! Every call gets an answer, whatever happens to it: providers refuse a conversation in which a call has none, and a
//! session goes on after a turn that was stopped.

use std::sync::Arc;

use llm_do_core::{
    Access, CallOrigin, Content, Control, Effect, FINAL_ANSWER, Failure, FailureKind, Halt, HintAudience,
    Jump, Key, ModelResponse, Outcome, Output, Payload, Step, StepKind, StepResult, ToolCall, ToolResult,
    Tune, Tuning,
};

use super::AgentLoop;
use crate::descriptors::Descriptors;
use crate::state::control;
use crate::state::live::Turn;
use crate::state::repeats::{Advice, CallEnd};

/// A call that the model asks for, with its arguments read once.
pub(super) struct CallRequest<'a> {
    pub(super) call: &'a ToolCall,
    key: Key,
    arguments: Payload,
}

/// What the calls of a turn lead to.
pub(super) enum Called {
    /// All were run, and each has an answer.
    Answered(Vec<ToolResult>),
    /// The conversation goes back to a place; what was left of the turn is dropped.
    Jumped(usize, Jump),
    /// The turn ends early. Each call has an answer all the same: what it did, or that it was not run.
    Stopped(Stopped, Vec<ToolResult>),
}

/// Why a turn ends early: the agent fails, or the run halts.
pub(super) type Stopped = Result<Failure, Halt>;

/// What a call of the model leads to.
enum CallAnswer {
    Result(ToolResult),
    /// The conversation goes back to a place.
    Jump(usize, Jump),
    /// The turn ends early; the model finds this result of the call afterwards.
    Stop(Stopped, ToolResult),
}

/// Picks the cause to report: a halt over a failure, any other halt over a call that waits for an answer, and the cause
/// of a halt over the interruptions of its siblings.
fn more_telling(known: Option<Stopped>, new: Stopped) -> Stopped {
    let weight = |cause: &Stopped| match cause {
        Ok(_) => 0,
        Err(Halt::Parked { .. }) => 1,
        Err(Halt::Interrupted) => 2,
        Err(Halt::Unknown { .. }) => 3,
        Err(_) => 4,
    };
    match known {
        Some(known) if weight(&known) >= weight(&new) => known,
        _ => new,
    }
}

/// Counts the results of a turn until its end, however it ends.
struct TurnResults<'a, 'b>(&'a AgentLoop<'b>);

impl Drop for TurnResults<'_, '_> {
    fn drop(&mut self) {
        self.0.scope.run.in_flight.forget(&self.0.frame.agent_state);
    }
}

impl AgentLoop<'_> {
    pub(super) fn request<'a>(&self, index: usize, call: &'a ToolCall) -> CallRequest<'a> {
        let key = self.call.info.id.child(format_args!("t{}/tool/{index}", self.turn));
        CallRequest { call, key, arguments: Payload::from_model(&call.arguments) }
    }

    /// Reads where a tool wants to go back to. A tool of anybody's own may name a message that is not there.
    async fn jump(&self, output: &Output) -> Result<(usize, Jump), Failure> {
        let jump: Jump = output.parse()?;
        let target =
            control::target(&jump, &self.frame.agent_state.conversation_state.lock().await.conversation);
        let wrong = |problem: String| Failure::new(FailureKind::Arguments, problem);
        Ok((target.map_err(wrong)?, jump))
    }

    /// Performs calls side by side, `sequential` ones alone; answers are in call order.
    pub(super) async fn perform_calls(
        &self,
        response: &ModelResponse,
        requests: &[CallRequest<'_>],
    ) -> Called {
        let _results = TurnResults(self);
        let mut results = Vec::with_capacity(requests.len());
        let mut stopped: Option<Stopped> = None;
        for batch in self.batches(requests) {
            // A model that repeats a failing call is stopped after this turn: what it asked for at once is run. A halt
            // stops at once.
            if matches!(stopped, Some(Err(_))) {
                results.extend(batch.iter().map(|request| self.unfinished(request)));
                continue;
            }
            self.show_turn(response, requests, &results);
            for (request, performed) in batch.iter().zip(self.perform_batch(batch).await) {
                match self.answer(request, performed, stopped.is_none()).await {
                    CallAnswer::Result(result) => results.push(result),
                    CallAnswer::Jump(position, jump) => return Called::Jumped(position, jump),
                    CallAnswer::Stop(cause, result) => {
                        results.push(result);
                        stopped = Some(more_telling(stopped, cause));
                    }
                }
            }
        }
        match stopped {
            Some(cause) => Called::Stopped(cause, results),
            None => Called::Answered(results),
        }
    }

    /// Answers one call of the model. After a call that stops the turn, no other one may jump.
    async fn answer(&self, request: &CallRequest<'_>, performed: StepResult, may_jump: bool) -> CallAnswer {
        let mut outcome = match performed {
            Ok(outcome) => outcome,
            Err(halt) => return CallAnswer::Stop(Err(halt), self.unfinished(request)),
        };
        if let (Some(Control::Goto), Outcome::Value(output)) = (self.control(request.call), &outcome)
            && may_jump
        {
            match self.jump(output).await {
                Ok((position, jump)) => return CallAnswer::Jump(position, jump),
                Err(failure) => outcome = Outcome::Failed(failure),
            }
        }
        self.result(request, outcome).await
    }

    /// The answer to a call that has no outcome, because the turn was stopped.
    fn unfinished(&self, request: &CallRequest<'_>) -> ToolResult {
        let text = match self.scope.run.was_interrupted(&request.key) {
            true => {
                "cancelled: the call was interrupted while it was running; what it had done until then may remain"
            }
            false => "not run: the turn was stopped before this call began",
        };
        error_result(request.call, text)
    }

    /// Splits calls into those that run at once.
    fn batches<'a, 'b>(
        &self,
        requests: &'a [CallRequest<'b>],
    ) -> impl Iterator<Item = &'a [CallRequest<'b>]> {
        let is_alone = |request: &CallRequest<'_>| self.runs_alone(request.call);
        let alone: Vec<bool> = requests.iter().map(is_alone).collect();
        let mut from = 0;
        std::iter::from_fn(move || {
            let rest = alone.get(from..).filter(|rest| !rest.is_empty())?;
            let length = if rest[0] { 1 } else { rest.iter().position(|alone| *alone).unwrap_or(rest.len()) };
            from += length;
            Some(&requests[from - length..from])
        })
    }

    fn runs_alone(&self, call: &ToolCall) -> bool {
        let target = self.frame.plan.target(&call.name);
        self.is_answer(call) || target.is_some_and(|target| target.definition.sequential)
    }

    fn is_answer(&self, call: &ToolCall) -> bool {
        call.name == FINAL_ANSWER && self.output_schema().is_some()
    }

    fn control(&self, call: &ToolCall) -> Option<Control> {
        self.frame.plan.target(&call.name).and_then(|target| target.definition.control)
    }

    /// Keeps what is known of the turn for calls that go on from it. Only a call that runs alone may.
    fn show_turn(&self, response: &ModelResponse, requests: &[CallRequest<'_>], results: &[ToolResult]) {
        *self.frame.agent_state.turn.lock() = Some(Turn {
            message: response.message.clone(),
            keys: requests.iter().map(|request| request.key.clone()).collect(),
            results: results.to_vec(),
        });
    }

    fn call_step(&self, request: &CallRequest<'_>) -> Step {
        let (name, payload) = (request.call.name.clone(), request.arguments.clone());
        let kind = StepKind::Call { origin: CallOrigin::Model, fork: false };
        self.step(request.key.clone(), kind, name, payload, Effect::Calls)
    }

    async fn perform_batch(&self, batch: &[CallRequest<'_>]) -> Vec<StepResult> {
        if let [only] = batch
            && self.is_answer(only.call)
        {
            return vec![Ok(Outcome::Failed(not_alone()))];
        }
        let steps = batch.iter().map(|request| self.call_step(request)).collect();
        self.scope.perform_all(steps).await
    }

    /// Equal failing calls in a row after which the agent is stopped.
    fn repeat_limit(&self) -> u32 {
        let own = self.frame.plan.spec.as_ref().and_then(|spec| spec.limits.repeats);
        let run = &self.scope.run;
        own.or(run.options.limits.repeats).unwrap_or(run.shared.repeat_limit)
    }

    /// Returns whether a successful call may have changed something, so that the next equal call may succeed.
    fn changes_something(&self, call: &ToolCall) -> bool {
        let target = self.frame.plan.target(&call.name);
        target.is_some_and(|target| {
            target.own_access() > Access::Read
                && target.definition.effect != Effect::Pure
                && target.definition.control.is_none()
        })
    }

    /// Counts how a call ended.
    fn count_repeats(&self, request: &CallRequest<'_>, output: &Result<Output, Failure>) -> Advice {
        let ended = match output {
            Ok(_) if self.changes_something(request.call) => CallEnd::Changed,
            Ok(_) => CallEnd::Succeeded,
            Err(failure) if failure.is_denial() => CallEnd::Denied,
            Err(_) => CallEnd::Failed,
        };
        let arguments = request.arguments.digest();
        self.frame.agent_state.repeats.lock().count(&request.call.name, arguments, ended, self.repeat_limit())
    }

    /// Writes the result that the model reads; stops a model that repeats a failing call.
    async fn result(&self, request: &CallRequest<'_>, outcome: Outcome) -> CallAnswer {
        let mut output = outcome.into_output();
        if let (Some(Control::Tune), Ok(tune)) = (self.control(request.call), &output) {
            output = self.tune(tune).await.map(|()| tune.clone());
        }
        let (call, advice) = (request.call, self.count_repeats(request, &output));
        let (mut text, is_error, attachments) = match output {
            Ok(output) => (self.shown(request, &output.content), false, output.attachments),
            Err(failure) => {
                if let Advice::Stop(count) = advice {
                    let cause = stop_repeating(&self.call.name, call, &failure, count);
                    return CallAnswer::Stop(cause, repeated(call, &failure));
                }
                (self.shown(request, &Content::Text(failure.to_string().into())), true, Vec::new())
            }
        };
        if let Advice::Tell(count) = advice {
            text = format!(
                "{text}\nnote: this same call has failed {count} times; change it or go on without it"
            )
            .into();
        }
        let (id, name) = (call.id.clone(), call.name.clone());
        CallAnswer::Result(ToolResult { id, name, text, is_error, attachments })
    }
}

impl AgentLoop<'_> {
    fn pages_itself(&self, request: &CallRequest<'_>) -> bool {
        let target = self.frame.plan.target(&request.call.name);
        target.is_some_and(|target| target.definition.pages_itself)
    }

    /// What the model reads of a result: all of it, or its first page where it is too long.
    fn shown(&self, request: &CallRequest<'_>, content: &Content) -> Arc<str> {
        let text = match content {
            Content::Text(text) => text.clone(),
            Content::Json(value) => value.to_string().into(),
        };
        if self.pages_itself(request) {
            return text;
        }
        let descriptors = self.frame.agent_state.descriptors.get();
        let keeps = |descriptors: &&Descriptors| descriptors.settings().enabled && !self.frame.cuts_results();
        let Some(descriptors) = descriptors.filter(keeps) else { return self.cut(text) };
        let paged = match content {
            Content::Text(text) => descriptors.page_result(&request.key, text),
            Content::Json(value) => descriptors.page_value(&request.key, value),
        };
        match paged {
            Ok(view) => view.map_or(text, Into::into),
            Err(failure) => {
                let kept = shortened(&text, descriptors.settings().limit);
                format!("{kept}\nnote: the rest could not be kept: {failure}").into()
            }
        }
    }

    /// Cuts a result where the agent says that long ones are not kept, or cannot read them.
    fn cut(&self, text: Arc<str>) -> Arc<str> {
        let settings = self.frame.plan.spec.as_ref().map(|spec| &spec.descriptors);
        match settings.filter(|settings| !settings.enabled || self.frame.cuts_results()) {
            Some(settings) => shortened(&text, settings.limit),
            None => text,
        }
    }

    /// Changes settings of the next requests, within the bounds of the agent.
    async fn tune(&self, output: &Output) -> Result<(), Failure> {
        let tune: Tune = output.parse()?;
        let none = Tuning::default();
        let bounds = self.frame.plan.spec.as_ref().map_or(&none, |spec| &spec.tuning);
        if let Some(refusal) = control::refusal(&tune, bounds) {
            return Err(Failure::new(FailureKind::Arguments, refusal));
        }
        if tune.model.is_some() {
            self.frame.agent_state.conversation_state.lock().await.answered = None;
        }
        let mut tuned = self.frame.agent_state.tuned.lock();
        *tuned = control::tuned_further(&tuned, tune);
        Ok(())
    }
}

/// Cuts a text, with a mark and its true size.
fn shortened(text: &Arc<str>, limit: u64) -> Arc<str> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let Some((end, _)) = text.char_indices().nth(limit) else { return text.clone() };
    let all = text.chars().count();
    format!("{}\n[cut: {limit} of {all} characters are shown]", &text[..end]).into()
}

/// Equal denials end the run: nobody shall be asked the same again and again. Other failures end the agent.
fn stop_repeating(agent: &str, call: &ToolCall, failure: &Failure, count: u32) -> Stopped {
    let message = format!(
        "agent `{agent}` made the same failing call of `{}` {count} times: {}",
        call.name, failure.message
    );
    let limit = Failure::new(FailureKind::Limit, message).with_hint(
        "find out why the call fails; `limits.repeats` in the manifest or the agent file allows more equal failures",
    );
    if failure.is_denial() { Err(Halt::Limit(limit)) } else { Ok(limit) }
}

/// The result of a call that was repeated too often: forks of this turn read it, and later turns of a session.
fn repeated(call: &ToolCall, failure: &Failure) -> ToolResult {
    error_result(
        call,
        &format!("{failure}\nnote: this same call has failed too often, so the turn was ended"),
    )
}

fn error_result(call: &ToolCall, text: &str) -> ToolResult {
    let (id, name) = (call.id.clone(), call.name.clone());
    ToolResult { id, name, text: text.into(), is_error: true, attachments: Vec::new() }
}

fn not_alone() -> Failure {
    Failure::new(FailureKind::Arguments, format!("`{FINAL_ANSWER}` was called beside other tools"))
        .with_hint_for(HintAudience::Caller, "read the results first, then call it alone")
}
