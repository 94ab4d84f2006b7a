//! The tour shows what the README says it shows.

use std::process::{Command, Output, Stdio};

fn tour(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tour")).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// The printed tree without what differs between runs.
fn tree(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    let tree = text
        .lines()
        .filter(|line| line.contains("agent ") || line.contains("tool "))
        .filter(|line| line.ends_with(" ms"));
    tree.map(|line| line.rsplit_once("  ").unwrap().0.to_owned()).collect()
}

#[test]
fn everything_is_shown_and_only_the_answer_goes_to_stdout() {
    let output = tour(&["--approve", "all"]);
    assert!(output.status.success(), "{output:?}");
    let answer = "I looked at the inbox, had the names checked, and asked before renaming.\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), answer);
    let tree = tree(&output);
    assert_eq!(tree.len(), 6, "{tree:#?}");
    assert!(tree[0].starts_with("agent main ") && tree[0].contains("[7 requests, "), "{}", tree[0]);
    assert!(tree[1].starts_with("├─ tool propose_names "), "{}", tree[1]);
    assert!(tree[2].starts_with("│  ├─ agent namer "), "{}", tree[2]);
    assert!(tree[3].starts_with("│  └─ agent namer "), "{}", tree[3]);
    assert!(tree[4].starts_with("├─ agent critic "), "{}", tree[4]);
    assert!(tree[5].starts_with("└─ tool rename_files ") && tree[5].contains("renamed 2"), "{}", tree[5]);
}

#[test]
fn without_a_terminal_the_gated_tool_is_denied_and_the_exit_code_says_so() {
    let output = tour(&[]);
    assert_eq!(output.status.code(), Some(5));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("`rename_files` must ask, and there is nobody to ask"), "{text}");
    assert!(text.contains("hint: nobody could be asked"), "{text}");
}

#[test]
fn the_flag_can_reject_everything_that_must_ask() {
    let output = tour(&["--approve", "none"]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("this run rejects everything that must ask"));
}

#[test]
fn a_wrong_flag_is_named() {
    let output = tour(&["--aprove", "all"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`--aprove` is not understood here"));
}
