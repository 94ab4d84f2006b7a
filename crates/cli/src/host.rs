//! Where runs take place: a runtime with its front end, its approver, its event readers and its interrupts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use llm_do::approval::ApprovalMode;
use llm_do::call::RunBuilder;
use llm_do::event::Event;
use llm_do::model::{Cassette, Environment, HttpSettings, HttpTransport, ModelChoice, StandardModels};
use llm_do::project::{LoadedProject, LoadedProjectExt};
use llm_do::record::ResumeOptions;
use llm_do::value::{Input, Name};
use llm_do::{Limits, Runtime, RuntimeBuilder};
use llm_do_record::Record;

use crate::approvals::TerminalApprover;
use crate::arguments::Output;
use crate::chosen_model::{self, ChosenModel};
use crate::command_error::CommandError;
use crate::config;
use crate::console::Console;
use crate::event_barrier::EventBarrier;
use crate::event_printer::EventPrinter;
use crate::failure_hint::LimitSources;
use crate::front_end::{FrontEnd, FrontEndKind, LineFrontEnd, TuiFrontEnd};
use crate::input;
use crate::output;
use crate::plan::Plan;
use crate::signals::{Interrupts, terminal_modes};
use crate::silence::SilenceWatch;
use crate::status_line::StatusLine;
use crate::stream::AnswerStream;

/// A runtime at work.
pub(crate) struct Host {
    pub(crate) project: LoadedProject,
    /// The model of the entry, unless the user chooses another; none for a function.
    pub(crate) model: Option<String>,
    pub(crate) runtime: Runtime,
    pub(crate) console: Arc<Console>,
    pub(crate) output: Output,
    pub(crate) verbose: u8,
    pub(crate) interrupts: Interrupts,
    timeout: Option<Duration>,
    answer_within: Option<Duration>,
    given_limits: Limits,
    given_model: Option<String>,
    /// Draws the status line while it lives.
    _status_line: Option<StatusLine>,
    /// The text of the answer, and how much of it is on stdout.
    pub(crate) answer: Arc<AnswerStream>,
    /// Set when nobody reads stdout any more.
    pub(crate) stdout_closed: Arc<AtomicBool>,
    cassette: Option<Cassette>,
    /// The user's own record, if runs are recorded there.
    pub(crate) own_record: Option<Record>,
}

impl Host {
    /// Starts the runtime and the front end; the terminal UI, if options for it are given. Must be called inside a
    /// Tokio runtime.
    pub(crate) fn start(
        mut plan: Plan,
        ui_options: Option<llm_do_tui::UiOptions>,
    ) -> Result<(Self, FrontEnd), CommandError> {
        let model = plan.model_of(&plan.project.entry);
        let models = models_for(&plan.project, plan.environment.clone(), plan.cassette.as_ref())?;
        let modes = terminal_modes();
        let tui = ui_options.map(TuiFrontEnd::open).transpose()?;
        let console = Arc::new(match (&tui, plan.front_end) {
            (Some(tui), _) => Console::in_tui(tui.handle.clone()),
            (None, FrontEndKind::Plain) => Console::plain(),
            (None, _) => Console::stderr(),
        });
        let interrupts =
            Interrupts::listen(console.clone(), modes).map_err(|error| CommandError::Other(error.into()))?;
        let status_line = if plan.verbose == 0 { StatusLine::start(&console) } else { None };
        let stdout_closed = Arc::new(AtomicBool::new(false));
        // The printed events and the answer on stdout.
        let barrier = Arc::new(EventBarrier::new(2));
        let answer = AnswerStream::new(
            &plan.project,
            plan.streaming,
            console.clone(),
            stdout_closed.clone(),
            interrupts.clone(),
        );
        let mut builder =
            with_event_printer(builder(&plan, models)?, &plan, tui.as_ref(), &console, &barrier);
        if let Some(status_line) = &status_line {
            builder = builder.on_event(status_line.reader());
        }
        builder = builder.on_event(answer.reader(barrier.clone()));
        if plan.output == Output::Jsonl {
            builder = builder.on_event(lines_to_stdout(stdout_closed.clone(), interrupts.clone()));
        }
        let record = plan.record.open()?;
        if let Some(record) = &record {
            builder = builder.store(Arc::new(record.clone())).project_source(plan.source.clone());
        }
        builder = with_model(builder, &plan, &console, tui.is_some());
        builder = with_approver(builder, &mut plan, tui.as_ref(), &console, &barrier);
        let schema = input::own_schema(&plan.project, &plan.project.entry);
        let front_end = match tui {
            Some(tui) => FrontEnd::Tui(tui),
            None => FrontEnd::Lines(LineFrontEnd::new(console.clone(), schema)),
        };
        let host = Self {
            runtime: builder.build()?,
            project: plan.project,
            model,
            console,
            output: plan.output,
            verbose: plan.verbose,
            interrupts,
            timeout: plan.timeout,
            answer_within: plan.answer_within,
            given_limits: plan.given_limits,
            given_model: match plan.model {
                Some(ChosenModel::Flag(model)) => Some(model),
                _ => None,
            },
            _status_line: status_line,
            answer,
            stdout_closed,
            cassette: plan.cassette,
            own_record: record.filter(|_| plan.record.is_own()),
        };
        Ok((host, front_end))
    }

