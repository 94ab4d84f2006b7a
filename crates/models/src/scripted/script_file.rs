//! Reads a script from YAML.
//!
//! A file is a list of replies, or a mapping with `mode` and `replies`. What can be wrong with it is said
//! with line, column and the nearest valid word; nothing unknown is ignored. Anchors, size and depth are
//! limited, as a script may come with a project that nobody has read.
//!
//! This module does not open files: see [`crate::registry`].

use std::fmt;
use std::time::Duration;

use llm_do_core::{ModelErrorKind, Name, StopReason, Usage, nearest};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use serde_saphyr::{Location, MessageFormatter, Options, Spanned, UserMessageFormatter};
use thiserror::Error;

use super::condition::{Condition, contains, instructed, result_of};
use super::reply::{ScriptedReply, asks_all, asks_raw, cut, fails, says, thinks};
use super::script::{Script, ScriptMode};

/// Why a text is not a script.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{message}", location_prefix(*line, *column))]
#[non_exhaustive]
pub struct ScriptFileError {
    /// The line, from 1; 0 where it is not known.
    pub line: u64,
    /// The column, from 1; 0 where it is not known.
    pub column: u64,
    /// What is wrong and, where it can be known, what was meant.
    pub message: String,
}

fn location_prefix(line: u64, column: u64) -> String {
    if line == 0 { String::new() } else { format!("line {line}, column {column}: ") }
}

impl Script {
    /// Reads a script from YAML. The format is described in the documentation of this crate.
    pub fn from_yaml(text: &str) -> Result<Self, ScriptFileError> {
        let file: ScriptFile = serde_saphyr::from_str_with_options(text, options()).map_err(explain)?;
        let replies = file.replies.into_iter().map(|reply| reply_of(reply, file.mode));
        Ok(Self::with_mode(file.mode, replies.collect::<Result<Vec<_>, _>>()?))
    }
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 64,
            max_nodes: 100_000,
            max_anchors: 100,
            max_aliases: 1_000,
            max_recorded_anchor_events: 50_000,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 50_000 },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        reject_unsupported_tags: true,
        emit_comments: false,
        with_snippet: false,
    }
}

fn explain(error: serde_saphyr::Error) -> ScriptFileError {
    misfit(error.location().unwrap_or(Location::UNKNOWN), describe(&error))
}

/// Says in words what the parser or serde refused.
fn describe(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error;
    match error {
        Error::AliasError { error, .. } | Error::WithSnippet { error, .. } => describe(error),
        Error::SerdeUnknownField { field, expected, .. } => unknown("key", field, expected),
        Error::SerdeUnknownVariant { variant, expected, .. } => unknown("word", variant, expected),
        Error::SerdeMissingField { field, .. } => format!("the key `{field}` is missing"),
        Error::InvalidScalar { ty: "u64", .. } => "expected a whole number".to_owned(),
        Error::Unexpected { expected: "mapping start", .. } => "expected a mapping".to_owned(),
        Error::Unexpected { expected: "string scalar", .. } => "expected text".to_owned(),
        Error::Budget { .. } | Error::AliasReplayLimitExceeded { .. } => TOO_LARGE.to_owned(),
        Error::Eof { .. } => "the file is empty".to_owned(),
        other => UserMessageFormatter.format_message(other).into_owned(),
    }
}

const TOO_LARGE: &str = "the file is larger, deeper or more entangled than a script may be";

fn unknown(what: &str, found: &str, expected: &[&str]) -> String {
    match nearest(found, expected.iter().copied()) {
        Some(near) => format!("unknown {what} `{found}`, did you mean `{near}`?"),
        None => format!("unknown {what} `{found}`, expected one of `{}`", expected.join("`, `")),
    }
}

fn misfit(location: Location, message: impl Into<String>) -> ScriptFileError {
    // A key may hold escape sequences, and a message may reach a terminal.
    let message = message.into().replace(char::is_control, "\u{fffd}");
    ScriptFileError { line: location.line(), column: location.column(), message }
}

/// A whole file.
struct ScriptFile {
    mode: ScriptMode,
    replies: Vec<Spanned<FileReply>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptMapping {
    #[serde(default)]
    mode: ScriptMode,
    replies: Vec<Spanned<FileReply>>,
}

// Not an untagged enum: serde would buffer the file and lose every line number.
impl<'de> Deserialize<'de> for ScriptFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScriptFileVisitor)
    }
}

struct ScriptFileVisitor;

impl<'de> Visitor<'de> for ScriptFileVisitor {
    type Value = ScriptFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of replies, or a mapping with `mode` and `replies`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<ScriptFile, A::Error> {
        let replies = Deserialize::deserialize(SeqAccessDeserializer::new(items))?;
        Ok(ScriptFile { mode: ScriptMode::default(), replies })
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<ScriptFile, A::Error> {
        let ScriptMapping { mode, replies } = Deserialize::deserialize(MapAccessDeserializer::new(entries))?;
        Ok(ScriptFile { mode, replies })
    }
}

/// One reply as it is written. Its steps happen in the order of these fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileReply {
    #[serde(default, deserialize_with = "duration")]
    delay: Option<Duration>,
    #[serde(default, deserialize_with = "duration")]
    pace: Option<Duration>,
    think: Option<String>,
    say: Option<String>,
    ask: Option<FileAsks>,
    raw: Option<FileRaw>,
    cut: Option<String>,
    fail: Option<FileFailure>,
    usage: Option<FileUsage>,
    stop: Option<StopReason>,
    when: Option<Spanned<FileCondition>>,
    once: Option<Spanned<bool>>,
}

