//! Reads a Markdown page into the steps that a reader takes with it.
//!
//! The info string of a fence says what a block is:
//!
//! - `file=PATH` is a file that the reader writes;
//! - `shows=PATH` is a file that exists already, made by an earlier command, and is shown as it is;
//! - `sh` is a script, and `console` commands behind `$ ` with the output that they print;
//! - `exit=N` says which exit code the last command of the block has, if not 0;
//! - `for=PROGRAM` is a file of another program, which nothing checks;
//! - `norun=REASON` says why a block of commands cannot be run by a test. Its commands must still be valid.
//!
//! Other blocks are fragments: `fragments.rs` checks YAML, other tests compile Rust.

use std::fmt;

/// Why a block cannot be run by a test. Closed, so that nothing is skipped for a new reason unnoticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Asks a provider, with the key of the reader.
    NeedsKey,
    /// Asks a model server on the reader's machine.
    NeedsServer,
    /// Draws on a terminal or asks at it.
    NeedsTerminal,
    /// Uses a program that is not part of llm-do or of every system.
    NeedsProgram,
    /// Builds or installs the program, or runs its tests.
    Builds,
    /// Names files that only the reader has.
    YourFiles,
}

impl Reason {
    const ALL: [(&'static str, Self); 6] = [
        ("needs-key", Self::NeedsKey),
        ("needs-server", Self::NeedsServer),
        ("needs-terminal", Self::NeedsTerminal),
        ("needs-program", Self::NeedsProgram),
        ("builds", Self::Builds),
        ("your-files", Self::YourFiles),
    ];

    fn parse(text: &str) -> Self {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found.unwrap_or_else(|| panic!("`norun={text}` is not one of the reasons of page.rs")).1
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::ALL.iter().find(|(_, reason)| reason == self);
        f.write_str(found.map_or("", |(name, _)| name))
    }
}

/// One fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The line of the opening fence, from 1.
    pub line: usize,
    pub language: String,
    pub attributes: Vec<(String, String)>,
    pub text: String,
}

/// What a reader does with a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Write { path: String, text: String },
    Shows { path: String, text: String },
    Run { commands: Vec<Command>, exit: i32 },
    Parse { commands: Vec<Command>, reason: Reason },
}

/// One command, and what the page says that it prints; `None` if the page shows no output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub text: String,
    pub output: Option<String>,
}

/// Returns the blocks of a page, also those that are indented below a list item.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some(info) = line.trim_start().strip_prefix("```") else { continue };
        let indent = line.len() - line.trim_start().len();
        let mut text = String::new();
        for (_, line) in lines.by_ref().take_while(|(_, line)| line.trim() != "```") {
            text.push_str(line.get(indent..).unwrap_or(line.trim_start()));
            text.push('\n');
        }
        blocks.push(block(index + 1, info, text));
    }
    blocks
}

fn block(line: usize, info: &str, text: String) -> Block {
    let mut words = info.split_whitespace();
    let language = words.next().unwrap_or_default().to_owned();
    let attribute = |word: &str| {
        let (name, value) =
            word.split_once('=').unwrap_or_else(|| panic!("line {line}: `{word}` has no `=`"));
        (name.to_owned(), value.to_owned())
    };
    Block { line, language, attributes: words.map(attribute).collect(), text }
}

impl Block {
    /// Returns what to do with the block; `None` for a fragment.
    pub fn step(&self) -> Option<Step> {
        let known = |name: &str| ["file", "shows", "exit", "norun", "for"].contains(&name);
        let unknown = self.attributes.iter().find(|(name, _)| !known(name));
        assert_eq!(unknown, None, "line {}: unknown attribute", self.line);
        if let Some(path) = self.attribute("file") {
            return Some(Step::Write { path: path.to_owned(), text: self.text.clone() });
        }
        if let Some(path) = self.attribute("shows") {
            return Some(Step::Shows { path: path.to_owned(), text: self.text.clone() });
        }
        let commands = self.commands()?;
        if let Some(reason) = self.attribute("norun") {
            return Some(Step::Parse { commands, reason: Reason::parse(reason) });
        }
        let exit = self.attribute("exit").map_or(0, |code| code.parse().unwrap());
        Some(Step::Run { commands, exit })
    }

    fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn commands(&self) -> Option<Vec<Command>> {
        match self.language.as_str() {
            "sh" => Some(vec![Command { text: self.text.clone(), output: None }]),
            "console" => Some(prompted(self.line, &self.text)),
            "bash" | "shell" | "zsh" => panic!("line {}: write `sh` or `console`", self.line),
            _ => None,
        }
    }
}

/// Splits a block at its prompts. A line that ends with a backslash goes on in the next one.
fn prompted(line: usize, text: &str) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    for row in text.lines() {
        if let Some(command) = row.strip_prefix("$ ") {
            commands.push(Command { text: command.to_owned(), output: None });
            continue;
        }
        let last = commands.last_mut().unwrap_or_else(|| panic!("line {line}: output before a command"));
        let target = if last.output.is_none() && last.text.ends_with('\\') {
            &mut last.text
        } else {
            last.output.get_or_insert_default()
        };
        if !target.is_empty() {
            target.push('\n');
        }
        target.push_str(row);
    }
    commands
}

#[test]
fn a_page_becomes_the_steps_of_a_reader() {
    let page = "Text\n\n```yaml file=a/main.agent\nname: main\n```\n\n1. Item\n\n   ```console exit=2\n   \
                $ llm-do check a \\\n     --reach\n   error: ..\n   $ echo hi\n   ```\n```yaml\nkey: 1\n```\n\
                ```sh norun=needs-key\nllm-do run a\n```\n";
    let steps: Vec<Step> = blocks(page).iter().filter_map(Block::step).collect();
    let command = |text: &str, output: Option<&str>| Command {
        text: text.to_owned(),
        output: output.map(str::to_owned),
    };
    let checked = command("llm-do check a \\\n  --reach", Some("error: .."));
    assert_eq!(
        steps,
        [
            Step::Write { path: "a/main.agent".to_owned(), text: "name: main\n".to_owned() },
            Step::Run { commands: vec![checked, command("echo hi", None)], exit: 2 },
            Step::Parse { commands: vec![command("llm-do run a\n", None)], reason: Reason::NeedsKey },
        ]
    );
}

#[test]
#[should_panic(expected = "is not one of the reasons")]
fn an_unknown_reason_is_refused() {
    blocks("```sh norun=later\nllm-do run a\n```\n")[0].step();
}

#[test]
#[should_panic(expected = "unknown attribute")]
fn an_unknown_attribute_is_refused() {
    blocks("```sh skip=1\nllm-do run a\n```\n")[0].step();
}
