//! Links the files of a project by name into a frozen [`Project`], or says everything that is wrong.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use llm_do_core::{
    Access, AgentSpec, Approval, ApprovalMode, Limits, ModelSettings, Money, Name, Schema, Toolset, nearest,
};
use llm_do_runtime::{AgentCallOverride, AgentCallPolicy, Project, ProjectBuilder, RuntimeBuilder};
use serde_json::{Map, Value};

use crate::agent_file::AgentFile;
use crate::check::{self, meant};
use crate::diagnostic::{Diagnostic, Diagnostics, Source};
use crate::document::Node;
use crate::header::{AccessLevel, Header, Level, ToolsetEntry};
use crate::load::{Files, ManifestFile};
use crate::manifest::{LimitsSection, Mode};
use crate::template;

/// Makes the toolsets that files may name.
pub trait Catalogue {
    /// Returns the names of all built-in toolsets.
    fn names(&self) -> Vec<&str>;

    /// Makes a built-in toolset under a name; the words of an error say what is wrong with its settings.
    fn toolset(&self, built_in: &str, name: &Name, settings: &Value) -> Result<Arc<dyn Toolset>, String>;
}

/// A catalogue without toolsets.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoToolsets;

impl Catalogue for NoToolsets {
    fn names(&self) -> Vec<&str> {
        Vec::new()
    }

    fn toolset(&self, built_in: &str, _name: &Name, _settings: &Value) -> Result<Arc<dyn Toolset>, String> {
        Err(format!("there is no toolset `{built_in}`"))
    }
}

/// A project read from files, ready to be run.
pub struct LoadedProject {
    /// The linked project.
    pub project: Project,
    /// The agent that a run starts with.
    pub entry: Name,
    /// The input where nobody gives one.
    pub args: Option<Map<String, Value>>,
    /// Whether the command line may give the input.
    pub allow_cli_input: bool,
    /// The directory of the project.
    pub root: PathBuf,
    /// What the author should know.
    pub notices: Diagnostics,
    mode: ApprovalMode,
    limits: Limits,
    policy: AgentCallPolicy,
    context: BTreeMap<String, Value>,
}

impl LoadedProject {
    /// Applies what the manifest says about runs, and the project's root, to a runtime.
    pub fn configure(&self, builder: RuntimeBuilder) -> RuntimeBuilder {
        let builder = builder
            .approval_mode(self.mode)
            .limits(self.limits.clone())
            .agent_calls(self.policy.clone())
            .root(&self.root);
        let context = self.context.iter();
        context.fold(builder, |builder, (name, value)| builder.provide_named(name.as_str(), value.clone()))
    }
}

/// An agent with where it comes from.
struct Agent {
    file: AgentFile,
    header: Header,
}

/// Links files.
pub(crate) fn link(files: Files, catalogue: &dyn Catalogue, out: &mut Diagnostics) -> Option<LoadedProject> {
    let agents = read_headers(files.agents, out);
    check_names(&agents, catalogue, out);
    // Without its manifest nobody can say what a project starts with.
    let entry = match files.broken_manifest {
        true => None,
        false => find_entry(files.manifest.as_ref(), &agents, &files.root, out),
    };
    let mut builder = Project::builder();
    if let Some(model) = files.manifest.as_ref().and_then(|file| file.manifest.model.as_deref()) {
        builder = builder.model(model);
    }
    let mut linker =
        Linker { agents: &agents, manifest: files.manifest.as_ref(), catalogue, made: Vec::new() };
    for agent in &agents {
        if let Some(spec) = linker.agent(agent, out) {
            builder = builder.agent(spec);
        }
    }
    let builder = linker.made.into_iter().fold(builder, ProjectBuilder::shared_toolset);
    let settings = files.manifest.as_ref().map(|file| settings(file, out)).unwrap_or_default();
    if out.has_errors() {
        return None;
    }
    let project = builder.build().map_err(|errors| report(&errors, &files.root, out)).ok()?;
    let manifest = files.manifest.map(|file| file.manifest);
    Some(LoadedProject {
        project,
        entry: entry?,
        args: manifest.as_ref().and_then(|manifest| manifest.entry.args.clone()),
        allow_cli_input: manifest.as_ref().is_none_or(|manifest| manifest.allow_cli_input),
        root: files.root,
        notices: std::mem::take(out),
        mode: settings.mode,
        limits: settings.limits,
        policy: settings.policy,
        context: manifest.map(|manifest| manifest.context).unwrap_or_default(),
    })
}

