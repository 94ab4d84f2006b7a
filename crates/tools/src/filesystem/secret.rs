//! Secret files: found when a call is judged, and read only with the content that was approved.
//!
//! A call is judged twice: before anybody is asked, and again with the bytes that it really read. So a file that is
//! replaced in between, or becomes secret, is not read.

use std::io::Read;
use std::path::Path;

use llm_do_core::{Approval, Assessment, Digest, SecretFile, Subject};
use llm_do_secrets::HEAD_BYTES;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::FileError;
use super::openat2::{OpenFile, SmallFile};
use super::root::{Root, read_up_to};

/// The secret files that a call may read, as its precondition holds them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ApprovedSecrets {
    secret_files: Vec<SecretFile>,
}

impl ApprovedSecrets {
    /// Reads them from the precondition of a call.
    pub(crate) fn from_precondition(precondition: Option<&Value>) -> Self {
        precondition.and_then(|value| Self::deserialize(value).ok()).unwrap_or_default()
    }

    /// Refuses a file that is secret, unless it was approved with this content.
    pub(crate) fn check(&self, root: &Root, path: &Path, bytes: &[u8]) -> Result<(), FileError> {
        match root.root_config.secret_file(path, bytes) {
            Some(file) if !self.secret_files.contains(&file) => {
                Err(FileError::Secret { path: file.path, what: file.what })
            }
            _ => Ok(()),
        }
    }
}

/// A secret file that a call would read.
#[derive(Debug)]
pub(crate) struct FoundSecret {
    pub(crate) file: SecretFile,
    /// Whether the project says that it may be read.
    pub(crate) is_allowed: bool,
}

/// Judges a call that reads a file and nothing else: it runs at once, unless the file is secret.
///
/// The precondition names the file even if the project allows it, so that its content is not taken out of the answer.
pub(crate) fn assess_reading(verb: &str, found: Option<FoundSecret>) -> Assessment {
    let mut assessment = Assessment::new(Approval::PreApproved, "");
    let Some(FoundSecret { file, is_allowed }) = found else { return assessment };
    assessment.precondition = Some(json!(ApprovedSecrets { secret_files: vec![file.clone()] }));
    if !is_allowed {
        assessment.description = format!("{verb} the secret file `{}`", file.path);
        assessment.subjects = vec![Subject::SecretFile(file)];
    }
    assessment
}

/// Opens a file that is to be read, and returns it if it is secret.
pub(crate) fn look(root: &Root, path: &str) -> Result<Option<FoundSecret>, FileError> {
    let OpenFile { mut file, size, path } = root.open_to_read(path)?;
    let failed = |error| FileError::system(&path.to_string_lossy(), error);
    let limit = root.root_config.settings.max_read_bytes;
    let mut bytes = Vec::with_capacity(HEAD_BYTES.min(usize::try_from(size).unwrap_or(0)) + 1);
    (&mut file).take(limit.min(HEAD_BYTES as u64)).read_to_end(&mut bytes).map_err(failed)?;
    if root.root_config.found_secret(&path, &bytes).is_none() {
        return Ok(None);
    }
    let rest = read_up_to(file, limit - bytes.len() as u64, size.saturating_sub(bytes.len() as u64))
        .map_err(failed)?;
    bytes.extend(rest);
    Ok(root.root_config.found_secret(&path, &bytes))
}

/// Does the same for a file that can be read without waiting; nothing if it cannot.
pub(crate) fn look_at_once(root: &Root, path: &str) -> Option<Option<FoundSecret>> {
    let SmallFile { bytes, path } = root.read_at_once(path)?;
    Some(root.root_config.found_secret(&path, &bytes))
}

/// Describes a file for a person and for the precondition of a call.
pub(crate) fn describe(path: &Path, what: impl ToString, bytes: &[u8]) -> SecretFile {
    SecretFile {
        path: path.to_string_lossy().into_owned(),
        what: what.to_string(),
        content: Digest::hash(bytes),
    }
}
