//! The files that a program names: its instructions, what it is told first, other programs; and how far up they reach.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use llm_do_secrets::secret_kind;

use super::ProgramReader;
use super::parts::{field, list, table, text};
use crate::diagnostic::Diagnostic;
use crate::document::{Node, NodeContent, TableField};
use crate::read::directory_of;
use crate::read::listing::FileListing;
use crate::read::program_links::below;
use crate::source::Span;

/// What lies in the top folder of somebody's work.
const MARKS: [&str; 3] = [".git", ".hg", "pyproject.toml"];

/// What is said of a file that a project does not reach.
const OUTSIDE: &str = "outside the project";

/// What to do about a file that a project does not reach.
const FURTHER_UP: &str = "list this file under `agent_files` of a manifest further up";

/// Where the project of a program begins.
pub(crate) struct ProjectScope {
    /// The top folder.
    pub(crate) root: PathBuf,
    /// The program, below it.
    pub(crate) path: PathBuf,
    /// The name that reaches so far.
    pub(crate) span: Span,
}

/// A program that names files above its own folder belongs to the work around it: the nearest folder above that a
/// repository or a package begins with. Returns nothing if it names none, or if such a folder does not exist.
pub(crate) fn project_scope(path: &Path, program: &Node) -> Option<ProjectScope> {
    let span = named(program).find_map(reaching_up)?;
    let folder = directory_of(path);
    let real = folder.canonicalize().ok()?;
    let is_marked = |folder: &&Path| MARKS.iter().any(|mark| folder.join(mark).exists());
    let top = real.ancestors().find(is_marked).filter(|top| *top != real && !holds_home(top))?;
    let depth = real.strip_prefix(top).ok()?.components().count();
    let above = folder.ancestors().nth(depth);
    let above = above.map(|above| if above == Path::new("") { Path::new(".") } else { above });
    // A path is shown as it was given, where that is long enough.
    match above.filter(|above| above.canonicalize().is_ok_and(|above| above == top)) {
        Some(above) => Some(ProjectScope { root: above.to_path_buf(), path: path.to_path_buf(), span }),
        None => Some(ProjectScope { root: top.to_path_buf(), path: real.join(path.file_name()?), span }),
    }
}

/// Nobody's whole home is a project.
fn holds_home(folder: &Path) -> bool {
    std::env::home_dir().is_some_and(|home| home.starts_with(folder))
}

/// All files that a program names.
fn named(program: &Node) -> impl Iterator<Item = &Node> {
    let under =
        |path: &[&str]| path.iter().try_fold(program, |node, key| node.field(key).map(|found| &found.value));
    let paths: [&[&str]; 5] = [
        &["prompt", "system_prompt_file"],
        &["preload", "files"],
        &["plugins", "preload_files", "files"],
        &["linked_programs"],
        &["plugins", "spawn", "linked_programs"],
    ];
    paths.map(under).into_iter().flatten().flat_map(|node| match &node.content {
        NodeContent::List(items) => items.iter().collect(),
        NodeContent::Table(links) => {
            links.iter().map(|link| path_of(&link.value).unwrap_or(&link.value)).collect()
        }
        _ => vec![node],
    })
}

