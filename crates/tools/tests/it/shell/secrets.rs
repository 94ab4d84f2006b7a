//! Secrets of this process: no program sees them, and nothing that is said holds them.

use std::process::Command;

use llm_do_testing::{TestCall, TestReply};
use serde_json::json;

use crate::shell::support::{Folder, assess, read_only, run, trusting};

const CANARY: &str = "canary-51d0-secret";

/// Names as keys have them, and names that tell nothing.
const VARIABLES: [&str; 12] = [
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GITHUB_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "DATABASE_URL",
    "HTTPS_PROXY",
    "LD_CANARY",
    "GIT_CANARY",
    "LESSOPEN",
    "PLAIN",
    "RIPGREP_CONFIG_PATH",
    "LLM_DO_CANARY",
];

/// Everything that a call says, to whomever.
fn all(reply: &TestReply) -> String {
    format!("{:?} {:?}", reply.reply(), reply.remarks())
}

/// Runs in a process of its own, whose environment holds the canaries.
#[tokio::test]
#[ignore = "started by the test below"]
async fn worker() {
    let held = std::env::vars().filter(|(_, value)| value.contains(CANARY)).count();
    assert_eq!(held, VARIABLES.len(), "the canaries are there to be seen");
    let folder = Folder::new();
    folder.file("script", "env; cat /proc/self/environ; cat /proc/$$/environ; set; sleep 2");
    folder.git("root", &["init", "-q", "."]);
    let programs = ["env", "printenv", "bash", "cat", "git", "no-such-program", "sleep"];
    let trusted = trusting(&folder.root(), &programs, |_| ()).await;
    let careful = read_only(&folder.root()).await;
    let mut said = Vec::new();
    for command in [
        "env",
        "printenv",
        "bash script",
        "cat /proc/self/environ",
        "env | cat",
        "git config --list --show-origin",
        "git var -l",
        "no-such-program",
        "cat missing",
        "bash -c 'exit 3'",
        "ls > x",
        "./x",
    ] {
        said.push(all(&run(&trusted, command).await));
    }
    for command in ["git status", "git log", "cat ../x", "rm x", "ls $ANTHROPIC_API_KEY", "echo $(env)"] {
        said.push(format!("{:?}", assess(&careful, command).await));
        said.push(all(&run(&careful, command).await));
    }
    let late = json!({"command": "bash script", "timeout": 1});
    said.push(all(&TestCall::new().run(trusted, late).await));
    assert!(said.iter().any(|text| text.contains("PATH=/usr/local/bin")), "the environment was printed");
    for text in said {
        assert!(!text.contains(CANARY), "{text}");
    }
}

#[test]
fn no_secret_of_this_process_reaches_a_program_or_an_error() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["shell::secrets::worker", "--exact", "--include-ignored", "--nocapture"])
        .envs(VARIABLES.map(|name| (name, format!("{CANARY}-{name}"))))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
