//! Tests of remote models against a server in memory.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use llm_do_core::{Conversation, Message, ServerTool};
use tokio::time::Instant;

use super::answer::SETTLE_LIMIT;
use super::*;
use crate::Environment;
use crate::provider::DeclaredProvider;

const KEY: &str = "sk-canary-0123456789";

/// A server that always says the same, and remembers the headers that it got.
#[derive(Default)]
struct Server {
    /// What it sends again and again, every second, instead of closing the stream; if empty, nothing.
    keeps_open_with: Option<Bytes>,
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    pieces: Vec<Bytes>,
    got: Mutex<HeaderMap>,
}

impl Transport for Server {
    fn send(&self, request: Request<Chunks>) -> BoxFuture<'_, Result<Response<ByteStream>, ModelError>> {
        *self.got.lock().unwrap() = request.headers().clone();
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(*name, *value);
        }
        let pieces: Vec<_> = self.pieces.iter().cloned().map(Ok).collect();
        let more = stream::iter(self.keeps_open_with.clone()).flat_map(|piece| {
            stream::repeat(piece).filter_map(|piece| async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                (!piece.is_empty()).then_some(Ok(piece))
            })
        });
        Box::pin(async { Ok(response.body(stream::iter(pieces).chain(more).boxed()).unwrap()) })
    }
}

/// Asks a model at a server, and returns what it said.
async fn asked(
    server: Server,
    protocol: &str,
    settings: &ModelSettings,
) -> (Arc<Server>, Result<Vec<ModelPart>, ModelError>) {
    let provider = DeclaredProvider {
        name: "box".into(),
        protocol: protocol.into(),
        base_url: "http://box.lan:9000/nowhere".into(),
        key_env: Some("BOX_KEY".into()),
        headers: BTreeMap::new(),
        is_users: false,
    };
    let keys = [("BOX_KEY".to_owned(), KEY.to_owned())].into_iter().collect::<Environment>();
    let endpoint = Endpoint::declared(&provider, &keys, true).unwrap();
    let profile = ModelProfile { server_tools: &["web_fetch"], ..ModelProfile::default() };
    let server = Arc::new(server);
    let known = KnownSecrets::default();
    known.add(endpoint.secrets.iter().cloned());
    let model = RemoteModel::new("box:small".into(), "small", profile, endpoint, &known, server.clone());
    let conversation = Conversation::from_messages([Arc::new(Message::user("Hello"))]);
    let fetch =
        ServerTool::WebFetch { max_uses: None, allowed_domains: Vec::new(), blocked_domains: Vec::new() };
    let request = ModelRequest {
        instructions: "",
        conversation: &conversation,
        tools: &[],
        server_tools: if protocol == "anthropic" { std::slice::from_ref(&fetch) } else { &[] },
        output_schema: None,
        settings,
        max_output: None,
    };
    let mut session = model.open();
    let parts = match session.request(request).await {
        Ok(parts) => parts.collect::<Vec<_>>().await.into_iter().collect(),
        Err(error) => Err(error),
    };
    (server, parts)
}

async fn refusal(server: Server) -> ModelError {
    asked(server, "openai-chat", &ModelSettings::default()).await.1.unwrap_err()
}

