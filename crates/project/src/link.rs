//! Links the files of a project by name into a frozen [`Project`], or says everything that is wrong.

pub(crate) mod embedding_program;
pub(crate) mod entry;
pub(crate) mod offered;
pub(crate) mod powers;
pub(crate) mod programs;
pub(crate) mod providers;
pub(crate) mod python;
mod restricted;
mod template;
pub(crate) mod toolsets;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobBuilder;
use llm_do_core::{
    Access, AgentSpec, Approval, ApprovalRule, DEFAULT_TEMPLATE_BYTES, DescriptorSettings, ModelOverride,
    Name, NeedSpec, Schema,
};
use llm_do_runtime::{
    EntrySpec, LinkError, LinkErrors, OutlinedCallable, Project, ProjectBuilder, RuntimeBuilder,
};
use llm_do_trust::Powers;
use serde_json::{Map, Value};

use crate::catalog::{Catalog, ProjectFiles};
use crate::code::{ClassPurpose, Code, CodeProblem, CodeProvider, Defined};
use crate::create::Workshop;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{entry_place, place_of};
use crate::format::front_matter::{AccessLevel, FileDescriptors, Header, Level, OutputSchema, ToolEntry};
use crate::format::manifest::{LimitsSection, McpServer, ModelSection, Provider};
use crate::format::run_settings::{RunSettings, run_settings};
use crate::format::schema::{self, meant};
use crate::format::{attachment_policy, input_schema, model_settings, tuning};
use crate::link::entry::{Entry, find_entry};
use crate::link::offered::CheckedAgent;
use crate::link::providers::ModelNames;
use crate::link::python::{KnownCode, Wanted};
use crate::link::toolsets::{Listed, Toolsets, check_sections};
use crate::preamble;
use crate::read::agent_file::AgentFile;
use crate::read::listing::MAX_GLOB_LEN;
use crate::read::{Files, ManifestFile};

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
    /// The model of agents that name none.
    pub model: Option<String>,
    /// Providers besides the built-in ones.
    pub providers: BTreeMap<String, Provider>,
    /// What holds for single models, in the order of the manifest: the first that matches wins.
    pub model_overrides: Vec<ModelOverride>,
    /// MCP servers.
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// What a conversation begins with, each sent as if a person had written it.
    pub demo: Vec<String>,
    /// What the author should know.
    pub notices: Diagnostics,
    /// What the project does without anybody being asked.
    pub powers: Powers,
    /// What only code defines, if that was not run: such tools and toolsets are missing.
    pub unseen: Vec<String>,
    pub(crate) settings: RunSettings,
    context: BTreeMap<String, Value>,
    manifest: Option<Arc<ManifestFile>>,
    generated: PathBuf,
    files: ProjectFiles,
    code: Option<Arc<Code>>,
    code_files: Vec<PathBuf>,
    catalog: Arc<dyn Catalog>,
}

impl LoadedProject {
    /// Returns the names of all providers that the project itself brings, in its manifest or its code.
    pub fn provider_names(&self) -> impl Iterator<Item = &str> {
        let of_code = self.code_providers().iter().map(|provider| provider.name.as_str());
        self.providers.keys().map(String::as_str).chain(of_code)
    }

    /// Returns the files that decide what the project does: its manifest, agents and code.
    pub fn own_files(&self) -> &[PathBuf] {
        &self.files.paths
    }

    /// Returns the files of code that were run, as they are written.
    pub fn code_files(&self) -> &[PathBuf] {
        &self.code_files
    }

    /// Returns whether the project has code, whether or not it was run.
    pub fn has_code(&self) -> bool {
        !self.code_files.is_empty()
    }

    /// Returns whether the code of the project was run to load it.
    pub fn ran_code(&self) -> bool {
        self.code.is_some()
    }

    /// Returns the variables with keys of model providers that code sees.
    pub fn code_variables(&self) -> &[String] {
        self.manifest.as_ref().map(|file| file.manifest.python_env.as_slice()).unwrap_or_default()
    }

    /// Returns the providers of models that the project's code brings.
    pub fn code_providers(&self) -> &[CodeProvider] {
        self.code.as_deref().map(|code| code.providers.as_slice()).unwrap_or_default()
    }

    /// Applies what the manifest says about runs, and the project's root, to a runtime.
    pub fn configure(&self, builder: RuntimeBuilder) -> RuntimeBuilder {
        let settings = &self.settings;
        let builder = builder
            .approval_mode(settings.mode)
            .limits(settings.limits.clone())
            .agent_calls(settings.policy.clone())
            .denials_end_runs(settings.denials_end_runs)
            .retry(settings.retry)
            .root(&self.root)
            .secret_files(self.files.secret_files(&self.root).unwrap_or_default());
        let context = self.context.iter();
        context.fold(builder, |builder, (name, value)| builder.provide_named(name.as_str(), value.clone()))
    }

