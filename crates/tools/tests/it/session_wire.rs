//! Sessions that go back and fork, over the wires of the providers, which refuse what is invalid, and with file
//! descriptors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use llm_do_core::{Access, AgentSpec, Approval, ModelSettings};
use llm_do_models::{Environment, StandardModels};
use llm_do_runtime::{Runtime, Session};
use llm_do_testing::{FunctionTool, MockAnswer, MockApi, OptionalRules, StrictProvider, TestProject};
use llm_do_tools::FileDescriptors;
use serde_json::{Value, json};

/// What the model answers, request by request.
fn steps() -> Vec<MockAnswer> {
    let asks = |name: &'static str, input: Value| MockAnswer::Asks(vec![(name, input)]);
    let says = |text: &str| MockAnswer::Says(text.to_owned());
    let list = || asks("list_fd", json!({}));
    vec![
        asks("long", json!({"n": 1})),
        says("harbour"),
        // A turn that makes a descriptor and takes one away, and is dropped.
        asks("long", json!({"n": 2})),
        asks("close_fd", json!({"fd": "fd:1.0"})),
        says("lantern"),
        list(),
        asks("read_fd", json!({"fd": "fd:1.0", "mode": "line", "start": 2000})),
        says("second"),
        // A fork that makes one of its own, and the original, which does not see it.
        asks("long", json!({"n": 3})),
        list(),
        says("forked"),
        list(),
        says("third"),
        // Back to the beginning.
        list(),
        says("anew"),
    ]
}

fn long() -> FunctionTool {
    let tool = FunctionTool::new("long", |input, _| async move {
        let text: String = (1..=2_000).map(|line| format!("{}: line {line}\n", input["n"])).collect();
        Ok(text.into())
    });
    tool.define(|definition| {
        definition.access = Access::Read;
        definition.approval = Approval::PreApproved;
    })
}

fn runtime(api: MockApi, provider: &str) -> (Runtime, StrictProvider) {
    let (steps, next) = (steps(), AtomicUsize::new(0));
    let network = StrictProvider::new(api, move |_| steps[next.fetch_add(1, Ordering::SeqCst)].clone())
        .optional(OptionalRules::ALL);
    let names = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"];
    let environment: Environment = names.iter().map(|name| (name.to_string(), "key".to_owned())).collect();
    let models = StandardModels::new(".").environment(environment).transport(Arc::new(network.clone()));
    let settings = ModelSettings { stream: Some(false), ..ModelSettings::default() };
    let main = AgentSpec::new("main", "You work.")
        .model(format!("{provider}:m").as_str())
        .settings(settings)
        .toolset("file_descriptors")
        .tool("long");
    let runtime = TestProject::new()
        .agent(main)
        .tool(long())
        .toolset(FileDescriptors::read_only("file_descriptors").unwrap())
        .runtime(|runtime| runtime.models(models))
        .build();
    (runtime, network)
}

async fn say(session: &mut Session, text: &str) -> (String, Vec<String>) {
    let before = session.messages().await.len();
    let report = session.send(text).await.unwrap();
    let new = &session.messages().await[before..];
    let results = new.iter().flat_map(|message| message.tool_results().map(|result| result.text.to_string()));
    (report.text().to_string(), results.collect())
}

async fn check(api: MockApi, provider: &str) {
    let (runtime, network) = runtime(api, provider);
    let mut session = runtime.session("main");
    assert_eq!(say(&mut session, "one").await.0, "harbour");
    assert_eq!(say(&mut session, "two").await.0, "lantern");

    assert_eq!(session.go_back(2).await.unwrap(), "two");
    let (answer, results) = say(&mut session, "three").await;
    assert_eq!(answer, "second");
    assert!(results[0].contains("fd:1.0") && !results[0].contains("fd:2.1.0"), "{api:?}: {}", results[0]);
    assert!(results[1].contains("1: line 2000"), "{api:?}: {}", results[1]);

    let mut fork = session.fork().await;
    let (answer, results) = say(&mut fork, "aside").await;
    assert_eq!(answer, "forked");
    assert!(results[1].contains("fd:1.0") && results[1].contains("fd:4.1.0"), "{api:?}: {}", results[1]);
    let (answer, results) = say(&mut session, "four").await;
    assert_eq!(answer, "third");
    assert!(results[0].contains("fd:1.0") && !results[0].contains("fd:4.1.0"), "{api:?}: {}", results[0]);

    session.go_back(1).await.unwrap();
    let (answer, results) = say(&mut session, "anew").await;
    assert_eq!(answer, "anew");
    assert!(!results[0].contains("fd:1.0"), "{api:?}: {}", results[0]);

    assert_eq!(network.refusals(), [] as [String; 0], "{api:?}");
    let requests = network.requests();
    assert_eq!(requests.len(), steps().len(), "{api:?}");
    assert!(requests[5..].iter().all(|(_, body)| !body.to_string().contains("lantern")), "{api:?}");
    assert!(!requests[13].1.to_string().contains("harbour"), "{api:?}");
    fork.close().await;
    session.close().await;
}

#[tokio::test]
async fn anthropic_takes_conversations_that_went_back_and_forked() {
    check(MockApi::Anthropic, "anthropic").await;
}

#[tokio::test]
async fn openai_responses_takes_conversations_that_went_back_and_forked() {
    check(MockApi::Responses, "openai").await;
}

#[tokio::test]
async fn openai_chat_takes_conversations_that_went_back_and_forked() {
    check(MockApi::Chat, "openai-chat").await;
}

#[tokio::test]
async fn gemini_takes_conversations_that_went_back_and_forked() {
    check(MockApi::Gemini, "gemini").await;
}
