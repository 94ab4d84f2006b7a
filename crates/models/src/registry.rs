//! The catalog: finds models by the names that users write.
//!
//! Names are `provider:model`; `provider/model` means the same. A model is looked at when its name is first
//! resolved, and only then: a script file is read, a key is looked up, the network is made ready. All agents that
//! name a model share it.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use llm_do_core::{Model, ModelError, ModelErrorKind, ModelOverride, Models, Name, nearest};
use llm_do_secrets::KnownSecrets;
use parking_lot::Mutex;

use crate::environment::Environment;
use crate::http::{HttpSettings, HttpTransport};
use crate::profiles::profile_of;
use crate::provider::{
    DeclaredProvider, DescribedProvider, Endpoint, built_in, key_variables, provider_names,
};
use crate::regular_file;
use crate::remote::{RemoteModel, models_at};
use crate::scripted::{Script, TestModel};
use crate::transport::Transport;

/// No script file may be larger.
const MAX_SCRIPT_BYTES: u64 = 16 * 1024 * 1024;

/// The models that come with llm-do, and those that an embedder adds.
pub struct StandardModels {
    directory: PathBuf,
    added: BTreeMap<Name, Arc<dyn Model>>,
    aliases: BTreeMap<String, String>,
    scripts: Mutex<HashMap<PathBuf, Arc<dyn Model>>>,
    environment: Environment,
    declared: Vec<DeclaredProvider>,
    described: Vec<DescribedProvider>,
    overrides: Vec<ModelOverride>,
    transport: OnceLock<Arc<dyn Transport>>,
    remote: Mutex<HashMap<Name, Arc<dyn Model>>>,
    /// The secrets of the environment, and those of the models that were resolved.
    known: OnceLock<KnownSecrets>,
}

