//! What the runtime does about providers: asking again, falling back, and the tools that they run themselves.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use llm_do_core::{
    AgentSpec, Answer, Approval, ApprovalMode, CallKind, EventBody, FromCall, Limits, Message, Model,
    ModelChoice, ModelError, ModelErrorKind, ModelPart, ModelRequest, ModelResponse, ModelSession,
    ModelSettings, ModelStream, Models, Money, Name, Need, NeedSpec, Output, Part, Prices, Role, Schema,
    ServerCall, ServerTool, Status, StopReason, Tool, ToolCall, ToolChoice, ToolError, Usage,
};
use llm_do_models::{Script, asks, cut, fails, says};
use llm_do_runtime::{Descriptors, RetryPolicy, Selection};
use llm_do_testing::{Approvals, FunctionTool, TestProject, TestRun};
use serde_json::json;
use tokio::time::Instant;

fn patient() -> TestProject {
    TestProject::new().runtime(|runtime| runtime.retry(RetryPolicy::default()))
}

/// A tool that counts how often it ran.
fn counting(name: &str) -> (Arc<dyn Tool>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = count.clone();
    let tool = FunctionTool::new(name, move |_, _| {
        seen.fetch_add(1, Ordering::SeqCst);
        async { Ok(Output::text("done")) }
    });
    (tool.shared(), count)
}

fn notices(run: &TestRun) -> Vec<String> {
    let notice = |body: &EventBody| match body {
        EventBody::Notice { text } => Some(text.clone()),
        _ => None,
    };
    run.events().iter().filter_map(|event| notice(&event.body)).collect()
}

