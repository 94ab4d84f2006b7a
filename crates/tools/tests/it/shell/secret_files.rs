//! Secret files: no command shows them without a question, and searches leave them out.

use std::sync::Arc;

use llm_do_core::{AgentSpec, Approval, Assessment, Model, ModelError, Models, NoModels, Subject, Tool};
use llm_do_models::{asks, says};
use llm_do_secrets::SecretFiles;
use llm_do_testing::TestProject;
use llm_do_tools::Shell;
use serde_json::{Value, json};

use crate::shell::support::{Folder, assess, open, output, read_only, run, trusting};

const VALUE: &str = "correct-horse-battery";

/// Put together here, so that this file holds no private key.
fn private_key() -> String {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n";
    let kind = ["PRIVATE", "KEY"].join(" ");
    format!("-----BEGIN {kind}-----\n{}-----END {kind}-----\n", line.repeat(25))
}

/// A repository whose history and working tree have secret files.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("plain.txt", "nothing to hide\n").file("docs/guide.md", "more text\n");
    folder.file(".env", &format!("PASSWORD={VALUE}\n")).file("sub/.env.local", &format!("X={VALUE}\n"));
    folder.file(".env.example", "PASSWORD=anything-else\n");
    folder.file("key.txt", &private_key()).file(".ssh/id_x", &format!("{VALUE}\n"));
    folder.file("server.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n");
    folder.git("root", &["init", "-q", "."]).git("root", &["add", "-A", "-f"]);
    folder.git("root", &["commit", "-q", "-m", "first"]);
    folder.file(".env", &format!("PASSWORD={VALUE}-2\n")).file("plain.txt", "nothing to hide here\n");
    folder.git("root", &["commit", "-q", "-a", "-m", "second"]);
    folder.file(".env", &format!("PASSWORD={VALUE}-3\n")).file("plain.txt", "nothing at all\n");
    folder
}

fn secrets(assessment: &Assessment) -> Vec<&str> {
    let secret = |subject: &'_ Subject| matches!(subject, Subject::SecretFile(_));
    let files = assessment.subjects.iter().filter(|subject| secret(subject));
    files
        .map(|subject| match subject {
            Subject::SecretFile(file) => file.path.as_str(),
            Subject::Path(_) | Subject::Command(_) => "",
        })
        .collect()
}

fn printed(reply: &Value) -> String {
    format!("{}{}", reply["stdout"].as_str().unwrap(), reply["stderr"].as_str().unwrap())
}

#[tokio::test]
async fn a_command_that_names_a_secret_file_asks_and_does_not_run_unapproved() {
    let folder = folder();
    let tool = read_only(&folder.root()).await;
    for (command, file) in [
        ("cat .env", ".env"),
        ("cat plain.txt ./sub/../.env", "./sub/../.env"),
        ("head -n 1 .env", ".env"),
        ("tail -c 5 .env", ".env"),
        ("sort sub/.env.local", "sub/.env.local"),
        ("uniq .env", ".env"),
        ("cut -c 1-20 .env", ".env"),
        ("wc -l .env", ".env"),
        // It quotes a file that begins with `PA`.
        ("file .env", ".env"),
        ("file -k plain.txt .env", ".env"),
        ("grep PASS .env", ".env"),
        ("grep -f .env plain.txt", ".env"),
        ("grep --file=.env plain.txt", ".env"),
        ("grep -e x -- .env", ".env"),
        ("cat key.txt | tail -n 3", "key.txt"),
        ("ls && cat .ssh/id_x", ".ssh/id_x"),
        ("wc --files0-from=.env", ".env"),
        ("find . -name x -exec cat .env {} +", ".env"),
        ("git show HEAD:.env", "HEAD:.env"),
        ("git show HEAD~1:.env", "HEAD~1:.env"),
        ("git show :.env", ":.env"),
        ("git show HEAD:key.txt", "HEAD:key.txt"),
        ("git diff HEAD:.env HEAD:plain.txt", "HEAD:.env"),
        ("git log -L1,1:.env", ".env"),
        ("git log -p --follow .env", ".env"),
        ("git log -p --full-diff plain.txt", "what git shows"),
        ("git --literal-pathspecs log -p", "what git shows"),
    ] {
        let assessment = assess(&tool, command).await;
        assert_eq!(secrets(&assessment), [file], "{command}: {assessment:?}");
        let reply = run(&tool, command).await;
        let said = format!("{:?} {:?}", reply.reply(), reply.remarks());
        assert!(!said.contains(VALUE) && !said.contains("MIIEvQIB"), "{command}: {said}");
        assert!(said.contains("not approved"), "{command}: {said}");
    }
}

