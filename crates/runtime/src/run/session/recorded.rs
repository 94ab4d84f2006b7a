//! What a session writes into the record, and how it goes on in another process.

use std::collections::HashMap;
use std::sync::Arc;

use llm_do_core::{
    Digest, Event, EventBody, ForkedFrom, Key, ModelChoice, ModelResult, ProjectChanges, ProjectState,
    RecordedDescriptor, Role, RunId, RunStart, SessionStart, Status, TurnEnd, TurnStart, UsageByModel,
};

use super::log::{SessionLog, WrittenState, named};
use super::restored::{RestoredSession, RestoredTurn};
use super::{Current, Session, SessionTurn};
use crate::descriptors::{Descriptors, FdId, FdSource, READER, StoredContent};
use crate::project::plan::Plan;
use crate::record::changes::BUILD;
use crate::record::store::StoreError;
use crate::run::Canceller;
use crate::run::ending::result_of;
use crate::run::report::{RunError, RunReport};
use crate::run::resume::{ResumeError, ResumeOptions, changes, continue_run};
use crate::state::live::{AgentState, ConversationState, Measured, UserTurn};
use crate::state::shared::Shared;

/// How much of an answer lists show.
const MAX_ANSWER_CHARS: usize = 400;

/// A turn that began in a process which did not live to its end.
pub(super) struct CutOffTurn {
    start: TurnStart,
    /// Whether anything of its run was recorded.
    has_run: bool,
}

/// The record of a session, if there is one.
#[derive(Default)]
pub(super) struct SessionRecord {
    /// Writes it, from the first message on.
    log: Option<SessionLog>,
    /// Why it cannot be written any more.
    error: Option<StoreError>,
    /// The session of which it is a copy.
    forked_from: Option<ForkedFrom>,
    cut_off: Option<CutOffTurn>,
    changes: ProjectChanges,
}

impl SessionRecord {
    /// The record of a copy.
    pub(super) fn fork(&self, turn: u32) -> Self {
        let forked_from = self.log.as_ref().map(|log| ForkedFrom { session: log.session(), turn });
        Self { forked_from, ..Self::default() }
    }
}

impl Session {
    /// Returns the id by which a recorded session is continued
    /// ([`Runtime::restore_session`](crate::Runtime::restore_session)); none before its first message.
    pub fn id(&self) -> Option<RunId> {
        self.record.log.as_ref().map(SessionLog::session)
    }

    /// Returns the turn that was cut off when the process that wrote the session ended. [`resume_turn`](Self::resume_turn)
    /// goes on with it, and the next message drops it.
    pub fn cut_off_turn(&self) -> Option<SessionTurn> {
        let turn = &self.record.cut_off.as_ref()?.start;
        Some(SessionTurn { ordinal: turn.ordinal, text: turn.text.clone() })
    }

    /// Returns the run of the turn that was cut off; none if nothing had been recorded of it.
    pub fn cut_off_run(&self) -> Option<RunId> {
        let turn = self.record.cut_off.as_ref()?;
        turn.has_run.then_some(turn.start.run)
    }

    /// Returns what is different from the project with which the last turn was run.
    pub fn changes(&self) -> &ProjectChanges {
        &self.record.changes
    }

    /// Goes on with the turn that was cut off: what is recorded as done is not done again. `watch` gets what cancels it.
    ///
    /// If it cannot be continued, it stays cut off.
    pub async fn resume_turn(
        &mut self,
        resume: ResumeOptions,
        watch: impl FnOnce(Canceller),
    ) -> Result<Result<RunReport, RunError>, ResumeError> {
        let Some(CutOffTurn { start, has_run: true }) = &self.record.cut_off else {
            return Err(ResumeError::NoOpenTurn);
        };
        let start = start.clone();
        let (agent_state, instances) = (self.agent_state.clone(), self.instances.clone());
        let session = self.id();
        let run = continue_run(&self.shared, start.run, resume, |options| {
            options.agent_state = Some(agent_state);
            options.instances = instances;
            options.session = session;
        });
        let run = run.await?;
        self.record.cut_off = None;
        watch(run.canceller());
        self.add_turn(&start).await;
        self.current = Some(Current { run, before: start.position });
        let report = self.finish().await;
        Ok(report.unwrap_or_else(|| unreachable!("the turn was just continued")))
    }

