//! YAML workers of the Python program (`workers/NAME.yaml`), read as agent files.
//!
//! `instructions` becomes the text below the header, `sandboxes` a toolset, `tool_rules` the key `approval`. A worker
//! had the tools that its sandboxes, its rules and `allow_workers` implied, so these are listed for it. All other
//! keys are those of a header, and are checked as such.

mod sandboxes;

use std::path::{Path, PathBuf};

use llm_do_core::Name;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{self, Language, Node, NodeContent, TableField};
use crate::globs::is_glob;
use crate::read::agent_file::AgentFile;
use crate::read::program_file::{agent_name, language};
use crate::read::worker_keys::{TOOL_RULES, ToolRule, read_rules};
use crate::source::{SourceFile, Span};

/// The directory in which the Python program kept workers.
const REGISTRY: &str = "workers";

/// The directory below it of workers that were created.
const GENERATED: &str = "generated";

/// No worker file is larger than this.
const MAX_WORKER_BYTES: u64 = 4 * 1024 * 1024;

/// Returns whether a document is a worker, and not a manifest or a program.
pub(crate) fn is_worker(path: &Path, node: &Node) -> bool {
    let has = |key: &str| node.field(key).is_some();
    let is_program =
        node.field("model").is_some_and(|model| matches!(model.value.content, NodeContent::Table(_)));
    let is_manifest = ["version", "agent_files", "worker_files", "python_files"].into_iter().any(has);
    language(path) == Some(Language::Yaml)
        && !is_program
        && !is_manifest
        && (has("instructions") || (has("name") && project_of(path).is_some()))
}

/// Reads a worker as an agent.
pub(crate) fn read(source: SourceFile, node: Node, path: &Path, out: &mut Diagnostics) -> AgentFile {
    let mut header = node;
    let instructions = take_instructions(&source, &mut header, out);
    out.push(Diagnostic::read_as(&source, &Span::START, "a YAML worker", "an agent file"));
    let mut worker = Worker { source: &source, header: &mut header, tools: Vec::new(), out };
    worker.name(path);
    let has_files = worker.sandboxes();
    worker.rules(has_files);
    worker.delegation();
    worker.list_tools();
    AgentFile::new(source, header, instructions.trim())
}

fn take_instructions(source: &SourceFile, header: &mut Node, out: &mut Diagnostics) -> String {
    match take(header, "instructions").map(|field| (field.value.span, field.value.content)) {
        Some((_, NodeContent::Text(text))) => text,
        Some((span, _)) => {
            out.push(Diagnostic::error_at(source, &span, "`instructions` must be a text"));
            String::new()
        }
        None => {
            let hint = "write the text of `prompts/NAME.jinja2` there, if the worker had one";
            out.push(
                Diagnostic::error_at(source, &Span::START, "the worker has no `instructions`")
                    .with_hint(hint),
            );
            String::new()
        }
    }
}

/// Takes a field out of a table.
fn take(node: &mut Node, name: &str) -> Option<TableField> {
    let fields = node.fields_mut()?;
    let index = fields.iter().position(|field| field.name == name)?;
    Some(fields.remove(index))
}

/// A worker while it becomes an agent.
struct Worker<'a> {
    source: &'a SourceFile,
    header: &'a mut Node,
    /// Tools that it had without listing them.
    tools: Vec<Node>,
    out: &'a mut Diagnostics,
}

impl Worker<'_> {
    fn name(&mut self, path: &Path) {
        if self.header.field("name").is_none() {
            let is_in_own_directory = path.file_name().is_some_and(|name| name == "worker.yaml");
            let named = path.parent().filter(|_| is_in_own_directory).unwrap_or(path);
            self.add("name", text(&agent_name(named)));
        }
    }

    fn add(&mut self, name: &str, value: Node) {
        let field = TableField { name: name.to_owned(), span: value.span.clone(), value };
        self.header.fields_mut().into_iter().for_each(|fields| fields.push(field.clone()));
    }

    /// Reads `sandboxes` or `sandbox` as a toolset; returns whether there is one.
    fn sandboxes(&mut self) -> bool {
        let Some(found) = take(self.header, "sandboxes").or_else(|| take(self.header, "sandbox")) else {
            return false;
        };
        match sandboxes::toolset(&found) {
            Ok(None) => false,
            Ok(Some(toolset)) => {
                let old = format!("`{}`", found.name);
                let new = "the toolset `filesystem_project`";
                self.out.push(Diagnostic::read_as(self.source, &found.span, &old, new));
                let span = toolset.span.clone();
                self.add("toolsets", Node { span, content: NodeContent::List(vec![toolset]) });
                true
            }
            Err((span, message, hint)) => {
                self.out.push(Diagnostic::error_at(self.source, &span, message).with_hint(hint));
                false
            }
        }
    }

    /// Reads `tool_rules`: what is allowed is listed, and every rule of a tool that the worker has is kept.
    fn rules(&mut self, has_files: bool) {
        let Some(rules) = self.header.field(TOOL_RULES).and_then(|field| read_rules(&field.value)) else {
            return;
        };
        let Some(found) = take(self.header, TOOL_RULES) else { return };
        self.out.push(Diagnostic::read_as(self.source, &found.span, "`tool_rules`", "`approval`"));
        let mut kept = Vec::new();
        for rule in &rules {
            match is_file_tool(&rule.tool) {
                true if has_files => kept.push(rule.field()),
                true => self.notice_no_sandbox(rule),
                // A tool that is not allowed was not offered to the worker at all.
                false if rule.is_blocked() => {}
                false => {
                    self.tools.push(Node { span: rule.span.clone(), ..text(&rule.tool) });
                    kept.push(rule.field());
                }
            }
        }
        let approval = Node { span: found.value.span, content: NodeContent::Table(kept) };
        self.add("approval", approval);
    }

    fn notice_no_sandbox(&mut self, rule: &ToolRule) {
        let message = format!("the rule for `{}` has no effect: the worker has no sandbox", rule.tool);
        self.out.push(Diagnostic::notice_at(self.source, &rule.span, message));
    }

    /// A worker that may call others had a tool for it.
    fn delegation(&mut self) {
        const CALL: &str = "agent_call";
        let names = self.header.field("allow_workers").map(|field| &field.value);
        let Some(Node { span, content: NodeContent::List(items) }) = names else { return };
        let is_listed = self.tools.iter().any(|tool| tool.text() == Some(CALL));
        if !items.is_empty() && !is_listed {
            self.tools.push(Node { span: span.clone(), ..text(CALL) });
        }
    }

    /// Lists the tools that the worker had, unless it is of a later version that lists them itself.
    fn list_tools(&mut self) {
        let tools = std::mem::take(&mut self.tools);
        if let Some(span) = tools.first().map(|tool| tool.span.clone())
            && self.header.field("tools").is_none()
        {
            self.add("tools", Node { span, content: NodeContent::List(tools) });
        }
    }
}

