//! `llm-do models`: providers with their addresses and keys; known models; what one model can do and costs. Nobody is
//! asked.

mod list;

use std::collections::BTreeMap;
use std::fmt::Write;

use llm_do::model::{
    Effort, Environment, ModelChoice, ModelOverride, ModelProfile, NativeOutput, ThinkingStyle, UserModels,
    Variable, account_of, profile_of, providers,
};
use llm_do::project::LoadedProject;
use llm_do::usage::{PriceList, StandardPrices};
use serde_json::{Value, json};

use crate::arguments::{ListOutput, ModelsArguments};
use crate::command_error::CommandError;
use crate::config;
use crate::credentials::Credentials;
use crate::exit::Exit;
use crate::loading;
use crate::location;
use crate::model_name;
use crate::output;
use crate::text::{printable, visible_line};
use crate::trust;
use crate::wrap;
use list::ModelList;

/// Models that need no provider.
const OFFLINE: [&str; 3] = ["test", "test:echo", "script:FILE"];

/// Shows providers, or one model.
pub(crate) fn models(arguments: &ModelsArguments) -> Result<Exit, CommandError> {
    let view = View::new(arguments)?;
    let (text, value) = match (&arguments.model, &arguments.list) {
        (Some(model), _) => {
            let shown = view.model(model)?;
            (shown.text(), shown.value())
        }
        (None, Some(provider)) => {
            let listed = ModelList::for_provider(&view, provider)?;
            (listed.text(), listed.value())
        }
        (None, None) => (view.text(), view.value()),
    };
    let text = match arguments.output {
        ListOutput::Text => wrap::for_stdout(&printable(&text)),
        ListOutput::Json => serde_json::to_string_pretty(&value).unwrap_or_default(),
    };
    output::to_stdout(&printable(text.trim_end()));
    Ok(Exit::Done)
}

/// What is known here: providers, the environment, and a project where one is named.
struct View {
    providers: Vec<ShownProvider>,
    project: Option<LoadedProject>,
    user: UserModels,
    overrides: Vec<ModelOverride>,
    prices: StandardPrices,
}

/// A provider as it is shown.
struct ShownProvider {
    name: String,
    aliases: &'static [&'static str],
    protocol: String,
    address: String,
    /// The variable that gave the address.
    address_from: Option<String>,
    key: Key,
    is_declared: bool,
}

/// Whether there is a key. Its value is never looked at.
struct Key {
    variables: Vec<String>,
    found: Option<String>,
    is_projects: bool,
    is_needed: bool,
    /// Whether the user's store has it, and no variable.
    is_stored: bool,
    /// Whether it would not be sent, since the project chose the address.
    is_held_back: bool,
}

impl View {
    /// The context window that the user or the project states for a model, if that is not the built-in one.
    fn own_context(&self, name: &str) -> Option<u64> {
        let (provider, model) = name.split_once(':')?;
        let shown = self.providers.iter().find(|shown| shown.name == provider)?;
        let window = |overrides: &[ModelOverride]| {
            profile_of(&shown.protocol, provider, model, overrides).context_window
        };
        let own = window(&self.overrides);
        own.filter(|_| own != window(&[]))
    }

    fn new(arguments: &ModelsArguments) -> Result<Self, CommandError> {
        let project = match location::locate_if_any(arguments.path.as_deref())? {
            Some(mut location) => {
                location.set.extend(arguments.set.iter().cloned());
                Some(loading::load_for_looking(&location)?)
            }
            None if !arguments.set.is_empty() => {
                return Err(CommandError::with_hint(
                    "`--set` changes a project",
                    "name one: `llm-do models PATH`",
                ));
            }
            None => None,
        };
        let root = project.as_ref().map(|project| project.root.as_path());
        let environment = match &project {
            Some(project) if trust::is_trusted(project) => crate::environment::for_project(project)?,
            _ => crate::environment::for_user(root)?,
        };
        let user = config::current(root)?.models();
        let of_project = project.as_ref().map(|project| project.model_overrides.clone()).unwrap_or_default();
        let prices = user.prices(of_project.clone());
        let overrides = [user.overrides.clone(), of_project].concat();
        let providers = shown_providers(project.as_ref(), &user, &environment)?;
        Ok(Self { providers, project, user, overrides, prices })
    }

