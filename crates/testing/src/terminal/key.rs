//! Keys, and the bytes that xterm sends for them.

/// A key of the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character as it is.
    Char(char),
    /// A letter with Ctrl; also `'@'`, `'['`, `'\\'`, `']'`, `'^'` and `'_'`.
    Ctrl(char),
    /// A character with Alt; `Alt('\r')` is Enter with Alt.
    Alt(char),
    /// A function key, from 1 to 12.
    F(u8),
    /// Return.
    Enter,
    /// Escape.
    Esc,
    /// Tab.
    Tab,
    /// Tab with Shift.
    BackTab,
    /// The key that deletes to the left.
    Backspace,
    /// The key that deletes to the right.
    Delete,
    /// Insert.
    Insert,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
}

impl Key {
    /// Returns what xterm sends; arrows depend on a mode that a program may switch on.
    pub(super) fn sequence(self, application_cursor: bool) -> String {
        let cursor = |letter: char| format!("\u{1b}{}{letter}", if application_cursor { 'O' } else { '[' });
        match self {
            Self::Char(c) => c.to_string(),
            Self::Ctrl(c) => control(c).to_string(),
            Self::Alt(c) => format!("\u{1b}{c}"),
            Self::F(number) => function(number),
            Self::Enter => "\r".into(),
            Self::Esc => "\u{1b}".into(),
            Self::Tab => "\t".into(),
            Self::BackTab => "\u{1b}[Z".into(),
            Self::Backspace => "\u{7f}".into(),
            Self::Delete => "\u{1b}[3~".into(),
            Self::Insert => "\u{1b}[2~".into(),
            Self::Up => cursor('A'),
            Self::Down => cursor('B'),
            Self::Right => cursor('C'),
            Self::Left => cursor('D'),
            Self::Home => cursor('H'),
            Self::End => cursor('F'),
            Self::PageUp => "\u{1b}[5~".into(),
            Self::PageDown => "\u{1b}[6~".into(),
        }
    }
}

fn control(c: char) -> char {
    let c = c.to_ascii_uppercase();
    assert!(('@'..='_').contains(&c), "there is no Ctrl-{c}");
    char::from(c as u8 & 0x1f)
}

fn function(number: u8) -> String {
    match number {
        1..=4 => format!("\u{1b}O{}", char::from(b'P' + number - 1)),
        5..=12 => format!("\u{1b}[{}~", [15, 17, 18, 19, 20, 21, 23, 24][usize::from(number) - 5]),
        _ => panic!("there is no F{number}"),
    }
}
