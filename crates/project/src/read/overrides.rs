//! What the command line sets: `KEY=VALUE` over keys of the manifest, `agents.NAME.KEY=VALUE` over an agent's.

use llm_do_core::{AgentSpec, counted, parse_exact};
use serde_json::Value;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{Node, NodeContent, TableField};
use crate::read::agent_file::AgentFile;
use crate::source::SourceFile;
use crate::suggest::suggest;

/// Overrides to the files of a project, as the command line writes them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overrides(Vec<Override>);

/// One change.
#[derive(Debug, Clone, PartialEq)]
struct Override {
    /// The text as it was written.
    text: String,
    /// The agent whose file changes; none: the manifest.
    agent: Option<String>,
    path: Vec<String>,
    value: Value,
}

impl Overrides {
    /// Reads changes.
    pub(crate) fn read(texts: &[String], out: &mut Diagnostics) -> Self {
        let read = texts.iter().filter_map(|text| match Override::read(text) {
            Ok(change) => Some(change),
            Err(problem) => {
                let diagnostic = Diagnostic::error(format!("--set {text}"), problem);
                out.push(diagnostic.with_hint("write `runtime.max_depth=3` or `agents.NAME.model=test`"));
                None
            }
        });
        Self(read.collect())
    }

    /// Returns whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether any of them is about the manifest.
    pub(crate) fn change_manifest(&self) -> bool {
        self.0.iter().any(|change| change.agent.is_none())
    }

    /// Returns whether one of them names the agent that a run starts with.
    pub(crate) fn set_entry(&self) -> bool {
        let names_agent =
            |change: &Override| match &change.path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["entry"] => change.value.get("agent").is_some(),
                ["entry", "agent"] => true,
                _ => false,
            };
        self.0.iter().any(|change| change.agent.is_none() && names_agent(change))
    }

    /// Overrides a manifest.
    pub(crate) fn apply_to_manifest(&self, source: &mut SourceFile, node: &mut Node, out: &mut Diagnostics) {
        for change in self.0.iter().filter(|change| change.agent.is_none()) {
            change.apply(source, node, out);
        }
    }

    /// Overrides the headers of agents.
    pub(crate) fn apply_to_agents(&self, agents: &mut [AgentFile], has_code: bool, out: &mut Diagnostics) {
        for change in &self.0 {
            let Some(name) = &change.agent else { continue };
            match agents.iter_mut().find(|file| file.written_name() == Some(name)) {
                Some(file) => change.apply(&mut file.source, &mut file.header, out),
                // Code may define it: see `apply_to_code_agents`.
                None if has_code => {}
                None => {
                    out.push(change.unknown_agent(name, agents.iter().filter_map(AgentFile::written_name)))
                }
            }
        }
    }

    /// Returns the changes of agents that no file has.
    pub(crate) fn beyond(&self, agents: &[AgentFile]) -> Self {
        let is_file = |name: &String| agents.iter().any(|file| file.written_name() == Some(name));
        let others = self.0.iter().filter(|change| change.agent.as_ref().is_some_and(|name| !is_file(name)));
        Self(others.cloned().collect())
    }

    /// Overrides the models of agents that code defines. Their other settings are set in the code alone.
    pub(crate) fn apply_to_code_agents(
        &self,
        specs: &mut [AgentSpec],
        files: &[&str],
        out: &mut Diagnostics,
    ) {
        for change in &self.0 {
            let Some(name) = &change.agent else { continue };
            let Some(spec) = specs.iter_mut().find(|spec| spec.name == name.as_str()) else {
                let known = specs.iter().map(|spec| spec.name.as_str()).chain(files.iter().copied());
                out.push(change.unknown_agent(name, known));
                continue;
            };
            match (change.path.as_slice(), &change.value) {
                ([key], Value::String(model)) if key == "model" => spec.model = Some(model.as_str().into()),
                _ => {
                    let message =
                        format!("the agent `{name}` is defined by code, and only its `model` can be set");
                    let diagnostic = Diagnostic::error(format!("--set {}", change.text), message);
                    out.push(diagnostic.with_hint(format!("write `agents.{name}.model=NAME`")));
                }
            }
        }
    }
}

impl Override {
    fn read(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or("a change has the form `KEY=VALUE`")?;
        let mut path = read_path(key.trim())?;
        let agent = match path.first().map(String::as_str) {
            Some("agents") if path.len() > 2 => Some(path.remove(1)),
            Some("agents") => return Err("an agent's key has the form `agents.NAME.KEY`".to_owned()),
            _ => None,
        };
        if agent.is_some() {
            path.remove(0);
        }
        // What is not JSON is text, so that `model=test` needs no quotes in a shell.
        let value = parse_exact(value.trim()).unwrap_or_else(|_| value.into());
        Ok(Self { text: text.to_owned(), agent, path, value })
    }

