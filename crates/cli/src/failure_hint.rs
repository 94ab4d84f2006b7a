//! What a person can do about a run that failed.
//!
//! The hint of a failure is written for its caller: a model, or a program that embeds llm-do. A person at the command
//! line has flags and files instead, so each kind of failure has its own failure_hint here.

use std::time::Duration;

use llm_do::call::FailureKind;
use llm_do::event::{EventBody, ModelResult, Status};
use llm_do::model::ModelErrorKind;
use llm_do::{Failure, Limits, RunReport};

use crate::exit::Exit;

/// What to do if nobody could be asked.
const NOBODY_TO_ASK: &str = "run it in a terminal, answer through `--approve-with` or `--approvals-from`, or allow with `--approve all`";

/// What to do about a conversation that is longer than the model reads.
const TOO_LONG: &str = "give it less input or a model with a larger context window; in a chat, `/clear` begins a new conversation and \
     `/goto N` goes back to before message N";

/// The limits of a run, by where they were set.
#[derive(Debug, Clone, Default)]
pub(crate) struct LimitSources {
    /// Those that flags set.
    pub(crate) flags: Limits,
    /// Those of the manifest.
    pub(crate) manifest: Limits,
    /// The time of the whole run, which only a flag sets.
    pub(crate) timeout: Option<Duration>,
}

/// Returns what can be done about the way in which a run ended.
pub(crate) fn for_user(report: &RunReport, limits: &LimitSources) -> Option<String> {
    if report.nobody_to_ask && Exit::from_report(report) == Exit::Denied {
        return Some(NOBODY_TO_ASK.to_owned());
    }
    if report.output.is_some() {
        return None;
    }
    if last_model_error(report) == Some(ModelErrorKind::ContextOverflow) {
        return Some(TOO_LONG.to_owned());
    }
    if report.status == Status::TimedOut && limits.timeout.is_some() {
        return Some("`--timeout` sets the limit".to_owned());
    }
    report.failure.as_ref().and_then(|failure| from_failure(failure, limits))
}

/// The failure of the last model request, if it failed.
fn last_model_error(report: &RunReport) -> Option<ModelErrorKind> {
    let events = report.events();
    let last = events.iter().rev().find_map(|event| match &event.body {
        EventBody::ModelResponse { result, .. } => Some(result),
        _ => None,
    });
    match last {
        Some(ModelResult::Failed { error }) => Some(error.kind),
        _ => None,
    }
}

fn from_failure(failure: &Failure, limits: &LimitSources) -> Option<String> {
    if let Some(flag) = flag_that_ended(failure, limits) {
        return Some(format!("`{flag}` sets the limit"));
    }
    let own = failure.user_hint().map(str::to_owned);
    own.or_else(|| for_kind(failure.kind).map(str::to_owned))
}

/// Returns the flag whose limit ended a run: one that is given, and not larger than the key that the hint names.
fn flag_that_ended(
    failure: &Failure,
    LimitSources { flags, manifest, .. }: &LimitSources,
) -> Option<&'static str> {
    let hint = failure.user_hint()?;
    let rules = [
        ("`runtime.limits.tokens`", "--max-tokens", is_tighter(flags.tokens, manifest.tokens)),
        ("`runtime.limits.cost`", "--max-cost", is_tighter(flags.cost, manifest.cost)),
        ("`runtime.limits.tool_calls`", "--max-calls", is_tighter(flags.tool_calls, manifest.tool_calls)),
    ];
    let of_run = rules.iter().find(|(key, _, is_tighter)| *is_tighter && hint.contains(key));
    // The turns of one agent: its own limit may be smaller than the flag, and the message has the smaller one.
    let of_agent = || flags.turns.filter(|turns| failure.message.contains(&format!("used its {turns} turn")));
    of_run.map(|(_, flag, _)| *flag).or_else(|| of_agent().map(|_| "--max-turns"))
}

fn is_tighter<T: Ord>(flag: Option<T>, key: Option<T>) -> bool {
    flag.is_some_and(|flag| key.is_none_or(|key| flag <= key))
}

/// What helps with most failures of a kind.
fn for_kind(kind: FailureKind) -> Option<&'static str> {
    match kind {
        FailureKind::Arguments => Some(
            "`llm-do list PATH` shows what it takes; give that with `--input-json '{\"key\": \"value\"}'`",
        ),
        FailureKind::Depth => Some("raise it with `--max-depth N` or `runtime.max_depth`, at most 64"),
        FailureKind::Limit => Some(
            "raise it with `--max-turns`, `--max-calls`, `--max-tokens`, `--max-cost`, or `limits` in the manifest or the agent file",
        ),
        FailureKind::TimedOut => Some("raise `limits.time` in the manifest or the agent file"),
        FailureKind::Blocked => Some("`llm-do check PATH --reach` shows which rule applies"),
        FailureKind::Context => Some("write the value under `context` of the manifest"),
        FailureKind::Unknown
        | FailureKind::Denied
        | FailureKind::Unasked
        | FailureKind::Access
        | FailureKind::Tool
        | FailureKind::Panic
        | FailureKind::Cancelled
        | FailureKind::Output
        | FailureKind::Model
        | FailureKind::Toolset => None,
    }
}
