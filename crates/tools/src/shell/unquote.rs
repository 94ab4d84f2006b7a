//! Reads one word: removes quotes and backslashes, as bash does, and refuses what bash would expand.

use std::str::Chars;

use super::characters::{is_joiner, is_odd_space};
use super::refusal::Refusal;

/// Reads the word with which a text begins: returns the argument that it stands for, and the rest.
pub(crate) fn read_word(text: &str) -> Result<(String, &str), Refusal> {
    let mut reader = Reader { signs: text.chars(), word: String::new(), braces: Braces::default() };
    reader.read()?;
    Ok((reader.word, reader.signs.as_str()))
}

/// Says whether a sign outside quotes ends a word.
fn ends_word(sign: char) -> bool {
    matches!(sign, ' ' | '\t' | '\n' | '|' | '&' | ';' | '(' | ')' | '<' | '>')
}

struct Reader<'a> {
    signs: Chars<'a>,
    word: String,
    braces: Braces,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), Refusal> {
        // A tilde means a home directory at the start of a word, and in what looks like an assignment.
        let mut tilde = true;
        while let Some(sign) = self.peek().filter(|sign| !ends_word(*sign)) {
            self.signs.next();
            match sign {
                '\'' => self.single_quoted()?,
                '"' => self.double_quoted()?,
                '\\' => self.escaped()?,
                '~' if tilde => return Err(Refusal::Tilde),
                _ => self.plain(sign)?,
            }
            tilde = matches!(sign, '=' | ':');
        }
        Ok(())
    }

    fn peek(&self) -> Option<char> {
        self.signs.clone().next()
    }

    fn single_quoted(&mut self) -> Result<(), Refusal> {
        loop {
            match self.signs.next().ok_or(Refusal::Unreadable)? {
                '\'' => return Ok(()),
                sign => self.word.push(sign),
            }
        }
    }

    fn double_quoted(&mut self) -> Result<(), Refusal> {
        loop {
            match self.signs.next().ok_or(Refusal::Unreadable)? {
                '"' => return Ok(()),
                '`' => return Err(Refusal::Substitution),
                '$' => self.dollar("")?,
                '\\' => self.escaped_in_quotes()?,
                sign => self.word.push(sign),
            }
        }
    }

    /// Inside double quotes a backslash protects only what would be special there.
    fn escaped_in_quotes(&mut self) -> Result<(), Refusal> {
        match self.signs.next().ok_or(Refusal::Unreadable)? {
            '\n' => return Err(Refusal::Newline),
            sign @ ('$' | '`' | '"' | '\\') => self.word.push(sign),
            sign => self.word.extend(['\\', sign]),
        }
        Ok(())
    }

    fn escaped(&mut self) -> Result<(), Refusal> {
        match self.signs.next().ok_or(Refusal::Unreadable)? {
            '\n' => return Err(Refusal::Newline),
            sign => self.word.push(sign),
        }
        Ok(())
    }

    fn plain(&mut self, sign: char) -> Result<(), Refusal> {
        match sign {
            _ if is_odd_space(sign) || is_joiner(sign) => return Err(Refusal::UnquotedSpace(sign)),
            '*' | '?' | '[' => return Err(Refusal::Wildcard(sign)),
            '`' => return Err(Refusal::Substitution),
            '$' => return self.dollar("'\""),
            _ => {}
        }
        if self.braces.would_expand(sign) {
            return Err(Refusal::Braces);
        }
        self.word.push(sign);
        Ok(())
    }

    /// A dollar sign is data unless what follows it makes an expansion; outside quotes, quotes do too.
    fn dollar(&mut self, also: &str) -> Result<(), Refusal> {
        let quotes = |sign: char| also.contains(sign);
        match self.peek() {
            Some('(') if self.signs.as_str().starts_with("((") => Err(Refusal::Arithmetic),
            Some('(') => Err(Refusal::Substitution),
            Some('[') => Err(Refusal::Arithmetic),
            Some(sign) if quotes(sign) => Err(Refusal::AnsiQuoting),
            Some(sign) if sign.is_ascii_alphanumeric() || "_{@*#?-$!".contains(sign) => {
                Err(Refusal::Variable)
            }
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
    fn would_expand(&mut self, sign: char) -> bool {
        let dots = sign == '.' && self.after_dot;
        self.after_dot = sign == '.';
        self.open |= sign == '{';
        self.separated |= self.open && (sign == ',' || dots);
        self.separated && sign == '}'
    }
}
