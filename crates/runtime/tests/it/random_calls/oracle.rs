//! The oracle: says from the evidence alone whether a case kept the guarantees.
//!
//! It never asks the runtime what was right. Decisions are worked out again from the plan (see
//! [`expected`]), effects come from the recorder, answers from the approver's own log, and the record is
//! compared with all of them.

mod effects;
mod endings;
mod events;
mod expected;
mod gate;
mod grants;
mod requests;
mod view;

pub(crate) use view::RunView;

use crate::random_calls::case::Evidence;

/// What is wrong with a case; empty where everything is right.
#[derive(Debug, Default)]
pub(crate) struct Findings(pub(crate) Vec<String>);

impl Findings {
    fn add(&mut self, run: &RunView<'_>, what: impl std::fmt::Display) {
        self.0.push(format!("run {}: {what}", run.plan.number));
    }

    fn ensure(&mut self, holds: bool, run: &RunView<'_>, what: impl FnOnce() -> String) {
        if !holds {
            self.add(run, what());
        }
    }
}

/// Checks a case.
pub(crate) fn check(evidence: &Evidence) -> Findings {
    let mut findings = Findings::default();
    let runs = RunView::all(evidence);
    let ledger = grants::Ledger::of(evidence, &runs);
    for run in &runs {
        events::check(run, &mut findings);
        requests::check(run, &mut findings);
        gate::check(run, &ledger, &mut findings);
        effects::check(run, &mut findings);
        endings::check(run, &mut findings);
    }
    ledger.check(evidence, &mut findings);
    endings::check_case(evidence, &mut findings);
    findings
}
