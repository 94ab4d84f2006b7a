//! Compares the output that a page shows with what a command printed.
//!
//! `..` in a line matches any text, and a line that is only `..` any number of lines. Spaces that align columns, times and
//! prices are not compared.

/// Returns whether the printed text is what the page shows.
pub fn fits(shown: &str, printed: &str) -> bool {
    let lines = |text: &str| text.trim_end().lines().map(normalized).collect::<Vec<_>>();
    lines_fit(&lines(shown), &lines(printed))
}

fn lines_fit(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first == ".." => {
            (0..=printed.len()).any(|skipped| lines_fit(rest, &printed[skipped..]))
        }
        Some((first, rest)) => {
            printed.split_first().is_some_and(|(line, more)| line_fits(first, line) && lines_fit(rest, more))
        }
    }
}

fn line_fits(shown: &str, printed: &str) -> bool {
    let mut pieces = shown.split("..").map(str::trim);
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = printed.strip_prefix(first) else { return false };
    let mut last = None;
    for piece in pieces {
        let Some(found) = rest.find(piece) else { return false };
        rest = &rest[found + piece.len()..];
        last = Some(piece);
    }
    // A line that ends with `..` may go on; any other ends where the page says.
    last.map_or(rest.is_empty(), |piece| piece.is_empty() || rest.is_empty() || printed.ends_with(piece))
}

/// One space between words, and `N` for measured numbers.
fn normalized(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let normal = words.iter().enumerate().map(|(index, word)| {
        let unit = words.get(index + 1).map(|next| next.trim_end_matches([',', ')', ';']));
        let measured = matches!(unit, Some("ms" | "s")) && word.parse::<f64>().is_ok();
        let price =
            word.strip_prefix('$').is_some_and(|rest| rest.trim_end_matches(',').parse::<f64>().is_ok());
        if measured || price { "N" } else { word }
    });
    normal.collect::<Vec<_>>().join(" ")
}

#[test]
fn shown_output_fits_what_was_printed_and_nothing_else() {
    for (shown, printed) in [
        ("hello", "hello\n"),
        ("a\n..\nd", "a\nb\nc\nd\n"),
        ("..", ""),
        ("took  3 ms, $0.1", "took 25 ms, $0.0000\n"),
        ("error: .. line 3 ..", "error: bad key, line 3 of main.agent\n"),
        ("a ..", "a b c"),
    ] {
        assert!(fits(shown, printed), "{shown} / {printed}");
    }
    for (shown, printed) in [
        ("hello", "hell\n"),
        ("a", "a\nb\n"),
        ("a\nb", "a\n"),
        ("a .. c", "a b c d"),
        ("3 requests", "4 requests"),
    ] {
        assert!(!fits(shown, printed), "{shown} / {printed}");
    }
}
