//! Writing to stdout and stderr. A reader that went away is no error worth a word.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use llm_do::{
    Decision, Diagnostic, Diagnostics, Event, EventBody, Key, ModelResult, RunReport, StopReason, Usage,
};
use serde_json::{Map, Value, json};

/// Set when stdout could not be written, though somebody reads it.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Writes a line to stdout; says whether anybody reads it.
pub(crate) fn to_stdout(text: &str) -> bool {
    match write_line(&mut io::stdout().lock(), text) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => false,
        Err(error) => {
            if !FAILED.swap(true, Ordering::Relaxed) {
                to_stderr(&format!("error: stdout cannot be written: {error}"));
            }
            false
        }
    }
}

/// Says whether stdout could not be written.
pub(crate) fn has_failed() -> bool {
    FAILED.load(Ordering::Relaxed)
}

/// Writes a line to stderr. Where that fails there is nobody left to tell.
pub(crate) fn to_stderr(text: &str) {
    let _ = write_line(&mut io::stderr().lock(), text);
}

/// One write per line, so that lines of several threads never mix.
fn write_line(stream: &mut impl Write, text: &str) -> io::Result<()> {
    let mut line = text.to_owned();
    if !line.ends_with('\n') {
        line.push('\n');
    }
    stream.write_all(line.as_bytes())?;
    stream.flush()
}

/// Writes an event as one line of JSON.
pub(crate) fn event_line(event: &Event) -> String {
    serde_json::to_string(event).unwrap_or_default()
}

/// The result of a run as one object, with what the author of the project should know.
pub(crate) fn report_value(
    report: &RunReport,
    status: &str,
    error: Option<&str>,
    diagnostics: &Diagnostics,
) -> Value {
    let events = report.events();
    let total = report.usage.total();
    let models: Map<String, Value> =
        report.usage.iter().map(|(model, usage)| (model.to_string(), usage_value(usage))).collect();
    let mut usage = usage_value(&total);
    usage["models"] = models.into();
    json!({
        "status": status,
        "output": report.output.as_ref().map(|output| output.to_value()),
        "stop": stop(&events),
        "usage": usage,
        "cost_usd": cost(&total),
        "run_id": report.id.to_string(),
        "duration_ms": u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
        "error": error,
        "stderr": report.stderr_log(),
        "notices": events.iter().filter_map(|event| notice(event)).collect::<Vec<_>>(),
        "denied": events.iter().filter_map(|event| denial(event)).collect::<Vec<_>>(),
        "diagnostics": diagnostics.0,
    })
}

/// Why the model of the agent that was run stopped at last.
fn stop(events: &[Arc<Event>]) -> Option<&StopReason> {
    let answers = events.iter().filter(|event| event.call.parent == Some(Key::root()));
    answers.rev().find_map(|event| match &event.body {
        EventBody::ModelResponse { result: ModelResult::Response(response), .. } => Some(&response.stop),
        _ => None,
    })
}

fn notice(event: &Event) -> Option<Value> {
    match &event.body {
        EventBody::Notice { text } => Some(json!({"path": event.call.path, "text": text})),
        _ => None,
    }
}

/// A call that was denied or blocked, also if the run went on without it.
fn denial(event: &Event) -> Option<Value> {
    let EventBody::ApprovalDecided { decision, .. } = &event.body else { return None };
    let Decision::Refuse(failure) = &**decision else { return None };
    let path = &event.call.path;
    let name = path.rsplit(" > ").next();
    let denial = json!({"path": path, "name": name, "kind": failure.kind, "reason": failure.message});
    failure.is_denial().then_some(denial)
}

/// A run that never began, in the form of its result.
pub(crate) fn refusal_value(status: &str, error: &str, diagnostics: &[Diagnostic]) -> Value {
    json!({
        "status": status,
        "output": null,
        "stop": null,
        "usage": usage_value(&Usage::default()),
        "cost_usd": 0.0,
        "run_id": null,
        "duration_ms": 0,
        "error": error,
        "stderr": [],
        "notices": [],
        "denied": [],
        "diagnostics": diagnostics,
    })
}

fn usage_value(usage: &Usage) -> Value {
    json!({
        "requests": usage.requests,
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "reasoning": usage.reasoning,
        "searches": usage.searches,
        "cost_usd": cost(usage),
    })
}

/// What it cost; nothing where a price is unknown, as half a sum would look like a whole one.
fn cost(usage: &Usage) -> Option<f64> {
    (usage.cost.unpriced == 0).then(|| usage.cost.known.dollars())
}

/// Writes what was used as one line for a person.
pub(crate) fn usage_line(usage: &Usage) -> String {
    let requests = if usage.requests == 1 { "request" } else { "requests" };
    let tokens = usage.tokens();
    let free = || (usage.cost.unpriced == 0).then(|| usage.cost.known.to_string());
    let cost = usage.cost.words().or_else(free).map(|words| format!(", {words}")).unwrap_or_default();
    format!("{} {requests}, {tokens} tokens{cost}", usage.requests)
}
