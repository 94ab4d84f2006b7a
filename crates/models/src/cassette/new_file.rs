//! A file that takes the place of another when there is something in it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::regular_file;

/// A file that is written line by line, and which only its owner may read: prompts are private too.
pub(super) struct NewFile {
    file: File,
    /// The temporary path, and the path that it is renamed to; none once it was renamed.
    pub(super) target: Option<(PathBuf, PathBuf)>,
    /// Whether what it would replace is worth keeping.
    replaces: bool,
    pub(super) lines: usize,
}

impl NewFile {
    /// Opens a device.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).open(path)?;
        Ok(Self { file, target: None, replaces: false, lines: 0 })
    }

    /// Begins a file beside the one whose place it takes.
    pub(super) fn beside(path: &Path, replaces: bool) -> io::Result<Self> {
        // A link stays a link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let temporary = temporary_name(&path)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&temporary)?;
        Ok(Self { file, target: Some((temporary, path)), replaces, lines: 0 })
    }

    /// Opens a file to add lines to it. A last line that was cut while it was written is dropped.
    pub(super) fn behind(path: &Path) -> io::Result<Self> {
        let bytes = regular_file::read(path)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self { file, target: None, replaces: false, lines: 0 })
    }

    /// Adds a line that outlives a crash.
    pub(super) fn append(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes())?;
        self.lines += 1;
        // Devices have nothing to keep.
        if self.file.metadata()?.is_file() { self.file.sync_data() } else { Ok(()) }
    }

    /// Takes the other file's place, unless that is worth more.
    pub(super) fn stand_in(&mut self, is_worth_it: bool) -> io::Result<()> {
        if self.replaces && !is_worth_it {
            return Ok(());
        }
        if let Some((temporary, path)) = &self.target {
            fs::rename(temporary, path)?;
            self.target = None;
        }
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.target {
            // What stays behind does no harm.
            let _removed = fs::remove_file(temporary);
        }
    }
}

/// Returns a name that no other recording uses.
fn temporary_name(path: &Path) -> io::Result<PathBuf> {
    static BEGUN: AtomicU64 = AtomicU64::new(0);
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_owned();
    name.push(format!(".{}-{}.part", std::process::id(), BEGUN.fetch_add(1, Ordering::Relaxed)));
    Ok(path.with_file_name(name))
}
