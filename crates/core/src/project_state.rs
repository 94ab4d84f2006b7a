//! What a run is bound to: the parts and files of its project, so that a later change of them can be named.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Digest, Name};

/// A file with more bytes than this is known by its digest only.
pub const MAX_BUNDLED_BYTES: usize = 1024 * 1024;

/// The files that define a project, by their paths below its directory, as they were read: manifest, agent files,
/// prompts and code. Files that are secret are not among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectBundle {
    files: BTreeMap<String, BundledFile>,
}

/// A file of a [`ProjectBundle`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundledFile {
    /// The digest of its content.
    pub digest: Digest,
    /// Its content; none if it is larger than [`MAX_BUNDLED_BYTES`] or not UTF-8 text.
    pub text: Option<Arc<str>>,
}

impl BundledFile {
    /// A file with this content.
    pub fn new(content: impl AsRef<[u8]>) -> Self {
        let content = content.as_ref();
        let text = std::str::from_utf8(content).ok().filter(|text| text.len() <= MAX_BUNDLED_BYTES);
        Self { digest: Digest::hash(content), text: text.map(Arc::from) }
    }
}

impl ProjectBundle {
    /// Adds a file, in place of another one of the same path.
    pub fn insert(&mut self, path: impl Into<String>, file: BundledFile) {
        self.files.insert(path.into(), file);
    }

    /// Returns a file.
    pub fn get(&self, path: &str) -> Option<&BundledFile> {
        self.files.get(path)
    }

    /// Returns the files in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &BundledFile)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// Returns whether there is no file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the digest of all paths and contents.
    pub fn digest(&self) -> Digest {
        let parts = self.files.iter().flat_map(|(path, file)| [path.as_bytes(), file.digest.as_bytes()]);
        Digest::hash_parts(parts)
    }

    /// Returns how the files differ from earlier ones.
    pub fn changes_since(&self, earlier: &Self) -> BTreeMap<String, ChangeKind> {
        compared(&digests(earlier), &digests(self))
    }
}

fn digests(bundle: &ProjectBundle) -> BTreeMap<String, Digest> {
    bundle.files.iter().map(|(path, file)| (path.clone(), file.digest)).collect()
}

/// The digests of what persons wrote of a project, by name. Agents that agents created are not among them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedParts {
    /// The definitions of agents, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<Name, Digest>,
    /// The definitions of tools: `toolset.tool`, or the name of a tool without a toolset.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<Name, Digest>,
    /// The version of the agent loop.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent_loop: String,
}

impl PinnedParts {
    /// Returns whether nothing is known: the record was written before parts were named.
    pub fn is_empty(&self) -> bool {
        self.agents.is_empty() && self.tools.is_empty() && self.agent_loop.is_empty()
    }
}

/// What a project was loaded from, so that another process can load it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectSource {
    /// A manifest, a directory or an agent file, as an absolute path.
    pub path: PathBuf,
    /// Keys that were set over those of the files, `KEY=VALUE` each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// The name of the machine that has the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
}

/// The project as it was when a run was started or continued. A field without a value was not recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectState {
    /// The digest of agents, prompts, definitions and loop that the run is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<Digest>,
    /// The digests of the parts of which the pin is made.
    #[serde(default, skip_serializing_if = "PinnedParts::is_empty")]
    pub parts: PinnedParts,
    /// The directory of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    /// The digest of the files that define it ([`ProjectBundle`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<Digest>,
    /// What it was loaded from, if the program said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ProjectSource>,
}

/// How something differs from what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was not there.
    Added,
    /// It is not there any more.
    Removed,
    /// It was another one.
    Modified,
}

