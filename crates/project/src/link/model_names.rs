//! Checks the names of models, and replaces the user's aliases by them.

use std::cell::RefCell;
use std::path::Path;

use llm_do_core::nearest;

use super::KnownCode;
use super::assumed::AssumedName;
use crate::catalog::ModelCatalog;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{entry_span, span_of};
use crate::format::manifest::ManifestFile;
use crate::globs::{glob_problem, is_glob};
use crate::read::agent::Agent;
use crate::source::{SourceFile, Span};
use crate::suggest::{join_names, suggest};

/// How many entries `models` has at most: each is compiled, which takes time and memory.
const MAX_MODELS: usize = 1_000;

/// Checks the providers of models before anything is asked.
pub(crate) struct ModelNames<'a> {
    known: Vec<&'a str>,
    code: KnownCode<'a>,
    catalog: &'a dyn ModelCatalog,
    root: &'a Path,
    /// Models whose provider code must bring, which was not run yet.
    assumed: RefCell<Vec<AssumedName>>,
}

impl<'a> ModelNames<'a> {
    /// The prefixes that are known: built-in ones and those of the manifest.
    pub(crate) fn new(
        manifest: Option<&'a ManifestFile>,
        code: KnownCode<'a>,
        catalog: &'a dyn ModelCatalog,
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
    pub(crate) fn take_assumed(&self) -> Vec<AssumedName> {
        self.assumed.take()
    }

    /// Checks the model of a manifest.
    pub(crate) fn check_manifest(&self, file: &ManifestFile, out: &mut Diagnostics) {
        if let Some(model) = &file.manifest.model {
            self.check(model, "the project", &file.source, &span_of(&file.node, "model"), out);
        }
    }

    /// Checks the names and globs under `models`.
    pub(crate) fn check_patterns(&self, file: &ManifestFile, out: &mut Diagnostics) {
        let models = &file.manifest.models;
        if models.len() > MAX_MODELS {
            let message = format!("`models` has more than {MAX_MODELS} entries");
            let hint = "write globs, such as `openai:gpt-5*`";
            out.push(
                Diagnostic::error_at(&file.source, &span_of(&file.node, "models"), message).with_hint(hint),
            );
            return;
        }
        for (pattern, _) in models {
            if out.is_full() {
                return;
            }
            if let Some((problem, hint)) = self.pattern_problem(pattern) {
                let span = entry_span(&file.node, "models", pattern);
                out.push(
                    Diagnostic::error_at(&file.source, &span, format!("`models`: {problem}")).with_hint(hint),
                );
            }
        }
    }

    fn pattern_problem(&self, pattern: &str) -> Option<(String, String)> {
        match glob_problem(pattern) {
            Some(problem) => {
                let hint = "write names with `*`, such as `openai:gpt-5*`".to_owned();
                Some((format!("`{pattern}` is not a glob: {problem}"), hint))
            }
            None => self.prefix_problem(pattern),
        }
    }

    /// Returns what is wrong with the provider of a pattern: with an unknown one it would match no model.
    fn prefix_problem(&self, pattern: &str) -> Option<(String, String)> {
        let provider = pattern.split([':', '/']).next().unwrap_or_default();
        if self.known.is_empty() || self.known.contains(&provider) || self.code.may_define() {
            return None;
        }
        if provider == pattern && !pattern.starts_with('*') {
            let hint = format!("write the provider before it, or `*:{pattern}` for any");
            return Some((format!("`{pattern}` names no provider"), hint));
        }
        if is_glob(provider) {
            return None;
        }
        Some((format!("there is no provider `{provider}`"), suggest(provider, self.known.iter().copied())))
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
            let span = entry_span(&agent.file.header, key, model);
            self.check(model, &owner, &agent.file.source, &span, out);
        }
    }

    fn check(&self, model: &str, owner: &str, source: &SourceFile, span: &Span, out: &mut Diagnostics) {
        if let Some((problem, hint)) = self.problem(model) {
            let diagnostic = Diagnostic::error_at(source, span, format!("{owner} {problem}"));
            out.push(hint.into_iter().fold(diagnostic, Diagnostic::with_hint));
        }
    }

    /// Returns what is wrong with the name of a model, and a hint.
    pub(crate) fn problem(&self, model: &str) -> Option<(String, Option<String>)> {
        let model = self.catalog.alias(model).unwrap_or(model);
        let provider = model.split([':', '/']).next().unwrap_or_default();
        if self.known.is_empty() || self.known.contains(&provider) {
            let problem = self.catalog.model_problem(model, self.root)?;
            return Some((format!("names the model `{model}`: {problem}"), None));
        }
        if self.code.may_define() {
            self.assumed.borrow_mut().push(AssumedName::new(format!("the provider of the model `{model}`")));
            return None;
        }
        let full = self.catalog.full_model_names(model);
        if !full.is_empty() {
            let hint = format!("did you mean `{}`?", full.join("` or `"));
            return Some((format!("names the model `{model}` without a provider"), Some(hint)));
        }
        let hint = match nearest(provider, self.known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? known: {}", join_names(&self.known)),
            None => format!("known: {}; declare others under `providers`", join_names(&self.known)),
        };
        Some((format!("names the model `{model}`, but there is no provider `{provider}`"), Some(hint)))
    }
}

/// Replaces aliases of the user by the models that they name.
pub(crate) fn expand_aliases(agent: &mut Agent, catalog: &dyn ModelCatalog) {
    let models = agent.header.model.iter_mut().chain(&mut agent.header.fallback_models);
    models.for_each(|model| expand_alias(model, catalog));
}

pub(super) fn expand_alias(model: &mut String, catalog: &dyn ModelCatalog) {
    if let Some(named) = catalog.alias(model) {
        *model = named.to_owned();
    }
}
