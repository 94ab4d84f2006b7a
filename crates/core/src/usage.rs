//! Tokens and money: what was used, what may be used, and what it costs.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, AddAssign};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Name, counted};

/// What model requests used. All counts are disjoint except `reasoning`, which is part of `output`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Requests sent, each attempt counted.
    pub requests: u64,
    /// Input tokens that no cache served.
    pub input: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// Output tokens spent on reasoning.
    pub reasoning: u64,
    /// Searches that the provider made on the web, which most charge for.
    pub searches: u64,
    /// What it cost, where the price is known.
    pub cost: Cost,
}

impl Usage {
    /// Returns all tokens, in and out.
    pub fn tokens(&self) -> u64 {
        self.total_input().saturating_add(self.output)
    }

    /// Returns all input tokens, cached or not.
    pub fn total_input(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }
}

/// `2 requests, 1200 input and 300 output tokens, $0.0041`.
impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = counted(self.requests, "request");
        write!(f, "{requests}, {} input and {} output tokens", self.total_input(), self.output)?;
        match (self.cost.describe(), self.cost.unpriced) {
            (Some(cost), _) => write!(f, ", {cost}"),
            (None, 0) => Ok(()),
            (None, _) => f.write_str(", price unknown"),
        }
    }
}

// Sums saturate: the numbers come from providers, and one that is absurd must not wrap around to a small one.
impl Add for Usage {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            searches: self.searches.saturating_add(other.searches),
            cost: self.cost + other.cost,
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Money spent: a known amount, and how many requests had no known price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// The known part.
    pub known: Money,
    /// Requests whose price is unknown; their cost is not 0 but unknown.
    pub unpriced: u64,
}

impl Cost {
    /// Says what is known of it; nothing where that is nothing.
    pub fn describe(&self) -> Option<String> {
        match (self.unpriced, self.known.0) {
            (_, 0) => None,
            (0, _) => Some(self.known.to_string()),
            (_, _) => Some(format!("at least {}", self.known)),
        }
    }
}

impl Add for Cost {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { known: self.known + other.known, unpriced: self.unpriced + other.unpriced }
    }
}

/// An amount in billionths of a US dollar: exact, so that sums never drift.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Money(pub u64);

impl Money {
    /// Converts dollars, rounded up; negative and not finite amounts count as nothing.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, checked not negative"
    )]
    pub fn from_dollars(dollars: f64) -> Self {
        if dollars.is_finite() && dollars > 0.0 { Self((dollars * 1e9).ceil() as u64) } else { Self(0) }
    }

    /// Returns how many decimals show the amount: four, or as many as it takes for two digits that are not 0.
    fn decimals(self) -> usize {
        match self.0 {
            0 | 50_000.. => 4,
            10_000.. => 6,
            1_000.. => 7,
            100.. => 8,
            _ => 9,
        }
    }

    /// Returns the amount in dollars.
    #[expect(clippy::cast_precision_loss, reason = "for people; sums are kept exactly")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for Money {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.*}", self.decimals(), self.dollars())
    }
}

/// Usage per model, sorted by name.
///
/// Every call has one, and few calls ask more than one model: a list takes a tenth of the memory of a map.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<Name, Usage>", into = "BTreeMap<Name, Usage>")]
pub struct UsageByModel(Vec<(Name, Usage)>);

impl From<BTreeMap<Name, Usage>> for UsageByModel {
    fn from(usage: BTreeMap<Name, Usage>) -> Self {
        Self(usage.into_iter().collect())
    }
}

impl From<UsageByModel> for BTreeMap<Name, Usage> {
    fn from(usage: UsageByModel) -> Self {
        usage.0.into_iter().collect()
    }
}

impl UsageByModel {
    /// Adds what a request to a model used.
    pub fn add(&mut self, model: &Name, usage: Usage) {
        match self.search(model) {
            Ok(index) => self.0[index].1 += usage,
            Err(index) => {
                self.0.reserve_exact(1);
                self.0.insert(index, (model.clone(), usage));
            }
        }
    }

    /// Adds all of another sum.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(model, usage)| self.add(model, *usage));
    }

    /// Returns the sum over all models.
    pub fn total(&self) -> Usage {
        self.0.iter().map(|(_, usage)| *usage).fold(Usage::default(), Usage::add)
    }

    /// Returns what one model used.
    pub fn for_model(&self, model: &str) -> Usage {
        self.search(model).map(|index| self.0[index].1).unwrap_or_default()
    }

    /// Iterates over models and what they used.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Usage)> {
        self.0.iter().map(|(model, usage)| (model, usage))
    }

    /// Finds a model, or the index at which it belongs.
    fn search(&self, model: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(name, _)| name.as_str().cmp(model))
    }
}

/// One line per model.
impl fmt::Display for UsageByModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no model requests");
        }
        for (index, (model, usage)) in self.0.iter().enumerate() {
            let separator = if index > 0 { "\n" } else { "" };
            write!(f, "{separator}{model}: {usage}")?;
        }
        Ok(())
    }
}

impl<'a> IntoIterator for &'a UsageByModel {
    type Item = (&'a Name, &'a Usage);
    type IntoIter = Box<dyn Iterator<Item = Self::Item> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

/// Knows what models cost. The table comes with the providers; an embedder may bring its own.
pub trait Prices: Send + Sync {
    /// Returns what the usage costs, or nothing where the price is unknown.
    fn price(&self, model: &str, usage: &Usage) -> Option<Money>;
}

/// A price list without prices.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPrices;

impl Prices for NoPrices {
    fn price(&self, _model: &str, _usage: &Usage) -> Option<Money> {
        None
    }
}

/// How far a call may go. `None` means: no limit of its own.
///
/// A limit on tokens, cost or tool calls is a ceiling over the call and everything below it; turns and
/// time hold for the call itself, depth for the whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Nested agents on one path.
    pub depth: Option<u32>,
    /// Model turns of one agent call.
    pub turns: Option<u32>,
    /// Equal failing calls in a row after which an agent is stopped.
    pub repeats: Option<u32>,
    /// Tool and agent calls in the subtree; for a run 10,000 if nothing is given.
    pub tool_calls: Option<u64>,
    /// Requests to models in the subtree, attempts that failed among them; for a run 1,000 if nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Agents that agents may create while a runtime lives; 64 if nothing is given. It holds for all runs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_agents: Option<u64>,
    /// Requests to models, and tools that call nothing, that run side by side; 32 if nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    /// Bytes of results that no model has seen yet; 256 MiB if nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<u64>,
    /// Tokens, in and out, of the subtree.
    pub tokens: Option<u64>,
    /// Cost of the subtree.
    pub cost: Option<Money>,
    /// Running time of the call, not counting what it waits for a person.
    pub time: Option<Duration>,
}

/// What is left of the budgets that bind a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Remaining {
    /// Nested agents still permitted below this call.
    pub depth: u32,
    /// Tool calls.
    pub tool_calls: Option<u64>,
    /// Tokens.
    pub tokens: Option<u64>,
    /// Cost.
    pub cost: Option<Money>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_amounts_are_not_shown_as_nothing() {
        let shown = |dollars: f64| Money::from_dollars(dollars).to_string();
        assert_eq!(shown(0.0), "$0.0000");
        assert_eq!(shown(12.5), "$12.5000");
        assert_eq!(shown(0.000_05), "$0.0001");
        assert_eq!(shown(0.000_049), "$0.000049");
        assert_eq!(shown(0.000_002_5), "$0.0000025");
        assert_eq!(shown(0.000_000_12), "$0.00000012");
        assert_eq!(Money(1).to_string(), "$0.000000001");
    }
}
