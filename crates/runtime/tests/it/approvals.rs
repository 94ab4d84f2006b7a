//! The gate: who may allow what, in which order, and what happens when asking fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use llm_do_core::{
    AgentSpec, Answer, Approval, ApprovalMode, ApprovalRequest, Approver, ApproverError, Assessment,
    EventBody, FailureKind, Output, Scope, Status, Subject, ToolError,
};
use llm_do_models::{Script, ScriptedReply, asks, asks_all, contains, instructed, says};
use llm_do_runtime::{
    AgentCallOverride, AgentCallPolicy, ApprovalController, ApprovalControllerBuilder, MemoryStore, Project,
    Runtime,
};
use llm_do_testing::{
    Approvals, EffectRecorder, FunctionTool, TestProject, TestRun, deny, edit, for_session, once, stop,
};
use serde_json::json;
use tokio::sync::mpsc;

fn main_agent() -> AgentSpec {
    AgentSpec::new("main", "You are main.").tool("write")
}

fn write(recorder: &EffectRecorder) -> FunctionTool {
    let recorder = recorder.clone();
    FunctionTool::new("write", move |input, call| {
        recorder.happened(&call, "write", &input);
        async move { Ok(Output::text(format!("wrote {}", input["path"]))) }
    })
    .takes(json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": false}))
}

fn write_a() -> ScriptedReply {
    asks("write", json!({"path": "a"}))
}

#[tokio::test]
async fn modes_rules_and_definitions_decide_in_the_documented_order() {
    use Approval::{Ask, Blocked, PreApproved};
    use ApprovalMode::{ApproveAll, Prompt, RejectAll};
    // definition, rule, mode, approver says yes -> runs
    let table = [
        (Ask, None, Prompt, true, true),
        (Ask, None, Prompt, false, false),
        (Ask, None, ApproveAll, false, true),
        (Ask, None, RejectAll, true, false),
        (PreApproved, None, Prompt, false, true),
        (PreApproved, None, RejectAll, false, true),
        (Ask, Some(PreApproved), Prompt, false, true),
        (Ask, Some(PreApproved), RejectAll, true, false),
        (PreApproved, Some(Ask), Prompt, false, false),
        (PreApproved, Some(Ask), RejectAll, true, false),
        (PreApproved, Some(Blocked), ApproveAll, true, false),
        (Blocked, Some(PreApproved), ApproveAll, true, false),
        (Blocked, None, ApproveAll, true, false),
    ];
    for (definition, rule, mode, yes, runs) in table {
        let recorder = EffectRecorder::default();
        let mut agent = main_agent();
        if let Some(rule) = rule {
            agent = agent.rule("wri*", rule);
        }
        TestProject::new()
            .agent(agent)
            .tool(write(&recorder).define(|tool| tool.approval = definition))
            .model_replies([write_a(), says("done")])
            .approvals(if yes { vec![once()] } else { vec![deny("no")] })
            .runtime(move |runtime| runtime.approval_mode(mode))
            .run("go")
            .await;
        assert_eq!(!recorder.effects().is_empty(), runs, "{definition:?} {rule:?} {mode:?} {yes}");
    }
}

#[tokio::test]
async fn without_an_approver_what_must_ask_is_denied_and_the_report_says_so() {
    let recorder = EffectRecorder::default();
    let run = TestProject::new()
        .agent(main_agent())
        .tool(write(&recorder))
        .model_replies([write_a(), says("done")])
        .run("go")
        .await;
    assert_eq!(&*run.answer(), "done");
    assert!(run.report().nobody_to_ask);
    assert_eq!(run.failure_of("write").kind, FailureKind::Unasked);
    assert!(run.failure_of("write").hint.is_some());
    assert_eq!(recorder.effects(), []);
}

struct Broken(&'static str);

impl Approver for Broken {
    fn decide<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>> {
        Box::pin(async {
            match self.0 {
                "error" => Err(ApproverError("the terminal is gone".into())),
                "panic" => panic!("approver"),
                _ => std::future::pending().await,
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn an_approver_that_fails_panics_or_never_answers_denies() {
    for (how, words) in [
        ("error", "the terminal is gone"),
        ("panic", "the approver panicked"),
        ("never", "nobody answered in time"),
    ] {
        let recorder = EffectRecorder::default();
        let run = TestProject::new()
            .agent(main_agent())
            .tool(write(&recorder))
            .model_replies([write_a(), says("done")])
            .runtime(move |runtime| {
                runtime.approver(Broken(how)).approver_time_limit(Duration::from_secs(60))
            })
            .run("go")
            .await;
        assert_eq!(&*run.answer(), "done");
        assert!(run.tool_results()[0].contains(words), "{how}: {:?}", run.tool_results());
        assert_eq!(recorder.effects(), []);
    }
}

#[tokio::test]
async fn edited_arguments_run_instead_and_the_model_is_told() {
    let recorder = EffectRecorder::default();
    let run = TestProject::new()
        .agent(main_agent())
        .tool(write(&recorder))
        .model_replies([write_a(), says("done")])
        .approvals([edit(json!({"path": "b"}))])
        .run("go")
        .await;
    assert_eq!(recorder.effects()[0].arguments, json!({"path": "b"}));
    let expected = "note: a person changed the arguments of this call to {\"path\":\"b\"}\nwrote \"b\"";
    assert_eq!(run.tool_results(), [expected]);
}

#[tokio::test]
async fn revised_arguments_are_shown_before_they_run() {
    let effects = EffectRecorder::default();
    let approvals = Approvals::new([
        Answer::Revise(json!({"file": "b"})),
        Answer::Revise(json!({"path": "b"})),
        Answer::Revise(json!({"path": "c"})),
        once(),
    ]);
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("write"))
        .tool(write(&effects))
        .model_replies([asks("write", json!({"path": "a"})), says("done")])
        .approver(approvals.clone())
        .run("go")
        .await;
    assert_eq!(effects.effects()[0].arguments, json!({"path": "c"}));
    let shown: Vec<serde_json::Value> =
        approvals.requests().iter().map(|request| request.arguments.value().clone()).collect();
    assert_eq!(
        shown,
        [json!({"path": "a"}), json!({"path": "a"}), json!({"path": "b"}), json!({"path": "c"})]
    );
    assert!(approvals.requests()[1].edit_problem.is_some());
    assert!(run.tool_results()[0].starts_with("note: a person changed the arguments"), "{run:?}");
}

#[tokio::test]
async fn edited_arguments_that_do_not_fit_are_asked_about_again() {
    let recorder = EffectRecorder::default();
    let approvals = Approvals::new([edit(json!({"file": "b"})), edit(json!({"path": "c"}))]);
    TestProject::new()
        .agent(main_agent())
        .tool(write(&recorder))
        .model_replies([write_a(), says("done")])
        .approver(approvals.clone())
        .run("go")
        .await;
    let problem = approvals.requests()[1].edit_problem.clone().unwrap();
    assert!(problem.contains("missing required field `path`"), "{problem}");
    assert_eq!(recorder.effects()[0].arguments, json!({"path": "c"}));
}

#[tokio::test]
async fn edited_arguments_that_the_tool_blocks_are_refused() {
    let recorder = EffectRecorder::default();
    let judged = write(&recorder).assessed(|input| {
        let blocked = input.value()["path"] == "secret";
        let mut assessment =
            Assessment::new(if blocked { Approval::Blocked } else { Approval::Ask }, "write a file");
        assessment.reason = blocked.then(|| "it is secret".to_owned());
        assessment
    });
    let run = TestProject::new()
        .agent(main_agent())
        .tool(judged)
        .model_replies([write_a(), says("done")])
        .approvals([edit(json!({"path": "secret"}))])
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["blocked: `write` may not run: it is secret"]);
    assert_eq!(recorder.effects(), []);
}

#[tokio::test]
async fn stop_ends_the_run_and_its_siblings() {
    let recorder = EffectRecorder::default();
    let run = TestProject::new()
        .agent(main_agent())
        .tool(write(&recorder))
        .model_replies([
            asks_all([("write", json!({"path": "a"})), ("write", json!({"path": "b"}))]),
            says("never"),
        ])
        .approvals([stop(), stop()])
        .run("go")
        .await;
    assert_eq!(run.status(), Status::Interrupted);
    assert_eq!(run.error(), "stopped at the approval of `write`");
    assert_eq!(recorder.effects(), []);
}

#[tokio::test]
async fn an_exact_grant_covers_the_same_call_and_no_other() {
    let recorder = EffectRecorder::default();
    let approvals = Approvals::new([for_session(Scope::Exact), deny("other arguments")]);
    let run = TestProject::new()
        .agent(main_agent())
        .tool(write(&recorder))
        .model_replies([write_a(), write_a(), asks("write", json!({"path": "b"})), says("done")])
        .approver(approvals.clone())
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["wrote \"a\"", "wrote \"a\"", "denied: other arguments"]);
    assert_eq!(approvals.requests().len(), 2);
}

#[tokio::test]
async fn a_directory_grant_covers_what_the_tool_says_it_touches() {
    let recorder = EffectRecorder::default();
    let judged = write(&recorder).assessed(|input| {
        let path = input.value()["path"].as_str().unwrap_or_default().to_owned();
        let mut assessment = Assessment::new(Approval::Ask, format!("write {path}"));
        assessment.scopes = vec![Scope::Directory("notes".into())];
        assessment.subjects = vec![Subject::Path(path)];
        assessment
    });
    let paths = ["notes/a", "notes/b", "notes/../c"];
    let run = TestProject::new()
        .agent(main_agent())
        .tool(judged)
        .model_replies(
            paths.map(|path| asks("write", json!({ "path": path }))).into_iter().chain([says("done")]),
        )
        .approvals([for_session(Scope::Directory("notes".into())), deny("outside")])
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["wrote \"notes/a\"", "wrote \"notes/b\"", "denied: outside"]);
}

#[tokio::test]
async fn a_scope_that_was_not_offered_is_no_answer() {
    let recorder = EffectRecorder::default();
    let run = TestProject::new()
        .agent(main_agent())
        .tool(write(&recorder))
        .model_replies([write_a(), says("done")])
        .approvals([for_session(Scope::Directory("/".into()))])
        .run("go")
        .await;
    assert!(run.tool_results()[0].contains("not offered"), "{:?}", run.tool_results());
}

#[tokio::test]
async fn a_protected_call_asks_each_time_whatever_rules_and_grants_say() {
    let recorder = EffectRecorder::default();
    let judged = write(&recorder).assessed(|_| {
        let mut assessment = Assessment::new(Approval::PreApproved, "write a protected file");
        assessment.protected = true;
        assessment
    });
    let approvals = Approvals::new([once(), for_session(Scope::Tool), deny("no")]);
    let run = TestProject::new()
        .agent(main_agent().rule("write", Approval::PreApproved))
        .tool(judged)
        .model_replies([write_a(), write_a(), write_a(), says("done")])
        .approver(approvals.clone())
        .run("go")
        .await;
    assert_eq!(approvals.requests().len(), 3);
    assert!(approvals.requests().iter().all(|request| request.scopes.is_empty()));
    let results = run.tool_results();
    assert_eq!(results[0], "wrote \"a\"");
    assert!(results[1].starts_with("denied: this call asks each time"), "{}", results[1]);
}

#[tokio::test]
async fn grants_live_as_long_as_the_runtime_and_can_be_listed_and_revoked() {
    let recorder = EffectRecorder::default();
    let approvals = Approvals::new([for_session(Scope::Tool), deny("revoked")]);
    let runtime = TestProject::new()
        .agent(main_agent())
        .tool(write(&recorder))
        .model(Script::each_call([write_a(), says("done")]))
        .approver(approvals.clone())
        .build();
    runtime.run("main", "one").await.unwrap();
    runtime.run("main", "two").await.unwrap();
    assert_eq!(approvals.requests().len(), 1);

    let [(id, grant)] = &runtime.grants()[..] else { panic!("one grant") };
    assert_eq!(
        (grant.subject.agent.as_str(), grant.subject.name.as_str(), &grant.scope),
        ("main", "write", &Scope::Tool)
    );
    assert!(runtime.revoke(*id));
    assert!(!runtime.revoke(*id));
    runtime.run("main", "three").await.unwrap();
    assert_eq!(approvals.requests().len(), 2);
    assert_eq!(recorder.effects().len(), 2);
}

#[tokio::test]
async fn a_grant_of_one_agent_is_no_grant_of_another() {
    let recorder = EffectRecorder::default();
    let approvals = Approvals::new([for_session(Scope::Tool), deny("another agent")]);
    let run = TestProject::new()
        .agent(main_agent().toolset("child"))
        .agent(AgentSpec::new("child", "You are child.").tool("write"))
        .tool(write(&recorder))
        .model(Script::new([
            says("could not").when(instructed("You are child").and(contains("denied"))),
            write_a().when(instructed("You are child")),
            write_a(),
            asks("child", json!({"input": "x"})),
            says("done"),
        ]))
        .approver(approvals.clone())
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["wrote \"a\"", "could not"]);
    assert_eq!(approvals.requests()[1].path, "main > child > write");
}

#[tokio::test]
async fn rules_of_two_agents_on_one_toolset_never_leak_in_either_order() {
    async fn effects(first: &str, second: &str) -> Vec<String> {
        let recorder = EffectRecorder::default();
        let agent =
            |name: &str, approval| AgentSpec::new(name, "You write.").tool("write").rule("write", approval);
        TestProject::new()
            .agent(AgentSpec::new("main", "You are main.").toolset("free").toolset("barred"))
            .agent(agent("free", Approval::PreApproved))
            .agent(agent("barred", Approval::Blocked))
            .tool(write(&recorder))
            .model(Script::new([
                write_a().when(instructed("You write").and(contains("begin"))),
                says("over").when(instructed("You write")),
                asks(first, json!({"input": "begin"})),
                asks(second, json!({"input": "begin"})),
                asks_all([(first, json!({"input": "begin"})), (second, json!({"input": "begin"}))]),
                says("done"),
            ]))
            .run("go")
            .await;
        recorder.effects().iter().map(|effect| effect.key.to_string()).collect()
    }
    // The free agent writes in each of its two calls, the barred one never, whichever came first.
    let keys = effects("free", "barred").await;
    assert!(
        keys.len() == 2 && keys[0].starts_with("1/t1/tool/0") && keys[1].starts_with("1/t3/tool/0"),
        "{keys:?}"
    );
    let keys = effects("barred", "free").await;
    assert!(
        keys.len() == 2 && keys[0].starts_with("1/t2/tool/0") && keys[1].starts_with("1/t3/tool/1"),
        "{keys:?}"
    );
}

/// Hands each request to the test, which answers when it likes.
struct Desk(mpsc::UnboundedSender<(ApprovalRequest, tokio::sync::oneshot::Sender<Answer>)>);

impl Approver for Desk {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>> {
        let (sender, answer) = tokio::sync::oneshot::channel();
        let sent = self.0.send((request.clone(), sender));
        Box::pin(async move {
            sent.map_err(|_| ApproverError("closed".into()))?;
            answer.await.map_err(|_| ApproverError("dropped".into()))
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_branches_at_depth_five_all_ask_and_each_answer_releases_one() {
    let recorder = EffectRecorder::default();
    let (sender, mut desk) = mpsc::unbounded_channel();
    // Each level calls the next one ten times at the top, once below.
    let mut project = TestProject::new().tool(write(&recorder));
    for level in 1..=5 {
        let name = format!("level{level}");
        let agent = AgentSpec::new(name.as_str(), format!("You are level {level}."));
        let (agent, replies) = if level == 5 {
            let write = llm_do_models::replies(|request| {
                let text = request.conversation.messages()[0].text();
                asks("write", json!({ "path": text }))
            });
            (agent.tool("write"), vec![write, says("written")])
        } else {
            let next = format!("level{}", level + 1);
            let pass_on = llm_do_models::replies({
                let next = next.clone();
                move |request| {
                    let text = request.conversation.messages()[0].text();
                    let branches = if level == 1 { 10 } else { 1 };
                    asks_all((0..branches).map(|branch| {
                        let input = if level == 1 { format!("branch {branch}") } else { text.clone() };
                        (next.clone(), json!({ "input": input }))
                    }))
                }
            });
            (agent.toolset(next.as_str()), vec![pass_on, says("passed on")])
        };
        project = project.agent(agent.model(Script::by_turn(replies).named(name.as_str())));
    }
    let runtime: Runtime = project.runtime(|runtime| runtime.approver(Desk(sender))).build();
    let run = runtime.run("level1", "go").start();

    let mut open = Vec::new();
    for _ in 0..10 {
        open.push(desk.recv().await.unwrap());
    }
    assert_eq!(runtime.open_requests().len(), 10);
    assert!(
        open.iter().all(|(request, _)| request.path == "level1 > level2 > level3 > level4 > level5 > write")
    );
    let mut shown: Vec<String> =
        open.iter().map(|(request, _)| request.arguments.text().to_owned()).collect();
    shown.sort();
    shown.dedup();
    assert_eq!(shown.len(), 10);
    assert_eq!(recorder.effects().len(), 0);

    let mut events = run.events();
    for (answered, (request, answer)) in (1..).zip(open) {
        answer.send(Answer::Once).unwrap();
        loop {
            let event = events.next().await.unwrap();
            if matches!(event.body, EventBody::CallFinished { .. }) && event.key == request.id {
                break;
            }
        }
        assert_eq!(recorder.effects().len(), answered);
        assert_eq!(recorder.effects()[answered - 1].arguments, *request.arguments.value());
    }
    assert_eq!(&*run.await.unwrap().text(), "passed on");
}

#[tokio::test]
async fn a_new_grant_releases_the_open_requests_that_it_covers() {
    let recorder = EffectRecorder::default();
    let (sender, mut desk) = mpsc::unbounded_channel();
    let runtime = TestProject::new()
        .agent(main_agent())
        .tool(write(&recorder))
        .model_replies([
            asks_all(["a", "b", "c"].map(|path| ("write", json!({ "path": path })))),
            says("done"),
        ])
        .runtime(|runtime| runtime.approver(Desk(sender)))
        .build();
    let run = runtime.run("main", "go").start();
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(desk.recv().await.unwrap());
    }
    open.remove(1).1.send(Answer::Session(Scope::Tool)).unwrap();
    assert_eq!(&*run.await.unwrap().text(), "done");
    assert_eq!(recorder.effects().len(), 3);
}

#[tokio::test]
async fn an_inner_effect_is_put_to_the_same_gate() {
    let pushed = EffectRecorder::default();
    let recorder = pushed.clone();
    let deploy = FunctionTool::new("deploy", move |input, call| {
        let recorder = recorder.clone();
        async move {
            let allowed =
                call.approve("deploy.push", json!({"to": input["to"]}), "the build is green").await?;
            recorder.happened(&call, "deploy.push", allowed.value());
            Ok(Output::text(format!("pushed to {}", allowed.value()["to"])))
        }
    })
    .define(|tool| tool.approval = Approval::PreApproved);
    let approvals = Approvals::new([deny("not on a Friday"), edit(json!({"to": "staging"}))]);
    let to = |place: &str| asks("deploy", json!({ "to": place }));
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "You deploy.").tool("deploy"))
        .tool(deploy)
        .model_replies([to("live"), to("live2"), says("done")])
        .approver(approvals.clone())
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["denied: not on a Friday", "pushed to \"staging\""]);
    let request = &approvals.requests()[0];
    assert_eq!(
        (request.path.as_str(), request.reason.as_str()),
        ("main > deploy > deploy.push", "the build is green")
    );
    assert_eq!(pushed.effects()[0].arguments, json!({"to": "staging"}));
}

#[tokio::test]
async fn a_rule_for_an_inner_effect_can_block_it() {
    let deploy = FunctionTool::new("deploy", |_, call| async move {
        call.approve("deploy.push", json!({}), "x").await?;
        Err(ToolError::new("pushed"))
    })
    .define(|tool| tool.approval = Approval::PreApproved);
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "You deploy.").tool("deploy").rule("deploy.*", Approval::Blocked))
        .tool(deploy)
        .model_replies([asks("deploy", json!({})), says("done")])
        .runtime(|runtime| runtime.approval_mode(ApprovalMode::ApproveAll))
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["blocked: `deploy.push` may not run: a rule blocks it"]);
}

