//! Text that is shown to people: nothing in it moves a cursor, changes colors, turns the reading direction or
//! passes for something that it is not.
//!
//! What a character looks like is known for characters that are hidden (see [`visible`]). That a letter looks like another is
//! no reason to write it out, as it may be meant; [`lookalikes`] names the words that a person should look at twice.

mod emoji;
mod lookalike;

use serde_json::Value;
use unicode_general_category::{GeneralCategory, get_general_category};

pub use lookalike::lookalikes;

/// Words in the names of variables that hold keys.
const SECRETS: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];

/// Returns the word for which a variable looks as if it held a key, by its name.
pub fn secret_word(name: &str) -> Option<&'static str> {
    let upper = name.to_uppercase();
    SECRETS.into_iter().find(|word| upper.contains(word))
}

/// Writes a number of things: `1 byte`, `2 bytes`.
pub fn counted<N: std::fmt::Display + PartialEq + From<u8>>(count: N, thing: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

/// Shows control, direction and invisible characters, and spaces other than the usual one, instead of obeying them. Line
/// ends stay.
pub fn visible(text: &str) -> String {
    written_out(text, is_hidden)
}

/// The same for what must stay on one line: line ends are shown too.
pub fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}

/// The same for prose that is read and not decided about: spaces of other widths stay, as many languages use them, and
/// so do the invisible characters that join pictures to one or say how a picture is drawn. Anywhere else they are written
/// out.
pub fn visible_prose(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (piece, is_emoji) in emoji::pieces(text) {
        if is_emoji {
            shown.push_str(piece);
        } else {
            shown.push_str(&written_out(piece, |c| is_hidden(c) && !is_space(c)));
        }
    }
    shown
}

/// Writes a value as indented JSON in which every hidden character is an escape: what is shown is JSON, and is read as
/// exactly this value.
pub fn visible_json(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || !is_hidden(c) {
            shown.push(c);
            continue;
        }
        // Only strings hold such characters, and there an escape means the same.
        let mut units = [0; 2];
        let escape = |unit: &u16| format!("\\u{unit:04x}");
        shown.extend(c.encode_utf16(&mut units).iter().map(escape));
    }
    shown
}

fn written_out(text: &str, is_hidden: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || !is_hidden(c) {
            shown.push(c);
        } else {
            shown.extend(c.escape_default());
        }
    }
    shown
}

/// Returns whether a character cannot be seen, looks like a space, changes what is around it, or means what its font says.
fn is_hidden(c: char) -> bool {
    if matches!(c, ' '..='~') {
        return false;
    }
    is_blank(c)
        || is_noncharacter(c)
        || matches!(
            get_general_category(c),
            GeneralCategory::Control
                | GeneralCategory::Format
                | GeneralCategory::LineSeparator
                | GeneralCategory::ParagraphSeparator
                | GeneralCategory::PrivateUse
                | GeneralCategory::SpaceSeparator
        )
}

fn is_space(c: char) -> bool {
    get_general_category(c) == GeneralCategory::SpaceSeparator
}

