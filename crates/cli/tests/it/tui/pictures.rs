//! The pictures of the guide, drawn from the screen of a scripted chat.
//!
//! `UPDATE_DOCS=1 cargo test -p llm-do-cli --test it pictures` writes them anew.

use std::path::PathBuf;

use llm_do_testing::screenshot;
use llm_do_testing::terminal::{Key, TerminalSession};
use serde_json::json;

use crate::support::Sandbox;
use crate::tui::provider::{FedAnswer, FedProvider};
use crate::tui::support::{CHOICES, leave};

const MESSAGE: &str = "A short piece about the harbour for tomorrow, please.";
const OLD_NOTE: &str = "# The harbour\n\nShips came in with the morning tide.\nThe cranes stood still.\n\nNobody was seen on the old quay.\n";
const NEW_NOTE: &str = "# The harbour\n\nEleven ships came in with the morning tide.\nThe cranes were busy until noon.\n\nNobody was seen on the old quay.\n";

/// A small newspaper: an editor, who has others look things up, write and judge.
fn newsroom() -> Sandbox {
    let agent = |name: &str, toolsets: &str| {
        format!(
            "---\nname: {name}\nmodel: openai-chat:gpt-5-mini\ntoolsets: {toolsets}\n---\nYou are the {name}.\n"
        )
    };
    Sandbox::new()
        .file("project.yaml", "version: 1\nentry: {agent: editor}\nagent_files: ['agents/*.agent']\n")
        .file("agents/editor.agent", &agent("editor", "[reporter, archivist, filesystem_project]"))
        .file("agents/reporter.agent", &agent("reporter", "[critic]"))
        .file("agents/archivist.agent", &agent("archivist", "[filesystem_project_ro]"))
        .file("agents/critic.agent", &agent("critic", "[]"))
        .file("notes/today.md", OLD_NOTE)
}

#[test]
fn the_pictures_of_the_guide_can_be_made() {
    let sandbox = newsroom();
    let mut provider = FedProvider::start();
    let session = provider.at_terminal(&sandbox, &["chat", "."]).size(100, 30).start();
    session.wait_for_visible("a message for editor");
    session.keys(MESSAGE);
    session.wait_for_visible(MESSAGE);
    session.key(Key::Enter);
    let critic = nested_run(&mut provider, &session);
    keep("nested-run", &session);
    question(&mut provider, critic, &session);
    keep("approval", &session);
    session.key(Key::Char('y'));
    let mut editor = provider.asked("I save the piece");
    editor.say("The piece stands in `notes/today.md`: two sentences, checked against the archive.");
    editor.end();
    session.wait_for("checked against the archive");
    session.key(Key::Ctrl('t'));
    session.wait_for_visible("[Esc] back");
    choose(&session, "reporter");
    keep("tree", &session);
    session.key(Key::Esc);
    session.wait_until(|screen| !screen.alternate_screen());
    leave(&session);
}

/// Agents at work that call a tool and another agent; the answer of the deepest one is left open.
fn nested_run(provider: &mut FedProvider, session: &TerminalSession) -> FedAnswer {
    let mut editor = provider.asked("You are the editor");
    editor.say("I need two things for this:\n\n1. what we wrote **before**, from the archive;\n2. a fresh look at the *quay*.\n\n");
    editor.ask(&[
        ("archivist", json!({"input": "What did we write about the harbour?"})),
        ("reporter", json!({"input": "Go to the quay and tell me what you see."})),
    ]);
    let archivist = provider.asked("You are the archivist");
    archivist.ask(&[("read_file", json!({"path": "notes/today.md"}))]);
    let mut archivist = provider.asked("The cranes stood still");
    archivist.say("Yesterday's note says that the cranes **stood still**; it counts no ships.");
    archivist.end();
    session.wait_for("it counts no ships");
    let mut reporter = provider.asked("You are the reporter");
    reporter.say("Eleven ships came in with the morning tide, and the cranes were busy until noon.");
    reporter.ask(&[("critic", json!({"input": "Is this plain enough?"}))]);
    let mut critic = provider.asked("You are the critic");
    critic.say("Plain and precise. It could say");
    session.wait_for_visible("It could say");
    critic
}

/// The critic ends, the reporter too, and the editor wants to save what they wrote.
fn question(provider: &mut FedProvider, mut critic: FedAnswer, session: &TerminalSession) {
    critic.say(" when the cranes began.");
    critic.end();
    let mut reporter = provider.asked("when the cranes began");
    reporter.say("Eleven ships came in with the morning tide.\nThe cranes were busy until noon.");
    reporter.end();
    let mut editor = provider.asked("it counts no ships");
    editor.say("Both agree. I save the piece.");
    editor.ask(&[("write_file", json!({"path": "notes/today.md", "content": NEW_NOTE}))]);
    session.wait_for_visible(CHOICES);
}

/// Goes down in the tree to a call: which of two agents began first is not said.
#[track_caller]
fn choose(session: &TerminalSession, name: &str) {
    let tree = session.screen_text();
    let row = |words: &str| tree.lines().position(|line| line.trim_start().starts_with(words));
    let (top, wanted) = (row("✓ editor").unwrap(), row(&format!("✓ {name}")).unwrap());
    (top..wanted).for_each(|_| session.key(Key::Down));
    session.wait_for_visible(&format!("editor > {name}"));
}

/// Draws the screen, writes it where that was asked for, and compares the size with what is kept.
#[track_caller]
fn keep(name: &str, session: &TerminalSession) {
    let made = screenshot::svg(&session.screen(), "llm-do chat newsroom");
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/images").join(format!("{name}.svg"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    // The first line has width and height. Times and the spinner differ from run to run.
    assert!(
        kept.lines().next() == made.lines().next(),
        "docs/images/{name}.svg is out of date: run `cargo xtask docs`"
    );
}
