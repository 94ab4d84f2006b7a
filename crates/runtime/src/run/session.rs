//! Sessions: several turns with memory.
//!
//! A turn is one run. The top agent keeps its conversation and its toolset instances over the turns;
//! children always start empty. A code entry is called once per turn.
//!
//! A session whose runtime has a store is recorded, and goes on in another process
//! ([`Runtime::restore_session`](crate::Runtime::restore_session)).
//!
//! A session can go back to an earlier turn, or be forked: both change the conversation only. What calls have done
//! is done.

mod log;
mod recorded;
mod restored;

use std::sync::Arc;

use llm_do_core::{Failure, FailureKind, Input, Message, ModelChoice, Name, Output, UsageByModel};

use self::recorded::SessionRecord;
use crate::input::prompt::default_prompt;
use crate::run::report::{RunError, RunReport};
use crate::run::resume::existing_turns;
use crate::run::{Canceller, Run, RunBuilder};
use crate::state::fork;
use crate::state::instances::Instances;
use crate::state::live::{AgentState, ConversationState, UserTurn};
use crate::state::shared::Shared;

/// A conversation of several runs.
pub struct Session {
    shared: Arc<Shared>,
    entry: Name,
    agent_state: Arc<AgentState>,
    instances: Option<Arc<Instances>>,
    /// The turn in progress. One whose caller gave it up is awaited before anything else happens.
    current: Option<Current>,
    turns: u32,
    usage: UsageByModel,
    stderr: Vec<String>,
    record: SessionRecord,
}

/// What a user wrote in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTurn {
    /// The number of the turn. Numbers are never used again: those of turns that were dropped are missing.
    pub ordinal: u32,
    /// The text; JSON where the input was more than a text. Attachments are not part of it.
    pub text: String,
}

