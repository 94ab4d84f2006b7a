//! Lists, sums and damaged files.

use llm_do_core::{CallKind, CallResult, EventBody, Output, Status, Usage};
use llm_do_record::{FindError, Reader, Record, RecordedEvent, RecordedState, RunFilter};
use llm_do_runtime::{Durability, Store, StoreError};

use crate::support::{ended, event, run_id, started};

#[tokio::test]
async fn runs_are_listed_by_how_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let record = Record::open(&path).unwrap();
    let mut running = None;
    for (number, status) in [Some(Status::Done), Some(Status::Failed), None, None].into_iter().enumerate() {
        let run = run_id(number as u128);
        let writer = record.begin(run).await.unwrap();
        writer.enqueue(&started(run), Durability::Process).unwrap().await.unwrap();
        if let Some(status) = status {
            writer.enqueue(&event(run, 1, "", ended(status)), Durability::Process).unwrap().await.unwrap();
        }
        running = Some(writer);
    }
    let _running = running;
    record.read(run_id(0), None).await.unwrap();
    let reader = Reader::open(&path).unwrap().unwrap();
    let listed = |status: Option<&str>| {
        let filter = RunFilter { status: status.map(str::to_owned), ..RunFilter::default() };
        let mut runs: Vec<_> =
            reader.runs(&filter).unwrap().into_iter().map(|run| (run.id, run.state)).collect();
        runs.sort_by_key(|(id, _)| *id);
        runs
    };
    let all = [
        (run_id(0), RecordedState::Ended(Status::Done)),
        (run_id(1), RecordedState::Ended(Status::Failed)),
        (run_id(2), RecordedState::CutOff),
        (run_id(3), RecordedState::Running),
    ];
    assert_eq!(listed(None), all);
    assert_eq!(listed(Some("done")), all[..1]);
    assert_eq!(listed(Some("cut_off")), all[2..3]);
    assert_eq!(listed(Some("running")), all[3..]);
    assert!(reader.holder(run_id(3)).unwrap().unwrap().contains("on this machine since"));
    assert_eq!(reader.holder(run_id(2)).unwrap(), None);
    assert!(matches!(reader.find("0000"), Err(FindError::Several(runs)) if runs.len() == 4));
    assert!(matches!(reader.find("ffff"), Err(FindError::NotFound)));
    assert!(matches!(reader.find("abc"), Err(FindError::NoId)));
    assert!(matches!(reader.find("not hex"), Err(FindError::NoId)));
}

#[test]
fn a_file_that_is_no_record_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    std::fs::write(&path, "a diary, long enough to be read as the header of a database file. ".repeat(20))
        .unwrap();
    let error = Record::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt(_)), "{error:?}");
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("a diary"));
    assert!(Reader::open(directory.path().join("none.db")).unwrap().is_none());
}

#[test]
fn a_record_whose_creation_was_cut_off_holds_nothing_yet() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    std::fs::write(&path, "").unwrap();
    assert!(Reader::open(&path).unwrap().is_none());
    drop(Record::open(&path).unwrap());
    assert!(Reader::open(&path).unwrap().is_some());
}

#[tokio::test]
async fn a_run_that_was_cut_off_after_its_only_call_can_be_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let record = Record::open(directory.path().join("record.db")).unwrap();
    let run = run_id(0);
    let writer = record.begin(run).await.unwrap();
    let finished = EventBody::CallFinished {
        kind: CallKind::Agent,
        name: "main".into(),
        result: CallResult::Output(Output::text("done")),
        duration_ms: 1,
        ran_ms: None,
        usage: Usage::default(),
    };
    for event in [started(run), event(run, 1, "1", finished)] {
        writer.enqueue(&event, Durability::Process).unwrap().await.unwrap();
    }
    drop(writer);
    record.read(run, None).await.unwrap();
    let summary = record.reader().unwrap().run(run).unwrap().unwrap();
    assert_eq!((summary.state, summary.can_resume), (RecordedState::CutOff, true));
}

#[test]
fn a_record_of_a_newer_version_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    drop(Record::open(&path).unwrap());
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert_eq!(Record::open(&path).unwrap_err(), StoreError::Newer { found: 99, known: 1 });
    assert!(Reader::open(&path).unwrap().is_some());
}

#[tokio::test]
async fn events_of_a_newer_version_are_shown_and_keep_their_run_from_being_continued() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let record = Record::open(&path).unwrap();
    let run = run_id(1);
    let writer = record.begin(run).await.unwrap();
    for seq in 0..3 {
        let event = if seq == 0 { started(run) } else { event(run, seq, "1", ended(Status::Interrupted)) };
        writer.enqueue(&event, Durability::Process).unwrap().await.unwrap();
    }
    drop(writer);
    let newer = rusqlite::Connection::open(&path).unwrap();
    let body = r#"{"type": "agent_added", "creator": "main", "n": 18446744073709551615}"#;
    newer.execute("UPDATE events SET body = ? WHERE seq = 1", [body]).unwrap();

    let refused = record.claim(run).await.map(drop).unwrap_err();
    let expected =
        StoreError::UnknownEvent { run, kind: "agent_added".to_owned(), build: "another".to_owned() };
    assert_eq!(refused, expected);
    // The claim was given back.
    assert_eq!(record.claim(run).await.map(drop).unwrap_err(), expected);
    let recorded = record.reader().unwrap().recorded(run).unwrap();
    let RecordedEvent::Unknown(unknown) = &recorded[1] else { panic!("{recorded:?}") };
    assert_eq!((recorded.len(), unknown.seq, unknown.kind()), (3, 1, "agent_added"));
    let shown = unknown.to_value();
    assert_eq!((&shown["call"], &shown["creator"], &shown["seq"]), (&"1".into(), &"main".into(), &1.into()));
    assert_eq!(shown["n"], u64::MAX);
}

#[tokio::test]
async fn a_record_that_a_newer_program_has_changed_is_not_written_any_more() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let record = Record::open(&path).unwrap();
    let run = run_id(1);
    let writer = record.begin(run).await.unwrap();
    writer.enqueue(&started(run), Durability::Process).unwrap().await.unwrap();
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let late = event(run, 1, "", ended(Status::Done));
    let refused = writer.enqueue(&late, Durability::Process).unwrap().await;
    assert_eq!(refused, Err(StoreError::Newer { found: 99, known: 1 }));
    assert_eq!(record.reader().unwrap().newer_version(), Ok(Some(99)));
}
