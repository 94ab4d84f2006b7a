//! Tokens, money and prices.

pub use llm_do_core::{Cost, Money, NoPrices, PriceList, Prices, Remaining, Usage, UsageByModel};
pub use llm_do_models::StandardPrices;
