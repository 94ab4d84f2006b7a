//! A run has one writer at a time.

use std::sync::{Arc, Barrier};

use llm_do_core::EventBody;
use llm_do_record::{Record, RecordedState, RunFilter};
use llm_do_runtime::{Durability, Store, StoreError};
use llm_do_testing::Chance;

use crate::support::{event, random_event, run_id, started};

fn rounds() -> u64 {
    std::env::var("LLM_DO_RECORD_ROUNDS").map_or(40, |count| count.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_claim_a_run_one_is_told_who_has_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let (one, other) = (Record::open(&path).unwrap(), Record::open(&path).unwrap());
    for round in 0..rounds() {
        let run = run_id(u128::from(round));
        let writer = one.begin(run).await.unwrap();
        writer.enqueue(&started(run), Durability::Process).unwrap().await.unwrap();
        drop(writer);
        // Whoever asks first after the release has it.
        one.read(run, None).await.unwrap();
        let (first, second) = tokio::join!(one.claim(run), other.claim(run));
        let (won, lost) = if first.is_ok() { (first, second) } else { (second, first) };
        let won = won.unwrap_or_else(|error| panic!("nobody has run {round}: {error}"));
        let Err(StoreError::Held { holder, .. }) = lost else { panic!("both have run {round}") };
        assert!(holder.starts_with(&format!("process {} on this machine", std::process::id())), "{holder}");
        won.writer
            .enqueue(&random_event(&mut Chance::new(round), run, 1), Durability::Process)
            .unwrap()
            .await
            .unwrap();
        assert_eq!(one.read(run, None).await.unwrap().len(), 2);
    }
}

#[tokio::test]
async fn a_writer_that_lost_its_run_writes_nothing_more() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let (one, other) = (Record::open(&path).unwrap(), Record::open(&path).unwrap());
    let run = run_id(0);
    let writer = one.begin(run).await.unwrap();
    writer.enqueue(&started(run), Durability::Process).unwrap().await.unwrap();
    // A lock that is gone though its process lives, as after somebody removed the file.
    std::fs::remove_dir_all(directory.path().join("record.db-claims")).unwrap();
    let claimed = other.claim(run).await.unwrap();
    let mut chance = Chance::new(1);
    let late = random_event(&mut chance, run, 1);
    let refused = writer.enqueue(&late, Durability::Process).unwrap().await;
    assert!(matches!(refused, Err(StoreError::Held { .. })), "{refused:?}");
    assert!(matches!(writer.enqueue(&late, Durability::Buffered), Err(StoreError::Held { .. })));
    claimed.writer.enqueue(&late, Durability::Process).unwrap().await.unwrap();
    assert_eq!(other.read(run, None).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_outlives_its_process_for_a_moment_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let record = Record::open(&path).unwrap();
    let run = run_id(0);
    let writer = record.begin(run).await.unwrap();
    writer.enqueue(&started(run), Durability::Process).unwrap().await.unwrap();
    drop(writer);
    record.read(run, None).await.unwrap();
    // A killed process, and its child, which has the lock between its fork and its start of a program.
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    let holder: String = connection.query_row("SELECT holder FROM streams", [], |row| row.get(0)).unwrap();
    let holder = holder.replace(&format!(":{}:", std::process::id()), &format!(":{}:", gone.id()));
    connection.execute("UPDATE streams SET holder = ?", [holder]).unwrap();
    let claim = directory.path().join("record.db-claims").join(run.to_string());
    let lock = std::fs::File::create(claim).unwrap();
    lock.lock().unwrap();
    let listed = record.reader().unwrap().run(run).unwrap().unwrap();
    assert_eq!((listed.state, listed.can_resume), (RecordedState::CutOff, true));
    let release = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        drop(lock);
    });
    let claimed = record.claim(run).await.map(|claimed| claimed.events.len());
    assert_eq!(claimed, Ok(1));
    release.join().unwrap();
}

