//! Questions of runs, and answers that are given outside of them.
//!
//! An answer is a row and not an event: only the run itself records what it decides. So it can be given while the run waits
//! in another process, and while no process has it.

use std::path::PathBuf;

use jiff::Timestamp;
use llm_do_core::{Answer, ApprovalRequest, Digest, EventBody, Key, RunId};
use llm_do_runtime::{GivenAnswer, StoreError};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use thiserror::Error;
use uuid::Uuid;

use crate::error::{corrupt, from_sqlite};
use crate::read::{Reader, short_id, time};
use crate::recorded::body_of;

/// Digits of the part of a question's id that tells it from other questions of its run.
const KEY_DIGITS: usize = 4;

/// A question of a run that has not been decided about.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RecordedQuestion {
    /// The run.
    pub run: RunId,
    /// The directory of its project.
    pub project: Option<PathBuf>,
    /// What is asked.
    pub request: ApprovalRequest,
    /// When it was asked.
    pub asked: Timestamp,
    /// Who answered it, if somebody did. The run has not used the answer yet.
    pub answered_by: Option<String>,
}

impl RecordedQuestion {
    /// Returns the id by which people name it: the beginning of the run's id, and some digits of its own.
    pub fn id(&self) -> String {
        question_id(self.run, &self.request.id)
    }

    /// Returns whether its time is over.
    pub fn has_expired(&self) -> bool {
        self.request.expires.is_some_and(|expires| expires <= Timestamp::now())
    }
}

/// Returns the id by which people name a question of a run.
pub fn question_id(run: RunId, question: &Key) -> String {
    format!("{}-{}", short_id(run), Digest::hash(question.as_str()).prefix(KEY_DIGITS))
}

/// Why an answer is not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The run asks nothing of this id.
    #[error("there is no such question")]
    NotAsked,
    /// Somebody was first.
    #[error("it was answered by {by} at {}", at.strftime("%Y-%m-%d %H:%M:%S UTC"))]
    Answered {
        /// Who.
        by: String,
        /// When.
        at: Timestamp,
    },
    /// The run has decided already, or needs no answer any more.
    #[error("the run does not wait for it any more")]
    Closed,
    /// Its time is over.
    #[error("it could be answered until {}", at.strftime("%Y-%m-%d %H:%M:%S UTC"))]
    Expired {
        /// When it ended.
        at: Timestamp,
    },
    /// The record cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What the table says about a question.
struct QuestionRow {
    stream: i64,
    state: String,
    expires: Option<i64>,
    answered: Option<i64>,
    by: Option<String>,
}

/// Answers a question, unless somebody did or it is too late.
pub(crate) fn answer(
    connection: &mut Connection,
    run: RunId,
    question: &Key,
    answer: &Answer,
    by: &str,
) -> Result<(), AnswerError> {
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(from_sqlite)?;
    let row = row(&transaction, run, question).map_err(from_sqlite)?.ok_or(AnswerError::NotAsked)?;
    let now = Timestamp::now();
    check(row.expires.map(time), row.answered.map(time), &row, now)?;
    let answer = serde_json::to_string(answer).map_err(corrupt)?;
    let nanoseconds = i64::try_from(now.as_nanosecond()).unwrap_or(i64::MAX);
    transaction
        .execute(
            "UPDATE approvals SET state = 'answered', answer = ?, answered = ?, answered_by = ? WHERE stream = ? AND id = ?",
            params![answer, nanoseconds, by, row.stream, question.as_str()],
        )
        .and_then(|_| transaction.commit())
        .map_err(from_sqlite)?;
    Ok(())
}

fn check(
    expires: Option<Timestamp>,
    answered: Option<Timestamp>,
    row: &QuestionRow,
    now: Timestamp,
) -> Result<(), AnswerError> {
    match (row.state.as_str(), expires) {
        ("open", Some(at)) if at <= now => Err(AnswerError::Expired { at }),
        ("open", _) => Ok(()),
        ("answered", _) => {
            let by = row.by.clone().unwrap_or_else(|| "somebody".to_owned());
            Err(AnswerError::Answered { by, at: answered.unwrap_or(now) })
        }
        _ => Err(AnswerError::Closed),
    }
}

fn row(connection: &Connection, run: RunId, question: &Key) -> rusqlite::Result<Option<QuestionRow>> {
    let sql = "SELECT stream, state, expires, answered, answered_by FROM approvals
        JOIN streams ON streams.id = approvals.stream WHERE uuid = ? AND approvals.id = ?";
    connection
        .query_row(sql, params![run.0.as_bytes(), question.as_str()], |row| {
            Ok(QuestionRow {
                stream: row.get(0)?,
                state: row.get(1)?,
                expires: row.get(2)?,
                answered: row.get(3)?,
                by: row.get(4)?,
            })
        })
        .optional()
}

