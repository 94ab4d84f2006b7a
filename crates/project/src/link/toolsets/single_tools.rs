//! Single tools of an agent, and how it is offered tools otherwise than they describe themselves.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use llm_do_core::{Access, AgentSpec, Name, ToolDefinition, ToolOverride, ToolsetChoice};
use serde_json::{Value, json};

use super::{Refused, Toolsets, python_tool_hint, unlisted_code, with_hint};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::entry_span;
use crate::format::front_matter::{ToolEntry, ToolSection};
use crate::read::agent::Agent;
use crate::source::Span;
use crate::suggest::suggest;
use llm_do_runtime::ToolsetSubset;

/// The tools that an agent has, by their own names.
type Held = HashMap<Name, Arc<ToolDefinition>>;

/// Tools of the Python program that have another name now.
const RENAMED_TOOLS: [(&str, &str); 2] = [("worker_call", "agent_call"), ("worker_create", "agent_create")];

/// Where a single tool comes from.
enum Origin {
    /// Code or the embedding program defines it, or will.
    Code,
    /// A toolset has it that the agent lists.
    Listed,
    /// A built-in toolset has it, from which it can be had alone.
    Home(String),
}

impl Toolsets<'_> {
    /// Adds what an agent lists under `tools`, after its toolsets are known.
    pub(super) fn add_tools(&mut self, agent: &Agent, spec: &mut AgentSpec, out: &mut Diagnostics) {
        let mut held = self.held_by(spec);
        let mut alone: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let mut seen: HashSet<&str> = HashSet::new();
        for entry in &agent.header.tools {
            if out.is_full() {
                return;
            }
            let written = entry.name();
            let span = tool_span(agent, written);
            let tool = self.current_name(written, &held);
            if tool != written {
                let (old, new) = (format!("`{written}`"), format!("`{tool}`"));
                out.push(Diagnostic::read_as(&agent.file.source, &span, &old, &new));
                rename_in_rules(spec, written, tool);
            }
            if !seen.insert(tool) {
                let message = format!("duplicate entry `{tool}` in `tools`");
                out.push(Diagnostic::error_at(&agent.file.source, &span, message).with_hint("list it once"));
                continue;
            }
            match self.origin(tool, &held) {
                // What code defines that is not run is not offered.
                Some(Origin::Code) if self.is_withheld(tool) => continue,
                Some(Origin::Code) => spec.tools.push(tool.into()),
                Some(Origin::Listed) => {}
                Some(Origin::Home(home)) => alone.entry(home).or_default().push(tool),
                None => {
                    let message = self.no_such_tool(&agent.header.name, tool);
                    let hint = self.meant_tool(tool);
                    out.push(Diagnostic::error_at(&agent.file.source, &span, message).with_hint(hint));
                    continue;
                }
            }
            spec.overrides.extend(changed(entry, tool));
        }
        for (home, tools) in alone {
            self.add_alone(agent, &home, &tools, spec, &mut held, out);
        }
        notice_less_access(agent, &held, out);
        if agent.file.program.is_some() {
            drop_unknown_parameters(agent, spec, &held, out);
        }
    }

    /// The tools of the toolsets that an agent lists, and those that code defines.
    pub(super) fn held_by(&self, spec: &AgentSpec) -> Held {
        let toolset =
            |choice: &ToolsetChoice| choice.own.clone().or_else(|| self.shared.get(&choice.name).cloned());
        let toolsets = spec.toolsets.iter().filter_map(toolset);
        let of_code = self.code.defined().into_iter().flat_map(|code| &code.tools);
        let of_code = of_code.map(|tool| tool.value.definition().clone());
        let of_program = self.catalog.program_tools().iter().map(|tool| tool.definition().clone());
        let single = of_program.chain(of_code);
        let definitions = toolsets.flat_map(|toolset| toolset.definitions()).chain(single);
        definitions.map(|definition| (definition.name.clone(), definition)).collect()
    }

    /// The tools that an agent has of one built-in toolset.
    pub(super) fn held_from(&self, spec: &AgentSpec, home: &str) -> Vec<Name> {
        self.names_of(spec, |choice| choice.name == home)
    }

    /// The tools that an agent has of anything else, those of code included that it lists.
    pub(super) fn names_besides(&self, spec: &AgentSpec, home: &str) -> Vec<Name> {
        let of_toolsets = self.names_of(spec, |choice| choice.name != home);
        of_toolsets.into_iter().chain(spec.tools.iter().cloned()).collect()
    }

    fn names_of(&self, spec: &AgentSpec, is_meant: impl Fn(&ToolsetChoice) -> bool) -> Vec<Name> {
        let toolset =
            |choice: &ToolsetChoice| choice.own.clone().or_else(|| self.shared.get(&choice.name).cloned());
        let toolsets = spec.toolsets.iter().filter(|choice| is_meant(choice)).filter_map(toolset);
        toolsets.flat_map(|toolset| toolset.definitions()).map(|definition| definition.name.clone()).collect()
    }

    /// Returns the name that a tool has now. A tool of the project keeps the name that it was given there.
    fn current_name<'t>(&self, tool: &'t str, held: &Held) -> &'t str {
        let is_own = held.contains_key(tool) || self.single_tools().any(|name| name == tool);
        let renamed = RENAMED_TOOLS.iter().find(|(old, _)| *old == tool && !is_own);
        match renamed.filter(|(_, new)| self.catalog.tool_home(new).is_some()) {
            Some((_, new)) => new,
            None => tool,
        }
    }

    fn origin(&mut self, tool: &str, held: &Held) -> Option<Origin> {
        if self.single_tools().any(|name| name == tool) {
            return Some(Origin::Code);
        }
        if held.contains_key(tool) {
            return Some(Origin::Listed);
        }
        match self.catalog.tool_home(tool) {
            Some(home) => Some(Origin::Home(home.to_owned())),
            // What was not run yet may define anything.
            None => self.has_tool(tool).then_some(Origin::Code),
        }
    }

    fn no_such_tool(&self, agent: &str, tool: &str) -> String {
        match self.agents.contains(tool) {
            true => format!("agent `{agent}` names `{tool}` under `tools`, which is an agent"),
            false => format!("agent `{agent}` names the tool `{tool}`, which does not exist"),
        }
    }

    pub(super) fn meant_tool(&self, tool: &str) -> String {
        let listed = self.known().into_iter().find(|name| *name == tool);
        match listed {
            Some(name) => format!("list `{name}` under `toolsets`"),
            None => self.unlisted_code_hint(tool).or_else(|| python_tool_hint(tool)).unwrap_or_else(|| {
                let tools = self.single_tools().map(Name::as_str).chain(self.catalog.lone_tools());
                self.with_program_hint(suggest(tool, tools))
            }),
        }
    }

    /// Says that a Python file beside the manifest defines a tool, and how it becomes part of the project.
    fn unlisted_code_hint(&self, tool: &str) -> Option<String> {
        if let Some(file) = unlisted_code::listed_file(self.root, &self.files.paths, tool) {
            return Some(format!("`{file}` defines `{tool}`; add it to `TOOLS` there: `TOOLS = [{tool}]`"));
        }
        let file = unlisted_code::defining_file(self.root, &self.files.paths, tool)?;
        let Some(manifest) = self.manifest else {
            return Some(format!(
                "`{file}` defines it: write a `project.yaml` beside it with the keys `version: 1`, \
                 `agent_files: ['*.agent']` and `python_files: [{file}]`"
            ));
        };
        let shown = manifest.source.path.display();
        Some(match manifest.manifest.python_files.is_empty() {
            true => format!("`{file}` defines it: add the key `python_files: [{file}]` to `{shown}`"),
            false => format!("`{file}` defines it: add it to `python_files` in `{shown}`"),
        })
    }

    /// Lists a built-in toolset of which the agent has some tools only.
    fn add_alone(
        &mut self,
        agent: &Agent,
        home: &str,
        tools: &[&str],
        spec: &mut AgentSpec,
        held: &mut Held,
        out: &mut Diagnostics,
    ) {
        match self.selected(home, tools) {
            Ok(choice) => {
                let definitions = choice.own.iter().flat_map(|toolset| toolset.definitions());
                held.extend(definitions.map(|definition| (definition.name.clone(), definition)));
                spec.toolsets.push(choice);
            }
            Err(refused) => {
                let span = tool_span(agent, tools[0]);
                let message = format!("agent `{}`: {}", spec.name, refused.message);
                out.push(with_hint(Diagnostic::error_at(&agent.file.source, &span, message), refused.hint));
            }
        }
    }

    fn selected(&mut self, home: &str, tools: &[&str]) -> Result<ToolsetChoice, Refused> {
        let inner = self.make(home, home, &Value::Null, None)?;
        let names: Vec<Name> = tools.iter().map(|tool| Name::from(*tool)).collect();
        let known = inner.definitions();
        if let Some(missing) = names.iter().find(|name| known.iter().all(|known| known.name != **name)) {
            return Err(format!("the toolset `{home}` has no tool `{missing}`").into());
        }
        // The settings say to which toolset it is equal, and which not.
        let settings = json!({"tools": names});
        let own = Arc::new(ToolsetSubset::new(inner, names));
        Ok(ToolsetChoice { name: home.into(), settings, own: Some(own), implicit: false })
    }
}

