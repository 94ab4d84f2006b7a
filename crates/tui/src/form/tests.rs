use llm_do_testing::Chance;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::json;

use super::*;
use crate::Theme;
use crate::typed::{Screen, at_three_widths, keys};

fn every_kind() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "What the release is called,\nin one or two words."},
            "notes": {"type": ["string", "null"], "title": "Release notes"},
            "count": {"type": "integer", "default": 3, "description": "How often to try."},
            "share": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "dry": {"type": "boolean"},
            "loud": {"type": "boolean", "default": null},
            "colour": {"$ref": "#/$defs/Colour", "default": "green", "description": "Of the banner."},
            "version": {"const": 2},
            "labels": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["name", "dry", "version", "labels"],
        "$defs": {
            "Colour": {"oneOf": [
                {"const": "red", "description": "like blood"}, {"const": "green"}, {"enum": ["blue", "black"]}
            ]}
        }
    })
}

fn form_of(properties: Value, required: &[&str]) -> Form {
    Form::new("Form", &json!({"type": "object", "properties": properties, "required": required})).unwrap()
}

fn press(form: &mut Form, text: &str) -> FormStep {
    keys(text).into_iter().fold(FormStep::Going, |_, key| form.key(key))
}

fn sent(properties: Value, required: &[&str], text: &str) -> Value {
    let mut form = form_of(properties, required);
    match press(&mut form, text) {
        FormStep::Sent(value) => value,
        step => panic!("{step:?}: {:?}", problems(&form)),
    }
}

fn problems(form: &Form) -> Vec<(&str, &str)> {
    form.fields.iter().filter_map(|field| Some((field.name.as_str(), field.problem.as_deref()?))).collect()
}

#[test]
fn what_is_no_object_with_properties_has_no_form() {
    for schema in
        [json!(true), json!({"type": "string"}), json!({"type": "object"}), json!({"properties": {}})]
    {
        assert!(Form::new("", &schema).is_none(), "{schema}");
    }
    assert!(Form::new("", &json!({"type": "array", "properties": {"a": {}}})).is_none());
    assert!(
        Form::new("", &json!({"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": {}}}}})).is_some()
    );
}

#[test]
fn every_kind_of_field_gives_a_value_of_its_type() {
    let mut form = Form::new("Release", &every_kind()).unwrap();
    press(
        &mut form,
        "Spring<Tab>one<S-Enter>two<Tab><Backspace>12<Tab>0.5<Tab><Space><Tab>n<Tab><Right><Tab><Tab>[\"a\"]",
    );
    assert_eq!(
        press(&mut form, "<Enter>"),
        FormStep::Sent(json!({
            "name": "Spring", "notes": "one\ntwo", "count": 12, "share": 0.5, "dry": true, "loud": false,
            "colour": "blue", "version": 2, "labels": ["a"],
        }))
    );
}

#[test]
fn optional_fields_that_are_empty_are_left_out_and_defaults_are_sent() {
    let mut form = Form::new("Release", &every_kind()).unwrap();
    press(&mut form, "x<BackTab>[]");
    assert_eq!(
        press(&mut form, "<C-s>"),
        FormStep::Sent(json!({
            "name": "x", "count": 3, "dry": false, "colour": "green", "version": 2, "labels": [],
        }))
    );
}

#[test]
fn what_is_missing_is_told_at_its_field_before_sending() {
    let mut form = Form::new("Release", &every_kind()).unwrap();
    assert_eq!(press(&mut form, "<Tab><C-s>"), FormStep::Going);
    assert_eq!(problems(&form), [("name", "is needed"), ("labels", "is needed")]);
    assert_eq!(form.focused, 0);
    press(&mut form, "x");
    assert_eq!(problems(&form), [("labels", "is needed")]);
}

#[test]
fn what_cannot_be_read_is_told_when_its_field_is_left() {
    let properties =
        json!({"count": {"type": "integer"}, "share": {"type": "number"}, "more": {}, "last": {}});
    let mut form = form_of(properties, &[]);
    press(&mut form, "1.5<Tab>half<Tab>{\"a\": 1, \"a\": 2}<Tab>");
    let told: Vec<_> = problems(&form).iter().map(|(name, _)| *name).collect();
    assert_eq!(told, ["count", "share", "more"]);
    assert_eq!(problems(&form)[0].1, "`1.5` is no whole number");
    assert_eq!(press(&mut form, "<C-s>"), FormStep::Going);
    assert_eq!(form.focused, 0);
}

#[test]
fn an_empty_field_that_is_needed_is_null_where_null_is_a_value() {
    assert_eq!(sent(json!({"a": {"type": ["string", "null"]}}), &["a"], "<Enter>"), json!({"a": null}));
    let colour = json!({"a": {"enum": ["red", "green", null]}});
    assert_eq!(sent(colour.clone(), &["a"], "<Enter>"), json!({"a": null}));
    assert_eq!(sent(colour, &["a"], "g<Enter>"), json!({"a": "green"}));
}

