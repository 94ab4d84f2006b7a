//! `llm-do check`: every problem of a project, and what it can reach. No model or tool is called.

use llm_do::{Diagnostics, LoadedProject};
use serde_json::{Value, json};

use crate::arguments::{CheckArguments, CheckOutput};
use crate::exit::Exit;
use crate::host;
use crate::output;
use crate::problem::Problem;
use crate::screen::Paint;
use crate::text::printable;

/// Checks a project.
pub(crate) fn check(arguments: &CheckArguments) -> Result<Exit, Problem> {
    if arguments.output == CheckOutput::Mermaid && !arguments.reach {
        return Err(Problem::with_hint("`--output mermaid` draws the reach", "add `--reach`"));
    }
    if arguments.is_static {
        return check_static(arguments);
    }
    let loaded = match host::load_quietly(&arguments.project) {
        Ok(project) => with_needs(project),
        Err(Problem::Project(diagnostics)) => Err(diagnostics),
        Err(problem) => return Err(problem),
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

/// Checks a project without running any of its code.
fn check_static(arguments: &CheckArguments) -> Result<Exit, Problem> {
    if arguments.reach {
        let hint = "leave one of them out: what can be reached is known only when the code was run";
        return Err(Problem::with_hint("`--reach` and `--static` exclude each other", hint));
    }
    let diagnostics = host::check_static(&arguments.project)?;
    let ok = !diagnostics.has_errors();
    match arguments.output {
        CheckOutput::Json => {
            let value = json!({"ok": ok, "static": true, "diagnostics": diagnostics.0});
            output::to_stdout(&serde_json::to_string_pretty(&value).unwrap_or_default());
        }
        _ => {
            show(&diagnostics);
            if ok {
                output::to_stdout("ok, as far as it can be seen without running anything");
            }
        }
    }
    Ok(if ok { Exit::Done } else { Exit::Usage })
}

fn print_json(loaded: &Result<LoadedProject, Diagnostics>, reach: bool) {
    let diagnostics = match loaded {
        Ok(project) => &project.notices,
        Err(diagnostics) => diagnostics,
    };
    let mut value = json!({"ok": loaded.is_ok(), "diagnostics": diagnostics.0});
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
                output::to_stdout(&printable(&project.reach().to_string()));
            } else {
                output::to_stdout(&summary(project));
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
