//! Secret files: no tool shows them unless a person agrees to exactly this file with this content.

use llm_do_core::{Answer, ApprovalMode, FailureKind, Scope};
use llm_do_models::{asks, says};
use llm_do_secrets::SecretFiles;
use llm_do_tools::FilesystemSettings;
use serde_json::{Value, json};

use crate::filesystem::support::Folder;

const VALUE: &str = "correct-horse-battery";

/// A private key that is put together here, so that this file holds none.
fn private_key() -> String {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
    let kind = ["PRIVATE", "KEY"].join(" ");
    format!("-----BEGIN {kind}-----\n{}-----END {kind}-----\n", format!("{line}\n").repeat(25))
}

fn token() -> String {
    ["ghp", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17"].join("_")
}

/// Files that are secret, each with a part of its content that must not be shown.
fn secrets() -> Vec<(&'static str, String, String)> {
    let key = private_key();
    let line = key.lines().nth(1).unwrap().to_owned();
    vec![
        (".env", format!("PORT=1\nPASSWORD={VALUE}\n"), VALUE.to_owned()),
        ("sub/.env.local", format!("X={VALUE}\n"), VALUE.to_owned()),
        (".npmrc", format!("_password={VALUE}\n"), VALUE.to_owned()),
        (".ssh/deploy", format!("anything {VALUE}\n"), VALUE.to_owned()),
        (".aws/credentials", format!("aws_secret_access_key = {VALUE}\n"), VALUE.to_owned()),
        ("key.pem", key.clone(), line.clone()),
        ("notes.txt", format!("the key:\n{key}"), line),
        ("config.json", format!("{{\"token\": \"{}\"}}\n", token()), token()),
    ]
}

fn folder() -> Folder {
    let folder = Folder::new().file("plain.txt", "nothing to hide\n");
    secrets().into_iter().fold(folder, |folder, (path, content, _)| folder.file(path, content))
}

/// Every call that could show a file.
fn calls(path: &str) -> [(&'static str, Value); 5] {
    [
        ("read_file", json!({"path": path})),
        ("read_file", json!({"path": path, "start_line": 2, "line_count": 1})),
        ("read_file", json!({"path": format!("./x/../{path}"), "offset": 3})),
        ("search_files", json!({"pattern": ".", "path": path})),
        ("edit_file", json!({"path": path, "edits": [{"old": "no such text", "new": "x"}]})),
    ]
}

#[tokio::test]
async fn no_mode_shows_a_secret_file_and_the_way_out_is_told_once() {
    for mode in [ApprovalMode::ApproveAll, ApprovalMode::RejectAll] {
        let folder = folder();
        std::fs::create_dir(folder.path("root/x")).unwrap();
        for (path, _, part) in secrets() {
            let gate = folder.gate_in_mode(mode);
            for (tool, input) in calls(path) {
                let failure = gate.call(tool, input.clone()).await.unwrap_err();
                assert_eq!(failure.kind, FailureKind::Denied, "{tool} {input}: {failure}");
                assert!(failure.message.contains("is a secret file ("), "{failure}");
                let hint = failure.hint.clone().unwrap_or_default();
                assert!(hint.contains("secret_files: {allow:"), "each call is a run of its own: {hint}");
                assert!(!failure.message.contains(&part), "{failure}");
            }
        }
    }
}

#[tokio::test]
async fn the_way_out_is_told_once_in_a_run() {
    let folder = folder();
    let read = |path: &str| asks("read_file", json!({"path": path}));
    let (run, _) = folder
        .converse([read(".env"), read("key.pem"), says("Done.")], [Answer::Deny("no".into()), Answer::Once])
        .await;
    assert!(run.tool_results()[0].contains("denied: no"), "{:?}", run.tool_results());
    let project = folder.project().model_replies([read(".env"), read("key.pem"), says("Done.")]);
    let run = project.runtime(|builder| builder.approval_mode(ApprovalMode::ApproveAll)).run("go").await;
    let hints = run.tool_results().iter().filter(|result| result.contains("secret_files:")).count();
    assert_eq!(hints, 1, "{:?}", run.tool_results());
}

#[tokio::test]
async fn an_ordinary_file_is_read_without_a_question_in_every_mode() {
    for mode in [ApprovalMode::ApproveAll, ApprovalMode::RejectAll, ApprovalMode::Prompt] {
        let answer = folder().gate_in_mode(mode).call("read_file", json!({"path": "plain.txt"})).await;
        assert_eq!(answer.unwrap()["content"], "nothing to hide\n");
    }
}

#[tokio::test]
async fn a_person_may_allow_it_and_sees_which_file_and_why() {
    let folder = folder();
    let gate = folder.asking_gate([Answer::Once, Answer::Deny("keep out".into())]);
    let answer = gate.call("read_file", json!({"path": ".env"})).await.unwrap();
    assert!(answer["content"].as_str().unwrap().contains(VALUE));
    let failure = gate.call("read_file", json!({"path": ".env"})).await.unwrap_err();
    assert_eq!(failure.message, "denied: keep out");
    let requests = gate.requests();
    assert_eq!(requests.len(), 2, "one answer covers one call");
    assert_eq!(requests[0].reason, "`.env` is a secret file (password or key)");
    assert_eq!(requests[0].description, "read the secret file `.env`");
    assert_eq!(requests[0].preview, None);
}

#[tokio::test]
async fn a_grant_covers_this_file_with_this_content_and_nothing_else() {
    let folder = folder();
    let first = folder.asking_gate([Answer::Once]);
    first.call("read_file", json!({"path": ".env"})).await.unwrap();
    let scopes = first.requests()[0].scopes.clone();
    assert!(matches!(&scopes[..], [Scope::SecretFiles(files)] if files.len() == 1), "{scopes:?}");
    for scope in [scopes[0].clone(), Scope::Exact] {
        let gate = folder.asking_gate([Answer::Session(scope)]);
        for _ in 0..2 {
            gate.call("read_file", json!({"path": ".env"})).await.unwrap();
        }
        assert_eq!(gate.requests().len(), 1);
        assert!(gate.call("read_file", json!({"path": "sub/.env.local"})).await.is_err(), "another file");
        folder.put("root/.env", "PASSWORD=another-secret-value\n");
        assert!(gate.call("read_file", json!({"path": ".env"})).await.is_err(), "another content");
        folder.put("root/.env", format!("PORT=1\nPASSWORD={VALUE}\n"));
    }
    let gate = folder.asking_gate([Answer::Session(scopes[0].clone())]);
    gate.call("read_file", json!({"path": ".env"})).await.unwrap();
    gate.call("read_file", json!({"path": ".env", "start_line": 2, "line_count": 1})).await.unwrap();
    assert_eq!(gate.requests().len(), 1, "another part of the same file");
    let refused = folder.asking_gate([Answer::Session(Scope::Tool)]);
    assert!(refused.call("read_file", json!({"path": ".env"})).await.is_err(), "the tool is not offered");
}

#[tokio::test]
async fn a_file_that_becomes_another_after_the_question_is_not_read() {
    let folder = folder();
    let path = folder.path("root/.env");
    let gate = folder.gate_that_changes(move || std::fs::write(&path, "PASSWORD=swapped-secret\n").unwrap());
    let failure = gate.call("read_file", json!({"path": ".env"})).await.unwrap_err();
    assert!(failure.message.contains("as it is now was not approved"), "{failure}");
}

#[tokio::test]
async fn a_search_leaves_secret_files_out_and_says_how_many() {
    let folder = folder();
    let gate = folder.gate();
    let answer = gate.call("search_files", json!({"pattern": "."})).await.unwrap();
    let text = answer.to_string();
    for (path, _, part) in secrets() {
        assert!(!text.contains(&part), "{path}: {text}");
    }
    assert!(text.contains("nothing to hide"), "{text}");
    assert_eq!(answer["note"], format!("{} secret files were left out", secrets().len()));
    // Whether anything matches in them is not told either.
    let none = gate.call("search_files", json!({"pattern": "no such text"})).await.unwrap();
    assert_eq!(none["note"], answer["note"]);
}

#[tokio::test]
async fn a_link_is_judged_by_the_file_that_it_leads_to() {
    let folder = folder().link("harmless.txt", ".env").link("dir", ".ssh");
    for path in ["harmless.txt", "dir/deploy"] {
        assert!(folder.gate().call("read_file", json!({"path": path})).await.is_err(), "{path}");
    }
}

#[tokio::test]
async fn a_root_inside_a_secret_directory_does_not_make_its_files_ordinary() {
    let folder = Folder::new();
    folder.put(".ssh/id_x", "anything");
    let toolset = folder.toolset_at(".ssh", FilesystemSettings::default());
    let gate = crate::filesystem::support::gate_of(toolset, ApprovalMode::ApproveAll);
    assert!(gate.call("read_file", json!({"path": "id_x"})).await.is_err());
}

#[tokio::test]
async fn the_globs_of_a_project_are_exceptions() {
    let folder = folder().file("tests/fixtures/key.pem", private_key());
    let allowed = SecretFiles::new(folder.root(), ["tests/fixtures/**"]).unwrap();
    let toolset = folder.toolset(FilesystemSettings::default()).secret_files(allowed).unwrap();
    let gate = crate::filesystem::support::gate_of(toolset, ApprovalMode::RejectAll);
    let read = gate.call("read_file", json!({"path": "tests/fixtures/key.pem"})).await.unwrap();
    assert_eq!(read["content"], private_key(), "nothing is taken out of it");
    assert!(gate.call("read_file", json!({"path": "key.pem"})).await.is_err());
}

#[tokio::test]
async fn writing_over_a_secret_file_shows_nothing_of_it() {
    let folder = folder();
    let gate = folder.asking_gate([Answer::Once, Answer::Once]);
    let content = json!({"path": "config.json", "content": "{}\n"});
    gate.call("write_file", content).await.unwrap();
    let edit = json!({"path": ".env", "edits": [{"old": "PORT=1", "new": "PORT=2"}]});
    gate.call("edit_file", edit).await.unwrap();
    let requests = gate.requests();
    let preview = requests[0].preview.as_ref().unwrap();
    assert!(preview.contains("+{}") && !preview.contains(&token()), "{preview}");
    assert!(preview.contains("secret file (GitHub token)"), "{preview}");
    assert_eq!(requests[1].preview, None);
    assert!(folder.text(".env").starts_with("PORT=2\n"));
}
