//! Tools and toolsets: what an action is, who makes it, and how it is run.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    AgentSpec, Approval, Assessment, CallContext, CallInfo, Context, Control, Digest, Name, NeedSpec,
    NoticeSink, Output, Payload, Schema, ToolError,
};

/// What a callable may do at most. Ordered: read is less than write, write less than admin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Looks, changes nothing.
    Read,
    /// Changes things.
    Write,
    /// Changes how things are run.
    Admin,
}

impl Access {
    /// Returns the word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

/// What happens when a call is begun twice: decides whether a resume may repeat it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effect {
    /// No effect at all.
    Pure,
    /// The same effect, however often.
    Idempotent,
    /// A new effect each time: never repeated silently.
    #[default]
    Once,
    /// No effects but the calls that it makes: run again from its start, its calls answered from the record.
    Calls,
}

impl Effect {
    /// Returns whether a call with a recorded intent but no result may be run again.
    pub fn may_repeat(self) -> bool {
        !matches!(self, Self::Once)
    }
}

/// Everything that is known about a tool without running it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolDefinition {
    /// The name by which it is called.
    pub name: Name,
    /// The toolset that it belongs to, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toolset: Option<Name>,
    /// What it does, for the model.
    pub description: String,
    /// What it takes.
    pub input: Schema,
    /// What it gives, where that is declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Schema>,
    /// What it may do at most.
    pub access: Access,
    /// What the calls may do at most that it makes; by default no more than itself. Whatever it says, they may do no
    /// more than its caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Access>,
    /// Whether it must ask.
    pub approval: Approval,
    /// Whether the tool judges each call itself, so that single calls may run freely or be blocked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judges_calls: bool,
    /// What a person should know before it runs at all, such as a limit that its settings lift.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What happens when it is begun twice.
    pub effect: Effect,
    /// The context values that it needs.
    pub needs: Vec<NeedSpec>,
    /// How long one call may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<Duration>,
    /// Whether it runs alone among the calls of one turn.
    pub sequential: bool,
    /// Whether only a person or code may call it: no model is offered it, and none may name it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manual_only: bool,
    /// Whether its code may call agents and other tools besides what it does itself, as far as that is known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_call: bool,
    /// What its answer changes in the conversation of the agent whose model calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// Whether its results are never put behind a file descriptor: it pages itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pages_itself: bool,
}

impl ToolDefinition {
    /// A definition with the careful defaults: access write, approval ask, effect once.
    pub fn new(name: impl Into<Name>, description: impl Into<String>, input: Schema) -> Self {
        Self {
            name: name.into(),
            toolset: None,
            description: description.into(),
            input,
            output: None,
            access: Access::Write,
            ceiling: None,
            approval: Approval::Ask,
            judges_calls: false,
            notes: Vec::new(),
            effect: Effect::Once,
            needs: Vec::new(),
            time_limit: None,
            sequential: false,
            manual_only: false,
            may_call: false,
            control: None,
            pages_itself: false,
        }
    }

    /// Returns the digest to which grants are bound: another definition needs another approval.
    pub fn digest(&self) -> Digest {
        Digest::hash(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Describes a call for a person: `name(key: value, ..)`.
    pub fn describe(&self, input: &Payload) -> String {
        describe_call(&self.name, input)
    }
}

/// Describes a call for a person: `name(key: value, ..)`.
pub fn describe_call(name: &str, input: &Payload) -> String {
    let arguments = match input.object() {
        Some(map) => {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            // A key that a model made up is shown as JSON, so that it cannot dress up the line.
            let shown = |key: &str| {
                if key.chars().all(plain) { key.to_owned() } else { Value::from(key).to_string() }
            };
            map.iter().map(|(key, value)| format!("{}: {value}", shown(key))).collect::<Vec<_>>().join(", ")
        }
        None => input.text().to_owned(),
    };
    format!("{name}({arguments})")
}

/// What a tool answers.
pub type ToolReply = Result<Output, ToolError>;

/// An action that can be called by name.
///
/// Facts about a tool are data in its definition; [`Tool::assess`] may judge one call from its arguments.
pub trait Tool: Send + Sync {
    /// Describes the tool to the model and to the gate.
    fn definition(&self) -> &Arc<ToolDefinition>;

    /// Says what a call would do, without doing any of it. By default, what the definition says.
    fn assess<'a>(&'a self, input: &'a Payload, _call: &'a CallContext) -> BoxFuture<'a, Assessment> {
        let definition = self.definition();
        let assessment = Assessment::new(definition.approval, definition.describe(input));
        Box::pin(std::future::ready(assessment))
    }

