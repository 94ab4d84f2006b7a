//! Runs one case and gathers the evidence for the oracle.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use llm_do_core::{
    AgentSpec, ApprovalRequest, Event, Grant, Input, Payload, RunId, StatelessToolset, Status, ToolError,
};
use llm_do_runtime::{
    EntrySpec, LinkErrors, Project, ProjectBuilder, PromptInput, RetryPolicy, RunBuilder, RunReport, Runtime,
};
use llm_do_testing::SeenEffect;
use serde_json::Value;

use crate::random_calls::approver::RandomApprover;
use crate::random_calls::journal::{Acted, Entry, What, Whose, witness_store};
use crate::random_calls::model::{YOU_ARE, model};
use crate::random_calls::plan::{AgentPlan, Cancel, CasePlan, ENTRY, RunPlan};
use crate::random_calls::tools::{PlannedTool, PlannedToolset};
use crate::random_calls::world::{RunSeat, World, answer_of, give_way};
use llm_do_testing::Chance;

/// Everything that is known about a case after its end.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    pub(crate) plan: CasePlan,
    /// What happened, in order; every entry has the number of its run.
    pub(crate) entries: Vec<Entry>,
    /// What the recorder saw.
    pub(crate) effects: Vec<SeenEffect>,
    /// What argument texts must be read as.
    pub(crate) readings: HashMap<String, Option<Value>>,
    /// How each run was reported, where its handle was kept.
    pub(crate) reports: HashMap<usize, Reported>,
    /// The numbers of the events that a reader of each run saw.
    pub(crate) read: Vec<Vec<u64>>,
    /// The grants that the runtime listed at the end.
    pub(crate) grants: Vec<Grant>,
    /// What was left after the shutdown.
    pub(crate) still_running: Vec<String>,
    pub(crate) still_open: Vec<Arc<ApprovalRequest>>,
}

/// What a run reported.
#[derive(Debug, Clone)]
pub(crate) struct Reported {
    pub(crate) status: Status,
    pub(crate) events: Vec<Arc<Event>>,
    pub(crate) traced: Vec<llm_do_core::Key>,
}

/// Runs a case to its end.
pub(crate) async fn run_case(seed: u64) -> Result<Evidence, LinkErrors> {
    let world = World::new(CasePlan::new(seed));
    let runtime = build(&world)?;
    let seats: Vec<RunSeat> = world.plan.runs().map(|plan| RunSeat::new(plan.number, &world)).collect();
    let mut reports = HashMap::new();
    let mut numbers = HashMap::new();
    for (index, wave) in world.plan.waves.iter().enumerate() {
        let runs = wave.iter().map(|plan| go(&world, &runtime, plan, &seats[plan.number]));
        for (number, id, report) in join_all(runs).await {
            numbers.insert(id, number);
            reports.extend(report.map(|report| (number, report)));
        }
        if index + 1 < world.plan.waves.len() {
            revoke_some(&world, &runtime, index);
        }
    }
    world.end_strays().await;
    let grants = runtime.grants().into_iter().map(|(_, grant)| grant).collect();
    runtime.clone().shutdown().await;
    world.journal.note(Whose::Nobody, What::ShutDown);
    give_way(3).await;
    let (entries, readings) = world.journal.take();
    Ok(Evidence {
        plan: world.plan.clone(),
        entries: numbered(entries, &numbers),
        effects: world.recorder.effects(),
        readings,
        reports,
        read: seats.iter().map(RunSeat::read).collect(),
        grants,
        still_running: runtime.still_running(),
        still_open: runtime.open_requests(),
    })
}

/// Gives every entry the number of its run.
fn numbered(entries: Vec<Entry>, numbers: &HashMap<RunId, usize>) -> Vec<Entry> {
    let number = |run| match run {
        Whose::Id(id) => numbers.get(&id).map_or(Whose::Nobody, |number| Whose::Number(*number)),
        other => other,
    };
    entries.into_iter().map(|entry| Entry { run: number(entry.run), what: entry.what }).collect()
}

