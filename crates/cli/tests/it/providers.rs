//! Providers through the binary: answers, failures, keys that stay secret, recordings.

use std::io::Write;
use std::time::{Duration, Instant};

use llm_do_testing::{MockProvider, MockResponse};
use serde_json::{Value, json};

use crate::support::{Ran, Sandbox};

pub const KEY: &str = "sk-canary-77aa12";

pub fn agent() -> Sandbox {
    Sandbox::new().file("main.agent", "---\nname: main\nmodel: openai-chat:small\n---\nAnswer.\n")
}

/// One streamed answer of Chat Completions.
pub fn says(text: &str) -> MockResponse {
    streams(&json!({"role": "assistant", "content": text}), "stop")
}

/// One streamed call of a tool.
pub fn asks(tool: &str, arguments: &Value) -> MockResponse {
    let function = json!({"name": tool, "arguments": arguments.to_string()});
    let call = json!({"index": 0, "id": format!("call-{tool}"), "type": "function", "function": function});
    streams(&json!({"role": "assistant", "tool_calls": [call]}), "tool_calls")
}

fn streams(message: &Value, stop: &str) -> MockResponse {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!("data: {}\n\n", json!({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}))
    };
    let usage = json!({"id": "c", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}});
    let first = chunk(message.clone(), Value::Null);
    let last = chunk(json!({}), stop.into());
    MockResponse::events(format!("{first}{last}data: {usage}\n\ndata: [DONE]\n\n"))
}

pub fn refuses(status: u16, message: &str) -> MockResponse {
    MockResponse::json(status, &json!({"error": {"message": message, "type": "error"}}))
}

/// Runs the binary beside a provider that answers so.
pub fn run_beside(sandbox: &Sandbox, responses: Vec<MockResponse>, arguments: &[&str]) -> (Ran, usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let provider = runtime.block_on(MockProvider::start(responses));
    let ran = asking(sandbox, &format!("{}/v1", provider.base_url()), Some(KEY), arguments);
    let requests = provider.requests().len();
    (ran, requests)
}

pub fn asking(sandbox: &Sandbox, address: &str, key: Option<&str>, arguments: &[&str]) -> Ran {
    let mut command = sandbox.command(arguments);
    for name in
        ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "OPENAI_API_KEY"]
    {
        command.env_remove(name);
    }
    command.env("OPENAI_BASE_URL", address).envs(key.map(|key| ("OPENAI_API_KEY", key)));
    command.output().unwrap().into()
}

#[test]
fn an_answer_of_a_provider_is_the_answer() {
    let (ran, requests) =
        run_beside(&agent(), vec![says("Good morning.")], &["run", ".", "hello", "--output", "json"]);
    let ran = ran.ended(0);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["output"], requests), (&json!("Good morning."), 1));
    assert_eq!(report["usage"]["input"], 7, "{report}");
}

#[test]
fn a_failure_that_passes_is_tried_again_and_said() {
    let responses = vec![refuses(503, "busy").header("retry-after-ms", "1"), says("There.")];
    let (ran, requests) = run_beside(&agent(), responses, &["run", ".", "hello", "-v"]);
    let ran = ran.ended(0);
    assert_eq!((ran.stdout.as_str(), requests), ("There.\n", 2));
    assert!(ran.stderr.contains("asking again in"), "{ran:#?}");
}

#[test]
fn a_key_is_shown_nowhere_even_where_the_provider_repeats_it() {
    for arguments in [&["run", ".", "hello", "-vvv"][..], &["run", ".", "hello", "--output", "jsonl"]] {
        let (ran, requests) = run_beside(&agent(), vec![refuses(401, &format!("bad key {KEY}"))], arguments);
        let ran = ran.ended(3);
        assert_eq!(requests, 1, "nothing is gained by asking again");
        assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{ran:#?}");
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains("bad key [removed]"), "{ran:#?}");
    }
}

#[test]
fn a_missing_key_is_named_when_a_call_needs_it_and_not_before() {
    let sandbox = agent();
    asking(&sandbox, "http://127.0.0.1:9/v1", None, &["check", "."]).ended(0);
    let ran = asking(&sandbox, "http://127.0.0.1:9/v1", None, &["run", ".", "hello"]).ended(3);
    assert!(ran.stderr.contains("`OPENAI_API_KEY` is not set"), "{ran:#?}");
}

#[test]
fn a_server_on_this_machine_that_is_not_there_is_asked_once() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let sandbox = Sandbox::new().file("main.agent", "---\nname: main\nmodel: ollama:small\n---\nAnswer.\n");
    let mut command = sandbox.command(&["run", ".", "hello", "-v"]);
    let ran: Ran = command.env("OLLAMA_HOST", free.to_string()).output().unwrap().into();
    let ran = ran
        .ended(3)
        .told(&format!("nothing listens at {free}; start Ollama (`ollama serve`), or set OLLAMA_HOST"));
    assert!(!ran.stderr.contains("asking again") && !ran.stderr.contains("attempts"), "{ran:#?}");
}

