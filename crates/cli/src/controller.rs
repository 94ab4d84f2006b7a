//! Carries out what the user asks for, in every front end: a run, a call by name, or a chat with its commands.
//!
//! A run and a chat take the same path. The front end reads requests and shows what came of them; the controller turns
//! each into work of the host.

mod grants;
mod markdown;
mod recorded;
mod session_commands;

use std::io::{IsTerminal, stderr, stdout};

use llm_do::call::RunBuilder;
use llm_do::event::RunId;
use llm_do::record::{ResumeError, Settlement};
use llm_do::value::{Input, Key, Name};
use llm_do::{Run, RunError, RunReport, Session};
use llm_do_record::short_id;

use crate::approvals;
use crate::command_error::CommandError;
use crate::config;
use crate::exit::Exit;
use crate::failure_hint;
use crate::front_end::{FrontEnd, FrontEndKind, UserRequest, ui_options};
use crate::host::{self, Host};
use crate::output::{self, usage_line};
use crate::plan::Plan;
use crate::print_result::resume_line;
use crate::recorded_chat::RecordedChat;
use crate::retention;
use crate::text::{notice_line, visible};

/// What is to be done with a project.
pub(crate) enum Task {
    /// Run the entry once. Without an input, the front end asks for one.
    Run(Option<Input>),
    /// Hold a conversation with the entry, which begins with these messages.
    Chat {
        demo: Vec<String>,
        first: Option<Input>,
        /// The chat of the record that goes on, if it is not a new one.
        recorded: Option<Box<RecordedChat>>,
    },
    /// Call an agent or tool by name, in the name of an agent or of nobody.
    Call { name: Name, input: Input, agent: Option<Name> },
    /// Continue a recorded run.
    Resume { run: RunId, settlements: Vec<(Key, Settlement)> },
}

impl Task {
    fn is_chat(&self) -> bool {
        matches!(self, Self::Chat { .. })
    }

    /// Returns whether the user still has to write the first message.
    fn waits_for_message(&self) -> bool {
        match self {
            Self::Run(input) => input.is_none(),
            Self::Chat { demo, first, recorded } => {
                demo.is_empty()
                    && first.is_none()
                    && !recorded.as_ref().is_some_and(|recorded| recorded.resumes_turn())
            }
            Self::Call { .. } | Self::Resume { .. } => false,
        }
    }
}

/// Does a task, and returns how the process ends.
pub(crate) fn execute(plan: Plan, task: Task) -> Result<Exit, CommandError> {
    let entry = match &task {
        Task::Run(_) | Task::Chat { .. } | Task::Resume { .. } => plan.project.entry.clone(),
        Task::Call { name, .. } => name.clone(),
    };
    let ui_options = (plan.front_end == FrontEndKind::Tui).then(|| tui_options(&plan, &task, entry));
    host::block_on(async {
        let (host, front_end) = Host::start(plan, ui_options)?;
        let mut controller = Controller::new(host, front_end, task.is_chat());
        let begun = controller.begin(task).await;
        controller.work().await;
        let exit = controller.end().await;
        begun.map(|()| exit)
    })
}

fn tui_options(plan: &Plan, task: &Task, entry: Name) -> llm_do_tui::UiOptions {
    llm_do_tui::UiOptions {
        model: plan.model_of(&entry),
        chat: task.is_chat(),
        awaits_input: task.waits_for_message(),
        unfolded: plan.verbose > 0,
        ..ui_options(&plan.project, &plan.environment, entry)
    }
}

/// One conversation, and the model that the user chose for it.
struct ChatSession {
    session: Session,
    model: Option<String>,
}

/// A host, its front end, and the conversations of a chat.
struct Controller {
    host: Host,
    front_end: FrontEnd,
    /// The conversations of a chat, of which one is current; empty outside a chat.
    sessions: Vec<ChatSession>,
    current: usize,
    /// How the process would end now.
    exit: Exit,
    is_chat: bool,
    has_ended: bool,
}

impl Controller {
    fn new(host: Host, front_end: FrontEnd, is_chat: bool) -> Self {
        let mut controller = Self {
            host,
            front_end,
            sessions: Vec::new(),
            current: 0,
            exit: Exit::Done,
            is_chat,
            has_ended: false,
        };
        if is_chat {
            let session = controller.new_session();
            controller.sessions.push(ChatSession { session, model: None });
        }
        controller
    }

    fn new_session(&self) -> Session {
        self.host.runtime.session(self.host.project.entry.clone())
    }

