//! Events, read back as they were written: also those of a newer version.

use std::sync::Arc;

use jiff::Timestamp;
use llm_do_core::{CallInfo, Digest, Event, EventBody, Key, RunId};
use llm_do_runtime::StoreError;
use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::{Map, Value};

use crate::call_rows::calls_of;
use crate::error::{corrupt, from_sqlite};
use crate::values::unpack;

/// An event of a record.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RecordedEvent {
    /// One that this version knows.
    Known(Arc<Event>),
    /// One that only a newer version knows.
    Unknown(UnknownEvent),
}

/// An event that only a newer version knows: its number, and its JSON as it is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UnknownEvent {
    /// Its number in the record of the run.
    pub seq: u64,
    /// The step it belongs to.
    pub key: Key,
    /// When.
    pub time: Timestamp,
    /// Whose it is.
    pub call: Arc<CallInfo>,
    /// What happened: an object with a `type`.
    pub body: Value,
}

impl UnknownEvent {
    /// Returns its type.
    pub fn kind(&self) -> &str {
        self.body.get("type").and_then(Value::as_str).unwrap_or("?")
    }

    /// Returns the whole event as one object, in the form that known events have in JSON.
    pub fn to_value(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("seq".to_owned(), self.seq.into());
        fields.insert("key".to_owned(), self.key.as_str().into());
        fields.insert("time".to_owned(), self.time.to_string().into());
        for part in [serde_json::to_value(&*self.call).unwrap_or_default(), self.body.clone()] {
            if let Value::Object(part) = part {
                fields.extend(part);
            }
        }
        Value::Object(fields)
    }
}

/// Reads the events of a run after `after`, for whoever continues it. One that only a newer version knows is an error: what
/// it means for the rest is not known.
pub(crate) fn events(
    connection: &Connection,
    run: RunId,
    after: Option<u64>,
) -> Result<Vec<Arc<Event>>, StoreError> {
    let mut events: Vec<Arc<Event>> = Vec::new();
    read(connection, run, after, &mut |event| match event {
        RecordedEvent::Known(event) => {
            events.push(event);
            Ok(())
        }
        RecordedEvent::Unknown(event) => {
            Err(StoreError::UnknownEvent { run, kind: event.kind().to_owned(), build: build_of(&events) })
        }
    })?;
    Ok(events)
}

/// Reads all events of a run.
pub(crate) fn all(connection: &Connection, run: RunId) -> Result<Vec<RecordedEvent>, StoreError> {
    let mut events = Vec::new();
    read(connection, run, None, &mut |event| {
        events.push(event);
        Ok(())
    })?;
    Ok(events)
}

/// The version of the program that wrote what follows these events.
fn build_of(events: &[Arc<Event>]) -> String {
    let build = events.iter().rev().find_map(|event| match &event.body {
        EventBody::RunStarted(start) => Some(start.build.clone()),
        EventBody::RunResumed { build, .. } => Some(build.clone()),
        _ => None,
    });
    build.filter(|build| !build.is_empty()).unwrap_or_else(|| "another".to_owned())
}

fn read(
    connection: &Connection,
    run: RunId,
    after: Option<u64>,
    visit: &mut dyn FnMut(RecordedEvent) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let stream: i64 = connection
        .query_row("SELECT id FROM streams WHERE uuid = ?", [run.0.as_bytes()], |row| row.get(0))
        .optional()
        .map_err(from_sqlite)?
        .ok_or(StoreError::NotFound { run })?;
    // One transaction, so that calls and events are of one moment.
    let snapshot = connection.unchecked_transaction().map_err(from_sqlite)?;
    let calls = calls_of(&snapshot, stream, run)?;
    let first = after.map_or(0, |after| i64::try_from(after).unwrap_or(i64::MAX).saturating_add(1));
    visit_events(&snapshot, stream, &calls, first, visit)
}

/// Reads the events of a stream from `first` on, in their order, until one cannot be read or is refused.
pub(crate) fn visit_events(
    connection: &Connection,
    stream: i64,
    calls: &[(i64, Arc<CallInfo>)],
    first: i64,
    visit: &mut dyn FnMut(RecordedEvent) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut query = connection
        .prepare_cached(
            "SELECT seq, call, key, time, body FROM events WHERE stream = ? AND seq >= ? ORDER BY seq",
        )
        .map_err(from_sqlite)?;
    let mut rows = query.query([stream, first]).map_err(from_sqlite)?;
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        visit(event_of(connection, row, calls)?)?;
    }
    Ok(())
}

fn event_of(
    connection: &Connection,
    row: &Row<'_>,
    calls: &[(i64, Arc<CallInfo>)],
) -> Result<RecordedEvent, StoreError> {
    let seq: i64 = row.get(0).map_err(from_sqlite)?;
    let seq = u64::try_from(seq).map_err(corrupt)?;
    let call: i64 = row.get(1).map_err(from_sqlite)?;
    let position = calls.binary_search_by_key(&call, |(id, _)| *id);
    let Some((_, call)) = position.ok().and_then(|position| calls.get(position)) else {
        return Err(corrupt(format!("the call of event {seq} is missing")));
    };
    let key: Option<String> = row.get(2).map_err(from_sqlite)?;
    let key = key.map_or_else(|| call.id.clone(), |key| Key::from(key.as_str()));
    let nanoseconds: i64 = row.get(3).map_err(from_sqlite)?;
    let time = Timestamp::from_nanosecond(i128::from(nanoseconds)).map_err(corrupt)?;
    let packed: String = row.get(4).map_err(from_sqlite)?;
    Ok(match serde_json::from_value(unpacked(connection, &packed)?) {
        Ok(body) => {
            let call = call.clone();
            RecordedEvent::Known(Arc::new(Event { seq: Some(seq), key, time, call, body }))
        }
        Err(error) => {
            let body = unpacked(connection, &packed)?;
            if !body.get("type").is_some_and(Value::is_string) {
                return Err(corrupt(format!("event {seq} cannot be read: {error}")));
            }
            RecordedEvent::Unknown(UnknownEvent { seq, key, time, call: call.clone(), body })
        }
    })
}

/// Reads the content of an event, with the values that are kept apart.
pub(crate) fn body_of(connection: &Connection, packed: &str) -> Result<EventBody, StoreError> {
    serde_json::from_value(unpacked(connection, packed)?)
        .map_err(|error| corrupt(format!("an event cannot be read, it may be of a newer version: {error}")))
}

fn unpacked(connection: &Connection, packed: &str) -> Result<Value, StoreError> {
    let packed = serde_json::from_str(packed).map_err(corrupt)?;
    unpack(packed, &mut |digest| blob(connection, digest))
}

fn blob(connection: &Connection, digest: &Digest) -> Result<Vec<u8>, StoreError> {
    connection
        .prepare_cached("SELECT body FROM blobs WHERE digest = ?")
        .and_then(|mut query| query.query_row([digest.as_bytes()], |row| row.get(0)).optional())
        .map_err(from_sqlite)?
        .ok_or_else(|| corrupt(format!("the value {} is missing", digest.short())))
}
