//! The commands, one module each.

mod approvals;
mod auth;
mod call;
mod chat;
mod chats;
mod check;
mod config;
mod doctor;
mod init;
mod list;
mod models;
mod resume;
mod run;
mod runs;
mod schema;
mod show;
mod trust;
mod usage;

use crate::arguments::{self, Command, Output};
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output;
use crate::run_object::RunObject;

/// Executes a command and says what kept it from doing its work.
pub(crate) fn execute(command: Command) -> Exit {
    let output = output_of(&command);
    let result = match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Chat(arguments) => chat::chat(&arguments),
        Command::Chats(arguments) => chats::chats(&arguments),
        Command::Resume(arguments) => resume::resume(&arguments),
        Command::Approvals(arguments) => approvals::approvals(&arguments),
        Command::Approve(arguments) => approvals::approve(&arguments),
        Command::Deny(arguments) => approvals::deny(&arguments),
        Command::Runs(arguments) => runs::runs(&arguments),
        Command::Show(arguments) => show::show(&arguments),
        Command::Usage(arguments) => usage::usage(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::List(arguments) => list::list(&arguments),
        Command::Call(arguments) => call::call(&arguments),
        Command::Init(arguments) => init::init(&arguments),
        Command::Models(arguments) => models::models(&arguments),
        Command::Trust(arguments) => trust::trust(&arguments),
        Command::Config(arguments) => config::config(&arguments),
        Command::Auth(arguments) => auth::auth(&arguments),
        Command::Schema(arguments) => schema::schema(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Completions(arguments) => {
            arguments::completions(arguments.shell);
            Ok(Exit::Done)
        }
    };
    result.unwrap_or_else(|problem| refuse(&problem, output))
}

/// Says what is wrong. A program that reads stdout gets an object there, although nothing ran.
fn refuse(problem: &CommandError, form: Output) -> Exit {
    let object = RunObject::refused(problem);
    match form {
        Output::Text => {}
        Output::Json => drop(output::to_stdout(&object.to_line())),
        Output::Jsonl => drop(output::to_stdout(&object.into_last_line().to_line())),
    }
    problem.show()
}

/// What stdout carries for a run.
fn output_of(command: &Command) -> Output {
    match command {
        Command::Run(arguments) => arguments.options.output,
        Command::Chat(arguments) => arguments.options.output,
        Command::Call(arguments) => arguments.options.output,
        Command::Resume(arguments) => arguments.options.output,
        _ => Output::Text,
    }
}
