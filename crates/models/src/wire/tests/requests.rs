//! What the encoders write: whole bodies, one small conversation for each API and feature.

use std::sync::Arc;

use llm_do_core::{
    Attachment, Conversation, Effort, EffortLevels, Message, ModelProfile, ModelRequest, ModelSettings,
    Origin, Part, ProviderBlock, Role, Schema, ServerTool, Thinking, ThinkingStyle, ToolCall, ToolChoice,
    ToolDefinition, ToolResult,
};
use serde_json::{Value, json};

use super::super::Api;
use super::super::encode::{Encoded, Encoder, RequestTarget};
use super::provider::check;
use crate::profiles::rules_of;

/// A request with everything that it can hold.
#[derive(Clone, Default)]
pub(super) struct Asked {
    pub(super) instructions: String,
    pub(super) conversation: Conversation,
    pub(super) tools: Vec<Arc<ToolDefinition>>,
    pub(super) server_tools: Vec<ServerTool>,
    pub(super) output_schema: Option<Schema>,
    pub(super) settings: ModelSettings,
    pub(super) max_output: Option<u64>,
}

impl Asked {
    pub(super) fn of(messages: impl IntoIterator<Item = Message>) -> Self {
        let messages = messages.into_iter().map(Arc::new);
        Self { conversation: Conversation::from_messages(messages), ..Self::default() }
    }

    pub(super) fn instructed(mut self, instructions: &str) -> Self {
        self.instructions = instructions.into();
        self
    }

    pub(super) fn with_tool(mut self) -> Self {
        let input =
            Schema::new(json!({"type": "object", "properties": {"path": {"type": "string"}}})).unwrap();
        self.tools.push(Arc::new(ToolDefinition::new("read_file", "Reads a file.", input)));
        self
    }

    pub(super) fn set(mut self, set: impl FnOnce(&mut ModelSettings)) -> Self {
        set(&mut self.settings);
        self
    }

    pub(super) fn request(&self) -> ModelRequest<'_> {
        ModelRequest {
            instructions: &self.instructions,
            conversation: &self.conversation,
            tools: &self.tools,
            server_tools: &self.server_tools,
            output_schema: self.output_schema.as_ref(),
            settings: &self.settings,
            max_output: self.max_output,
        }
    }
}

/// The provider of each API in these tests.
pub(super) fn provider(api: Api) -> &'static str {
    match api {
        Api::Anthropic => "anthropic",
        Api::OpenAiChat => "openai-chat",
        Api::OpenAiResponses => "openai",
        Api::Gemini => "gemini",
        Api::Ollama => "ollama",
    }
}

pub(super) fn target(api: Api) -> RequestTarget {
    target_of(api, provider(api), "m")
}

/// A model with the rules of its provider, and with every ability.
pub(super) fn target_of(api: Api, provider: &str, model: &str) -> RequestTarget {
    let protocol = match api {
        Api::Anthropic => "anthropic",
        Api::OpenAiChat => "openai-chat",
        Api::OpenAiResponses => "openai",
        Api::Gemini => "gemini",
        Api::Ollama => "ollama",
    };
    let (provider, model, profile) = (provider.to_owned(), model.to_owned(), ModelProfile::default());
    let rules = rules_of(protocol, &provider, &model);
    RequestTarget { api, provider, model, profile, rules }
}

pub(super) fn thinking_target(api: Api, thinking: ThinkingStyle) -> RequestTarget {
    RequestTarget { profile: ModelProfile { thinking, ..ModelProfile::default() }, ..target(api) }
}

/// Writes a request that the provider accepts.
pub(super) fn encoded(target: RequestTarget, asked: &Asked) -> Encoded {
    let encoded = unchecked(target.clone(), asked);
    check(&target, asked, &encoded);
    encoded
}

/// Writes a request that the provider may refuse for something that the user asked for.
pub(super) fn unchecked(target: RequestTarget, asked: &Asked) -> Encoded {
    Encoder::new(target).encode(&asked.request()).unwrap()
}

pub(super) fn body(encoded: &Encoded) -> Value {
    serde_json::from_slice(&encoded.body.to_vec()).unwrap()
}

fn sent(api: Api, asked: &Asked) -> Value {
    body(&encoded(target(api), asked))
}

/// Writes a request without asking for the cache.
fn uncached(mut asked: Asked) -> Asked {
    asked.settings.cache = Some(false);
    asked
}

pub(super) fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments: arguments.into(), raw: None }
}

pub(super) fn result(id: &str, name: &str, text: &str) -> ToolResult {
    ToolResult {
        id: id.into(),
        name: name.into(),
        text: text.into(),
        is_error: false,
        attachments: Vec::new(),
    }
}

pub(super) fn assistant(provider: &str, parts: Vec<Part>) -> Message {
    let origin = Origin { provider: provider.into(), model: "m".into(), data: Value::Null };
    Message { role: Role::Assistant, parts, origin: Some(origin) }
}

fn user(parts: Vec<Part>) -> Message {
    Message { role: Role::User, parts, origin: None }
}

fn own(api: Api, value: Value) -> ProviderBlock {
    ProviderBlock { provider: provider(api).into(), value }
}

