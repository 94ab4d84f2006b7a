//! The object that `--output json` prints, and that ends `--output jsonl`.
//!
//! The types are the contract: `llm-do schema output` prints the JSON Schema that is made from them, and
//! docs/reference/output.md explains each field. A field is never left out, so that scripts can read it without a test
//! for its presence.
//!
//! This module writes nothing: see [`crate::host`] for who prints the object, and [`crate::failure_hint`] for the hint.

use std::sync::Arc;

use llm_do::RunReport;
use llm_do::approval::{ApprovalRequest, Decision};
use llm_do::call::FailureKind;
use llm_do::event::{Event, EventBody, ModelResult, RunId, Status};
use llm_do::model::{ModelResponse, StopReason};
use llm_do::project::{Diagnostic, Diagnostics};
use llm_do::usage::Usage;
use llm_do::value::Key;
use llm_do_record::question_id;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output;

/// The result of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "llm-do output")]
pub(crate) struct RunObject {
    /// `result`; only in the last line of `--output jsonl`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<LineKind>,
    /// How the run finished.
    status: RunStatus,
    /// The answer: a text, or a value if the agent has an output schema. `null` if there is none.
    output: Option<Value>,
    /// The text of an answer that was not completed, because the run ended before. `null` if no text had arrived.
    partial: Option<String>,
    /// The last answer of the model, if it does not fit the output schema of the agent.
    raw: Option<String>,
    /// Why the model of the agent stopped. `null` if no model answered.
    stop: Option<StopKind>,
    /// What went wrong, in one sentence. `null` if nothing did.
    error: Option<String>,
    /// What can be done about the error.
    hint: Option<String>,
    /// What a person should know: an answer that is empty or cut off, a request that was repeated, ..
    notices: Vec<NoticeObject>,
    /// Calls that were denied or blocked, also if the run went on without them.
    denied: Vec<DenialObject>,
    /// Questions that nobody has answered. A run with the status `parked` waits for them.
    questions: Vec<QuestionObject>,
    /// Errors and notices about the files of the project.
    diagnostics: Vec<Diagnostic>,
    /// What all model requests used together.
    usage: UsageObject,
    /// What the requests cost in US dollars. `null` if a price is unknown.
    cost_usd: Option<f64>,
    /// What was used, by model.
    models: Vec<ModelObject>,
    /// Lines that calls wrote to their error log.
    stderr: Vec<String>,
    /// The id of the run. `null` if the run did not start.
    run_id: Option<String>,
    /// The command that continues the run. `null` if it has a result, or is not recorded.
    resume: Option<String>,
    /// How long the run took, in milliseconds.
    duration_ms: u64,
}

/// Marks the last line of `--output jsonl`.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum LineKind {
    /// The result, after all events.
    Result,
}

/// How a run finished. Each status has one exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
enum RunStatus {
    /// The run started.
    Started(Status),
    /// Nothing ran.
    NotStarted(NotStarted),
}

/// Why nothing ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum NotStarted {
    /// Bad usage, a bad project, an unknown name or an input that does not fit.
    Invalid,
}

impl RunStatus {
    const INVALID: Self = Self::NotStarted(NotStarted::Invalid);

    /// The status of the run, unless the exit code says more.
    fn new(report: &RunReport, exit: Exit) -> Self {
        match exit {
            Exit::Usage => Self::INVALID,
            Exit::Denied => Self::Started(Status::Denied),
            _ => Self::Started(report.status),
        }
    }
}

/// Why a model stopped, the same for all providers.
///
/// It is a type of its own because the word that only one provider uses ([`StopReason::Other`]) is not part of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum StopKind {
    /// The answer is complete.
    EndTurn,
    /// It called tools; also if it gave a structured answer through a tool.
    ToolUse,
    /// The output limit cut the answer off.
    MaxTokens,
    /// It wrote a stop sequence.
    StopSequence,
    /// The model or a filter refused.
    Refusal,
    /// The provider paused a long turn.
    Pause,
    /// A reason that only the provider knows.
    Other,
}

impl From<&StopReason> for StopKind {
    fn from(reason: &StopReason) -> Self {
        match reason {
            StopReason::EndTurn => Self::EndTurn,
            StopReason::ToolUse => Self::ToolUse,
            StopReason::MaxTokens => Self::MaxTokens,
            StopReason::StopSequence => Self::StopSequence,
            StopReason::Refusal => Self::Refusal,
            StopReason::Pause => Self::Pause,
            StopReason::Other(_) => Self::Other,
        }
    }
}

/// A notice and where it belongs.
#[derive(Debug, Serialize, JsonSchema)]
struct NoticeObject {
    /// The chain of callers, such as `main > helper`; empty for the run itself.
    path: String,
    /// The notice.
    text: String,
}

