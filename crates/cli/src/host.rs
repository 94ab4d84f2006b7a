//! Where runs take place: a runtime with its approver, its readers and its interrupts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use llm_do::approval::ApprovalMode;
use llm_do::call::{NoticeSink, RunBuilder};
use llm_do::event::Event;
use llm_do::model::{Cassette, Environment, HttpSettings, HttpTransport, StandardModels};
use llm_do::project::{Diagnostics, LoadedProject, LoadedProjectExt, StandardCatalog};
use llm_do::tools::PythonSettings;
use llm_do::usage::Money;
use llm_do::value::{Input, Name};
use llm_do::{AgentSpec, Limits, Run, Runtime, RuntimeBuilder};

use crate::approvals::{ProgramApprover, TerminalApprover, start_approver};
use crate::arguments::{Approve, Output, RunOptions};
use crate::caught_up::CaughtUp;
use crate::chosen_model::{self, ChosenModel};
use crate::config::{self, UserDirectory};
use crate::dotenv::Dotenv;
use crate::environment;
use crate::exit::Exit;
use crate::location::ProjectLocation;
use crate::narration::Narration;
use crate::output;
use crate::problem::Problem;
use crate::progress::Progress;
use crate::screen::{Paint, Screen};
use crate::signals::{Interrupts, terminal_modes};
use crate::stream::{AnswerStream, Streaming};
use crate::surface::Surface;
use crate::text::{notice_line, visible_line};
use crate::trust::{self, Decision};
use crate::tui::{self, Ui};

/// Reads the project at a location to run something of it, and says what its author should know.
///
/// It is read without running anything first. Only if its powers are trusted is its code run and its `.env` read.
pub(crate) fn load(location: &ProjectLocation, trust: Option<&str>) -> Result<LoadedProject, Problem> {
    let seen = load_static(location)?;
    if trust::decide(&seen, trust)? == Decision::Restricted {
        return load_restricted(location);
    }
    // Without code nothing is left to be found out, and what was decided about is what runs.
    if !seen.has_code() {
        show_notices(&seen);
        return Ok(seen);
    }
    let catalog = catalog(location, EnvFile::Read)?;
    let agreed = Some(&seen.powers);
    let project = llm_do_project::load_agreed(&location.path, &location.set, agreed, &catalog)?;
    trust::remember_code(&project);
    show_notices(&project);
    Ok(project)
}

/// Reads the project at a location without its powers.
fn load_restricted(location: &ProjectLocation) -> Result<LoadedProject, Problem> {
    let catalog = catalog(location, EnvFile::Ignored)?;
    let project = llm_do_project::load_restricted(&location.path, &location.set, &catalog)?;
    show_notices(&project);
    tell_unseen(&project);
    Ok(project)
}

/// Reads the project at a location to look at it. Its code runs only if it is trusted and unchanged.
pub(crate) fn load_for_looking(location: &ProjectLocation) -> Result<LoadedProject, Problem> {
    let project = load_static(location)?;
    if !project.has_code() || !trust::may_run_code(&project) {
        tell_unseen(&project);
        return Ok(project);
    }
    load_with_code(location, &project)
}

/// Reads the project at a location and runs its code, if it has the powers that were seen.
pub(crate) fn load_with_code(
    location: &ProjectLocation,
    seen: &LoadedProject,
) -> Result<LoadedProject, Problem> {
    let catalog = catalog(location, EnvFile::Read)?;
    Ok(llm_do_project::load_agreed(&location.path, &location.set, Some(&seen.powers), &catalog)?)
}

/// Reads the project at a location without running anything of it.
pub(crate) fn load_static(location: &ProjectLocation) -> Result<LoadedProject, Problem> {
    let catalog = catalog(location, EnvFile::Ignored)?;
    Ok(llm_do_project::load_static(&location.path, &location.set, &catalog)?)
}

/// Checks the project at a location without running any of its code.
pub(crate) fn check_static(location: &ProjectLocation) -> Result<Diagnostics, Problem> {
    let catalog = catalog(location, EnvFile::Ignored)?;
    Ok(llm_do_project::check_static(&location.path, &location.set, &catalog))
}

