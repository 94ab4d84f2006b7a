//! Names of files that other programs run without a person doing anything for it.
//!
//! Git, shells, editors, desktops, CI servers, Python and other agents read these files by themselves: on the next
//! command in the directory, login, push or start. What a person starts to build or test (`Makefile`, `package.json`,
//! `conftest.py`) is not among them: whoever starts a build reads what changed, and a coding agent has to write them.
//!
//! Names are compared in folded letters ([`super::protected`]), wherever the file is.

use std::path::{Component, Path};

/// Why a file is protected.
type Reason = &'static str;

/// Names of files, with what they decide about.
const NAMES: &[(Reason, &[&str])] = &[
    (GIT, &[".gitattributes", ".gitmodules", ".gitconfig"]),
    (PROJECT, &["project.json", "project.yaml", "project.yml", "project.toml"]),
    (ENVIRONMENT, &[".env", ".envrc", ".pam_environment"]),
    (
        VERSIONS,
        &["mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", ".rtx.toml", ".tool-versions"],
    ),
    (MCP, &["mcp.json", ".mcp.json"]),
    (
        HOOKS,
        &[
            ".pre-commit-config.yaml",
            ".pre-commit-config.yml",
            "lefthook.yml",
            "lefthook.yaml",
            "lefthook.toml",
            "lefthook.json",
            ".lefthook.yml",
            ".lefthook.yaml",
            ".lefthook.toml",
            ".lefthook.json",
            "lefthook-local.yml",
            "lefthook-local.yaml",
            ".lefthook-local.yml",
            ".lefthook-local.yaml",
            ".overcommit.yml",
            ".huskyrc",
            ".huskyrc.js",
            ".huskyrc.json",
            ".simple-git-hooks.json",
            ".simple-git-hooks.js",
            ".simple-git-hooks.cjs",
            "simple-git-hooks.json",
            ".rusty-hook.toml",
        ],
    ),
    (
        CI,
        &[
            ".gitlab-ci.yml",
            ".gitlab-ci.yaml",
            ".travis.yml",
            "azure-pipelines.yml",
            "azure-pipelines.yaml",
            "bitbucket-pipelines.yml",
            "jenkinsfile",
            ".drone.yml",
            ".drone.yaml",
            ".woodpecker.yml",
            ".woodpecker.yaml",
            "appveyor.yml",
            ".appveyor.yml",
            "cloudbuild.yaml",
            "cloudbuild.yml",
            "buildspec.yml",
            "buildspec.yaml",
            ".cirrus.yml",
            ".build.yml",
            ".drone.star",
            "wercker.yml",
        ],
    ),
    (
        SHELL,
        &[
            ".bashrc",
            ".bash_aliases",
            ".bash_login",
            ".bash_logout",
            ".bash_profile",
            ".profile",
            ".zshrc",
            ".zshenv",
            ".zprofile",
            ".zlogin",
            ".zlogout",
            ".kshrc",
            ".mkshrc",
            ".cshrc",
            ".tcshrc",
            ".login",
            ".logout",
            ".inputrc",
            ".lessfilter",
            ".lesskey",
            ".bash_completion",
            ".autoenv",
            ".in",
            "config.fish",
            ".selected_editor",
            ".antigenrc",
            ".p10k.zsh",
            ".fzf.bash",
            ".fzf.zsh",
        ],
    ),
    (
        EDITOR,
        &[
            ".vimrc",
            ".gvimrc",
            ".ideavimrc",
            ".exrc",
            ".nvimrc",
            ".nvim.lua",
            ".emacs",
            ".emacs.el",
            ".spacemacs",
            ".dir-locals.el",
            ".dir-locals-2.el",
            ".lvimrc",
            ".vimrc.local",
        ],
    ),
    (
        DESKTOP,
        &[
            ".xprofile",
            ".xinitrc",
            ".xsession",
            ".xsessionrc",
            ".xserverrc",
            ".tmux.conf",
            ".screenrc",
            ".wezterm.lua",
        ],
    ),
    (
        TOOL_START,
        &[
            ".gdbinit",
            ".lldbinit",
            ".pdbrc",
            ".irbrc",
            ".rprofile",
            ".psqlrc",
            ".sqliterc",
            ".curlrc",
            ".wgetrc",
            ".hgrc",
            ".pryrc",
            ".pythonrc",
            ".pythonrc.py",
            ".ghci",
            ".perldb",
            ".mailcap",
            ".muttrc",
            ".procmailrc",
            ".forward",
            ".tmuxinator.yml",
            ".renviron",
            ".iex.exs",
            ".ocamlinit",
            ".erlang",
            ".guile",
            ".utoprc",
            ".lldbinit-xcode",
            ".terraformrc",
        ],
    ),
    (PYTHON, &["sitecustomize.py", "usercustomize.py", "pyvenv.cfg"]),
    (CONTAINER, &[".devcontainer.json", ".gitpod.yml", ".replit"]),
    (
        INSTRUCTIONS,
        &[
            "agents.md",
            "agents.override.md",
            "claude.md",
            "claude.local.md",
            "gemini.md",
            "copilot-instructions.md",
            ".cursorrules",
            ".windsurfrules",
            ".clinerules",
            ".goosehints",
            ".aider.conf.yml",
            ".roomodes",
            ".kilocodemodes",
            ".rules",
            "qwen.md",
            "warp.md",
            "opencode.json",
            "opencode.jsonc",
            "crush.json",
            ".crush.json",
        ],
    ),
];

