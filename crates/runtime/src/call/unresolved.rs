//! Why a name cannot be called, in terms of what its author can change.

use llm_do_core::{CallOrigin, CallableAgent, Failure, FailureKind, Name, unknown_agent};

use crate::project::plan::Plan;
use crate::state::shared::Shared;

/// Explains why a name cannot be called from an agent, or from code outside any.
pub(crate) fn explain(shared: &Shared, plan: &Plan, name: &Name, origin: CallOrigin) -> Failure {
    let others = other_agents(shared, plan, origin);
    let others: Vec<&str> = others.iter().map(Name::as_str).collect();
    if is_outside_allow_list(shared, plan, name) {
        return not_allowed(plan, name, &plan.callable_names(origin, &others));
    }
    // A model that invents a name is helped by the names that it may use, not by what its agent could list.
    let unlisted = if origin == CallOrigin::Model { None } else { unlisted_tool(shared, plan, name) };
    unlisted.unwrap_or_else(|| plan.unknown(name, origin, &others))
}

/// Explains why code cannot call an agent.
pub(crate) fn explain_agent(shared: &Shared, plan: &Plan, name: &Name, agents: &[CallableAgent]) -> Failure {
    if !is_outside_allow_list(shared, plan, name) {
        return unknown_agent(name, agents);
    }
    let names: Vec<&str> = agents.iter().map(|agent| agent.definition.name.as_str()).collect();
    not_allowed(plan, name, &names)
}

/// Agents that the caller may name although its agent does not list them.
fn other_agents(shared: &Shared, plan: &Plan, origin: CallOrigin) -> Vec<Name> {
    let may_name = |name: &Name| origin != CallOrigin::Model || shared.was_created_by(&plan.owner(), name);
    let mut others = shared.agent_names();
    others.retain(|name| may_name(name) && plan.may_call_agent(name) && plan.target(name).is_none());
    others
}

fn is_outside_allow_list(shared: &Shared, plan: &Plan, name: &Name) -> bool {
    !plan.may_call_agent(name) && !plan.has_tool_named(name) && shared.agent_target(name).is_some()
}

fn not_allowed(plan: &Plan, name: &Name, available: &[&str]) -> Failure {
    let owner = plan.owner();
    let message = format!("`{name}` is not allowed for `{owner}`");
    let available = match available {
        [] => String::new(),
        names => format!("; available: {}", names.join(", ")),
    };
    // The name was never resolved and no gate decided about it, so it is not a blocked call.
    Failure::new(FailureKind::Unknown, message)
        .with_hint(format!("add it to `agents` of `{owner}`{available}"))
}

/// A tool that the project has, but not the agent in whose name code calls it.
fn unlisted_tool(shared: &Shared, plan: &Plan, name: &Name) -> Option<Failure> {
    let owner = &plan.spec.as_ref()?.name;
    let root = &shared.project.root;
    if plan.has_tool_named(name) || !root.has_tool_named(name) {
        return None;
    }
    let toolset = root.target(name).and_then(|target| target.definition.toolset.as_ref());
    let how = match toolset {
        Some(toolset) => format!("add its toolset `{toolset}` to `toolsets` of `{owner}`"),
        None => format!("add it to `tools` of `{owner}`"),
    };
    let message = format!("`{name}` exists, but `{owner}` does not list it");
    let hint = format!("{how}; with `manual_only` its model is not offered it");
    Some(Failure::new(FailureKind::Unknown, message).with_hint(hint))
}
