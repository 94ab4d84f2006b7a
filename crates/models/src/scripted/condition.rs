//! Conditions under which a scripted reply is given.
//!
//! A condition looks at the last message and at the instructions, nothing else: it costs the same however
//! long the conversation is, and it holds again when a run is resumed.

use std::sync::Arc;

use llm_do_core::{Message, ModelRequest, Name, Part};

/// When a reply is given. All its parts must hold.
#[derive(Debug, Clone)]
pub struct Condition(Vec<Test>);

#[derive(Debug, Clone)]
enum Test {
    Contains(Arc<str>),
    ResultOf(Name),
    Instructions(Arc<str>),
}

/// Holds if the last message contains a text, in its own words or in the result of a tool.
pub fn contains(text: impl Into<Arc<str>>) -> Condition {
    Condition(vec![Test::Contains(text.into())])
}

/// Holds if the last message has a result of a tool.
pub fn result_of(tool: impl Into<Name>) -> Condition {
    Condition(vec![Test::ResultOf(tool.into())])
}

/// Holds if the instructions contain a text: limits a reply to one agent.
pub fn instructed(text: impl Into<Arc<str>>) -> Condition {
    Condition(vec![Test::Instructions(text.into())])
}

impl Condition {
    /// Adds another condition, which must hold too.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Returns whether the condition holds for a request.
    pub(crate) fn holds(&self, request: &ModelRequest<'_>) -> bool {
        let last = request.conversation.messages().last();
        self.0.iter().all(|test| match test {
            Test::Contains(text) => last.is_some_and(|message| has_text(message, text)),
            Test::ResultOf(tool) => {
                last.is_some_and(|message| message.tool_results().any(|result| result.name == *tool))
            }
            Test::Instructions(text) => request.instructions.contains(&**text),
        })
    }
}

fn has_text(message: &Message, wanted: &str) -> bool {
    message.parts.iter().any(|part| match part {
        Part::Text { text, .. } => text.contains(wanted),
        Part::ToolResult(result) => result.text.contains(wanted),
        Part::Thinking { .. } | Part::ToolCall(_) | Part::Attachment(_) | Part::Opaque(_) => false,
    })
}
