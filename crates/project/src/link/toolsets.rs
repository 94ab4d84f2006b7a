//! Resolves the tools, toolsets and agents that an agent lists.

mod single_tools;
mod unlisted_code;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use llm_do_core::{
    AgentSpec, Approval, ApprovalRule, DESCRIPTORS, Name, ToolDefinition, Toolset, ToolsetChoice,
};
use serde_json::{Map, Value, json};

use crate::catalog::{Catalog, WantedToolset};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::entry_span;
use crate::format::manifest::ManifestFile;
use crate::format::manifest::ToolsetSection;
use crate::globs::glob_problem;
use crate::link::KnownCode;
use crate::link::LinkedAgents;
use crate::link::assumed::{self, AssumedName};
use crate::project_files::ProjectFiles;
use crate::python_names::{PythonName, PythonNameKind, find_python_name};
use crate::read::agent::Agent;
use crate::suggest::suggest;

/// The key under which the older mapping form keeps approval rules.
pub(crate) const APPROVAL_CONFIG: &str = "_approval_config";

/// The project that agents and toolsets belong to.
#[derive(Clone, Copy)]
pub(crate) struct Listed<'a> {
    pub(crate) manifest: Option<&'a ManifestFile>,
    pub(crate) root: &'a Path,
    pub(crate) files: &'a ProjectFiles,
    pub(crate) code: KnownCode<'a>,
    /// The agents by their files, for those that name them as programs.
    pub(crate) linked: &'a LinkedAgents<'a>,
}

/// What agents may list under `toolsets`.
pub(crate) struct Toolsets<'a> {
    manifest: Option<&'a ManifestFile>,
    agents: HashSet<&'a str>,
    catalog: &'a dyn Catalog,
    root: &'a Path,
    files: &'a ProjectFiles,
    code: KnownCode<'a>,
    /// Names that code must define, which was not run yet.
    assumed: Vec<AssumedName>,
    /// Toolsets without settings of one agent, made once.
    shared: BTreeMap<Name, Arc<dyn Toolset>>,
    /// Sections of the manifest that could not be made: reported once, where they are written.
    broken: HashSet<&'a str>,
}

/// Why something that an agent lists cannot be used.
struct Refused {
    message: String,
    hint: Option<String>,
}

impl From<String> for Refused {
    fn from(message: String) -> Self {
        Self { message, hint: None }
    }
}

/// Checks the names of sections: each must be valid and not taken.
pub(crate) fn check_sections(file: &ManifestFile, catalog: &dyn Catalog, out: &mut Diagnostics) {
    let built_in = catalog.toolsets();
    for name in file.manifest.toolsets.keys() {
        if out.is_full() {
            return;
        }
        let span = entry_span(&file.node, "toolsets", name);
        let taken = match name.as_str() {
            name if built_in.contains(&name) => Some("a built-in toolset"),
            name if catalog.program_toolsets().iter().any(|toolset| *toolset.name() == name) => {
                Some("a toolset of the program")
            }
            name if file.manifest.mcp_servers.contains_key(name) => Some("an MCP server"),
            _ => None,
        };
        if let Some(other) = taken {
            let message = format!("the toolset name `{name}` is already the name of {other}");
            out.push(Diagnostic::error_at(&file.source, &span, message).with_hint("rename the toolset"));
        }
        if !Name::is_valid(name) {
            let message = format!("the toolset name `{name}` is not valid");
            let hint = "use 1 to 64 letters, digits, `_` and `-`";
            out.push(Diagnostic::error_at(&file.source, &span, message).with_hint(hint));
        }
    }
}

impl<'a> Toolsets<'a> {
    /// Makes the toolsets of the manifest, and reports what is wrong with them.
    pub(crate) fn new(
        project: Listed<'a>,
        agents: &'a [Agent],
        unread: &'a [String],
        catalog: &'a dyn Catalog,
        out: &mut Diagnostics,
    ) -> Self {
        let Listed { manifest, root, files, code, .. } = project;
        let names = agents.iter().map(|agent| agent.header.name.as_str());
        let names = names.chain(unread.iter().map(String::as_str)).chain(code.agents().map(Name::as_str));
        let of_code =
            code.defined().into_iter().flat_map(|code| &code.toolsets).map(|toolset| &toolset.value);
        let outside_files = catalog.program_toolsets().iter().chain(of_code);
        let mut toolsets = Self {
            manifest,
            agents: names.collect(),
            catalog,
            root,
            files,
            code,
            assumed: Vec::new(),
            shared: outside_files.map(|toolset| (toolset.name().clone(), toolset.clone())).collect(),
            broken: HashSet::new(),
        };
        for (name, section) in manifest.into_iter().flat_map(|file| &file.manifest.toolsets) {
            if out.is_full() {
                break;
            }
            toolsets.check_section(name, section, out);
        }
        toolsets
    }