/// A question, two calls of which one fails, and a word of the caller beside the results.
fn two_calls(api: Api) -> Asked {
    let calls = vec![
        Part::text("Reading."),
        Part::ToolCall(call("c1", "read_file", r#"{"path": "a"}"#)),
        Part::ToolCall(call("c2", "read_file", "{}")),
    ];
    let failed = ToolResult { is_error: true, ..result("c2", "read_file", "error: no path") };
    let results = vec![
        Part::ToolResult(result("c1", "read_file", "A")),
        Part::ToolResult(failed),
        Part::text("Be brief."),
    ];
    Asked::of([Message::user("Read both."), assistant(provider(api), calls), user(results)])
        .instructed("You read.")
        .with_tool()
}

#[test]
fn chat_completions_hold_roles_calls_and_one_message_for_each_result() {
    let encoded = encoded(target(Api::OpenAiChat), &two_calls(Api::OpenAiChat));
    assert_eq!((encoded.path.as_str(), encoded.is_stream), ("/chat/completions", true));
    assert_eq!(encoded.notices, Vec::<String>::new());
    assert_eq!(
        body(&encoded),
        json!({
            "model": "m",
            "tools": [{"type": "function", "function": {
                "name": "read_file",
                "description": "Reads a file.",
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
            }}],
            "messages": [
                {"role": "system", "content": "You read."},
                {"role": "user", "content": "Read both."},
                {"role": "assistant", "content": "Reading.", "tool_calls": [
                    {"id": "c1", "type": "function",
                        "function": {"name": "read_file", "arguments": "{\"path\": \"a\"}"}},
                    {"id": "c2", "type": "function", "function": {"name": "read_file", "arguments": "{}"}},
                ]},
                {"role": "tool", "tool_call_id": "c1", "content": "A"},
                {"role": "tool", "tool_call_id": "c2", "content": "error: no path"},
                {"role": "user", "content": "Be brief."},
            ],
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
}

#[test]
fn messages_hold_blocks_with_all_results_first() {
    let encoded = encoded(target(Api::Anthropic), &uncached(two_calls(Api::Anthropic)));
    assert_eq!(encoded.path, "/v1/messages");
    assert_eq!(encoded.headers, [("anthropic-version", "2023-06-01".to_owned())]);
    assert_eq!(
        body(&encoded),
        json!({
            "model": "m",
            "tools": [{
                "name": "read_file",
                "description": "Reads a file.",
                "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
            }],
            "system": [{"type": "text", "text": "You read."}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Read both."}]},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "Reading."},
                    {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "a"}},
                    {"type": "tool_use", "id": "c2", "name": "read_file", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "A"}]},
                    {"type": "tool_result", "tool_use_id": "c2", "is_error": true,
                        "content": [{"type": "text", "text": "error: no path"}]},
                    {"type": "text", "text": "Be brief."},
                ]},
            ],
            "max_tokens": 8192,
            "stream": true,
        })
    );
}

#[test]
fn responses_hold_items() {
    let encoded = encoded(target(Api::OpenAiResponses), &two_calls(Api::OpenAiResponses));
    assert_eq!(encoded.path, "/responses");
    assert_eq!(
        body(&encoded),
        json!({
            "model": "m",
            "store": false,
            "instructions": "You read.",
            "tools": [{
                "type": "function",
                "name": "read_file",
                "description": "Reads a file.",
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                "strict": false,
            }],
            "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Read both."}]},
                {"type": "message", "role": "assistant",
                    "content": [{"type": "output_text", "text": "Reading."}]},
                {"type": "function_call", "call_id": "c1", "name": "read_file", "arguments": "{\"path\": \"a\"}"},
                {"type": "function_call", "call_id": "c2", "name": "read_file", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": "A"},
                {"type": "function_call_output", "call_id": "c2", "output": "error: no path"},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Be brief."}]},
            ],
            "stream": true,
        })
    );
}

#[test]
fn gemini_holds_contents_with_parts() {
    let encoded = encoded(target(Api::Gemini), &two_calls(Api::Gemini));
    assert_eq!(encoded.path, "/v1beta/models/m:streamGenerateContent?alt=sse");
    assert_eq!(
        body(&encoded),
        json!({
            "systemInstruction": {"parts": [{"text": "You read."}]},
            "tools": [{"functionDeclarations": [{
                "name": "read_file",
                "description": "Reads a file.",
                "parametersJsonSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
            }]}],
            "contents": [
                {"role": "user", "parts": [{"text": "Read both."}]},
                {"role": "model", "parts": [
                    {"text": "Reading."},
                    {"functionCall": {"id": "c1", "name": "read_file", "args": {"path": "a"}}},
                    {"functionCall": {"id": "c2", "name": "read_file", "args": {}}},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "A"}}},
                    {"functionResponse":
                        {"id": "c2", "name": "read_file", "response": {"error": "error: no path"}}},
                    {"text": "Be brief."},
                ]},
            ],
            "generationConfig": {},
        })
    );
}

#[test]
fn ollama_holds_arguments_as_objects_and_results_with_the_name_of_the_tool() {
    let encoded = encoded(target(Api::Ollama), &two_calls(Api::Ollama));
    assert_eq!(encoded.path, "/api/chat");
    assert_eq!(
        body(&encoded),
        json!({
            "model": "m",
            "tools": [{"type": "function", "function": {
                "name": "read_file",
                "description": "Reads a file.",
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
            }}],
            "messages": [
                {"role": "system", "content": "You read."},
                {"role": "user", "content": "Read both."},
                {"role": "assistant", "content": "Reading.", "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": {"path": "a"}}},
                    {"id": "c2", "type": "function", "function": {"name": "read_file", "arguments": {}}},
                ]},
                {"role": "tool", "tool_name": "read_file", "content": "A", "tool_call_id": "c1"},
                {"role": "tool", "tool_name": "read_file", "content": "error: no path", "tool_call_id": "c2"},
                {"role": "user", "content": "Be brief."},
            ],
            "stream": true,
            "options": {},
        })
    );
}

/// Returns the body without the fields that every request has.
fn settings_of(target: RequestTarget, asked: &Asked) -> (Value, Vec<String>) {
    let encoded = encoded(target, asked);
    let Value::Object(mut fields) = body(&encoded) else { panic!() };
    fields.retain(|key, _| {
        !matches!(key.as_str(), "model" | "messages" | "input" | "contents" | "tools" | "store" | "stream")
    });
    (fields.into(), encoded.notices)
}

/// Settings of every kind.
fn many_settings() -> Asked {
    let mut asked = Asked::of([Message::user("hi")]).with_tool().set(|settings| {
        settings.temperature = Some(0.5);
        settings.top_p = Some(0.9);
        settings.stop = vec!["END".into()];
        settings.seed = Some(7);
        settings.max_tokens = Some(2_000);
        settings.parallel_tool_calls = Some(false);
        settings.tool_choice = Some(ToolChoice::Tool("read_file".into()));
        settings.stream = Some(false);
        settings.cache = Some(false);
    });
    asked.output_schema = Some(strict_schema());
    asked
}

