//! Every case of the corpus of paths, through the gate.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::filesystem::support::Folder;

#[derive(Deserialize)]
struct Case {
    id: String,
    path: String,
    op: String,
    expect: String,
    class: String,
    setup: Vec<Setup>,
    #[serde(default)]
    check: Check,
    #[serde(default)]
    pattern: Option<String>,
    #[serde(default)]
    also_ok: Vec<String>,
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
enum Setup {
    File { path: String, text: String, mode: Option<String> },
    Mkdir { path: String },
    Symlink { path: String, target: String },
    Hardlink { path: String, target: String },
    Fifo { path: String },
    Fill { path: String, bytes: usize },
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Check {
    unchanged: Option<String>,
    absent: Option<String>,
    result_has: Option<String>,
    result_lacks: Option<String>,
    truncated: Option<bool>,
    max_seconds: Option<u64>,
}

impl Case {
    fn filled(&self, folder: &Folder, text: &str) -> String {
        let root = folder.root();
        text.replace("{ROOT}", root.to_str().unwrap()).replace("{T}", folder.path("").to_str().unwrap())
    }

    fn prepare(&self, folder: &Folder) {
        for setup in &self.setup {
            self.set_up(folder, setup);
        }
        let _ = fs::create_dir(folder.root());
    }

    fn set_up(&self, folder: &Folder, setup: &Setup) {
        let place = |path: &str| {
            let path = folder.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            path
        };
        match setup {
            Setup::File { path, text, mode } => {
                folder.put(path, text);
                if let Some(mode) = mode {
                    let mode = u32::from_str_radix(mode, 8).unwrap();
                    fs::set_permissions(place(path), fs::Permissions::from_mode(mode)).unwrap();
                }
            }
            Setup::Mkdir { path } => fs::create_dir_all(place(path)).unwrap(),
            Setup::Symlink { path, target } => symlink(self.filled(folder, target), place(path)).unwrap(),
            Setup::Hardlink { path, target } => fs::hard_link(folder.path(target), place(path)).unwrap(),
            Setup::Fifo { path } => {
                mknodat(CWD, place(path), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
            }
            Setup::Fill { path, bytes } => folder.put(path, vec![b'x'; *bytes]),
        }
    }

    fn call(&self, folder: &Folder) -> (&'static str, Value) {
        let path = self.filled(folder, &self.path);
        match self.op.as_str() {
            "read" => ("read_file", json!({"path": path})),
            "write" => ("write_file", json!({"path": path, "content": "NEW"})),
            "list" => {
                let pattern = self.pattern.as_deref().unwrap_or("**/*");
                ("list_files", json!({"path": path, "pattern": pattern}))
            }
            other => panic!("{}: unknown operation {other}", self.id),
        }
    }

    fn needs_an_ordinary_user(&self) -> bool {
        self.class == "permission" && rustix::process::geteuid().is_root()
    }
}

#[tokio::test]
async fn every_case_of_the_corpus_ends_as_it_should() {
    let text = include_str!("../../corpus/paths.json");
    let cases: Vec<Case> = serde_json::from_str(text).unwrap();
    assert_eq!(cases.len(), 75);
    let mut wrong = Vec::new();
    for case in cases.iter().filter(|case| !case.needs_an_ordinary_user()) {
        wrong.extend(problems_of(case).await.into_iter().map(|problem| format!("{}: {problem}", case.id)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

async fn problems_of(case: &Case) -> Vec<String> {
    let folder = Folder::empty();
    case.prepare(&folder);
    let unchanged = case.check.unchanged.as_ref().map(|path| (path, fs::read(folder.path(path)).unwrap()));
    let gate = folder.gate();
    let (tool, arguments) = case.call(&folder);
    let start = Instant::now();
    let result = gate.call(tool, arguments).await;
    let mut problems = result_problems(case, &result);
    if start.elapsed() > Duration::from_secs(case.check.max_seconds.unwrap_or(5)) {
        problems.push("it took too long".to_owned());
    }
    if let Some((path, _)) = unchanged.filter(|(path, bytes)| fs::read(folder.path(path)).unwrap() != *bytes)
    {
        // The corpus allows a protected file to be written after an approval, which this gate gives.
        if !(case.class == "protected" && result.is_ok()) {
            problems.push(format!("`{path}` has changed"));
        }
    }
    if case.check.absent.as_ref().is_some_and(|path| Path::new(&folder.path(path)).exists()) {
        problems.push("a file was made outside".to_owned());
    }
    problems
}

fn result_problems(case: &Case, result: &Result<Value, llm_do_core::Failure>) -> Vec<String> {
    let mut problems = Vec::new();
    let got = if result.is_ok() { "ok" } else { "denied" };
    if got != case.expect && !case.also_ok.iter().any(|other| other == got) {
        problems.push(format!("expected {}, got {result:?}", case.expect));
    }
    let Ok(value) = result else { return problems };
    let text = value.to_string();
    if case.check.result_has.as_ref().is_some_and(|part| !text.contains(part)) {
        problems.push(format!("a part is missing in {text}"));
    }
    if case.check.result_lacks.as_ref().is_some_and(|part| text.contains(part)) {
        problems.push(format!("a part should not be in {text}"));
    }
    if case.check.truncated.is_some_and(|wanted| value["truncated"] != wanted) {
        problems.push("it should say whether it was cut".to_owned());
    }
    problems
}
