//! Tables of known flags, and the parser that finds flags and operands among the arguments of a command.
//!
//! A table is written as one line of text, so that it can be read and compared with a manual page:
//!
//! | written | means |
//! | --- | --- |
//! | `-abc` | the flags `-a`, `-b` and `-c` |
//! | `-n=`, `--lines=` | takes a value, joined or as the next word |
//! | `--color?` | may take a value, only joined |
//! | `-f@` | takes the path of a file that is read |
//! | `!-o=` | known, but asks: it can write, run a program or read outside |
//! | `+-L` | follows links |
//!
//! The parser follows `getopt_long`: clusters, joined values, unambiguous beginnings of long flags, `--`, and
//! flags after operands. What it cannot place is [`Argument::Unknown`].

use std::collections::BTreeMap;

/// What a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    Value,
    OptionalValue,
    Path,
}

/// What is known about a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flag {
    pub(crate) takes: Takes,
    pub(crate) asks: bool,
    pub(crate) follows_links: bool,
}

/// The flags that a program knows.
#[derive(Debug, Clone, Default)]
pub(crate) struct FlagTable {
    flags: BTreeMap<String, Flag>,
}

/// One argument of a command, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Argument {
    /// A known flag under its full name, with its value.
    /// `separate` says that the value is a word of its own.
    Flag { name: String, flag: Flag, value: Option<String>, separate: bool },
    /// A word that is not a flag.
    Operand(String),
    /// A flag that is not in the table, or not used as the table says.
    Unknown(String),
}

/// How a program parses its own flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlagSyntax {
    /// As `getopt_long`: flags anywhere, long ones may be abbreviated.
    Gnu,
    /// Flags anywhere, long ones in full.
    Exact,
    /// Flags end at the first operand, long ones in full.
    UpToOperand,
    /// Long flags in full; the value of a short one is a number that is joined, or else the next word, and
    /// its cluster goes on behind it: `-Po pattern file`.
    NextWords,
}

impl FlagTable {
    /// Parses the notation of the tables, or returns what is wrong with an entry.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut table = Self::default();
        for entry in text.split_whitespace() {
            table.add(entry)?;
        }
        Ok(table)
    }

    /// Adds one entry of the notation.
    pub(crate) fn add(&mut self, entry: &str) -> Result<(), String> {
        let (asks, rest) = strip(entry, '!');
        let (follows_links, rest) = strip(rest, '+');
        let (takes, name) = match rest.char_indices().last() {
            Some((end, '=')) => (Takes::Value, &rest[..end]),
            Some((end, '?')) => (Takes::OptionalValue, &rest[..end]),
            Some((end, '@')) => (Takes::Path, &rest[..end]),
            _ => (Takes::Nothing, rest),
        };
        let flag = Flag { takes, asks, follows_links };
        for name in names(name).ok_or_else(|| format!("`{entry}` is not a flag: write `-x` or `--name`"))? {
            self.flags.insert(name, flag);
        }
        Ok(())
    }

    /// Adds everything of another table, which wins.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.flags.extend(other.flags.iter().map(|(name, flag)| (name.clone(), *flag)));
    }

    /// Reads the arguments of a command.
    pub(crate) fn parse(&self, arguments: &[String], syntax: FlagSyntax) -> Vec<Argument> {
        let mut parser = FlagParser { table: self, syntax, rest: arguments.iter(), read: Vec::new() };
        parser.read();
        parser.read
    }

    /// Returns how many arguments come before the first operand with [`FlagSyntax::UpToOperand`].
    pub(crate) fn count_before_operand(&self, arguments: &[String]) -> usize {
        let mut parser = FlagParser {
            table: self,
            syntax: FlagSyntax::UpToOperand,
            rest: arguments.iter(),
            read: Vec::new(),
        };
        parser.flags_before_operand();
        arguments.len() - parser.rest.len()
    }

    /// Returns the flag of exactly this name.
    pub(crate) fn exact(&self, name: &str) -> Option<Flag> {
        self.flags.get(name).copied()
    }

    fn long(&self, name: &str, syntax: FlagSyntax) -> Option<(String, Flag)> {
        if let Some(flag) = self.flags.get(name) {
            return Some((name.to_owned(), *flag));
        }
        let mut beginnings =
            self.flags.range(name.to_owned()..).take_while(|(full, _)| full.starts_with(name));
        match (syntax, beginnings.next(), beginnings.next()) {
            (FlagSyntax::Gnu, Some((full, flag)), None) => Some((full.clone(), *flag)),
            _ => None,
        }
    }
}

fn strip(entry: &str, c: char) -> (bool, &str) {
    entry.strip_prefix(c).map_or((false, entry), |rest| (true, rest))
}

fn names(text: &str) -> Option<Vec<String>> {
    match text.strip_prefix("--") {
        Some(long) => (!long.is_empty()).then(|| vec![text.to_owned()]),
        None => {
            let letters = text.strip_prefix('-').filter(|letters| !letters.is_empty())?;
            Some(letters.chars().map(|letter| format!("-{letter}")).collect())
        }
    }
}

struct FlagParser<'a> {
    table: &'a FlagTable,
    syntax: FlagSyntax,
    rest: std::slice::Iter<'a, String>,
    read: Vec<Argument>,
}

