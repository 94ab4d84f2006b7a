//! What recording costs: a safe step, a run, its size, its resumption, lists of many runs, and the start of the binary.
//!
//! Runs with and without a record take turns, so that a busy machine disturbs both alike. The start of the binary is measured if
//! it was built in the same profile (`cargo build --release -p llm-do-cli`), or if `LLM_DO_BIN` names it.

#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use llm_do_core::{
    AgentSpec, Approval, CallInfo, Digest, Effect, Event, EventBody, Key, Name, Output, Payload, RunId,
    RunStart, Status, UsageByModel,
};
use llm_do_models::{Script, ScriptedReply, asks, says};
use llm_do_record::{Reader, Record, Retention, RunFilter, UsageBy};
use llm_do_runtime::{Durability, MemoryStore, Project, RetryPolicy, Runtime, Store};
use llm_do_testing::FunctionTool;
use serde_json::json;
use tokio::runtime::Builder;
use uuid::Uuid;

/// The turns of a long run.
const TURNS: usize = 400;

/// Names the record to which a process of [`crowd`] writes.
const CROWD: &str = "LLM_DO_RECORD_BENCH_CROWD";

/// How many processes write at once.
const PROCESSES: usize = 8;

fn main() {
    // `cargo test --benches` gives no `--bench`: then small volumes show that it works.
    let full = std::env::args().any(|word| word == "--bench");
    if let Some(path) = std::env::var_os(CROWD) {
        return write_in_crowd(Path::new(&path), if full { 500 } else { 10 });
    }
    let executor = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("an executor");
    executor.block_on(async {
        steps(if full { 2_000 } else { 20 }).await;
        crowd(full);
        runs(if full { 5 } else { 1 }, if full { TURNS } else { 5 }).await;
        resuming(if full { 4_000 } else { 10 }).await;
        lists(if full { 10_000 } else { 20 }).await;
        starts(if full { 40 } else { 2 });
    });
}

fn event(run: RunId, seq: u64, body: EventBody) -> Arc<Event> {
    let call = Arc::new(CallInfo {
        run,
        id: Key::root(),
        parent: None,
        depth: 0,
        path: "".into(),
        agent: Name::from(""),
    });
    Arc::new(Event { seq: Some(seq), key: Key::root(), time: Timestamp::now(), call, body })
}

fn started(run: RunId) -> Arc<Event> {
    let start = RunStart::new("main", Payload::new(json!({"input": "Sort the inbox"})), Digest::hash("pin"));
    event(run, 0, EventBody::RunStarted(Box::new(start)))
}

/// How long a run waits until an event is safe.
async fn steps(count: u64) {
    let directory = tempfile::tempdir().expect("a directory");
    let record = Record::open(directory.path().join("record.db")).expect("a record");
    for (name, safety) in [("process", Durability::Process), ("power", Durability::Power)] {
        let waits = waits(&record, RunId(Uuid::from_u128(safety as u128 + 1)), count, safety).await;
        println!("a step that survives the loss of the {name:8} {}", Percentiles(waits));
    }
}

/// The same while several processes write to one record.
fn crowd(full: bool) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("record.db");
    drop(Record::open(&path).expect("a record"));
    let program = std::env::current_exe().expect("this program");
    let start = || {
        let mut command = Command::new(&program);
        command.env(CROWD, &path).stdout(Stdio::piped());
        if full {
            command.arg("--bench");
        }
        command.spawn().expect("a process")
    };
    let children: Vec<Child> = (0..PROCESSES).map(|_| start()).collect();
    let output = |child: Child| {
        let output = child.wait_with_output().expect("an end");
        assert!(output.status.success(), "a process of the crowd failed");
        String::from_utf8(output.stdout).expect("numbers")
    };
    let outputs: Vec<String> = children.into_iter().map(output).collect();
    let nanoseconds =
        outputs.iter().flat_map(|output| output.lines()).map(|line| line.parse().expect("a number"));
    let waits: Vec<Duration> = nanoseconds.map(Duration::from_nanos).collect();
    assert!(waits.len() > PROCESSES, "every process wrote");
    println!("the same (process) with {PROCESSES} processes at once {}", Percentiles(waits));
}

/// What each process of [`crowd`] does.
fn write_in_crowd(path: &Path, count: u64) {
    let executor = Builder::new_current_thread().enable_all().build().expect("an executor");
    let record = Record::open(path).expect("a record");
    let run = RunId(Uuid::from_u128(u128::from(std::process::id())));
    for wait in executor.block_on(waits(&record, run, count, Durability::Process)) {
        println!("{}", wait.as_nanos());
    }
}

