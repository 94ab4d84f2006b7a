//! Command texts without number, held against bash: what is accepted has the words that bash sees.
//!
//! A text is made of words whose meaning is known, each written with whatever quotes chance gives; half of
//! the texts also hold something that bash might expand or that is not a word at all. Bash reads the accepted
//! ones with every command replaced by a function that prints its arguments, once with commands that succeed
//! and once with commands that fail, so that `&&`, `||`, `;` and `|` are compared too.
//!
//! `LLM_DO_SHELL_TEXTS` says how many texts are made, `LLM_DO_SEED` the first seed.
#![allow(clippy::print_stdout, reason = "what a test counted is worth reading")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use llm_do_core::Approval;
use llm_do_testing::{Chance, TestDir};

use super::characters::{is_joiner, is_odd_space};
use super::execution_env::SYSTEM_DIRECTORIES;
use super::parse::{After, Argv, CommandLine, parse};
use super::programs::{GIT_READERS, READERS};
use super::session::ShellSession;
use super::{Preset, ShellRule, ShellSettings, session};
use crate::filesystem::Protected;

/// Flags and operands of the listed programs: known and unknown, in clusters, with joined and separate
/// values, shortened, and behind `--`.
#[rustfmt::skip]
const ARGUMENTS: &[&str] = &[
    "-l", "-la", "-rno", "-n", "-n5", "-5", "-5c", "-c", "-k2,2n", "-t:", "-oout", "-uo", "-X", "-Zx", "-",
    "--", "---", "--all", "--outp", "--output=x", "--outp=x", "--rec", "--color=auto", "--files0-from=x",
    "--pre=x", "--bogus", "--no-pager", "-C", "--stat", "-exec", "-delete", "-name", "-maxdepth", "a", "b",
    "sub/a.txt", "src", ".", "..", "../x", "/etc/passwd", "/dev/null", "./a", "a b", "it's", "x;y", "a|b",
    "$HOME", "${x}", "$(id)", "`id`", "*.rs", "?", "[a-z]", "{a,b}", "{1..3}", "{}", "HEAD@{1}", "main..x",
    "^HEAD", ":(top)x", ":!x", "~", "~root", "a~", "x=~", "a=b", "=", "#", "a#b", "!", "!!", "!x", "%s\\n",
    "\\", "a\\b", "\"", "'", "''", "\t", "x\ny", " ", "", "é", "世界", "🚀", "а", "ｌｓ", "\u{a0}", "\u{202f}",
    "👨\u{200d}👩", "e\u{301}", "|", "&&", ";", "&", ">", "<", "(", ")", "\\;", "10",
    "2", "-1", "+5", "in", "do", "done", "fi", "time", "if", "then", "{", "}", "[[", "]]", "function",
    "coproc", "case", "esac",
];

/// Names at the position of a program, besides the listed ones.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "rm", "sh", "bash", "env", "xargs", "sed", "awk", "tee", "printf", "eval", "exec", "exit", "read",
    "return", "test", "true", "set", "trap", "alias", "cd", "source", "type", "wait", "no-such", "é",
    "ls\u{200b}", "1", "10", "-x", "--", "a=b", "a+=b", "1a=b", "é=1", "a-b=c", "=x", "if", "then", "else",
    "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "select", "function", "time",
    "coproc", "in", "{", "}", "!", "[[", "]]", "[", "let", "declare", "export", "unset", "local", "readonly",
    "typeset", "unsetenv", "/usr/bin/ls", "", "a b", "l*s",
];

