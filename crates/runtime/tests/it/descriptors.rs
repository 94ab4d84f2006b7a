//! Descriptors: that every text can be read completely by its parts, and what a model sees of it.

use llm_do_core::{Failure, FailureKind, Key};
use llm_do_runtime::{
    ContentStore, DescriptorSettings, Descriptors, Fd, FdId, FdSource, Selection, extraction_view,
    first_view, page_starts, reading_view,
};
use llm_do_testing::{Chance, own_process};
use serde_json::{Value, json};

/// How many random texts are read by `LLM_DO_DESCRIPTOR_CASES`, or by default.
const CASES: usize = 10_000;

fn settings() -> DescriptorSettings {
    DescriptorSettings { enabled: true, references: true, ..DescriptorSettings::default() }
}

fn table(settings: DescriptorSettings) -> Descriptors {
    Descriptors::new(settings, ContentStore::default())
}

fn with_text(text: &str, page_size: u64) -> (Descriptors, Fd) {
    let table = table(DescriptorSettings { page_size, ..settings() });
    table.add(FdId::from("fd:1.0"), text, FdSource::ToolResult).unwrap();
    let fd = table.get("fd:1.0").unwrap();
    (table, fd)
}

/// Texts of few different characters, so that line ends meet page ends often.
fn random_text(chance: &mut Chance) -> String {
    let alphabets: [&[&str]; 7] = [
        &["a", "b", "\n"],
        &["a", "ä", "漢", "🦀", "\n", "e\u{301}"],
        &["word ", "line\r\n", "\r"],
        &["x", "run of words "],
        &["\n"],
        &["🦀", "\u{200d}", "\u{feff}", "\0"],
        &["a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "\n"],
    ];
    let alphabet = *chance.one_of(&alphabets);
    // Some texts are so long that places are found from a mark in their middle.
    let most = chance.weighted(&[(50, 0), (600, 60), (348, 200), (2, 20_000)]);
    let count = chance.below(most + 1);
    (0..count).map(|_| *chance.one_of(alphabet)).collect()
}

#[test]
fn every_text_can_be_read_completely_by_pages_lines_and_characters() {
    let cases = std::env::var("LLM_DO_DESCRIPTOR_CASES").ok().and_then(|cases| cases.parse().ok());
    let stores = [ContentStore::default(), ContentStore::with_memory(std::env::temp_dir(), 0)];
    for seed in 0..cases.unwrap_or(CASES) {
        let mut chance = Chance::new(seed as u64);
        let text = random_text(&mut chance);
        let size = chance.weighted(&[(10, 1), (40, 7), (40, 40), (10, 5000)]);
        let size = 1 + chance.below(size) as u64 + text.len() as u64 / 100;
        let limit = chance.below(200) as u64;
        let settings = DescriptorSettings { page_size: size, limit, ..settings() };
        let table = Descriptors::new(settings, chance.one_of(&stores).clone());
        check_limit(&table, &text, limit, seed);
        table.add(FdId::from("fd:x"), &text, FdSource::ToolResult).unwrap();
        let fd = table.get("fd:x").unwrap();
        check_pages(&fd, &text, size, seed);
        check_parts(&fd, &text, &mut chance, seed);
    }
}

fn check_limit(table: &Descriptors, text: &str, limit: u64, seed: usize) {
    let shown = table.page_result(&Key::from("1/t1/tool/0"), text).unwrap();
    assert_eq!(shown.is_some(), text.chars().count() as u64 > limit, "seed {seed}");
}

/// Each page is the longest one that ends after a line end and is half full, or a full one where there is none.
fn check_pages(fd: &Fd, text: &str, size: u64, seed: usize) {
    let mut rest = text;
    for number in 1..=fd.info.pages {
        let page = fd.read(Selection::Page, number, 1).unwrap();
        assert_eq!(page.text, expected_page(rest, size as usize), "seed {seed}, page {number}");
        assert_eq!(page.characters(), page.text.chars().count() as u64, "seed {seed}, page {number}");
        check_edges(&page, text, seed);
        rest = &rest[page.text.len()..];
    }
    assert_eq!(rest, "", "seed {seed}");
    assert_eq!(page_starts(text, size).len() as u64, fd.info.pages, "seed {seed}");
    let failure = fd.read(Selection::Page, fd.info.pages + 1, 1).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Arguments);
}