fn strict_schema() -> Schema {
    Schema::new(json!({
        "type": "object",
        "properties": {"age": {"type": "integer", "minimum": 0}},
        "required": ["age"],
        "additionalProperties": false,
    }))
    .unwrap()
}

#[test]
fn every_setting_has_its_place_or_a_notice() {
    let schema = strict_schema().source().clone();
    let left_out = |provider: &str, name: &str| {
        format!("the setting `{name}` is left out: `{provider}:m` does not take it")
    };
    assert_eq!(
        settings_of(target(Api::Anthropic), &many_settings()),
        (
            json!({
                "tool_choice": {"type": "tool", "name": "read_file", "disable_parallel_tool_use": true},
                "stop_sequences": ["END"],
                "output_config": {"format": {"type": "json_schema", "schema": {
                    "type": "object",
                    "properties": {"age": {"type": "integer", "description": "(minimum: 0)"}},
                    "required": ["age"],
                    "additionalProperties": false,
                }}},
                "max_tokens": 2000,
                "temperature": 0.5,
                "top_p": 0.9,
            }),
            vec![left_out("anthropic", "seed")]
        )
    );
    assert_eq!(
        settings_of(target(Api::OpenAiChat), &many_settings()),
        (
            json!({
                "tool_choice": {"type": "function", "function": {"name": "read_file"}},
                "parallel_tool_calls": false,
                "temperature": 0.5,
                "top_p": 0.9,
                "seed": 7,
                "stop": ["END"],
                "response_format": {"type": "json_schema",
                    "json_schema": {"name": "answer", "schema": schema, "strict": true}},
                "max_completion_tokens": 2000,
            }),
            Vec::new()
        )
    );
    assert_eq!(
        settings_of(target(Api::OpenAiResponses), &many_settings()),
        (
            json!({
                "tool_choice": {"type": "function", "name": "read_file"},
                "parallel_tool_calls": false,
                "temperature": 0.5,
                "top_p": 0.9,
                "text": {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": true}},
                "max_output_tokens": 2000,
            }),
            vec![left_out("openai", "seed"), left_out("openai", "stop")]
        )
    );
    assert_eq!(
        settings_of(target(Api::Gemini), &many_settings()),
        (
            json!({
                "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read_file"]}},
                "generationConfig": {
                    "temperature": 0.5,
                    "topP": 0.9,
                    "seed": 7,
                    "stopSequences": ["END"],
                    "maxOutputTokens": 2000,
                    "responseMimeType": "application/json",
                    "responseJsonSchema": schema,
                },
            }),
            vec![left_out("gemini", "parallel_tool_calls")]
        )
    );
    assert_eq!(
        settings_of(target(Api::Ollama), &many_settings()),
        (
            json!({
                "format": schema,
                "options": {"temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ["END"], "num_predict": 2000},
            }),
            vec![left_out("ollama", "tool_choice"), left_out("ollama", "parallel_tool_calls")]
        )
    );
}

#[test]
fn a_request_that_is_not_streamed_says_so() {
    for (api, path) in [
        (Api::Gemini, "/v1beta/models/m:generateContent"),
        (Api::Anthropic, "/v1/messages"),
        (Api::OpenAiChat, "/chat/completions"),
    ] {
        let encoded = encoded(target(api), &many_settings());
        assert_eq!((encoded.path.as_str(), encoded.is_stream), (path, false));
        assert!(body(&encoded)["stream_options"].is_null());
    }
}

#[test]
fn the_budget_of_a_request_goes_before_the_setting() {
    let mut asked = many_settings();
    asked.max_output = Some(300);
    assert_eq!(sent(Api::Anthropic, &asked)["max_tokens"], 300);
    assert_eq!(sent(Api::Ollama, &asked)["options"]["num_predict"], 300);
    let host = target_of(Api::OpenAiChat, "groq", "m");
    assert_eq!(body(&encoded(host, &asked))["max_tokens"], 300);
}

#[test]
fn mistral_gets_no_field_that_it_refuses() {
    let mistral = target_of(Api::OpenAiChat, "mistral", "m");
    let asked = many_settings().set(|settings| settings.stream = None);
    let body = body(&encoded(mistral, &asked));
    assert_eq!([&body["random_seed"], &body["seed"]], [&json!(7), &Value::Null]);
    assert_eq!([&body["stream"], &body["stream_options"]], [&json!(true), &Value::Null]);
}

fn thinking(api: Api, style: ThinkingStyle, set: impl FnOnce(&mut ModelSettings)) -> (Value, Vec<String>) {
    settings_of(thinking_target(api, style), &Asked::of([Message::user("hi")]).set(set))
}

