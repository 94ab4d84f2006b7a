//! Digests of the code that a run imported, so that a change can be named.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::power::hex;

/// The files of code of a project by their paths relative to it, with their digests.
pub type CodeDigests = BTreeMap<String, String>;

/// No larger file of code is read; it counts as changed.
const MAX_CODE_BYTES: u64 = 16 * 1024 * 1024;

/// Returns the digests of files of a project, and of the Python modules beside its manifest: a new one there can take
/// the place of a module that the code imports.
pub fn code_digests<'p>(root: &Path, files: impl IntoIterator<Item = &'p Path>) -> CodeDigests {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let modules = entries.map(|entry| entry.path()).filter(|path| is_module(path));
    let listed = files.into_iter().map(|file| root.join(file));
    let mut digests = CodeDigests::new();
    for path in listed.chain(modules) {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        digests.entry(name).or_insert_with(|| digest(&path));
    }
    digests
}

fn is_module(path: &Path) -> bool {
    let is_source = path.extension().is_some_and(|extension| extension == "py" || extension == "so");
    is_source || path.join("__init__.py").is_file()
}

/// The digest of a file. What cannot be read has one that no file has.
fn digest(path: &Path) -> String {
    let path = if path.is_dir() { path.join("__init__.py") } else { path.to_path_buf() };
    let is_readable = path.metadata().is_ok_and(|found| found.is_file() && found.len() <= MAX_CODE_BYTES);
    match is_readable.then(|| fs::read(&path)) {
        Some(Ok(bytes)) => format!("sha256:{}", hex(&Sha256::digest(&bytes))),
        _ => "unreadable".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_beside_the_manifest_count_too() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("lib")).unwrap();
        fs::create_dir_all(root.join("package")).unwrap();
        for name in ["tools.py", "lib/words.py", "lib/unused.py", "package/__init__.py", "notes.txt"] {
            fs::write(root.join(name), name).unwrap();
        }
        let files = ["tools.py", "lib/words.py"].map(Path::new);
        let before = code_digests(root, files);
        assert_eq!(before.keys().collect::<Vec<_>>(), ["lib/words.py", "package", "tools.py"]);
        fs::write(root.join("json.py"), "").unwrap();
        fs::write(root.join("tools.py"), "changed").unwrap();
        let after = code_digests(root, files);
        assert_ne!(before["tools.py"], after["tools.py"]);
        assert_eq!(before["package"], after["package"]);
        assert!(after.contains_key("json.py"));
    }
}
