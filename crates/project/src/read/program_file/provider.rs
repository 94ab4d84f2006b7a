//! What the provider of a program is told: the model, its parameters, and the tools that the provider runs itself.

use super::ProgramReader;
use super::parts::{boolean, field, list, table, text};
use crate::diagnostic::Diagnostic;
use crate::document::{Node, NodeContent, TableField};
use crate::suggest::suggest;

impl ProgramReader<'_> {
    pub(super) fn model(&mut self, model: &TableField) {
        if !matches!(model.value.content, NodeContent::Table(_)) {
            return self
                .refuse(&model.value, "`model` must be a table with `name` and `provider`".to_owned());
        }
        self.notice_unknown("model", &model.value, &MODEL);
        for key in ["name", "provider"] {
            if model.value.field(key).is_none() {
                let message = format!("`model.{key}` is missing");
                self.out.push(Diagnostic::error_at(self.source, &model.span, message));
            }
        }
        let (name, provider) = (self.text_of(&model.value, "name"), self.text_of(&model.value, "provider"));
        if let (Some((name_field, name)), Some((provider_field, provider))) = (name, provider) {
            let plain = plain_provider(provider);
            if plain != provider {
                let message = format!(
                    "`{provider}` models are called through `{plain}`, with the key of that provider"
                );
                self.notice(provider_field, message);
            }
            // Vertex sets the date of a model apart with a character that no other knows.
            let name = if provider.contains("vertex") { name.replace('@', "-") } else { name.to_owned() };
            let chosen = text(&name_field.value.span, &format!("{plain}:{name}"));
            self.header.push(field("model", &name_field.span, chosen));
        }
        for found in ["project_id", "region"].iter().filter_map(|key| model.value.field(key)) {
            self.notice(found, format!("`model.{}` has no effect: Vertex is not used", found.name));
        }
        if let Some(found) = model.value.field("display_name") {
            self.notice(found, "`model.display_name` has no effect");
        }
        if let Some(found) = model.value.field("max_iterations") {
            let turns = field("turns", &found.span, found.value.clone());
            self.header.push(field("limits", &found.span, table(&found.span, vec![turns])));
        }
        if let Some(found) = model.value.field("disable_automatic_caching")
            && found.value.content == NodeContent::Bool(true)
        {
            self.settings.push(field("cache", &found.span, boolean(&found.span, false)));
        }
    }

    pub(super) fn parameters(&mut self, parameters: &Node) {
        let NodeContent::Table(fields) = &parameters.content else { return };
        for found in fields.iter().filter(|found| found.value.content != NodeContent::Null) {
            match found.name.as_str() {
                "temperature" | "top_p" | "max_tokens" | "extra_headers" => self.set(found, &found.name),
                "max_completion_tokens" | "max_tokens_to_sample" => self.most_tokens(parameters, found),
                "stop" | "stop_sequences" => self.stop(parameters, found),
                "reasoning_effort" => self.set(found, "effort"),
                "thinking" => {
                    let thinking = crate::read::deprecated_keys::thinking_of(&found.value)
                        .unwrap_or_else(|| found.value.clone());
                    self.settings.push(field("thinking", &found.span, thinking));
                }
                "thinking_budget" => self.thinking_budget(found),
                "top_k" | "frequency_penalty" | "presence_penalty" => {
                    let message =
                        format!("`parameters.{}` is not sent: only some providers know it", found.name);
                    let hint = "an agent file can send it unchanged, under `model_settings.extra_body`";
                    let notice = Diagnostic::notice_at(self.source, &found.span, message);
                    self.out.push(notice.with_hint(hint));
                }
                _ => {
                    let message = format!("`parameters.{}` is unknown and is ignored", found.name);
                    let notice = Diagnostic::notice_at(self.source, &found.span, message);
                    self.out.push(notice.with_hint(suggest(&found.name, PARAMETERS)));
                }
            }
        }
    }

    fn most_tokens(&mut self, parameters: &Node, found: &TableField) {
        if parameters.field("max_tokens").is_some() {
            let message = format!("`max_tokens` and `{}` are the same setting, written twice", found.name);
            return self.refuse(&found.value, message);
        }
        self.set(found, "max_tokens");
    }

    /// An older spelling of `thinking`: none where it is nothing.
    fn thinking_budget(&mut self, found: &TableField) {
        let is_none =
            matches!(&found.value.content, NodeContent::Number(number) if number.as_u64() == Some(0));
        let value = if is_none { boolean(&found.value.span, false) } else { found.value.clone() };
        self.settings.push(field("thinking", &found.span, value));
    }

    /// One text or a list of them.
    fn stop(&mut self, parameters: &Node, found: &TableField) {
        if found.name == "stop_sequences" && parameters.field("stop").is_some() {
            let message = "`stop` and `stop_sequences` are the same setting, written twice".to_owned();
            return self.refuse(&found.value, message);
        }
        let value = match &found.value.content {
            NodeContent::Text(_) => list(&found.value.span, vec![found.value.clone()]),
            _ => found.value.clone(),
        };
        self.settings.push(field("stop", &found.span, value));
    }

    /// Searches that the provider makes. Settings for another provider have no effect.
    pub(super) fn tools_of_provider(&mut self, program: &Node, tools: &Node) {
        let provider = program.field("model").and_then(|model| model.value.field("provider"));
        let provider = provider.and_then(|provider| provider.value.text()).map(plain_provider);
        for key in OF_PROVIDERS {
            let Some(found) = tools.field(key).filter(|found| found.value.content != NodeContent::Null)
            else {
                continue;
            };
            self.notice_unknown(&format!("tools.{key}"), &found.value, &[SEARCH]);
            if provider.is_some_and(|provider| provider != key) {
                self.notice(
                    found,
                    format!("`tools.{key}` has no effect: the model belongs to another provider"),
                );
                continue;
            }
            self.section(&found.value, SEARCH, |reading, search| reading.web_search(key, found, search));
        }
    }

    fn web_search(&mut self, key: &str, found: &TableField, search: &Node) {
        const PASSED: [&str; 3] = ["max_uses", "allowed_domains", "blocked_domains"];
        const LEFT_OUT: [&str; 2] = ["search_context_size", "user_location"];
        let path = format!("tools.{key}.{SEARCH}");
        self.notice_unknown(&path, search, &[&["enabled"], &PASSED[..], &LEFT_OUT].concat());
        if search.field("enabled").is_none_or(|enabled| enabled.value.content != NodeContent::Bool(true)) {
            return;
        }
        let is_written = |found: &&TableField| found.value.content != NodeContent::Null;
        for found in LEFT_OUT.iter().filter_map(|key| search.field(key)).filter(is_written) {
            self.notice(found, format!("`{path}.{}` is not sent", found.name));
        }
        let kind = field("tool_type", &found.span, text(&found.span, SEARCH));
        let passed = PASSED.iter().filter_map(|key| search.field(key)).filter(is_written).cloned();
        let tool = table(&search.span, std::iter::once(kind).chain(passed).collect());
        self.header.push(field("server_side_tools", &found.span, list(&found.value.span, vec![tool])));
    }
}

/// The keys of `model`.
const MODEL: [&str; 7] = [
    "name",
    "provider",
    "max_iterations",
    "disable_automatic_caching",
    "project_id",
    "region",
    "display_name",
];

/// Providers that have tools of their own in program files.
const OF_PROVIDERS: [&str; 2] = ["anthropic", "openai"];

/// The tool that they have.
const SEARCH: &str = "web_search";

/// The provider by which another one's models are reached.
fn plain_provider(provider: &str) -> &str {
    match provider {
        "vertex" | "claude_code" => "anthropic",
        _ => provider.strip_suffix("_vertex").unwrap_or(provider),
    }
}

/// The parameters that are passed on.
const PARAMETERS: [&str; 10] = [
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "max_tokens_to_sample",
    "stop",
    "stop_sequences",
    "reasoning_effort",
    "thinking",
    "extra_headers",
];
