//! Writes what providers are asked: one request in, bytes out, without any I/O.
//!
//! A body has three stretches. The *opening* holds what does not change from turn to turn: model, instructions,
//! tools, settings. The *history* holds the messages; each is written once and kept in shared pieces, so that a
//! request costs what is new in it, however long the conversation is. The *closing* holds what may change
//! with every request: the limit of output, and whether to stream.
//!
//! The kept bytes are a cache and nothing else: an encoder that has just been made writes the same body. That
//! is why the bytes of a message depend on the messages before it, and never on those after it.
//!
//! The order of a body is decided here and in [`history`]; how each part is written, in one module for each API.

mod anthropic;
mod attachment;
mod calls;
mod gemini;
mod history;
mod json_text;
mod ollama;
mod openai_chat;
mod openai_responses;
mod schema;
mod scope;
mod thinking;

use std::sync::Arc;

use bytes::Bytes;
use llm_do_core::{
    Conversation, Message, ModelError, ModelErrorKind, ModelProfile, ModelRequest, ModelSettings, Role,
    Schema, ServerTool, ToolDefinition,
};
use serde_json::{Map, Value};

use super::Api;

use crate::transport::Chunks;
use crate::wire::request_rules::RequestRules;
use history::WrittenHistory;
pub(crate) use schema::can_enforce;
use scope::{Notices, Scope};

/// Whom a session asks.
#[derive(Debug, Clone)]
pub(crate) struct RequestTarget {
    /// The protocol.
    pub(crate) api: Api,
    /// The provider's name, which its blocks carry.
    pub(crate) provider: String,
    /// The model's name at the provider.
    pub(crate) model: String,
    /// What the model can do.
    pub(crate) profile: ModelProfile,
    /// What a request to the model must keep to.
    pub(crate) rules: RequestRules,
}

impl RequestTarget {
    /// Returns the name as users write it.
    fn name(&self) -> String {
        format!("{}:{}", self.provider, self.model)
    }

    /// Returns whether the provider can run a tool for the model.
    fn offers(&self, tool: &ServerTool) -> bool {
        self.profile.server_tools.contains(&tool.name())
    }
}

/// Writes requests. Between them it keeps the written history: a cache, without which the same bytes are sent.
#[derive(Clone)]
pub(crate) struct Encoder {
    target: RequestTarget,
    writer: &'static dyn Writer,
    frame: Option<RequestFrame>,
    history: WrittenHistory,
    notices: Notices,
}

/// A request that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Encoded {
    /// The path below the base URL.
    pub(crate) path: String,
    /// The headers of the protocol. Keys are not among them.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The body.
    pub(crate) body: Chunks,
    /// Whether the answer is to be streamed.
    pub(crate) is_stream: bool,
    /// What a person should know about the request: what was left out, and what a cache will miss.
    pub(crate) notices: Vec<String>,
}

/// How one API writes requests.
trait Writer: Sync {
    /// Returns the path below the base URL.
    fn path(&self, target: &RequestTarget, is_stream: bool) -> String;

    /// Returns the headers of the protocol.
    fn headers(&self, _: &RequestTarget, _: &ModelRequest<'_>) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Returns the field that holds the messages.
    fn history_field(&self) -> &'static str {
        "messages"
    }

    /// Returns the fields that do not change from turn to turn.
    fn opening(&self, request: &ModelRequest<'_>, scope: &mut Scope<'_>) -> Map<String, Value>;

    /// Returns the item before the history in its list: the instructions, if the API wants them as a message.
    fn first_item(&self, _: &ModelRequest<'_>, _: &RequestTarget) -> Option<Value> {
        None
    }

    /// Returns the fields that may change with every request.
    fn closing(&self, ask: &Closing<'_>, scope: &mut Scope<'_>) -> Map<String, Value>;

