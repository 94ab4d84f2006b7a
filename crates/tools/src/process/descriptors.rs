//! The toolset `file_descriptors`: reads, searches, lists, closes and exports long texts.
//!
//! The texts lie in the [`Descriptors`] of the agent call, which the runtime provides. Looking at them is free: they
//! were given to the agent already. `fd_to_file` is a change of a file like any other ([`export`]).

mod export;
mod grep;
mod manage;
mod read;

use std::path::Path;
use std::sync::Arc;

pub use export::ExportSettings;

use futures::future::BoxFuture;
use llm_do_core::{
    Access, AgentSpec, Approval, Approved, CallContext, Cancellation, Effect, Failure, FailureKind, FromCall,
    Key, Name, Need, NeedSpec, Opening, Output, Schema, SchemaError, StatelessToolset, Survival, Tool,
    ToolDefinition, ToolError, ToolReply, Toolset, ToolsetInstance,
};
use llm_do_runtime::Descriptors;
use serde::Deserialize;
use serde_json::Value;

use crate::filesystem::Protected;
use crate::toolset_error::ToolsetError;

/// The toolset `file_descriptors`. Its tools need the context value [`Descriptors`].
pub struct FileDescriptors(StatelessToolset);

impl FileDescriptors {
    /// Makes the toolset. Texts are written to files below the root that is set, and to protected ones only after a
    /// fresh approval.
    pub fn new(
        name: impl Into<Name>,
        base: impl AsRef<Path>,
        settings: ExportSettings,
        protected: &Protected,
    ) -> Result<Self, ToolsetError> {
        let name = name.into();
        if settings.read_only {
            return Self::read_only(name);
        }
        let export: Arc<dyn Tool> =
            Arc::new(export::FdToFile::new(&name, base.as_ref(), settings.into(), protected)?);
        let tools = looking_tools(&name)?;
        Ok(Self(StatelessToolset::new(name, tools.into_iter().chain([export]))))
    }

    /// Makes the toolset without the tool that writes files.
    pub fn read_only(name: impl Into<Name>) -> Result<Self, ToolsetError> {
        let name = name.into();
        let tools = looking_tools(&name)?;
        Ok(Self(StatelessToolset::new(name, tools)))
    }
}

fn looking_tools(toolset: &Name) -> Result<Vec<Arc<dyn Tool>>, SchemaError> {
    Ok(looks()?.into_iter().map(|look| Arc::new(look.in_toolset(toolset)) as Arc<dyn Tool>).collect())
}

/// The tools that only look at descriptors, or let go of them.
fn looks() -> Result<[Look; 4], SchemaError> {
    Ok([
        Look::new("read_fd", &read::description(), Schema::for_type::<read::Arguments>()?, read::run),
        Look::new("grep_fd", grep::DESCRIPTION, Schema::for_type::<grep::Arguments>()?, grep::run),
        Look::new("list_fd", manage::LIST, Schema::for_type::<manage::ListArguments>()?, manage::list),
        // Alone among the calls of a turn, so that what is read beside it is read before or after.
        Look::new("close_fd", manage::CLOSE, Schema::for_type::<manage::Arguments>()?, manage::close).alone(),
    ])
}

/// What a tool does with the descriptors of its call.
type Work = fn(&Descriptors, &Value, &Situation) -> Result<Output, Failure>;

/// What a tool knows of its call.
struct Situation {
    key: Key,
    cancellation: Cancellation,
}

/// A tool that asks nobody.
struct Look {
    definition: Arc<ToolDefinition>,
    work: Work,
}

impl Look {
    fn new(name: &str, description: &str, input: Schema, work: Work) -> Self {
        let mut definition = ToolDefinition::new(name, description, input);
        definition.access = Access::Read;
        definition.approval = Approval::PreApproved;
        definition.effect = Effect::Pure;
        definition.pages_itself = true;
        definition.needs = needs();
        Self { definition: Arc::new(definition), work }
    }

    fn alone(mut self) -> Self {
        let definition = Arc::make_mut(&mut self.definition);
        definition.sequential = true;
        definition.effect = Effect::Idempotent;
        self
    }

    fn in_toolset(mut self, toolset: &Name) -> Self {
        Arc::make_mut(&mut self.definition).toolset = Some(toolset.clone());
        self
    }
}

fn needs() -> Vec<NeedSpec> {
    vec![NeedSpec::for_conversation::<Descriptors>("file descriptors")]
}

fn table(call: &CallContext) -> Result<Arc<Descriptors>, Failure> {
    let need = Need::<Descriptors>::from_call(call);
    need.map(Need::into_inner).map_err(|missing| Failure::new(FailureKind::Context, missing.to_string()))
}

fn arguments<'a, T: Deserialize<'a>>(input: &'a Value) -> Result<T, Failure> {
    T::deserialize(input).map_err(|error| Failure::new(FailureKind::Arguments, error.to_string()))
}

impl Tool for Look {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn assesses(&self) -> bool {
        false
    }

    fn run<'a>(&'a self, input: Approved, call: &'a CallContext) -> BoxFuture<'a, ToolReply> {
        let situation = Situation { key: call.key().clone(), cancellation: call.cancellation() };
        let (work, table) = (self.work, table(call));
        Box::pin(call.blocking(move || {
            work(&*table.map_err(ToolError::from_failure)?, input.value(), &situation)
                .map_err(ToolError::from_failure)
        }))
    }
}

impl Toolset for FileDescriptors {
    fn name(&self) -> &Name {
        self.0.name()
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        self.0.definitions()
    }

    /// An agent whose references are not kept is told nothing of them.
    fn described_for(&self, definition: &Arc<ToolDefinition>, agent: &AgentSpec) -> Arc<ToolDefinition> {
        match definition.description.strip_suffix(read::REFERENCES) {
            Some(description) if !agent.descriptors.references => Arc::new(ToolDefinition {
                description: description.to_owned(),
                ..ToolDefinition::clone(definition)
            }),
            _ => definition.clone(),
        }
    }

    fn survives(&self) -> Survival {
        Survival::Stateless
    }

    /// The tools keep nothing between calls: the descriptors are those of the agent call.
    fn open<'a>(
        &'a self,
        opening: Opening<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>> {
        self.0.open(opening)
    }
}
