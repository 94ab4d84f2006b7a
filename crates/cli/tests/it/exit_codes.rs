//! Each exit code, and the same word as `status`.

use crate::support::Sandbox;

#[test]
fn a_run_that_answers_ends_with_0() {
    Sandbox::echo().run(&["run", ".", "hello"]).ended(0).said("hello\n").told_nothing();
}

#[test]
fn a_call_that_fails_ends_with_1() {
    let sandbox =
        Sandbox::new().file("main.agent", "---\nname: main\ntoolsets: [filesystem_project]\n---\nx");
    let input = r#"{"path": "gone.txt"}"#;
    let ran = sandbox.run(&["call", ".", "read_file", "--input-json", input, "--output", "json"]).ended(1);
    assert_eq!(ran.json()["status"], "failed");
    ran.told("gone.txt");
}

#[test]
fn bad_usage_and_bad_projects_end_with_2() {
    let sandbox = Sandbox::echo().file("bad/main.agent", "---\nnam: main\n---\nx");
    sandbox.run(&["run", ".", "hello", "--nonsense"]).ended(2).said("").told("--nonsense");
    sandbox.run(&["run", "missing", "hello"]).ended(2).said("").told("there is no project at `missing`");
    sandbox.run(&["run", "bad", "hello"]).ended(2).said("").told("did you mean `name`?");
    sandbox.run(&["call", ".", "nobody"]).ended(2).told("there is no tool or agent `nobody`");
    let refused = sandbox.run(&["run", "bad", "hello", "--output", "json"]).ended(2);
    assert_eq!(refused.json()["status"], "invalid");
}

#[test]
fn a_mistyped_command_is_named() {
    Sandbox::echo().run(&["chekc", "."]).ended(2).told("did you mean the command `check`?");
}

#[test]
fn a_provider_that_fails_ends_with_3() {
    let sandbox = Sandbox::scripted("- fail: {kind: server, message: out of order}\n");
    let ran = sandbox.run(&["run", ".", "hello", "--output", "json"]).ended(3);
    assert_eq!(ran.json()["status"], "provider");
    ran.told("out of order");
}

#[test]
fn a_limit_that_runs_out_ends_with_4() {
    let sandbox = Sandbox::new()
        .file("main.agent", "---\nname: main\nmodel: script:script.yaml\ntoolsets: [main]\n---\nAgain.\n")
        .file("script.yaml", "mode: by_turn\nreplies:\n  - ask: {main: {input: again}}\n  - say: done\n");
    let ran = sandbox.run(&["run", ".", "hello", "--max-turns", "1", "--output", "json"]).ended(4);
    assert_eq!(ran.json()["status"], "limit");
    ran.told("used its 1 turn without an answer");
}

#[test]
fn a_flag_is_a_ceiling_that_a_project_can_only_lower() {
    let sandbox = Sandbox::new()
        .file("main.agent", "---\nname: main\nmodel: script:script.yaml\ntoolsets: [main]\n---\nAgain.\n")
        .file("script.yaml", "mode: by_turn\nreplies:\n  - ask: {main: {input: again}}\n  - say: done\n");
    for (project, flag) in [("1", "9"), ("9", "1")] {
        let set = format!("runtime.limits.turns={project}");
        let ran = sandbox.run(&["run", ".", "hello", "--set", &set, "--max-turns", flag]).ended(4);
        ran.told("1 turn ");
    }
}

#[test]
fn a_call_that_had_to_ask_and_could_not_ends_with_5_even_with_an_answer() {
    let ran = Sandbox::asking().run(&["run", ".", "hello"]).ended(5).said("the end\n");
    let object = Sandbox::asking().run(&["run", ".", "hello", "--output", "json"]).ended(5).json();
    assert_eq!((&object["status"], &object["output"]), (&"denied".into(), &"the end".into()));
    ran.told("nobody could be asked").told("hint:");
}

#[test]
fn a_denial_that_somebody_chose_leaves_0() {
    Sandbox::asking().run(&["run", ".", "hello", "--approve", "none"]).ended(0).said("the end\n");
    Sandbox::asking().run(&["run", ".", "hello", "--reject-all"]).ended(0).said("the end\n");
}

#[test]
fn a_project_can_end_runs_at_the_first_denial() {
    let set = "runtime.return_permission_errors=false";
    let ran = Sandbox::asking()
        .run(&["run", ".", "hello", "--reject-all", "--set", set, "--output", "json"])
        .ended(5);
    assert_eq!(ran.json()["status"], "denied");
    ran.told("denied: `helper` must ask");
}

