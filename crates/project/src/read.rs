//! Finds the files of a project and reads them. Nothing of the project is executed.

pub(crate) mod agent;
pub(crate) mod agent_file;
mod deprecated_keys;
pub mod discovery;
pub(crate) mod listing;
pub(crate) mod overrides;
mod program_file;
pub(crate) mod program_links;
mod worker_file;
mod worker_keys;

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use llm_do_secrets::SecretFiles;

use crate::diagnostic::{Diagnostic, Diagnostics, shown_path};
use crate::document::{self, Language, Node, NodeContent, TableField, entry_span};
use crate::file_reader::FileReader;
use crate::format::manifest::{Manifest, ManifestFile};
use crate::format::schema;
use crate::globs::is_glob;
use crate::project_files::ProjectFiles;
use crate::read::agent_file::AgentFile;
use crate::read::listing::FileListing;
use crate::read::overrides::Overrides;
use crate::read::program_links::Links;
use crate::source::{SourceFile, Span};
use crate::suggest::join_names;

/// The names under which a manifest is looked for in a directory.
pub(crate) const MANIFESTS: [&str; 4] = ["project.json", "project.yaml", "project.yml", "project.toml"];

/// Where agents are kept that agents and code create, unless the manifest says otherwise.
pub(crate) const GENERATED: &str = "agents/generated";

/// No manifest is larger than this: it holds settings, and no instructions.
const MAX_MANIFEST_BYTES: usize = 1024 * 1024;

/// No project has more agent files than these: what links them takes time and memory for each.
const MAX_AGENT_FILES: usize = 1_000;

/// All agent files of a project together have no more bytes than these.
const MAX_TOTAL_BYTES: usize = 32 * 1024 * 1024;

/// All headers of a project together have no more values than these.
const MAX_VALUES: usize = 200_000;

/// The files of a project, read but not linked.
pub(crate) struct Files {
    pub(crate) root: PathBuf,
    pub(crate) manifest: Option<ManifestFile>,
    pub(crate) agents: Vec<AgentFile>,
    /// Whether there is a manifest that could not be read: then agents are checked and nothing is linked.
    pub(crate) broken_manifest: bool,
    /// Where agents are kept that agents and code create, relative to the root.
    pub(crate) generated: PathBuf,
    /// What decides about the project.
    pub(crate) own: ProjectFiles,
    /// The Python files that the manifest lists.
    pub(crate) python: Vec<PathBuf>,
    /// Overrides of agents that code may define.
    pub(crate) code_changes: Overrides,
    /// Where a program names files above its directory, so that the project is wider than that directory.
    pub(crate) widened: Option<(SourceFile, Span)>,
    /// Whether the command line chose the entry, which then goes before what agents say about themselves.
    pub(crate) entry_is_set: bool,
}

/// Reads a project: a manifest, a directory, or a lone agent file.
pub(crate) fn read_project(
    path: &Path,
    reader: FileReader<'_>,
    changes: &Overrides,
    out: &mut Diagnostics,
) -> Option<Files> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => load_directory(path, reader, changes, out),
        Err(error) if !reader.is_recorded(path) => {
            out.push(Diagnostic::error(path, format!("`{}` cannot be read: {error}", path.display())));
            None
        }
        _ if is_agent_file(path) => {
            Some(without_manifest(directory_of(path), &[path.to_path_buf()], reader, changes, out))
        }
        _ => load_manifest(path, reader, changes, out),
    }
}

