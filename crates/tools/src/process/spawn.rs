//! `spawn`: starts a program, a fresh call of an agent that is linked to this one.

use std::sync::Arc;

use llm_do_core::{
    AgentSpec, CallContext, Name, Program, SchemaError, ToolDefinition, ToolError, ToolReply, parse_strict,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Act, wrong};

pub(super) const NAME: &str = "spawn";

const DESCRIPTION: &str = "Starts a program: an agent of its own, which sees nothing of this conversation, does what \
    the prompt says and answers with text. Without `program` it is another instance of yourself. Texts behind file \
    descriptors can be passed along by their names.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What the program shall do, with everything that it must know.
    prompt: String,
    /// The name of the program; without it, yourself.
    #[serde(default)]
    program: Option<String>,
    /// File descriptors or references that the program can read, such as `fd:3.1` or `ref:plan`.
    #[serde(default)]
    attach_fds: Vec<String>,
    /// Files of the project that the program starts with.
    #[serde(default)]
    preload: Vec<String>,
}

pub(super) fn tool() -> Result<Act, SchemaError> {
    Act::new(NAME, DESCRIPTION, spawn)
}

/// Adds the programs that the agent can start to the description.
pub(super) fn described_for(definition: &Arc<ToolDefinition>, agent: &AgentSpec) -> Arc<ToolDefinition> {
    if agent.programs.is_empty() {
        return definition.clone();
    }
    let lines: Vec<String> = agent.programs.iter().map(line).collect();
    let description = format!("{}\n\nPrograms:\n{}", definition.description, lines.join("\n"));
    Arc::new(ToolDefinition { description, ..ToolDefinition::clone(definition) })
}

fn line(program: &Program) -> String {
    match program.description.as_str() {
        "" => format!("- `{}`", program.name),
        description => format!("- `{}`: {description}", program.name),
    }
}

async fn spawn(arguments: Arguments, call: CallContext) -> ToolReply {
    let Arguments { prompt, program, attach_fds, preload } = arguments;
    if prompt.trim().is_empty() {
        return Err(wrong("the prompt is empty"));
    }
    let Some(agent) = call.agent() else { return Err(wrong("only an agent can start programs")) };
    let name = program_of(agent, program.as_deref().unwrap_or_default().trim())?;
    let attachments: Vec<Value> = attach_fds.into_iter().chain(preload).map(Value::from).collect();
    let input = input_for(&call, &name, prompt, attachments)?;
    call.call(name, input).await.map_err(ToolError::from_failure)
}

/// Returns the agent that a program's name refers to.
fn program_of(agent: &AgentSpec, name: &str) -> Result<Name, ToolError> {
    if name.is_empty() {
        return Ok(agent.name.clone());
    }
    if let Some(program) = agent.programs.iter().find(|program| program.name == name) {
        return Ok(program.agent.clone());
    }
    let known: Vec<&str> = agent.programs.iter().map(|program| program.name.as_str()).collect();
    let hint = match known.is_empty() {
        true => "this agent has no programs; omit `program` to start a copy of yourself".to_owned(),
        false => format!("the programs are `{}`", known.join("`, `")),
    };
    Err(wrong(format!("unknown program `{name}`")).with_hint(hint))
}

/// A program that takes more than a text is given the JSON that the prompt holds.
fn input_for(
    call: &CallContext,
    name: &Name,
    prompt: String,
    attachments: Vec<Value>,
) -> Result<Value, ToolError> {
    let agents = call.agents();
    let takes_text = !agents.iter().any(|agent| agent.definition.name == *name && agent.has_own_input);
    let mut input: Map<String, Value> = match takes_text {
        true => Map::from_iter([("input".to_owned(), prompt.into())]),
        false => object_of(&prompt).map_err(|error| {
            let schema = agents.iter().find(|agent| agent.definition.name == *name);
            let schema = schema.map(|agent| agent.definition.input.source().to_string()).unwrap_or_default();
            wrong(format!("`{name}` takes an object, so the prompt must be its JSON: {error}"))
                .with_hint(format!("it must fit {schema}"))
        })?,
    };
    if !attachments.is_empty() {
        input.insert("attachments".to_owned(), json!(attachments));
    }
    Ok(input.into())
}

/// Reads a prompt that is the JSON of an object.
fn object_of(prompt: &str) -> Result<Map<String, Value>, String> {
    let value = parse_strict(prompt).map_err(|error| error.to_string())?;
    serde_json::from_value(value).map_err(|error| error.to_string())
}
