//! Attached files: which ones an agent takes, where they may lie, and how they are read.
//!
//! What a model or code attaches lies below the project's root, and no link leads out of it; the embedding
//! program may attach any file. A file is opened by the name at which all links end, as what it is and without
//! waiting for anybody, and read up to what the policy of the agent leaves.
//!
//! The gate looks at the files of a call before anybody is asked ([`look`]); the digests of what was seen are
//! part of the permit, and [`load`] gives an agent nothing else.

use std::io::Read;
use std::path::{Path, PathBuf};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};
use llm_do_core::{
    Attachment, AttachmentPolicy, AttachmentSource, CallOrigin, Digest, Failure, FailureKind, HintAudience,
    Outcome, Output, Payload, SecretFile, ShownAttachment, input_attachments, visible_line,
};
use llm_do_secrets::SecretFiles;
use serde_json::{Value, json};

use crate::input::media_type::media_type;
use crate::input::prompt;
use crate::input::received;
use crate::project::plan::{CallTarget, TargetKind};
use crate::state::live::LiveCall;
use crate::state::run_state::RunState;

/// A file that a call is given, as it was before anybody was asked.
pub(crate) struct Seen {
    /// Where it lies, its type and its size, for a person.
    pub(crate) description: String,
    /// The same for programs that show it.
    pub(crate) shown: ShownAttachment,
    pub(crate) digest: Digest,
    /// The file, if it is secret and no person named it.
    pub(crate) secret: Option<SecretFile>,
}

/// Looks at the files that an agent is given, and refuses those that it does not take.
pub(crate) async fn look(
    run: &RunState,
    call: &LiveCall,
    target: &CallTarget,
    input: &Payload,
) -> Result<Vec<Seen>, Failure> {
    if !matches!(target.kind, TargetKind::Agent) {
        return Ok(Vec::new());
    }
    let root = run.shared.root.as_deref();
    let parts = prompt::parts(call, target.prompt.as_ref(), input, root).await?;
    let mut attachments = prompt::attached(&parts);
    received::check(call, &attachments)?;
    attachments.retain(|attachment| received::descriptor_of(attachment).is_none());
    if attachments.is_empty() {
        return Ok(Vec::new());
    }
    let taker =
        Taker::new(run, call.name.as_str(), &target.attachment_policy, allowed_paths(run, call, call.origin));
    let files = taker.read(attachments).await?;
    Ok(files.iter().map(Seen::new).collect())
}

/// Reads the files that an agent is given: exactly those that the gate has seen.
pub(crate) async fn load(
    run: &RunState,
    call: &LiveCall,
    policy: &AttachmentPolicy,
    attachments: Vec<Attachment>,
    precondition: Option<&Value>,
) -> Result<Vec<Attachment>, Failure> {
    if attachments.is_empty() {
        return Ok(Vec::new());
    }
    let files = Taker::new(run, call.name.as_str(), policy, allowed_paths(run, call, call.origin))
        .read(attachments)
        .await?;
    let seen: Vec<Seen> = files.iter().map(Seen::new).collect();
    if let Some(approved) = precondition.filter(|approved| **approved != digests(&seen)) {
        return Err(changed(&files, &seen, approved));
    }
    Ok(files.into_iter().map(|file| file.attachment).collect())
}

/// Reads the files that a call gives back, and refuses those that its caller does not take.
///
/// Code outside any agent takes whatever it is given; only files are read for it, under the default policy.
pub(crate) async fn receive(run: &RunState, call: &LiveCall, outcome: Outcome) -> Outcome {
    let output = match outcome {
        Outcome::Value(output) if !output.attachments.is_empty() => output,
        other => return other,
    };
    let receiver = call.callers_frame().plan.spec.clone();
    let is_judged = |attachment: &Attachment| receiver.is_some() || is_file(attachment);
    let judged: Vec<Attachment> =
        output.attachments.iter().filter(|attachment| is_judged(attachment)).cloned().collect();
    let (name, policy) = match &receiver {
        Some(spec) => (spec.name.as_str(), spec.attachment_policy.clone()),
        None => ("the caller", AttachmentPolicy::default()),
    };
    let read = match judged.is_empty() {
        true => Ok(Vec::new()),
        false => {
            Taker::new(run, name, &policy, allowed_paths(run, call, CallOrigin::Code)).read(judged).await
        }
    };
    let read = read.and_then(without_secrets);
    match read {
        Ok(files) => {
            let mut files = files.into_iter().map(|file| file.attachment);
            let pass = |other: Attachment| if is_judged(&other) { files.next() } else { Some(other) };
            let attachments = output.attachments.into_iter().filter_map(pass).collect();
            Outcome::Value(Output { attachments, ..output })
        }
        Err(failure) => Outcome::Failed(not_passed_on(call, &output, failure)),
    }
}

