//! Compares the calls in the record and in the trace with what models and code asked for.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use llm_do_core::{CallOrigin, Decision, Digest, FailureKind, Key, Name, Payload, StopReason};

use super::Findings;
use super::expected::{asked_by_model, given};
use super::view::{CallView, RunView, is_key_by_code};
use crate::random_calls::journal::What;

/// Checks that every call that was asked for stands in the record exactly once, and no other.
pub(crate) fn check(run: &RunView<'_>, findings: &mut Findings) {
    check_trace(run, findings);
    check_answers_of_models(run, findings);
    check_calls_of_models(run, findings);
    check_calls_of_code(run, findings);
    check_inner(run, findings);
    let outside = run.calls.iter().filter(|call| call.origin == CallOrigin::Embedder);
    for (number, call) in outside.enumerate() {
        let right = number == 0 && call.name == run.plan.start && call.input.value() == &run.plan.input;
        findings.ensure(right, run, || format!("`{}` is not what the run was started for", call.key()));
    }
}

/// The trace has every call once, refused ones included.
fn check_trace(run: &RunView<'_>, findings: &mut Findings) {
    let Some(report) = run.evidence.reports.get(&run.plan.number) else { return };
    let traced: HashSet<&Key> = report.traced.iter().collect();
    let started: HashSet<&Key> = run.calls.iter().map(CallView::key).collect();
    findings.ensure(traced == started && report.traced.len() == run.calls.len(), run, || {
        format!("the trace has {:?}, and {started:?} started", report.traced)
    });
}

/// An agent, and the calls that one answer of its model asks for.
type Said = (String, Vec<(Name, Arc<str>)>);

/// What models said is what the record says they said.
fn check_answers_of_models(run: &RunView<'_>, findings: &mut Findings) {
    let mut said: HashMap<Said, i64> = HashMap::new();
    for (_, what) in &run.entries {
        if let What::ModelAsked { agent, calls, .. } = what {
            *said.entry((agent.clone(), calls.clone())).or_default() += 1;
        }
    }
    for (key, response) in &run.responses {
        let calls: Vec<_> =
            response.message.tool_calls().map(|call| (call.name.clone(), call.arguments.clone())).collect();
        if calls.is_empty() {
            continue;
        }
        let call = key.rsplit_once("/t").map(|(call, _)| Key::from(call)).unwrap_or_else(Key::root);
        let agent = run.standing(&call).agent_name().to_owned();
        *said.entry((agent, calls)).or_default() -= 1;
    }
    for ((agent, calls), left) in said {
        // An answer may be lost on the way of a run that is being ended.
        let lost = left > 0 && (run.was_halted() || run.record_broke || was_interrupted(run, &agent));
        findings.ensure(left == 0 || lost, run, || {
            format!("`{agent}` asked for {calls:?} {left} times more often than recorded")
        });
    }
}

/// Returns whether a call of an agent was broken off, or ended by its time limit.
fn was_interrupted(run: &RunView<'_>, agent: &str) -> bool {
    run.calls.iter().any(|call| call.name == agent && (call.finished.is_empty() || call.timed_out()))
}

/// Each request in a message that ended properly is a call, with the name and input of the request.
fn check_calls_of_models(run: &RunView<'_>, findings: &mut Findings) {
    for call in run.calls.iter().filter(|call| call.origin == CallOrigin::Model) {
        let Some(asked) = asked_by_model(run, call) else {
            findings.add(run, format!("no model asked for `{}`", call.key()));
            continue;
        };
        let reading = given(run, call);
        let read_right = match &reading {
            Some(value) => !call.input.is_unparsed() && call.input == Payload::new(value.clone()),
            None => call.input.is_unparsed(),
        };
        findings.ensure(asked.name == *call.name && read_right, run, || {
            format!("`{}` was asked for as {asked:?} and is `{}` {:?}", call.key(), call.name, call.input)
        });
    }
    for (key, response) in &run.responses {
        let turn = key.trim_end_matches("/model");
        let agent = turn.rsplit_once('/').and_then(|(agent, _)| run.call(&Key::from(agent)));
        let runs = matches!(response.stop, StopReason::ToolUse);
        for place in 0..response.message.tool_calls().count() {
            let started = run.call(&Key::from(format!("{turn}/tool/{place}"))).is_some();
            let ended = agent.is_some_and(|agent| !agent.finished.is_empty() && !agent.timed_out());
            let missing = runs && !started && ended && !run.record_broke;
            findings.ensure(!missing, run, || format!("the call {place} of `{turn}` never started"));
            findings.ensure(runs || !started, run, || {
                format!("the call {place} of `{turn}` started from a message that did not end properly")
            });
        }
    }
}

