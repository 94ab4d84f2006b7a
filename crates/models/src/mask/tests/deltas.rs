//! Secrets that arrive in deltas: every split of every form, through all decoders.

use llm_do_core::{ModelPart, ModelResponse, Origin};
use serde_json::{Value, json};

use llm_do_secrets::{REMOVED, all_forms, plain_forms};

use super::super::{AnswerMask, Mask};
use crate::wire::{Api, Decoder};

/// Keys with what makes them hard: escapes, a beginning that repeats, characters of several bytes, a common first letter.
const KEYS: [&str; 5] = [
    "sk-ant/api+03=\"Zq7\\x",
    "abababac9ababad",
    "grüße-ключ-42-\u{1f511}<&>",
    "sk-canary-0123456789",
    "s0s0s0s0s0s0s0s0",
];

const APIS: [Api; 5] = [Api::Anthropic, Api::OpenAiChat, Api::OpenAiResponses, Api::Gemini, Api::Ollama];

/// The kinds of content blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Block {
    Text,
    Thinking,
    Arguments,
}

/// Reads how often something is tried.
fn times(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Writes the body of a streamed answer with one block in these deltas.
fn body(api: Api, block: Block, deltas: &[&str]) -> String {
    let event = |value: Value| format!("data: {value}\n\n");
    match api {
        Api::Anthropic => anthropic(block, deltas).into_iter().map(event).collect(),
        Api::OpenAiChat => {
            let chunks = deltas.iter().map(|delta| {
                let delta = match block {
                    Block::Text => json!({"content": delta}),
                    Block::Thinking => json!({"reasoning_content": delta}),
                    Block::Arguments => {
                        json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": delta}}]})
                    }
                };
                json!({"choices": [{"index": 0, "delta": delta}]})
            });
            let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
            chunks.chain([end]).map(event).collect::<String>() + "data: [DONE]\n\n"
        }
        Api::OpenAiResponses => responses(block, deltas).into_iter().map(event).collect(),
        Api::Gemini => {
            let parts = deltas.iter().map(|delta| match block {
                Block::Text => json!({"text": delta}),
                Block::Thinking => json!({"text": delta, "thought": true}),
                Block::Arguments => {
                    json!({"functionCall": {"name": "f", "args": {"a": delta}}, "thoughtSignature": "c2ln"})
                }
            });
            let chunks = parts.map(|part| json!({"candidates": [{"content": {"parts": [part]}}]}));
            chunks.chain([json!({"candidates": [{"finishReason": "STOP"}]})]).map(event).collect()
        }
        Api::Ollama => {
            let messages = deltas.iter().map(|delta| match block {
                Block::Text => json!({"content": delta}),
                Block::Thinking => json!({"thinking": delta}),
                Block::Arguments => {
                    json!({"tool_calls": [{"function": {"name": "f", "arguments": {"a": delta}}}]})
                }
            });
            let lines = messages.map(|message| json!({"message": message, "done": false}));
            lines.chain([json!({"done": true})]).map(|line| format!("{line}\n")).collect()
        }
    }
}

fn anthropic(block: Block, deltas: &[&str]) -> Vec<Value> {
    let (content, key) = match block {
        Block::Text => (json!({"type": "text", "text": ""}), "text"),
        Block::Thinking => (json!({"type": "thinking", "thinking": "", "signature": "c2ln"}), "thinking"),
        Block::Arguments => (
            json!({"type": "tool_use", "id": "t", "name": "f", "input": {}, "caller": {"type": "direct"}}),
            "partial_json",
        ),
    };
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "m"}}),
        json!({"type": "content_block_start", "index": 0, "content_block": content}),
    ];
    events.extend(
        deltas.iter().map(|delta| json!({"type": "content_block_delta", "index": 0, "delta": {key: delta}})),
    );
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}));
    events.push(json!({"type": "message_stop"}));
    events
}

fn responses(block: Block, deltas: &[&str]) -> Vec<Value> {
    let whole = deltas.concat();
    let (kind, item) = match block {
        Block::Text => (
            "response.output_text.delta",
            json!({"type": "message", "content": [{"type": "output_text", "text": whole}]}),
        ),
        Block::Thinking => (
            "response.reasoning_summary_text.delta",
            json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": whole}]}),
        ),
        Block::Arguments => (
            "response.function_call_arguments.delta",
            json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": whole}),
        ),
    };
    let mut events: Vec<Value> = deltas.iter().map(|delta| json!({"type": kind, "delta": delta})).collect();
    let response = json!({"object": "response", "status": "completed", "output": [item]});
    events.push(json!({"type": "response.completed", "response": response}));
    events
}

