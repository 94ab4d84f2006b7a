//! Time limits that count running time.
//!
//! The clock of a call, and of all its callers, stops while everything that runs below it waits for
//! a person. Only calls with a time limit have a stopwatch; all others charge to the nearest one above.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::sync::Mutex;

/// Measures how long a call has been running.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    parent: Option<Arc<Stopwatch>>,
    state: Mutex<StopwatchState>,
    changed: Notify,
}

#[derive(Debug)]
struct StopwatchState {
    running: u32,
    waiting: u32,
    elapsed: Duration,
    since: Option<Instant>,
}

impl StopwatchState {
    fn is_paused(&self) -> bool {
        self.running == 0 && self.waiting > 0
    }

    /// Stops or starts the clock as the counts say.
    fn adjust(&mut self) {
        match (self.is_paused(), self.since) {
            (true, Some(since)) => {
                self.elapsed += since.elapsed();
                self.since = None;
            }
            (false, None) => self.since = Some(Instant::now()),
            _ => {}
        }
    }
}

/// What a piece of work is doing while its guard lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Running,
    Waiting,
    Resting,
}

impl Stopwatch {
    /// Starts a stopwatch below another one.
    pub(crate) fn start(parent: Option<Arc<Stopwatch>>) -> Arc<Self> {
        let state =
            StopwatchState { running: 0, waiting: 0, elapsed: Duration::ZERO, since: Some(Instant::now()) };
        Arc::new(Self { parent, state: Mutex::new(state), changed: Notify::new() })
    }

    /// Adds running time from before this process.
    pub(crate) fn advance(&self, earlier: Duration) {
        self.state.lock().elapsed += earlier;
        self.changed.notify_waiters();
    }

    /// Returns the running time so far.
    pub(crate) fn elapsed(&self) -> Duration {
        let state = self.state.lock();
        state.elapsed + state.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Resolves once the call has been running for so long.
    pub(crate) async fn reached(&self, limit: Duration) {
        loop {
            let changed = self.changed.notified();
            let left = limit.saturating_sub(self.elapsed());
            if left.is_zero() {
                return;
            }
            if self.state.lock().since.is_some() {
                tokio::time::sleep(left).await;
            } else {
                changed.await;
            }
        }
    }

    fn count(&self, change: impl Fn(&mut StopwatchState)) {
        let mut next = Some(self);
        while let Some(watch) = next {
            let mut state = watch.state.lock();
            change(&mut state);
            state.adjust();
            drop(state);
            watch.changed.notify_waiters();
            next = watch.parent.as_deref();
        }
    }
}

/// Tells the stopwatches above what a piece of work is doing.
#[derive(Debug)]
pub(crate) struct Activity {
    watch: Option<Arc<Stopwatch>>,
    doing: Mutex<Doing>,
}

impl Activity {
    /// A piece of work that runs.
    pub(crate) fn running(watch: Option<&Arc<Stopwatch>>) -> Self {
        Self::begin(watch, Doing::Running)
    }

    /// A piece of work that waits for a person.
    pub(crate) fn waiting(watch: Option<&Arc<Stopwatch>>) -> Self {
        Self::begin(watch, Doing::Waiting)
    }

    fn begin(watch: Option<&Arc<Stopwatch>>, doing: Doing) -> Self {
        let activity = Self { watch: watch.cloned(), doing: Mutex::new(Doing::Resting) };
        activity.becomes(doing);
        activity
    }

    /// The work waits for work of its own, which has activities of its own.
    pub(crate) fn rests(&self) {
        self.becomes(Doing::Resting);
    }

    /// The work runs again.
    pub(crate) fn runs(&self) {
        self.becomes(Doing::Running);
    }

    fn becomes(&self, next: Doing) {
        let Some(watch) = &self.watch else { return };
        let before = std::mem::replace(&mut *self.doing.lock(), next);
        watch.count(|state| {
            match before {
                Doing::Running => state.running -= 1,
                Doing::Waiting => state.waiting -= 1,
                Doing::Resting => {}
            }
            match next {
                Doing::Running => state.running += 1,
                Doing::Waiting => state.waiting += 1,
                Doing::Resting => {}
            }
        });
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.becomes(Doing::Resting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_clock_stands_still_while_everything_waits_for_a_person() {
        let outer = Stopwatch::start(None);
        let inner = Stopwatch::start(Some(outer.clone()));
        let running = Activity::running(Some(&inner));
        tokio::time::sleep(Duration::from_secs(1)).await;
        running.rests();
        let waiting = Activity::waiting(Some(&inner));
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(inner.elapsed(), Duration::from_secs(1));
        assert_eq!(outer.elapsed(), Duration::from_secs(1));
        drop(waiting);
        running.runs();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(outer.elapsed(), Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_running_sibling_keeps_the_clock_of_the_caller_going() {
        let outer = Stopwatch::start(None);
        let _running = Activity::running(Some(&outer));
        let _waiting = Activity::waiting(Some(&outer));
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(outer.elapsed(), Duration::from_secs(5));
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_is_reached_after_so_much_running_time() {
        let watch = Stopwatch::start(None);
        let waiting = Activity::waiting(Some(&watch));
        let limit = tokio::spawn({
            let watch = watch.clone();
            async move { watch.reached(Duration::from_secs(2)).await }
        });
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(!limit.is_finished());
        drop(waiting);
        tokio::time::sleep(Duration::from_millis(2001)).await;
        assert!(limit.is_finished());
    }
}
