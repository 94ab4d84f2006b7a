//! Questions to the person: may this call run, may this budget grow?
//!
//! Nothing is approved unseen. A question takes keys only after it has stood on the screen for a moment in which nobody
//! typed, and a call can be allowed only once all of its text has been on the screen.

mod draw;
mod keys;
mod panel;
mod scopes;
mod stage;

use std::ops::Range;
use std::time::{Duration, Instant};

use llm_do_core::{Answer, ApprovalRequest, ExtensionRequest, Key};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::story::Story;
use crate::theme::Theme;
use crate::transcript::input_words;
pub(crate) use draw::key_line;
pub(crate) use keys::Asked;
use panel::Panel;
use scopes::ScopeList;
use stage::Stage;

/// How long a question stands before it takes keys.
pub(crate) const PAUSE: Duration = Duration::from_millis(500);

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) enum Matter {
    Approval(Box<ApprovalRequest>),
    Extension(ExtensionRequest),
}

/// A question with the way back to whoever asks.
pub(crate) struct Question {
    pub(crate) matter: Matter,
    pub(crate) reply: Reply,
}

/// The way back.
pub(crate) enum Reply {
    Approval(oneshot::Sender<Answer>),
    Extension(oneshot::Sender<Option<u64>>),
}

impl Reply {
    /// Whether nobody waits for the answer any more.
    fn is_withdrawn(&self) -> bool {
        match self {
            Self::Approval(reply) => reply.is_closed(),
            Self::Extension(reply) => reply.is_closed(),
        }
    }
}

/// The questions that are open, oldest first, one of them on the screen.
#[derive(Default)]
pub(crate) struct Questions {
    open: Vec<Question>,
    shown: usize,
    stage: Stage,
    /// The text of the one on the screen.
    panel: Option<Panel>,
    /// Which rows of the scopes are on the screen; none before they were drawn.
    scopes_shown: Option<Range<usize>>,
    /// Since when they stand there, and whether that is long enough to be read.
    scopes_since: Option<Instant>,
    scopes_stood: bool,
    /// Since when it stands there.
    since: Option<Instant>,
    /// Whether it takes keys.
    attended: bool,
    /// Whether there is an input beside it.
    pub(crate) beside_input: bool,
    /// Whether the person turned to it by a key.
    turned_to: bool,
    /// Whether the person turned to it before it could be read: it takes keys as soon as it could.
    awaited: bool,
    /// Whether the person turned away from it: then it does not take keys by itself.
    left: bool,
    /// A word about the last key.
    hint: Option<String>,
    /// The call whose arguments the person changed last, until it is asked about again.
    revised: Option<Revised>,
}

/// Changed arguments on their way: the question comes back with what they would do, or with what is wrong with them.
struct Revised {
    call: Key,
    path: String,
    arguments: Value,
}

impl Revised {
    fn is_of(&self, matter: &Matter) -> bool {
        matches!(matter, Matter::Approval(request) if request.id == self.call && request.path == self.path)
    }
}

impl Questions {
    pub(crate) fn add(&mut self, question: Question) {
        match self.revised.take_if(|revised| revised.is_of(&question.matter)) {
            Some(revised) => self.ask_again(question, revised),
            None => self.open.push(question),
        }
    }

