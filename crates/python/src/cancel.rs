//! Cancels calls: the code is told first, then interrupted, then its process is killed.
//!
//! A thread takes the steps as long as there are such calls. It needs no async runtime, because the task that waited for
//! the call may have been dropped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cancel_watch::{CancelledCall, TIME_TO_SEE, TIME_TO_STOP};
use crate::process::Process;

impl Process {
    /// Cancels a call, now or after a time, and makes sure that it ends.
    pub(crate) fn end_call(self: &Arc<Self>, id: u64, after: Duration) {
        let cancel_at = Instant::now() + after;
        let is_cancelled = after.is_zero();
        if is_cancelled {
            self.cancel(id);
        }
        let mut state = self.watch.state();
        state.calls.retain(|other| other.id != id);
        state.calls.push(CancelledCall {
            id,
            cancel_at,
            is_cancelled,
            interrupt_at: cancel_at + TIME_TO_SEE,
        });
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
                self.escalate(call, now);
            }
            let Some(next) = state.calls.iter().map(CancelledCall::next_step).min() else {
                state.has_thread = false;
                return;
            };
            let wait = next.saturating_duration_since(now);
            self.watch.wait(&mut state, wait);
        }
    }

    /// Takes the next step with a call that is being cancelled, if it is due.
    fn escalate(&self, call: &mut CancelledCall, now: Instant) {
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
