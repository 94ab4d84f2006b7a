//! Plugins of a program: settings that are sections here, and the tools that each brings along.

use super::ProgramReader;
use super::parts::{boolean, field, table, text};
use super::tools::{OF_DESCRIPTORS, name_of};
use crate::document::{Node, NodeContent, TableField};

/// A plugin that every program can have.
struct Plugin {
    name: &'static str,
    /// The section that means the same.
    section: Option<&'static str>,
    /// The tools that it brings along.
    tools: &'static [&'static str],
    /// The key that can turn these off.
    switch: Option<&'static str>,
}

const PLUGINS: [Plugin; 6] = [
    Plugin {
        name: "file_descriptor",
        section: Some("file_descriptor"),
        tools: &OF_DESCRIPTORS,
        switch: Some("enabled"),
    },
    Plugin { name: "message_id", section: None, tools: &["goto"], switch: Some("enable_goto") },
    Plugin { name: "spawn", section: Some("linked_programs"), tools: &["spawn"], switch: None },
    Plugin { name: "stderr", section: None, tools: &["write_stderr"], switch: None },
    Plugin { name: "preload_files", section: Some("preload"), tools: &[], switch: None },
    Plugin { name: "env_info", section: Some("env_info"), tools: &[], switch: None },
];

impl ProgramReader<'_> {
    /// Returns the program with the sections that its plugins mean.
    pub(super) fn with_plugins_as_sections(&mut self, program: &Node) -> Node {
        let mut program = program.clone();
        let Some(plugins) = program.field("plugins").map(|plugins| plugins.value.clone()) else {
            return program;
        };
        self.notice_unknown("plugins", &plugins, &PLUGINS.map(|plugin| plugin.name));
        for plugin in &PLUGINS {
            let Some(found) = plugins.field(plugin.name) else { continue };
            match (&found.value.content, plugin.section) {
                (NodeContent::Null, _) => {}
                (NodeContent::Table(_), None) => self.check_keys(plugin, &found.value),
                (NodeContent::Table(_), Some(key)) => {
                    let value = self.section_of(plugin, &found.value);
                    self.add_section(&mut program, field(key, &found.span, value));
                }
                _ => self.refuse(&found.value, format!("`plugins.{}` must be a table", plugin.name)),
            }
        }
        program
    }

    fn check_keys(&mut self, plugin: &Plugin, settings: &Node) {
        let known: Vec<&str> = plugin.switch.into_iter().chain(["tools"]).collect();
        self.notice_unknown(&format!("plugins.{}", plugin.name), settings, &known);
    }

    /// The settings of a plugin, as its section has them.
    fn section_of(&mut self, plugin: &Plugin, settings: &Node) -> Node {
        match plugin.name {
            "spawn" => self.links_of(settings),
            "file_descriptor" => {
                let mut fields = fields_of(settings);
                fields.retain(|field| field.name != "tools");
                if settings.field("enabled").is_none() {
                    fields.push(field("enabled", &settings.span, boolean(&settings.span, true)));
                }
                table(&settings.span, fields)
            }
            _ => settings.clone(),
        }
    }

    /// Returns the links with the descriptions that are listed apart from them.
    fn links_of(&mut self, settings: &Node) -> Node {
        const LINKS: &str = "linked_programs";
        const DESCRIPTIONS: &str = "linked_program_descriptions";
        self.notice_unknown("plugins.spawn", settings, &[LINKS, DESCRIPTIONS, "tools"]);
        let descriptions = settings.field(DESCRIPTIONS).map(|found| &found.value);
        let described = |link: TableField| match descriptions.and_then(|all| all.field(&link.name)) {
            Some(description) if link.value.text().is_some() => {
                let path = field("path", &link.value.span, link.value.clone());
                let description = field("description", &description.span, description.value.clone());
                TableField { value: table(&link.value.span, vec![path, description]), ..link }
            }
            _ => link,
        };
        match settings.field(LINKS).map(|found| &found.value) {
            Some(links) if matches!(links.content, NodeContent::Table(_)) => {
                table(&links.span, fields_of(links).into_iter().map(described).collect())
            }
            Some(links) if links.content != NodeContent::Null => links.clone(),
            _ => table(&settings.span, Vec::new()),
        }
    }

    /// What a plugin says holds, and not an older section beside it.
    fn add_section(&mut self, program: &mut Node, section: TableField) {
        if let Some(older) = program.field(&section.name) {
            let message = format!("`{}` is ignored, because a plugin sets the same", older.name);
            self.notice(older, message);
        }
        if let Some(fields) = program.fields_mut() {
            fields.retain(|field| field.name != section.name);
            fields.push(section);
        }
    }

    /// Adds the tools of plugins to those that the program lists.
    pub(super) fn tools_of_plugins(&mut self, plugins: &Node) {
        for plugin in &PLUGINS {
            let Some(found) = plugins.field(plugin.name) else { continue };
            let is_off = |key| matches!(found.value.field(key), Some(off) if off.value.content == NodeContent::Bool(false));
            if !matches!(found.value.content, NodeContent::Table(_)) || plugin.switch.is_some_and(is_off) {
                continue;
            }
            match found.value.field("tools").map(|tools| &tools.value) {
                Some(Node { content: NodeContent::List(items), .. }) if !items.is_empty() => {
                    items.iter().for_each(|item| self.chosen_tool(plugin, item));
                }
                Some(other) if !matches!(other.content, NodeContent::Null | NodeContent::List(_)) => {
                    self.refuse(other, format!("`plugins.{}.tools` must be a list", plugin.name));
                }
                _ => plugin.tools.iter().for_each(|tool| self.add_tool(text(&found.span, tool))),
            }
        }
    }

    /// A tool that a program chooses from those of a plugin.
    fn chosen_tool(&mut self, plugin: &Plugin, item: &Node) {
        match name_of(item) {
            Some(name) if plugin.tools.contains(&name) => self.add_tool(item.clone()),
            name => {
                let name = name.unwrap_or_default();
                self.refuse(item, format!("the plugin `{}` has no tool `{name}`", plugin.name));
            }
        }
    }

    /// A tool is offered once, as it was last described.
    fn add_tool(&mut self, tool: Node) {
        let listed = self.tools.iter_mut().find(|listed| name_of(listed) == name_of(&tool));
        match listed {
            Some(listed) if tool.text().is_none() => *listed = tool,
            Some(_) => {}
            None => self.tools.push(tool),
        }
    }
}

fn fields_of(node: &Node) -> Vec<TableField> {
    match &node.content {
        NodeContent::Table(fields) => fields.clone(),
        _ => Vec::new(),
    }
}
