//! Finds the secret files below a directory through which a command searches.
//!
//! Every file that the command could read is looked at, so the search itself costs more than this.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ignore::WalkBuilder;

use super::secrets::{Judge, is_of_kernel};

/// How many files are looked at, and for how long.
const MAX_FILES: usize = 200_000;
const MAX_TIME: Duration = Duration::from_secs(3);
/// How many files are named to the model.
const MAX_NAMED: usize = 5;

/// What was found below directories.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// Secret files, from the directory in which commands run.
    pub(crate) paths: Vec<PathBuf>,
    /// Whether there was too much to look at.
    pub(crate) is_cut: bool,
    seen: usize,
}

impl Walked {
    /// Says what is left out.
    pub(crate) fn note(&self) -> Option<String> {
        let count = self.paths.len();
        let named = self.paths.iter().take(MAX_NAMED).map(|path| format!("`{}`", path.display()));
        let named: Vec<String> = named.collect();
        let more = if count > MAX_NAMED { " and others" } else { "" };
        match count {
            0 => None,
            1 => Some(format!("1 secret file was left out: {}", named.join(", "))),
            _ => Some(format!("{count} secret files were left out: {}{more}", named.join(", "))),
        }
    }
}

/// Looks for secret files below a directory.
pub(crate) fn secrets_below(
    start: &Path,
    judge: &Judge<'_>,
    respects_ignore_files: bool,
    walked: &mut Walked,
) {
    let until = Instant::now() + MAX_TIME;
    let mut look = |path: &Path| {
        walked.seen += 1;
        walked.is_cut |= walked.seen > MAX_FILES || Instant::now() > until;
        let below = path.strip_prefix(judge.root.path()).unwrap_or(path);
        // The directories on the way are not links; the file itself may be one.
        let target = path.is_symlink().then(|| judge.root.resolve(path)).flatten();
        if judge.file(target.as_deref().unwrap_or(path)).is_some_and(|(_, is_allowed)| !is_allowed) {
            walked.paths.push(below.to_path_buf());
        }
        !walked.is_cut
    };
    let Some(directory) = judge.root.resolve(start).filter(|directory| !is_of_kernel(directory)) else {
        return;
    };
    match respects_ignore_files {
        true => walk_as_ripgrep(&directory, &mut look),
        false => walk_everything(&directory, &mut look),
    }
}

/// Visits what ripgrep reads without further flags.
fn walk_as_ripgrep(directory: &Path, look: &mut dyn FnMut(&Path) -> bool) {
    let mut builder = WalkBuilder::new(directory);
    builder.same_file_system(true).git_global(false).add_custom_ignore_filename(".rgignore");
    for entry in builder.build().flatten() {
        if entry.file_type().is_some_and(|kind| !kind.is_dir()) && !look(entry.path()) {
            return;
        }
    }
}

/// Visits every file of one file system. A directory behind a link is visited if it lies elsewhere below the start, by
/// its own name.
fn walk_everything(start: &Path, look: &mut dyn FnMut(&Path) -> bool) {
    let device = |path: &Path| path.symlink_metadata().ok().map(|found| found.dev());
    let (mut pending, start_device) = (vec![start.to_path_buf()], device(start));
    while let Some(directory) = pending.pop() {
        if is_of_kernel(&directory) || device(&directory) != start_device {
            continue;
        }
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => pending.push(path),
                Ok(_) if !look(&path) => return,
                _ => {}
            }
        }
    }
}
