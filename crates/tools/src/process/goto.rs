//! `goto`: goes back to an earlier message and goes on from there.

use llm_do_core::{CallContext, Control, Effect, Jump, Output, Role, SchemaError, ToolReply};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Act, wrong};

const DESCRIPTION: &str = "Goes back to an earlier message that you were given, and goes on from there. Messages show \
    their number as `[msg_3]`. Everything after that message is forgotten, your present turn too; what you write as \
    `message` is all that you will know of it, so say what you learned and what to do next. What calls have changed is not \
    undone. Use it to leave a dead end, or to make room after work whose details are no longer needed.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The message to go back to, such as `msg_3`.
    position: String,
    /// What the conversation goes on with.
    message: String,
}

pub(super) fn tool() -> Result<Act, SchemaError> {
    Ok(Act::new("goto", DESCRIPTION, goto)?.define(|definition| {
        definition.control = Some(Control::Goto);
        definition.effect = Effect::Pure;
        definition.sequential = true;
    }))
}

/// Says where to go; whoever runs the conversation does it.
async fn goto(arguments: Arguments, call: CallContext) -> ToolReply {
    let Arguments { position, message } = arguments;
    if message.trim().is_empty() {
        return Err(wrong("the message is empty, so nothing would be known of what was done"));
    }
    let messages = call.inspect().messages;
    let number = position.trim().strip_prefix("msg_").and_then(|number| number.parse::<usize>().ok());
    let Some(number) = number else {
        return Err(
            wrong(format!("`{position}` is not a message")).with_hint("write it as it is shown: `msg_3`")
        );
    };
    let given: Vec<String> = messages
        .iter()
        .enumerate()
        .filter(|(_, message)| message.role == Role::User)
        .map(|(index, _)| format!("msg_{index}"))
        .collect();
    if !messages.get(number).is_some_and(|message| message.role == Role::User) {
        let hint = format!("you can go back to {}", given.join(", "));
        return Err(wrong(format!("`{position}` is not a message that you were given")).with_hint(hint));
    }
    let jump = Jump { position: format!("msg_{number}"), message };
    Ok(Output::json(serde_json::to_value(jump)?))
}
