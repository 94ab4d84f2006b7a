//! A change of one file: shown before it is allowed, checked again before it is made.
//!
//! What a person approves is a change from one content to another. The digests of both are in the
//! precondition of the call, so that the file is written only if it is still as it was shown. A call that is
//! repeated finds the new content there already and has nothing to do: this makes changes idempotent.

use std::path::Path;

use cap_std::fs::Metadata;
use llm_do_core::{Approval, Assessment, CallContext, Digest, Failure, Scope, SecretFile, Subject};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::FileError;
use super::resolved_path::{LastLink, PathKind, ResolvedPath};
use super::root::Root;
use super::writer::Writer;
use super::{diff, judged};

/// A tool that gives a file new content.
pub(crate) trait FileChange {
    /// Returns the path as it was asked for.
    fn path(&self) -> &str;

    /// Says what may be made where it is missing.
    fn creates(&self) -> Creates;

    /// Returns whether another old content would lead to another new one.
    fn depends_on_old(&self) -> bool;

    /// Works out the new content from the old one. It may have `limit` bytes, and nothing longer may be built on the
    /// way to it: this runs before anybody approved the call.
    fn after(&self, shown: &str, before: Option<&[u8]>, limit: u64) -> Result<Vec<u8>, FileError>;

    /// Says what the change would do, for a person.
    fn describe(&self, shown: &str, before: Option<&[u8]>, after: &[u8]) -> String;
}

/// What a change may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Creates {
    Nothing,
    File,
    FileAndDirectories,
}

/// What the assessment found.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Precondition {
    /// The change that was shown.
    Change { path: String, before: Option<Digest>, after: Digest },
    /// The call cannot do anything, so nobody was asked; it answers with this, whatever the file is by then.
    Fails(Failure),
}

/// A file that shall be changed, as it is now.
struct ChangeTarget {
    resolved: ResolvedPath,
    old: Option<(Vec<u8>, Metadata)>,
}

impl ChangeTarget {
    fn find(root: &Root, change: &dyn FileChange) -> Result<Self, FileError> {
        let resolved = root.find(change.path(), LastLink::Keep)?;
        root.root_config.check_writable(&resolved)?;
        let old = match resolved.kind() {
            PathKind::Missing => match change.creates() {
                Creates::Nothing => return Err(resolved.missing_error()),
                Creates::File if resolved.lacks_directories() => return Err(resolved.missing_error()),
                Creates::File | Creates::FileAndDirectories => None,
            },
            _ => Some(root.read_whole(&resolved)?),
        };
        root.check_suffix(&resolved.path())?;
        Ok(Self { resolved, old })
    }

    fn before(&self) -> Option<&[u8]> {
        self.old.as_ref().map(|(bytes, _)| bytes.as_slice())
    }

    /// Returns the file if its present content is secret.
    fn secret_file(&self, root: &Root) -> Option<SecretFile> {
        root.root_config.secret_file(&self.resolved.path(), self.before()?)
    }

    fn after(&self, root: &Root, change: &dyn FileChange) -> Result<Vec<u8>, FileError> {
        let limit = root.root_config.settings.max_write_bytes;
        let after = change.after(&self.resolved.shown(), self.before(), limit)?;
        check_size(after.len() as u64, limit)?;
        Ok(after)
    }

    fn write(&self, content: &[u8]) -> Result<(), FileError> {
        let writer = Writer::new(&self.resolved);
        match &self.old {
            Some((bytes, metadata)) => writer.replace(content, (bytes, metadata)),
            None => writer.create(content),
        }
    }
}

/// Refuses content that is longer than a file may be.
pub(crate) fn check_size(size: u64, limit: u64) -> Result<(), FileError> {
    if size > limit { Err(FileError::TooMuch { size, limit }) } else { Ok(()) }
}

/// Judges a change without making it.
pub(crate) fn assess(root: &Root, change: &dyn FileChange) -> Assessment {
    propose(root, change).unwrap_or_else(|error| refuse(error, format!("write `{}`", change.path())))
}

/// What may never be done is blocked; the rest cannot be done now.
pub(crate) fn refuse(error: FileError, description: String) -> Assessment {
    if !error.is_forbidden() {
        return cannot(error.into_failure());
    }
    let mut assessment = Assessment::new(Approval::Blocked, description);
    assessment.reason = Some(error.into_failure().to_string());
    assessment
}

/// What cannot be done needs no approval: the precondition sees to it that it stays undone.
pub(crate) fn cannot(failure: Failure) -> Assessment {
    let precondition = Some(json!(Precondition::Fails(failure.clone())));
    Assessment { precondition, ..Assessment::cannot(failure) }
}

