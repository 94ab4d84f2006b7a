//! Files that are run later, and directories of the program itself: each path by each writing tool in each mode.

use llm_do::project::LoadedProjectExt;
use std::fs;
use std::path::Path;

use llm_do::approval::{Approval, ApprovalMode, Verdict, VerdictKind};
use llm_do::descriptors::{ContentStore, DescriptorSettings, Descriptors, FdId, FdSource};
use llm_do::testing::{Script, ScriptedReply, asks, says};
use llm_do::tools::{Filesystem, FilesystemSettings, Protected};
use llm_do::{AgentSpec, Runtime};
use llm_do_testing::{Approvals, TestRun, needs};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What other programs run by themselves, and what the Python code of the project imports.
const RUN_LATER: &[&str] = &[
    "project.yaml",
    "main.agent",
    "agents/other.agent",
    "agents/generated/poet.agent",
    ".git/config",
    ".git/hooks/pre-commit",
    "sub/.GIT/config",
    ".gitattributes",
    ".gitmodules",
    ".husky/pre-commit",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".github/workflows/ci.yml",
    ".github/actions/build/action.yml",
    ".gitlab-ci.yml",
    ".circleci/config.yml",
    "azure-pipelines.yml",
    "Jenkinsfile",
    ".vscode/tasks.json",
    "app.code-workspace",
    ".idea/workspace.xml",
    ".devcontainer/devcontainer.json",
    ".devcontainer.json",
    ".env",
    ".env.local",
    ".envrc",
    "mise.toml",
    ".tool-versions",
    ".bashrc",
    ".profile",
    ".zshenv",
    ".config/fish/config.fish",
    ".vimrc",
    ".config/nvim/init.lua",
    ".emacs.d/init.el",
    ".xprofile",
    ".config/autostart/a.desktop",
    ".config/systemd/user/a.service",
    ".local/share/systemd/user/a.service",
    "Library/LaunchAgents/a.plist",
    ".local/share/applications/a.desktop",
    ".ssh/authorized_keys",
    ".ssh/config",
    ".local/bin/ls",
    "node_modules/.bin/tsc",
    ".cargo/config.toml",
    ".mcp.json",
    "AGENTS.md",
    "docs/CLAUDE.md",
    ".claude/settings.json",
    ".cursor/rules/a.mdc",
    ".github/copilot-instructions.md",
    "__pycache__/tools.cpython-312.pyc",
    "sitecustomize.py",
    "usercustomize.py",
    ".venv/lib/python3.12/site-packages/a.pth",
    ".venv/lib/python3.12/site-packages/requests/api.py",
    "env/pyvenv.cfg",
    "env/bin/activate",
    ".bash_completion",
    ".hg/hgrc",
    ".hgrc",
    ".ipython/profile_default/startup/x.py",
    ".julia/config/startup.jl",
    ".docker/cli-plugins/x",
    ".forward",
    ".wezterm.lua",
    ".oh-my-zsh/custom/x.zsh",
    ".vscode-server/data/Machine/settings.json",
    ".config/i3/config",
    ".config/Code/User/tasks.json",
    ".config/a-program-that-nobody-knows/init.lua",
    ".local/share/nvim/site/plugin/x.lua",
    ".local/share/bash-completion/completions/x",
    ".continue/config.json",
    ".roo/rules/x.md",
    ".kiro/hooks/x.json",
    ".kde/Autostart/x.sh",
    ".jj/repo/config.toml",
    ".sl/config",
    ".trunk/trunk.yaml",
    ".simple-git-hooks.json",
    ".lvimrc",
    ".spacemacs.d/init.el",
    ".doom.d/init.el",
    ".theia/tasks.json",
    "opencode.json",
    ".opencode/plugin/x.ts",
    ".crush.json",
    "QWEN.md",
    ".qwen/settings.json",
    "WARP.md",
    ".rules",
    ".roomodes",
    ".kilocode/rules/x.md",
    ".amazonq/rules/x.md",
    ".junie/guidelines.md",
    ".trae/rules/x.md",
    ".augment/rules/x.md",
    ".agents/skills/x/SKILL.md",
    ".github/agents/x.md",
    ".github/prompts/x.prompt.md",
    ".github/hooks/x.json",
    ".gitlab/ci/build.yml",
    ".tekton/pipeline.yaml",
    ".gitpod.yml",
    ".gitpod/automations.yaml",
    ".replit",
    ".idx/dev.nix",
    ".mise/tasks/x",
    "mise.production.toml",
    ".iex.exs",
    ".ocamlinit",
    ".Renviron",
    ".selected_editor",
    ".nvm/nvm.sh",
    ".asdf/asdf.sh",
    ".cargo/env",
    ".fzf.bash",
    ".pyenv/shims/python",
    ".deno/bin/x",
];

