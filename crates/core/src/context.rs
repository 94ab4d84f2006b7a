//! Context: typed values that a tool declares that it needs.

use std::any::{Any, TypeId, type_name};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{CallContext, Cancellation, Name, Progress};

/// Values that tools can ask for: by type in Rust, by name elsewhere.
///
/// A context is never changed: giving a call more values makes another context.
#[derive(Clone, Default)]
pub struct Context {
    typed: HashMap<TypeId, Provided>,
    named: BTreeMap<Name, Value>,
}

#[derive(Clone)]
struct Provided {
    type_name: &'static str,
    value: Arc<dyn Any + Send + Sync>,
}

impl Context {
    /// Adds a value that tools ask for by its type.
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        let provided = Provided { type_name: type_name::<T>(), value: Arc::new(value) };
        self.typed.insert(TypeId::of::<T>(), provided);
        self
    }

    /// Adds a value that tools ask for by its name.
    #[must_use]
    pub fn with_named(mut self, name: impl Into<Name>, value: Value) -> Self {
        self.named.insert(name.into(), value);
        self
    }

    /// Returns this context with everything of another, which wins.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.typed.extend(other.typed.iter().map(|(id, provided)| (*id, provided.clone())));
        self.named.extend(other.named.iter().map(|(name, value)| (name.clone(), value.clone())));
        self
    }

    /// Returns the value of a type.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let provided = self.typed.get(&TypeId::of::<T>())?;
        Arc::clone(&provided.value).downcast().ok()
    }

    /// Returns the value of a name.
    pub fn named(&self, name: &str) -> Option<&Value> {
        self.named.get(name)
    }

    /// Returns all values that have names.
    pub fn all_named(&self) -> impl Iterator<Item = (&Name, &Value)> {
        self.named.iter()
    }

    /// Returns whether a need is met.
    pub fn meets(&self, need: &NeedSpec) -> bool {
        match need.id {
            _ if need.built_in => true,
            Some(id) => self.typed.contains_key(&id),
            None => self.named.contains_key(&*need.label),
        }
    }

    /// Lists what is provided, for error messages.
    pub fn provided(&self) -> Vec<String> {
        let typed = self.typed.values().map(|provided| provided.type_name.to_owned());
        let mut all: Vec<String> = typed.chain(self.named.keys().map(|name| format!("\"{name}\""))).collect();
        all.sort();
        all
    }

    /// Returns whether nothing is provided.
    pub fn is_empty(&self) -> bool {
        self.typed.is_empty() && self.named.is_empty()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.provided()).finish()
    }
}

/// One context value that a tool needs.
///
/// Needs of the same type are equal, whatever they are called.
#[derive(Debug, Clone)]
pub struct NeedSpec {
    id: Option<TypeId>,
    label: Cow<'static, str>,
    /// Whether it belongs to the conversation of an agent, so that nobody can provide it.
    for_conversation: bool,
    /// Whether every call has it, whatever the project provides.
    built_in: bool,
}

impl PartialEq for NeedSpec {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && (self.id.is_some() || self.label == other.label)
    }
}

impl Eq for NeedSpec {}

impl Hash for NeedSpec {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.id {
            Some(id) => id.hash(state),
            None => self.label.hash(state),
        }
    }
}

