//! Calls that shall end: asked, then interrupted, then ended with their process.
//!
//! A thread watches over them as long as there are any. It needs no async runtime, because whoever waited for such a
//! call may be gone.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::process::Process;

/// How long code may take to see that it is cancelled before it is interrupted, again and again.
const TIME_TO_SEE: Duration = Duration::from_millis(250);
/// How long code may take in all before its process is killed.
const TIME_TO_STOP: Duration = Duration::from_secs(2);

/// The calls that are watched.
#[derive(Default)]
pub(crate) struct Watch {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Default)]
struct State {
    calls: Vec<Watched>,
    has_thread: bool,
}

struct Watched {
    id: u64,
    /// When it is cancelled, or was.
    cancel_at: Instant,
    is_cancelled: bool,
    interrupt_at: Instant,
}

impl Watch {
    /// Looks again: a call has ended.
    pub(crate) fn wake(&self) {
        self.news.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Process {
    /// Cancels a call, now or when its time is over, and sees to its end.
    pub(crate) fn end_call(self: &Arc<Self>, id: u64, after: Duration) {
        let cancel_at = Instant::now() + after;
        let is_cancelled = after.is_zero();
        if is_cancelled {
            self.cancel(id);
        }
        let mut state = self.watch.state();
        state.calls.retain(|other| other.id != id);
        state.calls.push(Watched { id, cancel_at, is_cancelled, interrupt_at: cancel_at + TIME_TO_SEE });
        if !state.has_thread {
            let process = self.clone();
            let thread = std::thread::Builder::new().name("python-watch".to_owned());
            // Without a thread the call ends by itself, or with its process.
            state.has_thread = thread.spawn(move || process.watch_calls()).is_ok();
        }
        drop(state);
        self.watch.wake();
    }

    fn watch_calls(self: Arc<Self>) {
        let mut state = self.watch.state();
        loop {
            state.calls.retain(|call| self.name_of(call.id).is_some());
            let now = Instant::now();
            for call in &mut state.calls {
                self.hurry(call, now);
            }
            let Some(next) = state.calls.iter().map(Watched::next_step).min() else {
                state.has_thread = false;
                return;
            };
            let wait = next.saturating_duration_since(now);
            state = self.watch.news.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes the next step with a call that shall end.
    fn hurry(&self, call: &mut Watched, now: Instant) {
        if !call.is_cancelled && now >= call.cancel_at {
            call.is_cancelled = true;
            self.cancel(call.id);
        }
        if now >= call.cancel_at + TIME_TO_STOP {
            let name = self.name_of(call.id).unwrap_or_else(|| "a call".into());
            self.kill(&format!("was ended because `{name}` did not stop when it was cancelled"), true);
            call.interrupt_at = now + TIME_TO_STOP;
        } else if now >= call.interrupt_at {
            self.interrupt();
            call.interrupt_at = now + TIME_TO_SEE;
        }
    }
}

impl Watched {
    fn next_step(&self) -> Instant {
        match self.is_cancelled {
            false => self.cancel_at,
            true => {
                self.interrupt_at.min((self.cancel_at + TIME_TO_STOP).max(self.interrupt_at - TIME_TO_SEE))
            }
        }
    }
}