fn build(world: &Arc<World>) -> Result<Runtime, LinkErrors> {
    let plan = &world.plan;
    let mut project = Project::builder();
    for tool in &plan.tools {
        project = project.tool(PlannedTool::shared(tool, world, None));
    }
    for toolset in &plan.toolsets {
        project = if toolset.stateless {
            let tools = toolset.tools.iter().map(|tool| PlannedTool::shared(tool, world, None));
            project.toolset(StatelessToolset::new(toolset.name.as_str(), tools))
        } else {
            let name = toolset.name.as_str().into();
            project.toolset(PlannedToolset { plan: toolset.clone(), world: world.clone(), name })
        };
    }
    for agent in &plan.agents {
        project = project.agent(spec(agent));
    }
    let project = with_entry(project, world).build()?;
    let store = witness_store(world.journal.clone(), plan.seed, plan.store_breaks_at);
    let mut runtime = Runtime::builder(project)
        .store(Arc::new(store))
        .agent_calls(plan.policy.clone())
        .limits(plan.limits.clone())
        .grace(Duration::from_millis(5))
        .retry(RetryPolicy { attempts: 2, first_wait: Duration::from_millis(1), ..RetryPolicy::default() })
        .root(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/random_calls"))
        .provided_per_run_named("token");
    if let Some(limit) = plan.approver_limit {
        runtime = runtime.approver_time_limit(limit);
    }
    runtime.build()
}

fn spec(plan: &AgentPlan) -> AgentSpec {
    let mut spec = AgentSpec::new(plan.name.as_str(), format!("{YOU_ARE}{}", plan.name))
        .access(plan.access)
        .limits(plan.limits.clone());
    spec.input = plan.input.schema();
    spec = plan.tools.iter().fold(spec, |spec, name| spec.tool(name.as_str()));
    spec = plan.toolsets.iter().chain(&plan.agents).fold(spec, |spec, name| spec.toolset(name.as_str()));
    spec = plan.rules.iter().fold(spec, |spec, (pattern, approval)| spec.rule(pattern, *approval));
    plan.may_call.iter().fold(spec, |spec, pattern| spec.may_call(pattern))
}

/// Adds the entry, where a run of the case begins with it.
fn with_entry(project: ProjectBuilder, world: &Arc<World>) -> ProjectBuilder {
    if !world.plan.runs().any(|run| run.start == ENTRY) {
        return project;
    }
    let world = world.clone();
    let entry = EntrySpec::new(ENTRY, "Calls whatever there is", move |_: PromptInput, call| {
        let world = world.clone();
        async move {
            let received = Payload::clone(call.input());
            let acted = Acted { received, precondition: None, instance: None, blocking: false, inner: false };
            world.acts(&call, ENTRY, acted);
            let mut chance = Chance::at(world.plan.seed, &["entry", call.path()]);
            for _ in 0..chance.between(1, 5) {
                world.call(&call, &mut chance, false).await;
            }
            Ok::<_, ToolError>(answer_of(ENTRY))
        }
    });
    match entry {
        Ok(entry) => project.entry(entry),
        Err(_) => project,
    }
}

/// Runs one run to its end.
async fn go(
    world: &World,
    runtime: &Runtime,
    plan: &RunPlan,
    seat: &RunSeat,
) -> (usize, RunId, Option<Reported>) {
    let mut run = prepare(runtime, plan, seat).start();
    let id = run.id();
    seat.started(&run);
    let report = match plan.cancel {
        Cancel::Drop(turns) => {
            tokio::select! {
                biased;
                report = &mut run => Some(report),
                () = give_way(turns) => None,
            }
        }
        _ => Some((&mut run).await),
    };
    if report.is_none() {
        world.journal.note(Whose::Number(plan.number), What::Cancelled);
        drop(run);
        // What the handle would have waited for.
        while !world.journal.has_finished(id) && world.plan.store_breaks_at.is_none() {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
    }
    let report = report.map(|result| match result {
        Ok(report) => reported(&report),
        Err(error) => reported(&error.report),
    });
    (plan.number, id, report)
}

fn prepare(runtime: &Runtime, plan: &RunPlan, seat: &RunSeat) -> RunBuilder {
    let mut run = runtime
        .run(plan.start.as_str(), Input::Object(plan.input.clone()))
        .model(model(seat.clone()))
        .approval_mode(plan.mode)
        .limits(plan.limits.clone())
        .provide(seat.clone());
    if plan.has_token {
        run = run.provide_named("token", Value::Bool(true));
    }
    if let Some(temper) = plan.approver {
        run = run.approver(RandomApprover { seat: seat.clone(), temper });
    }
    if let Some(timeout) = plan.timeout {
        run = run.timeout(timeout);
    }
    if !plan.has_subscriber {
        return run;
    }
    let (cancel, seat) = (plan.cancel, seat.clone());
    run.on_event(move |event| {
        if let Some(number) = event.seq {
            seat.reads(number);
        }
        if matches!(cancel, Cancel::AtEvent(number) if event.seq == Some(number)) {
            seat.cancel();
        }
    })
}

fn reported(report: &RunReport) -> Reported {
    let traced = report.trace().iter().map(|call| call.key.clone()).collect();
    Reported { status: report.status, events: report.events(), traced }
}

/// Takes some grants back between two waves. Grants that differ in nothing that a person sees go together.
fn revoke_some(world: &World, runtime: &Runtime, wave: usize) {
    let mut chance = Chance::at(world.plan.seed, &["revoke", &wave.to_string()]);
    let looks = |grant: &Grant| {
        let subject = &grant.subject;
        let toolset = subject.toolset.clone();
        (subject.agent.clone(), toolset, subject.name.clone(), grant.scope.clone(), grant.arguments)
    };
    let listed = runtime.grants();
    let chosen: Vec<_> =
        listed.iter().filter(|_| chance.percent(30)).map(|(_, grant)| looks(grant)).collect();
    for (id, grant) in listed.into_iter().filter(|(_, grant)| chosen.contains(&looks(grant))) {
        if runtime.revoke(id) {
            world.journal.note(Whose::Nobody, What::Revoked(Box::new(grant)));
        }
    }
}
