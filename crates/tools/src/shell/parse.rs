//! Turns command text into the words that are both checked and executed.
//!
//! tree-sitter's bash grammar reads the text; only an allow-list of its node kinds may occur. The words are
//! then taken from the text itself: every byte is part of a word, part of an operator, or a blank between
//! them, so nothing that the grammar might skip or split differently can hide. Quotes and backslashes are
//! removed as bash removes them; whatever bash would expand is refused.
//!
//! This module knows nothing about programs: see [`super::policy`].

use std::ops::Range;

use tree_sitter::{Node, Parser, Tree};

use super::refusal::Refusal;
use super::unquote::unquote;

/// The longest command that is read, in bytes.
const LONGEST: usize = 16 * 1024;

/// The words of one command: the program and its arguments.
pub(crate) type Words = Vec<String>;

/// What a command text asks for: pipelines, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    pub(crate) steps: Vec<Step>,
}

/// One pipeline, and when it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) after: After,
    pub(crate) pipeline: Vec<Words>,
}

/// On what the previous step's end a step depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// `;`, or the first step.
    Anything,
    /// `&&`
    Success,
    /// `||`
    Failure,
}

impl CommandLine {
    /// Returns all commands, in the order of the text.
    pub(crate) fn commands(&self) -> impl Iterator<Item = &Words> {
        self.steps.iter().flat_map(|step| &step.pipeline)
    }
}

/// Reads a command text.
pub(crate) fn parse(text: &str) -> Result<CommandLine, Refusal> {
    check_signs(text)?;
    let tree = syntax_tree(text).ok_or(Refusal::Unreadable)?;
    let tokens = tokens(&tree)?;
    check_gaps(text, &tokens)?;
    assemble(text, &tokens)
}

fn check_signs(text: &str) -> Result<(), Refusal> {
    if text.len() > LONGEST {
        return Err(Refusal::TooLong { longest: LONGEST });
    }
    if text.trim_matches([' ', '\t']).is_empty() {
        return Err(Refusal::Empty);
    }
    let forbidden = |sign: &char| sign.is_control() && !matches!(sign, '\t' | '\n');
    text.chars().find(forbidden).map_or(Ok(()), |sign| Err(Refusal::ControlCharacter(sign)))
}

fn syntax_tree(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    parser.parse(text, None)
}

/// A word or an operator, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    kind: TokenKind,
    place: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Word,
    Pipe,
    Then(After),
}

/// Lists the words and operators in the order of the text. Without recursion: a chain nests as deep as it is
/// long. The flat order is enough, as `|` binds closest and `&&`, `||` and `;` go from left to right.
fn tokens(tree: &Tree) -> Result<Vec<Token>, Refusal> {
    let mut tokens = Vec::new();
    let mut pending = vec![tree.root_node()];
    while let Some(node) = pending.pop() {
        let kind = match node.kind() {
            _ if node.is_error() || node.is_missing() => return Err(explain(tree)),
            "program" | "list" | "pipeline" | "command" | "command_name" => {
                pending.extend(children(node).into_iter().rev());
                continue;
            }
            "word" | "number" | "raw_string" | "string" | "concatenation" if is_plain(node) => {
                TokenKind::Word
            }
            "|" => TokenKind::Pipe,
            "&&" => TokenKind::Then(After::Success),
            "||" => TokenKind::Then(After::Failure),
            ";" => TokenKind::Then(After::Anything),
            _ => return Err(explain(tree)),
        };
        tokens.push(Token { kind, place: node.byte_range() });
    }
    Ok(tokens)
}

