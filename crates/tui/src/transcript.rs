//! What is printed as it becomes final: answers, thoughts, calls and their ends.
//!
//! Streams of several agents never mix: the agent at the top streams its answer block by block; what agents below it
//! say is printed when they have said it, under their name.

mod lines;
mod stream;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use llm_do_core::{
    CallKind, CallResult, Content, DecidedBy, Decision, Event, EventBody, Key, Message, ModelResult, Output,
    Part, RunId, Status, Usage, visible_line,
};
use ratatui::text::Line;
use stream::ModelStream;

use crate::call_tree::{Call, CallTree};
use crate::markdown::markdown;
use crate::theme::Theme;
use crate::wrap::fitted;
pub(crate) use lines::{describe_input, describe_usage, format_count, indented, mark_of, seconds};

/// Makes lines of what is final.
pub(crate) struct Transcript {
    theme: Theme,
    width: u16,
    /// Whether thoughts, arguments and results are shown at length.
    pub(crate) unfolded: bool,
    streams: HashMap<(RunId, Key), ModelStream>,
    finished: Vec<Line<'static>>,
    /// The kind of the last block, which decides about the blank line before the next one.
    last: Option<BlockKind>,
    /// Whose words came last.
    speaker: Option<(RunId, Key)>,
    /// The last thing that the top agent said.
    said: String,
}

/// What a piece of the transcript is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Message,
    /// Whose words follow.
    Speaker,
    Text,
    Call,
    Note,
}

impl Transcript {
    pub(crate) fn new(theme: Theme) -> Self {
        Self {
            theme,
            width: 80,
            unfolded: false,
            streams: HashMap::new(),
            finished: Vec::new(),
            last: None,
            speaker: None,
            said: String::new(),
        }
    }

    /// Sets the width of what is made from now on.
    pub(crate) fn set_width(&mut self, width: u16) {
        self.width = width.max(1);
    }

