//! What is wrong with a configuration, and where.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::file::shown;
use crate::command_error::CommandError;
use crate::text::visible_line;

/// What is wrong with the text of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SettingsError {
    /// What is wrong.
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: Option<String>,
    /// The key that is wrong, part by part.
    key: Vec<String>,
    /// Line and column, from 1.
    position: Option<(usize, usize)>,
}

/// What is wrong with the configuration of the user.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConfigError {
    path: PathBuf,
    position: Option<(usize, usize)>,
    message: String,
    hint: Option<String>,
}

impl SettingsError {
    /// A problem with the value of a key.
    pub(crate) fn at<'k>(key: impl IntoIterator<Item = &'k str>, message: impl Into<String>) -> Self {
        let key = key.into_iter().map(str::to_owned).collect();
        Self { message: message.into(), hint: None, key, position: None }
    }

    /// Adds what to do.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Returns the key that is wrong, part by part; empty if it is known otherwise where it is.
    pub(crate) fn key(&self) -> &[String] {
        &self.key
    }

    /// Adds where it is.
    pub(crate) fn located(self, text: &str, span: Option<&Range<usize>>) -> Self {
        Self { position: span.map(|span| position(text, span)), ..self }
    }

    /// What the reader of TOML found.
    pub(crate) fn from_toml(error: &toml_edit::de::Error, text: &str) -> Self {
        let position = error.span().map(|span| position(text, &span));
        let message = error.message().trim();
        let known = unknown_key(message).or_else(|| unknown_value(message)).or_else(|| missing_key(message));
        let (message, hint) =
            known.or_else(|| wrong_type(message)).unwrap_or_else(|| (message.replace('\n', ", "), None));
        Self { message, hint, key: Vec::new(), position }
    }

    /// The problem of a file.
    pub(crate) fn in_file(self, path: &Path) -> ConfigError {
        let Self { message, hint, position, .. } = self;
        ConfigError { path: path.to_path_buf(), position, message, hint }
    }
}

impl ConfigError {
    /// A file that cannot be read.
    pub(crate) fn new(path: &Path, message: impl Into<String>) -> Self {
        Self { path: path.to_path_buf(), position: None, message: message.into(), hint: None }
    }

    /// Returns the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns where it is and what is wrong, in one line.
    pub(crate) fn line(&self) -> String {
        let message = visible_line(&self.message);
        format!("{}: {message}; `llm-do config edit` opens it", self.shown_position())
    }

    fn shown_position(&self) -> String {
        let at = self.position.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
        format!("{}{at}", shown(&self.path))
    }
}

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> Self {
        let message = visible_line(&error.message);
        let message =
            format!("your configuration cannot be used: {message}\n  at {}", error.shown_position());
        let fallback = || "`llm-do config edit` opens it".to_owned();
        Self::with_hint(message, error.hint.map_or_else(fallback, |hint| visible_line(&hint)))
    }
}

impl From<SettingsError> for CommandError {
    fn from(error: SettingsError) -> Self {
        let message = visible_line(&error.message);
        match error.hint {
            Some(hint) => Self::with_hint(message, visible_line(&hint)),
            None => Self::usage(message),
        }
    }
}

/// Reads serde's message about an unknown key: the one way to learn which keys were expected there.
fn unknown_key(message: &str) -> Option<(String, Option<String>)> {
    let rest = message.trim().strip_prefix("unknown field `")?;
    let (key, rest) = rest.split_once('`')?;
    let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
    let is_ability = || known.contains(&"profile") && profile_keys().iter().any(|name| name == key);
    let hint = match llm_do_core::nearest(key, known.iter().copied()) {
        _ if is_ability() => format!("did you mean `profile.{key}`?"),
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known here: {}", known.join(", ")),
    };
    Some((format!("unknown key `{key}`"), Some(hint)))
}

/// Reads serde's message about a value that is none of those that are allowed.
fn unknown_value(message: &str) -> Option<(String, Option<String>)> {
    let rest = message.strip_prefix("unknown variant `")?;
    let (value, rest) = rest.split_once('`')?;
    let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
    let near =
        llm_do_core::nearest(value, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
    Some((format!("`{value}` is not one of `{}`", known.join("`, `")), near))
}

/// Reads serde's message about a key that a table must have.
fn missing_key(message: &str) -> Option<(String, Option<String>)> {
    let key = message.strip_prefix("missing field `")?.strip_suffix('`')?;
    let hint = "write it beside the others: `llm-do config edit` opens the file".to_owned();
    Some((format!("the key `{key}` is missing in this table"), Some(hint)))
}

/// Reads serde's message about a value of another type.
fn wrong_type(message: &str) -> Option<(String, Option<String>)> {
    let rest = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "))?;
    let (found, expected) = rest.split_once(", expected ")?;
    Some((format!("expected {expected}, got {found}"), None))
}

/// The keys of `models.NAME.profile`.
fn profile_keys() -> Vec<String> {
    let schema = schemars::schema_for!(llm_do::model::ProfileOverride);
    let properties = schema.get("properties").and_then(|properties| properties.as_object());
    properties.into_iter().flat_map(|properties| properties.keys().cloned()).collect()
}

fn position(text: &str, span: &Range<usize>) -> (usize, usize) {
    let before = text.get(..span.start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |index| index + 1);
    (line, before[start..].chars().count() + 1)
}
