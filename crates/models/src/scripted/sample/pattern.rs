//! Makes a text that matches a regular expression.
//!
//! Anchors and word boundaries are passed over and look-around is not understood, so a sample is a guess:
//! whoever asks for one checks it.

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind, Repetition};

/// No sample grows beyond this.
const MAX_LENGTH: usize = 10_000;

/// Returns a text for a pattern, in which repetitions are written `repeat` times, within their bounds.
pub(crate) fn sample(pattern: &str, repeat: u32) -> Option<String> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let mut text = String::new();
    write_sample(&hir, repeat, &mut text)?;
    Some(text)
}

fn write_sample(hir: &Hir, repeat: u32, text: &mut String) -> Option<()> {
    if text.len() > MAX_LENGTH {
        return None;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(Class::Unicode(class)) => text.push(readable(class)?),
        HirKind::Class(Class::Bytes(class)) => text.push(readable(&class.to_unicode_class()?)?),
        HirKind::Repetition(repetition) => {
            for _ in 0..times(repetition, repeat) {
                write_sample(&repetition.sub, repeat, text)?;
            }
        }
        HirKind::Capture(capture) => write_sample(&capture.sub, repeat, text)?,
        HirKind::Concat(parts) => {
            parts.iter().try_for_each(|part| write_sample(part, repeat, text))?;
        }
        HirKind::Alternation(alternatives) => write_sample(alternatives.first()?, repeat, text)?,
    }
    Some(())
}

fn times(repetition: &Repetition, repeat: u32) -> u32 {
    repeat.max(repetition.min).min(repetition.max.unwrap_or(u32::MAX))
}

/// Picks a character of a class, one that can be read where there is one.
fn readable(class: &ClassUnicode) -> Option<char> {
    let has = |c: &char| class.ranges().iter().any(|range| (range.start()..=range.end()).contains(c));
    let first = class.ranges().first().map(|range| range.start());
    ['a', 'A', '0', '-', '_', ' '].into_iter().find(has).or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_made_of_the_simplest_parts_of_the_pattern() {
        let cases = [
            (r"^[a-z]+$", 1, "a"),
            (r"^\d{4}-\d{2}$", 0, "0000-00"),
            (r"^(red|green)_[^/]*$", 0, "red_"),
            (r"^v?\d+$", 1, "v0"),
            (r"^x{2,3}$", 9, "xxx"),
        ];
        for (pattern, repeat, expected) in cases {
            assert_eq!(sample(pattern, repeat).as_deref(), Some(expected), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_that_would_explode_or_is_not_understood_has_no_sample() {
        assert_eq!(sample("((((a{999}){999}){999}){999})", 0), None);
        assert_eq!(sample("(?=a)b", 0), None);
        assert_eq!(sample("(", 0), None);
    }
}
