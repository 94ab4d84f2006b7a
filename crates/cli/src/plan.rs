//! What a run is started with: a project, completed by flags, the environment and the user's configuration.

use std::sync::Arc;
use std::time::Duration;

use llm_do::approval::ApprovalMode;
use llm_do::model::{Cassette, Environment};
use llm_do::project::LoadedProject;
use llm_do::record::ProjectSource;
use llm_do::usage::Money;
use llm_do::value::Name;
use llm_do::{AgentSpec, Limits};

use crate::approvals::{ProgramApprover, start_approver};
use crate::arguments::{Approve, Output, RunOptions, SentRequests};
use crate::chosen_model::ChosenModel;
use crate::command_error::CommandError;
use crate::config;
use crate::environment;
use crate::front_end::FrontEndKind;
use crate::location::ProjectLocation;
use crate::record::RecordTarget;
use crate::stream::Streaming;

/// Everything a host needs, before anything is started.
pub(crate) struct Plan {
    pub(crate) project: LoadedProject,
    pub(crate) environment: Environment,
    pub(crate) cassette: Option<Cassette>,
    pub(crate) model: Option<ChosenModel>,
    /// The program that answers approvals, if the user named one.
    pub(crate) approver: Option<ProgramApprover>,
    pub(crate) mode: ApprovalMode,
    /// How long a question that is left open may wait for its answer.
    pub(crate) answer_within: Option<Duration>,
    pub(crate) limits: Limits,
    pub(crate) timeout: Option<Duration>,
    pub(crate) output: Output,
    pub(crate) verbose: u8,
    pub(crate) streaming: Streaming,
    pub(crate) front_end: FrontEndKind,
    /// Where the project was found.
    pub(crate) source: ProjectSource,
    pub(crate) record: RecordTarget,
    /// The limits that the flags give.
    pub(crate) given_limits: Limits,
}

impl Plan {
    /// Completes a project with flags and environment.
    pub(crate) fn new(
        project: LoadedProject,
        location: &ProjectLocation,
        options: &RunOptions,
        front_end: FrontEndKind,
    ) -> Result<Self, CommandError> {
        Self::with_cassette(project, location, options, front_end, || options.cassette.open())
    }

    /// Completes a project for a run that goes on, and has sent requests before.
    pub(crate) fn to_resume(
        project: LoadedProject,
        location: &ProjectLocation,
        options: &RunOptions,
        front_end: FrontEndKind,
        sent: &SentRequests,
    ) -> Result<Self, CommandError> {
        let cassette = || options.cassette.open_to_resume(sent);
        Self::with_cassette(project, location, options, front_end, cassette)
    }

    fn with_cassette(
        project: LoadedProject,
        location: &ProjectLocation,
        options: &RunOptions,
        front_end: FrontEndKind,
        cassette: impl FnOnce() -> Result<Option<Cassette>, CommandError>,
    ) -> Result<Self, CommandError> {
        // First of all: nothing else may have opened a descriptor of that number.
        let approver = match (options.approvals_from.as_deref(), options.approve_with.as_deref()) {
            (Some(channel), _) => Some(ProgramApprover::open(channel)?),
            (None, Some(command)) => Some(start_approver(command)?),
            (None, None) => None,
        };
        let environment = environment::for_project(&project)?;
        let user = config::current(Some(&project.root))?;
        let model = chosen_model(&project, options, &environment)?;
        let mode = mode(options).unwrap_or_else(|| config::mode_of(&project, user));
        check_answer_within(options)?;
        let limits = limits(&project, options);
        let cassette = cassette()?;
        Ok(Self {
            project,
            environment,
            cassette,
            model,
            approver,
            mode,
            answer_within: options.answer_within,
            limits,
            timeout: options.timeout,
            output: options.output,
            verbose: options.verbose,
            streaming: streaming(options, front_end),
            front_end,
            source: location.to_source(),
            record: if options.no_record {
                RecordTarget::Nowhere
            } else {
                RecordTarget::new(&options.record)
            },
            given_limits: given_limits(options),
        })
    }

    /// Refuses to start an agent that has no model, before the first token.
    pub(crate) fn check_model(&self, agent: &Name) -> Result<(), CommandError> {
        // A function asks no model itself.
        if self.spec(agent).is_none() || self.model_of(agent).is_some() {
            return Ok(());
        }
        Err(CommandError::with_hint(
            format!("no model is set for the agent `{agent}`"),
            "write `model: provider:model` in the agent file or the manifest, use `--model`, set LLM_DO_MODEL, or run \
             `llm-do config set model provider:model`",
        ))
    }

