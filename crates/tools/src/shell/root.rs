//! The directory in which commands run, and the question whether a path leads out of it.
//!
//! Links are followed step by step, as the kernel would. The answer holds for the moment: a program that
//! runs later may find other links, so this confines programs that are only mistaken, together with the
//! approval that everything else needs.

use crate::toolset_error::ToolsetError;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// How many links one path may lead through, as in the kernel.
const MAX_LINKS: usize = 40;

/// How many entries are looked at for links that lead out.
const MAX_ENTRIES: usize = 20_000;

/// The directory in which commands run, with its links resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root(PathBuf);

impl Root {
    /// Takes a directory that exists.
    pub(crate) fn new(directory: &Path) -> Result<Self, ToolsetError> {
        let resolved = fs::canonicalize(directory).map_err(ToolsetError::path(directory))?;
        if resolved.is_dir() {
            return Ok(Self(resolved));
        }
        Err(ToolsetError::Setting(format!("`{}` is not a directory", directory.display())))
    }

    /// Returns the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns whether a path, as a program in this directory understands it, leads out.
    pub(crate) fn is_outside(&self, path: &str) -> bool {
        self.resolve(Path::new(path)).is_none_or(|resolved| !resolved.starts_with(&self.0))
            && path != "/dev/null"
    }

    /// Returns whether a link below a path leads out; also when there is too much to look at.
    pub(crate) fn has_links_out(&self, path: &str) -> bool {
        let Some(start) = self.resolve(Path::new(path)) else { return true };
        let mut seen = BTreeSet::from([start.clone()]);
        let mut pending = VecDeque::from([start]);
        let mut entries = 0;
        while let Some(directory) = pending.pop_front() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                entries += 1;
                let Some(next) = self.resolve(&entry.path()).filter(|next| next.starts_with(&self.0)) else {
                    return true;
                };
                if entries > MAX_ENTRIES {
                    return true;
                }
                if next.is_dir() && seen.insert(next.clone()) {
                    pending.push_back(next);
                }
            }
        }
        false
    }

    /// Follows a path to its end; what does not exist is taken as it is written.
    ///
    /// Below `/proc` the same name leads every process elsewhere, so nothing is returned for what passes there.
    pub(crate) fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let mut resolved = self.0.clone();
        let mut pending: Vec<OsString> = parts(path);
        let mut links = 0;
        while let Some(part) = pending.pop() {
            match Path::new(&part).components().next() {
                Some(Component::RootDir) => resolved = PathBuf::from("/"),
                Some(Component::ParentDir) => {
                    resolved.pop();
                }
                Some(Component::Normal(name)) => {
                    let candidate = resolved.join(name);
                    if candidate.starts_with("/proc") {
                        return None;
                    }
                    match fs::read_link(&candidate) {
                        Ok(target) => pending.extend(parts(&target)),
                        Err(_no_link) => {
                            resolved = candidate;
                            continue;
                        }
                    }
                    links += 1;
                    if links > MAX_LINKS {
                        return None;
                    }
                }
                _ => {}
            }
        }
        Some(resolved)
    }
}

/// The parts of a path, the first one last.
fn parts(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use llm_do_testing::TestDir;
    use std::os::unix::fs::symlink;

    struct Folder(TestDir);

    impl Folder {
        fn new() -> Self {
            let directory = TestDir::new();
            fs::create_dir_all(directory.join("root/sub")).unwrap();
            fs::create_dir(directory.join("outside")).unwrap();
            Self(directory)
        }

        fn root(&self) -> Root {
            Root::new(&self.0.join("root")).unwrap()
        }
    }

    #[test]
    fn paths_are_judged_by_where_they_lead() {
        let folder = Folder::new();
        symlink("../outside", folder.0.join("root/out")).unwrap();
        symlink("sub", folder.0.join("root/in")).unwrap();
        symlink("loop", folder.0.join("root/loop")).unwrap();
        symlink("/", folder.0.join("root/sub/top")).unwrap();
        let root = folder.root();
        let absolute = root.path().join("sub").display().to_string();
        for inside in
            ["", ".", "sub", "a/b/c", "sub/../sub", "in/x", "in/..", "main..feature", "/dev/null", "-"]
        {
            assert!(!root.is_outside(inside), "{inside}");
        }
        assert!(!root.is_outside(&absolute));
        for outside in
            ["..", "/", "out", "out/x", "sub/../../x", "nothing/../../x", "loop", "in/../../x", "sub/top/x"]
        {
            assert!(root.is_outside(outside), "{outside}");
        }
    }

    #[test]
    fn what_passes_through_proc_leads_out_wherever_this_process_is() {
        let folder = Folder::new();
        symlink("/proc/self/cwd", folder.0.join("root/here")).unwrap();
        let root = folder.root();
        let up: String = std::env::current_dir().unwrap().components().skip(1).map(|_| "../").collect();
        let inside = root.path().strip_prefix("/").unwrap().display().to_string();
        for link in
            ["/proc/self/cwd/", "/proc/thread-self/cwd/", "/proc/1/cwd/", "/proc/self/task/1/cwd/", "here/"]
        {
            assert!(root.is_outside(&format!("{link}{up}{inside}")), "{link}");
        }
        let this = std::process::id();
        for path in [format!("/proc/{this}/root/{inside}"), format!("/proc/../{inside}")] {
            assert!(root.is_outside(&path), "{path}");
        }
        for path in ["/proc/self/fd/0", "/dev/fd/0", "/dev/stdin", "/dev/fd/../cwd", "here", "here/x"] {
            assert!(root.is_outside(path), "{path}");
        }
    }

    #[test]
    fn links_that_lead_out_are_found_wherever_they_can_be_reached() {
        let folder = Folder::new();
        let root = folder.root();
        fs::create_dir_all(folder.0.join("root/other/deep")).unwrap();
        symlink("../other", folder.0.join("root/sub/inside")).unwrap();
        assert!(!root.has_links_out("sub"));
        symlink("../../../outside", folder.0.join("root/other/deep/out")).unwrap();
        assert!(root.has_links_out("sub"), "through a link to a directory inside");
        assert!(root.has_links_out("."));
    }
}