/// Nobody is asked about files that a call gives back, so secret ones are refused.
fn without_secrets(files: Vec<FileRead>) -> Result<Vec<FileRead>, Failure> {
    let Some(file) = files.iter().find_map(|file| file.secret.as_ref()) else { return Ok(files) };
    let message = format!("the attachment `{}` is a secret file ({})", shown(&file.path), file.what);
    Err(refused(message, "if it is not really secret, add it to `secret_files.allow` in the manifest"))
}

/// What was done is done: the caller learns it, with the answer, so that nobody does it again for the file.
fn not_passed_on(call: &LiveCall, output: &Output, failure: Failure) -> Failure {
    let (name, answer) = (&call.name, output.to_text());
    let message = format!(
        "`{name}` has run and answered `{answer}`, but its attachments were refused: {}",
        failure.message
    );
    Failure { message, ..Failure { kind: FailureKind::Tool, ..failure } }
}

fn is_file(attachment: &Attachment) -> bool {
    matches!(attachment.source, AttachmentSource::Path(_))
}

/// What the gate puts into the permit of a call.
pub(crate) fn digests(seen: &[Seen]) -> Value {
    let digests: Vec<&Digest> = seen.iter().map(|seen| &seen.digest).collect();
    json!({ "attachments": digests })
}

fn changed(files: &[FileRead], seen: &[Seen], approved: &Value) -> Failure {
    let is_other = |(index, seen): &(usize, &Seen)| approved["attachments"][*index] != json!(seen.digest);
    let which = seen.iter().enumerate().find(is_other).and_then(|(index, _)| files.get(index));
    let name = which.map_or_else(String::new, |file| format!(" `{}`", file.shown()));
    let message = format!("the attachment{name} has changed since the call was approved, so it was not sent");
    Failure::new(FailureKind::Arguments, message)
        .with_hint_for(HintAudience::Caller, "make the call again, to attach it as it is now")
}

/// Where attached files may be.
#[derive(Clone)]
enum AllowedPaths {
    /// Anywhere; what is relative begins at the root.
    Anywhere(Option<PathBuf>),
    /// Below the root, or one of these.
    Below(Option<PathBuf>, Vec<PathBuf>),
}

fn allowed_paths(run: &RunState, call: &LiveCall, origin: CallOrigin) -> AllowedPaths {
    let root = run.shared.root.clone();
    match origin {
        CallOrigin::Embedder => AllowedPaths::Anywhere(root),
        CallOrigin::Model => AllowedPaths::Below(root, Vec::new()),
        CallOrigin::Code => AllowedPaths::Below(root, given_to_run(call)),
    }
}

/// The files that the embedding program attached to the run: its code may pass them on, wherever they lie.
fn given_to_run(call: &LiveCall) -> Vec<PathBuf> {
    match &call.parent {
        Some(parent) if !call.is_top() => given_to_run(parent),
        _ if call.origin != CallOrigin::Embedder => Vec::new(),
        _ => input_attachments(&call.input)
            .into_iter()
            .filter_map(|attachment| match attachment.source {
                AttachmentSource::Path(path) => Some(path),
                AttachmentSource::Data(_) => None,
            })
            .collect(),
    }
}

/// An attachment with its bytes.
struct FileRead {
    attachment: Attachment,
    /// Where it lies, links resolved; none where the bytes were given.
    path: Option<PathBuf>,
    /// The file, if it is secret and no person named it.
    secret: Option<SecretFile>,
}

