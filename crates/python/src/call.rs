//! One request to the Python process, from its first line to its result.
//!
//! While Python code runs it may ask: for calls, for approvals, for a look at its call. Each question goes through the
//! same gate as any other, and several are answered at once. A request that is cancelled, or whose future is
//! dropped, is ended in the process too.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use llm_do_core::{
    Attachment, CallContext, CallKind, Cancellation, Failure, FailureKind, Input, InputPart, Name,
    NoticeSink, Output, ToolDefinition, TraceCall, parse_exact,
};
use llm_do_runtime::{Descriptors, FdId, FdSource, Selection};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::host::{Current, Host};
use crate::process::{Listener, News, Process, Slot};
use crate::wire::{Ask, CallReply, ToHost, WireAnswer, WireError, WirePart};

/// How long code may take that assesses a call, makes a prompt, or opens or closes a toolset.
pub(crate) const ASSESS_LIMIT: Duration = Duration::from_secs(30);

/// How many questions of one call are open at most.
const MAX_QUESTIONS: usize = 4_096;

/// What is asked of the process, and for whom.
pub(crate) struct Request<'a> {
    /// What people call it.
    pub(crate) name: &'a Arc<str>,
    /// The call in whose name code runs, where there is one.
    pub(crate) call: Option<&'a CallContext>,
    /// The agent call that is told what code prints, where there is no call in whose name it runs.
    pub(crate) notices: Option<&'a NoticeSink>,
    /// Whether its success shows that the process works.
    pub(crate) counts: bool,
    /// How long it may take, where the runtime sets no limit.
    pub(crate) limit: Option<Duration>,
}

impl Request<'_> {
    /// Sends the request and waits for its result.
    pub(crate) async fn run(
        self,
        host: &Host,
        current: &Current,
        message: impl FnOnce(u64) -> Result<Vec<u8>, String>,
    ) -> Result<CallReply, Failure> {
        let id = host.number();
        let line = message(id).map_err(|error| Failure::new(FailureKind::Arguments, error))?;
        let (sender, mut news) = unbounded_channel();
        // Whoever waits for the news may be gone.
        let news_sender = Box::new(move |news| drop(sender.send(news)));
        let slot = Slot::new(self.name.clone(), self.listener(), self.counts, news_sender);
        let process = &current.process;
        process.enter(id, slot).map_err(|ending| ending.failure())?;
        let mut running = Running { process: process.clone(), id, is_sent: false, is_over: false };
        process.outbox.send(line).await;
        running.is_sent = true;
        if let Some(limit) = self.limit {
            process.end_call(id, limit);
        }
        let reply = match self.call {
            Some(call) => attend(&running, call, &mut news).await,
            None => alone(&running, &mut news).await,
        };
        running.is_over = true;
        reply
    }

    fn listener(&self) -> Listener {
        match (self.call, self.notices) {
            (Some(call), _) => Listener::Call(call.clone()),
            (None, Some(notices)) => Listener::Agent(notices.clone()),
            (None, None) => Listener::Nobody,
        }
    }
}

/// A request that runs. Dropped before its end, it is cancelled.
struct Running {
    process: Arc<Process>,
    id: u64,
    is_sent: bool,
    is_over: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        match (self.is_sent, self.is_over) {
            (_, true) => {}
            (true, false) => {
                self.process.give_up(self.id);
                self.process.end_call(self.id, Duration::ZERO);
            }
            (false, false) => self.process.take_back(self.id),
        }
    }
}

impl Running {
    async fn answer(&self, id: u64, answer: Result<Value, Failure>) {
        let answer = match answer {
            Ok(value) => WireAnswer::Value(value),
            Err(failure) => WireAnswer::Error(failure),
        };
        let line = ToHost::Answer { id, answer }.line().or_else(|error| {
            let answer = WireAnswer::Error(Failure::new(FailureKind::Output, error));
            ToHost::Answer { id, answer }.line()
        });
        if let Ok(line) = line {
            self.process.outbox.send(line).await;
        }
    }
}

