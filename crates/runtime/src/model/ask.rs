//! The model request: reserve, send, stream, book.
//!
//! Retries on another model are inside one step. The conversation is borrowed, never copied. What a request may use is
//! estimated in [`estimate`]; what an attempt did use is counted and booked in [`booking`].

mod booking;
mod estimate;
mod window;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use llm_do_core::{
    AgentSpec, AttemptCost, ContextUse, Delta, EventBody, Failure, FailureKind, Halt, Head, Key, Model,
    ModelChoice, ModelError, ModelErrorKind, ModelPart, ModelRequest, ModelResponse, ModelResult,
    ModelSettings, ModelStream, Money, Name, Outcome, Reserved, StepResult, ToolChoice, ToolDefinition, Tune,
};
use tokio::time::Instant;

use crate::budget::{Amount, Ask, Reservation};
use crate::extension;
use crate::state::control;
use crate::state::live::{AgentFrame, ConversationState, LiveCall, Measured, ModelHandle};
use crate::state::step_error::StepError;
use crate::timing::milliseconds;

use crate::model::server_tools;
use crate::project::rules::Pattern;
use crate::record::store::Durability;
use crate::retry::Retry;
use crate::state::run_state::RunState;
use crate::state::stopwatch::Activity;
pub(crate) use estimate::check_price;
use estimate::message_tokens;
pub(crate) use window::{InputRoom, input_room};

/// Asks the agent's model to continue the history that `head` names.
pub(crate) async fn ask_model(
    run: &Arc<RunState>,
    call: &Arc<LiveCall>,
    key: &Key,
    head: Head,
    turn: u32,
) -> StepResult {
    Asking { run, call, frame: call.frame(), key, turn }.ask(head).await
}

/// Brings the conversation up to a request whose answer is recorded, so that it is not announced again.
pub(crate) async fn already_asked(call: &LiveCall, outcome: &Outcome, model: Option<&Name>) {
    let Outcome::Response(response) = outcome else { return };
    let mut conversation_state = call.frame().agent_state.conversation_state.lock().await;
    let length = conversation_state.conversation.messages().len();
    conversation_state.announced = length;
    conversation_state.introduced = true;
    conversation_state.kept = None;
    let model = model.cloned();
    conversation_state.measured =
        Some(Measured { model, tokens: response.usage.tokens(), messages: length + 1 });
}

struct Asking<'a> {
    run: &'a RunState,
    call: &'a LiveCall,
    frame: &'a AgentFrame,
    key: &'a Key,
    turn: u32,
}

/// Why one attempt gave no answer.
enum AttemptError {
    /// The model failed: another attempt or another model may help.
    Model(ModelError),
    /// The request was not sent.
    Step(StepError),
}

impl From<ModelError> for AttemptError {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl From<StepError> for AttemptError {
    fn from(error: StepError) -> Self {
        Self::Step(error)
    }
}

impl From<Failure> for AttemptError {
    fn from(failure: Failure) -> Self {
        Self::Step(failure.into())
    }
}

impl From<Halt> for AttemptError {
    fn from(halt: Halt) -> Self {
        Self::Step(halt.into())
    }
}

impl Asking<'_> {
    async fn ask(&self, head: Head) -> StepResult {
        let mut conversation_state = self.frame.agent_state.conversation_state.lock().await;
        if conversation_state.conversation.head() != head {
            return Err(Halt::Record("the conversation is not the one that the step names".to_owned()));
        }
        let mut failures: Vec<ModelError> = Vec::new();
        let recorded = self.run.replay.as_ref();
        let mut attempts = recorded.map_or(0, |replay| replay.attempts_at(&self.call.info.id, self.key));
        let mut candidates = self.candidates(&conversation_state).into_iter().peekable();
        while let Some(choice) = candidates.next() {
            let error = match self.ask_until_answered(&mut conversation_state, &choice, &mut attempts).await {
                Ok(response) => {
                    conversation_state.answered = Some(choice.name().clone());
                    return Ok(Outcome::Response(response));
                }
                Err(AttemptError::Step(StepError::Halted(halt))) => return Err(halt),
                Err(AttemptError::Step(StepError::Refused(failure))) if failures.is_empty() => {
                    return Ok(Outcome::Failed(failure));
                }
                Err(AttemptError::Step(StepError::Refused(failure))) => unusable(&failure, choice.name()),
                Err(AttemptError::Model(error)) => error,
            };
            // Another model helps against an outage only. Once there was one, a fallback that cannot be used (no key,
            // no price, a smaller window) must not keep the next one from being asked.
            let is_final = failures.is_empty() && !error.kind.is_outage();
            if let Some(next) = candidates.peek().filter(|_| !is_final) {
                self.run.notice(&self.call.info, format!("{error}; asking `{}` instead", next.name()));
            }
            failures.push(error);
            if is_final {
                break;
            }
        }
        failed(failures)
    }

