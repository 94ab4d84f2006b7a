//! The names of models, and patterns over them.

use globset::{GlobBuilder, GlobMatcher};

use crate::provider::built_in;

/// Spells a name with a colon after the provider.
pub(crate) fn canonical(name: &str) -> String {
    match name.find([':', '/']) {
        Some(index) => format!("{}:{}", &name[..index], &name[index + 1..]),
        None => name.to_owned(),
    }
}

/// Splits a canonical name into provider and model.
pub(crate) fn split(name: &str) -> (&str, &str) {
    name.split_once(':').unwrap_or((name, ""))
}

/// Returns whether the models of a provider run on machines of the user, who pays nobody for them.
pub(crate) fn is_local(provider: &str) -> bool {
    matches!(provider, "test" | "script") || built_in(provider).is_some_and(|provider| !provider.needs_key)
}

/// A pattern over names, whichever way providers are spelt in it and in them.
#[derive(Debug, Clone)]
pub(crate) struct Patterns(GlobMatcher);

impl Patterns {
    /// Reads a name or glob; nothing where it is not a glob.
    pub(crate) fn new(pattern: &str) -> Option<Self> {
        Some(Self(GlobBuilder::new(&canonical(pattern)).build().ok()?.compile_matcher()))
    }

    /// Returns whether a canonical name matches, under any spelling of its provider.
    pub(crate) fn match_name(&self, name: &str) -> bool {
        if self.0.is_match(name) {
            return true;
        }
        let (provider, model) = split(name);
        let spellings = built_in(provider).map(|provider| [&[provider.name], provider.aliases].concat());
        let mut spellings = spellings.into_iter().flatten();
        spellings.any(|provider| self.0.is_match(format!("{provider}:{model}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_every_spelling_of_a_provider() {
        for (pattern, name) in [
            ("google:gemini-*", "gemini:gemini-2.5-pro"),
            ("gemini/gemini-*", "google-gla:gemini-2.5-pro"),
            ("openrouter:openai/*", "openrouter/openai/gpt-5"),
            ("*:gpt-5*", "azure:gpt-5-mini"),
            ("test", "test"),
        ] {
            assert!(Patterns::new(pattern).unwrap().match_name(&canonical(name)), "{pattern} {name}");
        }
        assert!(!Patterns::new("openai:gpt-5").unwrap().match_name("openai:gpt-5-mini"));
        assert!(Patterns::new("openai:[").is_none());
    }
}
