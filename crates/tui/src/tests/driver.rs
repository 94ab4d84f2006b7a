//! A UI without a terminal: events and keys in, rows out, and a clock that the test moves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use llm_do_core::{Answer, ApprovalRequest, Event, ExtensionRequest};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;

use crate::app::{App, AppAction};
use crate::question::focus::Arrival;
use crate::question::{OpenQuestion, QuestionReply, QuestionSubject};
use crate::test_support::{TestScreen, keys};
use crate::{UiCommand, UiOptions, UiUpdate};

/// Longer than a question stands before it takes keys.
pub(super) const A_WHILE: u64 = 600;
/// So long the key of an answer waits for others.
pub(super) const A_MOMENT: u64 = 300;

/// A UI, its clock, and what it printed.
pub(super) struct Driver {
    pub(super) app: App,
    sent: UnboundedReceiver<UiCommand>,
    now: Instant,
    size: Size,
    printed: Vec<Line<'static>>,
    /// How many calls were made, for their keys.
    pub(super) calls: usize,
    /// How many runs were begun.
    pub(super) runs: u8,
    /// The places of pieces of text.
    pub(super) pieces: std::collections::HashMap<llm_do_core::Key, u64>,
}

/// What a chat begins with.
pub(super) fn options() -> UiOptions {
    UiOptions {
        chat: true,
        awaits_input: true,
        directory: "no such directory".into(),
        edit: Arc::new(|value| Ok(value.clone())),
        ..UiOptions::new("main")
    }
}

impl Driver {
    /// A UI on a screen of this size.
    pub(super) fn new(options: UiOptions, size: (u16, u16)) -> Self {
        let (commands, sent) = unbounded_channel();
        let now = Instant::now();
        let app = App::new(options, commands, now);
        let size = Size { width: size.0, height: size.1 };
        let (printed, pieces) = (Vec::new(), std::collections::HashMap::new());
        let mut driver = Self { app, sent, now, size, printed, calls: 0, runs: 0, pieces };
        driver.frame();
        driver
    }

    /// A chat at 80 columns.
    pub(super) fn chat() -> Self {
        Self::new(options(), (80, 24))
    }

    /// A single run at 80 columns: there is nothing to type.
    pub(super) fn single_run() -> Self {
        Self::new(UiOptions { chat: false, awaits_input: false, ..options() }, (80, 24))
    }

    pub(super) fn read(&mut self, event: &Event) {
        self.app.event(event, self.now);
    }

    pub(super) fn update(&mut self, update: UiUpdate) {
        self.app.update(update, self.now);
    }

    /// Presses keys one after the other, with a frame after each. Where nothing can be written, time passes in the end
    /// in which more keys could follow.
    pub(super) fn press(&mut self, text: &str) -> AppAction {
        let mut last = AppAction::Continue;
        for key in keys(text) {
            last = self.app.key(key, Arrival::Alone, self.now);
            self.frame();
        }
        if self.app.has_pending_key() {
            self.now += Duration::from_millis(A_MOMENT);
            last = self.app.tick(self.now);
            self.frame();
        }
        last
    }

    /// Reads a question to its end, page by page.
    pub(super) fn read_on(&mut self) {
        for _ in 0..100 {
            self.press("<Space>");
        }
    }

    /// Presses keys all at once, as text comes that is pasted where the terminal does not say so.
    pub(super) fn burst(&mut self, text: &str) {
        let keys = keys(text);
        let arrival = Arrival::from(keys.as_slice());
        for key in keys {
            self.app.key(key, arrival, self.now);
        }
        self.frame();
    }

    pub(super) fn paste(&mut self, text: &str) {
        self.app.paste(text, self.now);
        self.frame();
    }

    /// Lets time pass, with a frame before and after.
    pub(super) fn wait(&mut self, milliseconds: u64) {
        self.frame();
        self.now += Duration::from_millis(milliseconds);
        self.frame();
    }

    /// Asks a question, which is drawn in the next frame.
    pub(super) fn ask(&mut self, request: ApprovalRequest) -> oneshot::Receiver<Answer> {
        let (reply, answer) = oneshot::channel();
        let subject = QuestionSubject::Approval(Box::new(request));
        self.app.question(OpenQuestion { subject, reply: QuestionReply::Approval(reply) });
        self.frame();
        answer
    }

