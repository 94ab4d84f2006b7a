//! Limits what a run does and keeps at once: leaves that run side by side, and results that no model has seen yet.
//!
//! A leaf is a request to a model, or the code of a tool that calls nothing. Code that calls gives its permit back: it
//! waits for leaves of its own, which must not wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use llm_do_core::{Attachment, CallOrigin, Content, Failure, FailureKind, Halt, Limits, Output};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::state::live::{AgentState, LiveCall};

/// Leaves of a run side by side, if no limit is set.
pub const DEFAULT_PARALLEL: u32 = 32;

/// Bytes of results in flight, if no limit is set.
pub const DEFAULT_RESULT_BYTES: u64 = 256 * 1024 * 1024;

/// What a run does and keeps at once.
pub(crate) struct InFlight {
    leaves: Arc<Semaphore>,
    limit: u64,
    bytes: AtomicU64,
}

/// The permit of a leaf, until it ends or calls something.
pub(crate) type Leaf = OwnedSemaphorePermit;

impl InFlight {
    pub(crate) fn new(limits: &Limits) -> Self {
        let parallel = limits.parallel.unwrap_or(DEFAULT_PARALLEL).max(1) as usize;
        let limit = limits.result_bytes.unwrap_or(DEFAULT_RESULT_BYTES);
        Self { leaves: Arc::new(Semaphore::new(parallel)), limit, bytes: AtomicU64::new(0) }
    }

    /// Waits until another leaf may run.
    pub(crate) async fn leaf(&self, call: &LiveCall) -> Result<Leaf, Halt> {
        if let Ok(leaf) = self.leaves.clone().try_acquire_owned() {
            return Ok(leaf);
        }
        tokio::select! {
            biased;
            () = call.cancel.cancelled() => Err(Halt::Interrupted),
            leaf = self.leaves.clone().acquire_owned() => leaf.map_err(|_| Halt::Interrupted),
        }
    }

    /// Counts a result that a model asked for, or refuses it if there are too many already.
    pub(crate) fn keep(&self, call: &LiveCall, output: &Output) -> Result<(), Failure> {
        if call.origin != CallOrigin::Model {
            return Ok(());
        }
        let size = size_of(output);
        let before = self.bytes.fetch_add(size, Ordering::Relaxed);
        if before.saturating_add(size) > self.limit {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
            return Err(self.too_large(size));
        }
        call.callers_frame().agent_state.results.fetch_add(size, Ordering::Relaxed);
        Ok(())
    }

    /// Forgets the results of a turn: the model is given them, or nobody is.
    pub(crate) fn forget(&self, agent_state: &AgentState) {
        self.bytes.fetch_sub(agent_state.results.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }

    fn too_large(&self, size: u64) -> Failure {
        let message = format!(
            "the result has {size} bytes, and the results of calls at the same time may have {} together",
            self.limit
        );
        Failure::new(FailureKind::Limit, message)
            .with_hint("ask for less at once; `runtime.max_result_bytes` sets the limit")
    }
}

fn size_of(output: &Output) -> u64 {
    let content = match &output.content {
        Content::Text(text) => text.len(),
        Content::Json(value) => size_of_value(value),
    };
    let attachments = output.attachments.iter().filter_map(Attachment::size);
    (content + attachments.sum::<usize>()) as u64
}

fn size_of_value(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(values) => values.iter().map(size_of_value).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + 3 + size_of_value(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}
