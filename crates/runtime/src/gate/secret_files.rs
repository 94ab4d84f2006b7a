//! Calls that read secret files: why they ask, and what they answer if nobody can be asked.
//!
//! The tool says which secret files a call reads ([`Subject::SecretFile`](llm_do_core::Subject)). No rule and no mode
//! answers for a person here, and a grant covers a file only with the content that was shown.

use llm_do_core::{Approval, Assessment, CallOrigin, Digest, Failure, Scope, SecretFile, visible_line};
use serde_json::Value;

use crate::project::plan::TargetKind;
use crate::state::live::LiveCall;
use crate::state::run_state::RunState;

/// Returns why a call asks: in the words of its tool, and because of the secret files that it reads.
pub(crate) fn reason(assessment: &Assessment) -> Option<String> {
    let secrets = assessment.secret_files().map(describe);
    let reasons: Vec<String> = assessment.reason.iter().cloned().chain(secrets).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

fn describe(file: &SecretFile) -> String {
    format!("`{}` is a secret file ({})", visible_line(&file.path), file.what)
}

/// Returns whether a call must ask because of the secret files that it reads.
///
/// A person whose prompt names a file has said that it may be read. It may not be changed by that.
pub(crate) fn must_ask(call: &LiveCall, assessment: &Assessment) -> bool {
    let only_reads = assessment.approval == Approval::PreApproved;
    are_read(assessment)
        && !(only_reads && assessment.secret_files().all(|file| is_in_prompt(call, &file.path)))
}

/// Returns whether the prompt with which a person began the run names a path.
fn is_in_prompt(call: &LiveCall, path: &str) -> bool {
    match &call.parent {
        Some(parent) if !call.is_top() => is_in_prompt(parent, path),
        _ => {
            let is_agent =
                call.target.as_ref().is_some_and(|target| matches!(target.kind, TargetKind::Agent));
            is_agent && call.origin == CallOrigin::Embedder && names_path(call.input.value(), path)
        }
    }
}

fn names_path(input: &Value, path: &str) -> bool {
    match input {
        Value::String(text) => words_of(text).any(|word| is_path(word, path)),
        Value::Array(items) => items.iter().any(|item| names_path(item, path)),
        Value::Object(fields) => fields.values().any(|value| names_path(value, path)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let separates = |ch: char| ch.is_whitespace() || "\"'`()[]<>{},;:!?".contains(ch);
    text.split(separates).filter(|word| !word.is_empty())
}

/// A word may begin with `./` or `@`, and end a sentence.
fn is_path(word: &str, path: &str) -> bool {
    let plain = |text: &'_ str| text.trim_start_matches('@').trim_start_matches("./").to_owned();
    let (word, path) = (plain(word), plain(path));
    !path.is_empty() && (word == path || word.strip_suffix('.') == Some(&path))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_is_named_by_whole_words_only() {
        for prompt in ["what is in .env?", "read ./.env.", "compare `.env` and b", "look at @.env", "(.env)"]
        {
            assert!(names_path(&json!({"input": prompt}), ".env"), "{prompt}");
        }
        for prompt in ["what is in .env.local?", "the env", "sub/.env", "x.env", "all files", ""] {
            assert!(!names_path(&json!({"input": prompt}), ".env"), "{prompt}");
        }
        assert!(!names_path(&json!("."), ""));
    }
}
