//! Gemini's `generateContent` and `streamGenerateContent`.
//!
//! A thought signature goes back on the part that it came with. Calls and results carry an id only where the
//! API gave one; otherwise their order tells which belongs to which.

use llm_do_core::{
    Attachment, Effort, Message, ModelRequest, ModelSettings, NativeOutput, Part, Role, ServerTool,
    ThinkingStyle, ToolCall, ToolChoice, ToolDefinition, ToolResult,
};
use serde_json::{Map, Value, json};

use super::attachment::{Shown, named_text, shown};
use super::calls::{self, Answers};
use super::json_text::{Fields, List, Object};
use super::openai_chat::without_thinking;
use super::scope::{EMPTY, Scope, Thought, effort_of, thought, tokens_of};
use super::{Closing, Target, Writer};

/// What Gemini 3 takes as the signature of a call that it did not make itself. Without one it refuses.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// Writes `generateContent`.
pub(super) struct Generate;

impl Writer for Generate {
    fn path(&self, target: &Target, is_stream: bool) -> String {
        let model = &target.model;
        let folder = if model.contains('/') { "" } else { "models/" };
        let method = if is_stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
        format!("/v1beta/{folder}{model}:{method}")
    }

    fn history_field(&self) -> &'static str {
        "contents"
    }

    fn opening(&self, request: &ModelRequest<'_>, scope: &mut Scope<'_>) -> Map<String, Value> {
        let mut fields = Map::new();
        if !request.instructions.trim().is_empty() {
            let parts = json!([{"text": request.instructions}]);
            fields.put("systemInstruction", json!({"parts": parts}));
        }
        let tools = tools(request, scope);
        if !tools.is_empty() {
            fields.put("tools", tools);
        }
        if let Some(choice) = request.settings.tool_choice.as_ref().filter(|_| !request.tools.is_empty()) {
            fields.put("toolConfig", json!({"functionCallingConfig": choice_value(choice)}));
        }
        scope.without_setting("parallel_tool_calls", request.settings.parallel_tool_calls == Some(false));
        fields
    }

    fn closing(&self, ask: &Closing<'_>, scope: &mut Scope<'_>) -> Map<String, Value> {
        let settings = ask.request.settings;
        let mut config = Map::new();
        let (temperature, top_p) = scope.sampling(settings);
        config.put_some("temperature", temperature);
        config.put_some("topP", top_p);
        config.put_some("seed", settings.seed);
        if !settings.stop.is_empty() {
            config.put("stopSequences", json!(settings.stop));
        }
        config.put_some("maxOutputTokens", ask.max_output);
        if let Some(schema) = ask.request.output_schema {
            config.put("responseMimeType", "application/json");
            config.put("responseJsonSchema", schema.source().clone());
        }
        config.put_some("thinkingConfig", thinking(ask.request, scope));
        std::iter::once(("generationConfig".to_owned(), config.into())).collect()
    }

    fn late_objects(&self) -> &'static [&'static str] {
        &["generationConfig"]
    }

    fn message(
        &self,
        message: &Message,
        before: Option<&Message>,
        scope: &mut Scope<'_>,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let start = out.len();
        let is_written = match message.role {
            Role::User => write_user(&Answers::of(message, before), scope, out),
            Role::Assistant => write_model(message, scope, out),
        };
        if !is_written {
            out.truncate(start);
        }
        None
    }
}

fn tools(request: &ModelRequest<'_>, scope: &mut Scope<'_>) -> Vec<Value> {
    let mut tools = Vec::new();
    if !request.tools.is_empty() {
        let declarations: Vec<Value> = request.tools.iter().map(|tool| tool_value(tool)).collect();
        tools.push(json!({"functionDeclarations": declarations}));
    }
    // Before Gemini 3, tools of the provider and of the client exclude each other.
    let is_apart = !tools.is_empty() && scope.target.profile.native_output != NativeOutput::Always;
    for tool in scope.server_tools(request) {
        if is_apart {
            scope.left_out(&format!("the server-side tool `{}` beside other tools", tool.name()));
            continue;
        }
        scope.without_limits(tool, &["max_uses", "allowed_domains", "blocked_domains"]);
        match tool {
            ServerTool::WebSearch { .. } => tools.push(json!({"googleSearch": {}})),
            ServerTool::WebFetch { .. } => tools.push(json!({"urlContext": {}})),
            ServerTool::CodeExecution {} => tools.push(json!({"codeExecution": {}})),
            ServerTool::ImageGeneration {} => scope.without_server_tool(tool),
        }
    }
    tools
}

fn tool_value(tool: &ToolDefinition) -> Value {
    let mut value = json!({"name": tool.name, "parametersJsonSchema": tool.input.source()});
    if !tool.description.is_empty() {
        value["description"] = tool.description.as_str().into();
    }
    value
}

fn choice_value(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    }
}

