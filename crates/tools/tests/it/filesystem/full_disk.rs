//! A disk without room: a write fails with a clear error, and what was there is still there.

use std::process::Command;

use serde_json::json;

use crate::filesystem::support::Folder;

/// Gives the test below a disk of 256 KiB, where a user may mount one.
const SMALL_DISK: &str = r#"mount -t tmpfs -o size=256k none "$TMPDIR" || exit 77; exec "$@""#;
/// Gives it files of at most some 64 KiB, as a quota does: any user may do that.
const SMALL_FILES: &str = r#"ulimit -f 64 || exit 77; trap '' XFSZ; exec "$@""#;

#[test]
fn a_write_without_room_says_so_and_leaves_the_old_content() {
    let folder = Folder::new();
    let in_small_disk =
        inside(Command::new("unshare").args(["--user", "--map-root-user", "--mount"]), &folder, SMALL_DISK);
    let in_small_files = inside(&mut Command::new("env"), &folder, SMALL_FILES);
    println!("a full disk: {in_small_disk:?}, a limit of the size of files: {in_small_files:?}");
    assert!([in_small_disk, in_small_files].contains(&Some(true)), "neither could be tried");
    assert!(![in_small_disk, in_small_files].contains(&Some(false)), "one of them failed");
}

/// Runs the test below in surroundings that a shell makes; nothing where they cannot be made.
fn inside(command: &mut Command, folder: &Folder, shell: &str) -> Option<bool> {
    let test = std::env::current_exe().unwrap();
    command.args(["sh", "-c", shell, "sh"]).arg(test);
    command.args(["--exact", "filesystem::full_disk::what_happens_without_room", "--ignored", "--nocapture"]);
    let output = command.env("TMPDIR", folder.root()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        println!("{}: {text}", output.status);
    }
    // A test that was not run did not fail either.
    text.contains("running 1 test").then_some(output.status.success())
}

#[tokio::test]
#[ignore = "run by the test above where there is no room"]
async fn what_happens_without_room() {
    let folder = Folder::new().file("a.txt", "old");
    let gate = folder.gate();
    let large = "x".repeat(1 << 20);
    let edits = json!({"path": "a.txt", "edits": [{"old": "old", "new": large}]});
    for (tool, arguments) in [
        ("write_file", json!({"path": "a.txt", "content": large})),
        ("write_file", json!({"path": "new.txt", "content": large})),
        ("edit_file", edits),
    ] {
        let failure = gate.call(tool, arguments).await.unwrap_err();
        assert!(failure.hint.as_deref().is_some_and(|hint| hint.contains("the disk is full")), "{failure}");
        assert_eq!((folder.text("a.txt").as_str(), folder.names(".")), ("old", vec!["a.txt".to_owned()]));
    }
    gate.call("write_file", json!({"path": "a.txt", "content": "new"})).await.unwrap();
    assert_eq!(folder.text("a.txt"), "new");
}
