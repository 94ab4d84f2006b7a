//! Stands in for the `sync` modules of the runtime and of the record: the same names, with shuttle deciding who runs next.

use std::sync::PoisonError;
use std::time::Instant;

pub(crate) use shuttle::sync::MutexGuard;
use shuttle::sync::atomic::{AtomicBool, Ordering};

use crate::dice::one_in;

/// A lock of shuttle's.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A condition variable of shuttle's. A wait with a deadline may end at once, or when somebody else has run.
#[derive(Debug, Default)]
pub(crate) struct Condvar(shuttle::sync::Condvar);

impl Condvar {
    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        _deadline: Instant,
    ) -> (MutexGuard<'a, T>, bool) {
        if one_in(2) {
            return (guard, true);
        }
        (self.wait(guard), false)
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }
}

/// Tokio's notification, with a point of scheduling before every operation.
#[derive(Debug, Default)]
pub(crate) struct Notify(tokio::sync::Notify);

impl Notify {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn notified(&self) -> tokio::sync::futures::Notified<'_> {
        switch();
        self.0.notified()
    }

    pub(crate) fn notify_waiters(&self) {
        switch();
        self.0.notify_waiters();
    }
}

/// Lets shuttle run another task first.
fn switch() {
    // Reading an atomic is a point of scheduling and, unlike a yield, changes no task's priority.
    AtomicBool::new(false).load(Ordering::SeqCst);
}

/// Tokio's channel for one value, with a point of scheduling before every operation.
pub(crate) mod oneshot {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::sync::oneshot;
    use tokio::sync::oneshot::error::{RecvError, TryRecvError};

    use super::switch;

    #[derive(Debug)]
    pub(crate) struct Sender<T>(oneshot::Sender<T>);

    #[derive(Debug)]
    pub(crate) struct Receiver<T>(oneshot::Receiver<T>);

    pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (Sender(sender), Receiver(receiver))
    }

    impl<T> Sender<T> {
        pub(crate) fn send(self, value: T) -> Result<(), T> {
            switch();
            self.0.send(value)
        }

        pub(crate) fn is_closed(&self) -> bool {
            switch();
            self.0.is_closed()
        }
    }

    impl<T> Receiver<T> {
        pub(crate) fn close(&mut self) {
            switch();
            self.0.close();
        }

        pub(crate) fn try_recv(&mut self) -> Result<T, TryRecvError> {
            switch();
            self.0.try_recv()
        }
    }

    impl<T> Future for Receiver<T> {
        type Output = Result<T, RecvError>;

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
            switch();
            Pin::new(&mut self.0).poll(context)
        }
    }
}
