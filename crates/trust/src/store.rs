//! The file that keeps agreements, `trust.json`.
//!
//! Whatever is wrong with the file (syntax, an unknown key, its owner, a link) counts as no trust. It is never
//! repaired: the next agreement moves it aside.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::entry::TrustEntry;
use crate::identity::DirectoryIdentity;
use crate::power::{Changes, Powers};
use crate::worktree::in_main_checkout;

const FILE: &str = "trust.json";
const LOCK: &str = "trust.json.lock";
const VERSION: u32 = 1;

/// No larger file is read.
const MAX_BYTES: u64 = 1024 * 1024;

/// How long an entry outlives its directory.
const KEEP_GONE: SignedDuration = SignedDuration::from_hours(90 * 24);

/// The agreements of a user.
#[derive(Debug, Clone)]
pub struct TrustStore {
    directory: Option<PathBuf>,
}

/// What the store knows about a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// Nothing.
    Unknown,
    /// Another directory was trusted under this path, and was replaced.
    Replaced,
    /// All powers were agreed to.
    Trusted(Box<TrustEntry>),
    /// Some powers go beyond the agreement.
    Beyond(Box<TrustEntry>, Changes),
}

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no directory to keep it in.
    #[error("there is no directory to remember it in: HOME is not set")]
    NoDirectory,
    /// The file cannot be trusted, or cannot be read.
    #[error("`{}` is ignored: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file cannot be written.
    #[error("`{}` cannot be written: {error}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    entries: Vec<TrustEntry>,
}

impl TrustStore {
    /// The store in a directory of llm-do's state; without one nothing is remembered.
    pub fn new(directory: Option<PathBuf>) -> Self {
        Self { directory }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> Option<PathBuf> {
        self.directory.as_ref().map(|directory| directory.join(FILE))
    }

    /// Returns all agreements. A store that does not exist yet has none.
    pub fn entries(&self) -> Result<Vec<TrustEntry>, StoreError> {
        let Some(path) = self.path() else { return Ok(Vec::new()) };
        Ok(read(&path)?.entries)
    }

    /// Compares the powers of a project with what was agreed to for its directory, for the main checkout of its git
    /// worktree, or for a directory above it that is trusted with everything below.
    pub fn look_up(&self, identity: &DirectoryIdentity, powers: &Powers) -> Result<Lookup, StoreError> {
        let entries = self.entries()?;
        let found = entries.iter().find(|entry| entry.is_about(identity));
        if let Some(entry) = found {
            return Ok(compared(entry, powers));
        }
        if let Some(entry) = self.above(&entries, identity) {
            return Ok(Lookup::Trusted(Box::new(entry.clone())));
        }
        let main = in_main_checkout(&identity.path).and_then(|main| DirectoryIdentity::read(&main).ok());
        let main = main.and_then(|main| entries.iter().find(|entry| entry.is_about(&main)));
        if let Some(Lookup::Trusted(entry)) = main.map(|entry| compared(entry, powers)) {
            return Ok(Lookup::Trusted(entry));
        }
        let is_replaced = entries.iter().any(|entry| entry.path() == identity.path);
        Ok(if is_replaced { Lookup::Replaced } else { Lookup::Unknown })
    }

    /// Remembers an agreement in place of an earlier one for the same path.
    pub fn record(&self, entry: TrustEntry) -> Result<(), StoreError> {
        self.change(|entries| {
            entries.retain(|other| other.path() != entry.path());
            entries.push(entry);
        })
    }

    /// Changes the agreement about a directory, if there is one.
    pub fn update(
        &self,
        identity: &DirectoryIdentity,
        change: impl FnOnce(&mut TrustEntry),
    ) -> Result<(), StoreError> {
        self.change(|entries| {
            if let Some(entry) = entries.iter_mut().find(|entry| entry.is_about(identity)) {
                change(entry);
            }
        })
    }

    /// Forgets the agreement about a path, and returns whether there was one.
    pub fn revoke(&self, path: &Path) -> Result<bool, StoreError> {
        let mut was_known = false;
        self.change(|entries| {
            let before = entries.len();
            entries.retain(|entry| entry.path() != path);
            was_known = entries.len() < before;
        })?;
        Ok(was_known)
    }

    fn above<'e>(&self, entries: &'e [TrustEntry], identity: &DirectoryIdentity) -> Option<&'e TrustEntry> {
        let covers = |entry: &&TrustEntry| {
            entry.below
                && identity.path.starts_with(entry.path())
                && DirectoryIdentity::read(&entry.path()).is_ok_and(|above| entry.is_about(&above))
        };
        entries.iter().find(covers)
    }

    /// Reads, changes and replaces the file while no other process does.
    fn change(&self, change: impl FnOnce(&mut Vec<TrustEntry>)) -> Result<(), StoreError> {
        let directory = self.directory.as_deref().ok_or(StoreError::NoDirectory)?;
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |error| StoreError::Write { path, error }
        };
        make_private(directory).map_err(failed(directory))?;
        let lock = private().write(true).create(true).truncate(false).open(directory.join(LOCK));
        let lock = lock.map_err(failed(&directory.join(LOCK)))?;
        lock.lock().map_err(failed(&directory.join(LOCK)))?;
        let path = directory.join(FILE);
        let mut document = match read(&path) {
            Ok(document) => document,
            Err(_) => {
                set_aside(&path).map_err(failed(&path))?;
                Document::default()
            }
        };
        change(&mut document.entries);
        document.entries.retain(is_kept);
        document.version = VERSION;
        replace(directory, &path, &document).map_err(failed(&path))
    }
}

