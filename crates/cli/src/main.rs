//! The command line of llm-do: arguments in, exit code out.
//!
//! stdout carries only the answer; everything else goes to stderr. What a run does is in the library: this
//! binary reads files, flags, the environment and the terminal, and draws events.

mod advice;
mod answer_text;
mod approvals;
mod arguments;
mod caught_up;
mod child;
mod chosen_model;
mod command_order;
mod commands;
mod config;
mod credentials;
#[cfg(unix)]
mod descriptors;
mod dotenv;
mod ending;
mod environment;
mod exit;
mod history;
mod host;
mod input;
mod location;
mod model_name;
mod narration;
mod output;
mod problem;
mod progress;
mod python_flags;
mod run_object;
mod screen;
mod secret_input;
mod signals;
mod stdin;
mod stream;
mod surface;
mod text;
mod trust;
mod tui;
mod typed_input;
mod words;

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(unix)]
    descriptors::keep_to_itself();
    let exit = match arguments::parse(std::env::args_os()) {
        Ok(command) => commands::execute(command),
        Err(refused) => refused.show(),
    };
    approvals::abandon_editor();
    approvals::end_approver();
    llm_do_tui::restore();
    // Whoever did not stop when it was told to.
    llm_do_sandbox::end_all_commands();
    if output::has_failed() && exit == exit::Exit::Done { exit::Exit::Failed.into() } else { exit.into() }
}
