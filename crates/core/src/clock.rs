//! Clock and chance, as the runtime is told them.

use jiff::Timestamp;

/// Tells the time of day. Durations and time limits are measured by the executor's own clock.
pub trait Clock: Send + Sync {
    /// Returns the time.
    fn now(&self) -> Timestamp;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Gives random bits.
pub trait Random: Send + Sync {
    /// Returns 64 random bits.
    fn bits(&self) -> u64;
}

/// Chance as the standard library seeds its hash maps with.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn bits(&self) -> u64 {
        use std::hash::{BuildHasher, Hasher, RandomState};
        RandomState::new().build_hasher().finish()
    }
}
