//! Keeps the user's own record as small as the configuration says, after a run.

use std::time::Duration;

use llm_do_core::counted;
use llm_do_record::{Record, Retention, RetentionReport, short_id};

use crate::config::RecordSection;
use crate::output;
use crate::text::notice_line;

/// How long the end of a process may take because of it. What is left is done after the next run.
const MAX_TIME: Duration = Duration::from_millis(100);

/// How many runs a notice names.
const MAX_NAMED: usize = 5;

/// Removes the runs that should not be kept, at most once a day, and names those that should not but can be resumed.
pub(crate) async fn apply(record: &Record, section: &RecordSection) {
    let default = Retention::default();
    let retention = Retention {
        keep_days: section.keep_days.unwrap_or(default.keep_days),
        keep_bytes: section.keep_bytes.unwrap_or(default.keep_bytes),
    };
    // A run that is over does not fail because of an old one; the next run tries again.
    let Ok(Some(report)) = record.apply_retention(retention, MAX_TIME).await else { return };
    if let Some(text) = kept(&report, retention) {
        output::to_stderr(&notice_line(&text));
    }
}

fn kept(report: &RetentionReport, retention: Retention) -> Option<String> {
    let oldest = report.kept.first()?;
    let named: Vec<String> = report.kept.iter().take(MAX_NAMED).map(|run| short_id(run.id)).collect();
    let more = if report.kept.len() > MAX_NAMED { ", .." } else { "" };
    let are = if report.kept.len() == 1 { "is" } else { "are" };
    Some(format!(
        "{} older than {}, or beyond the size of the record, {are} kept because they can be resumed: {}{more}; \
         `llm-do runs prune --status {}` removes such runs",
        counted(report.kept.len() as u64, "run"),
        counted(retention.keep_days, "day"),
        named.join(", "),
        oldest.state.as_str(),
    ))
}
