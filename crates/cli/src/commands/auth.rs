//! `llm-do auth`: keys of providers in the user's store. A key is never printed, only its last characters.

use std::io::Read;

use llm_do::model::{account_of, providers};
use llm_do_core::nearest;
use serde_json::{Value, json};

use crate::arguments::{AuthAction, AuthArguments, ListOutput};
use crate::command_error::CommandError;
use crate::config::{self, UserConfig};
use crate::credentials::Credentials;
use crate::exit::Exit;
use crate::secret_input::read_secret;
use crate::text::visible_line;
use crate::{child, output};

/// No key is longer.
const MAX_KEY_BYTES: u64 = 8 * 1024;

/// A shorter key is not shown even in part.
const MIN_SHOWN_CHARS: usize = 12;

/// Who may have a key: a built-in provider, or one of the configuration.
struct Account {
    name: String,
    variables: Vec<String>,
}

/// A key that was found.
struct FoundKey {
    account: String,
    origin: String,
    end: String,
}

/// Stores, forgets or lists keys.
pub(crate) fn auth(arguments: &AuthArguments) -> Result<Exit, CommandError> {
    child::refuse("use your stored keys")?;
    match &arguments.action {
        AuthAction::Login { provider, stdin } => login(&account(config::current(None)?, provider)?, *stdin),
        AuthAction::Logout { provider } => logout(provider),
        AuthAction::List { output } => list(&accounts(usable_config()), *output),
    }
}

/// Returns the configuration. Its providers are missing if it cannot be used, which does not keep keys from being listed
/// or forgotten.
fn usable_config() -> &'static UserConfig {
    let (config, error) = config::current_or_defaults(None);
    if let Some(error) = error {
        output::to_stderr(&format!("warning: your configuration is not used: {}", error.line()));
    }
    config
}

fn store() -> Result<Credentials, CommandError> {
    Credentials::for_user(None)
        .ok_or_else(|| CommandError::with_hint("no directory to store keys in", "set HOME or XDG_DATA_HOME"))
}

/// All accounts, each once.
fn accounts(config: &UserConfig) -> Vec<Account> {
    let built_in = providers().iter().filter(|provider| account_of(provider.name) == provider.name);
    let built_in = built_in.map(|provider| Account {
        name: provider.name.to_owned(),
        variables: provider.key_env.iter().map(|name| (*name).to_owned()).collect(),
    });
    let own = config
        .models()
        .providers
        .into_iter()
        .filter_map(|provider| Some(Account { name: provider.name, variables: vec![provider.key_env?] }));
    built_in.chain(own).collect()
}