/// Says what the author of a project should know.
pub(crate) fn show_notices(project: &LoadedProject) {
    if !project.notices.0.is_empty() {
        output::to_stderr(&Paint::for_stderr().message(&project.notices.to_string()));
    }
}

/// Says that code was not run, so that something is missing.
pub(crate) fn tell_unseen(project: &LoadedProject) {
    if project.has_code() && !project.ran_code() {
        let missing = if project.unseen.is_empty() {
            String::new()
        } else {
            format!(", so these are missing: {}", visible_line(&project.unseen.join(", ")))
        };
        output::early_notice(&format!("the Python code of this project was not run{missing}"));
    }
}

/// What becomes of the `.env` of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EnvFile {
    /// Its variables are for the code of the project.
    Read,
    /// Nobody agreed to it yet.
    Ignored,
}

/// Keeps the variables of this process from code that it runs, which is of the same user: Linux shows them to whoever
/// may look into a process.
fn close_to_others() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// What the project at a location is linked against.
fn catalog(location: &ProjectLocation, env_file: EnvFile) -> Result<StandardCatalog, Problem> {
    let directory = std::env::current_dir().unwrap_or_else(|_| ".".into());
    let mut catalog = StandardCatalog::new(directory);
    if let Some(path) = std::env::var_os("PATH") {
        catalog = catalog.search_path(path);
    }
    if let Some(path) = environment::cache_directory() {
        catalog = catalog.read_only(path);
    }
    let root = location.root();
    let user = config::current(Some(root))?;
    let own = [UserDirectory::Config, UserDirectory::Data].map(|kind| kind.find(Some(root)).path);
    let private = own.into_iter().chain([environment::state_directory()]).flatten();
    catalog = private.fold(catalog, StandardCatalog::private);
    catalog = catalog.user_models(user.models()).allow_secret_files(&user.settings.secret_files.allow);
    close_to_others();
    let python = PythonSettings {
        environment: match env_file {
            EnvFile::Read => environment::for_code(&Dotenv::read(root)?),
            EnvFile::Ignored => std::env::vars_os().collect(),
        },
        cache: environment::cache_directory().map(|cache| cache.join("python")),
        notices: NoticeSink::new(|text| {
            output::to_stderr(&Paint::for_stderr().message(&notice_line(&text)));
            Ok(())
        }),
        ..PythonSettings::default()
    };
    Ok(catalog.python(python))
}

/// What a host is made of, before anything is started.
pub(crate) struct Plan {
    pub(crate) project: LoadedProject,
    environment: Environment,
    tape: Option<Cassette>,
    model: Option<ChosenModel>,
    approver: Option<ProgramApprover>,
    mode: ApprovalMode,
    limits: Limits,
    timeout: Option<Duration>,
    output: Output,
    verbose: u8,
    streaming: Streaming,
    surface: Surface,
    ui_options: Option<llm_do_tui::UiOptions>,
}

impl Plan {
    /// Completes a project with flags and environment.
    pub(crate) fn new(
        project: LoadedProject,
        options: &RunOptions,
        surface: Surface,
    ) -> Result<Self, Problem> {
        // First of all: nothing else may have opened a descriptor of that number.
        let approver = match (options.approvals_from.as_deref(), options.approve_with.as_deref()) {
            (Some(channel), _) => Some(ProgramApprover::open(channel)?),
            (None, Some(command)) => Some(start_approver(command)?),
            (None, None) => None,
        };
        let environment = environment::of_project(&project)?;
        let user = config::current(Some(&project.root))?;
        let by_default =
            || environment.get("LLM_DO_MODEL").map(|variable| ChosenModel::Default(variable.value));
        // The manifest's own model takes precedence over that of the configuration.
        let configured = || user.default_model().filter(|_| project.model.is_none());
        let configured = || configured().map(|model| ChosenModel::Default(model.to_owned()));
        let model = options.model.clone().map(ChosenModel::Flag).or_else(by_default).or_else(configured);
        let model = model.map(|model| model.completed(&project)).transpose();
        let model = match (model, &options.model) {
            // A default that is wrong is not an error of a run that does not need it.
            (Err(_), None) if !needs_default_model(&project) => None,
            (model, _) => model?,
        };
        let mode = mode(options).unwrap_or_else(|| config::mode_of(&project, user));
        let limits = limits(&project, options);
        let (timeout, output, verbose) = (options.timeout, options.output, options.verbose);
        let tape = options.cassette.tape()?;
        Ok(Self {
            project,
            environment,
            tape,
            model,
            approver,
            mode,
            limits,
            timeout,
            output,
            verbose,
            streaming: streaming(options, surface),
            surface,
            ui_options: None,
        })
    }

