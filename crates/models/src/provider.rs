//! The providers: the part before the colon of a model's name, and where its requests go.
//!
//! Addresses and keys come from the [`Environment`], and are looked at when a model is first asked: an agent that
//! is never called needs no key.
//!
//! A project that somebody cloned must not collect keys. So the user's own key of a built-in provider goes to that
//! provider's address, or to one that the user's own environment names, never to one that a project chose.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use llm_do_core::{ModelError, ModelErrorKind};

use crate::environment::{Environment, KeyStoreError, Variable};
use crate::http::{is_absent, is_without_tls};
use crate::wire::Api;

/// A protocol that providers speak, by the prefix of the provider that made it.
pub const PROTOCOLS: &[&str] = &["anthropic", "openai", "openai-chat", "gemini", "ollama"];

/// A provider that needs no declaration in a manifest.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct BuiltinProvider {
    /// The prefix of its models.
    pub name: &'static str,
    /// Other prefixes that mean the same.
    pub aliases: &'static [&'static str],
    /// The protocol that it speaks, one of [`PROTOCOLS`].
    pub protocol: &'static str,
    /// Its address; empty where the environment must give one.
    pub base_url: &'static str,
    /// The variables that may give another address, the first that is set.
    pub base_url_env: &'static [&'static str],
    /// The variables that may hold the key, the first that is set.
    pub key_env: &'static [&'static str],
    /// Whether it refuses requests without a key.
    pub needs_key: bool,
}

/// A provider that a project declares, or the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredProvider {
    /// The prefix of its models.
    pub name: String,
    /// The protocol that it speaks, one of [`PROTOCOLS`].
    pub protocol: String,
    /// Its address.
    pub base_url: String,
    /// The variable that holds its key, where it needs one.
    pub key_env: Option<String>,
    /// Headers to send with each request.
    pub headers: BTreeMap<String, String>,
    /// Whether the user declared it. Then its address may get any key of the user, and a project cannot redeclare it.
    pub is_users: bool,
}

impl DeclaredProvider {
    /// Checks protocol, address and headers. No key is looked at.
    pub fn check(&self) -> Result<(), ModelError> {
        Endpoint::declared(self, &Environment::empty(), false).map(drop)
    }

    /// Returns whether this provider of a project names the key of a provider of the user, and another address.
    pub(crate) fn borrows_from(&self, other: &Self) -> bool {
        let same_key = self.key_env.is_some() && self.key_env == other.key_env;
        !self.is_users && other.is_users && same_key && host_of(&self.base_url) != host_of(&other.base_url)
    }
}

/// A provider whose models code describes, such as the Python files of a project.
#[derive(Clone)]
pub struct DescribedProvider {
    /// The prefix of its models.
    pub name: String,
    /// Describes a model by its name without the prefix.
    pub describe: Arc<Describe>,
}

/// Describes a model by its name.
pub type Describe = dyn Fn(&str) -> Result<DescribedModel, ModelError> + Send + Sync;

/// How a model is reached that code describes.
#[derive(Clone)]
pub struct DescribedModel {
    /// The protocol, one of [`PROTOCOLS`].
    pub protocol: String,
    /// The address.
    pub base_url: String,
    /// The key, where there is one. The code gave it for this address.
    pub key: Option<String>,
    /// Headers to send with each request.
    pub headers: BTreeMap<String, String>,
    /// The name by which the address knows the model.
    pub model: String,
}

const fn hosted(
    name: &'static str,
    base_url: &'static str,
    base_url_env: &'static [&'static str],
    key_env: &'static [&'static str],
) -> BuiltinProvider {
    let (aliases, protocol, needs_key) = (&[] as &[&str], "openai-chat", true);
    BuiltinProvider { name, aliases, protocol, base_url, base_url_env, key_env, needs_key }
}

