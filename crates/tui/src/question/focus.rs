//! Decides who gets a key while a question is open, and which key is an answer.
//!
//! [`transition`] is the only function that changes a [`Focus`], and the only one that returns an [`Effect`] which
//! approves something. It is pure: the time, the keys and what is on the screen are passed in. `tests/focus.rs` checks
//! it with random sequences of keys, pastes, resizes, questions and delays: nothing is approved unless the whole
//! question was visible and one key was pressed for it.
//!
//! "Visible" means visible without interruption for [`READING_TIME`], "quiet" means no key for that time, "seen" means
//! that every row of the question has been on the screen. `Waiting/Auto` is `Waiting` with [`FocusEntry::Auto`], and so on;
//! `mode` is what the person does with the question ([`AnswerMode`]), and stays as it is unless the table names it.
//!
//! | State | Input | Next state | Effect |
//! | --- | --- | --- | --- |
//! | `Waiting`, `Answering` | `Appeared(mode)` | `Waiting/Auto`, not visible | |
//! | `Pending`, `Orphaned` | `Appeared(mode)` | `Orphaned`, not visible | |
//! | every state | `Covered` | `Waiting`, not visible; `Dismissed` stays, else `Auto` | |
//! | `Scopes` | `ScopesMoved` | the same, not visible | |
//! | every state | `Drawn` | the same, visible from now on if it was not | |
//! | `Waiting/Requested` | `Tick`, visible | `Answering` by Tab | |
//! | `Waiting/Auto` | `Tick`, visible, quiet, no draft, not a budget beside an input | `Answering` by itself | |
//! | `Waiting` | Tab, no form, visible | `Answering` by Tab | |
//! | `Waiting` | Tab, no form, not yet visible | `Waiting/Requested` | |
//! | `Waiting` | Tab, form, visible and quiet | `Answering` by itself | |
//! | `Waiting` | another key, a paste, Tab otherwise | `Waiting`, no longer requested | `PassOn` |
//! | `Answering` | letters that arrived together, `Choosing` or `Scopes`: one repeated | the same | `Hint` |
//! | `Answering` | the same: a text, with an input | `Waiting/Auto`, `Choosing` | `PassOn` |
//! | `Answering` | the same: a text, no input | `Waiting/Auto`, `Choosing`, not visible | `Hint` |
//! | `Answering` by itself, `Choosing` | letter; with an input any, else `y` `a` `q` | `Pending` | |
//! | `Answering` by itself, `Choosing` | letter that does not answer, no input | `Waiting/Auto`, not visible | `Hint` |
//! | `Answering`, `Choosing` | `y`, seen | `Waiting/Auto`, not visible | **`AllowOnce`** |
//! | `Answering`, `Choosing` | `a`, seen, the call has scopes | `Scopes`, not visible | |
//! | `Answering`, `Choosing` | `y` or `a`, not seen | the same | `ShowUnseen` |
//! | `Answering`, `Choosing` | `e`, `n` | `Editing`, `Denying` | `OpenEditor` |
//! | `Answering`, `Choosing` | `E`, `q`, arrows and paging keys | the same | `EditOutside`, `Stop`, `Turn`, `Scroll` |
//! | `Answering`, `Choosing` or `Amount` | Tab | `Waiting/Dismissed` | |
//! | `Answering`, `Scopes` | a word's letter, with an input | `Waiting/Auto`, `Choosing` | `PassOn` after `a` |
//! | `Answering`, `Scopes` | number or Enter: that scope is visible as a whole | `Waiting/Auto`, not visible | **`Grant`** |
//! | `Answering`, `Scopes` | number or Enter: it is not | the same | `Hint` |
//! | `Answering`, `Scopes` | ↑ ↓ | another scope is selected | |
//! | `Answering`, `Scopes` | another key | `Scopes`, not visible | `Hint` |
//! | `Answering`, `Scopes`, `Editing`, `Denying` | Esc | `Choosing` | |
//! | `Answering`, `Editing`, `Denying`, `Amount` | another key, a paste | the same | `Type`, `Paste` |
//! | `Answering`, `Scopes` or `Amount` | Enter that arrived with other keys | the same | `Hint` |
//! | `Answering`, `Amount` | `Amount(n)`, seen | `Waiting/Auto`, not visible | **`Extend(n)`** |
//! | `Answering`, `Amount` | `Amount(n)`, not seen | the same | `ShowUnseen` |
//! | `Answering` by itself, `Choosing` | paste, with an input | `Waiting/Auto` | `PassOn` |
//! | `Pending` | `Tick` after [`PENDING_TIME`], or a key that is neither text nor erases | as the letter in `Answering` | |
//! | `Pending` | the same letter | `Answering` | `Hint`; the key is used up |
//! | `Pending` | another letter or a paste, with an input | `Waiting/Auto` | `PassOn` after the letter |
//! | `Pending` | another letter or a paste, no input | `Waiting/Auto`, not visible | `Hint` |
//! | `Pending` | Backspace, Delete, Esc, Ctrl | `Answering` | |
//! | `Orphaned` | as `Pending`, but the letter never answers | `Waiting/Auto` | |

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// How long a question must be visible before it takes keys.
pub(crate) const READING_TIME: Duration = Duration::from_millis(500);
/// How long a letter waits for others: several make a text, one alone is an answer.
pub(crate) const PENDING_TIME: Duration = Duration::from_millis(250);

