//! The agent loop: ask the model, dispatch its calls, append, repeat.
//!
//! The loop performs steps and nothing else: it spawns nothing, waits for nothing but steps, and reads no
//! clock. It ends in text, or in a value that fits the agent's output schema.

mod calls;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use llm_do_core::{
    AgentSpec, ArgumentsError, Attachment, Context, Conversation, Effect, EventBody, FINAL_ANSWER, Failure,
    FailureKind, Halt, Head, HintAudience, Key, LinkedPrograms, Message, ModelResponse, Name, Outcome,
    Output, Part, Payload, Schema, Step, StepKind, StepResult, StopReason, Survival, ToolCall, ToolChoice,
    ToolResult, Usage, counted, join_problems, parse_strict,
};

use crate::call::caller::opener;
use crate::descriptors::{Descriptors, READER};
use crate::input::prompt::{self, Opening};
use crate::model::server_tools;
use crate::project::plan::{Plan, WRAPPED, is_wrapped};
use crate::record::used_tools::used_tools;
use crate::state::control;
use crate::state::fork;
use crate::state::instances::Instances;
use crate::state::live::{AgentFrame, AgentState, LiveCall};
use crate::state::run_state::RunState;
use crate::state::scope::RunScope;
use crate::state::step_error::StepError;
use calls::{CallRequest, Called};

/// Turns of one agent call where nothing else is said.
pub const DEFAULT_TURNS: u32 = 500;

/// How often an answer that does not fit, or that was cut off, may be corrected.
const REPAIRS: u32 = 2;

const CUT_OFF: &str = "your message was cut off before it ended properly, so its tool calls were not run; \
    send fewer or shorter calls";

const CUT_ANSWER: &str = "it was cut off at the output limit (`max_tokens`), so it must be shorter";

/// Runs one agent call: opens what it needs, converses, closes on every way out.
pub(crate) async fn run(scope: &RunScope, step: &Step) -> StepResult {
    let run = &scope.run;
    let call = run.live(&step.call)?;
    let frame = match frame_of(run, &call) {
        Ok(frame) => Arc::new(frame),
        Err(failure) => return Ok(Outcome::Failed(failure)),
    };
    call.set_frame(frame.clone());
    run.book_earlier(&call, frame.ceiling);
    note_lost_instances(run, &call, &frame);
    let alarm = Alarm::set(&call);
    let conversed = AssertUnwindSafe(converse(scope, &call, &frame, step)).catch_unwind().await;
    if !run.keeps_instances(&call) {
        frame.instances.close().await;
        // A toolset that opens only now is closed too. The call has no events after its end, so the run is told.
        frame.instances.send_notices_to(run.run_notices());
    }
    drop(alarm);
    let performed = conversed.unwrap_or_else(|_| {
        Ok(Outcome::Failed(Failure::new(
            FailureKind::Panic,
            format!("agent `{}` broke off in a panic", call.name),
        )))
    });
    timed_out_or(outage_of_a_fork(performed, &call), run, &call)
}

/// A provider that stays down ends the run; in the child of a fork it is the failure of that child, so that what its
/// siblings have done is not lost.
fn outage_of_a_fork(performed: StepResult, call: &LiveCall) -> StepResult {
    match performed {
        Err(Halt::Provider(error)) if call.fork => {
            Ok(Outcome::Failed(Failure::new(FailureKind::Model, error.to_string())))
        }
        other => other,
    }
}

/// Notes which toolsets had been used by the call before a restart and have lost what they kept.
fn note_lost_instances(run: &RunState, call: &Arc<LiveCall>, frame: &AgentFrame) {
    let plan = &frame.plan;
    let is_lost = |slot: usize| plan.slots[slot].toolset.survives() == Survival::Lost;
    let is_entered_again = run.replay.as_ref().is_some_and(|replay| replay.was_started(&call.info.id));
    if !is_entered_again || run.keeps_instances(call) || !(0..plan.slots.len()).any(is_lost) {
        return;
    }
    let used = used_tools(&run.log.events(), &call.info.id);
    let slots = used.iter().filter_map(|name| plan.target_for_code(name)?.slot());
    for slot in slots.filter(|slot| is_lost(*slot)) {
        if let Some(toolset) = frame.instances.mark_lost(slot) {
            run.note(call, &call.info.id, EventBody::InstanceLost { toolset: toolset.clone() });
        }
    }
}

