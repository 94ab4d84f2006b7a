//! Trust: looking runs nothing, running asks once, and what was agreed to is remembered.

use std::process::Stdio;

use llm_do_trust::{DirectoryIdentity, TrustEntry, TrustSource, TrustStore};
use serde_json::Value;

use crate::support::{Ran, Sandbox};

/// A project whose code leaves a mark when it runs, and that no one trusts.
fn marked() -> Sandbox {
    let code = "import pathlib\npathlib.Path(__file__).with_name('MARK').write_text('x')\n\
                def count(text: str) -> int:\n    'Counts.'\n    return len(text)\nTOOLS = [count]\n";
    let manifest = "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\npython_files: [tools.py]\n";
    Sandbox::untrusted()
        .file("p/project.yaml", manifest)
        .file("p/main.agent", "---\nname: main\nmodel: test:echo\ntools: [count]\n---\nEcho.\n")
        .file("p/tools.py", code)
}

fn was_run(sandbox: &Sandbox) -> bool {
    sandbox.path("p/MARK").exists()
}

fn digest(sandbox: &Sandbox) -> String {
    let ran = sandbox.run(&["run", "p", "hi"]);
    let start = ran.stderr.find("--trust=").unwrap() + "--trust=".len();
    ran.stderr[start..start + 12].to_owned()
}

fn agree(sandbox: &Sandbox) -> Ran {
    let digest = digest(sandbox);
    sandbox.run(&["trust", "p", "--expect", &digest])
}

