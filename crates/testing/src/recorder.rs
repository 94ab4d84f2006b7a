//! Sees the effects of tools from outside the runtime.

use std::sync::Arc;

use llm_do_core::{CallContext, Key};
use parking_lot::Mutex;
use serde_json::Value;

/// Something that a tool really did.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenEffect {
    /// The key of the call.
    pub key: Key,
    /// The name of the effect.
    pub name: String,
    /// The arguments with which it happened.
    pub arguments: Value,
}

/// Keeps the effects of tools, in the order in which they happened.
#[derive(Debug, Clone, Default)]
pub struct EffectRecorder {
    effects: Arc<Mutex<Vec<SeenEffect>>>,
}

impl EffectRecorder {
    /// Notes an effect. Tools of a test call this where a real tool would act.
    pub fn happened(&self, call: &CallContext, name: &str, arguments: &Value) {
        let effect =
            SeenEffect { key: call.key().clone(), name: name.to_owned(), arguments: arguments.clone() };
        self.effects.lock().push(effect);
    }

    /// Returns what happened so far.
    pub fn effects(&self) -> Vec<SeenEffect> {
        self.effects.lock().clone()
    }

    /// Returns the names of what happened so far.
    pub fn names(&self) -> Vec<String> {
        self.effects().into_iter().map(|effect| effect.name).collect()
    }
}
