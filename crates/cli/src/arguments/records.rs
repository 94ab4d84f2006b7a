//! The arguments of commands about recorded runs.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use jiff::Timestamp;

use super::examples::{
    APPROVALS_EXAMPLES, APPROVE_EXAMPLES, CHATS_EXAMPLES, DENY_EXAMPLES, FORGET_EXAMPLES, PRUNE_EXAMPLES,
    REPAIR_EXAMPLES, RESUME_EXAMPLES, RUNS_EXAMPLES, SHOW_EXAMPLES, USAGE_EXAMPLES,
};
use super::{ListOutput, RunOptions, dollars};
use crate::unknown::UnknownAnswer;

/// Where runs are recorded.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RecordArguments {
    /// The file in which runs are recorded; `require`: your own record, and nothing runs if it cannot be written. Default:
    /// LLM_DO_RECORD, else `record.db` in your state directory
    #[arg(help_heading = "Record", long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = RESUME_EXAMPLES)]
pub(crate) struct ResumeArguments {
    /// The run: the beginning of its id, or `last`
    #[arg(required_unless_present = "all_answered")]
    pub(crate) run: Option<String>,
    /// Continue every parked run whose questions all have answers, one after the other
    #[arg(long, conflicts_with_all = ["run", "unknown", "project"])]
    pub(crate) all_answered: bool,
    /// Say what became of a call that may have happened: `CALL=done`, `CALL=done:JSON`, `CALL=again`, `CALL=tell`, or `tell`
    /// for all others. Can be repeated
    #[arg(long, value_name = "ANSWER")]
    pub(crate) unknown: Vec<UnknownAnswer>,
    /// How to go on if the project is not what it was. Default: ask at the terminal; without one, nothing runs
    #[arg(long, value_enum, value_name = "CHOICE")]
    pub(crate) changed: Option<ChangedChoice>,
    /// Show how the files of the project changed
    #[arg(long)]
    pub(crate) diff: bool,
    /// Where the project is now, if it was moved
    #[arg(long, value_name = "PATH")]
    pub(crate) project: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// How the user wants to go on with a run whose project changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChangedChoice {
    /// Go on with the project of today
    GoOn,
    /// Go on with the recorded manifest, agent files and prompts; code is that of today
    Recorded,
}

/// Which recorded chat goes on.
#[derive(Debug, Args)]
pub(crate) struct SessionArguments {
    /// Continue the newest chat with this project
    #[arg(help_heading = "Recorded chats", short = 'c', long = "continue", group = "continued", conflicts_with_all = ["resume", "fork"])]
    pub(crate) continue_last: bool,
    /// Continue a recorded chat: the beginning of its id in `llm-do chats`, or `last`
    #[arg(
        help_heading = "Recorded chats",
        long,
        value_name = "ID",
        group = "continued",
        conflicts_with = "fork"
    )]
    pub(crate) resume: Option<String>,
    /// Begin a copy of a recorded chat, which stays as it is
    #[arg(help_heading = "Recorded chats", long, value_name = "ID")]
    pub(crate) fork: Option<String>,
    /// The last turn of the copy. Default: that of the chat
    #[arg(help_heading = "Recorded chats", long, value_name = "TURN", requires = "fork")]
    pub(crate) at: Option<u32>,
    /// What to do with a message that was cut off before it was answered. Default: ask at the terminal; without one, go on with it
    #[arg(help_heading = "Recorded chats", long, value_enum, value_name = "CHOICE", requires = "continued")]
    pub(crate) cut_off: Option<CutOffChoice>,
    /// Say what became of a call of that message that may have happened, as with `llm-do resume`
    #[arg(help_heading = "Recorded chats", long, value_name = "ANSWER", requires = "continued")]
    pub(crate) unknown: Vec<UnknownAnswer>,
}

/// What becomes of a message that was cut off before it was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CutOffChoice {
    /// Go on with it, without doing again what was done
    Resume,
    /// Drop it; what its calls did stays done
    Drop,
}

