//! Why a toolset cannot be made.

use std::io;
use std::path::{Path, PathBuf};

use llm_do_core::{Name, SchemaError};
use thiserror::Error;

/// Why a toolset cannot be made from its settings.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ToolsetError {
    /// No built-in toolset has this name.
    #[error("unknown toolset `{name}`")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The settings have an unknown key, or a value of the wrong type.
    #[error(transparent)]
    Format(#[from] serde_json::Error),
    /// A setting has a value that cannot work.
    #[error("{0}")]
    Setting(String),
    /// The settings of an agent allow more than those of the manifest.
    #[error("`{key}` allows more than the manifest does for `{toolset}`: an agent may only narrow it")]
    Loosened {
        /// The setting.
        key: &'static str,
        /// The name under which agents list the toolset.
        toolset: Name,
    },
    /// The root leads out of the directory that the toolset is for.
    #[error("the root `{}` lies outside `{}`", .root.display(), .base.display())]
    RootOutside {
        /// The root of the settings.
        root: PathBuf,
        /// The directory.
        base: PathBuf,
    },
    /// A directory or file cannot be used.
    #[error("`{}`: {error}", .path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// A tool of the toolset cannot be described to models.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

impl ToolsetError {
    /// Makes an error about a value of the settings.
    pub(crate) fn setting(message: impl Into<String>) -> Self {
        Self::Setting(message.into())
    }

    /// Adds a path to an error of the system.
    pub(crate) fn path(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::Path { path: path.to_path_buf(), error }
    }
}
