//! What a person can do about a run that failed.
//!
//! The hint of a failure is written for its caller: a model, or a program that embeds llm-do. A person at the command
//! line has flags and files instead, so each kind of failure has its own failure_hint here.

use llm_do::call::FailureKind;
use llm_do::event::{EventBody, ModelResult};
use llm_do::model::ModelErrorKind;
use llm_do::{Failure, RunReport};

use crate::exit::Exit;

/// What to do if nobody could be asked.
const NOBODY_TO_ASK: &str = "run it in a terminal, answer through `--approve-with` or `--approvals-from`, or allow with `--approve all`";

/// What to do about a conversation that is longer than the model reads.
const TOO_LONG: &str = "give it less input or a model with a larger context window; in a chat, `/clear` begins a new conversation and \
     `/goto N` goes back to before message N";

/// Returns what can be done about the way in which a run ended.
pub(crate) fn for_user(report: &RunReport) -> Option<String> {
    if report.nobody_to_ask && Exit::from_report(report) == Exit::Denied {
        return Some(NOBODY_TO_ASK.to_owned());
    }
    if report.output.is_some() {
        return None;
    }
    if last_model_error(report) == Some(ModelErrorKind::ContextOverflow) {
        return Some(TOO_LONG.to_owned());
    }
    report.failure.as_ref().and_then(from_failure)
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

fn from_failure(failure: &Failure) -> Option<String> {
    let own = failure.user_hint().map(with_flag);
    own.or_else(|| for_kind(failure.kind).map(str::to_owned))
}

/// Names the flag beside the key of a limit: whoever gave the flag cannot raise the limit by the key.
fn with_flag(hint: &str) -> String {
    let flags = [
        ("limits.tokens`", "--max-tokens"),
        ("limits.cost`", "--max-cost"),
        ("limits.tool_calls`", "--max-calls"),
    ];
    match flags.iter().find(|(key, _)| hint.contains(key)) {
        Some((_, flag)) => format!("{hint}; `{flag}` is a ceiling for it"),
        None => hint.to_owned(),
    }
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
