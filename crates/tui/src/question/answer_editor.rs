//! The editor of an answer that is typed: changed arguments, the reason of a denial, or an amount.

use crossterm::event::{KeyCode, KeyEvent};
use serde_json::Value;

use super::QuestionSubject;
use super::focus::AnswerMode;
use super::scopes::ScopeList;
use crate::editor::{Edited, Editor};

/// The most rows of an answer that is typed.
const MAX_EDITOR_ROWS: u16 = 12;

pub(super) fn for_arguments(arguments: &Value) -> Editor {
    let mut editor = Editor::new("");
    editor.set_text(&llm_do_core::visible_json(arguments));
    editor
}

pub(super) fn for_denial() -> Editor {
    Editor::new("why not? the model reads it; Enter alone gives no reason")
}

pub(super) fn for_amount() -> Editor {
    Editor::new("by how much? Enter alone means not at all")
}

/// Returns how many rows there are below the text of the question: the editor or the scopes, and the keys.
pub(super) fn rows_below(
    mode: AnswerMode,
    editor: Option<&Editor>,
    subject: &QuestionSubject,
    width: u16,
    max: u16,
) -> u16 {
    let footer = 1;
    let own = match (mode, subject) {
        (AnswerMode::Choosing, _) | (AnswerMode::Scopes { .. }, QuestionSubject::Extension(_)) => 0,
        (AnswerMode::Scopes { .. }, QuestionSubject::Approval(request)) => {
            u16::try_from(ScopeList::new(request, width).height()).unwrap_or(u16::MAX)
        }
        (AnswerMode::Editing | AnswerMode::Denying | AnswerMode::Amount, _) => {
            editor.map_or(0, |editor| editor.height(width, MAX_EDITOR_ROWS))
        }
    };
    own.saturating_add(footer).min(max.saturating_sub(2))
}

/// Types into an editor in which Enter submits, and returns the text if it did. Enter alone submits an empty text.
pub(super) fn type_key(editor: &mut Editor, key: KeyEvent) -> Option<String> {
    let is_bare_enter = key.code == KeyCode::Enter && key.modifiers.is_empty();
    if is_bare_enter && editor.is_empty() {
        return Some(String::new());
    }
    match editor.key(key) {
        Edited::Send => Some(editor.take()),
        _ => None,
    }
}
