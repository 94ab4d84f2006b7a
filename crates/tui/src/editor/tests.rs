use llm_do_testing::Chance;
use ratatui::layout::Rect;

use super::*;
use crate::test_support::{TestScreen, at_three_widths, keys};

fn pressed(text: &str) -> Editor {
    let mut editor = Editor::new("Ask anything");
    press(&mut editor, text);
    editor
}

fn press(editor: &mut Editor, text: &str) -> Vec<Edited> {
    keys(text).into_iter().map(|key| editor.key(key)).collect()
}

/// The text with `|` where the cursor is.
fn marked(editor: &Editor) -> String {
    let (row, _) = editor.cursor();
    let mut lines = editor.text.lines().to_vec();
    lines[row] = format!("{}|{}", editor.before_cursor(), editor.after_cursor());
    lines.join("\n")
}

fn after(text: &str) -> String {
    marked(&pressed(text))
}

#[test]
fn enter_sends_what_is_written_and_leaves_it_to_be_taken() {
    let mut editor = Editor::new("");
    assert_eq!(press(&mut editor, "hi<Enter>"), [Edited::Changed, Edited::Changed, Edited::Send]);
    assert_eq!(editor.take(), "hi");
    assert!(editor.is_empty());
}

#[test]
fn enter_with_nothing_but_space_is_left_to_others() {
    assert_eq!(press(&mut Editor::new(""), "<Enter>"), [Edited::Nothing]);
    assert_eq!(press(&mut Editor::new(""), " <S-Enter><Enter>").pop(), Some(Edited::Nothing));
}

#[test]
fn a_line_goes_on_after_each_of_the_keys_for_it() {
    assert_eq!(after("a<S-Enter>b<A-Enter>c<C-j>d"), "a\nb\nc\nd|");
}

#[test]
fn a_backslash_before_enter_goes_on_in_a_new_line_but_two_are_text() {
    assert_eq!(after("one\\<Enter>two"), "one\ntwo|");
    assert_eq!(press(&mut Editor::new(""), "a\\\\<Enter>").pop(), Some(Edited::Send));
}

#[test]
fn the_cursor_moves_by_signs_words_and_lines() {
    assert_eq!(after("one two<Left><Left>"), "one t|wo");
    assert_eq!(after("one two<A-b><A-b><A-f>"), "one |two");
    assert_eq!(after("one two<C-Left>"), "one |two");
    assert_eq!(after("one two<Home><C-Right>"), "one |two");
    assert_eq!(after("one two<C-a>x<C-e>y"), "xone twoy|");
    assert_eq!(after("one<C-j>two<C-Home>x<C-End>y"), "xone\ntwoy|");
    assert_eq!(after("a<C-j>b<Left><Left>"), "a|\nb");
}

#[test]
fn what_is_erased_as_a_word_or_line_can_be_inserted_again() {
    assert_eq!(after("one two<C-w>"), "one |");
    assert_eq!(after("one two<C-w><C-a><C-y>"), "two|one ");
    assert_eq!(after("one two<C-u>x<C-y>"), "xone two|");
    assert_eq!(after("one two<C-a><C-k><C-y><C-y>"), "one twoone two|");
    assert_eq!(after("one two<C-w><Backspace><C-y>"), "onetwo|");
}

#[test]
fn undo_and_redo_go_through_the_edits() {
    assert_eq!(after("ab<C-_>"), "a|");
    assert_eq!(after("ab<C-_><C-_><C-r>"), "a|");
    assert_eq!(after("one two<C-w><C-_>"), "one two|");
}

#[test]
fn a_sign_of_several_characters_is_passed_and_erased_whole() {
    assert_eq!(after("a👨\u{200d}👩\u{200d}👧b<Left><Left>"), "a|👨\u{200d}👩\u{200d}👧b");
    assert_eq!(after("a👨\u{200d}👩\u{200d}👧<Backspace>"), "a|");
    assert_eq!(after("ae\u{301}<Left><Delete>"), "a|");
}

#[test]
fn delete_joins_lines_and_does_nothing_at_the_end() {
    assert_eq!(after("a<C-j>b<C-Home><Right><Delete>"), "a|b");
    assert_eq!(after("a<C-j>b<Home><Backspace>"), "a|b");
    assert_eq!(after("ab<Delete>"), "ab|");
    assert_eq!(press(&mut Editor::new(""), "<C-d>"), [Edited::Nothing]);
}