/// Returns the answers that a run has not used yet, oldest first.
pub(crate) fn answers(connection: &Connection, run: RunId) -> Result<Vec<GivenAnswer>, StoreError> {
    let sql = "SELECT asked_seq, answer, answered_by, answered, stream FROM approvals
        WHERE stream = (SELECT id FROM streams WHERE uuid = ?) AND state = 'answered' ORDER BY answered";
    let mut query = connection.prepare_cached(sql).map_err(from_sqlite)?;
    let rows = query
        .query_map([run.0.as_bytes()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
        })
        .and_then(Iterator::collect::<rusqlite::Result<Vec<(i64, String, String, i64, i64)>>>)
        .map_err(from_sqlite)?;
    let mut answers = Vec::new();
    for (seq, answer, by, given, stream) in rows {
        let Some((request, _)) = request_of(connection, stream, seq)? else { continue };
        let answer = serde_json::from_str(&answer).map_err(corrupt)?;
        answers.extend(GivenAnswer::new(&request, answer, by, time(given)));
    }
    Ok(answers)
}

/// An answer that its run has not used yet, as the table has it.
pub(crate) struct UnusedAnswer {
    question: String,
    answer: String,
    by: String,
    given: i64,
}

/// Reads the answers that a run has not used yet from a record that may be damaged.
pub(crate) fn unused_answers(connection: &Connection, stream: i64) -> rusqlite::Result<Vec<UnusedAnswer>> {
    let sql =
        "SELECT id, answer, answered_by, answered FROM approvals WHERE stream = ? AND state = 'answered'";
    let mut query = connection.prepare_cached(sql)?;
    let rows = query.query_map([stream], |row| {
        Ok(UnusedAnswer { question: row.get(0)?, answer: row.get(1)?, by: row.get(2)?, given: row.get(3)? })
    });
    rows?.collect()
}

/// Keeps an answer to a question that is open.
pub(crate) fn keep_answer(
    connection: &Connection,
    run: RunId,
    answer: &UnusedAnswer,
) -> Result<(), StoreError> {
    let sql = "UPDATE approvals SET state = 'answered', answer = ?, answered = ?, answered_by = ?
        WHERE stream = (SELECT id FROM streams WHERE uuid = ?) AND id = ? AND state = 'open'";
    let values = params![answer.answer, answer.given, answer.by, run.0.as_bytes(), answer.question];
    connection
        .prepare_cached(sql)
        .and_then(|mut update| update.execute(values))
        .map_err(from_sqlite)
        .map(drop)
}

/// Reads a request from its event.
fn request_of(
    connection: &Connection,
    stream: i64,
    seq: i64,
) -> Result<Option<(ApprovalRequest, Timestamp)>, StoreError> {
    let found: Option<(String, i64)> = connection
        .prepare_cached("SELECT body, time FROM events WHERE stream = ? AND seq = ?")
        .and_then(|mut query| query.query_row([stream, seq], |row| Ok((row.get(0)?, row.get(1)?))).optional())
        .map_err(from_sqlite)?;
    let Some((body, asked)) = found else { return Ok(None) };
    match body_of(connection, &body)? {
        EventBody::ApprovalRequested(request) => Ok(Some(((*request).clone(), time(asked)))),
        _ => Ok(None),
    }
}

impl Reader {
    /// Lists the questions of all runs that have not been decided about, oldest first: those that nobody has answered, and
    /// those whose answer the run has not used yet.
    pub fn questions(&self) -> Result<Vec<RecordedQuestion>, StoreError> {
        let sql = "SELECT uuid, projects.root, approvals.stream, asked_seq, answered_by FROM approvals
            JOIN streams ON streams.id = approvals.stream LEFT JOIN projects ON projects.id = streams.project
            WHERE state IN ('open', 'answered') ORDER BY asked";
        let mut query = self.connection.prepare_cached(sql).map_err(from_sqlite)?;
        let rows = query
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))
            .and_then(Iterator::collect::<rusqlite::Result<Vec<QuestionColumns>>>)
            .map_err(from_sqlite)?;
        let mut questions = Vec::new();
        for (uuid, project, stream, seq, answered_by) in rows {
            let Some((request, asked)) = request_of(&self.connection, stream, seq)? else { continue };
            questions.push(RecordedQuestion {
                run: RunId(Uuid::from_bytes(uuid)),
                project: project.map(PathBuf::from),
                request,
                asked,
                answered_by,
            });
        }
        Ok(questions)
    }

    /// Lists the parked runs of which every question has an answer, or can have none any more, oldest first.
    pub fn answered_runs(&self) -> Result<Vec<RunId>, StoreError> {
        let sql = "SELECT uuid FROM streams WHERE kind = 0 AND status = 'parked' AND NOT EXISTS (
            SELECT 1 FROM approvals WHERE stream = streams.id AND state = 'open' AND (expires IS NULL OR expires > ?))
            ORDER BY began";
        let now = i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX);
        let mut query = self.connection.prepare_cached(sql).map_err(from_sqlite)?;
        let rows = query.query_map([now], |row| Ok(RunId(Uuid::from_bytes(row.get(0)?))));
        rows.and_then(Iterator::collect).map_err(from_sqlite)
    }
}

type QuestionColumns = ([u8; 16], Option<String>, i64, i64, Option<String>);
