//! Names for hints: those that may have been meant, and lists of them.

use llm_do_core::nearest;

/// Returns a hint with the names that may have been meant: the nearest, and those that begin with what was written.
pub(crate) fn suggest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().take(MAX_COMPARED).collect();
    let mut near: Vec<&str> = known.iter().copied().filter(|name| name.starts_with(written)).collect();
    near.extend(nearest(written, known.iter().copied()));
    near.sort_unstable();
    near.dedup();
    near.truncate(MAX_NAMED);
    match (&near[..], &known[..]) {
        ([], []) => "there are none".to_owned(),
        ([], known) => format!("there are: {}", join_names(known)),
        (near, _) => format!("did you mean `{}`?", near.join("` or `")),
    }
}

/// How many names one message or hint has at most.
const MAX_NAMED: usize = 20;

/// How many names are compared with what was written.
const MAX_COMPARED: usize = 1_000;

/// Lists names, as many as somebody may want to read.
pub(crate) fn join_names<T: std::borrow::Borrow<str>>(names: &[T]) -> String {
    let shown = &names[..names.len().min(MAX_NAMED)];
    let more = if names.len() > shown.len() { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
