//! How a replay answers.

use super::*;

#[tokio::test]
async fn bodies_come_in_the_same_pieces_with_status_and_headers() {
    let place = Place::new();
    let mut limited = says(&[b"{\"error\":", b"\"slow down\"}"]);
    limited.status = 429;
    limited.headers = vec![("content-type", "application/json"), ("retry-after", "7"), ("server", "x")];
    let rocket = "🚀".as_bytes();
    place
        .record(&[("a", limited), ("b", says(&[b"gr\xc3", b"\xbc\xc3\x9fe ", &rocket[..1], &rocket[1..]]))])
        .await;

    let cassette = place.replayed();
    let transport = cassette.transport(nobody());
    let refused = transport.send(prompt("a")).await.unwrap();
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers().len(), 2);
    assert_eq!(refused.headers()["retry-after"], "0", "nobody waits for what was recorded");
    assert!(place.content().contains(r#""retry-after":"7""#));
    assert_eq!(pieces(refused).await, (vec!["{\"error\":".to_owned(), "\"slow down\"}".to_owned()], None));
    let said: Vec<Bytes> =
        transport.send(prompt("b")).await.unwrap().into_body().try_collect().await.unwrap();
    assert_eq!(said, [&b"gr\xc3"[..], b"\xbc\xc3\x9fe ", &rocket[..1], &rocket[1..]]);
    assert!(cassette.unused().is_empty() && cassette.warnings().is_empty());
}

fn limited(headers: &[(&'static str, &'static str)]) -> Answer {
    Answer { status: 429, headers: headers.to_vec(), ..says(&[b"{}"]) }
}

#[tokio::test]
async fn what_was_waited_out_is_not_waited_for_again() {
    let place = Place::new();
    let long = limited(&[("retry-after", "600")]);
    let short = limited(&[("retry-after-ms", "900"), ("retry-after", "1")]);
    place.record(&[("a", long.clone()), ("a", short), ("a", says(&[b"hello"])), ("b", long)]).await;

    let transport = place.replayed().transport(nobody());

    let mut waits = Vec::new();
    for text in ["a", "a", "a", "b"] {
        let answer = transport.send(prompt(text)).await.unwrap();
        assert!(!answer.headers().contains_key("retry-after-ms"));
        waits.push(answer.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned()));
    }
    // Who did not ask again then, since the wait was too long, does not ask again now.
    assert_eq!(waits, [Some("0".to_owned()), Some("0".to_owned()), None, Some("600".to_owned())]);
}

#[tokio::test]
async fn a_difference_late_in_a_long_line_is_shown() {
    let place = Place::new();
    let long = |word: &str| format!("{}{word}{}", "same ".repeat(2_000), " and so on".repeat(500));
    place.record(&[(&long("before"), says(&[b"1"]))]).await;

    let error = fails(&place.replayed().transport(nobody()), prompt(&long("after"))).await;

    let removed = error.message.lines().find(|line| line.starts_with('-')).unwrap();
    let added = error.message.lines().find(|line| line.starts_with('+')).unwrap();
    assert!(removed.starts_with("-…") && removed.contains("same before and so on"), "{removed}");
    assert!(added.starts_with("+…") && added.contains("same after and so on"), "{added}");
    assert!(removed.chars().count() <= 170 && added.chars().count() <= 170);
}

#[tokio::test]
async fn a_failed_request_and_a_cut_body_fail_again() {
    let place = Place::new();
    let mut cut = says(&[b"half"]);
    cut.body.push(Err(ModelError::new(ModelErrorKind::Network, "reset")));
    place.record(&[("a", refuses(ModelErrorKind::Network, "refused")), ("b", cut)]).await;

    let transport = place.replayed().transport(nobody());

    let refused = ModelError::new(ModelErrorKind::Network, "refused").not_charged();
    assert_eq!(fails(&transport, prompt("a")).await, refused);
    let (heard, end) = pieces(transport.send(prompt("b")).await.unwrap()).await;
    assert_eq!(heard, ["half"]);
    assert_eq!(end, Some(ModelError::new(ModelErrorKind::Network, "reset")));
}

