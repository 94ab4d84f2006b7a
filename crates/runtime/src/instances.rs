//! Toolset instances: opened for one agent call, closed exactly once on every way out.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use llm_do_core::{CallInfo, Context, Failure, FailureKind, Opening, Tool, ToolsetInstance};
use tokio::sync::OnceCell;

use crate::plan::{Plan, SlotPlan};

/// How long an instance may take to close before it is left behind.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);

/// The toolset instances of one call.
pub(crate) struct Instances {
    slots: Vec<OnceCell<Arc<dyn ToolsetInstance>>>,
    closed: AtomicBool,
}

impl Instances {
    /// Room for the toolsets of a plan, none of them open.
    pub(crate) fn of(plan: &Plan) -> Self {
        Self { slots: plan.slots.iter().map(|_| OnceCell::new()).collect(), closed: AtomicBool::new(false) }
    }

    /// Opens all toolsets of a plan.
    pub(crate) async fn open_all(
        &self,
        plan: &Plan,
        call: &CallInfo,
        context: &Context,
    ) -> Result<(), Failure> {
        for slot in 0..plan.slots.len() {
            self.instance(plan, slot, call, context).await?;
        }
        Ok(())
    }

    /// Returns a tool of a toolset, opening the toolset where it is not open yet.
    pub(crate) async fn tool(
        &self,
        plan: &Plan,
        slot: usize,
        name: &str,
        call: &CallInfo,
        context: &Context,
    ) -> Result<Arc<dyn Tool>, Failure> {
        let instance = self.instance(plan, slot, call, context).await?;
        let tool = instance.tools().iter().find(|tool| tool.definition().name == *name).cloned();
        tool.ok_or_else(|| {
            let toolset = plan.slots[slot].toolset.name();
            Failure::new(
                FailureKind::Toolset,
                format!("the toolset `{toolset}` announced `{name}` but does not have it"),
            )
        })
    }

    async fn instance(
        &self,
        plan: &Plan,
        slot: usize,
        call: &CallInfo,
        context: &Context,
    ) -> Result<&Arc<dyn ToolsetInstance>, Failure> {
        self.slots[slot].get_or_try_init(|| open(&plan.slots[slot], call, context)).await
    }

    /// Closes every open instance. A second call does nothing.
    pub(crate) async fn close(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        for instance in self.slots.iter().filter_map(OnceCell::get) {
            let closing = AssertUnwindSafe(async { instance.close().await }).catch_unwind();
            // A panic or a hang in one instance must not keep the others open.
            let _ = tokio::time::timeout(CLOSE_LIMIT, closing).await;
        }
    }
}

async fn open(
    plan: &SlotPlan,
    call: &CallInfo,
    context: &Context,
) -> Result<Arc<dyn ToolsetInstance>, Failure> {
    let opening = Opening { call, settings: &plan.settings, context };
    let name = plan.toolset.name();
    match AssertUnwindSafe(async { plan.toolset.open(opening).await }).catch_unwind().await {
        Ok(Ok(instance)) => Ok(instance),
        Ok(Err(error)) => Err(Failure::new(
            FailureKind::Toolset,
            format!("the toolset `{name}` could not be opened: {error}"),
        )),
        Err(_panic) => Err(Failure::new(
            FailureKind::Toolset,
            format!("the toolset `{name}` panicked while it was opened"),
        )),
    }
}
