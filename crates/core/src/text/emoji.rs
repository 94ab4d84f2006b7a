//! Finds the invisible characters that belong to an emoji.
//!
//! Whether a character is a picture is decided by its category, which is wider than the list of emoji: a style or a joiner
//! behind another symbol is as harmless.

use unicode_general_category::{GeneralCategory, get_general_category};

const JOINER: char = '\u{200d}';
const TEXT_STYLE: char = '\u{fe0e}';
const PICTURE_STYLE: char = '\u{fe0f}';
const KEYCAP: char = '\u{20e3}';

/// Splits a text into emoji that hold invisible characters, for which true is given, and the text between them.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut left = text;
    std::iter::from_fn(move || {
        if left.is_empty() {
            return None;
        }
        let (start, length) = next_emoji(left).unwrap_or((left.len(), 0));
        let (piece, is_emoji) = if start > 0 { (&left[..start], false) } else { (&left[..length], true) };
        left = &left[piece.len()..];
        Some((piece, is_emoji))
    })
}

/// Where the next emoji with invisible characters begins, and its length.
fn next_emoji(text: &str) -> Option<(usize, usize)> {
    let mut searched = 0;
    // Most text has none.
    while let Some(found) = text[searched..].find([JOINER, TEXT_STYLE, PICTURE_STYLE]) {
        let hidden = searched + found;
        let start = start_of_picture(&text[searched..hidden]).map(|start| searched + start);
        if let Some(start) = start {
            let length = emoji_length(&text[start..]);
            if start + length > hidden {
                return Some((start, length));
            }
        }
        searched = hidden + text[hidden..].chars().next().map_or(1, char::len_utf8);
    }
    None
}

/// Where the picture begins with which a text ends: its last character, or the one before the color of its skin.
fn start_of_picture(text: &str) -> Option<usize> {
    let mut characters = text.char_indices().rev();
    let (start, last) = characters.next()?;
    match characters.next() {
        Some((before, c)) if is_skin(last) && is_picture(c) => Some(before),
        _ => Some(start),
    }
}

/// The length of the emoji with which a text begins, up to its last character that belongs there.
fn emoji_length(text: &str) -> usize {
    let is_key = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '#' | '*'));
    if is_key {
        let is_keycap = text[1..].starts_with(PICTURE_STYLE) && text[4..].starts_with(KEYCAP);
        return if is_keycap { 1 + PICTURE_STYLE.len_utf8() + KEYCAP.len_utf8() } else { 0 };
    }
    let mut length = 0;
    while let Some(picture) = picture_length(&text[length..]) {
        length += picture;
        let joined = text[length..].strip_prefix(JOINER).is_some_and(|rest| rest.starts_with(is_picture));
        if !joined {
            break;
        }
        length += JOINER.len_utf8();
    }
    length
}

/// The length of a picture with the color of its skin and its style.
fn picture_length(text: &str) -> Option<usize> {
    let first = text.chars().next().filter(|c| is_picture(*c))?;
    let mut length = first.len_utf8();
    for belongs in [is_skin as fn(char) -> bool, is_style] {
        length += text[length..].chars().next().filter(|c| belongs(*c)).map_or(0, char::len_utf8);
    }
    Some(length)
}

fn is_style(c: char) -> bool {
    matches!(c, TEXT_STYLE | PICTURE_STYLE)
}

fn is_skin(c: char) -> bool {
    matches!(c, '\u{1f3fb}'..='\u{1f3ff}')
}

fn is_picture(c: char) -> bool {
    if c.is_ascii() || super::is_blank(c) {
        return false;
    }
    matches!(c, '‼' | '⁉' | 'ℹ' | '〰')
        || is_skin(c)
        || matches!(get_general_category(c), GeneralCategory::OtherSymbol | GeneralCategory::MathSymbol)
}