/// What the runtime itself refuses to link has no place in a file; it is said as it is.
fn report(errors: &llm_do_runtime::LinkErrors, root: &std::path::Path, out: &mut Diagnostics) {
    for error in &errors.0 {
        let diagnostic = Diagnostic::error(root, error.to_string());
        out.push(match error.hint() {
            Some(hint) => diagnostic.with_hint(hint),
            None => diagnostic,
        });
    }
}

fn read_headers(files: Vec<AgentFile>, out: &mut Diagnostics) -> Vec<Agent> {
    let read = files.into_iter().filter_map(|file| {
        let header = check::read(&file.source, &file.header, out)?;
        Some(Agent { file, header })
    });
    read.collect()
}

fn check_names(agents: &[Agent], catalogue: &dyn Catalogue, out: &mut Diagnostics) {
    for (index, agent) in agents.iter().enumerate() {
        let (name, source) = (&agent.header.name, &agent.file.source);
        let place = place_of(&agent.file.header, "name");
        if let Some(earlier) = agents[..index].iter().find(|earlier| earlier.header.name == *name) {
            let message =
                format!("the agent name `{name}` is already used by {}", earlier.file.source.path.display());
            out.push(Diagnostic::at(source, &place, message).with_hint("rename one of them"));
        }
        if catalogue.names().contains(&name.as_str()) {
            let message = format!("the agent name `{name}` is the name of a built-in toolset");
            out.push(Diagnostic::at(source, &place, message).with_hint("rename the agent"));
        }
    }
}

fn place_of(node: &Node, field: &str) -> std::ops::Range<usize> {
    node.field(field).map_or_else(|| node.place.clone(), |field| field.value.place.clone())
}

/// The entry: what the manifest names, else the one agent that says so, else `main`, else the only agent.
fn find_entry(
    manifest: Option<&ManifestFile>,
    agents: &[Agent],
    root: &std::path::Path,
    out: &mut Diagnostics,
) -> Option<Name> {
    let marked: Vec<&Agent> = agents.iter().filter(|agent| agent.header.entry).collect();
    if let [_, _, ..] = &marked[..] {
        let names: Vec<String> = marked.iter().map(|agent| format!("`{}`", agent.header.name)).collect();
        for agent in &marked {
            let message = format!("several agents say `entry: true`: {}", names.join(", "));
            let place = place_of(&agent.file.header, "entry");
            out.push(
                Diagnostic::at(&agent.file.source, &place, message).with_hint("leave it with one of them"),
            );
        }
        return None;
    }
    match (manifest, &marked[..]) {
        (Some(file), _) => named_entry(file, &marked, agents, out),
        (None, [agent]) => Some(agent.header.name.as_str().into()),
        (None, _) => sole_entry(agents, root, out),
    }
}

