//! The powers of one agent.

use std::sync::Arc;

use llm_do_core::{Access, AgentSpec, Approval, ApprovalRule, Effect, ModelSettings, Name, ToolDefinition};
use llm_do_runtime::approval_by_rules;
use llm_do_trust::Power;

use super::{PowerCollector, span_at_path};
use crate::document::entry_span;
use crate::format::front_matter::{EnvironmentInfo, EnvironmentSection, Header, OutputSchema};
use crate::link::Toolsets;
use crate::read::agent::Agent;

/// Variables that tell nothing about a person.
const HARMLESS_VARIABLES: &[&str] = &["LANG", "LC_ALL", "SHELL", "TERM", "TZ"];

/// The toolset that reads what a map of files lists.
const FILE_MAP: &str = "filesystem_project_ro";

/// Fields of requests that only change how tokens are chosen.
const SAMPLING_FIELDS: &[&str] = &[
    "dry_multiplier",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "min_p",
    "mirostat",
    "mirostat_eta",
    "mirostat_tau",
    "num_ctx",
    "num_predict",
    "presence_penalty",
    "random_seed",
    "reasoning_effort",
    "repeat_last_n",
    "repeat_penalty",
    "repetition_penalty",
    "seed",
    "stop",
    "temperature",
    "tfs_z",
    "top_a",
    "top_k",
    "top_logprobs",
    "top_p",
    "typical_p",
    "verbosity",
];