    /// The models that the project names, each once.
    fn named(&self) -> Vec<String> {
        let outlines = self.project.iter().flat_map(|project| project.project.outline());
        let specs = outlines.filter_map(|outline| outline.agent);
        let of_agents = specs.flat_map(|spec| {
            let own = spec.model.iter().map(ModelChoice::name);
            own.chain(spec.fallback_models.iter().map(ModelChoice::name))
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        });
        let of_project = self.project.iter().filter_map(|project| project.model.clone());
        let mut names: Vec<String> = of_project.chain(of_agents).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn model(&self, name: &str) -> Result<ShownModel<'_>, CommandError> {
        let name = model_name::completed(name, self.project.as_ref())?;
        let (prefix, model) = name.split_once([':', '/']).unwrap_or((&name, ""));
        let provider = self.providers.iter().find(|provider| provider.is_named(prefix));
        let profile =
            provider.map(|provider| profile_of(&provider.protocol, &provider.name, model, &self.overrides));
        Ok(ShownModel {
            provider,
            profile,
            price: self.prices.list(&name),
            long_prompts: self.prices.long_prompts(&name),
            name,
        })
    }

    /// The name of a provider, by any of its names.
    fn provider_name(&self, name: &str) -> Option<&str> {
        let provider = self.providers.iter().find(|provider| provider.is_named(name));
        provider.map(|provider| provider.name.as_str())
    }

    fn provider_names(&self) -> impl Iterator<Item = &str> {
        self.providers.iter().map(|provider| provider.name.as_str())
    }

    fn text(&self) -> String {
        let mut text = String::from("providers\n");
        let width = |of: fn(&ShownProvider) -> &str| {
            self.providers.iter().map(|shown| of(shown).chars().count()).max()
        };
        let names = width(|provider| &provider.name).unwrap_or_default();
        let protocols = width(|provider| &provider.protocol).unwrap_or_default();
        let addresses = width(|provider| &provider.address).unwrap_or_default();
        for provider in &self.providers {
            let ShownProvider { name, protocol, address, .. } = provider;
            let key = provider.key.describe();
            let _ = write!(text, "  {name:names$}  {protocol:protocols$}  {address:addresses$}  {key}");
            if let Some(variable) = &provider.address_from {
                let _ = write!(text, " (address from {variable})");
            }
            if !provider.aliases.is_empty() {
                let _ = write!(text, " (also {})", provider.aliases.join(", "));
            }
            text.push('\n');
        }
        let _ = writeln!(text, "\noffline\n  {}", OFFLINE.join(", "));
        if !self.user.aliases.is_empty() {
            text.push_str("\naliases\n");
        }
        let width = self.user.aliases.keys().map(|alias| alias.chars().count()).max().unwrap_or_default();
        for (alias, model) in &self.user.aliases {
            let _ = writeln!(text, "  {alias:width$}  {model}");
        }
        let named = self.named();
        if !named.is_empty() {
            text.push_str("\nmodels of this project\n");
        }
        let width = named.iter().map(|name| name.chars().count()).max().unwrap_or_default();
        for name in named {
            let _ = writeln!(text, "  {name:width$}  {}", price_message(self.prices.list(&name).as_ref()));
        }
        text
    }

    fn value(&self) -> Value {
        let providers: Vec<Value> = self.providers.iter().map(ShownProvider::value).collect();
        let models: Vec<Value> =
            self.named().iter().map(|name| json!({"model": name, "price": self.prices.list(name)})).collect();
        json!({"providers": providers, "offline": OFFLINE, "aliases": self.user.aliases, "models": models})
    }
}

