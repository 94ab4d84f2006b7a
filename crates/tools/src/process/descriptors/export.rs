//! `fd_to_file`: writes the text of a descriptor to a file.
//!
//! This is a change of a file like those of the filesystem tools, by the same code: below one root, never through a
//! link, with a diff for whoever is asked, and written only as it was shown.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{
    Approval, Approved, Assessment, CallContext, Effect, Failure, Name, Output, Payload, Schema, Tool,
    ToolDefinition, ToolError, ToolReply, counted,
};
use llm_do_runtime::{Descriptors, StoredContent};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{arguments, needs, table};
use crate::filesystem::change::{self, Attempt, Creates, FileChange, check_size};
use crate::filesystem::judged;
use crate::filesystem::root::{Root, RootConfig};
use crate::filesystem::{FileError, FilesystemSettings, Protected};
use crate::toolset_error::ToolsetError;

const DESCRIPTION: &str = "Writes the whole text of a file descriptor to a file, or appends it. A person sees the \
    change first. The text need not be read before, so this is the way to keep a long result.";

/// How large a file may be before and after: it is held in memory and compared.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Where the texts of descriptors may be written, and how much at once.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExportSettings {
    /// The directory that `fd_to_file` cannot leave, relative to the project. Default: the project itself.
    pub root: PathBuf,
    /// Leaves out `fd_to_file`.
    pub read_only: bool,
    /// The endings of file names that may be written, such as `.md`. Empty: all.
    pub suffixes: Vec<String>,
    /// How many bytes a file may have before and after it is written.
    pub max_write_bytes: u64,
}

impl Default for ExportSettings {
    fn default() -> Self {
        Self { root: PathBuf::from("."), read_only: false, suffixes: Vec::new(), max_write_bytes: MAX_BYTES }
    }
}

impl From<ExportSettings> for FilesystemSettings {
    fn from(settings: ExportSettings) -> Self {
        let ExportSettings { root, read_only, suffixes, max_write_bytes } = settings;
        Self { root, read_only, suffixes, max_write_bytes, max_read_bytes: MAX_BYTES, ..Self::default() }
    }
}

/// The end of a diff that was cut: the rest of the new content is in the descriptor.
const REST_IN_ARGUMENTS: &str = "are in the arguments]\n";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file descriptor, such as `fd:3.1`.
    fd: String,
    /// The file, relative to the root. Directories that are missing are made.
    path: String,
    /// Whether the text replaces what the file holds, or is put after it.
    #[serde(default)]
    mode: WriteMode,
    /// Whether a file that is missing is made. If not, that is an error.
    #[serde(default = "yes")]
    create: bool,
    /// Whether the file may exist already. If not, that is an error.
    #[serde(default = "yes")]
    exist_ok: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WriteMode {
    #[default]
    Write,
    Append,
}

fn yes() -> bool {
    true
}

/// A text on its way into a file.
struct Export {
    arguments: Arguments,
    content: StoredContent,
}

impl Export {
    fn from_input(input: &Value, table: &Descriptors) -> Result<Self, Failure> {
        let arguments: Arguments = arguments(input)?;
        let content = table.get(&arguments.fd)?.content;
        Ok(Self { arguments, content })
    }

    fn text(&self) -> Result<Vec<u8>, FileError> {
        let size = self.content.bytes();
        if size > MAX_BYTES {
            return Err(FileError::TooMuch { size, limit: MAX_BYTES });
        }
        let text = self.content.text(0, size).map_err(|failure| FileError::Argument(failure.message))?;
        Ok(text.into_owned().into_bytes())
    }
}

impl FileChange for Export {
    fn path(&self) -> &str {
        &self.arguments.path
    }

    fn creates(&self) -> Creates {
        if self.arguments.create { Creates::FileAndDirectories } else { Creates::Nothing }
    }

    fn depends_on_old(&self) -> bool {
        self.arguments.mode == WriteMode::Append
    }

