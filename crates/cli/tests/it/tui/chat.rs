//! Conversations: turns, what is typed, pasted, attached and called back.

use llm_do_testing::terminal::{Key, TerminalSession};
use serde_json::json;

use crate::support::Sandbox;
use crate::tui::provider::FedProvider;
use crate::tui::support::{EMPTY_INPUT, at_rest, chat, ended, leave, say, start};

fn remembering() -> Sandbox {
    Sandbox::scripted("mode: by_turn\nreplies:\n  - say: first\n  - say: second\n  - say: third\n")
}

#[test]
fn three_turns_are_one_conversation_and_all_of_it_stays_in_the_scrollback() {
    let sandbox = remembering();
    let session = chat(&sandbox);
    say(&session, "one", "first");
    say(&session, "two", "second");
    say(&session, "three", "third");
    leave(&session);
    let all = session.scrollback_text();
    let spoken: Vec<&str> = all
        .lines()
        .filter(|line| ["> ", "first", "second", "third"].iter().any(|start| line.starts_with(start)))
        .collect();
    assert_eq!(spoken, ["> one", "first", "> two", "second", "> three", "third"], "{all}");
    assert!(!all.contains(EMPTY_INPUT) && !all.contains("───"), "live rows are left\n{all}");
}

#[test]
fn a_message_has_several_lines_typed_or_pasted() {
    let sandbox = Sandbox::echo();
    let session = chat(&sandbox);
    session.keys("one");
    session.key(Key::Ctrl('j'));
    session.keys("two");
    session.wait_for_visible("two");
    session.key(Key::Enter);
    at_rest(&session);
    let pasted: Vec<String> = (1..=40).map(|number| format!("pasted {number}")).collect();
    session.paste(&pasted.join("\n"));
    session.wait_for_visible("pasted 40");
    assert!(!session.scrollback_text().contains("> pasted"), "pasting alone must not send");
    session.key(Key::Enter);
    at_rest(&session);
    leave(&session);
    let all = session.scrollback_text();
    assert!(all.contains("> one\n  two\n\none two\n") || all.contains("> one\n  two\n\none\ntwo\n"), "{all}");
    let said: Vec<&str> = all.lines().skip_while(|line| *line != "> pasted 1").take(40).collect();
    let wanted: Vec<String> = pasted.iter().map(|line| format!("  {line}")).collect();
    assert_eq!(said[1..], wanted[1..], "{all}");
}

#[test]
fn a_large_paste_arrives_whole() {
    let sandbox = Sandbox::echo();
    let session = chat(&sandbox);
    let lines: Vec<String> =
        (1..=800).map(|number| format!("pasted line {number} of eight hundred")).collect();
    session.paste(&lines.join("\n"));
    session.wait_for_visible("pasted line 800 of");
    session.key(Key::Enter);
    session.wait_for("done in");
    at_rest(&session);
    leave(&session);
    let all = session.scrollback_text();
    let said: Vec<&str> = all.lines().filter_map(|line| line.strip_prefix("  ")).take(799).collect();
    assert_eq!(said, lines[1..]);
}

#[test]
fn a_file_behind_an_at_sign_is_completed_and_attached() {
    let sandbox = Sandbox::new()
        .file("main.agent", "---\nname: main\nmodel: openai-chat:small\n---\nAnswer.\n")
        .file("notes/harbour.md", "Ships came in with the morning tide.\n");
    let mut provider = FedProvider::start();
    let session = provider.begin(&sandbox, &["chat", "."]);
    session.wait_for_visible(EMPTY_INPUT);
    session.keys("see @not");
    session.wait_for_visible("notes/");
    session.key(Key::Tab);
    session.wait_for_visible("harbour.md");
    session.key(Key::Tab);
    session.wait_for_visible("see @notes/harbour.md");
    session.key(Key::Enter);
    let mut answer = provider.asked("see @notes/harbour.md");
    let request = answer.request.to_string();
    assert!(request.contains("harbour.md") && request.contains("Ships came in"), "{request}");
    answer.say("I have read it.");
    answer.end();
    session.wait_for("I have read it.");
    at_rest(&session);
    leave(&session);
}

#[test]
fn what_was_sent_before_is_called_back_also_by_the_next_chat() {
    let sandbox = Sandbox::echo();
    let session = chat(&sandbox);
    say(&session, "the first message", "the first message");
    say(&session, "the second message", "the second message");
    leave(&session);
    let session = chat(&sandbox);
    session.key(Key::Up);
    session.wait_for_visible("the second message");
    session.key(Key::Up);
    session.wait_for_visible("the first message");
    session.keys(" again");
    session.wait_for_visible("the first message again");
    session.key(Key::Enter);
    session.wait_for("> the first message again");
    at_rest(&session);
    leave(&session);
}

