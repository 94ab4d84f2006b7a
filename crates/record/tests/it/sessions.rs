//! Sessions in a record: listed, searched, continued, copied and forgotten.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use llm_do_core::{AgentSpec, ModelRequest, RunId, Status, ToolError};
use llm_do_models::{Script, instructed, replies, says};
use llm_do_record::{
    FindError, Reader, Record, RepairOutcome, Retention, RunFilter, SessionFilter, SessionStatus,
    SessionSummary,
};
use llm_do_runtime::{EntrySpec, PromptInput, ResumeError, Runtime, Session, StoreError};
use llm_do_testing::TestProject;

fn runtime(record: &Record) -> Runtime {
    let reply = |request: &ModelRequest<'_>| {
        let messages = request.conversation.messages();
        says(format!("answer {}: {}", messages.len(), messages.last().unwrap().text()))
    };
    let record = record.clone();
    TestProject::new()
        .agent(AgentSpec::new("main", "x"))
        .model(Script::new([replies(reply).when(instructed(""))]))
        .runtime(move |runtime| runtime.store(Arc::new(record)))
        .build()
}

async fn talk(runtime: &Runtime, texts: &[&str]) -> Session {
    let mut session = runtime.session("main");
    for text in texts {
        session.send(*text).await.unwrap();
    }
    session
}

fn list(path: &Path, search: Option<&str>) -> Vec<SessionSummary> {
    let filter = SessionFilter { search: search.map(str::to_owned), ..SessionFilter::default() };
    Reader::open(path).unwrap().unwrap().sessions(&filter).unwrap()
}

fn titles(sessions: &[SessionSummary]) -> Vec<&str> {
    sessions.iter().map(|session| &*session.title).collect()
}

#[tokio::test]
async fn sessions_are_listed_and_searched_and_runs_stay_runs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let record = Record::open(&path).unwrap();
    let runtime = runtime(&record);
    runtime.run("main", "no session").await.unwrap();
    let mut garden = talk(&runtime, &["Plant  a\nTREE in the garden", "and water it"]).await;
    let kitchen = talk(&runtime, &["Straße kochen"]).await;
    assert_eq!(list(&path, None)[0].state, SessionStatus::Open);
    let (garden_id, kitchen_id) = (garden.id().unwrap(), kitchen.id().unwrap());
    kitchen.close().await;

    // Its lock goes a moment later.
    while list(&path, None)[0].state == SessionStatus::Open {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let sessions = list(&path, None);
    assert_eq!(titles(&sessions), ["Straße kochen", "Plant a TREE in the garden"]);
    assert_eq!((sessions[0].turns, sessions[1].turns), (1, 2));
    assert_eq!((sessions[0].state, sessions[1].state), (SessionStatus::Closed, SessionStatus::Open));
    assert!(sessions[1].tokens_in > 0 && sessions[1].tokens_out > 0, "{sessions:?}");
    assert_eq!(sessions[0].entry, "main");
    // Whoever speaks last comes first.
    garden.send("is it green?").await.unwrap();
    assert_eq!(list(&path, None)[0].id, garden_id);

    for (words, found) in [
        ("tree", vec![garden_id]),
        ("STRASSE", vec![]),
        ("STRAßE", vec![kitchen_id]),
        ("ANSWER 3", vec![garden_id]),
        ("answer", vec![garden_id, kitchen_id]),
        ("%", vec![]),
    ] {
        let ids: Vec<RunId> = list(&path, Some(words)).iter().map(|session| session.id).collect();
        assert_eq!(ids, found, "{words}");
    }

    let reader = Reader::open(&path).unwrap().unwrap();
    let runs = reader.runs(&RunFilter::default()).unwrap();
    assert_eq!(runs.len(), 5, "the turns are runs, too");
    assert_eq!(runs.iter().filter(|run| run.session == Some(garden_id)).count(), 3);
    assert!(runs.iter().all(|run| run.is_turn == run.session.is_some() && !run.can_resume));
    let turns = reader.turns(garden_id).unwrap();
    let shown: Vec<_> = turns.iter().map(|turn| (turn.ordinal, &*turn.text, turn.status)).collect();
    let done = Some(Status::Done);
    assert_eq!(
        shown,
        [(1, "Plant  a\nTREE in the garden", done), (2, "and water it", done), (3, "is it green?", done)]
    );
    assert_eq!(turns[2].answer.as_deref(), Some("answer 5: is it green?"));

    garden.set_title("The garden").await;
    garden.go_back(2).await.unwrap();
    assert_eq!(list(&path, None)[0].title, "The garden");
    assert_eq!(reader.turns(garden_id).unwrap().len(), 1);
}

#[tokio::test]
async fn a_session_is_found_by_the_beginning_of_its_id() {
    let directory = tempfile::tempdir().unwrap();
    let record = Record::open(directory.path().join("record.db")).unwrap();
    let runtime = runtime(&record);
    let session = talk(&runtime, &["hello"]).await;
    let (id, run) = (session.id().unwrap(), runtime.run("main", "x").await.unwrap().id);
    let reader = record.reader().unwrap();
    assert_eq!(reader.find_session("last").unwrap().id, id);
    assert_eq!(reader.find_session(&id.to_string()[..8]).unwrap().id, id);
    assert!(matches!(reader.find_session(&run.to_string()), Err(FindError::NotFound)));
    assert!(matches!(reader.find(&id.to_string()), Err(FindError::NotFound)));
    assert!(matches!(reader.find_session("abc"), Err(FindError::NoId)));
}