/// The rule in its simplest form.
fn expected_page(rest: &str, size: usize) -> &str {
    let Some((end, _)) = rest.char_indices().nth(size) else { return rest };
    let full = &rest[..end];
    let line = full.rfind('\n').map(|newline| &full[..=newline]);
    line.filter(|line| line.chars().count() * 2 >= size).unwrap_or(full)
}

fn check_edges(part: &llm_do_runtime::Excerpt, text: &str, seed: usize) {
    let (from, to) = (part.from.byte as usize, part.to.byte as usize);
    assert_eq!(part.text, text[from..to], "seed {seed}");
    let is_edge = |at: usize| at == 0 || at == text.len() || text.as_bytes()[at - 1] == b'\n';
    assert_eq!(part.continued, !is_edge(from), "seed {seed}");
    assert_eq!(part.truncated, !part.text.is_empty() && !is_edge(to), "seed {seed}");
    assert_eq!(part.from.line, 1 + text[..from].matches('\n').count() as u64, "seed {seed}");
    let before_last = part.text.strip_suffix('\n').unwrap_or(&part.text);
    assert_eq!(part.last_line, part.from.line + before_last.matches('\n').count() as u64, "seed {seed}");
}

/// Reads lines, characters and pages in steps of chance, and puts them together again.
fn check_parts(fd: &Fd, text: &str, chance: &mut Chance, seed: usize) {
    assert_eq!(fd.read(Selection::All, 0, 0).unwrap().text, text, "seed {seed}");
    assert_eq!(fd.info.lines, text.split_inclusive('\n').count().max(1) as u64, "seed {seed}");
    for selection in [Selection::Page, Selection::Line, Selection::Char] {
        let total = match selection {
            Selection::Page => fd.info.pages,
            Selection::Line => fd.info.lines,
            _ => fd.info.chars,
        };
        let (mut read, mut next) = (String::new(), 1);
        while next <= total {
            let count = 1 + chance.below(2 + total as usize / 10) as u64;
            let part = fd.read(selection, next, count).unwrap();
            assert_eq!(part.count, count.min(total + 1 - next), "seed {seed}");
            check_edges(&part, text, seed);
            read.push_str(&part.text);
            next += count;
        }
        assert_eq!(read, text, "seed {seed}, by {selection}");
    }
}

#[test]
fn a_long_result_is_shown_by_its_first_page() {
    let table = table(DescriptorSettings { limit: 20, page_size: 12, ..settings() });
    let key = Key::from("1/t3/tool/1");
    assert_eq!(table.page_result(&key, "short enough").unwrap(), None);
    let shown = table.page_result(&key, "first line\nsecond line\nthird line\n").unwrap().unwrap();
    assert_eq!(
        shown,
        "<fd_result fd=\"fd:3.1\" pages=\"3\" page=\"1\" lines=\"1-1\" total_lines=\"3\" chars=\"11\" total_chars=\"34\" \
         source=\"tool_result\">\n\
         <message>The output has 34 characters. Use read_fd to read more pages.</message>\n\
         <preview>\nfirst line\n\n</preview>\n</fd_result>"
    );
    assert_eq!(table.list().len(), 1);
}

#[test]
fn a_long_text_in_a_field_is_a_descriptor_of_its_own_and_the_rest_is_shown() {
    let table = table(DescriptorSettings { limit: 100, page_size: 12, ..settings() });
    let key = Key::from("1/t3/tool/1");
    let lines: String = (1..=50).map(|line| format!("{line}\n")).collect();
    let value = json!({"exit_code": 0, "stdout": lines, "stderr": ""});
    let shown = table.page_value(&key, &value).unwrap().unwrap();
    assert!(
        shown.starts_with(
            "{\"exit_code\":0,\"stdout\":\"[fd:3.1.stdout: 141 characters, 50 lines, 12 pages]\",\"stderr\":\"\"}\n\
             <fd_result fd=\"fd:3.1.stdout\""
        ),
        "{shown}"
    );
    assert!(shown.contains("<preview>\n1\n2\n3\n"), "{shown}");
    let fd = table.get("fd:3.1.stdout").unwrap();
    assert_eq!(fd.read(Selection::Line, 7, 1).unwrap().text, "7\n");
    assert_eq!(table.page_value(&key, &value).unwrap().unwrap(), shown);
    assert_eq!(table.page_value(&key, &json!({"stdout": "short"})).unwrap(), None);
}

