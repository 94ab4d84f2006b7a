//! Who gets the terminal UI, and who gets lines.

use llm_do_testing::terminal::TerminalSession;

use crate::support::Sandbox;
use crate::tui::support::{AtTerminal, CHOICES, ended, is_as_before, start};

/// Says that nothing was written but text.
#[track_caller]
fn is_plain(session: &TerminalSession) {
    let raw = session.raw_output();
    assert!(!raw.contains(&0x1b), "{}", String::from_utf8_lossy(&raw).escape_debug());
}

#[test]
fn plain_lines_have_no_escape_sequences_at_all() {
    let sandbox = Sandbox::asking();
    let session = start(&sandbox, &["run", ".", "hello", "--plain"]);
    session.wait_for("Type y to allow it once");
    session.keys("y\r");
    ended(&session, 0);
    is_plain(&session);
    let all = session.scrollback_text();
    assert!(all.contains("main > helper") && all.contains("the end"), "{all}");
}

#[test]
fn a_chat_in_plain_lines_has_no_escape_sequences_either() {
    let sandbox = Sandbox::echo();
    let session = start(&sandbox, &["chat", ".", "--plain"]);
    session.wait_for("Your message, then Enter:");
    session.keys("hello there\r");
    session.wait_for("\nhello there\n");
    session.wait_until(|screen| screen.contents().matches("Your message").count() == 2);
    session.keys("\u{4}");
    ended(&session, 0);
    is_plain(&session);
}

#[test]
fn no_color_leaves_every_color_out() {
    let sandbox = Sandbox::asking();
    let session = AtTerminal::new(&sandbox, &["run", ".", "hello"]).env("NO_COLOR", "1").start();
    session.wait_for_visible(CHOICES);
    session.keys("y");
    ended(&session, 0);
    let raw = String::from_utf8(session.raw_output()).unwrap();
    assert_eq!(colors_of(&raw), Vec::<&str>::new());
    let colored = start(&sandbox, &["run", ".", "hello"]);
    colored.wait_for_visible(CHOICES);
    colored.keys("y");
    ended(&colored, 0);
    let raw = String::from_utf8(colored.raw_output()).unwrap();
    assert_ne!(colors_of(&raw), Vec::<&str>::new(), "the test finds colors where there are some");
}

/// The escape sequences that set a color.
fn colors_of(raw: &str) -> Vec<&str> {
    let sequences = raw.split("\u{1b}[").skip(1);
    let styles = sequences.filter_map(|rest| {
        let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
        rest[end..].starts_with('m').then(|| &rest[..end])
    });
    let is_color = |style: &&str| {
        let mut codes = style.split(';').filter_map(|code| code.parse::<u16>().ok());
        codes.any(|code| matches!(code, 30..=38 | 40..=48 | 90..=97 | 100..=107))
    };
    styles.filter(is_color).collect()
}

#[test]
fn stdout_in_a_file_gets_exactly_the_answer() {
    let sandbox = Sandbox::asking();
    let session = AtTerminal::new(&sandbox, &["run", ".", "hello", "--tui"]).redirected().start();
    session.wait_for_visible(CHOICES);
    session.keys("y");
    ended(&session, 0);
    assert_eq!(std::fs::read_to_string(sandbox.path("stdout")).unwrap(), "the end\n");
    let lines = AtTerminal::new(&sandbox, &["run", ".", "hello", "--approve", "all"]).redirected().start();
    ended(&lines, 0);
    assert_eq!(std::fs::read_to_string(sandbox.path("stdout")).unwrap(), "the end\n");
    assert!(!lines.scrollback_text().contains("the end"), "no UI was asked for");
}

#[test]
fn a_terminal_that_can_do_nothing_gets_lines() {
    let sandbox = Sandbox::echo();
    let session = AtTerminal::new(&sandbox, &["run", ".", "hello"]).env("TERM", "dumb").start();
    assert_eq!(session.wait_exit(), 0);
    is_as_before(&session);
    assert_eq!(session.scrollback_text().lines().next(), Some("hello"), "{}", session.scrollback_text());
    let forced = AtTerminal::new(&sandbox, &["run", ".", "hello", "--tui"]).env("TERM", "dumb").start();
    assert_eq!(forced.wait_exit(), 2);
    assert!(forced.scrollback_text().contains("`--tui` needs a terminal"), "{}", forced.scrollback_text());
}

#[test]
fn events_for_a_program_and_a_ui_for_a_person_do_not_go_together() {
    let sandbox = Sandbox::echo();
    let session = start(&sandbox, &["run", ".", "hello", "--tui", "--output", "jsonl"]);
    ended(&session, 2);
    assert!(
        session.scrollback_text().contains("leave one of the two flags out"),
        "{}",
        session.scrollback_text()
    );
}
