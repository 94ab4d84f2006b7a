//! Random events of several runs against lists of them.

use std::collections::HashMap;
use std::sync::Arc;

use llm_do_core::{Event, RunId};
use llm_do_record::Record;
use llm_do_runtime::{Durability, RunWriter, Store, StoreError};
use llm_do_testing::Chance;

use crate::support::{random_event, run_id, started};

/// One process after another: each opens the record, claims or begins runs, writes, and ends.
async fn check(seed: u64) {
    let mut chance = Chance::new(seed);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/er/record.db");
    let mut expected: HashMap<RunId, Vec<Arc<Event>>> = HashMap::new();
    for _ in 0..1 + chance.below(3) {
        let record = Record::open(&path).unwrap();
        let mut writers: HashMap<RunId, Arc<dyn RunWriter>> = HashMap::new();
        for _ in 0..chance.below(120) {
            let run = run_id(chance.below(4) as u128);
            if chance.below(30) == 0 {
                writers.remove(&run);
            }
            let known = expected.entry(run).or_default();
            let writer = match writers.get(&run) {
                Some(writer) => writer.clone(),
                None if known.is_empty() => record.begin(run).await.unwrap(),
                None => {
                    let claimed = record.claim(run).await.unwrap();
                    assert_eq!(claimed.events, *known, "seed {seed}");
                    claimed.writer
                }
            };
            let event = match known.len() {
                0 => started(run),
                count => random_event(&mut chance, run, count as u64),
            };
            let safety = [Durability::Buffered, Durability::Process, Durability::Power][chance.below(3)];
            let ack = writer.enqueue(&event, safety).unwrap();
            known.push(event);
            if safety != Durability::Buffered {
                ack.await.unwrap();
                let read = record.reader().unwrap().events(run, None).unwrap();
                assert_eq!(read, *known, "seed {seed}: what was acknowledged is there");
            }
            writers.insert(run, writer);
        }
    }
    let record = Record::open(&path).unwrap();
    for (run, events) in &expected {
        match record.read(*run, None).await {
            Ok(read) => assert_eq!(read, *events, "seed {seed}"),
            Err(error) => {
                assert_eq!((error, events.len()), (StoreError::NotFound { run: *run }, 0), "seed {seed}");
            }
        }
        let after = chance.below(events.len().max(1)) as u64;
        if !events.is_empty() {
            let rest = record.read(*run, Some(after)).await.unwrap();
            assert_eq!(rest, events[usize::try_from(after).unwrap() + 1..], "seed {seed}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_events_of_several_runs_are_read_back_as_they_were() {
    let count = std::env::var("LLM_DO_RECORD_CASES").map_or(60, |count| count.parse().unwrap());
    for seed in 0..count {
        check(seed).await;
    }
}
