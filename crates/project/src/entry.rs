//! Finds what a run of the project starts with.

use std::path::Path;

use llm_do_core::Name;

use crate::check::{meant, several};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::place_of;
use crate::link::Agent;
use crate::load::Files;
use crate::load::ManifestFile;
use crate::python::{self, KnownCode};

/// What a run starts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// An agent.
    Agent(Name),
    /// A function that code defines.
    Function,
}

impl From<&Agent> for Entry {
    fn from(agent: &Agent) -> Self {
        Self::Agent(agent.header.name.as_str().into())
    }
}

/// The entry: what the manifest names, else the one agent that says so, else the one function that code defines,
/// else `main`, else the only agent.
pub(crate) fn find_entry(
    files: &Files,
    agents: &[Agent],
    unread: &[String],
    code: KnownCode<'_>,
    out: &mut Diagnostics,
) -> Option<Entry> {
    let root = &files.root;
    let marked: Vec<&Agent> =
        agents.iter().filter(|agent| agent.header.entry && agent.may_be_entry()).collect();
    if let [_, _, ..] = &marked[..] {
        let names: Vec<String> = marked.iter().map(|agent| format!("`{}`", agent.header.name)).collect();
        for agent in &marked {
            if out.is_full() {
                break;
            }
            let message = format!("several agents say `entry: true`: {}", several(&names));
            let place = place_of(&agent.file.header, "entry");
            out.push(
                Diagnostic::at(&agent.file.source, &place, message).with_hint("leave it with one of them"),
            );
        }
        return None;
    }
    match (&files.manifest, &marked[..]) {
        (Some(file), _) => named_entry(file, files, &marked, agents, unread, code, out),
        (None, [agent]) => Some(Entry::from(*agent)),
        (None, _) if !unread.is_empty() => None,
        (None, _) => sole_entry(agents, root, out),
    }
}

fn named_entry(
    file: &ManifestFile,
    files: &Files,
    marked: &[&Agent],
    agents: &[Agent],
    unread: &[String],
    code: KnownCode<'_>,
    out: &mut Diagnostics,
) -> Option<Entry> {
    let entry = &file.manifest.entry;
    let key = if entry.agent.is_some() { "agent" } else { "function" };
    let place = file.node.field("entry").map_or(0..0, |entry| place_of(&entry.value, key));
    match (entry.agent.as_deref(), entry.function.as_deref(), marked) {
        (Some(_), Some(_), _) => {
            let message = "`entry` names both an `agent` and a `function`";
            out.push(Diagnostic::at(&file.source, &place, message).with_hint("name one of them"));
            None
        }
        (Some(name), None, [other]) if other.header.name != name => {
            let message = format!(
                "`entry` names the agent `{name}`, and the agent `{}` says `entry: true`",
                other.header.name
            );
            out.push(Diagnostic::at(&file.source, &place, message).with_hint("keep one of them"));
            None
        }
        (None, Some(function), [other]) => {
            let message = format!(
                "`entry` names the function `{function}`, and the agent `{}` says `entry: true`",
                other.header.name
            );
            out.push(Diagnostic::at(&file.source, &place, message).with_hint("keep one of them"));
            None
        }
        (Some(name), None, _) if agents.iter().any(|agent| agent.header.name == name) => {
            Some(Entry::Agent(name.into()))
        }
        (Some(name), None, _) if unread.iter().any(|other| other == name) => None,
        (Some(name), None, _) if code.may_define() || code.agents().any(|other| other == name) => {
            Some(Entry::Agent(name.into()))
        }
        (Some(name), None, _) => {
            let known = agents.iter().map(|agent| agent.header.name.as_str());
            let known = known.chain(code.agents().map(Name::as_str));
            let message = format!("`entry` names the agent `{name}`, which does not exist");
            let hint = match agents {
                [] => "list the files of agents under `agent_files`".to_owned(),
                _ => meant(name, known),
            };
            out.push(Diagnostic::at(&file.source, &place, message).with_hint(hint));
            None
        }
        (None, Some(_), _) => python::entry_function(file, files, out).map(|_| Entry::Function),
        (None, None, [agent]) => match code.defined().and_then(|code| code.entries.first()) {
            Some(entry) => {
                let message = format!(
                    "the entry `{}` is defined here, and the agent `{}` says `entry: true`",
                    entry.value.name(),
                    agent.header.name
                );
                out.push(python::at(&entry.place, message).with_hint("keep one of them"));
                None
            }
            None => Some(Entry::from(*agent)),
        },
        // A manifest that only the command line wrote.
        (None, None, _) if file.source.text.is_empty() => sole_entry(agents, &files.root, out),
        (None, None, _) if code.may_define() => Some(Entry::Function),
        (None, None, _) if code.defined().is_some_and(|code| !code.entries.is_empty()) => {
            Some(Entry::Function)
        }
        (None, None, _) => {
            let message = "`entry` names neither an `agent` nor a `function`";
            out.push(
                Diagnostic::at(&file.source, &place, message)
                    .with_hint("write `\"entry\": {\"agent\": \"main\"}`"),
            );
            None
        }
    }
}

/// No run starts with an agent that was created, or that another one names, because it happens to be there.
fn sole_entry(agents: &[Agent], root: &Path, out: &mut Diagnostics) -> Option<Entry> {
    let agents: Vec<&Agent> = agents.iter().filter(|agent| agent.may_be_entry()).collect();
    let main = agents.iter().find(|agent| agent.header.name == "main");
    let main_file =
        agents.iter().find(|agent| agent.file.source.path.file_stem().is_some_and(|stem| stem == "main"));
    if let Some(agent) = main.or(main_file) {
        return Some(Entry::from(*agent));
    }
    match &agents[..] {
        [agent] => Some(Entry::from(*agent)),
        [] => None,
        agents => {
            let names: Vec<&str> = agents.iter().map(|agent| agent.header.name.as_str()).collect();
            let message = format!("no entry: there are several agents ({})", several(&names));
            out.push(
                Diagnostic::error(root, message).with_hint("name one `main`, or write `entry: true` in one"),
            );
            None
        }
    }
}
