//! Files whose content an agent starts with, as one `<preload>` block.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use llm_do_secrets::SecretFiles;

use crate::catalog::Host;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{entry_span, span_of};
use crate::project_files::ProjectFiles;
use crate::read::agent::Agent;
use crate::read::program_links::below;

/// The key of the list.
const KEY: &str = "preload";

/// How many bytes of one file are given.
const MAX_BYTES: usize = 100_000;

/// How many bytes of all files together are given.
const MAX_TOTAL_BYTES: usize = 400_000;

/// How many files one agent names at most.
const MAX_ITEMS: usize = 200;

/// The files of one agent.
pub(super) struct Preload {
    root: PathBuf,
    /// Paths below the root.
    files: Vec<PathBuf>,
    secret_files: SecretFiles,
}

impl Preload {
    /// Reads the list of an agent, and reports what is wrong with the files.
    pub(super) fn read(
        agent: &Agent,
        root: &Path,
        own: &ProjectFiles,
        host: &dyn Host,
        out: &mut Diagnostics,
    ) -> Option<Self> {
        let names = &agent.header.preload;
        if names.len() > MAX_ITEMS {
            let message = format!("`{KEY}` names {} files, more than {MAX_ITEMS}", names.len());
            out.push(Diagnostic::error_at(&agent.file.source, &span_of(&agent.file.header, KEY), message));
            return None;
        }
        // What is wrong with a glob is told about the manifest.
        let secret_files = own.secret_files(root).unwrap_or_default();
        let mut preload = Self { root: root.to_path_buf(), files: Vec::new(), secret_files };
        for (index, name) in names.iter().enumerate() {
            let mut refuse = |message: String| {
                let span = entry_span(&agent.file.header, KEY, name);
                out.push(
                    Diagnostic::error_at(&agent.file.source, &span, format!("`{KEY}`: {message}"))
                        .with_hint("name a text file inside the project, relative to this file"),
                );
            };
            let path = below(root, &agent.file.source.path, name).filter(|path| path.file_name().is_some());
            let Some(path) = path else {
                refuse(format!("`{name}` lies outside the project"));
                continue;
            };
            if names[..index].contains(name) {
                refuse(format!("duplicate entry `{name}`"));
                continue;
            }
            match preload.shown(&path, MAX_BYTES, host) {
                Ok(_) => preload.files.push(path),
                Err(message) => refuse(message),
            }
        }
        (!preload.files.is_empty()).then_some(preload)
    }

    /// Makes the block.
    pub(super) fn text(&self, host: &dyn Host) -> Result<String, String> {
        let mut text = "<preload>\n".to_owned();
        let mut room = MAX_TOTAL_BYTES;
        for path in &self.files {
            let shown = self.shown(path, room.min(MAX_BYTES), host)?;
            room = room.saturating_sub(shown.text.len());
            let inner = without_tags(&shown.text);
            text.push_str(&format!("<file path=\"{}\">\n{inner}", escaped(path)));
            if !shown.text.ends_with('\n') && !shown.text.is_empty() {
                text.push('\n');
            }
            if shown.text.len() < shown.size {
                let (given, size) = (shown.text.len(), shown.size);
                text.push_str(&format!("[cut: the first {given} of {size} bytes are shown]\n"));
            }
            text.push_str("</file>\n");
        }
        text.push_str("</preload>");
        Ok(text)
    }

    /// Reads the beginning of a file below the root. No link leads out of it.
    fn shown(&self, path: &Path, most: usize, host: &dyn Host) -> Result<FileExcerpt, String> {
        let name = path.display();
        if host.is_private(&self.root.join(path)) {
            return Err(format!("`{name}` belongs to llm-do itself, and projects cannot read it"));
        }
        let refused = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => format!("`{name}` was not found"),
            ErrorKind::PermissionDenied if self.root.join(path).is_symlink() => {
                format!("`{name}` is a link that leads outside the project")
            }
            _ => format!("`{name}` cannot be read: {error}"),
        };
        let root = Dir::open_ambient_dir(&self.root, ambient_authority()).map_err(refused)?;
        let metadata = root.metadata(path).map_err(refused)?;
        if !metadata.is_file() {
            return Err(format!("`{name}` is not a regular file"));
        }
        let mut bytes = Vec::new();
        let file = root.open(path).map_err(refused)?;
        file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(refused)?;
        let real = self.root.join(path).canonicalize().map_err(refused)?;
        if let Some(kind) = self.secret_files.judge(&real, &bytes) {
            return Err(format!(
                "`{name}` is a secret file ({kind}); if it is not really secret, add it to `secret_files.allow` in the \
                 manifest"
            ));
        }
        let size = bytes.len().max(usize::try_from(metadata.len()).unwrap_or(usize::MAX));
        bytes.truncate(most);
        let text = String::from_utf8(bytes).or_else(|error| whole_characters(error, size));
        Ok(FileExcerpt { text: text.map_err(|()| format!("`{name}` is not UTF-8 text"))?, size })
    }
}

/// What is given of a file.
struct FileExcerpt {
    text: String,
    size: usize,
}

/// A cut may have gone through a character; everything else is not text.
fn whole_characters(error: std::string::FromUtf8Error, size: usize) -> Result<String, ()> {
    let valid = error.utf8_error().valid_up_to();
    let is_cut = error.utf8_error().error_len().is_none();
    let mut bytes = error.into_bytes();
    if !is_cut || bytes.len() == size {
        return Err(());
    }
    bytes.truncate(valid);
    String::from_utf8(bytes).map_err(drop)
}

/// Escapes closing tags, so that no text ends its block.
fn without_tags(text: &str) -> String {
    text.replace("</file", "&lt;/file").replace("</preload", "&lt;/preload")
}

/// A path as the value of an attribute.
fn escaped(path: &Path) -> String {
    let path = path.display().to_string();
    let mut text = String::with_capacity(path.len());
    for c in path.chars() {
        match c {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '"' => text.push_str("&quot;"),
            c if c.is_control() => text.push_str(&format!("&#{};", u32::from(c))),
            c => text.push(c),
        }
    }
    text
}