    /// Returns whether [`Tool::assess`] is more than the definition, so that the gate can skip it.
    fn assesses(&self) -> bool {
        true
    }

    /// Runs the tool. Called only after the call was approved.
    fn run<'a>(&'a self, input: Approved, call: &'a CallContext) -> BoxFuture<'a, ToolReply>;
}

/// Arguments that passed the gate. Only the gate makes one, so what runs is what was shown.
#[derive(Debug, Clone)]
pub struct Approved {
    payload: Payload,
    precondition: Option<Value>,
}

impl Approved {
    /// Seals what the gate allowed. Not for anything but the gate and tests of single tools.
    #[doc(hidden)]
    pub fn issued_by_gate(payload: Payload, precondition: Option<Value>) -> Self {
        Self { payload, precondition }
    }

    /// Returns the arguments.
    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    /// Returns the arguments as JSON.
    pub fn value(&self) -> &Value {
        self.payload.value()
    }

    /// Returns what the assessment found and the tool must find again before it acts.
    pub fn precondition(&self) -> Option<&Value> {
        self.precondition.as_ref()
    }
}

/// What becomes of the state of a toolset instance if the process ends and the run goes on in another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Survival {
    /// There is none: an instance keeps nothing between calls.
    Stateless,
    /// A new instance is as the old one was.
    Restorable,
    /// It is gone, and the model is told so.
    #[default]
    Lost,
}

/// A named factory of tools. Each agent call opens its own instance and closes it on every way out.
pub trait Toolset: Send + Sync {
    /// Returns the name by which agents list it.
    fn name(&self) -> &Name;

    /// Describes the tools that an instance will have, without opening one.
    fn definitions(&self) -> Vec<Arc<ToolDefinition>>;

    /// Describes a tool as one agent sees it, where that differs.
    fn described_for(&self, definition: &Arc<ToolDefinition>, _agent: &AgentSpec) -> Arc<ToolDefinition> {
        definition.clone()
    }

    /// Says what becomes of the state of an instance if the process ends and the run goes on in another one.
    fn survives(&self) -> Survival {
        Survival::Lost
    }

    /// Opens an instance for one agent call.
    fn open<'a>(&'a self, opening: Opening<'a>)
    -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>>;
}

/// What a toolset sees when it is opened.
#[derive(Clone, Copy)]
pub struct Opening<'a> {
    /// The call that opens it.
    pub call: &'a CallInfo,
    /// The settings that the agent gives, or null.
    pub settings: &'a Value,
    /// The context values.
    pub context: &'a Context,
    /// Tells people something in the name of the call, for as long as the instance is open.
    pub notices: &'a NoticeSink,
}

/// The tools of one agent call, with the state they share.
pub trait ToolsetInstance: Send + Sync {
    /// Returns the tools, as described by the factory.
    fn tools(&self) -> &[Arc<dyn Tool>];

    /// Releases what the instance holds. Called exactly once, on success, error, panic and cancellation.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A toolset without state: the same tools for everyone, nothing to open or close.
pub struct StatelessToolset {
    name: Name,
    tools: Arc<StatelessTools>,
}

struct StatelessTools(Vec<Arc<dyn Tool>>);

impl StatelessToolset {
    /// Groups tools under a name.
    pub fn new(name: impl Into<Name>, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        Self { name: name.into(), tools: Arc::new(StatelessTools(tools.into_iter().collect())) }
    }
}

impl Toolset for StatelessToolset {
    fn name(&self) -> &Name {
        &self.name
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.0.iter().map(|tool| tool.definition().clone()).collect()
    }

    fn survives(&self) -> Survival {
        Survival::Stateless
    }

    fn open<'a>(
        &'a self,
        _opening: Opening<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>> {
        Box::pin(std::future::ready(Ok(self.tools.clone() as Arc<dyn ToolsetInstance>)))
    }
}

impl ToolsetInstance for StatelessTools {
    fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.0
    }
}