fn shown_providers(
    project: Option<&LoadedProject>,
    user: &UserModels,
    environment: &Environment,
) -> Result<Vec<ShownProvider>, CommandError> {
    let root = project.map(|project| project.root.as_path());
    let configured = config::current(root)?.addresses();
    let stored = Credentials::for_user(root).map_or(Ok(BTreeMap::new()), |store| store.keys());
    let stored = stored.map_err(CommandError::usage)?;
    let built_in = providers().iter().map(|provider| {
        let address = first_set(provider.base_url_env, environment);
        let is_configured = |name: &str| {
            configured.iter().any(|(variable, _)| *variable == name) && std::env::var_os(name).is_none()
        };
        let mut key = Key::find(provider.key_env, provider.needs_key, environment);
        key.is_stored = key.found.is_none() && stored.contains_key(account_of(provider.name));
        key.is_held_back =
            address.as_ref().is_some_and(|(_, variable)| variable.is_projects) && !key.is_projects;
        ShownProvider {
            name: provider.name.to_owned(),
            aliases: provider.aliases,
            protocol: provider.protocol.to_owned(),
            address: match &address {
                Some((_, variable)) => without_user(variable.value.trim()),
                None if provider.base_url.is_empty() => {
                    format!("{} not set", provider.base_url_env.join(" or "))
                }
                None => provider.base_url.to_owned(),
            },
            address_from: address.map(|(name, _)| match is_configured(name) {
                true => "your configuration".to_owned(),
                false => name.to_owned(),
            }),
            key,
            is_declared: false,
        }
    });
    let declared = project.into_iter().flat_map(|project| &project.providers).map(|(name, provider)| {
        let variables: Vec<&str> = provider.api_key_env.iter().map(String::as_str).collect();
        ShownProvider {
            name: name.clone(),
            aliases: &[],
            protocol: provider.api.clone(),
            address: without_user(&provider.base_url),
            address_from: None,
            key: Key::find(&variables, !variables.is_empty(), environment),
            is_declared: true,
        }
    });
    let own = user.providers.iter().map(|provider| {
        let variables: Vec<&str> = provider.key_env.iter().map(String::as_str).collect();
        let mut key = Key::find(&variables, !variables.is_empty(), environment);
        key.is_stored = key.found.is_none() && stored.contains_key(&provider.name);
        ShownProvider {
            name: provider.name.clone(),
            aliases: &[],
            protocol: provider.protocol.clone(),
            address: without_user(&provider.base_url),
            address_from: Some("your configuration".to_owned()),
            key,
            is_declared: true,
        }
    });
    Ok(built_in.chain(own).chain(declared).collect())
}

fn first_set<'a>(names: &[&'a str], environment: &Environment) -> Option<(&'a str, Variable)> {
    names.iter().find_map(|name| Some((*name, environment.get(name)?)))
}

/// An address without the user and password that it may hold.
fn without_user(address: &str) -> String {
    match (address.find("://"), address.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => {
            format!("{}://…@{}", &address[..scheme], &address[at + 1..])
        }
        (None, Some(at)) => format!("…@{}", &address[at + 1..]),
        _ => address.to_owned(),
    }
}

impl Key {
    fn find(variables: &[&str], is_needed: bool, environment: &Environment) -> Self {
        let found = first_set(variables, environment);
        Self {
            variables: variables.iter().map(|name| (*name).to_owned()).collect(),
            is_projects: found.as_ref().is_some_and(|(_, variable)| variable.is_projects),
            found: found.map(|(name, _)| name.to_owned()),
            is_needed,
            is_stored: false,
            is_held_back: false,
        }
    }

    fn state(&self) -> &'static str {
        match (&self.found, self.is_needed) {
            (Some(_), _) => "set",
            (None, _) if self.is_stored => "stored",
            (None, true) => "not set",
            (None, false) => "not needed",
        }
    }

    fn describe(&self) -> String {
        match &self.found {
            Some(name) if self.is_held_back => {
                format!("{name} set, and not sent to an address that the project chose")
            }
            Some(name) if self.is_projects => format!("{name} set in .env"),
            Some(name) => format!("{name} set"),
            None if self.is_stored && self.is_held_back => {
                "key stored, and not sent to an address that the project chose".to_owned()
            }
            None if self.is_stored => "key stored".to_owned(),
            None if self.is_needed => format!("{} not set", self.variables.join(" or ")),
            None => "no key needed".to_owned(),
        }
    }

    fn value(&self) -> Value {
        let from = match (&self.found, self.is_projects) {
            (Some(_), true) => Some("project"),
            (Some(_), false) => Some("environment"),
            (None, _) => self.is_stored.then_some("store"),
        };
        json!({
            "state": self.state().replace(' ', "_"),
            "variable": self.found,
            "from": from,
            "variables": self.variables,
        })
    }
}

impl ShownProvider {
    fn is_named(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    fn value(&self) -> Value {
        json!({
            "name": self.name,
            "aliases": self.aliases,
            "protocol": self.protocol,
            "base_url": self.address,
            "base_url_from": self.address_from,
            "key": self.key.value(),
            "declared": self.is_declared,
        })
    }
}

/// One model as it is shown.
struct ShownModel<'a> {
    name: String,
    /// None for an offline model.
    provider: Option<&'a ShownProvider>,
    profile: Option<ModelProfile>,
    price: Option<PriceList>,
    long_prompts: Option<u64>,
}

