//! Agents as processes: programs, forks, going back, tuning, error logs, long results.

use std::sync::{Arc, Mutex};

use llm_do_core::{
    Access, AgentSpec, Approval, DescriptorSettings, EventBody, FailureKind, Limits, Message, Model,
    ModelError, ModelErrorKind, ModelRequest, Models, Money, Part, Prices, Role, Schema, Status, Tool,
    ToolDefinition, ToolOverride, Toolset, ToolsetChoice, Tuning, Usage,
};
use llm_do_models::{Script, ScriptedReply, asks, asks_all, contains, fails, replies, says};
use llm_do_testing::{FunctionTool, TestProject, edit};
use llm_do_tools::{FileDescriptors, Process, ProcessSettings, Stderr};
use serde_json::{Value, json};

fn project(main: AgentSpec) -> TestProject {
    let process = Process::new("process", ProcessSettings::default()).unwrap();
    let stderr = Stderr::new("stderr").unwrap();
    let descriptors = FileDescriptors::read_only("file_descriptors").unwrap();
    TestProject::new().agent(main).toolset(process).toolset(stderr).toolset(descriptors)
}

fn main_agent() -> AgentSpec {
    AgentSpec::new("main", "Work.").toolset("process").toolset("file_descriptors")
}

/// A tool that asks nobody and answers with a text.
fn free(name: &str, answer: impl Into<String>) -> Arc<dyn Tool> {
    let answer = answer.into();
    let tool = FunctionTool::new(name, move |_, _| {
        let answer = answer.clone();
        async move { Ok(answer.into()) }
    });
    let define = |definition: &mut ToolDefinition| {
        definition.access = Access::Read;
        definition.approval = Approval::PreApproved;
    };
    tool.define(define).shared()
}

/// A model that keeps what it was asked with.
fn recording(script: impl IntoIterator<Item = ScriptedReply>) -> (Script, Arc<Mutex<Vec<Vec<Message>>>>) {
    let seen: Arc<Mutex<Vec<Vec<Message>>>> = Arc::default();
    let script: Vec<ScriptedReply> = script.into_iter().collect();
    let watched = script.into_iter().map(|reply| {
        let (seen, reply) = (seen.clone(), Arc::new(reply));
        replies(move |request: &ModelRequest<'_>| {
            let messages = request.conversation.messages().iter().map(|message| Message::clone(message));
            seen.lock().unwrap().push(messages.collect());
            ScriptedReply::clone(&reply)
        })
    });
    (Script::new(watched.collect::<Vec<_>>()), seen)
}

/// As the providers demand: roles change, and the calls of a message are answered in the next one, each once.
fn assert_valid(messages: &[Message]) {
    let mut open: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let answered: Vec<String> = message.tool_results().map(|result| result.id.clone()).collect();
        assert_eq!(open, answered, "message {index}: calls and answers differ");
        open = message.tool_calls().map(|call| call.id.clone()).collect();
        assert_eq!(message.role == Role::User, index % 2 == 0, "message {index}: roles do not change");
    }
    assert!(open.is_empty(), "calls without an answer: {open:?}");
}

#[tokio::test]
async fn children_of_a_fork_have_the_conversation_and_answer_in_order() {
    let seen: Arc<Mutex<Vec<Vec<Message>>>> = Arc::default();
    let watch = seen.clone();
    let child = move |request: &ModelRequest<'_>| {
        let messages: Vec<Message> =
            request.conversation.messages().iter().map(|message| Message::clone(message)).collect();
        let Some(Part::Text { text, .. }) = messages.last().and_then(|message| message.parts.last()) else {
            unreachable!("a child is given a prompt")
        };
        let answer = says(format!("done: {text}"));
        watch.lock().unwrap().push(messages);
        answer
    };
    let run = project(main_agent().tool("look"))
        .tool(free("look", "42"))
        .model(Script::new([
            asks_all([
                ("look", json!({})),
                ("fork", json!({"prompts": ["first", "second"]})),
                ("look", json!({})),
            ]),
            replies(child.clone()).when(contains("forked at this call")),
            says("both are done"),
        ]))
        .run("start");
    let run = run.await;
    assert_eq!(&*run.answer(), "both are done", "{}", run.report().trace());
    let forked: Value = serde_json::from_str(&run.tool_results()[1]).unwrap();
    assert_eq!(forked, json!([{"id": 0, "message": "done: first"}, {"id": 1, "message": "done: second"}]));
    for messages in seen.lock().unwrap().iter() {
        assert_valid(messages);
        let results: Vec<String> = messages[2].tool_results().map(|result| result.text.to_string()).collect();
        assert_eq!(results[0], "[msg_2] 42");
        assert!(results[1].contains("you are a child") && results[2].contains("left to the parent"));
    }
}

