//! What frames cost. Figures are printed by a release build:
//! `cargo test --release -p llm-do-tui frames -- --ignored --nocapture --test-threads 1`.

#![expect(clippy::print_stdout, reason = "figures are printed")]

use std::io;
use std::time::Duration;

use llm_do_core::Limits;
use ratatui::buffer::Buffer;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use super::driver::{Driver, options};
use super::events::{Who, result_of, text, used, wants};
use crate::UiOptions;
use crate::question::focus::Arrival;
use crate::terminal::inline::Inline;
use crate::test_support::keys;

const MODEL: &str = "anthropic:sonnet";
const FRAMES: usize = 2_000;
/// The most that a frame may take but for one in a hundred.
const FRAME_LIMIT: Duration = Duration::from_millis(8);
/// A key of the person and its frame fit between two pictures of a usual screen.
const KEY_LIMIT: Duration = Duration::from_millis(16);

const PROSE: &str = "The harbour has **three** berths left, and the *Gull* needs one of them until July.\n\n- north, 14 m\n- \
                     south, 9 m and `shallow`\n\n";
const CODE: &str = "    let berth = harbour.berth(Length::metres(14)).expect(\"a berth\"); // until July\n";

fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

/// A UI with a terminal that keeps nothing.
struct TestScreen {
    driver: Driver,
    inline: Inline,
    /// What the whole screen showed last.
    shown: Buffer,
}

impl TestScreen {
    fn new() -> Self {
        let driver = Driver::new(UiOptions { chat: false, awaits_input: false, ..options() }, (120, 40));
        Self { driver, inline: Inline::default(), shown: Buffer::default() }
    }

    /// Draws and paints a frame; returns what it took.
    fn frame(&mut self) -> Duration {
        let before = cpu_time();
        if self.driver.app.is_in_tree() {
            let (buffer, _) = self.driver.frame();
            if buffer.area == self.shown.area {
                std::hint::black_box(self.shown.diff(&buffer).len());
            }
            self.shown = buffer;
        } else {
            self.driver.app.tick(self.driver.now());
            let (finished, live, cursor) = self.driver.app.draw(self.driver.size(), self.driver.now());
            self.inline.paint(&mut io::sink(), &finished, &live, cursor).unwrap();
        }
        self.driver.pass(33);
        cpu_time() - before
    }

    /// Ten thousand events of an agent that asks for one tool after the other.
    fn live_through_much(&mut self) -> Who {
        let main = self.driver.begins("main", Limits::default());
        let read = json!({"path": "notes/plan.md", "limit": 200});
        for turn in 0..1_250 {
            let result = result_of("read_file", &"a line of the plan\n".repeat(10), false);
            self.driver.asks_model(&main, MODEL, vec![result]);
            PROSE.split_inclusive("berths").for_each(|piece| self.driver.says(&main, piece));
            self.driver.says(&main, CODE);
            let said = text(&format!("{PROSE}{CODE}"));
            self.driver.answers(&main, MODEL, vec![said, wants("read_file", &read)], used(1_000, 100));
            let call = self.driver.calls_tool(&main, "read_file", read.clone());
            self.driver.logs(&call, "read it");
            self.driver.returns(&call, "# Plan\n- sail\n");
            if turn % 10 == 0 {
                self.frame();
            }
        }
        self.driver.asks_model(&main, MODEL, vec![text("and now?")]);
        main
    }
}

fn report(what: &str, limit: Duration, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    println!("{what}: p50 {:?}, p99 {:?}, most {:?}", at(50), at(99), at(100));
    assert!(at(99) < limit, "{what} took {:?}", at(99));
}

#[test]
#[ignore = "prints figures of a release build"]
fn frames_after_ten_thousand_events() {
    let mut screen = TestScreen::new();
    let main = screen.live_through_much();
    let live = (0..FRAMES).map(|number| {
        screen.driver.says(&main, if number % 20 == 19 { PROSE } else { "and so on, " });
        screen.frame()
    });
    report("live rows, with a delta before each frame", FRAME_LIMIT, live.collect());
    screen.driver.press("<C-t>");
    report("tree", FRAME_LIMIT, (0..FRAMES).map(|_| screen.frame()).collect());
    let changing = (0..FRAMES).map(|_| {
        let call = screen.driver.calls_tool(&main, "read_file", json!({}));
        screen.driver.returns(&call, "done");
        screen.frame()
    });
    report("tree, with a call before each frame", FRAME_LIMIT, changing.collect());
    let talking = (0..FRAMES).map(|_| {
        screen.driver.asks_model(&main, MODEL, vec![text("and then?")]);
        screen.driver.answers(&main, MODEL, vec![text(PROSE)], used(10, 10));
        screen.frame()
    });
    report("tree, with a message before each frame", FRAME_LIMIT, talking.collect());
}

