//! Runs without a person, at a terminal all the same.

use llm_do_testing::terminal::{Key, TerminalModes};

use crate::support::Sandbox;
use crate::tui::support::{AtTerminal, start};

#[test]
fn a_headless_run_prints_its_answer_and_leaves_the_terminal_as_it_was() {
    let sandbox = Sandbox::echo();
    let session = start(&sandbox, &["run", ".", "hello", "--headless"]);
    assert_eq!(session.wait_exit(), 0);
    assert_eq!(session.scrollback_text().lines().next(), Some("hello"), "{}", session.scrollback_text());
    assert_eq!(session.terminal_modes(), TerminalModes::NORMAL);
    assert!(!session.is_alternate() && !session.screen().hide_cursor());
}

#[test]
fn errors_are_red_at_a_terminal_and_plain_with_no_color() {
    let sandbox = Sandbox::echo();
    let colored = start(&sandbox, &["check", "nowhere"]);
    assert_ne!(colored.wait_exit(), 0);
    let screen = colored.screen();
    let first = screen.cell(0, 0).unwrap();
    assert_eq!(
        (first.contents(), first.fgcolor(), first.bold()),
        ("e", vt100::Color::Idx(1), true),
        "{}",
        colored.screen_text()
    );
    let plain = AtTerminal::new(&sandbox, &["check", "nowhere"]).env("NO_COLOR", "1").size(40, 10).start();
    assert_ne!(plain.wait_exit(), 0);
    assert!(plain.screen_text().starts_with("error: "), "{}", plain.screen_text());
    assert!(!plain.raw_output().contains(&0x1b), "{}", String::from_utf8_lossy(&plain.raw_output()));
}

#[test]
fn messages_of_chats_that_run_at_once_are_all_remembered() {
    let sandbox = Sandbox::echo();
    let chat = || start(&sandbox, &["chat", ".", "--headless"]);
    let (first, second) = (chat(), chat());
    for (session, message) in [(&first, "from the first"), (&second, "from the second")] {
        session.wait_for_visible(">");
        session.keys(message);
        session.key(Key::Enter);
        session.wait_until(|screen| screen.contents().lines().any(|line| line.trim() == message));
    }
    for session in [&second, &first] {
        session.keys("/quit");
        session.key(Key::Enter);
        assert_eq!(session.wait_exit(), 0);
    }
    let kept = std::fs::read_to_string(sandbox.state().join("llm-do/history")).unwrap();
    let kept: Vec<&str> = kept.lines().collect();
    assert_eq!(kept, ["#V2", "from the first", "from the second", "/quit", "/quit"]);
}
