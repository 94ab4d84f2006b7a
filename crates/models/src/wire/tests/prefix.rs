//! The written history is a cache: with and without it the same bytes are sent, and old bytes stay in place.
//!
//! `LLM_DO_WIRE_CONVERSATIONS` says how many random conversations are tried.

use std::sync::Arc;

use llm_do_core::{Conversation, Message, Part};
use serde_json::Value;

use super::super::Api;
use super::super::encode::{Encoded, Encoder};
use super::conversations::{APIS, next_message};
use super::requests::{Asked, assistant, body, call, encoded, provider, result, target, unchecked};
use super::{Numbers, times};

const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

fn text(encoded: &Encoded) -> String {
    String::from_utf8(encoded.body.to_vec()).unwrap()
}

/// Returns the opening and the history, without marks.
fn prefix(encoded: &Encoded) -> String {
    let closing = encoded.body.pieces().last().unwrap().len();
    let whole = text(encoded);
    whole[..whole.len() - closing].replace(MARK, "")
}

#[test]
fn a_warm_encoder_and_a_new_one_send_the_same_bytes() {
    for seed in 0..times("LLM_DO_WIRE_CONVERSATIONS", 12) {
        for api in APIS {
            let mut numbers = Numbers::new(seed as u64 * 7 + 1);
            let mut encoder = Encoder::new(target(api));
            let mut asked = Asked::default().instructed("Be good.").with_tool();
            for _ in 0..24 {
                grow(&mut asked.conversation, &mut numbers);
                let Ok(warm) = encoder.encode(&asked.request()) else { continue };
                // No provider accepts calls without results at the end of a conversation.
                let last = asked.conversation.messages().last().unwrap();
                let has_open_calls = last.tool_calls().next().is_some();
                let write = if has_open_calls { unchecked } else { encoded };
                let cold = write(target(api), &asked);
                assert_eq!(text(&warm), text(&cold), "{api:?}, seed {seed}");
                assert_eq!((&warm.path, &warm.headers), (&cold.path, &cold.headers));
                let _: Value = body(&warm);
            }
        }
    }
}

/// Adds messages, or goes back and takes another way.
fn grow(conversation: &mut Conversation, numbers: &mut Numbers) {
    if numbers.below(5) == 0 {
        conversation.truncate(numbers.below(conversation.messages().len() + 1));
    }
    for _ in 0..numbers.below(4) {
        conversation.push(next_message(conversation.messages(), numbers));
    }
}

#[test]
fn what_was_sent_stays_the_beginning_of_what_is_sent() {
    for seed in 0..times("LLM_DO_WIRE_CONVERSATIONS", 12) {
        for api in APIS {
            let mut numbers = Numbers::new(seed as u64 * 11 + 5);
            let mut encoder = Encoder::new(target(api));
            let mut asked = Asked::default().instructed("Be good.").with_tool();
            asked.conversation.push(Message::user("Hello"));
            let mut before = prefix(&encoder.encode(&asked.request()).unwrap());
            for turn in 0..20 {
                asked.conversation.push(next_message(asked.conversation.messages(), &mut numbers));
                asked.max_output = Some(turn);
                let encoded = encoder.encode(&asked.request()).unwrap();
                assert_eq!(encoded.notices.iter().filter(|notice| notice.contains("prefix")).count(), 0);
                let now = prefix(&encoded);
                assert!(now.starts_with(&before), "{api:?}, seed {seed}, turn {turn}:\n{before}\n{now}");
                before = now;
            }
        }
    }
}

/// Returns the messages whose last block is marked.
fn marked(body: &Value) -> Vec<usize> {
    let messages = body["messages"].as_array().unwrap().iter().enumerate();
    let is_marked = |message: &Value| {
        let blocks = message["content"].as_array().unwrap();
        assert!(blocks[..blocks.len() - 1].iter().all(|block| block["cache_control"].is_null()));
        blocks.last().unwrap()["cache_control"] == serde_json::json!({"type": "ephemeral"})
    };
    messages.filter(|(_, message)| is_marked(message)).map(|(index, _)| index).collect()
}

#[test]
fn two_marks_move_with_the_conversation() {
    let mut encoder = Encoder::new(target(Api::Anthropic));
    let mut asked = Asked::default().instructed("Be good.").with_tool().with_tool();
    let mut seen = Vec::new();
    for turn in 0..3 {
        asked.conversation.push(Message::user(format!("question {turn}")));
        seen.push(marked(&body(&encoder.encode(&asked.request()).unwrap())));
        asked.conversation.push(assistant("anthropic", vec![Part::ToolCall(call("c1", "f", "{}"))]));
        asked.conversation.push(Message::results([result("c1", "f", "1")]));
        let encoded = encoder.encode(&asked.request()).unwrap();
        seen.push(marked(&body(&encoded)));
        assert!(text(&encoded).matches(MARK).count() <= 4);
        asked.conversation.push(assistant("anthropic", vec![Part::text("Done.")]));
    }
    assert_eq!(seen, [vec![0], vec![0, 2], vec![2, 4], vec![4, 6], vec![6, 8], vec![8, 10]]);
    let first = body(&encoder.encode(&asked.request()).unwrap());
    assert_eq!(first["tools"][0]["cache_control"], Value::Null);
    assert_eq!(first["tools"][1]["cache_control"]["type"], "ephemeral");
    assert_eq!(first["system"][0]["cache_control"]["type"], "ephemeral");
    asked.settings.cache = Some(false);
    assert!(!text(&encoder.encode(&asked.request()).unwrap()).contains("cache_control"));
}

