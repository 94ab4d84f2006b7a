//! What a run that is entered again gets back from its record before anything runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use llm_do_core::{
    CallInfo, EventBody, Key, Model, ModelChoice, ModelError, ModelErrorKind, ModelResult, Name,
};

use crate::record::replay::Replay;
use crate::state::run_state::RunState;

/// Restores what other parts of the runtime know of a run: its grants, the agents that it created, how far its models are.
pub(super) fn restore(run: &RunState, root: &Arc<CallInfo>, replay: &Replay) {
    for grant in replay.grants() {
        if !run.shared.broker.restore(grant.clone(), run.id) {
            run.log.note(root, &Key::root(), EventBody::GrantRevoked { grant: grant.clone() });
        }
    }
    replay.created().iter().for_each(|(name, creator)| run.shared.restore_creator(name, creator));
    resume_models(run, replay);
}

/// Tells models how often they have answered. Of those that are given as objects, only one that shares its name with no other
/// is known to be the one of the record.
fn resume_models(run: &RunState, replay: &Replay) {
    let given = given_models(run);
    for name in replay.models() {
        let answers = replay.answers_of(name, None);
        run.shared.models.resumed(name, answers);
        if let Some([model]) = given.get(name).map(Vec::as_slice) {
            model.resumed(answers);
        }
    }
}

/// Returns the models that the run and its agents are given as objects, by name.
fn given_models(run: &RunState) -> BTreeMap<Name, Vec<Arc<dyn Model>>> {
    let (settings, project) = (&run.options, &run.shared.project);
    let of_agents = project.agents.values().filter_map(|plan| plan.spec.as_ref());
    let of_agents = of_agents.flat_map(|spec| spec.model.iter().chain(&spec.fallback_models));
    let of_run = settings.model.iter().chain(&settings.entry_model).chain(&settings.fallbacks);
    let mut given = BTreeMap::<Name, Vec<Arc<dyn Model>>>::new();
    for choice in of_agents.chain(of_run).chain(&project.model) {
        let ModelChoice::Given(model) = choice else { continue };
        let named = given.entry(model.name().clone()).or_default();
        if !named.iter().any(|other| Arc::ptr_eq(other, model)) {
            named.push(model.clone());
        }
    }
    given
}

/// Records that requests will never be answered, as the run was broken off first. Each may have been charged.
pub(super) fn note_unanswered(run: &RunState, replay: &Replay) {
    for (step, asked) in replay.unanswered() {
        let message = "the run was broken off before the answer was recorded";
        let error = ModelError::new(ModelErrorKind::Truncated, message);
        let cost = run.priced_cost(&asked.model, asked.cost.clone());
        let result = ModelResult::Failed { error: ModelError { cost, ..error } };
        let body = EventBody::ModelResponse { model: asked.model.clone(), result, duration_ms: 0 };
        run.log.note(&asked.call, step, body);
    }
}