/// The directory in which a file lies.
pub(crate) fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// A project of agent files alone. What the command line sets for the manifest makes one.
fn without_manifest(
    root: PathBuf,
    agents: &[PathBuf],
    reader: FileReader<'_>,
    changes: &Overrides,
    out: &mut Diagnostics,
) -> Files {
    let agents = with_generated(agents, &root, Path::new(GENERATED), reader, out);
    let generated = PathBuf::from(GENERATED);
    let paths = agents.iter().cloned().chain([root.join(&generated)]).collect();
    let mut own = ProjectFiles { paths, ..ProjectFiles::default() };
    let agents = read_agents(&agents, &root, &generated, reader, changes, false, out);
    own.paths.extend(linked_paths(&agents));
    let python = Vec::new();
    let code_changes = Overrides::default();
    let mut files = Files {
        root,
        manifest: None,
        agents,
        broken_manifest: false,
        generated,
        own,
        python,
        code_changes,
        widened: None,
        entry_is_set: changes.set_entry(),
    };
    if changes.change_manifest() {
        let mut source = SourceFile::new("--set", "");
        let mut node = Node::from_value(&serde_json::json!({"version": 1, "entry": {}}), &Span::START);
        changes.apply_to_manifest(&mut source, &mut node, out);
        let manifest = schema::read(&source, &node, out);
        files.broken_manifest = manifest.is_none();
        if let Some(manifest) = &manifest {
            check_secret_files(&source, &node, manifest, out);
            files.own.allowed_secrets = manifest.secret_files.allow.clone();
        }
        files.manifest = manifest.map(|manifest| ManifestFile { source, node, manifest });
    }
    files
}

/// Returns whether a path has the name of an agent file.
pub fn is_agent_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "agent" || extension == "worker")
}

fn load_directory(
    directory: &Path,
    reader: FileReader<'_>,
    changes: &Overrides,
    out: &mut Diagnostics,
) -> Option<Files> {
    if let Some(manifest) = MANIFESTS.iter().map(|name| directory.join(name)).find(|path| reader.exists(path))
    {
        notice_other_manifests(directory, &manifest, reader, out);
        return load_manifest(&manifest, reader, changes, out);
    }
    let mut agents = reader.files_in(directory);
    agents.retain(|path| is_agent_file(path));
    if agents.is_empty() {
        let root = worker_file::project_of(&directory.join("any.yaml"));
        let root = root.unwrap_or_else(|| directory.to_path_buf());
        if let Some(files) = load_workers(&root, reader, changes, out) {
            return Some(files);
        }
        let message = format!(
            "`{}` is not a project: it has neither a manifest nor an agent file",
            directory.display()
        );
        let hint = format!("looked for {}, main.agent, *.agent and workers/*.yaml", MANIFESTS.join(", "));
        out.push(Diagnostic::error(directory, message).with_hint(hint));
        return None;
    }
    let listing = FileListing::new(directory, reader);
    for path in
        agents.extract_if(.., |path| path.is_symlink() && !reader.is_recorded(path)).collect::<Vec<_>>()
    {
        match listing.named(path.strip_prefix(directory).unwrap_or(&path)) {
            Ok(path) => agents.push(path),
            Err(message) => out.push(Diagnostic::error(shown_path(&path), message)),
        }
    }
    agents.sort();
    Some(without_manifest(directory.to_path_buf(), &agents, reader, changes, out))
}

/// Names the manifests that are not read, because the directory has another one.
fn notice_other_manifests(directory: &Path, used: &Path, reader: FileReader<'_>, out: &mut Diagnostics) {
    let others =
        MANIFESTS.iter().map(|name| directory.join(name)).filter(|path| path != used && reader.exists(path));
    let name = |path: &Path| format!("`{}`", shown_path(path).display());
    let others: Vec<String> = others.map(|path| name(&path)).collect();
    if others.is_empty() {
        return;
    }
    let is = if others.len() == 1 { "is" } else { "are" };
    let message = format!("{} is used, and {} {is} ignored", name(used), join_names(&others));
    out.push(
        Diagnostic::notice(shown_path(used), message).with_hint("remove one, or name the one that you mean"),
    );
}

