//! The state of one run: what its steps share.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use llm_do_core::{
    ApprovalMode, Approver, AttemptCost, CallInfo, CallOrigin, Context, Cost, EventBody, Halt, Key, Limits,
    ModelChoice, Money, Name, NoticeSink, ProjectChanges, Quantity, RunId, Settlement, UndeliveredNotice,
    Usage,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::budget::{Budget, CeilingId, Ceilings};
use crate::record::log::RunLog;
use crate::record::replay::{RecordedAttempt, Replay};
use crate::record::running_time::running_time;
use crate::record::store::GivenAnswer;
use crate::record::unknown::UnknownCall;
use crate::state::in_flight::InFlight;
use crate::state::instances::Instances;
use crate::state::live::{AgentState, LiveCall};
use crate::state::redaction::Redactor;
use crate::state::shared::Shared;
use crate::sync::Mutex;

/// Calls of tools and agents in a run that sets no limit.
pub const DEFAULT_TOOL_CALLS: u64 = 10_000;

/// Requests to models in a run that sets no limit.
pub const DEFAULT_REQUESTS: u64 = 1_000;

/// The state of one run.
pub(crate) struct RunState {
    pub(crate) id: RunId,
    pub(crate) shared: Arc<Shared>,
    pub(crate) options: RunSettings,
    pub(crate) log: Arc<RunLog>,
    pub(crate) budget: Budget,
    pub(crate) in_flight: InFlight,
    pub(crate) cancel: CancellationToken,
    /// The index of an earlier record, where the run goes on from one.
    pub(crate) replay: Option<Box<Replay>>,
    live: Mutex<HashMap<Key, Arc<LiveCall>>>,
    /// Why the run was cancelled, where it was not simply interrupted.
    cause: OnceLock<Halt>,
    /// The conversation of the agent that the run was started for.
    pub(crate) top: OnceLock<Arc<AgentState>>,
    /// Whether something had to ask and nobody could be asked.
    unasked: OnceLock<()>,
    /// Whether a read of a secret file was denied.
    secret_denied: OnceLock<()>,
    /// Whether recorded messages were used that differ from those that would be sent now.
    adopted: OnceLock<()>,
    /// Calls that had begun when the run was halted, and so have no outcome.
    interrupted: Mutex<HashSet<Key>>,
    /// The answers from elsewhere that were taken, by question and time: each is taken once.
    used_answers: Mutex<HashSet<(Key, Timestamp)>>,
}

/// What a run was started with, after defaults.
pub(crate) struct RunSettings {
    pub(crate) mode: ApprovalMode,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) model: Option<ModelChoice>,
    /// The model of the agent that is run, whatever it names itself.
    pub(crate) entry_model: Option<ModelChoice>,
    pub(crate) fallbacks: Vec<ModelChoice>,
    pub(crate) limits: Limits,
    pub(crate) context: Arc<Context>,
    /// The named values that were given to this run, for its record.
    pub(crate) own_context: BTreeMap<Name, Value>,
    /// The wall time after which it is stopped.
    pub(crate) timeout: Option<Duration>,
    /// How long a question may wait for its answer.
    pub(crate) answer_within: Option<Duration>,
    /// The conversation that the top agent continues.
    pub(crate) agent_state: Option<Arc<AgentState>>,
    /// The instances that a session keeps over its turns.
    pub(crate) instances: Option<Arc<Instances>>,
    /// The recorded session of which it is a turn.
    pub(crate) session: Option<RunId>,
    /// The agent in whose name the call is made.
    pub(crate) agent: Option<Name>,
    /// Why an approval is asked for, if the run only asks for one and calls nothing.
    pub(crate) reason: Option<String>,
    /// The limits that replaced those of the record.
    pub(crate) new_limits: Option<Limits>,
    /// What a person said about calls of which nobody knew whether they happened.
    pub(crate) settled: Vec<(UnknownCall, Settlement)>,
    /// What is different from the record that is continued.
    pub(crate) changes: ProjectChanges,
}

impl RunState {
    pub(crate) fn new(
        id: RunId,
        shared: Arc<Shared>,
        options: RunSettings,
        log: Arc<RunLog>,
        replay: Option<Box<Replay>>,
        cancel: CancellationToken,
    ) -> Self {
        let in_flight = InFlight::new(&options.limits);
        let budget = Budget::new(with_defaults(ceilings(&options.limits)));
        Self {
            id,
            shared,
            options,
            log,
            budget,
            in_flight,
            cancel,
            replay,
            live: Mutex::default(),
            cause: OnceLock::new(),
            top: OnceLock::new(),
            unasked: OnceLock::new(),
            secret_denied: OnceLock::new(),
            adopted: OnceLock::new(),
            interrupted: Mutex::default(),
            used_answers: Mutex::default(),
        }
    }

    /// The live call of a key. Steps are performed only inside live calls.
    pub(crate) fn live(&self, key: &Key) -> Result<Arc<LiveCall>, Halt> {
        self.live
            .lock()
            .get(key)
            .cloned()
            .ok_or_else(|| Halt::Record(format!("the call `{key}` is not running here")))
    }

