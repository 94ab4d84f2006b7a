//! The trace: the tree of calls, read from events.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use llm_do_core::{CallKind, CallResult, Event, EventBody, Failure, Key, Output, Payload, Usage};

/// How much of an input or output a printed line shows.
const SHOWN: usize = 60;

/// The calls of a run as a tree. Every call stands in it exactly once, whoever made it, refused ones included.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// The calls that the root made.
    pub calls: Vec<TraceCall>,
}

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceCall {
    /// Its key.
    pub key: Key,
    /// What was called.
    pub kind: CallKind,
    /// Its name.
    pub name: String,
    /// How many agents stand on its path.
    pub depth: u32,
    /// What it was given.
    pub input: Payload,
    /// What it gave.
    pub output: Option<Output>,
    /// Why it failed.
    pub error: Option<Failure>,
    /// How long it took; none while it runs, or where it was broken off.
    pub duration_ms: Option<u64>,
    /// What it and everything below it used.
    pub usage: Usage,
    /// The calls that it made, in the order of their start.
    pub calls: Vec<TraceCall>,
}

impl Trace {
    /// Builds the trace from events.
    pub fn of(events: &[Arc<Event>]) -> Self {
        let mut flat: Vec<(Option<Key>, TraceCall)> = Vec::new();
        let mut places: HashMap<Key, usize> = HashMap::new();
        for event in events {
            match &event.body {
                EventBody::CallStarted { kind, name, input, .. } => {
                    places.insert(event.call.id.clone(), flat.len());
                    flat.push((event.call.parent.clone(), started(event, *kind, name, input)));
                }
                EventBody::CallFinished { result, duration_ms, usage, .. } => {
                    if let Some((_, call)) = places.get(&event.call.id).and_then(|place| flat.get_mut(*place))
                    {
                        call.finish(result, *duration_ms, *usage);
                    }
                }
                _ => {}
            }
        }
        Self { calls: nest(flat) }
    }

    /// Returns all calls, callers before what they called.
    pub fn iter(&self) -> impl Iterator<Item = &TraceCall> {
        let mut open: Vec<&TraceCall> = self.calls.iter().rev().collect();
        std::iter::from_fn(move || {
            let call = open.pop()?;
            open.extend(call.calls.iter().rev());
            Some(call)
        })
    }

    /// Returns the printed lines below one call.
    pub(crate) fn lines_below(&self, key: &Key) -> Vec<String> {
        let calls =
            self.iter().find(|call| call.key == *key).map(|call| call.calls.clone()).unwrap_or_default();
        Self { calls }.to_string().lines().map(str::to_owned).collect()
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
        duration_ms: None,
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

/// Hangs each call below its caller. A caller starts before what it calls, so from the back every call is
/// complete when it is hung up.
fn nest(flat: Vec<(Option<Key>, TraceCall)>) -> Vec<TraceCall> {
    let places: HashMap<Key, usize> =
        flat.iter().enumerate().map(|(place, (_, call))| (call.key.clone(), place)).collect();
    let (parents, mut calls): (Vec<_>, Vec<_>) =
        flat.into_iter().map(|(parent, call)| (parent, Some(call))).unzip();
    let mut roots = Vec::new();
    for place in (0..calls.len()).rev() {
        let Some(mut call) = calls[place].take() else { continue };
        call.calls.reverse();
        let parent = parents[place].as_ref().and_then(|key| places.get(key));
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
    writeln!(f, "{first}{}", line(call))?;
    for (index, child) in call.calls.iter().enumerate() {
        let last = index + 1 == call.calls.len();
        let (branch, below) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        write_call(f, child, &format!("{rest}{branch}"), &format!("{rest}{below}"))?;
    }
    Ok(())
}

fn line(call: &TraceCall) -> String {
    let result = match (&call.output, &call.error) {
        (Some(output), _) => format!("-> {}", shown(&output.to_text())),
        (None, Some(failure)) => format!("!! {}", shown(&failure.message)),
        (None, None) => "broken off".to_owned(),
    };
    let usage = match call.usage.requests {
        0 => String::new(),
        requests => format!("  [{requests} {}, {} tokens]", plural(requests, "request"), call.usage.tokens()),
    };
    let time = call.duration_ms.map(|ms| format!("  {ms} ms")).unwrap_or_default();
    format!("{} {} {}  {result}{usage}{time}", call.kind.word(), call.name, shown(call.input.text()))
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