#[test]
fn an_output_that_does_not_fit_ends_with_6() {
    let agent = "---\nname: main\nmodel: script:script.yaml\noutput_schema: {type: object, required: [n], \
        properties: {n: {type: integer}}}\n---\nCount.\n";
    let sandbox = Sandbox::new().file("main.agent", agent).file(
        "script.yaml",
        "mode: by_turn\nreplies: [{say: many}, {say: several}, {say: lots}, {say: more}]\n",
    );
    let ran = sandbox.run(&["run", ".", "hello", "--output", "json"]).ended(6);
    let object = ran.json();
    assert_eq!((&object["status"], &object["raw"]), (&"output".into(), &"lots".into()), "{object}");
    sandbox.run(&["run", ".", "hello"]).ended(6).said("").told("the answer was:\n    lots\n");
    let long = "x".repeat(10_000);
    let replies = format!("mode: by_turn\nreplies: [{{say: a}}, {{say: a}}, {{say: {long}}}]\n");
    let ran = sandbox.file("script.yaml", &replies).run(&["run", ".", "hello"]).ended(6);
    assert!(ran.stderr.len() < 4_000, "{ran:?}");
    ran.told("(and 8000 more characters, which `--output json` shows)");
}

#[test]
fn a_run_that_runs_longer_than_its_budget_ends_with_4() {
    let sandbox = Sandbox::scripted("- say: late\n  delay: 60s\n");
    let ran =
        sandbox.run(&["run", ".", "hello", "--set", "runtime.limits.time=0.2", "--output", "json"]).ended(4);
    assert_eq!(ran.json()["status"], "limit");
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = Sandbox::echo().command(&["run", ".", "hello"]).stdout(full).output().unwrap();
    crate::support::Ran::from(output).ended(1).told("stdout cannot be written");
}

#[test]
fn whatever_cannot_be_written_to_stdout_is_a_failure() {
    let sandbox = Sandbox::echo();
    for arguments in [
        &["--help"][..],
        &["run", "--help"],
        &["--version"],
        &["schema"],
        &["completions", "bash"],
        &["list", "."],
        &["check", ".", "--output", "json"],
        &["models"],
        &["run", ".", "x", "--output", "json"],
        &["run", ".", "x", "--output", "jsonl"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = sandbox.command(arguments).stdout(full).output().unwrap();
        crate::support::Ran::from(output).ended(1).told("stdout cannot be written");
    }
}

#[test]
fn a_run_that_takes_too_long_ends_with_124_and_says_what_was_done() {
    let sandbox = Sandbox::scripted("- say: late\n  delay: 60s\n");
    let ran = sandbox.run(&["run", ".", "hello", "--timeout", "200ms", "--output", "json"]).ended(124);
    assert_eq!(ran.json()["status"], "timed_out");
    ran.told("agent main").told("1 request, 0 tokens");
}

#[test]
fn no_model_is_said_before_the_first_token() {
    let sandbox = Sandbox::new().file("main.agent", "---\nname: main\n---\nx");
    sandbox.run(&["run", ".", "hello"]).ended(2).told("no model").told("LLM_DO_MODEL");
    sandbox.run(&["call", ".", "main", "--input-json", "\"x\""]).ended(2).told("no model");
    sandbox.run(&["run", ".", "hello", "--model", "test:echo"]).ended(0).said("hello\n");
    sandbox.run(&["run", ".", "hello", "--model", "tset:echo"]).ended(2).told("did you mean `test:echo`?");
    let mut command = sandbox.command(&["run", ".", "hello"]);
    let ran: crate::support::Ran = command.env("LLM_DO_MODEL", "test:echo").output().unwrap().into();
    ran.ended(0).said("hello\n");
}

#[test]
fn a_flag_of_the_python_programs_is_explained() {
    let sandbox = Sandbox::echo();
    let explained = |flags: &[&str], expected: &str| {
        let arguments: Vec<&str> = ["run", ".", "x"].iter().chain(flags).copied().collect();
        sandbox.run(&arguments).ended(2).said("").told(expected);
    };
    explained(&["--strict"], "hint: `--strict` of the Python program is now: flag `--reject-all`");
    explained(&["--approve-all-tools"], "now: flag `--approve-all`; for example");
    explained(&["--attachments", "a.pdf"], "now: flag `--attach`, once per file");
    explained(&["--cost-limit=0.5"], "hint: `--cost-limit` of LLMProc is now: flag `--max-cost`");
    explained(&["-q"], "hint: `-q` of LLMProc is now: leave the flag `-v` out");
}

#[test]
fn calls_and_tokens_of_a_run_have_flags() {
    let sandbox = Sandbox::asking();
    let approved = ["run", ".", "x", "--approve", "all"];
    sandbox.run(&[&approved[..], &["--max-calls", "1", "--max-tokens", "100000"]].concat()).ended(0);
    let run = |flags: &[&str]| sandbox.run(&[&approved[..], flags].concat());
    // The model is told that no call is left, and may still answer.
    run(&["--max-calls", "0", "-v"]).ended(0).told("the limit of 0 tool calls set by the run is too low");
    run(&["--max-tokens", "1"]).ended(4).told("token");
    run(&["--max-tokens", "0"]).ended(2).told("1..");
    // A flag is a ceiling: the project can only be stricter.
    let set = ["--set", "runtime.limits.tokens=1"];
    assert_eq!(run(&[&set[..], &["--max-tokens", "100000"]].concat()).code, Some(4));
}