#[test]
fn thinking_is_asked_for_as_each_api_wants_it() {
    let tokens = |settings: &mut ModelSettings| settings.thinking = Some(Thinking::Tokens(3_000));
    let high = |settings: &mut ModelSettings| settings.effort = Some(Effort::High);
    let off = |settings: &mut ModelSettings| settings.thinking = Some(Thinking::Wanted(false));
    let on = |settings: &mut ModelSettings| settings.thinking = Some(Thinking::Wanted(true));
    use ThinkingStyle::{Budget, Effort as Word};

    let anthropic = |style, set: fn(&mut ModelSettings)| thinking(Api::Anthropic, style, set).0;
    let budget = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens});
    assert_eq!(anthropic(Budget, tokens)["thinking"], budget(3_000));
    assert_eq!(anthropic(Budget, on)["thinking"], budget(6_144), "with room for the answer");
    assert_eq!(anthropic(Budget, off)["thinking"], Value::Null);
    assert_eq!(anthropic(Word, high)["thinking"], json!({"type": "adaptive"}));
    assert_eq!(anthropic(Word, high)["output_config"], json!({"effort": "high"}));
    assert_eq!(anthropic(Word, off)["thinking"], json!({"type": "disabled"}));

    let chat = thinking(Api::OpenAiChat, Word, high).0;
    assert_eq!(chat["reasoning_effort"], "high");
    let responses = thinking(Api::OpenAiResponses, Word, tokens).0;
    assert_eq!(responses["reasoning"], json!({"effort": "medium", "summary": "auto"}));
    assert_eq!(responses["include"], json!(["reasoning.encrypted_content"]));

    let gemini = |style, set: fn(&mut ModelSettings)| thinking(Api::Gemini, style, set).0;
    let config = |style, set| gemini(style, set)["generationConfig"]["thinkingConfig"].clone();
    assert_eq!(config(Budget, tokens), json!({"includeThoughts": true, "thinkingBudget": 3000}));
    assert_eq!(config(Budget, on), json!({"includeThoughts": true, "thinkingBudget": -1}));
    assert_eq!(config(Budget, off), json!({"thinkingBudget": 0}));
    assert_eq!(config(Word, high), json!({"includeThoughts": true, "thinkingLevel": "high"}));

    assert_eq!(thinking(Api::Ollama, Budget, on).0["think"], true);
    assert_eq!(thinking(Api::Ollama, Word, high).0["think"], "high");
    let effort_levels = EffortLevels::new(&[Effort::None]);
    let profile = ModelProfile { thinking: Word, effort_levels, ..ModelProfile::default() };
    let switched = RequestTarget { profile, ..target(Api::Ollama) };
    assert_eq!(settings_of(switched, &Asked::of([Message::user("hi")]).set(high)).0["think"], true);
    assert_eq!(thinking(Api::Ollama, Word, off).0["think"], false);
    let profile = ModelProfile { thinking: Word, ..ModelProfile::default() };
    let router = RequestTarget { profile, ..target_of(Api::OpenAiChat, "openrouter", "m") };
    let asked = Asked::of([Message::user("hi")]).set(tokens);
    assert_eq!(body(&encoded(router, &asked))["reasoning"], json!({"max_tokens": 3000}));
}

#[test]
fn what_cannot_stand_beside_thinking_is_left_out_with_a_notice() {
    let (fields, notices) = thinking(Api::Anthropic, ThinkingStyle::Budget, |settings| {
        settings.thinking = Some(Thinking::Tokens(2_000));
        settings.temperature = Some(0.1);
        settings.max_tokens = Some(4_000);
    });
    assert_eq!(fields["temperature"], Value::Null);
    assert_eq!(
        notices,
        ["the setting `temperature` beside thinking is left out: `anthropic:m` does not take it"]
    );
    let (fields, notices) = thinking(Api::Anthropic, ThinkingStyle::Budget, |settings| {
        settings.thinking = Some(Thinking::Wanted(true));
        settings.max_tokens = Some(800);
    });
    assert_eq!(fields["thinking"], Value::Null);
    assert_eq!(notices, ["thinking is left out: it needs more than 1024 output tokens"]);
    let (_, notices) = thinking(Api::Anthropic, ThinkingStyle::Unasked, |settings| {
        settings.thinking = Some(Thinking::Wanted(true));
    });
    assert_eq!(notices, ["the setting `thinking` is left out: `anthropic:m` does not take it"]);
    let forced = Asked::of([Message::user("hi")]).with_tool().set(|settings| {
        settings.thinking = Some(Thinking::Wanted(true));
        settings.tool_choice = Some(ToolChoice::Required);
    });
    let body = body(&encoded(thinking_target(Api::Anthropic, ThinkingStyle::Budget), &forced));
    assert_eq!(body["tool_choice"], json!({"type": "auto"}));
}

#[test]
fn what_a_model_does_not_take_is_said_once_in_a_session() {
    let profile = ModelProfile { sampling: false, ..ModelProfile::default() };
    let mut encoder = Encoder::new(RequestTarget { profile, ..target(Api::OpenAiChat) });
    let mut asked = Asked::of([Message::user("hi")]).set(|settings| settings.temperature = Some(1.0));
    let first = encoder.encode(&asked.request()).unwrap();
    assert_eq!(body(&first)["temperature"], Value::Null);
    assert_eq!(first.notices.len(), 1, "{:?}", first.notices);
    asked.max_output = Some(1);
    asked.instructions = "new".into();
    let second = encoder.encode(&asked.request()).unwrap();
    assert_eq!(second.notices, ["the instructions changed, so the provider's cache will miss the prompt"]);
}

fn server_tools() -> Asked {
    let search = ServerTool::WebSearch {
        max_uses: Some(3),
        allowed_domains: vec!["example.org".into()],
        blocked_domains: Vec::new(),
    };
    let fetch =
        ServerTool::WebFetch { max_uses: None, allowed_domains: Vec::new(), blocked_domains: Vec::new() };
    let mut asked = uncached(Asked::of([Message::user("hi")]));
    asked.server_tools = vec![search, fetch, ServerTool::CodeExecution {}, ServerTool::ImageGeneration {}];
    asked
}

/// A target whose model may use all tools that a provider can run.
fn server_target(api: Api) -> RequestTarget {
    let server_tools = &["web_search", "web_fetch", "code_execution", "image_generation"];
    RequestTarget { profile: ModelProfile { server_tools, ..ModelProfile::default() }, ..target(api) }
}

