//! Notices that may come when no tool call is running.

use std::fmt;
use std::sync::Arc;

/// Sends notices to people: to an agent call, to a run, or to whoever started the program.
///
/// It may be kept longer than what it sends to. A notice that can no longer be delivered comes back to the sender.
#[derive(Clone)]
pub struct NoticeSink(Arc<Send>);

type Send = dyn Fn(String) -> Result<(), UndeliveredNotice> + std::marker::Send + Sync;

/// A notice that could not be delivered, because what it was sent to has ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the notice could not be delivered: {0}")]
pub struct UndeliveredNotice(pub String);

impl NoticeSink {
    /// A sink that calls a function, which returns a notice that it cannot deliver.
    pub fn new(
        send: impl Fn(String) -> Result<(), UndeliveredNotice> + std::marker::Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(send))
    }

    /// A sink that delivers nothing.
    pub fn none() -> Self {
        Self::new(|text| Err(UndeliveredNotice(text)))
    }

    /// Sends a notice; returns it if it could not be delivered.
    pub fn send(&self, text: impl Into<String>) -> Result<(), UndeliveredNotice> {
        (self.0)(text.into())
    }
}

impl fmt::Debug for NoticeSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoticeSink")
    }
}
