//! Input precedence: `--input-json`, then the prompt followed by stdin, then stdin alone, then the project's own
//! arguments.

use std::io::{Seek, SeekFrom, Write};

use crate::support::{Ran, Sandbox};

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
    sandbox.run_with(&["run", "."], b"from stdin\n").said("from stdin\n");
    sandbox.run_with(&["run", "."], b"").said("from the manifest\n");
    sandbox.run(&["run", "."]).said("from the manifest\n");
}

/// Runs with a stdin that has all of its content before the process starts.
fn run_reading(sandbox: &Sandbox, arguments: &[&str], stdin: impl Into<std::process::Stdio>) -> Ran {
    sandbox.command(arguments).stdin(stdin).output().unwrap().into()
}

fn full_pipe(content: &[u8]) -> std::io::PipeReader {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(content).unwrap();
    reader
}

#[test]
fn a_prompt_is_followed_by_stdin() {
    let sandbox = with_args().file("err.log", "line 1\nline 2\n");
    let ask = ["run", ".", "why?"];
    run_reading(&sandbox, &ask, full_pipe(b"broken\n")).ended(0).said("why?\n\nbroken\n").told_nothing();
    let file = std::fs::File::open(sandbox.path("err.log")).unwrap();
    run_reading(&sandbox, &ask, file).ended(0).said("why?\n\nline 1\nline 2\n").told_nothing();
    for nothing in [&b""[..], b"\n", b" \r\n\n"] {
        run_reading(&sandbox, &ask, full_pipe(nothing)).ended(0).said("why?\n").told_nothing();
    }
    sandbox.run(&ask).ended(0).said("why?\n").told_nothing();
}

#[test]
fn a_prompt_does_not_wait_for_a_stdin_that_stays_silent() {
    let ran = Sandbox::echo().run_with_silent_stdin(&["run", ".", "why?"]).ended(0).said("why?\n");
    ran.told("notice: nothing came from stdin within 3 s").told("</dev/null");
}

#[test]
fn the_rest_of_a_file_that_somebody_else_reads_is_added_with_a_notice() {
    let sandbox = Sandbox::echo().file("list", "one\ntwo\nthree\n");
    let mut file = std::fs::File::open(sandbox.path("list")).unwrap();
    file.seek(SeekFrom::Start(4)).unwrap();
    let ran = run_reading(&sandbox, &["run", ".", "one"], file).ended(0).said("one\n\ntwo\nthree\n");
    ran.told("notice: the rest of stdin was added to the prompt").told("</dev/null");
}

#[test]
fn bytes_after_a_prompt_that_are_not_text_are_refused() {
    let ran = run_reading(&Sandbox::echo(), &["run", ".", "why?"], full_pipe(&[0xff, 0xfe, 0]));
    ran.ended(2).said("").told("not UTF-8").told("--attach");
}

const TYPED: &str = "---\nname: main\nmodel: test:echo\ninput_schema: {type: object, required: [topic], \
    properties: {topic: {type: string}}}\nprompt: 'about {{ topic }}'\n---\nPlan.\n";

#[test]
fn a_typed_input_may_come_as_json_in_the_prompt_or_from_stdin() {
    let sandbox = Sandbox::new().file("main.agent", TYPED);
    let json = r#"{"topic": "Rust"}"#;
    sandbox.run(&["run", ".", json]).ended(0).said("about Rust\n");
    sandbox.run_with(&["run", "."], json.as_bytes()).ended(0).said("about Rust\n");
    // Both together are one text, and a text is not the object that the schema asks for.
    let both = run_reading(&sandbox, &["run", ".", json], full_pipe(b"more"));
    both.ended(2).said("").told("this takes `topic` (string), not a text");
    sandbox.run(&["run", ".", "Rust"]).ended(2).said("").told("this takes `topic` (string), not a text");
}

#[test]
fn json_for_an_agent_that_takes_a_text_is_text() {
    let sandbox = Sandbox::echo().file("secret.txt", "hunter2");
    let json = r#"{"input": "x", "attachments": ["secret.txt"]}"#;
    sandbox.run(&["run", ".", json]).ended(0).said(&format!("{json}\n"));
    sandbox.run_with(&["run", "."], json.as_bytes()).ended(0).said(&format!("{json}\n"));
}