#[test]
fn server_side_tools_are_offered_where_the_api_has_them() {
    let search = encoded(server_target(Api::Anthropic), &server_tools());
    assert_eq!(
        body(&search)["tools"],
        json!([
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 3,
                "allowed_domains": ["example.org"]},
            {"type": "web_fetch_20250910", "name": "web_fetch"},
            {"type": "code_execution_20250825", "name": "code_execution"},
        ])
    );
    assert_eq!(
        search.headers[1],
        ("anthropic-beta", "web-fetch-2025-09-10,code-execution-2025-08-25".to_owned())
    );
    assert_eq!(
        search.notices,
        ["the server-side tool `image_generation` is left out: `anthropic:m` does not take it"]
    );
    assert_eq!(
        body(&encoded(server_target(Api::OpenAiResponses), &server_tools()))["tools"],
        json!([
            {"type": "web_search", "filters": {"allowed_domains": ["example.org"]}},
            {"type": "code_interpreter", "container": {"type": "auto"}},
            {"type": "image_generation"},
        ])
    );
    assert_eq!(
        body(&encoded(server_target(Api::Gemini), &server_tools()))["tools"],
        json!([{"googleSearch": {}}, {"urlContext": {}}, {"codeExecution": {}}])
    );
    assert_eq!(encoded(server_target(Api::OpenAiChat), &server_tools()).notices.len(), 4);
    let profile = ModelProfile { server_tools: &["web_search"], ..ModelProfile::default() };
    let only = encoded(RequestTarget { profile, ..target(Api::Anthropic) }, &server_tools());
    assert_eq!(body(&only)["tools"].as_array().unwrap().len(), 1);
    assert_eq!(only.notices.len(), 3);
    assert_eq!(only.headers.len(), 1, "no feature in use needs a beta");
    let none = encoded(target(Api::Anthropic), &server_tools());
    assert_eq!((&body(&none)["tools"], none.notices.len()), (&Value::Null, 4), "a model may have none");
}

#[test]
fn gemini_before_3_takes_no_server_side_tools_beside_functions() {
    let asked = server_tools().with_tool();
    let with = |model: &str| {
        let target = target_of(Api::Gemini, "gemini", model);
        RequestTarget { profile: server_target(Api::Gemini).profile, ..target }
    };
    let older = encoded(with("gemini-2.5-pro"), &asked);
    let kinds = |encoded: &Encoded| -> Vec<String> {
        let tools = body(encoded)["tools"].take();
        tools.as_array().unwrap().iter().flat_map(|tool| tool.as_object().unwrap().keys().cloned()).collect()
    };
    assert_eq!(kinds(&older), ["functionDeclarations"]);
    assert_eq!(
        older.notices[0],
        "the server-side tool `web_search` beside other tools is left out: `gemini:gemini-2.5-pro` does not take it"
    );
    assert_eq!(older.notices.len(), 4);
    let newer = encoded(with("gemini-3-pro-preview"), &asked);
    assert_eq!(kinds(&newer), ["functionDeclarations", "googleSearch", "urlContext", "codeExecution"]);
}

/// An image, a document, text and something unknown, beside a question and in a result.
fn attached(api: Api) -> Asked {
    let files = || {
        vec![
            Attachment::bytes("a.png", "image/png", b"PNG".to_vec()),
            Attachment::bytes("b.pdf", "application/pdf", b"PDF".to_vec()),
            Attachment::bytes("c.md", "text/markdown; charset=utf-8", b"# C".to_vec()),
            Attachment::bytes("d.bin", "application/zip", vec![0, 159]),
        ]
    };
    let mut parts = vec![Part::text("Look.")];
    parts.extend(files().into_iter().map(Part::Attachment));
    let shot = ToolResult { attachments: files()[..1].to_vec(), ..result("c1", "shoot", "done") };
    let asks = assistant(provider(api), vec![Part::ToolCall(call("c1", "shoot", ""))]);
    uncached(Asked::of([user(parts), asks, Message::results([shot])]))
}

#[test]
fn attachments_are_sent_as_each_api_takes_them() {
    let zip = "[The file `d.bin` (application/zip) is attached, but this model cannot look at it.]";
    let base64 =
        |media_type: &str, data: &str| json!({"type": "base64", "media_type": media_type, "data": data});
    let messages = sent(Api::Anthropic, &attached(Api::Anthropic))["messages"].take();
    assert_eq!(
        messages[0]["content"],
        json!([
            {"type": "text", "text": "Look."},
            {"type": "image", "source": base64("image/png", "UE5H")},
            {"type": "document", "title": "b.pdf", "source": base64("application/pdf", "UERG")},
            {"type": "document", "title": "c.md",
                "source": {"type": "text", "media_type": "text/plain", "data": "# C"}},
            {"type": "text", "text": zip},
        ])
    );
    assert_eq!(
        messages[2]["content"][0]["content"],
        json!([{"type": "text", "text": "done"}, {"type": "image", "source": base64("image/png", "UE5H")}])
    );

    let messages = sent(Api::OpenAiChat, &attached(Api::OpenAiChat))["messages"].take();
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,UE5H"}});
    assert_eq!(
        messages[0]["content"],
        json!([
            {"type": "text", "text": "Look."},
            image,
            {"type": "file", "file": {"filename": "b.pdf", "file_data": "data:application/pdf;base64,UERG"}},
            {"type": "text", "text": "File `c.md`:\n\n# C"},
            {"type": "text", "text": zip},
        ])
    );
    assert_eq!(messages[2], json!({"role": "tool", "tool_call_id": "c1", "content": "done"}));
    assert_eq!(
        messages[3]["content"],
        json!([{"type": "text", "text": "Files of the result of `shoot`:"}, image])
    );

    let input = sent(Api::OpenAiResponses, &attached(Api::OpenAiResponses))["input"].take();
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,UE5H"});
    assert_eq!(
        input[0]["content"],
        json!([
            {"type": "input_text", "text": "Look."},
            image,
            {"type": "input_file", "filename": "b.pdf", "file_data": "data:application/pdf;base64,UERG"},
            {"type": "input_text", "text": "File `c.md`:\n\n# C"},
            {"type": "input_text", "text": zip},
        ])
    );
    assert_eq!(input[2]["output"], json!([{"type": "input_text", "text": "done"}, image]));

    let contents = sent(Api::Gemini, &attached(Api::Gemini))["contents"].take();
    let image = json!({"inlineData": {"mimeType": "image/png", "data": "UE5H"}});
    assert_eq!(
        contents[0]["parts"],
        json!([
            {"text": "Look."},
            image,
            {"inlineData": {"mimeType": "application/pdf", "data": "UERG"}},
            {"text": "File `c.md`:\n\n# C"},
            {"text": zip},
        ])
    );
    assert_eq!(contents[2]["parts"][1], image);

    let encoded = encoded(target(Api::Ollama), &attached(Api::Ollama));
    let messages = body(&encoded)["messages"].take();
    assert_eq!(messages[0]["images"], json!(["UE5H"]));
    assert_eq!(messages[2]["images"], json!(["UE5H"]));
    assert_eq!(
        encoded.notices,
        [
            "the attachment `b.pdf` (application/pdf) is left out: `ollama:m` does not take it",
            "the attachment `d.bin` (application/zip) is left out: `ollama:m` does not take it",
        ]
    );
}

