//! A run that is killed takes its programs with it, also those that left their group, session and parent.

use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::support::Sandbox;

/// Programs that run for a time that no other test waits for, and how they try to get away.
const COMMANDS: [&str; 4] = [
    "sleep TIME",
    "setsid -w sleep TIME",
    "sh -c '(setsid sleep TIME &); sleep TIME'",
    "sh -c 'env -i setsid sh -c \"(sleep TIME &); sleep TIME\" & sleep TIME'",
];

/// A time by which the programs of one run are recognized.
fn next_time() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("7{:05}.{}", std::process::id() % 100_000, 100 + COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Starts a run whose model asks for a command.
fn started(sandbox: &Sandbox) -> Child {
    let mut command = sandbox.command(&["run", ".", "hello", "--trust", "--approve", "all"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn shell(command: &str) -> Sandbox {
    let rules = ["sleep", "setsid", "sh"].map(|program| {
        format!("{{program: {program}, approval: pre_approved, allow_flags: [\"*\"], operands: text}}")
    });
    let agent = format!(
        "---\nname: main\nmodel: script:script.yaml\ntoolsets:\n  - shell_file_ops: {{rules: [{}]}}\n---\nx",
        rules.join(", ")
    );
    let script = serde_json::json!({"mode": "by_turn", "replies": [
        {"ask": {"shell": {"command": command, "timeout": 100}}}, {"say": "done"},
    ]});
    Sandbox::new().file("main.agent", &agent).file("script.yaml", &script.to_string())
}

/// The programs that run for a time.
fn alive(time: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let lines = entries.filter_map(|path| Some((std::fs::read(path.join("cmdline")).ok()?, path)));
    let sleeping = lines
        .filter(|(line, _)| line.starts_with(b"sleep\0") && String::from_utf8_lossy(line).contains(time));
    sleeping.map(|(_, path)| path.display().to_string()).collect()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn no_program_of_the_shell_outlives_a_run_that_is_killed() {
    for command in COMMANDS {
        let time = next_time();
        let sandbox = shell(&command.replace("TIME", &time));
        let child = started(&sandbox);
        let count = command.matches("TIME").count();
        until("the programs did not start", || alive(&time).len() == count);
        kill(child);
        until(&format!("`{command}` outlived its run"), || alive(&time).is_empty());
    }
}

/// `LLM_DO_KILLS` sets how many runs are killed, each at another moment.
#[test]
fn no_program_outlives_a_run_that_is_killed_at_any_moment() {
    let kills: u64 = std::env::var("LLM_DO_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(8);
    for number in 0..kills {
        let time = next_time();
        let command = COMMANDS[usize::try_from(number).unwrap() % COMMANDS.len()].replace("TIME", &time);
        let sandbox = shell(&command);
        let child = started(&sandbox);
        // From before the first program is started until all of them are.
        std::thread::sleep(Duration::from_millis(30 + number * 37 % 290));
        kill(child);
        // Whoever is about to be started is seen a moment later.
        std::thread::sleep(Duration::from_millis(100));
        until(&format!("`{command}` outlived its run"), || alive(&time).is_empty());
    }
}

#[test]
fn no_process_of_python_code_outlives_a_run_that_is_killed() {
    let time = next_time();
    let source = format!(
        "import os, subprocess\n\ndef stay():\n    \"\"\"Stays.\"\"\"\n    \
         subprocess.Popen(['sleep', '{time}'], start_new_session=True, env={{}})\n    \
         if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n            \
         os.execv('/bin/sleep', ['sleep', '{time}'])\n        os._exit(0)\n    \
         subprocess.run(['sleep', '{time}'])\n    return 'done'\n\nTOOLS = [stay]\n"
    );
    let sandbox = Sandbox::new()
        .file(
            "project.yaml",
            "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\npython_files: [tools.py]\n",
        )
        .file("main.agent", "---\nname: main\nmodel: script:script.yaml\ntools: [stay]\n---\nx")
        .file("script.yaml", "mode: by_turn\nreplies:\n  - ask: {stay: {}}\n  - say: done\n")
        .file("tools.py", &source);
    let child = started(&sandbox);
    until("the programs did not start", || alive(&time).len() == 3);
    kill(child);
    until("a process of Python code outlived its run", || alive(&time).is_empty());
}
