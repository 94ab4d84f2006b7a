//! The texts behind descriptors: each stored once, in memory or on the disk.
//!
//! While a text is stored, marks are set every few kilobytes, so that any character, line or byte of it is found by
//! reading a small part, however long the text or its lines are.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use llm_do_core::{Digest, Failure, FailureKind};
use parking_lot::{Mutex, MutexGuard};

use super::pages::{PageMarks, Pager, Position, STRIDE};
use super::spill::{Room, Spill};

/// The largest text that is kept in memory.
const MAX_ITEM_IN_MEMORY: u64 = 256 * 1024;
/// How much is kept in memory in all, unless something else is said.
const MAX_TOTAL_IN_MEMORY: u64 = 8 * 1024 * 1024;
/// For how many page sizes the pages of one text are kept.
const MAX_PAGE_SIZES: usize = 4;

/// Where the texts of descriptors lie.
///
/// Clones share one store. Texts of more than 256 kB, and smaller ones when those in memory come to more than 8 MB,
/// lie on the disk in files without a name. Equal texts are stored once. A text is gone when nobody holds it.
#[derive(Debug, Clone)]
pub struct ContentStore(Arc<Shelf>);

#[derive(Debug)]
struct Shelf {
    spill: Spill,
    /// The bytes that texts have in memory, and may have.
    in_memory: AtomicU64,
    most_in_memory: u64,
    known: Mutex<HashMap<Digest, Weak<Stored>>>,
}

impl Default for ContentStore {
    /// A store whose files lie in the system's directory for temporary files.
    fn default() -> Self {
        Self::new(std::env::temp_dir())
    }
}

impl ContentStore {
    /// A store whose files lie in a directory. None is made before it is needed.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self::with_memory(directory, MAX_TOTAL_IN_MEMORY)
    }

    /// A store that keeps at most so many bytes of text in memory.
    pub fn with_memory(directory: impl Into<PathBuf>, most_in_memory: u64) -> Self {
        let spill = Spill::new(directory.into());
        Self(Arc::new(Shelf {
            spill,
            in_memory: AtomicU64::new(0),
            most_in_memory,
            known: Mutex::new(HashMap::new()),
        }))
    }

    /// Stores a text, and finds its pages of this size on the way.
    pub fn store(&self, text: &str, page_size: u64) -> Result<StoredContent, Failure> {
        let digest = Digest::hash(text);
        if let Some(known) = self.0.find(&digest) {
            return Ok(known);
        }
        let stored = self.write(text, digest, page_size).map_err(unwritable)?;
        Ok(self.0.keep(StoredContent(Arc::new(stored))))
    }

    /// Returns how many bytes of text are in memory.
    pub fn in_memory(&self) -> u64 {
        self.0.in_memory.load(Ordering::Relaxed)
    }

    fn write(&self, text: &str, digest: Digest, page_size: u64) -> io::Result<Stored> {
        let location = self.0.location(text)?;
        let (mut marks, mut pages) = (Vec::new(), PageMarks::new(page_size));
        let mut pager = Pager::new(Position::START, page_size);
        for piece in pieces(text) {
            marks.push(pager.at);
            if let Location::Disk(room) = &location {
                room.write(piece.as_bytes(), pager.at.byte)?;
            }
            pager.take(piece, |start| pages.add(start));
        }
        Ok(Stored {
            digest,
            location,
            end: pager.at,
            lines: pager.at.line - u64::from(text.ends_with('\n')),
            marks,
            pages: Mutex::new(vec![Arc::new(pages)]),
            shelf: Arc::downgrade(&self.0),
        })
    }
}

/// Cuts a text between characters into parts of about a stride.
fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = text.split_at(text.floor_char_boundary(STRIDE as usize));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

