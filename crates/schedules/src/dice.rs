//! Chance that shuttle controls, so that a failing schedule replays with the same data.

use std::ops::Range;

use shuttle::rand::{Rng, thread_rng};

/// A number of a range.
pub(crate) fn number(range: Range<usize>) -> usize {
    thread_rng().gen_range(range)
}

/// An amount of a range.
pub(crate) fn amount(range: Range<u64>) -> u64 {
    thread_rng().gen_range(range)
}

/// Says yes once in so many times.
pub(crate) fn one_in(times: usize) -> bool {
    number(0..times) == 0
}

/// Lets other tasks run for a while, perhaps for no time at all.
pub(crate) async fn pause() {
    for _ in 0..number(0..4) {
        shuttle::future::yield_now().await;
    }
}