#[tokio::test]
async fn a_child_that_fails_leaves_its_siblings_alone() {
    let run = project(main_agent())
        .model(Script::new([
            asks("fork", json!({"prompts": ["well", "badly"]})),
            fails(ModelErrorKind::Invalid, "no").when(contains("badly")),
            says("fine").when(contains("well")),
            says("ended"),
        ]))
        .run("start")
        .await;
    let results = run.tool_results();
    assert!(
        results[0].contains("fine") && results[0].contains("\"error\":true"),
        "{results:?} {}",
        run.report().trace()
    );
}

#[tokio::test]
async fn a_provider_that_stays_down_for_one_child_is_the_error_of_that_child() {
    let run = project(main_agent())
        .model(Script::new([
            asks("fork", json!({"prompts": ["well", "badly"]})),
            fails(ModelErrorKind::RateLimit, "slow down").when(contains("badly")),
            says("fine").when(contains("well")),
            says("ended"),
        ]))
        .run("start")
        .await;
    assert_eq!(run.status(), Status::Done, "{}", run.report().trace());
    let forked: Value = serde_json::from_str(&run.tool_results()[0]["[msg_2] ".len()..]).unwrap();
    assert_eq!(forked[0], json!({"id": 0, "message": "fine"}));
    assert_eq!(forked[1]["error"], true);
    assert!(forked[1]["message"].as_str().unwrap().contains("slow down"), "{forked}");
}

#[tokio::test]
async fn a_fork_is_bounded_and_needs_a_conversation() {
    let many: Vec<&str> = vec!["x"; 11];
    let run = project(main_agent())
        .model(Script::new([
            asks("fork", json!({"prompts": many})),
            asks("fork", json!({"prompts": []})),
            asks("fork", json!({"prompts": ["x", " "]})),
            says("ok"),
        ]))
        .run("start")
        .await;
    let results = run.tool_results();
    assert!(results[0].contains("11 children are more than the 10"), "{results:?}");
    assert!(results[1].contains("`prompts` is empty"), "{results:?}");
    assert!(results[2].contains("a prompt is empty"), "{results:?}");
    let runtime = project(main_agent()).model(Script::new([])).build();
    let error = runtime.run("fork", json!({"prompts": ["x"]})).await.unwrap_err();
    assert!(error.to_string().contains("no conversation here that could be forked"), "{error}");
}

#[tokio::test]
async fn a_fork_of_a_fork_is_bounded_by_the_depth() {
    let again = asks("fork", json!({"prompts": ["again"]})).when(contains("forked at this call"));
    let run = project(main_agent())
        .model(Script::new([
            asks("fork", json!({"prompts": ["again"]})),
            again,
            says("as deep as it goes").when(contains("would be agent")),
            says("end"),
            says("end"),
            says("end"),
        ]))
        .runtime(|runtime| runtime.limits(Limits { depth: Some(3), ..Limits::default() }))
        .run("start")
        .await;
    assert_eq!(run.status(), Status::Done, "{}", run.report().trace());
    let deepest = run.events().iter().map(|event| event.call.depth).max();
    assert!(deepest <= Some(4), "{deepest:?}");
    assert!(run.report().trace().to_string().contains("would be agent 4"), "{}", run.report().trace());
}

