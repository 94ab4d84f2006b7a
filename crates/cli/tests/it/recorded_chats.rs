//! Chats that go on in another process: listed, searched, continued, copied and forgotten.

use std::io::Write;
use std::process::{Child, Stdio};
use std::time::Duration;

use llm_do_core::RunId;
use llm_do_record::Reader;
use llm_do_runtime::unknown_calls;
use llm_do_testing::Chance;
use serde_json::{Value, json};

use crate::record_kills::{kill, kills, log, pay, shell};
use crate::records::{background, slow, wait_for};
use crate::support::Sandbox;
use crate::terminal::{at_terminal, ended as text_of};
use crate::tui::support::{at_rest, leave, say, start};

fn echoing() -> Sandbox {
    Sandbox::new()
        .file("main.agent", "---\nname: main\nmodel: test:echo\n---\nHelp.\n")
        .file("project.yaml", "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\n")
}

fn chats(sandbox: &Sandbox, more: &[&str]) -> Vec<Value> {
    let arguments = [&["chats", "--output", "json"], more].concat();
    sandbox.run(&arguments).ended(0).json().as_array().unwrap().clone()
}

fn id(chat: &Value) -> &str {
    &chat["session_id"].as_str().unwrap()[..8]
}

/// Starts a chat, and kills it when its file is written, so that it is never told that the file was.
fn killed(sandbox: &Sandbox) {
    let mut child = background(sandbox, &["chat", ".", "go", "-a", "all"]);
    wait_for(|| sandbox.path("a.txt").exists());
    // The result is recorded within moments; the model still thinks.
    std::thread::sleep(Duration::from_millis(500));
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(sandbox.path("a.txt")).unwrap();
}

#[test]
fn a_chat_goes_on_where_it_was_left() {
    let sandbox = echoing();
    sandbox.run(&["chat", ".", "plant a tree"]).ended(0).said("plant a tree\n");
    let again = sandbox.run(&["chat", ".", "--continue", "-p", "and water it"]).ended(0);
    assert_eq!(again.stdout.trim(), "and water it");
    for text in ["plant a tree (1 turn)", "> plant a tree"] {
        assert!(again.stderr.contains(text), "{text}: {again:?}");
    }
    // Without a path, in the project; the beginning of the id names it from anywhere.
    let listed = chats(&sandbox, &[]);
    assert_eq!((listed.len(), &listed[0]["turns"]), (1, &2.into()));
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = sandbox.command(&["chat", "--resume", id(&listed[0]), "is it green?"]);
    let ran = command.current_dir(elsewhere.path()).stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout).trim(), "is it green?", "{ran:?}");
    assert!(String::from_utf8_lossy(&ran.stderr).contains("(2 turns)"), "{ran:?}");

    let shown = sandbox.run(&["chats", "last"]).ended(0).stdout;
    for text in ["1> plant a tree", "2> and water it", "3> is it green?", "state    closed"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let turn = sandbox.run(&["resume", "last"]).ended(2);
    assert!(turn.stderr.contains(&format!("llm-do chat --resume {}", id(&listed[0]))), "{turn:?}");
}

#[test]
fn chats_are_searched_copied_and_forgotten() {
    let sandbox = echoing();
    sandbox.run(&["chat", ".", "Plant a TREE"]).ended(0);
    sandbox.run(&["chat", ".", "-c", "-p", "water it"]).ended(0);
    sandbox.run(&["chat", ".", "cook a soup"]).ended(0);
    assert_eq!(chats(&sandbox, &[]).len(), 2);
    let found = chats(&sandbox, &["--search", "tree"]);
    assert_eq!((found.len(), &found[0]["title"]), (1, &"Plant a TREE".into()));
    assert_eq!(chats(&sandbox, &["--project", "."]).len(), 2);
    assert_eq!(chats(&sandbox, &["--project", "/"]).len(), 0);
    assert_eq!(sandbox.run(&["chats", "--search", "nobody"]).ended(0).stderr, "no chats\n");

    let garden = id(&found[0]).to_owned();
    let copied = sandbox.run(&["chat", "--fork", &garden, "--at", "1", "-p", "cut it"]).ended(0);
    assert!(copied.stderr.contains(&format!("a copy of chat {garden}: Plant a TREE (1 turn)")), "{copied:?}");
    let shown = sandbox.run(&["chats", "last"]).ended(0).stdout;
    assert!(shown.contains("1> Plant a TREE") && shown.contains("3> cut it"), "{shown}");
    assert!(!shown.contains("water"), "{shown}");
    assert_eq!(chats(&sandbox, &["--search", "tree"]).len(), 2);
    let refused = sandbox.run(&["chat", "--fork", &garden, "--at", "7", "-p", "x"]).ended(2);
    assert!(refused.stderr.contains("has no turn 7: there are 1, 2"), "{refused:?}");

    sandbox.run(&["chats", "forget", &garden]).ended(0);
    assert_eq!(chats(&sandbox, &["--search", "water"]).len(), 0);
    let gone = sandbox.run(&["chat", "--resume", &garden]).ended(2);
    assert!(gone.stderr.contains("no recorded chat begins with"), "{gone:?}");
    let record = std::fs::read(sandbox.state().join("llm-do/record.db")).unwrap();
    assert!(!record.windows(8).any(|part| part == b"water it"));
}

