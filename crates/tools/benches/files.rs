//! What files cost through the gate, beside the plainest way to have them.
//!
//! `reads`: an agent reads 10,000 small files in one run (dispatcher, gate, events, record in memory), and the
//! same files are read by `std::fs::read`. `search`: `search_files` and `rg` look for the same patterns in a
//! tree of 100,000 files. Both take turns within one process, so that only ratios count. On a machine that is busy
//! with other things, the processor time of the process (`cpu`) says more than the time that passes.
//!
//! `cargo bench -p llm-do-tools --bench files -- [reads|search]`. Where `rg` is not in the `PATH` (or named by
//! `LLM_DO_RG`), the search is measured alone.

#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use llm_do_core::{
    AgentSpec, CallContext, Limits, Message, Model, ModelError, ModelPart, ModelRequest, ModelResponse,
    ModelSession, ModelStream, Name, Part, Role, StopReason, ToolCall, ToolError, Usage,
};
use llm_do_runtime::{EntrySpec, Project, PromptInput, Runtime};
use llm_do_testing::TestDir;
use llm_do_tools::{Filesystem, FilesystemSettings};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime as Executor};

/// How much is measured: little where `cargo test` only wants to see that it works.
struct Volume {
    rounds: usize,
    reads: usize,
    searched: usize,
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let has = |word: &str| words.iter().any(|other| other == word);
    let volume = match has("--bench") {
        true => Volume { rounds: 15, reads: 10_000, searched: 100_000 },
        false => Volume { rounds: 1, reads: 200, searched: 500 },
    };
    let executor = Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("an executor");
    if !has("search") {
        reads(&executor, &volume);
    }
    if !has("reads") {
        search(&executor, &volume);
    }
}

fn reads(executor: &Executor, volume: &Volume) {
    let tree = Tree::new();
    let paths = tree.plant(volume.reads);
    println!("reading {} files of about 1 KiB, {} rounds", paths.len(), volume.rounds);
    println!("{:24} {:>11} {:>11} {:>7} {:>7} {:>7}", "", "gate", "std::fs", "best", "median", "cpu");
    for (title, at_once) in [("100 reads per turn", 100), ("10 reads per turn", 10), ("1 read per turn", 1)] {
        let runtime = reading(&tree, &paths, at_once);
        let mut rounds = Rounds::default();
        for _ in 0..volume.rounds {
            rounds.ours.push(measured(|| through_the_gate(executor, &runtime)));
            rounds.plain.push(measured(|| plainly(&tree, &paths)));
        }
        rounds.print(title);
    }
    for (title, at_once) in [("by code, 100 at once", 100), ("by code, one by one", 1)] {
        let runtime = read_by_code(&tree, &paths, at_once);
        let mut rounds = Rounds::default();
        for _ in 0..volume.rounds {
            rounds.ours.push(measured(|| {
                executor.block_on(runtime.run("read_all", "go").into_future()).expect("an answer");
            }));
            rounds.plain.push(measured(|| plainly(&tree, &paths)));
        }
        rounds.print(title);
    }
}

/// A project whose code reads all files, so many at once, through the gate like everybody else.
fn read_by_code(tree: &Tree, paths: &[String], at_once: usize) -> Runtime {
    let files = Filesystem::new("files", tree.0.path(), FilesystemSettings::default());
    let paths: Arc<[String]> = paths.into();
    let read_all = EntrySpec::new("read_all", "Reads all", move |_: PromptInput, call: CallContext| {
        let paths = paths.clone();
        async move {
            let read = |path: &String| {
                let (call, path) = (call.clone(), path.clone());
                async move { call.call("files.read_file", json!({"path": path})).await }
            };
            let mut answers = stream::iter(paths.iter().map(read)).buffered(at_once);
            while let Some(answer) = answers.next().await {
                answer?;
            }
            Ok::<_, ToolError>("done".to_owned())
        }
    });
    let project =
        Project::builder().toolset(files.expect("a toolset")).entry(read_all.expect("an entry")).build();
    Runtime::builder(project.expect("a project")).build().expect("a runtime")
}

