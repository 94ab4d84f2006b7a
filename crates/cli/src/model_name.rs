//! Completes the names of models that people write: `gpt-5` is `openai:gpt-5` if only one provider has it.
//!
//! Names in files are not completed: a project names its models in full (`llm-do check` says which were meant).

use llm_do::model::{StandardModels, UserModels, full_names, known_models, provider_names, providers};
use llm_do::project::LoadedProject;
use llm_do_core::{misspelled, nearest};

use crate::command_error::CommandError;
use crate::config;
use crate::output;
use crate::text::visible_line;

const WRITE_A_MODEL: &str = "write `PROVIDER:MODEL`; `llm-do models --list` lists known models";

/// Completes a name, and says on stderr what it was taken for.
pub(crate) fn completed(name: &str, project: Option<&LoadedProject>) -> Result<String, CommandError> {
    let full = complete(name, project)?;
    // An alias is the user's own word for a model, and needs no explanation.
    if full != user_models(project)?.resolve(name) {
        let (name, full) = (visible_line(name), visible_line(&full));
        output::early_notice(&format!("the model `{name}` is `{full}`"));
    }
    Ok(full)
}

/// Completes a name, or says what may have been meant.
pub(crate) fn complete(name: &str, project: Option<&LoadedProject>) -> Result<String, CommandError> {
    let user = user_models(project)?;
    let name = user.resolve(name);
    let provider = name.split([':', '/']).next().unwrap_or_default();
    let declared = project.into_iter().flat_map(LoadedProject::provider_names);
    let own = user.providers.iter().map(|provider| provider.name.as_str());
    let known: Vec<&str> = provider_names().into_iter().chain(declared).chain(own).collect();
    if known.contains(&provider) {
        return check_known(name, provider, project).map(|()| name.to_owned());
    }
    let full = full_names(name);
    match &full[..] {
        [one] => Ok(one.clone()),
        [] => Err(no_provider(name, provider, &known, &user)),
        several => {
            let message = format!("several providers have the model `{}`", visible_line(name));
            Err(CommandError::with_hint(message, did_you_mean(several)))
        }
    }
}

/// The models and aliases of the user's configuration.
fn user_models(project: Option<&LoadedProject>) -> Result<UserModels, CommandError> {
    Ok(config::current(project.map(|project| project.root.as_path()))?.models())
}

/// Refuses a provider without a model, and an offline model that does not exist.
fn check_known(name: &str, provider: &str, project: Option<&LoadedProject>) -> Result<(), CommandError> {
    let shown = visible_line(name);
    let is_offline = ["test", "script"].contains(&provider);
    if !is_offline && name.len() <= provider.len() + 1 {
        let shown = visible_line(provider);
        let hint = format!("write `{shown}:MODEL`; `llm-do models --list {shown}` lists known ones");
        return Err(CommandError::with_hint(format!("`{shown}` is a provider, not a model"), hint));
    }
    let Some(project) = project else { return Ok(()) };
    match StandardModels::new(&project.root).offline_problem(name) {
        Some(problem) => Err(CommandError::usage(format!("the model `{shown}`: {problem}"))),
        None => Ok(()),
    }
}

fn no_provider(name: &str, provider: &str, known: &[&str], user: &UserModels) -> CommandError {
    let shown = visible_line(name);
    if provider == name {
        if name.is_empty() {
            return CommandError::with_hint("the model name is empty", WRITE_A_MODEL);
        }
        let message = format!("there is no model `{shown}`");
        let alias = llm_do_core::nearest(name, user.aliases.keys().map(String::as_str)).map(str::to_owned);
        return match alias.or_else(|| misspelled_model(name)) {
            Some(meant) => CommandError::with_hint(message, did_you_mean(&[meant])),
            None => CommandError::with_hint(message, WRITE_A_MODEL),
        };
    }
    let message =
        format!("the model `{shown}` names the provider `{}`, which does not exist", visible_line(provider));
    match nearest(provider, known.iter().copied()) {
        Some(near) => CommandError::with_hint(message, did_you_mean(&[name.replacen(provider, near, 1)])),
        None => CommandError::with_hint(message, format!("known: {}", known.join(", "))),
    }
}

/// The known model that was misspelled. Providers that resell everything are not searched.
fn misspelled_model(name: &str) -> Option<String> {
    let resellers = ["openrouter", "together", "fireworks", "openai-chat", "azure"];
    let makers = providers().iter().filter(|provider| !resellers.contains(&provider.name));
    let models: Vec<String> =
        makers.flat_map(|provider| known_models(provider.name)).map(|model| model.name).collect();
    let bare = |full: &String| full.split_once(':').map(|(_, model)| model.to_owned());
    let names: Vec<String> = models.iter().filter_map(bare).collect();
    let meant = misspelled(name, names.iter().map(String::as_str))?;
    models.iter().find(|full| bare(full).as_deref() == Some(meant)).cloned()
}

fn did_you_mean(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{}`", visible_line(name))).collect();
    format!("did you mean {}?", names.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_completed_if_one_provider_has_it() {
        let complete = |name: &str| complete(name, None).map_err(|problem| problem.to_string());
        assert_eq!(complete("gpt-5"), Ok("openai:gpt-5".to_owned()));
        assert_eq!(complete("openai:gpt-5"), Ok("openai:gpt-5".to_owned()));
        assert_eq!(complete("openai/anything"), Ok("openai/anything".to_owned()));
        assert_eq!(complete("test:echo"), Ok("test:echo".to_owned()));
        for (name, hint) in [
            ("o3", "did you mean `openai:o3` or `azure:o3`?"),
            ("gpt5", "did you mean `openai:gpt-5`?"),
            ("opnai:gpt-5", "did you mean `openai:gpt-5`?"),
            ("openai", "write `openai:MODEL`"),
            ("openai:", "write `openai:MODEL`"),
            ("", "the model name is empty"),
            ("foo", "there is no model `foo`"),
            ("zzzzzzzz", "write `PROVIDER:MODEL`"),
            ("zzzzzzzz:x", "known: "),
        ] {
            assert!(complete(name).unwrap_err().contains(hint), "{name}: {:?}", complete(name));
        }
    }
}
