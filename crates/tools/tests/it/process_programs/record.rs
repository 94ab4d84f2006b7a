//! What the events of a run must say.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use llm_do_core::{CallKind, Conversation, Event, EventBody, Head, Key, Status};

/// Finds what is wrong with the events of a run: gaps, brackets, depth, and histories that nobody was sent.
pub(crate) fn problems(
    events: &[Arc<Event>],
    status: Status,
    depth: u32,
    heads: &HashSet<Head>,
) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, event) in events.iter().enumerate() {
        if event.seq != Some(index as u64) {
            problems.push(format!("event {index} has the number {:?}", event.seq));
        }
    }
    let ends = |event: &Arc<Event>| matches!(event.body, EventBody::RunFinished { .. });
    if events.iter().filter(|event| ends(event)).count() != 1 || !events.last().is_some_and(ends) {
        problems.push("the run does not end with its end".to_owned());
    }
    problems.extend(brackets(events, status));
    problems.extend(histories(events, heads));
    let too_deep = |event: &&Arc<Event>| {
        matches!(event.body, EventBody::ModelRequest { .. }) && event.call.depth > depth
    };
    problems.extend(events.iter().find(too_deep).map(|event| format!("{} is too deep", event.key)));
    problems
}

/// Every call that began ends once. What a halt of the run broke off has no end.
fn brackets(events: &[Arc<Event>], status: Status) -> Vec<String> {
    let mut calls: HashMap<&Key, (u32, u32)> = HashMap::new();
    for event in events {
        match &event.body {
            EventBody::CallStarted { .. } => calls.entry(&event.key).or_default().0 += 1,
            EventBody::CallFinished { .. } => calls.entry(&event.key).or_default().1 += 1,
            _ => {}
        }
    }
    let may_break_off = matches!(status, Status::Interrupted | Status::Limit);
    let is_wrong =
        |(started, finished): (u32, u32)| started != 1 || finished > 1 || finished == 0 && !may_break_off;
    let wrong = calls.into_iter().filter(|(_, counts)| is_wrong(*counts));
    wrong.map(|(key, counts)| format!("{key} began and ended {counts:?} times")).collect()
}

/// Tells the conversations from the events alone, as a reader does.
fn histories(events: &[Arc<Event>], heads: &HashSet<Head>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut told: HashMap<Key, Conversation> = HashMap::new();
    let mut parents: HashMap<Key, Key> = HashMap::new();
    let mut agents: HashSet<Key> = HashSet::new();
    for event in events {
        match &event.body {
            EventBody::CallStarted { kind, .. } => {
                parents.extend(event.call.parent.clone().map(|parent| (event.call.id.clone(), parent)));
                if *kind == CallKind::Agent {
                    agents.insert(event.call.id.clone());
                }
            }
            EventBody::ModelRequest { messages, kept, head, .. } => {
                let id = &event.call.id;
                // A request whose answer was lost is made again, and tells the same once more.
                if told.get(id).is_some_and(|conversation| conversation.head() == *head) {
                    continue;
                }
                let above = std::iter::successors(parents.get(id), |key| parents.get(*key));
                let parent = above.into_iter().find(|key| agents.contains(*key));
                let before =
                    told.get(id).or_else(|| parent.filter(|_| kept.is_some()).and_then(|key| told.get(key)));
                let mut conversation = before.cloned().unwrap_or_default();
                if let Some(kept) = kept {
                    conversation.truncate(*kept);
                }
                messages.iter().for_each(|message| conversation.push(message.clone()));
                if conversation.head() != *head {
                    problems.push(format!("the events before {} tell another conversation", event.key));
                }
                if !heads.contains(head) {
                    problems.push(format!("nobody was sent what {} tells", event.key));
                }
                told.insert(id.clone(), conversation);
            }
            _ => {}
        }
    }
    problems
}
