//! Words whose letters are not those that they seem to be.

use std::fmt::Write;

/// How many words are named at most.
const MAX_ITEMS: usize = 20;

/// Names the words of a text that mix Latin letters with letters of scripts that look like them, or that hold letters
/// which are Latin in another dress (fullwidth, mathematical). Each foreign letter is written as its number, such as
/// `p<U+0430>ypal`. Each word once, at most 20.
pub fn lookalikes(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| is_suspicious(word)) {
        let named = named(word);
        if !found.contains(&named) {
            found.push(named);
        }
        if found.len() == MAX_ITEMS {
            break;
        }
    }
    found
}

/// What a letter may be taken for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Letter {
    Latin,
    /// Of a script whose letters look like Latin ones.
    Similar,
    /// Latin in another dress.
    Dressed,
    Other,
}

fn is_suspicious(word: &str) -> bool {
    let has = |kind: Letter| word.chars().any(|c| letter(c) == kind);
    has(Letter::Dressed) || (has(Letter::Latin) && has(Letter::Similar))
}

fn named(word: &str) -> String {
    let mut named = String::with_capacity(word.len());
    for c in word.chars() {
        match letter(c) {
            Letter::Similar | Letter::Dressed => {
                // A text takes whatever is written to it.
                let _ = write!(named, "<U+{:04X}>", u32::from(c));
            }
            Letter::Latin | Letter::Other => named.push(c),
        }
    }
    named
}

fn letter(c: char) -> Letter {
    match c {
        'A'..='Z' | 'a'..='z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Letter::Latin,
        // Greek and Coptic, Cyrillic, Armenian, Cherokee, Lisu.
        '\u{370}'..='\u{58f}'
        | '\u{13a0}'..='\u{13ff}'
        | '\u{1c80}'..='\u{1c8f}'
        | '\u{1f00}'..='\u{1fff}'
        | '\u{2c80}'..='\u{2cff}'
        | '\u{2de0}'..='\u{2dff}'
        | '\u{a4d0}'..='\u{a4ff}'
        | '\u{a640}'..='\u{a69f}'
        | '\u{ab70}'..='\u{abbf}' => Letter::Similar,
        // Symbols made of letters, Roman numerals, fullwidth and mathematical letters.
        '\u{2100}'..='\u{217f}'
        | '\u{ff21}'..='\u{ff3a}'
        | '\u{ff41}'..='\u{ff5a}'
        | '\u{1d400}'..='\u{1d7ff}' => Letter::Dressed,
        _ => Letter::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_mixed_scripts_are_named_with_their_foreign_letters() {
        assert_eq!(lookalikes("rm -rf p\u{430}ypal.com/d\u{3bf}cs"), ["p<U+0430>ypal", "d<U+03BF>cs"]);
        assert_eq!(lookalikes("\u{ff52}\u{ff4d} \u{1d42b}m"), ["<U+FF52><U+FF4D>", "<U+1D42B>m"]);
        assert_eq!(lookalikes("\u{13aa}et \u{578}ne"), ["<U+13AA>et", "<U+0578>ne"]);
    }

    #[test]
    fn words_of_one_script_are_not_named() {
        assert_eq!(lookalikes("Привет world, größer, λόγος, 漢字 x2"), Vec::<String>::new());
    }

    #[test]
    fn each_word_is_named_once_and_not_too_many_are() {
        let many: String = (0..50).map(|number| format!("\u{430}{number}b x\u{430} ")).collect();
        let named = lookalikes(&many);
        assert_eq!(named.len(), 20);
        assert_eq!(named.iter().filter(|word| *word == "x<U+0430>").count(), 1);
    }
}
