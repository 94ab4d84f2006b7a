//! How long a provider asks to wait, in every form in which providers say it.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde_json::Value;

use super::Headers;
use crate::wire::json::text;

/// Reads the headers, or else the body. What cannot be read, or is negative, says nothing.
///
/// A wait that is too long to be written down is as long as a wait can be, so that nobody tries at once.
pub(super) fn retry_after(header: &Headers<'_>, body: &Value, now: Timestamp) -> Option<Duration> {
    let milliseconds = header("retry-after-ms").and_then(|value| seconds(value, 1_000.0));
    // One host rounds it down to 0 and then asks for a second.
    let milliseconds = milliseconds.filter(|wait| !wait.is_zero());
    let in_header = || {
        let value = header("retry-after")?.trim();
        seconds(value, 1.0).or_else(|| until(value, header("date"), now))
    };
    milliseconds.or_else(in_header).or_else(|| in_details(body)).or_else(|| in_message(body))
}

fn seconds(value: &str, per_second: f64) -> Option<Duration> {
    let number: f64 = value.trim().parse().ok()?;
    if number.is_nan() || number < 0.0 {
        return None;
    }
    Some(Duration::try_from_secs_f64(number / per_second).unwrap_or(Duration::MAX))
}

/// Reads a date. The provider's own clock, where it tells the time, counts more than ours.
fn until(value: &str, date: Option<&str>, now: Timestamp) -> Option<Duration> {
    let then = http_date(value)?;
    let now = date.and_then(http_date).unwrap_or(now);
    Some(Duration::try_from(then.duration_since(now)).unwrap_or(Duration::ZERO))
}

fn http_date(value: &str) -> Option<Timestamp> {
    rfc2822::parse(value.trim()).ok().map(|date| date.timestamp())
}

/// Finds Gemini's `retryDelay`, such as `48s`.
fn in_details(body: &Value) -> Option<Duration> {
    let details = body.get(0).unwrap_or(body).pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|detail| text(detail, "retryDelay"))?;
    seconds(delay.strip_suffix('s')?, 1.0)
}

/// Finds a wait in the message, such as `Please try again in 1m2.5s`: in streams OpenAI names it nowhere else.
fn in_message(body: &Value) -> Option<Duration> {
    let body = body.get(0).unwrap_or(body);
    let error = body.get("error").unwrap_or(body);
    let message = error.as_str().or_else(|| text(error, "message"))?.to_lowercase();
    let (_, rest) = message.split_once("try again in ")?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len());
    compound(rest[..end].trim_end_matches('.'))
}

/// Reads a duration such as `6m0s`, `11.054s` or `20ms`.
fn compound(text: &str) -> Option<Duration> {
    let mut total = None;
    let mut rest = text;
    while !rest.is_empty() {
        let number = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let unit_end =
            rest[number..].find(|c: char| !c.is_ascii_alphabetic()).map_or(rest.len(), |end| number + end);
        let per_second = match &rest[number..unit_end] {
            "ms" => 1_000.0,
            "s" => 1.0,
            "m" => 1.0 / 60.0,
            "h" => 1.0 / 3_600.0,
            _ => return None,
        };
        total = Some(total.unwrap_or(Duration::ZERO).saturating_add(seconds(&rest[..number], per_second)?));
        rest = &rest[unit_end..];
    }
    total
}
