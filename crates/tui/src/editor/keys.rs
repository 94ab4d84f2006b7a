//! What each key asks of an editor.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Inserts this character.
    Type(char),
    /// Sends, or goes on in a new line after a backslash.
    Enter,
    Newline,
    Go(Motion),
    Erase(EraseRange),
    Undo,
    Redo,
    /// Inserts what was erased last as a word or line.
    Yank,
}

/// Where the cursor goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Motion {
    Left,
    Right,
    Up,
    Down,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    TextStart,
    TextEnd,
}

/// What is erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EraseRange {
    Left,
    Right,
    WordLeft,
    WordRight,
    ToLineStart,
    ToLineEnd,
}

/// Reads a key; `None` is one that means nothing to an editor.
pub(super) fn action(key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let shift = key.modifiers.contains(KeyModifiers::SHIFT);
    match key.code {
        KeyCode::Char(c) => match (control, alt) {
            (false, false) => Some(Action::Type(c)),
            (true, false) => with_control(c),
            (false, true) => with_alt(c),
            // Windows reports AltGr this way; letters with both are shortcuts of others.
            (true, true) => (!c.is_ascii_alphanumeric()).then_some(Action::Type(c)),
        },
        KeyCode::Enter if shift || alt || control => Some(Action::Newline),
        KeyCode::Enter => Some(Action::Enter),
        code => named(code, control || alt),
    }
}

fn named(code: KeyCode, by_word: bool) -> Option<Action> {
    Some(match (code, by_word) {
        (KeyCode::Left, false) => Action::Go(Motion::Left),
        (KeyCode::Left, true) => Action::Go(Motion::WordLeft),
        (KeyCode::Right, false) => Action::Go(Motion::Right),
        (KeyCode::Right, true) => Action::Go(Motion::WordRight),
        (KeyCode::Up, false) => Action::Go(Motion::Up),
        (KeyCode::Down, false) => Action::Go(Motion::Down),
        (KeyCode::Home, false) => Action::Go(Motion::LineStart),
        (KeyCode::Home, true) => Action::Go(Motion::TextStart),
        (KeyCode::End, false) => Action::Go(Motion::LineEnd),
        (KeyCode::End, true) => Action::Go(Motion::TextEnd),
        (KeyCode::Backspace, false) => Action::Erase(EraseRange::Left),
        (KeyCode::Backspace, true) => Action::Erase(EraseRange::WordLeft),
        (KeyCode::Delete, false) => Action::Erase(EraseRange::Right),
        (KeyCode::Delete, true) => Action::Erase(EraseRange::WordRight),
        _ => return None,
    })
}

fn with_control(c: char) -> Option<Action> {
    Some(match c.to_ascii_lowercase() {
        'a' => Action::Go(Motion::LineStart),
        'e' => Action::Go(Motion::LineEnd),
        'b' => Action::Go(Motion::Left),
        'f' => Action::Go(Motion::Right),
        'p' => Action::Go(Motion::Up),
        'n' => Action::Go(Motion::Down),
        'h' => Action::Erase(EraseRange::Left),
        'd' => Action::Erase(EraseRange::Right),
        'w' => Action::Erase(EraseRange::WordLeft),
        'u' => Action::Erase(EraseRange::ToLineStart),
        'k' => Action::Erase(EraseRange::ToLineEnd),
        'y' => Action::Yank,
        'j' => Action::Newline,
        'm' => Action::Enter,
        // Old terminals send Ctrl-7 for Ctrl-_.
        '_' | '7' => Action::Undo,
        'r' => Action::Redo,
        _ => return None,
    })
}

fn with_alt(c: char) -> Option<Action> {
    Some(match c {
        'b' => Action::Go(Motion::WordLeft),
        'f' => Action::Go(Motion::WordRight),
        'd' => Action::Erase(EraseRange::WordRight),
        '<' => Action::Go(Motion::TextStart),
        '>' => Action::Go(Motion::TextEnd),
        _ => return None,
    })
}
