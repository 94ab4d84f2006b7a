//! Thousands of broken projects: each ends soon, without a panic, in a project or in diagnostics that say where.
//!
//! A mutation is made from a number alone. A failure prints it, and `LLM_DO_MUTATION=NUMBER` repeats that one;
//! `LLM_DO_MUTATIONS` says how many are made.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use llm_do_project::{Diagnostic, Diagnostics, load};
use serde_json::{Value, json};

use crate::parts::memory::{forget_peak, peak};
use crate::parts::mutate::{Files, mutated};
use crate::parts::{Names, bytes_of, corpus, seeds};
use llm_do_testing::{Chance, TestDir, own_process};

/// How many mutations are made where nobody says otherwise.
const MUTATIONS: u64 = 2_000;

/// Two seconds, and more for code that no compiler has optimized.
const MAX_DURATION: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 2 });

/// The memory that loading may take, in kilobytes.
const MAX_BYTES: u64 = 200 * 1024;

#[test]
fn mutated_projects_load_or_are_refused_with_places() {
    own_process!();
    let projects = projects();
    let number = |key: &str| std::env::var(key).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = match number("LLM_DO_MUTATION") {
        Some(one) => one..one + 1,
        None => 0..number("LLM_DO_MUTATIONS").unwrap_or(MUTATIONS),
    };
    let (mut loaded, mut slowest, mut largest) = (0, (Duration::ZERO, 0), (0, 0));
    for case in cases.clone() {
        // Beyond what a panic tells, the name of the folder tells the case to whoever finds it left behind.
        let folder = TestDir::named(&format!("mutation-{case}"));
        for (name, content) in mutated(&projects, &mut Chance::new(case)) {
            folder.write(&name, content);
        }
        forget_peak();
        let begun = Instant::now();
        let judged = judge(&folder);
        slowest = slowest.max((begun.elapsed(), case));
        largest = largest.max((peak(), case));
        loaded += judged.map_or_else(|problem| panic!("LLM_DO_MUTATION={case}: {problem}"), u64::from);
    }
    println!("{cases:?}: {loaded} loaded, slowest {slowest:?}, largest {largest:?} KiB");
    assert!(slowest.0 <= MAX_DURATION, "LLM_DO_MUTATION={} took {:?}", slowest.1, slowest.0);
    assert!(largest.0 <= MAX_BYTES, "LLM_DO_MUTATION={} took {} KiB", largest.1, largest.0);
}

#[test]
fn a_value_of_any_kind_at_any_key_is_read_or_refused_with_its_place() {
    let manifest = seeds::manifest();
    let header = seeds::header();
    for (number, wrong) in wrong_documents(&manifest).into_iter().enumerate() {
        let name = if number % 2 == 0 { "project.json" } else { "project.yaml" };
        let folder = TestDir::new();
        folder.write(name, wrong.to_string());
        folder.write("agents/main.agent", seeds::agent(&header));
        judge(&folder).unwrap_or_else(|problem| panic!("{name} {wrong}: {problem}"));
    }
    for wrong in wrong_documents(&header) {
        let folder = TestDir::new();
        folder.write("project.json", manifest.to_string());
        folder.write("agents/main.agent", seeds::agent(&wrong));
        judge(&folder).unwrap_or_else(|problem| panic!("{wrong}: {problem}"));
    }
}

#[test]
fn the_seeds_are_projects_without_errors() {
    for (number, files) in seeds::projects().into_iter().enumerate() {
        let folder = TestDir::new();
        files.iter().for_each(|(name, content)| folder.write(name, content));
        assert_eq!(judge(&folder), Ok(true), "{number}: {}", load(folder.path(), &Names).err().unwrap());
    }
}

/// The valid seeds, and all of the corpus that is made of files.
fn projects() -> Vec<Files> {
    let of_case = |case: &Value| -> Files {
        let files = case["files"].as_object().unwrap().iter();
        let regular = files.filter(|(_, content)| content["symlink"].is_null());
        regular.map(|(name, content)| (name.clone(), bytes_of(content))).collect()
    };
    let cases = corpus();
    // Half of all mutations begin with a valid project: there is more in it to break.
    let repeated = seeds::projects().into_iter().cycle().take(cases.len());
    repeated.chain(cases.iter().map(of_case)).filter(|files| !files.is_empty()).collect()
}

