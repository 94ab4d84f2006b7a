//! Limits that hold if nobody sets any: a project or a model that wants too much ends with an error, not with the machine.

use std::process::Stdio;

use crate::support::Sandbox;

#[test]
fn a_template_that_doubles_a_text_ends_with_an_error_that_names_the_key() {
    let doubling = "{% set a = a ~ a %}".repeat(30);
    let agent = format!(
        "---\nname: main\nmodel: test:echo\ntemplate: true\n---\n{{% set a = input %}}{doubling}{{{{ a }}}}\n"
    );
    let sandbox = Sandbox::new().file("main.agent", &agent);
    sandbox
        .run(&["run", ".", "0123456789"])
        .ended(2)
        .told("larger than 1048576 bytes")
        .told("`runtime.max_template_bytes`");
}

#[test]
fn a_model_that_forks_without_end_is_stopped() {
    let prompts: Vec<String> = (0..10).map(|n| format!("part {n}")).collect();
    let fork = serde_json::json!({"ask": {"fork": {"prompts": prompts}}});
    let script = serde_json::json!({"mode": "by_turn", "replies": vec![fork; 100]});
    let sandbox = Sandbox::new()
        .file("main.agent", "---\nname: main\nmodel: script:script.yaml\ntoolsets: [process]\n---\nx\n")
        .file("script.yaml", &script.to_string());
    let ran = sandbox.run(&["run", ".", "go", "--approve", "all"]).ended(4);
    ran.told("the limit of 1000 model requests set by the run").told("`runtime.limits.requests`");
}

/// Calls that read 1.5 GB at once took 5 GB.
#[cfg(target_os = "linux")]
#[test]
fn a_hundred_reads_at_once_take_a_bounded_memory() {
    let calls: Vec<serde_json::Value> = (0..100)
        .map(|n| serde_json::json!({"name": "read_file", "arguments": {"path": format!("f{n}.txt")}}))
        .collect();
    let script =
        serde_json::json!({"mode": "by_turn", "replies": [{"ask": calls}, {"say": "done", "delay": "60s"}]});
    let mut sandbox = Sandbox::new()
        .file(
            "main.agent",
            "---\nname: main\nmodel: script:script.yaml\ntoolsets: [filesystem_project]\n---\nx\n",
        )
        .file("script.yaml", &script.to_string());
    let line = format!("{}\n", "x".repeat(99)).repeat(150_000);
    for n in 0..100 {
        sandbox = sandbox.file(&format!("f{n}.txt"), &line);
    }
    let mut command = sandbox.command(&["run", ".", "go", "--output", "jsonl"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // The second request comes when all results are there.
    let mut events = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    let mut requests = 0;
    while requests < 2 {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut events, &mut line).unwrap() > 0, "the run ended too early");
        requests += usize::from(line.contains("\"model_request\""));
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 1_500_000, "{kilobytes} kB");
}

#[test]
fn the_hint_of_a_limit_names_what_set_it() {
    let script = "mode: by_turn\nreplies:\n  - ask: {list_files: {}}\n  - say: done\n    delay: 3s\n";
    let header = "---\nname: main\nmodel: script:script.yaml\ntoolsets: [filesystem_project]\n---\nx\n";
    let hint = |limits: &str, arguments: &[&str]| {
        let manifest = format!(
            "version: 1\nentry: {{agent: main}}\nagent_files: [main.agent]\nruntime: {{limits: {{{limits}}}}}\n"
        );
        let sandbox = Sandbox::new()
            .file("project.yaml", &manifest)
            .file("main.agent", header)
            .file("script.yaml", script);
        let ran = sandbox.run(&[&["run", ".", "go"], arguments].concat());
        let hint = ran.stderr.lines().find_map(|line| line.strip_prefix("hint: "));
        hint.unwrap_or_else(|| panic!("{ran:#?}")).to_owned()
    };
    let flag = |name: &str| format!("`{name}` sets the limit");
    assert_eq!(hint("", &["--max-tokens", "10"]), flag("--max-tokens"));
    assert_eq!(hint("tokens: 1000000", &["--max-tokens", "10"]), flag("--max-tokens"));
    assert_eq!(hint("tokens: 10", &[]), flag("runtime.limits.tokens"));
    assert_eq!(hint("tokens: 10", &["--max-tokens", "1000000"]), flag("runtime.limits.tokens"));
    assert_eq!(hint("", &["--max-turns", "1"]), flag("--max-turns"));
    assert!(!hint("turns: 1", &["--max-turns", "7"]).contains("--max"));
    assert_eq!(hint("", &["--timeout", "300ms"]), flag("--timeout"));
}

#[test]
fn a_negative_limit_is_a_wrong_value_and_no_unknown_flag() {
    let sandbox = Sandbox::echo();
    sandbox.run(&["run", ".", "go", "--max-cost", "-1"]).ended(2).told("must be positive");
    sandbox
        .run(&["run", ".", "go", "--max-tokens", "-1"])
        .ended(2)
        .told("invalid value '-1' for '--max-tokens <N>'");
    sandbox.run(&["run", ".", "go", "--timeout", "-1"]).ended(2).told("a time must be more than nothing");
}
