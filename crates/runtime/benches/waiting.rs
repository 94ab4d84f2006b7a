//! How much memory a waiting run takes: 10,000 runs that all wait at once, for a model or for a person.
//!
//! Memory is what the kernel counts as resident, read from `/proc/self/status`. Each case runs in a process
//! of its own, so that the peak belongs to it alone.

#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod parts;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use llm_do_core::{Answer, Approval, Model, ModelError, ModelRequest, ModelSession, ModelStream, Name};
use llm_do_runtime::{Run, Runtime};
use tokio::sync::Notify;

use parts::{PreparedModel, arguments, looking};

/// What the runs wait for.
const CASES: [(&str, &str); 4] = [
    ("model", "in the model, after a tool turn"),
    ("model-watched", "the same, with a subscriber each"),
    ("approval", "in an approval"),
    ("approval-watched", "the same, with a subscriber each"),
];

fn main() {
    let mut words = std::env::args().skip(1);
    // `cargo test --benches` gives no `--bench`: then a few runs show that it works.
    let count = if std::env::args().any(|word| word == "--bench") { 10_000 } else { 10 };
    match words.find(|word| CASES.iter().any(|(case, _)| case == word)) {
        Some(case) => tokio::runtime::Runtime::new().expect("an executor").block_on(measure(&case, count)),
        None => {
            println!("{count} runs at once, memory per run in KiB");
            println!("{:36} {:>8} {:>8} {:>10} {:>10}", "", "waiting", "peak", "to start", "to end");
            CASES.iter().for_each(|(case, title)| measure_apart(case, title));
        }
    }
}

/// Measures one case in a process of its own, with the same arguments.
fn measure_apart(case: &str, title: &str) {
    let program = std::env::current_exe().expect("the path of this program");
    let output = Command::new(program).args(std::env::args().skip(1)).arg(case).output().expect("a process");
    let figures = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{case}: {}", String::from_utf8_lossy(&output.stderr));
    println!("{title:36} {}", figures.trim_end());
}

async fn measure(case: &str, count: usize) {
    let door = Arc::new(Door::default());
    let runtime = runtime(case, &door);
    // The first run fills what all runs share.
    let first = start(&runtime, 1, &door).await;
    finish(first, &door).await;

    let before = kibibytes("VmRSS");
    let started = Instant::now();
    let runs = start(&runtime, count, &door).await;
    let (to_start, waiting) = (started.elapsed(), kibibytes("VmRSS"));
    let ended = Instant::now();
    finish(runs, &door).await;
    let (to_end, peak) = (ended.elapsed(), kibibytes("VmHWM"));
    #[expect(clippy::cast_precision_loss, reason = "a figure to look at")]
    let per_run = |now: u64| (now - before) as f64 / count as f64;
    let (to_start, to_end) = (to_start.as_millis(), to_end.as_millis());
    println!("{:8.1} {:8.1} {to_start:7} ms {to_end:7} ms", per_run(waiting), per_run(peak));
}

/// Starts runs and returns when all of them wait.
async fn start(runtime: &Runtime, count: usize, door: &Door) -> Vec<Run> {
    let runs = (0..count).map(|_| runtime.run("main", "go").start()).collect();
    while door.waiting.load(Ordering::SeqCst) < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    runs
}

/// Lets everybody go on and awaits the answers.
async fn finish(runs: Vec<Run>, door: &Door) {
    door.waiting.store(0, Ordering::SeqCst);
    door.opens.notify_waiters();
    for run in runs {
        run.await.expect("an answer");
    }
}

/// Where runs wait until they may all go on.
#[derive(Default)]
struct Door {
    opens: Notify,
    waiting: AtomicUsize,
}

impl Door {
    async fn wait(&self) {
        let open = self.opens.notified();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        open.await;
    }
}

fn runtime(case: &str, door: &Arc<Door>) -> Runtime {
    let model = PreparedModel::calling("look", 1, arguments);
    let builder = if case.starts_with("model") {
        looking(WaitingModel { model, door: door.clone() }, Approval::PreApproved)
    } else {
        let door = door.clone();
        looking(model, Approval::Ask).approver(move |_| {
            let door = door.clone();
            async move {
                door.wait().await;
                Answer::Once
            }
        })
    };
    let builder = if case.ends_with("watched") { builder.on_event(|_| {}) } else { builder };
    builder.build().expect("a runtime")
}

/// A model that waits at the door after its tool turn.
struct WaitingModel {
    model: PreparedModel,
    door: Arc<Door>,
}

impl Model for WaitingModel {
    fn name(&self) -> &Name {
        self.model.name()
    }

    fn open(&self) -> Box<dyn ModelSession> {
        Box::new(WaitingSession { session: self.model.open(), door: self.door.clone() })
    }
}

struct WaitingSession {
    session: Box<dyn ModelSession>,
    door: Arc<Door>,
}

impl ModelSession for WaitingSession {
    fn request<'a>(
        &'a mut self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>> {
        Box::pin(async move {
            if request.conversation.messages().len() > 1 {
                self.door.wait().await;
            }
            self.session.request(request).await
        })
    }
}

/// Reads a size from the kernel's account of this process.
fn kibibytes(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a Linux kernel");
    let line = status.lines().find(|line| line.starts_with(field)).expect("a known field");
    line.split_whitespace().nth(1).and_then(|size| size.parse().ok()).expect("a size")
}
