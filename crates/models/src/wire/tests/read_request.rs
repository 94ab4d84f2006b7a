//! Reads requests that other clients sent into ours, so that what follows them can be compared.
//!
//! Fields that say how to answer and that need no translation go into `extra_body`.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use llm_do_core::{
    Attachment, Conversation, Message, ModelProfile, Origin, Part, ProviderBlock, Role, Schema, Thinking,
    ThinkingStyle, ToolCall, ToolDefinition, ToolResult,
};
use serde_json::{Value, json};

use super::super::Api;
use super::super::encode::RequestTarget;
use super::requests::{Asked, target_of};

/// Reads a request. Two texts of instructions become one.
pub(super) fn read(api: Api, provider: &str, body: &Value) -> (RequestTarget, Asked) {
    let model = body["model"].as_str().unwrap_or("m");
    let reader = Reader { provider, model };
    let messages = match api {
        Api::Anthropic => reader.anthropic(&body["messages"]),
        Api::OpenAiChat => reader.chat(&body["messages"]),
        Api::OpenAiResponses => reader.responses(&body["input"]),
        Api::Gemini => reader.gemini(&body["contents"]),
        Api::Ollama => reader.ollama(&body["messages"]),
    };
    let messages = messages.into_iter().map(Arc::new);
    let mut asked = Asked { conversation: Conversation::from_messages(messages), ..Asked::default() };
    asked.instructions = instructions(api, body);
    asked.settings.cache = Some(false);
    asked.settings.stream = Some(body["stream"].as_bool().unwrap_or(false));
    let profile = read_fields(api, body, &mut asked);
    (RequestTarget { profile, ..target_of(api, provider, model) }, asked)
}

fn instructions(api: Api, body: &Value) -> String {
    let texts: Vec<String> = match api {
        Api::Anthropic => vec![text_of(&body["system"])],
        Api::OpenAiResponses => vec![text_of(&body["instructions"])],
        Api::Gemini => vec![text_of(&body["systemInstruction"]["parts"])],
        Api::OpenAiChat | Api::Ollama => {
            let system = list(&body["messages"]).filter(|message| message["role"] == "system");
            system.map(|message| text_of(&message["content"])).collect()
        }
    };
    texts.join("\n\n")
}

/// Reads tools, limits and thinking; the rest is passed on.
fn read_fields(api: Api, body: &Value, asked: &mut Asked) -> ModelProfile {
    let mut profile = ModelProfile::default();
    for (key, value) in body.as_object().unwrap() {
        match (key.as_str(), value) {
            ("model" | "messages" | "input" | "contents" | "stream" | "stream_options" | "store", _)
            | ("system" | "instructions" | "systemInstruction", _)
            | (_, Value::Null) => {}
            ("max_tokens" | "max_output_tokens" | "max_completion_tokens", limit) => {
                asked.max_output = limit.as_u64();
            }
            ("include", _) => profile.thinking = ThinkingStyle::Effort,
            ("thinking", thinking) if thinking["type"] == "enabled" => {
                profile.thinking = ThinkingStyle::Budget;
                asked.settings.thinking = thinking["budget_tokens"].as_u64().map(Thinking::Tokens);
            }
            ("think", think) => {
                profile.thinking = ThinkingStyle::Budget;
                asked.settings.thinking = think.as_bool().map(Thinking::Wanted);
            }
            ("tools", tools) => match read_tools(api, tools) {
                Some(tools) => asked.tools = tools,
                None => drop(asked.settings.extra_body.insert(key.clone(), tools.clone())),
            },
            (_, value) => drop(asked.settings.extra_body.insert(key.clone(), value.clone())),
        }
    }
    profile
}