    /// Returns the names of those of them that are objects, which fields of the user are merged into.
    fn late_objects(&self) -> &'static [&'static str] {
        &[]
    }

    /// Writes the items of one message, each with a comma before it. Returns the offset in the last block at
    /// which a mark for the provider's cache can be put.
    fn message(
        &self,
        message: &Message,
        earlier: &[Arc<Message>],
        scope: &mut Scope<'_>,
        out: &mut Vec<u8>,
    ) -> Option<usize>;

    /// Returns whether a message has anything that can be sent.
    fn is_written(&self, _: &Message, _: &Scope<'_>) -> bool {
        true
    }

    /// Returns what the closing must know about the end of the history.
    fn ending(&self, messages: &[Arc<Message>], scope: &Scope<'_>) -> HistoryEnding {
        let last = messages.iter().rfind(|message| self.is_written(message, scope));
        let is_assistant = last.is_some_and(|last| last.role == Role::Assistant);
        let needs_user = is_assistant && !scope.target.rules.assistant_last;
        HistoryEnding { needs_user, ..HistoryEnding::default() }
    }

    /// Returns a message of the user, with a comma before it, that asks the model to go on.
    fn go_on(&self) -> &'static str {
        ""
    }

    /// Returns the mark for the provider's cache, where the API knows one.
    fn mark(&self) -> Option<&'static [u8]> {
        None
    }
}

/// What a closing depends on.
struct Closing<'a> {
    request: &'a ModelRequest<'a>,
    max_output: Option<u64>,
    is_stream: bool,
    ending: HistoryEnding,
}

/// How a history ends, as far as the closing depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct HistoryEnding {
    /// The last message is the model's, and the model needs one of the user after it.
    needs_user: bool,
    /// A tool loop is in progress that did not begin with thinking.
    is_unthought_loop: bool,
}

fn writer(api: Api) -> &'static dyn Writer {
    match api {
        Api::Anthropic => &anthropic::Messages,
        Api::OpenAiChat => &openai_chat::Completions,
        Api::OpenAiResponses => &openai_responses::Responses,
        Api::Gemini => &gemini::Generate,
        Api::Ollama => &ollama::OllamaChat,
    }
}

impl Encoder {
    /// An encoder of the requests of one session.
    pub(crate) fn new(target: RequestTarget) -> Self {
        let writer = writer(target.api);
        let notices = Notices::default();
        Self { target, writer, frame: None, history: WrittenHistory::default(), notices }
    }

    /// Writes a request.
    pub(crate) fn encode(&mut self, request: &ModelRequest<'_>) -> Result<Encoded, ModelError> {
        self.check_tools(request)?;
        self.write_history(request.conversation);
        if self.history.is_empty() {
            return Err(ModelError::new(ModelErrorKind::Invalid, "the conversation holds nothing to send"));
        }
        let marks = self.marks(request);
        let frame = self.framed(request);
        let (opening, closing) = (frame.opening.clone(), frame.closing.clone());
        let (is_stream, has_first) = (frame.is_stream, frame.has_first);
        let mut body = Chunks::default();
        body.push(opening);
        self.history.add_to(&mut body, usize::from(!has_first), &marks);
        body.push(closing);
        Ok(Encoded {
            path: self.writer.path(&self.target, is_stream),
            headers: self.writer.headers(&self.target, request),
            body,
            is_stream,
            notices: self.notices.take(),
        })
    }

    /// Refuses more tools than the provider takes. To leave some out would change what the agent can do.
    fn check_tools(&self, request: &ModelRequest<'_>) -> Result<(), ModelError> {
        let offered = request.server_tools.iter().filter(|tool| self.target.offers(tool)).count();
        let (count, max) = (request.tools.len() + offered, self.target.rules.max_tools);
        if count <= max {
            return Ok(());
        }
        let name = self.target.name();
        let message = format!("`{name}` takes at most {max} tools, and this request offers {count}");
        Err(ModelError::new(ModelErrorKind::Invalid, message))
    }

    /// Returns how many bytes of messages were written in all, to show that old ones are not written again.
    #[cfg(test)]
    pub(super) fn written(&self) -> usize {
        self.history.written
    }

    /// Writes the messages that are new, and those from the first one that has changed.
    fn write_history(&mut self, conversation: &Conversation) {
        let messages = conversation.messages();
        let known = self.history.known(conversation);
        if known < self.history.len() {
            // A conversation that has not grown was taken back on purpose.
            let has_grown = messages.len() > self.history.len();
            if let Some(message) = messages.get(known).filter(|_| has_grown) {
                self.notices.add(changed_at(known, message));
            }
            self.history.truncate(known);
        }
        for (index, message) in messages.iter().enumerate().skip(known) {
            let Some(head) = conversation.head_at(index + 1) else { return };
            let mut scope = Scope { target: &self.target, notices: &mut self.notices };
            let earlier = &messages[..index];
            self.history.push(head, |out| self.writer.message(message, earlier, &mut scope, out));
        }
    }

