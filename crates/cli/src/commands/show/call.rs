//! One call of a run, in full.

use std::fmt::Write;

use llm_do::event::{Event, EventBody, Trace, TraceCall};
use llm_do_core::{AnsweredBy, DecidedBy, Decision};
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
    line("took", &took(call));
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

fn took(call: &TraceCall) -> String {
    match call.duration_ms {
        Some(ms) => format!("{ms} ms"),
        None if call.waits_for_answer => "it waits for an answer".to_owned(),
        None => "it has no end".to_owned(),
    }
}

/// What an event says about a call beside its input and output.
fn note(event: &Event) -> Option<(&'static str, String)> {
    match &event.body {
        EventBody::ApprovalDecided { decision, answered_by, .. } => {
            Some(("approval", decided(decision, answered_by.as_ref())))
        }
        EventBody::Notice { text } => Some(("notice", visible_line(text))),
        EventBody::Stderr { text } => Some(("stderr", visible_line(text))),
        _ => None,
    }
}

fn decided(decision: &Decision, answered_by: Option<&AnsweredBy>) -> String {
    let by = answered_by.map(|by| visible_line(&by.to_string()));
    match (decision, by) {
        (Decision::Allow(permit), by) => {
            let edited = if permit.edited { ", with other arguments" } else { "" };
            format!("allowed by {}{edited}", by.unwrap_or_else(|| allowed_by(&permit.by)))
        }
        (Decision::Refuse(failure), Some(by)) => format!("{} (by {by})", visible_line(&failure.message)),
        (Decision::Refuse(failure), None) => format!("refused: {}", visible_line(&failure.message)),
    }
}

fn allowed_by(by: &DecidedBy) -> String {
    match by {
        DecidedBy::Definition => "the definition of the tool".to_owned(),
        DecidedBy::Rule => "a rule of the agent".to_owned(),
        DecidedBy::Mode => "the approval mode of the run".to_owned(),
        DecidedBy::Grant(scope) => format!("an earlier answer for {}", visible_line(&scope.to_string())),
        DecidedBy::Approver => "a person or program that was asked".to_owned(),
    }
}

fn full(value: &Value) -> String {
    value.as_str().map_or_else(|| pretty(value), str::to_owned)
}

fn section(text: &mut String, title: &str, content: &str) {
    let _ = write!(text, "\n{title}\n{}\n", visible(content));
}
