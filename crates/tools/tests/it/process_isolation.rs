//! What agents that work as processes must not do to each other: contexts, rights, settings and budgets stay apart.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use llm_do_core::{
    Access, AgentSpec, Approval, DescriptorSettings, Effect, EventBody, FailureKind, Limits, Message,
    ModelErrorKind, ModelRequest, Money, Prices, Role, Status, Tool, ToolError, Tuning, Usage,
};
use llm_do_models::{Script, ScriptedReply, asks, asks_all, contains, fails, instructed, replies, says};
use llm_do_runtime::{ContentStore, Descriptors, FdSource, MemoryStore, RetryPolicy, Store};
use llm_do_testing::{FunctionTool, TestProject, TestRun};
use llm_do_tools::{FileDescriptors, Process, ProcessSettings, Stderr};
use serde_json::json;

fn project(main: AgentSpec) -> TestProject {
    TestProject::new()
        .agent(main)
        .toolset(Process::new("process", ProcessSettings::default()).unwrap())
        .toolset(Stderr::new("stderr").unwrap())
        .toolset(FileDescriptors::read_only("file_descriptors").unwrap())
}

fn main_agent() -> AgentSpec {
    AgentSpec::new("main", "You are main.").toolset("process").toolset("file_descriptors")
}

fn tool(name: &str, access: Access, answer: &str) -> Arc<dyn Tool> {
    let answer = answer.to_owned();
    let tool = FunctionTool::new(name, move |_, _| {
        let answer = answer.clone();
        async move { Ok(answer.into()) }
    });
    let tool = tool.define(|definition| {
        definition.access = access;
        definition.approval = Approval::PreApproved;
        definition.effect = Effect::Idempotent;
    });
    tool.shared()
}

fn failing() -> Arc<dyn Tool> {
    let tool = FunctionTool::new("fail", |_, _| async { Err(ToolError::new("it is broken")) });
    tool.define(|definition| definition.approval = Approval::PreApproved).shared()
}

/// As the providers demand: roles change, and the calls of a message are answered in the next one, each once.
fn assert_valid(messages: &[Arc<Message>]) {
    let mut open: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let answered: Vec<String> = message.tool_results().map(|result| result.id.clone()).collect();
        assert_eq!(open, answered, "message {index}");
        open = message.tool_calls().map(|call| call.id.clone()).collect();
        assert_eq!(message.role == Role::User, index % 2 == 0, "message {index}");
    }
    assert!(open.is_empty(), "{open:?}");
}

/// A reply that first checks that the conversation is valid.
fn valid_then(reply: ScriptedReply) -> ScriptedReply {
    let reply = Arc::new(reply);
    replies(move |request: &ModelRequest<'_>| {
        assert_valid(request.conversation.messages());
        ScriptedReply::clone(&reply)
    })
}

#[tokio::test]
async fn the_error_flag_of_a_failed_program_reaches_its_caller_and_that_of_a_good_one_does_not() {
    let main = main_agent().program("inner", "inner", "");
    let inner = AgentSpec::new("inner", "You are inner.").toolset("process").tool("fail");
    let run = project(main)
        .agent(inner)
        .tool(failing())
        .model(Script::new([
            asks("spawn", json!({"program": "inner", "prompt": "well"})),
            asks("fail", json!({})),
            says("it did not work, and I say so"),
            asks("spawn", json!({"program": "inner", "prompt": "badly"})),
            fails(ModelErrorKind::Invalid, "no"),
            says("end"),
        ]))
        .run("start")
        .await;
    let results = run.results();
    let flags: Vec<bool> = results.iter().map(|result| result.is_error).collect();
    assert_eq!(flags, [false, true], "{results:?}");
    assert_eq!(run.failure_of("fail").message, "it is broken");
}

#[tokio::test]
async fn a_model_that_repeats_a_failing_call_cannot_go_on_by_going_back() {
    let back =
        || asks_all([("fail", json!({})), ("goto", json!({"position": "msg_0", "message": "Again."}))]);
    let run = project(main_agent().tool("fail"))
        .tool(failing())
        .model(Script::new(vec![back(); 20]))
        .run("start")
        .await;
    assert_eq!(run.status(), Status::Limit, "{}", run.report().trace());
    assert!(run.error().contains("made the same failing call of `fail`"), "{}", run.error());
}

