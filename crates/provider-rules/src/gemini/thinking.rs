//! `thinkingConfig`.

use serde_json::Value;

use super::models::GeminiModel;
use crate::ProviderRefusal;
use crate::json::is_set;
use crate::refusal::Check;

const LEVELS: &[&str] = &["MINIMAL", "LOW", "MEDIUM", "HIGH"];

pub(super) fn check(body: &Value, model: Option<&GeminiModel>) -> Check {
    let config = &body["generationConfig"]["thinkingConfig"];
    let Some(model) = model.filter(|_| is_set(config)) else { return Ok(()) };
    check_level(config, model)?;
    check_budget(config, model)
}

fn check_level(config: &Value, model: &GeminiModel) -> Check {
    let Some(level) = config["thinkingLevel"].as_str().map(str::to_uppercase) else { return Ok(()) };
    let refuse = |message: &str| Err(ProviderRefusal::gemini("gemini.thinking_level", message));
    if !model.is_since_3() {
        return refuse("Thinking level is not supported for this model.");
    }
    if !LEVELS.contains(&level.as_str()) {
        return refuse("Invalid value at 'generation_config.thinking_config.thinking_level'");
    }
    match level == "MINIMAL" && !model.takes_minimal() {
        true => refuse("Thinking level MINIMAL is not supported for this model."),
        false => Ok(()),
    }
}

fn check_budget(config: &Value, model: &GeminiModel) -> Check {
    let (Some(budget), Some(budgets)) = (config["thinkingBudget"].as_i64(), model.budgets()) else {
        return Ok(());
    };
    let refuse = |message: String| Err(ProviderRefusal::gemini("gemini.thinking_budget", message));
    match budget {
        -1 => Ok(()),
        0 if budgets.takes_zero => Ok(()),
        0 => refuse("Budget 0 is invalid. This model only works in thinking mode.".to_owned()),
        _ if (budgets.least..=budgets.most).contains(&budget) => Ok(()),
        _ => refuse(format!(
            "The thinking budget {budget} is invalid. Please choose a value between {} and {}.",
            budgets.least, budgets.most
        )),
    }
}
