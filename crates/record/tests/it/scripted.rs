//! A run that processes of their own begin and go on with: nested agents, calls side by side, code that calls, questions.
//!
//! What happens is also written outside the record, into logs that are safe before anything goes on: the effects of
//! tools, requests to models, questions. They say what the record must know and what must not be repeated.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use futures::future::join_all;
use llm_do_core::{
    AgentSpec, Answer, Approval, ApprovalRequest, Effect, Event, EventBody, Key, ModelRequest, ModelResult,
    Output, RunId, Scope, Settlement, Status,
};
use llm_do_models::{Script, ScriptedReply, asks, asks_all, replies, says};
use llm_do_record::{Reader, Record};
use llm_do_runtime::{EntrySpec, PromptInput, ResumeOptions, Runtime, unknown_calls};
use llm_do_testing::{FunctionTool, TestProject};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::oracle::{check_order, check_whole};

const DIRECTORY: &str = "LLM_DO_RECORD_TEST_DIRECTORY";
const RESULT_BYTES: &str = "LLM_DO_RECORD_TEST_RESULT_BYTES";
const IS_UNJUDGED: &str = "LLM_DO_RECORD_TEST_IS_UNJUDGED";

/// How a process ended, in its last line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Ended {
    /// The run has its end.
    Done { text: String, usage: String },
    /// The run stopped.
    Stopped { status: Status, error: String },
    /// The record was not opened, or the run was not given out.
    Refused(String),
}

/// The directory of a run: its record, and the logs of what happened.
pub(crate) struct ScriptedRun {
    directory: tempfile::TempDir,
    /// How long some results are.
    result_bytes: usize,
}

impl ScriptedRun {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), result_bytes: 0 }
    }

    /// Another directory for the same run.
    pub(crate) fn another(&self) -> Self {
        Self { result_bytes: self.result_bytes, ..Self::new() }
    }

    /// Results that are so long that the log of the record is moved into its database several times.
    pub(crate) fn with_long_results() -> Self {
        Self { result_bytes: 1_200_000, ..Self::new() }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns whether a file belongs to the record.
    pub(crate) fn is_of_record(&self, path: &Path) -> bool {
        let below = path.strip_prefix(self.directory()).ok().and_then(|path| path.iter().next());
        below.is_some_and(|name| name.to_string_lossy().starts_with("record.db"))
    }

    pub(crate) fn record(&self) -> PathBuf {
        self.directory.path().join("record.db")
    }

    /// The process that begins the run, or goes on with it to its end.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "scripted::scripted_process", "--include-ignored", "--nocapture"])
            .arg("--test-threads=1")
            .env(DIRECTORY, self.directory.path())
            .env(RESULT_BYTES, self.result_bytes.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command
    }

    /// Goes on with the run in an undisturbed process.
    pub(crate) fn go_on(&self) -> Ended {
        Self::finish(&mut self.command())
    }

    /// Goes on with the run, though nobody says what became of unknown calls.
    #[cfg(feature = "failpoints")]
    pub(crate) fn go_on_unjudged(&self) -> Ended {
        Self::finish(self.command().env(IS_UNJUDGED, "1"))
    }

    fn finish(command: &mut Command) -> Ended {
        let mut child = command.spawn().unwrap();
        let ended = ended(child.stdout.take().unwrap());
        assert!(child.wait().unwrap().success());
        ended.expect("an undisturbed process says how it ended")
    }

    /// Adds to a log.
    pub(crate) fn append(&self, name: &Path, bytes: &[u8]) {
        let mut file =
            std::fs::File::options().append(true).create(true).open(self.directory().join(name)).unwrap();
        file.write_all(bytes).unwrap();
    }

    /// The lines of a log.
    pub(crate) fn log(&self, name: &str) -> Vec<String> {
        lines(&self.directory.path().join(name))
    }

    /// The events in the record, read by a connection of their own.
    pub(crate) fn events(&self) -> Vec<Arc<Event>> {
        events_of(&self.record())
    }
}

