//! Guarantee T1 once more, with the built-in tools: random calls of files, commands and created agents in a real
//! folder, judged by what lies in that folder afterwards.
//!
//! Every call that could change something carries a mark of its own, in the content or in the name of a file. Whatever
//! mark is found afterwards must belong to a call that was allowed with exactly that mark: by the approver's own
//! log, the mode or a rule. Nothing is ever found outside the project. A mark that is found when the permission
//! of its call is being recorded came too early.
//!
//! `LLM_DO_T1_FILES` sets how many cases are run, `LLM_DO_T1_FILES_SEED` runs a single one.

mod approver;
mod calls;
mod folder;
mod witness;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use llm_do::approval::{Approval, ApprovalMode};
use llm_do::project::{LoadedProjectExt, StandardCatalog};
use llm_do::testing::{Script, says};
use llm_do_testing::{Chance, needs};

use crate::real_effects::approver::Whim;
use crate::real_effects::calls::{Call, Rule};
use crate::real_effects::folder::Folder;
use crate::real_effects::witness::Witness;

/// Cases in the default run.
const CASES: u64 = 60;

#[needs(python)]
#[tokio::test(flavor = "multi_thread")]
async fn built_in_tools_change_nothing_that_was_not_allowed_and_shown() {
    let single = number_from("LLM_DO_T1_FILES_SEED");
    let seeds = match single {
        Some(seed) => seed..seed + 1,
        None => 0..number_from("LLM_DO_T1_FILES").unwrap_or(CASES),
    };
    let mut totals: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in seeds.clone() {
        for (kind, count) in case(seed).await {
            *totals.entry(kind).or_default() += count;
        }
    }
    say(&format!("{} cases: {totals:?}", seeds.count()));
    if single.is_none() {
        let kinds = [
            "write_file",
            "edit_file",
            "mv",
            "agent_create",
            "allowed",
            "refused",
            "by a grant",
            "edited",
            "note_plain",
            "note_made",
            "note_shared",
            "note_registered",
        ];
        for kind in kinds {
            assert!(totals.get(kind).is_some_and(|count| *count >= 5), "too few of `{kind}`: {totals:?}");
        }
    }
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

#[expect(clippy::print_stdout, reason = "a person looks at the mix of cases")]
fn say(text: &str) {
    println!("{text}");
}

/// Runs one case and returns what it had of each kind.
async fn case(seed: u64) -> Vec<(&'static str, usize)> {
    let mut chance = Chance::new(seed);
    let rule = *chance.one_of(&[Rule::None, Rule::PreApproved, Rule::Blocked]);
    let mode = *chance.one_of(&[
        ApprovalMode::Prompt,
        ApprovalMode::Prompt,
        ApprovalMode::Prompt,
        ApprovalMode::ApproveAll,
        ApprovalMode::RejectAll,
    ]);
    let folder = Folder::new(seed, rule);
    let outside = folder.outside();
    let calls = calls::random(&mut chance, seed);
    let mut replies = calls::replies(&mut chance, &calls);
    replies.extend((0..40).map(|_| says("done")));
    let whim = Whim::new(seed);
    let witness = Arc::new(Witness::new(&folder));
    let project =
        llm_do_project::load_changed(folder.project(), &[], &StandardCatalog::new(folder.project()))
            .unwrap_or_else(|problems| panic!("{problems}"));
    let runtime = project
        .runtime()
        .model(Script::new(replies))
        .approver(whim.clone())
        .store(Arc::new(witness.store()))
        .build()
        .unwrap();
    for _ in 0..2 {
        let _ = runtime.run("main", "go").approval_mode(mode).await;
    }
    runtime.shutdown().await;

    let context = format!("seed {seed}, {mode:?}, {rule:?}; LLM_DO_T1_FILES_SEED={seed} runs it alone");
    assert_eq!(folder.outside(), outside, "something changed outside the project: {context}");
    assert_eq!(witness.too_early(), Vec::<String>::new(), "done before it was recorded: {context}");
    let found = folder.marks();
    for mark in &found {
        let call = calls.iter().find(|call| mark.starts_with(&call.mark)).unwrap();
        check(call, mark, mode, rule, &whim, &witness)
            .unwrap_or_else(|why| panic!("{mark} {call:?}: {why}: {context}"));
    }
    counted(&calls, &found, &whim, &witness)
}

/// Says why a change that happened should not have.
fn check(
    call: &Call,
    mark: &str,
    mode: ApprovalMode,
    rule: Rule,
    whim: &Whim,
    witness: &Witness,
) -> Result<(), String> {
    if !witness.was_allowed(mark) {
        return Err("the record holds no permission for it".to_owned());
    }
    if call.is_hostile {
        return Err("it is never allowed".to_owned());
    }
    let ruled = if call.name == "write_file" { rule.approval() } else { None };
    let by_person = || whim.allowed(call.name, mark);
    match (ruled, mode) {
        (Some(Approval::Blocked), _) => Err("a rule blocks it".to_owned()),
        (_, ApprovalMode::RejectAll) => Err("the run rejects what must ask".to_owned()),
        (Some(Approval::PreApproved), _) if !call.is_protected => Ok(()),
        (_, ApprovalMode::ApproveAll) => Ok(()),
        _ if by_person() => Ok(()),
        _ => Err(format!("nobody allowed it: {:?}", whim.log())),
    }
}

fn counted(
    calls: &[Call],
    found: &BTreeSet<String>,
    whim: &Whim,
    witness: &Witness,
) -> Vec<(&'static str, usize)> {
    let happened = |call: &Call| found.iter().any(|mark| mark.starts_with(&call.mark));
    let mut counts: Vec<(&'static str, usize)> =
        calls.iter().filter(|call| happened(call)).map(|call| (call.name, 1)).collect();
    counts.push(("allowed", found.len()));
    counts.push(("edited", found.iter().filter(|mark| mark.ends_with('e')).count()));
    counts.push(("refused", whim.refusals()));
    counts.push(("by a grant", witness.by_grants()));
    counts
}
