//! Links agents to the programs that they can start: other agents of the project, named by their files.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use llm_do_core::Program;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::entry_span;
use crate::globs::MAX_GLOB_LEN;
use crate::read::agent::Agent;

/// The key of the list.
const KEY: &str = "programs";

/// How many globs of `agents` are compared with the programs.
const MAX_GLOBS: usize = 1_000;

/// The agents of a project by the real paths of their files: the name, and what each does.
pub(crate) type LinkedAgents<'a> = HashMap<&'a Path, (&'a str, &'a str)>;

/// Finds the agents of a project by their files.
pub(crate) fn by_file(agents: &[Agent]) -> LinkedAgents<'_> {
    agents.iter().map(|agent| (agent.file.real.as_path(), described(agent))).collect()
}

fn described(agent: &Agent) -> (&str, &str) {
    (&agent.header.name, agent.header.description.as_deref().unwrap_or_default())
}

/// The programs of an agent.
pub(crate) fn programs(agent: &Agent, linked: &LinkedAgents<'_>, out: &mut Diagnostics) -> Vec<Program> {
    let reachable = reachable(agent);
    let mut seen: HashSet<&str> = HashSet::new();
    let mut programs = Vec::new();
    for program in &agent.header.programs {
        if out.is_full() {
            break;
        }
        if !seen.insert(&program.name) {
            let message = format!("duplicate program `{}` in `{KEY}`", program.name);
            let span = entry_span(&agent.file.header, KEY, &program.name);
            out.push(Diagnostic::error_at(&agent.file.source, &span, message).with_hint("name each once"));
            continue;
        }
        // What is wrong with a file that is not there was said where it was read.
        let real = agent.file.links.get(&program.file);
        let Some((name, description)) = real.and_then(|real| linked.get(real.as_path())) else { continue };
        if reachable.as_ref().is_some_and(|globs| !globs.is_match(name)) {
            let message =
                format!("the program `{}` cannot be started: `agents` does not name `{name}`", program.name);
            let span = entry_span(&agent.file.header, KEY, &program.name);
            let hint = "add it to `agents`, or remove the program";
            out.push(Diagnostic::notice_at(&agent.file.source, &span, message).with_hint(hint));
        }
        programs.push(Program {
            name: program.name.as_str().into(),
            agent: (*name).into(),
            description: program.description.clone().unwrap_or_else(|| (*description).to_owned()),
        });
    }
    programs
}

/// The agents that `agents` leaves in reach; nothing where it is not said, or cannot be read, which is said elsewhere.
fn reachable(agent: &Agent) -> Option<GlobSet> {
    let written = &agent.header.agents;
    let is_readable = written.len() <= MAX_GLOBS && written.iter().all(|glob| glob.len() <= MAX_GLOB_LEN);
    if written.is_empty() || agent.header.programs.is_empty() || !is_readable {
        return None;
    }
    let mut globs = GlobSetBuilder::new();
    for glob in written {
        globs.add(GlobBuilder::new(glob).build().ok()?);
    }
    globs.build().ok()
}