/// Makes the frame of an agent call: lesser rights, own ceiling, fresh instances, empty conversation.
fn frame_of(run: &RunState, call: &LiveCall) -> Result<AgentFrame, Failure> {
    let judged = call.target.as_ref().and_then(|target| run.shared.judged_agent(&call.name, target));
    let Some(plan) = judged else {
        let message = format!("the agent `{}` was replaced while its call waited", call.name);
        return Err(
            Failure::new(FailureKind::Unknown, message).with_hint_for(HintAudience::Caller, "call it again")
        );
    };
    let Some(spec) = &plan.spec else { unreachable!("agents have a spec") };
    let caller = call.callers_frame();
    let kept = &run.options;
    let instances =
        kept.instances.clone().filter(|_| call.is_top()).unwrap_or_else(|| Arc::new(Instances::new(&plan)));
    instances.send_notices_to(run.notices(&call.info));
    let fresh = || Arc::new(AgentState::new(Conversation::default()));
    let agent_state = kept.agent_state.clone().filter(|_| call.is_top()).unwrap_or_else(fresh);
    if call.is_top() {
        let _ = run.top.set(agent_state.clone());
    }
    let ceiling = run.ceiling_for(caller.ceiling, &spec.name, &call.info.id, &spec.limits);
    let offered = plan.offered_within(call.access);
    let context = own_context(run, call, &plan, spec, &agent_state);
    Ok(AgentFrame { plan, ceiling, instances, agent_state, offered, context })
}

/// The context of an agent's tools: that of the run, and what belongs to this call alone.
fn own_context(
    run: &RunState,
    call: &LiveCall,
    plan: &Plan,
    spec: &AgentSpec,
    agent_state: &AgentState,
) -> Arc<Context> {
    if plan.reads_descriptors {
        let parents = call.callers_frame().agent_state.descriptors.get().filter(|_| call.fork);
        let reader = plan.reader.as_ref().map_or(READER, Name::as_str);
        let fresh = || Descriptors::read_by(reader, spec.descriptors.clone(), run.shared.contents.clone());
        // A table that the embedder provides is that of the agent that it calls, and not of those below.
        let provided = run.options.context.get::<Descriptors>().filter(|_| call.is_top());
        let provided = provided.map(|provided| Descriptors::clone(&provided));
        let own = || provided.unwrap_or_else(|| parents.map_or_else(fresh, Descriptors::fork));
        agent_state.descriptors.get_or_init(own);
    }
    let common = &run.options.context;
    if agent_state.descriptors.get().is_none() && spec.programs.is_empty() {
        return common.clone();
    }
    let context = Context::clone(common).with(LinkedPrograms(spec.programs.as_slice().into()));
    Arc::new(match agent_state.descriptors.get() {
        Some(descriptors) => context.with(descriptors.clone()),
        None => context,
    })
}

/// An agent that its own time limit ended has failed; its caller goes on.
fn timed_out_or(performed: StepResult, run: &RunState, call: &LiveCall) -> StepResult {
    let caller_goes_on = call.parent.as_ref().is_some_and(|parent| !parent.cancel.is_cancelled());
    if matches!(performed, Err(Halt::Interrupted)) && call.timed_out.get().is_some() && caller_goes_on {
        if call.is_top() && run.options.limits.time == call.time_limit {
            let message = "the run took longer than its limit of running time";
            return Ok(Outcome::Failed(Failure::new(FailureKind::Limit, message)));
        }
        let message = format!("agent `{}` took longer than its time limit", call.name);
        return Ok(Outcome::Failed(Failure::new(FailureKind::TimedOut, message)));
    }
    performed
}

