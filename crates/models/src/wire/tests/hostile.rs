//! Bodies that are cut, damaged or endless: an error or an answer, never a panic, never half a call.

use llm_do_capabilities::{Capability, missing_at_build};
use llm_do_core::{ModelErrorKind, ModelResponse, ToolCall};
use serde_json::{Value, json};

use super::super::samples::{ANTHROPIC, STREAMS};
use super::super::{Api, MAX_EVENT_BYTES, MAX_MESSAGE_BYTES};
use super::recorded::exchanges;
use super::{Numbers, decode, decode_pieces, decoder, times};

/// The bodies written here and, where they are at hand, the recorded ones.
fn bodies() -> Vec<(String, Api, Vec<u8>)> {
    let written = STREAMS.map(|(api, stream)| (format!("{api:?}"), api, stream.as_bytes().to_vec()));
    let recorded = match missing_at_build(Capability::Wire) {
        None => exchanges(),
        Some(_) => Vec::new(),
    };
    let recorded = recorded.into_iter().filter(|exchange| exchange.status == 200);
    written.into_iter().chain(recorded.map(|exchange| (exchange.id, exchange.api, exchange.body))).collect()
}

fn calls(response: &ModelResponse) -> Vec<&ToolCall> {
    response.message.tool_calls().collect()
}

#[test]
fn a_body_cut_anywhere_yields_no_call_of_an_incomplete_message() {
    let places = times("LLM_DO_WIRE_CUTS", 40);
    for (name, api, body) in bodies() {
        let whole = decode(api, &body).response;
        let step = body.len().checked_div(places).unwrap_or(1).max(1);
        for end in (0..body.len()).step_by(step) {
            let decoded = decode(api, &body[..end]);
            match (&decoded.response, &whole) {
                (Ok(cut), Ok(whole)) => assert_eq!(calls(cut), calls(whole), "{name} cut at {end}"),
                (Ok(cut), Err(_)) => assert!(calls(cut).is_empty(), "{name} cut at {end}"),
                (Err(error), Ok(_)) => {
                    assert_eq!(error.kind, ModelErrorKind::Truncated, "{name} cut at {end}: {error}");
                }
                (Err(_), Err(_)) => {}
            }
        }
    }
}

#[test]
fn a_cut_stream_keeps_the_usage_known_so_far() {
    let (start, _) = ANTHROPIC.split_once("event: message_delta").unwrap();
    let error = decode(Api::Anthropic, start).response.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Truncated);
    assert_eq!(error.cost.reported().copied(), Some(super::usage(10, 1, 7, 5, 0)));
}

#[test]
fn damaged_bodies_never_panic() {
    let bodies = bodies();
    let mut numbers = Numbers::new(2026);
    for _ in 0..times("LLM_DO_WIRE_MUTATIONS", 2_000) {
        let (_, api, body) = &bodies[numbers.below(bodies.len())];
        let damaged = damage(body, &mut numbers);
        let pieces = numbers.split(&damaged);
        let whole = decode(*api, &damaged);
        assert_eq!(decode_pieces(*api, pieces), whole);
    }
}

/// Changes, drops, doubles or moves a few stretches of a body, or whole lines of it.
fn damage(body: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut body = body.to_vec();
    for _ in 0..=numbers.below(4) {
        let place = numbers.below(body.len());
        let end = (place + numbers.below(40)).min(body.len());
        match numbers.below(6) {
            0 => {
                body[place..end].iter_mut().for_each(|byte| *byte = u8::try_from(numbers.below(256)).unwrap())
            }
            1 => drop(body.drain(place..end)),
            2 => body.extend_from_within(place..end),
            3 => body[place..end].reverse(),
            4 => body = with_lines_moved(&body, numbers),
            _ => drop(body.splice(place..place, b"\"},[{\n\r:\\u0000 1e999 null -5".iter().copied())),
        }
        if body.is_empty() {
            body.push(b'{');
        }
    }
    body
}

fn with_lines_moved(body: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = body.split_inclusive(|byte| *byte == b'\n').collect();
    let (from, to) = (numbers.below(lines.len()), numbers.below(lines.len()));
    match numbers.below(2) {
        0 => lines.swap(from, to),
        _ => lines.truncate(from.max(1)),
    }
    lines.concat()
}

