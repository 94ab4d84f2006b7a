//! Why a cassette cannot be used.

use std::io;
use std::path::PathBuf;

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// The file cannot be read.
    #[error("the cassette `{}` cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("the cassette `{}` cannot be written: {source}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file does not begin as a cassette.
    #[error("`{}` is not a cassette: its first line is not a header", path.display())]
    NoCassette {
        /// The file.
        path: PathBuf,
    },
    /// The file is of a later version.
    #[error("the cassette `{}` is of version {version}, which this program does not know", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u64,
    },
    /// The only exchange was not written to its end.
    #[error("the cassette `{}` holds nothing but an exchange that was cut while it was written", path.display())]
    Torn {
        /// The file.
        path: PathBuf,
    },
    /// A line holds no exchange.
    #[error("line {line} of the cassette `{}` holds no exchange: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

impl CassetteError {
    /// Says what the user can do about it, when there is something to do.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("run once without replaying to record it".to_owned())
            }
            Self::Unreadable { .. } | Self::Unwritable { .. } => None,
            Self::NoCassette { .. } => Some("choose another file: this one is left as it is".to_owned()),
            Self::Torn { .. } => Some("to record it anew, use `--cassette-mode record`".to_owned()),
            Self::Version { .. } | Self::Line { .. } => {
                Some("to record it anew, use `--cassette-mode record`".to_owned())
            }
        }
    }
}