/// Returns the text and the thinking that a person sees while an answer arrives, and the whole answer.
fn answered(mask: &Mask, api: Api, body: &str) -> (String, String, ModelResponse) {
    let origin = Origin { provider: "acme".into(), model: "m".into(), data: Value::Null };
    let (mut decoder, mut read, mut parts) = (Decoder::new(api, origin), Vec::new(), Vec::new());
    let mut masked = AnswerMask::new(mask);
    decoder.push(body.as_bytes(), &mut read).unwrap();
    let response = decoder.finish(&mut read).unwrap();
    read.push(ModelPart::Finished(response));
    read.into_iter().for_each(|part| masked.push(part, &mut parts));
    let (mut text, mut thinking) = (String::new(), String::new());
    for part in parts {
        match part {
            ModelPart::Text(more) => text += &more,
            ModelPart::Thinking(more) => thinking += &more,
            ModelPart::Notice(notice) => panic!("{notice}"),
            ModelPart::Finished(response) => return (text, thinking, response),
        }
    }
    panic!("the answer was not finished")
}

/// Sends a block in deltas and checks that the form of a secret in it arrives nowhere.
fn check(mask: &Mask, api: Api, block: Block, form: &str, deltas: &[&str]) {
    let (text, thinking, response) = answered(mask, api, &body(api, block, deltas));
    let shown = deltas.concat().replace(form, REMOVED);
    let seen = match block {
        Block::Text => text,
        Block::Thinking => thinking,
        Block::Arguments => shown.clone(),
    };
    assert_eq!(seen, shown, "{api:?} {block:?} {deltas:?}");
    check_response(api, block, form, &response, deltas);
}

/// Checks that a form is in no text of the answer, and that what was around it is.
fn check_response(api: Api, block: Block, form: &str, response: &ModelResponse, deltas: &[&str]) {
    let kept = serde_json::to_value(response).unwrap();
    let mut texts = Vec::new();
    collect(&kept, &mut texts);
    assert!(texts.iter().all(|text| !text.contains(form)), "{api:?} {block:?} {deltas:?}: {kept}");
    assert!(texts.iter().any(|text| text.contains(REMOVED)), "{api:?} {block:?} {deltas:?}: {kept}");
    assert!(texts.iter().any(|text| text.contains("It is <")), "{api:?} {block:?} {deltas:?}: {kept}");
}

fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(values) => values.iter().for_each(|value| collect(value, texts)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, texts)),
        _ => {}
    }
}

/// Returns a block of a kind around a form of a secret. Gemini and Ollama send arguments whole, not as text.
fn content(api: Api, block: Block, form: &str) -> (String, bool) {
    let is_whole = block == Block::Arguments && matches!(api, Api::Gemini | Api::Ollama);
    match block {
        Block::Arguments if !is_whole => (format!("{{\"a\":\"It is <{form}>, s\"}}"), false),
        _ => (format!("It is <{form}>, s"), is_whole),
    }
}

fn split<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| text.floor_char_boundary(*cut)).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

fn every_block(mut visit: impl FnMut(Api, Block)) {
    for api in APIS {
        for block in [Block::Text, Block::Thinking, Block::Arguments] {
            visit(api, block);
        }
    }
}

#[test]
fn a_secret_that_arrives_in_any_two_deltas_is_removed() {
    for key in KEYS {
        let mask = Mask::new([key.to_owned()]);
        for form in plain_forms(key) {
            every_block(|api, block| {
                let (text, is_whole) = content(api, block, &form);
                let last = if is_whole { 0 } else { text.len() };
                let cuts = (0..=last).filter(|cut| text.is_char_boundary(*cut));
                cuts.for_each(|cut| {
                    let deltas = if is_whole { vec![text.as_str()] } else { split(&text, &[cut]) };
                    check(&mask, api, block, &form, &deltas);
                });
            });
        }
    }
}

/// `LLM_DO_MASK_SPLITS` sets how many splits are tried for each form of each key in each kind of block.
#[test]
fn a_secret_that_arrives_in_up_to_five_deltas_is_removed() {
    let mask = Mask::new(KEYS.map(String::from));
    let mut random = fastrand::Rng::with_seed(7);
    for form in KEYS.iter().flat_map(|key| plain_forms(key)) {
        every_block(|api, block| {
            let (text, is_whole) = content(api, block, &form);
            for _ in 0..if is_whole { 0 } else { times("LLM_DO_MASK_SPLITS", 20) } {
                let cuts: Vec<usize> =
                    (0..2 + random.usize(..3)).map(|_| random.usize(..text.len() + 1)).collect();
                check(&mask, api, block, &form, &split(&text, &cuts));
            }
        });
    }
}

