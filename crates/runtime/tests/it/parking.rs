//! Questions that are left open: the run ends, and goes on once they are answered elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{join_all, pending};
use jiff::Timestamp;
use llm_do_core::{
    AgentSpec, Answer, AnsweredBy, AnsweredVia, Approval, ApprovalMode, ApprovalRequest, Assessment, Effect,
    Event, EventBody, Output, RunId, Scope, Status,
};
use llm_do_models::{Script, asks, asks_all, says};
use llm_do_runtime::{GivenAnswer, MemoryStore, RunReport, Runtime};
use llm_do_testing::{Chance, EffectRecorder, FunctionTool, TestProject, TestRun, deny, edit, once};
use serde_json::json;

/// A tool that asks, and whose effects are seen from outside.
fn asking(name: &'static str, recorder: &EffectRecorder) -> FunctionTool {
    let recorder = recorder.clone();
    FunctionTool::new(name, move |input, call| {
        recorder.happened(&call, name, &input);
        async move { Ok(Output::text(format!("{name} did {}", input["n"]))) }
    })
    .define(|definition| definition.effect = Effect::Once)
}

/// A runtime that leaves questions open, over a record.
fn parking(project: TestProject, store: &MemoryStore) -> Runtime {
    let store = store.clone();
    project.runtime(|runtime| runtime.store(Arc::new(store)).approval_mode(ApprovalMode::Park)).build()
}

/// Two agents at depth 3, in parallel branches, each with a call that asks.
fn two_branches(recorder: &EffectRecorder) -> TestProject {
    let main = AgentSpec::new("main", "x").toolset("middle").tool("look").model(Script::by_turn([
        asks_all([
            ("middle", json!({"input": "1"})),
            ("look", json!({"n": 9})),
            ("middle", json!({"input": "2"})),
        ]),
        says("all done"),
    ]));
    let middle = AgentSpec::new("middle", "x").tool("note").toolset("leaf").model(Script::by_turn([
        asks("note", json!({"n": 5})),
        asks("leaf", json!({"input": "go"})),
        says("ok"),
    ]));
    let leaf = AgentSpec::new("leaf", "x")
        .tool("pay")
        .model(Script::by_turn([asks("pay", json!({"n": 1})), says("paid")]));
    let free = |name| asking(name, recorder).define(|definition| definition.approval = Approval::PreApproved);
    TestProject::new()
        .agent(main)
        .agent(middle)
        .agent(leaf)
        .tool(asking("pay", recorder))
        .tool(free("note"))
        .tool(free("look"))
}

fn answer_to(request: &ApprovalRequest, answer: Answer) -> GivenAnswer {
    GivenAnswer::new(request, answer, "ada", Timestamp::now()).unwrap()
}

async fn resume(runtime: &Runtime, run: RunId) -> TestRun {
    TestRun::of(runtime.resume(run).await.unwrap().await)
}

fn notices(report: &RunReport) -> Vec<String> {
    let text = |event: &Arc<Event>| match &event.body {
        EventBody::Notice { text } => Some(text.clone()),
        _ => None,
    };
    report.events().iter().filter_map(text).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_parks_in_two_branches_and_goes_on_when_both_are_answered_in_reverse_order() {
    let (recorder, store) = (EffectRecorder::default(), MemoryStore::default());
    let first = TestRun::of(parking(two_branches(&recorder), &store).run("main", "go").await);
    assert_eq!(first.status(), Status::Parked);
    assert!(first.report().can_resume);
    // Whatever runs beside a question goes on to its end.
    let mut ran = recorder.names();
    ran.sort();
    assert_eq!(ran, ["look", "note", "note"]);
    let open = first.report().open_requests();
    assert_eq!(open.iter().map(|request| request.name.as_str()).collect::<Vec<_>>(), ["pay", "pay"]);
    assert!(open.iter().all(|request| request.path.matches('>').count() == 3), "{open:?}");

    let run = first.report().id;
    store.answer(run, answer_to(&open[1], once()));
    let second = resume(&parking(two_branches(&recorder), &store), run).await;
    assert_eq!(second.status(), Status::Parked);
    assert_eq!(second.report().open_requests().len(), 1);
    assert_eq!(second.report().open_requests()[0].id, open[0].id);

    store.answer(run, answer_to(&open[0], once()));
    let third = resume(&parking(two_branches(&recorder), &store), run).await;
    assert_eq!(third.answer().as_ref(), "all done");
    assert_eq!(third.report().open_requests(), []);
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    recorder.names().into_iter().for_each(|name| *count.entry(name).or_default() += 1);
    let expected = [("look", 1), ("note", 2), ("pay", 2)].map(|(name, n)| (name.to_owned(), n));
    assert_eq!(count, BTreeMap::from(expected));
}

/// One agent that makes one call which asks.
fn one_call(recorder: &EffectRecorder) -> TestProject {
    TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("pay"))
        .tool(asking("pay", recorder))
        .model_replies([asks("pay", json!({"n": 1})), says("done")])
}