    /// Takes what became final since the last time.
    pub(crate) fn take(&mut self) -> Vec<Line<'static>> {
        std::mem::take(&mut self.finished)
    }

    /// Applies an event. The call tree has applied it already.
    pub(crate) fn read(&mut self, call_tree: &CallTree, event: &Event) {
        match &event.body {
            EventBody::RunStarted { .. } => self.said.clear(),
            EventBody::RunFinished { status, output, error, usage, duration_ms } => {
                self.break_off(call_tree, *status);
                self.end(*status, output.as_ref(), error.as_deref(), &usage.total(), *duration_ms);
            }
            EventBody::Notice { text } => self.note("notice", &event.call.path, text),
            EventBody::Stderr { text } => self.note("stderr", &event.call.path, text),
            _ => {
                if let Some(call) = call_tree.call_of(event) {
                    self.read_call(call, event);
                }
            }
        }
    }

    fn read_call(&mut self, call: &Call, event: &Event) {
        match &event.body {
            EventBody::CallStarted { .. } => self.called(call),
            EventBody::TextDelta(delta) => self.stream(call).hear(delta),
            EventBody::ThinkingDelta(delta) => {
                self.stream(call).think(delta, event.time.as_millisecond());
            }
            EventBody::ModelResponse { result, duration_ms, .. } => {
                let took = Duration::from_millis(*duration_ms);
                self.answered(call, result, took);
            }
            EventBody::ApprovalDecided { decision, .. } => self.decided(call, decision),
            EventBody::CallFinished { result, .. } => self.returned(call, result),
            _ => {}
        }
    }

    fn stream(&mut self, call: &Call) -> &mut ModelStream {
        self.streams.entry((call.run, call.key.clone())).or_default()
    }

    /// Prints the blocks of the top agent's answer that cannot change any more. Once per frame is enough.
    pub(crate) fn settle(&mut self, call_tree: &CallTree) {
        let Some(call) = call_tree.running().first().and_then(|index| call_tree.call(*index)) else { return };
        let (width, theme) = (self.width, self.theme);
        let Some(stream) = self.streams.get_mut(&(call.run, call.key.clone())) else { return };
        let Some(rows) = stream.take_settled(width, theme) else { return };
        let thoughts = stream.take_thoughts();
        if let Some((text, took)) = thoughts {
            self.print_thoughts(call, &text, took);
        }
        self.say_more(call, rows);
    }

    fn answered(&mut self, call: &Call, result: &ModelResult, took: Duration) {
        let mut stream = self.streams.remove(&(call.run, call.key.clone())).unwrap_or_default();
        match result {
            ModelResult::Response(response) => {
                if !stream.has_told_thoughts() {
                    self.thought(call, &response.message, stream.thinking_time().unwrap_or(took));
                }
                let text = response.message.text();
                match stream.rest(&text, self.room(call), self.theme) {
                    Some(rows) => self.say_more(call, rows),
                    None => self.say(call, &text),
                }
                if call.level == 0 {
                    self.said = text;
                }
            }
            // Why is said by what follows: a notice about the next attempt, or the failure of the call or the run.
            ModelResult::Failed { .. } => self.say_broken(call, &mut stream),
        }
    }

    /// Prints what the top agent of the last run was saying when the run ended.
    fn break_off(&mut self, call_tree: &CallTree, status: Status) {
        let Some(call) = call_tree.roots().last().and_then(|index| call_tree.call(*index)) else { return };
        if let Some(mut stream) = self.streams.remove(&(call.run, call.key.clone())) {
            self.say_rest(call, &mut stream);
            // The last line of an interrupted run says enough.
            if stream.has_text() && status != Status::Interrupted {
                self.say_that_it_broke_off(call);
            }
        }
    }

    /// Prints what came of an answer that has no end.
    fn say_broken(&mut self, call: &Call, stream: &mut ModelStream) {
        self.say_rest(call, stream);
        if stream.has_text() {
            self.say_that_it_broke_off(call);
        }
    }

    fn say_rest(&mut self, call: &Call, stream: &mut ModelStream) {
        if let Some(rows) = stream.rest_of_broken(self.room(call), self.theme) {
            self.say_more(call, rows);
        }
    }

    fn say_that_it_broke_off(&mut self, call: &Call) {
        self.line(call, BlockKind::Note, lines::dim("(the answer broke off)", self.theme));
    }

    /// Prints thoughts, folded to a line unless asked for.
    fn thought(&mut self, call: &Call, message: &Message, took: Duration) {
        let thoughts = message.parts.iter().filter_map(|part| match part {
            Part::Thinking { text, .. } if !text.trim().is_empty() => Some(&**text),
            _ => None,
        });
        self.print_thoughts(call, &thoughts.collect::<Vec<_>>().join("\n\n"), took);
    }

    fn print_thoughts(&mut self, call: &Call, text: &str, took: Duration) {
        if text.trim().is_empty() {
            return;
        }
        let made = lines::thinking(text, took, self.unfolded, self.room(call), self.theme);
        self.head(call);
        self.block(call, BlockKind::Note, made);
    }

    fn say(&mut self, call: &Call, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let made = markdown(text, self.room(call), self.theme);
        self.head(call);
        self.block(call, BlockKind::Text, made);
    }

    /// Prints rows of an answer. Those that continue a printed part bring their own blank row.
    fn say_more(&mut self, call: &Call, (rows, follows): (Vec<Line<'static>>, bool)) {
        if follows {
            let indent = indent(call, self.width);
            self.finished.extend(rows.into_iter().map(|line| indented(line, indent)));
        } else if !rows.is_empty() {
            self.head(call);
            self.block(call, BlockKind::Text, rows);
        }
    }

    /// Says whose words follow, where that is not the agent at the top and somebody else spoke before.
    fn head(&mut self, call: &Call) {
        let speaker = (call.run, call.key.clone());
        if call.level > 0 && self.speaker.as_ref() != Some(&speaker) {
            self.block(call, BlockKind::Text, vec![lines::speaker(call, self.room(call), self.theme)]);
            self.last = Some(BlockKind::Speaker);
        }
        self.speaker = Some(speaker);
    }

    fn called(&mut self, call: &Call) {
        if call.kind == CallKind::Agent && call.level > 0 {
            let line = lines::agent_called(call, self.room(call), self.theme);
            self.line(call, BlockKind::Call, line);
        }
    }

    fn decided(&mut self, call: &Call, decision: &Decision) {
        let by_person = matches!(decision, Decision::Allow(permit) if permit.by == DecidedBy::Approver);
        if by_person && call.level > 0 {
            self.line(call, BlockKind::Call, lines::allowed(call, decision, self.room(call), self.theme));
        }
    }

    fn returned(&mut self, call: &Call, result: &CallResult) {
        if call.level == 0 {
            return;
        }
        let room = self.room(call);
        let made = lines::returned(call, result, self.unfolded, room, self.theme);
        self.block(call, BlockKind::Call, made);
        self.speaker = None;
    }

    fn end(&mut self, status: Status, output: Option<&Output>, error: Option<&str>, usage: &Usage, ms: u64) {
        if let Some(output) = output {
            self.answer(output);
        }
        // The last line says that it was interrupted; an error that says more is printed before it.
        let is_told = status == Status::Interrupted && error == Some(status.as_str());
        // Its hint is written for a model or a program; the command line has one for people.
        let error = error.map(|error| error.split("\nhint: ").next().unwrap_or(error));
        if let Some(error) = error.filter(|_| !is_told) {
            let made = lines::wrapped_message("error", error, self.width, self.theme);
            self.top(BlockKind::Note, made);
        }
        let made = lines::ended(status, usage, Duration::from_millis(ms), self.width, self.theme);
        self.top(BlockKind::Text, made);
        self.streams.clear();
        self.speaker = None;
    }

    /// Prints the answer of a run, unless the top agent has said just that.
    fn answer(&mut self, output: &Output) {
        let made = match &output.content {
            Content::Text(text) if text.trim() == self.said.trim() => Vec::new(),
            Content::Text(text) => markdown(text, self.width, self.theme),
            Content::Json(value) => {
                let text = serde_json::to_string_pretty(value).unwrap_or_default();
                let is_said =
                    serde_json::from_str(&self.said).is_ok_and(|said: serde_json::Value| said == **value);
                if is_said {
                    Vec::new()
                } else {
                    markdown(&format!("```json\n{text}\n```"), self.width, self.theme)
                }
            }
        };
        self.top(BlockKind::Text, made);
        let attachments =
            output.attachments.iter().map(|attachment| lines::attachment(attachment, self.theme));
        let attachments = attachments.collect();
        self.top(BlockKind::Note, attachments);
    }

    /// Prints what the person said.
    pub(crate) fn message(&mut self, text: &str) {
        let made = lines::message(text, self.width, self.theme);
        self.top(BlockKind::Message, made);
    }

    /// Prints which files go with the message before.
    pub(crate) fn attached(&mut self, files: &[PathBuf]) {
        let line = |file: &PathBuf| {
            let line = visible_line(&format!("  + {}", file.display()));
            Line::styled(fitted(&line, self.width.into()), self.theme.dim())
        };
        self.finished.extend(files.iter().map(line));
    }

    /// Prints a text of the UI itself.
    pub(crate) fn remark(&mut self, text: &str) {
        let made = lines::remark(text, self.width, self.theme);
        self.top(BlockKind::Note, made);
    }

    /// Prints keys or commands with their meaning.
    pub(crate) fn glossary(&mut self, pairs: impl Iterator<Item = (&'static str, &'static str)>) {
        let made =
            pairs.flat_map(|(word, meaning)| lines::meaning(word, meaning, self.width, self.theme)).collect();
        self.top(BlockKind::Text, made);
    }

    fn note(&mut self, word: &str, path: &str, text: &str) {
        let made = lines::note(word, path, text, self.width, self.theme);
        self.top(BlockKind::Note, made);
    }

    fn line(&mut self, call: &Call, kind: BlockKind, line: Line<'static>) {
        self.block(call, kind, vec![line]);
    }

    /// Prints lines of a call, indented by its nesting depth.
    fn block(&mut self, call: &Call, kind: BlockKind, made: Vec<Line<'static>>) {
        let indent = indent(call, self.width);
        self.top(kind, made.into_iter().map(|line| indented(line, indent)).collect());
    }

    fn top(&mut self, kind: BlockKind, made: Vec<Line<'static>>) {
        if made.is_empty() {
            return;
        }
        let is_short = |kind| matches!(kind, BlockKind::Call | BlockKind::Note);
        if self.last.is_some_and(|last| last != BlockKind::Speaker && !(is_short(last) && is_short(kind))) {
            self.finished.push(Line::default());
        }
        self.last = Some(kind);
        self.finished.extend(made);
    }

    /// The width that is left for a call.
    fn room(&self, call: &Call) -> u16 {
        self.width.saturating_sub(indent(call, self.width)).max(1)
    }

    /// What the top agent has said and is not final yet, as it would look.
    pub(crate) fn tail(&mut self, call: &Call) -> Vec<Line<'static>> {
        let (width, theme) = (self.width, self.theme);
        let Some(stream) = self.streams.get_mut(&(call.run, call.key.clone())) else { return Vec::new() };
        match stream.unsettled(width, theme) {
            rows if rows.is_empty() => lines::thinks(stream.thoughts(), width, theme),
            rows if stream.has_printed() => rows,
            rows => [vec![Line::default()], rows].concat(),
        }
    }

    /// Returns the last line that a running call has streamed.
    pub(crate) fn last_line(&self, call: &Call) -> Option<String> {
        let stream = self.streams.get(&(call.run, call.key.clone()))?;
        stream.last_line()
    }
}

/// Two columns per call above, within reason.
fn indent(call: &Call, width: u16) -> u16 {
    let levels = u16::try_from(call.level).unwrap_or(u16::MAX);
    levels.saturating_mul(2).min(width / 3)
}
