//! Interrupts: the first one ends the run in order, the second one leaves at once.

use std::sync::{Arc, Mutex, PoisonError};

use llm_do::Canceller;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Exit;
use crate::screen::Screen;

/// Listens for Ctrl-C and for requests to terminate.
#[derive(Clone, Default)]
pub(crate) struct Interrupts {
    running: Arc<Mutex<Option<Canceller>>>,
}

impl Interrupts {
    /// Begins to listen.
    pub(crate) fn listen(screen: Arc<Screen>) -> std::io::Result<Self> {
        let interrupts = Self::default();
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let running = interrupts.running.clone();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
                let current = running.lock().unwrap_or_else(PoisonError::into_inner).take();
                match current {
                    Some(run) => {
                        screen.line("stopping; interrupt again to leave at once");
                        run.cancel();
                    }
                    // Whatever still runs has been told; nobody waits for it any longer.
                    None => {
                        screen.status(String::new());
                        std::process::exit(Exit::Interrupted.code().into());
                    }
                }
            }
        });
        Ok(interrupts)
    }

    /// Makes the next interrupt end this run.
    pub(crate) fn watch(&self, run: Canceller) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(run);
    }

    /// Says that the run has ended: the next interrupt ends the process.
    pub(crate) fn rest(&self) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Ends the run as an interrupt would, without a word.
    pub(crate) fn cancel(&self) {
        if let Some(run) = self.running.lock().unwrap_or_else(PoisonError::into_inner).take() {
            run.cancel();
        }
    }
}