/// Ends the call when its time limit is reached.
struct Alarm(Option<tokio::task::AbortHandle>);

impl Alarm {
    fn set(call: &Arc<LiveCall>) -> Self {
        let (Some(limit), Some(watch)) = (call.time_limit, call.watch.clone()) else { return Self(None) };
        let call = call.clone();
        let task = tokio::spawn(async move {
            watch.reached(limit).await;
            let _ = call.timed_out.set(());
            call.cancel.cancel();
        });
        Self(Some(task.abort_handle()))
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// What a turn leads to.
enum Next {
    Turn,
    End(Outcome),
}

async fn converse(
    scope: &RunScope,
    call: &Arc<LiveCall>,
    frame: &Arc<AgentFrame>,
    step: &Step,
) -> StepResult {
    match open(&scope.run, call, frame, step).await {
        Ok(()) => {}
        Err(StepError::Refused(failure)) => return Ok(Outcome::Failed(failure)),
        Err(StepError::Halted(halt)) => return Err(halt),
    }
    server_tools::settle(scope, call, frame).await?;
    let mut conversation = AgentLoop { scope, call, frame, turn: 0, repairs: 0, paused: String::new() };
    let limit = conversation.turn_limit();
    while conversation.turn < limit {
        conversation.turn += 1;
        if let Next::End(outcome) = conversation.take_turn().await? {
            return Ok(outcome);
        }
    }
    let turns = counted(limit, "turn");
    let message = format!("agent `{}` used its {turns} without an answer", call.name);
    Ok(Outcome::Failed(
        Failure::new(FailureKind::Limit, message)
            .with_hint("raise the limit of turns, or give it less to do"),
    ))
}

/// Opens the toolsets of an agent call and begins its conversation.
async fn open(
    run: &RunState,
    call: &Arc<LiveCall>,
    frame: &Arc<AgentFrame>,
    step: &Step,
) -> Result<(), StepError> {
    let opened = frame.instances.open_all(&opener(run, call, call, frame)).await;
    if call.cancel.is_cancelled() {
        return Err(Halt::Interrupted.into());
    }
    opened?;
    if call.fork {
        return Ok(fork::begin(call, frame, &step.payload).await?);
    }
    prompt::instruct(frame, &step.payload)?;
    let opening = match prompt::opening(run, call, frame, step).await {
        Ok(opening) => opening,
        Err(_) if call.cancel.is_cancelled() => return Err(Halt::Interrupted.into()),
        Err(failure) => return Err(failure.into()),
    };
    let mut conversation_state = frame.agent_state.conversation_state.lock().await;
    // What the user says now may be just what makes a failing call succeed.
    frame.agent_state.repeats.lock().reset();
    match opening {
        Opening::New(message) => {
            let message = conversation_state.with_note(message);
            conversation_state.append(message, frame.plan.shows_positions);
        }
        // They show their numbers already.
        Opening::Recorded(messages) => {
            messages.into_iter().for_each(|message| conversation_state.conversation.push(message));
        }
    }
    Ok(())
}

struct AgentLoop<'a> {
    scope: &'a RunScope,
    call: &'a Arc<LiveCall>,
    frame: &'a Arc<AgentFrame>,
    turn: u32,
    repairs: u32,
    /// What the model said before its provider paused.
    paused: String,
}

impl AgentLoop<'_> {
    fn turn_limit(&self) -> u32 {
        let own = self.frame.plan.spec.as_ref().and_then(|spec| spec.limits.turns);
        let run = self.scope.run.options.limits.turns;
        match (own, run) {
            (Some(own), Some(run)) => own.min(run),
            (own, run) => own.or(run).unwrap_or(DEFAULT_TURNS),
        }
    }

