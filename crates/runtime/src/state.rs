//! What calls, runs and the runtime hold while they live.
//!
//! [`shared::Shared`] lives as long as the runtime, [`run_state::RunState`] as long as a run, and [`live::LiveCall`] as
//! long as a call. [`scope::RunScope`] is what the code of a step is given: the engine and the state of its run.
//!
//! Nothing here decides about a call or asks a model.

pub(crate) mod broker;
pub(crate) mod cancel_state;
pub(crate) mod control;
pub(crate) mod created;
pub(crate) mod fork;
pub(crate) mod in_flight;
pub(crate) mod instances;
pub(crate) mod live;
pub(crate) mod redaction;
pub(crate) mod repeats;
pub(crate) mod run_state;
pub(crate) mod scope;
pub(crate) mod shared;
pub(crate) mod step_error;
pub(crate) mod stopwatch;
