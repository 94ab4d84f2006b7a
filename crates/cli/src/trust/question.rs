//! The question whether a directory is trusted, at the terminal.

use std::fs::File;
use std::io::{IsTerminal, Read, Write, stderr, stdin, stdout};

use llm_do::LoadedProject;
use llm_do::trust::{ForeignFile, Identity, Lookup};
use rustix::termios::{QueueSelector, tcflush};

use super::text;
use crate::text::visible_line;

/// What is asked about.
pub(super) struct Question<'a> {
    pub(super) project: &'a LoadedProject,
    pub(super) identity: &'a Identity,
    pub(super) found: &'a Lookup,
    /// Files that others can change: then nothing is remembered.
    pub(super) foreign: &'a [ForeignFile],
}

/// The reply of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    Remember,
    Once,
    No,
    NobodyToAsk,
}

/// Asks at the terminal. Enter, the end of the input and everything unknown mean no.
pub(super) fn ask(question: &Question<'_>) -> Reply {
    if !stderr().is_terminal() && !stdin().is_terminal() && !stdout().is_terminal() {
        return Reply::NobodyToAsk;
    }
    let Ok(mut terminal) = File::options().read(true).write(true).open("/dev/tty") else {
        return Reply::NobodyToAsk;
    };
    let may_remember = question.foreign.is_empty();
    let remember = if may_remember { "[y] yes, remember  " } else { "" };
    let shown = format!("{}\n", shown(question));
    let choices = format!("Trust this directory?  {remember}[o] this run only  [N] no > ");
    if write!(terminal, "{shown}\n{choices}").is_err() {
        return Reply::NobodyToAsk;
    }
    // What was typed before the question could be read is not an answer to it.
    let _ = tcflush(&terminal, QueueSelector::IFlush);
    match read_line(&mut terminal).trim() {
        "y" | "Y" | "yes" if may_remember => Reply::Remember,
        "o" | "O" => Reply::Once,
        _ => Reply::No,
    }
}

fn read_line(terminal: &mut File) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < 64 && matches!(terminal.read(&mut byte), Ok(1)) && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    String::from_utf8_lossy(&line).into_owned()
}

fn shown(question: &Question<'_>) -> String {
    let Question { project, identity, found, foreign } = question;
    let path = identity.path.to_string_lossy();
    let path = visible_line(&path);
    let mut lines: Vec<String> = foreign.iter().map(|file| format!("warning: {file}")).collect();
    match found {
        Lookup::Beyond(entry, changes) => {
            let date = entry.agreed.to_string();
            let date = date.split('T').next().unwrap_or_default();
            lines.push(format!("{path} wants more than you agreed to on {date}:\n"));
            lines.extend(changes.new.iter().map(|new| text::entry("new      ", new)));
            lines.extend(
                changes
                    .changed
                    .iter()
                    .map(|(was, now)| format!("{}\n  was      {was}", text::entry("changed  ", now))),
            );
            if changes.kept > 0 {
                let noun = if changes.kept == 1 { "power" } else { "powers" };
                lines.push(format!("  ({} other {noun} as before)", changes.kept));
            }
        }
        Lookup::Unknown | Lookup::Replaced | Lookup::Trusted(_) => {
            let seen = match found {
                Lookup::Replaced => "another directory was trusted at this path",
                Lookup::Trusted(_) => "trusted, but others can change its files",
                _ => "not seen before",
            };
            lines.push(format!("{path}  ({seen}) wants to do what llm-do would not ask you about:\n"));
            lines.push(text::list(&project.powers));
        }
    }
    lines.join("\n")
}