/// A document with each of its values replaced by others, left out, or under a misspelled key.
fn wrong_documents(document: &Value) -> Vec<Value> {
    let deep = (0..60).fold(json!(1), |inner, _| json!([inner]));
    let others = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5e300),
        json!(u64::MAX),
        json!(""),
        json!("\u{202e}\n\u{1b}[31m\u{0}"),
        json!([]),
        json!([[], null]),
        json!({}),
        json!({"": {"a/b~c": 1}}),
        deep,
    ];
    let mut wrong = Vec::new();
    for pointer in pointers(document, "") {
        for other in &others {
            let mut document = document.clone();
            *document.pointer_mut(&pointer).unwrap() = other.clone();
            wrong.push(document);
        }
        let (parent, key) = pointer.rsplit_once('/').unwrap_or(("", ""));
        for misspelled in [format!("{key}s"), "x".repeat(300), String::new(), format!("{key}\u{7}")] {
            let mut document = document.clone();
            if let Some(Value::Object(map)) = document.pointer_mut(parent)
                && let Some(value) = map.shift_remove(key)
            {
                map.insert(misspelled, value);
                wrong.push(document);
            }
        }
    }
    wrong
}

fn pointers(value: &Value, pointer: &str) -> Vec<String> {
    let inner: Vec<String> = match value {
        Value::Object(map) => {
            map.iter().flat_map(|(key, value)| pointers(value, &format!("{pointer}/{key}"))).collect()
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(at, item)| pointers(item, &format!("{pointer}/{at}")))
            .collect(),
        _ => Vec::new(),
    };
    std::iter::once(pointer.to_owned()).chain(inner).collect()
}

/// Loads a folder and says whether it is a project, or what the diagnostics lack.
fn judge(folder: &TestDir) -> Result<bool, String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| match load(folder.path(), &Names) {
        Ok(project) => {
            let _ = project.reach().to_string();
            (true, project.notices)
        }
        Err(diagnostics) => (false, diagnostics),
    }));
    let (is_loaded, diagnostics) = outcome.map_err(|_| "panicked".to_owned())?;
    if is_loaded == diagnostics.has_errors() {
        return Err(format!("loaded: {is_loaded}, but: {diagnostics}"));
    }
    judge_diagnostics(&diagnostics).map(|()| is_loaded)
}

fn judge_diagnostics(diagnostics: &Diagnostics) -> Result<(), String> {
    let written = catch_unwind(|| (diagnostics.to_string(), serde_json::to_string(&diagnostics.0)));
    let (text, json) = written.map_err(|_| format!("cannot be shown: {:?}", diagnostics.0))?;
    json.map_err(|error| format!("cannot be written as JSON: {error}"))?;
    match text.chars().find(|c| *c != '\n' && is_obeyed(*c)) {
        Some(c) => Err(format!("shows {c:?}: {text:?}")),
        None => diagnostics.0.iter().try_for_each(judge_diagnostic),
    }
}

/// Characters that a terminal or a reader's eye obeys instead of showing them.
fn is_obeyed(c: char) -> bool {
    let direction = ['\u{61c}', '\u{200e}', '\u{200f}'];
    c.is_control()
        || direction.contains(&c)
        || ('\u{202a}'..='\u{202e}').contains(&c)
        || ('\u{2066}'..='\u{2069}').contains(&c)
}

fn judge_diagnostic(diagnostic: &Diagnostic) -> Result<(), String> {
    let lacks = |what: &str| Err(format!("{what}: {diagnostic:?}"));
    if diagnostic.message.trim().is_empty() || diagnostic.file.as_os_str().is_empty() {
        return lacks("without message or file");
    }
    match (diagnostic.line, diagnostic.column) {
        (Some(1..), Some(1..)) => Ok(()),
        (None, None) if is_about_whole_file(&diagnostic.message) => Ok(()),
        _ => lacks("without place"),
    }
}

fn is_about_whole_file(message: &str) -> bool {
    [
        "cannot be read",
        "is not UTF-8",
        "not a regular file",
        "is a directory",
        "the agent file is empty",
        "no entry: ",
        "is not a project",
    ]
    .iter()
    .any(|words| message.contains(words))
}
