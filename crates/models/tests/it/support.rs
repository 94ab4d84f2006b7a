//! A request to a model under test, and what came back.

use std::sync::Arc;

use futures::StreamExt;
use llm_do_core::{
    Conversation, Message, Model, ModelError, ModelPart, ModelRequest, ModelResponse, ModelSession,
    ModelSettings, Schema, ToolDefinition, ToolResult,
};
use serde_json::Value;

/// Everything that a request consists of.
#[derive(Default)]
pub(crate) struct Talk {
    pub(crate) instructions: String,
    pub(crate) conversation: Conversation,
    pub(crate) tools: Vec<Arc<ToolDefinition>>,
    pub(crate) output_schema: Option<Schema>,
    pub(crate) settings: ModelSettings,
    pub(crate) max_output: Option<u64>,
}

/// What a stream brought.
#[derive(Debug, PartialEq)]
pub(crate) struct Heard {
    pub(crate) text: Vec<String>,
    pub(crate) thinking: Vec<String>,
    /// The finished answer, nothing where the stream was cut, or the failure in the middle.
    pub(crate) end: Result<Option<ModelResponse>, ModelError>,
}

impl Talk {
    pub(crate) fn of(text: &str) -> Self {
        Self::default().then(Message::user(text))
    }

    pub(crate) fn then(mut self, message: Message) -> Self {
        self.conversation.push(message);
        self
    }

    pub(crate) fn instructed(mut self, instructions: &str) -> Self {
        self.instructions = instructions.to_owned();
        self
    }

    pub(crate) fn offering(mut self, name: &str, input: Value) -> Self {
        let definition = ToolDefinition::new(name, "", Schema::new(input).unwrap());
        self.tools.push(Arc::new(definition));
        self
    }

    pub(crate) async fn hear(&self, session: &mut dyn ModelSession) -> Result<Heard, ModelError> {
        let request = ModelRequest {
            instructions: &self.instructions,
            conversation: &self.conversation,
            tools: &self.tools,
            server_tools: &[],
            output_schema: self.output_schema.as_ref(),
            settings: &self.settings,
            max_output: self.max_output,
        };
        let mut stream = session.request(request).await?;
        let mut heard = Heard { text: Vec::new(), thinking: Vec::new(), end: Ok(None) };
        while let Some(part) = stream.next().await {
            assert_eq!(heard.end, Ok(None), "nothing follows the end");
            match part {
                Ok(ModelPart::Text(text)) => heard.text.push(text),
                Ok(ModelPart::Thinking(text)) => heard.thinking.push(text),
                Ok(ModelPart::Notice(text)) => panic!("no notice was expected: {text}"),
                Ok(ModelPart::Finished(response)) => heard.end = Ok(Some(response)),
                Err(error) => heard.end = Err(error),
            }
        }
        Ok(heard)
    }

    /// Asks in a call of its own and expects an answer.
    pub(crate) async fn ask(&self, model: &impl Model) -> ModelResponse {
        self.hear(&mut *model.open()).await.unwrap().end.unwrap().unwrap()
    }

    /// Asks in a call of its own and expects the request to fail.
    pub(crate) async fn fail(&self, model: &impl Model) -> ModelError {
        self.hear(&mut *model.open()).await.unwrap_err()
    }

    /// Asks in a call of its own and returns the text of the answer.
    pub(crate) async fn text(&self, model: &impl Model) -> String {
        self.ask(model).await.message.text()
    }
}

/// The message that brings one tool result.
pub(crate) fn result(tool: &str, text: &str) -> Message {
    let result = ToolResult {
        id: "id".to_owned(),
        name: tool.into(),
        text: text.into(),
        is_error: false,
        attachments: Vec::new(),
    };
    Message::results([result])
}

/// The tool calls of an answer: name and argument text.
pub(crate) fn calls(response: &ModelResponse) -> Vec<(String, String)> {
    let calls = response.message.tool_calls();
    calls.map(|call| (call.name.to_string(), call.arguments.to_string())).collect()
}
