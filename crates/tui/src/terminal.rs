//! The terminal itself: raw while the UI lives, as it was before whatever happens after.

mod encode;
pub(crate) mod inline;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use crossterm::event::Event;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use inline::Inline;
use parking_lot::{Mutex, MutexGuard};
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Size};
use ratatui::text::Line;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

/// Pasted text comes as one piece; keys that old terminals cannot tell apart are told apart where that is known.
const ENTER: &str = "\u{1b}[?2004h\u{1b}[>1u";
const LEAVE: &str = "\u{1b}[<1u\u{1b}[?2004l\u{1b}[?25h\u{1b}[0m";
/// Takes away the rows from the cursor on.
const ERASE_BELOW: &str = "\u{1b}[J";
/// Takes away what a program may have left behind that was killed: its own screen, the mouse. The cursor is saved, as
/// leaving a screen brings back a saved one.
const RESET: &str = "\u{1b}7\u{1b}[?1049l\u{1b}[?1000l\u{1b}[?1002l\u{1b}[?1003l\u{1b}[?1006l";
/// How many live rows are above the cursor.
static ABOVE: AtomicU16 = AtomicU16::new(0);
const ENTER_ALTERNATE: &str = "\u{1b}[?1049h\u{1b}[?25l";
const LEAVE_ALTERNATE: &str = "\u{1b}[?1049l";
/// What is between them is shown at once.
const BEGIN_FRAME: &str = "\u{1b}[?2026h";
const END_FRAME: &str = "\u{1b}[?2026l";

/// What the terminal must be told before it is left. Empty where it was not touched.
static TOUCHED: Mutex<Touched> = Mutex::new(Touched { raw: false, alternate: false });

struct Touched {
    raw: bool,
    alternate: bool,
}

/// Held by whoever writes to the terminal, so that nothing is painted on one that was given back.
static PAINTING: Mutex<()> = Mutex::new(());
/// How long someone who leaves waits for a frame to end. It never ends where its own painter panicked.
const MAX_WAIT_FOR_FRAME: Duration = Duration::from_millis(200);

/// Locks the terminal for painting, unless it was given back meanwhile.
fn lock_for_painting() -> io::Result<MutexGuard<'static, ()>> {
    let guard = PAINTING.lock();
    if TOUCHED.lock().raw {
        Ok(guard)
    } else {
        Err(io::Error::other("the terminal was given back in the middle"))
    }
}

