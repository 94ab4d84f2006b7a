//! Why a command cannot do its work, and how that is printed.

use llm_do::project::{Diagnostic, Diagnostics, LinkErrors, Severity};

use crate::console::Paint;
use crate::exit::Exit;
use crate::output;

/// Why a command ends before its work begins.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// Arguments, files or input that cannot be used.
    Usage {
        /// What is wrong.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// A project that cannot be used.
    Project(Diagnostics),
    /// Something that cannot be done now, and what to do.
    Failed {
        /// What cannot be done.
        message: String,
        /// What to do.
        hint: String,
    },
    /// Something that should not happen.
    Other(anyhow::Error),
}

impl CommandError {
    /// An error without a hint.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: None }
    }

    /// An error with what to do about it.
    pub(crate) fn with_hint(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    /// An error that is nobody's mistake.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Other(anyhow::Error::msg(message.into()))
    }

    /// An error that is nobody's mistake, with what to do about it.
    pub(crate) fn failed_with_hint(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), hint: hint.into() }
    }

    /// Prints it on stderr and returns how the process ends.
    pub(crate) fn show(&self) -> Exit {
        let paint = Paint::for_stderr();
        output::to_stderr(&paint.message(&self.to_string()));
        self.exit()
    }

    /// What is wrong with the project, problem by problem.
    pub(crate) fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Project(diagnostics) => &diagnostics.0,
            Self::Usage { .. } | Self::Failed { .. } | Self::Other(_) => &[],
        }
    }

    /// What is wrong, for programs: of a project its first error, as the others are in its diagnostics.
    pub(crate) fn summary(&self) -> String {
        let errors = self.diagnostics().iter().filter(|problem| problem.severity == Severity::Error);
        match (errors.clone().next(), errors.count(), self) {
            (Some(first), 1, _) => first.message.clone(),
            (Some(first), count, _) => format!("{} (the first of {count} errors)", first.message),
            (None, _, Self::Usage { message, .. } | Self::Failed { message, .. }) => message.clone(),
            (None, _, Self::Other(error)) => format!("{error:#}"),
            (None, _, Self::Project(diagnostics)) => diagnostics.to_string(),
        }
    }

    /// What to do about it: of a project what its first error says.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { hint, .. } => hint.clone(),
            Self::Failed { hint, .. } => Some(hint.clone()),
            Self::Project(diagnostics) => {
                let mut problems = diagnostics.0.iter();
                problems.find(|problem| problem.severity == Severity::Error)?.hint.clone()
            }
            Self::Other(_) => None,
        }
    }

    /// How the process ends.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Usage { .. } | Self::Project(_) => Exit::Usage,
            Self::Failed { .. } | Self::Other(_) => Exit::Failed,
        }
    }
}

impl std::fmt::Display for CommandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage { message, hint: None } => write!(f, "error: {message}"),
            Self::Usage { message, hint: Some(hint) } | Self::Failed { message, hint } => {
                write!(f, "error: {message}\nhint: {hint}")
            }
            Self::Project(diagnostics) => diagnostics.fmt(f),
            Self::Other(error) => write!(f, "error: {error:#}"),
        }
    }
}

impl From<Diagnostics> for CommandError {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Project(diagnostics)
    }
}

impl From<LinkErrors> for CommandError {
    fn from(errors: LinkErrors) -> Self {
        Self::usage(errors.to_string())
    }
}

impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}
