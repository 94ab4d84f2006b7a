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

use crate::commands::COMMANDS;
use crate::completion::Completion;
use crate::editor::Editor;
use crate::form::Form;
use crate::history::History;
use crate::question::focus::{Arrival, Keyboard};
use crate::question::{Question, Questions};
use crate::story::Story;
use crate::theme::Theme;
use crate::transcript::Transcript;
use crate::view::TreeView;
use crate::wish::{Opening, Told, Wish};

/// Two interrupts within this time leave.
const TWICE: Duration = Duration::from_secs(3);
/// How long a hint stands.
const HINT: Duration = TWICE;

/// Everything that the UI knows.
pub(crate) struct App {
    opening: Opening,
    theme: Theme,
    story: Story,
    transcript: Transcript,
    questions: Questions,
    editor: Editor,
    completion: Completion,
    form: Option<Purpose>,
    tree: TreeView,
    in_tree: bool,
    /// Messages that wait for the end of the turn.
    queued: VecDeque<Outgoing>,
    /// What was sent last, as it was typed.
    sent: Option<Draft>,
    /// Whether something was wished for that is not done.
    busy: bool,
    /// Whether anything was sent.
    has_sent: bool,
    last_key: Instant,
    interrupted: Option<Instant>,
    hint: Option<(String, Instant)>,
    wishes: UnboundedSender<Wish>,
    leaves: bool,
}

/// A form, and what is done with it.
struct Purpose {
    form: Form,
    /// The name that is called; none for a message.
    call: Option<String>,
}

/// Something to be sent, and what the person typed for it.
struct Outgoing {
    wish: Wish,
    draft: Draft,
}

/// What the person typed, and gets back where it is refused.
enum Draft {
    Text(String),
    Form(Box<Purpose>),
}

/// What the terminal must do after a key.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    Go,
    /// Let the person edit these arguments outside.
    Edit(Value),
    Refresh,
    Clear,
    /// Give the terminal to the shell until the person comes back.
    Suspend,
}

impl App {
    pub(crate) fn new(opening: Opening, wishes: UnboundedSender<Wish>, now: Instant) -> Self {
        let theme = opening.theme;
        let history = opening.history.clone().map_or_else(History::in_memory, History::load);
        let mut transcript = Transcript::new(theme);
        transcript.unfolded = opening.unfolded;
        let editor = Editor::new(format!("a message for {}; /help lists commands", opening.entry));
        let mut app = Self {
            theme,
            story: Story::default(),
            transcript,
            questions: Questions::default(),
            editor: editor.with_history(history),
            completion: Completion::new(COMMANDS, opening.directory.clone()).with_models(&opening.models),
            form: None,
            tree: TreeView::default(),
            in_tree: false,
            queued: VecDeque::new(),
            sent: None,
            busy: !opening.asks,
            has_sent: !opening.asks,
            last_key: now,
            interrupted: None,
            hint: None,
            wishes,
            leaves: false,
            opening,
        };
        app.set_model(app.opening.model.clone());
        if app.opening.asks {
            app.open_form();
        }
        app
    }

    fn set_model(&mut self, model: Option<String>) {
        self.completion.set_current_model(model.clone());
        self.opening.model = model;
    }

    /// A typed input is asked for by a form.
    fn open_form(&mut self) {
        let title = self.opening.entry.to_string();
        let form = self.opening.input_schema.as_ref().and_then(|schema| Form::new(&title, schema));
        self.form = form.map(|form| Purpose { form, call: None });
    }

    /// Takes account of an event.
    pub(crate) fn event(&mut self, event: &Event, now: Instant) {
        self.story.read(event, now);
        self.transcript.read(&self.story, event);
    }

    /// Takes a question to the person.
    pub(crate) fn question(&mut self, question: Question) {
        self.questions.add(question);
    }

    /// Takes what the program says.
    pub(crate) fn told(&mut self, told: Told, now: Instant) {
        match told {
            Told::Remark(text) => self.transcript.remark(&text),
            Told::Said(text) => self.transcript.message(&text),
            Told::Draft(text) => self.editor.set_text(&text),
            Told::Model(model) => self.set_model(model),
            Told::Refused => self.give_back(),
            Told::Busy => self.busy = true,
            Told::Ready => self.ready(now),
            Told::Leave => self.leaves = true,
        }
    }

    /// What was refused can be mended, unless something else has been begun in its place.
    fn give_back(&mut self) {
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
        // What was typed during the turn stands in the input; a question cannot come now.
        self.last_key = now;
        if let Some(Outgoing { wish, draft }) = self.queued.pop_front() {
            self.send(wish, draft);
        } else if self.opening.chat && self.form.is_none() && self.editor.is_empty() {
            self.open_form();
        }
    }

    pub(crate) fn leaves(&self) -> bool {
        self.leaves
    }

    pub(crate) fn is_in_tree(&self) -> bool {
        self.in_tree
    }

    /// Whether something moves by itself.
    pub(crate) fn is_lively(&self) -> bool {
        self.busy || self.story.is_running() || !self.questions.is_empty()
    }

    /// Takes account of the time.
    pub(crate) fn tick(&mut self, now: Instant) -> Step {
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

    /// Returns whether a letter waits for others while there is no input.
    #[cfg(test)]
    pub(crate) fn has_pending_key(&self) -> bool {
        self.questions.has_pending_key() && !self.has_input()
    }

    /// Whether there is an input to type into.
    fn has_input(&self) -> bool {
        self.opening.chat || !self.has_sent
    }

    /// Takes what became final and was not printed.
    pub(crate) fn last_lines(&mut self) -> Vec<Line<'static>> {
        self.transcript.take()
    }
}
