//! Passwords in configuration files of known formats.

use crate::file_name::ConfigFormat;
use crate::placeholder::is_harmless_value;

/// Returns whether a configuration file holds a password, token or key.
pub(crate) fn has_password(format: ConfigFormat, content: &str) -> bool {
    let content = content.strip_prefix('\u{feff}').unwrap_or(content);
    let lines = || content.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    match format {
        ConfigFormat::Dotenv => lines().filter_map(dotenv_value).any(|value| !is_harmless_value(value)),
        ConfigFormat::Npmrc => has_value(lines(), &["_authToken", "_auth", "_password", "npmAuthToken"]),
        ConfigFormat::Pypirc => has_value(lines(), &["password"]) || lines().any(has_url_password),
        ConfigFormat::PipConf => lines().any(has_url_password),
        ConfigFormat::Git => lines().any(|line| has_login(line) || is_authorization(line)),
    }
}

/// Returns the value of a line such as `export NAME="value" # comment`, `set NAME=value` or `NAME: value`.
fn dotenv_value(line: &str) -> Option<&str> {
    let (name, value) = line.split_once('=').or_else(|| line.split_once(": "))?;
    let keyword = |word: &str| Some(name.strip_prefix(word)?.strip_prefix(char::is_whitespace)?.trim());
    let name = keyword("export").or_else(|| keyword("set")).unwrap_or(name.trim());
    let is_name = !name.is_empty() && name.chars().all(|ch| ch.is_alphanumeric() || "_.-".contains(ch));
    is_name.then(|| unquoted(value))
}

/// Returns a value without quotes; without them, up to a comment.
fn unquoted(value: &str) -> &str {
    let value = value.trim();
    for quote in ['"', '\'', '`'] {
        if let Some(inner) = value.strip_prefix(quote) {
            // A value of several lines has its closing quote on another line.
            return inner.split(quote).next().unwrap_or(inner);
        }
    }
    value.split(" #").next().unwrap_or(value).trim_end()
}

/// Returns whether a line gives one of these keys a value: `//host/:_authToken=value`, `password: value`.
fn has_value<'a>(lines: impl Iterator<Item = &'a str>, keys: &[&str]) -> bool {
    let value = |line: &'a str| {
        let at = line.find(['=']).or_else(|| line.rfind(": "))?;
        let (key, value) = line.split_at(at);
        let key = key.trim().rsplit(':').next().unwrap_or_default().trim_matches('"');
        keys.contains(&key).then(|| unquoted(&value[1..]))
    };
    lines.filter_map(value).any(|value| !is_harmless_value(value))
}

/// Returns whether a line has an address with a user and a password. git often has an address with a user alone.
fn has_login(line: &str) -> bool {
    let has_password = |rest: &str| {
        let authority = rest.split(['/', ' ', '"']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    };
    has_url_password(line) && line.split("://").skip(1).any(has_password)
}

/// Returns whether a line makes git send a header with a login: `extraHeader = Authorization: Basic ..`.
fn is_authorization(line: &str) -> bool {
    let line = line.to_lowercase();
    line.starts_with("extraheader") && line.contains("authorization")
}

/// Returns whether a line has an address with a password: `https://user:password@host/`.
fn has_url_password(line: &str) -> bool {
    let addresses = line.split("://").skip(1);
    let password = |rest: &str| {
        let authority = rest.split(['/', ' ', '"', '\'']).next()?;
        let (user, _) = authority.rsplit_once('@')?;
        let secret = user.split_once(':').map_or(user, |(_, password)| password);
        Some(!is_harmless_value(secret))
    };
    addresses.into_iter().filter_map(password).any(|is_secret| is_secret)
}
