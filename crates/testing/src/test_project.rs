//! A project with a scripted model and scripted approvals, run in one expression.

use std::sync::Arc;

use llm_do_core::{AgentSpec, Answer, Event, Failure, Input, ModelChoice, Status, Tool, ToolResult, Toolset};
use llm_do_models::{Script, ScriptedReply};
use llm_do_runtime::{EntrySpec, Project, ProjectBuilder, RetryPolicy, RunReport, Runtime, RuntimeBuilder};

use crate::approvals::Approvals;

/// Builds a project for a test. The first agent or entry is what runs.
#[derive(Default)]
pub struct TestProject {
    project: ProjectBuilder,
    linked: Option<Project>,
    model: Option<ModelChoice>,
    entry: Option<String>,
    approvals: Option<Approvals>,
    settings: Vec<Box<dyn FnOnce(RuntimeBuilder) -> RuntimeBuilder>>,
}

impl TestProject {
    /// An empty project.
    pub fn new() -> Self {
        Self::default()
    }

    /// A project that is linked already, such as one of files, and what runs.
    pub fn from_project(project: Project, entry: impl Into<String>) -> Self {
        Self { linked: Some(project), entry: Some(entry.into()), ..Self::default() }
    }

    /// Adds an agent.
    #[must_use]
    pub fn agent(mut self, agent: AgentSpec) -> Self {
        self.entry.get_or_insert_with(|| agent.name.to_string());
        self.project = self.project.agent(agent);
        self
    }

    /// Adds an entry.
    #[must_use]
    pub fn entry(mut self, entry: EntrySpec) -> Self {
        self.entry.get_or_insert_with(|| entry.name().to_string());
        self.project = self.project.entry(entry);
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: impl Into<Arc<dyn Tool>>) -> Self {
        self.project = self.project.tool(tool);
        self
    }

    /// Adds a toolset.
    #[must_use]
    pub fn toolset(mut self, toolset: impl Toolset + 'static) -> Self {
        self.project = self.project.toolset(toolset);
        self
    }

    /// Adds a toolset that others hold as well.
    #[must_use]
    pub fn shared_toolset(mut self, toolset: Arc<dyn Toolset>) -> Self {
        self.project = self.project.shared_toolset(toolset);
        self
    }

    /// Sets what the model replies, in order, to all agents that name no model of their own.
    #[must_use]
    pub fn model_replies(self, replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        self.model(Script::new(replies))
    }

    /// Sets the model of agents that name none.
    #[must_use]
    pub fn model(mut self, model: impl Into<ModelChoice>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the answers to approval requests.
    #[must_use]
    pub fn approvals(self, answers: impl IntoIterator<Item = Answer>) -> Self {
        self.approver(Approvals::new(answers))
    }

    /// Sets an approver whose requests the test looks at.
    #[must_use]
    pub fn approver(mut self, approvals: Approvals) -> Self {
        self.approvals = Some(approvals);
        self
    }

    /// Changes the runtime.
    #[must_use]
    pub fn runtime(mut self, change: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder + 'static) -> Self {
        self.settings.push(Box::new(change));
        self
    }

    /// Builds the runtime.
    pub fn build(self) -> Runtime {
        let link = || self.project.build();
        let project = self.linked.map_or_else(link, Ok);
        let project = project.unwrap_or_else(|errors| panic!("the project does not link:\n{errors}"));
        // A model that fails is not asked again, unless the test is about that.
        let mut builder =
            Runtime::builder(project).retry(RetryPolicy { attempts: 1, ..RetryPolicy::default() });
        if let Some(model) = self.model {
            builder = builder.model(model);
        }
        if let Some(approvals) = self.approvals {
            builder = builder.approver(approvals);
        }
        let builder = self.settings.into_iter().fold(builder, |builder, change| change(builder));
        builder.build().unwrap_or_else(|errors| panic!("the runtime cannot be built:\n{errors}"))
    }

    /// Runs the first agent or entry to its end.
    pub async fn run(mut self, input: impl Into<Input>) -> TestRun {
        let entry = self.entry.take().expect("a project with an agent or entry");
        let runtime = self.build();
        let run = TestRun::of(runtime.run(entry.as_str(), input).await);
        runtime.shutdown().await;
        run
    }
}

/// How a run of a test ended.
#[derive(Debug)]
pub struct TestRun {
    report: RunReport,
    error: Option<String>,
}

impl TestRun {
    /// Takes the result of a run, whichever it is.
    pub fn of(result: Result<RunReport, llm_do_runtime::RunError>) -> Self {
        match result {
            Ok(report) => Self { report, error: None },
            Err(error) => Self { error: Some(error.to_string()), report: *error.report },
        }
    }

    /// Returns the answer; a run that failed stops the test.
    pub fn answer(&self) -> Arc<str> {
        if let Some(error) = &self.error {
            panic!("the run failed: {error}\n{}", self.report.trace());
        }
        self.report.text()
    }

    /// Returns why the run failed; one that did not stops the test.
    pub fn error(&self) -> &str {
        self.error.as_deref().unwrap_or_else(|| panic!("the run answered: {}", self.report.text()))
    }

    /// Returns how the run ended.
    pub fn status(&self) -> Status {
        self.report.status
    }

    /// Returns the report.
    pub fn report(&self) -> &RunReport {
        &self.report
    }

    /// Returns the recorded events.
    pub fn events(&self) -> Vec<Arc<Event>> {
        self.report.events()
    }

    /// Returns the results that the first agent read, in order.
    pub fn results(&self) -> Vec<ToolResult> {
        self.report
            .messages
            .iter()
            .flat_map(|message| message.tool_results().cloned().collect::<Vec<_>>())
            .collect()
    }

    /// Returns the texts of the results that the first agent read, in order.
    pub fn tool_results(&self) -> Vec<String> {
        self.results().into_iter().map(|result| result.text.to_string()).collect()
    }

    /// Returns the failure of the first call of a name, in the order of the trace.
    pub fn failure_of(&self, name: &str) -> Failure {
        let trace = self.report.trace();
        let failure = trace
            .iter()
            .find(|call| call.name == name && call.error.is_some())
            .and_then(|call| call.error.clone());
        failure.unwrap_or_else(|| panic!("no call of `{name}` failed:\n{trace}"))
    }
}
