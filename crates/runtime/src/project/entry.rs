//! Entries: code at the root of a run.

use std::future::Future;
use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{
    Access, Approval, Approved, CallContext, Effect, Name, Output, Schema, SchemaError, Tool, ToolDefinition,
    ToolError, ToolReply,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A Rust function at the root of a run, with a typed input.
///
/// Its only effects are the calls that it makes, so on a resume it runs again from its start and its calls
/// are answered from the record.
#[derive(Clone)]
pub struct EntrySpec {
    tool: Arc<EntryTool>,
}

struct EntryTool {
    definition: Arc<ToolDefinition>,
    code: EntryCode,
}

enum EntryCode {
    Function(Box<EntryFunction>),
    Tool(Arc<dyn Tool>),
}

type EntryFunction = dyn Fn(Value, CallContext) -> BoxFuture<'static, ToolReply> + Send + Sync;

/// The input of an entry that takes a text, as agents do by default.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct PromptInput {
    /// The text.
    pub input: String,
    /// Paths of files, or files with their content.
    #[serde(default)]
    pub attachments: Vec<Value>,
}

impl EntrySpec {
    /// An entry made from an async function that takes its typed input and the call.
    pub fn new<I, F, Fut, O>(
        name: impl Into<Name>,
        description: impl Into<String>,
        function: F,
    ) -> Result<Self, SchemaError>
    where
        I: JsonSchema + DeserializeOwned,
        F: Fn(I, CallContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: Into<Output>,
    {
        let mut definition = ToolDefinition::new(name, description, Schema::for_type::<I>()?);
        definition.access = Access::Admin;
        definition.approval = Approval::PreApproved;
        definition.effect = Effect::Calls;
        let function = move |input: Value, call: CallContext| -> BoxFuture<'static, ToolReply> {
            match serde_json::from_value(input) {
                Ok(input) => {
                    let reply = function(input, call);
                    Box::pin(async move { reply.await.map(Into::into) })
                }
                Err(error) => Box::pin(std::future::ready(Err(error.into()))),
            }
        };
        Ok(Self {
            tool: Arc::new(EntryTool {
                definition: Arc::new(definition),
                code: EntryCode::Function(Box::new(function)),
            }),
        })
    }

    /// An entry that is a tool already, such as a function of another language. What its definition says about
    /// access, approval and effect is replaced by what holds for entries.
    pub fn from_tool(tool: Arc<dyn Tool>) -> Self {
        let mut definition = ToolDefinition::clone(tool.definition());
        definition.access = Access::Admin;
        definition.approval = Approval::PreApproved;
        definition.effect = Effect::Calls;
        Self { tool: Arc::new(EntryTool { definition: Arc::new(definition), code: EntryCode::Tool(tool) }) }
    }

    /// Gives the entry another name.
    #[must_use]
    pub fn renamed(&self, name: impl Into<Name>) -> Self {
        let definition = ToolDefinition { name: name.into(), ..ToolDefinition::clone(self.definition()) };
        let code = EntryCode::Tool(self.tool.clone());
        Self { tool: Arc::new(EntryTool { definition: Arc::new(definition), code }) }
    }

    /// Returns what is known about it.
    pub fn definition(&self) -> &ToolDefinition {
        &self.tool.definition
    }

    /// Returns the name.
    pub fn name(&self) -> &Name {
        &self.tool.definition.name
    }

    pub(crate) fn tool(&self) -> Arc<dyn Tool> {
        self.tool.clone()
    }
}

impl Tool for EntryTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn assesses(&self) -> bool {
        false
    }

    fn run<'a>(&'a self, input: Approved, call: &'a CallContext) -> BoxFuture<'a, ToolReply> {
        match &self.code {
            EntryCode::Function(function) => function(input.value().clone(), call.clone()),
            EntryCode::Tool(tool) => tool.run(input, call),
        }
    }
}