/// Serves a request in the name of a call, until its result is there.
async fn attend(
    running: &Running,
    call: &CallContext,
    news: &mut UnboundedReceiver<News>,
) -> Result<CallReply, Failure> {
    let mut questions = FuturesUnordered::new();
    let cancellation = call.cancellation();
    let mut is_cancelled = false;
    loop {
        tokio::select! {
            biased;
            some = news.recv() => match some {
                Some(News::Done(reply)) => return Ok(reply),
                Some(News::Ended(ending)) => return Err(ending.failure()),
                Some(News::Ask(ask)) if questions.len() < MAX_QUESTIONS => {
                    questions.push(answer_question(running, call, ask));
                }
                Some(News::Ask(ask)) => {
                    let message = format!("more than {MAX_QUESTIONS} calls at once from one call");
                    running.answer(ask.id, Err(Failure::new(FailureKind::Limit, message))).await;
                }
                None => return Err(lost()),
            },
            Some(()) = questions.next(), if !questions.is_empty() => {}
            () = cancelled(&cancellation), if !is_cancelled => {
                is_cancelled = true;
                running.process.end_call(running.id, Duration::ZERO);
            }
        }
    }
}

async fn cancelled(cancellation: &Cancellation) {
    cancellation.cancelled().await;
}

/// Waits for the result of a request that belongs to no call: its code has nobody to ask.
async fn alone(running: &Running, news: &mut UnboundedReceiver<News>) -> Result<CallReply, Failure> {
    loop {
        match news.recv().await {
            Some(News::Done(reply)) => return Ok(reply),
            Some(News::Ended(ending)) => return Err(ending.failure()),
            Some(News::Ask(ask)) => {
                let message = "nothing can be called from here: only tools and entries call others";
                running.answer(ask.id, Err(Failure::new(FailureKind::Tool, message))).await;
            }
            None => return Err(lost()),
        }
    }
}

fn lost() -> Failure {
    Failure::new(FailureKind::Tool, "the Python process has lost the call")
}

async fn answer_question(running: &Running, call: &CallContext, ask: Ask) {
    let id = ask.id;
    let answer = match &*ask.what {
        "call" => call_by_name(call, ask).await,
        "approve" => approve(call, ask).await,
        "inspect" => Ok(inspection(call)),
        "stderr" => Ok(call.stderr_log().into()),
        "usage" => Ok(usage_of_run(call)),
        "trace" => Ok(call.trace().iter().map(trace_entry).collect()),
        "registry" => Ok(registry(call)),
        "fd_read" => read_descriptor(call, &ask),
        "fd_create" => create_descriptor(call, &ask),
        other => Err(Failure::new(FailureKind::Tool, format!("there is no question `{other}`"))),
    };
    running.answer(id, answer).await;
}

/// Calls a tool or an agent by name, as any code does.
async fn call_by_name(call: &CallContext, ask: Ask) -> Result<Value, Failure> {
    if ask.agents_only {
        call.find_agent(&Name::from(ask.name.as_str()))?;
    }
    let input = input_of(ask.input.as_deref())?;
    let output = call.call(ask.name, input).await?;
    Ok(output.to_value())
}

/// The input that code gives: text, an object, or a list of texts and attachments.
fn input_of(raw: Option<&RawValue>) -> Result<Input, Failure> {
    match value_of(raw)? {
        Value::Null => Ok(Input::Object(json!({}))),
        list @ Value::Array(_) => {
            let parts: Vec<WirePart> = serde_json::from_value(list).map_err(|_| {
                let message = "an input that is a list may hold texts and attachments, and nothing else";
                Failure::new(FailureKind::Arguments, message)
            })?;
            Ok(Input::Parts(parts.into_iter().map(InputPart::from).collect()))
        }
        value => Ok(Input::from(value)),
    }
}

