//! Attachments: policies, confinement, approval, and files in results.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use llm_do_core::{
    AgentSpec, Answer, Approval, ApprovalRequest, Attachment, AttachmentPolicy, AttachmentSource, EventBody,
    FailureKind, Output, Part, Scope, ShownAttachment,
};
use llm_do_models::{Script, asks, replies, says};
use llm_do_runtime::{AgentCallPolicy, MemoryStore, Store};
use llm_do_testing::{Approvals, FunctionTool, TestDir, TestProject, TestRun, once};
use serde_json::{Value, json};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n0000";

/// A project's root, and a directory beside it.
struct Root(TestDir);

impl Root {
    fn new() -> Self {
        let base = TestDir::with_files(&[("secret.txt", "secret")]);
        std::fs::create_dir(base.join("project")).unwrap();
        Self(base)
    }

    fn path(&self) -> PathBuf {
        self.0.join("project")
    }

    fn file(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.0.write(Path::new("project").join(name), bytes);
        self
    }

    fn link(self, name: &str, target: impl AsRef<Path>) -> Self {
        std::os::unix::fs::symlink(target, self.path().join(name)).unwrap();
        self
    }
}

fn policy(change: impl FnOnce(&mut AttachmentPolicy)) -> AttachmentPolicy {
    let mut policy = AttachmentPolicy::default();
    change(&mut policy);
    policy
}

/// An agent whose model gives these attachments to another one, which takes what the policy says.
fn giving(root: &Root, policy: AttachmentPolicy, attachments: &Value) -> TestProject {
    let path = root.path();
    let call = asks("child", json!({"input": "look", "attachments": attachments}));
    TestProject::new()
        .agent(
            AgentSpec::new("main", "You are main.").toolset("child").model(Script::new([call, says("done")])),
        )
        .agent(
            AgentSpec::new("child", "You are child.")
                .attachment_policy(policy)
                .model(Script::new([says("seen")])),
        )
        .runtime(move |runtime| runtime.root(path))
}

async fn given(root: &Root, policy: AttachmentPolicy, attachments: Value) -> String {
    let run = giving(root, policy, &attachments).run("go").await;
    run.tool_results().remove(0)
}

#[track_caller]
fn says_all(result: &str, words: &[&str]) {
    for word in words {
        assert!(result.contains(word), "`{word}` is not in: {result}");
    }
}

#[tokio::test]
async fn more_files_than_an_agent_takes_are_refused_before_any_is_looked_at() {
    let root = Root::new().file("a.txt", "a");
    let same = |count: usize| json!(vec!["a.txt"; count]);
    assert_eq!(given(&root, AttachmentPolicy::default(), same(4)).await, "seen", "a file may be given twice");
    let words = ["5 are given", "`child` takes at most 4", "max_attachments"];
    says_all(&given(&root, AttachmentPolicy::default(), same(5)).await, &words);
    // None of them exists, and nobody finds out.
    let names: Vec<String> = (0..10_000).map(|index| format!("gone-{index}.txt")).collect();
    says_all(&given(&root, AttachmentPolicy::default(), json!(names)).await, &["10000 are given"]);
    let none = policy(|policy| policy.max_attachments = 0);
    says_all(&given(&root, none, same(1)).await, &["1 are given", "at most 0"]);
}

#[tokio::test]
async fn files_are_measured_before_they_are_read_and_counted_together() {
    let root = Root::new().file("a.txt", "12345").file("b.txt", "67890").file("empty.txt", "");
    let small = || policy(|policy| policy.max_total_bytes = 9);
    assert_eq!(given(&root, small(), json!(["a.txt", "empty.txt"])).await, "seen");
    let words =
        ["`b.txt` is too large: it has 5 bytes", "at most 9 in all, of which 4 are left", "max_total_bytes"];
    says_all(&given(&root, small(), json!(["a.txt", "b.txt"])).await, &words);
    let sparse = std::fs::File::create(root.path().join("huge.bin")).unwrap();
    sparse.set_len(10 * 1024 * 1024 * 1024).unwrap();
    let refused = tokio::time::timeout(
        Duration::from_secs(10),
        given(&root, AttachmentPolicy::default(), json!(["huge.bin"])),
    );
    says_all(&refused.await.unwrap(), &["10737418240 bytes", "at most 10000000"]);
}

