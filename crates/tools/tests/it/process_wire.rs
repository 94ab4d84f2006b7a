//! Forks, jumps, programs, descriptors and tuning over the wires of the providers, which refuse what is invalid.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use llm_do_core::{Access, AgentSpec, Approval, ModelSettings, Status, ToolDefinition, Tuning};
use llm_do_models::{Environment, StandardModels};
use llm_do_testing::{
    FunctionTool, MockAnswer, MockApi, OptionalRules, StrictProvider, TestProject, TestRun,
};
use llm_do_tools::{FileDescriptors, Process, ProcessSettings};
use serde_json::{Value, json};

/// What the main agent's model answers, request by request.
fn steps(provider: &str) -> Vec<MockAnswer> {
    let asks = |name: &'static str, input: Value| MockAnswer::Asks(vec![(name, input)]);
    vec![
        asks("look", json!({"n": 1})),
        MockAnswer::Asks(vec![
            ("look", json!({"n": 2})),
            ("fork", json!({"prompts": ["part a", "part b", "part c"]})),
            ("look", json!({"n": 3})),
        ]),
        asks("look", json!({"n": 4})),
        // To the answers of an earlier turn, and then to the beginning.
        asks("goto", json!({"position": "msg_4", "message": "That led nowhere."})),
        MockAnswer::Asks(vec![
            ("look", json!({"n": 5})),
            ("goto", json!({"position": "msg_0", "message": "It is 42."})),
            ("look", json!({"n": 6})),
        ]),
        asks("long", json!({})),
        asks("spawn", json!({"program": "helper", "prompt": "help", "attach_fds": ["fd:6.0"]})),
        asks("read_fd", json!({"fd": "fd:6.0", "mode": "line", "start": 2000})),
        asks("tune", json!({"model": format!("{provider}:tuned")})),
        MockAnswer::Says("all done".to_owned()),
    ]
}

/// Answers children and programs by what they are sent, and the main agent step by step.
fn model(api: MockApi, provider: &str) -> StrictProvider {
    let (steps, next) = (steps(provider), AtomicUsize::new(0));
    StrictProvider::new(api, move |body| {
        let text = body.to_string();
        let last = api.messages(body).last().unwrap().to_string();
        if text.contains("You help.") {
            return MockAnswer::Says("helped".to_owned());
        }
        for part in ["part a", "part b", "part c"] {
            if last.contains(&format!("\"{part}\"")) {
                return MockAnswer::Says(format!("did {part}"));
            }
        }
        steps[next.fetch_add(1, Ordering::SeqCst)].clone()
    })
    .optional(OptionalRules::ALL)
}

fn free(name: &'static str, answer: &str) -> FunctionTool {
    let answer = answer.to_owned();
    let tool = FunctionTool::new(name, move |_, _| {
        let answer = answer.clone();
        async move { Ok(answer.into()) }
    });
    tool.define(|definition: &mut ToolDefinition| {
        definition.access = Access::Read;
        definition.approval = Approval::PreApproved;
    })
}

async fn run(api: MockApi, provider: &str) -> (TestRun, StrictProvider) {
    let network = model(api, provider);
    let names = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"];
    let environment: Environment = names.iter().map(|name| (name.to_string(), "key".to_owned())).collect();
    let models = StandardModels::new(".").environment(environment).transport(Arc::new(network.clone()));
    let settings = ModelSettings { stream: Some(false), ..ModelSettings::default() };
    let agent = |name: &str, text: &str| {
        AgentSpec::new(name, text).model(format!("{provider}:m").as_str()).settings(settings.clone())
    };
    let main = agent("main", "You work.")
        .toolset("process")
        .toolset("file_descriptors")
        .tool("look")
        .tool("long")
        .program("helper", "helper", "Helps")
        .tuning(Tuning { temperature: None, max_tokens: None, models: vec!["*".to_owned()] });
    let long: String = (1..=2_000).map(|line| format!("line {line}\n")).collect();
    let run = TestProject::new()
        .agent(main)
        .agent(agent("helper", "You help.").toolset("file_descriptors"))
        .tool(free("look", "42"))
        .tool(free("long", &long))
        .toolset(Process::new("process", ProcessSettings::default()).unwrap())
        .toolset(FileDescriptors::read_only("file_descriptors").unwrap())
        .runtime(|runtime| runtime.models(models))
        .run("begin")
        .await;
    (run, network)
}

/// A body without what marks the end of what a provider caches.
fn without_marks(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| *key != "cache_control");
            Value::Object(kept.map(|(key, value)| (key.clone(), without_marks(value))).collect())
        }
        Value::Array(items) => items.iter().map(without_marks).collect(),
        other => other.clone(),
    }
}

async fn check(api: MockApi, provider: &str) {
    let (run, network) = run(api, provider).await;
    assert_eq!(network.refusals(), [] as [String; 0], "{api:?}");
    assert_eq!(run.status(), Status::Done, "{api:?}: {}", run.report().trace());
    assert_eq!(&*run.answer(), "all done");
    let requests = network.requests();
    let written = |body: &Value| -> Vec<String> {
        api.messages(body).iter().map(|message| without_marks(message).to_string()).collect()
    };
    // The request whose answer forks, and those of the children, which begin as it does.
    let parent = written(&requests[1].1);
    let is_child = |body: &Value| body.to_string().contains("you are a child");
    let children: Vec<&Value> = requests.iter().map(|(_, body)| body).filter(|body| is_child(body)).collect();
    assert_eq!(children.len(), 3, "{api:?}");
    for child in &children {
        assert_eq!(written(child)[..parent.len()], parent, "{api:?}");
        assert_eq!(child["tools"], requests[1].1["tools"], "{api:?}");
        assert_eq!(without_marks(&child["system"]), without_marks(&requests[1].1["system"]), "{api:?}");
    }
    let said: Vec<bool> =
        children.iter().map(|child| child.to_string().contains("left to the parent")).collect();
    assert_eq!(said, [true; 3], "{api:?}");
    // A jump leaves what was before it as it was.
    let after_jump =
        requests.iter().position(|(_, body)| body.to_string().contains("That led nowhere.")).unwrap();
    let kept = written(&requests[after_jump].1);
    assert_eq!(kept[..parent.len()], parent, "{api:?}");
    let last = requests.last().unwrap();
    assert!(last.1.to_string().contains("line 2000") && last.1.to_string().contains("helped"), "{api:?}");
    let model = |(path, body): &(String, Value)| body["model"].as_str().map_or(path.clone(), str::to_owned);
    assert!(model(last).contains("tuned") && !model(&requests[0]).contains("tuned"), "{api:?}");
    assert!(
        requests[..requests.len() - 1].iter().all(|request| !model(request).contains("tuned")),
        "{api:?}"
    );
}

#[tokio::test]
async fn anthropic_takes_every_conversation() {
    check(MockApi::Anthropic, "anthropic").await;
}

#[tokio::test]
async fn openai_responses_takes_every_conversation() {
    check(MockApi::Responses, "openai").await;
}

#[tokio::test]
async fn openai_chat_takes_every_conversation() {
    check(MockApi::Chat, "openai-chat").await;
}

#[tokio::test]
async fn gemini_takes_every_conversation() {
    check(MockApi::Gemini, "gemini").await;
}
