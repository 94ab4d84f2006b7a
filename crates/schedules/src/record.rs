//! The log of a run and the interface of its store.

#[path = "../../runtime/src/record/log.rs"]
pub(crate) mod log;
#[path = "../../runtime/src/record/store.rs"]
pub(crate) mod store;
