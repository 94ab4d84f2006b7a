//! What each Claude model accepts.

/// A row of the table of models.
#[derive(Debug)]
pub(super) struct AnthropicModel {
    family: &'static str,
    version: (u32, u32),
    /// The accepted values of `thinking.type`.
    pub(super) thinking: &'static [&'static str],
    /// Whether a request without `thinking` thinks.
    pub(super) thinks_by_default: bool,
    /// The accepted values of `output_config.effort`.
    pub(super) efforts: &'static [&'static str],
    /// Efforts that are refused while thinking is disabled.
    pub(super) efforts_that_think: &'static [&'static str],
    pub(super) takes_prefill: bool,
    pub(super) sampling: Sampling,
    pub(super) max_tokens: Option<u64>,
    /// Whether strict tools and output formats are accepted.
    pub(super) has_strict: bool,
    /// Whether a message may have the role `system`.
    pub(super) has_system_role: bool,
    /// Whether `tool_choice` may force a call.
    pub(super) takes_forced_choice: bool,
}

/// Which of `temperature`, `top_p` and `top_k` a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sampling {
    /// All of them.
    Any,
    /// Not `temperature` and `top_p` together.
    NotBoth,
    /// Only values that are the defaults.
    Defaults,
    /// None.
    Refused,
}

impl AnthropicModel {
    /// Returns whether the model is at least of a generation: 4.6, say, or any later one.
    pub(super) fn is_since(&self, version: (u32, u32)) -> bool {
        self.version >= version
    }
}

const FIVE_EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];
const BUDGETED: &[&str] = &["enabled", "disabled"];
const ADAPTIVE: &[&str] = &["adaptive", "disabled"];

/// Claude 4.5 and older: thinking with a budget.
const OLD: AnthropicModel = AnthropicModel {
    family: "",
    version: (0, 0),
    thinking: BUDGETED,
    thinks_by_default: false,
    efforts: &[],
    efforts_that_think: &[],
    takes_prefill: true,
    sampling: Sampling::NotBoth,
    max_tokens: None,
    has_strict: false,
    has_system_role: false,
    takes_forced_choice: true,
};

/// Claude 4.7 and newer: adaptive thinking, no sampling.
const NEW: AnthropicModel = AnthropicModel {
    thinking: ADAPTIVE,
    efforts: FIVE_EFFORTS,
    takes_prefill: false,
    sampling: Sampling::Refused,
    max_tokens: Some(128_000),
    has_strict: true,
    ..OLD
};

/// Claude 4.6, between the two.
const MIDDLE: AnthropicModel = AnthropicModel {
    thinking: &["adaptive", "enabled", "disabled"],
    efforts: &["low", "medium", "high", "max"],
    sampling: Sampling::NotBoth,
    ..NEW
};

/// Models that always think.
const THINKER: AnthropicModel = AnthropicModel {
    thinking: &["adaptive"],
    thinks_by_default: true,
    has_system_role: true,
    takes_forced_choice: false,
    ..NEW
};

const fn row(family: &'static str, version: (u32, u32), model: AnthropicModel) -> AnthropicModel {
    AnthropicModel { family, version, ..model }
}

static MODELS: &[AnthropicModel] = &[
    row("sonnet", (3, 7), AnthropicModel { sampling: Sampling::Any, ..OLD }),
    row("sonnet", (4, 0), AnthropicModel { max_tokens: Some(64_000), ..OLD }),
    row("sonnet", (4, 5), AnthropicModel { max_tokens: Some(64_000), has_strict: true, ..OLD }),
    row("sonnet", (4, 6), MIDDLE),
    row(
        "sonnet",
        (5, 0),
        AnthropicModel {
            thinks_by_default: true,
            sampling: Sampling::Defaults,
            // The role is accepted and ignored.
            has_system_role: true,
            ..NEW
        },
    ),
    row("haiku", (4, 5), AnthropicModel { max_tokens: Some(64_000), has_strict: true, ..OLD }),
    row("opus", (4, 0), AnthropicModel { max_tokens: Some(32_000), ..OLD }),
    row("opus", (4, 1), AnthropicModel { max_tokens: Some(32_000), has_strict: true, ..OLD }),
    row(
        "opus",
        (4, 5),
        AnthropicModel {
            efforts: &["low", "medium", "high"],
            max_tokens: Some(64_000),
            has_strict: true,
            ..OLD
        },
    ),
    row("opus", (4, 6), MIDDLE),
    row("opus", (4, 7), NEW),
    row("opus", (4, 8), AnthropicModel { has_system_role: true, ..NEW }),
    row(
        "opus",
        (5, 0),
        AnthropicModel { has_system_role: true, efforts_that_think: &["xhigh", "max"], ..NEW },
    ),
    row("opus", (5, 5), AnthropicModel { takes_forced_choice: true, ..THINKER }),
    row("fable", (5, 0), THINKER),
    row("mythos", (5, 0), THINKER),
];

/// Finds the row of a model: the newest of its family that is not newer than the model.
pub(super) fn find(name: &str) -> Option<&'static AnthropicModel> {
    let (family, version) = parse(name)?;
    let of_family = || MODELS.iter().filter(move |row| row.family == family);
    match version {
        Some(version) => of_family().rfind(|row| row.version <= version),
        None => of_family().next_back(),
    }
}

/// Splits `claude-opus-4-5-20251101` or `claude-3-7-sonnet-latest` into family and version.
fn parse(name: &str) -> Option<(&str, Option<(u32, u32)>)> {
    let rest = &name[name.find("claude-")? + "claude-".len()..];
    let family =
        rest.split(['-', '@', ':', '.']).find(|part| part.starts_with(|c: char| c.is_ascii_alphabetic()))?;
    let mut numbers = rest
        .split(['-', '@', ':', '.'])
        .filter(|part| part.len() <= 2)
        .map_while(|part| if part == family { Some(None) } else { part.parse().ok().map(Some) });
    let mut numbers = std::iter::from_fn(|| numbers.find_map(|number| number));
    let version = numbers.next().map(|major: u32| (major, numbers.next().unwrap_or(0)));
    Some((family, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_all_their_forms() {
        for (name, expected) in [
            ("claude-opus-4-5-20251101", Some(("opus", Some((4, 5))))),
            ("claude-sonnet-4-20250514", Some(("sonnet", Some((4, 0))))),
            ("claude-sonnet-4-0", Some(("sonnet", Some((4, 0))))),
            ("claude-3-7-sonnet-latest", Some(("sonnet", Some((3, 7))))),
            ("claude-sonnet-5", Some(("sonnet", Some((5, 0))))),
            ("claude-opus-5-5", Some(("opus", Some((5, 5))))),
            ("claude-mythos-preview", Some(("mythos", None))),
            ("anthropic.claude-haiku-4-5-20251001-v1:0", Some(("haiku", Some((4, 5))))),
            ("m", None),
        ] {
            assert_eq!(parse(name), expected, "{name}");
        }
    }

    #[test]
    fn an_unknown_version_has_the_row_before_it() {
        assert_eq!(find("claude-opus-6-2").map(|row| row.version), Some((5, 5)));
        assert_eq!(find("claude-opus-5-1").map(|row| row.version), Some((5, 0)));
        assert_eq!(find("claude-fable-5-1").map(|row| row.version), Some((5, 0)));
        assert!(find("claude-3-5-sonnet-20241022").is_none());
        assert!(find("claude-zephyr-1").is_none());
    }
}