    /// Returns where the history is marked for the provider's cache: at its end, and at the end of the request
    /// before, whose answer is the newest message of the model.
    fn marks(&self, request: &ModelRequest<'_>) -> Vec<(usize, Bytes)> {
        let Some(mark) = self.writer.mark().filter(|_| request.settings.cache != Some(false)) else {
            return Vec::new();
        };
        let messages = request.conversation.messages();
        let answer = messages.iter().rposition(|message| message.role == Role::Assistant);
        let earlier = answer.and_then(|answer| self.history.mark_offset_at(answer));
        let mut offsets: Vec<usize> =
            earlier.into_iter().chain(self.history.mark_offset_at(messages.len())).collect();
        offsets.dedup();
        offsets.into_iter().map(|offset| (offset, Bytes::from_static(mark))).collect()
    }

    /// Returns the opening and the closing, written anew where what they depend on has changed.
    fn framed(&mut self, request: &ModelRequest<'_>) -> &RequestFrame {
        let max_output = request.max_output.or(request.settings.max_tokens);
        let known = self.frame.take();
        let changed = known.as_ref().map(|frame| frame.inputs.differences(request));
        let mut scope = Scope { target: &self.target, notices: &mut self.notices };
        let frame = match (known, changed) {
            (Some(frame), Some(changed)) if changed.is_empty() => frame,
            (_, changed) => {
                changed.iter().flatten().filter(|what| **what != SETTINGS).for_each(|what| {
                    let notice = format!("{what} changed, so the provider's cache will miss the prompt");
                    scope.notices.add(notice);
                });
                RequestFrame::opened(self.writer, request, &mut scope)
            }
        };
        let ending = self.writer.ending(request.conversation.messages(), &scope);
        let ask = Closing { request, max_output, is_stream: frame.is_stream, ending };
        let frame = frame.closed(self.writer, &ask, &mut scope);
        self.frame.insert(frame)
    }
}

fn changed_at(index: usize, message: &Message) -> String {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let number = index + 1;
    format!("the prompt's prefix changed at message {number} ({role}), so the provider's cache will miss it")
}

/// The two ends of a body, and what they were written from.
#[derive(Clone)]
struct RequestFrame {
    inputs: Inputs,
    opening: Bytes,
    /// Whether the list of messages already holds an item.
    has_first: bool,
    is_stream: bool,
    closing: Bytes,
    /// What the closing was written for.
    closed_for: Option<(Option<u64>, HistoryEnding)>,
}

impl RequestFrame {
    fn opened(writer: &dyn Writer, request: &ModelRequest<'_>, scope: &mut Scope<'_>) -> Self {
        let mut fields = writer.opening(request, scope);
        let extra = &request.settings.extra_body;
        if extra.contains_key(writer.history_field()) {
            scope.left_out(&format!("`{}` in `extra_body`", writer.history_field()));
        }
        let is_early =
            |key: &str, value: &Value| key != writer.history_field() && !is_late(writer, key, value);
        merge(&mut fields, extra.iter().filter(|(key, value)| is_early(key, value)));
        let first = writer.first_item(request, scope.target);
        let opening = opening_text(&fields, writer.history_field(), first.as_ref());
        let stream = extra.get("stream").and_then(Value::as_bool).or(request.settings.stream);
        Self {
            inputs: Inputs::from_request(request),
            opening: opening.into(),
            has_first: first.is_some(),
            is_stream: stream.unwrap_or(true),
            closing: Bytes::new(),
            closed_for: None,
        }
    }

    fn closed(mut self, writer: &dyn Writer, ask: &Closing<'_>, scope: &mut Scope<'_>) -> Self {
        let closed_for = Some((ask.max_output, ask.ending));
        if self.closed_for == closed_for {
            return self;
        }
        let mut fields = writer.closing(ask, scope);
        let extra = &ask.request.settings.extra_body;
        // What the opening already holds must not be repeated here.
        fields.retain(|key, _| extra.get(key).is_none_or(|value| is_late(writer, key, value)));
        merge(&mut fields, extra.iter().filter(|(key, value)| is_late(writer, key, value)));
        let go_on = if ask.ending.needs_user { writer.go_on() } else { "" };
        self.closing = closing_text(go_on, &fields).into();
        self.closed_for = closed_for;
        self
    }
}

