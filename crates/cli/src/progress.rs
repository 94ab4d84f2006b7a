//! The status line of a run: who is asked, for how long, and what it took so far.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use llm_do::{Event, EventBody, ModelResult, Name, Usage};

use crate::output::usage_line;
use crate::screen::Screen;
use crate::text::shortened;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const PACE: Duration = Duration::from_millis(100);
/// Runs that are over at once need no status line.
const PATIENCE: Duration = Duration::from_millis(300);

/// Draws the status line while it lives. It exists only on a terminal.
pub(crate) struct Progress {
    state: Arc<Mutex<State>>,
    ended: Arc<AtomicBool>,
    screen: Arc<Screen>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct State {
    started: Instant,
    path: String,
    model: Option<Name>,
    usage: Usage,
}

impl Progress {
    /// Begins to draw.
    pub(crate) fn start(screen: &Arc<Screen>) -> Option<Self> {
        if !screen.is_terminal() {
            return None;
        }
        let state =
            State { started: Instant::now(), path: String::new(), model: None, usage: Usage::default() };
        let state = Arc::new(Mutex::new(state));
        let ended = Arc::new(AtomicBool::new(false));
        let drawing = (state.clone(), ended.clone(), screen.clone());
        let thread = std::thread::Builder::new()
            .name("llm-do-progress".to_owned())
            .spawn(move || draw(&drawing.0, &drawing.1, &drawing.2))
            .ok();
        Some(Self { state, ended, screen: screen.clone(), thread })
    }

    /// Returns what reads events for it.
    pub(crate) fn reader(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let state = self.state.clone();
        move |event| state.lock().unwrap_or_else(PoisonError::into_inner).read(event)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
        self.screen.status(String::new());
    }
}

fn draw(state: &Mutex<State>, ended: &AtomicBool, screen: &Screen) {
    let mut frame = 0;
    std::thread::park_timeout(PATIENCE);
    while !ended.load(Ordering::Relaxed) {
        let line = state.lock().unwrap_or_else(PoisonError::into_inner).line(FRAMES[frame % FRAMES.len()]);
        screen.status(line);
        frame += 1;
        std::thread::park_timeout(PACE);
    }
}

impl State {
    fn read(&mut self, event: &Event) {
        match &event.body {
            EventBody::CallStarted { .. } | EventBody::CallExecuting { .. } => {
                self.path = event.call.path.to_string();
                self.model = None;
            }
            EventBody::ModelRequest { model, .. } => {
                self.path = event.call.path.to_string();
                self.model = Some(model.clone());
            }
            EventBody::ModelResponse { result: ModelResult::Response(response), .. } => {
                self.usage += response.usage;
            }
            _ => {}
        }
    }

    fn line(&self, frame: &str) -> String {
        let width = rustix::termios::tcgetwinsize(std::io::stderr()).map_or(80, |size| size.ws_col.into());
        let model = self.model.as_ref().map(|model| format!("  {model}")).unwrap_or_default();
        let seconds = self.started.elapsed().as_secs();
        let used = usage_line(&self.usage);
        let right = format!("{model}  {seconds}s  {used}");
        let room = usize::max(width, 20).saturating_sub(right.chars().count() + 4);
        shortened(&format!("{frame} {}{right}", shortened(&self.path, room)), width.saturating_sub(1))
    }
}