#[test]
fn a_server_without_tls_is_asked_once_and_the_variable_of_its_address_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    let sandbox = Sandbox::new().file("main.agent", "---\nname: main\nmodel: ollama:small\n---\nAnswer.\n");
    let mut command = sandbox.command(&["run", ".", "hello", "-v"]);
    let ran: Ran = command.env("OLLAMA_HOST", format!("https://{address}")).output().unwrap().into();
    let ran = ran
        .ended(3)
        .told(&format!("{address} does not speak TLS: use `http://` in its address (OLLAMA_HOST)"));
    assert!(!ran.stderr.contains("asking again"), "{ran:#?}");
    server.join().unwrap();
}

#[test]
fn a_recording_answers_without_network_and_key() {
    let sandbox = agent();
    let tape = ["run", ".", "hello", "--cassette", "tape.jsonl"];
    let (recorded, _) = run_beside(&sandbox, vec![says("Good morning.")], &tape);
    assert_eq!(recorded.ended(0).stdout, "Good morning.\n");
    let text = std::fs::read_to_string(sandbox.path("tape.jsonl")).unwrap();
    assert!(!text.contains(KEY), "{text}");

    let replayed = asking(&sandbox, "http://127.0.0.1:9/v1", None, &tape).ended(0);
    assert_eq!(replayed.stdout, "Good morning.\n");

    let other = ["run", ".", "good evening", "--cassette", "tape.jsonl"];
    let strict = asking(&sandbox, "http://127.0.0.1:9/v1", None, &other).ended(3);
    assert!(strict.stderr.contains("good evening") && strict.stderr.contains("hello"), "{strict:#?}");
    let lenient = [&other[..], &["--cassette-mode", "lenient"]].concat();
    let lenient = asking(&sandbox, "http://127.0.0.1:9/v1", None, &lenient).ended(0);
    assert_eq!(lenient.stdout, "Good morning.\n");
    assert!(lenient.stderr.contains("has no answer to this request"), "{lenient:#?}");
}

#[test]
fn a_recording_goes_on_when_its_run_is_resumed() {
    let sandbox = agent();
    let down = refuses(503, "busy").header("x-should-retry", "false");
    let tape = ["run", ".", "hello", "--cassette", "tape.jsonl"];
    run_beside(&sandbox, vec![down], &tape).0.ended(3);
    let resume = ["resume", "last", "--cassette", "tape.jsonl"];
    let (resumed, _) = run_beside(&sandbox, vec![says("Good morning.")], &resume);
    assert_eq!(resumed.ended(0).stdout, "Good morning.\n");
    let text = std::fs::read_to_string(sandbox.path("tape.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");

    // A run that replays it goes on with what comes next in it.
    asking(&sandbox, "http://127.0.0.1:9/v1", None, &tape).ended(3);
    let replayed = asking(&sandbox, "http://127.0.0.1:9/v1", None, &resume).ended(0);
    assert_eq!(replayed.stdout, "Good morning.\n");
}

#[test]
fn an_interrupt_ends_the_wait_before_another_attempt() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let busy = refuses(503, "busy").header("retry-after", "50");
    let provider = runtime.block_on(MockProvider::start(vec![busy]));
    let sandbox = agent();
    let mut command = sandbox.command(&["run", ".", "hello"]);
    command.env("OPENAI_BASE_URL", format!("{}/v1", provider.base_url())).env("OPENAI_API_KEY", KEY);
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    while provider.requests().is_empty() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let started = Instant::now();
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_recording_never_replaces_what_is_worth_more() {
    let sandbox = agent().file("diary.txt", "Dear diary\n");
    let diary = ["run", ".", "hello", "--cassette", "diary.txt", "--cassette-mode", "record"];
    let refused = asking(&sandbox, "http://127.0.0.1:9/v1", Some(KEY), &diary).ended(2);
    assert!(
        refused.stderr.contains("is not a cassette") && refused.stderr.contains("hint: "),
        "{refused:#?}"
    );
    assert_eq!(std::fs::read_to_string(sandbox.path("diary.txt")).unwrap(), "Dear diary\n");

    let again = ["run", ".", "hello", "--cassette", "tape.jsonl", "--cassette-mode", "record"];
    run_beside(&sandbox, vec![says("Good morning.")], &again).0.ended(0);
    let recorded = std::fs::read_to_string(sandbox.path("tape.jsonl")).unwrap();
    let (failed, _) = run_beside(&sandbox, vec![refuses(401, "bad key")], &again);
    let failed = failed.ended(3);
    assert!(failed.stderr.contains("is left as it was"), "{failed:#?}");
    assert_eq!(std::fs::read_to_string(sandbox.path("tape.jsonl")).unwrap(), recorded);
}