    /// Returns the workshop in which agents are created while the project runs. They may name what the catalog
    /// knows with which the project was loaded.
    pub fn workshop(&self) -> Workshop {
        Workshop {
            root: self.root.clone(),
            directory: self.generated.clone(),
            manifest: self.manifest.clone(),
            files: self.files.clone(),
            code: self.code.clone(),
            catalog: self.catalog.clone(),
        }
    }

    /// Returns the limits that the manifest sets, for whoever sets others beside them.
    pub fn limits(&self) -> &llm_do_core::Limits {
        &self.settings.limits
    }

    /// Returns the approval that a call stands behind, by its definition, the agent's rules, and the manifest.
    pub fn approval_of(&self, callable: &OutlinedCallable) -> Approval {
        self.settings.judged(callable).0
    }

    /// Returns whether the project provides a context value: the manifest those under `context`, the project itself
    /// the workshop in which agents are created.
    pub fn provides(&self, need: &NeedSpec) -> bool {
        need.is_built_in()
            || *need == NeedSpec::typed::<Workshop>()
            || self.context.keys().any(|name| *need == NeedSpec::named(name.as_str()))
    }

    /// Reports the tools of Python files that need a context value which the project does not provide. A program that
    /// embeds the project may still provide it; the command line cannot.
    pub fn missing_needs(&self) -> Diagnostics {
        let mut found = Diagnostics::default();
        for tool in self.code.iter().flat_map(|code| &code.tools) {
            let definition = tool.value.definition();
            for need in definition.needs.iter().filter(|need| !self.provides(need)) {
                let (name, provided) = (definition.name.clone(), Vec::new());
                let error = LinkError::MissingNeed { tool: name, need: need.clone(), provided };
                let hint = Some(format!("add `{}` under `context` of the manifest", need.label()));
                let problem =
                    CodeProblem { place: Some(tool.place.clone()), message: error.to_string(), hint };
                found.push(python::diagnostic(problem, &self.root));
            }
        }
        found
    }

    /// Returns the approval mode that the manifest names, if it names one.
    pub fn named_approval_mode(&self) -> Option<llm_do_core::ApprovalMode> {
        self.manifest.as_ref()?.manifest.runtime.approval_mode.as_ref()?;
        Some(self.settings.mode)
    }

    /// Returns how the manifest treats what must ask.
    pub fn approval_mode(&self) -> llm_do_core::ApprovalMode {
        self.settings.mode
    }
}

/// An agent with where it comes from.
pub(crate) struct Agent {
    pub(crate) file: AgentFile,
    pub(crate) header: Header,
}

impl Agent {
    /// Replaces aliases of the user by the models that they name.
    pub(crate) fn expand_aliases(&mut self, catalog: &dyn Catalog) {
        let models = self.header.model.iter_mut().chain(&mut self.header.fallback_models);
        models.for_each(|model| expand_alias(model, catalog));
    }

    /// Returns whether an agent or code created it: it says so, and lies where such agents are kept.
    pub(crate) fn is_generated(&self) -> bool {
        self.header.generated && self.file.generated
    }

    /// Returns whether a run may start with it although the manifest does not name it.
    pub(crate) fn may_be_entry(&self) -> bool {
        !self.is_generated() && !self.file.is_linked
    }
}

/// The parts of an agent that are checked against what providers accept.
fn checked(agent: &Agent) -> CheckedAgent<'_> {
    CheckedAgent { source: &agent.file.source, node: &agent.file.header, header: &agent.header }
}

/// Links files. Nothing of a project is run before everything else about it was found to be right, and before its
/// powers were found to be among those that somebody agreed to, if an agreement is given.
pub(crate) fn link(
    mut files: Files,
    agreed: Option<&Powers>,
    catalog: &dyn Catalog,
    out: &mut Diagnostics,
) -> Option<LoadedProject> {
    let headers = read_agents(&mut files, catalog, out);
    let wanted = wanted_code(&mut files, &headers.agents);
    if wanted.is_empty() {
        let root = files.root.clone();
        let loaded = linked(files, &headers, KnownCode::Absent, None, catalog, out)?;
        return check_agreed(&loaded.powers, agreed, &root, out).map(|()| loaded);
    }
    let powers = check_before(&files, &headers, &wanted, catalog, out)?;
    check_agreed(&powers, agreed, &files.root, out)?;
    let code = wanted.run(files.manifest.as_ref(), &files.root, &files.own, catalog, out)?;
    for notice in &code.notices {
        out.push(python::diagnostic(notice.clone(), &files.root).notice());
    }
    let known = KnownCode::run(&code, &wanted);
    files.python = wanted.files();
    linked(files, &headers, known, Some(code.clone()), catalog, out)
}

/// Collects what the project wants of Python. Every file that is run decides what the project does, also one that
/// only an agent names for a class.
fn wanted_code(files: &mut Files, agents: &[Agent]) -> Wanted {
    let wanted = Wanted::of(files, agents);
    let unlisted = wanted.files().into_iter().filter(|file| !files.own.paths.contains(file));
    let unlisted: Vec<PathBuf> = unlisted.collect();
    files.own.paths.extend(unlisted);
    wanted
}

