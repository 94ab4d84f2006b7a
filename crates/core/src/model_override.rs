//! What a project says about models: prices and abilities over those that come with llm-do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Effort, EffortLevels, ModelProfile, NativeOutput, ThinkingStyle};

/// What holds for some models instead of what the tables say.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelOverride {
    /// A model's name as users write it, or a glob over such names: `openai:gpt-5*`.
    pub pattern: String,
    /// What the models cost.
    pub price: Option<PriceList>,
    /// What the models can do.
    pub profile: ProfileOverride,
}

/// What a model costs. It replaces the built-in price entirely: no part of the table is mixed into it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceList {
    /// Dollars per million input tokens.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub input: f64,
    /// Dollars per million output tokens.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub output: f64,
    /// Dollars per million tokens read from a cache; the default is the price of input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub cache_read: Option<f64>,
    /// Dollars per million tokens written to a cache; the default is the price of input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub cache_write: Option<f64>,
    /// Dollars per thousand searches on the web; the default is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub search: Option<f64>,
    /// Dollars per request; the default is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub request: Option<f64>,
}

/// What a model can do, where that is said. The rest stays as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProfileOverride {
    /// Whether the provider enforces the schema of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_output: Option<NativeOutput>,
    /// Output tokens per request, if neither agent nor run sets a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub max_output: Option<u64>,
    /// Whether it accepts images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// Whether it accepts PDF documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documents: Option<bool>,
    /// Whether it accepts `temperature` and `top_p`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<bool>,
    /// How thinking is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingStyle>,
    /// The levels of effort that it accepts; without `none` its thinking cannot be switched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Effort>>", length(min = 1))]
    pub effort_levels: Option<EffortLevels>,
    /// How many tokens it reads at once, its answer included. A longer input is read page by page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub context_window: Option<u64>,
}

impl ProfileOverride {
    /// Returns this with what it leaves open taken from another.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            native_output: self.native_output.or(other.native_output),
            max_output: self.max_output.or(other.max_output),
            images: self.images.or(other.images),
            documents: self.documents.or(other.documents),
            sampling: self.sampling.or(other.sampling),
            thinking: self.thinking.or(other.thinking),
            effort_levels: self.effort_levels.or(other.effort_levels),
            context_window: self.context_window.or(other.context_window),
        }
    }

    /// Changes a profile to what this says.
    pub fn apply(self, profile: &mut ModelProfile) {
        replace(&mut profile.native_output, self.native_output);
        replace(&mut profile.default_max_output, self.max_output);
        replace(&mut profile.images, self.images);
        replace(&mut profile.documents, self.documents);
        replace(&mut profile.sampling, self.sampling);
        replace(&mut profile.thinking, self.thinking);
        replace(&mut profile.effort_levels, self.effort_levels);
        profile.context_window = self.context_window.or(profile.context_window);
    }
}

fn replace<T>(target: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *target = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_override_leaves_open_stays() {
        let mut profile = ModelProfile::default();
        let first = ProfileOverride { images: Some(false), ..ProfileOverride::default() };
        let second =
            ProfileOverride { images: Some(true), max_output: Some(7), ..ProfileOverride::default() };
        first.or(second).apply(&mut profile);
        let expected = ModelProfile { images: false, default_max_output: 7, ..ModelProfile::default() };
        assert_eq!(profile, expected);
    }
}
