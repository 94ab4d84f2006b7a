//! Text that is shown to people: nothing in it moves a cursor, changes colours or turns the reading direction.

/// Shows control, direction and invisible signs instead of obeying them. Line ends stay.
pub fn visible(text: &str) -> String {
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

/// The same for what must stay on one line: line ends are shown too.
pub fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\\n")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_that_deceive_are_written_out() {
        assert_eq!(visible("a\u{1b}[31mb\u{202e}c\nd\r"), "a\\u{1b}[31mb\\u{202e}c\nd\\r");
        assert_eq!(visible("zero\u{200b}width \u{e0041}tag"), "zero\\u{200b}width \\u{e0041}tag");
        assert_eq!(visible("größer 漢字 🦀"), "größer 漢字 🦀");
        assert_eq!(visible_line("a\n[y] once"), "a\\n[y] once");
    }
}
