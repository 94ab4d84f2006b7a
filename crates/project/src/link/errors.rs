//! Reports what the runtime refuses to link, at the key of the agent that it is about.

use std::path::Path;

use llm_do_core::Name;
use llm_do_runtime::{LinkError, LinkErrors, NameKind};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::span_of;
use crate::format::front_matter::ToolEntry;
use crate::globs::glob_problem;
use crate::read::agent::Agent;

/// What the runtime refuses to link, at the key of the agent that it is about.
pub(super) fn report(errors: &LinkErrors, agents: &[Agent], root: &Path, out: &mut Diagnostics) {
    for error in &errors.0 {
        if out.is_full() {
            return;
        }
        let about = match error {
            LinkError::Unknown { agent, kind, .. } => Some((agent, key_of(*kind))),
            LinkError::Collision { agent, name, .. } if is_alias(agents, agent, name) => {
                Some((agent, "tools"))
            }
            LinkError::BadGlob { agent, .. } => Some((agent, glob_key(agents, agent))),
            LinkError::Collision { agent, .. } | LinkError::ReservedName { agent, .. } => {
                Some((agent, "toolsets"))
            }
            _ => None,
        };
        let found = about.and_then(|(name, key)| {
            agents.iter().find(|agent| agent.header.name == name.as_str()).map(|agent| (agent, key))
        });
        let diagnostic = match found {
            Some((agent, key)) => {
                let span = span_of(&agent.file.header, key);
                Diagnostic::error_at(&agent.file.source, &span, error.to_string())
            }
            None => Diagnostic::error(root, error.to_string()),
        };
        out.push(match error.hint() {
            Some(hint) => diagnostic.with_hint(hint),
            None => diagnostic,
        });
    }
}

/// Returns the key under which an agent names something.
fn key_of(kind: NameKind) -> &'static str {
    match kind {
        NameKind::ApprovalRule => "approval",
        NameKind::ManualOnlyTool => "manual_only",
        NameKind::ChangedTool | NameKind::Parameter => "tools",
        NameKind::Agent | NameKind::Entry | NameKind::Tool | NameKind::Toolset => "toolsets",
    }
}

/// Returns whether an agent gives a tool that name.
fn is_alias(agents: &[Agent], agent: &Name, name: &Name) -> bool {
    let found = agents.iter().find(|found| found.header.name == agent.as_str());
    let is_alias = |entry: &ToolEntry| match entry {
        ToolEntry::Changed(section) => section.alias.as_deref() == Some(name.as_str()),
        ToolEntry::Name(_) => false,
    };
    found.is_some_and(|agent| agent.header.tools.iter().any(is_alias))
}

/// The key of an agent in which a glob cannot be read.
fn glob_key(agents: &[Agent], name: &Name) -> &'static str {
    let Some(agent) = agents.iter().find(|agent| agent.header.name == name.as_str()) else {
        return "approval";
    };
    let is_bad = |glob: &String| glob_problem(glob).is_some();
    match &agent.header {
        header if header.agents.iter().any(is_bad) => "agents",
        header if header.manual_only.iter().any(is_bad) => "manual_only",
        _ => "approval",
    }
}
