//! A folder in memory, and the two tools that work on it.

use std::sync::Mutex;

use futures::future::try_join_all;
use llm_do::Payload;
use llm_do::approval::Assessment;
use llm_do::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The files of the inbox. Tools ask for it as `Need<Inbox>`.
pub(crate) struct Inbox {
    files: Mutex<Vec<String>>,
}

impl Inbox {
    pub(crate) fn new(files: impl IntoIterator<Item = &'static str>) -> Self {
        Self { files: Mutex::new(files.into_iter().map(str::to_owned).collect()) }
    }

    fn names(&self) -> Result<Vec<String>, ToolError> {
        self.files.lock().map(|files| files.clone()).map_err(|_| ToolError::new("the inbox is broken"))
    }

    fn rename(&self, rename: &Rename) -> Result<(), ToolError> {
        let mut files = self.files.lock().map_err(|_| ToolError::new("the inbox is broken"))?;
        let file = files.iter_mut().find(|name| **name == rename.from);
        *file.ok_or_else(|| ToolError::new(format!("there is no file `{}`", rename.from)))? =
            rename.to.clone();
        Ok(())
    }
}

/// One file and its new name.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Rename {
    /// The name that the file has.
    from: String,
    /// The name that it gets.
    to: String,
}

/// Proposes a better name for every file of a folder.
///
/// Code that calls an agent: side by side, through the same gate, into the same trace.
#[tool(access = "read", approval = "pre_approved", effect = "calls")]
pub(crate) async fn propose_names(
    inbox: Need<Inbox>,
    call: CallContext,
    progress: Progress,
    /// The folder to look at.
    folder: String,
) -> Result<Vec<Rename>, ToolError> {
    let names = inbox.names()?;
    progress.report(format!("{} files in {folder}", names.len()));
    let proposals = names.into_iter().map(|from| {
        let call = call.clone();
        async move {
            let to = call.call("namer", from.as_str()).await?.parse()?;
            Ok::<_, Failure>(Rename { from, to })
        }
    });
    Ok(try_join_all(proposals).await?)
}

/// Renames files. Asks first.
#[tool(assess = preview)]
pub(crate) async fn rename_files(
    inbox: Need<Inbox>,
    /// The files and their new names.
    renames: Vec<Rename>,
) -> Result<String, ToolError> {
    renames.iter().try_for_each(|rename| inbox.rename(rename))?;
    Ok(format!("renamed {}; the inbox holds {}", renames.len(), inbox.names()?.join(", ")))
}

/// What a call of `rename_files` would do, shown to the person who is asked.
fn preview(input: &Payload, _call: &CallContext) -> Assessment {
    let renames: Vec<Rename> = serde_json::from_value(input.value()["renames"].clone()).unwrap_or_default();
    let mut assessment = Assessment::new(Approval::Ask, format!("rename {} files", renames.len()));
    let lines: Vec<String> =
        renames.iter().map(|rename| format!("- {}\n+ {}", rename.from, rename.to)).collect();
    assessment.preview = Some(lines.join("\n"));
    assessment
}