#[derive(Debug, Args)]
#[command(after_help = CHATS_EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct ChatsArguments {
    #[command(subcommand)]
    pub(crate) action: Option<ChatsAction>,
    /// Show what was said in this chat: the beginning of its id, or `last`
    pub(crate) id: Option<String>,
    /// List chats with this project
    #[arg(long, value_name = "PATH", conflicts_with = "id")]
    pub(crate) project: Option<PathBuf>,
    /// List chats in whose title, messages or answers these words are, in any case
    #[arg(long, value_name = "TEXT", conflicts_with = "id")]
    pub(crate) search: Option<String>,
    /// List at most this many, newest first
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) record: RecordArguments,
    /// The output format
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) output: ListOutput,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ChatsAction {
    /// Remove a chat and its runs from the record, so that nothing of it is left there
    Forget(ForgetArguments),
}

#[derive(Debug, Args)]
#[command(after_help = FORGET_EXAMPLES)]
pub(crate) struct ForgetArguments {
    /// The chat: the beginning of its id, or `last`
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) record: RecordArguments,
}

#[derive(Debug, Args)]
#[command(after_help = APPROVALS_EXAMPLES)]
pub(crate) struct ApprovalsArguments {
    /// Show all of one question: the beginning of its id
    pub(crate) id: Option<String>,
    /// List questions of this project
    #[arg(long, value_name = "PATH", conflicts_with = "id")]
    pub(crate) project: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) record: RecordArguments,
    /// The output format
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) output: ListOutput,
}

#[derive(Debug, Args)]
#[command(after_help = APPROVE_EXAMPLES)]
pub(crate) struct ApproveArguments {
    /// The question: the beginning of its id in `llm-do approvals`
    pub(crate) id: String,
    /// Allow the call with other arguments: JSON, or `@FILE`
    #[arg(long, value_name = "JSON|@FILE", conflicts_with = "session")]
    pub(crate) edit: Option<String>,
    /// Allow also later calls of the run: the number of a scope that `llm-do approvals ID` lists, or `exact` for equal calls
    #[arg(long, value_name = "SCOPE")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) record: RecordArguments,
}

#[derive(Debug, Args)]
#[command(after_help = DENY_EXAMPLES)]
pub(crate) struct DenyArguments {
    /// The question: the beginning of its id in `llm-do approvals`
    pub(crate) id: String,
    /// Why; the model reads it
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) record: RecordArguments,
}

#[derive(Debug, Args)]
#[command(after_help = RUNS_EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct RunsArguments {
    #[command(subcommand)]
    pub(crate) action: Option<RunsAction>,
    /// List runs of this project
    #[arg(long, value_name = "PATH")]
    pub(crate) project: Option<PathBuf>,
    /// List runs of this agent, tool or function
    #[arg(long, value_name = "NAME")]
    pub(crate) entry: Option<String>,
    /// List runs that ended so, or `running`, or `cut_off` (their process was killed)
    #[arg(long, value_name = "STATUS", value_parser = STATUSES)]
    pub(crate) status: Option<String>,
    /// List runs that began since then: `30m`, `12h`, `7d`, or a date
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub(crate) since: Option<Timestamp>,
    /// List runs that cost at least this much, in US dollars
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) min_cost: Option<f64>,
    /// List at most this many, newest first
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) record: RecordArguments,
    /// The output format
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) output: ListOutput,
}

const STATUSES: [&str; 13] = [
    "done",
    "failed",
    "provider",
    "limit",
    "denied",
    "output",
    "timed_out",
    "interrupted",
    "parked",
    "unknown",
    "record",
    "running",
    "cut_off",
];

#[derive(Debug, Subcommand)]
pub(crate) enum RunsAction {
    /// Remove runs from the record. Runs that can be resumed stay, unless `--status` names theirs
    Prune(PruneArguments),
    /// Copy what can be read of a damaged record into the present one
    Repair(RepairArguments),
}

