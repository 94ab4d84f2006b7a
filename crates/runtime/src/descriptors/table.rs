//! The descriptors of one agent call.

use std::sync::Arc;

use llm_do_core::{DescriptorSettings, Digest, Failure, FailureKind, Key, nearest};
use parking_lot::{Mutex, MutexGuard};

use super::content::{ContentStore, StoredContent};
use super::fd::{Excerpt, Fd, FdInfo, FdSource};
use super::id::FdId;
use super::references::{Reference, find_references};
use super::show::first_view;

/// The usual name of the tool that reads descriptors.
pub(crate) const READER: &str = "read_fd";

/// How many names an error lists.
const MAX_NAMED: usize = 20;

/// The descriptors of one agent call. Clones are the same table.
///
/// A name refers to one text; adding another one under the same name replaces it. Tables share texts and nothing
/// else: what happens in a fork or in a child is not seen here.
#[derive(Debug, Clone)]
pub struct Descriptors(Arc<TableState>);

#[derive(Debug)]
struct TableState {
    settings: DescriptorSettings,
    store: ContentStore,
    /// The name of the tool that reads them.
    reader: Arc<str>,
    /// In the order in which they were added.
    entries: Mutex<Vec<Fd>>,
}

impl Descriptors {
    /// A table without descriptors.
    pub fn new(settings: DescriptorSettings, store: ContentStore) -> Self {
        Self::read_by(READER, settings, store)
    }

    /// A table without descriptors, whose tool for reading has another name.
    pub fn read_by(reader: &str, settings: DescriptorSettings, store: ContentStore) -> Self {
        Self::with(settings, store, reader.into(), Vec::new())
    }

    fn with(settings: DescriptorSettings, store: ContentStore, reader: Arc<str>, entries: Vec<Fd>) -> Self {
        Self(Arc::new(TableState { settings, store, reader, entries: Mutex::new(entries) }))
    }

    /// Returns what is set about descriptors.
    pub fn settings(&self) -> &DescriptorSettings {
        &self.0.settings
    }

    /// Returns where the texts lie.
    pub fn store(&self) -> &ContentStore {
        &self.0.store
    }

    /// Makes a long result a descriptor, and returns what the model reads instead; nothing where it is short enough.
    pub fn page_result(&self, key: &Key, text: &str) -> Result<Option<String>, Failure> {
        match self.0.settings.pages_result(text) {
            true => self.first_view_of(&FdId::from_key(key), text, FdSource::ToolResult).map(Some),
            false => Ok(None),
        }
    }

    /// Makes a long input a descriptor, and returns what the model reads instead; nothing where it is short enough.
    /// `room` is how many bytes of it fit into the context window of the model, if that is known.
    pub fn page_input(&self, text: &str, room: Option<u64>) -> Result<Option<String>, Failure> {
        match self.0.settings.pages_input(text, room) {
            true => self.first_view_of(&FdId::input(), text, FdSource::UserInput).map(Some),
            false => Ok(None),
        }
    }

    /// Makes the references of an answer descriptors, where they are wanted.
    pub fn keep_references(&self, answer: &str) -> Result<Vec<FdInfo>, Failure> {
        if !self.0.settings.enabled || !self.0.settings.references {
            return Ok(Vec::new());
        }
        let keep =
            |found: Reference<'_>| self.add(FdId::reference(found.name), found.text, FdSource::Reference);
        find_references(answer).into_iter().map(keep).collect()
    }

    pub(super) fn first_view_of(&self, id: &FdId, text: &str, source: FdSource) -> Result<String, Failure> {
        let info = self.add_beside(id, text, source)?;
        first_view(&self.get(info.id.as_str())?)
    }

    /// Adds a text under a name. What had the name before is replaced.
    pub fn add(&self, id: FdId, text: &str, source: FdSource) -> Result<FdInfo, Failure> {
        self.check_room(&self.entries(), &id)?;
        let content = self.0.store.store(text, self.0.settings.page_size)?;
        self.add_content(id, content, source)
    }

    /// Adds a text under a name, with a number behind it where another text has the name already.
    pub fn add_beside(&self, id: &FdId, text: &str, source: FdSource) -> Result<FdInfo, Failure> {
        let content = self.0.store.store(text, self.0.settings.page_size)?;
        let free = self.free_name(id, content.digest());
        self.add_content(free, content, source)
    }

    /// Adds a text that is stored already.
    pub fn add_content(&self, id: FdId, content: StoredContent, source: FdSource) -> Result<FdInfo, Failure> {
        let page_size = self.0.settings.page_size;
        let pages = content.page_count(page_size)?;
        let (lines, chars) = (content.lines(), content.characters());
        let info = FdInfo { id, source, pages, lines, chars };
        let mut entries = self.entries();
        self.check_room(&entries, &info.id)?;
        let replaced = entries.iter().position(|other| other.info.id == info.id);
        let replaced = replaced.map(|index| entries.remove(index));
        let reader = self.0.reader.clone();
        entries.push(Fd { info: info.clone(), content, page_size, reader });
        // The text of what was replaced may be closed now, which needs no lock of this table.
        drop(entries);
        drop(replaced);
        Ok(info)
    }

