//! What can be said about Python files without running them.
//!
//! This version runs no Python: a project that needs it is refused, after everything else was checked.

use std::path::Path;

use crate::check::{meant, several};
use crate::diagnostic::{Diagnostic, Diagnostics, shown_path};
use crate::document::place_of;
use crate::link::Agent;
use crate::listing::Listing;
use crate::load::{ManifestFile, read_source};

/// The words of everything that waits for Python.
const UNSUPPORTED: &str = "this version runs no Python";

/// Refuses listed Python files, at their place.
pub(crate) fn check_files(file: &ManifestFile, out: &mut Diagnostics) {
    let listed = &file.manifest.python_files;
    if !listed.is_empty() && file.manifest.entry.function.is_none() {
        let message = format!("`python_files` lists {}, and {UNSUPPORTED}", several(listed));
        let hint = "leave the files out, or replace their tools by built-in toolsets";
        let place = place_of(&file.node, "python_files");
        out.push(Diagnostic::at(&file.source, &place, message).with_hint(hint));
    }
}

/// Checks an entry function: its form, its file, its name.
pub(crate) fn check_entry(file: &ManifestFile, function: &str, root: &Path, out: &mut Diagnostics) {
    let place = file.node.field("entry").map_or(0..0, |entry| place_of(&entry.value, "function"));
    let at = |message: String| Diagnostic::at(&file.source, &place, message);
    let Some((path, name)) = function.rsplit_once(':').filter(|(_, name)| !name.is_empty()) else {
        let message = format!("`entry.function` is `{function}`, expected `path.py:function`");
        out.push(at(message));
        return;
    };
    if !file.manifest.python_files.iter().any(|listed| listed == path) {
        out.push(at(format!("`entry.function` names `{path}`, which `python_files` does not list")));
        return;
    }
    let file = match Listing::new(root).named(path) {
        Ok(file) => file,
        Err(message) => return out.push(at(format!("`entry.function`: {message}"))),
    };
    let Some(source) = read_source(&file, out) else { return };
    let defined = top_level_names(&source.text);
    out.push(match defined.contains(&name) {
        true => at(format!("the entry `{name}` of `{path}` cannot be called: {UNSUPPORTED}")),
        false => at(format!("`entry.function` names `{name}`, which `{path}` does not define"))
            .with_hint(meant(name, defined)),
    });
}

/// Checks a reference to a class: `path.py:Class`, relative to the agent's file.
pub(crate) fn check_reference(agent: &Agent, key: &str, reference: &str, root: &Path, out: &mut Diagnostics) {
    if out.is_full() {
        return;
    }
    let name = &agent.header.name;
    let place = place_of(&agent.file.header, key);
    let at = |message: String| Diagnostic::at(&agent.file.source, &place, message);
    let Some((path, class)) =
        reference.rsplit_once(':').filter(|(path, class)| path.ends_with(".py") && is_name(class))
    else {
        let message = format!("agent `{name}`: `{key}` is `{reference}`, which names no class of a file");
        out.push(at(message).with_hint("write `schemas.py:Class`, relative to the agent file"));
        return;
    };
    let folder = agent.file.source.path.parent().unwrap_or(Path::new(""));
    let below = folder.strip_prefix(shown_path(root)).unwrap_or(folder);
    let file = match Listing::new(root).named(below.join(path)) {
        Ok(file) => file,
        Err(message) => return out.push(at(format!("agent `{name}`: `{key}`: {message}"))),
    };
    let Some(source) = read_source(&file, out) else { return };
    let defined = top_level_names(&source.text);
    out.push(match defined.contains(&class) {
        true => at(format!("agent `{name}`: `{key}` names a Python class, and {UNSUPPORTED}"))
            .with_hint("write the schema as JSON Schema under `input_schema` or `output_schema`"),
        false => at(format!("agent `{name}`: `{key}` names `{class}`, which `{path}` does not define"))
            .with_hint(meant(class, defined)),
    });
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|sign| sign.is_alphanumeric() || sign == '_')
        && !text.starts_with(|sign: char| sign.is_ascii_digit())
}

/// The names that a module defines or imports at its top level, as far as its lines show them.
fn top_level_names(text: &str) -> Vec<&str> {
    text.lines().flat_map(names_of_line).collect()
}

fn names_of_line(line: &str) -> Vec<&str> {
    let first_name = |rest: &'_ str| -> usize {
        rest.find(|sign: char| !(sign.is_alphanumeric() || sign == '_')).unwrap_or(rest.len())
    };
    let after = ["def ", "async def ", "class "].iter().find_map(|word| line.strip_prefix(word));
    if let Some(rest) = after {
        return vec![&rest[..first_name(rest)]];
    }
    if let Some((_, names)) = line.strip_prefix("from ").and_then(|rest| rest.split_once(" import ")) {
        return names.split(',').filter_map(|name| name.split_whitespace().last()).collect();
    }
    let name = &line[..first_name(line)];
    let is_assigned = line[name.len()..].trim_start().starts_with([':', '=']);
    if is_assigned && is_name(name) { vec![name] } else { Vec::new() }
}

/// Says where an interpreter is set without need.
pub(crate) fn notice_interpreter(file: &ManifestFile, out: &mut Diagnostics) {
    if file.manifest.python.is_some() {
        out.push(Diagnostic::without_effect(&file.source, &place_of(&file.node, "python"), "python"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_at_the_top_level_are_found_without_running_anything() {
        let module = "import os\nfrom a import b as c, d\nasync def run(x):\n    def inner(): pass\n\
            class Input(BaseModel):\n    y = 1\nTOOLS = {}\nz: int = 3\nprint(w)\nif x == 1: pass\n";
        assert_eq!(top_level_names(module), ["c", "d", "run", "Input", "TOOLS", "z"]);
    }
}