    fn check_section(&mut self, name: &'a str, section: &ToolsetSection, out: &mut Diagnostics) {
        let Some(file) = self.manifest else { return };
        let span = entry_span(&file.node, "toolsets", name);
        let made = match self.agents.contains(name) {
            true => Err(Refused::from(format!("the name `{name}` is used by both a toolset and an agent"))),
            false => self
                .make(&section.toolset, name, &section.settings, None)
                .and_then(|toolset| check_manual_only(&section.manual_only, &*toolset)),
        };
        if let Err(refused) = made {
            self.broken.insert(name);
            let message = format!("toolset `{name}`: {}", refused.message);
            out.push(with_hint(Diagnostic::error_at(&file.source, &span, message), refused.hint));
        }
    }

    /// Returns what exists outside the files.
    pub(crate) fn catalog(&self) -> &'a dyn Catalog {
        self.catalog
    }

    /// Returns the toolsets that agents list without settings of their own.
    pub(crate) fn shared(self) -> impl Iterator<Item = Arc<dyn Toolset>> {
        self.shared.into_values()
    }

    /// Returns the built-in toolset behind a name: itself, or the one that a section of the manifest sets up.
    pub(crate) fn built_in_of(&self, name: &str) -> Option<String> {
        if self.agents.contains(name) || self.program_toolset(name).is_some() {
            return None;
        }
        let section = self.manifest.and_then(|file| file.manifest.toolsets.get(name));
        let built_in = section.map_or(name, |section| section.toolset.as_str());
        self.catalog.toolsets().contains(&built_in).then(|| built_in.to_owned())
    }

    /// Returns the settings of a toolset as one agent has it, without the approval rules of the older form.
    pub(crate) fn settings_of(&self, name: &str, settings: &Value) -> Value {
        let own = split_rules(settings).map_or(Value::Null, |(settings, _)| settings);
        match self.manifest.and_then(|file| file.manifest.toolsets.get(name)) {
            Some(section) => merged(&section.settings, &own),
            None => own,
        }
    }

    /// Returns the tools of the toolsets that an agent lists, each with the name of its toolset. Toolsets that code
    /// defines are left out: what they have is known only when it runs.
    pub(crate) fn definitions_of(&self, spec: &AgentSpec) -> Vec<(Name, Arc<ToolDefinition>)> {
        let of_code = |name: &Name| {
            let defined = self.code.defined().into_iter().flat_map(|code| &code.toolsets);
            defined.into_iter().any(|toolset| toolset.value.name() == name)
        };
        let toolsets = spec.toolsets.iter().filter(|choice| !choice.implicit && !of_code(&choice.name));
        let made = toolsets.filter_map(|choice| {
            let toolset = choice.own.clone().or_else(|| self.shared.get(&choice.name).cloned())?;
            Some((choice.name.clone(), toolset))
        });
        let definitions = |(name, toolset): (Name, Arc<dyn Toolset>)| {
            toolset.definitions().into_iter().map(move |definition| (name.clone(), definition))
        };
        made.flat_map(definitions).collect()
    }

    /// Returns the tools that an agent lists and that only code can define, as their own name and the offered one.
    ///
    /// They are taken from the header: code that was not run adds nothing to the linked agent.
    pub(crate) fn tools_of_code(&self, agent: &Agent, spec: &AgentSpec) -> Vec<(Name, Name)> {
        let of_program =
            |tool: &Name| self.catalog.program_tools().iter().any(|known| known.definition().name == *tool);
        let definitions = self.definitions_of(spec);
        let of_toolset = |tool: &Name| definitions.iter().any(|(_, definition)| definition.name == *tool);
        let named = agent.header.tools.iter().map(|entry| {
            let own = Name::from(entry.name());
            (own.clone(), entry.alias().map_or(own, Name::from))
        });
        named.filter(|(own, _)| !of_program(own) && !of_toolset(own)).collect()
    }

    /// Returns the names of toolsets that an agent lists and that only code can define.
    pub(crate) fn toolsets_of_code(&self, agent: &Agent) -> Vec<String> {
        let is_code = |name: &&str| {
            let manifest = self.manifest.map(|file| &file.manifest);
            let is_server = manifest.is_some_and(|manifest| manifest.mcp_servers.contains_key(*name));
            let is_known = self.built_in_of(name).is_some() || self.program_toolset(name).is_some();
            !is_server && !is_known && !self.agents.contains(*name)
        };
        let listed = agent.header.toolsets.entries().into_iter().map(|(name, _)| name);
        listed.filter(is_code).map(str::to_owned).collect()
    }

    /// Gives an agent the toolsets for itself that it would share with others.
    pub(crate) fn give_own(self, spec: &mut AgentSpec) {
        for choice in &mut spec.toolsets {
            choice.own = choice.own.take().or_else(|| self.shared.get(&choice.name).cloned());
        }
    }

    /// Adds to an agent what it lists under `toolsets` and `tools`.
    pub(crate) fn add_to(&mut self, agent: &Agent, spec: &mut AgentSpec, out: &mut Diagnostics) {
        self.add_toolsets(agent, spec, out);
        self.add_tools(agent, spec, out);
        spec.toolsets.extend(self.descriptors_for(spec));
        notice_own_reader(agent, spec, &self.names_besides(spec, DESCRIPTORS), out);
        notice_no_tuning(agent, out);
    }

    fn add_toolsets(&mut self, agent: &Agent, spec: &mut AgentSpec, out: &mut Diagnostics) {
        let mut seen: HashSet<&str> = HashSet::new();
        for (name, settings) in agent.header.toolsets.entries() {
            if out.is_full() {
                return;
            }
            let span = entry_span(&agent.file.header, "toolsets", name);
            if !seen.insert(name) {
                let message = format!("duplicate entry `{name}` in `toolsets`");
                out.push(Diagnostic::error_at(&agent.file.source, &span, message).with_hint("list it once"));
                continue;
            }
            match self.choice(name, settings, spec) {
                Ok(choice) => spec.toolsets.extend(choice),
                Err(refused) => {
                    let message = format!("agent `{}`: {}", spec.name, refused.message);
                    out.push(with_hint(
                        Diagnostic::error_at(&agent.file.source, &span, message),
                        refused.hint,
                    ));
                }
            }
        }
    }

    /// Every agent that calls something can read results that are too long to be shown.
    pub(crate) fn descriptors_for(&self, spec: &AgentSpec) -> Option<ToolsetChoice> {
        let has_tools = !spec.tools.is_empty() || !spec.toolsets.is_empty();
        if !has_tools || !spec.descriptors.enabled {
            return None;
        }
        let settings = json!({"read_only": true});
        // An unusual catalog has none, and then results are shown whole.
        let own = self.make(DESCRIPTORS, DESCRIPTORS, &settings, None).ok()?;
        let held = self.held_from(spec, DESCRIPTORS);
        if own.definitions().iter().all(|definition| held.contains(&definition.name)) {
            return None;
        }
        Some(ToolsetChoice { name: DESCRIPTORS.into(), settings, own: Some(own), implicit: true })
    }

    /// Returns whether a single tool exists. Code that was not run yet may define anything.
    fn has_tool(&mut self, tool: &str) -> bool {
        if self.single_tools().any(|name| name == tool) {
            return true;
        }
        if self.code.may_define() {
            self.assumed.push(self.assumed_tool(tool));
            return true;
        }
        false
    }

    fn assumed_tool(&self, tool: &str) -> AssumedName {
        let of_catalog = self.catalog.lone_tools().into_iter().map(|name| ("tool", name));
        self.assumed_name("tool", tool, &of_catalog.collect::<Vec<_>>())
    }

    fn assumed_toolset(&self, name: &str) -> AssumedName {
        let agents = self.known_agents().into_iter().map(|agent| ("agent", agent));
        let toolsets = self.known_toolsets().into_iter().map(|toolset| ("toolset", toolset));
        self.assumed_name("toolset", name, &agents.chain(toolsets).collect::<Vec<_>>())
    }

    /// A name that code must define. If its text has that very name, nothing else was meant.
    fn assumed_name(&self, kind: &str, name: &str, known: &[(&str, &str)]) -> AssumedName {
        let texts = assumed::texts(self.code.files_not_run());
        let of_code = assumed::names_in(&texts);
        if of_code.contains(&name) {
            return AssumedName::with_near(kind, name, &[]);
        }
        let of_code = of_code.into_iter().map(|name| ("Python name", name));
        let known: Vec<(&str, &str)> = known.iter().copied().chain(of_code).collect();
        AssumedName::with_near(kind, name, &known)
    }

    /// Returns whether only code that is not run can define a tool.
    fn is_withheld(&self, tool: &str) -> bool {
        self.code.is_withheld() && !self.single_tools().any(|name| name == tool)
    }

    /// Takes the names that code must define.
    pub(crate) fn take_assumed(&mut self) -> Vec<AssumedName> {
        std::mem::take(&mut self.assumed)
    }

    /// Looks up what an agent of code lists, and returns what is wrong with a hint for each.
    pub(crate) fn problems_of(&mut self, spec: &AgentSpec) -> Vec<(String, Option<String>)> {
        let mut problems = Vec::new();
        for tool in &spec.tools {
            if !self.has_tool(tool) {
                let message = format!("there is no tool `{tool}`");
                problems.push((message, Some(self.meant_tool(tool))));
            }
        }
        for choice in spec.toolsets.iter().filter(|choice| choice.own.is_none()) {
            if !self.agents.contains(choice.name.as_str())
                && let Err(refused) = self.toolset(&choice.name, &Value::Null, true)
            {
                problems.push((refused.message, refused.hint));
            }
        }
        problems
    }

    fn choice(
        &mut self,
        name: &str,
        settings: &Value,
        spec: &mut AgentSpec,
    ) -> Result<Option<ToolsetChoice>, Refused> {
        if self.broken.contains(name) {
            return Ok(None);
        }
        let (settings, rules) = split_rules(settings)?;
        let is_plain = settings.is_null();
        let choice =
            |own| ToolsetChoice { name: name.into(), settings: settings.clone(), own, implicit: false };
        if self.agents.contains(name) {
            let no_settings = format!("`{name}` is an agent, and agents take no settings");
            spec.approval.extend(read_rules(rules, |_| Some(name.to_owned()))?);
            return if is_plain { Ok(Some(choice(None))) } else { Err(no_settings.into()) };
        }
        if self.is_assumed(name) {
            // Which tools it has is unknown, but the form of the rules can be checked.
            read_rules(rules, |_| Some(name.to_owned()))?;
            if !is_plain {
                return Err(no_settings_of_code(name, &settings));
            }
            self.assumed.push(self.assumed_toolset(name));
            return Ok(None);
        }
        // A toolset of the embedding program is opened with the settings of the agent.
        let of_program = self.program_toolset(name).cloned();
        let is_made_for_agent = !is_plain && of_program.is_none();
        let toolset = of_program.map_or_else(|| self.toolset(name, &settings, is_plain), Ok)?;
        let section = self.manifest.and_then(|file| file.manifest.toolsets.get(name));
        let manual_only = section.into_iter().flat_map(|section| &section.manual_only);
        spec.manual_only.extend(manual_only.map(|tool| format!("{name}.{tool}")));
        let names: Vec<Name> =
            toolset.definitions().iter().map(|definition| definition.name.clone()).collect();
        spec.approval.extend(read_rules(rules, |tool| {
            names.iter().any(|name| name == tool).then(|| format!("{name}.{tool}"))
        })?);
        Ok(Some(choice(is_made_for_agent.then_some(toolset))))
    }

    /// Adds to a hint how a program brings tools of its own.
    fn with_program_hint(&self, hint: String) -> String {
        match self.catalog.program_hint() {
            Some(how) => format!("{hint}; {how}"),
            None => hint,
        }
    }

    fn program_toolset(&self, name: &str) -> Option<&Arc<dyn Toolset>> {
        self.catalog.program_toolsets().iter().find(|toolset| *toolset.name() == name)
    }

    /// The names of the single tools that exist: those of the embedding program and those that code defines.
    fn single_tools(&self) -> impl Iterator<Item = &Name> {
        let of_program = self.catalog.program_tools().iter().map(|tool| &tool.definition().name);
        of_program.chain(self.code.tools())
    }

    /// A toolset of the manifest or a built-in one: shared where the agent has no settings of its own.
    fn toolset(&mut self, name: &str, settings: &Value, is_plain: bool) -> Result<Arc<dyn Toolset>, Refused> {
        if let Some(made) = self.shared.get(name).filter(|_| is_plain) {
            return Ok(made.clone());
        }
        if self.code.defined().is_some_and(|code| code.toolsets.iter().any(|made| *made.value.name() == name))
        {
            return Err(no_settings_of_code(name, settings));
        }
        let section = self.manifest.and_then(|file| file.manifest.toolsets.get(name));
        let toolset = match section {
            Some(section) => {
                let own = merged(&section.settings, settings);
                let narrows = Some(&section.settings).filter(|_| !is_plain);
                self.make(&section.toolset, name, &own, narrows)?
            }
            None => self.make(name, name, settings, None)?,
        };
        if is_plain {
            self.shared.insert(name.into(), toolset.clone());
        }
        Ok(toolset)
    }

    /// Returns whether only code that was not run yet can define a toolset.
    fn is_assumed(&self, name: &str) -> bool {
        let manifest = self.manifest.map(|file| &file.manifest);
        let is_listed = manifest.is_some_and(|manifest| {
            manifest.toolsets.contains_key(name) || manifest.mcp_servers.contains_key(name)
        });
        let is_known = is_listed || self.program_toolset(name).is_some();
        self.code.may_define() && !is_known && !self.catalog.toolsets().contains(&name)
    }

    fn make(
        &self,
        built_in: &str,
        name: &str,
        settings: &Value,
        section: Option<&Value>,
    ) -> Result<Arc<dyn Toolset>, Refused> {
        let manifest = self.manifest.map(|file| &file.manifest);
        if manifest.is_some_and(|manifest| manifest.mcp_servers.contains_key(built_in)) {
            return Err(format!("`{built_in}` is an MCP server, which this version cannot start").into());
        }
        if !self.catalog.toolsets().contains(&built_in) {
            let message = format!("there is no toolset or agent `{built_in}`");
            let hint = python_tool_hint(built_in)
                .unwrap_or_else(|| self.with_program_hint(suggest(built_in, self.known())));
            return Err(Refused { message, hint: Some(hint) });
        }
        let name = Name::from(name);
        let (root, files) = (self.root, self.files);
        let wanted = WantedToolset { built_in, name: &name, settings, section, root, files };
        self.catalog.toolset(wanted).map_err(|text| format!("toolset `{name}`: {text}").into())
    }

    fn known(&self) -> Vec<&str> {
        self.known_toolsets().into_iter().chain(self.known_agents()).collect()
    }

    fn known_agents(&self) -> Vec<&str> {
        let mut agents: Vec<&str> = self.agents.iter().copied().collect();
        agents.sort_unstable();
        agents
    }

    fn known_toolsets(&self) -> Vec<&str> {
        let sections =
            self.manifest.into_iter().flat_map(|file| file.manifest.toolsets.keys().map(String::as_str));
        let of_code = self.code.defined().into_iter().flat_map(|code| &code.toolsets);
        let of_code = of_code.map(|toolset| toolset.value.name().as_str());
        let of_program = self.catalog.program_toolsets().iter().map(|toolset| toolset.name().as_str());
        let outside_files = of_program.chain(of_code);
        self.catalog.toolsets().into_iter().chain(sections).chain(outside_files).collect()
    }
}

