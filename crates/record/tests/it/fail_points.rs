//! Runs whose process ends at one of the boundaries of the record, once for each boundary.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use llm_do_core::Status;
use llm_do_runtime::unknown_calls;

use crate::oracle::{check_announced, check_questions, check_whole, responses};
use crate::scripted::{Ended, ScriptedRun, Unbroken, ended, payments};

/// The boundary at which the process ends: as many as are passed before it.
const BOUNDARY: &str = "LLM_DO_RECORD_TEST_BOUNDARY";

/// Arms all boundaries of this process, if it is to end at one, and has each print its name.
pub(crate) fn arm() {
    static PASSED: AtomicU64 = AtomicU64::new(0);
    let Ok(last) = std::env::var(BOUNDARY) else { return };
    let last: u64 = last.parse().unwrap();
    for name in llm_do_record::FAIL_POINTS {
        let pass = move || {
            let passed = PASSED.fetch_add(1, Ordering::SeqCst);
            if last == u64::MAX {
                println!("boundary {name}");
            } else if passed == last {
                std::process::abort();
            }
        };
        fail::cfg_callback(*name, pass).unwrap();
    }
}

/// Every how manieth boundary is tried.
fn step() -> usize {
    std::env::var("LLM_DO_RECORD_BOUNDARY_STEP").map_or(17, |step| step.parse().unwrap())
}

fn at_boundary(run: &ScriptedRun, boundary: u64) -> Command {
    let mut command = run.command();
    command.env(BOUNDARY, boundary.to_string());
    command
}

/// The names of the boundaries that a run passes, in their order.
fn boundaries(run: &ScriptedRun) -> Vec<String> {
    let output = at_boundary(run, u64::MAX).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.strip_prefix("boundary ")).map(str::to_owned).collect()
}

/// Ends a process at a boundary, and checks what another one makes of the run. Returns whether the process came so far:
/// which events are written together differs from run to run.
fn check(run: &ScriptedRun, unbroken: &Unbroken, boundary: u64) -> bool {
    let context = format!("boundary {boundary}");
    let output = at_boundary(run, boundary).output().unwrap();
    let was_reached = !output.status.success();
    if !was_reached {
        assert!(matches!(ended(&*output.stdout), Some(Ended::Done { .. })), "{context}");
    }
    check_whole(&run.record(), &context);
    check_announced(&run.events(), &run.log("effects.log"), run.log("requests.log").len(), &context);
    check_unjudged(run, &context);

    let before = run.events();
    let (requests, questions) = (run.log("requests.log").len(), run.log("questions.log").len());
    let end = run.go_on();
    unbroken.check_end(run, &end, &context);
    let after = run.events();
    assert_eq!(after[..before.len()], before, "{context}: what was recorded remains");
    // Everything that was answered is read back, and nothing else is asked again.
    assert_eq!(run.log("requests.log").len() - requests, unbroken.requests - responses(&before), "{context}");
    check_questions(&before, &run.log("questions.log")[questions..], &context);
    was_reached
}

/// If nobody knows whether a call happened, the run stops there, and no payment is repeated.
fn check_unjudged(run: &ScriptedRun, context: &str) {
    if unknown_calls(&run.events()).is_empty() {
        return;
    }
    let stopped = run.go_on_unjudged();
    assert!(matches!(stopped, Ended::Stopped { status: Status::Unknown, .. }), "{context}: {stopped:?}");
    let paid = payments(&run.log("effects.log"));
    let once: BTreeSet<_> = paid.iter().collect();
    assert_eq!(once.len(), paid.len(), "{context}: {paid:?}");
}

/// Tries the boundaries of the process that comes next in a run.
fn check_boundaries(new: impl Fn() -> ScriptedRun) {
    let unbroken = Unbroken::new(&ScriptedRun::new());
    let names = boundaries(&new());
    let kinds = names.iter().collect::<BTreeSet<_>>().len();
    let tried: Vec<usize> = (0..names.len()).step_by(step()).collect();
    let reached = tried.iter().filter(|boundary| check(&new(), &unbroken, **boundary as u64)).count();
    println!("{} boundaries of {kinds} kinds: {} tried, {reached} reached", names.len(), tried.len());
    assert!(reached * 10 >= tried.len() * 8, "{reached} of {} were reached", tried.len());
}

#[test]
fn a_run_whose_process_ends_at_any_boundary_goes_on_without_loss_or_repetition() {
    check_boundaries(ScriptedRun::new);
}

#[test]
fn a_run_whose_process_ends_again_while_it_goes_on_does_so_too() {
    check_boundaries(|| {
        let run = ScriptedRun::new();
        assert!(!at_boundary(&run, 300).output().unwrap().status.success());
        run
    });
}

#[test]
fn every_kind_of_boundary_is_passed() {
    let run = ScriptedRun::with_long_results();
    let mut passed: BTreeSet<String> = boundaries(&run).into_iter().collect();
    let cut_off = ScriptedRun::new();
    assert!(!at_boundary(&cut_off, 300).output().unwrap().status.success());
    passed.extend(boundaries(&cut_off));
    let all = llm_do_record::FAIL_POINTS.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(passed, all);
}
