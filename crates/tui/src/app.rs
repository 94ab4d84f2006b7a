//! The whole of the UI as data: what it knows, what the person is doing, what is to be drawn.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use llm_do::{Event, parse_strict};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use ratatui::text::Line;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use crate::commands::{self, COMMANDS};
use crate::completion::{Completed, Completion, attachments};
use crate::editor::{Edited, Editor};
use crate::form::{Form, FormStep};
use crate::history::History;
use crate::question::{Asked, Question, Questions};
use crate::story::Story;
use crate::theme::Theme;
use crate::transcript::{Transcript, usage_words};
use crate::view::{Live, Section, TreeStep, TreeView, activity, status_line};
use crate::wish::{Opening, Told, Wish};
use crate::wrap::rule_width;

/// Two interrupts within this time leave.
const TWICE: Duration = Duration::from_secs(3);
/// How long a hint stands.
const HINT: Duration = TWICE;
/// How long the key of an answer waits for others where there is an input: words go there, answers are one key.
const HALF: Duration = Duration::from_millis(250);
/// The most rows of the input.
const MOST_INPUT: u16 = 10;
/// The most rows of messages that wait.
const MOST_QUEUED: usize = 3;
/// Where a question has less rows than these, the input makes room for it.
const LEAST_QUESTION: u16 = 5;

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
    queued: VecDeque<Wish>,
    /// Whether something was wished for that is not done.
    busy: bool,
    /// Whether anything was sent.
    has_sent: bool,
    last_key: Instant,
    interrupted: Option<Instant>,
    /// The key of an answer, which is still text if others follow at once.
    half: Option<(KeyEvent, Instant)>,
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

