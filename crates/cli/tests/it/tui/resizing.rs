//! Another size in the middle: nothing is left over, nothing is there twice.

use llm_do_testing::terminal::{Key, TerminalSession};

use crate::support::Sandbox;
use crate::tui::provider::FedProvider;
use crate::tui::support::{CHOICES, EMPTY_INPUT, answer, ended, leave, resize};

/// Gives the terminal other widths, and waits each time until the rule over the input has it.
#[track_caller]
fn resize_with_input(session: &TerminalSession) {
    for columns in [40, 120, 80] {
        resize(session, columns);
        session.wait_until(|screen| {
            has_rule(screen, '─', columns) && screen.contents().matches(EMPTY_INPUT).count() == 1
        });
    }
}

/// No rule is longer: it would be two rows after the window has become narrower.
const MAX_RULE_WIDTH: u16 = 72;

/// Returns whether exactly one row is a rule, as long as the width allows.
fn has_rule(screen: &vt100::Screen, c: char, columns: u16) -> bool {
    let rows: Vec<String> = screen.rows(0, columns).collect();
    let is_part = |row: &&String| row.trim_end().ends_with(c);
    let parts: Vec<&String> = rows.iter().filter(is_part).collect();
    parts.len() == 1 && parts[0].trim_end().chars().count() == usize::from(columns.min(MAX_RULE_WIDTH))
}

#[test]
fn a_question_stands_once_whatever_the_size() {
    let sandbox = Sandbox::asking();
    let session = crate::tui::support::start(&sandbox, &["run", ".", "hello"]);
    session.wait_for_visible(CHOICES);
    for columns in [40, 120, 80] {
        resize(&session, columns);
        // A key that means nothing brings a frame, and a word about it.
        session.key(Key::Char('z'));
        session.wait_until(|screen| {
            let shown = screen.contents();
            let words =
                ["y, a, e, n or q", "━━ approval", "── arguments", "main > helper", "\"input\": \"may I\""];
            has_rule(screen, '━', columns) && words.iter().all(|words| shown.matches(words).count() == 1)
        });
    }
    // It takes keys again after a pause; keys that come together are not answer.
    session.wait_for_visible("Ctrl-C stops");
    session.key(Key::Up);
    answer(&session, 'y');
    ended(&session, 0);
    let all = session.scrollback_text();
    assert!(all.contains("the end") && !all.contains("━━") && !all.contains("[y]"), "{all}");
}

#[test]
fn a_resize_behind_the_tree_leaves_nothing_on_the_main_screen() {
    let sandbox = Sandbox::echo();
    let session = crate::tui::support::chat(&sandbox);
    crate::tui::support::say(&session, "hello there", "hello there");
    for columns in [120, 40, 80] {
        session.key(Key::Ctrl('t'));
        session.wait_for_visible("back");
        resize(&session, columns);
        session.key(Key::Ctrl('t'));
        session.wait_until(|screen| {
            let inputs = screen.contents().matches(EMPTY_INPUT).count();
            !screen.alternate_screen() && has_rule(screen, '─', columns) && inputs == 1
        });
    }
    leave(&session);
    assert!(!session.scrollback_text().contains("──"), "{}", session.scrollback_text());
}

#[test]
fn text_that_streams_stands_once_whatever_the_size() {
    let sandbox = Sandbox::new().file("main.agent", "---\nname: main\nmodel: openai-chat:small\n---\nx\n");
    let mut provider = FedProvider::start();
    let session = provider.begin(&sandbox, &["chat", ".", "hello"]);
    let mut answer = provider.asked("hello");
    answer.say("The first paragraph is whole before anything happens to the terminal, and longer than forty columns.\n\n");
    answer.say("The second one is still growing while the terminal");
    session.wait_for_visible("still growing");
    for columns in [40, 120, 80] {
        resize(&session, columns);
        session.wait_until(|screen| has_rule(screen, '─', columns));
        answer.say(&format!(" has {columns} columns,"));
        let words = format!("{columns} columns,");
        session.wait_until(|screen| {
            let shown = flowing(&screen.contents());
            let is_there_once = |words: &str| shown.matches(words).count() == 1;
            is_there_once(&words) && is_there_once("The second one") && is_there_once(EMPTY_INPUT)
        });
    }
    answer.say(" and ends.");
    answer.end();
    session.wait_for("and ends.");
    crate::tui::support::at_rest(&session);
    let all = flowing(&session.scrollback_text());
    for words in [
        "The first paragraph",
        "The second one",
        "has 40 columns, has 120 columns, has 80 columns, and ends.",
    ] {
        assert_eq!(all.matches(words).count(), 1, "`{words}` in\n{}", session.scrollback_text());
    }
    resize_with_input(&session);
    leave(&session);
    let left = session.scrollback_text();
    assert!(!left.contains("──") && !left.contains(EMPTY_INPUT), "{left}");
}

/// A text with its words in a row, however it was wrapped.
fn flowing(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