#[test]
fn a_message_that_was_cut_off_is_answered_later_without_repeating_what_was_done() {
    let sandbox = slow();
    killed(&sandbox);
    let listed = chats(&sandbox, &[]);
    assert_eq!((&listed[0]["state"], &listed[0]["turns"]), (&"cut_off".into(), &1.into()));
    let resumed = sandbox.run(&["chat", ".", "-c", "-p", "on", "-a", "all"]).ended(0);
    assert_eq!(resumed.stdout, "written\nmore\n");
    assert!(!sandbox.path("a.txt").exists(), "the file was written again");
    assert_eq!(&chats(&sandbox, &[])[0]["state"], "closed");
    let shown = sandbox.run(&["chats", "last"]).ended(0).stdout;
    assert!(shown.contains("1> go") && shown.contains("written") && shown.contains("2> on"), "{shown}");
}

#[test]
fn a_message_that_was_cut_off_is_dropped_if_the_user_says_so() {
    let sandbox = slow();
    killed(&sandbox);
    let dropped = sandbox.run(&["chat", ".", "-c", "--cut-off", "drop", "-p", "on", "-a", "all"]).ended(0);
    assert!(dropped.stderr.contains("you wrote:\ngo"), "{dropped:?}");
    assert!(dropped.stdout.ends_with("written\n") && sandbox.path("a.txt").exists(), "{dropped:?}");
    let shown = sandbox.run(&["chats", "last"]).ended(0).stdout;
    assert!(!shown.contains("1> go") && shown.contains("2> on"), "{shown}");
}

#[test]
fn a_person_at_a_terminal_says_what_becomes_of_a_message_that_was_cut_off() {
    let sandbox = slow();
    killed(&sandbox);
    let mut session =
        at_terminal(&sandbox, "\"$LLM_DO\" chat . -c -p on -a all --headless < /dev/null; echo code $?");
    use expectrl::Expect;
    session.expect("[r] go on with it").unwrap();
    session.send_line("d").unwrap();
    let rest = text_of(session);
    assert!(rest.contains("you wrote:\ngo") && rest.contains("code 0"), "{rest}");
    assert!(rest.contains("to continue: llm-do chat --resume "), "{rest}");
}

/// A chat that is open in another process.
fn open(sandbox: &Sandbox) -> Child {
    let mut child = sandbox
        .command(&["chat", "."])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.as_mut().unwrap().write_all(b"hello\n").unwrap();
    wait_for(|| chats(sandbox, &[]).iter().any(|chat| chat["turns"] == 1));
    child
}

#[test]
fn a_chat_is_open_in_one_process_at_a_time() {
    let sandbox = echoing();
    let mut first = open(&sandbox);
    let listed = chats(&sandbox, &[]);
    assert_eq!(listed[0]["state"], "open");
    let chat = id(&listed[0]);
    for arguments in [vec!["chat", ".", "-c"], vec!["chat", "--resume", chat]] {
        let refused = sandbox.run(&arguments).ended(1);
        assert!(refused.stderr.contains(&format!("chat {chat} is open in process ")), "{refused:?}");
        assert!(refused.stderr.contains(&format!("llm-do chat --fork {chat}")), "{refused:?}");
    }
    let refused = sandbox.run(&["chats", "forget", chat]).ended(1);
    assert!(refused.stderr.contains("is open in another process"), "{refused:?}");
    sandbox.run(&["chat", "--fork", chat, "-p", "mine"]).ended(0).said("mine\n");
    // The newest one that is not open goes on, and that is said.
    first.stdin.as_mut().unwrap().write_all(b"newer\n").unwrap();
    wait_for(|| chats(&sandbox, &[])[0]["turns"] == 2 && id(&chats(&sandbox, &[])[0]) == chat);
    let other = sandbox.run(&["chat", ".", "-c", "-p", "more"]).ended(0);
    assert!(other.stderr.contains(&format!("the newer chat {chat} (hello) is open")), "{other:?}");
    drop(first.stdin.take());
    assert!(first.wait().unwrap().success());
    wait_for(|| chats(&sandbox, &[]).iter().all(|chat| chat["state"] == "closed"));
}