impl NeedSpec {
    /// A value by its type.
    pub fn typed<T: 'static>() -> Self {
        let (id, label) = (Some(TypeId::of::<T>()), type_name::<T>().into());
        Self { id, label, for_conversation: false, built_in: false }
    }

    /// A value by its type that only the conversation of an agent has, in words for people.
    pub fn for_conversation<T: 'static>(message: &'static str) -> Self {
        let (id, label) = (Some(TypeId::of::<T>()), message.into());
        Self { id, label, for_conversation: true, built_in: false }
    }

    /// Returns whether only the conversation of an agent has it.
    pub fn is_of_conversation(&self) -> bool {
        self.for_conversation
    }

    /// A value by its name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { id: None, label: Cow::Owned(name.into()), for_conversation: false, built_in: false }
    }

    /// A value by its name that the runtime itself gives to every call.
    pub fn built_in(name: impl Into<String>) -> Self {
        Self { built_in: true, ..Self::named(name) }
    }

    /// Returns whether the runtime itself gives the value to every call.
    pub fn is_built_in(&self) -> bool {
        self.built_in
    }

    /// Returns the name of the value or type.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Says how the value is provided.
    pub fn how_to_provide(&self) -> String {
        match self.id {
            _ if self.for_conversation => {
                "they belong to the conversation of an agent, whose model calls this".to_owned()
            }
            _ if self.built_in => "llm-do gives it to every call".to_owned(),
            Some(_) => format!("add `.provide(value)` with a `{}` to the runtime builder", self.label),
            None => format!(
                "add `.provide_named(\"{0}\", value)` to the runtime builder, or `{0}` under `context` of the manifest",
                self.label
            ),
        }
    }
}

impl Serialize for NeedSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.label)
    }
}

/// A context value that a tool takes as a parameter.
pub struct Need<T>(Arc<T>);

impl<T> Need<T> {
    /// Wraps a value, for tests of single tools.
    pub fn new(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// Returns the shared value.
    pub fn into_inner(self) -> Arc<T> {
        self.0
    }
}

impl<T> Clone for Need<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for Need<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// A parameter of a tool that the runtime fills in and the model never sees.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be injected into a tool",
    note = "implement `FromCall` for it, or take a context value as `Need<T>`"
)]
pub trait FromCall: Sized + Send {
    /// Adds what must be provided for this parameter, so that a missing value is known before a run.
    fn needs(_out: &mut Vec<NeedSpec>) {}

    /// Takes the value from the call.
    fn from_call(call: &CallContext) -> Result<Self, MissingNeed>;
}

/// A value that a tool needs and nobody provides.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the context value `{}` is missing: {}", .0.label(), .0.how_to_provide())]
pub struct MissingNeed(pub NeedSpec);

impl<T: Send + Sync + 'static> FromCall for Need<T> {
    fn needs(out: &mut Vec<NeedSpec>) {
        out.push(NeedSpec::typed::<T>());
    }

    fn from_call(call: &CallContext) -> Result<Self, MissingNeed> {
        call.context().get().map(Self).ok_or_else(|| MissingNeed(NeedSpec::typed::<T>()))
    }
}

/// A value that a tool uses where it is provided.
impl<T: Send + Sync + 'static> FromCall for Option<Need<T>> {
    fn from_call(call: &CallContext) -> Result<Self, MissingNeed> {
        Ok(call.context().get().map(Need))
    }
}

impl FromCall for CallContext {
    fn from_call(call: &CallContext) -> Result<Self, MissingNeed> {
        Ok(call.clone())
    }
}

impl FromCall for Cancellation {
    fn from_call(call: &CallContext) -> Result<Self, MissingNeed> {
        Ok(call.cancellation())
    }
}

impl FromCall for Progress {
    fn from_call(call: &CallContext) -> Result<Self, MissingNeed> {
        Ok(call.progress())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_type_and_by_name() {
        let context = Context::default().with(7_u32).with_named("region", "eu".into());
        assert_eq!(context.get::<u32>().as_deref(), Some(&7));
        assert_eq!(context.get::<u64>(), None);
        assert!(context.meets(&NeedSpec::named("region")));
        assert!(!context.meets(&NeedSpec::typed::<String>()));
    }

    #[test]
    fn adding_to_a_context_leaves_the_original_as_it_was() {
        let original = Context::default().with(1_u8);
        let more = original.clone().with(2_u8).with('x');
        assert_eq!(original.get::<u8>().as_deref(), Some(&1));
        assert_eq!(more.get::<u8>().as_deref(), Some(&2));
    }
}
