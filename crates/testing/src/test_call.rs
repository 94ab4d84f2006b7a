//! A call for a single tool: context values, stubbed calls and approvals, and no runtime.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{
    Approved, Assessment, BlockingWork, CallContext, CallContextParts, CallInfo, Caller, Cancellation,
    Context, DecidedBy, Decision, Failure, FailureKind, InnerEffect, Inspection, Key, Name, Outcome, Output,
    Payload, Permit, Remark, RunId, Sample, Tool, ToolError, ToolReply,
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Runs one tool in a context made for the test.
///
/// The input is validated against the tool's schema first, as the gate would do it.
#[derive(Default)]
pub struct TestCall {
    context: Context,
    stubs: Stubs,
    token: CancellationToken,
}

#[derive(Default)]
struct Stubs {
    calls: HashMap<Name, Box<Stub>>,
    approvals: HashMap<Name, Result<(), String>>,
    seen: Arc<Mutex<Seen>>,
}

type Stub = dyn Fn(&Value) -> Result<Output, Failure> + Send + Sync;

#[derive(Debug, Default)]
struct Seen {
    calls: Vec<(Name, Value)>,
    approvals: Vec<InnerEffect>,
    remarks: Vec<Remark>,
}

impl TestCall {
    /// A call without context values or stubs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Provides a context value.
    #[must_use]
    pub fn provide<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.context = self.context.with(value);
        self
    }

    /// Provides a context value by name.
    #[must_use]
    pub fn provide_named(mut self, name: &str, value: Value) -> Self {
        self.context = self.context.with_named(name, value);
        self
    }

    /// Answers calls of a name.
    #[must_use]
    pub fn on_call(
        mut self,
        name: &str,
        answer: impl Fn(&Value) -> Result<Output, Failure> + Send + Sync + 'static,
    ) -> Self {
        self.stubs.calls.insert(name.into(), Box::new(answer));
        self
    }

    /// Allows inner effects of a name.
    #[must_use]
    pub fn allow(mut self, effect: &str) -> Self {
        self.stubs.approvals.insert(effect.into(), Ok(()));
        self
    }

    /// Denies inner effects of a name, with words.
    #[must_use]
    pub fn deny(mut self, effect: &str, message: &str) -> Self {
        self.stubs.approvals.insert(effect.into(), Err(message.to_owned()));
        self
    }

    /// Cancels the call before it starts.
    #[must_use]
    pub fn cancelled(self) -> Self {
        self.token.cancel();
        self
    }

    /// Cancels the call when the token is cancelled.
    #[must_use]
    pub fn cancelled_by(mut self, token: CancellationToken) -> Self {
        self.token = token;
        self
    }

    /// Asks the tool what a call would do.
    pub async fn assess(self, tool: impl Into<Arc<dyn Tool>>, input: Value) -> Assessment {
        let (tool, payload) = (tool.into(), Payload::new(input));
        let call = self.into_context(tool.definition().name.clone(), payload.clone());
        tool.assess(&payload, &call).await
    }

    /// Runs the tool.
    pub async fn run(self, tool: impl Into<Arc<dyn Tool>>, input: Value) -> TestReply {
        let tool = tool.into();
        let seen = self.stubs.seen.clone();
        let reply = self.reply(&*tool, input).await;
        TestReply { reply, seen }
    }

    async fn reply(self, tool: &dyn Tool, input: Value) -> ToolReply {
        let definition = tool.definition();
        if let Some(need) = definition.needs.iter().find(|need| !self.context.meets(need)) {
            return Err(ToolError::new(format!("the test does not provide `{}`", need.label())));
        }
        let accepted = definition.input.accept(input);
        let arguments =
            accepted.map_err(|problems| ToolError::new(llm_do_core::join_problems(&problems)))?.value;
        let payload = Payload::new(arguments);
        let call = self.into_context(definition.name.clone(), payload.clone());
        #[expect(clippy::disallowed_methods, reason = "a test of a single tool stands in for the gate")]
        let approved = Approved::issued_by_gate(payload, None);
        tool.run(approved, &call).await
    }

    fn into_context(self, name: Name, input: Payload) -> CallContext {
        let info = CallInfo {
            run: RunId(uuid::Uuid::nil()),
            id: Key::from("1"),
            parent: None,
            depth: 0,
            path: name.as_str().into(),
            agent: Name::from("test"),
        };
        CallContext::new(CallContextParts {
            info: Arc::new(info),
            input,
            agent: None,
            model: None,
            context: Arc::new(self.context),
            cancellation: Cancellation::new(self.token),
            caller: Arc::new(self.stubs),
        })
    }
}

