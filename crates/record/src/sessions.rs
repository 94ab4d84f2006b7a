//! Sessions: conversations whose turns are runs.
//!
//! A session is a stream of its own. The table `turns` shows its turns in lists and is derived from its events, as everything
//! else is.

use std::path::PathBuf;

use jiff::Timestamp;
use llm_do_core::{Money, RunId, SessionStart, Status, TurnEnd, TurnStart};
use llm_do_runtime::StoreError;
use rusqlite::{Connection, Row, params, params_from_iter};
use uuid::Uuid;

use crate::error::from_sqlite;
use crate::read::{FindError, Reader, range_of, status_of, time, unsigned};

/// How much of a message is kept for lists and for the search. The whole of it is in the event.
const MAX_TEXT_CHARS: usize = 4_000;

/// How much of the first message is the title.
const MAX_TITLE_CHARS: usize = 60;

/// A session, as lists show it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SessionSummary {
    /// The session.
    pub id: RunId,
    /// Whether it is open, and whether its last turn has an end.
    pub state: SessionStatus,
    /// The name of the agent or function that answers.
    pub entry: String,
    /// The name that the user gave it, or the beginning of the first message.
    pub title: String,
    /// The directory of its project.
    pub project: Option<PathBuf>,
    /// When it began.
    pub began: Timestamp,
    /// When something happened in it last.
    pub last: Timestamp,
    /// How many turns are in the conversation.
    pub turns: u64,
    /// The tokens that its models were sent.
    pub tokens_in: u64,
    /// The tokens that they wrote.
    pub tokens_out: u64,
    /// What is known of its cost.
    pub cost: Money,
    /// The requests whose cost is unknown.
    pub unpriced: u64,
}

/// How a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionStatus {
    /// A process has it open.
    Open,
    /// Nobody has it open, and its last turn has no end.
    CutOff,
    /// Nobody has it open.
    Closed,
}

impl SessionStatus {
    /// Returns the word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::CutOff => "cut_off",
            Self::Closed => "closed",
        }
    }
}

/// A turn of a session, as lists show it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RecordedTurn {
    /// Its number.
    pub ordinal: u32,
    /// Its run; none for a turn that was taken over from another session.
    pub run: Option<RunId>,
    /// What the user wrote.
    pub text: String,
    /// The beginning of the answer.
    pub answer: Option<String>,
    /// How it ended.
    pub status: Option<Status>,
}

/// Which sessions to list. Everything without a value matches all.
#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    /// The directory of their project.
    pub project: Option<PathBuf>,
    /// Words of their title, or of what was said in them. Case does not matter.
    pub search: Option<String>,
    /// How many to list, newest first.
    pub limit: Option<usize>,
}

impl Reader {
    /// Lists sessions, those first in which something happened last.
    pub fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionSummary>, StoreError> {
        let project = filter.project.as_ref().map(|project| project.to_string_lossy().into_owned());
        let (condition, values) = match project {
            Some(project) => (" AND projects.root = ?", vec![project.into()]),
            None => ("", Vec::new()),
        };
        let limit = match filter.limit {
            Some(limit) if filter.search.is_none() => format!(" LIMIT {limit}"),
            _ => String::new(),
        };
        let sql = format!("{SUMMARY}{condition} ORDER BY streams.ended DESC{limit}");
        let mut sessions = self.session_summaries(&sql, values)?;
        if let Some(words) = &filter.search {
            let found = self.sessions_with(words)?;
            let words = words.to_lowercase();
            sessions.retain(|session| {
                found.contains(&session.id) || session.title.to_lowercase().contains(&words)
            });
            sessions.truncate(filter.limit.unwrap_or(usize::MAX));
        }
        Ok(sessions)
    }

    /// Finds a session by its id, a unique beginning of it, or `last`.
    pub fn find_session(&self, id: &str) -> Result<SessionSummary, FindError<SessionSummary>> {
        if id == "last" {
            let filter = SessionFilter { limit: Some(1), ..SessionFilter::default() };
            let found = self.sessions(&filter).map_err(FindError::Store)?;
            return found.into_iter().next().ok_or(FindError::NotFound);
        }
        let digits: String = id.chars().filter(|digit| *digit != '-').collect();
        let (from, to) = range_of(&digits).ok_or(FindError::NoId)?;
        let sql = format!("{SUMMARY} AND uuid BETWEEN ? AND ? ORDER BY streams.ended DESC LIMIT 10");
        let mut found =
            self.session_summaries(&sql, vec![from.into(), to.into()]).map_err(FindError::Store)?;
        match found.len() {
            0 => Err(FindError::NotFound),
            1 => Ok(found.remove(0)),
            _ => Err(FindError::Several(found)),
        }
    }