/// Each call that code asked for stands in the record as often as it was asked for, and ended as code was
/// told.
fn check_calls_of_code(run: &RunView<'_>, findings: &mut Findings) {
    let mut asked: HashMap<(Key, String, Digest), Told> = HashMap::new();
    for (_, what) in &run.entries {
        match what {
            What::CodeAsked { parent, name, input, stray } => {
                let told = asked.entry((parent.clone(), name.to_string(), input.digest())).or_default();
                told.asked += 1;
                told.stray |= stray;
            }
            What::CodeAnswered { parent, name, input, failure } => {
                let told = asked.entry((parent.clone(), name.to_string(), input.digest())).or_default();
                told.answers.push(*failure);
            }
            _ => {}
        }
    }
    for call in run.calls.iter().filter(|call| call.origin == CallOrigin::Code) {
        findings.ensure(is_key_by_code(call.key(), &call.parent, &call.name, &call.input), run, || {
            format!("`{}` has not the key of a call by code", call.key())
        });
        let told = asked.entry((call.parent.clone(), call.name.clone(), call.input.digest())).or_default();
        told.started += 1;
        told.ends.extend((!call.finished.is_empty()).then(|| call.failure()));
    }
    for ((parent, name, _), told) in asked {
        let ended = run.call(&parent).is_some_and(|call| !call.finished.is_empty() && !call.timed_out());
        let complete = told.started == told.asked || !ended || told.stray || run.record_broke;
        let right = complete && told.started <= told.asked && told.is_told_the_truth(run.record_broke);
        findings.ensure(right, run, || {
            format!("code of `{parent}` and the record disagree about `{name}`: {told:?}")
        });
    }
}

/// What code asked for and was told, and what the record says about it.
#[derive(Debug, Default)]
struct Told {
    asked: usize,
    answers: Vec<Option<FailureKind>>,
    started: usize,
    ends: Vec<Option<FailureKind>>,
    /// Whether code asked that may have outlived its own call.
    stray: bool,
}

impl Told {
    /// Each answer is the end of one call.
    fn is_told_the_truth(&self, record_broke: bool) -> bool {
        let mut ends = self.ends.clone();
        let found = |answer| ends.iter().position(|end| *end == answer).map(|place| ends.swap_remove(place));
        record_broke || self.stray || self.answers.iter().copied().map(found).all(|end| end.is_some())
    }
}

/// Each inner effect that code was told is allowed was decided so.
fn check_inner(run: &RunView<'_>, findings: &mut Findings) {
    let mut told: HashMap<(Key, String, Digest), (usize, usize)> = HashMap::new();
    for (_, what) in &run.entries {
        if let What::InnerAnswered { parent, name, payload, permitted: Ok(_) } = what {
            told.entry((parent.clone(), name.to_string(), payload.digest())).or_default().0 += 1;
        }
    }
    for inner in &run.inner {
        let Some(asked) = &inner.asked else { continue };
        if matches!(&*inner.decided.decision, Decision::Allow(_)) {
            told.entry((inner.outer.clone(), inner.name.clone(), asked.digest())).or_default().1 += 1;
        }
    }
    for ((parent, name, _), (told, allowed)) in told {
        findings.ensure(told <= allowed, run, || {
            format!(
                "code of `{parent}` was told {told} times that `{name}` is allowed, decided {allowed} times"
            )
        });
    }
}
