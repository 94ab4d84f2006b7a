//! The Python process of a project over its whole life: started when the project is loaded, started again after a
//! crash, ended with the last tool that uses it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use llm_do_core::{Failure, FailureKind};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::package::Package;
use crate::process::{Launch, LoadError, Process, short_name};
use crate::process_exit::ProcessExit;
use crate::wire::Loaded;

/// How many crashes without a successful call between them are too many.
const MAX_CRASHES_IN_A_ROW: u32 = 3;
/// How many crashes in all are too many.
const MAX_CRASHES: u32 = 20;
/// How long the process may take to clean up when it is not needed any more.
const TIME_TO_LEAVE: Duration = Duration::from_secs(2);

/// Whoever holds one can call what the Python files define. With the last one the process ends: dropping it waits
/// for that, at most a few seconds.
pub(crate) struct Host {
    launch: Launch,
    /// The directory of the project.
    pub(crate) root: String,
    /// What the files defined when the project was loaded.
    first: Loaded,
    state: Mutex<HostState>,
    news: Notify,
    numbers: AtomicU64,
    /// Kept as long as the process may be started from it.
    _package: Package,
}

struct HostState {
    now: Now,
    /// How many processes there were before the one there is.
    generation: u64,
    crashes: u32,
    crashes_in_a_row: u32,
}

enum Now {
    Running(Arc<Process>),
    Starting,
    /// No other process will be started, for a reason.
    GivenUp(Failure),
}

/// The process as one call finds it.
pub(crate) struct Current {
    pub(crate) process: Arc<Process>,
    pub(crate) generation: u64,
    /// How the one before ended, where this call has caused the start of another one.
    pub(crate) restarted: Option<Arc<ProcessExit>>,
}

impl Host {
    /// Starts a process that loads the files of a project, and returns what they define.
    pub(crate) fn load(
        launch: Launch,
        root: String,
        package: Package,
    ) -> Result<(Arc<Self>, Loaded), LoadError> {
        let (process, loaded) = Process::load(&launch).inspect_err(|error| {
            // The other errors show the last lines themselves.
            if matches!(error, LoadError::Refused(_)) {
                launch.outside.finish();
            }
        })?;
        let state = HostState { now: Now::Running(process), generation: 0, crashes: 0, crashes_in_a_row: 0 };
        let host = Self {
            launch,
            root,
            first: loaded.clone(),
            state: Mutex::new(state),
            news: Notify::new(),
            numbers: AtomicU64::new(1),
            _package: package,
        };
        Ok((Arc::new(host), loaded))
    }

    /// Returns a number that no other request or instance has.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the process, started again where it has crashed.
    pub(crate) async fn current(self: &Arc<Self>) -> Result<Current, Failure> {
        let mut restarted = None;
        loop {
            let news = self.news.notified();
            match self.look(&mut restarted)? {
                Some(current) => return Ok(current),
                None => news.await,
            }
        }
    }

    /// Returns the process of a number, counted from 1, if it still runs.
    pub(crate) fn running_in(&self, number: u64) -> Option<Current> {
        let state = self.state();
        let generation = state.generation;
        match &state.now {
            Now::Running(process) if generation + 1 == number && process.ending().is_none() => {
                Some(Current { process: process.clone(), generation, restarted: None })
            }
            _ => None,
        }
    }

    /// Looks for the process once; nothing where it is being started.
    fn look(self: &Arc<Self>, restarted: &mut Option<Arc<ProcessExit>>) -> Result<Option<Current>, Failure> {
        let mut state = self.state();
        let process = match &state.now {
            Now::GivenUp(failure) => return Err(failure.clone()),
            Now::Starting => return Ok(None),
            Now::Running(process) => process.clone(),
        };
        let Some(ending) = process.ending() else {
            let generation = state.generation;
            return Ok(Some(Current { process, generation, restarted: restarted.take() }));
        };
        state.count(&ending, process.has_succeeded());
        if let Some(failure) = state.too_many(&ending) {
            state.now = Now::GivenUp(failure.clone());
            return Err(failure);
        }
        state.now = Now::Starting;
        drop(state);
        *restarted = Some(ending);
        self.start_again();
        Ok(None)
    }

    /// Starts another process on a thread of its own: whoever waits for it may give up.
    fn start_again(self: &Arc<Self>) {
        let host = self.clone();
        let thread = std::thread::Builder::new().name("python-start".to_owned());
        let started = thread.spawn(move || {
            let now = host.restarted();
            host.settle(now);
        });
        if let Err(error) = started {
            self.settle(Now::GivenUp(failed(format!("Python cannot be started again: {error}"))));
        }
    }

