//! How whole texts look, and what holds for any text.

use llm_do_testing::Chance;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use super::stable::Stable;
use super::{MarkdownStream, markdown};
use crate::Theme;
use crate::wrap::columns_of;

const COLORS: Theme = Theme { colors: true, light: false };
const RICH: &str = include_str!("tests/rich.md");

fn plain(rows: &[Line<'_>]) -> String {
    rows.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn draw(text: &str, width: u16) -> String {
    plain(&markdown(text, width, COLORS))
}

/// Writes styles out: `⟨bold magenta|text⟩`.
fn marked(rows: &[Line<'_>]) -> String {
    let mark = |style: Style, text: &str| match style_words(style) {
        words if words.is_empty() => text.to_owned(),
        words => format!("⟨{words}|{text}⟩"),
    };
    let line = |row: &Line<'_>| -> String {
        row.spans.iter().map(|span| mark(row.style.patch(span.style), &span.content)).collect()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn style_words(style: Style) -> String {
    let names = [
        (Modifier::BOLD, "bold"),
        (Modifier::DIM, "dim"),
        (Modifier::ITALIC, "italic"),
        (Modifier::UNDERLINED, "underlined"),
        (Modifier::CROSSED_OUT, "struck"),
    ];
    let has = |(modifier, _): &(Modifier, &str)| style.add_modifier.contains(*modifier);
    let modifiers = names.into_iter().filter(has).map(|(_, name)| name.to_owned());
    let color = style.fg.map(|color| color.to_string().to_lowercase());
    modifiers.chain(color).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_rich_text_at_40_columns() {
    insta::assert_snapshot!(draw(RICH, 40));
}

#[test]
fn a_rich_text_at_80_columns() {
    insta::assert_snapshot!(draw(RICH, 80));
}

#[test]
fn a_rich_text_at_140_columns() {
    insta::assert_snapshot!(draw(RICH, 140));
}

#[test]
fn a_rich_text_with_its_styles() {
    insta::assert_snapshot!(marked(&markdown(RICH, 80, COLORS)));
}

#[test]
fn a_rich_text_without_colors() {
    let rows = markdown(RICH, 80, Theme::default());
    let colored = rows.iter().flat_map(|row| &row.spans).find(|span| span.style.fg.is_some());
    assert_eq!(colored, None);
    assert_eq!(plain(&rows), draw(RICH, 80));
}

#[test]
fn wide_signs_and_emoji_keep_tables_and_rows_aligned() {
    let text = "漢字とかなの混じった文章。 Mixed 漢字 words ⚠️ and 👨‍👩‍👧 families 🦀🦀🦀🦀🦀.\n\n\
                | 名前 | Mark |\n|:--|--:|\n| 漢字 | ✅ |\n| 👩‍🚀 crew | e\u{301} |\n";
    insta::assert_snapshot!(draw(text, 24), @r#"
    漢字とかなの混じった文
    章。 Mixed 漢字 words ⚠️
    and 👨‍👩‍👧 families 🦀🦀
    🦀🦀🦀.

    ┌───────────┬──────┐
    │ 名前      │ Mark │
    ├───────────┼──────┤
    │ 漢字      │   ✅ │
    │ 👩🚀 crew │    é │
    └───────────┴──────┘
    "#);
}

#[test]
fn a_hostile_text_is_written_out() {
    let text = "\u{1b}[2J\u{1b}]0;title\u{7} **bo\u{202e}ld** `co\u{200b}de` [ok](https://a.b/\u{202e}x) &#27;[1m\r\n\
                next\u{9b}31m\u{7f}\r\n\r\n```rust\r\nlet x = \"\u{1b}[31m\";\r\n```\r\n\r\n<b onclick=\"\u{8}\">\r\n";
    insta::assert_snapshot!(draw(text, 60), @r#"
    \u{1b}[2J\u{1b}]0;title\u{7} bo\u{202e}ld co\u{200b}de ok
    (https://a.b/\u{202e}x) \u{1b}[1m
    next\u{9b}31m\u{7f}

    │ let x = "\u{1b}[31m";

    <b onclick="\u{8}">
    "#);
}

#[test]
fn a_table_too_narrow_for_columns_becomes_lines() {
    let text = "| Name | Purpose | Cost |\n|---|---|---:|\n| alpha | reads files | 10 |\n| beta | | 200 |\n";
    insta::assert_snapshot!(draw(text, 20), @r#"
    Name: alpha
    Purpose: reads files
    Cost: 10

    Name: beta
    Cost: 200
    "#);
}

#[test]
fn blocks_within_items_and_quotes_keep_their_marks() {
    let text = "> quote\n>\n> - item\n>   ```sh\n>   ls\n>   ```\n> - [ ] task\n\n1. one\n\n   more\n\n2. two\n   - a\n   - \n";
    insta::assert_snapshot!(draw(text, 40), @r#"
    ┃ quote
    ┃
    ┃ • item
    ┃   │ ls
    ┃ [ ] task

    1. one

       more

    2. two
       • a
       •
    "#);
}

#[test]
fn empty_texts_have_no_rows() {
    for text in ["", "\n\n", "   ", "[a]: b\n", ">\n", "#\n"] {
        assert_eq!(draw(text, 20), "", "{text:?}");
    }
}

#[test]
fn a_text_drawn_as_it_grows_is_the_text_drawn_at_once() {
    for seed in 0..4_000 {
        let mut chance = Chance::new(seed);
        let text = random_text(&mut chance);
        let width = *chance.one_of(&[9, 20, 40, 80]);
        let context = format!("seed {seed}, width {width}, {text:?}");

        let mut stream = MarkdownStream::default();
        let mut rows = Vec::new();
        for part in random_cuts(&text, &mut chance) {
            stream.push(part);
            rows.extend(stream.finished(width, COLORS));
            if chance.percent(20) {
                stream.unfinished(width, COLORS);
            }
        }
        let unfinished = stream.unfinished(width, COLORS);
        assert_eq!(stream.end(width, COLORS), unfinished, "{context}");
        rows.extend(unfinished);
        assert_eq!(marked(&rows), marked(&markdown(&text, width, COLORS)), "{context}");
    }
}

#[test]
fn an_unfinished_block_is_drawn_as_its_text_so_far() {
    let text = "intro\n\n- one\n  ```rust\n  let a = 1;\n  ```\n  ```\n  plain\n  ```\n- two\n\n  ```rust\n  /* b\n  */ fn c() {}\n  ```\n";
    let mut stream = MarkdownStream::default();
    let mut finished = Vec::new();
    for (place, c) in text.char_indices() {
        stream.push(&text[place..place + c.len_utf8()]);
        finished.extend(stream.finished(40, COLORS));
        let rows = [finished.clone(), stream.unfinished(40, COLORS)].concat();
        let so_far = &text[..place + c.len_utf8()];
        assert_eq!(marked(&rows), marked(&markdown(so_far, 40, COLORS)), "{so_far:?}");
    }
}

#[test]
fn what_was_finished_stays_finished() {
    for seed in 0..400 {
        let mut chance = Chance::new(seed);
        let text = random_text(&mut chance);
        let whole = markdown(&text, 40, COLORS);
        let mut stream = MarkdownStream::default();
        let mut rows = 0;
        for (place, c) in text.char_indices() {
            stream.push(&text[place..place + c.len_utf8()]);
            let finished = stream.finished(40, COLORS);
            let expected = whole.get(rows..rows + finished.len()).unwrap_or_default();
            assert_eq!(marked(&finished), marked(expected), "seed {seed}, at {place} of {text:?}");
            rows += finished.len();
        }
    }
}

/// Streams a text line by line and returns how many rows at most were not final.
fn most_unfinished(text: &str) -> usize {
    let mut stream = MarkdownStream::default();
    let unfinished = text.split_inclusive('\n').map(|line| {
        stream.push(line);
        stream.finished(40, COLORS);
        stream.unfinished(40, COLORS).len()
    });
    unfinished.max().unwrap_or(0)
}

#[test]
fn all_but_the_last_block_of_lists_quotes_and_code_is_final() {
    let numbered = |line: fn(usize) -> String| (1..200).map(line).collect::<String>();
    assert_eq!(most_unfinished(&numbered(|number| format!("- item {number}\n"))), 1);
    assert_eq!(most_unfinished(&numbered(|number| format!("{number}. item\n\n   more\n\n"))), 2);
    assert_eq!(most_unfinished(&numbered(|number| format!("- item {number}\n  - one\n    - two\n"))), 1);
    assert_eq!(most_unfinished(&numbered(|number| format!("> quote {number}\n>\n"))), 2);
    assert_eq!(
        most_unfinished(&format!("```rust\n{}", numbered(|number| format!("let a = {number};\n")))),
        1
    );
    assert_eq!(most_unfinished(&format!("- a\n  ```\n{}", numbered(|number| format!("  {number}\n")))), 1);
}

#[test]
fn what_is_final_is_forgotten() {
    let mut stream = MarkdownStream::default();
    for (head, line) in
        [("", "- one *more*\n"), ("\n> a\n\n", "1. item\n\n"), ("\n```rust\n", "let a = 1;\n")]
    {
        stream.push(head);
        for _ in 0..1_000 {
            stream.push(line);
            stream.finished(40, COLORS);
        }
        assert!(stream.kept() < 100, "{} bytes are kept of {line:?}", stream.kept());
    }
}

#[test]
fn of_a_huge_block_the_end_is_drawn() {
    let word = |number: usize| format!("w{number} ");
    let line: String = (0..100_000).map(word).collect();
    let rows: String = (0..10_000).map(|number| format!("| {number} | b |\n")).collect();
    for (text, last) in [
        (line.clone(), "w99999"),
        (format!("```rust\n{line}"), "w99999"),
        (format!("```\n{}", line.replace(' ', "\n\n")), "│ w99999"),
        (format!("| h | i |\n|---|---|\n{rows}"), "│ 9999 │ b │"),
        (format!("- {line}"), "w99999"),
    ] {
        let mut stream = MarkdownStream::default();
        stream.push(&text);
        let finished = stream.finished(80, COLORS);
        let end = plain(&stream.unfinished(80, COLORS));
        assert!(end.contains(last) || plain(&finished).contains(last), "{last}");
        assert!(end.len() < 200_000, "{last}: {}", end.len());
        let all = [finished, stream.end(80, COLORS)].concat();
        assert_eq!(all, markdown(&text, 80, COLORS), "{last}");
    }
}

#[test]
fn no_text_and_no_width_panics_or_overflows() {
    let widths = (1..=20).chain([40, 80]);
    for seed in 0..400 {
        let mut chance = Chance::new(seed);
        let text = if chance.percent(50) { random_bytes(&mut chance) } else { random_markdown(&mut chance) };
        for width in widths.clone() {
            let rows = markdown(&text, width, COLORS);
            let widest = rows.iter().map(|row| columns_of(&row.spans)).max().unwrap_or(0);
            assert!(
                widest <= usize::from(width),
                "seed {seed}, width {width}: {widest} columns for {text:?}"
            );
            for end in [rows.first(), rows.last()].into_iter().flatten().filter(|_| width > 3) {
                assert!(
                    !end.spans.is_empty(),
                    "seed {seed}, width {width}: a blank row at an end of {text:?}"
                );
            }
        }
        assert!(Stable::new(&text).end <= text.len());
    }
}

#[test]
fn huge_and_deep_texts_are_drawn_in_time_that_grows_with_their_size() {
    let huge = [
        "word ".repeat(200_000),
        "x".repeat(1_000_000),
        "漢".repeat(300_000),
        format!("| a | b |\n|---|---|\n{}", "| some text | more text |\n".repeat(10_000)),
        format!("{} deep", ">".repeat(5_000)),
        format!("{}deep", "- ".repeat(5_000)),
        format!("{}deep", "1. > ".repeat(5_000)),
        "*".repeat(20_000),
        "[".repeat(20_000),
        "![".repeat(5_000),
        format!("{}a{}", "**_".repeat(5_000), "_**".repeat(5_000)),
        format!("```rust\n{}", "fn f() {}\n".repeat(300)),
        format!("```\n{}", "fn f() {}\n".repeat(10_000)),
        format!("```rust\n{}", "(".repeat(500_000)),
        format!("|{}\n|{}\n", "a|".repeat(5_000), "-|".repeat(5_000)),
    ];
    for text in huge {
        let start = &text.chars().take(20).collect::<String>();
        let rows = markdown(&text, 80, COLORS);
        assert!(!rows.is_empty(), "{start}");
        assert!(rows.iter().all(|row| columns_of(&row.spans) <= 80), "{start}");
        assert!(Stable::new(&text).end <= text.len(), "{start}");
    }
}

/// What random texts are made of.
const PIECES: &[&str] = &[
    "word",
    "two words",
    "漢字",
    "🦀",
    "*emphasis*",
    "**strong**",
    "`code`",
    "~~gone~~",
    "[link](http://a.b)",
    "![alt](x.png)",
    "<b>html</b>",
    "<!-- comment",
    "-->",
    "<div>",
    "<pre>",
    "</pre>",
    "<script>",
    "# ",
    "## heading",
    "---",
    "===",
    "***",
    "-",
    "- ",
    "- item",
    "* item",
    "+ ",
    "1. first",
    "2) second",
    "10. ten",
    "- [ ] task",
    "- [x] done",
    "> ",
    "> quote",
    ">> deep",
    "```",
    "```rust",
    "````",
    "~~~",
    "fn main() {}",
    "    ",
    "    indented",
    "  ",
    " ",
    "\t",
    "| a | b |",
    "|---|:-:|",
    "|---|",
    "| c",
    "a | b",
    "--- | ---",
    "\\",
    "&amp;",
    "*",
    "_",
    "`",
    "[",
    "](",
    "  \n",
    "\n",
    "\n",
    "\n",
    "\n",
    "\n\n",
    "\n\n",
    "\n\n",
    "\n\n\n",
    "\r\n",
    "\r\n\r\n",
    "\r",
    "\n\n  ",
    "\n    ",
    "\n  - ",
    "\n> ",
    "\n   ",
];

fn random_markdown(chance: &mut Chance) -> String {
    let line_ends = chance.below(80) as u64;
    let mut text = String::new();
    for _ in 0..chance.between(1, 40) {
        text += PIECES[chance.below(PIECES.len())];
        if chance.percent(line_ends) {
            text.push('\n');
        }
    }
    text
}

/// Lines that go on with lists, quotes and what stands in them.
const LINES: &[&str] = &[
    "- item",
    "- item",
    "- [x] done",
    "-",
    "* other",
    "1. one",
    "1. one",
    "2. two",
    "99999. many",
    "999999999. most",
    "7) seven",
    "- # heading",
    "- ```rust",
    "- > quote",
    "- - - deep",
    "1. - mixed",
    "-     code",
    "- a | b",
    "- ***",
    "---",
    "lazy continuation",
    "  continued *and",
    "styled* `text`",
    "  - nested",
    "  - nested",
    "   1. nested",
    "    - nested",
    "      - deeper",
    "\t- tabbed",
    " \t- tabbed",
    "- 漢",
    "  ",
    "",
    "",
    "",
    "  | a | b |",
    "  |---|---|",
    "  > quoted",
    "  ```rust",
    "  /* let a",
    "  = 1; */ fn b",
    "  ```",
    "      indented",
    "```rust",
    "fn main() {}",
    "```",
    "> quote",
    "> quote",
    ">",
    "> - item",
    ">   more",
    "> 3. item",
    "> ```",
    "> > deep",
    ">> deep",
    "<div>",
    "  <b>",
    "&#32;",
    "- &#32;",
    "# heading",
];

/// Texts in which lists and quotes go on.
fn random_lists(chance: &mut Chance) -> String {
    // Few kinds of lines make long lists.
    let kinds: Vec<&str> = (0..chance.between(1, 12)).map(|_| *chance.one_of(LINES)).collect();
    let line_end = if chance.percent(10) { "\r\n" } else { "\n" };
    (0..chance.between(1, 40)).map(|_| format!("{}{line_end}", chance.one_of(&kinds))).collect()
}

fn random_text(chance: &mut Chance) -> String {
    if chance.percent(50) { random_lists(chance) } else { random_markdown(chance) }
}

fn random_cuts<'a>(text: &'a str, chance: &mut Chance) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut left = text;
    while !left.is_empty() {
        let length = chance.between(1, 30);
        let end =
            left.char_indices().map(|(place, _)| place).find(|place| *place >= length).unwrap_or(left.len());
        let (part, after) = left.split_at(end);
        parts.push(part);
        left = after;
    }
    parts
}

fn random_bytes(chance: &mut Chance) -> String {
    let signs = b"*_`~[]()!<>#-+|=:\\&;\n\n\n\r\t  0123ab";
    let byte = |chance: &mut Chance| {
        if chance.percent(70) { *chance.one_of(signs) } else { chance.below(256) as u8 }
    };
    let bytes: Vec<u8> = (0..chance.below(120)).map(|_| byte(chance)).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
