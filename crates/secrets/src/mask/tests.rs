//! What masks must remove, in every form and however it arrives.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::json;

use super::forms::plain_forms;
use super::stream::{StreamAutomaton, TextMask};
use super::*;

const KEY: &str = "sk-ant/api+03=\"Zq7\\x";

fn mask() -> SecretMask {
    SecretMask::new([KEY])
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
                // At most the letters that share bits with their neighbours are left.
                assert!(masked.len() <= REMOVED.len() + 4 + (before.len() + after.len()) * 2, "{masked}");
            }
        }
    }
}

#[test]
fn secrets_that_overlap_leave_no_rest() {
    let mask = SecretMask::new(["abcdefg1", "defg1hij", "abcdefg1hijk"]);
    assert_eq!(mask.text("x abcdefg1hij y abcdefg1hijk z"), "x [removed] y [removed] z");
}

#[test]
fn values_are_masked_in_every_text() {
    let value = json!({"a": [KEY, 1, null], KEY: {"b": format!("<{KEY}>")}});
    let masked = json!({"a": ["[removed]", 1, null], "[removed]": {"b": "<[removed]>"}});
    assert!(mask().finds_in(&value) && !mask().finds_in(&masked));
    assert_eq!(mask().value(value), masked);
}

#[test]
fn a_secret_that_was_cut_in_pieces_is_removed_from_all_of_them() {
    let (mask, text) = (mask(), format!("grüße {KEY}, {KEY}!"));
    for cut in 0..text.len() {
        for second in cut..text.len() {
            let whole = text.as_bytes();
            let pieces = [&whole[..cut], &whole[cut..second], &whole[second..]];
            let masked = mask.pieces(&pieces);
            assert_eq!(masked.len(), 3);
            assert_eq!(masked.concat(), "grüße [removed], [removed]!".as_bytes(), "cut at {cut}, {second}");
        }
    }
}

/// Reads how often something is tried.
fn times(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn split<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| text.floor_char_boundary(*cut)).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

/// `LLM_DO_MASK_TEXTS` sets how many texts are tried. Each is compared with a search in the whole text.
#[test]
fn random_texts_are_held_back_for_less_than_a_key_and_come_out_whole() {
    let secrets = ["ab1abab1", "bab1aba1b", "b1abab1aab1", "ab1abab1a1"];
    let forms: Vec<String> = secrets.iter().flat_map(|key| plain_forms(key)).collect();
    let automaton = StreamAutomaton::new(&forms).unwrap();
    let longest = forms.iter().map(String::len).max().unwrap();
    let mask = SecretMask::new(secrets);
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..times("LLM_DO_MASK_TEXTS", 5_000) {
        let letters = [&b"ab1"[..], b"ab1 xyz", b"ab1ab1ab1x"][random.usize(..3)];
        let text: String =
            (0..random.usize(..80)).map(|_| char::from(letters[random.usize(..letters.len())])).collect();
        let cuts: Vec<usize> = (0..random.usize(..12)).map(|_| random.usize(..text.len() + 1)).collect();
        let (mut masked, mut shown, mut given) = (TextMask::default(), String::new(), 0);
        for piece in split(&text, &cuts) {
            given += piece.len();
            shown += &masked.push(&automaton, piece.to_owned());
            assert_eq!(masked.held_len(), begun(&forms, &text[..given]), "{text:?} at {given}");
            assert!(masked.held_len() < longest);
        }
        shown += &masked.finish();
        assert_eq!(shown, mask.text(&text), "{text:?} {cuts:?}");
    }
}

/// Returns the length of the longest end of a text that may be the beginning of a form.
fn begun(forms: &[String], text: &str) -> usize {
    let starts = |end: &str| forms.iter().any(|form| form.len() > end.len() && form.starts_with(end));
    (0..text.len()).map(|from| &text[from..]).find(|end| starts(end)).map_or(0, str::len)
}

#[test]
fn an_interrupted_text_gives_out_less_than_half_of_a_secret() {
    for key in ["abcdefg1", "abcdefgh1", "sk-canary-0123456789"] {
        let mask = SecretMask::new([key]);
        for cut in 0..=key.len() {
            let mut masked = StreamMask::new(&mask);
            let mut shown = masked.push(format!("It is {}", &key[..cut])) + &masked.interrupt();
            shown += &masked.push(format!("{}, s", &key[cut..]));
            shown += &masked.finish();
            let longest = (0..=key.len()).rev().find(|end| shown.contains(&key[..*end])).unwrap();
            assert!(longest < key.len() / 2 && longest <= 7, "{key} at {cut}: {shown}");
            assert!(shown.ends_with("[removed], s"), "{key} at {cut}: {shown}");
        }
    }
}

#[test]
fn a_piece_passes_if_no_secret_can_begin_or_go_on_in_it() {
    let mut masked = StreamMask::new(&SecretMask::new(["sk-canary-0123456789"]));
    for (piece, passes, shown) in [
        (" the", true, " the"),
        (" is", false, " i"),
        (" ready", false, "s ready"),
        ("y", true, "y"),
        (" ask", false, " a"),
        ("s", false, "sk"),
    ] {
        assert_eq!(masked.passes(piece), passes, "{piece}");
        assert_eq!(masked.push(piece.to_owned()), shown, "{piece}");
    }
    assert!(StreamMask::new(&SecretMask::default()).passes("sk-canary-0123456789"));
}

#[test]
fn a_secret_is_known_as_dot_net_escapes_it() {
    let mask = SecretMask::new(["Zq7+x/\\u9=\"k"]);
    assert_eq!(mask.text(r"<Zq7\u002Bx/\\u9=\u0022k>"), "<[removed]>");
}
