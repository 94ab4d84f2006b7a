//! What `read_file` answers.

use llm_do_core::{Approval, FailureKind, Toolset};
use llm_do_models::{asks, says};
use llm_do_tools::{Filesystem, FilesystemSettings};
use serde_json::json;

use crate::filesystem::support::Folder;

#[tokio::test]
async fn a_model_reads_a_file_without_a_question() {
    let folder = Folder::new().file("notes.txt", "hello\n");
    let replies = [asks("read_file", json!({"path": "notes.txt"})), says("Read.")];
    let (run, requests) = folder.converse(replies, []).await;
    let expected =
        json!({"content": "hello\n", "total_chars": 6, "total_lines": 1, "offset": 0, "truncated": false});
    assert_eq!(run.tool_results(), [expected.to_string()]);
    assert_eq!(run.answer(), "Read.".into());
    assert!(requests.is_empty());
}

#[tokio::test]
async fn a_long_file_is_read_part_by_part() {
    let text = "0123456789".repeat(5000);
    let folder = Folder::new().file("long.txt", &text);
    let gate = folder.gate();
    let mut read = String::new();
    let mut offset = json!(0);
    while !offset.is_null() {
        let part = gate.call("read_file", json!({"path": "long.txt", "offset": offset})).await.unwrap();
        read.push_str(part["content"].as_str().unwrap());
        assert_eq!(part["truncated"], json!(part["next_offset"].is_number()));
        offset = part["next_offset"].clone();
    }
    assert_eq!(read, text);
}

#[tokio::test]
async fn a_file_that_is_not_text_is_described_with_how_to_attach_it() {
    let folder = Folder::new().file("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\0");
    let answer = folder.gate().call("read_file", json!({"path": "picture.png"})).await.unwrap();
    assert_eq!(answer["media_type"], "image/png");
    assert_eq!(answer["size_bytes"], 12);
    assert!(answer["note"].as_str().unwrap().contains("under `attachments`"), "{answer}");
}

#[tokio::test]
async fn what_lies_beyond_the_read_limit_is_not_read() {
    let folder = Folder::new().file("big.txt", "a".repeat(5000));
    let gate = folder.gate_with(FilesystemSettings { max_read_bytes: 1000, ..Default::default() });
    let answer = gate.call("read_file", json!({"path": "big.txt"})).await.unwrap();
    assert_eq!(answer["content"], "a".repeat(1000));
    assert_eq!((&answer["truncated"], &answer["total_chars"]), (&json!(true), &json!(null)));
    assert!(answer["note"].as_str().unwrap().contains("5000 bytes"), "{answer}");
}

#[tokio::test]
async fn a_missing_file_is_answered_with_the_nearest_names() {
    let folder = Folder::new().file("src/main.rs", "").file("src/other.md", "");
    let gate = folder.gate();
    let failure = gate.call("read_file", json!({"path": "src/mian.rs"})).await.unwrap_err();
    assert_eq!(failure.message, "`src/mian.rs` does not exist");
    assert_eq!(failure.hint.as_deref(), Some("did you mean `src/main.rs`?"));
    let failure = gate.call("read_file", json!({"path": "scr/main.rs"})).await.unwrap_err();
    assert_eq!(failure.hint.as_deref(), Some("did you mean `src`?"));
}

#[tokio::test]
async fn only_permitted_endings_are_read_also_behind_a_link() {
    let folder = Folder::new().file("a.md", "a").file("b.key", "secret").link("c.md", "b.key");
    let gate = folder.gate_with(FilesystemSettings { suffixes: vec![".md".into()], ..Default::default() });
    assert!(gate.call("read_file", json!({"path": "a.md"})).await.is_ok());
    for path in ["b.key", "c.md"] {
        let failure = gate.call("read_file", json!({"path": path})).await.unwrap_err();
        assert_eq!(failure.message, "the name of `b.key` does not end with .md");
    }
}

#[test]
fn a_read_only_toolset_has_no_tools_that_write() {
    let folder = Folder::new();
    let names = |settings| {
        let definitions = folder.toolset(settings).definitions();
        definitions.iter().map(|definition| definition.name.to_string()).collect::<Vec<_>>()
    };
    let settings = FilesystemSettings { read_only: true, prefix: "docs_".into(), ..Default::default() };
    assert_eq!(names(settings), ["docs_read_file", "docs_list_files", "docs_search_files"]);
    let all = ["read_file", "list_files", "search_files", "write_file", "edit_file"];
    assert_eq!(names(FilesystemSettings::default()), all);
}

#[test]
fn what_looks_is_free_and_what_changes_asks() {
    for definition in Folder::new().toolset(FilesystemSettings::default()).definitions() {
        let writes = ["write_file", "edit_file"].contains(&definition.name.as_str());
        let expected = if writes { Approval::Ask } else { Approval::PreApproved };
        assert_eq!(definition.approval, expected, "{}", definition.name);
    }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let folder = Folder::new().file("a.txt", "");
    let make = |settings| Filesystem::new("files", folder.root(), settings);
    let error = |settings| make(settings).err().unwrap().to_string();
    let missing = error(FilesystemSettings { root: "nowhere".into(), ..Default::default() });
    assert!(missing.contains("nowhere"), "{missing}");
    let file = error(FilesystemSettings { root: "a.txt".into(), ..Default::default() });
    assert!(file.contains("is not a directory"), "{file}");
    let prefix = error(FilesystemSettings { prefix: "my files/".into(), ..Default::default() });
    assert!(prefix.contains("is not a valid tool name"), "{prefix}");
}

#[tokio::test]
async fn an_unknown_argument_is_named() {
    let failure = Folder::new().gate().call("read_file", json!({"path": "a", "limit": 1})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Arguments);
    assert!(failure.message.contains("`limit`"), "{failure}");
}

#[test]
fn the_guide_names_every_tool_and_every_setting() {
    let guide = include_str!("../../../../../docs/guide/files.md");
    let schema = llm_do_core::schema_value_of::<FilesystemSettings>();
    let settings = schema["properties"].as_object().unwrap().keys().cloned();
    let definitions = Folder::new().toolset(FilesystemSettings::default()).definitions();
    for word in settings.chain(definitions.iter().map(|definition| definition.name.to_string())) {
        assert!(guide.contains(&format!("| `{word}` |")), "`{word}` is not in the guide");
    }
}
