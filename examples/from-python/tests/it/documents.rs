//! Each program prints what its README shows, and is not longer than the Python of its document.

use std::path::Path;
use std::process::Command;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Runs a program and returns what it printed.
fn printed(program: &str) -> String {
    let output = Command::new(program).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Checks that the README of a folder shows what its program prints.
fn shown_by_readme(folder: &str, printed: &str) {
    let readme = read(&format!("{folder}/README.md"));
    let block = format!("```console\n$ cargo run -q -p from-python --bin {folder}\n{printed}```\n");
    assert!(readme.contains(&block), "the README should have this block:\n{block}");
}

/// Counts lines that are not blank and not a comment. Descriptions of tools (doc comments and docstrings) count in neither
/// language: the macro demands them, and the tools of one document have none.
fn count<'a>(lines: impl Iterator<Item = &'a str>) -> usize {
    let is_attribute = |line: &str| line.starts_with("#[");
    let is_comment = |line: &str| ["#", "//", "\"\"\""].iter().any(|start| line.starts_with(start));
    lines.map(str::trim).filter(|line| !line.is_empty() && (is_attribute(line) || !is_comment(line))).count()
}

/// Counts the lines between `// begin: NAME` and `// end: NAME` of a program.
fn count_rust(folder: &str, name: &str) -> usize {
    let source = read(&format!("{folder}/main.rs"));
    let (begin, end) = (format!("// begin: {name}"), format!("// end: {name}"));
    let mut is_inside = false;
    let mut lines = Vec::new();
    for line in source.lines() {
        match line.trim() {
            marker if marker == begin => is_inside = true,
            marker if marker == end => is_inside = false,
            _ if is_inside => lines.push(line),
            _ => {}
        }
    }
    assert!(!lines.is_empty(), "{folder} has no region `{name}`");
    count(lines.into_iter())
}

#[test]
fn no_translation_is_longer_than_the_python_of_its_document() {
    let project = ["tools.py", "free.worker", "careful.worker", "project.json"];
    let manifest = ["main.worker", "analyzer.worker", "schemas.py", "review.py", "project.json"];
    for (folder, python) in [
        ("shared-toolset", &project[..]),
        ("agents", &manifest),
        ("workers", &["document.py"]),
        ("context", &["document.py"]),
        ("llmproc", &["document.py"]),
    ] {
        let texts: Vec<String> = python.iter().map(|file| read(&format!("{folder}/{file}"))).collect();
        // The third tool of the toolset is not part of the translated region.
        let texts = texts.iter().map(|text| text.split("\n@archive.tool\n").next().unwrap());
        let (python, rust) =
            (texts.map(|text| count(text.lines())).sum::<usize>(), count_rust(folder, "example"));
        println!("{folder}: {python} lines of Python, {rust} of Rust");
        assert!(rust <= python, "{folder}: {rust} lines of Rust for {python} of Python");
    }
}

#[test]
fn the_project_of_each_folder_has_the_code_of_its_document() {
    let same = |document: &str, file: &str, until: &str| {
        let (document, file) = (read(document), read(file));
        let code = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
        let wanted = document.split(until).next().unwrap().lines().filter(code);
        for line in wanted {
            assert!(file.lines().any(|other| other == line), "{line}");
        }
    };
    same("context/document.py", "context/research.py", "# Run");
    same("llmproc/document.py", "llmproc/tools.py", "process.call_tool");
}

#[test]
fn agents_with_one_toolset_keep_their_own_rules_in_both_orders() {
    let printed = printed(env!("CARGO_BIN_EXE_shared-toolset"));
    shown_by_readme("shared-toolset", &printed);
    let burned: Vec<&str> = printed.lines().filter(|line| line.starts_with("burn ")).collect();
    let blocked = "burn depth=2 -> blocked: `burn` may not run: a rule blocks it";
    assert_eq!(burned, [blocked, "burn depth=2 -> burned", blocked]);
    assert_eq!(printed.matches(r#"recall depth=2 -> ["Go."]"#).count(), 3, "nested calls start clean");
    assert!(printed.contains(r#"recall depth=1 -> ["Go round.","Clear the archive."]"#), "{printed}");
    assert!(printed.contains("left depth=6 -> `left` would be agent 6 on the path"), "{printed}");
}

#[test]
fn an_entry_calls_an_agent_with_a_typed_input_in_both_approval_modes() {
    let printed = printed(env!("CARGO_BIN_EXE_agents"));
    shown_by_readme("agents", &printed);
    let (rejected, approved) = printed.split_once("The report is written.").unwrap();
    assert_eq!(rejected.matches("write_file (tool) depth=1: denied").count(), 2, "{printed}");
    assert!(!approved.contains("write_file"), "{printed}");
    assert_eq!(printed.matches("main: 8 messages\n").count(), 4, "each call has a history of its own");
    assert_eq!(printed.matches("analyzer (agent) depth=6: `analyzer` would be agent 6").count(), 4);
}

#[test]
fn workers_are_run_called_and_created_and_a_controller_asks_once() {
    let printed = printed(env!("CARGO_BIN_EXE_workers"));
    shown_by_readme("workers", &printed);
    assert_eq!(printed.matches("asked for sandbox.write\n").count(), 1, "approved for the session");
    assert_eq!(printed.matches("wrote {\"path\":\"output/file.txt\"}\n").count(), 2);
    assert!(printed.contains("denied: `sandbox.write` must ask, and this run rejects"), "{printed}");
}

#[test]
fn the_trace_of_the_context_example_has_the_worker_and_its_tool() {
    let printed = printed(env!("CARGO_BIN_EXE_context"));
    shown_by_readme("context", &printed);
    assert!(printed.starts_with("researcher (agent) depth=1\nsearch (tool) depth=1\n"), "{printed}");
    assert!(printed.ends_with("my_tool (tool) depth=1\nother_tool (tool) depth=1\n"), "{printed}");
}

#[test]
fn tools_take_the_process_programs_and_log_from_their_call() {
    let printed = printed(env!("CARGO_BIN_EXE_llmproc"));
    shown_by_readme("llmproc", &printed);
    assert!(printed.starts_with("[\"starting step\"]\n"), "{printed}");
    assert!(printed.contains("example_tool -> Process model: script\nspawn_tool -> Quiet.\n"), "{printed}");
    assert!(printed.contains("error: `helper` is not linked\n"), "{printed}");
    assert!(printed.contains("error: `located` needs the context value"), "{printed}");
}