#[test]
fn up_and_down_follow_the_rows_that_are_seen_and_keep_their_column() {
    let mut editor = pressed("aaaa bbbb cc");
    editor.draw(Rect::new(0, 0, 8, 9), &mut Buffer::empty(Rect::new(0, 0, 8, 9)), Theme::default());
    press(&mut editor, "<Up><Up>");
    assert_eq!(marked(&editor), "aa|aa bbbb cc");
    press(&mut editor, "<Down><Down>");
    assert_eq!(marked(&editor), "aaaa bbbb cc|");

    assert_eq!(after("long line<C-j>b<C-j>as long a<Up><Up>"), "long line|\nb\nas long a");
}

#[test]
fn keys_of_others_are_not_taken() {
    let mut editor = pressed("x");
    let others = press(&mut editor, "<Esc><Tab><C-c><Up><Down><A-x>");
    assert_eq!(others, [Edited::Nothing; 6]);
    assert_eq!(editor.text(), "x");
}

#[test]
fn up_in_the_first_row_calls_back_what_was_sent_and_down_returns_to_the_draft() {
    let mut editor = Editor::new("").with_history(History::in_memory());
    editor.remember("first").unwrap();
    editor.remember("two\nlines").unwrap();

    press(&mut editor, "draft<Up>");
    assert_eq!(marked(&editor), "two\nlines|");
    press(&mut editor, "<Up><Up>!");
    assert_eq!(marked(&editor), "first!|");
    press(&mut editor, "<Down>");
    assert_eq!(marked(&editor), "two\nlines|");
    press(&mut editor, "<Down>");
    assert_eq!(marked(&editor), "draft|");
    press(&mut editor, "<Down>");
    assert_eq!(marked(&editor), "draft|");
}

#[test]
fn a_paste_is_kept_whole_without_control_characters_and_is_not_sent() {
    let mut editor = pressed("a");
    assert_eq!(editor.paste("1\r\n2\r3\n\u{1b}[31m\u{7}\u{9b}x\ty"), Edited::Changed);
    assert_eq!(editor.text(), "a1\n2\n3\n[31mx\ty");

    let long = "line\n".repeat(500);
    editor.set_text("");
    editor.paste(&long);
    assert_eq!(editor.text(), long);
    assert_eq!(editor.height(80, 10), 10);
}

#[test]
fn the_cursor_finds_its_way_in_text_longer_than_any_screen() {
    let mut editor = pressed("end");
    editor.set_text(&format!("{}\n{}", "x".repeat(70_000), "\n".repeat(70_000)));
    press(&mut editor, "<Up><Up><C-Home><End>");
    assert_eq!(editor.cursor(), (0, 70_000));
    press(&mut editor, "<Up>");
    assert_eq!(editor.cursor(), (0, 69_923));
    press(&mut editor, "<C-End><Up>");
    assert_eq!(editor.cursor(), (70_000, 0));
}

#[test]
fn the_word_before_the_cursor_can_be_replaced() {
    let mut editor = pressed("see @src/m<Left>");
    assert_eq!(editor.word(), "@src/");
    editor.replace_word("@lib/");
    assert_eq!(marked(&editor), "see @lib/|m");
    assert_eq!(pressed("open @\"my no").word(), "@\"my no");
    assert_eq!(pressed("open @\"my notes\" n").word(), "n");
    assert_eq!(pressed("end ").word(), "");
}

fn shown(editor: &Editor, height: u16) -> String {
    at_three_widths(|width, screen: &mut TestScreen| {
        let area = screen.sized(width, editor.height(width, height));
        screen.cursor = editor.draw(area, &mut screen.buffer, Theme::default());
    })
}

const PANGRAM: &str =
    "The quick brown fox jumps over the lazy dog, then over the fence, and then over everything else.";

#[test]
fn an_empty_editor_shows_its_placeholder() {
    insta::assert_snapshot!(shown(&pressed(""), 5));
}

#[test]
fn lines_are_wrapped_between_words_behind_the_mark() {
    insta::assert_snapshot!(shown(&pressed(&format!("{PANGRAM}<C-j><C-j>\tSecond line.")), 9));
}

