//! Chat Completions, for OpenAI and for the many hosts that know a part of it.
//!
//! A content that is only text is one string, since many hosts take nothing else; pieces are used where there
//! is more than text. Which of them a message gets depends on that message alone, so it never changes.
//!
//! A result is a message of its own. Its attachments follow in a message of the caller, after all results.

use std::borrow::Cow;
use std::sync::Arc;

use llm_do_core::{
    Attachment, Message, ModelRequest, Part, Role, ToolCall, ToolChoice, ToolDefinition, ToolResult,
};
use serde_json::{Map, Value, json};

use super::attachment::{Media, ShownAttachment, named_text, shown};
use super::calls::{self, Answers};
use super::json_text::{Fields, List, Object};
use super::scope::{BlockReplay, EMPTY, Scope};
use super::thinking::{ThinkingPlan, level_of};
use super::{Closing, RequestTarget, Writer, schema};
use crate::wire::request_rules::{ReasoningContent, ThinkingField};

/// Writes Chat Completions.
pub(super) struct Completions;

impl Writer for Completions {
    fn path(&self, _: &RequestTarget, _: bool) -> String {
        "/chat/completions".into()
    }

    fn opening(&self, request: &ModelRequest<'_>, scope: &mut Scope<'_>) -> Map<String, Value> {
        let settings = request.settings;
        let plan = ThinkingPlan::beside_tools(request, scope);
        let mut fields = Map::new();
        fields.put("model", scope.target.model.clone());
        if !request.tools.is_empty() {
            fields.put("tools", request.tools.iter().map(|tool| tool_value(tool)).collect::<Value>());
            fields.put_some("tool_choice", scope.tool_choice(settings, plan).map(choice_value));
            fields.put_some("parallel_tool_calls", settings.parallel_tool_calls);
        }
        let (temperature, top_p) = scope.sampling(settings, plan.is_active(scope));
        fields.put_some("temperature", temperature);
        fields.put_some("top_p", top_p);
        match scope.target.rules.seed_field {
            Some(field) => fields.put_some(field, settings.seed),
            None => scope.without_setting("seed", settings.seed.is_some()),
        }
        let stops = scope.stops(settings);
        if !stops.is_empty() {
            fields.put("stop", json!(stops));
        }
        fields.extend(thinking(plan, scope));
        if let Some(schema) = request.output_schema {
            fields.put("response_format", response_format(schema.source()));
        }
        scope.server_tools(request).into_iter().for_each(|tool| scope.without_server_tool(tool));
        fields
    }

    fn first_item(&self, request: &ModelRequest<'_>, target: &RequestTarget) -> Option<Value> {
        let instructions = request.instructions;
        let role = if target.rules.system_role { "system" } else { "user" };
        (!instructions.trim().is_empty()).then(|| json!({"role": role, "content": instructions}))
    }

    fn closing(&self, ask: &Closing<'_>, scope: &mut Scope<'_>) -> Map<String, Value> {
        let mut fields = Map::new();
        let limit = ask.max_output.map(|limit| scope.output_limit(limit, ask.request.settings));
        fields.put_some(scope.target.rules.output_limit_field, limit);
        fields.put("stream", ask.is_stream);
        let asks_usage = ask.is_stream && scope.target.rules.stream_options;
        fields.put_some("stream_options", asks_usage.then(|| json!({"include_usage": true})));
        fields
    }

    fn late_objects(&self) -> &'static [&'static str] {
        &["stream_options"]
    }

    fn message(
        &self,
        message: &Message,
        earlier: &[Arc<Message>],
        scope: &mut Scope<'_>,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        match message.role {
            Role::User => write_user(message, earlier, scope, out),
            Role::Assistant => {
                if earlier.is_empty() && !scope.target.rules.assistant_first {
                    Object::item(out).field("role", "user").field("content", EMPTY);
                }
                write_assistant(message, scope, out);
            }
        }
        None
    }

    fn is_written(&self, message: &Message, scope: &Scope<'_>) -> bool {
        is_written(message, scope)
    }

    fn go_on(&self) -> &'static str {
        r#",{"role":"user","content":"Continue."}"#
    }
}

