//! The tree of calls on the whole screen.

use llm_do_testing::terminal::{Key, TerminalSession};

use crate::support::Sandbox;
use crate::tui::support::{CHOICES, answer, at_rest, chat, ended, leave, start};

#[track_caller]
fn is_tree(session: &TerminalSession) {
    session.wait_for_visible("[Esc] back");
    assert!(session.is_alternate());
}

/// A chat at rest, with a turn in which an agent was allowed to call another one.
fn after_a_turn() -> (Sandbox, TerminalSession) {
    let sandbox = Sandbox::asking();
    let session = chat(&sandbox);
    session.keys("hello\r");
    answer(&session, 'y');
    session.wait_for("the end");
    at_rest(&session);
    (sandbox, session)
}

#[test]
fn the_tree_comes_and_goes_and_leaves_the_main_screen_as_it_was() {
    let (_sandbox, session) = after_a_turn();
    let before = session.screen_text();
    for open in ["\u{14}", "/tree\r"] {
        session.keys(open);
        is_tree(&session);
        let tree = session.screen_text();
        assert!(tree.contains("2 calls") && tree.contains("✓ main") && tree.contains("  ✓ helper"), "{tree}");
        session.key(Key::Esc);
        session.wait_until(|screen| !screen.alternate_screen() && screen.contents().contains("the end"));
        assert_eq!(session.screen_text(), before);
    }
    leave(&session);
}

#[test]
fn a_call_is_read_at_length() {
    let (_sandbox, session) = after_a_turn();
    session.key(Key::Ctrl('t'));
    is_tree(&session);
    session.wait_for_visible("to the model");
    session.key(Key::Down);
    session.wait_for_visible("main > helper");
    session.key(Key::Char('1'));
    session.wait_for_visible("\"input\": \"may I\"");
    session.key(Key::Char('2'));
    session.wait_gone("\"input\"");
    session.wait_for_visible("may I");
    session.key(Key::Char('q'));
    session.wait_until(|screen| !screen.alternate_screen());
    leave(&session);
}

#[test]
fn a_question_is_not_answered_from_the_tree() {
    let sandbox = Sandbox::asking();
    let session = start(&sandbox, &["run", ".", "hello"]);
    session.wait_for_visible(CHOICES);
    session.key(Key::Ctrl('t'));
    is_tree(&session);
    session.wait_for_visible("1 waiting for you");
    session.keys("y");
    session.key(Key::Ctrl('t'));
    session.wait_until(|screen| !screen.alternate_screen());
    // It takes keys only after it has stood for a moment again.
    session.wait_gone(CHOICES);
    answer(&session, 'y');
    ended(&session, 0);
    assert!(session.scrollback_text().contains("the end"));
}

#[test]
fn one_call_is_cancelled_and_its_caller_goes_on() {
    let sandbox = Sandbox::asking()
        .file("project.yaml", "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\n")
        .file("helper.agent", "---\nname: helper\nmodel: script:slow.yaml\n---\nHelp.\n")
        .file("slow.yaml", "- say: too late\n  delay: 60s\n");
    let session = start(&sandbox, &["run", ".", "hello"]);
    session.wait_for_visible("helper");
    session.key(Key::Ctrl('t'));
    is_tree(&session);
    session.key(Key::Down);
    session.wait_for_visible("[c] cancel it");
    session.wait_for_visible("main > helper");
    session.key(Key::Char('c'));
    session.wait_for_visible("press c again");
    session.key(Key::Char('c'));
    ended(&session, 0);
    let all = session.scrollback_text();
    assert!(all.contains("the end") && !all.contains("too late"), "{all}");
}
