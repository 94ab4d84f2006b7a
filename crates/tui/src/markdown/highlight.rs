//! Colors code by what its parts are: keywords, strings, comments, numbers, types and functions.
//!
//! The parts come from the scopes of the grammars; the colors are those of the terminal, so they suit any
//! background. Without colors keywords are bold. Highlighting goes on where it stopped when a block has grown, and
//! stays away from lines, and from the ends of blocks, so long that it would be felt.

use std::sync::OnceLock;

use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use syntect::parsing::{ParseState, Scope, ScopeStack, ScopeStackOp, SyntaxReference, SyntaxSet};

use super::escape::escaped;
use crate::Theme;

/// Further lines of a block are left plain.
const MAX_LINES: usize = 2_000;
/// Lines behind so many bytes of a block are left plain.
const MAX_BYTES: usize = 64 * 1024;
/// Lines with more bytes are left plain.
const MAX_LINE_LEN: usize = 2_000;

/// The highlighted blocks of a text, kept so that a block that grows is not highlighted from its start again.
#[derive(Default)]
pub(super) struct Highlights {
    /// By their index in the text; none if a block is plain.
    blocks: Vec<Option<Block>>,
}

impl Highlights {
    /// Returns the lines of the code block with this index. `info` is the info string of its fence.
    pub(super) fn lines(&mut self, index: usize, info: &str, code: &str, theme: Theme) -> Vec<Line<'static>> {
        let Some(syntax) = syntax(info) else {
            return code.lines().map(plain).collect();
        };
        if self.blocks.len() <= index {
            self.blocks.resize_with(index + 1, || None);
        }
        let slot = &mut self.blocks[index];
        let known = slot.take().filter(|block| block.grows_into(info, code, theme));
        slot.insert(known.unwrap_or_else(|| Block::new(info, syntax, theme))).lines_of(code)
    }

    /// Forgets the first lines of a block: from now on it is asked for without them.
    pub(super) fn forget(&mut self, index: usize, lines: usize) {
        if let Some(Some(block)) = self.blocks.get_mut(index) {
            block.forget(lines);
        }
    }
}

/// A block of code, highlighted up to the last line that has ended.
struct Block {
    info: String,
    theme: Theme,
    code: String,
    lines: Vec<Line<'static>>,
    /// How many lines and bytes were forgotten.
    forgotten: (usize, usize),
    state: LineState,
}

impl Block {
    fn new(info: &str, syntax: &SyntaxReference, theme: Theme) -> Self {
        let state = LineState { parser: ParseState::new(syntax), scopes: ScopeStack::new() };
        let (code, lines) = (String::new(), Vec::new());
        Self { info: info.to_owned(), theme, code, lines, forgotten: (0, 0), state }
    }

    fn grows_into(&self, info: &str, code: &str, theme: Theme) -> bool {
        self.info == info && self.theme == theme && (code.starts_with(&self.code) || self.begins_with(code))
    }

    /// Whether these are lines of the block, and not all of them.
    fn begins_with(&self, code: &str) -> bool {
        code.ends_with('\n') && self.code.starts_with(code)
    }

    fn lines_of(&mut self, code: &str) -> Vec<Line<'static>> {
        if self.begins_with(code) {
            return self.lines[..code.matches('\n').count()].to_vec();
        }
        let mut unfinished = None;
        for line in code[self.code.len()..].split_inclusive('\n') {
            if line.ends_with('\n') {
                let drawn = self.next_line(line);
                self.lines.push(drawn);
                self.code.push_str(line);
            } else {
                let state = self.state.clone();
                unfinished = Some(self.next_line(line));
                self.state = state;
            }
        }
        let mut lines = self.lines.clone();
        lines.extend(unfinished);
        lines
    }

    fn next_line(&mut self, line: &str) -> Line<'static> {
        let (lines, bytes) = self.forgotten;
        let is_far =
            lines + self.lines.len() >= MAX_LINES || bytes + self.code.len() + line.len() > MAX_BYTES;
        if is_far { plain(line.trim_end_matches('\n')) } else { self.state.highlighted(line, self.theme) }
    }

    fn forget(&mut self, lines: usize) {
        let bytes: usize = self.code.split_inclusive('\n').take(lines).map(str::len).sum();
        self.lines.drain(..lines.min(self.lines.len()));
        self.code.drain(..bytes);
        self.forgotten = (self.forgotten.0 + lines, self.forgotten.1 + bytes);
    }
}

/// Where in the grammar a line begins.
#[derive(Clone)]
struct LineState {
    parser: ParseState,
    scopes: ScopeStack,
}