/// Writes events one after the other. Returns how long each took.
async fn waits(record: &Record, run: RunId, count: u64, safety: Durability) -> Vec<Duration> {
    let writer = record.begin(run).await.expect("a writer");
    writer.enqueue(&started(run), Durability::Process).expect("taken").await.expect("written");
    let mut waits = Vec::new();
    for seq in 1..count {
        let body = EventBody::Notice { text: "a line of some length, as notices have it".into() };
        let event = event(run, seq, body);
        let start = Instant::now();
        writer.enqueue(&event, safety).expect("taken").await.expect("written");
        waits.push(start.elapsed());
    }
    waits
}

/// The median and the slow end of some times.
struct Percentiles(Vec<Duration>);

impl std::fmt::Display for Percentiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut times = self.0.clone();
        times.sort();
        let at = |part: usize| times[(times.len() * part / 1000).min(times.len() - 1)].as_secs_f64() * 1e3;
        write!(f, "p50 {:.2} ms, p99 {:.2} ms", at(500), at(990))
    }
}

fn runtime(replies: Vec<ScriptedReply>, store: Option<Arc<dyn Store>>) -> Runtime {
    let tool =
        FunctionTool::new("look", |_, _| async move { Ok(Output::text("seen")) }).define(|definition| {
            definition.effect = Effect::Pure;
            definition.approval = Approval::PreApproved;
        });
    let agent = AgentSpec::new("main", "You look.").model(Script::by_turn(replies)).tool("look");
    let project = Project::builder().agent(agent).tool(tool).build().expect("a project");
    let mut builder = Runtime::builder(project).retry(RetryPolicy { attempts: 1, ..RetryPolicy::default() });
    builder = builder.limits(llm_do_core::Limits {
        turns: Some(100_000),
        requests: Some(100_000),
        tool_calls: Some(100_000),
        repeats: Some(100_000),
        ..Default::default()
    });
    if let Some(store) = store {
        builder = builder.store(store);
    }
    builder.build().expect("a runtime")
}

fn replies(turns: usize, delay: Duration) -> Vec<ScriptedReply> {
    let looks = (0..turns).map(|turn| asks("look", json!({"n": turn, "path": "src/main.rs"})));
    let all = looks.chain([says("done")]);
    all.map(|reply| if delay.is_zero() { reply } else { reply.after(delay) }).collect()
}

/// What a run over a model of 20 ms loses by being recorded, and how large its record is.
async fn runs(rounds: usize, turns: usize) {
    let (mut with, mut without, mut bytes) = (Vec::new(), Vec::new(), (0, 0));
    for _ in 0..rounds {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("record.db");
        let record = Record::open(&path).expect("a record");
        for (store, times) in [(None, &mut without), (Some(Arc::new(record) as Arc<dyn Store>), &mut with)] {
            let runtime = runtime(replies(turns, Duration::from_millis(20)), store);
            let start = Instant::now();
            runtime.run("main", "go").await.expect("an answer");
            times.push(start.elapsed().as_secs_f64());
        }
        bytes = size(&path);
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (with, without) = (median(&mut with), median(&mut without));
    println!(
        "{turns} turns over a model of 20 ms: {without:.2} s, recorded {with:.2} s ({:+.1} %)",
        (with / without - 1.0) * 100.0
    );
    let (bytes, payloads) = bytes;
    println!(
        "{turns} turns in the record: {:.2} MB, {:.2} MB of it payloads",
        bytes as f64 / 1e6,
        payloads as f64 / 1e6
    );
}

/// The bytes of a record that are in use, and those of them that are large values.
fn size(path: &Path) -> (i64, i64) {
    let connection = rusqlite::Connection::open(path).expect("a connection");
    let number =
        |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).expect("a number");
    let payloads = "SELECT coalesce(sum(length(body)), 0) FROM blobs";
    let payloads = connection.query_row(payloads, [], |row| row.get(0)).expect("a sum");
    ((number("page_count") - number("freelist_count")) * number("page_size"), payloads)
}

/// How long the binary takes for a run whose model answers at once, with and without a record.
fn starts(rounds: usize) {
    let beside = || Some(std::env::current_exe().ok()?.parent()?.parent()?.join("llm-do"));
    let binary = std::env::var_os("LLM_DO_BIN").map(PathBuf::from).or_else(beside);
    let Some(binary) = binary.filter(|binary| binary.exists()) else {
        return println!("the start of the binary: not measured, it is not built");
    };
    let directory = tempfile::tempdir().expect("a directory");
    let agent = "---\nname: main\nmodel: test:echo\n---\nEcho.\n";
    std::fs::write(directory.path().join("main.agent"), agent).expect("an agent");
    let time = |arguments: &[&str]| {
        let mut command = Command::new(&binary);
        command.args(["run", "main.agent", "hello"]).args(arguments).current_dir(directory.path());
        command.env("HOME", directory.path()).stdout(Stdio::null());
        command.env_remove("XDG_STATE_HOME").env_remove("LLM_DO_RECORD");
        let start = Instant::now();
        assert!(command.status().expect("the binary").success());
        start.elapsed()
    };
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        with.push(time(&[]));
        without.push(time(&["--no-record"]));
    }
    let bytes = std::fs::metadata(&binary).map_or(0, |file| file.len());
    println!("a whole run of the binary, recorded {}", Percentiles(with));
    println!("a whole run of the binary, --no-record {}", Percentiles(without));
    println!("the binary: {:.1} MB", bytes as f64 / 1e6);
}