/// Links files without running any of them. What only code defines is left out and listed in [`LoadedProject::unseen`].
pub(crate) fn link_static(
    mut files: Files,
    catalog: &dyn Catalog,
    out: &mut Diagnostics,
) -> Option<LoadedProject> {
    let headers = read_agents(&mut files, catalog, out);
    let wanted = wanted_code(&mut files, &headers.agents);
    if wanted.is_empty() {
        return linked(files, &headers, KnownCode::Absent, None, catalog, out);
    }
    files.python = wanted.files();
    linked(files, &headers, KnownCode::Withheld(&wanted), None, catalog, out)
}

/// Links files without anything that nobody agreed to: no code, no addresses of the project, no rules that loosen.
pub(crate) fn link_restricted(
    mut files: Files,
    catalog: &dyn Catalog,
    out: &mut Diagnostics,
) -> Option<LoadedProject> {
    let mut headers = read_agents(&mut files, catalog, out);
    restricted::restrict(&mut files, &mut headers.agents, catalog);
    let wanted = wanted_code(&mut files, &headers.agents);
    let known = if wanted.is_empty() { KnownCode::Absent } else { KnownCode::Withheld(&wanted) };
    let root = files.root.clone();
    let mut loaded = linked(files, &headers, known, None, catalog, out)?;
    for left in restricted::remaining(&loaded.powers) {
        let message = format!("it cannot be run without this: {}", left.power);
        let hint = "look at the project with `llm-do check`, and agree to it with `llm-do trust`";
        out.push(Diagnostic::error(&root, message).with_hint(hint));
    }
    loaded.providers.clear();
    loaded.mcp_servers.clear();
    loaded.powers = Powers::default();
    (!out.has_errors()).then_some(loaded)
}

/// Checks files without running any of them, and lists what only running them would show.
pub(crate) fn check(mut files: Files, catalog: &dyn Catalog, out: &mut Diagnostics) {
    let headers = read_agents(&mut files, catalog, out);
    let wanted = wanted_code(&mut files, &headers.agents);
    if wanted.is_empty() {
        if let Some(project) = linked(files, &headers, KnownCode::Absent, None, catalog, out) {
            *out = project.notices;
        }
    } else if check_before(&files, &headers, &wanted, catalog, out).is_some() {
        let mut unsaid = Diagnostics::default();
        let known = KnownCode::Unrun(&wanted);
        let found = parts(&files, &headers, known, catalog, &mut unsaid);
        out.0.extend(unsaid.0);
        let problems = catalog.syntax_problems(&wanted.files(), &files.root);
        out.0.extend(problems.into_iter().map(|problem| python::diagnostic(problem, &files.root)));
        out.0.extend(wanted.unverified(&found.assumed, &files.root));
    }
}

/// Reads the headers of all agents, with models by their own names instead of the user's aliases.
fn read_agents(files: &mut Files, catalog: &dyn Catalog, out: &mut Diagnostics) -> Headers {
    files.own.allowed_secrets.extend_from_slice(catalog.allowed_secret_files());
    let mut headers = read_headers(std::mem::take(&mut files.agents), out);
    if let Some(model) = files.manifest.as_mut().and_then(|file| file.manifest.model.as_mut()) {
        expand_alias(model, catalog);
    }
    headers.agents.iter_mut().for_each(|agent| agent.expand_aliases(catalog));
    headers
}

fn expand_alias(model: &mut String, catalog: &dyn Catalog) {
    if let Some(named) = catalog.alias(model) {
        *model = named.to_owned();
    }
}

/// Refuses powers that nobody agreed to: the files were changed between the question and this reading of them.
fn check_agreed(powers: &Powers, agreed: Option<&Powers>, root: &Path, out: &mut Diagnostics) -> Option<()> {
    let agreed = agreed.map(Powers::to_vec);
    if agreed.is_some_and(|agreed| !powers.beyond(&agreed).is_empty()) {
        let message = "the files of the project changed while it was read, and want more than was shown";
        out.push(
            Diagnostic::error(root, message).with_hint("look at them with `llm-do check`, and run it again"),
        );
        return None;
    }
    Some(())
}

/// Checks everything that can be checked before code is run, and returns the powers of the project.
fn check_before(
    files: &Files,
    headers: &Headers,
    wanted: &Wanted,
    catalog: &dyn Catalog,
    out: &mut Diagnostics,
) -> Option<Powers> {
    let mut beforehand = Diagnostics::default();
    let found = parts(files, headers, KnownCode::Unrun(wanted), catalog, &mut beforehand);
    if beforehand.has_errors() || out.has_errors() {
        beforehand.0.into_iter().for_each(|diagnostic| out.push(diagnostic));
        return None;
    }
    Some(found.powers)
}

