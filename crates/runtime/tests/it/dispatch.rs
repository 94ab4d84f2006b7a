//! Calls by models and by code: results, failures, nesting.

use std::sync::Arc;
use std::time::Duration;

use llm_do_core::{
    Access, AgentSpec, Approval, CallKind, Effect, FailureKind, Limits, Output, StatelessToolset, Status,
    ToolError,
};
use llm_do_models::{Script, asks, asks_all, asks_raw, contains, instructed, says};
use llm_do_runtime::{EntrySpec, PromptInput, Runtime};
use llm_do_testing::{EffectRecorder, FunctionTool, TestProject, deny, once};
use serde_json::json;

fn main_agent() -> AgentSpec {
    AgentSpec::new("main", "You are main.")
}

/// A pre-approved tool that answers with its input.
fn echo(name: &str) -> FunctionTool {
    FunctionTool::new(name, |input, _| async move { Ok(Output::json(input)) })
        .define(|definition| definition.approval = Approval::PreApproved)
}

#[tokio::test]
async fn an_agent_answers_with_text() {
    let run = TestProject::new().agent(main_agent()).model_replies([says("Hello.")]).run("hi").await;
    assert_eq!(&*run.answer(), "Hello.");
    assert_eq!(run.status(), Status::Done);
}

#[tokio::test]
async fn a_denied_tool_call_is_told_to_the_model_and_the_run_goes_on() {
    let recorder = EffectRecorder::default();
    let seen = recorder.clone();
    let delete = FunctionTool::new("delete_file", move |input, call| {
        seen.happened(&call, "delete_file", &input);
        async { Ok(Output::text("deleted")) }
    });
    let run = TestProject::new()
        .agent(main_agent().tool("delete_file"))
        .tool(delete)
        .model_replies([asks("delete_file", json!({"path": "notes.txt"})), says("Left it alone.")])
        .approvals([deny("still needed")])
        .run("tidy up")
        .await;

    assert_eq!(&*run.answer(), "Left it alone.");
    assert_eq!(run.tool_results(), ["denied: still needed"]);
    assert!(run.results()[0].is_error);
    assert_eq!(recorder.effects(), []);
}

#[tokio::test]
async fn results_stand_in_call_order_whatever_ends_first() {
    let slow = FunctionTool::new("wait", |input, _| async move {
        tokio::time::sleep(Duration::from_millis(input["ms"].as_u64().unwrap_or(0))).await;
        Ok(Output::json(input["ms"].clone()))
    })
    .define(|definition| definition.approval = Approval::PreApproved);
    let calls = [30_u64, 1, 15].map(|ms| ("wait", json!({ "ms": ms })));
    let run = TestProject::new()
        .agent(main_agent().tool("wait"))
        .tool(slow)
        .model_replies([asks_all(calls), says("done")])
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["30", "1", "15"]);
}

#[tokio::test(start_paused = true)]
async fn parallel_calls_overlap_and_sequential_ones_do_not() {
    async fn total(sequential: bool) -> Duration {
        let tool = FunctionTool::new("wait", |_, _| async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok(Output::text("ok"))
        })
        .define(|definition| {
            definition.approval = Approval::PreApproved;
            definition.sequential = sequential;
        });
        let started = tokio::time::Instant::now();
        let run = TestProject::new()
            .agent(main_agent().tool("wait"))
            .tool(tool)
            .model_replies([asks_all([("wait", json!({"n": 1})), ("wait", json!({"n": 2}))]), says("done")])
            .run("go")
            .await;
        assert_eq!(run.tool_results(), ["ok", "ok"]);
        started.elapsed()
    }
    assert_eq!(total(false).await.as_secs(), 10);
    assert_eq!(total(true).await.as_secs(), 20);
}

