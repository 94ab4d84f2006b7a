//! Approval rules as the workers of the Python program wrote them (`tool_rules`).

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{Node, NodeContent, TableField};
use crate::source::{SourceFile, Span};

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
    pub(crate) span: Span,
}

impl ToolRule {
    pub(crate) fn is_blocked(&self) -> bool {
        self.level == "blocked"
    }

    /// Returns the rule as a field of `approval`.
    pub(crate) fn field(&self) -> TableField {
        let value = Node { span: self.span.clone(), content: NodeContent::Text(self.level.to_owned()) };
        TableField { name: self.tool.clone(), span: self.span.clone(), value }
    }
}

/// Reads rules; nothing if they say more than which tools are allowed and which need approval.
pub(crate) fn read_rules(node: &Node) -> Option<Vec<ToolRule>> {
    let NodeContent::Table(fields) = &node.content else { return None };
    fields.iter().map(read_rule).collect()
}

fn read_rule(field: &TableField) -> Option<ToolRule> {
    let NodeContent::Table(settings) = &field.value.content else { return None };
    let is_known = |name: &str| matches!(name, "allowed" | "approval_required" | "description");
    let flag = |name: &str, usual: bool| match field.value.field(name).map(|field| &field.value.content) {
        None => Some(usual),
        Some(NodeContent::Bool(value)) => Some(*value),
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
    Some(ToolRule { tool, level, span: field.span.clone() })
}

/// Reads `tool_rules` of a header as `approval`. What cannot be read stays, and is reported as an unknown key.
pub(crate) fn translate(source: &SourceFile, header: &mut Node, out: &mut Diagnostics) {
    let Some(rules) = header.field(TOOL_RULES).and_then(|field| read_rules(&field.value)) else { return };
    if header.field("approval").is_some() {
        return;
    }
    for field in header.fields_mut().into_iter().flatten().filter(|field| field.name == TOOL_RULES) {
        out.push(Diagnostic::read_as(source, &field.span, "`tool_rules`", "`approval`"));
        field.name = "approval".to_owned();
        field.value.content = NodeContent::Table(rules.iter().map(ToolRule::field).collect());
    }
}