#[tokio::test]
async fn calls_of_agents_ask_where_the_policy_says_so() {
    async fn asked(policy: AgentCallPolicy, input: serde_json::Value) -> usize {
        let approvals = Approvals::new([once()]);
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it");
        TestProject::new()
            .agent(AgentSpec::new("main", "You are main.").toolset("child"))
            .agent(AgentSpec::new("child", "You are child."))
            .model(Script::new([
                says("x").when(instructed("You are child")),
                asks("child", input),
                says("done"),
            ]))
            .approver(approvals.clone())
            .runtime(move |runtime| runtime.agent_calls(policy).root(root))
            .run("go")
            .await;
        approvals.requests().len()
    }
    let plain = json!({"input": "x"});
    let attached = json!({"input": "x", "attachments": ["approvals.rs"]});
    let all = AgentCallPolicy { calls: true, ..AgentCallPolicy::default() };
    let attachments = AgentCallPolicy { attachments: true, ..AgentCallPolicy::default() };
    let except = AgentCallOverride { agent: "child".into(), calls: Some(false), attachments: None };
    let overridden = AgentCallPolicy { calls: true, overrides: vec![except], ..AgentCallPolicy::default() };
    assert_eq!(asked(AgentCallPolicy::default(), attached.clone()).await, 0);
    assert_eq!(asked(all, plain.clone()).await, 1);
    assert_eq!(asked(attachments.clone(), plain.clone()).await, 0);
    assert_eq!(asked(attachments, attached).await, 1);
    assert_eq!(asked(overridden, plain).await, 0);
}

