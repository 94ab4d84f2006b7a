//! Checks what a manifest says about the world outside: MCP servers, providers, models.

use std::cell::RefCell;
use std::path::Path;

use globset::GlobBuilder;
use llm_do_core::{Name, nearest};

use crate::catalog::Catalog;
use crate::diagnostic::{Diagnostic, Diagnostics, Source};
use crate::document::{entry_place, place_of};
use crate::format::header_problem;
use crate::format::manifest::{McpServer, Provider};
use crate::format::schema::{meant, several};
use crate::link::Agent;
use crate::link::python::KnownCode;
use crate::read::ManifestFile;
use crate::read::listing::MAX_GLOB_LEN;

/// Checks servers and providers of a manifest.
pub(crate) fn check(file: &ManifestFile, catalog: &dyn Catalog, out: &mut Diagnostics) {
    for (name, server) in &file.manifest.mcp_servers {
        if out.is_full() {
            return;
        }
        let place = entry_place(&file.node, "mcp_servers", name);
        for problem in server_problems(name, server, catalog) {
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
        for problem in provider_problems(name, provider, catalog) {
            out.push(Diagnostic::at(&file.source, &place, format!("provider `{name}`: {problem}")));
        }
        for problem in provider.headers.iter().filter_map(|(name, value)| header_problem(name, value)) {
            let message = format!("provider `{name}`: {}", problem.message);
            out.push(Diagnostic::at(&file.source, &place, message).with_hint(problem.hint));
        }
    }
}

fn server_problems(name: &str, server: &McpServer, catalog: &dyn Catalog) -> Vec<String> {
    let mut problems = Vec::new();
    if !Name::is_valid(name) {
        problems.push("the name may have letters, digits, `_` and `-`".to_owned());
    }
    match (&server.command, &server.url) {
        (Some(_), Some(_)) => problems.push("`command` and `url` exclude each other".to_owned()),
        (None, None) => problems.push("it needs a `command` to start, or a `url`".to_owned()),
        (Some(command), None) if command.trim().is_empty() => problems.push("`command` is empty".to_owned()),
        (Some(command), None) if !catalog.has_program(command) => {
            problems.push(format!("the program `{command}` was not found"));
        }
        (None, Some(url)) if !is_address(url) => problems.push(format!("`{url}` is not an HTTP address")),
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

fn provider_problems(name: &str, provider: &Provider, catalog: &dyn Catalog) -> Vec<String> {
    let mut problems = Vec::new();
    let protocols = catalog.protocols();
    if catalog.providers().contains(&name) {
        problems
            .push("this is the name of a built-in provider, or of one in your own configuration".to_owned());
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
    } else if has_user(&provider.base_url) {
        problems.push("`base_url` holds a user name or password; keys come from the environment".to_owned());
    }
    if provider.api_key_env.as_deref().is_some_and(|variable| !is_variable(variable)) {
        // What was written may be the key itself, so it is not repeated.
        problems.push("`api_key_env` must be the name of a variable, not the key itself".to_owned());
    }
    problems
}

/// Returns whether an address has a part before `@`, which servers take for a user.
fn has_user(address: &str) -> bool {
    let host = address.split_once("://").map_or(address, |(_, rest)| rest);
    host.split(['/', '?', '#']).next().is_some_and(|host| host.contains('@'))
}

fn is_variable(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_part) && name.len() <= 200 && name.starts_with(|c: char| !c.is_ascii_digit())
}

fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(char::is_whitespace))
}

/// How many entries `models` has at most: each is compiled, which takes time and memory.
const MAX_MODELS: usize = 1_000;

/// Checks the providers of models before anything is asked.
pub(crate) struct ModelNames<'a> {
    known: Vec<&'a str>,
    code: KnownCode<'a>,
    catalog: &'a dyn Catalog,
    root: &'a Path,
    /// Models whose provider code must bring, which was not run yet.
    assumed: RefCell<Vec<String>>,
}

impl<'a> ModelNames<'a> {
    /// The prefixes that are known: built-in ones and those of the manifest.
    pub(crate) fn new(
        manifest: Option<&'a ManifestFile>,
        code: KnownCode<'a>,
        catalog: &'a dyn Catalog,
        root: &'a Path,
    ) -> Self {
        let mut known = catalog.providers();
        if !known.is_empty() {
            let declared = manifest.into_iter().flat_map(|file| file.manifest.providers.keys());
            known.extend(declared.map(String::as_str).chain(code.providers()));
        }
        Self { known, code, catalog, root, assumed: RefCell::default() }
    }