/// Links the parts of a project to a whole.
fn linked(
    files: Files,
    headers: &Headers,
    known: KnownCode<'_>,
    code: Option<Arc<Code>>,
    catalog: &dyn Catalog,
    out: &mut Diagnostics,
) -> Option<LoadedProject> {
    let parts = parts(&files, headers, known, catalog, out);
    if out.has_errors() {
        return None;
    }
    let agents = &headers.agents;
    let project = parts.builder.build().map_err(|errors| report(&errors, agents, &files.root, out)).ok()?;
    // Tools of code that is not run are missing here, and may be the ones that are meant.
    if !known.is_withheld() {
        model_settings::check_tool_choices(&project, agents, out);
    }
    let checked: Vec<CheckedAgent<'_>> = agents.iter().map(checked).collect();
    offered::check(&project, &checked, files.manifest.as_ref().map(|file| &file.manifest), out);
    if out.has_errors() {
        return None;
    }
    let notices = std::mem::take(out);
    let entry = parts.entry?;
    let program = agents.iter().find(|agent| entry == agent.header.name.as_str());
    let program = program.and_then(|agent| agent.file.program.clone()).unwrap_or_default();
    let mut loaded = loaded(project, entry, files, code, parts.settings, notices, catalog.shared());
    let input = program.input.map(|input| Map::from_iter([("input".to_owned(), input.into())]));
    loaded.args = loaded.args.or(input);
    loaded.demo = program.demo;
    loaded.powers = parts.powers;
    loaded.unseen = parts.assumed;
    Some(loaded)
}

/// What a project is built from.
struct ProjectParts {
    builder: ProjectBuilder,
    entry: Option<Name>,
    settings: RunSettings,
    /// Names that code must define, which was not run yet.
    assumed: Vec<String>,
    /// What the project does without a question.
    powers: Powers,
}

/// Reads the parts of a project. Problems are said, and what is wrong is left out.
fn parts(
    files: &Files,
    headers: &Headers,
    code: KnownCode<'_>,
    catalog: &dyn Catalog,
    out: &mut Diagnostics,
) -> ProjectParts {
    let Headers { agents, unread } = headers;
    let manifest = files.manifest.as_ref();
    check_names(agents, catalog, out);
    embedding_program::check(agents, catalog, &files.root, out);
    python::check_names(code, agents, manifest, catalog, out);
    // Without its manifest nobody can say what a project starts with.
    let start = if files.broken_manifest { None } else { find_entry(files, agents, unread, code, out) };
    let models = ModelNames::new(manifest, code, catalog, &files.root);
    let settings = manifest.map(|file| check_manifest(file, code, catalog, &models, &files.root, out));
    let linked = programs::by_file(agents);
    let listed = Listed { manifest, root: &files.root, files: &files.own, code, linked: &linked };
    let mut toolsets = Toolsets::new(listed, agents, unread, catalog, out);
    let mut specs = add_agents(agents, listed, &models, &mut toolsets, out);
    specs.extend(code_agents(files, agents, listed, &models, &mut toolsets, out));
    check_agent_names(manifest, agents, unread, code, out);
    let function = match code {
        KnownCode::Withheld(wanted) => wanted.entry_without_code(),
        code => code.defined().and_then(|code| python::entry(code, agents)),
    };
    let function = function.filter(|_| start == Some(Entry::Function));
    let entry = entry_name(start.as_ref(), function.as_ref());
    let input = function.as_ref().map(|function| python::input_of(&function.value));
    check_args(manifest, entry.as_ref(), input.as_ref(), &specs, out);
    let powers = powers::powers(files, agents, &specs, &toolsets, catalog);
    let mut assumed: Vec<String> = toolsets.take_assumed();
    assumed.extend(models.take_assumed());
    let empty =
        if code.is_withheld() { Project::builder().with_unchecked_rules() } else { Project::builder() };
    let builder = specs.into_iter().fold(empty, ProjectBuilder::agent);
    let builder = toolsets.shared().fold(builder, ProjectBuilder::shared_toolset);
    let builder = catalog.program_tools().iter().cloned().fold(builder, ProjectBuilder::tool);
    let builder = catalog.program_entries().iter().cloned().fold(builder, ProjectBuilder::entry);
    let builder = python::tools(code).fold(builder, ProjectBuilder::tool);
    let builder = function.into_iter().fold(builder, |builder, entry| builder.entry(entry.value));
    let builder = match manifest.and_then(|file| file.manifest.model.as_deref()) {
        Some(model) => builder.model(model),
        None => builder,
    };
    ProjectParts { builder, entry, settings: settings.unwrap_or_default(), assumed, powers }
}

fn entry_name(start: Option<&Entry>, function: Option<&Defined<EntrySpec>>) -> Option<Name> {
    match start? {
        Entry::Agent(name) => Some(name.clone()),
        Entry::Function => function.map(|function| function.value.name().clone()),
    }
}

