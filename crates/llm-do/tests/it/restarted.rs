//! A program that records its runs is killed and started again: the code of the guide finishes what it began.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use llm_do::prelude::*;
use llm_do::record::Record;
use llm_do::testing::{Script, asks, says};
use serde_json::json;

/// Tells the program below whether it is started for the first time.
const STAGE: &str = "LLM_DO_RESTARTED_STAGE";

/// Writes a line that must not be written twice.
#[tool(approval = "pre_approved", effect = "once")]
fn pay(amount: u32) -> Result<String, ToolError> {
    let file = std::fs::File::options().create(true).append(true).open("payments.log");
    file.and_then(|mut file| writeln!(file, "{amount}"))
        .map_err(|error| ToolError::new(error.to_string()))?;
    Ok("paid".to_owned())
}

/// Takes so long in the first process that it is killed there.
#[tool(access = "read", approval = "pre_approved", effect = "idempotent")]
async fn look() -> Result<String, ToolError> {
    if std::env::var(STAGE).is_ok_and(|stage| stage == "first") {
        std::fs::write("looking", "").map_err(|error| ToolError::new(error.to_string()))?;
        tokio::time::sleep(Duration::from_secs(600)).await;
    }
    Ok("seen".to_owned())
}

fn project() -> Project {
    let script =
        Script::by_turn([asks("pay", json!({"amount": 7})), asks("look", json!({})), says("paid and seen")]);
    let main = AgentSpec::new("main", "You pay.").tool("pay").tool("look").model(script);
    Project::builder().agent(main).tool(pay).tool(look).build().unwrap()
}

#[tokio::test]
#[ignore = "started by the test below"]
async fn program() {
    match std::env::var(STAGE).as_deref() {
        Ok("first") => {
            let store = Arc::new(Record::open("runs.db").unwrap());
            let runtime = Runtime::standard(project()).store(store).build().unwrap();
            runtime.run("main", "go").await.unwrap();
        }
        Ok("again") => crate::guide::resuming_all(project()).await.unwrap(),
        _ => {}
    }
}

fn start(directory: &Path, stage: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "restarted::program", "--include-ignored", "--nocapture", "--test-threads=1"])
        .current_dir(directory)
        .env(STAGE, stage)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn the_program_of_the_guide_finishes_after_a_restart_what_it_had_begun() {
    let directory = llm_do_testing::TestDir::new();
    let mut first = start(directory.path(), "first");
    let begun = Instant::now();
    while !directory.join("looking").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never came so far");
        std::thread::sleep(Duration::from_millis(10));
    }
    first.kill().unwrap();
    first.wait().unwrap();

    let again = start(directory.path(), "again").wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(again.status.success(), "{printed}\n{}", String::from_utf8_lossy(&again.stderr));
    assert!(printed.contains(": paid and seen"), "{printed}");
    assert_eq!(directory.read("payments.log"), "7\n");
}
