//! Subscribers: code that reads events, on a thread of its own.
//!
//! A slow subscriber holds up other subscribers at most, a panicking one nobody: runs never wait for either.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use llm_do_core::Event;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::record::log::EventReader;

/// Code that reads events.
pub(crate) type Subscriber = Arc<dyn Fn(&Event) + Send + Sync>;

/// The thread on which subscribers read, started with the first one.
#[derive(Default)]
pub(crate) struct Subscribers {
    queue: OnceLock<Option<mpsc::UnboundedSender<Subscription>>>,
    tracker: TaskTracker,
}

struct Subscription {
    reader: EventReader,
    subscriber: Subscriber,
    ended: oneshot::Sender<()>,
    /// Lets a shutdown wait for it, and whoever waits for readers.
    _tracked: [TaskTrackerToken; 2],
}

/// How long events gather for a subscriber that has just read: short for a person, long for a run.
const MOMENT: Duration = Duration::from_millis(1);

impl Subscribers {
    /// Lets a subscriber read a run. What it returns resolves when the subscriber has read everything.
    pub(crate) fn read(
        &self,
        reader: EventReader,
        subscriber: Subscriber,
        tasks: &TaskTracker,
    ) -> oneshot::Receiver<()> {
        let (ended, end) = oneshot::channel();
        if let Some(queue) = self.queue.get_or_init(start) {
            // A thread that is gone has nobody to tell; dropping the reading ends the wait for it.
            let _ = queue.send(Subscription {
                reader,
                subscriber,
                ended,
                _tracked: [tasks.token(), self.tracker.token()],
            });
        }
        end
    }

    /// Waits until every reader has read everything.
    pub(crate) async fn done(&self) {
        self.tracker.close();
        self.tracker.wait().await;
        self.tracker.reopen();
    }
}

/// Starts the thread; nothing where the system refuses one.
fn start() -> Option<mpsc::UnboundedSender<Subscription>> {
    let (sender, mut queue) = mpsc::unbounded_channel::<Subscription>();
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().ok()?;
    let work = move || {
        let readings = tokio::task::LocalSet::new();
        readings.block_on(&executor, async {
            while let Some(reading) = queue.recv().await {
                tokio::task::spawn_local(read(reading));
            }
        });
        executor.block_on(readings);
    };
    std::thread::Builder::new().name("llm-do-events".to_owned()).spawn(work).ok()?;
    Some(sender)
}

async fn read(mut reading: Subscription) {
    while let Some(event) = reading.reader.next_gathered(MOMENT).await {
        let subscriber = &reading.subscriber;
        if catch_unwind(AssertUnwindSafe(|| subscriber(&event))).is_err() {
            break;
        }
    }
    let _ = reading.ended.send(());
}
