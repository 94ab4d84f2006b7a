//! `llm-do call`: any agent or tool by name, through the same gate as every other call.

use llm_do::approval::{Verdict, VerdictKind};
use llm_do::call::FailureKind;
use llm_do::value::Input;

use crate::arguments::{CallArguments, Output};
use crate::command_error::CommandError;
use crate::controller::{self, Task};
use crate::exit::Exit;
use crate::front_end::FrontEndKind;
use crate::host::{self, Host};
use crate::plan::Plan;
use crate::record::RecordTarget;
use crate::{input, loading, location, output};

/// Calls an agent or tool, or prints what the gate would decide.
pub(crate) fn call(arguments: &CallArguments) -> Result<Exit, CommandError> {
    input::check(&arguments.input)?;
    location::refuse_project_as_name(&arguments.project, &arguments.name)?;
    let location = location::locate(&arguments.project)?
        .with_private(RecordTarget::new(&arguments.options.record).files());
    let project = match arguments.dry_run {
        true => loading::load_for_looking(&location)?,
        false => loading::load(&location, arguments.options.trust.as_deref())?,
    };
    let given = input::for_call(&project, &arguments.name, arguments.agent.as_deref(), &arguments.input)?;
    let kind = match arguments.dry_run {
        true => FrontEndKind::Lines,
        false => FrontEndKind::for_call(&arguments.options)?,
    };
    let mut plan = Plan::new(project, &location, &arguments.options, kind)?;
    if let Some(agent) = plan.project.project.agents().find(|agent| *agent == arguments.name.as_str()) {
        plan.check_model(agent)?;
    }
    if arguments.dry_run {
        // Looking writes nothing.
        plan.record = RecordTarget::Nowhere;
        return dry_run(plan, arguments, given);
    }
    let (name, agent) = (arguments.name.as_str().into(), arguments.agent.as_deref().map(Into::into));
    controller::execute(plan, Task::Call { name, input: given, agent })
}

/// Prints what the gate would decide, and runs nothing.
fn dry_run(plan: Plan, arguments: &CallArguments, input: Input) -> Result<Exit, CommandError> {
    host::block_on(async {
        let (host, _) = Host::start(plan, None)?;
        let mut call = host.prepare(arguments.name.as_str(), input);
        if let Some(agent) = arguments.agent.as_deref() {
            call = call.as_agent(agent);
        }
        let verdict = call.judge().await;
        let text = match arguments.options.output {
            Output::Text => format!("{}: {}", verdict.decision.as_str(), verdict.reason),
            Output::Json | Output::Jsonl => serde_json::to_string(&verdict).unwrap_or_default(),
        };
        output::to_stdout(&text);
        host.runtime.shutdown().await;
        Ok(dry_run_exit(&verdict))
    })
}

/// Returns the exit of a dry run: that of a call that nobody can be asked about, if it would not run.
fn dry_run_exit(verdict: &Verdict) -> Exit {
    match (verdict.decision, verdict.failure) {
        (VerdictKind::Allow, _) => Exit::Done,
        (VerdictKind::Ask, _) => Exit::Denied,
        (_, Some(FailureKind::Unknown | FailureKind::Arguments)) => Exit::Usage,
        (VerdictKind::Block, _) => Exit::Denied,
        (VerdictKind::CannotBeDone, _) => Exit::Failed,
    }
}
