//! Editing arguments in the person's own editor.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Opens the arguments in `$VISUAL` or `$EDITOR` and returns what the person left there.
pub(super) fn edit(arguments: &Value, terminal: &File) -> Result<Value, String> {
    let file = written(arguments).map_err(|error| format!("no file to edit could be made: {error}"))?;
    let words = editor();
    let (program, rest) = words.split_first().ok_or("`$EDITOR` names no program")?;
    let stream = || terminal.try_clone().map(Stdio::from).map_err(|error| error.to_string());
    let status = Command::new(program)
        .args(rest)
        .arg(file.path())
        .stdin(stream()?)
        .stdout(stream()?)
        .stderr(stream()?)
        .status()
        .map_err(|error| format!("`{program}` cannot be started: {error}; set `EDITOR`"))?;
    if !status.success() {
        return Err(format!("`{program}` ended with {status}"));
    }
    let text = std::fs::read_to_string(file.path()).map_err(|error| error.to_string())?;
    llm_do::parse_strict(&text).map_err(|error| format!("the text is no JSON: {error}"))
}

/// A private file with the arguments as people read them.
fn written(arguments: &Value) -> std::io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("llm-do-arguments-").suffix(".json").tempfile()?;
    let text = serde_json::to_string_pretty(arguments).unwrap_or_default();
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.flush()?;
    Ok(file)
}

/// The editor with its arguments, read from the process's own environment.
fn editor() -> Vec<String> {
    let set = ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok());
    let text = set.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| "vi".to_owned());
    shlex::split(&text).unwrap_or_default()
}
