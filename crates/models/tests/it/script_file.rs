//! The scripted model from YAML.

use std::time::Duration;

use llm_do_core::{Message, Model, ModelErrorKind, StopReason, Usage};
use llm_do_models::Script;
use tokio::time::Instant;

use crate::support::{Talk, calls, result};

fn script(yaml: &str) -> Script {
    Script::from_yaml(yaml).unwrap()
}

fn refusal(yaml: &str) -> String {
    Script::from_yaml(yaml).unwrap_err().to_string()
}

fn owned(calls: &[(&str, &str)]) -> Vec<(String, String)> {
    calls.iter().map(|(name, arguments)| ((*name).to_owned(), (*arguments).to_owned())).collect()
}

#[tokio::test]
async fn a_reply_thinks_says_and_asks_in_this_order() {
    let model = script("- ask: {b: {n: 1, yes: no}, a: }\n  say: Hello there\n  think: hm\n");
    let heard = Talk::of("hi").hear(&mut *model.open()).await.unwrap();
    assert_eq!(
        (heard.thinking, heard.text),
        (vec!["hm".to_owned()], vec!["Hello ".to_owned(), "there".to_owned()])
    );
    let response = heard.end.unwrap().unwrap();
    assert_eq!(calls(&response), owned(&[("b", r#"{"n":1,"yes":"no"}"#), ("a", "{}")]));
}

#[tokio::test]
async fn calls_are_written_as_a_mapping_as_a_list_or_raw() {
    let yaml = "
- ask:
    - {name: read, arguments: {path: a}}
    - {name: read, arguments: {path: b}}
    - {name: list}
- raw: {name: read, text: '{\"path\": '}
";
    let model = script(yaml);
    let expected = owned(&[("read", r#"{"path":"a"}"#), ("read", r#"{"path":"b"}"#), ("list", "{}")]);
    assert_eq!(calls(&Talk::of("hi").ask(&model).await), expected);
    assert_eq!(calls(&Talk::of("hi").ask(&model).await), owned(&[("read", r#"{"path": "#)]));
}

#[tokio::test(start_paused = true)]
async fn delay_usage_and_stop_are_read() {
    let model = script(
        "- {say: slow, delay: 1.5s, stop: max_tokens, usage: {input: 3, output: 4, cache_read: 5, cache_write: 6, reasoning: 1}}\n\
         - {say: odd, stop: {other: weird}}\n",
    );
    let begun = Instant::now();
    let response = Talk::of("hi").ask(&model).await;
    assert_eq!(begun.elapsed(), Duration::from_millis(1500));
    let usage = Usage {
        requests: 1,
        input: 3,
        output: 4,
        cache_read: 5,
        cache_write: 6,
        reasoning: 1,
        ..Usage::default()
    };
    assert_eq!((response.usage, response.stop), (usage, StopReason::MaxTokens));
    assert_eq!(Talk::of("hi").ask(&model).await.stop, StopReason::Other("weird".to_owned()));
}

#[tokio::test]
async fn failures_and_cuts_are_read() {
    let model =
        script("- fail: {kind: context_overflow, message: too long, retry_after: 200ms}\n- cut: half\n");
    let error = Talk::of("hi").fail(&model).await;
    assert_eq!((error.kind, error.message.as_str()), (ModelErrorKind::ContextOverflow, "too long"));
    assert_eq!(error.retry_after, Some(Duration::from_millis(200)));
    assert_eq!(Talk::of("hi").hear(&mut *model.open()).await.unwrap().end, Ok(None));
}

#[tokio::test]
async fn conditions_are_read_and_must_all_hold() {
    let yaml = "
- {say: next}
- {say: reviewed, when: {contains: data, result_of: read, instructions: review}}
- {say: once, when: {contains: magic}, once: true}
- {say: then}
";
    let model = script(yaml);
    let talk = Talk::of("hi").then(result("read", "data"));
    assert_eq!(talk.instructed("You review.").text(&model).await, "reviewed");
    assert_eq!(Talk::of("magic").text(&model).await, "once");
    assert_eq!(Talk::of("magic").text(&model).await, "next");
    assert_eq!(Talk::of("data").text(&model).await, "then");
}

#[tokio::test]
async fn the_mode_of_a_file_says_which_reply_is_next() {
    let replies = "replies: [{say: one}, {say: two}]";
    let second = Talk::of("hi").then(Message::assistant("one")).then(Message::user("and?"));

    let model = script(&format!("mode: by_turn\n{replies}"));
    assert_eq!(second.text(&model).await, "two");
    assert_eq!(second.text(&model).await, "two");

    let model = script(&format!("mode: each_call\n{replies}"));
    assert_eq!([second.text(&model).await, second.text(&model).await], ["one", "one"]);

    for in_order in [format!("mode: in_order\n{replies}"), replies.to_owned()] {
        let model = script(&in_order);
        assert_eq!([second.text(&model).await, second.text(&model).await], ["one", "two"]);
    }
}

#[test]
fn a_mistake_is_named_with_its_place_and_what_was_meant() {
    let cases = [
        ("- say: a\n- sya: b\n", "line 2, column 3: unknown key `sya`, did you mean `say`?"),
        (
            "- say: a\n  zzzzz: b\n",
            "line 2, column 3: unknown key `zzzzz`, expected one of `delay`, `pace`, `think`, `say`, `ask`, `raw`, \
             `cut`, `fail`, `usage`, `stop`, `when`, `once`",
        ),
        ("mode: by_trun\nreplies: []\n", "line 1, column 7: unknown word `by_trun`, did you mean `by_turn`?"),
        ("mode: by_turn\nreplys: []\n", "line 2, column 1: unknown key `replys`, did you mean `replies`?"),
        ("mode: by_turn\n", "line 1, column 1: the key `replies` is missing"),
        ("- say: a\n  say: b\n", "line 2, column 3: duplicate mapping key: say not allowed here"),
        ("- ask: [{nam: a}]\n", "line 1, column 10: unknown key `nam`, did you mean `name`?"),
        (
            "- ask: text\n",
            "line 1, column 3: invalid type: string \"text\", expected a mapping from tools to arguments, or a list \
             of calls with `name` and `arguments`",
        ),
        ("- say: [a]\n", "line 1, column 8: expected text"),
        ("- text\n", "line 1, column 3: expected a mapping"),
        (
            "- say: a\n  delay: 5\n",
            "line 2, column 10: `5` is not a duration: write one such as `200ms`, `1.5s` or `2m`",
        ),
        (
            "- say: a\n  delay: 1.2.3s\n",
            "line 2, column 10: `1.2.3s` is not a duration: write one such as `200ms`, `1.5s` or `2m`",
        ),
        ("- {say: a, usage: {input: -1}}\n", "line 1, column 27: expected a whole number"),
        ("- {say: a, usage: {inptu: 1}}\n", "line 1, column 20: unknown key `inptu`, did you mean `input`?"),
        (
            "- fail: {kind: ratelimit, message: m}\n",
            "line 1, column 16: unknown word `ratelimit`, did you mean `rate_limit`?",
        ),
        ("- fail: {kind: server}\n", "line 1, column 10: the key `message` is missing"),
        (
            "- {say: a, stop: maxtokens}\n",
            "line 1, column 18: unknown word `maxtokens`, did you mean `max_tokens`?",
        ),
        (
            "- {say: a, when: {contain: b}}\n",
            "line 1, column 19: unknown key `contain`, did you mean `contains`?",
        ),
        (
            "- {say: a, when: {}}\n",
            "line 1, column 18: `when` needs `contains`, `result_of` or `instructions`",
        ),
        (
            "- {say: a, once: true}\n",
            "line 1, column 18: `once` limits a reply with `when`; this one is given once anyway",
        ),
        (
            "mode: by_turn\nreplies:\n- {say: a, when: {contains: b}, once: true}\n",
            "line 3, column 39: `once` cannot be remembered in mode `by_turn`",
        ),
        ("- {say: a, once: yes}\n", "line 1, column 18: invalid boolean (true or false expected)"),
        (
            "- say: a\n- delay: 1s\n",
            "line 2, column 3: the reply is empty: give it `say`, `think`, `ask`, `raw`, `cut` or `fail`",
        ),
        ("", "line 1, column 1: the file is empty"),
        (
            "- say: a\n---\n- say: b\n",
            "line 3, column 1: only single YAML document expected but multiple found",
        ),
        (
            "- {say: a, when: {\"\\e[2J\": b}}\n",
            "line 1, column 19: unknown key `\u{fffd}[2J`, expected one of `contains`, `result_of`, `instructions`",
        ),
        ("- say: !secret a\n", "line 1, column 16: unsupported tag `!secret`"),
    ];
    for (yaml, expected) in cases {
        assert_eq!(refusal(yaml), expected, "{yaml}");
    }
    assert!(refusal("5").contains("expected a list of replies, or a mapping with `mode` and `replies`"));
}

#[test]
fn a_hostile_file_is_refused_at_once() {
    let doubled = (1..40).map(|n| format!("      x{n}: &x{n} [*x{0}, *x{0}]\n", n - 1)).collect::<String>();
    let too_large = "larger, deeper or more entangled";
    let hostile = [
        (format!("- ask:\n    tool:\n      x0: &x0 [a, b]\n{doubled}"), too_large),
        ("[".repeat(200_000), "recursion limit"),
        (format!("- ask: {}", "{a: ".repeat(100)), too_large),
        (format!("- ask: {{t: [{}]}}", "a,".repeat(120_000)), too_large),
        ("- &a {say: a}\n- <<: *a\n".to_owned(), "merge"),
    ];
    for (yaml, reason) in hostile {
        let message = refusal(&yaml);
        assert!(message.contains(reason), "{message}");
    }
}