#[tokio::test]
async fn requests_are_answered_by_what_they_ask_in_any_order() {
    let place = Place::new();
    let talk: Vec<(String, Answer)> =
        (0..6).map(|index| (format!("ask {index}"), says(&[format!("say {index}").as_bytes()]))).collect();
    let talk: Vec<(&str, Answer)> =
        talk.iter().map(|(text, answer)| (text.as_str(), answer.clone())).collect();
    place.record(&talk).await;

    let cassette = place.replayed();
    let transport = cassette.transport(nobody());
    for index in [4, 0, 5, 2] {
        assert_eq!(text(&transport, prompt(&format!("ask {index}"))).await, format!("say {index}"));
    }

    assert_eq!(cassette.unused(), ["line 3: POST /v1/messages", "line 5: POST /v1/messages"]);
}

#[tokio::test]
async fn equal_requests_are_answered_in_the_order_in_which_they_began() {
    let place = Place::new();
    let cassette = place.open(CassetteMode::Record);
    let recording = cassette.transport(provider([says(&[b"first"]), says(&[b"second"])]));
    let first = recording.send(prompt("again")).await.unwrap();
    let second = recording.send(prompt("again")).await.unwrap();
    pieces(second).await;
    pieces(first).await;

    let transport = place.replayed().transport(nobody());

    assert_eq!(text(&transport, prompt("again")).await, "first");
    assert_eq!(text(&transport, prompt("again")).await, "second");
    let error = fails(&transport, prompt("again")).await;
    assert_eq!(error.kind, ModelErrorKind::Invalid);
    insta::assert_snapshot!(place.message_of(&error), @r"
    the cassette `FILE` has no more answers to this request, only 2: POST /v1/messages
    no recorded exchange is left
    to record anew, use `--cassette-mode record`
    ");
}

#[tokio::test]
async fn host_key_and_the_order_of_fields_do_not_matter() {
    let place = Place::new();
    let recording = place.open(CassetteMode::Record).transport(provider([says(&[b"hello"])]));
    text(&recording, request("/v1?key=abcdefgh&a=1", &json!({"a": 1, "b": [2]}))).await;

    let mut body = Chunks::default();
    body.push(r#"{ "b": [2],"#);
    body.push(r#" "a": 1 }"#);
    let other = Request::post("http://127.0.0.1:9/v1?key=otherkey&a=1").body(body).unwrap();

    assert_eq!(text(&place.replayed().transport(nobody()), other).await, "hello");
}

#[tokio::test]
async fn a_key_that_is_a_word_of_the_prompt_does_not_matter() {
    let place = Place::new();
    let body = json!({"text": "an example-key, or none"});
    let with_key = |key: &str| {
        let mut request = request("/v1", &body);
        request.headers_mut().insert("x-api-key", key.try_into().unwrap());
        request
    };
    let recording = place.open(CassetteMode::Record).transport(provider([says(&[b"1"]), says(&[b"2"])]));
    text(&recording, with_key("none")).await;
    text(&recording, with_key("a-real-key-of-some-length")).await;

    let transport = place.replayed().transport(nobody());

    assert_eq!(text(&transport, with_key("example-key")).await, "1");
    assert_eq!(text(&transport, with_key("none")).await, "2");
}

#[tokio::test]
async fn a_request_that_was_not_recorded_shows_how_it_differs_from_the_nearest() {
    let place = Place::new();
    place.record(&[("first question", says(&[b"1"])), ("second question", says(&[b"2"]))]).await;
    let asked = json!({
        "messages": [{"role": "user", "content": "second question"}, {"role": "user", "content": "more"}],
        "model": "m",
    });

    let error = fails(&place.replayed().transport(nobody()), request("/v1/messages", &asked)).await;

    assert_eq!(error.kind, ModelErrorKind::Invalid);
    insta::assert_snapshot!(place.message_of(&error), @r#"
    the cassette `FILE` has no answer to this request: POST /v1/messages
    the nearest that is left is in line 3; it differs so:
    @@ -5,4 +5,8 @@
           "content": "second question",
           "role": "user"
    +    },
    +    {
    +      "content": "more",
    +      "role": "user"
         }
       ],
    to record anew, use `--cassette-mode record`
    "#);
}

#[tokio::test]
async fn a_long_difference_is_cut() {
    let place = Place::new();
    let recording = place.open(CassetteMode::Record).transport(provider([says(&[])]));
    text(&recording, request("/v1", &json!((0..500).collect::<Vec<_>>()))).await;

    let asked = json!((500..1000).map(|number| "x".repeat(number)).collect::<Vec<_>>());
    let error = fails(&place.replayed().transport(nobody()), request("/v1", &asked)).await;

    let lines: Vec<&str> = error.message.lines().collect();
    assert_eq!(lines.len(), 2 + 40 + 1);
    assert!(lines[41].starts_with("… and ") && lines[41].ends_with(" more lines"), "{}", lines[41]);
    assert!(lines.iter().all(|line| line.chars().count() <= 200));
}

#[tokio::test]
async fn another_path_is_never_answered_for_it() {
    let place = Place::new();
    place.record(&[("hi", says(&[b"hello"]))]).await;
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});

    for strict in [true, false] {
        let cassette = place.open(CassetteMode::Replay { strict });
        let error = fails(&cassette.transport(nobody()), request("/v2/messages", &body)).await;
        assert!(error.message.contains("-POST /v1/messages\n+POST /v2/messages"), "{error}");
        assert_eq!(cassette.unused().len(), 1);
    }
}

