//! Damaged records: set aside, and what can be read of them is copied.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use llm_do_core::{Answer, Event, EventBody, RunId, Status};
use llm_do_record::{Reader, Record, RepairOutcome, RunFilter, damaged_files, is_database};
use llm_do_runtime::{Durability, Store, StoreError};
use llm_do_testing::Chance;

use crate::support::{ended, event, random_event, run_id, started};
use crate::{bundles, questions};

const PAGE: usize = 8 * 1024;

/// Overwrites a page of a file, as a broken disk may do.
fn destroy(path: &Path, page: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    let mut chance = Chance::new(page as u64);
    bytes[(page - 1) * PAGE..page * PAGE].iter_mut().for_each(|byte| *byte = (chance.bits() >> 9) as u8);
    std::fs::write(path, bytes).unwrap();
}

fn root_page(path: &Path, table: &str) -> usize {
    let connection = rusqlite::Connection::open(path).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?";
    connection.query_row(sql, [table], |row| row.get::<_, i64>(0)).unwrap().try_into().unwrap()
}

async fn written(path: &Path, runs: u64, events: u64) -> Vec<(RunId, Vec<Arc<Event>>)> {
    let record = Record::open(path).unwrap();
    let mut all = Vec::new();
    for number in 0..runs {
        let run = run_id(u128::from(number) << 64);
        let mut chance = Chance::new(number);
        let writer = record.begin(run).await.unwrap();
        for seq in 0..events {
            let event = match seq {
                0 => started(run),
                _ if seq + 1 == events => event(run, seq, "", ended(Status::Interrupted)),
                _ => random_event(&mut chance, run, seq),
            };
            drop(writer.enqueue(&event, Durability::Buffered).unwrap());
        }
        all.push((run, record.read(run, None).await.unwrap()));
    }
    drop(record);
    // So that what is destroyed is not in the log as well.
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    all
}

#[tokio::test]
async fn a_damaged_record_is_set_aside_and_a_new_one_begins() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    written(&path, 1, 3).await;
    destroy(&path, 1);
    let bytes = std::fs::read(&path).unwrap();
    assert!(matches!(Record::open(&path), Err(StoreError::Corrupt(_))));
    assert_eq!(std::fs::read(&path).unwrap(), bytes);

    let (record, damaged) = Record::open_or_set_aside(&path).unwrap();
    let damaged = damaged.unwrap();
    assert_eq!(damaged_files(&path), std::slice::from_ref(&damaged));
    assert_eq!(std::fs::read(&damaged).unwrap(), bytes);
    assert!(record.reader().unwrap().runs(&RunFilter::default()).unwrap().is_empty());
    let error = record.repair_from(&damaged).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt(_)), "{error:?}");
    drop(record);
    assert_eq!(Record::open_or_set_aside(&path).unwrap().1, None);
}

#[tokio::test]
async fn of_many_that_find_a_record_damaged_one_sets_it_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    for round in 0..20_u64 {
        written(&path, 1, 3).await;
        destroy(&path, 1);
        let set_aside: usize = std::thread::scope(|scope| {
            let open = || {
                // As a process that still starts: it may be there before or after.
                let record = Record::open_or_set_aside(&path).unwrap();
                usize::from(record.1.is_some())
            };
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((set_aside, damaged_files(&path).len()), (1, 1), "round {round}");
        assert!(Record::open(&path).unwrap().reader().unwrap().problem().unwrap().is_none());
        damaged_files(&path).iter().for_each(|file| std::fs::remove_file(file).unwrap());
    }
}

#[tokio::test]
async fn damage_that_a_run_meets_sets_the_record_aside_when_it_is_opened_next() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    written(&path, 4, 20).await;
    destroy(&path, root_page(&path, "events"));
    // Opening reads nothing of it.
    let (record, damaged) = Record::open_or_set_aside(&path).unwrap();
    assert_eq!(damaged, None);
    let run = run_id(99);
    let writer = record.begin(run).await.unwrap();
    let refused = writer.enqueue(&started(run), Durability::Process).unwrap().await;
    assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{refused:?}");
    drop((writer, record));
    assert!(matches!(Record::open(&path), Err(StoreError::Corrupt(_))));
    assert!(Record::open_or_set_aside(&path).unwrap().1.is_some());
}

#[tokio::test]
async fn an_error_that_is_not_damage_leaves_the_record_where_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let run = written(&path, 1, 3).await[0].0;
    let record = Record::open(&path).unwrap();
    let writer = record.claim(run).await.unwrap().writer;
    let refused =
        writer.enqueue(&event(run, 17, "", ended(Status::Done)), Durability::Process).unwrap().await;
    assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{refused:?}");
    drop((writer, record));
    let (record, damaged) = Record::open_or_set_aside(&path).unwrap();
    assert_eq!((damaged, record.read(run, None).await.unwrap().len()), (None, 3));
}

/// The pages of a record, as many as a test has time for.
fn pages(path: &Path) -> Vec<usize> {
    let count = usize::try_from(std::fs::metadata(path).unwrap().len()).unwrap() / PAGE;
    let step = std::env::var("LLM_DO_RECORD_PAGE_STEP").map_or(count / 16, |step| step.parse().unwrap());
    (2..=count).step_by(step.max(1)).collect()
}

