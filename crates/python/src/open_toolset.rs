//! A toolset of Python code that is open for one agent call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use llm_do_core::{CallInfo, Context, Failure, NoticeSink, Opening};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::call::{ASSESS_LIMIT, Request};
use crate::host::{Current, Host};
use crate::wire::{CallReply, ToHost, WireContext};

/// A toolset that is open for one agent call.
pub(crate) struct OpenToolset {
    host: Arc<Host>,
    /// What people call it.
    name: Arc<str>,
    id: Arc<str>,
    /// What the process calls the instance.
    pub(crate) number: u64,
    info: CallInfo,
    context: Context,
    notices: NoticeSink,
    /// The process in which it is open, counted from 1; 0 before.
    open_in: AtomicU64,
    opening: Mutex<()>,
}

impl OpenToolset {
    /// Describes an instance that is not open in any process yet.
    pub(crate) fn new(host: &Arc<Host>, name: &str, id: &Arc<str>, opening: &Opening<'_>) -> Self {
        Self {
            host: host.clone(),
            name: format!("toolset {name}").into(),
            id: id.clone(),
            number: host.number(),
            info: opening.call.clone(),
            context: opening.context.clone(),
            notices: opening.notices.clone(),
            open_in: AtomicU64::new(0),
            opening: Mutex::new(()),
        }
    }

    /// Opens the instance in a process where it is not open: a process that was started again knows none.
    pub(crate) async fn open_in(&self, current: &Current) -> Result<(), Failure> {
        let wanted = current.generation + 1;
        if self.open_in.load(Ordering::Acquire) == wanted {
            return Ok(());
        }
        let _one_at_a_time = self.opening.lock().await;
        if self.open_in.load(Ordering::Acquire) == wanted {
            return Ok(());
        }
        let message = |id| {
            let context = WireContext::from_info(&self.info, &self.context, &self.host.root);
            ToHost::Open { id, toolset: &self.id, instance: self.number, context }.line()
        };
        self.request().run(&self.host, current, message).await?.into_value::<Value>()?;
        self.open_in.store(wanted, Ordering::Release);
        Ok(())
    }

    /// Closes the instance, unless its process has ended.
    pub(crate) async fn close(&self) {
        // A process that has ended took the instance with it, and one that was started for this would know none.
        let Some(current) = self.host.running_in(self.open_in.load(Ordering::Acquire)) else { return };
        let message = |id| ToHost::Close { id, instance: self.number }.line();
        let closed = self.request().run(&self.host, &current, message).await;
        if let Err(failure) = closed.and_then(CallReply::into_value::<Value>) {
            // The sink of an instance keeps what it cannot deliver.
            let _ = self.notices.send(format!("{} could not be closed: {}", self.name, failure.message));
        }
    }

    fn request(&self) -> Request<'_> {
        let (name, notices) = (&self.name, Some(&self.notices));
        Request { name, call: None, notices, counts: false, limit: Some(ASSESS_LIMIT) }
    }
}
