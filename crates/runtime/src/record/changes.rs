//! What is different from the time when a recorded run was last started or continued.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use llm_do_core::{ChangeKind, Event, EventBody, Key, Name, ProjectChanges, ProjectState};

use crate::project::{Linked, Project};

/// The version that the record names as the one that wrote it.
pub(crate) const BUILD: &str = env!("CARGO_PKG_VERSION");

/// Returns the project with which a run was last started or continued; none if its record does not say when it began.
pub fn recorded_state(events: &[Arc<Event>]) -> Option<ProjectState> {
    events.iter().rev().find_map(|event| match &event.body {
        EventBody::RunStarted(start) => Some(start.state()),
        // Older records do not say with what a run was continued.
        EventBody::RunResumed { state, .. } => state.pin.is_some().then(|| ProjectState::clone(state)),
        _ => None,
    })
}

/// Returns which agents and tools of a project are different from the time when a recorded run was last started or
/// continued. Files and directories are not compared.
pub fn changed_parts(events: &[Arc<Event>], project: &Project) -> ProjectChanges {
    let linked = project.linked();
    let parts = linked.pinned.clone();
    let now = ProjectState { pin: Some(linked.pin), parts, ..ProjectState::default() };
    changes_since(events, &now, linked)
}

/// Compares a record with the project and the program of today, but for the files.
pub(crate) fn changes_since(events: &[Arc<Event>], now: &ProjectState, project: &Linked) -> ProjectChanges {
    let Some(earlier) = recorded_state(events) else { return ProjectChanges::default() };
    let mut changes = ProjectChanges::between(&earlier, now);
    changes.earlier_build = last_build(events).filter(|earlier| *earlier != BUILD).map(str::to_owned);
    changes.used_once = used_once(events, &changes.tools, project);
    changes
}

fn last_build(events: &[Arc<Event>]) -> Option<&str> {
    let build = events.iter().rev().find_map(|event| match &event.body {
        EventBody::RunStarted(start) => Some(&start.build),
        EventBody::RunResumed { build, .. } => Some(build),
        _ => None,
    });
    build.map(String::as_str).filter(|build| !build.is_empty())
}

/// Returns those of the changed tools that a run has called and that must happen at most once.
fn used_once(
    events: &[Arc<Event>],
    changed: &BTreeMap<Name, ChangeKind>,
    project: &Linked,
) -> BTreeSet<Name> {
    if changed.is_empty() {
        return BTreeSet::new();
    }
    let mut started: HashMap<&Key, &Name> = HashMap::new();
    let mut used = BTreeSet::new();
    for event in events {
        match &event.body {
            EventBody::CallStarted { name, .. } => drop(started.insert(&event.call.id, name)),
            EventBody::CallExecuting { effect, .. } if !effect.may_repeat() => {
                let name = started.get(&event.call.id);
                used.extend(name.and_then(|name| changed_tool(name, &event.call.agent, changed, project)));
            }
            _ => {}
        }
    }
    used
}

/// Returns the changed tool that an agent called by a name.
fn changed_tool(
    called: &Name,
    agent: &Name,
    changed: &BTreeMap<Name, ChangeKind>,
    project: &Linked,
) -> Option<Name> {
    let plan = project.agents.get(agent).unwrap_or(&project.root);
    match plan.target_for_code(called) {
        Some(target) => Some(target.part_name()).filter(|name| changed.contains_key(name)),
        // The tool is gone: all that is left of it is its name.
        None => changed.keys().find(|name| name.rsplit('.').next() == Some(called.as_str())).cloned(),
    }
}
