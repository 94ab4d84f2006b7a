//! What happens if the code of a trusted project changed since its last run: a notice, or a question.

use llm_do::project::LoadedProject;
use llm_do_trust::{DirectoryIdentity, TrustEntry};

use super::question::{self, TrustReply};
use super::{changed, text};
use crate::command_error::CommandError;
use crate::config;
use crate::output;
use crate::text::visible_line;

/// Lets changed code run with a notice, or after a question if the user's configuration says so.
pub(super) fn decide(
    project: &LoadedProject,
    identity: &DirectoryIdentity,
    entry: &TrustEntry,
) -> Result<(), CommandError> {
    let changed = if entry.code.is_empty() || entry.own { Vec::new() } else { changed(project, entry) };
    if changed.is_empty() {
        return Ok(());
    }
    let names = visible_line(&changed.join(", "));
    if !config::current(Some(&project.root))?.trust_content_asks() {
        output::early_notice(&format!("{names} changed since the last run of this project"));
        return Ok(());
    }
    let shown = visible_line(&identity.path.to_string_lossy());
    match question::ask_once(&format!("{shown}: {names} changed since the last run of this project")) {
        TrustReply::Remember | TrustReply::Once => Ok(()),
        TrustReply::No | TrustReply::Without => {
            Err(CommandError::usage("the changed code was not agreed to, so nothing of it was run"))
        }
        TrustReply::NobodyToAsk => Err(refused(project, &names)),
    }
}

fn refused(project: &LoadedProject, names: &str) -> CommandError {
    let root = text::shown_root(&project.root);
    let digest = text::shown_digest(&project.powers);
    CommandError::with_hint(
        format!(
            "{names} changed since the last run of `{root}`, `trust.content` in your configuration is `ask`, and you \
             cannot be asked without a terminal"
        ),
        format!("look at the changes, then run it at a terminal; for this run only: `--trust={digest}`"),
    )
}
