//! Shows a person what a change would do to a file.

use std::time::Duration;

use llm_do_core::counted;
use similar::TextDiff;

/// How much of a diff is shown.
const MAX_BYTES: usize = 64 * 1024;
/// How long to look for a short diff before a longer one will do.
const TIME: Duration = Duration::from_secs(2);

/// Writes a unified diff, or says what a diff cannot show.
pub(crate) fn preview(path: &str, before: Option<&[u8]>, after: &[u8]) -> String {
    let old = before.unwrap_or_default();
    match (std::str::from_utf8(old), std::str::from_utf8(after)) {
        (Ok(old), Ok(new)) if old == new && before.is_some() => "no change".to_owned(),
        (Ok(old), Ok(new)) => cut(&unified(path, before.is_some(), old, new)),
        _ => {
            let verb = if old.len() == 1 { "is" } else { "are" };
            let [old, after] = [old, after].map(|content| counted(content.len(), "byte"));
            format!("replaces {old} that {verb} not text by {after}")
        }
    }
}

fn unified(path: &str, exists: bool, old: &str, new: &str) -> String {
    let before = if exists { format!("a/{path}") } else { "/dev/null".to_owned() };
    let diff = TextDiff::configure().timeout(TIME).diff_lines(old, new);
    diff.unified_diff().context_radius(3).header(&before, &format!("b/{path}")).to_string()
}

/// Cuts at the end of a line, and says how much is left out.
fn cut(diff: &str) -> String {
    if diff.len() <= MAX_BYTES {
        return diff.to_owned();
    }
    let end = diff.floor_char_boundary(MAX_BYTES);
    let end = diff[..end].rfind('\n').map_or(end, |newline| newline + 1);
    let left_out = &diff[end..];
    let lines = left_out.lines().count();
    format!(
        "{}[cut here: {}, {}, are in the arguments]\n",
        &diff[..end],
        counted(lines, "more line"),
        counted(left_out.len(), "byte")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_as_a_unified_diff() {
        let diff = preview("n.txt", Some(b"a\nb\nc\n"), b"a\nB\nc\n");
        assert_eq!(diff, "--- a/n.txt\n+++ b/n.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
    }

    #[test]
    fn a_new_file_is_shown_against_nothing() {
        assert_eq!(preview("n.txt", None, b"a\n"), "--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1 @@\n+a\n");
    }

    #[test]
    fn a_long_diff_is_cut_and_says_so() {
        let new = "line\n".repeat(100_000);
        let diff = preview("n.txt", None, new.as_bytes());
        assert!(diff.len() < MAX_BYTES + 200);
        assert!(diff.ends_with(" bytes, are in the arguments]\n"), "{}", &diff[diff.len() - 80..]);
    }

    #[test]
    fn what_is_not_text_is_described() {
        assert_eq!(preview("x", Some(b"\xff\xff"), b"abc"), "replaces 2 bytes that are not text by 3 bytes");
    }
}
