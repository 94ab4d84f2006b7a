//! What an offline model reads from a conversation: which messages are new, and how many turns there were.
//!
//! Everything here depends on the conversation alone, so that a run entered again is answered as before.
//! The history is never walked as a whole, except once by a session that counts turns.

use std::sync::Arc;

use llm_do_core::{Conversation, Message, Part, Role, ToolResult};

/// Returns the messages since the model last spoke.
pub(crate) fn unanswered(conversation: &Conversation) -> &[Arc<Message>] {
    let messages = conversation.messages();
    let spoken = messages.iter().rposition(|message| message.role == Role::Assistant);
    &messages[spoken.map_or(0, |index| index + 1)..]
}

/// Returns the tool results that the model has not answered yet.
pub(crate) fn unanswered_results(conversation: &Conversation) -> impl Iterator<Item = &ToolResult> {
    unanswered(conversation).iter().flat_map(|message| message.tool_results())
}

/// Estimates the tokens of so many bytes: four bytes each, rounded up.
pub(crate) fn estimated_tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

/// Returns the bytes that a message adds to a request, attachments not counted.
pub(crate) fn message_bytes(message: &Message) -> usize {
    message.parts.iter().map(part_bytes).sum()
}

fn part_bytes(part: &Part) -> usize {
    match part {
        Part::Text { text, .. } | Part::Thinking { text, .. } => text.len(),
        Part::ToolCall(call) => call.name.len() + call.arguments.len(),
        Part::ToolResult(result) => result.name.len() + result.text.len(),
        Part::Attachment(_) | Part::Opaque(_) => 0,
    }
}

/// Counts the model's turns in a conversation, looking at each message once.
#[derive(Debug, Default)]
pub(crate) struct TurnCount {
    seen: usize,
    turns: usize,
    /// The newest message that was counted: if it has gone, the conversation went back.
    newest: Option<Arc<Message>>,
}

impl TurnCount {
    /// Returns how many messages of the conversation are the model's.
    pub(crate) fn count(&mut self, conversation: &Conversation) -> usize {
        let messages = conversation.messages();
        if !self.is_prefix_of(messages) {
            *self = Self::default();
        }
        let new = &messages[self.seen..];
        self.turns += new.iter().filter(|message| message.role == Role::Assistant).count();
        self.seen = messages.len();
        self.newest = messages.last().cloned();
        self.turns
    }

    fn is_prefix_of(&self, messages: &[Arc<Message>]) -> bool {
        match (&self.newest, self.seen.checked_sub(1).and_then(|index| messages.get(index))) {
            (None, None) => true,
            (Some(newest), Some(message)) => Arc::ptr_eq(newest, message),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(roles: &[Role]) -> Conversation {
        let message = |role: &Role| Arc::new(Message { role: *role, parts: Vec::new(), origin: None });
        Conversation::from_messages(roles.iter().map(message))
    }

    #[test]
    fn only_messages_after_the_models_last_word_are_unanswered() {
        use Role::{Assistant, User};
        assert_eq!(unanswered(&conversation(&[])).len(), 0);
        assert_eq!(unanswered(&conversation(&[User, User])).len(), 2);
        assert_eq!(unanswered(&conversation(&[User, Assistant, User])).len(), 1);
        assert_eq!(unanswered(&conversation(&[User, Assistant])).len(), 0);
    }

    #[test]
    fn turns_are_counted_anew_when_the_conversation_went_back() {
        use Role::{Assistant, User};
        let mut turns = TurnCount::default();
        let mut talk = conversation(&[User, Assistant, User, Assistant]);
        assert_eq!(turns.count(&talk), 2);
        assert_eq!(turns.count(&talk), 2);
        talk.truncate(1);
        assert_eq!(turns.count(&talk), 0);

        // The same length as before, but another history.
        turns.count(&conversation(&[User, User, User]));
        assert_eq!(turns.count(&conversation(&[User, Assistant, User])), 1);
    }
}
