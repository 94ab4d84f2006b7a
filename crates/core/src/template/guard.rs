//! Has every value measured that a template gives a name: `set`, `for`, `with`, `macro` and `call`.
//!
//! The library has no hook for assignments. So each tag that binds names is followed, on the same line, by an expression
//! that measures them and writes nothing.

use super::bounds::MEASURE;
use super::template_tags::{TemplatePiece, pieces};

/// A template whose bindings are measured.
pub(super) struct Guarded {
    pub(super) source: String,
    /// The longest text that is captured as it is, without a tag in it.
    pub(super) longest_captured: usize,
}

/// Adds the measuring to a template, or returns the tag whose names cannot be found.
pub(super) fn guarded(source: &str) -> Result<Guarded, String> {
    let mut written = String::with_capacity(source.len() + source.len() / 8);
    let mut longest_captured = 0;
    let mut captures: Vec<Vec<String>> = Vec::new();
    for piece in pieces(source) {
        match piece {
            TemplatePiece::Text(text) => {
                written.push_str(text);
                if !captures.is_empty() {
                    longest_captured = longest_captured.max(text.len());
                }
            }
            TemplatePiece::Tag(tag) => {
                written.push_str(tag);
                let Some(inner) = block(tag) else { continue };
                for name in bound(inner, &mut captures).ok_or_else(|| tag.to_owned())? {
                    let trims = if tag.ends_with("-%}") { "-" } else { "" };
                    written.push_str(&format!("{{{{ {name}|{MEASURE} {trims}}}}}"));
                }
            }
        }
    }
    Ok(Guarded { source: written, longest_captured })
}

/// Returns what is inside a `{% ... %}`.
fn block(tag: &str) -> Option<&str> {
    let inner = tag.strip_prefix("{%")?.strip_suffix("%}")?;
    let marks = ['-', '+'];
    Some(inner.strip_prefix(marks).unwrap_or(inner).trim_end_matches(marks).trim())
}

/// Returns the names that have a value behind a tag. `captures` holds the names that get theirs at the end of a block.
fn bound(inner: &str, captures: &mut Vec<Vec<String>>) -> Option<Vec<String>> {
    let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
    let (word, rest) = (&inner[..end], inner[end..].trim());
    match word {
        "set" => match split(rest, '=').as_slice() {
            [targets, _, ..] => names(targets),
            _ => {
                captures.push(names(split(rest, '|')[0])?);
                Some(Vec::new())
            }
        },
        "for" => {
            let end = rest.find(" in ").or_else(|| rest.find(" in(")).or_else(|| rest.find(" in["))?;
            names(&rest[..end])
        }
        "with" => split(rest, ',')
            .into_iter()
            .map(|binding| names(split(binding, '=')[0]))
            .collect::<Option<Vec<_>>>()
            .map(|names| names.concat()),
        "macro" | "call" => {
            captures.push(Vec::new());
            let arguments = match word {
                "macro" => rest.find('(').map(|start| &rest[start..])?,
                _ if rest.starts_with('(') => rest,
                _ => return Some(Vec::new()),
            };
            let list = arguments.get(1..closing(arguments)?)?;
            let bindings = split(list, ',').into_iter().filter(|binding| !binding.trim().is_empty());
            bindings
                .map(|binding| names(split(binding, '=')[0]))
                .collect::<Option<Vec<_>>>()
                .map(|names| names.concat())
        }
        "filter" => {
            captures.push(Vec::new());
            Some(Vec::new())
        }
        "endset" | "endmacro" | "endcall" | "endfilter" => Some(captures.pop().unwrap_or_default()),
        _ => Some(Vec::new()),
    }
}

/// Reads the names of `a`, `a, b`, `(a, (b, c))` or `space.a`.
fn names(targets: &str) -> Option<Vec<String>> {
    let targets = targets.replace(['(', ')', '[', ']'], " ");
    let names = targets.split(',').map(str::trim).filter(|name| !name.is_empty());
    let is_name = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
    names.map(|name| is_name(name).then(|| name.to_owned())).collect()
}

/// Splits at a character that is not in a string or in brackets, nor part of `==`, `!=`, `<=` or `>=`.
fn split(text: &str, at: char) -> Vec<&str> {
    let (mut parts, mut start, mut open, mut quote) = (Vec::new(), 0, 0_i32, None);
    let mut characters = text.char_indices().peekable();
    let mut previous = ' ';
    while let Some((index, c)) = characters.next() {
        let next = characters.peek().map(|(_, c)| *c);
        match (quote, c) {
            (Some(_), '\\') => drop(characters.next()),
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => open += 1,
            (None, ')' | ']' | '}') => open -= 1,
            (None, c) if c == at && open == 0 => {
                let compares = at == '=' && (next == Some('=') || "=!<>".contains(previous));
                if !compares {
                    parts.push(&text[start..index]);
                    start = index + c.len_utf8();
                }
            }
            _ => {}
        }
        previous = c;
    }
    parts.push(&text[start..]);
    parts
}

/// Returns where the bracket with which a text begins is closed.
fn closing(text: &str) -> Option<usize> {
    let inside = &text[1..];
    let mut open = 1_i32;
    let mut quote = None;
    let mut characters = inside.char_indices();
    while let Some((index, c)) = characters.next() {
        match (quote, c) {
            (Some(_), '\\') => drop(characters.next()),
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => open += 1,
            (None, ')' | ']' | '}') => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(index + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_measured_behind_the_tags_that_bind_them() {
        for (source, names) in [
            ("{% set a = 1 %}x", vec!["a"]),
            ("{%- set a, (b) = x == y, '=' -%}", vec!["a", "b"]),
            ("{% set ns.a = ns.a ~ 'x' %}", vec!["ns.a"]),
            ("{% set a %}text{% endset %}", vec!["a"]),
            ("{% set a | upper %}text{% endset %}", vec!["a"]),
            ("{% for k, v in x if v == 1 %}{{ k }}{% endfor %}", vec!["k", "v"]),
            ("{% for a in[1] recursive %}{% endfor %}", vec!["a"]),
            ("{% with a = [1, 2], b = {'c': 1} %}{% endwith %}", vec!["a", "b"]),
            ("{% macro f(a, b=g(1, ')')) %}{% endmacro %}", vec!["a", "b"]),
            ("{% call(a) f(b) %}{% endcall %}", vec!["a"]),
            ("{% call f(b) %}{% endcall %}{% if a == 1 %}{% endif %}{{ a }}", vec![]),
        ] {
            let guarded = guarded(source).unwrap().source;
            let measured = guarded.split("{{ ").filter_map(|part| part.split_once("|__measured"));
            assert_eq!(measured.map(|(name, _)| name).collect::<Vec<_>>(), names, "{source}: {guarded}");
        }
        assert_eq!(guarded("{%- set a = 1 -%} x").unwrap().source, "{%- set a = 1 -%}{{ a|__measured -}} x");
    }
}
