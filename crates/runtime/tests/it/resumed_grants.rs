//! Grants of a run, after a restart.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use llm_do_core::{
    AgentSpec, Answer, Approval, ApprovalRequest, Effect, Event, EventBody, Output, RunId, Scope,
};
use llm_do_models::{Script, ScriptedReply, asks, says};
use llm_do_runtime::{MemoryStore, Runtime, Store};
use llm_do_testing::{FunctionTool, TestProject};
use serde_json::json;

use crate::resume::cut_after;

/// A process with a person who allows `act` for the session.
struct Process {
    runtime: Runtime,
    asked: Arc<AtomicUsize>,
}

impl Process {
    fn new(store: &MemoryStore, replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let approver = move |_: ApprovalRequest| {
            count.fetch_add(1, Ordering::SeqCst);
            async { Answer::Session(Scope::Tool) }
        };
        let store = Arc::new(store.clone());
        let own = Arc::new(OnceLock::<Runtime>::new());
        let revoking = own.clone();
        // What a person does while the run goes on.
        let regret = FunctionTool::new("regret", move |_, _| {
            let runtime = revoking.get().unwrap();
            runtime.grants().into_iter().for_each(|(id, _)| assert!(runtime.revoke(id)));
            async { Ok(Output::text("revoked")) }
        })
        .define(|tool| tool.approval = Approval::PreApproved);
        let act = FunctionTool::new("act", |_, _| async { Ok(Output::text("acted")) });
        let main = AgentSpec::new("main", "x").tool("act").tool("regret");
        let runtime = TestProject::new()
            .agent(main.model(Script::by_turn(replies)))
            .tool(act.define(|tool| tool.effect = Effect::Idempotent))
            .tool(regret.define(|tool| tool.effect = Effect::Pure))
            .runtime(move |runtime| runtime.store(store).approver(approver))
            .build();
        assert!(own.set(runtime.clone()).is_ok());
        Self { runtime, asked }
    }

    async fn resume(&self, run: RunId) -> usize {
        let report = self.runtime.resume(run).await.unwrap().await.unwrap();
        assert_eq!(&*report.text(), "done");
        self.asked.load(Ordering::SeqCst)
    }
}

fn acting(times: usize) -> impl Iterator<Item = ScriptedReply> {
    (0..times).map(|n| asks("act", json!({ "n": n }))).chain([says("done")])
}

#[tokio::test]
async fn a_grant_of_a_record_holds_for_its_run_and_no_other() {
    let kept = MemoryStore::default();
    let first = Process::new(&kept, acting(2));
    let run = first.runtime.run("main", "go").await.unwrap().id;
    assert_eq!(first.asked.load(Ordering::SeqCst), 1);
    let acted =
        |event: &Event| event.key == "1/t1/tool/0" && matches!(event.body, EventBody::CallFinished { .. });
    let cut = cut_after(&kept, run, acted).await;

    let second = Process::new(&cut, acting(2));
    assert_eq!(second.resume(run).await, 0);
    assert_eq!(second.runtime.grants(), []);
    second.runtime.run("main", "go").await.unwrap();
    assert_eq!(second.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_grant_that_was_revoked_while_its_run_went_on_stays_revoked_in_another_process() {
    let kept = MemoryStore::default();
    let replies = || {
        [asks("act", json!({"n": 1})), asks("regret", json!({})), asks("act", json!({"n": 2})), says("done")]
    };
    let first = Process::new(&kept, replies());
    let run = first.runtime.run("main", "go").await.unwrap().id;
    assert_eq!(first.asked.load(Ordering::SeqCst), 2);
    let revoked =
        |event: &Event| event.key == "1/t2/tool/0" && matches!(event.body, EventBody::CallFinished { .. });
    let cut = cut_after(&kept, run, revoked).await;
    assert_eq!(Process::new(&cut, replies()).resume(run).await, 1);

    // What was granted again holds again.
    let granted =
        |event: &Event| event.key == "1/t3/tool/0" && matches!(event.body, EventBody::CallFinished { .. });
    let cut = cut_after(&kept, run, granted).await;
    let more = replies().into_iter().take(3).chain([asks("act", json!({"n": 3})), says("done")]);
    assert_eq!(Process::new(&cut, more).resume(run).await, 0);
}

/// A run that was broken off after a grant, which is taken back as the function does it.
async fn revoked_later(revoke: impl FnOnce(Runtime)) {
    let kept = MemoryStore::default();
    let slow = || says("never").after(Duration::from_secs(3_600));
    let first = Process::new(&kept, [asks("act", json!({"n": 1})), slow()]);
    let run = first.runtime.run("main", "go").timeout(Duration::from_secs(60)).await.unwrap_err().report.id;
    revoke(first.runtime.clone());
    first.runtime.shutdown().await;
    let events = kept.read(run, None).await.unwrap();
    assert!(matches!(events.last().unwrap().body, EventBody::GrantRevoked { .. }));
    assert_eq!(events.last().unwrap().seq, Some(events.len() as u64 - 1));
    assert_eq!(Process::new(&kept, acting(2)).resume(run).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_was_revoked_after_its_run_was_broken_off_stays_revoked_in_another_process() {
    let revoke =
        |runtime: Runtime| runtime.grants().into_iter().for_each(|(id, _)| assert!(runtime.revoke(id)));
    revoked_later(revoke).await;
    // Code that is not async does it too.
    revoked_later(|runtime| std::thread::spawn(move || revoke(runtime)).join().unwrap()).await;
}
