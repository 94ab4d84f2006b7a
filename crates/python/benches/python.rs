//! What a Python tool costs over what the gate costs anyway.
//!
//! `calls`: an entry calls a trivial Python tool and a trivial Rust tool in turns, through the gate, one after the
//! other. `sleeps`: 1,000 async Python tools sleep 100 ms at once. `start`: the host is started and loads one small
//! file, in turns with `python3 -c pass`. All of it in one run, so that only ratios count.
//!
//! `cargo bench -p llm-do-python --bench python`. Without `python3` nothing is measured.

#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use llm_do_core::{ApprovalMode, CallContext, Limits, Output, Tool, ToolError};
use llm_do_project::{Code, ProjectFiles, WantedCode};
use llm_do_python::{PythonSettings, python_code};
use llm_do_runtime::{EntrySpec, Project, PromptInput, Runtime};
use llm_do_testing::{FunctionTool, TestDir};
use llm_do_tools::ToolsetEnv;
use serde_json::json;
use tokio::runtime::{Builder, Runtime as Executor};

/// How much is measured: little where `cargo test` only wants to see that it works.
struct Volume {
    calls: usize,
    sleepers: usize,
    starts: usize,
}

const SOURCE: &str = "import asyncio\n\
    def plain(n: int) -> int:\n    return n\n\
    async def quick(n: int) -> int:\n    return n\n\
    async def nap(n: int) -> int:\n    await asyncio.sleep(0.1)\n    return n\n\
    TOOLS = [plain, quick, nap]\n";

fn main() {
    let volume = match std::env::args().any(|word| word == "--bench") {
        true => Volume { calls: 3_000, sleepers: 1_000, starts: 30 },
        false => Volume { calls: 20, sleepers: 50, starts: 1 },
    };
    if !Command::new("python3")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
    {
        println!("there is no python3: nothing is measured");
        return;
    }
    let folder = TestDir::new();
    let executor = Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("an executor");
    let code = load_source(&folder, SOURCE);
    calls(&executor, &code, &volume);
    sleeps(&executor, &code, &volume);
    drop(code);
    starts(&folder, &volume);
}

/// One call after the other, of Python and Rust in turns.
fn calls(executor: &Executor, code: &Code, volume: &Volume) {
    let names = ["rust", "plain", "quick"];
    let times: Arc<Mutex<Vec<Vec<Duration>>>> = Arc::new(Mutex::new(vec![Vec::new(); names.len()]));
    let (seen, count) = (times.clone(), volume.calls);
    let entry = EntrySpec::new("go", "", move |_: PromptInput, call: CallContext| {
        let seen = seen.clone();
        async move {
            for n in 0..count {
                for (index, name) in names.into_iter().enumerate() {
                    let start = Instant::now();
                    call.call(name, json!({ "n": n })).await.map_err(ToolError::from_failure)?;
                    if let Ok(mut seen) = seen.lock() {
                        seen[index].push(start.elapsed());
                    }
                }
            }
            Ok::<_, ToolError>("done")
        }
    });
    run(executor, code, entry.expect("an entry"));
    let times = times.lock().expect("times");
    let medians: Vec<Duration> = times.iter().map(|times| median(times)).collect();
    println!("{} calls each, one after the other (median)", volume.calls);
    for (name, median) in names.iter().zip(&medians) {
        let over = median.saturating_sub(medians[0]);
        println!("  {name:8} {median:>10.1?}   over the gate {over:>10.1?}");
    }
}

/// Many calls at once that wait.
fn sleeps(executor: &Executor, code: &Code, volume: &Volume) {
    let count = volume.sleepers;
    let entry = EntrySpec::new("go", "", move |_: PromptInput, call: CallContext| async move {
        let start = Instant::now();
        let calls = (0..count).map(|n| call.call("nap", json!({ "n": n })));
        for answer in futures::future::join_all(calls).await {
            answer.map_err(ToolError::from_failure)?;
        }
        println!("{count} async tools that sleep 100 ms: {:.0?}", start.elapsed());
        Ok::<_, ToolError>("done")
    });
    for _ in 0..3 {
        run(executor, code, entry.as_ref().expect("an entry").clone());
    }
}

fn run(executor: &Executor, code: &Code, entry: EntrySpec) {
    let rust = FunctionTool::new("rust", |_, _| async { Ok(Output::json(json!(1))) });
    let mut project = Project::builder().entry(entry).tool(Arc::new(rust) as Arc<dyn Tool>);
    for tool in &code.tools {
        project = project.tool(tool.value.clone());
    }
    let project = project.build().expect("a project");
    let runtime = Runtime::builder(project).build().expect("a runtime");
    let limits = Limits { tool_calls: None, ..Limits::default() };
    executor.block_on(async {
        let run = runtime.run("go", "x").approval_mode(ApprovalMode::ApproveAll).limits(limits);
        run.await.expect("the run");
        runtime.shutdown().await;
    });
}

/// Starting the host, in turns with the bare interpreter.
fn starts(folder: &TestDir, volume: &Volume) {
    let (mut bare, mut host, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..volume.starts {
        let start = Instant::now();
        Command::new("python3").args(["-c", "pass"]).status().expect("python3");
        bare.push(start.elapsed());
        let start = Instant::now();
        let code = load_source(folder, "def plain(n: int) -> int:\n    return n\nTOOLS = [plain]\n");
        host.push(start.elapsed());
        drop(code);
        whole.push(start.elapsed());
    }
    let [bare, host, whole] = [&bare, &host, &whole].map(|times| median(times));
    println!("start (median of {})", volume.starts);
    println!("  python3 -c pass     {bare:>8.1?}");
    println!("  host loaded         {host:>8.1?}   {:.2} times", host.as_secs_f64() / bare.as_secs_f64());
    println!("  loaded and left     {whole:>8.1?}");
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn load_source(directory: &TestDir, source: &str) -> Code {
    directory.write("tools.py", source);
    let settings = PythonSettings { cache: Some(directory.join("cache")), ..PythonSettings::default() };
    let env = ToolsetEnv { directory: directory.path().to_owned(), ..ToolsetEnv::default() };
    load(directory.path(), &[directory.join("tools.py")], &env, &settings)
}

fn load(root: &Path, files: &[PathBuf], env: &ToolsetEnv, settings: &PythonSettings) -> Code {
    let own = ProjectFiles::default();
    let wanted = WantedCode {
        root,
        interpreter: None,
        load_limit: None,
        files,
        classes: &[],
        variables: &[],
        keys: &[],
        entry: None,
        own: &own,
    };
    let loaded = python_code(wanted, env, settings);
    loaded.map_err(|problems| format!("{problems:?}")).expect("files that load")
}