fn is_file_tool(tool: &str) -> bool {
    matches!(tool, "read_file" | "write_file" | "list_files" | "edit_file")
}

fn text(text: &str) -> Node {
    Node { span: Span::START, content: NodeContent::Text(text.to_owned()) }
}

/// Returns the directory of the project of a worker: the one that has the directory `workers`, if it is in one.
pub(crate) fn project_of(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    let is_registry = |directory: &&Path| directory.file_name().is_some_and(|name| name == REGISTRY);
    let registry = absolute.ancestors().skip(1).take(2).find(is_registry)?;
    let levels = absolute.strip_prefix(registry).ok()?.components().count();
    let root = path.ancestors().nth(levels + 1)?;
    Some(if root == Path::new("") { PathBuf::from(".") } else { root.to_path_buf() })
}

/// Returns the workers of a registry: of the directory `workers` of a project.
pub(crate) fn registered(root: &Path) -> Vec<PathBuf> {
    let registry = root.join(REGISTRY);
    let mut files = yaml_files(&registry);
    let directories = std::fs::read_dir(&registry).into_iter().flatten().flatten();
    files.extend(directories.map(|entry| entry.path().join("worker.yaml")).filter(|path| path.is_file()));
    files.extend(yaml_files(&registry.join(GENERATED)));
    files.sort();
    files.dedup();
    files
}

/// Returns whether a model or a program created a worker.
pub(crate) fn is_created(path: &Path) -> bool {
    path.parent().is_some_and(|directory| directory.ends_with(Path::new(REGISTRY).join(GENERATED)))
}

/// Returns a worker and those of its registry that it may call, that these may call, and so on.
pub(crate) fn with_callable(root: &Path, path: &Path, node: &Node) -> Vec<PathBuf> {
    let registered = registered(root);
    let mut paths = vec![path.to_path_buf()];
    let mut allowed = allowed_names(node);
    while let Some(pattern) = allowed.pop() {
        for found in registered.iter().filter(|path| is_named(path, &pattern)) {
            if !paths.contains(found) {
                paths.push(found.clone());
                // What is wrong with it is reported when it is read for good.
                let node = document::read(&read_small(found), Language::Yaml);
                allowed.extend(node.iter().flat_map(allowed_names));
            }
        }
    }
    paths
}

/// Reads a file of a usual size; the text is empty if it cannot be read.
fn read_small(path: &Path) -> String {
    let is_small = std::fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MAX_WORKER_BYTES);
    if is_small { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() }
}

fn allowed_names(node: &Node) -> Vec<String> {
    let allowed = node.field("allow_workers").map(|field| field.value.to_value());
    allowed.and_then(|list| serde_json::from_value(list).ok()).unwrap_or_default()
}

/// Returns whether an entry of an allow-list may mean a worker.
fn is_named(path: &Path, pattern: &str) -> bool {
    let name = match path.file_stem().and_then(|stem| stem.to_str()) {
        Some("worker") => path.parent().and_then(Path::file_name).and_then(|name| name.to_str()),
        stem => stem,
    };
    is_glob(pattern) || Some(pattern) == name
}

fn yaml_files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_named = |path: &PathBuf| {
        path.file_stem().and_then(|stem| stem.to_str()).is_some_and(Name::is_valid)
            && language(path) == Some(Language::Yaml)
    };
    entries.filter(|path| path.is_file() && is_named(path)).collect()
}
