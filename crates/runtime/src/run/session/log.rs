//! Writes what becomes of a session: when it begins, at each turn, and when the user goes back.
//!
//! What the next turn begins with is written as a change from what was written before, so that a session of many turns
//! is recorded in as much space as its messages take.

use std::collections::HashSet;
use std::sync::Arc;

use llm_do_core::{
    CallInfo, Clock, Conversation, Digest, Event, EventBody, InheritedTurn, Key, MeasuredLength, ModelChoice,
    Name, RecordedDescriptor, RunId, SessionState,
};

use crate::descriptors::{Descriptors, Fd, StoredContent};
use crate::record::store::{Durability, RunWriter, StoreError};
use crate::state::live::{AgentState, ConversationState, UserTurn};

/// The events of one session, from where they are.
pub(crate) struct SessionLog {
    writer: Arc<dyn RunWriter>,
    clock: Arc<dyn Clock>,
    root: Arc<CallInfo>,
    next_seq: u64,
    recorded: WrittenState,
}

/// What was written of the state of a session.
#[derive(Debug, Default)]
pub(crate) struct WrittenState {
    pub(crate) conversation: Conversation,
    pub(crate) turns: Vec<u32>,
    /// The names and digests of the file descriptors.
    pub(crate) descriptors: Vec<(String, Digest)>,
    /// The texts of file descriptors that were written.
    pub(crate) texts: HashSet<Digest>,
}

impl SessionLog {
    /// A log that goes on behind what was written.
    pub(crate) fn new(
        session: RunId,
        writer: Arc<dyn RunWriter>,
        clock: Arc<dyn Clock>,
        next_seq: u64,
        recorded: WrittenState,
    ) -> Self {
        let root = CallInfo {
            run: session,
            id: Key::root(),
            parent: None,
            depth: 0,
            path: "".into(),
            agent: "".into(),
        };
        Self { writer, clock, root: Arc::new(root), next_seq, recorded }
    }

    /// Returns the session.
    pub(crate) fn session(&self) -> RunId {
        self.root.run
    }

    /// Notes a turn that is in the conversation from now on.
    pub(crate) fn add_turn(&mut self, ordinal: u32) {
        self.recorded.turns.push(ordinal);
    }

    /// Hands an event to the record. It is written before everything that is handed over later.
    pub(crate) fn note(&mut self, body: EventBody) -> Result<(), StoreError> {
        let event = self.event(body);
        self.writer.enqueue(&event, Durability::Buffered).map(drop)
    }

    /// Writes an event, and waits until it is safe.
    pub(crate) async fn commit(&mut self, body: EventBody) -> Result<(), StoreError> {
        let event = self.event(body);
        self.writer.enqueue(&event, Durability::Process)?.await
    }

    fn event(&mut self, body: EventBody) -> Arc<Event> {
        let seq = Some(self.next_seq);
        self.next_seq += 1;
        Arc::new(Event { seq, key: Key::root(), time: self.clock.now(), call: self.root.clone(), body })
    }

    /// Describes what the next turn begins with, as a change from what was written, and takes it as written.
    pub(crate) async fn state_of(&mut self, agent_state: &AgentState) -> SessionState {
        let conversation_state = agent_state.conversation_state.lock().await;
        let conversation = &conversation_state.conversation;
        let kept = common_length(&self.recorded.conversation, conversation);
        let messages = conversation.messages()[kept..].to_vec();
        self.recorded.conversation = conversation.clone();
        SessionState {
            kept,
            messages,
            head: conversation.head(),
            dropped_turns: self.dropped_turns(&conversation_state),
            shown: conversation_state.announced,
            shown_kept: conversation_state.kept,
            introduced: conversation_state.introduced,
            instructions: agent_state.instructions.get().cloned(),
            server_tools: agent_state.server_tools.get().cloned(),
            tuned: agent_state.tuned.lock().clone(),
            chosen: agent_state.chosen.lock().as_ref().and_then(named),
            answered: conversation_state.answered.clone(),
            note: conversation_state.note.clone(),
            measured: conversation_state.measured.as_ref().map(|measured| MeasuredLength {
                model: measured.model.clone(),
                tokens: measured.tokens,
                messages: measured.messages,
            }),
            descriptors: self.descriptors_of(agent_state.descriptors.get()),
        }
    }

    fn dropped_turns(&mut self, conversation_state: &ConversationState) -> Vec<u32> {
        let is_there = |ordinal: &u32| conversation_state.turns.iter().any(|turn| turn.ordinal == *ordinal);
        let dropped = self.recorded.turns.iter().filter(|ordinal| !is_there(ordinal)).copied().collect();
        self.recorded.turns.retain(is_there);
        dropped
    }

    /// Describes the file descriptors, if they are not those that were written last.
    fn descriptors_of(&mut self, table: Option<&Descriptors>) -> Option<Vec<RecordedDescriptor>> {
        let open = table.map(Descriptors::open).unwrap_or_default();
        let names: Vec<(String, Digest)> =
            open.iter().map(|fd| (fd.info.id.to_string(), fd.content.digest())).collect();
        if names == self.recorded.descriptors {
            return None;
        }
        self.recorded.descriptors = names;
        Some(self.described(&open))
    }

    /// Describes file descriptors, each with its text if that was not written before.
    fn described(&mut self, open: &[Fd]) -> Vec<RecordedDescriptor> {
        let describe = |fd: &Fd| {
            let digest = fd.content.digest();
            let is_new = self.recorded.texts.insert(digest);
            RecordedDescriptor {
                name: fd.info.id.to_string(),
                source: fd.info.source.as_str().to_owned(),
                digest,
                text: is_new.then(|| whole_text(&fd.content)).flatten(),
            }
        };
        open.iter().map(describe).collect()
    }

    /// Describes a turn that was taken over from another session.
    pub(crate) fn inherit(&mut self, turn: UserTurn, answer: String) -> InheritedTurn {
        self.add_turn(turn.ordinal);
        let open = turn.descriptors.as_ref().map(Descriptors::open).unwrap_or_default();
        let UserTurn { ordinal, text, position, .. } = turn;
        InheritedTurn { ordinal, text, answer, position, descriptors: self.described(&open) }
    }
}

/// Returns a whole text. One that cannot be read is gone when the session is continued, as if it had been closed.
fn whole_text(content: &StoredContent) -> Option<Arc<str>> {
    content.text(0, content.bytes()).ok().map(Arc::from)
}

/// A model that the program made is not data.
pub(crate) fn named(choice: &ModelChoice) -> Option<Name> {
    match choice {
        ModelChoice::Named(name) => Some(name.clone()),
        ModelChoice::Given(_) => None,
    }
}

/// Returns how many messages two conversations have in common.
fn common_length(one: &Conversation, other: &Conversation) -> usize {
    let most = one.messages().len().min(other.messages().len());
    (0..=most).rev().find(|length| one.head_at(*length) == other.head_at(*length)).unwrap_or_default()
}
