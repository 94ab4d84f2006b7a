//! Toolset instances: opened for one agent call, closed exactly once on every way out.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use llm_do_core::{
    CallInfo, Context, Failure, FailureKind, Name, NoticeSink, Opening, Tool, ToolDefinition,
    ToolsetInstance, UndeliveredNotice,
};
use tokio::sync::{OnceCell, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::project::plan::{Plan, SlotPlan};
use crate::sync::Mutex;

/// How long a toolset may take to open.
const OPEN_LIMIT: Duration = Duration::from_secs(60);
/// How long an instance may take to close before it is left behind.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);

/// The toolset instances of one call.
pub(crate) struct Instances {
    slots: Vec<OnceCell<Arc<dyn ToolsetInstance>>>,
    /// The names of their toolsets.
    names: Vec<Name>,
    /// The slots whose earlier instances are gone, as long as the model has not been told.
    lost: Mutex<BTreeSet<usize>>,
    closed: AtomicBool,
    notices: Arc<Mutex<Notices>>,
}

/// Where the notices of instances go: to the call that uses them now, or to whoever closes them.
struct Notices {
    sink: NoticeSink,
    /// What came when no call could record it.
    undelivered: Vec<String>,
    /// Whether nobody asks for it any more.
    closed: bool,
}

impl Notices {
    fn send(&mut self, text: String) -> Result<(), UndeliveredNotice> {
        match self.sink.send(text) {
            Err(UndeliveredNotice(text)) if !self.closed => {
                self.undelivered.push(text);
                Ok(())
            }
            sent => sent,
        }
    }
}

/// For whom an instance is opened.
pub(crate) struct Opener<'a> {
    pub(crate) plan: &'a Arc<Plan>,
    pub(crate) call: &'a Arc<CallInfo>,
    pub(crate) context: &'a Arc<Context>,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) tasks: &'a TaskTracker,
}

impl Instances {
    /// Room for the toolsets of a plan, none of them open.
    pub(crate) fn new(plan: &Plan) -> Self {
        let slots = plan.slots.iter().map(|_| OnceCell::new()).collect();
        let notices = Notices { sink: NoticeSink::none(), undelivered: Vec::new(), closed: false };
        let names = plan.slots.iter().map(|slot| slot.toolset.name().clone()).collect();
        let (lost, closed) = (Mutex::default(), AtomicBool::new(false));
        Self { slots, names, lost, closed, notices: Arc::new(Mutex::new(notices)) }
    }

    /// Sends the notices of the instances to a call from now on: a session uses them in one call after the other.
    pub(crate) fn send_notices_to(&self, sink: NoticeSink) {
        let mut notices = self.notices.lock();
        notices.sink = sink;
        for text in std::mem::take(&mut notices.undelivered) {
            // What still cannot be delivered is kept.
            let _ = notices.send(text);
        }
    }

    /// Notes that what an earlier instance kept is gone; returns the toolset, unless that is noted already.
    pub(crate) fn mark_lost(&self, slot: usize) -> Option<&Name> {
        self.lost.lock().insert(slot).then(|| &self.names[slot])
    }

    /// Returns the toolset whose earlier instance is gone, the first time that it is asked for.
    pub(crate) fn take_lost(&self, slot: usize) -> Option<&Name> {
        self.lost.lock().remove(&slot).then(|| &self.names[slot])
    }

    /// Opens all toolsets of a plan.
    pub(crate) async fn open_all(&self, opener: &Opener<'_>) -> Result<(), Failure> {
        for slot in 0..opener.plan.slots.len() {
            self.instance(slot, opener).await?;
        }
        Ok(())
    }

    /// Returns a tool of a toolset, opening the toolset where it is not open yet.
    pub(crate) async fn tool(
        &self,
        slot: usize,
        announced: &Arc<ToolDefinition>,
        opener: &Opener<'_>,
    ) -> Result<Arc<dyn Tool>, Failure> {
        let instance = self.instance(slot, opener).await?;
        let (toolset, name) = (opener.plan.slots[slot].toolset.name(), &announced.name);
        let Some(tool) = instance.tools().iter().find(|tool| tool.definition().name == *name) else {
            return Err(failed(format!("the toolset `{toolset}` announced `{name}` but does not have it")));
        };
        // What was linked, ruled about and granted is the announced definition, so nothing else runs under it.
        let found = tool.definition();
        if !Arc::ptr_eq(found, announced) && found != announced {
            return Err(failed(format!(
                "the toolset `{toolset}` opened `{name}` with another definition than announced"
            )));
        }
        Ok(tool.clone())
    }

