//! Loads the project at a location, as far as it is trusted: with its code, without it, or restricted.

use llm_do::call::NoticeSink;
use llm_do::project::{Diagnostics, LoadedProject, Powers, StandardCatalog};
use llm_do::tools::PythonSettings;

use crate::command_error::CommandError;
use crate::config::{self, UserDirectory};
use crate::console::Paint;
use crate::dotenv::Dotenv;
use crate::environment;
use crate::location::ProjectLocation;
use crate::output;
use crate::record_directory;
use crate::text::{notice_line, visible_line};
use crate::trust::{self, TrustDecision};

/// Loads the project at a location in order to run it, and shows its notices.
///
/// It is first loaded without running anything. Its code runs and its `.env` is read only if its powers are trusted.
pub(crate) fn load(location: &ProjectLocation, trust: Option<&str>) -> Result<LoadedProject, CommandError> {
    let seen = load_static(location)?;
    let decision = match &location.recorded {
        None => trust::decide(&seen, trust)?,
        Some(_) => trust::decide_recorded(&seen, &powers_of_today(location), trust)?,
    };
    if decision == TrustDecision::Restricted {
        return load_restricted(location);
    }
    // Without code the project is complete already.
    if !seen.has_code() {
        show_notices(&seen);
        return Ok(seen);
    }
    let catalog = catalog(location, EnvFile::Read)?;
    let agreed = Some(&seen.powers);
    let project = llm_do_project::load_agreed(&location.path, &location.set, agreed, &catalog)?;
    trust::remember_code(&project);
    show_notices(&project);
    Ok(project)
}

/// Returns the powers of the files on disk; none if they cannot be used.
fn powers_of_today(location: &ProjectLocation) -> Powers {
    let today = ProjectLocation { recorded: None, ..location.clone() };
    load_static(&today).map(|project| project.powers).unwrap_or_default()
}

/// Loads the project at a location without its powers.
fn load_restricted(location: &ProjectLocation) -> Result<LoadedProject, CommandError> {
    let catalog = catalog(location, EnvFile::Ignored)?;
    let project = llm_do_project::load_restricted(&location.path, &location.set, &catalog)?;
    show_notices(&project);
    if let Some(notice) = code_not_run(&project) {
        output::early_notice(&notice);
    }
    Ok(project)
}

/// Loads the project at a location to inspect it. Its code runs only if it is trusted and unchanged.
pub(crate) fn load_for_looking(location: &ProjectLocation) -> Result<LoadedProject, CommandError> {
    let project = load_static(location)?;
    if !project.has_code() || !trust::may_run_code(&project) {
        notice_not_run_by_looking(&project);
        return Ok(project);
    }
    load_with_code(location, &project)
}

/// Loads the project at a location and runs its code, if its powers are still those that were seen.
pub(crate) fn load_with_code(
    location: &ProjectLocation,
    seen: &LoadedProject,
) -> Result<LoadedProject, CommandError> {
    let catalog = catalog(location, EnvFile::Read)?;
    Ok(llm_do_project::load_agreed(&location.path, &location.set, Some(&seen.powers), &catalog)?)
}

/// Loads the project at a location without running anything of it.
pub(crate) fn load_static(location: &ProjectLocation) -> Result<LoadedProject, CommandError> {
    let catalog = catalog(location, EnvFile::Ignored)?;
    Ok(llm_do_project::load_static(&location.path, &location.set, &catalog)?)
}

/// Checks the project at a location without running any of its code.
pub(crate) fn check_static(location: &ProjectLocation) -> Result<Diagnostics, CommandError> {
    let catalog = catalog(location, EnvFile::Ignored)?;
    Ok(llm_do_project::check_static(&location.path, &location.set, &catalog))
}

/// Shows the notices about a project.
pub(crate) fn show_notices(project: &LoadedProject) {
    if !project.notices.0.is_empty() {
        output::to_stderr(&Paint::for_stderr().message(&project.notices.to_string()));
    }
}

/// Shows a notice if a command that only looks did not run code, and how it may.
pub(crate) fn notice_not_run_by_looking(project: &LoadedProject) {
    if let Some(notice) = code_not_run(project) {
        let root = trust::shown_root(&project.root);
        output::early_notice(&format!(
            "{notice}\nhint: `llm-do trust {root} --own` lets commands that only look run it"
        ));
    }
}

/// Says that code was not run, and what is missing without it.
fn code_not_run(project: &LoadedProject) -> Option<String> {
    if !project.has_code() || project.ran_code() {
        return None;
    }
    let missing = match &project.unseen[..] {
        [] => String::new(),
        unseen => format!(", so these are missing: {}", visible_line(&unseen.join(", "))),
    };
    Some(format!("the Python code of this project was not run{missing}"))
}

/// What happens to the `.env` of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EnvFile {
    /// Its variables are for the code of the project.
    Read,
    /// It is not read: the project is not trusted yet.
    Ignored,
}

/// Hides the environment of this process from the code that it runs: Linux shows it to other processes of the same user,
/// unless the process is not dumpable.
fn hide_environment() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Returns the catalog that the project at a location is linked against.
fn catalog(location: &ProjectLocation, env_file: EnvFile) -> Result<StandardCatalog, CommandError> {
    let directory = std::env::current_dir().unwrap_or_else(|_| ".".into());
    let mut catalog = StandardCatalog::new(directory);
    if let Some(path) = std::env::var_os("PATH") {
        catalog = catalog.search_path(path);
    }
    if let Some(path) = environment::cache_directory() {
        catalog = catalog.read_only(path);
    }
    let root = location.root();
    let user = config::current(Some(root))?;
    let own = [UserDirectory::Config, UserDirectory::Data].map(|kind| kind.find(Some(root)).path);
    let record = record_directory::own_record().and_then(|record| Some(record.parent()?.to_owned()));
    let own = own.into_iter().chain([environment::state_directory(), record]).flatten();
    let private = own.chain(location.private.iter().cloned());
    catalog = private.fold(catalog, StandardCatalog::private);
    catalog = catalog.user_models(user.models()).allow_secret_files(&user.settings.secret_files.allow);
    if let Some(files) = &location.recorded {
        catalog = catalog.recorded_files(files.clone());
    }
    hide_environment();
    let python = PythonSettings {
        environment: match env_file {
            EnvFile::Read => environment::for_code(&Dotenv::read(root)?),
            EnvFile::Ignored => std::env::vars_os().collect(),
        },
        cache: environment::cache_directory().map(|cache| cache.join("python")),
        notices: NoticeSink::new(|text| {
            output::to_stderr(&Paint::for_stderr().message(&notice_line(&text)));
            Ok(())
        }),
        ..PythonSettings::default()
    };
    Ok(catalog.python(python))
}