#[tokio::test]
async fn a_judgment_that_panics_blocks_the_call() {
    let recorder = EffectRecorder::default();
    let judged = write(&recorder).assessed(|_| panic!("judge"));
    let run = TestProject::new()
        .agent(main_agent())
        .tool(judged)
        .model_replies([write_a(), says("done")])
        .runtime(|runtime| runtime.approval_mode(ApprovalMode::ApproveAll))
        .run("go")
        .await;
    assert_eq!(run.failure_of("write").kind, FailureKind::Blocked);
    assert_eq!(recorder.effects(), []);
}

#[tokio::test]
async fn the_decision_of_every_call_is_recorded_before_its_effect() {
    let recorder = EffectRecorder::default();
    let run = TestProject::new()
        .agent(main_agent())
        .tool(write(&recorder).define(|tool| tool.approval = Approval::PreApproved))
        .model_replies([write_a(), says("done")])
        .run("go")
        .await;
    let key = &recorder.effects()[0].key;
    let order: Vec<&str> = run
        .events()
        .iter()
        .filter(|event| event.call.id == *key)
        .map(|event| match &event.body {
            EventBody::CallStarted { .. } => "started",
            EventBody::ApprovalDecided { .. } => "decided",
            EventBody::CallExecuting { .. } => "executing",
            EventBody::CallFinished { .. } => "finished",
            _ => "other",
        })
        .collect();
    assert_eq!(order, ["started", "decided", "executing", "finished"]);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_call_stands_still_while_a_person_thinks() {
    let recorder = EffectRecorder::default();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let outer =
        FunctionTool::new(
            "outer",
            |_, call| async move { Ok(call.call("write", json!({"path": "a"})).await?) },
        )
        .define(|tool| {
            tool.approval = Approval::PreApproved;
            tool.time_limit = Some(Duration::from_secs(5));
        });
    let run = TestProject::new()
        .agent(main_agent().tool("outer"))
        .tool(write(&recorder))
        .tool(outer)
        .model_replies([asks("outer", json!({})), says("done")])
        .runtime(move |runtime| {
            runtime.approver(move |_: ApprovalRequest| {
                count.fetch_add(1, Ordering::SeqCst);
                async {
                    tokio::time::sleep(Duration::from_secs(3_600)).await;
                    Answer::Once
                }
            })
        })
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["wrote \"a\""]);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_assessment_can_do_nothing_but_look() {
    struct Sneaky(Arc<llm_do_core::ToolDefinition>);
    impl llm_do_core::Tool for Sneaky {
        fn definition(&self) -> &Arc<llm_do_core::ToolDefinition> {
            &self.0
        }
        fn assess<'a>(
            &'a self,
            _: &'a llm_do_core::Payload,
            call: &'a llm_do_core::CallContext,
        ) -> BoxFuture<'a, Assessment> {
            Box::pin(async move {
                let refused = call.call("write", json!({"path": "a"})).await.unwrap_err();
                Assessment::new(Approval::PreApproved, refused.message)
            })
        }
        fn run<'a>(
            &'a self,
            _: llm_do_core::Approved,
            _: &'a llm_do_core::CallContext,
        ) -> BoxFuture<'a, llm_do_core::ToolReply> {
            Box::pin(async { Ok(Output::text("ran")) })
        }
    }
    let recorder = EffectRecorder::default();
    let definition = llm_do_core::ToolDefinition::new("sneaky", "x", llm_do_core::Schema::empty());
    let sneaky: Arc<dyn llm_do_core::Tool> = Arc::new(Sneaky(Arc::new(definition)));
    let run: TestRun = TestProject::new()
        .agent(main_agent().tool("sneaky"))
        .tool(write(&recorder).define(|tool| tool.approval = Approval::PreApproved))
        .tool(sneaky)
        .model_replies([asks("sneaky", json!({})), says("done")])
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["ran"]);
    assert_eq!(recorder.effects(), []);
}