/// Agents that code defines: their toolsets are looked up as those of files are.
fn code_agents(
    files: &Files,
    agents: &[Agent],
    project: Listed<'_>,
    models: &ModelNames<'_>,
    toolsets: &mut Toolsets<'_>,
    out: &mut Diagnostics,
) -> Vec<AgentSpec> {
    let Some(code) = project.code.defined() else { return Vec::new() };
    let mut specs: Vec<AgentSpec> = code.agents.iter().map(|agent| agent.value.clone()).collect();
    let names: Vec<&str> = agents.iter().map(|agent| agent.header.name.as_str()).collect();
    files.code_changes.apply_to_code_agents(&mut specs, &names, out);
    for (agent, spec) in code.agents.iter().zip(&mut specs) {
        let model = spec.model.as_ref().map(|model| model.name().to_string());
        let problems = toolsets.problems_of(spec).into_iter();
        for (message, hint) in problems.chain(model.and_then(|model| models.problem(&model))) {
            let message = format!("agent `{}`: {message}", spec.name);
            let diagnostic = python::at(&agent.place, message);
            out.push(hint.into_iter().fold(diagnostic, Diagnostic::with_hint));
        }
        let descriptors = toolsets.descriptors_for(spec);
        spec.toolsets.extend(descriptors);
    }
    specs
}

/// Reads all agents. Problems are said, and what is wrong is left out.
fn add_agents(
    agents: &[Agent],
    project: Listed<'_>,
    models: &ModelNames<'_>,
    toolsets: &mut Toolsets<'_>,
    out: &mut Diagnostics,
) -> Vec<AgentSpec> {
    let mut specs = Vec::new();
    let (mut patterns, mut preloaded) = (0, 0);
    for agent in agents {
        preloaded += agent.header.preload.len();
        if preloaded > MAX_PRELOADED {
            let message = format!("the agents up to here preload more than {MAX_PRELOADED} files");
            let place = place_of(&agent.file.header, "preload");
            out.push(Diagnostic::at(&agent.file.source, &place, message).with_hint("preload fewer files"));
            break;
        }
        models.check_agent(agent, out);
        let spec = agent_spec(agent, project, toolsets, out);
        patterns += spec.approval.len() + spec.manual_only.len();
        patterns += spec.agents.len() + spec.compatible_models.len() + spec.tuning.models.len();
        check_patterns(patterns, agent, out);
        specs.push(spec);
    }
    specs
}

/// Puts together what was linked and what the manifest says besides.
fn loaded(
    project: Project,
    entry: Name,
    files: Files,
    code: Option<Arc<Code>>,
    settings: RunSettings,
    notices: Diagnostics,
    catalog: Arc<dyn Catalog>,
) -> LoadedProject {
    let mut loaded = LoadedProject {
        project,
        entry,
        args: None,
        allow_cli_input: true,
        root: files.root,
        model: None,
        providers: BTreeMap::new(),
        model_overrides: Vec::new(),
        mcp_servers: BTreeMap::new(),
        demo: Vec::new(),
        notices,
        powers: Powers::default(),
        unseen: Vec::new(),
        settings,
        context: BTreeMap::new(),
        manifest: None,
        generated: files.generated,
        files: files.own,
        code,
        code_files: files.python,
        catalog,
    };
    if let Some(file) = files.manifest {
        let manifest = file.manifest.clone();
        loaded.args = manifest.entry.args;
        loaded.allow_cli_input = manifest.allow_cli_input;
        loaded.model = manifest.model;
        loaded.providers = manifest.providers;
        loaded.model_overrides = model_overrides(manifest.models);
        loaded.mcp_servers = manifest.mcp_servers;
        loaded.context = manifest.context;
        loaded.manifest = Some(Arc::new(file));
    }
    loaded
}

fn model_overrides(sections: Vec<(String, ModelSection)>) -> Vec<ModelOverride> {
    let of_section = |(pattern, ModelSection { price, profile })| ModelOverride { pattern, price, profile };
    sections.into_iter().map(of_section).collect()
}

/// How many patterns the agents of a project have together: each is compiled, which takes time and memory.
const MAX_PATTERNS: usize = 10_000;

/// How many files the agents of a project preload together: each is looked at when the project is loaded.
const MAX_PRELOADED: usize = 1_000;

fn check_patterns(count: usize, agent: &Agent, out: &mut Diagnostics) {
    if count > MAX_PATTERNS {
        let message = format!("the agents up to here have more than {MAX_PATTERNS} rules and patterns");
        let hint = "write fewer under `approval`, `manual_only`, `agents` and `compatible_models`";
        out.push(
            Diagnostic::at(&agent.file.source, &place_of(&agent.file.header, "name"), message)
                .with_hint(hint),
        );
    }
}

/// Checks the parts of a manifest that stand for themselves, and reads what it says about runs.
fn check_manifest(
    file: &ManifestFile,
    code: KnownCode<'_>,
    catalog: &dyn Catalog,
    models: &ModelNames<'_>,
    root: &Path,
    out: &mut Diagnostics,
) -> RunSettings {
    providers::check(file, catalog, out);
    models.check_manifest(file, out);
    models.check_patterns(file, out);
    attachment_policy::check_manifest(file, root, out);
    check_sections(file, catalog, out);
    python::notice_settings(file, code, out);
    run_settings(file, out)
}

