//! Failures of every shape: their kind, their words and how long to wait.

use std::time::Duration;

use jiff::Timestamp;
use llm_do_core::{AttemptCost, ModelError, ModelErrorKind as Kind};
use serde_json::json;

use super::super::Api;
use super::super::errors::from_response;
use super::super::samples::ANTHROPIC;
use super::{decode, usage};

fn failure(status: u16, body: impl ToString) -> ModelError {
    from_response(status, &|_| None, body.to_string().as_bytes(), Timestamp::UNIX_EPOCH)
}

fn wait(headers: &[(&str, &str)]) -> Option<Duration> {
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let header = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    from_response(429, &header, b"", now).retry_after
}

#[test]
fn the_words_of_a_failure_are_found_in_every_shape() {
    let shapes = [
        json!({"error": {"message": "boom", "type": "t"}}),
        json!({"type": "error", "error": {"type": "t", "message": "boom"}}),
        json!({"error": "boom"}),
        json!({"message": "boom", "code": 3}),
        json!({"detail": "boom"}),
        json!({"detail": [{"loc": ["body"], "msg": "boom"}]}),
        json!({"errors": [{"message": "boom"}]}),
        json!([{"error": {"code": 500, "message": "boom", "status": "INTERNAL"}}]),
        json!("boom"),
    ];
    for shape in shapes {
        assert_eq!(failure(500, &shape), ModelError::new(Kind::Server, "HTTP 500: boom"), "{shape}");
    }
    assert_eq!(failure(500, "boom").message, "HTTP 500: boom");
    assert_eq!(
        failure(500, "event: error\ndata: {\"error\":{\"message\":\"boom\"}}\n\n").message,
        "HTTP 500: boom"
    );
    assert_eq!(failure(502, "<html>Bad gateway</html>").message, "HTTP 502: <html>Bad gateway</html>");
    assert_eq!(failure(503, ""), ModelError::new(Kind::Overloaded, "HTTP 503 without a message"));
    assert_eq!(failure(429, "{}"), ModelError::new(Kind::RateLimit, "HTTP 429 without a message"));
    let handed_on = json!({"error": {"message": "Provider returned error", "metadata": {"raw": "busy"}}});
    assert_eq!(failure(502, handed_on).message, "HTTP 502: Provider returned error: busy");
    assert!(failure(500, "x".repeat(1_000_000)).message.len() < 3_000);
}