    async fn instance(&self, slot: usize, opener: &Opener<'_>) -> Result<&Arc<dyn ToolsetInstance>, Failure> {
        if self.closed.load(Ordering::Acquire) {
            return Err(failed("the call whose toolsets these were has ended".to_owned()));
        }
        match self.slots[slot].get() {
            Some(instance) => Ok(instance),
            None => {
                let opening = || open_owned(slot, opener, self.sink());
                // Boxed: it happens once per instance, and looking it up shall not take the memory for it.
                Box::pin(self.slots[slot].get_or_try_init(opening)).await
            }
        }
    }

    /// The sink that instances keep for as long as they are open.
    fn sink(&self) -> NoticeSink {
        let notices = self.notices.clone();
        NoticeSink::new(move |text| notices.lock().send(text))
    }

    /// Closes every open instance. Returns the notices that no call could record; a second call does nothing.
    pub(crate) async fn close(&self) -> Vec<String> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Vec::new();
        }
        let sink = self.sink();
        for (slot, name) in self.slots.iter().zip(&self.names) {
            if let Some(instance) = slot.get() {
                close(&**instance, name, &sink).await;
            }
        }
        let mut notices = self.notices.lock();
        notices.closed = true;
        std::mem::take(&mut notices.undelivered)
    }
}

/// A panic or a hang in one instance must not keep the others open.
async fn close(instance: &dyn ToolsetInstance, name: &Name, notices: &NoticeSink) {
    let closing = AssertUnwindSafe(async { instance.close().await }).catch_unwind();
    let problem = match tokio::time::timeout(CLOSE_LIMIT, closing).await {
        Ok(Ok(())) => return,
        Ok(Err(_panic)) => "panicked while it was closed".to_owned(),
        Err(_) => format!("did not close within {} seconds", CLOSE_LIMIT.as_secs()),
    };
    // The sink keeps what it cannot deliver.
    let _ = notices.send(format!("the toolset `{name}` {problem}"));
}

fn failed(message: String) -> Failure {
    Failure::new(FailureKind::Toolset, message)
}

/// Opens an instance as a task of the runtime: whoever waits for it may give up, and an instance that comes too
/// late is closed.
async fn open_owned(
    slot: usize,
    opener: &Opener<'_>,
    notices: NoticeSink,
) -> Result<Arc<dyn ToolsetInstance>, Failure> {
    let (sender, mut arrived) = oneshot::channel();
    let (plan, call, context) = (opener.plan.clone(), opener.call.clone(), opener.context.clone());
    let given = notices.clone();
    opener.tasks.spawn(async move {
        let opened = open(&plan.slots[slot], &call, &context, &given).await;
        if let Err(Ok(instance)) = sender.send(opened) {
            close(&*instance, plan.slots[slot].toolset.name(), &given).await;
        }
    });
    let name = opener.plan.slots[slot].toolset.name();
    let gave_up = tokio::select! {
        biased;
        opened = &mut arrived => return opened.unwrap_or_else(|_| Err(failed(format!("the toolset `{name}` broke off")))),
        () = opener.cancel.cancelled() => "was not awaited: the call was cancelled",
        () = tokio::time::sleep(OPEN_LIMIT) => "took too long to open",
    };
    arrived.close();
    if let Ok(Ok(instance)) = arrived.try_recv() {
        close(&*instance, name, &notices).await;
    }
    Err(failed(format!("the toolset `{name}` {gave_up}")))
}

async fn open(
    plan: &SlotPlan,
    call: &CallInfo,
    context: &Context,
    notices: &NoticeSink,
) -> Result<Arc<dyn ToolsetInstance>, Failure> {
    let opening = Opening { call, settings: &plan.settings, context, notices };
    let name = plan.toolset.name();
    match AssertUnwindSafe(async { plan.toolset.open(opening).await }).catch_unwind().await {
        Ok(Ok(instance)) => Ok(instance),
        Ok(Err(error)) => Err(failed(format!("the toolset `{name}` could not be opened: {error}"))),
        Err(_panic) => Err(failed(format!("the toolset `{name}` panicked while it was opened"))),
    }
}
