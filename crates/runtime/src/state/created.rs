//! Agents that are created while the runtime lives.
//!
//! The project stays as it was linked; created agents take precedence over it, by name. A call that runs keeps the plan
//! with which it began. What an agent creates holds no more than it holds itself: the same tools and toolsets
//! with the same settings, no looser rules, no more access, no more agents.

mod tool_rights;

use std::collections::BTreeMap;
use std::sync::Arc;

use llm_do_core::{
    Access, AgentSpec, Approval, ApprovalRule, CallableAgent, Effect, FINAL_ANSWER, Failure, FailureKind,
    Name, ToolsetChoice,
};
use serde_json::Value;

use crate::project::link_error::{LinkError, LinkErrors, NameKind};
use crate::project::plan::{CallTarget, Plan, TargetKind};
use crate::state::shared::Shared;
use crate::sync::Mutex;

/// Agents that agents may create while a runtime lives that sets no limit.
pub const DEFAULT_CREATED_AGENTS: u64 = 64;

/// The agents that were created, by name.
#[derive(Default)]
pub(crate) struct CreatedAgents(Mutex<BTreeMap<Name, Created>>);

#[derive(Clone)]
struct Created {
    plan: Arc<Plan>,
    target: CallTarget,
    /// The agent that created it; none: code outside any agent.
    creator: Option<Name>,
}

/// The agent, or the code outside any, that creates another one.
pub(crate) struct Creator<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) access: Access,
}

impl Shared {
    /// Returns the plan of an agent.
    pub(crate) fn agent(&self, name: &str) -> Option<Arc<Plan>> {
        let created = self.created.0.lock().get(name).map(|created| created.plan.clone());
        created.or_else(|| self.project.agents.get(name).cloned())
    }

    /// Returns the plan of the agent that a call was judged for; none where another one came in its place.
    pub(crate) fn judged_agent(&self, name: &str, judged: &CallTarget) -> Option<Arc<Plan>> {
        match self.created.0.lock().get(name) {
            Some(created) => (created.target.digest == judged.digest).then(|| created.plan.clone()),
            None => self.project.agents.get(name).cloned(),
        }
    }

    /// Resolves the name of an agent.
    pub(crate) fn agent_target(&self, name: &str) -> Option<CallTarget> {
        let frozen =
            || self.project.root.target(name).filter(|target| matches!(target.kind, TargetKind::Agent));
        self.created_target(name).or_else(|| frozen().cloned())
    }

    /// Returns the created agent of a name.
    pub(crate) fn created_target(&self, name: &str) -> Option<CallTarget> {
        self.created.0.lock().get(name).map(|created| created.target.clone())
    }

    /// Returns the names of all agents, in order.
    pub(crate) fn agent_names(&self) -> Vec<Name> {
        let created = self.created.0.lock();
        let mut names: Vec<Name> = self.project.agents.keys().chain(created.keys()).cloned().collect();
        names.sort();
        names.dedup();
        names
    }

    /// Returns whether an agent was created in this runtime by another one.
    pub(crate) fn was_created_by(&self, creator: &Name, name: &str) -> bool {
        self.created.0.lock().get(name).is_some_and(|created| created.creator.as_ref() == Some(creator))
    }

    /// Describes the agents whose names are permitted.
    pub(crate) fn callable_agents(&self, permitted: impl Fn(&str) -> bool) -> Vec<CallableAgent> {
        let names = self.agent_names().into_iter().filter(|name| permitted(name));
        let describe = |name: Name| {
            let (plan, target) = (self.agent(&name)?, self.agent_target(&name)?);
            Some(CallableAgent {
                definition: target.definition,
                has_own_input: target.has_own_input,
                generated: plan.spec.as_ref().is_some_and(|spec| spec.generated),
            })
        };
        names.filter_map(describe).collect()
    }