#[test]
fn wide_signs_and_emoji_keep_their_columns() {
    let text =
        "漢字とかな 👨\u{200d}👩\u{200d}👧 ❤\u{fe0f} e\u{301} ｶﾞ naïve 🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀 \u{202e}turned";
    insta::assert_snapshot!(shown(&pressed(text), 9));
}

#[test]
fn text_longer_than_the_area_is_scrolled_to_the_cursor() {
    let mut editor = Editor::new("");
    editor.set_text(&(1..=30).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n"));
    press(&mut editor, &"<Up>".repeat(10));
    insta::assert_snapshot!(shown(&editor, 4));
}

#[test]
fn the_shown_part_moves_only_when_the_cursor_leaves_it() {
    let mut editor = Editor::new("");
    editor.set_text("1\n2\n3\n4\n5\n6");
    let mut top = |keys: &str| {
        press(&mut editor, keys);
        let area = Rect::new(0, 0, 20, 3);
        let mut buffer = Buffer::empty(area);
        let cursor = editor.draw(area, &mut buffer, Theme::default()).unwrap();
        (buffer[(2, 0)].symbol().to_owned(), cursor.y)
    };
    assert_eq!(top(""), ("4".to_owned(), 2));
    assert_eq!(top("<Up><Up>"), ("4".to_owned(), 0));
    assert_eq!(top("<Up>"), ("3".to_owned(), 0));
    assert_eq!(top("<Down>"), ("3".to_owned(), 1));
}

#[test]
fn whatever_is_pressed_or_pasted_the_text_stays_clean_and_every_width_can_be_drawn() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    for case in 0..300 {
        let mut chance = Chance::at(seed, &[&format!("editor {case}")]);
        let mut editor = Editor::new("placeholder 漢字").with_history(History::in_memory());
        for _ in 0..40 {
            let context = format!("SEED={seed}, case {case}, text {:?}", marked(&editor));
            act(&mut editor, &mut chance);
            assert!(editor.text().chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t')), "{context}");
            let width = *chance.one_of(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 40, 80]);
            let height = u16::try_from(chance.between(1, 6)).unwrap();
            let area = Rect::new(1, 1, width, editor.height(width, height));
            let mut buffer = Buffer::empty(Rect::new(0, 0, width + 2, height + 2));
            let cursor = editor.draw(area, &mut buffer, Theme::default());
            assert!(cursor.is_some_and(|cursor| area.contains(cursor)), "{context}");
            assert_untouched_outside(&buffer, area, &context);
        }
    }
}

fn assert_untouched_outside(buffer: &Buffer, area: Rect, context: &str) {
    for position in buffer.area.positions().filter(|position| !area.contains(*position)) {
        assert_eq!(buffer[position].symbol(), " ", "drawn at {position}; {context}");
    }
}

fn act(editor: &mut Editor, chance: &mut Chance) {
    const KEYS: [&str; 30] = [
        "<Enter>",
        "<S-Enter>",
        "<Left>",
        "<Right>",
        "<Up>",
        "<Down>",
        "<Home>",
        "<End>",
        "<C-w>",
        "<C-u>",
        "<C-k>",
        "<C-y>",
        "<C-_>",
        "<C-r>",
        "<A-b>",
        "<A-f>",
        "<A-d>",
        "<Backspace>",
        "<Delete>",
        "<C-Home>",
        "<C-End>",
        "\\",
        "a",
        " ",
        "-",
        "漢",
        "🦀",
        "\u{301}",
        "\u{200d}",
        "\t",
    ];
    const PASTES: [&str; 9] = [
        "\r\n",
        "one two\rthree",
        "\u{1b}[2J\u{9b}31m\0",
        "👨\u{200d}👩\u{200d}👧",
        "e\u{301}\u{301}",
        "\u{202e}abc",
        "\t\tx  y   z",
        "ﾞﾟｶﾞ",
        "0123456789012345678901234567890123456789",
    ];
    let key = *chance.one_of(&KEYS);
    let pasted = *chance.one_of(&PASTES);
    match chance.below(20) {
        0..=2 => _ = editor.paste(pasted),
        3 => _ = editor.replace_word(pasted),
        4 => {
            let sent = editor.take();
            editor.remember(&sent).unwrap();
        }
        5 => editor.set_text(pasted),
        _ => _ = press(editor, key),
    }
}