fn account(config: &UserConfig, provider: &str) -> Result<Account, CommandError> {
    let mut accounts = accounts(config);
    if let Some(found) = accounts.iter().position(|account| account.name == account_of(provider)) {
        return Ok(accounts.swap_remove(found));
    }
    let shown = visible_line(provider);
    if config.settings.providers.contains_key(provider) {
        let hint = format!(
            "`llm-do config set providers.{shown}.api_key_env NAME` declares the variable of its key"
        );
        return Err(CommandError::with_hint(format!("your provider `{shown}` has no key"), hint));
    }
    // A key for a name that any project may declare would go to any address.
    let message = format!("`{shown}` is neither a built-in provider nor one of your configuration");
    let hint = match nearest(provider, accounts.iter().map(|account| account.name.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("`llm-do config set providers.{shown}.base_url ADDRESS` declares it"),
    };
    Err(CommandError::with_hint(message, hint))
}

fn login(account: &Account, from_stdin: bool) -> Result<Exit, CommandError> {
    let store = store()?;
    let key =
        if from_stdin { key_from_stdin()? } else { read_secret(&format!("Key of {}: ", account.name))? };
    let key = checked(&key)?;
    store.store(&account.name, key).map_err(CommandError::usage)?;
    output::to_stderr(&format!(
        "stored the key of {} in {}, which only you can read",
        account.name,
        store.shown_path()
    ));
    if let Some((name, _)) = variable(account) {
        output::to_stderr(&format!("notice: {name} is set in the environment, and takes precedence"));
    }
    Ok(Exit::Done)
}

fn key_from_stdin() -> Result<String, CommandError> {
    let mut text = String::new();
    let read = std::io::stdin().take(MAX_KEY_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| CommandError::usage(format!("no key could be read from stdin: {error}")))?;
    Ok(text)
}

/// Refuses what cannot be a key, without repeating it.
fn checked(key: &str) -> Result<&str, CommandError> {
    let key = key.trim();
    if key.is_empty() {
        return Err(CommandError::usage("no key was given, so nothing was stored"));
    }
    if key.len() as u64 > MAX_KEY_BYTES {
        return Err(CommandError::usage(format!("a key has at most {MAX_KEY_BYTES} bytes")));
    }
    if !key.chars().all(|c| c.is_ascii_graphic()) {
        return Err(CommandError::usage("a key has no blanks, line breaks or characters outside ASCII"));
    }
    Ok(key)
}

fn logout(provider: &str) -> Result<Exit, CommandError> {
    let name = account_of(provider);
    // A key is forgotten also if its provider is no longer one of the configuration.
    if !store()?.forget(name).map_err(CommandError::usage)? {
        let known = account(usable_config(), provider)?;
        return Err(CommandError::with_hint(
            format!("no key of {} is stored", known.name),
            "`llm-do auth list` shows which keys are found",
        ));
    }
    output::to_stderr(&format!("forgot the key of {}", visible_line(name)));
    Ok(Exit::Done)
}

fn variable(account: &Account) -> Option<(&str, String)> {
    account.variables.iter().find_map(|name| {
        let value = std::env::var(name).ok().filter(|value| !value.trim().is_empty())?;
        Some((name.as_str(), value))
    })
}

fn list(accounts: &[Account], form: ListOutput) -> Result<Exit, CommandError> {
    let mut stored = store()?.keys().map_err(CommandError::usage)?;
    let mut found = Vec::new();
    for account in accounts {
        let stored = stored.remove(&account.name);
        let (origin, key) = match (variable(account), stored) {
            (Some((name, value)), None) => (format!("{name} (environment)"), value),
            (Some((name, value)), Some(_)) => (format!("{name} (environment, before the stored key)"), value),
            (None, Some(key)) => ("stored".to_owned(), key),
            (None, None) => continue,
        };
        found.push(FoundKey { account: account.name.clone(), origin, end: end_of(&key) });
    }
    // A provider that was removed from the configuration leaves its key behind.
    for (account, key) in stored {
        found.push(FoundKey {
            account,
            origin: "stored, for no known provider".to_owned(),
            end: end_of(&key),
        });
    }
    print(&found, form);
    Ok(Exit::Done)
}

fn print(found: &[FoundKey], form: ListOutput) {
    if form == ListOutput::Json {
        let value =
            |key: &FoundKey| json!({"provider": key.account, "origin": key.origin, "ends_with": key.end});
        let keys: Vec<Value> = found.iter().map(value).collect();
        output::to_stdout(&serde_json::to_string_pretty(&json!({"keys": keys})).unwrap_or_default());
        return;
    }
    if found.is_empty() {
        output::to_stdout("no key is set or stored; `llm-do auth login PROVIDER` stores one");
    }
    let names = found.iter().map(|key| key.account.chars().count()).max().unwrap_or_default();
    for FoundKey { account, origin, end } in found {
        output::to_stdout(&format!("{:names$}  ...{end:4}  {origin}", visible_line(account)));
    }
}

/// The last 4 characters of a key that is long enough to stay secret without them.
fn end_of(key: &str) -> String {
    let characters: Vec<char> = key.trim().chars().collect();
    let is_long = characters.len() >= MIN_SHOWN_CHARS;
    let end = characters.len().saturating_sub(if is_long { 4 } else { 0 });
    visible_line(&characters[end..].iter().collect::<String>())
}