impl LineState {
    fn highlighted(&mut self, line: &str, theme: Theme) -> Line<'static> {
        if line.len() > MAX_LINE_LEN {
            return plain(line.trim_end_matches('\n'));
        }
        match self.parser.parse_line(line, syntaxes()) {
            Ok(changes) => self.styled(line, &changes, theme),
            Err(_) => plain(line.trim_end_matches('\n')),
        }
    }

    fn styled(&mut self, line: &str, changes: &[(usize, ScopeStackOp)], theme: Theme) -> Line<'static> {
        let mut spans = Vec::new();
        let mut start = 0;
        for (end, change) in changes {
            add(&mut spans, line.get(start..*end), TokenKind::from_scopes(&self.scopes), theme);
            start = start.max(*end);
            // A grammar that takes away more than it gave only loses its colors.
            if self.scopes.apply(change).is_err() {
                self.scopes = ScopeStack::new();
            }
        }
        add(&mut spans, line.get(start..), TokenKind::from_scopes(&self.scopes), theme);
        Line::from(spans)
    }
}

fn add(spans: &mut Vec<Span<'static>>, text: Option<&str>, kind: TokenKind, theme: Theme) {
    let text = text.unwrap_or_default().trim_end_matches('\n');
    if text.is_empty() {
        return;
    }
    let (text, style) = (escaped(text), kind.style(theme));
    match spans.last_mut() {
        Some(last) if last.style == style => last.content.to_mut().push_str(&text),
        _ => spans.push(Span::styled(text, style)),
    }
}

fn plain(line: &str) -> Line<'static> {
    if line.is_empty() { Line::default() } else { Line::from(escaped(line)) }
}

/// What a part of code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Plain,
    Keyword,
    Text,
    Comment,
    Value,
    Type,
    Function,
    Added,
    Removed,
}

/// Prefixes of scopes and the kinds of their tokens; the first one that matches counts.
const SCOPES: [(&str, TokenKind); 30] = [
    ("comment", TokenKind::Comment),
    ("constant.other.placeholder", TokenKind::Value),
    ("constant", TokenKind::Value),
    ("string.unquoted.plain", TokenKind::Plain),
    ("string", TokenKind::Text),
    ("keyword.operator.word", TokenKind::Keyword),
    ("keyword.operator.logical.python", TokenKind::Keyword),
    ("keyword.operator", TokenKind::Plain),
    ("keyword", TokenKind::Keyword),
    ("storage.type.numeric", TokenKind::Type),
    ("storage", TokenKind::Keyword),
    ("variable.language", TokenKind::Keyword),
    ("variable.function", TokenKind::Function),
    ("variable.other.constant", TokenKind::Value),
    ("entity.name.function", TokenKind::Function),
    ("entity.name.tag", TokenKind::Keyword),
    ("entity.name.section", TokenKind::Function),
    ("entity.name", TokenKind::Type),
    ("entity.other.inherited-class", TokenKind::Type),
    ("entity.other.attribute-name", TokenKind::Type),
    ("support.function", TokenKind::Function),
    ("support.macro", TokenKind::Function),
    ("support.constant", TokenKind::Value),
    ("support.type.property-name", TokenKind::Type),
    ("support", TokenKind::Type),
    ("markup.inserted", TokenKind::Added),
    ("markup.deleted", TokenKind::Removed),
    ("markup.heading", TokenKind::Keyword),
    // Code within a string, such as a value to fill in, is not part of the string.
    ("source", TokenKind::Plain),
    ("meta.interpolation", TokenKind::Plain),
];

impl TokenKind {
    /// Decides by the innermost scope that says something.
    fn from_scopes(scopes: &ScopeStack) -> Self {
        let said = |scope: &Scope| known_scopes().iter().find(|(known, _)| known.is_prefix_of(*scope));
        scopes.as_slice().iter().rev().find_map(said).map_or(Self::Plain, |(_, kind)| *kind)
    }

    fn style(self, theme: Theme) -> Style {
        if !theme.colors {
            return if self == Self::Keyword { theme.strong() } else { Style::new() };
        }
        match self {
            Self::Plain => Style::new(),
            Self::Keyword => Style::new().fg(Color::Magenta),
            Self::Text => Style::new().fg(Color::Green),
            Self::Comment => theme.dim(),
            // Yellow cannot be read on white.
            Self::Value => Style::new().fg(if theme.light { Color::Red } else { Color::Yellow }),
            Self::Type => Style::new().fg(Color::Cyan),
            Self::Function => Style::new().fg(Color::Blue),
            Self::Added => theme.good(),
            Self::Removed => theme.bad(),
        }
    }
}

