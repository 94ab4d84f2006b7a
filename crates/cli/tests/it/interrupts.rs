//! Interrupts: the first ends the tree in order and says what was done, the second leaves at once.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::Sandbox;

/// A run that waits for its model, started and waiting.
fn waiting() -> (Sandbox, Child) {
    let sandbox = Sandbox::asking()
        .file("helper.agent", "---\nname: helper\nmodel: script:slow.yaml\n---\nx")
        .file("slow.yaml", "- say: late\n  delay: 60s\n");
    let mut child = sandbox
        .command(&["run", ".", "hello", "--approve-all", "-v"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = child.stderr.take().unwrap();
    let mut stderr = BufReader::new(stderr);
    let mut line = String::new();
    while !line.contains("[main > helper]") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "the run ended too early");
    }
    child.stderr = Some(stderr.into_inner());
    (sandbox, child)
}

fn send(child: &Child, signal: &str) {
    let sent = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

fn ended(mut child: Child) -> (Option<i32>, String) {
    let begun = Instant::now();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let code = child.wait().unwrap().code();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    (code, stderr)
}

#[test]
fn an_interrupt_cancels_the_tree_and_says_what_was_done_and_used() {
    for (signal, expected, words) in [
        ("-INT", 130, "stopping; interrupt again to exit at once"),
        ("-TERM", 143, "stopping\n"),
        ("-HUP", 129, "stopping\n"),
    ] {
        let (_sandbox, child) = waiting();
        send(&child, signal);
        let (code, stderr) = ended(child);
        assert_eq!(code, Some(expected), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
        assert!(stderr.contains("error: interrupted"), "{stderr}");
        assert!(stderr.contains("agent main") && stderr.contains("agent helper"), "{stderr}");
        // The interrupt may come before the helper's request or while it is under way.
        let counted = stderr.contains("1 request,") || stderr.contains("2 requests,");
        assert!(counted && stderr.contains("tokens"), "{stderr}");
    }
}

#[test]
fn no_program_outlives_an_interrupt_or_the_second_one() {
    for signals in [1, 2] {
        let sandbox = Sandbox::new()
            .file("main.agent", "---\nname: main\nmodel: script:script.yaml\ntoolsets:\n  - shell_readonly: {rules: [{program: sleep, approval: pre_approved, operands: text}]}\n---\nx")
            .file("script.yaml", "mode: by_turn\nreplies:\n  - ask: {shell: {command: sleep 61.5, timeout: 100}}\n  - say: done\n");
        let mut child = sandbox
            .command(&["run", ".", "hello", "--output", "jsonl"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut events = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("\"call_executing\"") || !line.contains("\"main > shell\"") {
            line.clear();
            assert!(events.read_line(&mut line).unwrap() > 0, "the run ended too early");
        }
        // The program is started right after its intent is recorded.
        let begun = Instant::now();
        // The guardian is a child, too.
        let is_program = |program: &String| {
            std::fs::read_to_string(format!("/proc/{program}/cmdline"))
                .is_ok_and(|line| line.contains("61.5"))
        };
        while !children(&child).iter().any(is_program) {
            assert!(begun.elapsed() < Duration::from_secs(20));
            std::thread::yield_now();
        }
        let programs = children(&child);
        (0..signals).for_each(|_| send(&child, "-INT"));
        let (code, stderr) = ended(child);
        assert_eq!(code, Some(130), "{stderr}");
        for program in programs {
            let alive = std::fs::read_to_string(format!("/proc/{program}/cmdline"))
                .is_ok_and(|line| line.contains("61.5"));
            assert!(!alive, "{program} outlived {signals} interrupts");
        }
    }
}

/// The programs that a process has started.
fn children(child: &Child) -> Vec<String> {
    let tasks = format!("/proc/{}/task", child.id());
    let tasks = std::fs::read_dir(tasks).into_iter().flatten().flatten();
    let listed = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    listed.flat_map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn an_interrupted_command_ends_its_call_as_interrupted() {
    let agent = "---\nname: main\nmodel: test:echo\ntoolsets:\n  - shell_file_ops: {rules: [{program: sleep, approval: pre_approved, operands: text}]}\n---\nx";
    let sandbox = Sandbox::new().file("main.agent", agent);
    let mut child = sandbox
        .command(&["call", ".", "shell", "--input-json", r#"{"command": "sleep 60"}"#, "-v"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    assert!(stderr.read_line(&mut line).unwrap() > 0, "the call ended too early");
    child.stderr = Some(stderr.into_inner());
    send(&child, "-INT");
    let (code, stderr) = ended(child);
    assert_eq!(code, Some(130), "{stderr}");
}