#[test]
fn a_value_whose_rest_is_too_long_as_well_is_read_as_json() {
    let table = table(DescriptorSettings { limit: 100, page_size: 50, ..settings() });
    let many: Vec<u32> = (0..100).collect();
    let value = json!({"1": "x".repeat(200), "many": many});
    let shown = table.page_value(&Key::from("1/t1/tool/0"), &value).unwrap().unwrap();
    assert!(shown.starts_with("<fd_result fd=\"fd:1.0\""), "{shown}");
    assert!(shown.ends_with("\n[fd:1.0.field1: 200 characters, 1 lines, 4 pages]"), "{shown}");
    let whole = table.get("fd:1.0").unwrap().read(Selection::All, 1, 1).unwrap().text;
    let rest: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(rest["many"], value["many"]);
    // Only so many fields: the rest of them is in the JSON, and nothing is lost.
    let fields = (0..40).map(|number| (format!("f{number}"), json!("y".repeat(200 + number))));
    let value = Value::Object(fields.collect());
    table.page_value(&Key::from("1/t2/tool/0"), &value).unwrap().unwrap();
    let rest: Value =
        serde_json::from_str(&table.get("fd:2.0").unwrap().read(Selection::All, 1, 1).unwrap().text).unwrap();
    assert_eq!(rest["f39"], value["f39"]);
    assert_eq!(table.get("fd:2.0.f3").unwrap().info.chars, 203);
}

#[test]
fn of_several_long_texts_only_some_are_shown_at_once() {
    let table = table(DescriptorSettings { limit: 1000, page_size: 400, ..settings() });
    let value = json!({"a": "x".repeat(2000), "b": "y".repeat(2000), "c": "z".repeat(2000)});
    let shown = table.page_value(&Key::from("1/t1/tool/0"), &value).unwrap().unwrap();
    assert!(shown.contains("xxx") && !shown.contains("zzz") && shown.contains("[fd:1.0.c: 2000"), "{shown}");
    assert_eq!(table.list().len(), 3);
}

#[test]
fn the_short_fields_of_a_long_input_stay_visible() {
    let table = table(DescriptorSettings { input_limit: Some(100), ..settings() });
    let shown =
        table.page_input_value(&json!({"task": "sum", "text": "x".repeat(200)}), None).unwrap().unwrap();
    assert!(shown.contains("\"task\":\"sum\"") && shown.contains("fd=\"fd:input.text\""), "{shown}");
}

#[test]
fn the_text_can_be_taken_out_of_what_is_shown_whatever_it_holds() {
    let text = "</preview>\n</fd_result>\n</fd_content>\n<fd_content chars=\"1\">\n";
    let (table, fd) = with_text(&text.repeat(3), 100);
    let chars = |shown: &str| {
        let value = shown.split(" chars=\"").nth(1).unwrap().split('"').next().unwrap();
        value.parse::<usize>().unwrap()
    };
    let shown = first_view(&fd).unwrap();
    let after = shown.split_once("<preview>\n").unwrap().1;
    let page = fd.read(Selection::Page, 1, 1).unwrap();
    assert_eq!(after.chars().take(chars(&shown)).collect::<String>(), page.text);
    let part = fd.read(Selection::Char, 5, 60).unwrap();
    let shown = reading_view(&fd.info, &part);
    let after = shown.split_once(">\n").unwrap().1;
    assert_eq!(after.chars().take(chars(&shown)).collect::<String>(), part.text);
    assert_eq!(table.list()[0].chars, fd.info.chars);
}

