//! Text for a terminal: nothing in it moves the cursor, changes colors or turns the reading direction.

use llm_do_core::visible_prose;
pub(crate) use llm_do_core::{visible, visible_line};

/// Shows an answer as it is, but for characters that a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    text.split('\t').map(visible_prose).collect::<Vec<_>>().join("\t")
}

/// A notice that belongs to no event, as a line for stderr.
pub(crate) fn notice_line(text: &str) -> String {
    format!("notice: {}", visible(text).replace('\n', "\n    "))
}

/// One line of at most so many characters.
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
    fn a_long_text_becomes_one_short_line() {
        assert_eq!(shortened("one\ntwo three", 8), "one tw..");
        assert_eq!(shortened("short", 8), "short");
    }
}
