//! `llm-do show`: what happened in a run.

mod call;
mod html;
mod mermaid;

use std::fmt::Write;
use std::sync::Arc;

use llm_do::event::{Event, EventBody, Trace};
use llm_do_record::{Reader, RecordedEvent, RunSummary, UnknownEvent, short_id};
use serde_json::{Value, json};

use crate::arguments::{ShowArguments, ShowOutput};
use crate::command_error::CommandError;
use crate::commands::runs;
use crate::exit::Exit;
use crate::output;
use crate::record::{self, cost};
use crate::text::{printable, visible, visible_line};

/// A run, as it was read.
struct ShownRun {
    summary: RunSummary,
    events: Vec<Arc<Event>>,
    /// Events of a newer version.
    unknown: Vec<UnknownEvent>,
    trace: Trace,
}

/// Shows a recorded run, or one call of it.
pub(crate) fn show(arguments: &ShowArguments) -> Result<Exit, CommandError> {
    let (reader, summary) = record::find(&arguments.record, &arguments.run)?;
    let recorded = reader.recorded(summary.id).map_err(|error| record::failed(&error))?;
    let mut run = ShownRun::new(summary, recorded);
    if let Some(key) = &arguments.call {
        return call::show(&mut run, key, arguments.output);
    }
    match arguments.output {
        ShowOutput::Text => drop(output::to_stdout(text(&reader, &run).trim_end())),
        ShowOutput::Json => drop(output::to_stdout(&pretty(&object(&run)))),
        ShowOutput::Jsonl => return Ok(print_events(&run, |_| true)),
        ShowOutput::Html => drop(output::to_stdout(&html::page(&run))),
        ShowOutput::Mermaid => drop(output::to_stdout(&mermaid::diagram(&run.trace))),
    }
    Ok(Exit::Done)
}

impl ShownRun {
    fn new(summary: RunSummary, recorded: Vec<RecordedEvent>) -> Self {
        let (mut events, mut unknown) = (Vec::new(), Vec::new());
        for event in recorded {
            match event {
                RecordedEvent::Known(event) => events.push(event),
                RecordedEvent::Unknown(event) => unknown.push(event),
                _ => {}
            }
        }
        let trace = Trace::from_events(&events);
        Self { summary, events, unknown, trace }
    }
}

fn object(run: &ShownRun) -> Value {
    let mut object = runs::object(&run.summary);
    object["input"] = json!(started_with(&run.events));
    object["output"] = json!(answer(&run.events));
    object["calls"] = json!(run.trace);
    if !run.unknown.is_empty() {
        object["unknown_events"] = run.unknown.iter().map(UnknownEvent::to_value).collect();
    }
    object
}

/// Prints the events of some calls as lines of JSON, those of a newer version included.
fn print_events(run: &ShownRun, is_wanted: impl Fn(&str) -> bool) -> Exit {
    let known = run.events.iter().filter(|event| is_wanted(event.call.id.as_str()));
    let unknown = run.unknown.iter().filter(|event| is_wanted(event.call.id.as_str()));
    let mut lines: Vec<(u64, String)> = known
        .map(|event| (event.seq.unwrap_or_default(), output::event_line(event)))
        .chain(unknown.map(|event| (event.seq, event.to_value().to_string())))
        .collect();
    lines.sort_by_key(|(seq, _)| *seq);
    match lines.iter().all(|(_, line)| output::to_stdout(line)) {
        true => Exit::Done,
        false if output::has_failed() => Exit::Failed,
        false => Exit::Unread,
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn text(reader: &Reader, shown: &ShownRun) -> String {
    let run = &shown.summary;
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:8} {value}");
    };
    line("run", &run.id.to_string());
    line("entry", &visible_line(&run.entry));
    if let Some(project) = &run.project {
        line("project", &visible_line(&project.display().to_string()));
    }
    let holder = reader.holder(run.id).ok().flatten();
    let state = match (&run.error, holder) {
        (_, Some(holder)) => format!("running: {holder}"),
        (Some(error), None) => format!("{}: {}", run.state.as_str(), visible_line(error)),
        (None, None) => run.state.as_str().to_owned(),
    };
    line("status", &state);
    if run.can_resume {
        line("resume", &format!("llm-do resume {}", short_id(run.id)));
    }
    line("began", &run.began.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    line(
        "cost",
        &format!("{}, {} tokens in, {} out", cost(run.cost, run.unpriced), run.tokens_in, run.tokens_out),
    );
    let _ = write!(text, "\n{}", printable(&shown.trace.to_string()));
    for event in &shown.events {
        match &event.body {
            EventBody::Notice { text: notice } => {
                let _ = writeln!(text, "notice: {}", visible_line(notice));
            }
            EventBody::Stderr { text: line } => {
                let _ = writeln!(text, "stderr: {}", visible_line(line));
            }
            _ => {}
        }
    }
    for event in &shown.unknown {
        let (seq, kind, body) =
            (event.seq, visible_line(event.kind()), visible_line(&event.body.to_string()));
        let _ = writeln!(text, "event {seq}, `{kind}`, of a newer version: {body}");
    }
    if let Some(answer) = answer(&shown.events) {
        let shown = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
        let _ = write!(text, "\n{}\n", visible(&shown));
    }
    text
}

/// What the run was given.
fn started_with(events: &[Arc<Event>]) -> Option<Value> {
    events.iter().find_map(|event| match &event.body {
        EventBody::RunStarted(start) => Some(start.input.value().clone()),
        _ => None,
    })
}

/// The answer of the run.
fn answer(events: &[Arc<Event>]) -> Option<Value> {
    events.iter().rev().find_map(|event| match &event.body {
        EventBody::RunFinished { output, .. } => output.as_ref().map(|output| output.to_value()),
        _ => None,
    })
}
