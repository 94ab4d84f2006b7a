//! `llm-do list`: agents, toolsets and tools with schemas, approvals and needs.

use std::collections::BTreeMap;
use std::fmt::Write;

use llm_do::AgentSpec;
use llm_do::approval::Approval;
use llm_do::call::{CallKind, NeedSpec};
use llm_do::project::{LoadedProject, Outline, OutlinedCallable};
use llm_do::tools::{Access, ToolDefinition};
use serde_json::{Value, json};

use crate::arguments::{ListArguments, ListOutput};
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::loading;
use crate::location;
use crate::output;
use crate::text::{printable, shortened, visible};
use crate::wrap;

/// How much of a description is shown on a line.
const SHOWN: usize = 100;

/// Lists what a project has.
pub(crate) fn list(arguments: &ListArguments) -> Result<Exit, CommandError> {
    let project = loading::load_for_looking(&location::locate(&arguments.project)?)?;
    loading::show_notices(&project);
    let text = match arguments.output {
        ListOutput::Text => wrap::for_stdout(&printable(&as_text(&project))),
        ListOutput::Json => serde_json::to_string_pretty(&as_json(&project)).unwrap_or_default(),
    };
    output::to_stdout(&printable(text.trim_end()));
    Ok(Exit::Done)
}

/// The tools that agents list, by toolset.
fn tools(project: &LoadedProject) -> BTreeMap<String, Vec<OutlinedCallable>> {
    let mut tools: BTreeMap<String, Vec<OutlinedCallable>> = BTreeMap::new();
    for callable in project.project.outline().into_iter().flat_map(|outline| outline.callables) {
        if callable.kind != CallKind::Tool {
            continue;
        }
        let toolset = callable.definition.toolset.as_ref().map(ToString::to_string).unwrap_or_default();
        let listed = tools.entry(toolset).or_default();
        match listed.iter_mut().find(|other| is_same(&other.definition, &callable.definition)) {
            // Here it is manual-only where no agent offers it to its model.
            Some(other) if !callable.definition.manual_only => *other = callable,
            Some(_) => {}
            None => listed.push(callable),
        }
    }
    tools
}

/// Returns whether two agents list the same tool, whatever they keep from their models.
fn is_same(one: &ToolDefinition, other: &ToolDefinition) -> bool {
    *one == ToolDefinition { manual_only: one.manual_only, ..other.clone() }
}

fn as_text(project: &LoadedProject) -> String {
    let mut text = String::new();
    if project.project.agents().all(|agent| *agent != project.entry) {
        let _ = writeln!(text, "entry\n  {}  (function)\n", project.entry);
    }
    text.push_str("agents\n");
    for outline in project.project.outline() {
        if let Some(spec) = &outline.agent {
            agent_text(&mut text, project, spec, &outline);
        }
    }
    for (toolset, tools) in tools(project) {
        let title = if toolset.is_empty() { "single tools".to_owned() } else { format!("toolset {toolset}") };
        let _ = writeln!(text, "\n{title}");
        for tool in tools {
            tool_text(&mut text, project, &tool.definition);
        }
    }
    text
}

fn agent_text(text: &mut String, project: &LoadedProject, spec: &AgentSpec, outline: &Outline) {
    let note = match spec.generated {
        _ if spec.name == project.entry => "  (entry)",
        true => "  (generated)",
        false => "",
    };
    let model = match &spec.model {
        Some(model) => model.name().to_string(),
        None => project.model.clone().unwrap_or_else(|| "model of the run".to_owned()),
    };
    let _ = writeln!(text, "  {}{note}  {model}", spec.name);
    if !spec.description.is_empty() {
        let _ = writeln!(text, "    {}", shortened(&spec.description, SHOWN));
    }
    if let Some(input) = &spec.input {
        fields_text(text, "input", input.source());
    }
    if let Some(answer) = &spec.output {
        fields_text(text, "answer", answer.source());
    }
    let calls: Vec<String> =
        outline.callables.iter().map(|callable| call_message(project, callable)).collect();
    if !calls.is_empty() {
        let _ = writeln!(text, "    calls {}", calls.join(", "));
    }
    let server: Vec<&str> = spec.server_tools.iter().map(|tool| tool.name()).collect();
    if !server.is_empty() {
        let _ = writeln!(text, "    at the provider: {}", server.join(", "));
    }
}

fn call_message(project: &LoadedProject, callable: &OutlinedCallable) -> String {
    let manual = manual_message(&callable.definition);
    format!("{} ({manual}{})", callable.name, approval_message(project.approval_of(callable)))
}

fn manual_message(definition: &ToolDefinition) -> &'static str {
    if definition.manual_only { "manual-only, " } else { "" }
}

