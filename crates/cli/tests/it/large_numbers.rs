//! Numbers that JSON can write and a 64-bit value cannot hold: refused with the reason, wherever they come from.

use llm_do_testing::needs;

use crate::support::Sandbox;

const HUGE: &str = "123456789012345678901234567890";

fn project(tools: &str) -> Sandbox {
    Sandbox::new()
        .file(
            "project.yaml",
            "version: 1\nentry: {agent: main}\nagent_files: [main.agent]\npython_files: [tools.py]\n",
        )
        .file("main.agent", "---\nname: main\nmodel: script:script.yaml\ntools: [show]\n---\nAnswer.\n")
        .file("script.yaml", "replies: [{say: done}]\n")
        .file("tools.py", tools)
}

const SHOW: &str = "def show(id) -> str:\n    return repr(id)\nTOOLS = [show]\n";

#[needs(python)]
#[test]
fn arguments_on_the_command_line_are_kept_exactly_or_refused() {
    let project = project(SHOW);
    let call = |id: &str| {
        let input = format!(r#"{{"id": {id}}}"#);
        project.run(&["call", ".", "show", "--input-json", &input, "--approve", "all"])
    };
    for id in ["9223372036854775807", "-9223372036854775808", "9007199254740993"] {
        assert_eq!(call(id).stdout.trim(), id);
    }
    for id in [HUGE, "18446744073709551616", "-9223372036854775809", "9007199254740993.0"] {
        let ran = call(id);
        assert!(ran.code != Some(0) && ran.stderr.contains(id), "{id}: {} {}", ran.stdout, ran.stderr);
    }
}

#[test]
fn files_that_hold_numbers_beyond_64_bits_are_refused() {
    let json = format!(
        r#"{{"version": 1, "entry": {{"agent": "main"}}, "agent_files": ["main.agent"], "context": {{"id": {HUGE}}}}}"#
    );
    let yaml =
        format!("version: 1\nentry: {{agent: main}}\nagent_files: [main.agent]\ncontext: {{id: {HUGE}}}\n");
    for (file, text) in [("project.json", json), ("project.yaml", yaml)] {
        let project = Sandbox::new()
            .file(file, &text)
            .file("main.agent", "---\nname: main\nmodel: test:echo\n---\nAnswer.\n");
        let ran = project.run(&["check", "."]);
        assert!(
            ran.code != Some(0) && ran.stderr.contains("does not fit into 64 bits"),
            "{file}: {}",
            ran.stderr
        );
    }
}

#[needs(python)]
#[test]
fn a_script_that_holds_a_number_beyond_64_bits_is_refused() {
    let script = format!("replies: [{{ask: {{show: {{id: {HUGE}}}}}}}, {{say: done}}]\n");
    let project = project(SHOW).file("script.yaml", &script);
    let ran = project.run(&["run", ".", "go", "--approve", "all"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("does not fit into 64 bits"), "{}", ran.stderr);
}

#[needs(python)]
#[test]
fn schemas_of_python_files_with_large_bounds_are_dropped_where_they_bind_nothing_and_refused_otherwise() {
    let with = |limit: &str| {
        format!(
            "from typing import Annotated\nfrom pydantic import Field\n\
             def show(id: Annotated[int, Field({limit})]) -> str:\n    return repr(id)\nTOOLS = [show]\n"
        )
    };
    let ran = project(&with("ge=0, lt=2**64")).run(&["check", "."]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = project(&with("ge=2**64")).run(&["check", "."]);
    assert!(ran.stderr.contains("18446744073709551616, which does not fit into 64 bits"), "{}", ran.stderr);
}
