//! The record file itself: damaged, too large, on a file system that cannot hold it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::Sandbox;

const GARBAGE: &str = "something else, and long enough to be read as one\n";

fn record(sandbox: &Sandbox) -> PathBuf {
    sandbox.state().join("llm-do/record.db")
}

fn titles(sandbox: &Sandbox) -> Vec<String> {
    let runs = sandbox.run(&["runs", "--output", "json"]).ended(0).json();
    runs.as_array().unwrap().iter().map(|run| run["title"].as_str().unwrap().to_owned()).collect()
}

/// Overwrites a part of a file.
fn damage(path: &Path, from: usize, length: usize) {
    // So that what is damaged is not in the log as well.
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let mut bytes = std::fs::read(path).unwrap();
    bytes[from..from + length].fill(0xa5);
    std::fs::write(path, bytes).unwrap();
}

fn damaged(sandbox: &Sandbox) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(sandbox.state().join("llm-do")).unwrap();
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().contains("record.db.damaged-"))
        .collect()
}

#[test]
fn a_damaged_record_is_set_aside_and_runs_are_recorded_in_a_new_one() {
    let sandbox = Sandbox::echo();
    std::fs::write(record(&sandbox), GARBAGE.repeat(9)).unwrap();
    let unread = sandbox.run(&["runs"]).ended(1);
    assert!(unread.stderr.contains("hint: `llm-do runs repair` sets it aside"), "{unread:?}");
    assert!(damaged(&sandbox).is_empty());
    let ran = sandbox.run(&["run", ".", "hello"]).ended(0);
    assert_eq!(ran.stdout.trim(), "hello");
    assert!(
        ran.stderr
            .contains("notice: the record was damaged, so a new one begins; the damaged one is ~/state"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("`llm-do runs repair`"), "{ran:?}");
    assert_eq!(titles(&sandbox), ["hello"]);
    let set_aside = damaged(&sandbox);
    assert_eq!(std::fs::read_to_string(&set_aside[0]).unwrap(), GARBAGE.repeat(9));

    let next = sandbox.run(&["run", ".", "again"]).ended(0);
    assert!(!next.stderr.contains("damaged"), "{next:?}");
    let repaired = sandbox.run(&["runs", "repair"]).ended(1);
    assert!(
        repaired.stderr.contains("nothing can be read of ~/state/llm-do/record.db.damaged-"),
        "{repaired:?}"
    );
    assert_eq!((titles(&sandbox).len(), damaged(&sandbox)), (2, set_aside));
}

#[test]
fn what_can_be_read_of_a_damaged_record_is_copied_into_the_new_one() {
    let sandbox = Sandbox::echo();
    for number in 0..12 {
        let text = format!("text {number} ").repeat(2_000);
        sandbox.run(&["run", ".", &text]).ended(0);
    }
    assert!(sandbox.run(&["runs", "repair"]).ended(0).stderr.contains("nothing to repair"));
    // Not where opening looks.
    let size = usize::try_from(std::fs::metadata(record(&sandbox)).unwrap().len()).unwrap();
    damage(&record(&sandbox), size - 3 * 8_192, 2 * 8_192);
    let doctor = sandbox.run(&["doctor", "--output", "json"]);
    let report = doctor.json();
    let fact = report["facts"].as_array().unwrap().iter().find(|fact| fact["kind"] == "record").unwrap();
    assert_eq!(fact["state"], "fail", "{fact}");
    assert!(fact["result"].as_str().unwrap().contains("sets it aside and begins a new one"), "{fact}");

    let ran = sandbox.run(&["run", ".", "after"]).ended(0);
    assert!(ran.stderr.contains("the record was damaged"), "{ran:?}");
    assert_eq!(titles(&sandbox), ["after"]);
    let repaired = sandbox.run(&["runs", "repair"]).ended(0);
    assert!(repaired.stderr.contains(" copied, "), "{repaired:?}");
    // Nothing is left of a run whose first event is lost.
    let lost = repaired.stdout.lines().filter(|line| line.contains("  0 of ")).count();
    assert_eq!(titles(&sandbox).len(), 13 - lost, "{repaired:?}");
    for line in repaired.stdout.lines() {
        assert!(line.contains(" of 7 events copied  "), "{line}");
        let refused = sandbox.run(&["resume", &line[..8]]);
        assert!(
            refused.stderr.contains("cannot be resumed") || refused.stderr.contains("no recorded run"),
            "{refused:?}"
        );
    }
    let again = sandbox.run(&["runs", "repair"]).ended(0);
    assert!(again.stderr.contains("0 whole runs copied"), "{again:?}");
}

#[test]
fn the_doctor_reads_the_record() {
    let sandbox = Sandbox::echo();
    let fact = || {
        let report: Value = sandbox.run(&["doctor", "--output", "json"]).json();
        let facts = report["facts"].as_array().unwrap().clone();
        facts.into_iter().find(|fact| fact["kind"] == "record").unwrap()
    };
    assert_eq!(
        (&fact()["state"], &fact()["result"]),
        (&"none".into(), &"~/state/llm-do/record.db; made with the first run".into())
    );
    sandbox.run(&["run", ".", "hello"]).ended(0);
    assert_eq!(
        (&fact()["state"], &fact()["result"]),
        (&"ok".into(), &"~/state/llm-do/record.db (1 run)".into())
    );
}

#[test]
fn a_run_goes_on_without_a_record_that_cannot_be_written_unless_it_is_required() {
    let sandbox = Sandbox::echo();
    // The state directory is a file, so nothing can be made in it, whoever runs this.
    let state = sandbox.path("state");
    std::fs::write(&state, "").unwrap();
    let run = |arguments: &[&str]| -> crate::support::Ran {
        sandbox.command(arguments).env("XDG_STATE_HOME", &state).output().unwrap().into()
    };
    let ran = run(&["run", ".", "hello"]).ended(0);
    assert_eq!(ran.stdout.trim(), "hello");
    let told: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("not recorded")).collect();
    assert_eq!(told.len(), 1, "{ran:?}");
    assert!(told[0].starts_with("notice: this run is not recorded: the directory "), "{ran:?}");

    let refused = run(&["run", ".", "hello", "--record", "require"]).ended(1);
    assert!(refused.stderr.contains("this run cannot be recorded: the directory "), "{refused:?}");
    assert!(refused.stdout.is_empty(), "{refused:?}");
    let refused: crate::support::Ran = sandbox
        .command(&["run", ".", "hello"])
        .env("XDG_STATE_HOME", &state)
        .env("LLM_DO_RECORD", "require")
        .output()
        .unwrap()
        .into();
    refused.ended(1);
    // A home that does not exist and cannot be made.
    let homeless: crate::support::Ran = sandbox
        .command(&["run", ".", "hello"])
        .env_remove("XDG_STATE_HOME")
        .env("HOME", "/proc/none")
        .output()
        .unwrap()
        .into();
    let told = homeless.ended(0).stderr;
    assert_eq!(told.matches("this run is not recorded: ").count(), 1, "{told}");
    let required = sandbox.run(&["run", ".", "required", "--record", "require"]).ended(0);
    assert!(required.stderr.is_empty(), "{required:?}");
    assert_eq!(titles(&sandbox), ["required"]);
}