impl FileRead {
    /// The paths or name for a person; what could deceive is written out.
    fn shown(&self) -> String {
        shown(&self.name())
    }

    fn name(&self) -> String {
        match &self.path {
            Some(path) => path.to_string_lossy().into_owned(),
            None => self.attachment.name.clone(),
        }
    }
}

impl Seen {
    fn new(file: &FileRead) -> Self {
        let bytes: &[u8] = match &file.attachment.source {
            AttachmentSource::Data(bytes) => bytes.as_slice(),
            AttachmentSource::Path(_) => &[],
        };
        let kind = visible_line(file.attachment.media_type.as_deref().unwrap_or("unknown type"));
        let plural = if bytes.len() == 1 { "" } else { "s" };
        let description = format!("{} ({kind}, {} byte{plural})", file.shown(), bytes.len());
        let shown = ShownAttachment {
            name: file.name(),
            media_type: file.attachment.media_type.clone(),
            bytes: bytes.len() as u64,
        };
        Self { description, shown, digest: Digest::hash(bytes), secret: file.secret.clone() }
    }
}

/// Shows a name as it is where it is plain, and quoted where it could pass for something else.
fn shown(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "._-/ ".contains(c);
    if name.chars().all(plain) { name.to_owned() } else { visible_line(&format!("{name:?}")) }
}

/// Who takes attachments, under which policy and from where.
#[derive(Clone)]
struct Taker {
    name: String,
    policy: AttachmentPolicy,
    paths: AllowedPaths,
    secret_files: SecretFiles,
}

impl Taker {
    fn new(run: &RunState, name: &str, policy: &AttachmentPolicy, paths: AllowedPaths) -> Self {
        let secret_files = run.shared.secret_files.clone();
        Self { name: name.to_owned(), policy: policy.clone(), paths, secret_files }
    }

    /// Reads attachments where it blocks nobody, or says which one is refused and why.
    async fn read(self, attachments: Vec<Attachment>) -> Result<Vec<FileRead>, Failure> {
        self.check_count(attachments.len())?;
        let read = tokio::task::spawn_blocking(move || self.read_all(attachments));
        read.await.unwrap_or_else(|error| {
            Err(Failure::new(FailureKind::Panic, format!("reading broke off: {error}")))
        })
    }

    /// The first thing to look at: however many there are, no file is touched.
    fn check_count(&self, count: usize) -> Result<(), Failure> {
        let most = self.policy.max_attachments;
        if u32::try_from(count).is_ok_and(|count| count <= most) {
            return Ok(());
        }
        let message =
            format!("too many attachments: {count} are given, and `{}` takes at most {most}", self.name);
        Err(refused(
            message,
            "attach fewer, or raise `max_attachments` in the `attachment_policy` of the agent",
        ))
    }

    fn read_all(&self, attachments: Vec<Attachment>) -> Result<Vec<FileRead>, Failure> {
        let mut left = self.policy.max_total_bytes;
        let mut files = Vec::with_capacity(attachments.len());
        for attachment in attachments {
            let file = self.read_one(attachment, left)?;
            left = left.saturating_sub(file.attachment.size().unwrap_or_default() as u64);
            files.push(file);
        }
        Ok(files)
    }

    fn read_one(&self, attachment: Attachment, left: u64) -> Result<FileRead, Failure> {
        let path = match &attachment.source {
            AttachmentSource::Path(path) => path.clone(),
            AttachmentSource::Data(_) => {
                self.check_name(&attachment.name)?;
                self.check_size(&attachment.name, attachment.size().unwrap_or_default() as u64, left)?;
                return Ok(FileRead { attachment, path: None, secret: None });
            }
        };
        let asked = path.to_string_lossy();
        let found = self.paths.find(&path).map_err(|problem| problem.about(&asked))?;
        self.check_name(&found.name())?;
        let (file, metadata) = found.open().map_err(|problem| problem.about(&asked))?;
        self.check_size(&asked, metadata.len(), left)?;
        let bytes = read_bounded(file, left).map_err(|problem| problem.about(&asked))?;
        // It may have grown since its size was looked at.
        self.check_size(&asked, bytes.len() as u64, left)?;
        let kind = attachment.media_type.unwrap_or_else(|| media_type(&found.name(), &bytes));
        let secret = self.secret(&found, &bytes);
        let attachment = Attachment::bytes(attachment.name, kind, bytes);
        Ok(FileRead { attachment, path: Some(found.path), secret })
    }