#[tokio::test]
async fn the_end_of_the_real_name_decides_in_any_case() {
    let root = Root::new();
    let root = root.file("a.PNG", PNG).file("b.png.exe", "x").file("c.secret.png", PNG).file("key", "x");
    let root = root.link("latest", "a.PNG").link("harmless.png", "key");
    let pictures = || {
        policy(|policy| {
            policy.allowed_suffixes = vec![".png".into()];
            policy.denied_suffixes = vec![".secret.png".into()];
        })
    };
    for taken in ["a.PNG", "latest"] {
        assert_eq!(given(&root, pictures(), json!([taken])).await, "seen", "{taken}");
    }
    says_all(
        &given(&root, pictures(), json!(["b.png.exe"])).await,
        &["does not end with `.png`", "allowed_suffixes"],
    );
    says_all(&given(&root, pictures(), json!(["harmless.png"])).await, &["`key` is not for `child`"]);
    says_all(
        &given(&root, pictures(), json!(["c.secret.png"])).await,
        &["end with `.secret.png` are denied"],
    );
}

#[tokio::test]
async fn what_is_no_file_of_the_project_is_refused_without_waiting() {
    let root = Root::new().file("a.txt", "a").link("out", "../secret.txt").link("far", "/etc/passwd");
    let root = root.link("zero", "/dev/zero").link("loop", "loop").link("env", "/proc/self/environ");
    std::fs::create_dir(root.path().join("folder")).unwrap();
    let pipe = root.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let refused = async {
        for outside in [
            "../secret.txt",
            "/etc/passwd",
            "/dev/zero",
            "/proc/self/environ",
            "out",
            "far",
            "zero",
            "env",
            "loop",
        ] {
            let result = given(&root, AttachmentPolicy::default(), json!([outside])).await;
            says_all(&result, &["could not be read", "only files below the project root can be attached"]);
        }
        for (name, words) in
            [("folder", "it is a directory"), ("pipe", "not a regular file"), ("", "could not be read")]
        {
            says_all(&given(&root, AttachmentPolicy::default(), json!([name])).await, &[words]);
        }
    };
    tokio::time::timeout(Duration::from_secs(20), refused).await.unwrap();
}

#[tokio::test]
async fn a_person_may_attach_any_regular_file_within_the_policy() {
    let root = Root::new().file("a.txt", "a");
    let run = |path: PathBuf| {
        let runtime = giving(&root, AttachmentPolicy::default(), &json!([])).build();
        async move { TestRun::of(runtime.run("child", "look").attach(Attachment::path(path)).await) }
    };
    assert_eq!(&*run(root.0.join("secret.txt")).await.answer(), "seen");
    assert_eq!(&*run("a.txt".into()).await.answer(), "seen");
    for (path, words) in
        [("/dev/zero", "not a regular file"), ("/", "is a directory"), ("gone.txt", "No such file")]
    {
        let failed = run(path.into()).await;
        assert!(failed.error().contains(words), "{}", failed.error());
    }
    let huge = root.path().join("huge.bin");
    std::fs::File::create(&huge).unwrap().set_len(1 << 34).unwrap();
    assert!(run(huge).await.error().contains("too large"));
}

/// The first message that the model of `child` is sent for an object with these attachments.
async fn shown_prompt(root: &Root, attachments: Value) -> String {
    let runtime = giving(root, AttachmentPolicy::default(), &json!([])).build();
    let run = TestRun::of(runtime.run("child", json!({"topic": "x", "attachments": attachments})).await);
    first_request(&run)
}

/// The text of the first message that a model is sent.
fn first_request(run: &TestRun) -> String {
    let first = run.report().events().iter().find_map(|event| match &event.body {
        EventBody::ModelRequest { messages, .. } => messages.first().cloned(),
        _ => None,
    });
    first.unwrap_or_else(|| panic!("{run:?}")).text().to_string()
}

#[tokio::test]
async fn an_object_shows_attached_files_relative_to_the_project() {
    let root = Root::new().file("docs/a.txt", "a");
    let (inside, outside) = (root.path().join("docs/a.txt"), root.0.join("secret.txt"));
    let shown = shown_prompt(&root, json!([inside, "docs/a.txt", outside])).await;
    let value: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(value, json!({"attachments": ["docs/a.txt", "docs/a.txt", "secret.txt"], "topic": "x"}));
}

#[tokio::test]
async fn an_object_shows_attached_bytes_by_their_name() {
    let root = Root::new();
    let runtime = giving(&root, AttachmentPolicy::default(), &json!([])).build();
    let attachment = Attachment::bytes("a.png", "image/png", PNG);
    let run = TestRun::of(runtime.run("child", json!({"topic": "x"})).attach(attachment).await);
    let shown = first_request(&run);
    assert_eq!(
        serde_json::from_str::<Value>(&shown).unwrap(),
        json!({"attachments": ["a.png"], "topic": "x"})
    );
}

