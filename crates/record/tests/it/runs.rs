//! Runs of agents and tools, recorded and resumed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use llm_do_core::{AgentSpec, Approval, Effect, Event, Output, RunId, Status};
use llm_do_models::{Script, asks, asks_all, says};
use llm_do_record::{Record, RecordedState, RunFilter, UsageBy};
use llm_do_runtime::{Ack, ClaimedRun, Durability, GivenAnswer, RunWriter, Runtime, Store, StoreError};
use llm_do_testing::{FunctionTool, TestProject};
use serde_json::json;

/// A store that refuses everything after so many events, as if the process had ended there.
struct EndsAfter {
    record: Record,
    events: Arc<AtomicUsize>,
}

struct EndingWriter {
    writer: Arc<dyn RunWriter>,
    events: Arc<AtomicUsize>,
}

impl Store for EndsAfter {
    fn begin(&self, run: RunId) -> BoxFuture<'_, Result<Arc<dyn RunWriter>, StoreError>> {
        Box::pin(async move {
            let writer = self.record.begin(run).await?;
            Ok(Arc::new(EndingWriter { writer, events: self.events.clone() }) as Arc<dyn RunWriter>)
        })
    }

    fn claim(&self, run: RunId) -> BoxFuture<'_, Result<ClaimedRun, StoreError>> {
        self.record.claim(run)
    }

    fn read(&self, run: RunId, after: Option<u64>) -> BoxFuture<'_, Result<Vec<Arc<Event>>, StoreError>> {
        self.record.read(run, after)
    }

    fn answers(&self, run: RunId) -> BoxFuture<'_, Result<Vec<GivenAnswer>, StoreError>> {
        self.record.answers(run)
    }
}

impl RunWriter for EndingWriter {
    fn enqueue(&self, event: &Arc<Event>, durability: Durability) -> Result<Ack, StoreError> {
        let left = self.events.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        left.map_err(|_| StoreError::Other("the process ended".to_owned()))?;
        self.writer.enqueue(event, durability)
    }
}

#[derive(Clone, Default)]
struct Effects(Arc<std::sync::Mutex<Vec<String>>>);

impl Effects {
    fn tool(&self, name: &'static str, effect: Effect) -> FunctionTool {
        let effects = self.clone();
        FunctionTool::new(name, move |input, _| {
            effects.0.lock().unwrap().push(format!("{name} {input}"));
            async move { Ok(Output::text(format!("{name} did {}", input["n"]))) }
        })
        .define(move |definition| {
            definition.effect = effect;
            definition.approval = Approval::PreApproved;
        })
    }

    fn runtime(&self, store: impl Store + 'static) -> Runtime {
        let main = AgentSpec::new("main", "You are main.").model(Script::by_turn([
            asks_all([("pay", json!({"n": 1})), ("worker", json!({"input": "deep"}))]),
            asks("look", json!({"n": 2})),
            says("main is done"),
        ]));
        let worker = AgentSpec::new("worker", "You work.")
            .model(Script::by_turn([asks("pay", json!({"n": 3})), says("worked")]));
        TestProject::new()
            .agent(main.tool("pay").tool("look").toolset("worker").rule("*", Approval::PreApproved))
            .agent(worker.tool("pay").rule("*", Approval::PreApproved))
            .tool(self.tool("pay", Effect::Once))
            .tool(self.tool("look", Effect::Pure))
            .runtime(move |runtime| runtime.store(Arc::new(store)))
            .build()
    }
}

#[tokio::test]
async fn a_run_is_read_back_event_by_event() {
    let directory = tempfile::tempdir().unwrap();
    let record = Record::open(directory.path().join("record.db")).unwrap();
    let report = Effects::default().runtime(record.clone()).run("main", "go").await.unwrap();
    assert_eq!(record.read(report.id, None).await.unwrap(), report.events());
    let reader = record.reader().unwrap();
    let run = reader.run(report.id).unwrap().unwrap();
    assert_eq!(
        (run.state, run.entry.as_str(), run.title.as_str()),
        (RecordedState::Ended(Status::Done), "main", "go")
    );
    assert_eq!(run.calls, report.trace().iter().count() as u64);
    let total = report.usage.total();
    assert_eq!((run.tokens_in, run.tokens_out, run.cost), (total.input, total.output, total.cost.known));
    assert_eq!(reader.find("last").unwrap().id, report.id);
    assert_eq!(reader.find(&report.id.to_string()[..6]).unwrap().id, report.id);
    let requests: u64 = reader.usage(UsageBy::Agent, None).unwrap().iter().map(|row| row.requests).sum();
    assert_eq!(requests, total.requests);
}

#[tokio::test]
async fn a_run_that_ended_after_any_event_is_resumed_without_doing_anything_twice() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let whole = Effects::default();
    let unbroken = whole.runtime(Record::open(&path).unwrap()).run("main", "go").await.unwrap();
    let count = unbroken.events().len();
    assert!(count >= 30, "{count}");
    let mut in_flight = 0;
    for end in 1..count {
        let effects = Effects::default();
        let events = Arc::new(AtomicUsize::new(end));
        let broken = EndsAfter { record: Record::open(&path).unwrap(), events };
        let Err(error) = effects.runtime(broken).run("main", "go").await else {
            panic!("the run went on after {end} events")
        };
        assert_eq!(error.status(), Status::Record, "after {end}");
        let record = Record::open(&path).unwrap();
        let resumed = effects.runtime(record.clone()).resume(error.report.id).await.unwrap().await;
        let mut done = effects.0.lock().unwrap().clone();
        match resumed {
            Ok(report) => {
                assert_eq!(report.text(), unbroken.text(), "after {end}");
                // Requests that were in flight count too, in the tables as in the report.
                let (used, whole) = (report.usage.total(), unbroken.usage.total());
                let run = record.reader().unwrap().run(report.id).unwrap().unwrap();
                assert_eq!((used.input, used.output), (whole.input, whole.output), "after {end}");
                assert_eq!(run.unpriced, used.cost.unpriced, "after {end}");
                assert_eq!((run.tokens_in, run.tokens_out), (used.input, used.output), "after {end}");
                in_flight += used.requests - whole.requests;
                done.retain(|effect| effect.starts_with("pay"));
                done.sort();
                assert_eq!(done, [r#"pay {"n":1}"#, r#"pay {"n":3}"#], "after {end}");
            }
            // An effect that must not happen twice was begun: a person decides.
            Err(error) => {
                assert_eq!(error.status(), Status::Unknown, "after {end}: {error}");
                let mut once = done.clone();
                once.sort();
                once.dedup();
                assert!(done.len() - once.len() <= 1, "after {end}: {done:?}");
            }
        }
    }
    assert!(in_flight > 0);
    let reader = Record::open(&path).unwrap().reader().unwrap();
    let listed = reader.runs(&RunFilter { limit: Some(5), ..RunFilter::default() }).unwrap();
    assert_eq!(listed.len(), 5);
    assert!(listed.is_sorted_by(|one, other| one.began >= other.began));
}
