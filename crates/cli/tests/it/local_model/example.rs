//! The example's own command, and its project without a server.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use llm_do_testing::needs;

use crate::local_model::server::{Server, command, project};
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
