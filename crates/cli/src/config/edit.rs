//! Changes the text of a configuration and keeps everything else in it: comments, order and layout.

use toml_edit::{Document, DocumentMut, Item, Key, Table, Value};

use super::error::SettingsError;
use super::parse::{self, line_of};

/// One setting of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// The key as it can be typed, such as `models."openai:gpt-5*".price.input`.
    pub(crate) key: String,
    /// The value as a person reads it.
    pub(crate) value: String,
    /// The line of the key, from 1.
    pub(crate) line: usize,
}

/// Reads a dotted key, such as `aliases.fast`.
pub(crate) fn parse_key(written: &str) -> Result<Vec<String>, SettingsError> {
    let unreadable = |_| {
        let hint =
            r#"write parts with dots between them, and quotes around a name with `:`: models."a:b".price"#;
        SettingsError::at([], format!("`{written}` is not a key")).with_hint(hint)
    };
    let keys = Key::parse(written).map_err(unreadable)?;
    Ok(keys.iter().map(|key| key.get().to_owned()).collect())
}

/// Sets a key to a value and returns the new text. The value is taken as a text where that fits, else as TOML.
pub(crate) fn set(text: &str, key: &[String], value: &str) -> Result<String, SettingsError> {
    let as_text = with_value(text, key, Value::from(value))?;
    let Err(problem) = parse::parse(&as_text) else { return Ok(as_text) };
    // A text that is wrong in itself (an unknown model) is not TOML of another type.
    let Ok(parsed) = value.parse::<Value>() else { return Err(problem) };
    let as_toml = with_value(text, key, parsed)?;
    parse::parse(&as_toml).map(|_| as_toml)
}

fn with_value(text: &str, key: &[String], mut value: Value) -> Result<String, SettingsError> {
    let mut document = read(text)?;
    let Some((last, tables)) = key.split_last() else {
        return Err(SettingsError::at([], "the key is empty"));
    };
    let mut table: &mut dyn toml_edit::TableLike = document.as_table_mut();
    for name in tables {
        let item = table.entry(name).or_insert_with(|| Item::Table(implicit_table()));
        table = item.as_table_like_mut().ok_or_else(|| not_a_table(name))?;
    }
    if let Some(before) = table.get(last).and_then(Item::as_value) {
        *value.decor_mut() = before.decor().clone();
    }
    match table.get_mut(last) {
        Some(item) => *item = Item::Value(value),
        None => drop(table.insert(last, Item::Value(value))),
    }
    Ok(document.to_string())
}

/// Removes a key and returns the new text; nothing if it is not set.
pub(crate) fn unset(text: &str, key: &[String]) -> Result<Option<String>, SettingsError> {
    let mut document = read(text)?;
    if !remove(document.as_table_mut(), key) {
        return Ok(None);
    }
    let text = document.to_string();
    parse::parse(&text).map(|_| Some(text))
}

/// Removes a key, and the tables above it that become empty by that.
fn remove(table: &mut dyn toml_edit::TableLike, key: &[String]) -> bool {
    match key {
        [] => false,
        [last] => table.remove(last).is_some(),
        [first, rest @ ..] => {
            let Some(below) = table.get_mut(first).and_then(Item::as_table_like_mut) else { return false };
            let was_set = remove(below, rest);
            if was_set && below.is_empty() {
                table.remove(first);
            }
            was_set
        }
    }
}

/// Returns what is written for a key, as a person reads it; of a table, one line of TOML for each key below it.
pub(crate) fn get(text: &str, key: &[String]) -> Result<Option<String>, SettingsError> {
    let document = read(text)?;
    Ok(find(document.as_item(), key).map(|item| match item.as_table() {
        Some(table) => lines(table, &written_key(key)).join("\n"),
        None => shown_item(item),
    }))
}

/// Every setting below a table as `KEY = VALUE`.
fn lines(table: &dyn toml_edit::TableLike, path: &str) -> Vec<String> {
    let below = table.iter().map(|(name, item)| {
        let key = format!("{path}.{}", Key::new(name).display_repr());
        match item.as_table_like() {
            Some(below) => lines(below, &key),
            None => vec![format!("{key} = {}", item.to_string().trim())],
        }
    });
    below.flatten().collect()
}

/// Writes a key as it can be typed.
fn written_key(key: &[String]) -> String {
    let parts = key.iter().map(|part| Key::new(part.as_str()).display_repr().into_owned());
    parts.collect::<Vec<_>>().join(".")
}

