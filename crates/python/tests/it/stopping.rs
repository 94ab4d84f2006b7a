//! Calls that must end: cancelled, given up, or past their time.

use std::pin::pin;
use std::time::{Duration, Instant};

use llm_do_project::Code;
use llm_do_testing::{TestCall, needs};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Folder, Named};

const ENDLESS: &str = r#"
import asyncio, os, time
def spins():
    while True: pass
async def spins_in_the_loop():
    while True: pass
async def naps():
    await asyncio.sleep(1000)
def sleeps():
    time.sleep(1000)
def clings():
    while True:
        try: time.sleep(0.01)
        except BaseException: pass
async def clings_to_the_loop():
    while True:
        try:
            for _ in range(1000): pass
        except BaseException: pass
def closes_everything():
    os.closerange(0, 256)
def pid(): return os.getpid()
TOOLS = [spins, spins_in_the_loop, naps, sleeps, clings, clings_to_the_loop, closes_everything, pid]
"#;

async fn pid(code: &Code) -> String {
    TestCall::new().run(code.tool("pid"), json!({})).await.text().to_string()
}

/// Cancels a call shortly after its start, and says how long it then took.
async fn cancelled(code: &Code, tool: &str) -> (String, Duration) {
    let token = CancellationToken::new();
    let call = TestCall::new().cancelled_by(token.clone()).run(code.tool(tool), json!({}));
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        token.cancel();
        Instant::now()
    };
    let (reply, start) = futures::join!(call, cancel);
    (reply.error(), start.elapsed())
}

#[needs(python)]
#[tokio::test]
async fn code_that_can_be_interrupted_ends_and_the_process_lives_on() {
    let folder = Folder::of(ENDLESS);
    let code = folder.load();
    let before = pid(&code).await;
    for tool in ["spins", "naps", "spins_in_the_loop"] {
        let (error, time) = cancelled(&code, tool).await;
        assert!(time < Duration::from_millis(1_500), "{tool}: {time:?}: {error}");
        assert_eq!(pid(&code).await, before, "{tool}: {error}");
    }
}

#[needs(python)]
#[tokio::test]
async fn code_that_does_not_stop_ends_with_its_process() {
    let folder = Folder::of(ENDLESS);
    let code = folder.load();
    let too_long = "did not stop when it was cancelled";
    for (tool, words) in [
        ("sleeps", too_long),
        ("clings", too_long),
        ("clings_to_the_loop", too_long),
        // Who notices first that the channel is gone is a matter of chance.
        ("closes_everything", "the Python process"),
    ] {
        let before = pid(&code).await;
        let (error, time) = cancelled(&code, tool).await;
        assert!(time < Duration::from_secs(4), "{tool}: {time:?}");
        assert!(error.contains(words) && error.contains(&format!("`{tool}`")), "{error}");
        assert_ne!(pid(&code).await, before, "{tool}");
    }
    drop(code);
    folder.assert_no_processes();
}

#[needs(python)]
#[tokio::test]
async fn others_are_told_who_is_to_blame() {
    let folder = Folder::of(ENDLESS);
    let code = folder.load();
    let innocent = TestCall::new().run(code.tool("naps"), json!({}));
    let (innocent, _) = futures::join!(innocent, cancelled(&code, "sleeps"));
    assert!(innocent.error().contains("`sleeps` did not stop when it was cancelled"), "{}", innocent.error());
}

#[needs(python)]
#[tokio::test]
async fn a_call_whose_future_is_dropped_ends_too() {
    let folder = Folder::of(
        r#"
import asyncio, time
state = {"begun": 0, "ended": 0}
async def naps():
    try:
        state["begun"] += 1
        await asyncio.sleep(1000)
    finally: state["ended"] += 1
def spins():
    try:
        state["begun"] += 1
        while True: sum(range(10))
    finally: state["ended"] += 1
def count(what: str): return state[what]
TOOLS = [naps, spins, count]
"#,
    );
    let code = folder.load();
    let reaches = async |what: &str, number: &str| {
        let start = Instant::now();
        while TestCall::new().run(code.tool("count"), json!({ "what": what })).await.text().as_ref() != number
        {
            assert!(start.elapsed() < Duration::from_secs(30), "{what} does not reach {number}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    for (tool, number) in [("naps", "1"), ("spins", "2")] {
        let mut call = pin!(TestCall::new().run(code.tool(tool), json!({})));
        // A call that is dropped before its code began has nothing to end.
        tokio::select! {
            _ = &mut call => panic!("`{tool}` never answers"),
            () = reaches("begun", number) => {}
        }
    }
    reaches("ended", "2").await;
}

#[needs(python)]
#[tokio::test]
async fn dropping_everything_ends_running_code() {
    let folder = Folder::of(ENDLESS);
    let code = folder.load();
    for tool in ["spins", "sleeps", "clings_to_the_loop"] {
        let call = TestCall::new().run(code.tool(tool), json!({}));
        assert!(tokio::time::timeout(Duration::from_millis(50), call).await.is_err());
    }
    let start = Instant::now();
    drop(code);
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    folder.assert_no_processes();
}

#[needs(python)]
#[test]
fn a_project_outlives_the_runtime_that_used_it() {
    let folder = Folder::of(ENDLESS);
    let code = folder.load();
    let once = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(pid(&code))
    };
    assert_eq!(once(), once());
}