#[test]
fn a_part_says_where_it_stands_and_whether_lines_are_cut() {
    let (_table, fd) = with_text("one\ntwo\nthree\n", 5);
    let part = fd.read(Selection::Char, 3, 7).unwrap();
    assert_eq!(
        reading_view(&fd.info, &part),
        "<fd_content fd=\"fd:1.0\" pages=\"4\" lines=\"1-3\" total_lines=\"3\" chars=\"7\" total_chars=\"14\" mode=\"char\" \
         start=\"3\" count=\"7\" continued=\"true\" truncated=\"true\">\ne\ntwo\nt\n</fd_content>"
    );
    let pages = reading_view(&fd.info, &fd.read(Selection::Page, 3, 9).unwrap());
    assert!(pages.starts_with("<fd_content fd=\"fd:1.0\" page=\"3-4\" pages=\"4\" lines=\"3-3\""), "{pages}");
    assert!(pages.contains("continued=\"false\" truncated=\"false\">\nthree\n\n</fd_content>"), "{pages}");
}

#[test]
fn a_start_that_does_not_exist_names_those_that_do() {
    let (_table, fd) = with_text("one\ntwo\nthree\n", 5);
    let failure = |selection, start, count| fd.read(selection, start, count).unwrap_err().to_string();
    assert_eq!(
        failure(Selection::Page, 5, 1),
        "there is no page 5 in `fd:1.0`\nhint: `start` is from 1 to 4 in mode `page`"
    );
    assert_eq!(
        failure(Selection::Char, 0, 1),
        "there is no character 0 in `fd:1.0`\nhint: `start` is from 1 to 14 in mode `char`"
    );
    assert!(failure(Selection::Line, 4, 1).contains("from 1 to 3"));
    assert!(failure(Selection::Line, 1, 0).starts_with("`count` is 0"));
}

#[test]
fn an_empty_text_is_read_as_nothing() {
    let (_table, fd) = with_text("", 5);
    assert_eq!((fd.info.pages, fd.info.lines, fd.info.chars), (1, 1, 0));
    for selection in [Selection::Page, Selection::Line, Selection::Char, Selection::All] {
        assert_eq!(fd.read(selection, 1, 1).unwrap().text, "");
        assert!(selection == Selection::All || fd.read(selection, 2, 1).is_err());
    }
}

#[test]
fn an_unknown_descriptor_names_the_nearest_and_the_others() {
    let table = table(settings());
    let unknown = |table: &Descriptors| table.get("fd:3,1").unwrap_err().to_string();
    assert_eq!(unknown(&table), "there is no file descriptor `fd:3,1`\nhint: no file descriptor is open");
    for id in ["ref:plan", "fd:3.1"] {
        table.add(FdId::from(id), "text", FdSource::ToolResult).unwrap();
    }
    assert!(unknown(&table).ends_with("hint: did you mean `fd:3.1`? open are `fd:3.1`, `ref:plan`"));
}

#[test]
fn there_are_not_more_descriptors_than_permitted() {
    let table = table(DescriptorSettings { most: 2, ..settings() });
    let add = |id: &str| table.add(FdId::from(id), id, FdSource::ToolResult);
    add("fd:1.0").unwrap();
    add("fd:1.1").unwrap();
    let failure = add("fd:1.2").unwrap_err();
    assert_eq!(failure.kind, FailureKind::Limit);
    assert!(failure.to_string().contains("close some"), "{failure}");
    add("fd:1.1").unwrap();
    table.close("fd:1.0").unwrap();
    add("fd:1.2").unwrap();
    let ids: Vec<String> = table.list().iter().map(|info| info.id.to_string()).collect();
    assert_eq!(ids, ["fd:1.1", "fd:1.2"]);
}

#[test]
fn a_closed_descriptor_is_gone_and_so_is_its_text() {
    let store = ContentStore::default();
    let table = Descriptors::new(settings(), store.clone());
    table.add(FdId::from("fd:1.0"), "abcdef", FdSource::ToolResult).unwrap();
    assert_eq!(store.in_memory(), 6);
    table.close("fd:1.0").unwrap();
    assert_eq!(store.in_memory(), 0);
    assert!(table.close("fd:1.0").is_err());
}