/// Who answered questions of a run, as its decisions record it.
fn answerers(run: &TestRun) -> Vec<AnsweredBy> {
    let answered_by = |event: &Arc<Event>| match &event.body {
        EventBody::ApprovalDecided { answered_by, .. } => answered_by.clone(),
        _ => None,
    };
    run.report().events().iter().filter_map(answered_by).collect()
}

#[tokio::test]
async fn a_record_says_who_answered() {
    let recorder = EffectRecorder::default();
    let program = AnsweredBy::approver(AnsweredVia::Program);
    for answer in [once(), deny("no"), edit(json!({"n": 2}))] {
        let run = one_call(&recorder).approvals([answer]).run("go").await;
        assert_eq!(answerers(&run), std::slice::from_ref(&program));
    }
    for answer in [once(), deny("no")] {
        let later = answered(&recorder, answer).await;
        assert_eq!(answerers(&later), [AnsweredBy::other_process("ada")]);
    }
    // Nobody was asked.
    let allowed = one_call(&recorder)
        .runtime(|runtime| runtime.approval_mode(ApprovalMode::ApproveAll))
        .build()
        .run("main", "go")
        .await;
    assert_eq!(answerers(&TestRun::of(allowed)), []);
}

/// Parks a run at its one question, answers it, and returns the resumed run.
async fn answered(recorder: &EffectRecorder, answer: Answer) -> TestRun {
    let store = MemoryStore::default();
    let parked = TestRun::of(parking(one_call(recorder), &store).run("main", "go").await);
    assert_eq!(parked.status(), Status::Parked);
    store.answer(parked.report().id, answer_to(&parked.report().open_requests()[0], answer));
    let by_turn = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("pay"))
        .tool(asking("pay", recorder))
        .model(Script::by_turn([asks("pay", json!({"n": 1})), says("done")]));
    resume(&parking(by_turn, &store), parked.report().id).await
}

#[tokio::test]
async fn a_denial_that_was_given_while_the_run_was_parked_is_read_by_the_model() {
    let recorder = EffectRecorder::default();
    let run = answered(&recorder, deny("too much")).await;
    assert_eq!(run.tool_results(), ["denied: too much"]);
    assert_eq!(recorder.effects(), []);
}

#[tokio::test]
async fn arguments_that_were_edited_while_the_run_was_parked_are_used() {
    let recorder = EffectRecorder::default();
    let run = answered(&recorder, edit(json!({"n": 7}))).await;
    assert_eq!(run.answer().as_ref(), "done");
    assert_eq!(recorder.effects()[0].arguments, json!({"n": 7}));
}

#[tokio::test]
async fn a_scope_that_was_granted_while_the_run_was_parked_covers_later_calls() {
    let (recorder, store) = (EffectRecorder::default(), MemoryStore::default());
    let project = || {
        let pay = asking("pay", &recorder)
            .assessed(|_| Assessment { scopes: vec![Scope::Tool], ..Assessment::new(Approval::Ask, "pay") });
        let replies = [asks("pay", json!({"n": 1})), asks("pay", json!({"n": 2})), says("done")];
        TestProject::new()
            .agent(AgentSpec::new("main", "x").tool("pay").model(Script::by_turn(replies)))
            .tool(pay)
    };
    let parked = TestRun::of(parking(project(), &store).run("main", "go").await);
    let given = answer_to(&parked.report().open_requests()[0], Answer::Session(Scope::Tool));
    store.answer(parked.report().id, given);
    let run = resume(&parking(project(), &store), parked.report().id).await;
    assert_eq!(run.answer().as_ref(), "done");
    assert_eq!(recorder.names(), ["pay", "pay"]);
}

