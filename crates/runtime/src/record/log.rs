//! The one ordered log of a run, and its readers.
//!
//! Recorded events get their sequence number here, after the store has accepted them. Deltas and progress
//! go through a bounded ring that drops the oldest. A reader takes recorded events by cursor, so nothing
//! is lost and nobody waits for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use llm_do_core::{CallInfo, Clock, Event, EventBody, Halt, Key, UndeliveredNotice};

use crate::record::store::{Ack, Durability, RunWriter, StoreError};
use crate::sync::{Mutex, Notify};

/// How many deltas and reports of progress are kept for slow readers.
const RING: usize = 4_096;

/// The log of one run.
pub(crate) struct RunLog {
    clock: Arc<dyn Clock>,
    state: Mutex<LogState>,
    news: Notify,
    ended: Notify,
}

#[derive(Default)]
struct LogState {
    /// Writes the record. A run that only asks for a verdict has none.
    writer: Option<Arc<dyn RunWriter>>,
    events: Vec<Arc<Event>>,
    ring: VecDeque<Fleeting>,
    /// The ordinal of the first element of the ring.
    ring_start: u64,
    /// Events that are safe and may be read; commits in flight hold those behind them back.
    visible: usize,
    in_flight: usize,
    broken: Option<StoreError>,
    /// Whether the last event is being recorded.
    sealed: bool,
    closed: bool,
}

impl LogState {
    fn push(&mut self, event: Arc<Event>) {
        self.events.push(event);
        if self.in_flight == 0 {
            self.visible = self.events.len();
        }
    }

    /// Hands an event to the writer. This happens under the lock in which the event got its number, so the record has
    /// the same order.
    fn write(&self, event: &Arc<Event>, durability: Durability) -> Result<Ack, StoreError> {
        self.writer.as_ref().map_or_else(|| Ok(Ack::done()), |writer| writer.enqueue(event, durability))
    }

    fn committed(&mut self, event: &Event) {
        self.in_flight -= 1;
        let safe = event.seq.map_or(0, |seq| usize::try_from(seq).unwrap_or(usize::MAX).saturating_add(1));
        self.visible = if self.in_flight == 0 { self.events.len() } else { self.visible.max(safe) };
    }
}

/// An event that is not recorded, with its place among those that are.
struct Fleeting {
    after: usize,
    event: Arc<Event>,
}

impl RunLog {
    /// A log that continues after earlier events.
    pub(crate) fn new(clock: Arc<dyn Clock>, earlier: Vec<Arc<Event>>) -> Self {
        let state = LogState { visible: earlier.len(), events: earlier, ..LogState::default() };
        Self { clock, state: Mutex::new(state), news: Notify::new(), ended: Notify::new() }
    }

    /// Sets what writes the record, before the first event.
    pub(crate) fn write_to(&self, writer: Arc<dyn RunWriter>) {
        self.state.lock().writer = Some(writer);
    }

    /// Notes an event of bookkeeping. A store that refuses it breaks the log, which the next barrier tells.
    pub(crate) fn note(&self, call: &Arc<CallInfo>, key: &Key, body: EventBody) {
        let mut state = self.state.lock();
        if state.broken.is_some() {
            return;
        }
        self.push_noted(&mut state, call, key, body);
        drop(state);
        self.news.notify_waiters();
    }

    fn push_noted(&self, state: &mut LogState, call: &Arc<CallInfo>, key: &Key, body: EventBody) {
        let event = self.numbered(state, call, key, body);
        match state.write(&event, Durability::Buffered) {
            // Nobody waits for it: if it cannot be written, the next barrier reports that.
            Ok(_) => state.push(event),
            Err(error) => state.broken = Some(error),
        }
    }

    /// Notes a notice that may come at any time; returns it if the run has ended.
    pub(crate) fn note_notice(&self, call: &Arc<CallInfo>, text: String) -> Result<(), UndeliveredNotice> {
        match self.note_unless_ended(call, EventBody::Notice { text: text.clone() }) {
            true => Ok(()),
            false => Err(UndeliveredNotice(text)),
        }
    }

    /// Notes what may come at any time; returns whether the run had not ended.
    pub(crate) fn note_unless_ended(&self, call: &Arc<CallInfo>, body: EventBody) -> bool {
        let mut state = self.state.lock();
        if state.sealed || state.broken.is_some() {
            return false;
        }
        self.push_noted(&mut state, call, &call.id, body);
        drop(state);
        self.news.notify_waiters();
        true
    }

