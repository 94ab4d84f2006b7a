//! A toolset reduced to some of its tools, for agents that list single tools and not their toolset.

use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{
    AgentSpec, Name, Opening, Survival, Tool, ToolDefinition, ToolError, Toolset, ToolsetInstance,
};

/// A toolset of which only some tools are offered.
pub struct ToolsetSubset {
    inner: Arc<dyn Toolset>,
    tools: Vec<Name>,
}

impl ToolsetSubset {
    /// Offers the named tools of a toolset.
    pub fn new(inner: Arc<dyn Toolset>, tools: Vec<Name>) -> Self {
        Self { inner, tools }
    }
}

impl Toolset for ToolsetSubset {
    fn name(&self) -> &Name {
        self.inner.name()
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        let mut definitions = self.inner.definitions();
        definitions.retain(|definition| self.tools.contains(&definition.name));
        definitions
    }

    fn described_for(&self, definition: &Arc<ToolDefinition>, agent: &AgentSpec) -> Arc<ToolDefinition> {
        self.inner.described_for(definition, agent)
    }

    fn survives(&self) -> Survival {
        self.inner.survives()
    }

    fn open<'a>(
        &'a self,
        opening: Opening<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>> {
        Box::pin(async move {
            let inner = self.inner.open(opening).await?;
            let is_offered = |tool: &&Arc<dyn Tool>| self.tools.contains(&tool.definition().name);
            let tools = inner.tools().iter().filter(is_offered).cloned().collect();
            Ok(Arc::new(SubsetInstance { inner, tools }) as Arc<dyn ToolsetInstance>)
        })
    }
}

struct SubsetInstance {
    inner: Arc<dyn ToolsetInstance>,
    tools: Vec<Arc<dyn Tool>>,
}

impl ToolsetInstance for SubsetInstance {
    fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}