#[test]
fn the_other_forms_are_removed_from_the_message_that_is_recorded() {
    for key in KEYS {
        let mask = Mask::new([key.to_owned()]);
        for form in all_forms(key) {
            every_block(|api, block| {
                let (text, is_whole) = content(api, block, &form);
                let deltas = if is_whole { vec![text.as_str()] } else { split(&text, &[9, 12, 15]) };
                let (.., response) = answered(&mask, api, &body(api, block, &deltas));
                check_response(api, block, &form, &response, &deltas);
            });
        }
    }
}

#[test]
fn arguments_that_spell_a_secret_with_other_escapes_are_masked_as_a_value() {
    let key = "sk-canary-0123456789";
    let spelled: String = key.chars().map(|ch| format!("\\u{:04X}", u32::from(ch))).collect();
    let arguments = format!("{{\"a\":\"<{spelled}>\",\"b\":1}}");
    for api in [Api::Anthropic, Api::OpenAiChat, Api::OpenAiResponses] {
        let body = body(api, Block::Arguments, &split(&arguments, &[20, 40]));
        let (.., response) = answered(&Mask::new([key.to_owned()]), api, &body);
        let call = response.message.tool_calls().next().unwrap();
        assert_eq!(&*call.arguments, r#"{"a":"<[removed]>","b":1}"#, "{api:?}");
        assert!(!serde_json::to_string(&response).unwrap().contains(&spelled[1..]), "{api:?}: {response:?}");
    }
}

#[test]
fn a_secret_with_thinking_between_its_deltas_is_removed_or_loses_its_end() {
    let key = "sk-canary-0123456789";
    let mask = Mask::new([key.to_owned()]);
    let (before, after) = ("It is ", ", s");
    for cut in 0..=key.len() {
        let mut masked = AnswerMask::new(&mask);
        let mut parts = Vec::new();
        masked.push(ModelPart::Text(format!("{before}{}", &key[..cut])), &mut parts);
        masked.push(ModelPart::Thinking("hm".into()), &mut parts);
        masked.push(ModelPart::Text(format!("{}{after}", &key[cut..])), &mut parts);
        masked.push(ModelPart::Text("!".into()), &mut parts);
        let text: String =
            parts.iter().map(|part| if let ModelPart::Text(text) = part { text } else { "" }).collect();
        let shown = if cut <= 7 { &key[..cut] } else { "" };
        assert_eq!(text, format!("{before}{shown}{REMOVED}{after}!"), "{cut}");
    }
}

#[test]
fn text_and_thinking_keep_their_order() {
    let mut masked = AnswerMask::new(&Mask::new(["sk-canary-0123456789".to_owned()]));
    let mut parts = Vec::new();
    for part in [
        ModelPart::Thinking("Two files".into()),
        ModelPart::Text("Yes".into()),
        ModelPart::Thinking("k".into()),
    ] {
        masked.push(part, &mut parts);
    }
    masked.push(ModelPart::Text("!".into()), &mut parts);
    let said: Vec<String> = parts.iter().map(|part| format!("{part:?}")).collect();
    assert_eq!(
        said.join(" "),
        r#"Thinking("Two file") Thinking("s") Text("Ye") Text("s") Thinking("k") Text("!")"#
    );
}

#[test]
fn a_secret_across_two_blocks_of_text_is_removed_from_both() {
    let key = "sk-canary-0123456789";
    let mut events = anthropic(Block::Text, &["It is sk-canary"]);
    let end = events.split_off(3);
    events.push(json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "-0123456789."}}));
    let body: String = events.into_iter().chain(end).map(|event| format!("data: {event}\n\n")).collect();
    let (text, _, response) = answered(&Mask::new([key.to_owned()]), Api::Anthropic, &body);
    assert_eq!((text.as_str(), &*response.message.text()), ("It is [removed].", "It is [removed]."));
}

#[test]
fn a_notice_about_an_answer_is_masked() {
    let mut masked = AnswerMask::new(&Mask::new(["sk-canary-0123456789".to_owned()]));
    let mut parts = Vec::new();
    masked.push(ModelPart::Notice("the provider left out `sk-canary-0123456789`".into()), &mut parts);
    assert_eq!(format!("{parts:?}"), r#"[Notice("the provider left out `[removed]`")]"#);
}
