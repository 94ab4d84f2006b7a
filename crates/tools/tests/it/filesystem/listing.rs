//! What `list_files` answers.

use llm_do_tools::FilesystemSettings;
use serde_json::{Value, json};

use crate::filesystem::support::{Folder, Gate};

async fn list(gate: &Gate, arguments: Value) -> Vec<String> {
    let answer = gate.call("list_files", arguments).await.unwrap();
    serde_json::from_value(answer["files"].clone()).unwrap()
}

#[tokio::test]
async fn entries_are_listed_in_order_and_without_what_git_ignores() {
    let folder = Folder::new()
        .file(".gitignore", "target/\n*.log\n!keep.log\n")
        .file(".git/config", "")
        .file(".git/info/exclude", "private.txt\n")
        .file("private.txt", "")
        .file("b.txt", "")
        .file("a.log", "")
        .file("keep.log", "")
        .file("src/main.rs", "")
        .file("src/.gitignore", "generated.rs\n!*.log\n")
        .file("src/generated.rs", "")
        .file("src/b.log", "")
        .file("target/debug/x", "");
    let gate = folder.gate();
    let all = [".gitignore", "b.txt", "keep.log", "src/", "src/.gitignore", "src/b.log", "src/main.rs"];
    assert_eq!(list(&gate, json!({})).await, all);
    assert_eq!(list(&gate, json!({"path": "src"})).await, ["src/.gitignore", "src/b.log", "src/main.rs"]);
    assert_eq!(list(&gate, json!({"pattern": "*"})).await, [".gitignore", "b.txt", "keep.log", "src/"]);
    assert_eq!(list(&gate, json!({"path": "target"})).await, ["target/debug/", "target/debug/x"]);
}

#[tokio::test]
async fn a_long_list_is_cut_and_says_so() {
    let folder = (0..30).fold(Folder::new(), |folder, number| folder.file(&format!("{number:02}.txt"), ""));
    let gate = folder.gate();
    let answer = gate.call("list_files", json!({"limit": 3})).await.unwrap();
    assert_eq!(answer["files"], json!(["00.txt", "01.txt", "02.txt"]));
    assert_eq!(answer["truncated"], true);
    let whole = gate.call("list_files", json!({"limit": 30})).await.unwrap();
    assert_eq!((whole["files"].as_array().unwrap().len(), &whole["truncated"]), (30, &json!(false)));
    let bounded = folder.gate_with(FilesystemSettings { max_list: 5, ..Default::default() });
    assert_eq!(list(&bounded, json!({"limit": 30})).await.len(), 5);
}

#[tokio::test]
async fn links_are_listed_where_they_stay_inside_and_never_entered() {
    let folder = Folder::new().file("dir/a.txt", "").link("to_dir", "dir").link("to_file", "dir/a.txt");
    folder.put("outside/secret.txt", "");
    let folder = folder.link("out", "../outside").link("dir/up", "..").link("loop", "loop");
    let listed = list(&folder.gate(), json!({})).await;
    assert_eq!(listed, ["dir/", "dir/a.txt", "dir/up/", "to_dir/", "to_file"]);
}

#[tokio::test]
async fn only_permitted_endings_are_listed() {
    let folder = Folder::new().file("a.md", "").file("b.key", "");
    let gate = folder.gate_with(FilesystemSettings { suffixes: vec![".md".into()], ..Default::default() });
    assert_eq!(list(&gate, json!({})).await, ["a.md"]);
}