/// A call that was denied or blocked.
#[derive(Debug, Serialize, JsonSchema)]
struct DenialObject {
    /// The chain of callers, such as `main > write_file`.
    path: String,
    /// The agent that made the call; empty for code outside any agent.
    agent: String,
    /// The tool or agent that was called.
    name: String,
    /// Who denied it.
    kind: DenialKind,
    /// Why.
    reason: String,
}

/// Who denied a call.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum DenialKind {
    /// A person, a program or the approval mode.
    Denied,
    /// Nobody: it had to ask, and nobody could be asked.
    Unasked,
    /// A rule of the project or the tool itself.
    Blocked,
}

/// A question that waits for an answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct QuestionObject {
    /// What `llm-do approve` and `llm-do deny` take.
    id: String,
    /// The id of the run.
    run_id: String,
    /// The chain of callers, such as `main > write_file`.
    path: String,
    /// The agent that made the call; empty for code outside any agent.
    agent: String,
    /// The tool or agent that is called.
    name: String,
    /// What the call would do.
    description: String,
    /// Why it asks.
    reason: String,
    /// The arguments of the call.
    arguments: Value,
    /// A preview such as a diff.
    preview: Option<String>,
    /// What can be granted for later calls, in the order of `llm-do approve --session N`.
    scopes: Vec<String>,
    /// Until when it can be answered. `null` if there is no end.
    expires: Option<String>,
}

impl QuestionObject {
    /// The object of a request.
    pub(crate) fn new(run: RunId, request: &ApprovalRequest) -> Self {
        Self {
            id: question_id(run, &request.id),
            run_id: run.to_string(),
            path: request.path.clone(),
            agent: request.agent.to_string(),
            name: request.name.to_string(),
            description: request.description.clone(),
            reason: request.reason.clone(),
            arguments: request.arguments.value().clone(),
            preview: request.preview.clone(),
            scopes: request.scopes.iter().map(ToString::to_string).collect(),
            expires: request.expires.map(|expires| expires.to_string()),
        }
    }
}

/// Requests and tokens. All counts are disjoint except `reasoning`, which is part of `output`.
#[derive(Debug, Serialize, JsonSchema)]
struct UsageObject {
    /// Requests that were sent, each attempt counted.
    requests: u64,
    /// Input tokens that no cache served.
    input: u64,
    /// Output tokens, reasoning included.
    output: u64,
    /// Input tokens read from a cache.
    cache_read: u64,
    /// Input tokens written to a cache.
    cache_write: u64,
    /// Output tokens spent on reasoning.
    reasoning: u64,
    /// Searches that the provider made on the web.
    searches: u64,
}

impl From<&Usage> for UsageObject {
    fn from(usage: &Usage) -> Self {
        Self {
            requests: usage.requests,
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            reasoning: usage.reasoning,
            searches: usage.searches,
        }
    }
}

/// What one model was used for.
#[derive(Debug, Serialize, JsonSchema)]
struct ModelObject {
    /// The model, as `provider:model`.
    name: String,
    #[serde(flatten)]
    usage: UsageObject,
    /// What its requests cost in US dollars. `null` if the price is unknown.
    cost_usd: Option<f64>,
}

/// A run that has ended, and what its report does not hold.
pub(crate) struct FinishedRun<'a> {
    /// What the run did.
    pub(crate) report: &'a RunReport,
    /// How the process would end.
    pub(crate) exit: Exit,
    /// Why there is no answer.
    pub(crate) error: Option<String>,
    /// What to do about it.
    pub(crate) hint: Option<String>,
    /// The text of an answer that was not completed.
    pub(crate) partial: Option<String>,
    /// What the author of the project should know.
    pub(crate) diagnostics: &'a Diagnostics,
    /// Notices that belong to the run and to no event.
    pub(crate) warnings: Vec<String>,
}

