//! The commands of a chat.

use llm_do_testing::terminal::{Key, TerminalSession};

use crate::support::Sandbox;
use crate::tui::support::{at_rest, chat, ended, leave, say, start};

fn remembering() -> Sandbox {
    Sandbox::scripted("mode: by_turn\nreplies:\n  - say: first\n  - say: second\n  - say: third\n")
}

/// Gives a command and waits for words that it brings.
#[track_caller]
fn command(session: &TerminalSession, line: &str, words: &str) {
    session.keys(line);
    session.wait_for_visible(line);
    session.key(Key::Enter);
    session.wait_for(words);
    at_rest(session);
}

#[test]
fn help_and_usage_are_shown() {
    let sandbox = remembering();
    let session = chat(&sandbox);
    command(&session, "/help", "takes back what you allowed");
    let help = session.scrollback_text();
    for words in ["Ctrl-T", "/fork", "/quit", "Shift-Enter"] {
        assert!(help.contains(words), "`{words}` is not in\n{help}");
    }
    say(&session, "one", "\nfirst\n");
    command(&session, "/usage", "in all: 1 request");
    leave(&session);
}

#[test]
fn the_guide_lists_every_command() {
    let sandbox = remembering();
    let session = chat(&sandbox);
    command(&session, "/help", "leaves (also exit, Ctrl-D");
    let help = session.scrollback_text();
    leave(&session);
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/terminal.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let words = help.split_whitespace().filter(|word| {
        word.strip_prefix('/')
            .is_some_and(|rest| rest.len() > 1 && rest.chars().all(|c| c.is_ascii_lowercase()))
    });
    let commands: std::collections::BTreeSet<&str> = words.collect();
    assert!(commands.len() > 10, "{commands:?}");
    for command in commands {
        assert!(guide.contains(&format!("`{command}")), "`{command}` is not in docs/guide/terminal.md");
    }
}

#[test]
fn a_mistyped_command_is_not_sent() {
    let sandbox = remembering();
    let session = chat(&sandbox);
    session.keys("/hlep\r");
    session.wait_for_visible("did you mean `/help`?");
    assert!(session.screen_text().contains("/hlep"), "it can be mended\n{}", session.screen_text());
    session.key(Key::Ctrl('u'));
    at_rest(&session);
    say(&session, "one", "first");
    leave(&session);
}

#[test]
fn commands_are_completed() {
    let sandbox = remembering();
    let session = chat(&sandbox);
    session.keys("/us");
    session.wait_for_visible("requests, tokens and cost so far");
    session.key(Key::Tab);
    session.wait_for_visible("/usage");
    session.key(Key::Enter);
    session.wait_for("in all: 0 requests");
    leave(&session);
}

#[test]
fn going_back_takes_a_message_back_into_the_input() {
    let sandbox = remembering();
    let session = chat(&sandbox);
    say(&session, "one", "first");
    say(&session, "two", "second");
    command(&session, "/goto", "2  two");
    session.keys("/goto 2\r");
    session.wait_for("back to before message 2");
    session.wait_until(|screen| {
        screen.contents().lines().rev().take(4).any(|row| row.trim_end().ends_with("two"))
    });
    session.keys(" again\r");
    session.wait_for("> two again");
    at_rest(&session);
    leave(&session);
    let all = session.scrollback_text();
    let after = all.split("> two again").nth(1).unwrap();
    assert!(after.contains("second") && !all.contains("third"), "the second turn was said anew\n{all}");
}

#[test]
fn a_fork_goes_its_own_way() {
    let sandbox = remembering();
    let session = chat(&sandbox);
    say(&session, "one", "first");
    command(&session, "/fork", "this is conversation 2 of 2");
    say(&session, "in the copy", "second");
    command(&session, "/fork 1", "this is conversation 1 of 2");
    say(&session, "in the first", "second");
    command(&session, "/fork 7", "conversation 7 does not exist");
    leave(&session);
    assert_eq!(session.scrollback_text().matches("\nsecond\n").count(), 2, "{}", session.scrollback_text());
}

