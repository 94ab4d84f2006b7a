//! What Python code prints when none of its calls is running: from threads, from tasks that outlive their call, while
//! the files are imported, when the process leaves.
//!
//! It becomes a notice of the run that used the process last. If that run has ended, or there was none yet, it waits for
//! the next one, and goes to whoever loaded the project when there is none.

use parking_lot::{Mutex, MutexGuard};

use llm_do_core::{NoticeSink, UndeliveredNotice};

/// How many bytes are told as notices of one run, and how many may wait for one.
const MAX_NOTICE_BYTES: usize = 256 * 1024;
/// What a line costs beyond its text.
const LINE_COST: usize = 32;
const CUT: &str =
    "what Python code prints outside of calls from here on is left out: there is too much of it";

/// The lines that belong to no call.
#[derive(Debug)]
pub(crate) struct Outside {
    /// Whoever loaded the project.
    owner: NoticeSink,
    state: Mutex<OutsideState>,
}

#[derive(Debug)]
struct OutsideState {
    run: NoticeSink,
    waiting: Vec<String>,
    /// What was taken since a run was last heard of.
    taken: usize,
}

impl Outside {
    pub(crate) fn new(owner: NoticeSink) -> Self {
        let state = OutsideState { run: NoticeSink::none(), waiting: Vec::new(), taken: 0 };
        Self { owner, state: Mutex::new(state) }
    }

    /// Sends lines to this run from now on, first of all those that waited for one.
    pub(crate) fn send_to(&self, run: NoticeSink) {
        let mut state = self.state();
        state.run = run;
        state.taken = 0;
        for line in std::mem::take(&mut state.waiting) {
            state.send(line);
        }
    }

    /// Tells a line.
    pub(crate) fn tell(&self, line: &str) {
        let mut state = self.state();
        if state.taken > MAX_NOTICE_BYTES {
            return;
        }
        state.taken += line.len() + LINE_COST;
        let line = if state.taken > MAX_NOTICE_BYTES { CUT } else { line };
        state.send(line.to_owned());
    }

    /// Gives the lines that no run could take to whoever loaded the project.
    pub(crate) fn finish(&self) {
        let waiting = std::mem::take(&mut self.state().waiting);
        for line in waiting {
            // Nobody is left who could be told.
            let _ = self.owner.send(line);
        }
    }

    /// Tells whoever loaded the project that loading takes its time.
    pub(crate) fn report_loading(&self, text: String) {
        let _ = self.owner.send(text);
    }

    fn state(&self) -> MutexGuard<'_, OutsideState> {
        self.state.lock()
    }
}

impl OutsideState {
    fn send(&mut self, line: String) {
        if let Err(UndeliveredNotice(line)) = self.run.send(line) {
            self.waiting.push(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// A sink that records what it takes, until it is closed.
    fn recording() -> (NoticeSink, Arc<Mutex<Vec<String>>>, Arc<AtomicBool>) {
        let (seen, open) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(true)));
        let (taken, is_open) = (seen.clone(), open.clone());
        let sink = NoticeSink::new(move |text| match is_open.load(Ordering::Relaxed) {
            true => {
                taken.lock().push(text);
                Ok(())
            }
            false => Err(UndeliveredNotice(text)),
        });
        (sink, seen, open)
    }

    #[test]
    fn every_line_goes_to_the_run_that_can_take_it_and_the_rest_to_the_owner() {
        let (owner, owners, _) = recording();
        let (run, runs, is_open) = recording();
        let outside = Outside::new(owner);
        outside.tell("at import");
        outside.send_to(run);
        outside.tell("in the run");
        is_open.store(false, Ordering::Relaxed);
        outside.tell("after the run");
        outside.finish();
        outside.finish();
        assert_eq!(*runs.lock(), ["at import", "in the run"]);
        assert_eq!(*owners.lock(), ["after the run"]);
    }

    #[test]
    fn a_flood_is_cut_and_says_so() {
        let (run, runs, _) = recording();
        let outside = Outside::new(NoticeSink::none());
        outside.send_to(run.clone());
        (0..100_000).for_each(|_| outside.tell("line"));
        assert_eq!(runs.lock().last().unwrap(), CUT);
        let count = runs.lock().len();
        assert!(count < 20_000, "{count}");
        outside.send_to(run);
        outside.tell("again");
        assert_eq!(runs.lock().last().unwrap(), "again");
    }
}