    /// Shows the run in the terminal UI, if that is its surface; `awaits_input` if the first message is still to be written.
    pub(crate) fn shown(mut self, entry: &Name, chat: bool, awaits_input: bool) -> Self {
        let model = self.model_of(entry);
        let options = || llm_do_tui::UiOptions {
            models: tui::offered_models(&self.project, &self.environment),
            model,
            ..tui::ui_options(&self.project, entry.clone(), chat, awaits_input, self.verbose)
        };
        self.ui_options = (self.surface == Surface::Tui).then(options);
        self
    }

    /// Refuses to start an agent that has no model, before the first token.
    pub(crate) fn check_model(&self, agent: &Name) -> Result<(), Problem> {
        // A function asks no model itself.
        if self.spec(agent).is_none() || self.model_of(agent).is_some() {
            return Ok(());
        }
        Err(Problem::with_hint(
            format!("no model: the agent `{agent}` names none, and neither does anything else"),
            "write `model: provider:model` in the agent or the manifest, use `--model`, set LLM_DO_MODEL, or run \
             `llm-do config set model provider:model`",
        ))
    }

    /// The model that an agent starts with if it is what is run; none for a function.
    pub(crate) fn model_of(&self, agent: &Name) -> Option<String> {
        let spec = self.spec(agent)?;
        let own = spec.model.as_ref().map(|own| own.name().to_string());
        ChosenModel::effective(self.model.as_ref(), own, self.project.model.as_deref())
    }

    fn spec(&self, agent: &Name) -> Option<Arc<AgentSpec>> {
        let mut specs = self.project.project.outline().into_iter().filter_map(|outline| outline.agent);
        specs.find(|spec| spec.name == *agent)
    }

    /// A runtime with the prices, the approval mode and the limits of this plan.
    fn builder(&self, models: StandardModels) -> Result<RuntimeBuilder, Problem> {
        let user = config::current(Some(&self.project.root))?.models();
        Ok(self
            .project
            .runtime()
            .models(models)
            .prices(user.prices(self.project.model_overrides.clone()))
            .approval_mode(self.mode)
            .limits(self.limits.clone()))
    }

    /// Adds who shows the events: the terminal UI, or lines on stderr.
    fn with_narration(
        &self,
        builder: RuntimeBuilder,
        ui: Option<&Ui>,
        screen: &Arc<Screen>,
        readers: &Arc<CaughtUp>,
    ) -> RuntimeBuilder {
        if let Some(ui) = ui {
            return builder.on_event(ui.tui.event_handler());
        }
        let narration = match self.surface {
            Surface::Plain => Narration::plain(screen.clone(), self.verbose),
            _ => Narration::new(screen.clone(), self.verbose),
        };
        let readers = readers.clone();
        builder.on_event(move |event| {
            narration.tell(event);
            readers.note(event);
        })
    }

    /// Adds the model that the user chose, and names the agents that keep their own.
    fn with_model(&self, mut builder: RuntimeBuilder, screen: &Screen, has_ui: bool) -> RuntimeBuilder {
        if let Some(model) = &self.model {
            builder = builder.model(model.name());
        }
        if let Some(ChosenModel::Flag(model)) = &self.model {
            builder = builder.entry_model(model.as_str());
            let others = chosen_model::other_models(&self.project, model);
            if let Some(line) = others.filter(|_| self.verbose > 0 || has_ui) {
                screen.line(&line);
            }
        }
        builder
    }
}

