//! What a created agent takes over from its creator: strict rules, manual-only marks and access of tools.
//!
//! The creator may hold a tool under an alias that its rules use, and a created agent has no aliases. So the rules
//! are resolved to what a tool is, its toolset and own name, and written into the new agent's file in that form. The
//! runtime compares both agents again (`CallContext::check_agent`); this module only drafts.

use llm_do_core::{Access, AgentSpec, Approval, ApprovalRule, Name};
use llm_do_runtime::{approval_by_rules, pattern_means_tool};

/// A creator, and the tools that its new agent has.
pub(super) struct Inheritance<'a> {
    creator: &'a AgentSpec,
    new: &'a AgentSpec,
    tools: Vec<HeldTool>,
}

/// A tool of the new agent, by its own name.
struct HeldTool {
    toolset: Option<Name>,
    own: Name,
}

impl HeldTool {
    /// The pattern that means this tool and no other.
    fn pattern(&self) -> String {
        match &self.toolset {
            Some(toolset) => format!("{toolset}.{}", self.own),
            None => self.own.to_string(),
        }
    }

    /// Returns the strictest of these rules for the tool under one name.
    fn strictest(&self, rules: &[ApprovalRule], called: &Name) -> Option<Approval> {
        approval_by_rules(rules, called, self.toolset.as_ref(), &self.own)
    }
}

impl<'a> Inheritance<'a> {
    pub(super) fn new(creator: &'a AgentSpec, new: &'a AgentSpec) -> Self {
        let of_toolsets = new.toolsets.iter().filter_map(|choice| choice.own.as_ref()).flat_map(|toolset| {
            let name = toolset.name().clone();
            let held = move |own: Name| HeldTool { toolset: Some(name.clone()), own };
            toolset.definitions().into_iter().map(move |definition| held(definition.name.clone()))
        });
        let single = new.tools.iter().map(|own| HeldTool { toolset: None, own: own.clone() });
        Self { creator, new, tools: of_toolsets.chain(single).collect() }
    }

    /// The rules of the creator that ask or block, as far as they are about anything that the new agent has: as they
    /// are written, and by toolset and own name where the creator means a tool by an alias. What the creator may do
    /// without a question, the new agent asks for.
    pub(super) fn approval(&self, agents: &[Name]) -> Vec<ApprovalRule> {
        let strict = self.creator.approval.iter().filter(|rule| rule.approval != Approval::PreApproved);
        let mut kept: Vec<ApprovalRule> =
            strict.filter(|rule| self.concerns(&rule.pattern, agents)).cloned().collect();
        for tool in &self.tools {
            let held = tool.strictest(&self.creator.approval, self.called(tool));
            let missing = held.filter(|approval| *approval != Approval::PreApproved);
            let missing = missing.filter(|approval| tool.strictest(&kept, &tool.own) < Some(*approval));
            kept.extend(missing.map(|approval| ApprovalRule { pattern: tool.pattern(), approval }));
        }
        kept
    }

    /// The tools that the creator keeps from its model, as far as the new agent has them: it keeps them too.
    pub(super) fn manual_only(&self) -> Vec<String> {
        let written = self.creator.manual_only.iter();
        let mut kept: Vec<String> =
            written.filter(|pattern| is_glob(pattern) || self.has(pattern)).cloned().collect();
        for tool in &self.tools {
            let is_marked = |patterns: &[String], called: &Name| {
                let toolset = tool.toolset.as_ref();
                patterns.iter().any(|pattern| pattern_means_tool(pattern, called, toolset, &tool.own))
            };
            if is_marked(&self.creator.manual_only, self.called(tool)) && !is_marked(&kept, &tool.own) {
                kept.push(tool.pattern());
            }
        }
        kept
    }

    /// The tools for which the creator demands more access than they do themselves.
    pub(super) fn tool_access(&self) -> Vec<(String, Access)> {
        let demanded = |tool: &HeldTool| {
            let change = self.creator.overrides.iter().find(|change| change.tool == tool.own)?;
            Some((tool.own.to_string(), change.access?))
        };
        self.tools.iter().filter_map(demanded).collect()
    }

    /// The name by which the creator's model calls a tool.
    fn called<'t>(&'t self, tool: &'t HeldTool) -> &'t Name {
        let change = self.creator.overrides.iter().find(|change| change.tool == tool.own);
        change.and_then(|change| change.alias.as_ref()).unwrap_or(&tool.own)
    }

    /// Returns whether a rule can mean anything for the new agent. A plain name that it does not have would be
    /// reported as a misspelling.
    fn concerns(&self, pattern: &str, agents: &[Name]) -> bool {
        let is_listed = || self.new.toolsets.iter().any(|choice| *choice.name == *pattern);
        !Name::is_valid(pattern)
            || self.tools.iter().any(|tool| *tool.own == *pattern)
            || is_listed()
            || agents.iter().any(|agent| **agent == *pattern)
    }

    fn has(&self, pattern: &str) -> bool {
        self.tools.iter().any(|tool| *tool.own == *pattern || tool.pattern() == pattern)
    }
}

fn is_glob(pattern: &str) -> bool {
    pattern.contains(['*', '?', '[', '{'])
}
