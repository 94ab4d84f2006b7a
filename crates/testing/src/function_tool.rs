//! A tool made from a closure.

use std::future::Future;
use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{Approved, Assessment, CallContext, Payload, Schema, Tool, ToolDefinition, ToolReply};
use serde_json::{Value, json};

/// A tool made from a closure, for tests and benchmarks.
pub struct FunctionTool {
    definition: Arc<ToolDefinition>,
    function: Box<Function>,
    assessor: Option<Box<Assessor>>,
}

type Function = dyn Fn(Value, CallContext) -> BoxFuture<'static, ToolReply> + Send + Sync;
type Assessor = dyn Fn(&Payload) -> Assessment + Send + Sync;

impl FunctionTool {
    /// A tool that takes any object.
    pub fn new<F, Fut>(name: &str, function: F) -> Self
    where
        F: Fn(Value, CallContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ToolReply> + Send + 'static,
    {
        let schema = Schema::new(json!({"type": "object"})).expect("an object schema");
        Self {
            definition: Arc::new(ToolDefinition::new(name, format!("The tool {name}"), schema)),
            function: Box::new(move |input, call| Box::pin(function(input, call))),
            assessor: None,
        }
    }

    /// Changes the definition.
    #[must_use]
    pub fn define(mut self, change: impl FnOnce(&mut ToolDefinition)) -> Self {
        let mut definition = ToolDefinition::clone(&self.definition);
        change(&mut definition);
        self.definition = Arc::new(definition);
        self
    }

    /// Sets the input schema.
    #[must_use]
    pub fn takes(self, schema: Value) -> Self {
        self.define(|definition| definition.input = Schema::new(schema).expect("a usable schema"))
    }

    /// Lets the tool judge its calls.
    #[must_use]
    pub fn assessed(mut self, assessor: impl Fn(&Payload) -> Assessment + Send + Sync + 'static) -> Self {
        self.assessor = Some(Box::new(assessor));
        self
    }

    /// Returns the tool as projects take it.
    pub fn shared(self) -> Arc<dyn Tool> {
        Arc::new(self)
    }
}

impl From<FunctionTool> for Arc<dyn Tool> {
    fn from(tool: FunctionTool) -> Self {
        tool.shared()
    }
}

impl Tool for FunctionTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn assess<'a>(&'a self, input: &'a Payload, _call: &'a CallContext) -> BoxFuture<'a, Assessment> {
        let defined = || Assessment::new(self.definition.approval, self.definition.describe(input));
        Box::pin(async move { self.assessor.as_ref().map_or_else(defined, |assessor| assessor(input)) })
    }

    fn assesses(&self) -> bool {
        self.assessor.is_some()
    }

    fn run<'a>(&'a self, input: Approved, call: &'a CallContext) -> BoxFuture<'a, ToolReply> {
        (self.function)(input.value().clone(), call.clone())
    }
}
