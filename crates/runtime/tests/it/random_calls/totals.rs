//! Counts what happened, so that a person sees that the mix is real and the test cannot become empty.

use std::collections::BTreeMap;
use std::fmt;

use llm_do_core::{
    Answer, ApprovalMode, CallOrigin, DecidedBy, Decision, EventBody, FailureKind, Scope, Status,
};

use crate::random_calls::case::Evidence;
use crate::random_calls::journal::What;
use crate::random_calls::oracle::RunView;

/// What happened in one case.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

/// What happened in all cases.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) cases: u64,
    /// How often something happened, and in how many cases.
    counts: BTreeMap<&'static str, (u64, u64)>,
}

/// The least share of cases, in thousandths, in which something must have happened.
const MINIMUM: [(&str, u64); 40] = [
    ("calls", 900),
    ("calls by code", 200),
    ("calls given up by code", 20),
    ("calls broken off", 50),
    ("calls of agents", 700),
    ("calls of unknown names", 200),
    ("effects", 500),
    ("effects inside tools", 50),
    ("effects of blocking code", 80),
    ("effects in instances", 100),
    ("asks", 200),
    ("answers: once", 100),
    ("answers: session", 80),
    ("answers: deny", 40),
    ("answers: edit", 80),
    ("answers: stop", 5),
    ("answers: error or panic", 30),
    ("edits allowed", 50),
    ("edits asked about again", 10),
    ("grants used: exact", 2),
    ("grants used: tool", 20),
    ("grants used: other scopes", 1),
    ("grants that released a waiting request", 3),
    ("grants revoked", 12),
    ("allowed by the mode", 100),
    ("denied", 150),
    ("blocked", 200),
    ("nobody to ask", 40),
    ("refused: access", 100),
    ("refused: arguments", 200),
    ("refused: context", 35),
    ("refused: depth", 20),
    ("refused: limit", 50),
    ("ended by a time limit", 50),
    ("panics of tools", 40),
    ("cancels", 50),
    ("runs interrupted", 50),
    ("runs that end in a limit", 50),
    ("broken records", 5),
    ("uses of a call after its end", 10),
];

impl Totals {
    pub(crate) fn add(&mut self, counts: &Counts) {
        self.cases += 1;
        for (name, count) in counts {
            let (total, cases) = self.counts.entry(name).or_default();
            *total += count;
            *cases += 1;
        }
    }

    /// Says what happened too rarely.
    pub(crate) fn missing(&self) -> Vec<String> {
        let rare = MINIMUM.iter().filter_map(|(name, least)| {
            let cases = self.counts.get(name).map_or(0, |(_, cases)| *cases);
            let is_rare = cases * 1_000 < least * self.cases;
            is_rare.then(|| format!("{name}: in {cases} of {} cases, at least {least} ‰ are due", self.cases))
        });
        rare.collect()
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>9} cases", self.cases)?;
        for (name, (total, cases)) in &self.counts {
            #[expect(clippy::cast_precision_loss, reason = "a share for a person")]
            let share = *cases as f64 * 100.0 / self.cases.max(1) as f64;
            writeln!(f, "{total:>9} {name} (in {share:.1} % of cases)")?;
        }
        Ok(())
    }
}

/// Counts what happened in a case.
pub(crate) fn counts(evidence: &Evidence) -> Counts {
    let mut counts = Counts::new();
    let runs = RunView::all(evidence);
    for run in &runs {
        count(&mut counts, "runs", 1);
        count_calls(&mut counts, run);
        count_decisions(&mut counts, run);
        count_entries(&mut counts, run);
        count_end(&mut counts, run);
    }
    let revoked = evidence.entries.iter().filter(|entry| matches!(entry.what, What::Revoked(_))).count();
    count(&mut counts, "grants revoked", revoked);
    count(&mut counts, "broken records", usize::from(runs.iter().any(|run| run.record_broke)));
    counts
}

fn count(counts: &mut Counts, name: &'static str, number: usize) {
    if number > 0 {
        *counts.entry(name).or_default() += number as u64;
    }
}

fn count_calls(counts: &mut Counts, run: &RunView<'_>) {
    for call in &run.calls {
        count(counts, "calls", 1);
        count(counts, "calls by code", usize::from(call.origin == CallOrigin::Code));
        count(counts, "calls broken off", usize::from(call.finished.is_empty()));
        count(counts, "calls of agents", usize::from(run.standing(call.key()).is_agent));
        match call.failure() {
            Some(FailureKind::Unknown) => count(counts, "calls of unknown names", 1),
            Some(FailureKind::TimedOut) => count(counts, "ended by a time limit", 1),
            Some(FailureKind::Panic) => count(counts, "panics of tools", 1),
            Some(FailureKind::Toolset) => count(counts, "toolsets not opened", 1),
            _ => {}
        }
    }
    for act in &run.acts {
        count(counts, "effects", 1);
        count(counts, "effects inside tools", usize::from(act.acted.inner));
        count(counts, "effects of blocking code", usize::from(act.acted.blocking));
        count(counts, "effects in instances", usize::from(act.acted.instance.is_some()));
    }
}