#[derive(Debug, Args)]
#[command(after_help = REPAIR_EXAMPLES)]
pub(crate) struct RepairArguments {
    /// The damaged file. Default: every one that was set aside beside the record
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) record: RecordArguments,
}

#[derive(Debug, Args)]
#[command(after_help = PRUNE_EXAMPLES, group(ArgGroup::new("which").required(true).multiple(true)))]
pub(crate) struct PruneArguments {
    /// Remove runs that ended before then: `12h`, `30d`, or a date
    #[arg(long, value_name = "TIME", value_parser = since, group = "which")]
    pub(crate) older_than: Option<Timestamp>,
    /// Remove runs of this project
    #[arg(long, value_name = "PATH", group = "which")]
    pub(crate) project: Option<PathBuf>,
    /// Remove runs that ended so, or `cut_off` (their process was killed)
    #[arg(long, value_name = "STATUS", value_parser = STATUSES, group = "which")]
    pub(crate) status: Option<String>,
    /// List what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) record: RecordArguments,
}

#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub(crate) struct ShowArguments {
    /// The run: the beginning of its id, or `last`
    pub(crate) run: String,
    /// Show this call in full, and those below it: its key, as `--output json` gives it
    #[arg(long, value_name = "KEY")]
    pub(crate) call: Option<String>,
    #[command(flatten)]
    pub(crate) record: RecordArguments,
    /// The output format
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) output: ShowOutput,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowOutput {
    /// The calls as a tree, notices and the answer
    #[default]
    Text,
    /// One JSON object
    Json,
    /// Every event as a line of JSON
    Jsonl,
    /// A page for a browser, which loads nothing else
    Html,
    /// The calls as a Mermaid diagram
    Mermaid,
}

#[derive(Debug, Args)]
#[command(after_help = USAGE_EXAMPLES)]
pub(crate) struct UsageArguments {
    /// What to add up by
    #[arg(long, value_enum, default_value_t, value_name = "GROUP")]
    pub(crate) by: UsageGroup,
    /// Count days since then: `12h`, `7d`, or a date
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub(crate) since: Option<Timestamp>,
    #[command(flatten)]
    pub(crate) record: RecordArguments,
    /// The output format
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(crate) output: ListOutput,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum UsageGroup {
    /// The model
    #[default]
    Model,
    /// The agent that asked the model
    Agent,
    /// The day, in UTC
    Day,
}

/// Reads a time in the past: `30m`, `12h`, `7d`, or a date.
fn since(text: &str) -> Result<Timestamp, String> {
    let unit = |unit: &str, seconds: i64| {
        let number: i64 = text.strip_suffix(unit)?.parse().ok()?;
        Timestamp::from_second(Timestamp::now().as_second().saturating_sub(number.saturating_mul(seconds)))
            .ok()
    };
    let date = || format!("{text}T00:00:00Z").parse::<Timestamp>().ok();
    unit("m", 60)
        .or_else(|| unit("h", 3_600))
        .or_else(|| unit("d", 86_400))
        .or_else(|| text.parse().ok())
        .or_else(date)
        .ok_or_else(|| "a time is `30m`, `12h`, `7d` or a date such as `2026-11-19`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_ages_and_dates() {
        let now = Timestamp::now().as_second();
        for (text, age) in [("30m", 1_800), ("12h", 43_200), ("7d", 604_800)] {
            assert!((now - since(text).unwrap().as_second() - age).abs() < 5, "{text}");
        }
        assert_eq!(since("2026-11-19").unwrap().to_string(), "2026-11-19T00:00:00Z");
        assert_eq!(since("2026-11-19T10:00:00Z").unwrap().to_string(), "2026-11-19T10:00:00Z");
        assert!(since("yesterday").is_err());
        assert!(since("9223372036854775807d").is_err());
    }
}
