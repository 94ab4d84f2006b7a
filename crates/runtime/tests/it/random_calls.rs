//! Guarantee T1: random call sequences over all kinds of tools, judged by an oracle outside the runtime.
//!
//! Each case makes up a project and some runs (`plan`), carries them out with tools, models and approvers
//! that write down what they do (`world`, `tools`, `model`, `approver`, `journal`), and has the evidence
//! judged (`case`, `oracle`). The oracle works out every decision a second time and never asks the runtime
//! what was right.
//!
//! `LLM_DO_T1_CASES` sets how many cases are run, `LLM_DO_T1_SEED` runs a single one again and again.

mod approver;
mod arguments;
mod case;
mod forgeries;
mod journal;
mod model;
mod oracle;
mod plan;
mod tools;
mod totals;
mod world;

use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt};

use crate::random_calls::case::{Evidence, run_case};
use crate::random_calls::tools::PLANNED_PANIC;
use crate::random_calls::totals::Totals;

/// Cases in the default run.
const CASES: u64 = 10_000;
/// Cases that run side by side.
const AT_ONCE: usize = 16;
/// How long a case may take on a busy machine before it counts as hung.
const MAX_DURATION: Duration = Duration::from_secs(60);
/// How often a single case is run again: schedules differ.
const REPEATS: usize = 200;
/// Failures after which nothing further is started.
const ENOUGH: usize = 5;

#[test]
fn random_calls_do_nothing_that_was_not_allowed_and_shown() {
    keep_planned_panics_quiet();
    let seeds: Vec<u64> = match number_from("LLM_DO_T1_SEED") {
        Some(seed) => vec![seed; REPEATS],
        None => (0..number_from("LLM_DO_T1_CASES").unwrap_or(CASES)).collect(),
    };
    let is_single = number_from("LLM_DO_T1_SEED").is_some();
    let started = Instant::now();
    let executor = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
    let (totals, failures) = executor.block_on(run_all(seeds));
    say(&format!("{totals}\nin {:.1} s", started.elapsed().as_secs_f64()));
    assert!(failures.is_empty(), "{} cases failed\n\n{}", failures.len(), failures.join("\n"));
    if !is_single && totals.cases >= 1_000 {
        let missing = totals.missing();
        assert!(missing.is_empty(), "the mix has become too thin:\n{}", missing.join("\n"));
    }
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

/// Runs cases side by side until all have ended or enough have failed.
async fn run_all(seeds: Vec<u64>) -> (Totals, Vec<String>) {
    let mut totals = Totals::default();
    let mut failures = Vec::new();
    let cases = seeds.into_iter().map(|seed| async move { (seed, tokio::spawn(judged(seed)).await) });
    let mut cases = stream::iter(cases).buffer_unordered(AT_ONCE);
    while let Some((seed, judged)) = cases.next().await {
        match judged {
            Ok(Ok(counts)) => totals.add(&counts),
            Ok(Err(words)) => failures.push(report(seed, &words)),
            Err(error) => failures.push(report(seed, &format!("the case broke off: {error}"))),
        }
        if failures.len() >= ENOUGH {
            break;
        }
    }
    (totals, failures)
}

/// Runs a case and judges it.
async fn judged(seed: u64) -> Result<totals::Counts, String> {
    let evidence = match tokio::time::timeout(MAX_DURATION, run_case(seed)).await {
        Ok(Ok(evidence)) => evidence,
        Ok(Err(errors)) => return Err(format!("the project does not link: {errors}")),
        Err(_) => return Err(format!("the case did not end within {MAX_DURATION:?}")),
    };
    let findings = oracle::check(&evidence).0;
    if findings.is_empty() { Ok(totals::counts(&evidence)) } else { Err(told(&evidence, &findings)) }
}

/// The findings; for a single case with everything that led to them.
fn told(evidence: &Evidence, findings: &[String]) -> String {
    let mut lines: Vec<String> = findings.iter().take(20).cloned().collect();
    if std::env::var_os("LLM_DO_T1_SEED").is_some() {
        lines.push(format!("{:#?}", evidence.plan));
        let entries = evidence.entries.iter().enumerate();
        lines.extend(entries.map(|(place, entry)| format!("{place} {:?} {:?}", entry.run, entry.what)));
    }
    lines.join("\n  ")
}

fn report(seed: u64, words: &str) -> String {
    let again = format!("LLM_DO_T1_SEED={seed} cargo test -p llm-do-runtime --test it random_calls");
    format!("seed {seed}:\n  {words}\nrun it alone with: {again}\n")
}

#[expect(clippy::print_stdout, reason = "a person looks at the mix of cases")]
fn say(text: &str) {
    println!("{text}");
}

/// Planned panics are part of the test and would fill the screen.
fn keep_planned_panics_quiet() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload_as_str() != Some(PLANNED_PANIC) {
                usual(panic);
            }
        }));
    });
}