#[test]
fn commands_that_look_run_nothing() {
    let sandbox = marked();
    for arguments in [
        &["check", "p"][..],
        &["check", "p", "--reach"],
        &["check", "p", "--output", "json"],
        &["list", "p"],
        &["models", "p"],
        &["doctor", "p"],
        &["call", "p", "count", "--input-json", "{\"text\": \"x\"}", "--dry-run"],
        &["trust", "p"],
        &["trust", "--list"],
        &["run", "p", "hi"],
        &["chat", "p", "hi"],
        &["call", "p", "main", "--input-json", "{\"input\": \"x\"}"],
    ] {
        let ran = sandbox.run(arguments);
        assert!(!was_run(&sandbox), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(sandbox.run(&["check", "p", "--run-code"]).code, Some(0));
    assert!(was_run(&sandbox));
}

#[test]
fn check_lists_the_powers() {
    let sandbox = marked();
    let ran = sandbox.run(&["check", "p"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("RUNS    its Python code with your rights"), "{}", ran.stdout);
    assert!(ran.stdout.contains("project.yaml:4  python_files"), "{}", ran.stdout);
    let value: Value =
        serde_json::from_str(&sandbox.run(&["check", "p", "--output", "json"]).stdout).unwrap();
    assert_eq!(value["powers"][0]["kind"], "code", "{value}");
    assert_eq!(value["powers"][0]["class"], "runs", "{value}");
}

#[test]
fn an_address_that_no_agent_uses_is_listed_with_its_condition() {
    let manifest = "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\nproviders:\n\
                    \x20 used: {api: openai-chat, base_url: 'http://127.0.0.1:1/v1'}\n\
                    \x20 spare: {api: openai-chat, base_url: 'http://127.0.0.1:2/v1'}\n";
    let sandbox = Sandbox::untrusted()
        .file("project.yaml", manifest)
        .file("main.agent", "---\nname: main\nmodel: used:x\n---\nEcho.\n");
    let listed = |arguments: &[&str]| sandbox.run(arguments).ended(0).stdout;
    let text = listed(&["check", "."]);
    let address = |port: u16| format!("SENDS   your prompts and files to http://127.0.0.1:{port}");
    assert!(text.contains(&format!("{}\n", address(1))), "{text}");
    let condition = ", if a model of this provider is chosen; no agent names one\n";
    assert!(text.contains(&format!("{}{condition}", address(2))), "{text}");
    let moved = listed(&["check", ".", "--set", "providers.used.base_url=http://127.0.0.1:3/v1"]);
    assert!(!moved.contains(&address(1)) && !moved.contains(&address(3)), "{moved}");
}

#[test]
fn without_a_terminal_a_run_is_refused_with_the_two_ways_out() {
    let sandbox = marked();
    let ran = sandbox.run(&["run", "p", "hi"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("`p` is not trusted, and you cannot be asked without a terminal"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("`llm-do trust p`"), "{}", ran.stderr);
    let digest = digest(&sandbox);
    let once = sandbox.run(&["run", "p", "hi", &format!("--trust={digest}")]);
    assert_eq!((once.code, once.stdout.as_str()), (Some(0), "hi\n"), "{}", once.stderr);
    assert!(once.stderr.contains("trusted for this run"), "{}", once.stderr);
    assert_eq!(sandbox.run(&["run", "p", "hi"]).code, Some(2));
    assert_eq!(sandbox.run(&["run", "p", "hi", "--trust=000000000000"]).code, Some(2));
    assert_eq!(sandbox.run(&["run", "p", "hi", "--trust=maybe"]).code, Some(2));
}

#[test]
fn an_agreement_is_remembered_listed_and_taken_back() {
    let sandbox = marked();
    assert_eq!(agree(&sandbox).code, Some(0));
    let ran = sandbox.run(&["run", "p", "hi"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(sandbox.run(&["trust", "--list"]).stdout.contains("/p  "));
    assert_eq!(sandbox.run(&["trust", "p", "--revoke"]).code, Some(0));
    assert_eq!(sandbox.run(&["run", "p", "hi"]).code, Some(2));
    assert_eq!(sandbox.run(&["trust", "p", "--revoke"]).code, Some(2));
}

#[test]
fn more_powers_are_refused_and_fewer_are_silent() {
    let sandbox = marked();
    agree(&sandbox);
    let manifest = std::fs::read_to_string(sandbox.path("p/project.yaml")).unwrap();
    let more = format!("{manifest}runtime: {{approval_mode: approve_all}}\n");
    std::fs::write(sandbox.path("p/project.yaml"), more).unwrap();
    assert_eq!(sandbox.run(&["run", "p", "hi"]).code, Some(2));
    std::fs::write(sandbox.path("p/project.yaml"), manifest.replace("python_files: [tools.py]\n", ""))
        .unwrap();
    std::fs::write(sandbox.path("p/main.agent"), "---\nname: main\nmodel: test:echo\n---\nEcho.\n").unwrap();
    assert_eq!(sandbox.run(&["run", "p", "hi"]).code, Some(0));
}

#[test]
fn changed_code_runs_with_a_notice_and_is_not_run_by_looking() {
    let sandbox = marked();
    agree(&sandbox);
    assert_eq!(sandbox.run(&["run", "p", "hi"]).code, Some(0));
    std::fs::remove_file(sandbox.path("p/MARK")).unwrap();
    assert_eq!(sandbox.run(&["check", "p"]).code, Some(0));
    assert!(was_run(&sandbox), "trusted and unchanged: looking may run it");
    std::fs::remove_file(sandbox.path("p/MARK")).unwrap();
    let code = std::fs::read_to_string(sandbox.path("p/tools.py")).unwrap();
    std::fs::write(sandbox.path("p/tools.py"), format!("{code}\n# changed\n")).unwrap();
    assert_eq!(sandbox.run(&["check", "p"]).code, Some(0));
    assert!(!was_run(&sandbox));
    let ran = sandbox.run(&["run", "p", "hi"]);
    assert!(ran.stderr.contains("tools.py changed since the last run"), "{}", ran.stderr);
    assert!(was_run(&sandbox));
    assert_eq!(sandbox.run(&["run", "p", "hi"]).stderr, "");
}

#[test]
fn changed_code_is_asked_about_if_the_configuration_says_so() {
    let sandbox = marked().config("[trust]\ncontent = \"ask\"\n");
    agree(&sandbox);
    assert_eq!(sandbox.run(&["run", "p", "hi"]).code, Some(0));
    assert_eq!(sandbox.run(&["run", "p", "hi"]).code, Some(0), "unchanged code runs");
    std::fs::remove_file(sandbox.path("p/MARK")).unwrap();
    let code = std::fs::read_to_string(sandbox.path("p/tools.py")).unwrap();
    std::fs::write(sandbox.path("p/tools.py"), format!("{code}\n# changed\n")).unwrap();
    let refused =
        sandbox.run(&["run", "p", "hi"]).ended(2).told("tools.py changed since the last run of `p`");
    assert!(
        refused.stderr.contains("`trust.content`") && refused.stderr.contains("--trust="),
        "{refused:#?}"
    );
    assert!(!was_run(&sandbox));
    let start = refused.stderr.find("--trust=").unwrap();
    sandbox.run(&["run", "p", "hi", &refused.stderr[start..start + 20]]).ended(0);
    assert!(was_run(&sandbox));
}

#[test]
fn the_environment_of_the_process_trusts_and_a_dot_env_does_not() {
    let sandbox = marked().file("p/.env", "LLM_DO_TRUST=all\n");
    assert_eq!(sandbox.run(&["run", "p", "hi"]).code, Some(2));
    let trusted = |value: &str| -> Ran {
        sandbox.command(&["run", "p", "hi"]).env("LLM_DO_TRUST", value).output().unwrap().into()
    };
    let ran = trusted("all");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), "notice: 1 power trusted by LLM_DO_TRUST\n"));
    assert_eq!(trusted("123456789abc").code, Some(2));
}

#[test]
fn a_program_that_llm_do_started_cannot_trust() {
    let sandbox = marked();
    let digest = digest(&sandbox);
    let inside = |arguments: &[&str]| -> Ran {
        let mut command = sandbox.command(arguments);
        command
            .env("LLM_DO_CHILD", "1")
            .env("LLM_DO_TRUST", "all")
            .stdin(Stdio::null())
            .output()
            .unwrap()
            .into()
    };
    for arguments in
        [&["trust", "p", "--expect", &digest][..], &["run", "p", "hi", "--trust"], &["run", "p", "hi"]]
    {
        assert_eq!(inside(arguments).code, Some(2), "{arguments:?}");
    }
    assert!(!was_run(&sandbox));
}

#[test]
fn a_project_without_powers_never_asks() {
    let sandbox = Sandbox::untrusted().file("main.agent", "---\nname: main\nmodel: test:echo\n---\nEcho.\n");
    let ran = sandbox.run(&["run", ".", "hi"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn what_init_writes_is_trusted_unless_something_else_was_there() {
    let sandbox = Sandbox::untrusted();
    assert_eq!(sandbox.run(&["init", "mine", "--template", "python"]).code, Some(0));
    let ran = sandbox.run(&["run", "mine", "Ada is here", "--approve", "all"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let sandbox = Sandbox::untrusted().file("theirs/sitecustomize.py", "");
    assert_eq!(sandbox.run(&["init", "theirs", "--template", "python"]).code, Some(0));
    assert_eq!(sandbox.run(&["run", "theirs", "Ada is here", "--approve", "all"]).code, Some(2));
}

#[test]
fn doctor_sends_nothing_to_an_address_of_the_project() {
    let manifest = "version: 1\nmodel: acme:m\nentry: {agent: main}\nagent_files: [main.agent]\n\
                    providers:\n  acme: {api: openai-chat, base_url: 'http://127.0.0.1:9/v1'}\n";
    let sandbox = Sandbox::untrusted()
        .file("project.yaml", manifest)
        .file("main.agent", "---\nname: main\n---\nEcho.\n");
    let ran = sandbox.run(&["doctor", "."]);
    assert!(ran.stdout.contains("not tried: the project is not trusted"), "{}", ran.stdout);
}

#[test]
fn a_lone_agent_in_the_home_directory_reaches_all_of_it() {
    let sandbox = Sandbox::untrusted();
    for listed in ["tools: [read_file]", "toolsets: [filesystem_project]"] {
        let agent = format!("---\nname: main\nmodel: test:echo\n{listed}\n---\nRead.\n");
        std::fs::write(sandbox.home().join("main.agent"), agent).unwrap();
        let path = sandbox.home().join("main.agent").display().to_string();
        sandbox.run(&["run", &path, "hi"]).ended(2).told("REACHES");
        let ran = sandbox.run(&["run", &path, "hi", "--trust=none"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hi\n"), "{ran:?}");
    }
}

/// A project whose model writes a file and runs a command, which its rules let through.
fn loose() -> Sandbox {
    let manifest = "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\nruntime: {approval_mode: approve_all}\n";
    let agent = "---\nname: main\nmodel: script:script.yaml\ntoolsets:\n  - filesystem_project\n  - shell_file_ops: \
                 {sandbox: off, rules: [{program: touch, approval: pre_approved}]}\napproval: {write_file: pre_approved}\n---\nDo.\n";
    let script = "mode: by_turn\nreplies:\n  - ask: {write_file: {path: note.txt, content: x}}\n  - ask: {shell: {command: touch other.txt}}\n  - say: done\n";
    Sandbox::untrusted().file("project.yaml", manifest).file("main.agent", agent).file("script.yaml", script)
}

#[test]
fn without_its_powers_a_project_is_asked_about_like_any_other() {
    let sandbox = loose();
    let ran = sandbox.run(&["run", ".", "go", "--trust=none"]).told("runs without these powers");
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(!sandbox.path("note.txt").exists() && !sandbox.path("other.txt").exists());
    let sandbox = loose();
    sandbox.run(&["run", ".", "go", "--trust"]).ended(0).said("done\n");
    assert!(sandbox.path("note.txt").exists());
}

#[test]
fn without_its_powers_a_project_runs_no_code_and_says_what_is_missing() {
    let sandbox = marked();
    sandbox.run(&["run", "p", "hi", "--trust=none"]).ended(0).said("hi\n").told("was not run");
    sandbox
        .run(&["list", "p"])
        .ended(0)
        .told("hint: `llm-do trust p --own` lets commands that only look run it");
    let ran: Ran = sandbox.command(&["run", "p", "hi"]).env("LLM_DO_TRUST", "none").output().unwrap().into();
    ran.ended(0).said("hi\n");
    assert!(!was_run(&sandbox));
}

#[test]
fn syntax_errors_of_code_that_is_not_run_are_found() {
    let sandbox =
        marked().file("p/tools.py", "def count(text: str) -> int:\n    return len(text\nTOOLS = [count]\n");
    let ran = sandbox.run(&["check", "p"]).ended(2).told("syntax error");
    assert!(ran.stderr.contains("p/tools.py, line 2"), "{}", ran.stderr);
    let json = sandbox.run(&["check", "p", "--output", "json"]).ended(2).json();
    assert_eq!(json["ok"], Value::Bool(false));
    // A Python that the project brings is never started to look at it.
    let path = format!("{}:{}", sandbox.path("p/bin").display(), std::env::var("PATH").unwrap());
    let sandbox = sandbox.file("p/bin/python3", "#!/bin/sh\ntouch \"$(dirname \"$0\")/../MARK\"\n");
    let made =
        std::process::Command::new("chmod").arg("+x").arg(sandbox.path("p/bin/python3")).status().unwrap();
    assert!(made.success());
    let ran: Ran = sandbox.command(&["check", "p"]).env("PATH", path).output().unwrap().into();
    ran.ended(2).told("syntax error");
    assert!(!was_run(&sandbox));
}

#[test]
fn an_agreement_that_the_project_brings_itself_does_not_count() {
    let sandbox = marked();
    let mut entry = TrustEntry::new(
        &DirectoryIdentity::read(&sandbox.path("p")).unwrap(),
        Vec::new(),
        TrustSource::Command,
    );
    (entry.below, entry.own) = (true, true);
    for state in [sandbox.path("p/.state"), sandbox.home().join("agreed")] {
        TrustStore::new(Some(state.join("llm-do"))).record(entry.clone()).unwrap();
        let ran: Ran =
            sandbox.command(&["run", "p", "hi"]).env("XDG_STATE_HOME", &state).output().unwrap().into();
        let is_own = state.starts_with(sandbox.root());
        assert_eq!(ran.code, Some(if is_own { 2 } else { 0 }), "{ran:?}");
        assert_eq!(was_run(&sandbox), !is_own);
    }
}

#[test]
fn without_a_terminal_the_difference_to_the_agreement_is_named() {
    let sandbox = marked();
    agree(&sandbox).ended(0);
    let agent = "---\nname: main\nmodel: test:echo\ntools: [count]\ntoolsets: [filesystem_project]\n\
                 approval: {write_file: pre_approved}\n---\nEcho.\n";
    let sandbox = sandbox.file("p/main.agent", agent);
    let ran = sandbox.run(&["run", "p", "hi"]).ended(2).told("wants more than you agreed to on");
    let ran = ran.told("new      ALLOWS").told("(1 other power as before)");
    assert!(!ran.stderr.contains("RUNS"), "{}", ran.stderr);
    sandbox.run(&["run", "p", "hi", "--trust=000000000000"]).ended(2).told("not the one in `--trust`");
    let json = sandbox.run(&["check", "p", "--output", "json"]).ended(0).json();
    assert!(ran.stderr.contains(json["digest"].as_str().unwrap()), "{json}");
}

#[test]
fn a_choice_may_name_a_tool_of_code_that_is_not_run() {
    let sandbox = marked();
    let agent = "---\nname: main\nmodel: test:echo\ntools: [count]\nmodel_settings: {tool_choice: {tool: count}}\n---\nEcho.\n";
    let sandbox = sandbox.file("p/main.agent", agent);
    sandbox.run(&["check", "p"]).ended(0);
    sandbox.run(&["run", "p", "hi", "--trust=none"]).ended(0).said("hi\n");
    let wrong = sandbox.file("p/main.agent", &agent.replace("{tool: count}", "{tool: cuont}"));
    wrong.run(&["run", "p", "hi", "--trust"]).ended(2).told("`tool_choice` names the tool `cuont`");
}

#[test]
fn the_list_of_powers_names_the_directory_also_if_it_is_the_current_one() {
    let sandbox = marked();
    let directory = sandbox.path("p").canonicalize().unwrap();
    let ran: Ran = sandbox.command(&["trust"]).current_dir(&directory).output().unwrap().into();
    ran.ended(2).told(&format!("{} does this without asking you:", directory.display()));
}

#[test]
fn the_same_agreement_twice_asks_nothing() {
    let sandbox = marked();
    agree(&sandbox).ended(0);
    let again = sandbox.run(&["trust", "p"]).ended(0);
    assert!(
        again.stdout.starts_with("already trusted since 2") && again.stdout.contains(": p ("),
        "{again:#?}"
    );
    sandbox.run(&["trust", "p", "--expect", "000000000000"]).ended(2).told("the digest of these powers is");
    // More than before is a question.
    sandbox.run(&["trust", "p", "--own"]).ended(2).told("you cannot be asked without a terminal");
}
