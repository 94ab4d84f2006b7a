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

/// A number of tokens as people write it: `400k`, `1M`.
pub(crate) fn short_count(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}k", (tokens + 500) / 1_000),
        _ if tokens % 1_000_000 < 50_000 => format!("{}M", tokens / 1_000_000),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens % 1_000_000 / 100_000),
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

    #[test]
    fn context_sizes_are_short() {
        for (tokens, written) in
            [(512, "512"), (4_096, "4k"), (131_072, "131k"), (1_048_576, "1M"), (1_500_000, "1.5M")]
        {
            assert_eq!(short_count(tokens), written);
        }
    }
}
