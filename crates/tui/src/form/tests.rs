use llm_do_testing::Chance;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::json;

use super::*;
use crate::Theme;
use crate::test_support::{TestScreen, at_three_widths, keys};

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
            "color": {"$ref": "#/$defs/Color", "default": "green", "description": "Of the banner."},
            "version": {"const": 2},
            "labels": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["name", "dry", "version", "labels"],
        "$defs": {
            "Color": {"oneOf": [
                {"const": "red", "description": "like blood"}, {"const": "green"}, {"enum": ["blue", "black"]}
            ]}
        }
    })
}

fn made(title: &str, schema: Value) -> Option<Form> {
    Form::new(title, &Schema::new(schema).unwrap())
}

fn form(title: &str, schema: Value) -> Form {
    made(title, schema).unwrap()
}

fn form_of(properties: Value, required: &[&str]) -> Form {
    form("Form", json!({"type": "object", "properties": properties, "required": required}))
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
        assert!(made("", schema.clone()).is_none(), "{schema}");
    }
    assert!(made("", json!({"type": "array", "properties": {"a": {}}})).is_none());
    assert!(made("", json!({"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": {}}}}})).is_some());
}

#[test]
fn every_kind_of_field_gives_a_value_of_its_type() {
    let mut form = form("Release", every_kind());
    press(
        &mut form,
        "Spring<Tab>one<S-Enter>two<Tab><Backspace>12<Tab>0.5<Tab><Space><Tab>n<Tab><Right><Tab><Tab>[\"a\"]",
    );
    assert_eq!(
        press(&mut form, "<Enter>"),
        FormStep::Sent(json!({
            "name": "Spring", "notes": "one\ntwo", "count": 12, "share": 0.5, "dry": true, "loud": false,
            "color": "blue", "version": 2, "labels": ["a"],
        }))
    );
}

#[test]
fn optional_fields_that_are_empty_are_left_out_and_defaults_are_sent() {
    let mut form = form("Release", every_kind());
    press(&mut form, "x<BackTab>[]");
    assert_eq!(
        press(&mut form, "<C-s>"),
        FormStep::Sent(json!({
            "name": "x", "count": 3, "dry": false, "color": "green", "version": 2, "labels": [],
        }))
    );
}

#[test]
fn what_is_missing_is_told_at_its_field_before_sending() {
    let mut form = form("Release", every_kind());
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
    assert_eq!(problems(&form)[0].1, "`1.5` is not a whole number");
    assert_eq!(press(&mut form, "<C-s>"), FormStep::Going);
    assert_eq!(form.focused, 0);
}

#[test]
fn an_empty_field_that_is_needed_is_null_where_null_is_a_value() {
    assert_eq!(sent(json!({"a": {"type": ["string", "null"]}}), &["a"], "<Enter>"), json!({"a": null}));
    let color = json!({"a": {"enum": ["red", "green", null]}});
    assert_eq!(sent(color.clone(), &["a"], "<Enter>"), json!({"a": null}));
    assert_eq!(sent(color, &["a"], "g<Enter>"), json!({"a": "green"}));
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
    assert!(matches!(form.fields[0].input, field::FieldInput::Integer(_)));
    assert!(matches!(form.fields[1].input, field::FieldInput::Json(_)));
}

#[test]
fn shortcuts_do_not_switch_or_choose() {
    let mut form = form_of(json!({"a": {"type": "boolean"}, "b": {"enum": ["yes", "no"]}}), &[]);
    assert_eq!(press(&mut form, "<C-n><C-y><Tab><C-n><A-y><C-s>"), FormStep::Sent(json!({})));
}

