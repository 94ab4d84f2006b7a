//! The trace: the tree of calls, read from events.
//!
//! The calls of a run form a tree. [`Trace::from_events`] builds it; iterating over it visits callers before the calls
//! they made.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::{CallKind, CallResult, Event, EventBody, Failure, Key, Output, Payload, Usage};

/// How much of an input or output a printed line shows.
const SHOWN: usize = 60;

/// The calls of a run as a tree. It holds every call exactly once, whoever made it, refused ones included.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
#[non_exhaustive]
pub struct Trace {
    /// The calls that the root made.
    pub calls: Vec<TraceCall>,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TraceCall {
    /// Its key.
    pub key: Key,
    /// What was called.
    pub kind: CallKind,
    /// Its name.
    pub name: String,
    /// The number of agents on its path.
    pub depth: u32,
    /// What it was given.
    pub input: Payload,
    /// What it gave.
    pub output: Option<Output>,
    /// Why it failed.
    pub error: Option<Failure>,
    /// Whether it has no end yet because nobody has answered a question about it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_answer: bool,
    /// How long it took; `None` while it runs, or if it was interrupted.
    pub duration_ms: Option<u64>,
    /// How long it ran, over restarts and without what it waited for people, if its time is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran_ms: Option<u64>,
    /// What it and everything below it used.
    pub usage: Usage,
    /// The calls that it made, in the order of their start.
    pub calls: Vec<TraceCall>,
}

impl Trace {
    /// Builds the trace from events.
    pub fn from_events(events: &[Arc<Event>]) -> Self {
        let mut flat: Vec<(Option<Key>, TraceCall)> = Vec::new();
        let mut indices: HashMap<Key, usize> = HashMap::new();
        // The questions that are open, and the calls that ask them.
        let mut questions: HashMap<Key, Key> = HashMap::new();
        for event in events {
            match &event.body {
                EventBody::CallStarted { kind, name, input, .. } => {
                    indices.insert(event.call.id.clone(), flat.len());
                    flat.push((event.call.parent.clone(), started(event, *kind, name, input)));
                }
                EventBody::CallFinished { result, duration_ms, ran_ms, usage, .. } => {
                    let index = indices.get(&event.call.id);
                    if let Some((_, call)) = index.and_then(|index| flat.get_mut(*index)) {
                        call.finish(result, *duration_ms, *usage);
                        call.ran_ms = *ran_ms;
                    }
                }
                EventBody::ApprovalRequested(request) => {
                    questions.insert(request.id.clone(), event.call.id.clone());
                }
                EventBody::ApprovalDecided { id, .. } => drop(questions.remove(id)),
                _ => {}
            }
        }
        for call in questions.values() {
            if let Some((_, call)) = indices.get(call).and_then(|index| flat.get_mut(*index)) {
                call.waits_for_answer = call.duration_ms.is_none();
            }
        }
        Self { calls: nest(flat) }
    }

    /// Iterates over all calls, callers before the calls they made.
    pub fn iter(&self) -> TraceIter<'_> {
        TraceIter(self.calls.iter().rev().collect())
    }

    /// Returns the calls that one call made, as a trace of their own.
    #[must_use]
    pub fn below(&self, key: &Key) -> Self {
        let calls = self.iter().find(|call| call.key == *key).map(|call| call.calls.clone());
        Self { calls: calls.unwrap_or_default() }
    }
}

/// Iterates over the calls of a [`Trace`], callers before the calls they made.
#[derive(Debug, Clone)]
pub struct TraceIter<'a>(Vec<&'a TraceCall>);

impl<'a> Iterator for TraceIter<'a> {
    type Item = &'a TraceCall;

    fn next(&mut self) -> Option<Self::Item> {
        let call = self.0.pop()?;
        self.0.extend(call.calls.iter().rev());
        Some(call)
    }
}

impl<'a> IntoIterator for &'a Trace {
    type Item = &'a TraceCall;
    type IntoIter = TraceIter<'a>;

    fn into_iter(self) -> TraceIter<'a> {
        self.iter()
    }
}

/// Iterates over the calls of a [`Trace`] by value, each with the calls below it.
#[derive(Debug, Clone)]
pub struct TraceIntoIter(Vec<TraceCall>);