    /// Makes a part of a text a descriptor of its own, named by the call that takes it out.
    ///
    /// The same call gives the same name and the same text, so that a resumed run can repeat it.
    pub fn extract(&self, key: &Key, part: &Excerpt) -> Result<FdInfo, Failure> {
        self.add_beside(&FdId::from_key(key), &part.text, FdSource::Extraction)
    }

    /// Returns a descriptor.
    pub fn get(&self, id: &str) -> Result<Fd, Failure> {
        let found = self.entries().iter().find(|fd| fd.info.id.as_str() == id).cloned();
        found.ok_or_else(|| self.unknown(id))
    }

    /// Lists the descriptors in the order in which they were added.
    pub fn list(&self) -> Vec<FdInfo> {
        self.entries().iter().map(|fd| fd.info.clone()).collect()
    }

    /// Takes a descriptor away. Its text goes with its last holder.
    pub fn close(&self, id: &str) -> Result<FdInfo, Failure> {
        let mut entries = self.entries();
        let found = entries.iter().position(|fd| fd.info.id.as_str() == id);
        let closed = found.map(|index| entries.remove(index));
        drop(entries);
        closed.map(|fd| fd.info).ok_or_else(|| self.unknown(id))
    }

    /// Returns a table that holds the same texts now, and is another one from then on.
    #[must_use]
    pub fn fork(&self) -> Self {
        let TableState { settings, store, reader, .. } = &*self.0;
        Self::with(settings.clone(), store.clone(), reader.clone(), self.entries().clone())
    }

    /// Makes this table hold the texts that another one holds, and no others.
    pub(crate) fn restore(&self, other: &Self) {
        let texts = other.entries().clone();
        // The texts of those that go may be closed now, which needs no lock of this table.
        drop(std::mem::replace(&mut *self.entries(), texts));
    }

    /// Returns the texts of descriptors for the table of a child, under the names that they have there: `fd:a1`,
    /// `fd:a2` in the order given; references keep their names.
    pub fn pass<I: AsRef<str>>(
        &self,
        ids: impl IntoIterator<Item = I>,
    ) -> Result<Vec<(FdId, StoredContent)>, Failure> {
        let mut number = 0;
        let mut pass = |id: I| {
            let fd = self.get(id.as_ref())?;
            let name = if fd.info.id.is_reference() {
                fd.info.id
            } else {
                number += 1;
                FdId::passed(number)
            };
            Ok((name, fd.content))
        };
        ids.into_iter().map(&mut pass).collect()
    }

    /// Returns everything that is open, in the order in which it was added.
    pub(crate) fn open(&self) -> Vec<Fd> {
        self.entries().clone()
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Fd>> {
        self.0.entries.lock()
    }

    /// Returns the name, or the first numbered one that is free or refers to the same text.
    fn free_name(&self, id: &FdId, digest: Digest) -> FdId {
        let entries = self.entries();
        let is_free = |name: &FdId| {
            let taken = entries.iter().find(|fd| fd.info.id == *name);
            taken.is_none_or(|fd| fd.content.digest() == digest)
        };
        let numbered = (2..=entries.len() + 2).map(|number| id.numbered(number));
        std::iter::once(id.clone()).chain(numbered).find(is_free).unwrap_or_else(|| id.clone())
    }

    fn check_room(&self, entries: &[Fd], id: &FdId) -> Result<(), Failure> {
        let most = self.0.settings.most;
        if entries.len() < most || entries.iter().any(|fd| fd.info.id == *id) {
            return Ok(());
        }
        let message = format!("{most} file descriptors are open, and more are not permitted");
        let hint = "close some that are no longer needed with close_fd; list_fd shows them";
        Err(Failure::new(FailureKind::Limit, message).with_hint(hint))
    }

    fn unknown(&self, id: &str) -> Failure {
        let entries = self.entries();
        let names: Vec<&str> = entries.iter().map(|fd| fd.info.id.as_str()).collect();
        let shown: String = id.chars().take(100).collect();
        let failure = Failure::new(FailureKind::Arguments, format!("there is no file descriptor `{shown}`"));
        failure.with_hint(available(id, &names))
    }
}

/// Says which descriptors there are, the nearest first and then the newest.
fn available(written: &str, names: &[&str]) -> String {
    if names.is_empty() {
        return "no file descriptor is open".to_owned();
    }
    let listed: Vec<String> = names.iter().rev().take(MAX_NAMED).map(|name| format!("`{name}`")).collect();
    let more = match names.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more, which list_fd shows"),
    };
    let listed = format!("open are {}{more}", listed.join(", "));
    match nearest(written, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? {listed}"),
        None => listed,
    }
}