/// Adds whoever is asked: a program that the user named, the terminal UI, or the person at the terminal.
fn with_approver(
    builder: RuntimeBuilder,
    program: Option<ProgramApprover>,
    ui: Option<&Ui>,
    screen: &Arc<Screen>,
    readers: &Arc<CaughtUp>,
) -> RuntimeBuilder {
    match (program, ui) {
        (Some(approver), _) => builder.approver(approver),
        (None, Some(ui)) => builder.approver(ui.tui.clone()),
        (None, None) => match TerminalApprover::open(screen.clone(), readers.clone()) {
            Some(approver) => builder.approver(approver),
            None => builder,
        },
    }
}

/// Returns whether an agent of a project names no model. Code may create agents, and agents too.
fn needs_default_model(project: &LoadedProject) -> bool {
    let agents = project.project.outline().into_iter().filter_map(|outline| outline.agent);
    agents.into_iter().any(|spec| spec.model.is_none())
}

/// The models of a project, over the network or a recording.
fn models_for(
    project: &LoadedProject,
    environment: Environment,
    tape: Option<&Cassette>,
) -> Result<StandardModels, Problem> {
    let user = config::current(Some(&project.root))?.models();
    let models = project.models_for_user(environment.clone(), &user);
    let Some(tape) = tape else { return Ok(models) };
    let network = HttpTransport::new(HttpSettings::from_environment(&environment));
    let network = network.map_err(|error| Problem::usage(error.message))?;
    Ok(models.transport(tape.transport(Arc::new(network))))
}

/// Whose text is written to stdout while it arrives. Those who listen get the answer as a whole, unless they ask for
/// more.
fn streaming(options: &RunOptions, surface: Surface) -> Streaming {
    match (options.output, surface) {
        (Output::Json | Output::Jsonl, _) | (_, Surface::Tui) => Streaming::Nothing,
        (Output::Text, _) if options.stream => Streaming::Everything,
        (Output::Text, Surface::Lines) => Streaming::Answers,
        (Output::Text, Surface::Plain) => Streaming::Nothing,
    }
}

fn mode(options: &RunOptions) -> Option<ApprovalMode> {
    match (options.approve_all, options.reject_all, options.approve) {
        (true, _, _) | (_, _, Some(Approve::All)) => Some(ApprovalMode::ApproveAll),
        (_, true, _) | (_, _, Some(Approve::None)) => Some(ApprovalMode::RejectAll),
        (_, _, Some(Approve::Prompt)) => Some(ApprovalMode::Prompt),
        (false, false, None) => None,
    }
}

/// What a person gives as a flag is a ceiling: of a flag and the project's own limit, the smaller counts.
fn limits(project: &LoadedProject, options: &RunOptions) -> Limits {
    let own = project.limits().clone();
    Limits {
        depth: smaller(options.max_depth, own.depth),
        turns: smaller(options.max_turns, own.turns),
        tool_calls: smaller(options.max_calls, own.tool_calls),
        tokens: smaller(options.max_tokens, own.tokens),
        cost: smaller(options.max_cost.map(Money::from_dollars), own.cost),
        ..own
    }
}

fn smaller<T: Ord>(flag: Option<T>, own: Option<T>) -> Option<T> {
    flag.into_iter().chain(own).min()
}

/// A runtime at work.
pub(crate) struct Host {
    pub(crate) project: LoadedProject,
    /// The model of the entry, unless the person chooses another; none for a function.
    pub(crate) model: Option<String>,
    pub(crate) runtime: Runtime,
    pub(crate) screen: Arc<Screen>,
    pub(crate) output: Output,
    pub(crate) verbose: u8,
    interrupts: Interrupts,
    timeout: Option<Duration>,
    progress: Option<Progress>,
    /// The text of the answer, and how much of it is on stdout.
    pub(crate) answer: Arc<AnswerStream>,
    /// Set when nobody reads stdout any more.
    pub(crate) unread: Arc<AtomicBool>,
    tape: Option<Cassette>,
}

