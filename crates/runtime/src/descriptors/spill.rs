//! Texts on the disk: in files without a name, that only this process can read and that vanish with it.
//!
//! A large text has a file of its own. Smaller ones share files, because a process may have only so many open.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

/// From this size on, a text has a file of its own.
const OWN_FILE: u64 = 1024 * 1024;
/// How much is put into one shared file.
const SHARED_FILE: u64 = 16 * 1024 * 1024;

/// Makes room on the disk.
#[derive(Debug)]
pub(crate) struct Spill {
    directory: PathBuf,
    shared: Mutex<Option<Room>>,
}

/// A part of a file. The file is gone with the last part of it.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    file: Arc<File>,
    offset: u64,
}

impl Spill {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory, shared: Mutex::new(None) }
    }

    /// Returns room for so many bytes.
    pub(crate) fn room(&self, size: u64) -> io::Result<Room> {
        if size >= OWN_FILE {
            return self.new_file();
        }
        let mut shared = self.shared.lock();
        let room = match shared.take() {
            Some(room) if room.offset + size <= SHARED_FILE => room,
            _ => self.new_file()?,
        };
        *shared = Some(Room { file: room.file.clone(), offset: room.offset + size });
        Ok(room)
    }

    fn new_file(&self) -> io::Result<Room> {
        let file = tempfile::tempfile_in(&self.directory)?;
        positioned_io::close_to_others(&file)?;
        Ok(Room { file: Arc::new(file), offset: 0 })
    }
}

impl Room {
    /// Writes all of some bytes.
    pub(crate) fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        positioned_io::write(&self.file, bytes, self.offset + at)
    }

    /// Fills a buffer.
    pub(crate) fn read(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        positioned_io::read(&self.file, buffer, self.offset + at)
    }
}

#[cfg(unix)]
mod positioned_io {
    //! Reads and writes at a position in a file that several threads use.

    use std::fs::{File, Permissions};
    use std::io;
    use std::os::unix::fs::{FileExt, PermissionsExt};

    /// A file without a name can still be opened by way of the process that holds it.
    pub(super) fn close_to_others(file: &File) -> io::Result<()> {
        file.set_permissions(Permissions::from_mode(0o600))
    }

    pub(super) fn write(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        file.write_all_at(bytes, offset)
    }

    pub(super) fn read(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        file.read_exact_at(buffer, offset)
    }
}

#[cfg(windows)]
mod positioned_io {
    //! Reads and writes at a position in a file that several threads use.

    use std::fs::File;
    use std::io;
    use std::os::windows::fs::FileExt;

    /// The directory decides who may read.
    pub(super) fn close_to_others(_file: &File) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn write(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match file.seek_write(bytes, offset)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => (bytes, offset) = (&bytes[count..], offset + count as u64),
            }
        }
        Ok(())
    }

    pub(super) fn read(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match file.seek_read(buffer, offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => (buffer, offset) = (&mut buffer[count..], offset + count as u64),
            }
        }
        Ok(())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_file_has_no_name_and_only_its_owner_may_read_it() {
        let room = Spill::new(std::env::temp_dir()).room(10).unwrap();
        let metadata = room.file.metadata().unwrap();
        assert_eq!((metadata.mode() & 0o777, metadata.nlink()), (0o600, 0));
    }

    #[test]
    fn small_texts_share_a_file_and_do_not_touch_each_other() {
        let spill = Spill::new(std::env::temp_dir());
        let rooms: Vec<Room> = (0..3).map(|_| spill.room(4).unwrap()).collect();
        for (room, text) in rooms.iter().zip([b"aaaa", b"bbbb", b"cccc"]) {
            room.write(text, 0).unwrap();
        }
        let mut read = [0; 2];
        rooms[1].read(&mut read, 1).unwrap();
        assert_eq!(&read, b"bb");
        assert!(Arc::ptr_eq(&rooms[0].file, &rooms[2].file));
    }

    #[test]
    fn a_large_text_has_a_file_of_its_own() {
        let spill = Spill::new(std::env::temp_dir());
        let (small, large) = (spill.room(1).unwrap(), spill.room(OWN_FILE).unwrap());
        assert!(!Arc::ptr_eq(&small.file, &large.file));
        assert_eq!(large.offset, 0);
    }

    #[test]
    fn a_shared_file_is_followed_by_another_one() {
        let spill = Spill::new(std::env::temp_dir());
        let first = spill.room(OWN_FILE - 1).unwrap();
        let rooms: Vec<Room> = (0..20).map(|_| spill.room(OWN_FILE - 1).unwrap()).collect();
        let elsewhere = rooms.iter().filter(|room| !Arc::ptr_eq(&room.file, &first.file)).count();
        assert_eq!(elsewhere, 5);
    }
}
