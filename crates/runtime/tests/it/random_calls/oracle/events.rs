//! Checks the shape of the record: order, brackets, paths.

use std::collections::HashSet;

use llm_do_core::{CallKind, Event, EventBody, Key};

use super::Findings;
use super::view::{CallView, RunView};
use crate::random_calls::journal::What;
use crate::random_calls::plan::Target;

/// Checks the events of a run.
pub(crate) fn check(run: &RunView<'_>, findings: &mut Findings) {
    check_numbers(run, findings);
    for (_, what) in &run.entries {
        if let What::Abandoned(number) = what {
            findings.add(run, format!("nobody waited any more for event {number}, a barrier"));
        }
    }
    check_brackets(run, findings);
    for (_, event) in &run.events {
        check_info(run, event, findings);
    }
    for call in &run.calls {
        check_broken_off(run, call, findings);
    }
}

/// Numbers are gapless, the run begins first and ends last.
fn check_numbers(run: &RunView<'_>, findings: &mut Findings) {
    for (number, (_, event)) in run.events.iter().enumerate() {
        findings.ensure(event.seq == Some(number as u64), run, || {
            format!("event {number} has the number {:?}", event.seq)
        });
        let is_first = matches!(event.body, EventBody::RunStarted { .. });
        findings.ensure(is_first == (number == 0), run, || format!("event {number} is {:?}", event.body));
        let is_last = matches!(event.body, EventBody::RunFinished { .. });
        let last = number + 1 == run.events.len();
        findings.ensure(is_last == last || (last && run.record_broke), run, || {
            format!("event {number} of {} is {:?}", run.events.len(), event.body)
        });
    }
}

/// A call starts once, after its caller, and nothing of it or below it comes after its end.
fn check_brackets(run: &RunView<'_>, findings: &mut Findings) {
    let mut started: HashSet<&Key> = HashSet::new();
    let mut finished: HashSet<&str> = HashSet::new();
    for (_, event) in &run.events {
        let id = &event.call.id;
        let is_start = matches!(event.body, EventBody::CallStarted { .. });
        if is_start {
            findings.ensure(started.insert(id), run, || format!("`{id}` started twice"));
        }
        let known = |key: &Key| *key == Key::root() || started.contains(key);
        findings.ensure(known(id), run, || format!("`{id}` has events before its start"));
        if let Some(parent) = &event.call.parent {
            findings.ensure(known(parent), run, || format!("`{id}` has events before `{parent}` started"));
        }
        let ended = ancestors(id).find(|key| finished.contains(key.as_str()));
        findings.ensure(ended.is_none(), run, || {
            format!("`{id}` has {:?} after the end of `{}`", event.body, ended.unwrap_or_default())
        });
        if matches!(event.body, EventBody::CallFinished { .. }) {
            finished.insert(id.as_str());
        }
    }
}

/// All beginnings of a key, the key itself included.
fn ancestors(key: &Key) -> impl Iterator<Item = String> + '_ {
    let ends = key.match_indices('/').map(|(end, _)| end).chain([key.len()]);
    ends.map(|end| key[..end].to_owned())
}

/// Every event has the path, the depth, the agent and a key of its call.
fn check_info(run: &RunView<'_>, event: &Event, findings: &mut Findings) {
    let info = &event.call;
    let standing = run.standing(&info.id);
    let agent = standing.agent_name();
    let right = *info.path == *standing.path && info.depth == standing.depth && info.agent == *agent;
    findings.ensure(right, run, || {
        let (path, depth) = (&standing.path, standing.depth);
        format!("an event of `{}` has {info:?}, and `{path}` at depth {depth} of `{agent}` was due", info.id)
    });
    let below = info.id == Key::root() || ancestors(&event.key).any(|key| key == info.id.as_str());
    findings.ensure(below, run, || format!("an event of `{}` has the key `{}`", info.id, event.key));
    if let Some(call) = run.call(&info.id) {
        findings.ensure(info.parent.as_ref() == Some(&call.parent), run, || {
            format!("events of `{}` disagree about its caller", info.id)
        });
        let kind = match run.target(call) {
            Some(Target::Agent(_)) => CallKind::Agent,
            Some(Target::Tool(_)) => CallKind::Tool,
            Some(Target::Entry) => CallKind::Entry,
            None => CallKind::Unknown,
        };
        findings.ensure(call.kind == kind, run, || {
            format!("`{}` is recorded as {:?}, and is {kind:?}", info.id, call.kind)
        });
    }
}

/// A call without an end was broken off by the end of the run, by code that gave it up, or by the time
/// limit of an agent above it.
fn check_broken_off(run: &RunView<'_>, call: &CallView, findings: &mut Findings) {
    findings.ensure(call.finished.len() <= 1, run, || format!("`{}` ended twice", call.key()));
    if !call.finished.is_empty() || run.was_halted() || run.record_broke {
        return;
    }
    let given_up = run.chain(call).any(|call| is_given_up(run, call) || call.timed_out());
    findings.ensure(given_up, run, || format!("`{}` has no end, and nobody gave it up", call.key()));
}

/// Returns whether code asked for more calls like this one than it got answers, or has ended itself meanwhile.
fn is_given_up(run: &RunView<'_>, call: &CallView) -> bool {
    let same = |parent: &Key, name: &str, input: &llm_do_core::Payload| {
        *parent == call.parent && *name == *call.name && *input == call.input
    };
    let count = |wanted: fn(&What) -> Option<(&Key, &str, &llm_do_core::Payload)>| {
        let hits = run.entries.iter().filter_map(|(_, what)| wanted(what));
        hits.filter(|(parent, name, input)| same(parent, name, input)).count()
    };
    let asked = count(|what| match what {
        What::CodeAsked { parent, name, input, .. } => Some((parent, name, input)),
        _ => None,
    });
    let answered = count(|what| match what {
        What::CodeAnswered { parent, name, input, .. } => Some((parent, name, input)),
        _ => None,
    });
    let strays = count(|what| match what {
        What::CodeAsked { parent, name, input, stray: true } => Some((parent, name, input)),
        _ => None,
    });
    asked > answered || strays > 0
}
