//! How a Python process ended, in words.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use llm_do_core::{Failure, FailureKind};

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessExit {
    /// What happened: `left with exit code 3`.
    pub(crate) how: String,
    /// The calls that ran when it ended.
    pub(crate) running: Vec<String>,
    /// The last lines that it wrote outside any call.
    pub(crate) last_lines: String,
    /// Whether this program ended it, for the sake of a call that did not stop.
    pub(crate) on_purpose: bool,
}

/// How many of the last lines are shown, and how many characters of them.
const LINES_SHOWN: usize = 12;
const CHARACTERS_SHOWN: usize = 2_000;

impl ProcessExit {
    /// What a call is told that ran when the process ended.
    pub(crate) fn failure(&self) -> Failure {
        let message = match &*self.running {
            [] => format!("the Python process {}", self.how),
            [alone] => format!("the Python process {} while it ran `{alone}`", self.how),
            several => {
                let shown: Vec<String> = several.iter().take(5).map(|name| format!("`{name}`")).collect();
                let more = if several.len() > 5 { ", .." } else { "" };
                let count = several.len();
                format!(
                    "the Python process {} while it ran {count} calls ({}{more})",
                    self.how,
                    shown.join(", ")
                )
            }
        };
        let message = match self.shown_lines() {
            lines if lines.is_empty() => message,
            lines => format!("{message}; its last words:\n{lines}"),
        };
        Failure::new(FailureKind::Tool, message)
    }

    /// The last lines, as many as help.
    pub(crate) fn shown_lines(&self) -> String {
        let lines: Vec<&str> = self.last_lines.lines().map(str::trim_end).collect();
        let lines = lines.get(lines.len().saturating_sub(LINES_SHOWN)..).unwrap_or_default().join("\n");
        let excess = lines.chars().count().saturating_sub(CHARACTERS_SHOWN);
        lines.chars().skip(excess).collect()
    }
}

/// Says how a process ended by its status.
pub(crate) fn describe_status(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("left with exit code {code}"),
        Some((None, Some(signal))) => match name_of(signal) {
            Some(name) => format!("was ended by signal {signal} ({name})"),
            None => format!("was ended by signal {signal}"),
        },
        _ => "has ended".to_owned(),
    }
}

fn name_of(signal: i32) -> Option<&'static str> {
    use rustix::process::Signal;
    let names = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    names.iter().find(|(known, _)| known.as_raw() == signal).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(how: &str, running: &[&str]) -> ProcessExit {
        let running = running.iter().map(|name| (*name).to_owned()).collect();
        ProcessExit { how: how.to_owned(), running, last_lines: String::new(), on_purpose: false }
    }

    #[test]
    fn the_words_say_how_it_ended_and_who_was_running() {
        assert_eq!(describe_status(Some(ExitStatus::from_raw(11))), "was ended by signal 11 (SIGSEGV)");
        let how = describe_status(Some(ExitStatus::from_raw(3 << 8)));
        assert_eq!(
            ending(&how, &["boom"]).failure().message,
            "the Python process left with exit code 3 while it ran `boom`"
        );
        assert_eq!(
            ending(&how, &["a", "b"]).failure().message,
            "the Python process left with exit code 3 while it ran 2 calls (`a`, `b`)"
        );
    }

    #[test]
    fn only_the_last_lines_are_shown() {
        let last_lines: String = (0..100).map(|number| format!("line {number}\n")).collect();
        let shown = ProcessExit { last_lines, ..ending("has ended", &[]) }.shown_lines();
        assert!(shown.starts_with("line 88\n") && shown.ends_with("line 99"), "{shown}");
    }
}
