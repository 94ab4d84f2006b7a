//! What the types of the configuration cannot say: names that must exist, addresses that can be asked.

use std::path::Path;

use llm_do::model::{PROTOCOLS, StandardModels, provider_names};
use llm_do::project::ProjectFiles;
use llm_do::usage::PriceList;
use llm_do_core::nearest;
use llm_do_project::header_problem;

use super::error::SettingsError;
use super::settings::{ProviderSection, Settings, is_built_in};

/// Dollars per million tokens that nothing costs.
const MAX_PRICE: f64 = 1_000_000.0;

/// Returns the first problem of settings that have the right types.
pub(crate) fn problem(settings: &Settings) -> Option<SettingsError> {
    let providers = settings.providers.iter().find_map(|(name, section)| provider(name, section));
    let aliases = || settings.aliases.iter().find_map(|(name, model)| alias(settings, name, model));
    let default = || settings.model.as_ref().and_then(|model| default_model(settings, model));
    let models = || settings.models.iter().find_map(|(pattern, section)| model(pattern, section.price));
    let secret_files = || settings.secret_files.allow.iter().find_map(|glob| secret_file(glob));
    providers.or_else(aliases).or_else(default).or_else(models).or_else(secret_files)
}

/// Checks a glob of `secret_files.allow` as one of a manifest is checked.
fn secret_file(glob: &str) -> Option<SettingsError> {
    let files = ProjectFiles { allowed_secrets: vec![glob.to_owned()], ..ProjectFiles::default() };
    let problem = files.secret_files(Path::new("/")).err()?;
    let error = SettingsError::at(["secret_files", "allow"], format!("`secret_files.allow`: {problem}"));
    Some(error.with_hint("write a glob such as `tests/fixtures/**`"))
}

/// Checks an entry of `models`: a glob that cannot be read would match nothing, and a negative price would earn money.
fn model(pattern: &str, price: Option<PriceList>) -> Option<SettingsError> {
    if let Err(error) = globset::Glob::new(pattern) {
        let message = format!("`{pattern}` is not a glob: {}", error.kind());
        return Some(SettingsError::at(["models", pattern], message));
    }
    let PriceList { input, output, cache_read, cache_write, search, request } = price?;
    let rates = [Some(input), Some(output), cache_read, cache_write, search, request];
    let is_price = |rate: &f64| (0.0..=MAX_PRICE).contains(rate);
    let message = format!("a price of `{pattern}` is not a number of dollars from 0 to {MAX_PRICE}");
    let is_wrong = rates.iter().flatten().any(|rate| !is_price(rate));
    is_wrong.then(|| SettingsError::at(["models", pattern, "price"], message))
}

fn provider(name: &str, section: &ProviderSection) -> Option<SettingsError> {
    let at = |key: &str, message: String| {
        let path = ["providers", name, key].into_iter().filter(|part| !part.is_empty());
        Some(SettingsError::at(path, format!("provider `{name}`: {message}")))
    };
    let ProviderSection { base_url: _, api, api_key_env, headers } = section;
    if name.is_empty() || name.contains([':', '/', ' ']) {
        return at("", "a provider's name cannot contain `:`, `/` or spaces".to_owned());
    }
    if is_built_in(name) {
        if !llm_do::model::providers().iter().any(|provider| provider.name == name) {
            return at("", "this name cannot have another address".to_owned());
        }
        // The protocol, the key and the headers of a built-in provider are its own.
        let unused = [
            ("api", api.is_some()),
            ("api_key_env", api_key_env.is_some()),
            ("headers", !headers.is_empty()),
        ];
        if let Some((key, _)) = unused.into_iter().find(|(_, is_set)| *is_set) {
            return at(key, format!("it is built in, and `{key}` cannot be changed; `base_url` can"));
        }
    }
    if let Some(api) = api.as_deref().filter(|api| !PROTOCOLS.contains(api)) {
        let problem = at("api", format!("`api` is `{api}`, expected one of {}", PROTOCOLS.join(", ")));
        return match nearest(api, PROTOCOLS.iter().copied()) {
            Some(near) => problem.map(|problem| problem.with_hint(format!("did you mean `{near}`?"))),
            None => problem,
        };
    }
    if api_key_env.as_deref().is_some_and(|variable| !is_variable(variable)) {
        // What was written may be the key itself, so it is not repeated.
        let message = "`api_key_env` must be the name of a variable, not the key itself";
        return at("api_key_env", message.to_owned())
            .map(|problem| problem.with_hint(format!("store the key with `llm-do auth login {name}`")));
    }
    if let Some(problem) = headers.iter().find_map(|(name, value)| header_problem(name, value)) {
        return at("headers", problem.message).map(|error| error.with_hint(problem.hint));
    }
    if let Err(refused) = section.declared(name).check() {
        return at("base_url", refused.message);
    }
    let base_url = section.base_url.trim();
    // A variable may leave the scheme out, as other programs do; a file says which it is.
    let problem = || {
        at(
            "base_url",
            format!("`base_url` is `{base_url}`, and an address begins with `http://` or `https://`"),
        )
    };
    if base_url.contains("://") {
        None
    } else {
        problem().map(|error| error.with_hint(format!("write `http://{base_url}`")))
    }
}

