//! `llm-do doctor`: can the providers be reached, are the keys good, and what confines commands?

use std::collections::BTreeSet;
use std::time::Duration;

use llm_do::{
    AgentSpec, Environment, LoadedProject, ModelError, ModelSettings, Project, RetryPolicy, Runtime,
    SandboxStatus, StandardModels, provider_names, providers, sandbox_status,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::arguments::{DoctorArguments, ListOutput, ProjectArguments};
use crate::environment;
use crate::exit::Exit;
use crate::host;
use crate::output;
use crate::problem::Problem;
use crate::text::visible_line;
use crate::trust;

/// How long one try may take.
const LIMIT: Duration = Duration::from_mins(1);

/// What was tried, and what came of it.
struct Tried {
    kind: &'static str,
    name: String,
    took: Duration,
    result: Result<String, String>,
}

/// Tries the providers for which a key is set, and the models of a project.
pub(crate) fn doctor(arguments: &DoctorArguments) -> Result<Exit, Problem> {
    let project = arguments
        .path
        .as_ref()
        .map(|path| host::load_for_looking(&ProjectArguments { path: path.clone(), set: Vec::new() }));
    let project = project.transpose()?;
    let environment = match &project {
        Some(project) if trust::is_trusted(project) => environment::of_project(project)?,
        Some(_) => Environment::of_process(),
        None => Environment::of_process(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Problem::Other(error.into()))?;
    let tried = runtime.block_on(examine(arguments, project.as_ref(), &environment));
    let is_well = tried.iter().all(|tried| tried.result.is_ok());
    match arguments.output {
        ListOutput::Text => {
            print_text(&tried);
            output::to_stdout(&sandbox_lines(sandbox_status()).join("\n"));
        }
        ListOutput::Json => print_json(&tried, sandbox_status()),
    }
    Ok(if is_well { Exit::Done } else { Exit::Provider })
}

async fn examine(
    arguments: &DoctorArguments,
    project: Option<&LoadedProject>,
    environment: &Environment,
) -> Vec<Tried> {
    // Nothing is sent to an address that a project chose before somebody trusts it.
    let is_trusted = project.is_none_or(trust::is_trusted);
    let models = || match project {
        Some(project) if is_trusted => llm_do::models_of(project, environment.clone()),
        Some(project) => StandardModels::new(&project.root).environment(environment.clone()),
        None => StandardModels::new(".").environment(environment.clone()),
    };
    let mut tried = Vec::new();
    // Who names models, and no project, wants to know about these.
    let are_named = !arguments.model.is_empty() && project.is_none();
    let asked = if are_named { Vec::new() } else { configured(project, environment) };
    let is_withheld = |provider: &str| {
        !is_trusted && project.is_some_and(|project| project.provider_names().any(|name| name == provider))
    };
    for provider in asked {
        if is_withheld(&provider) {
            tried.push(not_tried("provider", &provider));
            continue;
        }
        output::to_stderr(&format!("asking {provider} for its models ..."));
        tried.push(try_provider(&models(), &provider).await);
    }
    for model in wanted_models(arguments, project) {
        if is_withheld(model.split(':').next().unwrap_or_default()) {
            tried.push(not_tried("model", &model));
            continue;
        }
        output::to_stderr(&format!("asking {} for one word ...", visible_line(&model)));
        tried.push(try_model(models(), &model).await);
    }
    tried
}

/// A provider or model of a project that nobody trusts yet.
fn not_tried(kind: &'static str, name: &str) -> Tried {
    let reason = "not tried: the project is not trusted; see `llm-do trust`".to_owned();
    Tried { kind, name: name.to_owned(), took: Duration::ZERO, result: Err(reason) }
}

/// Providers that something is set for, and those that the project declares.
fn configured(project: Option<&LoadedProject>, environment: &Environment) -> Vec<String> {
    let is_set = |names: &[&str]| names.iter().any(|name| environment.get(name).is_some());
    // An address alone does not help where a key is needed.
    let built_in = providers().iter().filter(|provider| {
        is_set(provider.key_env) || (!provider.needs_key && is_set(provider.base_url_env))
    });
    // Two prefixes of one host share key and address.
    let distinct = built_in.filter(|provider| provider.name != "openai-chat");
    let declared = project.into_iter().flat_map(|project| project.providers.keys().cloned());
    distinct.map(|provider| provider.name.to_owned()).chain(declared).collect()
}

fn wanted_models(arguments: &DoctorArguments, project: Option<&LoadedProject>) -> BTreeSet<String> {
    let outlines = project.map(|project| project.project.outline()).unwrap_or_default();
    let agents = outlines.iter().filter_map(|outline| outline.agent.as_ref());
    let named = agents.flat_map(|agent| agent.model.iter().chain(&agent.fallback_models));
    let named = named.map(|model| model.name().to_string());
    let general = project.and_then(|project| project.model.as_ref()).map(ToString::to_string);
    let is_remote = |model: &String| {
        let provider = model.split([':', '/']).next().unwrap_or_default();
        !matches!(provider, "test" | "script")
    };
    named.chain(general).chain(arguments.model.clone()).filter(is_remote).collect()
}

async fn try_provider(models: &StandardModels, provider: &str) -> Tried {
    let started = Instant::now();
    let probed = models.probe(provider).await;
    let result = probed.map_err(|error| words(&error)).map(|found| match found.len() {
        1 => "1 model".to_owned(),
        count => format!("{count} models"),
    });
    Tried { kind: "provider", name: provider.to_owned(), took: started.elapsed(), result }
}

async fn try_model(models: StandardModels, model: &str) -> Tried {
    let started = Instant::now();
    let result = ask(models, model).await;
    Tried { kind: "model", name: model.to_owned(), took: started.elapsed(), result }
}

async fn ask(models: StandardModels, model: &str) -> Result<String, String> {
    let settings = ModelSettings { max_tokens: Some(1_024), ..ModelSettings::default() };
    let agent = AgentSpec::new("doctor", "Answer with the single word OK.").model(model).settings(settings);
    let project = Project::builder().agent(agent).build().map_err(|errors| errors.to_string())?;
    let once = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
    let runtime = Runtime::builder(project).models(models).retry(once).build();
    let runtime = runtime.map_err(|errors| errors.to_string())?;
    let report =
        runtime.run("doctor", "Are you there?").timeout(LIMIT).await.map_err(|error| error.to_string())?;
    let said: String = report.text().chars().take(40).collect();
    Ok(format!("said `{}`", visible_line(said.trim())))
}

fn words(error: &ModelError) -> String {
    error.to_string()
}

fn print_text(tried: &[Tried]) {
    if tried.is_empty() {
        let known = provider_names().into_iter().filter(|name| !matches!(*name, "test" | "script"));
        let known: Vec<&str> = known.collect();
        output::to_stdout("no provider is configured: no key is set, and no project is named");
        output::to_stdout(&format!(
            "known providers: {}; `llm-do models` shows their variables",
            known.join(", ")
        ));
        return;
    }
    let width = tried.iter().map(|tried| tried.name.chars().count()).max().unwrap_or(0);
    for tried in tried {
        let (mark, text) = match &tried.result {
            Ok(text) => ("ok  ", text.clone()),
            Err(text) => ("fail", visible_line(text)),
        };
        let took = tried.took.as_secs_f64();
        output::to_stdout(&format!(
            "{mark}  {:8}  {:width$}  {took:5.1} s  {text}",
            tried.kind,
            visible_line(&tried.name)
        ));
    }
}

/// What confines the programs that agents run. Nothing missing here is a failure: commands run with a notice.
fn sandbox_lines(status: &SandboxStatus) -> Vec<String> {
    let landlock = match status.landlock_level {
        Some(level) => format!("ok    sandbox   Landlock, level {level}"),
        None => "none  sandbox   Landlock".to_owned(),
    };
    let filter = if status.filters_calls { "ok  " } else { "none" };
    let mut lines = vec![landlock, format!("{filter}  sandbox   seccomp")];
    if status.is_partly_active() {
        lines.push(format!("      confined: {}", status.covers().join(", ")));
    }
    lines.extend(status.missing.iter().map(|missing| format!("      {missing}")));
    lines.extend(sandbox_hint(status).map(|hint| format!("hint: {hint}")));
    lines
}

fn sandbox_hint(status: &SandboxStatus) -> Option<&'static str> {
    if !cfg!(target_os = "linux") {
        return (!status.is_active())
            .then_some("commands are judged and approved as everywhere, and not confined");
    }
    match (status.landlock_level, status.filters_calls) {
        (None, _) => Some(
            "Landlock needs Linux 5.13 or newer, started with `lsm=landlock,...`, and a container that allows it",
        ),
        (_, false) => {
            Some("seccomp needs x86-64, ARM or RISC-V with 64 bits, and a container that allows it")
        }
        (Some(level), true) if level < 6 => {
            Some("signals to other processes are confined from Linux 6.12 on")
        }
        _ => None,
    }
}

fn print_json(tried: &[Tried], status: &SandboxStatus) {
    let entry = |tried: &Tried| {
        let (ok, text) = match &tried.result {
            Ok(text) => (true, text),
            Err(text) => (false, text),
        };
        json!({
            "kind": tried.kind,
            "name": tried.name,
            "ok": ok,
            "duration_ms": u64::try_from(tried.took.as_millis()).unwrap_or(u64::MAX),
            "result": text,
        })
    };
    let tried: Vec<Value> = tried.iter().map(entry).collect();
    let sandbox = json!({
        "active": status.is_active(),
        "landlock_level": status.landlock_level,
        "seccomp": status.filters_calls,
        "covers": status.covers(),
        "missing": status.missing,
        "hint": sandbox_hint(status),
    });
    output::to_stdout(
        &serde_json::to_string_pretty(&json!({"tried": tried, "sandbox": sandbox})).unwrap_or_default(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(landlock_level: Option<u32>, filters_calls: bool, missing: &[&str]) -> String {
        let missing = missing.iter().map(|words| (*words).to_owned()).collect();
        sandbox_lines(&SandboxStatus { landlock_level, filters_calls, missing }).join("\n")
    }

    #[test]
    fn what_confines_commands_is_said_and_what_to_do_where_it_is_missing() {
        let newest = lines(Some(7), true, &[]);
        assert!(newest.starts_with("ok    sandbox   Landlock, level 7\nok    sandbox   seccomp"), "{newest}");
        assert!(newest.contains("signals") && !newest.contains("hint"), "{newest}");
        let older = lines(Some(3), true, &[]);
        assert!(older.contains("hint: signals") && older.contains("truncation"), "{older}");
        let none = lines(None, false, &["files are not confined: the kernel has no Landlock"]);
        assert!(none.contains("none  sandbox   Landlock") && none.contains("no Landlock"), "{none}");
        assert_eq!(none.contains("hint: Landlock needs"), cfg!(target_os = "linux"), "{none}");
        assert!(!none.contains("\n      confined: "), "{none}");
    }
}
