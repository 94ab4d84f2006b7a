//! Input precedence: `--input-json`, then the prompt, then stdin, then the project's own arguments.

use crate::support::Sandbox;

fn with_args() -> Sandbox {
    Sandbox::echo().file(
        "project.yaml",
        "version: 1\nentry: {agent: main, args: {input: from the manifest}}\nagent_files: [main.agent]\n",
    )
}

#[test]
fn each_source_goes_before_the_next() {
    let json = r#"{"input": "from json"}"#;
    let sandbox = with_args();
    sandbox
        .run_with(&["run", ".", "from the prompt", "--input-json", json], b"from stdin")
        .said("from json\n");
    sandbox.run_with(&["run", ".", "--input-json", json], b"from stdin").said("from json\n").told_nothing();
    sandbox
        .run_with(&["run", ".", "from the prompt"], b"from stdin")
        .said("from the prompt\n")
        .told_nothing();
    sandbox.run_with(&["run", "."], b"from stdin\n").said("from stdin\n");
    sandbox.run_with(&["run", "."], b"").said("from the manifest\n");
    sandbox.run(&["run", "."]).said("from the manifest\n");
}

#[test]
fn json_comes_as_an_argument_from_a_file_or_from_stdin() {
    let sandbox = Sandbox::echo().file("input.json", r#"{"input": "from a file"}"#);
    sandbox.run(&["run", ".", "--input-json", "@input.json"]).ended(0).said("from a file\n");
    sandbox.run_with(&["run", ".", "--input-json", "-"], br#"{"input": "piped"}"#).ended(0).said("piped\n");
    sandbox.run(&["run", ".", "--input-json", r#""just text""#]).ended(0).said("just text\n");
    sandbox.run(&["run", ".", "--input-json", r#"["one", "two"]"#]).ended(0).said("one\ntwo\n");
}

#[test]
fn an_object_without_a_schema_becomes_sorted_json() {
    let ran = Sandbox::echo().run(&["run", ".", "--input-json", r#"{"b": 1, "a": [2]}"#]).ended(0);
    ran.said("{\n  \"a\": [\n    2\n  ],\n  \"b\": 1\n}\n");
}

#[test]
fn json_that_is_none_is_refused_with_its_place() {
    let sandbox = Sandbox::echo();
    for wrong in ["{", "{\"a\": 1, \"a\": 2}", "5", "null", "[1]", "@nowhere.json"] {
        sandbox.run(&["run", ".", "--input-json", wrong]).ended(2).said("").told("error:");
    }
    sandbox.run(&["run", ".", "--input-json", "{\"a\": 1, \"a\": 2}"]).told("`a`");
}

#[test]
fn no_input_is_an_error_that_says_what_to_give() {
    Sandbox::echo().run(&["run", "."]).ended(2).said("").told("there is no input").told("give a prompt");
}

#[test]
fn a_project_can_refuse_input_from_the_command_line() {
    let sandbox = Sandbox::echo().file(
        "project.yaml",
        "version: 1\nallow_cli_input: false\nentry: {agent: main, args: {input: fixed}}\nagent_files: [main.agent]\n",
    );
    sandbox.run(&["run", "."]).ended(0).said("fixed\n");
    sandbox.run(&["run", ".", "hello"]).ended(2).said("").told("a prompt gives some");
    sandbox.run(&["run", ".", "--input-json", "{}"]).ended(2).said("").told("`--input-json` gives some");
    sandbox.run_with(&["run", "."], b"hello").ended(2).said("").told("stdin gives some");
}

#[test]
fn stdin_that_is_no_text_is_refused_with_a_hint() {
    Sandbox::echo().run_with(&["run", "."], &[0xff, 0xfe, 0]).ended(2).told("not UTF-8").told("--attach");
}

#[test]
fn a_typed_input_is_checked_field_by_field() {
    let agent = "---\nname: main\nmodel: test:echo\ninput_schema: {type: object, required: [topic], \
        additionalProperties: false, properties: {topic: {type: string}, days: {type: integer, default: 7}}}\n\
        prompt: '{{ topic }} in {{ days }}'\n---\nPlan.\n";
    let sandbox = Sandbox::new().file("main.agent", agent);
    sandbox.run(&["run", ".", "--input-json", r#"{"topic": "Rust"}"#]).ended(0).said("Rust in 7\n");
    let ran = sandbox.run(&["run", ".", "--input-json", r#"{"topci": "Rust"}"#]).ended(2).said("");
    ran.told("missing required field `topic` (you wrote `topci`)");
}

#[test]
fn files_are_attached_from_the_working_directory_with_their_type() {
    let sandbox = Sandbox::echo().file("elsewhere/picture.txt", "\u{89}PNG").file("notes.md", "# notes");
    std::fs::write(sandbox.path("picture.txt"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").unwrap();
    let ran = sandbox.run(&[
        "run",
        "main.agent",
        "look",
        "--attach",
        "picture.txt",
        "--attach",
        "notes.md",
        "--output",
        "jsonl",
    ]);
    let request = ran.ended(0).lines().into_iter().find(|event| event["type"] == "model_request").unwrap();
    let text = request["messages"].to_string();
    assert!(text.contains("image/png") && text.contains("text/markdown"), "{text}");
}

#[test]
fn what_cannot_be_attached_is_refused_before_the_run() {
    let sandbox = Sandbox::echo();
    sandbox
        .run(&["run", ".", "x", "--attach", "gone.txt"])
        .ended(2)
        .said("")
        .told("`gone.txt` cannot be attached");
    sandbox.run(&["run", ".", "x", "--attach", "."]).ended(2).told("not a regular file");
}