    /// One model request and what follows from it.
    async fn take_turn(&mut self) -> Result<Next, Halt> {
        let response = match self.ask().await {
            Ok(response) => response,
            Err(StepError::Refused(failure)) => return Ok(Next::End(Outcome::Failed(failure))),
            Err(StepError::Halted(halt)) => return Err(halt),
        };
        let calls: Vec<&ToolCall> = response.message.tool_calls().collect();
        match response.stop {
            StopReason::Refusal => Ok(Next::End(refused(&response))),
            StopReason::Pause if calls.is_empty() => self.go_on(&response).await,
            StopReason::Other(ref word) if calls.is_empty() && is_empty(&response) => {
                self.ask_anew(word).await
            }
            _ if calls.is_empty() => {
                self.note_ignored_choice();
                self.conclude(&response).await
            }
            StopReason::ToolUse | StopReason::EndTurn | StopReason::StopSequence => {
                self.dispatch(&response, &calls).await
            }
            // Calls are run only from a message that ended properly.
            StopReason::MaxTokens | StopReason::Pause | StopReason::Other(_) => self.cut_off(&response).await,
        }
    }

    /// Says that a server ignored a forced tool choice. After the first turn the model may answer.
    fn note_ignored_choice(&self) {
        let spec = self.frame.plan.spec.as_ref().filter(|_| self.turn == 1);
        let (expected, it) = match spec.and_then(|spec| spec.settings.tool_choice.as_ref()) {
            Some(ToolChoice::Tool(name)) => (format!("`{name}`"), "it"),
            Some(ToolChoice::Required) => ("a tool".to_owned(), "one"),
            _ => return,
        };
        let text =
            format!("the model answered without calling {expected}, although `tool_choice` asks for {it}");
        self.scope.run.notice(&self.call.info, text);
    }

    async fn ask(&self) -> Result<Arc<ModelResponse>, StepError> {
        let key = self.call.info.id.child(format_args!("t{}/model", self.turn));
        let head = self.head_at(&key).await;
        let kind = StepKind::Model { head, turn: self.turn };
        let step = self.step(key, kind, self.call.name.clone(), self.call.input.clone(), Effect::Idempotent);
        Ok(self.scope.perform(step).await?.into_response()?)
    }

    /// Returns the history that a request continues: the recorded one, if the request is recorded.
    async fn head_at(&self, request: &Key) -> Head {
        let run = &self.scope.run;
        let mut conversation_state = self.frame.agent_state.conversation_state.lock().await;
        let recorded = run.replay.as_ref().and_then(|replay| replay.request(request));
        if recorded.is_some_and(|recorded| conversation_state.adopt(recorded)) && run.mark_adopted() {
            let text = "this program would send other messages now than those of the record; the recorded ones are used";
            run.notice(&self.call.info, text.to_owned());
        }
        conversation_state.conversation.head()
    }

    fn step(&self, key: Key, kind: StepKind, name: Name, payload: Payload, effect: Effect) -> Step {
        Step { key, call: self.call.info.id.clone(), kind, name, payload, effect }
    }

    async fn append(&self, messages: impl IntoIterator<Item = Arc<Message>>) {
        let mut conversation_state = self.frame.agent_state.conversation_state.lock().await;
        messages
            .into_iter()
            .for_each(|message| conversation_state.append(message, self.frame.plan.shows_positions));
    }

    /// Lets a provider go on that paused. What was said so far belongs to the answer.
    async fn go_on(&mut self, response: &ModelResponse) -> Result<Next, Halt> {
        self.paused.push_str(&response.message.text());
        self.append([response.message.clone()]).await;
        Ok(Next::Turn)
    }

    /// Asks again where the provider ended a message for a reason of its own, and nothing came of it.
    async fn ask_anew(&mut self, word: &str) -> Result<Next, Halt> {
        self.repairs += 1;
        if self.repairs > REPAIRS {
            let message = format!("the model stopped (`{word}`) without an answer");
            return Ok(Next::End(Outcome::Failed(Failure::new(FailureKind::Model, message))));
        }
        self.scope
            .run
            .notice(&self.call.info, format!("the model stopped (`{word}`) without an answer; asking again"));
        Ok(Next::Turn)
    }