fn approval_message(approval: Approval) -> &'static str {
    match approval {
        Approval::PreApproved => "runs freely",
        Approval::Ask => "asks first",
        Approval::Blocked => "blocked",
    }
}

fn tool_text(text: &mut String, project: &LoadedProject, definition: &ToolDefinition) {
    let access = match definition.access {
        Access::Read => "read",
        Access::Write => "write",
        Access::Admin => "admin",
    };
    let approval = approval_message(definition.approval);
    let manual = manual_message(definition);
    let _ = writeln!(text, "  {}  {access} access, {manual}{approval}", definition.name);
    let _ = writeln!(text, "    {}", shortened(&definition.description, SHOWN));
    fields_text(text, "input", definition.input.source());
    if let Some(output) = &definition.output {
        output_text(text, output.source());
    }
    for need in &definition.needs {
        let _ = writeln!(text, "    needs `{}`: {}", need.label(), provider(project, need));
    }
}

fn provider(project: &LoadedProject, need: &NeedSpec) -> String {
    match need {
        need if need.is_built_in() => "llm-do".to_owned(),
        need if project.provides(need) => "the project".to_owned(),
        need => need.how_to_provide(),
    }
}

/// The fields of an object, or the type of any other value.
fn output_text(text: &mut String, schema: &Value) {
    if schema.get("properties").is_some() {
        fields_text(text, "output", schema);
    } else if let Some(kind) = type_name(schema) {
        let _ = writeln!(text, "    output: {kind}");
    }
}

/// The types that a schema allows, in words; nothing for a schema that names none.
fn type_name(schema: &Value) -> Option<String> {
    if let Some(options) = schema.get("anyOf").and_then(Value::as_array) {
        let names: Option<Vec<String>> = options.iter().map(type_name).collect();
        return names.map(|names| names.join(" or "));
    }
    let items = schema.get("items").and_then(type_name);
    match (schema.get("type"), items) {
        (Some(Value::String(kind)), Some(items)) => Some(format!("{kind} of {items}")),
        (Some(Value::String(kind)), None) => Some(kind.clone()),
        (Some(other), _) => Some(other.to_string()),
        (None, _) => schema.get("enum").map(|values| format!("one of {values}")),
    }
}

/// The fields of an object schema, one per line.
fn fields_text(text: &mut String, title: &str, schema: &Value) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    let required = schema.get("required").and_then(Value::as_array);
    for (name, property) in properties {
        let optional = !required.is_some_and(|required| required.iter().any(|other| other == name));
        let kind = match property.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            Some(other) => other.to_string(),
            None => "any".to_owned(),
        };
        let mark = if optional { ", optional" } else { "" };
        let message = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let line = format!("    {title} {}: {kind}{mark}  {}", visible(name), shortened(message, SHOWN));
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

fn as_json(project: &LoadedProject) -> Value {
    let agents: Vec<Value> =
        project.project.outline().iter().filter_map(|outline| agent_value(project, outline)).collect();
    let tools: Vec<Value> =
        tools(project).into_values().flatten().map(|tool| tool_value(project, &tool)).collect();
    json!({"entry": project.entry, "agents": agents, "tools": tools, "mcp_servers": project.mcp_servers, "providers": project.providers})
}

fn agent_value(project: &LoadedProject, outline: &Outline) -> Option<Value> {
    let spec = outline.agent.as_ref()?;
    let calls = outline.callables.iter().map(|callable| {
        json!({
            "name": callable.name, "kind": callable.kind, "toolset": callable.definition.toolset,
            "approval": project.approval_of(callable), "by_rule": callable.by_rule,
            "manual_only": callable.definition.manual_only,
        })
    });
    Some(json!({
        "name": spec.name,
        "entry": spec.name == project.entry,
        "generated": spec.generated,
        "description": spec.description,
        "model": spec.model.as_ref().map(|model| model.name()),
        "access": spec.access,
        "input": spec.input,
        "output": spec.output,
        "attachment_policy": spec.attachment_policy,
        "calls": calls.collect::<Vec<_>>(),
        "server_side_tools": spec.server_tools,
    }))
}

fn tool_value(project: &LoadedProject, tool: &OutlinedCallable) -> Value {
    let definition = &tool.definition;
    let needs = definition
        .needs
        .iter()
        .map(|need| json!({"name": need.label(), "provided": project.provides(need), "how": need.how_to_provide()}));
    json!({
        "name": definition.name,
        "toolset": definition.toolset,
        "description": definition.description,
        "input": definition.input,
        "output": definition.output,
        "access": definition.access,
        "approval": definition.approval,
        "manual_only": definition.manual_only,
        "effect": definition.effect,
        "needs": needs.collect::<Vec<_>>(),
    })
}
