//! What goes wrong on the way.

use std::time::Duration;

use llm_do_core::ModelErrorKind::{Invalid, Network};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::server::{Log, Server};
use super::*;

#[tokio::test]
async fn a_refused_connection_to_this_machine_is_final_and_counts_one_attempt() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);

    let error = fails(&transport(), &format!("http://127.0.0.1:{port}/v1")).await;

    assert_eq!(error.kind, Network);
    assert_eq!(error.message, format!("nothing listens at 127.0.0.1:{port}"));
    assert_eq!((error.is_passing(), error.cost), (false, AttemptCost::Nothing));
}

#[tokio::test]
async fn a_name_without_address_cannot_be_resolved() {
    let error = fails(&transport(), "https://user:canary@no-such-host.invalid/v1?key=canary").await;

    assert_eq!(error.kind, Network);
    assert_eq!(
        error.message,
        "could not resolve host no-such-host.invalid; are you offline, or is the name misspelled?"
    );
    assert_eq!((error.is_passing(), error.cost), (true, AttemptCost::Nothing));
}

#[tokio::test]
async fn an_address_that_is_none_is_not_tried() {
    for address in ["/v1/messages", "ftp://127.0.0.1/v1"] {
        let error = fails(&transport(), address).await;
        assert_eq!(error.kind, Invalid);
        assert!(error.message.contains("`http://` or `https://`"), "{error}");
    }
}

#[tokio::test]
async fn a_reset_before_the_answer_leaves_open_what_was_used() {
    let server = Server::start(async |mut stream: TcpStream, _, log: Log| {
        log.read(&mut stream).await;
        stream.set_zero_linger().unwrap();
    })
    .await;

    let error = fails(&transport(), &server.address()).await;

    assert_eq!(error.kind, Network);
    assert_eq!(error.message, format!("127.0.0.1:{} reset the connection before it answered", server.port));
    assert_eq!(error.cost, AttemptCost::Unknown(None));
}

#[tokio::test]
async fn a_connection_closed_without_an_answer_is_said_so() {
    let server = Server::start(async |mut stream: TcpStream, _, log: Log| {
        log.read(&mut stream).await;
    })
    .await;

    let error = fails(&transport(), &server.address()).await;

    assert_eq!(error.message, format!("127.0.0.1:{} closed the connection before it answered", server.port));
    assert_eq!((error.kind, error.cost), (Network, AttemptCost::Unknown(None)));
}

#[tokio::test]
async fn a_cut_body_ends_with_an_error_after_the_bytes_that_came() {
    for (answer, is_reset) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nhalf", false),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n", false),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhalf", true),
    ] {
        let (go_on, waits) = tokio::sync::watch::channel(false);
        let server = Server::start(move |mut stream: TcpStream, _, log: Log| {
            let mut waits = waits.clone();
            async move {
                log.read(&mut stream).await;
                stream.write_all(answer.as_bytes()).await.unwrap();
                waits.wait_for(|go_on| *go_on).await.unwrap();
                if is_reset {
                    stream.set_zero_linger().unwrap();
                }
            }
        })
        .await;

        let request = http::Request::post(server.address()).body(Chunks::default()).unwrap();
        let mut body = transport().send(request).await.unwrap().into_body();
        assert_eq!(body.try_next().await.unwrap().unwrap(), "half");
        go_on.send(true).unwrap();
        let error = body.try_next().await.unwrap_err();

        let what = if is_reset { "reset" } else { "closed" };
        let words = format!("127.0.0.1:{} {what} the connection in the middle of the answer", server.port);
        assert_eq!((error.kind, error.message, error.cost), (Network, words, AttemptCost::Unknown(None)));
    }
}

#[tokio::test]
async fn an_answer_that_is_no_http_is_said_so() {
    let server = Server::answering("220 mail.example ESMTP\r\n").await;

    let error = fails(&transport(), &server.address()).await;

    assert_eq!(error.kind, Network);
    assert!(error.message.contains("sent what is not HTTP"), "{error}");
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_given_up() {
    let server = Server::start(async |stream: TcpStream, _, _: Log| {
        let _open = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let settings = HttpSettings { connect_timeout: Duration::from_millis(1600), ..HttpSettings::default() };
    let transport = HttpTransport::new(settings).unwrap();

    let error = fails(&transport, &format!("https://127.0.0.1:{}/", server.port)).await;

    let expected = format!(
        "127.0.0.1:{} did not answer the TLS handshake within 800ms and may not speak TLS: use `http://` in its \
         address",
        server.port
    );
    assert_eq!((error.kind, &error.message), (Network, &expected));
    assert_eq!((error.is_passing(), error.cost), (false, AttemptCost::Nothing));
}

#[tokio::test]
async fn a_connection_closed_in_the_handshake_is_final_for_a_port_of_this_machine() {
    let server = Server::start(async |stream: TcpStream, _, _: Log| drop(stream)).await;

    let error = fails(&transport(), &format!("https://127.0.0.1:{}/", server.port)).await;

    let expected = format!(
        "127.0.0.1:{} closed the connection during the TLS handshake and may not speak TLS: use `http://` in its \
         address",
        server.port
    );
    assert_eq!((&error.message, error.is_passing()), (&expected, false));
}
