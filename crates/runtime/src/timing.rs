//! Waiting that may have no end, and elapsed time.

use std::time::Duration;

use tokio::time::Instant;

/// Resolves after a limit; never where there is none.
pub(crate) async fn after(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// Milliseconds since an instant.
pub(crate) fn milliseconds(since: Instant) -> u64 {
    whole_milliseconds(since.elapsed())
}

/// A duration in milliseconds.
pub(crate) fn whole_milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
