//! A throw-away project, and the tool in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use llm_do_core::{Approval, Assessment, CallInfo, Context, Key, NoticeSink, Opening, RunId, Tool, Toolset};
use llm_do_testing::{TestCall, TestDir, TestReply};
use llm_do_tools::{Shell, ShellRule, ShellSettings};
use serde_json::{Value, json};

/// A directory that is removed at the end: `root` for the project, `outside` beside it.
pub(crate) struct Folder {
    path: PathBuf,
    /// Removes the directory; none for one that somebody else made.
    _fresh: Option<TestDir>,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let directory = TestDir::new();
        let folder = Self::at(directory.path());
        Self { _fresh: Some(directory), ..folder }
    }

    /// Takes a directory that somebody else made and removes.
    pub(crate) fn at(path: &Path) -> Self {
        fs::create_dir_all(path.join("root")).unwrap();
        fs::create_dir_all(path.join("outside")).unwrap();
        Self { path: path.canonicalize().unwrap(), _fresh: None }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.path.join("root")
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.path.join(path)
    }

    /// Writes a file below the root.
    pub(crate) fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Runs git in a directory below the folder, for the test itself.
    pub(crate) fn git(&self, directory: &str, arguments: &[&str]) -> &Self {
        let identity =
            ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always"];
        let output = Command::new("git")
            .args(identity)
            .args(arguments)
            .current_dir(self.path(directory))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        self
    }
}

/// Opens the tool of a toolset.
pub(crate) async fn open(shell: &Shell, settings: &Value) -> Result<Arc<dyn Tool>, String> {
    let call = CallInfo {
        run: RunId(uuid::Uuid::nil()),
        id: Key::from("1"),
        parent: None,
        depth: 1,
        path: "test".into(),
        agent: "test".into(),
    };
    let opening =
        Opening { call: &call, settings, context: &Context::default(), notices: &NoticeSink::none() };
    let instance = shell.open(opening).await.map_err(|error| error.to_string())?;
    Ok(instance.tools()[0].clone())
}

/// The preset for reading, in a directory.
pub(crate) async fn read_only(root: &Path) -> Arc<dyn Tool> {
    open(&Shell::read_only("shell", root).unwrap(), &Value::Null).await.unwrap()
}

/// A tool that runs programs without a question, whatever their flags and operands are.
pub(crate) async fn trusting(
    root: &Path,
    programs: &[&str],
    change: impl FnOnce(&mut ShellSettings),
) -> Arc<dyn Tool> {
    let mut settings = ShellSettings::default();
    for program in programs {
        let mut rule = ShellRule::new(program, Approval::PreApproved);
        rule.allow_flags = vec!["*".to_owned()];
        rule.operands = llm_do_tools::Operands::Text;
        settings.rules.push(rule);
    }
    change(&mut settings);
    open(&Shell::new("shell", root, settings).unwrap(), &Value::Null).await.unwrap()
}

pub(crate) async fn assess(tool: &Arc<dyn Tool>, command: &str) -> Assessment {
    TestCall::new().assess(tool.clone(), json!({"command": command})).await
}

pub(crate) async fn decide(tool: &Arc<dyn Tool>, command: &str) -> Approval {
    assess(tool, command).await.approval
}

pub(crate) async fn run(tool: &Arc<dyn Tool>, command: &str) -> TestReply {
    TestCall::new().run(tool.clone(), json!({"command": command})).await
}

/// Runs a command and returns what it printed; an error stops the test.
pub(crate) async fn output(tool: &Arc<dyn Tool>, command: &str) -> Value {
    run(tool, command).await.reply().as_ref().unwrap_or_else(|error| panic!("{command}: {error}")).to_value()
}

/// Reads a number from the environment: how much of something a test does.
pub(crate) fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

/// A command that runs its arguments without privileges; none where the super-user has no way to do so.
pub(crate) fn unprivileged() -> Option<Command> {
    if !rustix::process::geteuid().is_root() {
        return Some(Command::new("env"));
    }
    let mut command = Command::new("setpriv");
    let works = Command::new("setpriv").arg("--version").output().is_ok_and(|output| output.status.success());
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
    works.then_some(command)
}
