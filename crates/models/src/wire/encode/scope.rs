//! What the writers of all APIs know and share: whom they write for, what is its own, and what must be said.

use std::collections::HashSet;
use std::fmt::Display;

use llm_do_core::{Message, ModelRequest, ModelSettings, Origin, ProviderBlock, ServerTool, ToolChoice};
use serde_json::{Map, Value};

use super::RequestTarget;
use super::thinking::ThinkingPlan;
use crate::model_patterns::is_one_of;
use crate::wire::request_rules::ForcedToolChoice;

/// Replaces a text that would be empty, which most APIs refuse.
pub(super) const EMPTY: &str = "(empty)";

/// Whom a writer writes for, and where it notes what it leaves out.
pub(super) struct Scope<'a> {
    pub(super) target: &'a RequestTarget,
    pub(super) notices: &'a mut Notices,
}

impl<'a> Scope<'a> {
    /// Returns which blocks of a message the model accepts.
    pub(super) fn replay(&self, message: &Message) -> BlockReplay<'a> {
        let is_accepted = message.origin.as_ref().is_some_and(|origin| self.accepts(origin));
        BlockReplay { provider: &self.target.provider, is_accepted }
    }

    /// Returns whether the model accepts opaque blocks of another one: signatures, encrypted reasoning, and the ids
    /// that refer to them.
    fn accepts(&self, origin: &Origin) -> bool {
        let RequestTarget { provider, model, rules, .. } = self.target;
        let is_same_provider = canonical(&origin.provider) == canonical(provider);
        is_same_provider && (origin.model == *model || is_one_of(&origin.model, rules.replays_from))
    }

    /// Says once in a session that something is not sent.
    pub(super) fn left_out(&mut self, what: &str) {
        let name = self.target.name();
        self.notices.add_once(format!("{what} is left out: `{name}` does not take it"));
    }

    /// Says that a setting is not sent, where it is set.
    pub(super) fn without_setting(&mut self, name: &str, is_set: bool) {
        if is_set {
            self.left_out(&format!("the setting `{name}`"));
        }
    }

    /// Says that a setting is sent with another value than the written one.
    pub(super) fn changed(&mut self, name: &str, written: &str, sent: &str) {
        let target = self.target.name();
        self.notices
            .add_once(format!("`{name}: {written}` is sent as `{sent}`: `{target}` does not take it"));
    }

    /// Returns the value that is sent instead of the written one, with a notice if they differ.
    pub(super) fn limited<T: PartialEq + Display>(&mut self, name: &str, written: T, sent: T) -> T {
        if written != sent {
            self.changed(name, &written.to_string(), &sent.to_string());
        }
        sent
    }

    /// Returns `temperature` and `top_p` as far as the model accepts them.
    pub(super) fn sampling(
        &mut self,
        settings: &ModelSettings,
        is_thinking: bool,
    ) -> (Option<f64>, Option<f64>) {
        let rules = &self.target.rules;
        let is_beside_thinking = is_thinking && !rules.sampling_while_thinking;
        if !self.target.profile.sampling || is_beside_thinking {
            let beside = if self.target.profile.sampling { " beside thinking" } else { "" };
            for (name, value) in [("temperature", settings.temperature), ("top_p", settings.top_p)] {
                if value.is_some() {
                    self.left_out(&format!("the setting `{name}`{beside}"));
                }
            }
            return (None, None);
        }
        let max = rules.max_temperature;
        let temperature =
            settings.temperature.map(|value| self.limited("temperature", value, value.min(max)));
        if temperature.is_some() && settings.top_p.is_some() && rules.temperature_or_top_p {
            self.left_out("the setting `top_p` beside `temperature`");
            return (temperature, None);
        }
        (temperature, settings.top_p)
    }

    /// Returns the stop sequences that the model accepts.
    pub(super) fn stops<'s>(&mut self, settings: &'s ModelSettings) -> Vec<&'s str> {
        let rules = &self.target.rules;
        let is_taken = |stop: &&str| rules.blank_stops || !stop.trim().is_empty();
        let (mut stops, blank): (Vec<&str>, Vec<&str>) =
            settings.stop.iter().map(String::as_str).partition(is_taken);
        if !blank.is_empty() {
            self.left_out("a `stop` text of white space");
        }
        let max = rules.max_stops;
        match stops.len().saturating_sub(max) {
            0 => {}
            _ if max == 0 => self.without_setting("stop", true),
            surplus => {
                let name = self.target.name();
                let notice =
                    format!("`{name}` takes {max} `stop` texts at most, so the last {surplus} are left out");
                self.notices.add_once(notice);
            }
        }
        stops.truncate(max);
        stops
    }

    /// Returns the limit of output tokens, within the bounds of the model.
    pub(super) fn output_limit(&mut self, limit: u64, settings: &ModelSettings) -> u64 {
        let (min, max) = self.target.rules.output_tokens;
        let sent = limit.clamp(min, max);
        match settings.max_tokens {
            Some(written) if written.clamp(min, max) != written => {
                self.changed("max_tokens", &written.to_string(), &written.clamp(min, max).to_string());
            }
            _ if limit < min => {
                let name = self.target.name();
                self.notices.add_once(format!(
                    "{min} output tokens are asked for although fewer are left: `{name}` takes no smaller limit"
                ));
            }
            _ => {}
        }
        sent
    }

    /// Returns the choice of tools, without force if the model does not accept it.
    pub(super) fn tool_choice<'s>(
        &mut self,
        settings: &'s ModelSettings,
        plan: ThinkingPlan,
    ) -> Option<&'s ToolChoice> {
        let choice = settings.tool_choice.as_ref()?;
        let is_forced = matches!(choice, ToolChoice::Required | ToolChoice::Tool(_));
        let beside = match self.target.rules.forced_tool_choice {
            ForcedToolChoice::Never => "",
            ForcedToolChoice::NotWhileThinking if plan.is_active(self) => " beside thinking",
            ForcedToolChoice::NotWhileThinking | ForcedToolChoice::Always => return Some(choice),
        };
        if !is_forced {
            return Some(choice);
        }
        self.left_out(&format!("a forced `tool_choice`{beside}"));
        Some(&ToolChoice::Auto)
    }

    /// Returns the server-side tools that the model's profile permits, each kind once.
    pub(super) fn server_tools<'r>(&mut self, request: &ModelRequest<'r>) -> Vec<&'r ServerTool> {
        let (mut taken, left): (Vec<_>, Vec<_>) =
            request.server_tools.iter().partition(|tool| self.target.offers(tool));
        left.into_iter().for_each(|tool| self.without_server_tool(tool));
        let mut kinds = HashSet::new();
        taken.retain(|tool| kinds.insert(tool.name()));
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

/// Which blocks of a message go back to a model as its provider sent them.
///
/// Provider and model must fit: a model refuses what it cannot verify, also from another model of its provider.
#[derive(Clone, Copy)]
pub(super) struct BlockReplay<'a> {
    provider: &'a str,
    is_accepted: bool,
}

impl BlockReplay<'_> {
    /// Returns whether the model accepts what belongs to the message.
    pub(super) fn is_accepted(self) -> bool {
        self.is_accepted
    }

    /// Returns a block if the model accepts it.
    pub(super) fn block(self, block: Option<&ProviderBlock>) -> Option<&Map<String, Value>> {
        let is_own = |block: &&ProviderBlock| canonical(&block.provider) == canonical(self.provider);
        block.filter(is_own).filter(|_| self.is_accepted)?.value.as_object()
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
