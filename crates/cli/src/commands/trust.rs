//! `llm-do trust`: what a project does without a question, and agreeing to it.

use std::io::{IsTerminal, stderr, stdin};
use std::path::{Path, PathBuf};

use llm_do::project::LoadedProject;
use llm_do_trust::{Powers, TrustEntry, TrustStore, is_too_wide};

use crate::arguments::{ProjectArguments, TrustArguments};
use crate::command_error::CommandError;
use crate::environment::state_directory;
use crate::exit::Exit;
use crate::text::visible_line;
use crate::{child, loading, location, output, trust, wrap};

/// Shows the powers of a project and agrees to them, lists agreements, or takes one back.
pub(crate) fn trust(arguments: &TrustArguments) -> Result<Exit, CommandError> {
    child::refuse("trust projects")?;
    if arguments.list {
        return list();
    }
    if arguments.below {
        return trust_below(arguments.path.as_deref().unwrap_or(Path::new(".")));
    }
    if arguments.revoke {
        return revoke(&revoked(arguments)?);
    }
    let named = ProjectArguments { path: arguments.path.clone(), set: Vec::new() };
    let project = loading::load_static(&location::locate(&named)?)?;
    let shown = visible_line(&project.root.display().to_string());
    if project.powers.is_empty() && !arguments.own {
        output::to_stdout(&format!("{shown} does nothing without asking you, so there is nothing to trust"));
        return Ok(Exit::Done);
    }
    agree(&project, &shown, arguments)
}

/// Shows the powers of a project, asks about them unless the same was agreed to already, and remembers the agreement.
fn agree(project: &LoadedProject, shown: &str, arguments: &TrustArguments) -> Result<Exit, CommandError> {
    let digest = trust::shown_digest(&project.powers);
    let list = trust::powers_list(project);
    let directory = project.root.canonicalize().unwrap_or_else(|_| project.root.clone());
    let directory = visible_line(&directory.display().to_string());
    output::to_stderr(&wrap::for_stderr(&format!("{directory} does this without asking you:\n\n{list}\n")));
    check_expected(arguments.expect.as_deref(), &project.powers, &digest)?;
    // An agreement about a directory above does not keep this one from having its own.
    let path = trust::identity(project)?.path;
    let own = trust::trusted_entry(project).filter(|entry| entry.path() == path);
    if let Some(entry) = own.filter(|entry| covers(entry, arguments)) {
        output::to_stdout(&format!("already trusted since {}: {shown} ({digest})", trust::date(&entry)));
        return Ok(Exit::Done);
    }
    if let Some(file) = trust::foreign(project, arguments.owner).first() {
        let hint = format!("`--owner {}` accepts that owner", file.owner);
        return Err(CommandError::with_hint(format!("trust cannot be remembered: {file}"), hint));
    }
    if arguments.expect.is_none() && !confirm(question(arguments.own), &digest)? {
        return Err(refused(trust::agreement(project).as_ref()));
    }
    trust::record(project, &project.powers, |entry| {
        entry.own = arguments.own;
        entry.owner = arguments.owner;
    })?;
    output::to_stdout(&format!("trusted: {shown} ({digest})"));
    Ok(Exit::Done)
}

/// Checks the digest that a script expects.
fn check_expected(expected: Option<&str>, powers: &Powers, digest: &str) -> Result<(), CommandError> {
    match expected {
        Some(expected) if !powers.digest().starts_with(&expected.to_ascii_lowercase()) => {
            Err(CommandError::usage(format!("the digest of these powers is {digest}, not {expected}")))
        }
        Some(expected) if expected.len() < 12 => {
            Err(CommandError::usage("`--expect` needs at least 12 digits of the digest"))
        }
        _ => Ok(()),
    }
}

/// Returns whether an agreement has all that is asked for.
fn covers(entry: &TrustEntry, arguments: &TrustArguments) -> bool {
    (entry.own || !arguments.own) && (arguments.owner.is_none() || entry.owner == arguments.owner)
}

fn question(own: bool) -> &'static str {
    match own {
        true => {
            "Trust this directory as your own work? Commands that only look (`check`, `list`) then run its code, too, \
             also after you edit it."
        }
        false => "Trust this directory?",
    }
}