fn reply_of(file: Spanned<FileReply>, mode: ScriptMode) -> Result<ScriptedReply, ScriptFileError> {
    let Spanned { value: file, referenced: location, .. } = file;
    check_once(&file, mode)?;
    let steps = [
        file.think.map(thinks),
        file.say.map(says),
        file.ask.map(FileAsks::into_reply),
        file.raw.map(|raw| asks_raw(raw.name, raw.text)),
        file.cut.map(cut),
        file.fail.map(FileFailure::into_reply),
    ];
    let content = steps.into_iter().flatten().reduce(ScriptedReply::and);
    let mut reply = content.ok_or_else(|| misfit(location, NO_CONTENT))?;
    if let Some(delay) = file.delay {
        reply = reply.after(delay);
    }
    if let Some(pace) = file.pace {
        reply = reply.paced(pace);
    }
    if let Some(usage) = file.usage {
        reply = reply.using(usage.into());
    }
    if let Some(stop) = file.stop {
        reply = reply.stops(stop);
    }
    if let Some(condition) = file.when {
        reply = reply.when(condition_of(condition)?);
    }
    Ok(if file.once.is_some_and(|once| once.value) { reply.once() } else { reply })
}

const NO_CONTENT: &str = "the reply is empty: give it `say`, `think`, `ask`, `raw`, `cut` or `fail`";

fn check_once(file: &FileReply, mode: ScriptMode) -> Result<(), ScriptFileError> {
    let Some(once) = file.once.as_ref().filter(|once| once.value) else { return Ok(()) };
    if file.when.is_none() {
        return Err(misfit(
            once.referenced,
            "`once` limits a reply with `when`; this one is given once anyway",
        ));
    }
    if mode == ScriptMode::ByTurn {
        return Err(misfit(once.referenced, "`once` cannot be remembered in mode `by_turn`"));
    }
    Ok(())
}

/// Tool calls: `{tool: arguments, ..}` or `[{name: .., arguments: ..}, ..]`.
struct FileAsks(Vec<FileAsk>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileAsk {
    name: Name,
    #[serde(default)]
    arguments: Value,
}

impl FileAsks {
    fn into_reply(self) -> ScriptedReply {
        asks_all(self.0.into_iter().map(|ask| match ask.arguments {
            Value::Null => (ask.name, Value::Object(Map::new())),
            arguments => (ask.name, arguments),
        }))
    }
}

/// Refuses a whole number beyond 64 bits: the reader of YAML has rounded it.
fn check_numbers<E: serde::de::Error>(value: &Value) -> Result<(), E> {
    match value {
        Value::Number(number)
            if number.is_f64() && number.as_f64().is_some_and(|float| float.abs() >= 2_f64.powi(63)) =>
        {
            Err(E::custom(format!("the number {number} does not fit into 64 bits")))
        }
        Value::Array(items) => items.iter().try_for_each(check_numbers),
        Value::Object(map) => map.values().try_for_each(check_numbers),
        _ => Ok(()),
    }
}

impl<'de> Deserialize<'de> for FileAsks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FileAsksVisitor)
    }
}

struct FileAsksVisitor;

impl<'de> Visitor<'de> for FileAsksVisitor {
    type Value = FileAsks;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping from tools to arguments, or a list of calls with `name` and `arguments`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<FileAsks, A::Error> {
        let asks: Vec<FileAsk> = Deserialize::deserialize(SeqAccessDeserializer::new(items))?;
        asks.iter().try_for_each(|ask| check_numbers(&ask.arguments))?;
        Ok(FileAsks(asks))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<FileAsks, A::Error> {
        let mut asks = Vec::new();
        while let Some((name, arguments)) = entries.next_entry()? {
            check_numbers(&arguments)?;
            asks.push(FileAsk { name, arguments });
        }
        Ok(FileAsks(asks))
    }
}

/// A tool call with its argument text as it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRaw {
    name: Name,
    text: String,
}

/// A failure of the provider.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileFailure {
    kind: ModelErrorKind,
    message: String,
    #[serde(default, deserialize_with = "duration")]
    retry_after: Option<Duration>,
}

impl FileFailure {
    fn into_reply(self) -> ScriptedReply {
        let failure = fails(self.kind, self.message);
        match self.retry_after {
            Some(wait) => failure.retry_after(wait),
            None => failure,
        }
    }
}

/// What one request used; what is not given is 0.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileUsage {
    #[serde(default)]
    input: u64,
    #[serde(default)]
    output: u64,
    #[serde(default)]
    cache_read: u64,
    #[serde(default)]
    cache_write: u64,
    #[serde(default)]
    reasoning: u64,
}

impl From<FileUsage> for Usage {
    fn from(file: FileUsage) -> Self {
        let FileUsage { input, output, cache_read, cache_write, reasoning } = file;
        Self { requests: 1, input, output, cache_read, cache_write, reasoning, ..Self::default() }
    }
}

/// The condition of a reply.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileCondition {
    contains: Option<String>,
    result_of: Option<Name>,
    instructions: Option<String>,
}

fn condition_of(file: Spanned<FileCondition>) -> Result<Condition, ScriptFileError> {
    let Spanned { value: file, referenced: location, .. } = file;
    let conditions =
        [file.contains.map(contains), file.result_of.map(result_of), file.instructions.map(instructed)];
    let condition = conditions.into_iter().flatten().reduce(Condition::and);
    condition.ok_or_else(|| misfit(location, "`when` needs `contains`, `result_of` or `instructions`"))
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let duration = parse_duration(&text).ok_or_else(|| {
        D::Error::custom(format!("`{text}` is not a duration: write one such as `200ms`, `1.5s` or `2m`"))
    });
    duration.map(Some)
}

fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let seconds = match unit.trim() {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
}
