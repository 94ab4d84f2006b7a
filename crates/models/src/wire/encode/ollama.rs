//! Ollama's `/api/chat`.
//!
//! A message has one text, and images beside it. Arguments of calls are objects. Results carry the name of
//! the tool, and the id of the call where the server gave one.

use std::sync::Arc;

use llm_do_core::{
    Attachment, Message, ModelRequest, Part, Role, ToolCall, ToolChoice, ToolDefinition, ToolResult,
};
use serde_json::{Map, Value, json};

use super::attachment::{ShownAttachment, named_text, shown};
use super::calls::{self, Answers};
use super::json_text::{Fields, List, Object};
use super::scope::{BlockReplay, EMPTY, Scope};
use super::thinking::ThinkingPlan;
use super::{Closing, RequestTarget, Writer, schema};

/// Writes `/api/chat`.
pub(super) struct OllamaChat;

impl Writer for OllamaChat {
    fn path(&self, _: &RequestTarget, _: bool) -> String {
        "/api/chat".into()
    }

    fn opening(&self, request: &ModelRequest<'_>, scope: &mut Scope<'_>) -> Map<String, Value> {
        let settings = request.settings;
        let mut fields = Map::new();
        fields.put("model", scope.target.model.clone());
        // Ollama knows no choice of tools; not to offer any is what `none` means.
        if !request.tools.is_empty() && settings.tool_choice != Some(ToolChoice::None) {
            fields.put("tools", request.tools.iter().map(|tool| tool_value(tool)).collect::<Value>());
        }
        fields.put_some("format", request.output_schema.map(|schema| schema.source().clone()));
        fields.put_some("think", think(request, scope));
        let is_forced = matches!(settings.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
        scope.without_setting("tool_choice", is_forced);
        scope.without_setting("parallel_tool_calls", settings.parallel_tool_calls == Some(false));
        scope.server_tools(request).into_iter().for_each(|tool| scope.without_server_tool(tool));
        fields
    }

    fn first_item(&self, request: &ModelRequest<'_>, _: &RequestTarget) -> Option<Value> {
        let instructions = request.instructions;
        (!instructions.trim().is_empty()).then(|| json!({"role": "system", "content": instructions}))
    }

    fn closing(&self, ask: &Closing<'_>, scope: &mut Scope<'_>) -> Map<String, Value> {
        let settings = ask.request.settings;
        let mut options = Map::new();
        let plan = ThinkingPlan::from_settings(settings, scope);
        let (temperature, top_p) = scope.sampling(settings, plan.is_active(scope));
        options.put_some("temperature", temperature);
        options.put_some("top_p", top_p);
        options.put_some("seed", settings.seed);
        let stops = scope.stops(settings);
        if !stops.is_empty() {
            options.put("stop", json!(stops));
        }
        let limit = ask.max_output.map(|limit| scope.output_limit(limit, settings));
        options.put_some("num_predict", limit);
        [("stream".to_owned(), ask.is_stream.into()), ("options".to_owned(), options.into())]
            .into_iter()
            .collect()
    }

    fn late_objects(&self) -> &'static [&'static str] {
        &["options"]
    }

    fn message(
        &self,
        message: &Message,
        earlier: &[Arc<Message>],
        scope: &mut Scope<'_>,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        match message.role {
            Role::User => {
                write_user(&Answers::new(message, earlier.last().map(|before| &**before)), scope, out)
            }
            Role::Assistant => write_assistant(message, scope, out),
        }
        None
    }
}

fn tool_value(tool: &ToolDefinition) -> Value {
    let mut function = json!({"name": tool.name, "parameters": schema::tool_input(tool.input.source())});
    if !tool.description.is_empty() {
        function["description"] = tool.description.as_str().into();
    }
    json!({"type": "function", "function": function})
}