    /// Asks one model, and again where its failure may pass. `attempts` counts those of the whole step.
    async fn ask_until_answered(
        &self,
        conversation_state: &mut ConversationState,
        choice: &ModelChoice,
        attempts: &mut u32,
    ) -> Result<Arc<ModelResponse>, AttemptError> {
        for own in 1.. {
            let result = self.attempt(conversation_state, choice, *attempts).await;
            *attempts += 1;
            let Err(AttemptError::Model(mut error)) = result else { return result };
            match self.run.shared.retry.after(own, &error, self.run.shared.random.bits()) {
                Retry::After(wait) => self.wait(&error, wait, own + 1).await?,
                Retry::Never(reason) => {
                    let reason = reason.map(|reason| format!(", {reason}")).unwrap_or_default();
                    error.message.push_str(&format!(" (model `{}`{reason})", choice.name()));
                    return Err(AttemptError::Model(error));
                }
            }
        }
        unreachable!("attempts are limited")
    }

    /// Waits before the next attempt and says so.
    async fn wait(&self, error: &ModelError, wait: Duration, next: u32) -> Result<(), Halt> {
        let (seconds, most) = (wait.as_secs_f64(), self.run.shared.retry.attempts);
        let message = format!("{error}; asking again in {seconds:.1} s (attempt {next} of {most})");
        self.run.notice(&self.call.info, message);
        let _running = Activity::running(self.call.watch.as_ref());
        self.unless_cancelled(tokio::time::sleep(wait)).await
    }

    /// The model that a person chose for the conversation, else the one it was tuned to, else the one that the run sets
    /// for the agent it was started for, else the agent's, the run's or the project's; then those to turn to when it is
    /// down. One that answered takes precedence over those that were down.
    fn candidates(&self, conversation_state: &ConversationState) -> Vec<ModelChoice> {
        let spec = self.frame.plan.spec.as_ref();
        let own = spec.and_then(|spec| spec.model.clone());
        let run = || self.run.options.model.clone();
        let project = || self.run.shared.project.model.clone();
        let fallbacks = spec.map(|spec| spec.fallback_models.clone()).unwrap_or_default();
        let tuned = self.frame.agent_state.tuned.lock().model.clone().map(ModelChoice::Named);
        let chosen = self.frame.agent_state.chosen.lock().clone();
        let of_entry = self.run.options.entry_model.clone().filter(|_| self.call.is_top());
        let first = chosen.or(tuned).or(of_entry).or(own).or_else(run).or_else(project);
        let mut candidates: Vec<ModelChoice> =
            first.into_iter().chain(fallbacks).chain(self.run.options.fallbacks.clone()).collect();
        candidates.sort_by_key(|choice| {
            conversation_state.answered.as_ref().is_some_and(|answered| answered != choice.name())
        });
        candidates
    }

    async fn attempt(
        &self,
        conversation_state: &mut ConversationState,
        choice: &ModelChoice,
        attempt: u32,
    ) -> Result<Arc<ModelResponse>, AttemptError> {
        if let Some(spec) = &self.frame.plan.spec {
            check_compatible(spec, choice.name())?;
        }
        let position = self.model_handle(conversation_state, choice)?;
        let model = conversation_state.model_handles[position].model.clone();
        let tools = self.offered(&*model);
        let ask = self.budget_ask(conversation_state, &*model, tools)?;
        self.unless_cancelled(extension::count_request(self.run, self.call)).await??;
        let reservation = self.unless_cancelled(self.reserve(ask)).await??;
        let _leaf = self.run.in_flight.leaf(self.call).await?;
        let context = self.context_use(conversation_state, &*model);
        let wanted = reservation.as_ref().map(Reservation::output).or_else(|| self.wanted_output());
        // An estimate alone is too high for most texts, and would cut answers off.
        let max_output = match context.filter(|_| conversation_state.measured.is_some()) {
            Some(context) => window::fitting_output(context, wanted, model.profile().default_max_output),
            None => wanted,
        };
        let asked = Announced { reservation: reservation.as_ref(), max_output, attempt, context };
        self.announce(conversation_state, model.name(), asked).await?;

        let started = Instant::now();
        // Waiting for the budget, or for a person to extend it, is not running.
        let _running = Activity::running(self.call.watch.as_ref());
        let conversed = self.converse(conversation_state, position, tools, max_output, attempt);
        let result = match self.unless_cancelled(conversed).await {
            Ok(result) => result,
            Err(halt) => {
                let cost = self.run.priced_cost(model.name(), AttemptCost::default());
                self.book(model.name(), &cost, reservation);
                return Err(halt.into());
            }
        };
        let result = self.booked(conversation_state, model.name(), result, reservation);
        let recorded = match &result {
            Ok(response) => ModelResult::Response(response.clone()),
            Err(error) => ModelResult::Failed { error: error.clone() },
        };
        let duration_ms = milliseconds(started);
        let body = EventBody::ModelResponse { model: model.name().clone(), result: recorded, duration_ms };
        self.run.note(self.call, self.key, body);
        if let Ok(response) = &result {
            server_tools::show(self.run, self.call, self.key, &response.server_calls);
        }
        Ok(result?)
    }