/// Returns the span of a path if it leads above the folder of the file that names it.
fn reaching_up(node: &Node) -> Option<Span> {
    let mut depth = 0_usize;
    for part in Path::new(node.text()?).components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::ParentDir if depth == 0 => return Some(node.span.clone()),
            Component::ParentDir => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the path of a link, which may have a description beside it.
fn path_of(link: &Node) -> Option<&Node> {
    match &link.content {
        NodeContent::Text(_) => Some(link),
        _ => link.field("path").map(|path| &path.value).filter(|path| path.text().is_some()),
    }
}

impl ProgramReader<'_> {
    /// Finds a file inside the project.
    fn find(&self, name: &str) -> Result<PathBuf, String> {
        let below = below(self.root, &self.source.path, name);
        let below = below.ok_or_else(|| format!("`{name}` lies outside the project"))?;
        FileListing::new(self.root, self.reader).named(below)
    }

    /// Reads the instructions from a file inside the project.
    pub(super) fn prompt_file(&mut self, found: &TableField, name: &str) -> Option<Arc<str>> {
        match self.find(name) {
            Ok(path) => {
                let text = self.reader.source(&path, self.out)?.text;
                if let Some(kind) =
                    path.canonicalize().ok().and_then(|real| secret_kind(&real, text.as_bytes()))
                {
                    let message = format!("`system_prompt_file`: `{name}` is a secret file ({kind})");
                    self.refuse(&found.value, message);
                    return None;
                }
                let instructions = text.trim().into();
                self.program.files.push((path, text));
                Some(instructions)
            }
            Err(message) => {
                self.refuse(&found.value, format!("`system_prompt_file`: {message}"));
                None
            }
        }
    }

    pub(super) fn preload(&mut self, preload: &Node) {
        self.notice_unknown("preload", preload, &["files", "relative_to"]);
        if let Some((found, base)) = self.text_of(preload, "relative_to") {
            match base {
                "program" => {}
                "cwd" => {
                    self.notice(found, "files are relative to this file, wherever the program is started")
                }
                _ => self.refuse(&found.value, "`relative_to` must be `program` or `cwd`".to_owned()),
            }
        }
        let Some(found) = preload.field("files") else { return };
        let value = match &found.value.content {
            NodeContent::List(items) => {
                let items = items.iter().filter(|item| self.can_preload(item)).cloned().collect();
                list(&found.value.span, items)
            }
            _ => found.value.clone(),
        };
        self.header.push(field("preload", &found.span, value));
    }

    /// A program does without a file that it should be told first.
    fn can_preload(&mut self, item: &Node) -> bool {
        let Some(name) = item.text() else { return true };
        let Err(message) = self.find(name) else { return true };
        self.do_without(item, format!("`preload`: {message}, so the program runs without it"));
        false
    }

    /// Says that a file is left out, and what to do where the project does not reach it.
    fn do_without(&mut self, named: &Node, message: String) {
        let is_outside = message.contains(OUTSIDE);
        let notice = Diagnostic::notice_at(self.source, &named.span, message);
        self.out.push(if is_outside { notice.with_hint(FURTHER_UP) } else { notice });
    }

    /// Links: a path, or a path with a description.
    pub(super) fn linked_programs(&mut self, links: &Node) {
        let NodeContent::Table(fields) = &links.content else { return };
        let programs = fields.iter().filter_map(|link| self.linked_program(link)).collect();
        self.header.push(field("programs", &links.span, list(&links.span, programs)));
    }

    fn linked_program(&mut self, link: &TableField) -> Option<Node> {
        let Some((path, written)) = path_of(&link.value).and_then(|path| Some((path, path.text()?))) else {
            let message = format!("`linked_programs.{}` must be a path, or a table with `path`", link.name);
            self.refuse(&link.value, message);
            return None;
        };
        if matches!(link.value.content, NodeContent::Table(_)) {
            self.notice_unknown("linked_programs", &link.value, &["path", "description"]);
        }
        let found = self.link_target(path, written)?;
        let name = field("name", &link.span, text(&link.span, &link.name));
        let file = field("file", &path.span, text(&path.span, &found));
        let description = link.value.field("description").cloned();
        Some(table(&link.span, [name, file].into_iter().chain(description).collect()))
    }

    /// The file of a link: the same program in the other language, where it was written anew since; nothing where the
    /// project does not reach it.
    fn link_target(&mut self, path: &Node, written: &str) -> Option<String> {
        let Err(message) = self.find(written) else { return Some(written.to_owned()) };
        if message.contains(OUTSIDE) {
            self.do_without(path, format!("`linked_programs`: {message}, so it is not linked"));
            return None;
        }
        let others = ["yaml", "yml", "toml"].map(|ending| Path::new(written).with_extension(ending));
        let others = others.iter().filter_map(|other| other.to_str());
        let Some(other) = others.into_iter().find(|other| self.find(other).is_ok()) else {
            return Some(written.to_owned());
        };
        let message = format!("`linked_programs`: {message}, so `{other}` is used instead");
        self.out.push(Diagnostic::notice_at(self.source, &path.span, message));
        Some(other.to_owned())
    }
}