#[tokio::test]
async fn an_answer_is_void_when_the_call_would_do_something_else_by_now() {
    let (recorder, store) = (EffectRecorder::default(), MemoryStore::default());
    let project = |found: &'static str| {
        let pay = asking("pay", &recorder).assessed(move |_| Assessment {
            precondition: Some(json!({ "file": found })),
            ..Assessment::new(Approval::Ask, "pay")
        });
        TestProject::new()
            .agent(
                AgentSpec::new("main", "x")
                    .tool("pay")
                    .model(Script::by_turn([asks("pay", json!({"n": 1})), says("done")])),
            )
            .tool(pay)
    };
    let parked = TestRun::of(parking(project("old"), &store).run("main", "go").await);
    let run = parked.report().id;
    store.answer(run, answer_to(&parked.report().open_requests()[0], once()));

    let again = resume(&parking(project("new"), &store), run).await;
    assert_eq!(again.status(), Status::Parked);
    assert_eq!(recorder.effects(), []);
    let said = notices(again.report());
    assert!(said.iter().any(|text| text.contains("the answer of ada about `pay` is void")), "{said:?}");

    // The new question has another digest, and its answer holds.
    store.answer(run, answer_to(&again.report().open_requests()[0], once()));
    let done = resume(&parking(project("new"), &store), run).await;
    assert_eq!((done.answer().as_ref(), recorder.names()), ("done", vec!["pay".to_owned()]));
}

#[tokio::test]
async fn a_question_that_nobody_answers_in_time_is_denied() {
    let (recorder, store) = (EffectRecorder::default(), MemoryStore::default());
    let project = || {
        TestProject::new().tool(asking("pay", &recorder)).agent(
            AgentSpec::new("main", "x")
                .tool("pay")
                .model(Script::by_turn([asks("pay", json!({"n": 1})), says("done")])),
        )
    };
    let short = parking(project(), &store).run("main", "go").answer_within(Duration::ZERO);
    let parked = TestRun::of(short.await);
    assert_eq!(parked.status(), Status::Parked);
    let run = resume(&parking(project(), &store), parked.report().id).await;
    assert!(run.tool_results()[0].starts_with("denied: nobody answered by "), "{:?}", run.tool_results());
    assert_eq!(recorder.effects(), []);

    let long = parking(project(), &store).run("main", "go").answer_within(Duration::from_secs(3_600));
    let parked = TestRun::of(long.await);
    let before = parked.report().open_requests()[0].expires;
    let again = resume(&parking(project(), &store), parked.report().id).await;
    assert_eq!(again.status(), Status::Parked);
    // A question that is put again has no more time than before.
    assert_eq!(again.report().open_requests()[0].expires, before);
}

/// A tool of this effect calls `pay`, which asks.
fn called_by_a_tool(recorder: &EffectRecorder, effect: Effect) -> TestProject {
    let outer = FunctionTool::new("outer", |_, call| async move {
        call.call("pay", json!({"n": 1})).await.map_err(Into::into)
    })
    .define(move |definition| {
        definition.effect = effect;
        definition.approval = Approval::PreApproved;
    });
    let main = AgentSpec::new("main", "x").tool("outer").tool("pay");
    TestProject::new()
        .agent(main.model(Script::by_turn([asks("outer", json!({})), says("done")])))
        .tool(outer)
        .tool(asking("pay", recorder))
}