    /// Returns a file that is secret, unless a person named it: that is their own word.
    fn secret(&self, found: &FoundFile, bytes: &[u8]) -> Option<SecretFile> {
        let kind = self.secret_files.judge(found.judged.as_ref()?, bytes)?;
        let path = found.path.to_string_lossy().into_owned();
        Some(SecretFile { path, what: kind.to_string(), content: Digest::hash(bytes) })
    }

    fn check_name(&self, name: &str) -> Result<(), Failure> {
        let Some(problem) = self.policy.name_problem(name) else { return Ok(()) };
        let message = format!("the attachment `{}` is not for `{}`: {problem}", shown(name), self.name);
        let hint = "attach another file, or change `allowed_suffixes` or `denied_suffixes` in the \
            `attachment_policy` of the agent";
        Err(refused(message, hint))
    }

    fn check_size(&self, name: &str, size: u64, left: u64) -> Result<(), Failure> {
        if size <= left {
            return Ok(());
        }
        let most = self.policy.max_total_bytes;
        let rest = if left == most { String::new() } else { format!(", of which {left} are left") };
        let message = format!(
            "the attachment `{}` is too large: it has {size} bytes or more, and `{}` takes at most {most} in all{rest}",
            shown(name),
            self.name
        );
        Err(refused(
            message,
            "attach less, or raise `max_total_bytes` in the `attachment_policy` of the agent",
        ))
    }
}

fn refused(message: String, hint: &str) -> Failure {
    Failure::new(FailureKind::Arguments, message).with_hint(hint)
}

/// Why a file cannot be read.
struct Unreadable {
    reason: String,
    hint: &'static str,
}

const BELOW: &str = "only files below the project root can be attached, by their path from there";
const REGULAR: &str = "attach a regular file";
const HIDDEN: &str =
    "files and folders whose names begin with a dot are attached by people only, with `--attach`";

impl Unreadable {
    fn new(reason: impl ToString, hint: &'static str) -> Self {
        Self { reason: reason.to_string(), hint }
    }

    fn about(self, asked: &str) -> Failure {
        let message = format!("the attachment `{}` could not be read: {}", shown(asked), self.reason);
        refused(message, self.hint)
    }
}

/// A file by the directory that it is reached from and the path at which all links end.
struct FoundFile {
    directory: Dir,
    /// From that directory.
    below: PathBuf,
    /// For a person.
    path: PathBuf,
    /// The whole path by which it is judged whether the file is secret; none if a person named it.
    judged: Option<PathBuf>,
}

impl AllowedPaths {
    fn find(&self, path: &Path) -> Result<FoundFile, Unreadable> {
        match self {
            Self::Anywhere(root) => find_anywhere(root.as_deref(), path),
            Self::Below(root, given) if given.iter().any(|given| given == path) => {
                find_anywhere(root.as_deref(), path)
            }
            Self::Below(root, _) => find_below(root.as_deref(), path),
        }
    }
}

fn find_anywhere(root: Option<&Path>, path: &Path) -> Result<FoundFile, Unreadable> {
    let whole = root.map_or_else(|| path.to_path_buf(), |root| root.join(path));
    let failed = |error| Unreadable::new(error, REGULAR);
    let real = std::fs::canonicalize(whole).map_err(failed)?;
    let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
        return Err(Unreadable::new("it is a directory", REGULAR));
    };
    let directory = Dir::open_ambient_dir(parent, ambient_authority()).map_err(failed)?;
    Ok(FoundFile { directory, below: name.into(), path: real, judged: None })
}

/// Keys, settings of tools and the history of the project lie in hidden files. No model sends them away unasked.
fn is_hidden(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.'))
}

