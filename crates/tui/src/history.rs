//! What was sent before, so that it can be called back and changed.
//!
//! The file has one JSON string in a line, the newest last; several processes may add to it. Lines of other forms are
//! entries too: older versions wrote plain text.

#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// How many entries are kept.
const MAX_ENTRIES: usize = 1_000;
/// How many bytes an entry may have.
const MAX_BYTES: usize = 16 * 1024;
/// How much of the end of a file is read: entries of the greatest length, with room for their escapes.
const MAX_READ_BYTES: u64 = 2 * (MAX_ENTRIES * MAX_BYTES) as u64;
/// The first line of files that older versions wrote.
const OLD_HEADER: &str = "#V2";

/// Messages sent before, and where in them the person is.
///
/// Going back begins with the draft, which returns after the newest entry. Entries never change.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    entries: Vec<String>,
    file: Option<PathBuf>,
    /// The entry that is shown; none while the draft is.
    shown: Option<usize>,
    draft: String,
}

impl History {
    /// A history that ends with the process.
    pub(crate) fn in_memory() -> Self {
        Self::default()
    }

    /// Reads a history as far as it can be read; a file that is missing or unreadable is an empty one.
    pub(crate) fn load(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let mut entries = read(&path).map(|text| entries_of(&text)).unwrap_or_default();
        let surplus = entries.len().saturating_sub(MAX_ENTRIES);
        entries.drain(..surplus);
        if surplus >= MAX_ENTRIES {
            // A file that cannot be shortened is only longer than it need be.
            let _ = rewrite(&path, &entries);
        }
        Self { entries, file: Some(path), ..Self::default() }
    }

    /// Adds what was sent, and returns to the draft. Blank text, text that was sent just before and very long text are
    /// not kept.
    pub(crate) fn add(&mut self, text: &str) -> io::Result<()> {
        self.shown = None;
        self.draft.clear();
        let known = self.entries.last().is_some_and(|last| last == text);
        if known || text.trim().is_empty() || text.len() > MAX_BYTES {
            return Ok(());
        }
        self.entries.push(text.to_owned());
        if self.entries.len() > MAX_ENTRIES {
            self.entries.remove(0);
        }
        self.file.as_deref().map_or(Ok(()), |file| append(file, text))
    }

    /// Returns the entry before the one that is shown. The draft is kept when going back begins.
    pub(crate) fn older(&mut self, draft: &str) -> Option<String> {
        let older = self.shown.unwrap_or(self.entries.len()).checked_sub(1)?;
        if self.shown.is_none() {
            draft.clone_into(&mut self.draft);
        }
        self.shown = Some(older);
        self.entries.get(older).cloned()
    }

    /// Returns the entry after the one that is shown, or the draft after the newest.
    pub(crate) fn newer(&mut self) -> Option<String> {
        let newer = self.shown? + 1;
        self.shown = (newer < self.entries.len()).then_some(newer);
        match self.shown {
            Some(newer) => self.entries.get(newer).cloned(),
            None => Some(std::mem::take(&mut self.draft)),
        }
    }
}

/// Reads the end of a file. A beginning that was cut off is not an entry.
fn read(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let skipped = file.metadata()?.len().saturating_sub(MAX_READ_BYTES);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(MAX_READ_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(match text.split_once('\n') {
        Some((_, whole)) if skipped > 0 => whole.to_owned(),
        _ => text,
    })
}

fn entries_of(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| *line != OLD_HEADER);
    let entries = lines.map(|line| serde_json::from_str(line).unwrap_or_else(|_| line.to_owned()));
    entries.filter(|entry| !entry.trim().is_empty() && entry.len() <= MAX_BYTES).collect()
}

/// Writes one line at once, so that lines of two processes do not mix.
fn append(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    private(OpenOptions::new().append(true).create(true)).open(path)?.write_all(line_of(text).as_bytes())
}

/// Writes the file anew beside the old one and puts it in its place.
fn rewrite(path: &Path, entries: &[String]) -> io::Result<()> {
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let lines: String = entries.iter().map(|entry| line_of(entry)).collect();
    let written = private(OpenOptions::new().write(true).create_new(true))
        .open(&beside)
        .and_then(|mut file| file.write_all(lines.as_bytes()))
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

fn line_of(text: &str) -> String {
    format!("{}\n", serde_json::Value::from(text))
}

/// Only the owner may read what was written to a model.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}
