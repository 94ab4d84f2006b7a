//! Why a command text is refused before anything is judged, and what to do instead.

use std::fmt;

/// Why a command text is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SyntaxError {
    Empty,
    TooLong { longest: usize },
    ControlCharacter(char),
    InvisibleCharacter(char),
    UnquotedSpace(char),
    TrailingSemicolon,
    Newline,
    Substitution,
    Variable,
    Arithmetic,
    AnsiQuoting,
    Redirect,
    Assignment,
    Background,
    Wildcard(char),
    Tilde,
    Braces,
    Comment,
    Syntax(String),
    Unreadable,
}

impl SyntaxError {
    /// Names the reason why a text cannot go on with its first character; none where it may begin a word.
    pub(crate) fn at_start_of(text: &str) -> Option<Self> {
        let mut characters = text.chars();
        Some(match (characters.next()?, characters.next()) {
            ('<' | '>', Some('(')) => Self::Substitution,
            ('<' | '>', _) | ('&', Some('>')) => Self::Redirect,
            ('&' | '|', _) => Self::Background,
            ('(' | ')', _) => Self::Syntax("groups of commands and functions".to_owned()),
            ('\n', _) => Self::Newline,
            ('#', _) => Self::Comment,
            _ => return None,
        })
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the command is empty: name a program"),
            Self::TooLong { longest } => {
                write!(f, "the command is longer than {longest} bytes: make several calls")
            }
            Self::ControlCharacter(ch) => {
                write!(f, "the command holds the control character `{}`: leave it out", ch.escape_unicode())
            }
            Self::InvisibleCharacter(c) => {
                write!(f, "the command has the invisible character `{}`: leave it out", c.escape_unicode())
            }
            Self::UnquotedSpace(c) => write!(
                f,
                "the command has `{}` outside quotes, which looks like a space or like nothing and does not separate \
                 arguments: use a plain space, or quote it if it is data",
                c.escape_unicode()
            ),
            Self::TrailingSemicolon => f.write_str("the command ends with `;`: leave it out"),
            Self::Newline => {
                f.write_str("a newline outside quotes: make one call per command, or join them with `&&`")
            }
            Self::Substitution => f.write_str(
                "command substitution: no shell runs this text; make one call, read its output, \
                 and write it into the next; quote `$` and backticks with single quotes if they are data",
            ),
            Self::Variable => f.write_str(
                "a variable: nothing is expanded; write the value itself, or single quotes if `$` is data",
            ),
            Self::Arithmetic => f.write_str("arithmetic: nothing is computed; write the result"),
            Self::AnsiQuoting => f.write_str("`$'..'` quoting: use plain single or double quotes"),
            Self::Redirect => f.write_str(
                "a redirect: standard output and standard error are captured anyway; leave it out, \
                 name input files as arguments, and write files with a tool made for it",
            ),
            Self::Assignment => {
                f.write_str("an assignment before the program: variables cannot be set; leave it out")
            }
            Self::Background => f.write_str(
                "`&`: nothing runs in the background and standard error is captured anyway; \
                 leave it out, or quote it if it is data",
            ),
            Self::Wildcard(ch) => write!(
                f,
                "the wildcard `{ch}` outside quotes: nothing is expanded; quote it if it is data for the \
                 program, or list the files first (`find . -name '*.txt'`) and name them"
            ),
            Self::Tilde => {
                f.write_str("`~` for a home directory: nothing is expanded; write the path, or quote it")
            }
            Self::Braces => f.write_str("brace expansion: write out each argument, or quote the braces"),
            Self::Comment => f.write_str("a comment: leave it out, or quote `#` if it is data"),
            Self::Syntax(what) => {
                write!(
                    f,
                    "shell syntax ({what}): only commands joined by `|`, `&&`, `||` and `;` are understood"
                )
            }
            Self::Unreadable => f.write_str(
                "the command cannot be read: look for a quote that is not closed, a backslash at the end, \
                 or an operator without a command",
            ),
        }
    }
}
