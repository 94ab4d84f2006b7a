//! Tables of the documents that the program must agree with.

use std::collections::BTreeSet;
use std::path::Path;

use llm_do::project::{StandardCatalog, ToolsetCatalog};
use serde_json::Value;

use super::{page, root};
use crate::support::Sandbox;

/// Returns the cells of all rows of a table, from the row after its header line.
fn rows<'a>(text: &'a str, header: &str) -> Vec<Vec<&'a str>> {
    let after = text.split_once(header).unwrap_or_else(|| panic!("there is no table `{header}`")).1;
    let lines = after.lines().skip(2).take_while(|line| line.starts_with('|'));
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// What `list` prints about an agent with one toolset.
fn listed(toolset: &str) -> Value {
    let agent = format!(
        "---\nname: main\nmodel: test\ntoolsets: [{toolset}]\ntuning: {{temperature: [0, 1]}}\n---\nx\n"
    );
    Sandbox::new().file("main.agent", &agent).run(&["list", ".", "--output", "json"]).ended(0).json()
}

/// The tools of a toolset with an approval, as the page writes them.
fn with_approval(listed: &Value, toolset: &str, approval: &str) -> String {
    let calls = listed["agents"][0]["calls"].as_array().unwrap();
    let own = calls.iter().filter(|call| call["toolset"] == toolset && call["approval"] == approval);
    own.map(|call| format!("`{}`", call["name"].as_str().unwrap())).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_page_of_toolsets_lists_all_of_them_with_their_tools_and_approvals() {
    let text = page("docs/guide/toolsets.md");
    let catalog = StandardCatalog::new(".");
    let expected: Vec<Vec<String>> = catalog
        .toolsets()
        .into_iter()
        .map(|name| {
            let listed = listed(name);
            vec![
                format!("`{name}`"),
                with_approval(&listed, name, "pre_approved"),
                with_approval(&listed, name, "ask"),
            ]
        })
        .collect();
    let shown = rows(&text, "| Toolset | Runs freely | Asks first | More |");
    let shown: Vec<Vec<String>> =
        shown.iter().map(|row| row[..3].iter().map(|cell| (*cell).to_owned()).collect()).collect();
    assert_eq!(shown, expected);
}

#[test]
fn the_page_of_toolsets_lists_every_tool_with_its_access() {
    let text = page("docs/guide/toolsets.md");
    let catalog = StandardCatalog::new(".");
    let alone = catalog.lone_tools();
    let mut expected = BTreeSet::new();
    for toolset in catalog.toolsets() {
        for tool in
            listed(toolset)["tools"].as_array().unwrap().iter().filter(|tool| tool["toolset"] == toolset)
        {
            let name = tool["name"].as_str().unwrap();
            let is_alone = if alone.contains(&name) { "yes" } else { "no" };
            expected.insert((
                format!("`{name}`"),
                tool["access"].as_str().unwrap().to_owned(),
                is_alone.to_owned(),
            ));
        }
    }
    let rows = rows(&text, "| Tool | Access | Alone | What it does |");
    let shown: BTreeSet<(String, String, String)> =
        rows.iter().map(|row| (row[0].to_owned(), row[1].to_owned(), row[2].to_owned())).collect();
    assert_eq!(shown, expected);
    assert_eq!(rows.len(), expected.len(), "each tool once");
}

/// What a script may contain in one position, from the error about a word that it may not.
fn accepted(script: &str) -> BTreeSet<String> {
    let sandbox = Sandbox::scripted(script);
    let error = sandbox.run(&["check", "."]).ended(2).stderr;
    let names = error.split_once("expected one of ").unwrap_or_else(|| panic!("{error}")).1;
    let names = names.lines().next().unwrap().split(", ");
    names.map(|name| name.trim_matches('`').to_owned()).collect()
}

#[test]
fn the_page_of_script_files_names_every_key_mode_and_failure() {
    let text = page("docs/reference/script-files.md");
    let cells = |header: &str| -> BTreeSet<String> {
        rows(&text, header).iter().map(|row| row[0].split('`').nth(1).unwrap().to_owned()).collect()
    };
    assert_eq!(cells("| Key | Value | Meaning |"), accepted("- zzzzzzzz: 1\n"));
    assert_eq!(cells("| `mode` | Which reply comes next |"), accepted("mode: zzzzzzzz\nreplies: []\n"));
    let kinds = text.split_once("The kinds are ").unwrap().1.split_once(". ").unwrap().0;
    let kinds: BTreeSet<String> = kinds.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    assert_eq!(kinds, accepted("- fail: {kind: zzzzzzzz, message: x}\n"));
}

/// All Rust code outside of tests, with continued strings joined.
fn sources(directory: &Path, text: &mut String) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !["tests", "target"].contains(&name) {
            sources(&path, text);
        } else if name.ends_with(".rs") {
            let file = std::fs::read_to_string(&path).unwrap();
            text.push_str(file.split("#[cfg(test)]").next().unwrap_or_default());
        }
    }
}

#[test]
fn every_message_of_troubleshooting_is_in_the_sources() {
    let mut code = String::new();
    sources(&root().join("crates"), &mut code);
    let code = code.replace("\\\n", "");
    let code = code.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = page("docs/guide/troubleshooting.md");
    let cells = text
        .lines()
        .filter_map(|line| line.strip_prefix("| ``"))
        .map(|line| line.split_once("`` |").unwrap().0);
    let messages: Vec<&str> = cells.collect();
    assert!(messages.len() > 10, "{messages:?}");
    for message in messages {
        for piece in message.split("..").filter(|piece| piece.len() > 2) {
            assert!(
                code.contains(piece),
                "`{message}` is not printed any more: `{piece}` is not in the sources"
            );
        }
    }
}
