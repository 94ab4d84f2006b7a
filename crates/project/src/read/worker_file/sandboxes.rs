//! Sandboxes of a worker: named directories that it could read or write.

use crate::document::{Node, NodeContent, TableField};
use crate::source::Span;
use crate::suggest::suggest;

/// A span, a message and a hint.
type SandboxProblem = (Span, String, String);

const KNOWN: [&str; 6] = ["root", "mode", "suffixes", "allowed_suffixes", "max_file_bytes", "max_bytes"];

/// Makes the toolset of the one sandbox of a worker; nothing if there is none.
pub(super) fn toolset(found: &TableField) -> Result<Option<Node>, SandboxProblem> {
    // `sandbox: {paths: {..}}` and `sandbox: {root: ..}` are later forms of `sandboxes: {..}`.
    let listed = found.value.field("paths").map_or(&found.value, |paths| &paths.value);
    let NodeContent::Table(sandboxes) = &listed.content else {
        return match listed.content {
            NodeContent::Null => Ok(None),
            _ => Err(refusal(
                listed,
                format!("`{}` must be a mapping", found.name),
                "write `{notes: {root: notes}}`",
            )),
        };
    };
    if listed.field("root").is_some() {
        return settings(listed).map(Some);
    }
    match &sandboxes[..] {
        [] => Ok(None),
        [sandbox] => settings(&sandbox.value).map(Some),
        [_, second, ..] => {
            let message = format!(
                "`{}` has several sandboxes, but an agent can have only one such toolset",
                found.name
            );
            let hint = "name a toolset for each under `toolsets` of the manifest, with its `root`, and list them here";
            Err((second.span.clone(), message, hint.to_owned()))
        }
    }
}

/// A sandbox as settings of the toolset for files.
fn settings(sandbox: &Node) -> Result<Node, SandboxProblem> {
    let NodeContent::Table(fields) = &sandbox.content else {
        return Err(refusal(
            sandbox,
            "a sandbox must be a mapping".to_owned(),
            "write `{root: notes, mode: rw}`",
        ));
    };
    let mut settings = Vec::new();
    let mut set = |name: &str, field: &TableField, content: NodeContent| {
        let value = Node { span: field.value.span.clone(), content };
        settings.push(TableField { name: name.to_owned(), span: field.span.clone(), value });
    };
    for field in fields {
        let content = field.value.content.clone();
        match field.name.as_str() {
            _ if content == NodeContent::Null => {}
            "root" => set("root", field, content),
            "mode" => set("read_only", field, NodeContent::Bool(is_read_only(&field.value)?)),
            "suffixes" | "allowed_suffixes" => set("suffixes", field, content),
            "max_file_bytes" | "max_bytes" => {
                set("max_read_bytes", field, content.clone());
                set("max_write_bytes", field, content);
            }
            name => {
                let hint = suggest(name, KNOWN);
                return Err((field.span.clone(), format!("unknown key `{name}` of a sandbox"), hint));
            }
        }
    }
    // Without a mode a sandbox could only be read.
    if sandbox.field("mode").is_none() {
        let value = Node { span: sandbox.span.clone(), content: NodeContent::Bool(true) };
        settings.push(TableField { name: "read_only".to_owned(), span: sandbox.span.clone(), value });
    }
    let value = Node { span: sandbox.span.clone(), content: NodeContent::Table(settings) };
    let field = TableField { name: "filesystem_project".to_owned(), span: sandbox.span.clone(), value };
    Ok(Node { span: sandbox.span.clone(), content: NodeContent::Table(vec![field]) })
}

fn is_read_only(mode: &Node) -> Result<bool, SandboxProblem> {
    match mode.text() {
        Some("ro") => Ok(true),
        Some("rw") => Ok(false),
        _ => Err(refusal(mode, "the mode of a sandbox must be `ro` or `rw`".to_owned(), "write `mode: rw`")),
    }
}

fn refusal(node: &Node, message: String, hint: &str) -> SandboxProblem {
    (node.span.clone(), message, hint.to_owned())
}