/// Gives the terminal back as it was. Does nothing where it was not touched, and may be called at any time from any
/// thread, most of all by a process that leaves at once. The UI ends by it.
pub fn restore() {
    let _guard = PAINTING.try_lock_for(MAX_WAIT_FOR_FRAME);
    let mut touched = TOUCHED.lock();
    if !std::mem::take(&mut touched.raw) {
        return;
    }
    let alternate = if std::mem::take(&mut touched.alternate) { LEAVE_ALTERNATE } else { "" };
    if let Ok(mut device) = device() {
        let up = match ABOVE.swap(0, Ordering::Relaxed) {
            0 => String::new(),
            above => format!("\u{1b}[{above}A"),
        };
        let _ = device.write_all(format!("{alternate}{LEAVE}\r{up}{ERASE_BELOW}").as_bytes());
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
    /// The width for which the live rows were painted.
    inline_width: u16,
    /// The whole screen, where it is taken.
    full: Option<ratatui::Terminal<CrosstermBackend<BufWriter<File>>>>,
    size: Size,
}

impl Terminal {
    /// Takes the terminal of this process.
    pub(crate) fn open() -> io::Result<Self> {
        let mut output = BufWriter::new(device()?);
        restore_on_panic();
        take(&mut output)?;
        let size = current_size();
        Ok(Self { output, inline: Inline::default(), inline_width: size.width, full: None, size })
    }

    /// The size as it was last told.
    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// Waits for what the person does, so long at most. No time at all is too little to see a key.
    pub(crate) fn event(&mut self, patience: Duration) -> io::Result<Option<Event>> {
        if is_gone(self.output.get_ref()) {
            return Err(io::Error::other("the terminal is gone"));
        }
        if !crossterm::event::poll(patience)? {
            return Ok(None);
        }
        crossterm::event::read().map(Some)
    }

    /// Looks at the size again. The event that tells of a new one is lost where a key comes in the same moment.
    pub(crate) fn look_at_size(&mut self) -> io::Result<()> {
        let size = current_size();
        if size == self.size { Ok(()) } else { self.resize(size) }
    }

    /// Takes account of a new size; live rows that are hidden behind the whole screen when that is given back.
    fn resize(&mut self, size: Size) -> io::Result<()> {
        self.size = size;
        if self.full.is_none() {
            let _guard = lock_for_painting()?;
            self.fit_inline()?;
        }
        Ok(())
    }

    fn fit_inline(&mut self) -> io::Result<()> {
        let width = self.size.width;
        if std::mem::replace(&mut self.inline_width, width) != width {
            self.inline.resize(&mut self.output, width)?;
        }
        Ok(())
    }

    /// Prints finished lines and paints live rows below them.
    pub(crate) fn paint(
        &mut self,
        finished: &[Line<'static>],
        live: &Buffer,
        cursor: Option<Position>,
    ) -> io::Result<()> {
        let _guard = lock_for_painting()?;
        self.inline.paint(&mut self.output, finished, live, cursor)?;
        ABOVE.store(self.inline.above(), Ordering::Relaxed);
        Ok(())
    }

    /// Takes the whole screen, or gives it back.
    pub(crate) fn take_screen(&mut self, whole: bool) -> io::Result<()> {
        if whole == self.full.is_some() {
            return Ok(());
        }
        let _guard = lock_for_painting()?;
        let text = if whole { ENTER_ALTERNATE } else { LEAVE_ALTERNATE };
        self.output.write_all(text.as_bytes())?;
        self.output.flush()?;
        TOUCHED.lock().alternate = whole;
        self.full = match whole {
            true => Some(ratatui::Terminal::new(CrosstermBackend::new(BufWriter::new(device()?)))?),
            false => None,
        };
        if whole { Ok(()) } else { self.fit_inline() }
    }

    /// Draws on the whole screen.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut ratatui::Frame<'_>)) -> io::Result<()> {
        match &mut self.full {
            Some(full) => {
                let _guard = lock_for_painting()?;
                full.backend_mut().write_all(BEGIN_FRAME.as_bytes())?;
                full.draw(draw)?;
                full.backend_mut().write_all(END_FRAME.as_bytes())?;
                Write::flush(full.backend_mut())
            }
            None => Ok(()),
        }
    }

    /// Lets another program have the terminal.
    pub(crate) fn lend<T>(&mut self, work: impl FnOnce() -> T) -> io::Result<T> {
        let whole = self.full.is_some();
        self.take_screen(false)?;
        self.inline.clear(&mut self.output)?;
        leave()?;
        let modes = tcgetattr(self.output.get_ref())?;
        let result = work();
        self.output.write_all(RESET.as_bytes())?;
        // A program that broke off may have left modes of its own, which would be taken for those of the shell.
        tcsetattr(self.output.get_ref(), OptionalActions::Now, &modes)?;
        take(&mut self.output)?;
        self.size = current_size();
        self.inline_width = self.size.width;
        self.take_screen(whole)?;
        Ok(result)
    }

    /// Paints everything anew.
    pub(crate) fn refresh(&mut self) -> io::Result<()> {
        let _guard = lock_for_painting()?;
        if let Some(full) = &mut self.full {
            full.clear()?;
        }
        self.inline.clear(&mut self.output)
    }

    /// Clears what is visible.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        let _guard = lock_for_painting()?;
        self.inline = Inline::default();
        ABOVE.store(0, Ordering::Relaxed);
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

/// Returns whether the other end was closed: from then on reading always succeeds and returns nothing.
fn is_gone(device: &File) -> bool {
    let mut watched = [PollFd::new(device, PollFlags::empty())];
    let looked = rustix::event::poll(&mut watched, Some(&Timespec::default()));
    looked.is_ok() && watched[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

fn take(output: &mut impl Write) -> io::Result<()> {
    enable_raw_mode()?;
    *TOUCHED.lock() = Touched { raw: true, alternate: false };
    output.write_all(ENTER.as_bytes())?;
    output.flush()
}

/// Gives the terminal back without a new line: the cursor is on one already.
fn leave() -> io::Result<()> {
    let mut touched = TOUCHED.lock();
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
