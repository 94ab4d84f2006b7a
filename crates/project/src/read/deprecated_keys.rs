//! Older spellings: read as what they mean now, each with a notice.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{Node, NodeContent};
use crate::read::worker_keys;
use crate::source::SourceFile;

/// Older and present names of keys, each below a path.
const MANIFEST: &[(&str, &str, &str)] = &[
    ("", "worker_files", "agent_files"),
    ("entry", "input", "args"),
    ("runtime", "worker_calls_require_approval", "agent_calls_require_approval"),
    ("runtime", "worker_attachments_require_approval", "agent_attachments_require_approval"),
    ("runtime", "worker_approval_overrides", "agent_approval_overrides"),
];

const HEADER: &[(&str, &str, &str)] = &[
    ("", "schema_in_ref", "input_model_ref"),
    ("", "allow_workers", "agents"),
    ("", "output_schema_ref", "output_schema"),
    (SETTINGS, "stop_sequences", "stop"),
    (SETTINGS, "reasoning_effort", "effort"),
    (SETTINGS, "max_completion_tokens", "max_tokens"),
    (SETTINGS, "max_tokens_to_sample", "max_tokens"),
    (DESCRIPTORS, "max_direct_output_chars", "limit"),
    (DESCRIPTORS, "default_page_size", "page_size"),
    (DESCRIPTORS, "max_input_chars", "input_limit"),
    (DESCRIPTORS, "enable_references", "references"),
];

const DESCRIPTORS: &str = "file_descriptors";

const SETTINGS: &str = "model_settings";

/// Renames older keys of a manifest.
pub(crate) fn rename_in_manifest(source: &SourceFile, node: &mut Node, out: &mut Diagnostics) {
    rename(source, node, MANIFEST, out);
}

/// Renames older keys of an agent's header.
pub(crate) fn rename_in_header(source: &SourceFile, node: &mut Node, out: &mut Diagnostics) {
    worker_keys::translate(source, node, out);
    rename(source, node, HEADER, out);
    read_older_thinking(source, node, out);
}

/// Reads `thinking: {type: enabled, budget_tokens: N}` as what it means now.
fn read_older_thinking(source: &SourceFile, header: &mut Node, out: &mut Diagnostics) {
    let Some(thinking) = field_mut(header, SETTINGS).and_then(|settings| field_mut(settings, "thinking"))
    else {
        return;
    };
    let Some(meaning) = thinking_of(thinking) else { return };
    let new = format!("`thinking: {}`", meaning.to_value());
    out.push(Diagnostic::read_as(source, &thinking.span, "`thinking: {type: ..}`", &new));
    *thinking = meaning;
}

/// What the older mapping means; nothing where it is none.
pub(crate) fn thinking_of(mapping: &Node) -> Option<Node> {
    let kind = mapping.field("type")?.value.to_value();
    let has_others = |allowed: &[&str]| {
        let NodeContent::Table(fields) = &mapping.content else { return true };
        fields.iter().any(|field| !allowed.contains(&field.name.as_str()))
    };
    match (kind.as_str()?, mapping.field("budget_tokens")) {
        ("enabled", Some(budget)) if !has_others(&["type", "budget_tokens"]) => Some(budget.value.clone()),
        ("enabled" | "adaptive", None) if !has_others(&["type"]) => {
            Some(Node { span: mapping.span.clone(), content: NodeContent::Bool(true) })
        }
        ("disabled", _) if !has_others(&["type", "budget_tokens"]) => {
            Some(Node { span: mapping.span.clone(), content: NodeContent::Bool(false) })
        }
        _ => None,
    }
}

fn field_mut<'a>(node: &'a mut Node, name: &str) -> Option<&'a mut Node> {
    let fields = node.fields_mut()?;
    fields.iter_mut().find(|field| field.name == name).map(|field| &mut field.value)
}

fn rename(source: &SourceFile, node: &mut Node, names: &[(&str, &str, &str)], out: &mut Diagnostics) {
    for (table, old, new) in names {
        let fields = if table.is_empty() {
            node.fields_mut()
        } else {
            field_mut(node, table).and_then(Node::fields_mut)
        };
        let mut fields: Vec<_> = fields.into_iter().flatten().collect();
        let has_both = fields.iter().any(|field| field.name == *new);
        for field in fields.iter_mut().filter(|field| field.name == *old) {
            if has_both {
                let message = format!("`{old}` and `{new}` are the same key, written twice");
                out.push(
                    Diagnostic::error_at(source, &field.span, message).with_hint(format!("keep `{new}`")),
                );
            }
            field.name = (*new).to_owned();
            out.push(Diagnostic::read_as(source, &field.span, &format!("`{old}`"), &format!("`{new}`")));
        }
    }
}
