//! The test model: calls what it is offered, so that a project can be tried without a provider.
//!
//! It keeps nothing in memory. What it answers follows from the request alone, so a run that is entered
//! again goes on as it would have gone.

use futures::future::BoxFuture;
use llm_do_core::{
    Conversation, DESCRIPTORS, FINAL_ANSWER, Model, ModelError, ModelProfile, ModelRequest, ModelSession,
    ModelStream, Name, Origin, Role, ToolDefinition,
};

use super::delivery::deliver;
use super::history::unanswered_results;
use super::reply::{ScriptedReply, asks, asks_all, says};
use super::sample::minimal_value;
use crate::profiles::offline_profile;

/// A model that tries everything once.
#[derive(Debug, Clone)]
pub struct TestModel {
    name: Name,
    manner: Manner,
}

#[derive(Debug, Clone, Copy)]
enum Manner {
    CallTools,
    Echo,
}

impl TestModel {
    /// The model `test`.
    ///
    /// It first calls every tool that it is offered, in order and all at once, with the smallest valid
    /// arguments. Then it answers: with the smallest valid value where the answer has a schema (through
    /// the tool `final_answer` where that is offered), otherwise with a line `name: result` per result.
    pub fn new() -> Self {
        Self { name: "test".into(), manner: Manner::CallTools }
    }

    /// The model `test:echo`, which calls nothing and answers with the text that it was last given.
    pub fn echo() -> Self {
        Self { name: "test:echo".into(), manner: Manner::Echo }
    }
}

impl Default for TestModel {
    fn default() -> Self {
        Self::new()
    }
}

impl Model for TestModel {
    fn name(&self) -> &Name {
        &self.name
    }

    fn profile(&self) -> ModelProfile {
        offline_profile()
    }

    fn open(&self) -> Box<dyn ModelSession> {
        let origin = Origin {
            provider: "test".to_owned(),
            model: self.name.to_string(),
            data: serde_json::Value::Null,
        };
        Box::new(TestSession { manner: self.manner, origin })
    }
}

struct TestSession {
    manner: Manner,
    origin: Origin,
}

impl ModelSession for TestSession {
    fn request<'a>(
        &'a mut self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>> {
        Box::pin(async move {
            let reply = match self.manner {
                Manner::CallTools => call_or_answer(&request),
                Manner::Echo => says(last_given_text(request.conversation)),
            };
            let stream: ModelStream<'a> = deliver(reply.answer(&request), &request, &self.origin).await?;
            Ok(stream)
        })
    }
}

fn call_or_answer(request: &ModelRequest<'_>) -> ScriptedReply {
    let is_answer = |tool: &ToolDefinition| tool.name == FINAL_ANSWER;
    let mut tools =
        request.tools.iter().filter(|tool| !is_answer(tool) && !reads_descriptors(tool)).peekable();
    let has_called = unanswered_results(request.conversation).next().is_some();
    if !has_called && tools.peek().is_some() {
        return asks_all(tools.map(|tool| (&tool.name, minimal_value(&tool.input))));
    }
    match request.tools.iter().find(|tool| is_answer(tool)) {
        Some(tool) if !was_refused(request) => asks(&tool.name, minimal_value(&tool.input)),
        _ => answer(request),
    }
}

/// Returns whether the answer came back as a result. Trying the same again would not end.
fn was_refused(request: &ModelRequest<'_>) -> bool {
    unanswered_results(request.conversation).any(|result| result.name == FINAL_ANSWER)
}

fn answer(request: &ModelRequest<'_>) -> ScriptedReply {
    if let Some(schema) = request.output_schema {
        return says(minimal_value(schema).to_string());
    }
    let lines: Vec<String> = unanswered_results(request.conversation)
        .map(|result| format!("{}: {}", result.name, result.text))
        .collect();
    if lines.is_empty() { says("no tools to call") } else { says(lines.join("\n")) }
}

fn last_given_text(conversation: &Conversation) -> String {
    let given = conversation.messages().iter().rev().filter(|message| message.role == Role::User);
    given.map(|message| message.text()).find(|text| !text.is_empty()).unwrap_or_default()
}

/// There is nothing to be read before something was too long.
fn reads_descriptors(tool: &ToolDefinition) -> bool {
    tool.toolset.as_ref().is_some_and(|toolset| toolset == DESCRIPTORS)
}
