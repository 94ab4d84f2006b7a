//! What masks must remove, in every form and however it arrives.

mod deltas;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use llm_do_core::ModelErrorKind;
use serde_json::json;

use super::*;

const KEY: &str = "sk-ant/api+03=\"Zq7\\x";

fn mask() -> Mask {
    Mask::new([KEY.to_owned()])
}

#[test]
fn a_text_without_secrets_is_not_copied() {
    assert!(matches!(mask().text("incorrect key sk-ant***x"), Cow::Borrowed(_)));
}

#[test]
fn a_secret_is_removed_wherever_it_stands() {
    let text = format!("{KEY}: bad key {KEY}, not {KEY}");
    assert_eq!(mask().text(&text), "[removed]: bad key [removed], not [removed]");
}

#[test]
fn its_forms_in_json_and_in_addresses_are_removed() {
    let json = json!({"error": format!("bad key {KEY}")}).to_string();
    assert_eq!(mask().text(&json), r#"{"error":"bad key [removed]"}"#);
    assert_eq!(mask().text("?key=sk-ant%2Fapi%2B03%3D%22Zq7%5Cx&a"), "?key=[removed]&a");
    assert_eq!(mask().text("?key=sk-ant%2fapi%2b03%3d%22Zq7%5cx"), "?key=[removed]");
}

#[test]
fn base64_of_texts_around_it_tells_nothing_of_it() {
    for before in ["", "u", "us", "user:", "user1:", "user12:"] {
        for after in ["", "\n", "ab", "abc"] {
            for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                let text = engine.encode(format!("{before}{KEY}{after}"));
                let masked = mask().text(&text).into_owned();
                assert!(masked.contains(REMOVED), "{before:?} {after:?}: {text}");
                // At most the letters that share bits with their neighbors are left.
                assert!(masked.len() <= REMOVED.len() + 4 + (before.len() + after.len()) * 2, "{masked}");
            }
        }
    }
}

#[test]
fn secrets_that_overlap_leave_no_rest() {
    let mask = Mask::new(["abcdefg1", "defg1hij", "abcdefg1hijk"].map(String::from));
    assert_eq!(mask.text("x abcdefg1hij y abcdefg1hijk z"), "x [removed] y [removed] z");
}

#[test]
fn errors_and_values_are_masked_in_every_text() {
    let error = ModelError::new(ModelErrorKind::Auth, format!("invalid key {KEY}"));
    assert_eq!(mask().error(error).message, "invalid key [removed]");
    let value = json!({"a": [KEY, 1, null], KEY: {"b": format!("<{KEY}>")}});
    let masked = json!({"a": ["[removed]", 1, null], "[removed]": {"b": "<[removed]>"}});
    assert_eq!(mask().value(value), masked);
}

#[test]
fn a_secret_that_was_cut_in_pieces_is_removed_from_all_of_them() {
    let text = format!("grüße {KEY}, {KEY}!");
    for cut in 0..text.len() {
        for second in cut..text.len() {
            let whole = Bytes::from(text.clone());
            let pieces = [whole.slice(..cut), whole.slice(cut..second), whole.slice(second..)];
            let masked = mask().pieces(&pieces);
            assert_eq!(masked.len(), 3);
            assert_eq!(masked.concat(), "grüße [removed], [removed]!".as_bytes(), "cut at {cut}, {second}");
        }
    }
}
