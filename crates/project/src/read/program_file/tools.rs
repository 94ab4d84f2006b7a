//! What a program can do: its tools, servers, links, surroundings and descriptors.

use super::ProgramReader;
use super::parts::{boolean, field, list, table, text};
use crate::diagnostic::Diagnostic;
use crate::document::{Node, NodeContent, TableField};
use crate::format::facts::Fact;

/// Tools that work on file descriptors.
pub(super) const OF_DESCRIPTORS: [&str; 2] = ["read_fd", "fd_to_file"];

impl ProgramReader<'_> {
    pub(super) fn tools(&mut self, tools: &Node) {
        self.notice_unknown("tools", tools, &TOOLS);
        if let (Some(_), Some(enabled)) = (tools.field("builtin"), tools.field("enabled")) {
            let message = "`builtin` and `enabled` are the same key, written twice".to_owned();
            self.refuse(&enabled.value, message);
        }
        if let Some(found) = tools.field("mcp").filter(|found| found.value.content != NodeContent::Null) {
            self.selection("tools.mcp", found);
        }
        let found = tools.field("builtin").or_else(|| tools.field("enabled"));
        let items = match found.map(|found| (found, &found.value.content)) {
            None | Some((_, NodeContent::Null)) => Vec::new(),
            Some((_, NodeContent::List(items))) => items.clone(),
            Some((found, _)) => {
                return self.refuse(&found.value, format!("`tools.{}` must be a list", found.name));
            }
        };
        let items = self
            .section(tools, "aliases", |reading, aliases| reading.aliased(&items, aliases))
            .unwrap_or(items);
        self.tools = items.iter().map(|item| self.tool(item)).collect();
    }

    /// Returns the tools with the aliases that are listed apart from them.
    fn aliased(&mut self, items: &[Node], aliases: &Node) -> Vec<Node> {
        let NodeContent::Table(aliases) = &aliases.content else { return items.to_vec() };
        let mut items = items.to_vec();
        for alias in aliases {
            let Some(tool) = alias.value.text() else {
                self.refuse(
                    &alias.value,
                    format!("`tools.aliases.{}` must be the name of a tool", alias.name),
                );
                continue;
            };
            let is_meant = |item: &&mut Node| name_of(item) == Some(tool);
            match items.iter_mut().find(is_meant).filter(|item| item.field("alias").is_none()) {
                Some(item) => *item = with_alias(item, alias),
                None => {
                    let message = format!(
                        "`tools.aliases.{}` is ignored: `{tool}` is not listed, or already has an alias",
                        alias.name
                    );
                    self.notice(alias, message);
                }
            }
        }
        items
    }

    /// A tool under the name that it has here.
    fn tool(&mut self, item: &Node) -> Node {
        match name_of(item) {
            Some("list_dir") => self.list_dir(item),
            Some("read_file") => renamed_parameter(item, "file_path", "path"),
            _ => item.clone(),
        }
    }

    /// The tool `list_files` does what `list_dir` did, and takes other parameters.
    fn list_dir(&mut self, item: &Node) -> Node {
        let message = "`list_dir` is the tool `list_files`, which takes a pattern of paths";
        self.out.push(Diagnostic::notice_at(self.source, &item.span, message));
        let mut fields = match &item.content {
            NodeContent::Table(fields) => fields.clone(),
            _ => Vec::new(),
        };
        fields.retain(|field| !matches!(field.name.as_str(), "name" | "param_descriptions"));
        if !fields.iter().any(|field| field.name == "alias") {
            fields.push(field("alias", &item.span, text(&item.span, "list_dir")));
        }
        fields.insert(0, field("name", &item.span, text(&item.span, "list_files")));
        table(&item.span, fields)
    }

    /// Which tools of MCP servers are wanted: `all`, names, or names with what is said of each.
    fn selection(&mut self, key: &str, found: &TableField) {
        let NodeContent::Table(servers) = &found.value.content else {
            return self.refuse(&found.value, format!("`{key}` must be a table of servers"));
        };
        for server in servers {
            let is_right = match &server.value.content {
                NodeContent::Text(word) => word == "all",
                NodeContent::List(items) => {
                    items.iter().all(|item| name_of(item).is_some_and(|name| !name.is_empty()))
                }
                NodeContent::Table(tools) => {
                    tools.iter().all(|tool| matches!(tool.value.content, NodeContent::Table(_)))
                }
                _ => false,
            };
            if !is_right {
                let message = format!("`{key}.{}` must be `all` or a list of tools", server.name);
                self.refuse(&server.value, message);
            }
        }
        self.notice(
            found,
            format!("MCP servers are not supported yet: `{key}` is checked and has no effect"),
        );
    }

    pub(super) fn mcp(&mut self, mcp: &Node) {
        self.notice_unknown("mcp", mcp, &["config_path", "servers", "tools"]);
        if let Some(found) = mcp.field("tools").filter(|found| found.value.content != NodeContent::Null) {
            self.selection("mcp.tools", found);
        }
        self.text_of(mcp, "config_path");
        if let Some(servers) = mcp.field("servers").filter(|found| found.value.content != NodeContent::Null) {
            let is_table = |node: &Node| matches!(node.content, NodeContent::Table(_));
            let is_right = match &servers.value.content {
                NodeContent::Table(fields) => fields.iter().all(|server| is_table(&server.value)),
                _ => false,
            };
            if !is_right {
                self.refuse(
                    &servers.value,
                    "`mcp.servers` must be a table of servers with settings".to_owned(),
                );
            }
        }
        if let NodeContent::Table(fields) = &mcp.content
            && let Some(first) = fields.first()
        {
            self.notice(first, "MCP servers are not supported yet: `mcp` is checked and has no effect");
        }
    }

    /// Keeps the facts that are known here, and everything else unchanged.
    pub(super) fn environment(&mut self, section: &Node) {
        let NodeContent::Table(fields) = &section.content else { return };
        let mut kept = Vec::new();
        for found in fields {
            match (found.name.as_str(), &found.value.content) {
                ("variables", NodeContent::List(names)) => {
                    let names = names.iter().filter(|name| self.is_known_fact(name)).cloned().collect();
                    kept.push(field("variables", &found.span, list(&found.value.span, names)));
                }
                (key, _) if KEYS.contains(&key) => kept.push(found.clone()),
                (_, NodeContent::Text(_)) => kept.push(found.clone()),
                (key, _) => self.notice(found, format!("`env_info.{key}` is not text and is ignored")),
            }
        }
        self.header.push(field("env_info", &section.span, table(&section.span, kept)));
    }

    fn is_known_fact(&mut self, name: &Node) -> bool {
        let NodeContent::Text(written) = &name.content else { return true };
        let is_known = Fact::from_name(written).is_some();
        if !is_known {
            let message = format!("the fact `{written}` is unknown and is ignored");
            self.out.push(Diagnostic::notice_at(self.source, &name.span, message));
        }
        is_known
    }

    /// A program that lists a tool for file descriptors has them, and one that has them can read them.
    pub(super) fn descriptors(&mut self, section: &Node) {
        let names = [
            ("enabled", "enabled"),
            ("max_direct_output_chars", "limit"),
            ("default_page_size", "page_size"),
            ("max_input_chars", "input_limit"),
            ("page_user_input", "page_user_input"),
            ("enable_references", "references"),
        ];
        self.notice_unknown("file_descriptor", section, &names.map(|(written, _)| written));
        let passed = names.iter().filter_map(|(written, key)| {
            let found = section.field(written)?;
            Some(field(key, &found.span, found.value.clone()))
        });
        let mut fields: Vec<TableField> = passed.collect();
        let has_tools = self.tools.iter().filter_map(name_of).any(|name| OF_DESCRIPTORS.contains(&name));
        for (key, usual) in [("enabled", has_tools), ("references", false)] {
            if !fields.iter().any(|field| field.name == key) {
                fields.push(field(key, &section.span, boolean(&section.span, usual)));
            }
        }
        let is_enabled = fields
            .iter()
            .any(|field| field.name == "enabled" && field.value.content == NodeContent::Bool(true));
        // An agent that has tools can read what they answer.
        if is_enabled && self.tools.is_empty() {
            self.add_reader(section);
        }
        self.header.push(field("file_descriptors", &section.span, table(&section.span, fields)));
    }

    fn add_reader(&mut self, section: &Node) {
        let message = "`read_fd` is added to the tools, since file descriptors are enabled";
        self.out.push(Diagnostic::notice_at(self.source, &section.span, message));
        self.tools.push(text(&section.span, OF_DESCRIPTORS[0]));
    }
}