    /// Waits for what a cancellation may cut short. Writing the record is not among it: an event that is
    /// given up half-way would keep readers from those behind it.
    async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T, Halt> {
        tokio::select! {
            biased;
            () = self.call.cancel.cancelled() => Err(Halt::Interrupted),
            done = work => Ok(done),
        }
    }

    /// Finds or opens the session with a model.
    fn model_handle(
        &self,
        conversation_state: &mut ConversationState,
        choice: &ModelChoice,
    ) -> Result<usize, ModelError> {
        let is_chosen = |model_handle: &ModelHandle| match choice {
            ModelChoice::Given(model) => Arc::ptr_eq(&model_handle.model, model),
            ModelChoice::Named(name) => model_handle.name == *name,
        };
        if let Some(position) = conversation_state.model_handles.iter().position(is_chosen) {
            return Ok(position);
        }
        let model = match choice {
            ModelChoice::Given(model) => model.clone(),
            ModelChoice::Named(name) => self.run.shared.resolve_model(name)?,
        };
        let mut session = model.open();
        if let Some(replay) = &self.run.replay {
            session.resumed(replay.answers_of(model.name(), Some(&self.call.info.id)));
        }
        conversation_state.model_handles.reserve_exact(1); // few agents ever turn to a second model
        conversation_state.model_handles.push(ModelHandle { name: choice.name().clone(), model, session });
        Ok(conversation_state.model_handles.len() - 1)
    }

    /// Where the provider enforces the schema of the answer, the tool for it is not offered.
    fn offered(&self, model: &dyn Model) -> &[Arc<ToolDefinition>] {
        let offered = &self.frame.offered;
        let output = self.frame.plan.spec.as_ref().and_then(|spec| spec.output.as_ref());
        let has_tools = offered.len() > 1
            || self.frame.agent_state.server_tools.get().is_some_and(|tools| !tools.is_empty());
        match output {
            Some(schema) if model.enforces(schema, has_tools) => &offered[..offered.len() - 1],
            _ => offered,
        }
    }