#[tokio::test]
async fn a_fork_beside_the_last_straw_has_a_conversation_that_is_valid() {
    let run = project(main_agent().tool("fail").tool("look"))
        .tool(failing())
        .tool(tool("look", Access::Read, "42"))
        .model(Script::new([
            valid_then(says("child")).when(contains("forked at this call")),
            asks("fail", json!({})),
            asks_all([
                ("look", json!({})),
                ("fail", json!({})),
                ("look", json!({})),
                ("fork", json!({"prompts": ["go on"]})),
            ]),
            says("end"),
        ]))
        .runtime(|runtime| runtime.repeat_limit(2))
        .run("start")
        .await;
    assert!(run.error().contains("made the same failing call"), "{}", run.error());
    let trace = run.report().trace();
    let fork = trace.iter().find(|call| call.name == "fork").unwrap();
    assert!(fork.error.is_none(), "{trace}");
    let child = trace.iter().filter(|call| call.name == "main").nth(1).unwrap();
    assert_eq!(child.error, None, "{trace}");
}

struct PerToken;

impl Prices for PerToken {
    fn price(&self, _model: &str, usage: &Usage) -> Option<Money> {
        Some(Money(usage.tokens() * 1_000))
    }
}

#[tokio::test]
async fn forks_stop_before_they_overshoot_the_cost() {
    let limit = Money(20_000_000);
    let prompts: Vec<String> = (0..10).map(|child| format!("part {child}")).collect();
    let run = project(main_agent())
        .model(Script::new([
            says("done").tokens(2_000, 500).when(contains("forked at this call")),
            asks("fork", json!({"prompts": prompts})).tokens(3_000, 50),
            says("end").tokens(100, 10),
        ]))
        .runtime(move |runtime| {
            runtime.limits(Limits { cost: Some(limit), ..Limits::default() }).prices(PerToken)
        })
        .run("start")
        .await;
    let cost = run.report().usage.total().cost;
    assert!(cost.known <= limit && cost.known > Money(0) && cost.unpriced == 0, "{cost:?}");
    let answered =
        run.events().iter().filter(|event| matches!(event.body, EventBody::ModelResponse { .. })).count();
    assert!(answered < 12, "{answered} requests\n{}", run.report().trace());
}

#[tokio::test(start_paused = true)]
async fn every_attempt_of_a_child_counts_in_what_is_used() {
    let run = project(main_agent())
        .model(Script::new([
            fails(ModelErrorKind::Overloaded, "busy")
                .using(Usage { requests: 1, input: 7, ..Usage::default() })
                .when(contains("part"))
                .once(),
            says("done").tokens(20, 5).when(contains("part")),
            asks("fork", json!({"prompts": ["part"]})).tokens(10, 5),
            says("end").tokens(30, 5),
        ]))
        .runtime(|runtime| runtime.retry(RetryPolicy { attempts: 3, ..RetryPolicy::default() }))
        .run("start")
        .await;
    assert_eq!(&*run.answer(), "end");
    assert_eq!(run.report().usage.total().requests, 4, "{:?}", run.report().usage);
    let fork = run.report().trace();
    let fork = fork.iter().find(|call| call.name == "fork").unwrap();
    assert_eq!(fork.usage.requests, 2);
}

