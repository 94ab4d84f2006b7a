//! Numbers of JSON that Rust and Python values would not keep.
//!
//! JSON has numbers of any size. What is kept here is an integer of 64 bits, signed or not, or a double. A whole number
//! that is neither would be rounded by a parser without a word, so that two ids became one: it is refused instead. A
//! fraction is read as the nearest double, as everywhere.

use std::ops::Range;

/// How much of a number is quoted.
const MAX_QUOTED: usize = 40;

/// A number that cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InexactNumber {
    /// Where it is in the text.
    pub span: Range<usize>,
    /// How many numbers are before it.
    pub(crate) index: usize,
    /// Why it is refused.
    pub message: String,
}

/// Finds the first number of a JSON text that cannot be kept. The text need not be valid JSON.
pub fn find_inexact_number(text: &str) -> Option<InexactNumber> {
    numbers(text).enumerate().find_map(|(index, span)| {
        let message = problem_of(text.get(span.clone())?)?;
        Some(InexactNumber { span, index, message })
    })
}

/// The numbers of a JSON text, in order.
fn numbers(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(byte) = bytes.get(at) {
            let start = at;
            at = match byte {
                b'"' => end_of_string(bytes, at),
                b'-' | b'0'..=b'9' => end_of_number(bytes, at),
                _ => at + 1,
            };
            if matches!(byte, b'-' | b'0'..=b'9') {
                return Some(start..at);
            }
        }
        None
    })
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn end_of_number(bytes: &[u8], start: usize) -> usize {
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    let length = bytes.get(start..).unwrap_or_default().iter().take_while(|byte| is_part(byte)).count();
    start + length
}

/// Returns why a number cannot be kept.
fn problem_of(token: &str) -> Option<String> {
    if token.len() < MAX_SAFE_LEN && !token.contains(['e', 'E']) {
        return None;
    }
    let quoted: String = match token.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}..", &token[..end]),
        None => token.to_owned(),
    };
    if !token.contains(['.', 'e', 'E']) {
        let is_kept = token.parse::<i64>().is_ok() || token.parse::<u64>().is_ok();
        return (!is_kept).then(|| format!("{quoted} does not fit into 64 bits"));
    }
    // A text that is not a number, or one that is too large, is refused by whoever parses it.
    let value: f64 = token.parse().ok().filter(|value: &f64| value.is_finite())?;
    let written = Decimal::new(token);
    let is_whole = written.exponent >= 0;
    let is_lost = value == 0.0 || is_whole;
    (is_lost && written != Decimal::new(&format!("{value:e}")))
        .then(|| format!("{quoted} cannot be kept exactly"))
}

/// Every shorter number without an exponent is kept.
const MAX_SAFE_LEN: usize = 16;

/// The digits of a number without zeros at both ends, and the power of ten of the last one.
#[derive(PartialEq, Eq)]
struct Decimal {
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn new(token: &str) -> Self {
        let (mantissa, exponent) = token.split_once(['e', 'E']).unwrap_or((token, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
        let significant = digits.trim_start_matches('0').trim_end_matches('0');
        if significant.is_empty() {
            return Self { digits: String::new(), exponent: 0 };
        }
        let dropped = digits.len() - digits.trim_end_matches('0').len();
        let shift = i64::try_from(dropped).unwrap_or(0) - i64::try_from(fraction.len()).unwrap_or(0);
        let exponent = exponent.parse::<i64>().unwrap_or(0).saturating_add(shift);
        Self { digits: significant.to_owned(), exponent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Option<String> {
        find_inexact_number(text).map(|found| found.message)
    }

    #[test]
    fn numbers_that_are_kept_are_not_found() {
        for text in [
            "0",
            "-0",
            "-0.0",
            "0e999",
            "1e3",
            "1.50",
            "9223372036854775807",
            "-9223372036854775808",
            "18446744073709551615",
            "9007199254740993",
            "0.1",
            "0.10000000000000001",
            "1e30",
            "1.5e300",
            "3.14159265358979323846",
            "1e-300",
            "100000000000000000000.0",
            "5e-324",
            "1E+22",
            "[1, 2.0]",
            "\"99999999999999999999999\"",
            r#"{"99999999999999999999": "\"99999999999999999999999"}"#,
        ] {
            assert_eq!(message(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_that_would_be_rounded_are_found() {
        for text in [
            "18446744073709551616",
            "-9223372036854775809",
            "123456789012345678901234567890",
            "9007199254740993.0",
            "9007199254740993e0",
            "1234567890123456789e3",
            "1e-400",
            "-12345678901234567890.0",
        ] {
            assert!(message(text).is_some(), "{text}");
        }
        let found = find_inexact_number(r#"{"a": [1, "-2", 3.5], "b": 18446744073709551616}"#).unwrap();
        assert_eq!((found.index, found.span), (2, 27..47));
        assert_eq!(found.message, "18446744073709551616 does not fit into 64 bits");
    }
}