fn through_the_gate(executor: &Executor, runtime: &Runtime) {
    executor.block_on(runtime.run("main", "go").into_future()).expect("an answer");
}

fn plainly(tree: &Tree, paths: &[String]) {
    let bytes: usize = paths.iter().map(|path| fs::read(tree.0.join(path)).expect("a file").len()).sum();
    assert!(bytes > paths.len(), "the files have something in them");
}

fn search(executor: &Executor, volume: &Volume) {
    let tree = Tree::new();
    tree.plant(volume.searched);
    let rg = rg();
    match &rg {
        Some(rg) => println!("searching {} files beside {}", volume.searched, version(rg)),
        None => println!("searching {} files; there is no `rg` to compare with", volume.searched),
    }
    println!("{:24} {:>11} {:>11} {:>7} {:>7}", "", "tool", "rg", "best", "median");
    for (title, pattern) in [
        ("a word in few files", "needle"),
        ("a word that is nowhere", "no such text anywhere"),
        ("a class of words", r"nee[a-z]le\s+[0-9]+"),
        ("without case", "(?i)NEEDLE"),
    ] {
        let arguments = json!({"pattern": pattern, "limit": 1000});
        let runtime = runtime_of(&tree, vec![vec![("search_files", arguments)]]);
        let mut rounds = Rounds::default();
        for _ in 0..volume.rounds {
            rounds.ours.push(measured(|| through_the_gate(executor, &runtime)));
            if let Some(rg) = &rg {
                rounds.plain.push(measured(|| run_rg(rg, &tree, pattern)));
            }
        }
        rounds.print(title);
    }
}

/// Where `rg` is, if it can be started.
fn rg() -> Option<PathBuf> {
    let rg = std::env::var_os("LLM_DO_RG").map_or_else(|| PathBuf::from("rg"), PathBuf::from);
    let started = Command::new(&rg).arg("--version").stdout(Stdio::null()).status();
    started.is_ok_and(|status| status.success()).then_some(rg)
}

fn version(rg: &Path) -> String {
    let output = Command::new(rg).arg("--version").output().expect("its version");
    String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned()
}

/// Searches the same files as the tool does: hidden ones too.
fn run_rg(rg: &Path, tree: &Tree, pattern: &str) {
    let mut command = Command::new(rg);
    command.args(["--line-number", "--hidden", "-e", pattern, "."]).current_dir(tree.0.path());
    command.stdin(Stdio::null()).output().expect("rg");
}

/// A directory that is removed at the end.
struct Tree(TestDir);

impl Tree {
    fn new() -> Self {
        Self(TestDir::new())
    }

    /// Writes files of text, a hundred to a directory, and returns their paths.
    fn plant(&self, count: usize) -> Vec<String> {
        let plant = |number: usize| {
            let directory = format!("part{}/group{}", number / 10_000, number / 100 % 100);
            let path = format!("{directory}/file{number}.txt");
            self.0.write(&path, content(number));
            path
        };
        (0..count).map(plant).collect()
    }
}

/// About 1 KiB of text; one file in five hundred has the needle.
fn content(number: usize) -> String {
    let mut text = format!("the file with the number {number} holds lines of text\n").repeat(19);
    if number % 500 == 499 {
        text.push_str("here is the needle 42 that is looked for\n");
    }
    text
}

fn reading(tree: &Tree, paths: &[String], at_once: usize) -> Runtime {
    let read = |path: &String| ("read_file", json!({"path": path}));
    runtime_of(tree, paths.chunks(at_once).map(|paths| paths.iter().map(read).collect()).collect())
}

/// A project whose one agent makes these calls, turn by turn.
fn runtime_of(tree: &Tree, turns: Vec<Vec<(&str, Value)>>) -> Runtime {
    let files = Filesystem::new("files", tree.0.path(), FilesystemSettings::default());
    let agent = AgentSpec::new("main", "Read everything.").toolset("files").model(Prepared::calling(turns));
    let project = Project::builder().toolset(files.expect("a toolset")).agent(agent).build();
    let limits = Limits { turns: Some(u32::MAX), ..Limits::default() };
    Runtime::builder(project.expect("a project")).limits(limits).build().expect("a runtime")
}

