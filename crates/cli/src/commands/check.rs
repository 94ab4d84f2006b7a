//! `llm-do check`: every problem of a project, and what it can reach. No model or tool is called.

use llm_do::project::{Diagnostics, LoadedProject};
use llm_do_trust::Powers;
use serde_json::{Value, json};

use crate::arguments::{CheckArguments, CheckOutput};
use crate::command_error::CommandError;
use crate::console::Paint;
use crate::exit::Exit;
use crate::loading;
use crate::location::{self, ProjectLocation};
use crate::output;
use crate::text::printable;
use crate::trust;
use crate::wrap;

/// Checks a project.
pub(crate) fn check(arguments: &CheckArguments) -> Result<Exit, CommandError> {
    if arguments.output == CheckOutput::Mermaid && !arguments.reach {
        return Err(CommandError::with_hint("`--output mermaid` draws the reach", "add `--reach`"));
    }
    let location = location::locate(&arguments.project)?;
    let seen = match loading::load_static(&location) {
        Ok(project) => Ok(project),
        Err(CommandError::Project(diagnostics)) => Err(diagnostics),
        Err(problem) => return Err(problem),
    };
    let runs_code = |project: &LoadedProject| {
        project.has_code() && !arguments.is_static && (arguments.run_code || trust::may_run_code(project))
    };
    let loaded = match seen {
        Ok(project) if runs_code(&project) => match loading::load_with_code(&location, &project) {
            Ok(project) => with_needs(project),
            Err(CommandError::Project(diagnostics)) => Err(diagnostics),
            Err(problem) => return Err(problem),
        },
        Ok(project) if project.has_code() && !arguments.reach => {
            return check_static(arguments, &location, &project);
        }
        seen => seen,
    };
    match arguments.output {
        CheckOutput::Json => print_json(&loaded, arguments.reach),
        CheckOutput::Text => print_text(&loaded, arguments.reach),
        CheckOutput::Mermaid => print_mermaid(&loaded),
    }
    Ok(if loaded.is_ok() { Exit::Done } else { Exit::Usage })
}

/// Refuses a project whose tools need values that nobody provides: no call of them could succeed.
fn with_needs(project: LoadedProject) -> Result<LoadedProject, Diagnostics> {
    let missing = project.missing_needs();
    if missing.has_errors() { Err(missing) } else { Ok(project) }
}

/// Checks a project with code without running it, and lists what only running it would show.
fn check_static(
    arguments: &CheckArguments,
    location: &ProjectLocation,
    project: &LoadedProject,
) -> Result<Exit, CommandError> {
    let diagnostics = loading::check_static(location)?;
    let ok = !diagnostics.has_errors();
    match arguments.output {
        CheckOutput::Json => {
            let value = json!({"ok": ok, "static": true, "diagnostics": diagnostics.0, "powers": project.powers, "digest": digest(&project.powers)});
            output::to_stdout(&serde_json::to_string_pretty(&value).unwrap_or_default());
        }
        _ => {
            show(&diagnostics);
            if ok {
                output::to_stdout("ok, as far as it can be seen without running anything");
                show_powers(project);
            }
        }
    }
    Ok(if ok { Exit::Done } else { Exit::Usage })
}

/// The digest of powers as `--trust` takes it; nothing without powers.
fn digest(powers: &Powers) -> Option<String> {
    (!powers.is_empty()).then(|| trust::shown_digest(powers))
}

/// Prints what the project does without a question.
fn show_powers(project: &LoadedProject) {
    if !project.powers.is_empty() {
        let digest = trust::shown_digest(&project.powers);
        let list = trust::powers_list(project);
        let text = format!("powers: what it does without a question ({digest}):\n{list}");
        output::to_stdout(&wrap::for_stdout(&printable(&text)));
    }
}

fn print_json(loaded: &Result<LoadedProject, Diagnostics>, reach: bool) {
    let diagnostics = match loaded {
        Ok(project) => &project.notices,
        Err(diagnostics) => diagnostics,
    };
    let mut value = json!({"ok": loaded.is_ok(), "diagnostics": diagnostics.0});
    if let Ok(project) = loaded {
        value["powers"] = json!(project.powers);
        if let Some(digest) = digest(&project.powers) {
            value["digest"] = json!(digest);
        }
    }
    if let (Ok(project), true) = (loaded, reach) {
        value["reach"] = serde_json::to_value(project.reach()).unwrap_or(Value::Null);
    }
    output::to_stdout(&serde_json::to_string_pretty(&value).unwrap_or_default());
}

fn print_text(loaded: &Result<LoadedProject, Diagnostics>, reach: bool) {
    match loaded {
        Ok(project) => {
            show(&project.notices);
            if reach {
                loading::notice_not_run_by_looking(project);
                output::to_stdout(&printable(&project.reach().to_string()));
            } else {
                output::to_stdout(&summary(project));
                show_powers(project);
            }
        }
        Err(diagnostics) => show(diagnostics),
    }
}

fn print_mermaid(loaded: &Result<LoadedProject, Diagnostics>) {
    match loaded {
        Ok(project) => drop(output::to_stdout(&printable(&project.reach().mermaid()))),
        Err(diagnostics) => show(diagnostics),
    }
}

fn show(diagnostics: &Diagnostics) {
    if !diagnostics.0.is_empty() {
        output::to_stderr(&Paint::for_stderr().message(&diagnostics.to_string()));
    }
}

fn summary(project: &LoadedProject) -> String {
    let agents = project.project.agents().count();
    let noun = if agents == 1 { "agent" } else { "agents" };
    format!("ok: {agents} {noun}, entry `{}`", project.entry)
}