/// The share of a core that ten seconds of a stream take.
fn streaming(what: &str, piece: impl Fn(usize) -> &'static str) {
    const SECONDS: usize = 10;
    let mut screen = TestScreen::new();
    let main = screen.driver.begins("main", Limits::default());
    screen.driver.asks_model(&main, MODEL, vec![text("go")]);
    let before = cpu_time();
    for delta in 0..SECONDS * 2_000 {
        screen.driver.says(&main, piece(delta));
        if delta % 66 == 0 {
            screen.frame();
        }
    }
    let share = (cpu_time() - before).as_secs_f64() / 10.0;
    println!("{what}: {:.1} % of a core", share * 100.0);
    assert!(share <= 0.3, "{what} takes {share}");
}

#[test]
#[ignore = "prints figures of a release build"]
fn two_thousand_deltas_per_second() {
    let words: Vec<&'static str> = PROSE.split_inclusive(' ').collect();
    streaming("a stream of paragraphs and lists", |delta| words[delta % words.len()]);
    let words: Vec<&'static str> = CODE.split_inclusive(' ').collect();
    streaming("a stream of one block of code", |delta| {
        if delta == 0 { "```rust\n" } else { words[delta % words.len()] }
    });
    streaming("a stream of one paragraph", |_| "word ");
}

#[test]
#[ignore = "prints figures of a release build"]
fn frames_while_nothing_changes() {
    const SECONDS: usize = 60;
    let mut screen = TestScreen::new();
    let main = screen.live_through_much();
    screen.driver.says(&main, PROSE);
    for (what, keys) in [("silent run", ""), ("silent run in the tree", "<C-t>")] {
        screen.driver.press(keys);
        screen.frame();
        let before = cpu_time();
        // In silence a frame is due whenever the spinner turns.
        for _ in 0..SECONDS * 10 {
            screen.frame();
        }
        let share = (cpu_time() - before).as_secs_f64() / 60.0;
        println!("{what}: {:.2} % of a core", share * 100.0);
        assert!(share < 0.01, "{what} takes {share}");
    }
}

#[test]
#[ignore = "prints figures of a release build"]
fn keys_in_a_draft_of_ten_thousand_lines() {
    let mut driver = Driver::chat();
    driver.paste(&["a line of a draft with some words in it, and with ä and 漢"; 10_000].join("\n"));
    let mut test_support = keys("x<Backspace><Up><Left><S-Enter><Down>").into_iter().cycle();
    let times = (0..FRAMES).map(|_| {
        let before = cpu_time();
        driver.app.key(test_support.next().unwrap(), Arrival::Alone, driver.now());
        driver.frame();
        cpu_time() - before
    });
    report("a key in a draft of ten thousand lines", KEY_LIMIT, times.collect());
}

#[test]
#[ignore = "prints figures of a release build"]
fn frames_while_one_huge_block_goes_on() {
    const HUGE: usize = 1_000_000;
    let code: String = (0..10_000).map(|number| format!("let berth_{number} = {number};\n")).collect();
    let items: String = (0..10_000).map(|number| format!("- berth {number} is *free*\n")).collect();
    let nested: String = (0..10_000).map(|number| format!("  - berth {number} is *free*\n")).collect();
    let rows: String = (0..10_000).map(|number| format!("| berth {number} | *free* |\n")).collect();
    for (what, begun, more) in [
        ("a line of 1 MB", "word ".repeat(HUGE / 5), "and so on, "),
        ("code of 10,000 lines", format!("```rust\n{code}"), "let a = 1;\n"),
        ("a list of 10,000 items", items, "- one *more*\n"),
        ("a line of code of 1 MB", format!("```\n{}", "word ".repeat(HUGE / 5)), "and so on, "),
        ("an item with a list of 10,000 items", format!("- berths\n{nested}"), "  - one *more*\n"),
        ("a table of 10,000 rows", format!("| berth | state |\n|---|---|\n{rows}"), "| one | more |\n"),
        ("a quote of 10,000 lines", "> one line\n>\n".repeat(5_000), "> one line\n>\n"),
    ] {
        let mut screen = TestScreen::new();
        let main = screen.driver.begins("main", Limits::default());
        screen.driver.asks_model(&main, MODEL, vec![text("go")]);
        screen.driver.says(&main, &begun);
        println!("{what}, at once: {:?}", screen.frame());
        let frames = (0..100).map(|_| {
            screen.driver.says(&main, more);
            screen.frame()
        });
        let mut times: Vec<Duration> = frames.collect();
        times.sort();
        println!("{what}: p50 {:?}, most {:?}", times[50], times[99]);
    }
}

#[test]
#[ignore = "prints figures of a release build"]
fn the_first_code_of_a_language() {
    let code =
        "// one\n# two\nfn main(x: i32) { return \"three\" + 'd' }\n<a href=\"e\">&amp;</a>\nkey: [1, 2.5]\n";
    // The grammars are read in the background when the UI begins, so the first block is not counted.
    for language in "json rust python js ts bash html css sql cpp java go yaml toml markdown diff".split(' ')
    {
        let mut screen = TestScreen::new();
        let main = screen.driver.begins("main", Limits::default());
        screen.driver.asks_model(&main, MODEL, vec![text("go")]);
        let mut times = Vec::new();
        for line in [&format!("```{language}\n"), code, code] {
            screen.driver.says(&main, line);
            times.push(screen.frame());
        }
        println!("{language}: {:?} for the first lines, {:?} for the next", times[1], times[2]);
    }
}
