//! Structured values that are too long: a long text in one of the fields is a descriptor of its own, as it is, and the
//! rest of the value is shown whole.

use llm_do_core::{DescriptorSettings, Failure, Key, Name};
use serde_json::{Map, Value};

use super::fd::{FdInfo, FdSource};
use super::id::FdId;
use super::show::first_view;
use super::table::Descriptors;

/// How many fields of one value become descriptors at most; what is left of it is then read as JSON.
const MAX_FIELDS: usize = 16;

impl Descriptors {
    /// Makes the long texts of a long result descriptors, and returns what the model reads instead; nothing where it
    /// is short enough.
    pub fn page_value(&self, key: &Key, value: &Value) -> Result<Option<String>, Failure> {
        match self.settings().pages_result(&value.to_string()) {
            true => {
                let limit = self.settings().limit;
                self.shown_value(&FdId::from_key(key), value, limit, FdSource::ToolResult).map(Some)
            }
            false => Ok(None),
        }
    }

    /// Does the same with a long input.
    pub fn page_input_value(&self, value: &Value, room: Option<u64>) -> Result<Option<String>, Failure> {
        match self.settings().pages_input(&pretty(value), room) {
            true => {
                let limit = self.settings().input_limit.unwrap_or(DescriptorSettings::INPUT_LIMIT);
                self.shown_value(&FdId::input(), value, limit, FdSource::UserInput).map(Some)
            }
            false => Ok(None),
        }
    }

    fn shown_value(&self, id: &FdId, value: &Value, limit: u64, source: FdSource) -> Result<String, Failure> {
        let Value::Object(fields) = value else { return self.first_view_of(id, &pretty(value), source) };
        let (mut rest, mut kept) = (Map::new(), Vec::new());
        for (position, (name, field)) in fields.iter().enumerate() {
            let long = field.as_str().filter(|text| kept.len() < MAX_FIELDS && is_longer(text, limit));
            let shown = match long {
                Some(text) => {
                    let info = self.add_beside(&id.field(&field_id(name, position)), text, source)?;
                    let reference = reference_to(&info);
                    kept.push(info);
                    reference.into()
                }
                None => field.clone(),
            };
            rest.insert(name.clone(), shown);
        }
        let rest = Value::Object(rest);
        let text = rest.to_string();
        if !is_longer(&text, limit) {
            return self.with_previews(text, &kept, limit);
        }
        let view = self.first_view_of(id, &pretty(&rest), source)?;
        let references = kept.iter().map(|info| format!("\n{}", reference_to(info)));
        Ok(view + &references.collect::<String>())
    }

    /// Adds the first page of each text: of one always, of the others while there is room.
    fn with_previews(&self, text: String, kept: &[FdInfo], limit: u64) -> Result<String, Failure> {
        let mut shown = text;
        for (position, info) in kept.iter().enumerate() {
            let view = first_view(&self.get(info.id.as_str())?)?;
            let size = (shown.chars().count() + view.chars().count()) as u64;
            if position == 0 || size <= limit {
                shown = format!("{shown}\n{view}");
            }
        }
        Ok(shown)
    }
}

/// The reference that replaces a text.
fn reference_to(info: &FdInfo) -> String {
    let FdInfo { id, chars, lines, pages, .. } = info;
    format!("[{id}: {chars} characters, {lines} lines, {pages} pages]")
}

/// The name of a field, or a numbered one if it cannot be part of a descriptor's name.
fn field_id(name: &str, position: usize) -> String {
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    if Name::is_valid(name) && !is_number { name.to_owned() } else { format!("field{}", position + 1) }
}

fn is_longer(text: &str, limit: u64) -> bool {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    text.len() > limit && text.chars().nth(limit).is_some()
}

/// A value that is read in pages has lines.
fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}