fn children(node: Node<'_>) -> Vec<Node<'_>> {
    node.children(&mut node.walk()).collect()
}

/// Says whether a word is made of text and quotes only.
fn is_plain(node: Node<'_>) -> bool {
    const PARTS: [&str; 7] = ["word", "number", "raw_string", "string", "string_content", "\"", "$"];
    children(node)
        .into_iter()
        .all(|part| !part.is_error() && !part.is_missing() && PARTS.contains(&part.kind()) && is_plain(part))
}

/// Finds the syntax that a person would name as the reason.
fn explain(tree: &Tree) -> Refusal {
    let mut pending = vec![tree.root_node()];
    while let Some(node) = pending.pop() {
        if let Some(refusal) = Refusal::of_kind(node.kind()) {
            return refusal;
        }
        pending.extend(children(node).into_iter().rev());
    }
    Refusal::Unreadable
}

/// Everything between the tokens must be blanks, and two words need at least one.
fn check_gaps(text: &str, tokens: &[Token]) -> Result<(), Refusal> {
    let mut end = 0;
    let mut after_word = false;
    for token in tokens {
        let gap = text.get(end..token.place.start).ok_or(Refusal::Unreadable)?;
        let is_word = token.kind == TokenKind::Word;
        check_blank(gap)?;
        if gap.is_empty() && is_word && after_word {
            return Err(Refusal::Unreadable);
        }
        (end, after_word) = (token.place.end, is_word);
    }
    check_blank(text.get(end..).ok_or(Refusal::Unreadable)?)
}

fn check_blank(gap: &str) -> Result<(), Refusal> {
    match gap.trim_matches([' ', '\t']) {
        "" => Ok(()),
        rest if rest.contains('\n') => Err(Refusal::Newline),
        _ => Err(Refusal::Unreadable),
    }
}

fn assemble(text: &str, tokens: &[Token]) -> Result<CommandLine, Refusal> {
    let mut steps = Vec::new();
    let mut step = Step { after: After::Anything, pipeline: vec![Words::new()] };
    for token in tokens {
        match token.kind {
            TokenKind::Word => {
                let word = unquote(text.get(token.place.clone()).ok_or(Refusal::Unreadable)?)?;
                step.pipeline.last_mut().ok_or(Refusal::Unreadable)?.push(word);
            }
            TokenKind::Pipe => step.pipeline.push(Words::new()),
            TokenKind::Then(after) => {
                let done = std::mem::replace(&mut step, Step { after, pipeline: vec![Words::new()] });
                steps.push(done);
            }
        }
    }
    // A `;` may end the text.
    let is_empty = step.pipeline == [Words::new()];
    if !(is_empty && step.after == After::Anything && !steps.is_empty()) {
        steps.push(step);
    }
    let complete = steps.iter().flat_map(|step| &step.pipeline).all(|words| !words.is_empty());
    if complete { Ok(CommandLine { steps }) } else { Err(Refusal::Unreadable) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Words> {
        parse(text).unwrap().commands().cloned().collect()
    }

    #[test]
    fn quotes_vanish_and_what_they_hold_is_data() {
        assert_eq!(
            words(r#"find . -e'x'ec "a;b" c\ d '$HOME' "\$x\a""#),
            [["find", ".", "-exec", "a;b", "c d", "$HOME", r"$x\a"]]
        );
        assert_eq!(words("echo '' \"\" a''"), [["echo", "", "", "a"]]);
        assert_eq!(words("git show HEAD@{1} stash@{0} {}"), [["git", "show", "HEAD@{1}", "stash@{0}", "{}"]]);
        assert_eq!(words("grep \"foo$\" a$ 'x\ny'"), [["grep", "foo$", "a$", "x\ny"]]);
    }

    #[test]
    fn operators_split_the_text_into_steps_and_pipelines() {
        let line = parse("ls|wc -l && pwd || date; whoami;").unwrap();
        let shown: Vec<(After, usize)> =
            line.steps.iter().map(|step| (step.after, step.pipeline.len())).collect();
        use After::{Anything, Failure, Success};
        assert_eq!(shown, [(Anything, 2), (Success, 1), (Failure, 1), (Anything, 1)]);
    }

    #[test]
    fn a_chain_of_thousands_of_commands_is_read_to_its_end() {
        let text = format!("{}rm x", "ls && ".repeat(2_000));
        assert_eq!(words(&text).last().unwrap(), &["rm", "x"]);
    }

    #[test]
    fn every_kind_of_shell_syntax_is_refused_by_name() {
        for (text, word) in [
            ("echo $(id)", "substitution"),
            ("echo `id`", "substitution"),
            ("echo \"$(id)\"", "substitution"),
            ("cat <(ls)", "substitution"),
            ("echo $HOME", "variable"),
            ("echo \"${HOME}\"", "variable"),
            ("echo $((1+1))", "arithmetic"),
            ("echo $'a'", "quoting"),
            ("echo x > f", "redirect"),
            ("ls 2>&1", "redirect"),
            ("cat <<x", "redirect"),
            ("A=1 ls", "assignment"),
            ("ls &", "background"),
            ("ls *.rs", "wildcard"),
            ("ls ~/x", "home directory"),
            ("ls {a,b}", "brace"),
            ("ls {1..3}", "brace"),
            ("ls\npwd", "newline"),
            ("ls \\\n-la", "newline"),
            ("ls # x", "comment"),
            ("if ls; then pwd; fi", "shell syntax"),
            ("(ls)", "shell syntax"),
            ("! ls", "shell syntax"),
            ("ls 'x", "read"),
            ("ls x\\", "read"),
            ("ls &&", "read"),
            ("| ls", "read"),
            ("ls \u{1b}[2K", "control character"),
            ("ls\r", "control character"),
            ("  ", "empty"),
        ] {
            let refusal = parse(text).expect_err(text).to_string();
            assert!(refusal.contains(word), "{text:?}: {refusal}");
        }
    }

    #[test]
    fn deep_nesting_and_long_texts_are_refused_quickly() {
        for text in ["(".repeat(16_000), "$(".repeat(8_000), "a\"".repeat(7_999), "x".repeat(20_000)] {
            assert!(parse(&text).is_err());
        }
    }
}
