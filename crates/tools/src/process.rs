//! Tools by which an agent works as a process does: it starts programs, forks itself, goes back, changes its own
//! settings, keeps an error log, and has descriptors for texts that are too long to be shown.

mod descriptors;
mod fork;
mod goto;
mod spawn;
mod stderr;
mod tune;

use std::sync::Arc;

use crate::toolset_error::ToolsetError;
use futures::future::{self, BoxFuture};
use llm_do_core::{
    Access, AgentSpec, Approval, Approved, CallContext, Effect, Failure, FailureKind, Name, Opening, Schema,
    SchemaError, StatelessToolset, Survival, Tool, ToolDefinition, ToolError, ToolReply, Toolset,
    ToolsetInstance,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use descriptors::{ExportSettings, FileDescriptors};

/// Settings of the toolset `process`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ProcessSettings {
    /// How many children one fork may have.
    pub max_forks: usize,
}

impl Default for ProcessSettings {
    fn default() -> Self {
        Self { max_forks: 10 }
    }
}

/// The toolset `process`: `spawn`, `fork`, `goto`, `tune`.
pub struct Process(StatelessToolset);

/// The toolset `stderr`: `write_stderr`.
pub struct Stderr(StatelessToolset);

impl Process {
    /// Makes the toolset.
    pub fn new(name: impl Into<Name>, settings: ProcessSettings) -> Result<Self, ToolsetError> {
        if !(1..=MAX_FORKS).contains(&settings.max_forks) {
            let message = format!("`max_forks` is {}, expected 1 to {MAX_FORKS}", settings.max_forks);
            return Err(ToolsetError::Setting(message));
        }
        let acts = [spawn::tool(), fork::tool(settings.max_forks), goto::tool(), tune::tool()];
        Ok(Self(grouped(name.into(), acts)?))
    }
}

impl Stderr {
    /// Makes the toolset.
    pub fn new(name: impl Into<Name>) -> Result<Self, ToolsetError> {
        Ok(Self(grouped(name.into(), [stderr::tool()])?))
    }
}

/// No fork has more children than these, whatever is set: they all run at once.
const MAX_FORKS: usize = 100;

/// Groups tools that keep nothing between calls.
fn grouped(
    name: Name,
    acts: impl IntoIterator<Item = Result<Act, SchemaError>>,
) -> Result<StatelessToolset, SchemaError> {
    let tools: Result<Vec<Arc<dyn Tool>>, SchemaError> =
        acts.into_iter().map(|act| Ok(Arc::new(act?.in_toolset(&name)) as Arc<dyn Tool>)).collect();
    Ok(StatelessToolset::new(name, tools?))
}

impl Toolset for Process {
    fn name(&self) -> &Name {
        self.0.name()
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        self.0.definitions()
    }

    fn described_for(&self, definition: &Arc<ToolDefinition>, agent: &AgentSpec) -> Arc<ToolDefinition> {
        match definition.name.as_str() {
            spawn::NAME => spawn::described_for(definition, agent),
            _ => definition.clone(),
        }
    }

    fn survives(&self) -> Survival {
        Survival::Stateless
    }

    fn open<'a>(
        &'a self,
        opening: Opening<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>> {
        self.0.open(opening)
    }
}

impl Toolset for Stderr {
    fn name(&self) -> &Name {
        self.0.name()
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        self.0.definitions()
    }

    fn survives(&self) -> Survival {
        Survival::Stateless
    }

    fn open<'a>(
        &'a self,
        opening: Opening<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>> {
        self.0.open(opening)
    }
}

type Work = dyn Fn(Value, CallContext) -> BoxFuture<'static, ToolReply> + Send + Sync;

/// A tool that does something with its own call. It asks nobody: what it calls passes the gate itself.
struct Act {
    definition: ToolDefinition,
    work: Box<Work>,
}

impl Act {
    fn new<A, F, Fut>(name: &str, description: &str, work: F) -> Result<Self, SchemaError>
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(A, CallContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ToolReply> + Send + 'static,
    {
        let mut definition = ToolDefinition::new(name, description, Schema::for_type::<A>()?);
        definition.access = Access::Read;
        definition.ceiling = Some(Access::Admin);
        definition.approval = Approval::PreApproved;
        definition.effect = Effect::Calls;
        let work = move |input: Value, call: CallContext| -> BoxFuture<'static, ToolReply> {
            match serde_json::from_value(input) {
                Ok(arguments) => Box::pin(work(arguments, call)),
                Err(error) => Box::pin(future::ready(Err(error.into()))),
            }
        };
        Ok(Self { definition, work: Box::new(work) })
    }

    fn define(mut self, change: impl FnOnce(&mut ToolDefinition)) -> Self {
        change(&mut self.definition);
        self
    }

    fn in_toolset(mut self, toolset: &Name) -> ActTool {
        self.definition.toolset = Some(toolset.clone());
        ActTool { definition: Arc::new(self.definition), work: self.work }
    }
}

struct ActTool {
    definition: Arc<ToolDefinition>,
    work: Box<Work>,
}

impl Tool for ActTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn assesses(&self) -> bool {
        false
    }

    fn run<'a>(&'a self, input: Approved, call: &'a CallContext) -> BoxFuture<'a, ToolReply> {
        (self.work)(input.value().clone(), call.clone())
    }
}

fn wrong(message: impl Into<String>) -> ToolError {
    ToolError::from_failure(Failure::new(FailureKind::Arguments, message))
}