async fn approve(call: &CallContext, ask: Ask) -> Result<Value, Failure> {
    let payload = value_of(ask.payload.as_deref())?;
    let allowed = call.approve(ask.name, payload, ask.reason).await?;
    Ok(allowed.value().clone())
}

/// What code wants of a descriptor.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescriptorPart {
    #[serde(default)]
    mode: Selection,
    #[serde(default = "one")]
    start: u64,
    #[serde(default = "one")]
    count: u64,
}

fn one() -> u64 {
    1
}

fn descriptors_of(call: &CallContext) -> Result<Arc<Descriptors>, Failure> {
    let none = || Failure::new(FailureKind::Context, "this call has no file descriptors");
    call.context().get::<Descriptors>().ok_or_else(none)
}

/// Reads a part of the text behind a descriptor.
fn read_descriptor(call: &CallContext, ask: &Ask) -> Result<Value, Failure> {
    let part: DescriptorPart = read(ask.input.as_deref(), FailureKind::Arguments, "what Python code gives")?;
    let fd = descriptors_of(call)?.get(&ask.name)?;
    Ok(fd.read(part.mode, part.start, part.count)?.text.into())
}

/// Puts a text behind a descriptor, which is named after the call that makes it.
fn create_descriptor(call: &CallContext, ask: &Ask) -> Result<Value, Failure> {
    let text: String = read(ask.input.as_deref(), FailureKind::Arguments, "what Python code gives")?;
    let made = descriptors_of(call)?.add_beside(&FdId::from_key(call.key()), &text, FdSource::ToolResult)?;
    Ok(made.id.as_str().into())
}

fn usage_of_run(call: &CallContext) -> Value {
    let models = call.run_usage();
    models.iter().map(|(model, usage)| (model.to_string(), json!(usage))).collect::<Map<_, _>>().into()
}

fn trace_entry(call: &TraceCall) -> Value {
    json!({
        "key": call.key,
        "name": call.name,
        "kind": call.kind,
        "depth": call.depth,
        "input_data": call.input,
        "output_data": call.output.as_ref().map(Output::to_value),
        "error": call.error.as_ref().map(|failure| &failure.message),
        "duration_ms": call.duration_ms,
    })
}

/// Describes what code of a call can name: tools, then agents.
fn registry(call: &CallContext) -> Value {
    let entry = |definition: &ToolDefinition, kind: CallKind| json!({"name": definition.name, "kind": kind, "description": definition.description});
    let tools = call.tools().into_iter().map(|tool| entry(&tool, CallKind::Tool));
    let agents = call.agents().into_iter().map(|agent| entry(&agent.definition, CallKind::Agent));
    tools.chain(agents).collect()
}

fn inspection(call: &CallContext) -> Value {
    let seen = call.inspect();
    json!({
        "messages": seen.messages,
        "usage": seen.usage,
        "remaining": seen.remaining,
        "callables": seen.callables,
        "trace": seen.trace.to_string().lines().collect::<Vec<_>>(),
        "stderr": seen.stderr,
    })
}

fn value_of(raw: Option<&RawValue>) -> Result<Value, Failure> {
    json(raw, FailureKind::Arguments, "what Python code gives")
}

fn read<T: DeserializeOwned>(raw: Option<&RawValue>, kind: FailureKind, what: &str) -> Result<T, Failure> {
    serde_json::from_value(json(raw, kind, what)?)
        .map_err(|error| Failure::new(kind, format!("{what} is not valid JSON: {error}")))
}

/// Reads a value in which nothing is rounded or dropped.
fn json(raw: Option<&RawValue>, kind: FailureKind, what: &str) -> Result<Value, Failure> {
    parse_exact(raw.map_or("null", RawValue::get))
        .map_err(|error| Failure::new(kind, format!("{what} is not valid JSON: {error}")))
}

