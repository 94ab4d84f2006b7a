//! Types whose methods are tools: a factory, its instances, and their tools.

use std::future;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::Function;
use crate::{
    Approved, Assessment, CallContext, Name, Opening, Payload, Tool, ToolDefinition, ToolError, ToolReply,
    Toolset, ToolsetInstance,
};

/// A type whose methods are tools.
pub trait Instance: Send + Sync + Sized + 'static {
    /// Describes the methods that are tools.
    fn functions() -> Vec<Function<Arc<Self>>>;

    /// Releases what the instance holds.
    fn release(&self) -> BoxFuture<'_, ()> {
        Box::pin(future::ready(()))
    }
}

type OpenFunction<T> = dyn for<'a> Fn(Opening<'a>) -> BoxFuture<'a, Result<T, ToolError>> + Send + Sync;

/// A toolset that makes an instance of a type for each agent call.
pub struct InstanceToolset<T> {
    name: Name,
    functions: Vec<Arc<Function<Arc<T>>>>,
    open: Box<OpenFunction<T>>,
}

impl<T: Instance> InstanceToolset<T> {
    /// A toolset whose instances are made at once.
    pub fn new(
        name: impl Into<Name>,
        open: impl Fn(Opening<'_>) -> Result<T, ToolError> + Send + Sync + 'static,
    ) -> Self {
        Self::opened_by(name.into(), Box::new(move |opening| Box::pin(future::ready(open(opening)))))
    }

    /// A toolset whose instances take time to make.
    pub fn new_async(
        name: impl Into<Name>,
        open: impl for<'a> Fn(Opening<'a>) -> BoxFuture<'a, Result<T, ToolError>> + Send + Sync + 'static,
    ) -> Self {
        Self::opened_by(name.into(), Box::new(open))
    }

    fn opened_by(name: Name, open: Box<OpenFunction<T>>) -> Self {
        let functions = T::functions().into_iter().map(|function| Arc::new(function.with_toolset(&name)));
        Self { functions: functions.collect(), name, open }
    }

    fn tools_of(&self, instance: &Arc<T>) -> Vec<Arc<dyn Tool>> {
        let tool = |function: &Arc<Function<Arc<T>>>| {
            Arc::new(InstanceTool { function: function.clone(), instance: instance.clone() }) as Arc<dyn Tool>
        };
        self.functions.iter().map(tool).collect()
    }
}

impl<T: Instance> Toolset for InstanceToolset<T> {
    fn name(&self) -> &Name {
        &self.name
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        self.functions.iter().map(|function| function.definition().clone()).collect()
    }

    fn open<'a>(
        &'a self,
        opening: Opening<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>> {
        Box::pin(async move {
            let instance = Arc::new((self.open)(opening).await?);
            let tools = self.tools_of(&instance);
            Ok(Arc::new(OpenInstance { instance, tools }) as Arc<dyn ToolsetInstance>)
        })
    }
}

/// An instance with its tools, which all work on it.
struct OpenInstance<T> {
    instance: Arc<T>,
    tools: Vec<Arc<dyn Tool>>,
}

impl<T: Instance> ToolsetInstance for OpenInstance<T> {
    fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.instance.release()
    }
}

/// A method bound to an instance.
struct InstanceTool<T> {
    function: Arc<Function<Arc<T>>>,
    instance: Arc<T>,
}

impl<T: Instance> Tool for InstanceTool<T> {
    fn definition(&self) -> &Arc<ToolDefinition> {
        self.function.definition()
    }

    fn assess<'a>(&'a self, input: &'a Payload, call: &'a CallContext) -> BoxFuture<'a, Assessment> {
        Box::pin(future::ready(self.function.assess(&self.instance, input, call)))
    }

    fn assesses(&self) -> bool {
        self.function.assesses()
    }

    fn run<'a>(&'a self, input: Approved, call: &'a CallContext) -> BoxFuture<'a, ToolReply> {
        self.function.run(self.instance.clone(), input, call)
    }
}
