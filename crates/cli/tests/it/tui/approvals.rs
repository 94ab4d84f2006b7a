//! Questions to the person, each kind of answer.

use llm_do_testing::terminal::{Key, TerminalSession};

use crate::support::Sandbox;
use crate::tui::support::{AtTerminal, CHOICES, answer, chat, ended, leave, start};

/// An agent that writes a file and then says that it is done; after a denial it says the words that it was told.
fn writing(calls: &[&str]) -> Sandbox {
    let asks: String = calls.iter().map(|call| format!("  - ask: {{write_file: {call}}}\n")).collect();
    Sandbox::new()
        .file(
            "main.agent",
            "---\nname: main\nmodel: script:script.yaml\ntoolsets: [filesystem_project]\n---\nWrite.\n",
        )
        .file("script.yaml", &format!("mode: by_turn\nreplies:\n{asks}  - say: all is written\n"))
}

fn one_note() -> Sandbox {
    writing(&["{path: notes/a.md, content: \"first\\nsecond\\n\"}"])
}

fn run(sandbox: &Sandbox) -> TerminalSession {
    start(sandbox, &["run", ".", "hello"])
}

fn read(sandbox: &Sandbox, path: &str) -> String {
    std::fs::read_to_string(sandbox.path(path)).unwrap_or_default()
}

