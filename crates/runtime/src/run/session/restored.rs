//! Reads a session from its events.

use std::collections::HashMap;
use std::sync::Arc;

use llm_do_core::{
    Conversation, Digest, Event, EventBody, InheritedTurn, Message, Name, RecordedDescriptor, RunId,
    SessionStart, SessionState, TurnEnd, TurnStart, UsageByModel,
};

use super::log::WrittenState;
use crate::record::store::StoreError;

/// A session, as its events tell it.
pub(crate) struct RestoredSession {
    pub(crate) start: SessionStart,
    /// What the next turn begins with, with all of its messages in `conversation`.
    pub(crate) state: SessionState,
    pub(crate) conversation: Conversation,
    /// The turns that are in the conversation.
    pub(crate) turns: Vec<RestoredTurn>,
    /// The file descriptors.
    pub(crate) descriptors: Arc<Vec<RecordedDescriptor>>,
    /// The texts of all file descriptors that there ever were.
    pub(crate) texts: HashMap<Digest, Arc<str>>,
    /// The number of the last turn.
    pub(crate) last_ordinal: u32,
    /// A turn that began and did not end.
    pub(crate) open_turn: Option<TurnStart>,
    /// The run of the last turn that ended.
    pub(crate) last_run: Option<RunId>,
    pub(crate) usage: UsageByModel,
    pub(crate) events: u64,
}

/// A turn that is in the conversation.
pub(crate) struct RestoredTurn {
    pub(crate) ordinal: u32,
    pub(crate) text: String,
    pub(crate) position: usize,
    /// The file descriptors that there were before it.
    pub(crate) descriptors: Arc<Vec<RecordedDescriptor>>,
}

impl RestoredSession {
    /// Reads a session. `None` if the events are not those of one.
    pub(crate) fn from_events(events: &[Arc<Event>]) -> Result<Option<Self>, StoreError> {
        let Some(first) = events.first() else { return Ok(None) };
        let EventBody::SessionStarted(start) = &first.body else { return Ok(None) };
        let mut reading = Reading::begin(SessionStart::clone(start));
        events.iter().for_each(|event| reading.add(event));
        reading.finish(events.len() as u64).map(Some)
    }

    /// Returns what was written, for the log that goes on behind it.
    pub(crate) fn recorded(&self) -> WrittenState {
        WrittenState {
            conversation: self.conversation.clone(),
            turns: self.turns.iter().map(|turn| turn.ordinal).collect(),
            descriptors: self.descriptors.iter().map(|fd| (fd.name.clone(), fd.digest)).collect(),
            texts: self.texts.keys().copied().collect(),
        }
    }
}

struct Reading {
    session: RestoredSession,
    messages: Vec<Arc<Message>>,
}

impl Reading {
    fn begin(start: SessionStart) -> Self {
        let session = RestoredSession {
            start,
            state: SessionState::default(),
            conversation: Conversation::default(),
            turns: Vec::new(),
            descriptors: Arc::default(),
            texts: HashMap::new(),
            last_ordinal: 0,
            open_turn: None,
            last_run: None,
            usage: UsageByModel::default(),
            events: 0,
        };
        Self { session, messages: Vec::new() }
    }

    fn add(&mut self, event: &Event) {
        match &event.body {
            EventBody::SessionStarted(start) => {
                self.change(&start.state);
                start.turns.iter().for_each(|turn| self.inherit(turn));
            }
            EventBody::TurnStarted(turn) => self.begin_turn(turn),
            EventBody::TurnEnded(end) => self.end_turn(end),
            EventBody::TurnDropped { ordinal } => {
                self.session.turns.retain(|turn| turn.ordinal != *ordinal);
                self.session.open_turn = None;
            }
            EventBody::WentBack { state, .. } => self.change(state),
            EventBody::ModelChosen { model } => self.choose(model.clone()),
            _ => {}
        }
    }

    fn inherit(&mut self, turn: &InheritedTurn) {
        let InheritedTurn { ordinal, text, position, descriptors, .. } = turn.clone();
        let descriptors = self.take_texts(&descriptors);
        self.add_turn(RestoredTurn { ordinal, text, position, descriptors });
    }

    fn begin_turn(&mut self, turn: &TurnStart) {
        let TurnStart { ordinal, text, position, .. } = turn.clone();
        let descriptors = self.session.descriptors.clone();
        self.add_turn(RestoredTurn { ordinal, text, position, descriptors });
        self.session.open_turn = Some(turn.clone());
    }

    fn add_turn(&mut self, turn: RestoredTurn) {
        self.session.last_ordinal = self.session.last_ordinal.max(turn.ordinal);
        self.session.turns.push(turn);
    }

    /// Keeps the texts of file descriptors that are written here, and returns the rest.
    fn take_texts(&mut self, descriptors: &[RecordedDescriptor]) -> Arc<Vec<RecordedDescriptor>> {
        let texts = descriptors.iter().filter_map(|fd| Some((fd.digest, fd.text.clone()?)));
        self.session.texts.extend(texts);
        let without_text = |fd: &RecordedDescriptor| RecordedDescriptor { text: None, ..fd.clone() };
        Arc::new(descriptors.iter().map(without_text).collect())
    }

    fn end_turn(&mut self, end: &TurnEnd) {
        self.session.open_turn = None;
        self.session.last_run = Some(end.run);
        self.session.usage.merge(&end.usage);
        self.change(&end.state);
    }

    fn choose(&mut self, model: Option<Name>) {
        self.session.state.chosen = model;
        self.session.state.answered = None;
    }

    fn change(&mut self, state: &SessionState) {
        self.messages.truncate(state.kept);
        self.messages.extend(state.messages.iter().cloned());
        self.session.turns.retain(|turn| !state.dropped_turns.contains(&turn.ordinal));
        if let Some(descriptors) = &state.descriptors {
            self.session.descriptors = self.take_texts(descriptors);
        }
        self.session.state = SessionState { messages: Vec::new(), ..state.clone() };
    }

    fn finish(self, events: u64) -> Result<RestoredSession, StoreError> {
        let conversation = Conversation::from_messages(self.messages);
        if conversation.head() != self.session.state.head {
            let text = "the messages of the session are not those that were recorded";
            return Err(StoreError::Corrupt(text.to_owned()));
        }
        Ok(RestoredSession { conversation, events, ..self.session })
    }
}
