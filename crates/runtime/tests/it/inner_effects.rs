//! Effects inside tools, and what a call can still do when it is over. Each test was a finding of `random_calls`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use llm_do_core::{
    AgentSpec, Approval, Assessment, CallContext, Decision, Event, EventBody, Output, Scope, Status,
    ToolReply,
};
use llm_do_models::{asks, says};
use llm_do_runtime::{Ack, Durability, MemoryStore, StoreError};
use llm_do_testing::{
    Approvals, EffectRecorder, FunctionTool, HookedStore, TestProject, TestRun, deny, edit, for_session, once,
};
use serde_json::{Value, json};

/// A tool that puts an effect of its own name to the gate and acts if it may.
fn deploy(recorder: &EffectRecorder) -> FunctionTool {
    let recorder = recorder.clone();
    FunctionTool::new("deploy", move |input, call| push(input, call, recorder.clone()))
}

async fn push(input: Value, call: CallContext, recorder: EffectRecorder) -> ToolReply {
    let allowed = call.approve("deploy", json!({"to": input["to"]}), "it goes live").await?;
    recorder.happened(&call, "deploy", allowed.value());
    Ok(Output::text("deployed"))
}

fn main_agent() -> AgentSpec {
    AgentSpec::new("main", "You are main.")
}

#[tokio::test]
async fn a_grant_for_a_tool_does_not_cover_an_effect_of_the_same_name_inside_it() {
    let recorder = EffectRecorder::default();
    let approvals = Approvals::new([for_session(Scope::Tool), deny("not live")]);
    let run = TestProject::new()
        .agent(main_agent().tool("deploy"))
        .tool(deploy(&recorder))
        .model_replies([asks("deploy", json!({"to": "x"})), says("done")])
        .approver(approvals.clone())
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["denied: not live"]);
    assert_eq!(recorder.effects(), []);
    assert_eq!(approvals.requests().len(), 2);
}

#[tokio::test]
async fn the_decision_about_an_inner_effect_names_the_question() {
    let recorder = EffectRecorder::default();
    let run = TestProject::new()
        .agent(main_agent().tool("deploy"))
        .tool(deploy(&recorder))
        .model_replies([asks("deploy", json!({"to": "x"})), says("done")])
        .approvals([once(), once()])
        .run("go")
        .await;
    let ids = |wanted: fn(&EventBody) -> Option<String>| -> Vec<String> {
        run.events().iter().filter_map(|event| wanted(&event.body)).collect()
    };
    let asked = ids(|body| match body {
        EventBody::ApprovalRequested(request) => Some(request.id.to_string()),
        _ => None,
    });
    let decided = ids(|body| match body {
        EventBody::ApprovalDecided { id, .. } => Some(id.to_string()),
        _ => None,
    });
    assert_eq!(asked.len(), 2);
    assert_eq!(decided[1..], asked);
}

/// A store that refuses everything from the first event on that it does not accept.
fn refusing(accepts: fn(&Event) -> bool) -> HookedStore {
    let refuses = AtomicBool::new(false);
    HookedStore::new(MemoryStore::default(), move |event, _| {
        if refuses.fetch_or(!accepts(event), Ordering::SeqCst) || !accepts(event) {
            return Err(StoreError::Full("the disk is full".to_owned()));
        }
        Ok(Ack::done())
    })
}

/// The events of a store in which a buffered event is safe only after the next barrier.
#[derive(Clone, Default)]
struct SafeEvents(Arc<Mutex<WrittenEvents>>);

#[derive(Default)]
struct WrittenEvents {
    buffered: Vec<Arc<Event>>,
    safe: Vec<Arc<Event>>,
}

impl SafeEvents {
    fn store(&self) -> HookedStore {
        let events = self.clone();
        HookedStore::new(MemoryStore::default(), move |event, durability| {
            let WrittenEvents { buffered, safe } = &mut *events.0.lock().unwrap();
            buffered.push(event.clone());
            if durability != Durability::Buffered {
                safe.append(buffered);
            }
            Ok(Ack::done())
        })
    }

    fn has_allow_for(&self, name: &str) -> bool {
        self.0.lock().unwrap().safe.iter().any(|event| {
            let allows = matches!(&event.body, EventBody::ApprovalDecided { decision, .. } if matches!(**decision, Decision::Allow(_)));
            allows && event.key.contains(name)
        })
    }
}

