//! Writes the answer of a run to stdout while it arrives.
//!
//! Only the text of the agent that was run counts, never that of agents below it. An agent without tools answers with
//! everything it says, so its text is written at once; one with tools says things before its answer, which are written
//! only if they are asked for (`--stream`). A structured answer is written as one value at its end.
//!
//! What happened is read from events on the readers' thread; [`AnswerStream::finish`] is called after it has read all.

use std::collections::HashSet;
use std::io::{IsTerminal, stderr, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use llm_do::event::{Event, EventBody, ModelResult};
use llm_do::model::StopReason;
use llm_do::project::{LoadedProject, Outline};
use llm_do::value::{Content, Key, Name};
use llm_do::{Output, RunReport};
use parking_lot::{Mutex, MutexGuard};
use rustix::fs::fstat;

use crate::answer_text::{AnswerChange, AnswerText};
use crate::console::{Console, Suspended};
use crate::event_barrier::EventBarrier;
use crate::output;
use crate::signals::Interrupts;
use crate::text::{printable, visible_line};

/// Whose text is written while it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streaming {
    /// Nobody's: the answer is written at its end.
    Nothing,
    /// That of agents whose text is their answer.
    Answers,
    /// That of all agents.
    Everything,
}

impl Streaming {
    fn includes(self, outline: &Outline) -> bool {
        let Some(spec) = &outline.agent else { return false };
        let has_tools = !outline.callables.is_empty() || !outline.server_tools.is_empty();
        match self {
            Self::Nothing => false,
            Self::Answers => spec.output.is_none() && !has_tools,
            Self::Everything => spec.output.is_none(),
        }
    }
}

/// The answer of the run in progress, and how much of it is on stdout.
pub(crate) struct AnswerStream {
    /// The agents whose text is written while it arrives.
    streamed: HashSet<Name>,
    console: Arc<Console>,
    is_terminal: bool,
    /// Whether lines of stderr may end up in the middle of a line of the answer.
    is_shared: bool,
    /// Set when nobody reads stdout any more.
    unread: Arc<AtomicBool>,
    interrupts: Interrupts,
    state: Mutex<StreamState>,
}

#[derive(Default)]
struct StreamState {
    text: AnswerText,
    /// Whether the text of this run is written while it arrives.
    is_live: bool,
    /// Whether something of this run was written.
    has_written: bool,
    /// Whether what was written does not end with a line end.
    is_line_open: bool,
    /// The last word on a terminal, which may still grow.
    word: String,
    /// Keeps other lines away from a line that is open on the same terminal, file or pipe.
    suspended: Option<Suspended>,
}

impl AnswerStream {
    /// Prepares for the runs of a project.
    pub(crate) fn new(
        project: &LoadedProject,
        streaming: Streaming,
        console: Arc<Console>,
        unread: Arc<AtomicBool>,
        interrupts: Interrupts,
    ) -> Arc<Self> {
        let outlines = project.project.outline().into_iter().filter(|outline| streaming.includes(outline));
        let streamed = outlines.filter_map(|outline| outline.agent.as_ref().map(|spec| spec.name.clone()));
        Arc::new(Self {
            streamed: streamed.collect(),
            console,
            is_terminal: stdout().is_terminal(),
            is_shared: stdout().is_terminal() || is_same_file(),
            unread,
            interrupts,
            state: Mutex::default(),
        })
    }

