//! Which servers of models run on this machine, and what they offer. Nothing of a project is asked.

use std::time::Duration;

use futures::future::join_all;
use llm_do::model::{Environment, StandardModels, providers};
use llm_do_core::counted;
use serde_json::{Value, json};

use super::facts::FactState;
use crate::text::visible_line;

/// How long a server may take that nobody said is there.
const LIMIT: Duration = Duration::from_secs(1);

/// How long a server may take whose address the user set: longer than a TLS handshake, whose failure names its cause.
const LIMIT_IF_SET: Duration = Duration::from_secs(6);

/// How many models of a server are named.
const MAX_NAMED: usize = 5;

/// Servers that are looked for at their usual ports. That of vLLM is used by too many others.
const USUAL: [&str; 3] = ["ollama", "lmstudio", "llamacpp"];

/// A server that was looked for.
pub(super) struct Server {
    pub(super) state: FactState,
    name: &'static str,
    address: String,
    models: Vec<String>,
    text: String,
}

/// Looks for all servers at once.
pub(super) async fn servers(environment: &Environment) -> Vec<Server> {
    let is_set = |names: &[&str]| names.iter().any(|name| environment.get(name).is_some());
    let local = providers().iter().filter(|provider| !provider.needs_key);
    let wanted = local.filter_map(|provider| {
        let is_set = is_set(provider.base_url_env);
        (is_set || USUAL.contains(&provider.name)).then_some((provider.name, is_set))
    });
    join_all(wanted.map(|(name, is_set)| look(name, is_set, environment))).await
}

async fn look(name: &'static str, is_set: bool, environment: &Environment) -> Server {
    let models = StandardModels::new(".").environment(environment.clone());
    let address = models.address(name).unwrap_or_default();
    let limit = if is_set { LIMIT_IF_SET } else { LIMIT };
    // What the user pointed at should be there; a usual port may be anybody's.
    let missing = if is_set { FactState::Fail } else { FactState::None };
    let server = |state, models, text: String| Server { state, name, address: address.clone(), models, text };
    match tokio::time::timeout(limit, models.probe(name)).await {
        Ok(Ok(found)) => {
            let text = describe(&found);
            server(FactState::Ok, found, text)
        }
        Ok(Err(error)) if error.message.starts_with("nothing listens") => {
            server(missing, Vec::new(), "nothing listens there".to_owned())
        }
        Ok(Err(error)) if is_set => server(missing, Vec::new(), visible_line(&error.to_string())),
        Ok(Err(_)) => server(missing, Vec::new(), "something else listens there".to_owned()),
        Err(_) => server(missing, Vec::new(), format!("no answer within {} s", limit.as_secs())),
    }
}

fn describe(models: &[String]) -> String {
    let count = counted(models.len() as u64, "model");
    if models.is_empty() {
        return count;
    }
    let named: Vec<String> = models.iter().take(MAX_NAMED).map(|name| visible_line(name)).collect();
    let rest = match models.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    format!("{count}: {}{rest}", named.join(", "))
}

/// One line per server.
pub(super) fn lines(servers: &[Server]) -> Vec<String> {
    let names = servers.iter().map(|server| server.name.len()).max().unwrap_or_default();
    let shown = |server: &Server| visible_line(&server.address);
    let addresses = servers.iter().map(|server| shown(server).chars().count()).max().unwrap_or_default();
    let line = |server: &Server| {
        let Server { state, name, text, .. } = server;
        format!("{:4}  server    {name:names$}  {:addresses$}  {text}", state.as_str(), shown(server))
    };
    servers.iter().map(line).collect()
}

/// The same for programs.
pub(super) fn value(server: &Server) -> Value {
    json!({
        "name": server.name,
        "state": server.state.as_str(),
        "base_url": server.address,
        "models": server.models,
        "result": server.text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_models_are_named_and_the_rest_counted() {
        let names = |count: usize| (1..=count).map(|number| format!("m{number}")).collect::<Vec<_>>();
        assert_eq!(describe(&[]), "0 models");
        assert_eq!(describe(&names(1)), "1 model: m1");
        assert_eq!(describe(&names(7)), "7 models: m1, m2, m3, m4, m5 and 2 more");
    }
}