/// What replaces a tool or toolset of the Python programs.
fn python_tool_hint(name: &str) -> Option<String> {
    find_python_name(name, &[PythonNameKind::Tool]).map(PythonName::hint)
}

/// Reports a tool with the name of the one that reads long results, which it replaces.
fn notice_own_reader(agent: &Agent, spec: &AgentSpec, others: &[Name], out: &mut Diagnostics) {
    const READER: &str = "read_fd";
    let is_alias = spec.overrides.iter().any(|change| change.alias.as_deref() == Some(READER));
    if spec.descriptors.enabled && (is_alias || others.iter().any(|name| name == READER)) {
        let message = format!(
            "agent `{}`: its `{READER}` replaces the tool that reads long results, so they are truncated",
            spec.name
        );
        let span = entry_span(&agent.file.header, "tools", READER);
        let hint = "rename your tool, or write `file_descriptors: false`";
        out.push(Diagnostic::notice_at(&agent.file.source, &span, message).with_hint(hint));
    }
}

/// Reports a tool for tuning that is not offered, because nothing may be tuned.
fn notice_no_tuning(agent: &Agent, out: &mut Diagnostics) {
    const TUNE: &str = "tune";
    if agent.header.tuning.is_none() && agent.header.tools.iter().any(|entry| entry.name() == TUNE) {
        let message =
            format!("`{TUNE}` is not offered to the model, because the agent has no `tuning` section");
        let span = entry_span(&agent.file.header, "tools", TUNE);
        out.push(Diagnostic::notice_at(&agent.file.source, &span, message));
    }
}