struct Current {
    run: Run,
    /// How many messages the conversation had before this turn.
    before: usize,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, entry: Name) -> Self {
        Self::at(shared, entry, AgentState::with_state(ConversationState::default()), 0)
    }

    fn at(shared: Arc<Shared>, entry: Name, agent_state: AgentState, turns: u32) -> Self {
        let plan = shared.agent(&entry);
        let instances = plan.map(|plan| Arc::new(Instances::new(&plan)));
        Self {
            shared,
            entry,
            agent_state: Arc::new(agent_state),
            instances,
            current: None,
            turns,
            usage: UsageByModel::default(),
            stderr: Vec::new(),
            record: SessionRecord::default(),
        }
    }

    /// Sends a message and returns the answer of this turn.
    ///
    /// Giving the future up cancels the turn; the next one waits until it has ended in order.
    pub async fn send(&mut self, input: impl Into<Input>) -> Result<RunReport, RunError> {
        self.send_with(input, |run| run).await
    }

    /// Sends a message with options of its own: attachments, approver, subscriber, limits.
    pub async fn send_with(
        &mut self,
        input: impl Into<Input>,
        options: impl FnOnce(RunBuilder) -> RunBuilder,
    ) -> Result<RunReport, RunError> {
        self.send_watched(input, options, |_| ()).await
    }

    /// Sends a message and hands out what cancels its turn, before the turn is over.
    pub async fn send_watched(
        &mut self,
        input: impl Into<Input>,
        options: impl FnOnce(RunBuilder) -> RunBuilder,
        watch: impl FnOnce(Canceller),
    ) -> Result<RunReport, RunError> {
        self.settle().await;
        self.drop_turn().await;
        if let Err(error) = self.open_log().await {
            return Err(self.unrecorded(&error));
        }
        let turn = options(self.turn(input));
        let root = self.shared.root.clone();
        let text = default_prompt(&turn.payload(), root.as_deref());
        let before = self.note_turn(text.clone()).await;
        let id = self.shared.new_run_id();
        if let Err(error) = self.note_start(id, text, before) {
            return Err(self.unrecorded(&error));
        }
        let run = turn.start_as(id);
        watch(run.canceller());
        let guard = CancelOnDrop(Some(run.canceller()));
        self.current = Some(Current { run, before });
        let report = self.finish().await;
        guard.disarm();
        report.unwrap_or_else(|| unreachable!("the turn was just started"))
    }

    /// Calls a tool or agent by name, beside the conversation.
    pub async fn call(&mut self, name: impl Into<Name>, input: impl Into<Input>) -> Result<Output, RunError> {
        let report = RunBuilder::new(self.shared.clone(), name.into(), input.into()).await;
        self.count(&report);
        report.map(|report| report.output.unwrap_or_else(|| Output::text("")))
    }

    /// Returns the messages so far.
    pub async fn messages(&self) -> Vec<Arc<Message>> {
        self.agent_state.conversation_state.lock().await.conversation.messages().to_vec()
    }

    /// Returns what the user wrote so far, as far as it is still in the conversation. A code entry remembers
    /// nothing, so it has no turns.
    pub async fn turns(&self) -> Vec<SessionTurn> {
        let shown = |turn: &UserTurn| SessionTurn { ordinal: turn.ordinal, text: turn.text.clone() };
        self.agent_state.conversation_state.lock().await.turns.iter().map(shown).collect()
    }

    /// Drops a turn and everything after it from the conversation, and returns what the user wrote: the next message
    /// takes its place. A turn that is not there is an error that says which are.
    ///
    /// Texts behind file descriptors are again those that there were before the turn. Nothing else is undone: what
    /// calls have done to files, and what toolset instances keep, stays. What was used stays counted.
    pub async fn go_back(&mut self, turn: u32) -> Result<String, Failure> {
        self.settle().await;
        let agent_state = self.agent_state.clone();
        self.drop_turn().await;
        let mut conversation_state = agent_state.conversation_state.lock().await;
        let Some(found) = conversation_state.turns.iter().find(|other| other.ordinal == turn).cloned() else {
            return Err(no_turn(turn, &conversation_state.turns));
        };
        if found.position == 0 {
            // Instructions that are made from the first message are made anew.
            self.agent_state = Arc::new(fork::fresh_agent_state(&agent_state));
        } else {
            conversation_state.cut(found.position);
            if let (Some(table), Some(before)) = (agent_state.descriptors.get(), &found.descriptors) {
                table.restore(before);
            }
        }
        drop(conversation_state);
        self.note_going_back(turn).await;
        Ok(found.text)
    }

    /// Begins a second conversation that shares the messages so far, which are not copied, and goes its own way from
    /// there: its turns, settings and file descriptors are its own.
    ///
    /// Its toolsets are opened anew with its first turn: what those of this session keep (processes, connections, variables) is
    /// neither shared nor copied. Grants belong to the runtime and hold for both. Usage is counted from 0.
    pub async fn fork(&mut self) -> Session {
        self.settle().await;
        let agent_state = fork::agent_state(&self.agent_state).await;
        let mut copy = Self::at(self.shared.clone(), self.entry.clone(), agent_state, self.turns);
        copy.record = self.record.fork(self.turns);
        copy
    }

    /// Chooses the model of the top agent from the next turn on, also where its file names another; `None` leaves it
    /// to the agent again. The bounds of its `tuning` are not those of a person; `compatible_models` still hold.
    ///
    /// A model that cannot be found makes the turn fail, and another can be chosen.
    pub async fn use_model(&mut self, model: Option<ModelChoice>) {
        self.settle().await;
        self.note_model(model.as_ref()).await;
        *self.agent_state.chosen.lock() = model;
        // The one that answered last has no right to be asked first.
        self.agent_state.conversation_state.lock().await.answered = None;
    }

    /// Returns the model that was chosen for the top agent by its name, in this process or before a restart.
    pub fn chosen_model(&self) -> Option<Name> {
        self.agent_state.chosen.lock().as_ref().map(|chosen| chosen.name().clone())
    }

    /// Returns what all turns and calls used.
    pub fn usage(&self) -> &UsageByModel {
        &self.usage
    }

    /// Returns the lines that calls wrote to their error log.
    pub fn stderr_log(&self) -> &[String] {
        &self.stderr
    }

    /// Ends the conversation and closes its toolset instances. Returns the notices that closing them gave, which belong
    /// to no turn any more.
    pub async fn close(mut self) -> Vec<String> {
        if let Some(current) = &self.current {
            current.run.cancel();
        }
        self.settle().await;
        match self.instances.take() {
            Some(instances) => instances.close().await,
            None => Vec::new(),
        }
    }

    fn turn(&mut self, input: impl Into<Input>) -> RunBuilder {
        self.turns += 1;
        let (agent_state, instances, ordinal, session) =
            (self.agent_state.clone(), self.instances.clone(), self.turns, self.id());
        RunBuilder::new(self.shared.clone(), self.entry.clone(), input.into()).with_options(|options| {
            options.agent_state = Some(agent_state);
            options.instances = instances;
            options.ordinal = ordinal;
            options.session = session;
        })
    }

    /// Notes what the user wrote, and returns how many messages are before it.
    async fn note_turn(&self, text: String) -> usize {
        let mut conversation_state = self.agent_state.conversation_state.lock().await;
        let position = conversation_state.conversation.messages().len();
        let descriptors = self.agent_state.descriptors.get().map(crate::descriptors::Descriptors::fork);
        conversation_state.turns.push(UserTurn { ordinal: self.turns, text, position, descriptors });
        position
    }

    /// Waits for a turn that was given up, so that nothing works on the conversation beside the next one.
    async fn settle(&mut self) {
        let _ = self.finish().await;
    }

    /// Waits for the turn in progress and takes account of it.
    async fn finish(&mut self) -> Option<Result<RunReport, RunError>> {
        let current = self.current.as_mut()?;
        let (report, before) = ((&mut current.run).await, current.before);
        self.current = None;
        if let Err(error) = &report {
            self.forget_unanswered(before).await;
            self.note_early_end(before, error).await;
        }
        self.forget_unsaid().await;
        self.count(&report);
        self.note_end(match &report {
            Ok(report) => report,
            Err(error) => &error.report,
        })
        .await;
        Some(report)
    }

    /// A message that got no reply at all is not kept: the next turn would follow it as if it had. One that the model
    /// itself jumped over is gone already, and something else may have replaced it.
    async fn forget_unanswered(&self, before: usize) {
        let mut conversation_state = self.agent_state.conversation_state.lock().await;
        let is_last = conversation_state.turns.last().is_some_and(|turn| turn.ordinal == self.turns);
        if is_last && conversation_state.conversation.messages().len() == before + 1 {
            conversation_state.conversation.truncate(before);
            conversation_state.announced = conversation_state.announced.min(before);
            conversation_state.introduced &= before > 0;
            conversation_state.measured =
                conversation_state.measured.take().filter(|measured| measured.messages <= before);
        }
    }

    /// Lets the model know, with the next message, how a turn ended of which something is left in the conversation.
    async fn note_early_end(&self, before: usize, error: &RunError) {
        let mut conversation_state = self.agent_state.conversation_state.lock().await;
        if conversation_state.conversation.messages().len() > before {
            conversation_state.note = Some(format!(
                "<system_message>The previous turn was ended before you answered: {error}. The results of its calls \
                 say what was done and what was not.</system_message>"
            ));
        }
    }

    /// A message that did not enter the conversation is not a turn.
    async fn forget_unsaid(&self) {
        let mut conversation_state = self.agent_state.conversation_state.lock().await;
        let length = conversation_state.conversation.messages().len();
        conversation_state.turns.retain(|turn| turn.position < length);
    }

    fn count(&mut self, report: &Result<RunReport, RunError>) {
        let report = match report {
            Ok(report) => report,
            Err(error) => &error.report,
        };
        self.usage.merge(&report.usage);
        self.stderr.extend(report.stderr_log());
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let (current, instances) = (self.current.take(), self.instances.take());
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        self.shared.tasks.spawn(async move {
            if let Some(current) = current {
                current.run.cancel();
                let _ = current.run.await;
            }
            if let Some(instances) = instances {
                instances.close().await;
            }
        });
    }
}

fn no_turn(turn: u32, turns: &[UserTurn]) -> Failure {
    let numbers: Vec<u32> = turns.iter().map(|turn| turn.ordinal).collect();
    let there = existing_turns(&numbers);
    Failure::new(FailureKind::Arguments, format!("there is no turn {turn} to go back to: {there}"))
}

/// Cancels a turn whose caller gave it up.
struct CancelOnDrop(Option<Canceller>);

impl CancelOnDrop {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(canceller) = &self.0 {
            canceller.cancel();
        }
    }
}
