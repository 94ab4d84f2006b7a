//! What `write_file` and `edit_file` show, check and do.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;

use llm_do_core::{Answer, ApprovalMode, ApprovalRequest, EventBody, FailureKind, Scope};
use llm_do_models::{Script, asks, asks_all, says};
use llm_do_runtime::{MemoryStore, Store};
use llm_do_testing::{deny, for_session, once};
use llm_do_tools::FilesystemSettings;
use serde_json::{Value, json};

use crate::filesystem::support::Folder;

fn write(path: &str, content: &str) -> Value {
    json!({"path": path, "content": content})
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "edits": [{"old": old, "new": new}]})
}

#[tokio::test]
async fn a_person_sees_the_diff_before_a_file_is_replaced() {
    let folder = Folder::new().file("sub/a.txt", "one\ntwo\n");
    let gate = folder.asking_gate([once()]);
    let answer = gate.call("write_file", write("sub/a.txt", "one\n2\n")).await.unwrap();
    assert_eq!(answer, json!({"path": "sub/a.txt", "bytes": 6, "changed": true}));
    let request = &gate.requests()[0];
    assert_eq!(request.description, "replace `sub/a.txt` (8 bytes, then 6)");
    let diff = "--- a/sub/a.txt\n+++ b/sub/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";
    assert_eq!(request.preview.as_deref(), Some(diff));
    assert_eq!(request.scopes, [Scope::Directory("sub".into()), Scope::Tool]);
    assert_eq!(folder.text("sub/a.txt"), "one\n2\n");
}

#[tokio::test]
async fn a_denied_write_leaves_the_file_as_it_was() {
    let folder = Folder::new().file("a.txt", "old");
    let failure =
        folder.asking_gate([deny("no")]).call("write_file", write("a.txt", "new")).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Denied);
    assert_eq!(folder.text("a.txt"), "old");
}

#[tokio::test]
async fn a_grant_for_a_directory_covers_what_really_lies_in_it() {
    let folder = Folder::new().file("notes/x.txt", "").file("other/x.txt", "").link("notes/out", "../other");
    let gate = folder.asking_gate([for_session(Scope::Directory("notes".into())), deny("no")]);
    gate.call("write_file", write("notes/a.txt", "a")).await.unwrap();
    gate.call("write_file", write("notes/deep/b.txt", "b")).await.unwrap();
    let failure = gate.call("write_file", write("notes/out/c.txt", "c")).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Denied);
    assert_eq!(gate.requests().len(), 2);
    assert_eq!(gate.requests()[1].description, "create `other/c.txt` (1 byte)");
}

/// An approver that changes the world before it allows the call.
fn meanwhile(
    change: impl Fn() + Send + Sync + 'static,
) -> impl Fn(ApprovalRequest) -> std::future::Ready<Answer> {
    move |_| {
        change();
        std::future::ready(Answer::Once)
    }
}

async fn call_meanwhile(
    folder: &Folder,
    tool: &str,
    arguments: Value,
    change: impl Fn() + Send + Sync + 'static,
) -> Result<Value, String> {
    let project = llm_do_testing::TestProject::new()
        .agent(llm_do_core::AgentSpec::new("main", "").toolset("files"))
        .toolset(folder.toolset(FilesystemSettings::default()))
        .model_replies([says("done")])
        .runtime(|builder| builder.approver(meanwhile(change)));
    let runtime = project.build();
    match runtime.run(tool, arguments).await {
        Ok(report) => Ok(report.output.unwrap().to_value()),
        Err(error) => Err(error.report.failure.as_ref().unwrap().message.clone()),
    }
}

#[tokio::test]
async fn a_file_that_changes_while_the_person_decides_is_not_written() {
    for (tool, arguments) in
        [("write_file", write("a.txt", "new")), ("edit_file", edit("a.txt", "old", "new"))]
    {
        let folder = Folder::new().file("a.txt", "old text");
        let path = folder.root().join("a.txt");
        let change = move || fs::write(&path, "old text and more").unwrap();
        let error = call_meanwhile(&folder, tool, arguments, change).await.unwrap_err();
        assert_eq!(error, "`a.txt` has changed since this call was judged; nothing was written");
        assert_eq!(folder.text("a.txt"), "old text and more");
    }
}

