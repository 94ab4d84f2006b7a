//! Older spellings: read as what they mean now, each with a notice.

use crate::diagnostic::{Diagnostic, Diagnostics, Source};
use crate::document::Node;

/// Older and present names of keys, each below a path.
const MANIFEST: &[(&str, &str, &str)] = &[
    ("", "worker_files", "agent_files"),
    ("entry", "input", "args"),
    ("runtime", "worker_calls_require_approval", "agent_calls_require_approval"),
    ("runtime", "worker_attachments_require_approval", "agent_attachments_require_approval"),
    ("runtime", "worker_approval_overrides", "agent_approval_overrides"),
];

const HEADER: &[(&str, &str, &str)] =
    &[("", "schema_in_ref", "input_model_ref"), ("", "allow_workers", "agents")];

/// Renames older keys of a manifest.
pub(crate) fn rename_in_manifest(source: &Source, node: &mut Node, out: &mut Diagnostics) {
    rename(source, node, MANIFEST, out);
}

/// Renames older keys of an agent's header.
pub(crate) fn rename_in_header(source: &Source, node: &mut Node, out: &mut Diagnostics) {
    rename(source, node, HEADER, out);
}

fn rename(source: &Source, node: &mut Node, names: &[(&str, &str, &str)], out: &mut Diagnostics) {
    for (table, old, new) in names {
        let fields = if table.is_empty() {
            node.fields_mut()
        } else {
            let outer = node.fields_mut();
            outer
                .and_then(|fields| fields.iter_mut().find(|field| field.name == *table))
                .and_then(|field| field.value.fields_mut())
        };
        let mut fields: Vec<_> = fields.into_iter().flatten().collect();
        let has_both = fields.iter().any(|field| field.name == *new);
        for field in fields.iter_mut().filter(|field| field.name == *old) {
            if has_both {
                let message = format!("`{old}` and `{new}` are the same key, written twice");
                out.push(Diagnostic::at(source, &field.place, message).with_hint(format!("keep `{new}`")));
            }
            field.name = (*new).to_owned();
            let message = format!("`{old}` is an older spelling of `{new}`");
            out.push(Diagnostic::at(source, &field.place, message).notice());
        }
    }
}