/// Checks `manual_only`. A plain name that the toolset does not have is a misspelling: it would hide nothing.
fn check_manual_only(patterns: &[String], toolset: &dyn Toolset) -> Result<(), Refused> {
    let definitions = toolset.definitions();
    let tools = || definitions.iter().map(|definition| definition.name.as_str());
    for pattern in patterns {
        if glob_problem(pattern).is_some() {
            return Err(format!("`manual_only` has an invalid name or glob: `{pattern}`").into());
        }
        if Name::is_valid(pattern) && tools().all(|tool| tool != pattern) {
            let message = format!("`manual_only` names `{pattern}`, which the toolset does not have");
            return Err(Refused { message, hint: Some(suggest(pattern, tools())) });
        }
    }
    Ok(())
}

fn with_hint(diagnostic: Diagnostic, hint: Option<String>) -> Diagnostic {
    match hint {
        Some(hint) => diagnostic.with_hint(hint),
        None => diagnostic,
    }
}

/// The settings of a section with those of an agent over them.
fn merged(section: &Value, own: &Value) -> Value {
    match (section, own) {
        (Value::Object(section), Value::Object(own)) => {
            Value::Object(section.clone().into_iter().chain(own.clone()).collect())
        }
        (section, Value::Null) => section.clone(),
        (_, own) => own.clone(),
    }
}

