//! Calls that read secret files: why they ask, and what they answer if nobody can be asked.
//!
//! The tool says which secret files a call reads ([`Subject::SecretFile`](llm_do_core::Subject)). No rule and no mode
//! answers for a person here, and a grant covers a file only with the content that was shown.

use llm_do_core::{Assessment, Digest, Failure, Scope, SecretFile, visible_line};

use crate::state::RunState;

/// Returns why a call asks: in the words of its tool, and because of the secret files that it reads.
pub(crate) fn reason(assessment: &Assessment) -> Option<String> {
    let secrets = assessment.secret_files().map(describe);
    let reasons: Vec<String> = assessment.reason.iter().cloned().chain(secrets).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

fn describe(file: &SecretFile) -> String {
    format!("`{}` is a secret file ({})", visible_line(&file.path), file.what)
}

/// Returns whether a call reads secret files.
pub(crate) fn are_read(assessment: &Assessment) -> bool {
    assessment.secret_files().next().is_some()
}

/// Returns the scopes that may be granted for a call that reads secret files: exactly these, if nothing else asks.
pub(crate) fn scopes(assessment: &Assessment) -> Vec<Scope> {
    vec![Scope::SecretFiles(assessment.secret_files().cloned().collect())]
}

/// Makes the content of the files part of what is approved for exactly one call.
pub(crate) fn with_content(arguments: Digest, assessment: &Assessment) -> Digest {
    assessment.secret_files().fold(arguments, |digest, file| digest.then(&file.content))
}

/// Adds the way out to a denial, to the first one of a run.
pub(crate) fn with_way_out(failure: Failure, run: &RunState, assessment: &Assessment) -> Failure {
    let Some(file) = assessment.secret_files().next() else { return failure };
    if !run.mark_secret_denied() {
        return failure;
    }
    let path = visible_line(&file.path);
    failure.with_hint(format!(
        "a person can allow it when asked; if such files are not really secret, the manifest says so: \
         `secret_files: {{allow: [\"{path}\"]}}`, or for one run `--set 'secret_files.allow=[\"{path}\"]'`"
    ))
}
