//! Budgets through the whole runtime: refusals at the right level, caps, extensions by a person only.

use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{
    AgentSpec, Answer, Approval, ApprovalMode, ApprovalRequest, Approver, ApproverError, Attachment, Event,
    EventBody, ExtensionRequest, FailureKind, Limits, ModelErrorKind, ModelSettings, Money, Output, Prices,
    Quantity, Status, Usage,
};
use llm_do_models::{Script, ScriptedReply, asks, cut, fails, instructed, replies, says};
use llm_do_runtime::RetryPolicy;
use llm_do_testing::{FunctionTool, TestProject, TestRun};
use serde_json::json;

fn tokens(limit: u64) -> Limits {
    Limits { tokens: Some(limit), ..Limits::default() }
}

fn look() -> FunctionTool {
    FunctionTool::new("look", |_, _| async { Ok(Output::text("seen")) })
        .define(|tool| tool.approval = Approval::PreApproved)
}

/// An agent that looks for ever, each turn using so many tokens.
fn endless(input: u64, output: u64) -> Script {
    let next = replies(|request| asks("look", json!({"n": request.conversation.messages().len()})));
    Script::new([next.tokens(input, output).when(instructed(""))])
}

fn requests(run: &TestRun) -> usize {
    run.events().iter().filter(|event| matches!(event.body, EventBody::ModelRequest { .. })).count()
}

#[tokio::test]
async fn a_budget_of_the_run_ends_the_run_before_it_overshoots() {
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("look"))
        .tool(look())
        .model(endless(300, 200))
        .runtime(|runtime| runtime.limits(tokens(3_000)))
        .run("go")
        .await;
    assert_eq!(run.status(), Status::Limit);
    assert!(run.error().contains("the limit of 3000 tokens set by the run is used up"), "{}", run.error());
    assert!(run.report().usage.total().tokens() <= 3_000);
    assert!(requests(&run) >= 3, "{}", requests(&run));
}

#[tokio::test]
async fn a_budget_of_an_agent_is_a_result_for_its_caller() {
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "You are main.").toolset("child"))
        .agent(
            AgentSpec::new("child", "You are child.")
                .tool("look")
                .limits(tokens(2_000))
                .model(endless(300, 200)),
        )
        .tool(look())
        .model_replies([asks("child", json!({"input": "x"})), says("went on")])
        .run("go")
        .await;
    assert_eq!(&*run.answer(), "went on");
    let failure = run.failure_of("child");
    assert_eq!(failure.kind, FailureKind::Limit);
    assert!(failure.message.contains("set by agent `child`"), "{}", failure.message);
    let trace = run.report().trace();
    assert!(trace.calls[0].calls[0].usage.tokens() <= 2_000);
}

#[tokio::test]
async fn the_output_is_capped_by_what_is_free_and_the_cap_is_recorded() {
    let settings = ModelSettings { max_tokens: Some(4_000), ..ModelSettings::default() };
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").settings(settings))
        .model_replies([replies(|request| {
            assert!(request.max_output.unwrap() < 1_000);
            says("done")
        })])
        .runtime(|runtime| runtime.limits(tokens(1_000)))
        .run("go")
        .await;
    run.answer();
    let events = run.events();
    let cap = events.iter().find_map(|event| match &event.body {
        EventBody::ModelRequest { max_output, .. } => *max_output,
        _ => None,
    });
    assert!(cap.is_some_and(|cap| (256..1_000).contains(&cap)), "{cap:?}");
}

#[tokio::test]
async fn a_budget_too_small_for_one_request_sends_none() {
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x"))
        .model_replies([says("never")])
        .runtime(|runtime| runtime.limits(tokens(100)))
        .run("go")
        .await;
    assert_eq!((run.status(), requests(&run)), (Status::Limit, 0));
}

/// Allows every call, and so much more budget each time it is asked.
struct Generous {
    more: u64,
    asked: std::sync::Mutex<Vec<ExtensionRequest>>,
}

impl Approver for Generous {
    fn decide<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>> {
        Box::pin(async { Ok(Answer::Once) })
    }

    fn extend<'a>(&'a self, request: &'a ExtensionRequest) -> BoxFuture<'a, Option<u64>> {
        let mut asked = self.asked.lock().unwrap();
        asked.push(request.clone());
        let more = (asked.len() == 1).then_some(self.more);
        Box::pin(async move { more })
    }
}