/// Checks the names of agents in `agents` and in the policy for calls: a misspelled one would apply to nobody.
pub(crate) fn check_agent_names(
    manifest: Option<&ManifestFile>,
    agents: &[Agent],
    unread: &[String],
    code: KnownCode<'_>,
    out: &mut Diagnostics,
) {
    if code.may_define() {
        return;
    }
    let known: HashSet<&str> = agents
        .iter()
        .map(|agent| agent.header.name.as_str())
        .chain(unread.iter().map(String::as_str))
        .chain(code.agents().map(Name::as_str))
        .collect();
    let unknown = |name: &str| {
        let is_plain = Name::is_valid(name);
        (is_plain && !known.contains(name)).then(|| {
            let mut known: Vec<&str> = known.iter().copied().collect();
            known.sort_unstable();
            meant(name, known)
        })
    };
    for agent in agents {
        for name in &agent.header.agents {
            if let Some(hint) = unknown(name) {
                let place = entry_place(&agent.file.header, "agents", name);
                // It may be created later, by another agent or by code.
                let message = format!("`agents` names `{name}`, and there is no such agent yet");
                out.push(Diagnostic::at(&agent.file.source, &place, message).with_hint(hint).notice());
            }
        }
    }
    let Some(file) = manifest else { return };
    for name in file.manifest.runtime.agent_approval_overrides.keys() {
        if !known.contains(name.as_str()) {
            let place = file
                .node
                .field("runtime")
                .map_or(0..0, |runtime| entry_place(&runtime.value, "agent_approval_overrides", name));
            let message = format!("`agent_approval_overrides` names `{name}`, and there is no such agent");
            let hint = unknown(name).unwrap_or_else(|| "name an agent of this project".to_owned());
            out.push(Diagnostic::at(&file.source, &place, message).with_hint(hint));
        }
    }
}

/// Checks the arguments of the entry against its schema.
fn check_args(
    manifest: Option<&ManifestFile>,
    entry: Option<&Name>,
    input: Option<&Schema>,
    specs: &[AgentSpec],
    out: &mut Diagnostics,
) {
    let (Some(file), Some(entry)) = (manifest, entry) else { return };
    let Some(args) = &file.manifest.entry.args else { return };
    let agent = specs.iter().find(|spec| spec.name == *entry);
    let Some(schema) = input.or_else(|| agent.and_then(|spec| spec.input.as_ref())) else { return };
    let place = file.node.field("entry").map_or(0..0, |entry| place_of(&entry.value, "args"));
    for problem in schema.accept(Value::Object(args.clone())).err().into_iter().flatten() {
        let message = format!("`entry.args` does not fit the input of `{entry}`: {problem}");
        out.push(Diagnostic::at(&file.source, &place, message));
    }
}

/// What the runtime refuses to link, at the key of the agent that it is about.
fn report(errors: &LinkErrors, agents: &[Agent], root: &Path, out: &mut Diagnostics) {
    for error in &errors.0 {
        if out.is_full() {
            return;
        }
        let about = match error {
            LinkError::Unknown { agent, what: "approval rule", .. } => Some((agent, "approval")),
            LinkError::Unknown { agent, what: "manual-only tool", .. } => Some((agent, "manual_only")),
            LinkError::Unknown { agent, what: "changed tool" | "parameter", .. } => Some((agent, "tools")),
            LinkError::Collision { agent, name, .. } if is_alias(agents, agent, name) => {
                Some((agent, "tools"))
            }
            LinkError::BadGlob { agent, .. } => Some((agent, glob_key(agents, agent))),
            LinkError::Unknown { agent, .. }
            | LinkError::Collision { agent, .. }
            | LinkError::ReservedName { agent, .. } => Some((agent, "toolsets")),
            _ => None,
        };
        let found = about.and_then(|(name, key)| {
            agents.iter().find(|agent| agent.header.name == name.as_str()).map(|agent| (agent, key))
        });
        let diagnostic = match found {
            Some((agent, key)) => {
                let place = place_of(&agent.file.header, key);
                Diagnostic::at(&agent.file.source, &place, error.to_string())
            }
            None => Diagnostic::error(root, error.to_string()),
        };
        out.push(match error.hint() {
            Some(hint) => diagnostic.with_hint(hint),
            None => diagnostic,
        });
    }
}

/// Returns whether an agent gives a tool that name.
fn is_alias(agents: &[Agent], agent: &Name, name: &Name) -> bool {
    let found = agents.iter().find(|found| found.header.name == agent.as_str());
    let is_alias = |entry: &ToolEntry| match entry {
        ToolEntry::Changed(section) => section.alias.as_deref() == Some(name.as_str()),
        ToolEntry::Name(_) => false,
    };
    found.is_some_and(|agent| agent.header.tools.iter().any(is_alias))
}

/// The key of an agent in which a glob cannot be read.
fn glob_key(agents: &[Agent], name: &Name) -> &'static str {
    let Some(agent) = agents.iter().find(|agent| agent.header.name == name.as_str()) else {
        return "approval";
    };
    let is_bad = |glob: &String| glob.len() > MAX_GLOB_LEN || GlobBuilder::new(glob).build().is_err();
    match &agent.header {
        header if header.agents.iter().any(is_bad) => "agents",
        header if header.manual_only.iter().any(is_bad) => "manual_only",
        _ => "approval",
    }
}