fn tool_span(agent: &Agent, tool: &str) -> Span {
    entry_span(&agent.file.header, "tools", tool)
}

/// How an entry says that a tool is offered.
fn changed(entry: &ToolEntry, tool: &str) -> Option<ToolOverride> {
    let ToolEntry::Changed(section) = entry else { return None };
    let ToolSection { name: _, alias, description, access: level, param_descriptions } = section;
    Some(ToolOverride {
        tool: tool.into(),
        alias: alias.as_deref().map(Name::from),
        description: description.clone(),
        access: level.map(Access::from),
        parameters: param_descriptions.clone().into_iter().collect(),
    })
}

/// Rules of the agent use the same name as its list of tools.
fn rename_in_rules(spec: &mut AgentSpec, old: &str, new: &str) {
    let rules = spec.approval.iter_mut().map(|rule| &mut rule.pattern);
    let patterns = rules.chain(&mut spec.manual_only);
    patterns.filter(|pattern| *pattern == old).for_each(|pattern| *pattern = new.to_owned());
}

/// No agent says of a tool that it needs less than it does.
fn notice_less_access(agent: &Agent, held: &Held, out: &mut Diagnostics) {
    for entry in &agent.header.tools {
        let ToolEntry::Changed(ToolSection { name, access: Some(level), .. }) = entry else { continue };
        let Some(needed) = held.get(name.as_str()).map(|definition| definition.access) else { continue };
        let written = Access::from(*level);
        if written < needed {
            let (said, needed) = (written.as_str(), needed.as_str());
            let message = format!("`access: {said}` has no effect: the tool `{name}` needs {needed} access");
            out.push(Diagnostic::notice_at(&agent.file.source, &tool_span(agent, name), message));
        }
    }
}

/// A program file may describe parameters that a tool does not have here.
fn drop_unknown_parameters(agent: &Agent, spec: &mut AgentSpec, held: &Held, out: &mut Diagnostics) {
    for change in &mut spec.overrides {
        let Some(definition) = held.get(&change.tool) else { continue };
        let known = definition.input.source().get("properties").and_then(Value::as_object);
        change.parameters.retain(|(name, _)| {
            let is_known = known.is_some_and(|known| known.contains_key(name));
            if !is_known {
                let message = format!("the tool `{}` has no parameter `{name}` here", change.tool);
                let span = tool_span(agent, &change.tool);
                out.push(Diagnostic::notice_at(&agent.file.source, &span, message));
            }
            is_known
        });
    }
}
