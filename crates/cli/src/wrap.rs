//! Breaks text for a terminal between words.

use std::io::{IsTerminal, stderr, stdout};
use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

/// The width of terminals that do not tell theirs.
const USUAL_COLUMNS: usize = 80;

/// Returns how many columns a terminal has.
pub(crate) fn columns_of_terminal(terminal: impl AsFd) -> usize {
    let told = tcgetwinsize(terminal).map_or(0, |size| usize::from(size.ws_col));
    if told == 0 { USUAL_COLUMNS } else { told }
}

/// Breaks text for stdout if that is a terminal: a file or pipe gets whole lines.
pub(crate) fn for_stdout(text: &str) -> String {
    if stdout().is_terminal() { wrapped(text, columns_of_terminal(stdout())) } else { text.to_owned() }
}

/// The same for stderr.
pub(crate) fn for_stderr(text: &str) -> String {
    if stderr().is_terminal() { wrapped(text, columns_of_terminal(stderr())) } else { text.to_owned() }
}

/// Breaks lines between words, so that the terminal does not break them within one and their rows can be counted.
pub(crate) fn wrapped(text: &str, columns: usize) -> String {
    text.lines().map(|line| wrapped_line(line, columns)).collect::<Vec<_>>().join("\n")
}

fn wrapped_line(line: &str, columns: usize) -> String {
    let indent = " ".repeat(hanging_indent(line, columns));
    let mut rows = Vec::new();
    let mut row = String::new();
    for word in line.split_inclusive(' ') {
        // Spaces between two columns are not needed where a row begins.
        if !rows.is_empty() && row.trim().is_empty() && word == " " {
            continue;
        }
        if !row.trim().is_empty() && width(&row) + width(word.trim_end()) > columns {
            rows.push(std::mem::replace(&mut row, indent.clone()));
        }
        row.push_str(word);
        // A word that is longer than a row is broken anywhere.
        while width(row.trim_end()) > columns {
            let end = row_end(&row, columns);
            let rest = row.split_off(end);
            rows.push(std::mem::replace(&mut row, rest));
        }
    }
    rows.push(row);
    rows.iter().map(|row| row.trim_end()).collect::<Vec<_>>().join("\n")
}

/// Returns the byte at which a row is full.
fn row_end(row: &str, columns: usize) -> usize {
    let mut used = 0;
    let is_beyond = |(_, c): &(usize, char)| {
        used += columns_of(*c);
        used > columns
    };
    row.char_indices().find(is_beyond).map_or(row.len(), |(end, _)| end)
}

/// Returns how many columns a text takes at most.
fn width(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Returns how many columns a character takes at most: some that are not ASCII are wide.
fn columns_of(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

/// Returns where the rows below the first one begin: at the second column of a table, unless it is too far to the right,
/// else where the line begins.
fn hanging_indent(line: &str, columns: usize) -> usize {
    let begin = line.len() - line.trim_start_matches(' ').len();
    let Some(gap) = line[begin..].find("  ") else { return begin };
    let behind = &line[begin + gap..];
    let second = width(&line[..begin + gap]) + behind.len() - behind.trim_start_matches(' ').len();
    if second <= columns / 3 { second } else { begin }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_broken_that_fits_on_a_row() {
        let text =
            "  RUNS    its Python code with your rights, in no sandbox\n\n/home/ada/x  (not seen before)";
        let rows = wrapped(text, 40);
        assert_eq!(
            rows.lines().collect::<Vec<_>>(),
            [
                "  RUNS    its Python code with your",
                "          rights, in no sandbox",
                "",
                "/home/ada/x  (not seen before)"
            ]
        );
    }

    #[test]
    fn no_row_is_wider_than_the_terminal() {
        let text = format!("  SENDS   your key to https://{}/ and {}", "long.".repeat(30), "漢".repeat(50));
        assert!(wrapped(&text, 40).lines().all(|row| width(row) <= 40), "{}", wrapped(&text, 40));
    }

    #[test]
    fn rows_begin_below_the_second_column() {
        let text = "ok    sandbox   Landlock, level 7, with signals\nok    address    https://example.com    none\n    calls one, two, three, four, five, six";
        let rows = wrapped(text, 30);
        assert_eq!(
            rows.lines().collect::<Vec<_>>(),
            [
                "ok    sandbox   Landlock,",
                "      level 7, with signals",
                "ok    address",
                "      https://example.com",
                "      none",
                "    calls one, two, three,",
                "    four, five, six"
            ]
        );
    }
}