#[tokio::test]
async fn a_program_has_the_lesser_access_of_its_caller_and_its_own() {
    for (callers, own, may_write) in [
        (Access::Read, Access::Admin, false),
        (Access::Admin, Access::Read, false),
        (Access::Admin, Access::Write, true),
    ] {
        let main = main_agent().access(callers).program("writer", "writer", "");
        let writer = AgentSpec::new("writer", "You are the writer.").tool("write").access(own);
        let run = project(main)
            .agent(writer)
            .tool(tool("write", Access::Write, "written"))
            .model(Script::new([
                asks("spawn", json!({"program": "writer", "prompt": "write"})),
                replies(move |request| {
                    let offered = request.tools.iter().any(|tool| tool.name == "write");
                    assert_eq!(offered, may_write);
                    asks("write", json!({}))
                }),
                says("tried"),
                says("end"),
            ]))
            .run("start")
            .await;
        assert_eq!(&*run.answer(), "end");
        match may_write {
            true => {
                assert!(run.report().trace().to_string().contains("-> written"), "{}", run.report().trace())
            }
            false => assert_eq!(run.failure_of("write").kind, FailureKind::Access, "{callers:?} {own:?}"),
        }
    }
}

#[tokio::test]
async fn forks_do_not_lower_the_rights_of_their_parent() {
    let main = main_agent().tool("write").access(Access::Write);
    let run = project(main)
        .tool(tool("write", Access::Write, "written"))
        .model(Script::new([
            says("child").when(contains("forked at this call").and(contains("part"))),
            asks("fork", json!({"prompts": ["part", "part"]})),
            asks("write", json!({})),
            says("end"),
        ]))
        .run("start")
        .await;
    assert_eq!(run.tool_results()[1], "[msg_4] written", "{}", run.report().trace());
}

#[tokio::test]
async fn a_second_call_of_an_agent_knows_nothing_of_the_first_and_changes_nothing_in_it() {
    let long = "x".repeat(9_000);
    let main = main_agent().program("reader", "reader", "");
    let reader = AgentSpec::new("reader", "You are the reader.").toolset("file_descriptors").tool("look");
    let run = project(main)
        .agent(reader)
        .tool(tool("look", Access::Read, &long))
        .model(whatever(|request| {
            let (first, turn) =
                (request.conversation.messages()[0].text(), request.conversation.messages().len() / 2);
            let waits = Duration::from_millis(20);
            match (first.trim_start_matches("[msg_0] "), turn) {
                ("start", 0) => asks_all([
                    ("spawn", json!({"program": "reader", "prompt": "first"})),
                    ("spawn", json!({"program": "reader", "prompt": "second"})),
                ]),
                // The first makes a descriptor, and lists it after the second has listed its own.
                ("first", 0) => asks("look", json!({})),
                ("first", 1) => asks("list_fd", json!({})).after(waits),
                ("second", 0) => asks("list_fd", json!({})),
                _ => says("end"),
            }
        }))
        .run("start")
        .await;
    let lists: Vec<String> = run
        .events()
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::CallFinished { name, result: llm_do_core::CallResult::Output(output), .. }
                if name == "list_fd" =>
            {
                Some(output.to_text().to_string())
            }
            _ => None,
        })
        .collect();
    assert_eq!(lists.len(), 2, "{}", run.report().trace());
    assert!(lists.iter().any(|list| list == "{\"descriptors\":[]}"), "{lists:?}");
    assert!(lists.iter().any(|list| list.contains("\"fd:1.0\"") && list.contains("9000")), "{lists:?}");
}

/// A model whose answer follows from the request alone.
fn whatever(answer: impl Fn(&ModelRequest<'_>) -> ScriptedReply + Send + Sync + 'static) -> Script {
    Script::new([replies(answer).when(instructed("You are"))])
}

fn last_result(request: &ModelRequest<'_>) -> String {
    let messages = request.conversation.messages();
    let result = messages.last().and_then(|message| message.tool_results().next().cloned());
    result.map(|result| result.text.to_string()).unwrap_or_default()
}

#[tokio::test]
async fn the_error_logs_of_two_runs_of_an_agent_stay_apart() {
    let main = AgentSpec::new("main", "You are main.").toolset("stderr");
    let runtime = project(main)
        .model(Script::by_turn([
            replies(|request: &ModelRequest<'_>| {
                let text = request.conversation.messages()[0].text();
                asks("write_stderr", json!({"message": text}))
            }),
            says("end"),
        ]))
        .build();
    let (first, second) =
        futures::join!(runtime.run("main", "one").start(), runtime.run("main", "two").start());
    assert_eq!(first.unwrap().stderr_log(), ["one"]);
    assert_eq!(second.unwrap().stderr_log(), ["two"]);
}