#[tokio::test]
async fn a_file_that_appears_or_vanishes_while_the_person_decides_is_not_written() {
    let folder = Folder::new();
    let path = folder.root().join("a.txt");
    let error =
        call_meanwhile(&folder, "write_file", write("a.txt", "new"), move || fs::write(&path, "x").unwrap());
    assert!(error.await.unwrap_err().contains("has changed"));
    assert_eq!(folder.text("a.txt"), "x");
    let path = folder.root().join("a.txt");
    let vanish = move || fs::remove_file(&path).unwrap();
    let error = call_meanwhile(&folder, "write_file", write("a.txt", "new"), vanish).await.unwrap_err();
    assert!(error.contains("has changed"), "{error}");
    assert!(folder.names(".").is_empty());
}

#[tokio::test]
async fn a_directory_that_becomes_a_link_while_the_person_decides_leads_nowhere_else() {
    let folder = Folder::new().file("notes/x.txt", "").file("other/x.txt", "");
    let root = folder.root();
    let swap = move || {
        fs::rename(root.join("notes"), root.join("moved")).unwrap();
        std::os::unix::fs::symlink("other", root.join("notes")).unwrap();
    };
    let error = call_meanwhile(&folder, "write_file", write("notes/a.txt", "new"), swap).await.unwrap_err();
    assert!(error.contains("`other/a.txt` has changed"), "{error}");
    assert_eq!(folder.names("other"), ["x.txt"]);
}

#[tokio::test]
async fn an_equal_write_of_somebody_else_is_as_good_but_an_equal_edit_is_not() {
    let folder = Folder::new().file("a.txt", "old");
    let path = folder.root().join("a.txt");
    let change = move || fs::write(&path, "new").unwrap();
    let answer = call_meanwhile(&folder, "write_file", write("a.txt", "new"), change).await.unwrap();
    assert_eq!(answer, json!({"path": "a.txt", "bytes": 3, "changed": true}));
    // Two agents that both count from 1 to 2 have counted to 2, not to 3.
    let folder = Folder::new().file("a.txt", "1");
    let path = folder.root().join("a.txt");
    let change = move || fs::write(&path, "2").unwrap();
    let error = call_meanwhile(&folder, "edit_file", edit("a.txt", "1", "2"), change).await.unwrap_err();
    assert!(error.contains("has changed"), "{error}");
    assert_eq!(folder.text("a.txt"), "2");
}

