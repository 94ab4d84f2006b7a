//! The terminal itself: raw while the UI lives, as it was before whatever happens after.

mod encode;
pub(crate) mod inline;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use crossterm::event::Event;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use inline::Inline;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Size};
use ratatui::text::Line;

/// Pasted text comes as one piece; keys that old terminals cannot tell apart are told apart where that is known.
const ENTER: &str = "\u{1b}[?2004h\u{1b}[>1u";
const LEAVE: &str = "\u{1b}[<1u\u{1b}[?2004l\u{1b}[?25h\u{1b}[0m";
const ENTER_ALTERNATE: &str = "\u{1b}[?1049h\u{1b}[?25l";
const LEAVE_ALTERNATE: &str = "\u{1b}[?1049l";

/// What the terminal must be told before it is left. Empty where it was not touched.
static TOUCHED: Mutex<Touched> = Mutex::new(Touched { raw: false, alternate: false });

struct Touched {
    raw: bool,
    alternate: bool,
}

/// Gives the terminal back as it was. Does nothing where it was not touched, and may be called at any time from any
/// thread, most of all by a process that leaves at once.
pub fn restore() {
    let mut touched = TOUCHED.lock().unwrap_or_else(PoisonError::into_inner);
    if !std::mem::take(&mut touched.raw) {
        return;
    }
    let alternate = if std::mem::take(&mut touched.alternate) { LEAVE_ALTERNATE } else { "" };
    if let Ok(mut device) = device() {
        let _ = device.write_all(format!("{alternate}{LEAVE}\r\n").as_bytes());
    }
    let _ = disable_raw_mode();
}

/// Makes a panic of any thread leave a terminal on which its message can be read.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let earlier = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            earlier(panic);
        }));
    });
}

fn device() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/tty")
}

/// The terminal while the UI lives.
pub(crate) struct Terminal {
    output: BufWriter<File>,
    inline: Inline,
    /// The whole screen, where it is taken.
    full: Option<ratatui::Terminal<CrosstermBackend<File>>>,
    size: Size,
}

impl Terminal {
    /// Takes the terminal of this process.
    pub(crate) fn open() -> io::Result<Self> {
        let mut output = BufWriter::new(device()?);
        restore_on_panic();
        take(&mut output)?;
        let size = current_size();
        Ok(Self { output, inline: Inline::default(), full: None, size })
    }

    /// The size as it was last told.
    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// Waits for what the person does, so long at most.
    pub(crate) fn event(&mut self, patience: Duration) -> io::Result<Option<Event>> {
        if !crossterm::event::poll(patience)? {
            return Ok(None);
        }
        let event = crossterm::event::read()?;
        if let Event::Resize(width, height) = event {
            self.resize(Size { width, height })?;
        }
        Ok(Some(event))
    }

    fn resize(&mut self, size: Size) -> io::Result<()> {
        if size.width != self.size.width {
            self.inline.resize(&mut self.output, size.width)?;
        }
        self.size = size;
        Ok(())
    }

    /// Prints finished lines and paints live rows below them.
    pub(crate) fn paint(
        &mut self,
        finished: &[Line<'static>],
        live: &Buffer,
        cursor: Option<Position>,
    ) -> io::Result<()> {
        self.inline.paint(&mut self.output, finished, live, cursor)
    }

    /// Takes the whole screen, or gives it back.
    pub(crate) fn take_screen(&mut self, whole: bool) -> io::Result<()> {
        if whole == self.full.is_some() {
            return Ok(());
        }
        let text = if whole { ENTER_ALTERNATE } else { LEAVE_ALTERNATE };
        self.output.write_all(text.as_bytes())?;
        self.output.flush()?;
        TOUCHED.lock().unwrap_or_else(PoisonError::into_inner).alternate = whole;
        self.full = match whole {
            true => Some(ratatui::Terminal::new(CrosstermBackend::new(device()?))?),
            false => None,
        };
        Ok(())
    }

    /// Draws on the whole screen.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut ratatui::Frame<'_>)) -> io::Result<()> {
        match &mut self.full {
            Some(full) => full.draw(draw).map(drop),
            None => Ok(()),
        }
    }

    /// Lets another program have the terminal.
    pub(crate) fn lend<T>(&mut self, work: impl FnOnce() -> T) -> io::Result<T> {
        let whole = self.full.is_some();
        self.take_screen(false)?;
        self.inline.clear(&mut self.output)?;
        leave()?;
        let result = work();
        take(&mut self.output)?;
        self.size = current_size();
        self.take_screen(whole)?;
        Ok(result)
    }

    /// Paints everything anew.
    pub(crate) fn refresh(&mut self) -> io::Result<()> {
        if let Some(full) = &mut self.full {
            full.clear()?;
        }
        self.inline.clear(&mut self.output)
    }

    /// Clears what is visible.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.inline = Inline::default();
        self.output.write_all(b"\x1b[H\x1b[2J")?;
        self.output.flush()
    }

    /// Prints the last lines and gives the terminal back.
    pub(crate) fn close(mut self, finished: &[Line<'static>]) -> io::Result<()> {
        self.take_screen(false)?;
        self.paint(finished, &Buffer::default(), None)?;
        self.inline.clear(&mut self.output)?;
        leave()
    }
}

fn take(output: &mut impl Write) -> io::Result<()> {
    enable_raw_mode()?;
    *TOUCHED.lock().unwrap_or_else(PoisonError::into_inner) = Touched { raw: true, alternate: false };
    output.write_all(ENTER.as_bytes())?;
    output.flush()
}

/// Gives the terminal back without a new line: the cursor already stands on one.
fn leave() -> io::Result<()> {
    let mut touched = TOUCHED.lock().unwrap_or_else(PoisonError::into_inner);
    if std::mem::take(&mut touched.raw) {
        device()?.write_all(LEAVE.as_bytes())?;
        disable_raw_mode()?;
    }
    Ok(())
}

fn current_size() -> Size {
    let (width, height) = crossterm::terminal::size().unwrap_or((80, 24));
    Size { width: width.max(1), height: height.max(1) }
}