#[tokio::test]
async fn what_a_child_tunes_is_not_changed_for_its_parent_or_the_next_run() {
    let bounds = Tuning { temperature: Some((0.0, 1.0)), max_tokens: None, models: Vec::new() };
    let seen: Arc<Mutex<Vec<Option<f64>>>> = Arc::default();
    let watch = seen.clone();
    let runtime = project(main_agent().tuning(bounds))
        .model(whatever(move |request| {
            let messages = request.conversation.messages();
            if messages.iter().any(|message| message.text().contains("part")) {
                return match request.settings.temperature {
                    Some(0.9) => says("warm"),
                    _ => asks("tune", json!({"temperature": 0.9})),
                };
            }
            watch.lock().unwrap().push(request.settings.temperature);
            match messages.len() {
                1 => asks("fork", json!({"prompts": ["part"]})),
                _ => says("end"),
            }
        }))
        .build();
    for _ in 0..2 {
        runtime.run("main", "start").await.unwrap();
    }
    assert_eq!(*seen.lock().unwrap(), [None; 4]);
}

#[tokio::test]
async fn a_table_that_the_embedder_provides_is_not_seen_by_programs() {
    let table = Descriptors::new(DescriptorSettings::default(), ContentStore::default());
    table.add("fd:mine".into(), "my secret", FdSource::UserInput).unwrap();
    let main = main_agent().program("reader", "reader", "");
    let reader = AgentSpec::new("reader", "You are the reader.").toolset("file_descriptors");
    let runtime = project(main)
        .agent(reader)
        .model(Script::new([
            asks("read_fd", json!({"fd": "fd:mine"})),
            asks("spawn", json!({"program": "reader", "prompt": "read"})),
            asks("read_fd", json!({"fd": "fd:mine"})),
            says("tried"),
            says("end"),
        ]))
        .build();
    let run = TestRun::of(runtime.run("main", "start").provide(table).await);
    assert!(run.tool_results()[0].contains("my secret"), "{}", run.report().trace());
    assert!(run.failure_of("read_fd").message.contains("there is no file descriptor `fd:mine`"));
}

/// Runs the agent, and enters the run again from every part of its record.
async fn enter_everywhere(make: impl Fn(Arc<dyn Store>) -> llm_do_runtime::Runtime, input: &str) {
    let kept = Arc::new(MemoryStore::default());
    let whole = make(kept.clone()).run("main", input).await.unwrap();
    let record = kept.read(whole.id, None).await.unwrap();
    for length in 1..record.len() {
        let cut = Arc::new(MemoryStore::from_events(record[..length].iter().cloned()));
        let again = TestRun::of(make(cut).resume(whole.id).await.unwrap().await);
        assert_eq!(again.answer(), whole.text(), "after {length} of {} events", record.len());
    }
}

#[tokio::test]
async fn a_run_with_jumps_and_descriptors_can_be_entered_again_anywhere() {
    let make = |store: Arc<dyn Store>| {
        project(main_agent())
            .model(whatever(|request| {
                let messages = request.conversation.messages();
                assert_valid(messages);
                let (text, result) = (messages.last().unwrap().text(), last_result(request));
                let read = |fd: &str, extract: bool| {
                    asks("read_fd", json!({"fd": fd, "mode": "char", "count": 50, "extract": extract}))
                };
                match () {
                    () if messages.len() == 1 => read("fd:input", true),
                    () if text.contains("Close it.") => asks("close_fd", json!({"fd": "fd:input"})),
                    () if result.contains("<fd_result") => read("fd:1.0", false),
                    () if result.contains("<fd_content") => {
                        asks("goto", json!({"position": "msg_2", "message": "Close it."}))
                    }
                    () if result.contains("\"closed\"") => asks("list_fd", json!({})),
                    () => says(result),
                }
            }))
            .runtime(|runtime| runtime.store(store))
            .build()
    };
    enter_everywhere(make, &"word ".repeat(2_000)).await;
}
