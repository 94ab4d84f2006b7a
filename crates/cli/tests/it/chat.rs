//! `llm-do chat` over a pipe: a message per line.

use crate::support::Sandbox;

/// Says what it remembers.
fn remembering() -> Sandbox {
    Sandbox::scripted(
        "mode: by_turn\nreplies:\n  - say: first\n  - say: second\n  - say: third\n  - say: fourth\n",
    )
}

#[test]
fn every_line_is_a_turn_with_memory() {
    let ran = remembering().run_with(&["chat", "."], b"one\ntwo\n\nthree\n").ended(0);
    // A script by turn counts the turns of one conversation: three lines, one conversation.
    ran.said("first\nsecond\nthird\n");
}

#[test]
fn a_prompt_is_the_first_message() {
    remembering().run_with(&["chat", ".", "hello"], b"again\n").ended(0).said("first\nsecond\n");
    remembering().run_with(&["run", ".", "hello", "--chat"], b"again\n").ended(0).said("first\nsecond\n");
}

#[test]
fn commands_are_answered_on_stderr() {
    let ran =
        remembering().run_with(&["chat", "."], b"one\n/usage\n/grants\n/help\n/nonsense\n/quit\nnever\n");
    let ran = ran.ended(0).said("first\n").told("1 request,").told("nothing is allowed beyond single calls");
    ran.told("/revoke N").told("`/nonsense` is not a command");
}

#[test]
fn exit_and_quit_alone_leave() {
    for line in ["exit", "quit", " exit "] {
        let lines = format!("one\n{line}\ntwo\n");
        Sandbox::echo().run_with(&["chat"], lines.as_bytes()).ended(0).said("one\n");
    }
    Sandbox::echo().run_with(&["chat"], b"exit the room\n").ended(0).said("exit the room\n");
}

#[test]
fn a_misspelled_command_is_suggested_and_an_unrelated_one_is_not() {
    let ran = Sandbox::echo().run_with(&["chat"], b"/hlep\n/foo\n").ended(0).told("did you mean `/help`?");
    assert!(ran.stderr.contains("`/foo` is not a command; /help lists them"), "{ran:?}");
}

#[test]
fn the_model_is_shown_and_changed_and_never_reset() {
    let sandbox = Sandbox::scripted("mode: by_turn\nreplies:\n  - say: first\n  - say: second\n");
    let lines = b"/model\none\n/model test:echo\n/model\ntwo\n/model o3\n";
    let ran = sandbox.run_with(&["chat"], lines).ended(2).said("first\ntwo\n");
    let ran = ran.told("the model is `script:script.yaml`").told("`test:echo` answers from now on");
    ran.told("the model is `test:echo`").told("did you mean `openai:o3` or `azure:o3`?");
}

#[test]
fn a_chat_of_lines_goes_back_forks_begins_anew_and_saves() {
    let sandbox = remembering();
    let lines = b"one\ntwo\n/goto\n/goto 2\n/save talk.md\n/fork\n/fork 9\n/goto x\n/clear\nanew\n";
    // After /clear the script counts from its first turn again.
    let ran = sandbox.run_with(&["chat", "."], lines).ended(0).said("first\nsecond\nfirst\n");
    let ran = ran.told("1  one").told("2  two").told("back to before message 2").told("you wrote:\ntwo");
    let ran = ran.told("messages written to `talk.md`").told("this is conversation 2 of 2");
    ran.told("conversation 9 does not exist").told("write `/goto N`").told("a new conversation begins");
    let saved = std::fs::read_to_string(sandbox.path("talk.md")).unwrap();
    assert!(saved.contains("## You\n\none") && !saved.contains("two"), "{saved}");
}

#[test]
fn a_call_stands_beside_the_conversation() {
    let ran =
        Sandbox::asking().run_with(&["chat", "."], b"/call helper {\"input\": \"aside\"}\n/call helper {\n");
    ran.ended(0).said("aside\n").told("write `/call NAME");
}

#[test]
fn a_message_may_go_on_in_the_next_line_and_bytes_that_are_no_text_are_refused() {
    let ran = Sandbox::echo().run_with(&["chat", "."], b"one \\\ntwo\n\xff\nthree\n").ended(0);
    ran.said("one \ntwo\nthree\n").told("not UTF-8");
}

#[test]
fn the_exit_is_that_of_the_last_turn() {
    let sandbox = Sandbox::scripted(
        "mode: by_turn\nreplies:\n  - say: fine\n  - fail: {kind: server, message: down}\n",
    );
    sandbox.run_with(&["chat", "."], b"one\ntwo\n").ended(3).said("fine\n").told("down");
}

#[test]
fn events_of_all_turns_come_as_lines() {
    let ran = remembering().run_with(&["chat", ".", "--output", "jsonl"], b"one\ntwo\n").ended(0);
    let starts = ran.lines().iter().filter(|event| event["type"] == "run_started").count();
    assert_eq!(starts, 2);
}

#[test]
fn a_line_of_json_is_text_for_an_agent_that_takes_a_text() {
    let sandbox = Sandbox::echo().file("secret.txt", "hunter2");
    let line = r#"{"input": "x", "attachments": ["secret.txt"]}"#;
    let input = format!("{line}\n{{\"input\": \"y\"}}\n");
    sandbox.run_with(&["chat", "."], input.as_bytes()).ended(0).said(&input);
    sandbox.run_with(&["chat", ".", line], b"").ended(0).said(&format!("{line}\n"));
}

#[test]
fn a_line_of_json_is_a_typed_input_and_attaches_no_files() {
    let agent = "---\nname: main\nmodel: test:echo\ninput_schema: {type: object, required: [topic], \
        properties: {topic: {type: string}}}\nprompt: 'about {{ topic }}'\n---\nPlan.\n";
    let sandbox = Sandbox::new().file("main.agent", agent).file("secret.txt", "hunter2");
    let typed = b"{\"topic\": \"Rust\"}\n";
    sandbox.run_with(&["chat", "."], typed).ended(0).said("about Rust\n");
    sandbox.run_with(&["chat", ".", r#"{"topic": "Go"}"#], typed).ended(0).said("about Go\nabout Rust\n");
    let attaching = r#"{"topic": "x", "attachments": ["secret.txt"]}"#;
    let ran = sandbox.run_with(&["chat", "."], attaching.as_bytes()).ended(2).said("");
    ran.told("names files to attach").told("--attach");
    sandbox.run_with(&["chat", ".", attaching], b"").ended(2).said("").told("names files to attach");
}

#[test]
fn a_call_in_a_line_attaches_no_files() {
    let sandbox = Sandbox::asking().file("secret.txt", "hunter2");
    let line = r#"/call helper {"input": "aside", "attachments": ["secret.txt"]}"#;
    let ran = sandbox.run_with(&["chat", "."], line.as_bytes()).ended(2).said("");
    ran.told("names files to attach").told("llm-do call");
}

#[test]
fn a_run_that_is_a_chat_takes_a_message_from_each_line() {
    let ran = Sandbox::echo().run_with(&["run", ".", "--chat"], b"one\ntwo\n").ended(0);
    assert_eq!(ran.stdout, "one\ntwo\n");
}