#[tokio::test]
async fn a_person_can_extend_a_budget() {
    let generous = std::sync::Arc::new(Generous { more: 1_000, asked: std::sync::Mutex::default() });
    struct Shared(std::sync::Arc<Generous>);
    impl Approver for Shared {
        fn decide<'a>(
            &'a self,
            request: &'a ApprovalRequest,
        ) -> BoxFuture<'a, Result<Answer, ApproverError>> {
            self.0.decide(request)
        }
        fn extend<'a>(&'a self, request: &'a ExtensionRequest) -> BoxFuture<'a, Option<u64>> {
            self.0.extend(request)
        }
    }
    let approver = Shared(generous.clone());
    let limit = Limits { tool_calls: Some(2), ..Limits::default() };
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("look"))
        .tool(look())
        .model_replies((0..4).map(|n| asks("look", json!({ "n": n }))).chain([says("done")]))
        .runtime(move |runtime| runtime.limits(limit).approver(approver))
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["seen"; 4]);
    let asked = generous.asked.lock().unwrap();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        (asked[0].path.as_str(), asked[0].exhausted.what, asked[0].exhausted.used),
        ("main > look", Quantity::ToolCalls, 2)
    );
    assert!(run.events().iter().any(|event| matches!(&event.body, EventBody::Notice { text } if text.contains("extended by 1000 tool calls"))));
}

#[tokio::test]
async fn no_mode_and_no_ready_made_approver_extends_a_budget() {
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("look"))
        .tool(look())
        .model(endless(300, 200))
        .runtime(|runtime| {
            let runtime = runtime.limits(tokens(2_000)).approval_mode(ApprovalMode::ApproveAll);
            runtime.approver(|_: ApprovalRequest| async { Answer::Once })
        })
        .run("go")
        .await;
    assert_eq!(run.status(), Status::Limit);
}

struct PerToken(u64);

impl Prices for PerToken {
    fn price(&self, _model: &str, usage: &Usage) -> Option<Money> {
        Some(Money(usage.tokens() * self.0))
    }
}

#[tokio::test]
async fn a_cost_limit_stops_before_the_money_is_spent() {
    let limits = Limits { cost: Some(Money(3_000_000)), ..Limits::default() };
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("look"))
        .tool(look())
        .model(endless(300, 200))
        .runtime(move |runtime| runtime.limits(limits).prices(PerToken(1_000)))
        .run("go")
        .await;
    assert_eq!(run.status(), Status::Limit);
    assert!(run.error().contains("the limit of $0.0030 set by the run is used up"), "{}", run.error());
    let cost = run.report().usage.total().cost;
    assert!(cost.known <= Money(3_000_000) && cost.known > Money(0), "{cost:?}");
}

/// The output caps of all requests, in order.
fn output_caps(run: &TestRun) -> Vec<u64> {
    let cap = |event: &Arc<Event>| match event.body {
        EventBody::ModelRequest { max_output, .. } => max_output,
        _ => None,
    };
    run.events().iter().filter_map(cap).collect()
}

#[tokio::test]
async fn usage_above_its_reservation_is_booked_and_the_run_continues_with_what_is_left() {
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("look"))
        .tool(look())
        .model_replies([
            asks("look", json!({})).tokens(50_000, 10),
            asks("look", json!({"n": 1})).tokens(50_100, 10),
            says("done").tokens(50_200, 10),
        ])
        .runtime(|runtime| runtime.limits(tokens(1_000_000)))
        .run("go")
        .await;
    assert_eq!((run.status(), requests(&run)), (Status::Done, 3), "{}", run.error());
    assert_eq!(run.report().usage.total().tokens(), 150_330);
    let notices: Vec<String> = notices(&run);
    assert!(
        notices.iter().any(|text| text.contains("more than the") && text.contains("reserved")),
        "{notices:?}"
    );
}

fn notices(run: &TestRun) -> Vec<String> {
    let notice = |event: &Arc<Event>| match &event.body {
        EventBody::Notice { text } => Some(text.clone()),
        _ => None,
    };
    run.events().iter().filter_map(notice).collect()
}

