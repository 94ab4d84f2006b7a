//! How long a provider asks to wait, in every form in which providers say it.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde_json::Value;

use super::errors::Headers;
use super::json::text;

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
    milliseconds.or_else(in_header).or_else(|| in_details(body))
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
