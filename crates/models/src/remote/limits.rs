//! How long one attempt may take: how long a provider may be silent, and how long an answer may take in all.

use std::time::Duration;

use llm_do_core::{ModelError, ModelErrorKind, ModelSettings};
use tokio::time::{Instant, timeout_at};

/// How long a provider may be silent where the agent does not say.
pub(crate) const IDLE_LIMIT: Duration = Duration::from_mins(5);

/// How long an answer may take where the agent does not say.
pub(crate) const TOTAL_LIMIT: Duration = Duration::from_mins(30);

/// How long one attempt may take.
#[derive(Clone, Copy)]
pub(super) struct AttemptLimits {
    idle: Duration,
    total: Duration,
    pub(super) end: Instant,
}

impl AttemptLimits {
    pub(super) fn new(settings: &ModelSettings) -> Self {
        let total = settings.timeout.map_or(TOTAL_LIMIT, Duration::from_secs);
        let idle = settings.idle_timeout.map_or(IDLE_LIMIT, Duration::from_secs);
        Self { idle, total, end: Instant::now() + total }
    }

    /// Waits for something that may not take longer than the provider may be silent.
    pub(super) async fn within<T>(
        &self,
        is_stream: bool,
        host: &str,
        work: impl Future<Output = T>,
    ) -> Result<T, ModelError> {
        // An answer that is not streamed is silent until it is complete.
        let silence = if is_stream { Instant::now() + self.idle } else { self.end };
        match timeout_at(silence.min(self.end), work).await {
            Ok(done) => Ok(done),
            Err(_) if silence < self.end => Err(self.silent(host)),
            Err(_) => Err(self.overdue(host)),
        }
    }

    fn silent(&self, host: &str) -> ModelError {
        let message = format!(
            "nothing came from {host} for {} s; `model_settings.idle_timeout` sets the limit",
            self.idle.as_secs()
        );
        ModelError::new(ModelErrorKind::Network, message)
    }

    fn overdue(&self, host: &str) -> ModelError {
        let message = format!(
            "the answer of {host} took longer than {} s; `model_settings.timeout` sets the limit",
            self.total.as_secs()
        );
        ModelError::new(ModelErrorKind::TimedOut, message)
    }
}
