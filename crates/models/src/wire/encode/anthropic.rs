//! Anthropic's Messages.
//!
//! Each message has a list of blocks. Results of calls come first in the message of the caller. The cache is
//! asked for by marks: on the last tool, on the instructions, and on two messages, which move with the
//! conversation. No message that is kept holds a mark.
//!
//! What a cut answer leaves behind would be refused and is left out: thinking without a signature, thinking at
//! the end, and the call of a server-side tool that was never answered, unless the turn is only paused.

use std::collections::HashSet;
use std::sync::Arc;

use llm_do_core::{
    Attachment, Effort, Message, ModelRequest, ModelSettings, Part, ProviderBlock, Role, ServerTool,
    Thinking, ThinkingStyle, ToolCall, ToolChoice, ToolDefinition, ToolResult,
};
use serde_json::{Map, Value, json};

use super::attachment::{Media, ShownAttachment, named_text, shown};
use super::calls::{self, Answers};
use super::json_text::{Fields, List, Object};
use super::scope::{BlockReplay, EMPTY, Scope};
use super::thinking::{ThinkingPlan, tokens_of};
use super::{Closing, HistoryEnding, RequestTarget, Writer, schema};

/// The version of the protocol.
const VERSION: &str = "2023-06-01";

/// Writes Messages.
pub(super) struct Messages;

impl Writer for Messages {
    fn path(&self, _: &RequestTarget, _: bool) -> String {
        "/v1/messages".into()
    }

    fn headers(&self, target: &RequestTarget, request: &ModelRequest<'_>) -> Vec<(&'static str, String)> {
        let beta = |tool: &ServerTool| match tool {
            ServerTool::WebFetch { .. } => Some("web-fetch-2025-09-10"),
            ServerTool::CodeExecution {} => Some("code-execution-2025-08-25"),
            ServerTool::WebSearch { .. } | ServerTool::ImageGeneration {} => None,
        };
        let offered = request.server_tools.iter().filter(|tool| target.offers(tool));
        let betas: Vec<&str> = offered.filter_map(beta).collect();
        let betas = (!betas.is_empty()).then(|| ("anthropic-beta", betas.join(",")));
        std::iter::once(("anthropic-version", VERSION.to_owned())).chain(betas).collect()
    }

    fn opening(&self, request: &ModelRequest<'_>, scope: &mut Scope<'_>) -> Map<String, Value> {
        let settings = request.settings;
        let plan = ThinkingPlan::from_settings(settings, scope);
        let mut fields = Map::new();
        fields.put("model", scope.target.model.clone());
        let tools = tools(request, scope);
        if !tools.is_empty() {
            fields.put_some("tool_choice", tool_choice(settings, plan, scope));
            fields.put("tools", tools);
        }
        if !request.instructions.trim().is_empty() {
            let block = json!({"type": "text", "text": request.instructions});
            fields.put("system", vec![marked(block, settings)]);
        }
        let stops = scope.stops(settings);
        if !stops.is_empty() {
            fields.put("stop_sequences", json!(stops));
        }
        fields.put_some("output_config", output_config(request, plan, scope));
        scope.without_setting("seed", settings.seed.is_some());
        fields
    }

    fn closing(&self, ask: &Closing<'_>, scope: &mut Scope<'_>) -> Map<String, Value> {
        let settings = ask.request.settings;
        let max_tokens = ask.max_output.unwrap_or(scope.target.profile.default_max_output);
        let max_tokens = scope.output_limit(max_tokens, settings);
        let mut fields = Map::new();
        fields.put("max_tokens", max_tokens);
        fields.put("stream", ask.is_stream);
        let plan = ThinkingPlan::from_settings(settings, scope);
        let thinking = thinking(ask, plan, max_tokens, scope);
        let is_thinking = match &thinking {
            Some(thinking) => thinking["type"] != "disabled",
            None => scope.target.rules.thinks_by_default,
        };
        fields.put_some("thinking", thinking);
        let (temperature, top_p) = scope.sampling(settings, is_thinking);
        fields.put_some("temperature", temperature);
        fields.put_some("top_p", top_p);
        fields
    }

