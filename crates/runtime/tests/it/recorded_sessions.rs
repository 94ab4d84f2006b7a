//! Sessions that go on in another process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::pending;
use llm_do_core::{
    AgentSpec, Approval, DescriptorSettings, Effect, Event, EventBody, FromCall, ModelErrorKind,
    ModelRequest, NeedSpec, Output, RunId, Status,
};
use llm_do_models::{Script, asks, fails, instructed, replies, says};
use llm_do_runtime::{
    Descriptors, MemoryStore, ResumeError, ResumeOptions, Runtime, Session, SessionTurn, Store, StoreError,
};
use llm_do_testing::{Chance, EffectRecorder, FunctionTool, TestProject};
use serde_json::json;

/// A model that does what the last message says, and answers with what it was told.
fn obedient() -> Script {
    let reply = |request: &ModelRequest<'_>| {
        let messages = request.conversation.messages();
        let last = messages.last().map(|message| message.text()).unwrap_or_default();
        match last.split_whitespace().next_back() {
            Some("look") => asks("look", json!({})),
            Some("long") => asks("long", json!({"n": messages.len()})),
            Some("list") => asks("read_fd", json!({})),
            Some("fail") => fails(ModelErrorKind::Invalid, "no"),
            _ => says(format!("{} messages, the last: {last}", messages.len())),
        }
    };
    Script::new([replies(reply).when(instructed(""))])
}

fn project(recorder: &EffectRecorder) -> TestProject {
    let recorder = recorder.clone();
    let look = FunctionTool::new("look", move |input, call| {
        recorder.happened(&call, "look", &input);
        async { Ok(Output::text("42")) }
    })
    .define(|tool| {
        tool.approval = Approval::PreApproved;
        tool.effect = Effect::Idempotent;
    });
    let long = FunctionTool::new("long", |input, _| {
        let text = format!("{} words ", input["n"]).repeat(2_000);
        async { Ok(Output::text(text)) }
    })
    .define(|tool| {
        tool.approval = Approval::PreApproved;
        tool.effect = Effect::Idempotent;
    });
    let read = FunctionTool::new("read_fd", |_, call| async move {
        let table = llm_do_core::Need::<Descriptors>::from_call(&call).unwrap().into_inner();
        let names = table.list().into_iter().map(|fd| format!("{} {}", fd.id, fd.chars));
        Ok(Output::text(names.collect::<Vec<_>>().join("; ")))
    })
    .define(|tool| {
        tool.approval = Approval::PreApproved;
        tool.needs = vec![NeedSpec::for_conversation::<Descriptors>("file descriptors")];
        tool.pages_itself = true;
    });
    let mut main = AgentSpec::new("main", "x").tool("look").tool("long").tool("read_fd");
    main.descriptors = DescriptorSettings { enabled: true, ..DescriptorSettings::default() };
    TestProject::new().agent(main).tool(look).tool(long).tool(read).model(obedient())
}

fn runtime(recorder: &EffectRecorder, store: &MemoryStore) -> Runtime {
    let store = store.clone();
    project(recorder).runtime(move |runtime| runtime.store(Arc::new(store))).build()
}

/// Everything of a conversation that the next turn depends on.
async fn seen(session: &Session) -> (Vec<String>, Vec<SessionTurn>) {
    let messages = session.messages().await;
    (messages.iter().map(|message| format!("{message:?}")).collect(), session.turns().await)
}

async fn restored(recorder: &EffectRecorder, store: &MemoryStore, id: RunId) -> Session {
    runtime(recorder, store).restore_session(id).await.unwrap()
}

#[tokio::test]
async fn a_session_goes_on_in_another_process() {
    let (recorder, store) = (EffectRecorder::default(), MemoryStore::default());
    let mut session = runtime(&recorder, &store).session("main");
    assert_eq!(session.id(), None);
    session.send("look").await.unwrap();
    session.send("long").await.unwrap();
    let (id, before) = (session.id().unwrap(), seen(&session).await);
    assert_eq!(recorder.names(), ["look"]);
    session.close().await;

    let mut session = restored(&recorder, &store, id).await;
    assert_eq!((session.id(), seen(&session).await), (Some(id), before));
    assert_eq!(session.usage().total().requests, 4);
    assert!(session.cut_off_turn().is_none() && session.changes().is_empty());
    let report = session.send("hello").await.unwrap();
    assert_eq!(&*report.text(), "9 messages, the last: hello");
    let start = report.events().iter().find_map(|event| match &event.body {
        EventBody::RunStarted(start) => Some((start.session, start.ordinal)),
        _ => None,
    });
    assert_eq!(start, Some((Some(id), 3)));
    // Nothing was done again.
    assert_eq!(recorder.names(), ["look"]);
}

