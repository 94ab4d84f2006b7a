//! The tools `agent_call` and `agent_list`.

use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{
    Access, Approval, Approved, CallContext, CallableAgent, Effect, Name, Output, Schema, SchemaError, Tool,
    ToolDefinition, ToolError, ToolReply,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::define;

const CALL: &str = "Calls an agent by name and returns its answer: one that was created, or any other that you may \
    call. The answer to a name that cannot be called lists the names that can.";
const LIST: &str = "Lists the agents that `agent_call` can call, with what they do and what they take.";

/// Calls agents.
pub(super) struct AgentCall(Arc<ToolDefinition>);

/// What a call takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The name of the agent.
    agent: String,
    /// A text; or the fields of its input, for an agent that declares them.
    input: CallInput,
    /// Paths of files to attach.
    #[serde(default)]
    attachments: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum CallInput {
    Text(String),
    Fields(Map<String, Value>),
}

impl Arguments {
    fn input(self) -> Value {
        let mut fields = match self.input {
            CallInput::Text(text) => Map::from_iter([("input".to_owned(), Value::from(text))]),
            CallInput::Fields(fields) => fields,
        };
        if !self.attachments.is_empty() {
            fields.insert("attachments".to_owned(), json!(self.attachments));
        }
        Value::Object(fields)
    }
}

impl AgentCall {
    pub(super) fn new(toolset: &Name) -> Result<Self, SchemaError> {
        let mut definition = define(toolset, "agent_call", CALL, Schema::for_type::<Arguments>()?);
        definition.access = Access::Read;
        // The agent that is called does what it may do, not what calling it takes.
        definition.ceiling = Some(Access::Admin);
        definition.approval = Approval::PreApproved;
        definition.effect = Effect::Calls;
        Ok(Self(Arc::new(definition)))
    }
}

impl Tool for AgentCall {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.0
    }

    fn assesses(&self) -> bool {
        false
    }

    fn run<'a>(&'a self, input: Approved, call: &'a CallContext) -> BoxFuture<'a, ToolReply> {
        Box::pin(async move {
            let arguments = Arguments::deserialize(input.value())?;
            // By its name alone the call could also be one of a tool.
            let agent = Name::from(arguments.agent.as_str());
            call.find_agent(&agent).map_err(ToolError::from_failure)?;
            call.call(agent, arguments.input()).await.map_err(ToolError::from_failure)
        })
    }
}

/// Lists agents.
pub(super) struct AgentList(Arc<ToolDefinition>);

/// An agent in the list.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    agent: &'a Name,
    description: &'a str,
    /// Whether it was created, and not written by a person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    generated: bool,
    /// What it takes, where that is more than a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a Schema>,
}

impl AgentList {
    pub(super) fn new(toolset: &Name) -> Result<Self, SchemaError> {
        let mut definition = define(toolset, "agent_list", LIST, Schema::object([], []));
        definition.access = Access::Read;
        definition.approval = Approval::PreApproved;
        definition.effect = Effect::Pure;
        Ok(Self(Arc::new(definition)))
    }
}

impl Tool for AgentList {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.0
    }

    fn assesses(&self) -> bool {
        false
    }

    fn run<'a>(&'a self, _input: Approved, call: &'a CallContext) -> BoxFuture<'a, ToolReply> {
        let agents = call.agents();
        let listed: Vec<Listed<'_>> = agents.iter().map(Listed::new).collect();
        Box::pin(std::future::ready(Ok(Output::json(json!({ "agents": listed })))))
    }
}

impl<'a> Listed<'a> {
    fn new(agent: &'a CallableAgent) -> Self {
        let definition = &agent.definition;
        Self {
            agent: &definition.name,
            description: &definition.description,
            generated: agent.generated,
            input: agent.has_own_input.then_some(&definition.input),
        }
    }
}
