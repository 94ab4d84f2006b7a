//! Crashes a run after every record write and enters it again from the record.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use llm_do_core::{
    AgentSpec, Answer, Approval, ApprovalRequest, Effect, Event, EventBody, Output, RunId, Scope, Status,
};
use llm_do_models::{Script, asks, asks_all, says};
use llm_do_runtime::{Ack, EntrySpec, MemoryStore, PromptInput, RunReport, Runtime, Store, StoreError};
use llm_do_testing::{EffectRecorder, FunctionTool, HookedStore, TestProject, TestRun};
use serde_json::json;

/// A store that loses everything after so many writes, as a crash does.
fn crashing_store(kept: &MemoryStore, writes: usize) -> HookedStore {
    let writes_left = AtomicUsize::new(writes);
    HookedStore::new(kept.clone(), move |_, _| {
        let left = writes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        left.map(|_| Ack::done()).map_err(|_| StoreError::Other("crashed".to_owned()))
    })
}

#[derive(Clone, Default)]
struct World {
    recorder: EffectRecorder,
    asked: Arc<AtomicUsize>,
}

impl World {
    fn acting(&self, name: &'static str, effect: Effect) -> FunctionTool {
        let recorder = self.recorder.clone();
        FunctionTool::new(name, move |input, call| {
            recorder.happened(&call, name, &input);
            async move {
                tokio::task::yield_now().await;
                Ok(Output::text(format!("{name} did {}", input["n"])))
            }
        })
        .define(|definition| definition.effect = effect)
    }

    /// Code whose only effects are the calls it makes: one after the other, then side by side.
    fn fan_out() -> FunctionTool {
        FunctionTool::new("fan_out", |_, call| async move {
            let first = call.call("note", json!({"n": 100})).await?.to_text();
            let (now, chance) = (call.now().await, call.random().await);
            let calls = (0..3).map(|n| call.call("worker", json!({"input": format!("branch {n}")})));
            let branches = join_all(calls).await.into_iter().collect::<Result<Vec<_>, _>>()?;
            let branches: Vec<String> = branches.iter().map(|branch| branch.to_text().to_string()).collect();
            Ok(Output::text(format!("{first}; {branches:?}; {}", (now ^ chance) % 2 < 2)))
        })
        .define(|definition| {
            definition.effect = Effect::Calls;
            definition.approval = Approval::PreApproved;
        })
    }

    fn project(&self) -> TestProject {
        let main = AgentSpec::new("main", "You are main.").model(Script::by_turn([
            asks_all([
                ("note", json!({"n": 1})),
                ("worker", json!({"input": "deep"})),
                ("note", json!({"n": 2})),
            ]),
            asks("fan_out", json!({})),
            asks("look", json!({"n": 3})),
            says("main is done"),
        ]));
        let worker = AgentSpec::new("worker", "You work.").model(Script::by_turn([
            asks_all([("note", json!({"n": 7})), ("look", json!({"n": 8}))]),
            says("worked"),
        ]));
        let start = EntrySpec::new("start", "Starts", |input: PromptInput, call| async move {
            let answer = call.call("main", input.input.as_str()).await?.to_text();
            let noted = call.call("note", json!({"n": 200})).await?.to_text();
            Ok(format!("{answer}, {noted}"))
        });
        TestProject::new()
            .entry(start.unwrap())
            .agent(main.tool("note").toolset("worker").tool("fan_out").tool("look"))
            .agent(worker.tool("note").tool("look"))
            .tool(self.acting("note", Effect::Once))
            .tool(self.acting("look", Effect::Idempotent))
            .tool(Self::fan_out())
    }

    fn runtime(&self, store: Arc<dyn Store>) -> Runtime {
        let asked = self.asked.clone();
        let approver = move |request: ApprovalRequest| {
            asked.fetch_add(1, Ordering::SeqCst);
            // Calls of `look` are granted for the session; `note` asks each time.
            let answer = if request.name == "look" { Answer::Session(Scope::Tool) } else { Answer::Once };
            async move { answer }
        };
        self.project().runtime(move |runtime| runtime.store(store).approver(approver)).build()
    }
}

async fn run_until_crash(world: &World, kept: &MemoryStore, writes: usize) -> RunReport {
    let runtime = world.runtime(Arc::new(crashing_store(kept, writes)));
    let run = TestRun::of(runtime.run("start", "go").await);
    runtime.shutdown().await;
    run.report().clone()
}

fn check_events(events: &[Arc<Event>], at: usize) {
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event.seq, Some(index as u64), "crash after {at}: gapless");
    }
    let mut brackets: HashMap<String, (usize, usize)> = HashMap::new();
    for event in events {
        match &event.body {
            EventBody::CallStarted { .. } => brackets.entry(event.key.to_string()).or_default().0 += 1,
            EventBody::CallFinished { .. } => brackets.entry(event.key.to_string()).or_default().1 += 1,
            _ => {}
        }
    }
    for (key, (started, finished)) in brackets {
        assert!(
            started == 1 && finished <= 1,
            "crash after {at}: {key} started {started}, finished {finished}"
        );
    }
}

