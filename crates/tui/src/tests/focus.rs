//! Random sequences of keys, pastes, resizes, questions and delays: nothing is approved unless the whole question was
//! visible and one key was pressed for it.
//!
//! The oracle reads the screen that the UI draws and the keys that the test presses; it does not look at the state of
//! the UI. `LLM_DO_FOCUS_SEQUENCES` sets how many sequences are tried.

#![allow(clippy::print_stdout, reason = "`--nocapture` shows how many sequences of each kind there were")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use llm_do_core::{Answer, ApprovalRequest, Exhausted, ExtensionRequest, Quantity, Schema, Scope};
use llm_do_testing::Chance;
use serde_json::json;
use tokio::sync::oneshot::Receiver;

use super::driver::{Driver, options};
use super::requests::request;
use crate::UiOptions;
use crate::app::AppAction;
use crate::question::focus::{
    Arrival, Effect, Focus, FocusContext, FocusInput, Keyboard, Transition, is_text, transition,
};
use crate::test_support::{TestScreen, keys};

const READING: Duration = Duration::from_millis(500);
const TOGETHER: Duration = Duration::from_millis(250);
const ACTIONS: usize = 40;

/// What the oracle has seen of the question on the screen.
#[derive(Debug, Clone, Default)]
struct Seen {
    question: Option<usize>,
    /// Since when the question is on every screen.
    since: Option<Instant>,
    /// The numbers of its rows that were on a screen.
    rows: BTreeSet<usize>,
    /// Since when no row of a question is on the screen, as it has no room for one.
    blank_since: Option<Instant>,
    /// Since when the list of scopes is on every screen.
    scopes_since: Option<Instant>,
    screen: String,
}

/// A key or a paste, with what had been seen before it.
#[derive(Debug, Clone)]
struct Pressed {
    at: Instant,
    /// None for a paste.
    key: Option<KeyEvent>,
    is_alone: bool,
    seen: Seen,
}

/// A question that the test asked.
struct Asked {
    number: usize,
    rows: usize,
    reply: Option<Reply>,
}

enum Reply {
    Approval(Receiver<Answer>),
    Extension(Receiver<Option<u64>>),
}

/// How many approvals of each kind were given.
#[derive(Debug, Default, Clone, Copy)]
struct Approvals {
    once: usize,
    session: usize,
    extended: usize,
}

impl Approvals {
    fn plus(self, other: Self) -> Self {
        Self {
            once: self.once + other.once,
            session: self.session + other.session,
            extended: self.extended + other.extended,
        }
    }
}

struct Sequence {
    chance: Chance,
    driver: Driver,
    has_input: bool,
    asked: Vec<Asked>,
    seen: Seen,
    pressed: Vec<Pressed>,
    approvals: Approvals,
}

impl Sequence {
    fn new(seed: u64, forged: Option<Transition>) -> Self {
        let mut chance = Chance::new(seed);
        let kind = chance.below(3);
        let text = json!({"type": "string"});
        let schema = json!({"type": "object", "properties": {"name": text, "yard": text}});
        let callables = vec![("greet".into(), Schema::new(schema).unwrap())];
        let single = UiOptions { chat: false, awaits_input: false, ..options() };
        let options = if kind == 0 { single } else { UiOptions { callables, ..options() } };
        let size = random_size(&mut chance);
        let mut driver = Driver::new(options, size);
        if kind > 0 {
            driver.press("go<Enter>");
        }
        if kind == 2 {
            driver.press("/call greet<Enter>");
        }
        if let Some(transition) = forged {
            driver.app.forge(transition);
        }
        let mut sequence = Self {
            chance,
            driver,
            has_input: kind > 0,
            asked: Vec::new(),
            seen: Seen::default(),
            pressed: Vec::new(),
            approvals: Approvals::default(),
        };
        sequence.ask();
        sequence
    }

    fn run(mut self) -> Result<Approvals, String> {
        for _ in 0..ACTIONS {
            self.act()?;
            self.check_answers()?;
            if self.chance.percent(85) {
                self.look();
                self.check_answers()?;
            }
        }
        Ok(self.approvals)
    }