    /// Does what the command line asks for, before the user asks for anything.
    async fn begin(&mut self, task: Task) -> Result<(), CommandError> {
        match task {
            Task::Run(Some(input)) => self.send(input).await,
            Task::Run(None) => {}
            Task::Chat { demo, first, recorded } => {
                if let Some(recorded) = recorded {
                    self.continue_chat(*recorded).await?;
                }
                let demo = demo.into_iter().map(|text| (Input::from(text), true));
                for (input, is_demo) in demo.chain(first.map(|input| (input, false))) {
                    if self.has_ended {
                        break;
                    }
                    self.front_end.show_message(&input, is_demo);
                    self.send(input).await;
                    self.front_end.show_ready();
                }
            }
            Task::Call { name, input, agent } => {
                let call = self.host.prepare(name, input);
                self.run(match agent {
                    Some(agent) => call.as_agent(agent),
                    None => call,
                })
                .await;
            }
            Task::Resume { run, settlements } => return self.resume(run, settlements).await,
        }
        Ok(())
    }

    async fn resume(&mut self, run: RunId, settlements: Vec<(Key, Settlement)>) -> Result<(), CommandError> {
        let mut options = self.host.resume_options();
        options.settlements = settlements;
        match self.host.runtime.resume_with(run, options).await {
            Ok(run) => {
                self.attend(run).await;
                Ok(())
            }
            Err(error) => {
                self.has_ended = true;
                Err(match error {
                    ResumeError::Store(error) => CommandError::failed(error.to_string()),
                    other => CommandError::usage(other.to_string()),
                })
            }
        }
    }

    async fn work(&mut self) {
        while !self.has_ended {
            match self.front_end.next().await {
                Some(request) => self.carry_out(request).await,
                None => break,
            }
        }
    }

    async fn end(mut self) -> Exit {
        if let Err(error) = self.front_end.close() {
            output::to_stderr(&format!("error: {error}"));
            self.exit = Exit::Failed;
        }
        for chat in self.sessions {
            let id = chat.session.id();
            let notices = chat.session.close().await;
            // A program that reads stderr knows where its chat is recorded.
            if let Some(id) = id.filter(|_| stderr().is_terminal()) {
                output::to_stderr(&format!("to continue: llm-do chat --resume {}", short_id(id)));
            }
            notices.iter().for_each(|text| output::to_stderr(&notice_line(text)));
        }
        self.host.runtime.shutdown().await;
        if let (Some(record), Ok(user)) = (&self.host.own_record, config::current(None)) {
            retention::apply(record, &user.settings.record).await;
        }
        self.exit
    }

    /// Carries out a request while nothing runs.
    async fn carry_out(&mut self, request: UserRequest) {
        match request {
            UserRequest::Send(input) => self.send(input).await,
            UserRequest::Call { name, input } => {
                let call = self.host.prepare(name.as_str(), input);
                self.run(call).await;
            }
            UserRequest::ShowModel => self.report_model(),
            UserRequest::ShowUsage => self.report_usage(),
            UserRequest::UseModel(model) => self.use_model(&model).await,
            UserRequest::Fork(number) => self.fork(number).await,
            UserRequest::GoBack(number) => self.go_back(number).await,
            UserRequest::Clear => self.clear().await,
            UserRequest::Title(title) => self.name_chat(&title).await,
            UserRequest::Save(path) => self.save(&path).await,
            UserRequest::Invalid(message) => self.refuse(&message),
            other => {
                self.has_ended |= carry_out_at_once(&other, &self.host, &self.front_end);
                // Nobody waits for the end of these, and `ready` would release what waits for something else.
                return;
            }
        }
        if !self.has_ended {
            self.front_end.show_ready();
        }
    }

    /// Sends a message to the entry: as a turn of the conversation, or as the only run.
    async fn send(&mut self, input: Input) {
        let Some(ChatSession { session, .. }) = self.sessions.get_mut(self.current) else {
            let run = self.host.prepare(self.host.project.entry.clone(), input);
            return self.run(run).await;
        };
        self.front_end.show_busy();
        let host = &self.host;
        let turn =
            session.send_watched(input, |run| host.with_timeout(run), |run| host.interrupts.watch(run));
        let (result, is_leaving) = while_attended(turn, host, &mut self.front_end).await;
        self.finish(&result, is_leaving).await;
    }

    async fn run(&mut self, run: RunBuilder) {
        self.attend(run.start()).await;
    }

    /// Waits for a run and shows its end.
    async fn attend(&mut self, run: Run) {
        self.front_end.show_busy();
        self.host.interrupts.watch(run.canceller());
        let (result, is_leaving) = while_attended(run, &self.host, &mut self.front_end).await;
        self.finish(&result, is_leaving).await;
    }