#[tokio::test]
async fn commands_that_show_no_secret_run_as_before() {
    let folder = folder();
    let tool = read_only(&folder.root()).await;
    for command in [
        "cat plain.txt",
        "cat .env.example server.pem",
        "ls -la .env",
        "stat .env",
        "find . -name .env",
        "file plain.txt",
        "du .env",
        "echo .env",
        "grep .env plain.txt",
        "git log",
        "git status",
        "git show HEAD:plain.txt",
    ] {
        let assessment = assess(&tool, command).await;
        assert_eq!(assessment.approval, Approval::PreApproved, "{command}: {assessment:?}");
        assert_eq!(secrets(&assessment), [""; 0], "{command}");
        assert_eq!(output(&tool, command).await["note"], Value::Null, "{command}");
    }
}

#[tokio::test]
async fn searches_leave_secret_files_out_and_say_so() {
    let folder = folder();
    let tool = read_only(&folder.root()).await;
    for command in [
        "grep -rh . .",
        "grep -Rh .",
        "grep -rh '--include=*' --include=.env . .",
        "grep -h -d recurse . .",
        "grep -rh -- . .",
        "grep -rhv no-such-text .",
    ] {
        let assessment = assess(&tool, command).await;
        assert_eq!(assessment.approval, Approval::PreApproved, "{command}: {assessment:?}");
        let reply = output(&tool, command).await;
        let said = printed(&reply);
        assert!(!said.contains(VALUE) && !said.contains("MIIEvQIB"), "{command}: {reply}");
        assert!(said.contains("nothing at all"), "{command}: {reply}");
        assert!(reply["note"].as_str().unwrap().contains("secret files were left out"), "{command}: {reply}");
    }
}

#[tokio::test]
async fn differences_leave_secret_files_out_and_keep_the_rest() {
    let folder = folder();
    let tool = read_only(&folder.root()).await;
    for (command, kept) in [
        ("git diff", "nothing at all"),
        ("git diff HEAD", "nothing at all"),
        ("git diff HEAD~1 HEAD", "nothing to hide here"),
        ("git diff HEAD -- plain.txt .env", "nothing at all"),
        ("git diff HEAD plain.txt .env", "nothing at all"),
        ("git show", "nothing to hide here"),
        ("git show HEAD~1", "PASSWORD=anything-else"),
        ("git log -p", "nothing to hide here"),
        ("git log -p -- plain.txt .env", "nothing to hide here"),
        ("git log -p plain.txt", "nothing to hide here"),
        ("git log -U0 --all", "nothing to hide here"),
        ("git log -p --word-diff", "here"),
        ("git show HEAD -- ':(top).env' plain.txt", "nothing to hide here"),
    ] {
        let reply = output(&tool, command).await;
        let said = printed(&reply);
        assert!(!said.contains(VALUE), "{command}: {reply}");
        assert!(said.contains(kept), "{command}: {reply}");
    }
    let reply = output(&tool, "git diff").await;
    assert!(reply["note"].as_str().unwrap().contains("`.env`"), "{reply}");
}

#[tokio::test]
async fn every_commit_is_shown_though_paths_are_left_out() {
    let folder = folder();
    folder.git("root", &["commit", "-q", "-m", "only the secret", ".env"]);
    folder.git("root", &["commit", "-q", "--allow-empty", "-m", "nothing"]);
    let tool = read_only(&folder.root()).await;
    let said = printed(&output(&tool, "git log -p --oneline").await);
    for subject in ["first", "second", "only the secret", "nothing"] {
        assert!(said.lines().any(|line| line.ends_with(subject)), "{subject}: {said}");
    }
}

