//! The examples, each on its script, in a copy of its folder.

use std::path::Path;

use crate::support::{Ran, Sandbox};

fn copied(name: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    copy(&source, sandbox.root());
    sandbox
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Checks an example and runs it on its script.
fn run(sandbox: &Sandbox, more: &[&str]) -> Ran {
    sandbox.run(&["check", "."]).ended(0).told_nothing();
    let arguments = ["run", ".", "--model", "script:offline.yaml", "-v"];
    sandbox.run(&arguments.iter().chain(more).copied().collect::<Vec<_>>())
}

#[test]
fn greeter_greets() {
    run(&copied("greeter"), &["Good morning"]).ended(0).said("Good morning! How can I help you today?\n");
}

#[test]
fn approvals_asks_before_it_writes() {
    let sandbox = copied("approvals");
    let ran = run(&sandbox, &["--approve", "all"])
        .ended(0)
        .said("The note is written, judged and saved as notes/today.md.\n");
    ran.told("[editor > critic]").told("[editor > write_file]");
    assert!(std::fs::read_to_string(sandbox.path("notes/today.md")).unwrap().starts_with("Ships"));
    let denied = run(&copied("approvals"), &[]).ended(5);
    denied.said("The note is written and judged, and it was not saved.\n").told("nobody could be asked");
}

#[test]
fn bootstrapping_creates_its_helper_and_finds_it_again() {
    let sandbox = copied("bootstrapping");
    let denied = run(&sandbox, &[]).ended(5);
    denied.said("Nobody may help me, so there is no summary.\n").told("denied: `agent_create` must ask");
    for _ in 0..2 {
        let ran = run(&sandbox, &["--approve", "all"]).ended(0).told("[main > agent_call() > summariser]");
        assert!(ran.stdout.starts_with("From the notes:"), "{ran:?}");
    }
    let created = std::fs::read_to_string(sandbox.path("agents/generated/summariser.agent")).unwrap();
    assert!(created.contains("toolsets:\n") && created.contains("You sum up text files."), "{created}");
    assert!(!sandbox.path("agents/generated/summariser.agent.old-1").exists(), "nothing has changed");
    let listed = sandbox.run(&["list", "."]).ended(0).stdout;
    assert!(listed.contains("summariser  (generated)"), "{listed}");
}

#[test]
fn code_analyser_reads_freely_and_changes_nothing() {
    let sandbox = copied("code-analyser");
    let ran = run(&sandbox, &[]).ended(0).told("9 sample/counter.py").told("blocked: `shell` may not run");
    assert!(ran.stdout.contains("`count` returns how often each word"), "{ran:?}");
    assert!(sandbox.path("sample/counter.py").exists());
    let reach = sandbox.run(&["check", ".", "--reach"]).ended(0).stdout;
    assert!(
        reach.contains("shell  (shell_readonly, write access): runs, asks or is blocked as the tool judges"),
        "{reach}"
    );
}

#[test]
fn delegation_hands_out_attachments() {
    let ran = run(&copied("delegation"), &["--output", "jsonl"]).ended(0);
    let requests = ran.lines().into_iter().filter(|event| event["type"] == "model_request");
    let letters: Vec<String> = requests
        .filter(|event| event["path"] == "clerk > reader")
        .map(|event| event["messages"].to_string())
        .collect();
    assert_eq!(letters.len(), 2);
    assert!(letters.iter().all(|letter| letter.contains("text/plain")), "{letters:?}");
}

#[test]
fn recursive_summariser_calls_itself() {
    let ran =
        run(&copied("recursive-summariser"), &[]).ended(0).told("[summariser > summariser] -> The train");
    assert!(ran.stdout.starts_with("Errands for Monday"), "{ran:?}");
}

#[test]
fn task_decomposer_answers_with_a_plan() {
    let ran = run(&copied("task-decomposer"), &[]).ended(0);
    assert_eq!(ran.json()["steps"][0]["result"], "Soup and risotto");
}

#[test]
fn web_search_is_part_of_the_reach() {
    let sandbox = copied("web-search");
    run(&sandbox, &[]).ended(0);
    let reach = sandbox.run(&["check", ".", "--reach"]).ended(0).stdout;
    assert!(reach.contains("web_search  (at the provider): runs freely"), "{reach}");
}

#[test]
fn whiteboard_reads_a_picture() {
    let ran = run(&copied("whiteboard"), &["--output", "jsonl"]).ended(0);
    let request = ran
        .lines()
        .into_iter()
        .find(|event| event["type"] == "model_request" && event["path"] == "assistant > reader");
    assert!(request.unwrap()["messages"].to_string().contains("image/png"));
    let sandbox = copied("whiteboard").file("notes.txt", "no picture");
    let given = ["call", ".", "reader", "--input-json", r#"{"input": "Read it."}"#, "--attach", "notes.txt"];
    sandbox
        .run(&[&given[..], &["--model", "script:offline.yaml"]].concat())
        .ended(2)
        .told("does not end with `.png` or `.jpg`");
}

#[test]
fn newsroom_runs_as_the_documentation_says() {
    let sandbox = copied("newsroom");
    let ran = sandbox.run(&["run", "."]).ended(0);
    assert!(ran.stdout.starts_with("Ships"), "{ran:?}");
}

#[test]
fn fork_asks_its_children_and_weighs_what_they_say() {
    let ran = run(&copied("fork"), &[]).ended(0).said("Borrow a tent with a roof, and the stall can open.\n");
    ran.told("[main > fork() > main] -> Cost:").told("[main > fork() > main] -> Weather:");
}

#[test]
fn goto_keeps_only_what_it_learned() {
    let ran = run(&copied("goto"), &["--output", "json"]).ended(0);
    assert_eq!(ran.json()["output"], "notes/b.txt names it, the Gannet.");
    assert!(ran.stderr.contains("[main > goto]"), "{ran:?}");
}

#[test]
fn long_results_are_searched_and_passed_on() {
    let ran = run(&copied("long-results"), &[]).ended(0);
    assert!(ran.stdout.starts_with("At 02:07:11 one request took 9 s"), "{ran:?}");
    ran.told("[main > spawn() > reader > read_fd]").told("backup of");
}