#[tokio::test]
async fn going_back_drops_the_turn_in_flight_and_everything_after_the_position() {
    let (model, seen) = recording([
        asks("look", json!({})),
        asks_all([
            ("look", json!({})),
            ("goto", json!({"position": "msg_0", "message": "It is 42."})),
            ("look", json!({})),
        ]),
        says("42, then"),
    ]);
    let run = project(main_agent().tool("look")).tool(free("look", "42")).model(model).run("find it").await;
    assert_eq!(&*run.answer(), "42, then");
    let seen = seen.lock().unwrap();
    seen.iter().for_each(|messages| assert_valid(messages));
    assert_eq!(seen[2].len(), 1);
    let text = seen[2][0].text();
    for part in ["[msg_0] ", "find it", "It is 42.", "3 messages were dropped", "not undone"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(seen[1][2].tool_results().next().unwrap().text.starts_with("[msg_2] 42"));
    // What was dropped stays in the events, and the call after the jump was never run.
    let looks = run
        .events()
        .iter()
        .filter(|event| matches!(&event.body, EventBody::CallStarted { name, .. } if name == "look"))
        .count();
    assert_eq!(looks, 2);
    let kept = run.events().iter().find_map(|event| match &event.body {
        EventBody::ModelRequest { kept: Some(kept), messages, .. } => Some((*kept, messages.len())),
        _ => None,
    });
    assert_eq!(kept, Some((0, 1)));
}

#[tokio::test]
async fn a_jump_to_nowhere_is_an_error_that_says_where_one_can_go() {
    let run = project(main_agent())
        .model(Script::new([
            asks("goto", json!({"position": "msg_7", "message": "x"})),
            asks("goto", json!({"position": "3", "message": "x"})),
            says("ok"),
        ]))
        .run("start")
        .await;
    let results = run.results();
    assert!(results[0].is_error && results[0].text.contains("you can go back to msg_0"), "{results:?}");
    assert!(results[1].is_error && results[1].text.contains("msg_3"), "{results:?}");
}

#[tokio::test]
async fn a_person_may_change_where_a_jump_goes_and_what_is_tuned() {
    let mut main = main_agent().rule("goto", Approval::Ask).rule("tune", Approval::Ask);
    main.tuning = Tuning { temperature: Some((0.0, 1.0)), ..Tuning::default() };
    let run = project(main)
        .model(Script::new([
            asks("tune", json!({"temperature": 0.1})),
            asks("goto", json!({"position": "msg_2", "message": "Go on."})),
            replies(|request: &ModelRequest<'_>| {
                let text = request.conversation.messages()[0].text();
                says(format!("{:?} {text}", request.settings.temperature))
            }),
        ]))
        .approvals([
            edit(json!({"temperature": 0.9})),
            edit(json!({"position": "msg_0", "message": "Begin anew."})),
        ])
        .run("start")
        .await;
    let answer = run.answer();
    assert!(answer.starts_with("Some(0.9)") && answer.contains("Begin anew."), "{answer}");
}

#[tokio::test]
async fn endless_jumps_end_with_the_turns() {
    let back = asks("goto", json!({"position": "msg_0", "message": "again"}));
    let run = project(main_agent().limits(Limits { turns: Some(7), ..Limits::default() }))
        .model(Script::each_call(vec![back; 20]))
        .run("start")
        .await;
    assert_eq!(run.status(), Status::Limit);
    assert!(run.error().contains("used its 7 turns"), "{}", run.error());
}

#[tokio::test]
async fn programs_are_started_by_name_and_can_start_others() {
    let main = main_agent().program("helper", "assistant", "Helps out");
    let run = project(main)
        .agent(AgentSpec::new("assistant", "Assist.").toolset("process").program("deep", "digger", "Digs"))
        .agent(AgentSpec::new("digger", "Dig."))
        .model(Script::new([
            replies(|request| {
                let spawn = request.tools.iter().find(|tool| tool.name == "spawn").unwrap();
                assert!(spawn.description.contains("- `helper`: Helps out"), "{}", spawn.description);
                asks("spawn", json!({"program": "helper", "prompt": "help"}))
            }),
            asks("spawn", json!({"program": "deep", "prompt": "dig"})),
            says("found"),
            says("helped"),
            asks("spawn", json!({"program": "hepler", "prompt": "x"})),
            says("ok"),
        ]))
        .run("start")
        .await;
    let results = run.tool_results();
    assert_eq!(results[0], "[msg_2] helped", "{}", run.report().trace());
    assert!(results[1].contains("unknown program `hepler`") && results[1].contains("`helper`"));
    let path = run.events().iter().map(|event| event.call.path.to_string()).max_by_key(String::len).unwrap();
    assert_eq!(path, "main > spawn() > assistant > spawn() > digger");
}

