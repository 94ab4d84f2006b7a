//! The locks and channels of the parts that are tested under many schedules.
//!
//! The member `schedules` compiles [`crate::budget`], [`crate::state::broker`], [`crate::record::log`] and
//! [`crate::record::store`] against another module of this name, in which the lock is shuttle's and every use of a channel
//! may switch tasks. So these modules take their locks and channels from here and nowhere else.

// A panic elsewhere does not make it unusable: what it guards is consistent at every unlock.
pub(crate) use parking_lot::Mutex;
pub(crate) use tokio::sync::{Notify, oneshot};
