//! Crashes a run after every record write and enters it again from the record.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use llm_do_core::{
    AgentSpec, Answer, Approval, ApprovalMode, ApprovalRequest, Cost, DescriptorSettings, Effect, Event,
    EventBody, Limits, Model, ModelError, Models, NeedSpec, Output, RunId, Scope, Settlement, Status, Usage,
};
use llm_do_models::{Script, asks, asks_all, replies, says};
use llm_do_runtime::{
    Ack, Descriptors, EntrySpec, MemoryStore, PromptInput, ResumeError, ResumeOptions, RunReport, Runtime,
    Store, StoreError, unknown_calls,
};
use llm_do_testing::{EffectRecorder, FunctionTool, HookedStore, TestProject, TestRun};
use serde_json::json;
use tokio::sync::Semaphore;

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

/// How many requests a record has, and how many answers.
fn requests(record: &[Arc<Event>]) -> (u64, u64) {
    let count = |what: fn(&EventBody) -> bool| record.iter().filter(|event| what(&event.body)).count() as u64;
    let asked = count(|body| matches!(body, EventBody::ModelRequest { .. }));
    (asked, count(|body| matches!(body, EventBody::ModelResponse { .. })))
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
                // A request without a recorded answer was made, and may have been charged.
                let (asked, answered) = requests(&record);
                let mut usage = unbroken.usage.clone();
                let cost = Cost { unpriced: asked - answered, ..Cost::default() };
                let lost = Usage { requests: asked - answered, cost, ..Usage::default() };
                usage.add(&"script".into(), lost);
                assert_eq!(resumed.report().usage, usage, "crash after {at}");
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

/// A record that ends with the last event that matches.
pub(crate) async fn cut_after(kept: &MemoryStore, run: RunId, last: impl Fn(&Event) -> bool) -> MemoryStore {
    let mut record = kept.read(run, None).await.unwrap();
    let end = record.iter().rposition(|event| last(event)).expect("no such event");
    record.truncate(end + 1);
    MemoryStore::from_events(record)
}

fn is_response(event: &Event) -> bool {
    matches!(event.body, EventBody::ModelResponse { .. })
}

/// Reads a long text, of which the agent sees a page of so many characters.
fn reader_of_pages(store: MemoryStore, page: u64) -> Runtime {
    let settings =
        DescriptorSettings { enabled: true, limit: page, page_size: page, ..DescriptorSettings::default() };
    let script = Script::by_turn([
        asks("look", json!({})),
        asks("look", json!({})),
        replies(|request| {
            let seen = request.conversation.messages().iter().flat_map(|message| message.tool_results());
            says(seen.map(|result| result.text.len().to_string()).collect::<Vec<_>>().join(" "))
        }),
    ]);
    let mut main = AgentSpec::new("main", "x").tool("look").tool("read_fd").model(script);
    main.descriptors = settings;
    let look = FunctionTool::new("look", |_, _| async { Ok("0123456789".repeat(20).into()) })
        .define(|definition| definition.approval = Approval::PreApproved);
    let read = FunctionTool::new("read_fd", |_, _| async { Ok("not called".into()) })
        .define(|definition| definition.needs = vec![NeedSpec::typed::<Descriptors>()]);
    let project = TestProject::new().agent(main).tool(look).tool(read);
    project.runtime(move |runtime| runtime.store(Arc::new(store))).build()
}

#[tokio::test]
async fn a_text_that_would_be_another_one_now_does_not_stop_a_resume() {
    let kept = MemoryStore::default();
    let first = reader_of_pages(kept.clone(), 20).run("main", "go").await.unwrap();
    let second_request = |event: &Event| event.key == "1/t2/model" && is_response(event);
    let cut = cut_after(&kept, first.id, second_request).await;

    let resumed = reader_of_pages(cut, 30).resume(first.id).await.unwrap().await.unwrap();
    // The first result is the recorded one, the second is shown as the project says now.
    let sizes: Vec<usize> = resumed.text().split(' ').map(|size| size.parse().unwrap()).collect();
    let before: Vec<usize> = first.text().split(' ').map(|size| size.parse().unwrap()).collect();
    assert_eq!(sizes[0], before[0]);
    assert!(sizes[1] > before[1], "{sizes:?} {before:?}");
    let notices = resumed
        .events()
        .iter()
        .filter(|event| matches!(&event.body, EventBody::Notice { text } if text.contains("other messages")))
        .count();
    assert_eq!(notices, 1);
}

#[tokio::test]
async fn an_effect_that_was_begun_once_is_not_repeated_because_its_definition_changed() {
    let paid = EffectRecorder::default();
    let runtime = |store: MemoryStore, effect: Effect| {
        let recorder = paid.clone();
        let pay = FunctionTool::new("pay", move |input, call| {
            recorder.happened(&call, "pay", &input);
            async { Ok(Output::text("paid")) }
        })
        .define(move |definition| {
            definition.approval = Approval::PreApproved;
            definition.effect = effect;
        });
        TestProject::new()
            .agent(AgentSpec::new("main", "x").tool("pay"))
            .tool(pay)
            .model_replies([asks("pay", json!({})), says("done")])
            .runtime(move |runtime| runtime.store(Arc::new(store)))
            .build()
    };
    let kept = MemoryStore::default();
    let first = runtime(kept.clone(), Effect::Once).run("main", "go").await.unwrap();
    let executing = |event: &Event| matches!(event.body, EventBody::CallExecuting { .. });
    let cut = cut_after(&kept, first.id, executing).await;
    let error = runtime(cut, Effect::Idempotent).resume(first.id).await.unwrap().await.unwrap_err();
    assert_eq!(error.status(), Status::Unknown, "{error}");
    assert_eq!(paid.names().len(), 1);
}

/// A payment that was begun when its process ended, and how often it was made in all.
async fn paying(settlement: Option<Settlement>) -> (TestRun, usize) {
    let kept = MemoryStore::default();
    let paid = Arc::new(AtomicUsize::new(0));
    let runtime = |store: MemoryStore| {
        let count = paid.clone();
        let pay = FunctionTool::new("pay", move |_, _| {
            count.fetch_add(1, Ordering::SeqCst);
            async { Ok(Output::text("paid")) }
        })
        .define(|definition| {
            definition.effect = Effect::Once;
            definition.approval = Approval::PreApproved;
        });
        let script = Script::by_turn([asks("pay", json!({"n": 1})), says("the end")]);
        TestProject::new()
            .agent(AgentSpec::new("main", "x").tool("pay").model(script))
            .tool(pay)
            .runtime(move |runtime| runtime.store(Arc::new(store)))
            .build()
    };
    let first = runtime(kept.clone()).run("main", "go").await.unwrap();
    let cut = cut_after(&kept, first.id, |event| matches!(event.body, EventBody::CallExecuting { .. })).await;
    let unknown = unknown_calls(&cut.read(first.id, None).await.unwrap());
    assert_eq!(unknown.len(), 1);
    assert_eq!((unknown[0].name.as_str(), unknown[0].input.value()), ("pay", &json!({"n": 1})));
    let call = unknown[0].call.id.clone();
    let mut options = ResumeOptions::default();
    options.settlements = settlement.map(|settlement| (call.clone(), settlement)).into_iter().collect();
    let resumed = runtime(cut.clone()).resume_with(first.id, options).await.unwrap().await;
    let ended = TestRun::of(resumed);
    if ended.status() == Status::Done {
        // What was said is in the record, so nothing is unknown any more.
        assert!(unknown_calls(&ended.events()).is_empty());
    }
    (ended, paid.load(Ordering::SeqCst) - 1)
}

#[tokio::test]
async fn a_call_that_may_have_happened_is_settled_by_a_person() {
    let (run, again) = paying(None).await;
    assert_eq!((run.status(), again), (Status::Unknown, 0));
    let (run, again) = paying(Some(Settlement::Happened { output: Output::text("receipt 7") })).await;
    assert_eq!((&*run.answer(), run.tool_results(), again), ("the end", vec!["receipt 7".to_owned()], 0));
    let (run, again) = paying(Some(Settlement::DidNotHappen)).await;
    assert_eq!((&*run.answer(), run.tool_results(), again), ("the end", vec!["paid".to_owned()], 1));
    let (run, again) = paying(Some(Settlement::Unknown)).await;
    assert_eq!((&*run.answer(), again), ("the end", 0));
    assert!(run.tool_results()[0].contains("nobody knows whether it happened"), "{:?}", run.tool_results());
}

#[tokio::test]
async fn what_is_known_cannot_be_settled() {
    let kept = MemoryStore::default();
    let world = World::default();
    let run = run_until_crash(&world, &kept, 12).await.id;
    let runtime = world.runtime(Arc::new(kept));
    let mut options = ResumeOptions::default();
    options.settlements = vec![("1".into(), Settlement::DidNotHappen)];
    let Err(error) = runtime.resume_with(run, options).await else { panic!("resumed") };
    assert!(matches!(error, ResumeError::NotUnknown { .. }), "{error}");
}

#[tokio::test]
async fn a_resumed_run_has_the_model_the_context_and_the_limits_that_it_was_started_with() {
    let runtime = |store: MemoryStore| {
        let look = FunctionTool::new("look", |_, call| async move {
            let region = call.context().named("region").cloned().unwrap_or_default();
            Ok(Output::json(region))
        })
        .define(|definition| {
            definition.approval = Approval::PreApproved;
            definition.needs = vec![NeedSpec::named("region")];
        });
        TestProject::new()
            .agent(AgentSpec::new("main", "x").tool("look"))
            .tool(look)
            .runtime(move |runtime| {
                runtime.store(Arc::new(store)).models(OneModel).provided_per_run_named("region")
            })
            .build()
    };
    let kept = MemoryStore::default();
    let limits = Limits { turns: Some(7), ..Limits::default() };
    let run = runtime(kept.clone()).run("main", "go").model("known:model").limits(limits.clone());
    let first = run.provide_named("region", json!("north")).await.unwrap();
    assert_eq!(&*first.text(), "north");
    let cut = cut_after(&kept, first.id, |event| matches!(event.body, EventBody::RunStarted { .. })).await;
    let resumed = runtime(cut).resume(first.id).await.unwrap().await.unwrap();
    assert_eq!(&*resumed.text(), "north");
    let start = resumed.events().iter().find_map(|event| match &event.body {
        EventBody::RunStarted(start) => Some(start.clone()),
        _ => None,
    });
    let start = start.unwrap();
    assert_eq!((start.model.as_deref(), start.limits), (Some("known:model"), limits));
    assert_eq!(start.context.get("region"), Some(&json!("north")));
}

/// Knows one model, which calls `look` and repeats what it saw.
struct OneModel;

impl Models for OneModel {
    fn resolve(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        assert_eq!(name, "known:model");
        Ok(Arc::new(Script::by_turn([
            asks("look", json!({})),
            replies(|request| {
                let last = request.conversation.messages().last().unwrap();
                says(last.tool_results().next().unwrap().text.to_string())
            }),
        ])))
    }
}

#[tokio::test]
async fn a_run_that_its_agents_own_limit_ended_is_not_resumed() {
    let kept = MemoryStore::default();
    let runtime = |store: MemoryStore| {
        let mut main =
            AgentSpec::new("main", "x").tool("note").model(Script::by_turn([asks("note", json!({"n": 1}))]));
        main.limits.turns = Some(1);
        let world = World::default();
        TestProject::new()
            .agent(main)
            .tool(world.acting("note", Effect::Pure))
            .runtime(move |runtime| runtime.store(Arc::new(store)).approval_mode(ApprovalMode::ApproveAll))
            .build()
    };
    let error = runtime(kept.clone()).run("main", "go").await.unwrap_err();
    assert_eq!(error.status(), Status::Limit);
    let Err(refused) = runtime(kept).resume(error.report.id).await else { panic!("resumed") };
    assert!(matches!(refused, ResumeError::Ended { status: Status::Limit, .. }), "{refused}");
    assert!(refused.to_string().contains("used its 1 turn"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_runtimes_that_resume_a_run_one_continues_it() {
    for round in 0..50 {
        let world = World::default();
        let kept = MemoryStore::default();
        let first = run_until_crash(&world, &kept, 40).await;
        // Neither gets further than its first event before both have tried.
        let both_tried = Arc::new(Semaphore::new(0));
        let tried = both_tried.clone();
        let store = HookedStore::new(kept, move |event, _| {
            let EventBody::RunResumed { .. } = event.body else { return Ok(Ack::done()) };
            let (sender, ack) = Ack::pending();
            let tried = tried.clone();
            tokio::spawn(async move {
                let _ = tried.acquire().await;
                sender.send(Ok(()));
            });
            Ok(ack)
        });
        let runtimes = [world.runtime(Arc::new(store.clone())), world.runtime(Arc::new(store))];
        let resumed = join_all(runtimes.iter().map(|runtime| runtime.resume(first.id))).await;
        both_tried.add_permits(1);
        let (won, lost): (Vec<_>, Vec<_>) = resumed.into_iter().partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, 1), "round {round}");
        for run in won {
            let _ = run.unwrap().await;
        }
        for refused in lost {
            let Err(ResumeError::Store(StoreError::Held { .. })) = refused else { panic!("round {round}") };
        }
        assert_eq!(repeated_effects(&world.recorder), [] as [String; 0], "round {round}");
    }
}
