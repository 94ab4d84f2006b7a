//! What a record must say of a run that was interrupted, however it was.

use std::path::Path;
use std::sync::Arc;

use llm_do_core::{Effect, Event, EventBody, ModelResult};

/// The answers of models that a record has.
pub(crate) fn responses(events: &[Arc<Event>]) -> usize {
    let is_response = |event: &&Arc<Event>| {
        matches!(&event.body, EventBody::ModelResponse { result: ModelResult::Response(_), .. })
    };
    events.iter().filter(is_response).count()
}

/// Nothing has happened that the record does not announce.
pub(crate) fn check_announced(events: &[Arc<Event>], effects: &[String], requests: usize, context: &str) {
    for effect in effects {
        let key = effect.split(' ').nth(1).unwrap();
        let is_intent = |event: &Arc<Event>| {
            event.call.id == key && matches!(event.body, EventBody::CallExecuting { .. })
        };
        assert!(events.iter().any(is_intent), "{context}: `{effect}` is not announced");
    }
    let announced =
        events.iter().filter(|event| matches!(event.body, EventBody::ModelRequest { .. })).count();
    assert!(requests <= announced, "{context}: {requests} requests, {announced} announced");
}

/// What was answered is not asked again.
pub(crate) fn check_questions(earlier: &[Arc<Event>], asked: &[String], context: &str) {
    for question in asked {
        let id = question.split(' ').next().unwrap();
        let is_answer = |event: &Arc<Event>| matches!(&event.body, EventBody::ApprovalDecided { id: decided, .. } if decided.as_str() == id);
        assert!(!earlier.iter().any(is_answer), "{context}: `{question}` had its answer");
    }
}

/// The file is sound, and what is derived from events agrees with them.
pub(crate) fn check_whole(record: &Path, context: &str) {
    if !record.exists() {
        return;
    }
    let connection = rusqlite::Connection::open(record).unwrap();
    let text = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(text("PRAGMA quick_check"), "ok", "{context}");
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    if number("SELECT count(*) FROM sqlite_schema WHERE name = 'streams'") == 0 {
        return;
    }
    for (wrong, sql) in WRONG {
        assert_eq!(number(sql), 0, "{context}: {wrong}");
    }
}

/// Queries that count what does not agree.
const WRONG: &[(&str, &str)] = &[
    (
        "streams with gaps or a wrong end",
        "SELECT count(*) FROM streams WHERE next_seq != (SELECT count(*) FROM events WHERE stream = streams.id)
            OR next_seq != 1 + (SELECT coalesce(max(seq), -1) FROM events WHERE stream = streams.id)",
    ),
    (
        "events of calls that are missing",
        "SELECT count(*) FROM events WHERE NOT EXISTS
            (SELECT 1 FROM calls WHERE calls.stream = events.stream AND calls.id = events.call)",
    ),
    ("references to values that are missing", "SELECT count(*) FROM refs WHERE digest NOT IN (SELECT digest FROM blobs)"),
    (
        "usage that does not add up",
        "SELECT count(*) FROM streams WHERE tokens_in != (SELECT coalesce(sum(input), 0) FROM usage WHERE stream = streams.id)",
    ),
];

/// What has its end is not begun again.
pub(crate) fn check_order(events: &[Arc<Event>], context: &str) {
    for (index, event) in events.iter().enumerate() {
        let earlier = || events[..index].iter().filter(|other| other.key == event.key);
        let is_repeated = match &event.body {
            EventBody::ModelRequest { .. } => earlier().any(|other| {
                matches!(other.body, EventBody::ModelResponse { result: ModelResult::Response(_), .. })
            }),
            EventBody::ApprovalRequested(_) => {
                earlier().any(|other| matches!(other.body, EventBody::ApprovalDecided { .. }))
            }
            EventBody::CallFinished { .. } => {
                earlier().any(|other| matches!(other.body, EventBody::CallFinished { .. }))
            }
            EventBody::CallExecuting { effect: Effect::Once, .. } => earlier()
                .rfind(|other| {
                    matches!(other.body, EventBody::CallExecuting { .. } | EventBody::OutcomeSettled { .. })
                })
                .is_some_and(|other| matches!(other.body, EventBody::CallExecuting { .. })),
            _ => false,
        };
        assert!(!is_repeated, "{context}: event {index} repeats what was done: {event:?}");
    }
}