fn find_below(root: Option<&Path>, path: &Path) -> Result<FoundFile, Unreadable> {
    let Some(root) = root else {
        return Err(Unreadable::new("no project root is set", "set a root, or attach the bytes themselves"));
    };
    let directory = Dir::open_ambient_dir(root, ambient_authority());
    let directory = directory.map_err(|error| Unreadable::new(error, BELOW))?;
    let path = relative_to(root, path);
    let real = directory.canonicalize(path).map_err(|error| Unreadable::new(error, BELOW))?;
    if is_hidden(&real) {
        return Err(Unreadable::new("it is hidden", HIDDEN));
    }
    let judged = root.canonicalize().map_err(|error| Unreadable::new(error, BELOW))?.join(&real);
    Ok(FoundFile { directory, below: real.clone(), path: real, judged: Some(judged) })
}

/// What code names by its whole path may lie below the root as well as what it names from there.
fn relative_to<'a>(root: &Path, path: &'a Path) -> &'a Path {
    let below = |root: &Path| path.strip_prefix(root).ok();
    let absolute = || std::path::absolute(root).ok().and_then(|root| below(&root));
    let real = || root.canonicalize().ok().and_then(|root| below(&root));
    if path.is_absolute() { absolute().or_else(real).unwrap_or(path) } else { path }
}

impl FoundFile {
    /// The file's own name, whatever the links to it are called.
    fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Opens the file as what it is: no link at its end is followed, and a pipe is not waited for. What it is is
    /// looked at before, as opening some devices does something.
    fn open(&self) -> Result<(File, Metadata), Unreadable> {
        let failed = |error| Unreadable::new(error, REGULAR);
        check_kind(&self.directory.symlink_metadata(&self.below).map_err(failed)?)?;
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        let file = self.directory.open_with(&self.below, &options).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        check_kind(&metadata)?;
        Ok((file, metadata))
    }
}

fn check_kind(metadata: &Metadata) -> Result<(), Unreadable> {
    match metadata {
        metadata if metadata.is_file() => Ok(()),
        metadata if metadata.is_dir() => Err(Unreadable::new("it is a directory", "attach the files in it")),
        _ => Err(Unreadable::new("it is not a regular file", REGULAR)),
    }
}

/// Reads one byte more than there may be, so that a file that has grown is noticed.
fn read_bounded(file: File, most: u64) -> Result<Vec<u8>, Unreadable> {
    let mut bytes = Vec::new();
    let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map(|_| bytes).map_err(|error| Unreadable::new(error, REGULAR))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_name_that_could_deceive_is_quoted_and_written_out() {
        assert_eq!(shown("letters/smith 1.txt"), "letters/smith 1.txt");
        assert_eq!(shown("a.png (1 byte), b"), "\"a.png (1 byte), b\"");
        assert_eq!(shown("gpj.\u{202e}x\u{1b}[2J\n"), "\"gpj.\\u{202e}x\\u{1b}[2J\\n\"");
    }

    /// Makes a directory with one file, and finds the file.
    fn found_file() -> (TempDir, FoundFile) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.txt"), "12345").unwrap();
        let root = directory.path().canonicalize().unwrap();
        let found = AllowedPaths::Below(Some(root), Vec::new()).find(Path::new("a.txt"));
        (directory, found.map_err(|problem| problem.reason).unwrap())
    }

    #[test]
    fn a_file_that_grows_is_read_no_further_than_one_byte_too_many() {
        let (directory, found) = found_file();
        let (file, metadata) = found.open().map_err(|problem| problem.reason).unwrap();
        assert_eq!(metadata.len(), 5);
        std::fs::write(directory.path().join("a.txt"), "1234567890").unwrap();
        let bytes = read_bounded(file, 5).map_err(|problem| problem.reason).unwrap();
        assert_eq!(bytes, b"123456");
    }

    #[cfg(unix)]
    #[test]
    fn what_comes_in_the_place_of_a_file_is_not_opened() {
        let (directory, found) = found_file();
        let path = directory.path().join("a.txt");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(found.open().is_err(), "a link out was followed");
        std::fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(found.open().is_err_and(|problem| problem.reason.contains("not a regular file")));
    }
}
