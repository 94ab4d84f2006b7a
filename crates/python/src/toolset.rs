//! A toolset of Python code: each agent call has an instance of its own in the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::BoxFuture;
use llm_do_core::{
    CallInfo, Context, Failure, Name, NoticeSink, Opening, Tool, ToolDefinition, ToolError, Toolset,
    ToolsetInstance,
};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::call::Request;
use crate::host::{Current, Host};
use crate::tool::{PythonTool, TIME_TO_LOOK};
use crate::wire::{Reply, ToHost, WireContext};

/// A toolset that Python code makes.
pub(crate) struct PythonToolset {
    pub(crate) host: Arc<Host>,
    pub(crate) name: Name,
    /// What the process calls it.
    pub(crate) id: Arc<str>,
    /// Its tools, without an instance.
    pub(crate) tools: Vec<PythonTool>,
}

/// A toolset that is open for one agent call.
pub(crate) struct OpenToolset {
    host: Arc<Host>,
    /// What people call it.
    name: Arc<str>,
    id: Arc<str>,
    /// What the process calls the instance.
    pub(crate) number: u64,
    info: CallInfo,
    context: Context,
    notices: NoticeSink,
    /// The process in which it is open, counted from 1; 0 before.
    open_in: AtomicU64,
    opening: Mutex<()>,
}

impl OpenToolset {
    /// Opens the instance in a process where it is not open: a process that was started again knows none.
    pub(crate) async fn open_in(&self, current: &Current) -> Result<(), Failure> {
        let wanted = current.generation + 1;
        if self.open_in.load(Ordering::Acquire) == wanted {
            return Ok(());
        }
        let _one_at_a_time = self.opening.lock().await;
        if self.open_in.load(Ordering::Acquire) == wanted {
            return Ok(());
        }
        let message = |id| {
            let context = WireContext::of_info(&self.info, &self.context, &self.host.root);
            ToHost::Open { id, toolset: &self.id, instance: self.number, context }.line()
        };
        self.request().run(&self.host, current, message).await?.into_value::<Value>()?;
        self.open_in.store(wanted, Ordering::Release);
        Ok(())
    }

    async fn close(&self) {
        // A process that has ended took the instance with it, and one that was started for this would know none.
        let Some(current) = self.host.running_in(self.open_in.load(Ordering::Acquire)) else { return };
        let message = |id| ToHost::Close { id, instance: self.number }.line();
        let closed = self.request().run(&self.host, &current, message).await;
        if let Err(failure) = closed.and_then(Reply::into_value::<Value>) {
            // The sink of an instance keeps what it cannot deliver.
            let _ = self.notices.send(format!("{} could not be closed: {}", self.name, failure.message));
        }
    }

    fn request(&self) -> Request<'_> {
        let (name, notices) = (&self.name, Some(&self.notices));
        Request { name, call: None, notices, counts: false, limit: Some(TIME_TO_LOOK) }
    }
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
            let open = Arc::new(OpenToolset {
                host: self.host.clone(),
                name: format!("toolset {}", self.name).into(),
                id: self.id.clone(),
                number: self.host.number(),
                info: opening.call.clone(),
                context: opening.context.clone(),
                notices: opening.notices.clone(),
                open_in: AtomicU64::new(0),
                opening: Mutex::new(()),
            });
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