#[test]
fn messages_sent_during_a_turn_wait_for_its_end() {
    let sandbox =
        Sandbox::new().file("main.agent", "---\nname: main\nmodel: openai-chat:small\n---\nAnswer.\n");
    let mut provider = FedProvider::start();
    let session = provider.begin(&sandbox, &["chat", ".", "one"]);
    let mut first = provider.asked("one");
    first.say("the answer");
    session.wait_for_visible("the answer");
    session.keys("two\r");
    session.wait_for_visible("then: two");
    first.end();
    let mut second = provider.asked("two");
    second.say("and another");
    second.end();
    session.wait_for("and another");
    at_rest(&session);
    leave(&session);
    let all = session.scrollback_text();
    let places: Vec<_> = ["> one", "the answer", "> two", "and another"].map(|words| all.find(words)).into();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{all}");
}

#[test]
fn a_run_without_a_prompt_asks_for_one() {
    let sandbox = Sandbox::echo();
    let session = start(&sandbox, &["run", "."]);
    session.wait_for_visible(EMPTY_INPUT);
    session.keys("good morning\r");
    ended(&session, 0);
    let all = session.scrollback_text();
    assert!(all.contains("> good morning") && all.contains("\ngood morning\n"), "{all}");
    let left = start(&sandbox, &["run", "."]);
    left.wait_for_visible(EMPTY_INPUT);
    left.key(Key::Ctrl('d'));
    left.wait_exit();
    crate::tui::support::is_as_before(&left);
}

/// An agent that plans a number of days, of which there are nine at most.
fn planner() -> Sandbox {
    Sandbox::new().file(
        "main.agent",
        "---\nname: main\nmodel: test:echo\ninput_schema:\n  type: object\n  properties:\n    \
         topic: {type: string}\n    days: {type: integer, minimum: 1, maximum: 9}\n  \
         required: [topic, days]\nprompt: |\n  {{ days }} days of {{ topic }}{{ \"\" if days < 9 else days.no.number }}\n\
         ---\nPlan.\n",
    )
}

/// Fills in a form that is open, and tries to send it.
fn plan(session: &TerminalSession, topic: &str, days: &str) {
    session.wait_for_visible("days * (whole number, 1 to 9)");
    session.keys(topic);
    session.key(Key::Tab);
    session.keys(days);
    session.wait_for_visible(&format!("> {days}"));
    session.key(Key::Ctrl('s'));
}

#[test]
fn a_form_with_a_number_beyond_its_limit_stays_open_until_it_is_mended() {
    let sandbox = planner();
    let session = start(&sandbox, &["run", "."]);
    plan(&session, "sailing", "99");
    session.wait_for_visible("is greater than the maximum of 9");
    let screen = session.screen_text();
    assert!(screen.contains("> sailing") && screen.contains("> 99"), "{screen}");
    assert!(screen.contains("Ctrl-C twice leaves") && !screen.contains("/help"), "{screen}");
    session.key(Key::Backspace);
    session.key(Key::Backspace);
    session.keys("3");
    session.key(Key::Ctrl('s'));
    ended(&session, 0);
    assert!(session.scrollback_text().contains("3 days of sailing"), "{}", session.scrollback_text());
}

#[test]
fn a_form_that_the_program_refuses_comes_back_in_a_chat() {
    let sandbox = planner();
    let session = start(&sandbox, &["chat", "."]);
    plan(&session, "sailing", "9");
    session.wait_for("the prompt could not be rendered");
    session.wait_until(|screen| {
        screen.contents().contains("> sailing\n") && screen.contents().contains("> 9\n")
    });
    session.key(Key::Backspace);
    session.keys("8");
    session.key(Key::Ctrl('s'));
    session.wait_for("8 days of sailing");
    session.wait_until(|screen| !screen.contents().contains("Esc stops"));
    session.key(Key::Ctrl('c'));
    session.key(Key::Ctrl('c'));
    ended(&session, 0);
}

#[test]
fn a_typed_input_is_asked_for_by_a_form() {
    let sandbox = Sandbox::new()
        .file(
            "main.agent",
            "---\nname: main\nmodel: openai-chat:small\ninput_schema:\n  type: object\n  properties:\n    \
             topic: {type: string, description: What to write about}\n    lines: {type: integer, default: 2}\n  \
             required: [topic]\nprompt: |\n  Write {{ lines }} lines about {{ topic }}.\n---\nWrite.\n",
        );
    let mut provider = FedProvider::start();
    let session = provider.begin(&sandbox, &["run", "."]);
    session.wait_for_visible("Ctrl-S send");
    session.wait_for_visible("What to write about");
    session.keys("the harbour");
    session.wait_for_visible("the harbour");
    session.key(Key::Tab);
    session.key(Key::Backspace);
    session.keys("3");
    session.key(Key::Ctrl('s'));
    let mut answer = provider.asked("lines about");
    assert_eq!(
        answer.request["messages"][1]["content"],
        json!("Write 3 lines about the harbour."),
        "{}",
        answer.request
    );
    answer.say("Ships.");
    answer.end();
    ended(&session, 0);
    assert!(session.scrollback_text().contains("Ships."));
}
