//! Makes the smallest texts and numbers that keywords of a JSON Schema permit.
//!
//! Values that nest are made in [`super`].

use llm_do_core::Schema;
use serde_json::{Map, Value, json};

use super::pattern::sample;

/// No text or list is made longer than this.
pub(crate) const MAX_LENGTH: usize = 10_000;

/// The keywords of one schema.
pub(crate) type Keywords = Map<String, Value>;

/// Returns the length that a keyword sets, bounded.
pub(crate) fn length(keywords: &Keywords, key: &str) -> Option<usize> {
    let length = keywords.get(key)?.as_f64()?;
    // A cast from a float saturates, so that no length is out of range.
    Some((length as usize).min(MAX_LENGTH))
}

/// Returns a text: one that matches the pattern or has the format, else as short as it may be.
pub(crate) fn text(keywords: &Keywords) -> String {
    let pattern = keywords.get("pattern").and_then(Value::as_str);
    let matching = pattern.and_then(|pattern| matching_text(pattern, keywords));
    let format = keywords.get("format").and_then(Value::as_str);
    matching.or_else(|| format.and_then(formatted).map(str::to_owned)).unwrap_or_else(|| {
        let least = length(keywords, "minLength").unwrap_or(1).max(1);
        "a".repeat(least.min(length(keywords, "maxLength").unwrap_or(least)))
    })
}

fn matching_text(pattern: &str, keywords: &Keywords) -> Option<String> {
    let least = length(keywords, "minLength").unwrap_or(0);
    let check = only(keywords, &["pattern", "minLength", "maxLength"])?;
    let mut samples = [1, 0, least as u32].into_iter().filter_map(|repeat| sample(pattern, repeat));
    samples.find(|text| check.fits(&json!(text)))
}

fn formatted(format: &str) -> Option<&'static str> {
    Some(match format {
        "date" => "2000-01-01",
        "date-time" => "2000-01-01T00:00:00Z",
        "time" => "00:00:00Z",
        "duration" => "PT1S",
        "email" | "idn-email" => "a@example.com",
        "hostname" | "idn-hostname" => "example.com",
        "ipv4" => "127.0.0.1",
        "ipv6" => "::1",
        "uri" | "iri" | "url" => "https://example.com/",
        "uri-reference" | "iri-reference" => "/a",
        "uuid" => "00000000-0000-0000-0000-000000000000",
        "json-pointer" => "/a",
        _ => return None,
    })
}

/// Which numbers are wanted.
#[derive(Clone, Copy)]
pub(crate) enum Rounding {
    Whole,
    None,
}

/// Returns the first of some likely numbers that fits: the lower bound, zero, the upper bound, their middle.
pub(crate) fn number(keywords: &Keywords, rounding: Rounding) -> Value {
    let bound = |key: &str| keywords.get(key).and_then(Value::as_f64);
    let low = bound("minimum").or(bound("exclusiveMinimum"));
    let high = bound("maximum").or(bound("exclusiveMaximum"));
    let middle = low.zip(high).map(|(low, high)| f64::midpoint(low, high));
    let above = bound("exclusiveMinimum").map(|low| low + 1.0);
    let below = bound("exclusiveMaximum").map(|high| high - 1.0);
    let step = bound("multipleOf").unwrap_or(1.0);
    let likely = [low, above, Some(0.0), high, below, middle].into_iter().flatten();
    let aligned = likely.flat_map(|n| [n, (n / step).ceil() * step, (n / step).floor() * step]);
    let mut candidates = aligned.map(|n| as_json(n, rounding));
    let check = only(keywords, &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]);
    candidates.find(|n| check.as_ref().is_some_and(|check| check.fits(n))).unwrap_or(json!(0))
}

fn as_json(number: f64, rounding: Rounding) -> Value {
    match rounding {
        Rounding::Whole => json!(number.ceil() as i64),
        Rounding::None => json!(number),
    }
}

/// Compiles a schema of some of the keywords, to check a guess.
fn only(keywords: &Keywords, names: &[&str]) -> Option<Schema> {
    let kept = names.iter().filter_map(|name| Some(((*name).to_owned(), keywords.get(*name)?.clone())));
    Schema::new(Value::Object(kept.collect())).ok()
}