    /// Drops the turn that was cut off: the conversation goes on from where it was before. What its calls have done is
    /// done.
    pub async fn drop_turn(&mut self) {
        let Some(turn) = self.record.cut_off.take() else { return };
        self.write(EventBody::TurnDropped { ordinal: turn.start.ordinal }).await;
    }

    /// Gives the session a name, which lists show.
    pub async fn set_title(&mut self, title: impl Into<String>) {
        self.write(EventBody::SessionTitled { title: title.into() }).await;
    }

    async fn add_turn(&self, turn: &TurnStart) {
        let mut conversation_state = self.agent_state.conversation_state.lock().await;
        let descriptors = self.agent_state.descriptors.get().map(Descriptors::fork);
        let TurnStart { ordinal, text, position, .. } = turn.clone();
        conversation_state.turns.push(UserTurn { ordinal, text, position, descriptors });
    }

    /// Begins to write the session, before its first message.
    pub(super) async fn open_log(&mut self) -> Result<(), StoreError> {
        if let Some(error) = &self.record.error {
            return Err(error.clone());
        }
        if !self.shared.store.is_recording() || self.record.log.is_some() {
            return Ok(());
        }
        let id = self.shared.new_run_id();
        let writer = self.shared.store.begin(id).await?;
        let mut log = SessionLog::new(id, writer, self.shared.clock.clone(), 0, WrittenState::default());
        let earlier = self.earlier_turns().await;
        let ProjectState { project, source, .. } = self.shared.project_state();
        let mut start = SessionStart::new(self.entry.clone(), RunStart::FORMAT);
        start.build = BUILD.to_owned();
        (start.project, start.source) = (project, source);
        start.forked_from = self.record.forked_from.take();
        start.state = log.state_of(&self.agent_state).await;
        start.turns = earlier.into_iter().map(|(turn, answer)| log.inherit(turn, answer)).collect();
        log.note(EventBody::SessionStarted(Box::new(start)))?;
        self.record.log = Some(log);
        Ok(())
    }

    /// The turns that were taken over from another session, each with the beginning of its answer.
    async fn earlier_turns(&self) -> Vec<(UserTurn, String)> {
        let conversation_state = self.agent_state.conversation_state.lock().await;
        let messages = conversation_state.conversation.messages();
        let turns = &conversation_state.turns;
        let ends = turns.iter().skip(1).map(|turn| turn.position).chain([messages.len()]);
        let with_answer = |(turn, end): (&UserTurn, usize)| {
            let said = messages.get(turn.position..end).unwrap_or_default().iter().rev();
            let answer = said.filter(|message| message.role == Role::Assistant).map(|message| message.text());
            (turn.clone(), answer.take(1).map(|answer| beginning(&answer)).collect())
        };
        turns.iter().zip(ends).map(with_answer).collect()
    }

    /// Writes that a turn begins. Its run is written behind that.
    pub(super) fn note_start(&mut self, run: RunId, text: String, position: usize) -> Result<(), StoreError> {
        let Some(log) = &mut self.record.log else { return Ok(()) };
        log.add_turn(self.turns);
        log.note(EventBody::TurnStarted(TurnStart { ordinal: self.turns, run, text, position }))
    }

    /// Writes how a turn ended, and what the next one begins with.
    pub(super) async fn note_end(&mut self, report: &RunReport) {
        self.end_turn(report.id, report.status, beginning(&report.text()), report.usage.clone()).await;
    }

