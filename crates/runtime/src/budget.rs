//! Budgets: ceilings over subtrees of a run, charged before a request is sent.
//!
//! A request is charged to every ceiling from its call up to the root, under one lock. Only a request in
//! flight holds a reservation, never a waiting parent and never an approval, so waiting for a refund
//! cannot deadlock. Who waits is served first come, first served.
//!
//! This module does not ask a person for more (see [`crate::extension`]) and does not know prices.

use std::collections::VecDeque;
use std::sync::Arc;

use llm_do_core::{Exhausted, Quantity};
use tokio::sync::oneshot;

use crate::sync::Mutex;

/// The fewest output tokens worth asking for.
pub(crate) const LEAST_OUTPUT: u64 = 256;

/// The ceilings of one run.
#[derive(Debug)]
pub(crate) struct Budget {
    state: Mutex<State>,
}

/// One ceiling of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CeilingId(usize);

/// The limits of one ceiling; `None` means unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ceilings {
    pub(crate) tokens: Option<u64>,
    pub(crate) cost: Option<u64>,
    pub(crate) tool_calls: Option<u64>,
}

/// What a request costs with so many output tokens.
pub(crate) type Pricing = Arc<dyn Fn(u64) -> u64 + Send + Sync>;

/// What a request may use at most.
#[derive(Clone)]
pub(crate) struct Ask {
    /// Upper bound of the input in tokens.
    pub(crate) input: u64,
    /// Output tokens that are wanted; fewer may be granted.
    pub(crate) output: u64,
    /// What it costs, where the price is known.
    pub(crate) cost: Option<Pricing>,
}

/// An amount charged to a ceiling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) tokens: u64,
    pub(crate) cost: u64,
}

/// A refusal: which ceiling, and how far it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) ceiling: CeilingId,
    pub(crate) exhausted: Exhausted,
}

#[derive(Debug)]
struct State {
    ceilings: Vec<Ceiling>,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Ceiling {
    parent: Option<CeilingId>,
    owner: String,
    limits: Ceilings,
    used: Amount,
    reserved: Amount,
    tool_calls: u64,
    /// A request used more than it had reserved: the bounds cannot be trusted, so nothing further starts.
    overrun: bool,
}

struct Waiter {
    at: CeilingId,
    ask: Ask,
    answer: oneshot::Sender<Result<Charge, Refusal>>,
}

impl std::fmt::Debug for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiter").field("at", &self.at).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy)]
struct Charge {
    output: u64,
    amount: Amount,
}

enum Verdict {
    Fits(Charge),
    Wait,
    Refuse(Refusal),
}

impl Budget {
    /// A budget whose root ceiling belongs to the run.
    pub(crate) fn new(limits: Ceilings) -> Self {
        let root = Ceiling::new(None, "the run".to_owned(), limits);
        Self { state: Mutex::new(State { ceilings: vec![root], waiting: VecDeque::new() }) }
    }

    /// The ceiling of the whole run.
    pub(crate) const ROOT: CeilingId = CeilingId(0);

    /// Adds a ceiling below another one.
    pub(crate) fn add(&self, parent: CeilingId, owner: String, limits: Ceilings) -> CeilingId {
        let mut state = self.state.lock();
        state.ceilings.push(Ceiling::new(Some(parent), owner, limits));
        CeilingId(state.ceilings.len() - 1)
    }

    /// Reserves what a request may use; waits for refunds where they could suffice.
    pub(crate) async fn reserve(&self, at: CeilingId, ask: Ask) -> Result<Reservation<'_>, Refusal> {
        let answer = {
            let mut state = self.state.lock();
            match if state.waiting.is_empty() {
                state.judge(at, &ask)
            } else {
                state.judge_behind_queue(at, &ask)
            } {
                Verdict::Fits(charge) => {
                    state.reserve(at, charge.amount);
                    return Ok(Reservation::new(self, at, charge));
                }
                Verdict::Refuse(refusal) => return Err(refusal),
                Verdict::Wait => {
                    let (sender, answer) = oneshot::channel();
                    state.waiting.push_back(Waiter { at, ask, answer: sender });
                    answer
                }
            }
        };
        let waiting = Waiting { budget: self, at, answer };
        waiting.charge().await.map(|charge| Reservation::new(self, at, charge))
    }

    /// Counts one tool call against every ceiling on the path.
    pub(crate) fn count_tool_call(&self, at: CeilingId) -> Result<(), Refusal> {
        let mut state = self.state.lock();
        if let Some(refusal) = state.path(at).find_map(|id| state.ceilings[id.0].tool_call_refusal(id)) {
            return Err(refusal);
        }
        state.each_on_path(at, |ceiling| ceiling.tool_calls += 1);
        Ok(())
    }

    /// Raises a limit, as a person allowed.
    pub(crate) fn extend(&self, at: CeilingId, what: Quantity, by: u64) {
        let mut state = self.state.lock();
        let ceiling = &mut state.ceilings[at.0];
        ceiling.overrun = false;
        if let Some(limit) = ceiling.limits.of_mut(what) {
            *limit = limit.saturating_add(by);
        }
        state.serve_waiting();
    }

