//! Questions of runs: answered once, in time, and only while the run waits for them.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use llm_do_core::{
    Access, Answer, ApprovalRequest, Digest, Event, EventBody, Key, Payload, RunId, Status, UsageByModel,
};
use llm_do_record::{AnswerError, Record};
use llm_do_runtime::{Durability, RunWriter, Store};
use serde_json::json;

use crate::support::{event, run_id, started};

pub(crate) fn request(digest: &str, expires: Option<Timestamp>) -> ApprovalRequest {
    ApprovalRequest {
        id: Key::from("1/t1/tool/0"),
        path: "main > pay".to_owned(),
        agent: "main".into(),
        name: "pay".into(),
        own_name: None,
        toolset: None,
        arguments: Payload::new(json!({"amount": 7})),
        access: Access::Write,
        description: "pay 7".to_owned(),
        reason: "it must ask".to_owned(),
        preview: None,
        subjects: Vec::new(),
        attachments: Vec::new(),
        scopes: Vec::new(),
        edit_problem: None,
        digest: Some(Digest::hash(digest)),
        expires,
    }
}

pub(crate) fn asked(run: RunId, seq: u64, request: ApprovalRequest) -> Arc<Event> {
    event(run, seq, "1/t1/tool/0", EventBody::ApprovalRequested(Arc::new(request)))
}

fn ended(run: RunId, seq: u64, status: Status) -> Arc<Event> {
    let usage = UsageByModel::default();
    event(run, seq, "", EventBody::RunFinished { status, output: None, error: None, usage, duration_ms: 1 })
}

async fn write(writer: &Arc<dyn RunWriter>, events: impl IntoIterator<Item = Arc<Event>>) {
    for event in events {
        writer.enqueue(&event, Durability::Process).unwrap().await.unwrap();
    }
}

pub(crate) async fn answer(record: &Record, run: RunId, answer: Answer, by: &str) -> Result<(), AnswerError> {
    record.answer(run, Key::from("1/t1/tool/0"), answer, by.to_owned()).await
}

fn record(directory: &tempfile::TempDir) -> Record {
    Record::open(directory.path().join("record.db")).unwrap()
}

#[tokio::test]
async fn the_first_answer_counts_and_is_read_by_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let (record, run) = (record(&directory), run_id(1));
    let writer = record.begin(run).await.unwrap();
    write(&writer, [started(run), asked(run, 1, request("a", None))]).await;
    assert_eq!(answer(&record, run_id(2), Answer::Once, "ada").await, Err(AnswerError::NotAsked));
    assert_eq!(answer(&record, run, Answer::Once, "ada").await, Ok(()));
    let second = answer(&record, run, Answer::Deny("no".into()), "bob").await;
    assert!(matches!(&second, Err(AnswerError::Answered { by, .. }) if by == "ada"), "{second:?}");

    let answers = record.answers(run).await.unwrap();
    let [given] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((&given.answer, &*given.by, given.digest), (&Answer::Once, "ada", Digest::hash("a")));
    let questions = record.reader().unwrap().questions().unwrap();
    assert_eq!(questions[0].answered_by.as_deref(), Some("ada"));
}

#[tokio::test]
async fn a_question_that_is_put_again_keeps_its_answer_only_if_it_is_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let (record, run) = (record(&directory), run_id(1));
    let writer = record.begin(run).await.unwrap();
    write(&writer, [started(run), asked(run, 1, request("a", None))]).await;
    answer(&record, run, Answer::Once, "ada").await.unwrap();
    write(&writer, [asked(run, 2, request("a", None))]).await;
    assert_eq!(record.answers(run).await.unwrap().len(), 1);
    write(&writer, [asked(run, 3, request("b", None))]).await;
    assert_eq!(record.answers(run).await.unwrap(), []);

    // An edit that did not fit is not an answer to the question about it.
    answer(&record, run, Answer::Edit(json!({})), "ada").await.unwrap();
    let problem = ApprovalRequest { edit_problem: Some("no".into()), ..request("b", None) };
    write(&writer, [asked(run, 4, problem)]).await;
    assert_eq!(record.answers(run).await.unwrap(), []);
    assert_eq!(answer(&record, run, Answer::Once, "bob").await, Ok(()));
}

#[tokio::test]
async fn nothing_is_answered_too_late() {
    let directory = tempfile::tempdir().unwrap();
    let (record, run) = (record(&directory), run_id(1));
    let writer = record.begin(run).await.unwrap();
    let past = Timestamp::now() - SignedDuration::from_secs(1);
    write(&writer, [started(run), asked(run, 1, request("a", Some(past)))]).await;
    assert_eq!(answer(&record, run, Answer::Once, "ada").await, Err(AnswerError::Expired { at: past }));

    write(&writer, [asked(run, 2, request("a", None)), ended(run, 3, Status::Parked)]).await;
    let reader = record.reader().unwrap();
    assert_eq!(reader.answered_runs().unwrap(), []);
    answer(&record, run, Answer::Once, "ada").await.unwrap();
    assert_eq!(reader.answered_runs().unwrap(), [run]);
    // A run that has its end waits for nothing.
    write(&writer, [ended(run, 4, Status::Denied)]).await;
    assert_eq!(reader.questions().unwrap(), []);
    assert_eq!(answer(&record, run, Answer::Once, "ada").await, Err(AnswerError::Closed));
}
