//! `llm-do call`: any agent or tool by name, through the same gate as everybody else.

use llm_do::approval::{Verdict, VerdictKind};
use llm_do::call::FailureKind;

use crate::arguments::{CallArguments, Output};
use crate::exit::Exit;
use crate::host::{self, Host, Plan};
use crate::problem::Problem;
use crate::surface::Surface;
use crate::{input, location, output, tui};

/// Calls an agent or tool, or says what the gate would answer.
pub(crate) fn call(arguments: &CallArguments) -> Result<Exit, Problem> {
    input::check(&arguments.input)?;
    location::refuse_project_as_name(&arguments.project, &arguments.name)?;
    let location = location::locate(&arguments.project)?;
    let project = match arguments.dry_run {
        true => host::load_for_looking(&location)?,
        false => host::load(&location, arguments.options.trust.as_deref())?,
    };
    let given = input::of_call(&project, &arguments.name, arguments.agent.as_deref(), &arguments.input)?;
    let surface = if arguments.dry_run { Surface::Lines } else { Surface::of_call(&arguments.options)? };
    let plan =
        Plan::new(project, &arguments.options, surface)?.shown(&arguments.name.as_str().into(), false, false);
    if let Some(agent) = plan.project.project.agents().find(|agent| *agent == arguments.name.as_str()) {
        plan.check_model(agent)?;
    }
    host::block_on(async {
        let (host, ui) = Host::start(plan)?;
        let mut call = host.prepare(arguments.name.as_str(), given);
        if let Some(agent) = arguments.agent.as_deref() {
            call = call.as_agent(agent);
        }
        if let Some(ui) = ui {
            return Ok(tui::call(host, ui, call).await);
        }
        if !arguments.dry_run {
            return Ok(host.run(call).await);
        }
        let verdict = call.judge().await;
        let text = match arguments.options.output {
            Output::Text => format!("{}: {}", verdict.decision.as_str(), verdict.reason),
            Output::Json | Output::Jsonl => serde_json::to_string(&verdict).unwrap_or_default(),
        };
        output::to_stdout(&text);
        host.runtime.shutdown().await;
        Ok(exit(&verdict))
    })
}

/// The exit of a dry run: that of a call without a person to ask, if it would not run.
fn exit(verdict: &Verdict) -> Exit {
    match (verdict.decision, verdict.failure) {
        (VerdictKind::Allow, _) => Exit::Done,
        (VerdictKind::Ask, _) => Exit::Denied,
        (_, Some(FailureKind::Unknown | FailureKind::Arguments)) => Exit::Usage,
        (VerdictKind::Block, _) => Exit::Denied,
        (VerdictKind::CannotBeDone, _) => Exit::Failed,
    }
}
