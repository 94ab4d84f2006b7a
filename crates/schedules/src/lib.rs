//! Runs the concurrency cores of the runtime and of the record under many schedules.
//!
//! The modules `broker`, `budget` and `record` are those of the runtime, `queue` that of the record, compiled against a
//! `sync` in which shuttle decides who runs next at every lock and channel. A scenario starts a few tasks over them and checks what
//! they saw against a log or ledger of its own; [`explore`] runs it under many schedules. Shuttle itself
//! reports a deadlock, and prints the schedule of a failure so that it can be replayed.
//!
//! - [`approvals`]: grants, revocations and cancellations while requests are open.
//! - [`budgets`]: reservations, refunds, abandoned waits and overruns below shared ceilings.
//! - [`recording`]: the log of a run, its readers, and the thread that writes it.

// The unit tests of the runtime's modules know nothing of shuttle, so there is no build with them.
#![cfg(not(test))]
#![expect(clippy::expect_used, reason = "a broken property must stop the test")]

#[allow(dead_code, unreachable_pub, reason = "the runtime uses more of it than the scenarios do")]
#[path = "../../runtime/src/state/broker.rs"]
mod broker;
#[allow(dead_code, unreachable_pub, reason = "the runtime uses more of it than the scenarios do")]
#[path = "../../runtime/src/budget.rs"]
mod budget;
#[allow(dead_code, unreachable_pub, reason = "the record uses more of it than the scenarios do")]
#[path = "../../record/src/queue.rs"]
mod queue;
#[allow(dead_code, unreachable_pub, reason = "the runtime uses more of it than the scenarios do")]
mod record;

pub mod approvals;
pub mod budgets;
mod desk;
mod dice;
mod explore;
mod ledger;
mod observed;
pub mod recording;
mod sync;

pub use explore::explore;