#[tokio::test]
async fn the_permit_of_an_inner_effect_is_safe_before_the_effect() {
    let seen = SafeEvents::default();
    let store = seen.store();
    let tool = FunctionTool::new("ship", move |_, call| {
        let seen = seen.clone();
        async move {
            call.approve("deploy.push", json!({}), "it goes live").await?;
            Ok(Output::json(json!(seen.has_allow_for("deploy.push"))))
        }
    });
    let run = TestProject::new()
        .agent(
            main_agent()
                .tool("ship")
                .rule("*", Approval::PreApproved)
                .rule("deploy.*", Approval::PreApproved),
        )
        .tool(tool)
        .model_replies([asks("ship", json!({})), says("done")])
        .runtime(move |runtime| runtime.store(Arc::new(store)))
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["true"]);
}

#[tokio::test]
async fn an_inner_effect_that_cannot_be_recorded_does_not_happen() {
    let recorder = EffectRecorder::default();
    let is_known = |event: &Event| !event.key.ends_with("/gate") || !event.key.contains('#');
    let store = Arc::new(refusing(is_known));
    let run = TestProject::new()
        .agent(main_agent().tool("deploy").rule("deploy", Approval::PreApproved))
        .tool(deploy(&recorder))
        .model_replies([asks("deploy", json!({"to": "x"})), says("done")])
        .runtime(move |runtime| runtime.store(store))
        .run("go")
        .await;
    assert_eq!(run.status(), Status::Record);
    assert_eq!(recorder.effects(), []);
}

#[tokio::test]
async fn a_run_whose_end_cannot_be_recorded_says_so_and_keeps_its_answer() {
    let is_open = |event: &Event| !matches!(event.body, EventBody::RunFinished { .. });
    let store = Arc::new(refusing(is_open));
    let run = TestProject::new()
        .agent(main_agent())
        .model_replies([says("Hello.")])
        .runtime(move |runtime| runtime.store(store))
        .run("hi")
        .await;
    assert_eq!(run.status(), Status::Record);
    assert_eq!(&*run.report().text(), "Hello.");
}

#[tokio::test]
async fn what_is_blocked_by_now_is_not_asked_about_again() {
    let judged = AtomicUsize::new(0);
    let write = FunctionTool::new("write", |_, _| async { Ok(Output::text("written")) })
        .takes(json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}))
        .assessed(move |_| {
            let level = match judged.fetch_add(1, Ordering::SeqCst) {
                0 => Approval::Ask,
                _ => Approval::Blocked,
            };
            Assessment::new(level, "write a file")
        });
    let approvals = Approvals::new([edit(json!({"path": 7})), once()]);
    let run = TestProject::new()
        .agent(main_agent().tool("write"))
        .tool(write)
        .model_replies([asks("write", json!({"path": "a"})), says("done")])
        .approver(approvals.clone())
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["blocked: `write` may not run"]);
    assert_eq!(approvals.requests().len(), 1);
}

#[tokio::test]
async fn a_call_that_is_over_says_nothing_more() {
    let kept: Arc<Mutex<Option<CallContext>>> = Arc::default();
    let keeper = kept.clone();
    let leak = FunctionTool::new("leak", move |_, call| {
        call.stderr("still running");
        keeper.lock().unwrap().replace(call);
        async { Ok(Output::text("done")) }
    });
    let runtime = TestProject::new()
        .agent(main_agent().tool("leak").rule("leak", Approval::PreApproved))
        .tool(leak)
        .model_replies([asks("leak", json!({})), says("done")])
        .build();
    let run = TestRun::of(runtime.run("main", "go").await);
    let call = kept.lock().unwrap().take().unwrap();
    call.stderr("over");
    call.notice("over");
    assert!(call.approve("deploy.push", json!({}), "late").await.is_err());
    assert!(call.call("leak", json!({})).await.is_err());
    let events = run.events();
    assert!(matches!(events.last().unwrap().body, EventBody::RunFinished { .. }));
    assert_eq!(run.report().stderr_log(), ["still running"]);
    runtime.shutdown().await;
}
