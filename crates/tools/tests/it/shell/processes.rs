//! What is run: pipes, time limits, output without end, processes that try to stay.

use std::fs;
use std::time::{Duration, Instant};

use llm_do_core::{AgentSpec, FailureKind, Key, Remark};
use llm_do_models::{asks_all, says};
use llm_do_testing::{TestCall, TestProject, TestRun, own_process};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::shell::support::{Folder, output, read_only, run, trusting};

/// A word for the arguments of processes that no other run of the tests uses.
fn mark(name: &str) -> String {
    format!("mark-{name}-{}", std::process::id())
}

/// Counts the processes that have a word among their arguments.
fn processes_with(word: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let commands = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    commands.filter(|command| String::from_utf8_lossy(command).contains(word)).count()
}

fn assert_none_left(word: &str) {
    // A killed process needs a moment to vanish from the list.
    for _ in 0..100 {
        if processes_with(word) == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{} processes with `{word}` are left", processes_with(word));
}

#[tokio::test]
async fn a_command_gives_what_it_prints_and_its_exit_code() {
    let folder = Folder::new();
    folder.file("a.txt", "two\none\ntwo\n");
    let tool = read_only(&folder.root()).await;
    let expected = json!({"stdout": "two\none\ntwo\n", "stderr": "", "exit_code": 0, "stdout_bytes": 12, "stderr_bytes": 0});
    assert_eq!(output(&tool, "cat a.txt").await, expected);
    let missing = output(&tool, "cat missing").await;
    assert_eq!((&missing["exit_code"], &missing["stdout"]), (&json!(1), &json!("")));
    assert!(missing["stderr"].as_str().unwrap().starts_with("cat: missing: No such file"), "{missing}");
    assert_eq!(output(&tool, "pwd").await["stdout"], format!("{}\n", folder.root().display()));
    assert_eq!(output(&tool, "cat").await["exit_code"], 0, "standard input is empty");
}

#[tokio::test]
async fn pipes_and_operators_work_as_in_a_shell() {
    let folder = Folder::new();
    folder.file("a.txt", "two\none\ntwo\n");
    let tool =
        trusting(&folder.root(), &["cat", "sort", "uniq", "head", "echo", "true", "false", "yes"], |_| ())
            .await;
    for (command, stdout, code) in [
        ("cat a.txt | sort | uniq", "one\ntwo\n", 0),
        ("false || echo b && echo c", "b\nc\n", 0),
        ("true || echo b && echo c", "c\n", 0),
        ("false && echo b || echo c", "c\n", 0),
        ("false && echo b; echo c; false", "c\n", 1),
        ("false | true", "", 0),
        ("true | false", "", 1),
        ("yes | head -n 2", "y\ny\n", 0),
        ("echo 'a  b' \"c;d\" e\\ f '*'", "a  b c;d e f *\n", 0),
    ] {
        let printed = output(&tool, command).await;
        assert_eq!((&printed["stdout"], &printed["exit_code"]), (&json!(stdout), &json!(code)), "{command}");
    }
}

#[tokio::test]
async fn nothing_runs_when_one_of_the_programs_is_missing() {
    let folder = Folder::new();
    let tool = trusting(&folder.root(), &["touch", "no-such-program"], |_| ()).await;
    let error = run(&tool, "touch marker; no-such-program").await.error();
    assert!(
        error.contains("`no-such-program` is not installed in /usr/local/bin, /usr/bin, /bin"),
        "{error}"
    );
    assert!(!folder.root().join("marker").exists());
}

#[tokio::test]
async fn programs_come_from_the_system_and_never_from_the_project() {
    let folder = Folder::new();
    folder.file("ls", "#!/bin/sh\ntouch marker\n");
    let path = folder.root().join("ls");
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let tool = read_only(&folder.root()).await;
    assert_eq!(output(&tool, "ls").await["stdout"], "ls\n");
    assert!(!folder.root().join("marker").exists());
}

#[tokio::test]
async fn programs_see_a_fixed_environment() {
    let folder = Folder::new();
    // The test itself runs with `PATH`, `HOME` and many others; none may be inherited.
    assert!(std::env::var("PATH").is_ok() && std::env::vars().count() > 4);
    let tool = trusting(&folder.root(), &["env"], |settings| {
        settings.environment.insert("TZ".into(), "UTC".into());
    })
    .await;
    let printed = output(&tool, "env").await;
    let names: Vec<&str> =
        printed["stdout"].as_str().unwrap().lines().map(|line| line.split('=').next().unwrap()).collect();
    let mut names = names;
    names.sort_unstable();
    assert_eq!(names, ["LANG", "LLM_DO_CHILD", "PATH", "TERM", "TZ"]);
}

async fn stopped_in_time(folder: &Folder, script: &str, mark: &str) {
    let tool = trusting(&folder.root(), &["bash"], |_| ()).await;
    folder.file("script", script);
    let start = Instant::now();
    let reply =
        TestCall::new().run(tool, json!({"command": format!("bash script {mark}"), "timeout": 1})).await;
    let failure = reply.reply().clone().unwrap_err().into_failure();
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(failure.kind, FailureKind::TimedOut);
    assert!(failure.message.contains("took longer than 1 s"), "{failure}");
    assert_none_left(mark);
}

#[tokio::test]
async fn hung_forking_and_stubborn_programs_end_with_all_that_they_started() {
    let folder = Folder::new();
    for (name, script) in [
        ("hung", "sleep 1000"),
        ("deaf", "trap '' TERM INT HUP\nwhile :; do sleep 1; done"),
        ("fork", "for i in 1 2 3; do bash -c 'sleep 1000; :' $1 & done\nwait"),
        (
            "mark-daemon-7254",
            "setsid bash -c 'sleep 1000; :' $1 &\n(setsid setsid bash -c 'sleep 1000; :' $1 &)\nsleep 1000",
        ),
        ("busy", "while :; do :; done"),
    ] {
        stopped_in_time(&folder, script, &mark(name)).await;
    }
}

#[tokio::test]
async fn what_a_program_leaves_behind_ends_with_it() {
    let folder = Folder::new();
    let tool = trusting(&folder.root(), &["bash"], |_| ()).await;
    folder.file(
        "script",
        "bash -c 'sleep 1000; :' $1 &\nsetsid bash -c 'sleep 1000; :' $1 &\nsleep 0.2; echo done",
    );
    let (mark, start) = (mark("left"), Instant::now());
    assert_eq!(output(&tool, &format!("bash script {mark}")).await["stdout"], "done\n");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_none_left(&mark);
}

#[tokio::test]
async fn cancelling_or_dropping_a_call_kills_its_programs_at_once() {
    let folder = Folder::new();
    let tool = trusting(&folder.root(), &["bash"], |_| ()).await;
    folder.file("script", "setsid bash -c 'sleep 1000; :' $1 &\nsleep 1000");
    let (cancelled, dropped_mark) = (mark("cancelled"), mark("dropped"));
    let token = CancellationToken::new();
    let call = TestCall::new().cancelled_by(token.clone());
    let running =
        tokio::spawn(call.run(tool.clone(), json!({"command": format!("bash script {cancelled}")})));
    while processes_with(&cancelled) < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let start = Instant::now();
    token.cancel();
    let error = running.await.unwrap().error();
    assert!(
        error.contains("cancelled") && start.elapsed() < Duration::from_secs(1),
        "{error} {:?}",
        start.elapsed()
    );
    assert_none_left(&cancelled);

    let dropped =
        tokio::spawn(TestCall::new().run(tool, json!({"command": format!("bash script {dropped_mark}")})));
    while processes_with(&dropped_mark) < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    dropped.abort();
    assert!(dropped.await.is_err());
    assert_none_left(&dropped_mark);
}

#[tokio::test]
async fn a_command_that_a_person_cancels_is_killed_and_its_agent_goes_on() {
    let (folder, word) = (Folder::new(), mark("one-of-two"));
    folder.file("script", "sleep 1000");
    let runtime = TestProject::new()
        .tool(trusting(&folder.root(), &["bash", "echo"], |_| ()).await)
        .agent(AgentSpec::new("main", "You run commands.").tool("shell"))
        .model_replies([
            asks_all([
                ("shell", json!({"command": format!("bash script {word}")})),
                ("shell", json!({"command": "echo beside"})),
            ]),
            says("went on"),
        ])
        .build();
    let run = runtime.run("main", "go").start();
    while processes_with(&word) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(runtime.cancel_call(run.id(), &Key::from("1/t1/tool/0")));
    let run = TestRun::of(run.await);
    assert_eq!(run.answer().as_ref(), "went on");
    let results = run.tool_results();
    assert!(results[0].starts_with("the call of `shell` was cancelled by a person"), "{results:?}");
    assert!(results[1].contains("beside"), "{results:?}");
    assert_none_left(&word);
}

fn resident_kilobytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn output_without_end_is_cut_and_memory_stays_small() {
    own_process!();
    let folder = Folder::new();
    let tool = trusting(&folder.root(), &["yes", "head"], |settings| settings.max_output_bytes = 1_000).await;
    let before = resident_kilobytes();
    let printed = output(&tool, "yes | head -c 200000000").await;
    assert_eq!((&printed["truncated"], &printed["stdout_bytes"]), (&json!(true), &json!(200_000_000)));
    let stdout = printed["stdout"].as_str().unwrap();
    assert!(
        stdout.contains("[... 199999000 of 200000000 bytes left out ...]") && stdout.len() < 1_100,
        "{stdout}"
    );

    let start = Instant::now();
    let endless = TestCall::new().run(tool, json!({"command": "yes", "timeout": 1})).await;
    assert!(endless.error().contains("took longer than 1 s"));
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    let said: usize = endless.remarks().iter().map(|remark| format!("{remark:?}").len()).sum();
    assert!(said < 1_000_000, "{said} bytes of progress");
    assert!(resident_kilobytes() < before + 32 * 1024);
}

#[tokio::test]
async fn output_is_seen_while_it_is_printed_and_need_not_be_text() {
    let folder = Folder::new();
    let tool = trusting(&folder.root(), &["printf"], |_| ()).await;
    let reply = run(&tool, r"printf 'a\377\303\274b'").await;
    assert_eq!(reply.reply().as_ref().unwrap().to_value()["stdout"], "a\u{fffd}\u{fc}b");
    assert!(reply.remarks().contains(&Remark::Progress("a\u{fffd}\u{fc}b".into())), "{:?}", reply.remarks());
}
