//! Runs are recorded, listed, shown and continued.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use expectrl::Expect;
use llm_do_testing::needs;
use serde_json::{Value, json};

use crate::providers::{KEY, asks, refuses, run_beside, says};
use crate::support::{Ran, Sandbox};
use crate::terminal::{at_terminal, ended};

/// An agent that writes a file, and whose model then thinks for two seconds. It has more to say in a chat.
pub(crate) fn slow() -> Sandbox {
    Sandbox::new()
        .file(
            "main.agent",
            "---\nname: main\nmodel: script:script.yaml\ntoolsets: [filesystem_project]\n---\nWrite.\n",
        )
        .file("project.yaml", "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\n")
        .file(
            "script.yaml",
            "mode: by_turn\nreplies:\n  - ask: {write_file: {path: a.txt, content: hello}}\n  \
             - {delay: 2s, say: written}\n  - say: more\n",
        )
}

/// Kills a run when its file is written, so that it is never told that the file was.
fn killed(sandbox: &Sandbox) {
    let mut child = background(sandbox, &["run", ".", "go", "-a", "all"]);
    wait_for(|| sandbox.path("a.txt").exists());
    // The result is recorded within moments; the model still thinks.
    std::thread::sleep(Duration::from_millis(500));
    child.kill().unwrap();
    child.wait().unwrap();
}

