//! The input of a chat, its list of completions, forms, and what the UI says itself.

use insta::assert_snapshot;
use llm_do_core::{Limits, Schema, Status};
use serde_json::json;

use super::driver::{Driver, on_three_screens, options};
use super::events::{text, used};
use crate::{OfferedModel, UiCommand, UiOptions, UiUpdate};

#[test]
fn an_empty_input_says_what_it_is_for() {
    assert_snapshot!(on_three_screens(&options(), Driver::all));
}

#[test]
fn a_draft_of_several_lines() {
    assert_snapshot!(on_three_screens(&options(), |driver| {
        driver.press(
            "Dear harbour master, may we stay for the whole of the second week of July?<S-Enter>Yours",
        );
        driver.all()
    }));
}

#[test]
fn a_message_waits_for_the_end_of_the_turn() {
    assert_snapshot!(on_three_screens(&options(), |driver| {
        driver.press("first<Enter>");
        let main = driver.begins("main", Limits::default());
        driver.asks_model(&main, "anthropic:sonnet", vec![text("first")]);
        driver.press("second, which is a rather long message that does not fit into narrow windows<Enter>third<Enter>{\"a\": 1}<Enter>dra");
        driver.wait(2_000);
        driver.all()
    }));
}

#[test]
fn commands_are_offered_behind_a_slash() {
    assert_snapshot!(on_three_screens(&options(), |driver| {
        driver.press("/<Down>");
        driver.all()
    }));
}

/// A chat that can choose between three models.
fn with_models() -> UiOptions {
    let model = |name: &str, description: &str| OfferedModel {
        name: name.to_owned(),
        description: description.to_owned(),
    };
    UiOptions {
        model: Some("anthropic:claude-opus-5".to_owned()),
        models: vec![
            model("anthropic:claude-opus-5", "of this project"),
            model("openai:gpt-5", "$1.25 in, $10 out, 400k tokens"),
            model("openai:gpt-5-mini", "$0.25 in, $2 out, 400k tokens"),
        ],
        ..options()
    }
}

#[test]
fn the_model_is_shown_and_others_are_offered() {
    assert_snapshot!(on_three_screens(&with_models(), |driver| {
        driver.press("/model<Enter>");
        driver.all()
    }));
}

#[test]
fn a_model_is_chosen_with_the_arrow_keys_or_by_typing() {
    for keys in ["/model<Enter><Down><Down><Enter>", "/model<Enter>mini<Enter>", "/model mini<Enter>"] {
        let mut driver = Driver::new(with_models(), (80, 24));
        driver.press(keys);
        assert_eq!(driver.commands(), [UiCommand::UseModel("openai:gpt-5-mini".to_owned())], "{keys}");
        driver.update(UiUpdate::Model(Some("openai:gpt-5-mini".to_owned())));
        driver.update(UiUpdate::Ready);
        let screen = driver.screen();
        assert!(screen.contains("· openai:gpt-5-mini\n") && !screen.contains("claude"), "{screen}");
    }
    // Leaving the list leaves the model as it is.
    let mut driver = Driver::new(with_models(), (80, 24));
    driver.press("/model<Enter><Esc><C-u>");
    assert_eq!(driver.commands(), []);
    // So does Enter at once, whatever was chosen before.
    driver.update(UiUpdate::Model(Some("test:echo".to_owned())));
    driver.press("/model<Enter><Enter>");
    assert_eq!(driver.commands(), [UiCommand::UseModel("test:echo".to_owned())]);
    driver.update(UiUpdate::Model(Some("anthropic:claude-opus-5".to_owned())));
    driver.update(UiUpdate::Ready);
    assert!(driver.screen().contains("· anthropic:claude-opus-5\n"), "{}", driver.screen());
}

#[test]
fn an_unknown_command_is_hinted_at() {
    assert_snapshot!(on_three_screens(&options(), |driver| {
        driver.press("/qiut<Enter>");
        driver.all()
    }));
}

#[test]
fn help_lists_keys_and_commands() {
    assert_snapshot!(on_three_screens(&options(), |driver| {
        driver.press("/help<Enter>");
        driver.all()
    }));
}

#[test]
fn usage_is_told_by_model() {
    assert_snapshot!(on_three_screens(&options(), |driver| {
        driver.press("hi<Enter>");
        let main = driver.begins("main", Limits::default());
        driver.answers(&main, "anthropic:sonnet", vec![text("Hello.")], used(12_000, 800));
        driver.ends(&main, Status::Done, Some("Hello."), None);
        driver.update(UiUpdate::Ready);
        driver.press("/usage<Enter>");
        driver.all()
    }));
}

#[test]
fn remarks_of_the_program() {
    assert_snapshot!(on_three_screens(&options(), |driver| {
        driver.update(UiUpdate::UserMessage("said before this screen was there".to_owned()));
        driver.update(UiUpdate::Info("answers come from `openai:gpt-5` from now on".to_owned()));
        driver.update(UiUpdate::Draft("a draft from elsewhere".to_owned()));
        driver.all()
    }));
}

/// A chat with an agent whose input is typed.
pub(super) fn test_support() -> UiOptions {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "where to look"},
            "nights": {"type": "integer", "minimum": 1, "description": "how long"},
            "kind": {"enum": ["tent", "boat", "room"]},
            "pets": {"type": "boolean", "default": false}
        },
        "required": ["city", "nights"]
    });
    UiOptions { input_schema: Some(Schema::new(schema).unwrap()), ..options() }
}

#[test]
fn a_typed_input_is_asked_for_by_a_form() {
    assert_snapshot!(on_three_screens(&test_support(), Driver::all));
}

#[test]
fn a_form_that_lacks_something_says_what() {
    assert_snapshot!(on_three_screens(&test_support(), |driver| {
        driver.press("Kiel<Tab>many<C-s>");
        driver.all()
    }));
}
