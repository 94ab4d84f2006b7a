//! Lists the powers of a project: what it does without anybody being asked when it happens.
//!
//! The list is made from the parsed files alone, and nothing of the project runs for it. Every section of a manifest and
//! every header is destructured without `..`, so that a new key does not compile until somebody has classified it.
//!
//! Values that the command line sets are the user's own word: they are not powers.

mod agent;
mod dotenv;
mod origin;

use std::path::Path;

use llm_do_core::AgentSpec;
use llm_do_trust::{Location, Power, Powers};
use serde_json::Value;

use crate::catalog::{Catalog, WantedToolset};
use crate::diagnostic::Diagnostic;
use crate::document::{Node, entry_span, span_of};
use crate::format::manifest::ManifestFile;
use crate::format::manifest::{
    ApprovalModeKey, EntrySection, Manifest, McpServer, Provider, RuntimeSection, SecretFilesSection,
    ToolsetSection,
};
use crate::link::Toolsets;
use crate::project_files::ProjectFiles;
use crate::read::Files;
use crate::read::agent::Agent;
use crate::source::{SourceFile, Span};

use origin::origin;

pub(crate) use agent::is_sampling_field;

/// Returns the powers of a project that was read.
pub(crate) fn powers(
    files: &Files,
    agents: &[Agent],
    specs: &[AgentSpec],
    toolsets: &Toolsets<'_>,
    catalog: &dyn Catalog,
) -> Powers {
    let python = files.manifest.as_ref().and_then(|file| file.manifest.python.as_deref());
    let interpreter = catalog.interpreter(&files.root, python);
    let mut found =
        PowerCollector { root: &files.root, own: &files.own, catalog, interpreter, powers: Vec::new() };
    if let Some(file) = &files.manifest {
        found.manifest(file);
    }
    if let Some((source, span)) = &files.widened {
        let root = files.root.display();
        let which = format!("all files below {root}, because the program names files above its directory");
        found.add(source, span, "root", Power::Root { which });
    }
    for agent in agents {
        let spec = specs.iter().find(|spec| agent.header.name == spec.name.as_str());
        found.agent(agent, spec, toolsets);
    }
    found.outward(agents, specs, toolsets);
    found.dotenv();
    found.powers.into_iter().collect()
}

/// Collects powers.
struct PowerCollector<'a> {
    root: &'a Path,
    own: &'a ProjectFiles,
    catalog: &'a dyn Catalog,
    interpreter: String,
    powers: Vec<(Power, Location)>,
}

