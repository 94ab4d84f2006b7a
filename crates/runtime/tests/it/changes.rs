//! A run is resumed with another project: what is different is named, kept and given to the program.

use std::sync::Arc;

use llm_do_core::{
    AgentSpec, Answer, Approval, ApprovalMode, BundledFile, ChangeKind, Effect, Event, EventBody, Output,
    ProjectBundle, ProjectChanges, RunId, Status,
};
use llm_do_models::{Script, asks, says};
use llm_do_runtime::{
    Ack, MemoryStore, OnChanges, Project, ResumeError, ResumeOptions, Runtime, Store, StoreError,
    changed_parts,
};
use llm_do_testing::{FunctionTool, HookedStore, TestProject};
use serde_json::json;

fn pay(effect: Effect, description: &str) -> FunctionTool {
    let description = description.to_owned();
    FunctionTool::new("pay", |_, _| async { Ok(Output::text("paid")) }).define(move |definition| {
        definition.effect = effect;
        definition.description = description.clone();
    })
}

/// An agent that pays once, with these words.
fn runtime(instructions: &str, tool: FunctionTool, bundle: &ProjectBundle, store: MemoryStore) -> Runtime {
    let bundle = bundle.clone();
    let main =
        AgentSpec::new("main", instructions).model(Script::by_turn([asks("pay", json!({})), says("done")]));
    TestProject::new()
        .agent(main.tool("pay"))
        .tool(tool)
        .runtime(move |runtime| {
            runtime.store(Arc::new(store)).bundle(move || bundle).approval_mode(ApprovalMode::ApproveAll)
        })
        .build()
}

fn files(text: &str) -> ProjectBundle {
    let mut bundle = ProjectBundle::default();
    bundle.insert("main.agent", BundledFile::new(text));
    bundle
}

/// The record of a run that had paid when its process ended.
async fn paid(kept: &MemoryStore) -> RunId {
    let first = runtime("old", pay(Effect::Once, "Pays."), &files("old"), kept.clone());
    first.run("main", "x").await.unwrap().id
}

/// The same record, cut behind the call; with the files that the store has.
async fn cut(kept: &MemoryStore, run: RunId) -> MemoryStore {
    let events = kept.read(run, None).await.unwrap();
    let end = events.iter().position(|event| is_end_of_tool(event)).unwrap();
    let cut = MemoryStore::from_events(events[..=end].iter().cloned());
    let bundle = Arc::new(files("old"));
    let claimed = cut.claim(run).await.unwrap();
    claimed.writer.keep_bundle(bundle.digest(), &bundle);
    cut
}

fn is_end_of_tool(event: &Event) -> bool {
    matches!(&event.body, EventBody::CallFinished { name, .. } if name.as_str() == "pay")
}

fn notices(events: &[Arc<Event>]) -> Vec<String> {
    let notices = events.iter().filter_map(|event| match &event.body {
        EventBody::Notice { text } => Some(text.clone()),
        _ => None,
    });
    notices.collect()
}

#[tokio::test]
async fn nothing_is_different_for_the_same_project() {
    let kept = MemoryStore::default();
    let run = paid(&kept).await;
    let same = runtime("old", pay(Effect::Once, "Pays."), &files("old"), cut(&kept, run).await);
    let report = same.resume(run).await.unwrap().await.unwrap();
    assert_eq!((report.changes.is_empty(), notices(&report.events()).len()), (true, 0));
}

#[tokio::test]
async fn agents_tools_and_files_that_differ_are_named() {
    let kept = MemoryStore::default();
    let run = paid(&kept).await;
    let other = runtime("new", pay(Effect::Once, "Pays at once."), &files("new"), cut(&kept, run).await);
    let report = other.resume(run).await.unwrap().await.unwrap();
    let changes = &report.changes;
    assert_eq!(changes.files, [("main.agent".to_owned(), ChangeKind::Modified)].into());
    assert_eq!(changes.agents, [("main".into(), ChangeKind::Modified)].into());
    assert_eq!(changes.tools, [("pay".into(), ChangeKind::Modified)].into());
    assert_eq!(changes.used_once, ["pay".into()].into());
    let told = notices(&report.events());
    assert!(
        told[0].ends_with("main.agent (modified), agent main (modified), tool pay (modified)"),
        "{told:?}"
    );
    let recorded = report.events().into_iter().find_map(|event| match &event.body {
        EventBody::RunResumed { changed, changes, state, .. } => {
            Some((*changed, changes.clone(), state.bundle))
        }
        _ => None,
    });
    assert_eq!(recorded, Some((true, changes.clone(), Some(files("new").digest()))));
}

