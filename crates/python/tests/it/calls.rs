//! Calls: arguments, results, remarks, and what code asks for meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use llm_do_core::{Failure, FailureKind, Output, Remark, Tool};
use llm_do_testing::{TestCall, TestReply, needs, own_process};
use serde_json::{Value, json};

use crate::support::{Folder, Named};

async fn run(tool: Arc<dyn Tool>, input: Value) -> TestReply {
    TestCall::new().run(tool, input).await
}

fn failure(reply: &TestReply) -> Failure {
    match reply.reply() {
        Err(error) => error.clone().into_failure(),
        Ok(output) => panic!("an answer: {}", output.to_text()),
    }
}

#[needs(python)]
#[tokio::test]
async fn sync_and_async_functions_answer_with_values() {
    let folder = Folder::of(
        r#"
import asyncio
def add(a: int, b: int = 2) -> int:
    return a + b
async def later(text: str) -> dict:
    await asyncio.sleep(0.01)
    return {"text": text, "none": None}
def nothing():
    pass
TOOLS = [add, later, nothing]
"#,
    );
    let code = folder.load();
    assert_eq!(run(code.tool("add"), json!({"a": 40})).await.text().as_ref(), "42");
    let later = run(code.tool("later"), json!({"text": "grüße \u{1f600}"})).await;
    assert_eq!(later.reply().as_ref().unwrap().to_value(), json!({"text": "grüße \u{1f600}", "none": null}));
    assert_eq!(
        run(code.tool("nothing"), json!({})).await.reply().as_ref().unwrap(),
        &Output::json(Value::Null)
    );
}

#[needs(python)]
#[tokio::test]
async fn what_goes_wrong_in_a_function_is_an_error_result() {
    let folder = Folder::of(
        r#"
import sys
class Odd(Exception):
    def __str__(self): raise RuntimeError("no words")
def raises(): raise ValueError("bad \ud800 text \u202e\x00")
def leaves(): sys.exit(3)
def recurses(): return recurses()
def interrupts(): raise KeyboardInterrupt
def odd(): raise Odd()
def returns_object(): return object()
def returns_bytes(): return b"\xff"
def returns_nan(): return float("nan")
def returns_cycle():
    x = []
    x.append(x)
    return x
def returns_surrogate(): return "\ud800"
def fine(): return "fine"
TOOLS = [raises, leaves, recurses, interrupts, odd, returns_object, returns_bytes, returns_nan, returns_cycle,
         returns_surrogate, fine]
"#,
    );
    let code = folder.load();
    let process = folder.processes();
    for (tool, words) in [
        ("raises", "ValueError: bad"),
        ("leaves", "SystemExit"),
        ("recurses", "RecursionError"),
        ("interrupts", "KeyboardInterrupt"),
        ("odd", "Odd"),
    ] {
        let failure = failure(&run(code.tool(tool), json!({})).await);
        assert_eq!(failure.kind, FailureKind::Tool, "{tool}: {failure}");
        assert!(failure.message.contains(words), "{tool}: {failure}");
    }
    for tool in ["returns_object", "returns_bytes", "returns_nan", "returns_cycle"] {
        let failure = failure(&run(code.tool(tool), json!({})).await);
        assert_eq!(failure.kind, FailureKind::Output, "{tool}: {failure}");
    }
    let _either_way = run(code.tool("returns_surrogate"), json!({})).await;
    assert_eq!(run(code.tool("fine"), json!({})).await.text().as_ref(), "fine");
    assert_eq!(folder.processes(), process, "the process lives on");
}

#[needs(python)]
#[tokio::test]
async fn what_code_prints_is_told_as_its_error_log() {
    let folder = Folder::of(
        r#"
import os, subprocess, sys
def noisy():
    print("to stdout")
    print("to stderr", file=sys.stderr)
    os.write(1, b"past python\n")
    subprocess.run(["echo", "from a child"])
    return "quiet"
TOOLS = [noisy]
"#,
    );
    let code = folder.load();
    let reply = run(code.tool("noisy"), json!({})).await;
    assert_eq!(reply.text().as_ref(), "quiet");
    let said: Vec<String> = reply
        .remarks()
        .into_iter()
        .map(|remark| match remark {
            Remark::Stderr(line) => line,
            other => panic!("{other:?}"),
        })
        .collect();
    for line in ["to stdout", "to stderr"] {
        assert!(said.iter().any(|other| other == line), "{line} is missing in {said:?}");
    }
}

