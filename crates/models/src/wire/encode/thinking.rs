//! How a model is to think: what the settings ask for, within the limits of the model.

use llm_do_core::{Effort, ModelRequest, ModelSettings, Thinking, ThinkingStyle};

use super::scope::Scope;
use crate::wire::request_rules::ThinkingField;

/// What a request says about thinking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ThinkingPlan {
    /// Nothing: the model does as it usually does.
    Default,
    /// Thinking is switched off.
    Off,
    /// Thinking is switched on, and the model decides how much.
    On,
    /// Thinking at a level that the model accepts.
    Level(Effort),
    /// Thinking for so many tokens, within the range of the model.
    Tokens(u64),
}

impl ThinkingPlan {
    /// Reads the settings. What the model does not accept becomes the nearest that it does, with a notice.
    pub(super) fn from_settings(settings: &ModelSettings, scope: &mut Scope<'_>) -> Self {
        match (Wanted::from_settings(settings), scope.target.profile.thinking) {
            (Wanted::Nothing, _) => Self::Default,
            (Wanted::Off, ThinkingStyle::Unasked) => Self::not_asked_to_stop(scope),
            (Wanted::On { .. }, ThinkingStyle::Unasked) => Self::not_asked(settings, scope),
            (Wanted::Off, style) => Self::off(settings, style, scope),
            (Wanted::On { tokens, effort }, ThinkingStyle::Budget) => Self::budget(tokens, effort, scope),
            (Wanted::On { tokens, effort }, ThinkingStyle::Effort) => Self::level(tokens, effort, scope),
        }
    }

    /// The plan of a request that may offer tools: some models accept none while they think.
    pub(super) fn beside_tools(request: &ModelRequest<'_>, scope: &mut Scope<'_>) -> Self {
        let plan = Self::from_settings(request.settings, scope);
        let is_refused =
            !request.tools.is_empty() && !scope.target.rules.tools_while_thinking && plan.is_active(scope);
        if !is_refused {
            return plan;
        }
        scope.notices.add_once(format!(
            "`{}` takes no tools while it thinks, so `effort: none` is sent; over the Responses API (`openai:`) it \
             takes both",
            scope.target.name()
        ));
        Self::Off
    }

    /// Returns whether the model thinks.
    pub(super) fn is_active(self, scope: &Scope<'_>) -> bool {
        match self {
            Self::Default => scope.target.rules.thinks_by_default,
            Self::Off => false,
            Self::On | Self::Level(_) | Self::Tokens(_) => true,
        }
    }

    fn not_asked_to_stop(scope: &mut Scope<'_>) -> Self {
        if scope.target.rules.thinks_by_default {
            let notice = format!("thinking cannot be switched off for `{}`", scope.target.name());
            scope.notices.add_once(notice);
        }
        Self::Default
    }

    fn not_asked(settings: &ModelSettings, scope: &mut Scope<'_>) -> Self {
        let asks = settings.thinking.is_some_and(|thinking| thinking != Thinking::Wanted(false));
        scope.without_setting("thinking", asks);
        scope.without_setting("effort", settings.effort.is_some());
        Self::Default
    }

    fn off(settings: &ModelSettings, style: ThinkingStyle, scope: &mut Scope<'_>) -> Self {
        let levels = scope.target.profile.effort_levels;
        if levels.contains(Effort::None) {
            return Self::Off;
        }
        let least = match (style, settings.effort.filter(|effort| *effort != Effort::None)) {
            (ThinkingStyle::Budget, _) => Self::Tokens(scope.target.rules.thinking_tokens.0),
            (_, effort) => effort
                .and_then(|effort| levels.nearest(effort))
                .or_else(|| levels.thinking().next())
                .map_or(Self::On, Self::Level),
        };
        let name = scope.target.name();
        let sent = match least {
            Self::Level(level) => level.as_str().to_owned(),
            Self::Tokens(tokens) => tokens.to_string(),
            Self::Default | Self::Off | Self::On => "true".to_owned(),
        };
        let notice = format!("thinking cannot be switched off for `{name}`, so `{sent}` is sent");
        scope.notices.add_once(notice);
        least
    }

    fn budget(tokens: Option<u64>, effort: Option<Effort>, scope: &mut Scope<'_>) -> Self {
        let (min, max) = scope.target.rules.thinking_tokens;
        match (tokens, effort) {
            (Some(tokens), _) => Self::Tokens(scope.limited("thinking", tokens, tokens.clamp(min, max))),
            (None, Some(effort)) => Self::Tokens(tokens_of(effort).clamp(min, max)),
            (None, None) => Self::On,
        }
    }

    fn level(tokens: Option<u64>, effort: Option<Effort>, scope: &mut Scope<'_>) -> Self {
        match (tokens, effort) {
            (Some(tokens), _) if scope.target.rules.thinking_field == ThinkingField::Reasoning => {
                Self::Tokens(tokens)
            }
            (_, Some(effort)) => Self::nearest("effort", effort.as_str(), effort, scope),
            (Some(tokens), None) => Self::nearest("thinking", &tokens.to_string(), effort_of(tokens), scope),
            (None, None) => Self::On,
        }
    }

    fn nearest(setting: &str, written: &str, wanted: Effort, scope: &mut Scope<'_>) -> Self {
        let nearest = scope.target.profile.effort_levels.nearest(wanted);
        let sent = nearest.map_or("true", Effort::as_str);
        if sent != written {
            scope.changed(setting, written, sent);
        }
        nearest.map_or(Self::On, Self::Level)
    }
}

/// What the two settings about thinking ask for.
enum Wanted {
    Nothing,
    Off,
    On { tokens: Option<u64>, effort: Option<Effort> },
}

impl Wanted {
    fn from_settings(settings: &ModelSettings) -> Self {
        let effort = settings.effort.filter(|effort| *effort != Effort::None);
        match (settings.thinking, settings.effort) {
            (Some(Thinking::Wanted(false)), _) | (None, Some(Effort::None)) => Self::Off,
            (Some(Thinking::Tokens(tokens)), _) => Self::On { tokens: Some(tokens), effort },
            (Some(Thinking::Wanted(true)), _) | (None, Some(_)) => Self::On { tokens: None, effort },
            (None, None) => Self::Nothing,
        }
    }
}

/// Returns the level of a plan for APIs that always want one.
pub(super) fn level_of(plan: ThinkingPlan, scope: &Scope<'_>) -> Effort {
    let wanted = match plan {
        ThinkingPlan::Level(level) => level,
        ThinkingPlan::Tokens(tokens) => effort_of(tokens),
        ThinkingPlan::Default | ThinkingPlan::Off | ThinkingPlan::On => Effort::Medium,
    };
    scope.target.profile.effort_levels.nearest(wanted).unwrap_or(wanted)
}

/// Returns the level that corresponds to a number of tokens.
fn effort_of(tokens: u64) -> Effort {
    match tokens {
        0..=2_048 => Effort::Low,
        8_193.. => Effort::High,
        _ => Effort::Medium,
    }
}

/// Returns the number of tokens that corresponds to a level.
pub(super) fn tokens_of(effort: Effort) -> u64 {
    match effort {
        Effort::None | Effort::Minimal => 1_024,
        Effort::Low => 2_048,
        Effort::Medium => 8_192,
        Effort::High => 16_384,
        Effort::Xhigh | Effort::Max => 32_768,
    }
}