    fn act(&mut self) -> Result<(), String> {
        match self.chance.weighted(&[
            (30, 0),
            (8, 1),
            (20, 2),
            (10, 3),
            (12, 4),
            (4, 5),
            (4, 6),
            (3, 7),
            (3, 8),
            (3, 9),
            (4, 10),
            (3, 11),
            (4, 12),
            (4, 13),
        ]) {
            0 => self.driver.pass(600),
            1 => self.driver.pass(self.chance.clone().one_of(&[10, 100, 240, 260, 490]).to_owned()),
            2 => self.press_one("y")?,
            3 => self.press_one(["a", "1", "2", "<Enter>", "<Down>"][self.chance.clone().below(5)])?,
            4 => self.press_one(["<Space>", "<Down>", "<End>", "<Up>"][self.chance.clone().below(4)])?,
            5 => self.press_one("<Tab>")?,
            6 => {
                let all =
                    ["x", "w", "e", "n", "q", "j", "[", "<Esc>", "<Backspace>", "<C-u>", "5", "<Right>"];
                self.press_one(all[self.chance.clone().below(all.len())])?;
            }
            7 => {
                let all = ["yes", "yy", "y<Enter>", "1<Enter>", "<Enter><Enter>", "a1", "5<Enter>"];
                self.press_together(all[self.chance.clone().below(all.len())])?;
            }
            8 => self.paste(),
            9 => {
                self.driver.resize(random_size(&mut self.chance));
                self.look();
            }
            10 => self.ask(),
            // Scopes and amounts take several keys with time between them, which chance alone hardly ever presses.
            12 => self.press_slowly(&["a", "1"])?,
            13 => self.press_slowly(&["<Tab>", "5", "<Enter>"])?,
            _ => self.withdraw_or_cover()?,
        }
        self.chance.bits();
        Ok(())
    }

    fn press_one(&mut self, text: &str) -> Result<(), String> {
        self.press(text, true)
    }

    /// Presses keys as a person does who reads after each of them.
    fn press_slowly(&mut self, all: &[&str]) -> Result<(), String> {
        for text in all {
            self.driver.pass(600);
            self.look();
            // A letter that waited may have become an answer meanwhile, before the next key is pressed.
            self.check_answers()?;
            self.press_one(text)?;
            self.driver.pass(300);
            self.look();
            self.check_answers()?;
        }
        Ok(())
    }

    fn press_together(&mut self, text: &str) -> Result<(), String> {
        self.press(text, false)
    }

    fn press(&mut self, text: &str, is_alone: bool) -> Result<(), String> {
        let keys = keys(text);
        let arrival = Arrival::from(keys.as_slice());
        for key in keys {
            let (at, seen) = (self.driver.now(), self.seen.clone());
            self.pressed.push(Pressed { at, key: Some(key), is_alone, seen });
            match self.driver.app.key(key, arrival, at) {
                AppAction::Edit(value) => {
                    self.seen.since = None;
                    self.driver.app.edited(Ok(value));
                }
                AppAction::Suspend => self.seen.since = None,
                _ => {}
            }
            self.check_answers()?;
        }
        Ok(())
    }

    fn paste(&mut self) {
        let (at, seen) = (self.driver.now(), self.seen.clone());
        self.pressed.push(Pressed { at, key: None, is_alone: false, seen });
        let text = ["y", "yes", "1\n", "a"][self.chance.clone().below(4)];
        self.driver.app.paste(text, at);
    }

    fn ask(&mut self) {
        let number = self.asked.len();
        let rows = self.chance.between(1, 12);
        let reply = if self.chance.percent(20) {
            Reply::Extension(self.driver.ask_to_extend(budget(number)))
        } else {
            Reply::Approval(self.driver.ask(approval(number, rows)))
        };
        let rows = if matches!(reply, Reply::Extension(_)) { 1 } else { rows };
        self.asked.push(Asked { number, rows, reply: Some(reply) });
        self.look();
    }

