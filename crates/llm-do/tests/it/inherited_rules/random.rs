//! Random projects: one agent that can create others, with tools under all kinds of names and rules.

use std::fmt;
use std::fs;
use std::path::Path;

use llm_do::tools::Access;
use llm_do_testing::Chance;
use serde_json::{Map, Value, json};

use super::oracle::{Creator, HeldTool, Level};

const READING: [&str; 3] = ["read_file", "list_files", "search_files"];
const WRITING: [&str; 2] = ["write_file", "edit_file"];
const CREATING: [&str; 3] = ["agent_create", "agent_call", "agent_list"];

/// Names that an alias may have. Some are names of other tools, if those are free.
const ALIASES: [&str; 8] =
    ["read_notes", "write_notes", "read_file", "write_file", "notes", "agent_notes", "calculator", "edit_x"];

/// Patterns that may match something, or nothing.
const GLOBS: [&str; 12] = [
    "read_*",
    "write_*",
    "*_file",
    "*_notes",
    "*",
    "filesystem_project.*",
    "notes.*",
    "*.write_file",
    "{read,write}_notes",
    "?_write_file",
    "agent_*",
    "*.*_file",
];

/// A project with the agent `main`.
pub(crate) struct RandomProject {
    pub(crate) creator: Creator,
    toolsets: Vec<(String, Value)>,
    manifest: Value,
}

impl RandomProject {
    pub(crate) fn new(chance: &mut Chance) -> Self {
        let mut project = Self {
            creator: Creator { tools: Vec::new(), rules: Vec::new(), manual_only: Vec::new() },
            toolsets: Vec::new(),
            manifest: json!({"version": 1, "entry": {"agent": "main"}, "agent_files": ["*.agent"]}),
        };
        project.add_toolsets(chance);
        project.rename(chance);
        project.add_rules(chance);
        project
    }

    fn add_toolsets(&mut self, chance: &mut Chance) {
        let access = [None, None, Some("write"), Some("read")];
        let created = chance.one_of(&access).map_or(Value::Null, |access| json!({"access": access}));
        self.add("dynamic_agents", "", &CREATING, created);
        if chance.percent(70) {
            let prefix = if chance.percent(33) { "p_" } else { "" };
            self.add_files("filesystem_project", prefix, chance);
        }
        if chance.percent(40) {
            self.manifest["toolsets"] =
                json!({"notes": {"toolset": "filesystem_project", "settings": {"prefix": "n_"}}});
            self.add("notes", "n_", &[&READING[..], &WRITING].concat(), Value::Null);
        }
        if chance.percent(40) {
            self.add("pocket_calculator", "", &["calculator"], Value::Null);
        }
        if chance.percent(40) {
            self.add("stderr", "", &["write_stderr"], Value::Null);
        }
        for tool in WRITING {
            let is_free = self.creator.tools.iter().all(|held| held.own != tool);
            if is_free && chance.percent(40) {
                self.creator.tools.push(held("filesystem_project", tool.to_owned(), tool, true));
            }
        }
    }

    fn add_files(&mut self, toolset: &str, prefix: &str, chance: &mut Chance) {
        let mut settings = Map::new();
        if !prefix.is_empty() {
            settings.insert("prefix".to_owned(), json!(prefix));
        }
        let read_only = chance.percent(20);
        if read_only {
            settings.insert("read_only".to_owned(), json!(true));
        }
        let tools = if read_only { READING.to_vec() } else { [&READING[..], &WRITING].concat() };
        let settings = if settings.is_empty() { Value::Null } else { Value::Object(settings) };
        self.add(toolset, prefix, &tools, settings);
    }

