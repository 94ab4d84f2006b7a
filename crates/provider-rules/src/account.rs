//! What a provider knows: what it has issued, which models it has, and which uncertain rules apply.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::refusal::Check;
use crate::{Protocol, ProviderRefusal, ProviderRequest, anthropic, chat, gemini, ollama, openai};

/// An account at a provider, or at several: it knows what was issued to it.
#[derive(Debug, Clone, Default)]
pub struct Account {
    pub(crate) optional: OptionalRules,
    pub(crate) anthropic: anthropic::IssuedThinking,
    pub(crate) responses: openai::IssuedReasoning,
    pub(crate) gemini: gemini::IssuedSignatures,
    models: Option<BTreeSet<String>>,
    capabilities: BTreeMap<String, ModelCapabilities>,
}

/// Rules that are not known for certain, or hold only for some servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OptionalRules {
    /// Anthropic: `tool_result` blocks come before any other block of their message.
    pub anthropic_results_first: bool,
    /// OpenAI Chat: a `tool` message answers a call of the assistant message before it.
    pub chat_orphan_tool_message: bool,
    /// OpenAI: `tool_choice` and `parallel_tool_calls` need `tools`; `stream_options` needs `stream`;
    /// `top_logprobs` needs `logprobs`.
    pub openai_dependent_parameters: bool,
    /// OpenAI: limits of strict schemas: 10 levels, 5,000 properties, 1,000 enum values.
    pub openai_schema_limits: bool,
    /// Gemini: the last content is not the model's.
    pub gemini_last_content_model: bool,
    /// Mistral: no `user` message directly after a `tool` message.
    pub mistral_user_after_tool: bool,
    /// DeepSeek: no `response_format` of type `json_schema`.
    pub deepseek_json_schema: bool,
}

impl OptionalRules {
    /// All of them.
    pub const ALL: Self = Self {
        anthropic_results_first: true,
        chat_orphan_tool_message: true,
        openai_dependent_parameters: true,
        openai_schema_limits: true,
        gemini_last_content_model: true,
        mistral_user_after_tool: true,
        deepseek_json_schema: true,
    };
}

/// What a model of a local server can do. Models that nothing is known of can do everything and do not think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelCapabilities {
    /// It takes tools.
    pub tools: bool,
    /// It can think.
    pub thinking: bool,
}

impl Account {
    /// Switches uncertain rules on.
    #[must_use]
    pub fn with_optional(mut self, rules: OptionalRules) -> Self {
        self.optional = rules;
        self
    }

    /// Restricts the account to these models: every other name is unknown.
    #[must_use]
    pub fn with_models<'a>(mut self, models: impl IntoIterator<Item = &'a str>) -> Self {
        self.models = Some(models.into_iter().map(str::to_owned).collect());
        self
    }

    /// States what a model of a local server can do.
    #[must_use]
    pub fn with_capabilities(mut self, model: &str, capabilities: ModelCapabilities) -> Self {
        self.capabilities.insert(model.to_owned(), capabilities);
        self
    }

    /// Remembers what a response gives to the client: signatures, encrypted reasoning, ids.
    ///
    /// The response is the body of a whole answer. That of a stream is put together first.
    pub fn issue(&mut self, protocol: Protocol, response: &Value) {
        match protocol {
            Protocol::AnthropicMessages => self.anthropic.remember(response),
            Protocol::OpenAiResponses => self.responses.remember(response),
            Protocol::Gemini => self.gemini.remember(response),
            Protocol::OpenAiChat | Protocol::Ollama => {}
        }
    }

    /// Checks a request.
    ///
    /// # Errors
    ///
    /// The answer of the provider, if it refuses the request.
    pub fn check(&self, request: &ProviderRequest<'_>) -> Result<(), ProviderRefusal> {
        self.check_model_exists(request)?;
        match request.protocol {
            Protocol::AnthropicMessages => anthropic::check(request, self),
            Protocol::OpenAiResponses => openai::check_responses(request, self),
            Protocol::OpenAiChat => chat::check(request, self),
            Protocol::Gemini => gemini::check(request, self),
            Protocol::Ollama => ollama::check(request, self),
        }
    }

    pub(crate) fn capabilities(&self, model: &str) -> Option<ModelCapabilities> {
        self.capabilities.get(model).copied()
    }

    fn check_model_exists(&self, request: &ProviderRequest<'_>) -> Check {
        let model = request.model();
        match &self.models {
            Some(models) if !models.contains(model) => Err(unknown_model(request, model)),
            _ => Ok(()),
        }
    }
}

fn unknown_model(request: &ProviderRequest<'_>, model: &str) -> ProviderRefusal {
    const RULE: &str = "unknown_model";
    let missing = format!("The model `{model}` does not exist or you do not have access to it.");
    match (request.protocol, request.provider) {
        (Protocol::AnthropicMessages, _) => {
            ProviderRefusal::anthropic_error(RULE, 404, "not_found_error", format!("model: {model}"))
        }
        (Protocol::OpenAiResponses, _) => ProviderRefusal::openai(RULE, "model", "model_not_found", missing),
        (Protocol::OpenAiChat, "mistral") => {
            ProviderRefusal::mistral(RULE, "invalid_model", "1500", format!("Invalid model: {model}"))
        }
        (Protocol::OpenAiChat, "xai") => ProviderRefusal::xai(RULE, format!("Model not found: {model}")),
        (Protocol::OpenAiChat, _) => {
            ProviderRefusal::openai(RULE, "", "model_not_found", missing).with_status(404)
        }
        (Protocol::Gemini, _) => {
            let message = format!("models/{model} is not found for API version v1beta");
            let mut refusal = ProviderRefusal::gemini(RULE, message).with_status(404);
            (refusal.body["error"]["code"], refusal.body["error"]["status"]) =
                (404.into(), "NOT_FOUND".into());
            refusal
        }
        (Protocol::Ollama, _) => {
            ProviderRefusal::ollama(RULE, format!("model '{model}' not found")).with_status(404)
        }
    }
}