#[test]
fn references_in_a_circle_become_json() {
    let schema = json!({"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}});
    let form = form("", schema);
    assert!(matches!(form.fields[0].input, field::FieldInput::Json(_)));
}

/// Types into the only field and tries to send it; returns what is said about it.
fn refusal(property: Value, text: &str) -> String {
    let mut form = form_of(json!({"a": property}), &[]);
    assert_eq!(press(&mut form, &format!("{text}<C-s>")), FormStep::Going);
    let told = problems(&form);
    assert_eq!(told.len(), 1, "{told:?}");
    told[0].1.to_owned()
}

#[test]
fn what_breaks_a_limit_is_told_in_plain_words() {
    for (property, text, words) in [
        (json!({"type": "integer", "maximum": 9}), "99", "is greater than the maximum of 9"),
        (json!({"type": "integer", "minimum": 1}), "0", "is less than the minimum of 1"),
        (
            json!({"anyOf": [{"type": "integer", "maximum": 9}, {"type": "null"}]}),
            "99",
            "is greater than the maximum of 9",
        ),
        (json!({"type": "number", "multipleOf": 0.5}), "0.7", "is not a multiple of 0.5"),
        (json!({"type": "string", "maxLength": 3}), "four", "is longer than 3 characters"),
        (json!({"type": "string", "pattern": "^[a-z]+$"}), "A1", "does not match \"^[a-z]+$\""),
        (json!({"type": "array", "minItems": 2}), "[1]", "has less than 2 items"),
        (json!({"type": "array"}), "{}", "expected array, got an object"),
        (json!({"type": "object", "minProperties": 1}), "{}", "has less than 1 property"),
    ] {
        assert_eq!(refusal(property.clone(), text), words, "{property}");
    }
}

#[test]
fn problems_inside_of_json_say_where() {
    let stop = json!({
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 4}, "a/b": {"type": "integer"}},
        "required": ["city"],
        "additionalProperties": false
    });
    let stops = json!({"type": "array", "items": stop});
    for (text, words) in [
        ("[{\"city\": \"Kiel\"}, {\"city\": 5}]", "item 2, `city`: expected string, got a number"),
        ("[{\"city\": \"Bremen\"}]", "item 1, `city` is longer than 4 characters"),
        ("[{\"city\": \"Kiel\", \"a/b\": \"x\"}]", "item 1, `a/b`: expected integer, got a string"),
        ("[{}]", "item 1: missing required field `city`"),
        ("[{\"city\": \"Kiel\", \"cty\": 1}]", "item 1: unknown field `cty`, did you mean `city`?"),
        ("[3]", "item 1: expected object, got a number"),
    ] {
        assert_eq!(refusal(stops.clone(), text), words, "{text}");
    }
}

#[test]
fn a_refused_form_keeps_what_was_typed_with_the_cursor_at_the_first_problem() {
    let properties = json!({
        "topic": {"type": "string"},
        "days": {"type": "integer", "maximum": 9},
        "hours": {"type": "integer", "maximum": 24},
        "more": {"type": "string"}
    });
    let mut form = form_of(properties, &["topic", "more"]);
    assert_eq!(press(&mut form, "Rust<Tab>99<Tab>30<Tab><C-s>"), FormStep::Going);
    assert_eq!(
        problems(&form),
        [
            ("days", "is greater than the maximum of 9"),
            ("hours", "is greater than the maximum of 24"),
            ("more", "is needed")
        ]
    );
    assert_eq!(form.focused, 1);
    assert_eq!(
        press(&mut form, "<Backspace><Tab><Backspace><Tab>x<C-s>"),
        FormStep::Sent(json!({"topic": "Rust", "days": 9, "hours": 3, "more": "x"}))
    );
}

#[test]
fn a_limit_is_told_when_its_field_is_left_and_forgotten_when_it_is_changed() {
    let properties = json!({"days": {"type": "integer", "maximum": 9}, "name": {"type": "string"}});
    let mut form = form_of(properties, &["name"]);
    press(&mut form, "99");
    assert_eq!(problems(&form), []);
    press(&mut form, "<Tab>");
    assert_eq!(problems(&form), [("days", "is greater than the maximum of 9")]);
    press(&mut form, "<BackTab><Backspace>");
    assert_eq!(problems(&form), []);
}

#[test]
fn a_field_that_another_one_needs_is_asked_for() {
    let schema = json!({
        "type": "object",
        "properties": {"user": {"type": "string"}, "password": {"type": "string"}},
        "dependentRequired": {"user": ["password"]}
    });
    let mut form = form("", schema);
    assert_eq!(press(&mut form, "me<C-s>"), FormStep::Going);
    assert_eq!(problems(&form), [("password", "is needed")]);
    assert_eq!(form.focused, 1);
    assert_eq!(press(&mut form, "x<C-s>"), FormStep::Sent(json!({"user": "me", "password": "x"})));
}