    /// A call from a message that did not end properly is neither run nor sent back.
    async fn cut_off(&mut self, response: &ModelResponse) -> Result<Next, Halt> {
        let whole = response.message.parts.iter().filter(|part| !matches!(part, Part::ToolCall(_))).cloned();
        let parts: Vec<Part> = whole.collect();
        if !parts.is_empty() {
            let message = Message { parts, ..Message::clone(&response.message) };
            self.append([Arc::new(message)]).await;
        }
        self.ask_to_fix(CUT_OFF).await
    }

    /// Tells the model what to fix, a bounded number of times.
    async fn ask_to_fix(&mut self, text: &str) -> Result<Next, Halt> {
        self.repairs += 1;
        if self.repairs > REPAIRS {
            let message = format!("agent `{}` did not give a usable answer: {text}", self.call.name);
            return Ok(Next::End(Outcome::Failed(Failure::new(FailureKind::Output, message))));
        }
        self.append([Arc::new(Message::user(text))]).await;
        Ok(Next::Turn)
    }

    fn output_schema(&self) -> Option<&Schema> {
        self.frame.plan.spec.as_ref().and_then(|spec| spec.output.as_ref())
    }

    /// The model is done: with text, or with a value in text.
    async fn conclude(&mut self, response: &ModelResponse) -> Result<Next, Halt> {
        self.append([response.message.clone()]).await;
        let text = std::mem::take(&mut self.paused) + &response.message.text();
        self.keep_references(&text);
        // The schema is that of the agent's own answer; its forks tell it what they found.
        let Some(schema) = self.output_schema().filter(|_| !self.call.fork) else {
            if let Some(message) = remark(response, &text) {
                self.scope.run.notice(&self.call.info, message);
            }
            let attachments = made_by_the_model(response);
            return Ok(Next::End(Outcome::Value(Output { attachments, ..Output::text(text) })));
        };
        match value_in(&text, schema) {
            Ok(value) => Ok(Next::End(Outcome::Value(value))),
            Err(problem) => {
                let is_cut = response.stop == StopReason::MaxTokens;
                let problem = if is_cut { CUT_ANSWER.to_owned() } else { problem };
                let message =
                    format!("the answer must be a JSON value that fits the schema, nothing else: {problem}");
                self.ask_to_fix(&message).await
            }
        }
    }

    /// Runs the tool calls of a turn and appends their results, all at once.
    async fn dispatch(&mut self, response: &ModelResponse, calls: &[&ToolCall]) -> Result<Next, Halt> {
        let text = std::mem::take(&mut self.paused) + &response.message.text();
        if let ([only], Some(schema)) = (calls, self.output_schema())
            && only.name == FINAL_ANSWER
        {
            let answer = accept_answer(only, schema);
            return self.take_answer(response, only, answer).await;
        }
        self.keep_references(&text);
        let requests: Vec<CallRequest<'_>> =
            calls.iter().enumerate().map(|(index, call)| self.request(index, call)).collect();
        let called = self.perform_calls(response, &requests).await;
        *self.frame.agent_state.turn.lock() = None;
        match called {
            Called::Answered(results) => {
                self.append([response.message.clone(), Arc::new(Message::results(results))]).await;
                self.frame.agent_state.repeats.lock().end_turn();
                Ok(Next::Turn)
            }
            Called::Jumped(position, jump) => {
                control::go_back(
                    &mut *self.frame.agent_state.conversation_state.lock().await,
                    position,
                    &jump,
                );
                Ok(Next::Turn)
            }
            // A session goes on after this turn, and its model must know what was done.
            Called::Stopped(stopped, results) => {
                self.append([response.message.clone(), Arc::new(Message::results(results))]).await;
                stopped.map(|failure| Next::End(Outcome::Failed(failure)))
            }
        }
    }