    /// Books usage that happened before this process: a resumed run has spent what it has spent.
    pub(crate) fn book(&self, at: CeilingId, amount: Amount) {
        self.state.lock().each_on_path(at, |ceiling| ceiling.used.add(amount));
    }

    /// Returns what is left on the path: the least of all ceilings, per quantity.
    pub(crate) fn remaining(&self, at: CeilingId) -> Ceilings {
        let state = self.state.lock();
        state.path(at).fold(Ceilings::default(), |least, id| least.min(&state.ceilings[id.0].left()))
    }

    /// Says whether any ceiling on the path limits tokens or cost.
    pub(crate) fn limits_requests(&self, at: CeilingId) -> bool {
        let state = self.state.lock();
        state
            .path(at)
            .any(|id| state.ceilings[id.0].limits.tokens.or(state.ceilings[id.0].limits.cost).is_some())
    }

    /// Says whether any ceiling on the path limits cost.
    pub(crate) fn limits_cost(&self, at: CeilingId) -> bool {
        let state = self.state.lock();
        state.path(at).any(|id| state.ceilings[id.0].limits.cost.is_some())
    }

    fn settle(&self, at: CeilingId, reserved: Amount, used: Amount) {
        let mut state = self.state.lock();
        let overrun = used.tokens > reserved.tokens || used.cost > reserved.cost;
        state.each_on_path(at, |ceiling| {
            ceiling.reserved.subtract(reserved);
            ceiling.used.add(used);
            ceiling.overrun |= overrun && (ceiling.limits.tokens.is_some() || ceiling.limits.cost.is_some());
        });
        state.serve_waiting();
    }
}

impl State {
    fn path(&self, at: CeilingId) -> impl Iterator<Item = CeilingId> + use<'_> {
        std::iter::successors(Some(at), |id| self.ceilings[id.0].parent)
    }

    fn each_on_path(&mut self, at: CeilingId, mut change: impl FnMut(&mut Ceiling)) {
        let mut next = Some(at);
        while let Some(id) = next {
            let ceiling = &mut self.ceilings[id.0];
            change(ceiling);
            next = ceiling.parent;
        }
    }

    fn reserve(&mut self, at: CeilingId, amount: Amount) {
        self.each_on_path(at, |ceiling| ceiling.reserved.add(amount));
    }

    /// Decides about a request as the budget stands.
    fn judge(&self, at: CeilingId, ask: &Ask) -> Verdict {
        match self.fit(at, ask, Ceiling::free) {
            Ok(charge) => Verdict::Fits(charge),
            // Were everything in flight refunded, would the request fit? Then it is worth waiting.
            Err(_) if self.fit(at, ask, Ceiling::left_amounts).is_ok() => Verdict::Wait,
            Err(refusal) => Verdict::Refuse(refusal),
        }
    }

    /// Decides about a request that comes while others wait: it may be refused at once, but never served first.
    fn judge_behind_queue(&self, at: CeilingId, ask: &Ask) -> Verdict {
        match self.judge(at, ask) {
            Verdict::Refuse(refusal) => Verdict::Refuse(refusal),
            Verdict::Fits(_) | Verdict::Wait => Verdict::Wait,
        }
    }

    /// Finds the most output that fits under every ceiling of the path.
    fn fit(
        &self,
        at: CeilingId,
        ask: &Ask,
        available: impl Fn(&Ceiling) -> (Option<u64>, Option<u64>),
    ) -> Result<Charge, Refusal> {
        let mut output = ask.output;
        for id in self.path(at) {
            let ceiling = &self.ceilings[id.0];
            let (tokens, cost) = available(ceiling);
            let least = LEAST_OUTPUT.min(ask.output);
            if ceiling.overrun {
                return Err(ceiling.refusal(id, Quantity::Tokens, ask.input + least));
            }
            if let Some(tokens) = tokens {
                output = output.min(tokens.saturating_sub(ask.input));
                if ask.input + least > tokens {
                    return Err(ceiling.refusal(id, Quantity::Tokens, ask.input + least));
                }
            }
            if let (Some(cost), Some(price)) = (cost, &ask.cost) {
                output = most_output_for(output, cost, &**price);
                if price(least) > cost {
                    return Err(ceiling.refusal(id, Quantity::Cost, price(least)));
                }
            }
        }
        let cost = ask.cost.as_ref().map_or(0, |price| price(output));
        Ok(Charge { output, amount: Amount { tokens: ask.input + output, cost } })
    }

    /// Serves who waits, in order, until one must go on waiting.
    fn serve_waiting(&mut self) {
        while let Some(waiter) = self.waiting.pop_front() {
            if waiter.answer.is_closed() {
                continue;
            }
            match self.judge(waiter.at, &waiter.ask) {
                Verdict::Wait => return self.waiting.push_front(waiter),
                Verdict::Refuse(refusal) => drop(waiter.answer.send(Err(refusal))),
                Verdict::Fits(charge) => {
                    if waiter.answer.send(Ok(charge)).is_ok() {
                        self.reserve(waiter.at, charge.amount);
                    }
                }
            }
        }
    }
}

