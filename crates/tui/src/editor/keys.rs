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
    Go(Place),
    Erase(Piece),
    Undo,
    Redo,
    /// Inserts what was erased last as a word or line.
    Yank,
}

/// Where the cursor goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
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
pub(super) enum Piece {
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
        KeyCode::Char(sign) => match (control, alt) {
            (false, false) => Some(Action::Type(sign)),
            (true, false) => with_control(sign),
            (false, true) => with_alt(sign),
            // Windows reports AltGr this way; letters with both are shortcuts of others.
            (true, true) => (!sign.is_ascii_alphanumeric()).then_some(Action::Type(sign)),
        },
        KeyCode::Enter if shift || alt || control => Some(Action::Newline),
        KeyCode::Enter => Some(Action::Enter),
        code => named(code, control || alt),
    }
}

fn named(code: KeyCode, by_word: bool) -> Option<Action> {
    Some(match (code, by_word) {
        (KeyCode::Left, false) => Action::Go(Place::Left),
        (KeyCode::Left, true) => Action::Go(Place::WordLeft),
        (KeyCode::Right, false) => Action::Go(Place::Right),
        (KeyCode::Right, true) => Action::Go(Place::WordRight),
        (KeyCode::Up, false) => Action::Go(Place::Up),
        (KeyCode::Down, false) => Action::Go(Place::Down),
        (KeyCode::Home, false) => Action::Go(Place::LineStart),
        (KeyCode::Home, true) => Action::Go(Place::TextStart),
        (KeyCode::End, false) => Action::Go(Place::LineEnd),
        (KeyCode::End, true) => Action::Go(Place::TextEnd),
        (KeyCode::Backspace, false) => Action::Erase(Piece::Left),
        (KeyCode::Backspace, true) => Action::Erase(Piece::WordLeft),
        (KeyCode::Delete, false) => Action::Erase(Piece::Right),
        (KeyCode::Delete, true) => Action::Erase(Piece::WordRight),
        _ => return None,
    })
}

fn with_control(sign: char) -> Option<Action> {
    Some(match sign.to_ascii_lowercase() {
        'a' => Action::Go(Place::LineStart),
        'e' => Action::Go(Place::LineEnd),
        'b' => Action::Go(Place::Left),
        'f' => Action::Go(Place::Right),
        'p' => Action::Go(Place::Up),
        'n' => Action::Go(Place::Down),
        'h' => Action::Erase(Piece::Left),
        'd' => Action::Erase(Piece::Right),
        'w' => Action::Erase(Piece::WordLeft),
        'u' => Action::Erase(Piece::ToLineStart),
        'k' => Action::Erase(Piece::ToLineEnd),
        'y' => Action::Yank,
        'j' => Action::Newline,
        'm' => Action::Enter,
        // Old terminals send Ctrl-7 for Ctrl-_.
        '_' | '7' => Action::Undo,
        'r' => Action::Redo,
        _ => return None,
    })
}

fn with_alt(sign: char) -> Option<Action> {
    Some(match sign {
        'b' => Action::Go(Place::WordLeft),
        'f' => Action::Go(Place::WordRight),
        'd' => Action::Erase(Piece::WordRight),
        '<' => Action::Go(Place::TextStart),
        '>' => Action::Go(Place::TextEnd),
        _ => return None,
    })
}