#[tokio::test]
async fn an_edit_whose_result_was_lost_in_a_crash_is_not_made_twice() {
    let folder = Folder::new().file("a.txt", "1");
    let make = |store: Arc<dyn Store>| {
        llm_do_testing::TestProject::new()
            .agent(llm_do_core::AgentSpec::new("main", "").toolset("files"))
            .toolset(folder.toolset(FilesystemSettings::default()))
            .model(Script::by_turn([asks("edit_file", edit("a.txt", "1", "2")), says("done")]))
            .runtime(|builder| builder.store(store).approval_mode(ApprovalMode::ApproveAll))
            .build()
    };
    let kept = Arc::new(MemoryStore::default());
    let report = make(kept.clone()).run("main", "go").await.unwrap();
    assert_eq!(folder.text("a.txt"), "2");
    let record = kept.read(report.id, None).await.unwrap().into_iter();
    let cut = MemoryStore::from_events(
        record.take_while(|event| !matches!(&event.body, EventBody::CallFinished { .. })),
    );
    let again = llm_do_testing::TestRun::of(make(Arc::new(cut)).resume(report.id).await.unwrap().await);
    assert_eq!(again.tool_results(), [r#"{"path":"a.txt","bytes":1,"changed":true}"#]);
    assert_eq!(folder.text("a.txt"), "2");
}

#[tokio::test]
async fn a_file_keeps_its_mode() {
    let folder = Folder::new().file("tool.sh", "old").file("private", "old");
    let mode = |path: &str| fs::metadata(folder.root().join(path)).unwrap().permissions().mode() & 0o7777;
    let set =
        |path: &str, mode| fs::set_permissions(folder.root().join(path), fs::Permissions::from_mode(mode));
    set("tool.sh", 0o4755).unwrap();
    set("private", 0o600).unwrap();
    let gate = folder.gate();
    for path in ["tool.sh", "private"] {
        gate.call("write_file", write(path, "new")).await.unwrap();
    }
    assert_eq!((mode("tool.sh"), mode("private")), (0o755, 0o600));
    assert_eq!(folder.names("."), ["private", "tool.sh"]);
}

/// The mask belongs to a whole process, so each one is tried in a process of its own.
#[tokio::test]
async fn a_new_file_gets_the_mode_that_the_umask_leaves() {
    const TEST: &str = "filesystem::changing::a_new_file_gets_the_mode_that_the_umask_leaves";
    const EXPECTED_MODE: &str = "LLM_DO_TEST_EXPECTED_MODE";
    if let Ok(expected) = std::env::var(EXPECTED_MODE) {
        let folder = Folder::new();
        folder.gate().call("write_file", write("new/a.txt", "new")).await.unwrap();
        let mode = fs::metadata(folder.root().join("new/a.txt")).unwrap().permissions().mode() & 0o7777;
        assert_eq!(format!("{mode:o}"), expected);
        return;
    }
    for (umask, expected) in [("0000", "666"), ("0002", "664"), ("0022", "644"), ("0077", "600")] {
        let script = format!("umask {umask} && exec \"$0\" --exact {TEST}");
        let output = std::process::Command::new("/bin/sh")
            .args(["-c", &script])
            .arg(std::env::current_exe().unwrap())
            .env(EXPECTED_MODE, expected)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "umask {umask}: {text}");
    }
}

#[tokio::test]
async fn another_name_of_a_file_keeps_the_old_content() {
    let folder = Folder::new().file("a.txt", "old");
    fs::hard_link(folder.root().join("a.txt"), folder.path("outside/a.txt")).unwrap();
    folder.gate().call("edit_file", edit("a.txt", "old", "new")).await.unwrap();
    assert_eq!(folder.text("a.txt"), "new");
    assert_eq!(fs::read_to_string(folder.path("outside/a.txt")).unwrap(), "old");
}

#[tokio::test]
async fn a_reader_sees_the_old_file_or_the_new_one_and_never_a_mixture() {
    let (a, b) = ("a".repeat(1 << 20), "b".repeat(1 << 20));
    let folder = Arc::new(Folder::new().file("x.txt", &a));
    let path = folder.root().join("x.txt");
    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stop = done.clone();
    let (old, new) = (a.clone(), b.clone());
    let reader = std::thread::spawn(move || {
        let mut mixtures = 0;
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            let text = fs::read_to_string(&path).unwrap();
            mixtures += u32::from(text != old && text != new);
        }
        mixtures
    });
    let gate = folder.gate();
    for round in 0..20 {
        let content = if round % 2 == 0 { &b } else { &a };
        gate.call("write_file", write("x.txt", content)).await.unwrap();
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(reader.join().unwrap(), 0);
}

#[tokio::test]
async fn a_write_that_fails_leaves_nothing_behind() {
    let folder = Folder::new();
    let inode = fs::metadata(folder.root()).unwrap().ino();
    let failure = folder.gate().call("write_file", write(&"n".repeat(300), "x")).await.unwrap_err();
    assert!(failure.message.contains("too long"), "{failure}");
    let gate = folder.gate_with(FilesystemSettings { max_write_bytes: 3, ..Default::default() });
    let failure = gate.call("write_file", write("a.txt", "four")).await.unwrap_err();
    assert_eq!(failure.message, "the file would have 4 bytes, more than the 3 that may be written");
    assert!(folder.names(".").is_empty());
    assert_eq!(fs::metadata(folder.root()).unwrap().ino(), inode);
}

#[tokio::test]
async fn several_edits_are_made_together_or_not_at_all() {
    let folder = Folder::new().file("a.txt", "one two three\n");
    let gate = folder.asking_gate([once()]);
    let edits = |last: &str| json!({"path": "a.txt", "edits": [{"old": "one", "new": "1"}, {"old": last, "new": "3"}]});
    let failure = gate.call("edit_file", edits("four")).await.unwrap_err();
    assert_eq!(failure.message, "edit 2: the text `old` does not occur in `a.txt`");
    assert_eq!(folder.text("a.txt"), "one two three\n");
    assert!(gate.requests().is_empty(), "nobody is asked about what cannot be done");
    gate.call("edit_file", edits("three")).await.unwrap();
    assert_eq!(folder.text("a.txt"), "1 two 3\n");
    let diff = gate.requests()[0].preview.clone().unwrap();
    assert!(diff.ends_with("@@ -1 +1 @@\n-one two three\n+1 two 3\n"), "{diff}");
}

#[tokio::test]
async fn two_edits_of_one_file_in_one_turn_are_both_made() {
    let folder = Folder::new().file("a.txt", "one two\n");
    let both = [("edit_file", edit("a.txt", "one", "1")), ("edit_file", edit("a.txt", "two", "2"))];
    let (run, requests) = folder.converse([asks_all(both), says("Edited.")], [once(), once()]).await;
    assert_eq!(run.answer(), "Edited.".into());
    assert_eq!(folder.text("a.txt"), "1 2\n");
    assert_eq!(requests.len(), 2);
}

#[tokio::test]
async fn a_missing_file_is_not_edited_and_the_nearest_is_named() {
    let folder = Folder::new().file("notes.txt", "");
    let failure = folder.gate().call("edit_file", edit("note.txt", "a", "b")).await.unwrap_err();
    assert_eq!(failure.to_string(), "`note.txt` does not exist\nhint: did you mean `notes.txt`?");
    assert_eq!(failure.kind, FailureKind::Tool);
}

#[tokio::test]
async fn missing_directories_are_made_only_where_that_is_wanted() {
    let folder = Folder::new();
    let gate = folder.gate();
    let arguments = json!({"path": "a/b/c.txt", "content": "x", "create_directories": false});
    assert!(gate.call("write_file", arguments).await.is_err());
    assert!(folder.names(".").is_empty());
    gate.call("write_file", write("a/b/c.txt", "x")).await.unwrap();
    assert_eq!(folder.text("a/b/c.txt"), "x");
}

#[tokio::test]
async fn a_write_out_of_the_root_or_through_a_link_is_blocked_and_nobody_is_asked() {
    let folder = Folder::new().link("link.txt", "../outside/x.txt").file("a.txt", "a").link("inner", "a.txt");
    let gate = folder.asking_gate([once(), once(), once(), once()]);
    for path in ["../outside/x.txt", "/etc/llm-do-test", "link.txt", "inner"] {
        let failure = gate.call("write_file", write(path, "x")).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Blocked, "{failure}");
    }
    assert!(gate.requests().is_empty());
    assert!(fs::read_dir(folder.path("outside")).unwrap().next().is_none());
    assert_eq!(folder.text("a.txt"), "a");
}

