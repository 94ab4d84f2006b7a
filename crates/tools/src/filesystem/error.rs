//! Why a file operation was not done, in words that a model can act on.

use std::io;

use llm_do_core::{Failure, FailureKind, ToolError};
use thiserror::Error;

/// Why a file operation may not or cannot be done.
#[derive(Debug, Error)]
pub(crate) enum FileError {
    #[error("the path is empty")]
    Empty,
    #[error("the path contains a NUL character")]
    Nul,
    #[error("`{path}` is too long or too deep")]
    TooLong { path: String },
    #[error("`{path}` leads out of the root of this tool")]
    Outside { path: String },
    #[error("`{path}` belongs to llm-do itself, and no tool reaches it")]
    Private { path: String },
    #[error("`{path}` goes through too many links")]
    Loop { path: String },
    #[error("`{path}` does not exist")]
    Missing { path: String, near: Vec<String> },
    #[error("`{path}` is not a directory")]
    NotADirectory { path: String },
    #[error("`{path}` is a directory, not a file")]
    Directory { path: String },
    #[error("`{path}` is a {kind}, not a regular file")]
    Special { path: String, kind: &'static str },
    #[error("`{path}` is a link, and files are not written through links")]
    Link { path: String },
    #[error("the name of `{path}` does not end with {}", .suffixes.join(" or "))]
    Suffix { path: String, suffixes: Vec<String> },
    #[error("`{path}` has {size} bytes, more than the {limit} that can be looked at")]
    TooLarge { path: String, size: u64, limit: u64 },
    #[error("the file would have {size} bytes, more than the {limit} that may be written")]
    TooMuch { size: u64, limit: u64 },
    #[error("`{path}` is not UTF-8 text")]
    NotText { path: String },
    #[error("{0}")]
    Argument(String),
    #[error("edit {number}: the text `old` does not occur in `{path}`")]
    NoOccurrence { path: String, number: usize, other_line_ends: bool },
    #[error("edit {number}: the text `old` occurs {count} times in `{path}`")]
    SeveralOccurrences { path: String, number: usize, count: usize },
    #[error("`{path}` has changed since this call was judged; nothing was written")]
    Changed { path: String },
    #[error(
        "`{path}` was changed by other programs while it was written; another version of it is kept in `{copy}`"
    )]
    Kept { path: String, copy: String },
    #[error("another program has locked the directory of `{path}` for {seconds} s; nothing was written")]
    Locked { path: String, seconds: u64 },
    #[error("`{path}` is a secret file ({what}), and reading it as it is now was not approved")]
    Secret { path: String, what: String },
    #[error("the call was not judged before it ran; nothing was written")]
    Unjudged,
    #[error("`{path}`: {error}")]
    System { path: String, error: io::Error },
}

impl FileError {
    /// Puts an error of the operating system into words.
    pub(crate) fn system(path: &str, error: io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing { path, near: Vec::new() },
            io::ErrorKind::NotADirectory => Self::NotADirectory { path },
            io::ErrorKind::IsADirectory => Self::Directory { path },
            io::ErrorKind::InvalidFilename => Self::TooLong { path },
            _ => Self::System { path, error },
        }
    }

    /// Returns whether the call may never be done, as opposed to: cannot be done now.
    pub(crate) fn is_forbidden(&self) -> bool {
        match self {
            Self::Nul
            | Self::Outside { .. }
            | Self::Private { .. }
            | Self::Special { .. }
            | Self::Link { .. }
            | Self::Suffix { .. } => true,
            Self::Empty
            | Self::TooLong { .. }
            | Self::Loop { .. }
            | Self::Missing { .. }
            | Self::NotADirectory { .. }
            | Self::Directory { .. }
            | Self::TooLarge { .. }
            | Self::TooMuch { .. }
            | Self::NotText { .. }
            | Self::Argument(_)
            | Self::NoOccurrence { .. }
            | Self::SeveralOccurrences { .. }
            | Self::Changed { .. }
            | Self::Kept { .. }
            | Self::Locked { .. }
            | Self::Secret { .. }
            | Self::Unjudged
            | Self::System { .. } => false,
        }
    }

    /// Says what the model can do about it, when there is something to do.
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Missing { near, .. } if near.is_empty() => return None,
            Self::Missing { near, .. } => {
                let names: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
                return Some(format!("did you mean {}?", names.join(" or ")));
            }
            Self::Empty | Self::Nul | Self::Outside { .. } => {
                "paths are relative to the root of this tool, such as `notes/a.txt`; links and `..` may not leave it"
            }
            Self::Private { .. } => {
                "records, trust and configuration are changed by the person who runs llm-do"
            }
            Self::Directory { .. } => "name a file in it; listing it shows what it holds",
            Self::Special { .. } => "only regular files can be read and written",
            Self::Link { .. } => "name the file that the link points to",
            Self::TooMuch { .. } => "write less, or several files",
            Self::NoOccurrence { other_line_ends: true, .. } => {
                "it would with other line ends: the file's lines end with \\r\\n, or those of `old` do"
            }
            Self::NoOccurrence { .. } => {
                "`old` must be the exact text, with its white space; read the file again"
            }
            Self::SeveralOccurrences { .. } => {
                "add lines around it until it occurs once, or set `all` to replace every one"
            }
            Self::Secret { .. } => "it has changed since the call was judged; repeat the call",
            Self::Changed { .. } => "read the file again and repeat the call",
            Self::Kept { .. } => "compare both versions, keep what is needed and remove the copy",
            Self::Locked { .. } => {
                "repeat the call when the other program has finished; on Linux, `lslocks` shows which one it is"
            }
            Self::System { error, .. } => return system_hint(error.kind()).map(str::to_owned),
            Self::TooLong { .. }
            | Self::Loop { .. }
            | Self::NotADirectory { .. }
            | Self::Suffix { .. }
            | Self::TooLarge { .. }
            | Self::NotText { .. }
            | Self::Argument(_)
            | Self::Unjudged => return None,
        };
        Some(hint.to_owned())
    }

    /// Returns the failure that the caller of the tool reads.
    pub(crate) fn into_failure(self) -> Failure {
        let failure = Failure::new(FailureKind::Tool, self.to_string());
        match self.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }

    /// Returns the error with which the tool answers.
    pub(crate) fn into_tool_error(self) -> ToolError {
        ToolError::from_failure(self.into_failure())
    }
}

/// What can be done about an error of the operating system. A file is replaced as a whole or not at all.
fn system_hint(kind: io::ErrorKind) -> Option<&'static str> {
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            Some("the disk is full; a file that was to be replaced keeps its old content")
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            Some("nothing can be written there; the file system is read-only")
        }
        io::ErrorKind::PermissionDenied => Some("llm-do runs as a user who may not do this"),
        _ => None,
    }
}
