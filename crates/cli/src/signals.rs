//! Interrupts: the first one ends the run in order, the second one leaves at once.

use std::io::stdin;
use std::sync::{Arc, OnceLock};

use llm_do::call::Canceller;
use parking_lot::{Mutex, MutexGuard};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};

use crate::approvals::abandon_editor;
use crate::console::Console;
use crate::exit::Exit;

/// Listens for Ctrl-C and for requests to terminate.
#[derive(Clone)]
pub(crate) struct Interrupts {
    watched: Arc<Mutex<Watched>>,
    /// How the terminal was before anything edited lines or drew on it.
    terminal: Arc<Option<Termios>>,
    /// The signal after which the process ends, and not only what it does.
    ending: Arc<OnceLock<EndSignal>>,
}

/// A signal that asks the process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndSignal {
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal is gone.
    HangUp,
}

impl From<EndSignal> for Exit {
    fn from(signal: EndSignal) -> Self {
        match signal {
            EndSignal::Terminate => Self::Terminated,
            EndSignal::HangUp => Self::HungUp,
        }
    }
}

/// Returns how the terminal is now.
pub(crate) fn terminal_modes() -> Option<Termios> {
    tcgetattr(stdin()).ok()
}

/// What an interrupt ends.
#[derive(Default)]
enum Watched {
    /// Nothing: the process itself.
    #[default]
    Nothing,
    /// A run.
    Run(Canceller),
    /// A run that is not known yet.
    NextRun,
}

impl Interrupts {
    /// Begins to listen. Who leaves at once gives the terminal the modes back that it had.
    pub(crate) fn listen(console: Arc<Console>, modes: Option<Termios>) -> std::io::Result<Self> {
        let interrupts = Self { watched: Arc::default(), terminal: Arc::new(modes), ending: Arc::default() };
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let listening = interrupts.clone();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    // The first of them decides how the process ends.
                    _ = terminate.recv() => drop(listening.ending.set(EndSignal::Terminate)),
                    _ = hangup.recv() => drop(listening.ending.set(EndSignal::HangUp)),
                }
                listening.interrupt(&console);
            }
        });
        Ok(interrupts)
    }

    fn interrupt(&self, console: &Console) {
        if let Watched::Run(run) = std::mem::take(&mut *self.watched()) {
            let is_interrupt = !self.must_leave();
            console.line(if is_interrupt { "stopping; interrupt again to exit at once" } else { "stopping" });
            if !is_interrupt {
                // Whoever edits is not asked any more; meanwhile the run ends.
                std::thread::spawn(abandon_editor);
            }
            return run.cancel();
        }
        // Whatever still runs has been told; nobody waits for it any longer.
        console.status(String::new());
        llm_do_tui::restore();
        llm_do_sandbox::end_all_commands();
        abandon_editor();
        if let Some(terminal) = &*self.terminal {
            let _ = tcsetattr(stdin(), OptionalActions::Now, terminal);
        }
        let exit = self.signal().map_or(Exit::Interrupted, Exit::from);
        std::process::exit(exit.code().into());
    }

    /// Makes the next interrupt end this run.
    pub(crate) fn watch(&self, run: Canceller) {
        let mut watched = self.watched();
        if matches!(*watched, Watched::NextRun) {
            run.cancel();
        }
        *watched = Watched::Run(run);
    }

    /// Returns whether the process was asked to end: a chat ends with the turn that was stopped.
    pub(crate) fn must_leave(&self) -> bool {
        self.signal().is_some()
    }

    /// Returns the signal that asked the process to end.
    pub(crate) fn signal(&self) -> Option<EndSignal> {
        self.ending.get().copied()
    }

    /// Forgets the run, which has ended: the next interrupt ends the process.
    pub(crate) fn unwatch(&self) {
        *self.watched() = Watched::Nothing;
    }

    /// Ends the run, or the next one where none is known yet, without a word.
    pub(crate) fn cancel(&self) {
        let mut watched = self.watched();
        match std::mem::take(&mut *watched) {
            Watched::Run(run) => run.cancel(),
            Watched::Nothing | Watched::NextRun => *watched = Watched::NextRun,
        }
    }

    /// Ends the run that is known, without a word.
    pub(crate) fn cancel_running(&self) {
        if let Watched::Run(run) = &*self.watched() {
            run.cancel();
        }
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock()
    }
}
