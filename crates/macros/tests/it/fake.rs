//! A runtime that does no more than call tools: it validates arguments and asks nobody.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use futures::future::BoxFuture;
use llm_do_core::{
    Approved, BlockingWork, CallContext, CallContextParts, CallInfo, Caller, Cancellation, Context, Failure,
    FailureKind, InnerEffect, Inspection, Key, Name, Outcome, Output, Payload, Remark, RunId, Sample, Tool,
    ToolReply, join_problems,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The fake runtime. What it was asked to do can be read afterwards.
#[derive(Default)]
pub(crate) struct Fake {
    tools: BTreeMap<Name, Arc<dyn Tool>>,
    context: Arc<Context>,
    calls: Mutex<Vec<(Name, Value)>>,
    remarks: Mutex<Vec<Remark>>,
    blocking: Mutex<Vec<ThreadId>>,
}

impl Fake {
    /// A runtime with some tools.
    pub(crate) fn with(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let tools = tools.into_iter().map(|tool| (tool.definition().name.clone(), tool)).collect();
        Self { tools, ..Self::default() }
    }

    /// Provides context values.
    pub(crate) fn providing(mut self, context: Context) -> Self {
        self.context = Arc::new(context);
        self
    }

    /// Returns what a tool sees of a call.
    pub(crate) fn call_context(self: &Arc<Self>) -> CallContext {
        let info = CallInfo {
            run: RunId(uuid::Uuid::nil()),
            id: Key::from("t1/tool/0"),
            parent: None,
            depth: 0,
            path: "main".into(),
            agent: "main".into(),
        };
        CallContext::new(CallContextParts {
            info: Arc::new(info),
            input: Payload::new(Value::Null),
            agent: None,
            model: None,
            context: self.context.clone(),
            cancellation: Cancellation::new(CancellationToken::new()),
            caller: self.clone(),
        })
    }

    /// Returns the calls that were made by name, with their arguments.
    pub(crate) fn calls(&self) -> Vec<(Name, Value)> {
        self.calls.lock().unwrap().clone()
    }

    /// Returns what was said.
    pub(crate) fn remarks(&self) -> Vec<Remark> {
        self.remarks.lock().unwrap().clone()
    }

    /// Returns the threads on which blocking code ran.
    pub(crate) fn blocking_threads(&self) -> Vec<ThreadId> {
        self.blocking.lock().unwrap().clone()
    }

    async fn dispatch(self: Arc<Self>, name: Name, input: Payload) -> Result<Output, Failure> {
        self.calls.lock().unwrap().push((name.clone(), input.value().clone()));
        let unknown = || Failure::new(FailureKind::Unknown, format!("no tool `{name}`"));
        let tool = self.tools.get(&name).ok_or_else(unknown)?;
        let accepted = tool.definition().input.accept(input.value().clone());
        let accepted =
            accepted.map_err(|problems| Failure::new(FailureKind::Arguments, join_problems(&problems)))?;
        run(&**tool, accepted.value, &self.call_context()).await.map_err(|error| error.into_failure())
    }
}

impl Caller for Fake {
    fn call(self: Arc<Self>, name: Name, input: Payload) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            match self.dispatch(name, input).await {
                Ok(output) => Outcome::Value(output),
                Err(failure) => Outcome::Failed(failure),
            }
        })
    }

    fn approve(self: Arc<Self>, _effect: InnerEffect) -> BoxFuture<'static, Outcome> {
        unreachable!("no tool here has inner effects")
    }

    fn sample(self: Arc<Self>, _sample: Sample) -> BoxFuture<'static, Outcome> {
        unreachable!("no tool here takes samples")
    }

    fn blocking(self: Arc<Self>, work: BlockingWork) -> BoxFuture<'static, ToolReply> {
        Box::pin(async move {
            let work = move || {
                self.blocking.lock().unwrap().push(thread::current().id());
                work()
            };
            tokio::task::spawn_blocking(work).await.unwrap()
        })
    }

    fn say(&self, remark: Remark) {
        self.remarks.lock().unwrap().push(remark);
    }

    fn inspect(&self) -> Inspection {
        Inspection::default()
    }
}

/// Runs a tool as the gate would, without looking at the arguments.
pub(crate) async fn run(tool: &dyn Tool, arguments: Value, call: &CallContext) -> ToolReply {
    tool.run(approved(arguments, None), call).await
}

#[expect(clippy::disallowed_methods, reason = "plays the gate")]
pub(crate) fn approved(arguments: Value, precondition: Option<Value>) -> Approved {
    Approved::issued_by_gate(Payload::new(arguments), precondition)
}

/// Runs a tool without arguments in a runtime of its own.
pub(crate) async fn answer(tool: impl Tool) -> ToolReply {
    run(&tool, Value::Object(Default::default()), &Arc::new(Fake::default()).call_context()).await
}