    /// Shows the end of a run.
    async fn finish(&mut self, result: &Result<RunReport, RunError>, is_leaving: bool) {
        // After the only run, an interrupt must not end the process before the answer is printed.
        if self.is_chat {
            self.host.interrupts.unwatch();
        }
        self.host.runtime.readers_done().await;
        self.exit = match &self.front_end {
            FrontEnd::Lines(_) => self.host.print(result),
            FrontEnd::Tui(_) => self.show_result(result),
        };
        // Without a reader of stdout, further turns would cost money for nothing.
        let is_unread = self.exit == Exit::Unread;
        self.has_ended |= is_leaving || is_unread || !self.is_chat || self.host.interrupts.must_leave();
    }

    /// Shows in the terminal UI what the events of a run do not show.
    fn show_result(&self, result: &Result<RunReport, RunError>) -> Exit {
        let report = match result {
            Ok(report) => report,
            Err(error) => &error.report,
        };
        let exit = self.host.exit_of(report);
        for warning in self.host.cassette_warnings() {
            self.front_end.remark(&format!("warning: {warning}"));
        }
        if let Some(hint) = failure_hint::for_user(report, &self.host.limit_sources()) {
            self.front_end.remark(&format!("hint: {hint}"));
        }
        if let Some(line) = resume_line(report) {
            self.front_end.remark(&line);
        }
        if !stdout().is_terminal() {
            self.host.answer.finish(report);
        }
        if exit == Exit::Usage {
            self.front_end.give_back();
        }
        exit
    }

    /// Shows why a request cannot be carried out.
    fn refuse(&mut self, message: &str) {
        self.exit = Exit::Usage;
        self.front_end.remark(message);
        self.front_end.give_back();
    }

    fn report_usage(&self) {
        if let Some(chat) = self.sessions.get(self.current) {
            self.front_end.remark(&usage_line(&chat.session.usage().total()));
        }
    }

    /// Returns the model that answers in the current conversation; none if the entry is a function.
    fn model(&self) -> Option<&str> {
        let chosen = self.sessions.get(self.current).and_then(|chat| chat.model.as_deref());
        chosen.or(self.host.model.as_deref())
    }

    fn report_model(&self) {
        self.front_end.remark(&match self.model() {
            Some(model) => format!("the model is `{}`; `/model NAME` chooses another", visible(model)),
            None => "no model answers here: the entry is a function".to_owned(),
        });
    }
}

/// Waits for a run, and carries out what the user asks for meanwhile. Returns also whether the user leaves.
async fn while_attended<T>(
    work: impl Future<Output = T>,
    host: &Host,
    front_end: &mut FrontEnd,
) -> (T, bool) {
    let mut work = std::pin::pin!(work);
    let mut is_leaving = false;
    loop {
        let request = tokio::select! {
            result = &mut work => return (result, is_leaving),
            request = front_end.next_during_run() => request,
        };
        match request {
            Some(UserRequest::Quit) if is_leaving => leave_at_once(host),
            // A run that is not known yet is about to be.
            Some(UserRequest::Interrupt) => host.interrupts.cancel(),
            Some(UserRequest::Quit) => {
                is_leaving = true;
                host.interrupts.cancel();
            }
            Some(request) => is_leaving |= carry_out_at_once(&request, host, front_end),
            // The front end is gone: nobody could answer a question any more.
            None if is_leaving => return (work.await, true),
            None => {
                is_leaving = true;
                host.interrupts.cancel();
            }
        }
    }
}

/// Leaves without waiting for what does not stop.
fn leave_at_once(host: &Host) -> ! {
    llm_do_tui::restore();
    llm_do_sandbox::end_all_commands();
    approvals::abandon_editor();
    let exit = host.interrupts.signal().map_or(Exit::Interrupted, Exit::from);
    std::process::exit(exit.code().into());
}

/// Carries out what needs no conversation, also during a run. Returns whether the user leaves.
fn carry_out_at_once(request: &UserRequest, host: &Host, front_end: &FrontEnd) -> bool {
    match request {
        UserRequest::Interrupt => host.interrupts.cancel_running(),
        UserRequest::Cancel { run, call } => {
            if !host.runtime.cancel_call(*run, call) {
                front_end.remark("that call has already ended");
            }
        }
        UserRequest::ListGrants => front_end.remark(&grants::list(&host.runtime)),
        UserRequest::Revoke(number) => front_end.remark(&grants::revoke(&host.runtime, number)),
        UserRequest::Quit => {
            host.interrupts.cancel_running();
            return true;
        }
        UserRequest::Invalid(message) => front_end.remark(message),
        _ => front_end.remark("not while a turn runs; Esc stops it"),
    }
    false
}
