//! `cargo xtask test`: everything that this machine can test, and a list of what it cannot.

use std::collections::BTreeSet;
use std::fs::File;
use std::time::SystemTime;

use anyhow::Context;
use llm_do_capabilities::{Capability, REQUIRE_VARIABLE, missing_at_build, parse_list};

use crate::command::{finish, in_root, root, tell};
use crate::setup;

/// Sets up what is missing, then runs the tests.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let wanted = required()?;
    set_up_packages(&wanted)?;
    let missing: Vec<(Capability, String)> = Capability::ALL
        .into_iter()
        .filter_map(|capability| Some((capability, capability.find().err()?.to_string())))
        .collect();
    rebuild_tests_if_changed(&missing)?;
    let is_found = |capability: &Capability| missing.iter().all(|(other, _)| other != capability);
    let required = wanted.unwrap_or_else(|| Capability::ALL.into_iter().filter(is_found).collect());
    let names: Vec<&str> = required.iter().map(|capability| capability.as_str()).collect();
    let mut command = in_root("cargo", &["test"]);
    command.args(arguments.is_empty().then_some("--workspace")).args(arguments);
    command.env(REQUIRE_VARIABLE, names.join(","));
    let result = finish(command);
    for (capability, reason) in &missing {
        tell(&format!("not tested, needs {capability}: {reason}"));
    }
    result
}

/// Returns the capabilities that the caller requires, if any are named.
fn required() -> anyhow::Result<Option<BTreeSet<Capability>>> {
    let Some(list) = std::env::var(REQUIRE_VARIABLE).ok().filter(|list| !list.is_empty()) else {
        return Ok(None);
    };
    parse_list(&list).map(Some).with_context(|| format!("{REQUIRE_VARIABLE}={list}"))
}

/// Installs the packages if Python is there. Without a network the tests of packages are ignored, unless they are required.
fn set_up_packages(required: &Option<BTreeSet<Capability>>) -> anyhow::Result<()> {
    let is_required = required.as_ref().is_some_and(|names| names.contains(&Capability::Packages));
    if Capability::Python.find().is_err() && !is_required {
        return Ok(());
    }
    match setup::packages() {
        Err(error) if !is_required => tell(&format!("warning: {error:#}")),
        result => return result,
    }
    Ok(())
}

/// Makes cargo build the tests again if a capability came or went since the last build: tests without theirs
/// are compiled as ignored.
fn rebuild_tests_if_changed(missing: &[(Capability, String)]) -> anyhow::Result<()> {
    let is_missing = |capability| missing.iter().any(|(other, _)| *other == capability);
    let is_changed =
        |capability: &Capability| missing_at_build(*capability).is_some() != is_missing(*capability);
    let changed: Vec<&str> = Capability::ALL
        .iter()
        .filter(|capability| is_changed(capability))
        .map(|capability| capability.as_str())
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    tell(&format!("since the last build, this machine changed: {}", changed.join(", ")));
    let script = root().join("crates/capabilities/build.rs");
    let touched =
        File::options().append(true).open(&script).and_then(|file| file.set_modified(SystemTime::now()));
    touched.with_context(|| format!("{} cannot be touched", script.display()))
}