#[test]
fn a_record_that_only_may_be_read_is_named_and_the_run_goes_on() {
    let sandbox = Sandbox::echo();
    sandbox.run(&["run", ".", "first"]).ended(0);
    let file = record(&sandbox);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o400)).unwrap();
    // Nobody forbids root anything.
    let is_root = std::fs::File::options().write(true).open(&file).is_ok();
    let ran = sandbox.run(&["run", ".", "second"]).ended(0);
    assert_eq!(ran.stdout.trim(), "second");
    assert_eq!(ran.stderr.contains("this run is not recorded"), !is_root, "{ran:?}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(titles(&sandbox).len(), 1 + usize::from(is_root));
}

#[test]
fn a_file_that_the_user_named_by_mistake_stays_as_it_is() {
    let sandbox = Sandbox::echo();
    let refused = sandbox.run(&["run", ".", "hello", "--record", "main.agent"]).ended(2);
    assert!(refused.stderr.contains("main.agent cannot be used as a record"), "{refused:?}");
    let names = std::fs::read_dir(sandbox.root()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["main.agent"]);

    // A record that was one, and is damaged, is the user's own.
    sandbox.run(&["run", ".", "hello", "--record", "own.db"]).ended(0);
    damage(&sandbox.path("own.db"), 16, 80);
    let ran = sandbox.run(&["run", ".", "hello", "--record", "own.db"]).ended(0);
    assert!(ran.stderr.contains("the record was damaged"), "{ran:?}");
}

