//! `tune`: an agent changes settings of its own requests, within the bounds of its file.

use llm_do_core::{CallContext, Control, Effect, Name, Output, SchemaError, ToolError, ToolReply, Tune};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Act, wrong};

const DESCRIPTION: &str = "Changes settings of your own next requests: the temperature, the most output tokens, or the \
    model. What you leave out stays as it is. How far each may go is set by whoever wrote you.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// How freely words are chosen.
    #[serde(default)]
    temperature: Option<f64>,
    /// How long an answer may be.
    #[serde(default)]
    max_tokens: Option<u64>,
    /// The model, as `provider:model`.
    #[serde(default)]
    model: Option<String>,
}

pub(super) fn tool() -> Result<Act, SchemaError> {
    Ok(Act::new("tune", DESCRIPTION, tune)?.define(|definition| {
        definition.control = Some(Control::Tune);
        definition.effect = Effect::Pure;
        definition.sequential = true;
    }))
}

/// Says what to change; whoever runs the conversation checks the bounds and does it. Whether a model can be asked
/// depends on the surroundings, so it is looked at here, where the answer is recorded.
async fn tune(arguments: Arguments, call: CallContext) -> ToolReply {
    let Arguments { temperature, max_tokens, model } = arguments;
    if call.agent().is_none_or(|agent| agent.tuning.is_empty()) {
        return Err(
            wrong("this agent may not change its settings").with_hint("`tuning` in its file sets the bounds")
        );
    }
    let tune = Tune { temperature, max_tokens, model: model.map(Name::from) };
    if tune == Tune::default() {
        return Err(wrong("nothing is changed: give `temperature`, `max_tokens` or `model`"));
    }
    if let Some(model) = &tune.model {
        call.check_model(model).map_err(ToolError::from_failure)?;
    }
    Ok(Output::json(serde_json::to_value(tune)?))
}
