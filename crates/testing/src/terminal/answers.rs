//! The answers of a terminal to what a program asks it, as xterm gives them.
//!
//! The question for the kitty keyboard protocol stays without an answer, as xterm leaves it.

use super::holder::Note;

/// What came in beside the text: questions with their answers, and the notes of the holder.
#[derive(Default)]
pub(super) struct Answers {
    /// What the terminal says to the program.
    pub(super) replies: Vec<u8>,
    pub(super) notes: Vec<Note>,
    /// The program is drawing a frame that must be shown at once (mode 2026).
    pub(super) in_frame: bool,
}

impl vt100::Callbacks for Answers {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        second: Option<u8>,
        parameters: &[&[u16]],
        command: char,
    ) {
        let has = |number: u16| parameters.iter().any(|parameter| parameter.first() == Some(&number));
        match (first, second, command) {
            (None, None, 'n') if has(6) => self.reply(&format!("\u{1b}[{}R", position(screen))),
            (Some(b'?'), None, 'n') if has(6) => self.reply(&format!("\u{1b}[?{}R", position(screen))),
            (None, None, 'n') if has(5) => self.reply("\u{1b}[0n"),
            (None, None, 'c') => self.reply("\u{1b}[?64;1;2;6;9;15;16;17;18;21;22;28c"),
            (Some(b'>'), None, 'c') => self.reply("\u{1b}[>41;390;0c"),
            (Some(b'>'), None, 'q') => self.reply("\u{1b}P>|XTerm(390)\u{1b}\\"),
            (None, None, 't') if has(18) => self.reply(&format!("\u{1b}[8;{}t", size(screen))),
            (Some(b'?'), Some(b'$'), 'p') => self.reply(&unknown_mode(parameters)),
            (Some(b'?'), None, 'h') if has(2026) => self.in_frame = true,
            (Some(b'?'), None, 'l') if has(2026) => self.in_frame = false,
            _ => {}
        }
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, parts: &[&[u8]]) {
        match parts {
            [b"10", b"?"] => self.reply("\u{1b}]10;rgb:d7d7/dada/e0e0\u{1b}\\"),
            [b"11", b"?"] => self.reply("\u{1b}]11;rgb:1b1b/1d1d/2323\u{1b}\\"),
            _ => self.notes.extend(Note::of(parts)),
        }
    }
}

impl Answers {
    fn reply(&mut self, text: &str) {
        self.replies.extend_from_slice(text.as_bytes());
    }
}

/// The cursor's row and column from one; a cursor that waits behind the last column is in it.
fn position(screen: &vt100::Screen) -> String {
    let ((row, column), (_, columns)) = (screen.cursor_position(), screen.size());
    format!("{};{}", row + 1, (column + 1).min(columns.get()))
}

fn size(screen: &vt100::Screen) -> String {
    let (rows, columns) = screen.size();
    format!("{rows};{columns}")
}

fn unknown_mode(parameters: &[&[u16]]) -> String {
    let mode = parameters.first().and_then(|parameter| parameter.first()).unwrap_or(&0);
    format!("\u{1b}[?{mode};0$y")
}
