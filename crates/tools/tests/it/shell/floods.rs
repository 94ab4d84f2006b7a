//! Output without measure: it is cut with a mark that tells its true size, and memory stays small.
//!
//! `LLM_DO_SHELL_FLOODS` says how many floods of a gigabyte are read; without it there are smaller ones.

use std::fs;

use llm_do_testing::own_process;
use serde_json::json;

use crate::shell::support::{Folder, number, output, trusting};

/// What is printed, as a pipeline that ends after so many bytes.
const KINDS: [(&str, &str); 5] = [
    ("lines", "yes | head -c SIZE"),
    ("one line", "yes | tr -d '\\n' | head -c SIZE"),
    ("zeros", "yes | tr 'y\\n' '\\000\\000' | head -c SIZE"),
    ("no text", "yes | tr 'y\\n' '\\377\\300' | head -c SIZE"),
    ("characters cut in two", "yes '\u{1f680}' | tr -d '\\n' | head -c SIZE"),
];

const MAX_ITEMS: u64 = 64 * 1024;

fn kilobytes(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn floods_are_cut_with_their_true_size_in_little_memory() {
    own_process!();
    let folder = Folder::new();
    let tool = trusting(&folder.root(), &["yes", "head", "tr"], |settings| {
        settings.timeout = 600;
        settings.environment.insert("LC_ALL".into(), "C".into());
    })
    .await;
    output(&tool, "yes | head -c 200000").await;
    let gigabytes = std::env::var_os("LLM_DO_SHELL_FLOODS").is_some();
    let (runs, size) =
        (number("LLM_DO_SHELL_FLOODS", 5), if gigabytes { 1_000_000_001 } else { 100_000_001 });
    let before = kilobytes("VmHWM");
    for run in 0..runs {
        let (name, pipeline) = KINDS[usize::try_from(run).unwrap() % KINDS.len()];
        let printed = output(&tool, &pipeline.replace("SIZE", &size.to_string())).await;
        assert_eq!((&printed["truncated"], &printed["stdout_bytes"]), (&json!(true), &json!(size)), "{name}");
        let mark = format!("[... {} of {size} bytes left out ...]", size - MAX_ITEMS);
        assert!(printed["stdout"].as_str().unwrap().contains(&mark), "{name}");
    }
    println!("{runs} floods of {size} bytes, memory grew by {} kB", kilobytes("VmHWM") - before);
    assert!(kilobytes("VmHWM") <= before + 32 * 1024);
}