const PRESS_ALONE: &str = "keys that arrive together are not an answer: press one alone";
pub(super) const ANSWER_KEYS: &str = "y, a, e, n or q answers; arrows, Space and End scroll";
const CHOOSE_SCOPE: &str = "a number allows that; ↑ and ↓ choose, Esc goes back";
const READ_SCOPE: &str = "read it first; Enter allows it";
const NO_SCOPES: &str = "this call asks each time";
const NOT_AN_AMOUNT: &str = "a number, or Enter alone for no";

/// Who gets the keys while a question is open, and how far its answer is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Focus {
    /// Keys go to the input, a form or the tree.
    Waiting { mode: AnswerMode, visible_since: Option<Instant>, entry: FocusEntry },
    /// Keys go to the question.
    Answering { mode: AnswerMode, visible_since: Instant, entered_by: EnteredBy },
    /// A letter was pressed that is an answer or the start of a text: what follows decides.
    /// `was_seen` is whether every row had been on the screen when it was pressed.
    Pending { key: KeyEvent, pressed_at: Instant, visible_since: Instant, was_seen: bool },
    /// A letter was pressed for a question that is gone. It may still be the start of a text.
    Orphaned { key: KeyEvent, pressed_at: Instant, mode: AnswerMode, visible_since: Option<Instant> },
}

/// What makes a waiting question take the keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FocusEntry {
    /// It takes them by itself when it is visible and nobody types.
    Auto,
    /// The person left it with Tab: only Tab goes back to it.
    Dismissed,
    /// The person pressed Tab before it could be read: it takes the keys as soon as it could.
    Requested { was_dismissed: bool },
}

/// How the keys came to a question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum EnteredBy {
    /// The person pressed Tab, so the next letter is meant for the question.
    Tab,
    /// Nobody typed for a while. A letter may still be meant for something else.
    Itself,
}

/// What the person does with the question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum AnswerMode {
    /// Chooses an answer by one key.
    Choosing,
    /// Chooses how far an answer reaches. `is_readable` is set by a frame that is drawn after [`READING_TIME`].
    Scopes { selected: Option<usize>, visible_since: Option<Instant>, is_readable: bool },
    /// Edits the arguments.
    Editing,
    /// Writes why the call is denied.
    Denying,
    /// Writes by how much a budget grows.
    Amount,
}

/// Whether a key came alone, or together with others in one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    Alone,
    /// One letter more than once, or with Enter: pressed on a slow line, or held down.
    Repeated,
    /// Text that was pasted, or typed while the program was busy.
    Text,
}