/// Configuration that names programs and holds logins, too: an edit of it also asks as a secret file.
const RUN_LATER_AND_SECRET: &[&str] =
    &[".gnupg/gpg-agent.conf", ".kube/config", ".docker/config.json", ".aws/config"];

/// What a person builds, tests or reads, and a coding agent has to write.
const ORDINARY: &[&str] = &[
    "Makefile",
    "package.json",
    "pyproject.toml",
    "conftest.py",
    "tests/test_a.py",
    "src/main.rs",
    "src/app/json.py",
    "README.md",
    ".gitignore",
    ".github/dependabot.yml",
    "node_modules/a/index.js",
    "docs/agents/notes.md",
    "docs/rules.md",
    "rules/a.md",
    "docs/mise.md",
    "src/gitpod.yml",
    ".nvmrc",
    ".python-version",
];

struct Project {
    folder: TempDir,
    runtime: Runtime,
}

impl Project {
    /// A project in which everything is pre-approved that can be. The files are there when the tools are called.
    fn new(paths: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "project.yaml", "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\n");
        let rule =
            |program: &str| json!({"program": program, "allow_flags": ["*"], "approval": "pre_approved"});
        let rules = ["cp", "mv", "tee", "cat", "grep"].map(rule);
        let header = json!({
            "name": "main", "model": "test:echo",
            "toolsets": [
                "filesystem_project", "file_descriptors",
                {"shell_file_ops": {"sandbox": "off", "rules": rules}},
            ],
            "approval": {"*": "pre_approved"},
        });
        write(folder.path(), "main.agent", &format!("---\n{header}\n---\nWork.\n"));
        let [state, config, cache] = ["state/llm-do", "config/llm-do", "cache/llm-do"];
        let loader = llm_do::loader(folder.path()).private(folder.path().join(state));
        let loader = loader.private(folder.path().join(config)).read_only(folder.path().join(cache));
        let project = loader
            .trust(llm_do::project::TrustPolicy::All)
            .load()
            .unwrap_or_else(|problems| panic!("{problems}"));
        for path in paths.iter().filter(|path| !folder.path().join(path).exists()) {
            write(folder.path(), path, "old\n");
        }
        write(folder.path(), "source", "new\n");
        let runtime = project.runtime().build().unwrap();
        Self { folder, runtime }
    }

    async fn judge(&self, tool: &str, input: Value, mode: ApprovalMode) -> Verdict {
        let table = Descriptors::new(DescriptorSettings::default(), ContentStore::default());
        table.add(FdId::from("fd:1.0"), "new\n", FdSource::ToolResult).unwrap();
        let call = self.runtime.run(tool, input).as_agent("main").provide(table);
        call.approval_mode(mode).judge().await
    }

    /// Every way in which a tool could write a file.
    fn writes(&self, path: &str) -> Vec<(&'static str, Value)> {
        let old = fs::read_to_string(self.folder.path().join(path)).unwrap_or_default();
        let edit = json!([{"old": old, "new": "new\n"}]);
        let mut writes = vec![
            ("write_file", json!({"path": path, "content": "new\n"})),
            ("edit_file", json!({"path": path, "edits": edit})),
            ("fd_to_file", json!({"fd": "fd:1.0", "path": path})),
        ];
        let directory = Path::new(path).parent().unwrap().display().to_string();
        let directory = if directory.is_empty() { ".".to_owned() } else { directory };
        let name = Path::new(path).file_name().unwrap().to_str().unwrap();
        write(self.folder.path(), &format!("from/{name}"), "new\n");
        for command in [
            format!("cp source {path}"),
            format!("mv source {path}"),
            format!("tee {path}"),
            format!("cp from/{name} {directory}"),
            format!("mv -t {directory} from/{name}"),
        ] {
            writes.push(("shell", json!({ "command": command })));
        }
        writes
    }
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[tokio::test]
async fn files_that_are_run_later_ask_whatever_is_pre_approved() {
    let project = Project::new(RUN_LATER);
    for path in RUN_LATER {
        for (tool, input) in project.writes(path) {
            for (mode, expected) in [
                (ApprovalMode::Prompt, VerdictKind::Ask),
                (ApprovalMode::RejectAll, VerdictKind::Block),
                (ApprovalMode::ApproveAll, VerdictKind::Allow),
            ] {
                let verdict = project.judge(tool, input.clone(), mode).await;
                assert_eq!(verdict.decision, expected, "{mode:?} {tool} {input}: {verdict:?}");
            }
            let verdict = project.judge(tool, input.clone(), ApprovalMode::Prompt).await;
            assert!(verdict.reason.contains("is protected: "), "{tool} {input}: {verdict:?}");
        }
    }
}

