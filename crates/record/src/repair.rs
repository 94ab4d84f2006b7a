//! Copies what can be read of a damaged record into another one.
//!
//! A run is copied from its beginning up to the first event that is missing or cannot be read. What happened after that is
//! not known, so a run that was cut gets an end: continuing it could do something twice.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use llm_do_core::{
    BundledFile, CallInfo, CallKind, CallResult, Digest, Event, EventBody, Failure, FailureKind, Key,
    ProjectBundle, RunId, RunStart, Status, Usage, UsageByModel,
};
use llm_do_runtime::StoreError;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use uuid::Uuid;

use crate::bundles;
use crate::call_rows::visit_calls;
use crate::claim::Claim;
use crate::error::{corrupt, from_sqlite};
use crate::questions::{self, UnusedAnswer};
use crate::recorded::{RecordedEvent, visit_events};
use crate::schema;
use crate::stream::Stream;
use crate::writer::Writing;

/// What was copied from a damaged record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// Every run of which something was found.
    pub runs: Vec<RepairedRun>,
    /// Why there may be runs of which nothing was found.
    pub unlisted: Option<String>,
}

/// A run of a damaged record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairedRun {
    /// The run.
    pub id: RunId,
    /// What became of it.
    pub outcome: RepairOutcome,
}

/// What became of a run of a damaged record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RepairOutcome {
    /// It was copied as it was.
    Whole,
    /// Its beginning was copied.
    Cut {
        /// How many of its events were copied; nothing is copied if its first event is lost.
        events: u64,
        /// How many events it had, if that is known.
        of: Option<u64>,
        /// Why the next one could not be copied.
        reason: String,
    },
    /// The record has it already; it was left as it is.
    Present,
}

/// A stream of the damaged record, as far as it was read.
struct Salvaged {
    id: RunId,
    events: Vec<RecordedEvent>,
    /// How many events there were.
    total: Option<u64>,
    /// Why the one after those that were read could not be.
    problem: Option<String>,
    /// The files of the project, as far as they can be read.
    bundles: Vec<(Digest, ProjectBundle)>,
    /// Answers that were given and not used yet, unless the run was cut: then nobody continues it.
    answers: Vec<UnusedAnswer>,
}

/// Copies the runs of a damaged record.
pub(crate) fn repair(writing: &mut Writing, damaged: &Path) -> Result<RepairReport, StoreError> {
    let source = schema::open_damaged(damaged)?;
    let (streams, unlisted) = streams(&source)?;
    let mut runs = Vec::new();
    for (stream, id) in streams {
        let outcome = match is_present(&writing.connection, id)? {
            true => RepairOutcome::Present,
            false => copy(writing, salvage(&source, stream, id))?,
        };
        runs.push(RepairedRun { id, outcome });
    }
    Ok(RepairReport { runs, unlisted })
}

/// Lists the streams. Damage may cut a table off, so it is read from both ends, and its index, too.
fn streams(source: &Connection) -> Result<(BTreeMap<i64, RunId>, Option<String>), StoreError> {
    let mut found = BTreeMap::new();
    let mut problem = None;
    for order in
        ["NOT INDEXED ORDER BY id", "NOT INDEXED ORDER BY id DESC", "ORDER BY uuid", "ORDER BY uuid DESC"]
    {
        match list(source, order, &mut found) {
            Ok(()) => return Ok((found, None)),
            Err(error) => problem = Some(error),
        }
    }
    match problem.map(from_sqlite) {
        Some(error) if found.is_empty() => Err(error),
        problem => Ok((found, problem.map(|problem| problem.to_string()))),
    }
}

fn list(source: &Connection, order: &str, found: &mut BTreeMap<i64, RunId>) -> rusqlite::Result<()> {
    let mut query = source.prepare(&format!("SELECT id, uuid FROM streams {order}"))?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        found.insert(row.get(0)?, RunId(Uuid::from_bytes(row.get(1)?)));
    }
    Ok(())
}

