//! Chat Completions, for OpenAI and for the many hosts that know a part of it.
//!
//! A content that is only text is one string, since many hosts take nothing else; pieces are used where there
//! is more than text. Which of them a message gets depends on that message alone, so it never changes.
//!
//! A result is a message of its own. Its attachments follow in a message of the caller, after all results.

use std::borrow::Cow;

use llm_do_core::{
    Attachment, Effort, Message, ModelRequest, Part, Role, Thinking, ThinkingStyle, ToolCall, ToolChoice,
    ToolDefinition, ToolResult,
};
use serde_json::{Map, Value, json};

use super::attachment::{Media, Shown, named_text, shown};
use super::calls::{self, Answers};
use super::json_text::{Fields, List, Object};
use super::scope::{EMPTY, Scope, Thought, effort_of, thought};
use super::{Closing, Target, Writer, schema};

/// Writes Chat Completions.
pub(super) struct Completions;

impl Writer for Completions {
    fn path(&self, _: &Target, _: bool) -> String {
        "/chat/completions".into()
    }

    fn opening(&self, request: &ModelRequest<'_>, scope: &mut Scope<'_>) -> Map<String, Value> {
        let settings = request.settings;
        let mut fields = Map::new();
        fields.put("model", scope.target.model.clone());
        if !request.tools.is_empty() {
            fields.put("tools", request.tools.iter().map(|tool| tool_value(tool)).collect::<Value>());
            fields.put_some("tool_choice", settings.tool_choice.as_ref().map(choice_value));
            fields.put_some("parallel_tool_calls", settings.parallel_tool_calls);
        }
        let (temperature, top_p) = scope.sampling(settings);
        fields.put_some("temperature", temperature);
        fields.put_some("top_p", top_p);
        fields
            .put_some(if scope.target.provider == "mistral" { "random_seed" } else { "seed" }, settings.seed);
        if !settings.stop.is_empty() {
            fields.put("stop", json!(settings.stop));
        }
        if let Some((key, value)) = thinking(request, scope) {
            fields.put(key, value);
        }
        if let Some(schema) = request.output_schema {
            fields.put("response_format", response_format(schema.source()));
        }
        scope.server_tools(request).into_iter().for_each(|tool| scope.without_server_tool(tool));
        fields
    }

    fn first_item(&self, request: &ModelRequest<'_>) -> Option<Value> {
        let instructions = request.instructions;
        (!instructions.trim().is_empty()).then(|| json!({"role": "system", "content": instructions}))
    }

    fn closing(&self, ask: &Closing<'_>, scope: &mut Scope<'_>) -> Map<String, Value> {
        let mut fields = Map::new();
        let limit = if is_openai(scope.target) { "max_completion_tokens" } else { "max_tokens" };
        fields.put_some(limit, ask.max_output);
        fields.put("stream", ask.is_stream);
        // Mistral reports usage unasked, and refuses fields that it does not know.
        let asks_usage = ask.is_stream && scope.target.provider != "mistral";
        fields.put_some("stream_options", asks_usage.then(|| json!({"include_usage": true})));
        fields
    }

    fn late_objects(&self) -> &'static [&'static str] {
        &["stream_options"]
    }

    fn message(
        &self,
        message: &Message,
        before: Option<&Message>,
        scope: &mut Scope<'_>,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        match message.role {
            Role::User => write_user(&Answers::of(message, before), scope, out),
            Role::Assistant => write_assistant(message, scope, out),
        }
        None
    }
}

/// OpenAI itself, whose models that reason refuse the older name of the limit.
fn is_openai(target: &Target) -> bool {
    matches!(target.provider.as_str(), "openai-chat" | "azure")
}

fn tool_value(tool: &ToolDefinition) -> Value {
    let mut function = json!({"name": tool.name, "parameters": tool.input.source()});
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
    let format = json!({"name": "answer", "schema": source, "strict": schema::is_strict(source)});
    json!({"type": "json_schema", "json_schema": format})
}

