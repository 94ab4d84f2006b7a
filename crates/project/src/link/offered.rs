//! Checks what a model is offered: tools that the provider runs, and names that some providers refuse.
//!
//! A provider refuses the whole request for one tool that it does not accept. Requests are therefore sent without such
//! a tool; here its author learns about it beforehand.

use std::collections::HashSet;

use llm_do_core::{ServerTool, ToolDefinition};
use llm_do_runtime::{Outline, Project};
use serde_json::{Map, Value};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{NodeContent, entry_span, span_of};
use crate::format::front_matter::HeaderDocument;
use crate::format::manifest::Manifest;
use crate::source::Span;

/// The longest name of a parameter that Anthropic accepts.
const MAX_PARAMETER_LEN: usize = 64;

/// Checks the server-side tools of an agent for themselves.
pub(crate) fn check_server_tools(agent: HeaderDocument<'_>, out: &mut Diagnostics) {
    let mut kinds = HashSet::new();
    for (index, tool) in agent.header.server_side_tools.iter().enumerate() {
        let name = tool.name();
        let at = |message: String| Diagnostic::error_at(agent.source, &tool_span(agent, index), message);
        if !kinds.insert(name) {
            let message = format!("`server_side_tools` lists `{name}` twice");
            out.push(at(message).with_hint("list it once"));
        }
        if let Some((allowed, blocked)) = domains(tool)
            && !allowed.is_empty()
            && !blocked.is_empty()
        {
            let message = format!("`{name}` has both `allowed_domains` and `blocked_domains`");
            out.push(at(message).with_hint("keep one of them: domains that are not allowed are blocked"));
        }
    }
}

fn domains(tool: &ServerTool) -> Option<(&[String], &[String])> {
    match tool {
        ServerTool::WebSearch { allowed_domains, blocked_domains, .. }
        | ServerTool::WebFetch { allowed_domains, blocked_domains, .. } => {
            Some((allowed_domains, blocked_domains))
        }
        ServerTool::CodeExecution {} | ServerTool::ImageGeneration {} => None,
    }
}

fn tool_span(agent: HeaderDocument<'_>, index: usize) -> Span {
    let field = agent.node.field("server_side_tools");
    let item = field.and_then(|field| match &field.value.content {
        NodeContent::List(items) => items.get(index),
        _ => None,
    });
    item.map_or_else(|| span_of(agent.node, "server_side_tools"), |item| item.span.clone())
}

/// Checks what the linked agents of a project offer to their models.
pub(crate) fn check(
    project: &Project,
    agents: &[HeaderDocument<'_>],
    manifest: Option<&Manifest>,
    out: &mut Diagnostics,
) {
    for outline in project.outline() {
        let Some(spec) = &outline.agent else { continue };
        let Some(agent) = agents.iter().copied().find(|agent| spec.name == agent.header.name.as_str()) else {
            continue;
        };
        if out.is_full() {
            return;
        }
        check_clashes(agent, &outline, out);
        let models = NamedModels::new(agent, manifest);
        for callable in outline.callables.iter().filter(|callable| !callable.definition.manual_only) {
            let definition = &callable.definition;
            if models.may_be(Family::Gemini) && !is_gemini_name(&callable.name) {
                let message = format!(
                    "agent `{}`: Gemini models are not offered `{}`: they accept only names that begin with a letter \
                     or `_`",
                    spec.name, callable.name
                );
                let hint = "rename it, or give it an `alias` under `tools`";
                out.push(notice_at_tool(agent, &callable.name, message).with_hint(hint));
            }
            if models.may_be(Family::Claude) {
                notice_parameters(agent, &callable.name, definition, out);
            }
        }
    }
}

fn notice_at_tool(agent: HeaderDocument<'_>, name: &str, message: String) -> Diagnostic {
    let named = entry_span(agent.node, "tools", name);
    let is_listed = agent.node.field("tools").is_some_and(|field| field.value.span != named);
    let span = if is_listed { named } else { entry_span(agent.node, "toolsets", name) };
    Diagnostic::notice_at(agent.source, &span, message)
}

/// A name must mean one thing to the model, to approval rules and to events.
fn check_clashes(agent: HeaderDocument<'_>, outline: &Outline, out: &mut Diagnostics) {
    for (index, tool) in agent.header.server_side_tools.iter().enumerate() {
        let offered = outline.callables.iter().filter(|callable| !callable.definition.manual_only);
        if offered.into_iter().any(|callable| callable.name == tool.name()) {
            let name = tool.name();
            let message =
                format!("`{name}` is both a server-side tool and a tool of agent `{}`", agent.header.name);
            let hint = "remove one of them, or give the tool an `alias` under `tools`";
            out.push(Diagnostic::error_at(agent.source, &tool_span(agent, index), message).with_hint(hint));
        }
    }
}

fn is_gemini_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn notice_parameters(
    agent: HeaderDocument<'_>,
    name: &str,
    definition: &ToolDefinition,
    out: &mut Diagnostics,
) {
    let fields = definition.input.source().get("properties").and_then(Value::as_object);
    for parameter in
        fields.into_iter().flat_map(Map::keys).filter(|parameter| !is_claude_parameter(parameter))
    {
        let message = format!("Claude models do not accept the parameter name `{parameter}` of `{name}`");
        let hint = "use 1 to 64 letters, digits, `_`, `.` and `-`; requests are sent without it, or without the tool \
                    if it is required";
        out.push(notice_at_tool(agent, name, message).with_hint(hint));
    }
}

fn is_claude_parameter(name: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=MAX_PARAMETER_LEN).contains(&name.len()) && name.bytes().all(is_valid)
}

/// A family of models with rules of its own.
#[derive(Clone, Copy)]
enum Family {
    Claude,
    Gemini,
}

impl Family {
    fn api(self) -> &'static str {
        match self {
            Self::Claude => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    fn includes(self, model: &str) -> bool {
        match self {
            Self::Claude => model.starts_with("anthropic:") || model.contains("claude"),
            Self::Gemini => model.starts_with("google") || model.contains("gemini"),
        }
    }
}

/// The models that an agent can be run with, as far as files name them.
struct NamedModels<'a> {
    names: Vec<&'a str>,
    manifest: Option<&'a Manifest>,
}

impl<'a> NamedModels<'a> {
    fn new(agent: HeaderDocument<'a>, manifest: Option<&'a Manifest>) -> Self {
        let general = manifest.and_then(|manifest| manifest.model.as_deref());
        let first = agent.header.model.as_deref().or(general);
        let names = first.into_iter().chain(agent.header.fallback_models.iter().map(String::as_str));
        Self { names: if first.is_some() { names.collect() } else { Vec::new() }, manifest }
    }

    /// Returns whether one of them is of that family. An agent without a model may get any.
    fn may_be(&self, family: Family) -> bool {
        let is_declared = |name: &&str| {
            let provider = name.split([':', '/']).next().unwrap_or_default();
            let declared = self.manifest.and_then(|manifest| manifest.providers.get(provider));
            declared.is_some_and(|provider| provider.api == family.api())
        };
        self.names.is_empty() || self.names.iter().any(|name| family.includes(name) || is_declared(name))
    }
}
