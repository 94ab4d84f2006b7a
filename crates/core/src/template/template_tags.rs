//! Finds the tags of a template, told apart from text, comments and raw text as the template library does it.

/// A piece of a template.
#[derive(Debug, PartialEq)]
pub(super) enum TemplatePiece<'a> {
    /// A `{{ ... }}` or `{% ... %}`.
    Tag(&'a str),
    /// Anything else: text, comments and raw text.
    Text(&'a str),
}

/// Splits a template into its tags and what is between them. A tag that is never closed ends with the text.
pub(super) fn pieces(source: &str) -> Vec<TemplatePiece<'_>> {
    let mut pieces = Vec::new();
    let (mut begin, mut at) = (0, 0);
    while let Some(start) = source[at..].find('{') {
        at += start;
        let rest = &source[at..];
        let (length, is_tag) = match rest.as_bytes().get(1) {
            Some(b'#') => (rest[2..].find("#}").map_or(rest.len(), |end| end + 4), false),
            Some(b'%') => {
                raw_length(rest).map_or_else(|| (tag_length(rest, b"%}"), true), |length| (length, false))
            }
            Some(b'{') => (tag_length(rest, b"}}"), true),
            _ => (1, false),
        };
        if is_tag {
            pieces.extend((begin < at).then(|| TemplatePiece::Text(&source[begin..at])));
            pieces.push(TemplatePiece::Tag(&source[at..at + length]));
            begin = at + length;
        }
        at += length;
    }
    pieces.extend((begin < source.len()).then(|| TemplatePiece::Text(&source[begin..])));
    pieces
}

/// Returns how often these characters are in a tag, outside of strings.
pub(super) fn count_operators(tag: &str, operators: &[u8]) -> usize {
    let bytes = tag.as_bytes();
    let (mut at, mut count) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' | b'\'' => at = string_end(bytes, at),
            byte if operators.contains(&byte) => count += 1,
            _ => {}
        }
        at += 1;
    }
    count
}

/// The length of the tag at the start of a text. Its end counts outside of strings and brackets only.
fn tag_length(text: &str, end: &[u8]) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut open) = (2, 0_isize);
    while at < bytes.len() {
        if open == 0 && bytes[at..].starts_with(end) {
            at += 2;
            break;
        }
        match bytes[at] {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open -= 1,
            b'"' | b'\'' => at = string_end(bytes, at),
            _ => {}
        }
        at += 1;
    }
    at.min(bytes.len())
}

/// The place of the quote that ends a string.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != bytes[start] {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at
}

/// The length of raw text with its tags, where such begins here.
fn raw_length(text: &str) -> Option<usize> {
    let opening = plain_tag(text, "raw")?;
    let mut at = opening;
    while let Some(start) = text[at..].find("{%") {
        at += start;
        match plain_tag(&text[at..], "endraw") {
            Some(closing) => return Some(at + closing),
            None => at += 2,
        }
    }
    Some(text.len())
}

/// The length of a tag that holds one word only.
fn plain_tag(text: &str, word: &str) -> Option<usize> {
    let c = ['-', '+'];
    let inner = text.strip_prefix("{%")?;
    let inner = inner.strip_prefix(c).unwrap_or(inner).trim_ascii_start().strip_prefix(word)?;
    let inner = inner.trim_ascii_start();
    let after = inner.strip_prefix(c).unwrap_or(inner).strip_prefix("%}")?;
    Some(text.len() - after.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_ends_outside_of_strings_and_brackets() {
        for (source, length) in [
            ("no tag { here }", 0),
            ("{{ a }} and {{ bcd }}", 9),
            ("{{ '}}' }}", 10),
            ("{{ \"\\\"}}\" }}", 12),
            ("{{ {'a': {}} }}{{ a }}", 15),
            ("{% if a %}b", 10),
            ("{# {{ abc }} #}{{ a }}", 7),
            ("{%- raw -%}{{ ' {% endraw %}{{ a }}", 7),
            ("{% raw %}{#{% endraw %}{{ '#}' }}", 10),
            ("a {{ never closed", 15),
            ("{{ 'never closed }}", 19),
        ] {
            let tags = pieces(source)
                .into_iter()
                .map(|piece| if let TemplatePiece::Tag(tag) = piece { tag.len() } else { 0 });
            assert_eq!(tags.max().unwrap_or(0), length, "{source}");
        }
    }
}
