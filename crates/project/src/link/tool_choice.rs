//! Checks the tool that a model must use, once it is known which tools its agent has.

use llm_do_core::ToolChoice;
use llm_do_runtime::{Outline, Project};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{Node, span_of};
use crate::format::front_matter::HeaderDocument;
use crate::source::Span;
use crate::suggest::suggest;

/// Checks the tool that an agent's model must use, once it is known which tools it has.
pub(crate) fn check(project: &Project, agents: &[HeaderDocument<'_>], out: &mut Diagnostics) {
    let chooses = |agent: &&HeaderDocument<'_>| {
        agent.header.model_settings.as_ref().is_some_and(|settings| {
            matches!(settings.tool_choice, Some(ToolChoice::Tool(_) | ToolChoice::Required))
        })
    };
    let mut choosing = agents.iter().filter(chooses).peekable();
    if choosing.peek().is_none() {
        return;
    }
    let outline = project.outline();
    for agent in choosing.copied() {
        let is_its = |outline: &&Outline| {
            outline.agent.as_ref().is_some_and(|spec| spec.name == agent.header.name.as_str())
        };
        let found = outline.iter().find(is_its);
        let Some(found) = found else { continue };
        let callables = found.callables.iter().filter(|callable| !callable.definition.manual_only);
        let mut offered: Vec<&str> = callables.map(|callable| callable.name.as_str()).collect();
        for tool in &agent.header.server_side_tools {
            offered.push(tool.name());
        }
        if let Some((message, hint)) = choice_problem(agent, &offered) {
            let span = setting_span(agent.node, "tool_choice");
            out.push(Diagnostic::error_at(agent.source, &span, message).with_hint(hint));
        }
    }
}

fn choice_problem(agent: HeaderDocument<'_>, offered: &[&str]) -> Option<(String, String)> {
    let name = &agent.header.name;
    match agent.header.model_settings.as_ref()?.tool_choice.as_ref()? {
        ToolChoice::Tool(tool) if !offered.contains(&tool.as_str()) => Some((
            format!("`tool_choice` names the tool `{tool}`, which agent `{name}` does not have"),
            suggest(tool, offered.iter().copied()),
        )),
        ToolChoice::Required if offered.is_empty() => Some((
            format!("`tool_choice` is `required`, and agent `{name}` has no tools"),
            "list some under `toolsets`".to_owned(),
        )),
        _ => None,
    }
}

fn setting_span(header: &Node, key: &str) -> Span {
    header.field("model_settings").map_or_else(|| header.span.clone(), |field| span_of(&field.value, key))
}