/// Reads tools that are all functions of the client.
fn read_tools(api: Api, tools: &Value) -> Option<Vec<Arc<ToolDefinition>>> {
    let functions: Vec<&Value> = match api {
        Api::Gemini => list(tools).flat_map(|tool| list(&tool["functionDeclarations"])).collect(),
        Api::OpenAiChat | Api::Ollama => list(tools).map(|tool| &tool["function"]).collect(),
        Api::Anthropic | Api::OpenAiResponses => list(tools).collect(),
    };
    let is_whole = api != Api::Gemini || list(tools).count() == 1;
    let tools = functions.into_iter().map(|function| {
        if !function["defer_loading"].is_null() {
            return None;
        }
        let schema =
            ["parameters", "input_schema"].into_iter().map(|key| &function[key]).find(|it| it.is_object());
        let schema = Schema::new(lower_case_types(schema?)).ok()?;
        let description = function["description"].as_str().unwrap_or_default();
        Some(Arc::new(ToolDefinition::new(function["name"].as_str()?, description, schema)))
    });
    tools.collect::<Option<Vec<_>>>().filter(|tools| is_whole && !tools.is_empty())
}

/// Gemini's older schemas write types in capitals.
pub(super) fn lower_case_types(schema: &Value) -> Value {
    match schema {
        Value::Array(values) => values.iter().map(lower_case_types).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| match value {
                Value::String(kind) if key == "type" => (key.clone(), kind.to_lowercase().into()),
                value => (key.clone(), lower_case_types(value)),
            })
            .collect(),
        value => value.clone(),
    }
}

pub(super) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns a text, or the texts of a list joined.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => list(value).filter_map(|piece| piece["text"].as_str()).collect(),
    }
}

/// Splits a data URL.
fn data(url: &str, name: &str) -> Option<Part> {
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(file(name, media_type, data))
}

fn file(name: &str, media_type: &str, data: &str) -> Part {
    Part::Attachment(Attachment::bytes(name, media_type, STANDARD.decode(data).unwrap()))
}

struct Reader<'a> {
    provider: &'a str,
    model: &'a str,
}

