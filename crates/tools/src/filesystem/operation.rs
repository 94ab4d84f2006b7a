//! The tools of the toolset: what each is called, says about itself and does.

use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{
    Access, Approval, Approved, Assessment, CallContext, Effect, Failure, FailureKind, Name, Output, Payload,
    Schema, SchemaError, Tool, ToolDefinition, ToolError, ToolReply,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::change::{self, Attempt, FileChange};
use super::error::FileError;
use super::root::Root;
use super::secret::{self, ApprovedSecrets, FoundSecret};
use super::walk::Patience;
use super::{edit, judged, list, read, search, write};
use crate::toolset_error::ToolsetError;

/// What can be done with files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Read,
    List,
    Search,
    Write,
    Edit,
}

impl Operation {
    /// All of them, or those that only look.
    pub(crate) fn all(read_only: bool) -> Vec<Self> {
        let all = [Self::Read, Self::List, Self::Search, Self::Write, Self::Edit];
        all.into_iter().filter(|operation| !read_only || !operation.changes()).collect()
    }

    fn changes(self) -> bool {
        matches!(self, Self::Write | Self::Edit)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Read => "read_file",
            Self::List => "list_files",
            Self::Search => "search_files",
            Self::Write => "write_file",
            Self::Edit => "edit_file",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Read => read::DESCRIPTION,
            Self::List => list::DESCRIPTION,
            Self::Search => search::DESCRIPTION,
            Self::Write => write::DESCRIPTION,
            Self::Edit => edit::DESCRIPTION,
        }
    }

    fn input(self) -> Result<Schema, SchemaError> {
        match self {
            Self::Read => Schema::for_type::<read::Arguments>(),
            Self::List => Schema::for_type::<list::Arguments>(),
            Self::Search => Schema::for_type::<search::Arguments>(),
            Self::Write => Schema::for_type::<write::Arguments>(),
            Self::Edit => Schema::for_type::<edit::Arguments>(),
        }
    }

    /// Describes the tool.
    ///
    /// Changes are idempotent because their precondition makes them so (see [`change`]), and run alone because
    /// two changes of one file in one turn would otherwise both be judged by its old content.
    pub(crate) fn define(self, toolset: &Name, prefix: &str) -> Result<ToolDefinition, ToolsetError> {
        let name = format!("{prefix}{}", self.name());
        if !Name::is_valid(&name) {
            return Err(ToolsetError::Setting(format!(
                "`{name}` is not a valid tool name: use letters, digits, `_` and `-` in `prefix`"
            )));
        }
        let mut definition = ToolDefinition::new(name, self.description(), self.input()?);
        definition.toolset = Some(toolset.clone());
        definition.pages_itself = matches!(self, Self::Read);
        if self.changes() {
            definition.effect = Effect::Idempotent;
            definition.sequential = true;
        } else {
            definition.access = Access::Read;
            definition.approval = Approval::PreApproved;
            definition.effect = Effect::Pure;
        }
        Ok(definition)
    }

    fn change(self, input: &Value) -> Result<Box<dyn FileChange>, Failure> {
        match self {
            Self::Write => Ok(Box::new(arguments::<write::Arguments>(input)?)),
            _ => Ok(Box::new(arguments::<edit::Arguments>(input)?)),
        }
    }

    fn assess(self, root: &Root, input: &Value) -> Assessment {
        let judged = match self {
            Self::Read => {
                arguments(input).map(|read: read::Arguments| self.look(secret::look(root, read.path())))
            }
            Self::List => arguments(input).map(|list| self.look(list::look(root, &list).map(|()| None))),
            Self::Search => arguments(input).map(|search| self.look(search::look(root, &search))),
            Self::Write | Self::Edit => self.change(input).map(|change| change::assess(root, &*change)),
        };
        judged.unwrap_or_else(change::cannot)
    }

    /// Judges a call that only reads: it may run unless it reads a secret, and fails if there is nothing to read.
    fn look(self, found: Result<Option<FoundSecret>, FileError>) -> Assessment {
        let verb = if self == Self::Search { "search" } else { "read" };
        match found {
            Ok(file) => secret::assess_reading(verb, file),
            // The call answers with the error itself; whoever only asks beforehand learns that it is not permitted.
            Err(error) if error.is_forbidden() => {
                Assessment::cannot(Failure { kind: FailureKind::Blocked, ..error.into_failure() })
            }
            Err(error) => change::cannot(error.into_failure()),
        }
    }

    /// Judges a call if nothing has to be waited for; nothing if it could.
    fn assess_at_once(self, root: &Root, input: &Value) -> Option<Assessment> {
        match self {
            Self::Read => {
                let read: read::Arguments = arguments(input).ok()?;
                secret::look_at_once(root, read.path()).map(|file| self.look(Ok(file)))
            }
            Self::List | Self::Search | Self::Write | Self::Edit => None,
        }
    }

    /// Does what waits for nothing; nothing where it could.
    fn at_once(self, root: &Root, input: &Approved) -> Option<ToolReply> {
        match self {
            Self::Read => {
                let approved = ApprovedSecrets::from_precondition(input.precondition());
                read::at_once(root, &arguments(input.value()).ok()?, &approved).map(answer)
            }
            Self::List | Self::Search | Self::Write | Self::Edit => None,
        }
    }

    fn run(self, root: &Root, input: &Approved, patience: &Patience, attempt: Attempt) -> ToolReply {
        let (value, approved) = (input.value(), ApprovedSecrets::from_precondition(input.precondition()));
        match self {
            Self::Read => answer(read::run(root, &arguments(value)?, &approved)),
            Self::List => answer(list::run(root, &arguments(value)?, patience)),
            Self::Search => answer(search::run(root, &arguments(value)?, patience, &approved)),
            Self::Write | Self::Edit => {
                let change = self.change(value)?;
                let done = change::run(root, &*change, input.precondition(), attempt);
                done.map(Output::json).map_err(ToolError::from_failure)
            }
        }
    }
}

