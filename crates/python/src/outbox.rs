//! What is to be sent to the Python process, in order.
//!
//! A message goes out at once, on the thread of whoever sends it, as long as the process takes it without waiting.
//! What it does not take is kept for a thread that waits in the sender's place. Who has much to say waits for room.

use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use tokio::sync::Notify;

/// How many bytes wait at most before senders wait themselves.
const MAX_QUEUED_BYTES: usize = 8 * 1024 * 1024;

/// Sends lines to a process.
#[derive(Debug)]
pub(crate) struct Outbox {
    stream: UnixStream,
    state: Mutex<OutboxState>,
    work: Condvar,
    room: Notify,
}

#[derive(Debug, Default)]
struct OutboxState {
    queue: VecDeque<Vec<u8>>,
    queued: usize,
    /// Whether the thread is in the middle of a message.
    writing: bool,
    closed: bool,
}

impl Outbox {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self { stream, state: Mutex::default(), work: Condvar::new(), room: Notify::new() }
    }

    /// Sends a message as soon as there is room. What is sent to a process that has ended is lost.
    pub(crate) async fn send(&self, line: Vec<u8>) {
        loop {
            let room = self.room.notified();
            {
                let state = self.state();
                if state.closed || state.queued < MAX_QUEUED_BYTES {
                    return self.push(state, line);
                }
            }
            room.await;
        }
    }

    /// Sends a small message that cannot wait, whether there is room or not.
    pub(crate) fn send_now(&self, line: Vec<u8>) {
        self.push(self.state(), line);
    }

    fn push(&self, mut state: MutexGuard<'_, OutboxState>, line: Vec<u8>) {
        if state.closed {
            return;
        }
        let sent = match state.writing || !state.queue.is_empty() {
            true => 0,
            false => self.send_what_fits(&line),
        };
        let rest = line.get(sent..).unwrap_or_default();
        if !rest.is_empty() {
            state.queued += rest.len();
            state.queue.push_back(if sent == 0 { line } else { rest.to_vec() });
            self.work.notify_one();
        }
    }

    /// Sends what the process takes without waiting, and says how much that was.
    fn send_what_fits(&self, line: &[u8]) -> usize {
        let mut sent = 0;
        while let Some(rest) = line.get(sent..).filter(|rest| !rest.is_empty()) {
            match send(&self.stream, rest, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // Whoever reads for the process notices its end.
                Err(_) => return line.len(),
            }
        }
        sent
    }

    /// Sends what is kept, until the outbox is closed.
    pub(crate) fn work(&self) {
        while let Some(line) = self.next() {
            let failed = self.send_all(&line).is_err();
            let mut state = self.state();
            state.writing = false;
            state.queued -= line.len();
            state.closed |= failed;
            drop(state);
            self.room.notify_waiters();
        }
    }

    fn next(&self) -> Option<Vec<u8>> {
        let mut state = self.state();
        loop {
            if state.closed {
                return None;
            }
            if let Some(line) = state.queue.pop_front() {
                state.writing = true;
                return Some(line);
            }
            self.work.wait(&mut state);
        }
    }

    fn send_all(&self, mut line: &[u8]) -> io::Result<()> {
        while !line.is_empty() {
            match send(&self.stream, line, SendFlags::NOSIGNAL) {
                Ok(count) => line = line.get(count..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Ends the work. Who waits for room goes on.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.work.notify_all();
        self.room.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn messages_arrive_whole_and_in_order_however_slowly_they_are_taken() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let outbox = Arc::new(Outbox::new(ours));
        let working = outbox.clone();
        let worker = std::thread::spawn(move || working.work());
        let lines: Vec<Vec<u8>> = (0..40_u8).map(|number| vec![number; 500_000]).collect();
        let expected = lines.concat();
        let reader = std::thread::spawn(move || {
            let mut read = vec![0; 20_000_000];
            theirs.read_exact(&mut read).unwrap();
            read
        });
        for line in lines {
            outbox.send(line).await;
            assert!(outbox.state().queued < MAX_QUEUED_BYTES + 500_000);
        }
        assert!(reader.join().unwrap() == expected);
        outbox.close();
        worker.join().unwrap();
    }

    #[tokio::test]
    async fn sending_to_a_process_that_has_ended_waits_for_nothing() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let outbox = Outbox::new(ours);
        outbox.send(vec![0; 2 * MAX_QUEUED_BYTES]).await;
        outbox.close();
        outbox.send(vec![0; 10]).await;
        outbox.work();
    }
}
