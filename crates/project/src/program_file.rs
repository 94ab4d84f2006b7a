//! Program files of LLMProc (`.toml`, `.yaml`), read as agents.
//!
//! Every key becomes the key of an agent's header that means the same, at its own place, so that everything after
//! it (checks, links, diagnostics) is what agent files have. What means nothing here is said in a notice.

mod parts;
mod tools;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent_file::AgentFile;
use crate::check::meant;
use crate::diagnostic::{Diagnostic, Diagnostics, Source};
use crate::document::{self, Content, Field, Language, Node};
use crate::listing::Listing;
use crate::load::read_source;
use crate::programs::below;

use parts::{boolean, field, list, table, text};

/// The sections of a program file.
const SECTIONS: [&str; 10] = [
    "model",
    "prompt",
    "parameters",
    "preload",
    "env_info",
    "tools",
    "mcp",
    "linked_programs",
    "file_descriptor",
    "demo",
];

/// The longest name of an agent.
const LONGEST_NAME: usize = 64;

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

/// Says whether a document is a program, and no manifest.
pub(crate) fn is_program(node: &Node) -> bool {
    let is_table =
        |key: &str| node.field(key).is_some_and(|field| matches!(field.value.content, Content::Table(_)));
    is_table("model") && node.field("entry").is_none() && node.field("version").is_none()
}

/// Reads a program file as an agent; nothing where it cannot be read at all.
pub(crate) fn read(
    source: Source,
    language: Language,
    path: &Path,
    root: &Path,
    out: &mut Diagnostics,
) -> Option<AgentFile> {
    let node = document::read(&source.text, language)
        .map_err(|error| out.push(Diagnostic::at(&source, &error.place, error.message)))
        .ok()?;
    if !matches!(node.content, Content::Table(_)) {
        out.push(Diagnostic::at(&source, &node.place, "a program file must be a table"));
        return None;
    }
    let mut reading = Reading::new(&source, path, root, out);
    let instructions = reading.program(&node);
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
    program: ProgramParts,
}

impl<'a> Reading<'a> {
    fn new(source: &'a Source, path: &'a Path, root: &'a Path, out: &'a mut Diagnostics) -> Self {
        let name = field("name", &(0..0), text(&(0..0), &agent_name(path)));
        let header = vec![name];
        Self { source, root, out, header, settings: Vec::new(), program: ProgramParts::default() }
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
        let instructions = self.section(node, "prompt", Self::prompt).unwrap_or_default();
        self.section(node, "parameters", Self::parameters);
        self.section(node, "preload", Self::preload);
        self.section(node, "env_info", Self::environment);
        let has_descriptor_tools = self.section(node, "tools", Self::tools).unwrap_or_default();
        self.section(node, "mcp", Self::mcp);
        self.section(node, "linked_programs", Self::linked_programs);
        self.descriptors(node, has_descriptor_tools);
        self.section(node, "demo", Self::demo);
        let settings = std::mem::take(&mut self.settings);
        if let Some(first) = settings.first() {
            let place = first.place.clone();
            self.header.push(field("model_settings", &place, table(&place, settings)));
        }
        instructions
    }