    fn settle(&self, now: Now) {
        let mut state = self.state();
        state.now = now;
        state.generation += 1;
        drop(state);
        self.news.notify_waiters();
    }

    fn restarted(&self) -> Now {
        let (process, loaded) = match Process::load(&self.launch) {
            Ok(started) => started,
            Err(error) => {
                return Now::GivenUp(failed(format!("Python cannot be started again: {}", describe(&error))));
            }
        };
        // What was imported depends on what was called before, and defines nothing.
        let loaded = Loaded { imported: self.first.imported.clone(), ..loaded };
        if loaded == self.first {
            return Now::Running(process);
        }
        process.end(TIME_TO_LEAVE);
        let failure = failed(
            "the Python process has ended, and its files have changed since the project was loaded".into(),
        );
        Now::GivenUp(failure.with_hint("start llm-do again"))
    }

    fn state(&self) -> MutexGuard<'_, HostState> {
        self.state.lock()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Now::Running(process) = &self.state().now {
            process.end(TIME_TO_LEAVE);
        }
        self.launch.outside.finish();
    }
}

impl HostState {
    /// Counts a crash. What was ended on purpose is none.
    fn count(&mut self, ending: &ProcessExit, has_succeeded: bool) {
        if has_succeeded {
            self.crashes_in_a_row = 0;
        }
        if !ending.on_purpose {
            self.crashes += 1;
            self.crashes_in_a_row += 1;
        }
    }

    fn too_many(&self, ending: &ProcessExit) -> Option<Failure> {
        let count = match (self.crashes_in_a_row >= MAX_CRASHES_IN_A_ROW, self.crashes >= MAX_CRASHES) {
            (true, _) => format!("{MAX_CRASHES_IN_A_ROW} times without a successful call between"),
            (_, true) => format!("{MAX_CRASHES} times"),
            _ => return None,
        };
        let message =
            format!("the Python process has crashed {count} and is not started again: it {}", ending.how);
        Some(failed(message))
    }
}

fn failed(message: String) -> Failure {
    Failure::new(FailureKind::Tool, message)
}

/// Says why the files could not be loaded.
pub(crate) fn describe(error: &LoadError) -> String {
    match error {
        LoadError::NotStarted(error) => error.to_string(),
        LoadError::Refused(problems) => {
            problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>().join("; ")
        }
        LoadError::Ended(ending) => {
            with_lines(format!("it {} while it loaded the files", ending.how), ending)
        }
        LoadError::TooLong { limit, file, ending } => {
            let what = match file {
                Some(file) => format!("importing `{}`", short_name(file)),
                None => "loading its files".to_owned(),
            };
            with_lines(format!("{what} took longer than {} seconds", limit.as_secs_f64()), ending)
        }
    }
}

fn with_lines(message: String, ending: &ProcessExit) -> String {
    match ending.shown_lines() {
        lines if lines.is_empty() => message,
        lines => format!("{message}; its last words:\n{lines}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crash() -> ProcessExit {
        let how = "left with exit code 1".to_owned();
        ProcessExit { how, running: Vec::new(), last_lines: String::new(), on_purpose: false }
    }

    fn state() -> HostState {
        let now = Now::Starting;
        HostState { now, generation: 0, crashes: 0, crashes_in_a_row: 0 }
    }

    #[test]
    fn three_crashes_in_a_row_are_too_many() {
        let mut state = state();
        for succeeded in [false, false, true, false] {
            assert!(state.too_many(&crash()).is_none());
            state.count(&crash(), succeeded);
        }
        assert!(state.too_many(&crash()).is_none());
        state.count(&crash(), false);
        let failure = state.too_many(&crash()).unwrap();
        assert!(failure.message.contains("crashed 3 times without a successful call"), "{failure}");
    }

    #[test]
    fn twenty_crashes_are_too_many_whatever_is_between() {
        let mut state = state();
        for _ in 0..20 {
            assert!(state.too_many(&crash()).is_none());
            state.count(&crash(), true);
        }
        assert!(state.too_many(&crash()).unwrap().message.contains("crashed 20 times"));
    }

    #[test]
    fn what_was_ended_on_purpose_is_no_crash() {
        let mut state = state();
        for _ in 0..100 {
            state.count(&ProcessExit { on_purpose: true, ..crash() }, false);
        }
        assert!(state.too_many(&crash()).is_none());
    }
}
