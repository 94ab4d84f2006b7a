//! Forms in a chat: what does not fit stays, and what was refused comes back.

use insta::assert_snapshot;
use llm_do_core::{Limits, Schema, Status};
use serde_json::json;

use super::driver::{Driver, on_three_screens, options};
use super::input::test_support;
use crate::{UiCommand, UiOptions, UiUpdate};

fn typed_chat() -> Driver {
    Driver::new(test_support(), (80, 24))
}

#[test]
fn a_value_beyond_its_limit_is_told_at_its_field() {
    assert_snapshot!(on_three_screens(&test_support(), |driver| {
        driver.press("Kiel<Tab>0<Tab><Right><C-s>");
        driver.all()
    }));
}

#[test]
fn the_keys_of_a_choice_are_said() {
    assert_snapshot!(on_three_screens(&test_support(), |driver| {
        driver.press("Kiel<Tab>3<Tab><Right>");
        driver.all()
    }));
}

#[test]
fn a_form_that_does_not_fit_is_not_sent_and_can_be_mended() {
    let mut driver = typed_chat();
    driver.press("Kiel<Tab>0<C-s>");
    assert_eq!(driver.commands(), []);
    driver.press("<Backspace>2<C-s>");
    assert_eq!(
        driver.commands(),
        [UiCommand::SubmitInput(json!({"city": "Kiel", "nights": 2, "pets": false}))]
    );
}

#[test]
fn a_form_that_is_refused_comes_back_with_what_was_typed() {
    let mut driver = typed_chat();
    driver.press("Kiel<Tab>2<C-s>");
    driver.commands();
    driver.update(UiUpdate::Rejected);
    driver.update(UiUpdate::Ready);
    let screen = driver.screen();
    assert!(screen.contains("|> Kiel") && screen.contains("|> 2"), "{screen}");
    driver.press("<Backspace>3<C-s>");
    assert_eq!(
        driver.commands(),
        [UiCommand::SubmitInput(json!({"city": "Kiel", "nights": 3, "pets": false}))]
    );
}

#[test]
fn a_form_that_was_taken_comes_back_empty() {
    let mut driver = typed_chat();
    driver.press("Kiel<Tab>2<C-s>");
    driver.update(UiUpdate::Ready);
    driver.update(UiUpdate::Rejected);
    let screen = driver.screen();
    assert!(screen.contains("city *") && !screen.contains("|> Kiel"), "{screen}");
}

#[test]
fn a_refused_call_comes_back_in_its_form() {
    let schema = Schema::object([("who".to_owned(), json!({"type": "string"}))], []);
    let callables = vec![("greet".into(), schema)];
    let mut driver = Driver::new(UiOptions { callables, ..options() }, (80, 24));
    driver.press("/call greet<Enter>Ada<C-s>");
    driver.update(UiUpdate::Rejected);
    driver.update(UiUpdate::Ready);
    driver.commands();
    driver.press("m<C-s>");
    assert_eq!(
        driver.commands(),
        [UiCommand::Call { name: "greet".to_owned(), input: json!({"who": "Adam"}) }]
    );
}

#[test]
fn a_refused_message_stands_in_the_input_again_unless_another_was_begun() {
    let mut driver = Driver::chat();
    driver.press("/call nobody {\"a\": 1}<Enter>");
    driver.update(UiUpdate::Rejected);
    driver.update(UiUpdate::Ready);
    assert!(driver.screen().contains("> /call nobody {\"a\": 1}"), "{}", driver.screen());
    driver.press("<Enter>something else");
    driver.update(UiUpdate::Rejected);
    driver.update(UiUpdate::Ready);
    assert!(driver.screen().contains("|> something else"), "{}", driver.screen());
}

#[test]
fn of_messages_that_wait_each_comes_back_for_itself() {
    let mut driver = Driver::chat();
    driver.press("one<Enter>two<Enter>");
    driver.update(UiUpdate::Ready);
    driver.update(UiUpdate::Rejected);
    driver.update(UiUpdate::Ready);
    assert!(driver.screen().contains("|> two"), "{}", driver.screen());
}

#[test]
fn json_that_does_not_fit_stays_in_the_input() {
    let mut driver = typed_chat();
    driver.press("<Esc>{\"city\": \"Kiel\", \"nights\": 0}<Enter>");
    assert_eq!(driver.commands(), []);
    let screen = driver.screen();
    assert!(screen.contains("`nights`: 0 is less than the minimum of 1"), "{screen}");
    assert!(screen.contains("> {\"city\": \"Kiel\", \"nights\": 0}"), "{screen}");
    driver.press("<Left><Backspace>4<Enter>");
    assert_eq!(driver.commands(), [UiCommand::SubmitInput(json!({"city": "Kiel", "nights": 4}))]);
}

#[test]
fn json_is_a_message_like_any_other_for_an_agent_that_takes_a_text() {
    let mut driver = Driver::chat();
    let line = "{\"input\": \"x\", \"attachments\": [\"/etc/passwd\"]}";
    driver.press(&format!("{line}<Enter>"));
    assert_eq!(driver.commands(), [UiCommand::Send { text: line.to_owned(), attachments: Vec::new() }]);
}

#[test]
fn json_in_a_line_attaches_no_files() {
    let mut driver = typed_chat();
    let line = "{\"city\": \"Kiel\", \"nights\": 1, \"attachments\": [\"/etc/passwd\"]}";
    driver.press(&format!("<Esc>{line}<Enter>"));
    assert_eq!(driver.commands(), []);
    let screen = driver.screen();
    assert!(screen.contains("cannot attach files: use the form"), "{screen}");
    let mut driver = Driver::chat();
    driver.press("/call reader {\"input\": \"x\", \"attachments\": [\"a.txt\"]}<Enter>");
    assert_eq!(driver.commands(), []);
    assert!(
        driver.screen().contains("cannot attach files: `/call reader` shows a form"),
        "{}",
        driver.screen()
    );
}

#[test]
fn a_text_for_a_typed_input_stays_in_the_input() {
    let mut driver = typed_chat();
    driver.press("<Esc>a week in Kiel<Enter>");
    assert_eq!(driver.commands(), []);
    let screen = driver.screen();
    assert!(screen.contains("write the input as JSON: it takes `city` (string)"), "{screen}");
    assert!(screen.contains("> a week in Kiel"), "{screen}");
}

#[test]
fn the_status_line_names_keys_that_work_in_a_form() {
    let mut driver = typed_chat();
    let screen = driver.screen();
    assert!(screen.contains("Ctrl-C twice leaves · Ctrl-T tree") && !screen.contains("/help"), "{screen}");
    driver.press("<C-c><C-c>");
    assert_eq!(driver.commands(), [UiCommand::Quit]);
}

#[test]
fn during_a_turn_the_keys_of_a_form_are_its_own() {
    let schema = Schema::object([("who".to_owned(), json!({"type": "string"}))], []);
    let callables = vec![("greet".into(), schema)];
    let mut driver = Driver::new(UiOptions { callables, ..options() }, (80, 24));
    driver.press("hi<Enter>");
    let main = driver.begins("main", Limits::default());
    driver.press("/call greet<Enter>");
    driver.commands();
    let screen = driver.screen();
    assert!(screen.contains("Ctrl-C stops") && !screen.contains("Esc stops"), "{screen}");
    driver.press("<Esc>");
    assert_eq!(driver.commands(), []);
    assert!(driver.screen().contains("Esc stops"), "{}", driver.screen());
    driver.ends(&main, Status::Done, Some("Hello."), None);
}
