//! However it ends, the terminal is as it was.

use llm_do_testing::terminal::{Key, Signal, TerminalModes, TerminalSession, hang_up};

use crate::support::Sandbox;
use crate::tui::support::{
    AtTerminal, CHOICES, answer, at_rest, chat, ended, is_as_before, leave, say, start,
};

fn slow() -> Sandbox {
    Sandbox::scripted("- say: late\n  delay: 60s\n")
}

/// Waits until a model is asked: the row of the call names it too, and not only the status line.
fn asks_model(session: &TerminalSession) {
    session.wait_until(|screen| screen.contents().matches("script:script.yaml").count() > 1);
}

#[test]
fn a_run_and_a_chat_take_the_terminal_and_give_it_back() {
    let sandbox = Sandbox::echo();
    let session = chat(&sandbox);
    assert!(!session.terminal_modes().canonical && !session.terminal_modes().echo);
    assert!(session.screen().bracketed_paste());
    say(&session, "hello", "hello");
    leave(&session);
    let run = start(&sandbox, &["run", ".", "hello"]);
    ended(&run, 0);
    assert!(run.scrollback_text().starts_with("hello\n"), "{}", run.scrollback_text());
}

#[test]
fn a_failed_run_says_why_and_gives_the_terminal_back() {
    let sandbox = Sandbox::scripted("- fail: {kind: not_found, message: no such model}\n");
    let session = start(&sandbox, &["run", ".", "hello"]);
    ended(&session, 3);
    assert!(session.scrollback_text().contains("no such model"), "{}", session.scrollback_text());
}

#[test]
fn a_signal_during_a_run_ends_it_in_order() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let sandbox = slow();
        let session = start(&sandbox, &["run", ".", "hello"]);
        asks_model(&session);
        session.signal(signal);
        ended(&session, code);
        assert!(session.scrollback_text().contains("interrupted after"), "{}", session.scrollback_text());
    }
}

#[test]
fn a_signal_ends_a_chat_at_rest_and_at_work() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let sandbox = Sandbox::echo();
        let session = chat(&sandbox);
        say(&session, "hello", "hello");
        session.signal(signal);
        ended(&session, code);
        let shown = session.screen_text();
        assert!(!shown.contains("Ctrl-T") && !shown.contains("a message for main"), "{shown}");
        let sandbox = slow();
        let session = chat(&sandbox);
        session.keys("hello\r");
        asks_model(&session);
        session.signal(signal);
        ended(&session, code);
    }
}

#[test]
fn a_signal_in_the_tree_gives_the_main_screen_back() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let sandbox = Sandbox::echo();
        let session = chat(&sandbox);
        say(&session, "hello there", "hello there");
        session.key(Key::Ctrl('t'));
        session.wait_for_visible("[Esc] back");
        session.signal(signal);
        ended(&session, code);
        assert!(session.screen_text().contains("hello there"), "{}", session.screen_text());
    }
    let sandbox = slow();
    let session = start(&sandbox, &["run", ".", "hello"]);
    asks_model(&session);
    session.key(Key::Ctrl('t'));
    session.wait_for_visible("[Esc] back");
    session.signal(Signal::TERM);
    ended(&session, 143);
}

#[test]
fn a_signal_while_a_question_stands_approves_nothing() {
    let sandbox = Sandbox::asking();
    let session = start(&sandbox, &["run", ".", "hello"]);
    session.wait_for_visible(CHOICES);
    session.signal(Signal::TERM);
    ended(&session, 143);
    assert!(!session.scrollback_text().contains("the end"), "{}", session.scrollback_text());
}

#[test]
fn without_its_terminal_nothing_goes_on() {
    for (sandbox, arguments, until) in [
        (Sandbox::echo(), ["chat", "."].as_slice(), "message"),
        (slow(), &["run", ".", "hello"], "script.yaml"),
        (Sandbox::asking(), &["run", ".", "hello"], "once"),
    ] {
        let status = hang_up(AtTerminal::new(&sandbox, arguments).command(), until);
        assert!(!status.success(), "{arguments:?}: {status}");
    }
}

#[test]
fn a_signal_ends_an_editor_that_is_open_and_gives_the_terminal_back() {
    for editor in [
        "sh -c 'stty raw -echo; printf \"\\033[?1049hediting\"; sleep 60' sh",
        "sh -c 'trap \"\" TERM; echo editing; sleep 60' sh",
    ] {
        let sandbox = Sandbox::asking();
        let session = AtTerminal::new(&sandbox, &["run", ".", "hello"]).env("EDITOR", editor).start();
        answer(&session, 'E');
        session.wait_for("editing");
        session.signal(Signal::TERM);
        assert_eq!(session.wait_exit(), 143, "{}", session.scrollback_text());
        assert_eq!(session.terminal_modes(), TerminalModes::NORMAL);
        assert!(!session.is_alternate());
    }
}

#[test]
fn modes_that_a_broken_editor_left_are_mended() {
    let sandbox = Sandbox::asking();
    let session = AtTerminal::new(&sandbox, &["run", ".", "hello"]);
    let session = session.env("EDITOR", "sh -c 'stty raw -echo; kill -9 $$' sh").start();
    answer(&session, 'E');
    session.wait_for_visible("`sh` did not end well");
    session.wait_for_visible("Ctrl-C stops");
    session.key(Key::Char('y'));
    ended(&session, 0);
}

#[test]
fn at_the_shell_for_a_while_and_back() {
    let sandbox = Sandbox::echo();
    let mut session = chat(&sandbox);
    session.keys("half a ");
    session.wait_for_visible("half a");
    for in_tree in [false, true] {
        if in_tree {
            session.key(Key::Ctrl('t'));
            session.wait_for_visible("[Esc] back");
        }
        session.key(Key::Ctrl('z'));
        session.wait_stopped();
        is_as_before(&session);
        session.resume();
        session.wait_until(|screen| screen.bracketed_paste() && screen.alternate_screen() == in_tree);
    }
    session.key(Key::Esc);
    session.wait_for_visible("half a");
    session.keys("sentence\r");
    session.wait_for("half a sentence");
    at_rest(&session);
    leave(&session);
}

#[test]
fn a_program_that_was_killed_leaves_what_it_must() {
    let sandbox = Sandbox::echo();
    let session = chat(&sandbox);
    session.signal(Signal::KILL);
    assert_eq!(session.wait_exit(), 128 + 9);
    assert_ne!(
        session.terminal_modes(),
        TerminalModes::NORMAL,
        "the test sees a terminal that was not given back"
    );
}