fn is_variable(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_part) && name.len() <= 200 && name.starts_with(|c: char| !c.is_ascii_digit())
}

fn alias(settings: &Settings, name: &str, model: &str) -> Option<SettingsError> {
    let at = |message: String| SettingsError::at(["aliases", name], message);
    if name.trim().is_empty() || name.contains([':', '/', ' ', '*']) {
        return Some(at(format!("the alias `{name}` may not have `:`, `/`, `*` or blanks")));
    }
    if is_built_in(name) || settings.providers.contains_key(name) {
        return Some(at(format!("the alias `{name}` is the name of a provider")));
    }
    if settings.aliases.contains_key(model) {
        let hint = format!("write the model itself: `{}`", settings.aliases[model]);
        return Some(at(format!("the alias `{name}` names another alias, `{model}`")).with_hint(hint));
    }
    model_problem(settings, model)
        .map(|(message, hint)| at(format!("the alias `{name}`: {message}")).with_hint(hint))
}

fn default_model(settings: &Settings, model: &str) -> Option<SettingsError> {
    if settings.aliases.contains_key(model) {
        return None;
    }
    let (message, hint) = model_problem(settings, model)?;
    Some(SettingsError::at(["model"], message).with_hint(hint))
}

/// Says what is wrong with the name of a model, and what to do. Projects bring scripts, the user does not.
fn model_problem(settings: &Settings, model: &str) -> Option<(String, String)> {
    let (provider, _) = model.split_once([':', '/']).unwrap_or((model, ""));
    let own = settings.providers.keys().map(String::as_str);
    let known: Vec<&str> = provider_names().into_iter().filter(|name| *name != "script").chain(own).collect();
    if known.contains(&provider) {
        let problem = StandardModels::new(".").offline_problem(model)?;
        return Some((format!("the model `{model}`: {problem}"), "name another model".to_owned()));
    }
    if provider == model {
        return Some(no_alias(settings, model));
    }
    let message = format!("the model `{model}` names the provider `{provider}`, which does not exist");
    let hint = match nearest(provider, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write `provider:model`; known: {}", known.join(", ")),
    };
    Some((message, hint))
}

/// Says that a name without a provider is not an alias either.
fn no_alias(settings: &Settings, model: &str) -> (String, String) {
    let message = format!("the model `{model}` is neither an alias nor `provider:model`");
    let aliases = settings.aliases.keys().map(String::as_str);
    let hint = match (nearest(model, aliases), llm_do::model::full_names(model).first()) {
        (Some(near), _) => format!("did you mean the alias `{near}`?"),
        (None, Some(full)) => format!("did you mean `{full}`?"),
        (None, None) => format!("`llm-do config set aliases.{model} provider:model` makes it an alias"),
    };
    (message, hint)
}
