//! How long a call ran before this process, from the times of recorded events.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use llm_do_core::{Event, EventBody, Key};

/// Returns how long a call and everything below it worked, as far as a record shows it: while a model was asked or code ran. What waits
/// for a person does not run, and code that waits for calls of its own runs as long as they do.
pub(crate) fn running_time(events: &[Arc<Event>], call: &Key) -> Duration {
    let mut spans = Spans::default();
    let mut last = None;
    for event in events {
        if let EventBody::RunResumed { .. } = event.body {
            spans.break_off(last);
        }
        if event.call.id.is_within(call) {
            spans.add(event);
        }
        last = Some(event.time);
    }
    spans.break_off(last);
    union(spans.ended)
}

/// The stretches of time in which something ran.
#[derive(Default)]
struct Spans {
    ended: Vec<(Timestamp, Timestamp)>,
    /// The steps that have begun and not ended. One that waits for others has no time.
    open: HashMap<Key, Option<Timestamp>>,
    /// The calls that each call has made and that have not ended, over restarts.
    calls: HashMap<Key, BTreeSet<Key>>,
    /// The questions that each call has put and that nobody has answered.
    questions: HashMap<Key, BTreeSet<Key>>,
}

impl Spans {
    fn add(&mut self, event: &Event) {
        let (key, call, time) = (&event.key, &event.call.id, event.time);
        match &event.body {
            EventBody::ModelRequest { .. } => drop(self.open.insert(key.clone(), Some(time))),
            EventBody::ModelResponse { .. } => self.end(key, time),
            EventBody::CallExecuting { .. } => {
                self.open.insert(key.clone(), None);
                self.adjust(key, time);
            }
            EventBody::CallStarted { .. } => {
                if let Some(parent) = &event.call.parent {
                    self.calls.entry(parent.clone()).or_default().insert(call.clone());
                    self.adjust(parent, time);
                }
            }
            EventBody::CallFinished { .. } => {
                self.end(key, time);
                if let Some(parent) = &event.call.parent {
                    self.calls.entry(parent.clone()).or_default().remove(call);
                    self.adjust(parent, time);
                }
            }
            EventBody::ApprovalRequested(request) => {
                self.questions.entry(call.clone()).or_default().insert(request.id.clone());
                self.adjust(call, time);
            }
            EventBody::ApprovalDecided { id, .. } => {
                self.questions.entry(call.clone()).or_default().remove(id);
                self.adjust(call, time);
            }
            _ => {}
        }
    }

    /// Stops or starts the time of a call's own code.
    fn adjust(&mut self, call: &Key, time: Timestamp) {
        let is_empty =
            |waiting: &HashMap<Key, BTreeSet<Key>>| waiting.get(call).is_none_or(BTreeSet::is_empty);
        let runs = is_empty(&self.calls) && is_empty(&self.questions);
        let Some(since) = self.open.get_mut(call) else { return };
        match (*since, runs) {
            (Some(began), false) => {
                self.ended.push((began, time));
                *since = None;
            }
            (None, true) => *since = Some(time),
            _ => {}
        }
    }

    fn end(&mut self, step: &Key, time: Timestamp) {
        if let Some(Some(began)) = self.open.remove(step) {
            self.ended.push((began, time));
        }
    }

    /// Ends everything with the last event of its process.
    fn break_off(&mut self, last: Option<Timestamp>) {
        let open = self.open.drain().filter_map(|(_, since)| since);
        self.ended.extend(open.zip(last.into_iter().cycle()));
        self.questions.clear();
    }
}

/// The length of all spans together; where they overlap, once.
fn union(mut spans: Vec<(Timestamp, Timestamp)>) -> Duration {
    spans.sort_unstable();
    let mut whole = Duration::ZERO;
    let mut counted: Option<Timestamp> = None;
    for (began, ended) in spans {
        let began = counted.map_or(began, |counted| began.max(counted));
        // A clock that was set back gives nothing.
        whole += Duration::try_from(ended.duration_since(began)).unwrap_or_default();
        counted = Some(counted.map_or(ended, |counted| ended.max(counted)));
    }
    whole
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use llm_do_core::{CallInfo, CallKind, CallResult, Digest, Effect, Output, ProjectChanges, RunId, Usage};

    use super::*;

    fn event(call: &str, seconds: i64, body: EventBody) -> Arc<Event> {
        let info = CallInfo {
            run: RunId(uuid::Uuid::nil()),
            id: Key::from(call),
            parent: Some(Key::from("1")),
            depth: 1,
            path: call.into(),
            agent: "main".into(),
        };
        let time = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        Arc::new(Event { seq: None, key: Key::from(call), time, call: Arc::new(info), body })
    }

    #[test]
    fn processes_add_up_and_what_runs_side_by_side_counts_once() {
        let executing = || EventBody::CallExecuting { permit: Digest::hash("x"), effect: Effect::Pure };
        let finished = || EventBody::CallFinished {
            kind: CallKind::Tool,
            name: "look".into(),
            result: CallResult::Output(Output::text("seen")),
            duration_ms: 0,
            ran_ms: None,
            usage: Usage::default(),
        };
        let resumed = EventBody::RunResumed {
            changed: false,
            changes: ProjectChanges::default(),
            state: Box::default(),
            build: String::new(),
            limits: None,
        };
        let events = [
            event("1/a", 0, executing()),
            // The last event of the first process.
            event("1/a", 4, EventBody::Stderr { text: "x".to_owned() }),
            event("", 100, resumed),
            event("1/a", 100, executing()),
            event("1/b", 102, executing()),
            event("1/a", 106, finished()),
            event("1/b", 108, finished()),
        ];
        let seconds = |call: &str| running_time(&events, &Key::from(call)).as_secs();
        assert_eq!((seconds("1"), seconds("1/a"), seconds("1/b"), seconds("2")), (12, 10, 6, 0));
    }
}