fn count_decisions(counts: &mut Counts, run: &RunView<'_>) {
    let calls = run.calls.iter().flat_map(|call| call.decided.iter().map(|decided| (call.key(), decided)));
    let inner = run.inner.iter().map(|inner| (&inner.key, &inner.decided));
    for (id, decided) in calls.chain(inner) {
        let name = match &*decided.decision {
            Decision::Allow(permit) => {
                count(counts, "edits allowed", usize::from(permit.edited));
                let waited = run.asks.contains_key(id) && matches!(permit.by, DecidedBy::Grant(_));
                count(counts, "grants that released a waiting request", usize::from(waited));
                match &permit.by {
                    DecidedBy::Grant(Scope::Exact) => "grants used: exact",
                    DecidedBy::Grant(Scope::Tool) => "grants used: tool",
                    DecidedBy::Grant(_) => "grants used: other scopes",
                    DecidedBy::Mode => "allowed by the mode",
                    DecidedBy::Rule => "allowed by a rule",
                    DecidedBy::Definition => "allowed by the definition",
                    DecidedBy::Approver => "allowed by the approver",
                }
            }
            Decision::Refuse(failure) => match failure.kind {
                FailureKind::Denied => "denied",
                FailureKind::Blocked => "blocked",
                FailureKind::Unasked => "nobody to ask",
                FailureKind::Access => "refused: access",
                FailureKind::Arguments => "refused: arguments",
                FailureKind::Context => "refused: context",
                FailureKind::Depth => "refused: depth",
                FailureKind::Limit => "refused: limit",
                _ => "refused otherwise",
            },
        };
        count(counts, name, 1);
    }
}

fn count_entries(counts: &mut Counts, run: &RunView<'_>) {
    for (_, what) in &run.entries {
        let name = match what {
            What::Shown(request) => {
                count(counts, "edits asked about again", usize::from(request.edit_problem.is_some()));
                "asks"
            }
            What::Answered { answer, .. } => match answer {
                Some(Answer::Once) => "answers: once",
                Some(Answer::Session(_)) => "answers: session",
                Some(Answer::Edit(_)) => "answers: edit",
                Some(Answer::Revise(_)) => "answers: revise",
                Some(Answer::Deny(_)) => "answers: deny",
                Some(Answer::Stop) => "answers: stop",
                Some(Answer::Park) => "answers: park",
                None => "answers: error or panic",
            },
            What::Cancelled => "cancels",
            What::Opened { .. } => "instances opened",
            What::Closed { .. } => "instances closed",
            What::Extended { .. } => "budgets extended",
            What::CodeAsked { stray: true, .. } | What::InnerAsked { stray: true, .. } => {
                "uses of a call after its end"
            }
            What::CodeAsked { .. } => "calls asked for by code",
            What::ModelAsked { .. } => "turns with calls",
            _ => continue,
        };
        count(counts, name, 1);
    }
    let (asked, answered) = run.entries.iter().fold((0, 0), |(asked, answered), (_, what)| match what {
        What::CodeAsked { stray: false, .. } => (asked + 1, answered),
        What::CodeAnswered { .. } => (asked, answered + 1),
        _ => (asked, answered),
    });
    count(counts, "calls given up by code", usize::saturating_sub(asked, answered));
}

fn count_end(counts: &mut Counts, run: &RunView<'_>) {
    let mode = match run.plan.mode {
        ApprovalMode::Prompt => "runs that prompt",
        ApprovalMode::ApproveAll => "runs that approve all",
        ApprovalMode::RejectAll => "runs that reject all",
        ApprovalMode::Park => "runs that park",
    };
    count(counts, mode, 1);
    let status = run.events.iter().find_map(|(_, event)| match &event.body {
        EventBody::RunFinished { status, .. } => Some(*status),
        _ => None,
    });
    let name = match status {
        Some(Status::Done) => "runs done",
        Some(Status::Interrupted) => "runs interrupted",
        Some(Status::Limit) => "runs that end in a limit",
        Some(Status::Provider) => "runs that end in the provider",
        Some(Status::Denied) => "runs denied",
        Some(Status::TimedOut) => "runs timed out",
        Some(Status::Failed) => "runs failed",
        Some(Status::Output | Status::Parked | Status::Unknown | Status::Record) => "runs that end otherwise",
        None => "runs without an end in the record",
    };
    count(counts, name, 1);
}