impl RunObject {
    /// The object of a run.
    pub(crate) fn new(finished: &FinishedRun<'_>) -> Self {
        let report = finished.report;
        let events = report.events();
        let total = report.usage.total();
        Self {
            kind: None,
            status: RunStatus::new(report, finished.exit),
            output: report.output.as_ref().map(|output| output.to_value()),
            partial: finished.partial.clone(),
            raw: unfit_answer(report),
            stop: responses(&events).last().map(|response| (&response.stop).into()),
            error: finished.error.clone(),
            hint: finished.hint.clone(),
            notices: notices(&events, &finished.warnings),
            denied: events.iter().filter_map(|event| denial(event, &events)).collect(),
            questions: questions(report),
            diagnostics: finished.diagnostics.0.clone(),
            usage: (&total).into(),
            cost_usd: cost(&total),
            models: models(report),
            stderr: report.stderr_log(),
            run_id: Some(report.id.to_string()),
            resume: report.can_resume.then(|| format!("llm-do resume {}", report.id)),
            duration_ms: u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// The object of a run that did not start.
    pub(crate) fn refused(problem: &CommandError) -> Self {
        let status = if problem.exit() == Exit::Usage {
            RunStatus::INVALID
        } else {
            RunStatus::Started(Status::Failed)
        };
        Self {
            kind: None,
            status,
            output: None,
            partial: None,
            raw: None,
            stop: None,
            error: Some(problem.summary()),
            hint: problem.hint(),
            notices: notices(&[], &[]),
            denied: Vec::new(),
            questions: Vec::new(),
            diagnostics: problem.diagnostics().to_vec(),
            usage: (&Usage::default()).into(),
            cost_usd: Some(0.0),
            models: Vec::new(),
            stderr: Vec::new(),
            run_id: None,
            resume: None,
            duration_ms: 0,
        }
    }

    /// Marks it as the last line of `--output jsonl`.
    pub(crate) fn into_last_line(mut self) -> Self {
        self.kind = Some(LineKind::Result);
        self
    }

    /// The object on one line.
    pub(crate) fn to_line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The JSON Schema of the object.
    pub(crate) fn schema() -> Value {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        settings.into_generator().into_root_schema_for::<Self>().to_value()
    }
}

/// The last answer of the model of the run's agent, if the run failed because it does not fit its schema.
pub(crate) fn unfit_answer(report: &RunReport) -> Option<String> {
    if report.status != Status::Output {
        return None;
    }
    let events = report.events();
    let message = &responses(&events).last()?.message;
    // A provider that enforces no schema is offered a tool for the answer.
    let called = message.tool_calls().last().map(|call| call.arguments.to_string());
    called.or_else(|| Some(message.text()))
}

/// The answers of the model of the agent that was run.
fn responses(events: &[Arc<Event>]) -> impl DoubleEndedIterator<Item = &Arc<ModelResponse>> {
    let answers = events.iter().filter(|event| event.call.parent == Some(Key::root()));
    answers.filter_map(|event| match &event.body {
        EventBody::ModelResponse { result: ModelResult::Response(response), .. } => Some(response),
        _ => None,
    })
}

fn notices(events: &[Arc<Event>], warnings: &[String]) -> Vec<NoticeObject> {
    let noticed = events.iter().filter_map(|event| match &event.body {
        EventBody::Notice { text } => {
            Some(NoticeObject { path: event.call.path.to_string(), text: text.clone() })
        }
        _ => None,
    });
    let warned = warnings.iter().map(|text| NoticeObject { path: String::new(), text: text.clone() });
    let early = output::early_notices().into_iter().map(|text| NoticeObject { path: String::new(), text });
    early.chain(noticed).chain(warned).collect()
}

/// A call that was denied or blocked, also if the run went on without it.
fn denial(event: &Event, events: &[Arc<Event>]) -> Option<DenialObject> {
    let EventBody::ApprovalDecided { decision, .. } = &event.body else { return None };
    let Decision::Refuse(failure) = &**decision else { return None };
    let kind = match failure.kind {
        FailureKind::Denied => DenialKind::Denied,
        FailureKind::Unasked => DenialKind::Unasked,
        FailureKind::Blocked => DenialKind::Blocked,
        _ => return None,
    };
    let path = event.call.path.to_string();
    let name = path.rsplit(" > ").next().unwrap_or_default().to_owned();
    let caller = events.iter().find(|other| Some(&other.call.id) == event.call.parent.as_ref());
    let agent = caller.map(|caller| caller.call.agent.to_string()).unwrap_or_default();
    Some(DenialObject { path, agent, name, kind, reason: failure.message.clone() })
}

/// The questions of a run that can be continued once they are answered.
fn questions(report: &RunReport) -> Vec<QuestionObject> {
    if !report.can_resume {
        return Vec::new();
    }
    report.open_requests().iter().map(|request| QuestionObject::new(report.id, request)).collect()
}

fn models(report: &RunReport) -> Vec<ModelObject> {
    let models = report.usage.iter().map(|(name, usage)| ModelObject {
        name: name.to_string(),
        usage: usage.into(),
        cost_usd: cost(usage),
    });
    models.collect()
}

/// What it cost; nothing if a price is unknown, because half a sum would look like a whole one.
fn cost(usage: &Usage) -> Option<f64> {
    (usage.cost.unpriced == 0).then(|| usage.cost.known.dollars())
}