#[tokio::test]
async fn secret_files_that_name_programs_ask_whatever_is_pre_approved() {
    let project = Project::new(RUN_LATER_AND_SECRET);
    for path in RUN_LATER_AND_SECRET {
        for (tool, input) in project.writes(path) {
            let verdict = project.judge(tool, input.clone(), ApprovalMode::Prompt).await;
            assert_eq!(verdict.decision, VerdictKind::Ask, "{tool} {input}: {verdict:?}");
            assert!(verdict.reason.contains("is protected: "), "{tool} {input}: {verdict:?}");
        }
    }
}

#[tokio::test]
async fn what_a_person_builds_or_reads_goes_by_the_ordinary_rules() {
    let project = Project::new(ORDINARY);
    for path in ORDINARY {
        for (tool, input) in project.writes(path) {
            let verdict = project.judge(tool, input.clone(), ApprovalMode::Prompt).await;
            assert_eq!(verdict.decision, VerdictKind::Allow, "{tool} {input}: {verdict:?}");
        }
    }
}

const PRIVATE: [&str; 3] = ["state/llm-do/trust.json", "config/llm-do/config.toml", "STATE/llm-do/runs/1/x"];

#[tokio::test]
async fn no_approval_lets_a_tool_write_to_directories_of_the_program() {
    let cached = "cache/llm-do/python/a/start.py";
    let project = Project::new(&[&PRIVATE[..], &[cached]].concat());
    std::os::unix::fs::symlink("state/llm-do", project.folder.path().join("link")).unwrap();
    for path in PRIVATE.into_iter().chain([cached, "link/trust.json"]) {
        for (tool, input) in project.writes(path) {
            for mode in [ApprovalMode::Prompt, ApprovalMode::RejectAll, ApprovalMode::ApproveAll] {
                let verdict = project.judge(tool, input.clone(), mode).await;
                assert_eq!(verdict.decision, VerdictKind::Block, "{mode:?} {tool} {input}: {verdict:?}");
            }
        }
    }
    write(project.folder.path(), "evil/llm-do/trust.json", "new\n");
    for command in [
        "mv state elsewhere",
        "mv -t . state/llm-do",
        "cp -r evil/. state",
        "cp -r evil/llm-do state",
        "cp -rt state evil/llm-do",
        "mv source cache/llm-do",
        "tee cache/LLM-DO/x",
    ] {
        let input = json!({ "command": command });
        let verdict = project.judge("shell", input, ApprovalMode::ApproveAll).await;
        assert_eq!(verdict.decision, VerdictKind::Block, "{command}: {verdict:?}");
    }
}

#[tokio::test]
async fn no_approval_lets_a_tool_read_records_and_configuration() {
    let cached = "cache/llm-do/python/a/start.py";
    let project = Project::new(&[&PRIVATE[..], &[cached, "notes.txt"]].concat());
    std::os::unix::fs::symlink("state/llm-do", project.folder.path().join("link")).unwrap();
    let reads = |path: &str| {
        let directory = Path::new(path).parent().unwrap().display().to_string();
        [
            ("read_file", json!({"path": path})),
            ("list_files", json!({"path": directory, "pattern": "**"})),
            ("search_files", json!({"path": directory, "pattern": "old"})),
            ("shell", json!({"command": format!("cat {path}")})),
            ("shell", json!({"command": format!("grep -r old {directory}")})),
        ]
    };
    let run = async |tool: &str, input: Value| {
        let call = project.runtime.run(tool, input).as_agent("main");
        call.approval_mode(ApprovalMode::ApproveAll).await.map(|report| report.text().to_string())
    };
    for path in PRIVATE {
        for (tool, input) in reads(path) {
            let read = run(tool, input.clone()).await;
            assert!(read.is_err(), "{tool} {input}: {read:?}");
        }
    }
    for (tool, input) in reads(cached) {
        let read = run(tool, input.clone()).await.unwrap_or_else(|error| panic!("{tool} {input}: {error}"));
        assert!(read.contains("old") || read.contains("start.py"), "{tool} {input}: {read}");
    }
    for (tool, input) in
        [("list_files", json!({"pattern": "**"})), ("search_files", json!({"pattern": "old"}))]
    {
        let read = run(tool, input.clone()).await.unwrap();
        assert!(read.contains("notes.txt"), "{tool}: {read}");
        assert!(!read.contains("trust.json") && !read.contains("config.toml"), "{tool}: {read}");
    }
    for command in ["grep -r old .", "grep -r old", "grep -r old state", "cat link/trust.json", "ls -R state"]
    {
        let verdict = project.judge("shell", json!({ "command": command }), ApprovalMode::ApproveAll).await;
        assert_eq!(verdict.decision, VerdictKind::Block, "{command}: {verdict:?}");
    }
}