fn named_entry(
    file: &ManifestFile,
    marked: &[&Agent],
    agents: &[Agent],
    out: &mut Diagnostics,
) -> Option<Name> {
    let entry = &file.manifest.entry;
    let place = place_of(&file.node, "entry");
    match (entry.agent.as_deref(), entry.function.as_deref(), marked) {
        (Some(_), Some(_), _) => {
            let message = "`entry` names both an `agent` and a `function`";
            out.push(Diagnostic::at(&file.source, &place, message).with_hint("name one of them"));
            None
        }
        (Some(name), None, _) if agents.iter().any(|agent| agent.header.name == name) => Some(name.into()),
        (Some(name), None, _) => {
            let known = agents.iter().map(|agent| agent.header.name.as_str());
            let message = format!("`entry` names the agent `{name}`, which does not exist");
            out.push(Diagnostic::at(&file.source, &place, message).with_hint(meant(name, known)));
            None
        }
        (None, Some(function), _) => {
            function_entry(file, function, out);
            None
        }
        (None, None, [agent]) => Some(agent.header.name.as_str().into()),
        (None, None, _) => {
            let message = "`entry` names neither an `agent` nor a `function`";
            out.push(
                Diagnostic::at(&file.source, &place, message)
                    .with_hint("write `\"entry\": {\"agent\": \"main\"}`"),
            );
            None
        }
    }
}

fn function_entry(file: &ManifestFile, function: &str, out: &mut Diagnostics) {
    let place = file.node.field("entry").map_or(0..0, |entry| place_of(&entry.value, "function"));
    let listed = |path: &str| file.manifest.python_files.iter().any(|other| other == path);
    let diagnostic = match function.rsplit_once(':') {
        Some((path, name)) if !name.is_empty() && listed(path) => Diagnostic::at(
            &file.source,
            &place,
            format!("the entry `{name}` of `{path}` cannot be called: Python entries are not supported yet"),
        ),
        Some((path, name)) if !name.is_empty() => {
            let message = format!("`entry.function` names `{path}`, which `python_files` does not list");
            Diagnostic::at(&file.source, &place, message)
        }
        _ => Diagnostic::at(
            &file.source,
            &place,
            format!("`entry.function` is `{function}`, expected `path.py:function`"),
        ),
    };
    out.push(diagnostic);
}

fn sole_entry(agents: &[Agent], root: &std::path::Path, out: &mut Diagnostics) -> Option<Name> {
    let main = agents.iter().find(|agent| agent.header.name == "main");
    let main_file =
        agents.iter().find(|agent| agent.file.source.path.file_stem().is_some_and(|stem| stem == "main"));
    if let Some(agent) = main.or(main_file) {
        return Some(agent.header.name.as_str().into());
    }
    match agents {
        [agent] => Some(agent.header.name.as_str().into()),
        [] => None,
        several => {
            let names: Vec<&str> = several.iter().map(|agent| agent.header.name.as_str()).collect();
            let message = format!("no entry: there are several agents ({})", names.join(", "));
            out.push(
                Diagnostic::error(root, message).with_hint("name one `main`, or write `entry: true` in one"),
            );
            None
        }
    }
}

struct Linker<'a> {
    agents: &'a [Agent],
    manifest: Option<&'a ManifestFile>,
    catalogue: &'a dyn Catalogue,
    made: Vec<Arc<dyn Toolset>>,
}

