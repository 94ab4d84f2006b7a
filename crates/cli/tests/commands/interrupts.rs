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
    for signal in ["-INT", "-TERM"] {
        let (_sandbox, child) = waiting();
        send(&child, signal);
        let (code, stderr) = ended(child);
        assert_eq!(code, Some(130), "{stderr}");
        assert!(stderr.contains("stopping; interrupt again to leave at once"), "{stderr}");
        assert!(stderr.contains("error: interrupted"), "{stderr}");
        assert!(stderr.contains("agent main") && stderr.contains("agent helper"), "{stderr}");
        assert!(stderr.contains("1 request,") && stderr.contains("tokens"), "{stderr}");
    }
}
