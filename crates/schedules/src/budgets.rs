//! Scenarios of budgets: reservations, refunds, abandoned waits and overruns below shared ceilings.

use std::sync::Arc;

use futures::future::{Either, select};
use llm_do_core::Quantity;
use shuttle::future::{JoinHandle, block_on, spawn, yield_now};
use shuttle::sync::Barrier;

use crate::budget::{Amount, Ask, Budget, Ceilings};
use crate::dice::{amount, number, one_in, pause};
use crate::ledger::{Ledger, Want};
use crate::observed::{Book, Moment, Observed, Place, Reserved, Ticket};

/// Requests that use no more than they reserved, given up at any time; tool calls; extensions; new ceilings.
pub fn usage_stays_within_every_ceiling() {
    let house = House::any();
    run(&house, number(2..6), House::work);
    house.ledger.check_end();
    house.check_order();
}

/// As before, but some requests use more than they reserved: what they used is booked, and further requests are judged
/// by what is left.
pub fn overruns_are_booked() {
    let house = House::any();
    run(&house, number(2..6), House::overrun);
    house.check_order();
    house.ledger.check_end();
    house.recover();
}

/// A request waits behind one that gives up, for room that there is already.
pub fn giving_up_lets_others_go() {
    let limits = Ceilings { tokens: Some(1_000), ..Ceilings::default() };
    let budget = Arc::new(Budget::new(limits));
    let held = block_on(budget.reserve(Budget::ROOT, tokens(600))).expect("there is room");
    let request = |size| {
        let budget = budget.clone();
        spawn(async move { budget.reserve(Budget::ROOT, tokens(size)).await.map(drop) })
    };
    let (big, small) = (request(500), request(300));
    block_on(pause());
    big.abort();
    // Nothing is refunded before the small request is through.
    block_on(small).expect("it was not aborted").expect("there is room");
    held.settle(Amount::default());
    let _ = block_on(big);
}

/// Two requests wait for a refund or extension that suffices for both, and each goes on only with the other.
pub fn new_room_serves_all_who_fit() {
    let limits = Ceilings { tokens: Some(1_000), ..Ceilings::default() };
    let (budget, meeting) = (Arc::new(Budget::new(limits)), Arc::new(Barrier::new(2)));
    let held = block_on(budget.reserve(Budget::ROOT, tokens(900))).expect("there is room");
    let pair: Vec<JoinHandle<()>> = (0..2)
        .map(|_| {
            let (budget, meeting) = (budget.clone(), meeting.clone());
            spawn(async move {
                let _held = budget.reserve(Budget::ROOT, tokens(400)).await.expect("there is room");
                meeting.wait();
            })
        })
        .collect();
    block_on(pause());
    if one_in(2) {
        held.settle(Amount { tokens: 100, cost: 0 });
    } else {
        budget.extend(Budget::ROOT, Quantity::Tokens, 700);
    }
    for one in pair {
        block_on(one).expect("both have met");
    }
}

/// A request of exactly so many tokens.
fn tokens(input: u64) -> Ask {
    Ask { input, output: 0, allowance: 0, cost: None }
}

