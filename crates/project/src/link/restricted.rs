//! Takes everything from a project that nobody agreed to, so that it can be run without trust.
//!
//! Keys that give a power are removed from the parsed files before they are linked: rules that loosen approvals, settings
//! of toolsets, fields of requests, variables for the prompt. Code is not run, and addresses of the project are not
//! known. What is left is checked by [`remaining`], so that a power that this module forgets is refused, not granted.

use llm_do_core::ModelSettings;
use llm_do_trust::{DeclaredPower, Power, Powers};
use serde_json::{Map, Value};

use crate::catalog::{Catalog, WantedToolset};
use crate::format::front_matter::{EnvironmentInfo, Header, Level, ToolsetEntry, Toolsets};
use crate::format::manifest::ApprovalModeKey;
use crate::link::powers::is_sampling_field;
use crate::link::toolsets::APPROVAL_CONFIG;
use crate::read::Files;
use crate::read::agent::Agent;

/// Removes from parsed files what gives the project powers.
pub(crate) fn restrict(files: &mut Files, agents: &mut [Agent], catalog: &dyn Catalog) {
    let reduced = reduced_sections(files, catalog);
    files.own.allowed_secrets = catalog.allowed_secret_files().to_vec();
    if let Some(file) = &mut files.manifest {
        file.manifest.secret_files.allow.clear();
        if file.manifest.runtime.approval_mode == Some(ApprovalModeKey::ApproveAll) {
            file.manifest.runtime.approval_mode = None;
        }
        for (name, settings) in reduced {
            if let Some(section) = file.manifest.toolsets.get_mut(&name) {
                section.settings = settings;
            }
        }
    }
    for agent in agents {
        restrict_header(&mut agent.header);
        let listed = std::mem::take(&mut agent.header.toolsets);
        agent.header.toolsets = reduced_list(&listed, files, catalog);
        let is_harmless = |tool: &str| {
            catalog.tool_home(tool).is_none_or(|home| gives_power(home, &Value::Null, files, catalog) == 0)
        };
        agent.header.tools.retain(|entry| is_harmless(entry.name()));
    }
}

/// Returns the powers that are left and that would take effect. Code, MCP servers, `.env` files and providers of the
/// project do nothing in a project that was restricted.
pub(crate) fn remaining(powers: &Powers) -> Vec<&DeclaredPower> {
    let is_inert = |declared: &&DeclaredPower| {
        matches!(
            declared.power,
            Power::Code { .. }
                | Power::KeyToCode { .. }
                | Power::McpCommand { .. }
                | Power::McpServer { .. }
                | Power::Provider { .. }
                | Power::KeyTo { .. }
                | Power::DotenvKey { .. }
        )
    };
    powers.iter().filter(|declared| !is_inert(declared)).collect()
}

fn restrict_header(header: &mut Header) {
    header.approval.retain(|_, level| *level != Level::PreApproved);
    // A tool of the provider that sends what the model chose to other servers is a power only in some projects, but
    // which ones depends on what is left of them.
    header.server_side_tools.clear();
    if let Some(settings) = &mut header.model_settings {
        let ModelSettings { extra_headers, extra_body, tool_choice, .. } = settings;
        // The tool that it names may be one of code that is not run.
        *tool_choice = None;
        extra_headers.clear();
        extra_body.retain(|name, _| is_sampling_field(name));
    }
    if let Some(EnvironmentInfo::Section(section)) = &mut header.env_info {
        section.env_vars.clear();
    }
    if let Some(info) = &mut header.env_info {
        info.remove_file_map();
    }
}

/// The sections of the manifest with settings that give no power. A section that has one whatever its settings keeps them:
/// no agent is given it.
fn reduced_sections(files: &Files, catalog: &dyn Catalog) -> Vec<(String, Value)> {
    let sections = files.manifest.iter().flat_map(|file| &file.manifest.toolsets);
    let reduced = sections.filter_map(|(name, section)| {
        let settings = reduced(&section.settings, |settings| gives_power(name, settings, files, catalog))?;
        Some((name.clone(), settings))
    });
    reduced.collect()
}

/// The toolsets that an agent lists, each with settings that give no power, without those that give one anyway.
fn reduced_list(listed: &Toolsets, files: &Files, catalog: &dyn Catalog) -> Toolsets {
    let entries = listed.entries().into_iter().filter_map(|(name, settings)| {
        let without_rules = without_rules(settings);
        let settings = reduced(&without_rules, |settings| gives_power(name, settings, files, catalog))?;
        Some(match settings {
            Value::Null => ToolsetEntry::Name(name.to_owned()),
            settings => ToolsetEntry::WithSettings(Map::from_iter([(name.to_owned(), settings)])),
        })
    });
    Toolsets::List(entries.collect())
}

/// Settings without the approval rules of the older form, which only loosen.
fn without_rules(settings: &Value) -> Value {
    let Value::Object(map) = settings else { return settings.clone() };
    let kept: Map<String, Value> = map
        .iter()
        .filter(|(key, _)| *key != APPROVAL_CONFIG)
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if kept.is_empty() { Value::Null } else { Value::Object(kept) }
}

/// Removes keys of settings until they give no power, or returns nothing if they give one whatever is removed.
fn reduced(settings: &Value, gives_power: impl Fn(&Value) -> usize) -> Option<Value> {
    let mut settings = settings.clone();
    let mut count = gives_power(&settings);
    while count > 0 {
        let Value::Object(map) = &settings else { return None };
        let without = |key: &String| {
            let mut map = map.clone();
            map.shift_remove(key);
            if map.is_empty() { Value::Null } else { Value::Object(map) }
        };
        let fewer = map.keys().map(without).map(|settings| (gives_power(&settings), settings));
        let (left, smaller) = fewer.min_by_key(|(left, _)| *left).filter(|(left, _)| *left < count)?;
        (count, settings) = (left, smaller);
    }
    Some(settings)
}

/// Returns how many powers a toolset has with these settings.
fn gives_power(name: &str, settings: &Value, files: &Files, catalog: &dyn Catalog) -> usize {
    let section = files.manifest.as_ref().and_then(|file| file.manifest.toolsets.get(name));
    let built_in = section.map_or(name, |section| section.toolset.as_str());
    let name = name.into();
    let wanted = WantedToolset {
        built_in,
        name: &name,
        settings,
        section: None,
        root: &files.root,
        files: &files.own,
    };
    catalog.toolset_powers(wanted).len()
}
