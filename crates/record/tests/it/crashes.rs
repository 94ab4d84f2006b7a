//! Processes that are killed while they write, and disks that are full.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use llm_do_record::{Reader, Record};
use llm_do_runtime::{Durability, Store, StoreError};
use llm_do_testing::Chance;

use crate::support::{random_event, run_id, started};

const PATH: &str = "LLM_DO_RECORD_TEST_PATH";

/// What the process of the tests below does: writes events of two runs and prints the number of each that is safe.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by the tests below"]
async fn writing_process() {
    let Ok(path) = std::env::var(PATH) else { return };
    // libtest has begun a line.
    println!();
    let record = match Record::open(&path) {
        Ok(record) => record,
        Err(error) => return println!("refused {error}"),
    };
    let runs = [run_id(0), run_id(1)];
    let mut writers = Vec::new();
    for run in runs {
        writers.push(match record.claim(run).await {
            Ok(claimed) => (claimed.writer, claimed.events.len() as u64),
            Err(StoreError::NotFound { .. }) => (record.begin(run).await.unwrap(), 0),
            Err(error) => return println!("refused {error}"),
        });
    }
    let mut chance = Chance::new(u64::from(std::process::id()));
    for _ in 0..400 {
        let index = chance.below(2);
        let (run, (writer, next)) = (runs[index], &mut writers[index]);
        let event = if *next == 0 { started(run) } else { random_event(&mut chance, run, *next) };
        let safety = [Durability::Buffered, Durability::Process, Durability::Power][chance.below(3)];
        let result = match writer.enqueue(&event, safety) {
            Ok(ack) => ack.await,
            Err(error) => Err(error),
        };
        match result {
            Ok(()) if safety == Durability::Buffered => {}
            Ok(()) => println!("safe {index} {next}"),
            Err(error) => return println!("refused {error}"),
        }
        *next += 1;
    }
    println!("finished");
}

fn writing(path: &Path, before: &str) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new("sh");
    let script = format!(
        "{before}exec '{}' --exact crashes::writing_process --include-ignored --nocapture --test-threads=1",
        program.display()
    );
    command.arg("-c").arg(script).env(PATH, path).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Returns, per run, how many events the process was told are safe, and why it stopped.
fn told(output: impl BufRead) -> ([u64; 2], Option<String>) {
    let (mut safe, mut refused) = ([0; 2], None);
    for line in output.lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["safe", index, seq] => {
                safe[index.parse::<usize>().unwrap()] = seq.parse::<u64>().unwrap() + 1;
            }
            ["refused", ..] => refused = Some(line),
            _ => {}
        }
    }
    (safe, refused)
}

/// Whatever happened, the record is a gapless beginning that holds all that was said to be safe.
fn check(path: &Path, safe: [u64; 2], context: &str) {
    let Some(reader) = Reader::open(path).unwrap() else { return assert_eq!(safe, [0, 0], "{context}") };
    for (index, safe) in safe.into_iter().enumerate() {
        let events = match reader.events(run_id(index as u128), None) {
            Ok(events) => events,
            Err(_) if safe == 0 => continue,
            Err(error) => panic!("{context}: {error}"),
        };
        let seqs: Vec<u64> = events.iter().filter_map(|event| event.seq).collect();
        assert_eq!(seqs, (0..events.len() as u64).collect::<Vec<_>>(), "{context}");
        assert!(events.len() as u64 >= safe, "{context}: {} events, {safe} were safe", events.len());
    }
}

#[test]
fn a_process_that_is_killed_loses_nothing_that_was_safe() {
    let count = std::env::var("LLM_DO_RECORD_KILLS").map_or(30, |count| count.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let mut path = directory.path().join("record.db");
    let mut chance = Chance::new(19);
    for round in 0..count {
        // Ten processes, one after the other, continue the same runs.
        if round % 10 == 0 {
            path = directory.path().join(format!("record{round}.db"));
        }
        let mut child = writing(&path, "").spawn().unwrap();
        std::thread::sleep(Duration::from_micros(chance.bits() % 120_000));
        child.kill().unwrap();
        let (safe, refused) = told(BufReader::new(child.stdout.take().unwrap()));
        child.wait().unwrap();
        assert_eq!(refused, None, "round {round}");
        check(&path, safe, &format!("round {round}"));
    }
}

#[test]
fn at_whatever_write_the_disk_is_full_the_record_stays_whole() {
    let directory = tempfile::tempdir().unwrap();
    for (refusals, limit) in limits().enumerate() {
        let path = directory.path().join(format!("record{limit}.db"));
        let limited = format!("trap '' XFSZ; ulimit -f {limit}; ");
        let mut child = writing(&path, &limited).spawn().unwrap();
        let (safe, refused) = told(BufReader::new(child.stdout.take().unwrap()));
        child.wait().unwrap();
        check(&path, safe, &format!("limit {limit}"));
        if refused.is_none() {
            assert!(refusals > 3, "the limit was reached {refusals} times only");
            // The next process continues where it was.
            let mut child = writing(&path, "").spawn().unwrap();
            let (_, refused) = told(BufReader::new(child.stdout.take().unwrap()));
            child.wait().unwrap();
            assert_eq!(refused, None);
            return;
        }
        let mut child = writing(&path, "").spawn().unwrap();
        let (safe, refused) = told(BufReader::new(child.stdout.take().unwrap()));
        child.wait().unwrap();
        assert_eq!(refused, None, "with space again, limit {limit}");
        check(&path, safe, &format!("after limit {limit}"));
    }
}

/// How long a file may be, in units of 512 bytes, until everything fits. The log reaches it first.
fn limits() -> impl Iterator<Item = u64> {
    let step: Option<u64> = std::env::var("LLM_DO_RECORD_DISK_STEP").ok().map(|step| step.parse().unwrap());
    std::iter::successors(Some(0), move |limit| Some(limit + step.unwrap_or(10 + limit / 4)))
}