#[test]
fn a_conversation_is_saved_and_no_file_is_overwritten() {
    let sandbox = remembering();
    let session = chat(&sandbox);
    say(&session, "one", "first");
    command(&session, "/save talk.md", "2 messages written to `talk.md`");
    command(&session, "/save talk.json", "2 messages written to `talk.json`");
    say(&session, "two", "second");
    command(&session, "/save talk.md", "`talk.md` was not written");
    leave(&session);
    let saved = std::fs::read_to_string(sandbox.path("talk.md")).unwrap();
    assert_eq!(saved, "## You\n\none\n\n## Model\n\nfirst\n\n");
    let saved = std::fs::read_to_string(sandbox.path("talk.json")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&saved).unwrap().as_array().unwrap().len(), 2);
}

#[test]
fn clearing_begins_a_new_conversation_on_an_empty_screen() {
    let sandbox = remembering();
    let session = chat(&sandbox);
    say(&session, "one", "first");
    say(&session, "two", "second");
    session.keys("/clear\r");
    session.wait_for_visible("a new conversation");
    session.wait_gone("second");
    at_rest(&session);
    say(&session, "three", "first");
    leave(&session);
}

#[test]
fn a_call_stands_beside_the_conversation() {
    let sandbox = Sandbox::asking();
    let session = chat(&sandbox);
    command(&session, "/call helper {\"input\": \"aside\"}", "\naside\n");
    session.keys("/call helper {\r");
    session.wait_for_visible("not valid JSON");
    session.wait_for_visible("> /call helper {");
    session.key(Key::Ctrl('u'));
    at_rest(&session);
    session.keys("/call helper\r");
    session.wait_for_visible("Ctrl-S send");
    session.keys("by a form");
    session.wait_for_visible("by a form");
    session.key(Key::Ctrl('s'));
    session.wait_for("\nby a form\n");
    at_rest(&session);
    leave(&session);
}

#[test]
fn another_model_answers_from_now_on() {
    let sandbox = remembering();
    let session = chat(&sandbox);
    command(&session, "/model nobody:x", "does not exist");
    // Its letters are part of names of known models, which nobody meant.
    command(&session, "/model foo", "there is no model `foo`");
    command(&session, "/model test:echo", "`test:echo` answers from now on");
    say(&session, "is anybody there", "\nis anybody there\n");
    // The current model stays, and is first in the list of others.
    session.keys("/model\r");
    session.wait_for("the model is `test:echo`");
    session.wait_for_visible("answers now");
    session.key(Key::Ctrl('u'));
    at_rest(&session);
    say(&session, "still there", "\nstill there\n");
    command(&session, "/model script:script.yaml", "`script:script.yaml` answers from now on");
    say(&session, "two", "third");
    leave(&session);
}

#[test]
fn agents_that_keep_their_own_model_are_named() {
    let sandbox = Sandbox::asking();
    let session = start(&sandbox, &["chat", ".", "--model", "test"]);
    session.wait_for("agents with a model of their own: helper (test:echo)");
    leave(&session);
}

#[test]
fn a_model_is_picked_from_the_list() {
    let sandbox = remembering();
    let session = chat(&sandbox);
    session.wait_for_visible("Ctrl-T tree · script:script.yaml");
    session.keys("/model\r");
    session.wait_for("the model is `script:script.yaml`");
    session.keys("gpt-5-mi");
    session.wait_for_visible("openai:gpt-5-mini");
    session.key(Key::Enter);
    session.wait_for("`openai:gpt-5-mini` answers from now on");
    session.wait_for_visible("Ctrl-T tree · openai:gpt-5-mini");
    session.keys("exit\r");
    ended(&session, 0);
}

#[test]
fn a_conversation_is_not_saved_over_a_file() {
    let sandbox = remembering().file("notes.md", "mine\n");
    let session = chat(&sandbox);
    command(&session, "/save notes.md", "a file of that name exists already");
    command(&session, "/save gone/notes.md", "its directory does not exist");
    leave(&session);
}