#[tokio::test]
async fn a_call_below_a_tool_that_must_not_be_begun_twice_cannot_wait() {
    let recorder = EffectRecorder::default();
    let store = MemoryStore::default();
    let run = TestRun::of(parking(called_by_a_tool(&recorder, Effect::Once), &store).run("main", "go").await);
    let result = &run.tool_results()[0];
    assert!(result.contains("it is made by `outer`, which must not be begun twice"), "{result}");
    assert!(run.report().nobody_to_ask);

    let parked =
        TestRun::of(parking(called_by_a_tool(&recorder, Effect::Calls), &store).run("main", "go").await);
    assert_eq!(parked.status(), Status::Parked);
    store.answer(parked.report().id, answer_to(&parked.report().open_requests()[0], once()));
    let run = resume(&parking(called_by_a_tool(&recorder, Effect::Calls), &store), parked.report().id).await;
    assert_eq!(run.tool_results(), ["pay did 1"]);
    assert_eq!(recorder.names(), ["pay"]);
}

#[tokio::test]
async fn what_is_not_recorded_or_belongs_to_a_conversation_cannot_wait() {
    let recorder = EffectRecorder::default();
    let unrecorded = one_call(&recorder).runtime(|runtime| runtime.approval_mode(ApprovalMode::Park)).build();
    let run = TestRun::of(unrecorded.run("main", "go").await);
    assert!(run.tool_results()[0].contains("this run is not recorded"), "{:?}", run.tool_results());

    let store = MemoryStore::default();
    let runtime = parking(one_call(&recorder), &store);
    let mut session = runtime.session("main");
    let turn = TestRun::of(session.send("go").await);
    assert!(turn.tool_results()[0].contains("a turn of a conversation"), "{:?}", turn.tool_results());
    session.close().await;
    assert_eq!(recorder.effects(), []);
}

#[tokio::test]
async fn an_approver_may_leave_a_question_open() {
    let (recorder, store) = (EffectRecorder::default(), MemoryStore::default());
    let kept = store.clone();
    let runtime = one_call(&recorder).approvals([Answer::Park]);
    let runtime = runtime.runtime(move |runtime| runtime.store(Arc::new(kept))).build();
    let run = TestRun::of(runtime.run("main", "go").await);
    assert_eq!(run.status(), Status::Parked);
    assert!(run.error().contains("`pay` (1/t1/tool/0) waits for an answer"), "{}", run.error());
}

#[tokio::test]
async fn another_process_answers_a_question_of_a_run_that_waits() {
    let (recorder, store) = (EffectRecorder::default(), MemoryStore::default());
    let (kept, answers) = (store.clone(), store.clone());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let runtime = one_call(&recorder)
        .runtime(move |runtime| {
            runtime.store(Arc::new(kept)).approver(move |_: ApprovalRequest| {
                count.fetch_add(1, Ordering::SeqCst);
                pending::<Answer>()
            })
        })
        .build();
    let run = runtime.run("main", "go").start();
    let mut events = run.events();
    let request = loop {
        let event = events.next().await.expect("no question");
        if let EventBody::ApprovalRequested(request) = &event.body {
            break request.clone();
        }
    };
    // An answer about something else does not count.
    let other = ApprovalRequest { digest: Some(llm_do_core::Digest::hash("other")), ..(*request).clone() };
    answers.answer(run.id(), answer_to(&other, deny("not this")));
    answers.answer(run.id(), answer_to(&request, once()));
    let run = TestRun::of(run.await);
    assert_eq!((run.answer().as_ref(), asked.load(Ordering::SeqCst)), ("done", 1));
    assert_eq!(answerers(&run), [AnsweredBy::other_process("ada")]);
    assert_eq!(recorder.names(), ["pay"]);
}