/// Takes the approval rules of the older form out of the settings. Settings without a key are not settings: null.
fn split_rules(settings: &Value) -> Result<(Value, Map<String, Value>), Refused> {
    let Value::Object(map) = settings else { return Ok((settings.clone(), Map::new())) };
    let mut map = map.clone();
    let rules = match map.shift_remove(APPROVAL_CONFIG) {
        None => Map::new(),
        Some(Value::Object(rules)) => rules,
        Some(_) => {
            return Err(format!("`{APPROVAL_CONFIG}` must map tools to `{{pre_approved: true}}`").into());
        }
    };
    let settings = if map.is_empty() { Value::Null } else { Value::Object(map) };
    Ok((settings, rules))
}

/// Refuses settings for a toolset that code makes: nothing passes them on to the code.
fn no_settings_of_code(name: &str, settings: &Value) -> Refused {
    let keys: Vec<String> =
        settings.as_object().into_iter().flat_map(Map::keys).map(|key| format!("`{key}`")).collect();
    let given = if keys.is_empty() { settings.to_string() } else { keys.join(", ") };
    Refused {
        message: format!("the toolset `{name}` is defined by code and takes no settings: {given}"),
        hint: Some(format!("set it in the Python file; only `{APPROVAL_CONFIG}` may be given here")),
    }
}