impl Shelf {
    fn known(&self) -> MutexGuard<'_, HashMap<Digest, Weak<Stored>>> {
        self.known.lock()
    }

    fn find(&self, digest: &Digest) -> Option<StoredContent> {
        self.known().get(digest).and_then(Weak::upgrade).map(StoredContent)
    }

    /// Keeps a text, or returns the equal one that somebody else stored meanwhile.
    fn keep(&self, content: StoredContent) -> StoredContent {
        let mut known = self.known();
        let other = known.get(&content.0.digest).and_then(Weak::upgrade);
        if other.is_none() {
            known.insert(content.0.digest, Arc::downgrade(&content.0));
        }
        // What is dropped takes the lock.
        drop(known);
        other.map(StoredContent).unwrap_or(content)
    }

    fn location(&self, text: &str) -> io::Result<Location> {
        let size = text.len() as u64;
        let fits = |used: u64| Some(used + size).filter(|used| *used <= self.most_in_memory);
        let reserve = || self.in_memory.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        match size <= MAX_ITEM_IN_MEMORY && reserve() {
            true => Ok(Location::Memory(text.into())),
            false => self.spill.room(size).map(Location::Disk),
        }
    }
}

/// A stored text. Clones are the same text.
#[derive(Debug, Clone)]
pub struct StoredContent(Arc<Stored>);

#[derive(Debug)]
struct Stored {
    digest: Digest,
    location: Location,
    end: Position,
    lines: u64,
    /// The beginnings of the parts in which the text was looked at.
    marks: Vec<Position>,
    pages: Mutex<Vec<Arc<PageMarks>>>,
    shelf: Weak<Shelf>,
}

#[derive(Debug)]
enum Location {
    Memory(Box<str>),
    Disk(Room),
}

impl Drop for Stored {
    fn drop(&mut self) {
        let Some(shelf) = self.shelf.upgrade() else { return };
        if let Location::Memory(text) = &self.location {
            shelf.in_memory.fetch_sub(text.len() as u64, Ordering::Relaxed);
        }
        let mut known = shelf.known();
        // An equal text may have been stored since the last holder of this one let go.
        if known.get(&self.digest).is_some_and(|other| other.strong_count() == 0) {
            known.remove(&self.digest);
        }
    }
}

impl StoredContent {
    /// Returns the digest of the text.
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// Returns how many bytes the text has.
    pub fn bytes(&self) -> u64 {
        self.0.end.byte
    }

    /// Returns how many characters the text has.
    pub fn characters(&self) -> u64 {
        self.0.end.character
    }

    /// Returns how many lines the text has. A line end at the very end begins no further line; an empty text has one.
    pub fn lines(&self) -> u64 {
        self.0.lines
    }

    /// Returns whether the text lies in memory and not on the disk.
    pub fn is_in_memory(&self) -> bool {
        matches!(self.0.location, Location::Memory(_))
    }

    /// Returns the end of the text.
    pub fn end(&self) -> Position {
        self.0.end
    }