/// How long it takes until a run of many turns goes on: it is read, indexed and entered again.
async fn resuming(turns: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("record.db");
    let kept = MemoryStore::default();
    let report = runtime(replies(turns, Duration::ZERO), Some(Arc::new(kept.clone())))
        .run("main", "go")
        .await
        .expect("an answer");
    let record = Record::open(&path).expect("a record");
    let events = kept.read(report.id, None).await.expect("events");
    let writer = record.begin(report.id).await.expect("a writer");
    // The last answer is missing, as if the process had been killed while the model wrote it.
    let last = events
        .iter()
        .rposition(|event| matches!(event.body, EventBody::ModelRequest { .. }))
        .expect("a request");
    for event in &events[..last] {
        drop(writer.enqueue(event, Durability::Buffered).expect("taken"));
    }
    drop(writer);
    record.read(report.id, None).await.expect("everything was written");
    let runtime = runtime(replies(turns, Duration::ZERO), Some(Arc::new(record)));
    let start = Instant::now();
    let resumed = runtime.resume(report.id).await.expect("a run").await.expect("an answer");
    println!("{turns} turns ({last} events) resumed in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    assert_eq!(resumed.text(), report.text());
    let record = Record::open(&path).expect("a record");
    let run = record.reader().expect("a reader").run(report.id).expect("a row").expect("a run");
    let mut start = Instant::now();
    // Its claim goes a moment after its end.
    while record.remove(vec![run.clone()]).await.expect("removed") == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        start = Instant::now();
    }
    println!("the same run removed in {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
}

/// How long lists take when there are many runs.
async fn lists(count: u64) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("record.db");
    let record = Record::open(&path).expect("a record");
    for number in 0..count {
        let run = RunId(Uuid::from_u128(
            u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835),
        ));
        let writer = record.begin(run).await.expect("a writer");
        drop(writer.enqueue(&started(run), Durability::Buffered).expect("taken"));
        let used = llm_do_core::Usage { requests: 1, input: 100 + number, output: 50, ..Default::default() };
        let response = llm_do_core::ModelResponse::new(
            llm_do_core::Message::assistant("done"),
            llm_do_core::StopReason::EndTurn,
            used,
        );
        let response = EventBody::ModelResponse {
            model: format!("openai:gpt-{}", number % 7).into(),
            result: llm_do_core::ModelResult::Response(Arc::new(response)),
            duration_ms: 1,
        };
        drop(writer.enqueue(&event(run, 1, response), Durability::Buffered).expect("taken"));
        let finished = EventBody::RunFinished {
            status: Status::Done,
            output: Some(Output::text("done")),
            error: None,
            usage: UsageByModel::default(),
            duration_ms: 1,
        };
        let ack = writer.enqueue(&event(run, 2, finished), Durability::Process).expect("taken");
        if number % 500 == 0 {
            ack.await.expect("written");
        }
    }
    record.read(RunId(Uuid::from_u128(0)), None).await.expect("everything was written");
    let timed = |name: &str, work: &dyn Fn(&Reader)| {
        let start = Instant::now();
        work(&Reader::open(&path).expect("a record").expect("a file"));
        println!("{count} runs: {name} in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    };
    timed("the newest 20", &|reader| {
        let filter = RunFilter { limit: Some(20), ..RunFilter::default() };
        reader.runs(&filter).expect("runs");
    });
    timed("all with a status", &|reader| {
        let filter = RunFilter { status: Some("done".into()), ..RunFilter::default() };
        reader.runs(&filter).expect("runs");
    });
    timed("one of them", &|reader| {
        let run = reader.find("0000").expect("a run");
        reader.events(run.id, None).expect("events");
    });
    timed("usage by model", &|reader| drop(reader.usage(UsageBy::Model, None).expect("usage")));
    for what in ["the first retention of a day", "every later one"] {
        let start = Instant::now();
        record.apply_retention(Retention::default(), Duration::from_secs(60)).await.expect("a sweep");
        println!("{count} runs: {what} in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    }
}