#[test]
fn the_text_of_a_file_is_text_for_other_servers_that_speak_messages() {
    let file = Attachment::bytes("c.md", "text/markdown", b"# C".to_vec());
    let asked = uncached(Asked::of([user(vec![Part::Attachment(file)])]));
    let own = sent(Api::Anthropic, &asked);
    assert_eq!(own["messages"][0]["content"][0]["type"], "document");
    let local = target_of(Api::Anthropic, "local", "m");
    let content = body(&encoded(local, &asked))["messages"][0]["content"].take();
    assert_eq!(content, json!([{"type": "text", "text": "File `c.md`:\n\n# C"}]));
}

#[test]
fn a_model_without_images_is_told_of_them() {
    let profile = ModelProfile { images: false, documents: false, ..ModelProfile::default() };
    let encoded = encoded(RequestTarget { profile, ..target(Api::OpenAiChat) }, &attached(Api::OpenAiChat));
    assert_eq!(encoded.notices.len(), 3, "{:?}", encoded.notices);
    assert!(body(&encoded)["messages"][0]["content"].as_str().unwrap().contains("`a.png` (image/png)"));
}

#[test]
fn the_type_of_an_attachment_is_seen_from_its_bytes_where_it_is_not_given() {
    let untyped =
        |bytes: &[u8]| Attachment { media_type: None, ..Attachment::bytes("x", "", bytes.to_vec()) };
    let kinds: [(&[u8], &str); 3] = [
        (b"\x89PNG\r\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"%PDF-1.7", "application/pdf"),
    ];
    for (bytes, media_type) in kinds {
        let asked = Asked::of([user(vec![Part::Attachment(untyped(bytes))])]);
        let part = sent(Api::Gemini, &asked)["contents"][0]["parts"][0].take();
        assert_eq!(part["inlineData"]["mimeType"], media_type);
    }
}

#[test]
fn fields_of_the_user_go_over_ours_except_the_messages() {
    let extra = json!({"model": "x", "max_tokens": 5, "top_k": 3, "messages": [], "thinking": {"type": "x"}});
    let asked =
        uncached(many_settings()).set(|settings| settings.extra_body = extra.as_object().unwrap().clone());
    let encoded_body = unchecked(target(Api::Anthropic), &asked);
    let body_of = body(&encoded_body);
    assert_eq!(
        [&body_of["model"], &body_of["max_tokens"], &body_of["top_k"], &body_of["thinking"]],
        [&json!("x"), &json!(5), &json!(3), &json!({"type": "x"})]
    );
    assert_eq!(body_of["messages"].as_array().unwrap().len(), 1);
    assert!(encoded_body.notices.iter().any(|notice| notice.contains("`messages` in `extra_body`")));
    let text = String::from_utf8(encoded_body.body.to_vec()).unwrap();
    assert_eq!(text.matches("\"max_tokens\"").count(), 1, "a field stands once");

    let nested = json!({"generationConfig": {"temperature": 1, "topK": 4}});
    let asked = many_settings().set(|settings| settings.extra_body = nested.as_object().unwrap().clone());
    let config = sent(Api::Gemini, &asked)["generationConfig"].take();
    assert_eq!([&config["temperature"], &config["topK"], &config["seed"]], [&json!(1), &json!(4), &json!(7)]);
}

#[test]
fn no_field_of_the_user_lifts_a_limit_inside_an_object() {
    let extra = json!({
        "generationConfig": {"maxOutputTokens": 9, "max_output_tokens": 9, "candidateCount": 9, "topK": 4},
        "generation_config": {"candidate_count": 9, "max_output_tokens": 9},
        "options": {"num_predict": 9, "numPredict": 9, "top_k": 4},
    });
    let mut asked = Asked::of([Message::user("hi")]);
    asked.settings.extra_body = extra.as_object().unwrap().clone();
    asked.max_output = Some(5);
    let gemini = sent(Api::Gemini, &asked);
    assert_eq!(gemini["generationConfig"], json!({"maxOutputTokens": 5, "topK": 4}));
    assert_eq!(gemini["generation_config"], json!({}));
    assert_eq!(sent(Api::Ollama, &asked)["options"], json!({"num_predict": 5, "top_k": 4}));
}

#[test]
fn blocks_of_the_provider_go_back_as_they_came() {
    let cited = json!({"type": "text", "text": "It is.", "citations": [{"url": "u"}]});
    let blocks = [
        json!({"type": "redacted_thinking", "data": "x"}),
        json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}),
        json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"url": "u"}]}),
    ];
    let mut parts = vec![Part::Thinking { text: "Hm.".into(), signature: Some("sig".into()), raw: None }];
    parts.extend(blocks.iter().map(|block| Part::Opaque(own(Api::Anthropic, block.clone()))));
    parts.push(Part::Text { text: "It is.".into(), raw: Some(own(Api::Anthropic, cited.clone())) });
    let asked = uncached(Asked::of([
        Message::user("Is it?"),
        assistant("anthropic", parts),
        Message::user("Thanks."),
    ]));
    let expected = json!([
        {"type": "thinking", "thinking": "Hm.", "signature": "sig"}, blocks[0], blocks[1], blocks[2], cited
    ]);
    assert_eq!(sent(Api::Anthropic, &asked)["messages"][1]["content"], expected);
    // For another provider, only the words remain.
    let messages = sent(Api::OpenAiChat, &asked)["messages"].take();
    assert_eq!(messages[1], json!({"role": "assistant", "content": "It is."}));
}