    /// Keeps what the model gave a name, for this turn's calls and for later ones.
    fn keep_references(&self, text: &str) {
        if let Some(descriptors) = self.frame.agent_state.descriptors.get()
            && let Err(failure) = descriptors.keep_references(text)
        {
            self.scope.run.notice(&self.call.info, format!("a reference was not kept: {failure}"));
        }
    }

    async fn take_answer(
        &mut self,
        response: &ModelResponse,
        call: &ToolCall,
        answer: Result<Output, String>,
    ) -> Result<Next, Halt> {
        let (text, is_error) = match &answer {
            Ok(_) => ("accepted".into(), false),
            Err(problem) => (problem.as_str().into(), true),
        };
        let result = ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            text,
            is_error,
            attachments: Vec::new(),
        };
        self.append([response.message.clone(), Arc::new(Message::results([result]))]).await;
        match answer {
            Ok(output) => Ok(Next::End(Outcome::Value(output))),
            Err(problem) => {
                let message = format!("call `{FINAL_ANSWER}` again with a value that fits: {problem}");
                self.ask_to_fix(&message).await
            }
        }
    }
}

/// What a person should know about an answer.
fn remark(response: &ModelResponse, text: &str) -> Option<String> {
    match response.stop {
        StopReason::MaxTokens => Some(cut_off_at_limit(&response.usage)),
        _ if text.trim().is_empty() && is_empty(response) => Some("the answer is empty".to_owned()),
        _ => None,
    }
}

/// Names the length and the setting. The limit itself may be that of the setting, the budget, the model or its server.
fn cut_off_at_limit(usage: &Usage) -> String {
    let after = match usage.output {
        0 => String::new(),
        output => format!(" after {}", counted(output, "token")),
    };
    format!("the answer was cut off at the output limit{after}; `max_tokens` in `model_settings` sets it")
}

/// Returns whether a message holds nothing for anybody.
fn is_empty(response: &ModelResponse) -> bool {
    response.message.text().trim().is_empty()
        && !response.message.parts.iter().any(|part| matches!(part, Part::Attachment(_)))
}

/// The images and files that the model made.
fn made_by_the_model(response: &ModelResponse) -> Vec<Attachment> {
    let attachments = response.message.parts.iter().filter_map(|part| match part {
        Part::Attachment(attachment) => Some(attachment.clone()),
        _ => None,
    });
    attachments.collect()
}

fn refused(response: &ModelResponse) -> Outcome {
    let said = response.message.text();
    let origin = response.message.origin.as_ref();
    let reason = origin.and_then(|origin| origin.data.get("refusal")?.as_str());
    let stopped = origin.and_then(|origin| origin.data.get("stop_reason")?.as_str());
    let message = [said.trim(), reason.unwrap_or_default(), stopped.unwrap_or_default()];
    let message =
        message.into_iter().find(|message| !message.is_empty()).map(|message| format!(": {message}"));
    let message = message.unwrap_or_default();
    Outcome::Failed(Failure::new(FailureKind::Model, format!("the model refused{message}")))
}

fn accept_answer(call: &ToolCall, schema: &Schema) -> Result<Output, String> {
    let mut value = parse_strict(&call.arguments).map_err(|error| ArgumentsError::from(error).to_string())?;
    if is_wrapped(schema) {
        value = value
            .get_mut(WRAPPED)
            .map(serde_json::Value::take)
            .ok_or_else(|| format!("`{WRAPPED}` is missing"))?;
    }
    accept_value(value, schema)
}

fn value_in(text: &str, schema: &Schema) -> Result<Output, String> {
    let trimmed = text.trim();
    let fenced = trimmed.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let body = fenced.map_or(trimmed, |rest| rest.trim_start_matches("json").trim());
    let value = parse_strict(body).map_err(|error| format!("the answer is not valid JSON: {error}"))?;
    accept_value(value, schema)
}

fn accept_value(value: serde_json::Value, schema: &Schema) -> Result<Output, String> {
    schema
        .accept(value)
        .map(|accepted| Output::json(accepted.value))
        .map_err(|problems| join_problems(&problems))
}
