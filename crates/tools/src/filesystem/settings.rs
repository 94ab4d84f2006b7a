//! What a person sets about a filesystem toolset.

use std::path::{Component, Path, PathBuf};

use crate::toolset_error::ToolsetError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MEBIBYTE: u64 = 1024 * 1024;
/// How much of one file can be set to be read or written: it is held in memory.
const MAX_BYTES: u64 = 1024 * MEBIBYTE;
/// How many entries or matches can be set to be returned.
const MAX_ENTRIES: u64 = 100_000;

/// What one filesystem toolset may touch, and how much of it at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FilesystemSettings {
    /// The directory that the tools cannot leave, relative to the project. Default: the project itself.
    pub root: PathBuf,
    /// A prefix for the name of each tool, so that one agent can have two such toolsets.
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
    /// Files that are run later and that the ordinary rules decide about nevertheless, each by its path from the
    /// root, such as `AGENTS.md`. Default: none, so that every write to such a file asks.
    pub allow_run_later: Vec<PathBuf>,
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
            allow_run_later: Vec::new(),
        }
    }
}

impl FilesystemSettings {
    /// Checks that every value can work, and that every bound is set.
    pub(crate) fn check(&self) -> Result<(), ToolsetError> {
        let bounds = [
            ("max_read_bytes", self.max_read_bytes, MAX_BYTES),
            ("max_write_bytes", self.max_write_bytes, MAX_BYTES),
            ("max_list", self.max_list as u64, MAX_ENTRIES),
        ];
        if let Some((key, value, most)) = bounds.iter().find(|(_, value, most)| !(1..=*most).contains(value))
        {
            return Err(ToolsetError::Setting(format!("`{key}` is {value}, expected 1 to {most}")));
        }
        if let Some(path) = self.allow_run_later.iter().find(|path| !is_plain_path(path)) {
            let path = path.display();
            return Err(ToolsetError::Setting(format!(
                "`allow_run_later` has `{path}`, expected the path of one file, such as `AGENTS.md`"
            )));
        }
        match self.suffixes.iter().find(|suffix| suffix.is_empty() || suffix.contains(['/', '\0'])) {
            Some(suffix) => Err(ToolsetError::Setting(format!(
                "`suffixes` has `{suffix}`, expected an ending such as `.md`"
            ))),
            None => Ok(()),
        }
    }

    /// Says which setting allows more than an outer one does. Roots are compared by whoever knows the directory.
    pub(crate) fn loosens(&self, outer: &Self) -> Option<&'static str> {
        let suffix_is_new = |suffix: &String| !outer.suffixes.iter().any(|allowed| suffix.ends_with(allowed));
        let has_more_suffixes = !outer.suffixes.is_empty()
            && (self.suffixes.is_empty() || self.suffixes.iter().any(suffix_is_new));
        let is_new_exception = |path: &PathBuf| !outer.allow_run_later.contains(path);
        let loosened = [
            ("allow_run_later", self.allow_run_later.iter().any(is_new_exception)),
            ("read_only", outer.read_only && !self.read_only),
            ("suffixes", has_more_suffixes),
            ("max_read_bytes", self.max_read_bytes > outer.max_read_bytes),
            ("max_write_bytes", self.max_write_bytes > outer.max_write_bytes),
            ("max_list", self.max_list > outer.max_list),
        ];
        loosened.into_iter().find_map(|(key, is_looser)| is_looser.then_some(key))
    }

    /// Returns whether a file of this name may be read and written.
    pub(crate) fn allows(&self, name: &str) -> bool {
        self.suffixes.is_empty() || self.suffixes.iter().any(|suffix| name.ends_with(suffix.as_str()))
    }
}

/// A rule must name one path: a glob or a directory could match files that nobody has thought of.
fn is_plain_path(path: &Path) -> bool {
    let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
    let text = path.to_string_lossy();
    !text.is_empty()
        && path.components().all(is_name)
        && !text.contains(['*', '?', '[', '{'])
        && !text.ends_with('/')
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
    fn values_that_cannot_work_are_named() {
        let problem = |settings: serde_json::Value| {
            serde_json::from_value::<FilesystemSettings>(settings).unwrap().check().unwrap_err().to_string()
        };
        assert_eq!(problem(json!({"max_list": 0})), "`max_list` is 0, expected 1 to 100000");
        let bytes = problem(json!({"max_read_bytes": u64::MAX}));
        assert!(bytes.ends_with("expected 1 to 1073741824"), "{bytes}");
        assert_eq!(
            problem(json!({"suffixes": [".md", ""]})),
            "`suffixes` has ``, expected an ending such as `.md`"
        );
    }

    #[test]
    fn what_allows_more_is_named_and_what_narrows_is_not() {
        let settings = |value| serde_json::from_value::<FilesystemSettings>(value).unwrap();
        let outer = settings(json!({"read_only": true, "suffixes": [".md"], "max_list": 10}));
        let narrower = json!({"read_only": true, "suffixes": [".en.md"], "max_list": 5, "prefix": "a_", "max_read_bytes": 9});
        assert_eq!(settings(narrower.clone()).loosens(&outer), None);
        for (key, value) in [
            ("read_only", json!(false)),
            ("suffixes", json!([])),
            ("suffixes", json!([".md", ".sh"])),
            ("max_list", json!(11)),
            ("max_read_bytes", json!(u64::MAX)),
        ] {
            let mut looser = narrower.clone();
            looser[key] = value;
            assert_eq!(settings(looser).loosens(&outer), Some(key));
        }
    }

    #[test]
    fn a_suffix_is_compared_with_the_end_of_the_name() {
        let settings = FilesystemSettings { suffixes: vec![".md".into()], ..FilesystemSettings::default() };
        assert!(settings.allows("a.md"));
        assert!(!settings.allows("a.md.exe"));
    }
}
