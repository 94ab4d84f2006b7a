//! Why a cassette cannot be used.

use std::io;
use std::path::PathBuf;

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CassetteError {
    /// The file cannot be read.
    #[error("the cassette `{}` cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("the cassette `{}` cannot be written", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file does not begin as a cassette.
    #[error("`{}` is not a cassette: its first line is not a header", path.display())]
    NotACassette {
        /// The file.
        path: PathBuf,
    },
    /// The file is of a later version.
    #[error("the cassette `{}` has version {version}, which this program cannot read", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u64,
    },
    /// The only exchange was not written to its end.
    #[error("the cassette `{}` holds only one exchange, and that was cut off while it was written", path.display())]
    Torn {
        /// The file.
        path: PathBuf,
    },
    /// A line is not an exchange.
    #[error("line {line} of the cassette `{}` is not an exchange: {why}", path.display())]
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
    /// Returns what the user can do about it, if there is something to do.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("run once without replaying to record it".to_owned())
            }
            Self::Unreadable { .. } | Self::Unwritable { .. } => None,
            Self::NotACassette { .. } => Some("choose another file: this one is left as it is".to_owned()),
            Self::Torn { .. } | Self::Version { .. } | Self::Line { .. } => {
                Some("to record it anew, use `--cassette-mode record`".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[test]
    fn a_report_of_an_error_and_its_sources_names_each_cause_once() {
        let cause = || io::Error::other("the disk is gone");
        let path = || PathBuf::from("tape.jsonl");
        for (error, expected) in [
            (CassetteError::Unreadable { path: path(), source: cause() }, "read"),
            (CassetteError::Unwritable { path: path(), source: cause() }, "written"),
        ] {
            let chain = std::iter::successors(Some(&error as &dyn Error), |error| (*error).source());
            let report: Vec<String> = chain.map(ToString::to_string).collect();
            assert_eq!(
                report,
                [format!("the cassette `tape.jsonl` cannot be {expected}"), cause().to_string()]
            );
        }
    }
}
