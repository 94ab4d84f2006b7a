//! Random faults between the answers of a conversation: every attempt and wait as documented, no effect twice.

use std::sync::Arc;
use std::time::Duration;

use llm_do::model::RetryPolicy;
use llm_do_testing::{Chance, FakeTransport, Fault, MockResponse};
use serde_json::{Value, json};

use crate::provider_faults::stage;

const IDLE: Duration = Duration::from_secs(60);

/// How many scripts; a variable asks for more.
fn volume() -> u64 {
    std::env::var("LLM_DO_FAULT_SCRIPTS").ok().and_then(|number| number.parse().ok()).unwrap_or(1_000)
}

/// One attempt: what the provider does, and how long the next one must wait for it, at least and at most.
struct Attempt {
    response: MockResponse,
    wait: Wait,
}

#[derive(Clone, Copy, PartialEq)]
enum Wait {
    /// It was an answer: the next request comes at once.
    None,
    /// As the policy says.
    Policy,
    /// As the provider says.
    Asked(Duration),
}

#[test]
fn random_faults_never_double_an_effect_and_every_wait_is_documented() {
    for seed in 0..volume() {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let checked = runtime.block_on(check(seed));
        assert!(checked.is_ok(), "seed {seed}: {}", checked.unwrap_err());
    }
}

async fn check(seed: u64) -> Result<(), String> {
    let chance = &mut Chance::new(seed);
    let provider = if chance.below(2) == 0 { "anthropic" } else { "openai" };
    let turns = chance.below(4);
    let (mut script, mut ends_early) = (Vec::new(), false);
    for turn in 0..=turns {
        let faults = chance.below(5);
        for _ in 0..faults {
            script.push(fault(chance, &answer(provider, turn, turns)));
        }
        if chance.below(20) == 0 {
            script.push(Attempt { response: permanent(chance), wait: Wait::None });
            ends_early = true;
            break;
        }
        script.push(Attempt {
            response: MockResponse::events(answer(provider, turn, turns)),
            wait: Wait::None,
        });
    }
    let transport =
        FakeTransport::new(script.iter().map(|attempt| attempt.response.clone()).collect::<Vec<_>>());
    let ended = stage::run(provider, Arc::new(transport.clone()), IDLE).await;
    let expected: Vec<(String, Value)> = (0..completed_turns(&script))
        .map(|turn| ("read_file".to_owned(), json!({"path": format!("{turn}.txt")})))
        .collect();
    if ended
        .effects
        .iter()
        .map(|(_, input)| &input["path"])
        .ne(expected.iter().map(|(_, input)| &input["path"]))
    {
        return Err(format!("tools did {:?}, expected {expected:?}", ended.effects));
    }
    match (&ended.answer, ends_early) {
        (Ok(text), false) if text == "Hello world" => {}
        (Err(_), true) => {}
        (answer, _) => return Err(format!("ended with {answer:?}")),
    }
    check_waits(&script, &transport)
}

/// How many answers that ask for a tool were complete.
fn completed_turns(script: &[Attempt]) -> usize {
    let complete = script.iter().filter(|attempt| attempt.wait == Wait::None).count();
    complete.saturating_sub(1)
}

fn check_waits(script: &[Attempt], transport: &FakeTransport) -> Result<(), String> {
    let requests = transport.requests();
    if requests.len() != script.len() {
        return Err(format!("{} requests for {} attempts", requests.len(), script.len()));
    }
    let policy = RetryPolicy::default();
    let mut failures = 0;
    for (attempt, pair) in script.iter().zip(requests.windows(2)) {
        let waited = pair[1].at - pair[0].at;
        let (least, most) = match attempt.wait {
            Wait::None => {
                failures = 0;
                (Duration::ZERO, Duration::from_millis(1))
            }
            Wait::Policy => {
                failures += 1;
                let doubled = policy.first_wait * 2_u32.pow(failures - 1);
                (doubled * 80 / 100, doubled * 120 / 100)
            }
            Wait::Asked(asked) => {
                failures += 1;
                (asked, asked + policy.first_wait / 2)
            }
        };
        // A provider that is silent is given up after the idle limit, before the wait begins.
        let fits = |waited: Duration| waited >= least && waited <= most + Duration::from_millis(2);
        if !fits(waited) && !waited.checked_sub(IDLE).is_some_and(fits) {
            return Err(format!("waited {waited:?}, expected {least:?} to {most:?}"));
        }
    }
    Ok(())
}