#[tokio::test]
async fn every_kind_of_failure_is_a_result_that_names_what_is_wrong() {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": false});
    let fails = FunctionTool::new("fails", |_, _| async {
        Err(ToolError::new("no such file").with_hint("list the files"))
    });
    let panics = FunctionTool::new("panics", |input, _| async move { panic!("lost {}", input["x"]) });
    let run = TestProject::new()
        .agent(main_agent().tool("read").tool("fails").tool("panics"))
        .tool(echo("read").takes(schema))
        .tool(fails.define(|definition| definition.approval = Approval::PreApproved))
        .tool(panics.define(|definition| definition.approval = Approval::PreApproved))
        .model_replies([
            asks("raed", json!({})),
            asks("read", json!({"file_path": "x"})),
            asks_raw("read", "{\"path\": \"a"),
            asks("fails", json!({})),
            asks("panics", json!({"x": 1})),
            says("done"),
        ])
        .run("go")
        .await;

    assert_eq!(&*run.answer(), "done");
    let results = run.tool_results();
    assert!(
        results[0].contains("there is no tool or agent `raed`")
            && results[0].contains("did you mean `read`?"),
        "{}",
        results[0]
    );
    assert!(results[1].contains("missing required field `path` (you wrote `file_path`)"), "{}", results[1]);
    assert!(results[2].contains("incomplete") && results[2].contains("`read`"), "{}", results[2]);
    assert_eq!(results[3], "no such file\nhint: list the files");
    assert_eq!(results[4], "`panics` panicked: lost 1");
    assert!(run.results().iter().all(|result| result.is_error));
    let kinds: Vec<_> = run.report().trace().calls[0]
        .calls
        .iter()
        .filter_map(|call| call.error.as_ref())
        .map(|error| error.kind)
        .collect();
    use FailureKind::{Arguments, Panic, Tool, Unknown};
    assert_eq!(kinds, [Unknown, Arguments, Arguments, Tool, Panic]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_is_ended_and_answered() {
    let tool = FunctionTool::new("slow", |_, _| std::future::pending()).define(|definition| {
        definition.approval = Approval::PreApproved;
        definition.time_limit = Some(Duration::from_secs(3));
    });
    let run = TestProject::new()
        .agent(main_agent().tool("slow"))
        .tool(tool)
        .model_replies([asks("slow", json!({})), says("done")])
        .run("go")
        .await;
    assert!(run.tool_results()[0].starts_with("`slow` took longer than its time limit of 3s"));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_takes_too_long_fails_and_its_caller_goes_on() {
    let limits = Limits { time: Some(Duration::from_secs(5)), ..Limits::default() };
    let run = TestProject::new()
        .agent(main_agent().toolset("child"))
        .agent(AgentSpec::new("child", "You are child.").limits(limits).tool("slow"))
        .tool(
            FunctionTool::new("slow", |_, _| std::future::pending())
                .define(|definition| definition.approval = Approval::PreApproved),
        )
        .model(Script::new([
            asks("slow", json!({})).when(instructed("You are child")),
            asks("child", json!({"input": "x"})),
            says("went on"),
        ]))
        .run("go")
        .await;
    assert_eq!(&*run.answer(), "went on");
    assert_eq!(run.tool_results(), ["agent `child` took longer than its time limit"]);
}

#[tokio::test]
async fn a_model_that_repeats_a_failing_call_is_told_then_stopped() {
    let fails = FunctionTool::new("fails", |_, _| async { Err(ToolError::new("broken")) });
    let again = || asks("fails", json!({"same": true}));
    let run = TestProject::new()
        .agent(main_agent().tool("fails"))
        .tool(fails.define(|definition| definition.approval = Approval::PreApproved))
        .model_replies([again(), again(), again(), says("never")])
        .run("go")
        .await;
    assert_eq!(run.status(), Status::Limit);
    assert!(run.error().contains("made the same failing call of `fails` 3 times: broken"), "{}", run.error());
    assert!(run.tool_results()[1].contains("this same call has failed 2 times"), "{:?}", run.tool_results());
}

/// A tool that fails, or succeeds and changes something.
fn tool_that(name: &str, fails: bool) -> FunctionTool {
    FunctionTool::new(name, move |_, _| async move {
        if fails { Err(ToolError::new("broken")) } else { Ok(Output::text("done")) }
    })
    .define(|definition| definition.approval = Approval::PreApproved)
}

#[tokio::test]
async fn a_test_that_fails_after_each_edit_does_not_stop_the_agent() {
    let rounds = (0..5).flat_map(|n| [asks("edit", json!({"n": n})), asks("test", json!({}))]);
    let run = TestProject::new()
        .agent(main_agent().tool("edit").tool("test"))
        .tool(tool_that("edit", false))
        .tool(tool_that("test", true))
        .model_replies(rounds.chain([says("gave up")]))
        .run("go")
        .await;
    assert_eq!((run.status(), &*run.answer()), (Status::Done, "gave up"));
}

#[tokio::test]
async fn a_new_message_of_a_chat_forgets_failing_calls() {
    let runtime = TestProject::new()
        .agent(main_agent().tool("test"))
        .tool(tool_that("test", true))
        .model_replies(
            (0..5).flat_map(|_| [asks("test", json!({})), asks("test", json!({})), says("it fails")]),
        )
        .build();
    let mut session = runtime.session("main");
    for turn in 0..5 {
        let report = session.send(format!("try {turn}")).await;
        assert!(report.is_ok(), "turn {turn}: {:?}", report.err().map(|error| error.to_string()));
    }
}

#[tokio::test]
async fn the_limit_of_equal_failing_calls_can_be_set_per_agent() {
    let limits = Limits { repeats: Some(5), ..Limits::default() };
    let run = TestProject::new()
        .agent(main_agent().tool("test").limits(limits))
        .tool(tool_that("test", true))
        .model_replies(vec![asks("test", json!({})); 9])
        .run("go")
        .await;
    assert_eq!(run.status(), Status::Limit);
    assert!(run.error().contains("of `test` 5 times"), "{}", run.error());
}

#[tokio::test]
async fn equal_denials_stop_the_run() {
    let again = || asks("write", json!({"same": true}));
    let run = TestProject::new()
        .agent(main_agent().toolset("child"))
        .agent(AgentSpec::new("child", "You are child.").tool("write"))
        .tool(FunctionTool::new("write", |_, _| async { Ok(Output::text("written")) }))
        .model(Script::new([
            again().when(instructed("You are child")),
            asks("child", json!({"input": "x"})),
            says("never"),
        ]))
        .approvals([deny("no"), deny("no"), deny("no")])
        .run("go")
        .await;
    assert_eq!(run.status(), Status::Limit);
}

#[tokio::test]
async fn code_calls_tools_and_agents_by_the_same_names_through_the_same_gate() {
    let organize = FunctionTool::new("organize", |_, call| async move {
        let name: String = call.call("namer", "a file").await?.parse()?;
        let written = call.call("write", json!({ "name": name })).await?;
        Ok(Output::text(format!("{name}: {}", written.to_text())))
    })
    .define(|definition| {
        definition.approval = Approval::PreApproved;
        definition.effect = Effect::Calls;
    });
    let approvals = llm_do_testing::Approvals::new([once()]);
    let run = TestProject::new()
        .agent(main_agent().tool("organize").tool("write"))
        .agent(AgentSpec::new("namer", "You name things."))
        .tool(organize)
        .tool(FunctionTool::new("write", |input, _| async move {
            Ok(Output::text(format!("wrote {}", input["name"])))
        }))
        .model(Script::new([
            says("budget.txt").when(instructed("You name")),
            asks("organize", json!({})),
            says("done"),
        ]))
        .approver(approvals.clone())
        .run("go")
        .await;

    assert_eq!(run.tool_results(), ["budget.txt: wrote \"budget.txt\""]);
    let [request] = &approvals.requests()[..] else { panic!("one request") };
    assert_eq!(request.path, "main > organize() > write");
    let trace = run.report().trace();
    let names: Vec<_> = trace.iter().map(|call| (call.kind, call.name.as_str(), call.depth)).collect();
    assert_eq!(
        names,
        [
            (CallKind::Agent, "main", 1),
            (CallKind::Tool, "organize", 1),
            (CallKind::Agent, "namer", 2),
            (CallKind::Tool, "write", 1)
        ]
    );
}

#[tokio::test]
async fn code_in_an_agent_cannot_name_tools_that_its_agent_does_not_list() {
    let sneaky =
        FunctionTool::new("sneaky", |_, call| async move { Ok(call.call("write", json!({})).await?) })
            .define(|definition| definition.approval = Approval::PreApproved);
    let run = TestProject::new()
        .agent(main_agent().tool("sneaky"))
        .tool(sneaky)
        .tool(echo("write"))
        .model_replies([asks("sneaky", json!({})), says("done")])
        .run("go")
        .await;
    let results = run.tool_results();
    assert!(results[0].starts_with("`write` exists, but `main` does not list it"), "{results:?}");
    let hint = "add it to `tools` of `main`; with `manual_only` its model is not offered it";
    assert!(results[0].contains(hint), "{results:?}");
}

#[tokio::test]
async fn code_that_names_a_tool_of_a_toolset_is_told_which_toolset_to_list() {
    let sneaky =
        FunctionTool::new("sneaky", |_, call| async move { Ok(call.call("write", json!({})).await?) })
            .define(|definition| definition.approval = Approval::PreApproved);
    let run = TestProject::new()
        .agent(main_agent().tool("sneaky"))
        .agent(AgentSpec::new("clerk", "You are a clerk.").toolset("files"))
        .tool(sneaky)
        .toolset(StatelessToolset::new("files", [echo("write").shared()]))
        .model_replies([asks("sneaky", json!({})), says("done")])
        .run("go")
        .await;
    let results = run.tool_results();
    assert!(results[0].starts_with("`write` exists, but `main` does not list it"), "{results:?}");
    assert!(results[0].contains("add its toolset `files` to `toolsets` of `main`"), "{results:?}");
}

#[tokio::test]
async fn a_model_that_names_an_agent_outside_the_allow_list_is_told_that_it_is_not_allowed() {
    let run = TestProject::new()
        .agent(main_agent().toolset("friend").toolset("stranger").may_call("friend"))
        .agent(AgentSpec::new("friend", "You are a friend."))
        .agent(AgentSpec::new("stranger", "You are a stranger."))
        .model_replies([
            asks("stranger", json!({"input": "x"})),
            asks("nobody", json!({"input": "x"})),
            says("done"),
        ])
        .run("go")
        .await;
    let results = run.tool_results();
    assert!(results[0].starts_with("`stranger` is not allowed for `main`"), "{results:?}");
    assert!(results[0].contains("add it to `agents` of `main`; available: friend"), "{results:?}");
    assert!(results[1].starts_with("there is no tool or agent `nobody`"), "{results:?}");
}

#[tokio::test]
async fn an_agent_that_narrows_its_agents_reaches_no_others_even_through_code() {
    let calls = FunctionTool::new("calls", |input, call| async move {
        Ok(call.call(input["agent"].as_str().unwrap_or_default(), "x").await?)
    })
    .define(|definition| definition.approval = Approval::PreApproved);
    let run = TestProject::new()
        .agent(main_agent().tool("calls").may_call("friend*"))
        .agent(AgentSpec::new("friend_a", "You are a friend."))
        .agent(AgentSpec::new("stranger", "You are a stranger."))
        .tool(calls)
        .model(Script::new([
            says("hello").when(instructed("friend")),
            asks("calls", json!({"agent": "friend_a"})),
            asks("calls", json!({"agent": "stranger"})),
            says("done"),
        ]))
        .run("go")
        .await;
    let results = run.tool_results();
    assert_eq!(results[0], "hello");
    assert!(results[1].starts_with("`stranger` is not allowed for `main`"), "{}", results[1]);
    assert!(results[1].contains("add it to `agents` of `main`"), "{}", results[1]);
    assert!(!results[1].contains("available: calls, stranger"), "{}", results[1]);
}

#[tokio::test]
async fn recursion_ends_at_the_permitted_depth_with_the_chain_in_the_message() {
    for depth in [1, 2, 5] {
        let run = TestProject::new()
            .agent(main_agent().toolset("main"))
            .model(Script::new([
                says("deepest").when(contains("are permitted")),
                says("up").when(contains("deepest")),
                says("up").when(contains("up")),
                asks("main", json!({"input": "again"})).when(contains("again")),
            ]))
            .runtime(move |runtime| runtime.limits(Limits { depth: Some(depth), ..Limits::default() }))
            .run("again")
            .await;
        let trace = run.report().trace();
        let agents = trace.iter().filter(|call| call.error.is_none()).count();
        assert_eq!(agents, depth as usize, "{trace}");
        let failure = run.failure_of("main");
        assert_eq!(failure.kind, FailureKind::Depth);
        assert!(failure.message.contains("main > main"), "{}", failure.message);
    }
}

#[test]
fn the_deepest_permitted_recursion_fits_a_small_stack_in_a_debug_build() {
    let executor = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_stack_size(2 * 1024 * 1024)
        .enable_time()
        .build()
        .unwrap();
    let run = executor.block_on(async {
        // A tool between each pair of agents: the deepest nesting there is.
        let again =
            FunctionTool::new("again", |_, call| async move { Ok(call.call("main", "again").await?) });
        TestProject::new()
            .agent(main_agent().tool("again"))
            .tool(again.define(|definition| definition.approval = Approval::PreApproved))
            .model(Script::each_call([asks("again", json!({})), says("up")]))
            .runtime(|runtime| runtime.limits(Limits { depth: Some(64), ..Limits::default() }))
            .run("again")
            .await
    });
    assert_eq!(&*run.answer(), "up");
    assert_eq!(
        run.report().trace().iter().filter(|call| call.kind == CallKind::Agent).map(|call| call.depth).max(),
        Some(65)
    );
}

#[tokio::test]
async fn a_child_has_no_more_access_than_its_caller() {
    let run = TestProject::new()
        .agent(main_agent().access(Access::Read).toolset("child").tool("look"))
        .agent(AgentSpec::new("child", "You are child.").tool("write"))
        .tool(echo("write"))
        .tool(echo("look").define(|definition| definition.access = Access::Read))
        .model(Script::new([
            asks("write", json!({})).when(instructed("You are child").and(contains("x"))),
            says("could not").when(instructed("You are child")),
            asks("look", json!({})),
            asks("child", json!({"input": "x"})),
            says("done"),
        ]))
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["{}", "could not"]);
    assert_eq!(run.failure_of("write").kind, FailureKind::Access);
}

#[tokio::test]
async fn an_entry_in_rust_takes_a_typed_input_and_calls_agents() {
    let entry = EntrySpec::new("start", "Greets", |input: PromptInput, call| async move {
        let greeting = call.call("greeter", input.input.as_str()).await?;
        Ok(format!("{}!", greeting.to_text()))
    })
    .unwrap();
    let run = TestProject::new()
        .entry(entry)
        .agent(AgentSpec::new("greeter", "Greet."))
        .model_replies([says("Hello")])
        .run("Ann")
        .await;
    assert_eq!(&*run.answer(), "Hello!");
    let trace = run.report().trace();
    assert_eq!((trace.calls[0].kind, trace.calls[0].depth), (CallKind::Entry, 0));
    assert_eq!(trace.calls[0].calls[0].depth, 1);
}

#[tokio::test]
async fn a_tool_called_from_outside_is_gated_by_its_definition() {
    let runtime = TestProject::new()
        .tool(FunctionTool::new("write", |_, _| async { Ok(Output::text("written")) }))
        .build();
    let error = runtime.run("write", json!({})).await.unwrap_err();
    assert_eq!(error.status(), Status::Denied);
    assert!(error.report.nobody_to_ask);
    let allowed = runtime.run("write", json!({})).approver(|_| async { once() }).await.unwrap();
    assert_eq!(&*allowed.text(), "written");
}

#[tokio::test]
async fn an_unknown_name_from_outside_names_what_there_is() {
    let runtime: Runtime = TestProject::new().agent(main_agent()).tool(echo("read_file")).build();
    let error = runtime.run("raed_file", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("did you mean `read_file`?"), "{error}");
}

#[tokio::test]
async fn nothing_runs_on_when_a_tool_drops_an_inner_call() {
    let (sender, ended) = tokio::sync::oneshot::channel::<()>();
    let sender = Arc::new(std::sync::Mutex::new(Some(sender)));
    let inner = FunctionTool::new("inner", move |_, _| {
        let guard = sender.lock().unwrap().take();
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    });
    let outer = FunctionTool::new("outer", |_, call| async move {
        let dropped = tokio::time::timeout(Duration::from_millis(20), call.call("inner", json!({}))).await;
        Ok(Output::text(if dropped.is_err() { "gave up" } else { "answered" }))
    });
    let run = TestProject::new()
        .agent(main_agent().tool("outer").tool("inner"))
        .tool(inner.define(|definition| definition.approval = Approval::PreApproved))
        .tool(outer.define(|definition| definition.approval = Approval::PreApproved))
        .model_replies([asks("outer", json!({})), says("done")])
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["gave up"]);
    assert!(ended.await.is_err(), "the inner call was dropped before the outer one ended");
}