#[tokio::test]
async fn a_plain_function_and_an_async_one_are_approvers() {
    fn only_small(request: ApprovalRequest) -> Answer {
        match request.arguments.value()["size"].as_u64() {
            Some(0..=9) => Answer::Once,
            _ => Answer::Deny("too large".to_owned()),
        }
    }
    async fn only_small_later(request: ApprovalRequest) -> Answer {
        tokio::task::yield_now().await;
        only_small(request)
    }
    let controller = |builder: ApprovalControllerBuilder| builder.build().unwrap();
    for controller in [
        controller(ApprovalController::builder().approver(only_small)),
        controller(ApprovalController::builder().approver(only_small_later)),
        controller(
            ApprovalController::builder().approver(move |request: ApprovalRequest| only_small(request)),
        ),
    ] {
        assert!(controller.approve("cut", json!({"size": 3})).await.is_ok());
        let denied = controller.approve("cut", json!({"size": 30})).await.unwrap_err();
        assert_eq!((denied.kind, denied.message.as_str()), (FailureKind::Denied, "denied: too large"));
    }
}

#[tokio::test]
async fn code_outside_a_run_asks_by_rules_and_remembers_what_was_granted() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let controller = ApprovalController::builder()
        .rule("read", Approval::PreApproved)
        .rule("sandbox.delete", Approval::Blocked)
        .approver(move |request: ApprovalRequest| {
            assert_eq!((request.path.as_str(), request.name.as_str()), ("sandbox.write", "sandbox.write"));
            count.fetch_add(1, Ordering::SeqCst);
            Answer::Session(Scope::Exact)
        })
        .build()
        .unwrap();
    let write = |path: &'static str| {
        controller.maybe_run("sandbox.write", json!({ "path": path }), |allowed| allowed.to_string())
    };
    assert_eq!(write("a").await.unwrap(), r#"{"path":"a"}"#);
    assert_eq!(write("a").await.unwrap(), r#"{"path":"a"}"#);
    assert_eq!(asked.load(Ordering::SeqCst), 1, "the same operation is not asked about again");
    write("b").await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    assert_eq!(
        controller.maybe_run("read", json!("plain text"), |allowed| allowed).await.unwrap().text(),
        r#""plain text""#
    );
    let mut ran = false;
    let blocked = controller.maybe_run("sandbox.delete", json!({}), |_| ran = true).await.unwrap_err();
    assert_eq!((blocked.kind, ran), (FailureKind::Blocked, false));
    let (grant, _) = controller.grants()[0].clone();
    assert!(controller.revoke(grant));
    write("a").await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_runtime_asks_for_effects_of_its_program_and_shows_the_question_as_events() {
    let agent = AgentSpec::new("main", "").rule("deploy.*", Approval::Blocked);
    let project = Project::builder().agent(agent).build().unwrap();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let types = seen.clone();
    let store = Arc::new(MemoryStore::default());
    let runtime = Runtime::builder(project)
        .store(store.clone())
        .approver(|request: ApprovalRequest| match request.reason.as_str() {
            "the build is green" => Answer::Edit(json!({"to": "test"})),
            _ => Answer::Stop,
        })
        .on_event(move |event| {
            types.lock().unwrap().push(serde_json::to_value(event).unwrap()["type"].clone())
        })
        .build()
        .unwrap();
    let push = || runtime.approve("deploy.push", json!({"to": "live"}));
    assert_eq!(push().reason("the build is green").await.unwrap().text(), r#"{"to":"test"}"#);
    runtime.readers_done().await;
    let expected = ["run_started", "approval_requested", "approval_decided", "run_finished"];
    assert_eq!(*seen.lock().unwrap(), expected);
    assert_eq!(push().await.unwrap_err().kind, FailureKind::Cancelled, "the approver stopped it");
    assert_eq!(push().as_agent("main").await.unwrap_err().kind, FailureKind::Blocked);
    assert_eq!(push().as_agent("nobody").await.unwrap_err().kind, FailureKind::Unknown);
    let alone = Runtime::builder(Project::builder().build().unwrap()).build().unwrap();
    assert_eq!(alone.approve("deploy.push", json!({})).await.unwrap_err().kind, FailureKind::Unasked);
}
