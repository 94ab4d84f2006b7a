//! A panic anywhere leaves the terminal as it was, with a message that can be read.

use std::path::PathBuf;
use std::process::Command;

use llm_do_testing::terminal::{Key, TerminalModes, TerminalSession};

/// The example that panics, which `cargo test` builds beside the tests.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/panics");
    assert!(program.exists(), "`cargo test -p llm-do-tui` builds the example, `--test it` alone does not");
    program
}

/// Starts the example and brings it to its panic.
fn panicked(location: &str, in_tree: bool) -> TerminalSession {
    let mut command = Command::new(program());
    command.arg(location).env("TERM", "xterm-256color").env("RUST_BACKTRACE", "0");
    let session = TerminalSession::spawn(command, 80, 12);
    session.wait_for_visible("a message for main");
    assert!(!session.terminal_modes().canonical);
    if in_tree {
        session.key(Key::Ctrl('t'));
        session.wait_for_visible("[Esc] back");
        assert!(session.is_alternate());
        session.keys("\u{3}\u{3}");
    } else {
        session.keys("go\r");
    }
    session
}

#[track_caller]
fn is_as_before(session: &TerminalSession, code: i32, message: &str) {
    assert_eq!(session.wait_exit(), code, "{}", session.scrollback_text());
    let (screen, text) = (session.screen(), session.scrollback_text());
    assert_eq!(session.terminal_modes(), TerminalModes::NORMAL);
    assert!(!screen.hide_cursor() && !screen.bracketed_paste() && !screen.alternate_screen(), "{text}");
    assert!(text.contains(message), "{text}");
    let begins = text.lines().any(|line| line.starts_with("thread '"));
    assert!(begins, "the message begins a row\n{text}");
}

#[test]
fn a_panic_of_the_program_itself() {
    is_as_before(&panicked("main", false), 101, "the program panics");
}

#[test]
fn a_panic_of_another_thread_ends_the_ui() {
    is_as_before(&panicked("thread", false), 1, "a thread panics");
}

#[test]
fn a_panic_of_an_event_handler_ends_the_ui() {
    is_as_before(&panicked("event-handler", false), 1, "an event handler panics");
}

#[test]
fn a_panic_while_the_tree_is_on_the_screen() {
    for location in ["main", "thread", "event-handler"] {
        is_as_before(&panicked(location, true), if location == "main" { 101 } else { 1 }, "panics");
    }
}