#[test]
fn what_comes_through_a_pipe_attaches_no_files() {
    let sandbox = Sandbox::echo().file("secret.txt", "hunter2").file("typed.agent", TYPED);
    let refused = |arguments: &[&str], stdin: &str| {
        let ran = sandbox.run_with(arguments, stdin.as_bytes()).ended(2).said("");
        ran.told("names files to attach").told("--attach");
    };
    let piped = ["run", "main.agent", "--input-json", "-"];
    for input in [
        r#"{"input": "x", "attachments": ["secret.txt"]}"#,
        r#"{"input": "x", "attachments": "secret.txt"}"#,
        r#"{"input": "x", "attachments": [{"name": "a.txt", "path": "/etc/passwd"}]}"#,
        r#"["x", {"path": "secret.txt"}]"#,
    ] {
        refused(&piped, input);
        refused(&["run", "main.agent", "--input-json", "@/dev/stdin"], input);
        refused(&["call", "main.agent", "main", "--input-json", "-"], input);
    }
    let typed = r#"{"topic": "x", "attachments": ["secret.txt"]}"#;
    refused(&["run", "typed.agent"], typed);
    refused(&["run", "typed.agent", typed], "");
    refused(&["run", "typed.agent", "--input-json", "-"], typed);
}

#[test]
fn bytes_may_be_attached_through_a_pipe_and_files_by_a_flag() {
    let sandbox = Sandbox::echo()
        .file("note.txt", "text of the note")
        .file("input.json", r#"{"input": "look", "attachments": ["note.txt"]}"#);
    let attached = |arguments: &[&str], stdin: &[u8]| {
        let ran = sandbox.run_with(&[arguments, &["--output", "jsonl"]].concat(), stdin).ended(0);
        let request = ran.lines().into_iter().find(|event| event["type"] == "model_request").unwrap();
        assert!(request["messages"].to_string().contains("note.txt"), "{request}");
    };
    attached(&["run", "main.agent", "--input-json", "@input.json"], b"");
    attached(&["run", "main.agent", "--input-json", r#"["look", {"path": "note.txt"}]"#], b"");
    attached(&["run", "main.agent", "--input-json", "-", "--attach", "note.txt"], br#"{"input": "look"}"#);
    let bytes = r#"{"input": "look", "attachments": [{"name": "note.txt", "data": "aGVsbG8="}]}"#;
    attached(&["run", "main.agent", "--input-json", "-"], bytes.as_bytes());
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
    Sandbox::echo().run(&["run", "."]).ended(2).said("").told("no input was given").told("give a prompt");
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

/// An agent that hands a file on, and one that takes it under a policy.
fn handing_on(policy: &str, runtime: &str) -> Sandbox {
    Sandbox::new()
        .file(
            "project.yaml",
            &format!("version: 1\nentry: {{agent: main}}\nagent_files: ['*.agent']\nruntime: {{{runtime}}}\n"),
        )
        .file("main.agent", "---\nname: main\nmodel: script:script.yaml\ntoolsets: [reader]\n---\nx")
        .file("reader.agent", &format!("---\nname: reader\nmodel: test:echo\n{policy}---\nx"))
        .file("a.txt", "hello")
        .file(
            "script.yaml",
            "mode: by_turn\nreplies:\n  - ask: {reader: {input: read it, attachments: [a.txt]}}\n  - say: done\n",
        )
}

#[test]
fn an_agent_takes_what_its_policy_and_that_of_the_manifest_allow() {
    let given = |policy: &str, runtime: &str| {
        let sandbox = handing_on(policy, runtime);
        sandbox.run(&["run", ".", "go", "-v"]).ended(0).said("done\n")
    };
    given("", "").told("-> read it");
    given("attachment_policy: {max_attachments: 0}\n", "").told("`reader` takes at most 0");
    given("", "attachment_policy: {max_total_bytes: 4}").told("it has 5 bytes or more");
    given("attachment_policy: {allowed_suffixes: [.PNG]}\n", "").told("does not end with `.png`");
    // Key by key, the agent goes before the manifest.
    let general = "attachment_policy: {max_total_bytes: 4, denied_suffixes: [.txt]}";
    given("attachment_policy: {max_total_bytes: 9}\n", general).told("end with `.txt` are denied");
    given("attachment_policy: {max_total_bytes: 9, denied_suffixes: []}\n", general).told("-> read it");
}

#[test]
fn a_person_keeps_to_the_policy_and_may_name_any_file() {
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("b.txt");
    std::fs::write(&file, "from elsewhere").unwrap();
    let file = file.to_str().unwrap();
    let sandbox = handing_on("attachment_policy: {max_attachments: 1}\n", "");
    let call = |files: &[&str]| {
        let mut arguments = vec!["call", ".", "reader", "--input-json", r#"{"input": "x"}"#];
        files.iter().for_each(|file| arguments.extend(["--attach", file]));
        sandbox.run(&arguments)
    };
    call(&[file]).ended(0).said("x\n");
    call(&[file, "a.txt"]).ended(2).told("2 are given, and `reader` takes at most 1").told("max_attachments");
}

#[test]
fn a_wrong_policy_is_found_at_its_place() {
    let check = |policy: &str, runtime: &str| handing_on(policy, runtime).run(&["check", "."]).ended(2);
    let own = check("attachment_policy: {allowed_suffixes: [png]}\n", "");
    own.told("`allowed_suffixes`: `png` is not a suffix of a file name")
        .told("begin with a dot: `.png`")
        .told("reader.agent, line 4");
    check("", "attachment_policy: {denied_suffixes: ['*.exe']}").told("project.yaml, line 4").told("`.exe`");
    check("attachment_policy: {max_attachment: 1}\n", "").told("did you mean `max_attachments`?");
    check("attachment_policy: {max_attachments: -1}\n", "").told("max_attachments");
    check("attachment_policy: {max_total_bytes: 2000000000}\n", "").told("max_total_bytes");
}

#[test]
fn a_project_does_not_attach_files_of_whoever_runs_it() {
    let with = |attachment: &str| {
        let manifest = format!(
            "version: 1\nentry: {{agent: main, args: {{input: x, attachments: [{attachment}]}}}}\nagent_files: [main.agent]\n"
        );
        let sandbox = Sandbox::echo().file("a.txt", "a").file("project.yaml", &manifest);
        std::os::unix::fs::symlink("/etc/passwd", sandbox.path("link.txt")).unwrap();
        sandbox
    };
    with("a.txt").run(&["run", "."]).ended(0).said("x\n");
    for outside in ["/etc/passwd", "../a.txt", "link.txt", "{name: a.txt, path: /etc/passwd}"] {
        with(outside).run(&["run", "."]).ended(2).said("").told("lies outside the project");
    }
}

/// An agent with tools that says back what it reads.
fn with_tools(header: &str) -> Sandbox {
    let agent =
        format!("---\nname: main\nmodel: test:echo\ntoolsets: [filesystem_project]\n{header}---\nx\n");
    Sandbox::new().file("main.agent", &agent)
}

#[test]
fn a_long_pipe_reaches_the_model_whole_also_if_the_agent_has_tools() {
    let text = "word ".repeat(22_500);
    let ran = with_tools("").run_with(&["run", "."], text.as_bytes()).ended(0).told_nothing();
    assert_eq!(ran.stdout.trim_end().len(), text.trim_end().len());
    let both = with_tools("").run_with(&["run", ".", "Why?"], text.as_bytes()).ended(0).told_nothing();
    assert!(
        both.stdout.starts_with("Why?\n\nword word") && both.stdout.len() > text.len(),
        "{}",
        both.stdout.len()
    );
}

#[test]
fn an_input_that_does_not_fit_is_read_page_by_page_with_a_notice() {
    let text = "word ".repeat(200_000);
    let ran = with_tools("").run_with(&["run", "."], text.as_bytes()).ended(0);
    assert!(ran.stdout.len() < 10_000, "{} bytes", ran.stdout.len());
    let ran =
        ran.told("the input has 1000000 characters, more than fit into the 200000 tokens of `test:echo`");
    ran.told("shown the first 4000").told("`file_descriptors: {page_user_input: false}` changes that");
    let all = with_tools("file_descriptors: {page_user_input: false}\n");
    let ran = all.run_with(&["run", "."], text.as_bytes()).ended(0).told_nothing();
    assert!(ran.stdout.len() >= 1_000_000, "{} bytes", ran.stdout.len());
    let limited = with_tools("file_descriptors: {input_limit: 500}\n");
    let ran = limited.run_with(&["run", ".", "--output", "json"], "x".repeat(501).as_bytes()).ended(0);
    let notice = ran.json()["notices"][0]["text"].as_str().unwrap().to_owned();
    assert!(notice.contains("501 characters, more than the 500 of `input_limit`"), "{notice}");
}

/// A planner with one required text, and an agent with two required fields.
fn typed() -> Sandbox {
    Sandbox::new()
        .file(
            "planner.agent",
            "---\nname: planner\nmodel: test:echo\ninput_schema:\n  type: object\n  properties: {topic: {type: string}, days: {type: integer}}\n  \
             required: [topic]\n  additionalProperties: false\nprompt: '{{ topic }}'\n---\nPlan.\n",
        )
        .file(
            "pair.agent",
            "---\nname: pair\nmodel: test:echo\ninput_schema:\n  type: object\n  properties: {a: {type: string}, b: {type: string}}\n  \
             required: [a, b]\nprompt: '{{ a }}{{ b }}'\n---\nPair.\n",
        )
}

#[test]
fn a_text_for_a_typed_agent_is_answered_with_its_fields() {
    let sandbox = typed();
    let one = "this takes `topic` (string), `days` (integer, optional), not a text\nhint: use `--input-json '{\"topic\":\"Rust\"}'`\n";
    sandbox.run(&["run", "planner.agent", "Rust"]).ended(2).said("").told(one);
    sandbox.run_with(&["run", "planner.agent"], b"Rust").ended(2).said("").told(one);
    sandbox.run(&["run", "planner.agent", "--input-json", "\"Rust\""]).ended(2).said("").told(one);
    sandbox
        .run(&["call", "planner.agent", "planner", "--input-json", "\"Rust\""])
        .ended(2)
        .said("")
        .told(one);
    sandbox.run(&["run", "planner.agent", "--input-json", "{\"topic\":\"Rust\"}"]).ended(0).said("Rust\n");
    let two = "use `--input-json '{\"a\":\"..\",\"b\":\"..\"}'`";
    sandbox.run(&["run", "pair.agent", "Rust"]).ended(2).told("`a` (string), `b` (string)").told(two);
    let chat = sandbox.run_with(&["chat", "planner.agent"], b"Rust\n{\"topic\": \"Go\"}\n");
    chat.ended(0).said("Go\n").told("write it as JSON: `{\"topic\":\"Rust\"}`");
}

#[test]
fn hints_for_models_do_not_reach_people() {
    let sandbox = typed();
    for arguments in [
        &["run", "planner.agent", "--input-json", "{\"topik\": \"x\"}"][..],
        &["call", "planner.agent", "planner", "--input-json", "{\"days\": 1}"],
        &["run", "planner.agent", "{\"topic\": 1}"],
    ] {
        let ran = sandbox.run(arguments).ended(2).told("`topi");
        assert!(!ran.stderr.contains("call it again"), "{ran:?}");
    }
}

#[test]
fn a_prompt_without_quotes_is_explained() {
    let sandbox = Sandbox::echo();
    for words in [
        &["run", "Good", "morning"][..],
        &["run", "Good", "morning", "there"],
        &["run", ".", "Good", "morning"],
    ] {
        sandbox.run(words).ended(2).told("put a prompt of several words in quotes");
    }
    let other = sandbox.run(&["check", "Good", "morning"]).ended(2);
    assert!(!other.stderr.contains("quotes"), "{other:?}");
}

#[test]
fn a_model_that_is_empty_or_a_script_that_is_missing_is_named() {
    let sandbox = Sandbox::echo();
    sandbox.run(&["run", ".", "hi", "-m", ""]).ended(2).told("the model name is empty");
    let missing = sandbox.run(&["run", ".", "hi", "-m", "script:no.yaml"]).ended(2);
    missing.told(&format!(
        "`no.yaml` was not found in `{}`",
        sandbox.path("").canonicalize().unwrap().display()
    ));
}
