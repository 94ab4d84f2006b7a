//! Outlines: what the agents of a project can name and behind which approval, before any run.

use std::sync::Arc;

use llm_do_core::{AgentSpec, Approval, CallKind, Name, ServerTool, ToolDefinition};

use crate::project::Project;
use crate::project::plan::{CallTarget, Plan, TargetKind};

/// What one agent, or code outside any, can reach in one call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outline {
    /// The agent; none for code outside any.
    pub agent: Option<Arc<AgentSpec>>,
    /// What it lists, in the order in which a model is offered it.
    pub callables: Vec<OutlinedCallable>,
    /// The tools that its provider runs, and the approval that the agent's rules come to.
    pub server_tools: Vec<(ServerTool, Approval)>,
    /// The agents that the code of its tools may call too.
    pub agents_by_code: Vec<Name>,
}

/// Something that can be called.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OutlinedCallable {
    /// The name by which it is called.
    pub name: Name,
    /// What it is.
    pub kind: CallKind,
    /// Its definition.
    pub definition: Arc<ToolDefinition>,
    /// The approval that its definition and the agent's rules come to; the tool may judge single calls otherwise.
    pub approval: Approval,
    /// Whether a rule of the agent decided that.
    pub by_rule: bool,
}

impl Project {
    /// Outlines every agent, in the order of their names.
    pub fn outline(&self) -> Vec<Outline> {
        self.linked().agents.values().map(|plan| self.outline_of(plan)).collect()
    }

    /// Outlines what code outside any agent can call.
    pub fn root_outline(&self) -> Outline {
        self.outline_of(&self.linked().root)
    }

    fn outline_of(&self, plan: &Plan) -> Outline {
        let may_name = |(name, target): &(&Name, &CallTarget)| {
            !matches!(target.kind, TargetKind::Agent) || plan.may_call_agent(name)
        };
        let is_implicit = |(_, target): &(&Name, &CallTarget)| {
            let choices = plan.spec.iter().flat_map(|spec| &spec.toolsets);
            let mut own =
                choices.filter(|choice| target.definition.toolset.as_ref() == Some(&choice.name)).peekable();
            own.peek().is_some() && own.all(|choice| choice.implicit)
        };
        let listed = plan.entries().filter(|entry| !is_implicit(entry));
        let callables = listed.filter(may_name).map(|(name, target)| outlined(plan, name, target)).collect();
        let server_tools = plan.spec.iter().flat_map(|spec| &spec.server_tools);
        // Listing a tool of the provider pre-approves it; a rule can ask or block.
        let server_tools = server_tools
            .map(|tool| {
                let rule = plan.rules.strictest(tool.name(), None);
                (tool.clone(), rule.unwrap_or(Approval::PreApproved))
            })
            .collect();
        let agents = self.linked().agents.keys();
        let agents_by_code = agents.filter(|name| plan.may_call_agent(name)).cloned().collect();
        Outline { agent: plan.spec.clone(), callables, agents_by_code, server_tools }
    }
}

fn outlined(plan: &Plan, name: &Name, target: &CallTarget) -> OutlinedCallable {
    let definition = target.definition.clone();
    let rule = plan.rules.strictest_for(name, target);
    let blocked = [Some(definition.approval), rule].contains(&Some(Approval::Blocked));
    let approval = if blocked { Approval::Blocked } else { rule.unwrap_or(definition.approval) };
    let kind = match target.kind {
        TargetKind::Agent => CallKind::Agent,
        TargetKind::Tool(_) => CallKind::Tool,
        TargetKind::Entry(_) => CallKind::Entry,
    };
    OutlinedCallable { name: name.clone(), kind, definition, approval, by_rule: rule.is_some() }
}
