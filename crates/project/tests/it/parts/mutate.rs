//! Mutations of the files of a project, each made from a number.

use std::ops::Range;

use llm_do_testing::Chance;

/// Files by name.
pub(crate) type Files = Vec<(String, Vec<u8>)>;

/// A range of at most `longest` inside of `length`.
fn range(chance: &mut Chance, length: usize, longest: usize) -> Range<usize> {
    let start = chance.below(length + 1);
    start..start + chance.below((length - start).min(longest) + 1)
}

/// Chooses a project, and changes one or two things in one or two of its files.
pub(crate) fn mutated(projects: &[Files], chance: &mut Chance) -> Files {
    let mut files = chance.one_of(projects).clone();
    for _ in 0..=chance.below(2) {
        let at = chance.below(files.len());
        for _ in 0..=chance.below(2) {
            let other = chance.one_of(projects);
            let other = &chance.one_of(other).1;
            chance.one_of(&MUTATIONS)(&mut files[at].1, other, chance);
        }
    }
    files
}

type Mutation = fn(&mut Vec<u8>, &[u8], &mut Chance);

const MUTATIONS: [Mutation; 22] = [
    flip,
    delete,
    duplicate,
    splice,
    swap_ranges,
    truncate,
    delete_line,
    duplicate_line,
    swap_lines,
    indent_line,
    misspell,
    misspell,
    swap_words,
    replace_value,
    replace_value,
    replace_value,
    insert_sign,
    insert_sign,
    nest,
    many_keys,
    anchors,
    lengthen,
];

#[expect(clippy::ptr_arg, reason = "all mutations have one form")]
fn flip(text: &mut Vec<u8>, _: &[u8], chance: &mut Chance) {
    let at = chance.below(text.len());
    if let Some(byte) = text.get_mut(at) {
        *byte ^= 1 << chance.below(8);
    }
}

fn delete(text: &mut Vec<u8>, _: &[u8], chance: &mut Chance) {
    text.drain(range(chance, text.len(), 40));
}

fn duplicate(text: &mut Vec<u8>, _: &[u8], chance: &mut Chance) {
    let range = range(chance, text.len(), 200);
    let copy = text[range.clone()].to_vec();
    text.splice(range.end..range.end, copy);
}

fn splice(text: &mut Vec<u8>, other: &[u8], chance: &mut Chance) {
    let piece = other[range(chance, other.len(), 300)].to_vec();
    let range = range(chance, text.len(), 60);
    text.splice(range, piece);
}

fn swap_ranges(text: &mut Vec<u8>, _: &[u8], chance: &mut Chance) {
    let (first, second) = (range(chance, text.len() / 2, 60), range(chance, text.len().div_ceil(2), 60));
    let half = text.len() / 2;
    let second = half + second.start..half + second.end;
    let (before, after) = (text[first.clone()].to_vec(), text[second.clone()].to_vec());
    text.splice(second, before);
    text.splice(first, after);
}

fn truncate(text: &mut Vec<u8>, _: &[u8], chance: &mut Chance) {
    text.truncate(chance.below(text.len() + 1));
}

fn delete_line(text: &mut Vec<u8>, _: &[u8], chance: &mut Chance) {
    text.drain(line(text, chance));
}

fn duplicate_line(text: &mut Vec<u8>, _: &[u8], chance: &mut Chance) {
    let line = line(text, chance);
    let copy = text[line.clone()].to_vec();
    let at = if chance.below(2) == 0 { line.end } else { self::line(text, chance).start };
    text.splice(at..at, copy);
}

fn swap_lines(text: &mut Vec<u8>, _: &[u8], chance: &mut Chance) {
    let line = line(text, chance);
    let moved: Vec<u8> = text.drain(line).collect();
    let at = self::line(text, chance).start;
    text.splice(at..at, moved);
}

fn indent_line(text: &mut Vec<u8>, _: &[u8], chance: &mut Chance) {
    let at = line(text, chance).start;
    let blanks = *chance.one_of(&[" ", "  ", "\t", "        ", "\u{a0}", "\u{3000}"]);
    text.splice(at..at, blanks.bytes());
}

