//! Hostile repositories: whatever they name, no program of theirs runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use llm_do_core::AgentSpec;
use llm_do_core::Approval::{Ask, PreApproved};
use llm_do_models::{asks, says};
use llm_do_testing::{TestProject, needs, once};
use llm_do_tools::Shell;
use serde_json::json;

use crate::shell::support::{Folder, assess, decide, open, output, read_only};

/// A repository with one commit and one changed file, and a program that would leave a marker.
struct Trap {
    folder: Folder,
}

impl Trap {
    fn new() -> Self {
        let folder = Folder::new();
        folder.file("a.txt", "one\n");
        folder.git("root", &["init", "-q", "-b", "main", "."]);
        folder.git("root", &["add", "."]).git("root", &["commit", "-qm", "first"]);
        folder.file("a.txt", "two\n");
        let trap = Self { folder };
        let program = format!("#!/bin/sh\ntouch {}\ncat\n", trap.marker().display());
        fs::write(trap.program(), program).unwrap();
        fs::set_permissions(trap.program(), PermissionsExt::from_mode(0o755)).unwrap();
        trap
    }

    fn marker(&self) -> PathBuf {
        self.folder.path("marker")
    }

    fn program(&self) -> PathBuf {
        self.folder.path("evil")
    }

    fn set(&self, key: &str) -> &Self {
        let program = self.program().display().to_string();
        self.folder.git("root", &["config", key, &program]);
        self
    }

    /// Runs all readers, whether they would ask or not, and expects that nothing of the repository ran.
    async fn expect_nothing_runs(&self, name: &str) {
        let tool = read_only(&self.folder.root()).await;
        for command in [
            "git status",
            "git status -v",
            "git diff",
            "git log -p",
            "git show",
            "git diff HEAD",
            "git log '--format=%G?'",
        ] {
            let assessment = assess(&tool, command).await;
            if assessment.approval == PreApproved {
                assert_eq!(output(&tool, command).await["exit_code"], 0, "{name}: {command}");
            }
            assert!(!self.marker().exists(), "{name}: `{command}` ran a program of the repository");
        }
    }
}

#[tokio::test]
async fn a_plain_repository_is_read_without_a_question() {
    let trap = Trap::new();
    let tool = read_only(&trap.folder.root()).await;
    assert_eq!(output(&tool, "git status --short").await["stdout"], " M a.txt\n");
    let diff = output(&tool, "git diff").await;
    assert!(diff["stdout"].as_str().unwrap().contains("-one\n+two\n"), "{diff}");
    assert_eq!(output(&tool, "git log --format=%s -n 1").await["stdout"], "first\n");
    assert_eq!(output(&tool, "git show HEAD:a.txt").await["stdout"], "one\n");
    assert_eq!(output(&tool, "git -C . log --oneline").await["exit_code"], 0);
}

#[tokio::test]
async fn the_trap_works_where_git_is_run_plainly() {
    let trap = Trap::new();
    trap.set("core.fsmonitor").folder.git("root", &["status"]);
    assert!(trap.marker().exists(), "the trap must be able to close, or these tests prove nothing");
}

#[tokio::test]
async fn no_program_that_the_configuration_names_is_run() {
    for key in [
        "core.fsmonitor",
        "core.pager",
        "pager.log",
        "diff.external",
        "diff.x.command",
        "diff.x.textconv",
        "filter.x.clean",
        "filter.x.process",
        "filter.x.smudge",
        "core.editor",
        "core.sshCommand",
        "gpg.program",
        "gpg.ssh.program",
        "interactive.diffFilter",
        "credential.helper",
        "core.askPass",
        "trailer.x.command",
        "core.alternateRefsCommand",
    ] {
        let trap = Trap::new();
        trap.set(key);
        trap.folder.file(".gitattributes", "* diff=x filter=x\n");
        trap.folder.file(".git/info/attributes", "* diff=x filter=x\n");
        trap.folder.git("root", &["config", "log.showSignature", "true"]);
        trap.expect_nothing_runs(key).await;
    }
}

#[tokio::test]
async fn an_approved_reader_runs_no_program_of_the_repository_either() {
    for key in [
        "core.fsmonitor",
        "diff.external",
        "diff.x.command",
        "diff.x.textconv",
        "filter.x.clean",
        "gpg.program",
    ] {
        let trap = Trap::new();
        trap.set(key);
        trap.folder.file(".gitattributes", "* diff=x filter=x\n");
        let commands = ["git status", "git diff", "git log -p", "git show"];
        let replies = commands.map(|command| asks("shell", json!({ "command": command })));
        let run = TestProject::new()
            .toolset(Shell::read_only("shell", trap.folder.root()).unwrap())
            .agent(AgentSpec::new("main", "You look at git.").toolset("shell"))
            .model_replies(replies.into_iter().chain([says("done")]))
            .approvals([once(), once(), once(), once()])
            .run("go")
            .await;
        assert!(
            run.tool_results().iter().all(|text| text.contains("\"exit_code\":0")),
            "{key}: {:?}",
            run.tool_results()
        );
        assert!(!trap.marker().exists(), "{key}: a program of the repository ran");
    }
}

