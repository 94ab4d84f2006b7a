//! Parses command text into the arguments that are both checked and executed.
//!
//! The text is read once, from left to right: blanks, words, and the operators `|`, `&&`, `||` and `;`. Quotes
//! and backslashes are removed as bash removes them; whatever bash would expand, and everything else of its
//! syntax, is refused by name. So what is accepted means the same to bash, which a test asks bash itself.
//!
//! This module knows nothing about programs: see [`super::policy`].

use super::characters::is_deceptive;
use super::syntax_error::SyntaxError;
use super::unquote::read_word;

/// The longest command that is read, in bytes.
const MAX_LEN: usize = 16 * 1024;

/// The program of one command, and its arguments.
pub(crate) type Argv = Vec<String>;

/// What a command text asks for: pipelines, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    pub(crate) steps: Vec<CommandStep>,
}

/// One pipeline, and when it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandStep {
    pub(crate) after: After,
    pub(crate) pipeline: Vec<Argv>,
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
    pub(crate) fn commands(&self) -> impl Iterator<Item = &Argv> {
        self.steps.iter().flat_map(|step| &step.pipeline)
    }
}

/// Reads a command text.
pub(crate) fn parse(text: &str) -> Result<CommandLine, SyntaxError> {
    check_signs(text)?;
    let mut line = CommandLine { steps: vec![CommandStep::new(After::Anything)] };
    let mut rest = text.trim_start_matches(BLANKS);
    while !rest.is_empty() {
        rest = line.take(rest)?.trim_start_matches(BLANKS);
    }
    line.finished()
}

const BLANKS: [char; 2] = [' ', '\t'];

fn check_signs(text: &str) -> Result<(), SyntaxError> {
    if text.len() > MAX_LEN {
        return Err(SyntaxError::TooLong { longest: MAX_LEN });
    }
    if text.trim_matches(BLANKS).is_empty() {
        return Err(SyntaxError::Empty);
    }
    let is_control = |c: &char| c.is_control() && !matches!(c, '\t' | '\n');
    if let Some(c) = text.chars().find(is_control) {
        return Err(SyntaxError::ControlCharacter(c));
    }
    // Also within quotes: a person who reads the command would see another one than the program gets.
    text.chars().find(|c| is_deceptive(*c)).map_or(Ok(()), |c| Err(SyntaxError::InvisibleCharacter(c)))
}

impl CommandStep {
    fn new(after: After) -> Self {
        Self { after, pipeline: vec![Argv::new()] }
    }

    fn is_empty(&self) -> bool {
        self.pipeline == [Argv::new()]
    }
}

impl CommandLine {
    /// Takes the operator or the word with which a text begins, and returns the rest. `|` binds closest, and
    /// `&&`, `||` and `;` go from left to right, so their order is all there is to know.
    fn take<'t>(&mut self, text: &'t str) -> Result<&'t str, SyntaxError> {
        const OPERATORS: [(&str, After); 3] =
            [("&&", After::Success), ("||", After::Failure), (";", After::Anything)];
        for (operator, after) in OPERATORS {
            if let Some(rest) = text.strip_prefix(operator) {
                self.steps.push(CommandStep::new(after));
                return Ok(rest);
            }
        }
        let step = self.steps.last_mut().ok_or(SyntaxError::Unreadable)?;
        match text.strip_prefix('|') {
            Some(rest) if !rest.starts_with('&') => {
                step.pipeline.push(Argv::new());
                Ok(rest)
            }
            _ => take_word(text, step.pipeline.last_mut().ok_or(SyntaxError::Unreadable)?),
        }
    }

    /// Checks that every operator has its commands.
    fn finished(self) -> Result<Self, SyntaxError> {
        let is_semicolon = |step: &CommandStep| step.is_empty() && step.after == After::Anything;
        let is_last = self.steps.len() > 1 && self.steps.last().is_some_and(is_semicolon);
        if is_last && self.steps[..self.steps.len() - 1].iter().all(|step| !step.is_empty()) {
            return Err(SyntaxError::TrailingSemicolon);
        }
        let complete = !self.steps.is_empty() && self.commands().all(|argv| !argv.is_empty());
        if complete { Ok(self) } else { Err(SyntaxError::Unreadable) }
    }
}

fn take_word<'t>(text: &'t str, argv: &mut Argv) -> Result<&'t str, SyntaxError> {
    if let Some(refusal) = SyntaxError::at_start_of(text) {
        return Err(refusal);
    }
    if argv.is_empty() {
        check_command_position(text)?;
    }
    let (word, rest) = read_word(text)?;
    if argv.is_empty() && word.starts_with('%') {
        return Err(SyntaxError::Syntax("a job of a shell".to_owned()));
    }
    argv.push(word);
    Ok(rest)
}

/// Where a command begins, some words are syntax, unless something of them is quoted.
fn check_command_position(text: &str) -> Result<(), SyntaxError> {
    const RESERVED: [&str; 22] = [
        "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
        "function", "if", "select", "then", "time", "until", "while", "in",
    ];
    let ends_word = |ch: char| "|&;()<> \t\n".contains(ch);
    let word = text.split(ends_word).next().unwrap_or_default();
    if RESERVED.contains(&word) {
        return Err(SyntaxError::Syntax(format!("`{word}`")));
    }
    if is_assignment(word) { Err(SyntaxError::Assignment) } else { Ok(()) }
}