#[test]
fn numbers_keep_their_size() {
    let numbers = json!({"a": {"type": "integer"}, "b": {"type": "number"}});
    assert_eq!(
        sent(numbers, &[], "18446744073709551615<Tab>-1e3<Enter>"),
        json!({"a": 18_446_744_073_709_551_615_u64, "b": -1000.0})
    );
}

#[test]
fn choices_go_round_and_one_that_is_needed_is_not_taken_back() {
    let choice = json!({"a": {"enum": ["red", "green"]}});
    assert_eq!(sent(choice.clone(), &["a"], "<Right><Right><Right><Enter>"), json!({"a": "red"}));
    assert_eq!(sent(choice.clone(), &["a"], "<Left><Enter>"), json!({"a": "green"}));
    assert_eq!(sent(choice, &[], "<Right><Right><Right><Enter>"), json!({}));
}

#[test]
fn arrows_leave_a_text_at_its_first_and_last_row() {
    let mut form = form_of(json!({"a": {"type": "string"}, "b": {"type": "string"}}), &[]);
    press(&mut form, "one<S-Enter>two<Up>");
    assert_eq!(form.focused, 0);
    press(&mut form, "<Down><Down>");
    assert_eq!(form.focused, 1);
    press(&mut form, "<Up>");
    assert_eq!(form.focused, 0);
}

#[test]
fn escape_cancels_and_enter_goes_to_the_next_field() {
    let mut form = form_of(json!({"a": {"type": "string"}, "b": {"type": "boolean"}}), &[]);
    assert_eq!(press(&mut form, "x<Enter>"), FormStep::Going);
    assert_eq!(form.focused, 1);
    assert_eq!(press(&mut form, "<Esc>"), FormStep::Cancelled);
}

#[test]
fn one_type_in_a_list_is_that_type_and_several_are_json() {
    let form =
        form_of(json!({"a": {"type": ["integer"]}, "b": {"type": ["integer", "string", "null"]}}), &[]);
    assert!(matches!(form.fields[0].input, field::Input::Integer(_)));
    assert!(matches!(form.fields[1].input, field::Input::Json(_)));
}

#[test]
fn shortcuts_do_not_switch_or_choose() {
    let mut form = form_of(json!({"a": {"type": "boolean"}, "b": {"enum": ["yes", "no"]}}), &[]);
    assert_eq!(press(&mut form, "<C-n><C-y><Tab><C-n><A-y><C-s>"), FormStep::Sent(json!({})));
}

#[test]
fn references_in_a_circle_become_json() {
    let schema = json!({"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}});
    let form = Form::new("", &schema).unwrap();
    assert!(matches!(form.fields[0].input, field::Input::Json(_)));
}

fn shown(form: &Form, height: Option<u16>) -> String {
    at_three_widths(|width, screen: &mut Screen| {
        let area = screen.sized(width, height.unwrap_or_else(|| form.height(width)));
        screen.cursor = form.draw(area, &mut screen.buffer, Theme::default());
    })
}

#[test]
fn a_form_with_every_kind_of_field() {
    insta::assert_snapshot!(shown(&Form::new("Release", &every_kind()).unwrap(), None));
}

#[test]
fn problems_stand_at_their_fields() {
    let mut form = Form::new("Release", &every_kind()).unwrap();
    press(&mut form, "<Tab><Tab>x<Tab>half<C-s>");
    insta::assert_snapshot!(shown(&form, None));
}

#[test]
fn a_small_area_is_scrolled_to_the_focused_field() {
    let mut form = Form::new("Release", &every_kind()).unwrap();
    press(&mut form, &"<Tab>".repeat(6));
    insta::assert_snapshot!(shown(&form, Some(7)));
}

#[test]
fn whatever_is_pressed_a_form_can_be_drawn_at_every_size() {
    const KEYS: [&str; 20] = [
        "<Tab>",
        "<BackTab>",
        "<Up>",
        "<Down>",
        "<Left>",
        "<Right>",
        "<Space>",
        "<Enter>",
        "<S-Enter>",
        "<C-s>",
        "<Backspace>",
        "<C-w>",
        "<C-_>",
        "a",
        "1",
        "{",
        "\"",
        "漢",
        "🦀",
        "\u{301}",
    ];
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    for case in 0..60 {
        let mut chance = Chance::at(seed, &[&format!("form {case}")]);
        let mut form = Form::new("Titel 漢字", &every_kind()).unwrap();
        for _ in 0..40 {
            press(&mut form, chance.one_of::<&str>(&KEYS));
            form.paste(if chance.percent(10) { "x\r\ny\u{1b}" } else { "" });
            let width = *chance.one_of(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 40, 80]);
            let height = u16::try_from(chance.between(1, 12)).unwrap();
            let area = Rect::new(1, 1, width, height);
            let mut buffer = Buffer::empty(Rect::new(0, 0, width + 2, height + 2));
            let cursor = form.draw(area, &mut buffer, Theme::default());
            assert!(cursor.is_none_or(|cursor| area.contains(cursor)), "SEED={seed}, case {case}");
            for position in buffer.area.positions().filter(|position| !area.contains(*position)) {
                assert_eq!(buffer[position].symbol(), " ", "SEED={seed}, case {case}, at {position}");
            }
        }
    }
}
