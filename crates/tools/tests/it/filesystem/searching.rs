//! What `search_files` answers.

use serde_json::{Value, json};

use crate::filesystem::support::{Folder, Gate};

async fn search(gate: &Gate, arguments: Value) -> Value {
    gate.call("search_files", arguments).await.unwrap()
}

#[tokio::test]
async fn matching_lines_are_returned_by_file() {
    let folder = Folder::new()
        .file("a.txt", "one\nneedle one\nthree\n")
        .file("sub/b.rs", "let needle = 2;\r\n")
        .file("c.bin", b"needle\n\0\0")
        .file("late.bin", format!("needle\n{}\0", "text\n".repeat(100_000)))
        .file(".gitignore", "d.txt\n")
        .file("d.txt", "needle\n");
    let gate = folder.gate();
    let expected = json!({
        "matches": 2,
        "files": [
            {"path": "a.txt", "lines": ["2: needle one"]},
            {"path": "sub/b.rs", "lines": ["1: let needle = 2;"]},
        ],
        "truncated": false,
    });
    assert_eq!(search(&gate, json!({"pattern": "needle"})).await, expected);
    let in_rust = search(&gate, json!({"pattern": "needle", "glob": "*.rs"})).await;
    assert_eq!(in_rust["files"][0]["path"], "sub/b.rs");
    assert_eq!(in_rust["matches"], 1);
    let in_file = search(&gate, json!({"pattern": "NEEDLE|(?i)THREE", "path": "a.txt"})).await;
    assert_eq!(in_file["files"][0]["lines"], json!(["3: three"]));
}

#[tokio::test]
async fn lines_around_a_match_are_shown_where_they_are_wanted() {
    let folder = Folder::new().file("a.txt", "1\n2\nneedle\n4\n5\n6\n7\n8\nneedle\n");
    let found = search(&folder.gate(), json!({"pattern": "needle", "context": 1})).await;
    let lines = json!(["2- 2", "3: needle", "4- 4", "--", "8- 8", "9: needle"]);
    assert_eq!(found["files"][0]["lines"], lines);
}

#[tokio::test]
async fn matches_lines_and_bytes_are_bounded() {
    let folder =
        Folder::new().file("many.txt", "needle\n".repeat(500)).file("wide.txt", "needle ".repeat(100_000));
    let gate = folder.gate();
    let few = search(&gate, json!({"pattern": "needle", "limit": 3})).await;
    assert_eq!((&few["matches"], &few["truncated"]), (&json!(3), &json!(true)));
    let wide = search(&gate, json!({"pattern": "needle", "path": "wide.txt"})).await;
    assert!(wide.to_string().len() < 1000, "{wide}");
    assert_eq!(wide["truncated"], false);
}

#[tokio::test]
async fn a_pattern_that_is_none_is_explained() {
    let folder = Folder::new();
    let gate = folder.gate();
    let failure = gate.call("search_files", json!({"pattern": "(", "path": "."})).await.unwrap_err();
    assert!(failure.message.contains("not a regular expression"), "{failure}");
    let failure = gate.call("search_files", json!({"pattern": "x", "path": "../outside"})).await.unwrap_err();
    assert!(failure.message.contains("leads out of the root"), "{failure}");
}