#[tokio::test]
async fn a_session_is_written_by_one_process_at_a_time() {
    let (recorder, store) = (EffectRecorder::default(), MemoryStore::default());
    let first = runtime(&recorder, &store);
    let mut session = first.session("main");
    session.send("hello").await.unwrap();
    let id = session.id().unwrap();
    let second = runtime(&recorder, &store).restore_session(id).await.err();
    assert!(matches!(second, Some(ResumeError::Store(StoreError::Held { .. }))), "{second:?}");
    session.close().await;
    assert!(runtime(&recorder, &store).restore_session(id).await.is_ok());
}

#[tokio::test]
async fn a_run_is_no_session() {
    let (recorder, store) = (EffectRecorder::default(), MemoryStore::default());
    let runtime = runtime(&recorder, &store);
    let run = runtime.run("main", "hello").await.unwrap().id;
    let refused = runtime.restore_session(run).await.err();
    assert_eq!(refused, Some(ResumeError::NoSession { session: run }));
}

#[tokio::test]
async fn what_another_session_did_later_does_not_touch_a_copy() {
    let (recorder, store) = (EffectRecorder::default(), MemoryStore::default());
    let runtime = runtime(&recorder, &store);
    let mut session = runtime.session("main");
    session.send("one").await.unwrap();
    let mut copy = session.fork().await;
    copy.send("mine").await.unwrap();
    session.send("theirs").await.unwrap();
    let (ids, before) =
        ([session.id().unwrap(), copy.id().unwrap()], [seen(&session).await, seen(&copy).await]);
    assert_ne!(ids[0], ids[1]);
    session.close().await;
    copy.close().await;
    for (id, before) in ids.into_iter().zip(before) {
        let mut restored = runtime.restore_session(id).await.unwrap();
        assert_eq!(seen(&restored).await, before);
        restored.go_back(1).await.unwrap();
        assert_eq!(seen(&restored).await, (vec![], vec![]));
    }
}

#[tokio::test]
async fn a_recorded_session_is_copied_while_another_process_has_it_open() {
    let (recorder, store) = (EffectRecorder::default(), MemoryStore::default());
    let first = runtime(&recorder, &store);
    let mut session = first.session("main");
    for text in ["one", "long", "list", "other"] {
        session.send(text).await.unwrap();
    }
    let (id, before) = (session.id().unwrap(), seen(&session).await);
    let second = runtime(&recorder, &store);
    for (last, messages) in [(None, 12), (Some(4), 12), (Some(3), 10), (Some(1), 2)] {
        let mut copy = second.fork_recorded_session(id, last).await.unwrap();
        assert_eq!(seen(&copy).await.0, before.0[..messages], "{last:?}");
        // What can be read is what there was at that turn.
        let expected = if messages == 2 { "" } else { "fd:2.1.0 16000" };
        let report = copy.send("list").await.unwrap();
        assert!(format!("{:?}", report.messages).contains(&format!("text: \"{expected}\"")), "{last:?}");
        let (copied, kept) = (copy.id().unwrap(), seen(&copy).await);
        copy.close().await;
        assert_eq!(seen(&restored(&recorder, &store, copied).await).await, kept);
    }
    let refused = second.fork_recorded_session(id, Some(9)).await.err().unwrap();
    assert!(refused.to_string().ends_with("has no turn 9: there are 1, 2, 3, 4"), "{refused}");
    assert_eq!(seen(&session).await, before);
}

/// The events of a store as a process left them that was killed after so many events in all.
fn cut(events: &[Arc<Event>], length: usize) -> MemoryStore {
    MemoryStore::from_events(events[..length].iter().cloned())
}

/// A store that notes the order of all events, of sessions and runs.
async fn all_events(store: &MemoryStore, session: RunId) -> Vec<Arc<Event>> {
    let mut all: Vec<Arc<Event>> = Vec::new();
    for event in store.read(session, None).await.unwrap() {
        let run = match &event.body {
            EventBody::TurnStarted(turn) => Some(turn.run),
            _ => None,
        };
        all.push(event);
        if let Some(run) = run {
            all.extend(store.read(run, None).await.unwrap());
        }
    }
    all
}