#[tokio::test]
async fn a_call_with_attachments_is_approved_with_places_types_and_sizes() {
    let bidi = "invoice\u{202e}gnp.txt";
    let root = Root::new().file("a.png", PNG).file(bidi, "x").link("latest", "a.png");
    let approvals = Approvals::new([once()]);
    let run = giving(&root, AttachmentPolicy::default(), &json!(["latest", bidi]))
        .approver(approvals.clone())
        .runtime(|runtime| {
            runtime.agent_calls(AgentCallPolicy { attachments: true, ..AgentCallPolicy::default() })
        })
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["seen"]);
    assert_eq!(
        approvals.requests()[0].description,
        "call agent child with attachments: a.png (image/png, 12 bytes), \
         \"invoice\\u{202e}gnp.txt\" (text/plain, 1 byte)"
    );
    let file = |name: &str, media_type: &str, bytes| ShownAttachment {
        name: name.to_owned(),
        media_type: Some(media_type.to_owned()),
        bytes,
    };
    assert_eq!(
        approvals.requests()[0].attachments,
        [file("a.png", "image/png", 12), file(bidi, "text/plain", 1)]
    );
}

/// Runs a call of an agent whose file changes while a person thinks.
async fn changed_meanwhile(root: &Root, answer: Answer) -> TestRun {
    let file = root.path().join("a.txt");
    let approver = move |_: ApprovalRequest| {
        std::fs::write(&file, "something else").unwrap();
        let answer = answer.clone();
        async move { answer }
    };
    giving(root, AttachmentPolicy::default(), &json!(["a.txt"]))
        .runtime(move |runtime| {
            let policy = AgentCallPolicy { attachments: true, ..AgentCallPolicy::default() };
            runtime.agent_calls(policy).approver(approver)
        })
        .run("go")
        .await
}

#[tokio::test]
async fn a_file_that_changed_after_the_approval_is_not_sent() {
    let root = Root::new().file("a.txt", "as it was");
    let run = changed_meanwhile(&root, once()).await;
    says_all(&run.tool_results()[0], &["the attachment `a.txt` has changed since the call was approved"]);
    assert_eq!(run.failure_of("child").kind, FailureKind::Arguments);
    let sent = run.events().iter().any(|event| {
        matches!(&event.body, EventBody::ModelRequest { .. }) && event.call.path.contains("child")
    });
    assert!(!sent, "the child's model was asked");
}

#[tokio::test]
async fn a_grant_for_exactly_this_call_does_not_cover_another_content() {
    let root = Root::new().file("a.txt", "first");
    let path = root.path();
    let file = path.join("a.txt");
    let call = || asks("child", json!({"input": "look", "attachments": ["a.txt"]}));
    let swap = FunctionTool::new("swap", move |_, _| {
        std::fs::write(&file, "second").unwrap();
        async { Ok(Output::text("swapped")) }
    });
    let approvals = Approvals::new([Answer::Session(Scope::Exact), once()]);
    let main = AgentSpec::new("main", "x").toolset("child").tool("swap");
    let run = TestProject::new()
        .agent(main.model(Script::new([call(), call(), asks("swap", json!({})), call(), says("done")])))
        .agent(AgentSpec::new("child", "x").model(Script::by_turn([says("seen")])))
        .tool(swap.define(|tool| tool.approval = Approval::PreApproved))
        .approver(approvals.clone())
        .runtime(move |runtime| {
            runtime.root(path).agent_calls(AgentCallPolicy { calls: true, ..AgentCallPolicy::default() })
        })
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["seen", "seen", "swapped", "seen"]);
    assert_eq!(approvals.requests().len(), 2, "the second content was asked about");
}

/// A tool that gives back these attachments.
fn rendering(attachments: Vec<Attachment>) -> FunctionTool {
    FunctionTool::new("render", move |_, _| {
        let output = attachments.iter().cloned().fold(Output::text("rendered"), Output::with_attachment);
        async { Ok(output) }
    })
    .define(|tool| tool.approval = Approval::PreApproved)
}

async fn rendered(root: &Root, policy: AttachmentPolicy, attachments: Vec<Attachment>) -> TestRun {
    let path = root.path();
    TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("render").attachment_policy(policy))
        .tool(rendering(attachments))
        .model_replies([asks("render", json!({})), says("done")])
        .runtime(move |runtime| runtime.root(path))
        .run("go")
        .await
}