/// Returns how a process ended, from what it printed; none if it did not come to that.
pub(crate) fn ended(output: impl Read) -> Option<Ended> {
    let lines = BufReader::new(output).lines().map_while(Result::ok);
    lines.filter_map(|line| serde_json::from_str(line.strip_prefix("ended ")?).ok()).last()
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The events of the only run of a record; none if there is no run yet.
pub(crate) fn events_of(record: &Path) -> Vec<Arc<Event>> {
    let Some(reader) = Reader::open(record).unwrap() else { return Vec::new() };
    match reader.find("last") {
        Ok(run) => reader.events(run.id, None).unwrap(),
        Err(llm_do_record::FindError::NotFound) => Vec::new(),
        Err(error) => panic!("{error:?}"),
    }
}

/// What every interrupted run must agree with in the end: the record, the logs and the run that was not interrupted.
pub(crate) struct Unbroken {
    ended: Ended,
    effects: Vec<String>,
    pub(crate) requests: usize,
}

impl Unbroken {
    /// Makes the run without a disturbance.
    pub(crate) fn new(run: &ScriptedRun) -> Self {
        let ended = run.go_on();
        assert!(matches!(ended, Ended::Done { .. }), "{ended:?}");
        let unbroken = Self {
            ended,
            effects: sorted(payments(&run.log("effects.log"))),
            requests: run.log("requests.log").len(),
        };
        assert!(unbroken.effects.len() >= 7 && unbroken.requests >= 10, "{:?}", unbroken.effects);
        check_whole(&run.record(), "unbroken");
        unbroken
    }

    /// Checks a run that was interrupted, and then went on to its end.
    pub(crate) fn check_end(&self, run: &ScriptedRun, ended: &Ended, context: &str) {
        assert_eq!(ended, &self.ended.after(lost_requests(&run.events())), "{context}");
        // Once each: neither lost nor repeated.
        assert_eq!(sorted(payments(&run.log("effects.log"))), self.effects, "{context}");
        check_whole(&run.record(), context);
        check_order(&run.events(), context);
    }
}

impl Ended {
    /// How it ends if so many requests were lost, and asked again.
    fn after(&self, lost: u64) -> Self {
        let Self::Done { text, usage } = self else { panic!("{self:?}") };
        let mut usage: Value = serde_json::from_str(usage).unwrap();
        let model = &mut usage["script"];
        let requests = model["requests"].as_u64().unwrap();
        model["requests"] = (requests + lost).into();
        let unpriced = model["cost"]["unpriced"].as_u64().unwrap();
        model["cost"]["unpriced"] = (unpriced + lost).into();
        Self::Done { text: text.clone(), usage: usage.to_string() }
    }
}

/// Counts the requests that were in flight when a process ended. Each may have been charged, so it counts as one.
fn lost_requests(events: &[Arc<Event>]) -> u64 {
    let is_lost = |event: &&Arc<Event>| match &event.body {
        EventBody::ModelResponse { result: ModelResult::Failed { error }, .. } => {
            error.message == "the run was broken off before the answer was recorded"
        }
        _ => false,
    };
    events.iter().filter(is_lost).count() as u64
}

/// The effects that must not happen twice.
pub(crate) fn payments(effects: &[String]) -> Vec<String> {
    effects.iter().filter(|line| line.starts_with("pay ")).cloned().collect()
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

/// A log whose lines are on disk before whoever writes them goes on.
#[derive(Clone)]
struct Journal(PathBuf);

impl Journal {
    fn write(&self, name: &str, line: &str) {
        let path = self.0.join(name);
        let mut file = std::fs::File::options().append(true).create(true).open(path).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
        file.sync_data().unwrap();
    }

    fn tool(&self, name: &'static str, effect: Effect, result_bytes: usize) -> FunctionTool {
        let journal = self.clone();
        FunctionTool::new(name, move |input, call| {
            journal.write("effects.log", &format!("{name} {} {}", call.key(), input["n"]));
            async move {
                tokio::task::yield_now().await;
                let short = result_of(name, &input["n"]);
                Ok(Output::text(format!("{short}{}", filler(call.key(), result_bytes))))
            }
        })
        .define(|definition| definition.effect = effect)
    }

    fn reply(&self, reply: ScriptedReply) -> ScriptedReply {
        let journal = self.clone();
        replies(move |request: &ModelRequest<'_>| {
            journal.write("requests.log", request.instructions);
            reply.clone()
        })
    }

    fn script(&self, replies: impl IntoIterator<Item = ScriptedReply>) -> Script {
        Script::by_turn(replies.into_iter().map(|reply| self.reply(reply)))
    }
}

fn result_of(name: &str, n: &Value) -> String {
    format!("{name} did {n}")
}

/// A text that differs for each call, so that its value is not kept once for all of them.
fn filler(key: &Key, bytes: usize) -> String {
    let text = format!(" and then {key}");
    text.repeat(bytes / text.len())
}

/// Code whose only effects are the calls it makes: one after the other, then side by side.
fn fan_out() -> FunctionTool {
    FunctionTool::new("fan_out", |_, call| async move {
        let first = call.call("pay", json!({"n": 100})).await?.to_text();
        let calls = (0..3).map(|n| call.call("worker", json!({"input": format!("branch {n}")})));
        let branches = join_all(calls).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        let branches: Vec<String> = branches.iter().map(|branch| branch.to_text().to_string()).collect();
        Ok(Output::text(format!("{first}; {branches:?}")))
    })
    .define(|definition| {
        definition.effect = Effect::Calls;
        definition.approval = Approval::PreApproved;
    })
}

fn runtime(record: Record, journal: &Journal, result_bytes: usize) -> Runtime {
    let main = AgentSpec::new("main", "You are main.").model(journal.script([
        asks_all([("pay", json!({"n": 1})), ("worker", json!({"input": "deep"})), ("pay", json!({"n": 2}))]),
        asks("fan_out", json!({})),
        asks("look", json!({"n": 3})),
        says("main is done"),
    ]));
    let worker = AgentSpec::new("worker", "You work.").model(
        journal.script([asks_all([("pay", json!({"n": 7})), ("look", json!({"n": 8}))]), says("worked")]),
    );
    let start = EntrySpec::new("start", "Starts", |input: PromptInput, call| async move {
        let answer = call.call("main", input.input.as_str()).await?.to_text();
        let paid = call.call("pay", json!({"n": 200})).await?.to_text();
        Ok(format!("{answer}, {paid}"))
    });
    let asked = journal.clone();
    let approver = move |request: ApprovalRequest| {
        asked.write("questions.log", &format!("{} {}", request.id, request.name));
        let answer = if request.name == "look" { Answer::Session(Scope::Tool) } else { Answer::Once };
        async move { answer }
    };
    TestProject::new()
        .entry(start.unwrap())
        .agent(main.tool("pay").toolset("worker").tool("fan_out").tool("look"))
        .agent(worker.tool("pay").tool("look"))
        .tool(journal.tool("pay", Effect::Once, 0))
        .tool(journal.tool("look", Effect::Idempotent, result_bytes))
        .tool(fan_out())
        .runtime(move |runtime| runtime.store(Arc::new(record)).approver(approver))
        .build()
}

/// Judges unknown calls as a person would who looks at what happened.
fn judged(events: &[Arc<Event>], effects: &[String]) -> Vec<(Key, Settlement)> {
    let judge = |key: Key, n: &Value| {
        let happened = effects.iter().any(|line| line.starts_with(&format!("pay {key} ")));
        let output = Output::text(result_of("pay", n));
        let settlement = if happened { Settlement::Happened { output } } else { Settlement::DidNotHappen };
        (key, settlement)
    };
    let unknown = unknown_calls(events);
    unknown.into_iter().map(|unknown| judge(unknown.call.id.clone(), &unknown.input.value()["n"])).collect()
}

/// What the process does: begins the run, or goes on with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by other tests"]
async fn scripted_process() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    // libtest has begun a line.
    println!();
    #[cfg(feature = "failpoints")]
    crate::fail_points::arm();
    let ended = begin_or_go_on(&PathBuf::from(directory)).await;
    println!("ended {}", serde_json::to_string(&ended).unwrap());
}