fn arguments<'a, T: Deserialize<'a>>(input: &'a Value) -> Result<T, Failure> {
    T::deserialize(input).map_err(|error| Failure::new(FailureKind::Arguments, error.to_string()))
}

fn answer(result: Result<impl Serialize, FileError>) -> ToolReply {
    Ok(Output::json(serde_json::to_value(result.map_err(FileError::into_tool_error)?)?))
}

/// One tool of one instance.
pub(crate) struct FileTool {
    pub(crate) operation: Operation,
    pub(crate) definition: Arc<ToolDefinition>,
    pub(crate) root: Arc<Root>,
}

impl Tool for FileTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn assess<'a>(&'a self, input: &'a Payload, call: &'a CallContext) -> BoxFuture<'a, Assessment> {
        let (operation, root, input) = (self.operation, self.root.clone(), input.clone());
        if let Some(assessment) = operation.assess_at_once(&root, input.value()) {
            return Box::pin(std::future::ready(assessment));
        }
        if operation.changes() {
            judged::remember(call);
        }
        Box::pin(async move {
            let judged = tokio::task::spawn_blocking(move || operation.assess(&root, input.value())).await;
            judged.unwrap_or_else(|error| {
                let mut blocked = Assessment::new(Approval::Blocked, self.definition.name.as_str());
                blocked.reason = Some(format!("the call could not be judged: {error}"));
                blocked
            })
        })
    }

    // Listing shows no content: it is judged just for those who want to know whether it would fail.
    fn assesses(&self) -> bool {
        self.operation != Operation::List
    }

    fn run<'a>(&'a self, input: Approved, call: &'a CallContext) -> BoxFuture<'a, ToolReply> {
        if let Some(reply) = self.operation.at_once(&self.root, &input) {
            return Box::pin(std::future::ready(reply));
        }
        let (operation, root) = (self.operation, self.root.clone());
        let (patience, attempt) = (Patience::new(call.cancellation()), Attempt::from_call(call));
        Box::pin(call.blocking(move || operation.run(&root, &input, &patience, attempt)))
    }
}