    /// Shows a question whose arguments the person has changed, before any other one; where they do not fit, with what
    /// was written.
    fn ask_again(&mut self, question: Question, revised: Revised) {
        let Matter::Approval(request) = &question.matter else { return };
        let problem = request.edit_problem.clone();
        let place = self.shown.min(self.open.len());
        self.open.insert(place, question);
        self.turn_to(place);
        if let Some(problem) = problem {
            self.stage = Stage::editing(&revised.arguments);
            self.hint = Some(problem);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn count(&self) -> usize {
        self.open.len()
    }

    /// Whether the one on the screen takes keys.
    pub(crate) fn is_attended(&self) -> bool {
        self.attended
    }

    /// Whether an answer is to be chosen by somebody who did not turn to the question: a letter may be meant otherwise.
    pub(crate) fn is_unsure(&self) -> bool {
        self.attended && matches!(self.stage, Stage::Choosing) && !self.turned_to
    }

    /// Whether a single key would answer it.
    pub(crate) fn is_choosing(&self) -> bool {
        self.attended && matches!(self.stage, Stage::Choosing | Stage::Scope(_))
    }

    /// Whether the person looks at how far an answer could reach.
    pub(crate) fn is_choosing_scope(&self) -> bool {
        self.attended && matches!(self.stage, Stage::Scope(_))
    }

    /// Turns away from an answer that was half given.
    pub(crate) fn give_up(&mut self) {
        self.stage = Stage::Choosing;
        self.let_go();
    }

    /// Takes no keys while the person writes something else; without a draft it takes them again.
    pub(crate) fn let_go(&mut self) {
        self.attended = false;
        self.turned_to = false;
        self.awaited = false;
    }

    /// Whether an amount is being written.
    pub(crate) fn is_asking_amount(&self) -> bool {
        self.attended && matches!(self.stage, Stage::Amount(_))
    }

    /// A word about the last key.
    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    fn current(&self) -> Option<&Question> {
        self.open.get(self.shown)
    }

    /// Drops questions that were taken back, and attends to one that has stood for a moment.
    ///
    /// `quiet_since` is when the last key came, and none where the input holds a draft: then the person chooses.
    pub(crate) fn tick(&mut self, now: Instant, quiet_since: Option<Instant>) -> bool {
        let changed = self.drop_withdrawn();
        if self.awaited && self.has_stood(now) {
            self.attend(true);
            return true;
        }
        // An amount is typed as a message is: only who turns to it means it.
        let is_budget = matches!(self.current(), Some(Question { matter: Matter::Extension(_), .. }));
        if is_budget && self.beside_input {
            return changed;
        }
        let Some(since) = self.since.filter(|_| !self.attended && !self.left) else { return changed };
        let Some(quiet) = quiet_since else { return changed };
        if now.saturating_duration_since(since.max(quiet)) < PAUSE {
            return changed;
        }
        self.attended = true;
        true
    }

    fn drop_withdrawn(&mut self) -> bool {
        let shown_is_gone = self.current().is_some_and(|question| question.reply.is_withdrawn());
        let before = self.open.len();
        let gone_before =
            self.open.iter().take(self.shown).filter(|question| question.reply.is_withdrawn()).count();
        self.open.retain(|question| !question.reply.is_withdrawn());
        self.shown = self.shown.saturating_sub(gone_before);
        if shown_is_gone {
            self.turn_to(self.shown);
        }
        self.open.len() != before
    }

    /// Puts another question on the screen. It does not take keys yet.
    fn turn_to(&mut self, place: usize) {
        self.shown = if place < self.open.len() { place } else { 0 };
        self.stage = Stage::default();
        self.panel = None;
        self.left = false;
        self.hint = None;
        self.disarm();
    }

    /// Takes no keys until the question has stood on the screen for a moment again.
    pub(crate) fn disarm(&mut self) {
        self.since = None;
        self.attended = false;
        self.turned_to = false;
        self.awaited = false;
    }

    /// Whether it has stood on the screen long enough to be read.
    pub(crate) fn has_stood(&self, now: Instant) -> bool {
        self.since.is_some_and(|since| now.saturating_duration_since(since) >= PAUSE)
    }

    /// Turns to the question as soon as it could be read.
    pub(crate) fn await_it(&mut self) {
        self.awaited = true;
    }

    /// Somebody who types meanwhile has other things in mind.
    pub(crate) fn await_no_more(&mut self) {
        self.awaited = false;
    }

    /// Lets the question take keys of somebody who may have meant to go on elsewhere.
    pub(crate) fn attend_unsurely(&mut self) {
        self.attend(true);
        self.turned_to = false;
    }

    /// Whether the person writes something at it.
    pub(crate) fn is_written_at(&self) -> bool {
        self.attended && matches!(self.stage, Stage::Editing(_) | Stage::Denying(_) | Stage::Amount(_))
    }

    /// Lets the question take keys, or not until it is attended to again.
    pub(crate) fn attend(&mut self, attended: bool) {
        self.attended = attended && self.since.is_some();
        self.turned_to = self.attended;
        self.awaited = false;
        self.left = !attended;
    }

    /// Lays the question out; from now on it stands on the screen.
    pub(crate) fn lay_out(&mut self, width: u16, height: u16, story: &Story, theme: Theme, now: Instant) {
        let Some(question) = self.open.get(self.shown) else { return };
        if matches!((&question.matter, &self.stage), (Matter::Extension(_), Stage::Choosing)) {
            self.stage = Stage::amount();
        }
        let panel = self.panel.get_or_insert_with(Panel::default);
        panel.lay_out(&question.matter, task_of(&question.matter, story).as_deref(), width, theme);
        let below = self.stage.height(&question.matter, width, height);
        panel.show(height.saturating_sub(below));
        self.scopes_shown = match (&question.matter, &self.stage) {
            (Matter::Approval(request), Stage::Scope(chosen)) => {
                let since = *self.scopes_since.get_or_insert(now);
                self.scopes_stood = now.saturating_duration_since(since) >= PAUSE;
                let chosen = chosen.unwrap_or_default();
                Some(ScopeList::new(request, width).shown(chosen, below.saturating_sub(1).into()))
            }
            _ => None,
        };
        self.since.get_or_insert(now);
    }
}

/// What the agent that asks was given: there may be several of its name.
fn task_of(matter: &Matter, story: &Story) -> Option<String> {
    let Matter::Approval(request) = matter else { return None };
    story.caller_of(request).filter(|caller| caller.level > 0).map(input_words)
}
