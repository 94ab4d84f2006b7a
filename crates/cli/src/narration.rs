//! Tells on stderr what happens, as far as `-v` asks for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use llm_do::Payload;
use llm_do::approval::Decision;
use llm_do::call::CallResult;
use llm_do::event::{Delta, Event, EventBody, ModelResult};
use llm_do::value::Key;

use crate::screen::Screen;
use crate::text::{printable, shortened, visible};
use crate::words::Words;

/// How much of an input and of a result a line shows.
const SHOWN: usize = 400;

/// Tells what happens.
pub(crate) struct Narration {
    screen: Arc<Screen>,
    level: u8,
    /// The words of agents, where whole sentences are told for those who listen.
    message: Option<Mutex<Words>>,
    /// Streamed text that does not fill a line yet, per call: streams of several calls never mix.
    open: Mutex<HashMap<Key, String>>,
}

impl Narration {
    /// Tells at a level: 0 what a person should know, 1 calls, 2 streamed text, 3 whole requests.
    pub(crate) fn new(screen: Arc<Screen>, level: u8) -> Self {
        Self { screen, level, message: None, open: Mutex::default() }
    }

    /// Tells in sentences what agents say, what they call, and what comes of it.
    pub(crate) fn plain(screen: Arc<Screen>, level: u8) -> Self {
        Self { message: Some(Mutex::default()), ..Self::new(screen, level.max(1)) }
    }

    /// Tells about one event.
    pub(crate) fn tell(&self, event: &Event) {
        if self.message.as_ref().is_some_and(|message| self.told_in_sentences(event, message)) {
            return;
        }
        match &event.body {
            EventBody::Notice { text } => self.line(event, &format!("notice: {}", indented(text))),
            EventBody::Stderr { text } => self.line(event, &indented(text)),
            _ if self.level == 0 => {}
            EventBody::CallStarted { input, .. } => {
                self.line(event, &shortened(input.text(), SHOWN));
            }
            EventBody::CallFinished { result, duration_ms, .. } => {
                self.flush(event);
                self.line(event, &format!("{}  {duration_ms} ms", describe_result(event, result)));
            }
            EventBody::ApprovalRequested(request) => {
                self.line(event, &format!("asks: {}", shortened(&request.description, SHOWN)));
            }
            EventBody::ApprovalDecided { decision, .. } => self.decision(event, decision),
            // Why is said by what follows: a notice about the next attempt, or the failure of the call or the run.
            EventBody::ModelResponse { result: ModelResult::Failed { .. }, .. } => self.give_up(event),
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

    /// Tells what is said in other words to those who listen; false for everything else.
    fn told_in_sentences(&self, event: &Event, message: &Mutex<Words>) -> bool {
        let mut message = message.lock().unwrap_or_else(PoisonError::into_inner);
        match &event.body {
            EventBody::CallStarted { name, input, .. } => {
                self.screen.line(&format!("{}: {}", begun(event, name), input_message(input)));
            }
            EventBody::TextDelta(delta) => message.hear(event, delta),
            EventBody::ThinkingDelta(_) => self.sentences(message.think(event)),
            EventBody::ModelRequest { .. } => {
                self.sentences(message.asked_again(event));
                return false;
            }
            EventBody::ModelResponse { result: ModelResult::Response(response), .. } => {
                self.sentences(message.said(event, &response.message, self.level > 1));
            }
            EventBody::ModelResponse { result: ModelResult::Failed { .. }, .. } => {
                self.sentences(message.broke_off(event));
                return false;
            }
            EventBody::CallFinished { name, result, duration_ms, .. } => {
                let (last_message, is_answer) = message.end(event, result);
                self.end(event, last_message, is_answer, &ended(name, result, *duration_ms, is_answer));
            }
            // The question itself follows.
            EventBody::ApprovalRequested(_) => {}
            _ => return false,
        }
        true
    }

    /// Tells how a call ended. The answer of the run itself is printed, and so is why there is none.
    fn end(&self, event: &Event, last_message: Option<String>, is_answer: bool, ended: &str) {
        if !(is_top(event) && is_answer) {
            self.sentences(last_message);
        }
        if !is_top(event) {
            self.screen.line(ended);
        }
    }

    fn sentences(&self, told: impl IntoIterator<Item = String>) {
        told.into_iter().for_each(|sentence| self.screen.line(&sentence));
    }

    fn decision(&self, event: &Event, decision: &Decision) {
        match decision {
            Decision::Allow(permit) if permit.edited => {
                self.line(event, &format!("runs with {}", shortened(permit.arguments.text(), SHOWN)));
            }
            // The end of a call that was refused says why.
            Decision::Allow(_) | Decision::Refuse(_) => {}
        }
    }

    /// Passes whole lines on and keeps the rest.
    fn streamed(&self, event: &Event, delta: &Delta, mark: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let text = open.entry(event.call.id.clone()).or_default();
        text.push_str(&delta.text);
        while let Some(end) = text.find('\n') {
            let line: String = text.drain(..=end).collect();
            self.line(event, &format!("{mark}{}", printable(line.trim_end())));
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
            self.line(event, &printable(&rest));
        }
    }

    fn line(&self, event: &Event, text: &str) {
        if self.message.is_some() {
            let who = if event.call.path.is_empty() { "the run" } else { &event.call.path };
            return self.screen.line(&format!("{}: {text}", visible(who)));
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
fn input_message(input: &Payload) -> String {
    shortened(input.lone_text().unwrap_or(input.text()), SHOWN)
}

/// How a call ended. What an agent gave is not told again after its words.
fn ended(name: &str, result: &CallResult, milliseconds: u64, is_said: bool) -> String {
    let seconds = format!("{:.1} seconds", milliseconds as f64 / 1_000.0);
    match result {
        CallResult::Output(_) if is_said => format!("{} is done after {seconds}", visible(name)),
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

/// What came of a call. Why the run itself failed is said at its end.
fn describe_result(event: &Event, result: &CallResult) -> String {
    match result {
        CallResult::Output(output) => format!("-> {}", shortened(&output.to_text(), SHOWN)),
        CallResult::Error(_) if is_top(event) => "failed".to_owned(),
        CallResult::Error(failure) if failure.is_denial() => shortened(&failure.message, SHOWN),
        CallResult::Error(failure) => format!("failed: {}", shortened(&failure.message, SHOWN)),
    }
}

fn is_top(event: &Event) -> bool {
    !event.call.path.contains(" > ")
}