/// Returns all settings of a text in the order in which they are written.
pub(crate) fn leaves(text: &str) -> Vec<Leaf> {
    let Ok(document) = Document::parse(text) else { return Vec::new() };
    let mut found = Vec::new();
    collect(document.as_table(), "", text, &mut found);
    found
}

fn collect(table: &dyn toml_edit::TableLike, path: &str, text: &str, found: &mut Vec<Leaf>) {
    for (name, item) in table.iter() {
        let part = Key::new(name).display_repr().into_owned();
        let key = if path.is_empty() { part } else { format!("{path}.{part}") };
        match item.as_table_like() {
            Some(below) => collect(below, &key, text, found),
            None => {
                let span = table.key(name).and_then(Key::span).or_else(|| item.span()).unwrap_or(0..0);
                found.push(Leaf { key, value: shown_item(item), line: line_of(text, &span) });
            }
        }
    }
}

fn find<'i>(item: &'i Item, key: &[String]) -> Option<&'i Item> {
    key.iter().try_fold(item, |item, name| item.as_table_like()?.get(name))
}

/// Shows a text as it is and everything else as TOML.
fn shown_item(item: &Item) -> String {
    match item.as_str() {
        Some(text) => text.to_owned(),
        None => item.to_string().trim().to_owned(),
    }
}

fn read(text: &str) -> Result<DocumentMut, SettingsError> {
    text.parse::<DocumentMut>().map_err(|error| {
        let hint = "`llm-do config edit` opens the file";
        SettingsError::at([], format!("the file is not TOML: {}", error.message())).with_hint(hint)
    })
}

/// A table that is written only if it has values of its own.
fn implicit_table() -> Table {
    let mut table = Table::new();
    table.set_implicit(true);
    table
}

fn not_a_table(name: &str) -> SettingsError {
    SettingsError::at([], format!("`{name}` has a value, and cannot have keys below it"))
}

#[cfg(test)]
mod tests {
    use llm_do_testing::Chance;

    use super::*;

    const START: &str = "# first comment\nmodel = \"test\" # of agents\n\n# before the table\n[aliases] # at the table\n\
        # inside\nfast = \"test:echo\"\n\n[models.\"box:*\"]\nprice = { input = 1, output = 2 } # dollars\n# last comment\n";

    const KEYS: &[&str] = &[
        "model",
        "aliases.fast",
        "aliases.\"other one\"",
        "aliases.slow",
        "approvals.mode",
        "trust.content",
        "providers.box.base_url",
        "providers.box.headers.x-team",
        "models.\"box:*\".price.input",
        "models.\"openai:gpt-5*\".profile.images",
        "models",
        "nonsense.key",
    ];

    const VALUES: &[&str] = &[
        "test",
        "test:echo",
        "fast",
        "slow",
        "prompt",
        "ask",
        "0.25",
        "true",
        "http://box.lan/v1",
        "https://box.lan",
        "{ a = 1 }",
        "\"",
        "",
        "[",
        "# no comment",
        "two\nlines",
    ];

    #[test]
    fn whatever_is_set_and_unset_the_text_stays_valid_and_keeps_its_comments() {
        let (mut sets, mut unsets) = (0, 0);
        for seed in 0..400 {
            let mut chance = Chance::new(seed);
            let mut text = START.to_owned();
            for _ in 0..20 {
                let (key, value) = (chance.one_of(KEYS), chance.one_of(VALUES));
                let key = parse_key(key).unwrap();
                let is_set = *chance.one_of(&[true, true, false]);
                let changed = match is_set {
                    true => set(&text, &key, value).ok(),
                    false => unset(&text, &key).ok().flatten(),
                };
                let Some(changed) = changed else { continue };
                assert!(parse::parse(&changed).is_ok(), "{changed}");
                assert_eq!(get(&changed, &key).unwrap().is_some(), is_set, "{key:?} in {changed}");
                // A comment goes only with the key that it belongs to.
                for comment in ["# first comment", "# of agents"] {
                    let went = !is_set && key == ["model"];
                    assert!(went || changed.contains(comment) == text.contains(comment), "{changed}");
                }
                let others = leaves(&text).into_iter().filter(|leaf| !leaf.key.starts_with(&key[0]));
                let after = leaves(&changed);
                for other in others {
                    assert!(
                        after.iter().any(|leaf| (&leaf.key, &leaf.value) == (&other.key, &other.value)),
                        "{other:?}"
                    );
                }
                text = changed;
                *(if is_set { &mut sets } else { &mut unsets }) += 1;
            }
        }
        assert!(sets > 300 && unsets > 100, "{sets} sets and {unsets} unsets did something");
    }
}