fn load_manifest(
    path: &Path,
    reader: FileReader<'_>,
    changes: &Overrides,
    out: &mut Diagnostics,
) -> Option<Files> {
    let root = directory_of(path);
    let mut source = reader.source(path, out)?;
    if source.text.len() > MAX_MANIFEST_BYTES {
        let message = format!("the manifest has more than {MAX_MANIFEST_BYTES} bytes");
        out.push(Diagnostic::error_at(&source, &Span::START, message));
        return None;
    }
    let language = match path.extension().and_then(|extension| extension.to_str()) {
        Some("yaml" | "yml") => Language::Yaml,
        Some("toml") => Language::Toml,
        _ => Language::Json,
    };
    let mut node = document::read(&source.text, language)
        .map_err(|error| out.push(Diagnostic::error_at(&source, &error.span, error.message)))
        .ok()?;
    if program_file::is_program(&node) && program_file::language(path).is_some() {
        return Some(lone_program(path, &source, &node, reader, changes, out));
    }
    if worker_file::is_worker(path, &node) {
        return Some(lone_worker(path, &node, reader, changes, out));
    }
    changes.apply_to_manifest(&mut source, &mut node, out);
    deprecated_keys::rename_in_manifest(&source, &mut node, out);
    check_version(&source, &node, out)?;
    let manifest = schema::read(&source, &node, out);
    // Files are listed even where another part of the manifest is wrong, so that all problems show at once.
    let mut listing = FileListing::new(&root, reader);
    let listed = listed_files(&source, &node, &mut listing, "agent_files", out);
    let python = listed_files(&source, &node, &mut listing, "python_files", out);
    check_python(&source, &node, &python, out);
    let generated = generated_directory(&source, &node, manifest.as_ref(), out);
    let listed = with_generated(&listed, &root, &generated, reader, out);
    let agents = read_agents(&listed, &root, &generated, reader, changes, !python.is_empty(), out);
    let broken_manifest = manifest.is_none();
    if let Some(manifest) = &manifest {
        check_secret_files(&source, &node, manifest, out);
    }
    let mut own = manifest.as_ref().map(|manifest| named_files(&root, manifest)).unwrap_or_default();
    own.paths
        .extend([path.to_path_buf(), root.join(&generated)].into_iter().chain(listed).chain(python.clone()));
    own.paths.extend(linked_paths(&agents));
    let manifest = manifest.map(|manifest| ManifestFile { source, node, manifest });
    let code_changes = if python.is_empty() { Overrides::default() } else { changes.beyond(&agents) };
    let entry_is_set = changes.set_entry();
    let widened = None;
    Some(Files {
        root,
        manifest,
        agents,
        broken_manifest,
        generated,
        own,
        python,
        code_changes,
        widened,
        entry_is_set,
    })
}

/// A program that is a project of its own, as far as the files reach that it names.
fn lone_program(
    path: &Path,
    source: &SourceFile,
    node: &Node,
    reader: FileReader<'_>,
    changes: &Overrides,
    out: &mut Diagnostics,
) -> Files {
    let Some(scope) = program_file::project_scope(path, node) else {
        return without_manifest(directory_of(path), &[path.to_path_buf()], reader, changes, out);
    };
    let shown = scope.root.display();
    let message = format!("this names files above its directory, so the project is all of `{shown}`");
    out.push(Diagnostic::notice_at(source, &scope.span, message));
    let files = without_manifest(scope.root, &[scope.path], reader, changes, out);
    Files { widened: Some((source.clone(), scope.span)), ..files }
}

/// A YAML worker that is a project of its own, with the workers of its registry that it may call.
fn lone_worker(
    path: &Path,
    node: &Node,
    reader: FileReader<'_>,
    changes: &Overrides,
    out: &mut Diagnostics,
) -> Files {
    let root = worker_file::project_of(path).unwrap_or_else(|| directory_of(path));
    let paths = worker_file::with_callable(&root, path, node);
    let mut files = without_manifest(root, &paths, reader, changes, out);
    let real = reader.real_path(path).unwrap_or_default();
    files.agents.iter_mut().filter(|file| file.real != real).for_each(|file| file.is_linked = true);
    files
}