#[tokio::test]
async fn usage_above_the_whole_limit_is_booked_and_nothing_further_starts() {
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("look"))
        .tool(look())
        .model(endless(50_000, 10))
        .runtime(|runtime| runtime.limits(tokens(20_000)))
        .run("go")
        .await;
    assert_eq!((run.status(), requests(&run)), (Status::Limit, 1));
    assert_eq!(run.report().usage.total().tokens(), 50_010);
}

/// Failures that a provider does not charge for, and the kinds that they have.
const NOT_CHARGED: [ModelErrorKind; 4] =
    [ModelErrorKind::RateLimit, ModelErrorKind::Overloaded, ModelErrorKind::Server, ModelErrorKind::Network];

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_does_not_change_what_the_next_one_reserves() {
    for kind in NOT_CHARGED {
        let project = |replies: Vec<ScriptedReply>| {
            TestProject::new()
                .agent(AgentSpec::new("main", "You look around. ".repeat(100)).tool("look"))
                .tool(look())
                .model_replies(replies)
                .runtime(|runtime| runtime.limits(tokens(9_000)).retry(RetryPolicy::default()))
        };
        let turns = || [asks("look", json!({})).tokens(900, 20), says("done").tokens(950, 10)];
        let [first, second] = turns();
        let smooth = project(vec![first, second]).run("go").await;
        let [first, second] = turns();
        let failing = project(vec![fails(kind, "a"), first, fails(kind, "b"), fails(kind, "c"), second]);
        let failing = failing.run("go").await;
        assert_eq!(failing.status(), Status::Done, "{kind:?}: {}", failing.error());
        let (caps, expected) = (output_caps(&failing), output_caps(&smooth));
        assert_eq!(caps, [expected[0], expected[0], expected[1], expected[1], expected[1]], "{kind:?}");
        assert_eq!(failing.report().usage.total().tokens(), smooth.report().usage.total().tokens());
        assert_eq!(failing.report().usage.total().requests, 5);
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_the_provider_may_have_charged_is_booked_in_full() {
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x"))
        .model_replies([cut("half of it"), says("done").tokens(5, 5)])
        .runtime(|runtime| runtime.limits(tokens(10_000)).retry(RetryPolicy::default()))
        .run("go")
        .await;
    assert_eq!(run.status(), Status::Done);
    let caps = output_caps(&run);
    assert_eq!(caps[0], 8_192);
    // The first attempt reserved its output and a small input; the second one has what is left.
    assert!(caps[1] < 10_000 - 8_192 && caps[1] > 10_000 - 8_192 - 1_000, "{caps:?}");
}

#[tokio::test]
async fn a_refused_message_of_a_chat_does_not_change_what_the_next_one_reserves() {
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "You look around. ".repeat(100)))
        .model_replies([fails(ModelErrorKind::Invalid, "no"), says("done").tokens(600, 5)])
        .runtime(|runtime| runtime.limits(tokens(10_000)))
        .build();
    let mut session = runtime.session("main");
    assert!(session.send("first").await.is_err());
    let run = TestRun::of(session.send("second").await);
    assert_eq!(run.status(), Status::Done, "{}", run.error());
    let caps = output_caps(&run);
    assert!(caps[0] < 10_000 - 1_700, "the instructions are part of the reservation: {caps:?}");
}

#[tokio::test]
async fn a_picture_is_reserved_by_what_pictures_cost_and_not_by_its_bytes() {
    let picture = Attachment::bytes("a.png", "image/png", vec![7; 300_000]);
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x"))
        .model_replies([says("a cat").tokens(1_600, 5)])
        .runtime(|runtime| runtime.limits(tokens(30_000)))
        .build()
        .run("main", "what is it?")
        .attach(picture)
        .await;
    let run = TestRun::of(run);
    assert_eq!(run.status(), Status::Done, "{}", run.error());
}

