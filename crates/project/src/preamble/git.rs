//! Describes a Git repository. Its files are read, and `git` is not run: a repository can configure programs to start.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// How large a file of a repository may be that is read.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// How many files of a repository are compared.
const MAX_FILES: usize = 50_000;

/// The bytes of an entry of the index before its path.
const ENTRY: usize = 62;

/// Describes the repository that a directory lies in: its branch, and whether files differ from what was staged.
pub(super) fn describe(directory: &Path) -> Option<String> {
    let directory = directory.canonicalize().ok()?;
    let (tree, git) =
        directory.ancestors().find_map(|tree| Some((tree.to_path_buf(), git_directory(tree)?)))?;
    let branch = branch(&git)?;
    Some(match is_changed(&tree, &git) {
        Some(true) => format!("{branch}, unstaged changes"),
        Some(false) => format!("{branch}, no unstaged changes"),
        None => branch,
    })
}

/// Returns the directory of a repository; that of a submodule or a linked working tree is named by a file.
///
/// The file comes with the project, and would make other repositories of the user tell their branches. So it counts
/// only if it names a directory of the repository around it, or one that names this working tree itself.
fn git_directory(tree: &Path) -> Option<PathBuf> {
    let path = tree.join(".git");
    if path.symlink_metadata().ok()?.is_dir() {
        return Some(path);
    }
    let text = String::from_utf8(read(&path)?).ok()?;
    let named = tree.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let is_around = |above: &Path| {
        let git = above.join(".git");
        git.symlink_metadata().is_ok_and(|data| data.is_dir()) && named.starts_with(git)
    };
    let is_submodule = tree.ancestors().skip(1).any(is_around);
    (is_submodule || named.starts_with(tree) || is_worktree(&named, &path)).then_some(named)
}

/// Returns whether a repository has this working tree: it keeps the path of its `.git` file.
fn is_worktree(named: &Path, file: &Path) -> bool {
    let kept = read(&named.join("gitdir")).and_then(|path| String::from_utf8(path).ok());
    kept.is_some_and(|kept| Path::new(kept.trim()).canonicalize().ok() == file.canonicalize().ok())
}

fn branch(git: &Path) -> Option<String> {
    let head = String::from_utf8(read(&git.join("HEAD"))?).ok()?;
    let head = head.trim();
    match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => Some(format!("branch {branch}")),
        None if head.len() >= 40 && head.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Some(format!("detached at {}", &head[..12]))
        }
        None => None,
    }
}

/// Reads a regular file: opening a pipe would wait for whoever writes to it, and a link leads elsewhere.
fn read(path: &Path) -> Option<Vec<u8>> {
    let is_file = |path: &&Path| path.symlink_metadata().is_ok_and(|data| data.is_file());
    let file = Some(path).filter(is_file).and_then(|path| std::fs::File::open(path).ok())?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns whether a file differs in size or time from what the index knows of it; nothing where that cannot be read.
fn is_changed(tree: &Path, git: &Path) -> Option<bool> {
    let index = read(&git.join("index"))?;
    let entries = IndexEntries::parse(&index)?;
    let mut looked_at = 0;
    for entry in entries {
        looked_at += 1;
        if looked_at > MAX_FILES {
            return None;
        }
        if entry?.differs(tree) {
            return Some(true);
        }
    }
    Some(false)
}

/// The entries of an index of version 2 or 3.
struct IndexEntries<'a> {
    rest: &'a [u8],
    left: u32,
}

/// A file as the index knows it.
struct IndexEntry<'a> {
    seconds: u32,
    nanoseconds: u32,
    mode: u32,
    size: u32,
    is_left_out: bool,
    path: &'a str,
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

impl<'a> IndexEntries<'a> {
    fn parse(index: &'a [u8]) -> Option<Self> {
        let is_known = index.starts_with(b"DIRC") && matches!(number(index, 4)?, 2 | 3);
        is_known.then_some(Self { rest: index.get(12..)?, left: number(index, 8)? })
    }

    fn read(&mut self) -> Option<IndexEntry<'a>> {
        let bytes = self.rest;
        let flags = u16::from_be_bytes(bytes.get(ENTRY - 2..ENTRY)?.try_into().ok()?);
        let is_extended = flags & 0x4000 != 0;
        let more =
            if is_extended { u16::from_be_bytes(bytes.get(ENTRY..ENTRY + 2)?.try_into().ok()?) } else { 0 };
        let start = ENTRY + if is_extended { 2 } else { 0 };
        let length = bytes.get(start..)?.iter().position(|byte| *byte == 0)?;
        let path = std::str::from_utf8(&bytes[start..start + length]).ok()?;
        // Each entry is padded to a multiple of eight bytes, with at least one zero.
        self.rest = bytes.get((start + length + 8) / 8 * 8..)?;
        Some(IndexEntry {
            seconds: number(bytes, 8)?,
            nanoseconds: number(bytes, 12)?,
            mode: number(bytes, 24)?,
            size: number(bytes, 36)?,
            is_left_out: more & 0x4000 != 0,
            path,
        })
    }
}

impl<'a> Iterator for IndexEntries<'a> {
    type Item = Option<IndexEntry<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let entry = self.read();
        if entry.is_none() {
            self.left = 0;
        }
        Some(entry)
    }
}

