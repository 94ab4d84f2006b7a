//! What models cost.
//!
//! The prices are in `prices/table.txt`, which a test makes from the crate `genai-prices` and compares with it, model
//! by model. The crate itself is not asked: at the first question it reads data of all providers into some 20 MB, which
//! takes longer than all else that a short run does. The text of the table is searched directly, and nothing of it is read
//! before somebody asks.
//!
//! A price that nobody knows is not a price: it is never taken for 0.

#[cfg(test)]
mod extract;
mod known;
mod rates;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;

use llm_do_core::{ModelOverride, Money, PriceList, Prices, Usage};

use crate::names::{Patterns, canonical, is_local, split};
use crate::provider::built_in;
pub use known::{KnownModel, full_names, known_models};
use rates::Rates;

/// The prices of the models that come with llm-do, and those that a project gives. Models on this machine are free.
#[derive(Clone, Default)]
pub struct StandardPrices {
    given: Vec<(Patterns, Rates)>,
    own: Vec<(Patterns, Rates)>,
}

impl StandardPrices {
    /// The prices that come with llm-do.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds prices of a project. The first whose pattern matches counts, if it is higher than that of the table: a
    /// project must not lower what a user's cost limit is measured by. A pattern that is not a glob matches nothing.
    #[must_use]
    pub fn with_overrides(mut self, overrides: impl IntoIterator<Item = ModelOverride>) -> Self {
        self.given.extend(read_rates(overrides));
        self
    }

    /// Adds prices of the user, which take the place of those of the table. The first whose pattern matches counts.
    #[must_use]
    pub fn with_own(mut self, overrides: impl IntoIterator<Item = ModelOverride>) -> Self {
        self.own.extend(read_rates(overrides));
        self
    }

    /// Returns what a model costs for prompts of usual length, in the units of price lists.
    pub fn list(&self, model: &str) -> Option<PriceList> {
        self.rates(model).map(|rates| rates.list()).reduce(dearer)
    }

    /// Returns the number of input tokens beyond which a request costs more, where there is one.
    pub fn long_prompts(&self, model: &str) -> Option<u64> {
        self.rates(model).find_map(|rates| rates.first_tier())
    }

    /// Returns the rates that the project gives a model and those of the table, as far as there are any.
    fn rates(&self, model: &str) -> impl Iterator<Item = Rates> + use<> {
        let name = canonical(model);
        let first = |list: &[(Patterns, Rates)]| {
            list.iter().find(|(patterns, _)| patterns.match_name(&name)).map(|(_, rates)| rates.clone())
        };
        let known = first(&self.own).or_else(|| known_rates(&name));
        first(&self.given).into_iter().chain(known)
    }
}

fn read_rates(overrides: impl IntoIterator<Item = ModelOverride>) -> impl Iterator<Item = (Patterns, Rates)> {
    overrides.into_iter().filter_map(|given| {
        let patterns = Patterns::new(&given.pattern)?;
        Some((patterns, Rates::from_list(&given.price?)))
    })
}

impl Prices for StandardPrices {
    fn price(&self, model: &str, usage: &Usage) -> Option<Money> {
        self.rates(model).filter_map(|rates| rates.cost(usage)).max()
    }
}

/// Returns the higher of two prices, item by item.
fn dearer(one: PriceList, other: PriceList) -> PriceList {
    let higher = |of: fn(&PriceList) -> Option<f64>| of(&one).into_iter().chain(of(&other)).reduce(f64::max);
    PriceList {
        input: one.input.max(other.input),
        output: one.output.max(other.output),
        cache_read: higher(|list| list.cache_read),
        cache_write: higher(|list| list.cache_write),
        search: higher(|list| list.search),
        request: higher(|list| list.request),
    }
}

impl fmt::Debug for StandardPrices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StandardPrices").field("given", &self.given.len()).finish()
    }
}

fn known_rates(name: &str) -> Option<Rates> {
    let (written, model) = split(name);
    let provider = built_in(written).map_or(written, |provider| provider.name);
    // Models that Ollama runs elsewhere are paid for by subscription.
    let runs_elsewhere = model.ends_with("-cloud") || model.ends_with(":cloud");
    if is_local(provider) {
        return (!runs_elsewhere).then(Rates::free);
    }
    let sections = sections(provider);
    let mut rates = sections.iter().find_map(|section| table::find(section, model))??;
    rates.search = rates.search.or_else(|| search_fee(provider, model));
    Some(rates)
}

/// The parts of the table that list a provider's models; the first that knows a model counts.
fn sections(provider: &str) -> &'static [&'static str] {
    match provider {
        "anthropic" => &["anthropic"],
        "openai" | "openai-chat" => &["openai"],
        "gemini" => &["google"],
        "azure" => &["azure", "openai", "anthropic", "deepseek", "x-ai", "moonshotai"],
        "cerebras" => &["cerebras"],
        "cohere" => &["cohere"],
        "deepseek" => &["deepseek"],
        "fireworks" => &["fireworks"],
        "groq" => &["groq"],
        "mistral" => &["mistral"],
        "moonshot" | "moonshotai" => &["moonshotai"],
        "openrouter" => &["openrouter"],
        "perplexity" => &["perplexity"],
        "together" => &["together"],
        "xai" => &["x-ai"],
        _ => &[],
    }
}

/// Dollars per thousand searches, where the table has none: the fees of providers that charge the same for all models.
fn search_fee(provider: &str, model: &str) -> Option<u128> {
    let dollars_per_thousand = match provider {
        "anthropic" | "openai" | "openai-chat" | "azure" => 10,
        "gemini" if model.starts_with("gemini-1") || model.starts_with("gemini-2") => 35,
        "gemini" => 14,
        _ => return None,
    };
    Some(rates::per_search(dollars_per_thousand))
}
