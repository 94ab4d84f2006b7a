//! How much time the runtime itself takes: per tool turn, per nested run, per agent call, per decision.
//!
//! The models answer at once and the tools do nothing, so what is measured is the runtime: dispatcher, gate
//! and the record in memory. See `docs/performance.md` for what the figures mean.

#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]

mod parts;

use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use futures::future::BoxFuture;
use llm_do_core::{
    AgentSpec, Answer, Approval, ApprovalMode, CallContext, Name, Opening, Scope, Tool, ToolDefinition,
    ToolError, Toolset, ToolsetInstance,
};
use llm_do_runtime::{EntrySpec, Project, ProjectBuilder, PromptInput, Runtime, RuntimeBuilder};
use serde_json::json;
use tokio::runtime::{Builder, Runtime as Executor};

use parts::{PreparedModel, arguments, look, looking};

fn main() {
    divan::main();
}

fn one_thread() -> Executor {
    Builder::new_current_thread().enable_time().build().expect("an executor")
}

fn linked(project: ProjectBuilder) -> RuntimeBuilder {
    Runtime::builder(project.build().expect("a project"))
}

/// Measures whole runs of `main`: from the start until all events are read and the record is gone.
fn measure(bencher: Bencher<'_, '_>, builder: RuntimeBuilder, counted: usize) {
    measure_runs(bencher, &one_thread(), &builder.build().expect("a runtime"), counted);
}

fn measure_runs(bencher: Bencher<'_, '_>, executor: &Executor, runtime: &Runtime, counted: usize) {
    bencher.counter(ItemsCount::new(counted)).bench_local(|| {
        executor.block_on(async { runtime.run("main", "go").await.expect("an answer") });
    });
}

#[divan::bench(args = [50, 400, 4_000])]
fn tool_turns(bencher: Bencher<'_, '_>, turns: usize) {
    let model = PreparedModel::calling("look", turns, arguments);
    measure(bencher, looking(model, Approval::PreApproved), turns);
}

#[divan::bench(args = [50, 400, 4_000])]
fn tool_turns_with_a_subscriber(bencher: Bencher<'_, '_>, turns: usize) {
    let model = PreparedModel::calling("look", turns, arguments);
    measure(bencher, looking(model, Approval::PreApproved).on_event(|_| {}), turns);
}

/// Five agents, each of which calls the next one; the last one calls the tool.
#[divan::bench]
fn nested_five_deep(bencher: Bencher<'_, '_>) {
    let names = ["main", "second", "third", "fourth", "fifth"];
    let inner = names.iter().zip(&names[1..]).map(|(name, next)| {
        let model = PreparedModel::calling(next, 1, |_| json!({"input": "go"}));
        AgentSpec::new(*name, "Pass it on.").toolset(*next).model(model)
    });
    let last =
        AgentSpec::new("fifth", "Look.").tool("look").model(PreparedModel::calling("look", 1, arguments));
    let builder = Project::builder().tool(look(Approval::PreApproved));
    let project = inner.chain([last]).fold(builder, |builder, agent| builder.agent(agent));
    measure(bencher, linked(project), 1);
}

/// Calls that a code entry makes in one run, so that the run itself hardly counts.
const CALLS: usize = 1_000;

/// A code entry that does the same thing again and again.
fn repeating<F, Fut>(each: F) -> EntrySpec
where
    F: Fn(usize, CallContext) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<(), ToolError>> + Send + 'static,
{
    let function = move |_: PromptInput, call: CallContext| async move {
        for turn in 0..CALLS {
            each(turn, call.clone()).await?;
        }
        Ok(())
    };
    EntrySpec::new("main", "Repeats", function).expect("an entry")
}

/// An agent that answers at once, called by code.
#[divan::bench]
fn agent_call(bencher: Bencher<'_, '_>) {
    let agent = AgentSpec::new("child", "Answer.").model(PreparedModel::calling("", 0, arguments));
    measure(bencher, linked(Project::builder().entry(calling_child()).agent(agent)), CALLS);
}