impl CallReply {
    /// Reads the result as the output of a call.
    pub(crate) fn into_output(self) -> Result<Output, Failure> {
        let attachments: Option<Vec<Attachment>> =
            read(self.attachments.as_deref(), FailureKind::Output, "the list of attachments")?;
        let output = Output::json(self.into_json()?);
        Ok(Output { attachments: attachments.unwrap_or_default(), ..output })
    }

    fn into_json(self) -> Result<Value, Failure> {
        match self.error {
            Some(error) => Err(error.into_failure()),
            None => json(self.value.as_deref(), FailureKind::Output, "the result"),
        }
    }

    /// Reads the result as a Rust value.
    pub(crate) fn into_value<T: DeserializeOwned>(self) -> Result<T, Failure> {
        match self.error {
            Some(error) => Err(error.into_failure()),
            None => read(self.value.as_deref(), FailureKind::Output, "the result"),
        }
    }
}

impl WireError {
    /// Returns the failure that the caller sees.
    pub(crate) fn into_failure(self) -> Failure {
        let kind = match &*self.kind {
            "arguments" => FailureKind::Arguments,
            "context" => FailureKind::Context,
            "output" => FailureKind::Output,
            "denied" => FailureKind::Denied,
            _ => FailureKind::Tool,
        };
        let message = match &*self.kind {
            "abort" => format!("the tool asks to stop: {}", self.message),
            _ => self.message,
        };
        Failure { hint: self.hint, ..Failure::new(kind, message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(value: &str) -> CallReply {
        CallReply { value: Some(RawValue::from_string(value.to_owned()).unwrap()), ..CallReply::default() }
    }

    #[test]
    fn results_are_text_values_or_nothing() {
        assert_eq!(reply("\"hi\"").into_output().unwrap(), Output::text("hi"));
        assert_eq!(reply("[1]").into_output().unwrap(), Output::json(json!([1])));
        assert_eq!(CallReply::default().into_output().unwrap(), Output::json(Value::Null));
    }

    #[test]
    fn a_text_that_is_no_unicode_is_an_error_of_the_output() {
        let failure = reply(r#""\ud800""#).into_output().unwrap_err();
        assert_eq!(failure.kind, FailureKind::Output);
    }

    #[test]
    fn numbers_of_a_result_are_kept_or_refused() {
        let output = reply("[1.0, 18446744073709551615]").into_output().unwrap();
        assert_eq!(output.to_text().as_ref(), "[1.0,18446744073709551615]");
        let failure = reply("[18446744073709551616]").into_output().unwrap_err();
        assert_eq!(failure.kind, FailureKind::Output);
        assert!(failure.message.contains("18446744073709551616 does not fit"), "{failure}");
        assert!(input_of(Some(&RawValue::from_string("{\"a\":1e-400}".to_owned()).unwrap())).is_err());
    }

    #[test]
    fn attachments_come_with_their_bytes_or_their_path() {
        let list = r#"[{"name":"a.png","media_type":"image/png","data":"AQI="},{"name":"b","path":"/b"}]"#;
        let attachments = Some(RawValue::from_string(list.to_owned()).unwrap());
        let output = CallReply { attachments, ..reply("\"see\"") }.into_output().unwrap();
        assert_eq!(
            output.attachments,
            [Attachment::bytes("a.png", "image/png", vec![1, 2]), Attachment::path("/b")]
        );
    }

    #[test]
    fn kinds_of_errors_keep_their_meaning() {
        let failure = |kind: &str| {
            WireError { kind: kind.to_owned(), message: "why".to_owned(), hint: None }.into_failure()
        };
        for (kind, expected) in [
            ("tool", FailureKind::Tool),
            ("arguments", FailureKind::Arguments),
            ("context", FailureKind::Context),
            ("output", FailureKind::Output),
            ("denied", FailureKind::Denied),
            ("cancelled", FailureKind::Tool),
        ] {
            assert_eq!(failure(kind), Failure::new(expected, "why"));
        }
        assert_eq!(failure("abort").message, "the tool asks to stop: why");
    }
}