impl From<&[KeyEvent]> for Arrival {
    /// Tells from all keys of one read how they came.
    fn from(keys: &[KeyEvent]) -> Self {
        let is_letter = |key: &&KeyEvent| !matches!(key.code, KeyCode::Enter | KeyCode::Char(' '));
        let mut letters = keys.iter().filter(is_letter);
        match letters.next() {
            _ if keys.len() < 2 => Self::Alone,
            Some(first) if letters.all(|other| other.code == first.code) => Self::Repeated,
            _ => Self::Text,
        }
    }
}

/// Something that may change the focus.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FocusInput {
    /// Another question is the current one now.
    Appeared(AnswerMode),
    /// The question is not on the screen for a while: the tree, an editor or the shell has the terminal.
    Covered,
    /// Other rows of the list of scopes are on the screen than before: it was scrolled, or the window has another size.
    ScopesMoved,
    /// A frame with the question was drawn.
    Drawn(Instant),
    /// Time has passed.
    Tick(Instant),
    /// A key, before anything else is done with it: it decides what becomes of a pending letter.
    NextKey(KeyEvent),
    /// A key that is not a global one.
    Key(KeyEvent, Instant),
    /// Pasted text.
    Paste,
    /// Arguments were edited and are the same as before.
    Unchanged,
    /// An amount was entered in [`AnswerMode::Amount`].
    Amount(Amount),
}

