//! Single files below a root, for toolsets that keep something there.

use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::error::FileError;
use super::place::{Kind, LastLink, Place};
use super::root::read_up_to;
use super::writer::Writer;

/// How large a kept file may be.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

fn find(root: &Path, path: &Path) -> Result<Place, FileError> {
    let shown = path.to_string_lossy();
    let root = Dir::open_ambient_dir(root, ambient_authority());
    Place::find(&root.map_err(|error| FileError::system(&shown, error))?, path, LastLink::Keep)
}

/// Reads a text file; nothing where there is none.
pub(crate) fn read(root: &Path, path: &Path) -> Result<Option<String>, FileError> {
    let place = find(root, path)?;
    if place.kind() == Kind::Missing {
        return Ok(None);
    }
    let (file, metadata) = place.open()?;
    if metadata.len() > MAX_BYTES {
        return Err(FileError::TooLarge { path: place.shown(), size: metadata.len(), limit: MAX_BYTES });
    }
    let bytes = read_up_to(file, MAX_BYTES, metadata.len())
        .map_err(|error| FileError::system(&place.shown(), error))?;
    String::from_utf8(bytes).map(Some).map_err(|_| FileError::NotText { path: place.shown() })
}

/// Gives a file new content, and makes the directories that it lies in. The file must have the content `before`, or be
/// missing if there is none.
pub(crate) fn write(root: &Path, path: &Path, text: &str, before: Option<&str>) -> Result<(), FileError> {
    let place = find(root, path)?;
    let writer = Writer::new(&place);
    match before {
        None => writer.create(text.as_bytes()),
        Some(_) if place.kind() == Kind::Missing => Err(FileError::Changed { path: place.shown() }),
        Some(before) => writer.replace(text.as_bytes(), (before.as_bytes(), &place.open()?.1)),
    }
}

/// Removes a file, which must have the content `before`.
pub(crate) fn remove(root: &Path, path: &Path, before: &str) -> Result<(), FileError> {
    Writer::new(&find(root, path)?).remove(before.as_bytes())
}
