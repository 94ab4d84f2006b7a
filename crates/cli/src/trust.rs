//! Decides whether a project may use its powers: by the record, by a flag, or by asking a person.
//!
//! One function decides for every command that runs something of a project, [`decide`]. Commands that only look ask
//! [`may_run_code`], which never asks a person.

mod content;
mod question;
mod text;
mod view;

use std::path::{Path, PathBuf};

use llm_do::project::LoadedProject;
use llm_do_trust::{
    CodeDigests, ForeignFile, Lookup, Power, Powers, TrustStore, code_digests, foreign_files,
};
use llm_do_trust::{DirectoryIdentity, TrustEntry, TrustSource};

use crate::child::is_child;
use crate::command_error::CommandError;
use crate::console::Paint;
use crate::environment::state_directory;
use crate::output;
use crate::wrap;

pub(crate) use text::{date, list as powers_list, shown_digest, shown_root};

/// More powers than these are not agreed to: nobody reads such a list.
const MAX_POWERS: usize = 100;

/// What the user says about trust on the command line or in the environment of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TrustOverride {
    /// Trust whatever the project wants, for this run.
    All,
    /// Trust exactly the powers with one of these digests, for this run.
    Digests(Vec<String>),
    /// Run without any power.
    Nothing,
}

/// How a project may be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustDecision {
    /// With its powers.
    Trusted,
    /// Without them: its code is not run, and what loosens or sends is left out.
    Restricted,
}

/// Decides whether a project may use its powers.
pub(crate) fn decide(project: &LoadedProject, flag: Option<&str>) -> Result<TrustDecision, CommandError> {
    decide_about(project, None, flag)
}

/// Decides the same about a project whose files come from a record. That the directory is trusted with whatever is in it
/// covers what its files of today want, and not what only those of the record want.
pub(crate) fn decide_recorded(
    project: &LoadedProject,
    today: &Powers,
    flag: Option<&str>,
) -> Result<TrustDecision, CommandError> {
    decide_about(project, Some(today), flag)
}

fn decide_about(
    project: &LoadedProject,
    today: Option<&Powers>,
    flag: Option<&str>,
) -> Result<TrustDecision, CommandError> {
    let powers = &project.powers;
    let given = trust_override(flag)?;
    if powers.is_empty() {
        return Ok(TrustDecision::Trusted);
    }
    if let Some((TrustOverride::Nothing, source)) = given {
        notice_restricted(project, &format!("`{source}` is `none`"));
        return Ok(TrustDecision::Restricted);
    }
    if powers.len() > MAX_POWERS {
        let message = format!("the project wants {} powers, more than {MAX_POWERS}", powers.len());
        return Err(CommandError::with_hint(message, "look at them with `llm-do check`, and remove some"));
    }
    if let Some((given, source)) = given {
        return apply_override(project, &given, source).map(|()| TrustDecision::Trusted);
    }
    let identity = identity(project)?;
    let store = store(project);
    let found = store.look_up(&identity, powers).unwrap_or_else(|error| {
        warn(&error.to_string());
        Lookup::Unknown
    });
    let found = match today {
        Some(today) => within_agreement(found, powers, today),
        None => found,
    };
    let foreign = foreign(project, accepted_owner(&found));
    if let Lookup::Trusted(entry) = &found
        && foreign.is_empty()
    {
        return content::decide(project, &identity, entry).map(|()| TrustDecision::Trusted);
    }
    let asked = question::TrustQuestion {
        project,
        identity: &identity,
        found: &found,
        foreign: &foreign,
        is_recorded: today.is_some(),
    };
    match question::ask(&asked) {
        question::TrustReply::Remember => {
            let entry = TrustEntry::new(&identity, powers.to_vec(), TrustSource::Question);
            store.record(entry).unwrap_or_else(|error| warn(&error.to_string()));
            Ok(TrustDecision::Trusted)
        }
        question::TrustReply::Once => Ok(TrustDecision::Trusted),
        question::TrustReply::Without => {
            notice_restricted(project, "you chose so");
            Ok(TrustDecision::Restricted)
        }
        question::TrustReply::No => {
            Err(CommandError::usage("the project is not trusted, so nothing of it was run"))
        }
        question::TrustReply::NobodyToAsk => Err(not_trusted(project, &found)),
    }
}