    /// Reserves what the request may use, asking for more where the budget does not suffice.
    async fn reserve(&self, ask: Option<Ask>) -> Result<Option<Reservation<'_>>, AttemptError> {
        match ask {
            // Boxed: few calls have a budget, and none of the others shall take the memory for one.
            Some(ask) => Box::pin(self.reserve_within(ask)).await.map(Some),
            None => Ok(None),
        }
    }

    async fn reserve_within(&self, ask: Ask) -> Result<Reservation<'_>, AttemptError> {
        loop {
            match self.run.budget.reserve(self.frame.ceiling, ask.clone()).await {
                Ok(reservation) => return Ok(reservation),
                Err(refusal) if extension::extended(self.run, self.call, &refusal).await? => {}
                Err(refusal) => return Err(extension::exhausted(&refusal).into()),
            }
        }
    }

    /// Records that the model is asked, with the messages that are new to readers.
    async fn announce(
        &self,
        conversation_state: &mut ConversationState,
        model: &Name,
        asked: Announced<'_>,
    ) -> Result<(), Halt> {
        let is_first = !std::mem::replace(&mut conversation_state.introduced, true);
        let instructions = self.frame.instructions().filter(|_| is_first).cloned();
        let body = EventBody::ModelRequest {
            model: model.clone(),
            turn: self.turn,
            messages: conversation_state
                .conversation
                .messages()
                .iter()
                .skip(conversation_state.announced)
                .cloned()
                .collect(),
            instructions,
            kept: conversation_state.kept.take(),
            head: conversation_state.conversation.head(),
            max_output: asked.max_output.filter(|_| asked.reservation.is_some()),
            reserved: asked.reservation.map(|reservation| reserved(reservation.amount())),
            attempt: asked.attempt,
            context: asked.context,
        };
        conversation_state.announced = conversation_state.conversation.messages().len();
        self.run.log.commit(&self.call.info, self.key, body, Durability::Process).await
    }

    async fn converse(
        &self,
        conversation_state: &mut ConversationState,
        position: usize,
        tools: &[Arc<ToolDefinition>],
        max_output: Option<u64>,
        attempt: u32,
    ) -> Result<ModelResponse, ModelError> {
        let Some(spec) = &self.frame.plan.spec else {
            return Err(ModelError::new(ModelErrorKind::NoModel, NO_MODEL));
        };
        let model_handle = &mut conversation_state.model_handles[position];
        let native = tools.len() < self.frame.offered.len();
        let settings = self.settings(spec);
        let settings = settings.as_ref().unwrap_or(&spec.settings);
        let request = ModelRequest {
            instructions: self.frame.instructions().map_or("", |text| text),
            conversation: &conversation_state.conversation,
            tools,
            server_tools: self.frame.agent_state.server_tools.get().map_or(&[], Vec::as_slice),
            output_schema: spec.output.as_ref().filter(|_| native && !self.call.fork),
            settings,
            max_output,
        };
        let stream = model_handle.session.request(request).await?;
        self.collect(stream, attempt).await
    }

    /// The settings of the request, where they are not those of the agent: what was tuned; and a tool that must be
    /// used is used once: after the first turn the model may answer.
    fn settings(&self, spec: &AgentSpec) -> Option<ModelSettings> {
        let tune = self.frame.agent_state.tuned.lock().clone();
        let is_forced = matches!(spec.settings.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
        let is_relaxed = is_forced && self.turn > 1;
        (is_relaxed || tune != Tune::default()).then(|| {
            let settings = control::applied(&tune, &spec.settings);
            let tool_choice = settings.tool_choice.clone().filter(|_| !is_relaxed);
            ModelSettings { tool_choice, ..settings }
        })
    }

    /// Passes deltas on and returns the whole answer. A stream that ends without it was cut.
    async fn collect(&self, mut stream: ModelStream<'_>, attempt: u32) -> Result<ModelResponse, ModelError> {
        let mut index = 0;
        while let Some(part) = stream.next().await {
            let delta = |text| Delta { attempt, index, text };
            let body = match part? {
                ModelPart::Finished(response) => return Ok(response),
                ModelPart::Text(text) => EventBody::TextDelta(delta(text)),
                ModelPart::Thinking(text) => EventBody::ThinkingDelta(delta(text)),
                ModelPart::Notice(text) => {
                    self.run.notice(&self.call.info, text);
                    continue;
                }
            };
            self.run.log.pass(&self.call.info, self.key, body);
            index += 1;
        }
        Err(ModelError::new(ModelErrorKind::Truncated, "the stream ended before the answer was complete"))
    }
}

/// What a request says about itself in the record, beside its messages.
struct Announced<'a> {
    reservation: Option<&'a Reservation<'a>>,
    max_output: Option<u64>,
    attempt: u32,
    context: Option<ContextUse>,
}

/// A model that the agent does not name itself must be one that the agent says it works with.
pub(crate) fn check_compatible(spec: &AgentSpec, model: &Name) -> Result<(), ModelError> {
    let own = spec.model.iter().chain(&spec.fallback_models).any(|own| own.name() == model);
    let matches =
        |pattern: &String| Pattern::compile(pattern).is_ok_and(|pattern| pattern.is_match(model.as_str()));
    if spec.compatible_models.is_empty() || own || spec.compatible_models.iter().any(matches) {
        return Ok(());
    }
    let globs = spec.compatible_models.join(", ");
    let message = format!("agent `{}` works with {globs}, and the model is `{model}`", spec.name);
    Err(ModelError::new(ModelErrorKind::NoModel, message))
}

const NO_MODEL: &str = "no model is set: name one in the agent, in the run or in the project";

/// What a reservation keeps, for the record.
fn reserved(amount: Amount) -> Reserved {
    Reserved { tokens: amount.tokens, cost: Money(amount.cost) }
}

/// Says that a fallback was not asked.
fn unusable(failure: &Failure, model: &Name) -> ModelError {
    ModelError::new(ModelErrorKind::NoModel, format!("{failure} (model `{model}`)"))
}

/// A provider that is down ends the run; a request that it refuses is an answer. The first failure is the one to act on,
/// and those of the fallbacks follow it.
fn failed(failures: Vec<ModelError>) -> StepResult {
    let mut failures = failures.into_iter();
    let no_model = || ModelError::new(ModelErrorKind::NoModel, NO_MODEL);
    let mut error = failures.next().unwrap_or_else(no_model);
    for fallback in failures {
        error.message.push_str(&format!("; then the fallback failed: {fallback}"));
    }
    if error.kind.is_outage() {
        return Err(Halt::Provider(error));
    }
    Ok(Outcome::Failed(Failure::new(FailureKind::Model, error.to_string())))
}
