//! Compares each recorded decision with the one that was due.
//!
//! What was due follows from the plan, from the ledger of grants and from what the approver was shown and
//! answered. Refusals by counted limits are checked by counting.

use llm_do_core::{
    Answer, Approval, CallOrigin, DecidedBy, Decision, EventBody, FailureKind, Key, Permit, Scope,
    canonical_text,
};
use serde_json::{Value, json};

use super::Findings;
use super::expected::{Expected, Question, completed, expected, expected_inside, verdict};
use super::grants::{Ledger, is_grantable};
use super::view::{Ask, CallView, Decided, InnerView, RunView};
use crate::random_calls::arguments::attached;
use crate::random_calls::journal::What;
use crate::random_calls::plan::Target;

/// A decision that is due.
#[derive(Debug)]
enum Due {
    Allow {
        arguments: String,
        by: By,
        edited: bool,
    },
    Refuse(FailureKind),
    /// None: the run ended here, or was ended.
    Nothing,
}

/// Who may have allowed a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Policy,
    Mode,
    Grant,
    Approver,
}

/// What is put to the gate: a call, or an inner effect.
struct Matter<'v> {
    id: &'v Key,
    call: Option<&'v CallView>,
    inner: Option<&'v InnerView>,
    /// When it was put at the earliest.
    since: usize,
    decided: Option<&'v Decided>,
}

/// Checks all decisions of a run.
pub(crate) fn check(run: &RunView<'_>, ledger: &Ledger, findings: &mut Findings) {
    for call in &run.calls {
        check_call(run, ledger, call, findings);
    }
    for inner in &run.inner {
        check_inner(run, ledger, inner, findings);
    }
    for (id, asks) in &run.asks {
        let known = run.call(id).is_some() || run.inner.iter().any(|inner| inner.key == *id);
        // An inner effect whose asking was broken off has no decision, and so no view of its own.
        let broken_off = asks.iter().all(|ask| ask.answer.is_none());
        findings.ensure(known || broken_off || stopped(asks) || run.record_broke, run, || {
            format!("`{id}` was asked about and is neither a call nor an inner effect")
        });
    }
    check_counted(run, findings);
}

