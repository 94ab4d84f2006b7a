//! Writes a conversation as Markdown.

use std::sync::Arc;

use llm_do::model::{Message, Part, Role};

/// Returns a conversation as Markdown.
pub(super) fn from_messages(messages: &[Arc<Message>]) -> String {
    let mut text = String::new();
    for message in messages {
        let is_result = |part: &Part| matches!(part, Part::ToolResult(_));
        let who = match message.role {
            Role::Assistant => "Model",
            // Providers want results in a message of the user.
            Role::User if !message.parts.is_empty() && message.parts.iter().all(is_result) => "Tool results",
            Role::User => "You",
        };
        text.push_str(&format!("## {who}\n\n"));
        for part in &message.parts {
            text.push_str(&from_part(part));
        }
    }
    text
}

fn from_part(part: &Part) -> String {
    match part {
        Part::Text { text, .. } => format!("{text}\n\n"),
        Part::Thinking { text, .. } => format!("> {}\n\n", text.replace('\n', "\n> ")),
        Part::ToolCall(call) => format!("Calls `{}`:\n\n~~~~json\n{}\n~~~~\n\n", call.name, call.arguments),
        Part::ToolResult(result) => {
            format!("Result of `{}`:\n\n~~~~\n{}\n~~~~\n\n", result.name, result.text)
        }
        Part::Attachment(attachment) => format!("[{}]\n\n", attachment.name),
        Part::Opaque(block) => format!("[a block of {}]\n\n", block.provider),
    }
}
