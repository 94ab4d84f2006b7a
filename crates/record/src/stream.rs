//! One event, written: its own row, and what the other tables say because of it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use llm_do_core::{
    ApprovalRequest, CallInfo, CallKind, CallResult, Digest, Event, EventBody, Key, ModelResult, Name,
    Payload, RunId, RunStart, Status, Usage,
};
use llm_do_runtime::StoreError;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use crate::bundles;
use crate::call_rows::calls_of;
use crate::claim::holder;
use crate::error::{corrupt, from_sqlite};
use crate::recorded::UnknownEvent;
use crate::sessions;
use crate::values::{Blob, pack};

/// The kind of streams that are runs.
const RUN: i64 = 0;

/// How much of the input is shown in lists.
const MAX_TITLE_CHARS: usize = 120;

/// A stream that is being written, as the writer knows it.
pub(crate) struct Stream {
    id: i64,
    epoch: i64,
    next_seq: u64,
    /// The calls that have a row. Events of one call that describe it differently have several.
    calls: HashMap<Key, Vec<(Arc<CallInfo>, i64)>>,
    next_call: i64,
    /// The large values to which this stream refers.
    blobs: HashSet<Digest>,
}

impl Stream {
    /// Makes the row of a new run.
    pub(crate) fn create(connection: &Connection, run: RunId) -> Result<Self, StoreError> {
        let create = "INSERT INTO streams (uuid, kind, epoch, holder, next_seq) VALUES (?, ?, 1, ?, 0)";
        fail_point!("record::before_stream");
        connection.execute(create, params![run.0.as_bytes(), RUN, holder()]).map_err(from_sqlite)?;
        fail_point!("record::after_stream");
        Ok(Self {
            id: connection.last_insert_rowid(),
            epoch: 1,
            next_seq: 0,
            calls: HashMap::new(),
            next_call: 0,
            blobs: HashSet::new(),
        })
    }