    /// Reads a part of the text by its bytes, which must lie between characters.
    pub fn text(&self, start: u64, end: u64) -> Result<Cow<'_, str>, Failure> {
        self.part(start, end).map_err(unreadable)
    }

    /// Returns a reader of the whole text.
    pub fn reader(&self) -> ContentReader {
        ContentReader { content: self.clone(), at: 0 }
    }

    /// Finds the beginning of a line, counted from 1; what lies beyond the last one is the end.
    pub fn line_start(&self, line: u64) -> Result<Position, Failure> {
        if line > self.0.lines {
            return Ok(self.0.end);
        }
        // The line of a mark may have begun before it.
        self.seek(|mark| mark.line < line, |position| position.line >= line)
    }

    /// Finds a character by how many lie before it; what lies beyond the last one is the end.
    pub fn character_start(&self, character: u64) -> Result<Position, Failure> {
        self.seek(|mark| mark.character <= character, |position| position.character >= character)
    }

    /// Finds the first location between characters that has at least so many bytes before it.
    pub fn position_at(&self, byte: u64) -> Result<Position, Failure> {
        self.seek(|mark| mark.byte <= byte, |position| position.byte >= byte)
    }

    /// Returns how many pages of this size the text has.
    pub fn page_count(&self, page_size: u64) -> Result<u64, Failure> {
        Ok(self.pages(page_size)?.count)
    }

    /// Finds the beginning of a page, counted from 1; what lies beyond the last one is the end.
    pub fn page_start(&self, page: u64, page_size: u64) -> Result<Position, Failure> {
        let pages = self.pages(page_size)?;
        if page > pages.count {
            return Ok(self.0.end);
        }
        let mark = pages.before(page);
        let mut pager = Pager::new(mark.start, page_size);
        let (mut number, mut found) = (mark.page, Some(mark.start).filter(|_| mark.page == page));
        while found.is_none() && pager.at.byte < self.0.end.byte {
            let piece = self.part_from(pager.at.byte).map_err(unreadable)?;
            pager.take(&piece, |start| {
                number += 1;
                found = found.or(Some(start).filter(|_| number == page));
            });
        }
        Ok(found.unwrap_or(self.0.end))
    }

    /// Goes from the last mark of which something holds to the first location of which something else does.
    fn seek(
        &self,
        is_before: impl Fn(&Position) -> bool,
        is_there: impl Fn(&Position) -> bool,
    ) -> Result<Position, Failure> {
        let after = self.0.marks.partition_point(is_before);
        let mark = after.checked_sub(1).and_then(|index| self.0.marks.get(index));
        let mut position = mark.copied().unwrap_or(Position::START);
        while !is_there(&position) && position.byte < self.0.end.byte {
            let piece = self.part_from(position.byte).map_err(unreadable)?;
            for character in piece.chars() {
                if is_there(&position) {
                    break;
                }
                position.pass(character);
            }
        }
        Ok(position)
    }

    fn pages(&self, page_size: u64) -> Result<Arc<PageMarks>, Failure> {
        let kept = || self.0.pages.lock();
        if let Some(pages) = kept().iter().find(|pages| pages.size == page_size) {
            return Ok(pages.clone());
        }
        let pages = Arc::new(self.find_pages(page_size).map_err(unreadable)?);
        let mut kept = kept();
        kept.push(pages.clone());
        if kept.len() > MAX_PAGE_SIZES {
            kept.remove(0);
        }
        Ok(pages)
    }

    fn find_pages(&self, page_size: u64) -> io::Result<PageMarks> {
        let mut pages = PageMarks::new(page_size);
        let mut pager = Pager::new(Position::START, page_size);
        while pager.at.byte < self.0.end.byte {
            pager.take(&self.part_from(pager.at.byte)?, |start| pages.add(start));
        }
        Ok(pages)
    }

    /// Reads up to the next mark.
    fn part_from(&self, byte: u64) -> io::Result<Cow<'_, str>> {
        let next = self.0.marks.partition_point(|mark| mark.byte <= byte);
        self.part(byte, self.0.marks.get(next).map_or(self.0.end.byte, |mark| mark.byte))
    }

    fn part(&self, start: u64, end: u64) -> io::Result<Cow<'_, str>> {
        let outside = || io::Error::other("the part lies outside the text or cuts a character");
        let size = end.checked_sub(start).filter(|_| end <= self.0.end.byte).ok_or_else(outside)?;
        match &self.0.location {
            Location::Memory(text) => {
                text.get(start as usize..end as usize).map(Cow::Borrowed).ok_or_else(outside)
            }
            Location::Disk(room) => {
                let mut bytes = vec![0; size as usize];
                room.read(&mut bytes, start)?;
                String::from_utf8(bytes).map(Cow::Owned).map_err(|_| outside())
            }
        }
    }
}

/// Reads a stored text from its beginning.
#[derive(Debug)]
pub struct ContentReader {
    content: StoredContent,
    at: u64,
}

impl Read for ContentReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let stored = &self.content.0;
        let size = buffer.len().min((stored.end.byte - self.at) as usize);
        match &stored.location {
            Location::Memory(text) => {
                buffer[..size].copy_from_slice(&text.as_bytes()[self.at as usize..][..size]);
            }
            Location::Disk(room) => room.read(&mut buffer[..size], self.at)?,
        }
        self.at += size as u64;
        Ok(size)
    }
}

fn unwritable(error: io::Error) -> Failure {
    let failure = Failure::new(FailureKind::Tool, format!("the text could not be stored: {error}"));
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => failure
            .with_hint("there is no room for it on the disk; close descriptors that are no longer needed"),
        _ => failure,
    }
}