/// Says what holds after a no.
fn refused(earlier: Option<&TrustEntry>) -> CommandError {
    match earlier {
        Some(entry) => CommandError::usage(format!(
            "nothing was changed: what you agreed to on {} still holds",
            trust::date(entry)
        )),
        None => CommandError::usage("not trusted"),
    }
}

/// Asks for a yes at the terminal.
fn confirm(question: &str, digest: &str) -> Result<bool, CommandError> {
    if !stdin().is_terminal() || !stderr().is_terminal() {
        let hint = format!("look at the list, then add `--expect {digest}`");
        return Err(CommandError::with_hint("you cannot be asked without a terminal", hint));
    }
    output::to_stderr(&format!("{question}  y + Enter: yes, anything else: no"));
    let mut line = String::new();
    let _ = stdin().read_line(&mut line);
    Ok(["y", "Y", "yes"].contains(&line.trim()))
}

fn trust_below(path: &Path) -> Result<Exit, CommandError> {
    use llm_do_trust::{DirectoryIdentity, TrustSource};
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from);
    let home = home.and_then(|home| home.canonicalize().ok());
    let shown = visible_line(&path.display().to_string());
    if let Some(reason) = is_too_wide(path, home.as_deref()) {
        return Err(CommandError::usage(format!(
            "`{shown}` is too wide to trust everything below it: {reason}"
        )));
    }
    let identity =
        DirectoryIdentity::read(path).map_err(|error| CommandError::usage(format!("`{shown}`: {error}")))?;
    confirm_below(&shown)?;
    let mut entry = TrustEntry::new(&identity, Vec::new(), TrustSource::Command);
    entry.below = true;
    TrustStore::new(state_directory())
        .record(entry)
        .map_err(|error| CommandError::usage(error.to_string()))?;
    output::to_stdout(&format!("trusted with everything below: {shown}"));
    Ok(Exit::Done)
}

fn confirm_below(shown: &str) -> Result<(), CommandError> {
    if !stdin().is_terminal() || !stderr().is_terminal() {
        return Err(CommandError::with_hint(
            "you cannot be asked without a terminal",
            "run it at a terminal",
        ));
    }
    output::to_stderr(&format!(
        "Every project below {shown}, including later ones, may do anything without asking you."
    ));
    match confirm(question(false), "")? {
        true => Ok(()),
        false => Err(refused(None)),
    }
}

fn list() -> Result<Exit, CommandError> {
    let entries = TrustStore::new(state_directory()).entries();
    let entries = entries.map_err(|error| CommandError::usage(error.to_string()))?;
    if entries.is_empty() {
        output::to_stdout("no directory is trusted");
    }
    for entry in entries {
        let marks = [(entry.own, "own"), (entry.below, "and everything below")];
        let marks: Vec<&str> = marks.into_iter().filter(|(is, _)| *is).map(|(_, mark)| mark).collect();
        let marks = if marks.is_empty() { String::new() } else { format!("  ({})", marks.join(", ")) };
        let date = trust::date(&entry);
        let path = visible_line(&entry.path().display().to_string());
        output::to_stdout(&format!("{path}  {date}  {}{marks}", entry.digest.get(..12).unwrap_or_default()));
    }
    Ok(Exit::Done)
}

/// The directory whose trust is taken back: that of the project, or a path that is gone or never was a project.
fn revoked(arguments: &TrustArguments) -> Result<PathBuf, CommandError> {
    match &arguments.path {
        Some(path) if !path.is_file() => Ok(path.clone()),
        path => {
            let named = ProjectArguments { path: path.clone(), set: Vec::new() };
            Ok(location::locate(&named)?.root().to_path_buf())
        }
    }
}

fn revoke(path: &Path) -> Result<Exit, CommandError> {
    let real =
        path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_path_buf());
    let store = TrustStore::new(state_directory());
    let shown = visible_line(&real.display().to_string());
    match store.revoke(&real).map_err(|error| CommandError::usage(error.to_string()))? {
        true => output::to_stdout(&format!("no longer trusted: {shown}")),
        false => {
            return Err(CommandError::with_hint(
                format!("`{shown}` was not trusted"),
                "`llm-do trust --list` shows what is",
            ));
        }
    };
    Ok(Exit::Done)
}
