//! The object of `--output json` and `jsonl` keeps to its schema, whatever happens in a run.
//!
//! `OUTPUT_RUNS=200 cargo test -p llm-do-cli --test it contract` makes more random runs.

use std::collections::BTreeMap;

use llm_do_testing::Chance;
use serde_json::{Value, json};

use crate::support::{Ran, Sandbox};

/// Replies of a scripted model. Those that end a conversation come last.
const STEPS: [&str; 6] = [
    "{say: first a word, ask: {helper: {input: go}}}",
    "{think: hm, ask: {helper: {input: go}}}",
    "{ask: {nobody: {input: go}}}",
    "{ask: {helper: {wrong: 1}}}",
    "{raw: {name: helper, text: '{\"input\": '}}",
    "{ask: {read_file: {path: gone.txt}}}",
];
const ENDS: [&str; 14] = [
    "{say: done}",
    "{say: \"two lines\\nof 🦀 and \\u001b[31m\"}",
    "{say: ''}",
    "{say: half an, stop: max_tokens}",
    "{say: until, stop: stop_sequence}",
    "{say: never, stop: refusal}",
    "{cut: 'it breaks '}",
    "{say: 'late ', delay: 60s}",
    "{say: one two three four five six, pace: 20s}",
    "{fail: {kind: auth, message: wrong key}}",
    "{fail: {kind: context_overflow, message: too long}}",
    "{fail: {kind: server, message: out of order}}",
    "{say: '{\"n\": 1}'}",
    "{say: '{\"n\": many}'}",
];

/// A random project with random flags.
fn random_run(chance: &mut Chance) -> (Sandbox, Vec<String>) {
    let mut replies: Vec<&str> = (0..chance.below(3)).map(|_| *chance.one_of(&STEPS)).collect();
    // An answer that does not fit its schema is asked for again.
    replies.extend([*chance.one_of(&ENDS); 3]);
    let schema = *chance.one_of(&[
        "",
        "",
        "output_schema: {type: object, required: [n], properties: {n: {type: integer}}}\n",
    ]);
    let input = if chance.below(12) == 0 { "input_schema: {type: object, required: [topic]}\n" } else { "" };
    let approval = *chance.one_of(&["pre_approved", "ask", "blocked"]);
    let key = if chance.below(16) == 0 { "modle" } else { "model" };
    let agent = format!(
        "---\nname: main\n{key}: script:script.yaml\ntoolsets: [helper, filesystem_project]\n\
         approval: {{helper: {approval}}}\n{schema}{input}---\nAnswer.\n"
    );
    let manifest =
        "version: 1\nentry: {agent: main}\nagent_files: ['*.agent']\nruntime: {model_attempts: 1}\n";
    let sandbox = Sandbox::new()
        .file("project.yaml", manifest)
        .file("main.agent", &agent)
        .file("helper.agent", "---\nname: helper\nmodel: test:echo\n---\nHelp.\n")
        .file("script.yaml", &format!("mode: by_turn\nreplies: [{}]\n", replies.join(", ")));
    (sandbox, random_arguments(chance))
}

fn random_arguments(chance: &mut Chance) -> Vec<String> {
    let others = [
        &["run", "."][..],
        &["call", ".", "main", "--input-json", "{\"input\": \"x\"}"],
        &["call", ".", "read_file", "--input-json", "{\"path\": \"main.agent\"}"],
        &["call", ".", "helper", "--input-json", "\"x\""],
        &["call", ".", "nobody"],
    ];
    let call = if chance.below(4) == 0 { *chance.one_of(&others) } else { &["run", ".", "hello"] };
    let approve = *chance.one_of(&[&["--approve", "all"][..], &["--approve", "none"], &[]]);
    let limit = *chance.one_of(&[&[][..], &[], &[], &["--max-turns", "2"], &["--max-depth", "1"]]);
    let form = *chance.one_of(&["json", "jsonl"]);
    let timeout = ["--timeout", "2", "--output", form];
    [call, approve, limit, &timeout].concat().into_iter().map(str::to_owned).collect()
}

/// The exit codes of each status.
fn codes() -> BTreeMap<&'static str, i32> {
    BTreeMap::from([
        ("done", 0),
        ("failed", 1),
        ("invalid", 2),
        ("provider", 3),
        ("limit", 4),
        ("denied", 5),
        ("output", 6),
        ("timed_out", 124),
        ("interrupted", 130),
    ])
}