const fn local(
    name: &'static str,
    base_url: &'static str,
    base_url_env: &'static [&'static str],
    key_env: &'static [&'static str],
) -> BuiltinProvider {
    BuiltinProvider { needs_key: false, ..hosted(name, base_url, base_url_env, key_env) }
}

static BUILT_IN: &[BuiltinProvider] = &[
    BuiltinProvider {
        protocol: "anthropic",
        ..hosted("anthropic", "https://api.anthropic.com", &["ANTHROPIC_BASE_URL"], &["ANTHROPIC_API_KEY"])
    },
    BuiltinProvider {
        protocol: "openai",
        ..hosted("openai", "https://api.openai.com/v1", &["OPENAI_BASE_URL"], &["OPENAI_API_KEY"])
    },
    hosted("openai-chat", "https://api.openai.com/v1", &["OPENAI_BASE_URL"], &["OPENAI_API_KEY"]),
    BuiltinProvider {
        protocol: "gemini",
        aliases: &["google", "google-gla"],
        ..hosted(
            "gemini",
            "https://generativelanguage.googleapis.com",
            &["GOOGLE_GEMINI_BASE_URL"],
            &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        )
    },
    BuiltinProvider {
        protocol: "ollama",
        ..local("ollama", "http://127.0.0.1:11434", &["OLLAMA_HOST"], &["OLLAMA_API_KEY"])
    },
    hosted("openrouter", "https://openrouter.ai/api/v1", &["OPENROUTER_BASE_URL"], &["OPENROUTER_API_KEY"]),
    hosted("groq", "https://api.groq.com/openai/v1", &["GROQ_BASE_URL"], &["GROQ_API_KEY"]),
    hosted("deepseek", "https://api.deepseek.com/v1", &["DEEPSEEK_BASE_URL"], &["DEEPSEEK_API_KEY"]),
    hosted("mistral", "https://api.mistral.ai/v1", &["MISTRAL_BASE_URL"], &["MISTRAL_API_KEY"]),
    hosted("xai", "https://api.x.ai/v1", &["XAI_BASE_URL"], &["XAI_API_KEY"]),
    hosted("together", "https://api.together.xyz/v1", &["TOGETHER_BASE_URL"], &["TOGETHER_API_KEY"]),
    hosted(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        &["FIREWORKS_BASE_URL"],
        &["FIREWORKS_API_KEY"],
    ),
    hosted(
        "azure",
        "",
        &["AZURE_OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT"],
        &["AZURE_OPENAI_API_KEY", "AZURE_API_KEY"],
    ),
    local("lmstudio", "http://127.0.0.1:1234/v1", &["LMSTUDIO_BASE_URL"], &["LMSTUDIO_API_KEY"]),
    local("llamacpp", "http://127.0.0.1:8080/v1", &["LLAMACPP_BASE_URL"], &["LLAMACPP_API_KEY"]),
    local("vllm", "http://127.0.0.1:8000/v1", &["VLLM_BASE_URL"], &["VLLM_API_KEY"]),
];

/// Returns the providers that need no declaration.
pub fn providers() -> &'static [BuiltinProvider] {
    BUILT_IN
}

/// Returns every prefix of a model's name that needs no declaration, the offline ones among them.
pub fn provider_names() -> Vec<&'static str> {
    let names =
        BUILT_IN.iter().flat_map(|provider| std::iter::once(provider.name).chain(provider.aliases.to_vec()));
    ["test", "script"].into_iter().chain(names).collect()
}

/// Returns every variable that may hold the key of a built-in provider.
pub(crate) fn key_variables() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().flat_map(|provider| provider.key_env.iter().copied())
}

/// Finds a built-in provider by one of its names.
pub(crate) fn built_in(name: &str) -> Option<&'static BuiltinProvider> {
    BUILT_IN.iter().find(|provider| provider.name == name || provider.aliases.contains(&name))
}

/// Returns the name under which the key of a provider is stored: providers that share a key share it.
pub fn account_of(provider: &str) -> &str {
    let Some(found) = built_in(provider) else { return provider };
    BUILT_IN.iter().find(|other| other.key_env == found.key_env).map_or(provider, |first| first.name)
}