/// Takes back a trust that was given to a whole directory, for powers that none of its files has today.
fn within_agreement(found: Lookup, powers: &Powers, today: &Powers) -> Lookup {
    match found {
        Lookup::Trusted(entry) if entry.below => {
            let agreed: Vec<Power> = entry.powers.iter().cloned().chain(today.to_vec()).collect();
            let beyond = powers.beyond(&agreed);
            if beyond.is_empty() { Lookup::Trusted(entry) } else { Lookup::Beyond(entry, beyond) }
        }
        found => found,
    }
}

/// Returns whether a command that only looks may run the code of a project: the directory is the person's own, or it is
/// trusted and its code is as the last run saw it.
pub(crate) fn may_run_code(project: &LoadedProject) -> bool {
    let Some(entry) = trusted_entry(project) else { return false };
    entry.own || (!entry.code.is_empty() && changed(project, &entry).is_empty())
}

/// Returns whether a person agreed to all powers of a project, without asking anybody.
pub(crate) fn is_trusted(project: &LoadedProject) -> bool {
    project.powers.is_empty() || trusted_entry(project).is_some()
}

/// Returns what a person agreed to about a project, also if the project wants more by now.
pub(crate) fn agreement(project: &LoadedProject) -> Option<TrustEntry> {
    let identity = identity(project).ok()?;
    match store(project).look_up(&identity, &project.powers) {
        Ok(Lookup::Trusted(entry) | Lookup::Beyond(entry, _)) => Some(*entry),
        _ => None,
    }
}

/// Returns the agreement that covers all powers of a project, without asking anybody.
pub(crate) fn trusted_entry(project: &LoadedProject) -> Option<TrustEntry> {
    let identity = identity(project).ok()?;
    match store(project).look_up(&identity, &project.powers) {
        Ok(Lookup::Trusted(entry)) if foreign(project, entry.owner).is_empty() => Some(*entry),
        _ => None,
    }
}

/// Remembers which code a run imported, so that a change can be named at the next run.
pub(crate) fn remember_code(project: &LoadedProject) {
    if project.code_files().is_empty() {
        return;
    }
    let Some(entry) = trusted_entry(project) else { return };
    let digests = digests(project);
    if entry.code != digests
        && let Ok(identity) = identity(project)
    {
        // A record that cannot be written is said when somebody wants to be remembered.
        let _ = store(project).update(&identity, |entry| entry.code = digests);
    }
}

/// The store of the user, unless it is in the project: then anybody who wrote the project wrote the store.
pub(crate) fn store(project: &LoadedProject) -> TrustStore {
    let root = project.root.canonicalize().unwrap_or_else(|_| project.root.clone());
    let is_usable = |directory: &PathBuf| {
        let real = directory.canonicalize().unwrap_or_else(|_| directory.clone());
        directory.is_absolute() && (!real.starts_with(&root) || holds_home(&root))
    };
    TrustStore::new(state_directory().filter(is_usable))
}