    /// Lists the turns that are in the conversation of a session, oldest first.
    pub fn turns(&self, session: RunId) -> Result<Vec<RecordedTurn>, StoreError> {
        let sql = "SELECT turns.ordinal, run, text, answer, turns.status FROM turns JOIN streams ON streams.id = turns.stream
            WHERE uuid = ? ORDER BY turns.ordinal";
        let mut query = self.connection.prepare_cached(sql).map_err(from_sqlite)?;
        let rows = query.query_map([session.0.as_bytes()], |row| {
            Ok(RecordedTurn {
                ordinal: row.get(0)?,
                run: row.get::<_, Option<[u8; 16]>>(1)?.map(|run| RunId(Uuid::from_bytes(run))),
                text: row.get(2)?,
                answer: row.get(3)?,
                status: row.get::<_, Option<String>>(4)?.map(|word| status_of(&word)),
            })
        });
        rows.and_then(Iterator::collect).map_err(from_sqlite)
    }

    /// Finds the sessions in which something was said. SQLite knows the case of ASCII letters only.
    fn sessions_with(&self, words: &str) -> Result<Vec<RunId>, StoreError> {
        let words = words.to_lowercase();
        let sql = "SELECT uuid, text, answer FROM turns JOIN streams ON streams.id = turns.stream";
        let mut query = self.connection.prepare_cached(sql).map_err(from_sqlite)?;
        let mut rows = query.query([]).map_err(from_sqlite)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(from_sqlite)? {
            let text: String = row.get(1).map_err(from_sqlite)?;
            let answer: Option<String> = row.get(2).map_err(from_sqlite)?;
            let is_in = |text: &str| text.to_lowercase().contains(&words);
            if is_in(&text) || answer.as_deref().is_some_and(is_in) {
                found.push(RunId(Uuid::from_bytes(row.get(0).map_err(from_sqlite)?)));
            }
        }
        Ok(found)
    }

