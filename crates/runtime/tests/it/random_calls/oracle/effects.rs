//! Compares what really happened with what the record allowed before it happened.

use std::collections::{HashMap, HashSet};

use llm_do_core::{Decision, FailureKind, Key, Permit, canonical_text};

use super::Findings;
use super::view::{Act, CallView, Decided, RunView};
use crate::random_calls::journal::What;
use crate::random_calls::plan::{Conduct, ENTRY, Target};

/// Checks all effects of a run.
pub(crate) fn check(run: &RunView<'_>, findings: &mut Findings) {
    let mut seen: HashSet<&Key> = HashSet::new();
    let mut used: HashSet<&Key> = HashSet::new();
    for act in &run.acts {
        let text = canonical_text(&act.seen.arguments);
        findings.ensure(text == act.acted.received.text(), run, || {
            format!("`{}` acted with {text}, and received {}", act.seen.key, act.acted.received.text())
        });
        if act.acted.inner {
            check_inner(run, act, &mut used, findings);
        } else {
            findings.ensure(seen.insert(&act.seen.key), run, || {
                format!("`{}` acted more than once", act.seen.key)
            });
            check_act(run, act, findings);
        }
    }
    for call in &run.calls {
        check_done(run, call, seen.contains(call.key()), findings);
    }
    check_instances(run, findings);
}

fn check_act(run: &RunView<'_>, act: &Act<'_>, findings: &mut Findings) {
    let key = &act.seen.key;
    let Some(call) = run.call(key) else {
        return findings.add(run, format!("`{}` acted without a call: {key}", act.seen.name));
    };
    let named = match run.target(call) {
        Some(Target::Tool(tool)) => tool.name == act.seen.name,
        Some(Target::Entry) => act.seen.name == ENTRY,
        Some(Target::Agent(_)) | None => false,
    };
    findings.ensure(named, run, || format!("`{key}` calls `{}` and `{}` acted", call.name, act.seen.name));
    let Some((decided, permit)) = allowed(call.decided.first(), act.place) else {
        return findings.add(run, format!("`{key}` acted and was not allowed before: {}", act.seen.name));
    };
    let Some(executing) = call.executing.first().filter(|executing| executing.place < act.place) else {
        return findings.add(run, format!("`{key}` acted before the record said so"));
    };
    findings.ensure(call.executing.len() == 1 && decided.seq < executing.seq, run, || {
        format!("`{key}` was not decided, then begun, then done")
    });
    findings.ensure(run.safe_before(act.place) >= Some(executing.seq), run, || {
        format!("`{key}` acted before its permit was safe in the record")
    });
    let same = permit.arguments.text() == act.acted.received.text()
        && permit.digest == act.acted.received.digest()
        && permit.digest == executing.permit;
    findings.ensure(same, run, || {
        let received = act.acted.received.text();
        format!("`{key}` acted with {received}, and {} was allowed", permit.arguments.text())
    });
    findings.ensure(permit.precondition == act.acted.precondition, run, || {
        format!("`{key}` acted under {:?}, and {:?} was judged", act.acted.precondition, permit.precondition)
    });
    let ended = call.finished.first().is_some_and(|(place, _)| *place < act.place);
    findings.ensure(act.acted.blocking || !ended, run, || format!("`{key}` acted after its call had ended"));
}

/// The permit of a decision that was recorded before a place.
fn allowed(decided: Option<&Decided>, before: usize) -> Option<(&Decided, &Permit)> {
    let decided = decided.filter(|decided| decided.place < before)?;
    match &*decided.decision {
        Decision::Allow(permit) => Some((decided, permit)),
        Decision::Refuse(_) => None,
    }
}