#[tokio::test]
async fn a_long_result_becomes_a_descriptor_that_a_program_can_be_given() {
    let long: String = (1..=2_000).map(|line| format!("line {line}\n")).collect();
    let main = main_agent().tool("look").program("reader", "reader", "Reads");
    let reader = AgentSpec::new("reader", "Read.").toolset("file_descriptors");
    let (model, seen) = recording([
        asks("look", json!({})),
        asks("spawn", json!({"program": "reader", "prompt": "read it", "attach_fds": ["fd:1.0"]})),
        asks("read_fd", json!({"fd": "fd:a1", "mode": "line", "start": 2000})),
        asks("read_fd", json!({"fd": "fd:1.0"})),
        says("the last line is 2000"),
        says("done"),
    ]);
    let run = project(main).agent(reader).tool(free("look", long)).model(model).run("start").await;
    assert_eq!(&*run.answer(), "done", "{}", run.report().trace());
    let results = run.results();
    let first = &results[0].text;
    assert!(first.contains("<fd_result fd=\"fd:1.0\"") && first.contains("line 1\n"), "{first}");
    assert!(first.len() < 5_000);
    let asked = seen.lock().unwrap();
    let results: Vec<_> = asked[4].iter().flat_map(Message::tool_results).collect();
    let read = results.iter().find(|result| result.name == "read_fd" && !result.is_error).unwrap();
    assert!(read.text.contains("line 2000"), "{}", read.text);
    // The descriptors of the caller are not those of the program.
    let refused = results.iter().find(|result| result.is_error).unwrap();
    assert!(refused.text.contains("there is no file descriptor `fd:1.0`"), "{}", refused.text);
    assert_eq!(asked[2][0].parts.len(), 2);
}

#[tokio::test]
async fn error_flags_are_kept_and_long_errors_are_paged() {
    let tool =
        FunctionTool::new("fail", |_, _| async { Err(llm_do_core::ToolError::new("x".repeat(20_000))) });
    let tool = tool.define(|definition| definition.approval = Approval::PreApproved).shared();
    let run = project(main_agent().tool("fail"))
        .tool(tool)
        .model(Script::new([asks("fail", json!({})), says("ok")]))
        .run("start")
        .await;
    let results = run.results();
    assert!(results[0].is_error && results[0].text.contains("<fd_result"), "{:.200}", results[0].text);
}

#[tokio::test]
async fn without_descriptors_a_long_result_is_cut_with_its_true_size() {
    let settings = DescriptorSettings { enabled: false, ..DescriptorSettings::default() };
    let main = AgentSpec::new("main", "Work.").tool("look").descriptors(settings);
    let run = project(main)
        .tool(free("look", "ä".repeat(10_000)))
        .model(Script::new([asks("look", json!({})), says("ok")]))
        .run("start")
        .await;
    assert!(run.tool_results()[0].ends_with("[cut: 8000 of 10000 characters are shown]"));
}

#[tokio::test]
async fn a_long_input_and_marked_text_can_be_read() {
    let (model, seen) = recording([
        asks("read_fd", json!({"fd": "fd:input", "mode": "char", "start": 9_000, "count": 5})),
        says("<ref id=\"plan\">step one</ref>").and(asks("read_fd", json!({"fd": "ref:plan"}))),
        says("ok"),
    ]);
    let settings = DescriptorSettings { input_limit: Some(8_000), ..DescriptorSettings::default() };
    let main = main_agent().descriptors(settings);
    let run = project(main).model(model).run("abc".repeat(5_000)).await;
    let results = run.tool_results();
    assert!(results[0].contains("cabca"), "{}", results[0]);
    assert!(results[1].contains("step one"), "{}", results[1]);
    assert!(seen.lock().unwrap()[0][0].text().contains("<fd_result fd=\"fd:input\""));
}

