//! Records that earlier versions wrote are listed, shown and continued by this one.
//!
//! `cargo test -p llm-do-cli --test it upgrades::the_record_of_this_version -- --ignored` writes the file of this version anew.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use serde_json::Value;

use crate::records::{background, wait_for};
use crate::support::Sandbox;

/// What the files have in the place of the directory of the projects.
const ROOT: &str = "/the-directory-of-the-projects";

/// How each run ended, by what it was given.
const RUNS: [(&str, &str); 10] = [
    ("nested, all approved", "done"),
    ("nested, all denied", "done"),
    ("out of turns", "limit"),
    ("killed while the model thought", "cut_off"),
    ("out of time", "timed_out"),
    ("parked, not answered", "parked"),
    ("parked, and answered", "parked"),
    ("parked, answered and continued", "done"),
    ("the first turn of a chat", "done"),
    ("the second turn of a chat", "done"),
];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/upgrades")
}

/// Three projects, whose texts differ from one version to the next.
fn projects(wording: &str, last_words: &str) -> Sandbox {
    let manifest =
        |more: &str| format!("version: 1\nentry: {{agent: main}}\nagent_files: ['*.agent']\n{more}");
    let agent = |toolset: &str| {
        format!("---\nname: main\nmodel: script:script.yaml\ntoolsets: [{toolset}]\n---\n{wording}\n")
    };
    Sandbox::new()
        .file("nested/project.yaml", &manifest("runtime: {agent_calls_require_approval: true}\n"))
        .file("nested/main.agent", &agent("helper"))
        .file("nested/helper.agent", &format!("---\nname: helper\nmodel: test:echo\n---\nHelp. {wording}\n"))
        .file(
            "nested/script.yaml",
            &format!(
                "mode: by_turn\nreplies:\n  - ask: {{helper: {{input: may I}}}}\n  - say: {last_words}\n"
            ),
        )
        .file("talk/project.yaml", &manifest(""))
        .file("talk/main.agent", &format!("---\nname: main\nmodel: test:echo\n---\n{wording}\n"))
        .file("slow/project.yaml", &manifest(""))
        .file("slow/main.agent", &agent("filesystem_project"))
        .file(
            "slow/script.yaml",
            &format!(
                "mode: by_turn\nreplies:\n  - ask: {{write_file: {{path: a.txt, content: {}}}}}\n  \
                 - {{delay: 2s, say: {last_words}}}\n",
                "hello ".repeat(200)
            ),
        )
}

fn record(sandbox: &Sandbox) -> PathBuf {
    sandbox.state().join("llm-do/record.db")
}

/// Puts other directories into a record.
fn move_projects(record: &Path, from: &str, to: &str) {
    let connection = Connection::open(record).unwrap();
    connection.execute("UPDATE events SET body = replace(body, ?, ?)", [from, to]).unwrap();
    connection.execute("UPDATE projects SET root = replace(root, ?, ?)", [from, to]).unwrap();
}

/// Answers the question of a run.
fn approve(sandbox: &Sandbox, title: &str) {
    let runs = sandbox.run(&["runs", "--output", "json"]).ended(0).json();
    let run = runs.as_array().unwrap().iter().find(|run| run["title"] == title).unwrap();
    let open = sandbox.run(&["approvals", "--output", "json"]).ended(0).json();
    let question =
        open.as_array().unwrap().iter().find(|question| question["run_id"] == run["run_id"]).unwrap();
    sandbox.run(&["approve", question["id"].as_str().unwrap()]).ended(0);
}

#[test]
#[ignore = "writes a file of the repository"]
fn the_record_of_this_version() {
    let sandbox = projects("Do it.", "done as it was");
    let (approved, denied) = (RUNS[0].0, RUNS[1].0);
    sandbox.run(&["run", "nested", approved, "-a", "all"]).ended(0);
    sandbox.run(&["run", "nested", denied, "-a", "none"]).ended(0);
    sandbox.run(&["run", "nested", RUNS[2].0, "-a", "all", "--max-turns", "1"]).ended(4);
    let mut killed = background(&sandbox, &["run", "slow", RUNS[3].0, "-a", "all"]);
    wait_for(|| sandbox.path("slow/a.txt").exists());
    // The result of the call is recorded within moments; the model still thinks.
    std::thread::sleep(Duration::from_millis(500));
    killed.kill().unwrap();
    killed.wait().unwrap();
    sandbox.run(&["run", "slow", RUNS[4].0, "-a", "all", "--timeout", "1s"]).ended(124);
    for (title, _) in &RUNS[5..8] {
        sandbox.run(&["run", "nested", title, "-a", "park"]).ended(75);
    }
    approve(&sandbox, RUNS[6].0);
    approve(&sandbox, RUNS[7].0);
    sandbox.run(&["resume", "last"]).ended(0);
    sandbox.run(&["chat", "talk", RUNS[8].0]).ended(0);
    sandbox.run(&["chat", "talk", "-c", "-p", RUNS[9].0]).ended(0);

    let file = directory().join(concat!(env!("CARGO_PKG_VERSION"), ".db"));
    std::fs::create_dir_all(directory()).unwrap();
    drop(std::fs::remove_file(&file));
    Connection::open(record(&sandbox)).unwrap().execute("VACUUM INTO ?", [file.to_str().unwrap()]).unwrap();
    let root = sandbox.root().canonicalize().unwrap();
    move_projects(&file, root.to_str().unwrap(), ROOT);
    let connection = Connection::open(&file).unwrap();
    connection
        .execute_batch("UPDATE streams SET holder = 'machine:1:0'; VACUUM; PRAGMA journal_mode = DELETE")
        .unwrap();
}