fn unreadable(error: io::Error) -> Failure {
    Failure::new(FailureKind::Tool, format!("the stored text could not be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_disk() -> ContentStore {
        ContentStore::with_memory(std::env::temp_dir(), 0)
    }

    fn whole(content: &StoredContent) -> String {
        content.text(0, content.bytes()).unwrap().into_owned()
    }

    #[test]
    fn equal_texts_are_stored_once_and_gone_when_nobody_holds_them() {
        let store = ContentStore::default();
        let (one, other) = (store.store("abc", 10).unwrap(), store.store("abc", 20).unwrap());
        assert!(Arc::ptr_eq(&one.0, &other.0));
        assert_eq!(store.in_memory(), 3);
        drop(one);
        assert_eq!(whole(&other), "abc");
        drop(other);
        assert_eq!(store.in_memory(), 0);
        assert!(store.0.known().is_empty());
    }

    #[test]
    fn large_texts_lie_on_the_disk_and_so_do_small_ones_when_memory_is_used_up() {
        let store = ContentStore::with_memory(std::env::temp_dir(), 1000);
        let (large, first) = ("ä".repeat(200_000), "x".repeat(900));
        let (large_one, first_one) = (store.store(&large, 10).unwrap(), store.store(&first, 10).unwrap());
        let second_one = store.store(&"y".repeat(101), 10).unwrap();
        let in_memory = [&large_one, &first_one, &second_one].map(StoredContent::is_in_memory);
        assert_eq!(in_memory, [false, true, false]);
        assert_eq!(whole(&large_one), large);
        assert_eq!(whole(&second_one), "y".repeat(101));
        drop(first_one);
        assert!(store.store("z", 10).unwrap().is_in_memory());
    }

    #[test]
    fn a_place_on_the_disk_that_does_not_exist_is_a_failure() {
        let store = ContentStore::with_memory("/nowhere/at/all", 0);
        let failure = store.store("abc", 10).unwrap_err();
        assert!(failure.message.starts_with("the text could not be stored"), "{failure}");
        assert_eq!(store.in_memory(), 0);
    }

    #[test]
    fn lines_end_with_their_line_end_and_none_begins_after_the_last() {
        let count = |text: &str| on_disk().store(text, 10).unwrap().lines();
        assert_eq!(["", "a", "a\n", "\n\n", "a\r\nb"].map(count), [1, 1, 1, 2, 2]);
    }

    #[test]
    fn places_are_found_far_from_any_mark() {
        for text in ["é".repeat(100_000), "line\n".repeat(50_000), format!("{}\nend", "x".repeat(70_000))] {
            let content = on_disk().store(&text, 4000).unwrap();
            let middle = content.character_start(content.characters() / 2).unwrap();
            assert_eq!(middle.character, content.characters() / 2);
            assert_eq!(content.position_at(middle.byte).unwrap(), middle);
            let last = content.line_start(content.lines()).unwrap();
            assert_eq!(last.line, content.lines());
            assert!(last.byte == 0 || text.as_bytes()[last.byte as usize - 1] == b'\n');
        }
    }

    #[test]
    fn a_part_that_cuts_a_character_is_a_failure() {
        for store in [on_disk(), ContentStore::default()] {
            let content = store.store("äöü", 10).unwrap();
            assert_eq!(content.text(2, 4).unwrap(), "ö");
            assert!(
                content.text(1, 4).is_err() && content.text(2, 7).is_err() && content.text(4, 2).is_err()
            );
        }
    }

    #[test]
    fn pages_of_another_size_are_found_when_they_are_asked_for() {
        let content = on_disk().store(&"abc\n".repeat(10_000), 4000).unwrap();
        assert_eq!(content.page_count(4000).unwrap(), 10);
        for size in [1, 7, 40, 400, 40_000] {
            let expected = super::super::pages::page_starts(&"abc\n".repeat(10_000), size);
            assert_eq!(content.page_count(size).unwrap(), expected.len() as u64);
            let last = content.page_start(expected.len() as u64, size).unwrap();
            assert_eq!(Some(&last), expected.last());
        }
        assert!(content.0.pages.lock().len() <= MAX_PAGE_SIZES);
    }
}
