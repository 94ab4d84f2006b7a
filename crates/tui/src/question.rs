//! Questions to the person: may this call run, may this budget grow?
//!
//! Nothing is approved unseen. Which key is an answer is decided by [`focus::transition`] alone; this module keeps the
//! questions and does what it says (`effects`).

mod answer_editor;
mod draw;
mod effects;
pub(crate) mod focus;
mod panel;
mod scopes;

use std::ops::Range;
use std::time::Instant;

use llm_do_core::{Answer, ApprovalRequest, ExtensionRequest, Key};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::call_tree::CallTree;
use crate::editor::Editor;
use crate::theme::Theme;
use crate::transcript::describe_input;
pub(crate) use draw::key_line;
pub(crate) use effects::QuestionResult;
use focus::{AnswerMode, Effect, Focus, FocusContext, FocusInput, Keyboard, QuestionKind, Transition};
use panel::Panel;
use scopes::ScopeList;

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) enum QuestionSubject {
    Approval(Box<ApprovalRequest>),
    Extension(ExtensionRequest),
}

impl QuestionSubject {
    fn kind(&self) -> QuestionKind {
        match self {
            Self::Approval(request) => QuestionKind::Approval { has_scopes: !request.scopes.is_empty() },
            Self::Extension(_) => QuestionKind::Budget,
        }
    }
}

/// A question, and where its answer goes.
pub(crate) struct OpenQuestion {
    pub(crate) subject: QuestionSubject,
    pub(crate) reply: QuestionReply,
}

/// Where an answer goes.
pub(crate) enum QuestionReply {
    Approval(oneshot::Sender<Answer>),
    Extension(oneshot::Sender<Option<u64>>),
}

impl QuestionReply {
    /// Returns whether nobody waits for the answer any more.
    fn is_withdrawn(&self) -> bool {
        match self {
            Self::Approval(reply) => reply.is_closed(),
            Self::Extension(reply) => reply.is_closed(),
        }
    }
}

/// The open questions, oldest first, one of them on the screen.
pub(crate) struct Questions {
    open: Vec<OpenQuestion>,
    /// The index of the question on the screen.
    current: usize,
    focus: Focus,
    transition: Transition,
    /// The text of an answer that is typed, in the modes that have one.
    editor: Option<Box<Editor>>,
    /// The text of the current question; none before it was drawn.
    panel: Option<Panel>,
    /// The rows of the list of scopes that are on the screen; none before it was drawn.
    visible_scope_rows: Option<Range<usize>>,
    /// A hint about the last key.
    hint: Option<String>,
    /// The call whose arguments the person changed last, until it is asked about again.
    revision: Option<Revision>,
}

impl Default for Questions {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            current: 0,
            focus: Focus::default(),
            transition: focus::transition,
            editor: None,
            panel: None,
            visible_scope_rows: None,
            hint: None,
            revision: None,
        }
    }
}

/// Changed arguments that were sent: the question comes back with what they would do, or with what is wrong with them.
struct Revision {
    call: Key,
    path: String,
    arguments: Value,
}

impl Revision {
    fn is_of(&self, subject: &QuestionSubject) -> bool {
        matches!(subject, QuestionSubject::Approval(request) if request.id == self.call && request.path == self.path)
    }
}

impl Questions {
    pub(crate) fn add(&mut self, question: OpenQuestion) {
        match self.revision.take_if(|revision| revision.is_of(&question.subject)) {
            Some(revision) => self.ask_again(question, &revision),
            None => {
                self.open.push(question);
                if self.open.len() == 1 {
                    self.show(0);
                }
            }
        }
    }