#[needs(python)]
#[tokio::test]
async fn a_flood_of_output_is_bounded_and_costs_no_memory() {
    own_process!();
    let folder = Folder::of(
        r#"
import os, resource
def prints(count: int):
    for _ in range(count):
        print("x" * 1023)
def writes(count: int):
    for _ in range(count):
        os.write(1, b"y" * 1023 + b"\n")
def memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
TOOLS = [prints, writes, memory]
"#,
    );
    let count: u64 =
        std::env::var("LLM_DO_PYTHON_FLOOD").ok().and_then(|text| text.parse().ok()).unwrap_or(30_000);
    let code = folder.load();
    let before: u64 = run(code.tool("memory"), json!({})).await.text().parse().unwrap();
    for tool in ["prints", "writes"] {
        let start = own_memory();
        let reply = run(code.tool(tool), json!({"count": count})).await;
        assert_eq!(reply.text().as_ref(), "null");
        let told: usize = reply.remarks().iter().map(|remark| format!("{remark:?}").len()).sum();
        assert!(told < 1024 * 1024, "{tool}: {told} bytes were told");
        let grown = own_memory().saturating_sub(start);
        assert!(grown < 64 * 1024, "{tool}: {grown} kB more in this process");
    }
    let after: u64 = run(code.tool("memory"), json!({})).await.text().parse().unwrap();
    assert!(after - before < 64 * 1024, "{} kB more in Python", after - before);
}

/// The memory of this process in kB.
fn own_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[needs(python)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_run_at_once() {
    let folder = Folder::of(
        r#"
import asyncio, time
async def naps(n: int) -> int:
    await asyncio.sleep(0.1)
    return n
def sleeps(n: int) -> int:
    time.sleep(0.1)
    return n
TOOLS = [naps, sleeps]
"#,
    );
    let code = folder.load();
    for (tool, count) in [("naps", 1_000_u64), ("sleeps", 100)] {
        let tool = code.tool(tool);
        let start = Instant::now();
        let calls = (0..count).map(|n| {
            let tool = tool.clone();
            async move { run(tool, json!({"n": n})).await.text().parse::<u64>().unwrap() }
        });
        let answers = futures::future::join_all(calls).await;
        assert_eq!(answers, (0..count).collect::<Vec<_>>());
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
}

const ASKING: &str = r#"
import asyncio
from llm_do import CallError, ApprovalDenied
from pydantic_ai.tools import RunContext
async def doubles(ctx: RunContext, n: int) -> int:
    answers = await asyncio.gather(*[ctx.deps.call("twice", {"n": i}) for i in range(n)])
    return sum(answers)
def doubles_in_a_thread(ctx: RunContext, n: int) -> int:
    return ctx.deps.call_sync("twice", {"n": n})
async def denied(ctx: RunContext) -> str:
    try:
        await ctx.deps.call("secret", {})
    except ApprovalDenied as error:
        return f"{error.kind}: {error.message}"
async def asks(ctx: RunContext) -> dict:
    return await ctx.deps.approve("deploy.push", {"to": "prod"}, "because")
async def only_agents(ctx: RunContext):
    return await ctx.deps.call_agent("twice", "x")
TOOLS = [doubles, doubles_in_a_thread, denied, asks, only_agents]
"#;

#[needs(python)]
#[tokio::test]
async fn code_calls_others_through_its_call() {
    let folder = Folder::of(ASKING);
    let code = folder.load();
    let twice = |input: &Value| Ok(Output::json(json!(input["n"].as_u64().unwrap() * 2)));
    let reply = TestCall::new().on_call("twice", twice).run(code.tool("doubles"), json!({"n": 50})).await;
    assert_eq!(reply.text().as_ref(), "2450");
    assert_eq!(reply.calls().len(), 50);
    let reply =
        TestCall::new().on_call("twice", twice).run(code.tool("doubles_in_a_thread"), json!({"n": 4})).await;
    assert_eq!(reply.text().as_ref(), "8");

    let refusal = |_: &Value| Err(Failure::new(FailureKind::Denied, "not you"));
    let reply = TestCall::new().on_call("secret", refusal).run(code.tool("denied"), json!({})).await;
    assert_eq!(reply.text().as_ref(), "denied: not you");

    let reply = TestCall::new().allow("deploy.push").run(code.tool("asks"), json!({})).await;
    assert_eq!(reply.text().as_ref(), r#"{"to":"prod"}"#);
    assert_eq!(reply.approvals()[0].reason, "because");

    let reply = TestCall::new().on_call("twice", twice).run(code.tool("only_agents"), json!({})).await;
    assert!(failure(&reply).message.contains("no agent `twice`"), "{}", reply.error());
}

#[needs(python)]
#[tokio::test]
async fn a_list_of_texts_and_files_is_an_input_with_attachments() {
    let folder = Folder::of(
        r#"
from llm_do.runtime import Attachment, CallContext
async def hands(ctx: CallContext):
    return await ctx.call("reader", ["Read", Attachment("a.pdf"), "it."])
async def hands_numbers(ctx: CallContext):
    return await ctx.call("reader", [1, 2])
TOOLS = [hands, hands_numbers]
"#,
    );
    let code = folder.load();
    let reader = |_: &Value| Ok(Output::text("read"));
    let reply = TestCall::new().on_call("reader", reader).run(code.tool("hands"), json!({})).await;
    assert_eq!(reply.text().as_ref(), "read");
    assert_eq!(reply.calls()[0].1, json!({"input": "Read\nit.", "attachments": ["a.pdf"]}));
    let reply = TestCall::new().on_call("reader", reader).run(code.tool("hands_numbers"), json!({})).await;
    assert!(failure(&reply).message.contains("may hold texts and attachments"), "{}", reply.error());
}
