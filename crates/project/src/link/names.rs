//! Checks the names of agents, and the names by which they refer to each other.

use std::collections::{HashMap, HashSet};

use llm_do_core::Name;

use super::KnownCode;
use crate::catalog::Catalog;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{entry_span, span_of};
use crate::format::manifest::ManifestFile;
use crate::read::agent::Agent;
use crate::source::Span;
use crate::suggest::suggest;

pub(crate) fn check_names(agents: &[Agent], catalog: &dyn Catalog, out: &mut Diagnostics) {
    let built_in = catalog.toolsets();
    let of_program = |name: &str| catalog.program_toolsets().iter().any(|toolset| *toolset.name() == name);
    let mut earlier: HashMap<&str, &Agent> = HashMap::new();
    for agent in agents {
        let (name, source) = (agent.header.name.as_str(), &agent.file.source);
        let span = span_of(&agent.file.header, "name");
        if let Some(earlier) = earlier.insert(name, agent) {
            let message =
                format!("the agent name `{name}` is already used by {}", earlier.file.source.path.display());
            out.push(Diagnostic::error_at(source, &span, message).with_hint("rename one of them"));
        }
        if built_in.contains(&name) {
            let message = format!("the agent name `{name}` is already the name of a built-in toolset");
            out.push(Diagnostic::error_at(source, &span, message).with_hint("rename the agent"));
        }
        if of_program(name) {
            let message = format!("the agent name `{name}` is already the name of a toolset of the program");
            out.push(Diagnostic::error_at(source, &span, message).with_hint("rename the agent"));
        }
    }
}

/// Checks the names of agents in `agents` and in the policy for calls: a misspelled one would apply to nobody.
pub(crate) fn check_agent_names(
    manifest: Option<&ManifestFile>,
    agents: &[Agent],
    unread: &[String],
    code: KnownCode<'_>,
    out: &mut Diagnostics,
) {
    if code.may_define() {
        return;
    }
    let known: HashSet<&str> = agents
        .iter()
        .map(|agent| agent.header.name.as_str())
        .chain(unread.iter().map(String::as_str))
        .chain(code.agents().map(Name::as_str))
        .collect();
    let unknown = |name: &str| {
        let is_plain = Name::is_valid(name);
        (is_plain && !known.contains(name)).then(|| {
            let mut known: Vec<&str> = known.iter().copied().collect();
            known.sort_unstable();
            suggest(name, known)
        })
    };
    for agent in agents {
        for name in &agent.header.agents {
            if let Some(hint) = unknown(name) {
                let span = entry_span(&agent.file.header, "agents", name);
                // It may be created later, by another agent or by code.
                let message = format!("`agents` names `{name}`, but there is no such agent yet");
                out.push(Diagnostic::notice_at(&agent.file.source, &span, message).with_hint(hint));
            }
        }
    }
    let Some(file) = manifest else { return };
    for name in file.manifest.runtime.agent_approval_overrides.keys() {
        if !known.contains(name.as_str()) {
            let span = file
                .node
                .field("runtime")
                .map_or(Span::START, |runtime| entry_span(&runtime.value, "agent_approval_overrides", name));
            let message = format!("`agent_approval_overrides` names `{name}`, but there is no such agent");
            let hint = unknown(name).unwrap_or_else(|| "name an agent of this project".to_owned());
            out.push(Diagnostic::error_at(&file.source, &span, message).with_hint(hint));
        }
    }
}