/// A project of random depth and width, in which some calls ask.
fn random_project(seed: u64, recorder: &EffectRecorder) -> TestProject {
    let mut chance = Chance::new(seed);
    let depth = chance.between(1, 3);
    let mut project = TestProject::new()
        .tool(asking("pay", recorder))
        .tool(asking("note", recorder).define(|definition| definition.approval = Approval::PreApproved));
    let group = FunctionTool::new("group", |_, call| async move {
        let calls = (0..2).map(|n| call.call("pay", json!({"n": 100 + n})));
        let results = join_all(calls).await.into_iter().map(|result| match result {
            Ok(output) => output.to_text().to_string(),
            Err(error) => error.to_string(),
        });
        Ok(Output::text(results.collect::<Vec<_>>().join(", ")))
    });
    project = project.tool(group.define(|definition| {
        definition.effect = Effect::Calls;
        definition.approval = Approval::PreApproved;
    }));
    for level in 0..=depth {
        let name = if level == 0 { "main".to_owned() } else { format!("agent{level}") };
        let below = format!("agent{}", level + 1);
        let mut replies = Vec::new();
        for turn in 0..chance.between(1, 2) {
            let calls: Vec<(&str, serde_json::Value)> = (0..chance.between(1, 3))
                .map(|n| match chance.below(4) {
                    0 if level < depth => (below.as_str(), json!({"input": format!("{turn}.{n}")})),
                    1 => ("note", json!({ "n": n })),
                    2 => ("group", json!({})),
                    _ => ("pay", json!({ "n": n })),
                })
                .collect();
            replies.push(asks_all(calls));
        }
        replies.push(says(format!("{name} is done")));
        let mut agent = AgentSpec::new(name.as_str(), "x").tool("pay").tool("note").tool("group");
        if level < depth {
            agent = agent.toolset(below.as_str());
        }
        project = project.agent(agent.model(Script::by_turn(replies)));
    }
    project
}

/// What a person says about a call, whenever and wherever they are asked.
fn opinion(seed: u64, request: &ApprovalRequest) -> Answer {
    let mut chance = Chance::at(seed, &[request.id.as_str()]);
    match chance.below(4) {
        0 => deny("no"),
        1 => edit(json!({ "n": 50 })),
        _ => once(),
    }
}

/// Parks, answers some of the questions in random order, and resumes until the run has ended.
async fn parked_to_its_end(seed: u64, recorder: &EffectRecorder) -> (TestRun, usize) {
    let (store, mut chance) = (MemoryStore::default(), Chance::new(seed ^ 0xfeed));
    let mut run = TestRun::of(parking(random_project(seed, recorder), &store).run("main", "go").await);
    let mut stretches = 1;
    while run.status() == Status::Parked {
        let mut open = run.report().open_requests();
        assert!(!open.is_empty(), "seed {seed}: parked without a question");
        for _ in 0..chance.between(1, open.len()) {
            let request = open.remove(chance.below(open.len()));
            store.answer(run.report().id, answer_to(&request, opinion(seed, &request)));
        }
        run = resume(&parking(random_project(seed, recorder), &store), run.report().id).await;
        stretches += 1;
        assert!(stretches < 200, "seed {seed}: no end");
    }
    (run, stretches)
}

fn effects_of(recorder: &EffectRecorder) -> Vec<String> {
    let mut effects: Vec<String> = recorder
        .effects()
        .into_iter()
        .map(|effect| format!("{} {} {}", effect.key, effect.name, effect.arguments))
        .collect();
    effects.sort();
    effects
}

/// How many random projects are run: `LLM_DO_PARKING_CASES`.
fn cases() -> u64 {
    std::env::var("LLM_DO_PARKING_CASES").map_or(60, |count| count.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_was_parked_ends_as_one_whose_questions_were_answered_at_once() {
    let mut parked = 0;
    for seed in 0..cases() {
        let at_once = EffectRecorder::default();
        let approver = move |request: ApprovalRequest| opinion(seed, &request);
        let project = random_project(seed, &at_once).runtime(move |runtime| runtime.approver(approver));
        let expected = TestRun::of(project.build().run("main", "go").await);

        let later = EffectRecorder::default();
        let (run, stretches) = parked_to_its_end(seed, &later).await;
        parked += usize::from(stretches > 1);
        assert_eq!(run.status(), expected.status(), "seed {seed}");
        assert_eq!(run.report().text(), expected.report().text(), "seed {seed}");
        assert_eq!(effects_of(&later), effects_of(&at_once), "seed {seed}");
        assert_eq!(run.report().usage, expected.report().usage, "seed {seed}");
    }
    assert!(parked as u64 > cases() / 2, "only {parked} of {} runs were parked", cases());
}