/// What a tool answered in a test, and what it did through its call.
pub struct TestReply {
    reply: ToolReply,
    seen: Arc<Mutex<Seen>>,
}

impl TestReply {
    /// Returns the answer.
    pub fn reply(&self) -> &ToolReply {
        &self.reply
    }

    /// Returns the answer as text; an error stops the test.
    pub fn text(&self) -> Arc<str> {
        match &self.reply {
            Ok(output) => output.to_text(),
            Err(error) => panic!("the tool answered with an error: {error}"),
        }
    }

    /// Returns the words of the error; an answer stops the test.
    pub fn error(&self) -> String {
        match &self.reply {
            Ok(output) => panic!("the tool answered: {}", output.to_text()),
            Err(error) => error.to_string(),
        }
    }

    /// Returns the calls that the tool made.
    pub fn calls(&self) -> Vec<(Name, Value)> {
        self.seen.lock().calls.clone()
    }

    /// Returns the inner effects that the tool put to the gate.
    pub fn approvals(&self) -> Vec<InnerEffect> {
        self.seen.lock().approvals.clone()
    }

    /// Returns what the tool said.
    pub fn remarks(&self) -> Vec<Remark> {
        self.seen.lock().remarks.clone()
    }
}

impl Stubs {
    fn seen(&self) -> parking_lot::MutexGuard<'_, Seen> {
        self.seen.lock()
    }
}

fn failed(kind: FailureKind, message: String) -> Outcome {
    Outcome::Failed(Failure::new(kind, message))
}

impl Caller for Stubs {
    fn call(self: Arc<Self>, name: Name, input: Payload) -> BoxFuture<'static, Outcome> {
        self.seen().calls.push((name.clone(), input.value().clone()));
        let outcome = match self.calls.get(&name).map(|stub| stub(input.value())) {
            Some(Ok(output)) => Outcome::Value(output),
            Some(Err(failure)) => Outcome::Failed(failure),
            None => failed(
                FailureKind::Unknown,
                format!("the test has no answer for a call of `{name}`: add `.on_call`"),
            ),
        };
        Box::pin(std::future::ready(outcome))
    }

    fn approve(self: Arc<Self>, effect: InnerEffect) -> BoxFuture<'static, Outcome> {
        self.seen().approvals.push(effect.clone());
        let outcome = match self.approvals.get(&effect.name) {
            Some(Ok(())) => Outcome::Decision(Arc::new(Decision::Allow(Arc::new(permit(effect.payload))))),
            Some(Err(message)) => failed(FailureKind::Denied, format!("denied: {message}")),
            None => failed(
                FailureKind::Unasked,
                format!("the test does not allow `{}`: add `.allow` or `.deny`", effect.name),
            ),
        };
        Box::pin(std::future::ready(outcome))
    }

    fn sample(self: Arc<Self>, _sample: Sample) -> BoxFuture<'static, Outcome> {
        Box::pin(std::future::ready(Outcome::Sample(0)))
    }

    fn blocking(self: Arc<Self>, work: BlockingWork) -> BoxFuture<'static, ToolReply> {
        Box::pin(async move { tokio::task::spawn_blocking(work).await? })
    }

    fn say(&self, remark: Remark) {
        self.seen().remarks.push(remark);
    }

    fn inspect(&self) -> Inspection {
        Inspection::default()
    }
}

fn permit(arguments: Payload) -> Permit {
    Permit {
        digest: arguments.digest(),
        arguments,
        by: DecidedBy::Approver,
        edited: false,
        repairs: Vec::new(),
        precondition: None,
        grant: None,
    }
}
