//! Random programs of agents that work as processes: they spawn, fork, go back, tune and use descriptors.
//!
//! What a model does follows from the conversation that it is sent and from the seed, so that a run entered again goes
//! the same way. The oracle stands outside of the runtime: it keeps its own books of every call (conversation,
//! descriptors with their texts, settings) and foretells the next request of each, to the letter.
//!
//! `LLM_DO_PROCESS_PROGRAMS` says how many programs, `LLM_DO_PROCESS_PROGRAM` runs the one with that seed and shows it.

mod books;
mod decisions;
mod plan;
mod record;
mod stage;

use std::collections::BTreeMap;

use crate::process_programs::stage::check;

/// What the programs did, so that the test cannot pass by doing nothing.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

/// What a thousand programs do at least.
const MINIMUM: &[(&str, u64)] = &[
    ("spawned", 500),
    ("forked", 500),
    ("forked within a fork", 30),
    ("went back", 500),
    ("went back to results", 100),
    ("jumped nowhere", 100),
    ("tuned", 200),
    ("long results", 500),
    ("descriptors read", 500),
    ("descriptors missing", 50),
    ("descriptors passed", 200),
    ("descriptors extracted", 100),
    ("descriptors closed", 50),
    ("references", 200),
    ("children that failed", 50),
    ("ended too deep", 30),
    ("ended by turns", 30),
    ("runs that end in a limit", 10),
    ("runs cancelled", 20),
    ("runs done", 500),
    ("runs resumed", 300),
];

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|number| number.parse().ok())
}

#[test]
fn random_programs_keep_to_the_rules_of_processes() {
    if let Some(seed) = number("LLM_DO_PROCESS_PROGRAM") {
        let (counts, problems) = check(seed, true);
        assert!(problems.is_empty(), "seed {seed}: {}", problems.join("\n"));
        println!("{counts:#?}");
        return;
    }
    let programs = number("LLM_DO_PROCESS_PROGRAMS").unwrap_or(1_000);
    let mut total = Counts::new();
    for seed in 0..programs {
        let (counts, problems) = check(seed, false);
        assert!(problems.is_empty(), "seed {seed}: {}", problems.join("\n"));
        counts.into_iter().for_each(|(name, count)| *total.entry(name).or_default() += count);
    }
    println!("{programs} programs: {total:#?}");
    for (name, least) in MINIMUM {
        let count = total.get(name).copied().unwrap_or_default();
        assert!(count * 1_000 >= least * programs.min(count * 1_000 + 1_000), "{name}: only {count}");
    }
}