    fn add(&mut self, toolset: &str, prefix: &str, tools: &[&'static str], settings: Value) {
        self.toolsets.push((toolset.to_owned(), settings));
        let tools = tools.iter().map(|base| held(toolset, format!("{prefix}{base}"), base, false));
        self.creator.tools.extend(tools);
    }

    /// Gives some tools aliases and demands. An alias may be a name that another alias made free.
    fn rename(&mut self, chance: &mut Chance) {
        for index in 0..self.creator.tools.len() {
            if chance.percent(50) {
                let alias = *chance.one_of(&ALIASES);
                let is_taken = |tool: &HeldTool| tool.called == alias;
                if !self.creator.tools.iter().any(is_taken) {
                    self.creator.tools[index].called = alias.to_owned();
                }
            }
            if chance.percent(20) {
                self.creator.tools[index].demanded = Some(*chance.one_of(&[Access::Write, Access::Admin]));
            }
        }
    }

    fn add_rules(&mut self, chance: &mut Chance) {
        for _ in 0..chance.between(1, 4) {
            let level = chance.weighted(&[(4, Level::Blocked), (3, Level::Ask), (2, Level::PreApproved)]);
            let pattern = self.pattern(chance);
            if self.creator.rules.iter().all(|(known, _)| *known != pattern) {
                self.creator.rules.push((pattern, level));
            }
        }
        for _ in 0..chance.below(3) {
            let pattern = self.pattern(chance);
            // Nothing could be created at all.
            if pattern != "*" && !self.creator.manual_only.contains(&pattern) {
                self.creator.manual_only.push(pattern);
            }
        }
    }

    fn pattern(&self, chance: &mut Chance) -> String {
        let tool = chance.one_of(&self.creator.tools);
        match chance.below(6) {
            0..=2 => tool.called.clone(),
            3 => format!("{}.{}", tool.toolset, tool.own),
            _ => (*chance.one_of(&GLOBS)).to_owned(),
        }
    }

    /// What a creator asks for: some of the toolsets and single tools of `main`.
    pub(crate) fn wanted(&self, name: &str, chance: &mut Chance) -> Value {
        let toolsets = self.toolsets.iter().map(|(name, _)| name).filter(|_| chance.percent(75));
        let toolsets: Vec<&String> = toolsets.collect();
        let has_files = toolsets.iter().any(|name| *name == "filesystem_project");
        // Single tools of one toolset are held together or not at all.
        let alone = self.creator.tools.iter().filter(|tool| tool.alone && !has_files);
        let alone: Vec<&String> = alone.map(|tool| &tool.own).collect();
        let tools = if chance.percent(70) { alone } else { Vec::new() };
        json!({"name": name, "instructions": "Help.", "toolsets": toolsets, "tools": tools})
    }

    pub(crate) fn write(&self, folder: &Path) {
        fs::write(folder.join("project.json"), self.manifest.to_string()).unwrap();
        fs::write(folder.join("a.txt"), "a").unwrap();
        fs::write(folder.join("main.agent"), self.text()).unwrap();
    }

    /// The agent file; JSON is YAML too.
    fn text(&self) -> String {
        let toolset = |(name, settings): &(String, Value)| match settings {
            Value::Null => json!(name),
            settings => json!({ name: settings }),
        };
        let rules = self.creator.rules.iter();
        let header = json!({
            "name": "main",
            "toolsets": self.toolsets.iter().map(toolset).collect::<Vec<_>>(),
            "tools": self.creator.tools.iter().filter_map(entry).collect::<Vec<_>>(),
            "approval": rules.map(|(pattern, level)| (pattern.clone(), json!(level.as_str()))).collect::<Map<_, _>>(),
            "manual_only": self.creator.manual_only,
        });
        format!("---\n{header}\n---\nYou are main.\n")
    }
}

impl fmt::Display for RandomProject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.manifest, self.text())
    }
}

fn held(toolset: &str, own: String, base: &'static str, alone: bool) -> HeldTool {
    HeldTool { toolset: toolset.to_owned(), called: own.clone(), own, base, demanded: None, alone }
}

/// How a tool is listed under `tools`, where it is listed there.
fn entry(tool: &HeldTool) -> Option<Value> {
    let is_changed = tool.called != tool.own || tool.demanded.is_some();
    if !tool.alone && !is_changed {
        return None;
    }
    let mut entry = json!({"name": tool.own});
    if tool.called != tool.own {
        entry["alias"] = json!(tool.called);
    }
    if let Some(demanded) = tool.demanded {
        entry["access"] = json!(if demanded == Access::Write { "write" } else { "admin" });
    }
    Some(entry)
}
