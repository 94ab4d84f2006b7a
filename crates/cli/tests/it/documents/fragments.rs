//! YAML that a page shows without writing it to a file: each is valid in an agent file, in a manifest, or as settings of a
//! shell toolset. A key that was renamed, or never existed, does not survive here.

use std::fmt::Write as _;

use super::page::{Block, blocks};
use super::{PAGES, page};
use crate::support::Sandbox;

/// Problems of a fragment that are only about files and names around it, which the page does not show.
const AROUND: [&str; 4] = ["does not exist", "there is no ", "was not found", "No such file"];

fn indented(text: &str, spaces: usize) -> String {
    text.lines().fold(String::new(), |mut all, line| {
        let _ = writeln!(all, "{:spaces$}{line}", "");
        all
    })
}

/// The fragment as a part of an agent file.
fn as_agent(text: &str) -> String {
    let name = if text.lines().any(|line| line.starts_with("name:")) { "" } else { "name: main\n" };
    if text.starts_with("---") { format!("{text}\nGo.\n") } else { format!("---\n{name}{text}---\nGo.\n") }
}

/// The fragment as a part of a manifest.
fn as_manifest(text: &str) -> String {
    let keys = ["version: 1", "entry: {agent: main}", "agent_files: [main.agent]"];
    let missing =
        keys.iter().filter(|key| !text.contains(key.split_once(' ').map_or(**key, |(name, _)| name)));
    missing.fold(text.to_owned(), |text, key| format!("{key}\n{text}"))
}

/// Returns what is wrong with a fragment as a part of one of the files.
fn problems(file: &str, text: &str) -> Vec<String> {
    let main = "---\nname: main\nmodel: test\n---\nGo.\n";
    let sandbox = Sandbox::new().file("main.agent", main).file(file, text);
    let printed = sandbox.run(&["check", if file == "main.agent" { "." } else { file }]).stderr;
    let errors = printed.lines().filter(|line| line.starts_with("error: "));
    errors.filter(|line| !AROUND.iter().any(|words| line.contains(words))).map(str::to_owned).collect()
}

fn check(name: &str, block: &Block) {
    let settings = format!("toolsets:\n  - shell_file_ops:\n{}", indented(&block.text, 6));
    let forms = [
        ("main.agent", as_agent(&block.text)),
        ("project.yaml", as_manifest(&block.text)),
        ("main.agent", as_agent(&settings)),
    ];
    let found: Vec<Vec<String>> = forms.iter().map(|(file, text)| problems(file, text)).collect();
    assert!(found.iter().any(Vec::is_empty), "{name}:{}: {found:#?}\n{}", block.line, block.text);
}

#[test]
fn yaml_that_is_shown_is_valid() {
    let mut checked = 0;
    for name in PAGES {
        let text = page(name);
        let is_fragment = |block: &Block| block.language == "yaml" && block.attributes.is_empty();
        for block in blocks(&text).iter().filter(|block| is_fragment(block)) {
            check(name, block);
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
}

#[test]
#[should_panic(expected = "unknown key `toolset`")]
fn a_key_that_does_not_exist_is_reported() {
    check("page", &blocks("```yaml\ntoolset: [critic]\n```\n")[0]);
}