/// The YAML workers of a directory. A run starts with one that was created only if somebody names it.
fn load_workers(
    root: &Path,
    reader: FileReader<'_>,
    changes: &Overrides,
    out: &mut Diagnostics,
) -> Option<Files> {
    let listing = FileListing::new(root, reader);
    let mut paths = Vec::new();
    for path in worker_file::registered(root) {
        match listing.named(path.strip_prefix(root).unwrap_or(&path)) {
            Ok(path) => paths.push(path),
            Err(message) => out.push(Diagnostic::error(shown_path(&path), message)),
        }
    }
    if paths.is_empty() {
        return None;
    }
    let mut files = without_manifest(root.to_path_buf(), &paths, reader, changes, out);
    let created = files.agents.iter_mut().filter(|file| worker_file::is_created(&file.source.path));
    created.for_each(|file| file.is_linked = true);
    Some(files)
}

/// What is run as Python says so by its name.
fn check_python(source: &SourceFile, node: &Node, files: &[PathBuf], out: &mut Diagnostics) {
    let is_python = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "py");
    if let Some(other) = files.iter().find(|path| !is_python(path)) {
        let message =
            format!("`python_files` lists `{}`, which is not a `.py` file", shown_path(other).display());
        let span = node.field("python_files").map_or(Span::START, |field| field.value.span.clone());
        out.push(Diagnostic::error_at(source, &span, message).with_hint("list agents under `agent_files`"));
    }
}

/// What a manifest names besides the files that it lists: it would be run or read by a later run.
fn named_files(root: &Path, manifest: &Manifest) -> ProjectFiles {
    let servers = manifest.mcp_servers.values();
    let message =
        servers.flat_map(|server| server.command.iter().chain(&server.args)).chain(&manifest.python);
    let programs = message.map(|word| root.join(word)).filter(|path| path.is_file());
    let globs = manifest.agent_files.iter().chain(&manifest.python_files);
    let globs = globs.filter(|name| is_glob(name)).cloned().collect();
    ProjectFiles { paths: programs.collect(), globs, allowed_secrets: manifest.secret_files.allow.clone() }
}

/// Names the globs that cannot be read, or lead out of the project.
fn check_secret_files(source: &SourceFile, node: &Node, manifest: &Manifest, out: &mut Diagnostics) {
    for glob in &manifest.secret_files.allow {
        if let Err(problem) = SecretFiles::new("/", [glob.as_str()]) {
            let span = node
                .field("secret_files")
                .map_or(Span::START, |field| entry_span(&field.value, "allow", glob));
            let message = format!("`secret_files.allow`: {problem}");
            out.push(
                Diagnostic::error_at(source, &span, message)
                    .with_hint("write a glob such as `tests/fixtures/**`"),
            );
        }
    }
}

fn check_version(source: &SourceFile, node: &Node, out: &mut Diagnostics) -> Option<()> {
    let Some(field) = node.field("version") else { return Some(()) };
    match &field.value.content {
        NodeContent::Number(number) if number.as_u64() != Some(1) => {
            let message = format!("version {number} of the manifest is not supported");
            out.push(
                Diagnostic::error_at(source, &field.value.span, message).with_hint("write `version: 1`"),
            );
            None
        }
        _ => Some(()),
    }
}

/// Agents that agents create are part of the project, so they lie in it.
fn generated_directory(
    source: &SourceFile,
    node: &Node,
    manifest: Option<&Manifest>,
    out: &mut Diagnostics,
) -> PathBuf {
    let written = manifest.and_then(|manifest| manifest.generated_agents_dir.as_deref());
    let (Some(directory), Some(field)) = (written, node.field("generated_agents_dir")) else {
        return PathBuf::from(GENERATED);
    };
    let path = Path::new(directory);
    let problem = if directory.trim().is_empty() {
        Some("is empty".to_owned())
    } else if path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        Some(format!("`{directory}` lies outside the project"))
    } else {
        None
    };
    if let Some(problem) = problem {
        let message = format!("`generated_agents_dir`: {problem}");
        let hint = "name a directory below the manifest, such as `agents/generated`";
        out.push(Diagnostic::error_at(source, &field.value.span, message).with_hint(hint));
        return PathBuf::from(GENERATED);
    }
    path.to_path_buf()
}