#[tokio::test]
async fn a_tool_sees_what_is_left() {
    let left = FunctionTool::new("left", |_, call| async move {
        let seen = call.inspect();
        Ok(Output::text(format!(
            "{} agents, {:?} calls, {} tokens used, callables {:?}, {} messages",
            seen.remaining.depth,
            seen.remaining.tool_calls,
            seen.usage.total().tokens(),
            seen.callables.iter().map(|name| name.as_str()).collect::<Vec<_>>(),
            seen.messages.len()
        )))
    })
    .define(|tool| tool.approval = Approval::PreApproved);
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("left"))
        .tool(left)
        .model_replies([asks("left", json!({})), says("done")])
        .runtime(|runtime| runtime.limits(Limits { tool_calls: Some(10), ..Limits::default() }))
        .run("go")
        .await;
    assert_eq!(
        run.tool_results(),
        [r#"4 agents, Some(9) calls, 0 tokens used, callables ["left", "main"], 1 messages"#]
    );
}

/// A turn of a model that asks for one look; turns are not limited.
fn without_turn_limit(limits: Limits) -> Limits {
    Limits { turns: Some(100_000), ..limits }
}

#[tokio::test]
async fn a_run_without_limits_ends_after_1000_model_requests() {
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("look"))
        .tool(look())
        .model(endless(1, 1))
        .runtime(|runtime| runtime.limits(without_turn_limit(Limits::default())))
        .run("go")
        .await;
    assert_eq!(run.status(), Status::Limit);
    assert!(run.error().contains("the limit of 1000 model requests set by the run"), "{}", run.error());
    assert!(run.error().contains("`runtime.limits.requests`"), "{}", run.error());
    assert_eq!(requests(&run), 1_000);
}

#[tokio::test]
async fn model_requests_can_be_limited_for_a_run_and_for_an_agent() {
    let limits = Limits { requests: Some(3), ..Limits::default() };
    let project = || {
        TestProject::new()
            .agent(AgentSpec::new("main", "You are main.").toolset("child"))
            .agent(AgentSpec::new("child", "You are child.").tool("look").model(endless(1, 1)))
            .tool(look())
            .model_replies([asks("child", json!({"input": "x"})), says("went on")])
    };
    let of_run_limits = limits.clone();
    let of_run = project().runtime(|runtime| runtime.limits(of_run_limits)).run("go").await;
    assert_eq!((of_run.status(), requests(&of_run)), (Status::Limit, 3));

    let child = AgentSpec::new("child", "You are child.").tool("look").limits(limits).model(endless(1, 1));
    let of_agent = TestProject::new()
        .agent(AgentSpec::new("main", "You are main.").toolset("child"))
        .agent(child)
        .tool(look())
        .model_replies([asks("child", json!({"input": "x"})), says("went on")])
        .run("go")
        .await;
    assert_eq!(&*of_agent.answer(), "went on");
    let failure = of_agent.failure_of("child");
    assert!(failure.message.contains("3 model requests set by agent `child`"), "{}", failure.message);
    assert_eq!(failure.hint.as_deref(), Some("`limits.requests` sets the limit"));
    assert_eq!(requests(&of_agent), 2 + 3);
}

#[tokio::test]
async fn a_run_without_limits_refuses_the_call_after_10000() {
    let calls = (0..100).map(|n| ("look", json!({"n": n}))).collect::<Vec<_>>();
    let looks = replies(move |_| llm_do_models::asks_all(calls.clone()));
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("look"))
        .tool(look())
        .model(Script::new([looks.when(instructed(""))]))
        .runtime(|runtime| runtime.limits(Limits { turns: Some(101), ..Limits::default() }))
        .run("go")
        .await;
    assert_eq!(run.status(), Status::Limit);
    let failure = run.failure_of("look");
    assert!(failure.message.contains("the limit of 10000 tool calls set by the run"), "{}", failure.message);
    assert!(failure.hint.as_deref().unwrap().contains("`runtime.limits.tool_calls`"), "{failure:?}");
}

fn generated(name: &str) -> AgentSpec {
    AgentSpec { generated: true, ..AgentSpec::new(name, "x") }
}