fn tool_value(tool: &ToolDefinition) -> Value {
    let mut function = json!({"name": tool.name, "parameters": schema::tool_input(tool.input.source())});
    if !tool.description.is_empty() {
        function["description"] = tool.description.as_str().into();
    }
    json!({"type": "function", "function": function})
}

fn choice_value(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Tool(name) => json!({"type": "function", "function": {"name": name}}),
    }
}

fn response_format(source: &Value) -> Value {
    let strict = schema::strict_output(source);
    let is_strict = strict.is_some();
    let schema = strict.unwrap_or_else(|| source.clone());
    json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": is_strict}})
}

/// Returns the fields that control thinking.
fn thinking(plan: ThinkingPlan, scope: &Scope<'_>) -> Map<String, Value> {
    let mut fields = Map::new();
    let level = level_of(plan, scope);
    match (scope.target.rules.thinking_field, plan) {
        (_, ThinkingPlan::Default) => {}
        (ThinkingField::ReasoningEffort, ThinkingPlan::Off) => fields.put("reasoning_effort", "none"),
        (ThinkingField::ReasoningEffort, _) => fields.put("reasoning_effort", level.as_str()),
        (ThinkingField::Reasoning, ThinkingPlan::Off) => fields.put("reasoning", json!({"enabled": false})),
        (ThinkingField::Reasoning, ThinkingPlan::Tokens(tokens)) => {
            fields.put("reasoning", json!({"max_tokens": tokens}));
        }
        (ThinkingField::Reasoning, _) => fields.put("reasoning", json!({"effort": level.as_str()})),
        (ThinkingField::Thinking, ThinkingPlan::Off) => fields.put("thinking", json!({"type": "disabled"})),
        (ThinkingField::Thinking, plan) => {
            fields.put("thinking", json!({"type": "enabled"}));
            let is_level = matches!(plan, ThinkingPlan::Level(_));
            fields.put_some("reasoning_effort", is_level.then(|| level.as_str()));
        }
    }
    fields
}

/// The message of the model between a result and a message of the user, for hosts that refuse the one right after the
/// other.
const BETWEEN: &str = "I have the results.";

fn write_user(message: &Message, earlier: &[Arc<Message>], scope: &mut Scope<'_>, out: &mut Vec<u8>) {
    let answers = Answers::new(message, earlier.last().map(|before| &**before));
    let content = content(&answers, scope);
    if content.is_empty() && !answers.results.is_empty() {
        write_results(&answers, "", scope, out);
        return;
    }
    let text = one_text(&content);
    if !scope.target.rules.user_after_tool {
        if let Some(text) = text.as_deref().filter(|_| !answers.results.is_empty()) {
            write_results(&answers, text, scope, out);
            return;
        }
        if !answers.results.is_empty() || ends_with_result(earlier, scope) {
            write_results(&answers, "", scope, out);
            Object::item(out).field("role", "assistant").field("content", BETWEEN);
            write_content(&content, text, out);
            return;
        }
    }
    write_results(&answers, "", scope, out);
    write_content(&content, text, out);
}

fn is_written(message: &Message, scope: &Scope<'_>) -> bool {
    let reasoning = scope.target.rules.reasoning_content;
    message.role == Role::User || !AssistantContent::new(message, scope.replay(message), reasoning).is_empty()
}

/// Returns whether the newest of some messages was written as results and nothing after them.
fn ends_with_result(messages: &[Arc<Message>], scope: &mut Scope<'_>) -> bool {
    let end = messages.iter().rposition(|message| is_written(message, scope)).map_or(0, |last| last + 1);
    let [.., asks, last] = &messages[..end] else { return false };
    let answers = Answers::new(last, Some(asks));
    let is_answer = last.role == Role::User && !answers.results.is_empty();
    is_answer && one_text(&content(&answers, scope)).is_some()
}