/// What was entered as the growth of a budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Amount {
    /// Nothing: the budget does not grow.
    Nothing,
    Number(u64),
    /// A text that is not a number of this unit.
    Unreadable,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Effect {
    Nothing,
    /// The input, the form or the tree gets the key or the paste; before that, the letter that was waiting.
    PassOn {
        letter: Option<KeyEvent>,
    },
    /// The key was used up, and the question shows a hint.
    Hint(&'static str),
    /// Scroll to the first row that was not visible yet, and say that there are such rows.
    ShowUnseen,
    /// Allow this call once.
    AllowOnce,
    /// Allow the scope with this index for the session.
    Grant(usize),
    /// Let the budget grow by this, or not at all.
    Extend(Option<u64>),
    /// Stop the run.
    Stop,
    /// Open the editor of the new mode.
    OpenEditor,
    /// Edit the arguments in the person's own editor.
    EditOutside,
    /// The arguments in the editor are final.
    SubmitArguments,
    /// Type a key into the editor of the question.
    Type(KeyEvent),
    /// Paste into the editor of the question.
    Paste,
    /// Show another question.
    Turn(Direction),
    /// Scroll the question, if the key does that.
    Scroll(KeyCode),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Next,
    Previous,
}

/// What a transition depends on besides the focus and the input.
#[derive(Debug, Clone)]
pub(crate) struct FocusContext {
    pub(crate) question: Option<QuestionKind>,
    /// Every row of the question has been on the screen.
    pub(crate) is_seen: bool,
    /// For each scope, whether all of it is on the screen.
    pub(crate) visible_scopes: Vec<bool>,
    /// The editor of the question is empty.
    pub(crate) is_editor_empty: bool,
    pub(crate) keyboard: Keyboard,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuestionKind {
    Approval { has_scopes: bool },
    Budget,
}

/// What else could take the keys, and how they came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keyboard {
    pub(crate) has_input: bool,
    pub(crate) has_form: bool,
    /// The input or a form holds text.
    pub(crate) has_draft: bool,
    /// A list of completions is open, in which Tab has its own meaning.
    pub(crate) is_completing: bool,
    pub(crate) last_key: Instant,
    pub(crate) arrival: Arrival,
}

/// The type of [`transition`]: tests replace it by one that approves too early, which their oracle must notice.
pub(crate) type Transition = fn(Focus, FocusInput, &FocusContext) -> (Focus, Effect);

/// Returns the next focus and what is to be done; the table is in the documentation of this module.
pub(crate) fn transition(focus: Focus, input: FocusInput, context: &FocusContext) -> (Focus, Effect) {
    match input {
        FocusInput::Appeared(mode) => (focus.with_new_question(mode), Effect::Nothing),
        FocusInput::Covered => (focus.covered(), Effect::Nothing),
        FocusInput::ScopesMoved => (focus.with_moved_scopes(), Effect::Nothing),
        FocusInput::Drawn(now) => (focus.drawn(now), Effect::Nothing),
        FocusInput::Tick(now) => tick(focus, now, context),
        FocusInput::NextKey(key) => resolve_pending(focus, key, context),
        FocusInput::Key(key, now) => match focus {
            Focus::Answering { mode, visible_since, entered_by } => {
                let answering = Answering { mode, visible_since, entered_by };
                answering.key(key, now, context)
            }
            focus => waiting_key(focus, key, now, context),
        },
        FocusInput::Paste => paste(focus, context),
        FocusInput::Unchanged => (focus.in_mode(AnswerMode::Choosing), Effect::Nothing),
        FocusInput::Amount(amount) => enter_amount(focus, amount, context),
    }
}

impl Default for Focus {
    fn default() -> Self {
        Self::waiting(AnswerMode::Choosing, None)
    }
}

impl Focus {
    fn waiting(mode: AnswerMode, visible_since: Option<Instant>) -> Self {
        Self::Waiting { mode, visible_since, entry: FocusEntry::Auto }
    }

    /// Returns what the person does with the question.
    pub(crate) fn mode(self) -> AnswerMode {
        match self {
            Self::Waiting { mode, .. } | Self::Answering { mode, .. } | Self::Orphaned { mode, .. } => mode,
            Self::Pending { .. } => AnswerMode::Choosing,
        }
    }

    /// Returns whether keys go to the question.
    pub(crate) fn is_on_question(self) -> bool {
        matches!(self, Self::Answering { .. } | Self::Pending { .. })
    }

    fn visible_since(self) -> Option<Instant> {
        match self {
            Self::Waiting { visible_since, .. } | Self::Orphaned { visible_since, .. } => visible_since,
            Self::Answering { visible_since, .. } | Self::Pending { visible_since, .. } => {
                Some(visible_since)
            }
        }
    }

    fn in_mode(mut self, new: AnswerMode) -> Self {
        match &mut self {
            Self::Waiting { mode, .. } | Self::Answering { mode, .. } | Self::Orphaned { mode, .. } => {
                *mode = new
            }
            Self::Pending { .. } => {}
        }
        self
    }

    fn with_new_question(self, mode: AnswerMode) -> Self {
        match self {
            Self::Waiting { .. } | Self::Answering { .. } => Self::waiting(mode, None),
            Self::Pending { key, pressed_at, .. } | Self::Orphaned { key, pressed_at, .. } => {
                Self::Orphaned { key, pressed_at, mode, visible_since: None }
            }
        }
    }

    fn covered(self) -> Self {
        let entry = match self {
            Self::Waiting { entry, .. } => entry.without_request(),
            _ => FocusEntry::Auto,
        };
        Self::Waiting { mode: self.mode(), visible_since: None, entry }
    }

    /// What has just come onto the screen could not be read yet.
    fn with_moved_scopes(self) -> Self {
        match self.mode() {
            AnswerMode::Scopes { selected, .. } => {
                self.in_mode(AnswerMode::Scopes { selected, visible_since: None, is_readable: false })
            }
            _ => self,
        }
    }

    fn drawn(mut self, now: Instant) -> Self {
        if let Self::Waiting { visible_since, .. } | Self::Orphaned { visible_since, .. } = &mut self {
            visible_since.get_or_insert(now);
        }
        match self.mode() {
            AnswerMode::Scopes { selected, visible_since, .. } => {
                let since = visible_since.unwrap_or(now);
                let is_readable = now.saturating_duration_since(since) >= READING_TIME;
                self.in_mode(AnswerMode::Scopes { selected, visible_since: Some(since), is_readable })
            }
            _ => self,
        }
    }
}

impl FocusEntry {
    fn without_request(self) -> Self {
        match self {
            Self::Requested { was_dismissed: true } => Self::Dismissed,
            Self::Requested { was_dismissed: false } => Self::Auto,
            entry => entry,
        }
    }
}

fn tick(focus: Focus, now: Instant, context: &FocusContext) -> (Focus, Effect) {
    match focus {
        Focus::Pending { key, pressed_at, visible_since, was_seen }
            if is_over(pressed_at, PENDING_TIME, now) =>
        {
            Answering::unasked(visible_since).choose(key, was_seen, context)
        }
        Focus::Orphaned { pressed_at, mode, visible_since, .. } if is_over(pressed_at, PENDING_TIME, now) => {
            tick(Focus::waiting(mode, visible_since), now, context)
        }
        Focus::Waiting { mode, visible_since: Some(since), entry } if is_over(since, READING_TIME, now) => {
            match entered_by(entry, now, context) {
                Some(entered_by) => {
                    (Focus::Answering { mode, visible_since: since, entered_by }, Effect::Nothing)
                }
                None => (focus, Effect::Nothing),
            }
        }
        focus => (focus, Effect::Nothing),
    }
}

fn is_over(since: Instant, time: Duration, now: Instant) -> bool {
    now.saturating_duration_since(since) >= time
}

/// Returns how a question that is visible takes the keys now, if it does.
fn entered_by(entry: FocusEntry, now: Instant, context: &FocusContext) -> Option<EnteredBy> {
    let keyboard = &context.keyboard;
    // An amount is typed like a message, so beside an input only somebody who goes to the question means it.
    let needs_tab = context.question == Some(QuestionKind::Budget) && keyboard.has_input;
    match entry {
        FocusEntry::Requested { .. } => Some(EnteredBy::Tab),
        FocusEntry::Dismissed => None,
        FocusEntry::Auto if needs_tab || keyboard.has_draft => None,
        FocusEntry::Auto => is_over(keyboard.last_key, READING_TIME, now).then_some(EnteredBy::Itself),
    }
}

/// Decides what a letter that was waiting means, now that a key follows it. That key is handled after this, unless it is
/// text too and led to an [`Effect::Hint`].
fn resolve_pending(focus: Focus, next: KeyEvent, context: &FocusContext) -> (Focus, Effect) {
    let (Focus::Pending { key, .. } | Focus::Orphaned { key, .. }) = focus else {
        return (focus, Effect::Nothing);
    };
    if is_text(next) && next.code != key.code {
        return pending_is_text(focus, key, context);
    }
    let resolved = match focus {
        Focus::Pending { visible_since, .. } => Answering::unasked(visible_since).into(),
        focus => Focus::waiting(focus.mode(), focus.visible_since()),
    };
    if is_text(next) {
        return (resolved, Effect::Hint(PRESS_ALONE));
    }
    match focus {
        Focus::Pending { visible_since, was_seen, .. } if !is_erasing(next) => {
            Answering::unasked(visible_since).choose(key, was_seen, context)
        }
        _ => (resolved, Effect::Nothing),
    }
}

/// Returns the focus after a letter turned out to be the start of a text. Where nothing can be typed, a text is not an
/// answer either: the question must be visible for [`READING_TIME`] again.
fn pending_is_text(focus: Focus, letter: KeyEvent, context: &FocusContext) -> (Focus, Effect) {
    if context.keyboard.has_input || context.keyboard.has_form {
        let focus = Focus::waiting(focus.mode(), focus.visible_since());
        (focus, Effect::PassOn { letter: Some(letter) })
    } else {
        (Focus::waiting(focus.mode(), None), Effect::Hint(PRESS_ALONE))
    }
}

/// Handles a key while the question does not take keys.
fn waiting_key(focus: Focus, key: KeyEvent, now: Instant, context: &FocusContext) -> (Focus, Effect) {
    let (mode, visible_since) = (focus.mode(), focus.visible_since());
    let entry = match focus {
        Focus::Waiting { entry, .. } => entry.without_request(),
        _ => FocusEntry::Auto,
    };
    let waiting = Focus::Waiting { mode, visible_since, entry };
    let keyboard = &context.keyboard;
    if key.code != KeyCode::Tab || context.question.is_none() || keyboard.is_completing {
        return (waiting, Effect::PassOn { letter: None });
    }
    let readable_since = visible_since.filter(|since| is_over(*since, READING_TIME, now));
    // In a form Tab goes to the next field while somebody fills it in, and letters after it may be for the form.
    let is_quiet = is_over(keyboard.last_key, READING_TIME, now);
    match (readable_since, keyboard.has_form) {
        (Some(visible_since), false) => {
            (Focus::Answering { mode, visible_since, entered_by: EnteredBy::Tab }, Effect::Nothing)
        }
        (Some(visible_since), true) if is_quiet => {
            (Focus::Answering { mode, visible_since, entered_by: EnteredBy::Itself }, Effect::Nothing)
        }
        (None, false) => {
            let entry = FocusEntry::Requested { was_dismissed: entry == FocusEntry::Dismissed };
            (Focus::Waiting { mode, visible_since, entry }, Effect::Nothing)
        }
        (_, true) => (waiting, Effect::PassOn { letter: None }),
    }
}

fn paste(focus: Focus, context: &FocusContext) -> (Focus, Effect) {
    match focus {
        Focus::Pending { key, .. } | Focus::Orphaned { key, .. } => pending_is_text(focus, key, context),
        Focus::Answering { mode: AnswerMode::Choosing, visible_since, entered_by: EnteredBy::Itself }
            if context.keyboard.has_input =>
        {
            (Focus::waiting(AnswerMode::Choosing, Some(visible_since)), Effect::PassOn { letter: None })
        }
        Focus::Answering { .. } => (focus, Effect::Paste),
        Focus::Waiting { mode, visible_since, entry } => {
            let entry = entry.without_request();
            (Focus::Waiting { mode, visible_since, entry }, Effect::PassOn { letter: None })
        }
    }
}

fn enter_amount(focus: Focus, amount: Amount, context: &FocusContext) -> (Focus, Effect) {
    let is_answering = matches!(focus, Focus::Answering { mode: AnswerMode::Amount, .. });
    match amount {
        _ if !is_answering => (focus, Effect::Nothing),
        Amount::Nothing => (Focus::default(), Effect::Extend(None)),
        Amount::Number(number) if context.is_seen => (Focus::default(), Effect::Extend(Some(number))),
        Amount::Number(_) => (focus, Effect::ShowUnseen),
        Amount::Unreadable => (focus, Effect::Hint(NOT_AN_AMOUNT)),
    }
}

/// The fields of [`Focus::Answering`].
#[derive(Clone, Copy)]
struct Answering {
    mode: AnswerMode,
    visible_since: Instant,
    entered_by: EnteredBy,
}

impl From<Answering> for Focus {
    fn from(Answering { mode, visible_since, entered_by }: Answering) -> Self {
        Self::Answering { mode, visible_since, entered_by }
    }
}

impl Answering {
    /// A question that took the keys by itself and whose answer is being chosen, as before a pending letter.
    fn unasked(visible_since: Instant) -> Self {
        Self { mode: AnswerMode::Choosing, visible_since, entered_by: EnteredBy::Itself }
    }

    fn stay(self, effect: Effect) -> (Focus, Effect) {
        (self.into(), effect)
    }

    fn in_mode(self, mode: AnswerMode, effect: Effect) -> (Focus, Effect) {
        Self { mode, ..self }.stay(effect)
    }

    fn key(self, key: KeyEvent, now: Instant, context: &FocusContext) -> (Focus, Effect) {
        let Keyboard { has_input, arrival, .. } = context.keyboard;
        let is_one_key_mode = matches!(self.mode, AnswerMode::Choosing | AnswerMode::Scopes { .. });
        if arrival != Arrival::Alone && is_letter(key) && is_one_key_mode {
            return self.refuse_text(context);
        }
        match self.mode {
            AnswerMode::Amount | AnswerMode::Scopes { .. }
                if arrival != Arrival::Alone && key.code == KeyCode::Enter =>
            {
                self.stay(Effect::Hint(PRESS_ALONE))
            }
            AnswerMode::Scopes { .. } if has_input && is_word(key) => {
                // The `a` that opened the list was the start of a text.
                let letter = Some(KeyEvent::from(KeyCode::Char('a')));
                (Focus::waiting(AnswerMode::Choosing, Some(self.visible_since)), Effect::PassOn { letter })
            }
            AnswerMode::Choosing if self.entered_by == EnteredBy::Itself && is_letter(key) => {
                self.defer_or_choose(key, now, context)
            }
            AnswerMode::Choosing => self.choose(key, context.is_seen, context),
            AnswerMode::Scopes { selected, .. } => self.choose_scope(selected, key, context),
            AnswerMode::Editing | AnswerMode::Denying => self.type_text(key),
            AnswerMode::Amount => self.type_amount(key, context),
        }
    }

    /// A letter among others is not an answer. It is for the input, if there is one.
    fn refuse_text(self, context: &FocusContext) -> (Focus, Effect) {
        let Keyboard { has_input, arrival, .. } = context.keyboard;
        match arrival {
            Arrival::Repeated => self.stay(Effect::Hint(PRESS_ALONE)),
            _ if has_input => {
                let focus = Focus::waiting(AnswerMode::Choosing, Some(self.visible_since));
                (focus, Effect::PassOn { letter: None })
            }
            _ => (Focus::waiting(AnswerMode::Choosing, None), Effect::Hint(PRESS_ALONE)),
        }
    }

    /// A letter of somebody who did not go to the question may be an answer or the start of a word. One that would
    /// answer for good waits for others; beside an input every one does.
    fn defer_or_choose(self, key: KeyEvent, now: Instant, context: &FocusContext) -> (Focus, Effect) {
        match key.code {
            KeyCode::Char('e' | 'E' | 'n' | 'j' | 'k' | '[' | ']') if !context.keyboard.has_input => {
                self.choose(key, context.is_seen, context)
            }
            KeyCode::Char(letter) if context.keyboard.has_input || matches!(letter, 'y' | 'a' | 'q') => {
                let (visible_since, was_seen) = (self.visible_since, context.is_seen);
                (Focus::Pending { key, pressed_at: now, visible_since, was_seen }, Effect::Nothing)
            }
            // The start of a word, whose other letters are not answers either.
            _ => (Focus::waiting(AnswerMode::Choosing, None), Effect::Hint(ANSWER_KEYS)),
        }
    }

    /// Takes the key of an answer. `is_seen` is whether the whole question had been seen when it was pressed.
    fn choose(self, key: KeyEvent, is_seen: bool, context: &FocusContext) -> (Focus, Effect) {
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return self.stay(Effect::Nothing);
        }
        match key.code {
            KeyCode::Char('y') if is_seen => (Focus::default(), Effect::AllowOnce),
            KeyCode::Char('y') => self.stay(Effect::ShowUnseen),
            KeyCode::Char('a') => self.open_scopes(is_seen, context),
            KeyCode::Char('e') => self.in_mode(AnswerMode::Editing, Effect::OpenEditor),
            KeyCode::Char('E') => self.stay(Effect::EditOutside),
            KeyCode::Char('n') => self.in_mode(AnswerMode::Denying, Effect::OpenEditor),
            KeyCode::Char('q') => (Focus::default(), Effect::Stop),
            KeyCode::Tab => self.dismiss(),
            KeyCode::Right | KeyCode::Char(']') => self.stay(Effect::Turn(Direction::Next)),
            KeyCode::Left | KeyCode::Char('[') => self.stay(Effect::Turn(Direction::Previous)),
            code => self.stay(Effect::Scroll(code)),
        }
    }

    fn dismiss(self) -> (Focus, Effect) {
        let visible_since = Some(self.visible_since);
        (Focus::Waiting { mode: self.mode, visible_since, entry: FocusEntry::Dismissed }, Effect::Nothing)
    }

    fn open_scopes(self, is_seen: bool, context: &FocusContext) -> (Focus, Effect) {
        match context.question {
            Some(QuestionKind::Approval { has_scopes: true }) if is_seen => {
                let scopes = AnswerMode::Scopes { selected: None, visible_since: None, is_readable: false };
                self.in_mode(scopes, Effect::Nothing)
            }
            Some(QuestionKind::Approval { has_scopes: true }) => self.stay(Effect::ShowUnseen),
            _ => self.stay(Effect::Hint(NO_SCOPES)),
        }
    }

    fn choose_scope(self, selected: Option<usize>, key: KeyEvent, context: &FocusContext) -> (Focus, Effect) {
        let last = context.visible_scopes.len().saturating_sub(1);
        match key.code {
            KeyCode::Esc => self.in_mode(AnswerMode::Choosing, Effect::Nothing),
            KeyCode::Up => self.select(selected.map_or(last, |index| index.saturating_sub(1))),
            KeyCode::Down => self.select(selected.map_or(0, |index| (index + 1).min(last))),
            KeyCode::Enter => match selected {
                Some(index) => self.grant(index, context),
                None => self.stay(Effect::Hint(CHOOSE_SCOPE)),
            },
            KeyCode::Char(digit @ '1'..='9') => {
                let index = usize::from(digit as u8 - b'1');
                let (focus, effect) = self.grant(index, context);
                (focus.with_selected(index.min(last)), effect)
            }
            // Somebody who types does not read: the list must be visible for a while again.
            _ => {
                let scopes = AnswerMode::Scopes { selected, visible_since: None, is_readable: false };
                self.in_mode(scopes, Effect::Hint(CHOOSE_SCOPE))
            }
        }
    }

    fn select(self, index: usize) -> (Focus, Effect) {
        (Focus::from(self).with_selected(index), Effect::Nothing)
    }

    /// Grants a scope if all of it is on the screen and could be read.
    fn grant(self, index: usize, context: &FocusContext) -> (Focus, Effect) {
        let is_readable = matches!(self.mode, AnswerMode::Scopes { is_readable: true, .. });
        match context.visible_scopes.get(index) {
            None => self.stay(Effect::Nothing),
            Some(true) if is_readable && context.is_seen => (Focus::default(), Effect::Grant(index)),
            Some(_) => self.stay(Effect::Hint(READ_SCOPE)),
        }
    }

    fn type_text(self, key: KeyEvent) -> (Focus, Effect) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => self.in_mode(AnswerMode::Choosing, Effect::Nothing),
            KeyCode::Char('s') if is_control && self.mode == AnswerMode::Editing => {
                self.stay(Effect::SubmitArguments)
            }
            KeyCode::Char('x') if is_control && self.mode == AnswerMode::Editing => {
                self.stay(Effect::EditOutside)
            }
            _ => self.stay(Effect::Type(key)),
        }
    }

    fn type_amount(self, key: KeyEvent, context: &FocusContext) -> (Focus, Effect) {
        match key.code {
            KeyCode::Esc => self.stay(Effect::OpenEditor),
            KeyCode::Tab => self.dismiss(),
            KeyCode::Right if context.is_editor_empty => self.stay(Effect::Turn(Direction::Next)),
            KeyCode::Left if context.is_editor_empty => self.stay(Effect::Turn(Direction::Previous)),
            KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown => {
                self.stay(Effect::Scroll(key.code))
            }
            _ => self.stay(Effect::Type(key)),
        }
    }
}

impl Focus {
    fn with_selected(self, index: usize) -> Self {
        match self.mode() {
            AnswerMode::Scopes { visible_since, is_readable, .. } => {
                self.in_mode(AnswerMode::Scopes { selected: Some(index), visible_since, is_readable })
            }
            _ => self,
        }
    }
}

/// Returns whether a key writes something.
pub(crate) fn is_text(key: KeyEvent) -> bool {
    let is_plain = (key.modifiers - KeyModifiers::SHIFT).is_empty();
    is_plain && matches!(key.code, KeyCode::Char(_))
}

/// Returns whether a key is pressed by somebody who did not mean the one before.
fn is_erasing(key: KeyEvent) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL)
        || matches!(key.code, KeyCode::Backspace | KeyCode::Delete | KeyCode::Esc)
}

/// Returns whether a key starts a word; a space scrolls.
fn is_letter(key: KeyEvent) -> bool {
    is_text(key) && key.code != KeyCode::Char(' ')
}

/// Returns whether a key is part of a sentence and not a number of a list.
fn is_word(key: KeyEvent) -> bool {
    is_letter(key) && !matches!(key.code, KeyCode::Char('0'..='9'))
}