    async fn end_turn(&mut self, run: RunId, status: Status, answer: String, usage: UsageByModel) {
        let Some(log) = &mut self.record.log else { return };
        let state = log.state_of(&self.agent_state).await;
        let ordinal = self.turns;
        self.write(EventBody::TurnEnded(Box::new(TurnEnd { ordinal, run, status, answer, usage, state })))
            .await;
    }

    /// Writes that the user went back to before a turn.
    pub(super) async fn note_going_back(&mut self, turn: u32) {
        let Some(log) = &mut self.record.log else { return };
        let state = Box::new(log.state_of(&self.agent_state).await);
        self.write(EventBody::WentBack { turn, state }).await;
    }

    /// Writes which model the user chose.
    pub(super) async fn note_model(&mut self, model: Option<&ModelChoice>) {
        self.write(EventBody::ModelChosen { model: model.and_then(named) }).await;
    }

    /// Writes an event, and waits until it is safe. A session that cannot be written takes no further message.
    async fn write(&mut self, body: EventBody) {
        let Some(log) = &mut self.record.log else { return };
        if let Err(error) = log.commit(body).await {
            self.record.error = Some(error);
        }
    }

    /// The error of a message that is not sent, as the session cannot be recorded.
    pub(super) fn unrecorded(&self, error: &StoreError) -> RunError {
        let report = RunReport::unrecorded(self.shared.new_run_id());
        RunError::new(report, format!("the session cannot be recorded: {error}"))
    }

    /// Continues a recorded session.
    pub(crate) async fn restore(shared: Arc<Shared>, id: RunId) -> Result<Self, ResumeError> {
        let claimed = shared.store.claim(id).await?;
        let restored = RestoredSession::from_events(&claimed.events)?;
        let restored = restored.ok_or(ResumeError::NoSession { session: id })?;
        let entry = restored.start.entry.clone();
        let agent_state = agent_state_of(&shared, shared.agent(&entry).as_deref(), &restored);
        let (clock, recorded) = (shared.clock.clone(), restored.recorded());
        let log = SessionLog::new(id, claimed.writer, clock, restored.events, recorded);
        let mut session = Self::at(shared, entry, agent_state, restored.last_ordinal);
        session.usage = restored.usage;
        session.record.log = Some(log);
        session.note_lost_instances().await;
        if let Some(turn) = restored.open_turn {
            session.settle_open_turn(turn).await?;
        }
        if let Some(run) = restored.last_run {
            session.record.changes = session.changes_since(run).await?;
        }
        Ok(session)
    }

    /// Begins a copy of a recorded session, which another process may have open.
    pub(crate) async fn fork_recorded(
        shared: Arc<Shared>,
        id: RunId,
        last: Option<u32>,
    ) -> Result<Self, ResumeError> {
        let restored = RestoredSession::from_events(&shared.store.read(id, None).await?)?;
        let restored = restored.ok_or(ResumeError::NoSession { session: id })?;
        let entry = restored.start.entry.clone();
        let agent_state = agent_state_of(&shared, shared.agent(&entry).as_deref(), &restored);
        {
            // The runs of the copy show what those of the other session have not shown.
            let mut conversation_state = agent_state.conversation_state.lock().await;
            let shown = conversation_state.announced;
            conversation_state.kept = conversation_state.kept.or((shown > 0).then_some(shown));
        }
        let mut session = Self::at(shared, entry, agent_state, restored.last_ordinal);
        session.note_lost_instances().await;
        let turns = session.turns().await;
        let last = match last.or_else(|| turns.last().map(|turn| turn.ordinal)) {
            Some(last) if turns.iter().any(|turn| turn.ordinal == last) => last,
            Some(turn) => {
                let turns = turns.iter().map(|turn| turn.ordinal).collect();
                return Err(ResumeError::NoTurn { session: id, turn, turns });
            }
            None => 0,
        };
        if let Some(next) = turns.iter().find(|turn| turn.ordinal > last) {
            // It is there: it was just listed.
            let _ = session.go_back(next.ordinal).await;
        }
        session.record.forked_from = Some(ForkedFrom { session: id, turn: last });
        Ok(session)
    }