#[tokio::test]
async fn wherever_a_process_is_killed_the_session_goes_on_to_the_same_end() {
    let (recorder, store) = (EffectRecorder::default(), MemoryStore::default());
    let mut unbroken = runtime(&recorder, &store).session("main");
    for text in ["hello", "look", "long"] {
        unbroken.send(text).await.unwrap();
    }
    let (id, end) = (unbroken.id().unwrap(), seen(&unbroken).await);
    let events = all_events(&store, id).await;
    let (mut resumed, mut unsent) = (0, 0);
    for length in 1..=events.len() {
        let store = cut(&events, length);
        let mut session = restored(&recorder, &store, id).await;
        let done = session.turns().await.len();
        if session.cut_off_run().is_some() {
            session.resume_turn(ResumeOptions::default(), |_| ()).await.unwrap().unwrap();
            resumed += 1;
        } else if session.cut_off_turn().is_some() {
            let refused = session.resume_turn(ResumeOptions::default(), |_| ()).await.err();
            assert_eq!(refused, Some(ResumeError::NoOpenTurn));
            unsent += 1;
        }
        let was_unsent = session.cut_off_turn().is_some();
        let missing = &["hello", "look", "long"][session.turns().await.len()..];
        for text in missing {
            session.send(*text).await.unwrap();
        }
        let (messages, turns) = seen(&session).await;
        let comparable = |messages: &[String]| -> Vec<String> {
            match was_unsent {
                // The turn that is sent again has another number, which stands in the names of long results.
                true => messages.iter().map(|message| message.replace("fd:4.", "fd:3.")).collect(),
                false => messages.to_vec(),
            }
        };
        let (found, expected) = (comparable(&messages), comparable(&end.0));
        let first = found.iter().zip(&expected).find(|(message, expected)| message != expected);
        assert_eq!(first, None, "killed after event {length}, {done} turns");
        assert_eq!(found.len(), expected.len(), "killed after event {length}, {done} turns");
        let texts: Vec<&str> = turns.iter().map(|turn| &*turn.text).collect();
        assert_eq!(texts, ["hello", "look", "long"]);
        // The record says the same as the process that wrote it.
        session.close().await;
        assert_eq!(seen(&restored(&recorder, &store, id).await).await, (messages, turns));
    }
    assert!(resumed > 10 && unsent == 3, "{resumed} {unsent}");
}

#[tokio::test]
async fn a_turn_that_was_cut_off_is_dropped_by_the_next_message() {
    let (recorder, store) = (EffectRecorder::default(), MemoryStore::default());
    let mut first = runtime(&recorder, &store).session("main");
    first.send("hello").await.unwrap();
    first.send("look").await.unwrap();
    let id = first.id().unwrap();
    let events = all_events(&store, id).await;
    let asked = events.iter().rposition(|event| matches!(event.body, EventBody::CallExecuting { .. }));
    let store = cut(&events, asked.unwrap() + 1);
    for explicitly in [true, false] {
        let mut session = restored(&recorder, &store, id).await;
        if explicitly {
            assert_eq!(session.cut_off_turn().map(|turn| turn.text).as_deref(), Some("look"));
            session.drop_turn().await;
        }
        assert_eq!(session.cut_off_turn(), None);
        session.close().await;
    }
    let mut session = restored(&recorder, &store, id).await;
    let report = session.send("again").await.unwrap();
    assert_eq!(&*report.text(), "3 messages, the last: again");
    let turns: Vec<u32> = session.turns().await.iter().map(|turn| turn.ordinal).collect();
    assert_eq!(turns, [1, 3], "numbers are not used again");
}

/// A store that refuses everything from some event on.
struct Failing {
    store: MemoryStore,
    left: Arc<AtomicUsize>,
}

struct FailingWriter(Arc<dyn llm_do_runtime::RunWriter>, Arc<AtomicUsize>);

impl llm_do_runtime::RunWriter for FailingWriter {
    fn enqueue(
        &self,
        event: &Arc<Event>,
        durability: llm_do_runtime::Durability,
    ) -> Result<llm_do_runtime::Ack, StoreError> {
        let spend = |left: usize| left.checked_sub(1);
        match self.1.fetch_update(Ordering::SeqCst, Ordering::SeqCst, spend) {
            Ok(_) => self.0.enqueue(event, durability),
            Err(_) => Err(StoreError::Full("the disk is full".to_owned())),
        }
    }
}