#[tokio::test]
async fn a_model_that_is_not_there_is_named_with_its_address() {
    let body = Bytes::from_static(br#"{"error": {"message": "File Not Found", "code": 404}}"#);
    let refused = refusal(Server { status: 404, pieces: vec![body], ..Server::default() }).await.to_string();
    let place = "`small` was asked for at http://box.lan:9000/nowhere/chat/completions";
    assert!(refused.contains("File Not Found") && refused.contains(place), "{refused}");
}

#[tokio::test]
async fn a_redirect_is_an_error_of_the_address_that_names_the_other_host() {
    let location = vec![("location", "https://me:pw@other.example/v1?key=1")];
    let error = refusal(Server { status: 307, headers: location, ..Server::default() }).await;
    assert_eq!(error.kind, ModelErrorKind::Invalid);
    assert_eq!(
        error.message,
        "HTTP 307: box.lan redirects to other.example, and redirects are not followed; correct the base URL \
         of the provider"
    );
    let error = refusal(Server { status: 301, ..Server::default() }).await;
    assert!(error.message.contains("to another of its addresses"), "{error}");
}

#[tokio::test]
async fn a_packed_answer_is_refused_by_its_encoding() {
    let headers = vec![("content-encoding", "gzip")];
    let error = refusal(Server { status: 200, headers, ..Server::default() }).await;
    assert_eq!(error.kind, ModelErrorKind::Invalid);
    assert!(error.message.contains("box.lan sent an answer with `content-encoding: gzip`"), "{error}");
}

#[tokio::test]
async fn what_a_person_adds_to_a_list_is_appended_to_what_the_protocol_needs() {
    let mut settings = ModelSettings::default();
    settings.extra_headers.insert("Anthropic-Beta".into(), "mine-1,mine-2".into());
    settings.extra_headers.insert("anthropic-version".into(), "2030-01-01".into());
    let (server, _) = asked(Server { status: 500, ..Server::default() }, "anthropic", &settings).await;
    let got = server.got.lock().unwrap();
    assert_eq!(got["anthropic-beta"], "web-fetch-2025-09-10,mine-1,mine-2");
    assert_eq!(got["anthropic-version"], "2030-01-01", "a version is not a list");
}

#[tokio::test]
async fn a_key_that_an_answer_repeats_is_removed_however_it_arrives() {
    let body = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"<{KEY}> sk-canary\"}}}}]}}\n\n\
         data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    );
    let body = Bytes::from(body);
    for cut in 0..body.len() {
        let pieces = vec![body.slice(..cut), body.slice(cut..)];
        let server = Server { status: 200, pieces, ..Server::default() };
        let parts = asked(server, "openai-chat", &ModelSettings::default()).await.1.unwrap();
        let said = parts
            .iter()
            .filter_map(|part| if let ModelPart::Text(text) = part { Some(text.as_str()) } else { None });
        assert_eq!(said.collect::<String>(), "<[removed]> sk-canary", "cut at {cut}");
        let Some(ModelPart::Finished(response)) = parts.last() else { panic!("{parts:?}") };
        assert_eq!(response.message.text(), "<[removed]> sk-canary");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_shows_what_was_held_back_before_its_error() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"two files\"}}]}\n\n";
    let server = Arc::new(Server { status: 200, pieces: vec![body.into()], ..Server::default() });
    let environment: Environment = [("BOX_KEY".to_owned(), KEY.to_owned())].into_iter().collect();
    let provider = DeclaredProvider {
        name: "box".into(),
        protocol: "openai-chat".into(),
        base_url: "http://box.lan:9000/nowhere".into(),
        key_env: Some("BOX_KEY".into()),
        headers: BTreeMap::new(),
        is_users: true,
    };
    let models =
        crate::StandardModels::new(".").environment(environment).provider(provider).transport(server);
    let model = llm_do_core::Models::resolve(&models, "box:small").unwrap();
    let conversation = Conversation::from_messages([Arc::new(Message::user("Hello"))]);
    let request = ModelRequest {
        instructions: "",
        conversation: &conversation,
        tools: &[],
        server_tools: &[],
        output_schema: None,
        settings: &ModelSettings::default(),
        max_output: None,
    };
    let mut session = model.open();
    let parts: Vec<_> = session.request(request).await.unwrap().collect().await;
    let said: Vec<String> = parts.iter().flatten().map(|part| format!("{part:?}")).collect();
    assert_eq!(said, [r#"Text("two file")"#, r#"Text("s")"#]);
    assert!(parts.last().unwrap().is_err());
}

/// What an endpoint sends up to and with the stop reason, and what may follow.
const OPEN_STREAMS: &[(&str, &str, &str)] = &[
    (
        "openai-chat",
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n",
    ),
    (
        "anthropic",
        "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n\
         data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Hi\"}}\n\n\
         data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
        "",
    ),
    (
        "gemini",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]},\"finishReason\":\"STOP\"}],\
         \"usageMetadata\":{\"promptTokenCount\":3,\"candidatesTokenCount\":2}}\n\n",
        "",
    ),
];

#[tokio::test(start_paused = true)]
async fn an_answer_with_its_stop_reason_is_delivered_though_the_stream_stays_open() {
    for (protocol, answer, after) in OPEN_STREAMS {
        for keep_alive in ["", ": keep-alive\n\n"] {
            let started = Instant::now();
            let pieces = [*answer, *after].into_iter().map(Bytes::from).filter(|it| !it.is_empty()).collect();
            let keeps_open_with = Some(Bytes::from(keep_alive));
            let server = Server { status: 200, pieces, keeps_open_with, ..Server::default() };
            let parts = asked(server, protocol, &ModelSettings::default()).await.1.unwrap();
            let Some(ModelPart::Finished(response)) = parts.last() else { panic!("{parts:?}") };
            assert_eq!(response.message.text(), "Hi", "{protocol}");
            assert_eq!((response.usage.input, response.usage.output), (3, 2), "{protocol}");
            assert!(started.elapsed() <= SETTLE_LIMIT * 2, "{protocol}: {:?}", started.elapsed());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_is_never_delivered_with_a_part_of_its_arguments() {
    let chunk = |arguments: &str, more: &str| {
        let call =
            serde_json::json!([{"index": 0, "id": "c", "function": {"name": "f", "arguments": arguments}}]);
        Bytes::from(format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":{call}}}{more}}}]}}\n\n"))
    };
    let finish = ",\"finish_reason\":\"tool_calls\"";
    let whole = r#"{"path": "a", "mode": "b"}"#;
    for end in 0..=whole.len() {
        let pieces = vec![chunk(&whole[..end], finish)];
        let server = Server { status: 200, pieces, keeps_open_with: Some(Bytes::new()), ..Server::default() };
        match asked(server, "openai-chat", &ModelSettings::default()).await.1 {
            Ok(parts) => {
                let Some(ModelPart::Finished(response)) = parts.last() else { panic!("{parts:?}") };
                let call = response.message.tool_calls().next().unwrap();
                assert!(end == 0 || &*call.arguments == whole, "{}", call.arguments);
            }
            Err(error) => assert_eq!(error.kind, ModelErrorKind::Truncated, "{end}"),
        }
    }
}
