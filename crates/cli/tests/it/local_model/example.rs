//! The example's own command, and its project without a server.

use std::fs::Permissions;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use llm_do_testing::needs;

use crate::local_model::server::{Server, command, example, project};
use crate::support::Ran;

fn ran(child: Child) -> Ran {
    child.wait_with_output().unwrap().into()
}

#[test]
fn the_project_is_checked_and_scripted_without_a_server() {
    let sandbox = project("http://127.0.0.1:8080");
    sandbox.run(&["check", "."]).ended(0).told_nothing();
    let answer = sandbox.run(&["run", ".", "--model", "script:offline.yaml"]).ended(0).told_nothing();
    answer.said("Good morning! How are you?\n");
}

#[needs(model)]
#[test]
fn one_command_runs_the_greeter_and_stops_its_server() {
    let folder = Path::new(env!("CARGO_BIN_EXE_llm-do")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let short = ["--", "--set", "agents.greeter.model_settings.max_tokens=8"];
    let arguments: Vec<&str> =
        ["--protocol", "messages", "Good", "morning!"].iter().chain(&short).copied().collect();
    let mut command = command(&arguments);
    command.env("PATH", format!("{}:{path}", folder.display())).env_remove("LLM_DO_MODEL");
    let ran = ran(command.spawn().unwrap()).ended(0);
    assert!(!ran.stdout.trim().is_empty(), "{ran:?}");
    let ran = ran.told("'Good morning!' --model local-messages:smollm2");
    let (_, rest) = ran.stderr.split_once("base_url=http://").unwrap();
    assert!(TcpStream::connect(rest.split_whitespace().next().unwrap()).is_err(), "{rest}");
}

#[needs(model)]
#[test]
fn a_server_ends_when_its_starter_is_killed() {
    let mut server = Server::start();
    let address = server.address.strip_prefix("http://").unwrap().to_owned();
    assert!(TcpStream::connect(&address).is_ok());
    server.child.kill().unwrap();
    let patience = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(&address).is_ok() {
        assert!(Instant::now() < patience, "{address} is still served");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[needs(python)]
#[test]
fn serving_fails_when_the_server_ends() {
    let cache = tempfile::tempdir().unwrap();
    install_server(cache.path(), "echo http://127.0.0.1:1; echo out of memory >&2; kill -KILL $$");
    let mut command = command(&["--serve"]);
    // Its stdin stays open, so that it has no other reason to end.
    let mut child = command.env("XDG_CACHE_HOME", cache.path()).spawn().unwrap();
    let _stdin = child.stdin.take();
    let ran = ran(child).ended(1).said("http://127.0.0.1:1\n");
    ran.told("out of memory").told("error: the server ended by signal SIGKILL");
}

/// Installs a shell script in place of the Python that serves the model.
fn install_server(cache: &Path, script: &str) {
    let program = "import local_model; print(local_model.fingerprint())";
    let mut python = Command::new("python3");
    let output = python.args(["-B", "-c", program]).current_dir(example()).output().unwrap();
    let fingerprint = String::from_utf8(output.stdout).unwrap();
    let home = cache.join(format!("llm-do/local-model-{}", fingerprint.trim()));
    let python = home.join("venv/bin/python");
    std::fs::create_dir_all(python.parent().unwrap()).unwrap();
    std::fs::write(home.join("done"), "").unwrap();
    std::fs::write(&python, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&python, Permissions::from_mode(0o755)).unwrap();
}

#[needs(python)]
#[test]
fn a_port_that_is_taken_is_said_with_a_hint() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ran = ran(command(&["--serve", "--port", &port]).spawn().unwrap());
    ran.ended(1).said("").told(&format!("error: port {port} is taken")).told("hint: choose another one");
}

#[needs(python)]
#[test]
fn a_prompt_does_not_go_with_serving() {
    let ran = ran(command(&["--serve", "hello"]).spawn().unwrap());
    ran.ended(2).said("").told("`--serve` takes no prompt");
}