/// Each inner effect uses up one decision of its own, which must be safe before it.
fn check_inner<'v>(
    run: &'v RunView<'_>,
    act: &Act<'_>,
    used: &mut HashSet<&'v Key>,
    findings: &mut Findings,
) {
    let (key, name) = (&act.seen.key, &act.seen.name);
    let safe = run.safe_before(act.place);
    let decisions = run.inner.iter().filter(|inner| inner.outer == *key && inner.name == *name);
    let mut fitting = decisions.filter(|inner| {
        allowed(Some(&inner.decided), act.place)
            .is_some_and(|(_, permit)| permit.arguments.text() == act.acted.received.text())
    });
    let Some(found) = fitting.find(|inner| !used.contains(&inner.key)) else {
        return findings.add(run, format!("`{key}` did `{name}` inside, which was not allowed before"));
    };
    used.insert(&found.key);
    findings.ensure(safe >= Some(found.decided.seq), run, || {
        format!("`{key}` did `{name}` inside before its permit was safe in the record")
    });
}

/// A call that was allowed and ended has acted; one that was refused has not.
fn check_done(run: &RunView<'_>, call: &CallView, acted: bool, findings: &mut Findings) {
    let Some(target) = run.target(call) else { return };
    let is_agent = matches!(target, Target::Agent(_));
    let permitted = allowed(call.decided.first(), usize::MAX).is_some();
    findings.ensure(permitted || call.executing.is_empty(), run, || {
        format!("`{}` was begun and not allowed", call.key())
    });
    let ended_by_itself = !call.finished.is_empty()
        && !matches!(call.failure(), Some(FailureKind::TimedOut | FailureKind::Toolset));
    findings.ensure(is_agent || acted || !permitted || !ended_by_itself, run, || {
        format!("`{}` was allowed and has ended, and never acted", call.key())
    });
    let hangs = matches!(target, Target::Tool(tool) if tool.conduct == Conduct::Hangs);
    let done = call.finished.is_empty()
        || call.timed_out()
        || !permitted
        || call.failure() == Some(FailureKind::Toolset);
    findings.ensure(!hangs || done, run, || format!("`{}` never ends and ended", call.key()));
}

/// An instance belongs to one agent call, or to the root; its tools act while it is open.
fn check_instances(run: &RunView<'_>, findings: &mut Findings) {
    let mut opened: HashMap<usize, (usize, &Key, &String)> = HashMap::new();
    let mut closed: HashMap<usize, usize> = HashMap::new();
    for (place, what) in &run.entries {
        match what {
            What::Opened { instance, toolset, opener } => {
                opened.insert(*instance, (*place, opener, toolset));
            }
            What::Closed { instance } => {
                let known = opened.contains_key(instance);
                findings.ensure(known && closed.insert(*instance, *place).is_none(), run, || {
                    format!("instance {instance} was closed twice or never opened")
                });
            }
            _ => {}
        }
    }
    let end = run.events.last().map_or(0, |(place, _)| *place);
    for (instance, (_, opener, toolset)) in &opened {
        // An instance that comes after its call was cancelled is closed as soon as it comes.
        let is_cancelled = match run.call(opener) {
            Some(call) => call.finished.is_empty() || call.timed_out(),
            None => run.calls.iter().any(|call| call.finished.is_empty()),
        };
        let late = run.record_broke || run.was_halted() || is_cancelled;
        findings.ensure(closed.get(instance).is_some_and(|place| late || *place < end), run, || {
            format!("instance {instance} of `{toolset}`, opened for `{opener}`, was not closed with its run")
        });
    }
    for act in &run.acts {
        let Some(instance) = act.acted.instance else { continue };
        let root = Key::root();
        let caller = run.call(&act.seen.key).map(|call| run.standing(&call.parent));
        let owner = caller.and_then(|caller| caller.agents.last().cloned()).unwrap_or(root);
        let is_open = opened.get(&instance).is_some_and(|(place, opener, _)| {
            let still = closed.get(&instance).is_none_or(|closed| act.place < *closed);
            *place < act.place && **opener == owner && (still || act.acted.blocking)
        });
        findings.ensure(is_open, run, || {
            format!("`{}` acted in instance {instance}, which is not an open one of `{owner}`", act.seen.key)
        });
    }
}
