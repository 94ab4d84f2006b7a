//! The `.env` of a project: it brings keys and settings of the project, and chooses neither programs nor addresses.

use std::collections::BTreeSet;

use crate::support::{Ran, Sandbox};

/// Variables that a project could turn against whoever runs it.
const LOADER_NAMES: &[&str] = &[
    "ALL_PROXY",
    "BASH_ENV",
    "CONDA_PREFIX",
    "CURL_CA_BUNDLE",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "EDITOR",
    "ENV",
    "GIT_ASKPASS",
    "GIT_CONFIG_GLOBAL",
    "GIT_DIR",
    "GIT_EXEC_PATH",
    "GIT_SSH_COMMAND",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LLM_DO_CHILD",
    "LLM_DO_MODEL",
    "LLM_DO_TRUST",
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "NO_PROXY",
    "PAGER",
    "PERL5LIB",
    "PERL5OPT",
    "PIP_INDEX_URL",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "REQUESTS_CA_BUNDLE",
    "RUBYLIB",
    "RUBYOPT",
    "SHELL",
    "SSLKEYLOGFILE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "USER",
    "UV_INDEX_URL",
    "VIRTUAL_ENV",
    "VISUAL",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Variables of the project itself.
const OWN_NAMES: &[&str] = &["ACME_REGION", "DATABASE_URL", "DEBUG", "GREETING", "LOG_LEVEL"];

/// A project whose tool prints the names of the variables with a marked value, and one value.
fn project() -> Sandbox {
    let code = "import os\n\
                def seen(text: str) -> str:\n    'Looks.'\n    names = sorted(n for n, v in os.environ.items() if 'from-dotenv' in v)\n    \
                return ' '.join(names)\n\
                def value(text: str) -> str:\n    'Looks.'\n    return os.environ.get(text, 'unset')\nTOOLS = [seen, value]\n";
    Sandbox::new()
        .file(
            "project.yaml",
            "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\npython_files: [tools.py]\n",
        )
        .file("main.agent", "---\nname: main\nmodel: test:echo\ntools: [seen, value]\n---\nEcho.\n")
        .file("tools.py", code)
}

fn call(sandbox: &Sandbox, tool: &str, text: &str) -> Ran {
    let input = format!("{{\"text\": \"{text}\"}}");
    let mut command = sandbox.command(&["call", ".", tool, "--input-json", &input, "--approve", "all"]);
    command.env("CANARY", "the-users-own-value").output().unwrap().into()
}

#[test]
fn code_gets_the_variables_of_the_project_and_none_that_choose_programs_or_addresses() {
    let names = LOADER_NAMES.iter().chain(OWN_NAMES);
    let text: String = names.map(|name| format!("{name}=from-dotenv\n")).collect();
    let sandbox = project().file(".env", &text);
    let ran = call(&sandbox, "seen", "x").ended(0);
    let seen: BTreeSet<&str> = ran.stdout.split_whitespace().collect();
    assert_eq!(seen, OWN_NAMES.iter().copied().collect());
}

#[test]
fn a_variable_of_the_user_wins_and_is_never_inserted_into_another() {
    let sandbox = project().file(".env", "CANARY=other\nA=${CANARY}\nB=\"$CANARY\"\n");
    call(&sandbox, "value", "CANARY").ended(0).said("the-users-own-value\n");
    call(&sandbox, "value", "A").ended(0).said("${CANARY}\n");
    call(&sandbox, "value", "B").ended(0).said("$CANARY\n");
}

#[test]
fn a_wrong_line_is_named_without_its_value() {
    let ran = call(&project().file(".env", "A=1\nSECRET=\"hunter2\n"), "seen", "x");
    let ran = ran.ended(2).told("line 2 is wrong (`SECRET`)");
    assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
}

#[test]
fn a_project_chooses_neither_the_default_model_nor_an_address_of_a_provider() {
    let sandbox = Sandbox::new()
        .file("main.agent", "---\nname: main\n---\nEcho.\n")
        .file(".env", "LLM_DO_MODEL=test:echo\nOLLAMA_HOST=http://elsewhere.example\nOPENAI_BASE_URL=http://elsewhere.example\n");
    sandbox.run(&["run", ".", "hello"]).ended(2).told("no model");
    let listed = sandbox.run(&["models", "."]).ended(0);
    assert!(!listed.stdout.contains("elsewhere"), "{listed:?}");
}

#[test]
#[cfg(unix)]
fn a_link_or_a_pipe_is_not_read_and_does_not_hang() {
    let sandbox = project().file("../elsewhere", "GREETING=from-dotenv\n");
    std::os::unix::fs::symlink("../elsewhere", sandbox.path(".env")).unwrap();
    call(&sandbox, "seen", "x").ended(0).said("\n").told(".env` is not read: it is a link");
    std::fs::remove_file(sandbox.path(".env")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(sandbox.path(".env")).status().unwrap();
    assert!(made.success());
    call(&sandbox, "seen", "x").ended(0).said("\n").told("it is not a regular file");
}

#[test]
fn a_provider_key_in_a_dot_env_counts_only_after_somebody_agreed_to_it() {
    let sandbox = Sandbox::untrusted()
        .file("main.agent", "---\nname: main\nmodel: openai:gpt-5\n---\nAnswer.\n")
        .file(".env", "OPENAI_API_KEY=key-of-the-author\n");
    let refused = sandbox.run(&["run", ".", "hello"]).ended(2).told("OPENAI_API_KEY");
    let keys = |ran: &Ran| {
        ran.stdout.lines().find(|line| line.trim_start().starts_with("openai ")).unwrap().to_owned()
    };
    let before = sandbox.command(&["models", "."]).env_remove("OPENAI_API_KEY").output().unwrap().into();
    assert!(keys(&before).contains("not set"), "{before:?}");
    let start = refused.stderr.find("--trust=").unwrap() + "--trust=".len();
    sandbox.run(&["trust", ".", "--expect", &refused.stderr[start..start + 12]]).ended(0);
    let after = sandbox.command(&["models", "."]).env_remove("OPENAI_API_KEY").output().unwrap().into();
    assert!(keys(&after).contains("set in .env"), "{after:?}");
}