#[test]
fn a_call_is_allowed_once() {
    let sandbox = one_note();
    let session = run(&sandbox);
    session.wait_for_visible(CHOICES);
    let shown = session.screen_text();
    for words in ["main > write_file", "create `notes/a.md`", "\"path\": \"notes/a.md\"", "+first"] {
        assert!(shown.contains(words), "`{words}` is not in\n{shown}");
    }
    assert!(!sandbox.path("notes/a.md").exists());
    session.key(Key::Char('y'));
    ended(&session, 0);
    let all = session.scrollback_text();
    assert!(all.contains("write_file: you allowed it once") && all.contains("all is written"), "{all}");
    assert!(!all.contains(CHOICES), "the question is still there\n{all}");
    assert_eq!(read(&sandbox, "notes/a.md"), "first\nsecond\n");
    let recorded = sandbox.run(&["show", "last", "--output", "jsonl"]).ended(0);
    assert!(recorded.stdout.contains(r#""answered_by":{"via":"tui"}"#), "{recorded:?}");
}

#[test]
fn a_scope_covers_later_calls_until_it_is_taken_back() {
    let sandbox = writing(&[
        "{path: notes/a.md, content: a}",
        "{path: notes/b.md, content: b}",
        "{path: notes/c.md, content: c}",
    ]);
    let session = chat(&sandbox);
    session.keys("hello\r");
    answer(&session, 'a');
    session.wait_for_visible("until this session ends, allow");
    session.wait_for_visible(" 3  every call of this tool");
    session.wait_for_visible("[1-9] allows");
    session.key(Key::Char('3'));
    session.wait_for("all is written");
    assert_eq!(read(&sandbox, "notes/c.md"), "c", "{}", session.scrollback_text());
    session.keys("/approvals\r");
    session.wait_for_visible("1  main > write_file: every call of this tool");
    session.keys("/revoke 2\r");
    session.wait_for_visible("grant `2` does not exist; /approvals lists them");
    session.keys("/revoke 1\r");
    session.wait_for_visible("is withdrawn");
    session.keys("/approvals\r");
    session.wait_for_visible("nothing is allowed beyond single calls");
    leave(&session);
}

#[test]
fn arguments_are_edited_in_place_and_asked_about_again() {
    let sandbox = writing(&["{path: a.md, content: wrong}"]);
    let session = run(&sandbox);
    answer(&session, 'e');
    session.wait_for_visible("[Ctrl-S] asks again with it");
    // The content stands in the second row, with a comma behind it.
    session.keys("\u{1b}[1;5H");
    [Key::Down, Key::End, Key::Left].into_iter().for_each(|key| session.key(key));
    (0.."wrong\"".len()).for_each(|_| session.key(Key::Backspace));
    session.keys("right\"");
    session.wait_for_visible("\"content\": \"right\"");
    session.key(Key::Ctrl('s'));
    session.wait_gone("[Ctrl-S]");
    session.wait_for_visible(CHOICES);
    let shown = session.screen_text();
    assert!(shown.contains("+right") && !shown.contains("wrong"), "{shown}");
    session.key(Key::Char('y'));
    ended(&session, 0);
    assert!(session.scrollback_text().contains("you allowed it with changed arguments"));
    assert_eq!(read(&sandbox, "a.md"), "right");
}

#[test]
fn arguments_are_edited_in_the_editor_of_the_person() {
    let sandbox = writing(&["{path: a.md, content: wrong}"])
        .file("edit.sh", "stty > modes\nsed -i 's/wrong/right/' \"$1\"\n");
    let session = AtTerminal::new(&sandbox, &["run", ".", "hello"]).env("EDITOR", "sh edit.sh").start();
    answer(&session, 'E');
    session.wait_for_visible("+right");
    answer(&session, 'y');
    ended(&session, 0);
    assert_eq!(read(&sandbox, "a.md"), "right");
    let modes = read(&sandbox, "modes");
    assert!(
        !modes.contains("-icanon") && !modes.contains("-echo "),
        "the editor had a raw terminal: {modes}"
    );
}

#[test]
fn an_editor_that_fails_is_no_answer() {
    let sandbox = writing(&["{path: a.md, content: x}"]);
    let session = AtTerminal::new(&sandbox, &["run", ".", "hello"]).env("EDITOR", "false").start();
    answer(&session, 'E');
    session.wait_for_visible("`false` did not end well");
    // The question takes keys again after a pause: earlier ones may have been meant for the editor.
    session.wait_for_visible("Ctrl-C stops");
    session.key(Key::Char('q'));
    ended(&session, 130);
    assert!(!sandbox.path("a.md").exists());
}

#[test]
fn a_denial_gives_the_model_the_words_of_the_person() {
    let sandbox = writing(&[]).file(
        "script.yaml",
        "- when: {result_of: write_file, contains: not in that place}\n  say: understood\n\
         - when: {result_of: write_file}\n  say: no words came\n\
         - ask: {write_file: {path: a.md, content: x}}\n",
    );
    let session = run(&sandbox);
    answer(&session, 'n');
    session.wait_for_visible("[Enter] denies");
    session.keys("not in that place\r");
    ended(&session, 0);
    let all = session.scrollback_text();
    assert!(all.contains("understood") && all.contains("⊘ write_file"), "{all}");
    assert!(!sandbox.path("a.md").exists());
}

#[test]
fn stopping_at_a_question_ends_the_run() {
    let sandbox = one_note();
    let session = run(&sandbox);
    answer(&session, 'q');
    ended(&session, 130);
    assert!(session.scrollback_text().contains("interrupted after"), "{}", session.scrollback_text());
    assert!(!sandbox.path("notes/a.md").exists());
}

#[test]
fn a_change_of_a_file_is_shown_as_a_colored_diff() {
    let sandbox = one_note().file("notes/a.md", "first\nold\n");
    let session = run(&sandbox);
    session.wait_for_visible(CHOICES);
    assert_eq!(color_of(&session, "-old"), vt100::Color::Idx(1), "{}", session.screen_text());
    assert_eq!(color_of(&session, "+second"), vt100::Color::Idx(2), "{}", session.screen_text());
    session.key(Key::Char('y'));
    ended(&session, 0);
}

/// The color of the first character of a text on the screen.
#[track_caller]
fn color_of(session: &TerminalSession, text: &str) -> vt100::Color {
    let screen = session.screen();
    let rows: Vec<String> = screen.rows(0, screen.size().1.get()).collect();
    let (row, column) = rows
        .iter()
        .enumerate()
        .find_map(|(row, words)| words.find(text).map(|place| (row, words[..place].chars().count())))
        .unwrap_or_else(|| panic!("`{text}` is not on the screen"));
    screen.cell(u16::try_from(row).unwrap(), u16::try_from(column).unwrap()).unwrap().fgcolor()
}

#[test]
fn a_command_is_shown_with_its_directory() {
    let sandbox = Sandbox::new()
        .file(
            "main.agent",
            "---\nname: main\nmodel: script:script.yaml\ntoolsets: [shell_file_ops]\n---\nx\n",
        )
        .file("old.txt", "moved")
        .file(
            "script.yaml",
            "mode: by_turn\nreplies:\n  - ask: {shell: {command: \"mv old.txt made.txt\"}}\n  - say: over\n",
        );
    let session = AtTerminal::new(&sandbox, &["run", ".", "hello"]).size(140, 24).start();
    session.wait_for_visible(CHOICES);
    let shown = session.screen_text();
    let directory = sandbox.root().canonicalize().unwrap();
    assert!(shown.contains("mv old.txt made.txt"), "{shown}");
    assert!(shown.contains(&*directory.to_string_lossy()), "{shown}");
    session.key(Key::Char('y'));
    ended(&session, 0);
    assert!(sandbox.path("made.txt").exists(), "{}", session.scrollback_text());
}

#[test]
fn a_budget_that_is_used_up_can_grow() {
    let sandbox = Sandbox::new()
        .file("project.yaml", "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\nruntime: {limits: {tool_calls: 1}}\n")
        .file("main.agent", "---\nname: main\nmodel: script:script.yaml\ntoolsets: [helper]\n---\nAsk.\n")
        .file("helper.agent", "---\nname: helper\nmodel: test:echo\n---\nHelp.\n")
        .file(
            "script.yaml",
            "mode: by_turn\nreplies:\n  - ask: {helper: {input: one}}\n  - ask: {helper: {input: two}}\n  - say: the end\n",
        );
    let session = run(&sandbox);
    session.wait_for_visible("[Enter] answers");
    session.wait_for_visible("extend by how many calls?");
    session.keys("many");
    session.wait_for_visible("> many");
    session.key(Key::Enter);
    session.wait_for_visible("a number, or Enter alone for no");
    session.key(Key::Ctrl('u'));
    session.keys("5");
    session.wait_for_visible("> 5");
    session.key(Key::Enter);
    ended(&session, 0);
    assert!(session.scrollback_text().contains("the end"), "{}", session.scrollback_text());
    let refused = run(&sandbox);
    refused.wait_for_visible("[Enter] answers");
    refused.key(Key::Enter);
    ended(&refused, 0);
    let all = refused.scrollback_text();
    assert!(all.contains("the limit of 1 tool call set by the run is used up"), "{all}");
}

#[test]
fn a_text_longer_than_the_screen_must_be_seen_before_it_is_allowed() {
    let lines: String = (1..=60).map(|number| format!("line {number}\\n")).collect();
    let sandbox = writing(&[&format!("{{path: a.md, content: \"{lines}\"}}")]);
    let session = run(&sandbox);
    answer(&session, 'y');
    session.wait_for_visible("more rows to see");
    assert!(!sandbox.path("a.md").exists());
    session.key(Key::End);
    session.wait_for_visible("+line 60");
    session.key(Key::Char('y'));
    session.wait_gone("+line 60");
    while !session.screen_text().contains("+line 60") {
        let before = session.screen_text();
        session.key(Key::PageDown);
        session.wait_until(|screen| screen.contents() != before);
    }
    session.key(Key::Char('y'));
    ended(&session, 0);
    assert!(sandbox.path("a.md").exists());
}

#[test]
fn what_is_typed_while_a_question_comes_lands_in_the_input() {
    let sandbox = one_note().file(
        "script.yaml",
        "mode: by_turn\nreplies:\n  - ask: {write_file: {path: a.md, content: x}}\n    delay: 1s\n  - say: all is written\n  - say: and more\n",
    );
    let session = chat(&sandbox);
    session.keys("hello\r");
    session.wait_for_visible("Esc stops");
    session.keys("yyy a");
    session.wait_for_visible("Tab answers; typing goes to the input");
    session.wait_for_visible("yyy a");
    session.keys("y");
    session.wait_for_visible("yyy ay");
    assert!(!sandbox.path("a.md").exists() && session.screen_text().contains("Tab answers"));
    session.key(Key::Tab);
    answer(&session, 'y');
    session.wait_for("all is written");
    session.wait_for_visible("yyy ay");
    session.key(Key::Enter);
    session.wait_for("and more");
    leave(&session);
}
