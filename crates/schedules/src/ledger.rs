//! A tree of ceilings, and a ledger kept beside the budget.
//!
//! The ledger knows only what is seen from outside. It enters a reservation after the budget has granted it
//! and strikes it before the budget is told, and raises a limit before the budget does; so at no moment may
//! it hold more than a limit allows, but for what requests used beyond their reservations.

use std::sync::{Arc, Mutex as Notebook, MutexGuard, PoisonError};

use llm_do_core::Quantity;

use crate::budget::{Amount, Ask, Budget, BudgetRefusal, CeilingId, Ceilings, MIN_OUTPUT};
use crate::dice::{amount, number, one_in};
use crate::observed::Place;

/// A budget and its ledger.
pub(crate) struct Ledger {
    pub(crate) budget: Budget,
    accounts: Notebook<Vec<Account>>,
}

/// What is known from outside about one ceiling.
struct Account {
    id: CeilingId,
    parent: Option<Place>,
    limits: Ceilings,
    held: Amount,
    used: Amount,
    /// What requests used beyond their reservations: a limit is exceeded by this much at most.
    excess: Amount,
    tool_calls: u64,
}

impl Ledger {
    /// A tree of a few ceilings.
    pub(crate) fn any() -> Self {
        let limits = any_limits();
        let root = Account::new(Budget::ROOT, None, limits);
        let ledger = Self { budget: Budget::new(limits), accounts: Notebook::new(vec![root]) };
        for _ in 0..number(1..4) {
            ledger.add();
        }
        ledger
    }

    /// Adds a ceiling below any of those there are.
    pub(crate) fn add(&self) -> Place {
        let (parent, limits) = (self.any_place(), any_limits());
        let id = self.budget.add(self.id(parent), "somebody".to_owned(), limits);
        let mut accounts = self.accounts();
        accounts.push(Account::new(id, Some(parent), limits));
        accounts.len() - 1
    }

    fn accounts(&self) -> MutexGuard<'_, Vec<Account>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn any_place(&self) -> Place {
        let places = self.accounts().len();
        number(0..places)
    }

    pub(crate) fn id(&self, place: Place) -> CeilingId {
        self.accounts()[place].id
    }

    /// The ceilings from a place up to the root.
    pub(crate) fn path(&self, place: Place) -> Vec<Place> {
        let accounts = self.accounts();
        std::iter::successors(Some(place), |place| accounts[*place].parent).collect()
    }

    /// The ceilings of a path that limit requests.
    pub(crate) fn limited(&self, place: Place) -> Vec<Place> {
        let path = self.path(place);
        let accounts = self.accounts();
        path.into_iter()
            .filter(|place| accounts[*place].limits.tokens.or(accounts[*place].limits.cost).is_some())
            .collect()
    }

    /// Enters a reservation that was granted: it must fit.
    pub(crate) fn hold(&self, place: Place, reserved: Amount) {
        self.change(place, |account| {
            account.held = sum(account.held, reserved);
            account.check();
        });
    }

    /// Notes that a request is about to report more than it reserved.
    pub(crate) fn exceed(&self, place: Place, excess: Amount) {
        self.change(place, |account| account.excess = sum(account.excess, excess));
    }

    /// Strikes a reservation whose request used this much.
    pub(crate) fn strike(&self, place: Place, reserved: Amount, used: Amount) {
        self.change(place, |account| {
            account.held.tokens -= reserved.tokens;
            account.held.cost -= reserved.cost;
            account.used = sum(account.used, used);
        });
    }

    /// Enters a tool call that was counted.
    pub(crate) fn count_tool_call(&self, place: Place) {
        self.change(place, |account| {
            account.tool_calls += 1;
            account.check();
        });
    }

    /// Raises a limit.
    pub(crate) fn raise(&self, place: Place, what: Quantity, by: u64) {
        let mut accounts = self.accounts();
        let limit = accounts[place].limit_of(what);
        *limit = limit.map(|limit| limit + by);
    }

    fn change(&self, place: Place, mut change: impl FnMut(&mut Account)) {
        let path = self.path(place);
        let mut accounts = self.accounts();
        for place in path {
            change(&mut accounts[place]);
        }
    }

    /// Checks that a refusal names a ceiling of the path and something that it limits.
    pub(crate) fn check_name(&self, place: Place, refusal: &BudgetRefusal) {
        let path = self.path(place);
        let mut accounts = self.accounts();
        let named = path.into_iter().find(|place| accounts[*place].id == refusal.ceiling);
        let account = &mut accounts[named.expect("the ceiling is on the path")];
        assert!(account.limit_of(refusal.exhausted.what).is_some(), "{refusal:?} is not limited");
    }

    /// Checks that a refusal names a ceiling that really had no room left.
    pub(crate) fn check_refusal(&self, place: Place, refusal: &BudgetRefusal) {
        self.check_name(place, refusal);
        let exhausted = &refusal.exhausted;
        assert!(exhausted.used + exhausted.needed > exhausted.limit, "{exhausted:?} leaves room");
        let accounts = self.accounts();
        let account = accounts.iter().find(|account| account.id == refusal.ceiling).expect("it was named");
        let used = match exhausted.what {
            Quantity::Tokens => account.used.tokens,
            Quantity::Cost => account.used.cost,
            // Calls are entered after they were counted.
            Quantity::ToolCalls | Quantity::Requests => u64::MAX,
        };
        assert!(exhausted.used <= used, "{exhausted:?}, but only {used} were ever used");
    }

    /// Checks that the budget and the ledger agree once nothing is in flight.
    pub(crate) fn check_end(&self) {
        let places = self.accounts().len();
        for place in 0..places {
            let path = self.path(place);
            let least = {
                let accounts = self.accounts();
                let least = |left: &dyn Fn(&Account) -> Option<u64>| {
                    path.iter().filter_map(|place| left(&accounts[*place])).min()
                };
                Ceilings {
                    tokens: least(&|account| {
                        Some(account.limits.tokens?.saturating_sub(account.used.tokens))
                    }),
                    cost: least(&|account| Some(account.limits.cost?.saturating_sub(account.used.cost))),
                    tool_calls: least(&|account| Some(account.limits.tool_calls? - account.tool_calls)),
                    requests: None,
                }
            };
            assert_eq!(self.budget.remaining(self.id(place)), least, "all is refunded at {place}");
        }
    }
}

