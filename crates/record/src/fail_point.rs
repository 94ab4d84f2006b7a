//! Boundaries at which tests end the process.
//!
//! Nothing is left of them without the feature `failpoints`, which no program enables.

/// Passes a boundary of [`FAIL_POINTS`].
macro_rules! fail_point {
    ($name:literal) => {
        #[cfg(feature = "failpoints")]
        fail::fail_point!($name);
    };
}

/// The names of all boundaries.
#[cfg(feature = "failpoints")]
pub const FAIL_POINTS: &[&str] = &[
    "record::before_claim",
    "record::after_claim",
    "record::before_release",
    "record::after_release",
    "record::before_take_over",
    "record::after_take_over",
    "record::before_begin",
    "record::after_begin",
    "record::before_stream",
    "record::after_stream",
    "record::before_call",
    "record::after_call",
    "record::before_blob",
    "record::after_blob",
    "record::after_ref",
    "record::before_event",
    "record::after_event",
    "record::before_derived",
    "record::after_derived",
    "record::before_end_of_stream",
    "record::before_commit",
    "record::after_commit",
    "record::before_ack",
    "record::after_ack",
    "record::before_checkpoint",
    "record::after_checkpoint",
];
