//! Agent files: a YAML header between `---` lines, then the instructions.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::document::{self, Language, Node, NodeContent};
use crate::read::program_file::ProgramParts;
use crate::source::SourceFile;

/// An agent file, split and its header read.
#[derive(Debug)]
pub(crate) struct AgentFile {
    pub(crate) source: SourceFile,
    pub(crate) header: Node,
    pub(crate) instructions: Arc<str>,
    /// Whether an agent or code created it, and not a person.
    pub(crate) generated: bool,
    /// The path without links; empty for a header that was not read from a file.
    pub(crate) real: PathBuf,
    /// Whether it is part of the project only because another agent names it as a program.
    pub(crate) is_linked: bool,
    /// The files that it names as programs, as they are written, and their paths without links.
    pub(crate) links: HashMap<String, PathBuf>,
    /// What it says besides, where it is a program file.
    pub(crate) program: Option<ProgramParts>,
}

impl AgentFile {
    /// An agent with its header and its instructions.
    pub(crate) fn new(source: SourceFile, header: Node, instructions: impl Into<Arc<str>>) -> Self {
        Self {
            source,
            header,
            instructions: instructions.into(),
            generated: false,
            real: PathBuf::new(),
            is_linked: false,
            links: HashMap::new(),
            program: None,
        }
    }

    /// Marks a file that an agent or code created.
    pub(crate) fn generated(mut self) -> Self {
        self.generated = true;
        self
    }

    /// Returns the name as it is written, whether the rest of the header is right or not.
    pub(crate) fn written_name(&self) -> Option<&str> {
        match &self.header.field("name")?.value.content {
            NodeContent::Text(name) => Some(name),
            _ => None,
        }
    }
}

/// Splits an agent file and reads its header. Spans in the header are spans in the file.
pub(crate) fn read(source: SourceFile) -> Result<AgentFile, Box<Diagnostic>> {
    let text = source.text.clone();
    let Split { header, body } = split(&source)?;
    // The first line becomes blank, so that lines of the header are lines of the file.
    let yaml = format!("{}\n{}", " ".repeat(header.start.saturating_sub(1)), &text[header.clone()]);
    if text[header].trim().is_empty() {
        let empty = Diagnostic::error_at(&source, &(0..3).into(), "the front matter is empty");
        return Err(Box::new(empty.with_hint("write at least `name: ...` between the `---` lines")));
    }
    let header = document::read(&yaml, Language::Yaml)
        .map_err(|error| Box::new(Diagnostic::error_at(&source, &error.span, error.message)))?;
    Ok(AgentFile::new(source, header, text[body..].trim()))
}

struct Split {
    header: std::ops::Range<usize>,
    body: usize,
}

fn split(source: &SourceFile) -> Result<Split, Box<Diagnostic>> {
    let text = &*source.text;
    let hint = "begin the file with `---`, the fields of the agent, and `---` again";
    if text.trim().is_empty() {
        let empty = Diagnostic::error(&source.path, "the agent file is empty");
        return Err(Box::new(empty.with_hint(hint)));
    }
    let first = text.lines().next().unwrap_or_default();
    if first.trim_end() != "---" {
        let message = if text.trim_start().starts_with("---") {
            "the front matter must begin on the first line"
        } else {
            "the file has no front matter"
        };
        return Err(Box::new(
            Diagnostic::error_at(source, &(0..first.len()).into(), message).with_hint(hint),
        ));
    }
    let start = text.find('\n').map_or(text.len(), |end| end + 1);
    let mut at = start;
    for line in text[start..].split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Ok(Split { header: start..at, body: at + line.len() });
        }
        at += line.len();
    }
    let unclosed = Diagnostic::error_at(source, &(0..3).into(), "the front matter is never closed");
    Err(Box::new(unclosed.with_hint("end it with a line `---`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Result<AgentFile, Box<Diagnostic>> {
        read(SourceFile::new("main.agent", text))
    }

    #[test]
    fn header_and_body_are_split_whatever_the_line_ends() {
        for text in [
            "---\nname: main\n---\nDo it.\n\n---\nAlways.\n",
            "---\r\nname: main\r\n---\r\nDo it.\r\n\r\n---\r\nAlways.\r\n",
        ] {
            let file = file(text).unwrap();
            assert_eq!(file.header.to_value(), serde_json::json!({"name": "main"}));
            assert_eq!(file.instructions.replace('\r', ""), "Do it.\n\n---\nAlways.");
            let span = file.header.field("name").unwrap().value.span.clone();
            assert_eq!(&text[span.bytes().unwrap().clone()], "main");
        }
    }

    #[test]
    fn what_is_wrong_with_the_frame_is_said_with_a_hint() {
        for (text, message) in [
            ("", "empty"),
            ("You are helpful.\n", "no front matter"),
            ("\n---\nname: x\n---\n", "first line"),
            ("---\nname: x\n", "never closed"),
            ("---\n---\nx", "empty"),
        ] {
            let diagnostic = file(text).unwrap_err();
            assert!(diagnostic.message.contains(message) && diagnostic.hint.is_some(), "{diagnostic}");
        }
    }

    #[test]
    fn an_error_in_the_header_names_the_line_of_the_file() {
        let diagnostic = file("---\nname: main\ndescription: a: b\n---\nx").unwrap_err();
        assert_eq!(diagnostic.line, Some(3), "{diagnostic}");
    }
}
