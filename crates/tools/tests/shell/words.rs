//! The words that are executed are those that bash would see.

use std::io::Write;
use std::process::{Command, Stdio};

use llm_do_core::Subject;
use llm_do_testing::Chance;

use crate::support::{Folder, assess, open};

const PIECES: &[&str] = &[
    "a", "b1", "-x", "--out", "=", "'a b'", "\"a b\"", "''", "\"\"", "\\ ", "\\\\", "\\'", "\\\"", "'\"'",
    "\"'\"", "\\$x", "'$x'", "\"\\$x\"", "\"\\a\"", "\"$\"", "$", "\"a$ b\"", "{", "}", "{}", "@{1}", ",",
    ".", "..", "{a", ",b}", "~", "~1", "#", "\\#", "!", "^", "%", "+", ":", "/", "é", "世🚀", "\u{a0}",
    "\u{200b}", "[", "]", "'['", "\\*", "*", "?", "'*'", "\\;", "';'", "\\&", "'|'", "\\(", "')'", "0",
    "10#5", "x=y", "in", "fi", "\\\t", "'\t'", "'\n'", "-", "$y", "`", "\"`\"", "\"\\`\"", "\"\\\\\"", "\\~",
    "'~'", "=~", ":~",
];

const GLUE: &[&str] = &["", "", "", " ", " ", " ", "  ", "\t"];
const OPERATORS: &[&str] =
    &["|", "&&", "||", ";", " | ", " && ", " || ", " ; ", "&", "\n", " > ", "<", " 2>", ";;", "(", ")"];

fn generate(chance: &mut Chance) -> String {
    let mut text = String::from("p ");
    for _ in 0..=chance.below(8) {
        text.push_str(chance.one_of::<&str>(PIECES));
        text.push_str(chance.one_of::<&str>(GLUE));
        if chance.below(12) == 0 {
            text.push_str(chance.one_of::<&str>(OPERATORS));
            text.push_str("p ");
        }
    }
    text
}

/// What bash makes of the commands: a function `p` prints its words instead of running anything.
fn bash_words(text: &str) -> Option<Vec<Vec<String>>> {
    // Bash writes at each newline: without one, a command writes once, and the parts of a pipeline do not mix.
    let script = format!("p() {{ printf '%s\\0' \"${{@//$'\\n'/$'\\2'}}\" $'\\1' >&3; }}\n{text}\n");
    let mut bash = Command::new("bash")
        .args(["--noprofile", "--norc", "-c", "exec 3>&1 1>/dev/null; . /dev/stdin"])
        .env_clear()
        .env("LANG", "C.UTF-8")
        .env("HOME", "/nowhere")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = bash.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).ok()?;
    let mut commands = Vec::new();
    let mut words = Vec::new();
    for word in text.split_terminator('\0') {
        match word {
            "\u{1}" => commands.push(std::mem::take(&mut words)),
            word => words.push(word.replace('\u{2}', "\n")),
        }
    }
    Some(commands)
}

fn accepted_by_bash(text: &str) -> bool {
    let status = Command::new("bash").args(["-n", "-c", text]).stderr(Stdio::null()).status().unwrap();
    status.success()
}

#[tokio::test]
async fn what_is_accepted_has_the_words_that_bash_would_see() {
    let cases: u64 = std::env::var("LLM_DO_SHELL_CASES").map_or(2_000, |text| text.parse().unwrap());
    let folder = Folder::new();
    let settings = serde_json::json!({"default": "ask"});
    let shell =
        llm_do_tools::Shell::new("shell", folder.root(), serde_json::from_value(settings).unwrap()).unwrap();
    let tool = open(&shell, &serde_json::Value::Null).await.unwrap();
    let mut accepted = 0_u64;
    for seed in 0..cases {
        let text = generate(&mut Chance::new(seed));
        let subjects = assess(&tool, &text).await.subjects;
        if subjects.is_empty() {
            continue;
        }
        accepted += 1;
        assert!(accepted_by_bash(&text), "seed {seed}: bash cannot read {text:?}");
        let mut own: Vec<Vec<String>> = subjects
            .into_iter()
            .map(|subject| match subject {
                Subject::Command(words) => words[1..].to_vec(),
                Subject::Path(path) => panic!("a path: {path}"),
            })
            .collect();
        let mut seen = bash_words(&text).unwrap();
        // Parts behind `||` do not run and parts of a pipeline run in any order: what runs is compared.
        let complete = !text.contains("||") && !text.contains("&&");
        own.sort();
        seen.sort();
        if complete {
            assert_eq!(own, seen, "seed {seed}: {text:?}");
        } else {
            assert!(
                !seen.is_empty() && seen.iter().all(|words| own.contains(words)),
                "seed {seed}: {text:?} {own:?} {seen:?}"
            );
        }
    }
    println!("{cases} commands, {accepted} accepted and compared with bash");
    assert!(accepted * 10 > cases, "only {accepted} of {cases} were accepted: the generator tests nothing");
}
