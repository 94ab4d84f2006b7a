//! Checks what a manifest says about the world outside: MCP servers and providers.

use llm_do_core::{Name, nearest};

use crate::catalog::Catalog;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{entry_span, span_of};
use crate::format::header_problem;
use crate::format::manifest::ManifestFile;
use crate::format::manifest::{McpServer, Provider};

/// Checks servers and providers of a manifest.
pub(crate) fn check(file: &ManifestFile, catalog: &dyn Catalog, out: &mut Diagnostics) {
    for (name, server) in &file.manifest.mcp_servers {
        if out.is_full() {
            return;
        }
        let span = entry_span(&file.node, "mcp_servers", name);
        for problem in server_problems(name, server, catalog) {
            out.push(Diagnostic::error_at(&file.source, &span, format!("MCP server `{name}`: {problem}")));
        }
    }
    if !file.manifest.mcp_servers.is_empty() {
        let span = span_of(&file.node, "mcp_servers");
        out.push(Diagnostic::without_effect(&file.source, &span, "mcp_servers"));
    }
    for (name, provider) in &file.manifest.providers {
        if out.is_full() {
            return;
        }
        let span = entry_span(&file.node, "providers", name);
        for problem in provider_problems(name, provider, catalog) {
            out.push(Diagnostic::error_at(&file.source, &span, format!("provider `{name}`: {problem}")));
        }
        for problem in provider.headers.iter().filter_map(|(name, value)| header_problem(name, value)) {
            let message = format!("provider `{name}`: {}", problem.message);
            out.push(Diagnostic::error_at(&file.source, &span, message).with_hint(problem.hint));
        }
    }
}

fn server_problems(name: &str, server: &McpServer, catalog: &dyn Catalog) -> Vec<String> {
    let mut problems = Vec::new();
    if !Name::is_valid(name) {
        problems.push("the name may contain only letters, digits, `_` and `-`".to_owned());
    }
    match (&server.command, &server.url) {
        (Some(_), Some(_)) => problems.push("`command` and `url` cannot be used together".to_owned()),
        (None, None) => problems.push("it needs a `command` to start, or a `url`".to_owned()),
        (Some(command), None) if command.trim().is_empty() => problems.push("`command` is empty".to_owned()),
        (Some(command), None) if !catalog.has_program(command) => {
            problems.push(format!("the program `{command}` was not found"));
        }
        (None, Some(url)) if !is_address(url) => problems.push(format!("`{url}` is not an HTTP address")),
        _ => {}
    }
    if server.command.is_none() && !(server.args.is_empty() && server.env.is_empty() && server.cwd.is_none())
    {
        problems.push("`args`, `env` and `cwd` belong to a `command`".to_owned());
    }
    if server.url.is_none() && !server.headers.is_empty() {
        problems.push("`headers` belong to a `url`".to_owned());
    }
    problems
}

fn provider_problems(name: &str, provider: &Provider, catalog: &dyn Catalog) -> Vec<String> {
    let mut problems = Vec::new();
    let protocols = catalog.protocols();
    if catalog.providers().contains(&name) {
        problems
            .push("this is the name of a built-in provider, or of one in your own configuration".to_owned());
    }
    if name.is_empty() || name.contains([':', '/', ' ']) {
        problems.push("a provider's name cannot contain `:`, `/` or spaces".to_owned());
    }
    if !protocols.is_empty() && !protocols.contains(&provider.api.as_str()) {
        let meant = nearest(&provider.api, protocols.iter().copied());
        let hint = meant.map_or_else(
            || format!("expected one of {}", protocols.join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        problems.push(format!("`api` is `{}`; {hint}", provider.api));
    }
    if !is_address(&provider.base_url) {
        problems.push(format!("`base_url` is `{}`, expected an http address", provider.base_url));
    } else if has_user(&provider.base_url) {
        problems.push("`base_url` holds a user name or password; keys come from the environment".to_owned());
    }
    if provider.api_key_env.as_deref().is_some_and(|variable| !is_variable(variable)) {
        // What was written may be the key itself, so it is not repeated.
        problems.push("`api_key_env` must be the name of a variable, not the key itself".to_owned());
    }
    problems
}

/// Returns whether an address has a part before `@`, which servers take for a user.
fn has_user(address: &str) -> bool {
    let host = address.split_once("://").map_or(address, |(_, rest)| rest);
    host.split(['/', '?', '#']).next().is_some_and(|host| host.contains('@'))
}

fn is_variable(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_part) && name.len() <= 200 && name.starts_with(|c: char| !c.is_ascii_digit())
}

fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(char::is_whitespace))
}