impl Reader<'_> {
    fn own(&self, value: &Value) -> ProviderBlock {
        ProviderBlock { provider: self.provider.into(), value: value.clone() }
    }

    fn assistant(&self, parts: Vec<Part>) -> Message {
        let origin = Origin { provider: self.provider.into(), model: self.model.into(), data: Value::Null };
        Message { role: Role::Assistant, parts, origin: Some(origin) }
    }

    fn call(&self, id: &Value, name: &Value, arguments: String, raw: Option<&Value>) -> Part {
        Part::ToolCall(ToolCall {
            id: id.as_str().unwrap_or_default().into(),
            name: name.as_str().unwrap().into(),
            arguments: arguments.into(),
            raw: raw.map(|raw| self.own(raw)),
        })
    }

    fn message(&self, role: &Value, parts: Vec<Part>) -> Message {
        if role == "assistant" || role == "model" {
            return self.assistant(parts);
        }
        Message { role: Role::User, parts, origin: None }
    }

    fn anthropic(&self, messages: &Value) -> Vec<Message> {
        let read = |message: &Value| {
            let parts = match &message["content"] {
                Value::String(text) => vec![Part::text(text.as_str())],
                blocks => list(blocks).map(|block| self.anthropic_block(block)).collect(),
            };
            self.message(&message["role"], parts)
        };
        list(messages).map(read).collect()
    }

    fn anthropic_block(&self, block: &Value) -> Part {
        let raw = || Some(self.own(block));
        match block["type"].as_str().unwrap() {
            "text" => Part::Text { text: text_of(&json!([block])).into(), raw: raw() },
            "tool_use" => self.call(&block["id"], &block["name"], block["input"].to_string(), Some(block)),
            "tool_result" => {
                let images = list(&block["content"]).filter(|piece| piece["type"] != "text");
                let attachments = images.map(|image| anthropic_file(&image["source"]));
                Part::ToolResult(ToolResult {
                    id: block["tool_use_id"].as_str().unwrap().into(),
                    name: "".into(),
                    text: text_of(&block["content"]).into(),
                    is_error: block["is_error"].as_bool().unwrap_or(false),
                    attachments: attachments.collect(),
                })
            }
            "image" | "document" => Part::Attachment(anthropic_file(&block["source"])),
            "thinking" => Part::Thinking {
                text: block["thinking"].as_str().unwrap().into(),
                signature: block["signature"].as_str().map(str::to_owned),
                raw: raw(),
            },
            _ => Part::Opaque(self.own(block)),
        }
    }

    /// Reads messages in which results stand alone: those that follow each other become one message.
    fn chat(&self, messages: &Value) -> Vec<Message> {
        let mut read: Vec<Message> = Vec::new();
        for message in list(messages).filter(|message| message["role"] != "system") {
            match message["role"].as_str().unwrap() {
                "tool" => push_result(&mut read, chat_result(message)),
                "assistant" => read.push(self.chat_answer(message)),
                role => {
                    let parts = match &message["content"] {
                        Value::String(text) => vec![Part::text(text.as_str())],
                        pieces => list(pieces).map(chat_piece).collect(),
                    };
                    read.push(self.message(&role.into(), parts));
                }
            }
        }
        read
    }

    fn chat_answer(&self, message: &Value) -> Message {
        let mut parts = Vec::new();
        for key in ["reasoning_details", "reasoning_content", "reasoning"] {
            if !message[key].is_null() && message[key] != "" {
                let raw = Some(self.own(&json!({key: message[key]})));
                parts.push(Part::Thinking { text: "".into(), signature: None, raw });
            }
        }
        parts.push(Part::text(text_of(&message["content"])));
        for call in list(&message["tool_calls"]) {
            let function = &call["function"];
            let arguments = function["arguments"].as_str().unwrap().to_owned();
            parts.push(self.call(&call["id"], &function["name"], arguments, Some(call)));
        }
        self.assistant(parts)
    }

    fn responses(&self, input: &Value) -> Vec<Message> {
        let mut read: Vec<Message> = Vec::new();
        for item in list(input) {
            match item["type"].as_str().unwrap_or("message") {
                "message" if item["role"] == "user" => {
                    let parts = match &item["content"] {
                        Value::String(text) => vec![Part::text(text.as_str())],
                        pieces => list(pieces).map(responses_piece).collect(),
                    };
                    read.push(self.message(&item["role"], parts));
                }
                "function_call_output" => {
                    let text = text_of(&item["output"]);
                    push_result(&mut read, result_of(&item["call_id"], "", text));
                }
                "function_call" => {
                    let arguments = item["arguments"].as_str().unwrap().to_owned();
                    let call = self.call(&item["call_id"], &item["name"], arguments, Some(item));
                    self.push_said(&mut read, call);
                }
                _ => self.push_said(&mut read, Part::Opaque(self.own(item))),
            }
        }
        read
    }

    fn push_said(&self, read: &mut Vec<Message>, part: Part) {
        match read.last_mut().filter(|last| last.role == Role::Assistant) {
            Some(last) => last.parts.push(part),
            None => read.push(self.assistant(vec![part])),
        }
    }

    fn gemini(&self, contents: &Value) -> Vec<Message> {
        let read = |content: &Value| {
            let parts = list(&content["parts"]).flat_map(|part| self.gemini_part(part)).collect();
            self.message(&content["role"], parts)
        };
        list(contents).map(read).collect()
    }

    fn gemini_part(&self, part: &Value) -> Vec<Part> {
        if let Some(function) = part.get("functionCall") {
            return vec![self.call(
                &function["id"],
                &function["name"],
                function["args"].to_string(),
                Some(part),
            )];
        }
        if let Some(function) = part.get("functionResponse") {
            let mut result = result_of(
                &function["id"],
                function["name"].as_str().unwrap(),
                gemini_output(&function["response"]),
            );
            let images = list(&function["parts"]).map(|part| gemini_file(&part["inlineData"]));
            result.attachments = images.collect();
            return vec![Part::ToolResult(result)];
        }
        match part.get("inlineData").or_else(|| part.get("inline_data")) {
            Some(data) => vec![Part::Attachment(gemini_file(data))],
            None => match part["text"].as_str() {
                Some(text) => vec![Part::text(text)],
                None => vec![Part::Opaque(self.own(part))],
            },
        }
    }

    fn ollama(&self, messages: &Value) -> Vec<Message> {
        let mut read: Vec<Message> = Vec::new();
        for message in list(messages).filter(|message| message["role"] != "system") {
            let text = text_of(&message["content"]);
            match message["role"].as_str().unwrap() {
                "tool" => {
                    let name = message["tool_name"].as_str().unwrap();
                    push_result(&mut read, result_of(&message["tool_call_id"], name, text));
                }
                "assistant" => {
                    let mut parts = vec![Part::text(text)];
                    for call in list(&message["tool_calls"]) {
                        let function = &call["function"];
                        let arguments = function["arguments"].to_string();
                        parts.push(self.call(&call["id"], &function["name"], arguments, None));
                    }
                    read.push(self.assistant(parts));
                }
                role => {
                    let images = list(&message["images"]).filter_map(Value::as_str);
                    let images = images.map(|image| file("image", "image/png", image));
                    let parts = std::iter::once(Part::text(text)).chain(images).collect();
                    read.push(self.message(&role.into(), parts));
                }
            }
        }
        read
    }
}