impl ChangeKind {
    /// Returns the word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Modified => "modified",
        }
    }
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What is different from the time when a run was last started or continued.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ProjectChanges {
    /// The files of the project that differ, by their paths below its directory.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, ChangeKind>,
    /// The agents that differ.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<Name, ChangeKind>,
    /// The tools whose definitions differ: `toolset.tool`, or the name of a tool without a toolset.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<Name, ChangeKind>,
    /// Those of `tools` that must happen at most once and that the run has called.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub used_once: BTreeSet<Name>,
    /// Whether agents take their turns in another way.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub agent_loop: bool,
    /// Whether the project differs in what an old record does not name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unnamed: bool,
    /// The version of the program that wrote the record so far, if it was another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier_build: Option<String>,
    /// The directory of the project, if it was another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier_directory: Option<PathBuf>,
    /// The machine on which the run was, if it was another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier_machine: Option<String>,
}

impl ProjectChanges {
    /// Compares all but the files with an earlier state.
    pub fn between(earlier: &ProjectState, now: &ProjectState) -> Self {
        let mut changes = Self::default();
        if earlier.parts.is_empty() || now.parts.is_empty() {
            changes.unnamed = earlier.pin.is_some() && earlier.pin != now.pin;
        } else {
            changes.agents = compared(&earlier.parts.agents, &now.parts.agents);
            changes.tools = compared(&earlier.parts.tools, &now.parts.tools);
            changes.agent_loop = earlier.parts.agent_loop != now.parts.agent_loop;
        }
        let is_elsewhere = now.project.is_some() && earlier.project != now.project;
        changes.earlier_directory = earlier.project.clone().filter(|_| is_elsewhere);
        let machine = |state: &ProjectState| state.source.as_ref()?.machine.clone();
        let here = machine(now);
        changes.earlier_machine =
            machine(earlier).filter(|earlier| here.is_some_and(|here| here != *earlier));
        changes
    }

    /// Returns whether nothing is different.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether the project is another one, and not only the program: what it allows is then decided anew.
    pub fn concern_project(&self) -> bool {
        let build_only = Self { earlier_build: self.earlier_build.clone(), ..Self::default() };
        *self != build_only
    }

    /// Returns whether a person should decide how to go on: files differ, the project is in another place, or a tool that
    /// was used and must happen at most once has another definition.
    pub fn need_decision(&self) -> bool {
        let is_elsewhere = self.earlier_directory.is_some() || self.earlier_machine.is_some();
        !self.files.is_empty() || is_elsewhere || !self.used_once.is_empty()
    }
}

/// As one line of names, such as `main.agent (modified), agent main (modified)`.
impl fmt::Display for ProjectChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.files.iter().map(|(path, kind)| format!("{path} ({kind})"));
        let agents = self.agents.iter().map(|(name, kind)| format!("agent {name} ({kind})"));
        let tools = self.tools.iter().map(|(name, kind)| format!("tool {name} ({kind})"));
        let directory =
            self.earlier_directory.iter().map(|path| format!("directory (was {})", path.display()));
        let machine = self.earlier_machine.iter().map(|name| format!("machine (was {name})"));
        let agent_loop = self.agent_loop.then(|| "the way agents take turns".to_owned());
        let parts = files.chain(agents).chain(tools).chain(directory).chain(machine).chain(agent_loop);
        f.write_str(&parts.collect::<Vec<_>>().join(", "))
    }
}

