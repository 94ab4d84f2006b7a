//! The directories of the binary itself: no tool reaches them, whatever is approved.

use std::fs;

use crate::support::{Ran, Sandbox};

const WRITTEN: [&str; 3] =
    ["state/llm-do/trust.json", "config/llm-do/config.toml", "cache/llm-do/python/x.py"];
const READ: [&str; 2] = ["state/llm-do/trust.json", "config/llm-do/config.toml"];

#[test]
fn no_mode_lets_a_tool_reach_state_configuration_or_cache() {
    let mut replies = String::from("mode: by_turn\nreplies:\n");
    for path in WRITTEN {
        replies += &format!("  - ask: {{write_file: {{path: {path}, content: evil}}}}\n");
    }
    for path in READ {
        replies += &format!("  - ask: {{read_file: {{path: {path}}}}}\n");
    }
    replies += "  - say: the end\n";
    let header =
        "name: main\nmodel: script:script.yaml\ntoolsets: [filesystem_cwd]\napproval: {'*': pre_approved}\n";
    let sandbox = Sandbox::new()
        .file("project.yaml", "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\n")
        .file("main.agent", &format!("---\n{header}---\nWork.\n"))
        .file("script.yaml", &replies);
    for path in WRITTEN {
        let path = sandbox.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if !path.exists() {
            // Valid TOML, since the program reads its own configuration.
            fs::write(path, "# canary\n").unwrap();
        }
    }
    let before = WRITTEN.map(|path| fs::read_to_string(sandbox.home().join(path)).unwrap());
    for mode in ["all", "none"] {
        let mut command =
            sandbox.command(&["run", "../project", "go", "--trust", "--approve", mode, "--output", "jsonl"]);
        command.current_dir(sandbox.home());
        command.env("XDG_CONFIG_HOME", sandbox.home().join("config"));
        command.env("XDG_CACHE_HOME", sandbox.home().join("cache"));
        let output = command.output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let finished = stdout.lines().filter(|line| line.contains("\"call_finished\""));
        let refused = finished.filter(|line| line.contains("belongs to llm-do itself")).count();
        assert_eq!(refused, WRITTEN.len() + READ.len(), "{mode}: {stdout}");
        assert!(!stdout.contains("canary"), "{mode}: {stdout}");
        let after = WRITTEN.map(|path| fs::read_to_string(sandbox.home().join(path)).unwrap());
        assert_eq!(after, before, "{mode}");
    }
}

#[test]
fn no_tool_reaches_a_record_that_the_user_put_into_the_project() {
    let files = ["runs.db", "runs.db-wal", "runs.db-shm", "runs.db-journal", "runs.db-claims/x"];
    let mut replies = String::from("mode: by_turn\nreplies:\n");
    for path in files {
        replies += &format!("  - ask: {{write_file: {{path: {path}, content: evil}}}}\n");
    }
    replies += "  - ask: {read_file: {path: runs.db}}\n  - ask: {shell: {command: cat runs.db-wal}}\n  - say: the end\n";
    let header = "name: main\nmodel: script:script.yaml\ntoolsets: [filesystem_project, shell_readonly]\n\
                  approval: {'*': pre_approved}\n";
    let sandbox = Sandbox::new()
        .file("main.agent", &format!("---\n{header}---\nWork.\n"))
        .file("script.yaml", &replies);
    let refused = |ran: &Ran| {
        let finished = ran.stdout.lines().filter(|line| line.contains("\"call_finished\""));
        finished.filter(|line| line.contains("llm-do itself")).count()
    };
    let arguments = ["run", ".", "go", "--trust", "--approve", "all", "--output", "jsonl"];
    let by_flag = sandbox.run(&[&arguments[..], &["--record", "runs.db"]].concat()).ended(0);
    assert_eq!(refused(&by_flag), files.len() + 2, "{by_flag:#?}");
    let by_variable: Ran =
        sandbox.command(&arguments).env("LLM_DO_RECORD", "runs.db").output().unwrap().into();
    assert_eq!(refused(&by_variable), files.len() + 2, "{by_variable:#?}");
    let listed = sandbox.run(&["runs", "--record", "runs.db", "--output", "json"]).ended(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
}
