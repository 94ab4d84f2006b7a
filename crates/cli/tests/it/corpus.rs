//! The projects of the corpus through the binary: refused in words, in time and in little memory.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::Sandbox;

#[test]
fn every_bad_project_is_refused_on_stderr_before_anything_runs() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../../../project/tests/corpus/project_files.json")).unwrap();
    for case in cases.iter().filter(|case| case["also_ok"].is_null()) {
        let id = case["id"].as_str().unwrap();
        let sandbox = Sandbox::new();
        for (name, content) in case["files"].as_object().unwrap() {
            write(&sandbox, name, content);
        }
        let begun = Instant::now();
        let ran = sandbox.run(&["check", "."]);
        assert!(begun.elapsed() < Duration::from_secs(20), "{id} took {:?}", begun.elapsed());
        if case["expect"] == "ok" {
            assert_eq!(ran.code, Some(0), "{id}: {ran:#?}");
            continue;
        }
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{id}: {ran:#?}");
        let told = ran.stderr.to_lowercase();
        assert!(!told.contains("panicked"), "{id}: {told}");
        for word in case["must_mention"].as_array().unwrap() {
            assert!(told.contains(&word.as_str().unwrap().to_lowercase()), "{id}: {word} is not in {told}");
        }
    }
}

fn write(sandbox: &Sandbox, name: &str, content: &Value) {
    let path = sandbox.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    match (content.as_str(), content["hex"].as_str(), content["symlink"].as_str()) {
        (Some(text), ..) => std::fs::write(path, text).unwrap(),
        (_, Some(hex), _) => {
            let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            std::fs::write(path, (0..hex.len()).step_by(2).map(byte).collect::<Vec<_>>()).unwrap();
        }
        (_, _, Some(target)) => std::os::unix::fs::symlink(target, path).unwrap(),
        _ => panic!("{name}: {content}"),
    }
}
