//! The status line of a run: who is asked, for how long, and what it took so far. Between runs there is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use llm_do::event::{Event, EventBody, ModelResult};
use llm_do::usage::Usage;
use llm_do::value::Name;
use parking_lot::Mutex;

use crate::console::Console;
use crate::output::usage_line;
use crate::text::shortened;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const PACE: Duration = Duration::from_millis(100);
/// Runs that are over at once need no status line.
const PATIENCE: Duration = Duration::from_millis(300);
/// So much of the path is worth more than anything behind it.
const MIN_PATH: usize = 12;

/// Draws the status line while it lives. It exists only on a terminal.
pub(crate) struct StatusLine {
    state: Arc<Mutex<ProgressState>>,
    ended: Arc<AtomicBool>,
    console: Arc<Console>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct ProgressState {
    /// When the run began; none while nothing runs.
    started: Option<Instant>,
    path: String,
    model: Option<Name>,
    usage: Usage,
}

impl StatusLine {
    /// Begins to draw.
    pub(crate) fn start(console: &Arc<Console>) -> Option<Self> {
        if !console.is_terminal() {
            return None;
        }
        let state =
            ProgressState { started: None, path: String::new(), model: None, usage: Usage::default() };
        let state = Arc::new(Mutex::new(state));
        let ended = Arc::new(AtomicBool::new(false));
        let drawing = (state.clone(), ended.clone(), console.clone());
        let thread = std::thread::Builder::new()
            .name("llm-do-progress".to_owned())
            .spawn(move || draw(&drawing.0, &drawing.1, &drawing.2))
            .ok();
        Some(Self { state, ended, console: console.clone(), thread })
    }

    /// Returns what reads events for it.
    pub(crate) fn reader(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let (state, console) = (self.state.clone(), self.console.clone());
        move |event| {
            let mut state = state.lock();
            state.read(event);
            if state.started.is_none() {
                console.status(String::new());
            }
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
        self.console.status(String::new());
    }
}

fn draw(state: &Mutex<ProgressState>, ended: &AtomicBool, console: &Console) {
    let mut frame = 0;
    while !ended.load(Ordering::Relaxed) {
        {
            // Drawn under the lock, so that nothing is drawn after the end of a run was read.
            let state = state.lock();
            if let Some(line) = state.line(FRAMES[frame % FRAMES.len()]) {
                console.status(line);
            }
        }
        frame += 1;
        std::thread::park_timeout(PACE);
    }
}

impl ProgressState {
    fn read(&mut self, event: &Event) {
        match &event.body {
            EventBody::RunStarted { .. } => self.started = Some(Instant::now()),
            EventBody::RunFinished { .. } => self.started = None,
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

    /// The line, as much of it as fits; none where nothing has run for long.
    fn line(&self, frame: &str) -> Option<String> {
        let elapsed = self.started?.elapsed();
        if elapsed < PATIENCE {
            return None;
        }
        let width: usize =
            rustix::termios::tcgetwinsize(std::io::stderr()).map_or(80, |size| size.ws_col.into());
        let model = self.model.as_ref().map(|model| format!("  {model}")).unwrap_or_default();
        let seconds = format!("  {}s", elapsed.as_secs());
        let used = format!("  {}", usage_line(&self.usage));
        Some(fitted(frame, &self.path, &[model, seconds, used], width.saturating_sub(1)))
    }
}

/// Puts the parts behind the path; what leaves the path no room is left out, from the first part on.
fn fitted(frame: &str, path: &str, parts: &[String], width: usize) -> String {
    let length = |text: &str| text.chars().count();
    let enough = length(path).min(MIN_PATH);
    let fits = |parts: &[String]| {
        let taken: usize = parts.iter().map(|part| length(part)).sum();
        length(frame) + 1 + enough + taken <= width
    };
    let kept = (0..=parts.len()).map(|left_out| &parts[left_out..]).find(|parts| fits(parts));
    let behind = kept.unwrap_or_default().concat();
    let room = width.saturating_sub(length(frame) + 1 + length(&behind));
    shortened(&format!("{frame} {}{behind}", shortened(path, room)), width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out_before_the_path_is_lost() {
        let parts = ["  test:echo".to_owned(), "  12s".to_owned(), "  3 requests, 55 tokens".to_owned()];
        let line = |width| fitted("*", "main > helper", &parts, width);
        assert_eq!(line(80), "* main > helper  test:echo  12s  3 requests, 55 tokens");
        assert_eq!(line(48), "* main > helper  12s  3 requests, 55 tokens");
        assert!(line(40).chars().count() <= 40 && line(40).starts_with("* main"), "{}", line(40));
        assert!(line(12).chars().count() <= 12, "{}", line(12));
    }
}
