//! Placeholders: values that are written where a secret belongs, and are not secret.

/// What a person writes into a token that is only an example. Long enough not to occur in random characters.
const EXAMPLES: &[&str] = &[
    "example",
    "xxxxx",
    "changeme",
    "placeholder",
    "redacted",
    "your-",
    "your_",
    "abcdefgh",
    "12345678",
    "00000000",
];

/// What values begin with that have to be replaced.
const TO_REPLACE: &[&str] = &[
    "changeme",
    "change-me",
    "change_me",
    "change me",
    "your-",
    "your_",
    "your ",
    "yourkey",
    "xxx",
    "placeholder",
    "replace",
    "insert-",
    "insert_",
    "dummy",
    "redacted",
    "todo",
    "example",
    "...",
    "***",
];

/// Values of configuration files that are not secret, though they are long enough.
const ORDINARY: &[&str] = &[
    "password",
    "development",
    "production",
    "localhost",
    "127.0.0.1",
    "information",
    "postgres",
    "username",
];

/// Returns whether the random part of a token was written by a person, as in documentation.
pub(crate) fn is_placeholder(body: &str) -> bool {
    let lower = body.to_ascii_lowercase();
    EXAMPLES.iter().any(|part| lower.contains(part)) || distinct(&lower) < 6
}

/// Returns whether a value of a configuration file is not a secret: empty, short, a placeholder or a reference.
pub(crate) fn is_harmless_value(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let is_reference = ["${", "$(", "<", "{{", "%("].iter().any(|start| value.starts_with(start))
        || (value.starts_with('$') && value[1..].chars().all(|ch| ch.is_ascii_alphanumeric() || ch == '_'));
    value.chars().count() < 8
        || is_reference
        || ORDINARY.contains(&lower.as_str())
        || is_loopback(&lower)
        || TO_REPLACE.iter().any(|start| lower.starts_with(start))
        || distinct(&lower) < 3
}

/// Returns whether a value is an address of this machine without a password.
fn is_loopback(value: &str) -> bool {
    let Some((_, rest)) = value.split_once("://") else { return false };
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    let is_plain = !host.contains('@') && !rest.contains('?');
    is_plain && ["localhost", "127.0.0.1", "0.0.0.0", "[::1]"].iter().any(|name| host.starts_with(name))
}

fn distinct(text: &str) -> usize {
    let mut seen = [false; 256];
    text.bytes().for_each(|byte| seen[usize::from(byte)] = true);
    seen.iter().filter(|seen| **seen).count()
}
