//! Tells on stderr what happens, as far as `-v` asks for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use llm_do::{CallResult, Decision, Delta, Event, EventBody, Key, ModelResult, Payload};

use crate::screen::Screen;
use crate::text::{shortened, visible};

/// How much of an input and of a result a line shows.
const SHOWN: usize = 400;

/// Tells what happens.
pub(crate) struct Narration {
    screen: Arc<Screen>,
    level: u8,
    /// Whether whole sentences are told, for those who listen.
    plain: bool,
    /// Streamed text that does not fill a line yet, per call: streams of several calls never mix.
    open: Mutex<HashMap<Key, String>>,
}

impl Narration {
    /// Tells at a level: 0 what a person should know, 1 calls, 2 streamed text, 3 whole requests.
    pub(crate) fn new(screen: Arc<Screen>, level: u8) -> Self {
        Self { screen, level, plain: false, open: Mutex::default() }
    }

    /// Tells calls and results in sentences.
    pub(crate) fn plain(screen: Arc<Screen>, level: u8) -> Self {
        Self { plain: true, ..Self::new(screen, level.max(1)) }
    }

    /// Tells about one event.
    pub(crate) fn tell(&self, event: &Event) {
        match &event.body {
            EventBody::Notice { text } => self.line(event, &format!("notice: {}", indented(text))),
            EventBody::Stderr { text } => self.line(event, &indented(text)),
            _ if self.level == 0 => {}
            EventBody::CallStarted { name, input, .. } if self.plain => {
                self.sentence(&format!("{}: {}", begun(event, name), input_words(input)));
            }
            EventBody::CallStarted { input, .. } => {
                self.line(event, &shortened(input.text(), SHOWN));
            }
            EventBody::CallFinished { name, result, duration_ms, .. } => {
                self.flush(event);
                // The answer itself is printed.
                if self.plain && event.call.path.contains(" > ") {
                    return self.sentence(&ended(name, result, *duration_ms));
                }
                if !self.plain {
                    self.line(event, &format!("{}  {duration_ms} ms", result_words(result)));
                }
            }
            // The question itself follows.
            EventBody::ApprovalRequested(_) if self.plain => {}
            EventBody::ApprovalRequested(request) => {
                self.line(event, &format!("asks: {}", shortened(&request.description, SHOWN)));
            }
            EventBody::ApprovalDecided { decision, .. } => self.decision(event, decision),
            EventBody::ModelResponse { result: ModelResult::Failed { error }, .. } => {
                self.give_up(event);
                self.line(event, &format!("the model failed: {}", visible(&error.to_string())));
            }
            EventBody::ToolProgress(delta) => self.line(event, &shortened(&delta.text, SHOWN)),
            _ if self.level == 1 => {}
            EventBody::TextDelta(delta) => self.streamed(event, delta, ""),
            EventBody::ThinkingDelta(delta) => self.streamed(event, delta, "thinking: "),
            EventBody::ModelResponse { .. } => self.flush(event),
            EventBody::ModelRequest { .. } if self.level > 2 => {
                let request = serde_json::to_string_pretty(&event.body).unwrap_or_default();
                self.line(event, &visible(&request));
            }
            _ => {}
        }
    }

    fn decision(&self, event: &Event, decision: &Decision) {
        match decision {
            Decision::Refuse(failure) => self.line(event, &shortened(&failure.message, SHOWN)),
            Decision::Allow(permit) if permit.edited => {
                self.line(event, &format!("runs with {}", shortened(permit.arguments.text(), SHOWN)));
            }
            Decision::Allow(_) => {}
        }
    }

    /// Passes whole lines on and keeps the rest.
    fn streamed(&self, event: &Event, delta: &Delta, mark: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let text = open.entry(event.call.id.clone()).or_default();
        text.push_str(&delta.text);
        while let Some(end) = text.find('\n') {
            let line: String = text.drain(..=end).collect();
            self.line(event, &format!("{mark}{}", visible(line.trim_end())));
        }
    }

    /// Forgets what an attempt said that failed: the next one says it again.
    fn give_up(&self, event: &Event) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.remove(&event.call.id).is_some() {
            self.line(event, "(the answer broke off)");
        }
    }

    fn flush(&self, event: &Event) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rest) = open.remove(&event.call.id).filter(|rest| !rest.is_empty()) {
            self.line(event, &visible(&rest));
        }
    }

    fn sentence(&self, text: &str) {
        self.screen.line(text);
    }

    fn line(&self, event: &Event, text: &str) {
        if self.plain {
            let who = if event.call.path.is_empty() { "the run" } else { &event.call.path };
            return self.sentence(&format!("{}: {text}", visible(who)));
        }
        let path = match &*event.call.path {
            "" => "run",
            path => path,
        };
        self.screen.line(&format!("{} {text}", self.screen.paint.dim(&format!("[{}]", visible(path)))));
    }
}

fn begun(event: &Event, name: &str) -> String {
    let caller = event.call.path.rsplit(" > ").nth(1);
    match caller {
        Some(caller) => visible(&format!("{caller} calls {name}")),
        None => visible(&format!("{name} begins")),
    }
}

/// What a call was given: a lone text as it is.
fn input_words(input: &Payload) -> String {
    shortened(input.lone_text().unwrap_or(input.text()), SHOWN)
}

fn ended(name: &str, result: &CallResult, milliseconds: u64) -> String {
    let seconds = format!("{:.1} seconds", milliseconds as f64 / 1_000.0);
    match result {
        CallResult::Output(output) => {
            format!("{} is done after {seconds}: {}", visible(name), shortened(&output.to_text(), SHOWN))
        }
        CallResult::Error(failure) => {
            format!("{} failed after {seconds}: {}", visible(name), shortened(&failure.message, SHOWN))
        }
    }
}

/// A text of several lines, none of which looks like a line of this program.
fn indented(text: &str) -> String {
    visible(text).replace('\n', "\n    ")
}

fn result_words(result: &CallResult) -> String {
    match result {
        CallResult::Output(output) => format!("-> {}", shortened(&output.to_text(), SHOWN)),
        CallResult::Error(failure) => format!("failed: {}", shortened(&failure.message, SHOWN)),
    }
}
