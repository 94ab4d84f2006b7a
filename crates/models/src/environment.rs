//! The variables from which keys and addresses of providers come.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// The environment as one value: read by the binary, or given by an embedding program.
///
/// A project may bring variables of its own (a `.env` beside it). They are kept apart, since a project that
/// somebody cloned must not send the user's keys to an address that it chose.
#[derive(Clone, Default)]
pub struct Environment {
    own: Option<Arc<Lookup>>,
    project: HashMap<String, String>,
    stored: Option<Arc<StoredKeys>>,
}

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;
type StoredKeys = dyn Fn(&str) -> Result<Option<String>, KeyStoreError> + Send + Sync;

/// Why the user's store of keys cannot be read. The message names the store and says what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct KeyStoreError(String);

impl KeyStoreError {
    /// An error with a message, which must not hold a key.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// A variable's value and whose it is.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Variable {
    /// The value.
    pub value: String,
    /// Whether the project set it.
    pub is_projects: bool,
}

impl Environment {
    /// An environment without variables.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The variables of this process.
    pub fn from_process() -> Self {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// Variables that a function finds.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { own: Some(Arc::new(lookup)), ..Self::default() }
    }

    /// Adds what a project sets. The user's own variables go before it.
    #[must_use]
    pub fn with_project(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.project.extend(variables);
        self
    }

    /// Adds the user's store of keys, which is asked by the name of an account. Every variable takes precedence, so it
    /// is asked only when a key is needed and no variable holds it.
    #[must_use]
    pub fn with_stored_keys(
        mut self,
        lookup: impl Fn(&str) -> Result<Option<String>, KeyStoreError> + Send + Sync + 'static,
    ) -> Self {
        self.stored = Some(Arc::new(lookup));
        self
    }

    /// Returns whether there is a store of keys.
    pub(crate) fn has_store(&self) -> bool {
        self.stored.is_some()
    }

    /// Returns the key of an account ([`account_of`](crate::account_of)) from the store, or why it cannot be read.
    pub fn stored_key(&self, account: &str) -> Result<Option<String>, KeyStoreError> {
        let found = self.stored.as_ref().map_or(Ok(None), |stored| stored(account))?;
        Ok(found.filter(|key| !key.trim().is_empty()))
    }

    /// Returns a variable that is set and not blank.
    pub fn get(&self, name: &str) -> Option<Variable> {
        let is_set = |value: &String| !value.trim().is_empty();
        let own = self.own.as_ref().and_then(|own| own(name)).filter(is_set);
        let own = own.map(|value| Variable { value, is_projects: false });
        own.or_else(|| {
            let value = self.project.get(name).filter(|value| is_set(value))?;
            Some(Variable { value: value.clone(), is_projects: true })
        })
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment")
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Variable(…)")
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(variables: T) -> Self {
        let variables: HashMap<String, String> = variables.into_iter().collect();
        Self::from_lookup(move |name| variables.get(name).cloned())
    }
}