    fn withdraw_or_cover(&mut self) -> Result<(), String> {
        match self.chance.below(4) {
            0 => self.press_one("<C-t>")?,
            1 => self.press_one("<C-z>")?,
            2 if self.driver.app.is_in_tree() => self.press_one("<Esc>")?,
            _ => {
                let index = self.chance.below(self.asked.len());
                self.asked[index].reply = None;
            }
        }
        if self.chance.percent(50) && self.driver.app.is_in_tree() {
            self.look();
            self.check_answers()?;
            self.press_one("<Esc>")?;
        }
        Ok(())
    }

    /// Draws a frame and reads it as a person does.
    fn look(&mut self) {
        let (buffer, cursor) = self.driver.frame();
        let screen = TestScreen { buffer, cursor }.text();
        let now = self.driver.now();
        let shown = markers(&screen);
        let question = shown.iter().map(|(number, _)| *number).next();
        // A screen without room for a question counts as one that shows it: only the rows are missing.
        if self.driver.app.is_in_tree() {
            (self.seen.since, self.seen.blank_since) = (None, None);
        } else if question.is_some() && self.seen.question.is_some() && question != self.seen.question {
            self.seen = Seen { since: Some(self.seen.blank_since.unwrap_or(now)), ..Seen::default() };
        } else {
            self.seen.since.get_or_insert(now);
        }
        if question.is_some() {
            self.seen.question = question;
            self.seen.blank_since = None;
            self.seen.rows.extend(shown.into_iter().map(|(_, row)| row));
        } else if !self.driver.app.is_in_tree() {
            self.seen.blank_since.get_or_insert(now);
        }
        // Where there is no room for all of the list, any row of it or the row of its keys tells that it is shown.
        let rows = ["until this session", "1-9", "exactly this call", "this tool below", "every call of"];
        let has_scopes = rows.iter().any(|row| screen.contains(row));
        self.seen.scopes_since = has_scopes.then(|| self.seen.scopes_since.unwrap_or(now));
        self.seen.screen = screen;
    }

    fn check_answers(&mut self) -> Result<(), String> {
        for index in 0..self.asked.len() {
            let asked = &mut self.asked[index];
            let approved = match &mut asked.reply {
                Some(Reply::Approval(reply)) => match reply.try_recv() {
                    Ok(Answer::Once) => Some(None),
                    Ok(Answer::Session(scope)) => Some(Some(scope)),
                    _ => None,
                },
                Some(Reply::Extension(reply)) => {
                    if matches!(reply.try_recv(), Ok(Some(_))) {
                        self.approvals.extended += 1;
                        self.check(index, |oracle, number, rows| oracle.extended(number, rows))?;
                    }
                    None
                }
                None => None,
            };
            match approved {
                Some(None) => {
                    self.approvals.once += 1;
                    self.check(index, |oracle, number, rows| oracle.once(number, rows))?;
                }
                Some(Some(scope)) => {
                    self.approvals.session += 1;
                    self.check(index, |oracle, number, rows| oracle.session(number, rows, &scope))?;
                }
                None => {}
            }
        }
        Ok(())
    }

    fn check(
        &self,
        index: usize,
        rule: impl FnOnce(&Oracle<'_>, usize, usize) -> Result<(), &'static str>,
    ) -> Result<(), String> {
        let Asked { number, rows, .. } = self.asked[index];
        let now = self.driver.now();
        let oracle = Oracle { pressed: &self.pressed, now, has_input: self.has_input };
        rule(&oracle, number, rows).map_err(|problem| {
            let keys: Vec<_> = self.pressed.iter().rev().take(6).map(|pressed| pressed.key).collect();
            let last = self.pressed.last().map(|pressed| pressed.seen.screen.as_str()).unwrap_or_default();
            format!("question {number}: {problem}; the last keys, newest first: {keys:?}\n{last}")
        })
    }
}

/// Says from what was seen and pressed whether an approval was deliberate.
struct Oracle<'a> {
    pressed: &'a [Pressed],
    now: Instant,
    has_input: bool,
}