impl PowerCollector<'_> {
    /// Adds a power that a key declares, unless the command line set the key.
    fn add(&mut self, source: &SourceFile, span: &Span, key: &str, power: Power) {
        if span.is_override() {
            return;
        }
        let Diagnostic { file, line, .. } = Diagnostic::error_at(source, span, "");
        self.powers.push((power, Location { file, line, key: key.to_owned() }));
    }

    fn manifest(&mut self, file: &ManifestFile) {
        let Manifest {
            // Harmless: they are checked, or only narrow what happens.
            schema: _,
            version: _,
            allow_cli_input: _,
            context: _,
            // Bounded elsewhere: models and prices by the user's limits, files by the rules of listing.
            model: _,
            models: _,
            agent_files: _,
            generated_agents_dir: _,
            python_load_seconds: _,
            entry,
            python_files,
            // Part of the power to run code.
            python: _,
            python_env,
            mcp_servers,
            providers,
            toolsets,
            secret_files: SecretFilesSection { allow },
            runtime,
        } = &file.manifest;
        let ManifestFile { source, node, .. } = file;
        let EntrySection { agent: _, function, args: _ } = entry;
        if function.is_some() {
            let span = node.field("entry").map_or(Span::START, |entry| span_of(&entry.value, "function"));
            self.code(source, &span, "entry.function");
        }
        if !python_files.is_empty() {
            self.code(source, &span_of(node, "python_files"), "python_files");
        }
        for name in python_env {
            let span = entry_span(node, "python_env", name);
            self.add(source, &span, "python_env", Power::KeyToCode { name: name.clone() });
        }
        for (name, server) in mcp_servers {
            self.mcp_server(file, name, server);
        }
        for (name, provider) in providers {
            self.provider(file, name, provider);
        }
        for (name, section) in toolsets {
            // Only a person or code calls what is `manual_only`: it narrows.
            let ToolsetSection { toolset, settings, manual_only: _ } = section;
            let span = entry_span(node, "toolsets", name);
            self.toolset(source, &span, &format!("toolsets.{name}"), toolset, name, settings);
        }
        for glob in allow {
            let span = node
                .field("secret_files")
                .map_or(Span::START, |field| entry_span(&field.value, "allow", glob));
            self.add(source, &span, "secret_files.allow", Power::SecretFiles { glob: glob.clone() });
        }
        self.runtime(file, runtime);
    }

    /// Code of the project is one power with its interpreter: any module can import any other.
    fn code(&mut self, source: &SourceFile, span: &Span, key: &str) {
        self.add(source, span, key, Power::Code { interpreter: self.interpreter.clone() });
    }

    fn mcp_server(&mut self, file: &ManifestFile, name: &str, server: &McpServer) {
        let McpServer { command, args, env, cwd, url, headers, prefix: _ } = server;
        let span = entry_span(&file.node, "mcp_servers", name);
        let key = format!("mcp_servers.{name}");
        let mut add = |power| self.add(&file.source, &span, &key, power);
        if let Some(command) = command {
            let argv = std::iter::once(command).chain(args).cloned().collect();
            add(Power::McpCommand { argv, cwd: cwd.clone() });
        }
        let target = match url {
            Some(url) => origin(url),
            None => format!("the MCP server {name}"),
        };
        if url.is_some() {
            add(Power::McpServer { origin: target.clone() });
        }
        let message = url.iter().chain(args).chain(env.values()).chain(headers.values());
        for name in message.flat_map(|word| variables_in(word)) {
            add(Power::KeyTo { name, origin: target.clone() });
        }
    }

    fn provider(&mut self, file: &ManifestFile, name: &str, provider: &Provider) {
        // Headers with credentials are refused when the project is checked.
        let Provider { api: _, base_url, api_key_env, headers: _ } = provider;
        let span = entry_span(&file.node, "providers", name);
        let key = format!("providers.{name}");
        let origin = origin(base_url);
        self.add(&file.source, &span, &key, Power::Provider { origin: origin.clone() });
        if let Some(name) = api_key_env {
            self.add(&file.source, &span, &key, Power::KeyTo { name: name.clone(), origin });
        }
    }

    fn toolset(
        &mut self,
        source: &SourceFile,
        span: &Span,
        key: &str,
        built_in: &str,
        name: &str,
        settings: &Value,
    ) {
        let name = name.into();
        let (root, files) = (self.root, self.own);
        let wanted = WantedToolset { built_in, name: &name, settings, section: None, root, files };
        for power in self.catalog.toolset_powers(wanted) {
            self.add(source, span, key, power);
        }
    }

    fn runtime(&mut self, file: &ManifestFile, runtime: &RuntimeSection) {
        let RuntimeSection {
            approval_mode,
            // Limits of the user are ceilings, and calls of agents are free by default: these only narrow.
            max_depth: _,
            max_created_agents: _,
            max_parallel: _,
            max_result_bytes: _,
            max_template_bytes: _,
            limits: _,
            model_attempts: _,
            return_permission_errors: _,
            agent_calls_require_approval: _,
            agent_attachments_require_approval: _,
            agent_approval_overrides: _,
            attachment_policy: _,
            auth_mode: _,
        } = runtime;
        if *approval_mode == Some(ApprovalModeKey::ApproveAll) {
            let runtime = file.node.field("runtime");
            let span = runtime.map_or(Span::START, |runtime| span_of(&runtime.value, "approval_mode"));
            self.add(&file.source, &span, "runtime.approval_mode", Power::ApproveAll {});
        }
    }

    fn dotenv(&mut self) {
        let keys = self.catalog.key_variables();
        for (name, line) in dotenv::names(self.root) {
            if keys.contains(&name.as_str()) {
                let location = Location {
                    file: crate::diagnostic::shown_path(&self.root.join(".env")),
                    line: Some(line),
                    key: name.clone(),
                };
                self.powers.push((Power::DotenvKey { name }, location));
            }
        }
    }
}

/// Returns the names of variables that a text refers to as `${NAME}` or `${NAME:-default}`.
fn variables_in(text: &str) -> Vec<String> {
    let begun = text.split("${").skip(1);
    let name = |part: &str| part.split(['}', ':']).next().unwrap_or_default().to_owned();
    begun.map(name).filter(|name| !name.is_empty()).collect()
}

/// Returns the span of a field by the keys that lead to it, or of the last of them that exists.
fn span_at_path(node: &Node, keys: &[&str]) -> Span {
    let mut span = node.span.clone();
    let mut node = node;
    for key in keys {
        let Some(field) = node.field(key) else { break };
        span = field.span.clone();
        node = &field.value;
    }
    span
}