#[tokio::test]
async fn a_file_that_a_tool_gives_back_is_read_and_reaches_the_model() {
    let root = Root::new().file("chart.png", PNG);
    let bytes = Attachment::bytes("note", "text/plain", *b"hi");
    let run = rendered(&root, AttachmentPolicy::default(), vec![bytes, Attachment::path("chart.png")]).await;
    let result = run.results().remove(0);
    assert_eq!((&*result.text, result.is_error), ("rendered", false));
    let kinds: Vec<_> =
        result.attachments.iter().map(|file| (file.media_type.as_deref(), file.size())).collect();
    assert_eq!(kinds, [(Some("text/plain"), Some(2)), (Some("image/png"), Some(12))]);
}

#[tokio::test]
async fn a_result_whose_files_are_refused_says_so_and_what_was_answered() {
    let root = Root::new().file("chart.png", PNG).link("out.png", "../secret.txt");
    let few = policy(|policy| policy.max_attachments = 1);
    let pictures = policy(|policy| policy.allowed_suffixes = vec![".jpg".into()]);
    let chart = || Attachment::path("chart.png");
    let usual = AttachmentPolicy::default;
    for (policy, attachments, words) in [
        (usual(), vec![Attachment::path("/etc/passwd")], "only files below the project root"),
        (usual(), vec![Attachment::path("out.png")], "only files below the project root"),
        (usual(), vec![Attachment::path("gone.png")], "No such file"),
        (few, vec![chart(), chart()], "`main` takes at most 1"),
        (pictures, vec![Attachment::bytes("a.png", "image/png", PNG)], "does not end with `.jpg`"),
        (policy(|policy| policy.max_total_bytes = 3), vec![chart()], "too large"),
    ] {
        let run = rendered(&root, policy, attachments).await;
        let result = run.results().remove(0);
        assert!(result.is_error && result.attachments.is_empty(), "{result:?}");
        says_all(&result.text, &["`render` has run and answered `rendered`", words]);
        assert_eq!(&*run.answer(), "done");
    }
}

#[tokio::test]
async fn hidden_files_are_not_sent_because_a_model_says_so() {
    let root = Root::new().file(".env", "KEY=1").file("a/.keys/b.txt", "x").file("a/c.txt", "x");
    for hidden in [".env", "a/.keys/b.txt", "a/../.env"] {
        says_all(
            &given(&root, AttachmentPolicy::default(), json!([hidden])).await,
            &["it is hidden", "--attach"],
        );
    }
    assert_eq!(given(&root, AttachmentPolicy::default(), json!(["a/c.txt"])).await, "seen");
}

#[tokio::test]
async fn code_outside_any_agent_gets_the_bytes_of_files_too() {
    let root = Root::new().file("chart.png", PNG);
    let path = root.path();
    let many = (0..6).map(|index| Attachment::bytes(format!("{index}"), "text/plain", *b"x"));
    let attachments = many.chain([Attachment::path("chart.png")]).collect();
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("render"))
        .tool(rendering(attachments))
        .model_replies([])
        .runtime(move |runtime| runtime.root(path))
        .build();
    let report = runtime.run("render", json!({})).await.unwrap();
    let attachments = report.output.unwrap().attachments;
    assert_eq!(attachments.len(), 7);
    assert!(matches!(attachments[6].source, AttachmentSource::Data(_)), "{attachments:?}");
}

#[tokio::test]
async fn the_record_holds_the_files_that_were_sent() {
    let root = Root::new().file("a.txt", "as it was");
    let store = Arc::new(MemoryStore::default());
    let kept = store.clone();
    let runtime = giving(&root, AttachmentPolicy::default(), &json!(["a.txt"]))
        .runtime(move |runtime| runtime.store(kept))
        .build();
    let report = runtime.run("main", "go").await.unwrap();
    let events = store.read(report.id, None).await.unwrap();
    let sent = events.iter().find_map(|event| match &event.body {
        EventBody::ModelRequest { messages, .. } if event.call.path.contains("child") => {
            Some(messages.clone())
        }
        _ => None,
    });
    let parts = &sent.unwrap()[0].parts;
    assert!(matches!(&parts[1], Part::Attachment(file) if file.size() == Some(9)), "{parts:?}");
}

#[tokio::test]
async fn what_lies_in_a_file_decides_its_type() {
    let root = Root::new().file("picture.txt", PNG).file("text.png", "only words");
    let path = root.path();
    let child = Script::new([replies(|request| {
        let kinds: Vec<String> = request.conversation.messages()[0]
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Attachment(file) => file.media_type.clone(),
                _ => None,
            })
            .collect();
        says(kinds.join(" "))
    })]);
    let call = asks("child", json!({"input": "x", "attachments": ["picture.txt", "text.png"]}));
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").toolset("child").model(Script::new([call, says("done")])))
        .agent(AgentSpec::new("child", "x").model(child))
        .runtime(move |runtime| runtime.root(path))
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["image/png text/plain"]);
}