fn propose(root: &Root, change: &dyn FileChange) -> Result<Assessment, FileError> {
    let target = ChangeTarget::find(root, change)?;
    let secret = target.secret_file(root);
    let after = match (target.after(root, change), &secret) {
        // Whether a text occurs in a secret file is not told before somebody agreed.
        (Err(error), Some(file)) if change.depends_on_old() => return Ok(hidden_failure(error, file)),
        (after, _) => after?,
    };
    let shown = target.resolved.shown();
    let description = change.describe(&shown, target.before(), &after);
    let mut assessment = Assessment::new(Approval::Ask, description);
    assessment.preview = match &secret {
        None => Some(diff::preview(&shown, target.before(), &after)),
        // The arguments are shown instead, and the old content goes into no event.
        Some(_) if change.depends_on_old() => None,
        Some(file) => {
            let new = diff::preview(&shown, None, &after);
            Some(format!("the old content is not shown: it is a secret file ({})\n{new}", file.what))
        }
    };
    assessment.scopes = scopes(&target.resolved);
    if let Some(reason) = root.root_config.protection(&target.resolved) {
        assessment.protected = true;
        assessment.reason = Some(format!("`{shown}` is protected: {reason}"));
    }
    assessment.precondition = Some(json!(Precondition::Change {
        path: shown.clone(),
        before: target.before().map(Digest::hash),
        after: Digest::hash(&after),
    }));
    let read = secret.filter(|_| change.depends_on_old()).map(Subject::SecretFile);
    assessment.subjects = std::iter::once(Subject::Path(shown)).chain(read).collect();
    Ok(assessment)
}

/// A change of a secret file that cannot be made: it asks like one that can, and fails afterwards.
fn hidden_failure(error: FileError, file: &SecretFile) -> Assessment {
    let mut assessment = Assessment::new(Approval::Ask, format!("edit the secret file `{}`", file.path));
    assessment.precondition = Some(json!(Precondition::Fails(error.into_failure())));
    assessment.subjects = vec![Subject::Path(file.path.clone()), Subject::SecretFile(file.clone())];
    assessment
}

/// A file right below the root has no directory to grant but the whole root, which is the tool itself.
fn scopes(resolved: &ResolvedPath) -> Vec<Scope> {
    let path = resolved.path();
    let parent = path.parent().filter(|parent| *parent != Path::new("")).and_then(Path::to_str);
    let directory = parent.map(|parent| Scope::Directory(parent.to_owned()));
    directory.into_iter().chain([Scope::Tool]).collect()
}

/// Whether a call may have made its change before: see [`judged`](super::judged).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    First,
    MaybeRepeated,
}

impl Attempt {
    /// Returns which attempt a call is that is about to run.
    pub(crate) fn from_call(call: &CallContext) -> Self {
        if judged::may_have_run(call) { Self::MaybeRepeated } else { Self::First }
    }
}

/// Makes a change, if the file is still as it was when the change was judged.
pub(crate) fn run(
    root: &Root,
    change: &dyn FileChange,
    precondition: Option<&Value>,
    attempt: Attempt,
) -> Result<Value, Failure> {
    let (path, before, after) = match precondition.map(Precondition::deserialize) {
        Some(Ok(Precondition::Change { path, before, after })) => (path, before, after),
        Some(Ok(Precondition::Fails(failure))) => return Err(failure),
        Some(Err(_)) | None => return Err(FileError::Unjudged.into_failure()),
    };
    make(root, change, &path, (before, after), attempt).map_err(FileError::into_failure)
}

fn make(
    root: &Root,
    change: &dyn FileChange,
    path: &str,
    (before, after): (Option<Digest>, Digest),
    attempt: Attempt,
) -> Result<Value, FileError> {
    let target = ChangeTarget::find(root, change)?;
    let shown = target.resolved.shown();
    let now = target.before().map(Digest::hash);
    // Two writers that make an equal change of the same content have made one change: the second must look again.
    let may_be_done = attempt == Attempt::MaybeRepeated || !change.depends_on_old();
    let is_as_judged = now == before || (now == Some(after) && may_be_done);
    if shown != path || !is_as_judged {
        return Err(FileError::Changed { path: shown });
    }
    // A call that is repeated after its result was lost finds its own work.
    if now == Some(after) {
        return Ok(
            json!({"path": shown, "bytes": target.before().map_or(0, <[u8]>::len), "changed": before != now}),
        );
    }
    let content = target.after(root, change)?;
    if Digest::hash(&content) != after {
        return Err(FileError::Changed { path: shown });
    }
    target.write(&content)?;
    Ok(json!({"path": shown, "bytes": content.len(), "changed": true}))
}