#[tokio::test]
async fn only_permitted_endings_are_written() {
    let folder = Folder::new().file("old.sh", "old");
    let gate = folder.gate_with(FilesystemSettings { suffixes: vec![".md".into()], ..Default::default() });
    gate.call("write_file", write("a.md", "a")).await.unwrap();
    for (tool, arguments) in [("write_file", write("new.sh", "x")), ("edit_file", edit("old.sh", "old", "x"))]
    {
        let failure = gate.call(tool, arguments).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Blocked, "{failure}");
    }
    assert_eq!(folder.names("."), ["a.md", "old.sh"]);
    assert_eq!(folder.text("old.sh"), "old");
}

#[tokio::test]
async fn a_protected_file_asks_each_time_and_cannot_be_granted() {
    let folder = Folder::new().file(".git/config", "[core]\n").file("a.txt", "").link("git", ".git");
    let folder = folder.link("far", "git");
    let tool = || for_session(Scope::Tool);
    let paths =
        [".git/config", "git/config", "far/config", ".GIT/hooks", "main.agent", "tools.py", "json.py"];
    let gate = folder.asking_gate([tool()].into_iter().chain(paths.map(|_| once())));
    gate.call("write_file", write("a.txt", "granted for the session")).await.unwrap();
    gate.call("write_file", write("b.txt", "covered")).await.unwrap();
    for path in paths {
        gate.call("write_file", write(path, path)).await.unwrap();
    }
    let requests = gate.requests();
    assert_eq!(requests.len(), 1 + paths.len(), "every protected write asks");
    for request in &requests[1..] {
        assert!(request.scopes.is_empty());
        assert!(request.reason.contains("is protected"), "{}", request.reason);
    }
}

#[tokio::test]
async fn a_rule_that_approves_writes_does_not_reach_protected_files() {
    let folder = Folder::new();
    let agent = llm_do_core::AgentSpec::new("main", "")
        .toolset("files")
        .rule("write_file", llm_do_core::Approval::PreApproved);
    let run = llm_do_testing::TestProject::new()
        .agent(agent)
        .toolset(folder.toolset(FilesystemSettings::default()))
        .model_replies([
            asks("write_file", write("a.txt", "a")),
            asks("write_file", write(".env", "KEY=x")),
            says("done"),
        ])
        .run("go")
        .await;
    assert_eq!(run.failure_of("write_file").kind, FailureKind::Unasked);
    assert_eq!(folder.names("."), ["a.txt"]);
}
