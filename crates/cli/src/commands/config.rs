//! `llm-do config`: the user's own settings with their origin, and changing them.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::approvals::edit_file;
use crate::arguments::{ConfigAction, ConfigArguments, ListOutput};
use crate::command_error::CommandError;
use crate::config::{self, ApprovalModeSetting, ConfigError, ContentTrust, UserConfig};
use crate::exit::Exit;
use crate::text::visible_line;
use crate::{child, output};

/// What a new file begins with.
const TEMPLATE: &str = "\
# Your configuration of llm-do. `llm-do schema config` and docs/reference/configuration.md list all keys.
#
# model = \"anthropic:claude-sonnet-4-5\"   # of agents that name none
#
# [aliases]
# fast = \"openai:gpt-5-mini\"
";

/// A setting as it is shown.
struct ShownSetting {
    key: String,
    value: Option<String>,
    origin: String,
}

/// Shows the configuration, or changes it.
pub(crate) fn config(arguments: &ConfigArguments) -> Result<Exit, CommandError> {
    match &arguments.action {
        None => show(arguments.output),
        Some(ConfigAction::Get { key }) => get(key),
        Some(ConfigAction::Set { key, value }) => {
            let parts = config::parse_key(key)?;
            change(|text| config::set(text, &parts, value).map_err(CommandError::from))
        }
        Some(ConfigAction::Unset { key }) => {
            let parts = config::parse_key(key)?;
            let not_set = || CommandError::usage(format!("`{}` is not set", visible_line(key)));
            change(|text| config::unset(text, &parts)?.ok_or_else(not_set))
        }
        Some(ConfigAction::Edit) => edit(),
        Some(ConfigAction::Path) => {
            output::to_stdout(&path()?.display().to_string());
            Ok(Exit::Done)
        }
    }
}

fn path() -> Result<PathBuf, CommandError> {
    config::path(None).ok_or_else(|| {
        CommandError::with_hint("no directory for a configuration", "set HOME or XDG_CONFIG_HOME")
    })
}

fn show(form: ListOutput) -> Result<Exit, CommandError> {
    let config = config::current(None)?;
    let settings = settings(config);
    match form {
        ListOutput::Text => output::to_stdout(&text(&settings)),
        ListOutput::Json => {
            let value = |shown: &ShownSetting| json!({"key": shown.key, "value": shown.value, "origin": shown.origin});
            let settings: Vec<Value> = settings.iter().map(value).collect();
            let value = json!({"path": config.path, "settings": settings});
            output::to_stdout(&serde_json::to_string_pretty(&value).unwrap_or_default())
        }
    };
    Ok(Exit::Done)
}

fn text(settings: &[ShownSetting]) -> String {
    let shown = |setting: &ShownSetting| visible_line(setting.value.as_deref().unwrap_or("(none)"));
    let keys = settings.iter().map(|setting| setting.key.chars().count()).max().unwrap_or_default();
    let values = settings.iter().map(|setting| shown(setting).chars().count()).max().unwrap_or_default();
    let line = |setting: &ShownSetting| {
        format!("{:keys$}  {:values$}  {}", visible_line(&setting.key), shown(setting), setting.origin)
    };
    settings.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// All settings: those that always have a value first, then what else the file says.
fn settings(config: &UserConfig) -> Vec<ShownSetting> {
    let leaves = config::leaves(&config.text);
    let origin = |line: usize| format!("{}:{line}", config.shown_path());
    let of_file = |key: &str| leaves.iter().find(|leaf| leaf.key == key).map(|leaf| origin(leaf.line));
    let with_default = |key: &str, value: Option<&str>| ShownSetting {
        key: key.to_owned(),
        value: value.map(str::to_owned),
        origin: of_file(key).unwrap_or_else(|| "default".to_owned()),
    };
    let mut settings = vec![
        with_default("model", config.default_model()),
        with_default(
            "approvals.mode",
            Some(config.settings.approvals.mode.unwrap_or(ApprovalModeSetting::Prompt).as_str()),
        ),
        with_default("trust.content", Some(content_word(config.settings.trust.content))),
    ];
    if let Some(model) = std::env::var("LLM_DO_MODEL").ok().filter(|model| !model.trim().is_empty()) {
        settings[0].value = Some(model);
        settings[0].origin = "LLM_DO_MODEL (environment)".to_owned();
    }
    let known: Vec<String> = settings.iter().map(|setting| setting.key.clone()).collect();
    let others = leaves.iter().filter(|leaf| !known.contains(&leaf.key));
    settings.extend(others.map(|leaf| ShownSetting {
        key: leaf.key.clone(),
        value: Some(leaf.value.clone()),
        origin: origin(leaf.line),
    }));
    settings
}

fn content_word(content: ContentTrust) -> &'static str {
    match content {
        ContentTrust::Notice => "notice",
        ContentTrust::Ask => "ask",
    }
}

fn get(key: &str) -> Result<Exit, CommandError> {
    let parts = config::parse_key(key)?;
    let config = config::current(None)?;
    let shown =
        settings(config).into_iter().find(|setting| setting.key == key).and_then(|setting| setting.value);
    let value = match shown {
        Some(value) => Some(value),
        None => config::get(&config.text, &parts)?,
    };
    match value {
        Some(value) => {
            output::to_stdout(&value);
            Ok(Exit::Done)
        }
        None => {
            output::to_stderr(&format!("`{}` is not set", visible_line(key)));
            Ok(Exit::Failed)
        }
    }
}

/// Changes the text of the file while no other process does.
fn change(change: impl FnOnce(&str) -> Result<String, CommandError>) -> Result<Exit, CommandError> {
    child::refuse("change your configuration")?;
    let path = path()?;
    let failed = |error: std::io::Error| {
        CommandError::usage(format!("`{}` cannot be written: {error}", config::shown(&path)))
    };
    let _lock = config::lock_private(&path.with_file_name("config.toml.lock")).map_err(failed)?;
    let before = read(&path)?;
    config::write_private(&path, &change(&before)?).map_err(failed)?;
    Ok(Exit::Done)
}

fn read(path: &Path) -> Result<String, CommandError> {
    let text = config::read_private(path).map_err(|reason| ConfigError::new(path, reason))?;
    Ok(text.unwrap_or_default())
}

/// Opens the file in the user's editor. What is wrong with it afterwards is said; the text is kept as it was left.
fn edit() -> Result<Exit, CommandError> {
    child::refuse("change your configuration")?;
    let path = path()?;
    if read(&path)?.is_empty() {
        config::write_private(&path, TEMPLATE).map_err(|error| {
            CommandError::usage(format!("`{}` cannot be written: {error}", config::shown(&path)))
        })?;
    }
    if std::env::var_os("VISUAL").or(std::env::var_os("EDITOR")).is_none() && !std::io::stdin().is_terminal()
    {
        return Err(CommandError::with_hint(
            "an editor needs a terminal",
            "set EDITOR, or use `llm-do config set`",
        ));
    }
    edit_file(&path).map_err(CommandError::usage)?;
    let text = read(&path)?;
    config::parse(&text).map_err(|error| error.in_file(&path))?;
    Ok(Exit::Done)
}