    /// Returns what reads events for it.
    pub(crate) fn reader(
        self: &Arc<Self>,
        readers: Arc<EventBarrier>,
    ) -> impl Fn(&Event) + Send + Sync + 'static {
        let stream = self.clone();
        move |event| {
            stream.read(event);
            readers.note(event);
        }
    }

    /// Returns the text of an answer that was not completed.
    pub(crate) fn unfinished(&self) -> Option<String> {
        self.state().text.unfinished().map(str::to_owned)
    }

    /// Writes what is missing of the answer, or of a part of it if there is no whole one.
    pub(crate) fn finish(&self, report: &RunReport) {
        let mut state = self.state();
        let partial = state.text.unfinished().map(str::to_owned);
        match (&report.output, partial) {
            (Some(answer), _) => self.finish_answer(&mut state, answer),
            (None, Some(_)) if state.is_live => self.end_line(&mut state),
            (None, Some(partial)) => drop(output::to_stdout(&self.shown(&partial))),
            (None, None) => self.end_line(&mut state),
        }
        state.suspended = None;
        if report.output.is_none() && state.text.unfinished().is_some() {
            self.console.line(&self.console.paint.message("notice: the answer on stdout is incomplete"));
        }
    }

    fn finish_answer(&self, state: &mut StreamState, answer: &Output) {
        match &answer.content {
            Content::Text(text) if state.is_live => {
                self.apply(state, |answer| answer.end_answer(text));
                self.end_line(state);
                if !state.has_written {
                    output::to_stdout("");
                }
            }
            Content::Text(text) => drop(output::to_stdout(&self.shown(text))),
            Content::Json(value) if self.is_terminal => {
                let text = serde_json::to_string_pretty(value).unwrap_or_default();
                output::to_stdout(&printable(&text));
            }
            Content::Json(value) => drop(output::to_stdout(&value.to_string())),
        }
        for attachment in &answer.attachments {
            let kind = attachment.media_type.as_deref().unwrap_or("a file");
            let name = &attachment.name;
            let note = format!("note: the answer also holds `{name}` ({kind}), which `--output json` shows");
            output::to_stderr(&visible_line(&note));
        }
    }

    fn read(&self, event: &Event) {
        let mut state = self.state();
        if matches!(event.body, EventBody::RunStarted { .. }) {
            *state = StreamState::default();
            self.console.show_status();
        }
        if event.call.parent != Some(Key::root()) {
            return;
        }
        match &event.body {
            EventBody::CallStarted { name, .. } => state.is_live = self.streamed.contains(name),
            EventBody::ModelRequest { .. } => self.begin_attempt(&mut state),
            EventBody::ThinkingDelta(delta) => state.text.pass_over(delta),
            EventBody::TextDelta(delta) => self.apply(&mut state, |answer| answer.push(delta)),
            EventBody::ModelResponse { result: ModelResult::Response(response), .. } => {
                let (text, is_paused) = (response.message.text(), response.stop == StopReason::Pause);
                self.apply(&mut state, |answer| answer.end_message(&text, is_paused));
                if !is_paused {
                    self.free_terminal(&mut state);
                }
            }
            EventBody::ModelResponse { .. } => self.free_terminal(&mut state),
            _ => {}
        }
    }

    /// Ends the line of a message that is complete, before another one.
    fn begin_attempt(&self, state: &mut StreamState) {
        if state.text.begin_attempt() {
            self.end_line(state);
        }
    }

    /// Writes what a change of the text comes to.
    fn apply(&self, state: &mut StreamState, change: impl FnOnce(&mut AnswerText) -> AnswerChange<'_>) {
        let mut text = std::mem::take(&mut state.text);
        let change = change(&mut text);
        if state.is_live {
            match change {
                AnswerChange::Nothing => {}
                AnswerChange::More(text) => self.write(state, text),
                AnswerChange::Resumed(text) => {
                    self.notice("the new attempt repeats the text on stdout, so only the rest follows");
                    self.write(state, text);
                }
                AnswerChange::Anew(text) => {
                    self.end_line(state);
                    self.notice("the new attempt differs from the text on stdout, so it follows as a whole");
                    self.write(state, text);
                }
            }
        }
        state.text = text;
    }

    fn notice(&self, text: &str) {
        self.console.line(&self.console.paint.message(&format!("notice: {text}")));
    }

    fn write(&self, state: &mut StreamState, text: &str) {
        if self.unread.load(Ordering::Relaxed) || text.is_empty() {
            return;
        }
        // A reader of the pipe may draw on the same terminal as the status line.
        self.console.hide_status();
        if self.is_shared && state.suspended.is_none() {
            state.suspended = Some(Console::suspend(&self.console));
        }
        let ready = if self.is_terminal { whole_message(&mut state.word, text) } else { text.to_owned() };
        self.send(state, &self.shown(&ready));
    }

    fn send(&self, state: &mut StreamState, text: &str) {
        if text.is_empty() {
            return;
        }
        state.has_written = true;
        state.is_line_open = !text.ends_with('\n');
        if !output::write_stdout(text) {
            self.unread.store(true, Ordering::Relaxed);
            self.interrupts.cancel();
        }
    }

    /// Ends the line that is open, so that later output starts on a new line.
    fn end_line(&self, state: &mut StreamState) {
        let word = std::mem::take(&mut state.word);
        self.send(state, &self.shown(&word));
        if state.is_line_open && !self.unread.load(Ordering::Relaxed) {
            self.send(state, "\n");
        }
    }

    /// Lets other lines have the terminal again.
    fn free_terminal(&self, state: &mut StreamState) {
        if self.is_shared {
            self.end_line(state);
            state.suspended = None;
        }
    }

    /// A text as it may be written: a terminal obeys some characters, a pipe none.
    fn shown(&self, text: &str) -> String {
        if self.is_terminal { printable(text) } else { text.to_owned() }
    }

    fn state(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock()
    }
}

/// Returns whether stdout and stderr are the same file or pipe.
fn is_same_file() -> bool {
    let (Ok(out), Ok(error)) = (fstat(stdout()), fstat(stderr())) else { return false };
    (out.st_dev, out.st_ino) == (error.st_dev, error.st_ino)
}

/// Adds a text to an open word and takes out what is complete: an emoji may consist of several characters, which must
/// be shown together.
fn whole_message(word: &mut String, text: &str) -> String {
    word.push_str(text);
    let end = word.rfind(|c: char| c.is_ascii_whitespace()).map_or(0, |index| index + 1);
    word.drain(..end).collect()
}