/// Where requests to a provider go, and with which key.
pub(crate) struct Endpoint {
    pub(crate) provider: String,
    pub(crate) protocol: String,
    pub(crate) api: Api,
    /// The address without a slash at its end.
    pub(crate) base_url: String,
    /// The headers of each request; the key among them is marked as sensitive.
    pub(crate) headers: HeaderMap,
    /// What must never be shown.
    pub(crate) secrets: Vec<String>,
}

impl Endpoint {
    /// The endpoint of a built-in provider. An error names the variable that is missing.
    pub(crate) fn built_in(
        provider: &BuiltinProvider,
        environment: &Environment,
        needs_keys: bool,
    ) -> Result<Self, ModelError> {
        let address = first_set(provider.base_url_env, environment);
        let base_url = match &address {
            Some((_, variable)) => normalized(provider.name, &variable.value)?,
            None if provider.base_url.is_empty() && needs_keys => return Err(no_address(provider)),
            None if provider.base_url.is_empty() => format!("https://{}.invalid/v1", provider.name),
            None => provider.base_url.to_owned(),
        };
        let key = match first_set(provider.key_env, environment) {
            None if needs_keys => stored(provider.name, provider.key_env, environment)?,
            set => set,
        };
        if let (Some((address, chosen)), Some((key, own))) = (&address, &key)
            && needs_keys
            && chosen.is_projects
            && !own.is_projects
        {
            return Err(not_sent(key, address));
        }
        let key = match key {
            Some((_, key)) => Some(key.value),
            None if provider.needs_key && needs_keys => {
                return Err(no_key(provider.name, provider.key_env, environment));
            }
            None => None,
        };
        Self::new(provider.name, provider.protocol, base_url, key, &BTreeMap::new())
    }

    /// The endpoint of a provider that the project declares.
    pub(crate) fn declared(
        provider: &DeclaredProvider,
        environment: &Environment,
        needs_keys: bool,
    ) -> Result<Self, ModelError> {
        let base_url = normalized(&provider.name, &provider.base_url)?;
        let key = provider.key_env.as_deref().filter(|_| needs_keys).map(|name| {
            let key = declared_key(provider, name, environment)?;
            if !provider.is_users && !key.is_projects && !is_home_of(name, &base_url, environment) {
                return Err(not_sent(name, &format!("providers.{}.base_url", provider.name)));
            }
            Ok(key.value)
        });
        Self::new(&provider.name, &provider.protocol, base_url, key.transpose()?, &provider.headers)
    }

    /// The endpoint of a model that code describes.
    pub(crate) fn described(provider: &str, model: &DescribedModel) -> Result<Self, ModelError> {
        let base_url = normalized(provider, &model.base_url)?;
        Self::new(provider, &model.protocol, base_url, model.key.clone(), &model.headers)
    }

    /// Adds what to do to an error of the connection, if another address or another server helps.
    pub(crate) fn explain(&self, error: ModelError) -> ModelError {
        let message = if is_absent(&error) {
            format!("{}; {}", error.message, self.start_hint())
        } else if is_without_tls(&error) {
            format!("{} ({})", error.message, self.address_setting())
        } else {
            return error;
        };
        ModelError { message, ..error }
    }

    /// The variable that sets the address, or the key of the manifest or configuration.
    fn address_setting(&self) -> String {
        match self.address_variable() {
            Some(variable) => (*variable).to_owned(),
            None => format!("`providers.{}.base_url`", self.provider),
        }
    }

    fn address_variable(&self) -> Option<&'static &'static str> {
        built_in(&self.provider).and_then(|provider| provider.base_url_env.first())
    }