/// What bash expands, or reads as something else than a word: put anywhere into a text.
#[rustfmt::skip]
const NOISE: &[&str] = &[
    "$x", "${x}", "${x:-y}", "${!x}", "$1", "$@", "$*", "$#", "$?", "$-", "$$", "$!", "$_", "$0", "$", "$ ",
    "$\"x\"", "$'x'", "$'\\n'", "$(id)", "$(", "`id`", "`", "$((1+1))", "$[1+1]", "\"$x\"", "\"${x}\"",
    "\"$(id)\"", "\"`id`\"", "\"$\"", "\"a$\"", "\"\\$x\"", "'$x'", "\\$x", "\\`", "<(ls)", ">(ls)", "> f",
    ">f", ">> f", "< f", "2>&1", "&> f", ">| f", "<> f", "2> f", "{fd}> f", "<<< x", "<< E", "<<E\nx\nE\n",
    "*", "?", "[a]", "a[1]", "[", "]", "!(a)", "@(a|b)", "+(a)", "?(a)", "*(a)", "{a,b}", "{a,b", ",b}",
    "{1..3}", "{a..c..2}", "a{,b}", "{'a',b}", "{a\\,b}", "\\{a,b}", "{a,b\\}", "'{'a,b}", "{{a}}", "{}",
    "{", "}", "~", "~/x", "~root", "~+", "x=~", "x:~", "a=b:~", "#", "# x", "a#", "\n", "\\\n", "\r",
    "\u{b}", "\u{c}", "\u{85}", "\u{0}", "\u{1b}[2K", "\u{7f}", "\u{9b}", "&", "&&", "||", "|", "|&", ";",
    ";;", ";&", ";;&", "!", "! ", "!!", "!x", "^a^b", "(", ")", "(ls)", "{ ls; }", "((1))", "[[ a ]]",
    "f() { ls; }", "function f { ls; }", "if ls; then ls; fi", "for i in a; do ls; done",
    "while ls; do ls; done", "case a in a) ls;; esac", "select", "time ", "time -p ", "coproc ", "in",
    "a=b ", "A=1", "a=(1 2)", "a[0]=1", "a+=1", "alias l=rm", "\\", "'", "\"", "''", "\"\"", "\\'", "\\\"",
    "\\ ", "\\\t", "\u{a0}", "\u{3000}", "\u{2003}", "\u{200b}", "\u{200d}", "\u{feff}", "\u{202e}",
    "\u{2066}", "\u{2028}", "；", "｜", "＄x", "‘x’", "“x”", "\t", "  ", "-", "--", "=", "10#5", "1>", "-o", "--output=x",
    "\"\\a\"", "\"\\\\\"", "\"a\\\nb\"", "\\\\", "%", "+", "@", ",", ":", "..",
];

const JOINTS: &[&str] = &["|", "&&", "||", ";", " | ", " && ", " || ", " ; ", "\t|\t", ";  ", " &&\t"];

/// A text, and its words where they are known.
struct Text {
    text: String,
    commands: Option<Vec<Argv>>,
}

fn generate(chance: &mut Chance) -> Text {
    let noisy = chance.percent(45);
    let mut text = String::new();
    let mut commands = Vec::new();
    for number in 0..chance.weighted(&[(10, 1), (5, 2), (3, 3), (1, 5)]) {
        if number > 0 {
            text.push_str(chance.one_of::<&str>(JOINTS));
        }
        commands.push(command(&mut text, noisy, chance));
    }
    if chance.percent(5) {
        text.push_str(chance.one_of::<&str>(&[" ", "\t"]));
    }
    for _ in 0..if noisy { chance.between(1, 2) } else { 0 } {
        let offsets: Vec<usize> = text.char_indices().map(|(offset, _)| offset).chain([text.len()]).collect();
        text.insert_str(*chance.one_of(&offsets), chance.one_of::<&str>(NOISE));
    }
    Text { text, commands: (!noisy).then_some(commands) }
}

fn command(text: &mut String, noisy: bool, chance: &mut Chance) -> Argv {
    let name = match noisy && chance.percent(25) {
        true => (*chance.one_of(NAMES)).to_owned(),
        false => (*chance.one_of(&READERS)).to_owned(),
    };
    let mut argv = vec![name];
    if chance.percent(10) {
        argv = vec!["git".to_owned(), (*chance.one_of(&GIT_READERS)).to_owned()];
    }
    for _ in 0..chance.below(6) {
        argv.push(argument(chance));
    }
    for (number, word) in argv.iter().enumerate() {
        if number > 0 {
            text.push_str(chance.one_of::<&str>(&[" ", " ", " ", "  ", "\t"]));
        }
        // A noisy text sometimes has a word without quotes.
        match noisy && chance.percent(10) {
            true => text.push_str(word),
            false => write_word(word, text, chance),
        }
    }
    argv
}

fn argument(chance: &mut Chance) -> String {
    let mut word = (*chance.one_of(ARGUMENTS)).to_owned();
    if chance.percent(15) {
        word.push_str(chance.one_of::<&str>(ARGUMENTS));
    }
    word
}

/// Writes a word with quotes of every kind, so that it means itself.
fn write_word(word: &str, text: &mut String, chance: &mut Chance) {
    let plain = |c: char| {
        c.is_ascii_alphanumeric()
            || "-_./=:,+@%^".contains(c)
            || (!c.is_ascii() && !c.is_control() && !is_odd_space(c) && !is_joiner(c))
    };
    let reserved = RESERVED.contains(&word) || word.is_empty() || word.contains('=');
    if !reserved && word.chars().all(plain) && chance.percent(70) {
        return text.push_str(word);
    }
    let mut rest = word;
    if rest.is_empty() || chance.percent(10) {
        text.push_str(chance.one_of::<&str>(&["''", "\"\""]));
    }
    while !rest.is_empty() {
        let ends: Vec<usize> =
            rest.char_indices().skip(1).map(|(offset, _)| offset).chain([rest.len()]).collect();
        let (piece, left) = rest.split_at(*chance.one_of(&ends));
        write_piece(piece, text, chance);
        rest = left;
    }
}

