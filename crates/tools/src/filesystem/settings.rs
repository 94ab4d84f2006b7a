//! What a person sets about a filesystem toolset.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MEBIBYTE: u64 = 1024 * 1024;

/// What one filesystem toolset may touch, and how much of it at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FilesystemSettings {
    /// The directory that the tools cannot leave, relative to the project. Default: the project itself.
    pub root: PathBuf,
    /// Put before the name of each tool, so that two such toolsets can stand beside each other.
    pub prefix: String,
    /// Leaves out the tools that write.
    pub read_only: bool,
    /// The endings of file names that may be read and written, such as `.md`. Empty: all.
    pub suffixes: Vec<String>,
    /// How many bytes of one file are looked at. What lies beyond is not read, and such a file is not replaced.
    pub max_read_bytes: u64,
    /// How many bytes a file may have after it is written.
    pub max_write_bytes: u64,
    /// How many entries a list, or matches a search, may have at most.
    pub max_list: usize,
}

impl Default for FilesystemSettings {
    fn default() -> Self {
        Self {
            root: PathBuf::from("."),
            prefix: String::new(),
            read_only: false,
            suffixes: Vec::new(),
            max_read_bytes: 16 * MEBIBYTE,
            max_write_bytes: 4 * MEBIBYTE,
            max_list: 1000,
        }
    }
}

impl FilesystemSettings {
    /// Says whether a file of this name may be read and written.
    pub(crate) fn allows(&self, name: &str) -> bool {
        self.suffixes.is_empty() || self.suffixes.iter().any(|suffix| name.ends_with(suffix.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_that_say_nothing_are_the_defaults() {
        let settings: FilesystemSettings = serde_json::from_value(json!({})).unwrap();
        assert_eq!(settings, FilesystemSettings::default());
    }

    #[test]
    fn an_unknown_setting_is_an_error() {
        let error = serde_json::from_value::<FilesystemSettings>(json!({"readonly": true})).unwrap_err();
        assert!(error.to_string().contains("unknown field `readonly`"), "{error}");
    }

    #[test]
    fn a_suffix_is_compared_with_the_end_of_the_name() {
        let settings = FilesystemSettings { suffixes: vec![".md".into()], ..FilesystemSettings::default() };
        assert!(settings.allows("a.md"));
        assert!(!settings.allows("a.md.exe"));
    }
}