    fn session_summaries(
        &self,
        sql: &str,
        values: Vec<rusqlite::types::Value>,
    ) -> Result<Vec<SessionSummary>, StoreError> {
        let read = || {
            let mut query = self.connection.prepare_cached(sql)?;
            let rows = query.query_map(params_from_iter(values), |row| self.session_summary(row))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        self.noting_damage(read().map_err(from_sqlite))
    }

    fn session_summary(&self, row: &Row<'_>) -> rusqlite::Result<SessionSummary> {
        let id = RunId(Uuid::from_bytes(row.get(0)?));
        let state = match (self.is_written(id, row.get(1)?), row.get(2)?) {
            (true, _) => SessionStatus::Open,
            (false, true) => SessionStatus::CutOff,
            (false, false) => SessionStatus::Closed,
        };
        Ok(SessionSummary {
            id,
            state,
            entry: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
            title: row.get::<_, Option<String>>(4)?.unwrap_or_default(),
            project: row.get::<_, Option<String>>(5)?.map(PathBuf::from),
            began: time(row.get::<_, Option<i64>>(6)?.unwrap_or_default()),
            last: time(row.get::<_, Option<i64>>(7)?.unwrap_or_default()),
            turns: unsigned(row, 8)?,
            tokens_in: unsigned(row, 9)?,
            tokens_out: unsigned(row, 10)?,
            cost: Money(unsigned(row, 11)?),
            unpriced: unsigned(row, 12)?,
        })
    }
}

const SUMMARY: &str = "SELECT uuid, holder,
    EXISTS (SELECT 1 FROM turns WHERE turns.stream = streams.id AND turns.run IS NOT NULL AND turns.status IS NULL),
    entry, title, projects.root, began, ended, (SELECT count(*) FROM turns WHERE turns.stream = streams.id),
    tokens_in, tokens_out, cost, unpriced
    FROM streams LEFT JOIN projects ON projects.id = streams.project WHERE kind = 1";

/// Keeps a session that begins.
pub(crate) fn started(
    connection: &Connection,
    stream: i64,
    at: i64,
    start: &SessionStart,
) -> rusqlite::Result<()> {
    let root = start.project.as_ref().map(|root| root.to_string_lossy().into_owned());
    if let Some(root) = &root {
        connection.prepare_cached("INSERT OR IGNORE INTO projects (root) VALUES (?)")?.execute([root])?;
    }
    // It is nothing that `resume` goes on with.
    let sql = "UPDATE streams SET kind = 1, is_turn = 1, project = (SELECT id FROM projects WHERE root = ?), build = ?,
        format = ?, entry = ?, began = ?, ended = ? WHERE id = ?";
    let values = params![root, start.build, start.format, start.entry.as_str(), at, at, stream];
    connection.prepare_cached(sql)?.execute(values)?;
    for turn in &start.turns {
        add_turn(connection, stream, turn.ordinal, None, &turn.text)?;
        let sql = "UPDATE turns SET answer = ? WHERE stream = ? AND ordinal = ?";
        connection.prepare_cached(sql)?.execute(params![turn.answer, stream, turn.ordinal])?;
    }
    Ok(())
}

/// Keeps a turn that begins.
pub(crate) fn turn_started(
    connection: &Connection,
    stream: i64,
    at: i64,
    turn: &TurnStart,
) -> rusqlite::Result<()> {
    add_turn(connection, stream, turn.ordinal, Some(turn.run), &turn.text)?;
    touch(connection, stream, at)
}

fn add_turn(
    connection: &Connection,
    stream: i64,
    ordinal: u32,
    run: Option<RunId>,
    text: &str,
) -> rusqlite::Result<()> {
    let run = run.map(|run| *run.0.as_bytes());
    let kept: String = text.chars().take(MAX_TEXT_CHARS).collect();
    let insert = "INSERT OR REPLACE INTO turns (stream, ordinal, run, text) VALUES (?, ?, ?, ?)";
    connection.prepare_cached(insert)?.execute(params![stream, ordinal, run, kept])?;
    let title: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let title: String = title.chars().take(MAX_TITLE_CHARS).collect();
    let name = "UPDATE streams SET title = coalesce(title, ?) WHERE id = ?";
    connection.prepare_cached(name)?.execute(params![title, stream]).map(drop)
}

/// Keeps how a turn ended.
pub(crate) fn turn_ended(
    connection: &Connection,
    stream: i64,
    at: i64,
    end: &TurnEnd,
) -> rusqlite::Result<()> {
    let sql = "UPDATE turns SET answer = ?, status = ? WHERE stream = ? AND ordinal = ?";
    let values = params![end.answer, end.status.as_str(), stream, end.ordinal];
    connection.prepare_cached(sql)?.execute(values)?;
    // Code that answers has no conversation, and still it answered.
    let is_gone = |ordinal: &u32| *ordinal != end.ordinal || end.answer.is_empty();
    let dropped: Vec<u32> = end.state.dropped_turns.iter().copied().filter(is_gone).collect();
    drop_turns(connection, stream, &dropped)?;
    let total = end.usage.total();
    let sql = "UPDATE streams SET tokens_in = tokens_in + ?, tokens_out = tokens_out + ?, cost = cost + ?,
        unpriced = unpriced + ? WHERE id = ?";
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let values = params![
        number(total.total_input()),
        number(total.output),
        number(total.cost.known.0),
        number(total.cost.unpriced),
        stream
    ];
    connection.prepare_cached(sql)?.execute(values)?;
    touch(connection, stream, at)
}

/// Removes turns that are no longer in the conversation.
pub(crate) fn drop_turns(connection: &Connection, stream: i64, ordinals: &[u32]) -> rusqlite::Result<()> {
    let mut delete = connection.prepare_cached("DELETE FROM turns WHERE stream = ? AND ordinal = ?")?;
    ordinals.iter().try_for_each(|ordinal| delete.execute(params![stream, ordinal]).map(drop))
}

/// Names a session.
pub(crate) fn titled(connection: &Connection, stream: i64, title: &str) -> rusqlite::Result<()> {
    let sql = "UPDATE streams SET title = ? WHERE id = ?";
    connection.prepare_cached(sql)?.execute(params![title, stream]).map(drop)
}

/// Notes when something happened in a session last.
pub(crate) fn touch(connection: &Connection, stream: i64, at: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE streams SET ended = ? WHERE id = ?")?
        .execute(params![at, stream])
        .map(drop)
}