/// Returns whether to think: yes or no, or a level for models that accept one.
fn think(request: &ModelRequest<'_>, scope: &mut Scope<'_>) -> Option<Value> {
    match ThinkingPlan::from_settings(request.settings, scope) {
        ThinkingPlan::Default => None,
        ThinkingPlan::Off => Some(false.into()),
        ThinkingPlan::Level(level) => Some(level.as_str().into()),
        ThinkingPlan::On | ThinkingPlan::Tokens(_) => Some(true.into()),
    }
}

fn write_user(answers: &Answers<'_>, scope: &mut Scope<'_>, out: &mut Vec<u8>) {
    answers.results.iter().for_each(|result| write_result(result, scope, out));
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in &answers.rest {
        match &**part {
            Part::Text { text, .. } if !text.is_empty() => texts.push(text.to_string()),
            Part::Attachment(attachment) => attach(attachment, scope, &mut texts, &mut images),
            _ => {}
        }
    }
    if texts.is_empty() && images.is_empty() {
        if !answers.results.is_empty() {
            return;
        }
        texts.push(EMPTY.into());
    }
    let mut item = Object::item(out);
    item.field("role", "user").field("content", &texts.join("\n\n"));
    write_images(&images, &mut item);
}

fn write_result(result: &ToolResult, scope: &mut Scope<'_>, out: &mut Vec<u8>) {
    let (mut texts, mut images) = (vec![result.text.to_string()], Vec::new());
    result.attachments.iter().for_each(|attachment| attach(attachment, scope, &mut texts, &mut images));
    texts.retain(|text| !text.is_empty());
    let text = if texts.is_empty() { EMPTY.to_owned() } else { texts.join("\n\n") };
    let mut item = Object::item(out);
    item.field("role", "tool").field("tool_name", &calls::name(&result.name)).field("content", &text);
    item.some("tool_call_id", calls::given_id(&result.id));
    write_images(&images, &mut item);
}

fn attach<'a>(
    attachment: &'a Attachment,
    scope: &mut Scope<'_>,
    texts: &mut Vec<String>,
    images: &mut Vec<&'a [u8]>,
) {
    match shown(attachment, scope) {
        ShownAttachment::Media { bytes, .. } => images.push(bytes),
        ShownAttachment::Text { text } => texts.push(named_text(attachment, text)),
        ShownAttachment::LeftOut(message) => texts.push(message),
    }
}

fn write_images(images: &[&[u8]], item: &mut Object<'_>) {
    if !images.is_empty() {
        let mut list = item.list("images");
        images.iter().for_each(|bytes| list.base64(bytes));
    }
}

fn write_assistant(message: &Message, scope: &Scope<'_>, out: &mut Vec<u8>) {
    let text = message.text();
    let calls: Vec<&ToolCall> = message.tool_calls().collect();
    if text.is_empty() && calls.is_empty() {
        return;
    }
    let mut item = Object::item(out);
    item.field("role", "assistant").field("content", &text);
    let replay = scope.replay(message);
    let thinking = thinking(message, replay);
    if !thinking.is_empty() {
        item.field("thinking", &thinking);
    }
    if !calls.is_empty() {
        let mut list = item.list("tool_calls");
        calls.iter().for_each(|call| write_call(call, replay, &mut list));
    }
}

/// Returns the thinking of the model's own messages.
fn thinking(message: &Message, replay: BlockReplay<'_>) -> String {
    let text = |part: &Part| match part {
        Part::Thinking { text, .. } if replay.is_accepted() => Some(text.to_string()),
        _ => None,
    };
    message.parts.iter().filter_map(text).collect()
}

fn write_call(call: &ToolCall, replay: BlockReplay<'_>, list: &mut List<'_>) {
    let own = replay.block(call.raw.as_ref());
    let mut object = list.object();
    object.some("id", calls::given_id(&call.id)).field("type", "function");
    let mut function = object.object("function");
    function.field("name", &calls::name(&call.name)).json("arguments", &calls::arguments(call));
    function.others(own.and_then(|own| own.get("function")?.as_object()), &["name", "arguments"]);
    drop(function);
    object.others(own, &["id", "type", "function"]);
}
