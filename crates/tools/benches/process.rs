//! What it costs to fork a long conversation, and what a very long result takes of the memory.
//!
//! `cargo bench -p llm-do-tools --bench process`. Without `--bench` a short conversation and text show that it works.
//! Memory is what the kernel counts as resident, read from `/proc/self/status`.

#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use llm_do_core::{AgentSpec, Approval, Message, ModelRequest, Output};
use llm_do_models::{Script, asks, instructed, replies, says};
use llm_do_runtime::{RunReport, Runtime};
use llm_do_testing::{FunctionTool, TestProject};
use llm_do_tools::{FileDescriptors, Process, ProcessSettings};
use serde_json::json;

const CHILDREN: usize = 10;
const MEGABYTE: usize = 1024 * 1024;

fn main() {
    let is_bench = std::env::args().any(|word| word == "--bench");
    let (messages, rounds, size) = if is_bench { (2_000, 21, 200 * MEGABYTE) } else { (20, 1, MEGABYTE) };
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("an executor");
    let mut times: Vec<Duration> =
        (0..rounds).map(|_| executor.block_on(fork(messages)) / CHILDREN as u32).collect();
    times.sort();
    let micros = |index: usize| times[index].as_secs_f64() * 1e6;
    println!(
        "a conversation of {messages} messages forked into {CHILDREN} children, each shares all of them"
    );
    println!(
        "per child until its first request: median {:.0} µs, longest {:.0} µs",
        micros(rounds / 2),
        micros(rounds - 1)
    );
    executor.block_on(long_result(size));
}

/// A request as the model saw it: when, and with which messages.
type Seen = (Instant, Vec<Arc<Message>>);

/// Forks a conversation. Returns the time from the answer that forks to the first request of the last child.
async fn fork(count: usize) -> Duration {
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let watch = seen.clone();
    let model = replies(move |request: &ModelRequest<'_>| {
        let (now, messages) = (Instant::now(), request.conversation.messages());
        let is_parent = messages.len() == count + 1;
        watch.lock().expect("a lock").push((now, messages.to_vec()));
        let prompts: Vec<String> = (0..CHILDREN).map(|child| format!("part {child}")).collect();
        if is_parent { asks("fork", json!({"prompts": prompts})) } else { says("done") }
    });
    let history = (0..count).map(|index| {
        let text = format!("message {index}: {}", "some words of a conversation ".repeat(20));
        Arc::new(if index % 2 == 0 { Message::user(text) } else { Message::assistant(text) })
    });
    let runtime = runtime(Script::new([model.when(instructed("You are"))]), "".into());
    runtime.run("main", "go on").messages(history).await.expect("an answer");
    let seen = seen.lock().expect("a lock");
    let (parent, children) = (&seen[0], &seen[1..=CHILDREN]);
    for (_, messages) in children {
        let shared = parent.1.iter().zip(messages).filter(|(parents, own)| Arc::ptr_eq(parents, own)).count();
        assert_eq!((shared, messages.len()), (count + 1, count + 3), "all messages of the parent are shared");
    }
    let last = children.iter().map(|(at, _)| *at).max().expect("children");
    last - parent.0
}

fn runtime(model: Script, text: Arc<str>) -> Runtime {
    let main =
        AgentSpec::new("main", "You are main.").toolset("process").toolset("file_descriptors").tool("look");
    let look = FunctionTool::new("look", move |_, _| {
        let text = text.clone();
        async move { Ok(Output::text(text)) }
    });
    TestProject::new()
        .agent(main)
        .toolset(Process::new("process", ProcessSettings::default()).expect("a toolset"))
        .toolset(FileDescriptors::read_only("file_descriptors").expect("a toolset"))
        .tool(look.define(|definition| definition.approval = Approval::PreApproved).shared())
        .model(model)
        .build()
}

/// Lets a tool answer with a long text, and the agent read a page of it.
async fn long_result(size: usize) {
    let script =
        [asks("look", json!({})), asks("read_fd", json!({"fd": "fd:1.0", "start": 100})), says("done")];
    let text: Arc<str> = "a line of forty characters, with its end\n".repeat(size / 41).into();
    let runtime = runtime(Script::each_call(script), text);
    let before = megabytes("VmRSS");
    let started = Instant::now();
    let report = runtime.run("main", "go").await.expect("an answer");
    let took = started.elapsed();
    let (held, peak) = (megabytes("VmRSS") - before, megabytes("VmHWM") - before);
    let shown = shown(&report);
    drop(report);
    let left = megabytes("VmRSS") - before;
    println!(
        "a result of {} MB, of which the model was shown {shown} characters, in {} ms",
        size / MEGABYTE,
        took.as_millis()
    );
    println!(
        "resident beyond the text itself: {held} MB with the report, {left} MB without it; at most, with its making, {peak} MB"
    );
}

/// How many characters of results the model was shown.
fn shown(report: &RunReport) -> usize {
    let results = report.messages.iter().flat_map(|message| message.tool_results());
    results.map(|result| result.text.chars().count()).sum()
}

fn megabytes(name: &str) -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    let kibibytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<i64>().ok());
    kibibytes.unwrap_or_default() / 1024
}
