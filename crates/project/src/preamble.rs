//! Preambles: the text before the instructions of an agent, with facts about its environment, and files.
//!
//! What is named is checked when a project is loaded, and the text is made when a call of the agent begins. Nothing
//! is told that the author did not ask for, and no program is run for it.

mod environment;
mod file_map;
mod git;
mod preload;

use std::path::Path;
use std::sync::Arc;

use llm_do_core::{Failure, FailureKind, Preamble};
use serde_json::json;

use crate::catalog::Host;
use crate::diagnostic::Diagnostics;
use crate::project_files::ProjectFiles;
use crate::read::agent::Agent;

use environment::Environment;
use preload::Preload;

/// Reads the preamble of an agent, if it asks for one.
pub(crate) fn preamble(
    agent: &Agent,
    root: &Path,
    files: &ProjectFiles,
    host: Arc<dyn Host>,
    out: &mut Diagnostics,
) -> Option<Preamble> {
    let environment = Environment::read(agent, root, out);
    let preload = Preload::read(agent, root, files, &*host, out);
    if environment.is_none() && preload.is_none() {
        return None;
    }
    let header = &agent.file.header;
    let written = |key: &str| header.field(key).map(|field| field.value.to_value());
    let source = json!([written("env_info"), written("preload")]).to_string();
    let parts = Arc::new(PreambleParts { environment, preload, host });
    Some(Preamble::new(source, move || {
        let parts = parts.clone();
        Box::pin(async move { parts.text_aside().await })
    }))
}

/// What a preamble is made of.
struct PreambleParts {
    environment: Option<Environment>,
    preload: Option<Preload>,
    host: Arc<dyn Host>,
}

impl PreambleParts {
    /// Makes the text where reading files holds nobody up.
    async fn text_aside(self: Arc<Self>) -> Result<String, Failure> {
        let made = tokio::task::spawn_blocking(move || self.text()).await;
        made.unwrap_or_else(|_| Err("the task that reads files failed".to_owned())).map_err(|message| {
            Failure::new(FailureKind::Tool, format!("the preamble cannot be made: {message}"))
        })
    }

    fn text(&self) -> Result<String, String> {
        let environment = self.environment.as_ref().map(|environment| environment.text(&*self.host));
        let preload = self.preload.as_ref().map(|preload| preload.text(&*self.host)).transpose()?;
        let texts = environment.flatten().into_iter().chain(preload);
        Ok(texts.collect::<Vec<_>>().join("\n\n"))
    }
}