impl Oracle<'_> {
    fn once(&self, number: usize, rows: usize) -> Result<(), &'static str> {
        let is_yes = |key: KeyEvent| key.code == KeyCode::Char('y') && key.modifiers.is_empty();
        let index = self.last(is_yes).ok_or("nobody pressed `y`")?;
        let yes = &self.pressed[index];
        self.was_read(yes, number, rows)?;
        let later = &self.pressed[index + 1..];
        let went_there = self.tab_since(yes, number);
        match later {
            [] if went_there || self.now.saturating_duration_since(yes.at) >= TOGETHER => {}
            [] => return Err("`y` did not wait for other letters"),
            [Pressed { key: Some(key), .. }] if !is_text(*key) && !erases(*key) => {}
            _ => return Err("`y` was followed by another key"),
        }
        if !went_there && self.typed_before(index) {
            return Err("`y` came within a text");
        }
        Ok(())
    }

    fn session(&self, number: usize, rows: usize, scope: &Scope) -> Result<(), &'static str> {
        let chooses = |key: KeyEvent| matches!(key.code, KeyCode::Char('1'..='9') | KeyCode::Enter);
        let index = self.last(chooses).ok_or("nobody chose a scope")?;
        let chosen = &self.pressed[index];
        if index + 1 < self.pressed.len() {
            return Err("the scope was granted by a later key");
        }
        self.was_read(chosen, number, rows)?;
        let since = chosen.seen.scopes_since.ok_or("the scopes were not on the screen")?;
        if chosen.at.saturating_duration_since(since) < READING {
            return Err("the scopes could not be read");
        }
        if let Scope::Directory(directory) = scope
            && !chosen.seen.screen.contains(directory)
        {
            return Err("the scope was not on the screen");
        }
        Ok(())
    }

    fn extended(&self, number: usize, rows: usize) -> Result<(), &'static str> {
        let last = self.pressed.last().ok_or("nobody pressed a key")?;
        if last.key.is_none_or(|key| key.code != KeyCode::Enter) {
            return Err("nobody pressed Enter");
        }
        self.was_read(last, number, rows)?;
        if self.has_input && !self.tab_since(last, number) {
            return Err("nobody went to the question");
        }
        Ok(())
    }

    fn last(&self, wanted: impl Fn(KeyEvent) -> bool) -> Option<usize> {
        self.pressed.iter().rposition(|pressed| pressed.key.is_some_and(&wanted))
    }

    fn was_read(&self, pressed: &Pressed, number: usize, rows: usize) -> Result<(), &'static str> {
        let Seen { question, since, rows: seen, .. } = &pressed.seen;
        if !pressed.is_alone {
            return Err("the key came together with others");
        }
        if *question != Some(number) {
            return Err("another question was on the screen");
        }
        if since.is_none_or(|since| pressed.at.saturating_duration_since(since) < READING) {
            return Err("the question could not be read");
        }
        if seen.len() < rows {
            return Err("not every row was on the screen");
        }
        Ok(())
    }

    /// Whether Tab was pressed before a key, for this question: while it was on the screen or had no room there, or behind the
    /// letter that answered the question before it, when nothing had been drawn since.
    fn tab_since(&self, until: &Pressed, number: usize) -> bool {
        let is_tab = |pressed: &Pressed| pressed.key.is_some_and(|key| key.code == KeyCode::Tab);
        self.pressed.iter().enumerate().any(|(index, pressed)| {
            let seen = &pressed.seen;
            // A key that is no text makes an answer of the letter before it.
            let makes_answer = |key: KeyEvent| !is_text(key) && !erases(key) && key.code != KeyCode::Tab;
            let is_between =
                |before: &&Pressed| before.key.is_some_and(makes_answer) && before.seen.screen == seen.screen;
            let before = self.pressed[..index].iter().rev().find(|before| !is_between(before));
            let follows_letter = before.is_some_and(|before| before.key.is_some_and(is_text));
            let is_for_it = seen.question == Some(number) || seen.blank_since.is_some() || follows_letter;
            is_tab(pressed) && pressed.at <= until.at && is_for_it
        })
    }

    /// Whether a text was typed or pasted just before a key: something that is not a key of a question. Esc ends a text
    /// that was typed at the question itself, and without an input a paste goes nowhere.
    fn typed_before(&self, index: usize) -> bool {
        let at = self.pressed[index].at;
        let before = self.pressed[..index].iter().rev();
        let near = before.take_while(|pressed| at.saturating_duration_since(pressed.at) < READING);
        let mut since_escape =
            near.take_while(|pressed| pressed.key.is_none_or(|key| key.code != KeyCode::Esc));
        since_escape.any(|pressed| match pressed.key {
            None => self.has_input,
            Some(key) => matches!(key.code, KeyCode::Char('x' | 'w')),
        })
    }
}

