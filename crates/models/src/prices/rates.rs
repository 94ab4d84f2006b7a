//! The rates of one model, and what a request costs by them: exact, in whole numbers.

use llm_do_core::{Money, PriceList, Usage};

/// Rates in femtodollars (10⁻¹⁵): a price per million tokens with nine decimals is a whole number of them per token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rates {
    pub(super) input: Rate,
    pub(super) output: Rate,
    /// Without one, cached tokens cost what input costs.
    pub(super) cache_read: Option<Rate>,
    pub(super) cache_write: Option<Rate>,
    /// Per search; without one nobody knows what a search costs.
    pub(super) search: Option<u128>,
    /// Per request.
    pub(super) request: u128,
}

/// What a token costs: one price, and others for requests whose whole input is longer than a number of tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) base: u128,
    /// Numbers of tokens beyond which another price holds, from short to long.
    pub(super) tiers: Vec<(u64, u128)>,
}

/// Femtodollars in a billionth of a dollar.
const PER_NANO: u128 = 1_000_000;

impl Rates {
    /// The rates of what runs on this machine.
    pub(super) fn free() -> Self {
        Self { search: Some(0), ..Self::default() }
    }

    /// The rates of a price list.
    pub(super) fn from_list(list: &PriceList) -> Self {
        let per_token = |dollars: f64| Rate { base: femto(dollars, 1e9), tiers: Vec::new() };
        Self {
            input: per_token(list.input),
            output: per_token(list.output),
            cache_read: list.cache_read.map(per_token),
            cache_write: list.cache_write.map(per_token),
            search: Some(femto(list.search.unwrap_or_default(), 1e12)),
            request: femto(list.request.unwrap_or_default(), 1e15),
        }
    }

    /// The list of these rates, for prompts of usual length.
    pub(super) fn list(&self) -> PriceList {
        let per_million = |rate: &Rate| dollars(rate.base, 1e9);
        PriceList {
            input: per_million(&self.input),
            output: per_million(&self.output),
            cache_read: self.cache_read.as_ref().map(per_million),
            cache_write: self.cache_write.as_ref().map(per_million),
            search: self.search.map(|search| dollars(search, 1e12)),
            request: (self.request > 0).then(|| dollars(self.request, 1e15)),
        }
    }

    /// The length from which prompts cost more.
    pub(super) fn first_tier(&self) -> Option<u64> {
        self.input.tiers.first().or(self.output.tiers.first()).map(|(start, _)| *start)
    }

    /// What one request costs, rounded up; nothing where it used something without a price.
    pub(super) fn cost(&self, usage: &Usage) -> Option<Money> {
        let length = usage.total_input();
        let tokens = |count: u64, rate: &Rate| u128::from(count).saturating_mul(rate.at(length));
        let search = match usage.searches {
            0 => 0,
            searches => u128::from(searches).saturating_mul(self.search?),
        };
        let parts = [
            tokens(usage.input, &self.input),
            tokens(usage.output, &self.output),
            tokens(usage.cache_read, self.cache_read.as_ref().unwrap_or(&self.input)),
            tokens(usage.cache_write, self.cache_write.as_ref().unwrap_or(&self.input)),
            search,
            u128::from(usage.requests.max(1)).saturating_mul(self.request),
        ];
        let sum = parts.into_iter().fold(0_u128, u128::saturating_add);
        Some(Money(u64::try_from(sum.div_ceil(PER_NANO)).unwrap_or(u64::MAX)))
    }
}

impl Rate {
    fn at(&self, length: u64) -> u128 {
        let tier = self.tiers.iter().rev().find(|(start, _)| length > *start);
        tier.map_or(self.base, |(_, price)| *price)
    }
}

/// The rate of a search in dollars per thousand.
pub(super) fn per_search(dollars_per_thousand: u32) -> u128 {
    u128::from(dollars_per_thousand) * 1_000_000_000_000
}

/// Dollars in a unit of so many femtodollars to the dollar, to the nearest whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, checked not negative"
)]
fn femto(dollars: f64, unit: f64) -> u128 {
    if dollars.is_finite() && dollars > 0.0 { (dollars * unit).round() as u128 } else { 0 }
}

#[expect(clippy::cast_precision_loss, reason = "for people; sums are kept exactly")]
fn dollars(femto: u128, unit: f64) -> f64 {
    femto as f64 / unit
}
