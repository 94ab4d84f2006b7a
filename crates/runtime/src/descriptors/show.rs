//! What a model reads of a descriptor.
//!
//! Texts are written between tags as they are: nothing in them is escaped, and the attribute `chars` says how long the text is that
//! follows after the line end, so that it can be taken out whatever it holds.

use std::fmt::{Display, Write};

use llm_do_core::Failure;

use super::fd::{Excerpt, Fd, FdInfo, FdSource, Selection};
use super::id::FdId;

/// Shows a descriptor for the first time: what there is, and the first page.
pub fn first_view(fd: &Fd) -> Result<String, Failure> {
    let page = fd.read(Selection::Page, 1, 1)?;
    let info = &fd.info;
    let tag = Tag::new("fd_result")
        .with("fd", &info.id)
        .with("pages", info.pages)
        .with("page", 1)
        .with("lines", lines(&page))
        .with("total_lines", info.lines)
        .with("chars", page.characters())
        .with("total_chars", info.chars)
        .with("source", info.source.as_str());
    let (what, text) = (noun(info.source), &page.text);
    let message = format!("The {what} has {} characters. Use {} to read more pages.", info.chars, fd.reader);
    let open = tag.open();
    Ok(format!("{open}\n<message>{message}</message>\n<preview>\n{text}\n</preview>\n</fd_result>"))
}

/// Shows what was taken out of a descriptor as a new one, without its text.
pub fn extraction_view(info: &FdInfo, from: &FdId) -> String {
    let tag = header("fd_result", info).with("from", from);
    let message = format!("The part has {} characters, and is read as any other text.", info.chars);
    format!("{}\n<message>{message}</message>\n</fd_result>", tag.open())
}

/// Shows a part of the text of a descriptor.
pub fn reading_view(info: &FdInfo, part: &Excerpt) -> String {
    let mut tag = Tag::new("fd_content").with("fd", &info.id);
    if part.selection == Selection::Page {
        tag = tag.with("page", range(part.start, part.start + part.count.max(1) - 1));
    }
    let tag = tag
        .with("pages", info.pages)
        .with("lines", lines(part))
        .with("total_lines", info.lines)
        .with("chars", part.characters())
        .with("total_chars", info.chars)
        .with("mode", part.selection)
        .with("start", part.start)
        .with("count", part.count)
        .with("continued", part.continued)
        .with("truncated", part.truncated);
    format!("{}\n{}\n</fd_content>", tag.open(), part.text)
}

fn header(name: &str, info: &FdInfo) -> Tag {
    Tag::new(name)
        .with("fd", &info.id)
        .with("pages", info.pages)
        .with("total_lines", info.lines)
        .with("total_chars", info.chars)
        .with("source", info.source.as_str())
}

fn noun(source: FdSource) -> &'static str {
    match source {
        FdSource::ToolResult => "output",
        FdSource::UserInput => "input",
        FdSource::Reference => "reference",
        FdSource::Extraction => "part",
        FdSource::Passed => "text",
    }
}

fn lines(part: &Excerpt) -> String {
    format!("{}-{}", part.from.line, part.last_line)
}

fn range(first: u64, last: u64) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// An opening tag that is being written.
struct Tag(String);

impl Tag {
    fn new(name: &str) -> Self {
        Self(format!("<{name}"))
    }

    fn with(mut self, name: &str, value: impl Display) -> Self {
        // Writing to a string cannot fail.
        let _ = write!(self.0, " {name}=\"{}\"", escaped(&value.to_string()));
        self
    }

    fn open(self) -> String {
        self.0 + ">"
    }
}

/// Writes a value so that it ends where the attribute ends.
fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => {
                let _ = write!(escaped, "&#{};", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_an_attribute_cannot_leave_it() {
        let tag = Tag::new("x").with("a", "1\" b=\"2\">&\n").open();
        assert_eq!(tag, "<x a=\"1&quot; b=&quot;2&quot;&gt;&amp;&#10;\">");
    }
}
