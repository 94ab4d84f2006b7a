//! `llm-do runs`: what was run, newest first.

mod repair;

use std::fmt::Write;

use llm_do::record::StoreError;
use llm_do_core::counted;
use llm_do_record::{PruneFilter, RunFilter, RunSummary, short_id};
use serde_json::{Value, json};

use crate::arguments::{ListOutput, PruneArguments, RunsAction, RunsArguments};
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::host;
use crate::output;
use crate::record::{self, RecordTarget, age, cost, one_line, project_of};
use crate::text::shortened;

/// How much of what was run a line shows.
const MAX_TITLE_CHARS: usize = 60;

/// Lists the runs of the record.
pub(crate) fn runs(arguments: &RunsArguments) -> Result<Exit, CommandError> {
    match &arguments.action {
        Some(RunsAction::Prune(arguments)) => return prune(arguments),
        Some(RunsAction::Repair(arguments)) => return repair::repair(arguments),
        None => {}
    }
    let filter = RunFilter {
        project: arguments.project.as_deref().map(project_of),
        entry: arguments.entry.clone(),
        status: arguments.status.clone(),
        since: arguments.since,
        min_cost: arguments.min_cost.map(llm_do::usage::Money::from_dollars),
        limit: Some(arguments.limit),
    };
    let runs = match record::reader(&arguments.record)? {
        Some(reader) => reader.runs(&filter).map_err(|error| record::failed(&error))?,
        None => Vec::new(),
    };
    match arguments.output {
        ListOutput::Json => {
            let list: Vec<Value> = runs.iter().map(object).collect();
            output::to_stdout(&serde_json::to_string_pretty(&list).unwrap_or_default());
        }
        ListOutput::Text if runs.is_empty() => output::to_stderr("no runs"),
        ListOutput::Text => drop(output::to_stdout(table(&runs).trim_end())),
    }
    Ok(Exit::Done)
}

/// Removes runs from the record, or lists those that would be removed.
fn prune(arguments: &PruneArguments) -> Result<Exit, CommandError> {
    let Some(reader) = record::reader(&arguments.record)? else {
        output::to_stderr("no runs");
        return Ok(Exit::Done);
    };
    let filter = PruneFilter {
        before: arguments.older_than,
        runs: RunFilter {
            project: arguments.project.as_deref().map(project_of),
            status: arguments.status.clone(),
            ..RunFilter::default()
        },
    };
    let failed = |error: StoreError| record::failed(&error);
    let runs = filter.matching(&reader).map_err(failed)?;
    drop(reader);
    if arguments.dry_run {
        if !runs.is_empty() {
            output::to_stdout(table(&runs).trim_end());
        }
        output::to_stderr(&format!("{} would be removed", counted(runs.len(), "run")));
        return Ok(Exit::Done);
    }
    let Some(record) = RecordTarget::new(&arguments.record).open()? else { return Ok(Exit::Failed) };
    let removed = host::block_on(async { record.remove(runs).await.map_err(failed) })?;
    output::to_stderr(&format!("removed {}", counted(removed, "run")));
    Ok(Exit::Done)
}

fn table(runs: &[RunSummary]) -> String {
    let mut text = format!("{:8}  {:11}  {:>4}  {:>9}  what\n", "id", "status", "age", "cost");
    for run in runs {
        let title = shortened(&one_line(run), MAX_TITLE_CHARS);
        let (id, state) = (short_id(run.id), run.state.as_str());
        let (age, cost) = (age(run.began), cost(run.cost, run.unpriced));
        let _ = writeln!(text, "{id:8}  {state:11}  {age:>4}  {cost:>9}  {title}");
    }
    text
}

/// A run as JSON.
pub(super) fn object(run: &RunSummary) -> Value {
    json!({
        "run_id": run.id.to_string(),
        "status": run.state.as_str(),
        "can_resume": run.can_resume,
        "entry": run.entry,
        "title": run.title,
        "project": run.project,
        "began": run.began.to_string(),
        "ended": run.ended.map(|ended| ended.to_string()),
        "error": run.error,
        "calls": run.calls,
        "tokens_in": run.tokens_in,
        "tokens_out": run.tokens_out,
        "cost_usd": (run.unpriced == 0).then(|| run.cost.dollars()),
    })
}