    /// What is different from the project of a turn. A turn that was removed from the record tells nothing.
    async fn changes_since(&self, run: RunId) -> Result<ProjectChanges, StoreError> {
        match self.shared.store.read(run, None).await {
            Ok(events) => changes(&self.shared, &events).await,
            Err(StoreError::NotFound { .. }) => Ok(ProjectChanges::default()),
            Err(error) => Err(error),
        }
    }

    /// Has the model told which toolsets lost what they kept.
    async fn note_lost_instances(&self) {
        let (Some(plan), Some(instances)) = (self.shared.agent(&self.entry), &self.instances) else { return };
        let conversation_state = self.agent_state.conversation_state.lock().await;
        let messages = conversation_state.conversation.messages().iter();
        for call in messages.flat_map(|message| message.tool_calls()) {
            let slot = plan.target_for_code(&call.name).and_then(|target| target.slot());
            let is_lost = |slot: &usize| plan.slots[*slot].toolset.survives() == llm_do_core::Survival::Lost;
            if let Some(slot) = slot.filter(is_lost) {
                instances.mark_lost(slot);
            }
        }
    }

    /// Finds out about a turn that has no end in the session: its run may have ended just before the process did.
    async fn settle_open_turn(&mut self, start: TurnStart) -> Result<(), ResumeError> {
        let events = match self.shared.store.read(start.run, None).await {
            Err(StoreError::NotFound { .. }) => Vec::new(),
            read => read?,
        };
        let top = Key::root().child(start.ordinal);
        let is_answer =
            |event: &Arc<Event>| event.key == top && matches!(event.body, EventBody::CallFinished { .. });
        let status = match result_of(&events, start.ordinal) {
            Some((status, _)) => Some(status),
            None if events.iter().any(is_answer) => Some(self.end_run(start.run).await?),
            None => None,
        };
        match status {
            Some(status) => self.absorb(&start, &events, status).await,
            None => {
                let has_run = !events.is_empty();
                self.record.cut_off = Some(CutOffTurn { start, has_run });
            }
        }
        Ok(())
    }

    /// Writes the end of a run in which nothing is left to do.
    async fn end_run(&self, run: RunId) -> Result<Status, ResumeError> {
        let session = self.id();
        let resume = ResumeOptions::default();
        let run = continue_run(&self.shared, run, resume, |options| options.session = session).await?;
        Ok(run.await.map_or_else(|error| error.status(), |report| report.status))
    }

    /// Takes the messages of a turn from the events of its run, which has ended.
    async fn absorb(&mut self, start: &TurnStart, events: &[Arc<Event>], status: Status) {
        self.add_turn(start).await;
        let top = Key::root().child(start.ordinal);
        let mut conversation_state = self.agent_state.conversation_state.lock().await;
        let mut answer = None;
        let mut usage = UsageByModel::default();
        for event in events {
            match &event.body {
                EventBody::ModelRequest { messages, kept, .. } if event.call.id == top => {
                    let shown = kept.unwrap_or(conversation_state.announced);
                    conversation_state.conversation.truncate(shown);
                    messages.iter().for_each(|message| conversation_state.conversation.push(message.clone()));
                    conversation_state.announced = conversation_state.conversation.messages().len();
                    (conversation_state.kept, conversation_state.introduced, answer) = (None, true, None);
                }
                EventBody::ModelResponse { result: ModelResult::Response(response), .. }
                    if event.call.id == top =>
                {
                    answer = Some(response.message.clone());
                }
                EventBody::RunFinished { usage: used, .. } => usage = used.clone(),
                _ => {}
            }
        }
        // Calls without results are nothing that a provider takes.
        let answer = answer.filter(|answer| answer.tool_calls().next().is_none());
        let text = answer.as_ref().map(|answer| answer.text()).unwrap_or_default();
        answer.into_iter().for_each(|answer| conversation_state.conversation.push(answer));
        let length = conversation_state.conversation.messages().len();
        conversation_state.turns.retain(|turn| turn.position < length);
        conversation_state.note = None;
        drop(conversation_state);
        self.usage.merge(&usage);
        self.end_turn(start.run, status, beginning(&text), usage).await;
    }
}

