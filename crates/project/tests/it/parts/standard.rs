//! A catalog with tools that can be listed alone, on a machine that is always the same.

use std::path::PathBuf;
use std::sync::Arc;

use llm_do_core::{Approval, StatelessToolset, Tool, Toolset};
use llm_do_project::{
    Catalog, CodeRunner, EmbeddingProgram, Host, Machine, ModelCatalog, ToolsetCatalog, WantedToolset,
};
use llm_do_testing::FunctionTool;
use serde_json::json;

/// The catalog.
#[derive(Clone)]
pub(crate) struct Standard;

const HOMES: [(&str, &str); 10] = [
    ("read_file", "files"),
    ("list_files", "files"),
    ("write_file", "files"),
    ("spawn", "process"),
    ("fork", "process"),
    ("goto", "process"),
    ("write_stderr", "stderr"),
    ("read_fd", "file_descriptors"),
    ("fd_to_file", "file_descriptors"),
    ("calculator", "calculator"),
];

impl Catalog for Standard {
    fn shared(&self) -> Arc<dyn Catalog> {
        Arc::new(self.clone())
    }
}

impl ToolsetCatalog for Standard {
    fn toolsets(&self) -> Vec<&str> {
        vec!["files", "process", "stderr", "file_descriptors", "calculator"]
    }

    fn toolset(&self, wanted: WantedToolset<'_>) -> Result<Arc<dyn Toolset>, String> {
        let tools = HOMES.iter().filter(|(_, home)| *home == wanted.built_in).map(|(tool, _)| tool_of(tool));
        Ok(Arc::new(StatelessToolset::new(wanted.name, tools)))
    }

    fn tool_home(&self, tool: &str) -> Option<&str> {
        HOMES.iter().find(|(name, _)| *name == tool).map(|(_, home)| *home)
    }

    fn lone_tools(&self) -> Vec<&str> {
        HOMES.iter().map(|(tool, _)| *tool).collect()
    }
}

impl EmbeddingProgram for Standard {}

impl CodeRunner for Standard {}

impl ModelCatalog for Standard {
    fn providers(&self) -> Vec<&str> {
        vec!["test", "anthropic", "openai", "gemini"]
    }
}

impl Host for Standard {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "EDITOR").then(|| "vi\nnano".to_owned())
    }

    fn machine(&self) -> Machine {
        let (hostname, username) = (Some("box".to_owned()), Some("ada".to_owned()));
        Machine { directory: Some(PathBuf::from("/somewhere")), hostname, username }
    }
}

fn tool_of(name: &str) -> Arc<dyn Tool> {
    FunctionTool::new(name, |_, _| async { Ok("done".into()) })
        .takes(json!({"type": "object", "properties": {"path": {"type": "string"}}}))
        .define(|definition| definition.approval = Approval::PreApproved)
        .shared()
}
