//! Python projects that are started for the first time, many at once.
//!
//! `LLM_DO_PYTHON_STARTS` sets how many processes are started at once.

use std::fs::OpenOptions;
use std::io::Read;
use std::process::{Child, Command, Stdio};

use llm_do_testing::needs;

use crate::support::{Ran, Sandbox};

fn project() -> Sandbox {
    Sandbox::new()
        .file(
            "project.yaml",
            // The processes share the machine, so that each of them may be slow.
            "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\npython_files: [tools.py]\n\
             python_load_seconds: 3600\n",
        )
        .file("main.agent", "---\nname: main\nmodel: test:echo\ntools: [add]\n---\nAdd.\n")
        .file("tools.py", "def add(a: int, b: int) -> int:\n    return a + b\nTOOLS = [add]\n")
}

/// Starts a command that waits at a gate, and returns it when it has arrived there.
fn start_at_gate(project: &Sandbox, arguments: &[&str]) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", "echo ready; : < gate; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_llm-do")]);
    command.args(arguments).current_dir(project.root()).env("HOME", project.root());
    command.env("XDG_CACHE_HOME", project.path("cache")).env("XDG_STATE_HOME", project.state());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut ready = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    child
}

#[needs(python)]
#[test]
fn concurrent_first_starts_share_one_empty_cache() {
    let wanted = std::env::var("LLM_DO_PYTHON_STARTS").ok().and_then(|number| number.parse().ok());
    let project = project();
    assert!(Command::new("mkfifo").arg(project.path("gate")).status().unwrap().success());
    let arguments = ["call", ".", "add", "--input-json", r#"{"a": 40, "b": 2}"#, "--approve", "all"];
    let children: Vec<Child> =
        (0..wanted.unwrap_or(16)).map(|_| start_at_gate(&project, &arguments)).collect();
    let gate = OpenOptions::new().write(true).open(project.path("gate")).unwrap();
    let ended = children.into_iter().map(|child| Ran::from(child.wait_with_output().unwrap()));
    let failed: Vec<String> =
        ended.filter(|ran| ran.stdout.trim() != "42").map(|ran| ran.stderr.clone()).collect();
    drop(gate);
    assert!(failed.is_empty(), "{} starts failed: {failed:#?}", failed.len());
}