impl PowerCollector<'_> {
    /// Adds the powers of an agent; `spec` is missing if the header could not be linked.
    pub(super) fn agent(&mut self, agent: &Agent, spec: Option<&AgentSpec>, toolsets: &Toolsets<'_>) {
        let Header {
            // Harmless, or they only narrow what the agent may do.
            schema: _,
            name: _,
            description: _,
            entry: _,
            generated: _,
            locked: _,
            manual_only: _,
            access: _,
            agents: _,
            attachment_policy: _,
            tests: _,
            // Bounded by the user's limits.
            model: _,
            compatible_models: _,
            fallback_models: _,
            limits: _,
            tuning: _,
            // Texts and schemas, bounded when they are made.
            input_schema: _,
            prompt: _,
            template: _,
            // Reads of the project's own files: judged as reads.
            preload: _,
            file_descriptors: _,
            // Counted as agents of their own.
            programs: _,
            // Aliases and descriptions: the gate asks, and shows the tool's own name.
            tools: _,
            // Decided with the whole project, in `outward`.
            server_side_tools: _,
            model_settings,
            toolsets: listed,
            input_model_ref,
            output_schema,
            approval: _,
            env_info,
        } = &agent.header;
        self.classes(agent, input_model_ref.is_some(), output_schema.as_ref());
        if let Some(settings) = model_settings {
            self.model_settings(agent, settings);
        }
        for (name, settings) in listed.entries() {
            self.listed_toolset(agent, name, settings, toolsets);
        }
        if let Some(EnvironmentInfo::Section(section)) = env_info {
            self.environment(agent, section);
        }
        if let Some(root) = env_info.as_ref().and_then(EnvironmentInfo::file_map_root) {
            // A map of files shows what a toolset for reading them would list.
            let span = span_at_path(&agent.file.header, &["env_info"]);
            let settings = serde_json::json!({"root": root});
            self.toolset(&agent.file.source, &span, "env_info", FILE_MAP, FILE_MAP, &settings);
        }
        if let Some(spec) = spec {
            self.single_tools(agent, spec, toolsets);
            self.loosened(agent, spec, toolsets);
        }
    }

    fn add_at(&mut self, agent: &Agent, keys: &[&str], power: Power) {
        let span = span_at_path(&agent.file.header, keys);
        self.add(&agent.file.source, &span, &keys.join("."), power);
    }

    fn classes(&mut self, agent: &Agent, input: bool, output: Option<&OutputSchema>) {
        let output = matches!(output, Some(OutputSchema::Reference(_)));
        for (key, _) in [("input_model_ref", input), ("output_schema", output)].iter().filter(|(_, is)| *is) {
            let interpreter = self.interpreter.clone();
            self.add_at(agent, &[key], Power::Code { interpreter });
        }
    }

    fn model_settings(&mut self, agent: &Agent, settings: &ModelSettings) {
        let ModelSettings {
            temperature: _,
            max_tokens: _,
            top_p: _,
            stop: _,
            seed: _,
            thinking: _,
            effort: _,
            parallel_tool_calls: _,
            tool_choice: _,
            stream: _,
            cache: _,
            timeout: _,
            idle_timeout: _,
            extra_headers,
            extra_body,
        } = settings;
        let beyond = extra_body.keys().filter(|name| !is_sampling_field(name));
        for name in beyond {
            let keys = ["model_settings", "extra_body", name.as_str()];
            self.add_at(agent, &keys, Power::RequestField { name: format!("the field `{name}`") });
        }
        for name in extra_headers.keys() {
            let keys = ["model_settings", "extra_headers", name.as_str()];
            let name = name.to_ascii_lowercase();
            self.add_at(agent, &keys, Power::RequestField { name: format!("the header `{name}`") });
        }
    }

    /// A toolset with settings of the agent, or a built-in one whose very name reaches far.
    fn listed_toolset(
        &mut self,
        agent: &Agent,
        name: &str,
        settings: &serde_json::Value,
        toolsets: &Toolsets<'_>,
    ) {
        let Some(built_in) = toolsets.built_in_of(name) else { return };
        let settings = toolsets.settings_of(name, settings);
        let span = entry_span(&agent.file.header, "toolsets", name);
        let key = format!("toolsets.{name}");
        self.toolset(&agent.file.source, &span, &key, &built_in, name, &settings);
    }

    /// Toolsets of which the agent lists single tools, without the toolset.
    fn single_tools(&mut self, agent: &Agent, spec: &AgentSpec, toolsets: &Toolsets<'_>) {
        let listed = agent.header.toolsets.entries();
        for choice in &spec.toolsets {
            let name = choice.name.as_str();
            if listed.iter().any(|(listed, _)| *listed == name) {
                continue;
            }
            if let Some(built_in) = toolsets.built_in_of(name) {
                let settings = toolsets.settings_of(name, &serde_json::Value::Null);
                let span = span_at_path(&agent.file.header, &["tools"]);
                self.toolset(&agent.file.source, &span, "tools", &built_in, name, &settings);
            }
        }
    }

    fn environment(&mut self, agent: &Agent, section: &EnvironmentSection) {
        let EnvironmentSection {
            // Facts and lines of the author; `commands` are never run.
            variables: _,
            file_map_root: _,
            file_map_max_files: _,
            file_map_show_size: _,
            commands: _,
            custom: _,
            env_vars,
        } = section;
        for (label, name) in env_vars {
            if !HARMLESS_VARIABLES.contains(&name.as_str()) {
                let keys = ["env_info", "env_vars", label.as_str()];
                self.add_at(agent, &keys, Power::Variable { name: name.clone() });
            }
        }
    }

    /// Tools with effects that would ask, and that a rule of the agent pre-approves.
    fn loosened(&mut self, agent: &Agent, spec: &AgentSpec, toolsets: &Toolsets<'_>) {
        let pre_approves = spec.approval.iter().filter(|rule| rule.approval == Approval::PreApproved);
        let patterns: Vec<&str> = pre_approves.map(|rule| rule.pattern.as_str()).collect();
        if patterns.is_empty() {
            return;
        }
        for (toolset, definition) in toolsets.definitions_of(spec) {
            let called = called_name(spec, &definition.name);
            let by_rule = approval_by_rules(&spec.approval, called, Some(&toolset), &definition.name);
            let has_effects = definition.access > Access::Read && definition.effect != Effect::Pure;
            let asks = definition.approval > Approval::PreApproved || definition.judges_calls;
            if by_rule == Some(Approval::PreApproved) && has_effects && asks {
                let tool = format!("{toolset}.{}", definition.name);
                self.pre_approved(agent, &patterns, called, &tool, spec);
            }
        }
        self.loosened_code(agent, spec, toolsets);
    }

    /// What code defines is unknown until it runs, so a rule that pre-approves it counts whatever it does.
    fn loosened_code(&mut self, agent: &Agent, spec: &AgentSpec, toolsets: &Toolsets<'_>) {
        for (own, called) in toolsets.tools_of_code(agent, spec) {
            if approval_by_rules(&spec.approval, &called, None, &own) == Some(Approval::PreApproved) {
                let matches = |rule: &&ApprovalRule| {
                    approval_by_rules(std::slice::from_ref(*rule), &called, None, &own).is_some()
                };
                let pattern = spec.approval.iter().find(matches).map_or("", |rule| rule.pattern.as_str());
                self.pre_approved_code(agent, pattern, spec, own.to_string());
            }
        }
        for toolset in toolsets.toolsets_of_code(agent) {
            for rule in spec.approval.iter().filter(|rule| rule.approval == Approval::PreApproved) {
                let tool = format!("{} of {toolset}", rule.pattern);
                self.pre_approved_code(agent, &rule.pattern, spec, tool);
            }
        }
    }

    fn pre_approved_code(&mut self, agent: &Agent, pattern: &str, spec: &AgentSpec, tool: String) {
        let span = entry_span(&agent.file.header, "approval", pattern);
        let power = Power::PreApproved { agent: spec.name.to_string(), tool };
        self.add(&agent.file.source, &span, "approval", power);
    }

    fn pre_approved(
        &mut self,
        agent: &Agent,
        patterns: &[&str],
        called: &Name,
        tool: &str,
        spec: &AgentSpec,
    ) {
        let header = &agent.file.header;
        let written = header.field("approval").map(|field| &field.value);
        let names = |pattern: &&&str| {
            let rule = spec.approval.iter().find(|rule| rule.pattern == ***pattern);
            let toolset = tool.split_once('.').map(|(toolset, _)| Name::from(toolset));
            let own = Name::from(tool.rsplit('.').next().unwrap_or(tool));
            let alone = rule
                .map(|rule| approval_by_rules(std::slice::from_ref(rule), called, toolset.as_ref(), &own));
            alone.flatten().is_some() && written.is_some_and(|written| written.field(pattern).is_some())
        };
        let power = Power::PreApproved { agent: spec.name.to_string(), tool: tool.to_owned() };
        match patterns.iter().find(names) {
            Some(pattern) => {
                let span = entry_span(header, "approval", pattern);
                self.add(&agent.file.source, &span, "approval", power);
            }
            // The older form keeps rules among the settings of a toolset.
            None => {
                let toolset = tool.split_once('.').map_or(tool, |(toolset, _)| toolset);
                let span = entry_span(header, "toolsets", toolset);
                self.add(&agent.file.source, &span, "toolsets", power);
            }
        }
    }

    /// Tools that the provider runs can carry out what the project reads without a question.
    pub(super) fn outward(&mut self, agents: &[Agent], specs: &[AgentSpec], toolsets: &Toolsets<'_>) {
        let reads = |spec: &AgentSpec| {
            toolsets.definitions_of(spec).iter().any(|(_, definition)| reads_unasked(definition))
        };
        // Preloaded files and a map of files are in the conversation before anybody could be asked.
        let is_told = |agent: &Agent| {
            let map = agent.header.env_info.as_ref().and_then(EnvironmentInfo::file_map_root);
            !agent.header.preload.is_empty() || map.is_some()
        };
        let has_code = self.powers.iter().any(|(power, _)| matches!(power, Power::Code { .. }));
        if !has_code && !specs.iter().any(reads) && !agents.iter().any(is_told) {
            return;
        }
        for agent in agents {
            for tool in &agent.header.server_side_tools {
                let power = Power::Outward { tool: tool.name().to_owned() };
                self.add_at(agent, &["server_side_tools"], power);
            }
        }
    }
}

/// Returns whether a field of a request only changes how tokens are chosen.
pub(crate) fn is_sampling_field(name: &str) -> bool {
    SAMPLING_FIELDS.contains(&name)
}

/// Returns whether a tool reads files or command output without a question.
fn reads_unasked(definition: &Arc<ToolDefinition>) -> bool {
    let reads = definition.name.ends_with("read_file") || definition.name.ends_with("search_files");
    (reads && definition.approval == Approval::PreApproved) || definition.judges_calls
}

/// The name under which the model calls a tool.
fn called_name<'s>(spec: &'s AgentSpec, own: &'s Name) -> &'s Name {
    let change = spec.overrides.iter().find(|change| change.tool == *own);
    change.and_then(|change| change.alias.as_ref()).unwrap_or(own)
}