#[tokio::test]
async fn in_tree_attributes_alone_choose_no_program() {
    let trap = Trap::new();
    trap.folder.file(".gitattributes", "* diff=x filter=x\n");
    trap.set("core.pager").expect_nothing_runs("attributes").await;
    assert_eq!(decide(&read_only(&trap.folder.root()).await, "git diff").await, PreApproved);
}

#[tokio::test]
async fn hooks_are_not_run() {
    let trap = Trap::new();
    for hook in
        ["post-index-change", "fsmonitor-watchman", "post-checkout", "pre-commit", "reference-transaction"]
    {
        fs::copy(trap.program(), trap.folder.root().join(".git/hooks").join(hook)).unwrap();
    }
    trap.expect_nothing_runs("hooks").await;
    trap.set("core.hooksPath").expect_nothing_runs("hooksPath").await;
}

#[tokio::test]
async fn programs_in_the_configuration_make_git_ask_and_say_which() {
    for key in [
        "filter.x.clean",
        "filter.x.process",
        "diff.x.textconv",
        "diff.x.command",
        "core.fsmonitor",
        "diff.external",
    ] {
        let trap = Trap::new();
        trap.set(key);
        let assessment = assess(&read_only(&trap.folder.root()).await, "git status").await;
        assert_eq!(assessment.approval, Ask, "{key}");
        assert!(
            assessment.reason.as_ref().unwrap().to_lowercase().contains(&key.to_lowercase()),
            "{:?}",
            assessment.reason
        );
    }
}

#[tokio::test]
async fn submodules_are_not_entered() {
    let trap = Trap::new();
    let inner = trap.folder.path("outside/inner");
    fs::create_dir_all(&inner).unwrap();
    fs::write(inner.join("b.txt"), "b\n").unwrap();
    trap.folder.git("outside/inner", &["init", "-q", "-b", "main", "."]);
    trap.folder.git("outside/inner", &["add", "."]).git("outside/inner", &["commit", "-qm", "inner"]);
    let source = inner.display().to_string();
    trap.folder
        .git("root", &["submodule", "add", "-q", &source, "sub"])
        .git("root", &["commit", "-qm", "second"]);
    let program = trap.program().display().to_string();
    for key in ["core.fsmonitor", "filter.x.clean", "diff.x.textconv", "diff.external"] {
        trap.folder.git("root/sub", &["config", key, &program]);
    }
    trap.folder.file("sub/.gitattributes", "* diff=x filter=x\n").file("sub/b.txt", "changed\n");
    for (key, value) in
        [("diff.submodule", "diff"), ("status.submoduleSummary", "true"), ("diff.ignoreSubmodules", "none")]
    {
        trap.folder.git("root", &["config", key, value]);
    }
    let tool = read_only(&trap.folder.root()).await;
    assert_eq!(decide(&tool, "git status").await, PreApproved);
    trap.expect_nothing_runs("submodules").await;
}

#[tokio::test]
async fn missing_objects_are_not_fetched_by_a_program_of_the_repository() {
    let trap = Trap::new();
    let program = trap.program().display().to_string();
    for (key, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", "ssh://example.invalid/x"),
        ("core.sshCommand", program.as_str()),
    ] {
        trap.folder.git("root", &["config", key, value]);
    }
    let blob = trap.folder.root().join(".git/objects/56");
    assert!(blob.exists(), "the blob of `one`");
    fs::remove_dir_all(blob).unwrap();
    let tool = read_only(&trap.folder.root()).await;
    for command in ["git show", "git diff", "git log -p"] {
        assert_ne!(output(&tool, command).await["exit_code"], 0, "{command}: the object is missing");
        assert!(!trap.marker().exists(), "{command}");
    }
}

#[tokio::test]
async fn a_repository_that_reaches_outside_the_root_asks() {
    let trap = Trap::new();
    fs::create_dir_all(trap.folder.root().join("inner")).unwrap();
    let below = read_only(&trap.folder.root().join("inner")).await;
    assert_eq!(decide(&below, "git log").await, Ask, "the repository begins above");
    trap.folder.git("root", &["config", "core.worktree", "/"]);
    let tool = read_only(&trap.folder.root()).await;
    assert_eq!(decide(&tool, "git status").await, Ask, "the working tree is elsewhere");

    let other = Folder::new();
    other.file(".git", &format!("gitdir: {}\n", trap.folder.root().join(".git").display()));
    let tool = read_only(&other.root()).await;
    assert_eq!(decide(&tool, "git log").await, Ask, "the repository is elsewhere");
}