/// Pushes the same bytes until they are refused, and returns how many were taken and the message.
fn pushed_until_refused(api: Api, start: &str, again: &str) -> (usize, String) {
    let mut decoder = decoder(api);
    decoder.push(start.as_bytes(), &mut Vec::new()).unwrap();
    let mut taken = 0;
    loop {
        let mut parts = Vec::new();
        if let Err(error) = decoder.push(again.as_bytes(), &mut parts) {
            assert_eq!(error.kind, ModelErrorKind::AnswerTooLarge);
            assert!(!error.is_passing(), "the next answer would be as large");
            assert_eq!(decoder.finish(&mut parts).unwrap_err(), error, "the error stays");
            return (taken, error.message);
        }
        taken += again.len();
        assert!(taken < 20 * MAX_MESSAGE_BYTES, "nothing was refused");
    }
}

#[test]
fn a_line_without_end_is_refused_with_the_limit() {
    let more = "x".repeat(1 << 20);
    for (api, start) in [(Api::Anthropic, "data: "), (Api::Gemini, "{\""), (Api::Ollama, "{\"")] {
        let (taken, message) = pushed_until_refused(api, start, &more);
        assert!(taken <= MAX_EVENT_BYTES, "{api:?}");
        assert!(message.contains("limit of 16 MiB"), "{message}");
    }
    let (taken, _) = pushed_until_refused(Api::Anthropic, "", &format!("data: {more}\n"));
    assert!(taken <= MAX_EVENT_BYTES + 100, "an event of many lines");
}

#[test]
fn a_message_without_end_is_refused_with_the_limit() {
    let more = "x".repeat(1 << 18);
    let chunk = |value: Value| format!("data: {value}\n\n");
    let choice = |delta: Value| chunk(json!({"choices": [{"delta": delta}]}));
    let streams = [
        (Api::OpenAiChat, choice(json!({"content": more}))),
        (Api::OpenAiChat, choice(json!({"tool_calls": [{"index": 0, "function": {"arguments": more}}]}))),
        (Api::OpenAiChat, choice(json!({"annotations": [more]}))),
        (Api::OpenAiChat, choice(json!({"reasoning_details": [{"index": 0, "text": more}]}))),
        (Api::Gemini, chunk(json!({"candidates": [{"content": {"parts": [{"text": more}]}}]}))),
        (Api::Gemini, chunk(json!({"candidates": [{"content": {"parts": [{"new": more}]}}]}))),
        (Api::Ollama, format!("{}\n", json!({"message": {"content": more}}))),
        (Api::OpenAiResponses, chunk(json!({"type": "response.output_item.done", "item": {"x": more}}))),
    ];
    for (api, again) in streams {
        let (taken, message) = pushed_until_refused(api, "", &again);
        assert!(taken <= 2 * MAX_MESSAGE_BYTES, "{api:?}");
        assert!(message.contains("limit of 20 MiB"), "{message}");
    }
    let delta = "data: {\"type\":\"content_block_delta\",\"index\":4,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"MORE\"}}\n\n";
    let (start, _) = ANTHROPIC.split_once("event: message_delta").unwrap();
    let (taken, _) = pushed_until_refused(Api::Anthropic, start, &delta.replace("MORE", &more));
    assert!(taken <= 2 * MAX_MESSAGE_BYTES);
}

#[test]
fn many_small_values_are_refused_before_they_are_built() {
    let values = format!("{{\"x\":[{}1]}}", "1,".repeat(60_000));
    let error = decode(Api::Gemini, values).response.unwrap_err();
    assert!(error.message.contains("more than 50000 JSON values, the limit"), "{error}");
    let deep = "[".repeat(40_000);
    assert_eq!(decode(Api::Gemini, deep).response.unwrap_err().kind, ModelErrorKind::Truncated);
}

#[test]
fn a_long_answer_in_small_pieces_is_taken() {
    let chunk = "data: {\"id\":\"c\",\"choices\":[{\"delta\":{\"content\":\"word \"}}],\"usage\":{\"prompt_tokens\":1}}\n\n";
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let decoded = decode(Api::OpenAiChat, chunk.repeat(50_000) + end);
    assert_eq!(decoded.response.unwrap().message.text().len(), 250_000);
}
