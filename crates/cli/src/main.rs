//! The command line of llm-do: arguments in, exit code out.
//!
//! stdout carries only the answer; everything else goes to stderr. What a run does is in the library: this
//! binary reads files, flags, the environment and the terminal, and draws events.

mod answer_text;
mod approvals;
mod arguments;
mod changed_project;
mod child;
mod chosen_model;
mod command_error;
mod command_order;
mod commands;
mod config;
mod console;
mod controller;
mod credentials;
mod dotenv;
mod environment;
mod event_barrier;
mod event_printer;
mod exit;
mod failure_hint;
#[cfg(unix)]
mod fds;
mod front_end;
mod history;
mod host;
mod input;
mod loading;
mod location;
mod model_name;
mod output;
mod path_syntax;
mod plain_output;
mod plan;
mod print_result;
mod python_flags;
mod record;
mod record_directory;
mod recorded_chat;
mod retention;
mod run_object;
mod secret_input;
mod signals;
mod silence;
mod status_line;
mod stdin;
mod stream;
mod terminal_question;
mod text;
mod trust;
mod typed_input;
mod unknown;
mod wrap;

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(unix)]
    fds::set_cloexec_on_inherited();
    let exit = match arguments::parse(std::env::args_os()) {
        Ok(command) => commands::execute(command),
        Err(refused) => refused.show(),
    };
    approvals::abandon_editor();
    approvals::end_approver();
    llm_do_tui::restore();
    // Commands that did not end when they were asked to.
    llm_do_sandbox::end_all_commands();
    if output::has_failed() && exit == exit::Exit::Done { exit::Exit::Failed.into() } else { exit.into() }
}
