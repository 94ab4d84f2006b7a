//! The catalogue: finds models by the names that users write.
//!
//! Names are `provider:model`; `provider/model` means the same. A script file is read when its name is first
//! resolved, and only then: all agents that name it share one script.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use llm_do_core::{Model, ModelError, ModelErrorKind, Models, Name, nearest};

use crate::provider::provider_names;
use crate::script::Script;
use crate::test_model::TestModel;

/// No script file may be larger.
const MAX_SCRIPT_BYTES: u64 = 16 * 1024 * 1024;

/// The models that come with llm-do, and those that an embedder adds.
pub struct StandardModels {
    directory: PathBuf,
    added: BTreeMap<Name, Arc<dyn Model>>,
    scripts: Mutex<HashMap<PathBuf, Arc<dyn Model>>>,
}

impl StandardModels {
    /// A catalogue of `test`, `test:echo` and `script:FILE`, with files relative to a directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), added: BTreeMap::new(), scripts: Mutex::default() }
    }

    /// Adds a model under a name, which goes before what the catalogue knows itself.
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
        let mut scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
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
        let real = path.canonicalize().map_err(|error| refuse(&error.to_string()))?;
        let directory = self.directory.canonicalize().map_err(|error| refuse(&error.to_string()))?;
        if real.starts_with(directory) { Ok(path) } else { Err(refuse("it lies outside the project")) }
    }

    fn unknown(&self, name: &Name) -> ModelError {
        let own = ["test", "test:echo", "script:FILE"];
        let known: Vec<&str> = own.into_iter().chain(self.added.keys().map(Name::as_str)).collect();
        let meant = nearest(name, known.iter().copied()).or_else(|| of_nearest_provider(name, &known));
        let hint = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
        if provider_names().contains(&provider_of(name)) && !["test", "script"].contains(&provider_of(name)) {
            let words = "`{name}` cannot be asked: this version has offline models only (`test`, `test:echo`, \
                `script:FILE`)";
            return no_model(words.replace("{name}", name));
        }
        no_model(format!("`{name}` is not known (known: `{}`){hint}", known.join("`, `")))
    }
}

impl Models for StandardModels {
    fn resolve(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        let name = canonical(name);
        if let Some(model) = self.added.get(&name) {
            return Ok(model.clone());
        }
        match name.split_once(':') {
            None if name == "test" => Ok(Arc::new(TestModel::new())),
            Some(("test", "echo")) => Ok(Arc::new(TestModel::echo())),
            Some(("script", file)) if !file.is_empty() => self.script(file),
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

fn of_nearest_provider<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let provider = nearest(provider_of(name), known.iter().map(|known| provider_of(known)))?;
    known.iter().copied().find(|known| provider_of(known) == provider && *known != provider)
}

fn read_script(path: &Path) -> Result<Script, ModelError> {
    let shown = path.display();
    let text = read_limited(path)
        .map_err(|error| no_model(format!("the script file `{shown}` cannot be read: {error}")))?;
    Script::from_yaml(&text).map_err(|error| no_model(format!("in the script file `{shown}`, {error}")))
}

fn read_limited(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_SCRIPT_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SCRIPT_BYTES {
        return Err(io::Error::other(format!("it is larger than {MAX_SCRIPT_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

fn no_model(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::NoModel, message)
}