fn line(text: &[u8], chance: &mut Chance) -> Range<usize> {
    let at = chance.below(text.len());
    let start = text[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let end = text[at..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |end| at + end + 1);
    start..end
}

/// A word of letters, digits and `_`, if there is one near.
fn word(text: &[u8], chance: &mut Chance) -> Range<usize> {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let from = chance.below(text.len());
    let start = text[from..].iter().position(is_letter).map_or(text.len(), |at| from + at);
    let begin = text[..start].iter().rposition(|byte| !is_letter(byte)).map_or(0, |at| at + 1);
    let end = text[start..].iter().position(|byte| !is_letter(byte)).map_or(text.len(), |at| start + at);
    begin..end
}

fn misspell(text: &mut Vec<u8>, _: &[u8], chance: &mut Chance) {
    let word = word(text, chance);
    let at = word.start + chance.below(word.len());
    match chance.below(4) {
        0 => drop(text.splice(at..at, *chance.one_of(&[*b"s", *b"_", *b"x", *b"-"]))),
        1 if at < text.len() => drop(text.remove(at)),
        2 if at + 1 < text.len() => text.swap(at, at + 1),
        _ => text[word].make_ascii_uppercase(),
    }
}

fn swap_words(text: &mut Vec<u8>, _: &[u8], chance: &mut Chance) {
    let (first, second) = (word(text, chance), word(text, chance));
    let copy = text[second].to_vec();
    text.splice(first, copy);
}

/// Values of the wrong kind, and numbers and texts at the edges of theirs.
const VALUES: [&str; 36] = [
    "null",
    "~",
    "true",
    "yes",
    "no",
    "0",
    "-1",
    "1.5",
    "1e400",
    "-1e308",
    "1e-400",
    "0x1F",
    "0o17",
    "1_000",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775809",
    ".inf",
    "-.nan",
    "nan",
    "\"\"",
    "''",
    "\"x\"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"\\u202e\\n\\u001b[2J\"",
    "[]",
    "{}",
    "[[]]",
    "{\"a\": {}}",
    "[1, \"a\", null]",
    "!!binary aGk=",
    "!tag x",
    "2020-01-01",
    "{{ topc }}",
    "../../outside.agent",
];

/// Replaces what stands after a `:` or `=`, up to the end of the line.
fn replace_value(text: &mut Vec<u8>, _: &[u8], chance: &mut Chance) {
    let line = line(text, chance);
    let after = text[line.clone()].iter().position(|byte| matches!(byte, b':' | b'=' | b'-'));
    let start = after.map_or(line.start, |at| line.start + at + 1);
    let content = text[start..line.end].iter().rposition(|byte| !matches!(byte, b'\n' | b'\r' | b','));
    let end = content.map_or(start, |at| start + at + 1);
    let value = format!(" {}", chance.one_of(&VALUES));
    text.splice(start..end, value.into_bytes());
}

/// Characters that are invisible, wide, turn the direction, or end lines somewhere only.
const SIGNS: [&[u8]; 22] = [
    "\u{feff}".as_bytes(),
    "\u{202e}".as_bytes(),
    "\u{2066}".as_bytes(),
    "\u{61c}".as_bytes(),
    b"\0",
    b"\r",
    b"\x1b[31m",
    "\u{85}".as_bytes(),
    "\u{2028}".as_bytes(),
    "世界".as_bytes(),
    "👩‍👩‍👧".as_bytes(),
    "e\u{301}\u{301}\u{301}".as_bytes(),
    "\u{200b}".as_bytes(),
    "\u{a0}".as_bytes(),
    b"\t",
    b"\x7f",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\n---\n",
    b"\n...\n",
    b"\n--- \n",
];

fn insert_sign(text: &mut Vec<u8>, _: &[u8], chance: &mut Chance) {
    let at = chance.below(text.len() + 1);
    let c = *chance.one_of(&SIGNS);
    text.splice(at..at, c.iter().copied());
}

/// Puts a deep nest where a value or a line begins.
fn nest(text: &mut Vec<u8>, _: &[u8], chance: &mut Chance) {
    let depth = *chance.one_of(&[20, 63, 65, 127, 129, 1_000, 100_000]);
    let (open, close) =
        *chance.one_of(&[("[", "]"), ("{\"a\":", "}"), ("{a: ", "}"), ("- ", ""), ("[[", "]]"), ("a.", "")]);
    let closing = if chance.below(4) == 0 { 0 } else { depth };
    put(text, &format!("{}1{}", open.repeat(depth), close.repeat(closing)), chance);
}

fn many_keys(text: &mut Vec<u8>, _: &[u8], chance: &mut Chance) {
    let count = *chance.one_of(&[50, 250, 1_000, 20_000]);
    let (start, form, end) = *chance.one_of(&[
        ("\n", "kN: N\n", ""),
        ("{", "\"kN\":N,", "\"k\":1}"),
        ("\n", "kN = N\n", ""),
        ("[", "\"N\",", "1]"),
    ]);
    let keys: String = (0..count).map(|number| form.replace('N', &number.to_string())).collect();
    put(text, &format!("{start}{keys}{end}"), chance);
}

fn anchors(text: &mut Vec<u8>, _: &[u8], chance: &mut Chance) {
    let count = *chance.one_of(&[5, 9, 30, 300, 5_000]);
    let bomb = (1..count)
        .map(|number| format!("a{number}: &a{number} [{}]\n", format!("*a{},", number - 1).repeat(9)));
    let flat = (1..count).map(|number| format!("a{number}: *a0\n"));
    let aliases: String = if chance.below(2) == 0 { bomb.collect() } else { flat.collect() };
    put(text, &format!("\na0: &a0 {{x: 1}}\n{aliases}"), chance);
}

fn lengthen(text: &mut Vec<u8>, _: &[u8], chance: &mut Chance) {
    let c = *chance.one_of(&["x", "9", " ", "\n", "ä", "{{", "\\u0041", "*", "#", "{a,b}", "("]);
    let count = *chance.one_of(&[100, 10_000, 500_000]);
    put(text, &c.repeat(count / c.len()), chance);
}

/// Puts a text after a `:` or `=`, at the start of a line, or inside of a word.
fn put(text: &mut Vec<u8>, piece: &str, chance: &mut Chance) {
    let line = line(text, chance);
    let value = text[line.clone()].iter().position(|byte| matches!(byte, b':' | b'='));
    let at = match chance.below(3) {
        0 => line.start,
        1 => value.map_or(line.end, |at| line.start + at + 1),
        _ => chance.below(text.len() + 1),
    };
    text.splice(at..at, piece.bytes());
}
