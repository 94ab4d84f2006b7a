//! `write_file`: gives a file new content.

use llm_do_core::counted;
use schemars::JsonSchema;
use serde::Deserialize;

use super::change::{Creates, FileChange, check_size};
use super::error::FileError;

/// What the model reads about the tool.
pub(crate) const DESCRIPTION: &str = "Writes a text file: creates it, or replaces all of its content. To change a part of a file, edit it instead.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The file, relative to the root.
    path: String,
    /// All of the new content.
    content: String,
    /// Whether directories that are missing are made.
    #[serde(default = "yes")]
    create_directories: bool,
}

fn yes() -> bool {
    true
}

impl FileChange for Arguments {
    fn path(&self) -> &str {
        &self.path
    }

    fn creates(&self) -> Creates {
        if self.create_directories { Creates::FileAndDirectories } else { Creates::File }
    }

    fn depends_on_old(&self) -> bool {
        false
    }

    fn after(&self, _shown: &str, _before: Option<&[u8]>, limit: u64) -> Result<Vec<u8>, FileError> {
        check_size(self.content.len() as u64, limit)?;
        Ok(self.content.clone().into_bytes())
    }

    fn describe(&self, shown: &str, before: Option<&[u8]>, after: &[u8]) -> String {
        match before {
            Some(before) => {
                format!("replace `{shown}` ({}, then {})", counted(before.len(), "byte"), after.len())
            }
            None => format!("create `{shown}` ({})", counted(after.len(), "byte")),
        }
    }
}
