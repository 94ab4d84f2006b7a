//! Opens files that a project names: regular ones only.
//!
//! Opening a named pipe waits for whoever writes to it, and a device may never end, so that looking at a project would
//! hang.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file for reading, without waiting.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path)?;
    // Asked of the open file: another one may be under the name by now.
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// Reads a regular file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn pipes_devices_and_directories_are_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [&*pipe, Path::new("/dev/zero"), folder.path()] {
            assert_eq!(read(path).unwrap_err().to_string(), "it is not a regular file", "{}", path.display());
        }
        let file = folder.path().join("file");
        std::fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink("file", folder.path().join("link")).unwrap();
        assert_eq!(read(&file).unwrap(), b"text");
        assert_eq!(read(&folder.path().join("link")).unwrap(), b"text");
    }
}
