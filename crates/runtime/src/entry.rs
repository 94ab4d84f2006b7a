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
    function: Box<EntryFunction>,
}

type EntryFunction = dyn Fn(Value, CallContext) -> BoxFuture<'static, ToolReply> + Send + Sync;

/// The input of an entry that takes a text, as agents do by default.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
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
        let mut definition = ToolDefinition::new(name, description, Schema::of::<I>()?);
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
            tool: Arc::new(EntryTool { definition: Arc::new(definition), function: Box::new(function) }),
        })
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
        (self.function)(input.value().clone(), call.clone())
    }
}