/// The schema with which nothing passes that it does not name. For scripts it stays open, so that fields can be added.
fn closed(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(map) => {
            if map.contains_key("properties") {
                map.insert("additionalProperties".to_owned(), false.into());
            }
            map.values_mut().for_each(|value| *value = closed(value.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = closed(item.take())),
        _ => {}
    }
    schema
}

/// The object that a run printed.
fn object(ran: &Ran, form: &str) -> Value {
    let mut lines = ran.lines();
    let last = lines.pop().unwrap_or_else(|| panic!("nothing was printed: {ran:#?}"));
    match form {
        "json" => assert!(lines.is_empty() && last.get("type").is_none(), "{ran:#?}"),
        _ => {
            assert_eq!(last["type"], "result", "{ran:#?}");
            assert!(lines.iter().all(|line| line["type"] != "result"), "{ran:#?}");
        }
    }
    last
}

/// What holds for every object, beyond the types of its fields.
fn check(object: &Value, ran: &Ran) {
    let status = object["status"].as_str().unwrap();
    assert_eq!(ran.code, Some(codes()[status]), "{ran:#?}");
    assert_eq!(object["error"].is_null(), !object["output"].is_null(), "{object:#}");
    assert!(!object["output"].is_null() || !matches!(status, "done"), "{object:#}");
    assert!(object["partial"].is_null() || object["output"].is_null(), "{object:#}");
    assert_eq!(object["raw"].is_string(), status == "output", "{object:#}");
    let error = object["error"].as_str().unwrap_or_default();
    assert!(!error.contains("hint:") && !error.starts_with("error:"), "{object:#}");
    let requests: u64 =
        object["models"].as_array().unwrap().iter().map(|model| model["requests"].as_u64().unwrap()).sum();
    assert_eq!(object["usage"]["requests"], requests, "{object:#}");
    assert!(!ran.stderr.contains("panicked"), "{ran:#?}");
}

#[test]
#[allow(clippy::print_stdout, reason = "`--nocapture` shows how many runs of each kind there were")]
fn random_runs_print_what_the_schema_says() {
    let schema = Sandbox::new().run(&["schema", "output"]).ended(0).json();
    let validator = jsonschema::validator_for(&closed(schema)).unwrap();
    let runs: u64 = std::env::var("OUTPUT_RUNS").map_or(60, |text| text.parse().unwrap());
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    // From this seed on, sixty runs have every status: one in a hundred is `denied`.
    for seed in 62..62 + runs {
        let (sandbox, arguments) = random_run(&mut Chance::new(seed));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ran = sandbox.run(&arguments);
        let object = object(&ran, arguments.last().unwrap());
        let problems: Vec<String> = validator
            .iter_errors(&object)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(problems.is_empty(), "seed {seed}: {problems:#?}\n{object:#}");
        check(&object, &ran);
        *seen.entry(object["status"].as_str().unwrap().to_owned()).or_default() += 1;
        *seen.entry("partial".to_owned()).or_default() += u32::from(object["partial"].is_string());
        *seen.entry("denials".to_owned()).or_default() += u32::from(object["denied"] != json!([]));
    }
    println!("{runs} runs: {seen:?}");
    let expected =
        ["done", "invalid", "provider", "limit", "output", "timed_out", "denied", "partial", "denials"];
    for kind in expected {
        assert!(seen.get(kind).is_some_and(|count| *count > 0), "no run was `{kind}`: {seen:?}");
    }
}

#[test]
fn the_schema_refuses_an_object_that_breaks_the_contract() {
    let schema = Sandbox::new().run(&["schema", "output"]).ended(0).json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let object = Sandbox::echo().run(&["run", ".", "x", "--output", "json"]).ended(0).json();
    assert!(validator.is_valid(&object), "{object:#}");
    for key in object.as_object().unwrap().keys() {
        let mut without = object.clone();
        without.as_object_mut().unwrap().remove(key);
        assert!(!validator.is_valid(&without), "`{key}` may be missing");
    }
    for (key, wrong) in [("status", json!("fine")), ("stop", json!("end")), ("denied", json!(["x"]))] {
        let mut changed = object.clone();
        changed[key] = wrong;
        assert!(!validator.is_valid(&changed), "`{key}` may be anything");
    }
}