    /// Reads a section that must be a table.
    fn section<T>(&mut self, node: &Node, key: &str, read: impl FnOnce(&mut Self, &Node) -> T) -> Option<T> {
        let found = node.field(key)?;
        match found.value.content {
            Content::Table(_) => Some(read(self, &found.value)),
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
            self.out.push(notice.with_hint(meant(&field.name, known.iter().copied())));
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

    /// Passes a field on under another name.
    fn pass(&mut self, found: Option<&Field>, key: &str) {
        self.header.extend(found.map(|found| field(key, &found.place, found.value.clone())));
    }

    fn set(&mut self, found: Option<&Field>, key: &str) {
        self.settings.extend(found.map(|found| field(key, &found.place, found.value.clone())));
    }

    fn model(&mut self, model: &Field) {
        if !matches!(model.value.content, Content::Table(_)) {
            return self
                .refuse(&model.value, "`model` must be a table with `name` and `provider`".to_owned());
        }
        let known =
            ["name", "provider", "max_iterations", "disable_automatic_caching", "project_id", "region"];
        self.notice_unknown("model", &model.value, &known);
        for key in ["name", "provider"] {
            if model.value.field(key).is_none() {
                let message = format!("`model.{key}` is missing");
                self.out.push(Diagnostic::at(self.source, &model.place, message));
            }
        }
        let (name, provider) = (self.text_of(&model.value, "name"), self.text_of(&model.value, "provider"));
        if let (Some((place, name)), Some((provider_place, provider))) = (name, provider) {
            let plain = provider.strip_suffix("_vertex").unwrap_or(provider);
            if plain != provider {
                let message = format!("`{provider}` is reached as `{plain}`, with the key of that provider");
                self.notice(provider_place, message);
            }
            let chosen = text(&place.value.place, &format!("{plain}:{name}"));
            self.header.push(field("model", &place.place, chosen));
        }
        for found in ["project_id", "region"].iter().filter_map(|key| model.value.field(key)) {
            self.notice(found, format!("`model.{}` has no effect: Vertex is not used", found.name));
        }
        if let Some(found) = model.value.field("max_iterations") {
            let turns = field("turns", &found.place, found.value.clone());
            self.header.push(field("limits", &found.place, table(&found.place, vec![turns])));
        }
        if let Some(found) = model.value.field("disable_automatic_caching")
            && found.value.content == Content::Bool(true)
        {
            self.settings.push(field("cache", &found.place, boolean(&found.place, false)));
        }
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

    /// Reads the instructions from a file inside the project.
    fn prompt_file(&mut self, found: &Field, name: &str) -> Option<Arc<str>> {
        let outside = || format!("`{name}` lies outside the project");
        let path = below(self.root, &self.source.path, name)
            .ok_or_else(outside)
            .and_then(|below| Listing::new(self.root).named(below));
        match path {
            Ok(path) => {
                let text = read_source(&path, self.out)?.text;
                self.program.files.push(path);
                Some(text.trim().into())
            }
            Err(message) => {
                self.refuse(&found.value, format!("`system_prompt_file`: {message}"));
                None
            }
        }
    }

    fn parameters(&mut self, parameters: &Node) {
        let Content::Table(fields) = &parameters.content else { return };
        for found in fields {
            match found.name.as_str() {
                "temperature" | "top_p" | "max_tokens" | "extra_headers" => {
                    self.set(Some(found), &found.name)
                }
                "max_completion_tokens" | "max_tokens_to_sample" => self.most_tokens(parameters, found),
                "stop" | "stop_sequences" => self.stop(parameters, found),
                "reasoning_effort" => self.set(Some(found), "effort"),
                "thinking" => {
                    let thinking =
                        crate::older::thinking_of(&found.value).unwrap_or_else(|| found.value.clone());
                    self.settings.push(field("thinking", &found.place, thinking));
                }
                "top_k" | "frequency_penalty" | "presence_penalty" => {
                    let message =
                        format!("`parameters.{}` is not sent: only some providers know it", found.name);
                    let hint = "an agent file can send it as it stands, under `model_settings.extra_body`";
                    let notice = Diagnostic::at(self.source, &found.place, message).notice();
                    self.out.push(notice.with_hint(hint));
                }
                _ => {
                    let message = format!("`parameters.{}` is unknown and passed over", found.name);
                    let notice = Diagnostic::at(self.source, &found.place, message).notice();
                    self.out.push(notice.with_hint(meant(&found.name, PARAMETERS)));
                }
            }
        }
    }

    fn most_tokens(&mut self, parameters: &Node, found: &Field) {
        if parameters.field("max_tokens").is_some() {
            let message = format!("`max_tokens` and `{}` are the same setting, written twice", found.name);
            return self.refuse(&found.value, message);
        }
        self.set(Some(found), "max_tokens");
    }

    /// One text or a list of them.
    fn stop(&mut self, parameters: &Node, found: &Field) {
        if found.name == "stop_sequences" && parameters.field("stop").is_some() {
            let message = "`stop` and `stop_sequences` are the same setting, written twice".to_owned();
            return self.refuse(&found.value, message);
        }
        let value = match &found.value.content {
            Content::Text(_) => list(&found.value.place, vec![found.value.clone()]),
            _ => found.value.clone(),
        };
        self.settings.push(field("stop", &found.place, value));
    }

    fn preload(&mut self, preload: &Node) {
        self.notice_unknown("preload", preload, &["files", "relative_to"]);
        if let Some((found, base)) = self.text_of(preload, "relative_to") {
            match base {
                "program" => {}
                "cwd" => {
                    self.notice(found, "files are relative to this file, wherever the program is started")
                }
                _ => self.refuse(&found.value, "`relative_to` is `program` or `cwd`".to_owned()),
            }
        }
        self.pass(preload.field("files"), "preload");
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

/// The parameters that are passed on.
const PARAMETERS: [&str; 10] = [
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "max_tokens_to_sample",
    "stop",
    "stop_sequences",
    "reasoning_effort",
    "thinking",
    "extra_headers",
];

/// The texts of a list; nothing where it is no list of texts.
fn texts(node: &Node) -> Option<Vec<String>> {
    let Content::List(items) = &node.content else { return None };
    let text = |item: &Node| match &item.content {
        Content::Text(text) => Some(text.clone()),
        _ => None,
    };
    items.iter().map(text).collect()
}

/// The stem of a file as a name that agents can have.
fn agent_name(path: &Path) -> String {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let sign = |sign: char| if sign.is_ascii_alphanumeric() || "_-".contains(sign) { sign } else { '_' };
    let name: String = stem.chars().map(sign).take(LONGEST_NAME).collect();
    if name.is_empty() { "program".to_owned() } else { name }
}
