//! `llm-do show`: what happened in a run.

use std::fmt::Write;
use std::sync::Arc;

use llm_do::event::{Event, EventBody, Trace};
use llm_do_record::{Reader, RunSummary, short_id};
use serde_json::json;

use crate::arguments::{Output, ShowArguments};
use crate::command_error::CommandError;
use crate::commands::runs;
use crate::exit::Exit;
use crate::output;
use crate::record::{self, cost};
use crate::text::{printable, visible, visible_line};

/// Shows a recorded run.
pub(crate) fn show(arguments: &ShowArguments) -> Result<Exit, CommandError> {
    let (reader, run) = record::find(&arguments.record, &arguments.run)?;
    let events = reader.events(run.id, None).map_err(|error| CommandError::failed(error.to_string()))?;
    match arguments.output {
        Output::Text => drop(output::to_stdout(text(&reader, &run, &events).trim_end())),
        Output::Json => {
            let mut object = runs::object(&run);
            object["input"] = json!(started_with(&events));
            object["output"] = json!(answer(&events));
            object["calls"] = json!(Trace::from_events(&events));
            output::to_stdout(&serde_json::to_string_pretty(&object).unwrap_or_default());
        }
        Output::Jsonl => {
            for event in &events {
                if !output::to_stdout(&output::event_line(event)) {
                    return Ok(if output::has_failed() { Exit::Failed } else { Exit::Unread });
                }
            }
        }
    }
    Ok(Exit::Done)
}

fn text(reader: &Reader, run: &RunSummary, events: &[Arc<Event>]) -> String {
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
    let trace = Trace::from_events(events);
    let _ = write!(text, "\n{}", printable(&trace.to_string()));
    for event in events {
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
    if let Some(answer) = answer(events) {
        let shown = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
        let _ = write!(text, "\n{}\n", visible(&shown));
    }
    text
}

/// What the run was given.
fn started_with(events: &[Arc<Event>]) -> Option<serde_json::Value> {
    events.iter().find_map(|event| match &event.body {
        EventBody::RunStarted(start) => Some(start.input.value().clone()),
        _ => None,
    })
}

/// The answer of the run.
fn answer(events: &[Arc<Event>]) -> Option<serde_json::Value> {
    events.iter().rev().find_map(|event| match &event.body {
        EventBody::RunFinished { output, .. } => output.as_ref().map(|output| output.to_value()),
        _ => None,
    })
}
