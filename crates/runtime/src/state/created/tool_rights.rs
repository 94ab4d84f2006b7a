//! Compares what two agents may do with the tools that both hold.
//!
//! Tools are compared by what they are, their toolset and own name, since a creator may hold one under an alias that
//! its rules use. Whether an agent may hold a tool at all is decided in [`super`].

use llm_do_core::{AgentSpec, Approval, Name};

use crate::project::plan::{CallTarget, Plan, TargetKind};

/// Lists the tools that a new agent could use more freely than its creator.
pub(super) fn looser_tools(creator: &Plan, own: &AgentSpec, new: &Plan) -> Vec<String> {
    let is_tool = |target: &CallTarget| matches!(target.kind, TargetKind::Tool(_));
    let tools = new.entries().filter(|(_, target)| is_tool(target));
    let pairs = tools.filter_map(|(name, target)| {
        let (held_as, held) = creator.same_tool(name, target)?;
        Some(ToolPair { creator, own, held_as, held, new, name, target })
    });
    pairs.flat_map(|pair| pair.problems()).collect()
}

/// One tool, as its creator holds it and as a new agent would.
struct ToolPair<'a> {
    creator: &'a Plan,
    own: &'a AgentSpec,
    held_as: &'a Name,
    held: &'a CallTarget,
    new: &'a Plan,
    name: &'a Name,
    target: &'a CallTarget,
}

impl ToolPair<'_> {
    fn problems(&self) -> Vec<String> {
        [self.looser_rule(), self.less_access(), self.lost_mark()].into_iter().flatten().collect()
    }

    /// Rules of the creator that pre-approve are not inherited, so only those that ask or block count.
    fn looser_rule(&self) -> Option<String> {
        let strict = self.creator.rules.strictest_for(self.held_as, self.held);
        let strict = strict.filter(|approval| *approval != Approval::PreApproved)?;
        let is_kept = self.new.rules.strictest_for(self.name, self.target) >= Some(strict);
        (!is_kept).then(|| {
            format!("`approval` must say `{}: {}`{}", self.pattern(), strict.as_str(), self.origin())
        })
    }

    fn less_access(&self) -> Option<String> {
        let needed = self.held.definition.access;
        (self.target.definition.access < needed).then(|| {
            format!("`tools` must say that `{}` needs {} access{}", self.name, needed.as_str(), self.origin())
        })
    }

    fn lost_mark(&self) -> Option<String> {
        let is_lost = self.held.definition.manual_only && !self.target.definition.manual_only;
        is_lost.then(|| format!("`manual_only` must name `{}`{}", self.name, self.origin()))
    }

    /// The name by which a rule means this tool and no other.
    fn pattern(&self) -> String {
        match self.target.identity(self.name) {
            (Some(toolset), own) => format!("{toolset}.{own}"),
            (None, own) => own.to_string(),
        }
    }

    fn origin(&self) -> String {
        match self.held.own_name.is_some() {
            true => format!(", as in `{}`, which calls it `{}`", self.own.name, self.held_as),
            false => format!(", as in `{}`", self.own.name),
        }
    }
}