#[test]
fn the_rest_of_a_cut_answer_is_not_sent_where_it_would_be_refused() {
    let dangling = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}});
    let parts = vec![
        Part::text("Well"),
        Part::Opaque(own(Api::Anthropic, dangling.clone())),
        Part::Thinking { text: "Hm.".into(), signature: Some("sig".into()), raw: None },
        Part::thinking("unsigned"),
    ];
    let cut = assistant("anthropic", parts.clone());
    let asked = uncached(Asked::of([Message::user("Go."), cut, Message::user("On.")]));
    let content = sent(Api::Anthropic, &asked)["messages"][1]["content"].take();
    assert_eq!(content, json!([{"type": "text", "text": "Well"}]));

    let mut paused = assistant("anthropic", parts[..2].to_vec());
    paused.origin.as_mut().unwrap().data = json!({"stop_reason": "pause_turn"});
    let asked = uncached(Asked::of([Message::user("Go."), paused]));
    assert_eq!(sent(Api::Anthropic, &asked)["messages"][1]["content"][1], dangling);
}

#[test]
fn items_of_responses_go_back_with_their_ids_unless_their_reasoning_cannot() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"});
    let bare = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let said = json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [
        {"type": "output_text", "text": "Hi", "annotations": []}]});
    let function = json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f",
        "arguments": "{}", "status": "completed"});
    let answer = |reasoning: &Value| {
        let called =
            ToolCall { raw: Some(own(Api::OpenAiResponses, function.clone())), ..call("c1", "f", "{}") };
        vec![
            Part::Opaque(own(Api::OpenAiResponses, reasoning.clone())),
            Part::Text { text: "Hi".into(), raw: Some(own(Api::OpenAiResponses, said.clone())) },
            Part::ToolCall(called),
        ]
    };
    let items = |parts: Vec<Part>| {
        let asked = Asked::of([
            Message::user("?"),
            assistant("openai", parts),
            Message::results([result("c1", "f", "1")]),
        ]);
        let input = sent(Api::OpenAiResponses, &asked)["input"].take();
        input.as_array().unwrap()[1..].to_vec()
    };
    let whole = items(answer(&reasoning));
    assert_eq!(whole[..3], [reasoning.clone(), said.clone(), function.clone()]);
    let without_id = |value: &Value| {
        let fields = value.as_object().unwrap().iter().filter(|(key, _)| *key != "id");
        fields.map(|(key, value)| (key.clone(), value.clone())).collect::<Value>()
    };
    assert_eq!(items(answer(&bare))[..2], [without_id(&said), without_id(&function)]);
    // A search cannot do without its id, which refers to the reasoning as well.
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    for (reasoning, is_kept) in [(&reasoning, true), (&bare, false)] {
        let mut searched = answer(reasoning);
        searched.insert(1, Part::Opaque(own(Api::OpenAiResponses, search.clone())));
        assert_eq!(items(searched).contains(&search), is_kept);
    }
    // Nothing follows the reasoning: the call was taken away when the answer was cut.
    let mut cut = answer(&reasoning);
    cut.truncate(1);
    assert_eq!(items(cut).len(), 1, "only the stray result, as text");
}