fn anthropic_file(source: &Value) -> Attachment {
    let data = source["data"].as_str().unwrap_or_default();
    let media_type = source["media_type"].as_str().unwrap_or_default();
    Attachment::bytes("file", media_type, STANDARD.decode(data).unwrap_or_default())
}

fn gemini_file(data: &Value) -> Attachment {
    let media_type = data["mimeType"].as_str().or_else(|| data["mime_type"].as_str()).unwrap();
    Attachment::bytes("file", media_type, STANDARD.decode(data["data"].as_str().unwrap()).unwrap())
}

/// Returns the text in the many shapes that clients give to results.
pub(super) fn gemini_output(response: &Value) -> String {
    if response["content"].is_array() {
        return text_of(&response["content"]);
    }
    let value = ["output", "return_value", "result"].into_iter().find_map(|key| response.get(key));
    match value.unwrap_or(response) {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn chat_result(message: &Value) -> ToolResult {
    result_of(&message["tool_call_id"], "", text_of(&message["content"]))
}

fn result_of(id: &Value, name: &str, text: String) -> ToolResult {
    let id = id.as_str().unwrap_or_default().to_owned();
    ToolResult { id, name: name.into(), text: text.into(), is_error: false, attachments: Vec::new() }
}

fn push_result(read: &mut Vec<Message>, result: ToolResult) {
    let is_results = |last: &&mut Message| matches!(last.parts.last(), Some(Part::ToolResult(_)));
    match read.last_mut().filter(is_results) {
        Some(last) => last.parts.push(Part::ToolResult(result)),
        None => read.push(Message::results([result])),
    }
}

fn chat_piece(piece: &Value) -> Part {
    match piece["type"].as_str().unwrap() {
        "text" => Part::text(piece["text"].as_str().unwrap()),
        "image_url" => {
            let url = piece["image_url"]["url"].as_str().unwrap();
            data(url, "image").unwrap_or_else(|| Part::text(format!("[image at {url}]")))
        }
        _ => {
            let name = piece["file"]["filename"].as_str().unwrap();
            data(piece["file"]["file_data"].as_str().unwrap(), name).unwrap()
        }
    }
}

fn responses_piece(piece: &Value) -> Part {
    match piece["type"].as_str().unwrap() {
        "input_file" => {
            data(piece["file_data"].as_str().unwrap(), piece["filename"].as_str().unwrap()).unwrap()
        }
        "input_image" => data(piece["image_url"].as_str().unwrap(), "image").unwrap(),
        _ => Part::text(piece["text"].as_str().unwrap()),
    }
}
