//! One project with every kind of Python declaration, in three virtual environments: without pydantic and pydantic_ai,
//! with pydantic alone, and with both. It must do the same in each.
//!
//! `cargo xtask setup` makes the environments. Without them, these tests are ignored.

mod run_to_end;
mod schemas;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use llm_do_testing::{PYTHON_ENVIRONMENTS, PythonEnvironment, needs, test_cache};
use serde_json::{Value, json};

use crate::python_environments::run_to_end::run_to_end;
use crate::python_environments::schemas::plain;
use crate::support::{Ran, Sandbox};

/// Runs the binary on the project in an environment.
fn run(environment: &PythonEnvironment, arguments: &[&str]) -> Ran {
    let sandbox = Sandbox::new();
    for entry in std::fs::read_dir(here().join("project")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), sandbox.path(&entry.file_name().to_string_lossy())).unwrap();
        }
    }
    let mut command = sandbox.command(arguments);
    command.env("VIRTUAL_ENV", environment.directory()).env("XDG_CACHE_HOME", test_cache().join("cache"));
    command.output().unwrap().into()
}

fn here() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/python_environments"))
}

/// What each call came to, by its key; the words about wrong arguments are those of whoever checks them.
fn results(events: &[Value]) -> BTreeMap<String, Value> {
    let finished = events.iter().filter(|event| event["type"] == "call_finished");
    let result = |event: &Value| match event["error"]["kind"].as_str() {
        Some("arguments") => json!({"name": event["name"], "error": "arguments"}),
        _ => json!({"name": event["name"], "output": event["output"], "error": event["error"]}),
    };
    finished.map(|event| (event["key"].as_str().unwrap().to_owned(), result(event))).collect()
}

#[needs(packages)]
#[test]
fn one_project_does_the_same_in_every_environment() {
    let runs: Vec<(&str, Vec<Value>)> = PYTHON_ENVIRONMENTS
        .iter()
        .map(|environment| {
            let ran = run(environment, &["run", ".", "--model", "script:script.yaml", "--output", "jsonl"]);
            (environment.name, ran.ended(0).lines())
        })
        .collect();
    let (_, first) = &runs[0];
    check(first);
    for (name, events) in &runs {
        assert_eq!(results(events), results(first), "{name}");
    }
}

/// Checks what the calls of one run came to.
fn check(events: &[Value]) {
    let expected_calls = [
        ("add", json!([3, "arguments", 42])),
        (
            "paint",
            json!([{"color": "blue", "finish": "gloss", "at": {"x": 1, "y": 0, "tags": ["t"]}}, "arguments"]),
        ),
        (
            "shape",
            json!([
                {"corners": [{"x": 3, "y": 6, "tags": []}, {"x": 9, "y": 0, "tags": []}], "color": "blue"}, "arguments"
            ]),
        ),
        ("trip", json!([{"miles": 3.5, "stops": "two", "extra": 0.25}, "arguments"])),
        ("when_", json!([["2024-02-29", 3, [7, "z"]], "arguments"])),
        ("triple", json!([15, 12, 42])),
        ("shout", json!(["AHOY (runner, shout, depth 1)", "give a text"])),
        ("halve", json!([2.5])),
        ("whisper", json!(["hush hush"])),
        ("located", json!(["in the north"])),
        ("process_of", json!([{"tripled": 12}])),
        ("refuses", json!(["refused: late"])),
        ("gives_up", json!(["the tool asks to stop: enough"])),
        ("count", json!([5, 1, 7])),
        ("where", json!(["here: start() > runner > where"])),
        ("length", json!([2])),
        ("spend", json!(["spent 3", "blocked: `spend` may not run: too much"])),
        ("greet", json!(["hello you"])),
        ("helper", json!([{"number": 42, "sure": true}, "arguments"])),
        (
            "runner",
            json!([
                {"title": "Tides", "lines": ["done"], "score": null},
                {"title": "Locks", "lines": ["none"], "score": 1},
                "arguments", "arguments", "arguments", "arguments", "arguments"
            ]),
        ),
    ];
    let words = |event: &Value| match (event["error"]["kind"].as_str(), &event["error"]["message"]) {
        (None, _) => event["output"].clone(),
        (Some("arguments"), _) => "arguments".into(),
        (Some(_), message) => message.clone(),
    };
    for (name, expected) in expected_calls {
        let finished =
            events.iter().filter(|event| event["type"] == "call_finished" && event["name"] == name);
        // Calls of one turn end in any order.
        let sorted = |values: &[Value]| {
            let mut texts: Vec<String> = values.iter().map(Value::to_string).collect();
            texts.sort_unstable();
            texts
        };
        let found: Vec<Value> = finished.map(words).collect();
        assert_eq!(sorted(&found), sorted(expected.as_array().unwrap()), "{name}");
    }
    let picture = events.iter().find(|event| event["type"] == "call_finished" && event["name"] == "picture");
    assert_eq!(picture.unwrap()["output"]["$attachments"][0]["media_type"], "image/png");
    let answer = &events.iter().find(|event| event["type"] == "run_finished").unwrap()["output"];
    assert_eq!((&answer["added"], &answer["unknown"]), (&json!(42), &json!("unknown")));
}

