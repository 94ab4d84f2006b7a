//! Functions as tools.

use std::future::{self, Future};
use std::sync::Arc;

use futures::future::BoxFuture;

use super::{Declaration, FunctionReply, Parameters};
use crate::{Approved, Assessment, CallContext, Name, Payload, Tool, ToolDefinition, ToolReply};

type RunFunction<S> = dyn Fn(S, Approved, &CallContext) -> BoxFuture<'static, ToolReply> + Send + Sync;
type Assess<S> = fn(&S, &Payload, &CallContext) -> Assessment;

/// Describes a tool from its parameters and its result, with the careful defaults for all else.
pub fn define<R, V>(
    name: &str,
    description: &str,
    parameters: &impl Parameters,
    reply: &FunctionReply<R, V>,
) -> ToolDefinition {
    let mut declaration = Declaration::default();
    parameters.declare(&mut declaration);
    let mut definition = ToolDefinition::new(name, description, declaration.input());
    definition.output = reply.schema();
    definition.needs = declaration.needs();
    definition
}

/// A function with its definition: all of a tool but the state on which the function works.
pub struct Function<S> {
    definition: Arc<ToolDefinition>,
    run: Box<RunFunction<S>>,
    assess: Option<Assess<S>>,
}

impl<S> Function<S> {
    /// A tool of an async function.
    pub fn asynchronous<P, R, V, B, F>(
        definition: ToolDefinition,
        parameters: P,
        reply: FunctionReply<R, V>,
        body: B,
    ) -> Self
    where
        S: Send + 'static,
        P: Parameters,
        R: 'static,
        V: 'static,
        B: Fn(S, P::Values) -> F + Copy + Send + Sync + 'static,
        F: Future<Output = R> + Send + 'static,
    {
        Self::new(definition, move |state, approved, call| {
            let call = call.clone();
            Box::pin(async move {
                let values = parameters.take(&approved, &call)?;
                reply.give(body(state, values).await)
            })
        })
    }

    /// A tool of a sync function, which runs where it blocks nobody.
    pub fn blocking<P, R, V, B>(
        definition: ToolDefinition,
        parameters: P,
        reply: FunctionReply<R, V>,
        body: B,
    ) -> Self
    where
        S: Send + 'static,
        P: Parameters,
        R: 'static,
        V: 'static,
        B: Fn(S, P::Values) -> R + Copy + Send + Sync + 'static,
    {
        Self::new(definition, move |state, approved, call| {
            let call = call.clone();
            Box::pin(async move {
                let values = parameters.take(&approved, &call)?;
                call.blocking(move || reply.give(body(state, values))).await
            })
        })
    }

    fn new(
        definition: ToolDefinition,
        run: impl Fn(S, Approved, &CallContext) -> BoxFuture<'static, ToolReply> + Send + Sync + 'static,
    ) -> Self {
        Self { definition: Arc::new(definition), run: Box::new(run), assess: None }
    }

    /// Lets the tool judge its calls by their arguments.
    #[must_use]
    pub fn assessed_by(mut self, assess: Assess<S>) -> Self {
        self.assess = Some(assess);
        self
    }

    /// Says to which toolset the tool belongs.
    #[must_use]
    pub(super) fn with_toolset(mut self, toolset: &Name) -> Self {
        Arc::make_mut(&mut self.definition).toolset = Some(toolset.clone());
        self
    }

    /// Returns the definition.
    pub fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    pub(super) fn assesses(&self) -> bool {
        self.assess.is_some()
    }

    pub(super) fn assess(&self, state: &S, input: &Payload, call: &CallContext) -> Assessment {
        match self.assess {
            Some(assess) => assess(state, input, call),
            None => Assessment::new(self.definition.approval, self.definition.describe(input)),
        }
    }

    pub(super) fn run(&self, state: S, input: Approved, call: &CallContext) -> BoxFuture<'static, ToolReply> {
        (self.run)(state, input, call)
    }
}

/// The unit type of a free function.
pub trait FunctionTool: Send + Sync {
    /// Returns the function, which is described once.
    fn function() -> &'static Function<()>;
}

impl<T: FunctionTool> Tool for T {
    fn definition(&self) -> &Arc<ToolDefinition> {
        T::function().definition()
    }

    fn assess<'a>(&'a self, input: &'a Payload, call: &'a CallContext) -> BoxFuture<'a, Assessment> {
        Box::pin(future::ready(T::function().assess(&(), input, call)))
    }

    fn assesses(&self) -> bool {
        T::function().assesses()
    }

    fn run<'a>(&'a self, input: Approved, call: &'a CallContext) -> BoxFuture<'a, ToolReply> {
        T::function().run((), input, call)
    }
}
