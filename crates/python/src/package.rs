//! The Python sources that come with this program, unpacked where Python can run them.
//!
//! They are in a directory named by the hash of their contents. Before each start the sources are compared with what
//! this program holds, and everything else is removed, also what Python may have compiled: nobody else decides what
//! runs. The directories on the way must belong to the user or root, and nobody else may write to them.
//! Any number of processes may start at the same time: a directory that one of them may use is never removed.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use llm_do_core::Digest;
use llm_do_trust::{ForeignFile, foreign_files};

use crate::sources::SOURCES;

/// After how long unpacked sources of other versions are removed.
const KEPT_UNUSED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The file that Python is started with.
const START: &str = "start.py";

/// Unpacked sources.
#[derive(Debug)]
pub(crate) struct Package {
    directory: PathBuf,
    /// Whether the directory is this value's alone, and goes with it.
    private: bool,
    /// Keeps other processes from removing the directory as unused.
    _in_use: Option<File>,
}

impl Package {
    /// Unpacks the sources below a cache directory, or where that is impossible into a directory of their own.
    pub(crate) fn unpack(cache: Option<&Path>) -> Result<Self, UnpackError> {
        if let Some(cache) = cache {
            match in_cache(cache) {
                Ok(directory) => {
                    let _in_use = lock_shared(&directory);
                    remove_unused(cache, &directory);
                    return Ok(Self { directory, private: false, _in_use });
                }
                Err(error @ UnpackError::Foreign(_)) => return Err(error),
                // A directory of their own does as well.
                Err(UnpackError::Io(_)) => {}
            }
        }
        let directory = std::env::temp_dir().join(format!("llm-do-python-{}", uuid::Uuid::new_v4()));
        write_all(&directory)?;
        Ok(Self { directory, private: true, _in_use: None })
    }

    /// Returns the file that Python is started with.
    pub(crate) fn start(&self) -> PathBuf {
        self.directory.join(START)
    }
}

/// Why the sources cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnpackError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}, so that somebody else could decide what is run")]
    Foreign(ForeignFile),
}

impl UnpackError {
    /// Says what the user can do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Io(_) => None,
            Self::Foreign(file) => Some(format!(
                "make `{}` yours alone (`chown`, `chmod go-w`), or set XDG_CACHE_HOME to a directory of your own",
                file.path.display()
            )),
        }
    }
}

/// Refuses a directory that is not the user's alone, up to the root of the file system: whoever can write to one of
/// its parents can put another directory in its place.
fn check_owners(directory: &Path) -> Result<(), UnpackError> {
    let real = directory.canonicalize()?;
    let parents =
        real.ancestors().chain(directory.ancestors()).filter(|parent| !parent.as_os_str().is_empty());
    // In a sticky directory such as `/tmp` everybody can make entries, and only their owners can replace them.
    let is_sticky = |parent: &&Path| {
        parent.metadata().is_ok_and(|found| found.uid() == 0 && found.permissions().mode() & 0o1000 != 0)
    };
    let counted = parents.filter(|parent| !is_sticky(parent));
    match foreign_files(counted, None).into_iter().next() {
        Some(foreign) => Err(UnpackError::Foreign(foreign)),
        None => Ok(()),
    }
}