#[tokio::test]
async fn text_that_an_answer_marks_can_be_read_in_the_next_turn_of_a_chat() {
    let runtime = project(main_agent())
        .model(Script::new([
            says("<ref id=\"plan\">the plan</ref>"),
            asks("read_fd", json!({"fd": "ref:plan"})),
            replies(|request| {
                let messages = request.conversation.messages();
                let read = messages.iter().flat_map(|message| message.tool_results()).last().unwrap();
                assert!(!read.is_error && read.text.contains("the plan"), "{}", read.text);
                says("read")
            }),
        ]))
        .build();
    let mut session = runtime.session("main");
    session.send("begin").await.unwrap();
    assert_eq!(&*session.send("again").await.unwrap().text(), "read");
}

#[tokio::test]
async fn a_model_that_cannot_be_asked_is_refused_and_the_old_one_stays() {
    let bounds = Tuning { models: vec!["*".into()], ..Tuning::default() };
    let main = main_agent().tuning(bounds);
    let run = project(main)
        .model(Script::new([asks("tune", json!({"model": "nobody:knows"})), says("still here")]))
        .run("start")
        .await;
    assert_eq!(run.status(), Status::Done, "{}", run.report().trace());
    assert!(run.results()[0].is_error && run.tool_results()[0].contains("nobody:knows"));
}

/// Models that are there, whatever they are called.
struct Any;

impl Models for Any {
    fn resolve(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        Ok(Arc::new(Script::new([]).named(name)))
    }
}

/// Only the first model has a price.
struct OnePrice;

impl Prices for OnePrice {
    fn price(&self, model: &str, usage: &Usage) -> Option<Money> {
        (model == "script").then(|| Money(usage.tokens()))
    }
}

#[tokio::test]
async fn where_the_cost_is_limited_a_model_without_a_price_is_refused() {
    let limits = Limits { cost: Some(Money(1_000_000_000)), ..Limits::default() };
    let main = main_agent().tuning(Tuning { models: vec!["*".into()], ..Tuning::default() }).limits(limits);
    let run = project(main)
        .model(Script::new([asks("tune", json!({"model": "free:lunch"})), says("still here")]))
        .runtime(|runtime| runtime.models(Any).prices(OnePrice))
        .run("start")
        .await;
    assert_eq!(run.status(), Status::Done, "{}", run.report().trace());
    assert!(
        run.results()[0].is_error && run.tool_results()[0].contains("the price of `free:lunch` is unknown")
    );
}

#[tokio::test]
async fn only_the_model_itself_can_go_back_or_tune() {
    let meddle = FunctionTool::new("meddle", |_, call| async move {
        let back = call.call("goto", json!({"position": "msg_0", "message": "x"})).await;
        let tuned = call.call("tune", json!({"temperature": 0.1})).await;
        Ok(format!("{} / {}", back.unwrap_err(), tuned.unwrap_err()).into())
    });
    let meddle = meddle.define(|definition| definition.approval = Approval::PreApproved).shared();
    let bounds = Tuning { temperature: Some((0.0, 1.0)), ..Tuning::default() };
    let run = project(main_agent().tool("meddle").tuning(bounds))
        .tool(meddle)
        .model(Script::new([asks("meddle", json!({})), says("ok")]))
        .run("start")
        .await;
    let result = &run.tool_results()[0];
    for name in ["goto", "tune"] {
        assert!(result.contains(&format!("`{name}` changes the conversation of an agent")), "{result}");
    }
    let runtime = project(main_agent()).model(Script::new([])).build();
    let error = runtime.run("goto", json!({"position": "msg_0", "message": "x"})).await.unwrap_err();
    assert!(error.to_string().contains("only its model itself"), "{error}");
    assert!(!error.to_string().contains("hint"), "{error}");
}

