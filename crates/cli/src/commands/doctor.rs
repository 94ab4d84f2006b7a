//! `llm-do doctor`: what is set up here, can the providers be reached, are the keys good, and what confines commands?

mod facts;
mod sandbox;
mod servers;

use std::collections::BTreeSet;
use std::time::Duration;

use llm_do::model::{
    Environment, ModelError, ModelSettings, RetryPolicy, StandardModels, UserModels, account_of, providers,
};
use llm_do::project::{LoadedProject, LoadedProjectExt};
use llm_do::tools::sandbox_status;
use llm_do::{AgentSpec, Project, Runtime};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::arguments::{DoctorArguments, ListOutput};
use crate::command_error::CommandError;
use crate::config;
use crate::environment;
use crate::exit::Exit;
use crate::loading;
use crate::location::{self, ProjectLocation};
use crate::model_name;
use crate::output;
use crate::text::visible_line;
use crate::trust;
use crate::wrap;

use facts::{Fact, FactState, facts};
use sandbox::{sandbox_lines, sandbox_value};
use servers::Server;

/// How long one try may take.
const LIMIT: Duration = Duration::from_mins(1);

/// What was tried, and what came of it.
struct Tried {
    kind: &'static str,
    name: String,
    took: Duration,
    result: Result<String, String>,
}

/// Everything that was looked at and tried.
struct Report {
    facts: Vec<Fact>,
    servers: Vec<Server>,
    tried: Vec<Tried>,
    /// Whether a project was named.
    has_project: bool,
}

/// Shows what is set up here, and tries the providers for which a key is set and the models of a project.
pub(crate) fn doctor(arguments: &DoctorArguments) -> Result<Exit, CommandError> {
    let location = location::locate_if_any(arguments.path.as_deref())?;
    let root = location.as_ref().map(ProjectLocation::root);
    // What is wrong with one file must not keep the rest from being looked at.
    let (config, config_error) = config::current_or_defaults(root);
    let project = location.as_ref().and_then(|location| {
        loading::load_for_looking(location).inspect_err(|problem| _ = problem.show()).ok()
    });
    let own = environment::for_user(root)?;
    let environment = match &project {
        Some(project) if trust::is_trusted(project) => environment::for_project(project)?,
        _ => own.clone(),
    };
    let named = arguments.model.iter().map(|model| model_name::completed(model, project.as_ref()));
    let named = named.collect::<Result<Vec<String>, CommandError>>()?;
    // Who names models, and no project, wants to know about these.
    let is_general = arguments.model.is_empty() || arguments.path.is_some();
    let facts = match is_general {
        true => facts(config, config_error.as_ref(), location.as_ref(), project.as_ref()),
        false => Vec::new(),
    };
    let user = config.models();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CommandError::Other(error.into()))?;
    let report = runtime.block_on(async {
        let servers = if is_general { servers::servers(&own).await } else { Vec::new() };
        let tried = examine(arguments, named, project.as_ref(), &user, &environment).await;
        Report { facts, servers, tried, has_project: project.is_some() }
    });
    match arguments.output {
        ListOutput::Text => report.print_text(is_general),
        ListOutput::Json => report.print_json(),
    }
    Ok(if report.is_well() { Exit::Done } else { Exit::Provider })
}

