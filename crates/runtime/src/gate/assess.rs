//! What a call would do, as its tool or the policy for agents judges it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use llm_do_core::{Approval, Assessment, CallOrigin, Failure, Payload, Subject, Tool};

use crate::call::caller;
use crate::input::attachments::{Seen, digests};
use crate::project::plan::{CallTarget, TargetKind};
use crate::state::live::LiveCall;
use crate::state::run_state::RunState;

/// How long a tool may think about what a call would do.
const LIMIT: Duration = Duration::from_secs(10);

/// When a tool is asked for its own assessment of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskTool {
    /// If it decides about approvals: the call is about to run, and will report its own failure.
    IfItAssesses,
    /// Always, as it may know that the call would fail: the call will not run.
    Always,
}

/// Judges a call without doing any of it.
pub(crate) async fn assess(
    run: &Arc<RunState>,
    call: &Arc<LiveCall>,
    target: &CallTarget,
    arguments: &Payload,
    attached: &[Seen],
    ask_tool: AskTool,
) -> Assessment {
    match &target.kind {
        TargetKind::Agent => assess_agent(run, call, target, attached),
        TargetKind::Entry(_) => defined(target),
        TargetKind::Tool(_) => match caller::tool_of(run, call).await {
            Ok(tool) if ask_tool == AskTool::Always || tool.assesses() => {
                assess_by_tool(run, call, target, arguments, &*tool).await
            }
            Ok(_) => defined(target),
            Err(failure) => unusable(target, arguments, failure),
        },
    }
}

async fn assess_by_tool(
    run: &RunState,
    call: &Arc<LiveCall>,
    target: &CallTarget,
    arguments: &Payload,
    tool: &dyn Tool,
) -> Assessment {
    let context = caller::looking_only(run, call, arguments);
    let judged = AssertUnwindSafe(async { tool.assess(arguments, &context).await }).catch_unwind();
    match tokio::time::timeout(LIMIT, judged).await {
        Ok(Ok(assessment)) => assessment,
        Ok(Err(_panic)) => blocked(target, arguments, "its own judgment of the call panicked"),
        Err(_late) => blocked(target, arguments, "its own judgment of the call took too long"),
    }
}

/// A tool whose toolset could not be opened.
fn unusable(target: &CallTarget, arguments: &Payload, failure: Failure) -> Assessment {
    Assessment { failure: Some(failure.clone()), ..blocked(target, arguments, &failure.message) }
}

/// What the definition says. Few calls are shown to a person, so the description is left to the request.
fn defined(target: &CallTarget) -> Assessment {
    Assessment::new(target.definition.approval, "")
}

fn blocked(target: &CallTarget, arguments: &Payload, reason: &str) -> Assessment {
    let mut assessment = Assessment::new(Approval::Blocked, target.definition.describe(arguments));
    assessment.reason = Some(reason.to_owned());
    assessment
}

/// Calls of agents are free unless the policy says otherwise; what the embedding program starts is its choice.
/// Attachments are shown with their sizes, and only what was shown is sent.
fn assess_agent(run: &RunState, call: &LiveCall, target: &CallTarget, attached: &[Seen]) -> Assessment {
    let asks = (call.origin != CallOrigin::Embedder || run.options.agent.is_some())
        && run.shared.agent_calls.must_ask(&call.name, !attached.is_empty());
    let approval = if asks { Approval::Ask } else { Approval::PreApproved };
    let description = format!("call agent {}", target.definition.name);
    if attached.is_empty() {
        return Assessment::new(approval, description);
    }
    let files: Vec<&str> = attached.iter().map(|seen| seen.description.as_str()).collect();
    let description = format!("{description} with attachments: {}", files.join(", "));
    let secrets = attached.iter().filter_map(|seen| seen.secret.clone());
    Assessment {
        precondition: Some(digests(attached)),
        subjects: secrets.map(Subject::SecretFile).collect(),
        ..Assessment::new(approval, description)
    }
}
