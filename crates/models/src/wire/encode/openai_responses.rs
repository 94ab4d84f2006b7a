//! OpenAI's Responses.
//!
//! The history is a list of items, and each item that the API gave goes back as it came, encrypted reasoning
//! included: nothing is stored at the provider. Reasoning that cannot be proved (no encrypted content, no
//! text of its own) and reasoning that nothing follows would be refused and is left out. The ids of messages and
//! calls refer to the reasoning before them; where that is left out they are, too, and so are items that need an id.
//! Another model gets such items only if it reasons as well.

use std::sync::Arc;

use llm_do_core::{
    Attachment, Message, ModelRequest, Part, Role, ServerTool, ThinkingStyle, ToolCall, ToolChoice,
    ToolDefinition, ToolResult,
};
use serde_json::{Map, Value, json};

use super::attachment::{Media, ShownAttachment, named_text, shown};
use super::calls::{self, Answers};
use super::json_text::{Fields, List, Object};
use super::scope::{BlockReplay, EMPTY, Scope};
use super::thinking::{ThinkingPlan, level_of};
use super::{Closing, RequestTarget, Writer, schema};

/// Writes Responses.
pub(super) struct Responses;

impl Writer for Responses {
    fn path(&self, _: &RequestTarget, _: bool) -> String {
        "/responses".into()
    }

    fn history_field(&self) -> &'static str {
        "input"
    }

    fn opening(&self, request: &ModelRequest<'_>, scope: &mut Scope<'_>) -> Map<String, Value> {
        let settings = request.settings;
        let plan = ThinkingPlan::beside_tools(request, scope);
        let mut fields = Map::new();
        fields.put("model", scope.target.model.clone());
        fields.put("store", false);
        if scope.target.profile.thinking == ThinkingStyle::Effort {
            fields.put("include", json!(["reasoning.encrypted_content"]));
        }
        if !request.instructions.trim().is_empty() {
            fields.put("instructions", request.instructions);
        }
        let tools = tools(request, scope);
        if !tools.is_empty() {
            fields.put("tools", tools);
            fields.put_some("tool_choice", scope.tool_choice(settings, plan).map(choice_value));
            fields.put_some("parallel_tool_calls", settings.parallel_tool_calls);
        }
        let (temperature, top_p) = scope.sampling(settings, plan.is_active(scope));
        fields.put_some("temperature", temperature);
        fields.put_some("top_p", top_p);
        fields.put_some("reasoning", reasoning(plan, scope));
        if let Some(schema) = request.output_schema {
            fields.put("text", json!({"format": format(schema.source())}));
        }
        scope.without_setting("seed", settings.seed.is_some());
        scope.without_setting("stop", !settings.stop.is_empty());
        fields
    }

    fn closing(&self, ask: &Closing<'_>, scope: &mut Scope<'_>) -> Map<String, Value> {
        let mut fields = Map::new();
        let limit = ask.max_output.map(|limit| scope.output_limit(limit, ask.request.settings));
        fields.put_some("max_output_tokens", limit);
        fields.put("stream", ask.is_stream);
        fields
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

fn tools(request: &ModelRequest<'_>, scope: &mut Scope<'_>) -> Vec<Value> {
    let mut tools: Vec<Value> = request.tools.iter().map(|tool| tool_value(tool)).collect();
    for tool in scope.server_tools(request) {
        match tool {
            ServerTool::WebSearch { allowed_domains, .. } => {
                scope.without_limits(tool, &["max_uses", "blocked_domains"]);
                let mut value = json!({"type": "web_search"});
                if !allowed_domains.is_empty() {
                    value["filters"] = json!({"allowed_domains": allowed_domains});
                }
                tools.push(value);
            }
            ServerTool::CodeExecution {} => {
                tools.push(json!({"type": "code_interpreter", "container": {"type": "auto"}}));
            }
            ServerTool::ImageGeneration {} => tools.push(json!({"type": "image_generation"})),
            ServerTool::WebFetch { .. } => scope.without_server_tool(tool),
        }
    }
    tools
}

fn tool_value(tool: &ToolDefinition) -> Value {
    let mut value = json!({"type": "function", "name": tool.name, "parameters": schema::tool_input(tool.input.source()), "strict": false});
    if !tool.description.is_empty() {
        value["description"] = tool.description.as_str().into();
    }
    value
}

fn choice_value(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Tool(name) => json!({"type": "function", "name": name}),
    }
}

fn format(source: &Value) -> Value {
    let strict = schema::strict_output(source);
    let is_strict = strict.is_some();
    let schema = strict.unwrap_or_else(|| source.clone());
    json!({"type": "json_schema", "name": "answer", "schema": schema, "strict": is_strict})
}

fn reasoning(plan: ThinkingPlan, scope: &Scope<'_>) -> Option<Value> {
    match plan {
        ThinkingPlan::Default => None,
        ThinkingPlan::Off => Some(json!({"effort": "none"})),
        plan => Some(json!({"effort": level_of(plan, scope).as_str(), "summary": "auto"})),
    }
}

