//! Linked worktrees of git: another checkout of a repository that may be trusted already.

use std::fs;
use std::path::{Path, PathBuf};

/// The longest `.git` or `gitdir` file that is read.
const MAX_POINTER_BYTES: u64 = 64 * 1024;

/// Returns the same directory in the main checkout, if a directory lies in a linked worktree.
///
/// The `.git` file of a checkout proves nothing, since anybody can write one. What counts is the back pointer in the
/// main repository, which names the worktree.
pub(crate) fn in_main_checkout(directory: &Path) -> Option<PathBuf> {
    let checkout = directory.ancestors().find(|ancestor| ancestor.join(".git").exists())?;
    let pointer = read_pointer(&checkout.join(".git"))?;
    let registered = PathBuf::from(pointer.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let worktrees = registered.parent()?;
    let repository = worktrees.parent()?;
    if worktrees.file_name()? != "worktrees" || repository.file_name()? != ".git" {
        return None;
    }
    let back = PathBuf::from(read_pointer(&registered.join("gitdir"))?.trim());
    if back.canonicalize().ok()? != checkout.join(".git").canonicalize().ok()? {
        return None;
    }
    let main = repository.parent()?.join(directory.strip_prefix(checkout).ok()?);
    main.is_dir().then_some(main)
}

fn read_pointer(path: &Path) -> Option<String> {
    let metadata = fs::symlink_metadata(path).ok()?;
    let is_small_file = metadata.is_file() && metadata.len() <= MAX_POINTER_BYTES;
    is_small_file.then(|| fs::read_to_string(path).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with a linked worktree, as git lays them out.
    fn checkouts() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (main, linked) = (root.join("main"), root.join("linked"));
        let registered = main.join(".git/worktrees/linked");
        fs::create_dir_all(&registered).unwrap();
        fs::create_dir_all(main.join("agents")).unwrap();
        fs::create_dir_all(linked.join("agents")).unwrap();
        fs::write(linked.join(".git"), format!("gitdir: {}\n", registered.display())).unwrap();
        fs::write(registered.join("gitdir"), format!("{}\n", linked.join(".git").display())).unwrap();
        (folder, main, linked)
    }

    #[test]
    fn a_linked_worktree_is_found_by_its_back_pointer() {
        let (_folder, main, linked) = checkouts();
        assert_eq!(in_main_checkout(&linked), Some(main.clone()));
        assert_eq!(in_main_checkout(&linked.join("agents")), Some(main.join("agents")));
        assert_eq!(in_main_checkout(&main), None);
    }

    #[test]
    fn a_forged_pointer_proves_nothing() {
        let (folder, main, _) = checkouts();
        let forged = folder.path().join("forged");
        fs::create_dir(&forged).unwrap();
        let registered = main.join(".git/worktrees/linked");
        fs::write(forged.join(".git"), format!("gitdir: {}\n", registered.display())).unwrap();
        assert_eq!(in_main_checkout(&forged), None);
    }
}