fn is_present(connection: &Connection, run: RunId) -> Result<bool, StoreError> {
    let mut query = connection.prepare_cached("SELECT 1 FROM streams WHERE uuid = ?").map_err(from_sqlite)?;
    query.exists([run.0.as_bytes()]).map_err(from_sqlite)
}

/// Reads a stream as far as it goes without a gap.
fn salvage(source: &Connection, stream: i64, id: RunId) -> Salvaged {
    let mut calls = Vec::new();
    // Events of calls that cannot be read end the copy below.
    let listed = visit_calls(source, stream, id, &mut |call, info| calls.push((call, info)));
    let mut events = Vec::new();
    let read = visit_events(source, stream, &calls, 0, &mut |event| {
        let (next, seq) = (events.len() as u64, seq_of(&event));
        if seq != next {
            return Err(corrupt(format!("event {next} is missing")));
        }
        events.push(event);
        Ok(())
    });
    let total = total(source, stream);
    let is_short = match total {
        Some(total) => total > events.len() as u64,
        None => !has_result(&events),
    };
    let problem = match read.and(listed) {
        Err(StoreError::Corrupt(problem)) => Some(problem),
        Err(error) => Some(error.to_string()),
        Ok(()) if is_short => Some("the events after it are missing".to_owned()),
        Ok(()) => None,
    };
    let bundles = events.iter().filter_map(known).filter_map(|event| bundle(source, event)).collect();
    let answers = if problem.is_none() { questions::unused_answers(source, stream) } else { Ok(Vec::new()) };
    Salvaged { id, events, total, problem, bundles, answers: answers.unwrap_or_default() }
}

/// Reads the files that an event names. A file whose text is no longer the one of its digest is known by the digest only.
fn bundle(source: &Connection, event: &Event) -> Option<(Digest, ProjectBundle)> {
    let digest = match &event.body {
        EventBody::RunStarted(start) => start.bundle,
        EventBody::RunResumed { state, .. } => state.bundle,
        _ => None,
    }?;
    let read = bundles::read(source, digest).ok().flatten()?;
    let mut intact = ProjectBundle::default();
    for (path, file) in read.files() {
        let text = file.text.clone().filter(|text| Digest::hash(text.as_bytes()) == file.digest);
        intact.insert(path, BundledFile { digest: file.digest, text });
    }
    Some((digest, intact))
}

/// Returns whether a run got its result: nothing comes after that.
fn has_result(events: &[RecordedEvent]) -> bool {
    let known: Vec<&Event> = events.iter().filter_map(known).collect();
    let ends_run = |event: &&Event| matches!(event.body, EventBody::RunFinished { .. });
    let Some((_, start)) = known.iter().find_map(|event| started(event)) else { return false };
    known.last().is_some_and(ends_run) && is_finished(&known, &entry_of(start))
}

/// The key of the call for which a run was started.
fn entry_of(start: &RunStart) -> Key {
    Key::from(start.ordinal.to_string().as_str())
}

fn is_finished(known: &[&Event], call: &Key) -> bool {
    known.iter().any(|event| event.key == *call && matches!(event.body, EventBody::CallFinished { .. }))
}

fn seq_of(event: &RecordedEvent) -> u64 {
    match event {
        RecordedEvent::Known(event) => event.seq.unwrap_or_default(),
        RecordedEvent::Unknown(event) => event.seq,
    }
}

/// How many events a stream had; its row may be unreadable.
fn total(source: &Connection, stream: i64) -> Option<u64> {
    let noted = source.query_row("SELECT next_seq FROM streams WHERE id = ?", [stream], |row| row.get(0));
    noted.optional().ok().flatten().and_then(|next: i64| u64::try_from(next).ok())
}

