//! What the tests may need from the machine, and whether it was found.
//!
//! A test that needs a [`Capability`] has the attribute `#[needs(python)]` of `llm-do-testing`. If the capability was not found
//! when the tests were built, the test is compiled as ignored, with the reason. libtest cannot ignore a test
//! while it runs, so the decision is made by the build script of this crate.
//!
//! `LLM_DO_REQUIRE=sandbox,python` makes a missing capability a failure: each test binary with such tests calls
//! [`check_required`].

mod capability;

use std::collections::BTreeSet;

pub use capability::{
    Capability, MissingCapability, PYTHON_ENVIRONMENTS, PythonEnvironment, UnknownCapability, WIRE_VARIABLE,
    python_version, test_cache,
};

/// The variable that names the capabilities that must be there, separated by commas.
pub const REQUIRE_VARIABLE: &str = "LLM_DO_REQUIRE";

/// Returns why a capability was not found when the tests were built, or `None` if it was found.
pub fn missing_at_build(capability: Capability) -> Option<&'static str> {
    let reason = match capability {
        Capability::Sandbox => env!("LLM_DO_MISSING_SANDBOX"),
        Capability::SandboxSignals => env!("LLM_DO_MISSING_SANDBOX_SIGNALS"),
        Capability::Python => env!("LLM_DO_MISSING_PYTHON"),
        Capability::Packages => env!("LLM_DO_MISSING_PACKAGES"),
        Capability::Model => env!("LLM_DO_MISSING_MODEL"),
        Capability::Wire => env!("LLM_DO_MISSING_WIRE"),
        Capability::Root => env!("LLM_DO_MISSING_ROOT"),
        Capability::Tracing => env!("LLM_DO_MISSING_TRACING"),
    };
    (!reason.is_empty()).then_some(reason)
}

/// Returns the capabilities that a list such as `sandbox,python` names.
///
/// # Errors
///
/// Fails with the first name that is not known.
pub fn parse_list(list: &str) -> Result<BTreeSet<Capability>, UnknownCapability> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::parse).collect()
}

/// Checks that the tests of every capability that `LLM_DO_REQUIRE` names can run, and were not compiled as
/// ignored.
///
/// # Panics
///
/// Panics if a required capability is unknown or missing, or was missing when the tests were built.
#[track_caller]
pub fn check_required() {
    let list = std::env::var(REQUIRE_VARIABLE).unwrap_or_default();
    let problems = problems(&list, Capability::find, missing_at_build);
    assert!(problems.is_empty(), "{REQUIRE_VARIABLE}={list}: {}", problems.join("\n"));
}

fn problems(
    list: &str,
    find: impl Fn(Capability) -> Result<(), MissingCapability>,
    missing_at_build: impl Fn(Capability) -> Option<&'static str>,
) -> Vec<String> {
    let required = match parse_list(list) {
        Ok(required) => required,
        Err(unknown) => return vec![unknown.to_string()],
    };
    let problem = |capability: Capability| match (find(capability), missing_at_build(capability)) {
        (Err(reason), _) => Some(format!("`{capability}` is missing: {reason}")),
        (Ok(()), Some(_)) => Some(format!(
            "`{capability}` is there now, but was missing when the tests were built: run `cargo xtask test`, or \
             `cargo clean -p llm-do-capabilities`"
        )),
        (Ok(()), None) => None,
    };
    required.into_iter().filter_map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_capabilities_are_found() {
        check_required();
    }

    #[test]
    fn a_list_names_known_capabilities() {
        let required = parse_list("python, sandbox,").unwrap();
        assert_eq!(required.into_iter().collect::<Vec<_>>(), [Capability::Sandbox, Capability::Python]);
        let message = parse_list("python,phyton").unwrap_err().to_string();
        assert_eq!(
            message,
            "there is no capability `phyton`; known are sandbox, sandbox_signals, python, packages, model, wire, root, tracing"
        );
    }

    #[test]
    fn a_required_capability_must_be_there_now_and_when_the_tests_were_built() {
        let found = |_| Ok(());
        let missing = |_| Err(MissingCapability::new("no python"));
        assert_eq!(problems("", missing, |_| Some("no python")), Vec::<String>::new());
        assert_eq!(problems("python", found, |_| None), Vec::<String>::new());
        assert_eq!(problems("python", missing, |_| None), ["`python` is missing: no python"]);
        let [late] = &problems("python", found, |_| Some("no python"))[..] else { panic!() };
        assert!(
            late.starts_with("`python` is there now, but was missing when the tests were built"),
            "{late}"
        );
        let [unknown] = &problems("phyton", found, |_| None)[..] else { panic!() };
        assert!(unknown.starts_with("there is no capability `phyton`"), "{unknown}");
    }
}