/// Writes the results, with more text at the end of the last one.
fn write_results(answers: &Answers<'_>, more: &str, scope: &Scope<'_>, out: &mut Vec<u8>) {
    for (index, result) in answers.results.iter().enumerate() {
        let is_last = index + 1 == answers.results.len();
        write_result(result, if is_last { more } else { "" }, scope, out);
    }
}

fn write_content(content: &[UserPiece<'_>], text: Option<String>, out: &mut Vec<u8>) {
    let mut item = Object::item(out);
    item.field("role", "user");
    if let Some(text) = text {
        item.field("content", if text.is_empty() { EMPTY } else { &text });
    } else {
        let mut pieces = item.list("content");
        content.iter().for_each(|piece| write_piece(piece, &mut pieces));
    }
}

fn write_result(result: &ToolResult, more: &str, scope: &Scope<'_>, out: &mut Vec<u8>) {
    let texts: Vec<&str> = [&*result.text, more].into_iter().filter(|text| !text.is_empty()).collect();
    let text = if texts.is_empty() { EMPTY.to_owned() } else { texts.join("\n\n") };
    Object::item(out)
        .field("role", "tool")
        .field("tool_call_id", &calls::id(scope.target, &result.id))
        .field("content", &text);
}

/// One piece of what the caller says.
enum UserPiece<'a> {
    Text(Cow<'a, str>),
    Media { attachment: &'a Attachment, kind: Media, media_type: Cow<'a, str>, bytes: &'a [u8] },
}

/// Returns what the caller says beside the results: their attachments first.
fn content<'a>(answers: &'a Answers<'_>, scope: &mut Scope<'_>) -> Vec<UserPiece<'a>> {
    let mut pieces = Vec::new();
    for result in answers.results.iter().filter(|result| !result.attachments.is_empty()) {
        pieces.push(UserPiece::Text(format!("Files of the result of `{}`:", result.name).into()));
        pieces.extend(result.attachments.iter().map(|attachment| piece(attachment, scope)));
    }
    for part in &answers.rest {
        match &**part {
            Part::Text { text, .. } if !text.is_empty() => pieces.push(UserPiece::Text((&**text).into())),
            Part::Attachment(attachment) => pieces.push(piece(attachment, scope)),
            _ => {}
        }
    }
    pieces
}

fn piece<'a>(attachment: &'a Attachment, scope: &mut Scope<'_>) -> UserPiece<'a> {
    match shown(attachment, scope) {
        ShownAttachment::Media { kind, media_type, bytes } => {
            UserPiece::Media { attachment, kind, media_type, bytes }
        }
        ShownAttachment::Text { text } => UserPiece::Text(named_text(attachment, text).into()),
        ShownAttachment::LeftOut(message) => UserPiece::Text(message.into()),
    }
}

/// Joins pieces that are all text.
fn one_text(pieces: &[UserPiece<'_>]) -> Option<String> {
    let text = |piece: &UserPiece<'_>| match piece {
        UserPiece::Text(text) => Some(text.to_string()),
        UserPiece::Media { .. } => None,
    };
    Some(pieces.iter().map(text).collect::<Option<Vec<String>>>()?.join("\n\n"))
}

fn write_text(text: &str, pieces: &mut List<'_>) {
    pieces.object().field("type", "text").field("text", text);
}

fn write_piece(piece: &UserPiece<'_>, pieces: &mut List<'_>) {
    match piece {
        UserPiece::Text(text) => write_text(text, pieces),
        UserPiece::Media { kind: Media::Document, attachment, media_type, bytes } => {
            let prefix = format!("data:{media_type};base64,");
            let mut object = pieces.object();
            object.field("type", "file");
            object.object("file").field("filename", &attachment.name).base64("file_data", &prefix, bytes);
        }
        UserPiece::Media { media_type, bytes, .. } => {
            let mut object = pieces.object();
            object.field("type", "image_url");
            object.object("image_url").base64("url", &format!("data:{media_type};base64,"), bytes);
        }
    }
}

