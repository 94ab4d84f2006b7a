//! `llm-do models --list`: known models with their prices and context sizes.

use std::fmt::Write;

use llm_do::model::{KnownModel, known_models, providers};
use llm_do_core::nearest;
use serde_json::{Value, json};

use super::View;
use crate::command_error::CommandError;
use crate::text::{short_count, visible_line};

/// The models of one provider, or of all.
pub(super) struct ModelList {
    models: Vec<KnownModel>,
    /// What to do about a provider of which no models are known.
    note: Option<String>,
}

impl ModelList {
    /// Lists the models of a provider; of all, if its name is empty. Prices and context
    /// windows of the user and of the project go before known ones.
    pub(super) fn for_provider(view: &View, provider: &str) -> Result<Self, CommandError> {
        let names = match provider {
            // The other protocol of the same host has the same models.
            "" => providers()
                .iter()
                .map(|provider| provider.name)
                .filter(|name| *name != "openai-chat")
                .collect(),
            name => vec![view.provider_name(name).ok_or_else(|| unknown(view, name))?],
        };
        let mut models: Vec<KnownModel> = names.iter().flat_map(|name| known_models(name)).collect();
        for model in &mut models {
            model.price = view.prices.list(&model.name).unwrap_or(model.price);
            model.context = view.own_context(&model.name).or(model.context);
        }
        let note = models.is_empty().then(|| {
            format!("no models of `{provider}` are known here; `llm-do doctor` asks configured providers for theirs")
        });
        Ok(Self { models, note })
    }

    pub(super) fn text(&self) -> String {
        let width = self.models.iter().map(|model| model.name.chars().count()).max().unwrap_or_default();
        let mut text = String::new();
        if !self.models.is_empty() {
            let _ = writeln!(text, "{:width$}  {:>9}  {:>9}  {:>9}", "model", "input", "output", "context");
        }
        for KnownModel { name, price, context, .. } in &self.models {
            let (input, output) = (dollars(price.input), dollars(price.output));
            let context = context.map_or_else(|| "unknown".to_owned(), short_count);
            let _ = writeln!(text, "{name:width$}  {input:>9}  {output:>9}  {context:>9}");
        }
        match &self.note {
            Some(note) => text.push_str(note),
            None => text.push_str("\ninput and output in US dollars per million tokens; context in tokens"),
        }
        text
    }

    pub(super) fn value(&self) -> Value {
        let models = self
            .models
            .iter()
            .map(|model| json!({"model": model.name, "price": model.price, "context": model.context}));
        json!({"models": models.collect::<Vec<_>>()})
    }
}

fn unknown(view: &View, name: &str) -> CommandError {
    let message = format!("unknown provider `{}`", visible_line(name));
    let known: Vec<&str> = view.provider_names().collect();
    match nearest(name, known.iter().copied()) {
        Some(near) => CommandError::with_hint(message, format!("did you mean `{near}`?")),
        None => CommandError::with_hint(message, format!("known: {}", known.join(", "))),
    }
}

/// A price; free is a price too.
fn dollars(price: f64) -> String {
    format!("${price}")
}