#[tokio::test]
async fn a_content_that_is_named_by_its_id_is_judged_too() {
    let folder = folder();
    let tool = read_only(&folder.root()).await;
    let raw = printed(&output(&tool, "git log --raw --no-abbrev --format=%h").await);
    let line = raw.lines().find(|line| line.ends_with("\t.env")).unwrap();
    let id = line.split(' ').nth(3).unwrap();
    let command = format!("git show {id}");
    assert_eq!(secrets(&assess(&tool, &command).await), [id]);
}

#[tokio::test]
async fn other_programs_ask_if_they_name_a_secret_file() {
    let folder = folder();
    let tool = trusting(&folder.root(), &["cp", "base64", "sed", "tee"], |_| ()).await;
    for command in ["cp .env x.txt", "base64 .env", "sed -n p .env", "base64 -w0 sub/.env.local"] {
        assert_eq!(secrets(&assess(&tool, command).await).len(), 1, "{command}");
    }
    assert_eq!(secrets(&assess(&tool, "cp plain.txt x.txt").await), [""; 0]);
}

#[tokio::test]
async fn a_link_is_judged_by_the_file_that_it_leads_to() {
    let folder = folder();
    std::os::unix::fs::symlink(".env", folder.root().join("harmless.txt")).unwrap();
    let tool = read_only(&folder.root()).await;
    assert_eq!(secrets(&assess(&tool, "cat harmless.txt").await), ["harmless.txt"]);
    let said = printed(&output(&tool, "grep -Rh . .").await);
    assert!(!said.contains(VALUE), "{said}");
}

#[tokio::test]
async fn the_globs_of_a_project_are_exceptions() {
    let folder = folder();
    let allowed = SecretFiles::new(folder.root(), ["key.txt"]).unwrap();
    let shell = Shell::read_only("commands", folder.root()).unwrap().secret_files(allowed);
    let tool: Arc<dyn Tool> = open(&shell, &Value::Null).await.unwrap();
    let assessment = assess(&tool, "cat key.txt").await;
    assert_eq!((secrets(&assessment), assessment.approval), (vec![], Approval::PreApproved));
    // The runtime takes nothing out of an answer that is allowed to hold it.
    assert_eq!(assessment.precondition.unwrap()["secret_files"][0]["path"], "key.txt");
    assert!(printed(&output(&tool, "cat key.txt").await).contains("MIIEvQIB"));
    assert_eq!(secrets(&assess(&tool, "cat .env").await), [".env"]);
}

/// A catalog that knows a key and no model.
struct KnowsKey;

impl Models for KnowsKey {
    fn resolve(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        NoModels.resolve(name)
    }

    fn secrets(&self) -> Vec<String> {
        vec![KEY.to_owned()]
    }
}

const KEY: &str = "sk-canary-0123456789";

#[tokio::test]
async fn a_known_key_that_a_command_prints_is_removed_from_its_output() {
    let folder = Folder::new();
    folder.file("log.txt", &format!("header: {KEY}\n")).file("log64.txt", "c2stY2FuYXJ5LTAxMjM0NTY3ODk=\n");
    let agent = AgentSpec::new("main", "Look.").toolset("shell").rule("*", Approval::PreApproved);
    let calls = ["cat log.txt", "cat log64.txt", "cat absent-sk-canary-0123456789"];
    let replies = calls.map(|command| asks("shell", json!({"command": command})));
    let run = TestProject::new()
        .agent(agent)
        .toolset(Shell::read_only("shell", folder.root()).unwrap())
        .model_replies(replies.into_iter().chain([says("Done.")]))
        .runtime(|builder| builder.models(KnowsKey))
        .run("go")
        .await;
    let results = run.tool_results();
    assert!(results.iter().all(|result| result.contains("[removed]")), "{results:#?}");
    for form in ["canary-01234", "FuYXJ5LTAxMjM0"] {
        assert!(!results.iter().any(|result| result.contains(form)), "{form}: {results:#?}");
    }
}
