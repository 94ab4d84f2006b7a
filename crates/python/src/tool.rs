//! A tool, or an entry, that is a Python function.

use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{
    Approval, Approved, Assessment, CallContext, Failure, Payload, Tool, ToolDefinition, ToolError, ToolReply,
};

use crate::call::{ASSESS_LIMIT, Request};
use crate::host::{Current, Host};
use crate::open_toolset::OpenToolset;
use crate::wire::{CallReply, ToHost, WireAssessment, WireContext};

/// A Python function that can be called.
#[derive(Clone)]
pub(crate) struct PythonTool {
    pub(crate) host: Arc<Host>,
    pub(crate) definition: Arc<ToolDefinition>,
    /// What the process calls it.
    pub(crate) target: Arc<str>,
    /// What people call it.
    pub(crate) name: Arc<str>,
    /// The toolset whose state it uses, opened for one agent call.
    pub(crate) instance: Option<Arc<OpenToolset>>,
}

impl PythonTool {
    /// The process, with the toolset of this tool opened in it.
    async fn ready(&self, call: &CallContext) -> Result<Current, Failure> {
        let current = self.host.current().await?;
        if let Some(ending) = &current.restarted {
            call.notice(format!(
                "the Python process {}; it was started again, and what its modules remembered is lost",
                ending.how
            ));
        }
        if let Some(instance) = &self.instance {
            instance.open_in(&current).await?;
        }
        Ok(current)
    }

    async fn call(&self, input: &Payload, call: &CallContext) -> Result<CallReply, Failure> {
        let current = self.ready(call).await?;
        let request =
            Request { name: &self.name, call: Some(call), notices: None, counts: true, limit: None };
        let message = |id| {
            let given = call.agent_input();
            let context = WireContext::from_call(
                call,
                &self.host.root,
                text_of(given.as_ref().unwrap_or(call.input())),
            );
            let (target, instance, args) = (&*self.target, self.instance_number(), input.value());
            ToHost::Call { id, target, instance, args, context }.line()
        };
        request.run(&self.host, &current, message).await
    }

    async fn judge(&self, input: &Payload, call: &CallContext) -> Result<WireAssessment, Failure> {
        let current = self.ready(call).await?;
        let limit = Some(ASSESS_LIMIT);
        let request = Request { name: &self.name, call: Some(call), notices: None, counts: false, limit };
        let message = |id| {
            let given = call.agent_input();
            let context = WireContext::from_call(call, &self.host.root, given.as_ref().map_or("", text_of));
            let (target, instance, args) = (&*self.target, self.instance_number(), input.value());
            ToHost::Assess { id, target, instance, args, context }.line()
        };
        request.run(&self.host, &current, message).await?.into_value()
    }

    fn instance_number(&self) -> Option<u64> {
        self.instance.as_ref().map(|instance| instance.number)
    }

    async fn assessment(&self, input: &Payload, call: &CallContext) -> Assessment {
        let own = self.definition.describe(input);
        match self.judge(input, call).await {
            Ok(judged) => Assessment {
                reason: judged.reason,
                ..Assessment::new(judged.approval, judged.description.unwrap_or(own))
            },
            Err(failure) => Assessment {
                reason: Some(format!("it could not be judged: {}", failure.message)),
                ..Assessment::new(Approval::Blocked, own)
            },
        }
    }
}

/// The text of an input: its own, or its JSON.
fn text_of(input: &Payload) -> &str {
    match input.value().get("input").and_then(serde_json::Value::as_str) {
        Some(text) => text,
        None => input.text(),
    }
}

impl Tool for PythonTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn assesses(&self) -> bool {
        self.definition.judges_calls
    }

    fn assess<'a>(&'a self, input: &'a Payload, call: &'a CallContext) -> BoxFuture<'a, Assessment> {
        match self.definition.judges_calls {
            true => Box::pin(self.assessment(input, call)),
            false => {
                let assessment = Assessment::new(self.definition.approval, self.definition.describe(input));
                Box::pin(std::future::ready(assessment))
            }
        }
    }

    fn run<'a>(&'a self, input: Approved, call: &'a CallContext) -> BoxFuture<'a, ToolReply> {
        Box::pin(async move {
            let reply = self.call(input.payload(), call).await;
            reply.and_then(CallReply::into_output).map_err(ToolError::from_failure)
        })
    }
}
