//! Does what a page says, as a reader does who has just installed llm-do.
//!
//! A fresh directory, an own home, no keys, no configuration and no network. `cargo run -p llm-do-cli --` is answered by the
//! binary under test, which is what cargo would run after its build; nothing else of cargo is.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::compare::fits;
use super::page::{Block, Command, Reason, Step, blocks};
use crate::examples::copy;

/// Only a command that hangs takes this long.
const HANG: Duration = Duration::from_secs(120);

/// What was done with the blocks of a page.
#[derive(Debug, Default)]
pub struct Tally {
    pub ran: usize,
    pub compared: usize,
    pub not_run: BTreeMap<Reason, usize>,
}

/// A person with a page and a fresh machine.
pub struct Reader {
    machine: tempfile::TempDir,
    page: String,
    tally: Tally,
}

impl Reader {
    pub fn new(page: &str) -> Self {
        let machine = tempfile::tempdir().unwrap();
        for name in ["home", "bin", "parse", "work"] {
            fs::create_dir(machine.path().join(name)).unwrap();
        }
        let reader = Self { machine, page: page.to_owned(), tally: Tally::default() };
        let binary = env!("CARGO_BIN_EXE_llm-do");
        reader.program("bin/llm-do", &format!("exec '{binary}' \"$@\""));
        reader.program(
            "bin/cargo",
            &format!(
                "[ \"$1 $2 $3 $4\" = 'run -p llm-do-cli --' ] || {{ echo \"not run by tests: cargo $*\" >&2; exit 9; }}\n\
                 shift 4; exec '{binary}' \"$@\""
            ),
        );
        // Asked for help, the binary reads all arguments before it, and runs nothing.
        reader.program("parse/llm-do", &format!("exec '{binary}' \"$@\" --help"));
        reader
    }

    fn program(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.machine.path().join(name)
    }

    /// Takes every step of a page, from top to bottom.
    pub fn follow(mut self, text: &str) -> Tally {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        for name in
            text.split("examples/").skip(1).filter_map(|rest| rest.split([' ', '/', '`', ')', '\n']).next())
        {
            let target = self.path("work/examples").join(name);
            if examples.join(name).is_dir() && !target.exists() {
                copy(&examples.join(name), &target);
            }
        }
        for block in blocks(text) {
            if let Some(step) = block.step() {
                self.take(&block, step);
            }
        }
        self.tally
    }

