//! Toolsets that agents may list although nobody added them to the project: they are made by name.
//!
//! A project of files is linked against all built-in toolsets; a project in code gets them through a [`ToolsetSource`].

use std::collections::BTreeMap;
use std::sync::Arc;

use llm_do_core::{AgentSpec, DESCRIPTORS, Name, Toolset, ToolsetChoice};
use serde_json::{Value, json};

use crate::project::link_error::LinkError;
use crate::project::toolset_subset::ToolsetSubset;

/// Makes toolsets by name.
pub trait ToolsetSource: Send + Sync {
    /// Returns the names of the toolsets.
    fn toolsets(&self) -> Vec<&str>;

    /// Makes a toolset with the settings of one agent, or null. An error says what is wrong with the settings.
    fn toolset(&self, name: &str, settings: &Value) -> Result<Arc<dyn Toolset>, String>;

    /// Returns the names of the tools that agents may list without their toolset.
    fn tools(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Returns the toolset that such a tool comes from.
    fn toolset_of(&self, _tool: &str) -> Option<&str> {
        None
    }
}

/// The toolsets of a source that the agents of a project use.
pub(crate) struct SourcedToolsets<'a> {
    source: &'a dyn ToolsetSource,
    /// Toolsets without settings, which agents share.
    shared: BTreeMap<Name, Arc<dyn Toolset>>,
}

impl<'a> SourcedToolsets<'a> {
    pub(crate) fn new(source: &'a dyn ToolsetSource) -> Self {
        Self { source, shared: BTreeMap::new() }
    }

    /// Returns the toolsets that agents share.
    pub(crate) fn into_shared(self) -> impl Iterator<Item = Arc<dyn Toolset>> {
        self.shared.into_values()
    }

    /// Gives an agent the toolsets and single tools that it lists and that the project itself does not have.
    pub(crate) fn give(
        &mut self,
        spec: &mut AgentSpec,
        has_tool: impl Fn(&Name) -> bool,
        has_toolset: impl Fn(&Name) -> bool,
        problems: &mut Vec<LinkError>,
    ) {
        let is_sourced = |choice: &ToolsetChoice| choice.own.is_none() && !has_toolset(&choice.name);
        spec.toolsets.retain_mut(|choice| {
            if !is_sourced(choice) || !self.has(&choice.name) {
                return true;
            }
            match self.make(&choice.name, &choice.settings) {
                Ok(toolset) => choice.own = Some(toolset),
                // Reported once: a toolset that is left out is not also unknown.
                Err(reason) => problems.push(bad_settings(&spec.name, &choice.name, reason)),
            }
            choice.own.is_some()
        });
        self.give_single_tools(spec, has_tool, problems);
        spec.toolsets.extend(self.descriptors_for(spec));
    }

    fn has(&self, name: &str) -> bool {
        self.source.toolsets().contains(&name)
    }

    /// Makes a toolset. Those without settings are the same for all agents.
    fn make(&mut self, name: &Name, settings: &Value) -> Result<Arc<dyn Toolset>, String> {
        let is_plain = settings.is_null() || settings.as_object().is_some_and(serde_json::Map::is_empty);
        if !is_plain {
            return self.source.toolset(name, settings);
        }
        if let Some(made) = self.shared.get(name) {
            return Ok(made.clone());
        }
        let made = self.source.toolset(name, &Value::Null)?;
        self.shared.insert(name.clone(), made.clone());
        Ok(made)
    }

    fn give_single_tools(
        &mut self,
        spec: &mut AgentSpec,
        has_tool: impl Fn(&Name) -> bool,
        problems: &mut Vec<LinkError>,
    ) {
        let mut sourced: BTreeMap<Name, Vec<Name>> = BTreeMap::new();
        spec.tools.retain(|tool| match self.source.toolset_of(tool).filter(|_| !has_tool(tool)) {
            Some(toolset) => {
                sourced.entry(toolset.into()).or_default().push(tool.clone());
                false
            }
            None => true,
        });
        for (name, tools) in sourced {
            match self.source.toolset(&name, &Value::Null) {
                Ok(toolset) => spec.toolsets.push(subset(name, toolset, tools)),
                Err(reason) => problems.push(bad_settings(&spec.name, &name, reason)),
            }
        }
    }

    /// Every agent that calls something can read results that are too long to be shown.
    fn descriptors_for(&self, spec: &AgentSpec) -> Option<ToolsetChoice> {
        let has_tools = !spec.tools.is_empty() || !spec.toolsets.is_empty();
        let is_listed = spec.toolsets.iter().any(|choice| choice.name == DESCRIPTORS);
        if !has_tools || is_listed || !spec.descriptors.enabled || !self.has(DESCRIPTORS) {
            return None;
        }
        let settings = json!({"read_only": true});
        let own = self.source.toolset(DESCRIPTORS, &settings).ok()?;
        Some(ToolsetChoice { name: DESCRIPTORS.into(), settings, own: Some(own), implicit: true })
    }
}

fn subset(name: Name, toolset: Arc<dyn Toolset>, tools: Vec<Name>) -> ToolsetChoice {
    let settings = json!({ "tools": tools });
    let own = Arc::new(ToolsetSubset::new(toolset, tools));
    ToolsetChoice { name, settings, own: Some(own), implicit: false }
}

fn bad_settings(agent: &Name, toolset: &Name, reason: String) -> LinkError {
    LinkError::BadSettings { agent: agent.clone(), toolset: toolset.clone(), reason }
}
