//! Waiting that may have no end.

use std::time::Duration;

/// Resolves after a limit; never where there is none.
pub(crate) async fn after(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}
