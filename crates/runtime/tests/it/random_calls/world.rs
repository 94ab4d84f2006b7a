//! What the tools, models and approvers of one case share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use llm_do_core::{CallContext, Input, Name, Payload};
use llm_do_runtime::{Canceller, Run};
use llm_do_testing::EffectRecorder;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::random_calls::arguments::{Shape, any};
use crate::random_calls::journal::{Acted, Journal, What, Whose};
use crate::random_calls::plan::{AgentPlan, CasePlan};
use llm_do_testing::Chance;

/// One case while it runs.
pub(crate) struct World {
    pub(crate) plan: CasePlan,
    pub(crate) journal: Arc<Journal>,
    /// Stands outside the runtime and has what tools really did.
    pub(crate) recorder: EffectRecorder,
    asked: AtomicUsize,
    acted: AtomicUsize,
    instances: AtomicUsize,
    strays: Mutex<Vec<JoinHandle<()>>>,
}

/// One run while it goes on; tools find it among their context values.
#[derive(Clone)]
pub(crate) struct RunSeat {
    pub(crate) number: usize,
    pub(crate) world: Arc<World>,
    canceller: Arc<OnceLock<Canceller>>,
    cancel_wanted: Arc<AtomicBool>,
    /// The numbers of the events that a reader of the run saw.
    read: Arc<Mutex<Vec<u64>>>,
}

impl World {
    pub(crate) fn new(plan: CasePlan) -> Arc<Self> {
        Arc::new(Self {
            plan,
            journal: Arc::default(),
            recorder: EffectRecorder::default(),
            asked: AtomicUsize::new(0),
            acted: AtomicUsize::new(0),
            instances: AtomicUsize::new(0),
            strays: Mutex::default(),
        })
    }

    /// Returns whether one more call may be asked for in this case.
    pub(crate) fn spend(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) < self.plan.calls
    }

    pub(crate) fn next_instance(&self) -> usize {
        self.instances.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes what a tool does, in the moment in which it does it.
    pub(crate) fn acts(&self, call: &CallContext, name: &str, acted: Acted) {
        self.journal.note_with(Whose::Id(call.run_id()), || {
            self.recorder.happened(call, name, acted.received.value());
            What::Acted { place: self.acted.fetch_add(1, Ordering::Relaxed), acted }
        });
    }

    /// Keeps code that goes on after its own call has ended.
    pub(crate) fn keep_stray(&self, stray: JoinHandle<()>) {
        self.strays.lock().push(stray);
    }

    /// Lets stray code run on for a while and then ends it: a call that was halted never returns to it.
    pub(crate) async fn end_strays(&self) {
        let strays = std::mem::take(&mut *self.strays.lock());
        for stray in strays {
            for _ in 0..50 {
                if stray.is_finished() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            stray.abort();
            let _ = stray.await;
        }
    }

    /// Picks something to call, with an input that often fits.
    pub(crate) fn random_call(&self, agent: Option<&AgentPlan>, chance: &mut Chance) -> (Name, Value) {
        let names = self.plan.names_to_try(agent);
        let name = chance.one_of(&names).clone();
        let known = self.plan.resolve(agent, &name, false).or_else(|| self.plan.resolve(None, &name, false));
        let shape = known.map_or(Shape::Any, |target| target.shape());
        (name.into(), any(shape, chance))
    }

    /// Asks for a random call by code.
    pub(crate) async fn call(&self, call: &CallContext, chance: &mut Chance, stray: bool) {
        if !self.spend() {
            return;
        }
        let agent = call.agent().and_then(|spec| self.plan.agent(&spec.name));
        let (name, value) = self.random_call(agent, chance);
        let text = chance.percent(10).then(|| Input::Text("sort".to_owned()));
        let input = text.unwrap_or(Input::Object(value));
        self.call_by_name(call, name, input, stray).await;
    }

    async fn call_by_name(&self, call: &CallContext, name: Name, input: Input, stray: bool) {
        let (whose, parent) = (Whose::Id(call.run_id()), call.key().clone());
        let payload = input.clone().into_payload();
        let asked =
            What::CodeAsked { parent: parent.clone(), name: name.clone(), input: payload.clone(), stray };
        self.journal.note(whose, asked);
        let failure = call.call(name.clone(), input).await.err().map(|failure| failure.kind);
        self.journal.note(whose, What::CodeAnswered { parent, name, input: payload, failure });
    }

    /// Puts an inner effect to the gate and acts only if it is allowed, with what was allowed.
    pub(crate) async fn act_inside(&self, call: &CallContext, name: &str, payload: Value, stray: bool) {
        let (whose, parent) = (Whose::Id(call.run_id()), call.key().clone());
        let (name, payload) = (Name::from(name), Payload::new(payload));
        let asked =
            What::InnerAsked { parent: parent.clone(), name: name.clone(), payload: payload.clone(), stray };
        self.journal.note(whose, asked);
        let permitted = call.approve(name.clone(), payload.value().clone(), "because").await;
        let answered =
            What::InnerAnswered { parent, name: name.clone(), payload, permitted: permitted.clone() };
        self.journal.note(whose, answered);
        if let Ok(received) = permitted {
            let acted = Acted { received, precondition: None, instance: None, blocking: false, inner: true };
            self.acts(call, &name, acted);
        }
    }
}

impl RunSeat {
    pub(crate) fn new(number: usize, world: &Arc<World>) -> Self {
        Self {
            number,
            world: world.clone(),
            canceller: Arc::default(),
            cancel_wanted: Arc::default(),
            read: Arc::default(),
        }
    }

    /// Notes that a reader saw an event.
    pub(crate) fn reads(&self, event: u64) {
        self.read.lock().push(event);
    }

    pub(crate) fn read(&self) -> Vec<u64> {
        self.read.lock().clone()
    }

    /// Takes the handle of the run, and cancels it where that was wanted already.
    pub(crate) fn started(&self, run: &Run) {
        let _ = self.canceller.set(run.canceller());
        if self.cancel_wanted.load(Ordering::SeqCst) {
            run.cancel();
        }
    }

    /// Cancels the run from outside.
    pub(crate) fn cancel(&self) {
        self.world.journal.note(Whose::Number(self.number), What::Cancelled);
        self.cancel_wanted.store(true, Ordering::SeqCst);
        if let Some(canceller) = self.canceller.get() {
            canceller.cancel();
        }
    }

    /// The chance at a place of this run.
    pub(crate) fn chance(&self, what: &str, place: &str) -> Chance {
        Chance::at(self.world.plan.seed, &[what, &self.number.to_string(), place])
    }
}

/// Gives way to other tasks so often.
pub(crate) async fn give_way(times: usize) {
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}

/// What a tool answers.
pub(crate) fn answer_of(name: &str) -> Value {
    json!({ "done": name })
}
