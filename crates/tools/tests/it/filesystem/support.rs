//! A folder for a test, and the toolset behind the real gate.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use llm_do_core::{AgentSpec, Answer, ApprovalMode, ApprovalRequest, Failure};
use llm_do_models::{ScriptedReply, says};
use llm_do_runtime::Runtime;
use llm_do_testing::{Approvals, TestDir, TestProject, TestRun};
use llm_do_tools::{Filesystem, FilesystemSettings, Protected};
use serde_json::Value;

/// A fresh directory with `root` and `outside` in it, removed at the end.
pub(crate) struct Folder(TestDir);

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = Self::empty();
        fs::create_dir(folder.root()).unwrap();
        fs::create_dir(folder.path("outside")).unwrap();
        folder
    }

    pub(crate) fn empty() -> Self {
        Self(TestDir::new())
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.0.join(relative)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.path("root")
    }

    /// Writes a file below the root.
    pub(crate) fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.put(&format!("root/{path}"), content);
        self
    }

    /// Makes a link below the root.
    pub(crate) fn link(self, path: &str, target: &str) -> Self {
        symlink(target, self.root().join(path)).unwrap();
        self
    }

    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        self.0.write(path, content);
    }

    /// Reads a file below the root.
    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap()
    }

    /// Returns the names in a directory below the root.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        names(&self.root().join(path))
    }

    pub(crate) fn toolset(&self, settings: FilesystemSettings) -> Filesystem {
        self.toolset_at("root", settings)
    }

    pub(crate) fn toolset_at(&self, root: &str, settings: FilesystemSettings) -> Filesystem {
        let settings = FilesystemSettings { root: root.into(), ..settings };
        Filesystem::new("files", self.0.path(), settings)
            .unwrap()
            .protect(&Protected::new(["root/tools.py"]))
            .unwrap()
    }

    /// Puts the toolset behind a gate that allows whatever asks.
    pub(crate) fn gate(&self) -> Gate {
        self.gate_with(FilesystemSettings::default())
    }

    pub(crate) fn gate_with(&self, settings: FilesystemSettings) -> Gate {
        gate_of(self.toolset(settings), ApprovalMode::ApproveAll)
    }

    pub(crate) fn gate_in_mode(&self, mode: ApprovalMode) -> Gate {
        gate_of(self.toolset(FilesystemSettings::default()), mode)
    }

    /// Puts the toolset behind a gate that allows everything, after something has changed.
    pub(crate) fn gate_that_changes(&self, change: impl Fn() + Send + Sync + 'static) -> Gate {
        let approve = move |_: ApprovalRequest| {
            change();
            Answer::Once
        };
        let runtime = self
            .project()
            .model_replies([says("done")])
            .runtime(move |builder| builder.approver(approve))
            .build();
        Gate { runtime, approvals: Approvals::default() }
    }

    /// A project with the toolset.
    pub(crate) fn project(&self) -> TestProject {
        project(self.toolset(FilesystemSettings::default()))
    }

    /// Puts the toolset behind a gate that asks, and answers from a list.
    pub(crate) fn asking_gate(&self, answers: impl IntoIterator<Item = Answer>) -> Gate {
        let approvals = Approvals::new(answers);
        let project = project(self.toolset(FilesystemSettings::default())).model_replies([says("done")]);
        Gate { runtime: project.approver(approvals.clone()).build(), approvals }
    }

    /// Runs an agent with the toolset and a scripted model.
    pub(crate) async fn converse(
        &self,
        replies: impl IntoIterator<Item = ScriptedReply>,
        answers: impl IntoIterator<Item = Answer>,
    ) -> (TestRun, Vec<ApprovalRequest>) {
        let approvals = Approvals::new(answers);
        let project = project(self.toolset(FilesystemSettings::default())).model_replies(replies);
        (project.approver(approvals.clone()).run("go").await, approvals.requests())
    }
}

/// Puts a toolset behind a gate.
pub(crate) fn gate_of(toolset: Filesystem, mode: ApprovalMode) -> Gate {
    let project = project(toolset).model_replies([says("done")]);
    let runtime = project.runtime(move |builder| builder.approval_mode(mode)).build();
    Gate { runtime, approvals: Approvals::default() }
}

fn project(toolset: Filesystem) -> TestProject {
    TestProject::new().agent(AgentSpec::new("main", "You work with files.").toolset("files")).toolset(toolset)
}

pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The tools behind the gate of a runtime.
pub(crate) struct Gate {
    runtime: Runtime,
    approvals: Approvals,
}

impl Gate {
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        match self.runtime.run(tool, arguments).await {
            Ok(report) => Ok(report.output.unwrap().to_value()),
            Err(error) => Err(error.report.failure.clone().unwrap_or_else(|| panic!("{error}"))),
        }
    }

    pub(crate) fn requests(&self) -> Vec<ApprovalRequest> {
        self.approvals.requests()
    }
}
