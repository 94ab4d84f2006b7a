//! Runs whole agent runs against a server and prints what they cost, as one line of JSON.
//!
//! It speaks the driver contract of a benchmark that compares agent runtimes:
//! `--mode seq|conc|oneshot --base URL --model M --runs N --conc N --warmup N [--stream]`, and besides
//! `--family openai|anthropic|responses` and `--threads N`. Each run answers the prompt `go` with the tool
//! `add(a, b)`, and for models named `bench-n…` also with the agent `helper(input)`; its text must end in `done`.
//! The gate is on, and so are events: every run logs them, and where answers are streamed a subscriber counts the deltas.
//!
//! ```text
//! cargo build --profile dist -p llm-do --example bench_driver
//! ```

#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use llm_do::event::{Event, EventBody};
use llm_do::model::{Environment, ModelSettings, StandardModels};
use llm_do::prelude::*;
use serde_json::json;

const INSTRUCTIONS: &str = "You are a calculator.";
const PROMPT: &str = "go";

static TOOL_CALLS: AtomicU64 = AtomicU64::new(0);
static DELTAS: AtomicU64 = AtomicU64::new(0);

/// Add two numbers.
#[tool(access = "read", approval = "pre_approved", effect = "pure")]
async fn add(a: i64, b: i64) -> i64 {
    TOOL_CALLS.fetch_add(1, Ordering::Relaxed);
    a + b
}

/// What the command line says.
struct Settings {
    mode: String,
    base: String,
    model: String,
    family: String,
    runs: u64,
    concurrent: u64,
    warmup: u64,
    threads: usize,
    stream: bool,
}

impl Settings {
    fn read() -> Result<Self, Box<dyn Error>> {
        let mut settings = Self {
            mode: "seq".into(),
            base: std::env::var("BENCH_BASE").unwrap_or_default(),
            model: "bench-t10".into(),
            family: "openai".into(),
            runs: 1,
            concurrent: 1,
            warmup: 0,
            threads: 1,
            stream: false,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(flag) = arguments.next() {
            if flag == "--stream" {
                settings.stream = true;
                continue;
            }
            let value = arguments.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
            match flag.as_str() {
                "--mode" => settings.mode = value,
                "--base" => settings.base = value,
                "--model" => settings.model = value,
                "--family" => settings.family = value,
                "--runs" => settings.runs = value.parse()?,
                "--conc" => settings.concurrent = value.parse()?,
                "--warmup" => settings.warmup = value.parse()?,
                "--threads" => settings.threads = value.parse()?,
                _ => return Err(format!("`{flag}` is not known").into()),
            }
        }
        Ok(settings)
    }

    fn runtime(&self) -> Result<Runtime, Box<dyn Error>> {
        let (provider, base) = match self.family.as_str() {
            "anthropic" => ("anthropic", self.base.clone()),
            "responses" => ("openai", format!("{}/v1", self.base)),
            _ => ("openai-chat", format!("{}/v1", self.base)),
        };
        let keys = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"].map(|name| (name.to_owned(), "bench".to_owned()));
        let addresses = ["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"].map(|name| (name.to_owned(), base.clone()));
        let environment: Environment = keys.into_iter().chain(addresses).collect();
        let model_settings = ModelSettings { stream: Some(self.stream), ..ModelSettings::default() };
        let model = format!("{provider}:{}", self.model);
        let agent = |name: &str| {
            let agent = AgentSpec::new(name, INSTRUCTIONS).description("A helper agent.").tool("add");
            let agent = agent.model(&*model).settings(model_settings.clone());
            if self.model.contains("bench-n") { agent.toolset("helper") } else { agent }
        };
        let project = Project::builder().agent(agent("main")).agent(agent("helper")).tool(add).build()?;
        let limits = Limits { turns: Some(100_000), depth: Some(20), ..Limits::default() };
        let models = StandardModels::new(".").environment(environment);
        let runtime = Runtime::builder(project).models(models).limits(limits);
        Ok(if self.stream { runtime.on_event(count_delta).build()? } else { runtime.build()? })
    }
}

fn count_delta(event: &Event) {
    if matches!(event.body, EventBody::TextDelta(_)) {
        DELTAS.fetch_add(1, Ordering::Relaxed);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let settings = Settings::read()?;
    let mut builder = if settings.threads == 1 {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    builder.worker_threads(settings.threads).enable_all().build()?.block_on(drive(settings))
}

async fn drive(settings: Settings) -> Result<(), Box<dyn Error>> {
    let runtime = Arc::new(settings.runtime()?);
    if settings.mode == "oneshot" {
        println!("{}", run(&runtime).await?);
        return Ok(());
    }
    for _ in 0..settings.warmup {
        run(&runtime).await?;
    }
    let memory_before = memory("VmRSS:");
    let (calls, deltas) = (TOOL_CALLS.load(Ordering::Relaxed), DELTAS.load(Ordering::Relaxed));
    let (processor, started) = (processor_seconds(), Instant::now());
    let measured = if settings.mode == "conc" {
        in_parallel(&runtime, &settings).await
    } else {
        one_by_one(&runtime, settings.runs).await
    };
    let wall = started.elapsed().as_secs_f64();
    println!(
        "{}",
        json!({
            "runs": settings.runs,
            "ok": measured.ok,
            "wall_s": wall,
            "cpu_s": processor_seconds() - processor,
            "per_run_us": measured.microseconds,
            "tool_calls": TOOL_CALLS.load(Ordering::Relaxed) - calls,
            "deltas": DELTAS.load(Ordering::Relaxed) - deltas,
            "rss_start_kb": memory_before,
            "rss_peak_kb": memory("VmHWM:"),
            "error": measured.error,
        })
    );
    Ok(())
}

/// How a number of runs went.
#[derive(Default)]
struct Measured {
    ok: u64,
    microseconds: Vec<u64>,
    error: String,
}

impl Measured {
    fn add(&mut self, result: Result<String, String>) {
        match result {
            Ok(_) => self.ok += 1,
            Err(error) => self.error = error,
        }
    }
}

async fn one_by_one(runtime: &Runtime, runs: u64) -> Measured {
    let mut measured = Measured::default();
    for _ in 0..runs {
        let started = Instant::now();
        let result = run(runtime).await;
        measured.microseconds.push(u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX));
        measured.add(result);
    }
    measured
}

async fn in_parallel(runtime: &Arc<Runtime>, settings: &Settings) -> Measured {
    let begun = Arc::new(AtomicU64::new(0));
    let worker = |_| {
        let (runtime, begun, runs) = (runtime.clone(), begun.clone(), settings.runs);
        tokio::spawn(async move {
            let mut measured = Measured::default();
            while begun.fetch_add(1, Ordering::Relaxed) < runs {
                measured.add(run(&runtime).await);
            }
            measured
        })
    };
    let workers: Vec<_> = (0..settings.concurrent).map(worker).collect();
    let mut total = Measured::default();
    for worker in workers {
        match worker.await {
            Ok(measured) => {
                total.ok += measured.ok;
                total.error.push_str(&measured.error);
            }
            Err(error) => total.error = error.to_string(),
        }
    }
    total
}

async fn run(runtime: &Runtime) -> Result<String, String> {
    let report = runtime.run("main", PROMPT).await.map_err(|error| error.to_string())?;
    let text = report.text().to_string();
    if text.ends_with("done") { Ok(text) } else { Err(format!("unexpected answer `{text}`")) }
}

fn memory(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Returns the seconds that all threads of this process have spent on a processor.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    std::time::Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32).as_secs_f64()
}
