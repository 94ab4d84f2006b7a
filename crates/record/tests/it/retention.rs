//! Old runs are removed by themselves.

use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use llm_do_core::{Event, EventBody, Payload, RunId, RunStart, Status};
use llm_do_record::{Reader, Record, Retention, RetentionReport, RunFilter};
use llm_do_runtime::{Durability, Store};
use serde_json::json;
use std::sync::Arc;

use crate::support::{ended, event, run_id, started};

const AMPLE: Duration = Duration::from_secs(60);

/// Records a run that began and ended so many days ago; without a status, it has no end.
async fn record_run(
    record: &Record,
    number: u128,
    days_ago: i64,
    status: Option<Status>,
    text: &str,
) -> RunId {
    let run = run_id(number << 64);
    let writer = record.begin(run).await.unwrap();
    let mut start = Event::clone(&started(run));
    let pin = llm_do_core::Digest::hash("pin");
    start.body = EventBody::RunStarted(Box::new(RunStart::new("main", Payload::new(json!(text)), pin)));
    let mut events = vec![start];
    events.extend(status.map(|status| Event::clone(&event(run, 1, "", ended(status)))));
    for mut event in events {
        event.time = Timestamp::now() - SignedDuration::from_hours(24 * days_ago);
        writer.enqueue(&Arc::new(event), Durability::Process).unwrap().await.unwrap();
    }
    run
}

fn left(path: &Path) -> Vec<RunId> {
    let mut runs: Vec<RunId> = Reader::open(path)
        .unwrap()
        .unwrap()
        .runs(&RunFilter::default())
        .unwrap()
        .iter()
        .map(|run| run.id)
        .collect();
    runs.sort();
    runs
}

/// Lets a day pass since the last sweep.
fn a_day_later(path: &Path) {
    rusqlite::Connection::open(path).unwrap().execute("UPDATE meta SET value = value - 90000", []).unwrap();
}

fn kept(report: &RetentionReport) -> Vec<RunId> {
    report.kept.iter().map(|run| run.id).collect()
}

#[tokio::test]
async fn runs_that_ended_long_ago_are_removed_once_a_day_and_those_that_can_be_resumed_stay() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let record = Record::open(&path).unwrap();
    let done = Some(Status::Done);
    record_run(&record, 1, 91, done, "old").await;
    let cut_off = record_run(&record, 2, 120, None, "cut off").await;
    let stopped = record_run(&record, 3, 100, Some(Status::Interrupted), "stopped").await;
    let recent = record_run(&record, 4, 89, done, "recent").await;
    let running = run_id(5 << 64);
    let writer = record.begin(running).await.unwrap();
    writer.enqueue(&started(running), Durability::Process).unwrap().await.unwrap();

    let report = record.apply_retention(Retention::default(), AMPLE).await.unwrap().unwrap();
    assert_eq!((report.removed, kept(&report)), (1, vec![cut_off, stopped]));
    assert_eq!(left(&path), [cut_off, stopped, recent, running]);

    record_run(&record, 6, 200, done, "old as well").await;
    assert_eq!(record.apply_retention(Retention::default(), AMPLE).await.unwrap(), None);
    assert_eq!(left(&path).len(), 5);
    a_day_later(&path);
    assert_eq!(record.apply_retention(Retention::default(), AMPLE).await.unwrap().unwrap().removed, 1);
    let all = Retention { keep_days: 0, ..Retention::default() };
    a_day_later(&path);
    assert_eq!(record.apply_retention(all, AMPLE).await.unwrap().unwrap().removed, 1);
    assert_eq!(left(&path), [cut_off, stopped, running]);
}

#[tokio::test]
async fn the_runs_that_ended_first_are_removed_until_the_record_is_small_enough() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let record = Record::open(&path).unwrap();
    let shared = "shared ".repeat(20_000);
    let mut runs = Vec::new();
    for number in 1..=9_u128 {
        let text = format!("{number} ").repeat(100_000);
        let text = if number == 9 { shared.clone() } else { text };
        let status = if number == 2 { Status::Interrupted } else { Status::Done };
        let days_ago = 20 - i64::try_from(number).unwrap();
        runs.push(record_run(&record, number, days_ago, Some(status), &text).await);
    }
    runs.push(record_run(&record, 10, 30, Some(Status::Done), &shared).await);
    let retention = Retention { keep_bytes: 1_000_000, ..Retention::default() };
    let report = record.apply_retention(retention, AMPLE).await.unwrap().unwrap();
    assert_eq!(kept(&report), [runs[1]]);
    let left = left(&path);
    assert_eq!(left.len() + report.removed, 10);
    assert!((2..6).contains(&left.len()), "{left:?}");
    assert!(left.contains(&runs[1]) && left.contains(&runs[8]) && !left.contains(&runs[9]), "{left:?}");
    // A value that a run shared with a removed one is still there.
    assert_eq!(record.read(runs[8], None).await.unwrap().len(), 2);
    drop(record);
    let size = std::fs::metadata(&path).unwrap().len();
    assert!(size < 1_000_000, "{size}");
}

#[tokio::test]
async fn a_sweep_that_has_no_time_left_goes_on_the_next_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let record = Record::open(&path).unwrap();
    for number in 0..5 {
        record_run(&record, number, 100, Some(Status::Done), "old").await;
    }
    assert_eq!(record.apply_retention(Retention::default(), Duration::ZERO).await.unwrap(), None);
    assert_eq!(left(&path).len(), 5);
    assert_eq!(record.apply_retention(Retention::default(), AMPLE).await.unwrap().unwrap().removed, 5);
}