#[tokio::test]
async fn a_session_goes_on_in_a_record_that_was_closed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let (id, messages) = {
        let runtime = runtime(&Record::open(&path).unwrap());
        let long = "long ".repeat(10_000);
        let session = talk(&runtime, &["hello", &long]).await;
        let kept = (session.id().unwrap(), session.messages().await);
        session.close().await;
        runtime.shutdown().await;
        kept
    };
    let runtime = runtime(&Record::open(&path).unwrap());
    let mut session = runtime.restore_session(id).await.unwrap();
    assert_eq!(session.messages().await, messages);
    assert!(session.send("on").await.unwrap().text().starts_with("answer 5"));
    let other = Record::open(&path).unwrap();
    let refused = self::runtime(&other).restore_session(id).await.err();
    assert!(matches!(refused, Some(ResumeError::Store(StoreError::Held { .. }))), "{refused:?}");
    let refused = other.forget_session(id).await;
    assert!(matches!(refused, Err(StoreError::Held { .. })), "{refused:?}");
}

#[tokio::test]
async fn nothing_is_left_of_a_session_that_is_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let record = Record::open(&path).unwrap();
    let runtime = runtime(&record);
    let kept = talk(&runtime, &["I like trees"]).await;
    let long = format!("{} the secret of the king", "x".repeat(600));
    let session = talk(&runtime, &["the secret of the queen", &long]).await;
    let id = session.id().unwrap();
    session.close().await;
    assert_eq!(record.forget_session(id).await, Ok(true));
    assert_eq!(record.forget_session(id).await, Ok(false));
    assert_eq!(titles(&list(&path, None)), ["I like trees"]);
    let reader = record.reader().unwrap();
    assert_eq!(reader.runs(&RunFilter::default()).unwrap().len(), 1);
    drop((reader, kept, runtime, record));
    for entry in std::fs::read_dir(directory.path()).unwrap().map(Result::unwrap) {
        let Ok(bytes) = std::fs::read(entry.path()) else { continue };
        let is_in = |text: &[u8]| bytes.windows(text.len()).any(|part| part == text);
        assert!(!is_in(b"the secret of the"), "{}", entry.path().display());
    }
}

#[tokio::test]
async fn old_sessions_are_removed_as_old_runs_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let record = Record::open(&path).unwrap();
    let runtime = runtime(&record);
    let (old, open) = (talk(&runtime, &["old"]).await, talk(&runtime, &["old, but open"]).await);
    old.close().await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    let day: i64 = 24 * 60 * 60 * 1_000_000_000;
    connection.execute("UPDATE streams SET began = began - ?1, ended = ended - ?1", [100 * day]).unwrap();
    talk(&runtime, &["new"]).await.close().await;
    let report =
        record.apply_retention(Retention::default(), Duration::from_secs(60)).await.unwrap().unwrap();
    assert_eq!(titles(&list(&path, None)), ["new", "old, but open"]);
    assert_eq!((report.removed, report.kept.len()), (3, 0), "a session, and two runs");
    // Its messages do not need its runs.
    let (id, messages) = (open.id().unwrap(), open.messages().await);
    open.close().await;
    assert_eq!(runtime.restore_session(id).await.unwrap().messages().await, messages);
}

#[tokio::test]
async fn sessions_are_copied_from_a_damaged_record() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("record.db"), directory.path().join("copy.db"));
    let (id, messages) = {
        let record = Record::open(&path).unwrap();
        let mut session = talk(&runtime(&record), &["one", "two"]).await;
        session.go_back(2).await.unwrap();
        let fork = session.fork().await;
        fork.close().await;
        session.send("three").await.unwrap();
        (session.id().unwrap(), session.messages().await)
    };
    let record = Record::open(&copy).unwrap();
    let report = record.repair_from(&path).await.unwrap();
    assert!(report.runs.iter().all(|run| run.outcome == RepairOutcome::Whole), "{report:?}");
    let before = list(&path, None);
    assert_eq!(list(&copy, None), before);
    let session = runtime(&record).restore_session(id).await.unwrap();
    assert_eq!(session.messages().await, messages);
    let runs = record.reader().unwrap().runs(&RunFilter::default()).unwrap();
    assert!(runs.len() == 3 && runs.iter().all(|run| run.session == Some(id)), "{runs:?}");
}

#[tokio::test]
async fn what_code_answered_is_listed_although_it_has_no_conversation() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let record = Record::open(&path).unwrap();
    let entry = EntrySpec::new("echo", "Answers", |input: PromptInput, _| async move {
        match &*input.input {
            "fail" => Err(ToolError::new("no")),
            text => Ok(format!("heard {text}")),
        }
    });
    let kept = record.clone();
    let runtime = TestProject::new()
        .entry(entry.unwrap())
        .runtime(move |runtime| runtime.store(Arc::new(kept)))
        .build();
    let mut session = runtime.session("echo");
    session.send("one").await.unwrap();
    session.send("fail").await.unwrap_err();
    let id = session.id().unwrap();
    session.close().await;
    let turns = Reader::open(&path).unwrap().unwrap().turns(id).unwrap();
    let shown: Vec<_> = turns.iter().map(|turn| (&*turn.text, turn.answer.as_deref())).collect();
    assert_eq!(shown, [("one", Some("heard one"))]);
    let report = runtime.restore_session(id).await.unwrap().send("two").await.unwrap();
    assert_eq!(&*report.text(), "heard two");
}
