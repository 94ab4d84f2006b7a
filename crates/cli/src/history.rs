//! The messages that were sent in lines before, in a file that several processes share.
//!
//! Each message is one line, added as soon as it is sent. A lock beside the file keeps a process that shortens it from
//! losing what another one adds meanwhile. Line ends and backslashes in a message are escaped (`\\n`, `\\\\`); files that
//! begin with another line than [`HEADER`] have no escapes and are written anew.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// The first line of the file: the format of the line editor.
const HEADER: &str = "#V2\n";
/// How many messages are kept when the file is shortened, and offered again.
const MAX_ENTRIES: usize = 1_000;
/// The longest message that is kept.
const MAX_ENTRY_BYTES: usize = 16 * 1024;
/// The file is shortened beyond this size, to at most half of it.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A file of messages.
pub(crate) struct History {
    path: PathBuf,
}

impl History {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Reads the messages, oldest first. A file that cannot be read is an empty one.
    pub(crate) fn entries(&self) -> Vec<String> {
        let mut entries = read_end(&self.path).map(|text| parse(&text)).unwrap_or_default();
        entries.drain(..entries.len().saturating_sub(MAX_ENTRIES));
        entries
    }

    /// Adds a message. Blank and very long ones are not kept.
    pub(crate) fn add(&self, message: &str) -> io::Result<()> {
        if message.trim().is_empty() || message.len() > MAX_ENTRY_BYTES {
            return Ok(());
        }
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        let _lock = self.lock()?;
        self.prepare()?;
        let mut file = private().append(true).create(true).open(&self.path)?;
        let header = if file.metadata()?.len() == 0 { HEADER } else { "" };
        file.write_all(format!("{header}{}", line(message)).as_bytes())
    }

    /// Waits for its turn. The lock ends with the file that is returned.
    fn lock(&self) -> io::Result<File> {
        let lock = private().write(true).create(true).open(self.path.with_extension("lock"))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(lock)
    }

    /// Writes the file anew if it is too long or has no escapes.
    fn prepare(&self) -> io::Result<()> {
        let mut start = Vec::new();
        let length = match File::open(&self.path) {
            Ok(file) => {
                let length = file.metadata()?.len();
                file.take(HEADER.len() as u64).read_to_end(&mut start)?;
                length
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let is_usual = start.is_empty() || start == HEADER.as_bytes();
        if is_usual && length <= MAX_FILE_BYTES { Ok(()) } else { self.rewrite() }
    }

    fn rewrite(&self) -> io::Result<()> {
        let lines: Vec<String> = self.entries().iter().map(|entry| line(entry)).collect();
        let mut size = 0;
        let newest = lines.iter().rev().take_while(|line| {
            size += line.len() as u64;
            size <= MAX_FILE_BYTES / 2
        });
        let kept: String = lines[lines.len() - newest.count()..].concat();
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let mut beside = tempfile::NamedTempFile::new_in(directory)?;
        beside.write_all(format!("{HEADER}{kept}").as_bytes())?;
        beside.persist(&self.path)?;
        Ok(())
    }
}

/// Only the owner may read what was written to a model.
fn private() -> OpenOptions {
    let mut options = File::options();
    options.mode(0o600);
    options
}

/// Reads the last part of a file, and its header. A line that was cut is left out.
fn read_end(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let skipped = file.metadata()?.len().saturating_sub(MAX_FILE_BYTES);
    let mut start = Vec::new();
    (&file).take(HEADER.len() as u64).read_to_end(&mut start)?;
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if skipped == 0 {
        return Ok(text);
    }
    let whole = text.split_once('\n').map_or("", |(_, whole)| whole);
    Ok(if start == HEADER.as_bytes() { format!("{HEADER}{whole}") } else { whole.to_owned() })
}

fn parse(text: &str) -> Vec<String> {
    let entries = match text.strip_prefix(HEADER) {
        Some(lines) => lines.lines().map(unescape).collect::<Vec<_>>(),
        None => text.lines().map(str::to_owned).collect(),
    };
    entries.into_iter().filter(|entry| !entry.trim().is_empty()).collect()
}

fn line(message: &str) -> String {
    format!("{}\n", message.replace('\\', "\\\\").replace('\n', "\\n"))
}

fn unescape(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some(other) => text.push(other),
                None => text.push('\\'),
            },
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(directory: &tempfile::TempDir) -> History {
        History::new(directory.path().join("state/history"))
    }

    #[test]
    fn messages_come_back_as_they_were() {
        let directory = tempfile::tempdir().unwrap();
        let messages = ["one", "two\nlines", "C:\\new", " indented", "#V2"];
        for message in messages {
            history(&directory).add(message).unwrap();
        }
        history(&directory).add("  ").unwrap();
        history(&directory).add(&"x".repeat(MAX_ENTRY_BYTES + 1)).unwrap();
        assert_eq!(history(&directory).entries(), messages);
        let text = fs::read_to_string(&history(&directory).path).unwrap();
        assert_eq!(text, "#V2\none\ntwo\\nlines\nC:\\\\new\n indented\n#V2\n");
    }

    #[test]
    fn a_file_without_escapes_is_read_as_it_is_and_written_anew() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("state")).unwrap();
        fs::write(&history(&directory).path, "C:\\new\n\ntwo\n").unwrap();
        history(&directory).add("three").unwrap();
        assert_eq!(history(&directory).entries(), ["C:\\new", "two", "three"]);
    }

    #[test]
    fn every_line_of_several_writers_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let history = history(&directory);
                scope.spawn(move || {
                    for number in 0..50 {
                        history.add(&format!("{writer}-{number}")).unwrap();
                    }
                });
            }
        });
        let mut entries = history(&directory).entries();
        entries.sort();
        entries.dedup();
        assert_eq!(entries.len(), 400);
    }

    #[test]
    fn the_file_stays_short_while_several_write_and_the_newest_lines_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let history = history(&directory);
                scope.spawn(move || {
                    for number in 0..40 {
                        history
                            .add(&format!("{writer}-{number} {}", "x".repeat(MAX_ENTRY_BYTES - 10)))
                            .unwrap();
                    }
                });
            }
        });
        let history = history(&directory);
        assert!(fs::metadata(&history.path).unwrap().len() <= MAX_FILE_BYTES + MAX_ENTRY_BYTES as u64 * 2);
        let entries = history.entries();
        // Every writer's lines are kept without a gap up to its last one.
        for writer in 0..4 {
            let own = entries.iter().filter_map(|entry| entry.strip_prefix(&format!("{writer}-")));
            let numbers: Vec<usize> =
                own.map(|rest| rest.split(' ').next().unwrap().parse().unwrap()).collect();
            let first = numbers.first().copied().unwrap_or(40);
            assert_eq!(numbers, (first..40).collect::<Vec<_>>(), "writer {writer}");
        }
        assert!(entries.len() >= 20, "{}", entries.len());
    }
}
