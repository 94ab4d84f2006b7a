//! Prints events of a run to stderr, as many as `-v` asks for.

use std::collections::HashMap;
use std::sync::Arc;

use llm_do::approval::Decision;
use llm_do::call::{CallKind, CallResult, FailureKind};
use llm_do::event::{Delta, Event, EventBody, ModelResult};
use llm_do::value::{Key, Name};
use llm_do::{Failure, Payload};
use parking_lot::Mutex;

use crate::console::Console;
use crate::plain_output::AgentMessages;
use crate::text::{printable, shortened, visible};

/// How much of an input and of a result a line shows.
const SHOWN: usize = 400;

/// Prints events.
pub(crate) struct EventPrinter {
    console: Arc<Console>,
    level: u8,
    /// Whether a tool that failed is mentioned at level 0.
    shows_failed_tools: bool,
    /// The messages of agents, if whole sentences are printed for a screen reader.
    messages: Option<Mutex<AgentMessages>>,
    /// Streamed text that does not fill a line yet, per call: streams of several calls never mix.
    open: Mutex<HashMap<Key, String>>,
}

impl EventPrinter {
    /// Prints at a level: 0 notices, 1 calls, 2 streamed text, 3 whole requests.
    pub(crate) fn new(console: Arc<Console>, level: u8) -> Self {
        Self { console, level, shows_failed_tools: true, messages: None, open: Mutex::default() }
    }

    /// Says at level 0, too, which tools failed, or not.
    pub(crate) fn with_failed_tools(self, shows_failed_tools: bool) -> Self {
        Self { shows_failed_tools, ..self }
    }

    /// Prints in sentences what agents say, what they call, and the results.
    pub(crate) fn plain(console: Arc<Console>, level: u8) -> Self {
        Self { messages: Some(Mutex::default()), ..Self::new(console, level.max(1)) }
    }

    /// Prints one event.
    pub(crate) fn print(&self, event: &Event) {
        if self.messages.as_ref().is_some_and(|messages| self.print_sentences(event, messages)) {
            return;
        }
        match &event.body {
            EventBody::Notice { text } => self.line(event, &format!("notice: {}", indented(text))),
            EventBody::Stderr { text } => self.line(event, &indented(text)),
            EventBody::CallFinished {
                kind: CallKind::Tool,
                name,
                result: CallResult::Error(failure),
                ..
            } if self.level == 0 => {
                self.failed_tool(event, name, failure);
            }
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
            // The reason follows: a notice about the next attempt, or the failure of the call or the run.
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

    /// Prints what a screen reader gets as a sentence; returns false for everything else.
    fn print_sentences(&self, event: &Event, messages: &Mutex<AgentMessages>) -> bool {
        let mut messages = messages.lock();
        match &event.body {
            EventBody::CallStarted { name, input, .. } => {
                self.console.line(&format!("{}: {}", begun(event, name), input_message(input)));
            }
            EventBody::TextDelta(delta) => messages.push_delta(event, delta),
            EventBody::ThinkingDelta(_) => self.sentences(messages.start_thinking(event)),
            EventBody::ModelRequest { .. } => {
                self.sentences(messages.next_request(event));
                return false;
            }
            EventBody::ModelResponse { result: ModelResult::Response(response), .. } => {
                self.sentences(messages.finish_message(event, &response.message, self.level > 1));
            }
            EventBody::ModelResponse { result: ModelResult::Failed { .. }, .. } => {
                self.sentences(messages.abort_message(event));
                return false;
            }
            EventBody::CallFinished { name, result, duration_ms, .. } => {
                let (last_message, is_answer) = messages.finish_call(event, result);
                self.end(event, last_message, is_answer, &ended(name, result, *duration_ms, is_answer));
            }
            // The question itself follows.
            EventBody::ApprovalRequested(_) => {}
            _ => return false,
        }
        true
    }

    /// Prints how a call ended. The answer of the run itself, or why there is none, is printed elsewhere.
    fn end(&self, event: &Event, last_message: Option<String>, is_answer: bool, ended: &str) {
        if !(is_top(event) && is_answer) {
            self.sentences(last_message);
        }
        if !is_top(event) {
            self.console.line(ended);
        }
    }

    fn sentences(&self, sentences: impl IntoIterator<Item = String>) {
        sentences.into_iter().for_each(|sentence| self.console.line(&sentence));
    }

    /// Says why a tool failed, since the answer may not. A denial is a notice, and that of the run itself its error.
    fn failed_tool(&self, event: &Event, name: &Name, failure: &Failure) {
        let is_told = is_top(event) || failure.is_denial() || failure.kind == FailureKind::Cancelled;
        if self.shows_failed_tools && !is_told {
            let message = shortened(&failure.message, SHOWN);
            self.console.line(&format!("tool {} failed: {message}", visible(name)));
        }
    }

    fn decision(&self, event: &Event, decision: &Decision) {
        match decision {
            Decision::Allow(permit) if permit.edited => {
                self.line(event, &format!("runs with {}", shortened(permit.arguments.text(), SHOWN)));
            }
            // The reason of a refusal is printed when the call ends.
            Decision::Allow(_) | Decision::Refuse(_) => {}
        }
    }

    /// Prints whole lines and keeps the rest.
    fn streamed(&self, event: &Event, delta: &Delta, mark: &str) {
        let mut open = self.open.lock();
        let text = open.entry(event.call.id.clone()).or_default();
        text.push_str(&delta.text);
        while let Some(end) = text.find('\n') {
            let line: String = text.drain(..=end).collect();
            self.line(event, &format!("{mark}{}", printable(line.trim_end())));
        }
    }

    /// Forgets the text of a failed attempt: the next one repeats it.
    fn give_up(&self, event: &Event) {
        let mut open = self.open.lock();
        if open.remove(&event.call.id).is_some() {
            self.line(event, "(the answer was cut off)");
        }
    }

    fn flush(&self, event: &Event) {
        let mut open = self.open.lock();
        if let Some(rest) = open.remove(&event.call.id).filter(|rest| !rest.is_empty()) {
            self.line(event, &printable(&rest));
        }
    }

    fn line(&self, event: &Event, text: &str) {
        if self.messages.is_some() {
            let who = if event.call.path.is_empty() { "the run" } else { &event.call.path };
            return self.console.line(&format!("{}: {text}", visible(who)));
        }
        let path = match &*event.call.path {
            "" => "run",
            path => path,
        };
        self.console.line(&format!("{} {text}", self.console.paint.dim(&format!("[{}]", visible(path)))));
    }
}

fn begun(event: &Event, name: &str) -> String {
    let caller = event.call.path.rsplit(" > ").nth(1);
    match caller {
        Some(caller) => visible(&format!("{caller} calls {name}")),
        None => visible(&format!("{name} begins")),
    }
}

/// The input of a call: a lone text as it is.
fn input_message(input: &Payload) -> String {
    shortened(input.lone_text().unwrap_or(input.text()), SHOWN)
}

/// How a call ended. The answer of an agent is not repeated after its last message.
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

/// A text in which no line looks like a line of this program.
fn indented(text: &str) -> String {
    visible(text).replace('\n', "\n    ")
}

/// The result of a call. Why the run itself failed is printed at its end.
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
