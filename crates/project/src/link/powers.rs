//! Lists the powers of a project: what it does without anybody being asked when it happens.
//!
//! The list is made from the parsed files alone, and nothing of the project runs for it. Every section of a manifest and
//! every header is destructured without `..`, so that a new key does not compile until somebody has classified it.
//!
//! Values that the command line sets are the user's own word: they are not powers.

mod agent;
mod dotenv;
mod origin;

use std::ops::Range;
use std::path::Path;

use llm_do_core::AgentSpec;
use llm_do_trust::{Location, Power, Powers};
use serde_json::Value;

use crate::catalog::{Catalog, WantedToolset};
use crate::diagnostic::{Diagnostic, Source};
use crate::document::{Node, entry_place, place_of};
use crate::format::manifest::ManifestFile;
use crate::format::manifest::{
    Entry, Manifest, McpServer, Mode, Provider, RuntimeSection, SecretFilesSection, ToolsetSection,
};
use crate::link::Toolsets;
use crate::project_files::ProjectFiles;
use crate::read::Files;
use crate::read::agent::Agent;

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
    let mut found = Found { root: &files.root, own: &files.own, catalog, interpreter, powers: Vec::new() };
    if let Some(file) = &files.manifest {
        found.manifest(file);
    }
    if let Some((source, place)) = &files.widened {
        let root = files.root.display();
        let which = format!("all files below {root}, since the program names files above its directory");
        found.add(source, place, "root", Power::Root { which });
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
struct Found<'a> {
    root: &'a Path,
    own: &'a ProjectFiles,
    catalog: &'a dyn Catalog,
    interpreter: String,
    powers: Vec<(Power, Location)>,
}

impl Found<'_> {
    /// Adds a power that a key declares, unless the command line set the key.
    fn add(&mut self, source: &Source, place: &Range<usize>, key: &str, power: Power) {
        if source.is_set(place) {
            return;
        }
        let Diagnostic { file, line, .. } = Diagnostic::at(source, place, "");
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
        let Entry { agent: _, function, args: _ } = entry;
        if function.is_some() {
            let place = node.field("entry").map_or(0..0, |entry| place_of(&entry.value, "function"));
            self.code(source, &place, "entry.function");
        }
        if !python_files.is_empty() {
            self.code(source, &place_of(node, "python_files"), "python_files");
        }
        for name in python_env {
            let place = entry_place(node, "python_env", name);
            self.add(source, &place, "python_env", Power::KeyToCode { name: name.clone() });
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
            let place = entry_place(node, "toolsets", name);
            self.toolset(source, &place, &format!("toolsets.{name}"), toolset, name, settings);
        }
        for glob in allow {
            let place =
                node.field("secret_files").map_or(0..0, |field| entry_place(&field.value, "allow", glob));
            self.add(source, &place, "secret_files.allow", Power::SecretFiles { glob: glob.clone() });
        }
        self.runtime(file, runtime);
    }

    /// Code of the project is one power with its interpreter: any module can import any other.
    fn code(&mut self, source: &Source, place: &Range<usize>, key: &str) {
        self.add(source, place, key, Power::Code { interpreter: self.interpreter.clone() });
    }

    fn mcp_server(&mut self, file: &ManifestFile, name: &str, server: &McpServer) {
        let McpServer { command, args, env, cwd, url, headers, prefix: _ } = server;
        let place = entry_place(&file.node, "mcp_servers", name);
        let key = format!("mcp_servers.{name}");
        let mut add = |power| self.add(&file.source, &place, &key, power);
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
        let place = entry_place(&file.node, "providers", name);
        let key = format!("providers.{name}");
        let origin = origin(base_url);
        self.add(&file.source, &place, &key, Power::Provider { origin: origin.clone() });
        if let Some(name) = api_key_env {
            self.add(&file.source, &place, &key, Power::KeyTo { name: name.clone(), origin });
        }
    }

    fn toolset(
        &mut self,
        source: &Source,
        place: &Range<usize>,
        key: &str,
        built_in: &str,
        name: &str,
        settings: &Value,
    ) {
        let name = name.into();
        let (root, files) = (self.root, self.own);
        let wanted = WantedToolset { built_in, name: &name, settings, section: None, root, files };
        for power in self.catalog.toolset_powers(wanted) {
            self.add(source, place, key, power);
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
        if *approval_mode == Some(Mode::ApproveAll) {
            let runtime = file.node.field("runtime");
            let place = runtime.map_or(0..0, |runtime| place_of(&runtime.value, "approval_mode"));
            self.add(&file.source, &place, "runtime.approval_mode", Power::ApproveAll {});
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

/// The place of a value in a header, by the keys that lead to it; of the last key that exists otherwise.
fn place_at(node: &Node, keys: &[&str]) -> Range<usize> {
    let mut place = node.place.clone();
    let mut node = node;
    for key in keys {
        let Some(field) = node.field(key) else { break };
        place = field.place.clone();
        node = &field.value;
    }
    place
}