/// The most output tokens, up to a wish, whose cost does not exceed the available amount.
fn most_output_for(wish: u64, available: u64, price: &dyn Fn(u64) -> u64) -> u64 {
    if price(wish) <= available {
        return wish;
    }
    let (mut fits, mut exceeds) = (0, wish);
    while exceeds - fits > 1 {
        let middle = fits + (exceeds - fits) / 2;
        if price(middle) <= available { fits = middle } else { exceeds = middle }
    }
    fits
}

impl Ceiling {
    fn new(parent: Option<CeilingId>, owner: String, limits: Ceilings) -> Self {
        let (used, reserved) = (Amount::default(), Amount::default());
        Self { parent, owner, limits, used, reserved, tool_calls: 0, overrun: false }
    }

    /// What neither is used nor reserved.
    fn free(&self) -> (Option<u64>, Option<u64>) {
        let (tokens, cost) = self.left_amounts();
        let less = |left: Option<u64>, reserved: u64| left.map(|left| left.saturating_sub(reserved));
        (less(tokens, self.reserved.tokens), less(cost, self.reserved.cost))
    }

    /// What is not used, were everything in flight refunded.
    fn left_amounts(&self) -> (Option<u64>, Option<u64>) {
        let left = |limit: Option<u64>, used: u64| limit.map(|limit| limit.saturating_sub(used));
        (left(self.limits.tokens, self.used.tokens), left(self.limits.cost, self.used.cost))
    }

    fn left(&self) -> Ceilings {
        let (tokens, cost) = self.free();
        let tool_calls = self.limits.tool_calls.map(|limit| limit.saturating_sub(self.tool_calls));
        Ceilings { tokens, cost, tool_calls }
    }

    fn refusal(&self, id: CeilingId, what: Quantity, needed: u64) -> Refusal {
        let used = match what {
            Quantity::Tokens => self.used.tokens,
            Quantity::Cost => self.used.cost,
            Quantity::ToolCalls => self.tool_calls,
        };
        let limit = self.limits.of(what).unwrap_or_default();
        Refusal { ceiling: id, exhausted: Exhausted { what, owner: self.owner.clone(), limit, used, needed } }
    }

    fn tool_call_refusal(&self, id: CeilingId) -> Option<Refusal> {
        let limit = self.limits.tool_calls?;
        (self.tool_calls >= limit).then(|| self.refusal(id, Quantity::ToolCalls, 1))
    }
}

impl Ceilings {
    fn of(&self, what: Quantity) -> Option<u64> {
        match what {
            Quantity::Tokens => self.tokens,
            Quantity::Cost => self.cost,
            Quantity::ToolCalls => self.tool_calls,
        }
    }

    fn of_mut(&mut self, what: Quantity) -> Option<&mut u64> {
        match what {
            Quantity::Tokens => self.tokens.as_mut(),
            Quantity::Cost => self.cost.as_mut(),
            Quantity::ToolCalls => self.tool_calls.as_mut(),
        }
    }

    fn min(self, other: &Self) -> Self {
        let least = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self {
            tokens: least(self.tokens, other.tokens),
            cost: least(self.cost, other.cost),
            tool_calls: least(self.tool_calls, other.tool_calls),
        }
    }

    /// Says whether nothing is limited.
    pub(crate) fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

impl Amount {
    fn add(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost = self.cost.saturating_add(other.cost);
    }

    fn subtract(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_sub(other.tokens);
        self.cost = self.cost.saturating_sub(other.cost);
    }
}

/// A request that waits for refunds. Dropped after it was served but before it noticed, it gives the
/// reservation back.
struct Waiting<'a> {
    budget: &'a Budget,
    at: CeilingId,
    answer: oneshot::Receiver<Result<Charge, Refusal>>,
}

impl Waiting<'_> {
    async fn charge(mut self) -> Result<Charge, Refusal> {
        match (&mut self.answer).await {
            Ok(answer) => answer,
            // The sender lives in the budget, which this borrows; it is never dropped unanswered.
            Err(_closed) => {
                Err(self.budget.state.lock().ceilings[self.at.0].refusal(self.at, Quantity::Tokens, 0))
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.answer.close();
        if let Ok(Ok(charge)) = self.answer.try_recv() {
            self.budget.settle(self.at, charge.amount, Amount::default());
        }
    }
}

/// What one request in flight may use. Dropped without a report, it is booked in full.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    budget: &'a Budget,
    at: CeilingId,
    charge: Charge,
    settled: bool,
}

impl<'a> Reservation<'a> {
    fn new(budget: &'a Budget, at: CeilingId, charge: Charge) -> Self {
        Self { budget, at, charge, settled: false }
    }

    /// The output tokens that the request may ask for.
    pub(crate) fn output(&self) -> u64 {
        self.charge.output
    }

    /// Books what was used and refunds the rest.
    pub(crate) fn settle(mut self, used: Amount) {
        self.settled = true;
        self.budget.settle(self.at, self.charge.amount, used);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if !self.settled {
            self.budget.settle(self.at, self.charge.amount, self.charge.amount);
        }
    }
}
