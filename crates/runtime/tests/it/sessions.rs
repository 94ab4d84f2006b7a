//! Sessions: turns that are listed and dropped, conversations that fork, and models that a person chooses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use llm_do_core::{
    AgentSpec, Approval, Control, EventBody, Model, ModelChoice, ModelError, ModelErrorKind, ModelRequest,
    Models, Name, Opening, Output, Payload, Status, Template, Tool, ToolDefinition, ToolError, Toolset,
    ToolsetInstance, Tuning,
};
use llm_do_models::{Script, ScriptedReply, asks, fails, instructed, replies, says};
use llm_do_runtime::{EntrySpec, PromptInput, RunReport, Session, SessionTurn};
use llm_do_testing::{FunctionTool, TestProject};
use serde_json::json;

fn turn(ordinal: u32, text: &str) -> SessionTurn {
    SessionTurn { ordinal, text: text.to_owned() }
}

async fn texts(session: &Session) -> Vec<String> {
    session.messages().await.iter().map(|message| message.text()).collect()
}

/// Answers every request.
fn answering(answer: impl Fn(&ModelRequest<'_>) -> ScriptedReply + Send + Sync + 'static) -> Script {
    Script::new([replies(answer).when(instructed(""))])
}

/// Answers with all that it is given.
fn echoing() -> Script {
    answering(|request| {
        let texts: Vec<String> =
            request.conversation.messages().iter().map(|message| message.text()).collect();
        says(format!("<{}>", texts.join(" ")))
    })
}

fn look() -> FunctionTool {
    FunctionTool::new("look", |_, _| async { Ok(Output::text("42")) })
        .define(|tool| tool.approval = Approval::PreApproved)
}

/// What the requests of a run showed: how many messages stood, and the texts of the new ones.
fn shown(report: &RunReport) -> Vec<(Option<usize>, Vec<String>)> {
    let request = |event: &Arc<llm_do_core::Event>| match &event.body {
        EventBody::ModelRequest { kept, messages, .. } => {
            Some((*kept, messages.iter().map(|message| message.text()).collect()))
        }
        _ => None,
    };
    report.events().iter().filter_map(request).collect()
}

#[tokio::test]
async fn a_turn_that_is_dropped_makes_room_for_another_message() {
    let runtime = TestProject::new().agent(AgentSpec::new("main", "x")).model(echoing()).build();
    let mut session = runtime.session("main");
    assert_eq!(session.turns().await, []);
    for text in ["one", "two", "three"] {
        session.send(text).await.unwrap();
    }
    assert_eq!(session.turns().await, [turn(1, "one"), turn(2, "two"), turn(3, "three")]);

    assert_eq!(session.go_back(2).await.unwrap(), "two");
    assert_eq!(session.turns().await, [turn(1, "one")]);
    assert_eq!(texts(&session).await, ["one", "<one>"]);
    let report = session.send("other").await.unwrap();
    assert_eq!(&*report.text(), "<one <one> other>");
    assert_eq!(shown(&report), [(Some(2), vec!["other".to_owned()])]);
    assert_eq!(session.turns().await, [turn(1, "one"), turn(4, "other")], "numbers are not used again");
    let report = session.send("on").await.unwrap();
    assert_eq!(shown(&report)[0].0, None);
}

#[tokio::test]
async fn going_back_to_the_first_turn_begins_anew() {
    let speaks =
        |input: &Payload| Ok(format!("You speak {}.", input.value()["input"].as_str().unwrap_or_default()));
    let mut main = AgentSpec::new("main", "");
    main.template = Some(Template::new("speaks", speaks));
    let told = answering(|request| says(request.instructions));
    let runtime = TestProject::new().agent(main).model(told).build();
    let mut session = runtime.session("main");
    assert_eq!(&*session.send("French").await.unwrap().text(), "You speak French.");
    session.send("more").await.unwrap();
    assert_eq!(session.go_back(1).await.unwrap(), "French");
    assert_eq!((session.turns().await, texts(&session).await.len()), (Vec::new(), 0));
    let report = session.send("Dutch").await.unwrap();
    assert_eq!(&*report.text(), "You speak Dutch.");
    assert_eq!(shown(&report), [(Some(0), vec!["Dutch".to_owned()])]);
}

#[tokio::test]
async fn a_turn_that_is_not_there_is_an_error_that_says_which_are() {
    let runtime = TestProject::new().agent(AgentSpec::new("main", "x")).model(echoing()).build();
    let mut session = runtime.session("main");
    let error = session.go_back(1).await.unwrap_err();
    assert_eq!(error.message, "there is no turn 1 to go back to: nothing was said yet");
    session.send("one").await.unwrap();
    let error = session.go_back(2).await.unwrap_err();
    assert_eq!(error.message, "there is no turn 2 to go back to: there is only 1");
    for text in ["two", "three"] {
        session.send(text).await.unwrap();
    }
    session.go_back(3).await.unwrap();
    session.send("four").await.unwrap();
    let error = session.go_back(3).await.unwrap_err();
    assert_eq!(error.message, "there is no turn 3 to go back to: there are 1, 2, 4");
    assert_eq!(texts(&session).await.len(), 6, "nothing was dropped");
}

#[tokio::test]
async fn turns_with_calls_are_dropped_with_them_and_what_calls_did_stays() {
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("look"))
        .tool(look())
        .model_replies([
            says("hello"),
            asks("look", json!({})),
            asks("look", json!({"again": true})),
            says("it is 42"),
            says("again"),
        ])
        .build();
    let mut session = runtime.session("main");
    session.send("one").await.unwrap();
    session.send("two").await.unwrap();
    assert_eq!(session.messages().await.len(), 8);
    assert_eq!(session.go_back(2).await.unwrap(), "two");
    session.send("three").await.unwrap();
    assert_eq!(texts(&session).await, ["one", "hello", "three", "again"]);
    assert!(session.messages().await.iter().all(|message| message.tool_calls().count() == 0));
    assert_eq!(session.usage().total().requests, 5, "what was used stays counted");
}