#[tokio::test]
async fn only_a_setting_that_names_the_path_leaves_it_to_the_ordinary_rules() {
    let folder = tempfile::tempdir().unwrap();
    let settings = |paths: &[&str]| FilesystemSettings {
        allow_run_later: paths.iter().map(Into::into).collect(),
        ..FilesystemSettings::default()
    };
    let files = Filesystem::new("files", folder.path(), settings(&["AGENTS.md", ".github/workflows/ci.yml"]));
    let main = AgentSpec::new("main", "Work.").toolset("files").rule("*", Approval::PreApproved);
    let project = llm_do::Project::builder().agent(main).toolset(files.unwrap()).build().unwrap();
    let runtime = Runtime::builder(project).build().unwrap();
    for path in ["AGENTS.md", "./AGENTS.md", ".github/workflows/ci.yml"] {
        assert!(!asks_before_writing(&runtime, path).await, "{path}");
    }
    for path in ["agents.md", "docs/AGENTS.md", ".github/workflows/other.yml", "CLAUDE.md"] {
        assert!(asks_before_writing(&runtime, path).await, "{path}");
    }
    for wrong in ["*.md", ".github/", "", "/etc/x", "../AGENTS.md", "."] {
        let problem = Filesystem::new("files", folder.path(), settings(&[wrong])).err().unwrap();
        assert!(problem.to_string().contains("`allow_run_later` has"), "{wrong}: {problem}");
    }
}

/// A runtime in which writing files is pre-approved, in a project whose Python code is `tools.py`.
fn python_runtime(folder: &Path, approvals: &Approvals, replies: Vec<ScriptedReply>) -> Runtime {
    let files = Filesystem::new("files", folder, FilesystemSettings::default()).unwrap();
    let files = files.protect(&Protected::new(["tools.py"])).unwrap();
    let main = AgentSpec::new("main", "Work.").toolset("files").rule("*", Approval::PreApproved);
    let project = llm_do::Project::builder().agent(main).toolset(files).build().unwrap();
    Runtime::builder(project).model(Script::new(replies)).approver(approvals.clone()).build().unwrap()
}

async fn asks_before_writing(runtime: &Runtime, path: &str) -> bool {
    let input = json!({"path": path, "content": "x = 1\n", "create_directories": true});
    let verdict = runtime.run("write_file", input).as_agent("main").judge().await;
    assert_ne!(verdict.decision, VerdictKind::CannotBeDone, "{path}: {verdict:?}");
    verdict.decision == VerdictKind::Ask
}

#[tokio::test]
async fn what_python_code_would_import_asks_and_other_sources_do_not() {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in [
        (
            "tools.py",
            "import helpers, os\nfrom pkg import inner\n\ndef f():\n    from lazy import thing\n    import deep.er\n",
        ),
        ("helpers.py", "import second\n"),
        ("pkg/__init__.py", "from .sibling import (\n    x,\n)\n"),
        (".venv/lib/python3.12/site-packages/requests/__init__.py", ""),
    ] {
        write(folder.path(), path, text);
    }
    let runtime = python_runtime(folder.path(), &Approvals::new([]), Vec::new());
    for path in [
        "tools.py",
        "helpers.py",
        "Helpers.PY",
        "second.py",
        "second/__init__.py",
        "second.cpython-312-x86_64-linux-gnu.so",
        "pkg/__init__.py",
        "pkg/inner.py",
        "pkg/inner/__init__.py",
        "pkg/sibling.py",
        "lazy.py",
        "lazy/thing.py",
        "deep/er.py",
        "os.py",
        "json.py",
        "json/__init__.py",
        "requests.py",
    ] {
        assert!(asks_before_writing(&runtime, path).await, "{path}");
    }
    for path in [
        "other.py",
        "pkg/unused.py",
        "src/json.py",
        "helpers.txt",
        "tests/test_helpers.py",
        "conftest.py",
        "flask.py",
    ] {
        assert!(!asks_before_writing(&runtime, path).await, "{path}");
    }
}