    /// Records an event and returns once it is safe: nothing may be done that the record does not hold.
    pub(crate) async fn commit(
        &self,
        call: &Arc<CallInfo>,
        key: &Key,
        body: EventBody,
        durability: Durability,
    ) -> Result<(), Halt> {
        let (event, written) = {
            let mut state = self.state.lock();
            if let Some(error) = &state.broken {
                return Err(Halt::Record(error.to_string()));
            }
            state.sealed |= matches!(body, EventBody::RunFinished { .. });
            let event = self.numbered(&state, call, key, body);
            let written = state.write(&event, durability);
            state.in_flight += 1;
            state.push(event.clone());
            (event, written)
        };
        let written = match written {
            Ok(ack) => ack.await,
            Err(error) => Err(error),
        };
        match &written {
            Ok(()) => self.state.lock().committed(&event),
            Err(error) => self.break_at(&event, error),
        }
        self.news.notify_waiters();
        written.map_err(|error| Halt::Record(error.to_string()))
    }

    /// Passes on a delta or a report of progress.
    pub(crate) fn pass(&self, call: &Arc<CallInfo>, key: &Key, body: EventBody) {
        let event =
            Arc::new(Event { seq: None, key: key.clone(), time: self.clock.now(), call: call.clone(), body });
        let mut state = self.state.lock();
        let after = state.events.len();
        state.ring.push_back(Fleeting { after, event });
        if state.ring.len() > RING {
            state.ring.pop_front();
            state.ring_start += 1;
        }
        drop(state);
        self.news.notify_waiters();
    }

    /// Ends the log: readers finish when they have read everything, and the run can be claimed again.
    pub(crate) fn close(&self) {
        let writer = {
            let mut state = self.state.lock();
            state.closed = true;
            state.writer.take()
        };
        drop(writer);
        self.news.notify_waiters();
        self.ended.notify_waiters();
    }

    /// Returns the recorded events so far.
    pub(crate) fn events(&self) -> Vec<Arc<Event>> {
        self.state.lock().events.clone()
    }

    fn numbered(&self, state: &LogState, call: &Arc<CallInfo>, key: &Key, body: EventBody) -> Arc<Event> {
        let seq = Some(state.events.len() as u64);
        Arc::new(Event { seq, key: key.clone(), time: self.clock.now(), call: call.clone(), body })
    }

    /// Takes an event that the store refused out again, and refuses all that follow.
    fn break_at(&self, event: &Arc<Event>, error: &StoreError) {
        let mut state = self.state.lock();
        state.in_flight -= 1;
        if let Some(position) = state.events.iter().position(|other| Arc::ptr_eq(other, event)) {
            state.events.truncate(position);
        }
        state.broken.get_or_insert_with(|| error.clone());
    }
}

/// Reads the events of a run: recorded ones without a gap, deltas as far as it keeps up.
pub struct EventReader {
    log: Arc<RunLog>,
    next_event: usize,
    next_delta: u64,
    dropped: u64,
}

impl EventReader {
    pub(crate) fn new(log: Arc<RunLog>) -> Self {
        Self::starting_at(log, 0)
    }

    /// A reader that passes over earlier events.
    pub(crate) fn starting_at(log: Arc<RunLog>, next_event: usize) -> Self {
        Self { log, next_event, next_delta: 0, dropped: 0 }
    }

    /// Returns the next event; `None` when the run has ended and everything was read.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        loop {
            let log = self.log.clone();
            let news = log.news.notified();
            match self.poll() {
                Poll::Event(event) => return Some(event),
                Poll::Ended => return None,
                Poll::Nothing => news.await,
            }
        }
    }

    /// Returns the next event. What follows at once is left to gather for a moment, so that a burst wakes the
    /// reader once and not for every event.
    pub(crate) async fn next_gathered(&mut self, moment: Duration) -> Option<Arc<Event>> {
        let log = self.log.clone();
        let ended = log.ended.notified();
        match self.poll() {
            Poll::Event(event) => return Some(event),
            Poll::Ended => return None,
            Poll::Nothing => drop(tokio::time::timeout(moment, ended).await),
        }
        self.next().await
    }

    /// Returns how many deltas this reader missed because it was slow.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn poll(&mut self) -> Poll {
        let state = self.log.state.lock();
        if self.next_delta < state.ring_start {
            self.dropped += state.ring_start - self.next_delta;
            self.next_delta = state.ring_start;
        }
        let offset = usize::try_from(self.next_delta - state.ring_start).unwrap_or(usize::MAX);
        if let Some(fleeting) = state.ring.get(offset)
            && fleeting.after <= self.next_event
        {
            self.next_delta += 1;
            return Poll::Event(fleeting.event.clone());
        }
        if let Some(event) = state.events[..state.visible.min(state.events.len())].get(self.next_event) {
            self.next_event += 1;
            return Poll::Event(event.clone());
        }
        if state.closed { Poll::Ended } else { Poll::Nothing }
    }
}

enum Poll {
    Event(Arc<Event>),
    Nothing,
    Ended,
}