fn write_piece(piece: &str, text: &mut String, chance: &mut Chance) {
    match chance.below(3) {
        0 if !piece.contains('\'') => text.extend(["'", piece, "'"]),
        1 if !piece.contains('\n') => piece.chars().for_each(|c| text.extend(['\\', c])),
        _ => {
            text.push('"');
            for c in piece.chars() {
                if "$`\"\\".contains(c) {
                    text.push('\\');
                }
                text.push(c);
            }
            text.push('"');
        }
    }
}

/// The words that bash reads as syntax where a command begins.
const RESERVED: &[&str] = &[
    "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
];

/// The steps that run when every command ends with this code, each with the commands of its pipeline.
fn steps_that_run(line: &CommandLine, code: u8) -> Vec<Vec<Argv>> {
    let mut steps = Vec::new();
    let mut last = 0;
    for step in &line.steps {
        let runs = match step.after {
            After::Anything => true,
            After::Success => last == 0,
            After::Failure => last != 0,
        };
        if runs {
            steps.push(step.pipeline.clone());
            last = code;
        }
    }
    steps
}

/// The script with which bash reads texts: every command is a function, or not found, and prints its arguments.
/// A text that uses a variable, a wildcard without a match or bad syntax shows itself by what is missing.
fn script(code: u8) -> String {
    let mut script = format!(
        "code={code}\nexec 3>&1 1>/dev/null\n\
         say() {{ builtin printf '%s\\0' \"${{@//$'\\n'/$'\\2'}}\" $'\\1' >&3; builtin return $code; }}\n\
         command_not_found_handle() {{ say \"$@\"; }}\nset -u; shopt -s failglob\n\
         own=$(compgen -b | while read -r name; do\n\
         case $name in builtin|printf|return|eval) ;; *) echo $name ;; esac; done)\n"
    );
    let functions = READERS.iter().chain(NAMES).chain(&["git"]);
    for name in functions.filter(|name| is_function_name(name)) {
        let _ = writeln!(script, "function {name} {{ say {name} \"$@\"; }}");
    }
    // What is not a function, but built into bash, is switched off: then it is not found.
    script.push_str("builtin enable -n $own\n");
    script
}

fn is_function_name(name: &str) -> bool {
    let c = |c: char| c.is_ascii_alphanumeric() || "-_/:.".contains(c);
    name.starts_with(|c: char| c == '/' || c.is_ascii_alphabetic())
        && name.chars().all(c)
        && !RESERVED.contains(&name)
}

/// What bash makes of texts: for each, the commands that ran, in their order.
fn read_by_bash(texts: &[&str], code: u8, directory: &Path) -> Vec<Vec<Argv>> {
    let mut bash = unprivileged("/bin/bash")
        .args(["--noprofile", "--norc"])
        .env_clear()
        .envs([("LANG", "C.UTF-8"), ("HOME", "/nowhere"), ("PATH", "/nowhere")])
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = script(code);
    for text in texts {
        let quoted = text.replace('\'', "'\\''");
        let _ = writeln!(input, "builtin eval -- '{quoted}'\nbuiltin printf '\\3\\0' >&3");
    }
    let mut pipe = bash.stdin.take().unwrap();
    let writer = std::thread::spawn(move || pipe.write_all(input.as_bytes()));
    let output = bash.wait_with_output().unwrap();
    // Bash may have ended before it read everything; then the answers tell.
    let _ = writer.join().unwrap();
    answers(&output.stdout)
}

fn answers(output: &[u8]) -> Vec<Vec<Argv>> {
    let (mut answers, mut commands, mut argv) = (Vec::new(), Vec::new(), Argv::new());
    for word in String::from_utf8_lossy(output).split_terminator('\0') {
        match word {
            "\u{1}" => commands.push(std::mem::take(&mut argv)),
            "\u{3}" => answers.push(std::mem::take(&mut commands)),
            word => argv.push(word.replace('\u{2}', "\n")),
        }
    }
    answers
}

/// A program, run as nobody where the tests are run by the super-user.
fn unprivileged(program: &str) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("/usr/bin/setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--", program]);
    command
}

