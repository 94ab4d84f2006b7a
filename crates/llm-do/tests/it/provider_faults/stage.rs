//! One agent with the tools of the corpus, on a provider that fails as a script says.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use llm_do::approval::Approval;
use llm_do::event::EventBody;
use llm_do::model::{Environment, ModelSettings, StandardModels, Transport};
use llm_do::value::Schema;
use llm_do::{AgentSpec, Output, Project, RunReport, Runtime};
use llm_do_testing::FunctionTool;
use serde_json::Value;

/// A key that must be seen nowhere but in the header of a request.
pub(crate) const KEY: &str = "sk-canary-5d1f0c7e";

/// How a run ended, as those outside see it.
pub(crate) struct Ended {
    pub(crate) answer: Result<String, String>,
    /// The calls that tools really received: name and arguments.
    pub(crate) effects: Vec<(String, Value)>,
    pub(crate) report: RunReport,
}

/// Runs the prompt `hi` against a provider of the corpus.
pub(crate) async fn run(provider: &str, transport: Arc<dyn Transport>, idle: Duration) -> Ended {
    run_at(provider, "http://provider.test", transport, idle).await
}

/// Runs the prompt `hi` against a provider at an address.
pub(crate) async fn run_at(
    provider: &str,
    address: &str,
    transport: Arc<dyn Transport>,
    idle: Duration,
) -> Ended {
    let effects: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
    let settings = ModelSettings { idle_timeout: Some(idle.as_secs()), ..ModelSettings::default() };
    let model = if provider == "openai" { "openai-chat:m" } else { "anthropic:m" };
    let mut agent = AgentSpec::new("main", "Be brief.").model(model).settings(settings);
    let mut project = Project::builder();
    for (name, schema) in tools() {
        agent = agent.tool(name.as_str());
        project = project.tool(recording(name, schema, effects.clone()));
    }
    let runtime = Runtime::builder(project.agent(agent).build().unwrap())
        .models(StandardModels::new(".").environment(environment(address)).transport(transport))
        .build()
        .unwrap();
    let result = runtime.run("main", "hi").await;
    runtime.shutdown().await;
    let (answer, report) = match result {
        Ok(report) => (Ok(report.text().to_string()), report),
        Err(error) => (Err(error.to_string()), *error.report),
    };
    let effects = effects.lock().unwrap().clone();
    let ended = Ended { answer, effects, report };
    assert!(!ended.shown().contains(KEY), "the key is shown:\n{}", ended.shown());
    ended
}

impl Ended {
    /// Everything that anybody can read of the run.
    fn shown(&self) -> String {
        let events: Vec<String> =
            self.report.events().iter().map(|event| serde_json::to_string(event).unwrap()).collect();
        format!("{:?}\n{}", self.answer, events.join("\n"))
    }

    /// The error results that the model was given.
    pub(crate) fn tool_errors(&self) -> Vec<String> {
        let events = self.report.events();
        let results = events.iter().filter_map(|event| match &event.body {
            EventBody::ModelRequest { messages, .. } => Some(messages.clone()),
            _ => None,
        });
        let messages: Vec<_> = results.flatten().collect();
        let results = messages.iter().flat_map(|message| message.tool_results());
        results.filter(|result| result.is_error).map(|result| result.text.to_string()).collect()
    }
}

fn environment(address: &str) -> Environment {
    let openai = format!("{address}/v1");
    let variables = [
        ("ANTHROPIC_API_KEY", KEY),
        ("OPENAI_API_KEY", KEY),
        ("ANTHROPIC_BASE_URL", address),
        ("OPENAI_BASE_URL", openai.as_str()),
    ];
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect()
}

/// The tools of the corpus with their schemas, compiled once for all runs.
fn tools() -> &'static [(String, Schema)] {
    static TOOLS: OnceLock<Vec<(String, Schema)>> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let text = include_str!("../../../../runtime/tests/corpus/tool_json.json");
        let corpus: Value = serde_json::from_str(text).unwrap();
        let tools = corpus["tools"].as_object().unwrap().clone();
        tools.into_iter().map(|(name, tool)| (name, Schema::new(tool["schema"].clone()).unwrap())).collect()
    })
}

fn recording(
    name: &str,
    schema: &Schema,
    effects: Arc<Mutex<Vec<(String, Value)>>>,
) -> Arc<dyn llm_do::tools::Tool> {
    let own = name.to_owned();
    let tool = FunctionTool::new(name, move |input, _| {
        effects.lock().unwrap().push((own.clone(), input));
        async { Ok(Output::text("done")) }
    });
    let tool = tool.define(|definition| {
        definition.input = schema.clone();
        definition.approval = Approval::PreApproved;
    });
    tool.shared()
}