fn compared<K: Ord + Clone>(
    earlier: &BTreeMap<K, Digest>,
    now: &BTreeMap<K, Digest>,
) -> BTreeMap<K, ChangeKind> {
    let removed =
        earlier.keys().filter(|name| !now.contains_key(name)).map(|name| (name, ChangeKind::Removed));
    let others = now.iter().filter_map(|(name, digest)| match earlier.get(name) {
        None => Some((name, ChangeKind::Added)),
        Some(earlier) if earlier != digest => Some((name, ChangeKind::Modified)),
        Some(_) => None,
    });
    removed.chain(others).map(|(name, kind)| (name.clone(), kind)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(files: &[(&str, &str)]) -> ProjectBundle {
        let mut bundle = ProjectBundle::default();
        files.iter().for_each(|(path, text)| bundle.insert(*path, BundledFile::new(text)));
        bundle
    }

    fn state(agents: &[(&str, &str)]) -> ProjectState {
        let agents = agents.iter().map(|(name, text)| (Name::from(*name), Digest::hash(text))).collect();
        let parts = PinnedParts { agents, agent_loop: "1".to_owned(), ..PinnedParts::default() };
        ProjectState { pin: Some(Digest::hash("pin")), parts, ..ProjectState::default() }
    }

    #[test]
    fn files_are_added_removed_and_modified() {
        let earlier = bundle(&[("a", "1"), ("b", "1"), ("c", "1")]);
        let now = bundle(&[("b", "1"), ("c", "2"), ("d", "1")]);
        let changes = now.changes_since(&earlier);
        let expected = [("a", ChangeKind::Removed), ("c", ChangeKind::Modified), ("d", ChangeKind::Added)];
        assert_eq!(changes, expected.map(|(path, kind)| (path.to_owned(), kind)).into());
        assert_ne!(earlier.digest(), now.digest());
        assert!(earlier.changes_since(&earlier).is_empty());
    }

    #[test]
    fn the_digest_tells_paths_from_contents() {
        assert_ne!(bundle(&[("ab", "c")]).digest(), bundle(&[("a", "bc")]).digest());
    }

    #[test]
    fn a_large_file_is_known_by_its_digest() {
        let large = BundledFile::new("x".repeat(MAX_BUNDLED_BYTES + 1));
        assert_eq!((large.text, large.digest), (None, Digest::hash("x".repeat(MAX_BUNDLED_BYTES + 1))));
        assert!(BundledFile::new("x".repeat(MAX_BUNDLED_BYTES)).text.is_some());
        assert_eq!(BundledFile::new([0xff]).text, None);
    }

    #[test]
    fn changes_name_parts_and_say_what_they_concern() {
        let earlier = state(&[("main", "old"), ("helper", "same")]);
        let changes = ProjectChanges::between(&earlier, &state(&[("main", "new"), ("helper", "same")]));
        assert_eq!(changes.to_string(), "agent main (modified)");
        assert!(changes.concern_project() && !changes.need_decision());

        let same = ProjectChanges::between(&earlier, &earlier);
        assert!(same.is_empty() && !same.concern_project());
        let built = ProjectChanges { earlier_build: Some("0.1.0".to_owned()), ..same };
        assert!(!built.is_empty() && !built.concern_project());
    }

    #[test]
    fn an_old_record_says_only_that_something_changed() {
        let old = ProjectState { pin: Some(Digest::hash("other")), ..ProjectState::default() };
        let changes = ProjectChanges::between(&old, &state(&[("main", "new")]));
        assert!(changes.unnamed && changes.concern_project(), "{changes:?}");
        let same = ProjectState { pin: Some(Digest::hash("pin")), ..ProjectState::default() };
        assert!(ProjectChanges::between(&same, &state(&[("main", "new")])).is_empty());
    }

    #[test]
    fn another_directory_or_machine_needs_a_decision() {
        let at = |directory: &str, machine: &str| ProjectState {
            project: Some(directory.into()),
            source: Some(ProjectSource {
                path: directory.into(),
                set: Vec::new(),
                machine: Some(machine.to_owned()),
            }),
            ..ProjectState::default()
        };
        let moved = ProjectChanges::between(&at("/a", "here"), &at("/b", "here"));
        assert_eq!(moved.earlier_directory, Some("/a".into()));
        let other = ProjectChanges::between(&at("/a", "there"), &at("/a", "here"));
        assert_eq!(other.earlier_machine.as_deref(), Some("there"));
        assert!(moved.need_decision() && other.need_decision());
        assert!(ProjectChanges::between(&at("/a", "here"), &at("/a", "here")).is_empty());
    }
}
