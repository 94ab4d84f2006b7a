//! The record of runs: the log of events, the store behind it, and what a resume reads from them.

pub(crate) mod changes;
pub(crate) mod log;
pub(crate) mod message_log;
pub(crate) mod replay;
pub(crate) mod running_time;
pub(crate) mod store;
pub(crate) mod subscribers;
pub(crate) mod unknown;
pub(crate) mod used_tools;
