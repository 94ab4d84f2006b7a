//! The whole of the UI as data: what it knows, what the person is doing, what is to be drawn.

mod draw;
mod keys;
mod sending;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use llm_do_core::Event;
use ratatui::text::Line;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use crate::call_tree::{CallIndex, CallTree};
use crate::completion::Completion;
use crate::editor::Editor;
use crate::form::Form;
use crate::history::History;
use crate::protocol::{UiCommand, UiOptions, UiUpdate};
use crate::question::focus::{Arrival, Keyboard};
use crate::question::{OpenQuestion, Questions};
use crate::slash_commands::SLASH_COMMANDS;
use crate::theme::Theme;
use crate::transcript::Transcript;
use crate::view::TreeView;

/// Two interrupts within this time leave.
const TWICE: Duration = Duration::from_secs(3);
/// How long a hint is shown.
const HINT: Duration = TWICE;

/// Everything that the UI knows.
pub(crate) struct App {
    options: UiOptions,
    theme: Theme,
    call_tree: CallTree,
    transcript: Transcript,
    questions: Questions,
    editor: Editor,
    completion: Completion,
    form: Option<OpenForm>,
    tree: TreeView,
    in_tree: bool,
    /// The call for which `c` was pressed once in the tree, and when.
    cancel_asked: Option<(CallIndex, Instant)>,
    /// Messages that wait for the end of the turn.
    queued: VecDeque<Outgoing>,
    /// What was sent last, as it was typed.
    sent: Option<Draft>,
    /// Whether a command was sent whose end was not reported yet.
    busy: bool,
    /// Whether anything was sent.
    has_sent: bool,
    last_key: Instant,
    interrupted: Option<Instant>,
    hint: Option<(String, Instant)>,
    commands: UnboundedSender<UiCommand>,
    should_exit: bool,
}

/// A form, and what its value is for.
struct OpenForm {
    form: Form,
    /// The name that is called; none for a message.
    call: Option<String>,
}

/// Something to be sent, and what the person typed for it.
struct Outgoing {
    command: UiCommand,
    draft: Draft,
}

/// What the person typed: it is put back in the input if it is rejected.
enum Draft {
    Text(String),
    Form(Box<OpenForm>),
}

/// What the event loop does after a key or a tick.
#[derive(Debug, PartialEq)]
pub(crate) enum AppAction {
    /// Nothing special: it goes on.
    Continue,
    /// Let the person edit these arguments in their own editor.
    Edit(Value),
    Refresh,
    Clear,
    /// Give the terminal to the shell until the person comes back.
    Suspend,
}

impl App {
    pub(crate) fn new(options: UiOptions, commands: UnboundedSender<UiCommand>, now: Instant) -> Self {
        let theme = options.theme;
        let history = options.history.clone().map_or_else(History::in_memory, History::load);
        let mut transcript = Transcript::new(theme);
        transcript.unfolded = options.unfolded;
        let editor = Editor::new(format!("a message for {}; /help lists commands", options.entry));
        let mut app = Self {
            theme,
            call_tree: CallTree::default(),
            transcript,
            questions: Questions::default(),
            editor: editor.with_history(history),
            completion: Completion::new(SLASH_COMMANDS, options.directory.clone())
                .with_models(&options.models),
            form: None,
            tree: TreeView::default(),
            in_tree: false,
            cancel_asked: None,
            queued: VecDeque::new(),
            sent: None,
            busy: !options.awaits_input,
            has_sent: !options.awaits_input,
            last_key: now,
            interrupted: None,
            hint: None,
            commands,
            should_exit: false,
            options,
        };
        app.set_model(app.options.model.clone());
        if app.options.awaits_input {
            app.open_form();
        }
        app
    }

    fn set_model(&mut self, model: Option<String>) {
        self.completion.set_current_model(model.clone());
        self.options.model = model;
    }

