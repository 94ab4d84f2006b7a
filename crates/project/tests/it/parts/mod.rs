//! What the tests of whole projects share: a catalog of names, and folders that vanish.

#![allow(dead_code, reason = "each test uses its part")]

pub(crate) mod memory;
pub(crate) mod mutate;
pub(crate) mod seeds;
pub(crate) mod standard;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use llm_do_core::{StatelessToolset, Toolset};
use llm_do_project::{
    Catalog, CodeRunner, EmbeddingProgram, Host, ModelCatalog, ToolsetCatalog, WantedToolset,
};
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

/// A folder that is removed when it is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// An empty folder; `id` is unique in the test binary.
    pub(crate) fn new(id: &str) -> Self {
        let folder = Self(std::env::temp_dir().join(format!("llm-do-project-{}-{id}", std::process::id())));
        std::fs::create_dir_all(&folder.0).unwrap();
        folder
    }

    /// A folder with the files of a case of the corpus.
    pub(crate) fn with(id: &str, files: &Value) -> Self {
        let folder = Self::new(id);
        for (name, content) in files.as_object().unwrap() {
            folder.write_case(name, content);
        }
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, and the folders above it.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.place(name), content).unwrap();
    }

    fn write_case(&self, name: &str, content: &Value) {
        match (content.as_str(), content["symlink"].as_str()) {
            (None, Some(target)) => std::os::unix::fs::symlink(target, self.place(name)).unwrap(),
            _ => self.write(name, bytes_of(content)),
        }
    }

    fn place(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
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