impl Host {
    /// Starts the runtime, and the terminal UI where that is wanted. Must be called inside a Tokio runtime.
    pub(crate) fn start(mut plan: Plan) -> Result<(Self, Option<Ui>), Problem> {
        let model = plan.model_of(&plan.project.entry);
        let models = models_for(&plan.project, plan.environment.clone(), plan.tape.as_ref())?;
        let modes = terminal_modes();
        let ui = plan.ui_options.take().map(Ui::open).transpose()?;
        let screen = Arc::new(match (&ui, plan.surface) {
            (Some(ui), _) => Screen::in_tui(ui.tui.clone()),
            (None, Surface::Plain) => Screen::plain(),
            (None, _) => Screen::stderr(),
        });
        let interrupts =
            Interrupts::listen(screen.clone(), modes).map_err(|error| Problem::Other(error.into()))?;
        let progress = if plan.verbose == 0 { Progress::start(&screen) } else { None };
        let unread = Arc::new(AtomicBool::new(false));
        // The narration and the answer on stdout.
        let readers = Arc::new(CaughtUp::new(2));
        let answer = AnswerStream::new(
            &plan.project,
            plan.streaming,
            screen.clone(),
            unread.clone(),
            interrupts.clone(),
        );
        let mut builder = plan.with_narration(plan.builder(models)?, ui.as_ref(), &screen, &readers);
        if let Some(progress) = &progress {
            builder = builder.on_event(progress.reader());
        }
        builder = builder.on_event(answer.reader(readers.clone()));
        if plan.output == Output::Jsonl {
            builder = builder.on_event(lines_to_stdout(unread.clone(), interrupts.clone()));
        }
        builder = plan.with_model(builder, &screen, ui.is_some());
        builder = with_approver(builder, plan.approver.take(), ui.as_ref(), &screen, &readers);
        let host = Self {
            runtime: builder.build()?,
            project: plan.project,
            model,
            screen,
            output: plan.output,
            verbose: plan.verbose,
            interrupts,
            timeout: plan.timeout,
            progress,
            answer,
            unread,
            tape: plan.tape,
        };
        Ok((host, ui))
    }

    /// Prepares a run with the options of this host.
    pub(crate) fn prepare(&self, name: impl Into<Name>, input: Input) -> RunBuilder {
        self.with_timeout(self.runtime.run(name, input))
    }

    /// Gives a run the wall time of this host.
    pub(crate) fn with_timeout(&self, run: RunBuilder) -> RunBuilder {
        match self.timeout {
            Some(limit) => run.timeout(limit),
            None => run,
        }
    }

    /// Runs to the end and prints what came of it.
    pub(crate) async fn run(mut self, run: RunBuilder) -> Exit {
        let run: Run = run.start();
        self.interrupts.watch(run.canceller());
        let result = run.await;
        self.runtime.readers_done().await;
        self.progress = None;
        let exit = self.print(&result);
        self.runtime.shutdown().await;
        exit
    }

    /// What a recording could not answer as it was asked.
    pub(crate) fn tape_warnings(&self) -> Vec<String> {
        self.tape.iter().flat_map(Cassette::warnings).collect()
    }

    /// Makes interrupts end a run while it lasts.
    pub(crate) fn interrupts(&self) -> &Interrupts {
        &self.interrupts
    }
}

/// Writes events to stdout. When nobody reads them any more, the run ends.
fn lines_to_stdout(unread: Arc<AtomicBool>, interrupts: Interrupts) -> impl Fn(&Event) + Send + Sync {
    move |event| {
        if !unread.load(Ordering::Relaxed) && !output::to_stdout(&output::event_line(event)) {
            unread.store(true, Ordering::Relaxed);
            interrupts.cancel();
        }
    }
}

/// Runs async work on an executor of its own. Threads that wait for a terminal are left behind.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    let executor = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Problem::Other(error.into()))?;
    let result = executor.block_on(work);
    executor.shutdown_background();
    result
}