#[tokio::test]
async fn whatever_page_is_lost_every_run_is_copied_as_far_as_it_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let runs = written(&path, 12, 30).await;
    let mut cut = 0;
    for page in pages(&path) {
        let damaged: PathBuf = directory.path().join("record.db.damaged-1");
        std::fs::copy(&path, &damaged).unwrap();
        destroy(&damaged, page);
        let bytes = std::fs::read(&damaged).unwrap();
        let copy = directory.path().join(format!("copy{page}.db"));
        let record = Record::open(&copy).unwrap();
        let report = record.repair_from(&damaged).await.unwrap();
        assert_eq!(std::fs::read(&damaged).unwrap(), bytes, "page {page}: the damaged file was changed");
        let reader = Reader::open(&copy).unwrap().unwrap();
        for repaired in &report.runs {
            let (_, original) = runs.iter().find(|(run, _)| *run == repaired.id).unwrap();
            let copied = reader.events(repaired.id, None);
            match &repaired.outcome {
                RepairOutcome::Whole => assert_eq!(copied.unwrap(), *original, "page {page}"),
                RepairOutcome::Cut { events: 0, .. } => {
                    assert!(matches!(copied, Err(StoreError::NotFound { .. })), "page {page}");
                    cut += 1;
                }
                RepairOutcome::Cut { events, .. } => {
                    let kept = usize::try_from(*events).unwrap();
                    let copied = copied.unwrap();
                    assert_eq!(copied[..kept], original[..kept], "page {page}");
                    assert!(
                        matches!(copied.last().unwrap().body, EventBody::RunFinished { .. }),
                        "page {page}"
                    );
                    assert!(!reader.run(repaired.id).unwrap().unwrap().can_resume, "page {page}");
                    cut += 1;
                }
                other => panic!("page {page}: {other:?}"),
            }
        }
        assert!(report.runs.len() == runs.len() || report.unlisted.is_some(), "page {page}");
        // A second time, everything that could be copied is there.
        let again = record.repair_from(&damaged).await.unwrap();
        let is_new = |run: &llm_do_record::RepairedRun| matches!(run.outcome, RepairOutcome::Whole);
        assert!(!again.runs.iter().any(is_new), "page {page}");
    }
    assert!(cut > 3, "{cut} runs were cut");
}

#[test]
fn a_database_of_another_program_is_refused_and_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("places.sqlite");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE places (url TEXT)").unwrap();
    drop(other);
    let bytes = std::fs::read(&path).unwrap();
    let error = Record::open_or_set_aside(&path).unwrap_err();
    assert_eq!(error, StoreError::Other("it is the database of another program".to_owned()));
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert!(is_database(&path) && !is_database(directory.path().join("none")));
}

#[tokio::test]
async fn a_run_that_is_copied_keeps_the_files_of_its_project_and_the_answers_that_wait() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("record.db"), directory.path().join("copy.db"));
    let (run, other) = (run_id(1), run_id(2));
    let bundle = bundles::bundle("You pay bills.");
    {
        let record = Record::open(&path).unwrap();
        for run in [run, other] {
            bundles::record_run(&record, run, &bundle).await;
            let writer = record.claim(run).await.unwrap().writer;
            let asks = questions::asked(run, 1, questions::request("a", None));
            writer.enqueue(&asks, Durability::Process).unwrap().await.unwrap();
        }
        questions::answer(&record, run, Answer::Deny("too much".into()), "ada").await.unwrap();
    }
    let before = Record::open(&path).unwrap().answers(run).await.unwrap();
    assert_eq!(before.len(), 1);

    let record = Record::open(&copy).unwrap();
    record.repair_from(&path).await.unwrap();
    assert_eq!(record.answers(run).await.unwrap(), before);
    assert_eq!(record.answers(other).await.unwrap(), []);
    let answered = |run| {
        let listed = record.reader().unwrap().questions().unwrap();
        listed.into_iter().find(|question| question.run == run).unwrap().answered_by
    };
    assert_eq!((answered(run).as_deref(), answered(other)), (Some("ada"), None));
    assert_eq!(record.bundle(bundle.digest()).await.unwrap().unwrap(), bundle);
    // They go with the last run that names them.
    for run in [run, other] {
        bundles::remove(&record, run).await;
    }
    assert_eq!(record.bundle(bundle.digest()).await.unwrap(), None);
}

#[tokio::test]
async fn a_file_of_a_project_that_was_damaged_is_known_by_its_digest_only() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("record.db"), directory.path().join("copy.db"));
    let bundle = bundles::bundle("You pay bills.");
    bundles::record_run(&Record::open(&path).unwrap(), run_id(1), &bundle).await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    let forge = "UPDATE blobs SET body = CAST('You pay twice.' AS BLOB) WHERE body = ?";
    assert_eq!(connection.execute(forge, ["You pay bills.".as_bytes()]), Ok(1));
    drop(connection);

    let record = Record::open(&copy).unwrap();
    record.repair_from(&path).await.unwrap();
    let copied = record.bundle(bundle.digest()).await.unwrap().unwrap();
    assert_eq!(copied.get("main.agent").unwrap().text, None);
    assert_eq!(copied.get("empty.py"), bundle.get("empty.py"));
}