#[test]
fn a_fork_shares_texts_and_nothing_else() {
    let store = ContentStore::default();
    let table = Descriptors::new(settings(), store.clone());
    table.add(FdId::from("fd:1.0"), "shared", FdSource::ToolResult).unwrap();
    let fork = table.fork();
    fork.add(FdId::from("fd:2.0"), "of the fork", FdSource::ToolResult).unwrap();
    table.close("fd:1.0").unwrap();
    assert_eq!(fork.get("fd:1.0").unwrap().read(Selection::All, 1, 1).unwrap().text, "shared");
    assert!(table.get("fd:2.0").is_err());
    assert_eq!(store.in_memory(), 6 + 11);
}

#[test]
fn what_is_passed_has_names_of_its_own() {
    let table = table(settings());
    for (id, text) in [("fd:1.0", "one"), ("ref:plan", "two"), ("fd:2.4", "three")] {
        table.add(FdId::from(id), text, FdSource::ToolResult).unwrap();
    }
    let passed = table.pass(["fd:2.4", "ref:plan", "fd:1.0"]).unwrap();
    let child = table_of(passed).unwrap();
    let texts = ["fd:a1", "ref:plan", "fd:a2"]
        .map(|id| child.get(id).unwrap().read(Selection::All, 1, 1).unwrap().text);
    assert_eq!(texts, ["three", "two", "one"]);
    assert!(table.pass(["fd:1.0", "fd:9.9"]).is_err());
}

fn table_of(passed: Vec<(FdId, llm_do_runtime::StoredContent)>) -> Result<Descriptors, Failure> {
    let child = table(DescriptorSettings { page_size: 2, ..settings() });
    for (id, content) in passed {
        child.add_content(id, content, FdSource::Passed)?;
    }
    Ok(child)
}

#[test]
fn references_can_be_read_by_their_names() {
    let table = table(settings());
    let answer = "<ref id=\"plan\">first</ref> and <ref id=\"code\">\nfn main() {}\n</ref>";
    let kept = table.keep_references(answer).unwrap();
    assert_eq!(kept.iter().map(|info| info.id.as_str()).collect::<Vec<_>>(), ["ref:plan", "ref:code"]);
    table.keep_references("<ref id=\"plan\">second</ref>").unwrap();
    assert_eq!(table.get("ref:plan").unwrap().read(Selection::All, 1, 1).unwrap().text, "second");
    assert_eq!(table.get("ref:code").unwrap().info.source, FdSource::Reference);
    let off = self::table(DescriptorSettings { references: false, ..settings() });
    assert_eq!(off.keep_references(answer).unwrap(), []);
}

#[test]
fn a_second_long_input_does_not_take_the_name_of_the_first() {
    let table = table(DescriptorSettings { input_limit: Some(5), ..settings() });
    assert_eq!(table.page_input("short", None).unwrap(), None);
    let first = table.page_input("a long input", None).unwrap().unwrap();
    let second = table.page_input("another long input", None).unwrap().unwrap();
    assert_eq!(table.page_input("a long input", None).unwrap().unwrap(), first);
    assert!(first.contains(" fd=\"fd:input\"") && first.contains("source=\"user_input\""), "{first}");
    assert!(second.contains(" fd=\"fd:input-2\""), "{second}");
    assert_eq!(table.list().len(), 2);
}

#[test]
fn a_part_that_is_taken_out_is_shown_without_its_text() {
    let (table, fd) = with_text("one\ntwo\nthree\n", 5);
    let part = fd.read(Selection::Line, 2, 1).unwrap();
    let info = table.extract(&Key::from("1/t2/tool/0"), &part).unwrap();
    assert_eq!(table.extract(&Key::from("1/t2/tool/0"), &part).unwrap(), info);
    assert_eq!(
        extraction_view(&info, &fd.info.id),
        "<fd_result fd=\"fd:2.0\" pages=\"1\" total_lines=\"1\" total_chars=\"4\" source=\"extraction\" from=\"fd:1.0\">\n\
         <message>The part has 4 characters, and is read as any other text.</message>\n</fd_result>"
    );
}

