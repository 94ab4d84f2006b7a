//! Reads one word: removes quotes and backslashes, as bash does, and refuses what bash would expand.

use std::str::Chars;

use super::characters::{is_joiner, is_odd_space};
use super::syntax_error::SyntaxError;

/// Reads the word at the start of a text: returns the argument that it expands to, and the rest.
pub(crate) fn read_word(text: &str) -> Result<(String, &str), SyntaxError> {
    let mut reader = WordReader { characters: text.chars(), word: String::new(), braces: Braces::default() };
    reader.read()?;
    Ok((reader.word, reader.characters.as_str()))
}

/// Returns whether a character outside quotes ends a word.
fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '|' | '&' | ';' | '(' | ')' | '<' | '>')
}

struct WordReader<'a> {
    characters: Chars<'a>,
    word: String,
    braces: Braces,
}

impl WordReader<'_> {
    fn read(&mut self) -> Result<(), SyntaxError> {
        // A tilde means a home directory at the start of a word, and in what looks like an assignment.
        let mut tilde = true;
        while let Some(c) = self.peek().filter(|c| !ends_word(*c)) {
            self.characters.next();
            match c {
                '\'' => self.single_quoted()?,
                '"' => self.double_quoted()?,
                '\\' => self.escaped()?,
                '~' if tilde => return Err(SyntaxError::Tilde),
                _ => self.plain(c)?,
            }
            tilde = matches!(c, '=' | ':');
        }
        Ok(())
    }

    fn peek(&self) -> Option<char> {
        self.characters.clone().next()
    }

    fn single_quoted(&mut self) -> Result<(), SyntaxError> {
        loop {
            match self.characters.next().ok_or(SyntaxError::Unreadable)? {
                '\'' => return Ok(()),
                c => self.word.push(c),
            }
        }
    }

    fn double_quoted(&mut self) -> Result<(), SyntaxError> {
        loop {
            match self.characters.next().ok_or(SyntaxError::Unreadable)? {
                '"' => return Ok(()),
                '`' => return Err(SyntaxError::Substitution),
                '$' => self.dollar("")?,
                '\\' => self.escaped_in_quotes()?,
                c => self.word.push(c),
            }
        }
    }

    /// Inside double quotes a backslash protects only what would be special there.
    fn escaped_in_quotes(&mut self) -> Result<(), SyntaxError> {
        match self.characters.next().ok_or(SyntaxError::Unreadable)? {
            '\n' => return Err(SyntaxError::Newline),
            c @ ('$' | '`' | '"' | '\\') => self.word.push(c),
            c => self.word.extend(['\\', c]),
        }
        Ok(())
    }

    fn escaped(&mut self) -> Result<(), SyntaxError> {
        match self.characters.next().ok_or(SyntaxError::Unreadable)? {
            '\n' => return Err(SyntaxError::Newline),
            c => self.word.push(c),
        }
        Ok(())
    }

    fn plain(&mut self, c: char) -> Result<(), SyntaxError> {
        match c {
            _ if is_odd_space(c) || is_joiner(c) => return Err(SyntaxError::UnquotedSpace(c)),
            '*' | '?' | '[' => return Err(SyntaxError::Wildcard(c)),
            '`' => return Err(SyntaxError::Substitution),
            '$' => return self.dollar("'\""),
            _ => {}
        }
        if self.braces.would_expand(c) {
            return Err(SyntaxError::Braces);
        }
        self.word.push(c);
        Ok(())
    }

    /// A dollar character is data unless what follows it makes an expansion; outside quotes, quotes do too.
    fn dollar(&mut self, also: &str) -> Result<(), SyntaxError> {
        let quotes = |c: char| also.contains(c);
        match self.peek() {
            Some('(') if self.characters.as_str().starts_with("((") => Err(SyntaxError::Arithmetic),
            Some('(') => Err(SyntaxError::Substitution),
            Some('[') => Err(SyntaxError::Arithmetic),
            Some(c) if quotes(c) => Err(SyntaxError::AnsiQuoting),
            Some(c) if c.is_ascii_alphanumeric() || "_{@*#?-$!".contains(c) => Err(SyntaxError::Variable),
            _ => {
                self.word.push('$');
                Ok(())
            }
        }
    }
}

/// Watches for `{a,b}` and `{1..3}` outside quotes; `HEAD@{1}` and `{}` are data.
#[derive(Default)]
struct Braces {
    open: bool,
    separated: bool,
    after_dot: bool,
}

impl Braces {
    fn would_expand(&mut self, c: char) -> bool {
        let dots = c == '.' && self.after_dot;
        self.after_dot = c == '.';
        self.open |= c == '{';
        self.separated |= self.open && (c == ',' || dots);
        self.separated && c == '}'
    }
}
