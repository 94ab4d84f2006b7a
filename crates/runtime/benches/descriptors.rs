//! What a text of 200 MB costs as a descriptor: storing it once, and then reading any page, line or character.
//!
//! On a machine that is busy with other things, the longest time of the processor (`cpu`) says more than that which passed.
//!
//! `cargo bench -p llm-do-runtime --bench descriptors`. Without `--bench` a small text shows that it works.

#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up must stop")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use llm_do_runtime::{ContentStore, DescriptorSettings, Descriptors, Fd, FdId, FdSource, Selection};
use llm_do_testing::Chance;
use rustix::time::{ClockId, clock_gettime};

const MEGABYTE: usize = 1024 * 1024;

fn main() {
    let is_bench = std::env::args().any(|word| word == "--bench");
    let (size, reads) = if is_bench { (200 * MEGABYTE, 2000) } else { (MEGABYTE, 20) };
    println!("a text of {} MB, {reads} reads at random places, in microseconds", size / MEGABYTE);
    println!("{:34} {:>9} {:>9} {:>9} {:>9} {:>9}", "", "store ms", "median", "99%", "longest", "cpu");
    let line = "twenty characters..\n";
    for (title, text) in [
        ("one line", "x".repeat(size)),
        ("lines of 20", line.repeat(size / 20)),
        ("漢 alone", "漢".repeat(size / 3)),
    ] {
        let started = Instant::now();
        let table = Descriptors::new(DescriptorSettings::default(), ContentStore::default());
        table.add(FdId::from("fd:1.0"), &text, FdSource::ToolResult).expect("a descriptor");
        let stored = started.elapsed();
        let fd = table.get("fd:1.0").expect("a descriptor");
        for (mode, selection, count) in [
            ("pages", Selection::Page, 1),
            ("80 lines", Selection::Line, 80),
            ("4000 characters", Selection::Char, 4000),
        ] {
            // All of a single line is all of the text.
            if fd.info.lines > 1 || selection != Selection::Line {
                report(&format!("{title}, {mode}"), stored, times(&fd, selection, count, reads));
            }
        }
    }
}

/// Returns the times that passed, the shortest first, and the longest time of the processor.
fn times(fd: &Fd, selection: Selection, count: u64, reads: usize) -> (Vec<Duration>, Duration) {
    let total = match selection {
        Selection::Page => fd.info.pages,
        Selection::Line => fd.info.lines,
        Selection::Char | Selection::All => fd.info.chars,
    };
    let (mut chance, mut longest) = (Chance::new(1), Duration::ZERO);
    let mut read = |_| {
        let start = 1 + chance.below(total as usize) as u64;
        let (started, before) = (Instant::now(), cpu_time());
        black_box(fd.read(selection, start, count).expect("a part"));
        let passed = started.elapsed();
        longest = longest.max(cpu_time() - before);
        passed
    };
    let mut times: Vec<Duration> = (0..reads).map(&mut read).collect();
    times.sort();
    (times, longest)
}

/// The time that this thread had a processor.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("a time")
}

fn report(title: &str, stored: Duration, (times, cpu): (Vec<Duration>, Duration)) {
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let at = |share: usize| micros(times[(times.len() - 1) * share / 100]);
    let (stored, cpu) = (stored.as_secs_f64() * 1e3, micros(cpu));
    println!("{title:34} {stored:9.0} {:9.1} {:9.1} {:9.1} {cpu:9.1}", at(50), at(99), at(100));
}
