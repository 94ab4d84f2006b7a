//! `fork`: several children go on from here side by side, each with a task of its own.

use llm_do_core::{CallContext, Failure, Output, SchemaError, ToolError, ToolReply};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Act, wrong};

const DESCRIPTION: &str = "Makes children of yourself, one for each prompt. Each has this conversation so far, does what \
    its prompt says on its own and answers; they run side by side and do not see each other. The answer is a list in the \
    order of the prompts. Use it for parts of a task that need what you know already.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What each child shall do and answer.
    prompts: Vec<String>,
}

pub(super) fn tool(most: usize) -> Result<Act, SchemaError> {
    let act = Act::new("fork", DESCRIPTION, move |arguments, call| fork(arguments, call, most))?;
    // Alone among the calls of a turn, so that children know the answers to those before it.
    Ok(act.define(|definition| definition.sequential = true))
}

async fn fork(arguments: Arguments, call: CallContext, most: usize) -> ToolReply {
    let prompts = arguments.prompts;
    if prompts.is_empty() {
        return Err(wrong("`prompts` is empty: a fork needs one prompt for each child"));
    }
    if prompts.iter().any(|prompt| prompt.trim().is_empty()) {
        return Err(wrong("a prompt is empty, so its child would have nothing to do"));
    }
    if prompts.len() > most {
        let message = format!("{} children are more than the {most} that are permitted", prompts.len());
        return Err(wrong(message).with_hint("fork several times, or give each child more to do"));
    }
    let children = call.fork(prompts).await.map_err(ToolError::from_failure)?;
    let answers: Vec<Value> = children.into_iter().enumerate().map(|(id, child)| answer(id, child)).collect();
    Ok(Output::json(Value::Array(answers)))
}

fn answer(id: usize, child: Result<Output, Failure>) -> Value {
    match child {
        Ok(output) => json!({"id": id, "message": output.to_value()}),
        Err(failure) => json!({"id": id, "error": true, "message": failure.to_string()}),
    }
}
