//! What a program can do: its tools, servers, links, surroundings and descriptors.

use super::Reading;
use super::parts::{boolean, field, list, table, text};
use crate::diagnostic::Diagnostic;
use crate::document::{Content, Field, Node};
use crate::preamble::is_fact;

/// Tools that work on file descriptors.
const OF_DESCRIPTORS: [&str; 2] = ["read_fd", "fd_to_file"];

impl Reading<'_> {
    /// Reads the tools, and says whether one of them works on file descriptors.
    pub(super) fn tools(&mut self, tools: &Node) -> bool {
        self.notice_unknown("tools", tools, &["builtin", "enabled", "mcp"]);
        if let (Some(_), Some(enabled)) = (tools.field("builtin"), tools.field("enabled")) {
            let message = "`builtin` and `enabled` are the same key, written twice".to_owned();
            self.refuse(&enabled.value, message);
        }
        if let Some(found) = tools.field("mcp") {
            self.selection(found);
        }
        let Some(found) = tools.field("builtin").or_else(|| tools.field("enabled")) else { return false };
        let Content::List(items) = &found.value.content else {
            self.refuse(&found.value, format!("`tools.{}` must be a list", found.name));
            return false;
        };
        let listed: Vec<Node> = items.iter().map(|item| self.tool(item)).collect();
        self.header.push(field("tools", &found.place, list(&found.value.place, listed)));
        items.iter().filter_map(name_of).any(|name| OF_DESCRIPTORS.contains(&name))
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
        self.out.push(Diagnostic::at(self.source, &item.place, message).notice());
        let mut fields = match &item.content {
            Content::Table(fields) => fields.clone(),
            _ => Vec::new(),
        };
        fields.retain(|field| !matches!(field.name.as_str(), "name" | "param_descriptions"));
        if !fields.iter().any(|field| field.name == "alias") {
            fields.push(field("alias", &item.place, text(&item.place, "list_dir")));
        }
        fields.insert(0, field("name", &item.place, text(&item.place, "list_files")));
        table(&item.place, fields)
    }

    /// Which tools of MCP servers are wanted: `all`, or a list of names.
    fn selection(&mut self, found: &Field) {
        let Content::Table(servers) = &found.value.content else {
            return self.refuse(&found.value, "`tools.mcp` must be a table of servers".to_owned());
        };
        for server in servers {
            let is_right = match &server.value.content {
                Content::Text(word) => word == "all",
                Content::List(items) => {
                    items.iter().all(|item| name_of(item).is_some_and(|name| !name.is_empty()))
                }
                _ => false,
            };
            if !is_right {
                let message = format!("`tools.mcp.{}` must be `all` or a list of tools", server.name);
                self.refuse(&server.value, message);
            }
        }
        self.notice(found, "MCP servers are not available yet: `tools.mcp` is read and checked");
    }

    pub(super) fn mcp(&mut self, mcp: &Node) {
        self.notice_unknown("mcp", mcp, &["config_path", "servers"]);
        self.text_of(mcp, "config_path");
        if let Some(servers) = mcp.field("servers") {
            let is_table = |node: &Node| matches!(node.content, Content::Table(_));
            let is_right = match &servers.value.content {
                Content::Table(fields) => fields.iter().all(|server| is_table(&server.value)),
                _ => false,
            };
            if !is_right {
                self.refuse(
                    &servers.value,
                    "`mcp.servers` must be a table of servers with settings".to_owned(),
                );
            }
        }
        if let Content::Table(fields) = &mcp.content
            && let Some(first) = fields.first()
        {
            self.notice(first, "MCP servers are not available yet: `mcp` is read and checked");
        }
    }

    /// Links: a path, or a path with a description.
    pub(super) fn linked_programs(&mut self, links: &Node) {
        let Content::Table(fields) = &links.content else { return };
        let mut programs = Vec::new();
        for link in fields {
            let path = match &link.value.content {
                Content::Text(_) => Some(&link.value),
                _ => link.value.field("path").map(|path| &path.value),
            };
            let Some(path) = path.filter(|path| matches!(path.content, Content::Text(_))) else {
                let message =
                    format!("`linked_programs.{}` must be a path, or a table with `path`", link.name);
                self.refuse(&link.value, message);
                continue;
            };
            if matches!(link.value.content, Content::Table(_)) {
                self.notice_unknown("linked_programs", &link.value, &["path", "description"]);
            }
            let name = field("name", &link.place, text(&link.place, &link.name));
            let file = field("file", &path.place, path.clone());
            let description = link.value.field("description").cloned();
            let program = [name, file].into_iter().chain(description).collect();
            programs.push(table(&link.place, program));
        }
        self.header.push(field("programs", &links.place, list(&links.place, programs)));
    }

    /// Facts that are known here, and the rest as it stands.
    pub(super) fn environment(&mut self, section: &Node) {
        let Content::Table(fields) = &section.content else { return };
        let mut kept = Vec::new();
        for found in fields {
            match (found.name.as_str(), &found.value.content) {
                ("variables", Content::List(names)) => {
                    let names = names.iter().filter(|name| self.is_known_fact(name)).cloned().collect();
                    kept.push(field("variables", &found.place, list(&found.value.place, names)));
                }
                (key, _) if KEYS.contains(&key) => kept.push(found.clone()),
                (_, Content::Text(_)) => kept.push(found.clone()),
                (key, _) => self.notice(found, format!("`env_info.{key}` is no text, and passed over")),
            }
        }
        self.header.push(field("env_info", &section.place, table(&section.place, kept)));
    }

    fn is_known_fact(&mut self, name: &Node) -> bool {
        let Content::Text(written) = &name.content else { return true };
        let is_known = is_fact(written);
        if !is_known {
            let message = format!("the fact `{written}` is unknown and passed over");
            self.out.push(Diagnostic::at(self.source, &name.place, message).notice());
        }
        is_known
    }

    /// A program that lists a tool for file descriptors has them, and one that has them can read them.
    pub(super) fn descriptors(&mut self, node: &Node, has_tools: bool) {
        const KEY: &str = "file_descriptor";
        let names = [
            ("enabled", "enabled"),
            ("max_direct_output_chars", "limit"),
            ("default_page_size", "page_size"),
            ("max_input_chars", "input_limit"),
            ("page_user_input", "page_user_input"),
            ("enable_references", "references"),
        ];
        let Some(found) = node.field(KEY) else { return };
        if !matches!(found.value.content, Content::Table(_)) {
            return self.refuse(&found.value, format!("`{KEY}` must be a table"));
        }
        self.notice_unknown(KEY, &found.value, &names.map(|(written, _)| written));
        let passed = names.iter().filter_map(|(written, key)| {
            let found = found.value.field(written)?;
            Some(field(key, &found.place, found.value.clone()))
        });
        let mut fields: Vec<Field> = passed.collect();
        for (key, usual) in [("enabled", has_tools), ("references", false)] {
            if !fields.iter().any(|field| field.name == key) {
                fields.push(field(key, &found.place, boolean(&found.place, usual)));
            }
        }
        let is_enabled =
            fields.iter().any(|field| field.name == "enabled" && field.value.content == Content::Bool(true));
        // An agent that has tools can read what they answer.
        if is_enabled && !self.header.iter().any(|field| field.name == "tools") {
            self.add_reader(found);
        }
        self.header.push(field("file_descriptors", &found.place, table(&found.place, fields)));
    }

    fn add_reader(&mut self, found: &Field) {
        self.notice(found, "`read_fd` is added to the tools, since file descriptors are enabled");
        let reader = text(&found.place, OF_DESCRIPTORS[0]);
        self.header.push(field("tools", &found.place, list(&found.place, vec![reader])));
    }
}

/// The keys of `env_info` that are no lines of the author.
const KEYS: [&str; 6] =
    ["variables", "env_vars", "commands", "file_map_root", "file_map_max_files", "file_map_show_size"];

/// The name of a tool, as it stands or in a table.
fn name_of(item: &Node) -> Option<&str> {
    match &item.content {
        Content::Text(name) => Some(name),
        Content::Table(_) => match &item.field("name")?.value.content {
            Content::Text(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
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