#[test]
fn of_many_that_open_a_new_record_at_once_all_can_write() {
    for round in 0..rounds() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.db");
        let together = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    together.wait();
                    Record::open(&path).map(drop).unwrap_or_else(|error| panic!("round {round}: {error}"));
                });
            }
        });
    }
}

#[tokio::test]
async fn a_run_that_nobody_recorded_cannot_be_claimed() {
    let directory = tempfile::tempdir().unwrap();
    let record = Record::open(directory.path().join("record.db")).unwrap();
    let run = run_id(7);
    let claimed = record.claim(run).await.map(drop);
    assert_eq!(claimed, Err(StoreError::NotFound { run }));
    assert!(!directory.path().join("record.db-claims").join(run.to_string()).exists());
}

#[tokio::test]
async fn a_run_that_went_on_since_it_was_listed_is_not_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let (one, other) = (Record::open(&path).unwrap(), Record::open(&path).unwrap());
    let run = run_id(0);
    let writer = one.begin(run).await.unwrap();
    writer.enqueue(&started(run), Durability::Process).unwrap().await.unwrap();
    drop(writer);
    one.read(run, None).await.unwrap();
    let listed = other.reader().unwrap().runs(&RunFilter::default()).unwrap();
    assert_eq!(listed[0].state, RecordedState::CutOff);

    let claimed = one.claim(run).await.unwrap();
    let next = random_event(&mut Chance::new(2), run, 1);
    claimed.writer.enqueue(&next, Durability::Process).unwrap().await.unwrap();
    drop(claimed);
    one.read(run, None).await.unwrap();
    assert_eq!(other.remove(listed).await, Ok(0));
    assert_eq!(one.read(run, None).await.unwrap().len(), 2);
    let listed = other.reader().unwrap().runs(&RunFilter::default()).unwrap();
    assert_eq!(other.remove(listed).await, Ok(1));
}

#[tokio::test]
async fn files_can_be_read_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let record = Record::open(directory.path().join("state/record.db")).unwrap();
    let run = run_id(1);
    let writer: Arc<_> = record.begin(run).await.unwrap();
    writer.enqueue(&started(run), Durability::Power).unwrap().await.unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let state = directory.path().join("state");
    assert_eq!([mode(&state), mode(&state.join("record.db-claims"))], [0o700, 0o700]);
    for file in ["record.db", "record.db-wal", "record.db-shm"] {
        assert_eq!(mode(&state.join(file)), 0o600, "{file}");
    }
}

#[tokio::test]
async fn at_the_end_a_long_log_is_emptied_though_others_have_the_record_open() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let record = Record::open(&path).unwrap();
    let reader = record.reader().unwrap();
    let run = run_id(1);
    let writer = record.begin(run).await.unwrap();
    writer.enqueue(&started(run), Durability::Process).unwrap().await.unwrap();
    assert_eq!(reader.events(run, None).unwrap().len(), 1);
    let log = || std::fs::metadata(directory.path().join("record.db-wal")).unwrap().len();
    drop((writer, record));
    assert!(log() > 0, "a short one is left to the next process");

    let record = Record::open(&path).unwrap();
    let claimed = record.claim(run).await.unwrap();
    let long = event(run, 1, "1", EventBody::Notice { text: "x".repeat(2_000_000) });
    claimed.writer.enqueue(&long, Durability::Process).unwrap().await.unwrap();
    drop((claimed, record));
    assert_eq!(log(), 0);
    assert_eq!(reader.events(run, None).unwrap().len(), 2);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_keeps_the_record_locked_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let record = Record::open(&path).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; DELETE FROM meta").unwrap();
    let run = run_id(1);
    let writer = record.begin(run).await.unwrap();
    let Err(StoreError::Io(message)) = writer.enqueue(&started(run), Durability::Process).unwrap().await
    else {
        panic!("it was written")
    };
    let holder = format!("process {} on this machine kept the record locked", std::process::id());
    assert!(message.starts_with(&holder), "{message}");
}
