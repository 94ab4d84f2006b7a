//! The files that define a project, for the record of a run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use llm_do_core::{BundledFile, MAX_BUNDLED_BYTES, ProjectBundle};
use llm_do_secrets::{secret_kind, secrets_in};

use crate::diagnostic::{Diagnostics, shown_path};
use crate::file_reader::{FileReader, is_code};
use crate::read::agent::{Agent, read_headers};
use crate::read::overrides::Overrides;
use crate::read::{self, Files};
use crate::source::SourceFile;

/// The models that answer from a file of the project.
const SCRIPT: &str = "script:";

/// Returns the files of a project on disk, whether it can be linked or not. If it cannot even be read as a whole, the
/// files of an earlier bundle are looked for, too, so that they can be compared.
///
/// The code of the project is not run, and classes that only agents name are not looked for.
pub fn read_bundle(
    path: impl AsRef<Path>,
    changes: &[String],
    root: impl AsRef<Path>,
    earlier: &ProjectBundle,
) -> ProjectBundle {
    let mut out = Diagnostics::default();
    let changes = Overrides::read(changes, &mut out);
    let files = read::read_project(path.as_ref(), FileReader::DISK, &changes, &mut out);
    let mut bundle = ProjectBundle::default();
    if let Some(mut files) = files {
        let headers = read_headers(std::mem::take(&mut files.agents), &mut out);
        bundle = DefiningFiles::new(&files, &headers.agents).bundle();
    }
    for (path, _) in earlier.files().filter(|(path, _)| is_code(Path::new(path)) || out.has_errors()) {
        if bundle.get(path).is_none() {
            add_from_disk(&mut bundle, root.as_ref(), &root.as_ref().join(path));
        }
    }
    bundle
}

/// The files that define a project: what was read of it, and what is read only when somebody asks for the bundle.
#[derive(Debug, Clone, Default)]
pub(crate) struct DefiningFiles {
    root: PathBuf,
    texts: Vec<(PathBuf, Arc<str>)>,
    /// Its code and its scripts.
    on_disk: Vec<PathBuf>,
}

impl DefiningFiles {
    /// Collects the files of a project. Agents that agents created are not a part of it that persons wrote.
    pub(crate) fn new(files: &Files, agents: &[Agent]) -> Self {
        let manifest = files.manifest.as_ref().map(|file| &file.source);
        // What the command line sets makes a manifest that is in no file.
        let is_file = |source: &&SourceFile| files.own.paths.iter().any(|own| shown_path(own) == source.path);
        let by_people = agents.iter().map(|agent| &agent.file).filter(|file| !file.generated);
        let sources = manifest.filter(is_file).into_iter().chain(by_people.clone().map(|file| &file.source));
        let sources = sources.map(|source| (source.path.clone(), source.text.clone()));
        let prompts = by_people.filter_map(|file| file.program.as_ref()).flat_map(|program| &program.files);
        let code = files.own.paths.iter().filter(|path| is_code(path)).cloned();
        Self {
            root: files.root.clone(),
            texts: sources.chain(prompts.cloned()).collect(),
            on_disk: code.chain(scripts(files, agents)).collect(),
        }
    }

    /// Returns the files, without those that are secret.
    pub(crate) fn bundle(&self) -> ProjectBundle {
        let mut bundle = ProjectBundle::default();
        for (path, text) in &self.texts {
            add(&mut bundle, &self.root, path, text.as_bytes());
        }
        for path in &self.on_disk {
            add_from_disk(&mut bundle, &self.root, path);
        }
        bundle
    }
}

/// The files from which scripted models answer.
fn scripts(files: &Files, agents: &[Agent]) -> impl Iterator<Item = PathBuf> {
    let general = files.manifest.iter().filter_map(|file| file.manifest.model.as_deref());
    let own = agents.iter().flat_map(|agent| agent.header.model.iter().chain(&agent.header.fallback_models));
    let names = general.chain(own.map(String::as_str)).filter_map(|model| model.strip_prefix(SCRIPT));
    names.map(|name| files.root.join(name)).collect::<Vec<_>>().into_iter()
}

fn add_from_disk(bundle: &mut ProjectBundle, root: &Path, path: &Path) {
    let is_inside = match (root.canonicalize(), path.canonicalize()) {
        (Ok(root), Ok(real)) => real.starts_with(root) && real.is_file(),
        _ => false,
    };
    if is_inside && let Ok(content) = std::fs::read(path) {
        // As the reader of texts does.
        let content = content.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&content);
        add(bundle, root, path, content);
    }
}

/// Adds a file, unless it is secret: then the record knows nothing of it.
fn add(bundle: &mut ProjectBundle, root: &Path, path: &Path, content: &[u8]) {
    let real = path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_default();
    let is_secret = || {
        let text = &content[..content.len().min(MAX_BUNDLED_BYTES)];
        secret_kind(&real, content).is_some() || secrets_in(text).next().is_some()
    };
    if let Some(name) = name_below(root, path).filter(|_| !is_secret()) {
        bundle.insert(name, BundledFile::new(content));
    }
}

/// The path below the directory of the project, as it is written.
fn name_below(root: &Path, path: &Path) -> Option<String> {
    let (path, root) = (shown_path(path), shown_path(root));
    let below = path.strip_prefix(root).ok()?;
    let parts: Option<Vec<&str>> = below.components().map(|part| part.as_os_str().to_str()).collect();
    parts.map(|parts| parts.join("/"))
}
