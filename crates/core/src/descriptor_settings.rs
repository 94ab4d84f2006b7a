//! What a person sets about descriptors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many characters a limit or a page can be set to have at most.
const MAX_CHARACTERS: u64 = 10_000_000;
/// How many descriptors one agent call can be set to hold at most.
const MAX_DESCRIPTORS: u64 = 100_000;

/// The toolset with which long texts are read. Every agent of files that has tools is given it.
pub const DESCRIPTORS: &str = "file_descriptors";

/// When texts become descriptors, and how they are shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DescriptorSettings {
    /// Whether long texts become descriptors at all.
    pub enabled: bool,
    /// A result with more characters becomes a descriptor.
    pub limit: u64,
    /// How many characters a page has at most.
    pub page_size: u64,
    /// An input with more characters becomes a descriptor. Without a number, the input of the agent that is run may fill
    /// the context window of its model, and every other input has at most [`INPUT_LIMIT`](Self::INPUT_LIMIT) characters.
    pub input_limit: Option<u64>,
    /// Whether long input becomes a descriptor too.
    pub page_user_input: bool,
    /// Whether `<ref id="name">...</ref>` in what the model writes becomes a descriptor.
    pub references: bool,
    /// How many descriptors one agent call may hold.
    pub most: usize,
}

impl Default for DescriptorSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            limit: 8000,
            page_size: 4000,
            input_limit: None,
            page_user_input: true,
            references: true,
            most: 1000,
        }
    }
}

/// A setting of file descriptors that is out of range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` is {value}, expected 1 to {max}")]
pub struct DescriptorSettingsError {
    key: &'static str,
    value: u64,
    max: u64,
}

impl DescriptorSettings {
    /// So many characters of an input are shown whole if nothing else is known.
    pub const INPUT_LIMIT: u64 = 8_000;

    /// Returns what is wrong with values that cannot work.
    pub fn check(&self) -> Result<(), DescriptorSettingsError> {
        let bounds = [
            ("limit", self.limit, MAX_CHARACTERS),
            ("page_size", self.page_size, MAX_CHARACTERS),
            ("input_limit", self.input_limit.unwrap_or(Self::INPUT_LIMIT), MAX_CHARACTERS),
            ("most", self.most as u64, MAX_DESCRIPTORS),
        ];
        match bounds.iter().find(|(_, value, most)| !(1..=*most).contains(value)) {
            Some(&(key, value, max)) => Err(DescriptorSettingsError { key, value, max }),
            None => Ok(()),
        }
    }

    /// Returns whether a result is so long that it becomes a descriptor.
    pub fn pages_result(&self, text: &str) -> bool {
        self.enabled && is_longer(text, self.limit)
    }

    /// Returns whether an input is so long that it becomes a descriptor. `room` is how many bytes of it fit into the
    /// context window of the model, if that is known and counts for this input.
    pub fn pages_input(&self, text: &str, room: Option<u64>) -> bool {
        let is_too_long = match (self.input_limit, room) {
            (Some(limit), _) => is_longer(text, limit),
            (None, Some(room)) => text.len() as u64 > room,
            (None, None) => is_longer(text, Self::INPUT_LIMIT),
        };
        self.enabled && self.page_user_input && is_too_long
    }
}

/// Counts no further than it must.
fn is_longer(text: &str, limit: u64) -> bool {
    text.len() as u64 > limit && text.chars().nth(limit as usize).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_longer_is_counted_in_characters() {
        let settings = DescriptorSettings { enabled: true, limit: 3, ..DescriptorSettings::default() };
        assert!(!settings.pages_result("äöü") && settings.pages_result("äöüß"));
        assert!(!DescriptorSettings { enabled: false, ..settings.clone() }.pages_result("abcd"));
        let input = DescriptorSettings { input_limit: Some(3), ..settings };
        assert!(input.pages_input("abcd", None) && input.pages_input("abcd", Some(100)));
        let by_window = DescriptorSettings { input_limit: None, ..input.clone() };
        assert!(by_window.pages_input("abcd", Some(3)) && !by_window.pages_input("abcd", Some(4)));
        assert!(!by_window.pages_input(&"x".repeat(8_000), None));
        assert!(by_window.pages_input(&"x".repeat(8_001), None));
        assert!(!DescriptorSettings { page_user_input: false, ..input }.pages_input("abcd", None));
    }

    #[test]
    fn values_that_cannot_work_are_named() {
        let settings: DescriptorSettings = serde_json::from_value(json!({"page_size": 0})).unwrap();
        assert_eq!(settings.check().unwrap_err().to_string(), "`page_size` is 0, expected 1 to 10000000");
        assert_eq!(DescriptorSettings::default().check(), Ok(()));
    }
}