impl Account {
    fn new(id: CeilingId, parent: Option<Place>, limits: Ceilings) -> Self {
        let (held, used, excess) = (Amount::default(), Amount::default(), Amount::default());
        Self { id, parent, limits, held, used, excess, tool_calls: 0 }
    }

    fn limit_of(&mut self, what: Quantity) -> &mut Option<u64> {
        match what {
            Quantity::Tokens => &mut self.limits.tokens,
            Quantity::Cost => &mut self.limits.cost,
            Quantity::ToolCalls => &mut self.limits.tool_calls,
            Quantity::Requests => &mut self.limits.requests,
        }
    }

    fn check(&self) {
        let within = |limit: Option<u64>, amount: u64| limit.is_none_or(|limit| amount <= limit);
        let total = sum(self.held, self.used);
        let expected = total.tokens.saturating_sub(self.excess.tokens);
        assert!(within(self.limits.tokens, expected), "{total:?} exceeds {:?}", self.limits);
        let expected = total.cost.saturating_sub(self.excess.cost);
        assert!(within(self.limits.cost, expected), "{total:?} exceeds {:?}", self.limits);
        assert!(within(self.limits.tool_calls, self.tool_calls), "calls exceed {:?}", self.limits);
    }
}

fn sum(a: Amount, b: Amount) -> Amount {
    Amount { tokens: a.tokens + b.tokens, cost: a.cost + b.cost }
}

fn any_limits() -> Ceilings {
    let perhaps = |range| (!one_in(3)).then(|| amount(range));
    Ceilings {
        tokens: perhaps(300..2_500),
        cost: perhaps(500..6_000),
        tool_calls: perhaps(1..4),
        requests: None,
    }
}

/// What a request of a scenario wants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Want {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

impl Want {
    pub(crate) fn any() -> Self {
        Self { input: amount(0..400), output: amount(1..1_200) }
    }

    pub(crate) fn ask(self) -> Ask {
        let price = move |_, output| self.price(output);
        Ask { input: self.input, output: self.output, allowance: 0, cost: Some(Arc::new(price)) }
    }

    fn price(self, output: u64) -> u64 {
        2 * self.input + 3 * output
    }

    /// What is reserved with so much output, which must be as much as is worth asking for.
    pub(crate) fn reserved(self, output: u64) -> Amount {
        assert!((MIN_OUTPUT.min(self.output)..=self.output).contains(&output), "{output} for {self:?}");
        Amount { tokens: self.input + output, cost: self.price(output) }
    }
}