/// A fault that may pass.
fn fault(chance: &mut Chance, answer: &str) -> Attempt {
    let status = [408, 409, 429, 500, 502, 503, 529][chance.below(7)];
    let response = MockResponse::status(status).header("content-type", "application/json").body("{}");
    match chance.below(9) {
        0 => {
            let seconds = 1 + chance.below(30) as u64;
            let response = response.header("retry-after", &seconds.to_string());
            Attempt { response, wait: Wait::Asked(Duration::from_secs(seconds)) }
        }
        1 => {
            let response = response.header("retry-after-ms", "1500");
            Attempt { response, wait: Wait::Asked(Duration::from_millis(1_500)) }
        }
        2 => plain(response.header("retry-after", "soon")),
        3 => plain(MockResponse::fault(Fault::RefuseConnection)),
        4 => plain(MockResponse::fault(Fault::ResetBeforeHeaders)),
        5 => plain(MockResponse::fault(Fault::HangBeforeHeaders)),
        6 => plain(MockResponse::events(answer.to_owned()).cut_after(cut_in(answer, chance))),
        7 => plain(
            MockResponse::events(answer.to_owned())
                .stall_after(cut_in(answer, chance), Duration::from_secs(3_600)),
        ),
        _ => plain(response),
    }
}

fn plain(response: MockResponse) -> Attempt {
    Attempt { response, wait: Wait::Policy }
}

/// A place before the provider has said that its answer is complete.
fn cut_in(answer: &str, chance: &mut Chance) -> usize {
    let complete = ["\"stop_reason\"", "\"finish_reason\":\""];
    let end = complete.iter().filter_map(|mark| answer.rfind(mark)).min().unwrap();
    chance.below(end)
}

/// A fault that no waiting mends.
fn permanent(chance: &mut Chance) -> MockResponse {
    let status = [400, 401, 403, 404, 413][chance.below(5)];
    MockResponse::status(status).header("content-type", "application/json").body("{}")
}

/// The answer of a turn: a call of a tool, and in the last one a text.
fn answer(provider: &str, turn: usize, turns: usize) -> String {
    match (provider, turn < turns) {
        ("anthropic", true) => anthropic(
            &json!({"type": "tool_use", "id": format!("tu_{turn}"), "name": "read_file", "input": {}}),
            &json!({"type": "input_json_delta", "partial_json": format!("{{\"path\":\"{turn}.txt\"}}")}),
            "tool_use",
        ),
        ("anthropic", false) => anthropic(
            &json!({"type": "text", "text": ""}),
            &json!({"type": "text_delta", "text": "Hello world"}),
            "end_turn",
        ),
        (_, true) => {
            let function = json!({"name": "read_file", "arguments": format!("{{\"path\":\"{turn}.txt\"}}")});
            let call =
                json!({"index": 0, "id": format!("call_{turn}"), "type": "function", "function": function});
            chat(&json!({"role": "assistant", "tool_calls": [call]}), "tool_calls")
        }
        (_, false) => chat(&json!({"role": "assistant", "content": "Hello world"}), "stop"),
    }
}

fn anthropic(block: &Value, delta: &Value, stop: &str) -> String {
    let message = json!({"id": "msg", "type": "message", "role": "assistant", "model": "m", "content": [],
        "usage": {"input_tokens": 3, "output_tokens": 1}});
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ];
    let lines =
        events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
    lines.collect()
}

fn chat(delta: &Value, finish: &str) -> String {
    let chunk = |delta: &Value, finish: &Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!("data: {}\n\n", json!({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}))
    };
    format!("{}{}data: [DONE]\n\n", chunk(delta, &Value::Null), chunk(&json!({}), &finish.into()))
}