/// Returns whether a field of the user is merged into the closing.
fn is_late(writer: &dyn Writer, key: &str, value: &Value) -> bool {
    value.is_object() && writer.late_objects().contains(&key)
}

/// Limits of output inside objects, as APIs spell them. A budget depends on them, so no field of the user takes their
/// place.
const LIMITS: &[&str] = &[
    "candidateCount",
    "candidate_count",
    "maxOutputTokens",
    "max_output_tokens",
    "numPredict",
    "num_predict",
];

/// Puts fields over others. Two objects become one.
fn merge<'a>(fields: &mut Map<String, Value>, over: impl Iterator<Item = (&'a String, &'a Value)>) {
    for (key, value) in over {
        match (fields.get_mut(key), unlimited(value)) {
            (Some(Value::Object(own)), Value::Object(more)) => own.extend(more),
            (_, value) => drop(fields.insert(key.clone(), value)),
        }
    }
}

/// Returns a field of the user without limits of output in it.
fn unlimited(value: &Value) -> Value {
    let Value::Object(map) = value else { return value.clone() };
    let kept = map.iter().filter(|(key, _)| !LIMITS.contains(&key.as_str()));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn opening_text(fields: &Map<String, Value>, history_field: &str, first: Option<&Value>) -> Vec<u8> {
    let mut out = vec![b'{'];
    for (key, value) in fields {
        json_text::key(&mut out, key);
        json_text::value(&mut out, value);
        out.push(b',');
    }
    json_text::key(&mut out, history_field);
    out.push(b'[');
    first.iter().for_each(|first| json_text::value(&mut out, first));
    out
}

fn closing_text(go_on: &str, fields: &Map<String, Value>) -> Vec<u8> {
    let mut out = go_on.as_bytes().to_vec();
    out.push(b']');
    for (key, value) in fields {
        out.push(b',');
        json_text::key(&mut out, key);
        json_text::value(&mut out, value);
    }
    out.push(b'}');
    out
}

const INSTRUCTIONS: &str = "the instructions";
const TOOLS: &str = "the tools";
const OUTPUT_SCHEMA: &str = "the schema of the answer";
const SETTINGS: &str = "the settings";

/// What an opening is written from.
#[derive(Clone)]
struct Inputs {
    instructions: String,
    tools: Vec<Arc<ToolDefinition>>,
    server_tools: Vec<ServerTool>,
    output_schema: Option<Schema>,
    settings: ModelSettings,
}

impl Inputs {
    fn from_request(request: &ModelRequest<'_>) -> Self {
        Self {
            instructions: request.instructions.to_owned(),
            tools: request.tools.to_vec(),
            server_tools: request.server_tools.to_vec(),
            output_schema: request.output_schema.cloned(),
            settings: request.settings.clone(),
        }
    }

    /// Says what differs in a request. What is shared is not looked into.
    fn differences(&self, request: &ModelRequest<'_>) -> Vec<&'static str> {
        let differs = [
            (INSTRUCTIONS, self.instructions != request.instructions),
            (TOOLS, !self.has_tools(request.tools) || self.server_tools != request.server_tools),
            (OUTPUT_SCHEMA, !self.has_schema(request.output_schema)),
            (SETTINGS, self.settings != *request.settings),
        ];
        differs.into_iter().filter_map(|(what, differs)| differs.then_some(what)).collect()
    }

    fn has_tools(&self, tools: &[Arc<ToolDefinition>]) -> bool {
        let same = |(own, other): (&Arc<ToolDefinition>, _)| Arc::ptr_eq(own, other) || own == other;
        self.tools.len() == tools.len() && self.tools.iter().zip(tools).all(same)
    }

    fn has_schema(&self, schema: Option<&Schema>) -> bool {
        match (&self.output_schema, schema) {
            (Some(own), Some(other)) => std::ptr::eq(own.source(), other.source()) || own == other,
            (own, other) => own.is_none() && other.is_none(),
        }
    }
}
