//! Removes known secrets from what models answer: from the parts as they arrive, from the whole message, from errors.
//!
//! What is found is decided in `llm-do-secrets`. Deltas are searched for the plain and the JSON-escaped forms of a
//! secret, messages and errors for all forms.

mod answer;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Deref;

use llm_do_core::ModelError;
use llm_do_secrets::SecretMask;

pub(crate) use answer::AnswerMask;

/// Removes secrets from answers and errors of models, and from whatever else [`SecretMask`] can.
#[derive(Clone, Default)]
pub(crate) struct Mask(SecretMask);

impl Mask {
    /// A mask of secrets. Values that are too short to be secrets, and placeholders, are left alone.
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        Self(SecretMask::new(secrets))
    }

    /// Returns the error without secrets in its message.
    pub(crate) fn error(&self, error: ModelError) -> ModelError {
        match self.text(&error.message) {
            Cow::Borrowed(_) => error,
            Cow::Owned(message) => ModelError { message, ..error },
        }
    }
}

impl From<SecretMask> for Mask {
    fn from(mask: SecretMask) -> Self {
        Self(mask)
    }
}

impl Deref for Mask {
    type Target = SecretMask;

    fn deref(&self) -> &SecretMask {
        &self.0
    }
}
