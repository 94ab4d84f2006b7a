//! Budgets: ceilings over subtrees of a run, charged before a request is sent.
//!
//! A request is charged to every ceiling from its call up to the root, under one lock. Only a request in
//! flight holds a reservation, never a waiting parent and never an approval, so waiting for a refund
//! cannot deadlock. Who waits is served first come, first served.
//!
//! This module does not ask a person for more (see [`crate::extension`]) and does not know prices.

use std::collections::VecDeque;
use std::sync::Arc;

use llm_do_core::{Exhausted, Quantity, Usage};

use crate::sync::{Mutex, oneshot};

/// The fewest output tokens worth asking for.
pub(crate) const MIN_OUTPUT: u64 = 256;

/// The ceilings of one run.
#[derive(Debug)]
pub(crate) struct Budget {
    state: Mutex<BudgetState>,
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
    pub(crate) requests: Option<u64>,
}

/// What a request costs that reads so many tokens of its allowance and writes so many tokens of output.
pub(crate) type Pricing = Arc<dyn Fn(u64, u64) -> u64 + Send + Sync>;

/// What a request may use at most.
#[derive(Clone)]
pub(crate) struct Ask {
    /// Upper bound of the input in tokens.
    pub(crate) input: u64,
    /// Output tokens that are wanted; fewer may be granted.
    pub(crate) output: u64,
    /// Input tokens that the provider may add by itself: what its server-side tools read. They are reserved as far as
    /// there is room for them; a request is never refused because of them.
    pub(crate) allowance: u64,
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
pub(crate) struct BudgetRefusal {
    pub(crate) ceiling: CeilingId,
    pub(crate) exhausted: Exhausted,
}

#[derive(Debug)]
struct BudgetState {
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
    requests: u64,
}

struct Waiter {
    at: CeilingId,
    ask: Ask,
    answer: oneshot::Sender<Result<Charge, BudgetRefusal>>,
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
    Refuse(BudgetRefusal),
}

impl Budget {
    /// A budget whose root ceiling belongs to the run.
    pub(crate) fn new(limits: Ceilings) -> Self {
        let root = Ceiling::new(None, Exhausted::THE_RUN.to_owned(), limits);
        Self { state: Mutex::new(BudgetState { ceilings: vec![root], waiting: VecDeque::new() }) }
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
    pub(crate) async fn reserve(&self, at: CeilingId, ask: Ask) -> Result<Reservation<'_>, BudgetRefusal> {
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
    pub(crate) fn count_tool_call(&self, at: CeilingId) -> Result<(), BudgetRefusal> {
        self.count(at, Quantity::ToolCalls, |ceiling| &mut ceiling.tool_calls)
    }

    /// Counts one model request against every ceiling on the path.
    pub(crate) fn count_request(&self, at: CeilingId) -> Result<(), BudgetRefusal> {
        self.count(at, Quantity::Requests, |ceiling| &mut ceiling.requests)
    }

    fn count(
        &self,
        at: CeilingId,
        what: Quantity,
        counter: fn(&mut Ceiling) -> &mut u64,
    ) -> Result<(), BudgetRefusal> {
        let mut state = self.state.lock();
        if let Some(refusal) = state.path(at).find_map(|id| state.ceilings[id.0].count_refusal(id, what)) {
            return Err(refusal);
        }
        state.each_on_path(at, |ceiling| *counter(ceiling) += 1);
        Ok(())
    }

    /// Raises a limit, as a person allowed.
    pub(crate) fn extend(&self, at: CeilingId, what: Quantity, by: u64) {
        let mut state = self.state.lock();
        if let Some(limit) = state.ceilings[at.0].limits.get_mut(what) {
            *limit = limit.saturating_add(by);
        }
        state.serve_waiting();
    }

    /// Books usage that happened before this process: a resumed run has spent what it has spent.
    pub(crate) fn book(&self, at: CeilingId, amount: Amount) {
        self.state.lock().each_on_path(at, |ceiling| ceiling.used.add(amount));
    }

    /// Books tool calls that were made before this process.
    pub(crate) fn book_tool_calls(&self, at: CeilingId, calls: u64) {
        self.state.lock().each_on_path(at, |ceiling| ceiling.tool_calls += calls);
    }

    /// Books model requests that were made before this process.
    pub(crate) fn book_requests(&self, at: CeilingId, requests: u64) {
        self.state.lock().each_on_path(at, |ceiling| ceiling.requests += requests);
    }

    /// Returns what is left on the path: the least of all ceilings, per quantity.
    pub(crate) fn remaining(&self, at: CeilingId) -> Ceilings {
        let state = self.state.lock();
        state.path(at).fold(Ceilings::default(), |least, id| least.min(&state.ceilings[id.0].left()))
    }

    /// Returns whether any ceiling on the path limits tokens or cost.
    pub(crate) fn limits_requests(&self, at: CeilingId) -> bool {
        let state = self.state.lock();
        state
            .path(at)
            .any(|id| state.ceilings[id.0].limits.tokens.or(state.ceilings[id.0].limits.cost).is_some())
    }

    /// Returns whether any ceiling on the path limits cost.
    pub(crate) fn limits_cost(&self, at: CeilingId) -> bool {
        let state = self.state.lock();
        state.path(at).any(|id| state.ceilings[id.0].limits.cost.is_some())
    }

    /// Books what was used, which may be more than was reserved: what is left is judged by what was really used.
    fn settle(&self, at: CeilingId, reserved: Amount, used: Amount) {
        let mut state = self.state.lock();
        state.each_on_path(at, |ceiling| {
            ceiling.reserved.subtract(reserved);
            ceiling.used.add(used);
        });
        state.serve_waiting();
    }
}

impl BudgetState {
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

