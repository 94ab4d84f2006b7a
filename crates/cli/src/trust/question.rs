//! The question whether a directory is trusted, at the terminal.

use std::fs::File;
use std::io::{IsTerminal, Read, Write, stderr, stdin, stdout};

use llm_do::project::LoadedProject;
use llm_do_trust::{ForeignFile, Identity, Lookup};
use rustix::termios::{QueueSelector, tcflush, tcgetwinsize};

use super::{text, view};
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
    Without,
    No,
    NobodyToAsk,
}

/// What a line that a person typed means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Reply(Reply),
    View,
    /// `y` before the whole list could be seen.
    Unseen,
}

/// Asks at the terminal. Enter, the end of the input and everything unknown mean no.
pub(super) fn ask(question: &Question<'_>) -> Reply {
    let Some(mut terminal) = open_terminal() else { return Reply::NobodyToAsk };
    let shown = shown(question);
    let may_remember = question.foreign.is_empty();
    let mut is_seen = fits(&shown, &terminal);
    if writeln!(terminal, "{shown}\n").is_err() {
        return Reply::NobodyToAsk;
    }
    loop {
        match choose(&mut terminal, may_remember, is_seen) {
            Some(Choice::Reply(reply)) => return reply,
            Some(Choice::View) => {
                view::show(&shown, question.project, &mut terminal);
                is_seen = true;
            }
            Some(Choice::Unseen) => {
                let _ = writeln!(terminal, "Not everything fits on the screen: `v` shows it.");
            }
            None => return Reply::NobodyToAsk,
        }
    }
}

/// Asks whether something that changed may run. The run itself remembers what it ran.
pub(super) fn ask_once(shown: &str) -> Reply {
    match answer(&format!("{shown}\n\nRun the changed code?  [y] yes  [N] no > ")).as_deref() {
        None => Reply::NobodyToAsk,
        Some("y" | "Y" | "yes") => Reply::Once,
        Some(_) => Reply::No,
    }
}

/// Shows a question at the terminal and reads one line; nothing if there is no terminal.
fn answer(question: &str) -> Option<String> {
    let mut terminal = open_terminal()?;
    // What was typed before the question could be read is not an answer to it.
    let _ = tcflush(&terminal, QueueSelector::IFlush);
    terminal.write_all(question.as_bytes()).ok()?;
    Some(read_line(&mut terminal).trim().to_owned())
}

fn open_terminal() -> Option<File> {
    if !stderr().is_terminal() && !stdin().is_terminal() && !stdout().is_terminal() {
        return None;
    }
    File::options().read(true).write(true).open("/dev/tty").ok()
}

/// Shows the choices and reads one; nothing if the terminal is gone.
fn choose(terminal: &mut File, may_remember: bool, is_seen: bool) -> Option<Choice> {
    let remember = if may_remember { "[y] yes, remember  " } else { "" };
    let others = "[o] this run only  [w] run without  [v] view  [N] no";
    // What was typed before the question could be read is not an answer to it.
    let _ = tcflush(&*terminal, QueueSelector::IFlush);
    write!(terminal, "Trust this directory?\n{remember}{others} > ").ok()?;
    let line = read_line(terminal);
    Some(match line.trim() {
        "y" | "Y" | "yes" | "o" | "O" if !is_seen => Choice::Unseen,
        "y" | "Y" | "yes" if may_remember => Choice::Reply(Reply::Remember),
        "o" | "O" => Choice::Reply(Reply::Once),
        "w" | "W" => Choice::Reply(Reply::Without),
        "v" | "V" => Choice::View,
        _ => Choice::Reply(Reply::No),
    })
}

/// Returns whether a text and the question below it fit on the screen at once.
fn fits(text: &str, terminal: &File) -> bool {
    let Ok(size) = tcgetwinsize(terminal) else { return false };
    let columns = usize::from(size.ws_col.max(1));
    let rows: usize = text.lines().map(|line| line.chars().count().div_ceil(columns).max(1)).sum();
    // Below it: an empty line, and the question with its choices, which may wrap.
    rows + 2 + 80_usize.div_ceil(columns) <= usize::from(size.ws_row)
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
            lines.push(format!("{path} wants more than you agreed to on {}:\n", text::date(entry)));
            lines.push(text::changes(changes));
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
