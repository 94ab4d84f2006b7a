//! Keys of providers, in a file that only the user can read.
//!
//! A key is kept under the name of an account: providers that share a key share it. Every variable of the environment
//! takes precedence, so the file is opened only for a key that is needed and that no variable holds. A process that
//! llm-do started has no store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::child::is_child;
use crate::config::{UserDirectory, lock_private, read_private, shown, write_private};

const FILE: &str = "credentials.toml";
const LOCK: &str = "credentials.toml.lock";

/// The store of keys of the user.
#[derive(Debug, Clone)]
pub(crate) struct Credentials {
    path: PathBuf,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Document {
    keys: BTreeMap<String, String>,
}

impl Credentials {
    /// The store of the user; nothing in a process that llm-do started, or if there is no directory for it.
    pub(crate) fn for_user(project: Option<&Path>) -> Option<Self> {
        if is_child() {
            return None;
        }
        let directory = UserDirectory::Data.find(project).path?;
        Some(Self { path: directory.join(FILE) })
    }

    /// Returns the file as a person would write it.
    pub(crate) fn shown_path(&self) -> String {
        shown(&self.path)
    }

    /// Returns the key of an account, or why the store cannot be read.
    pub(crate) fn key(&self, account: &str) -> Result<Option<String>, String> {
        Ok(self.keys()?.remove(account))
    }

    /// Returns all keys.
    pub(crate) fn keys(&self) -> Result<BTreeMap<String, String>, String> {
        let refuse =
            |reason: String| format!("your keys in `{}` cannot be used: {reason}", self.shown_path());
        check_privacy(&self.path).map_err(refuse)?;
        let text = read_private(&self.path).map_err(refuse)?.unwrap_or_default();
        // The message of the reader is left out: it quotes the line, and a key may be on it.
        let document = toml_edit::de::from_str(&text);
        let document: Document =
            document.map_err(|_| refuse("the file is not as `llm-do auth` writes it".to_owned()))?;
        Ok(document.keys)
    }

    /// Stores the key of an account in place of an earlier one.
    pub(crate) fn store(&self, account: &str, key: &str) -> Result<(), String> {
        self.change(|keys| drop(keys.insert(account.to_owned(), key.to_owned())))
    }

    /// Forgets the key of an account, and returns whether there was one.
    pub(crate) fn forget(&self, account: &str) -> Result<bool, String> {
        if !self.keys()?.contains_key(account) {
            return Ok(false);
        }
        self.change(|keys| drop(keys.remove(account)))?;
        Ok(true)
    }

    /// Reads, changes and replaces the file while no other process does.
    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, String>)) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("`{}` cannot be written: {error}", self.shown_path());
        let _lock = lock_private(&self.path.with_file_name(LOCK)).map_err(failed)?;
        let mut keys = self.keys()?;
        change(&mut keys);
        write_private(&self.path, &written(&keys)).map_err(failed)
    }
}

fn written(keys: &BTreeMap<String, String>) -> String {
    let mut table = toml_edit::Table::new();
    for (account, key) in keys {
        table.insert(account, toml_edit::value(key));
    }
    let mut document = toml_edit::DocumentMut::new();
    document.insert("keys", toml_edit::Item::Table(table));
    format!("# Written by `llm-do auth`.\n\n{document}")
}

/// Refuses a link, and a file that anybody else can read.
#[cfg(unix)]
fn check_privacy(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    let Ok(metadata) = path.symlink_metadata() else { return Ok(()) };
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    match metadata.mode() & 0o077 {
        0 => Ok(()),
        _ => Err(format!("others can read it; remove the permission with `chmod 600 {}`", shown(path))),
    }
}

#[cfg(not(unix))]
fn check_privacy(_: &Path) -> Result<(), String> {
    Ok(())
}
