//! The transcript and the live rows of a run.

use insta::assert_snapshot;
use llm_do_core::{ContextUse, FailureKind, Limits, Money, Status, Usage};
use serde_json::json;

use super::driver::{Driver, on_three_screens, options};
use super::events::{Who, text, thought, used};
use crate::UiOptions;

const MODEL: &str = "anthropic:sonnet";

const ANSWER: &str = "\
# The harbour

There are **three** berths left; see the `plan.md` that stands in [the notes](https://example.org/notes).

- the *Gull*, 12 m, leaves on Monday and comes back when the weather allows it
- the Heron
  1. needs paint
  2. needs a *skipper*

| berth | length | price per night |
| --- | ---: | --- |
| north | 14 | 30 € for members, 45 € for everybody else |
| south | 9 | 20 € |

```rust
fn main() { println!(\"ahoy\"); }
```

And while this paragraph is being written, it still";

fn single() -> UiOptions {
    UiOptions { chat: false, awaits_input: false, ..options() }
}

fn at_length() -> UiOptions {
    UiOptions { unfolded: true, ..single() }
}

/// An agent that has been asked.
fn asked(driver: &mut Driver) -> Who {
    let main = driver.begins("main", Limits::default());
    driver.asks_model(&main, MODEL, vec![text("What is new in the harbour?")]);
    main
}

#[test]
fn an_answer_is_drawn_while_it_is_written() {
    assert_snapshot!(on_three_screens(&single(), |driver| {
        let main = asked(driver);
        for piece in
            ANSWER.as_bytes().chunks(7).map(String::from_utf8_lossy).collect::<String>().split_inclusive(' ')
        {
            driver.says(&main, piece);
        }
        driver.wait(3_200);
        driver.all()
    }));
}

#[test]
fn an_agent_that_has_said_nothing_yet_has_a_row() {
    assert_snapshot!(on_three_screens(&single(), |driver| {
        asked(driver);
        driver.wait(1_000);
        driver.all()
    }));
}

#[test]
fn parallel_agents_have_a_row_each_with_their_last_words() {
    assert_snapshot!(on_three_screens(&single(), |driver| {
        let main = asked(driver);
        driver.answers(&main, MODEL, vec![text("I ask two of them.")], used(900, 30));
        let writer =
            driver.calls_agent(&main, "writer", "Write two lines about the harbour, in the voice of a gull");
        let critic = driver.calls_agent(&main, "critic", "Read what the writer wrote\nand be kind");
        driver.asks_model(&writer, MODEL, vec![text("Write")]);
        driver.asks_model(&critic, "openai:gpt-5", vec![text("Read")]);
        driver.says(&writer, "Ships come and go, and nobody but me counts them, as I have since the ");
        driver.says(&writer, "lamps were lit");
        driver.thinks(&critic, "Kindness first.\n\nThen the metre");
        let reader = driver.calls_agent(&critic, "reader", "aloud");
        driver.asks_model(&reader, MODEL, vec![text("aloud")]);
        let tool = driver.calls_tool(&reader, "read_file", json!({"path": "notes/plan.md"}));
        let _ = tool;
        driver.wait(65_000);
        driver.all()
    }));
}

#[test]
fn more_calls_than_fit_are_counted() {
    assert_snapshot!(on_three_screens(&single(), |driver| {
        let main = asked(driver);
        for number in 1..=20 {
            driver.calls_agent(&main, &format!("helper_{number}"), "help");
        }
        driver.wait(1_000);
        driver.screen()
    }));
}

/// Words of a second agent, its calls that fail in all ways, and its answer.
fn eventful(driver: &mut Driver) -> Who {
    let main = asked(driver);
    driver.thinks(&main, "The person wants to know what is new. ");
    driver.frame();
    let thoughts = "The person wants to know what is new. I had better look into the notes, as the list is old.\n\nThen \
                    the berths.";
    driver.answers(&main, MODEL, vec![thought(thoughts), text("I look.")], used(1_000, 60));
    let read = driver.calls_tool(&main, "read_file", json!({"path": "notes/plan.md", "limit": 200}));
    driver.returns(&read, "# Plan\n- rent a boat\n- sail\n");
    let list = driver.calls_tool(&main, "list_files", json!({}));
    driver.returns(&list, "");
    let write = driver.calls_tool(&main, "write_file", json!({"path": "notes/plan.md", "content": "x"}));
    driver.requests(&write, &super::requests::write());
    driver.is_allowed(&write, json!({"path": "notes/plan.md", "content": "x"}));
    driver.returns(&write, "wrote 1 byte");
    let fetch = driver.calls_tool(
        &main,
        "fetch",
        json!({"url": "https://example.org/a/very/long/path/that/goes/on"}),
    );
    driver.logs(&fetch, "warning: certificate of example.org\texpires tomorrow\nretrying");
    driver.fails(&fetch, FailureKind::Tool, "connection refused by 192.0.2.1 after 3 attempts\nsecond line");
    let shell = driver.calls_tool(&main, "run_command", json!({"command": "rm -rf build"}));
    driver.fails(&shell, FailureKind::Denied, "denied: keep the build directory");
    let writer = driver.calls_agent(&main, "writer", "Write two lines about the harbour");
    driver.notices(&writer, "the price of `local:llama` is unknown; budgets of cost do not count it");
    driver.answers(&writer, MODEL, vec![text("Ships come.\n\nShips go.")], used(300, 20));
    let sub = driver.calls_tool(&writer, "count_words", json!({"text": "Ships come. Ships go."}));
    driver.returns(&sub, "4");
    driver.agent_returns(&writer, "Ships come.\n\nShips go.", used(300, 20));
    main
}

#[test]
fn calls_and_thoughts_are_folded_to_a_line() {
    assert_snapshot!(on_three_screens(&single(), |driver| {
        eventful(driver);
        driver.wait(1_000);
        driver.all()
    }));
}

#[test]
fn calls_and_thoughts_are_shown_at_length() {
    assert_snapshot!(on_three_screens(&at_length(), |driver| {
        let main = eventful(driver);
        let long =
            driver.calls_tool(&main, "search_files", json!({"pattern": "boat", "paths": ["notes", "log"]}));
        let lines: Vec<String> = (1..40).map(|number| format!("notes/{number}.md:1: a boat")).collect();
        driver.returns(&long, &lines.join("\n"));
        driver.wait(1_000);
        driver.all()
    }));
}

#[test]
fn thoughts_are_seen_while_they_come() {
    assert_snapshot!(on_three_screens(&single(), |driver| {
        let main = asked(driver);
        for piece in "I wonder whether the harbour has changed at all since the last time that anybody asked me about it. \
                      It may well have. Boats come and go. So do people, and the sea itself is never twice the same, \
                      as somebody said about a river."
            .split_inclusive(' ')
        {
            driver.thinks(&main, piece);
        }
        driver.wait(2_000);
        driver.all()
    }));
}

#[test]
fn the_status_line_says_what_is_left_of_the_budgets() {
    assert_snapshot!(on_three_screens(&single(), |driver| {
        let limits = Limits {
            cost: Some(Money::from_dollars(0.5)),
            tokens: Some(100_000),
            tool_calls: Some(20),
            ..Limits::default()
        };
        let main = driver.begins("main", limits);
        driver.answers(&main, MODEL, vec![text("I look.")], used(12_345, 400));
        driver.calls_tool(&main, "look", json!({}));
        driver.wait(125_000);
        driver.screen()
    }));
}

#[test]
fn the_limits_of_a_later_turn_are_said_to_be_its_own() {
    let limits = Limits { cost: Some(Money::from_dollars(0.5)), tool_calls: Some(2), ..Limits::default() };
    let mut driver = Driver::new(options(), (100, 20));
    let main = driver.begins("main", limits.clone());
    driver.answers(&main, MODEL, vec![text("One.")], used(12_345, 400));
    assert!(driver.screen().contains("$0.4570 left · 2 calls left"), "{}", driver.screen());
    driver.agent_returns(&main, "One.", used(12_345, 400));
    driver.ends(&main, Status::Done, Some("One."), None);
    let main = driver.begins("main", limits);
    driver.calls_tool(&main, "look", json!({}));
    assert!(driver.screen().contains("$0.5000 left for this turn · 1 call left"), "{}", driver.screen());
}

#[test]
fn a_run_ends_with_what_it_used() {
    assert_snapshot!(on_three_screens(&single(), |driver| {
        let main = asked(driver);
        driver.says(&main, "Nothing is new.");
        driver.answers(&main, MODEL, vec![text("Nothing is new.")], used(12_000, 800));
        driver.agent_returns(&main, "Nothing is new.", used(12_000, 800));
        driver.ends(&main, Status::Done, Some("Nothing is new."), None);
        driver.all()
    }));
}

#[test]
fn a_run_that_fails_says_why() {
    assert_snapshot!(on_three_screens(&single(), |driver| {
        let main = asked(driver);
        driver.says(&main, "One paragraph.\n\nHalf of ano");
        driver.frame();
        let error = "the provider `anthropic` refused the key (401)\nhint: set ANTHROPIC_API_KEY to a key that is valid";
        driver.ends(&main, Status::Provider, None, Some(error));
        driver.all()
    }));
}

#[test]
fn an_interrupted_run_leaves_what_was_said() {
    assert_snapshot!(on_three_screens(&options(), |driver| {
        driver.press("What is new?<Enter>");
        let main = asked(driver);
        driver.says(&main, "One paragraph.\n\nHalf of ano");
        driver.frame();
        driver.press("<Esc>");
        driver.ends(&main, Status::Interrupted, None, Some("interrupted"));
        driver.update(crate::UiUpdate::Ready);
        driver.all()
    }));
}

#[test]
fn an_answer_that_was_not_streamed_is_printed_and_files_are_named() {
    assert_snapshot!(on_three_screens(&single(), |driver| {
        let main = asked(driver);
        driver.answers(&main, MODEL, vec![text("{\"berths\": 3}")], Usage::default());
        driver.ends(&main, Status::Done, Some("Three **berths** are free."), None);
        driver.all()
    }));
}

#[test]
fn emoji_of_people_and_models_stay_whole_and_other_hidden_signs_are_written_out() {
    let said = "❤\u{fe0f} to the 👩\u{200d}👩\u{200d}👧";
    let mut driver = Driver::new(options(), (90, 20));
    driver.paste(&format!("{said} and\u{200b} \u{202e}you"));
    driver.press("<Enter>");
    let main = asked(&mut driver);
    driver.answers(&main, MODEL, vec![thought(said), text(&format!("Back: {said}"))], used(1, 1));
    let call = driver.calls_tool(&main, "greet", json!({"whom": said}));
    driver.returns(&call, "greeted");
    let all = driver.all();
    assert!(all.contains(&format!("> {said} and\\u{{200b}} \\u{{202e}}you")), "{all}");
    assert!(all.contains(&format!("words): {said}")) && all.contains(&format!("Back: {said}")), "{all}");
    assert!(all.contains("❤\\u{fe0f} to the 👩\\u{200d}👩"), "arguments hide nothing: {all}");
}

#[test]
fn the_status_line_says_how_full_the_window_is() {
    for (used_tokens, shown) in [(10, "ctx 1 %"), (6_100, "ctx 61 %"), (12_000, "ctx 120 %")] {
        let mut driver = Driver::new(options(), (100, 20));
        let main = driver.begins("main", Limits::default());
        driver.asks_model_within(&main, MODEL, ContextUse { used: 5_000, window: 10_000 });
        assert!(driver.screen().contains("ctx ~50 %"), "an estimate: {}", driver.screen());
        driver.answers(&main, MODEL, vec![text("Yes.")], used(used_tokens, 0));
        assert!(driver.screen().contains(shown), "{}", driver.screen());
        // An agent below has a window of its own.
        let below = driver.calls_agent(&main, "helper", "x");
        driver.asks_model_within(&below, MODEL, ContextUse { used: 9_999, window: 10_000 });
        assert!(driver.screen().contains(shown), "{}", driver.screen());
    }
}
