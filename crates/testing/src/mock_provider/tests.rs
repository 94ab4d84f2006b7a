//! Both stages of the script.

use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use http::Request;
use llm_do_core::{ModelError, ModelErrorKind};
use llm_do_models::{Chunks, HttpSettings, HttpTransport, Transport};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{FakeTransport, Fault, MockProvider, MockResponse};
use crate::Chance;

const CORPUS: &str = include_str!("../../../llm-do/tests/corpus/provider_faults.json");

/// What a client saw of one request: the status, the bytes, and how it failed.
#[derive(Debug, PartialEq)]
struct Outcome {
    status: Option<u16>,
    body: String,
    error: Option<ModelError>,
}

async fn ask(transport: &dyn Transport, base: &str) -> Outcome {
    let mut body = Chunks::default();
    body.push(r#"{"prompt":"#);
    body.push(r#""hi"}"#);
    let request = Request::post(format!("{base}/v1/messages?a=b")).header("x-api-key", "test").body(body);
    let host = base.trim_start_matches("http://").to_owned();
    let without_host = |error: ModelError| {
        let message = error.message.replace(&host, "HOST").replace(host.split(':').next().unwrap(), "HOST");
        ModelError { message, ..error }
    };
    let response = match transport.send(request.unwrap()).await {
        Ok(response) => response,
        Err(error) => {
            return Outcome { status: None, body: String::new(), error: Some(without_host(error)) };
        }
    };
    let status = Some(response.status().as_u16());
    let mut stream = response.into_body();
    let mut body = Vec::new();
    let error = loop {
        match stream.try_next().await {
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) => break None,
            Err(error) => break Some(without_host(error)),
        }
    };
    Outcome { status, body: String::from_utf8_lossy(&body).into_owned(), error }
}

fn network() -> HttpTransport {
    HttpTransport::new(HttpSettings::default()).unwrap()
}

#[tokio::test]
async fn both_stages_answer_a_script_alike() {
    let script = [
        MockResponse::json(429, &json!({"error": "slow"})).header("retry-after", "1"),
        MockResponse::fault(Fault::ResetBeforeHeaders),
        MockResponse::events("").pieces(["data: one\n\n", "data: two\n\n"]),
        MockResponse::fault(Fault::RefuseConnection),
        MockResponse::events("data: one\n\n").cut_after(4),
        MockResponse::events("data: one\n\n")
            .drip(1, Duration::from_millis(1))
            .stall_after(3, Duration::from_millis(5)),
        MockResponse::events("data: one\n\n").header("content-length", "100"),
        MockResponse::events("data: one\n\n").header("content-length", "11"),
        MockResponse::status(503),
        MockResponse::events("").cut_after(0),
        MockResponse::events("the last is repeated"),
    ];
    let attempts = script.len() + 1;
    let (provider, network) = (MockProvider::start(script.clone()).await, network());
    let fake = FakeTransport::new(script);

    for attempt in 0..attempts {
        let real = ask(&network, &provider.base_url()).await;
        let pretended = ask(&fake, &provider.base_url()).await;
        assert_eq!(real, pretended, "attempt {attempt}");
        if attempt == 3 {
            let error = ModelError::new(ModelErrorKind::Network, "nothing listens at HOST");
            assert_eq!(real.error, Some(ModelError { is_final: true, ..error.not_charged() }));
            tokio::time::sleep(super::server::REFUSED_FOR * 3).await;
        }
    }

    assert_eq!(fake.requests().len(), attempts);
    assert_eq!(provider.requests().len(), attempts - 1, "who is refused is not seen");
    for request in [&fake.requests()[0], &provider.requests()[0]] {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/messages?a=b"));
        assert_eq!((request.header("x-api-key"), request.header("x-none")), ("test", ""));
        assert_eq!(request.json(), json!({"prompt": "hi"}));
    }
}

#[tokio::test]
async fn a_provider_that_hangs_has_read_the_request() {
    let provider = MockProvider::start([MockResponse::fault(Fault::HangBeforeHeaders)]).await;
    let (network, base) = (network(), provider.base_url());

    let asked = ask(&network, &base);
    let waited = tokio::time::timeout(Duration::from_millis(100), asked).await;

    assert!(waited.is_err());
    assert_eq!(provider.requests().len(), 1);
}

#[tokio::test]
async fn a_provider_may_refuse_from_the_start() {
    let script = [MockResponse::fault(Fault::RefuseConnection), MockResponse::events("hello")];
    let provider = MockProvider::start(script).await;
    let network = network();

    let refused = ask(&network, &provider.base_url()).await;
    assert!(refused.error.is_some_and(|error| error.message.starts_with("nothing listens at")));
    tokio::time::sleep(super::server::REFUSED_FOR * 3).await;
    assert_eq!(ask(&network, &provider.base_url()).await.body, "hello");
}

#[tokio::test(start_paused = true)]
async fn without_sockets_an_hour_passes_at_once() {
    let stalled = MockResponse::events("onetwo").stall_after(3, Duration::from_secs(3_600));
    let fake = FakeTransport::new([stalled, MockResponse::fault(Fault::HangBeforeHeaders)]);
    let start = Instant::now();

    assert_eq!(ask(&fake, "http://provider.invalid").await.body, "onetwo");
    let hung = tokio::time::timeout(Duration::from_secs(60), ask(&fake, "http://provider.invalid")).await;

    assert!(hung.is_err());
    assert_eq!(start.elapsed().as_secs(), 3_660);
    assert_eq!((fake.requests()[1].at - fake.requests()[0].at).as_secs(), 3_600);
}

#[tokio::test]
async fn faults_of_names_and_certificates_come_without_sockets() {
    let faults = [Fault::DnsFailure, Fault::TlsFailure];
    let fake = FakeTransport::new(faults.map(MockResponse::fault));

    let unknown = ask(&fake, "http://provider.invalid").await.error.unwrap();
    let untrusted = ask(&fake, "http://provider.invalid").await.error.unwrap();

    assert_eq!(
        (unknown.kind, unknown.message.as_str()),
        (ModelErrorKind::Network, "could not resolve host HOST; are you offline, or is the name misspelled?")
    );
    assert_eq!(untrusted.kind, ModelErrorKind::Invalid);
    assert!(untrusted.message.starts_with("certificate of HOST"), "{untrusted}");
}

#[tokio::test]
async fn a_date_is_two_seconds_ahead_when_it_is_sent() {
    let fake =
        FakeTransport::new([MockResponse::status(429).header("retry-after", "{HTTP_DATE_NOW_PLUS_2S}")]);

    let before = jiff::Timestamp::now();
    let request = Request::post("http://provider.invalid/").body(Chunks::default()).unwrap();
    let response = fake.send(request).await.unwrap();

    let date = response.headers()["retry-after"].to_str().unwrap();
    assert!(date.ends_with(" GMT"), "{date}");
    let ahead = jiff::fmt::rfc2822::parse(&date.replace("GMT", "+0000")).unwrap().timestamp() - before;
    let ahead = ahead.total(jiff::Unit::Second).unwrap();
    assert!((0.9..=3.0).contains(&ahead), "{ahead}");
}

#[tokio::test]
async fn the_corpus_can_be_read_and_played() {
    let corpus: Vec<Value> = serde_json::from_str(CORPUS).unwrap();
    assert_eq!(corpus.len(), 54);
    for case in corpus {
        let responses: Vec<MockResponse> = serde_json::from_value(case["responses"].clone()).unwrap();
        let fake = FakeTransport::new(responses.clone());
        for (response, written) in responses.iter().zip(case["responses"].as_array().unwrap()) {
            if response.fault.is_some() || response.stall_ms > 0 {
                continue;
            }
            let generated = written.get("append_generated");
            let whole = written["body"].as_str().unwrap().len() + generated.map_or(0, length_of);
            let sent: Vec<Bytes> = super::steps::steps(response)
                .into_iter()
                .filter_map(|step| match step {
                    super::steps::Step::Send(piece) => Some(piece),
                    _ => None,
                })
                .collect();
            let length: usize = sent.iter().map(Bytes::len).sum();
            assert_eq!(length, response.cut_after_bytes.unwrap_or(whole), "{}", case["id"]);
        }
        assert_eq!(fake.requests().len(), 0);
    }
}

fn length_of(generated: &Value) -> usize {
    let text = |field: &str| generated[field].as_str().unwrap().len();
    let count = usize::try_from(generated["count"].as_u64().unwrap()).unwrap();
    text("prefix") + text("repeat") * count + text("suffix")
}

#[tokio::test(start_paused = true)]
async fn whatever_breaks_the_bytes_that_came_are_the_first_of_the_body() {
    let text = "data: a rather long stream of events\n\n".repeat(20);
    let whole = MockResponse::events(text.clone());
    for seed in 0..2_000 {
        let mut chance = Chance::new(seed);
        let broken = whole.broken(&mut chance);
        let hangs = broken.fault == Some(Fault::HangBeforeHeaders);
        let fake = FakeTransport::new([broken.clone(), whole.clone()]);

        let first = tokio::time::timeout(Duration::from_secs(90_000), ask(&fake, "http://p.invalid")).await;

        assert_eq!(first.is_err(), hangs, "seed {seed}: {broken:?}");
        if let Ok(first) = first.as_ref().map(|first| &first.body) {
            assert!(text.starts_with(first.as_str()), "seed {seed}: {broken:?}");
        }
        assert_eq!(ask(&fake, "http://p.invalid").await.body, text, "seed {seed}");
    }
}
