//! The tool behind the gate: what was approved is what runs, and nothing else.

use llm_do_core::{AgentSpec, Answer, Approval, Scope, Subject};
use llm_do_models::{asks, says};
use llm_do_testing::{Approvals, TestProject, TestRun, deny, edit, for_session, once};
use llm_do_tools::{Protected, Shell};
use serde_json::json;

use crate::shell::support::{Folder, assess, open, read_only, run};

async fn run_commands(shell: Shell, agent: AgentSpec, approvals: &Approvals, commands: &[&str]) -> TestRun {
    let calls = commands.iter().map(|command| asks("shell", json!({"command": command})));
    TestProject::new()
        .toolset(shell)
        .agent(agent)
        .model_replies(calls.chain([says("done")]))
        .approver(approvals.clone())
        .run("go")
        .await
}

fn agent() -> AgentSpec {
    AgentSpec::new("main", "You run commands.").toolset("shell")
}

async fn file_ops(folder: &Folder, answers: Vec<Answer>, commands: &[&str]) -> (TestRun, Approvals) {
    let approvals = Approvals::new(answers);
    let shell = Shell::file_ops("shell", folder.root()).unwrap();
    let run = run_commands(shell, agent(), &approvals, commands).await;
    (run, approvals)
}

#[tokio::test]
async fn a_move_waits_for_its_approval_and_a_listing_does_not() {
    let folder = Folder::new();
    folder.file("a", "x");
    let (run, approvals) = file_ops(&folder, vec![once()], &["ls", "mv a b", "ls"]).await;
    assert_eq!(run.answer().as_ref(), "done");
    let requests = approvals.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].description, format!("run mv a b in {}", folder.root().display()));
    assert_eq!(requests[0].preview.as_deref(), Some("/usr/bin/mv a b"));
    let touched = &requests[0].subjects;
    assert_eq!(*touched, [Subject::Command(["mv", "a", "b"].map(str::to_owned).to_vec())]);
    assert!(Scope::CommandPrefix(vec!["mv".into()]).covers(touched));
    assert!(run.tool_results()[2].contains(r#""stdout":"b\n""#), "{:?}", run.tool_results());
}

#[tokio::test]
async fn what_is_denied_or_blocked_does_not_run_and_the_model_reads_why() {
    let folder = Folder::new();
    folder.file("a", "x");
    let (run, approvals) =
        file_ops(&folder, vec![deny("keep it")], &["mv a b", "rm a", "ls; mv a b > c"]).await;
    assert!(folder.root().join("a").exists());
    let results = run.tool_results();
    assert!(results[0].contains("keep it"), "{results:?}");
    assert!(results[1].contains("`rm` is not listed; listed are: ls, mv"), "{results:?}");
    assert!(results[2].contains("redirect"), "{results:?}");
    assert_eq!(approvals.requests().len(), 1);
}

#[tokio::test]
async fn no_grant_covers_a_command_that_names_a_protected_file() {
    let folder = Folder::new();
    let names = ["a", "b", "c", "d", "e", "f"];
    for name in names {
        folder.file(name, name);
    }
    std::fs::create_dir_all(folder.root().join(".git/hooks")).unwrap();
    std::os::unix::fs::symlink(".git/hooks", folder.root().join("link")).unwrap();
    let commands = [
        "mv a b",
        "mv c .git/hooks/post-commit",
        "mv d x.agent",
        "mv e link",
        "mv -t.git/hooks f",
        "mv --target-directory=link f",
        "mv -ft.git/hooks f",
        "mv -ftlink f",
        "mv /proc/self/cwd/f f",
    ];
    let prefix = Scope::CommandPrefix(vec!["mv".into()]);
    let answers = std::iter::once(for_session(prefix)).chain((1..commands.len()).map(|_| deny("no")));
    let (_, approvals) = file_ops(&folder, answers.collect(), &commands).await;
    let requests = approvals.requests();
    assert_eq!(requests.len(), commands.len());
    for request in &requests[1..] {
        assert!(request.reason.contains("is protected: ") && request.scopes.is_empty(), "{request:?}");
    }
    assert!(names[2..].iter().all(|name| folder.root().join(name).exists()));
}

#[tokio::test]
async fn a_protected_file_is_seen_behind_the_directory_into_which_it_is_put() {
    let folder = Folder::new();
    folder.file("prompts/main.md", "x").file("new/main.md", "y").file("whole/prompts/main.md", "z");
    folder.file("d/config", "x").file("d/other", "x").file("prompts/deep/x", "x").file("e/.envrc", "x");
    std::fs::create_dir_all(folder.root().join(".git")).unwrap();
    std::os::unix::fs::symlink("prompts", folder.root().join("link")).unwrap();
    let settings = serde_json::from_value(json!({"rules": [
        {"program": "cp", "allow_flags": ["*"], "approval": "pre_approved"},
        {"program": "mv", "allow_flags": ["*"], "approval": "pre_approved"},
        {"program": "sort", "allow_flags": ["-o@"], "approval": "pre_approved"},
        {"program": "git", "allow_flags": ["*"], "approval": "pre_approved"},
    ]}));
    let listed = Protected::new(["prompts/main.md", "absent/main.md"]);
    let shell = Shell::new("shell", folder.root(), settings.unwrap()).unwrap().protect(&listed).unwrap();
    let tool = open(&shell, &json!(null)).await.unwrap();
    for command in [
        "cp new/main.md prompts",
        "cp new/main.md link",
        "cp -ftprompts new/main.md",
        "cp --target-directory=prompts new/main.md",
        "mv d/config .git",
        "cp -r new/. prompts",
        "cp -T new prompts",
        "cp -r whole/prompts .",
        "cp -r whole/. .",
        "mv new absent",
        "cp -r e d",
        "sort -o prompts/main.md d/other",
        "git mv new/main.md prompts",
    ] {
        let assessment = assess(&tool, command).await;
        assert!(assessment.protected, "{command}: {:?}", assessment.reason);
        assert!(assessment.reason.unwrap().contains("is protected: "), "{command}");
    }
    for command in
        ["cp d/other prompts", "cp -r d prompts", "mv new/main.md d", "cp -r d new", "sort prompts/main.md"]
    {
        let assessment = assess(&tool, command).await;
        assert_eq!(assessment.approval, Approval::PreApproved, "{command}: {:?}", assessment.reason);
    }
    for number in 0..10_001 {
        folder.file(&format!("many/{number}"), "");
    }
    assert!(assess(&tool, "cp -r many prompts").await.protected, "more than anybody looks at");
}

#[tokio::test]
async fn a_granted_prefix_covers_later_commands_that_begin_so() {
    let folder = Folder::new();
    folder.file("a", "x");
    let prefix = Scope::CommandPrefix(vec!["mv".into()]);
    let commands = ["mv a b", "mv b c", "ls && mv c d"];
    let (_, approvals) = file_ops(&folder, vec![for_session(prefix), deny("no")], &commands).await;
    assert_eq!(approvals.requests().len(), 2, "a chain with another program is asked about");
    assert!(folder.root().join("c").exists());
}

#[tokio::test]
async fn edited_commands_are_judged_again() {
    let folder = Folder::new();
    folder.file("a", "x");
    let answers = vec![edit(json!({"command": "mv a c"})), edit(json!({"command": "rm c"}))];
    let (run, _) = file_ops(&folder, answers, &["mv a b", "mv c d"]).await;
    assert!(folder.root().join("c").exists(), "the edited command ran, and the second was blocked");
    assert!(run.tool_results()[1].contains("not listed"), "{:?}", run.tool_results());
}

#[tokio::test]
async fn a_rule_of_the_agent_loosens_what_asks_but_lifts_no_block() {
    let folder = Folder::new();
    folder.file("a", "x");
    let shell = Shell::file_ops("shell", folder.root()).unwrap();
    let agent = agent().rule("shell", Approval::PreApproved);
    let approvals = Approvals::default();
    let run = run_commands(shell, agent, &approvals, &["mv a b", "rm b"]).await;
    assert!(folder.root().join("b").exists());
    assert!(run.tool_results()[1].contains("blocked"), "{:?}", run.tool_results());
    assert!(approvals.requests().is_empty());
}

#[tokio::test]
async fn without_a_decision_of_the_gate_only_what_is_pre_approved_runs() {
    let folder = Folder::new();
    folder.file("a", "x");
    let tool = read_only(&folder.root()).await;
    for (command, word) in
        [("sort -o b a", "not approved"), ("rm a", "not listed"), ("cat a > b", "redirect")]
    {
        let error = run(&tool, command).await.error();
        assert!(error.contains(word), "{command}: {error}");
    }
    assert!(!folder.root().join("b").exists());
}

#[tokio::test]
async fn what_speaks_against_a_call_only_after_its_approval_stops_it() {
    let folder = Folder::new();
    folder.file("a", "x");
    // While the person thinks, the file that was approved becomes a link that leads out.
    let root = folder.root();
    let swap = move |_request| {
        let root = root.clone();
        async move {
            std::fs::remove_file(root.join("a")).unwrap();
            std::os::unix::fs::symlink("/etc/hostname", root.join("a")).unwrap();
            Answer::Once
        }
    };
    let shell = Shell::read_only("shell", folder.root()).unwrap();
    let run = TestProject::new()
        .toolset(shell)
        .agent(agent())
        .model_replies([asks("shell", json!({"command": "sort -o b a"})), says("done")])
        .runtime(move |builder| builder.approver(swap))
        .run("go")
        .await;
    assert!(run.tool_results()[0].contains("`a` lies outside the root"), "{:?}", run.tool_results());
    assert!(!folder.root().join("b").exists());
}