impl FlagParser<'_> {
    fn read(&mut self) {
        while let Some(word) = self.rest.next() {
            if word == "--" {
                return self.rest_are_operands();
            }
            if is_flag(word) {
                self.flag(word);
            } else {
                self.read.push(Argument::Operand(word.clone()));
                if self.syntax == FlagSyntax::UpToOperand {
                    return self.rest_are_operands();
                }
            }
        }
    }

    fn flags_before_operand(&mut self) {
        while let Some(word) = self.rest.as_slice().first().filter(|word| is_flag(word)) {
            self.rest.next();
            self.flag(word);
        }
    }

    fn rest_are_operands(&mut self) {
        let rest = self.rest.by_ref().cloned().map(Argument::Operand);
        self.read.extend(rest);
    }

    fn flag(&mut self, word: &str) {
        if word.starts_with("--") { self.long(word) } else { self.cluster(word) }
    }

    fn long(&mut self, word: &str) {
        let (name, joined) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let Some((name, flag)) = self.table.long(name, self.syntax) else {
            return self.read.push(Argument::Unknown(word.to_owned()));
        };
        let value = match (flag.takes, joined) {
            (Takes::Nothing, Some(_)) => return self.read.push(Argument::Unknown(word.to_owned())),
            (Takes::Value | Takes::Path, None) => self.rest.next().cloned(),
            (_, joined) => joined.map(str::to_owned),
        };
        let separate = joined.is_none() && value.is_some();
        self.read.push(Argument::Flag { name, flag, value, separate });
    }

    fn cluster(&mut self, word: &str) {
        let mut letters = word.trim_start_matches('-').chars();
        let mut separate;
        while let Some(letter) = letters.next() {
            let name = format!("-{letter}");
            let Some(&flag) = self.table.flags.get(&name) else {
                return self.read.push(Argument::Unknown(word.to_owned()));
            };
            if flag.takes == Takes::Nothing {
                self.read.push(Argument::Flag { name, flag, value: None, separate: false });
                continue;
            }
            if self.syntax == FlagSyntax::NextWords {
                let (number, rest) = leading_number(letters.as_str());
                let joined = Some(number.to_owned()).filter(|number| !number.is_empty());
                (letters, separate) = (rest.chars(), joined.is_none());
                let value = joined.or_else(|| self.rest.next().cloned());
                self.read.push(Argument::Flag { name, flag, value, separate });
                continue;
            }
            let joined = Some(letters.as_str().to_owned()).filter(|rest| !rest.is_empty());
            separate = joined.is_none() && flag.takes != Takes::OptionalValue;
            // Behind a number, letters can have the meaning from before `getopt`: `tail -5c x` reads `x`.
            if separate && !leading_number(word.trim_start_matches('-')).0.is_empty() {
                return self.read.push(Argument::Unknown(word.to_owned()));
            }
            let value = if separate { self.rest.next().cloned() } else { joined };
            return self.read.push(Argument::Flag { name, flag, value, separate });
        }
    }
}

fn leading_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

fn is_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(table: &str, argv: &str) -> Vec<String> {
        read_as(FlagSyntax::Gnu, table, argv)
    }

    fn read_as(syntax: FlagSyntax, table: &str, argv: &str) -> Vec<String> {
        let argv: Vec<String> = argv.split(' ').map(str::to_owned).collect();
        let shown = |argument| match argument {
            Argument::Flag { name, value: None, .. } => name,
            Argument::Flag { name, value: Some(value), .. } => format!("{name}={value}"),
            Argument::Operand(word) => word,
            Argument::Unknown(word) => format!("?{word}"),
        };
        FlagTable::read(table).unwrap().parse(&argv, syntax).into_iter().map(shown).collect()
    }

    #[test]
    fn clusters_values_abbreviations_and_late_flags_are_found() {
        let table = "-rn !-o= -m? --output= --out-of-range --color?";
        assert_eq!(read(table, "-rno out a -n"), ["-r", "-n", "-o=out", "a", "-n"]);
        assert_eq!(read(table, "-oout -r"), ["-o=out", "-r"]);
        assert_eq!(read(table, "--outp x --outp=y"), ["--output=x", "--output=y"]);
        assert_eq!(read(table, "--out x"), ["?--out", "x"], "ambiguous");
        assert_eq!(read(table, "--color x --col=y"), ["--color", "x", "--color=y"]);
        assert_eq!(read(table, "-m5 -m x"), ["-m=5", "-m", "x"]);
        assert_eq!(read(table, "a -- -o -- --x"), ["a", "-o", "--", "--x"]);
        assert_eq!(read(table, "-rx --out-of-range=1 -"), ["-r", "?-rx", "?--out-of-range=1", "-"]);
    }

    #[test]
    fn letters_behind_a_number_take_no_word() {
        let table = "-qf0123456789 -c= -n=";
        assert_eq!(read(table, "-15q a"), ["-1", "-5", "-q", "a"]);
        assert_eq!(read(table, "-5c a"), ["-5", "?-5c", "a"]);
        assert_eq!(read(table, "-5n3 -c 5 a"), ["-5", "-n=3", "-c=5", "a"]);
    }

    #[test]
    fn values_that_are_the_next_words_leave_their_cluster_to_go_on() {
        let table = "-ad -P= -L= !-o= --charset=";
        let read = |argv| read_as(FlagSyntax::NextWords, table, argv);
        assert_eq!(read("-aPod x y z"), ["-a", "-P=x", "-o=y", "-d", "z"]);
        assert_eq!(read("-L2a x --charset=u"), ["-L=2", "-a", "x", "--charset=u"]);
        assert_eq!(read("-L 2 -P"), ["-L=2", "-P"]);
    }

    #[test]
    fn an_entry_that_is_no_flag_is_named() {
        for entry in ["x", "-", "--", "", "="] {
            assert!(FlagTable::default().add(entry).is_err(), "{entry:?}");
        }
    }
}
