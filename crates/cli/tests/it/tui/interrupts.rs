//! Stopping: a turn by Esc or Ctrl-C, the program by Ctrl-C twice.

use llm_do_testing::terminal::Key;

use crate::support::Sandbox;
use crate::tui::provider::FedProvider;
use crate::tui::support::{CHOICES, at_rest, chat, ended, leave, say, start};

fn slow() -> Sandbox {
    Sandbox::scripted("- say: late\n  delay: 60s\n")
}

#[test]
fn esc_or_ctrl_c_stops_a_turn_and_the_chat_goes_on() {
    for key in [Key::Esc, Key::Ctrl('c')] {
        let sandbox =
            Sandbox::new().file("main.agent", "---\nname: main\nmodel: openai-chat:small\n---\nx\n");
        let mut provider = FedProvider::start();
        let session = provider.begin(&sandbox, &["chat", ".", "hello"]);
        let mut broken = provider.asked("hello");
        broken.say("half of a sent");
        session.wait_for_visible("half of a sent");
        session.key(key);
        session.wait_for("interrupted after");
        at_rest(&session);
        session.keys("again\r");
        let mut whole = provider.asked("again");
        whole.say("a whole sentence");
        whole.end();
        session.wait_for("a whole sentence");
        at_rest(&session);
        leave(&session);
    }
}

#[test]
fn esc_or_ctrl_c_stops_a_run() {
    for key in [Key::Esc, Key::Ctrl('c')] {
        let sandbox = slow();
        let session = start(&sandbox, &["run", ".", "hello"]);
        session.wait_for_visible("Esc stops");
        session.key(key);
        ended(&session, 130);
        assert!(session.scrollback_text().contains("interrupted after"), "{}", session.scrollback_text());
    }
}

#[test]
fn ctrl_c_twice_leaves_a_chat_at_rest_or_at_work() {
    let sandbox = Sandbox::echo();
    let session = chat(&sandbox);
    say(&session, "hello", "hello");
    session.keys("a draft");
    session.wait_for_visible("a draft");
    session.key(Key::Ctrl('c'));
    session.wait_for_visible("Ctrl-C again leaves");
    session.wait_gone("a draft");
    session.key(Key::Ctrl('c'));
    ended(&session, 0);
    let sandbox = slow();
    let session = chat(&sandbox);
    session.keys("hello\r");
    session.wait_for_visible("Esc stops");
    session.keys("\u{3}\u{3}");
    ended(&session, 130);
}

#[test]
fn ctrl_c_at_a_question_stops_the_run_and_approves_nothing() {
    let sandbox = Sandbox::asking();
    let session = start(&sandbox, &["run", ".", "hello"]);
    session.wait_for_visible(CHOICES);
    session.key(Key::Ctrl('c'));
    ended(&session, 130);
    let all = session.scrollback_text();
    assert!(
        all.contains("interrupted after") && !all.contains("the end") && !all.contains("you allowed"),
        "{all}"
    );
}
