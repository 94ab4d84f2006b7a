//! The question whether a directory is trusted, at the terminal.

use std::fs::File;
use std::io::Write;

use llm_do::project::LoadedProject;
use llm_do_trust::{DirectoryIdentity, ForeignFile, Lookup};
use rustix::termios::{QueueSelector, Winsize, tcflush, tcgetwinsize};

use super::{text, view};
use crate::terminal_question::{self, open_terminal, read_line};
use crate::text::visible_line;
use crate::wrap::{columns_of_terminal, wrapped};

/// On a narrower terminal the list always has to be viewed.
const MIN_COLUMNS: usize = 20;

/// What is asked about.
pub(super) struct TrustQuestion<'a> {
    pub(super) project: &'a LoadedProject,
    pub(super) identity: &'a DirectoryIdentity,
    pub(super) found: &'a Lookup,
    /// Files that others can change: then nothing is remembered.
    pub(super) foreign: &'a [ForeignFile],
    /// Whether the files are those of a record: an agreement to them is not one to the directory.
    pub(super) is_recorded: bool,
}

/// The reply of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrustReply {
    Remember,
    Once,
    Without,
    No,
    NobodyToAsk,
}

/// What a line that a person typed means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Answer(TrustReply),
    View,
    /// `y` before the whole list could be seen.
    Unseen,
}

/// Asks at the terminal. Enter, the end of the input and everything unknown mean no.
pub(super) fn ask(question: &TrustQuestion<'_>) -> TrustReply {
    let Some(mut terminal) = open_terminal() else { return TrustReply::NobodyToAsk };
    let size = tcgetwinsize(&terminal).ok();
    let columns = columns_of_terminal(&terminal).max(MIN_COLUMNS);
    let shown = wrapped(&shown(question), columns);
    let may_remember = question.foreign.is_empty() && !question.is_recorded;
    let prompt = prompt(may_remember, columns);
    let rows = shown.lines().count() + 1 + prompt.lines().count();
    let fits = |size: Winsize| usize::from(size.ws_col) >= MIN_COLUMNS && rows <= usize::from(size.ws_row);
    let mut is_seen = size.is_some_and(fits);
    if writeln!(terminal, "{shown}\n").is_err() {
        return TrustReply::NobodyToAsk;
    }
    loop {
        match choose(&mut terminal, &prompt, may_remember, is_seen) {
            Some(Choice::Answer(reply)) => return reply,
            Some(Choice::View) => {
                view::show(&shown, question.project, &mut terminal);
                is_seen = true;
            }
            Some(Choice::Unseen) => {
                let _ = writeln!(terminal, "Not everything fits on the screen: `v` shows it.");
            }
            None => return TrustReply::NobodyToAsk,
        }
    }
}

/// Asks whether something that changed may run. The run itself remembers what it ran.
pub(super) fn ask_once(shown: &str) -> TrustReply {
    match terminal_question::ask(&format!("{shown}\n\nRun the changed code?  [y] yes  [N] no > ")).as_deref()
    {
        None => TrustReply::NobodyToAsk,
        Some("y" | "Y" | "yes") => TrustReply::Once,
        Some(_) => TrustReply::No,
    }
}

/// Shows the choices and reads one; nothing if the terminal is gone.
fn choose(terminal: &mut File, prompt: &str, may_remember: bool, is_seen: bool) -> Option<Choice> {
    // What was typed before the question could be read is not an answer to it.
    let _ = tcflush(&*terminal, QueueSelector::IFlush);
    write!(terminal, "{prompt} > ").ok()?;
    let line = read_line(terminal);
    Some(match line.trim() {
        "y" | "Y" | "yes" | "o" | "O" if !is_seen => Choice::Unseen,
        "y" | "Y" | "yes" if may_remember => Choice::Answer(TrustReply::Remember),
        "o" | "O" => Choice::Answer(TrustReply::Once),
        "w" | "W" => Choice::Answer(TrustReply::Without),
        "v" | "V" => Choice::View,
        _ => Choice::Answer(TrustReply::No),
    })
}

/// Returns the question and its choices, broken between two choices.
fn prompt(may_remember: bool, columns: usize) -> String {
    let remember = may_remember.then_some("[y] yes, remember");
    let others = ["[o] this run only", "[w] run without", "[v] view", "[N] no"];
    let mut prompt = "Trust this directory?\n".to_owned();
    let mut used = 0;
    for choice in remember.into_iter().chain(others) {
        // Behind the last one, ` > ` and the cursor need room too.
        if used > 0 && used + 2 + choice.len() + 4 > columns {
            prompt.push('\n');
            used = 0;
        }
        let gap = if used > 0 { "  " } else { "" };
        prompt.push_str(gap);
        prompt.push_str(choice);
        used += gap.len() + choice.len();
    }
    prompt
}

fn shown(question: &TrustQuestion<'_>) -> String {
    let TrustQuestion { project, identity, found, foreign, .. } = question;
    let path = identity.path.to_string_lossy();
    let path = visible_line(&path);
    let mut lines: Vec<String> = foreign.iter().map(|file| format!("warning: {file}")).collect();
    match found {
        Lookup::Beyond(entry, changes) => {
            lines.push(format!("{path} wants more than you agreed to on {}:\n", text::date(entry)));
            lines.push(text::changes(changes, project));
        }
        Lookup::Unknown | Lookup::Replaced | Lookup::Trusted(_) => {
            let seen = match found {
                Lookup::Replaced => "another directory was trusted at this path",
                Lookup::Trusted(_) => "trusted, but others can change its files",
                _ => "not seen before",
            };
            lines.push(format!("{path}  ({seen}) wants to do what llm-do would not ask you about:\n"));
            lines.push(text::list(project));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_broken_between_each_other() {
        assert_eq!(prompt(true, 80).lines().count(), 2);
        let rows = prompt(true, 60);
        assert_eq!(
            rows.lines().collect::<Vec<_>>(),
            [
                "Trust this directory?",
                "[y] yes, remember  [o] this run only  [w] run without",
                "[v] view  [N] no"
            ]
        );
    }
}