pub(crate) fn background(sandbox: &Sandbox, arguments: &[&str]) -> Child {
    sandbox.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub(crate) fn wait_for(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never came true");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn runs(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.run(&["runs", "--output", "json"]).json().as_array().unwrap().clone()
}

#[test]
fn a_run_that_was_killed_goes_on_without_repeating_what_it_did() {
    let sandbox = slow();
    killed(&sandbox);
    std::fs::remove_file(sandbox.path("a.txt")).unwrap();
    let listed = runs(&sandbox);
    assert_eq!(
        (&listed[0]["status"], &listed[0]["can_resume"]),
        (&"cut_off".into(), &true.into()),
        "{listed:?}"
    );
    let id = listed[0]["run_id"].as_str().unwrap()[..8].to_owned();
    let shown = sandbox.run(&["show", &id]).ended(0);
    assert!(shown.stdout.contains(&format!("resume   llm-do resume {id}")), "{shown:?}");

    let resumed = sandbox.run(&["resume", &id]).ended(0);
    assert_eq!(resumed.stdout.trim(), "written");
    assert!(!sandbox.path("a.txt").exists(), "the file was written twice");
    assert_eq!(runs(&sandbox)[0]["status"], "done");

    let again = sandbox.run(&["resume", "last"]).ended(2);
    assert!(again.stderr.contains("cannot be resumed, it has ended (done)"), "{again:?}");
}

#[test]
fn a_run_that_is_out_of_time_says_how_to_continue() {
    let sandbox = slow();
    let ran = sandbox.run(&["run", ".", "go", "-a", "all", "--timeout", "1s", "--output", "json"]).ended(124);
    let command = ran.json()["resume"].as_str().unwrap().to_owned();
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    assert!(ran.stderr.contains("to continue: llm-do resume "), "{ran:?}");
    let resumed = sandbox.run(&[&words[..], &["--output", "json"]].concat()).ended(0);
    assert_eq!((&resumed.json()["output"], &resumed.json()["resume"]), (&"written".into(), &Value::Null));
    // The request that was in flight when the time was over counts.
    assert_eq!(resumed.json()["usage"]["requests"], 3);
}

/// A run whose process is killed in the middle of a Python tool that must not run twice.
fn killed_while_paying() -> Sandbox {
    let tool = "import pathlib, time\n\ndef pay(amount: int) -> str:\n    \"\"\"Pays.\"\"\"\n    \
        with open('paid', 'a') as file:\n        file.write('x')\n    time.sleep(30)\n    return 'paid'\n\nTOOLS = [pay]\n";
    let sandbox = Sandbox::new()
        .file("main.agent", "---\nname: main\nmodel: script:script.yaml\ntools: [pay]\n---\nPay.\n")
        .file(
            "project.yaml",
            "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\npython_files: [tools.py]\n",
        )
        .file("tools.py", tool)
        .file("script.yaml", "mode: by_turn\nreplies:\n  - ask: {pay: {amount: 7}}\n  - say: the end\n");
    let mut child = background(&sandbox, &["run", ".", "go", "-a", "all"]);
    wait_for(|| sandbox.path("paid").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    sandbox
}

#[needs(python)]
#[test]
fn a_call_that_may_have_happened_waits_for_what_the_user_says() {
    let sandbox = killed_while_paying();
    let paid = || std::fs::read_to_string(sandbox.path("paid")).unwrap().len();
    let asked = sandbox.run(&["resume", "last"]).ended(1);
    assert!(asked.stderr.contains("may have happened"), "{asked:?}");
    assert!(asked.stderr.contains(r#"main > pay {"amount":7}, begun "#), "{asked:?}");
    let line = asked.stderr.lines().find(|line| line.contains(", begun ")).unwrap();
    let call = line.trim().split(' ').next().unwrap().to_owned();
    sandbox.run(&["resume", "last", "--unknown", "1/nothing=done"]).ended(2);
    sandbox.run(&["resume", "last", "--unknown", "perhaps"]).ended(2);
    let answer = format!("{call}=done:\"receipt 7\"");
    let resumed = sandbox.run(&["resume", "last", "--unknown", &answer]).ended(0);
    assert_eq!((resumed.stdout.trim(), paid()), ("the end", 1));
    assert!(sandbox.run(&["show", "last"]).stdout.contains("receipt 7"));
}

#[needs(python)]
#[test]
fn a_person_at_a_terminal_says_what_became_of_a_call() {
    let sandbox = killed_while_paying();
    let resume = "\"$LLM_DO\" resume last --headless; echo code $?";
    let mut session = at_terminal(&sandbox, resume);
    session.expect("[d] it happened").unwrap();
    session.send_line("s").unwrap();
    let rest = ended(session);
    assert!(rest.contains("the run was not continued") && rest.contains("code 2"), "{rest}");

    let mut session = at_terminal(&sandbox, resume);
    session.expect("[d] it happened").unwrap();
    session.send_line("d").unwrap();
    session.expect("its result as JSON").unwrap();
    session.send_line("{").unwrap();
    session.expect("that is not valid JSON").unwrap();
    session.send_line("\"receipt 8\"").unwrap();
    let rest = ended(session);
    assert!(rest.contains("the end") && rest.contains("code 0"), "{rest}");
    assert!(sandbox.run(&["show", "last"]).stdout.contains("receipt 8"));
    assert_eq!(std::fs::read_to_string(sandbox.path("paid")).unwrap(), "x");
}

#[needs(python)]
#[test]
fn an_agent_is_told_that_nobody_knows_whether_a_call_happened() {
    let sandbox = killed_while_paying();
    let resumed = sandbox.run(&["resume", "last", "--unknown", "tell"]).ended(0);
    assert_eq!(resumed.stdout.trim(), "the end");
    assert!(
        sandbox
            .run(&["show", "last", "--output", "json"])
            .stdout
            .contains("nobody knows whether it happened")
    );
    assert_eq!(std::fs::read_to_string(sandbox.path("paid")).unwrap(), "x");
}

#[test]
fn a_resumed_run_says_that_it_keeps_its_approval_mode() {
    let sandbox = Sandbox::scripted("mode: by_turn\nreplies:\n  - {delay: 1s, say: late}\n");
    sandbox.run(&["run", ".", "go", "--timeout", "300ms"]).ended(124);
    let resumed = sandbox.run(&["resume", "last", "-a", "all"]).ended(0);
    assert!(resumed.stderr.contains("it was started with `--approve prompt`"), "{resumed:?}");
    sandbox.run(&["run", ".", "go", "--timeout", "300ms", "-a", "all"]).ended(124);
    let resumed = sandbox.run(&["resume", "last", "-a", "all"]).ended(0);
    assert!(!resumed.stderr.contains("approval mode"), "{resumed:?}");
}

#[test]
fn of_two_that_resume_a_run_one_goes_on_and_the_other_names_it() {
    let sandbox = slow();
    killed(&sandbox);
    let first = background(&sandbox, &["resume", "last"]);
    wait_for(|| runs(&sandbox)[0]["status"] == "running");
    let second = sandbox.run(&["resume", "last"]).ended(1);
    let holder = format!("is being continued by process {} on this machine since ", first.id());
    assert!(second.stderr.contains(&holder), "{second:?}");
    let first: Ran = first.wait_with_output().unwrap().into();
    assert_eq!(first.ended(0).stdout.trim(), "written");
}

#[test]
fn a_limit_that_ended_a_run_is_replaced_when_it_is_resumed() {
    let sandbox = Sandbox::scripted("mode: by_turn\nreplies:\n  - {delay: 2s, say: late}\n");
    sandbox.run(&["run", ".", "go", "--timeout", "300ms"]).ended(124);
    let resumed = sandbox.run(&["resume", "last", "--max-tokens", "1"]).ended(4);
    assert!(resumed.stderr.contains("token"), "{resumed:?}");
}

#[test]
fn runs_are_recorded_where_the_user_says() {
    let sandbox = Sandbox::echo();
    sandbox.run(&["run", ".", "one"]).ended(0);
    sandbox.run(&["run", ".", "two", "--no-record"]).ended(0);
    sandbox.command(&["run", ".", "three"]).env("LLM_DO_RECORD", "none").output().unwrap();
    sandbox.run(&["run", ".", "four", "--record", "other.db"]).ended(0);
    let titles = |listed: Vec<Value>| -> Vec<String> {
        listed.iter().map(|run| run["title"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(titles(runs(&sandbox)), ["one"]);
    let here = sandbox.run(&["runs", "--project", ".", "--output", "json"]).json();
    assert_eq!(titles(here.as_array().unwrap().clone()), ["one"]);
    assert_eq!(
        sandbox.run(&["runs", "--project", "/", "--output", "json"]).json().as_array().unwrap().len(),
        0
    );
    let other = sandbox.run(&["runs", "--record", "other.db", "--output", "json"]).json();
    assert_eq!(titles(other.as_array().unwrap().clone()), ["four"]);

    let refused = sandbox.run(&["run", ".", "five", "--record", "main.agent"]).ended(2);
    assert!(refused.stderr.contains("main.agent cannot be used as a record"), "{refused:?}");
    assert!(std::fs::read_to_string(sandbox.path("main.agent")).unwrap().starts_with("---"));
    sandbox.run(&["run", ".", "six", "--record", "x.db", "--no-record"]).ended(2);
}

#[test]
fn what_is_not_there_is_named() {
    let sandbox = Sandbox::echo();
    assert!(sandbox.run(&["runs"]).ended(0).stderr.contains("no runs"));
    assert!(sandbox.run(&["show", "last"]).ended(2).stderr.contains("nothing is recorded yet"));
    sandbox.run(&["run", ".", "hello"]).ended(0);
    for (id, said) in [
        ("ab", "`ab` is not the id of a run"),
        ("hello", "`hello` is not the id of a run"),
        ("ffffffffffffffffffff", "no recorded run begins with"),
    ] {
        let ran = sandbox.run(&["show", id]).ended(2);
        assert!(ran.stderr.contains(said), "{ran:?}");
    }
}

#[test]
fn a_turn_of_a_chat_is_recorded_and_not_resumed() {
    let sandbox = Sandbox::scripted("mode: by_turn\nreplies:\n  - {delay: 5s, say: late}\n");
    let ran = sandbox.run(&["chat", ".", "hello", "--timeout", "300ms"]);
    assert!(!ran.stderr.contains("to continue"), "{ran:?}");
    let listed = runs(&sandbox);
    assert_eq!((&listed[0]["status"], &listed[0]["can_resume"]), (&"timed_out".into(), &false.into()));
    let refused = sandbox.run(&["resume", "last"]).ended(2);
    assert!(refused.stderr.contains("is a turn of a chat"), "{refused:?}");
}

#[test]
fn runs_are_removed_by_age_project_and_status() {
    let sandbox = Sandbox::scripted("mode: by_turn\nreplies:\n  - {delay: 5s, say: late}\n");
    let size = || std::fs::metadata(sandbox.state().join("llm-do/record.db")).unwrap().len();
    for number in 0..3 {
        let long = format!("text {number} ").repeat(10_000);
        sandbox.run(&["run", ".", &long, "--model", "test:echo"]).ended(0);
    }
    sandbox.run(&["run", ".", "go", "--timeout", "300ms"]).ended(124);
    let before = size();
    sandbox.run(&["runs", "prune"]).ended(2);
    let dry = sandbox.run(&["runs", "prune", "--older-than", "2999-01-01", "--dry-run"]).ended(0);
    assert!(dry.stderr.contains("3 runs would be removed"), "{dry:?}");
    assert_eq!(dry.stdout.lines().count(), 4);
    assert!(sandbox.run(&["runs", "prune", "--older-than", "1d"]).ended(0).stderr.contains("removed 0 runs"));
    assert_eq!(runs(&sandbox).len(), 4);
    assert!(sandbox.run(&["runs", "prune", "--project", "."]).ended(0).stderr.contains("removed 3 runs"));
    // What can be resumed stays until its status is named.
    assert_eq!(runs(&sandbox)[0]["status"], "timed_out");
    assert!(
        sandbox.run(&["runs", "prune", "--status", "timed_out"]).ended(0).stderr.contains("removed 1 run")
    );
    assert!(runs(&sandbox).is_empty());
    assert!(size() < before - 200_000, "{before} became {}", size());
    sandbox.run(&["run", ".", "again", "--model", "test:echo"]).ended(0);
    assert_eq!(runs(&sandbox).len(), 1);
}

#[test]
fn the_binary_has_no_fail_points() {
    let binary = std::fs::read(env!("CARGO_BIN_EXE_llm-do")).unwrap();
    assert_eq!(memchr::memmem::find(&binary, b"record::before_commit"), None);
}

#[test]
fn usage_is_added_up_by_model_agent_and_day() {
    let sandbox = Sandbox::asking();
    for _ in 0..3 {
        sandbox.run(&["run", ".", "hello", "-a", "all"]).ended(0);
    }
    let rows = |by: &str| sandbox.run(&["usage", "--by", by, "--output", "json"]).ended(0).json();
    assert_eq!(rows("model").as_array().unwrap().len(), 2);
    let agents = rows("agent");
    let requests = |name: &str| {
        agents.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap()["requests"].clone()
    };
    assert_eq!((requests("main"), requests("helper")), (6.into(), 3.into()));
    assert_eq!(rows("day").as_array().unwrap().len(), 1);
    assert!(sandbox.run(&["usage", "--since", "2999-01-01"]).ended(0).stderr.contains("nothing was used"));
}

/// A tool finds the key, the model repeats it in an answer and in a call, and the provider in an error.
#[test]
fn a_key_of_a_provider_is_in_no_file_of_the_record() {
    let sandbox = Sandbox::new()
        .file(
            "main.agent",
            "---\nname: main\nmodel: openai-chat:small\ntoolsets: [filesystem_project]\napproval: {'*': pre_approved}\n---\nRead.\n",
        )
        .file("notes.txt", &format!("the key is {KEY}, and a canary sings\n"));
    sandbox.run(&["run", ".", "first", "--model", "test:echo"]).ended(0);
    let record = sandbox.state().join("llm-do/record.db");
    // As long as somebody reads, the log and its shared memory stay.
    let reader = rusqlite::Connection::open(&record).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM streams").unwrap();

    let reads = json!({"path": "notes.txt"});
    let writes = json!({"path": "copy.txt", "content": format!("copied {KEY}")});
    let answers =
        [asks("read_file", &reads), asks("write_file", &writes), says(&format!("It is {KEY}."))].to_vec();
    let (ran, requests) = run_beside(&sandbox, answers, &["run", ".", "What is the key?", "-a", "all"]);
    assert_eq!(requests, 3, "{:?}", ran.ended(0));
    let refusal = vec![refuses(401, &format!("bad key {KEY}"))];
    let (ran, _) = run_beside(&sandbox, refusal, &["run", ".", "Is it good?"]);
    ran.ended(3);
    let mut found = Vec::new();
    for name in ["record.db", "record.db-wal", "record.db-shm"] {
        let bytes = std::fs::read(record.with_file_name(name)).unwrap();
        found.push(memchr::memmem::find_iter(&bytes, b"canary sings").count());
        assert_eq!(memchr::memmem::find_iter(&bytes, KEY.as_bytes()).count(), 0, "{name}");
    }
    assert!(found[1] > 0, "what the tool said is recorded: {found:?}");
}

#[test]
fn the_files_of_a_record_are_private_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt;

    let sandbox = Sandbox::scripted("mode: by_turn\nreplies:\n  - {delay: 60s, say: late}\n");
    let program = sandbox.command(&["run", ".", "go"]);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "umask 0; exec \"$@\"", "sh"]).arg(program.get_program()).args(program.get_args());
    shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child =
        shell.current_dir(sandbox.root()).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let state = sandbox.state().join("llm-do");
    let claims = state.join("record.db-claims");
    wait_for(|| claims.read_dir().is_ok_and(|mut claims| claims.next().is_some()));
    wait_for(|| state.join("record.db-shm").exists());
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for directory in [&state, &claims] {
        assert_eq!(mode(directory), 0o700, "{}", directory.display());
    }
    let claim = claims.read_dir().unwrap().next().unwrap().unwrap().path();
    for file in
        ["record.db", "record.db-wal", "record.db-shm"].map(|name| state.join(name)).iter().chain([&claim])
    {
        assert_eq!(mode(file), 0o600, "{}", file.display());
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[cfg(unix)]
#[test]
fn a_directory_in_which_others_can_replace_the_record_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::echo();
    let directory = sandbox.state().join("llm-do");
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777)).unwrap();
    let ran = sandbox.run(&["run", ".", "hi", "--trust"]).said("hi\n").told("this run is not recorded");
    assert!(ran.stderr.contains("others can write to it"), "{ran:#?}");
    assert!(!directory.join("record.db").exists());
}

#[needs(root)]
#[test]
fn a_record_of_another_user_is_neither_written_nor_read() {
    let sandbox = Sandbox::echo();
    sandbox.run(&["run", ".", "hi"]).ended(0);
    let record = sandbox.state().join("llm-do/record.db");
    std::os::unix::fs::chown(&record, Some(65534), None).unwrap();
    sandbox.run(&["run", ".", "hi"]).ended(0).told("belongs to the user 65534");
    sandbox.run(&["runs"]).ended(1).told("belongs to the user 65534");
    sandbox.run(&["resume", "last"]).ended(1).told("belongs to the user 65534");
}
