//! The question whether a project is trusted, at a terminal.

use std::process::Command;

use llm_do_testing::terminal::TerminalSession;

use crate::support::Sandbox;
use crate::tui::support::{AtTerminal, COLUMNS, ROWS, start};

const CHOICES: &str = "[N] no >";

/// A project whose code leaves a mark when it runs.
fn marked() -> Sandbox {
    let code = "import pathlib\npathlib.Path(__file__).with_name('MARK').write_text('x')\n# the code that is viewed\nTOOLS = []\n";
    let manifest = "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\npython_files: [tools.py]\n";
    Sandbox::untrusted()
        .file("project.yaml", manifest)
        .file("main.agent", "---\nname: main\nmodel: test:echo\n---\nEcho.\n")
        .file("tools.py", code)
}

/// Asks in a run, answers, and returns the end.
#[track_caller]
fn replied(sandbox: &Sandbox, reply: &str) -> (i32, TerminalSession) {
    let session = start(sandbox, &["run", ".", "hello there", "--headless"]);
    session.wait_for(CHOICES);
    session.keys(reply);
    (session.wait_exit(), session)
}

/// Starts the program when there is a file `go`.
fn start_when_told(sandbox: &Sandbox, arguments: &[&str]) -> TerminalSession {
    let program = AtTerminal::new(sandbox, arguments).command();
    let mut shell = Command::new("sh");
    shell.args(["-c", "while [ ! -e go ]; do sleep 0.05; done; exec \"$@\"", "sh"]);
    shell.arg(program.get_program()).args(program.get_args()).current_dir(sandbox.root());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    TerminalSession::spawn(shell, COLUMNS, ROWS)
}

fn was_run(sandbox: &Sandbox) -> bool {
    sandbox.path("MARK").exists()
}

#[test]
fn enter_and_everything_unknown_mean_no() {
    for reply in ["\r", "n\r", "x\r", "yy\r", "\u{4}"] {
        let sandbox = marked();
        let (code, session) = replied(&sandbox, reply);
        assert_eq!(code, 2, "{reply:?}: {}", session.scrollback_text());
        assert!(!was_run(&sandbox), "{reply:?}");
    }
}

#[test]
fn an_answer_is_remembered_or_holds_for_one_run() {
    let sandbox = marked();
    assert_eq!(replied(&sandbox, "o\r").0, 0);
    assert!(was_run(&sandbox));
    assert_eq!(replied(&sandbox, "y\r").0, 0);
    let silent = start(&sandbox, &["run", ".", "hello there", "--headless"]);
    assert_eq!(silent.wait_exit(), 0);
    assert!(!silent.scrollback_text().contains("Trust"), "{}", silent.scrollback_text());
}

#[test]
fn a_project_can_be_run_without_its_powers() {
    let sandbox = marked();
    let (code, session) = replied(&sandbox, "w\r");
    assert_eq!(code, 0);
    assert!(session.scrollback_text().contains("hello there"), "{}", session.scrollback_text());
    assert!(!was_run(&sandbox));
}

#[test]
fn what_was_typed_before_the_question_is_not_an_answer() {
    let sandbox = marked();
    let session = start_when_told(&sandbox, &["run", ".", "hello", "--headless"]);
    session.keys("y\r");
    // The terminal shows it, so it waits for whoever reads next.
    session.wait_for("y");
    std::fs::write(sandbox.path("go"), "").unwrap();
    session.wait_for(CHOICES);
    session.keys("\r");
    assert_eq!(session.wait_exit(), 2, "{}", session.scrollback_text());
    assert!(!was_run(&sandbox));
}

#[test]
fn a_list_that_does_not_fit_is_viewed_before_it_is_agreed_to() {
    let sandbox = marked();
    let session = AtTerminal::new(&sandbox, &["run", ".", "hello", "--headless"])
        .env("PAGER", "cat")
        .size(60, 6)
        .start();
    session.wait_for(CHOICES);
    session.keys("y\r");
    session.wait_until(|screen| {
        let text = screen.contents();
        text.find("Not everything fits").is_some_and(|start| text[start..].contains(CHOICES))
    });
    assert!(!was_run(&sandbox));
    session.keys("v\r");
    session.wait_for("# the code that is viewed");
    session.wait_until(|screen| screen.contents().contains(CHOICES));
    session.keys("y\r");
    assert_eq!(session.wait_exit(), 0, "{}", session.scrollback_text());
}