    /// Registers a call for as long as the guard lives.
    pub(crate) fn register(self: &Arc<Self>, call: Arc<LiveCall>) -> Registered {
        self.live.lock().insert(call.info.id.clone(), call.clone());
        Registered { run: self.clone(), call }
    }

    pub(crate) fn note(&self, call: &LiveCall, key: &Key, body: EventBody) {
        self.log.note(&call.info, key, body);
    }

    pub(crate) fn notice(&self, call: &Arc<CallInfo>, text: String) {
        let text = self.shared.redactor().text(text);
        self.log.note(call, &call.id, EventBody::Notice { text });
    }

    /// Returns a way to give notices in the name of a call, also after it has ended.
    pub(crate) fn notices(&self, call: &Arc<CallInfo>) -> NoticeSink {
        let (log, call, known) = (Arc::downgrade(&self.log), call.clone(), self.shared.known_secrets.clone());
        NoticeSink::new(move |text| {
            let text = Redactor::new(&known).text(text);
            match log.upgrade() {
                Some(log) => log.note_notice(&call, text),
                None => Err(UndeliveredNotice(text)),
            }
        })
    }

    /// Returns a way to give notices in the name of the run.
    pub(crate) fn run_notices(&self) -> NoticeSink {
        self.live(&Key::root()).map_or_else(|_| NoticeSink::none(), |root| self.notices(&root.info))
    }

    /// Cancels the run for a reason.
    pub(crate) fn halt(&self, cause: Halt) {
        let _ = self.cause.set(cause);
        self.cancel.cancel();
    }

    /// Cancels one call, unless it has ended; says whether it is cancelled.
    pub(crate) fn cancel_call(&self, key: &Key) -> bool {
        let Ok(call) = self.live(key) else { return false };
        if call.parent.is_none() || call.is_top() {
            self.cancel.cancel();
            return true;
        }
        let is_cancelled = call.cancel_state.cancel();
        if is_cancelled {
            call.cancel.cancel();
        }
        is_cancelled
    }

    /// Names the reason behind an interruption.
    pub(crate) fn cause_of(&self, halt: Halt) -> Halt {
        match halt {
            Halt::Interrupted => self.cause.get().cloned().unwrap_or(Halt::Interrupted),
            other => other,
        }
    }

    /// Notes a call that had begun when the run was halted.
    pub(crate) fn mark_interrupted(&self, key: &Key) {
        self.interrupted.lock().insert(key.clone());
    }

    /// Returns whether a call had begun when the run was halted.
    pub(crate) fn was_interrupted(&self, key: &Key) -> bool {
        self.interrupted.lock().contains(key)
    }

    /// Notes that an answer from elsewhere was taken.
    pub(crate) fn mark_used(&self, given: &GivenAnswer) {
        self.used_answers.lock().insert((given.question.clone(), given.given));
    }

    /// Returns whether an answer from elsewhere was taken.
    pub(crate) fn was_used(&self, given: &GivenAnswer) -> bool {
        self.used_answers.lock().contains(&(given.question.clone(), given.given))
    }

    pub(crate) fn mark_unasked(&self) {
        let _ = self.unasked.set(());
    }

    /// Remembers that a read of a secret file was denied; returns whether it is the first one.
    pub(crate) fn mark_secret_denied(&self) -> bool {
        self.secret_denied.set(()).is_ok()
    }

    /// Remembers that recorded messages differ from those that would be sent now; returns whether it is the first time.
    pub(crate) fn mark_adopted(&self) -> bool {
        self.adopted.set(()).is_ok()
    }

    pub(crate) fn had_nobody_to_ask(&self) -> bool {
        self.unasked.get().is_some()
    }

    /// Adds the cost to a usage, where the price is known.
    pub(crate) fn priced(&self, model: &str, mut usage: Usage) -> Usage {
        match self.shared.prices.price(model, &usage) {
            Some(money) => usage.cost.known = money,
            None => usage.cost.unpriced = usage.requests,
        }
        usage
    }

    /// Adds the cost to the usage of an answer. One that reports no tokens is not free, but of unknown cost.
    pub(crate) fn priced_answer(&self, model: &str, usage: Usage) -> Usage {
        if usage.tokens() > 0 || self.is_free(model) {
            return self.priced(model, usage);
        }
        Usage { cost: Cost { known: Money(0), unpriced: usage.requests.max(1) }, ..usage }
    }

    /// Adds the price to the cost of an attempt that failed.
    pub(crate) fn priced_cost(&self, model: &str, cost: AttemptCost) -> AttemptCost {
        match cost {
            AttemptCost::Unknown(reported) => {
                let reported = reported.as_deref().copied().unwrap_or_default();
                AttemptCost::Unknown(Some(Box::new(self.priced_at_least(model, reported))))
            }
            reported => reported.map(|usage| self.priced(model, usage)),
        }
    }

