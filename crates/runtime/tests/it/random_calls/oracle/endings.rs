//! Checks how runs end: in a documented status, for a reason, and with nothing left over.

use std::collections::HashMap;

use llm_do_core::{Answer, CallResult, Digest, EventBody, FailureKind, Key, Status};

use super::Findings;
use super::view::RunView;
use crate::random_calls::case::Evidence;
use crate::random_calls::journal::What;

/// Checks the end of a run.
pub(crate) fn check(run: &RunView<'_>, findings: &mut Findings) {
    let recorded = run.events.iter().find_map(|(_, event)| match &event.body {
        EventBody::RunFinished { status, .. } => Some(*status),
        _ => None,
    });
    let report = run.evidence.reports.get(&run.plan.number);
    if let Some(report) = report {
        let same = report.events.len() == run.events.len()
            && report.events.iter().zip(&run.events).all(|(a, (_, b))| a.seq == b.seq && a.key == b.key);
        findings.ensure(same, run, || "the report and the store have different events".to_owned());
    }
    let read = &run.evidence.read[run.plan.number];
    let is_complete = read.iter().copied().eq(0..run.events.len() as u64);
    findings.ensure(is_complete || !run.plan.has_subscriber, run, || {
        format!("a reader saw {} of {} events: {read:?}", read.len(), run.events.len())
    });
    let Some(status) = recorded else {
        findings.ensure(run.record_broke, run, || "the run has no end".to_owned());
        let said = report.is_none_or(|report| report.status == Status::Record);
        return findings.ensure(said, run, || {
            format!("the record broke, and the run reports {:?}", report.map(|report| report.status))
        });
    };
    findings.ensure(report.is_none_or(|report| report.status == status), run, || {
        format!("the record ends in {status:?}, the report in {:?}", report.map(|report| report.status))
    });
    check_reason(run, status, findings);
}

fn check_reason(run: &RunView<'_>, status: Status, findings: &mut Findings) {
    let due = match run.top().and_then(|call| call.finished.first()) {
        Some((_, CallResult::Output(_))) => Some(Status::Done),
        Some((_, CallResult::Error(failure))) => Some(status_of(failure.kind)),
        None => None,
    };
    // Code that reacts to the end of its run with an error was ended all the same, for a reason that is looked for.
    let was_ended = due == Some(Status::Failed) && status != Status::Failed;
    if let Some(due) = due.filter(|_| !was_ended) {
        return findings
            .ensure(status == due, run, || format!("the run ends in {status:?}, {due:?} was due"));
    }
    let any = |wanted: fn(&What) -> bool| run.entries.iter().any(|(_, what)| wanted(what));
    let is_stop = |what: &What| matches!(what, What::Answered { answer: Some(Answer::Stop), .. });
    let reason = match status {
        Status::Interrupted => any(|what| matches!(what, What::Cancelled)) || any(is_stop),
        Status::Provider => any(|what| matches!(what, What::ModelFailed { outage: true })),
        Status::TimedOut => run.plan.timeout.is_some(),
        Status::Limit => repeats_a_denied_call(run),
        Status::Done | Status::Failed | Status::Denied | Status::Output | Status::Parked => false,
        Status::Unknown | Status::Record => run.record_broke,
    };
    findings.ensure(reason, run, || format!("the run was ended in {status:?} for no reason"));
}

fn status_of(kind: FailureKind) -> Status {
    match kind {
        FailureKind::Blocked | FailureKind::Denied | FailureKind::Unasked => Status::Denied,
        FailureKind::Limit | FailureKind::Depth => Status::Limit,
        FailureKind::Output => Status::Output,
        FailureKind::Model => Status::Provider,
        _ => Status::Failed,
    }
}

/// Returns whether a model made the same failing call three times, and was denied among them.
fn repeats_a_denied_call(run: &RunView<'_>) -> bool {
    let mut failed: HashMap<(&Key, &str, Digest), Vec<FailureKind>> = HashMap::new();
    for call in &run.calls {
        let same = (&call.parent, call.name.as_str(), call.input.digest());
        failed.entry(same).or_default().extend(call.failure());
    }
    let is_denial = |kind: &FailureKind| {
        matches!(kind, FailureKind::Denied | FailureKind::Unasked | FailureKind::Blocked)
    };
    failed.values().any(|kinds| kinds.len() >= 3 && kinds.iter().any(is_denial))
}

/// Checks what is left after the shutdown: nothing runs, nothing waits, nothing is written any more.
pub(crate) fn check_case(evidence: &Evidence, findings: &mut Findings) {
    if !evidence.still_running.is_empty() || !evidence.still_open.is_empty() {
        let (running, open) = (&evidence.still_running, &evidence.still_open);
        findings.0.push(format!("after the shutdown {running:?} runs and {open:?} waits"));
    }
    let end = evidence.entries.iter().position(|entry| matches!(entry.what, What::ShutDown));
    let late = evidence.entries.iter().skip(end.map_or(0, |end| end + 1));
    for entry in late {
        findings.0.push(format!("after the shutdown: {:?}", entry.what));
    }
}