async fn begin_or_go_on(directory: &Path) -> Ended {
    let result_bytes = std::env::var(RESULT_BYTES).unwrap().parse().unwrap();
    let record = match Record::open(directory.join("record.db")) {
        Ok(record) => record,
        Err(error) => return Ended::Refused(error.to_string()),
    };
    let earlier = recorded(&record);
    let journal = Journal(directory.to_owned());
    let runtime = runtime(record, &journal, result_bytes);
    let finished = match earlier {
        None => runtime.run("start", "go").await,
        Some((id, events)) => {
            let mut options = ResumeOptions::default();
            if std::env::var_os(IS_UNJUDGED).is_none() {
                options.settlements = judged(&events, &lines(&directory.join("effects.log")));
            }
            match runtime.resume_with(id, options).await {
                Ok(run) => run.await,
                // It had ended, and only the process had not.
                Err(llm_do_runtime::ResumeError::Ended { status: Status::Done, .. }) => {
                    return of_record(&events);
                }
                Err(error) => return Ended::Refused(error.to_string()),
            }
        }
    };
    runtime.shutdown().await;
    match finished {
        Ok(report) => done(&report.text(), &report.usage),
        Err(error) => Ended::Stopped { status: error.status(), error: error.to_string() },
    }
}

fn recorded(record: &Record) -> Option<(RunId, Vec<Arc<Event>>)> {
    let reader = record.reader().unwrap();
    let run = reader.find("last").ok()?;
    Some((run.id, reader.events(run.id, None).unwrap()))
}

fn of_record(events: &[Arc<Event>]) -> Ended {
    let end = events.iter().rev().find_map(|event| match &event.body {
        EventBody::RunFinished { output: Some(output), usage, .. } => Some(done(&output.to_text(), usage)),
        _ => None,
    });
    end.unwrap_or_else(|| Ended::Refused("the run has ended without an output".to_owned()))
}

fn done(text: &str, usage: &llm_do_core::UsageByModel) -> Ended {
    Ended::Done { text: text.to_owned(), usage: serde_json::to_string(usage).unwrap() }
}