    fn unknown_agent<'a>(&self, name: &str, known: impl Iterator<Item = &'a str>) -> Diagnostic {
        let diagnostic =
            Diagnostic::error(format!("--set {}", self.text), format!("there is no agent `{name}`"));
        diagnostic.with_hint(suggest(name, known))
    }

    fn apply(&self, source: &mut SourceFile, node: &mut Node, out: &mut Diagnostics) {
        let span = source.add_override(&self.text);
        let value = Node::from_value(&self.value, &span);
        if let Err(problem) = put(node, &self.path, value) {
            out.push(Diagnostic::error_at(source, &span, problem));
        }
    }
}

/// Splits a key at its dots; `["..."]` holds a part that has dots itself.
fn read_path(key: &str) -> Result<Vec<String>, String> {
    let mut parts = Vec::new();
    let mut rest = key;
    while !rest.is_empty() {
        let (part, after) = match rest.strip_prefix("[\"") {
            Some(quoted) => {
                quoted.split_once("\"]").ok_or_else(|| format!("`[\"` is never closed in `{key}`"))?
            }
            None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
        };
        if part.is_empty() {
            return Err(format!("the key `{key}` has an empty part"));
        }
        parts.push(part.to_owned());
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    if parts.is_empty() { Err("the key is empty".to_owned()) } else { Ok(parts) }
}

/// Puts a value at a path, making tables on the way where there is nothing.
fn put(node: &mut Node, path: &[String], value: Node) -> Result<(), String> {
    let Some((name, rest)) = path.split_first() else {
        *node = value;
        return Ok(());
    };
    if matches!(node.content, NodeContent::Null) {
        node.content = NodeContent::Table(Vec::new());
    }
    match &mut node.content {
        NodeContent::Table(fields) => {
            let index = fields.iter().position(|field| field.name == *name).unwrap_or_else(|| {
                let empty = Node { span: value.span.clone(), content: NodeContent::Null };
                fields.push(TableField { name: name.clone(), span: value.span.clone(), value: empty });
                fields.len() - 1
            });
            fields[index].span = value.span.clone();
            put(&mut fields[index].value, rest, value)
        }
        NodeContent::List(items) => match name.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
            Some(item) => put(item, rest, value),
            None => Err(format!(
                "`{name}` is not an index of this list, which has {}",
                counted(items.len() as u64, "item")
            )),
        },
        _ => Err(format!("`{name}` cannot be set: the key before it is not a table")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Span;
    use serde_json::json;

    fn changed(document: Value, text: &str) -> Value {
        let mut node = Node::from_value(&document, &Span::START);
        let mut source = SourceFile::new("project.json", "");
        let mut out = Diagnostics::default();
        Overrides::read(&[text.to_owned()], &mut out).apply_to_manifest(&mut source, &mut node, &mut out);
        assert!(out.0.is_empty(), "{out}");
        node.to_value()
    }

    #[test]
    fn a_change_replaces_or_adds_a_value() {
        let document = json!({"runtime": {"max_depth": 5}, "agent_files": ["a.agent"]});
        assert_eq!(changed(document.clone(), "runtime.max_depth=2")["runtime"]["max_depth"], 2);
        assert_eq!(changed(document.clone(), "model=test:echo")["model"], "test:echo");
        assert_eq!(changed(document.clone(), "context.a.b=[1, 2]")["context"], json!({"a": {"b": [1, 2]}}));
        assert_eq!(changed(document.clone(), "agent_files.0=b.agent")["agent_files"], json!(["b.agent"]));
        assert_eq!(changed(document, "context[\"a.b\"].c=x=y")["context"], json!({"a.b": {"c": "x=y"}}));
    }

    #[test]
    fn a_change_that_cannot_be_made_is_an_error_that_shows_it() {
        for (text, message) in [
            ("model", "`KEY=VALUE`"),
            ("=1", "empty"),
            ("a..b=1", "empty part"),
            ("a[\"b=1", "never closed"),
            ("agents.main=1", "agents.NAME.KEY"),
            ("runtime.max_depth.x=1", "is not a table"),
            ("agent_files.7=x", "not an index of this list"),
        ] {
            let mut node =
                Node::from_value(&json!({"runtime": {"max_depth": 5}, "agent_files": []}), &Span::START);
            let mut out = Diagnostics::default();
            let changes = Overrides::read(&[text.to_owned()], &mut out);
            changes.apply_to_manifest(&mut SourceFile::new("project.json", ""), &mut node, &mut out);
            let said = out.to_string();
            assert!(said.contains(message) && said.contains(&format!("--set {text}")), "{text}: {said}");
        }
    }
}
