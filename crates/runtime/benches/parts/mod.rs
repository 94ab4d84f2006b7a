//! What the benchmarks run: a model that costs next to nothing, and a tool with an input schema.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use llm_do_core::{
    AgentSpec, Approval, Limits, Message, Model, ModelChoice, ModelError, ModelPart, ModelRequest,
    ModelResponse, ModelSession, ModelStream, Name, Output, Part, Role, StopReason, Tool, ToolCall, Usage,
};
use llm_do_runtime::{Project, Runtime, RuntimeBuilder};
use llm_do_testing::FunctionTool;
use serde_json::{Value, json};

/// A model whose answers are made beforehand, so that what is measured is the runtime.
pub(crate) struct PreparedModel {
    name: Name,
    answers: Arc<[Arc<Message>]>,
}

impl PreparedModel {
    /// Calls a tool once per turn, then answers.
    pub(crate) fn calling(tool: &str, turns: usize, arguments: impl Fn(usize) -> Value) -> Self {
        let calls = (0..turns).map(|turn| call(tool, turn, &arguments(turn)));
        let answers = calls.chain([Message::assistant("done")]).map(Arc::new).collect();
        Self { name: "prepared".into(), answers }
    }
}

fn call(tool: &str, turn: usize, arguments: &Value) -> Message {
    let id = format!("call_{turn}");
    let call = ToolCall { id, name: tool.into(), arguments: arguments.to_string().into(), raw: None };
    Message { role: Role::Assistant, parts: vec![Part::ToolCall(call)], origin: None }
}

impl Model for PreparedModel {
    fn name(&self) -> &Name {
        &self.name
    }

    fn open(&self) -> Box<dyn ModelSession> {
        Box::new(PreparedSession { answers: self.answers.clone(), next: 0 })
    }
}

struct PreparedSession {
    answers: Arc<[Arc<Message>]>,
    next: usize,
}

impl ModelSession for PreparedSession {
    fn request<'a>(
        &'a mut self,
        _request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>> {
        Box::pin(async move {
            let message = self.answers[self.next].clone();
            self.next += 1;
            let is_last = self.next == self.answers.len();
            let stop = if is_last { StopReason::EndTurn } else { StopReason::ToolUse };
            let usage = Usage { requests: 1, input: 100, output: 10, ..Usage::default() };
            let finished = ModelPart::Finished(ModelResponse::new(message, stop, usage));
            Ok(stream::once(std::future::ready(Ok(finished))).boxed())
        })
    }
}

/// A tool with an input schema that does nothing.
pub(crate) fn look(approval: Approval) -> Arc<dyn Tool> {
    let schema = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "lines": {"type": "integer", "minimum": 1}},
        "required": ["path", "lines"],
        "additionalProperties": false
    });
    FunctionTool::new("look", |_, _| async { Ok(Output::text("nothing to see")) })
        .takes(schema)
        .define(|definition| definition.approval = approval)
        .shared()
}

/// One agent, `main`, that has the tool and as many turns as it likes.
pub(crate) fn looking(model: impl Into<ModelChoice>, approval: Approval) -> RuntimeBuilder {
    let agent = AgentSpec::new("main", "Look at everything.").tool("look").model(model);
    let project = Project::builder().agent(agent).tool(look(approval)).build();
    // The runs are longer than the default limits allow.
    let limits = Limits {
        turns: Some(u32::MAX),
        requests: Some(u64::MAX),
        tool_calls: Some(u64::MAX),
        ..Limits::default()
    };
    Runtime::builder(project.expect("a project")).limits(limits)
}

/// The arguments of one call of the tool.
pub(crate) fn arguments(turn: usize) -> Value {
    json!({"path": format!("notes/{turn}.txt"), "lines": 20})
}
