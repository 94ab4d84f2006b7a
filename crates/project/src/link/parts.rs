//! Links the parts of a project: its manifest, agents, toolsets, entry and powers.

use std::path::Path;

use llm_do_core::{AgentSpec, Name, Schema};
use llm_do_runtime::{EntrySpec, Project, ProjectBuilder};
use llm_do_trust::Powers;
use serde_json::Value;

use super::assumed::AssumedName;
use super::entry::{EntryPoint, find_entry};
use super::toolsets::check_sections;
use super::{
    KnownCode, Listed, ModelNames, Toolsets, agent_spec, check_agent_names, check_names, embedding_program,
    powers, programs, providers, python,
};
use crate::catalog::Catalog;
use crate::code::Defined;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::span_of;
use crate::format::attachment_policy;
use crate::format::manifest::ManifestFile;
use crate::format::run_settings::{RunSettings, run_settings};
use crate::read::Files;
use crate::read::agent::{Agent, Headers};
use crate::source::Span;

/// What a project is built from.
pub(super) struct ProjectParts {
    pub(super) builder: ProjectBuilder,
    pub(super) entry: Option<Name>,
    pub(super) settings: RunSettings,
    /// Names that code must define, which was not run yet.
    pub(super) assumed: Vec<AssumedName>,
    /// What the project does without a question.
    pub(super) powers: Powers,
}

/// Reads the parts of a project. Problems are said, and what is wrong is left out.
pub(super) fn parts(
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
    let function = function.filter(|_| start == Some(EntryPoint::Function));
    let entry = entry_name(start.as_ref(), function.as_ref());
    let input = function.as_ref().map(|function| python::input_of(&function.value));
    check_args(manifest, entry.as_ref(), input.as_ref(), &specs, out);
    let powers = powers::powers(files, agents, &specs, &toolsets, catalog);
    let mut assumed: Vec<AssumedName> =
        start.iter().filter_map(|start| assumed_entry(start, agents, code)).collect();
    assumed.extend(toolsets.take_assumed());
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

/// The entry, if it is an agent that only code can define.
fn assumed_entry(start: &EntryPoint, agents: &[Agent], code: KnownCode<'_>) -> Option<AssumedName> {
    let EntryPoint::Agent(name) = start else { return None };
    let known: Vec<(&str, &str)> = agents.iter().map(|agent| ("agent", agent.header.name.as_str())).collect();
    let is_known = known.iter().any(|(_, known)| *name == **known);
    (code.may_define() && !is_known).then(|| AssumedName::with_near("agent", name, &known))
}

fn entry_name(start: Option<&EntryPoint>, function: Option<&Defined<EntrySpec>>) -> Option<Name> {
    match start? {
        EntryPoint::Agent(name) => Some(name.clone()),
        EntryPoint::Function => function.map(|function| function.value.name().clone()),
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
            let diagnostic = agent.location.diagnostic(message);
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
            let message = format!("the agents so far preload more than {MAX_PRELOADED} files");
            let span = span_of(&agent.file.header, "preload");
            out.push(
                Diagnostic::error_at(&agent.file.source, &span, message).with_hint("preload fewer files"),
            );
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

/// How many patterns the agents of a project have together: each is compiled, which takes time and memory.
const MAX_PATTERNS: usize = 10_000;

/// How many files the agents of a project preload together: each is looked at when the project is loaded.
const MAX_PRELOADED: usize = 1_000;

fn check_patterns(count: usize, agent: &Agent, out: &mut Diagnostics) {
    if count > MAX_PATTERNS {
        let message = format!("the agents so far have more than {MAX_PATTERNS} rules and patterns");
        let hint = "write fewer under `approval`, `manual_only`, `agents` and `compatible_models`";
        out.push(
            Diagnostic::error_at(&agent.file.source, &span_of(&agent.file.header, "name"), message)
                .with_hint(hint),
        );
    }
}

/// Checks the parts of a manifest that do not depend on agents, and reads its settings of runs.
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
    let span = file.node.field("entry").map_or(Span::START, |entry| span_of(&entry.value, "args"));
    for problem in schema.accept(Value::Object(args.clone())).err().into_iter().flatten() {
        let message = format!("`entry.args` does not fit the input of `{entry}`: {problem}");
        out.push(Diagnostic::error_at(&file.source, &span, message));
    }
}
