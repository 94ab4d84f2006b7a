//! What stdout carries while an answer arrives, and if it never ends.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Ran, Sandbox};

/// A run whose stdout and stderr are pipes.
fn start(sandbox: &Sandbox, arguments: &[&str]) -> Child {
    let mut command = sandbox.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Reads stdout until it holds a text.
fn read_until(child: &mut Child, expected: &str) -> String {
    let stdout = child.stdout.as_mut().unwrap();
    let mut read = Vec::new();
    while !read.ends_with(expected.as_bytes()) {
        let mut byte = [0];
        let text = String::from_utf8_lossy(&read).into_owned();
        assert_eq!(stdout.read(&mut byte).unwrap(), 1, "`{expected}` is not in `{text}`");
        read.push(byte[0]);
    }
    String::from_utf8(read).unwrap()
}

/// Reads what is left after `read`, and waits for the end.
fn end(mut child: Child, read: String) -> Ran {
    let mut stdout = read;
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    let output = child.wait_with_output().unwrap();
    Ran { stdout, ..Ran::from(output) }
}

fn send(child: &Child, signal: &str) {
    let sent = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// An agent whose model says a few words, then nothing for a long time.
fn slow() -> Sandbox {
    Sandbox::scripted("- say: 'begin never'\n  pace: 60s\n")
}

/// An agent with a tool that it calls after some words.
fn with_tool() -> Sandbox {
    Sandbox::asking().file(
        "script.yaml",
        "mode: by_turn\nreplies:\n  - say: First I ask.\n    ask: {helper: {input: may I}}\n  - say: the end\n",
    )
}

#[test]
fn a_line_of_stderr_begins_on_its_own_if_both_go_to_the_same_file() {
    let sandbox = Sandbox::scripted("- say: The color is a rainbow.\n");
    let file = std::fs::File::create(sandbox.path("all.txt")).unwrap();
    let mut command = sandbox.command(&["run", ".", "hello", "-v"]);
    let status = command.stdout(file.try_clone().unwrap()).stderr(file).status().unwrap();
    assert!(status.success());
    let text = std::fs::read_to_string(sandbox.path("all.txt")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.contains(&"The color is a rainbow."), "{text}");
    assert!(lines.iter().any(|line| line.starts_with("[main] -> The color")), "{text}");
    assert!(!text.ends_with("\n\n"), "{text}");
}

#[test]
fn the_answer_of_an_agent_without_tools_streams_through_a_pipe() {
    let sandbox = slow();
    let mut child = start(&sandbox, &["run", ".", "hello"]);
    let begun = Instant::now();
    let read = read_until(&mut child, "begin");
    assert!(begun.elapsed() < Duration::from_secs(30), "the text came at the end");
    send(&child, "-INT");
    let ran = end(child, read).ended(130).told("notice: the answer on stdout is incomplete");
    assert!(ran.stdout.starts_with("begin") && ran.stdout.ends_with('\n'), "{ran:?}");
}

#[test]
fn a_streamed_answer_is_the_same_text_as_before_with_one_line_end() {
    for text in ["one", "one\\n", "one\\n\\n", "", "ä 🦀\\nb", "\\n"] {
        let sandbox = Sandbox::scripted(&format!("- say: \"{text}\"\n"));
        let whole = sandbox.run(&["run", ".", "x", "--output", "json"]).ended(0).json();
        let whole = whole["output"].as_str().unwrap().to_owned();
        let expected = if whole.ends_with('\n') { whole } else { whole + "\n" };
        sandbox.run(&["run", ".", "x"]).ended(0).said(&expected);
        sandbox.run(&["run", ".", "x", "--plain"]).ended(0).said(&expected);
    }
}

#[test]
fn an_agent_with_tools_prints_only_its_answer_unless_all_is_asked_for() {
    with_tool().run(&["run", ".", "x", "--approve-all"]).ended(0).said("the end\n");
    let all = with_tool().run(&["run", ".", "x", "--approve-all", "--stream"]).ended(0);
    all.said("First I ask.\nthe end\n");
    let plain = with_tool().run(&["run", ".", "x", "--approve-all", "--stream", "--plain"]).ended(0);
    plain.said("First I ask.\nthe end\n");
}

#[test]
fn a_structured_answer_is_one_value_even_if_all_is_streamed() {
    let agent = "---\nname: main\nmodel: script:script.yaml\noutput_schema: {type: object, required: [n], \
        properties: {n: {type: integer}}}\n---\nCount.\n";
    let sandbox = Sandbox::new()
        .file("main.agent", agent)
        .file("script.yaml", "mode: by_turn\nreplies: [{say: many}, {say: '{ \"n\": 1 }'}]\n");
    for flags in [&[][..], &["--stream"]] {
        sandbox.run(&[&["run", ".", "x"], flags].concat()).ended(0).said("{\"n\":1}\n");
    }
}

#[test]
fn a_restarted_attempt_doubles_no_text() {
    let resumed = Sandbox::scripted("- {cut: 'one two '}\n- {say: one two three}\n");
    let ran = resumed.run(&["run", ".", "x"]).ended(0).said("one two three\n");
    ran.told("repeats the text on stdout, so only the rest follows");
    let other = Sandbox::scripted("- {cut: 'one two '}\n- {say: one too many}\n");
    let ran = other.run(&["run", ".", "x"]).ended(0).said("one two \none too many\n");
    ran.told("differs from the text on stdout, so it follows as a whole");
}

#[test]
fn a_partial_answer_survives_signals_and_the_timeout() {
    let sandbox = slow();
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let mut child = start(&sandbox, &["run", ".", "x", "--output", "jsonl"]);
        let read = read_until(&mut child, "\"text_delta\"");
        send(&child, signal);
        let ran = end(child, read).ended(code);
        let last = ran.lines().pop().unwrap();
        assert_eq!(last["status"], "interrupted", "{signal}: {last}");
        assert!(last["partial"].as_str().unwrap().starts_with("begin"), "{signal}: {last}");
        assert!(last["output"].is_null(), "{last}");
    }
    let timed = sandbox.run(&["run", ".", "x", "--timeout", "2", "--output", "json"]).ended(124).json();
    assert!(timed["partial"].as_str().unwrap().starts_with("begin"), "{timed}");
    // The words of an agent with tools reach stdout too, once it is clear that there is no more.
    let tools = with_tool().file("script.yaml", "- say: 'begin never'\n  pace: 60s\n");
    let ran = tools.run(&["run", ".", "x", "--timeout", "2"]).ended(124);
    assert!(ran.stdout.starts_with("begin") && ran.stdout.ends_with('\n'), "{ran:?}");
    ran.told("notice: the answer on stdout is incomplete");
}

#[test]
fn an_answer_that_broke_off_for_good_is_kept() {
    let sandbox = Sandbox::scripted("- {cut: 'one two '}\n");
    let set = ["--set", "runtime.model_attempts=1"];
    let ran = sandbox.run(&[&["run", ".", "x"][..], &set].concat()).ended(3).said("one two \n");
    ran.told("notice: the answer on stdout is incomplete");
    let object = sandbox.run(&[&["run", ".", "x", "--output", "json"][..], &set].concat()).ended(3).json();
    assert_eq!(object["partial"], "one two ");
}

#[test]
fn a_reader_that_goes_away_ends_a_streamed_run() {
    let sandbox =
        Sandbox::scripted("- say: \"one\\ntwo three four five six seven eight nine ten\"\n  pace: 100ms\n");
    let mut child = start(&sandbox, &["run", ".", "x"]);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "one\n");
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(141), ""));
}

#[test]
fn a_slow_reader_gets_the_whole_answer() {
    // More pieces than are kept for readers, and more bytes than a pipe holds.
    let text: String = (0..30_000).map(|number| format!("w{number} ")).collect();
    let sandbox = Sandbox::scripted(&format!("- say: '{text}'\n"));
    let child = start(&sandbox, &["run", ".", "x"]);
    std::thread::sleep(Duration::from_millis(1_500));
    let ran = end(child, String::new()).ended(0);
    assert!(ran.stdout == format!("{text}\n"), "{} of {} bytes", ran.stdout.len(), text.len() + 1);
}

#[test]
fn every_turn_of_a_chat_streams_its_own_answer() {
    let sandbox = Sandbox::scripted("mode: by_turn\nreplies: [{say: one}, {say: one}]\n");
    sandbox.run_with(&["chat", "."], b"a\nb\n").ended(0).said("one\none\n");
    let lines = sandbox.run_with(&["chat", ".", "--output", "jsonl"], b"a\nb\n").ended(0).lines();
    assert_eq!(lines.iter().filter(|line| line["type"] == "result").count(), 2);
}
