//! Whether a tool turn costs the same however long the conversation is.
//!
//! Measures the CPU time of the whole process and takes turns between short and long runs, so that a busy
//! machine disturbs all of them alike. Runs of every length make the same number of turns per round.

#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod parts;

use std::time::Duration;

use llm_do_core::{Approval, ModelChoice};
use llm_do_models::{Script, asks, says};
use llm_do_runtime::{Runtime, RuntimeBuilder};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime as Executor};

use parts::{PreparedModel, arguments, looking};

const LENGTHS: [usize; 3] = [50, 400, 4_000];

fn main() {
    // `cargo test --benches` gives no `--bench`: then one round shows that it works.
    let rounds = if std::env::args().any(|word| word == "--bench") { 31 } else { 1 };
    println!("CPU time of the process per tool turn in microseconds, median of {rounds} rounds");
    println!("{:34} {:>7} {:>7} {:>7} {:>9}", "turns in a run", "50", "400", "4,000", "4,000/50");
    let one = Builder::new_current_thread().enable_time().build().expect("an executor");
    let two = Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("an executor");
    report("prepared model", rounds, &one, prepared, |builder| builder);
    report("the same, with a subscriber", rounds, &one, prepared, |builder| builder.on_event(|_| {}));
    report("the same, on two threads", rounds, &two, prepared, |builder| builder.on_event(|_| {}));
    report("scripted model", rounds, &one, scripted, |builder| builder);
}

fn prepared(turns: usize) -> ModelChoice {
    PreparedModel::calling("look", turns, arguments).into()
}

fn scripted(turns: usize) -> ModelChoice {
    let replies = (0..turns).map(|turn| asks("look", arguments(turn))).chain([says("done")]);
    Script::each_call(replies).into()
}

fn report(
    title: &str,
    rounds: usize,
    executor: &Executor,
    model: fn(usize) -> ModelChoice,
    change: fn(RuntimeBuilder) -> RuntimeBuilder,
) {
    let runtime = |turns| change(looking(model(turns), Approval::PreApproved)).build().expect("a runtime");
    let runtimes = LENGTHS.map(runtime);
    let mut samples = LENGTHS.map(|_| Vec::new());
    for _ in 0..rounds {
        for ((turns, runtime), samples) in LENGTHS.iter().zip(&runtimes).zip(&mut samples) {
            samples.push(time_per_turn(executor, runtime, *turns));
        }
    }
    let [short, middle, long] = samples.map(median);
    println!("{title:34} {short:7.1} {middle:7.1} {long:7.1} {:9.2}", long / short);
}

fn time_per_turn(executor: &Executor, runtime: &Runtime, turns: usize) -> f64 {
    let (runs, before) = (LENGTHS[2] / turns, cpu_time());
    for _ in 0..runs {
        executor.block_on(runtime.run("main", "go").into_future()).expect("an answer");
    }
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let count = (runs * turns) as f64;
    (cpu_time() - before).as_secs_f64() * 1e6 / count
}

fn cpu_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().expect("a time after the start")
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