    /// Says why a creator may not add an agent, if that is so.
    pub(crate) fn check_agent(&self, spec: &AgentSpec, creator: &Creator<'_>) -> Result<(), Failure> {
        self.check_count(spec)?;
        self.check_free(spec).map_err(refused)?;
        let plan = self.link(spec).map_err(refused)?;
        let problems =
            creator.excess(spec, &plan, |name| self.agent_target(name).is_some() || spec.name == *name);
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Failure::new(FailureKind::Blocked, problems.join("; "))
                .with_hint("an agent can only be given what its creator holds itself")),
        }
    }

    /// Adds an agent, or puts it in the place of a generated one.
    pub(crate) fn add_agent(&self, spec: AgentSpec, creator: Option<Name>) -> Result<(), LinkErrors> {
        self.check_free(&spec)?;
        let plan = Arc::new(self.link(&spec)?);
        let target = CallTarget::agent(&spec);
        self.created.0.lock().insert(spec.name, Created { plan, target, creator });
        Ok(())
    }

    /// Lets an agent call what it had created before this process. The project has loaded the new agent again, or the
    /// embedding program has added it; a name that now belongs to an agent of a person is not its creator's.
    pub(crate) fn restore_creator(&self, name: &Name, creator: &Name) {
        let (Some(plan), Some(target)) = (self.agent(name), self.agent_target(name)) else { return };
        if !plan.spec.as_ref().is_some_and(|spec| spec.generated) {
            return;
        }
        let mut created = self.created.0.lock();
        let created = created.entry(name.clone()).or_insert(Created { plan, target, creator: None });
        created.creator.get_or_insert_with(|| creator.clone());
    }

    /// Agents create a limited number of agents; replacing one of them is always possible.
    fn check_count(&self, spec: &AgentSpec) -> Result<(), Failure> {
        let limit = self.limits.created_agents.unwrap_or(DEFAULT_CREATED_AGENTS);
        let created = self.created.0.lock();
        let count = created.values().filter(|created| created.creator.is_some()).count() as u64;
        if count < limit || created.contains_key(&spec.name) {
            return Ok(());
        }
        let message = format!("the limit of {limit} created agents is reached");
        Err(Failure::new(FailureKind::Limit, message)
            .with_hint("use an agent that exists; `runtime.max_created_agents` sets the limit"))
    }

    /// A person's agent is never replaced, and no name means two things.
    fn check_free(&self, spec: &AgentSpec) -> Result<(), LinkErrors> {
        let plans = self.project.agents.values().chain([&self.project.root]);
        if spec.name == FINAL_ANSWER || plans.into_iter().any(|plan| plan.has_tool_named(&spec.name)) {
            let name = spec.name.clone();
            let (first, second) = (NameKind::Tool, NameKind::Agent);
            return Err(LinkErrors(vec![LinkError::Duplicate { name, first, second }]));
        }
        let existing = self.agent(&spec.name);
        let is_written =
            existing.and_then(|plan| plan.spec.clone()).is_some_and(|existing| !existing.generated);
        match is_written {
            true => Err(LinkErrors(vec![LinkError::Taken { name: spec.name.clone() }])),
            false => Ok(()),
        }
    }

    fn link(&self, spec: &AgentSpec) -> Result<Plan, LinkErrors> {
        let created = self.created.0.lock().clone();
        let is_agent = |name: &Name| created.contains_key(name) || spec.name == *name;
        let spec = self.project.with_sourced_toolsets(spec, is_agent)?;
        self.project.link_more(&spec, created.iter().map(|(name, created)| (name, created.target.clone())))
    }
}

/// What is wrong with an agent, for the code that wants to add it.
pub(crate) fn refused(errors: LinkErrors) -> Failure {
    Failure::new(FailureKind::Arguments, errors.to_string())
}

