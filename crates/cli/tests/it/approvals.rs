//! Approvals by a program: JSON lines over a socket or descriptors.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Ran, Sandbox};

/// Runs with a program that answers each request in turn; returns the requests too.
fn answered(
    sandbox: &Sandbox,
    arguments: &[&str],
    answer: impl Fn(&Value) -> Option<Value>,
) -> (Ran, Vec<Value>) {
    let socket = sandbox.path("approvals.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let from = socket.to_string_lossy().into_owned();
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--approvals-from", &from]).collect();
    let child = sandbox.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (stream, _) = listener.accept().unwrap();
    let requests = serve(&stream, answer);
    drop(stream);
    (child.wait_with_output().unwrap().into(), requests)
}

fn serve(stream: &UnixStream, answer: impl Fn(&Value) -> Option<Value>) -> Vec<Value> {
    let mut requests = Vec::new();
    for line in BufReader::new(stream).lines() {
        let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let reply = answer(&request);
        requests.push(request.clone());
        let Some(mut reply) = reply else { break };
        if reply.get("id").is_none() {
            reply["id"] = request["id"].clone();
        }
        writeln!(&*stream, "{reply}").unwrap();
    }
    requests
}

#[test]
fn a_program_allows_once_with_everything_before_its_eyes() {
    let sandbox = Sandbox::asking();
    let (ran, requests) = answered(&sandbox, &["run", ".", "x", "-v"], |_| Some(json!({"decision": "once"})));
    ran.ended(0).said("the end\n").told("[main > helper] -> may I");
    let [request] = &requests[..] else { panic!("{requests:?}") };
    assert_eq!(request["type"], "approval_requested");
    assert_eq!(request["chain"], "main > helper");
    assert_eq!(request["tool"], "helper");
    assert_eq!(request["arguments"], json!({"input": "may I"}));
}

#[test]
fn a_program_denies_with_words_edits_and_stops() {
    let deny = json!({"decision": "deny", "message": "not today"});
    let (ran, _) = answered(&Sandbox::asking(), &["run", ".", "x", "-v"], |_| Some(deny.clone()));
    ran.ended(0).said("the end\n").told("denied: not today");
    let edit = json!({"decision": "edit", "arguments": {"input": "something else"}});
    let (ran, _) = answered(&Sandbox::asking(), &["run", ".", "x", "-v"], |_| Some(edit.clone()));
    ran.ended(0).told("-> note: a person changed the arguments of this call").told("something else");
    let stop = json!({"decision": "stop"});
    let (ran, _) = answered(&Sandbox::asking(), &["run", ".", "x"], |_| Some(stop.clone()));
    ran.ended(130).said("").told("stopped at the approval of `helper`");
}

#[test]
fn edited_arguments_that_do_not_fit_are_asked_about_again() {
    let sandbox = Sandbox::asking();
    let (ran, requests) = answered(&sandbox, &["run", ".", "x"], |request| {
        let again = request.get("edit_problem").is_some();
        let arguments = if again { json!({"input": "good"}) } else { json!({"inptu": 1}) };
        Some(json!({"decision": "edit", "arguments": arguments}))
    });
    ran.ended(0);
    assert_eq!(requests.len(), 2);
    assert!(requests[1]["edit_problem"].as_str().unwrap().contains("inptu"), "{requests:?}");
}

#[test]
fn a_program_that_goes_away_denies() {
    let (ran, requests) = answered(&Sandbox::asking(), &["run", ".", "x", "-v"], |_| None);
    ran.ended(5).said("the end\n").told("denied").told("nobody could be asked");
    assert_eq!(requests.len(), 1);
}

#[test]
fn an_answer_that_cannot_be_read_denies_and_is_reported_to_the_program() {
    for (rest, problem) in [
        (json!({"decision": "once", "note": "x"}), "unknown field `note`"),
        (json!({"decision": "yes"}), "unknown variant `yes`"),
        (json!({"decision": "edit"}), "`edit` without `arguments`"),
        (json!({"decision": "session", "scope": "everything"}), "unknown variant `everything`"),
        (json!({}), "missing field `decision`"),
    ] {
        let is_report = |message: &Value| message["type"] == "answer_refused";
        let (ran, messages) = answered(&Sandbox::asking(), &["run", ".", "x", "-v"], |message| {
            (!is_report(message)).then(|| rest.clone())
        });
        let [request, report] = &messages[..] else { panic!("{messages:?}") };
        assert_eq!((&report["id"], &report["denied"]), (&request["id"], &json!(true)), "{report}");
        assert!(report["error"].as_str().unwrap().contains(problem), "{report}");
        ran.ended(5).said("the end\n").told("its answer could not be read").told(problem);
    }
}

#[test]
fn lines_about_no_request_are_reported_and_answer_nothing() {
    let sandbox = Sandbox::asking();
    let socket = sandbox.path("approvals.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let from = socket.to_string_lossy().into_owned();
    let arguments = ["run", ".", "x", "--approvals-from", &from];
    let child = sandbox.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (stream, _) = listener.accept().unwrap();
    let mut lines = BufReader::new(&stream).lines();
    let mut read = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let request = read();
    let noise: [&[u8]; 4] = [b"no json", br#"{"id": "other", "decision": "once"}"#, br#"{"id": 1}"#, b"\xff"];
    for line in noise {
        (&stream).write_all(&[line, b"\n"].concat()).unwrap();
        let report = read();
        assert_eq!(
            (&report["type"], &report["denied"]),
            (&json!("answer_refused"), &json!(false)),
            "{report}"
        );
        assert_eq!(report["open"], json!([request["id"]]), "{report}");
    }
    writeln!(&stream, "{}", json!({"id": request["id"], "decision": "once"})).unwrap();
    let ran: Ran = child.wait_with_output().unwrap().into();
    ran.ended(0).told("no open approval has the id `other`").told("no readable `id`");
}

#[test]
fn a_program_that_only_writes_noise_denies() {
    let written = std::cell::Cell::new(0);
    let (ran, messages) = answered(&Sandbox::asking(), &["run", ".", "x", "-v"], |_| {
        written.set(written.get() + 1);
        (written.get() <= 32).then(|| json!({"id": "x"}))
    });
    ran.ended(5).said("the end\n").told("32 lines in a row");
    assert_eq!(messages.len(), 33, "the request and a report for each line");
}

#[test]
fn several_requests_are_open_at_once_and_answered_in_any_order() {
    let sandbox = Sandbox::asking().file(
        "script.yaml",
        "mode: by_turn\nreplies:\n  - ask:\n      - {name: helper, arguments: {input: first}}\n      \
         - {name: helper, arguments: {input: second}}\n  - say: the end\n",
    );
    let socket = sandbox.path("approvals.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let from = socket.to_string_lossy().into_owned();
    let arguments = ["run", ".", "x", "--output", "jsonl", "--approvals-from", &from];
    let child = sandbox.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (stream, _) = listener.accept().unwrap();
    let mut lines = BufReader::new(&stream).lines();
    let mut requests: Vec<Value> =
        (0..2).map(|_| serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()).collect();
    requests.reverse();
    for request in &requests {
        writeln!(&stream, "{}", json!({"id": request["id"], "decision": "once"})).unwrap();
    }
    let ran: Ran = child.wait_with_output().unwrap().into();
    let finished: Vec<Value> = ran
        .ended(0)
        .lines()
        .into_iter()
        .filter(|event| event["type"] == "call_finished" && event["name"] == "helper")
        .collect();
    assert_eq!(finished.len(), 2);
    assert!(finished.iter().all(|event| event.get("output").is_some()), "{finished:?}");
}

#[test]
fn a_grant_for_the_session_covers_what_it_says() {
    let sandbox = Sandbox::asking().file(
        "script.yaml",
        "mode: by_turn\nreplies:\n  - ask: {helper: {input: one}}\n  - ask: {helper: {input: two}}\n  - say: the end\n",
    );
    let grant = json!({"decision": "session", "scope": "tool"});
    let (ran, requests) = answered(&sandbox, &["run", ".", "x"], |_| Some(grant.clone()));
    ran.ended(0).said("the end\n");
    assert_eq!(requests.len(), 1, "the second call is covered");
}

#[test]
fn a_channel_that_cannot_be_opened_is_said_at_once() {
    let sandbox = Sandbox::asking();
    sandbox
        .run(&["run", ".", "x", "--approvals-from", "nowhere.sock"])
        .ended(2)
        .said("")
        .told("cannot be opened");
    sandbox.run(&["run", ".", "x", "--approvals-from", "1"]).ended(2).told("stdin, stdout and stderr");
    sandbox.run(&["run", ".", "x", "--approvals-from", "987"]).ended(2).told("descriptor 987 is not open");
}

#[test]
fn descriptors_work_like_a_socket() {
    let sandbox = Sandbox::asking();
    let script = "exec 5<>requests 6<>answers; \"$LLM_DO\" run . x --approvals-from 6,5 & read -r line <requests; \
         id=$(printf '%s' \"$line\" | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/'); \
         printf '{\"id\":\"%s\",\"decision\":\"once\"}\\n' \"$id\" >&6; wait $!";
    for pipe in ["requests", "answers"] {
        assert!(std::process::Command::new("mkfifo").arg(sandbox.path(pipe)).status().unwrap().success());
    }
    let mut command = std::process::Command::new("sh");
    let output = command
        .args(["-c", script])
        .env("LLM_DO", env!("CARGO_BIN_EXE_llm-do"))
        .current_dir(sandbox.root())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran::from(output).ended(0).said("the end\n");
}

/// A script that answers approvals, made from lines of shell.
fn approver(sandbox: &Sandbox, script: &str) -> String {
    let path = sandbox.path("approver.sh");
    std::fs::write(&path, script).unwrap();
    format!("sh {}", path.display())
}

/// Answers each request as it says, and leaves a file when its stdin ends.
fn answering(rest: &str) -> String {
    format!(
        "while read -r line; do\n  id=$(printf '%s' \"$line\" | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/')\n  \
         printf '{{\"id\": \"%s\", {rest}}}\\n' \"$id\"\ndone\necho done > ended\n"
    )
}

#[test]
fn a_program_is_started_asked_and_ended_with_the_run() {
    let sandbox = Sandbox::asking();
    let command = approver(&sandbox, &answering("\"decision\": \"once\""));
    let ran = sandbox.run(&["run", ".", "x", "-v", "--approve-with", &command]).ended(0);
    let ran = ran.said("the end\n").told("-> may I");
    assert!(!ran.stderr.contains("which answers approvals"), "its end is not a failure: {ran:#?}");
    assert!(sandbox.path("ended").exists(), "the end of its stdin is told to it");
    let command = approver(&sandbox, &answering("\"decision\": \"deny\", \"message\": \"not today\""));
    sandbox.run(&["run", ".", "x", "-v", "--approve-with", &command]).ended(0).told("denied: not today");
}

#[test]
fn the_failure_of_a_started_program_denies_with_its_message() {
    let sandbox = Sandbox::asking();
    for (script, message) in [
        ("echo 'the policy server is down' >&2\nexit 3\n", "exit status: 3: the policy server is down"),
        ("read -r line\necho first >&2\necho last >&2\nkill -9 $$\n", "signal: 9 (SIGKILL): last"),
        ("exit 0\n", "ended with exit status: 0"),
    ] {
        let command = approver(&sandbox, script);
        let ran =
            sandbox.run(&["run", ".", "x", "-v", "--approve-with", &command]).ended(5).said("the end\n");
        assert!(ran.stderr.contains("denied") && ran.stderr.contains(message), "{script}: {ran:#?}");
    }
    for (command, message) in
        [("/no/such/program", "cannot be started"), ("'", "is not a command"), ("", "is not a command")]
    {
        sandbox.run(&["run", ".", "x", "--approve-with", command]).ended(2).told(message);
    }
    sandbox
        .run(&["run", ".", "x", "--approve-with", "cat", "--approve", "all"])
        .ended(2)
        .told("cannot be used with");
}

#[test]
fn a_started_program_that_does_not_leave_is_ended() {
    let sandbox = Sandbox::asking();
    let stubborn = format!(
        "echo $$ > pid\n{}trap '' TERM\nwhile :; do sleep 0.1; done\n",
        answering("\"decision\": \"once\"")
    );
    let command = approver(&sandbox, &stubborn);
    let began = std::time::Instant::now();
    sandbox.run(&["run", ".", "x", "--approve-with", &command]).ended(0).said("the end\n");
    assert!(began.elapsed() < std::time::Duration::from_secs(20));
    let id = std::fs::read_to_string(sandbox.path("pid")).unwrap();
    let id = rustix::process::Pid::from_raw(id.trim().parse().unwrap()).unwrap();
    assert!(rustix::process::test_kill_process(id).is_err(), "it still runs");
}