fn erases(key: KeyEvent) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL) || matches!(key.code, KeyCode::Backspace | KeyCode::Esc)
}

fn random_size(chance: &mut Chance) -> (u16, u16) {
    (*chance.one_of(&[28_u16, 34, 40]), *chance.one_of(&[3_u16, 6, 9, 12, 14, 16, 20, 24]))
}

/// A question whose rows have numbers: `q3r1;` is row 1 of question 3.
fn approval(number: usize, rows: usize) -> ApprovalRequest {
    let lines: Vec<String> = (1..rows.saturating_sub(1)).map(|row| format!("q{number}r{row};")).collect();
    ApprovalRequest {
        id: format!("1/t{number}").into(),
        path: format!("q{number}r0; > act"),
        preview: (rows > 1).then(|| format!("+q{number}r{};", rows - 1)),
        scopes: vec![Scope::Directory(format!("dir{number}")), Scope::Tool],
        ..request("act", json!({ "lines": lines }))
    }
}

fn budget(number: usize) -> ExtensionRequest {
    let exhausted = Exhausted {
        what: Quantity::ToolCalls,
        owner: Exhausted::THE_RUN.to_owned(),
        limit: 10,
        used: 10,
        needed: 1,
    };
    ExtensionRequest { path: format!("main > q{number}r0;"), exhausted }
}

/// The numbers of questions and rows on a screen.
fn markers(screen: &str) -> Vec<(usize, usize)> {
    let words = screen.split(|c: char| !c.is_ascii_alphanumeric() && c != ';');
    let marker = |word: &str| {
        let (number, row) = word.strip_suffix(';')?.strip_prefix('q')?.split_once('r')?;
        Some((number.parse().ok()?, row.parse().ok()?))
    };
    words.filter_map(marker).collect()
}

/// How many sequences are tried.
fn sequences() -> u64 {
    let set = std::env::var("LLM_DO_FOCUS_SEQUENCES").ok();
    set.map_or(200, |count| count.parse().expect("LLM_DO_FOCUS_SEQUENCES is a number"))
}

/// Runs every `step`-th sequence.
fn run_sequences(first: u64, step: u64, count: u64) -> Approvals {
    let mut total = Approvals::default();
    for seed in (first..count).step_by(usize::try_from(step).unwrap()) {
        let given = Sequence::new(seed, None).run();
        let given = given.unwrap_or_else(|problem| panic!("sequence {seed}: {problem}"));
        total = total.plus(given);
    }
    total
}

#[test]
fn nothing_is_approved_unless_it_was_seen_and_a_key_was_pressed_for_it() {
    let count = sequences();
    let total = std::thread::scope(|scope| {
        let threads = [0, 1].map(|first| scope.spawn(move || run_sequences(first, 2, count)));
        let totals = threads.map(|thread| thread.join().expect("every approval was deliberate"));
        totals[0].plus(totals[1])
    });
    println!("{count} sequences: {total:?}");
    assert!(total.once > 0 && total.session > 0 && total.extended > 0, "they approve nothing: {total:?}");
}

