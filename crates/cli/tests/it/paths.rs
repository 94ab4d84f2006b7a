//! Which project a command works on, and what its first argument means.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{Ran, Sandbox};

/// An echo project with an empty directory inside.
fn with_inner() -> Sandbox {
    let sandbox = Sandbox::echo();
    std::fs::create_dir_all(sandbox.path("inner/deep")).unwrap();
    sandbox
}

fn run_in(sandbox: &Sandbox, directory: impl AsRef<Path>, arguments: &[&str]) -> Ran {
    sandbox.command(arguments).current_dir(sandbox.root().join(directory)).output().unwrap().into()
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn inside_a_project_the_path_can_be_left_out() {
    let sandbox = with_inner();
    sandbox.run(&["run", "Good morning"]).ended(0).said("Good morning\n").told_nothing();
    sandbox.run(&["run", "hello"]).ended(0).said("hello\n");
    sandbox.run(&["Good morning"]).ended(0).said("Good morning\n");
    sandbox.run_with(&["run"], b"from a pipe").ended(0).said("from a pipe\n");
    sandbox.run_with(&["chat", "--headless"], b"hello\n").ended(0).said("hello\n");
    sandbox.run(&["check"]).ended(0).said("ok: 1 agent, entry `main`\n");
    sandbox.run(&["trust"]).ended(0);
    assert!(sandbox.run(&["list"]).ended(0).stdout.contains("main  (entry)"));
    assert!(sandbox.run(&["models"]).ended(0).stdout.contains("models of this project\n  test:echo"));
    sandbox.run(&["call", "main", "--input-json", "{\"input\": \"x\"}"]).ended(0).said("x\n");
}

#[test]
fn a_project_above_the_current_directory_is_used_and_named() {
    let sandbox = with_inner();
    let shown = sandbox.root().canonicalize().unwrap();
    let line = format!("notice: using the project `{}`, above the current directory\n", shown.display());
    for arguments in [&["run", "hi"][..], &["check"], &["list"], &["call", "main", "--input-json", "\"hi\""]]
    {
        let ran = run_in(&sandbox, "inner/deep", arguments).ended(0);
        assert_eq!(ran.stderr, line, "{arguments:?}");
    }
    run_in(&sandbox, "inner/deep", &["models"]).ended(0).told(&line);
}

#[test]
fn the_search_does_not_enter_what_others_can_write_to() {
    let sandbox = with_inner();
    for mode in [0o777, 0o1777] {
        set_mode(&sandbox.root(), mode);
        for (directory, hint) in [("inner/deep", "llm-do init"), (".", "only if you name it: `.`")] {
            run_in(&sandbox, directory, &["run", "hi"])
                .ended(2)
                .said("")
                .told("no project was found in the current directory or above it")
                .told("others can write to it")
                .told(hint);
        }
        // Whoever names it means it.
        sandbox.run(&["run", ".", "hi"]).ended(0).said("hi\n");
    }
}

#[test]
fn the_search_ends_at_the_home_directory() {
    let sandbox = with_inner();
    let at_home = |directory: &str| -> Ran {
        let mut command = sandbox.command(&["run", "hi"]);
        command.current_dir(sandbox.path(directory)).env("HOME", sandbox.root());
        command.output().unwrap().into()
    };
    at_home("inner").ended(2).told("the home directory");
    at_home(".").ended(0).said("hi\n");
}

#[test]
fn outside_of_a_project_the_error_says_what_to_do() {
    let sandbox = Sandbox::new();
    for arguments in
        [&["run"][..], &["run", "Good morning"], &["chat"], &["check"], &["list"], &["call", "x"]]
    {
        sandbox.run(arguments).ended(2).said("").told("no project was found").told("llm-do init");
    }
    // These also say something without a project.
    sandbox.run(&["models"]).ended(0);
}

#[test]
fn a_lone_argument_that_exists_or_looks_like_a_path_is_not_a_prompt() {
    let sandbox = with_inner().file("notes.txt", "Notes.");
    for path in ["missing/x", "other.agent", "project.yaml", "./x", "../x y"] {
        sandbox
            .run(&["run", path])
            .ended(2)
            .said("")
            .told(&format!("there is no project at `{path}`"))
            .told("`-p`");
        sandbox.run(&["run", "-p", path]).ended(0).said(&format!("{path}\n"));
    }
    sandbox.run(&["run", "inner"]).ended(2).told("`inner` is not a project or an agent file");
    sandbox.run(&["run", "notes.txt"]).ended(2).told("--attach notes.txt");
    sandbox.run(&["run", "What is 1/2 of main.agent"]).ended(0).said("What is 1/2 of main.agent\n");
    sandbox.run(&["run", ".", "a/b"]).ended(0).said("a/b\n");
    sandbox.run(&["run", "main.agent", "-p", "-5 is what"]).ended(0).said("-5 is what\n");
    sandbox.run(&["run", ".", "one", "-p", "two"]).ended(2).told("cannot be used with");
}

#[test]
fn flags_may_stand_before_the_command() {
    let sandbox = Sandbox::echo();
    sandbox.run(&["-v", "run", ".", "hi"]).ended(0).said("hi\n").told("main");
    sandbox.run(&["--model", "test:echo", "run", ".", "hi"]).ended(0).said("hi\n");
    sandbox.run(&["-m", "test:echo", ".", "hi"]).ended(0).said("hi\n");
    sandbox.run(&["--reach", "check"]).ended(0);
    sandbox.run(&["--moedl", "test:echo", "run", "."]).ended(2).told("--model");
}

#[test]
fn a_misspelled_command_gets_a_hint_however_many_arguments_follow() {
    let sandbox = Sandbox::echo();
    for arguments in [&["rnu"][..], &["rnu", "."], &["rnu", ".", "hi"], &["-v", "rnu", ".", "hi", "there"]] {
        sandbox.run(arguments).ended(2).said("").told("did you mean the command `run`?");
    }
    let ran = sandbox.run(&["test", "tk"]).ended(2).told("`test` is neither a command nor a project");
    assert!(!ran.stderr.contains("did you mean"), "{ran:?}");
}

#[test]
fn a_project_in_the_place_of_a_name_is_refused() {
    let sandbox = Sandbox::echo();
    sandbox
        .run(&["call", "."])
        .ended(2)
        .told("the name of an agent or tool is missing")
        .told("llm-do call . NAME");
    sandbox.run(&["call", "main.agent"]).ended(2).told("llm-do call main.agent NAME");
}

#[test]
fn approvals_have_a_short_flag() {
    let sandbox = Sandbox::asking();
    sandbox.run(&["run", "-a", "all", "go"]).ended(0).said("the end\n");
}

/// A project whose agents lie in a folder of their own, and an agent that it does not list.
fn with_manifest() -> Sandbox {
    Sandbox::new()
        .file(
            "mine/project.yaml",
            "version: 1\nentry: {agent: main}\nagent_files: ['agents/*.agent', near.agent]\nmodel: test:echo\n",
        )
        .file("mine/agents/main.agent", "---\nname: main\ntoolsets: [helper]\n---\nMain.\n")
        .file("mine/agents/helper.agent", "---\nname: helper\n---\nHelp.\n")
        .file("mine/near.agent", "---\nname: near\ntoolsets: [helper]\n---\nNear.\n")
        .file("mine/lone.agent", "---\nname: lone\nmodel: test:echo\n---\nAlone.\n")
}

#[test]
fn an_agent_file_that_a_manifest_lists_is_run_in_its_project() {
    let sandbox = with_manifest();
    for (file, entry) in [("near", "near"), ("agents/main", "main"), ("agents/helper", "helper")] {
        let path = format!("mine/{file}.agent");
        sandbox.run(&["check", &path]).ended(0).said(&format!("ok: 3 agents, entry `{entry}`\n"));
        sandbox.run(&["run", &path, "hi"]).ended(0).told_nothing();
        let name = format!("{entry}.agent");
        let directory = Path::new("mine").join(file).parent().unwrap().to_path_buf();
        run_in(&sandbox, directory, &["check", &name])
            .ended(0)
            .said(&format!("ok: 3 agents, entry `{entry}`\n"));
    }
    // The folder of the agents belongs to the project too.
    run_in(&sandbox, "mine/agents", &["check"]).ended(0).said("ok: 3 agents, entry `main`\n").told("mine`");
}

#[test]
fn an_agent_file_that_the_manifest_does_not_list_is_used_alone() {
    let sandbox = with_manifest();
    let notice = "`mine/project.yaml` does not list `mine/lone.agent`, which is used alone";
    sandbox.run(&["check", "mine/lone.agent"]).ended(0).said("ok: 1 agent, entry `lone`\n").told(notice);
    sandbox.run(&["run", "mine/lone.agent", "hi"]).ended(0).said("hi\n").told(notice);
}

#[test]
fn a_chosen_agent_goes_before_the_one_that_calls_itself_the_entry() {
    let sandbox = with_manifest()
        .file(
            "mine/project.yaml",
            "version: 1\nentry: {}\nagent_files: ['agents/*.agent']\nmodel: test:echo\n",
        )
        .file("mine/agents/main.agent", "---\nname: main\nentry: true\n---\nMain.\n");
    sandbox.run(&["check", "mine"]).ended(0).said("ok: 2 agents, entry `main`\n");
    sandbox.run(&["check", "mine/agents/helper.agent"]).ended(0).said("ok: 2 agents, entry `helper`\n");
}

#[test]
fn a_broken_manifest_is_reported_for_its_agent_files_too() {
    let sandbox = with_manifest().file("mine/project.yaml", "version: [\n");
    sandbox.run(&["check", "mine/near.agent"]).ended(2).told("mine/project.yaml");
}

#[test]
fn trust_is_the_same_however_the_project_is_named() {
    let sandbox = with_manifest().file(
        "mine/project.yaml",
        "version: 1\nentry: {agent: main}\nagent_files: ['agents/*.agent', near.agent]\nmodel: test:echo\n\
         runtime: {approval_mode: approve_all}\n",
    );
    let digest = |path: &str| {
        let ran = sandbox.run(&["check", path]).ended(0);
        ran.stdout.lines().find(|line| line.starts_with("powers")).unwrap().to_owned()
    };
    let expected = digest("mine");
    for path in ["mine/project.yaml", "mine/near.agent", "mine/agents/helper.agent"] {
        assert_eq!(digest(path), expected, "{path}");
    }
    let digits = expected.split(['(', ')']).nth(1).unwrap().to_owned();
    sandbox.run(&["trust", "mine/near.agent", "--expect", &digits]).ended(0);
    sandbox.run(&["trust", "mine/agents/main.agent", "--revoke"]).ended(0);
    sandbox.run(&["trust", "mine", "--revoke"]).ended(2).told("was not trusted");
}

#[test]
fn a_file_that_is_not_a_project_says_so_with_every_command() {
    let sandbox = Sandbox::new().file("note.txt", "hello\n");
    for arguments in
        [&["run", "note.txt", "hi"][..], &["run", "note.txt"], &["check", "note.txt"], &["list", "note.txt"]]
    {
        sandbox.run(arguments).ended(2).told("`note.txt` is not a project or an agent file").told("hint: ");
    }
}

#[test]
fn a_broken_project_around_does_not_keep_the_doctor_from_looking() {
    let sandbox = Sandbox::new().file("main.agent", "---\nname: main\nmodle: test\n---\nx\n");
    for arguments in [&["doctor"][..], &["doctor", "."]] {
        let ran = sandbox.run(arguments).ended(3).told("modle");
        assert!(ran.stdout.contains("fail  project") && ran.stdout.contains("sandbox"), "{ran:?}");
    }
}