    /// Takes over a recorded run: raises its epoch, so that an earlier writer writes nothing more.
    pub(crate) fn take_over(connection: &Connection, run: RunId) -> Result<Self, StoreError> {
        let raise =
            "UPDATE streams SET epoch = epoch + 1, holder = ? WHERE uuid = ? RETURNING id, epoch, next_seq";
        fail_point!("record::before_take_over");
        let row = connection
            .query_row(raise, params![holder(), run.0.as_bytes()], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?))
            })
            .optional()
            .map_err(from_sqlite)?;
        fail_point!("record::after_take_over");
        let (id, epoch, next_seq) = row.ok_or(StoreError::NotFound { run })?;
        let mut stream = Self {
            id,
            epoch,
            next_seq: u64::try_from(next_seq).unwrap_or_default(),
            calls: HashMap::new(),
            next_call: 0,
            blobs: HashSet::new(),
        };
        for (id, info) in calls_of(connection, stream.id, run)? {
            stream.next_call = stream.next_call.max(id + 1);
            stream.calls.entry(info.id.clone()).or_default().push((info, id));
        }
        Ok(stream)
    }

    /// Checks that nobody has taken the run over.
    pub(crate) fn check_epoch(&self, connection: &Connection, run: RunId) -> Result<(), StoreError> {
        let (epoch, holder): (i64, String) = connection
            .prepare_cached("SELECT epoch, holder FROM streams WHERE id = ?")
            .and_then(|mut query| query.query_row([self.id], |row| Ok((row.get(0)?, row.get(1)?))))
            .map_err(from_sqlite)?;
        if epoch == self.epoch {
            return Ok(());
        }
        Err(StoreError::Held { run, holder: crate::claim::describe(&holder) })
    }

    /// Writes an event and everything that follows from it.
    pub(crate) fn write(&mut self, connection: &Connection, event: &Event) -> Result<(), StoreError> {
        let seq = event.seq.unwrap_or(self.next_seq);
        let body = serde_json::to_value(&event.body).map_err(corrupt)?;
        let row = self.insert(connection, seq, &event.call, &event.key, event.time, body)?;
        derive(connection, &row, event).map_err(from_sqlite)
    }

    /// Writes an event of a newer version: nothing is known to follow from it.
    pub(crate) fn write_unknown(
        &mut self,
        connection: &Connection,
        event: &UnknownEvent,
    ) -> Result<(), StoreError> {
        self.insert(connection, event.seq, &event.call, &event.key, event.time, event.body.clone()).map(drop)
    }

    fn insert(
        &mut self,
        connection: &Connection,
        seq: u64,
        call: &Arc<CallInfo>,
        key: &Key,
        time: Timestamp,
        body: Value,
    ) -> Result<EventRow, StoreError> {
        if seq != self.next_seq {
            return Err(corrupt(format!("event {seq} came where event {} belongs", self.next_seq)));
        }
        let row = EventRow {
            stream: self.id,
            seq: to_sql(seq)?,
            call: self.call(connection, call)?,
            time: nanoseconds(time)?,
        };
        let mut blobs = Vec::new();
        let body = pack(body, &mut blobs).to_string();
        self.keep(connection, blobs)?;
        let key = (*key != call.id).then(|| key.as_str());
        fail_point!("record::before_event");
        connection
            .prepare_cached(
                "INSERT INTO events (stream, seq, call, key, time, body) VALUES (?, ?, ?, ?, ?, ?)",
            )
            .and_then(|mut insert| {
                insert.execute(params![row.stream, row.seq, row.call, key, row.time, body])
            })
            .map_err(from_sqlite)?;
        fail_point!("record::after_event");
        self.next_seq = seq + 1;
        Ok(row)
    }

    /// Notes how many events there are. Once per transaction.
    pub(crate) fn finish_transaction(&self, connection: &Connection) -> Result<(), StoreError> {
        fail_point!("record::before_end_of_stream");
        connection
            .prepare_cached("UPDATE streams SET next_seq = ? WHERE id = ?")
            .and_then(|mut update| {
                update.execute(params![to_sql(self.next_seq).unwrap_or(i64::MAX), self.id])
            })
            .map(drop)
            .map_err(from_sqlite)
    }

    /// Returns the row of a call, and makes it when the call is first seen.
    fn call(&mut self, connection: &Connection, info: &Arc<CallInfo>) -> Result<i64, StoreError> {
        let known = self.calls.entry(info.id.clone()).or_default();
        if let Some((_, id)) = known.iter().find(|(other, _)| Arc::ptr_eq(other, info) || other == info) {
            return Ok(*id);
        }
        let id = self.next_call;
        let insert =
            "INSERT INTO calls (stream, id, key, parent, depth, path, agent) VALUES (?, ?, ?, ?, ?, ?, ?)";
        let parent = info.parent.as_ref().map(Key::as_str);
        fail_point!("record::before_call");
        connection
            .prepare_cached(insert)
            .and_then(|mut insert| {
                insert.execute(params![
                    self.id,
                    id,
                    info.id.as_str(),
                    parent,
                    info.depth,
                    &*info.path,
                    info.agent.as_str()
                ])
            })
            .map_err(from_sqlite)?;
        fail_point!("record::after_call");
        known.push((info.clone(), id));
        self.next_call += 1;
        Ok(id)
    }

    fn keep(&mut self, connection: &Connection, blobs: Vec<Blob>) -> Result<(), StoreError> {
        for blob in blobs {
            if !self.blobs.insert(blob.digest) {
                continue;
            }
            let digest = blob.digest.as_bytes();
            let insert = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
                connection
                    .prepare_cached(sql)
                    .and_then(|mut insert| insert.execute(values))
                    .map_err(from_sqlite)
            };
            fail_point!("record::before_blob");
            insert("INSERT OR IGNORE INTO blobs (digest, body) VALUES (?, ?)", &[&digest, &blob.body])?;
            fail_point!("record::after_blob");
            insert("INSERT OR IGNORE INTO refs (stream, digest) VALUES (?, ?)", &[&self.id, &digest])?;
            fail_point!("record::after_ref");
        }
        Ok(())
    }
}

/// Which rows of the tables belong to an event.
struct EventRow {
    stream: i64,
    seq: i64,
    call: i64,
    time: i64,
}