#[tokio::test(start_paused = true)]
async fn a_turn_without_an_answer_is_none_and_a_given_up_one_is_awaited() {
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x"))
        .model_replies([
            says("one"),
            fails(ModelErrorKind::Overloaded, "busy"),
            says("never").after(std::time::Duration::from_secs(86_400)),
            says("four"),
        ])
        .build();
    let mut session = runtime.session("main");
    session.send("first").await.unwrap();
    session.send("second").await.unwrap_err();
    assert_eq!(session.turns().await, [turn(1, "first")]);
    let given_up = tokio::time::timeout(std::time::Duration::from_millis(20), session.send("third")).await;
    assert!(given_up.is_err());
    assert_eq!(session.go_back(1).await.unwrap(), "first");
    session.send("fourth").await.unwrap();
    assert_eq!(texts(&session).await, ["fourth", "four"]);
}

#[tokio::test]
async fn turns_that_the_model_itself_jumped_over_are_gone() {
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("goto"))
        .tool(goto())
        .model_replies([
            says("one"),
            says("two"),
            asks("goto", json!({"position": "msg_2", "message": "That led nowhere."})),
            says("three"),
            says("four"),
        ])
        .build();
    let mut session = runtime.session("main");
    for text in ["first", "second", "third", "fourth"] {
        session.send(text).await.unwrap();
    }
    assert_eq!(session.turns().await, [turn(1, "first"), turn(2, "second"), turn(4, "fourth")]);
    assert_eq!(session.go_back(2).await.unwrap(), "second");
    assert_eq!(texts(&session).await, ["[msg_0] first", "one"]);
}