/// The focus that a forgery leaves behind after it approved.
fn approved() -> (Focus, Effect) {
    (Focus::default(), Effect::AllowOnce)
}

fn is_yes(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('y')
}

fn unseen_is_seen(focus: Focus, input: FocusInput, context: &FocusContext) -> (Focus, Effect) {
    transition(focus, input, &FocusContext { is_seen: true, ..context.clone() })
}

fn no_reading_time(focus: Focus, input: FocusInput, context: &FocusContext) -> (Focus, Effect) {
    let later = |at: Instant| at + Duration::from_secs(1);
    let input = match input {
        FocusInput::Tick(now) => FocusInput::Tick(later(now)),
        FocusInput::Key(key, now) => FocusInput::Key(key, later(now)),
        input => input,
    };
    transition(focus, input, context)
}

fn a_waiting_question_is_answered(
    focus: Focus,
    input: FocusInput,
    context: &FocusContext,
) -> (Focus, Effect) {
    match (focus, input) {
        (Focus::Waiting { visible_since: Some(_), .. }, FocusInput::Key(key, _)) if is_yes(key) => approved(),
        _ => transition(focus, input, context),
    }
}

fn the_start_of_a_word_answers(focus: Focus, input: FocusInput, context: &FocusContext) -> (Focus, Effect) {
    match (focus, input) {
        (Focus::Pending { key, .. }, FocusInput::NextKey(_)) if is_yes(key) && context.is_seen => approved(),
        _ => transition(focus, input, context),
    }
}

fn a_letter_answers_the_next_question(
    focus: Focus,
    input: FocusInput,
    context: &FocusContext,
) -> (Focus, Effect) {
    match (focus, input) {
        (Focus::Orphaned { key, .. }, FocusInput::Tick(_)) if is_yes(key) => approved(),
        _ => transition(focus, input, context),
    }
}

fn keys_that_came_together_answer(
    focus: Focus,
    input: FocusInput,
    context: &FocusContext,
) -> (Focus, Effect) {
    let keyboard = Keyboard { arrival: Arrival::Alone, ..context.keyboard };
    transition(focus, input, &FocusContext { keyboard, ..context.clone() })
}

fn a_paste_answers(focus: Focus, input: FocusInput, context: &FocusContext) -> (Focus, Effect) {
    match (focus, input) {
        (Focus::Answering { .. }, FocusInput::Paste) if context.is_seen => approved(),
        _ => transition(focus, input, context),
    }
}

fn a_scope_is_granted_at_once(focus: Focus, input: FocusInput, context: &FocusContext) -> (Focus, Effect) {
    let visible_scopes = context.visible_scopes.iter().map(|_| true).collect();
    let focus = match (focus, input) {
        (_, FocusInput::Key(_, now)) => transition(focus, FocusInput::Drawn(now + READING), context).0,
        _ => focus,
    };
    transition(focus, input, &FocusContext { visible_scopes, ..context.clone() })
}

#[test]
fn a_transition_that_approves_too_early_is_found() {
    let forgeries: [(&str, Transition); 8] = [
        ("unseen rows count as seen", unseen_is_seen),
        ("there is no time for reading", no_reading_time),
        ("a question without the keys is answered", a_waiting_question_is_answered),
        ("the start of a word answers", the_start_of_a_word_answers),
        ("a letter answers the next question", a_letter_answers_the_next_question),
        ("keys that came together answer", keys_that_came_together_answer),
        ("a paste answers", a_paste_answers),
        ("a scope is granted at once", a_scope_is_granted_at_once),
    ];
    for (name, forged) in forgeries {
        let found = (0..5_000).find(|seed| Sequence::new(*seed, Some(forged)).run().is_err());
        let seed = found.unwrap_or_else(|| panic!("nobody noticed: {name}"));
        println!("{name}: found by sequence {seed}");
    }
}

#[test]
fn tab_behind_an_arrow_that_made_an_answer_is_for_the_next_question() {
    let seed = 60_793;
    run_sequences(seed, 1, seed + 1);
}
