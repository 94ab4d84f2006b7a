//! One call of a run, in full.

use std::fmt::Write;

use llm_do::event::{Event, EventBody, Trace, TraceCall};
use llm_do_core::Decision;
use llm_do_record::short_id;
use serde_json::{Value, json};

use super::{ShownRun, html, mermaid, pretty, print_events};
use crate::arguments::ShowOutput;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output::{self, usage_line};
use crate::text::{printable, visible, visible_line};

/// Shows a call and those below it.
pub(super) fn show(run: &mut ShownRun, key: &str, form: ShowOutput) -> Result<Exit, CommandError> {
    let Some(call) = run.trace.iter().find(|call| call.key.as_str() == key).cloned() else {
        let id = short_id(run.summary.id);
        return Err(CommandError::with_hint(
            format!("run {id} has no call `{}`", visible_line(key)),
            format!("`llm-do show {id} --output json` has the `key` of each call"),
        ));
    };
    match form {
        ShowOutput::Text => drop(output::to_stdout(text(run, &call).trim_end())),
        ShowOutput::Json => drop(output::to_stdout(&pretty(&json!(call)))),
        ShowOutput::Jsonl => {
            let below = format!("{key}/");
            return Ok(print_events(run, |call| call == key || call.starts_with(&below)));
        }
        ShowOutput::Html => {
            run.trace = only(call);
            output::to_stdout(&html::page(run));
        }
        ShowOutput::Mermaid => drop(output::to_stdout(&mermaid::diagram(&only(call)))),
    }
    Ok(Exit::Done)
}

fn only(call: TraceCall) -> Trace {
    let mut trace = Trace::default();
    trace.calls.push(call);
    trace
}

fn text(run: &ShownRun, call: &TraceCall) -> String {
    let own = || run.events.iter().filter(|event| event.call.id == call.key);
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:8} {value}");
    };
    line("call", &visible_line(call.key.as_str()));
    line(call.kind.as_str(), &visible_line(&call.name));
    if let Some(first) = own().next() {
        line("path", &visible_line(&first.call.path));
        line("began", &first.time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    }
    line("took", &call.duration_ms.map_or_else(|| "it has no end".to_owned(), |ms| format!("{ms} ms")));
    if call.usage.requests > 0 {
        line("used", &usage_line(&call.usage));
    }
    for (name, value) in own().filter_map(|event| note(event)) {
        line(name, &value);
    }
    section(&mut text, "input", &full(call.input.value()));
    if let Some(output) = &call.output {
        section(&mut text, "output", &full(&output.to_value()));
    }
    if let Some(failure) = &call.error {
        section(&mut text, "error", &failure.message);
    }
    if !call.calls.is_empty() {
        let below = run.trace.below(&call.key);
        let _ = write!(text, "\ncalls\n{}", printable(&below.to_string()));
    }
    text
}

/// What an event says about a call beside its input and output.
fn note(event: &Event) -> Option<(&'static str, String)> {
    match &event.body {
        EventBody::ApprovalDecided { decision, .. } => Some(("approval", decided(decision))),
        EventBody::Notice { text } => Some(("notice", visible_line(text))),
        EventBody::Stderr { text } => Some(("stderr", visible_line(text))),
        _ => None,
    }
}

fn decided(decision: &Decision) -> String {
    match decision {
        Decision::Allow(permit) => {
            let by = serde_json::to_value(&permit.by).unwrap_or_default();
            format!("allowed by {}", visible_line(by.as_str().unwrap_or(&by.to_string())))
        }
        Decision::Refuse(failure) => format!("refused: {}", visible_line(&failure.message)),
    }
}

fn full(value: &Value) -> String {
    value.as_str().map_or_else(|| pretty(value), str::to_owned)
}

fn section(text: &mut String, title: &str, content: &str) {
    let _ = write!(text, "\n{title}\n{}\n", visible(content));
}