#[tokio::test]
async fn a_tool_that_may_be_repeated_is_no_reason_to_ask() {
    let kept = MemoryStore::default();
    let first = runtime("old", pay(Effect::Idempotent, "Pays."), &ProjectBundle::default(), kept.clone());
    let run = first.run("main", "x").await.unwrap().id;
    let other = Project::builder().agent(AgentSpec::new("main", "old").tool("pay"));
    let other = other.tool(pay(Effect::Idempotent, "Pays at once.")).build().unwrap();
    let changes = changed_parts(&kept.read(run, None).await.unwrap(), &other);
    assert_eq!(changes.tools, [("pay".into(), ChangeKind::Modified)].into());
    assert!(changes.used_once.is_empty() && !changes.need_decision());
    assert_eq!(changes.agents, [("main".into(), ChangeKind::Modified)].into(), "the model is another one");
}

#[tokio::test]
async fn a_program_can_refuse_to_go_on_with_another_project() {
    let kept = MemoryStore::default();
    let run = paid(&kept).await;
    let refuse = || {
        let mut options = ResumeOptions::default();
        options.on_changes = OnChanges::Refuse;
        options
    };
    let cut = cut(&kept, run).await;
    let other = runtime("new", pay(Effect::Once, "Pays."), &files("new"), cut.clone());
    let refused = other.resume_with(run, refuse()).await;
    let Err(ResumeError::Changed { changes, .. }) = refused else { panic!("resumed") };
    assert_eq!(changes.files.len(), 1);
    let same = runtime("old", pay(Effect::Once, "Pays."), &files("old"), cut);
    assert_eq!(same.resume_with(run, refuse()).await.unwrap().await.unwrap().status, Status::Done);
}

/// An agent whose payment is asked about.
fn asking(instructions: &str, store: impl Store + 'static) -> Runtime {
    let main =
        AgentSpec::new("main", instructions).model(Script::by_turn([asks("pay", json!({})), says("done")]));
    let asked = pay(Effect::Once, "Pays.").define(|definition| definition.approval = Approval::Ask);
    TestProject::new()
        .agent(main.tool("pay"))
        .tool(asked)
        .approvals([Answer::Once])
        .runtime(move |runtime| runtime.store(Arc::new(store)))
        .build()
}

#[tokio::test]
async fn a_decision_of_before_a_change_is_made_anew_also_after_a_second_crash() {
    let kept = MemoryStore::default();
    let run = asking("old", kept.clone()).run("main", "x").await.unwrap().id;
    let events = kept.read(run, None).await.unwrap();
    let is_decision = |event: &Arc<Event>| matches!(&event.body, EventBody::ApprovalDecided { id, .. } if id.as_str().contains("tool"));
    let end = events.iter().position(is_decision).unwrap();
    let cut = MemoryStore::from_events(events[..=end].iter().cloned());
    // The continuation with the changed project ends before anything is decided anew.
    let stops = HookedStore::new(cut.clone(), |event, _| match &event.body {
        EventBody::RunResumed { .. } => Ok(Ack::done()),
        _ => Err(StoreError::Other("crashed".to_owned())),
    });
    asking("new", stops).resume(run).await.unwrap().await.unwrap_err();
    let report = asking("new", cut).resume(run).await.unwrap().await.unwrap();
    assert_eq!((report.status, &report.changes), (Status::Done, &ProjectChanges::default()));
    let decisions = report.events().iter().filter(|event| is_decision(event)).count();
    assert_eq!(decisions, 2);
}