    pub(super) fn ask_to_extend(&mut self, request: ExtensionRequest) -> oneshot::Receiver<Option<u64>> {
        let (reply, answer) = oneshot::channel();
        let subject = QuestionSubject::Extension(request);
        self.app.question(OpenQuestion { subject, reply: QuestionReply::Extension(reply) });
        self.frame();
        answer
    }

    pub(super) fn commands(&mut self) -> Vec<UiCommand> {
        std::iter::from_fn(|| self.sent.try_recv().ok()).collect()
    }

    /// Draws a frame as the terminal would have it.
    pub(super) fn frame(&mut self) -> (Buffer, Option<Position>) {
        self.app.tick(self.now);
        if self.app.is_in_tree() {
            return (self.tree_buffer(), None);
        }
        let (finished, live, cursor) = self.app.draw(self.size, self.now);
        self.printed.extend(finished);
        (live, cursor)
    }

    fn tree_buffer(&mut self) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, self.size.width, self.size.height));
        self.app.draw_tree(buffer.area, &mut buffer, self.now);
        buffer
    }

    /// Changes the size of the screen.
    pub(super) fn resize(&mut self, (width, height): (u16, u16)) {
        self.size = Size { width, height };
        self.frame();
    }

    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// Lets time pass without a frame.
    pub(super) fn pass(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    /// The live rows or the whole screen, between bars.
    pub(super) fn screen(&mut self) -> String {
        let (buffer, cursor) = self.frame();
        let mut screen = TestScreen { buffer, cursor }.text();
        if let Some(cursor) = cursor {
            screen.push_str(&format!("cursor at {}, {}\n", cursor.x, cursor.y));
        }
        screen
    }

    /// What was printed for good.
    pub(super) fn printed(&mut self) -> String {
        self.frame();
        self.printed.iter().map(|line| format!("{}\n", line.to_string().trim_end())).collect()
    }

    /// What was printed, and the live rows below it.
    pub(super) fn all(&mut self) -> String {
        let printed = self.printed();
        format!("{printed}{}", self.screen())
    }

    /// The rows of the screen with their styles: `{style:words}`.
    pub(super) fn styled(&mut self) -> String {
        let (buffer, _) = self.frame();
        (0..buffer.area.height).map(|y| styled_row(&buffer, y)).collect()
    }
}

fn styled_row(buffer: &Buffer, y: u16) -> String {
    let (mut row, mut open) = (String::new(), String::new());
    let mut covered = 0;
    for x in 0..buffer.area.width {
        let cell = &buffer[(x, y)];
        if covered > 0 {
            covered -= 1;
            continue;
        }
        covered = unicode_width::UnicodeWidthStr::width(cell.symbol()).saturating_sub(1);
        let style = style_words(cell.style());
        if style != open {
            row.push_str(if open.is_empty() { "" } else { "}" });
            row.push_str(&if style.is_empty() { String::new() } else { format!("{{{style}:") });
            open = style;
        }
        row.push_str(cell.symbol());
    }
    row.push_str(if open.is_empty() { "" } else { "}" });
    format!("|{}\n", row.trim_end())
}

fn style_words(style: Style) -> String {
    let color = style.fg.filter(|color| *color != Color::Reset).map(|color| format!("{color:?}"));
    let modifiers = [
        (Modifier::BOLD, "bold"),
        (Modifier::DIM, "dim"),
        (Modifier::ITALIC, "italic"),
        (Modifier::UNDERLINED, "underlined"),
        (Modifier::REVERSED, "reversed"),
    ];
    let modifiers = modifiers
        .iter()
        .filter(|(modifier, _)| style.add_modifier.contains(*modifier))
        .map(|(_, word)| (*word).to_owned());
    color.into_iter().chain(modifiers).collect::<Vec<_>>().join(" ")
}

/// Plays a scene on three screens and writes down what each shows at its end.
pub(super) fn on_three_screens(options: &UiOptions, play: impl Fn(&mut Driver) -> String) -> String {
    let shown = [(40, 22), (80, 24), (140, 30)].map(|size| {
        let mut driver = Driver::new(options.clone(), size);
        let shown = play(&mut driver);
        format!("{} columns\n{shown}", size.0)
    });
    shown.join("\n")
}
