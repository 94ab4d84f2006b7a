//! A program that leaves at once takes the processes of Python files with it.
//!
//! In a process of its own: it ends every child of it.

use std::time::{Duration, Instant};

use llm_do_project::{ProjectFiles, WantedCode};
use llm_do_python::{PythonSettings, python_code};
use llm_do_sandbox::end_all_commands;
use llm_do_testing::{TestDir, needs, own_process};
use llm_do_tools::ToolsetEnv;

#[needs(python)]
#[test]
fn the_processes_of_python_files_are_ended_with_all_commands() {
    own_process!();
    let source = "import os, subprocess\nopen(os.path.join(os.path.dirname(__file__), 'pids'), 'w').write(\n    f'{os.getpid()} {subprocess.Popen([\"sleep\", \"1000\"], start_new_session=True).pid}')\ndef stay(): ...\nTOOLS = [stay]\n";
    let folder = TestDir::with_files(&[("tools.py", source)]);
    let (files, own) = ([folder.join("tools.py")], ProjectFiles::default());
    let wanted = WantedCode {
        root: folder.path(),
        interpreter: None,
        load_limit: None,
        files: &files,
        classes: &[],
        variables: &[],
        keys: &[],
        entry: None,
        own: &own,
    };
    let env = ToolsetEnv { directory: folder.path().to_owned(), ..ToolsetEnv::default() };
    let code = python_code(wanted, &env, &PythonSettings::default()).unwrap();
    let pids = folder.read("pids");
    let pids: Vec<&str> = pids.split_whitespace().collect();
    assert!(pids.iter().all(|pid| is_alive(pid)), "{pids:?}");

    end_all_commands();

    let start = Instant::now();
    while pids.iter().any(|pid| is_alive(pid)) && start.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!pids.iter().any(|pid| is_alive(pid)), "{pids:?}");
    drop(code);
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
