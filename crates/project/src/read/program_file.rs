//! Program files of LLMProc (`.toml`, `.yaml`), read as agents.
//!
//! Every key becomes the key of an agent's header that means the same, with its own span, so that everything after
//! it (checks, links, diagnostics) is what agent files have. What means nothing here is said in a notice.

mod files;
mod parts;
mod plugins;
mod provider;
mod tools;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{Language, Node, NodeContent, TableField};
use crate::file_reader::FileReader;
use crate::read::agent_file::AgentFile;
use crate::source::{SourceFile, Span};
use crate::suggest::suggest;

pub(crate) use files::project_scope;
use parts::{field, list, table, text};

/// The sections of a program file.
const SECTIONS: [&str; 11] = [
    "model",
    "prompt",
    "parameters",
    "preload",
    "env_info",
    "tools",
    "mcp",
    "linked_programs",
    "file_descriptor",
    "plugins",
    "demo",
];

/// The longest name of an agent.
const MAX_NAME_LEN: usize = 64;

/// What only program files say, beside what makes an agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgramParts {
    /// The input where nobody gives one.
    pub(crate) input: Option<String>,
    /// What a conversation begins with.
    pub(crate) demo: Vec<String>,
    /// Files that are part of the program, with their texts: that of its instructions.
    pub(crate) files: Vec<(PathBuf, Arc<str>)>,
}

/// Returns the language of a file that can be a program.
pub(crate) fn language(path: &Path) -> Option<Language> {
    match path.extension()?.to_str()? {
        "yaml" | "yml" => Some(Language::Yaml),
        "toml" => Some(Language::Toml),
        _ => None,
    }
}

/// Returns whether a document is a program, and no manifest.
pub(crate) fn is_program(node: &Node) -> bool {
    let is_table =
        |key: &str| node.field(key).is_some_and(|field| matches!(field.value.content, NodeContent::Table(_)));
    is_table("model") && node.field("entry").is_none() && node.field("version").is_none()
}

/// Reads a program file as an agent; nothing if it is not a table.
pub(crate) fn read(
    source: SourceFile,
    node: &Node,
    path: &Path,
    root: &Path,
    reader: FileReader<'_>,
    out: &mut Diagnostics,
) -> Option<AgentFile> {
    if !matches!(node.content, NodeContent::Table(_)) {
        out.push(Diagnostic::error_at(&source, &node.span, "a program file must be a table"));
        return None;
    }
    let mut reading = ProgramReader::new(&source, path, root, reader, out);
    let instructions = reading.program(node);
    let ProgramReader { header, program, .. } = reading;
    let header = Node { span: Span::START, content: NodeContent::Table(header) };
    let mut file = AgentFile::new(source, header, instructions);
    file.program = Some(program);
    Some(file)
}

/// A program file while it becomes an agent.
struct ProgramReader<'a> {
    source: &'a SourceFile,
    root: &'a Path,
    reader: FileReader<'a>,
    out: &'a mut Diagnostics,
    header: Vec<TableField>,
    settings: Vec<TableField>,
    tools: Vec<Node>,
    program: ProgramParts,
}

impl<'a> ProgramReader<'a> {
    fn new(
        source: &'a SourceFile,
        path: &'a Path,
        root: &'a Path,
        reader: FileReader<'a>,
        out: &'a mut Diagnostics,
    ) -> Self {
        let name = field("name", &Span::START, text(&Span::START, &agent_name(path)));
        let header = vec![name];
        let program = ProgramParts::default();
        Self { source, root, reader, out, header, settings: Vec::new(), tools: Vec::new(), program }
    }

    /// Reads all sections and returns the instructions.
    fn program(&mut self, node: &Node) -> Arc<str> {
        self.notice_unknown("", node, &SECTIONS);
        match node.field("model") {
            Some(model) => self.model(model),
            None => {
                let hint = "write `[model]` with `name` and `provider`";
                self.out.push(
                    Diagnostic::error_at(self.source, &Span::START, "a program file needs a section `model`")
                        .with_hint(hint),
                );
            }
        }
        let node = &self.with_plugins_as_sections(node);
        let instructions = self.section(node, "prompt", Self::prompt).unwrap_or_default();
        self.section(node, "parameters", Self::parameters);
        self.section(node, "preload", Self::preload);
        self.section(node, "env_info", Self::environment);
        self.section(node, "tools", Self::tools);
        self.section(node, "tools", |reading, tools| reading.tools_of_provider(node, tools));
        self.section(node, "mcp", Self::mcp);
        self.section(node, "linked_programs", Self::linked_programs);
        self.section(node, "plugins", Self::tools_of_plugins);
        self.section(node, "file_descriptor", Self::descriptors);
        self.section(node, "demo", Self::demo);
        self.close();
        instructions
    }

