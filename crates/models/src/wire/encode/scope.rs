//! What the writers of all APIs know and share: whom they write for, what is its own, and what must be said.

use std::collections::HashSet;

use llm_do_core::{
    Effort, Message, ModelRequest, ModelSettings, Origin, ProviderBlock, ServerTool, Thinking,
};
use serde_json::{Map, Value};

use super::Target;

/// Stands for a text that would be empty, which most APIs refuse.
pub(super) const EMPTY: &str = "(empty)";

/// Whom a writer writes for, and where it notes what it leaves out.
pub(super) struct Scope<'a> {
    pub(super) target: &'a Target,
    pub(super) notices: &'a mut Notices,
}

impl Scope<'_> {
    /// Says whether a provider's blocks can go back as they came.
    pub(super) fn is_own(&self, provider: &str) -> bool {
        canonical(provider) == canonical(&self.target.provider)
    }

    /// Says whether the model that wrote a message is the provider's.
    pub(super) fn wrote(&self, message: &Message) -> bool {
        message.origin.as_ref().is_some_and(|Origin { provider, .. }| self.is_own(provider))
    }

    /// Returns a block that the provider itself sent.
    pub(super) fn own<'b>(&self, block: Option<&'b ProviderBlock>) -> Option<&'b Map<String, Value>> {
        block.filter(|block| self.is_own(&block.provider))?.value.as_object()
    }

    /// Says once in a session that something is not sent.
    pub(super) fn left_out(&mut self, what: &str) {
        let Target { provider, model, .. } = self.target;
        self.notices.add_once(format!("{what} is left out: `{provider}:{model}` does not take it"));
    }

    /// Says that a setting is not sent, where it is set.
    pub(super) fn without_setting(&mut self, name: &str, is_set: bool) {
        if is_set {
            self.left_out(&format!("the setting `{name}`"));
        }
    }

    /// Returns temperature and the share of likely tokens, where the model takes them.
    pub(super) fn sampling(&mut self, settings: &ModelSettings) -> (Option<f64>, Option<f64>) {
        if self.target.profile.sampling {
            return (settings.temperature, settings.top_p);
        }
        self.without_setting("temperature", settings.temperature.is_some());
        self.without_setting("top_p", settings.top_p.is_some());
        (None, None)
    }

    /// Returns the server-side tools that the model's profile permits.
    pub(super) fn server_tools<'r>(&mut self, request: &ModelRequest<'r>) -> Vec<&'r ServerTool> {
        let (taken, left): (Vec<_>, Vec<_>) =
            request.server_tools.iter().partition(|tool| self.target.offers(tool));
        left.into_iter().for_each(|tool| self.without_server_tool(tool));
        taken
    }

    /// Says that a server-side tool is not offered.
    pub(super) fn without_server_tool(&mut self, tool: &ServerTool) {
        self.left_out(&format!("the server-side tool `{}`", tool.name()));
    }

    /// Says that the limits of a server-side tool are not sent.
    pub(super) fn without_limits(&mut self, tool: &ServerTool, names: &[&str]) {
        let (ServerTool::WebSearch { max_uses, allowed_domains, blocked_domains }
        | ServerTool::WebFetch { max_uses, allowed_domains, blocked_domains }) = tool
        else {
            return;
        };
        for name in names {
            let is_set = match *name {
                "max_uses" => max_uses.is_some(),
                "allowed_domains" => !allowed_domains.is_empty(),
                _ => !blocked_domains.is_empty(),
            };
            if is_set {
                self.left_out(&format!("`{name}` of the server-side tool `{}`", tool.name()));
            }
        }
    }
}

/// Some providers have more than one name.
fn canonical(provider: &str) -> &str {
    match provider {
        "google" | "google-gla" => "gemini",
        provider => provider,
    }
}

/// What a person should know about requests.
#[derive(Clone, Default)]
pub(super) struct Notices {
    told: HashSet<String>,
    new: Vec<String>,
}

impl Notices {
    /// Adds a notice.
    pub(super) fn add(&mut self, notice: String) {
        self.new.push(notice);
    }

    /// Adds a notice unless the session has heard it.
    pub(super) fn add_once(&mut self, notice: String) {
        if self.told.insert(notice.clone()) {
            self.new.push(notice);
        }
    }

    /// Returns what is new.
    pub(super) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.new)
    }
}

/// Whether and how much a model is to think, from the two settings that say so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Thought {
    /// Nothing is said.
    Unset,
    /// Not at all.
    Off,
    /// It is, with so many tokens or so much effort, where these are said.
    On { tokens: Option<u64>, effort: Option<Effort> },
}

/// Reads what the settings say about thinking.
pub(super) fn thought(settings: &ModelSettings) -> Thought {
    let effort = settings.effort.filter(|effort| *effort != Effort::None);
    match (settings.thinking, settings.effort) {
        (Some(Thinking::Wanted(false)), _) | (None, Some(Effort::None)) => Thought::Off,
        (Some(Thinking::Tokens(tokens)), _) => Thought::On { tokens: Some(tokens), effort },
        (Some(Thinking::Wanted(true)), _) | (None, Some(_)) => Thought::On { tokens: None, effort },
        (None, None) => Thought::Unset,
    }
}

/// Returns the effort that stands for a number of tokens.
pub(super) fn effort_of(tokens: Option<u64>) -> Effort {
    match tokens {
        Some(0..=2_048) => Effort::Low,
        Some(8_193..) => Effort::High,
        _ => Effort::Medium,
    }
}

/// Returns the tokens that stand for an effort.
pub(super) fn tokens_of(effort: Option<Effort>) -> u64 {
    match effort {
        Some(Effort::None | Effort::Minimal) => 1_024,
        Some(Effort::Low) => 2_048,
        None | Some(Effort::Medium) => 8_192,
        Some(Effort::High) => 16_384,
        Some(Effort::Xhigh | Effort::Max) => 32_768,
    }
}
