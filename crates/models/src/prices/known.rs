//! The models that the table of prices lists, and the providers that have a model of some name.
//!
//! Providers have other models too: what is not listed here can still be asked for by its full name.

use llm_do_core::PriceList;

use super::{sections, table};
use crate::provider::{BuiltinProvider, built_in, providers};

/// A model of a built-in provider whose price is known.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KnownModel {
    /// Its name, `provider:model`.
    pub name: String,
    /// What it costs for prompts of usual length.
    pub price: PriceList,
    /// The most tokens of a conversation, if that is known.
    pub context: Option<u64>,
}

/// Returns the known models of a provider, in the order of their names.
pub fn known_models(provider: &str) -> Vec<KnownModel> {
    let Some(provider) = built_in(provider) else { return Vec::new() };
    let Some(section) = own_section(provider) else { return Vec::new() };
    let listed =
        table::models(section).filter(|model| is_served(provider, model.name) && is_whole(model.name));
    let known = |model: table::ListedModel| {
        // As it is charged: an earlier line may fit the name too, and the first one counts.
        let rates = table::find(section, model.name)??;
        let name = format!("{}:{}", provider.name, model.name);
        Some(KnownModel { name, price: rates.list(), context: model.context })
    };
    let mut models: Vec<KnownModel> = listed.filter_map(known).collect();
    models.sort_by(|a, b| a.name.cmp(&b.name));
    models
}

/// Returns the full names that a name without a provider may mean, one for each provider that has such a model.
pub fn full_names(model: &str) -> Vec<String> {
    let has_model = |provider: &&BuiltinProvider| {
        let section = own_section(provider).filter(|_| is_served(provider, model));
        section.and_then(|section| table::find(section, model)).flatten().is_some()
    };
    // The other protocol of the same host is not another choice.
    let choices = providers().iter().filter(|provider| provider.name != "openai-chat");
    choices.filter(has_model).map(|provider| format!("{}:{model}", provider.name)).collect()
}

/// The part of the table that a provider's own prices are in; others only fill its gaps.
fn own_section(provider: &BuiltinProvider) -> Option<&'static str> {
    sections(provider.name).first().copied()
}

/// Returns whether a provider serves a model that its section lists: `google` also lists what only its cloud has.
fn is_served(provider: &BuiltinProvider, model: &str) -> bool {
    let model = model.to_lowercase();
    provider.name != "gemini" || model.starts_with("gemini") || model.starts_with("gemma")
}

/// Returns whether a model has this name: the table also lists how the names of fine-tuned models begin, as
/// `ft:gpt-3.5-turbo-`.
fn is_whole(model: &str) -> bool {
    model.ends_with(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_provider_is_found_where_it_is_served() {
        assert_eq!(full_names("gpt-5"), ["openai:gpt-5"]);
        assert_eq!(full_names("claude-sonnet-4-5"), ["anthropic:claude-sonnet-4-5"]);
        assert_eq!(full_names("gemini-2.5-pro"), ["gemini:gemini-2.5-pro"]);
        assert_eq!(full_names("o3"), ["openai:o3", "azure:o3"]);
        for unknown in ["", "hello", "gpt", "test", "openai:gpt-5", "openai"] {
            assert_eq!(full_names(unknown), [""; 0], "{unknown}");
        }
    }

    #[test]
    fn listed_models_have_prices_and_mostly_a_context_size() {
        let models = known_models("openai");
        let model = models.iter().find(|model| model.name == "openai:gpt-5").unwrap();
        assert_eq!((model.price.input, model.price.output), (1.25, 10.0));
        assert_eq!(model.context, Some(400_000));
        assert!(models.is_sorted_by(|a, b| a.name < b.name), "a name is listed twice");
        assert!(!models.iter().any(|model| model.name.contains("embedding")), "no price, no conversation");
        assert!(known_models("google").iter().all(|model| !model.name.contains("claude")));
        let ends = |model: &KnownModel| model.name.ends_with(['-', ':', '.', '/']);
        assert!(
            !providers().iter().flat_map(|provider| known_models(provider.name)).any(|model| ends(&model))
        );
        assert_eq!(known_models("ollama"), []);
        assert_eq!(known_models("nobody"), []);
    }

    #[test]
    fn every_listed_model_costs_what_its_name_costs() {
        let prices = super::super::StandardPrices::new();
        for model in providers().iter().flat_map(|provider| known_models(provider.name)) {
            let price = prices.list(&model.name).map(|price| (price.input, price.output));
            assert_eq!(price, Some((model.price.input, model.price.output)), "{}", model.name);
        }
    }
}