/// The listed files, and those of agents that were created, each once.
fn with_generated(
    listed: &[PathBuf],
    root: &Path,
    generated: &Path,
    reader: FileReader<'_>,
    out: &mut Diagnostics,
) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join(generated)).into_iter().flatten().flatten();
    let mut names: Vec<PathBuf> = entries.map(|entry| generated.join(entry.file_name())).collect();
    names.retain(|path| is_agent_file(path));
    names.sort();
    if names.is_empty() {
        return listed.to_vec();
    }
    let listing = FileListing::new(root, reader);
    let known: HashSet<PathBuf> = listed.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let mut files = listed.to_vec();
    for name in names {
        match listing.named(&name) {
            Ok(path) if path.canonicalize().is_ok_and(|real| known.contains(&real)) => {}
            Ok(path) => files.push(path),
            Err(message) => out.push(Diagnostic::error(shown_path(&root.join(name)), message)),
        }
    }
    files
}

/// Resolves a list of files: names and globs, inside the project, each once.
fn listed_files(
    source: &SourceFile,
    node: &Node,
    listing: &mut FileListing<'_>,
    key: &str,
    out: &mut Diagnostics,
) -> Vec<PathBuf> {
    let Some(TableField { value: Node { content: NodeContent::List(items), .. }, .. }) = node.field(key)
    else {
        return Vec::new();
    };
    let mut files = ListedFiles::default();
    for item in items {
        let NodeContent::Text(name) = &item.content else { continue };
        if out.is_full() {
            break;
        }
        let added = listing.resolve(name).map_err(|message| {
            let near = listing.nearest(name).map(|near| format!("did you mean `{near}`?"));
            (format!("`{key}`: {message}"), near)
        });
        if let Err((message, hint)) = added.and_then(|found| files.add(name, found, key)) {
            let diagnostic = Diagnostic::error_at(source, &item.span, message);
            out.push(hint.into_iter().fold(diagnostic, Diagnostic::with_hint));
        }
    }
    files.paths
}

/// A message with a hint.
type ListProblem = (String, Option<String>);

/// Files of a list, each once.
#[derive(Default)]
struct ListedFiles<'a> {
    paths: Vec<PathBuf>,
    known: HashSet<PathBuf>,
    /// The entries by the real path of what they name; a glob by itself.
    entries: HashMap<PathBuf, &'a str>,
}

impl<'a> ListedFiles<'a> {
    /// Adds the files of an entry. Two globs, or a glob and a name, may match one file; two names are a mistake.
    fn add(&mut self, name: &'a str, found: Vec<PathBuf>, key: &str) -> Result<(), ListProblem> {
        let hint = Some("list each file once".to_owned());
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let named =
            if is_glob(name) { PathBuf::from(name) } else { found.first().map(real).unwrap_or_default() };
        match self.entries.insert(named, name) {
            Some(earlier) if earlier == name => {
                return Err((format!("duplicate entry `{name}` in `{key}`"), hint));
            }
            Some(earlier) => {
                return Err((format!("`{earlier}` and `{name}` in `{key}` are the same file"), hint));
            }
            None => {}
        }
        self.paths.extend(found.into_iter().filter(|path| self.known.insert(real(path))));
        Ok(())
    }
}