    /// Shows a question whose arguments the person has changed, before any other one; if they do not fit, with what was
    /// written.
    fn ask_again(&mut self, question: OpenQuestion, revision: &Revision) {
        let QuestionSubject::Approval(request) = &question.subject else { return };
        let problem = request.edit_problem.clone();
        let index = self.current.min(self.open.len());
        self.open.insert(index, question);
        self.show(index);
        if let Some(problem) = problem {
            self.editor = Some(Box::new(answer_editor::for_arguments(&revision.arguments)));
            self.change_focus(FocusInput::Appeared(AnswerMode::Editing));
            self.hint = Some(problem);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn count(&self) -> usize {
        self.open.len()
    }

    /// Returns whether keys go to the question on the screen.
    pub(crate) fn has_focus(&self) -> bool {
        self.focus.is_on_question()
    }

    /// Returns whether the person types an answer.
    pub(crate) fn is_typing(&self) -> bool {
        let is_typed =
            matches!(self.focus.mode(), AnswerMode::Editing | AnswerMode::Denying | AnswerMode::Amount);
        self.has_focus() && is_typed
    }

    /// Returns the hint about the last key.
    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    fn current(&self) -> Option<&OpenQuestion> {
        self.open.get(self.current)
    }

    /// Changes the focus by something that is not a key and needs no context.
    fn change_focus(&mut self, input: FocusInput) {
        let now = Instant::now();
        let keyboard = Keyboard {
            has_input: false,
            has_form: false,
            has_draft: false,
            is_completing: false,
            last_key: now,
            arrival: focus::Arrival::Alone,
        };
        self.next_focus(input, keyboard);
    }

    /// Changes the focus, and returns what is to be done.
    fn next_focus(&mut self, input: FocusInput, keyboard: Keyboard) -> Effect {
        let context = self.context(keyboard);
        let (focus, effect) = (self.transition)(self.focus, input, &context);
        self.focus = focus;
        effect
    }

    fn context(&self, keyboard: Keyboard) -> FocusContext {
        FocusContext {
            question: self.current().map(|question| question.subject.kind()),
            // What was never laid out was never seen.
            is_seen: self.panel.as_ref().is_some_and(|panel| panel.unseen() == 0),
            visible_scopes: self.visible_scopes(),
            is_editor_empty: self.editor.as_ref().is_none_or(|editor| editor.is_empty()),
            keyboard,
        }
    }

    /// Returns for each scope whether all of it is on the screen.
    fn visible_scopes(&self) -> Vec<bool> {
        let Some(list) = self.scope_list() else { return Vec::new() };
        let rows = self.visible_scope_rows.as_ref();
        (0..list.len()).map(|index| rows.is_some_and(|rows| list.is_whole(index, rows))).collect()
    }

    fn scope_list(&self) -> Option<ScopeList> {
        if !matches!(self.focus.mode(), AnswerMode::Scopes { .. }) {
            return None;
        }
        let width = self.panel.as_ref()?.width();
        match &self.current()?.subject {
            QuestionSubject::Approval(request) => Some(ScopeList::new(request, width)),
            QuestionSubject::Extension(_) => None,
        }
    }

    /// Drops questions that were withdrawn.
    fn drop_withdrawn(&mut self) {
        let is_current_gone = self.current().is_some_and(|question| question.reply.is_withdrawn());
        let before = self.open.iter().take(self.current);
        let gone_before = before.filter(|question| question.reply.is_withdrawn()).count();
        self.open.retain(|question| !question.reply.is_withdrawn());
        self.current = self.current.saturating_sub(gone_before);
        if is_current_gone {
            self.show(self.current);
        }
    }

    /// Puts another question on the screen. It does not take keys yet.
    fn show(&mut self, index: usize) {
        self.current = if index < self.open.len() { index } else { 0 };
        let is_budget =
            matches!(self.current(), Some(OpenQuestion { subject: QuestionSubject::Extension(_), .. }));
        let mode = if is_budget { AnswerMode::Amount } else { AnswerMode::Choosing };
        self.editor = is_budget.then(|| Box::new(answer_editor::for_amount()));
        self.panel = None;
        self.visible_scope_rows = None;
        self.hint = None;
        self.change_focus(FocusInput::Appeared(mode));
    }

    /// Takes note that the question is not on the screen for a while.
    pub(crate) fn cover(&mut self) {
        self.change_focus(FocusInput::Covered);
    }

    /// Lays the question out; from now on it is on the screen.
    pub(crate) fn lay_out(
        &mut self,
        width: u16,
        height: u16,
        call_tree: &CallTree,
        theme: Theme,
        now: Instant,
    ) {
        let Some(question) = self.open.get(self.current) else { return };
        let panel = self.panel.get_or_insert_with(Panel::default);
        panel.lay_out(&question.subject, task_of(&question.subject, call_tree).as_deref(), width, theme);
        let mode = self.focus.mode();
        let below = answer_editor::rows_below(mode, self.editor.as_deref(), &question.subject, width, height);
        panel.show(height.saturating_sub(below));
        let rows = match (&question.subject, mode) {
            (QuestionSubject::Approval(request), AnswerMode::Scopes { selected, .. }) => {
                let rows = below.saturating_sub(1).into();
                Some(ScopeList::new(request, width).visible_rows(selected.unwrap_or_default(), rows))
            }
            _ => None,
        };
        if self.visible_scope_rows != rows {
            self.visible_scope_rows = rows;
            self.change_focus(FocusInput::ScopesMoved);
        }
        self.change_focus(FocusInput::Drawn(now));
    }

    #[cfg(test)]
    pub(crate) fn has_pending_key(&self) -> bool {
        matches!(self.focus, Focus::Pending { .. } | Focus::Orphaned { .. })
    }

    /// Replaces the transition function by another one, which a test's oracle must find out.
    #[cfg(test)]
    pub(crate) fn forge(&mut self, transition: Transition) {
        self.transition = transition;
    }
}

/// Returns what the agent that asks was given: there may be several of its name.
fn task_of(subject: &QuestionSubject, call_tree: &CallTree) -> Option<String> {
    let QuestionSubject::Approval(request) = subject else { return None };
    call_tree.caller_of(request).filter(|caller| caller.level > 0).map(describe_input)
}