impl Store for Failing {
    fn begin(
        &self,
        run: RunId,
    ) -> futures::future::BoxFuture<'_, Result<Arc<dyn llm_do_runtime::RunWriter>, StoreError>> {
        Box::pin(async move {
            let writer = self.store.begin(run).await?;
            Ok(Arc::new(FailingWriter(writer, self.left.clone())) as _)
        })
    }

    fn claim(
        &self,
        run: RunId,
    ) -> futures::future::BoxFuture<'_, Result<llm_do_runtime::ClaimedRun, StoreError>> {
        self.store.claim(run)
    }

    fn read(
        &self,
        run: RunId,
        after: Option<u64>,
    ) -> futures::future::BoxFuture<'_, Result<Vec<Arc<Event>>, StoreError>> {
        self.store.read(run, after)
    }

    fn answers(
        &self,
        run: RunId,
    ) -> futures::future::BoxFuture<'_, Result<Vec<llm_do_runtime::GivenAnswer>, StoreError>> {
        self.store.answers(run)
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_recorded_takes_no_message() {
    for left in 0..12 {
        let recorder = EffectRecorder::default();
        let store = Failing { store: MemoryStore::default(), left: Arc::new(AtomicUsize::new(left)) };
        let runtime = project(&recorder).runtime(move |runtime| runtime.store(Arc::new(store))).build();
        let mut session = runtime.session("main");
        let first = session.send("hello").await;
        let second = session.send("look").await.unwrap_err();
        assert_eq!(second.status(), Status::Record, "{left}: {second}");
        assert!(second.to_string().contains("the disk is full"), "{left}: {second}");
        assert!(first.is_ok() || left < 9, "{left}");
        assert_eq!(recorder.names(), [] as [String; 0], "{left}");
    }
}

#[tokio::test]
async fn a_turn_that_is_given_up_can_be_resumed_after_a_restart() {
    let store = MemoryStore::default();
    let waits = FunctionTool::new("look", |_, _| pending()).define(|tool| {
        tool.approval = Approval::PreApproved;
        tool.effect = Effect::Idempotent;
    });
    let kept = store.clone();
    let stuck = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("look"))
        .tool(waits)
        .model(obedient())
        .runtime(move |runtime| runtime.store(Arc::new(kept)))
        .build();
    let mut session = stuck.session("main");
    let turn = session.send("look");
    assert!(tokio::time::timeout(std::time::Duration::from_millis(200), turn).await.is_err());
    let id = session.id().unwrap();
    drop(session);
    stuck.shutdown().await;

    let recorder = EffectRecorder::default();
    let mut session = restored(&recorder, &store, id).await;
    let report = session.resume_turn(ResumeOptions::default(), |_| ()).await.unwrap().unwrap();
    assert_eq!(&*report.text(), "3 messages, the last: ");
    let results = session.messages().await;
    assert!(format!("{results:?}").contains("42"));
    assert_eq!(recorder.names(), ["look"]);
}

/// What a user may do in a session.
async fn step(session: &mut Session, choice: u64, number: u64) {
    let text = ["hello", "look", "long", "fail", "list", "long"][(choice % 6) as usize];
    match choice {
        0..=11 => drop(session.send(format!("{number} {text}")).await),
        12 => session.use_model(None).await,
        _ => {
            let turns = session.turns().await;
            if let Some(turn) = turns.get((number as usize) % turns.len().max(1)) {
                session.go_back(turn.ordinal).await.unwrap();
            }
        }
    }
}

fn cases() -> u64 {
    std::env::var("LLM_DO_SESSION_CASES").map_or(60, |cases| cases.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_restarted_at_any_time_is_like_one_that_is_not() {
    let (mut restarts, mut forks) = (0, 0);
    for seed in 0..cases() {
        let recorder = EffectRecorder::default();
        let (one, other) = (MemoryStore::default(), MemoryStore::default());
        let mut unbroken = runtime(&recorder, &one).session("main");
        let mut restarted = runtime(&recorder, &other).session("main");
        let mut chance = Chance::new(seed);
        for number in 0..12 {
            let choice = chance.bits() % 15;
            step(&mut unbroken, choice, number).await;
            step(&mut restarted, choice, number).await;
            if chance.bits().is_multiple_of(7) {
                (unbroken, restarted) = (unbroken.fork().await, restarted.fork().await);
                forks += 1;
            }
            if let Some(id) = restarted.id().filter(|_| chance.bits().is_multiple_of(2)) {
                restarted.close().await;
                restarted = restored(&recorder, &other, id).await;
                restarts += 1;
            }
            let ((messages, turns), expected) = (seen(&restarted).await, seen(&unbroken).await);
            assert_eq!(turns, expected.1, "seed {seed}, step {number}");
            let first = messages.iter().zip(&expected.0).find(|(message, expected)| message != expected);
            assert_eq!(first, None, "seed {seed}, step {number}");
            assert_eq!(messages.len(), expected.0.len(), "seed {seed}, step {number}");
        }
    }
    assert!(restarts > cases() && forks > cases() / 2, "{restarts} restarts, {forks} forks");
}
