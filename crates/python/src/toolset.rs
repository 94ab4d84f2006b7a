//! A toolset of Python code: each agent call has an instance of its own in the process.

use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{Name, Opening, Tool, ToolDefinition, ToolError, Toolset, ToolsetInstance};
use serde_json::Value;

use crate::host::Host;
use crate::open_toolset::OpenToolset;
use crate::tool::PythonTool;

/// A toolset that Python code makes.
pub(crate) struct PythonToolset {
    pub(crate) host: Arc<Host>,
    pub(crate) name: Name,
    /// What the process calls it.
    pub(crate) id: Arc<str>,
    /// Its tools, without an instance.
    pub(crate) tools: Vec<PythonTool>,
}

impl Toolset for PythonToolset {
    fn name(&self) -> &Name {
        &self.name
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.iter().map(|tool| tool.definition.clone()).collect()
    }

    fn open<'a>(
        &'a self,
        opening: Opening<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>> {
        Box::pin(async move {
            if has_settings(opening.settings) {
                return Err(ToolError::new(format!("the Python toolset `{}` takes no settings", self.name)));
            }
            let open = Arc::new(OpenToolset::new(&self.host, self.name.as_str(), &self.id, &opening));
            let current = self.host.current().await.map_err(ToolError::from_failure)?;
            open.open_in(&current).await.map_err(ToolError::from_failure)?;
            let tool = |tool: &PythonTool| {
                Arc::new(PythonTool { instance: Some(open.clone()), ..tool.clone() }) as Arc<dyn Tool>
            };
            let tools = self.tools.iter().map(tool).collect();
            Ok(Arc::new(PythonInstance { open: open.clone(), tools }) as Arc<dyn ToolsetInstance>)
        })
    }
}

/// Returns whether an agent gives settings: a mapping without keys is none.
fn has_settings(settings: &Value) -> bool {
    settings.as_object().map_or(!settings.is_null(), |settings| !settings.is_empty())
}

/// The tools of one agent call.
struct PythonInstance {
    open: Arc<OpenToolset>,
    tools: Vec<Arc<dyn Tool>>,
}

impl ToolsetInstance for PythonInstance {
    fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.open.close())
    }
}