/// The same with a toolset that is opened and closed for each call.
#[divan::bench]
fn agent_call_with_a_stateful_toolset(bencher: Bencher<'_, '_>) {
    let agent =
        AgentSpec::new("child", "Answer.").toolset("memory").model(PreparedModel::calling("", 0, arguments));
    let project = Project::builder().entry(calling_child()).agent(agent).toolset(Memory("memory".into()));
    measure(bencher, linked(project), CALLS);
}

fn calling_child() -> EntrySpec {
    repeating(|_, call| async move { Ok(call.call("child", "go").await.map(drop)?) })
}

/// A toolset whose instances have tools of their own.
struct Memory(Name);

struct Remembered(Vec<Arc<dyn Tool>>);

impl Toolset for Memory {
    fn name(&self) -> &Name {
        &self.0
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        vec![look(Approval::PreApproved).definition().clone()]
    }

    fn open<'a>(
        &'a self,
        _opening: Opening<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>> {
        Box::pin(async { Ok(Arc::new(Remembered(Vec::new())) as Arc<dyn ToolsetInstance>) })
    }
}

impl ToolsetInstance for Remembered {
    fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.0
    }
}

/// A tool called by code: resolve, decide, record, run, record.
mod code_call {
    use super::*;

    #[divan::bench]
    fn pre_approved(bencher: Bencher<'_, '_>) {
        measure(bencher, runtime(Approval::PreApproved), CALLS);
    }

    #[divan::bench]
    fn approve_all(bencher: Bencher<'_, '_>) {
        measure(bencher, approving(runtime(Approval::Ask)), CALLS);
    }

    #[divan::bench]
    fn one_grant(bencher: Bencher<'_, '_>) {
        measure_granted(bencher, runtime(Approval::Ask), Scope::Tool);
    }

    #[divan::bench]
    fn thousand_grants(bencher: Bencher<'_, '_>) {
        measure_granted(bencher, runtime(Approval::Ask), Scope::Exact);
    }

    fn runtime(approval: Approval) -> RuntimeBuilder {
        let entry =
            repeating(|turn, call| async move { Ok(call.call("look", arguments(turn)).await.map(drop)?) });
        linked(Project::builder().entry(entry).tool(look(approval)))
    }
}

/// A decision of the gate alone: code puts an effect to it and does nothing.
mod decision {
    use super::*;

    #[divan::bench]
    fn approve_all(bencher: Bencher<'_, '_>) {
        measure(bencher, approving(runtime()), CALLS);
    }

    #[divan::bench]
    fn one_grant(bencher: Bencher<'_, '_>) {
        measure_granted(bencher, runtime(), Scope::Tool);
    }

    #[divan::bench]
    fn thousand_grants(bencher: Bencher<'_, '_>) {
        measure_granted(bencher, runtime(), Scope::Exact);
    }

    fn runtime() -> RuntimeBuilder {
        let entry = repeating(|turn, call| async move {
            Ok(call.approve("push", arguments(turn), "to be shown").await.map(drop)?)
        });
        linked(Project::builder().entry(entry))
    }
}

fn approving(builder: RuntimeBuilder) -> RuntimeBuilder {
    builder.approval_mode(ApprovalMode::ApproveAll)
}

/// A first run collects the grants: one for everything, or one for each of the calls.
fn measure_granted(bencher: Bencher<'_, '_>, builder: RuntimeBuilder, scope: Scope) {
    let grants = if scope == Scope::Exact { CALLS } else { 1 };
    let approver = move |_| std::future::ready(Answer::Session(scope.clone()));
    let runtime = builder.approver(approver).build().expect("a runtime");
    let executor = one_thread();
    executor.block_on(runtime.run("main", "go").into_future()).expect("an answer");
    assert_eq!(runtime.grants().len(), grants);
    measure_runs(bencher, &executor, &runtime, CALLS);
}
