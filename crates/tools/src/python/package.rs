//! The Python sources that come with this program, unpacked where Python can run them.
//!
//! They lie in a directory named by the hash of their contents, so that Python's own compiled files beside them are
//! reused. Before each start the sources are compared with what this program holds: nobody else decides what runs.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use llm_do_core::Digest;

use super::sources::SOURCES;

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
}

impl Package {
    /// Unpacks the sources below a cache directory, or where that is impossible into a directory of their own.
    pub(crate) fn unpack(cache: Option<&Path>) -> io::Result<Self> {
        let cached = cache.map(in_cache);
        if let Some(Ok(directory)) = cached {
            return Ok(Self { directory, private: false });
        }
        let directory = std::env::temp_dir().join(format!("llm-do-python-{}", uuid::Uuid::new_v4()));
        write_all(&directory)?;
        Ok(Self { directory, private: true })
    }

    /// Returns the file that Python is started with.
    pub(crate) fn start(&self) -> PathBuf {
        self.directory.join(START)
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

fn in_cache(cache: &Path) -> io::Result<PathBuf> {
    private_directory(cache)?;
    let name = digest().prefix(24);
    let directory = cache.join(&name);
    if !is_intact(&directory) {
        replace(cache, &directory)?;
    }
    remove_unused(cache, &name);
    Ok(directory)
}

/// The hash of all sources, with their names.
fn digest() -> Digest {
    Digest::of_parts(SOURCES.iter().flat_map(|(path, text)| [path.as_bytes(), text.as_bytes()]))
}

/// Says whether a directory holds the sources exactly, and nobody else may change them.
fn is_intact(directory: &Path) -> bool {
    let is_own = |path: &Path, most: u32| {
        let found = fs::symlink_metadata(path);
        found.is_ok_and(|found| {
            found.uid() == rustix::process::geteuid().as_raw()
                && found.permissions().mode() & 0o777 & !most == 0
        })
    };
    let is_same = |(path, text): &(&str, &str)| {
        let path = directory.join(path);
        let folders = path.ancestors().skip(1).take_while(|folder| folder.starts_with(directory));
        fs::symlink_metadata(&path).is_ok_and(|found| found.is_file())
            && is_own(&path, 0o600)
            && folders.into_iter().all(|folder| is_own(folder, 0o700))
            && fs::read(&path).is_ok_and(|found| found == text.as_bytes())
    };
    SOURCES.iter().all(is_same) && has_nothing_else(directory, directory)
}

/// Says whether a directory holds no file but the sources and what Python made of them.
fn has_nothing_else(top: &Path, directory: &Path) -> bool {
    let Ok(entries) = fs::read_dir(directory) else { return false };
    entries.into_iter().all(|entry| {
        let Ok(entry) = entry else { return false };
        let Ok(kind) = entry.file_type() else { return false };
        let path = entry.path();
        let below = path.strip_prefix(top).unwrap_or(&path).to_string_lossy().into_owned();
        match (kind.is_dir(), kind.is_file()) {
            (true, _) if entry.file_name() == "__pycache__" => true,
            (true, _) => {
                let prefix = format!("{below}/");
                SOURCES.iter().any(|(source, _)| source.starts_with(&prefix)) && has_nothing_else(top, &path)
            }
            (_, true) => SOURCES.iter().any(|(source, _)| *source == below),
            _ => false,
        }
    })
}

/// Puts the sources into a directory of the cache, whole or not at all.
fn replace(cache: &Path, directory: &Path) -> io::Result<()> {
    let fresh = cache.join(format!("new-{}", uuid::Uuid::new_v4()));
    write_all(&fresh)?;
    let moved = fs::rename(&fresh, directory).or_else(|_| {
        // Something stands there: it goes aside first, as a directory is only replaced by an empty one.
        let aside = cache.join(format!("old-{}", uuid::Uuid::new_v4()));
        fs::rename(directory, &aside)?;
        let _ = fs::remove_dir_all(&aside).or_else(|_| fs::remove_file(&aside));
        fs::rename(&fresh, directory)
    });
    if moved.is_err() {
        let _ = fs::remove_dir_all(&fresh);
    }
    // Another process may have been faster.
    if is_intact(directory) { Ok(()) } else { moved }
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

/// Removes sources of other versions that were not used for long. What cannot be removed stays.
fn remove_unused(cache: &Path, used: &str) {
    touch(&cache.join(used));
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| is_name_of_sources(name) && name != used);
        let modified = entry.metadata().and_then(|found| found.modified());
        let is_old = modified
            .is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > KEPT_UNUSED));
        if is_ours && is_old {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_name_of_sources(name: &str) -> bool {
    let is_hash = name.len() == 24 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash || name.starts_with("new-") || name.starts_with("old-")
}

/// Says that a directory was used now.
fn touch(directory: &Path) {
    if let Ok(file) = fs::File::open(directory) {
        let _ = file.set_modified(SystemTime::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::tests::Folder;

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
        found.push(START.to_owned());
        found.sort();
        let mut embedded: Vec<&str> = SOURCES.iter().map(|(path, _)| *path).collect();
        embedded.sort_unstable();
        assert_eq!(embedded, found);
    }

    #[test]
    fn sources_are_unpacked_once_and_mended_when_they_were_changed() {
        let folder = Folder::new();
        let cache = folder.path().join("cache");
        let package = Package::unpack(Some(&cache)).unwrap();
        let start = package.start();
        assert!(start.starts_with(&cache) && is_intact(&package.directory));
        let made = fs::metadata(&start).unwrap().ino();
        assert_eq!(fs::metadata(&start).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
        fs::create_dir(package.directory.join("__pycache__")).unwrap();
        assert_eq!(fs::metadata(Package::unpack(Some(&cache)).unwrap().start()).unwrap().ino(), made);

        let changes: [&dyn Fn(&Path); 4] = [
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
        let folder = Folder::new();
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
}