#[tokio::test]
async fn agents_create_64_agents_unless_a_limit_says_otherwise() {
    for (limit, most) in [(None, 64), (Some(2), 2)] {
        let create = FunctionTool::new("create", |_, call| async move {
            let created = (0..100).map(|n| call.add_agent(generated(&format!("made_{n}"))));
            let refused = created.filter_map(Result::err).collect::<Vec<_>>();
            let again = call.add_agent(generated("made_0"));
            assert!(again.is_ok(), "replacing is not a new agent: {again:?}");
            assert!(
                refused[0].hint.as_deref().unwrap().contains("`runtime.max_created_agents`"),
                "{refused:?}"
            );
            Ok(Output::text(format!("{} refused: {}", refused.len(), refused[0].message)))
        });
        let run = TestProject::new()
            .agent(AgentSpec::new("main", "x").tool("create"))
            .tool(create.define(|tool| tool.approval = Approval::PreApproved))
            .model_replies([asks("create", json!({})), says("done")])
            .runtime(move |runtime| runtime.limits(Limits { created_agents: limit, ..Limits::default() }))
            .run("go")
            .await;
        assert_eq!(run.status(), Status::Done, "{}", run.report().trace());
        let text = format!("{} refused: the limit of {most} created agents is reached", 100 - most);
        assert_eq!(run.tool_results(), [text]);
    }
}

/// Runs a turn with so many calls of a tool, under limits.
async fn many_calls(tool: FunctionTool, calls: usize, limits: Limits) -> TestRun {
    let requests = (0..calls).map(|n| ("work", json!({"n": n}))).collect::<Vec<_>>();
    TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("work"))
        .tool(tool.define(|tool| tool.approval = Approval::PreApproved))
        .model_replies([llm_do_models::asks_all(requests), says("done")])
        .runtime(move |runtime| runtime.limits(limits))
        .run("go")
        .await
}

#[tokio::test]
async fn so_many_tools_run_side_by_side_as_the_limit_says() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    for (limit, most) in [(None, 32), (Some(3), 3)] {
        let (running, highest) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let seen = highest.clone();
        let work = FunctionTool::new("work", move |_, _| {
            let (running, highest) = (running.clone(), highest.clone());
            async move {
                highest.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(Output::text("done"))
            }
        });
        let run = many_calls(work, 100, Limits { parallel: limit, ..Limits::default() }).await;
        assert_eq!(run.status(), Status::Done);
        assert_eq!(seen.load(Ordering::SeqCst), most);
    }
}

#[tokio::test]
async fn tools_that_call_do_not_keep_what_they_call_from_running() {
    let outer = FunctionTool::new("work", |input, call| async move {
        let inner = call.call("inner", input).await?;
        Ok(Output::text(inner.to_text()))
    });
    let requests = (0..100).map(|n| ("work", json!({"n": n}))).collect::<Vec<_>>();
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("work").tool("inner"))
        .tool(outer.define(|tool| tool.approval = Approval::PreApproved))
        .tool(FunctionTool::new("inner", |_, _| async { Ok(Output::text("seen")) }).define(|tool| {
            tool.approval = Approval::PreApproved;
        }))
        .model_replies([llm_do_models::asks_all(requests), says("done")])
        .runtime(|runtime| runtime.limits(Limits { parallel: Some(2), ..Limits::default() }))
        .run("go");
    let run =
        tokio::time::timeout(std::time::Duration::from_secs(60), run).await.expect("nobody waits for ever");
    assert_eq!(run.status(), Status::Done);
    assert!(run.tool_results().iter().all(|result| result == "seen"), "{:?}", run.tool_results());
}

#[tokio::test]
async fn results_in_flight_are_limited_and_the_next_turn_begins_anew() {
    let big = || FunctionTool::new("work", |_, _| async { Ok(Output::text("x".repeat(400))) });
    let run = many_calls(big(), 5, Limits { result_bytes: Some(1_000), ..Limits::default() }).await;
    let refused = run.tool_results().into_iter().filter(|result| result.contains("400 bytes")).count();
    assert_eq!(refused, 3, "{:?}", run.tool_results());
    let failure = run.failure_of("work");
    assert!(failure.hint.unwrap().contains("`runtime.max_result_bytes`"));

    let turns = (0..5).map(|n| asks("work", json!({"n": n}))).chain([says("done")]);
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("work"))
        .tool(big().define(|tool| tool.approval = Approval::PreApproved))
        .model_replies(turns.collect::<Vec<_>>())
        .runtime(|runtime| runtime.limits(Limits { result_bytes: Some(1_000), ..Limits::default() }))
        .run("go")
        .await;
    assert!(run.tool_results().iter().all(|result| result.len() == 400), "{:?}", run.tool_results());
}