/// What the terminal must do after a key.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    Go,
    /// Let the person edit these arguments outside.
    Edit(Value),
    Refresh,
    Clear,
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
            completion: Completion::new(COMMANDS, opening.directory.clone()),
            form: None,
            tree: TreeView::default(),
            in_tree: false,
            queued: VecDeque::new(),
            busy: !opening.asks,
            has_sent: !opening.asks,
            last_key: now,
            interrupted: None,
            half: None,
            hint: None,
            wishes,
            leaves: false,
            opening,
        };
        if app.opening.asks {
            app.open_form();
        }
        app
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
            Told::Busy => self.busy = true,
            Told::Ready => self.ready(now),
            Told::Leave => self.leaves = true,
        }
    }

    /// The turn is over: what waited is sent.
    fn ready(&mut self, now: Instant) {
        self.busy = false;
        self.hint = None;
        // What was typed during the turn stands in the input; a question cannot come now.
        self.last_key = now;
        if let Some(wish) = self.queued.pop_front() {
            self.send(wish);
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
        let has_draft = self.form.is_some() || self.has_input() && !self.editor.is_empty();
        self.questions.tick(now, (!has_draft).then_some(self.last_key));
        if self.hint.as_ref().is_some_and(|(_, since)| now.saturating_duration_since(*since) > HINT) {
            self.hint = None;
        }
        match self.half {
            Some((key, since)) if now.saturating_duration_since(since) >= HALF => {
                self.half = None;
                self.answer_key(key)
            }
            _ => Step::Go,
        }
    }

    /// Whether there is an input to type into.
    fn has_input(&self) -> bool {
        self.opening.chat || !self.has_sent
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent, now: Instant) -> Step {
        if key.kind == KeyEventKind::Release {
            return Step::Go;
        }
        self.hint = None;
        if let Some((first, _)) = self.half.take() {
            self.finish_half(first, key);
        }
        let step = match self.global_key(key, now) {
            Some(step) => step,
            None if self.questions.is_attended() && !self.in_tree => self.question_key(key, now),
            None => self.other_key(key, now),
        };
        self.last_key = now;
        step
    }

    /// A key followed one that could be an answer: letters in a row are words for the input.
    fn finish_half(&mut self, first: KeyEvent, next: KeyEvent) {
        if is_letter(next) {
            self.questions.attend(false);
            self.editor.key(first);
        } else {
            self.questions.key(first, &self.story);
        }
    }

    /// Keys that mean the same everywhere.
    fn global_key(&mut self, key: KeyEvent, now: Instant) -> Option<Step> {
        if key.modifiers != KeyModifiers::CONTROL {
            return None;
        }
        match key.code {
            KeyCode::Char('c') => self.interrupt_or_leave(now),
            KeyCode::Char('t') => self.show_tree(!self.in_tree),
            KeyCode::Char('l') => return Some(Step::Refresh),
            KeyCode::Char('o') => self.fold(now),
            KeyCode::Char('d') if self.editor.is_empty() && self.has_input() => self.wish(Wish::Quit),
            _ => return None,
        }
        Some(Step::Go)
    }

    /// Shows the tree or leaves it. A question that was not on the screen meanwhile takes no keys at once.
    fn show_tree(&mut self, shown: bool) {
        self.in_tree = shown;
        self.questions.disarm();
    }

    fn fold(&mut self, now: Instant) {
        self.transcript.unfolded = !self.transcript.unfolded;
        let words = if self.transcript.unfolded { "from now on at length" } else { "from now on folded" };
        self.say(words, now);
    }

    fn say(&mut self, words: &str, now: Instant) {
        self.hint = Some((words.to_owned(), now));
    }

    fn interrupt_or_leave(&mut self, now: Instant) {
        let is_second = self.interrupted.is_some_and(|first| now.saturating_duration_since(first) < TWICE);
        if is_second {
            return self.wish(Wish::Quit);
        }
        self.interrupted = Some(now);
        if self.busy {
            self.interrupt();
            self.say("stopping; Ctrl-C again leaves", now);
        } else {
            self.editor.set_text("");
            self.say("Ctrl-C again leaves", now);
        }
    }

    fn interrupt(&mut self) {
        self.queued.clear();
        self.wish(Wish::Interrupt);
    }

    fn wish(&mut self, wish: Wish) {
        // Nobody to grant it: the program is leaving.
        if self.wishes.send(wish).is_err() {
            self.leaves = true;
        }
    }

    fn question_key(&mut self, key: KeyEvent, now: Instant) -> Step {
        if self.has_input() && self.questions.is_unsure() && is_letter(key) {
            self.half = Some((key, now));
            return Step::Go;
        }
        self.answer_key(key)
    }

    fn answer_key(&mut self, key: KeyEvent) -> Step {
        match self.questions.key(key, &self.story) {
            Asked::Edit(arguments) => return Step::Edit(arguments),
            Asked::Leave => self.questions.attend(false),
            Asked::Nothing | Asked::Taken => {}
        }
        Step::Go
    }

    /// Takes what came of editing outside.
    pub(crate) fn edited(&mut self, edited: Result<Value, String>) {
        match edited {
            Ok(value) => self.questions.revise(value),
            Err(problem) => self.questions.complain(problem),
        }
    }

    fn other_key(&mut self, key: KeyEvent, now: Instant) -> Step {
        if self.in_tree {
            self.tree_key(key, now);
        } else if key.code == KeyCode::Tab && !self.questions.is_empty() && !self.completion.is_open() {
            self.questions.attend(true);
        } else if self.form.is_some() {
            self.form_key(key, now);
        } else if self.has_input() {
            return self.input_key(key, now);
        } else if key.code == KeyCode::Esc && self.busy {
            self.interrupt();
            self.say("stopping", now);
        }
        Step::Go
    }

    fn tree_key(&mut self, key: KeyEvent, now: Instant) {
        match self.tree.key(key, &self.story) {
            TreeStep::Close => self.show_tree(false),
            TreeStep::Cancel(place) => {
                if let Some(call) = self.story.call(place) {
                    let wish = Wish::Cancel { run: call.run, call: call.key.clone() };
                    self.wish(wish);
                    self.say("cancelling", now);
                }
            }
            TreeStep::Nothing | TreeStep::Taken => {}
        }
    }

    fn form_key(&mut self, key: KeyEvent, now: Instant) {
        let Some(purpose) = &mut self.form else { return };
        match purpose.form.key(key) {
            FormStep::Going => {}
            FormStep::Cancelled => {
                self.form = None;
                self.say("write the input as JSON, or leave with Ctrl-C", now);
            }
            FormStep::Sent(value) => {
                let call = purpose.call.take();
                self.form = None;
                let wish = match call {
                    Some(name) => Wish::Call { name, input: value },
                    None => Wish::Give(value),
                };
                self.send(wish);
            }
        }
    }

    fn input_key(&mut self, key: KeyEvent, now: Instant) -> Step {
        if self.completion.key(key, &mut self.editor) != Completed::Nothing {
            self.completion.update(&self.editor);
            return Step::Go;
        }
        if key.code == KeyCode::Esc {
            if self.busy {
                self.interrupt();
                self.say("stopping", now);
            }
            return Step::Go;
        }
        let step = match self.editor.key(key) {
            Edited::Send => self.take_line(now),
            _ => Step::Go,
        };
        self.completion.update(&self.editor);
        step
    }

    /// Takes pasted text.
    pub(crate) fn paste(&mut self, text: &str, now: Instant) {
        self.last_key = now;
        if self.questions.is_attended() && !self.in_tree {
            self.questions.paste(text);
        } else if let Some(purpose) = &mut self.form {
            purpose.form.paste(text);
        } else if self.has_input() && !self.in_tree {
            self.editor.paste(text);
            self.completion.update(&self.editor);
        }
    }

    fn take_line(&mut self, now: Instant) -> Step {
        let text = self.editor.take();
        // A history that cannot be written is no reason to lose the message.
        let _ = self.editor.remember(&text);
        self.completion.close();
        let line = text.trim();
        match commands::read(line) {
            commands::Line::Command(command, rest) => return self.command(command, rest, now),
            commands::Line::Unknown(word) => {
                self.editor.set_text(&text);
                self.say(&unknown_command(word), now);
            }
            commands::Line::Message => self.send(self.message(line)),
        }
        Step::Go
    }

    /// A typed input can be written as JSON.
    fn message(&self, line: &str) -> Wish {
        if let Some(object) = parse_strict(line).ok().filter(Value::is_object) {
            return Wish::Give(object);
        }
        let attachments = attachments(line, &self.opening.directory);
        Wish::Send { text: line.to_owned(), attachments }
    }

    /// Sends a message, or keeps it until the turn is over.
    fn send(&mut self, wish: Wish) {
        if self.busy {
            self.queued.push_back(wish);
            return;
        }
        match &wish {
            Wish::Send { text, attachments } => {
                self.transcript.message(text);
                self.transcript.attached(attachments);
            }
            Wish::Give(value) => self.transcript.message(&value.to_string()),
            Wish::Call { name, input } => self.transcript.message(&format!("/call {name} {input}")),
            _ => {}
        }
        self.busy = true;
        self.has_sent = true;
        self.wish(wish);
    }

    fn command(&mut self, command: &str, rest: &str, now: Instant) -> Step {
        let number = rest.parse().ok();
        match command {
            "/help" => self.transcript.glossary(commands::help()),
            "/model" => self.wish(Wish::UseModel((!rest.is_empty()).then(|| rest.to_owned()))),
            "/approvals" => self.wish(Wish::ListGrants),
            "/revoke" => self.wish(Wish::Revoke(rest.to_owned())),
            "/usage" => self.transcript.remark(&self.usage()),
            "/tree" => self.show_tree(true),
            "/call" => self.call(rest, now),
            "/fork" | "/goto" if number.is_none() && !rest.is_empty() => {
                self.say(&format!("write `{command} N`, with a number"), now);
            }
            "/fork" | "/goto" | "/clear" if self.busy => self.say("not while a turn runs; Esc stops it", now),
            "/fork" => self.wish(Wish::Fork(number)),
            "/goto" => self.wish(Wish::GoBack(number)),
            "/clear" => {
                self.wish(Wish::Clear);
                return Step::Clear;
            }
            "/save" if rest.is_empty() => self.say("write `/save FILE`", now),
            "/save" => self.wish(Wish::Save(rest.into())),
            _ => self.wish(Wish::Quit),
        }
        Step::Go
    }

    fn usage(&self) -> String {
        let by_model =
            self.story.usage().iter().map(|(model, usage)| format!("{model}: {}", usage_words(usage)));
        let mut lines: Vec<String> = by_model.collect();
        lines.push(format!("in all: {}", usage_words(&self.story.total())));
        lines.join("\n")
    }

    /// Calls something beside the conversation; without an input, a form asks for it.
    fn call(&mut self, rest: &str, now: Instant) {
        let (name, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if name.is_empty() {
            return self.say("write `/call NAME` or `/call NAME {\"key\": \"value\"}`", now);
        }
        if text.is_empty() {
            return self.call_by_form(name);
        }
        match parse_strict(text) {
            Ok(input) => self.send(Wish::Call { name: name.to_owned(), input }),
            Err(error) => {
                self.editor.set_text(&format!("/call {rest}"));
                self.say(&format!("this is no JSON: {error}"), now);
            }
        }
    }

    fn call_by_form(&mut self, name: &str) {
        let schema = self.opening.callables.iter().find(|(known, _)| known == name).map(|(_, schema)| schema);
        match schema.and_then(|schema| Form::new(name, schema)) {
            Some(form) => self.form = Some(Purpose { form, call: Some(name.to_owned()) }),
            None => self.send(Wish::Call { name: name.to_owned(), input: json!({}) }),
        }
    }

    /// Makes what stands below the transcript, and takes what became final.
    pub(crate) fn draw(
        &mut self,
        size: Size,
        now: Instant,
    ) -> (Vec<Line<'static>>, Buffer, Option<Position>) {
        self.transcript.set_width(size.width);
        self.transcript.settle(&self.story);
        let finished = self.transcript.take();
        let (buffer, cursor) = self.draw_live(size, now);
        (finished, buffer, cursor)
    }

    fn draw_live(&mut self, size: Size, now: Instant) -> (Buffer, Option<Position>) {
        let (width, theme) = (size.width, self.theme);
        let asked = self.lay_out_question(size, now);
        let keys = self.keys_words();
        let (tail, calls) = activity(&self.story, &mut self.transcript, now, width, theme);
        let this = &*self;
        let gap = if calls.is_empty() { Vec::new() } else { vec![Line::default()] };
        let mut sections = vec![Section::Lines(tail), Section::Lines(gap), Section::Lines(calls)];
        if asked > 0 {
            let draw =
                move |area: Rect, buffer: &mut Buffer| this.questions.draw(area, buffer, &this.story, theme);
            sections.push(Section::Drawn(asked, Box::new(draw)));
        }
        if !this.gives_way(size) {
            this.input_sections(&mut sections, width, size.height);
        }
        sections.push(Section::Lines(vec![this.status("", keys, now, width)]));
        let (buffer, cursor) = Live::new(width, size.height).draw(sections);
        (buffer, cursor.filter(|_| !self.in_tree))
    }

    /// Gives the question the room that is left; what is drawn of it counts as seen from then on.
    fn lay_out_question(&mut self, size: Size, now: Instant) -> u16 {
        self.questions.beside_input = self.has_input();
        if self.questions.is_empty() || self.in_tree {
            return 0;
        }
        let input = if self.gives_way(size) { 0 } else { self.input_height(size) };
        let most = size.height.saturating_sub(input.saturating_add(1));
        self.questions.lay_out(size.width, most.saturating_sub(1), &self.story, self.theme, now);
        let wanted = self.questions.wanted_height(size.width, &self.story, most);
        self.questions.lay_out(size.width, wanted.saturating_sub(1), &self.story, self.theme, now);
        wanted
    }

    /// How many rows the input has, with what stands around it.
    fn input_height(&self, size: Size) -> u16 {
        if let Some(purpose) = &self.form {
            return purpose.form.height(size.width).min(size.height.saturating_sub(2));
        }
        if !self.has_input() {
            return 0;
        }
        let queued = u16::try_from(self.queued.len().min(MOST_QUEUED + 1)).unwrap_or(u16::MAX);
        let completion = if self.completion.is_open() { self.completion.height() } else { 0 };
        queued + 1 + self.editor.height(size.width, MOST_INPUT) + completion
    }

    /// Whether the input is not shown, as a question that takes the keys needs its room.
    fn gives_way(&self, size: Size) -> bool {
        let left = size.height.saturating_sub(self.input_height(size).saturating_add(1));
        self.questions.is_attended() && left < LEAST_QUESTION
    }

    fn input_sections<'a>(&'a self, sections: &mut Vec<Section<'a>>, width: u16, height: u16) {
        let theme = self.theme;
        if let Some(purpose) = &self.form {
            let wanted = purpose.form.height(width).min(height.saturating_sub(2));
            let draw = move |area: Rect, buffer: &mut Buffer| purpose.form.draw(area, buffer, theme);
            return sections.push(Section::Drawn(wanted, Box::new(draw)));
        }
        if !self.has_input() {
            return;
        }
        let rule = Line::styled("─".repeat(rule_width(width).into()), theme.dim());
        sections.push(Section::Lines(self.queued_lines(width)));
        sections.push(Section::Lines(vec![rule]));
        let is_attended = self.questions.is_attended();
        let draw = move |area: Rect, buffer: &mut Buffer| {
            self.editor.draw(area, buffer, theme).filter(|_| !is_attended)
        };
        sections.push(Section::Drawn(self.editor.height(width, MOST_INPUT), Box::new(draw)));
        if self.completion.is_open() {
            let draw = move |area: Rect, buffer: &mut Buffer| {
                self.completion.draw(area, buffer, theme);
                None
            };
            sections.push(Section::Drawn(self.completion.height(), Box::new(draw)));
        }
    }

    /// The last row: a word about what the person just did, while that stands, or else how things are.
    fn status(&self, said: &str, keys: &'static str, now: Instant, width: u16) -> Line<'static> {
        match &self.hint {
            Some((words, _)) => {
                let words = llm_do::visible_line(words);
                Line::styled(crate::wrap::fitted(&words, width.into()), self.theme.waiting())
            }
            None => status_line(&self.story, self.questions.count(), said, keys, now, width, self.theme),
        }
    }

    /// The messages that wait; many are counted.
    fn queued_lines(&self, width: u16) -> Vec<Line<'static>> {
        let shown = self.queued.iter().take(MOST_QUEUED);
        let mut lines: Vec<_> = shown.map(|wish| queued_line(wish, width, self.theme)).collect();
        let hidden = self.queued.len().saturating_sub(MOST_QUEUED);
        if hidden > 0 {
            lines.push(Line::styled(format!("and {hidden} more"), self.theme.dim()));
        }
        lines
    }

    /// The keys that are of use now.
    fn keys_words(&self) -> &'static str {
        match (self.busy, self.has_input()) {
            _ if self.questions.is_attended() => "Ctrl-C stops · Ctrl-T tree",
            (true, _) => "Esc stops · Ctrl-T tree",
            (false, true) => "/help · Ctrl-T tree",
            (false, false) => "",
        }
    }

    /// Draws the tree on the whole screen, with a word about questions that wait.
    pub(crate) fn draw_tree(&mut self, area: Rect, buffer: &mut Buffer, now: Instant) {
        let [top, body] = ratatui::layout::Layout::vertical([
            ratatui::layout::Constraint::Length(1),
            ratatui::layout::Constraint::Fill(1),
        ])
        .areas(area);
        let said = if self.questions.is_empty() { "" } else { "Esc goes to it" };
        let status = self.status(said, "", now, top.width);
        ratatui::widgets::Widget::render(status, top, buffer);
        self.tree.draw(body, buffer, &self.story, now, self.theme);
    }

    /// Takes what became final and was not printed.
    pub(crate) fn last_lines(&mut self) -> Vec<Line<'static>> {
        self.transcript.take()
    }
}

/// A key that writes something.
fn is_letter(key: KeyEvent) -> bool {
    let is_plain = (key.modifiers - KeyModifiers::SHIFT).is_empty();
    is_plain && matches!(key.code, KeyCode::Char(sign) if sign != ' ')
}

fn queued_line(wish: &Wish, width: u16, theme: Theme) -> Line<'static> {
    let words = match wish {
        Wish::Send { text, .. } => text.clone(),
        Wish::Give(value) => value.to_string(),
        _ => "a call".to_owned(),
    };
    let words = llm_do::visible_line(&words);
    Line::styled(crate::wrap::fitted(&format!("then: {words}"), width.into()), theme.dim())
}

fn unknown_command(word: &str) -> String {
    match llm_do::nearest(word, COMMANDS.iter().map(|command| command.name)) {
        Some(near) => format!("did you mean `{near}`? there is no `{word}`"),
        None => format!("there is no command `{word}`; /help lists them"),
    }
}
