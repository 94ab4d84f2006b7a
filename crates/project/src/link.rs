//! Links the files of a project by name into a frozen [`Project`], or reports everything that is wrong.

mod agents;
mod assumed;
mod embedding_program;
mod entry;
mod errors;
mod model_names;
mod names;
mod offered;
mod parts;
mod powers;
mod programs;
mod providers;
mod python;
mod restricted;
mod template;
mod tool_choice;
mod toolsets;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use llm_do_core::{ModelOverride, Name};
use llm_do_runtime::Project;
use llm_do_trust::Powers;
use serde_json::Map;

use crate::bundle::DefiningFiles;
use crate::catalog::Catalog;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::format::front_matter::HeaderDocument;
use crate::format::manifest::ModelSection;
use crate::format::run_settings::RunSettings;
use crate::loaded::LoadedProject;
use crate::read::Files;
use crate::read::agent::{Agent, Headers, read_headers};

pub(crate) use agents::agent_spec;
pub(crate) use model_names::{ModelNames, expand_aliases};
pub(crate) use names::{check_agent_names, check_names};
pub(crate) use programs::LinkedAgents;
pub(crate) use python::KnownCode;
pub(crate) use toolsets::{Listed, Toolsets};

use errors::report;
use model_names::expand_alias;
use parts::parts;
use python::Wanted;

/// Links files. No code of a project is run before everything else about it was checked, and before its powers were
/// found to be among the agreed ones, if there is an agreement.
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
        out.push(notice.clone().into_diagnostic(Severity::Notice, &files.root));
    }
    let known = KnownCode::run(&code, &wanted);
    files.python = wanted.files();
    linked(files, &headers, known, Some(code.clone()), catalog, out)
}

/// Collects what the project wants of Python. Every file that is run decides what the project does, also one that
/// only an agent names for a class.
fn wanted_code(files: &mut Files, agents: &[Agent]) -> Wanted {
    let wanted = Wanted::collect(files, agents);
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
        let message = format!("the project cannot run without this power: {}", left.power);
        let hint = "inspect the project with `llm-do check`, then trust it with `llm-do trust`";
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
        out.0.extend(
            problems.into_iter().map(|problem| problem.into_diagnostic(Severity::Error, &files.root)),
        );
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
    headers.agents.iter_mut().for_each(|agent| expand_aliases(agent, catalog));
    headers
}

/// Refuses powers that nobody agreed to: the files were changed between the question and this reading of them.
fn check_agreed(powers: &Powers, agreed: Option<&Powers>, root: &Path, out: &mut Diagnostics) -> Option<()> {
    let agreed = agreed.map(Powers::to_vec);
    if agreed.is_some_and(|agreed| !powers.beyond(&agreed).is_empty()) {
        let message = "the project's files changed while they were read, and now ask for more than was shown";
        out.push(
            Diagnostic::error(root, message).with_hint("inspect them with `llm-do check`, then run it again"),
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
    let documents: Vec<HeaderDocument<'_>> = agents.iter().map(Agent::document).collect();
    if !known.is_withheld() {
        tool_choice::check(&project, &documents, out);
    }
    offered::check(&project, &documents, files.manifest.as_ref().map(|file| &file.manifest), out);
    if out.has_errors() {
        return None;
    }
    let notices = std::mem::take(out);
    let entry = parts.entry?;
    let program = agents.iter().find(|agent| entry == agent.header.name.as_str());
    let program = program.and_then(|agent| agent.file.program.clone()).unwrap_or_default();
    let defining = DefiningFiles::new(&files, agents);
    let mut loaded = loaded(project, entry, files, code, parts.settings, notices, catalog.shared());
    loaded.defining = defining;
    let input = program.input.map(|input| Map::from_iter([("input".to_owned(), input.into())]));
    loaded.args = loaded.args.or(input);
    loaded.demo = program.demo;
    loaded.powers = parts.powers;
    loaded.unseen = parts.assumed.into_iter().map(|assumed| assumed.what).collect();
    Some(loaded)
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
        defining: DefiningFiles::default(),
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
