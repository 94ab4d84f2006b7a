//! How an agent wants its model to be asked.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Settings of an agent's requests. What is not set is left to the provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// Output tokens per request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub max_tokens: Option<u64>,
    /// The share of likely tokens to choose from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub top_p: Option<f64>,
    /// Texts at which the model stops.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Makes answers repeatable, if the provider supports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4_294_967_295_u32))]
    pub seed: Option<u32>,
    /// Whether the model thinks before it answers, or for how many tokens at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// How much effort the model makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Whether the model may ask for several tools at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// Which tools the model may or must use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether answers are streamed; the default is `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Whether providers that cache on request are asked to; the default is `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<bool>,
    /// Seconds that one request may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub timeout: Option<u64>,
    /// Seconds without data after which a request fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub idle_timeout: Option<u64>,
    /// Additional headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_headers: BTreeMap<String, String>,
    /// Additional fields of request bodies; they replace fields of llm-do.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
}

/// Whether a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Thinking {
    /// Whether it does, as much as it likes.
    Wanted(bool),
    /// For so many tokens at most.
    Tokens(#[schemars(range(min = 1, max = 4_294_967_295_u32))] u64),
}

/// How much a model exerts itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Not at all.
    None,
    /// As little as it can.
    Minimal,
    /// A little.
    Low,
    /// Somewhat.
    Medium,
    /// Much.
    High,
    /// Very much.
    Xhigh,
    /// As much as it can.
    Max,
}

impl Effort {
    /// All levels, from the least to the most.
    pub const ALL: [Self; 7] =
        [Self::None, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    /// Returns the word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// The levels of effort that a model accepts. With [`Effort::None`] among them, thinking can be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Effort>", into = "Vec<Effort>")]
pub struct EffortLevels(u8);

impl EffortLevels {
    /// Every level.
    pub const ALL: Self = Self::new(&Effort::ALL);

    /// The set of some levels.
    pub const fn new(levels: &[Effort]) -> Self {
        let (mut bits, mut index) = (0, 0);
        while index < levels.len() {
            bits |= 1 << levels[index] as u8;
            index += 1;
        }
        Self(bits)
    }

    /// Returns whether a level is in the set.
    pub fn contains(self, level: Effort) -> bool {
        self.0 & (1 << level as u8) != 0
    }

    /// Returns the levels in ascending order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Effort> {
        Effort::ALL.into_iter().filter(move |level| self.contains(*level))
    }

    /// Returns the levels at which the model thinks.
    pub fn thinking(self) -> impl DoubleEndedIterator<Item = Effort> {
        self.iter().filter(|level| *level != Effort::None)
    }

    /// Returns the level at which the model thinks that is nearest to the given one. Of two that are equally near,
    /// the higher one wins, because the caller asked for more than the lower one.
    pub fn nearest(self, wanted: Effort) -> Option<Effort> {
        self.thinking().rev().min_by_key(|level| (*level as i8 - wanted as i8).abs())
    }
}

impl From<Vec<Effort>> for EffortLevels {
    fn from(levels: Vec<Effort>) -> Self {
        Self::new(&levels)
    }
}

impl From<EffortLevels> for Vec<Effort> {
    fn from(levels: EffortLevels) -> Self {
        levels.iter().collect()
    }
}

/// Which tools a model may or must use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// None.
    None,
    /// At least one.
    Required,
    /// This one.
    Tool(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_level_never_switches_thinking_off() {
        use Effort::{High, Low, Max, Medium, Minimal, None, Xhigh};
        for (levels, wanted, nearest) in [
            (&[Low, Medium, High][..], Minimal, Some(Low)),
            (&[Low, Medium, High], Max, Some(High)),
            (&[Low, Medium, High], None, Some(Low)),
            (&[Low, High], Medium, Some(High)),
            (&[None, Low, High, Max], Xhigh, Some(Max)),
            (&[None, High], Minimal, Some(High)),
            (&[None, Low], Minimal, Some(Low)),
            (&[None], High, Option::None),
        ] {
            assert_eq!(EffortLevels::new(levels).nearest(wanted), nearest, "{wanted:?} of {levels:?}");
        }
    }

    #[test]
    fn levels_are_written_as_a_list_in_order() {
        let levels: EffortLevels = serde_json::from_str(r#"["high", "none", "high"]"#).unwrap();
        assert_eq!(serde_json::to_string(&levels).unwrap(), r#"["none","high"]"#);
        assert_eq!(EffortLevels::ALL.iter().count(), 7);
    }
}
