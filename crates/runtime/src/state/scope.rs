//! What the code of a step is given.

use std::sync::Arc;

use llm_do_core::{Engine, Step, StepResult};

use super::run_state::RunState;

/// The engine that performs steps, and the state of the run that they belong to.
///
/// The agent loop, the dispatcher and tool code perform steps through this, so they do not depend on how an engine
/// performs them.
#[derive(Clone)]
pub(crate) struct RunScope {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) run: Arc<RunState>,
}

impl RunScope {
    /// Performs one step.
    pub(crate) async fn perform(&self, step: Step) -> StepResult {
        self.engine.perform(step).await
    }

    /// Performs steps at once; results are in the order of the steps.
    pub(crate) async fn perform_all(&self, steps: Vec<Step>) -> Vec<StepResult> {
        self.engine.perform_all(steps).await
    }
}
