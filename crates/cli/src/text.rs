//! Text for a terminal: nothing in it moves the cursor, changes colours or turns the reading direction.

/// Shows control, direction and invisible signs instead of obeying them. Line ends stay.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for sign in text.chars() {
        if sign == '\n' || !is_hidden(sign) {
            shown.push(sign);
        } else {
            shown.extend(sign.escape_default());
        }
    }
    shown
}

fn is_hidden(sign: char) -> bool {
    sign.is_control()
        || matches!(
            sign,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Shows an answer as it is, but for signs that a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    text.split('\t').map(visible).collect::<Vec<_>>().join("\t")
}

/// One line of at most so many signs.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let line = visible(&text.replace(['\n', '\r', '\t'], " "));
    match line.char_indices().nth(most) {
        Some(_) => line.chars().take(most.saturating_sub(2)).chain("..".chars()).collect(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_that_deceive_are_written_out() {
        assert_eq!(visible("a\u{1b}[31mb\u{202e}c\nd\r"), "a\\u{1b}[31mb\\u{202e}c\nd\\r");
        assert_eq!(visible("zero\u{200b}width \u{e0041}tag"), "zero\\u{200b}width \\u{e0041}tag");
        assert_eq!(visible("größer 漢字 🦀"), "größer 漢字 🦀");
    }

    #[test]
    fn a_long_text_becomes_one_short_line() {
        assert_eq!(shortened("one\ntwo three", 8), "one tw..");
        assert_eq!(shortened("short", 8), "short");
    }
}