/// Returns whether a directory is the home directory of the user or above it: such a project does not own what is kept
/// there.
fn holds_home(root: &Path) -> bool {
    let home = std::env::var_os("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok());
    home.is_some_and(|home| home.starts_with(root))
}

pub(crate) fn identity(project: &LoadedProject) -> Result<DirectoryIdentity, CommandError> {
    DirectoryIdentity::read(&project.root)
        .map_err(|error| CommandError::usage(format!("`{}` cannot be read: {error}", project.root.display())))
}

/// The files of a project that belong to somebody else, or that others can write to.
pub(crate) fn foreign(project: &LoadedProject, accepted: Option<u32>) -> Vec<ForeignFile> {
    let files = project.own_files();
    foreign_files(std::iter::once(project.root.as_path()).chain(files.iter().map(PathBuf::as_path)), accepted)
}

fn accepted_owner(found: &Lookup) -> Option<u32> {
    match found {
        Lookup::Trusted(entry) | Lookup::Beyond(entry, _) => entry.owner,
        Lookup::Unknown | Lookup::Replaced => None,
    }
}

/// Reads `--trust` and `LLM_DO_TRUST`; the flag takes precedence. Neither counts in a process that llm-do started.
fn trust_override(flag: Option<&str>) -> Result<Option<(TrustOverride, &'static str)>, CommandError> {
    if is_child() {
        return Ok(None);
    }
    if let Some(flag) = flag {
        return Ok(Some((parse_override(flag, "--trust")?, "--trust")));
    }
    match std::env::var("LLM_DO_TRUST") {
        Ok(text) if !text.trim().is_empty() => {
            Ok(Some((parse_override(&text, "LLM_DO_TRUST")?, "LLM_DO_TRUST")))
        }
        _ => Ok(None),
    }
}

fn parse_override(text: &str, name: &str) -> Result<TrustOverride, CommandError> {
    match text {
        "all" => return Ok(TrustOverride::All),
        "none" => return Ok(TrustOverride::Nothing),
        _ => {}
    }
    let digests: Vec<String> = text.split(',').map(|digest| digest.trim().to_ascii_lowercase()).collect();
    let is_digest = |digest: &String| digest.len() >= 12 && digest.chars().all(|c| c.is_ascii_hexdigit());
    if digests.iter().all(is_digest) {
        return Ok(TrustOverride::Digests(digests));
    }
    let message = format!(
        "`{name}` is `{}`, expected `all`, `none` or digests of 12 hexadecimal digits",
        crate::text::visible_line(text)
    );
    Err(CommandError::with_hint(message, "a refusal prints the digest of a project's powers"))
}

fn apply_override(project: &LoadedProject, given: &TrustOverride, source: &str) -> Result<(), CommandError> {
    let digest = project.powers.digest();
    match given {
        TrustOverride::All => {}
        TrustOverride::Digests(digests) if digests.iter().any(|known| digest.starts_with(known.as_str())) => {
        }
        TrustOverride::Digests(_) | TrustOverride::Nothing => return Err(other_digest(project, source)),
    }
    let paint = Paint::for_stderr();
    match source {
        "--trust" => {
            let list = text::list(project);
            let text = wrap::for_stderr(&format!("trusted for this run by `--trust`:\n{list}"));
            output::to_stderr(&paint.message(&text));
        }
        source => {
            let count = project.powers.len();
            let noun = if count == 1 { "power" } else { "powers" };
            output::early_notice(&format!("{count} {noun} trusted by {source}"));
        }
    }
    Ok(())
}

/// The error for a digest that does not match the powers.
fn other_digest(project: &LoadedProject, source: &str) -> CommandError {
    let (shown, list) = (text::shown_root(&project.root), text::list(project));
    let digest = shown_digest(&project.powers);
    CommandError::with_hint(
        format!("the powers of `{shown}` have the digest {digest}, not the one in `{source}`\n{list}"),
        format!("look with `llm-do check {shown}`; the Python interpreter counts as well"),
    )
}

/// Shows a notice that a project runs without its powers.
fn notice_restricted(project: &LoadedProject, source: &str) {
    let list = text::list(project);
    output::early_notice(&format!("{source}, so the project runs without these powers:\n{list}"));
}

fn not_trusted(project: &LoadedProject, found: &Lookup) -> CommandError {
    let shown = text::shown_root(&project.root);
    let digest = shown_digest(&project.powers);
    let message = match found {
        Lookup::Beyond(entry, changes) => {
            let (date, changes) = (text::date(entry), text::changes(changes, project));
            format!(
                "`{shown}` wants more than you agreed to on {date}, and you cannot be asked without a terminal\n{changes}"
            )
        }
        _ => {
            let list = text::list(project);
            format!("`{shown}` is not trusted, and you cannot be asked without a terminal\n{list}")
        }
    };
    CommandError::with_hint(
        message,
        format!(
            "look with `llm-do check {shown}`, then run `llm-do trust {shown}`; for this run only: `--trust={digest}`"
        ),
    )
}

fn digests(project: &LoadedProject) -> CodeDigests {
    let root = project.root.canonicalize().unwrap_or_else(|_| project.root.clone());
    let files: Vec<PathBuf> = project
        .code_files()
        .iter()
        .filter_map(|file| Some(file.canonicalize().ok()?.strip_prefix(&root).ok()?.to_path_buf()))
        .collect();
    code_digests(&root, files.iter().map(PathBuf::as_path))
}

/// The files of code that differ from what the last run imported.
fn changed(project: &LoadedProject, entry: &TrustEntry) -> Vec<String> {
    let now = digests(project);
    let names = now.keys().chain(entry.code.keys().filter(|name| !now.contains_key(*name)));
    names.filter(|name| now.get(*name) != entry.code.get(*name)).cloned().collect()
}

fn warn(text: &str) {
    output::to_stderr(&Paint::for_stderr().message(&format!("warning: {}", crate::text::visible_line(text))));
}

/// Records that a person agreed to the powers of a project.
pub(crate) fn record(
    project: &LoadedProject,
    powers: &Powers,
    change: impl FnOnce(&mut TrustEntry),
) -> Result<(), CommandError> {
    let mut entry = TrustEntry::new(&identity(project)?, powers.to_vec(), TrustSource::Command);
    change(&mut entry);
    store(project).record(entry).map_err(|error| CommandError::usage(error.to_string()))
}