impl StandardModels {
    /// A catalog of `test`, `test:echo` and `script:FILE`, with files relative to a directory, and of the models
    /// of providers, for which an environment must give keys.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            added: BTreeMap::new(),
            aliases: BTreeMap::new(),
            scripts: Mutex::default(),
            environment: Environment::empty(),
            declared: Vec::new(),
            described: Vec::new(),
            overrides: Vec::new(),
            transport: OnceLock::new(),
            remote: Mutex::default(),
            known: OnceLock::new(),
        }
    }

    /// Takes keys, addresses and proxies from an environment.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self.known = OnceLock::new();
        self
    }

    /// Adds a provider to the built-in ones.
    #[must_use]
    pub fn provider(mut self, provider: DeclaredProvider) -> Self {
        self.declared.push(provider);
        self.known = OnceLock::new();
        self
    }

    /// Adds another name for a model. It may be written wherever a model is named.
    #[must_use]
    pub fn alias(mut self, alias: impl Into<String>, model: impl Into<String>) -> Self {
        self.aliases.insert(alias.into(), model.into());
        self
    }

    /// Adds a provider whose models code describes.
    #[must_use]
    pub fn described(mut self, provider: DescribedProvider) -> Self {
        self.described.push(provider);
        self
    }

    /// Overrules what is known about models.
    #[must_use]
    pub fn overrides(mut self, overrides: impl IntoIterator<Item = ModelOverride>) -> Self {
        self.overrides.extend(overrides);
        self
    }

    /// Sends requests another way than over the network: to a recording, or through a test.
    #[must_use]
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = OnceLock::from(transport);
        self
    }

    /// Adds a model under a name, which goes before what the catalog knows itself.
    #[must_use]
    pub fn with(mut self, name: impl AsRef<str>, model: impl Model + 'static) -> Self {
        self.added.insert(canonical(name.as_ref()), Arc::new(model));
        self
    }

    /// Says what is wrong with an offline model: a word that `test` does not know, a script that is missing or
    /// cannot be read. Other models are not looked at.
    pub fn offline_problem(&self, name: &str) -> Option<String> {
        let is_offline = matches!(provider_of(&canonical(name)), "test" | "script");
        let problem = is_offline.then(|| self.resolve(name).err()).flatten();
        problem.map(|error| error.message)
    }

    fn script(&self, file: &str) -> Result<Arc<dyn Model>, ModelError> {
        let path = self.below(file)?;
        let mut scripts = self.scripts.lock();
        if let Some(script) = scripts.get(&path) {
            return Ok(script.clone());
        }
        let script: Arc<dyn Model> = Arc::new(read_script(&path)?.named(format!("script:{file}")));
        scripts.insert(path, script.clone());
        Ok(script)
    }

    /// A script comes with its project: no other file is read, nor quoted in an error.
    fn below(&self, file: &str) -> Result<PathBuf, ModelError> {
        let refuse = |reason: &str| no_model(format!("the script file `{file}` cannot be read: {reason}"));
        let path = self.directory.join(file);
        let directory = self.directory.canonicalize().map_err(|error| refuse(&error.to_string()))?;
        let real = path.canonicalize().map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                no_model(format!("the script file `{file}` was not found in `{}`", directory.display()))
            }
            _ => refuse(&error.to_string()),
        })?;
        if real.starts_with(directory) { Ok(path) } else { Err(refuse("it lies outside the project")) }
    }

    /// Finds a model of a provider. It is made once; what is missing for it may be there the next time.
    fn remote(&self, name: &Name, provider: &str, model: &str) -> Result<Arc<dyn Model>, ModelError> {
        if let Some(known) = self.remote.lock().get(name) {
            return Ok(known.clone());
        }
        if model.is_empty() {
            return Err(no_model(format!(
                "`{name}` names a provider and no model: write `{provider}:MODEL`"
            )));
        }
        let transport = self.network()?;
        let (endpoint, model) = match self.described.iter().find(|described| described.name == provider) {
            Some(described) => {
                let described = (described.describe)(model)?;
                (Endpoint::described(provider, &described)?, described.model)
            }
            None => (self.endpoint(provider, transport.needs_keys())?, model.to_owned()),
        };
        self.known_secrets().add(endpoint.secrets.iter().cloned());
        let profile = profile_of(&endpoint.protocol, &endpoint.provider, &model, &self.overrides);
        let remote: Arc<dyn Model> = Arc::new(RemoteModel::new(
            name.clone(),
            &model,
            profile,
            endpoint,
            self.known_secrets(),
            transport,
        ));
        self.remote.lock().insert(name.clone(), remote.clone());
        Ok(remote)
    }

    /// Returns what no answer may show: every key and proxy password that this process knows, since tools may have told
    /// a model of them. Those of the key store are added when a model needs them.
    fn known_secrets(&self) -> &KnownSecrets {
        self.known.get_or_init(|| {
            let built_in = key_variables().filter_map(|name| self.environment.get(name));
            let declared = self.declared.iter().filter_map(|provider| provider.key_env.as_deref());
            let keys = built_in.chain(declared.filter_map(|name| self.environment.get(name)));
            let known = KnownSecrets::default();
            known.add(keys.map(|key| key.value));
            known.add(HttpSettings::from_environment(&self.environment).passwords());
            known
        })
    }

    /// Asks a provider which models it has: whether its address and its key are good. It costs nothing.
    pub async fn probe(&self, provider: &str) -> Result<Vec<String>, ModelError> {
        let transport = self.network()?;
        let endpoint = self.endpoint(provider, transport.needs_keys())?;
        models_at(&endpoint, &*transport).await
    }

    /// Returns the address of a provider, or what is missing to ask it.
    pub fn address(&self, provider: &str) -> Result<String, ModelError> {
        self.endpoint(provider, true).map(|endpoint| endpoint.base_url)
    }

    fn endpoint(&self, provider: &str, needs_keys: bool) -> Result<Endpoint, ModelError> {
        let declared = self.declared.iter().find(|declared| declared.name == provider);
        match (declared, built_in(provider)) {
            (Some(declared), _) => {
                if let Some(owner) = self.declared.iter().find(|owner| declared.borrows_from(owner)) {
                    return Err(borrowed_key(declared, owner));
                }
                Endpoint::declared(declared, &self.environment, needs_keys)
            }
            (None, Some(built_in)) => Endpoint::built_in(built_in, &self.environment, needs_keys),
            (None, None) => Err(no_model(format!("there is no provider `{provider}`"))),
        }
    }

    fn network(&self) -> Result<Arc<dyn Transport>, ModelError> {
        if let Some(transport) = self.transport.get() {
            return Ok(transport.clone());
        }
        let made = HttpTransport::new(HttpSettings::from_environment(&self.environment))?;
        Ok(self.transport.get_or_init(|| Arc::new(made)).clone())
    }

    fn knows_provider(&self, provider: &str) -> bool {
        built_in(provider).is_some()
            || self.declared.iter().any(|declared| declared.name == provider)
            || self.described.iter().any(|described| described.name == provider)
    }

    fn unknown(&self, name: &Name) -> ModelError {
        let own = ["test", "test:echo", "script:FILE"];
        let known: Vec<&str> = own
            .into_iter()
            .chain(self.added.keys().map(Name::as_str))
            .chain(self.aliases.keys().map(String::as_str))
            .collect();
        let providers = provider_names();
        let declared = self.declared.iter().map(|declared| declared.name.as_str());
        let described = self.described.iter().map(|described| described.name.as_str());
        let prefixes = providers.iter().copied().chain(declared).chain(described);
        let meant = nearest(name, known.iter().copied()).map(str::to_owned).or_else(|| {
            let provider =
                nearest(provider_of(name), prefixes.chain(known.iter().map(|known| provider_of(known))))?;
            Some(name.replacen(provider_of(name), provider, 1))
        });
        let of_provider =
            || known.iter().find(|known| provider_of(known) == provider_of(name) && known.contains(':'));
        let meant = meant.filter(|meant| **name != *meant).or_else(|| of_provider().map(ToString::to_string));
        let hint = meant.map(|meant| format!("; did you mean `{meant}`?"));
        no_model(format!(
            "`{name}` is not known: write `provider:model`, or `{}`{}",
            known.join("`, `"),
            hint.unwrap_or_default()
        ))
    }
}