fn write_assistant(message: &Message, scope: &Scope<'_>, out: &mut Vec<u8>) {
    let replay = scope.replay(message);
    let said = AssistantContent::new(message, replay, scope.target.rules.reasoning_content);
    if said.is_empty() {
        return;
    }
    let mut item = Object::item(out);
    item.field("role", "assistant");
    said.write_content(&mut item);
    item.others(Some(&said.fields), &[]);
    if !said.calls.is_empty() {
        let mut calls = item.list("tool_calls");
        said.calls.iter().for_each(|call| write_call(call, replay, scope, &mut calls));
    }
}

/// What the model said, sorted as a message holds it.
#[derive(Default)]
struct AssistantContent<'a> {
    content: Vec<AssistantPiece<'a>>,
    /// Thinking and refusal, in the fields in which they came.
    fields: Map<String, Value>,
    calls: Vec<&'a ToolCall>,
}

/// One piece of the content.
enum AssistantPiece<'a> {
    Text(&'a str),
    /// A piece that the host gave and that is not text.
    Own(&'a Map<String, Value>),
}

impl<'a> AssistantContent<'a> {
    fn new(message: &'a Message, replay: BlockReplay<'_>, reasoning: ReasoningContent) -> Self {
        let mut said = Self::default();
        for part in &message.parts {
            match part {
                Part::Text { text, .. } if !text.is_empty() => said.content.push(AssistantPiece::Text(text)),
                Part::ToolCall(call) => said.calls.push(call),
                Part::Thinking { raw: Some(block), .. } | Part::Opaque(block) => {
                    replay.block(Some(block)).into_iter().for_each(|block| said.keep(block));
                }
                _ => {}
            }
        }
        match reasoning {
            ReasoningContent::AsGiven => {}
            ReasoningContent::Required => _ = said.fields.entry("reasoning_content").or_insert("".into()),
            ReasoningContent::Refused => _ = said.fields.shift_remove("reasoning_content"),
        }
        said
    }

    /// Keeps a block of the host: a piece of content has a type, all else are fields of the message.
    fn keep(&mut self, block: &'a Map<String, Value>) {
        if block.contains_key("type") {
            self.content.push(AssistantPiece::Own(block));
            return;
        }
        for (key, value) in block {
            match (self.fields.get_mut(key), value) {
                (Some(Value::Array(list)), Value::Array(more)) => list.extend(more.iter().cloned()),
                (Some(Value::String(text)), Value::String(more)) => text.push_str(more),
                _ => drop(self.fields.insert(key.clone(), value.clone())),
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.content.is_empty() && self.calls.is_empty() && !self.fields.contains_key("refusal")
    }

    /// Writes the content: one text, or pieces where one of them is something else.
    fn write_content(&self, item: &mut Object<'_>) {
        match self.content.as_slice() {
            [] => _ = item.field("content", &Value::Null),
            [AssistantPiece::Text(text)] => _ = item.field("content", text),
            chunks if chunks.iter().all(|chunk| matches!(chunk, AssistantPiece::Text(_))) => {
                let texts =
                    chunks.iter().map(|chunk| if let AssistantPiece::Text(text) = chunk { text } else { "" });
                item.field("content", &texts.collect::<String>());
            }
            chunks => {
                let mut pieces = item.list("content");
                for chunk in chunks {
                    match chunk {
                        AssistantPiece::Text(text) => write_text(text, &mut pieces),
                        AssistantPiece::Own(block) => pieces.value(block),
                    }
                }
            }
        }
    }
}

fn write_call(call: &ToolCall, replay: BlockReplay<'_>, scope: &Scope<'_>, list: &mut List<'_>) {
    let own = replay.block(call.raw.as_ref());
    let mut object = list.object();
    object.field("id", &calls::id(scope.target, &call.id)).field("type", "function");
    object
        .object("function")
        .field("name", &calls::name(&call.name))
        .field("arguments", &calls::arguments(call));
    object.others(own, &["id", "type", "function"]);
}