    fn late_objects(&self) -> &'static [&'static str] {
        &["thinking"]
    }

    fn message(
        &self,
        message: &Message,
        earlier: &[Arc<Message>],
        scope: &mut Scope<'_>,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let start = out.len();
        let is_written = match message.role {
            Role::User => {
                write_user(&Answers::new(message, earlier.last().map(|before| &**before)), scope, out)
            }
            Role::Assistant => write_assistant(message, scope, out),
        };
        if !is_written {
            out.truncate(start);
            return None;
        }
        // Before the end of the last block, of the list, and of the message.
        Some(out.len() - 3)
    }

    fn ending(&self, messages: &[Arc<Message>], scope: &Scope<'_>) -> HistoryEnding {
        let needs_user = messages.last().is_some_and(|last| needs_user_after(last, scope));
        HistoryEnding { needs_user, is_unthought_loop: is_unthought_loop(messages, scope) }
    }

    fn go_on(&self) -> &'static str {
        r#",{"role":"user","content":[{"type":"text","text":"Continue."}]}"#
    }

    fn mark(&self) -> Option<&'static [u8]> {
        Some(br#","cache_control":{"type":"ephemeral"}"#)
    }
}

/// Returns the block with a mark, unless the cache is not wanted.
fn marked(mut block: Value, settings: &ModelSettings) -> Value {
    if settings.cache != Some(false) {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
    block
}

fn tools(request: &ModelRequest<'_>, scope: &mut Scope<'_>) -> Vec<Value> {
    let mut tools: Vec<Value> = request.tools.iter().filter_map(|tool| tool_value(tool, scope)).collect();
    for tool in scope.server_tools(request) {
        match server_tool_value(tool) {
            // Names must be unique among all tools, and the client's own tool is the one that the agent asked for.
            Some(_) if request.tools.iter().any(|own| own.name == tool.name()) => {
                scope.left_out(&format!("the server-side tool `{}` beside a tool of that name", tool.name()));
            }
            Some(_) if is_contradictory(tool) => {
                let what = "with both `allowed_domains` and `blocked_domains`";
                scope.left_out(&format!("the server-side tool `{}` {what}", tool.name()));
            }
            Some(value) => tools.push(value),
            None => scope.without_server_tool(tool),
        }
    }
    if let Some(last) = tools.pop() {
        tools.push(marked(last, request.settings));
    }
    tools
}

fn tool_value(tool: &ToolDefinition, scope: &mut Scope<'_>) -> Option<Value> {
    let input = input_schema(tool, scope)?;
    let mut value = json!({"name": tool.name, "input_schema": input});
    if !tool.description.is_empty() {
        value["description"] = tool.description.as_str().into();
    }
    Some(value)
}

/// Returns the input schema, or nothing where a required field has a name that the API refuses.
fn input_schema(tool: &ToolDefinition, scope: &mut Scope<'_>) -> Option<Value> {
    let input = schema::tool_input(tool.input.source());
    if schema::has_only_valid_names(&input) {
        return Some(input.into_owned());
    }
    let kept = schema::without_invalid_names(input.into_owned());
    let what = match kept {
        Some(_) => "parameters with names other than letters, digits, `_`, `.` and `-` of the tool",
        None => "a required parameter has a name other than letters, digits, `_`, `.` and `-`: the tool",
    };
    scope.left_out(&format!("{what} `{}`", tool.name));
    kept
}

fn is_contradictory(tool: &ServerTool) -> bool {
    match tool {
        ServerTool::WebSearch { allowed_domains, blocked_domains, .. }
        | ServerTool::WebFetch { allowed_domains, blocked_domains, .. } => {
            !allowed_domains.is_empty() && !blocked_domains.is_empty()
        }
        ServerTool::CodeExecution {} | ServerTool::ImageGeneration {} => false,
    }
}

fn server_tool_value(tool: &ServerTool) -> Option<Value> {
    let mut value = match tool {
        ServerTool::WebSearch { .. } => json!({"type": "web_search_20250305", "name": "web_search"}),
        ServerTool::WebFetch { .. } => json!({"type": "web_fetch_20250910", "name": "web_fetch"}),
        ServerTool::CodeExecution {} => json!({"type": "code_execution_20250825", "name": "code_execution"}),
        ServerTool::ImageGeneration {} => return None,
    };
    if let ServerTool::WebSearch { max_uses, allowed_domains, blocked_domains }
    | ServerTool::WebFetch { max_uses, allowed_domains, blocked_domains } = tool
    {
        max_uses.iter().for_each(|uses| value["max_uses"] = (*uses).into());
        for (key, domains) in [("allowed_domains", allowed_domains), ("blocked_domains", blocked_domains)] {
            if !domains.is_empty() {
                value[key] = json!(domains);
            }
        }
    }
    Some(value)
}

fn tool_choice(settings: &ModelSettings, plan: ThinkingPlan, scope: &mut Scope<'_>) -> Option<Value> {
    let is_single = settings.parallel_tool_calls == Some(false);
    let mut choice = match scope.tool_choice(settings, plan) {
        None if !is_single => return None,
        None | Some(ToolChoice::Auto) => json!({"type": "auto"}),
        Some(ToolChoice::None) => return Some(json!({"type": "none"})),
        Some(ToolChoice::Required) => json!({"type": "any"}),
        Some(ToolChoice::Tool(name)) => json!({"type": "tool", "name": name}),
    };
    if is_single {
        choice["disable_parallel_tool_use"] = true.into();
    }
    Some(choice)
}

fn output_config(request: &ModelRequest<'_>, plan: ThinkingPlan, scope: &mut Scope<'_>) -> Option<Value> {
    let mut config = Map::new();
    config.put_some("effort", effort(request.settings, plan, scope).map(Effort::as_str));
    if let Some(schema) = request.output_schema {
        let output = schema::anthropic_output(schema.source()).unwrap_or_else(|| schema.source().clone());
        let format = json!({"type": "json_schema", "schema": output});
        config.put("format", format);
    }
    (!config.is_empty()).then_some(config.into())
}

/// Returns the effort, which Anthropic also takes while thinking is off.
fn effort(settings: &ModelSettings, plan: ThinkingPlan, scope: &mut Scope<'_>) -> Option<Effort> {
    match plan {
        ThinkingPlan::Level(level) => Some(level),
        ThinkingPlan::Off if scope.target.profile.thinking == ThinkingStyle::Effort => {
            let written = settings.effort.filter(|effort| *effort != Effort::None)?;
            let nearest = scope.target.profile.effort_levels.nearest(written)?;
            let sent = nearest.min(scope.target.rules.max_effort_while_off);
            if sent != written {
                scope.changed("effort", written.as_str(), sent.as_str());
            }
            Some(sent)
        }
        _ => None,
    }
}

fn thinking(ask: &Closing<'_>, plan: ThinkingPlan, max_tokens: u64, scope: &mut Scope<'_>) -> Option<Value> {
    let is_budget = scope.target.profile.thinking == ThinkingStyle::Budget;
    match plan {
        ThinkingPlan::Default => None,
        ThinkingPlan::Off => (!is_budget).then(|| json!({"type": "disabled"})),
        ThinkingPlan::On | ThinkingPlan::Level(_) if !is_budget => Some(json!({"type": "adaptive"})),
        _ if ask.ending.is_unthought_loop => {
            let notice = "thinking is left out until the next message of the user: the tool loop in progress began \
                          without it";
            scope.notices.add_once(notice.to_owned());
            None
        }
        ThinkingPlan::Tokens(tokens) => budget(ask.request.settings, tokens, max_tokens, scope),
        ThinkingPlan::On | ThinkingPlan::Level(_) => {
            budget(ask.request.settings, tokens_of(Effort::Medium), max_tokens, scope)
        }
    }
}

/// Returns the budget of thinking, which is a part of the output and below its limit.
fn budget(settings: &ModelSettings, tokens: u64, max_tokens: u64, scope: &mut Scope<'_>) -> Option<Value> {
    let least = scope.target.rules.thinking_tokens.0;
    // A budget that nobody has written leaves room for the answer.
    let is_written = matches!(settings.thinking, Some(Thinking::Tokens(_)));
    let most = if is_written { max_tokens.saturating_sub(1) } else { max_tokens - max_tokens / 4 };
    let budget = tokens.min(most);
    if budget < least {
        let notice = format!("thinking is left out: it needs more than {least} output tokens");
        scope.notices.add_once(notice);
        return None;
    }
    if is_written && budget < tokens {
        scope.changed("thinking", &tokens.to_string(), &budget.to_string());
    }
    Some(json!({"type": "enabled", "budget_tokens": budget}))
}

/// Returns whether a message of the user must follow a last message.
///
/// A turn that is paused at a tool of the provider goes on by itself. Other messages of the model are continued by
/// some models only, and never if they end with white space.
fn needs_user_after(last: &Message, scope: &Scope<'_>) -> bool {
    if last.role != Role::Assistant {
        return false;
    }
    match sent_parts(last, scope).last() {
        Some(Part::Opaque(block)) if is_server_call(block) => false,
        Some(Part::Text { text, .. }) if scope.target.rules.assistant_last => {
            text.ends_with(char::is_whitespace)
        }
        Some(_) => !scope.target.rules.assistant_last,
        None => false,
    }
}

fn is_server_call(block: &ProviderBlock) -> bool {
    let kind = block.value.get("type").and_then(Value::as_str);
    matches!(kind, Some("server_tool_use" | "mcp_tool_use"))
}

/// Returns whether the newest messages are a tool loop that Anthropic does not continue with thinking: its first
/// message must begin with thinking, and so must its last one if another model wrote it.
fn is_unthought_loop(messages: &[Arc<Message>], scope: &Scope<'_>) -> bool {
    // A message after calls is written with a result for each of them.
    let has_results = |index: usize| {
        let before = index.checked_sub(1).and_then(|before| messages.get(before));
        messages[index].role == Role::User
            && before.is_some_and(|before| before.tool_calls().next().is_some())
    };
    let is_written = |message: &Message| message.role == Role::User || !sent_parts(message, scope).is_empty();
    if !messages.iter().rposition(|message| is_written(message)).is_some_and(has_results) {
        return false;
    }
    let question = (0..messages.len())
        .rfind(|index| messages[*index].role == Role::User && !has_results(*index))
        .map_or(0, |index| index + 1);
    let answers = messages[question..].iter().filter(|message| message.role == Role::Assistant);
    let mut written = answers.filter(|answer| is_written(answer));
    let begins_with_thinking =
        |message: &Message| sent_parts(message, scope).first().is_some_and(|part| is_thought(part));
    let first = written.next();
    let last = written.next_back().or(first);
    !first.is_some_and(|first| begins_with_thinking(first))
        || last.is_some_and(|last| !scope.replay(last).is_accepted() && !begins_with_thinking(last))
}

fn write_user(answers: &Answers<'_>, scope: &mut Scope<'_>, out: &mut Vec<u8>) -> bool {
    let mut item = Object::item(out);
    item.field("role", "user");
    let mut blocks = item.list("content");
    answers.results.iter().for_each(|result| write_result(result, scope, &mut blocks));
    for part in &answers.rest {
        match &**part {
            Part::Text { text, .. } => write_text(text, &mut blocks),
            Part::Attachment(attachment) => write_attachment(attachment, scope, &mut blocks),
            _ => {}
        }
    }
    if blocks.is_empty() {
        write_text(EMPTY, &mut blocks);
    }
    true
}

fn write_result(result: &ToolResult, scope: &mut Scope<'_>, blocks: &mut List<'_>) {
    let mut block = blocks.object();
    block.field("type", "tool_result").field("tool_use_id", &calls::id(scope.target, &result.id));
    if result.is_error {
        block.field("is_error", &true);
    }
    let mut content = block.list("content");
    write_text(&result.text, &mut content);
    result.attachments.iter().for_each(|attachment| write_attachment(attachment, scope, &mut content));
    if content.is_empty() {
        write_text(EMPTY, &mut content);
    }
}

/// Writes text, unless it is blank: that would be refused.
fn write_text(text: &str, blocks: &mut List<'_>) {
    if !text.trim().is_empty() {
        blocks.object().field("type", "text").field("text", text);
    }
}

fn write_attachment(attachment: &Attachment, scope: &mut Scope<'_>, blocks: &mut List<'_>) {
    match shown(attachment, scope) {
        ShownAttachment::LeftOut(message) => write_text(&message, blocks),
        ShownAttachment::Text { text } if text.trim().is_empty() => {
            write_text(&format!("[The file `{}` is empty.]", attachment.name), blocks)
        }
        // Other servers of this protocol drop documents without a word.
        ShownAttachment::Text { text } if scope.target.provider != "anthropic" => {
            write_text(&named_text(attachment, text), blocks)
        }
        ShownAttachment::Text { text } => {
            let mut block = blocks.object();
            block.field("type", "document").field("title", &attachment.name);
            block
                .object("source")
                .field("type", "text")
                .field("media_type", "text/plain")
                .field("data", text);
        }
        ShownAttachment::Media { kind, media_type, bytes } => {
            let mut block = blocks.object();
            match kind {
                Media::Document => block.field("type", "document").field("title", &attachment.name),
                Media::Image | Media::Recording => block.field("type", "image"),
            };
            let mut source = block.object("source");
            source.field("type", "base64").field("media_type", &media_type).base64("data", "", bytes);
        }
    }
}

fn write_assistant(message: &Message, scope: &Scope<'_>, out: &mut Vec<u8>) -> bool {
    let mut item = Object::item(out);
    item.field("role", "assistant");
    let mut blocks = item.list("content");
    let replay = scope.replay(message);
    for part in sent_parts(message, scope) {
        write_part(part, replay, scope, &mut blocks);
    }
    !blocks.is_empty()
}

/// Returns the parts that can be sent back.
fn sent_parts<'a>(message: &'a Message, scope: &Scope<'_>) -> Vec<&'a Part> {
    let (replay, dangling) = (scope.replay(message), dangling(message));
    let is_sent = |part: &&Part| match part {
        Part::Text { text, .. } => !text.trim().is_empty(),
        Part::Thinking { signature, raw, .. } => {
            let is_signed = signature.as_ref().is_some_and(|signature| !signature.is_empty());
            is_signed && replay.is_accepted() && (raw.is_none() || replay.block(raw.as_ref()).is_some())
        }
        Part::Opaque(block) => {
            let id = block.value.get("id").and_then(Value::as_str);
            replay.block(Some(block)).is_some() && !id.is_some_and(|id| dangling.contains(id))
        }
        Part::ToolCall(_) => true,
        Part::ToolResult(_) | Part::Attachment(_) => false,
    };
    let mut sent: Vec<&Part> = message.parts.iter().filter(is_sent).collect();
    while sent.last().is_some_and(|part| is_thought(part)) {
        sent.pop();
    }
    sent
}

fn write_part(part: &Part, replay: BlockReplay<'_>, scope: &Scope<'_>, blocks: &mut List<'_>) {
    match part {
        Part::Text { text, raw } => match replay.block(raw.as_ref()) {
            Some(raw) => blocks.value(raw),
            None => write_text(text, blocks),
        },
        Part::Thinking { text, signature, raw } => match replay.block(raw.as_ref()) {
            Some(raw) => blocks.value(raw),
            None => {
                let mut block = blocks.object();
                block.field("type", "thinking").field("thinking", text).field("signature", signature);
            }
        },
        Part::ToolCall(call) => write_call(call, replay, scope, blocks),
        Part::Opaque(block) => blocks.value(&block.value),
        Part::ToolResult(_) | Part::Attachment(_) => {}
    }
}

fn is_thought(part: &Part) -> bool {
    match part {
        Part::Thinking { .. } => true,
        Part::Opaque(block) => block.value.get("type").is_some_and(|kind| kind == "redacted_thinking"),
        _ => false,
    }
}

/// Returns the ids of server-side calls that have no result and will get none.
fn dangling(message: &Message) -> HashSet<&str> {
    let data = message.origin.as_ref().map(|origin| &origin.data);
    if data.and_then(|data| data.get("stop_reason")).is_some_and(|word| word == "pause_turn") {
        return HashSet::new();
    }
    let opaque = message.parts.iter().filter_map(|part| match part {
        Part::Opaque(block) => Some(&block.value),
        _ => None,
    });
    let (mut open, mut answered) = (HashSet::new(), HashSet::new());
    for block in opaque {
        let text = |key: &str| block.get(key).and_then(Value::as_str);
        match text("type") {
            Some("server_tool_use" | "mcp_tool_use") => open.extend(text("id")),
            _ => answered.extend(text("tool_use_id")),
        }
    }
    &open - &answered
}

fn write_call(call: &ToolCall, replay: BlockReplay<'_>, scope: &Scope<'_>, blocks: &mut List<'_>) {
    let own = replay.block(call.raw.as_ref());
    let mut block = blocks.object();
    block
        .field("type", "tool_use")
        .field("id", &calls::id(scope.target, &call.id))
        .field("name", &calls::name(&call.name))
        .json("input", &calls::arguments(call))
        .others(own, &["type", "id", "name", "input"]);
}
