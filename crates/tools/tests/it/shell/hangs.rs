//! Programs that do not end, or leave others behind: each call ends in time, and nothing survives it.
//!
//! `LLM_DO_SHELL_HANGS` says how many calls are made.

use std::fs;
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt};
use llm_do_core::FailureKind;
use llm_do_testing::{Chance, TestCall};
use serde_json::json;

use crate::shell::support::{Folder, number, trusting};

/// Ways to stay, as scripts. `$0` is the script and `$1` a word by which processes are found afterwards;
/// `leaf` does nothing for a long time, with that word among its arguments.
#[rustfmt::skip]
const STUBBORN: &[(&str, &str)] = &[
    ("hangs", "leaf"),
    ("is busy", "while :; do :; done"),
    ("ignores signals", "trap '' TERM INT HUP QUIT; leaf & while :; do wait; sleep 1; done"),
    ("stops itself", "leaf & kill -STOP $$"),
    ("stops its children", "leaf & kill -STOP $!; leaf & kill -STOP $!; leaf"),
    ("forks", "for i in 1 2 3 4 5; do leaf & done; wait"),
    ("forks twice", "(leaf & leaf &) ; ( (leaf &) & ); leaf"),
    ("leads sessions", "setsid bash -c \"$stay\" x $1 & (setsid setsid bash -c \"$stay\" x $1 &); leaf"),
    ("clears the environment", "env -i setsid bash -c \"$stay\" x $1 & (env -i setsid bash -c \"$stay\" x $1 &); leaf"),
    ("clears it and stops", "env -i setsid bash -c \"kill -STOP \\$\\$; $stay\" x $1 & (env -i setsid bash -c \"$stay\" x $1 & ); leaf"),
    ("clears it, and its parents die", "(env -i setsid bash -c \"(setsid bash -c '$stay' x $1 &)\" x $1 &); leaf"),
    ("closes its files", "setsid bash -c \"$stay\" x $1 <&- >&- 2>&- & (env -i setsid bash -c \"$stay\" x $1 <&- >&- 2>&- &); leaf"),
    ("leaves the directory", "(cd / && env -i setsid bash -c \"$stay\" x $1 &); leaf"),
    ("prints without end", "leaf & while :; do echo y; done"),
    ("starts pipelines", "leaf | leaf | setsid bash -c \"$stay\" x $1"),
    ("multiplies", "f() { for i in 1 2 3; do leaf & done; }; f & f & f & wait; leaf"),
    ("runs away", "export stay; (setsid bash -c 'hop() { (sleep 0.01; setsid bash \"$0\" hop $1 &) }; setsid bash -c \"$stay\" x $1' \"$0\" $1 &); leaf"),
    ("hops from process to process", "cat > hop-$1 <<'E'\nsleep 0.005\nsetsid bash hop-$1 $1 &\nE\nsed -i \"s/\\$1/$1/g\" hop-$1; env -i PATH=$PATH setsid bash hop-$1 $1 & leaf"),
];

/// Ways to leave something behind and end well.
#[rustfmt::skip]
const LEAVING: &[(&str, &str)] = &[
    ("leaves a child", "leaf & sleep 0.1"),
    ("leaves a session", "setsid bash -c \"$stay\" x $1 & sleep 0.1"),
    ("leaves one without environment", "env -i setsid bash -c \"$stay\" x $1 >/dev/null 2>&1 & sleep 0.1"),
    ("leaves one that holds its output", "(env -i setsid bash -c \"$stay\" x $1 &); sleep 0.1"),
];

const PRELUDE: &str =
    "stay='while :; do /bin/sleep 100; done'\nleaf() { bash -c \"$stay\" x \"$mark\"; }\nmark=$1\n";

/// The processes that have a word among their arguments, seen from outside.
fn processes_with(word: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let commands = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let commands = commands.map(|command| String::from_utf8_lossy(&command).replace('\0', " "));
    commands.filter(|command| command.contains(word)).collect()
}

async fn assert_none_left(word: &str, name: &str) {
    // A killed process needs a moment to vanish from the list.
    for _ in 0..50 {
        if processes_with(word).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{name}: {:?} are left", processes_with(word));
}

/// Runs one script to its time limit of a second, and returns how long it took beyond that.
async fn hang(folder: &Folder, case: u64) -> Duration {
    let chance = &mut Chance::new(case);
    let (name, script) = STUBBORN[usize::try_from(case).unwrap() % STUBBORN.len()];
    let mark = format!("hang-{}-{case}-{:x}", std::process::id(), chance.bits());
    folder.file(&format!("script-{case}"), &format!("{PRELUDE}{script}\nleaf\n"));
    let tool = trusting(&folder.root(), &["bash"], |_| ()).await;
    let start = Instant::now();
    let input = json!({"command": format!("bash script-{case} {mark}"), "timeout": 1});
    let reply = TestCall::new().run(tool, input).await;
    let took = start.elapsed();
    let failure = reply.reply().clone().expect_err(name).into_failure();
    assert_eq!(failure.kind, FailureKind::TimedOut, "{name}");
    assert!(took < Duration::from_secs(2), "{name}: {took:?}");
    assert_none_left(&mark, name).await;
    took.saturating_sub(Duration::from_secs(1))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stubborn_programs_end_in_time_with_all_that_they_started() {
    let cases = number("LLM_DO_SHELL_HANGS", STUBBORN.len() as u64);
    let folder = Folder::new();
    let late: Vec<Duration> =
        stream::iter(0..cases).map(|case| hang(&folder, case)).buffer_unordered(4).collect().await;
    println!("{cases} calls ended at most {:?} after their limit", late.iter().max().unwrap());
}

#[tokio::test]
async fn what_programs_leave_behind_ends_with_them() {
    let folder = Folder::new();
    let tool = trusting(&folder.root(), &["bash"], |_| ()).await;
    for (case, (name, script)) in LEAVING.iter().enumerate() {
        let mark = format!("leaving-{}-{case}", std::process::id());
        folder.file("script", &format!("{PRELUDE}{script}\n"));
        let start = Instant::now();
        let input = json!({"command": format!("bash script {mark}"), "timeout": 10});
        let reply = TestCall::new().run(tool.clone(), input).await;
        assert_eq!(reply.reply().as_ref().expect(name).to_value()["exit_code"], 0, "{name}");
        assert!(start.elapsed() < Duration::from_secs(5), "{name}: {:?}", start.elapsed());
        assert_none_left(&mark, name).await;
    }
}
