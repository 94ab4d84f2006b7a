//! What each OpenAI model accepts.

/// A row of the table of models.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OpenAiModel {
    name: &'static str,
    /// The accepted efforts; none if the parameter is refused.
    pub(super) efforts: &'static [&'static str],
    /// The effort of a request that names none; nothing if the model does not reason.
    pub(super) default_effort: Option<&'static str>,
    /// Whether `stop` is accepted.
    pub(super) takes_stop: bool,
    /// Whether Chat Completions refuses functions while the model reasons.
    pub(super) chat_tools_need_none: bool,
}

impl OpenAiModel {
    pub(super) fn reasons(&self) -> bool {
        self.default_effort.is_some()
    }

    /// Returns whether `temperature: 1` passes while the model reasons: on the o-series and gpt-5.
    pub(super) fn passes_default_temperature(&self) -> bool {
        self.name.starts_with('o') || self.name == "gpt-5" || self.name.starts_with("gpt-5-")
    }
}

const LOW_TO_HIGH: &[&str] = &["low", "medium", "high"];
const LOW_TO_XHIGH: &[&str] = &["low", "medium", "high", "xhigh"];
const NONE_TO_HIGH: &[&str] = &["none", "low", "medium", "high"];
const NONE_TO_XHIGH: &[&str] = &["none", "low", "medium", "high", "xhigh"];
const NONE_TO_MAX: &[&str] = &["none", "low", "medium", "high", "xhigh", "max"];
const MEDIUM_TO_XHIGH: &[&str] = &["medium", "high", "xhigh"];

const fn reasoning(
    name: &'static str,
    efforts: &'static [&'static str],
    default_effort: &'static str,
) -> OpenAiModel {
    let default_effort = Some(default_effort);
    OpenAiModel { name, efforts, default_effort, takes_stop: false, chat_tools_need_none: false }
}

/// A model that takes `stop` although it reasons.
const fn early(name: &'static str, efforts: &'static [&'static str]) -> OpenAiModel {
    OpenAiModel { takes_stop: true, ..reasoning(name, efforts, "medium") }
}

/// A model from gpt-5.4 on.
const fn recent(
    name: &'static str,
    efforts: &'static [&'static str],
    default_effort: &'static str,
) -> OpenAiModel {
    OpenAiModel { chat_tools_need_none: true, ..reasoning(name, efforts, default_effort) }
}

const fn plain(name: &'static str) -> OpenAiModel {
    OpenAiModel { name, efforts: &[], default_effort: None, takes_stop: true, chat_tools_need_none: false }
}

/// Names are prefixes that end at a hyphen or at the end; the longest that fits is the row of a model.
static MODELS: &[OpenAiModel] = &[
    plain("gpt-3.5"),
    plain("gpt-4"),
    plain("gpt-4o"),
    plain("gpt-4.1"),
    plain("gpt-4.5"),
    plain("chatgpt-4o"),
    early("o1", LOW_TO_HIGH),
    early("o1-mini", &[]),
    early("o1-preview", &[]),
    reasoning("o3", LOW_TO_HIGH, "medium"),
    early("o3-mini", LOW_TO_HIGH),
    reasoning("o4", LOW_TO_HIGH, "medium"),
    reasoning("codex-mini", LOW_TO_HIGH, "medium"),
    reasoning("gpt-5", &["minimal", "low", "medium", "high"], "medium"),
    plain("gpt-5-chat"),
    reasoning("gpt-5-pro", &["high"], "high"),
    reasoning("gpt-5-codex", LOW_TO_HIGH, "medium"),
    reasoning("gpt-5.1", NONE_TO_HIGH, "none"),
    reasoning("gpt-5.1-chat", &["medium"], "medium"),
    reasoning("gpt-5.1-codex", LOW_TO_HIGH, "medium"),
    reasoning("gpt-5.1-codex-max", LOW_TO_XHIGH, "medium"),
    reasoning("gpt-5.2", NONE_TO_XHIGH, "none"),
    reasoning("gpt-5.2-chat", &["medium"], "medium"),
    reasoning("gpt-5.2-codex", LOW_TO_XHIGH, "medium"),
    reasoning("gpt-5.2-pro", MEDIUM_TO_XHIGH, "medium"),
    reasoning("gpt-5.3-chat", &["medium"], "medium"),
    reasoning("gpt-5.3-codex", NONE_TO_XHIGH, "medium"),
    recent("gpt-5.4", NONE_TO_XHIGH, "none"),
    recent("gpt-5.4-pro", MEDIUM_TO_XHIGH, "high"),
    recent("gpt-5.5", NONE_TO_XHIGH, "medium"),
    recent("gpt-5.5-pro", LOW_TO_XHIGH, "medium"),
    recent("gpt-5.6", NONE_TO_MAX, "medium"),
    recent("gpt-6", NONE_TO_MAX, "medium"),
    recent("gpt-6.1", NONE_TO_MAX, "medium"),
];

/// Finds the row of a model; for an unknown version the newest of its family.
pub(super) fn find(name: &str) -> Option<&'static OpenAiModel> {
    let name = name.strip_prefix("ft:").unwrap_or(name).trim_start_matches("openai/");
    let fits = |row: &&OpenAiModel| {
        name.strip_prefix(row.name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':', '@']))
    };
    MODELS.iter().filter(fits).max_by_key(|row| row.name.len()).or_else(|| newest_of_family(name))
}

fn newest_of_family(name: &str) -> Option<&'static OpenAiModel> {
    let follows = |prefix: &str, least: u32| {
        let digits: String = name.strip_prefix(prefix)?.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok().filter(|version: &u32| *version >= least)
    };
    let newest = |family: &str| MODELS.iter().rfind(|row| row.name.starts_with(family));
    match (follows("gpt-", 5), follows("o", 5)) {
        (Some(5), _) => MODELS.iter().find(|row| row.name == "gpt-5.6"),
        (Some(_), _) => newest("gpt-6"),
        (_, Some(_)) => newest("o4"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_that_fits_is_found() {
        for (name, expected) in [
            ("gpt-5", "gpt-5"),
            ("gpt-5-mini-2025-08-07", "gpt-5"),
            ("gpt-5-chat-latest", "gpt-5-chat"),
            ("gpt-5.1-codex-max", "gpt-5.1-codex-max"),
            ("gpt-5.1-codex-mini", "gpt-5.1-codex"),
            ("gpt-5.4-mini", "gpt-5.4"),
            ("gpt-5.6-sol", "gpt-5.6"),
            ("gpt-5.9", "gpt-5.6"),
            ("gpt-6.1-terra", "gpt-6.1"),
            ("gpt-7", "gpt-6.1"),
            ("o4-mini", "o4"),
            ("o5", "o4"),
            ("gpt-4o-mini", "gpt-4o"),
            ("ft:gpt-4.1-nano:acme", "gpt-4.1"),
        ] {
            assert_eq!(find(name).map(|row| row.name), Some(expected), "{name}");
        }
        assert_eq!(find("m"), None);
        assert_eq!(find("gpt-oss-120b"), None);
    }
}
