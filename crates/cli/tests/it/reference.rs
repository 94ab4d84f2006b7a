//! The reference pages are made from the program, so they cannot drift.
//!
//! `UPDATE_DOCS=1 cargo test -p llm-do-cli reference` writes them anew.

use std::fmt::Write;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::Sandbox;

fn page(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name)
}

#[track_caller]
fn compare(name: &str, made: &str) {
    let path = page(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, made).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == made, "docs/reference/{name} is out of date: run `cargo xtask docs`");
}

#[test]
fn the_command_line_is_documented_as_it_is() {
    let sandbox = Sandbox::new();
    let mut text = String::from("# The command line\n\nMade from `--help`; a test keeps it so.\n\n");
    for command in [
        "",
        "run",
        "chat",
        "resume",
        "approvals",
        "approve",
        "deny",
        "runs",
        "runs prune",
        "runs repair",
        "chats",
        "chats forget",
        "show",
        "usage",
        "check",
        "list",
        "call",
        "init",
        "models",
        "doctor",
        "trust",
        "config",
        "config get",
        "config set",
        "config unset",
        "config edit",
        "config path",
        "auth",
        "auth login",
        "auth logout",
        "auth list",
        "schema",
        "completions",
    ] {
        let arguments: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let help = sandbox.command(&arguments).env("COLUMNS", "80").output().unwrap().stdout;
        let title = if command.is_empty() { "llm-do".to_owned() } else { format!("llm-do {command}") };
        let help = String::from_utf8(help).unwrap();
        let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
        let _ = write!(text, "## {title}\n\n```text\n{}\n```\n\n", lines.join("\n"));
    }
    let overview = sandbox.run(&["--help"]).stdout;
    let listed =
        overview.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // A long description goes on in a line that is indented further.
    let names = listed.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    for command in names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        assert!(
            text.contains(&format!("## llm-do {command}\n")),
            "`{command}` is not documented: add it to the list in this test, then run `cargo xtask docs`"
        );
    }
    compare("command-line.md", &format!("{}\n", text.trim_end()));
}

#[test]
fn the_manifest_is_documented_as_it_is_read() {
    let schema = Sandbox::new().run(&["schema", "manifest"]).json();
    let opening = "# The manifest\n\n`project.json`, `project.yaml` or `project.toml`. Made from its JSON Schema \
        (`llm-do schema manifest`); a test keeps it so.\n\n";
    compare("manifest.md", &keys_page(opening, &schema));
}

#[test]
fn the_agent_file_is_documented_as_it_is_read() {
    let schema = Sandbox::new().run(&["schema", "agent"]).json();
    let opening = "# The agent file\n\nA YAML header between `---` lines, then the instructions. Made from the JSON \
        Schema of the header (`llm-do schema agent`); a test keeps it so.\n\n";
    compare("agent-file.md", &keys_page(opening, &schema));
}

#[test]
fn the_schemas_are_those_that_the_program_prints() {
    for name in ["manifest", "agent", "config", "output"] {
        let printed = Sandbox::new().run(&["schema", name]);
        let id = printed.json()["$id"].as_str().map(str::to_owned).unwrap_or_default();
        assert!(id.ends_with(&format!("/docs/reference/{name}.schema.json")), "{id}");
        compare(&format!("{name}.schema.json"), &printed.stdout);
    }
}

#[test]
fn the_page_about_the_output_has_every_field_status_and_stop_reason() {
    let schema = Sandbox::new().run(&["schema", "output"]).json();
    let written = std::fs::read_to_string(page("output.md")).unwrap();
    let mut names: Vec<String> = Vec::new();
    let types = [&schema].into_iter().chain(schema["$defs"].as_object().unwrap().values());
    for kind in types {
        names.extend(kind["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()));
        let values = kind["oneOf"].as_array().into_iter().flatten();
        names.extend(values.filter_map(|value| value["const"].as_str().map(str::to_owned)));
    }
    assert!(names.len() > 40, "{names:?}");
    for name in names {
        assert!(written.contains(&format!("`{name}`")), "`{name}` is not explained in output.md");
    }
}

#[test]
fn the_configuration_is_documented_as_it_is_read() {
    let schema = Sandbox::new().run(&["schema", "config"]).json();
    let opening = "# The configuration\n\n`~/.config/llm-do/config.toml` (`llm-do config path`). Made from its JSON Schema \
        (`llm-do schema config`); a test keeps it so. The [guide](../guide/configuration.md) has examples.\n\n";
    compare("configuration.md", &keys_page(opening, &schema));
}

fn keys_page(opening: &str, schema: &Value) -> String {
    let mut text = format!("{opening}| Key | Type | Meaning |\n| --- | --- | --- |\n");
    rows(&mut text, "", schema);
    text
}

fn rows(text: &mut String, path: &str, schema: &Value) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let key = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let mark = if required.iter().any(|other| other == name) { ", required" } else { "" };
        let words = property["description"].as_str().unwrap_or_default().replace(['\n', '|'], " ");
        let _ = writeln!(text, "| `{key}` | {}{mark} | {words} |", kind(property));
        below(text, &key, property);
    }
}

/// Rows for what stands inside: objects, values of maps, items of lists, alternatives.
fn below(text: &mut String, key: &str, schema: &Value) {
    rows(text, key, schema);
    if schema["additionalProperties"].is_object() {
        rows(text, &format!("{key}.NAME"), &schema["additionalProperties"]);
    }
    if schema["items"].is_object() {
        for form in forms(&schema["items"]) {
            rows(text, &format!("{key}[]"), form);
        }
    }
    if schema["anyOf"].is_array() {
        forms(schema).into_iter().for_each(|form| rows(text, key, form));
    }
}

fn forms(schema: &Value) -> Vec<&Value> {
    match schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array()) {
        Some(forms) => forms.iter().collect(),
        None => vec![schema],
    }
}

fn kind(schema: &Value) -> String {
    if let Some(word) = schema["const"].as_str() {
        return format!("`{word}`");
    }
    if let Some(words) = schema["enum"].as_array() {
        let words = words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`"));
        return words.collect::<Vec<_>>().join(", ");
    }
    let mut kinds: Vec<String> = match &schema["type"] {
        Value::String(kind) => vec![kind.clone()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => {
            let others = forms(schema).into_iter().filter(|form| *form != schema && form["type"] != "null");
            others.map(kind).collect()
        }
    };
    kinds.retain(|kind| kind != "null");
    kinds.dedup();
    let words = kinds.join(" or ").replace("array", "list").replace("object", "mapping");
    if words.is_empty() { "any".to_owned() } else { words }
}
