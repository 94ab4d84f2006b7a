//! Budgets through the whole runtime: refusals at the right level, caps, extensions by a person only.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "what a test does not expect stops it")]

use futures::future::BoxFuture;
use llm_do_core::{
    AgentSpec, Answer, Approval, ApprovalMode, ApprovalRequest, Approver, ApproverError, EventBody,
    ExtensionRequest, FailureKind, Limits, ModelSettings, Money, Output, Prices, Quantity, Status, Usage,
};
use llm_do_models::{Script, asks, instructed, replies, says};
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

#[tokio::test]
async fn usage_above_its_reservation_is_booked_and_nothing_further_starts() {
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("look"))
        .tool(look())
        .model(endless(50_000, 10))
        .runtime(|runtime| runtime.limits(tokens(1_000_000)))
        .run("go")
        .await;
    assert_eq!((run.status(), requests(&run)), (Status::Limit, 1));
    assert_eq!(run.report().usage.total().tokens(), 50_010);
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