fn attempts(run: &TestRun) -> usize {
    run.events().iter().filter(|event| matches!(event.body, EventBody::ModelRequest { .. })).count()
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_may_pass_is_tried_again_after_growing_waits() {
    let started = Instant::now();
    let run = patient()
        .agent(AgentSpec::new("main", "x"))
        .model_replies([
            fails(ModelErrorKind::Overloaded, "busy"),
            cut("Hel"),
            fails(ModelErrorKind::Network, "reset"),
            says("Hello"),
        ])
        .run("go")
        .await;
    assert_eq!(&*run.answer(), "Hello");
    assert_eq!(attempts(&run), 4);
    let waited = started.elapsed();
    assert!((Duration::from_millis(2_800)..Duration::from_millis(4_300)).contains(&waited), "{waited:?}");
    assert_eq!(notices(&run).len(), 3);
    assert!(
        notices(&run)[0].starts_with("provider overloaded: busy; asking again in 0."),
        "{:?}",
        notices(&run)
    );
    assert!(notices(&run)[2].ends_with("(attempt 4 of 5)"), "{:?}", notices(&run));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_stays_down_ends_the_run_after_the_documented_attempts() {
    let down = Script::new(vec![fails(ModelErrorKind::Server, "HTTP 500: broken"); 9]);
    let run = patient().agent(AgentSpec::new("main", "x")).model(down).run("go").await;
    assert_eq!(run.status(), Status::Provider);
    assert_eq!(attempts(&run), 5);
    assert!(
        run.error().contains("HTTP 500: broken (model `script`, gave up after 5 attempts)"),
        "{}",
        run.error()
    );
}

#[tokio::test(start_paused = true)]
async fn the_next_model_is_asked_when_the_first_stays_down() {
    let down = Script::new(vec![fails(ModelErrorKind::Overloaded, "busy"); 9]).named("first");
    let second = Script::new([says("from the second")]).named("second");
    let run = patient().agent(AgentSpec::new("main", "x").model(down).fallback_model(second)).run("go").await;
    assert_eq!(&*run.answer(), "from the second");
    assert_eq!(attempts(&run), 6);
}

#[tokio::test(start_paused = true)]
async fn a_retry_repeats_no_tool() {
    let (tool, ran) = counting("write");
    let run = patient()
        .agent(AgentSpec::new("main", "x").tool("write"))
        .tool(tool)
        .model_replies([
            asks("write", json!({})),
            fails(ModelErrorKind::Overloaded, "busy"),
            cut("do"),
            says("done"),
        ])
        .runtime(|runtime| runtime.approval_mode(ApprovalMode::ApproveAll))
        .run("go")
        .await;
    assert_eq!(&*run.answer(), "done");
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_reports_no_usage_is_booked_in_full_and_each_reserves_anew() {
    let run = patient()
        .agent(AgentSpec::new("main", "x").limits(Limits { tokens: Some(8_400), ..Limits::default() }))
        .model_replies([cut("Hel"), says("Hello")])
        .run("go")
        .await;
    // The first attempt reserved what was free, and nobody knows what it used.
    assert_eq!(run.status(), Status::Limit, "{}", run.error());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_while_it_waits_to_ask_again_ends_at_once() {
    let down = Script::new(vec![fails(ModelErrorKind::Overloaded, "busy"); 9]);
    let runtime = patient().agent(AgentSpec::new("main", "x")).model(down).build();
    let started = Instant::now();
    let run = runtime.run("main", "go").timeout(Duration::from_millis(700)).await;
    assert_eq!(TestRun::of(run).status(), Status::TimedOut);
    assert!(started.elapsed() < Duration::from_secs(1));
}

/// A model whose provider searches the web before it answers.
struct Searching(Name);

impl Model for Searching {
    fn name(&self) -> &Name {
        &self.0
    }

    fn open(&self) -> Box<dyn ModelSession> {
        Box::new(SearchingSession)
    }
}

struct SearchingSession;

impl ModelSession for SearchingSession {
    fn request<'a>(
        &'a mut self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>> {
        let offered: Vec<String> = request.server_tools.iter().map(|tool| format!("{tool:?}")).collect();
        let message = Message::assistant(format!("offered: {}", offered.join(", ")));
        let mut response =
            ModelResponse::new(message, StopReason::EndTurn, Usage { searches: 1, ..Usage::default() });
        if !offered.is_empty() {
            response.server_calls.push(ServerCall {
                id: "s1".into(),
                name: "web_search".into(),
                input: json!({"query": "tides"}),
                output: Some(json!(["https://example.com"])),
                is_error: false,
            });
        }
        Box::pin(async move { Ok(stream::iter([Ok(ModelPart::Finished(response))]).boxed()) })
    }
}

fn searcher(rule: Option<Approval>) -> AgentSpec {
    let tool =
        ServerTool::WebSearch { max_uses: Some(2), allowed_domains: Vec::new(), blocked_domains: Vec::new() };
    let agent = AgentSpec::new("main", "x").model(Searching("searching".into())).server_tool(tool);
    match rule {
        Some(rule) => agent.rule("web_search", rule),
        None => agent,
    }
}

#[tokio::test]
async fn a_server_tool_that_an_agent_lists_is_offered_and_each_use_is_shown_and_counted() {
    let run = TestProject::new().agent(searcher(None)).run("go").await;
    assert!(run.answer().contains("WebSearch"), "{}", run.answer());
    let shown: Vec<_> = run
        .events()
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::CallStarted { kind: CallKind::ServerTool, name, input, .. } => {
                Some(format!("{} {name} {}", event.call.path, input.text()))
            }
            EventBody::CallFinished { kind: CallKind::ServerTool, name, .. } => Some(format!("{name} ended")),
            _ => None,
        })
        .collect();
    assert_eq!(shown, [r#"main > web_search web_search {"query":"tides"}"#, "web_search ended"]);
    assert_eq!(run.report().usage.total().searches, 1);
    assert!(run.report().trace().to_string().contains("web_search"), "{}", run.report().trace());
}

#[tokio::test]
async fn a_rule_can_block_a_server_tool_or_ask_before_it_is_offered() {
    let blocked = TestProject::new().agent(searcher(Some(Approval::Blocked))).run("go").await;
    assert_eq!(&*blocked.answer(), "offered: ");

    let approvals = Approvals::new([Answer::Once]);
    let asked =
        TestProject::new().agent(searcher(Some(Approval::Ask))).approver(approvals.clone()).run("go").await;
    assert!(asked.answer().contains("WebSearch"));
    assert_eq!(approvals.requests().len(), 1);
    assert_eq!(approvals.requests()[0].path, "main > web_search");

    let denied =
        TestProject::new().agent(searcher(Some(Approval::Ask))).approvals([Answer::Deny("no".into())]);
    let denied = denied.run("go").await;
    assert_eq!(&*denied.answer(), "offered: ");
    assert_eq!(notices(&denied), ["`web_search` is not offered: denied: no"]);

    let rejecting = TestProject::new().agent(searcher(Some(Approval::Ask)));
    let rejected =
        rejecting.runtime(|runtime| runtime.approval_mode(ApprovalMode::RejectAll)).run("go").await;
    assert_eq!(&*rejected.answer(), "offered: ");
}

#[tokio::test]
async fn a_person_may_change_the_settings_of_a_server_tool_before_it_is_offered() {
    let narrowed = json!({"tool_type": "web_search", "max_uses": 1});
    let run = TestProject::new()
        .agent(searcher(Some(Approval::Ask)))
        .approvals([Answer::Edit(narrowed)])
        .run("go")
        .await;
    assert!(run.answer().contains("max_uses: Some(1)"), "{}", run.answer());
    let other = TestProject::new()
        .agent(searcher(Some(Approval::Ask)))
        .approvals([Answer::Edit(json!({"tool_type": "code_execution"}))])
        .run("go")
        .await;
    assert_eq!(&*other.answer(), "offered: ");
}

#[tokio::test]
async fn uses_of_server_tools_count_in_the_budget_of_tool_calls() {
    let limits = Limits { tool_calls: Some(1), ..Limits::default() };
    let (tool, ran) = counting("write");
    let helper = searcher(None);
    let main = AgentSpec::new("top", "x").toolset("main").tool("write").limits(limits);
    let run = TestProject::new()
        .agent(main)
        .agent(helper)
        .tool(tool)
        .model_replies([asks("main", json!({"input": "go"})), asks("write", json!({})), says("end")])
        .runtime(|runtime| runtime.approval_mode(ApprovalMode::ApproveAll))
        .run("go")
        .await;
    assert_eq!(ran.load(Ordering::SeqCst), 0, "{}", run.report().trace());
}

/// A model that gives these answers in order, and shows what it was asked.
struct Canned {
    name: Name,
    answers: Arc<Mutex<VecDeque<ModelResponse>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Canned {
    fn new(answers: impl IntoIterator<Item = ModelResponse>) -> (Self, Arc<Mutex<Vec<String>>>) {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        (Self { name: "canned".into(), answers, asked: asked.clone() }, asked)
    }
}

impl Model for Canned {
    fn name(&self) -> &Name {
        &self.name
    }

    fn open(&self) -> Box<dyn ModelSession> {
        Box::new(CannedSession { answers: self.answers.clone(), asked: self.asked.clone() })
    }
}

struct CannedSession {
    answers: Arc<Mutex<VecDeque<ModelResponse>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ModelSession for CannedSession {
    fn request<'a>(
        &'a mut self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>> {
        let tools: Vec<String> = request.tools.iter().map(|tool| tool.input.source().to_string()).collect();
        self.asked.lock().unwrap().push(format!("{:?} {}", request.settings.tool_choice, tools.join(" ")));
        let answer = self.answers.lock().unwrap().pop_front().unwrap();
        Box::pin(async move { Ok(stream::iter([Ok(ModelPart::Finished(answer))]).boxed()) })
    }
}

fn tokens(count: u64) -> Usage {
    Usage { requests: 1, input: count, output: count, ..Usage::default() }
}

fn said(text: &str, stop: StopReason) -> ModelResponse {
    ModelResponse::new(Message::assistant(text), stop, tokens(5))
}

fn called(name: &str, arguments: &str) -> ModelResponse {
    let call = ToolCall { id: "1".into(), name: name.into(), arguments: arguments.into(), raw: None };
    let message = Message { role: Role::Assistant, parts: vec![Part::ToolCall(call)], origin: None };
    ModelResponse::new(message, StopReason::ToolUse, tokens(5))
}

#[tokio::test]
async fn what_was_said_before_a_pause_belongs_to_the_answer() {
    let (model, _) =
        Canned::new([said("Part one. ", StopReason::Pause), said("Part two.", StopReason::EndTurn)]);
    let run = TestProject::new().agent(AgentSpec::new("main", "x").model(model)).run("go").await;
    assert_eq!(&*run.answer(), "Part one. Part two.");
}

#[tokio::test]
async fn what_was_marked_before_a_pause_can_be_read_by_the_calls_after_it() {
    let read = FunctionTool::new("read", |_, call| async move {
        let table = Need::<Descriptors>::from_call(&call).unwrap().into_inner();
        Ok(table
            .get("ref:plan")
            .map_err(ToolError::from_failure)?
            .read(Selection::All, 1, 1)
            .unwrap()
            .text
            .into())
    });
    let read = read.define(|definition| {
        definition.approval = Approval::PreApproved;
        definition.needs = vec![NeedSpec::for_conversation::<Descriptors>("file descriptors")];
    });
    let (model, _) = Canned::new([
        said("<ref id=\"plan\">one, ", StopReason::Pause),
        said("two</ref> So:", StopReason::Pause),
        called("read", "{}"),
        said("Done.", StopReason::EndTurn),
    ]);
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").model(model).tool("read"))
        .tool(read)
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["one, two"]);
}

#[tokio::test]
async fn a_message_that_ended_for_a_reason_of_the_provider_and_holds_nothing_is_asked_for_again() {
    let malformed = || said("", StopReason::Other("MALFORMED_FUNCTION_CALL".into()));
    let (model, asked) = Canned::new([malformed(), said("There.", StopReason::EndTurn)]);
    let run = TestProject::new().agent(AgentSpec::new("main", "x").model(model)).run("go").await;
    assert_eq!((&*run.answer(), asked.lock().unwrap().len()), ("There.", 2));

    let (model, _) = Canned::new([malformed(), malformed(), malformed()]);
    let run = TestProject::new().agent(AgentSpec::new("main", "x").model(model)).run("go").await;
    assert_eq!(run.status(), Status::Provider);
    assert!(run.error().contains("MALFORMED_FUNCTION_CALL"), "{}", run.error());

    let (model, _) = Canned::new([said("", StopReason::EndTurn)]);
    let run = TestProject::new().agent(AgentSpec::new("main", "x").model(model)).run("go").await;
    assert_eq!(notices(&run), ["the answer is empty"]);
}

#[tokio::test]
async fn a_tool_that_must_be_used_is_used_once() {
    let (tool, ran) = counting("write");
    let (model, asked) = Canned::new([called("write", "{}"), said("Done.", StopReason::EndTurn)]);
    let settings = ModelSettings { tool_choice: Some(ToolChoice::Required), ..ModelSettings::default() };
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").model(model).settings(settings).tool("write"))
        .tool(tool)
        .runtime(|runtime| runtime.approval_mode(ApprovalMode::ApproveAll))
        .run("go")
        .await;
    assert_eq!((&*run.answer(), ran.load(Ordering::SeqCst)), ("Done.", 1));
    let asked = asked.lock().unwrap().clone();
    assert!(asked[0].starts_with("Some(Required)") && asked[1].starts_with("None"), "{asked:?}");
}

#[tokio::test]
async fn a_forced_choice_that_the_server_ignored_is_noticed() {
    for (choice, expected) in [
        (
            ToolChoice::Tool("write".to_owned()),
            &["the model answered without calling `write`, although `tool_choice` asks for it"][..],
        ),
        (
            ToolChoice::Required,
            &["the model answered without calling a tool, although `tool_choice` asks for one"],
        ),
        (ToolChoice::Auto, &[]),
    ] {
        let (tool, _) = counting("write");
        let (model, _) = Canned::new([said("Done.", StopReason::EndTurn)]);
        let settings = ModelSettings { tool_choice: Some(choice), ..ModelSettings::default() };
        let agent = AgentSpec::new("main", "x").model(model).settings(settings).tool("write");
        let run = TestProject::new().agent(agent).tool(tool).run("go").await;
        assert_eq!(notices(&run), expected);
    }
}

#[tokio::test]
async fn an_answer_that_is_no_object_is_given_in_a_field_of_one() {
    let schema =
        json!({"type": "array", "items": {"$ref": "#/$defs/word"}, "$defs": {"word": {"type": "string"}}});
    let (model, asked) = Canned::new([called("final_answer", r#"{"value": ["a", "b"]}"#)]);
    let agent = AgentSpec::new("main", "x").model(model).output(Schema::new(schema).unwrap());
    let run = TestProject::new().agent(agent).run("go").await;
    assert_eq!(&*run.answer(), r#"["a","b"]"#);
    assert!(asked.lock().unwrap()[0].contains(r#""type":"object""#), "{:?}", asked.lock().unwrap());
}

/// A dollar per token.
struct Dear;

impl Prices for Dear {
    fn price(&self, _: &str, usage: &Usage) -> Option<Money> {
        Some(Money(usage.tokens() * 1_000_000_000))
    }
}

#[tokio::test]
async fn an_answer_without_a_report_is_of_unknown_cost_and_booked_in_full() {
    let unreported = || {
        ModelResponse::new(
            Message::assistant("x"),
            StopReason::Pause,
            Usage { requests: 1, ..Usage::default() },
        )
    };
    let (model, asked) = Canned::new(std::iter::repeat_with(unreported).take(20));
    let limits = Limits { tokens: Some(20_000), ..Limits::default() };
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").model(model).limits(limits))
        .runtime(|runtime| runtime.prices(Dear))
        .run("go")
        .await;
    assert_eq!(run.status(), Status::Limit, "{}", run.error());
    assert!(asked.lock().unwrap().len() < 5, "{:?}", asked.lock().unwrap().len());
    assert!(run.report().usage.total().cost.unpriced > 0);
}

#[tokio::test]
async fn a_fallback_that_answered_is_asked_first_from_then_on_and_the_change_is_said() {
    let (tool, _) = counting("write");
    let down = Script::new(vec![fails(ModelErrorKind::Overloaded, "busy"); 9]).named("first");
    let second = Script::new([asks("write", json!({})), says("end")]).named("second");
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").model(down).fallback_model(second).tool("write"))
        .tool(tool)
        .runtime(|runtime| runtime.approval_mode(ApprovalMode::ApproveAll))
        .run("go")
        .await;
    assert_eq!(&*run.answer(), "end");
    assert_eq!(attempts(&run), 3);
    assert_eq!(notices(&run), ["provider overloaded: busy (model `first`); asking `second` instead"]);
}

/// A model that cannot be used, for lack of a key.
struct Keyless;

impl Models for Keyless {
    fn resolve(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        match name {
            "spare" => Ok(Arc::new(Script::new([says("from the spare")]).named("spare"))),
            _ => Err(ModelError::new(ModelErrorKind::Auth, format!("no key is set for `{name}`"))),
        }
    }
}

fn with_fallbacks(names: &[&str]) -> AgentSpec {
    let mut agent =
        AgentSpec::new("main", "x").model(Script::new([fails(ModelErrorKind::Quota, "no money left")]));
    agent.fallback_models = names.iter().map(|name| ModelChoice::from(*name)).collect();
    agent
}

#[tokio::test(start_paused = true)]
async fn a_fallback_that_cannot_be_used_does_not_end_the_chain() {
    let run = patient()
        .agent(with_fallbacks(&["keyless", "spare"]))
        .runtime(|runtime| runtime.retry(RetryPolicy::default()).models(Keyless))
        .run("go")
        .await;
    assert_eq!(&*run.answer(), "from the spare");
    let notices = notices(&run);
    assert!(
        notices.iter().any(|text| text.contains("no key") && text.contains("asking `spare`")),
        "{notices:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn if_all_fallbacks_fail_the_first_outage_and_each_reason_are_reported() {
    let run = patient()
        .agent(with_fallbacks(&["keyless", "other"]))
        .runtime(|runtime| runtime.retry(RetryPolicy::default()).models(Keyless))
        .run("go")
        .await;
    assert_eq!(run.status(), Status::Provider);
    let error = run.error();
    assert!(error.contains("quota exhausted: no money left"), "{error}");
    assert!(
        error.contains("no key is set for `keyless`") && error.contains("no key is set for `other`"),
        "{error}"
    );
}