#[test]
fn what_is_wrong_with_the_whole_input_is_told_where_the_cursor_stands() {
    let schema = json!({
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}},
        "minProperties": 2
    });
    let mut form = form("", schema);
    assert_eq!(press(&mut form, "<Tab>x<C-s>"), FormStep::Going);
    assert_eq!(problems(&form), [("b", "the whole input has less than 2 properties")]);
    assert_eq!(press(&mut form, "<Tab>y<C-s>"), FormStep::Sent(json!({"b": "x", "c": "y"})));
}

#[test]
fn limits_are_said_as_a_person_would() {
    for (schema, words) in [
        (json!({"type": "integer", "minimum": 1, "maximum": 9}), "1 to 9"),
        (json!({"type": "integer", "exclusiveMinimum": 0, "maximum": 9}), "1 to 9"),
        (json!({"type": "integer", "exclusiveMaximum": 10}), "at most 9"),
        (json!({"type": "integer", "multipleOf": 5, "minimum": 0}), "at least 0, a multiple of 5"),
        (json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1.5}), "more than 0, at most 1.5"),
        (json!({"type": "string", "maxLength": 80}), "at most 80 characters"),
        (json!({"type": "string", "minLength": 1}), "at least 1 character"),
        (json!({"type": "string", "minLength": 2, "maxLength": 2}), "exactly 2 characters"),
        (json!({"type": "string", "pattern": "^[a-z]+$"}), "matches ^[a-z]+$"),
        (json!({"type": "string", "format": "date", "minLength": 0}), "format date"),
        (json!({"type": "array", "minItems": 1, "maxItems": 3}), "a list of 1 to 3 items"),
        (json!({"type": "array", "uniqueItems": true}), "a list, no item twice"),
        (json!({"type": "object", "maxProperties": 1}), "an object, at most 1 entry"),
        (json!({"anyOf": [{"type": "integer", "maximum": 9}, {"type": "null"}]}), "at most 9"),
        (json!({}), ""),
    ] {
        let form = form_of(json!({"a": schema}), &[]);
        assert_eq!(form.fields[0].bounds, words, "{schema}");
    }
}

fn shown(form: &Form, height: Option<u16>) -> String {
    at_three_widths(|width, screen: &mut TestScreen| {
        let area = screen.sized(width, height.unwrap_or_else(|| form.height(width)));
        screen.cursor = form.draw(area, &mut screen.buffer, Theme::default());
    })
}

#[test]
fn a_form_with_every_kind_of_field() {
    insta::assert_snapshot!(shown(&form("Release", every_kind()), None));
}

#[test]
fn problems_stand_at_their_fields() {
    let mut form = form("Release", every_kind());
    press(&mut form, "<Tab><Tab>x<Tab>half<C-s>");
    insta::assert_snapshot!(shown(&form, None));
}

fn limited() -> Value {
    json!({
        "type": "object",
        "properties": {
            "days": {"type": "integer", "minimum": 1, "maximum": 9, "description": "How long it takes."},
            "title": {"type": "string", "maxLength": 20},
            "code": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}-[A-Z]{3}-[0-9]{4}$"},
            "tags": {"type": "array", "maxItems": 3, "items": {"type": "string"}},
            "color": {"enum": ["red", "green", "blue", "black", "white", "yellow", "magenta"]},
            "loud": {"type": "boolean"}
        },
        "required": ["days"]
    })
}

#[test]
fn limits_stand_beside_the_names_of_fields() {
    insta::assert_snapshot!(shown(&form("Plan", limited()), None));
}

#[test]
fn a_long_limit_stands_below_the_field_with_the_cursor() {
    let mut form = form("Plan", limited());
    press(&mut form, "<Tab><Tab>");
    insta::assert_snapshot!(shown(&form, None));
}

#[test]
fn keys_that_choose_are_said_below_the_choice() {
    let mut form = form("Plan", limited());
    press(&mut form, &"<Tab>".repeat(4));
    insta::assert_snapshot!(shown(&form, None));
}

#[test]
fn values_beyond_their_limits_are_told_at_their_fields() {
    let mut form = form("Plan", limited());
    press(&mut form, "99<Tab>a title that is far too long<Tab>abc<Tab>[\"a\", 2]<C-s>");
    insta::assert_snapshot!(shown(&form, None));
}

#[test]
fn a_small_area_is_scrolled_to_the_focused_field() {
    let mut form = form("Release", every_kind());
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
        let mut form = form("Titel 漢字", every_kind());
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