/// Directories all of whose files are protected. A short name of `.git` on some file systems is another name for it.
const DIRECTORIES: &[(Reason, &[&str])] = &[
    (GIT, &[".git", "git~1"]),
    (VERSION_CONTROL, &[".hg", ".jj", ".sl", ".bzr"]),
    (RECORD, &[".llm-do"]),
    (HOOKS, &[".husky", ".githooks", ".trunk"]),
    (CI, &[".circleci", ".buildkite", ".woodpecker", ".semaphore", ".teamcity", ".tekton", ".gitlab"]),
    (
        EDITOR,
        &[
            ".vscode",
            ".vscode-server",
            ".idea",
            ".fleet",
            ".zed",
            ".helix",
            ".vim",
            ".emacs.d",
            ".spacemacs.d",
            ".doom.d",
            ".theia",
        ],
    ),
    (CONTAINER, &[".devcontainer", ".gitpod", ".idx"]),
    (
        INSTRUCTIONS,
        &[
            ".claude",
            ".cursor",
            ".windsurf",
            ".codex",
            ".gemini",
            ".clinerules",
            ".continue",
            ".roo",
            ".kiro",
            ".kilocode",
            ".amazonq",
            ".junie",
            ".trae",
            ".augment",
            ".qwen",
            ".opencode",
            ".crush",
            ".agents",
        ],
    ),
    (SHELL, &[".oh-my-zsh", ".nvm", ".asdf", ".rvm", ".sdkman", ".pyenv", ".rbenv"]),
    (DESKTOP, &[".kde", ".fvwm"]),
    (TOOL_START, &[".ipython", ".jupyter", ".hammerspoon", ".gnupg", ".kube", ".aws"]),
    (SSH, &[".ssh"]),
    (PYTHON, &["__pycache__", ".venv", "site-packages", "dist-packages"]),
];

/// Paths whose components follow one another: a directory with all of its files, or one file.
const PATHS: &[(Reason, &[&str])] = &[
    (CI, &[".github/workflows", ".github/actions", ".gitea/workflows", ".forgejo/workflows"]),
    (
        INSTRUCTIONS,
        &[
            ".github/instructions",
            ".github/agents",
            ".github/prompts",
            ".github/hooks",
            ".github/chatmodes",
            ".github/skills",
        ],
    ),
    (
        PROGRAMS,
        &[
            "node_modules/.bin",
            ".local/bin",
            ".cargo/bin",
            ".deno/bin",
            ".bun/bin",
            ".dotnet/tools",
            ".krew/bin",
        ],
    ),
    (CARGO, &[".cargo/config.toml", ".cargo/config"]),
    (GIT, &[".config/git"]),
    (VERSIONS, &[".config/mise", ".config/direnv", ".mise", "mise/config.toml", "mise/tasks"]),
    (SHELL, &[".cargo/env", ".config/fish", ".config/nushell", ".config/powershell"]),
    (EDITOR, &[".config/nvim", ".config/emacs", ".config/helix", ".config/zed"]),
    (
        DESKTOP,
        &[
            ".config/systemd",
            ".local/share/systemd",
            ".config/autostart",
            ".config/autostart-scripts",
            ".config/plasma-workspace",
            ".config/environment.d",
            ".local/share/applications",
            ".local/share/dbus-1",
            "library/launchagents",
        ],
    ),
    (TOOL_START, &[".julia/config", ".docker/cli-plugins", ".docker/config.json", ".gradle/init.d"]),
    // What is left of the user's own configuration and data: too many programs run what they find there to name each.
    (USER, &[".config", ".local/share"]),
];

