//! What tests do with input: press keys that are written as text, and look at a screen.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

/// Reads keys as they are pressed: `hello<S-Enter>you<C-w><Esc>`; `<` alone is `<lt>`.
pub(crate) fn keys(text: &str) -> Vec<KeyEvent> {
    let mut keys = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|named| named.split_once('>'));
        let (key, left) = match named {
            Some((name, left)) => (named_key(name), left),
            None => (KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE), &rest[c.len_utf8()..]),
        };
        keys.push(key);
        rest = left;
    }
    keys
}

fn named_key(name: &str) -> KeyEvent {
    let (modifiers, name) = match name.split_once('-') {
        Some(("C", name)) => (KeyModifiers::CONTROL, name),
        Some(("S", name)) => (KeyModifiers::SHIFT, name),
        Some(("A", name)) => (KeyModifiers::ALT, name),
        _ => (KeyModifiers::NONE, name),
    };
    let code = match name {
        "Enter" => KeyCode::Enter,
        "Tab" => KeyCode::Tab,
        "BackTab" => KeyCode::BackTab,
        "Esc" => KeyCode::Esc,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "Backspace" => KeyCode::Backspace,
        "PageUp" => KeyCode::PageUp,
        "PageDown" => KeyCode::PageDown,
        "Delete" => KeyCode::Delete,
        "Space" => KeyCode::Char(' '),
        "lt" => KeyCode::Char('<'),
        c => KeyCode::Char(c.chars().next().expect("a key has a name")),
    };
    KeyEvent::new(code, modifiers)
}

/// Draws at three widths and writes down what is seen, with the place of the cursor.
pub(crate) fn at_three_widths(mut draw: impl FnMut(u16, &mut TestScreen)) -> String {
    let screens = [40, 80, 140].map(|width| {
        let mut screen = TestScreen::default();
        draw(width, &mut screen);
        format!("{width} columns, {}\n{}", screen.cursor_text(), screen.text())
    });
    screens.join("\n")
}

/// What was drawn.
#[derive(Debug, Default)]
pub(crate) struct TestScreen {
    pub(crate) buffer: Buffer,
    pub(crate) cursor: Option<Position>,
}

impl TestScreen {
    /// Makes room.
    pub(crate) fn sized(&mut self, width: u16, height: u16) -> Rect {
        self.buffer = Buffer::empty(Rect::new(0, 0, width, height));
        self.buffer.area
    }

    /// The rows between bars, without the space that ends them.
    pub(crate) fn text(&self) -> String {
        let area = self.buffer.area;
        let row = |y| -> String {
            let mut row = String::new();
            let mut covered = 0;
            for x in area.x..area.right() {
                let symbol = self.buffer[(x, y)].symbol();
                if covered == 0 {
                    row.push_str(symbol);
                    covered = ratatui::buffer::CellWidth::cell_width(symbol).max(1);
                }
                covered -= 1;
            }
            format!("|{}\n", row.trim_end())
        };
        (area.y..area.bottom()).map(row).collect()
    }

    fn cursor_text(&self) -> String {
        self.cursor.map_or("no cursor".to_owned(), |cursor| format!("cursor at {}, {}", cursor.x, cursor.y))
    }
}
