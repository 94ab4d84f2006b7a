//! The tool `shell`: reads its arguments, lets the session judge and run them, and answers.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use llm_do_core::{
    Approval, Approved, Assessment, CallContext, Failure, FailureKind, Name, Output, Payload, Schema,
    SchemaError, Tool, ToolDefinition, ToolError, ToolReply,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capture::Capture;
use super::confinement::{Confinement, Purpose};
use super::execute::{Bounds, Execution, ExecutionEnd, Watcher, execute};
use super::session::ShellSession;
use super::settings::MAX_TIMEOUT;

const DESCRIPTION: &str = "Runs listed programs and returns what they print. No shell reads the command: \
    words, quotes, `|`, `&&`, `||` and `;` work; variables, wildcards, redirects, substitutions and background \
    processes do not. Paths are relative to the project. Standard input is empty.";

/// Describes the tool.
pub(crate) fn definition(
    toolset: &Name,
    prefix: &str,
    confinement: &Confinement,
) -> Result<ToolDefinition, SchemaError> {
    let input = Schema::for_type::<Arguments>()?;
    let mut definition = ToolDefinition::new(format!("{prefix}shell"), DESCRIPTION, input);
    definition.toolset = Some(toolset.clone());
    definition.judges_calls = true;
    definition.notes = confinement.loosened();
    definition.output = Some(Schema::for_output::<Printed>()?);
    Ok(definition)
}

/// What a call takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The command, such as `grep -rn 'TODO' src | head -n 20`.
    command: String,
    /// Seconds after which the command is killed. Default 30, at most 600.
    #[serde(default)]
    #[schemars(range(min = 1, max = 600))]
    timeout: Option<u64>,
}

/// What a call gives.
#[derive(Debug, Serialize, JsonSchema)]
struct Printed {
    /// What was printed to standard output.
    stdout: String,
    /// What was printed to standard error.
    stderr: String,
    /// The exit code of the last program; 128 and the number of the signal that ended it.
    exit_code: i32,
    /// Says that something was left out; a mark in the text says where and how much.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    truncated: bool,
    /// How many bytes were printed to standard output.
    stdout_bytes: u64,
    /// How many bytes were printed to standard error.
    stderr_bytes: u64,
    /// What may be the reason of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// What was left out because it is secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// The tool of one toolset instance.
pub(crate) struct ShellTool {
    definition: Arc<ToolDefinition>,
    session: Arc<ShellSession>,
}

impl ShellTool {
    pub(crate) fn new(definition: Arc<ToolDefinition>, session: Arc<ShellSession>) -> Self {
        Self { definition, session }
    }

    async fn judge(&self, input: &Payload) -> Assessment {
        let blocked = |reason: String| {
            let mut assessment = Assessment::new(Approval::Blocked, self.definition.describe(input));
            assessment.reason = Some(reason);
            assessment
        };
        let arguments = match arguments(input) {
            Ok(arguments) => arguments,
            Err(error) => return blocked(error),
        };
        match self.session.consider(&arguments.command).await {
            Ok(considered) => self.session.assessment(&considered),
            Err(refusal) => blocked(refusal.to_string()),
        }
    }

    async fn execute(&self, input: &Approved, call: &CallContext) -> ToolReply {
        let arguments = arguments(input.payload()).map_err(ToolError::new)?;
        let considered = self.session.consider(&arguments.command).await.map_err(ToolError::new)?;
        if !considered.is_covered_by(input.precondition()) {
            let reasons = considered.reasons();
            return Err(ToolError::new(format!("not run, as this was not approved: {reasons}")));
        }
        let prepared = self.session.prepare(&considered).map_err(ToolError::new)?;
        let confinement = &self.session.confinement;
        let purpose = Purpose::from_approval(considered.judgment.approval);
        let sandbox = confinement.sandbox(purpose).map_err(ToolError::new)?;
        if let Some(notice) = confinement.notice_for(call.run_id()) {
            call.notice(notice);
        }
        let seconds = arguments.timeout.unwrap_or(self.session.timeout).min(MAX_TIMEOUT);
        let bounds = Bounds { time: Duration::from_secs(seconds), output: self.session.max_output_bytes };
        let watcher = Watcher { cancellation: call.cancellation(), progress: call.progress() };
        let execution = execute(&prepared, &self.session.env, sandbox, bounds, &watcher).await;
        let note = considered.left_out();
        reply(execution, seconds, note, |code, stderr| confinement.hint(purpose, code, stderr))
    }
}

impl Tool for ShellTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn assess<'a>(&'a self, input: &'a Payload, _call: &'a CallContext) -> BoxFuture<'a, Assessment> {
        Box::pin(self.judge(input))
    }

    fn run<'a>(&'a self, input: Approved, call: &'a CallContext) -> BoxFuture<'a, ToolReply> {
        Box::pin(async move { self.execute(&input, call).await })
    }
}

fn arguments(input: &Payload) -> Result<Arguments, String> {
    Arguments::deserialize(input.value()).map_err(|error| error.to_string())
}

/// The exit code of shells for a program that cannot be executed.
const NOT_EXECUTABLE: i32 = 126;

fn reply(
    execution: Execution,
    seconds: u64,
    note: Option<String>,
    hint: impl FnOnce(i32, &str) -> Option<String>,
) -> ToolReply {
    let Execution { ending, stdout, stderr } = execution;
    match ending {
        ExecutionEnd::Exited(exit_code) => {
            let errors = stderr.text();
            let printed = Printed {
                truncated: stdout.is_cut() || stderr.is_cut(),
                stdout_bytes: stdout.total(),
                stderr_bytes: stderr.total(),
                stdout: stdout.text(),
                hint: hint(exit_code, &errors),
                stderr: errors,
                exit_code,
                note,
            };
            Ok(Output::json(serde_json::to_value(printed)?))
        }
        ExecutionEnd::TimedOut => {
            let so_far = so_far(&stdout, &stderr);
            let message = format!("the command took longer than {seconds} s and was killed{so_far}");
            let failure = Failure::new(FailureKind::TimedOut, message);
            Err(ToolError::from_failure(
                failure.with_hint("do less at once, or give a longer `timeout` (at most 600)"),
            ))
        }
        ExecutionEnd::Cancelled => Err(ToolError::new("the call was cancelled, and the command killed")),
        ExecutionEnd::Failed(error) => {
            let message = format!("the command could not be run: {error}");
            let hint = hint(NOT_EXECUTABLE, &message).map(|hint| format!("; {hint}")).unwrap_or_default();
            Err(ToolError::new(message + &hint))
        }
    }
}

/// What was printed until the time was over.
fn so_far(stdout: &Capture, stderr: &Capture) -> String {
    let named = |name: &str, capture: &Capture| match capture.total() {
        0 => String::new(),
        total => format!("\n{name} until then, {total} bytes:\n{}", capture.text()),
    };
    format!("{}{}", named("standard output", stdout), named("standard error", stderr))
}
