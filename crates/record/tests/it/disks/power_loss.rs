//! Runs whose machine loses power at any moment.

use std::path::{Path, PathBuf};

use llm_do_testing::{Chance, needs};

use super::disk::Disk;
use super::traced::{DiskCall, Stage, Verdict, trace};
use crate::oracle::{check_announced, check_whole};
use crate::scripted::{ScriptedRun, Unbroken, payments};

/// How often power is lost, in each of the histories.
fn losses() -> u64 {
    std::env::var("LLM_DO_RECORD_POWER_LOSSES").map_or(34, |losses| losses.parse().unwrap())
}

/// What the processes of a run did to files, in order.
struct History {
    run: ScriptedRun,
    calls: Vec<(PathBuf, DiskCall)>,
}

impl History {
    /// Makes a run. The process is killed at each of these calls, and another one goes on.
    fn new(run: ScriptedRun, kills: &[usize]) -> Self {
        let mut history = Self { run, calls: Vec::new() };
        kills.iter().for_each(|kill| history.trace(*kill));
        history.trace(usize::MAX);
        history
    }

    fn trace(&mut self, kill: usize) {
        let (run, calls) = (&self.run, &mut self.calls);
        let end = calls.len().saturating_add(kill);
        trace(run.command(), run.directory(), |path, call, stage| {
            // A write may reach the disk before it is done. Everything else counts when it is done.
            let counts = match call {
                DiskCall::Write { .. } | DiskCall::Truncate { .. } => stage == Stage::Before,
                DiskCall::Create | DiskCall::Remove | DiskCall::Sync => stage == Stage::Done,
            };
            if calls.len() == end {
                return Verdict::Kill;
            }
            if counts {
                calls.push((path.to_owned(), call.clone()));
            }
            Verdict::Allow
        });
    }

    /// The files as they may be found if power is lost after so many calls.
    fn after_loss(&self, calls: usize, chance: &mut Chance) -> ScriptedRun {
        let (found, mut disk) = (self.run.another(), Disk::default());
        let relative = |path: &Path| path.strip_prefix(self.run.directory()).unwrap().to_owned();
        for (path, call) in &self.calls[..calls] {
            match call {
                // What happened outside stays so.
                DiskCall::Write { bytes, .. } if !self.run.is_of_record(path) => {
                    found.append(&relative(path), bytes);
                }
                call => disk.take(path, call),
            }
        }
        // The shared memory of the log is made anew by whoever opens the record first; locks are gone with their processes.
        let is_kept =
            |path: &Path| path.parent() == Some(self.run.directory()) && !path.ends_with("record.db-shm");
        for (path, bytes) in disk.after_loss(chance) {
            if self.run.is_of_record(&path) && is_kept(&path) {
                std::fs::write(found.directory().join(relative(&path)), bytes).unwrap();
            }
        }
        found
    }
}

/// Loses power at random moments, and checks what another process makes of what is left.
fn check(name: &str, history: &History) {
    let unbroken = Unbroken::new(&history.run.another());
    let recorded = history.run.events();
    let (mut begun, mut kept) = (0, 0);
    for seed in 0..losses() {
        let (mut chance, context) = (Chance::new(seed), format!("{name}, seed {seed}"));
        let moment = chance.below(history.calls.len() + 1);
        let run = history.after_loss(moment, &mut chance);
        check_whole(&run.record(), &context);
        let events = run.events();
        assert_eq!(events, recorded[..events.len()], "{context}: not a beginning of what was recorded");
        // What may be repeated needs no intent that survives the loss of power.
        check_announced(&events, &payments(&run.log("effects.log")), 0, &context);
        begun += usize::from(!events.is_empty());
        kept += events.len();
        unbroken.check_end(&run, &run.go_on(), &context);
    }
    println!(
        "{name}: {} calls, power lost {} times, {begun} runs were begun, {kept} of {} events kept",
        history.calls.len(),
        losses(),
        recorded.len() * usize::try_from(losses()).unwrap(),
    );
    assert!(begun > 0, "no run was left");
}

#[needs(tracing)]
#[test]
fn a_run_that_loses_power_goes_on_without_loss_or_repetition_of_payments() {
    check("one process", &History::new(ScriptedRun::new(), &[]));
}

#[needs(tracing)]
#[test]
fn a_run_of_several_processes_that_loses_power_goes_on_so_too() {
    check("three processes", &History::new(ScriptedRun::new(), &[300, 250]));
}

#[needs(tracing)]
#[test]
fn a_run_whose_log_was_moved_into_the_database_goes_on_so_too() {
    let history = History::new(ScriptedRun::with_long_results(), &[]);
    let is_database = |path: &Path| path.ends_with("record.db");
    let last = history.calls.iter().rposition(|(path, call)| is_database(path) && *call == DiskCall::Sync);
    assert!(last.is_some(), "nothing was moved");
    check("long results", &history);
}