fn copy(writing: &mut Writing, salvaged: Salvaged) -> Result<RepairOutcome, StoreError> {
    let events = salvaged.events.len() as u64;
    if events > 0 {
        let Some(claim) = Claim::take(&writing.path, salvaged.id)? else { return Ok(RepairOutcome::Present) };
        write(&mut writing.connection, &salvaged)?;
        drop(claim);
    }
    Ok(match salvaged.problem {
        None => RepairOutcome::Whole,
        Some(reason) => RepairOutcome::Cut { events, of: salvaged.total, reason },
    })
}

fn write(connection: &mut Connection, salvaged: &Salvaged) -> Result<(), StoreError> {
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(from_sqlite)?;
    let mut stream = Stream::create(&transaction, salvaged.id)?;
    for (digest, bundle) in &salvaged.bundles {
        bundles::keep(&transaction, *digest, bundle)?;
    }
    for event in &salvaged.events {
        match event {
            RecordedEvent::Known(event) => stream.write(&transaction, event)?,
            RecordedEvent::Unknown(event) => stream.write_unknown(&transaction, event)?,
        }
    }
    if let Some(problem) = &salvaged.problem {
        for event in end_of(salvaged, problem) {
            stream.write(&transaction, &event)?;
        }
    }
    stream.finish_transaction(&transaction)?;
    for answer in &salvaged.answers {
        questions::keep_answer(&transaction, salvaged.id, answer)?;
    }
    transaction.commit().map_err(from_sqlite)
}

/// The end of a run that was cut: the call for which it was started has failed, and so has the run.
fn end_of(salvaged: &Salvaged, problem: &str) -> Vec<Event> {
    let known: Vec<&Event> = salvaged.events.iter().filter_map(known).collect();
    let Some((root, start)) = known.iter().find_map(|event| started(event)) else { return Vec::new() };
    let message = format!(
        "the record was damaged, and what this run did after its first {} events is lost: {problem}",
        salvaged.events.len()
    );
    let entry = entry_of(start);
    let mut ends = Vec::new();
    if !is_finished(&known, &entry) {
        ends.push(end_of_entry(&known, root, start, entry, &message));
    }
    let finished = EventBody::RunFinished {
        status: Status::Failed,
        output: None,
        error: Some(message),
        usage: UsageByModel::default(),
        duration_ms: 0,
    };
    ends.push((root.clone(), finished));
    let time = known.last().map_or_else(Timestamp::now, |event| event.time);
    let numbered = ends.into_iter().zip(salvaged.events.len() as u64..);
    let event = |((call, body), seq): ((Arc<CallInfo>, EventBody), u64)| Event {
        seq: Some(seq),
        key: call.id.clone(),
        time,
        call,
        body,
    };
    numbered.map(event).collect()
}

fn known(event: &RecordedEvent) -> Option<&Event> {
    match event {
        RecordedEvent::Known(event) => Some(event),
        RecordedEvent::Unknown(_) => None,
    }
}

fn started(event: &Event) -> Option<(&Arc<CallInfo>, &RunStart)> {
    match &event.body {
        EventBody::RunStarted(start) => Some((&event.call, start)),
        _ => None,
    }
}

fn end_of_entry(
    known: &[&Event],
    root: &Arc<CallInfo>,
    start: &RunStart,
    entry: Key,
    message: &str,
) -> (Arc<CallInfo>, EventBody) {
    let call = known.iter().find(|event| event.call.id == entry).map(|event| event.call.clone());
    let below_root =
        || CallInfo { id: entry.clone(), parent: Some(root.id.clone()), ..CallInfo::clone(root) };
    let kind = known.iter().find_map(|event| match event.body {
        EventBody::CallStarted { kind, .. } if event.key == entry => Some(kind),
        _ => None,
    });
    let body = EventBody::CallFinished {
        kind: kind.unwrap_or(CallKind::Unknown),
        name: start.entry.clone(),
        result: CallResult::Error(Failure::new(FailureKind::Tool, message)),
        duration_ms: 0,
        ran_ms: None,
        usage: Usage::default(),
    };
    (call.unwrap_or_else(|| Arc::new(below_root())), body)
}
