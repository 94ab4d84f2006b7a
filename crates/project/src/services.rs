//! Checks what a manifest says about the world outside: MCP servers, providers, models.

use std::path::Path;

use llm_do_core::{Name, nearest};

use crate::catalogue::Catalogue;
use crate::check::several;
use crate::diagnostic::{Diagnostic, Diagnostics, Source};
use crate::document::{entry_place, place_of};
use crate::link::Agent;
use crate::load::ManifestFile;
use crate::manifest::{McpServer, Provider};

/// Checks servers and providers of a manifest.
pub(crate) fn check(file: &ManifestFile, catalogue: &dyn Catalogue, out: &mut Diagnostics) {
    for (name, server) in &file.manifest.mcp_servers {
        if out.is_full() {
            return;
        }
        let place = entry_place(&file.node, "mcp_servers", name);
        for problem in server_problems(name, server, catalogue) {
            out.push(Diagnostic::at(&file.source, &place, format!("MCP server `{name}`: {problem}")));
        }
    }
    if !file.manifest.mcp_servers.is_empty() {
        let place = place_of(&file.node, "mcp_servers");
        out.push(Diagnostic::without_effect(&file.source, &place, "mcp_servers"));
    }
    for (name, provider) in &file.manifest.providers {
        if out.is_full() {
            return;
        }
        let place = entry_place(&file.node, "providers", name);
        for problem in provider_problems(name, provider, catalogue) {
            out.push(Diagnostic::at(&file.source, &place, format!("provider `{name}`: {problem}")));
        }
    }
}

fn server_problems(name: &str, server: &McpServer, catalogue: &dyn Catalogue) -> Vec<String> {
    let mut problems = Vec::new();
    if !Name::is_valid(name) {
        problems.push("the name may have letters, digits, `_` and `-`".to_owned());
    }
    match (&server.command, &server.url) {
        (Some(_), Some(_)) => problems.push("`command` and `url` exclude each other".to_owned()),
        (None, None) => problems.push("it needs a `command` to start, or a `url`".to_owned()),
        (Some(command), None) if command.trim().is_empty() => problems.push("`command` is empty".to_owned()),
        (Some(command), None) if !catalogue.has_program(command) => {
            problems.push(format!("the program `{command}` was not found"));
        }
        (None, Some(url)) if !is_address(url) => problems.push(format!("`{url}` is no http address")),
        _ => {}
    }
    if server.command.is_none() && !(server.args.is_empty() && server.env.is_empty() && server.cwd.is_none())
    {
        problems.push("`args`, `env` and `cwd` belong to a `command`".to_owned());
    }
    if server.url.is_none() && !server.headers.is_empty() {
        problems.push("`headers` belong to a `url`".to_owned());
    }
    problems
}

fn provider_problems(name: &str, provider: &Provider, catalogue: &dyn Catalogue) -> Vec<String> {
    let mut problems = Vec::new();
    let protocols = catalogue.protocols();
    if catalogue.providers().contains(&name) {
        problems.push("this is the name of a built-in provider".to_owned());
    }
    if name.is_empty() || name.contains([':', '/', ' ']) {
        problems.push("a provider's name has no `:`, `/` or blanks".to_owned());
    }
    if !protocols.is_empty() && !protocols.contains(&provider.api.as_str()) {
        let meant = nearest(&provider.api, protocols.iter().copied());
        let hint = meant.map_or_else(
            || format!("expected one of {}", protocols.join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        problems.push(format!("`api` is `{}`; {hint}", provider.api));
    }
    if !is_address(&provider.base_url) {
        problems.push(format!("`base_url` is `{}`, expected an http address", provider.base_url));
    }
    problems
}

fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(char::is_whitespace))
}

/// Checks the providers of models before anything is asked.
pub(crate) struct ModelNames<'a> {
    known: Vec<&'a str>,
    catalogue: &'a dyn Catalogue,
    root: &'a Path,
}

impl<'a> ModelNames<'a> {
    /// The prefixes that are known: built-in ones and those of the manifest.
    pub(crate) fn new(
        manifest: Option<&'a ManifestFile>,
        catalogue: &'a dyn Catalogue,
        root: &'a Path,
    ) -> Self {
        let mut known = catalogue.providers();
        if !known.is_empty() {
            known.extend(
                manifest.into_iter().flat_map(|file| file.manifest.providers.keys().map(String::as_str)),
            );
        }
        Self { known, catalogue, root }
    }

    /// Checks the model of a manifest.
    pub(crate) fn check_manifest(&self, file: &ManifestFile, out: &mut Diagnostics) {
        if let Some(model) = &file.manifest.model {
            self.check(model, "the project", &file.source, &place_of(&file.node, "model"), out);
        }
    }

    /// Checks the models of an agent.
    pub(crate) fn check_agent(&self, agent: &Agent, out: &mut Diagnostics) {
        let owner = format!("agent `{}`", agent.header.name);
        let own = agent.header.model.iter().map(|model| ("model", model));
        let fallbacks = agent.header.fallback_models.iter().map(|model| ("fallback_models", model));
        for (key, model) in own.chain(fallbacks) {
            if out.is_full() {
                return;
            }
            let place = entry_place(&agent.file.header, key, model);
            self.check(model, &owner, &agent.file.source, &place, out);
        }
    }

    fn check(
        &self,
        model: &str,
        owner: &str,
        source: &Source,
        place: &std::ops::Range<usize>,
        out: &mut Diagnostics,
    ) {
        let provider = model.split([':', '/']).next().unwrap_or_default();
        if self.known.is_empty() || self.known.contains(&provider) {
            if let Some(problem) = self.catalogue.model_problem(model, self.root) {
                out.push(Diagnostic::at(
                    source,
                    place,
                    format!("{owner} names the model `{model}`: {problem}"),
                ));
            }
            return;
        }
        let hint = match nearest(provider, self.known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? known: {}", several(&self.known)),
            None => format!("known: {}; others are declared under `providers`", several(&self.known)),
        };
        let message = format!("{owner} names the model `{model}`, and there is no provider `{provider}`");
        out.push(Diagnostic::at(source, place, message).with_hint(hint));
    }
}