#[tokio::test]
async fn a_repository_that_the_same_line_may_make_has_been_seen_by_nobody() {
    let trap = Trap::new();
    let settings = json!({"rules": [
        {"program": "cp", "allow_flags": ["*"], "approval": "pre_approved"},
        {"program": "sort", "allow_flags": ["-o@"], "approval": "pre_approved"},
        {"program": "git", "subcommand": "clone", "allow_flags": ["*"], "approval": "pre_approved"},
        {"program": "git", "subcommand": "add", "approval": "pre_approved"},
    ]});
    let shell = Shell::read_only("shell", trap.folder.root()).unwrap();
    let tool = open(&shell, &settings).await.unwrap();
    for command in [
        "cp -r a b && git -C b diff",
        "cp -r a b | git -C b diff",
        "git -C b diff | cp -r a b",
        "sort -o b/x a.txt; git -C b diff",
        "git clone a b && git -C b diff",
        "cp -r a b && ls && /usr/bin/git -C b diff",
    ] {
        let assessment = assess(&tool, command).await;
        assert_eq!(assessment.approval, Ask, "{command}");
    }
    let reason = assess(&tool, "cp -r a b && git -C b diff").await.reason.unwrap();
    assert_eq!(reason, "`cp` may change the repository before `git` uses it in the same line");
    for command in ["git diff; cp -r a b", "ls && git diff | sort", "git add a.txt && git diff", "cp -r a b"]
    {
        assert_eq!(decide(&tool, command).await, PreApproved, "{command}");
    }
}

#[tokio::test]
async fn formats_of_the_repository_that_run_programs_ask() {
    for (key, value, expected) in [
        ("format.pretty", "%h %G?", Ask),
        ("format.pretty", "format:%(describe)", Ask),
        ("pretty.short", "%h %GS", Ask),
        ("pretty.short", "%h %an", PreApproved),
    ] {
        let trap = Trap::new();
        trap.folder.git("root", &["config", key, value]);
        let assessment = assess(&read_only(&trap.folder.root()).await, "git log --pretty=short").await;
        assert_eq!(assessment.approval, expected, "{key}={value}: {:?}", assessment.reason);
    }
}

#[tokio::test]
async fn what_included_files_include_is_judged_from_where_they_stand() {
    for (deeper, expected) in [("../outside/x", Ask), ("/etc/x", Ask), ("sub/x", PreApproved)] {
        let trap = Trap::new();
        trap.folder.git("root", &["config", "include.path", "../one"]);
        trap.folder.file("one", &format!("[include]\n\tpath = {deeper}\n"));
        fs::create_dir_all(trap.folder.root().join("sub")).unwrap();
        let tool = read_only(&trap.folder.root()).await;
        for command in ["git log", "git -C sub log"] {
            let assessment = assess(&tool, command).await;
            assert_eq!(assessment.approval, expected, "{command}, {deeper}: {:?}", assessment.reason);
        }
    }
}

#[tokio::test]
async fn alternates_in_quotes_count_as_outside() {
    let trap = Trap::new();
    trap.folder.file(".git/objects/info/alternates", "\"\\057tmp\\057objects\"\n");
    assert_eq!(decide(&read_only(&trap.folder.root()).await, "git log").await, Ask);
}

#[needs(root)]
#[tokio::test]
async fn a_repository_of_another_user_is_read_like_any_other() {
    let trap = Trap::new();
    let status = Command::new("chown").args(["-R", "65534:65534"]).arg(trap.folder.root()).status().unwrap();
    assert!(status.success());
    let tool = read_only(&trap.folder.root()).await;
    for command in ["git log", "git status", "git diff", "git show", "git -C . log"] {
        let result = output(&tool, command).await;
        assert_eq!(result["exit_code"], 0, "{command}: {result}");
    }
    trap.folder.git("root", &["-c", "safe.directory=*", "config", "filter.x.clean", "x"]);
    assert_eq!(decide(&tool, "git status").await, Ask, "the configuration is seen");
}

#[tokio::test]
async fn an_embedded_bare_repository_runs_nothing() {
    let trap = Trap::new();
    fs::create_dir_all(trap.folder.root().join("bare")).unwrap();
    trap.folder.git("root/bare", &["init", "-q", "--bare", "."]);
    let program = trap.program().display().to_string();
    for (key, value) in
        [("core.bare", "false"), ("core.worktree", ".."), ("core.fsmonitor", program.as_str())]
    {
        let config = trap.folder.root().join("bare/config").display().to_string();
        trap.folder.git("outside", &["config", "-f", &config, key, value]);
    }
    let tool = read_only(&trap.folder.root()).await;
    assert_eq!(decide(&tool, "git -C bare status").await, Ask);
    let inside = read_only(&trap.folder.root().join("bare")).await;
    assert_eq!(decide(&inside, "git status").await, Ask);
    assert!(!trap.marker().exists());
}

#[tokio::test]
async fn repositories_of_the_longer_object_names_work() {
    let folder = Folder::new();
    folder.file("a.txt", "one\n").git("root", &["init", "-q", "--object-format=sha256", "."]);
    folder.git("root", &["add", "."]).git("root", &["commit", "-qm", "first"]);
    let tool = read_only(&folder.root()).await;
    assert_eq!(output(&tool, "git status --short").await["exit_code"], 0);
    assert_eq!(output(&tool, "git log --format=%s").await["stdout"], "first\n");
}
