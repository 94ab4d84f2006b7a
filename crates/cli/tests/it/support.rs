//! A project in a temporary directory, and the binary run on it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use llm_do_trust::{DirectoryIdentity, TrustEntry, TrustSource, TrustStore};
use serde_json::Value;

/// How long a process may take that must not wait for its stdin. Only a process that hangs takes this long.
const HANG: Duration = Duration::from_secs(60);

/// A directory with the files of a project.
pub struct Sandbox(tempfile::TempDir);

impl Sandbox {
    /// A directory whose projects are the person's own, so that no test but those of trust is about trust.
    pub fn new() -> Self {
        let sandbox = Self::untrusted();
        let mut entry = TrustEntry::new(
            &DirectoryIdentity::read(&sandbox.root()).unwrap(),
            Vec::new(),
            TrustSource::Command,
        );
        (entry.below, entry.own) = (true, true);
        TrustStore::new(Some(sandbox.state().join("llm-do"))).record(entry).unwrap();
        sandbox
    }

    /// A directory that nobody trusts.
    pub fn untrusted() -> Self {
        let sandbox = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(sandbox.root()).unwrap();
        std::fs::create_dir(sandbox.home()).unwrap();
        sandbox
    }

    /// One agent that says back what it is told.
    pub fn echo() -> Self {
        Self::new().file("main.agent", "---\nname: main\nmodel: test:echo\n---\nEcho.\n")
    }

    /// One agent on a script.
    pub fn scripted(replies: &str) -> Self {
        Self::new()
            .file("main.agent", "---\nname: main\nmodel: script:script.yaml\n---\nAnswer.\n")
            .file("script.yaml", replies)
    }

    /// An agent that calls another one, which must ask.
    pub fn asking() -> Self {
        Self::new()
            .file(
                "project.yaml",
                "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\n\
                 runtime: {agent_calls_require_approval: true}\n",
            )
            .file("main.agent", "---\nname: main\nmodel: script:script.yaml\ntoolsets: [helper]\n---\nAsk.\n")
            .file("helper.agent", "---\nname: helper\nmodel: test:echo\n---\nHelp.\n")
            .file(
                "script.yaml",
                "mode: by_turn\nreplies:\n  - ask: {helper: {input: may I}}\n  - say: the end\n",
            )
    }

    pub fn file(self, name: &str, text: &str) -> Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// The directory of the project, in which the binary runs.
    pub fn root(&self) -> PathBuf {
        self.0.path().join("project")
    }

    /// The home directory of the person, outside of the project.
    pub fn home(&self) -> PathBuf {
        self.0.path().join("home")
    }

    /// Where the binary keeps what it remembers.
    pub fn state(&self) -> PathBuf {
        self.home().join("state")
    }

    /// Writes the configuration of the person.
    pub fn config(self, text: &str) -> Self {
        std::fs::create_dir_all(self.config_path().parent().unwrap()).unwrap();
        std::fs::write(self.config_path(), text).unwrap();
        self
    }

    /// Where the configuration of the person is.
    pub fn config_path(&self) -> PathBuf {
        self.home().join(".config/llm-do/config.toml")
    }

    /// The binary in this directory, away from the environment of whoever runs the tests.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_llm-do"));
        command.args(arguments).current_dir(self.root()).stdin(Stdio::null());
        for name in [
            "LLM_DO_MODEL",
            "NO_COLOR",
            "VISUAL",
            "EDITOR",
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "LLM_DO_CHILD",
        ] {
            command.env_remove(name);
        }
        command.env("XDG_STATE_HOME", self.state()).env("HOME", self.home());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().unwrap().into()
    }

    /// Runs the binary with a text on stdin.
    pub fn run_with(&self, arguments: &[&str], stdin: &[u8]) -> Ran {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A binary that refuses its input may close the pipe first.
        let _ = child.stdin.take().unwrap().write_all(stdin);
        child.wait_with_output().unwrap().into()
    }

    /// Runs the binary with a stdin that stays open and gives nothing.
    pub fn run_with_silent_stdin(&self, arguments: &[&str]) -> Ran {
        let mut command = self.command(arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let silent = child.stdin.take();
        let began = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if began.elapsed() > HANG {
                child.kill().unwrap();
                panic!("{arguments:?} waits for stdin");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(silent);
        child.wait_with_output().unwrap().into()
    }
}

/// What the binary did.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// Says that it ended with a code.
    #[track_caller]
    pub fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Says that stdout holds exactly this.
    #[track_caller]
    pub fn said(self, stdout: &str) -> Self {
        assert_eq!(self.stdout, stdout, "{self:#?}");
        self
    }

    /// Says that stderr mentions this.
    #[track_caller]
    pub fn told(self, words: &str) -> Self {
        assert!(self.stderr.contains(words), "`{words}` is not in {self:#?}");
        self
    }

    /// Checks that stderr is empty, but for the notice that a slow machine takes long to import Python files.
    #[track_caller]
    pub fn told_nothing(self) -> Self {
        let told = self.stderr.lines().filter(|line| !line.starts_with("notice: still importing"));
        assert_eq!(told.collect::<Vec<_>>(), [""; 0], "{self:#?}");
        self
    }

    /// Reads stdout as one JSON value.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Reads stdout as a JSON value per line.
    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