fn is_assignment(word: &str) -> bool {
    let name = word.trim_start_matches(|ch: char| ch.is_ascii_alphanumeric() || ch == '_');
    let named = name.len() < word.len() && !word.starts_with(|ch: char| ch.is_ascii_digit());
    named && (name.starts_with('=') || name.starts_with("+="))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(text: &str) -> Vec<Argv> {
        parse(text).unwrap().commands().cloned().collect()
    }

    #[test]
    fn quotes_vanish_and_what_they_hold_is_data() {
        assert_eq!(
            argv(r#"find . -e'x'ec "a;b" c\ d '$HOME' "\$x\a""#),
            [["find", ".", "-exec", "a;b", "c d", "$HOME", r"$x\a"]]
        );
        assert_eq!(argv("echo '' \"\" a''"), [["echo", "", "", "a"]]);
        assert_eq!(argv(r"grep 'it'\''s' \if 'l's\ "), [["grep", "it's", "if", "ls "]]);
        assert_eq!(argv("'if' a=b"), [["if", "a=b"]]);
        assert_eq!(argv("git show HEAD@{1} stash@{0} {}"), [["git", "show", "HEAD@{1}", "stash@{0}", "{}"]]);
        assert_eq!(argv("grep \"foo$\" a$ 'x\ny'"), [["grep", "foo$", "a$", "x\ny"]]);
    }

    #[test]
    fn operators_split_the_text_into_steps_and_pipelines() {
        let line = parse("ls|wc -l && pwd || date; whoami").unwrap();
        let shown: Vec<(After, usize)> =
            line.steps.iter().map(|step| (step.after, step.pipeline.len())).collect();
        use After::{Anything, Failure, Success};
        assert_eq!(shown, [(Anything, 2), (Success, 1), (Failure, 1), (Anything, 1)]);
    }

    #[test]
    fn a_chain_of_thousands_of_commands_is_read_to_its_end() {
        let text = format!("{}rm x", "ls && ".repeat(2_000));
        assert_eq!(argv(&text).last().unwrap(), &["rm", "x"]);
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
            ("ls | time wc", "shell syntax"),
            ("[[ -f x ]]", "shell syntax"),
            ("f() { ls; }", "shell syntax"),
            ("a+=1 ls", "assignment"),
            ("'%1'", "shell syntax"),
            ("ls |& wc", "background"),
            ("echo $[1]", "arithmetic"),
            ("ls; ;", "read"),
            ("ls 'x", "read"),
            ("ls x\\", "read"),
            ("ls &&", "read"),
            ("| ls", "read"),
            ("ls \u{1b}[2K", "control character"),
            ("ls\r", "control character"),
            ("ls;", "ends with `;`"),
            ("ls ;  ", "ends with `;`"),
            ("ls && pwd;", "ends with `;`"),
            ("ls\u{2028}rm x", "invisible character `\\u{2028}`"),
            ("ls 'a\u{2029}b'", "invisible character"),
            ("echo \u{202e}x", "invisible character"),
            ("echo 'x\u{2066}y'", "invisible character"),
            ("echo \"\u{200f}\"", "invisible character"),
            ("cat a\\\u{200b}b", "invisible character"),
            ("l\u{feff}s", "invisible character"),
            ("echo 'a\u{ad}b'", "invisible character"),
            ("echo '\u{e0041}'", "invisible character"),
            ("echo '\u{3164}'", "invisible character"),
            ("echo '\u{e000}'", "invisible character"),
            ("ls\u{a0}-la", "outside quotes"),
            ("echo a\u{3000}b", "outside quotes"),
            ("ls\u{200d}", "outside quotes"),
            ("  ", "empty"),
        ] {
            let refusal = parse(text).expect_err(text).to_string();
            assert!(refusal.contains(word), "{text:?}: {refusal}");
        }
    }

    #[test]
    fn spaces_of_other_widths_and_joined_emoji_are_data_in_quotes() {
        assert_eq!(argv("ls 'at 3.04\u{202f}PM.png'"), [["ls", "at 3.04\u{202f}PM.png"]]);
        assert_eq!(argv("echo \"👨\u{200d}👩 ❤\u{fe0f}\""), [["echo", "👨\u{200d}👩 ❤\u{fe0f}"]]);
        assert_eq!(argv("grep Grüße 漢字 🚀"), [["grep", "Grüße", "漢字", "🚀"]]);
        assert_eq!(argv("echo ';' a\\;"), [["echo", ";", "a;"]]);
    }

    #[test]
    fn deep_nesting_and_long_texts_are_refused_quickly() {
        for text in ["(".repeat(16_000), "$(".repeat(8_000), "a\"".repeat(7_999), "x".repeat(20_000)] {
            assert!(parse(&text).is_err());
        }
    }
}