#[tokio::test]
async fn the_answer_of_a_fork_is_text_whatever_the_agent_answers_with() {
    let schema = Schema::new(json!({"type": "object", "properties": {"n": {"type": "integer"}}})).unwrap();
    let run = project(main_agent().output(schema))
        .model(Script::new([
            asks("fork", json!({"prompts": ["count"]})),
            says("there are three").when(contains("forked at this call")),
            asks("final_answer", json!({"n": 3})),
        ]))
        .run("start")
        .await;
    assert_eq!(run.status(), Status::Done, "{}", run.report().trace());
    assert!(run.tool_results()[0].contains("there are three"), "{:?}", run.tool_results());
}

#[tokio::test]
async fn an_agent_that_cannot_read_descriptors_is_given_the_beginning_with_the_true_size() {
    let off = DescriptorSettings { enabled: false, ..DescriptorSettings::default() };
    for reader in
        [AgentSpec::new("reader", "Read."), AgentSpec::new("reader", "Read.").tool("look").descriptors(off)]
    {
        let (model, seen) = recording([
            asks("look", json!({})),
            asks("reader", json!({"input": "read it", "attachments": ["fd:1.0"]})),
            says("read"),
            says("done"),
        ]);
        let run = project(main_agent().tool("look").toolset("reader"))
            .agent(reader)
            .tool(free("look", "ä".repeat(20_000)))
            .model(model)
            .run("start")
            .await;
        assert_eq!(&*run.answer(), "done", "{}", run.report().trace());
        let given = seen.lock().unwrap()[2][0].text();
        assert!(given.ends_with("[cut: 8000 of 20000 characters are shown]"), "{given:.200}");
    }
}

/// The tools for long results as agents of files have them: without listing them.
fn by_themselves(mut spec: AgentSpec) -> AgentSpec {
    let own = FileDescriptors::read_only("file_descriptors").unwrap();
    let own: Option<Arc<dyn Toolset>> = Some(Arc::new(own));
    spec.toolsets.push(ToolsetChoice {
        name: "file_descriptors".into(),
        settings: Value::Null,
        own,
        implicit: true,
    });
    spec
}

fn offered_as(mut spec: AgentSpec, tool: &str, alias: &str) -> AgentSpec {
    spec.overrides.push(ToolOverride { alias: Some(alias.into()), ..ToolOverride::new(tool) });
    spec
}

/// What an agent is offered, and reads of a long result.
async fn long_result(main: AgentSpec) -> (Vec<String>, String) {
    let offered: Arc<Mutex<Vec<String>>> = Arc::default();
    let names = offered.clone();
    let first = replies(move |request: &ModelRequest<'_>| {
        *names.lock().unwrap() = request.tools.iter().map(|tool| tool.name.to_string()).collect();
        asks("look", json!({}))
    });
    let run = project(main)
        .tool(free("look", "ab\n".repeat(5_000)))
        .tool(free("read_fd", "mine"))
        .tool(free("count", "mine"))
        .model(Script::new([first, says("ok")]))
        .run("start")
        .await;
    assert_eq!(run.status(), Status::Done, "{}", run.error());
    let offered = offered.lock().unwrap().clone();
    (offered, run.tool_results()[0].clone())
}

#[tokio::test]
async fn where_another_tool_has_the_place_of_the_reading_one_results_are_cut() {
    let look = || AgentSpec::new("main", "Work.").tool("look");
    let mut manual = by_themselves(look());
    manual.manual_only.push("read_fd".into());
    for (main, reads) in [(by_themselves(look().tool("read_fd")), true), (manual, false)] {
        let (offered, result) = long_result(main).await;
        assert!(result.ends_with("[cut: 8000 of 15000 characters are shown]"), "{offered:?} {result:.100}");
        assert_eq!(offered.contains(&"read_fd".to_owned()), reads, "{offered:?}");
    }
}

#[tokio::test]
async fn where_a_call_may_not_use_the_reading_tool_results_are_cut() {
    let mut main = by_themselves(AgentSpec::new("main", "Work.").tool("look")).access(Access::Read);
    main.overrides.push(ToolOverride { access: Some(Access::Write), ..ToolOverride::new("read_fd") });
    let (tools, result) = long_result(main).await;
    assert!(!tools.contains(&"read_fd".to_owned()), "{tools:?}");
    assert!(result.contains("[cut: 8000 of "), "{result:.300}");
}

