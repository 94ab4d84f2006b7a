//! Links between files: those that agents name under `programs`, which are read as agents of the same project.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use crate::diagnostic::{Diagnostic, Diagnostics, shown_path};
use crate::document::{Node, NodeContent, TableField, entry_span};
use crate::file_reader::FileReader;
use crate::read::agent_file::AgentFile;
use crate::read::listing::FileListing;

/// The key of the list.
const KEY: &str = "programs";

/// How many links the agents of a project have together.
const MAX_LINKS: usize = 10_000;

/// Files of a project by their real paths, and those that are still to be read.
pub(crate) struct Links<'a> {
    listing: FileListing<'a>,
    reader: FileReader<'a>,
    root: &'a Path,
    known: HashSet<PathBuf>,
    count: usize,
}

impl<'a> Links<'a> {
    /// The links of a project whose other files are known.
    pub(crate) fn new(root: &'a Path, reader: FileReader<'a>, known: impl Iterator<Item = PathBuf>) -> Self {
        Self { listing: FileListing::new(root, reader), reader, root, known: known.collect(), count: 0 }
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
                    let diagnostic = Diagnostic::error_at(&file.source, &node.span, message);
                    out.push(hint.into_iter().fold(diagnostic, Diagnostic::with_hint));
                }
            }
        }
        if self.count > MAX_LINKS {
            let message = format!("the agents so far name more than {MAX_LINKS} programs");
            out.push(Diagnostic::error_at(&file.source, &entry_span(&file.header, KEY, ""), message));
        }
        file.links = links;
        unread
    }

    /// Finds a file that another one names, relative to that one and inside the project: its path, and that without
    /// links.
    fn resolve(&self, from: &Path, name: &str) -> Result<(PathBuf, PathBuf), (String, Option<String>)> {
        if name.trim().is_empty() {
            return Err(("the file name is empty".to_owned(), None));
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
        let real = self.reader.real_path(&path).map_err(|error| (format!("`{name}`: {error}"), None))?;
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
    let Some(TableField { value: Node { content: NodeContent::List(items), .. }, .. }) = header.field(KEY)
    else {
        return Vec::new();
    };
    let named = items.iter().filter_map(|item| match &item.field("file")?.value {
        node @ Node { content: NodeContent::Text(name), .. } => Some((node, name.as_str())),
        _ => None,
    });
    named.collect()
}
