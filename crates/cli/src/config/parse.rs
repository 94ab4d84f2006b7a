//! Reads the text of a configuration, and finds keys in it.

use std::ops::Range;

use toml_edit::{Document, Key};

use super::check;
use super::error::SettingsError;
use super::settings::Settings;

/// Reads a configuration and checks all of it.
pub(crate) fn parse(text: &str) -> Result<Settings, SettingsError> {
    let settings: Settings =
        toml_edit::de::from_str(text).map_err(|error| SettingsError::from_toml(&error, text))?;
    match check::problem(&settings) {
        Some(problem) => {
            let span = span_of(text, problem.key());
            Err(problem.located(text, span.as_ref()))
        }
        None => Ok(settings),
    }
}

/// Returns where a key is written: the key itself, else the nearest one above it.
fn span_of(text: &str, key: &[String]) -> Option<Range<usize>> {
    let document = Document::parse(text).ok()?;
    let mut table: &dyn toml_edit::TableLike = document.as_table();
    let mut span = None;
    for name in key {
        let Some(item) = table.get(name) else { break };
        span = table.key(name).and_then(Key::span).or_else(|| item.span()).or(span);
        let Some(below) = item.as_table_like() else { break };
        table = below;
    }
    span
}

pub(super) fn line_of(text: &str, span: &Range<usize>) -> usize {
    text.get(..span.start).unwrap_or_default().matches('\n').count() + 1
}