fn write_user(answers: &Answers<'_>, scope: &mut Scope<'_>, out: &mut Vec<u8>) {
    answers.results.iter().for_each(|result| write_result(result, scope, out));
    let start = out.len();
    let mut item = Object::item(out);
    item.field("type", "message").field("role", "user");
    let mut pieces = item.list("content");
    for part in &answers.rest {
        match &**part {
            Part::Text { text, .. } if !text.is_empty() => write_text(text, &mut pieces),
            Part::Attachment(attachment) => write_attachment(attachment, scope, &mut pieces),
            _ => {}
        }
    }
    let is_empty = pieces.is_empty();
    if is_empty {
        write_text(EMPTY, &mut pieces);
    }
    drop(pieces);
    drop(item);
    if is_empty && !answers.results.is_empty() {
        out.truncate(start);
    }
}

/// Writes a result: its text alone, or a list where it has attachments.
fn write_result(result: &ToolResult, scope: &mut Scope<'_>, out: &mut Vec<u8>) {
    let mut item = Object::item(out);
    item.field("type", "function_call_output").field("call_id", &calls::id(scope.target, &result.id));
    let text = if result.text.is_empty() { EMPTY } else { &result.text };
    if result.attachments.is_empty() {
        item.field("output", text);
        return;
    }
    let mut pieces = item.list("output");
    write_text(text, &mut pieces);
    result.attachments.iter().for_each(|attachment| write_attachment(attachment, scope, &mut pieces));
}

fn write_text(text: &str, pieces: &mut List<'_>) {
    pieces.object().field("type", "input_text").field("text", text);
}

fn write_attachment(attachment: &Attachment, scope: &mut Scope<'_>, pieces: &mut List<'_>) {
    match shown(attachment, scope) {
        ShownAttachment::LeftOut(message) => write_text(&message, pieces),
        ShownAttachment::Text { text } => write_text(&named_text(attachment, text), pieces),
        ShownAttachment::Media { kind, media_type, bytes } => {
            let prefix = format!("data:{media_type};base64,");
            let mut piece = pieces.object();
            match kind {
                Media::Document => piece
                    .field("type", "input_file")
                    .field("filename", &attachment.name)
                    .base64("file_data", &prefix, bytes),
                Media::Image | Media::Recording => {
                    piece.field("type", "input_image").base64("image_url", &prefix, bytes)
                }
            };
        }
    }
}

fn write_assistant(message: &Message, scope: &Scope<'_>, out: &mut Vec<u8>) {
    let replay = scope.replay(message);
    let has_ids = message.parts.iter().filter_map(reasoning_of).all(is_proved);
    for part in sent_parts(message, has_ids, replay) {
        match part {
            Part::Text { text, raw } => match replay.block(raw.as_ref()) {
                Some(raw) => _ = Object::item(out).others(Some(raw), if has_ids { &[] } else { &["id"] }),
                None => write_said(text, out),
            },
            Part::ToolCall(call) => write_call(call, has_ids, replay, scope, out),
            Part::Thinking { raw: Some(block), .. } | Part::Opaque(block) => {
                Object::item(out).others(replay.block(Some(block)), &[]);
            }
            _ => {}
        }
    }
}

/// Returns the parts that have an item which the API takes back.
fn sent_parts<'a>(message: &'a Message, has_ids: bool, replay: BlockReplay<'_>) -> Vec<&'a Part> {
    let is_sent = |part: &&Part| match part {
        Part::Text { text, .. } => !text.is_empty(),
        Part::ToolCall(_) => true,
        Part::Thinking { raw: Some(block), .. } | Part::Opaque(block) => {
            // Items such as searches cannot do without their id.
            replay.block(Some(block)).is_some() && reasoning_of(part).map_or(has_ids, is_proved)
        }
        Part::Thinking { .. } | Part::ToolResult(_) | Part::Attachment(_) => false,
    };
    let mut sent: Vec<&Part> = message.parts.iter().filter(is_sent).collect();
    while sent.last().is_some_and(|part| reasoning_of(part).is_some()) {
        sent.pop();
    }
    sent
}

fn reasoning_of(part: &Part) -> Option<&Value> {
    let (Part::Thinking { raw: Some(block), .. } | Part::Opaque(block)) = part else { return None };
    Some(&block.value).filter(|item| item.get("type").is_some_and(|kind| kind == "reasoning"))
}

fn is_proved(item: &Value) -> bool {
    let has_text = item.get("content").and_then(Value::as_array).is_some_and(|content| !content.is_empty());
    has_text || item.get("encrypted_content").is_some_and(Value::is_string)
}

fn write_said(text: &str, out: &mut Vec<u8>) {
    let mut item = Object::item(out);
    item.field("type", "message").field("role", "assistant");
    item.list("content").object().field("type", "output_text").field("text", text);
}

fn write_call(call: &ToolCall, has_id: bool, replay: BlockReplay<'_>, scope: &Scope<'_>, out: &mut Vec<u8>) {
    let own = replay.block(call.raw.as_ref());
    let known: &[&str] = &["type", "call_id", "name", "arguments", "id"];
    let mut item = Object::item(out);
    item.field("type", "function_call")
        .field("call_id", &calls::id(scope.target, &call.id))
        .field("name", &calls::name(&call.name))
        .field("arguments", &calls::arguments(call))
        .others(own, if has_id { &known[..4] } else { known });
}