#[test]
fn signatures_of_gemini_stay_on_their_parts() {
    let signed = json!({"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "sig"});
    let called =
        ToolCall { raw: Some(own(Api::Gemini, signed.clone())), ..call("made_call_r_1", "f", r#"{"a":1}"#) };
    let parts =
        vec![Part::thinking("Hm."), Part::ToolCall(called), Part::ToolCall(call("made_call_r_2", "g", "{}"))];
    let results = Message::results([result("made_call_r_1", "f", "1"), result("made_call_r_2", "g", "2")]);
    let asked = Asked::of([Message::user("?"), assistant("google", parts), results]);
    let contents = sent(Api::Gemini, &asked)["contents"].take();
    assert_eq!(
        contents[1]["parts"],
        json!([{"text": "Hm.", "thought": true}, signed, {"functionCall": {"name": "g", "args": {}}}])
    );
    assert_eq!(
        contents[2]["parts"][0]["functionResponse"],
        json!({"name": "f", "response": {"output": "1"}})
    );
    // A call that another model made needs some signature for Gemini 3.
    let third = target_of(Api::Gemini, "gemini", "gemini-3-pro");
    let foreign = Asked::of([
        Message::user("?"),
        assistant("anthropic", vec![Part::ToolCall(call("t1", "f", "{}"))]),
        Message::results([result("t1", "f", "1")]),
    ]);
    let part = body(&encoded(third, &foreign))["contents"][1]["parts"][0].take();
    assert_eq!(part["thoughtSignature"], "skip_thought_signature_validator");
}

#[test]
fn thinking_of_chat_hosts_goes_back_in_the_field_in_which_it_came() {
    let block = |value| Part::Thinking {
        text: "Hm.".into(),
        signature: None,
        raw: Some(own(Api::OpenAiChat, value)),
    };
    let parts = vec![
        block(json!({"reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "signature": "s"}]})),
        Part::Opaque(own(Api::OpenAiChat, json!({"reasoning_details": [{"type": "reasoning.encrypted"}]}))),
        block(json!({"reasoning_content": "Hm."})),
        Part::text("Yes."),
    ];
    let message = sent(Api::OpenAiChat, &Asked::of([Message::user("?"), assistant("openai-chat", parts)]));
    assert_eq!(
        message["messages"][1],
        json!({"role": "assistant", "content": "Yes.", "reasoning_content": "Hm.", "reasoning_details": [
            {"type": "reasoning.text", "text": "Hm.", "signature": "s"}, {"type": "reasoning.encrypted"}]})
    );
    let chunk = json!({"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]});
    let raw = Some(ProviderBlock { provider: "mistral".into(), value: chunk.clone() });
    let parts = vec![Part::Thinking { text: "Hm.".into(), signature: None, raw }, Part::text("Yes.")];
    let asked = Asked::of([Message::user("?"), assistant("mistral", parts)]);
    let message = body(&encoded(target_of(Api::OpenAiChat, "mistral", "m"), &asked));
    assert_eq!(message["messages"][1]["content"], json!([chunk, {"type": "text", "text": "Yes."}]));
}

#[test]
fn ids_and_arguments_are_made_acceptable_and_stay_paired() {
    let long = "x".repeat(70);
    let odd = "functions.read:0";
    for (api, provider, is_taken) in [
        (Api::Anthropic, "anthropic", (|id| id.len() == 30 && id.starts_with("toolu_")) as fn(&str) -> bool),
        (Api::OpenAiChat, "mistral", |id| id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric())),
        (Api::OpenAiChat, "openai-chat", |id| id.len() <= 40),
        (Api::OpenAiResponses, "openai", |id| id.len() <= 64),
    ] {
        let calls = vec![
            Part::ToolCall(call(odd, "read file", "[1]")),
            Part::ToolCall(call(&format!("{long}!"), "read", "{\"a\": ")),
        ];
        let results =
            Message::results([result(odd, "read file", "1"), result(&format!("{long}!"), "read", "2")]);
        let asked = uncached(Asked::of([Message::user("?"), assistant("elsewhere", calls), results]));
        let body = body(&encoded(target_of(api, provider, "m"), &asked));
        let text = body.to_string();
        let ids = |key: &str| values_of(&body, key);
        let (asks, answers) = match api {
            Api::Anthropic => (ids("id"), ids("tool_use_id")),
            Api::OpenAiChat => (ids("id"), ids("tool_call_id")),
            _ => (ids("call_id")[..2].to_vec(), ids("call_id")[2..].to_vec()),
        };
        assert_eq!(asks, answers, "{text}");
        assert_ne!(asks[0], asks[1]);
        assert!(
            asks.iter()
                .skip(usize::from(api != Api::Anthropic && provider != "mistral"))
                .all(|id| is_taken(id))
        );
        assert!(text.contains("read_file") && text.contains("invalid_arguments"), "{text}");
    }
}

/// Returns all texts under a key, in order.
pub(super) fn values_of(value: &Value, key: &str) -> Vec<String> {
    match value {
        Value::Array(values) => values.iter().flat_map(|value| values_of(value, key)).collect(),
        Value::Object(map) => map
            .iter()
            .flat_map(|(name, value)| match value {
                Value::String(text) if name == key => vec![text.clone()],
                value => values_of(value, key),
            })
            .collect(),
        _ => Vec::new(),
    }
}

#[test]
fn a_call_without_a_result_gets_one_and_a_result_without_a_call_becomes_text() {
    let calls = vec![Part::ToolCall(call("c1", "f", "{}")), Part::ToolCall(call("c2", "g", "{}"))];
    let answers = Message::results([result("c9", "h", "stray"), result("c1", "f", "1")]);
    let asked = uncached(Asked::of([Message::user("?"), assistant("anthropic", calls), answers]));
    assert_eq!(
        sent(Api::Anthropic, &asked)["messages"][2]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "1"}]},
            {"type": "tool_result", "tool_use_id": "c2", "is_error": true,
                "content": [{"type": "text", "text": "error: this call has no result"}]},
            {"type": "text", "text": "Result of `h`: stray"},
        ])
    );
}

#[test]
fn nothing_empty_is_sent() {
    let asked = uncached(Asked::of([
        user(vec![Part::text("")]),
        assistant("elsewhere", vec![Part::thinking("Hm.")]),
        user(Vec::new()),
        assistant("elsewhere", vec![Part::text(" \n"), Part::ToolCall(call("c1", "f", ""))]),
        Message::results([result("c1", "f", "")]),
    ]));
    assert_eq!(
        sent(Api::Anthropic, &asked)["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "(empty)"}]},
            {"role": "user", "content": [{"type": "text", "text": "(empty)"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "(empty)"}]}]},
        ])
    );
    let error = Encoder::new(target(Api::Gemini)).encode(&Asked::default().request()).unwrap_err();
    assert_eq!(error.message, "the conversation holds nothing to send");
}

#[test]
fn a_schema_that_is_not_strict_is_not_called_so() {
    let mut asked = Asked::of([Message::user("?")]);
    asked.output_schema = Some(Schema::new(json!({"type": "object", "properties": {"a": {}}})).unwrap());
    let format = sent(Api::OpenAiResponses, &asked)["text"]["format"].take();
    assert_eq!(format["strict"], false);
    let nested = json!({"type": "object", "properties": {
        "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "number", "maximum": 3}}}},
        "at": {"type": "string", "format": "uint32"}}});
    asked.output_schema = Some(Schema::new(nested).unwrap());
    let schema = sent(Api::Anthropic, &asked)["output_config"]["format"]["schema"].take();
    assert_eq!(
        schema,
        json!({"type": "object", "additionalProperties": false, "properties": {
            "list": {"type": "array", "items":
                {"type": "object", "additionalProperties": false, "properties": {
                    "n": {"type": "number", "description": "(maximum: 3)"}}}},
            "at": {"type": "string", "description": "(format: \"uint32\")"}}})
    );
}

#[test]
fn what_is_not_set_is_left_to_the_provider() {
    for (api, expected) in [
        (Api::Anthropic, json!({"max_tokens": 8192})),
        (Api::OpenAiChat, json!({"stream_options": {"include_usage": true}})),
        (Api::OpenAiResponses, json!({})),
        (Api::Gemini, json!({"generationConfig": {}})),
        (Api::Ollama, json!({"options": {}})),
    ] {
        let asked = uncached(Asked::of([Message::user("hi")]));
        assert_eq!(settings_of(target(api), &asked), (expected, Vec::new()));
    }
}
