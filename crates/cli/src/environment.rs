//! The environment as one value: the process's own, and beneath it what counts of the `.env` of the project.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use llm_do::model::{Environment, KeyStoreError};
use llm_do::project::LoadedProject;
use llm_do_trust::Power;

use crate::command_error::CommandError;
use crate::config;
use crate::credentials::Credentials;
use crate::dotenv::Dotenv;

/// Returns the directory in which this binary keeps what it remembers between runs.
pub(crate) fn state_directory() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.state_dir().unwrap_or_else(|| base.data_dir()).join("llm-do"))
}

/// Returns the directory in which this binary keeps what can be made anew.
pub(crate) fn cache_directory() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.cache_dir().join("llm-do"))
}

/// Returns the name of this machine, which the record has beside the paths of projects.
pub(crate) fn machine_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the variables for the code of a project: those of its `.env`, and over them the process's own.
pub(crate) fn for_code(dotenv: &Dotenv) -> Vec<(OsString, OsString)> {
    let file = dotenv.for_code().map(|(name, value)| (name.into(), value.into()));
    file.chain(std::env::vars_os()).collect()
}

/// Returns the environment of a project that is trusted: the variables of the process, and from its `.env` the keys of
/// providers that somebody agreed to, and those that its own providers name. Addresses, the default model and
/// everything else that this binary reads come from the process alone.
pub(crate) fn for_project(project: &LoadedProject) -> Result<Environment, CommandError> {
    let agreed = project.powers.iter().filter_map(|declared| match &declared.power {
        Power::DotenvKey { name } => Some(name.as_str()),
        _ => None,
    });
    let declared = project.providers.values().filter_map(|provider| provider.api_key_env.as_deref());
    let names: Vec<&str> = agreed.chain(declared).collect();
    let variables = if names.is_empty() { Vec::new() } else { Dotenv::read(&project.root)?.only(&names) };
    Ok(for_user(Some(&project.root))?.with_project(variables))
}

/// The variables of the process, the addresses that the user's configuration gives to built-in providers, and the
/// user's store of keys, which is opened when a key is needed that no variable holds.
pub(crate) fn for_user(project: Option<&Path>) -> Result<Environment, CommandError> {
    let addresses = config::current(project)?.addresses();
    let environment = Environment::from_lookup(move |name| {
        let own = std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let configured = || addresses.iter().find(|(variable, _)| *variable == name);
        own.or_else(|| configured().map(|(_, address)| address.clone()))
    });
    Ok(match Credentials::for_user(project) {
        Some(store) => {
            environment.with_stored_keys(move |account| store.key(account).map_err(KeyStoreError::new))
        }
        None => environment,
    })
}