impl IndexEntry<'_> {
    fn differs(&self, tree: &Path) -> bool {
        let is_submodule = self.mode >> 12 == 0o16;
        if is_submodule || self.is_left_out {
            return false;
        }
        let Ok(metadata) = std::fs::symlink_metadata(tree.join(self.path)) else { return true };
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let Some(modified) = modified else { return true };
        let is_same_time = modified.as_secs() & 0xffff_ffff == u64::from(self.seconds)
            && (self.nanoseconds == 0 || modified.subsec_nanos() == self.nanoseconds);
        !is_same_time || metadata.len() & 0xffff_ffff != u64::from(self.size)
    }
}

#[cfg(test)]
mod tests {
    use llm_do_testing::TestDir;

    use super::*;

    /// A repository whose index knows one file as it is on the disk, or otherwise.
    fn repository(head: &str, version: u32, older_by: u32) -> TestDir {
        let tree = TestDir::new();
        std::fs::create_dir_all(tree.join(".git")).unwrap();
        std::fs::create_dir_all(tree.join("src")).unwrap();
        std::fs::write(tree.join("src/main.rs"), "fn main() {}").unwrap();
        std::fs::write(tree.join(".git/HEAD"), head).unwrap();
        let modified = std::fs::metadata(tree.join("src/main.rs")).unwrap().modified().unwrap();
        let modified = modified.duration_since(UNIX_EPOCH).unwrap();
        let mut index = b"DIRC".to_vec();
        let seconds = u32::try_from(modified.as_secs()).unwrap() - older_by;
        for number in [version, 2, 0, 0, seconds, modified.subsec_nanos(), 0, 0, 0o100_644, 0, 0, 12] {
            index.extend(number.to_be_bytes());
        }
        index.extend([7; 20]);
        index.extend(11u16.to_be_bytes());
        index.extend(b"src/main.rs");
        // 62 + 11 bytes are padded to 80. A submodule follows, which is a directory.
        index.extend([0; 7]);
        for number in [0, 0, 0, 0, 0, 0, 0o160_000, 0, 0, 0] {
            index.extend(u32::to_be_bytes(number));
        }
        index.extend([7; 20]);
        index.extend(3u16.to_be_bytes());
        index.extend(b"sub\0\0\0\0\0\0\0");
        std::fs::write(tree.join(".git/index"), index).unwrap();
        tree
    }

    #[test]
    fn the_branch_is_told_and_whether_files_differ_from_the_index() {
        let topic = "ref: refs/heads/topic\n";
        for (id, head, version, older_by, expected) in [
            ("same", topic, 2, 0, Some("branch topic, no unstaged changes")),
            ("changed", topic, 2, 5, Some("branch topic, unstaged changes")),
            ("unknown", topic, 4, 0, Some("branch topic")),
            (
                "detached",
                &"0123456789".repeat(4),
                3,
                0,
                Some("detached at 012345678901, no unstaged changes"),
            ),
            ("other", "ref: refs/remotes/x", 2, 0, None),
            ("nonsense", "../../etc/passwd", 2, 0, None),
        ] {
            let tree = repository(head, version, older_by);
            assert_eq!(describe(&tree.join("src")).as_deref(), expected, "{id}");
        }
    }

    #[test]
    fn a_file_that_names_another_repository_is_ignored() {
        let other = repository("ref: refs/heads/secret-plan", 2, 0);
        let tree = TestDir::new();
        std::fs::write(tree.join(".git"), format!("gitdir: {}\n", other.join(".git").display())).unwrap();
        assert_eq!(describe(tree.path()), None);

        // A linked working tree is known to its repository.
        let linked = other.join(".git/worktrees/clone");
        std::fs::create_dir_all(&linked).unwrap();
        std::fs::write(linked.join("HEAD"), "ref: refs/heads/topic").unwrap();
        std::fs::write(tree.join(".git"), format!("gitdir: {}\n", linked.display())).unwrap();
        assert_eq!(describe(tree.path()), None, "the repository does not name it");
        std::fs::write(linked.join("gitdir"), format!("{}\n", tree.join(".git").display())).unwrap();
        assert_eq!(describe(tree.path()).as_deref(), Some("branch topic"));

        // A submodule has its directory in the repository around it.
        let module = other.join(".git/modules/sub");
        std::fs::create_dir_all(&module).unwrap();
        std::fs::create_dir_all(other.join("sub")).unwrap();
        std::fs::write(module.join("HEAD"), "ref: refs/heads/of-sub").unwrap();
        std::fs::write(other.join("sub/.git"), "gitdir: ../.git/modules/sub\n").unwrap();
        assert_eq!(describe(&other.join("sub")).as_deref(), Some("branch of-sub"));
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
        let tree = repository("ref: refs/heads/topic", 2, 0);
        let head = tree.join(".git/HEAD");
        std::fs::remove_file(&head).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&head).status().unwrap().success());
        let (told, said) = std::sync::mpsc::channel();
        let described = tree.path().to_owned();
        std::thread::spawn(move || told.send(describe(&described)));
        assert_eq!(said.recv_timeout(std::time::Duration::from_secs(20)), Ok(None));
    }

    #[test]
    fn a_cut_index_says_nothing_about_changes() {
        let tree = repository("ref: refs/heads/topic", 2, 0);
        let index = std::fs::read(tree.join(".git/index")).unwrap();
        for length in 0..index.len() {
            std::fs::write(tree.join(".git/index"), &index[..length]).unwrap();
            let said = describe(tree.path()).unwrap();
            assert!(said == "branch topic" || length > index.len() - 8, "{length}: {said}");
        }
    }
}