impl Drop for Package {
    fn drop(&mut self) {
        if self.private {
            // What cannot be removed lies in a directory that is emptied by others.
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

fn in_cache(cache: &Path) -> Result<PathBuf, UnpackError> {
    private_directory(cache)?;
    check_owners(cache)?;
    let directory = cache.join(digest().prefix(24));
    if !is_intact(&directory) {
        install(cache, &directory)?;
    }
    Ok(directory)
}

/// The hash of all sources, with their names.
fn digest() -> Digest {
    Digest::hash_parts(SOURCES.iter().flat_map(|(path, text)| [path.as_bytes(), text.as_bytes()]))
}

/// Returns whether a directory holds the sources exactly, and nobody else may change them.
fn is_intact(directory: &Path) -> bool {
    SOURCES.iter().all(|source| is_same(directory, source)) && has_nothing_else(directory, directory)
}

/// Returns whether a directory holds one of the sources, unchanged and protected from other users.
fn is_same(directory: &Path, (path, text): &(&str, &str)) -> bool {
    let path = directory.join(path);
    let mut folders = path.ancestors().skip(1).take_while(|folder| folder.starts_with(directory));
    fs::symlink_metadata(&path).is_ok_and(|found| found.is_file())
        && is_private(&path, 0o600)
        && folders.all(|folder| is_private(folder, 0o700))
        && fs::read(&path).is_ok_and(|found| found == text.as_bytes())
}

/// Returns whether a path belongs to this user and allows nobody more than `mode`.
fn is_private(path: &Path, mode: u32) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|found| belongs_to_user(&found) && found.permissions().mode() & 0o777 & !mode == 0)
}

fn is_own_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && belongs_to_user(&found))
}

fn belongs_to_user(found: &fs::Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}

/// What an entry of the directory is expected to be, by its path.
#[derive(PartialEq, Eq)]
enum Expected {
    Source,
    /// A directory of sources.
    Sources,
    Nothing,
}

fn expected(top: &Path, entry: &fs::DirEntry) -> Expected {
    let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
    let path = entry.path();
    let below = path.strip_prefix(top).unwrap_or(&path).to_string_lossy().into_owned();
    let prefix = format!("{below}/");
    match is_directory {
        true if SOURCES.iter().any(|(source, _)| source.starts_with(&prefix)) => Expected::Sources,
        // A source is a file; whether it is the right one is seen from its content.
        _ if SOURCES.iter().any(|(source, _)| *source == below) => Expected::Source,
        _ => Expected::Nothing,
    }
}

/// Returns whether a directory holds no file but the sources.
fn has_nothing_else(top: &Path, directory: &Path) -> bool {
    let Ok(entries) = fs::read_dir(directory) else { return false };
    entries.into_iter().all(|entry| {
        entry.is_ok_and(|entry| match expected(top, &entry) {
            Expected::Source => true,
            Expected::Sources => has_nothing_else(top, &entry.path()),
            Expected::Nothing => false,
        })
    })
}

/// Puts the sources into a directory of the cache.
///
/// Several processes may do this at the same time, and others may run from the directory already: it appears whole by
/// one rename, and a directory that is there is repaired file by file, never removed or replaced.
fn install(cache: &Path, directory: &Path) -> io::Result<()> {
    let fresh = cache.join(format!("new-{}", uuid::Uuid::new_v4()));
    let installed = write_all(&fresh).and_then(|()| install_from(&fresh, directory));
    let _ = fs::remove_dir_all(&fresh);
    // Another process may have installed or repaired it meanwhile.
    if is_intact(directory) {
        Ok(())
    } else {
        installed.and(Err(io::Error::other("the sources are damaged")))
    }
}

fn install_from(fresh: &Path, directory: &Path) -> io::Result<()> {
    if fs::symlink_metadata(directory).is_ok_and(|found| !found.is_dir()) {
        // This fails on a directory, which another process may have installed meanwhile.
        let _ = fs::remove_file(directory);
    }
    match fs::rename(fresh, directory) {
        // It exists, and a directory that is not empty is not replaced by a rename.
        Err(_) if is_own_directory(directory) => repair(fresh, directory),
        renamed => renamed,
    }
}

/// Moves every source that is missing or wrong from a fresh directory into one that may be in use.
fn repair(fresh: &Path, directory: &Path) -> io::Result<()> {
    remove_everything_else(directory, directory)?;
    for source in SOURCES.iter().filter(|source| !is_same(directory, source)) {
        let path = directory.join(source.0);
        path.parent().map_or(Ok(()), |folder| make_private(directory, folder))?;
        if path.is_dir() {
            remove(&path)?;
        }
        fs::rename(fresh.join(source.0), &path)?;
    }
    Ok(())
}

