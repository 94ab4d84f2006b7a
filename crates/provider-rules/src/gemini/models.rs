//! What each Gemini model accepts.

/// A model by its generation and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GeminiModel {
    version: (u32, u32),
    size: Size,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Pro,
    Flash,
    FlashLite,
}

/// What `thinkingBudget` may be, besides -1 for a budget that the model chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budgets {
    pub(super) takes_zero: bool,
    pub(super) least: i64,
    pub(super) most: i64,
}

/// The generation that names without a number, such as `gemini-flash-latest`, mean.
const LATEST: (u32, u32) = (3, 7);

impl GeminiModel {
    /// Returns whether it is Gemini 3 or newer.
    pub(super) fn is_since_3(&self) -> bool {
        self.version >= (3, 0)
    }

    /// Returns the budgets of the models that are controlled by them.
    pub(super) fn budgets(&self) -> Option<Budgets> {
        let budgets = match self.size {
            Size::Pro => Budgets { takes_zero: false, least: 128, most: 32_768 },
            Size::Flash => Budgets { takes_zero: true, least: 1, most: 24_576 },
            Size::FlashLite => Budgets { takes_zero: true, least: 512, most: 24_576 },
        };
        (self.version == (2, 5)).then_some(budgets)
    }

    /// Returns whether the level `MINIMAL` is accepted.
    pub(super) fn takes_minimal(&self) -> bool {
        match self.size {
            Size::Pro => false,
            Size::Flash => self.version < (3, 7),
            Size::FlashLite => true,
        }
    }
}

/// Reads a name such as `gemini-2.5-flash-lite` or `gemini-3-pro-preview`.
pub(super) fn find(name: &str) -> Option<GeminiModel> {
    let rest = name.strip_prefix("gemini-")?;
    let size = match () {
        () if rest.contains("flash-lite") => Size::FlashLite,
        () if rest.contains("flash") => Size::Flash,
        () => Size::Pro,
    };
    let number = rest.split('-').next().unwrap_or_default();
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    let version = match (major.parse(), minor.parse()) {
        (Ok(major), Ok(minor)) => (major, minor),
        _ if rest.ends_with("latest") => LATEST,
        _ => return None,
    };
    Some(GeminiModel { version, size })
}
