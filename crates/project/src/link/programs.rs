//! Programs: files that agents name under `programs`, read as agents of the same project.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use llm_do_core::Program;

use crate::diagnostic::{Diagnostic, Diagnostics, shown_path};
use crate::document::{Content, Field, Node, entry_place};
use crate::link::Agent;
use crate::read::agent_file::AgentFile;
use crate::read::listing::{Listing, MAX_GLOB_LEN};

/// The key of the list.
const KEY: &str = "programs";

/// How many links the agents of a project have together.
const MAX_LINKS: usize = 10_000;

/// How many globs of `agents` are compared with the programs.
const MAX_GLOBS: usize = 1_000;

/// Files of a project by their real paths, and those that are still to be read.
pub(crate) struct Links<'a> {
    listing: Listing<'a>,
    root: &'a Path,
    known: HashSet<PathBuf>,
    count: usize,
}

impl<'a> Links<'a> {
    /// The links of a project whose other files are known.
    pub(crate) fn new(root: &'a Path, known: impl Iterator<Item = PathBuf>) -> Self {
        Self { listing: Listing::new(root), root, known: known.collect(), count: 0 }
    }

    /// Notes which files an agent names, and returns those of them that nobody has read yet.
    pub(crate) fn follow(&mut self, file: &mut AgentFile, out: &mut Diagnostics) -> Vec<PathBuf> {
        let mut unread = Vec::new();
        let mut links = HashMap::new();
        for (node, name) in named_files(&file.header) {
            self.count += 1;
            if out.is_full() || self.count > MAX_LINKS {
                break;
            }
            match self.resolve(&file.source.path, name) {
                Ok((path, real)) => {
                    if self.known.insert(real.clone()) {
                        unread.push(path);
                    }
                    links.insert(name.to_owned(), real);
                }
                Err((message, hint)) => {
                    let message = format!("`{KEY}`: {message}");
                    let diagnostic = Diagnostic::at(&file.source, &node.place, message);
                    out.push(hint.into_iter().fold(diagnostic, Diagnostic::with_hint));
                }
            }
        }
        if self.count > MAX_LINKS {
            let message = format!("the agents up to here name more than {MAX_LINKS} programs");
            out.push(Diagnostic::at(&file.source, &entry_place(&file.header, KEY, ""), message));
        }
        file.links = links;
        unread
    }

    /// Finds a file that another one names, relative to that one and inside the project: its path, and that without
    /// links.
    fn resolve(&self, from: &Path, name: &str) -> Result<(PathBuf, PathBuf), (String, Option<String>)> {
        if name.trim().is_empty() {
            return Err(("a file is empty".to_owned(), None));
        }
        let Some(below) = below(self.root, from, name) else {
            return Err((format!("`{name}` lies outside the project"), Some(INSIDE.to_owned())));
        };
        let path = self.listing.named(&below).map_err(|message| {
            let tried = shown_path(&self.root.join(&below)).display().to_string();
            let hint =
                if message.contains("outside") { INSIDE.to_owned() } else { format!("looked for {tried}") };
            (message, Some(hint))
        })?;
        if !is_program(&path) {
            let hint = "name an agent file (`.agent`) or a program file (`.toml`, `.yaml`)";
            return Err((format!("`{name}` is neither an agent file nor a program file"), Some(hint.into())));
        }
        let real = path.canonicalize().map_err(|error| (format!("`{name}`: {error}"), None))?;
        Ok((path, real))
    }
}

/// The path below the root of what a file names, relative to that file; nothing where it leads out of it by its
/// very words.
pub(crate) fn below(root: &Path, from: &Path, name: &str) -> Option<PathBuf> {
    let directory = from.parent()?.strip_prefix(shown_path(root)).ok()?;
    let mut below = PathBuf::new();
    for part in directory.join(name).components() {
        match part {
            Component::Normal(part) => below.push(part),
            Component::CurDir => {}
            Component::ParentDir if below.pop() => {}
            _ => return None,
        }
    }
    Some(below)
}

const INSIDE: &str = "name a file inside the project, relative to this one";

/// Returns whether a file is one that can be read as an agent.
pub(crate) fn is_program(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("agent" | "worker" | "toml" | "yaml" | "yml"))
}

/// The files that a header names under `programs`, whether the rest of it is right or not.
fn named_files(header: &Node) -> Vec<(&Node, &str)> {
    let Some(Field { value: Node { content: Content::List(items), .. }, .. }) = header.field(KEY) else {
        return Vec::new();
    };
    let named = items.iter().filter_map(|item| match &item.field("file")?.value {
        node @ Node { content: Content::Text(name), .. } => Some((node, name.as_str())),
        _ => None,
    });
    named.collect()
}

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
            let place = entry_place(&agent.file.header, KEY, &program.name);
            out.push(Diagnostic::at(&agent.file.source, &place, message).with_hint("name each once"));
            continue;
        }
        // What is wrong with a file that is not there was said where it was read.
        let real = agent.file.links.get(&program.file);
        let Some((name, description)) = real.and_then(|real| linked.get(real.as_path())) else { continue };
        if reachable.as_ref().is_some_and(|globs| !globs.is_match(name)) {
            let message =
                format!("the program `{}` cannot be started: `agents` does not name `{name}`", program.name);
            let place = entry_place(&agent.file.header, KEY, &program.name);
            let hint = "add it to `agents`, or take the program out";
            out.push(Diagnostic::at(&agent.file.source, &place, message).with_hint(hint).notice());
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
