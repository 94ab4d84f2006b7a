//! Files that tests compare with the program, written again.

use crate::command::{finish, in_root, run};

/// Tests that write a file of the documentation if `UPDATE_DOCS` is set: package, target and filter.
const DOCUMENTATION_TESTS: [(&str, &str); 3] =
    [("llm-do-cli", "reference"), ("llm-do-cli", "pictures"), ("llm-do-project", "python_guide")];

/// Writes the reference pages, the schemas and the pictures.
pub(crate) fn docs() -> anyhow::Result<()> {
    for (package, filter) in DOCUMENTATION_TESTS {
        let mut command = in_root("cargo", &["test", "-p", package, "--test", "it", filter]);
        command.env("UPDATE_DOCS", "1");
        finish(command)?;
    }
    Ok(())
}

/// Takes the newest `genai-prices` and makes the table of prices from it.
pub(crate) fn prices() -> anyhow::Result<()> {
    run("cargo", &["update", "-p", "genai-prices"])?;
    let mut command =
        in_root("cargo", &["test", "-p", "llm-do-models", "--lib", "the_table_is_made_from_the_crate"]);
    command.env("UPDATE_PRICES", "1");
    finish(command)
}

/// Runs the tests and asks about each changed snapshot.
pub(crate) fn snapshots() -> anyhow::Result<()> {
    run("cargo", &["insta", "--version"]).map_err(|error| {
        error.context("cargo-insta is missing: install it with `cargo install cargo-insta --locked`")
    })?;
    run("cargo", &["insta", "test", "--workspace", "--review"])
}