/// Lets all runs of the record have happened so many days earlier.
fn age(sandbox: &Sandbox, days: i64) {
    let nanoseconds = days * 24 * 60 * 60 * 1_000_000_000;
    let connection = rusqlite::Connection::open(record(sandbox)).unwrap();
    connection
        .execute_batch(&format!(
            "UPDATE streams SET began = began - {nanoseconds}, ended = ended - {nanoseconds}; DELETE FROM meta;"
        ))
        .unwrap();
}

#[test]
fn old_runs_are_removed_after_a_run_and_those_that_can_be_resumed_are_named() {
    let sandbox = Sandbox::scripted("mode: by_turn\nreplies:\n  - {delay: 5s, say: late}\n");
    sandbox.run(&["run", ".", "old", "--model", "test:echo"]).ended(0);
    sandbox.run(&["run", ".", "stopped", "--timeout", "300ms"]).ended(124);
    age(&sandbox, 91);
    let ran = sandbox.run(&["run", ".", "new", "--model", "test:echo"]).ended(0);
    assert_eq!(titles(&sandbox), ["new", "stopped"]);
    let kept = "1 run older than 90 days, or beyond the size of the record, is kept because";
    assert!(ran.stderr.contains(kept), "{ran:?}");
    assert!(ran.stderr.contains("`llm-do runs prune --status timed_out`"), "{ran:?}");
    // Once a day.
    let next = sandbox.run(&["run", ".", "newer", "--model", "test:echo"]).ended(0);
    assert!(next.stderr.is_empty(), "{next:?}");
}

#[test]
fn the_configuration_says_how_much_is_kept() {
    let sandbox = Sandbox::echo().config("[record]\nkeep_days = 200\n");
    sandbox.run(&["run", ".", "old"]).ended(0);
    age(&sandbox, 100);
    sandbox.run(&["run", ".", "new"]).ended(0);
    assert_eq!(titles(&sandbox), ["new", "old"]);
    age(&sandbox, 101);
    sandbox.run(&["run", ".", "newer"]).ended(0);
    assert_eq!(titles(&sandbox), ["newer", "new"]);

    let sandbox = sandbox.config("[record]\nkeep_bytes = 1\n");
    age(&sandbox, 0);
    sandbox.run(&["run", ".", "newest"]).ended(0);
    assert!(titles(&sandbox).is_empty());
    // A record that the user named keeps what it has.
    sandbox.run(&["run", ".", "named", "--record", "own.db"]).ended(0);
    let own = sandbox.run(&["runs", "--record", "own.db", "--output", "json"]).json();
    assert_eq!(own.as_array().unwrap().len(), 1);
    let wrong = sandbox.config("[record]\nkeep_days = -1\n").run(&["run", ".", "x"]).ended(2);
    assert!(wrong.stderr.contains("config.toml:2:"), "{wrong:?}");
}

#[test]
fn what_a_newer_version_wrote_is_shown_and_not_continued() {
    let sandbox = Sandbox::scripted("mode: by_turn\nreplies:\n  - {delay: 5s, say: late}\n");
    sandbox.run(&["run", ".", "go", "--timeout", "300ms"]).ended(124);
    let connection = rusqlite::Connection::open(record(&sandbox)).unwrap();
    let body = r#"{"type": "budget_extended", "by": "somebody", "cost": 2.5}"#;
    connection.execute("UPDATE events SET body = ? WHERE seq = 1", [body]).unwrap();
    let shown = sandbox.run(&["show", "last"]).ended(0);
    assert!(shown.stdout.contains(r#"event 1, `budget_extended`, of a newer version: {"type":"budget_extended","by":"somebody","cost":2.5}"#), "{shown:?}");
    let json = sandbox.run(&["show", "last", "--output", "json"]).ended(0).json();
    assert_eq!(json["unknown_events"][0]["by"], "somebody");
    let lines = sandbox.run(&["show", "last", "--output", "jsonl"]).ended(0).lines();
    assert_eq!((&lines[1]["type"], &lines[1]["seq"]), (&"budget_extended".into(), &1.into()));
    let refused = sandbox.run(&["resume", "last"]).ended(1);
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!("does not know, `budget_extended`, written by version {version}");
    assert!(refused.stderr.contains(&expected), "{refused:?}");

    connection.pragma_update(None, "user_version", 99).unwrap();
    let shown = sandbox.run(&["show", "last"]).ended(0);
    assert!(
        shown.stderr.contains("a newer version of llm-do writes this record (its format is 99)"),
        "{shown:?}"
    );
    let ran = sandbox.run(&["run", ".", "go", "--model", "test:echo"]).ended(0);
    assert!(ran.stderr.contains("this run is not recorded: the record has format 99"), "{ran:?}");
}