impl Linker<'_> {
    fn agent(&mut self, agent: &Agent, out: &mut Diagnostics) -> Option<AgentSpec> {
        let (header, source) = (&agent.header, &agent.file.source);
        let mut spec = AgentSpec::new(header.name.as_str(), agent.file.instructions.clone());
        spec.description = header.description.clone().unwrap_or_default();
        spec.model = header.model.as_deref().map(Into::into);
        spec.compatible_models = self.compatible_models(agent, out);
        spec.fallback_models = header.fallback_models.iter().map(|model| model.as_str().into()).collect();
        spec.settings = model_settings(header);
        spec.access = header.access.map_or(Access::Admin, access);
        spec.limits = header.limits.as_ref().map(limits).unwrap_or_default();
        spec.agents = header.agents.clone();
        spec.input = self.schema(agent, "input_schema", header.input_schema.as_ref(), out);
        spec.output = self.schema(agent, "output_schema", header.output_schema.as_ref(), out);
        spec.approval = header.approval.iter().map(|(pattern, level)| rule(pattern, *level)).collect();
        if let Some(prompt) = &header.prompt {
            let place = place_of(&agent.file.header, "prompt");
            match template::prompt(prompt, header.input_schema.as_ref()) {
                Ok(prompt) => spec.prompt = Some(prompt),
                Err(message) => out.push(Diagnostic::at(source, &place, message)),
            }
        }
        self.tools(agent, &mut spec, out);
        self.toolsets(agent, &mut spec, out);
        Some(spec)
    }

    fn compatible_models(&self, agent: &Agent, out: &mut Diagnostics) -> Vec<String> {
        let Some(globs) = &agent.header.compatible_models else { return Vec::new() };
        let place = place_of(&agent.file.header, "compatible_models");
        if globs.is_empty() {
            let message = "`compatible_models` is empty, so no model fits";
            out.push(
                Diagnostic::at(&agent.file.source, &place, message)
                    .with_hint("write `[\"*\"]` for any model"),
            );
        }
        if agent.header.model.is_some() {
            let message = "`compatible_models` says nothing beside `model`";
            out.push(Diagnostic::at(&agent.file.source, &place, message).with_hint("keep one of them"));
        }
        globs.clone()
    }

    fn schema(
        &self,
        agent: &Agent,
        key: &str,
        schema: Option<&Map<String, Value>>,
        out: &mut Diagnostics,
    ) -> Option<Schema> {
        let result = Schema::new(Value::Object(schema?.clone()));
        let place = place_of(&agent.file.header, key);
        result
            .map_err(|error| {
                out.push(Diagnostic::at(&agent.file.source, &place, format!("`{key}` is {error}")))
            })
            .ok()
    }

    /// Single tools come with Python files and toolsets of programs; a file-only project has none.
    fn tools(&self, agent: &Agent, spec: &mut AgentSpec, out: &mut Diagnostics) {
        for tool in &agent.header.tools {
            let place = place_of(&agent.file.header, "tools");
            let message = format!("agent `{}` names the tool `{tool}`, which does not exist", spec.name);
            let hint = meant(tool, self.known());
            out.push(Diagnostic::at(&agent.file.source, &place, message).with_hint(hint));
        }
    }

    fn toolsets(&mut self, agent: &Agent, spec: &mut AgentSpec, out: &mut Diagnostics) {
        let place = place_of(&agent.file.header, "toolsets");
        let mut seen: Vec<String> = Vec::new();
        for (name, settings) in agent.header.toolsets.iter().flat_map(entries) {
            if seen.contains(&name) {
                let message = format!("duplicate entry `{name}` in `toolsets`");
                out.push(Diagnostic::at(&agent.file.source, &place, message).with_hint("list it once"));
                continue;
            }
            seen.push(name.clone());
            if let Err((message, hint)) = self.toolset(&name, &settings) {
                let message = format!("agent `{}`: {message}", spec.name);
                let diagnostic = Diagnostic::at(&agent.file.source, &place, message);
                out.push(match hint {
                    Some(hint) => diagnostic.with_hint(hint),
                    None => diagnostic,
                });
                continue;
            }
            spec.toolsets.push(llm_do_core::ToolsetChoice { name: name.as_str().into(), settings });
        }
    }

    /// Makes a toolset that is not made yet: one of the manifest, or a built-in one.
    fn toolset(&mut self, name: &str, settings: &Value) -> Result<(), (String, Option<String>)> {
        if self.agents.iter().any(|agent| agent.header.name == name) {
            return Ok(());
        }
        let section = self.manifest.and_then(|file| file.manifest.toolsets.get(name));
        let (built_in, own) =
            section.map_or((name, settings), |section| (section.toolset.as_str(), &section.settings));
        if !self.catalogue.names().contains(&built_in) {
            let message = format!("there is no toolset or agent `{built_in}`");
            return Err((message, Some(meant(built_in, self.known()))));
        }
        let made = self.catalogue.toolset(built_in, &name.into(), own);
        let toolset = made.map_err(|message| (format!("toolset `{name}`: {message}"), None))?;
        if !self.made.iter().any(|other| *other.name() == *toolset.name()) {
            self.made.push(toolset);
        }
        Ok(())
    }

    fn known(&self) -> Vec<&str> {
        let sections =
            self.manifest.into_iter().flat_map(|file| file.manifest.toolsets.keys().map(String::as_str));
        let agents = self.agents.iter().map(|agent| agent.header.name.as_str());
        self.catalogue.names().into_iter().chain(sections).chain(agents).collect()
    }
}