#[tokio::test]
async fn beside_code_that_imports_by_name_every_module_asks() {
    let folder = tempfile::tempdir().unwrap();
    let text = "import importlib, plugins\nfor name in open('list'):\n    importlib.import_module(name)\n";
    write(folder.path(), "tools.py", text);
    write(folder.path(), "plugins/__init__.py", "");
    let runtime = python_runtime(folder.path(), &Approvals::new([]), Vec::new());
    for path in ["other.py", "plugins/new.py", "elsewhere/plugins.py"] {
        assert!(asks_before_writing(&runtime, path).await, "{path}");
    }
    assert!(!asks_before_writing(&runtime, "src/app.py").await);
}

#[tokio::test]
async fn an_agent_that_edits_50_sources_of_a_python_project_is_asked_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "tools.py", "import helpers\n\ndef f():\n    return helpers.x\n");
    write(folder.path(), "helpers.py", "x = 1\n");
    let directories = ["", "src/shop/", "tests/", "shop/"];
    let source = |number: usize| format!("{}module_{number}.py", directories[number % directories.len()]);
    let edit = |number: usize| {
        write(folder.path(), &source(number), "x = 1\n");
        asks("edit_file", json!({"path": source(number), "edits": [{"old": "1", "new": "2"}]}))
    };
    let approvals = Approvals::new([]);
    let replies = (0..50).map(edit).chain([says("done")]).collect();
    let runtime = python_runtime(folder.path(), &approvals, replies);
    let run = TestRun::of(runtime.run("main", "go").await);
    assert_eq!(&*run.answer(), "done", "{run:?}");
    assert_eq!(approvals.requests().len(), 0);
    for number in 0..50 {
        assert_eq!(fs::read_to_string(folder.path().join(source(number))).unwrap(), "x = 2\n");
    }
}

#[needs(python)]
#[tokio::test]
async fn what_python_has_imported_by_a_name_that_it_made_up_asks() {
    let folder = tempfile::tempdir().unwrap();
    let code = "found = __builtins__['__im' + 'port__']('hidden.plug')\ndef f(): pass\nTOOLS = [f]\n";
    let header =
        "name: main\nmodel: test:echo\ntoolsets: [filesystem_project]\napproval: {'*': pre_approved}\n";
    for (path, text) in [
        (
            "project.yaml",
            "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\npython_files: [tools.py]\n",
        ),
        ("main.agent", &*format!("---\n{header}---\nWork.\n")),
        ("tools.py", code),
        ("hidden/plug.py", ""),
        ("hidden/other.py", ""),
    ] {
        write(folder.path(), path, text);
    }
    let project = llm_do::loader(folder.path())
        .trust(llm_do::project::TrustPolicy::All)
        .load()
        .unwrap_or_else(|problems| panic!("{problems}"));
    let runtime = project.runtime().build().unwrap();
    assert!(asks_before_writing(&runtime, "hidden/plug.py").await);
    assert!(!asks_before_writing(&runtime, "hidden/other.py").await);
}

#[needs(python)]
#[tokio::test]
async fn the_file_of_a_class_that_an_agent_names_asks() {
    let folder = tempfile::tempdir().unwrap();
    let header = "name: main\nmodel: test:echo\ntoolsets: [filesystem_project]\napproval: {'*': pre_approved}\n\
        input_model_ref: forms.py:Form\n";
    let form = "import fields\nfrom llm_do.runtime import AgentArgs\nclass Form(AgentArgs):\n    text: str\n    \
        def prompt_messages(self):\n        return [self.text]\n";
    for (path, text) in [
        ("project.yaml", "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\n"),
        ("main.agent", &*format!("---\n{header}---\nWork.\n")),
        ("forms.py", form),
        ("fields.py", ""),
    ] {
        write(folder.path(), path, text);
    }
    let project = llm_do::loader(folder.path())
        .trust(llm_do::project::TrustPolicy::All)
        .load()
        .unwrap_or_else(|problems| panic!("{problems}"));
    let runtime = project.runtime().build().unwrap();
    for path in ["forms.py", "fields.py"] {
        assert!(asks_before_writing(&runtime, path).await, "{path}");
    }
}
