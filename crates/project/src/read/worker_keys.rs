//! Approval rules as the workers of the Python program wrote them (`tool_rules`).

use std::ops::Range;

use crate::diagnostic::{Diagnostic, Diagnostics, Source};
use crate::document::{Content, Field, Node};

/// The key of the rules.
pub(crate) const TOOL_RULES: &str = "tool_rules";

/// Tools by the names that rules used for them.
const TOOLS: [(&str, &str); 8] = [
    ("sandbox.read", "read_file"),
    ("sandbox.write", "write_file"),
    ("sandbox.list", "list_files"),
    ("sandbox.edit", "edit_file"),
    ("worker.call", "agent_call"),
    ("worker.create", "agent_create"),
    ("worker_call", "agent_call"),
    ("worker_create", "agent_create"),
];

/// A rule for one tool.
pub(crate) struct ToolRule {
    /// The name that the tool has here.
    pub(crate) tool: String,
    /// What the key `approval` says instead.
    pub(crate) level: &'static str,
    pub(crate) place: Range<usize>,
}

impl ToolRule {
    pub(crate) fn is_blocked(&self) -> bool {
        self.level == "blocked"
    }

    /// Returns the rule as a field of `approval`.
    pub(crate) fn field(&self) -> Field {
        let value = Node { place: self.place.clone(), content: Content::Text(self.level.to_owned()) };
        Field { name: self.tool.clone(), place: self.place.clone(), value }
    }
}

/// Reads rules; nothing if they say more than which tools are allowed and which need approval.
pub(crate) fn read_rules(node: &Node) -> Option<Vec<ToolRule>> {
    let Content::Table(fields) = &node.content else { return None };
    fields.iter().map(read_rule).collect()
}

fn read_rule(field: &Field) -> Option<ToolRule> {
    let Content::Table(settings) = &field.value.content else { return None };
    let is_known = |name: &str| matches!(name, "allowed" | "approval_required" | "description");
    let flag = |name: &str, usual: bool| match field.value.field(name).map(|field| &field.value.content) {
        None => Some(usual),
        Some(Content::Bool(value)) => Some(*value),
        Some(_) => None,
    };
    if !settings.iter().all(|setting| is_known(&setting.name)) {
        return None;
    }
    let level = match (flag("allowed", true)?, flag("approval_required", false)?) {
        (false, _) => "blocked",
        (true, true) => "ask",
        (true, false) => "pre_approved",
    };
    let renamed = TOOLS.iter().find(|(old, _)| *old == field.name).map(|(_, new)| *new);
    let tool = renamed.unwrap_or(&field.name).to_owned();
    Some(ToolRule { tool, level, place: field.place.clone() })
}

/// Reads `tool_rules` of a header as `approval`. What cannot be read stays, and is reported as an unknown key.
pub(crate) fn translate(source: &Source, header: &mut Node, out: &mut Diagnostics) {
    let Some(rules) = header.field(TOOL_RULES).and_then(|field| read_rules(&field.value)) else { return };
    if header.field("approval").is_some() {
        return;
    }
    for field in header.fields_mut().into_iter().flatten().filter(|field| field.name == TOOL_RULES) {
        out.push(Diagnostic::read_as(source, &field.place, "`tool_rules`", "`approval`"));
        field.name = "approval".to_owned();
        field.value.content = Content::Table(rules.iter().map(ToolRule::field).collect());
    }
}
