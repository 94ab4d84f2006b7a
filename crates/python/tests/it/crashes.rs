//! A process that ends: what its calls are told, and how the next call finds another one.

use std::time::{Duration, Instant};

use llm_do_core::Remark;
use llm_do_project::Code;
use llm_do_testing::{TestCall, needs};
use serde_json::json;

use crate::support::{Folder, Named};

const CRASHING: &str = r#"
import asyncio, ctypes, os, signal, subprocess, sys, threading, time
memory = []
def remember(): 
    memory.append(1)
    return len(memory)
def segfault(): os.kill(os.getpid(), signal.SIGSEGV)
def reads_null(): ctypes.string_at(0)
def leaves(): os._exit(3)
def aborts(): os.abort()
def writes_everywhere():
    for descriptor in range(3, 256):
        try: os.write(descriptor, b"garbage\n")
        except OSError: pass
    time.sleep(10)
async def leaves_later():
    await asyncio.sleep(0.2)
    os._exit(4)
async def waits():
    await asyncio.sleep(100)
def pid(): return os.getpid()
TOOLS = [remember, segfault, reads_null, leaves, aborts, writes_everywhere, leaves_later, waits, pid]
"#;

async fn error_of(code: &Code, tool: &str) -> String {
    let limit = Duration::from_secs(8);
    let call = TestCall::new();
    tokio::time::timeout(limit, call.run(code.tool(tool), json!({})))
        .await
        .unwrap_or_else(|_| panic!("`{tool}` does not end"))
        .error()
}

async fn text_of(code: &Code, tool: &str) -> String {
    TestCall::new().run(code.tool(tool), json!({})).await.text().to_string()
}

#[needs(python)]
#[tokio::test]
async fn a_crash_is_an_error_of_its_call_and_the_next_call_runs_in_a_new_process() {
    for (tool, words) in [
        ("segfault", "was ended by signal 11 (SIGSEGV) while it ran `segfault`"),
        ("reads_null", "SIGSEGV"),
        ("leaves", "left with exit code 3 while it ran `leaves`"),
        ("aborts", "SIGABRT"),
        ("writes_everywhere", "what is not a message"),
    ] {
        let folder = Folder::of(CRASHING);
        let code = folder.load();
        assert_eq!(text_of(&code, "remember").await, "1");
        let error = error_of(&code, tool).await;
        assert!(error.contains(words), "{tool}: {error}");
        let next = TestCall::new().run(code.tool("remember"), json!({})).await;
        assert_eq!(next.text().as_ref(), "1", "{tool}: another process");
        let told = next.remarks();
        let is_told =
            |remark: &Remark| matches!(remark, Remark::Notice(text) if text.contains("remembered is lost"));
        assert!(told.iter().any(is_told), "{tool}: {told:?}");
        assert_eq!(text_of(&code, "remember").await, "2", "{tool}: the same process");
        drop(code);
        folder.assert_no_processes();
    }
}

#[needs(python)]
#[tokio::test]
async fn all_running_calls_are_told_at_once() {
    let folder = Folder::of(CRASHING);
    let code = folder.load();
    let start = Instant::now();
    let (first, second) = futures::join!(error_of(&code, "waits"), error_of(&code, "leaves_later"));
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    for error in [first, second] {
        assert!(
            error.contains("left with exit code 4 while it ran 2 calls (`waits`, `leaves_later`)"),
            "{error}"
        );
    }
}

#[needs(python)]
#[tokio::test]
async fn three_crashes_in_a_row_are_the_last() {
    let folder = Folder::of(CRASHING);
    let code = folder.load();
    for _ in 0..3 {
        assert!(error_of(&code, "leaves").await.contains("exit code 3"));
    }
    for tool in ["leaves", "remember"] {
        let error = error_of(&code, tool).await;
        assert!(error.contains("crashed 3 times without a successful call between"), "{error}");
    }
    folder.assert_no_processes();
}

#[needs(python)]
#[tokio::test]
async fn files_that_have_changed_are_not_loaded_after_a_crash() {
    let folder = Folder::of(CRASHING);
    let code = folder.load();
    folder.file("tools.py", &CRASHING.replace("def pid()", "def pid(more: int = 1)"));
    assert!(error_of(&code, "leaves").await.contains("exit code 3"));
    let error = error_of(&code, "remember").await;
    assert!(error.contains("its files have changed since the project was loaded"), "{error}");
    folder.assert_no_processes();
}

const FORKING: &str = r#"
import os, subprocess, sys, time
def child_returns():
    if os.fork() == 0:
        return "child"
    return "parent"
def child_stays():
    if os.fork() == 0:
        time.sleep(1000)
    return "parent"
def child_escapes():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve("/bin/sleep", ["sleep", "1000"], {})
        os._exit(0)
    os.wait()
    return "parent"
def child_fails():
    if os.fork() == 0:
        raise ValueError("child")
    os.wait()
    return "parent"
def starts(): 
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    return "parent"
def fine(): return "fine"
TOOLS = [child_returns, child_stays, child_escapes, child_fails, starts, fine]
"#;

#[needs(python)]
#[tokio::test]
async fn forked_children_neither_answer_nor_stay() {
    let folder = Folder::of(FORKING);
    let sleepers = sleeping();
    let code = folder.load();
    for tool in ["child_returns", "child_stays", "child_escapes", "child_fails", "starts"] {
        assert_eq!(text_of(&code, tool).await, "parent", "{tool}");
        assert_eq!(text_of(&code, "fine").await, "fine", "{tool}");
    }
    drop(code);
    folder.assert_no_processes();
    assert_eq!(sleeping(), sleepers, "one without environment is found by its mark");
}

/// How many processes of this machine sleep as those of these tests do.
fn sleeping() -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.map(|entry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default());
    lines.filter(|line| line.starts_with(b"sleep\x001000\0")).count()
}