/// A tool by which the model goes back to an earlier message.
fn goto() -> FunctionTool {
    FunctionTool::new("goto", |input, _| async move { Ok(Output::json(input)) }).define(|tool| {
        tool.approval = Approval::PreApproved;
        tool.sequential = true;
        tool.control = Some(Control::Goto);
    })
}

#[tokio::test]
async fn a_turn_that_fails_after_a_jump_leaves_no_call_without_its_answer() {
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("goto").tool("look"))
        .tool(goto())
        .tool(look())
        .model_replies([
            says("one"),
            asks("goto", json!({"position": "msg_0", "message": "Look at it."})),
            asks("look", json!({})),
            fails(ModelErrorKind::Invalid, "no"),
            says("three"),
        ])
        .build();
    let mut session = runtime.session("main");
    session.send("first").await.unwrap();
    // What stands after the jump is as long as the conversation was before it.
    session.send("second").await.unwrap_err();
    session.send("third").await.unwrap();
    let messages = session.messages().await;
    for pair in messages.windows(2) {
        let asked: Vec<&str> = pair[0].tool_calls().map(|call| call.id.as_str()).collect();
        let answered: Vec<&str> = pair[1].tool_results().map(|result| result.id.as_str()).collect();
        assert_eq!(asked, answered, "{messages:#?}");
    }
}

#[tokio::test]
async fn a_jump_to_nowhere_is_an_error_that_the_model_reads() {
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("goto"))
        .tool(goto())
        .model_replies([
            asks("goto", json!({"position": "msg_7", "message": "x"})),
            asks("goto", json!({"place": 7})),
            says("so be it"),
        ])
        .build();
    let mut session = runtime.session("main");
    let report = session.send("go").await.unwrap();
    assert_eq!(&*report.text(), "so be it");
    let messages = session.messages().await;
    let results: Vec<_> = messages.iter().flat_map(|message| message.tool_results()).collect();
    assert!(results[0].is_error && results[0].text.contains("up to `msg_0`"), "{results:?}");
    assert!(results[1].is_error && results[1].text.contains("could not be read"), "{results:?}");
}

#[tokio::test]
async fn both_branches_of_a_fork_go_their_own_ways_from_shared_messages() {
    let runtime = TestProject::new().agent(AgentSpec::new("main", "x")).model(echoing()).build();
    let mut session = runtime.session("main");
    session.send("one").await.unwrap();
    let mut other = session.fork().await;
    for (mine, its) in session.messages().await.iter().zip(other.messages().await) {
        assert!(Arc::ptr_eq(mine, &its), "messages are shared");
    }
    let report = other.send("left").await.unwrap();
    assert_eq!(&*report.text(), "<one <one> left>");
    assert_eq!(shown(&report), [(Some(1), vec!["<one>".to_owned(), "left".to_owned()])]);
    let report = session.send("right").await.unwrap();
    assert_eq!(&*report.text(), "<one <one> right>");
    assert_eq!(other.turns().await, [turn(1, "one"), turn(2, "left")]);
    assert_eq!(session.turns().await, [turn(1, "one"), turn(2, "right")]);
    other.go_back(1).await.unwrap();
    other.send("anew").await.unwrap();
    assert_eq!(texts(&other).await, ["anew", "<anew>"]);
    assert_eq!(texts(&session).await.len(), 4);
    assert_eq!(other.usage().total().requests, 2);
    session.close().await;
    other.close().await;
}

/// A toolset whose instances count for themselves, and how many were opened and closed.
struct Counters {
    name: Name,
    opened: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
}

struct Counter {
    tools: Vec<Arc<dyn Tool>>,
    closed: Arc<AtomicUsize>,
}

fn counting() -> FunctionTool {
    let count = AtomicUsize::new(0);
    FunctionTool::new("count", move |_, _| {
        let next = count.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Ok(Output::text(next.to_string())) }
    })
    .define(|tool| tool.approval = Approval::PreApproved)
}