fn known_scopes() -> &'static [(Scope, TokenKind)] {
    static KNOWN: OnceLock<Vec<(Scope, TokenKind)>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let known = |(name, kind): (&str, TokenKind)| Some((Scope::new(name).ok()?, kind));
        SCOPES.into_iter().filter_map(known).collect()
    })
}

/// Reads the grammars in the background, so that the first block of code is not waited for.
pub(crate) fn read_grammars() {
    // Where no thread can be had, they are read when they are needed.
    let _ = std::thread::Builder::new().name("llm-do-grammars".to_owned()).spawn(syntaxes);
}

fn syntaxes() -> &'static SyntaxSet {
    static SYNTAXES: OnceLock<SyntaxSet> = OnceLock::new();
    SYNTAXES.get_or_init(two_face::syntax::extra_newlines)
}

/// Finds the grammar for an info string such as `rust,ignore` or `{.python}`.
fn syntax(info: &str) -> Option<&'static SyntaxReference> {
    let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | '{' | '}' | ':' | ';');
    let name = info.split(is_end).find(|kind| !kind.is_empty())?.trim_start_matches('.').to_lowercase();
    let name = match name.as_str() {
        "text" | "txt" | "plain" | "plaintext" => return None,
        "javascript" | "jsx" | "mjs" | "cjs" | "node" => "js",
        "typescript" | "mts" | "cts" => "ts",
        "shell" | "console" | "shell-session" | "shellscript" | "zsh" | "ksh" => "bash",
        "jsonc" | "json5" | "jsonl" | "ndjson" => "json",
        "c++" | "cxx" | "cuda" => "cpp",
        "objective-c" | "objectivec" => "m",
        "csharp" | "c#" => "cs",
        "golang" => "go",
        "python3" | "python2" | "py3" | "pyi" => "python",
        "postgres" | "postgresql" | "mysql" | "sqlite" | "plsql" => "sql",
        "patch" => "diff",
        "make" => "makefile",
        "docker" | "containerfile" => "dockerfile",
        "hcl" => "terraform",
        name => name,
    };
    syntaxes().find_syntax_by_token(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLORS: Theme = Theme { colors: true, light: false };

    fn highlight(info: &str, code: &str, theme: Theme) -> Vec<Line<'static>> {
        Highlights::default().lines(0, info, code, theme)
    }

    /// Finds the color of a word in the first line of code.
    fn color(info: &str, code: &str, word: &str) -> Option<Color> {
        let lines = highlight(info, code, COLORS);
        let span = lines[0].spans.iter().find(|span| span.content.contains(word));
        span.expect("the word is in a span").style.fg
    }

    #[test]
    fn parts_of_code_have_the_colors_of_the_terminal() {
        let code = "pub fn answer(x: u32) -> String { println!(\"42\"); 7 } // why\n";
        assert_eq!(color("rust", code, "pub"), Some(Color::Magenta));
        assert_eq!(color("rust", code, "answer"), Some(Color::Blue));
        assert_eq!(color("rust", code, "\"42\""), Some(Color::Green));
        assert_eq!(color("rust", code, "7"), Some(Color::Yellow));
        assert_eq!(color("rust", "struct Point;\n", "Point"), Some(Color::Cyan));
        assert_eq!(color("toml", "name = \"x\"\n", "\"x\""), Some(Color::Green));
        assert_eq!(color("ts", "interface Point {}\n", "interface"), Some(Color::Magenta));
        assert_eq!(color("dockerfile", "FROM debian\n", "FROM"), Some(Color::Magenta));
        assert_eq!(color("diff", "+added\n", "+added"), Some(Color::Green));
        let comment = highlight("rust", code, COLORS)[0].spans.last().cloned();
        assert_eq!(comment, Some(Span::styled("// why", COLORS.dim())));
    }

    #[test]
    fn languages_are_found_by_the_names_people_write() {
        let names = "rust,ignore {.python} TypeScript c++ zsh yml Rust py toml Dockerfile docker tsx kotlin kt swift zig \
            nix elixir proto graphql terraform hcl ini fish vue svelte cmake svg rb go java c# sql diff json5";
        let unknown: Vec<&str> = names.split(' ').filter(|name| syntax(name).is_none()).collect();
        assert_eq!(unknown, [] as [&str; 0]);
        assert!(syntax("json title=x").is_some());
        assert_eq!(["", "text", "no-such-language"].map(|name| syntax(name).is_some()), [false; 3]);
    }

    #[test]
    #[ignore = "compiles the expressions of more than 200 grammars"]
    fn no_grammar_breaks_off() {
        let code = "# a\n// b\nfn main(x: i32) { return \"c\\n\" + 'd' }\n<a href=\"e\">&amp;</a>\nkey: [1, 2.5]\n@f\n";
        for syntax in syntaxes().syntaxes() {
            let mut state = LineState { parser: ParseState::new(syntax), scopes: ScopeStack::new() };
            for line in code.split_inclusive('\n') {
                assert_eq!(state.highlighted(line, COLORS).to_string(), line.trim_end(), "{}", syntax.name);
            }
        }
    }

    #[test]
    fn without_colors_only_keywords_differ() {
        let lines = highlight("rust", "let x = 1; // one\n", Theme::default());
        assert_eq!(lines[0].spans[0], Span::styled("let", Theme::default().strong()));
        assert!(lines[0].spans[1..].iter().all(|span| span.style == Style::new()), "{lines:?}");
    }

    #[test]
    fn a_block_that_grows_is_drawn_as_if_it_were_new() {
        let code = "/* a\n b */ fn main() {\n    let text = \"two\nlines\";\n}\n";
        let mut highlights = Highlights::default();
        for end in 0..=code.len() {
            let grown = highlights.lines(0, "rust", &code[..end], COLORS);
            assert_eq!(grown, highlight("rust", &code[..end], COLORS), "after {end} bytes");
        }
        assert_eq!(highlights.lines(0, "rust", "other", COLORS), highlight("rust", "other", COLORS));
    }

    #[test]
    fn a_block_whose_first_lines_were_forgotten_goes_on_as_if_they_were_there() {
        let code = "/* a\n b */ fn main() {\n    let text = \"two\nlines\";\n}\n";
        let whole = highlight("rust", code, COLORS);
        for forgotten in 0..5 {
            let start: usize = code.split_inclusive('\n').take(forgotten).map(str::len).sum();
            let mut highlights = Highlights::default();
            highlights.lines(0, "rust", &code[..start + 2], COLORS);
            highlights.forget(0, forgotten);
            assert_eq!(
                highlights.lines(0, "rust", &code[start..], COLORS),
                whole[forgotten..],
                "{forgotten}"
            );
            let next = code[start..].find('\n').map_or(code.len(), |end| start + end + 1);
            let fewer = highlights.lines(0, "rust", &code[start..next], COLORS);
            assert_eq!(fewer, whole[forgotten..=forgotten], "{forgotten}, asked for fewer lines again");
        }
    }

    #[test]
    fn several_blocks_grow_independently() {
        let codes = ["let a = \"1\";\n", "plain", "/* b\n */ let c = 2;\n", "fn d() {}\nlet e = 3;\n"];
        let infos = ["rust", "no-such-language", "rust", "js"];
        let mut highlights = Highlights::default();
        for step in 1..=2 {
            for index in [0, 1, 2, 3] {
                let code = &codes[index][..codes[index].len() * step / 2];
                let lines = highlights.lines(index, infos[index], code, COLORS);
                assert_eq!(lines, highlight(infos[index], code, COLORS), "block {index}, step {step}");
            }
        }
        assert!(
            highlights.blocks[3].as_ref().is_some_and(|block| block.lines.len() == 2),
            "kept for the next time"
        );
    }

    #[test]
    fn long_lines_and_the_ends_of_long_blocks_stay_plain() {
        let long_line = format!("let x = \"{}\";\nlet y = 1;\n", "x".repeat(3_000));
        let lines = highlight("rust", &long_line, COLORS);
        assert_eq!((lines[0].spans.len(), lines[1].spans.len() > 1), (1, true));

        for before in [(MAX_LINES - 1, 0), (0, MAX_BYTES - "let y = 1;\n".len())] {
            let mut highlights = Highlights::default();
            highlights.lines(0, "rust", "", COLORS);
            highlights.blocks[0].as_mut().unwrap().forgotten = before;
            let lines = highlights.lines(0, "rust", "let y = 1;\nlet z = 2;\n", COLORS);
            assert_eq!((lines[0].spans.len() > 1, lines[1].spans.len()), (true, 1));
        }
    }

    #[test]
    fn escape_signs_in_code_are_written_out() {
        let lines = highlight("rust", "let x = \"\u{1b}[2J\u{202e}\";\n", COLORS);
        assert_eq!(lines[0].to_string(), "let x = \"\\u{1b}[2J\\u{202e}\";");
    }
}