#[tokio::test]
async fn a_lenient_replay_gives_the_nearest_answer_and_says_so() {
    let place = Place::new();
    place.record(&[("first question", says(&[b"1"])), ("second question", says(&[b"2"]))]).await;

    let cassette = place.open(CassetteMode::Replay { strict: false });
    let transport = cassette.transport(nobody());
    let changed =
        json!({"model": "m", "max": 9, "messages": [{"role": "user", "content": "second question"}]});

    assert_eq!(text(&transport, request("/v1/messages", &changed)).await, "2");
    assert_eq!(cassette.unused(), ["line 2: POST /v1/messages"]);
    let warnings = cassette.warnings();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("+  \"max\": 9,"), "{}", warnings[0]);
    assert!(warnings[0].ends_with("line 3 answers it all the same"), "{}", warnings[0]);
}

#[tokio::test]
async fn many_requests_in_parallel_each_get_their_own_answer() {
    let place = Place::new();
    let names: Vec<String> = (0..50).map(|index| format!("ask {index}")).collect();
    let talk: Vec<(&str, Answer)> =
        names.iter().map(|name| (name.as_str(), says(&[name.replace("ask", "say").as_bytes()]))).collect();
    place.record(&talk).await;

    let cassette = place.replayed();
    let transport = cassette.transport(nobody());
    let asked = names.iter().rev().map(|name| {
        let transport = Arc::clone(&transport);
        let name = name.clone();
        tokio::spawn(async move { (text(&transport, prompt(&name)).await, name) })
    });

    for answer in futures::future::join_all(asked).await {
        let (said, name) = answer.unwrap();
        assert_eq!(said, name.replace("ask", "say"));
    }
    assert!(cassette.unused().is_empty());
}

#[tokio::test]
async fn a_run_that_goes_on_gets_what_an_earlier_process_has_not_used() {
    let place = Place::new();
    place.record(&[("hi", says(&[b"one"])), ("hi", says(&[b"two"]))]).await;
    let cassette = place.replayed();
    cassette.pass_over(1);
    assert_eq!(text(&cassette.transport(nobody()), prompt("hi")).await, "two");
    assert_eq!(cassette.unused(), Vec::<String>::new());
}
