//! Failures that are answers: what went wrong, and what the caller can do.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a call did not give a value. The caller, model or code, can act on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// What happened, in words for a model or a person.
    pub message: String,
    /// What can be done about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Who can follow the hint.
    #[serde(default, skip_serializing_if = "HintAudience::is_everyone")]
    pub hint_audience: HintAudience,
}

/// Who can follow the hint of a failure.
///
/// Most hints help everyone. Some are useless, or wrong, for a person at a terminal, who cannot answer in the place of a
/// model or change the program around the runtime; front ends show [`Failure::user_hint`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HintAudience {
    /// A model, code, and a person who started the run.
    #[default]
    Everyone,
    /// Only the caller, a model or code, which can call again or continue without the result.
    Caller,
    /// Only the author of the program that embeds the runtime.
    Embedder,
}

impl HintAudience {
    fn is_everyone(&self) -> bool {
        *self == Self::Everyone
    }
}

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No callable of that name can be called from here.
    Unknown,
    /// The input does not fit the callable's schema.
    Arguments,
    /// The definition, a rule or the tool's own judgment blocks the call.
    Blocked,
    /// The approval was denied, by a person or by the mode of the run.
    Denied,
    /// The call had to ask and there was nobody to ask.
    Unasked,
    /// The caller's access does not reach what the callable needs.
    Access,
    /// A context value that the callable needs is missing.
    Context,
    /// The permitted depth of nested agents is used up.
    Depth,
    /// A budget or counter is used up.
    Limit,
    /// The tool answered with an error.
    Tool,
    /// The tool panicked.
    Panic,
    /// The call took longer than its time limit.
    TimedOut,
    /// A person cancelled the call, or one that it was made for, while its run went on.
    Cancelled,
    /// The output does not fit the declared schema.
    Output,
    /// The model could not be asked, or refused.
    Model,
    /// A toolset could not be opened.
    Toolset,
}

impl FailureKind {
    /// Returns the name that events and JSON use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Arguments => "arguments",
            Self::Blocked => "blocked",
            Self::Denied => "denied",
            Self::Unasked => "unasked",
            Self::Access => "access",
            Self::Context => "context",
            Self::Depth => "depth",
            Self::Limit => "limit",
            Self::Tool => "tool",
            Self::Panic => "panic",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Output => "output",
            Self::Model => "model",
            Self::Toolset => "toolset",
        }
    }
}

impl Failure {
    /// A failure without a hint.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, hint_audience: HintAudience::Everyone }
    }

    /// Adds what everyone can do about it: a model, code, and a person who started the run.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        self.with_hint_for(HintAudience::Everyone, hint)
    }

    /// Adds what some can do about it.
    #[must_use]
    pub fn with_hint_for(mut self, audience: HintAudience, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self.hint_audience = audience;
        self
    }

    /// Returns the hint, if it helps a person who started the run.
    pub fn user_hint(&self) -> Option<&str> {
        self.hint.as_deref().filter(|_| self.hint_audience.is_everyone())
    }

    /// Returns whether an approval was refused, for whatever reason.
    pub fn is_denial(&self) -> bool {
        matches!(self.kind, FailureKind::Denied | FailureKind::Unasked | FailureKind::Blocked)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// An error that a tool answers with.
///
/// Every error type turns into one, so tools use `?` freely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError(Failure);

impl ToolError {
    /// An error with words for the model.
    pub fn new(message: impl fmt::Display) -> Self {
        Self(Failure::new(FailureKind::Tool, message.to_string()))
    }

    /// An error that keeps the kind of a failure.
    pub fn from_failure(failure: Failure) -> Self {
        Self(failure)
    }

    /// Adds what the model can do about it.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self(self.0.with_hint(hint))
    }

    /// Returns the failure that the caller of the tool will see.
    pub fn into_failure(self) -> Failure {
        self.0
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// `ToolError` is no `std::error::Error` itself, so that this conversion is possible (as in `anyhow`).
impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            message.push_str(": ");
            message.push_str(&inner.to_string());
            source = inner.source();
        }
        Self::new(message)
    }
}
