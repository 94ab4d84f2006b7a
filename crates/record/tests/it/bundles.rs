//! The files of a project: kept once, read back, and removed with the last run that names them.

use std::sync::Arc;

use llm_do_core::{BundledFile, Digest, Event, EventBody, ProjectBundle, ProjectState, RunId};
use llm_do_record::Record;
use llm_do_runtime::{Durability, Store};
use rusqlite::Connection;

use crate::support::{event, run_id, started};

pub(crate) fn bundle(text: &str) -> Arc<ProjectBundle> {
    let mut bundle = ProjectBundle::default();
    bundle.insert("main.agent", BundledFile::new(text));
    bundle.insert("empty.py", BundledFile::new(""));
    bundle.insert("large.py", BundledFile::new("x".repeat(llm_do_core::MAX_BUNDLED_BYTES + 1)));
    Arc::new(bundle)
}

fn naming(started: &Event, bundle: Digest) -> Arc<Event> {
    let mut event = started.clone();
    if let EventBody::RunStarted(start) = &mut event.body {
        start.bundle = Some(bundle);
    }
    Arc::new(event)
}

pub(crate) async fn record_run(record: &Record, run: RunId, bundle: &Arc<ProjectBundle>) {
    let writer = record.begin(run).await.unwrap();
    writer.keep_bundle(bundle.digest(), bundle);
    let event = naming(&started(run), bundle.digest());
    writer.enqueue(&event, Durability::Process).unwrap().await.unwrap();
}

pub(crate) async fn remove(record: &Record, run: RunId) {
    let listed = record.reader().unwrap().run(run).unwrap().unwrap();
    assert_eq!(record.remove(vec![listed]).await, Ok(1));
}

fn count(record: &Record, table: &str) -> i64 {
    let connection = Connection::open(record.path()).unwrap();
    connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn two_hundred_runs_of_one_project_keep_its_files_once() {
    let directory = tempfile::tempdir().unwrap();
    let record = Record::open(directory.path().join("record.db")).unwrap();
    let bundle = bundle("You sort mail.");
    for number in 0..200 {
        record_run(&record, run_id(number), &bundle).await;
    }
    // The large file is known by its digest.
    assert_eq!((count(&record, "bundles"), count(&record, "blobs"), count(&record, "streams")), (1, 2, 200));
    let read = record.bundle(bundle.digest()).await.unwrap().unwrap();
    assert_eq!(*read, *bundle);
    assert_eq!(
        record.reader().unwrap().bundle(bundle.digest()).unwrap(),
        Some(ProjectBundle::clone(&bundle))
    );
    assert_eq!(record.bundle(Digest::hash("other")).await.unwrap(), None);
}

#[tokio::test]
async fn files_go_with_the_last_run_that_names_them() {
    let directory = tempfile::tempdir().unwrap();
    let record = Record::open(directory.path().join("record.db")).unwrap();
    let (old, new) = (bundle("old"), bundle("new"));
    for (number, bundle) in [&old, &old, &new].into_iter().enumerate() {
        record_run(&record, run_id(number as u128), bundle).await;
    }
    remove(&record, run_id(0)).await;
    assert_eq!(record.bundle(old.digest()).await.unwrap().as_deref(), Some(&*old));
    remove(&record, run_id(1)).await;
    assert_eq!(record.bundle(old.digest()).await.unwrap(), None);
    // The empty file belongs to both.
    assert_eq!(record.bundle(new.digest()).await.unwrap().as_deref(), Some(&*new));
    assert_eq!(count(&record, "blobs"), 2);
}

#[tokio::test]
async fn a_run_that_is_continued_names_the_files_with_which_it_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let record = Record::open(directory.path().join("record.db")).unwrap();
    let (old, new) = (bundle("old"), bundle("new"));
    record_run(&record, run_id(1), &old).await;
    let claimed = record.claim(run_id(1)).await.unwrap();
    claimed.writer.keep_bundle(new.digest(), &new);
    let state = Box::new(ProjectState { bundle: Some(new.digest()), ..ProjectState::default() });
    let resumed = EventBody::RunResumed {
        changed: true,
        changes: Default::default(),
        state,
        build: String::new(),
        limits: None,
    };
    let resumed = event(run_id(1), 1, "", resumed);
    claimed.writer.enqueue(&resumed, Durability::Process).unwrap().await.unwrap();
    drop(claimed);
    record_run(&record, run_id(2), &new).await;
    remove(&record, run_id(2)).await;
    assert_eq!(record.bundle(new.digest()).await.unwrap().as_deref(), Some(&*new));
    assert_eq!(record.bundle(old.digest()).await.unwrap(), None);
}