impl Models for StandardModels {
    fn secrets(&self) -> Vec<String> {
        self.known_secrets().values()
    }

    fn resumed(&self, name: &str, answers: u64) {
        let is_offline = self.added.contains_key(name) || provider_of(name) == "script";
        // One that cannot be found any more is reported when it is asked.
        if let Some(model) = is_offline.then(|| self.resolve(name).ok()).flatten() {
            model.resumed(answers);
        }
    }

    fn resolve(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        let name = canonical(self.aliases.get(name).map_or(name, String::as_str));
        if let Some(model) = self.added.get(&name) {
            return Ok(model.clone());
        }
        match name.split_once(':') {
            None if name == "test" => Ok(Arc::new(TestModel::new())),
            Some(("test", "echo")) => Ok(Arc::new(TestModel::echo())),
            Some(("script", file)) if !file.is_empty() => self.script(file),
            Some((provider, model)) if self.knows_provider(provider) => self.remote(&name, provider, model),
            _ => Err(self.unknown(&name)),
        }
    }
}

/// Spells a name with a colon after the provider.
fn canonical(name: &str) -> Name {
    match name.find([':', '/']) {
        Some(index) => format!("{}:{}", &name[..index], &name[index + 1..]).into(),
        None => name.into(),
    }
}

fn provider_of(name: &str) -> &str {
    name.split_once(':').map_or(name, |(provider, _)| provider)
}

fn read_script(path: &Path) -> Result<Script, ModelError> {
    let shown = path.display();
    let text = read_limited(path)
        .map_err(|error| no_model(format!("the script file `{shown}` cannot be read: {error}")))?;
    Script::from_yaml(&text).map_err(|error| no_model(format!("in the script file `{shown}`, {error}")))
}

fn read_limited(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    regular_file::open(path)?.take(MAX_SCRIPT_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SCRIPT_BYTES {
        return Err(io::Error::other(format!("it is larger than {MAX_SCRIPT_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

fn borrowed_key(provider: &DeclaredProvider, owner: &DeclaredProvider) -> ModelError {
    let (name, key) = (&provider.name, provider.key_env.as_deref().unwrap_or_default());
    let message = format!(
        "your key `{key}` belongs to your provider `{}`, and is not sent to the address of the project's provider `{name}`",
        owner.name
    );
    ModelError::new(ModelErrorKind::Auth, message)
}

fn no_model(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::NoModel, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_and_proxy_password_of_the_process_is_a_secret_for_every_provider() {
        let variables = [
            ("OPENAI_API_KEY", "sk-openai-1"),
            ("ANTHROPIC_API_KEY", "sk-anthropic-2"),
            ("ACME_KEY", "acme-3"),
            ("HTTPS_PROXY", "http://me:pass:word-4@proxy.example:3128"),
            ("OTHER", "not a key"),
        ];
        let environment =
            variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect();
        let acme = DeclaredProvider {
            name: "acme".into(),
            protocol: "openai-chat".into(),
            base_url: "http://acme.example".into(),
            key_env: Some("ACME_KEY".into()),
            headers: BTreeMap::new(),
            is_users: false,
        };
        let models = StandardModels::new("/").environment(environment).provider(acme);
        assert_eq!(models.secrets(), ["acme-3", "pass:word-4", "sk-anthropic-2", "sk-openai-1"]);
    }
}
