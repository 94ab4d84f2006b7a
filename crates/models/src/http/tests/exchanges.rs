//! What goes well.

use tokio::io::AsyncWriteExt;

use super::server::{Server, answer_all};
use super::*;

const HELLO: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nhello";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";

#[tokio::test]
async fn requests_one_after_another_share_a_connection() {
    let server = Server::answering(CHUNKED).await;
    let transport = transport();

    for _ in 0..5 {
        assert_eq!(post(&transport, &server.address(), "{}").await.unwrap(), (200, "hello".to_owned()));
    }

    assert_eq!((server.connections(), server.requests().len()), (1, 5));
}

#[tokio::test]
async fn a_request_goes_out_as_it_was_built() {
    let server = Server::answering(HELLO).await;

    post(&transport(), &server.address(), r#"{"a":1}"#).await.unwrap();

    let expected = format!(
        "POST /v1/messages HTTP/1.1\r\nx-api-key: canary-key\r\nhost: 127.0.0.1:{}\r\n\
         content-length: 7\r\n\r\n{{\"a\":1}}",
        server.port
    );
    assert_eq!(server.requests(), [expected]);
}

#[tokio::test]
async fn a_large_body_of_many_pieces_has_its_exact_length() {
    let server = Server::answering(HELLO).await;
    let mut chunks = Chunks::default();
    (0..3_000).for_each(|index| chunks.push(format!("{index:01000}")));

    let request = http::Request::post(server.address()).body(chunks).unwrap();
    transport().send(request).await.unwrap();

    let requests = server.requests();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-length: 3000000"), "{head}");
    assert_eq!(body.len(), 3_000_000);
    assert!(body.ends_with("02999"));
}

#[tokio::test]
async fn a_connection_that_the_server_closed_while_it_was_idle_is_replaced() {
    let server = Server::start(async |mut stream: tokio::net::TcpStream, _, log: super::server::Log| {
        log.read(&mut stream).await;
        stream.write_all(HELLO.as_bytes()).await.unwrap();
    })
    .await;
    let transport = transport();

    for _ in 0..20 {
        assert_eq!(post(&transport, &server.address(), "{}").await.unwrap().1, "hello");
    }

    assert_eq!((server.connections(), server.requests().len()), (20, 20));
}

#[tokio::test]
async fn pieces_arrive_before_the_body_ends() {
    let (go_on, waits) = tokio::sync::oneshot::channel::<()>();
    let waits = std::sync::Mutex::new(Some(waits));
    let server = Server::start(move |mut stream, _, log| {
        let waits = waits.lock().unwrap().take();
        async move {
            log.read(&mut stream).await;
            stream.write_all(&CHUNKED.as_bytes()[..CHUNKED.len() - 12]).await.unwrap();
            waits.unwrap().await.unwrap();
            stream.write_all(&CHUNKED.as_bytes()[CHUNKED.len() - 12..]).await.unwrap();
        }
    })
    .await;

    let request = http::Request::post(server.address()).body(Chunks::default()).unwrap();
    let mut body = transport().send(request).await.unwrap().into_body();

    assert_eq!(body.try_next().await.unwrap().unwrap(), "hel");
    go_on.send(()).unwrap();
    assert_eq!(body.try_next().await.unwrap().unwrap(), "lo");
    assert_eq!(body.try_next().await.unwrap(), None);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let server =
        Server::answering("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n")
            .await;

    let answer = post(&transport(), &server.address(), "{}").await.unwrap();

    assert_eq!(answer, (302, String::new()));
}

#[tokio::test]
async fn requests_at_the_same_time_use_connections_of_their_own() {
    let server = Server::start(|stream, _, log| answer_all(stream, log, HELLO)).await;
    let (transport, address) = (transport(), server.address());

    let answers = futures::future::join_all((0..20).map(|_| post(&transport, &address, "{}"))).await;

    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(server.requests().len(), 20);
}