/// Reads `{tool: {pre_approved: true}}`; the pattern of a tool is nothing where it does not exist.
fn read_rules(
    rules: Map<String, Value>,
    pattern: impl Fn(&str) -> Option<String>,
) -> Result<Vec<ApprovalRule>, Refused> {
    let read = rules.into_iter().map(|(tool, config)| {
        let pattern = pattern(&tool)
            .ok_or_else(|| format!("`{APPROVAL_CONFIG}` names `{tool}`, which the toolset does not have"))?;
        let flag = |key: &str| config.get(key) == Some(&Value::Bool(true));
        let unknown = config.as_object().and_then(|map| {
            map.iter().find(|(key, value)| {
                !matches!(key.as_str(), "pre_approved" | "blocked") || !value.is_boolean()
            })
        });
        let approval = match (&config, unknown) {
            (Value::Object(_), None) if flag("blocked") => Approval::Blocked,
            (Value::Object(_), None) if flag("pre_approved") => Approval::PreApproved,
            (Value::Object(_), None) => Approval::Ask,
            _ => {
                let message = format!("`{APPROVAL_CONFIG}` has an invalid rule for `{tool}`: {config}");
                let hint = Some("write `{pre_approved: true}` or `{blocked: true}`".to_owned());
                return Err(Refused { message, hint });
            }
        };
        Ok(ApprovalRule { pattern, approval })
    });
    read.collect()
}
