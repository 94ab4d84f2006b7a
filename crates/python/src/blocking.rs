//! Waits for a future on a thread that runs nothing else.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Wakes a thread.
struct Waker(Thread);

impl Wake for Waker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future, but not longer than a time. It must need no async runtime.
pub(crate) fn wait_for<T>(future: impl Future<Output = T>, time: Duration) -> Option<T> {
    let mut future = pin!(future);
    let waker = Arc::new(Waker(thread::current())).into();
    let end = Instant::now() + time;
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(value);
        }
        let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        thread::park_timeout(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_future_is_awaited_across_threads_and_given_up_in_time() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let thread = thread::spawn(move || sender.send(7));
        assert_eq!(wait_for(receiver, Duration::from_secs(10)), Some(Ok(7)));
        assert_eq!(thread.join().unwrap(), Ok(()));
        assert_eq!(wait_for(std::future::pending::<()>(), Duration::from_millis(1)), None);
    }
}
