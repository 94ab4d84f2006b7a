//! Several processes that want the same run or record.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use llm_do_record::{Reader, RecordedState, RunSummary};
use llm_do_testing::Chance;

use crate::record_oracle::check_whole;
use crate::support::{Ran, Sandbox};

fn rounds() -> u64 {
    std::env::var("LLM_DO_RECORD_ROUNDS").map_or(6, |rounds| rounds.parse().unwrap())
}

/// An agent that writes a file, calls another one, and is answered after a moment.
fn project() -> Sandbox {
    Sandbox::new()
        .file("project.yaml", "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\n")
        .file(
            "main.agent",
            "---\nname: main\nmodel: script:main.yaml\ntoolsets: [filesystem_project, helper]\n---\nWrite.\n",
        )
        .file("helper.agent", "---\nname: helper\nmodel: test:echo\n---\nHelp.\n")
        .file(
            "main.yaml",
            "mode: by_turn\nreplies:\n  - ask: {write_file: {path: a.txt, content: hello}}\n  \
             - {delay: 150ms, ask: {helper: {input: go}}}\n  - say: written\n",
        )
}

/// A run that was killed while its model thought.
fn cut_off() -> Sandbox {
    loop {
        let sandbox = project();
        let mut child = begun(&sandbox);
        child.kill().unwrap();
        child.wait().unwrap();
        // On a busy machine it may have ended first.
        if only_run(&sandbox).unwrap().state == RecordedState::CutOff {
            return sandbox;
        }
    }
}

/// A run that is in the record, and has written its file.
fn begun(sandbox: &Sandbox) -> Child {
    let child = start(sandbox, &["run", ".", "go", "-a", "all"]);
    let begun = Instant::now();
    while !sandbox.path("a.txt").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the run did not begin");
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

fn start(sandbox: &Sandbox, arguments: &[&str]) -> Child {
    sandbox.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ended(child: Child) -> Ran {
    child.wait_with_output().unwrap().into()
}

fn record(sandbox: &Sandbox) -> std::path::PathBuf {
    sandbox.state().join("llm-do/record.db")
}

fn all_runs(sandbox: &Sandbox) -> Vec<RunSummary> {
    check_whole(&record(sandbox), "after the race");
    let reader = Reader::open(record(sandbox)).unwrap();
    reader.map(|reader| reader.runs(&Default::default()).unwrap()).unwrap_or_default()
}

fn only_run(sandbox: &Sandbox) -> Option<RunSummary> {
    let mut runs = all_runs(sandbox);
    assert!(runs.len() <= 1, "{runs:?}");
    runs.pop()
}

fn is_done(sandbox: &Sandbox) -> bool {
    only_run(sandbox).is_some_and(|run| run.state.as_str() == "done")
}

/// A moment in which either of two processes may be first.
fn pause(chance: &mut Chance, most: u64) {
    std::thread::sleep(Duration::from_micros(chance.below_u64(most)));
}

#[test]
fn of_two_that_resume_a_run_exactly_one_goes_on() {
    for round in 0..rounds() {
        let (mut chance, sandbox) = (Chance::new(round), cut_off());
        let first = start(&sandbox, &["resume", "last"]);
        pause(&mut chance, 60_000);
        let second = start(&sandbox, &["resume", "last"]);
        let (mut won, lost): (Vec<Ran>, Vec<Ran>) =
            [ended(first), ended(second)].into_iter().partition(|ran| ran.code == Some(0));
        assert_eq!((won.len(), lost.len()), (1, 1), "round {round}: {won:?} {lost:?}");
        won.remove(0).said("written\n");
        let told = &lost[0].stderr;
        assert!(
            told.contains("is being continued by process") || told.contains("has ended (done)"),
            "{told}"
        );
        assert!(is_done(&sandbox), "round {round}");
    }
}

#[test]
fn a_run_that_is_going_on_is_not_resumed() {
    for round in 0..rounds() {
        let (mut chance, sandbox) = (Chance::new(round), project());
        let running = begun(&sandbox);
        let holder = format!("is being continued by process {} on this machine", running.id());
        pause(&mut chance, 160_000);
        let refused = ended(start(&sandbox, &["resume", "last"]));
        match refused.code {
            Some(1) => assert!(refused.stderr.contains(&holder), "round {round}: {refused:?}"),
            Some(2) => assert!(refused.stderr.contains("has ended (done)"), "round {round}: {refused:?}"),
            _ => panic!("round {round}: {refused:?}"),
        }
        ended(running).ended(0).said("written\n");
        assert!(is_done(&sandbox), "round {round}");
    }
}

#[test]
fn a_run_that_is_resumed_is_not_removed() {
    let mut resumed_first = 0;
    for round in 0..rounds() {
        let (mut chance, sandbox) = (Chance::new(round), cut_off());
        let resume = start(&sandbox, &["resume", "last"]);
        pause(&mut chance, 60_000);
        let pruned = ended(start(&sandbox, &["runs", "prune", "--status", "cut_off"])).ended(0);
        let resumed = ended(resume);
        if resumed.code == Some(0) {
            resumed_first += 1;
            assert!(pruned.stderr.contains("removed 0 runs"), "round {round}: {pruned:?}");
            assert!(is_done(&sandbox), "round {round}");
        } else {
            assert!(pruned.stderr.contains("removed 1 run"), "round {round}: {pruned:?} {resumed:?}");
            assert!(only_run(&sandbox).is_none(), "round {round}");
            let told = ["nothing is recorded", "there is no run", "no recorded run", "is being continued by"];
            assert!(told.iter().any(|words| resumed.stderr.contains(words)), "round {round}: {resumed:?}");
        }
    }
    println!("{resumed_first} of {} runs were resumed before they could be removed", rounds());
}

#[test]
fn runs_that_begin_at_once_share_a_new_record() {
    for round in 0..rounds() {
        let sandbox = Sandbox::echo();
        let runs: Vec<Child> = (0..5).map(|_| start(&sandbox, &["run", ".", "hello"])).collect();
        for run in runs {
            let ran = ended(run).ended(0).said("hello\n");
            assert!(ran.stderr.is_empty(), "round {round}: {ran:?}");
        }
        let runs = all_runs(&sandbox);
        assert_eq!(runs.len(), 5, "round {round}: {runs:?}");
        assert!(runs.iter().all(|run| run.state.as_str() == "done"), "round {round}: {runs:?}");
    }
}