fn run<F>(house: &Arc<House>, tasks: usize, work: fn(Arc<House>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let tasks: Vec<JoinHandle<()>> = (0..tasks).map(|_| spawn(work(house.clone()))).collect();
    for task in tasks {
        block_on(task).expect("the task has ended");
    }
}

const QUANTITIES: [Quantity; 3] = [Quantity::Tokens, Quantity::Cost, Quantity::ToolCalls];

/// What the tasks of a scenario share.
struct House {
    ledger: Ledger,
    book: Arc<Book>,
}

impl House {
    fn any() -> Arc<Self> {
        Arc::new(Self { ledger: Ledger::any(), book: Arc::default() })
    }

    async fn work(self: Arc<Self>) {
        for _ in 0..number(1..4) {
            let place = self.ledger.any_place();
            match number(0..8) {
                0 => self.call_tool(place),
                1 => self.extend(place, QUANTITIES[number(0..3)], amount(0..1_000)),
                2 => drop(self.ledger.add()),
                _ => self.request(place).await,
            }
            pause().await;
        }
    }

    fn call_tool(&self, place: Place) {
        match self.ledger.budget.count_tool_call(self.ledger.id(place)) {
            Ok(()) => self.ledger.count_tool_call(place),
            Err(refusal) => self.ledger.check_refusal(place, &refusal),
        }
    }

    fn extend(&self, place: Place, what: Quantity, by: u64) {
        self.ledger.raise(place, what, by);
        self.ledger.budget.extend(self.ledger.id(place), what, by);
    }

    /// Makes a request that uses no more than it reserved.
    async fn request(&self, place: Place) {
        let want = Want::any();
        let reservation = match self.reserve(place, want).await {
            None => return,
            Some(Err(refusal)) => return self.ledger.check_refusal(place, &refusal),
            Some(Ok(reservation)) => reservation,
        };
        let reserved = want.reserved(reservation.output());
        self.ledger.hold(place, reserved);
        pause().await;
        if one_in(4) {
            // Without a report, all is booked.
            self.ledger.strike(place, reserved, reserved);
            return drop(reservation);
        }
        let used = Amount { tokens: amount(0..reserved.tokens + 1), cost: amount(0..reserved.cost + 1) };
        self.ledger.strike(place, reserved, used);
        reservation.settle(used);
    }

    /// Asks for a reservation, now and then with little patience.
    async fn reserve(&self, place: Place, want: Want) -> Option<Reserved<'_>> {
        let reserve = self.ledger.budget.reserve(self.ledger.id(place), want.ask());
        let observed = Observed::new(&self.book, place, reserve);
        if one_in(3) { with_little_patience(observed).await } else { Some(observed.await) }
    }

    /// Makes requests of which some use more than they reserved, and raises limits now and then.
    async fn overrun(self: Arc<Self>) {
        for _ in 0..number(1..4) {
            let place = self.ledger.any_place();
            match number(0..6) {
                0 => self.extend(place, QUANTITIES[number(0..2)], amount(1..1_000)),
                1 => self.extend(place, Quantity::ToolCalls, 1),
                _ => self.use_more(place).await,
            }
            pause().await;
        }
    }

    /// Makes a request that may use more than it reserved.
    async fn use_more(&self, place: Place) {
        let want = Want::any();
        let reservation = match self.reserve(place, want).await {
            None => return,
            Some(Err(refusal)) => return self.ledger.check_name(place, &refusal),
            Some(Ok(reservation)) => reservation,
        };
        let reserved = want.reserved(reservation.output());
        self.ledger.hold(place, reserved);
        pause().await;
        let (tokens, cost) = [(0, 0), (700, 0), (0, 900), (1, 1)][number(0..4)];
        let used = Amount { tokens: reserved.tokens + tokens, cost: reserved.cost + cost };
        self.ledger.exceed(place, Amount { tokens, cost });
        self.ledger.strike(place, reserved, used);
        reservation.settle(used);
    }

    /// Once every limit is raised enough, a request goes through everywhere.
    fn recover(&self) {
        let leaf = self.ledger.add();
        for place in self.ledger.path(leaf) {
            for what in [Quantity::Tokens, Quantity::Cost] {
                self.ledger.budget.extend(self.ledger.id(place), what, 100_000);
            }
        }
        let want = Want::any();
        let reserved = block_on(self.ledger.budget.reserve(self.ledger.id(leaf), want.ask()));
        assert!(reserved.is_ok_and(|reservation| reservation.output() == want.output));
    }

    /// Checks that who waited was never overtaken by one who came later and shares a limit with it.
    fn check_order(&self) {
        let moments = self.book.all();
        for grant in granted(&moments) {
            let limits = self.ledger.limited(place_of(&moments, grant.ticket));
            for waiter in waiting(&moments, grant.ticket, grant.served) {
                let others = self.ledger.limited(place_of(&moments, waiter));
                let shared = limits.iter().any(|limit| others.contains(limit));
                assert!(!shared, "{} overtook {waiter}:\n{}", grant.ticket, self.book);
            }
        }
    }
}

/// Waits for a moment only.
async fn with_little_patience<F: Future + Unpin>(request: F) -> Option<F::Output> {
    let patience = Box::pin(async {
        for _ in 0..number(0..4) {
            yield_now().await;
        }
    });
    match select(request, patience).await {
        Either::Left((reserved, _)) => Some(reserved),
        Either::Right(((), _given_up)) => None,
    }
}

/// A request that was granted, and when.
struct Granted {
    ticket: Ticket,
    /// When it was served, as far as can be seen.
    served: usize,
}

fn granted(moments: &[Moment]) -> impl Iterator<Item = Granted> {
    moments.iter().enumerate().filter_map(|(ended, moment)| {
        let Moment::Ended(ticket, true) = *moment else { return None };
        let is_served = |moment: &Moment| matches!(moment, Moment::Served(other, _) if *other == ticket);
        let served = moments.iter().position(is_served).unwrap_or(ended);
        Some(Granted { ticket, served })
    })
}

/// Requests that were told to wait before one moment and still waited at another.
fn waiting(moments: &[Moment], before: usize, at: usize) -> Vec<Ticket> {
    let queued = moments[..before].iter().filter_map(|moment| match moment {
        Moment::Queued(ticket) => Some(*ticket),
        _ => None,
    });
    let gone = |ticket: Ticket| {
        moments[..at].iter().any(|moment| match moment {
            Moment::Served(other, _) | Moment::Ended(other, _) | Moment::Abandoned(other) => *other == ticket,
            _ => false,
        })
    };
    queued.filter(|ticket| !gone(*ticket)).collect()
}

fn place_of(moments: &[Moment], ticket: Ticket) -> Place {
    match moments[ticket] {
        Moment::Started(_, place) => place,
        _ => unreachable!("a ticket is the place of its start"),
    }
}