fn beginning(answer: &str) -> String {
    answer.chars().take(MAX_ANSWER_CHARS).collect()
}

/// Makes the state of an agent what it was.
fn agent_state_of(shared: &Shared, plan: Option<&Plan>, restored: &RestoredSession) -> AgentState {
    let state = &restored.state;
    let tables = DescriptorTables::new(shared, plan, restored);
    let open = restored.open_turn.as_ref().map(|turn| turn.ordinal);
    let is_over = |turn: &&RestoredTurn| Some(turn.ordinal) != open;
    let user_turn = |turn: &RestoredTurn| UserTurn {
        ordinal: turn.ordinal,
        text: turn.text.clone(),
        position: turn.position,
        descriptors: tables.table(&turn.descriptors),
    };
    let measured = state.measured.clone().map(|measured| Measured {
        model: measured.model,
        tokens: measured.tokens,
        messages: measured.messages,
    });
    let agent_state = AgentState::with_state(ConversationState {
        conversation: restored.conversation.clone(),
        turns: restored.turns.iter().filter(is_over).map(user_turn).collect(),
        introduced: state.introduced,
        announced: state.shown,
        kept: state.shown_kept,
        measured,
        model_handles: Vec::new(),
        answered: state.answered.clone(),
        note: state.note.clone(),
    });
    if let Some(instructions) = &state.instructions {
        let _ = agent_state.instructions.set(instructions.clone());
    }
    if let Some(tools) = &state.server_tools {
        let _ = agent_state.server_tools.set(tools.clone());
    }
    if let Some(table) = tables.table(&restored.descriptors) {
        let _ = agent_state.descriptors.set(table);
    }
    *agent_state.tuned.lock() = state.tuned.clone();
    *agent_state.chosen.lock() = state.chosen.clone().map(ModelChoice::Named);
    agent_state
}

/// Makes tables of file descriptors again. Their texts are stored once.
struct DescriptorTables<'a> {
    shared: &'a Shared,
    plan: Option<&'a Plan>,
    contents: HashMap<Digest, StoredContent>,
}

impl<'a> DescriptorTables<'a> {
    fn new(shared: &'a Shared, plan: Option<&'a Plan>, restored: &RestoredSession) -> Self {
        let plan = plan.filter(|plan| plan.reads_descriptors);
        let page_size = plan.and_then(|plan| plan.spec.as_ref()).map(|spec| spec.descriptors.page_size);
        let store = |(digest, text): (&Digest, &Arc<str>)| {
            Some((*digest, shared.contents.store(text, page_size?).ok()?))
        };
        Self { shared, plan, contents: restored.texts.iter().filter_map(store).collect() }
    }

    fn table(&self, descriptors: &[RecordedDescriptor]) -> Option<Descriptors> {
        let plan = self.plan?;
        let settings = plan.spec.as_ref()?.descriptors.clone();
        let reader = plan.reader.as_ref().map_or(READER, |reader| reader.as_str());
        let table = Descriptors::read_by(reader, settings, self.shared.contents.clone());
        for recorded in descriptors {
            let Some(content) = self.contents.get(&recorded.digest) else { continue };
            let source = FdSource::from_word(&recorded.source);
            // The table may have become smaller since; the oldest are those that remain.
            let _ = table.add_content(FdId::from(recorded.name.as_str()), content.clone(), source);
        }
        Some(table)
    }
}