#[test]
fn a_failure_has_the_kind_that_its_words_or_else_its_status_say() {
    let of = |status: u16, key: &str, word: &str| {
        failure(status, json!({"error": {key: word, "message": word}})).kind
    };
    let day = json!({"error": {"status": "RESOURCE_EXHAUSTED", "message": "x", "details": [
        {"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}]}});
    let filter = json!({"error": {"code": "400", "message": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}}});
    let kinds = [
        (of(401, "type", "authentication_error"), Kind::Auth),
        (of(403, "type", "permission_error"), Kind::Auth),
        (of(400, "message", "Your credit balance is too low to access the API"), Kind::Quota),
        (of(402, "message", "x"), Kind::Quota),
        (of(429, "code", "insufficient_quota"), Kind::Quota),
        (failure(429, day).kind, Kind::Quota),
        (of(429, "type", "rate_limit_error"), Kind::RateLimit),
        (of(404, "type", "x"), Kind::NotFound),
        (of(400, "code", "model_not_found"), Kind::NotFound),
        (of(400, "code", "context_length_exceeded"), Kind::ContextOverflow),
        (of(400, "message", "prompt is too long: 9 tokens > 8 maximum"), Kind::ContextOverflow),
        (of(413, "type", "request_too_large"), Kind::TooLarge),
        (of(500, "message", "image input is not supported - hint: provide the mmproj"), Kind::Invalid),
        (of(400, "code", "content_filter"), Kind::ContentFilter),
        (failure(400, filter).kind, Kind::ContentFilter),
        (of(400, "type", "invalid_request_error"), Kind::Invalid),
        (of(422, "type", "x"), Kind::Invalid),
        (of(408, "type", "x"), Kind::Server),
        (of(409, "type", "x"), Kind::Server),
        (of(500, "type", "api_error"), Kind::Server),
        (of(500, "message", "maximum context length"), Kind::Server),
        (of(529, "type", "overloaded_error"), Kind::Overloaded),
        (of(503, "status", "UNAVAILABLE"), Kind::Overloaded),
    ];
    for (place, (seen, expected)) in kinds.into_iter().enumerate() {
        assert_eq!(seen, expected, "number {place}");
    }
}

/// Failures as each provider reports them, and what they mean.
#[test]
fn a_failure_of_each_provider_has_the_kind_that_its_code_says() {
    let error = |value| json!({"error": value});
    let cases = [
        // Anthropic
        (
            429,
            error(json!({"type": "rate_limit_error", "message": "x",
            "details": {"error_code": "enforced_spend_limit_reached"}})),
            Kind::Quota,
        ),
        (
            400,
            error(json!({"type": "invalid_request_error",
            "message": "You have reached your specified API usage limits. You will regain access on 2026-12-01"})),
            Kind::Quota,
        ),
        (402, error(json!({"type": "billing_error", "message": "x"})), Kind::Quota),
        (529, error(json!({"type": "overloaded_error", "message": "x"})), Kind::Overloaded),
        (409, error(json!({"type": "conflict_error", "message": "x"})), Kind::Server),
        // OpenAI
        (429, error(json!({"type": "insufficient_quota", "code": null, "message": "x"})), Kind::Quota),
        (
            429,
            error(json!({"type": "requests", "code": "credit_balance_exhausted", "message": "x"})),
            Kind::Quota,
        ),
        (429, error(json!({"code": "organization_spend_limit_exceeded", "message": "x"})), Kind::Quota),
        (429, error(json!({"code": "project_spend_limit_exceeded", "message": "x"})), Kind::Quota),
        (429, error(json!({"code": "organization_usage_limit_exceeded", "message": "x"})), Kind::Quota),
        (429, error(json!({"code": "billing_not_active", "message": "x"})), Kind::Quota),
        (
            429,
            error(json!({"code": "rate_limit_exceeded", "type": "tokens", "message": "x"})),
            Kind::RateLimit,
        ),
        (400, error(json!({"code": "content_policy_violation", "message": "x"})), Kind::ContentFilter),
        (400, error(json!({"code": "invalid_prompt", "message": "x"})), Kind::ContentFilter),
        (400, error(json!({"code": "cyber_policy", "message": "x"})), Kind::ContentFilter),
        // Gemini
        (
            400,
            error(json!({"code": 400, "status": "INVALID_ARGUMENT", "message": "API key not valid",
            "details": [{"reason": "API_KEY_INVALID"}]})),
            Kind::Auth,
        ),
        (
            403,
            error(json!({"code": 403, "status": "PERMISSION_DENIED", "message": "x",
            "details": [{"reason": "BILLING_DISABLED"}]})),
            Kind::Quota,
        ),
        (
            429,
            error(json!({"code": 429, "status": "RESOURCE_EXHAUSTED",
            "message": "You exceeded your current quota, please check your plan and billing details."})),
            Kind::RateLimit,
        ),
        (504, error(json!({"code": 504, "status": "DEADLINE_EXCEEDED", "message": "x"})), Kind::Server),
        (
            400,
            error(json!({"code": 400, "status": "INVALID_ARGUMENT",
            "message": "The input token count (5) exceeds the maximum number of tokens allowed (4)."})),
            Kind::ContextOverflow,
        ),
        // Azure
        (404, error(json!({"code": "DeploymentNotFound", "message": "x"})), Kind::NotFound),
        (429, error(json!({"code": "RateLimitReached", "message": "x"})), Kind::RateLimit),
        (
            400,
            error(json!({"code": "content_filter", "message": "x",
            "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {}}})),
            Kind::ContentFilter,
        ),
        // Mistral
        (
            400,
            json!({"object": "error", "message": "Invalid model: x", "type": "invalid_model", "code": "1500"}),
            Kind::NotFound,
        ),
        (401, json!({"detail": "Invalid API Key"}), Kind::Auth),
        (422, json!({"detail": [{"msg": "Extra inputs are not permitted"}]}), Kind::Invalid),
        // DeepSeek
        (402, error(json!({"message": "Insufficient Balance", "type": "unknown_error"})), Kind::Quota),
        // xAI
        (
            400,
            json!({"code": "invalid-argument", "error": "Incorrect API key provided: xa***Q."}),
            Kind::Auth,
        ),
        (
            400,
            json!({"code": "invalid-argument",
            "error": "The model grok-9 does not exist or your team does not have access to it."}),
            Kind::NotFound,
        ),
        (
            429,
            json!({"code": "Some resource has been exhausted",
            "error": "Your team has either used all available credits or reached its monthly spending limit."}),
            Kind::Quota,
        ),
        // Groq
        (
            413,
            error(json!({"type": "tokens", "code": "rate_limit_exceeded",
            "message": "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7000"})),
            Kind::TooLarge,
        ),
        (498, error(json!({"message": "flex capacity"})), Kind::Overloaded),
        (
            400,
            error(json!({"code": "tool_use_failed", "type": "invalid_request_error", "message": "x"})),
            Kind::Invalid,
        ),
        // OpenRouter
        (402, error(json!({"code": 402, "message": "This request requires more credits"})), Kind::Quota),
        (400, error(json!({"code": 400, "message": "acme/x is not a valid model ID"})), Kind::NotFound),
        (
            403,
            error(json!({"code": 403, "message": "x", "metadata": {"reasons": ["violence"]}})),
            Kind::ContentFilter,
        ),
        (502, error(json!({"code": 502, "message": "Provider returned error"})), Kind::Server),
        // Ollama, llama.cpp, vLLM
        (404, json!({"error": "model 'x' not found"}), Kind::NotFound),
        (
            503,
            json!({"error": "server busy, please try again. maximum pending requests exceeded"}),
            Kind::Overloaded,
        ),
        (
            400,
            error(json!({"code": 400, "type": "exceed_context_size_error", "message": "x", "n_ctx": 9})),
            Kind::ContextOverflow,
        ),
        (500, error(json!({"code": 500, "message": "tools param requires --jinja flag"})), Kind::Invalid),
        (501, error(json!({"code": 501, "type": "not_supported_error", "message": "x"})), Kind::Invalid),
        (
            503,
            error(json!({"code": 503, "type": "unavailable_error", "message": "Loading model"})),
            Kind::Overloaded,
        ),
        (
            400,
            json!({"object": "error", "type": "BadRequestError", "code": 400,
            "message": "This model's maximum context length is 9 tokens"}),
            Kind::ContextOverflow,
        ),
        (400, error(json!({"type": "BadRequestError", "code": 400, "message": "x"})), Kind::Invalid),
        (
            404,
            json!({"object": "error", "type": "NotFoundError", "code": 404, "message": "x"}),
            Kind::NotFound,
        ),
        // The edge of a network
        (413, json!("<html>413 Request Entity Too Large</html>"), Kind::TooLarge),
        (413, error(json!({"message": "prompt is too long: 9 tokens > 8 maximum"})), Kind::ContextOverflow),
    ];
    for (status, body, expected) in cases {
        assert_eq!(failure(status, &body).kind, expected, "{status} {body}");
    }
}

#[test]
fn an_error_that_comes_as_a_success_has_the_kind_of_its_code() {
    let cases = [
        (json!({"error": {"code": 402, "message": "credits"}}), Kind::Quota),
        (json!({"error": {"code": 429, "message": "x"}}), Kind::RateLimit),
        (json!({"error": {"code": "insufficient_quota", "message": "x"}}), Kind::Quota),
        (json!({"object": "error", "message": "x", "type": "BadRequestError", "code": 400}), Kind::Invalid),
        (json!({"object": "error", "message": "x", "type": "invalid_model", "code": "1500"}), Kind::NotFound),
    ];
    for (body, expected) in cases {
        for text in [body.to_string(), format!("data: {body}\n\n")] {
            let error = decode(Api::OpenAiChat, text).response.unwrap_err();
            assert_eq!(error.kind, expected, "{body}");
            assert!(error.message.contains(body.get("error").unwrap_or(&body)["message"].as_str().unwrap()));
        }
    }
}

#[test]
fn a_provider_can_ask_for_a_retry_and_forbid_one() {
    let failure = |status, body: &str, headers: &[(&str, &str)]| {
        let header = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        from_response(status, &header, body.as_bytes(), Timestamp::UNIX_EPOCH)
    };
    let (yes, no) = (("x-should-retry", "true"), ("x-should-retry", "false"));
    assert!(failure(429, "", &[yes]).is_passing() && !failure(429, "", &[no]).is_passing());
    assert_eq!(failure(429, "", &[no]).kind, Kind::RateLimit, "another model may still be asked");
    assert!(failure(400, "", &[yes]).is_passing() && !failure(400, "", &[]).is_passing());
    let no_money = r#"{"error": {"code": "insufficient_quota"}}"#;
    assert!(!failure(429, no_money, &[yes]).is_passing());
    assert!(!failure(401, "", &[yes]).is_passing());
    // OpenRouter refuses for a moment while other requests hold the rest of the credit.
    assert_eq!(failure(402, "", &[("retry-after", "3")]).kind, Kind::RateLimit);
}

#[test]
fn a_wait_that_only_the_message_names_is_read() {
    for (text, milliseconds) in [
        ("Rate limit reached. Please try again in 11.054s. Visit", 11_054),
        ("Please try again in 20ms.", 20),
        ("please try again in 6m0s.", 360_000),
        ("Please try again in 1h2m3s", 3_723_000),
    ] {
        let error = failure(429, json!({"error": {"code": "rate_limit_exceeded", "message": text}}));
        assert_eq!(error.retry_after, Some(Duration::from_millis(milliseconds)), "{text}");
    }
    for text in ["Please try again in a while", "Please try again in ", "try again in 5 fortnights"] {
        assert_eq!(failure(429, json!({"error": {"message": text}})).retry_after, None, "{text}");
    }
}

#[test]
fn the_wait_is_read_from_seconds_milliseconds_dates_and_details() {
    assert_eq!(wait(&[("retry-after", "20")]), Some(Duration::from_secs(20)));
    assert_eq!(wait(&[("retry-after", " 0.5 ")]), Some(Duration::from_millis(500)));
    assert_eq!(wait(&[("retry-after-ms", "1500"), ("retry-after", "2")]), Some(Duration::from_millis(1_500)));
    assert_eq!(wait(&[("retry-after-ms", "0"), ("retry-after", "1")]), Some(Duration::from_secs(1)));
    let date = ("retry-after", "Thu, 01 Jan 2026 00:00:02 GMT");
    assert_eq!(wait(&[date]), Some(Duration::from_secs(2)));
    assert_eq!(wait(&[date, ("date", "Thu, 01 Jan 2026 00:00:01 GMT")]), Some(Duration::from_secs(1)));
    assert_eq!(wait(&[date, ("date", "Thu, 01 Jan 2026 00:01:00 GMT")]), Some(Duration::ZERO));
    assert!(
        wait(&[("retry-after", "Wed, 21 Oct 2037 07:28:00 GMT")]).unwrap() > Duration::from_secs(300_000_000)
    );
    assert_eq!(wait(&[("retry-after", "99999999999999999999")]), Some(Duration::MAX));
    for unreadable in ["soon", "-5", "", "NaN", "Thu, 32 Jan 2026 00:00:02 GMT"] {
        assert_eq!(wait(&[("retry-after", unreadable)]), None, "{unreadable}");
    }
    let details = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "48.5s"}]);
    let error = failure(429, json!({"error": {"message": "x", "details": details}}));
    assert_eq!(error.retry_after, Some(Duration::from_millis(48_500)));
}

#[test]
fn an_error_inside_a_stream_has_its_own_kind_and_the_usage_so_far() {
    let (start, _) = ANTHROPIC.split_once("event: message_delta").unwrap();
    let event = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let decoded = decode(Api::Anthropic, start.to_owned() + event);
    let error = decoded.response.unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (Kind::Overloaded, "Overloaded"));
    assert_eq!(error.cost.reported().copied(), Some(usage(10, 1, 7, 5, 0)));
    assert_eq!(decoded.text, "Hi 🚀", "what came before is given out");
}

#[test]
fn an_error_is_found_wherever_a_stream_or_an_answer_has_it() {
    let of = |api: Api, body: &str| {
        let error = decode(api, body).response.unwrap_err();
        (error.kind, error.message)
    };
    let boom = |kind: Kind| (kind, "boom".to_owned());
    assert_eq!(of(Api::OpenAiChat, "error: {\"error\":{\"message\":\"boom\"}}\n\n"), boom(Kind::Server));
    assert_eq!(of(Api::OpenAiChat, "event: error\ndata: boom\n\n"), boom(Kind::Server));
    let invalid =
        "data: {\"error\":{\"message\":\"boom\",\"type\":\"invalid_request_error\",\"status_code\":400}}\n\n";
    assert_eq!(of(Api::OpenAiChat, invalid), boom(Kind::Invalid));
    assert_eq!(
        of(Api::OpenAiChat, "data: {\"error\":{\"message\":\"boom\",\"code\":429}}\n\n"),
        boom(Kind::RateLimit)
    );
    assert_eq!(of(Api::Ollama, "{\"error\":\"boom\"}\n"), boom(Kind::Server));
    assert_eq!(
        of(Api::Gemini, "[{\"error\":{\"code\":503,\"message\":\"boom\",\"status\":\"UNAVAILABLE\"}}]"),
        boom(Kind::Overloaded)
    );
    let whole = "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"boom\"}}";
    assert_eq!(of(Api::Anthropic, whole), boom(Kind::Overloaded));
    let plain = "data: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"boom\"}\n\n";
    assert_eq!(of(Api::OpenAiResponses, plain), boom(Kind::Server));
    let failed = json!({"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "boom"},
        "usage": {"input_tokens": 3}});
    let event = format!("data: {}\n\n", json!({"type": "response.failed", "response": failed}));
    assert_eq!(of(Api::OpenAiResponses, &event), boom(Kind::RateLimit));
    assert_eq!(
        decode(Api::OpenAiResponses, &event).response.unwrap_err().cost,
        AttemptCost::Known(Box::new(usage(3, 0, 0, 0, 0)))
    );
}

#[test]
fn what_is_no_answer_is_a_cut_one() {
    for (api, body) in [
        (Api::Anthropic, ""),
        (Api::Anthropic, "\n\n"),
        (Api::Anthropic, "<html>login</html>"),
        (Api::OpenAiChat, "{}"),
        (Api::OpenAiChat, "{\"choices\":[]}"),
        (Api::OpenAiChat, "data: {not json}\n\ndata: [DONE]\n\n"),
        (Api::OpenAiResponses, "[]"),
        (Api::Gemini, "null"),
        (Api::Ollama, "{\"done\":false}\n"),
    ] {
        assert_eq!(decode(api, body).response.unwrap_err().kind, Kind::Truncated, "{api:?} {body}");
    }
    assert!(
        decode(Api::Anthropic, "<html>login</html>").response.unwrap_err().message.contains("<html>login")
    );
}
