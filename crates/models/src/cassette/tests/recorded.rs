//! What a recording holds.

use super::*;

#[tokio::test]
async fn an_exchange_is_one_readable_line() {
    let place = Place::new();

    place.record(&[("hi", says(&[b"data: one\n\n", b"data: two\n\n"]))]).await;

    insta::assert_snapshot!(place.content(), @r#"
    {"llm_do_cassette":1}
    {"number":1,"request":{"method":"POST","url":"https://api.example:8443/v1/messages","headers":{"anthropic-version":"2023-06-01","content-type":"application/json"},"body":{"model":"m","messages":[{"role":"user","content":"hi"}]}},"response":{"status":200,"headers":{"content-type":"text/event-stream"},"pieces":["data: one\n\n","data: two\n\n"]}}
    "#);
}

#[tokio::test]
async fn no_key_is_found_in_the_file_wherever_it_was() {
    let place = Place::new();
    let cassette = place.open(CassetteMode::Record);
    cassette.hide(["other-canary-42".to_owned()]);
    let (first, last) = CANARY.split_at(9);
    let mut echo = says(&[b"your key ", first.as_bytes(), last.as_bytes(), b" is bad, other-canary-42 too"]);
    echo.headers.push(("retry-after", CANARY));
    let mut cut = says(&[]);
    cut.body.push(Err(ModelError::new(ModelErrorKind::Network, format!("cut {CANARY}"))));
    let answers = [echo, refuses(ModelErrorKind::Auth, &format!("bad key {CANARY}")), cut];
    let transport = cassette.transport(provider(answers));

    let path = "/v1/models/m:generate?alt=sse&key=sk-canary-0123456789%2Fabc%2Bdef";
    let body = json!({"text": format!("my key is {CANARY}"), "nested": [{CANARY: 1}]});
    let (heard, _) = pieces(transport.send(request(path, &body)).await.unwrap()).await;
    fails(&transport, request(path, &body)).await;
    let (_, error) = pieces(transport.send(request(path, &body)).await.unwrap()).await;

    assert_eq!(
        heard.concat(),
        format!("your key {CANARY} is bad, other-canary-42 too"),
        "the reader sees all"
    );
    assert_eq!(error.unwrap().message, format!("cut {CANARY}"));
    let content = place.content();
    for secret in [CANARY, "0123456789", "canary", "user:"] {
        assert!(!content.contains(secret), "`{secret}` is in {content}");
    }
    assert_eq!(content.lines().count(), 4);
    assert!(content.contains("?alt=sse&key=[removed]"), "{content}");
    assert!(content.contains(r#"["your key ","[removed]",""," is bad, [removed] too"]"#), "{content}");
}

#[cfg(unix)]
#[tokio::test]
async fn only_its_owner_may_read_the_file_even_if_it_was_there_before() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    std::fs::write(&place.path, "{\"llm_do_cassette\":1}\n").unwrap();
    std::fs::set_permissions(&place.path, PermissionsExt::from_mode(0o644)).unwrap();

    place.record(&[("hi", says(&[b"hello"]))]).await;

    assert_eq!(std::fs::metadata(&place.path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(place.replayed().unused().len(), 1);
}

#[tokio::test]
async fn pieces_are_handed_on_while_the_answer_is_recorded() {
    let place = Place::new();
    let (sender, receiver) = futures::channel::mpsc::unbounded();
    struct Slow(Mutex<Option<ByteStream>>);
    impl Transport for Slow {
        fn send(&self, _: Request<Chunks>) -> BoxFuture<'_, Result<Response<ByteStream>, ModelError>> {
            let body = self.0.lock().take().unwrap();
            std::future::ready(Ok(Response::new(body))).boxed()
        }
    }
    let inner = Arc::new(Slow(Mutex::new(Some(receiver.boxed()))));
    let transport = place.open(CassetteMode::Record).transport(inner);

    let mut body = transport.send(prompt("hi")).await.unwrap().into_body();
    sender.unbounded_send(Ok(Bytes::from("one"))).unwrap();
    assert_eq!(body.next().now_or_never().flatten().unwrap().unwrap(), "one");
    assert!(body.next().now_or_never().is_none());
    assert!(!place.path.exists(), "an open exchange is not in the file");

    drop(sender);
    assert_eq!(body.next().now_or_never(), Some(None));
    assert_eq!(place.content().lines().count(), 2, "an exchange is in the file as soon as it ended");
}

#[tokio::test]
async fn an_exchange_is_kept_though_its_reader_stopped_early() {
    let place = Place::new();
    let transport = place.open(CassetteMode::Record).transport(provider([says(&[b"one", b"two"])]));

    let mut body = transport.send(prompt("hi")).await.unwrap().into_body();
    body.next().await.unwrap().unwrap();
    drop(body);

    let replayed = place.replayed().transport(nobody());
    let (heard, end) = pieces(replayed.send(prompt("hi")).await.unwrap()).await;
    assert_eq!(heard, ["one"]);
    let end = end.expect("whoever reads on must learn that there was more");
    assert_eq!(
        (end.kind, end.message.as_str()),
        (ModelErrorKind::Network, "the recorded answer ends here, since it was not read to its end")
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_is_noticed_before_the_first_request() {
    let cassette = Cassette::open("/dev/full", CassetteMode::Record);
    let error = cassette.err().expect("a full disk must be noticed");
    assert!(error.to_string().starts_with("the cassette `/dev/full` cannot be written"), "{error}");
}

#[tokio::test]
async fn a_recording_goes_on_behind_what_an_earlier_process_recorded() {
    let place = Place::new();
    let record = async |prompts: &[&str]| {
        let cassette = place.open(CassetteMode::Append);
        assert!(!cassette.is_replaying());
        let answers = prompts.iter().map(|_| says(&[b"hello"]));
        let transport = cassette.transport(provider(answers));
        for text_of in prompts {
            text(&transport, prompt(text_of)).await;
        }
        assert_eq!(cassette.unused(), Vec::<String>::new());
    };
    record(&["one", "two"]).await;
    // The process was killed while it wrote the third line.
    let whole = place.content();
    std::fs::write(&place.path, format!("{whole}{{\"number\":3,\"requ")).unwrap();
    record(&["three"]).await;
    record(&[]).await;

    let content = place.content();
    assert!(content.starts_with(&whole), "{content}");
    assert_eq!(content.lines().count(), 4);
    assert!(content.lines().last().unwrap().starts_with("{\"number\":3,"), "{content}");
    assert_eq!(place.replayed().unused().len(), 3);
}