/// Removes what is neither a source nor a directory of sources.
fn remove_everything_else(top: &Path, directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)?.flatten() {
        let path = entry.path();
        match expected(top, &entry) {
            Expected::Sources if is_own_directory(&path) => remove_everything_else(top, &path)?,
            Expected::Source => {}
            Expected::Sources | Expected::Nothing => remove(&path)?,
        }
    }
    Ok(())
}

/// Makes the directories between the top and a folder, private ones.
fn make_private(top: &Path, folder: &Path) -> io::Result<()> {
    private_directory(folder)?;
    for folder in folder.ancestors().take_while(|folder| folder.starts_with(top)) {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Removes a file, a link or a directory. What is gone already is not a failure.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn write_all(directory: &Path) -> io::Result<()> {
    private_directory(directory)?;
    for (path, text) in SOURCES {
        let path = directory.join(path);
        path.parent().map_or(Ok(()), private_directory)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(text.as_bytes())?;
    }
    Ok(())
}

fn private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Removes sources of other versions that no process uses and that were not used for long. What cannot be removed stays.
fn remove_unused(cache: &Path, used: &Path) {
    touch(used);
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_ours = entry.file_name().to_str().is_some_and(is_name_of_sources) && path != used;
        let modified = entry.metadata().and_then(|found| found.modified());
        let is_old = modified
            .is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > KEPT_UNUSED));
        if is_ours && is_old && !is_in_use(&path) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Marks a directory as used for as long as the file is open, where the file system knows such locks.
fn lock_shared(directory: &Path) -> Option<File> {
    let file = File::open(directory).ok()?;
    file.try_lock_shared().is_ok().then_some(file)
}

fn is_in_use(directory: &Path) -> bool {
    let Ok(file) = File::open(directory) else { return false };
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

fn is_name_of_sources(name: &str) -> bool {
    let is_hash = name.len() == 24 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash || name.starts_with("new-") || name.starts_with("old-")
}

/// Notes that a directory was used now.
fn touch(directory: &Path) {
    if let Ok(file) = fs::File::open(directory) {
        let _ = file.set_modified(SystemTime::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::NAMES;

    #[test]
    fn every_source_is_embedded() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
        let mut found = Vec::new();
        let mut folders: Vec<PathBuf> = ["host", "names", "fallback"].map(|name| top.join(name)).into();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(path),
                    false if path.extension().is_some_and(|ending| ending == "py") => {
                        found.push(path.strip_prefix(&top).unwrap().to_str().unwrap().to_owned());
                    }
                    false => {}
                }
            }
        }
        found.extend([START, NAMES].map(str::to_owned));
        found.sort();
        let mut embedded: Vec<&str> = SOURCES.iter().map(|(path, _)| *path).collect();
        embedded.sort_unstable();
        assert_eq!(embedded, found);
    }

    #[test]
    fn sources_are_unpacked_once_and_mended_when_they_were_changed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let package = Package::unpack(Some(&cache)).unwrap();
        let start = package.start();
        assert!(start.starts_with(&cache) && is_intact(&package.directory));
        let made = fs::metadata(&start).unwrap().ino();
        assert_eq!(fs::metadata(&start).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(Package::unpack(Some(&cache)).unwrap().start()).unwrap().ino(), made);

        let changes: [&dyn Fn(&Path); 5] = [
            &|directory| fs::create_dir(directory.join("__pycache__")).unwrap(),
            &|directory| fs::write(directory.join(START), "import evil").unwrap(),
            &|directory| fs::write(directory.join("json.py"), "").unwrap(),
            &|directory| fs::remove_file(directory.join(START)).unwrap(),
            &|directory| {
                fs::set_permissions(directory.join(START), fs::Permissions::from_mode(0o666)).unwrap();
            },
        ];
        for change in changes {
            change(&package.directory);
            assert!(!is_intact(&package.directory));
            assert_eq!(Package::unpack(Some(&cache)).unwrap().start(), start);
            assert!(is_intact(&package.directory));
        }
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
    }

    /// The directory that a process was given must stay as it is, whatever other processes do at the same time.
    #[test]
    fn concurrent_unpacking_into_an_empty_cache_gives_everyone_one_intact_directory() {
        for _ in 0..4 {
            let folder = tempfile::tempdir().unwrap();
            let cache = folder.path().join("cache");
            let start = std::sync::Barrier::new(8);
            let inodes = std::thread::scope(|scope| {
                let unpack = || {
                    start.wait();
                    let package = Package::unpack(Some(&cache)).unwrap();
                    let inode = fs::metadata(&package.directory).unwrap().ino();
                    start.wait();
                    assert!(package.start().starts_with(&cache) && is_intact(&package.directory));
                    assert_eq!(fs::metadata(&package.directory).unwrap().ino(), inode);
                    inode
                };
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(unpack)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            });
            assert!(inodes.iter().all(|inode| *inode == inodes[0]), "{inodes:?}");
        }
    }

    #[test]
    fn a_damaged_directory_is_repaired_without_replacing_it() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let package = Package::unpack(Some(&cache)).unwrap();
        let inode = fs::metadata(&package.directory).unwrap().ino();
        let host = package.directory.join("host/llm_do_host");
        let damages: [&dyn Fn(); 6] = [
            &|| fs::remove_dir_all(&host).unwrap(),
            &|| fs::write(host.join("extra.py"), "").unwrap(),
            &|| fs::create_dir(package.directory.join("empty")).unwrap(),
            &|| std::os::unix::fs::symlink("/tmp", package.directory.join("link")).unwrap(),
            &|| {
                fs::remove_file(host.join("main.py")).unwrap();
                fs::create_dir(host.join("main.py")).unwrap();
            },
            &|| fs::set_permissions(&host, fs::Permissions::from_mode(0o777)).unwrap(),
        ];
        for damage in damages {
            damage();
            assert!(!is_intact(&package.directory));
            Package::unpack(Some(&cache)).unwrap();
            assert!(is_intact(&package.directory));
            assert_eq!(fs::metadata(&package.directory).unwrap().ino(), inode);
        }
    }

    #[test]
    fn what_stands_in_the_place_of_the_directory_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let package = Package::unpack(Some(&cache)).unwrap();
        fs::remove_dir_all(&package.directory).unwrap();
        fs::write(&package.directory, "a file").unwrap();
        assert!(is_intact(&Package::unpack(Some(&cache)).unwrap().directory));
        fs::remove_dir_all(&package.directory).unwrap();
        std::os::unix::fs::symlink(folder.path(), &package.directory).unwrap();
        assert!(is_intact(&Package::unpack(Some(&cache)).unwrap().directory));
        assert!(folder.path().exists());
    }

    #[test]
    fn without_a_usable_cache_the_sources_have_a_place_of_their_own_that_vanishes() {
        let package = Package::unpack(Some(Path::new("/proc/none"))).unwrap();
        let start = package.start();
        assert!(start.is_file());
        drop(package);
        assert!(!start.exists());
    }

    #[test]
    fn sources_of_other_versions_are_removed_when_they_are_old() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let [old, new, strange] =
            ["0123456789abcdef01234567", "1123456789abcdef01234567", "mine"].map(|name| cache.join(name));
        let past = SystemTime::now() - KEPT_UNUSED - Duration::from_secs(60);
        for directory in [&old, &new, &strange] {
            fs::create_dir_all(directory).unwrap();
        }
        for directory in [&old, &strange] {
            fs::File::open(directory).unwrap().set_modified(past).unwrap();
        }
        Package::unpack(Some(&cache)).unwrap();
        assert!(!old.exists() && new.exists() && strange.exists());
    }

    #[test]
    fn old_sources_that_a_process_still_uses_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let used = cache.join("0123456789abcdef01234567");
        fs::create_dir_all(&used).unwrap();
        let lock = lock_shared(&used);
        let past = SystemTime::now() - KEPT_UNUSED - Duration::from_secs(60);
        fs::File::open(&used).unwrap().set_modified(past).unwrap();
        Package::unpack(Some(&cache)).unwrap();
        assert!(used.exists());
        drop(lock);
        Package::unpack(Some(&cache)).unwrap();
        assert!(!used.exists());
    }
}