#[test]
fn records_of_earlier_versions_are_listed_shown_and_continued() {
    let files: Vec<PathBuf> =
        std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.iter().any(|file| file.ends_with(concat!(env!("CARGO_PKG_VERSION"), ".db"))), "{files:?}");
    for file in files {
        let sandbox = projects("Do it, in other words.", "done later");
        std::fs::create_dir_all(record(&sandbox).parent().unwrap()).unwrap();
        std::fs::copy(&file, record(&sandbox)).unwrap();
        let root = sandbox.root().canonicalize().unwrap();
        move_projects(&record(&sandbox), ROOT, root.to_str().unwrap());
        let id = listed(&sandbox, &file);
        shown(&sandbox, &id);
        continued(&sandbox, &id);
    }
}

/// Lists the runs, and returns the id of each by what it was given.
fn listed(sandbox: &Sandbox, file: &Path) -> impl Fn(&str) -> String {
    let runs: Vec<Value> =
        sandbox.run(&["runs", "--output", "json"]).ended(0).json().as_array().unwrap().clone();
    let text = |run: &Value, field: &str| run[field].as_str().unwrap().to_owned();
    let mut found: Vec<(String, String)> =
        runs.iter().map(|run| (text(run, "title"), text(run, "status"))).collect();
    found.reverse();
    let expected = RUNS.map(|(title, status)| (title.to_owned(), status.to_owned()));
    assert_eq!(found, expected, "{}", file.display());
    move |title| text(runs.iter().find(|run| run["title"] == title).unwrap(), "run_id")
}

fn shown(sandbox: &Sandbox, id: &impl Fn(&str) -> String) {
    for (title, _) in RUNS {
        let run = sandbox.run(&["show", &id(title), "--output", "json"]).ended(0).json();
        assert_eq!(run["calls"][0]["name"], "main", "{title}: {run}");
        assert!(run["unknown_events"].is_null(), "{title}: {run}");
        let tree = sandbox.run(&["show", &id(title)]).ended(0).stdout;
        assert_eq!(tree.contains("waits for an answer"), RUNS[5..7].contains(&(title, "parked")), "{tree}");
    }
    let denied = sandbox.run(&["show", &id(RUNS[1].0)]).stdout;
    assert!(denied.contains("agent helper") && denied.contains("!! "), "{denied}");
}

fn continued(sandbox: &Sandbox, id: &impl Fn(&str) -> String) {
    for (title, _) in &RUNS[..2] {
        let refused = sandbox.run(&["resume", &id(title)]).ended(2);
        assert!(refused.stderr.contains("cannot be resumed, it has ended (done)"), "{refused:?}");
    }
    for (title, _) in &RUNS[3..5] {
        let resumed = sandbox.run(&["resume", &id(title), "--changed", "go-on"]).ended(0);
        assert_eq!(resumed.stdout.trim(), "done later", "{title}");
    }
    assert!(!sandbox.path("slow/a.txt").exists(), "a file was written again");
    let resumed = sandbox.run(&["resume", &id(RUNS[2].0), "--max-turns", "5", "--changed", "go-on"]);
    assert!(resumed.code == Some(0) || resumed.stderr.contains("cannot be resumed"), "{resumed:?}");
    let chats = sandbox.run(&["chats", "--output", "json"]).ended(0).json();
    assert_eq!((&chats[0]["turns"], &chats[0]["title"]), (&2.into(), &RUNS[8].0.into()));
    let talk = sandbox.run(&["chat", "talk", "-c", "-p", "a third turn"]).ended(0);
    assert_eq!(talk.stdout, "a third turn\n");
    assert!(talk.stderr.contains(RUNS[9].0) && talk.stderr.contains("has changed"), "{talk:?}");
    // The question that has an answer is not put again; the other one still waits.
    sandbox.run(&["resume", "--all-answered", "--changed", "go-on"]).ended(0).said("done later\n");
    approve(sandbox, RUNS[5].0);
    sandbox.run(&["resume", &id(RUNS[5].0), "--changed", "go-on"]).ended(0).said("done later\n");
}