async fn examine(
    arguments: &DoctorArguments,
    named: Vec<String>,
    project: Option<&LoadedProject>,
    user: &UserModels,
    environment: &Environment,
) -> Vec<Tried> {
    // Nothing is sent to an address that a project chose before somebody trusts it.
    let is_trusted = project.is_none_or(trust::is_trusted);
    let models = || match project {
        Some(project) if is_trusted => project.models_for_user(environment.clone(), user),
        Some(project) => user.add_to(StandardModels::new(&project.root).environment(environment.clone())),
        None => user.add_to(StandardModels::new(".").environment(environment.clone())),
    };
    let mut tried = Vec::new();
    // Who names models, and no project, wants to know about these.
    let are_named = !arguments.model.is_empty() && arguments.path.is_none();
    let asked = if are_named { Vec::new() } else { configured(project, user, environment) };
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
    for model in wanted_models(named, project.filter(|_| !are_named)) {
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

/// Providers with a key, those of the user, and those that the project declares.
fn configured(project: Option<&LoadedProject>, user: &UserModels, environment: &Environment) -> Vec<String> {
    let is_set = |names: &[&str]| names.iter().any(|name| environment.get(name).is_some());
    let is_stored = |name: &str| environment.stored_key(name).is_ok_and(|key| key.is_some());
    // An address alone does not help if a key is needed. Two prefixes of one host share key and address.
    let hosted = providers()
        .iter()
        .filter(|provider| provider.needs_key && account_of(provider.name) == provider.name);
    let built_in = hosted.filter(|provider| is_set(provider.key_env) || is_stored(provider.name));
    let own = user.providers.iter().map(|provider| provider.name.clone());
    let declared = project.into_iter().flat_map(|project| project.providers.keys().cloned());
    built_in.map(|provider| provider.name.to_owned()).chain(own).chain(declared).collect()
}

fn wanted_models(by_person: Vec<String>, project: Option<&LoadedProject>) -> BTreeSet<String> {
    let outlines = project.map(|project| project.project.outline()).unwrap_or_default();
    let agents = outlines.iter().filter_map(|outline| outline.agent.as_ref());
    let named = agents.flat_map(|agent| agent.model.iter().chain(&agent.fallback_models));
    let named = named.map(|model| model.name().to_string());
    let general = project.and_then(|project| project.model.as_ref()).map(ToString::to_string);
    let is_remote = |model: &String| {
        let provider = model.split([':', '/']).next().unwrap_or_default();
        !matches!(provider, "test" | "script")
    };
    named.chain(general).chain(by_person).filter(is_remote).collect()
}

async fn try_provider(models: &StandardModels, provider: &str) -> Tried {
    let started = Instant::now();
    let probed = models.probe(provider).await;
    let result = probed.map_err(|error| describe(&error)).map(|found| match found.len() {
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

fn describe(error: &ModelError) -> String {
    error.to_string()
}

impl Report {
    fn is_well(&self) -> bool {
        let states =
            self.facts.iter().map(|fact| fact.state).chain(self.servers.iter().map(|server| server.state));
        self.tried.iter().all(|tried| tried.result.is_ok())
            && states.into_iter().all(|state| state != FactState::Fail)
    }

    fn print_text(&self, is_general: bool) {
        let mut lines: Vec<String> = self.facts.iter().map(Fact::line).collect();
        lines.extend(servers::lines(&self.servers));
        lines.extend(tried_lines(&self.tried));
        if self.tried.is_empty() && is_general {
            lines.push(format!("none  provider  {}", self.no_provider()));
        }
        lines.extend(sandbox_lines(sandbox_status()));
        output::to_stdout(&wrap::for_stdout(&lines.join("\n")));
    }

    /// Why nobody on the network was asked.
    fn no_provider(&self) -> &'static str {
        match self.has_project {
            true => {
                "no key is set or stored, and the project names no model of a provider; `llm-do models` lists them"
            }
            false => "no key is set or stored; `llm-do models` lists providers and their variables",
        }
    }

    fn print_json(&self) {
        let facts: Vec<Value> = self.facts.iter().map(Fact::value).collect();
        let servers: Vec<Value> = self.servers.iter().map(servers::value).collect();
        let tried: Vec<Value> = self.tried.iter().map(Tried::value).collect();
        let sandbox = sandbox_value(sandbox_status());
        let value = json!({"facts": facts, "servers": servers, "tried": tried, "sandbox": sandbox});
        output::to_stdout(&serde_json::to_string_pretty(&value).unwrap_or_default());
    }
}

impl Tried {
    fn value(&self) -> Value {
        let (ok, text) = match &self.result {
            Ok(text) => (true, text),
            Err(text) => (false, text),
        };
        json!({
            "kind": self.kind,
            "name": self.name,
            "ok": ok,
            "duration_ms": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
            "result": text,
        })
    }
}

fn tried_lines(tried: &[Tried]) -> Vec<String> {
    let width = tried.iter().map(|tried| tried.name.chars().count()).max().unwrap_or(0);
    let line = |tried: &Tried| {
        let (mark, text) = match &tried.result {
            Ok(text) => ("ok  ", text.clone()),
            Err(text) => ("fail", visible_line(text)),
        };
        let took = tried.took.as_secs_f64();
        format!("{mark}  {:8}  {:width$}  {took:5.1} s  {text}", tried.kind, visible_line(&tried.name))
    };
    tried.iter().map(line).collect()
}
