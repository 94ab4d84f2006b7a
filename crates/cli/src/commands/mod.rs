//! The commands, one module each.

mod call;
mod chat;
mod check;
mod doctor;
mod init;
mod list;
mod models;
mod run;
mod schema;

pub(crate) use chat::{grants, revoke};

use crate::arguments::{self, Command, Output};
use crate::exit::Exit;
use crate::output;
use crate::problem::Problem;

/// Executes a command and says what kept it from doing its work.
pub(crate) fn execute(command: Command) -> Exit {
    let wants_json = wants_json(&command);
    let result = match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Chat(arguments) => chat::chat(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::List(arguments) => list::list(&arguments),
        Command::Call(arguments) => call::call(&arguments),
        Command::Init(arguments) => init::init(&arguments),
        Command::Models(arguments) => models::models(&arguments),
        Command::Schema(arguments) => schema::schema(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Completions(arguments) => {
            arguments::completions(arguments.shell);
            Ok(Exit::Done)
        }
    };
    result.unwrap_or_else(|problem| refuse(&problem, wants_json))
}

fn refuse(problem: &Problem, wants_json: bool) -> Exit {
    if wants_json {
        let text = problem.to_string();
        let words = text.strip_prefix("error: ").unwrap_or(&text);
        output::to_stdout(&output::refusal_value("invalid", words).to_string());
    }
    problem.show()
}

/// A program that asked for one object gets one, also where nothing ran.
fn wants_json(command: &Command) -> bool {
    match command {
        Command::Run(arguments) => arguments.options.output == Output::Json,
        Command::Call(arguments) => arguments.options.output == Output::Json,
        _ => false,
    }
}