/// Returns whether the order of commands is the same; within a pipeline there is none.
fn same(steps: &[Vec<Argv>], seen: &[Argv]) -> bool {
    let mut seen = seen;
    for step in steps {
        let Some((now, rest)) = seen.split_at_checked(step.len()) else { return false };
        let (mut expected, mut now) = (step.clone(), now.to_vec());
        expected.sort();
        now.sort();
        if expected != now {
            return false;
        }
        seen = rest;
    }
    seen.is_empty()
}

struct Read {
    seed: u64,
    text: String,
    line: CommandLine,
}

fn compare_with_bash(texts: &[Read], directory: &Path) {
    let plain: Vec<&str> = texts.iter().map(|read| read.text.as_str()).collect();
    for code in [0, 1] {
        let answers = read_by_bash(&plain, code, directory);
        for (number, read) in texts.iter().enumerate() {
            let expected = steps_that_run(&read.line, code);
            let seen = answers.get(number);
            assert!(
                seen.is_some_and(|seen| same(&expected, seen)),
                "seed {}: {:?} is read as {expected:?}, but bash sees {seen:?}",
                read.seed,
                read.text
            );
        }
    }
}

/// What is executed without a question are the words that were read.
async fn check_invocations(session: &Arc<ShellSession>, read: &Read) -> bool {
    if read.line.commands().any(|argv| argv[0] == "git")
        || session.policy.judge(&read.line, &session.env.root).approval != Approval::PreApproved
    {
        return false;
    }
    let considered = session.consider(&read.text).await.unwrap();
    assert_eq!(considered.judgment.approval, Approval::PreApproved, "seed {}", read.seed);
    // A program that is not installed cannot be prepared.
    if let Ok(prepared) = session.prepare(&considered) {
        let invocations = prepared.steps.iter().flat_map(|step| &step.pipeline);
        for (invocation, argv) in invocations.zip(read.line.commands()) {
            assert_eq!(invocation.arguments, argv[1..], "seed {}: {:?}", read.seed, read.text);
            let mut found = SYSTEM_DIRECTORIES.iter().map(|directory| Path::new(directory).join(&argv[0]));
            assert!(found.any(|path| path == invocation.program), "seed {}", read.seed);
        }
    }
    true
}

/// A shell that bash's own answers can be had from: as another user, if the tests run as the super-user.
fn bash_can_be_asked() -> bool {
    let answer = unprivileged("/bin/bash").args(["-c", "exit 7"]).status();
    answer.is_ok_and(|status| status.code() == Some(7))
}

#[tokio::test]
async fn every_accepted_text_has_the_commands_and_words_that_bash_sees() {
    if !bash_can_be_asked() {
        println!("skipped: there is no bash, or no way to run it without privileges");
        return;
    }
    let count: u64 = std::env::var("LLM_DO_SHELL_TEXTS").map_or(5_000, |text| text.parse().unwrap());
    let first: u64 = std::env::var("LLM_DO_SEED").map_or(0, |text| text.parse().unwrap());
    // A directory of its own: files of others below it could be secret, and reading them asks.
    let fresh = TestDir::new();
    let directory = fresh.path();
    let rules: Vec<ShellRule> =
        READERS.iter().map(|program| ShellRule::new(program, Approval::PreApproved)).collect();
    let preset = Preset { rules, only_reads: true };
    let guarded = Arc::new(Protected::default().below(directory).unwrap());
    let session =
        Arc::new(session(directory, &preset, &ShellSettings::default(), guarded, Arc::default()).unwrap());
    let (mut accepted, mut allowed) = (0_usize, 0_u64);
    let mut pending = Vec::new();
    for seed in first..first + count {
        let Text { text, commands } = generate(&mut Chance::new(seed));
        let line = match (parse(&text), commands) {
            (Ok(line), Some(commands)) => {
                assert!(line.commands().eq(&commands), "seed {seed}: {text:?} is {commands:?}, not {line:?}");
                line
            }
            (Err(refusal), Some(commands)) => {
                panic!("seed {seed}: {text:?} is {commands:?}, but refused: {refusal}")
            }
            (Ok(line), None) => line,
            (Err(_), None) => continue,
        };
        // Bash looks for a path on the disk instead of asking a function.
        if line.commands().any(|argv| argv[0].contains('/') && argv[0] != "/usr/bin/ls") {
            continue;
        }
        let read = Read { seed, text, line };
        allowed += u64::from(check_invocations(&session, &read).await);
        accepted += 1;
        pending.push(read);
        if pending.len() == 2_000 {
            compare_with_bash(&std::mem::take(&mut pending), directory);
        }
    }
    compare_with_bash(&pending, directory);
    println!("{count} texts, {accepted} accepted and read alike by bash, {allowed} of them pre-approved");
    assert!(
        accepted as u64 * 10 > count * 3,
        "only {accepted} of {count} were accepted: the test shows little"
    );
}