fn thinking(request: &ModelRequest<'_>, scope: &mut Scope<'_>) -> Option<Value> {
    match (thought(request.settings), scope.target.profile.thinking) {
        (Thought::Unset, _) | (Thought::Off, ThinkingStyle::Unasked) => None,
        (Thought::On { .. }, ThinkingStyle::Unasked) => without_thinking(request, scope),
        (Thought::Off, ThinkingStyle::Budget) => Some(json!({"thinkingBudget": 0})),
        (Thought::Off, ThinkingStyle::Effort) => Some(json!({"thinkingLevel": "minimal"})),
        (Thought::On { tokens, effort }, ThinkingStyle::Budget) => {
            Some(json!({"includeThoughts": true, "thinkingBudget": budget(request.settings, tokens, effort)}))
        }
        (Thought::On { tokens, effort }, ThinkingStyle::Effort) => {
            let level = level(effort.unwrap_or_else(|| effort_of(tokens)));
            Some(json!({"includeThoughts": true, "thinkingLevel": level}))
        }
    }
}

/// Returns the tokens to think for; −1 lets the model decide.
fn budget(settings: &ModelSettings, tokens: Option<u64>, effort: Option<Effort>) -> Value {
    match tokens.or_else(|| settings.effort.map(|_| tokens_of(effort))) {
        Some(tokens) => tokens.into(),
        None => (-1).into(),
    }
}

fn level(effort: Effort) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal => "minimal",
        Effort::Xhigh | Effort::Max => "high",
        effort => effort.word(),
    }
}

fn write_user(answers: &Answers<'_>, scope: &mut Scope<'_>, out: &mut Vec<u8>) -> bool {
    let mut item = Object::item(out);
    item.field("role", "user");
    let mut parts = item.list("parts");
    answers.results.iter().for_each(|result| write_result(result, &mut parts));
    let files = answers.results.iter().flat_map(|result| &result.attachments);
    files.for_each(|attachment| write_attachment(attachment, scope, &mut parts));
    for part in &answers.rest {
        match &**part {
            Part::Text { text, .. } => write_text(text, &mut parts),
            Part::Attachment(attachment) => write_attachment(attachment, scope, &mut parts),
            _ => {}
        }
    }
    if parts.is_empty() {
        write_text(EMPTY, &mut parts);
    }
    true
}

fn write_result(result: &ToolResult, parts: &mut List<'_>) {
    let mut part = parts.object();
    let mut response = part.object("functionResponse");
    response.some("id", calls::given_id(&result.id)).field("name", &calls::name(&result.name));
    let key = if result.is_error { "error" } else { "output" };
    response.object("response").field(key, &result.text);
}

fn write_text(text: &str, parts: &mut List<'_>) {
    if !text.is_empty() {
        parts.object().field("text", text);
    }
}

fn write_attachment(attachment: &Attachment, scope: &mut Scope<'_>, parts: &mut List<'_>) {
    match shown(attachment, scope) {
        Shown::LeftOut(words) => write_text(&words, parts),
        Shown::Text { text } => write_text(&named_text(attachment, text), parts),
        Shown::Media { media_type, bytes, .. } => {
            let mut part = parts.object();
            part.object("inlineData").field("mimeType", &media_type).base64("data", "", bytes);
        }
    }
}

fn write_model(message: &Message, scope: &Scope<'_>, out: &mut Vec<u8>) -> bool {
    let is_own = scope.wrote(message);
    let mut is_first_call = true;
    let mut item = Object::item(out);
    item.field("role", "model");
    let mut parts = item.list("parts");
    for part in &message.parts {
        match part {
            Part::Text { text, raw } => match scope.own(raw.as_ref()) {
                Some(raw) => parts.value(raw),
                None => write_text(text, &mut parts),
            },
            Part::Thinking { text, signature, raw } => match scope.own(raw.as_ref()) {
                Some(raw) => parts.value(raw),
                None if is_own => write_thought(text, signature.as_deref(), &mut parts),
                None => {}
            },
            Part::ToolCall(call) => {
                let is_first = std::mem::replace(&mut is_first_call, false);
                write_call(call, is_first, scope, &mut parts);
            }
            Part::Opaque(block) => scope.own(Some(block)).iter().for_each(|block| parts.value(block)),
            Part::ToolResult(_) | Part::Attachment(_) => {}
        }
    }
    !parts.is_empty()
}

fn write_thought(text: &str, signature: Option<&str>, parts: &mut List<'_>) {
    let mut part = parts.object();
    part.field("text", text).field("thought", &true).some("thoughtSignature", signature);
}

fn write_call(call: &ToolCall, is_first: bool, scope: &Scope<'_>, parts: &mut List<'_>) {
    let own = scope.own(call.raw.as_ref());
    let mut part = parts.object();
    let mut function = part.object("functionCall");
    function
        .some("id", calls::given_id(&call.id))
        .field("name", &calls::name(&call.name))
        .json("args", &calls::arguments(call));
    function.others(own.and_then(|own| own.get("functionCall")?.as_object()), &["id", "name", "args"]);
    drop(function);
    part.others(own, &["functionCall"]);
    let is_signed = own.is_some_and(|own| own.get("thoughtSignature").is_some());
    // Only the first of several calls is signed.
    if is_first && !is_signed && scope.target.model.contains("gemini-3") {
        part.field("thoughtSignature", FOREIGN_SIGNATURE);
    }
}
