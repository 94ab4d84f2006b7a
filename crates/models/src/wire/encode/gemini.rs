//! Gemini's `generateContent` and `streamGenerateContent`.
//!
//! A thought signature goes back on the part that it came with. Calls and results carry an id only where the
//! API gave one; otherwise their order tells which belongs to which.

use std::sync::Arc;

use llm_do_core::{
    Attachment, Effort, Message, ModelRequest, Part, Role, ServerTool, ThinkingStyle, ToolCall, ToolChoice,
    ToolDefinition, ToolResult,
};
use serde_json::{Map, Value, json};

use super::attachment::{ShownAttachment, named_text, shown};
use super::calls::{self, Answers};
use super::json_text::{Fields, List, Object};
use super::scope::{BlockReplay, EMPTY, Scope};
use super::thinking::{ThinkingPlan, level_of};
use super::{Closing, RequestTarget, Writer, schema};

/// What Gemini 3 takes as the signature of a call that it did not make itself. Without one it refuses.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// Writes `generateContent`.
pub(super) struct Generate;

impl Writer for Generate {
    fn path(&self, target: &RequestTarget, is_stream: bool) -> String {
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
        if has_instructions(request) && scope.target.rules.system_role {
            let parts = json!([{"text": request.instructions}]);
            fields.put("systemInstruction", json!({"parts": parts}));
        }
        let tools = tools(request, scope);
        let config = tool_config(request, &tools, scope);
        if !tools.is_empty() {
            fields.put("tools", tools);
        }
        fields.put_some("toolConfig", config);
        scope.without_setting("parallel_tool_calls", request.settings.parallel_tool_calls == Some(false));
        fields
    }

    fn first_item(&self, request: &ModelRequest<'_>, target: &RequestTarget) -> Option<Value> {
        let is_first = has_instructions(request) && !target.rules.system_role;
        is_first.then(|| json!({"role": "user", "parts": [{"text": request.instructions}]}))
    }

    fn closing(&self, ask: &Closing<'_>, scope: &mut Scope<'_>) -> Map<String, Value> {
        let settings = ask.request.settings;
        let mut config = Map::new();
        let plan = ThinkingPlan::from_settings(settings, scope);
        let (temperature, top_p) = scope.sampling(settings, plan.is_active(scope));
        config.put_some("temperature", temperature);
        config.put_some("topP", top_p);
        config.put_some("seed", settings.seed);
        let stops = scope.stops(settings);
        if !stops.is_empty() {
            config.put("stopSequences", json!(stops));
        }
        let limit = ask.max_output.map(|limit| scope.output_limit(limit, settings));
        config.put_some("maxOutputTokens", limit);
        if let Some(schema) = ask.request.output_schema {
            config.put("responseMimeType", "application/json");
            let output = schema::gemini_output(schema.source()).unwrap_or_else(|| schema.source().clone());
            config.put("responseJsonSchema", output);
        }
        config.put_some("thinkingConfig", thinking(plan, scope));
        std::iter::once(("generationConfig".to_owned(), config.into())).collect()
    }

    fn late_objects(&self) -> &'static [&'static str] {
        &["generationConfig"]
    }

    fn message(
        &self,
        message: &Message,
        earlier: &[Arc<Message>],
        scope: &mut Scope<'_>,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let mut start = out.len();
        let is_written = match message.role {
            Role::User => {
                write_user(&Answers::new(message, earlier.last().map(|before| &**before)), scope, out)
            }
            Role::Assistant => {
                if needs_user_before(message, earlier, scope) {
                    write_contents(EMPTY, out);
                }
                start = out.len();
                write_model(message, scope, out)
            }
        };
        if !is_written {
            out.truncate(start);
        }
        None
    }

    fn go_on(&self) -> &'static str {
        r#",{"role":"user","parts":[{"text":"Continue."}]}"#
    }
}

/// Returns whether a message of the user must precede one of the model: before the first, and before calls.
fn needs_user_before(message: &Message, earlier: &[Arc<Message>], scope: &Scope<'_>) -> bool {
    match earlier.last() {
        None => !scope.target.rules.assistant_first,
        Some(before) => before.role == Role::Assistant && message.tool_calls().next().is_some(),
    }
}

fn has_instructions(request: &ModelRequest<'_>) -> bool {
    !request.instructions.trim().is_empty()
}

/// Writes a message of the user that is only text.
fn write_contents(text: &str, out: &mut Vec<u8>) {
    let mut item = Object::item(out);
    item.field("role", "user");
    write_text(text, &mut item.list("parts"));
}

