//! Patterns of model names, by which the tables of this crate tell families of models apart.

/// Returns whether a model fits one of the patterns, wherever it is hosted.
pub(crate) fn is_one_of(model: &str, patterns: &[&str]) -> bool {
    let plain = plain_name(&model.to_lowercase());
    patterns.iter().any(|pattern| matches(&plain, pattern))
}

/// Returns the name of a model without who made or tuned it, and as its maker spells it: `anthropic/claude-opus-4.5`
/// becomes `claude-opus-4-5`.
pub(crate) fn plain_name(model: &str) -> String {
    let last = model.rsplit('/').next().unwrap_or(model);
    let name = last.strip_prefix("ft:").unwrap_or(last);
    if name.starts_with("claude") { name.replace('.', "-") } else { name.to_owned() }
}

/// Returns whether a text fits a pattern with `*` for anything.
pub(crate) fn matches(text: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return text == pattern };
    let Some(text) = text.strip_prefix(start) else { return false };
    if rest.is_empty() {
        return true;
    }
    text.char_indices().any(|(at, _)| matches(&text[at..], rest)) || matches("", rest)
}