/// Returns the field that says how to think. OpenRouter has one of its own, which takes tokens as well.
fn thinking(request: &ModelRequest<'_>, scope: &mut Scope<'_>) -> Option<(&'static str, Value)> {
    let thought = thought(request.settings);
    let style = scope.target.profile.thinking;
    let word = |tokens, effort: Option<_>| openai_effort(effort.unwrap_or_else(|| effort_of(tokens)));
    match (thought, style, scope.target.provider.as_str()) {
        (Thought::Unset, ..) | (Thought::Off, ThinkingStyle::Unasked, _) => None,
        (Thought::On { .. }, ThinkingStyle::Unasked, _) => without_thinking(request, scope),
        (Thought::Off, _, "openrouter") => Some(("reasoning", json!({"enabled": false}))),
        (Thought::On { tokens: Some(tokens), .. }, _, "openrouter") => {
            Some(("reasoning", json!({"max_tokens": tokens})))
        }
        (Thought::On { tokens, effort }, _, "openrouter") => {
            Some(("reasoning", json!({"effort": word(tokens, effort)})))
        }
        (Thought::Off, ..) => Some(("reasoning_effort", "none".into())),
        (Thought::On { tokens, effort }, ..) => Some(("reasoning_effort", word(tokens, effort).into())),
    }
}

/// Says which of the two settings is not sent.
pub(super) fn without_thinking<T>(request: &ModelRequest<'_>, scope: &mut Scope<'_>) -> Option<T> {
    let settings = request.settings;
    scope.without_setting(
        "thinking",
        settings.thinking.is_some_and(|wanted| wanted != Thinking::Wanted(false)),
    );
    scope.without_setting("effort", settings.effort.is_some());
    None
}

/// Returns OpenAI's word for an effort.
pub(super) fn openai_effort(effort: Effort) -> &'static str {
    match effort {
        Effort::Max => "xhigh",
        effort => effort.word(),
    }
}

fn write_user(answers: &Answers<'_>, scope: &mut Scope<'_>, out: &mut Vec<u8>) {
    answers.results.iter().for_each(|result| write_result(result, scope, out));
    let content = content(answers, scope);
    if content.is_empty() && !answers.results.is_empty() {
        return;
    }
    let mut item = Object::item(out);
    item.field("role", "user");
    if let Some(text) = one_text(&content) {
        item.field("content", if text.is_empty() { EMPTY } else { &text });
    } else {
        let mut pieces = item.list("content");
        content.iter().for_each(|piece| write_piece(piece, &mut pieces));
    }
}

fn write_result(result: &ToolResult, scope: &Scope<'_>, out: &mut Vec<u8>) {
    let text = if result.text.is_empty() { EMPTY } else { &result.text };
    Object::item(out)
        .field("role", "tool")
        .field("tool_call_id", &calls::id(scope.target, &result.id))
        .field("content", text);
}

/// One piece of what the caller says.
enum Piece<'a> {
    Text(Cow<'a, str>),
    Media { attachment: &'a Attachment, kind: Media, media_type: Cow<'a, str>, bytes: &'a [u8] },
}

/// Returns what the caller says beside the results: their attachments first.
fn content<'a>(answers: &'a Answers<'_>, scope: &mut Scope<'_>) -> Vec<Piece<'a>> {
    let mut pieces = Vec::new();
    for result in answers.results.iter().filter(|result| !result.attachments.is_empty()) {
        pieces.push(Piece::Text(format!("Files of the result of `{}`:", result.name).into()));
        pieces.extend(result.attachments.iter().map(|attachment| piece(attachment, scope)));
    }
    for part in &answers.rest {
        match &**part {
            Part::Text { text, .. } if !text.is_empty() => pieces.push(Piece::Text((&**text).into())),
            Part::Attachment(attachment) => pieces.push(piece(attachment, scope)),
            _ => {}
        }
    }
    pieces
}

fn piece<'a>(attachment: &'a Attachment, scope: &mut Scope<'_>) -> Piece<'a> {
    match shown(attachment, scope) {
        Shown::Media { kind, media_type, bytes } => Piece::Media { attachment, kind, media_type, bytes },
        Shown::Text { text } => Piece::Text(named_text(attachment, text).into()),
        Shown::LeftOut(words) => Piece::Text(words.into()),
    }
}

