//! References: parts of an answer that a model gives a name, as `<ref id="name">...</ref>`.

use std::collections::HashSet;

use llm_do_core::Name;

/// How deep references lie in each other at most; what is deeper is not a reference of its own.
const MAX_DEPTH: usize = 16;

/// A part of an answer with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reference<'a> {
    /// The name: `[A-Za-z0-9_-]{1,64}`.
    pub name: &'a str,
    /// The text between the tags. A line end right after the opening tag belongs to the tag.
    pub text: &'a str,
}

/// Finds the references of a text, in the order in which they end.
///
/// A reference within another one is found too, and the outer one holds its markup. Where a name occurs twice, the
/// last one counts. What is not closed, or has no valid name, is not a reference.
pub fn find_references(text: &str) -> Vec<Reference<'_>> {
    let (mut open, mut found) = (Vec::<Tag<'_>>::new(), Vec::<Reference<'_>>::new());
    let mut at = 0;
    while let Some(next) = text[at..].find('<') {
        let start = at + next;
        at = start + 1;
        if let Some(end) = closing(&text[start..]) {
            at = start + end;
            let Some(tag) = open.pop() else { continue };
            if let Some(name) = tag.name.filter(|_| open.len() < MAX_DEPTH) {
                found.push(Reference { name, text: without_line_end(&text[tag.end..start]) });
            }
        } else if let Some(tag) = Tag::read(text, start) {
            at = tag.end;
            open.push(tag);
        }
    }
    last_of_each_name(found)
}

fn last_of_each_name(mut found: Vec<Reference<'_>>) -> Vec<Reference<'_>> {
    let mut seen = HashSet::new();
    found.reverse();
    found.retain(|reference| seen.insert(reference.name));
    found.reverse();
    found
}

fn without_line_end(text: &str) -> &str {
    text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n')).unwrap_or(text)
}

/// Returns where a closing tag ends, if the text begins with one.
fn closing(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("</ref")?.trim_start_matches(is_space);
    rest.starts_with('>').then(|| text.len() - rest.len() + 1)
}

/// An opening tag.
struct Tag<'a> {
    name: Option<&'a str>,
    /// Where the text after it begins.
    end: usize,
}

impl<'a> Tag<'a> {
    /// Reads the opening tag that begins at a place, if one does. One that closes itself holds nothing and is none.
    fn read(text: &'a str, start: usize) -> Option<Self> {
        let mut rest = text[start..].strip_prefix("<ref")?;
        let mut name = None;
        loop {
            let trimmed = rest.trim_start_matches(is_space);
            if let Some(after) = trimmed.strip_prefix('>') {
                return Some(Self { name, end: text.len() - after.len() });
            }
            // Attributes are separated from what is before them: `<references>` is another tag.
            if trimmed.len() == rest.len() {
                return None;
            }
            let (attribute, value, after) = attribute(trimmed)?;
            if attribute == "id" {
                name = value.filter(|name| Name::is_valid(name));
            }
            rest = after;
        }
    }
}

/// Reads one attribute: its name, its value where it has one, and what follows.
fn attribute(text: &str) -> Option<(&str, Option<&str>, &str)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':' | '.');
    let end = text.find(|c: char| !is_name(c))?;
    let (name, rest) = text.split_at(end);
    if name.is_empty() {
        return None;
    }
    let Some(rest) = rest.trim_start_matches(is_space).strip_prefix('=') else {
        return Some((name, None, rest));
    };
    let rest = rest.trim_start_matches(is_space);
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (value, rest) = rest[1..].split_once(quote)?;
    Some((name, Some(value), rest))
}

fn is_space(c: char) -> bool {
    c.is_ascii_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&str, &str)> {
        find_references(text).into_iter().map(|reference| (reference.name, reference.text)).collect()
    }

    #[test]
    fn a_part_with_a_name_is_found() {
        assert_eq!(found("So: <ref id=\"plan\">do it</ref>."), [("plan", "do it")]);
        assert_eq!(found("<ref id='a-B_9'>x</ref><ref id=\"b\"></ref>"), [("a-B_9", "x"), ("b", "")]);
    }

    #[test]
    fn other_attributes_and_spaces_are_tolerated() {
        let text = "<ref lang=\"a > b\"\n id = \"code\" draft >fn main() {}\n</ref >";
        assert_eq!(found(text), [("code", "fn main() {}\n")]);
    }

    #[test]
    fn a_line_end_after_the_opening_tag_belongs_to_the_tag() {
        assert_eq!(found("<ref id=\"a\">\n\none\n</ref>"), [("a", "\none\n")]);
        assert_eq!(found("<ref id=\"a\">\r\none</ref>"), [("a", "one")]);
    }

    #[test]
    fn the_outer_one_holds_the_markup_of_the_inner_one() {
        let text = "<ref id=\"out\">a <ref id=\"in\">b</ref> c</ref>";
        assert_eq!(found(text), [("in", "b"), ("out", "a <ref id=\"in\">b</ref> c")]);
        let unnamed = "<ref id=\"out\">a <ref>b</ref> c</ref>";
        assert_eq!(found(unnamed), [("out", "a <ref>b</ref> c")]);
    }

    #[test]
    fn the_last_one_of_a_name_counts() {
        let text = "<ref id=\"a\">1</ref><ref id=\"b\">2</ref><ref id=\"a\">3</ref>";
        assert_eq!(found(text), [("b", "2"), ("a", "3")]);
    }

    #[test]
    fn what_is_not_closed_or_has_no_valid_name_is_no_reference() {
        for text in [
            "<ref id=\"a\">never closed",
            "<ref>nameless</ref>",
            "<ref id=\"\">x</ref>",
            "<ref id=\"two words\">x</ref>",
            "<ref id=\"über\">x</ref>",
            "<ref id=a>x</ref>",
            "<ref id=\"a\"/>x</ref>",
            "<references id=\"a\">x</references>",
            "< ref id=\"a\">x</ref>",
            "<ref id=\"a",
            "</ref></ref>",
            "<",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
        let long = format!("<ref id=\"{}\">x</ref>", "a".repeat(65));
        assert_eq!(found(&long), []);
    }

    #[test]
    fn an_unclosed_one_does_not_swallow_what_follows() {
        assert_eq!(found("<ref id=\"a\">x <ref id=\"b\">y</ref> z"), [("b", "y")]);
    }

    #[test]
    fn references_do_not_lie_in_each_other_without_end() {
        let text = (0..100_000).map(|number| format!("<ref id=\"r{number}\">")).collect::<String>();
        let text = text + &"</ref>".repeat(100_000);
        assert_eq!(found(&text).len(), MAX_DEPTH);
    }
}
