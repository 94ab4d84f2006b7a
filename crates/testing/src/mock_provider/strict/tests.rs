//! The strict provider through the whole runtime: answers with reasoning, streams and faults.

use std::sync::Arc;

use llm_do_core::{Access, AgentSpec, Approval, Effort, ModelSettings, Status, Thinking};
use llm_do_models::{Environment, StandardModels};
use serde_json::json;

use super::{MockAnswer, MockApi, ProviderFault, StrictProvider};
use crate::{FunctionTool, TestProject, TestRun};

/// Calls a tool once and then answers.
fn network() -> StrictProvider {
    StrictProvider::all(|request| match request.index {
        0 => MockAnswer::Asks(vec![("look", json!({"n": 1})), ("look", json!({"n": 2}))]),
        _ => MockAnswer::Says("seen".to_owned()),
    })
}

async fn run(model: &str, settings: ModelSettings, network: &StrictProvider) -> TestRun {
    let keys = ["ANTHROPIC", "OPENAI", "GEMINI", "DEEPSEEK", "MISTRAL", "XAI", "GROQ"];
    let environment: Environment =
        keys.iter().map(|name| (format!("{name}_API_KEY"), "key".to_owned())).collect();
    let models = StandardModels::new(".").environment(environment).transport(Arc::new(network.clone()));
    let look = FunctionTool::new("look", |_, _| async { Ok("42".to_owned().into()) }).define(|definition| {
        definition.access = Access::Read;
        definition.approval = Approval::PreApproved;
    });
    let main = AgentSpec::new("main", "You look.").model(model).settings(settings).tool("look");
    TestProject::new().agent(main).tool(look).runtime(|runtime| runtime.models(models)).run("go").await
}

fn settings(stream: bool) -> ModelSettings {
    ModelSettings { stream: Some(stream), ..ModelSettings::default() }
}

#[tokio::test]
async fn every_provider_answers_whole_and_in_streams() {
    for model in [
        "anthropic:claude-haiku-4-5",
        "openai:gpt-4.1",
        "openai-chat:gpt-4.1",
        "gemini:gemini-2.5-flash",
        "ollama:m",
        "mistral:mistral-large-latest",
        "groq:m",
        "llamacpp:m",
    ] {
        for stream in [false, true] {
            let network = network();
            let run = run(model, settings(stream), &network).await;
            assert_eq!(network.refusals(), [] as [String; 0], "{model}");
            assert_eq!(&*run.answer(), "seen", "{model}, stream: {stream}");
            assert_eq!(run.tool_results(), ["42", "42"], "{model}, stream: {stream}");
        }
    }
}

#[tokio::test]
async fn a_model_that_reasons_issues_what_must_come_back() {
    let thinking =
        ModelSettings { thinking: Some(Thinking::Tokens(2048)), max_tokens: Some(8192), ..settings(false) };
    let effort = ModelSettings { effort: Some(Effort::Low), ..settings(false) };
    for (model, settings, proof) in [
        ("anthropic:claude-haiku-4-5", &thinking, "sig_0"),
        ("openai:gpt-5", &effort, "gAAAA_0"),
        ("gemini:gemini-3-flash-preview", &settings(false), "signature_0"),
    ] {
        for stream in [false, true] {
            let network = network();
            run(model, ModelSettings { stream: Some(stream), ..settings.clone() }, &network).await;
            assert_eq!(network.refusals(), [] as [String; 0], "{model}");
            assert!(
                network.requests()[1].1.to_string().contains(proof),
                "{model}: {:?}",
                network.requests()[1]
            );
        }
    }
}

#[tokio::test]
async fn what_is_refused_is_told_with_the_error_of_the_provider() {
    let network = StrictProvider::new(MockApi::Anthropic, |_| MockAnswer::Says("x".to_owned()));
    let mut settings = settings(false);
    settings.extra_body.insert("seed".to_owned(), json!(1));
    let run = run("anthropic:m", settings, &network).await;
    assert_eq!(run.status(), Status::Provider);
    assert!(run.error().contains("seed: Extra inputs are not permitted"), "{}", run.error());
    assert_eq!(network.refused()[0].1.rule, "anthropic.parameter");
}

#[tokio::test]
async fn faults_come_instead_of_answers_and_are_no_refusals() {
    for model in ["anthropic:claude-haiku-4-5", "openai:gpt-4.1", "gemini:gemini-2.5-flash", "ollama:m"] {
        for fault in ProviderFault::ALL {
            for stream in [false, true] {
                let network = network().faults(|_| Some(*fault));
                let run = run(model, settings(stream), &network).await;
                assert_eq!(run.status(), Status::Provider, "{model}: {fault:?}");
                assert_eq!(network.refusals(), [] as [String; 0], "{model}");
            }
        }
    }
}