    fn after(&self, shown: &str, before: Option<&[u8]>, limit: u64) -> Result<Vec<u8>, FileError> {
        if before.is_some() && !self.arguments.exist_ok {
            return Err(FileError::Argument(format!("`{shown}` exists already, and `exist_ok` is false")));
        }
        let kept = before.filter(|_| self.depends_on_old()).unwrap_or_default();
        check_size(self.content.bytes().saturating_add(kept.len() as u64), limit)?;
        let mut text = self.text()?;
        // In place, so that no third copy of a long file is made.
        text.splice(0..0, kept.iter().copied());
        Ok(text)
    }

    fn describe(&self, shown: &str, before: Option<&[u8]>, after: &[u8]) -> String {
        let fd = &self.arguments.fd;
        match (self.arguments.mode, before) {
            (_, None) => format!("create `{shown}` from `{fd}` ({})", counted(after.len(), "byte")),
            (WriteMode::Append, Some(before)) => {
                format!(
                    "append `{fd}` to `{shown}` ({}, then {})",
                    counted(before.len(), "byte"),
                    after.len()
                )
            }
            (WriteMode::Write, Some(before)) => {
                format!(
                    "replace `{shown}` by `{fd}` ({}, then {})",
                    counted(before.len(), "byte"),
                    after.len()
                )
            }
        }
    }
}

/// The tool.
pub(super) struct FdToFile {
    definition: Arc<ToolDefinition>,
    root_config: Arc<RootConfig>,
}

impl FdToFile {
    pub(super) fn new(
        toolset: &Name,
        base: &Path,
        settings: FilesystemSettings,
        protected: &Protected,
    ) -> Result<Self, ToolsetError> {
        settings.check()?;
        let input = Schema::for_type::<Arguments>()?;
        let mut definition = ToolDefinition::new("fd_to_file", DESCRIPTION, input);
        definition.toolset = Some(toolset.clone());
        definition.needs = needs();
        // As with other changes of files, the precondition makes it so.
        definition.effect = Effect::Idempotent;
        definition.sequential = true;
        let root_config = Arc::new(RootConfig::new(base, settings, protected)?);
        Ok(Self { definition: Arc::new(definition), root_config })
    }
}

fn open(root_config: Arc<RootConfig>) -> Result<Root, Failure> {
    Root::open(root_config).map_err(|error| FileError::system(".", error).into_failure())
}

fn judge(root_config: Arc<RootConfig>, input: &Value, table: &Descriptors) -> Result<Assessment, Failure> {
    let export = Export::from_input(input, table)?;
    let mut assessment = change::assess(&open(root_config)?, &export);
    let preview = assessment.preview.take();
    assessment.preview = preview.map(|preview| match preview.strip_suffix(REST_IN_ARGUMENTS) {
        Some(cut) => format!("{cut}are in `{}`]\n", export.arguments.fd),
        None => preview,
    });
    Ok(assessment)
}

impl Tool for FdToFile {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn assess<'a>(&'a self, input: &'a Payload, call: &'a CallContext) -> BoxFuture<'a, Assessment> {
        let (root_config, input, table) = (self.root_config.clone(), input.clone(), table(call));
        judged::remember(call);
        Box::pin(async move {
            let judging = tokio::task::spawn_blocking(move || {
                let judged = table.and_then(|table| judge(root_config, input.value(), &table));
                judged.unwrap_or_else(change::cannot)
            });
            judging.await.unwrap_or_else(|error| {
                let mut blocked = Assessment::new(Approval::Blocked, "fd_to_file");
                blocked.reason = Some(format!("the call could not be judged: {error}"));
                blocked
            })
        })
    }

    fn run<'a>(&'a self, input: Approved, call: &'a CallContext) -> BoxFuture<'a, ToolReply> {
        let (root_config, table, attempt) = (self.root_config.clone(), table(call), Attempt::from_call(call));
        Box::pin(call.blocking(move || {
            let export = Export::from_input(input.value(), &*table.map_err(ToolError::from_failure)?)
                .map_err(ToolError::from_failure)?;
            let root = open(root_config).map_err(ToolError::from_failure)?;
            let done = change::run(&root, &export, input.precondition(), attempt);
            done.map(Output::json).map_err(ToolError::from_failure)
        }))
    }
}