/// Letters, marks and symbols by their category that show nothing, and what is reserved for such.
fn is_blank(c: char) -> bool {
    matches!(
        c,
        '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2065}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{13441}'..='\u{13442}'
            | '\u{16fe4}'
            | '\u{1d159}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn is_noncharacter(c: char) -> bool {
    matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_thing_is_not_several() {
        assert_eq!([0_u64, 1, 2].map(|count| counted(count, "byte")), ["0 bytes", "1 byte", "2 bytes"]);
    }

    #[test]
    fn variables_with_keys_are_known_by_their_names() {
        for name in ["API_KEY", "gh_token", "Secret", "DB_PASSWORD", "PGPASSWD", "aws_credentials"] {
            assert!(secret_word(name).is_some(), "{name}");
        }
        assert_eq!((secret_word("pgpasswd"), secret_word("HOME")), (Some("PASSWD"), None));
    }

    #[test]
    fn signs_that_deceive_are_written_out() {
        assert_eq!(visible("a\u{1b}[31mb\u{202e}c\nd\r"), "a\\u{1b}[31mb\\u{202e}c\nd\\r");
        assert_eq!(visible("zero\u{200b}width \u{e0041}tag"), "zero\\u{200b}width \\u{e0041}tag");
        assert_eq!(visible("größer 漢字 🦀"), "größer 漢字 🦀");
        assert_eq!(visible_line("a\n[y] once"), "a\\n[y] once");
    }

    #[test]
    fn every_sign_that_cannot_be_told_from_nothing_or_from_a_space_is_hidden() {
        let ranges = [
            (0x00, 0x1f),
            (0x7f, 0xa0),
            (0xad, 0xad),
            (0x34f, 0x34f),
            (0x61c, 0x61c),
            (0x115f, 0x1160),
            (0x1680, 0x1680),
            (0x17b4, 0x17b5),
            (0x180b, 0x180f),
            (0x2000, 0x200f),
            (0x2028, 0x202f),
            (0x205f, 0x206f),
            (0x2800, 0x2800),
            (0x3000, 0x3000),
            (0x3164, 0x3164),
            (0xe000, 0xf8ff),
            (0xfdd0, 0xfdef),
            (0xfe00, 0xfe0f),
            (0xfeff, 0xfeff),
            (0xffa0, 0xffa0),
            (0xfff9, 0xfffb),
            (0xfffe, 0xffff),
            (0x1d173, 0x1d17a),
            (0x1fffe, 0x1ffff),
            (0xe0000, 0xe0fff),
            (0xf0000, 0x10_ffff),
        ];
        for c in ranges.iter().flat_map(|(first, last)| *first..=*last).filter_map(char::from_u32) {
            assert!(is_hidden(c), "U+{:04X}", u32::from(c));
        }
        for c in "aZ09~é\u{301}ßЖλ漢字🦀€«»—…\u{fffd}".chars() {
            assert!(!is_hidden(c), "{c}");
        }
    }

    #[test]
    fn prose_keeps_the_spaces_of_its_language_and_nothing_else() {
        assert_eq!(
            visible_prose("Oui\u{202f}! 東\u{3000}京\u{200b}\u{1b}"),
            "Oui\u{202f}! 東\u{3000}京\\u{200b}\\u{1b}"
        );
        assert_eq!(visible("Oui\u{a0}!"), "Oui\\u{a0}!");
    }

    #[test]
    fn prose_keeps_the_signs_that_make_an_emoji_of_pictures_and_writes_them_out_elsewhere() {
        let emoji = [
            "❤\u{fe0f}",
            "❤\u{fe0e}",
            "👩\u{200d}👩\u{200d}👧\u{200d}👦",
            "👩\u{200d}❤\u{fe0f}\u{200d}👨",
            "🏃🏽\u{200d}♀\u{fe0f}",
            "🏳\u{fe0f}\u{200d}🌈",
            "1\u{fe0f}\u{20e3}",
            "↔\u{fe0f}‼\u{fe0f}ℹ\u{fe0f}〰\u{fe0f}",
        ];
        for text in emoji {
            assert_eq!(visible_prose(&format!("a {text} b{text}")), format!("a {text} b{text}"));
            assert_ne!(visible(text), text, "where something is decided, they are written out");
        }
        let hidden = [
            ("pay\u{200d}pal", "pay\\u{200d}pal"),
            ("a\u{fe0f}b 1\u{fe0f}", "a\\u{fe0f}b 1\\u{fe0f}"),
            ("漢\u{fe0f}👍\u{200d}x", "漢\\u{fe0f}👍\\u{200d}x"),
            ("👍\u{200d}", "👍\\u{200d}"),
            ("\u{200d}👍", "\\u{200d}👍"),
            ("👍\u{200d}\u{200d}👍", "👍\\u{200d}\\u{200d}👍"),
            ("👍\u{fe0f}\u{fe0f}\u{fe01}", "👍\u{fe0f}\\u{fe0f}\\u{fe01}"),
            ("👍\u{200b}👍\u{202e}", "👍\\u{200b}👍\\u{202e}"),
            ("🏴\u{e0067}\u{e007f}", "🏴\\u{e0067}\\u{e007f}"),
            ("+\u{fe0f}=\u{200d}>", "+\\u{fe0f}=\\u{200d}>"),
        ];
        for (text, shown) in hidden {
            assert_eq!(visible_prose(text), shown);
        }
    }

    #[test]
    fn json_is_shown_with_escapes_and_stays_json() {
        let value = json!({"a\u{202e}b": "x\u{a0}\u{e0041}\u{7f}\"\\\n"});
        let shown = "{\n  \"a\\u202eb\": \"x\\u00a0\\udb40\\udc41\\u007f\\\"\\\\\\n\"\n}";
        assert_eq!(visible_json(&value), shown);
    }

    /// Random texts of characters that deceive, that JSON escapes, and any others.
    struct Texts(fastrand::Rng);

    impl Texts {
        fn character(&mut self) -> char {
            let odd =
                ['\u{202e}', '\u{a0}', '\u{e0020}', '\u{7f}', '\u{85}', '"', '\\', '\n', '\u{10ffff}', 'a'];
            match self.0.u32(..3) {
                0 => odd[self.0.usize(..odd.len())],
                1 => char::from_u32(self.0.u32(..0x3000)).unwrap_or('x'),
                _ => char::from_u32(self.0.u32(..0x11_0000)).unwrap_or('y'),
            }
        }

        fn text(&mut self) -> String {
            (0..self.0.usize(..12)).map(|_| self.character()).collect()
        }
    }

    #[test]
    fn whatever_is_shown_as_json_is_read_as_the_same_value_and_hides_nothing() {
        let mut texts = Texts(fastrand::Rng::with_seed(0x5eed));
        for number in 0..10_000 {
            let value =
                json!({ texts.text(): [texts.text(), number, null], "b": { texts.text(): texts.text() } });
            let shown = visible_json(&value);
            assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value, "{number}: {shown}");
            let hidden = shown.chars().find(|c| *c != '\n' && is_hidden(*c));
            assert_eq!(hidden, None, "{number}: {shown}");
        }
    }
}
