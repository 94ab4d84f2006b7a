//! Text that streams: several agents at once, and a lot of it.

use llm_do_testing::terminal::{Key, TerminalSession};
use serde_json::json;

use crate::support::Sandbox;
use crate::tui::provider::FedProvider;
use crate::tui::support::{at_rest, chat, ended, leave};

fn two_writers() -> Sandbox {
    let writer = |name: &str| format!("---\nname: {name}\nmodel: openai-chat:small\n---\nYou are {name}.\n");
    Sandbox::new()
        .file("project.yaml", "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\n")
        .file(
            "main.agent",
            "---\nname: main\nmodel: openai-chat:small\ntoolsets: [red, blue]\n---\nYou are main.\n",
        )
        .file("red.agent", &writer("red"))
        .file("blue.agent", &writer("blue"))
}

#[test]
fn agents_that_speak_at_once_are_shown_apart_and_whole() {
    let sandbox = two_writers();
    let mut provider = FedProvider::start();
    let session = provider.begin(&sandbox, &["run", ".", "hello"]);
    provider.asked("You are main").ask(&[("red", json!({"input": "r"})), ("blue", json!({"input": "b"}))]);
    let (mut red, mut blue) = (provider.asked("You are red"), provider.asked("You are blue"));
    for number in 1..=20 {
        red.say(&format!("red {number}\n\n"));
        blue.say(&format!("blue {number}\n\n"));
        session.wait_until(|screen| {
            let text = screen.contents();
            text.contains(&format!("red {number}")) && text.contains(&format!("blue {number}"))
        });
    }
    red.end();
    session.wait_for("red 20");
    blue.end();
    let mut main = provider.asked("blue 20");
    main.say("both have spoken");
    main.end();
    ended(&session, 0);
    let all = session.scrollback_text();
    is_whole(&all, "red");
    is_whole(&all, "blue");
    assert!(all.find("blue 20") < all.find("both have spoken"), "{all}");
}

/// Says that twenty lines of a writer stand below each other and nowhere else.
#[track_caller]
fn is_whole(all: &str, writer: &str) {
    let lines: Vec<&str> = all.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let begin =
        lines.iter().position(|line| *line == format!("{writer} 1")).unwrap_or_else(|| panic!("{all}"));
    let wanted: Vec<String> = (1..=20).map(|number| format!("{writer} {number}")).collect();
    assert_eq!(lines[begin..begin + 20], wanted, "{all}");
    let spoken = lines.iter().filter(|line| wanted.iter().any(|wanted| **line == wanted)).count();
    assert_eq!(spoken, 20, "{all}");
}

#[test]
fn an_answer_streams_into_the_scrollback_while_it_grows() {
    let sandbox = Sandbox::new().file("main.agent", "---\nname: main\nmodel: openai-chat:small\n---\nx\n");
    let mut provider = FedProvider::start();
    let session = provider.begin(&sandbox, &["run", ".", "hello"]);
    let mut answer = provider.asked("hello");
    for number in 1..=60 {
        answer.say(&format!("paragraph {number}\n\n"));
    }
    session.wait_for("paragraph 59");
    assert!(
        !session.screen_text().contains("paragraph 1\n")
            && session.scrollback_text().contains("paragraph 1\n")
    );
    answer.say("the last words");
    answer.end();
    ended(&session, 0);
    let all = session.scrollback_text();
    let said: Vec<&str> = all.lines().filter(|line| line.starts_with("paragraph")).collect();
    assert_eq!(said, (1..=60).map(|number| format!("paragraph {number}")).collect::<Vec<_>>());
    assert_eq!(all.matches("the last words").count(), 1, "{all}");
}

#[test]
fn five_thousand_lines_stand_in_the_scrollback_in_order_and_keys_are_still_taken() {
    let lines: String = (1..=5000).map(|number| format!("    line {number}\n")).collect();
    let script = format!(
        "mode: by_turn\nreplies:\n  - say: |\n      ```text\n{}      ```\n",
        lines.replace("    line", "      line")
    );
    let sandbox = Sandbox::scripted(&script);
    let session = chat(&sandbox);
    session.keys("hello\r");
    session.wait_for("line 5000");
    at_rest(&session);
    session.keys("still here");
    session.wait_for_visible("still here");
    session.key(Key::Ctrl('u'));
    at_rest(&session);
    leave(&session);
    assert_eq!(numbers(&session), (1..=5000).collect::<Vec<_>>());
}

fn numbers(session: &TerminalSession) -> Vec<u32> {
    let all = session.scrollback_text();
    all.lines().filter_map(|line| line.split_once("line ")?.1.trim_end().parse().ok()).collect()
}
