//! Tools that run at the provider: which are offered, and what they did.
//!
//! They cannot be stopped call by call, so the gate decides before the request that offers them: an agent that lists
//! one pre-approves it, a rule of the agent can ask once per agent call, or block it.

use std::sync::Arc;

use llm_do_core::{
    Approval, CallInfo, CallKind, CallOrigin, CallResult, Effect, EventBody, Failure, FailureKind, Halt, Key,
    Output, Payload, ServerCall, ServerTool, Step, StepKind, Usage,
};
use serde_json::Value;

use crate::state::live::{AgentFrame, LiveCall};
use crate::state::run_state::RunState;
use crate::state::scope::RunScope;

const REASON: &str = "it runs at the provider, which cannot be asked about each use";

/// Decides which tools of the provider an agent is offered; a conversation keeps the decision.
pub(crate) async fn settle(scope: &RunScope, call: &LiveCall, frame: &AgentFrame) -> Result<(), Halt> {
    let listed = frame.plan.spec.as_ref().map(|spec| spec.server_tools.as_slice()).unwrap_or_default();
    if listed.is_empty() || frame.agent_state.server_tools.get().is_some() {
        return Ok(());
    }
    let mut permitted = Vec::with_capacity(listed.len());
    for tool in listed {
        permitted.extend(match frame.plan.rules.strictest(tool.name(), None) {
            Some(Approval::Blocked) => None,
            Some(Approval::Ask) => ask(scope, call, tool).await?,
            Some(Approval::PreApproved) | None => Some(tool.clone()),
        });
    }
    let _ = frame.agent_state.server_tools.set(permitted);
    Ok(())
}

/// Puts the offer of a tool to the gate. Whoever allows it may have changed its settings.
async fn ask(scope: &RunScope, call: &LiveCall, tool: &ServerTool) -> Result<Option<ServerTool>, Halt> {
    let step = Step {
        key: call.info.id.child(format_args!("server/{}", tool.name())),
        call: call.info.id.clone(),
        kind: StepKind::Gate { reason: Some(REASON.to_owned()) },
        name: tool.name().into(),
        payload: Payload::new(serde_json::to_value(tool).unwrap_or_default()),
        effect: Effect::Pure,
    };
    let refused = match scope.perform(step).await?.into_permit() {
        Ok(permit) => match serde_json::from_value::<ServerTool>(permit.arguments.value().clone()) {
            Ok(settled) if settled.name() == tool.name() => return Ok(Some(settled)),
            Ok(_) => "its settings were changed to those of another tool".to_owned(),
            Err(error) => format!("its settings were changed to what cannot be read: {error}"),
        },
        Err(failure) => failure.message,
    };
    scope.run.notice(&call.info, format!("`{}` is not offered: {refused}", tool.name()));
    Ok(None)
}

/// Shows what the provider's tools did for an answer, and counts it.
pub(crate) fn show(run: &RunState, call: &LiveCall, request: &Key, calls: &[ServerCall]) {
    for (index, used) in calls.iter().enumerate() {
        let info = Arc::new(CallInfo {
            run: call.info.run,
            id: request.child(format_args!("server/{index}")),
            parent: Some(call.info.id.clone()),
            depth: call.info.depth,
            path: format!("{} > {}", call.info.path, used.name).into(),
            agent: call.info.agent.clone(),
        });
        let (kind, name) = (CallKind::ServerTool, used.name.clone());
        let input = Payload::new(used.input.clone());
        let started = EventBody::CallStarted {
            kind,
            name: name.clone(),
            input,
            origin: CallOrigin::Model,
            fork: false,
        };
        run.log.note(&info, &info.id, started);
        let (result, usage) = (result_of(used), Usage::default());
        let body = EventBody::CallFinished { kind, name, result, duration_ms: 0, ran_ms: None, usage };
        run.log.note(&info, &info.id, body);
    }
    run.budget.book_tool_calls(call.frame().ceiling, calls.len() as u64);
}

fn result_of(used: &ServerCall) -> CallResult {
    let output = used.output.clone().unwrap_or(Value::Null);
    if used.is_error {
        return CallResult::Error(Failure::new(
            FailureKind::Tool,
            Output::json(output).to_text().to_string(),
        ));
    }
    CallResult::Output(Output::json(output))
}