impl Creator<'_> {
    /// Lists what an agent would hold beyond its creator. Code outside any agent holds everything.
    fn excess(&self, new: &AgentSpec, plan: &Plan, is_agent: impl Fn(&str) -> bool) -> Vec<String> {
        let Some(own) = &self.plan.spec else { return Vec::new() };
        let mut problems = Vec::new();
        if !self.plan.may_call_agent(&new.name) {
            problems.push(format!("`agents` of `{}` does not permit to call `{}`", own.name, new.name));
        }
        if new.access > self.access {
            let (wanted, held) = (new.access.as_str(), self.access.as_str());
            problems.push(format!("`access: {wanted}` is more than the {held} access of `{}`", own.name));
        }
        for choice in &new.toolsets {
            if is_agent(&choice.name) {
                if choice.name != new.name && !self.holds_agent(own, &choice.name) {
                    problems.push(format!("`{}` may not call the agent `{}` freely", own.name, choice.name));
                }
            } else if !own.toolsets.iter().any(|held| is_same(held, choice)) {
                problems.push(not_held(own, choice));
            }
        }
        let tools = new.tools.iter().filter(|tool| !own.tools.contains(tool));
        problems.extend(tools.map(|tool| format!("`{}` does not hold the tool `{tool}`", own.name)));
        let server_tools = new.server_tools.iter().filter(|tool| !own.server_tools.contains(tool));
        problems.extend(server_tools.map(|tool| {
            format!("`{}` does not hold the server-side tool `{}` as it is asked for", own.name, tool.name())
        }));
        if new.attachment_policy.within(&own.attachment_policy) != new.attachment_policy {
            problems.push(format!("`attachment_policy` takes more than that of `{}`", own.name));
        }
        let is_server_tool = |name: &str| new.server_tools.iter().any(|tool| tool.name() == name);
        problems.extend(looser_rules(own, new, |name| {
            plan.target(name).is_some() || is_agent(name) || is_server_tool(name)
        }));
        problems.extend(tool_rights::looser_tools(self.plan, own, plan));
        problems.extend(self.more_agents(own, new));
        problems
    }

    /// An agent holds another one that it lists, and those that it can call through a tool without a question.
    fn holds_agent(&self, own: &AgentSpec, name: &Name) -> bool {
        let is_listed = own.toolsets.iter().any(|choice| choice.name == *name);
        let calls_freely = |(tool, target): (&Name, &CallTarget)| {
            let rule = self.plan.rules.strictest_for(tool, target);
            target.definition.effect == Effect::Calls
                && !target.definition.manual_only
                && rule.unwrap_or(target.definition.approval) == Approval::PreApproved
        };
        let is_tool = |(_, target): &(&Name, &CallTarget)| matches!(target.kind, TargetKind::Tool(_));
        let by_tool = || self.plan.entries().filter(is_tool).any(calls_freely);
        self.plan.may_call_agent(name) && (is_listed || by_tool())
    }

    /// Who may call some agents only cannot create one that may call others.
    fn more_agents(&self, own: &AgentSpec, new: &AgentSpec) -> Option<String> {
        if own.agents.is_empty() {
            return None;
        }
        let is_held = |pattern: &String| {
            own.agents.contains(pattern) || (Name::is_valid(pattern) && self.plan.may_call_agent(pattern))
        };
        let held = !new.agents.is_empty() && new.agents.iter().all(is_held);
        let permitted = own.agents.join(", ");
        (!held).then(|| format!("`agents` must name no others than those of `{}`: {permitted}", own.name))
    }
}

fn is_same(held: &ToolsetChoice, wanted: &ToolsetChoice) -> bool {
    let settings = |choice: &ToolsetChoice| match &choice.settings {
        Value::Object(map) if map.is_empty() => Value::Null,
        settings => settings.clone(),
    };
    held.name == wanted.name && settings(held) == settings(wanted)
}

fn not_held(own: &AgentSpec, choice: &ToolsetChoice) -> String {
    let held = own.toolsets.iter().any(|held| held.name == choice.name);
    let how = if held { " with these settings" } else { "" };
    format!("`{}` does not hold the toolset `{}`{how}", own.name, choice.name)
}

/// A created agent pre-approves nothing, and keeps the rules of its creator that ask or block, as far as they
/// are about anything that it has.
fn looser_rules(own: &AgentSpec, new: &AgentSpec, can_name: impl Fn(&str) -> bool) -> Vec<String> {
    let loose = new.approval.iter().filter(|rule| rule.approval == Approval::PreApproved);
    let loose = loose.map(|rule| format!("`approval` may not pre-approve `{}`", rule.pattern));
    let concerns = |rule: &&ApprovalRule| !Name::is_valid(&rule.pattern) || can_name(&rule.pattern);
    let strict = own.approval.iter().filter(|rule| rule.approval != Approval::PreApproved).filter(concerns);
    let lost = strict.filter(|rule| {
        !new.approval.iter().any(|kept| kept.pattern == rule.pattern && kept.approval >= rule.approval)
    });
    let lost =
        lost.map(|rule| format!("`approval` must keep the rule of `{}` for `{}`", own.name, rule.pattern));
    loose.chain(lost).collect()
}
