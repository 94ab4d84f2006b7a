//! Program files of LLMProc (`.toml`, `.yaml`), read as agents.
//!
//! Every key becomes the key of an agent's header that means the same, at its own place, so that everything after
//! it (checks, links, diagnostics) is what agent files have. What means nothing here is said in a notice.

mod files;
mod parts;
mod plugins;
mod provider;
mod tools;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics, Source};
use crate::document::{Content, Field, Language, Node};
use crate::read::agent_file::AgentFile;
use crate::suggest::suggest;

pub(crate) use files::reach;
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
    /// Files that are part of the program: that of its instructions.
    pub(crate) files: Vec<PathBuf>,
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
        |key: &str| node.field(key).is_some_and(|field| matches!(field.value.content, Content::Table(_)));
    is_table("model") && node.field("entry").is_none() && node.field("version").is_none()
}

/// Reads a program file as an agent; nothing if it is not a table.
pub(crate) fn read(
    source: Source,
    node: &Node,
    path: &Path,
    root: &Path,
    out: &mut Diagnostics,
) -> Option<AgentFile> {
    if !matches!(node.content, Content::Table(_)) {
        out.push(Diagnostic::at(&source, &node.place, "a program file must be a table"));
        return None;
    }
    let mut reading = Reading::new(&source, path, root, out);
    let instructions = reading.program(node);
    let Reading { header, program, .. } = reading;
    let header = Node { place: 0..0, content: Content::Table(header) };
    let mut file = AgentFile::new(source, header, instructions);
    file.program = Some(program);
    Some(file)
}

/// A program file while it becomes an agent.
struct Reading<'a> {
    source: &'a Source,
    root: &'a Path,
    out: &'a mut Diagnostics,
    header: Vec<Field>,
    settings: Vec<Field>,
    tools: Vec<Node>,
    program: ProgramParts,
}

impl<'a> Reading<'a> {
    fn new(source: &'a Source, path: &'a Path, root: &'a Path, out: &'a mut Diagnostics) -> Self {
        let name = field("name", &(0..0), text(&(0..0), &agent_name(path)));
        let header = vec![name];
        let program = ProgramParts::default();
        Self { source, root, out, header, settings: Vec::new(), tools: Vec::new(), program }
    }

    /// Reads all sections and returns the instructions.
    fn program(&mut self, node: &Node) -> Arc<str> {
        self.notice_unknown("", node, &SECTIONS);
        match node.field("model") {
            Some(model) => self.model(model),
            None => {
                let hint = "write `[model]` with `name` and `provider`";
                self.out.push(
                    Diagnostic::at(self.source, &(0..0), "a program file has a section `model`")
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
        if let Some(place) = settings.first().map(|first| first.place.clone()) {
            self.header.push(field("model_settings", &place, table(&place, settings)));
        }
        let tools = std::mem::take(&mut self.tools);
        if let Some(place) = tools.first().map(|first| first.place.clone()) {
            self.header.push(field("tools", &place, list(&place, tools)));
        }
    }

    /// Reads a section that must be a table, if there is one.
    fn section<T>(&mut self, node: &Node, key: &str, read: impl FnOnce(&mut Self, &Node) -> T) -> Option<T> {
        let found = node.field(key)?;
        match found.value.content {
            Content::Table(_) => Some(read(self, &found.value)),
            Content::Null => None,
            _ => {
                self.refuse(&found.value, format!("`{key}` must be a table"));
                None
            }
        }
    }

    fn refuse(&mut self, node: &Node, message: String) {
        self.out.push(Diagnostic::at(self.source, &node.place, message));
    }

    fn notice(&mut self, field: &Field, message: impl Into<String>) {
        self.out.push(Diagnostic::at(self.source, &field.place, message).notice());
    }

    /// LLMProc passes over keys that it does not know; here it is said.
    fn notice_unknown(&mut self, section: &str, node: &Node, known: &[&str]) {
        let Content::Table(fields) = &node.content else { return };
        for field in fields.iter().filter(|field| !known.contains(&field.name.as_str())) {
            let key =
                if section.is_empty() { field.name.clone() } else { format!("{section}.{}", field.name) };
            let message = format!("`{key}` is unknown and passed over");
            let notice = Diagnostic::at(self.source, &field.place, message).notice();
            self.out.push(notice.with_hint(suggest(&field.name, known.iter().copied())));
        }
    }

    /// A field that must be a text.
    fn text_of<'n>(&mut self, node: &'n Node, key: &str) -> Option<(&'n Field, &'n str)> {
        let found = node.field(key)?;
        match &found.value.content {
            Content::Text(text) => Some((found, text)),
            Content::Null => None,
            _ => {
                self.refuse(&found.value, format!("`{key}` must be a text"));
                None
            }
        }
    }

    /// Passes a setting of the model on under another name.
    fn set(&mut self, found: &Field, key: &str) {
        self.settings.push(field(key, &found.place, found.value.clone()));
    }

    fn prompt(&mut self, prompt: &Node) -> Arc<str> {
        let known = ["system_prompt", "system", "system_prompt_file", "user", "user_prompt"];
        self.notice_unknown("prompt", prompt, &known);
        for (key, other) in [("system", "system_prompt"), ("user", "user_prompt")] {
            if let (Some(_), Some(other)) = (prompt.field(key), prompt.field(other)) {
                self.notice(
                    other,
                    format!("`{}` is passed over, since `{key}` stands beside it", other.name),
                );
            }
        }
        let user = self.text_of(prompt, "user").or_else(|| self.text_of(prompt, "user_prompt"));
        self.program.input = user.map(|(_, text)| text.to_owned());
        let written = self.text_of(prompt, "system").or_else(|| self.text_of(prompt, "system_prompt"));
        if let Some((found, name)) = self.text_of(prompt, "system_prompt_file") {
            if let Some((written, _)) = written {
                self.notice(written, format!("`{}` is passed over, since a file is named", written.name));
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
    let Content::List(items) = &node.content else { return None };
    let text = |item: &Node| match &item.content {
        Content::Text(text) => Some(text.clone()),
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