/// Endings of names.
const ENDINGS: &[(Reason, &[&str])] = &[
    (PROJECT, &[".agent", ".worker"]),
    (PYTHON, &[".pth", "._pth", ".pyc"]),
    (EDITOR, &[".code-workspace"]),
    (DESKTOP, &[".desktop"]),
];

const GIT: Reason = "it belongs to git and can make later git commands run programs";
const VERSION_CONTROL: Reason = "it belongs to a version control system, whose commands run what it names";
const PROJECT: Reason = "it decides what the agents of a project may do";
const ENVIRONMENT: Reason = "it sets the environment of later runs";
const VERSIONS: Reason = "it decides which programs and variables shells use in this directory";
const MCP: Reason = "it decides which MCP servers are started";
const HOOKS: Reason = "git runs what it names at the next commit or push";
const CI: Reason = "a CI server runs what it says after the next push";
const SHELL: Reason = "shells run it when they start";
const EDITOR: Reason = "editors run what it says when they open the directory";
const DESKTOP: Reason = "the session or desktop starts what it names";
const TOOL_START: Reason = "a program runs it when it starts";
const PYTHON: Reason = "Python runs it, or finds modules by it, when it starts";
const CONTAINER: Reason = "editors start containers and commands by it";
const INSTRUCTIONS: Reason = "it instructs the next agent that works in this directory";
const SSH: Reason = "it decides who may log in, and what ssh runs";
const PROGRAMS: Reason = "shells and package scripts find programs there by name";
const USER: Reason = "programs of the user read it when they start";
const CARGO: Reason = "it decides which programs cargo runs";
const RECORD: Reason = "llm-do keeps its records there";

/// Says why a file is protected by its name or by that of a directory on the way to it. The path is folded.
pub(super) fn reason(path: &Path) -> Option<Reason> {
    by_directory(path).or_else(|| by_path(path)).or_else(|| by_name(path))
}

fn by_directory(path: &Path) -> Option<Reason> {
    path.components().find_map(|part| find(DIRECTORIES, part.as_os_str().to_str()?))
}

fn by_path(path: &Path) -> Option<Reason> {
    let parts: Vec<&str> = path.components().filter_map(normal).collect();
    let is_on_the_way = |wanted: &&str| {
        let wanted: Vec<&str> = wanted.split('/').collect();
        parts.windows(wanted.len()).any(|window| *window == *wanted)
    };
    let found = PATHS.iter().find(|(_, paths)| paths.iter().any(is_on_the_way));
    found.map(|(reason, _)| *reason)
}

fn normal(part: Component<'_>) -> Option<&str> {
    match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    }
}

fn by_name(path: &Path) -> Option<Reason> {
    let name = path.file_name()?.to_str()?;
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let ending = || ENDINGS.iter().find(|(_, endings)| ends(endings)).map(|(reason, _)| *reason);
    let environment = || name.starts_with(".env.").then_some(ENVIRONMENT);
    let of_mise = name.trim_start_matches('.').starts_with("mise.") && name.ends_with(".toml");
    let versions = || of_mise.then_some(VERSIONS);
    find(NAMES, name).or_else(ending).or_else(environment).or_else(versions)
}

fn find(table: &[(Reason, &[&str])], name: &str) -> Option<Reason> {
    table.iter().find(|(_, names)| names.contains(&name)).map(|(reason, _)| *reason)
}

/// Returns the reason for files of a virtual environment, by whatever name its directory has.
pub(super) fn in_virtual_environment(path: &Path) -> Option<Reason> {
    let mut directories = path.ancestors().skip(1);
    directories.any(|directory| directory.join("pyvenv.cfg").is_file()).then_some(PYTHON)
}
