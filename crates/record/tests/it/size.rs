//! How much space a run takes.

use std::sync::Arc;

use llm_do_core::{AgentSpec, Approval, Effect, Limits, Output};
use llm_do_models::{Script, asks, says};
use llm_do_record::Record;
use llm_do_runtime::{Project, Runtime};
use llm_do_testing::FunctionTool;
use serde_json::json;

const TURNS: usize = 400;

/// What a run of so many small tool turns may take beside its large values.
const MAX_BYTES: i64 = 1_200_000;

fn runtime(record: Record, turns: usize) -> Runtime {
    // A hundredth of the results are large values.
    let tool = FunctionTool::new("look", |input, _| async move {
        let number = input["n"].as_u64().unwrap_or_default();
        let text = if number % 100 == 0 { format!("{number} ").repeat(5_000) } else { "seen".to_owned() };
        Ok(Output::text(text))
    });
    let tool = tool.define(|definition| {
        definition.effect = Effect::Pure;
        definition.approval = Approval::PreApproved;
    });
    let looks = (0..turns).map(|turn| asks("look", json!({"n": turn, "path": "src/main.rs"})));
    let agent =
        AgentSpec::new("main", "You look.").model(Script::by_turn(looks.chain([says("done")]))).tool("look");
    let project = Project::builder().agent(agent).tool(tool).build().unwrap();
    let limits = Limits {
        turns: Some(100_000),
        requests: Some(100_000),
        tool_calls: Some(100_000),
        repeats: Some(100_000),
        ..Limits::default()
    };
    Runtime::builder(project).limits(limits).store(Arc::new(record)).build().unwrap()
}

#[tokio::test]
async fn a_run_of_many_turns_takes_little_more_than_its_large_values() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record.db");
    let record = Record::open(&path).unwrap();
    runtime(record.clone(), TURNS).run("main", "go").await.unwrap();
    drop(record);
    let connection = rusqlite::Connection::open(&path).unwrap();
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let pages =
        number("SELECT page_count FROM pragma_page_count") - number("SELECT * FROM pragma_freelist_count");
    let (bytes, payloads) =
        (pages * number("PRAGMA page_size"), number("SELECT sum(length(body)) FROM blobs"));
    assert!(payloads > 40_000, "{payloads}");
    assert!(
        bytes < MAX_BYTES + payloads,
        "{TURNS} turns take {bytes} bytes, {payloads} of them large values"
    );
}