fn entries(entry: &ToolsetEntry) -> Vec<(String, Value)> {
    match entry {
        ToolsetEntry::Name(name) => vec![(name.clone(), Value::Null)],
        ToolsetEntry::WithSettings(map) => {
            map.iter().map(|(name, settings)| (name.clone(), settings.clone())).collect()
        }
    }
}

fn rule(pattern: &str, level: Level) -> llm_do_core::ApprovalRule {
    let approval = match level {
        Level::PreApproved => Approval::PreApproved,
        Level::Ask => Approval::Ask,
        Level::Blocked => Approval::Blocked,
    };
    llm_do_core::ApprovalRule { pattern: pattern.to_owned(), approval }
}

fn access(level: AccessLevel) -> Access {
    match level {
        AccessLevel::Read => Access::Read,
        AccessLevel::Write => Access::Write,
        AccessLevel::Admin => Access::Admin,
    }
}

fn model_settings(header: &Header) -> ModelSettings {
    let Some(settings) = &header.model_settings else { return ModelSettings::default() };
    let extra = if settings.extra.is_empty() { Value::Null } else { Value::Object(settings.extra.clone()) };
    ModelSettings { temperature: settings.temperature, max_tokens: settings.max_tokens, extra }
}

fn limits(section: &LimitsSection) -> Limits {
    Limits {
        depth: None,
        turns: section.turns,
        tool_calls: section.tool_calls,
        tokens: section.tokens,
        cost: section.cost.map(Money::from_dollars),
        time: section.time.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
    }
}

#[derive(Default)]
struct Settings {
    mode: ApprovalMode,
    limits: Limits,
    policy: AgentCallPolicy,
}

fn settings(file: &ManifestFile, out: &mut Diagnostics) -> Settings {
    let runtime = &file.manifest.runtime;
    check_auth(file, &file.source, out);
    let mode = match runtime.approval_mode {
        Some(Mode::ApproveAll) => ApprovalMode::ApproveAll,
        Some(Mode::RejectAll) => ApprovalMode::RejectAll,
        Some(Mode::Prompt) | None => ApprovalMode::Prompt,
    };
    let limits =
        Limits { depth: runtime.max_depth, ..runtime.limits.as_ref().map(limits).unwrap_or_default() };
    let overrides = runtime.agent_approval_overrides.iter().map(|(agent, special)| AgentCallOverride {
        agent: agent.as_str().into(),
        calls: special.calls_require_approval,
        attachments: special.attachments_require_approval,
    });
    let policy = AgentCallPolicy {
        calls: runtime.agent_calls_require_approval,
        attachments: runtime.agent_attachments_require_approval,
        overrides: overrides.collect(),
    };
    Settings { mode, limits, policy }
}

fn check_auth(file: &ManifestFile, source: &Source, out: &mut Diagnostics) {
    let Some(mode) = file.manifest.runtime.auth_mode.as_deref().filter(|mode| *mode != "oauth_off") else {
        return;
    };
    let place = file.node.field("runtime").map_or(0..0, |runtime| place_of(&runtime.value, "auth_mode"));
    let known = ["oauth_off", "oauth_auto", "oauth_required"];
    let message = match nearest(mode, known).filter(|near| *near == mode) {
        Some(_) => format!("`auth_mode: {mode}` is not supported"),
        None => format!("`auth_mode` is `{mode}`, expected `oauth_off`"),
    };
    out.push(
        Diagnostic::at(source, &place, message)
            .with_hint("sign in with a key from the environment: `oauth_off`"),
    );
}
