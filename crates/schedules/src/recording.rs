//! Scenarios of the record: tasks that log events of one run, the thread that writes them, and readers.

use std::sync::Arc;

use jiff::Timestamp;
use llm_do_core::{CallInfo, Clock, Event, EventBody, Halt, Key, Name, RunId};
use shuttle::future::{block_on, spawn};
use shuttle::thread;
use uuid::Uuid;

use crate::dice::{number, one_in, pause};
use crate::queue::{Load, Queue, Waiting};
use crate::record::log::{EventReader, RunLog};
use crate::record::store::{Ack, AckSender, Durability, RunWriter, StoreError};
use crate::sync::Mutex;

/// Several tasks log events, of which some must be safe before their task goes on, and others read.
pub fn events_are_written_in_order() {
    Scene::new(None).play();
}

/// As above, and the disk fails at some transaction.
pub fn failed_writes_stop_the_run() {
    Scene::new(Some(number(0..3))).play();
}

/// What the tasks of a scenario share.
struct Scene {
    log: Arc<RunLog>,
    call: Arc<CallInfo>,
    disk: Arc<Disk>,
}

/// What is written: the names of events, in their order.
struct Disk {
    queue: Queue<WaitingEvent>,
    state: Mutex<DiskState>,
    /// The transaction that fails.
    fails_at: Option<usize>,
}

#[derive(Default)]
struct DiskState {
    given: Vec<String>,
    written: Vec<String>,
    error: Option<StoreError>,
}

struct WaitingEvent {
    name: String,
    ack: Option<AckSender>,
}

impl Waiting for WaitingEvent {
    fn load(&self) -> Load {
        Load { events: 1, bytes: self.name.len() }
    }

    fn is_awaited(&self) -> bool {
        self.ack.is_some()
    }
}

/// As the record's: it hands events to the thread that writes.
struct DiskWriter(Arc<Disk>);

impl RunWriter for DiskWriter {
    fn enqueue(&self, event: &Arc<Event>, durability: Durability) -> Result<Ack, StoreError> {
        if let Some(error) = &self.0.state.lock().error {
            return Err(error.clone());
        }
        let (sender, ack) = match durability {
            Durability::Buffered => (None, Ack::done()),
            Durability::Process | Durability::Power => {
                let (sender, ack) = Ack::pending();
                (Some(sender), ack)
            }
        };
        let name = name_of(event);
        self.0.state.lock().given.push(name.clone());
        let full = |_| StoreError::Io("too much is waiting".to_owned());
        self.0.queue.push(WaitingEvent { name, ack: sender }).map_err(full)?;
        Ok(ack)
    }
}

impl Disk {
    /// Writes until the queue is closed.
    fn write_all(&self) {
        let mut transactions = 0..;
        while let (Some(batch), Some(transaction)) = (self.queue.next(), transactions.next()) {
            let mut state = self.state.lock();
            if self.fails_at == Some(transaction) {
                state.error = Some(StoreError::Io("the disk failed".to_owned()));
            }
            let result = state.error.clone().map_or(Ok(()), Err);
            if result.is_ok() {
                state.written.extend(batch.iter().map(|waiting| waiting.name.clone()));
            }
            drop(state);
            for ack in batch.into_iter().filter_map(|waiting| waiting.ack) {
                ack.send(result.clone());
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        self.state.lock().written.iter().any(|written| written == name)
    }
}

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

impl Scene {
    fn new(fails_at: Option<usize>) -> Arc<Self> {
        let disk = Arc::new(Disk { queue: Queue::new(), state: Mutex::default(), fails_at });
        let log = Arc::new(RunLog::new(Arc::new(FixedClock), Vec::new()));
        log.write_to(Arc::new(DiskWriter(disk.clone())));
        let call = CallInfo {
            run: RunId(Uuid::nil()),
            id: Key::root(),
            parent: None,
            depth: 0,
            path: "".into(),
            agent: Name::from(""),
        };
        Arc::new(Self { log, call: Arc::new(call), disk })
    }

    fn play(self: Arc<Self>) {
        let disk = self.disk.clone();
        let thread = thread::spawn(move || disk.write_all());
        let readers: Vec<_> = (0..number(1..3)).map(|_| spawn(self.clone().read())).collect();
        let tasks: Vec<_> = (0..number(2..4)).map(|task| spawn(self.clone().log_some(task))).collect();
        let logged: Vec<String> =
            tasks.into_iter().flat_map(|task| block_on(task).expect("a task has logged")).collect();
        self.log.close();
        self.disk.queue.close();
        thread.join().expect("the thread has written");
        let read: Vec<Vec<String>> =
            readers.into_iter().map(|reader| block_on(reader).expect("a reader has read")).collect();
        self.check(&logged, &read);
    }

    /// Logs some events. Returns those that were said to be safe.
    async fn log_some(self: Arc<Self>, task: usize) -> Vec<String> {
        let mut safe = Vec::new();
        for index in 0..number(1..4) {
            pause().await;
            if one_in(3) {
                let text = format!("note {task} {index}");
                self.log.note(&self.call, &Key::root(), EventBody::Notice { text });
                continue;
            }
            let name = format!("commit {task} {index}");
            let body = EventBody::Notice { text: name.clone() };
            match self.log.commit(&self.call, &Key::root(), body, Durability::Process).await {
                Ok(()) => {
                    assert!(self.disk.has(&name), "`{name}` is said to be safe");
                    safe.push(name);
                }
                Err(Halt::Record(_)) => assert!(self.disk.fails_at.is_some(), "`{name}` was refused"),
                Err(halt) => panic!("{halt}"),
            }
        }
        safe
    }

    /// Reads to the end. What is shown has the next number, and is as safe as was asked.
    async fn read(self: Arc<Self>) -> Vec<String> {
        let mut reader = EventReader::new(self.log.clone());
        let mut read = Vec::new();
        while let Some(event) = reader.next().await {
            assert_eq!(event.seq, Some(read.len() as u64), "events are read without a gap");
            let name = name_of(&event);
            assert!(name.starts_with("note") || self.disk.has(&name), "`{name}` is shown before it is safe");
            read.push(name);
        }
        read
    }

    fn check(&self, safe: &[String], read: &[Vec<String>]) {
        let state = self.disk.state.lock();
        let logged: Vec<String> = self.log.events().iter().map(|event| name_of(event)).collect();
        assert_eq!(state.given[..state.written.len()], state.written, "written in the order of numbers");
        assert!(safe.iter().all(|name| state.written.contains(name)), "{safe:?} {:?}", state.written);
        assert!(state.given.starts_with(&logged), "{logged:?} {:?}", state.given);
        for read in read {
            assert!(state.given.starts_with(read), "{read:?} {:?}", state.given);
        }
        if self.disk.fails_at.is_none() {
            assert_eq!(logged, state.written);
            assert!(read.iter().all(|read| *read == logged), "{read:?} {logged:?}");
        }
    }
}

fn name_of(event: &Event) -> String {
    match &event.body {
        EventBody::Notice { text } => text.clone(),
        other => panic!("{other:?} was not logged"),
    }
}