#[test]
fn many_threads_share_texts() {
    let store = ContentStore::with_memory(std::env::temp_dir(), 20_000);
    std::thread::scope(|scope| {
        for seed in 0..8 {
            let store = &store;
            scope.spawn(move || {
                let mut chance = Chance::new(seed);
                let table = Descriptors::new(settings(), store.clone());
                for _ in 0..500 {
                    let (number, name) = (chance.below(20), FdId::passed(chance.below(5)));
                    let text = number.to_string().repeat(2000);
                    table.add(name.clone(), &text, FdSource::Passed).unwrap();
                    let fd = table.get(name.as_str()).unwrap();
                    assert_eq!(fd.read(Selection::All, 1, 1).unwrap().text, text, "seed {seed}");
                }
            });
        }
    });
    assert_eq!(store.in_memory(), 0);
}

#[cfg(target_os = "linux")]
mod full_disk {
    //! A disk without room, made by a limit of the size of files.

    use std::process::Command;

    use super::*;

    #[test]
    fn a_text_without_room_is_a_failure() {
        let output = Command::new("sh")
            .args(["-c", "ulimit -f 64 && trap '' XFSZ && exec \"$@\"", "sh"])
            .arg(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "descriptors::full_disk::what_happens_without_room",
                "--ignored",
                "--nocapture",
            ])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }

    #[test]
    #[ignore = "run by the test above where there is no room"]
    fn what_happens_without_room() {
        let table = table(settings());
        let failure = table.page_result(&Key::from("1/t1/tool/0"), &"x".repeat(2_000_000)).unwrap_err();
        assert!(failure.message.starts_with("the text could not be stored"), "{failure}");
        assert!(failure.hint.unwrap().starts_with("there is no room"));
        assert!(table.list().is_empty());
        assert!(table.page_result(&Key::from("1/t1/tool/0"), &"x".repeat(20_000)).unwrap().is_some());
    }
}

#[cfg(target_os = "linux")]
mod large {
    //! A text of 32 MB, or of `LLM_DO_DESCRIPTOR_MEGABYTES`: stored with little memory, in a process of its own.

    #![allow(clippy::print_stdout, reason = "says how much memory was needed")]

    use super::*;

    const MEGABYTE: usize = 1024 * 1024;
    /// How much memory may be needed besides the text that the caller holds.
    const MAX_GROWTH: u64 = 16 * 1024;

    #[test]
    fn a_long_line_needs_little_memory() {
        own_process!();
        store_and_read(&"x".repeat(size()));
    }

    #[test]
    fn many_short_lines_need_little_memory() {
        own_process!();
        store_and_read(&"twenty characters..\n".repeat(size() / 20));
    }

    fn size() -> usize {
        let wanted = std::env::var("LLM_DO_DESCRIPTOR_MEGABYTES").ok().and_then(|size| size.parse().ok());
        wanted.unwrap_or(32_usize) * MEGABYTE
    }

    fn store_and_read(text: &str) {
        let before = memory("VmRSS:");
        let table = table(settings());
        let shown = table.page_result(&Key::from("1/t1/tool/0"), text).unwrap().unwrap();
        let fd = table.get("fd:1.0").unwrap();
        let mut longest = std::time::Duration::ZERO;
        for place in 0..=100 {
            let page = (fd.info.pages * place / 100).max(1);
            let begun = std::time::Instant::now();
            assert!(!fd.read(Selection::Page, page, 1).unwrap().text.is_empty());
            longest = longest.max(begun.elapsed());
        }
        println!("each of 101 pages was read in at most {longest:?}");
        let growth = memory("VmHWM:").saturating_sub(before);
        println!("{growth} kB more for {} bytes", text.len());
        assert!(growth <= MAX_GROWTH, "{growth} kB more for {} bytes", text.len());
        assert!(!fd.content.is_in_memory() && shown.len() < 5000);
    }

    /// What the process has in memory now, or had at most, in kB.
    fn memory(field: &str) -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}