    fn take(&mut self, block: &Block, step: Step) {
        let at = format!("{}:{}", self.page, block.line);
        match step {
            Step::Write { path, text } => {
                let path = self.path("work").join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Step::Shows { path, text } => {
                let written = fs::read_to_string(self.path("work").join(&path));
                assert_eq!(written.ok(), Some(text), "{at}: `{path}` is not what the page shows");
            }
            Step::Run { commands, exit } => self.run_all(&at, &commands, exit),
            Step::Parse { commands, reason } => {
                commands.iter().for_each(|command| self.parse(&at, command));
                *self.tally.not_run.entry(reason).or_default() += 1;
            }
        }
    }

    fn run_all(&mut self, at: &str, commands: &[Command], exit: i32) {
        for (index, command) in commands.iter().enumerate() {
            let expected = if index + 1 == commands.len() { exit } else { 0 };
            let (code, printed) = self.run(&command.text);
            assert_eq!(code, Some(expected), "{at}: `{}` printed\n{printed}", command.text);
            if let Some(shown) = &command.output {
                assert!(
                    fits(shown, &printed),
                    "{at}: `{}`\n--- the page shows\n{shown}\n--- printed\n{printed}",
                    command.text
                );
                self.tally.compared += 1;
            }
        }
        self.tally.ran += 1;
    }

    /// Runs a command in a shell that goes on where the last one ended: in its directory, with its variables.
    fn run(&self, command: &str) -> (Option<i32>, String) {
        let state = self.path("home/shell-state");
        let script = format!(
            "[ -f '{0}' ] && . '{0}'\nset -e\ntrap 'code=$?; {{ export -p; echo \"cd \\\"$PWD\\\"\"; }} > '\\''{0}'\\''; \
             exit $code' EXIT\n{command}\n",
            state.display()
        );
        self.shell(&script, "bin")
    }

    fn shell(&self, script: &str, programs: &str) -> (Option<i32>, String) {
        let printed = self.path("home/printed");
        let file = fs::File::create(&printed).unwrap();
        let path = format!("{}:{}", self.path(programs).display(), std::env::var("PATH").unwrap());
        let home = self.path("home");
        let mut child = std::process::Command::new("sh")
            .args(["-c", script])
            .env_clear()
            .env("PATH", path)
            .env("HOME", &home)
            .env("HTTPS_PROXY", "http://127.0.0.1:9")
            .env("HTTP_PROXY", "http://127.0.0.1:9")
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        let began = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if began.elapsed() > HANG {
                child.kill().unwrap();
                panic!("{}: this command does not end:\n{script}", self.page);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        (status.code(), fs::read_to_string(printed).unwrap())
    }

    /// Checks that the binary knows every flag of the commands that are not run.
    fn parse(&self, at: &str, command: &Command) {
        for part in calls(&command.text) {
            let (code, printed) = self.shell(&part, "parse");
            assert_eq!(code, Some(0), "{at}: `{part}` is not a valid command:\n{printed}");
        }
    }
}

/// Returns the calls of `llm-do` in a shell text, each without what is around it.
fn calls(text: &str) -> Vec<String> {
    let mut calls = Vec::new();
    for part in simple_commands(text) {
        if let Some(at) = part.find("llm-do ").filter(|at| starts_command(&part[..*at])) {
            calls.push(part[at..].to_owned());
        }
    }
    calls
}

/// Only assignments and words such as `if` or `!` may come before the name of a program.
fn starts_command(before: &str) -> bool {
    before
        .split_whitespace()
        .all(|word| word.contains('=') || ["!", "if", "do", "then", "while", "exec"].contains(&word))
}

/// Splits a shell text at the operators and comments that are outside of quotes.
fn simple_commands(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut quote, mut comment, mut before) = (None, false, '\n');
    for c in text.replace("\\\n", " ").chars() {
        comment = if comment { c != '\n' } else { c == '#' && quote.is_none() && before.is_whitespace() };
        before = c;
        if comment {
            continue;
        }
        if quote.is_none() && "|;&\n()<>".contains(c) {
            parts.push(String::new());
            continue;
        }
        match quote {
            None if matches!(c, '\'' | '"') => quote = Some(c),
            Some(open) if open == c => quote = None,
            _ => {}
        }
        parts.last_mut().unwrap().push(c);
    }
    parts
}

impl Tally {
    pub fn add(&mut self, other: &Self) {
        self.ran += other.ran;
        self.compared += other.compared;
        for (reason, count) in &other.not_run {
            *self.not_run.entry(*reason).or_default() += count;
        }
    }

    pub fn describe(&self) -> String {
        let mut text = format!("{} blocks run, {} outputs compared; not run:", self.ran, self.compared);
        for (reason, count) in &self.not_run {
            let _ = write!(text, " {count} {reason},");
        }
        text.trim_end_matches(',').to_owned()
    }
}

#[test]
fn calls_of_llm_do_are_found_in_shell_texts() {
    let text = "A=1 llm-do run x \"a | b; c\" --trust | jq . # llm-do no\nif ! llm-do check x; then exit; fi\necho llm-do run\n";
    assert_eq!(calls(text), ["llm-do run x \"a | b; c\" --trust ", "llm-do check x"]);
}

#[test]
fn a_reader_keeps_directory_and_variables_between_commands() {
    let page = "```console\n$ mkdir a && cd a && export B=2\n$ echo \"${PWD##*/} $B\"\na 2\n```\n";
    let tally = Reader::new("page").follow(page);
    assert_eq!((tally.ran, tally.compared), (1, 1));
}

#[test]
#[should_panic(expected = "the page shows")]
fn output_that_is_not_printed_is_reported() {
    Reader::new("page").follow("```console\n$ echo a\nb\n```\n");
}

#[test]
#[should_panic(expected = "is not a valid command")]
fn a_flag_that_does_not_exist_is_reported_in_blocks_that_are_not_run() {
    Reader::new("page").follow("```sh norun=needs-key\nllm-do run hello --no-such-flag\n```\n");
}