    /// How the server of a provider is started, or found elsewhere.
    fn start_hint(&self) -> String {
        let start = match self.provider.as_str() {
            "ollama" => "start Ollama (`ollama serve`)",
            "lmstudio" => "start the server of LM Studio (`lms server start`)",
            "llamacpp" => "start llama.cpp (`llama-server -m FILE`)",
            "vllm" => "start vLLM (`vllm serve MODEL`)",
            _ => "start the server",
        };
        match self.address_variable() {
            Some(variable) => format!("{start}, or set {variable}"),
            None => format!("{start}, or change the address of the provider `{}`", self.provider),
        }
    }

    fn new(
        provider: &str,
        protocol: &str,
        base_url: String,
        key: Option<String>,
        own: &BTreeMap<String, String>,
    ) -> Result<Self, ModelError> {
        let api = Api::from_protocol(protocol).ok_or_else(|| {
            invalid(format!("provider `{provider}` speaks `{protocol}`, which is not known"))
        })?;
        let mut headers =
            headers_of(own).map_err(|error| invalid(format!("provider `{provider}`: {error}")))?;
        let key = key.map(|key| key.trim().to_owned());
        if let Some(key) = &key {
            let (name, value) = authorization(provider, api, key);
            let mut value = HeaderValue::from_str(&value).map_err(|_| unusable_key(provider))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let secrets = key.into_iter().collect();
        Ok(Self {
            provider: provider.to_owned(),
            protocol: protocol.to_owned(),
            api,
            base_url,
            headers,
            secrets,
        })
    }
}

/// Reads headers that a person wrote.
pub(crate) fn headers_of(written: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in written {
        let wrong = || format!("`{name}` is not a header that can be sent");
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        headers.insert(name, HeaderValue::from_str(value).map_err(|_| wrong())?);
    }
    Ok(headers)
}

/// Returns the stored key of a built-in provider, under the name of its first variable.
fn stored<'a>(
    provider: &str,
    variables: &[&'a str],
    environment: &Environment,
) -> Result<Option<(&'a str, Variable)>, ModelError> {
    let found = environment.stored_key(account_of(provider)).map_err(unreadable_store)?;
    let name = variables.first().copied().unwrap_or_default();
    Ok(found.map(|value| (name, Variable { value, is_projects: false })))
}

/// Returns the key of a declared provider: its variable, else what the store has for a provider of the user.
///
/// The store is not asked for a provider of a project, whatever its name: the user stored a key for somebody else.
fn declared_key(
    provider: &DeclaredProvider,
    variable: &str,
    environment: &Environment,
) -> Result<Variable, ModelError> {
    if let Some(set) = environment.get(variable) {
        return Ok(set);
    }
    let found = match provider.is_users {
        true => stored(&provider.name, &[variable], environment)?,
        false => None,
    };
    found.map(|(_, key)| key).ok_or_else(|| match provider.is_users {
        true => no_key(&provider.name, &[variable], environment),
        false => no_key(&provider.name, &[variable], &Environment::empty()),
    })
}

fn unreadable_store(error: KeyStoreError) -> ModelError {
    ModelError::new(ModelErrorKind::Auth, error.to_string())
}

fn first_set<'a>(names: &[&'a str], environment: &Environment) -> Option<(&'a str, Variable)> {
    names.iter().find_map(|name| Some((*name, environment.get(name)?)))
}

/// Returns whether a key may be sent to an address: it is not a key of a built-in provider, or the address is that
/// provider's own or the one that the user gave it.
fn is_home_of(key: &str, address: &str, environment: &Environment) -> bool {
    let mut owners = BUILT_IN.iter().filter(|provider| provider.key_env.contains(&key)).peekable();
    owners.peek().is_none()
        || owners.any(|owner| {
            let chosen =
                first_set(owner.base_url_env, environment).filter(|(_, variable)| !variable.is_projects);
            let homes =
                chosen.map(|(_, variable)| variable.value).into_iter().chain([owner.base_url.to_owned()]);
            homes.filter(|home| !home.is_empty()).any(|home| host_of(&home) == host_of(address))
        })
}