    /// Returns the model that an agent starts with if it is what is run; none for a function.
    pub(crate) fn model_of(&self, agent: &Name) -> Option<String> {
        let spec = self.spec(agent)?;
        let own = spec.model.as_ref().map(|own| own.name().to_string());
        ChosenModel::effective(self.model.as_ref(), own, self.project.model.as_deref())
    }

    fn spec(&self, agent: &Name) -> Option<Arc<AgentSpec>> {
        let mut specs = self.project.project.outline().into_iter().filter_map(|outline| outline.agent);
        specs.find(|spec| spec.name == *agent)
    }
}

/// Returns the model that the user chose: by the flag, else by `LLM_DO_MODEL`, else in the configuration.
fn chosen_model(
    project: &LoadedProject,
    options: &RunOptions,
    environment: &Environment,
) -> Result<Option<ChosenModel>, CommandError> {
    if let Some(name) = &options.model {
        return ChosenModel::Flag(name.clone()).completed(project).map(Some);
    }
    let variable = environment.get("LLM_DO_MODEL").map(|variable| variable.value);
    // The manifest's own model takes precedence over that of the configuration.
    let user = config::current(Some(&project.root))?;
    let configured = || user.default_model().filter(|_| project.model.is_none()).map(str::to_owned);
    let Some(name) = variable.or_else(configured) else { return Ok(None) };
    match ChosenModel::Default(name).completed(project) {
        // A default that is wrong is not an error of a run that does not need it.
        Err(_) if !needs_default_model(project) => Ok(None),
        completed => completed.map(Some),
    }
}

/// Returns whether an agent of a project names no model. Code may create agents, and agents too.
fn needs_default_model(project: &LoadedProject) -> bool {
    let agents = project.project.outline().into_iter().filter_map(|outline| outline.agent);
    agents.into_iter().any(|spec| spec.model.is_none())
}

/// Returns whose text is written to stdout while it arrives. A screen reader gets the answer as a whole, unless
/// `--stream` asks for more.
fn streaming(options: &RunOptions, front_end: FrontEndKind) -> Streaming {
    match (options.output, front_end) {
        (Output::Json | Output::Jsonl, _) | (_, FrontEndKind::Tui) => Streaming::Nothing,
        (Output::Text, _) if options.stream => Streaming::Everything,
        (Output::Text, FrontEndKind::Lines) => Streaming::Answers,
        (Output::Text, FrontEndKind::Plain) => Streaming::Nothing,
    }
}

fn mode(options: &RunOptions) -> Option<ApprovalMode> {
    match (options.approve_all, options.reject_all, options.approve) {
        (true, _, _) | (_, _, Some(Approve::All)) => Some(ApprovalMode::ApproveAll),
        (_, true, _) | (_, _, Some(Approve::None)) => Some(ApprovalMode::RejectAll),
        (_, _, Some(Approve::Prompt)) => Some(ApprovalMode::Prompt),
        (_, _, Some(Approve::Park)) => Some(ApprovalMode::Park),
        (false, false, None) => None,
    }
}

fn check_answer_within(options: &RunOptions) -> Result<(), CommandError> {
    match options.answer_within {
        Some(_) if options.approve != Some(Approve::Park) => Err(CommandError::with_hint(
            "`--answer-within` is about questions that are left open",
            "add `--approve park`",
        )),
        _ => Ok(()),
    }
}

/// Returns the limits of a run. A flag is a ceiling: of a flag and the project's own limit, the smaller counts.
fn limits(project: &LoadedProject, options: &RunOptions) -> Limits {
    let (own, given) = (project.limits().clone(), given_limits(options));
    Limits {
        depth: smaller(given.depth, own.depth),
        turns: smaller(given.turns, own.turns),
        tool_calls: smaller(given.tool_calls, own.tool_calls),
        tokens: smaller(given.tokens, own.tokens),
        cost: smaller(given.cost, own.cost),
        ..own
    }
}

fn given_limits(options: &RunOptions) -> Limits {
    Limits {
        depth: options.max_depth,
        turns: options.max_turns,
        tool_calls: options.max_calls,
        tokens: options.max_tokens,
        cost: options.max_cost.map(Money::from_dollars),
        ..Limits::default()
    }
}

fn smaller<T: Ord>(flag: Option<T>, own: Option<T>) -> Option<T> {
    flag.into_iter().chain(own).min()
}