    /// Decides about a request by what is left of the budget.
    fn judge(&self, at: CeilingId, ask: &Ask) -> Verdict {
        if let Ok(charge) = self.fit(at, ask, Ceiling::free) {
            return Verdict::Fits(charge);
        }
        // Were everything in flight refunded, would the request fit? Then it is worth waiting. If not, the
        // ceiling to name is the one that is used up, not one that is only reserved.
        match self.fit(at, ask, Ceiling::left_amounts) {
            Ok(_) => Verdict::Wait,
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
    ) -> Result<Charge, BudgetRefusal> {
        let mut output = ask.output;
        let least = MIN_OUTPUT.min(ask.output);
        let needed = ask.input.saturating_add(least);
        for id in self.path(at) {
            let ceiling = &self.ceilings[id.0];
            let (tokens, cost) = available(ceiling);
            if let Some(tokens) = tokens {
                output = output.min(tokens.saturating_sub(ask.input));
                if needed > tokens {
                    return Err(ceiling.refusal(id, Quantity::Tokens, needed));
                }
            }
            if let (Some(cost), Some(price)) = (cost, &ask.cost) {
                output = largest(output, |output| price(0, output) <= cost);
                if price(0, least) > cost {
                    return Err(ceiling.refusal(id, Quantity::Cost, price(0, least)));
                }
            }
        }
        let allowance = self.allowance(at, ask, output, available);
        let cost = ask.cost.as_ref().map_or(0, |price| price(allowance, output));
        let tokens = ask.input.saturating_add(output).saturating_add(allowance);
        Ok(Charge { output, amount: Amount { tokens, cost } })
    }

    /// Finds how much of the allowance fits beside the input and the output.
    fn allowance(
        &self,
        at: CeilingId,
        ask: &Ask,
        output: u64,
        available: impl Fn(&Ceiling) -> (Option<u64>, Option<u64>),
    ) -> u64 {
        let wanted = ask.input.saturating_add(output);
        self.path(at).fold(ask.allowance, |allowance, id| {
            let (tokens, cost) = available(&self.ceilings[id.0]);
            let allowance = tokens.map_or(allowance, |tokens| allowance.min(tokens.saturating_sub(wanted)));
            match (cost, &ask.cost) {
                (Some(cost), Some(price)) => largest(allowance, |more| price(more, output) <= cost),
                _ => allowance,
            }
        })
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

/// Returns the largest number up to `wanted` that fits. Whatever is smaller than one that fits must fit too.
fn largest(wanted: u64, fits: impl Fn(u64) -> bool) -> u64 {
    if fits(wanted) {
        return wanted;
    }
    let (mut low, mut high) = (0, wanted);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

impl Ceiling {
    fn new(parent: Option<CeilingId>, owner: String, limits: Ceilings) -> Self {
        let (used, reserved) = (Amount::default(), Amount::default());
        Self { parent, owner, limits, used, reserved, tool_calls: 0, requests: 0 }
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
        let requests = self.limits.requests.map(|limit| limit.saturating_sub(self.requests));
        Ceilings { tokens, cost, tool_calls, requests }
    }

    fn refusal(&self, id: CeilingId, what: Quantity, needed: u64) -> BudgetRefusal {
        let used = self.used_of(what);
        let limit = self.limits.get(what).unwrap_or_default();
        BudgetRefusal {
            ceiling: id,
            exhausted: Exhausted { what, owner: self.owner.clone(), limit, used, needed },
        }
    }

    fn used_of(&self, what: Quantity) -> u64 {
        match what {
            Quantity::Tokens => self.used.tokens,
            Quantity::Cost => self.used.cost,
            Quantity::ToolCalls => self.tool_calls,
            Quantity::Requests => self.requests,
        }
    }

    fn count_refusal(&self, id: CeilingId, what: Quantity) -> Option<BudgetRefusal> {
        let limit = self.limits.get(what)?;
        (self.used_of(what) >= limit).then(|| self.refusal(id, what, 1))
    }
}

impl Ceilings {
    fn get(&self, what: Quantity) -> Option<u64> {
        match what {
            Quantity::Tokens => self.tokens,
            Quantity::Cost => self.cost,
            Quantity::ToolCalls => self.tool_calls,
            Quantity::Requests => self.requests,
        }
    }

    fn get_mut(&mut self, what: Quantity) -> Option<&mut u64> {
        match what {
            Quantity::Tokens => self.tokens.as_mut(),
            Quantity::Cost => self.cost.as_mut(),
            Quantity::ToolCalls => self.tool_calls.as_mut(),
            Quantity::Requests => self.requests.as_mut(),
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
            requests: least(self.requests, other.requests),
        }
    }

    /// Returns whether nothing is limited.
    pub(crate) fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

/// What a usage charges to a budget.
impl From<&Usage> for Amount {
    fn from(usage: &Usage) -> Self {
        Self { tokens: usage.tokens(), cost: usage.cost.known.0 }
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
/// reservation back; dropped earlier, it makes way for those behind it.
struct Waiting<'a> {
    budget: &'a Budget,
    at: CeilingId,
    answer: oneshot::Receiver<Result<Charge, BudgetRefusal>>,
}

impl Waiting<'_> {
    async fn charge(mut self) -> Result<Charge, BudgetRefusal> {
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
        match self.answer.try_recv() {
            Ok(Ok(charge)) => self.budget.settle(self.at, charge.amount, Amount::default()),
            Ok(Err(_)) | Err(_) => self.budget.state.lock().serve_waiting(),
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

    /// What is reserved.
    pub(crate) fn amount(&self) -> Amount {
        self.charge.amount
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use std::time::Duration;

    use llm_do_testing::Chance;
    use tokio::task::yield_now;

    use super::*;

    /// A budget, and beside it what can be seen from outside: reservations enter it after they are granted
    /// and leave it before they are refunded, so it never holds more than the budget does.
    struct Tree {
        budget: Budget,
        seen: Vec<Seen>,
    }

    #[derive(Default)]
    struct Seen {
        parent: Option<usize>,
        limits: Ceilings,
        tokens: AtomicU64,
        cost: AtomicU64,
    }

    impl Tree {
        fn any(chance: &mut Chance) -> Self {
            let root = Seen::any(None, chance);
            let mut tree = Self { budget: Budget::new(root.limits), seen: vec![root] };
            for _ in 0..chance.below_u64(6) {
                let parent = chance.below(tree.seen.len());
                let seen = Seen::any(Some(parent), chance);
                tree.budget.add(CeilingId(parent), String::new(), seen.limits);
                tree.seen.push(seen);
            }
            tree
        }

        fn path(&self, at: usize) -> impl Iterator<Item = &Seen> {
            std::iter::successors(Some(&self.seen[at]), |seen| Some(&self.seen[seen.parent?]))
        }

        /// Makes requests that use no more than they reserved; some give up waiting.
        async fn use_it(self: Arc<Self>, mut chance: Chance) {
            for _ in 0..=chance.below_u64(3) {
                let at = chance.below(self.seen.len());
                let (input, output) = (chance.below_u64(300), 1 + chance.below_u64(900));
                let allowance = chance.below_u64(3) * chance.below_u64(400);
                let cost: Pricing = Arc::new(move |more, output| input + more + 3 * output);
                let ask = Ask { input, output, allowance, cost: Some(cost) };
                let reserve = self.budget.reserve(CeilingId(at), ask);
                let impatient = chance.below_u64(4) == 0;
                let reserved = tokio::select! {
                    // Who gives up does so even if its turn has just come.
                    biased;
                    () = yields(1 + chance.below_u64(3)), if impatient => continue,
                    reserved = reserve => reserved,
                };
                let Ok(reservation) = reserved else { continue };
                let Amount { tokens, cost } = reservation.charge.amount;
                self.path(at).for_each(|seen| seen.enter(tokens, cost));
                yields(chance.below_u64(3)).await;
                let used = Amount { tokens: chance.below_u64(tokens + 1), cost: chance.below_u64(cost + 1) };
                self.path(at).for_each(|seen| seen.strike(tokens - used.tokens, cost - used.cost));
                reservation.settle(used);
            }
        }

        /// Everything that was not used is free again, and nobody waits.
        fn check_end(&self) {
            let state = self.budget.state.lock();
            assert!(state.waiting.is_empty());
            for (ceiling, seen) in state.ceilings.iter().zip(&self.seen) {
                let used = Amount { tokens: seen.tokens.load(SeqCst), cost: seen.cost.load(SeqCst) };
                assert_eq!((ceiling.reserved, ceiling.used), (Amount::default(), used));
            }
        }
    }

    impl Seen {
        fn any(parent: Option<usize>, chance: &mut Chance) -> Self {
            let mut perhaps = |most| (chance.below_u64(3) > 0).then(|| 256 + chance.below_u64(most));
            let limits = Ceilings { tokens: perhaps(4_000), cost: perhaps(9_000), ..Ceilings::default() };
            Self { parent, limits, ..Self::default() }
        }

        fn enter(&self, tokens: u64, cost: u64) {
            let tokens = tokens + self.tokens.fetch_add(tokens, SeqCst);
            let cost = cost + self.cost.fetch_add(cost, SeqCst);
            assert!(
                self.limits.tokens.is_none_or(|limit| tokens <= limit),
                "{tokens} tokens: {:?}",
                self.limits
            );
            assert!(
                self.limits.cost.is_none_or(|limit| cost <= limit),
                "a cost of {cost}: {:?}",
                self.limits
            );
        }

        fn strike(&self, tokens: u64, cost: u64) {
            self.tokens.fetch_sub(tokens, SeqCst);
            self.cost.fetch_sub(cost, SeqCst);
        }
    }

    async fn yields(times: u64) {
        for _ in 0..times {
            yield_now().await;
        }
    }

    async fn try_out(seed: u64) {
        let mut chance = Chance::new(seed);
        let tree = Arc::new(Tree::any(&mut chance));
        let tasks: Vec<_> = (0..2 + chance.below_u64(5))
            .map(|_| tokio::spawn(tree.clone().use_it(Chance::new(chance.below_u64(u64::MAX)))))
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        tree.check_end();
    }

    /// As many trees as `LLM_DO_BUDGET_TREES` says. A failure names the seed of its tree.
    #[test]
    fn a_budget_tree_never_overshoots_and_never_gets_stuck() {
        let trees = std::env::var("LLM_DO_BUDGET_TREES").map_or(10_000, |trees| trees.parse().unwrap());
        let executor =
            tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
        for seed in 0..trees {
            let tried = executor.block_on(async {
                tokio::spawn(tokio::time::timeout(Duration::from_secs(30), try_out(seed))).await
            });
            assert!(matches!(tried, Ok(Ok(()))), "tree {seed}: {tried:?}");
        }
    }
}