/// Brings the tables up to date that are derived from events.
fn derive(connection: &Connection, row: &EventRow, event: &Event) -> rusqlite::Result<()> {
    match &event.body {
        EventBody::RunStarted(start) => run_started(connection, row, event, start),
        EventBody::RunResumed { state, .. } => {
            let sql = "UPDATE streams SET status = NULL, ended = NULL, error = NULL WHERE id = ?";
            update(connection, sql, &[&row.stream])?;
            bundles::refer(connection, row.stream, state.bundle)
        }
        EventBody::CallStarted { kind, name, .. } => call_started(connection, row, *kind, name),
        EventBody::CallExecuting { .. } => {
            let sql = "UPDATE calls SET executing = ? WHERE stream = ? AND id = ?";
            update(connection, sql, &[&row.seq, &row.stream, &row.call])
        }
        EventBody::ModelResponse { model, result, duration_ms } => {
            model_used(connection, row, event, model, &counted(result), *duration_ms)
        }
        EventBody::ApprovalRequested(request) => asked(connection, row, request),
        EventBody::ApprovalDecided { id, .. } => {
            let sql = "UPDATE approvals SET state = 'decided' WHERE stream = ? AND id = ?";
            update(connection, sql, &[&row.stream, &id.as_str()])
        }
        EventBody::CallFinished { result, usage, .. } => {
            withdraw_questions(connection, row, &event.call.id)?;
            call_finished(connection, row, result, usage)
        }
        EventBody::RunFinished { status, error, .. } => {
            if matches!(status, Status::Done | Status::Failed | Status::Denied | Status::Output) {
                withdraw_questions(connection, row, &Key::root())?;
            }
            let sql = "UPDATE streams SET status = ?, error = ?, ended = ? WHERE id = ?";
            update(connection, sql, &[&status.as_str(), error, &row.time, &row.stream])
        }
        EventBody::SessionStarted(start) => sessions::started(connection, row.stream, row.time, start),
        EventBody::TurnStarted(turn) => sessions::turn_started(connection, row.stream, row.time, turn),
        EventBody::TurnEnded(end) => sessions::turn_ended(connection, row.stream, row.time, end),
        EventBody::TurnDropped { ordinal } => sessions::drop_turns(connection, row.stream, &[*ordinal]),
        EventBody::WentBack { state, .. } => {
            sessions::drop_turns(connection, row.stream, &state.dropped_turns)?;
            sessions::touch(connection, row.stream, row.time)
        }
        EventBody::SessionTitled { title } => sessions::titled(connection, row.stream, title),
        _ => Ok(()),
    }
}

fn run_started(
    connection: &Connection,
    row: &EventRow,
    event: &Event,
    start: &RunStart,
) -> rusqlite::Result<()> {
    let root = start.project.as_ref().map(|root| root.to_string_lossy().into_owned());
    if let Some(root) = &root {
        update(connection, "INSERT OR IGNORE INTO projects (root) VALUES (?)", &[root])?;
    }
    let sql = "UPDATE streams SET project = (SELECT id FROM projects WHERE root = ?), pin = ?, build = ?, format = ?, entry = ?,
        agent = ?, title = ?, ordinal = ?, is_turn = ?, began = ?, session = (SELECT id FROM streams WHERE uuid = ?) WHERE id = ?";
    bundles::refer(connection, row.stream, start.bundle)?;
    update(
        connection,
        sql,
        &[
            &root,
            &start.pin.as_bytes(),
            &start.build,
            &start.format,
            &start.entry.as_str(),
            &event.call.agent.as_str(),
            &title(&start.input),
            &start.ordinal,
            &start.is_turn,
            &row.time,
            &start.session.map(|session| *session.0.as_bytes()),
            &row.stream,
        ],
    )
}

/// A question that is put again keeps an answer that was given meanwhile, if it is about the same and was not found
/// wrong.
fn asked(connection: &Connection, row: &EventRow, request: &ApprovalRequest) -> rusqlite::Result<()> {
    let keeps = "approvals.state = 'answered' AND approvals.digest IS excluded.digest AND NOT ?7";
    let sql = format!(
        "INSERT INTO approvals (stream, id, asked_seq, digest, asked, expires, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'open')
        ON CONFLICT (stream, id) DO UPDATE SET asked_seq = excluded.asked_seq, digest = excluded.digest, asked = excluded.asked,
            expires = excluded.expires, state = iif({keeps}, 'answered', 'open'), answer = iif({keeps}, answer, NULL),
            answered = iif({keeps}, answered, NULL), answered_by = iif({keeps}, answered_by, NULL)"
    );
    let digest = request.digest.as_ref().map(Digest::as_bytes);
    let expires = request.expires.map(|expires| i64::try_from(expires.as_nanosecond()).unwrap_or(i64::MAX));
    let was_wrong = request.edit_problem.is_some();
    let id = request.id.as_str();
    update(connection, &sql, &[&row.stream, &id, &row.seq, &digest, &row.time, &expires, &was_wrong])
}

