//! `llm-do runs repair`: what can be read of a damaged record.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use llm_do::record::StoreError;
use llm_do_core::counted;
use llm_do_record::{Reader, Record, RepairOutcome, RepairReport, RepairedRun, damaged_files, short_id};

use crate::arguments::RepairArguments;
use crate::command_error::CommandError;
use crate::config::shown;
use crate::exit::Exit;
use crate::host;
use crate::output;
use crate::record::{self, RecordTarget, one_line};
use crate::text::visible_line;

/// Copies the runs of damaged records, and says what was cut.
pub(super) fn repair(arguments: &RepairArguments) -> Result<Exit, CommandError> {
    // A record that is damaged right now is set aside by this, too.
    let Some(record) = RecordTarget::new(&arguments.record).open()? else { return Err(record::not_here()) };
    let files = files(arguments, record.path())?;
    if files.is_empty() {
        output::to_stderr("nothing to repair: no damaged record was set aside");
    }
    for file in files {
        let report =
            host::block_on(async { record.repair_from(&file).await.map_err(|error| unread(&file, &error)) })?;
        print(&record, &file, &report)?;
    }
    Ok(Exit::Done)
}

fn files(arguments: &RepairArguments, record: &Path) -> Result<Vec<PathBuf>, CommandError> {
    match &arguments.file {
        Some(file) if !file.exists() => {
            let file = visible_line(&file.display().to_string());
            Err(CommandError::usage(format!("{file} does not exist")))
        }
        Some(file) => Ok(vec![file.clone()]),
        None => Ok(damaged_files(record)),
    }
}

fn unread(file: &Path, error: &StoreError) -> CommandError {
    CommandError::failed(format!("nothing can be read of {}: {error}", shown(file)))
}

fn print(record: &Record, file: &Path, report: &RepairReport) -> Result<(), CommandError> {
    let count = |is_meant: fn(&RepairOutcome) -> bool| {
        report.runs.iter().filter(|run| is_meant(&run.outcome)).count() as u64
    };
    let whole = count(|outcome| matches!(outcome, RepairOutcome::Whole));
    let cut = count(|outcome| matches!(outcome, RepairOutcome::Cut { .. }));
    let present = count(|outcome| matches!(outcome, RepairOutcome::Present));
    output::to_stderr(&format!(
        "{}: {} copied, {cut} cut, {present} there already; the file stays as it is",
        shown(file),
        counted(whole, "whole run")
    ));
    if let Some(reason) = &report.unlisted {
        output::to_stderr(&format!(
            "there may be more runs, of which nothing can be read: {}",
            visible_line(reason)
        ));
    }
    let reader = record.reader().map_err(|error| CommandError::failed(error.to_string()))?;
    let lines: String = report.runs.iter().filter_map(|run| line(&reader, run)).collect();
    if !lines.is_empty() {
        output::to_stdout(lines.trim_end());
    }
    Ok(())
}

/// What was cut of a run.
fn line(reader: &Reader, run: &RepairedRun) -> Option<String> {
    let RepairOutcome::Cut { events, of, reason } = &run.outcome else { return None };
    let of = of.map_or_else(String::new, |of| format!(" of {of}"));
    let what = reader.run(run.id).ok().flatten().map(|run| one_line(&run)).unwrap_or_default();
    let mut line = String::new();
    let _ = writeln!(
        line,
        "{}  {events}{of} events copied  {what}  ({})",
        short_id(run.id),
        visible_line(reason)
    );
    Some(line)
}
