//! The corpus of faults: each case without sockets, and those that need no name or certificate over real ones.

use std::sync::Arc;
use std::time::Duration;

use llm_do::model::{HttpSettings, HttpTransport, RetryPolicy};
use llm_do_testing::{FakeTransport, MockProvider, MockRequest, MockResponse};
use serde_json::Value;
use tokio::time::Instant;

use crate::provider_faults::stage::{self, Ended};

const IDLE: Duration = Duration::from_secs(20);

fn cases() -> Vec<Value> {
    let corpus: Value = serde_json::from_str(include_str!("../../corpus/provider_faults.json")).unwrap();
    corpus.as_array().unwrap().clone()
}

fn responses(case: &Value) -> Vec<MockResponse> {
    serde_json::from_value(case["responses"].clone()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn every_fault_of_the_corpus_ends_as_expected() {
    let mut wrong = Vec::new();
    for case in cases() {
        let transport = FakeTransport::new(responses(&case));
        let started = Instant::now();
        let ended = stage::run(case["provider"].as_str().unwrap(), Arc::new(transport.clone()), IDLE).await;
        let requests = transport.requests();
        let problems =
            problems(&case, &ended, &requests).into_iter().chain(slowness(&case, started.elapsed()));
        wrong.extend(problems.map(|problem| format!("{}: {problem}", case["id"].as_str().unwrap())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn the_faults_of_the_corpus_that_a_loopback_server_can_show_end_the_same_over_sockets() {
    let shown = |case: &Value| {
        let text = case["responses"].to_string();
        // Names and certificates are not a server's matter, and an hour of silence is too long for a test.
        !["dns_failure", "tls_failure", "refuse_connection", "retry-after", "append_generated"]
            .iter()
            .any(|word| text.contains(word))
            && case["expect"]["requests"] != "limit"
    };
    let runs = cases().into_iter().filter(shown).map(|case| async move {
        let provider = MockProvider::start(responses(&case)).await;
        let transport = Arc::new(HttpTransport::new(HttpSettings::default()).unwrap());
        let name = case["provider"].as_str().unwrap();
        let ended = stage::run_at(name, &provider.base_url(), transport, Duration::from_secs(2)).await;
        let problems = problems(&case, &ended, &provider.requests());
        problems
            .into_iter()
            .map(|problem| format!("{}: {problem}", case["id"].as_str().unwrap()))
            .collect::<Vec<_>>()
    });
    let runs: Vec<_> = runs.collect();
    assert!(runs.len() > 30, "only {} cases", runs.len());
    let wrong: Vec<String> = futures::future::join_all(runs).await.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Says in what a run differs from what is expected.
fn problems(case: &Value, ended: &Ended, requests: &[MockRequest]) -> Vec<String> {
    let expect = &case["expect"];
    let mut problems = Vec::new();
    let outcome = if ended.answer.is_ok() { "success" } else { "error" };
    if expect["outcome"] != "any" && expect["outcome"] != outcome {
        problems.push(format!("{outcome} instead of {}: {:?}", expect["outcome"], ended.answer));
    }
    let wanted = match &expect["requests"] {
        Value::String(word) if word == "limit" => Some(u64::from(RetryPolicy::default().attempts)),
        number => number.as_u64(),
    };
    if wanted.is_some_and(|wanted| wanted != requests.len() as u64) {
        problems.push(format!("{} requests instead of {}", requests.len(), expect["requests"]));
    }
    if let Some(text) = expect["text"].as_str()
        && ended.answer.as_deref() != Ok(text)
    {
        problems.push(format!("{:?} instead of {text:?}", ended.answer));
    }
    if expect["tool_calls"].as_array().is_some_and(|calls| calls.len() != ended.effects.len()) {
        problems.push(format!("tools did {:?}", ended.effects));
    }
    problems.extend(missing(expect, "error_mentions", &ended.answer.clone().err().unwrap_or_default()));
    problems.extend(missing(expect, "tool_errors", &ended.tool_errors().join("\n")));
    problems.extend(unexpected_waits(expect, requests));
    problems.extend(broken_invariant(case, ended, requests));
    problems
}

fn missing(expect: &Value, key: &str, text: &str) -> Vec<String> {
    let words = expect[key].as_array().cloned().unwrap_or_default();
    let missing =
        words.iter().filter(|word| !text.to_lowercase().contains(&word.as_str().unwrap().to_lowercase()));
    missing.map(|word| format!("{key} lacks {word}: {text}")).collect()
}

fn unexpected_waits(expect: &Value, requests: &[MockRequest]) -> Option<String> {
    let waits: Vec<Duration> = requests.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    if expect["backoff"] == "growing" && !waits.is_sorted_by(|first, second| first < second) {
        return Some(format!("the waits do not grow: {waits:?}"));
    }
    let limits: Vec<u128> =
        expect["wait_ms"].as_array()?.iter().map(|limit| limit.as_u64().unwrap().into()).collect();
    let waited = waits.first()?.as_millis();
    (waited < limits[0] || waited > limits[1]).then(|| format!("waited {waited} ms, expected {limits:?}"))
}

fn slowness(case: &Value, took: Duration) -> Option<String> {
    case["expect"].get("max_seconds")?;
    (took > IDLE + Duration::from_secs(5)).then(|| format!("took {took:?}"))
}

/// The rules of cases that words cannot check.
fn broken_invariant(case: &Value, ended: &Ended, requests: &[MockRequest]) -> Option<String> {
    match case["id"].as_str()? {
        // Two calls with one id: both are answered, under different ids.
        "pv-s051" => {
            let messages = requests.last()?.json()["messages"].as_array()?.clone();
            let results = messages.last()?["content"].as_array()?.clone();
            let ids: Vec<&Value> = results.iter().map(|result| &result["tool_use_id"]).collect();
            let distinct = ids.len() == 2 && ids[0] != ids[1];
            (!distinct || ended.effects.len() != 2).then(|| format!("{results:?} {:?}", ended.effects))
        }
        // A call that the output limit cut: it is not sent back as it is, and the model is told.
        "pv-s053" => {
            let sent = requests.get(1).map(|request| request.json()["messages"].to_string())?;
            let told = sent.contains("cut off") && !sent.contains("\"long");
            (!told).then_some(sent)
        }
        _ => None,
    }
}
