//! Where the person stands with a question: choosing, or saying more.

use crossterm::event::KeyEvent;
use serde_json::Value;

use super::Matter;
use super::scopes::ScopeList;
use crate::editor::{Edited, Editor};

/// The most rows that something typed takes.
const MOST_TYPED: u16 = 12;

/// What the person does with the question.
#[derive(Default)]
pub(super) enum Stage {
    #[default]
    Choosing,
    /// Chooses how far the answer reaches; at first nothing is chosen.
    Scope(Option<usize>),
    /// Edits the arguments.
    Editing(Box<Editor>),
    /// Writes why not.
    Denying(Box<Editor>),
    /// Writes by how much a budget grows.
    Amount(Box<Editor>),
}

impl Stage {
    pub(super) fn editing(arguments: &Value) -> Self {
        let mut editor = Editor::new("");
        editor.set_text(&llm_do_core::visible_json(arguments));
        Self::Editing(Box::new(editor))
    }

    pub(super) fn denying() -> Self {
        Self::Denying(Box::new(Editor::new("why not? the model reads it; Enter alone gives no reason")))
    }

    pub(super) fn amount() -> Self {
        Self::Amount(Box::new(Editor::new("by how much? Enter alone means not at all")))
    }

    /// How many rows stand below the text of the question.
    pub(super) fn height(&self, matter: &Matter, width: u16, most: u16) -> u16 {
        let footer = 1;
        let own = match self {
            Self::Choosing => 0,
            Self::Scope(_) => match matter {
                Matter::Approval(request) => {
                    u16::try_from(ScopeList::new(request, width).height()).unwrap_or(u16::MAX)
                }
                Matter::Extension(_) => 0,
            },
            Self::Editing(editor) | Self::Denying(editor) | Self::Amount(editor) => {
                editor.height(width, MOST_TYPED)
            }
        };
        own.saturating_add(footer).min(most.saturating_sub(2))
    }
}

/// What typing came to.
pub(super) enum Typed {
    Going,
    Sent(String),
}

/// Types into an editor in which Enter is the end. Enter alone sends nothing typed.
pub(super) fn typed(editor: &mut Editor, key: KeyEvent) -> Typed {
    let is_bare_enter = key.code == crossterm::event::KeyCode::Enter && key.modifiers.is_empty();
    if is_bare_enter && editor.is_empty() {
        return Typed::Sent(String::new());
    }
    match editor.key(key) {
        Edited::Send => Typed::Sent(editor.take()),
        _ => Typed::Going,
    }
}
