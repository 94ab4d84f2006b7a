//! Commands that a person types after a slash.

use crate::completion::Command;

/// Every command, in the order of the help.
pub(crate) const SLASH_COMMANDS: &[Command] = &[
    Command { name: "/help", description: "keys and commands" },
    Command {
        name: "/model",
        description: "shows the model and offers others; NAME: answers come from this model from now on",
    },
    Command { name: "/approvals", description: "what you allowed for this session" },
    Command { name: "/revoke", description: "N: takes back what you allowed" },
    Command { name: "/usage", description: "requests, tokens and cost so far, by model" },
    Command { name: "/tree", description: "the tree of calls on the whole screen (Ctrl-T)" },
    Command { name: "/call", description: "NAME [JSON]: calls an agent or tool beside the conversation" },
    Command { name: "/clear", description: "begins a new conversation on an empty screen" },
    Command {
        name: "/fork",
        description: "goes on in a copy of this conversation; N: back to conversation N",
    },
    Command { name: "/goto", description: "N: back to before your message N; alone: lists them" },
    Command { name: "/title", description: "TEXT: names this chat in `llm-do chats`" },
    Command { name: "/save", description: "FILE: writes the conversation as Markdown, or as JSON (.json)" },
    Command { name: "/quit", description: "leaves (also exit, Ctrl-D, or Ctrl-C twice)" },
];

/// Every key that is not plain editing, and what it does.
const KEYS: &[(&str, &str)] = &[
    ("Enter", "sends"),
    ("Shift-Enter", "new line (also Alt-Enter, Ctrl-J)"),
    ("↑ ↓", "moves; at the first and last row through what you sent before"),
    ("@", "completes a file, which is attached"),
    ("Esc", "stops the turn"),
    ("Ctrl-C", "stops the turn; twice leaves"),
    ("Ctrl-T", "the tree of calls"),
    ("Ctrl-O", "shows thoughts, arguments and results at length, or folds them"),
    ("Ctrl-L", "paints the screen anew"),
    ("Ctrl-Z", "goes back to the shell for a while; `fg` comes back"),
    ("Tab", "goes to a question that waits, and back"),
];

/// What keys and commands do, in the order of the help.
pub(crate) fn help() -> impl Iterator<Item = (&'static str, &'static str)> {
    let commands = SLASH_COMMANDS.iter().map(|command| (command.name, command.description));
    KEYS.iter().copied().chain(commands)
}

/// What a line of the input is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ParsedLine<'a> {
    /// A command and its arguments.
    Command(&'static str, &'a str),
    /// It looks like a command, but no command has that name.
    Unknown(&'a str),
    Message,
}

/// What people type to leave, without a slash.
const EXIT_WORDS: [&str; 2] = ["exit", "quit"];

/// Returns the command that was misspelled, if one is near.
pub(crate) fn misspelled(word: &str) -> Option<&'static str> {
    let names = SLASH_COMMANDS.iter().filter_map(|command| command.name.strip_prefix('/'));
    let meant = llm_do_core::misspelled(word.trim_start_matches('/'), names)?;
    SLASH_COMMANDS.iter().map(|command| command.name).find(|name| name.strip_prefix('/') == Some(meant))
}

/// Tells commands from messages. A path is not a command.
pub(crate) fn parse(line: &str) -> ParsedLine<'_> {
    if EXIT_WORDS.contains(&line) {
        return ParsedLine::Command("/quit", "");
    }
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if !word.starts_with('/') || word.len() == 1 || word[1..].contains('/') {
        return ParsedLine::Message;
    }
    match SLASH_COMMANDS.iter().find(|command| command.name == word) {
        Some(command) => ParsedLine::Command(command.name, rest.trim()),
        None => ParsedLine::Unknown(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_message_and_a_mistyped_command_is_none() {
        assert_eq!(parse("/call helper {}"), ParsedLine::Command("/call", "helper {}"));
        assert_eq!(parse("/quit"), ParsedLine::Command("/quit", ""));
        assert_eq!(parse("/qiut"), ParsedLine::Unknown("/qiut"));
        assert_eq!(parse("/etc/passwd is what?"), ParsedLine::Message);
        assert_eq!(parse("hello /quit"), ParsedLine::Message);
        assert_eq!(parse("/"), ParsedLine::Message);
    }

    #[test]
    fn exit_and_quit_alone_leave() {
        assert_eq!(parse("exit"), ParsedLine::Command("/quit", ""));
        assert_eq!(parse("quit"), ParsedLine::Command("/quit", ""));
        assert_eq!(parse("exit the building"), ParsedLine::Message);
    }

    #[test]
    fn only_near_spellings_are_suggested() {
        assert_eq!(misspelled("/qiut"), Some("/quit"));
        assert_eq!(misspelled("/mod"), Some("/model"));
        assert_eq!(misspelled("/hlep"), Some("/help"));
        assert_eq!(misspelled("/foo"), None);
        assert_eq!(misspelled("/x"), None);
    }
}