    /// Takes the models whose provider code must bring.
    pub(crate) fn take_assumed(&self) -> Vec<String> {
        self.assumed.take()
    }

    /// Checks the model of a manifest.
    pub(crate) fn check_manifest(&self, file: &ManifestFile, out: &mut Diagnostics) {
        if let Some(model) = &file.manifest.model {
            self.check(model, "the project", &file.source, &place_of(&file.node, "model"), out);
        }
    }

    /// Checks the names and globs under `models`.
    pub(crate) fn check_patterns(&self, file: &ManifestFile, out: &mut Diagnostics) {
        let models = &file.manifest.models;
        if models.len() > MAX_MODELS {
            let message = format!("`models` has more than {MAX_MODELS} entries");
            let hint = "write globs, such as `openai:gpt-5*`";
            out.push(Diagnostic::at(&file.source, &place_of(&file.node, "models"), message).with_hint(hint));
            return;
        }
        for (pattern, _) in models {
            if out.is_full() {
                return;
            }
            if let Some((problem, hint)) = self.pattern_problem(pattern) {
                let place = entry_place(&file.node, "models", pattern);
                out.push(
                    Diagnostic::at(&file.source, &place, format!("`models`: {problem}")).with_hint(hint),
                );
            }
        }
    }

    fn pattern_problem(&self, pattern: &str) -> Option<(String, String)> {
        let no_glob = |why: String| {
            Some((
                format!("`{pattern}` is not a glob: {why}"),
                "write names with `*`, such as `openai:gpt-5*`".to_owned(),
            ))
        };
        match GlobBuilder::new(pattern).build() {
            _ if pattern.len() > MAX_GLOB_LEN => no_glob(format!("it has more than {MAX_GLOB_LEN} bytes")),
            Err(error) => no_glob(error.kind().to_string()),
            Ok(_) => self.prefix_problem(pattern),
        }
    }

    /// A pattern whose provider nobody knows would hold for no model.
    fn prefix_problem(&self, pattern: &str) -> Option<(String, String)> {
        let provider = pattern.split([':', '/']).next().unwrap_or_default();
        let is_glob = provider.contains(['*', '?', '[', '{']);
        if self.known.is_empty() || self.known.contains(&provider) || self.code.may_define() {
            return None;
        }
        if provider == pattern && !pattern.starts_with('*') {
            let hint = format!("write the provider before it, or `*:{pattern}` for any");
            return Some((format!("`{pattern}` names no provider"), hint));
        }
        if is_glob {
            return None;
        }
        Some((format!("there is no provider `{provider}`"), meant(provider, self.known.iter().copied())))
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
        if let Some((problem, hint)) = self.problem(model) {
            let diagnostic = Diagnostic::at(source, place, format!("{owner} {problem}"));
            out.push(hint.into_iter().fold(diagnostic, Diagnostic::with_hint));
        }
    }

    /// Says what is wrong with the name of a model, and what can be done.
    pub(crate) fn problem(&self, model: &str) -> Option<(String, Option<String>)> {
        let model = self.catalog.alias(model).unwrap_or(model);
        let provider = model.split([':', '/']).next().unwrap_or_default();
        if self.known.is_empty() || self.known.contains(&provider) {
            let problem = self.catalog.model_problem(model, self.root)?;
            return Some((format!("names the model `{model}`: {problem}"), None));
        }
        if self.code.may_define() {
            self.assumed.borrow_mut().push(format!("the provider of the model `{model}`"));
            return None;
        }
        let full = self.catalog.full_model_names(model);
        if !full.is_empty() {
            let hint = format!("did you mean `{}`?", full.join("` or `"));
            return Some((format!("names the model `{model}` without a provider"), Some(hint)));
        }
        let hint = match nearest(provider, self.known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? known: {}", several(&self.known)),
            None => format!("known: {}; others are declared under `providers`", several(&self.known)),
        };
        Some((format!("names the model `{model}`, and there is no provider `{provider}`"), Some(hint)))
    }
}
