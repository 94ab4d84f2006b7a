//! What models can do, and what a project says over it.
//!
//! [`profile_of`] puts together what the rows of the table say about a model, the context window and what attachments
//! cost. What a request must keep to beyond that comes from the same rows ([`rules_of`]).

mod context_windows;
mod media_tokens;
mod table;
#[cfg(test)]
mod tests;

use llm_do_core::{ModelOverride, ModelProfile, ProfileOverride};

use crate::model_patterns::{matches, plain_name};
use crate::names::{Patterns, canonical};
use crate::wire::request_rules::{RequestRules, Rule};
pub(crate) use context_windows::offline_profile;
use context_windows::window_of;
use media_tokens::media_tokens;
use table::TABLE;

/// Returns what a model can do. The protocol is one of [`PROTOCOLS`](crate::PROTOCOLS), the model is written without its
/// provider, and of the overrides the first that matches and speaks of something decides about it.
pub fn profile_of(protocol: &str, provider: &str, model: &str, overrides: &[ModelOverride]) -> ModelProfile {
    let closed_output_only = enforces_closed_only(protocol, provider);
    let media = media_tokens(protocol, &model.to_lowercase());
    let context_window = window_of(protocol, provider, model);
    let mut profile = ModelProfile { closed_output_only, media, context_window, ..ModelProfile::default() };
    for row in rows_of(protocol, provider, model) {
        row.says.apply(&mut profile);
        if let Some(tools) = row.server_tools {
            profile.server_tools = tools;
        }
    }
    overruled(&format!("{provider}:{model}"), overrides).apply(&mut profile);
    profile
}

/// Returns what a request to a model must keep to.
pub(crate) fn rules_of(protocol: &str, provider: &str, model: &str) -> RequestRules {
    let mut rules = RequestRules::default();
    let rows = rows_of(protocol, provider, model);
    rows.into_iter().flat_map(|row| row.rules).for_each(|rule| rule.apply(&mut rules));
    rules
}

fn rows_of(protocol: &str, provider: &str, model: &str) -> Vec<&'static ProfileRow> {
    let written = model.to_lowercase();
    let plain = plain_name(&written);
    TABLE.iter().filter(|row| row.fits(protocol, provider, &written, &plain)).collect()
}

/// Returns whether a provider takes only schemas without open maps: servers that turn a schema into a grammar take all.
fn enforces_closed_only(protocol: &str, provider: &str) -> bool {
    match protocol {
        "anthropic" | "openai" => true,
        "openai-chat" => !matches!(provider, "llamacpp" | "lmstudio" | "vllm"),
        _ => false,
    }
}

fn overruled(name: &str, overrides: &[ModelOverride]) -> ProfileOverride {
    let name = canonical(name);
    let matching = overrides
        .iter()
        .filter(|over| Patterns::new(&over.pattern).is_some_and(|patterns| patterns.match_name(&name)));
    matching.fold(ProfileOverride::default(), |sum, over| sum.or(over.profile))
}

/// One row: for which models it holds, and what it changes.
struct ProfileRow {
    of: RowScope,
    /// Names with `*` for anything. One with a slash is compared with the whole name.
    models: &'static [&'static str],
    says: ProfileOverride,
    server_tools: Option<&'static [&'static str]>,
    rules: &'static [Rule],
}

enum RowScope {
    Protocol(&'static str),
    Provider(&'static str),
    Anywhere,
}

impl ProfileRow {
    /// The row with rules for requests.
    const fn with(self, rules: &'static [Rule]) -> Self {
        Self { rules, ..self }
    }

    fn fits(&self, protocol: &str, provider: &str, written: &str, plain: &str) -> bool {
        let in_scope = match self.of {
            RowScope::Protocol(name) => name == protocol,
            RowScope::Provider(name) => name == provider,
            RowScope::Anywhere => true,
        };
        let name = |pattern: &str| if pattern.contains('/') { written } else { plain };
        in_scope && self.models.iter().any(|pattern| matches(name(pattern), pattern))
    }
}
