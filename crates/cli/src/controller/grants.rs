//! What the user allowed for the session: lists it and withdraws it.

use llm_do::Runtime;
use llm_do::approval::Grant;

use crate::text::visible;

/// Describes what the user allowed for the session.
pub(super) fn list(runtime: &Runtime) -> String {
    let grants = runtime.grants();
    if grants.is_empty() {
        return "nothing is allowed beyond single calls".to_owned();
    }
    let lines = grants.iter().map(|(id, Grant { subject, scope, .. })| {
        format!("{}  {} > {}: {scope}", id.0, subject.agent, subject.name)
    });
    visible(&lines.collect::<Vec<_>>().join("\n"))
}

/// Withdraws a grant by its number, and describes the result.
pub(super) fn revoke(runtime: &Runtime, number: &str) -> String {
    let grants = runtime.grants();
    match grants.iter().find(|(id, _)| id.0.to_string() == number) {
        Some((id, _)) => {
            runtime.revoke(*id);
            format!("grant {number} is withdrawn")
        }
        None if number.is_empty() => "write `/revoke N`; /approvals lists the numbers".to_owned(),
        None => format!("grant `{}` does not exist; /approvals lists them", visible(number)),
    }
}