#[test]
fn what_is_not_there_is_named() {
    let sandbox = echoing();
    let refused = sandbox.run(&["chat", ".", "-c"]).ended(2);
    assert!(refused.stderr.contains("nothing is recorded yet"), "{refused:?}");
    sandbox.run(&["run", ".", "hello"]).ended(0);
    let refused = sandbox.run(&["chat", ".", "-c"]).ended(2);
    assert!(refused.stderr.contains("there is no chat with ") && refused.stderr.contains("llm-do chats"));
    for (arguments, text) in [
        (vec!["chat", "--resume", "zz"], "is not the id of a chat"),
        (vec!["chat", "--resume", "abcdef"], "no recorded chat begins with `abcdef`"),
        (vec!["chat", "-c", "--no-record"], "leave out `--no-record`"),
        (vec!["chat", "--at", "2"], "--fork"),
        (vec!["chat", "--cut-off", "drop"], "--continue"),
        (vec!["chat", "--unknown", "tell"], "--continue"),
    ] {
        let refused = sandbox.run(&arguments).ended(2);
        assert!(refused.stderr.contains(text), "{text}: {refused:?}");
    }
}

#[test]
fn a_chat_says_that_its_project_changed() {
    let sandbox = echoing();
    sandbox.run(&["chat", ".", "hello"]).ended(0);
    let same = sandbox.run(&["chat", ".", "-c", "-p", "on"]).ended(0);
    assert!(!same.stderr.contains("changed"), "{same:?}");
    std::fs::write(sandbox.path("main.agent"), "---\nname: main\nmodel: test:echo\n---\nOther.\n").unwrap();
    let changed = sandbox.run(&["chat", ".", "-c", "-p", "on"]).ended(0);
    assert!(changed.stderr.contains("the project has changed since the last turn: "), "{changed:?}");
    assert!(changed.stderr.contains("main.agent"), "{changed:?}");
    let same = sandbox.run(&["chat", ".", "-c", "-p", "on"]).ended(0);
    assert!(!same.stderr.contains("changed"), "{same:?}");
}

#[test]
fn the_terminal_ui_shows_what_was_said_before() {
    let sandbox = echoing();
    sandbox.run(&["chat", ".", "message 1"]).ended(0);
    for number in 2..=7 {
        sandbox.run(&["chat", ".", "-c", "-p", &format!("message {number}")]).ended(0);
    }
    let session = start(&sandbox, &["chat", "-c"]);
    session.wait_for("message 7");
    at_rest(&session);
    let shown = session.scrollback_text();
    assert!(shown.contains("2 earlier turns") && shown.contains("message 3"), "{shown}");
    assert!(!shown.contains("message 2") && shown.contains("message 7"), "{shown}");
    say(&session, "are you there?", "are you there?");
    say(&session, "/title Questions", "this chat is named `Questions`");
    leave(&session);
    let left = session.scrollback_text();
    let chat = chats(&sandbox, &[]);
    assert!(left.contains(&format!("to continue: llm-do chat --resume {}", id(&chat[0]))), "{left}");
    assert_eq!((&chat[0]["turns"], &chat[0]["title"]), (&8.into(), &"Questions".into()));
}

#[test]
fn a_chat_of_lines_is_named() {
    let sandbox = echoing();
    let lines = b"/title too early\nhello\n/title\n/title  My trees \n";
    let ran = sandbox.run_with(&["chat", "."], lines).ended(0);
    for text in ["from its first message on", "write `/title TEXT`", "this chat is named `My trees`"] {
        assert!(ran.stderr.contains(text), "{text}: {ran:?}");
    }
    assert_eq!(chats(&sandbox, &["--search", "MY TREES"]).len(), 1);
}

/// What is said in a chat that is killed at random. Each message makes its agent pay something.
const MESSAGES: [&str; 3] = ["p-one", "p-two", "p-three"];

