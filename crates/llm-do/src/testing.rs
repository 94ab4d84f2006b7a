//! Scripted models and models for tests, which need no provider. The crate `llm-do-testing` has more.

pub use llm_do_models::{
    Condition, Script, ScriptedReply, TestModel, asks, asks_all, asks_raw, contains, cut, fails, instructed,
    replies, result_of, says, thinks,
};