fn host_of(address: &str) -> Option<(Option<String>, String, Option<u16>)> {
    let address: http::Uri = address.parse().ok()?;
    let host = address.host()?.to_lowercase();
    Some((address.scheme_str().map(str::to_owned), host, address.port_u16()))
}

/// Completes an address as people write it: `localhost:11434`, or with a slash at the end.
fn normalized(provider: &str, written: &str) -> Result<String, ModelError> {
    let trimmed = written.trim().trim_end_matches('/');
    let (scheme, rest) = trimmed.split_once("://").unwrap_or(("http", trimmed));
    if rest.contains(['?', '#']) {
        return Err(invalid(format!(
            "the address of provider `{provider}` has a query or a fragment, which no base URL can have"
        )));
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err(invalid(format!(
            "the address of provider `{provider}` holds a user or a password; give a key in its variable, or a header"
        )));
    }
    let is_secure = scheme.eq_ignore_ascii_case("https");
    let authority =
        if provider == "ollama" { ollama_host(authority, is_secure) } else { authority.to_owned() };
    let is_short = provider == "azure" && !path.ends_with("/v1");
    let address = format!("{scheme}://{authority}{path}{}", if is_short { "/openai/v1" } else { "" });
    // A colon without a port is a misspelt scheme.
    match host_of(&address).filter(|_| !authority.ends_with(':')) {
        Some((Some(scheme), host, _)) if matches!(&*scheme, "http" | "https") && !host.is_empty() => {
            Ok(address)
        }
        // Where an address cannot be read, nobody knows which part of it is a password.
        _ if written.contains('@') => {
            Err(invalid(format!("the address of provider `{provider}` is not an HTTP address")))
        }
        _ => {
            Err(invalid(format!("the address of provider `{provider}` is not an HTTP address: `{written}`")))
        }
    }
}

/// Completes the host of Ollama, whose own server takes the variable too, for the address to listen at.
fn ollama_host(authority: &str, is_secure: bool) -> String {
    let port = authority.strip_prefix("0.0.0.0").filter(|port| port.is_empty() || port.starts_with(':'));
    let authority = port.map_or(authority.to_owned(), |port| format!("127.0.0.1{port}"));
    let is_open = host_of(&format!("http://{authority}")).is_some_and(|(_, _, port)| port.is_none());
    if is_open && !is_secure { format!("{authority}:11434") } else { authority }
}

fn authorization(provider: &str, api: Api, key: &str) -> (HeaderName, String) {
    match api {
        _ if provider == "azure" => (HeaderName::from_static("api-key"), key.to_owned()),
        Api::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
        Api::Gemini => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
        Api::OpenAiChat | Api::OpenAiResponses | Api::Ollama => {
            (http::header::AUTHORIZATION, format!("Bearer {key}"))
        }
    }
}

fn no_key(provider: &str, names: &[&str], environment: &Environment) -> ModelError {
    let names = names.join("` or `");
    let mut message = format!(
        "`{names}` is not set, and provider `{provider}` needs it; set it in the environment, or in the `.env` of \
         the project's directory"
    );
    if environment.has_store() {
        let _ = write!(message, ", or store the key with `llm-do auth login {}`", account_of(provider));
    }
    ModelError::new(ModelErrorKind::Auth, message)
}

fn no_address(provider: &BuiltinProvider) -> ModelError {
    let names = provider.base_url_env.join("` or `");
    invalid(format!("`{names}` is not set, and provider `{}` has no address without it", provider.name))
}

fn not_sent(key: &str, address: &str) -> ModelError {
    let message = format!(
        "your key `{key}` is not sent to an address that the project chose (`{address}`); set the address in your \
         own environment, or let the project bring its own key"
    );
    ModelError::new(ModelErrorKind::Auth, message)
}

fn unusable_key(provider: &str) -> ModelError {
    ModelError::new(
        ModelErrorKind::Auth,
        format!("the key of provider `{provider}` has characters that no header can hold"),
    )
}

fn invalid(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests;