    /// Adds the cost to the usage of an attempt that may have been charged for more than was reported.
    pub(crate) fn priced_at_least(&self, model: &str, reported: Usage) -> Usage {
        let requests = reported.requests.max(1);
        let mut usage = self.priced_answer(model, Usage { requests, ..reported });
        if !self.is_free(model) {
            usage.cost.unpriced = requests;
        }
        usage
    }

    fn is_free(&self, model: &str) -> bool {
        let much = Usage { requests: 1, input: 1_000_000, output: 1_000_000, ..Usage::default() };
        self.shared.prices.price(model, &much) == Some(Money(0))
    }

    /// Adds a ceiling for a call that has limits of its own, with what a person had added to them before this process.
    pub(crate) fn ceiling_for(
        &self,
        parent: CeilingId,
        owner: &str,
        call: &Key,
        limits: &Limits,
    ) -> CeilingId {
        let ceilings = ceilings(limits);
        if ceilings.is_unlimited() {
            return parent;
        }
        let ceiling = self.budget.add(parent, format!("agent `{owner}`"), ceilings);
        let extensions = self.replay.iter().flat_map(|replay| replay.extensions_of(call));
        extensions.for_each(|(what, by)| self.budget.extend(ceiling, *what, *by));
        ceiling
    }

    /// Returns whether a session keeps the instances of this call.
    pub(crate) fn keeps_instances(&self, call: &LiveCall) -> bool {
        call.is_top() && self.options.instances.is_some()
    }

    /// Books what a finished call of a resumed run had used: it is not entered again.
    pub(crate) fn book_finished(&self, caller: &LiveCall, key: &Key) {
        let Some(replay) = &self.replay else { return };
        for attempt in replay.attempts_below(key) {
            self.book_attempt(caller, caller.frame().ceiling, attempt);
        }
        self.budget.book_tool_calls(caller.frame().ceiling, replay.calls_below(key));
    }

    /// Counts a call whose decision is read back: it was made before this process.
    pub(crate) fn book_call(&self, call: &LiveCall) {
        if call.origin != CallOrigin::Embedder {
            self.budget.book_tool_calls(call.callers_frame().ceiling, 1);
        }
    }

    /// Lets the stopwatch of a call go on where it was when an earlier process broke off.
    pub(crate) fn restore_running_time(&self, call: &LiveCall) {
        let is_entered_again = self.replay.as_ref().is_some_and(|replay| replay.was_started(&call.info.id));
        if let Some(watch) = call.watch.as_ref().filter(|_| is_entered_again && call.time_limit.is_some()) {
            watch.advance(running_time(&self.log.events(), &call.info.id));
        }
    }

    /// Books what a call of a resumed run had used before.
    pub(crate) fn book_earlier(&self, call: &LiveCall, at: CeilingId) {
        let Some(replay) = &self.replay else { return };
        for attempt in replay.attempts_of(&call.info.id) {
            self.book_attempt(call, at, attempt);
        }
    }

    fn book_attempt(&self, call: &LiveCall, at: CeilingId, attempt: &RecordedAttempt) {
        let usage = match &attempt.cost {
            AttemptCost::Unknown(None) => self.priced_at_least(&attempt.model, Usage::default()),
            cost => cost.counted(),
        };
        call.add_usage(&attempt.model, usage);
        self.budget.book(at, attempt.charge());
        self.budget.book_requests(at, usage.requests);
    }
}

/// Adds to a limit what a person added. What is not limited stays so.
pub(crate) fn extend(limits: &mut Limits, what: Quantity, by: u64) {
    let more = |limit: Option<u64>| limit.map(|limit| limit.saturating_add(by));
    match what {
        Quantity::Tokens => limits.tokens = more(limits.tokens),
        Quantity::Cost => limits.cost = more(limits.cost.map(|cost| cost.0)).map(Money),
        Quantity::ToolCalls => limits.tool_calls = more(limits.tool_calls.or(Some(DEFAULT_TOOL_CALLS))),
        Quantity::Requests => limits.requests = more(limits.requests.or(Some(DEFAULT_REQUESTS))),
    }
}

fn ceilings(limits: &Limits) -> Ceilings {
    Ceilings {
        tokens: limits.tokens,
        cost: limits.cost.map(|money| money.0),
        tool_calls: limits.tool_calls,
        requests: limits.requests,
    }
}

/// Adds the limits that hold for a run that sets none: they stop a model that calls or forks without end.
fn with_defaults(limits: Ceilings) -> Ceilings {
    Ceilings {
        tool_calls: limits.tool_calls.or(Some(DEFAULT_TOOL_CALLS)),
        requests: limits.requests.or(Some(DEFAULT_REQUESTS)),
        ..limits
    }
}

/// Keeps a call registered.
pub(crate) struct Registered {
    run: Arc<RunState>,
    pub(crate) call: Arc<LiveCall>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.run.live.lock().remove(&self.call.info.id);
    }
}