/// Reads agents, and all that they name as programs.
fn read_agents(
    paths: &[PathBuf],
    root: &Path,
    generated: &Path,
    reader: FileReader<'_>,
    changes: &Overrides,
    has_code: bool,
    out: &mut Diagnostics,
) -> Vec<AgentFile> {
    let mut reading = AgentReader {
        root,
        reader,
        generated: root.join(generated).canonicalize().ok(),
        files: 0,
        bytes: 0,
        values: 0,
        is_over: false,
    };
    let mut agents: Vec<AgentFile> = paths.iter().filter_map(|path| reading.read(path, out)).collect();
    reading.follow_links(&mut agents, out);
    changes.apply_to_agents(&mut agents, has_code, out);
    if !changes.is_empty() {
        reading.follow_links(&mut agents, out);
    }
    for file in &mut agents {
        deprecated_keys::rename_in_header(&file.source, &mut file.header, out);
    }
    agents
}

/// The files that are part of the project because an agent names them.
fn linked_paths(agents: &[AgentFile]) -> impl Iterator<Item = PathBuf> {
    let linked = agents.iter().filter(|file| file.is_linked).map(|file| file.source.path.clone());
    let parts = agents.iter().filter_map(|file| file.program.as_ref());
    linked.chain(parts.flat_map(|program| &program.files).map(|(path, _)| path.clone()))
}

/// Reads agent files until they are too many or too large together.
struct AgentReader<'a> {
    root: &'a Path,
    reader: FileReader<'a>,
    /// The real path of the directory of created agents.
    generated: Option<PathBuf>,
    files: usize,
    bytes: usize,
    values: usize,
    is_over: bool,
}

impl AgentReader<'_> {
    fn read(&mut self, path: &Path, out: &mut Diagnostics) -> Option<AgentFile> {
        if self.is_over || out.is_full() {
            return None;
        }
        let source = self.reader.source(path, out)?;
        self.files += 1;
        self.bytes += source.text.len();
        let file = match program_file::language(path) {
            Some(language) => self.read_document(source, language, path, out),
            None => agent_file::read(source).map_err(|diagnostic| out.push(*diagnostic)).ok(),
        };
        self.values += file.as_ref().map_or(0, |file| file.header.count());
        if self.files > MAX_AGENT_FILES || self.bytes > MAX_TOTAL_BYTES || self.values > MAX_VALUES {
            let message = format!(
                "the agent files so far are more than {MAX_AGENT_FILES}, or have more than {MAX_TOTAL_BYTES} bytes or \
                 {MAX_VALUES} values"
            );
            out.push(Diagnostic::error(shown_path(path), message).with_hint("list fewer agents"));
            self.is_over = true;
        }
        let directory = path.parent().filter(|_| self.generated.is_some());
        let directory = directory.and_then(|directory| directory.canonicalize().ok());
        let generated = directory.is_some() && directory == self.generated;
        let real = self.reader.real_path(path).unwrap_or_default();
        file.map(|file| AgentFile { generated, real, ..file })
    }

    /// Reads a file that is a program or a YAML worker.
    fn read_document(
        &self,
        source: SourceFile,
        language: Language,
        path: &Path,
        out: &mut Diagnostics,
    ) -> Option<AgentFile> {
        let node = document::read(&source.text, language)
            .map_err(|error| out.push(Diagnostic::error_at(&source, &error.span, error.message)))
            .ok()?;
        if worker_file::is_worker(path, &node) {
            return Some(worker_file::read(source, node, path, out));
        }
        program_file::read(source, &node, path, self.root, self.reader, out)
    }

    /// Reads the programs of agents, those of programs, and so on, each once.
    fn follow_links(&mut self, agents: &mut Vec<AgentFile>, out: &mut Diagnostics) {
        let mut links = Links::new(self.root, self.reader, agents.iter().map(|file| file.real.clone()));
        let mut next = 0;
        while next < agents.len() {
            for path in links.follow(&mut agents[next], out) {
                let linked = self.read(&path, out);
                agents.extend(linked.map(|file| AgentFile { is_linked: true, ..file }));
            }
            next += 1;
        }
    }
}
