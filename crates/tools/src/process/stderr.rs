//! `write_stderr`: a line in the error log, for people who read what was done.

use llm_do_core::{CallContext, Effect, Output, SchemaError, ToolReply};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Act, wrong};

const DESCRIPTION: &str = "Writes a line to the error log, which people read beside your answer: what you are doing and \
    why, what was odd, what they should check.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The line.
    message: String,
}

pub(super) fn tool() -> Result<Act, SchemaError> {
    Ok(Act::new("write_stderr", DESCRIPTION, write)?
        .define(|definition| definition.effect = Effect::Idempotent))
}

async fn write(arguments: Arguments, call: CallContext) -> ToolReply {
    if arguments.message.trim().is_empty() {
        return Err(wrong("the message is empty"));
    }
    call.stderr(arguments.message);
    Ok(Output::text("written"))
}
