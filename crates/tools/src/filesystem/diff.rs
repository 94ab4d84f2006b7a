//! Shows a person what a change would do to a file.

use std::time::Duration;

use llm_do_core::counted;
use similar::TextDiff;

/// How much of a diff is shown.
const MAX_BYTES: usize = 64 * 1024;
/// How many lines around a change are shown.
const CONTEXT: usize = 3;
/// How much text is compared line by line; of more, only the beginning and the end are compared.
const MAX_COMPARED_BYTES: usize = 8 * 1024 * 1024;
const MAX_COMPARED_LINES: usize = 50_000;
/// How long to look for a short diff before a longer one will do.
const TIME: Duration = Duration::from_secs(2);

/// Returns a unified diff for a person, or a sentence if the contents are not text.
pub fn preview(path: &str, before: Option<&[u8]>, after: &[u8]) -> String {
    let old = before.unwrap_or_default();
    match (std::str::from_utf8(old), std::str::from_utf8(after)) {
        (Ok(old), Ok(new)) if old == new && before.is_some() => "no change".to_owned(),
        (Ok(old), Ok(new)) => unified(path, before.is_some(), old, new),
        _ => {
            let verb = if old.len() == 1 { "is" } else { "are" };
            let [old, after] = [old, after].map(|content| counted(content.len(), "byte"));
            format!("replaces {old} that {verb} not text by {after}")
        }
    }
}

fn unified(path: &str, exists: bool, old: &str, new: &str) -> String {
    let before = if exists { format!("a/{path}") } else { "/dev/null".to_owned() };
    let after = format!("b/{path}");
    if is_long(old, new) {
        return one_hunk(&before, &after, old, new);
    }
    let diff = TextDiff::configure().timeout(TIME).diff_lines(old, new);
    cut(&diff.unified_diff().context_radius(CONTEXT).header(&before, &after).to_string())
}

/// Returns whether a diff by lines would take too much memory: it keeps several words for each line.
fn is_long(old: &str, new: &str) -> bool {
    let lines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
    old.len() + new.len() > MAX_COMPARED_BYTES || lines(old) + lines(new) > MAX_COMPARED_LINES
}

/// Writes a diff of one hunk: everything between the lines that both texts begin with and those that both end with.
fn one_hunk(before: &str, after: &str, old: &str, new: &str) -> String {
    let start = common_start(old, new);
    let end = common_end(&old[start..], &new[start..]);
    let (removed, added) = (&old[start..old.len() - end], &new[start..new.len() - end]);
    let lead = last_lines(&old[..start]);
    let trail = first_lines(&old[old.len() - end..]);
    let first = old[..start - lead.len()].lines().count() + 1;
    let count = |changed: &str| [lead, changed, trail].map(|part| part.lines().count()).iter().sum::<usize>();
    let mut hunk = DiffOutput::default();
    hunk.push("", &format!("--- {before}\n+++ {after}\n"));
    hunk.push("", &format!("@@ -{first},{} +{first},{} @@\n", count(removed), count(added)));
    for (mark, part) in [(" ", lead), ("-", removed), ("+", added), (" ", trail)] {
        part.split_inclusive('\n').for_each(|line| hunk.push(mark, line));
    }
    hunk.finish()
}

/// How many bytes of whole lines both texts begin with.
fn common_start(old: &str, new: &str) -> usize {
    let equal = old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count();
    old.as_bytes()[..equal].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1)
}

/// How many bytes of whole lines both texts end with.
fn common_end(old: &str, new: &str) -> usize {
    let equal = old.bytes().rev().zip(new.bytes().rev()).take_while(|(old, new)| old == new).count();
    let end = &old.as_bytes()[old.len() - equal..];
    end.iter().position(|byte| *byte == b'\n').map_or(0, |newline| end.len() - newline - 1)
}

fn last_lines(text: &str) -> &str {
    let mut starts = text.rmatch_indices('\n').map(|(newline, _)| newline + 1);
    // The first line end is that of the last line itself.
    starts.nth(CONTEXT).map_or(text, |start| &text[start..])
}

fn first_lines(text: &str) -> &str {
    let end: usize = text.split_inclusive('\n').take(CONTEXT).map(str::len).sum();
    &text[..end]
}

/// Lines of a diff as far as they are shown, and how much is left out.
#[derive(Default)]
struct DiffOutput {
    text: String,
    lines_left_out: usize,
    bytes_left_out: usize,
}

impl DiffOutput {
    fn push(&mut self, mark: &str, line: &str) {
        let ending = if line.ends_with('\n') { "" } else { "\n\\ No newline at end of file\n" };
        let size = mark.len() + line.len() + ending.len();
        if self.lines_left_out > 0 || self.text.len() + size > MAX_BYTES {
            self.lines_left_out += 1;
            self.bytes_left_out += size;
        } else {
            self.text.extend([mark, line, ending]);
        }
    }

    fn finish(mut self) -> String {
        if self.lines_left_out > 0 {
            self.text.push_str(&left_out(self.lines_left_out, self.bytes_left_out));
        }
        self.text
    }
}

/// Cuts at the end of a line, and says how much is left out.
fn cut(diff: &str) -> String {
    if diff.len() <= MAX_BYTES {
        return diff.to_owned();
    }
    let end = diff.floor_char_boundary(MAX_BYTES);
    let end = diff[..end].rfind('\n').map_or(end, |newline| newline + 1);
    let rest = &diff[end..];
    format!("{}{}", &diff[..end], left_out(rest.lines().count(), rest.len()))
}

fn left_out(lines: usize, bytes: usize) -> String {
    format!("[cut here: {}, {}, are in the arguments]\n", counted(lines, "more line"), counted(bytes, "byte"))
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
    fn a_change_of_a_long_file_is_shown_as_one_hunk() {
        let lines: Vec<String> = (1..=60_000).map(|number| format!("line {number}\n")).collect();
        let old = lines.concat();
        let new = old.replace("line 500\n", "LINE 500\n").replace("line 502\n", "");
        let diff = preview("n.txt", Some(old.as_bytes()), new.as_bytes());
        let context = |first: usize| {
            lines[first - 1..first + 2].iter().map(|line| format!(" {line}")).collect::<String>()
        };
        let changed = "-line 500\n-line 501\n-line 502\n+LINE 500\n+line 501\n";
        let expected = format!("@@ -497,9 +497,8 @@\n{}{changed}{}", context(497), context(503));
        assert_eq!(diff, format!("--- a/n.txt\n+++ b/n.txt\n{expected}"));
    }

    #[test]
    fn a_long_file_that_repeats_itself_is_compared_within_its_bounds() {
        let old = "a\n".repeat(60_000);
        let shorter = preview("n", Some(old.as_bytes()), "a\n".repeat(59_999).as_bytes());
        assert!(shorter.contains("-a\n") && !shorter.contains("+a\n"), "{shorter}");
        let cut = preview("n", Some(old.as_bytes()), b"b");
        assert!(cut.len() < MAX_BYTES + 200 && cut.ends_with(" bytes, are in the arguments]\n"));
        let end = preview("n", Some(old.as_bytes()), old.trim_end().as_bytes());
        assert!(end.ends_with("-a\n+a\n\\ No newline at end of file\n"), "{end}");
    }

    #[test]
    fn what_is_not_text_is_described() {
        assert_eq!(preview("x", Some(b"\xff\xff"), b"abc"), "replaces 2 bytes that are not text by 3 bytes");
    }
}
