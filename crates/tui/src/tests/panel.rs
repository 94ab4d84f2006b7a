//! Questions as they stand on the screen.

use insta::assert_snapshot;
use llm_do_core::{ApprovalRequest, Limits, Quantity};
use serde_json::json;

use super::driver::{A_WHILE, Driver, on_three_screens, options};
use super::events::text;
use super::requests::{deceitful, extension, files, long, request, shell, write};
use crate::{Theme, UiOptions};

fn single() -> UiOptions {
    UiOptions { chat: false, awaits_input: false, ..options() }
}

/// A run that waits for an answer to these questions, after these keys.
fn asking(options: &UiOptions, requests: &[ApprovalRequest], keys: &str) -> String {
    on_three_screens(options, |driver| {
        ask(driver, requests, keys);
        driver.screen()
    })
}

fn ask(driver: &mut Driver, requests: &[ApprovalRequest], keys: &str) {
    let main = driver.begins("main", Limits::default());
    driver.asks_model(&main, "anthropic:sonnet", vec![text("Tidy up.")]);
    for request in requests {
        let call = driver.calls_tool(&main, &request.name, request.arguments.value().clone());
        driver.requests(&call, request);
        // The answer is awaited for as long as the driver lives.
        std::mem::forget(driver.ask(request.clone()));
    }
    driver.wait(A_WHILE);
    driver.press(keys);
}

#[test]
fn a_file_is_written_over() {
    assert_snapshot!(asking(&single(), &[write()], ""));
}

#[test]
fn a_diff_has_colors() {
    let theme = Theme { colors: true, light: false };
    let mut driver = Driver::new(UiOptions { theme, ..single() }, (80, 24));
    ask(&mut driver, &[write()], "");
    assert_snapshot!(driver.styled());
}

#[test]
fn a_command_is_run_in_a_directory() {
    assert_snapshot!(asking(&single(), &[shell()], ""));
}

#[test]
fn an_agent_is_given_files() {
    assert_snapshot!(asking(&single(), &[files()], ""));
}

#[test]
fn signs_that_deceive_are_written_out_and_lookalikes_are_named() {
    assert_snapshot!(asking(&single(), &[deceitful()], ""));
}

#[test]
fn a_diff_shows_what_differs_in_tabs_and_line_ends() {
    let preview = Some("--- a\n+++ b\n@@ -1,2 +1,2 @@\n-one\n-\ttwo\n+one\r\n+    two\n".to_owned());
    let mut driver = Driver::new(single(), (80, 24));
    ask(&mut driver, &[ApprovalRequest { preview, ..request("write_file", json!({})) }], "");
    let screen = driver.screen();
    assert!(screen.contains("|  +one\\r\n"), "{screen}");
    assert!(screen.contains("|  -→   two\n") && screen.contains("|  +    two\n"), "{screen}");
}

#[test]
fn signs_of_one_cluster_that_is_wider_than_a_row_are_all_seen() {
    let piled = format!("क{}ends", "\u{93e}".repeat(60));
    let marked = format!("e{}", "\u{301}".repeat(60));
    let mut driver = Driver::new(single(), (40, 60));
    ask(&mut driver, &[request("say", json!({"a": piled, "b": marked}))], "");
    let screen = driver.screen().replace("\n|↪ ", "");
    assert_eq!(screen.matches("\\u093e").count() + screen.matches("\\u0301").count(), 120, "{screen}");
}

#[test]
fn long_arguments_begin_at_their_first_row() {
    assert_snapshot!(asking(&single(), &[long()], ""));
}

#[test]
fn long_arguments_scrolled_to_their_end() {
    assert_snapshot!(asking(&single(), &[long()], "<End>"));
}

#[test]
fn unseen_rows_are_hinted_at() {
    assert_snapshot!(asking(&single(), &[long()], "y"));
}

#[test]
fn scopes_say_what_they_would_have_covered() {
    let elsewhere = ApprovalRequest {
        subjects: vec![llm_do_core::Subject::Path("log/1.md".to_owned())],
        arguments: json!({"path": "log/1.md", "content": ""}).into(),
        ..write()
    };
    let shown = on_three_screens(&single(), |driver| {
        let main = driver.begins("main", Limits::default());
        for earlier in [&write(), &elsewhere] {
            let call = driver.calls_tool(&main, "write_file", earlier.arguments.value().clone());
            driver.requests(&call, earlier);
            driver.is_allowed(&call, earlier.arguments.value().clone());
            driver.returns(&call, "wrote it");
        }
        std::mem::forget(driver.ask(write()));
        driver.wait(A_WHILE);
        driver.read_on();
        driver.press("a");
        driver.wait(A_WHILE);
        driver.press("<Down><Down>");
        driver.screen()
    });
    assert_snapshot!(shown);
}

#[test]
fn a_denial_has_room_for_words() {
    assert_snapshot!(asking(&single(), &[shell()], "n"));
}

#[test]
fn a_denial_with_words() {
    let words =
        "nnot in this directory: the workspace has its own target<S-Enter>and try `cargo check` first";
    assert_snapshot!(asking(&single(), &[shell()], words));
}

#[test]
fn arguments_are_edited_in_place() {
    assert_snapshot!(asking(&single(), &[shell()], "e"));
}

#[test]
fn edited_arguments_that_are_no_json_are_complained_about() {
    assert_snapshot!(asking(&single(), &[shell()], "e<Backspace><C-s>"));
}

#[test]
fn edited_arguments_that_do_not_fit_come_back_with_the_problem() {
    let problem = "`directory` must be a string, not a number".to_owned();
    let edited = ApprovalRequest {
        edit_problem: Some(problem),
        arguments: json!({"command": "cargo test", "directory": 7}).into(),
        ..shell()
    };
    assert_snapshot!(asking(&single(), &[edited], ""));
}

#[test]
fn a_budget_may_grow() {
    for (what, name) in
        [(Quantity::Cost, "cost"), (Quantity::Tokens, "tokens"), (Quantity::ToolCalls, "tool_calls")]
    {
        let shown = on_three_screens(&single(), |driver| {
            let main = driver.begins("main", Limits::default());
            driver.calls_agent(&main, "writer", "go on");
            std::mem::forget(driver.ask_to_extend(extension(what)));
            driver.wait(A_WHILE);
            let before = driver.screen();
            driver.press("0.x<Enter>");
            format!("{before}{}", driver.screen())
        });
        assert_snapshot!(format!("a_budget_may_grow_{name}"), shown);
    }
}

#[test]
fn three_questions_wait_and_are_turned_over() {
    assert_snapshot!(asking(&single(), &[shell(), write(), files()], "<Right>"));
}

#[test]
fn a_question_that_does_not_take_keys_says_so() {
    let shown = on_three_screens(&options(), |driver| {
        driver.press("tidy up<Enter>");
        driver.press("a draft");
        ask(driver, &[shell()], "");
        driver.screen()
    });
    assert_snapshot!(shown);
}

#[test]
fn a_question_above_an_empty_input() {
    let shown = on_three_screens(&options(), |driver| {
        driver.press("tidy up<Enter>");
        ask(driver, &[shell()], "");
        driver.screen()
    });
    assert_snapshot!(shown);
}

#[test]
fn a_call_without_arguments() {
    assert_snapshot!(asking(&single(), &[request("restart", json!({}))], ""));
}