/// Joins pieces that are all text.
fn one_text(pieces: &[Piece<'_>]) -> Option<String> {
    let text = |piece: &Piece<'_>| match piece {
        Piece::Text(text) => Some(text.to_string()),
        Piece::Media { .. } => None,
    };
    Some(pieces.iter().map(text).collect::<Option<Vec<String>>>()?.join("\n\n"))
}

fn write_text(text: &str, pieces: &mut List<'_>) {
    pieces.object().field("type", "text").field("text", text);
}

fn write_piece(piece: &Piece<'_>, pieces: &mut List<'_>) {
    match piece {
        Piece::Text(text) => write_text(text, pieces),
        Piece::Media { kind: Media::Document, attachment, media_type, bytes } => {
            let prefix = format!("data:{media_type};base64,");
            let mut object = pieces.object();
            object.field("type", "file");
            object.object("file").field("filename", &attachment.name).base64("file_data", &prefix, bytes);
        }
        Piece::Media { media_type, bytes, .. } => {
            let mut object = pieces.object();
            object.field("type", "image_url");
            object.object("image_url").base64("url", &format!("data:{media_type};base64,"), bytes);
        }
    }
}

fn write_assistant(message: &Message, scope: &Scope<'_>, out: &mut Vec<u8>) {
    let said = Said::of(message, scope);
    if said.is_empty() {
        return;
    }
    let mut item = Object::item(out);
    item.field("role", "assistant");
    said.write_content(&mut item);
    item.others(Some(&said.fields), &[]);
    if !said.calls.is_empty() {
        let mut calls = item.list("tool_calls");
        said.calls.iter().for_each(|call| write_call(call, scope, &mut calls));
    }
}

/// What the model said, sorted as a message holds it.
#[derive(Default)]
struct Said<'a> {
    content: Vec<Chunk<'a>>,
    /// Thinking and refusal, in the fields in which they came.
    fields: Map<String, Value>,
    calls: Vec<&'a ToolCall>,
}

/// One piece of the content.
enum Chunk<'a> {
    Text(&'a str),
    /// A piece that the host gave and that is no text.
    Own(&'a Map<String, Value>),
}

impl<'a> Said<'a> {
    fn of(message: &'a Message, scope: &Scope<'_>) -> Self {
        let mut said = Self::default();
        for part in &message.parts {
            match part {
                Part::Text { text, .. } if !text.is_empty() => said.content.push(Chunk::Text(text)),
                Part::ToolCall(call) => said.calls.push(call),
                Part::Thinking { raw: Some(block), .. } | Part::Opaque(block) => {
                    scope.own(Some(block)).into_iter().for_each(|block| said.keep(block));
                }
                _ => {}
            }
        }
        said
    }

    /// Keeps a block of the host: a piece of content has a type, all else are fields of the message.
    fn keep(&mut self, block: &'a Map<String, Value>) {
        if block.contains_key("type") {
            self.content.push(Chunk::Own(block));
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
            [Chunk::Text(text)] => _ = item.field("content", text),
            chunks if chunks.iter().all(|chunk| matches!(chunk, Chunk::Text(_))) => {
                let texts = chunks.iter().map(|chunk| if let Chunk::Text(text) = chunk { text } else { "" });
                item.field("content", &texts.collect::<String>());
            }
            chunks => {
                let mut pieces = item.list("content");
                for chunk in chunks {
                    match chunk {
                        Chunk::Text(text) => write_text(text, &mut pieces),
                        Chunk::Own(block) => pieces.value(block),
                    }
                }
            }
        }
    }
}

fn write_call(call: &ToolCall, scope: &Scope<'_>, list: &mut List<'_>) {
    let own = scope.own(call.raw.as_ref());
    let mut object = list.object();
    object.field("id", &calls::id(scope.target, &call.id)).field("type", "function");
    object
        .object("function")
        .field("name", &calls::name(&call.name))
        .field("arguments", &calls::arguments(call));
    object.others(own, &["id", "type", "function"]);
}
