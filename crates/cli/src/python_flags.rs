//! Hints for flags of the Python programs, from the table of their names.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use llm_do_project::{PythonName, PythonNameKind, find_python_name};

/// Returns what replaces a flag that is unknown here and was one of a Python program.
pub(crate) fn hint(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    let flag = argument.split('=').next().unwrap_or_default();
    find_python_name(flag, &[PythonNameKind::Flag]).map(PythonName::hint)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use clap::{CommandFactory, Parser};
    use llm_do::project::{StandardCatalog, ToolsetCatalog};
    use llm_do_project::{header_schema, manifest_schema, python_names};
    use serde_json::Value;

    use crate::arguments::Cli;

    /// The code spans of a text, each with the words before it.
    fn spans(text: &str) -> Vec<(&str, &str)> {
        let parts: Vec<&str> = text.split('`').collect();
        parts.chunks_exact(2).map(|pair| (pair[0].trim(), pair[1])).collect()
    }

    fn flags() -> HashSet<String> {
        let command = Cli::command();
        let arguments = command.get_subcommands().flat_map(clap::Command::get_arguments);
        let spellings = |argument: &clap::Arg| {
            let long = argument.get_long().map(|long| format!("--{long}"));
            // `-v` can be repeated.
            let short = argument.get_short().into_iter();
            let short =
                short.flat_map(|c| (1..=3).map(move |count| format!("-{}", c.to_string().repeat(count))));
            long.into_iter().chain(short).collect::<Vec<_>>()
        };
        arguments.flat_map(spellings).collect()
    }

    /// Returns whether a document of this schema can have a key, as `section.key` or `list[].key`.
    fn has_key(schema: &Value, path: &str) -> bool {
        let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
        let below = |schema: &Value| {
            let property = &schema["properties"][first.trim_end_matches("[]")];
            let inner = if first.ends_with("[]") { &property["items"] } else { property };
            !inner.is_null() && rest.is_none_or(|rest| has_key(inner, rest))
        };
        let forms = schema["anyOf"].as_array().into_iter().chain(schema["oneOf"].as_array()).flatten();
        below(schema) || forms.into_iter().any(|form| has_key(form, path))
    }

    #[test]
    fn what_replaces_a_python_name_exists() {
        let (flags, command) = (flags(), Cli::command());
        let commands: HashSet<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        let catalog = StandardCatalog::new(".");
        let (tools, toolsets) = (catalog.lone_tools(), catalog.toolsets());
        let (agent, manifest) = (header_schema(), manifest_schema());
        let mut wrong = Vec::new();
        for row in python_names() {
            for (before, code) in spans(&row.now) {
                let exists = match code.split_whitespace().collect::<Vec<_>>()[..] {
                    ["llm-do", name, ..] => commands.contains(name),
                    _ if code.starts_with("--") => flags.contains(code.split(' ').next().unwrap_or_default()),
                    _ if before.ends_with("flag") => flags.contains(code),
                    _ if before.ends_with("agent key") => has_key(&agent, code),
                    _ if before.ends_with("manifest key") => has_key(&manifest, code),
                    _ if before.ends_with("toolset") => toolsets.contains(&code),
                    _ if before.ends_with("tool") || before.ends_with("tools") => tools.contains(&code),
                    _ => true,
                };
                if !exists {
                    wrong.push(format!("{}: {before} `{code}`", row.name));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn examples_of_the_command_line_can_be_typed() {
        for row in python_names().iter().filter(|row| row.example.starts_with("llm-do ")) {
            let typed = row.example.split(" < ").next().unwrap_or_default();
            let message = shlex::split(typed).unwrap_or_default();
            assert!(Cli::try_parse_from(message).is_ok(), "{}: {typed}", row.name);
        }
    }
}