#[needs(packages)]
#[test]
fn schemas_agree_in_every_environment() {
    let listed: Vec<(&str, BTreeMap<String, Value>)> = PYTHON_ENVIRONMENTS
        .iter()
        .map(|environment| {
            let ran = run(environment, &["list", ".", "--output", "json"]).ended(0).told_nothing();
            (environment.name, schemas_of(&ran.json()))
        })
        .collect();
    let (_, first) = &listed[0];
    assert_eq!(first.len(), 2 * (2 + 19), "{:?}", first.keys());
    let box_of_points = &first["tools shape input"]["properties"]["box"];
    assert_eq!(box_of_points["properties"]["corners"]["items"]["required"], json!(["x"]));
    assert_eq!(first["agents runner input"]["properties"]["depth"]["maximum"], 3);
    for (name, schemas) in &listed {
        for (what, schema) in schemas {
            assert_eq!(schema, &first[what], "{what}: {name} and {}", listed[0].0);
        }
        assert_eq!(schemas.len(), first.len(), "{name}");
    }
}

/// The schemas of all agents and tools, by what they are of.
fn schemas_of(listing: &Value) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for kind in ["agents", "tools"] {
        for callable in listing[kind].as_array().unwrap() {
            for side in ["input", "output"] {
                let name = callable["name"].as_str().unwrap();
                found.insert(format!("{kind} {name} {side}"), plain(&callable[side]));
            }
        }
    }
    found
}

/// Runs the tests of the Python code itself in an environment, on a copy that bytecode may be written beside.
fn run_python_tests(number: usize) {
    let environment = &PYTHON_ENVIRONMENTS[number];
    let copied = tempfile::tempdir().unwrap();
    copy(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../python/python")), copied.path());
    let mut command = Command::new(environment.python());
    command.args(["-m", "unittest", "discover", "-s"]).arg(copied.path().join("tests")).current_dir(&copied);
    command.env_remove("PYTHONDONTWRITEBYTECODE").env_remove("VIRTUAL_ENV");
    let ran = run_to_end(command);
    assert!(ran.is_ok(), "{}: {}", environment.name, ran.unwrap_err());
}

/// Copies the Python files of a directory.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else if target.extension().is_some_and(|extension| extension == "py") {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[needs(packages)]
#[test]
fn the_python_tests_pass_without_pydantic() {
    run_python_tests(0);
}

#[needs(packages)]
#[test]
fn the_python_tests_pass_with_pydantic_alone() {
    run_python_tests(1);
}

#[needs(packages)]
#[test]
fn the_python_tests_pass_with_pydantic_and_pydantic_ai() {
    run_python_tests(2);
}
