use std::fs;
use std::path::Path;

use super::*;
use crate::test_support::{TestScreen, at_three_widths, keys};

const SLASH_COMMANDS: &[Command] = &[
    Command { name: "/help", description: "lists the commands" },
    Command { name: "/grants", description: "what you allowed for this session" },
    Command { name: "/revoke", description: "takes a grant back" },
    Command { name: "/quit", description: "leaves (also Ctrl-D)" },
];

/// An editor with its list, in a directory of files.
struct Input {
    directory: tempfile::TempDir,
    editor: Editor,
    completion: Completion,
}

fn input(files: &[&str]) -> Input {
    let directory = tempfile::tempdir().unwrap();
    for file in files {
        let path = directory.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let completion = Completion::new(SLASH_COMMANDS, directory.path());
    Input { directory, editor: Editor::new(""), completion }
}

impl Input {
    /// Presses keys as an owner passes them on: to the list first, to the editor else.
    fn press(&mut self, text: &str) -> Edited {
        let mut last = Edited::Nothing;
        for key in keys(text) {
            last = Edited::Nothing;
            if self.completion.key(key, &mut self.editor) == Completed::Nothing {
                last = self.editor.key(key);
                self.completion.update(&self.editor);
            }
        }
        last
    }

    fn labels(&self) -> Vec<&str> {
        self.completion.choices.iter().map(|choice| choice.label.as_str()).collect()
    }
}

fn offered(files: &[&str], test_support: &str) -> Vec<String> {
    let mut input = input(files);
    input.press(test_support);
    input.labels().into_iter().map(str::to_owned).collect()
}

fn text_after(files: &[&str], test_support: &str) -> String {
    let mut input = input(files);
    input.press(test_support);
    input.editor.text()
}

#[test]
fn a_slash_at_the_beginning_offers_the_commands() {
    assert_eq!(offered(&[], "/"), ["/help", "/grants", "/revoke", "/quit"]);
    assert_eq!(offered(&[], "/RE"), ["/revoke"]);
    assert_eq!(offered(&[], "/gr"), ["/grants"]);
    assert_eq!(offered(&[], "/rk"), ["/revoke"]);
    assert_eq!(offered(&[], "say /"), [""; 0]);
    assert_eq!(offered(&[], "x<C-j>/"), [""; 0]);
}

#[test]
fn tab_and_enter_accept_and_enter_sends_what_is_written_out() {
    assert_eq!(text_after(&[], "/he<Tab>"), "/help ");
    assert_eq!(text_after(&[], "/<Down><Down><Enter>"), "/revoke ");
    assert_eq!(text_after(&[], "/<Up><Enter>"), "/quit ");
    let mut input = input(&[]);
    assert_eq!(input.press("/help<Enter>"), Edited::Send);
}

#[test]
fn escape_closes_the_list_until_another_word_begins() {
    let mut input = input(&["notes.txt"]);
    input.press("/he<Esc>l");
    assert!(!input.completion.is_open());
    input.press(" @n");
    assert_eq!(input.labels(), ["notes.txt"]);
}

#[test]
fn an_at_sign_offers_files_and_directories_below_the_root() {
    let files =
        ["src/main.rs", "src/lib.rs", "README.md", "a b.txt", ".env", "target/x", "node_modules/x", ".git/x"];
    assert_eq!(offered(&files, "see @"), ["src/", "README.md", "a b.txt"]);
    assert_eq!(offered(&files, "@SRC/"), [""; 0]);
    assert_eq!(offered(&files, "@src/"), ["lib.rs", "main.rs"]);
    assert_eq!(offered(&files, "@read"), ["README.md"]);
    assert_eq!(offered(&files, "@."), [".env"]);
    assert_eq!(offered(&files, "@.g"), [".git/"]);
    assert_eq!(offered(&files, "@tar"), ["target/"]);
    assert_eq!(offered(&files, "mail me@"), [""; 0]);
}

#[test]
fn nothing_outside_the_root_is_offered() {
    assert_eq!(offered(&["x"], "@../"), [""; 0]);
    assert_eq!(offered(&["x"], "@/"), [""; 0]);
    assert_eq!(offered(&["x"], "@missing/"), [""; 0]);
}

#[test]
fn a_directory_is_entered_and_a_name_with_spaces_is_quoted() {
    let files = ["src/main.rs", "my notes/to do.txt"];
    assert_eq!(text_after(&files, "see @sr<Tab>ma<Tab>now"), "see @src/main.rs now");
    assert_eq!(text_after(&files, "@my<Tab>to<Tab>"), "@\"my notes/to do.txt\" ");
}

#[test]
fn a_great_directory_is_not_read_to_its_end() {
    let names: Vec<_> = (0..2_100).map(|number| format!("file{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    assert_eq!(offered(&names, "@").len(), 2_000);
}

#[test]
fn names_in_a_message_that_are_files_are_its_attachments() {
    let input = input(&["a.txt", "src/main.rs", "my notes.txt", "odd.name."]);
    let root = input.directory.path();
    let found = |text: &str| -> Vec<String> {
        let relative = |file: &std::path::PathBuf| file.strip_prefix(root).unwrap().display().to_string();
        attachments(text, root).iter().map(relative).collect()
    };
    assert_eq!(found("compare @src/main.rs with @a.txt, please (@a.txt)."), ["src/main.rs", "a.txt"]);
    assert_eq!(found("@\"my notes.txt\" and @\"a.txt"), ["my notes.txt", "a.txt"]);
    assert_eq!(found("see @odd.name. and @./a.txt!"), ["odd.name.", "a.txt"]);
    assert_eq!(found("me@a.txt @nobody @src @ @\"\" @../a.txt"), [""; 0]);
}

#[test]
fn an_absolute_path_is_no_attachment() {
    let input = input(&["a.txt"]);
    let text = format!("@{}", input.directory.path().join("a.txt").display());
    assert!(attachments(&text, Path::new("/")).is_empty());
}

#[test]
fn a_list_of_commands_has_their_descriptions_in_one_column() {
    let mut input = input(&[]);
    input.press("/<Down>");
    insta::assert_snapshot!(shown(&input.completion));
}

#[test]
fn a_long_list_of_files_shows_eight_rows_around_the_chosen_one() {
    let names: Vec<_> = (10..30).map(|number| format!("chapter {number}.txt")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut input = input(&names);
    input.press(&format!("@{}", "<Down>".repeat(11)));
    insta::assert_snapshot!(shown(&input.completion));
}

fn shown(completion: &Completion) -> String {
    at_three_widths(|width, screen: &mut TestScreen| {
        let area = screen.sized(width, completion.height());
        completion.draw(area, &mut screen.buffer, Theme::default());
        mark_chosen(screen);
    })
}

/// What is chosen is reversed, which text alone does not show.
fn mark_chosen(screen: &mut TestScreen) {
    for y in 0..screen.buffer.area.height {
        if screen.buffer[(0, y)].modifier.contains(ratatui::style::Modifier::REVERSED) {
            screen.buffer[(0, y)].set_symbol("*");
        }
    }
}

#[test]
fn a_list_can_be_drawn_in_any_area() {
    let mut input = input(&["漢字漢字.txt", "plain"]);
    for test_support in ["/", "<C-u>@"] {
        input.press(test_support);
        for width in 0..12 {
            for height in 0..3 {
                let area = Rect::new(1, 0, width, height);
                input.completion.draw(area, &mut Buffer::empty(Rect::new(0, 0, 12, 3)), Theme::default());
            }
        }
    }
}

#[test]
fn a_list_that_does_not_fit_says_so() {
    const MANY: &[Command] = &[
        Command { name: "/a1", description: "" },
        Command { name: "/a2", description: "" },
        Command { name: "/a3", description: "" },
        Command { name: "/a4", description: "" },
        Command { name: "/a5", description: "" },
        Command { name: "/a6", description: "" },
        Command { name: "/a7", description: "" },
        Command { name: "/a8", description: "" },
        Command { name: "/a9", description: "" },
    ];
    let drawn = |completion: &Completion| {
        let area = Rect { x: 0, y: 0, width: 30, height: completion.height() };
        let mut buffer = Buffer::empty(area);
        completion.draw(area, &mut buffer, Theme::default());
        let rows = (0..area.height).map(|y| (0..30).map(|x| buffer[(x, y)].symbol()).collect::<String>());
        rows.map(|row| row.trim_end().to_owned()).collect::<Vec<_>>()
    };
    let (mut editor, mut completion) = (Editor::new(""), Completion::new(MANY, "."));
    for key in keys("/") {
        editor.key(key);
        completion.update(&editor);
    }
    let rows = drawn(&completion);
    assert_eq!(
        (rows.len(), rows[0].trim(), rows[7].trim(), rows[8].trim()),
        (9, "/a1", "/a8", "1 of 9; ↑ ↓ for more")
    );
    for key in keys("<Up>") {
        completion.key(key, &mut editor);
    }
    let rows = drawn(&completion);
    assert_eq!((rows[7].trim(), rows[8].trim()), ("/a9", "9 of 9; ↑ ↓ for more"));
}

#[test]
fn models_are_offered_behind_their_command_and_chosen_by_one_key() {
    let model = |name: &str| OfferedModel { name: name.to_owned(), description: "$1 in".to_owned() };
    let models = [model("anthropic:claude-opus-5"), model("openai:gpt-5-mini"), model("openai:gpt-5")];
    let open = |test_support: &str| {
        let mut input = input(&[]);
        input.completion = Completion::new(SLASH_COMMANDS, ".").with_models(&models);
        input.press(test_support);
        input
    };
    assert_eq!(open("/model<Space>").labels().len(), 3);
    assert_eq!(open("/model<Space>gpt").labels(), ["openai:gpt-5-mini", "openai:gpt-5"]);
    assert_eq!(open("/model<Space>gpt-5").labels(), ["openai:gpt-5", "openai:gpt-5-mini"]);
    assert_eq!(open("/model<Space>gpt<Space>x").labels(), [""; 0]);
    assert_eq!(open("say<Space>/model<Space>gpt").labels(), [""; 0]);
    let mut input = open("/model<Space>opus");
    let enter = keys("<Enter>")[0];
    assert_eq!(input.completion.key(enter, &mut input.editor), Completed::Chosen);
    assert_eq!(input.editor.text().trim_end(), "/model anthropic:claude-opus-5");
}

#[test]
fn enter_takes_only_a_model_that_is_meant_beyond_doubt() {
    let model = |name: &str| OfferedModel { name: name.to_owned(), description: String::new() };
    let names =
        ["fast", "openai:gpt-5-mini", "openai:gpt-5", "azure:gpt-5", "groq:fable-of-oz", "groq:gpt-oss"];
    let models = names.map(model);
    let taken = |typed: &str| {
        let mut input = input(&[]);
        input.completion = Completion::new(SLASH_COMMANDS, ".").with_models(&models);
        input.press(&format!("/model<Space>{typed}"));
        let completed = input.completion.key(keys("<Enter>")[0], &mut input.editor);
        (completed == Completed::Chosen).then(|| input.editor.text().trim_end().to_owned())
    };
    for (typed, model) in [
        ("Fas", "fast"),
        ("gpt-5-m", "openai:gpt-5-mini"),
        ("oss", "groq:gpt-oss"),
        ("foo<Down>", "groq:fable-of-oz"),
        ("gpt-5<Down><Down>", "azure:gpt-5"),
        ("gpt-5<Up>", "openai:gpt-5-mini"),
    ] {
        assert_eq!(taken(typed), Some(format!("/model {model}")), "{typed}");
    }
    // Letters of a name in their order, several exact names, several beginnings, a whole name.
    for typed in ["foo", "gpt-5", "gpt", "openai:gpt-5"] {
        assert_eq!(taken(typed), None, "{typed}");
    }
}
