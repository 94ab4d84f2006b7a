//! What the tests of whole projects share: a catalog of names, and folders that vanish.

#![allow(dead_code, reason = "each test uses its part")]

pub(crate) mod memory;
pub(crate) mod mutate;
pub(crate) mod seeds;
pub(crate) mod standard;

use std::sync::Arc;

use llm_do_core::{StatelessToolset, Toolset};
use llm_do_project::{
    Catalog, CodeRunner, EmbeddingProgram, Host, ModelCatalog, ToolsetCatalog, WantedToolset,
};
use llm_do_testing::TestDir;
use serde_json::Value;

/// The names of the built-in toolsets, without their tools.
pub(crate) struct Names;

const BUILT_IN: [&str; 7] = [
    "filesystem_cwd",
    "filesystem_cwd_ro",
    "filesystem_project",
    "filesystem_project_ro",
    "shell_readonly",
    "shell_file_ops",
    "dynamic_agents",
];

impl Catalog for Names {
    fn shared(&self) -> Arc<dyn Catalog> {
        Arc::new(Self)
    }
}

impl ToolsetCatalog for Names {
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

impl EmbeddingProgram for Names {}

impl CodeRunner for Names {}

impl ModelCatalog for Names {
    fn providers(&self) -> Vec<&str> {
        vec!["test", "anthropic", "openai"]
    }
}

impl Host for Names {}

/// Makes a directory with the files of a case of the corpus.
pub(crate) fn directory_of(files: &Value) -> TestDir {
    let directory = TestDir::new();
    for (name, content) in files.as_object().unwrap() {
        write_case(&directory, name, content);
    }
    directory
}

fn write_case(directory: &TestDir, name: &str, content: &Value) {
    let Some(target) = content["symlink"].as_str() else { return directory.write(name, bytes_of(content)) };
    let path = directory.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(target, path).unwrap();
}

/// The content of a file of the corpus: text, or bytes in hexadecimal digits.
pub(crate) fn bytes_of(content: &Value) -> Vec<u8> {
    match (content.as_str(), content["hex"].as_str()) {
        (Some(text), _) => text.into(),
        (None, Some(hex)) => {
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
        }
        (None, None) => panic!("no content: {content}"),
    }
}

/// The cases of the corpus.
pub(crate) fn corpus() -> Vec<Value> {
    serde_json::from_str(include_str!("../../corpus/project_files.json")).unwrap()
}
