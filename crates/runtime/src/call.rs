//! One call from its name to its result: the dispatcher, the code of tools, and what that code may ask for.

pub(crate) mod caller;
pub(crate) mod cancelled;
pub(crate) mod dispatch;
pub(crate) mod effect;
pub(crate) mod unresolved;
