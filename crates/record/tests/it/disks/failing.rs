//! A disk on which one write or sync fails, each in its turn.

use std::path::{Path, PathBuf};
use std::process::Command;

use llm_do_core::Status;
use llm_do_record::Record;
use llm_do_runtime::{Durability, Store};
use llm_do_testing::{Chance, needs};
use nix::errno::Errno;

use super::traced::{DiskCall, Stage, Verdict, trace};
use crate::oracle::{check_announced, check_whole};
use crate::scripted::{Ended, ScriptedRun, Unbroken, ended};
use crate::support::{random_event, run_id, started};

/// Every how manieth call fails.
fn step() -> usize {
    std::env::var("LLM_DO_RECORD_FAILING_STEP").map_or(23, |step| step.parse().unwrap())
}

/// What goes wrong.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    /// A write fails, once.
    Write,
    /// Half of a write is done, and from then on the disk is full.
    Full,
    /// A sync fails, once.
    Sync,
}

impl Trouble {
    fn concerns(self, call: &DiskCall) -> bool {
        match self {
            Self::Write => {
                matches!(call, DiskCall::Write { .. } | DiskCall::Truncate { .. } | DiskCall::Create)
            }
            Self::Full => matches!(call, DiskCall::Write { .. }),
            Self::Sync => matches!(call, DiskCall::Sync),
        }
    }

    /// What becomes of a call, so many of its kind after the first that fails.
    fn verdict(self, since: usize) -> Verdict {
        match (self, since) {
            (Self::Full, 0) => Verdict::Shorten,
            (Self::Full, _) => Verdict::Fail(Errno::ENOSPC),
            (_, 0) => Verdict::Fail(Errno::EIO),
            _ => Verdict::Allow,
        }
    }
}

/// Runs until the n-th call fails. Returns how the process ended, and whether it came so far.
fn run_with(run: &ScriptedRun, trouble: Trouble, n: usize) -> (Option<Ended>, bool) {
    let mut seen = 0;
    let output = trace(run.command(), run.directory(), |path, call, stage| {
        if stage == Stage::Done || !run.is_of_record(path) || !trouble.concerns(call) {
            return Verdict::Allow;
        }
        seen += 1;
        if seen > n { trouble.verdict(seen - n - 1) } else { Verdict::Allow }
    });
    (ended(&*output), seen > n)
}

/// What a call that failed led to.
#[derive(Debug, PartialEq, Eq)]
enum Consequence {
    /// There was no such call.
    NotReached,
    /// The run had its end all the same, as when the record is closed.
    None,
    /// The run stopped, or did not begin.
    Stopped,
}

/// Checks a run on a disk whose n-th call fails.
fn check(unbroken: &Unbroken, trouble: Trouble, n: usize) -> Consequence {
    let (run, context) = (ScriptedRun::new(), format!("{trouble:?} {n}"));
    let (told, was_reached) = run_with(&run, trouble, n);
    let told = told.unwrap_or_else(|| panic!("{context}: the process did not say how it ended"));
    match &told {
        Ended::Done { .. } => {}
        Ended::Stopped { status, error } => {
            assert_eq!(*status, Status::Record, "{context}: {error}");
            check_message(error, &context);
        }
        Ended::Refused(error) => check_message(error, &context),
    }
    check_whole(&run.record(), &context);
    check_announced(&run.events(), &run.log("effects.log"), run.log("requests.log").len(), &context);
    unbroken.check_end(&run, &run.go_on(), &context);
    match told {
        _ if !was_reached => Consequence::NotReached,
        Ended::Done { .. } => Consequence::None,
        Ended::Stopped { .. } | Ended::Refused(_) => Consequence::Stopped,
    }
}

/// A message names the record or the disk, and not only a number.
fn check_message(error: &str, context: &str) {
    let is_clear = ["record", "disk", "space"].iter().any(|word| error.contains(word));
    assert!(is_clear, "{context}: {error}");
}

fn check_all(trouble: Trouble, step: usize) {
    let unbroken = Unbroken::new(&ScriptedRun::new());
    let (mut tried, mut stopped) = (0, 0);
    for n in (0..).step_by(step) {
        match check(&unbroken, trouble, n) {
            Consequence::NotReached => {
                println!("{trouble:?}: {tried} of about {n} calls failed, {stopped} runs stopped");
                return assert!(stopped * 2 > tried && tried > 3, "{stopped} of {tried} stopped");
            }
            consequence => stopped += usize::from(consequence == Consequence::Stopped),
        }
        tried += 1;
    }
}

#[needs(tracing)]
#[test]
fn whichever_write_fails_nothing_happens_unannounced_and_the_run_goes_on_later() {
    check_all(Trouble::Write, step());
}

#[needs(tracing)]
#[test]
fn whichever_write_fills_the_disk_nothing_happens_unannounced_and_the_run_goes_on_later() {
    check_all(Trouble::Full, step());
}

#[needs(tracing)]
#[test]
fn whichever_sync_fails_nothing_happens_unannounced_and_the_run_goes_on_later() {
    // There are few of them.
    check_all(Trouble::Sync, step().min(2));
}

const DIRECTORY: &str = "LLM_DO_RECORD_TEST_SYNC_DIRECTORY";

/// Writes an event of each of two runs that must survive the loss of power.
#[tokio::test]
#[ignore = "started by the test below"]
async fn syncing_process() {
    let Ok(directory) = std::env::var(DIRECTORY).map(PathBuf::from) else { return };
    println!();
    let record = Record::open(directory.join("record.db")).unwrap();
    let mut writers = Vec::new();
    for run in [run_id(0), run_id(1)] {
        let writer = record.begin(run).await.unwrap();
        writer.enqueue(&started(run), Durability::Process).unwrap().await.unwrap();
        writers.push((run, writer));
    }
    std::fs::write(directory.join("armed"), "").unwrap();
    for (run, writer) in writers {
        let event = random_event(&mut Chance::new(1), run, 1);
        let written = writer.enqueue(&event, Durability::Power).unwrap().await;
        println!("written {written:?}");
    }
}

/// After a failed sync, Linux takes what it could not write for written. The next sync succeeds, and what came before it may
/// still be lost.
#[needs(tracing)]
#[test]
fn after_a_sync_that_failed_nothing_is_said_to_be_safe() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "disks::failing::syncing_process", "--include-ignored", "--nocapture"])
        .env(DIRECTORY, directory.path());
    let (mut is_armed, mut failed) = (false, 0);
    let output = trace(command, directory.path(), |path: &Path, call, _| {
        is_armed |= path.ends_with("armed");
        if is_armed && failed == 0 && path.ends_with("record.db-wal") && *call == DiskCall::Sync {
            failed += 1;
            return Verdict::Fail(Errno::EIO);
        }
        Verdict::Allow
    });
    let output = String::from_utf8(output).unwrap();
    let told: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix("written ")).collect();
    let is_refused =
        |line: &&str| line.starts_with("Err(Io(") && line.contains("what was recorded before may be lost");
    assert_eq!((failed, told.len()), (1, 2), "{output}");
    assert!(told.iter().all(is_refused), "{output}");
}
