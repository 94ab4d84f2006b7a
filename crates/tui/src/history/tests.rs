use super::*;

fn history_of(entries: &[&str]) -> History {
    let mut history = History::in_memory();
    entries.iter().for_each(|entry| history.add(entry).unwrap());
    history
}

fn all(mut history: History) -> Vec<String> {
    let mut entries: Vec<_> = std::iter::from_fn(|| history.older("")).collect();
    entries.reverse();
    entries
}

fn file_with(content: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history");
    fs::write(&path, content).unwrap();
    (directory, path)
}

#[test]
fn going_back_and_forth_ends_with_the_draft() {
    let mut history = history_of(&["one", "two"]);
    assert_eq!(history.older("draft").as_deref(), Some("two"));
    assert_eq!(history.older("two, edited").as_deref(), Some("one"));
    assert_eq!(history.older("one"), None);
    assert_eq!(history.newer().as_deref(), Some("two"));
    assert_eq!(history.newer().as_deref(), Some("draft"));
    assert_eq!(history.newer(), None);
}

#[test]
fn what_is_sent_ends_the_search() {
    let mut history = history_of(&["one", "two"]);
    history.older("draft");
    history.older("");
    history.add("three").unwrap();
    assert_eq!(history.newer(), None);
    assert_eq!(history.older("").as_deref(), Some("three"));
}

#[test]
fn repetitions_blanks_and_very_long_texts_are_not_kept() {
    let long = "x".repeat(MAX_BYTES + 1);
    assert_eq!(all(history_of(&["one", "one", " \n", &long, "two", "one"])), ["one", "two", "one"]);
}

#[test]
fn lines_and_quotes_survive_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state/history");
    let mut history = History::load(&path);
    history.add("two\nlines \"quoted\"").unwrap();
    history.add("ünï 漢").unwrap();
    assert_eq!(all(History::load(&path)), ["two\nlines \"quoted\"", "ünï 漢"]);
}

#[test]
fn two_processes_add_to_the_same_file() {
    let (_directory, path) = file_with("");
    let (mut one, mut other) = (History::load(&path), History::load(&path));
    one.add("from one").unwrap();
    other.add("from the other").unwrap();
    one.add("again from one").unwrap();
    assert_eq!(all(History::load(&path)), ["from one", "from the other", "again from one"]);
}

#[test]
fn lines_that_are_no_json_strings_are_plain_entries() {
    let (_directory, path) = file_with("#V2\nplain text\n\"json\"\n{\"an\": \"object\"}\n\n\"cut off\n");
    assert_eq!(all(History::load(&path)), ["plain text", "json", "{\"an\": \"object\"}", "\"cut off"]);
}

#[test]
fn bytes_that_are_no_text_do_not_hide_the_rest() {
    let (_directory, path) = file_with("");
    fs::write(&path, b"\xff\xfe\n\"after\"\n").unwrap();
    assert_eq!(all(History::load(&path)), ["\u{fffd}\u{fffd}", "after"]);
}

#[test]
fn the_newest_thousand_are_kept_and_a_file_twice_as_long_is_shortened() {
    let lines: String = (0..2_500).map(|number| format!("\"{number}\"\n")).collect();
    let (directory, path) = file_with(&lines);
    let entries = all(History::load(&path));
    assert_eq!((entries.len(), entries[0].as_str(), entries[999].as_str()), (1_000, "1500", "2499"));
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1_000);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);

    let mut history = History::load(&path);
    history.add("newest").unwrap();
    assert_eq!(all(history).len(), 1_000);
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history");
    History::load(&path).add("secret").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_history_that_cannot_be_written_says_so_and_still_works() {
    let directory = tempfile::tempdir().unwrap();
    let mut history = History::load(directory.path());
    assert!(history.add("one").is_err());
    assert_eq!(history.older("").as_deref(), Some("one"));
}