/// A model whose answers are made beforehand.
struct Prepared {
    name: Name,
    answers: Arc<[Arc<Message>]>,
}

impl Prepared {
    fn calling(turns: Vec<Vec<(&str, Value)>>) -> Self {
        let turn = |(turn, calls): (usize, Vec<(&str, Value)>)| {
            let part = |(index, (tool, arguments)): (usize, (&str, Value))| {
                let (id, arguments) = (format!("call_{turn}_{index}"), arguments.to_string().into());
                Part::ToolCall(ToolCall { id, name: tool.into(), arguments, raw: None })
            };
            let parts = calls.into_iter().enumerate().map(part).collect();
            Message { role: Role::Assistant, parts, origin: None }
        };
        let turns = turns.into_iter().enumerate().map(turn);
        let answers = turns.chain([Message::assistant("done")]).map(Arc::new).collect();
        Self { name: "prepared".into(), answers }
    }
}

impl Model for Prepared {
    fn name(&self) -> &Name {
        &self.name
    }

    fn open(&self) -> Box<dyn ModelSession> {
        Box::new(PreparedSession { answers: self.answers.clone(), next: 0 })
    }
}

struct PreparedSession {
    answers: Arc<[Arc<Message>]>,
    next: usize,
}

impl ModelSession for PreparedSession {
    fn request<'a>(
        &'a mut self,
        _request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>> {
        Box::pin(async move {
            let message = self.answers[self.next].clone();
            self.next += 1;
            let is_last = self.next == self.answers.len();
            let stop = if is_last { StopReason::EndTurn } else { StopReason::ToolUse };
            let usage = Usage { requests: 1, input: 100, output: 10, ..Usage::default() };
            let finished = ModelPart::Finished(ModelResponse::new(message, stop, usage));
            Ok(stream::once(std::future::ready(Ok(finished))).boxed())
        })
    }
}

/// The time that passed, and that of the processor.
#[derive(Clone, Copy)]
struct Measured {
    wall: Duration,
    cpu: Duration,
}

fn measured(work: impl FnOnce()) -> Measured {
    let (start, before) = (Instant::now(), cpu_time());
    work();
    Measured { wall: start.elapsed(), cpu: cpu_time().saturating_sub(before) }
}

/// The time that the threads of this process had a processor, where the system tells it.
fn cpu_time() -> Duration {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let times = threads.filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok());
    Duration::from_nanos(times.filter_map(|text| text.split(' ').next()?.parse::<u64>().ok()).sum())
}

/// Two ways to do the same, measured in turns.
#[derive(Default)]
struct Rounds {
    ours: Vec<Measured>,
    plain: Vec<Measured>,
}

impl Rounds {
    fn print(&self, title: &str) {
        let (ours, plain) = (sorted(&self.ours, |one| one.wall), sorted(&self.plain, |one| one.wall));
        let best = |times: &[f64]| times.first().copied().unwrap_or(f64::NAN);
        let (best_ours, best_plain) = (best(&ours), best(&plain));
        print!("{title:24} {best_ours:8.1} ms {best_plain:8.1} ms {:6.2}x", best_ours / best_plain);
        print!(" {:6.2}x", middle(&ours) / middle(&plain));
        let cpu = |rounds: &[Measured]| middle(&sorted(rounds, |one| one.cpu));
        let (ours, plain) = (cpu(&self.ours), cpu(&self.plain));
        // What another program needs is not known here.
        let is_own = plain * 5.0 > best_plain;
        println!("{}", if is_own { format!(" {:6.2}x", ours / plain) } else { String::new() });
    }
}

/// Times in milliseconds, the shortest first.
fn sorted(rounds: &[Measured], time: fn(&Measured) -> Duration) -> Vec<f64> {
    let mut times: Vec<f64> = rounds.iter().map(|one| time(one).as_secs_f64() * 1e3).collect();
    times.sort_by(f64::total_cmp);
    times
}

fn middle(times: &[f64]) -> f64 {
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}