/// No effect happens that the surviving record does not announce.
fn check_announced(recorder: &EffectRecorder, record: &[Arc<Event>], at: usize) {
    for effect in recorder.effects() {
        let announced = record
            .iter()
            .any(|event| event.key == effect.key && matches!(event.body, EventBody::CallExecuting { .. }));
        assert!(announced, "crash after {at}: {} happened without a record", effect.key);
    }
}

fn repeated_effects(recorder: &EffectRecorder) -> Vec<String> {
    let mut counts: HashMap<(String, String), usize> = HashMap::new();
    for effect in recorder.effects().into_iter().filter(|effect| effect.name == "note") {
        *counts.entry((effect.key.to_string(), effect.arguments.to_string())).or_default() += 1;
    }
    counts.into_iter().filter(|(_, count)| *count > 1).map(|(key, _)| format!("{key:?}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_crashed_after_any_write_ends_equal_or_honestly_unknown_and_repeats_nothing() {
    let whole = World::default();
    let unbroken = run_until_crash(&whole, &MemoryStore::default(), usize::MAX).await;
    assert_eq!(unbroken.status, Status::Done, "{}", unbroken.trace());
    let writes = unbroken.events().len();
    let (mut equal, mut unknown, mut nothing) = (0, 0, 0);

    for at in 0..writes {
        let world = World::default();
        let kept = MemoryStore::default();
        let crashed = run_until_crash(&world, &kept, at).await;
        check_announced(&world.recorder, &kept.read(crashed.id, None).await.unwrap_or_default(), at);
        assert!(
            matches!(crashed.status, Status::Record | Status::Done),
            "crash after {at}: {:?}",
            crashed.status
        );
        let Ok(record) = kept.read(crashed.id, None).await else {
            nothing += 1;
            assert_eq!(world.recorder.effects(), [], "crash after {at}: an effect without a record");
            continue;
        };
        assert_eq!(record.len(), at.min(record.len()));

        let runtime = world.runtime(Arc::new(kept.clone()));
        let resumed = TestRun::of(runtime.resume(crashed.id).await.unwrap().await);
        runtime.shutdown().await;
        assert_eq!(repeated_effects(&world.recorder), [] as [String; 0], "crash after {at}");
        check_events(&resumed.events(), at);
        match resumed.status() {
            Status::Unknown => unknown += 1,
            _ => {
                equal += 1;
                assert_eq!(resumed.answer(), unbroken.text(), "crash after {at}");
                assert_eq!(resumed.report().usage, unbroken.usage, "crash after {at}");
                let notes = |recorder: &EffectRecorder| {
                    recorder.names().iter().filter(|name| *name == "note").count()
                };
                assert_eq!(notes(&world.recorder), notes(&whole.recorder), "crash after {at}");
            }
        }
    }
    println!("{writes} writes: {equal} equal, {unknown} unknown, {nothing} before the first write");
    assert_eq!(equal + unknown + nothing, writes);
    assert!(
        equal > unknown && unknown > 0 && nothing == 1,
        "{equal} equal, {unknown} unknown, {nothing} nothing"
    );
}

/// The record of a run that crashed just before its end was written.
async fn without_its_end(kept: &MemoryStore, run: RunId) -> MemoryStore {
    let mut record = kept.read(run, None).await.unwrap();
    record.pop();
    MemoryStore::from_events(record)
}

#[tokio::test]
async fn a_recorded_decision_is_read_back_and_nobody_is_asked_again() {
    let world = World::default();
    let kept = MemoryStore::default();
    let whole = run_until_crash(&world, &kept, usize::MAX).await;
    let kept = without_its_end(&kept, whole.id).await;
    let asked = world.asked.load(Ordering::SeqCst);
    assert!(asked > 5, "{asked}");

    let runtime = world.runtime(Arc::new(kept));
    let again = TestRun::of(runtime.resume(whole.id).await.unwrap().await);
    assert_eq!(again.answer(), whole.text());
    assert_eq!(world.asked.load(Ordering::SeqCst), asked);
}

#[tokio::test]
async fn a_changed_project_is_told_when_a_run_is_resumed() {
    let kept = MemoryStore::default();
    let run = |instructions: &'static str, store: MemoryStore| {
        TestProject::new()
            .agent(AgentSpec::new("main", instructions).model(Script::by_turn([says("hi")])))
            .runtime(move |runtime| runtime.store(Arc::new(store)))
            .build()
    };
    let first = run("old", kept.clone()).run("main", "x").await.unwrap();
    let cut = without_its_end(&kept, first.id).await;
    let same = run("old", cut).resume(first.id).await.unwrap().await.unwrap();
    let cut = without_its_end(&kept, first.id).await;
    let changed = run("new", cut).resume(first.id).await.unwrap().await.unwrap();
    let notices = |report: &RunReport| {
        let events = report.events();
        events
            .iter()
            .filter(|event| matches!(&event.body, EventBody::Notice { text } if text.contains("changed")))
            .count()
    };
    assert_eq!((notices(&same), notices(&changed)), (0, 1));
}

#[tokio::test]
async fn a_run_that_was_never_kept_cannot_be_resumed_and_says_so() {
    let runtime =
        TestProject::new().agent(AgentSpec::new("main", "x").model(Script::by_turn([says("hi")]))).build();
    let report = runtime.run("main", "x").await.unwrap();
    let Err(error) = runtime.resume(report.id).await else { panic!("resumed") };
    assert!(error.to_string().contains("not recorded"), "{error}");
}