    /// A typed input is asked for by a form.
    fn open_form(&mut self) {
        let title = self.options.entry.to_string();
        let form = self.options.input_schema.as_ref().and_then(|schema| Form::new(&title, schema));
        self.form = form.map(|form| OpenForm { form, call: None });
    }

    /// Takes account of an event.
    pub(crate) fn event(&mut self, event: &Event, now: Instant) {
        self.call_tree.read(event, now);
        self.transcript.read(&self.call_tree, event);
    }

    /// Takes a question to the person.
    pub(crate) fn question(&mut self, question: OpenQuestion) {
        self.questions.add(question);
    }

    /// Applies an update from the program.
    pub(crate) fn update(&mut self, update: UiUpdate, now: Instant) {
        match update {
            UiUpdate::Info(text) => self.transcript.remark(&text),
            UiUpdate::UserMessage(text) => self.transcript.message(&text),
            UiUpdate::Draft(text) => self.editor.set_text(&text),
            UiUpdate::Model(model) => self.set_model(model),
            UiUpdate::Rejected => self.restore_draft(),
            UiUpdate::Busy => self.busy = true,
            UiUpdate::Ready => self.ready(now),
            UiUpdate::Close => self.should_exit = true,
        }
    }

    /// Puts rejected input back to be corrected, unless the person has begun something else.
    fn restore_draft(&mut self) {
        match self.sent.take() {
            Some(Draft::Form(purpose)) if self.form.is_none() => self.form = Some(*purpose),
            Some(Draft::Text(text)) if self.editor.is_empty() => self.editor.set_text(&text),
            _ => {}
        }
    }

    /// The turn is over: what waited is sent.
    fn ready(&mut self, now: Instant) {
        self.busy = false;
        self.hint = None;
        self.sent = None;
        // What was typed during the turn is in the input; a question cannot come now.
        self.last_key = now;
        if let Some(Outgoing { command, draft }) = self.queued.pop_front() {
            self.send(command, draft);
        } else if self.options.chat && self.form.is_none() && self.editor.is_empty() {
            self.open_form();
        }
    }

    pub(crate) fn should_exit(&self) -> bool {
        self.should_exit
    }

    pub(crate) fn is_in_tree(&self) -> bool {
        self.in_tree
    }

    /// Whether something moves by itself.
    pub(crate) fn is_active(&self) -> bool {
        self.busy || self.call_tree.is_running() || !self.questions.is_empty()
    }

    /// Takes account of the time.
    pub(crate) fn tick(&mut self, now: Instant) -> AppAction {
        let result = self.questions.tick(now, self.keyboard(Arrival::Alone));
        if self.hint.as_ref().is_some_and(|(_, since)| now.saturating_duration_since(*since) > HINT) {
            self.hint = None;
        }
        self.after_question(result)
    }

    /// Returns what else than a question could take keys that arrive like this.
    fn keyboard(&self, arrival: Arrival) -> Keyboard {
        Keyboard {
            has_input: self.has_input(),
            has_form: self.form.is_some(),
            has_draft: self.form.is_some() || self.has_input() && !self.editor.is_empty(),
            is_completing: self.completion.is_open(),
            last_key: self.last_key,
            arrival,
        }
    }

    /// Replaces the function that decides which key is an answer.
    #[cfg(test)]
    pub(crate) fn forge(&mut self, transition: crate::question::focus::Transition) {
        self.questions.forge(transition);
    }

    /// Returns whether a letter waits for others in a run without an input.
    #[cfg(test)]
    pub(crate) fn has_pending_key(&self) -> bool {
        self.questions.has_pending_key() && !self.has_input()
    }

    /// Whether there is an input to type into.
    fn has_input(&self) -> bool {
        self.options.chat || !self.has_sent
    }

    /// Takes what became final and was not printed.
    pub(crate) fn last_lines(&mut self) -> Vec<Line<'static>> {
        self.transcript.take()
    }
}