    /// Prepares a run with the options of this host.
    pub(crate) fn prepare(&self, name: impl Into<Name>, input: Input) -> RunBuilder {
        let run = self.with_timeout(self.runtime.run(name, input));
        match self.answer_within {
            Some(limit) => run.answer_within(limit),
            None => run,
        }
    }

    /// Returns where the limits of a run were set.
    pub(crate) fn limit_sources(&self) -> LimitSources {
        LimitSources {
            flags: self.given_limits.clone(),
            manifest: self.project.limits().clone(),
            timeout: self.timeout,
        }
    }

    /// Returns what the command line changes of a run that is resumed.
    pub(crate) fn resume_options(&self) -> ResumeOptions {
        let mut options = ResumeOptions::default();
        options.limits = (self.given_limits != Limits::default()).then(|| self.given_limits.clone());
        options.entry_model = self.given_model.clone().map(|model| ModelChoice::Named(model.into()));
        options.timeout = self.timeout;
        options
    }

    /// Gives a run the wall time of this host.
    pub(crate) fn with_timeout(&self, run: RunBuilder) -> RunBuilder {
        match self.timeout {
            Some(limit) => run.timeout(limit),
            None => run,
        }
    }

    /// Returns how the recorded traffic differs from the requests that were made.
    pub(crate) fn cassette_warnings(&self) -> Vec<String> {
        self.cassette.iter().flat_map(Cassette::warnings).collect()
    }
}

/// The models of a project, over the network or a cassette.
fn models_for(
    project: &LoadedProject,
    environment: Environment,
    cassette: Option<&Cassette>,
) -> Result<StandardModels, CommandError> {
    let user = config::current(Some(&project.root))?.models();
    let models = project.models_for_user(environment.clone(), &user);
    let Some(cassette) = cassette else { return Ok(models) };
    let network = HttpTransport::new(HttpSettings::from_environment(&environment));
    let network = network.map_err(|error| CommandError::usage(error.message))?;
    Ok(models.transport(cassette.transport(Arc::new(network))))
}

/// A runtime with the prices, the approval mode and the limits of a plan.
fn builder(plan: &Plan, models: StandardModels) -> Result<RuntimeBuilder, CommandError> {
    let user = config::current(Some(&plan.project.root))?.models();
    Ok(plan
        .project
        .runtime()
        .models(models)
        .prices(user.prices(plan.project.model_overrides.clone()))
        .approval_mode(plan.mode)
        .limits(plan.limits.clone()))
}

/// Adds the reader that shows events: the terminal UI, or lines on stderr.
fn with_event_printer(
    builder: RuntimeBuilder,
    plan: &Plan,
    tui: Option<&TuiFrontEnd>,
    console: &Arc<Console>,
    barrier: &Arc<EventBarrier>,
) -> RuntimeBuilder {
    if let Some(tui) = tui {
        return builder.on_event(tui.handle.event_handler());
    }
    let printer = match plan.front_end {
        FrontEndKind::Plain => EventPrinter::plain(console.clone(), plan.verbose),
        _ => EventPrinter::new(console.clone(), plan.verbose),
    };
    // For a program, the object or the events on stdout say all of this.
    let is_for_person = plan.output == Output::Text;
    let printer = printer.with_failed_tools(is_for_person);
    let silence = is_for_person.then(|| SilenceWatch::new(&plan.project, console.clone()));
    let barrier = barrier.clone();
    builder.on_event(move |event| {
        printer.print(event);
        if let Some(silence) = &silence {
            silence.read(event);
        }
        barrier.note(event);
    })
}

/// Adds the model that the user chose, and names the agents that keep their own.
fn with_model(mut builder: RuntimeBuilder, plan: &Plan, console: &Console, has_tui: bool) -> RuntimeBuilder {
    if let Some(model) = &plan.model {
        builder = builder.model(model.name());
    }
    if let Some(ChosenModel::Flag(model)) = &plan.model {
        builder = builder.entry_model(model.as_str());
        let others = chosen_model::other_models(&plan.project, model);
        if let Some(line) = others.filter(|_| plan.verbose > 0 || has_tui) {
            console.line(&line);
        }
    }
    builder
}

/// Adds the approver: a program that the user named, the terminal UI, or the person at the terminal. Nobody is asked if
/// questions are left open.
fn with_approver(
    builder: RuntimeBuilder,
    plan: &mut Plan,
    tui: Option<&TuiFrontEnd>,
    console: &Arc<Console>,
    barrier: &Arc<EventBarrier>,
) -> RuntimeBuilder {
    if plan.mode == ApprovalMode::Park {
        return builder;
    }
    if let Some(program) = plan.approver.take() {
        return builder.approver(program);
    }
    if let Some(tui) = tui {
        return builder.approver(tui.handle.clone());
    }
    match TerminalApprover::open(console.clone(), barrier.clone()) {
        Some(terminal) => builder.approver(terminal),
        None => builder,
    }
}

/// Writes events to stdout. When nobody reads them any more, the run ends.
fn lines_to_stdout(stdout_closed: Arc<AtomicBool>, interrupts: Interrupts) -> impl Fn(&Event) + Send + Sync {
    move |event| {
        if !stdout_closed.load(Ordering::Relaxed) && !output::to_stdout(&output::event_line(event)) {
            stdout_closed.store(true, Ordering::Relaxed);
            interrupts.cancel();
        }
    }
}

/// Runs async work on an executor of its own. Threads that wait for a terminal are left behind.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
    let executor = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::Other(error.into()))?;
    let result = executor.block_on(work);
    executor.shutdown_background();
    result
}
