//! Projects of a corpus, good and bad: loaded, or refused with words that name what is wrong.

#![expect(clippy::unwrap_used, reason = "a broken set-up must stop the test")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use llm_do_core::{StatelessToolset, Toolset};
use llm_do_project::{Catalogue, WantedToolset, load};
use serde_json::Value;

/// The names of the built-in toolsets, without their tools.
struct Names;

const BUILT_IN: [&str; 7] = [
    "filesystem_cwd",
    "filesystem_cwd_ro",
    "filesystem_project",
    "filesystem_project_ro",
    "shell_readonly",
    "shell_file_ops",
    "dynamic_agents",
];

impl Catalogue for Names {
    fn providers(&self) -> Vec<&str> {
        vec!["test", "anthropic", "openai"]
    }

    fn toolsets(&self) -> Vec<&str> {
        BUILT_IN.to_vec()
    }

    fn toolset(&self, wanted: WantedToolset<'_>) -> Result<Arc<dyn Toolset>, String> {
        let unknown = wanted.settings.as_object().and_then(|map| map.keys().find(|key| *key != "rules"));
        match unknown {
            Some(key) => Err(format!("unknown setting `{key}`")),
            None => Ok(Arc::new(StatelessToolset::new(wanted.name, []))),
        }
    }
}

struct Folder(PathBuf);

impl Folder {
    fn with(id: &str, files: &Value) -> Self {
        let root = std::env::temp_dir().join(format!("llm-do-project-{}-{id}", std::process::id()));
        let folder = Self(root);
        std::fs::create_dir_all(&folder.0).unwrap();
        for (name, content) in files.as_object().unwrap() {
            folder.write(name, content);
        }
        folder
    }

    fn write(&self, name: &str, content: &Value) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match content {
            Value::String(text) => std::fs::write(path, text).unwrap(),
            other => match (other["hex"].as_str(), other["symlink"].as_str()) {
                (Some(hex), _) => std::fs::write(path, bytes(hex)).unwrap(),
                (_, Some(target)) => std::os::unix::fs::symlink(target, path).unwrap(),
                _ => panic!("{name}: {other}"),
            },
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// What loading says: nothing where it succeeds.
fn words(folder: &Path) -> Option<String> {
    load(folder, &Names).err().map(|diagnostics| diagnostics.to_string())
}

#[test]
fn every_project_of_the_corpus_gets_the_expected_reaction() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("corpus/project_files.json")).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let id = case["id"].as_str().unwrap();
        let folder = Folder::with(id, &case["files"]);
        let begun = Instant::now();
        let said = words(&folder.0);
        if begun.elapsed() > Duration::from_secs(2) {
            wrong.push(format!("{id}: took {:?}", begun.elapsed()));
        }
        let reaction = if said.is_some() { "error" } else { "ok" };
        let also_ok =
            case["also_ok"].as_array().is_some_and(|list| list.iter().any(|other| other == reaction));
        let said = said.unwrap_or_default();
        if case["expect"] != reaction && !also_ok {
            wrong.push(format!("{id} ({}): {reaction} instead of {}\n{said}", case["why"], case["expect"]));
            continue;
        }
        let lower = said.to_lowercase();
        let mentions = case["must_mention"].as_array().cloned().unwrap_or_default();
        let missing = mentions.iter().filter(|word| !lower.contains(&word.as_str().unwrap().to_lowercase()));
        if reaction == "error" {
            wrong.extend(missing.map(|word| format!("{id}: {word} is not mentioned in:\n{said}")));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n\n{}", wrong.len(), wrong.join("\n\n"));
}
