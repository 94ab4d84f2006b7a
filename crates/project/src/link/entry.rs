//! Finds what a run of the project starts with.

use std::path::Path;

use llm_do_core::{Name, misspelled};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::span_of;
use crate::format::manifest::ManifestFile;
use crate::link::python::{self, KnownCode};
use crate::read::Files;
use crate::read::agent::Agent;
use crate::source::Span;
use crate::suggest::{join_names, suggest};

/// What a run starts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EntryPoint {
    /// An agent.
    Agent(Name),
    /// A function that code defines.
    Function,
}

impl From<&Agent> for EntryPoint {
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
) -> Option<EntryPoint> {
    let root = &files.root;
    let is_marked = |agent: &&Agent| !files.entry_is_set && agent.header.entry && agent.may_be_entry();
    let marked: Vec<&Agent> = agents.iter().filter(is_marked).collect();
    if let [_, _, ..] = &marked[..] {
        let names: Vec<String> = marked.iter().map(|agent| format!("`{}`", agent.header.name)).collect();
        for agent in &marked {
            if out.is_full() {
                break;
            }
            let message = format!("several agents have `entry: true`: {}", join_names(&names));
            let span = span_of(&agent.file.header, "entry");
            out.push(
                Diagnostic::error_at(&agent.file.source, &span, message).with_hint("keep it in one of them"),
            );
        }
        return None;
    }
    let search = EntrySearch { files, agents, unread, marked: marked.first().copied(), code };
    match &files.manifest {
        Some(file) => search.in_manifest(file, out),
        None if search.marked.is_some() => search.marked.map(EntryPoint::from),
        None if !unread.is_empty() => None,
        None => sole_entry(agents, root, out),
    }
}

/// Where an entry is looked for.
struct EntrySearch<'a> {
    files: &'a Files,
    agents: &'a [Agent],
    unread: &'a [String],
    /// The agent that says `entry: true`.
    marked: Option<&'a Agent>,
    code: KnownCode<'a>,
}

impl EntrySearch<'_> {
    /// What a manifest names, or leaves to the agents and the code.
    fn in_manifest(&self, file: &ManifestFile, out: &mut Diagnostics) -> Option<EntryPoint> {
        let entry = &file.manifest.entry;
        let key = if entry.agent.is_some() { "agent" } else { "function" };
        let span = file.node.field("entry").map_or(Span::START, |entry| span_of(&entry.value, key));
        let at = |message: String| Diagnostic::error_at(&file.source, &span, message);
        match (entry.agent.as_deref(), entry.function.as_deref()) {
            (Some(_), Some(_)) => {
                let message = "`entry` names both an `agent` and a `function`".to_owned();
                out.push(at(message).with_hint("name one of them"));
                None
            }
            (Some(name), None) => self.agent(name, at, out),
            (None, Some(function)) => match self.marked {
                Some(other) => {
                    refuse_both(&format!("`entry` names the function `{function}`"), other, at, out)
                }
                None => python::entry_function(file, self.files, out).map(|_| EntryPoint::Function),
            },
            (None, None) => self.unnamed(file, at, out),
        }
    }

    /// The agent that a manifest names.
    fn agent(
        &self,
        name: &str,
        at: impl Fn(String) -> Diagnostic,
        out: &mut Diagnostics,
    ) -> Option<EntryPoint> {
        if let Some(other) = self.marked.filter(|other| other.header.name != name) {
            return refuse_both(&format!("`entry` names the agent `{name}`"), other, at, out);
        }
        let of_files = self.agents.iter().map(|agent| agent.header.name.as_str());
        let known: Vec<&str> = of_files.chain(self.code.agents().map(Name::as_str)).collect();
        let is_unread = self.unread.iter().any(|other| other == name);
        let is_misspelled = || misspelled(name, known.iter().copied()).is_some();
        // Code that mentions no agent defines none, and what is nearly the name of one is not another agent.
        let by_code = || self.code.may_define() && (self.code.may_define_agents() || !is_misspelled());
        if known.contains(&name) || (!is_unread && by_code()) {
            return Some(EntryPoint::Agent(name.into()));
        }
        if !is_unread {
            let hint = match self.agents {
                [] => "list the files of agents under `agent_files`".to_owned(),
                _ => suggest(name, known),
            };
            out.push(at(format!("`entry` names the agent `{name}`, which does not exist")).with_hint(hint));
        }
        None
    }

    /// The entry of a manifest that names none.
    fn unnamed(
        &self,
        file: &ManifestFile,
        at: impl Fn(String) -> Diagnostic,
        out: &mut Diagnostics,
    ) -> Option<EntryPoint> {
        let function = self.code.defined().and_then(|code| code.entries.first());
        match (self.marked, function) {
            (Some(agent), Some(function)) => {
                let defined = format!("the entry `{}` is defined here", function.value.name());
                refuse_both(&defined, agent, |message| function.location.diagnostic(message), out)
            }
            (Some(agent), None) => Some(EntryPoint::from(agent)),
            // A manifest that only the command line wrote.
            (None, _) if file.source.text.is_empty() => sole_entry(self.agents, &self.files.root, out),
            (None, function) if function.is_some() || self.code.may_define() => Some(EntryPoint::Function),
            (None, _) => {
                let message = match file.node.field("entry") {
                    Some(_) => "`entry` names neither an `agent` nor a `function`",
                    None => "the project has no entry: neither its manifest nor its agent files name one",
                };
                let hint = "write `\"entry\": {\"agent\": \"main\"}` in the manifest, or `entry: true` in one agent file";
                out.push(at(message.to_owned()).with_hint(hint));
                None
            }
        }
    }
}

/// Two say what a run starts with.
fn refuse_both(
    named: &str,
    marked: &Agent,
    at: impl Fn(String) -> Diagnostic,
    out: &mut Diagnostics,
) -> Option<EntryPoint> {
    let message = format!("{named}, but the agent `{}` has `entry: true`", marked.header.name);
    out.push(at(message).with_hint("keep one of them"));
    None
}

/// No run starts with an agent that was created, or that another one names, because it happens to be there.
fn sole_entry(agents: &[Agent], root: &Path, out: &mut Diagnostics) -> Option<EntryPoint> {
    let agents: Vec<&Agent> = agents.iter().filter(|agent| agent.may_be_entry()).collect();
    let main = agents.iter().find(|agent| agent.header.name == "main");
    let main_file =
        agents.iter().find(|agent| agent.file.source.path.file_stem().is_some_and(|stem| stem == "main"));
    if let Some(agent) = main.or(main_file) {
        return Some(EntryPoint::from(*agent));
    }
    match &agents[..] {
        [agent] => Some(EntryPoint::from(*agent)),
        [] => None,
        agents => {
            let names: Vec<&str> = agents.iter().map(|agent| agent.header.name.as_str()).collect();
            let message = format!("no entry: there are several agents ({})", join_names(&names));
            out.push(
                Diagnostic::error(root, message).with_hint("name one `main`, or write `entry: true` in one"),
            );
            None
        }
    }
}
