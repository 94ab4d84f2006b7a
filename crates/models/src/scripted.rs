//! Models that ask no provider: scripts with the replies of their author, and the test model.
//!
//! - [`Script`] chooses a [`ScriptedReply`] for each request; `script_file` reads scripts from YAML, [`Condition`] limits a reply
//!   to certain requests.
//! - [`TestModel`] calls every tool that it is offered, with values that `sample` makes for their schemas.
//! - `delivery` turns what either of them answers into a stream, and `history` reads the conversation for them.

mod condition;
mod delivery;
mod history;
mod reply;
mod sample;
mod script;
mod script_file;
mod test_model;

pub use condition::{Condition, contains, instructed, result_of};
pub use reply::{ScriptedReply, asks, asks_all, asks_raw, cut, fails, replies, says, thinks};
pub use script::Script;
pub use script_file::ScriptFileError;
pub use test_model::TestModel;