/// The agents of a project, and the names of those whose header is wrong: they exist, and it is said already
/// what is wrong with them.
struct Headers {
    agents: Vec<Agent>,
    unread: Vec<String>,
}

fn read_headers(files: Vec<AgentFile>, out: &mut Diagnostics) -> Headers {
    let mut headers = Headers { agents: Vec::new(), unread: Vec::new() };
    for file in files {
        match schema::read(&file.source, &file.header, out) {
            Some(header) => headers.agents.push(Agent { file, header }),
            None => headers.unread.extend(file.written_name().map(str::to_owned)),
        }
    }
    headers
}

pub(crate) fn check_names(agents: &[Agent], catalog: &dyn Catalog, out: &mut Diagnostics) {
    let built_in = catalog.toolsets();
    let of_program = |name: &str| catalog.program_toolsets().iter().any(|toolset| *toolset.name() == name);
    let mut earlier: HashMap<&str, &Agent> = HashMap::new();
    for agent in agents {
        let (name, source) = (agent.header.name.as_str(), &agent.file.source);
        let place = place_of(&agent.file.header, "name");
        if let Some(earlier) = earlier.insert(name, agent) {
            let message =
                format!("the agent name `{name}` is already used by {}", earlier.file.source.path.display());
            out.push(Diagnostic::at(source, &place, message).with_hint("rename one of them"));
        }
        if built_in.contains(&name) {
            let message = format!("the agent name `{name}` is the name of a built-in toolset");
            out.push(Diagnostic::at(source, &place, message).with_hint("rename the agent"));
        }
        if of_program(name) {
            let message = format!("the agent name `{name}` is the name of a toolset of the program");
            out.push(Diagnostic::at(source, &place, message).with_hint("rename the agent"));
        }
    }
}

/// Reads one agent. Problems are said, and what is wrong is left out.
pub(crate) fn agent_spec(
    agent: &Agent,
    project: Listed<'_>,
    toolsets: &mut Toolsets<'_>,
    out: &mut Diagnostics,
) -> AgentSpec {
    let header = &agent.header;
    let mut spec = AgentSpec::new(header.name.as_str(), agent.file.instructions.clone());
    spec.description = header.description.clone().unwrap_or_default();
    spec.model = header.model.as_deref().map(Into::into);
    spec.compatible_models = compatible_models(agent, out);
    spec.fallback_models = header.fallback_models.iter().map(|model| model.as_str().into()).collect();
    spec.settings = header.model_settings.clone().unwrap_or_default();
    spec.access = header.access.map_or(Access::Admin, access);
    spec.limits = header.limits.as_ref().map(LimitsSection::limits).unwrap_or_default();
    spec.agents = header.agents.clone();
    spec.generated = agent.is_generated();
    spec.locked = header.locked;
    spec.server_tools = header.server_side_tools.clone();
    spec.manual_only = header.manual_only.clone();
    spec.approval = header.approval.iter().map(|(pattern, level)| rule(pattern, *level)).collect();
    let general = project.manifest.and_then(|file| file.manifest.runtime.attachment_policy.as_ref());
    spec.attachment_policy = attachment_policy::policy(header.attachment_policy.as_ref(), general);
    add_schemas(agent, project, toolsets.catalog(), &mut spec, out);
    add_templates(agent, project, &mut spec, out);
    model_settings::check(agent, out);
    offered::check_server_tools(checked(agent), out);
    attachment_policy::check_agent(agent, out);
    spec.programs = programs::programs(agent, project.linked, out);
    spec.descriptors = descriptors(header.file_descriptors.as_ref());
    toolsets.add_to(agent, &mut spec, out);
    spec.preamble = preamble::preamble(agent, project.root, project.files, toolsets.catalog(), out);
    spec.tuning = tuning::tuning(agent, out);
    notice_later_keys(agent, out);
    spec
}

fn compatible_models(agent: &Agent, out: &mut Diagnostics) -> Vec<String> {
    let Some(globs) = &agent.header.compatible_models else { return Vec::new() };
    let place = place_of(&agent.file.header, "compatible_models");
    let mut refuse = |message: String, hint: &str| {
        out.push(Diagnostic::at(&agent.file.source, &place, message).with_hint(hint));
        !out.is_full()
    };
    if globs.is_empty() {
        refuse("`compatible_models` is empty, so no model fits".to_owned(), "write `[\"*\"]` for any model");
    }
    if agent.header.model.is_some() {
        refuse("`compatible_models` says nothing beside `model`".to_owned(), "keep one of them");
    }
    for glob in globs {
        let problem = match GlobBuilder::new(glob).build() {
            _ if glob.len() > MAX_GLOB_LEN => format!("it has more than {MAX_GLOB_LEN} bytes"),
            Err(error) => error.kind().to_string(),
            Ok(_) => continue,
        };
        let message = format!("`compatible_models`: `{glob}` is not a glob: {problem}");
        if !refuse(message, "write names with `*`, such as `anthropic:claude-*`") {
            break;
        }
    }
    globs.clone()
}