fn stopped(asks: &[Ask<'_>]) -> bool {
    asks.iter().any(|ask| matches!(ask.answer, Some((_, Some(Answer::Stop)))))
}

fn check_call(run: &RunView<'_>, ledger: &Ledger, call: &CallView, findings: &mut Findings) {
    let key = call.key();
    findings.ensure(call.decided.len() <= 1, run, || format!("`{key}` was decided more than once"));
    let matter =
        Matter { id: key, call: Some(call), inner: None, since: call.started, decided: call.decided.first() };
    let ended_early = call.finished.is_empty() || run.record_broke;
    match expected(run, call) {
        Expected::Unknown => {
            findings.ensure(call.decided.is_empty() && !run.asks.contains_key(key), run, || {
                format!("`{key}` calls `{}`, which its caller cannot name, and was decided", call.name)
            });
            findings.ensure(ended_early || call.failure() == Some(FailureKind::Unknown), run, || {
                format!("`{key}` calls `{}`, which its caller cannot name, and did not fail so", call.name)
            });
        }
        due => compare(run, ledger, &matter, due, findings),
    }
    if let (Some(Decided { decision, .. }), false) = (call.decided.first(), ended_early)
        && let Decision::Refuse(failure) = &**decision
    {
        findings.ensure(call.failure() == Some(failure.kind), run, || {
            format!("`{key}` was refused ({:?}) and ended in {:?}", failure.kind, call.failure())
        });
    }
    let resolved = run.target(call).is_some();
    findings.ensure(!resolved || ended_early || call.decided.len() == 1, run, || {
        format!("`{key}` has ended without a decision")
    });
}

fn check_inner(run: &RunView<'_>, ledger: &Ledger, inner: &InnerView, findings: &mut Findings) {
    let key = &inner.key;
    let Some(due) = expected_inside(run, inner) else {
        return findings.add(run, format!("`{key}` was decided and no code asked for it"));
    };
    findings.ensure(inner.id == *key, run, || {
        format!("the decision about `{key}` names `{}`, not what was asked about", inner.id)
    });
    let asked = run.entries.iter().find_map(|(place, what)| match what {
        What::InnerAsked { parent, name, .. } if *parent == inner.outer && *name == *inner.name => {
            Some(*place)
        }
        _ => None,
    });
    let since = asked.unwrap_or_default();
    let matter = Matter { id: key, call: None, inner: Some(inner), since, decided: Some(&inner.decided) };
    compare(run, ledger, &matter, due, findings);
}

fn compare(run: &RunView<'_>, ledger: &Ledger, matter: &Matter<'_>, due: Expected, findings: &mut Findings) {
    let Matter { id, decided, .. } = matter;
    let asks = run.asks.get(*id).map(Vec::as_slice).unwrap_or_default();
    if !matches!(due, Expected::Asks(_)) {
        findings.ensure(asks.is_empty(), run, || format!("`{id}` was asked about needlessly"));
    }
    let due = match due {
        Expected::Unknown => return,
        Expected::Refused(kind) => Due::Refuse(kind),
        Expected::Free { arguments } => Due::Allow { arguments, by: By::Policy, edited: false },
        Expected::ByMode { arguments } => Due::Allow { arguments, by: By::Mode, edited: false },
        Expected::Asks(question) => {
            check_shown(run, matter, &question, asks, findings);
            due_by_answer(run, ledger, matter, &question, asks, findings)
        }
    };
    let Some(decided) = decided else { return };
    match (&*decided.decision, &due) {
        (Decision::Refuse(failure), _) if failure.kind == FailureKind::Limit => {}
        (Decision::Refuse(failure), Due::Refuse(kind)) if failure.kind == *kind => {}
        (Decision::Allow(permit), Due::Allow { arguments, by, edited }) => {
            check_permit(run, matter, permit, arguments, *edited, findings);
            findings.ensure(*by == by_of(permit), run, || {
                format!("`{id}` was allowed by {:?}, and {by:?} was due", permit.by)
            });
        }
        (decision, due) => {
            findings.add(run, format!("`{id}` was decided {decision:?}, and {due:?} was due"));
        }
    }
}

fn by_of(permit: &Permit) -> By {
    match permit.by {
        DecidedBy::Definition | DecidedBy::Rule => By::Policy,
        DecidedBy::Mode => By::Mode,
        DecidedBy::Grant(_) => By::Grant,
        DecidedBy::Approver => By::Approver,
    }
}

fn check_permit(
    run: &RunView<'_>,
    matter: &Matter<'_>,
    permit: &Permit,
    arguments: &str,
    edited: bool,
    findings: &mut Findings,
) {
    let id = matter.id;
    let text = canonical_text(permit.arguments.value());
    findings.ensure(text == arguments && permit.arguments.text() == text, run, || {
        format!("`{id}` was allowed with {text}, and {arguments} was due")
    });
    findings.ensure(permit.digest == permit.arguments.digest() && permit.edited == edited, run, || {
        format!("the permit of `{id}` contradicts itself: {permit:?}")
    });
    let mut judged = run.entries.iter().rev().filter_map(|(_, what)| match what {
        What::Assessed { key, arguments, precondition, .. }
            if key == id && *arguments == permit.arguments =>
        {
            Some(precondition)
        }
        _ => None,
    });
    // Tools judge their calls; calls of agents are judged by what they attach.
    let files = attached(permit.arguments.value());
    let seen = (!files.is_empty()).then(|| json!({ "attachments": files }));
    let precondition = judged.next().cloned().flatten().or(seen);
    findings.ensure(matter.inner.is_some() || permit.precondition == precondition, run, || {
        format!("`{id}` runs under {:?}, and was judged under {precondition:?}", permit.precondition)
    });
}

/// Compares what the approver was shown with the truth.
fn check_shown(
    run: &RunView<'_>,
    matter: &Matter<'_>,
    question: &Question,
    asks: &[Ask<'_>],
    findings: &mut Findings,
) {
    let id = matter.id;
    for (number, Ask { place, request, .. }) in asks.iter().enumerate() {
        let recorded = run.events.iter().filter(|(other, _)| other < place).any(|(_, event)| {
            let requested =
                matches!(&event.body, EventBody::ApprovalRequested(recorded) if **recorded == **request);
            requested && run.safe_before(*place) >= event.seq
        });
        findings.ensure(recorded, run, || format!("`{id}` was shown before the record had the question"));
        let offered = question.verdict.scopes.iter().filter(|scope| **scope != Scope::Exact);
        let offered = if question.verdict.protected { Vec::new() } else { offered.cloned().collect() };
        let subject = &question.subject;
        findings.ensure(request.arguments.text() == question.arguments, run, || {
            format!("`{id}` was shown as {}, and is {}", request.arguments.text(), question.arguments)
        });
        let named = request.agent == *subject.agent
            && request.name == *subject.name
            && request.toolset.as_deref() == subject.toolset.as_deref();
        findings.ensure(named, run, || format!("`{id}` was shown as {request:?}, and is {subject:?}"));
        findings.ensure(request.path == question.path, run, || {
            format!("`{id}` was shown at `{}`, and is at `{}`", request.path, question.path)
        });
        findings.ensure(request.scopes == offered, run, || {
            format!("`{id}` was shown with {:?} to grant, and has {offered:?}", request.scopes)
        });
        findings.ensure(request.edit_problem.is_some() == (number > 0), run, || {
            format!("`{id}` was shown for the {number}. time with {:?}", request.edit_problem)
        });
    }
}

/// What is due after what the approver answered, or did not.
fn due_by_answer(
    run: &RunView<'_>,
    ledger: &Ledger,
    matter: &Matter<'_>,
    question: &Question,
    asks: &[Ask<'_>],
    findings: &mut Findings,
) -> Due {
    let id = matter.id;
    let end = matter.decided.map_or(usize::MAX, |decided| decided.place);
    findings.ensure(asks.is_empty() || !ledger.must_cover(question, matter.since), run, || {
        format!("`{id}` was asked about although a grant covers it")
    });
    for (number, ask) in asks.iter().enumerate().take(asks.len().saturating_sub(1)) {
        let spoiled =
            matches!(ask.answer, Some((_, Some(Answer::Edit(value)))) if edit(run, matter, value).is_none());
        findings.ensure(spoiled, run, || format!("`{id}` was asked about again after an answer"));
        // The old arguments are judged anew before they are asked about again.
        findings.ensure(!is_blocked(run, matter, question, number + 1), run, || {
            format!("`{id}` was asked about again although it is blocked by now")
        });
    }
    let by_grant = || Due::Allow { arguments: question.arguments.clone(), by: By::Grant, edited: false };
    let by_approver =
        || Due::Allow { arguments: question.arguments.clone(), by: By::Approver, edited: false };
    let was_granted = matter.decided.is_some_and(
        |decided| matches!(&*decided.decision, Decision::Allow(permit) if by_of(permit) == By::Grant),
    );
    let covered = was_granted && ledger.may_cover(question, matter.since, end);
    let Some(last) = asks.last() else {
        return match run.plan.approver {
            _ if covered => by_grant(),
            None if !ledger.must_cover(question, matter.since) => Due::Refuse(FailureKind::Unasked),
            // On a busy machine the time may be over before the approver is reached.
            Some(_) if run.case.approver_limit.is_some() => Due::Refuse(FailureKind::Denied),
            _ => Due::Nothing,
        };
    };
    match last.answer {
        None if covered => by_grant(),
        None if run.case.approver_limit.is_some() => Due::Refuse(FailureKind::Denied),
        // The approver of these cases revises nothing.
        None | Some((_, Some(Answer::Stop | Answer::Park | Answer::Revise(_)))) => Due::Nothing,
        Some((_, None | Some(Answer::Deny(_)))) => Due::Refuse(FailureKind::Denied),
        Some((_, Some(Answer::Once))) => by_approver(),
        Some((_, Some(Answer::Session(scope)))) if is_grantable(question, scope) => by_approver(),
        Some((_, Some(Answer::Session(_)))) => Due::Refuse(FailureKind::Denied),
        Some((_, Some(Answer::Edit(value)))) => match edit(run, matter, value) {
            Some(value) => due_by_edit(run, matter, asks.len(), value),
            // The old arguments are judged anew before they are asked about again.
            None if covered => by_grant(),
            None if is_blocked(run, matter, question, asks.len()) => Due::Refuse(FailureKind::Blocked),
            None => Due::Nothing,
        },
    }
}

/// Edited arguments, completed; nothing where they do not fit.
fn edit(run: &RunView<'_>, matter: &Matter<'_>, value: &Value) -> Option<Value> {
    match matter.call {
        Some(call) => run.target(call).and_then(|target| completed(&target, call, value)),
        None => Some(value.clone()),
    }
}

/// Edited arguments are judged again; a block refuses them, otherwise the person has answered.
fn due_by_edit(run: &RunView<'_>, matter: &Matter<'_>, earlier: usize, value: Value) -> Due {
    if judged_blocked(run, matter, &value, earlier) {
        return Due::Refuse(FailureKind::Blocked);
    }
    Due::Allow { arguments: canonical_text(&value), by: By::Approver, edited: true }
}

fn is_blocked(run: &RunView<'_>, matter: &Matter<'_>, question: &Question, earlier: usize) -> bool {
    let value: Value = serde_json::from_str(&question.arguments).unwrap_or_default();
    judged_blocked(run, matter, &value, earlier)
}

fn judged_blocked(run: &RunView<'_>, matter: &Matter<'_>, value: &Value, earlier: usize) -> bool {
    let Some(call) = matter.call else { return false };
    let Some(target) = run.target(call) else { return true };
    let verdict = verdict(run, call, &target, value, earlier);
    verdict.is_none_or(|verdict| verdict.approval == Approval::Blocked)
}

/// Counts calls against the limits of the run and of each agent call.
fn check_counted(run: &RunView<'_>, findings: &mut Findings) {
    let limit = run.plan.limits.tool_calls.or(run.case.limits.tool_calls);
    let top = [(Key::root(), limit, "the run".to_owned())];
    let agents = run.calls.iter().filter_map(|call| match run.target(call)? {
        Target::Agent(agent) => {
            Some((call.key().clone(), agent.limits.tool_calls, format!("agent `{}`", agent.name)))
        }
        _ => None,
    });
    let ceilings: Vec<(Key, u64, u64)> = top
        .into_iter()
        .chain(agents)
        .filter_map(|(key, limit, owner)| Some((key, limit?, extended(run, &owner))))
        .collect();
    let counts: Vec<(u64, u64)> = ceilings.iter().map(|(key, ..)| count(run, key)).collect();
    for ((key, limit, more), (counted, _)) in ceilings.iter().zip(&counts) {
        findings.ensure(*counted <= limit + more, run, || {
            format!("{counted} calls passed below `{key}`, and {limit} and {more} more are permitted")
        });
    }
    for call in run.calls.iter().filter(|call| is_refused_by_limit(call)) {
        let reason = ceilings
            .iter()
            .zip(&counts)
            .any(|((key, limit, _), (counted, open))| is_below(run, call, key) && counted + open >= *limit);
        findings
            .ensure(reason, run, || format!("`{}` was refused by a limit that was not reached", call.key()));
    }
}

fn extended(run: &RunView<'_>, owner: &str) -> u64 {
    let extended = run.entries.iter().filter_map(|(_, what)| match what {
        What::Extended { owner: other, by } if other == owner => Some(*by),
        _ => None,
    });
    extended.sum()
}

/// Counts the calls below an agent call that were counted for sure, and those that may have been.
fn count(run: &RunView<'_>, ceiling: &Key) -> (u64, u64) {
    let (mut counted, mut open) = (0, 0);
    for call in run.calls.iter().filter(|call| is_below(run, call, ceiling)) {
        let too_deep =
            matches!(expected(run, call), Expected::Unknown | Expected::Refused(FailureKind::Depth));
        match call.decided.first() {
            _ if too_deep || call.origin == CallOrigin::Embedder || is_refused_by_limit(call) => {}
            Some(_) => counted += 1,
            None => open += 1,
        }
    }
    (counted, open)
}

fn is_refused_by_limit(call: &CallView) -> bool {
    call.decided.iter().any(
        |decided| matches!(&*decided.decision, Decision::Refuse(failure) if failure.kind == FailureKind::Limit),
    )
}

fn is_below(run: &RunView<'_>, call: &CallView, ceiling: &Key) -> bool {
    *ceiling == Key::root() || run.standing(&call.parent).agents.contains(ceiling)
}