fn paying() -> Sandbox {
    let replies: Vec<Value> = MESSAGES
        .iter()
        .flat_map(|name| [json!({"ask": pay(name)}), json!({"say": format!("paid {name}")})])
        .collect();
    Sandbox::new()
        .file(
            "main.agent",
            &format!(
                "---\nname: main\nmodel: script:script.yaml\n{}\n---\nPay.\n",
                shell("pre_approved", "")
            ),
        )
        .file("project.yaml", "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\n")
        .file("script.yaml", &json!({"mode": "by_turn", "replies": replies}).to_string())
}

/// The messages of the chat, each with its answer and its run.
fn messages(sandbox: &Sandbox) -> Vec<Value> {
    match sandbox.run(&["chats", "--output", "json"]).ended(0).json().as_array().unwrap().first() {
        Some(chat) => {
            let shown = sandbox.run(&["chats", id(chat), "--output", "json"]).ended(0).json();
            shown["messages"].as_array().unwrap().clone()
        }
        None => Vec::new(),
    }
}

/// What a person says about calls that may have happened, after a look at what was paid.
fn settled(sandbox: &Sandbox, message: &Value) -> Vec<String> {
    let run = RunId(message["run_id"].as_str().unwrap().parse().unwrap());
    let reader = Reader::open(sandbox.state().join("llm-do/record.db")).unwrap().unwrap();
    let events = reader.events(run, None).unwrap_or_default();
    let paid = log(sandbox, "effects.log");
    let answer = |name: &str| if paid.iter().any(|paid| paid == name) { "done" } else { "again" };
    let flag = |key: &str| format!("--unknown={key}={}", answer(message["text"].as_str().unwrap()));
    unknown_calls(&events).iter().map(|call| flag(&call.call.id)).collect()
}

/// Says all messages to a chat whose processes are killed now and then. Returns how often.
fn say_all(seed: u64) -> u64 {
    let (sandbox, mut chance, mut killed) = (paying(), Chance::new(seed), 0);
    for _ in 0..100 {
        let said = messages(&sandbox);
        let answered = said.iter().filter(|message| message["status"] == "done").count();
        if answered == MESSAGES.len() {
            let texts: Vec<&str> = said.iter().map(|message| message["text"].as_str().unwrap()).collect();
            assert_eq!(texts, MESSAGES, "seed {seed}");
            let answers: Vec<&str> = said.iter().map(|message| message["answer"].as_str().unwrap()).collect();
            assert_eq!(answers, MESSAGES.map(|name| format!("paid {name}")), "seed {seed}");
            assert_eq!(log(&sandbox, "effects.log"), MESSAGES, "seed {seed}: paid once each, in this order");
            return killed;
        }
        let is_new = chats(&sandbox, &[]).is_empty();
        let settled: Vec<String> = said.get(answered).map(|cut| settled(&sandbox, cut)).unwrap_or_default();
        let mut arguments = vec!["chat", ".", "--trust", "--approve", "all"];
        arguments.extend((!is_new).then_some("-c"));
        match said.get(answered) {
            Some(_) => arguments.extend(settled.iter().map(String::as_str)),
            None => arguments.extend(["-p", MESSAGES[answered]]),
        }
        let mut command = sandbox.command(&arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if chance.below(3) > 0 {
            let after = Duration::from_micros(chance.below_u64(120_000));
            killed += u64::from(kill(command.spawn().unwrap(), after, &sandbox));
        } else {
            let output = command.output().unwrap();
            assert!(output.status.success(), "seed {seed}: {output:?}");
        }
    }
    panic!("seed {seed}: the chat came to no end");
}

#[test]
fn a_chat_that_is_killed_at_any_time_goes_on_without_loss_or_repetition() {
    let (mut killed, mut seed) = (0, 0);
    while killed < kills() {
        killed += say_all(seed);
        seed += 1;
    }
    println!("chat: {seed} chats, killed {killed} times");
}

#[test]
fn the_model_that_was_chosen_answers_again_and_is_named() {
    let sandbox = slow();
    let lines = b"/model test:echo\nhello\n";
    sandbox.run_with(&["chat", "."], lines).ended(0).said("hello\n");
    let again = sandbox.run_with(&["chat", ".", "-c"], b"/model\nonce more\n").ended(0);
    assert_eq!(again.stdout, "once more\n");
    assert!(again.stderr.contains("the model is `test:echo`"), "{again:?}");
}
