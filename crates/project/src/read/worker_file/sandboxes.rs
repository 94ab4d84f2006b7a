//! Sandboxes of a worker: named directories that it could read or write.

use std::ops::Range;

use crate::document::{Content, Field, Node};
use crate::suggest::suggest;

/// A place, a message and a hint.
type Refusal = (Range<usize>, String, String);

const KNOWN: [&str; 6] = ["root", "mode", "suffixes", "allowed_suffixes", "max_file_bytes", "max_bytes"];

/// Makes the toolset of the one sandbox of a worker; nothing if there is none.
pub(super) fn toolset(found: &Field) -> Result<Option<Node>, Refusal> {
    // `sandbox: {paths: {..}}` and `sandbox: {root: ..}` are later forms of `sandboxes: {..}`.
    let listed = found.value.field("paths").map_or(&found.value, |paths| &paths.value);
    let Content::Table(sandboxes) = &listed.content else {
        return match listed.content {
            Content::Null => Ok(None),
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
            let message =
                format!("`{}` has several sandboxes, and an agent has one such toolset", found.name);
            let hint = "name a toolset for each under `toolsets` of the manifest, with its `root`, and list them here";
            Err((second.place.clone(), message, hint.to_owned()))
        }
    }
}

/// A sandbox as settings of the toolset for files.
fn settings(sandbox: &Node) -> Result<Node, Refusal> {
    let Content::Table(fields) = &sandbox.content else {
        return Err(refusal(
            sandbox,
            "a sandbox must be a mapping".to_owned(),
            "write `{root: notes, mode: rw}`",
        ));
    };
    let mut settings = Vec::new();
    let mut set = |name: &str, field: &Field, content: Content| {
        let value = Node { place: field.value.place.clone(), content };
        settings.push(Field { name: name.to_owned(), place: field.place.clone(), value });
    };
    for field in fields {
        let content = field.value.content.clone();
        match field.name.as_str() {
            _ if content == Content::Null => {}
            "root" => set("root", field, content),
            "mode" => set("read_only", field, Content::Bool(is_read_only(&field.value)?)),
            "suffixes" | "allowed_suffixes" => set("suffixes", field, content),
            "max_file_bytes" | "max_bytes" => {
                set("max_read_bytes", field, content.clone());
                set("max_write_bytes", field, content);
            }
            name => {
                let hint = suggest(name, KNOWN);
                return Err((field.place.clone(), format!("unknown key `{name}` of a sandbox"), hint));
            }
        }
    }
    // Without a mode a sandbox could only be read.
    if sandbox.field("mode").is_none() {
        let value = Node { place: sandbox.place.clone(), content: Content::Bool(true) };
        settings.push(Field { name: "read_only".to_owned(), place: sandbox.place.clone(), value });
    }
    let value = Node { place: sandbox.place.clone(), content: Content::Table(settings) };
    let field = Field { name: "filesystem_project".to_owned(), place: sandbox.place.clone(), value };
    Ok(Node { place: sandbox.place.clone(), content: Content::Table(vec![field]) })
}

fn is_read_only(mode: &Node) -> Result<bool, Refusal> {
    match mode.text() {
        Some("ro") => Ok(true),
        Some("rw") => Ok(false),
        _ => Err(refusal(mode, "the mode of a sandbox is `ro` or `rw`".to_owned(), "write `mode: rw`")),
    }
}

fn refusal(node: &Node, message: String, hint: &str) -> Refusal {
    (node.place.clone(), message, hint.to_owned())
}
