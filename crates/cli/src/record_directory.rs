//! Where the user's own record is: in the state directory, or on a local disk if that one is on a network.

use std::path::{Path, PathBuf};

use llm_do_record::unsafe_file_system;

use crate::config::shown;
use crate::environment::{cache_directory, state_directory};

/// The name of the file.
const FILE: &str = "record.db";

/// Returns the file of the user's own record.
pub(crate) fn own_record() -> Option<PathBuf> {
    let usual = state_directory()?;
    let is_local = |directory: &Path| unsafe_file_system(directory).is_none();
    Some(choose(usual, local_directories(), is_local).join(FILE))
}

/// Says why a record is not in the state directory.
pub(crate) fn notice(record: &Path) -> Option<String> {
    let usual = state_directory()?;
    let kind = unsafe_file_system(&usual).filter(|_| record.parent() != Some(&usual))?;
    Some(format!(
        "runs are recorded in {}: {} is on {kind}, which cannot hold a record safely",
        shown(record),
        shown(&usual)
    ))
}

/// Returns the usual directory, or the first other one that is local. If none is, the usual one is refused when the record is
/// opened, which says why.
fn choose(
    usual: PathBuf,
    others: impl IntoIterator<Item = PathBuf>,
    is_local: impl Fn(&Path) -> bool,
) -> PathBuf {
    if is_local(&usual) {
        return usual;
    }
    others.into_iter().find(|directory| is_local(directory)).unwrap_or(usual)
}

/// Directories of this user that are likely on a local disk: the first ones outlive a restart.
fn local_directories() -> impl Iterator<Item = PathBuf> {
    let runtime =
        std::env::var_os("XDG_RUNTIME_DIR").map(|directory| PathBuf::from(directory).join("llm-do"));
    // The shared one is made only if it is needed.
    let shared = std::iter::once_with(shared_directory).flatten();
    let cache = cache_directory().map(|directory| directory.join("record"));
    cache.into_iter().chain(shared).chain(runtime).filter(|path| path.is_absolute())
}

/// A directory of this user where everybody may create one: only if it is not somebody else's.
#[cfg(unix)]
fn shared_directory() -> Option<PathBuf> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    let user = rustix::process::geteuid().as_raw();
    let directory = PathBuf::from(format!("/var/tmp/llm-do-{user}"));
    // It fails if there is one, which is looked at next.
    let _ = std::fs::DirBuilder::new().mode(0o700).create(&directory);
    let found = directory.symlink_metadata().ok()?;
    (found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0).then_some(directory)
}

#[cfg(not(unix))]
fn shared_directory() -> Option<PathBuf> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_on_a_local_disk_if_there_is_one() {
        let others = || ["/cache", "/var/tmp/me"].map(PathBuf::from);
        let chosen =
            |local: &[&str]| choose("/home".into(), others(), |path| local.contains(&path.to_str().unwrap()));
        assert_eq!(chosen(&["/home", "/cache"]), Path::new("/home"));
        assert_eq!(chosen(&["/cache", "/var/tmp/me"]), Path::new("/cache"));
        assert_eq!(chosen(&["/var/tmp/me"]), Path::new("/var/tmp/me"));
        assert_eq!(chosen(&[]), Path::new("/home"));
    }
}
