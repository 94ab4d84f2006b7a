//! Secrets: calls that read secret files ask, and no tool's answer carries a private key or a known token further.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use llm_do_core::{
    AgentSpec, Answer, Approval, ApprovalMode, Assessment, Attachment, Digest, EventBody, FailureKind, Model,
    ModelError, Models, Output, SecretFile, Subject, ToolError,
};
use llm_do_models::{Script, asks, says};
use llm_do_secrets::SecretFiles;
use llm_do_testing::{Approvals, FunctionTool, TestDir, TestProject, TestRun, once};
use serde_json::json;

/// Put together here, so that this file holds no token.
fn token() -> String {
    ["ghp", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17"].join("_")
}

fn private_key() -> String {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n";
    let kind = ["PRIVATE", "KEY"].join(" ");
    format!("-----BEGIN {kind}-----\n{}-----END {kind}-----\n", line.repeat(25))
}

fn agent() -> AgentSpec {
    AgentSpec::new("main", "You are main.").tool("show").rule("show", Approval::PreApproved)
}

async fn run_tool(tool: FunctionTool) -> TestRun {
    let replies = [asks("show", json!({})), says("Done.")];
    let tool = tool.define(|definition| definition.approval = Approval::PreApproved);
    TestProject::new().agent(agent()).tool(tool).model_replies(replies).run("go").await
}

/// Everything that was recorded or shown, requests to the model among it.
fn everything(run: &TestRun) -> String {
    run.events().iter().map(|event| serde_json::to_string(event).unwrap() + "\n").collect()
}

#[tokio::test]
async fn no_answer_of_a_tool_carries_a_known_secret_to_the_model_or_the_record() {
    type Answering = fn() -> Result<Output, ToolError>;
    let answers: [Answering; 6] = [
        || Ok(Output::text(format!("the token {} and the key {}", token(), private_key()))),
        || Ok(Output::json(json!({"a": [{"b": token()}], "key": private_key()}))),
        || Ok(Output::json(json!({token(): 1}))),
        || Err(ToolError::new(format!("failed with {}", token()))),
        || panic!("panicked with {}", token()),
        || Ok(Output::text("see").with_attachment(Attachment::bytes("a.txt", "text/plain", token()))),
    ];
    for (index, answer) in answers.into_iter().enumerate() {
        let tool = FunctionTool::new("show", move |_, call| {
            call.notice(format!("notice {}", token()));
            call.progress().report(format!("progress {}", token()));
            async move { answer() }
        });
        let run = run_tool(tool).await;
        let all = everything(&run);
        assert!(!all.contains(&token()[4..]), "{index}: {all}");
        assert!(!all.contains("MIIEvQIBADANBg"), "{index}: {all}");
        assert!(all.contains("notice [secret: GitHub token, 40 bytes]"), "{index}: {all}");
    }
}

/// A key of the environment, which the catalog knows from the start.
const KEY: &str = "sk-canary-0123/456+789";
/// A key of the key store, which is opened with the model that needs it.
const STORED_KEY: &str = "stored-canary-9876543210";

/// A catalog with one model, which asks for the tool `show` once.
#[derive(Clone, Default)]
struct Catalog {
    is_store_open: Arc<AtomicBool>,
}

impl Models for Catalog {
    fn resolve(&self, _: &str) -> Result<Arc<dyn Model>, ModelError> {
        self.is_store_open.store(true, Ordering::Relaxed);
        Ok(Arc::new(Script::new([asks("show", json!({})), says("Done.")]).named("acme:m")))
    }

    fn secrets(&self) -> Vec<String> {
        let stored = self.is_store_open.load(Ordering::Relaxed).then(|| STORED_KEY.to_owned());
        [KEY.to_owned()].into_iter().chain(stored).collect()
    }
}

async fn run_tool_beside_keys(tool: FunctionTool) -> TestRun {
    let tool = tool.define(|definition| definition.approval = Approval::PreApproved);
    let project = TestProject::new().agent(agent().model("acme:m")).tool(tool);
    project.runtime(|builder| builder.models(Catalog::default())).run("go").await
}

/// Returns a key as tools may show it.
fn forms_of(key: &str) -> Vec<String> {
    let hex = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent = key.replace('/', "%2F").replace('+', "%2B");
    let within = |opening: &str| STANDARD.encode(format!("{opening}{key}, end"));
    let basic = URL_SAFE_NO_PAD.encode(format!("user:{key}"));
    vec![key.to_owned(), key.replace('/', "\\/"), hex, percent, within(""), within("a"), within("ab"), basic]
}

/// The longest part of each form that is found, whatever surrounds the key.
fn assert_absent(all: &str, key: &str, context: &str) {
    for form in forms_of(key) {
        let middle = &form[form.len() / 3..form.len() * 2 / 3];
        assert!(!all.contains(middle), "{context}: `{form}` is in {all}");
    }
}

#[tokio::test]
async fn no_known_key_leaves_a_tool_in_any_form_or_way() {
    type Answering = fn(&str) -> Result<Output, ToolError>;
    let answers: [Answering; 6] = [
        |form| Ok(Output::text(format!("env: KEY={form}\n"))),
        |form| Ok(Output::json(json!({"env": [{"KEY": form}]}))),
        |form| Ok(Output::json(json!({form: 1}))),
        |form| Err(ToolError::new(format!("401 for {form}"))),
        |form| panic!("panicked with {form}"),
        |form| Ok(Output::text("see").with_attachment(Attachment::bytes("a.txt", "text/plain", form))),
    ];
    for key in [KEY, STORED_KEY] {
        for form in forms_of(key) {
            for (index, answer) in answers.into_iter().enumerate() {
                let shown = form.clone();
                let tool = FunctionTool::new("show", move |_, call| {
                    call.notice(format!("notice {shown}"));
                    call.stderr(format!("stderr {shown}"));
                    call.progress().report(format!("progress {shown}"));
                    let shown = shown.clone();
                    async move { answer(&shown) }
                });
                let run = run_tool_beside_keys(tool).await;
                let all = everything(&run);
                assert!(all.contains("[removed]"), "{index} {form}: {all}");
                assert_absent(&all, key, &format!("{index}"));
                assert_eq!(&*run.answer(), "Done.");
            }
        }
    }
}

#[test]
fn a_key_that_is_cut_into_several_reports_of_progress_is_removed() {
    for cut in 0..=KEY.len() {
        let tool = FunctionTool::new("show", move |_, call| {
            let progress = call.progress();
            progress.report(format!("env {}", &KEY[..cut]));
            progress.report(KEY[cut..].to_owned());
            progress.report(" and sk-can".to_owned());
            async { Ok(Output::text("shown")) }
        });
        let tool = tool.define(|definition| definition.approval = Approval::PreApproved);
        let project = TestProject::new().agent(agent().model("acme:m")).tool(tool);
        let runtime = project.runtime(|builder| builder.models(Catalog::default())).build();
        let seen = Arc::new(Mutex::new(String::new()));
        let reported = seen.clone();
        let run = runtime.run("main", "go").on_event(move |event| {
            if let EventBody::ToolProgress(delta) = &event.body {
                seen.lock().unwrap().push_str(&delta.text);
            }
        });
        run.blocking().unwrap();
        let reported = reported.lock().unwrap().clone();
        assert_eq!(reported, "env [removed] and sk-can", "cut at {cut}");
    }
}

#[tokio::test]
async fn what_stands_around_a_secret_is_kept() {
    let key = private_key();
    let tool = FunctionTool::new("show", move |_, _| {
        let answer = json!({"text": format!("before\n{}after", private_key()), "count": 3});
        async move { Ok(Output::json(answer)) }
    });
    let run = run_tool(tool).await;
    let note = format!("[secret: private key, 1,{:03} bytes]", key.trim_end().len() - 1_000);
    let expected = json!({"text": format!("before\n{note}\nafter"), "count": 3});
    assert_eq!(run.tool_results(), [expected.to_string()]);
}

/// A tool that reads a secret file.
fn reader() -> FunctionTool {
    let tool = FunctionTool::new("show", |_, _| async move { Ok(Output::text(token())) });
    tool.define(|definition| definition.approval = Approval::PreApproved).assessed(|_| {
        let file = SecretFile { path: ".env".into(), what: "token".into(), content: Digest::hash("A") };
        let mut assessment = Assessment::new(Approval::PreApproved, "read the secret file `.env`");
        assessment.precondition = Some(json!({"secret_files": [file]}));
        assessment.subjects = vec![Subject::SecretFile(file)];
        assessment
    })
}

#[tokio::test]
async fn no_rule_and_no_mode_lets_a_secret_file_be_read() {
    for mode in [ApprovalMode::ApproveAll, ApprovalMode::RejectAll, ApprovalMode::Prompt] {
        let replies = [asks("show", json!({})), asks("show", json!({})), says("Done.")];
        let run = TestProject::new()
            .agent(agent())
            .tool(reader())
            .model_replies(replies)
            .runtime(move |builder| builder.approval_mode(mode))
            .run("go")
            .await;
        let results = run.tool_results();
        assert!(results.iter().all(|result| result.starts_with("denied: `show` must ask")), "{results:?}");
        assert!(results[0].contains("`.env` is a secret file (token)"), "{results:?}");
        let hints =
            results.iter().filter(|result| result.contains("secret_files: {allow: [\".env\"]}")).count();
        assert_eq!(hints, 1, "the way out is told once: {results:?}");
        let kind = run.failure_of("show").kind;
        assert!(matches!(kind, FailureKind::Denied | FailureKind::Unasked), "{kind:?}");
    }
}

#[tokio::test]
async fn what_a_person_approved_is_answered_unchanged() {
    let approvals = Approvals::new([once()]);
    let run = TestProject::new()
        .agent(agent())
        .tool(reader())
        .model_replies([asks("show", json!({})), says("Done.")])
        .approver(approvals.clone())
        .run("go")
        .await;
    assert_eq!(run.tool_results(), [token()]);
    let request = &approvals.requests()[0];
    assert_eq!(request.reason, "`.env` is a secret file (token)");
    assert_eq!(request.scopes.len(), 1);
}

#[tokio::test]
async fn a_call_that_asks_anyway_cannot_be_granted_by_its_secret_file() {
    let tool = FunctionTool::new("show", |_, _| async move { Ok(Output::text("done")) }).assessed(|_| {
        let file = SecretFile { path: ".env".into(), what: "token".into(), content: Digest::hash("A") };
        let mut assessment = Assessment::new(Approval::Ask, "change `.env`");
        assessment.subjects = vec![Subject::SecretFile(file)];
        assessment
    });
    let approvals = Approvals::new([once(), Answer::Deny("no".into())]);
    let replies = [asks("show", json!({})), asks("show", json!({})), says("Done.")];
    let project = TestProject::new().agent(agent()).tool(tool).model_replies(replies);
    let run = project.approver(approvals.clone()).run("go").await;
    assert_eq!(run.tool_results(), ["done", "denied: no"]);
    assert!(approvals.requests().iter().all(|request| request.scopes.is_empty()));
}

#[tokio::test]
async fn a_person_whose_prompt_names_the_file_is_not_asked() {
    for (prompt, result) in [("what is in .env?", token()), ("go", "denied".to_owned())] {
        let replies = [asks("show", json!({})), says("Done.")];
        let project = TestProject::new().agent(agent()).tool(reader()).model_replies(replies);
        let run =
            project.runtime(|builder| builder.approval_mode(ApprovalMode::ApproveAll)).run(prompt).await;
        assert!(run.tool_results()[0].starts_with(&result), "{prompt}: {:?}", run.tool_results());
    }
}

/// A directory with a private key in it, removed at the end.
struct Folder(TestDir);

impl Folder {
    fn new() -> Self {
        Self(TestDir::with_files(&[("key.txt", &private_key())]))
    }

    /// An agent that gives the file to another one.
    fn giving(&self) -> TestProject {
        let path = self.0.path().to_owned();
        let call = asks("child", json!({"input": "look", "attachments": ["key.txt"]}));
        let main = AgentSpec::new("main", "You are main.").toolset("child");
        TestProject::new()
            .agent(main.model(Script::new([call, says("done")])))
            .agent(AgentSpec::new("child", "You are child.").model(Script::new([says("seen")])))
            .runtime(move |builder| builder.root(path))
    }
}

#[tokio::test]
async fn a_model_attaches_a_secret_file_only_after_a_question() {
    let folder = Folder::new();
    let project = folder.giving();
    let run = project.runtime(|builder| builder.approval_mode(ApprovalMode::ApproveAll)).run("go").await;
    assert!(run.tool_results()[0].starts_with("denied: `child` must ask"), "{:?}", run.tool_results());
    assert!(!everything(&run).contains("MIIEvQIBADANBg"));
    let approvals = Approvals::new([once()]);
    let run = folder.giving().approver(approvals.clone()).run("go").await;
    assert_eq!(run.tool_results(), ["seen"]);
    assert_eq!(approvals.requests()[0].reason, "`key.txt` is a secret file (private key)");
}

#[tokio::test]
async fn what_the_manifest_allows_and_what_a_person_attaches_is_not_asked_about() {
    let folder = Folder::new();
    let allowed = SecretFiles::new(folder.0.path(), ["key.txt"]).unwrap();
    let run = folder.giving().runtime(move |builder| builder.secret_files(allowed)).run("go").await;
    assert_eq!(run.tool_results(), ["seen"]);
    let path = folder.0.path().to_owned();
    let project = TestProject::new().agent(AgentSpec::new("main", "You are main."));
    let runtime = project.model_replies([says("seen")]).runtime(move |builder| builder.root(path)).build();
    let input = json!({"input": "look", "attachments": ["key.txt"]});
    let report = runtime.run("main", input).approval_mode(ApprovalMode::RejectAll).await.unwrap();
    assert_eq!(&*report.output.unwrap().to_text(), "seen");
}

#[tokio::test]
async fn a_tool_gives_no_secret_file_back() {
    let folder = Folder::new();
    let path = folder.0.path().to_owned();
    let tool = FunctionTool::new("show", |_, _| async move {
        Ok(Output::text("see").with_attachment(Attachment::path("key.txt")))
    });
    let tool = tool.define(|definition| definition.approval = Approval::PreApproved);
    let project = TestProject::new().agent(agent()).tool(tool).runtime(move |builder| builder.root(path));
    let run = project.model_replies([asks("show", json!({})), says("Done.")]).run("go").await;
    assert!(run.tool_results()[0].contains("`key.txt` is a secret file"), "{:?}", run.tool_results());
    assert!(!everything(&run).contains("MIIEvQIBADANBg"));
}
