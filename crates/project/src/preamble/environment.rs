//! Facts about the surroundings of an agent, as one `<env>` block.

use std::path::{Path, PathBuf};

use llm_do_core::{secret_word, visible_line};

use super::file_map::FileMap;
use super::git;
use crate::catalog::Host;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{entry_span, span_of};
use crate::format::facts::Fact;
use crate::format::front_matter::{EnvironmentInfo, EnvironmentSection, Variables};
use crate::read::agent::Agent;
use crate::source::Span;
use crate::suggest::suggest;

/// The key of the section.
const KEY: &str = "env_info";

/// No value of a variable is told beyond so many characters.
const MAX_VALUE_LEN: usize = 1_000;

/// What an agent is told about its surroundings.
pub(super) struct Environment {
    facts: Vec<Fact>,
    custom: Vec<(String, String)>,
    variables: Vec<(String, String)>,
    file_map: FileMap,
    root: PathBuf,
}

impl Environment {
    /// Reads the section of an agent, and reports what is wrong with it.
    pub(super) fn read(agent: &Agent, root: &Path, out: &mut Diagnostics) -> Option<Self> {
        let section = match agent.header.env_info.as_ref()? {
            EnvironmentInfo::All(false) => return None,
            EnvironmentInfo::All(true) => {
                EnvironmentSection { variables: Some(Variables::all()), ..Default::default() }
            }
            EnvironmentInfo::Some(names) => {
                EnvironmentSection { variables: Some(Variables::Some(names.clone())), ..Default::default() }
            }
            EnvironmentInfo::Section(section) => section.clone(),
        };
        let facts = read_facts(agent, section.variables.as_ref(), out);
        check_variables(agent, &section, out);
        notice_commands(agent, &section, out);
        let file_map = FileMap::new(root, &section);
        if let Err(message) = file_map.check() {
            out.push(Diagnostic::error_at(&agent.file.source, &key_span(agent, "file_map_root"), message));
        }
        Some(Self {
            facts,
            custom: section.custom.into_iter().collect(),
            variables: section.env_vars.into_iter().collect(),
            file_map,
            root: root.to_path_buf(),
        })
    }

    /// Makes the block; nothing where there is nothing to tell.
    pub(super) fn text(&self, host: &dyn Host) -> Option<String> {
        let facts = self.facts.iter().filter_map(|fact| self.fact(*fact, host));
        let custom =
            self.custom.iter().map(|(key, text)| format!("{}: {}", visible_line(key), visible_line(text)));
        let variables = self.variables.iter().filter_map(|(label, name)| {
            let value = host.variable(name).filter(|value| !value.is_empty())?;
            Some(format!("{}: {}", visible_line(label), one_line(&value)))
        });
        let map = self.facts.contains(&Fact::FileMap).then(|| self.file_map.text());
        let lines: Vec<String> = facts.chain(custom).chain(variables).chain(map).collect();
        (!lines.is_empty()).then(|| format!("<env>\n{}\n</env>", without_tags(&lines.join("\n"))))
    }

    fn fact(&self, fact: Fact, host: &dyn Host) -> Option<String> {
        let machine = host.machine();
        let value = match fact {
            Fact::WorkingDirectory => machine.directory?.display().to_string(),
            Fact::Platform => format!("{} ({})", std::env::consts::OS, std::env::consts::ARCH),
            Fact::Date => jiff::Zoned::now().date().to_string(),
            Fact::Hostname => machine.hostname?,
            Fact::Username => machine.username?,
            Fact::Git => git::describe(&self.root)?,
            Fact::FileMap => return None,
        };
        Some(format!("{}: {}", fact.as_str(), one_line(&value)))
    }
}

/// Escapes the closing tag, so that no text ends its block: anybody chooses the names of files and branches.
fn without_tags(text: &str) -> String {
    text.replace("</env", "&lt;/env")
}

/// A value as one line without characters that nobody sees.
fn one_line(value: &str) -> String {
    let line = visible_line(value).to_string();
    match line.char_indices().nth(MAX_VALUE_LEN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The facts in their order. The map of files is told only where it is named.
fn read_facts(agent: &Agent, variables: Option<&Variables>, out: &mut Diagnostics) -> Vec<Fact> {
    let names = match variables {
        None => return Vec::new(),
        Some(Variables::All(_)) => {
            return Fact::ALL.into_iter().filter(|fact| *fact != Fact::FileMap).collect();
        }
        Some(Variables::Some(names)) => names,
    };
    for name in names.iter().filter(|name| Fact::from_name(name).is_none()) {
        let message = format!("`{KEY}` names the fact `{name}`, which does not exist");
        let hint = suggest(name, Fact::ALL.map(Fact::as_str));
        out.push(Diagnostic::error_at(&agent.file.source, &fact_span(agent, name), message).with_hint(hint));
    }
    let is_named = |fact: &Fact| names.iter().any(|name| name == fact.as_str());
    Fact::ALL.into_iter().filter(is_named).collect()
}

fn key_span(agent: &Agent, key: &str) -> Span {
    agent.file.header.field(KEY).map_or(Span::START, |field| span_of(&field.value, key))
}

fn fact_span(agent: &Agent, name: &str) -> Span {
    let header = &agent.file.header;
    match header.field(KEY).filter(|field| field.value.field("variables").is_some()) {
        Some(field) => entry_span(&field.value, "variables", name),
        None => entry_span(header, KEY, name),
    }
}

/// Keys are told to no model.
fn check_variables(agent: &Agent, section: &EnvironmentSection, out: &mut Diagnostics) {
    for (label, name) in &section.env_vars {
        let span = agent
            .file
            .header
            .field(KEY)
            .map_or(Span::START, |field| entry_span(&field.value, "env_vars", label));
        if let Some(word) = secret_word(name) {
            let message =
                format!("`env_vars` names the variable `{name}`, which looks like a key (`{word}`)");
            let hint = "keys are never sent to a model; tools that need one read it themselves";
            out.push(Diagnostic::error_at(&agent.file.source, &span, message).with_hint(hint));
        }
        if name.is_empty() || name.contains(['=', '\0']) {
            let message = format!("`env_vars`: `{name}` is not a valid variable name");
            out.push(Diagnostic::error_at(&agent.file.source, &span, message));
        }
    }
}

fn notice_commands(agent: &Agent, section: &EnvironmentSection, out: &mut Diagnostics) {
    if section.commands.is_some() {
        let message = "`commands` of `env_info` are never run: project files cannot start programs";
        let notice = Diagnostic::notice_at(&agent.file.source, &key_span(agent, "commands"), message);
        out.push(notice.with_hint("give the agent a shell toolset, or write the facts down"));
    }
}