impl Toolset for Counters {
    fn name(&self) -> &Name {
        &self.name
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        vec![counting().shared().definition().clone()]
    }

    fn open<'a>(&'a self, _: Opening<'a>) -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>> {
        self.opened.fetch_add(1, Ordering::SeqCst);
        let counter = Counter { tools: vec![counting().shared()], closed: self.closed.clone() };
        Box::pin(std::future::ready(Ok(Arc::new(counter) as Arc<dyn ToolsetInstance>)))
    }
}

impl ToolsetInstance for Counter {
    fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closed.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test]
async fn a_fork_has_toolset_instances_of_its_own() {
    let (opened, closed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counters = Counters { name: "counters".into(), opened: opened.clone(), closed: closed.clone() };
    let last = |request: &ModelRequest<'_>| -> ScriptedReply {
        let message = request.conversation.messages().last().cloned().unwrap();
        match message.tool_results().next() {
            Some(result) => says(result.text.clone()),
            None => asks("count", json!({})),
        }
    };
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x").toolset("counters"))
        .toolset(counters)
        .model(answering(last))
        .build();
    let mut session = runtime.session("main");
    assert_eq!(&*session.send("a").await.unwrap().text(), "1");
    let mut other = session.fork().await;
    assert_eq!(&*other.send("b").await.unwrap().text(), "1");
    assert_eq!(&*session.send("c").await.unwrap().text(), "2");
    other.close().await;
    assert_eq!((opened.load(Ordering::SeqCst), closed.load(Ordering::SeqCst)), (2, 1));
    assert_eq!(&*session.send("d").await.unwrap().text(), "3");
    session.close().await;
    assert_eq!(closed.load(Ordering::SeqCst), 2);
}

/// Models that answer with their own name.
struct Named;

impl Models for Named {
    fn resolve(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        if name == "gone" {
            return Err(ModelError::new(ModelErrorKind::NoModel, "there is no model `gone`"));
        }
        Ok(Arc::new(Script::new([says(format!("I am {name}")).when(instructed(""))]).named(name)))
    }
}

#[tokio::test]
async fn a_person_chooses_the_model_whatever_the_agent_names() {
    let main = AgentSpec::new("main", "x").model("own").tuning(Tuning::default());
    let runtime = TestProject::new().agent(main).runtime(|runtime| runtime.models(Named)).build();
    let mut session = runtime.session("main");
    let choose = |name: &str| Some(ModelChoice::from(name));
    assert_eq!(&*session.send("a").await.unwrap().text(), "I am own");
    session.use_model(choose("other")).await;
    assert_eq!(&*session.send("b").await.unwrap().text(), "I am other");
    let mut fork = session.fork().await;
    assert_eq!(&*fork.send("b").await.unwrap().text(), "I am other");

    session.use_model(choose("gone")).await;
    let error = session.send("c").await.unwrap_err();
    assert_eq!(error.status(), Status::Provider);
    assert!(error.to_string().contains("there is no model `gone`"), "{error}");
    session.use_model(choose("third")).await;
    assert_eq!(&*session.send("d").await.unwrap().text(), "I am third");
    session.go_back(1).await.unwrap();
    assert_eq!(&*session.send("e").await.unwrap().text(), "I am third", "the choice outlives the messages");
    session.use_model(None).await;
    assert_eq!(&*session.send("f").await.unwrap().text(), "I am own");
}

#[tokio::test]
async fn a_session_of_code_remembers_no_turns() {
    let start = EntrySpec::new("start", "Starts", |input: PromptInput, _| async move { Ok(input.input) });
    let runtime = TestProject::new().entry(start.unwrap()).build();
    let mut session = runtime.session("start");
    assert_eq!(&*session.send("a").await.unwrap().text(), "a");
    assert_eq!(session.turns().await, []);
    let mut fork = session.fork().await;
    assert_eq!(&*fork.send("b").await.unwrap().text(), "b");
}