#[tokio::test]
async fn an_own_tool_may_have_the_name_of_one_that_comes_by_itself() {
    let main = AgentSpec::new("main", "Work.").tool("look").tool("count");
    let main = by_themselves(offered_as(main, "count", "grep_fd"));
    let (offered, result) = long_result(main).await;
    assert!(result.contains("Use read_fd to read more pages"), "{result:.300}");
    assert_eq!(offered.iter().filter(|name| *name == "grep_fd").count(), 1, "{offered:?}");
    assert!(["read_fd", "list_fd", "close_fd"].iter().all(|name| offered.iter().any(|other| other == name)));
}

#[tokio::test]
async fn the_reading_tool_may_have_another_name() {
    let main = by_themselves(offered_as(AgentSpec::new("main", "Work.").tool("look"), "read_fd", "page"));
    let (offered, result) = long_result(main).await;
    assert!(result.contains("Use page to read more pages"), "{result:.300}");
    assert!(["page", "grep_fd", "list_fd", "close_fd"].iter().all(|name| offered.iter().any(|o| o == name)));
}

#[tokio::test]
async fn descriptors_are_those_of_a_conversation() {
    let runtime = project(main_agent()).model(Script::new([])).build();
    let error = runtime.run("list_fd", json!({})).await.unwrap_err().to_string();
    assert!(error.contains("`list_fd` is about the file descriptors of an agent's conversation"), "{error}");
    assert!(!error.contains("::"), "{error}");
}

#[tokio::test]
async fn what_an_agent_has_no_use_for_is_not_offered() {
    let settings = DescriptorSettings { references: false, ..DescriptorSettings::default() };
    let run = project(main_agent().descriptors(settings))
        .model(Script::new([replies(|request| {
            assert!(request.tools.iter().all(|tool| tool.name != "tune"));
            assert!(request.tools.iter().all(|tool| !tool.description.contains("<ref")));
            says("ok")
        })]))
        .run("start")
        .await;
    assert_eq!(&*run.answer(), "ok");
}

#[tokio::test]
async fn settings_are_tuned_within_the_bounds_of_the_agent() {
    let bounds = Tuning { temperature: Some((0.0, 0.5)), max_tokens: Some((10, 100)), models: Vec::new() };
    let run = project(main_agent().tuning(bounds))
        .model(Script::new([
            asks("tune", json!({"temperature": 0.9})),
            asks("tune", json!({"temperature": 0.2, "max_tokens": 50})),
            replies(|request| {
                assert_eq!(request.settings.temperature, Some(0.2));
                assert_eq!(request.max_output, Some(50));
                says("tuned")
            }),
        ]))
        .run("start")
        .await;
    assert_eq!(&*run.answer(), "tuned");
    assert!(run.results()[0].is_error && run.tool_results()[0].contains("from 0 to 0.5"));
}

#[tokio::test]
async fn the_error_log_is_an_event_as_it_happens_and_part_of_the_report() {
    let main = AgentSpec::new("main", "Work.").toolset("stderr");
    let run = project(main)
        .model(Script::new([
            asks("write_stderr", json!({"message": "looked at 3 files"})),
            asks("write_stderr", json!({"message": " "})),
            says("ok"),
        ]))
        .run("start")
        .await;
    assert_eq!(run.report().stderr_log(), ["looked at 3 files"]);
    assert_eq!(run.tool_results()[0], "written");
    assert_eq!(run.failure_of("write_stderr").kind, FailureKind::Arguments);
}

#[tokio::test]
async fn what_a_call_may_not_use_is_not_offered() {
    let writer = FunctionTool::new("write", |_, _| async { Ok("".into()) }).shared();
    let main = main_agent().tool("write").access(Access::Read);
    let run = project(main)
        .tool(writer)
        .model(Script::new([replies(|request| {
            assert!(request.tools.iter().all(|tool| tool.name != "write"));
            assert!(request.tools.iter().any(|tool| tool.name == "read_fd"));
            says("ok")
        })]))
        .run("start")
        .await;
    assert_eq!(&*run.answer(), "ok");
}