fn compared(entry: &TrustEntry, powers: &Powers) -> Lookup {
    // What is below a directory includes a project in the directory itself.
    if entry.below {
        return Lookup::Trusted(Box::new(entry.clone()));
    }
    let changes = powers.beyond(&entry.powers);
    let entry = Box::new(entry.clone());
    if changes.is_empty() { Lookup::Trusted(entry) } else { Lookup::Beyond(entry, changes) }
}

/// An entry is dropped some time after its directory is gone.
fn is_kept(entry: &TrustEntry) -> bool {
    entry.path().is_dir() || entry.agreed + KEEP_GONE > Timestamp::now()
}

fn read(path: &Path) -> Result<Document, StoreError> {
    let damaged = |reason: String| StoreError::Damaged { path: path.to_path_buf(), reason };
    let mut text = String::new();
    match open(path) {
        Ok(file) => {
            file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| damaged(error.to_string()))?
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Document::default()),
        Err(error) => return Err(damaged(error.to_string())),
    };
    if text.len() as u64 > MAX_BYTES {
        return Err(damaged(format!("it is larger than {MAX_BYTES} bytes")));
    }
    let document: Document = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    if document.version != VERSION {
        return Err(damaged(format!(
            "it has the version {}, and this llm-do reads {VERSION}",
            document.version
        )));
    }
    Ok(document)
}

/// Opens the file as a regular file of the user that nobody else can write.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    use std::os::unix::fs::MetadataExt;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        rustix::io::Errno::LOOP => io::Error::other("it is a link"),
        error => error.into(),
    })?;
    let file = File::from(file);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it belongs to another user"));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(io::Error::other("others can write to it"));
    }
    Ok(file)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    if fs::symlink_metadata(path)?.is_file() {
        File::open(path)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

#[cfg(unix)]
fn private() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

#[cfg(not(unix))]
fn private() -> OpenOptions {
    OpenOptions::new()
}

/// Makes a directory that only the user can look into, or takes the rights of others away.
#[cfg(unix)]
pub fn make_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let metadata = directory.metadata()?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("the directory belongs to another user"));
    }
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Makes a directory.
#[cfg(not(unix))]
pub fn make_private(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)
}

/// Keeps a file that cannot be used under a name that is not taken.
fn set_aside(path: &Path) -> io::Result<()> {
    let aside = |number: u32| path.with_extension(format!("json.damaged-{number}"));
    let free = (1..).map(aside).find(|path| path.symlink_metadata().is_err());
    match free {
        Some(free) => fs::rename(path, free),
        None => Ok(()),
    }
}

fn replace(directory: &Path, path: &Path, document: &Document) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(&serde_json::to_vec_pretty(document)?)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}