fn tools(request: &ModelRequest<'_>, scope: &mut Scope<'_>) -> Vec<Value> {
    let mut tools = Vec::new();
    let declarations: Vec<Value> = request.tools.iter().filter_map(|tool| tool_value(tool, scope)).collect();
    if !declarations.is_empty() {
        tools.push(json!({"functionDeclarations": declarations}));
    }
    // Before Gemini 3, tools of the provider and of the client exclude each other.
    let is_apart = !tools.is_empty() && !scope.target.rules.mixed_tools;
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

/// Returns whether tools of the client and of the provider are offered together.
fn has_both(tools: &[Value]) -> bool {
    tools.len() > 1 && tools[0].get("functionDeclarations").is_some()
}

fn has_functions(tools: &[Value]) -> bool {
    tools.iter().any(|tool| tool.get("functionDeclarations").is_some())
}

fn tool_config(request: &ModelRequest<'_>, tools: &[Value], scope: &mut Scope<'_>) -> Option<Value> {
    let plan = ThinkingPlan::from_settings(request.settings, scope);
    let choice = scope.tool_choice(request.settings, plan).filter(|_| has_functions(tools));
    let mut config = Map::new();
    config.put_some("functionCallingConfig", choice.map(choice_value));
    config.put_some("includeServerSideToolInvocations", has_both(tools).then_some(true));
    (!config.is_empty()).then(|| config.into())
}

/// Returns the declaration of a tool, or nothing where the API refuses its name, and with it the whole request.
fn tool_value(tool: &ToolDefinition, scope: &mut Scope<'_>) -> Option<Value> {
    if !tool.name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        scope
            .left_out(&format!("the tool `{}`, whose name begins with neither a letter nor `_`,", tool.name));
        return None;
    }
    let input = schema::gemini_tool_input(tool.input.source());
    let mut value = json!({"name": tool.name, "parametersJsonSchema": input});
    if !tool.description.is_empty() {
        value["description"] = tool.description.as_str().into();
    }
    Some(value)
}

fn choice_value(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    }
}

fn thinking(plan: ThinkingPlan, scope: &Scope<'_>) -> Option<Value> {
    let is_budget = scope.target.profile.thinking == ThinkingStyle::Budget;
    match plan {
        ThinkingPlan::Default => None,
        ThinkingPlan::Off if is_budget => Some(json!({"thinkingBudget": 0})),
        // No model that takes levels can be switched off; a profile of a project may say otherwise.
        ThinkingPlan::Off => Some(json!({"thinkingLevel": Effort::Minimal.as_str()})),
        ThinkingPlan::Tokens(tokens) => Some(json!({"includeThoughts": true, "thinkingBudget": tokens})),
        // A budget of −1 lets the model decide.
        ThinkingPlan::On if is_budget => Some(json!({"includeThoughts": true, "thinkingBudget": -1})),
        ThinkingPlan::On | ThinkingPlan::Level(_) => {
            Some(json!({"includeThoughts": true, "thinkingLevel": level_of(plan, scope).as_str()}))
        }
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
        ShownAttachment::LeftOut(message) => write_text(&message, parts),
        ShownAttachment::Text { text } => write_text(&named_text(attachment, text), parts),
        ShownAttachment::Media { media_type, bytes, .. } => {
            let mut part = parts.object();
            part.object("inlineData").field("mimeType", &media_type).base64("data", "", bytes);
        }
    }
}

fn write_model(message: &Message, scope: &Scope<'_>, out: &mut Vec<u8>) -> bool {
    let replay = scope.replay(message);
    let mut is_first_call = true;
    let mut item = Object::item(out);
    item.field("role", "model");
    let mut parts = item.list("parts");
    for part in &message.parts {
        match part {
            Part::Text { text, raw } => match replay.block(raw.as_ref()) {
                Some(raw) => parts.value(raw),
                None => write_text(text, &mut parts),
            },
            Part::Thinking { text, signature, raw } => match replay.block(raw.as_ref()) {
                Some(raw) => parts.value(raw),
                None if replay.is_accepted() => write_thought(text, signature.as_deref(), &mut parts),
                None => {}
            },
            Part::ToolCall(call) => {
                let is_first = std::mem::replace(&mut is_first_call, false);
                write_call(call, is_first, replay, scope, &mut parts);
            }
            Part::Opaque(block) => replay.block(Some(block)).iter().for_each(|block| parts.value(block)),
            Part::ToolResult(_) | Part::Attachment(_) => {}
        }
    }
    !parts.is_empty()
}

fn write_thought(text: &str, signature: Option<&str>, parts: &mut List<'_>) {
    let mut part = parts.object();
    part.field("text", text).field("thought", &true).some("thoughtSignature", signature);
}

fn write_call(
    call: &ToolCall,
    is_first: bool,
    replay: BlockReplay<'_>,
    scope: &Scope<'_>,
    parts: &mut List<'_>,
) {
    let own = replay.block(call.raw.as_ref());
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
    if is_first && !is_signed && scope.target.rules.thought_signatures {
        part.field("thoughtSignature", FOREIGN_SIGNATURE);
    }
}