#[test]
fn a_paused_turn_is_marked_where_the_request_before_ended() {
    let mut asked = Asked::of([Message::user("Search.")]);
    for words in ["One.", "Two."] {
        asked.conversation.push(assistant("anthropic", vec![Part::text(words)]));
    }
    assert_eq!(marked(&body(&encoded(target(Api::Anthropic), &asked))), [1, 2]);
}

#[test]
fn four_marks_at_most_stand_in_any_request() {
    for seed in 0..times("LLM_DO_WIRE_CONVERSATIONS", 12) {
        let mut numbers = Numbers::new(seed as u64 + 99);
        let mut asked = Asked::default().instructed("Be good.").with_tool();
        for _ in 0..20 {
            grow(&mut asked.conversation, &mut numbers);
            let Ok(encoded) = Encoder::new(target(Api::Anthropic)).encode(&asked.request()) else { continue };
            let marks = text(&encoded).matches(MARK).count();
            assert!((3..=4).contains(&marks), "{marks} marks, seed {seed}");
            assert!((1..=2).contains(&marked(&body(&encoded)).len()), "seed {seed}");
        }
    }
}

#[test]
fn each_message_is_written_once_however_long_the_conversation_is() {
    for api in APIS {
        let mut encoder = Encoder::new(target(api));
        let mut asked = Asked::default().instructed("Be good.").with_tool();
        let mut largest = 0;
        for turn in 0..4_000 {
            let id = format!("call_{turn}");
            asked.conversation.push(Message::user(format!("question {turn}")));
            asked.conversation.push(assistant(provider(api), vec![Part::ToolCall(call(&id, "f", "{}"))]));
            asked.conversation.push(Message::results([result(&id, "f", &"x".repeat(300))]));
            let before = encoder.written();
            let encoded = encoder.encode(&asked.request()).unwrap();
            largest = largest.max(encoder.written() - before);
            let pieces = encoded.body.pieces().count();
            assert!(pieces < 60, "{api:?}: {pieces} pieces");
            asked.conversation.push(assistant(provider(api), vec![Part::text("Done.")]));
        }
        let all = encoder.written();
        assert!(largest < 1_000, "{api:?}: {largest} bytes written for one request");
        encoder.encode(&asked.request()).unwrap();
        assert!(encoder.written() - all < 200, "only the last message is new");
        encoder.encode(&asked.request()).unwrap();
        let again = encoder.written();
        encoder.encode(&asked.request()).unwrap();
        assert_eq!(encoder.written(), again, "nothing is new");
    }
}

#[test]
fn sealed_pieces_are_shared_between_requests() {
    let mut encoder = Encoder::new(target(Api::Gemini));
    let mut asked = Asked::of([Message::user("x".repeat(100_000)), Message::user("y")]);
    let first = encoder.encode(&asked.request()).unwrap();
    asked.conversation.push(Message::user("z"));
    let second = encoder.encode(&asked.request()).unwrap();
    let large =
        |encoded: &Encoded| encoded.body.pieces().find(|piece| piece.len() > 90_000).unwrap().as_ptr();
    assert_eq!(large(&first), large(&second));
}

#[test]
fn a_changed_history_is_written_anew_from_the_change_with_a_notice() {
    for api in APIS {
        let mut encoder = Encoder::new(target(api));
        // Long enough that the change lies in a sealed piece.
        let question = |number: usize| Arc::new(Message::user(format!("{number} {}", "x".repeat(5_000))));
        let mut asked = Asked::default();
        (0..40).for_each(|number| asked.conversation.push(question(number)));
        encoder.encode(&asked.request()).unwrap();
        let before = encoder.written();

        asked.conversation.truncate(30);
        asked.conversation.push(Message::assistant("changed"));
        (31..41).for_each(|number| asked.conversation.push(Message::user(number.to_string())));
        let changed = encoder.encode(&asked.request()).unwrap();
        assert_eq!(
            changed.notices,
            ["the prompt's prefix changed at message 31 (assistant), so the provider's cache will miss it"]
        );
        assert!(encoder.written() - before < 1_500, "{api:?}");
        assert_eq!(text(&changed), text(&encoded(target(api), &asked)));

        asked.conversation.truncate(12);
        let shorter = encoder.encode(&asked.request()).unwrap();
        assert_eq!(shorter.notices, Vec::<String>::new(), "what is there still stands");
        assert_eq!(text(&shorter), text(&encoded(target(api), &asked)));

        asked.conversation.truncate(5);
        asked.conversation.push(Message::user("Another way."));
        let gone_back = encoder.encode(&asked.request()).unwrap();
        assert_eq!(gone_back.notices, Vec::<String>::new(), "who goes back knows it");
        assert_eq!(text(&gone_back), text(&encoded(target(api), &asked)));
    }
}

#[test]
fn a_changed_opening_is_named() {
    let mut encoder = Encoder::new(target(Api::Anthropic));
    let asked = Asked::of([Message::user("hi")]).with_tool();
    let mut notices = |asked: &Asked| encoder.encode(&asked.request()).unwrap().notices;
    let miss = |what: &str| vec![format!("{what} changed, so the provider's cache will miss the prompt")];
    assert_eq!(notices(&asked), Vec::<String>::new());
    // Equal tools need not be the same.
    assert_eq!(notices(&Asked::of([Message::user("hi")]).with_tool()), Vec::<String>::new());
    let more = asked.clone().with_tool();
    assert_eq!(notices(&more), miss("the tools"));
    let instructed = more.instructed("Be good.");
    assert_eq!(notices(&instructed), miss("the instructions"));
    let warmer = instructed.set(|settings| settings.temperature = Some(0.3));
    assert_eq!(notices(&warmer), Vec::<String>::new());
}
