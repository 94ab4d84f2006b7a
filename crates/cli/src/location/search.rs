//! Searches a directory and its parents for a project.
//!
//! The search never enters a directory that others can write to, and does not go up past a change of owner, a border of
//! file systems or the home directory: a manifest that somebody left in `/tmp` or `/srv` is not taken for the user's.

use std::path::{Path, PathBuf};

use llm_do_project::discovery::{Membership, agent_files_in, is_project_directory, manifest_in, membership};
use llm_do_trust::is_writable_by_others;

/// The directories that may be searched, the nearest first, and why there are no more.
pub(super) struct Ancestors {
    pub(super) directories: Vec<PathBuf>,
    /// The first directory that is not searched; none at the root of the file system.
    pub(super) stopped: Option<(PathBuf, &'static str)>,
}

impl Ancestors {
    /// Collects a directory and its parents. `start` is an absolute path without links.
    pub(super) fn new(start: &Path, home: Option<&Path>) -> Self {
        let mut directories: Vec<PathBuf> = Vec::new();
        for directory in start.ancestors() {
            let below = directories.last().map(PathBuf::as_path);
            if let Some(reason) = border(below, directory, home) {
                return Self { directories, stopped: Some((directory.to_path_buf(), reason)) };
            }
            directories.push(directory.to_path_buf());
        }
        Self { directories, stopped: None }
    }

    /// Returns the nearest directory that holds a project.
    ///
    /// Agent files without a manifest are a project of their own, unless a manifest above lists one of them: the folder
    /// `agents` of a project is not another project.
    pub(super) fn project(&self) -> Option<&Path> {
        let index = self.directories.iter().position(|directory| is_project_directory(directory))?;
        let (nearest, above) = (&self.directories[index], &self.directories[index + 1..]);
        let files = if manifest_in(nearest).is_some() { Vec::new() } else { agent_files_in(nearest) };
        let lists_one = |manifest: &Path| files.iter().any(|file| is_member(manifest, file));
        let owner = above.iter().find(|directory| manifest_in(directory).is_some());
        let owner = owner.filter(|directory| manifest_in(directory).is_some_and(|path| lists_one(&path)));
        Some(owner.unwrap_or(nearest))
    }

    /// Returns the nearest manifest.
    pub(super) fn manifest(&self) -> Option<PathBuf> {
        self.directories.iter().find_map(|directory| manifest_in(directory))
    }
}

fn is_member(manifest: &Path, file: &Path) -> bool {
    matches!(membership(manifest, file), Membership::Entry | Membership::Agent(_))
}

/// Why a directory is not searched, coming from the one below it.
fn border(below: Option<&Path>, directory: &Path, home: Option<&Path>) -> Option<&'static str> {
    if is_writable_by_others(directory) {
        return Some("others can write to it");
    }
    let below = below?;
    // Whoever starts in the home directory means it; from below, one agent file there would catch every directory.
    if home == Some(directory) || home == Some(below) {
        return Some("the search ends at the home directory");
    }
    owner_or_device_border(below, directory)
}

#[cfg(unix)]
fn owner_or_device_border(below: &Path, directory: &Path) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt;
    let (Ok(below), Ok(directory)) = (below.metadata(), directory.metadata()) else {
        return Some("it cannot be read");
    };
    if below.uid() != directory.uid() {
        return Some("it belongs to another user");
    }
    (below.dev() != directory.dev()).then_some("it is on another file system")
}

/// This system has no owners that llm-do knows.
#[cfg(not(unix))]
fn owner_or_device_border(_: &Path, _: &Path) -> Option<&'static str> {
    None
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const AGENT: &str = "---\nname: main\n---\nHelp.\n";

    /// `top/middle/bottom`, each private to the user.
    fn directories() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("middle/bottom")).unwrap();
        for path in [top.clone(), top.join("middle"), top.join("middle/bottom")] {
            set_mode(&path, 0o755);
        }
        (directory, top)
    }

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn found(start: &Path, home: Option<&Path>) -> Option<PathBuf> {
        Ancestors::new(start, home).project().map(Path::to_path_buf)
    }

    #[test]
    fn the_nearest_directory_with_a_project_is_found() {
        let (_kept, top) = directories();
        let bottom = top.join("middle/bottom");
        assert_eq!(found(&bottom, Some(&top)), None);
        std::fs::write(top.join("middle/main.agent"), AGENT).unwrap();
        assert_eq!(found(&bottom, None), Some(top.join("middle")));
        std::fs::write(bottom.join("main.agent"), AGENT).unwrap();
        assert_eq!(found(&bottom, None), Some(bottom));
    }

    #[test]
    fn the_folder_of_a_manifests_agents_belongs_to_the_manifest() {
        let (_kept, top) = directories();
        let bottom = top.join("middle/bottom");
        std::fs::write(bottom.join("main.agent"), AGENT).unwrap();
        let manifest = |files: &str| {
            let text = format!("version: 1\nentry: {{agent: main}}\nagent_files: [{files}]\n");
            std::fs::write(top.join("project.yaml"), text).unwrap();
        };
        manifest("middle/bottom/main.agent");
        assert_eq!(found(&bottom, None), Some(top.clone()));
        manifest("'other/*.agent'");
        assert_eq!(found(&bottom, None), Some(bottom));
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_neither_entered_nor_passed() {
        for mode in [0o777, 0o1777, 0o757] {
            let (_kept, top) = directories();
            let (middle, bottom) = (top.join("middle"), top.join("middle/bottom"));
            std::fs::write(top.join("main.agent"), AGENT).unwrap();
            std::fs::write(middle.join("main.agent"), AGENT).unwrap();
            set_mode(&middle, mode);
            assert_eq!(found(&bottom, None), None, "{mode:o}");
            assert_eq!(found(&middle, None), None, "{mode:o}");
            let stopped = Ancestors::new(&bottom, None).stopped;
            assert_eq!(stopped, Some((middle, "others can write to it")), "{mode:o}");
        }
    }

    #[test]
    fn the_search_ends_below_the_home_directory() {
        let (_kept, top) = directories();
        let (middle, bottom) = (top.join("middle"), top.join("middle/bottom"));
        std::fs::write(top.join("main.agent"), AGENT).unwrap();
        std::fs::write(middle.join("main.agent"), AGENT).unwrap();
        assert_eq!(found(&bottom, Some(&middle)), None);
        // Whoever is in the home directory means it, and nothing above it.
        assert_eq!(found(&middle, Some(&middle)), Some(middle.clone()));
        std::fs::remove_file(middle.join("main.agent")).unwrap();
        assert_eq!(found(&middle, Some(&middle)), None);
        assert_eq!(found(&bottom, None), Some(top));
    }

    #[test]
    fn another_owner_and_another_file_system_are_borders() {
        let (_kept, top) = directories();
        let (middle, bottom) = (top.join("middle"), top.join("middle/bottom"));
        assert_eq!(owner_or_device_border(&bottom, &middle), None);
        assert_eq!(owner_or_device_border(&bottom, &top.join("gone")), Some("it cannot be read"));
        // /proc is a file system of its own wherever it exists; only root may give files away.
        if Path::new("/proc/self").exists() {
            assert!(owner_or_device_border(Path::new("/proc"), Path::new("/")).is_some());
        }
        if std::os::unix::fs::chown(&middle, Some(65_534), None).is_ok() {
            std::fs::write(top.join("main.agent"), AGENT).unwrap();
            assert_eq!(found(&bottom, None), None);
            let stopped = Ancestors::new(&bottom, None).stopped;
            assert_eq!(stopped, Some((middle, "it belongs to another user")));
        }
    }
}