/// The keys of `tools`; some of them are read with the model.
const TOOLS: [&str; 6] = ["builtin", "enabled", "mcp", "aliases", "anthropic", "openai"];

/// The keys of `env_info` that are not lines of the author.
const KEYS: [&str; 6] =
    ["variables", "env_vars", "commands", "file_map_root", "file_map_max_files", "file_map_show_size"];

/// Returns the name of a tool, written alone or in a table.
pub(super) fn name_of(item: &Node) -> Option<&str> {
    match &item.content {
        NodeContent::Text(name) => Some(name),
        NodeContent::Table(_) => match &item.field("name")?.value.content {
            NodeContent::Text(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// The same entry under another name.
fn with_alias(item: &Node, alias: &TableField) -> Node {
    let mut fields = match &item.content {
        NodeContent::Table(fields) => fields.clone(),
        _ => vec![field("name", &item.span, item.clone())],
    };
    fields.push(field("alias", &alias.span, text(&alias.span, &alias.name)));
    table(&item.span, fields)
}

/// The same entry with a parameter under the name that it has here.
fn renamed_parameter(item: &Node, old: &str, new: &str) -> Node {
    let mut item = item.clone();
    let fields = item.fields_mut().into_iter().flatten();
    let described = fields.filter(|field| field.name == "param_descriptions");
    let parameters = described.filter_map(|field| field.value.fields_mut()).flatten();
    parameters
        .filter(|parameter| parameter.name == old)
        .for_each(|parameter| parameter.name = new.to_owned());
    item
}