fn add_schemas(
    agent: &Agent,
    project: Listed<'_>,
    catalog: &dyn Catalog,
    spec: &mut AgentSpec,
    out: &mut Diagnostics,
) {
    let header = &agent.header;
    if header.input_model_ref.is_some() && header.input_schema.is_some() {
        let place = place_of(&agent.file.header, "input_schema");
        let message = "`input_schema` and `input_model_ref` exclude each other";
        out.push(Diagnostic::at(&agent.file.source, &place, message).with_hint("keep one of them"));
    }
    let AgentFile { source, header: node, .. } = &agent.file;
    let input = header.input_schema.as_ref().map(|schema| input_schema::object(source, node, schema, out));
    spec.input = schema(agent, "input_schema", input.as_ref(), out);
    if let Some(OutputSchema::Inline(inline)) = &header.output_schema {
        spec.output = schema(agent, "output_schema", Some(inline), out);
    }
    if let Some(given) = embedding_program::input_of(agent, catalog, out) {
        (spec.input, spec.prompt) = (Some(given.schema.clone()), Some(given.prompt.clone()));
    }
    for (key, reference, purpose) in header.classes() {
        let wanted = python::class_of(agent, key, reference, purpose, project.root, out);
        let Some(class) = wanted.and_then(|wanted| project.code.class(&wanted)) else { continue };
        match purpose {
            ClassPurpose::Input => {
                (spec.input, spec.prompt) = (Some(class.schema.clone()), class.prompt.clone())
            }
            ClassPurpose::Output => spec.output = Some(class.schema.clone()),
        }
    }
}

fn schema(
    agent: &Agent,
    key: &str,
    schema: Option<&Map<String, Value>>,
    out: &mut Diagnostics,
) -> Option<Schema> {
    let result = Schema::new(Value::Object(schema?.clone()));
    let place = place_of(&agent.file.header, key);
    result
        .map_err(|error| out.push(Diagnostic::at(&agent.file.source, &place, format!("`{key}` is {error}"))))
        .ok()
}

fn add_templates(agent: &Agent, project: Listed<'_>, spec: &mut AgentSpec, out: &mut Diagnostics) {
    let (header, code) = (&agent.header, project.code);
    let limit = project.manifest.and_then(|file| file.manifest.runtime.max_template_bytes);
    let limit = limit.unwrap_or(DEFAULT_TEMPLATE_BYTES);
    // What the fields are is unknown until the code was run, or if the reference is wrong, which is reported.
    if header.input_model_ref.is_some() && (code.has_not_run() || spec.input.is_none()) {
        return;
    }
    let of_class = spec.input.as_ref().and_then(|input| input.source().as_object().cloned());
    let schema = header.input_schema.as_ref().or(of_class.as_ref());
    let source = &agent.file.source;
    if let Some(prompt) = &header.prompt {
        match template::compile("prompt", prompt, schema) {
            Ok(prompt) => spec.prompt = Some(prompt.max_bytes(limit).into()),
            Err(problem) => {
                out.push(problem.at(source, &place_of(&agent.file.header, "prompt")));
            }
        }
    }
    if header.template {
        match template::compile("the instructions", &agent.file.instructions, schema) {
            Ok(template) => spec.template = Some(template.max_bytes(limit)),
            Err(problem) => {
                out.push(problem.at(source, &place_of(&agent.file.header, "template")));
            }
        }
    }
}

/// Keys that are part of the format and wait for what they are about.
fn notice_later_keys(agent: &Agent, out: &mut Diagnostics) {
    if !agent.header.tests.is_empty() {
        let place = place_of(&agent.file.header, "tests");
        out.push(Diagnostic::without_effect(&agent.file.source, &place, "tests"));
    }
}

/// What becomes of texts that are too long: what is written, over the usual.
fn descriptors(written: Option<&FileDescriptors>) -> DescriptorSettings {
    let usual = DescriptorSettings::default();
    match written {
        None => usual,
        Some(FileDescriptors::Enabled(enabled)) => DescriptorSettings { enabled: *enabled, ..usual },
        Some(FileDescriptors::Section(section)) => DescriptorSettings {
            enabled: section.enabled.unwrap_or(usual.enabled),
            limit: section.limit.unwrap_or(usual.limit),
            page_size: section.page_size.unwrap_or(usual.page_size),
            input_limit: section.input_limit.or(usual.input_limit),
            page_user_input: section.page_user_input.unwrap_or(usual.page_user_input),
            references: section.references.unwrap_or(usual.references),
            most: usual.most,
        },
    }
}

fn rule(pattern: &str, level: Level) -> ApprovalRule {
    let approval = match level {
        Level::PreApproved => Approval::PreApproved,
        Level::Ask => Approval::Ask,
        Level::Blocked => Approval::Blocked,
    };
    ApprovalRule { pattern: pattern.to_owned(), approval }
}

pub(crate) fn access(level: AccessLevel) -> Access {
    match level {
        AccessLevel::Read => Access::Read,
        AccessLevel::Write => Access::Write,
        AccessLevel::Admin => Access::Admin,
    }
}
