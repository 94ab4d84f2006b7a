//! The tool `agent_create`.

use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{
    Access, Approval, Approved, Assessment, CallContext, Digest, Effect, Failure, FailureKind, Name,
    NeedSpec, Output, Payload, Schema, SchemaError, Subject, Tool, ToolDefinition, ToolError, ToolReply,
};
use llm_do_project::Workshop;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::creation::{AgentDefaults, Creation, NewAgent, locked, no_workshop};
use super::define;
use llm_do_tools::diff_preview;

const DESCRIPTION: &str = "Creates an agent that can be called by name at once. A person sees \
    the whole definition first. It gets no tools but those that you have. An agent that was created before under \
    this name is replaced.";

/// Creates agents.
pub(super) struct AgentCreate {
    definition: Arc<ToolDefinition>,
    maker: Arc<Maker>,
}

/// What creates them: it looks at files and writes them, so it works on threads of its own.
struct Maker {
    defaults: AgentDefaults,
}

/// What the assessment found.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Judged {
    /// The file that was shown.
    Creation { before: Option<Digest>, after: Digest },
    /// The agent cannot be created, so nobody was asked.
    Fails(Failure),
}

impl AgentCreate {
    pub(super) fn new(toolset: &Name, defaults: AgentDefaults) -> Result<Self, SchemaError> {
        let mut definition = define(toolset, "agent_create", DESCRIPTION, Schema::for_type::<NewAgent>()?);
        definition.access = Access::Admin;
        definition.approval = Approval::Ask;
        definition.effect = Effect::Idempotent;
        definition.sequential = true;
        definition.needs = vec![NeedSpec::typed::<Workshop>()];
        Ok(Self { definition: Arc::new(definition), maker: Arc::new(Maker { defaults }) })
    }
}

impl Maker {
    fn plan(&self, input: &Payload, call: &CallContext) -> Result<(Arc<Workshop>, Creation), Failure> {
        let workshop = call.context().get::<Workshop>().ok_or_else(no_workshop)?;
        let new = NewAgent::deserialize(input.value());
        let new = new.map_err(|error| Failure::new(FailureKind::Arguments, error.to_string()))?;
        let creation = Creation::plan(&workshop, &new, &self.defaults, call.agent(), &call.agents())?;
        Ok((workshop, creation))
    }

    fn judge(&self, input: &Payload, call: &CallContext) -> Result<Assessment, Failure> {
        let (workshop, creation) = self.plan(input, call)?;
        call.check_agent(&creation.spec)?;
        if creation.replaces_locked(&workshop) {
            return Err(locked(&creation.spec.name));
        }
        let shown = creation.file.display().to_string();
        let mut assessment = Assessment::new(Approval::Ask, creation.describe());
        assessment.preview = Some(match &creation.before {
            Some(before) => diff_preview(&shown, Some(before.as_bytes()), creation.definition.as_bytes()),
            None => creation.definition.clone(),
        });
        assessment.protected = true;
        assessment.reason = Some("it decides what an agent may do".to_owned());
        assessment.subjects = vec![Subject::Path(shown)];
        let (before, after) = creation.digests();
        assessment.precondition = Some(json!(Judged::Creation { before, after }));
        Ok(assessment)
    }

    fn create(&self, input: &Approved, call: &CallContext) -> Result<Output, Failure> {
        let judged = input.precondition().map(Judged::deserialize);
        let (before, after) = match judged {
            Some(Ok(Judged::Creation { before, after })) => (before, after),
            Some(Ok(Judged::Fails(failure))) => return Err(failure),
            Some(Err(_)) | None => {
                return Err(Failure::new(FailureKind::Tool, "the call was not judged; nothing was created"));
            }
        };
        let (workshop, creation) = self.plan(input.payload(), call)?;
        let (now, wanted) = creation.digests();
        // A call that is repeated after its result was lost finds its own file.
        if wanted != after || (now != before && now != Some(after)) {
            let message =
                format!("`{}` is not as it was shown; nothing was created", creation.file.display());
            return Err(Failure::new(FailureKind::Tool, message).with_hint("repeat the call"));
        }
        let created = creation.make(&workshop, |spec| call.add_agent(spec))?;
        Ok(Output::json(json!(created)))
    }
}

/// What cannot be created needs no approval: the precondition sees to it that it stays undone.
fn cannot(failure: Failure) -> Assessment {
    let precondition = Some(json!(Judged::Fails(failure.clone())));
    Assessment { precondition, ..Assessment::cannot(failure) }
}

impl Tool for AgentCreate {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn assess<'a>(&'a self, input: &'a Payload, call: &'a CallContext) -> BoxFuture<'a, Assessment> {
        let (maker, input, call) = (self.maker.clone(), input.clone(), call.clone());
        Box::pin(async move {
            let judging =
                tokio::task::spawn_blocking(move || maker.judge(&input, &call).unwrap_or_else(cannot));
            judging.await.unwrap_or_else(|error| {
                let mut blocked = Assessment::new(Approval::Blocked, "agent_create");
                blocked.reason = Some(format!("the call could not be judged: {error}"));
                blocked
            })
        })
    }

    fn run<'a>(&'a self, input: Approved, call: &'a CallContext) -> BoxFuture<'a, ToolReply> {
        let (maker, within) = (self.maker.clone(), call.clone());
        Box::pin(call.blocking(move || maker.create(&input, &within).map_err(ToolError::from_failure)))
    }
}
