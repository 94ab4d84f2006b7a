//! Secrets: calls that read secret files ask, and no tool's answer carries a private key or a known token further.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "what a test does not expect stops it")]

use llm_do_core::{
    AgentSpec, Answer, Approval, ApprovalMode, Assessment, Attachment, Digest, FailureKind, Output,
    SecretFile, Subject, ToolError,
};
use llm_do_models::{asks, says};
use llm_do_testing::{Approvals, FunctionTool, TestProject, TestRun, once};
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
        let file = SecretFile { path: ".env".into(), what: "token".into(), content: Digest::of("A") };
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
        let file = SecretFile { path: ".env".into(), what: "token".into(), content: Digest::of("A") };
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