impl Iterator for TraceIntoIter {
    type Item = TraceCall;

    fn next(&mut self) -> Option<TraceCall> {
        let call = self.0.pop()?;
        self.0.extend(call.calls.iter().rev().cloned());
        Some(call)
    }
}

impl IntoIterator for Trace {
    type Item = TraceCall;
    type IntoIter = TraceIntoIter;

    fn into_iter(mut self) -> TraceIntoIter {
        self.calls.reverse();
        TraceIntoIter(self.calls)
    }
}

fn started(event: &Event, kind: CallKind, name: &str, input: &Payload) -> TraceCall {
    TraceCall {
        key: event.call.id.clone(),
        kind,
        name: name.to_owned(),
        depth: event.call.depth,
        input: input.clone(),
        output: None,
        error: None,
        waits_for_answer: false,
        duration_ms: None,
        ran_ms: None,
        usage: Usage::default(),
        calls: Vec::new(),
    }
}

impl TraceCall {
    fn finish(&mut self, result: &CallResult, duration_ms: u64, usage: Usage) {
        match result {
            CallResult::Output(output) => self.output = Some(output.clone()),
            CallResult::Error(failure) => self.error = Some(failure.clone()),
        }
        self.duration_ms = Some(duration_ms);
        self.usage = usage;
    }
}

/// Puts each call below its caller. A caller starts before the calls it makes, so in reverse order every call is
/// complete when it is moved to its caller.
fn nest(flat: Vec<(Option<Key>, TraceCall)>) -> Vec<TraceCall> {
    let indices: HashMap<Key, usize> =
        flat.iter().enumerate().map(|(index, (_, call))| (call.key.clone(), index)).collect();
    let (parents, mut calls): (Vec<_>, Vec<_>) =
        flat.into_iter().map(|(parent, call)| (parent, Some(call))).unzip();
    let mut roots = Vec::new();
    for index in (0..calls.len()).rev() {
        let Some(mut call) = calls[index].take() else { continue };
        call.calls.reverse();
        let parent = parents[index].as_ref().and_then(|key| indices.get(key));
        match parent.and_then(|parent| calls[*parent].as_mut()) {
            Some(parent) => parent.calls.push(call),
            None => roots.push(call),
        }
    }
    roots.reverse();
    roots
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.calls.iter().try_for_each(|call| write_call(f, call, "", ""))
    }
}

fn write_call(f: &mut fmt::Formatter<'_>, call: &TraceCall, first: &str, rest: &str) -> fmt::Result {
    writeln!(f, "{first}{call}")?;
    for (index, child) in call.calls.iter().enumerate() {
        let last = index + 1 == call.calls.len();
        let (branch, below) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        write_call(f, child, &format!("{rest}{branch}"), &format!("{rest}{below}"))?;
    }
    Ok(())
}

/// One line: kind, name, input, result, usage and time, each cut to a readable length.
impl fmt::Display for TraceCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}  ", self.kind, self.name, shown(self.input.text()))?;
        match (&self.output, &self.error) {
            (Some(output), _) => write!(f, "-> {}", shown(&output.to_text()))?,
            (None, Some(failure)) => write!(f, "!! {}", shown(&failure.message))?,
            (None, None) if self.waits_for_answer => f.write_str("waits for an answer")?,
            (None, None) => f.write_str("not finished")?,
        }
        if self.usage.requests > 0 {
            let requests = self.usage.requests;
            write!(f, "  [{requests} {}, {} tokens]", plural(requests, "request"), self.usage.tokens())?;
        }
        self.duration_ms.map_or(Ok(()), |ms| write!(f, "  {ms} ms"))
    }
}

fn plural(count: u64, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

/// Cuts a text to one short line and makes control characters visible.
fn shown(text: &str) -> String {
    let mut line: String = text.chars().take(SHOWN).flat_map(visible).collect();
    if text.chars().nth(SHOWN).is_some() {
        line.push_str("..");
    }
    line
}

fn visible(character: char) -> Vec<char> {
    let hidden = character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    if hidden { character.escape_default().collect() } else { vec![character] }
}
