//! The tree of calls on the whole screen.

use insta::assert_snapshot;
use llm_do_core::{FailureKind, Limits, Status};
use serde_json::json;

use super::driver::{Driver, on_three_screens, options};
use super::events::{Who, result_of, text, thought, used, wants};
use super::requests::shell;
use crate::{Theme, UiOptions};

const MODEL: &str = "anthropic:sonnet";

fn single() -> UiOptions {
    UiOptions { chat: false, awaits_input: false, ..options() }
}

/// An agent with calls that ended in several ways, and one that waits.
fn grown(driver: &mut Driver) -> Who {
    let main = driver.begins("main", Limits::default());
    driver.asks_model(&main, MODEL, vec![text("What is new?\nTell me\tall.")]);
    let read = json!({"path": "notes/plan.md"});
    let parts = vec![thought("I should look."), text("I **look** into the plan."), wants("read_file", &read)];
    driver.answers(&main, MODEL, parts, used(12_000, 900));
    let file = driver.calls_tool(&main, "read_file", read);
    driver.returns(&file, "# Plan\n- sail");
    driver.asks_model(&main, MODEL, vec![result_of("read_file", "# Plan\n- sail", false)]);
    let fetch = driver.calls_tool(&main, "fetch", json!({"url": "https://example.org"}));
    driver.logs(&fetch, "retrying\twith patience");
    driver.logs(&fetch, "giving up");
    driver.fails(&fetch, FailureKind::Tool, "connection refused");
    let denied = driver.calls_tool(&main, "delete_file", json!({"path": "notes"}));
    driver.fails(&denied, FailureKind::Denied, "denied: never");
    let writer = driver.calls_agent(&main, "writer", "Write two lines");
    driver.asks_model(&writer, "openai:gpt-5-with-a-long-name", vec![text("Write two lines")]);
    driver.answers(&writer, "openai:gpt-5-with-a-long-name", vec![text("Ships come.")], used(300, 20));
    let command = driver.calls_tool(&writer, "run_command", shell().arguments.value().clone());
    driver.requests(&command, &shell());
    let waiting = driver.calls_agent(&main, "counter", "Count");
    driver.asks_model(&waiting, MODEL, vec![text("Count")]);
    driver.wait(3_000);
    main
}

fn seen(keys: &str) -> String {
    on_three_screens(&single(), |driver| {
        grown(driver);
        std::mem::forget(driver.ask(shell()));
        driver.press(&format!("<C-t>{keys}"));
        driver.screen()
    })
}

#[test]
fn a_tree_with_a_call_that_waits() {
    assert_snapshot!(seen(""));
}

#[test]
fn a_tree_without_questions() {
    assert_snapshot!(on_three_screens(&single(), |driver| {
        let main = driver.begins("main", Limits::default());
        driver.calls_tool(&main, "look", json!({}));
        driver.wait(61_000);
        driver.press("<C-t>");
        driver.screen()
    }));
}

#[test]
fn an_empty_tree() {
    assert_snapshot!(on_three_screens(&options(), |driver| {
        driver.press("<C-t>");
        driver.screen()
    }));
}

#[test]
fn a_folded_call_says_how_many_it_hides() {
    assert_snapshot!(seen("<Down><Down><Down><Down><Left>"));
}

#[test]
fn the_input_of_a_call() {
    assert_snapshot!(seen("<Down>1"));
}

#[test]
fn the_input_of_a_call_is_what_it_was_allowed_to_do() {
    let mut driver = Driver::new(single(), (80, 24));
    let main = driver.begins("main", Limits::default());
    let call = driver.calls_tool(&main, "run_command", json!({"command": "rm all"}));
    driver.press("<C-t><Down>1");
    assert!(driver.screen().contains("\"command\": \"rm all\""), "{}", driver.screen());
    driver.is_allowed_changed(&call, json!({"command": "ls"}));
    assert!(driver.screen().contains("\"command\": \"ls\""), "{}", driver.screen());
}

#[test]
fn the_output_of_a_call_that_failed() {
    assert_snapshot!(seen("<Down><Down>2"));
}

#[test]
fn the_messages_of_a_call_while_it_is_read() {
    assert_snapshot!(seen("3<Tab>"));
}

#[test]
fn the_log_of_a_call() {
    assert_snapshot!(seen("<Down><Down>4"));
}

#[test]
fn a_long_tree_is_scrolled_to_the_chosen_call() {
    assert_snapshot!(on_three_screens(&single(), |driver| {
        let main = driver.begins("main", Limits::default());
        for number in 1..=60 {
            let call = driver.calls_tool(&main, &format!("tool_{number}"), json!({"number": number}));
            driver.returns(&call, "done");
        }
        driver.press("<C-t><End><Up>");
        driver.screen()
    }));
}

#[test]
fn long_messages_are_scrolled() {
    assert_snapshot!(on_three_screens(&single(), |driver| {
        let main = driver.begins("main", Limits::default());
        let lines: Vec<String> = (1..=80).map(|number| format!("line {number}")).collect();
        driver.asks_model(&main, MODEL, vec![text(&lines.join("\n"))]);
        driver.press("<C-t><Tab><PageDown><PageDown>");
        driver.screen()
    }));
}

#[test]
fn deep_trees_keep_room_for_names() {
    assert_snapshot!(on_three_screens(&single(), |driver| {
        let mut who = driver.begins("main", Limits::default());
        for level in 1..=12 {
            who = driver.calls_agent(&who, &format!("level_{level}"), "deeper");
        }
        driver.wait(1_000);
        driver.press("<C-t>");
        driver.screen()
    }));
}

#[test]
fn a_tree_has_colors() {
    let theme = Theme { colors: true, light: false };
    let mut driver = Driver::new(UiOptions { theme, ..single() }, (80, 24));
    grown(&mut driver);
    driver.press("<C-t>");
    assert_snapshot!(driver.styled());
}

#[test]
fn the_time_of_a_call_that_broke_off_stands_still() {
    let mut driver = Driver::single_run();
    let main = driver.begins("main", Limits::default());
    driver.calls_tool(&main, "look", json!({}));
    driver.wait(3_000);
    driver.ends(&main, Status::Interrupted, None, None);
    driver.press("<C-t>");
    let before = driver.screen();
    assert!(before.contains("3.0 s"), "{before}");
    driver.wait(5_000);
    assert_eq!(driver.screen(), before);
}