impl ShownModel<'_> {
    fn text(&self) -> String {
        let mut text = format!("{}\n", visible_line(&self.name));
        let mut line = |title: &str, message: &str| {
            let _ = writeln!(text, "  {title:14}  {message}");
        };
        match self.provider {
            Some(provider) => {
                line("provider", &format!("{} at {}", provider.name, provider.address));
                line("protocol", &provider.protocol);
                line("key", &provider.key.describe());
            }
            None => line("provider", "none: it answers offline"),
        }
        if let Some(profile) = &self.profile {
            profile_lines(profile, &mut line);
        }
        line("price", &price_message(self.price.as_ref()));
        if let Some(tokens) = self.long_prompts {
            line("long prompts", &format!("cost more beyond {tokens} tokens"));
        }
        text
    }

    fn value(&self) -> Value {
        let profile = self.profile.as_ref().map(|profile| {
            json!({
                "native_output": profile.native_output,
                "context_window": profile.context_window,
                "max_output": profile.default_max_output,
                "images": profile.images,
                "documents": profile.documents,
                "sampling": profile.sampling,
                "thinking": profile.thinking,
                "effort_levels": profile.effort_levels,
                "server_side_tools": profile.server_tools,
            })
        });
        json!({
            "model": self.name,
            "provider": self.provider.map(ShownProvider::value),
            "profile": profile,
            "price": self.price,
            "long_prompts": self.long_prompts,
        })
    }
}

fn profile_lines(profile: &ModelProfile, line: &mut impl FnMut(&str, &str)) {
    let yes_or_no = |yes: bool| if yes { "yes" } else { "no" };
    line(
        "schemas",
        match profile.native_output {
            NativeOutput::Always => "enforced by the provider",
            NativeOutput::WithoutTools => {
                "enforced by the provider where no tools are on offer, else by a tool"
            }
            NativeOutput::Never => "enforced by a tool",
        },
    );
    line("thinking", &describe_thinking(profile));
    line("temperature", if profile.sampling { "yes" } else { "no: it would be refused" });
    line("images", yes_or_no(profile.images));
    line("documents", yes_or_no(profile.documents));
    let window = profile.context_window.map(|window| format!("{window} tokens"));
    line("context", window.as_deref().unwrap_or("unknown: see `models.NAME.profile.context_window`"));
    line("output", &format!("{} tokens where nothing else is said", profile.default_max_output));
    if !profile.server_tools.is_empty() {
        line("own tools", &profile.server_tools.join(", "));
    }
}

/// Says how thinking is asked for, and whether it can be switched off.
fn describe_thinking(profile: &ModelProfile) -> String {
    let levels: Vec<&str> = profile.effort_levels.iter().map(Effort::as_str).collect();
    match profile.thinking {
        ThinkingStyle::Effort => format!("by `effort`: {}", levels.join(", ")),
        ThinkingStyle::Budget if profile.effort_levels.contains(Effort::None) => {
            "by a number of tokens".to_owned()
        }
        ThinkingStyle::Budget => "by a number of tokens; it cannot be switched off".to_owned(),
        ThinkingStyle::Unasked => "cannot be asked for".to_owned(),
    }
}

fn price_message(price: Option<&PriceList>) -> String {
    let Some(price) = price else { return "unknown".to_owned() };
    let PriceList { input, output, cache_read, cache_write, search, request } = *price;
    let rates = [
        (Some(input), "input"),
        (Some(output), "output"),
        (cache_read, "cache read"),
        (cache_write, "cache write"),
    ];
    let is_free =
        rates.iter().all(|(rate, _)| rate.unwrap_or_default() == 0.0) && request.unwrap_or_default() == 0.0;
    if is_free {
        return "free".to_owned();
    }
    let rates = rates.iter().filter_map(|(rate, what)| Some(format!("${} {what}", (*rate)?)));
    let mut message = format!("{} per million tokens", rates.collect::<Vec<_>>().join(", "));
    if let Some(search) = search.filter(|search| *search > 0.0) {
        let _ = write!(message, "; ${search} per thousand searches");
    }
    if let Some(request) = request {
        let _ = write!(message, "; ${request} per request");
    }
    message
}