/// Whoever has ended asks nothing any more; nor does anything below it.
fn withdraw_questions(connection: &Connection, row: &EventRow, call: &Key) -> rusqlite::Result<()> {
    let sql = "UPDATE approvals SET state = 'withdrawn' WHERE stream = ?1 AND state IN ('open', 'answered')
        AND (?2 = '' OR id = ?2 OR (id >= ?2 || '/' AND id < ?2 || '0'))";
    update(connection, sql, &[&row.stream, &call.as_str()])
}

fn title(input: &Payload) -> String {
    let text = match input.value() {
        serde_json::Value::String(text) => text.clone(),
        // The input of an agent without a schema is an object with one text.
        serde_json::Value::Object(fields) => match fields.get("input").and_then(serde_json::Value::as_str) {
            Some(text) if fields.len() == 1 => text.to_owned(),
            _ => input.value().to_string(),
        },
        other => other.to_string(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_TITLE_CHARS).collect()
}

fn call_started(
    connection: &Connection,
    row: &EventRow,
    kind: CallKind,
    name: &Name,
) -> rusqlite::Result<()> {
    let sql = "UPDATE calls SET kind = ?, name = ?, started = ?, began = ? WHERE stream = ? AND id = ?";
    update(connection, sql, &[&kind.as_str(), &name.as_str(), &row.seq, &row.time, &row.stream, &row.call])?;
    update(connection, "UPDATE streams SET calls = calls + 1 WHERE id = ?", &[&row.stream])
}

fn call_finished(
    connection: &Connection,
    row: &EventRow,
    result: &CallResult,
    usage: &Usage,
) -> rusqlite::Result<()> {
    let outcome = match result {
        CallResult::Output(_) => "output",
        CallResult::Error(_) => "error",
    };
    let sql = "UPDATE calls SET finished = ?, ended = ?, outcome = ?, tokens_in = ?, tokens_out = ?, cost = ?, unpriced = ?
        WHERE stream = ? AND id = ?";
    update(
        connection,
        sql,
        &[
            &row.seq,
            &row.time,
            &outcome,
            &clamped(usage.input),
            &clamped(usage.output),
            &clamped(usage.cost.known.0),
            &clamped(usage.cost.unpriced),
            &row.stream,
            &row.call,
        ],
    )
}

/// What a request used, whether it was answered or not.
fn counted(result: &ModelResult) -> Usage {
    match result {
        ModelResult::Response(response) => response.usage,
        ModelResult::Failed { error } => error.cost.counted(),
    }
}

fn model_used(
    connection: &Connection,
    row: &EventRow,
    event: &Event,
    model: &Name,
    usage: &Usage,
    duration_ms: u64,
) -> rusqlite::Result<()> {
    let provider = model.as_str().split(':').next().unwrap_or_default();
    let day = event.time.as_second().div_euclid(24 * 60 * 60);
    let numbers = [
        usage.requests,
        usage.input,
        usage.output,
        usage.cache_read,
        usage.cache_write,
        usage.reasoning,
        usage.searches,
        usage.cost.known.0,
        usage.cost.unpriced,
        duration_ms,
    ]
    .map(clamped);
    let own: [&dyn rusqlite::ToSql; 7] =
        [&row.stream, &row.seq, &row.call, &event.call.agent.as_str(), &model.as_str(), &provider, &day];
    let values: Vec<&dyn rusqlite::ToSql> =
        own.into_iter().chain(numbers.iter().map(|number| number as &dyn rusqlite::ToSql)).collect();
    update(
        connection,
        "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        &values,
    )?;
    let sql = "UPDATE streams SET tokens_in = tokens_in + ?, tokens_out = tokens_out + ?, cost = cost + ?, unpriced = unpriced + ?
        WHERE id = ?";
    update(connection, sql, &[&numbers[1], &numbers[2], &numbers[7], &numbers[8], &row.stream])
}

fn update(connection: &Connection, sql: &str, values: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<()> {
    fail_point!("record::before_derived");
    connection.prepare_cached(sql)?.execute(values)?;
    fail_point!("record::after_derived");
    Ok(())
}

/// SQLite has no unsigned numbers. Sums of them are for people.
fn clamped(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn to_sql(seq: u64) -> Result<i64, StoreError> {
    i64::try_from(seq).map_err(corrupt)
}

fn nanoseconds(time: Timestamp) -> Result<i64, StoreError> {
    i64::try_from(time.as_nanosecond()).map_err(|_| corrupt(format!("the time {time} is out of range")))
}