    /// Writes down what several sections say together.
    fn close(&mut self) {
        let settings = std::mem::take(&mut self.settings);
        if let Some(span) = settings.first().map(|first| first.span.clone()) {
            self.header.push(field("model_settings", &span, table(&span, settings)));
        }
        let tools = std::mem::take(&mut self.tools);
        if let Some(span) = tools.first().map(|first| first.span.clone()) {
            self.header.push(field("tools", &span, list(&span, tools)));
        }
    }

    /// Reads a section that must be a table, if there is one.
    fn section<T>(&mut self, node: &Node, key: &str, read: impl FnOnce(&mut Self, &Node) -> T) -> Option<T> {
        let found = node.field(key)?;
        match found.value.content {
            NodeContent::Table(_) => Some(read(self, &found.value)),
            NodeContent::Null => None,
            _ => {
                self.refuse(&found.value, format!("`{key}` must be a table"));
                None
            }
        }
    }

    fn refuse(&mut self, node: &Node, message: String) {
        self.out.push(Diagnostic::error_at(self.source, &node.span, message));
    }

    fn notice(&mut self, field: &TableField, message: impl Into<String>) {
        self.out.push(Diagnostic::notice_at(self.source, &field.span, message));
    }

    /// LLMProc passes over keys that it does not know; here it is said.
    fn notice_unknown(&mut self, section: &str, node: &Node, known: &[&str]) {
        let NodeContent::Table(fields) = &node.content else { return };
        for field in fields.iter().filter(|field| !known.contains(&field.name.as_str())) {
            let key =
                if section.is_empty() { field.name.clone() } else { format!("{section}.{}", field.name) };
            let message = format!("`{key}` is unknown and is ignored");
            let notice = Diagnostic::notice_at(self.source, &field.span, message);
            self.out.push(notice.with_hint(suggest(&field.name, known.iter().copied())));
        }
    }

    /// A field that must be a text.
    fn text_of<'n>(&mut self, node: &'n Node, key: &str) -> Option<(&'n TableField, &'n str)> {
        let found = node.field(key)?;
        match &found.value.content {
            NodeContent::Text(text) => Some((found, text)),
            NodeContent::Null => None,
            _ => {
                self.refuse(&found.value, format!("`{key}` must be a text"));
                None
            }
        }
    }

    /// Passes a setting of the model on under another name.
    fn set(&mut self, found: &TableField, key: &str) {
        self.settings.push(field(key, &found.span, found.value.clone()));
    }

    fn prompt(&mut self, prompt: &Node) -> Arc<str> {
        let known = ["system_prompt", "system", "system_prompt_file", "user", "user_prompt"];
        self.notice_unknown("prompt", prompt, &known);
        for (key, other) in [("system", "system_prompt"), ("user", "user_prompt")] {
            if let (Some(_), Some(other)) = (prompt.field(key), prompt.field(other)) {
                self.notice(other, format!("`{}` is ignored, because `{key}` is set too", other.name));
            }
        }
        let user = self.text_of(prompt, "user").or_else(|| self.text_of(prompt, "user_prompt"));
        self.program.input = user.map(|(_, text)| text.to_owned());
        let written = self.text_of(prompt, "system").or_else(|| self.text_of(prompt, "system_prompt"));
        if let Some((found, name)) = self.text_of(prompt, "system_prompt_file") {
            if let Some((written, _)) = written {
                self.notice(
                    written,
                    format!("`{}` is ignored, because `system_prompt_file` is set", written.name),
                );
            }
            return self.prompt_file(found, name).unwrap_or_default();
        }
        written.map(|(_, text)| text.trim().into()).unwrap_or_default()
    }

    fn demo(&mut self, demo: &Node) {
        self.notice_unknown("demo", demo, &["prompts", "pause_between_prompts", "display_name"]);
        for found in ["pause_between_prompts", "display_name"].iter().filter_map(|key| demo.field(key)) {
            self.notice(found, format!("`demo.{}` has no effect", found.name));
        }
        let Some(found) = demo.field("prompts") else { return };
        match texts(&found.value) {
            Some(prompts) => self.program.demo = prompts,
            None => self.refuse(&found.value, "`demo.prompts` must be a list of texts".to_owned()),
        }
    }
}

/// The texts of a list; nothing where it is not a list of texts.
fn texts(node: &Node) -> Option<Vec<String>> {
    let NodeContent::List(items) = &node.content else { return None };
    let text = |item: &Node| match &item.content {
        NodeContent::Text(text) => Some(text.clone()),
        _ => None,
    };
    items.iter().map(text).collect()
}

/// The stem of a file as a name that agents can have.
pub(crate) fn agent_name(path: &Path) -> String {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let c = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
    let name: String = stem.chars().map(c).take(MAX_NAME_LEN).collect();
    if name.is_empty() { "program".to_owned() } else { name }
}
