//! Proxies: their addresses come from the user's variables.

use llm_do_core::ModelErrorKind::{Invalid, Network};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::server::{Log, Server, answer_all};
use super::*;
use crate::Environment;

const HELLO: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

fn environment(variables: &[(&str, String)]) -> Environment {
    variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn transport_with(variables: &[(&str, String)]) -> HttpTransport {
    HttpTransport::new(HttpSettings::from_environment(&environment(variables))).unwrap()
}

#[tokio::test]
async fn an_http_proxy_gets_the_whole_address_and_its_own_password() {
    let proxy = Server::answering(HELLO).await;
    for variable in ["http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"] {
        let transport = transport_with(&[(variable, format!("http://ann:s%20t@127.0.0.1:{}", proxy.port))]);
        let answer = post(&transport, "http://provider.invalid/v1?a=b", "{}").await.unwrap();
        assert_eq!(answer, (200, "hello".to_owned()));
    }

    let request = &proxy.requests()[3];
    assert!(request.starts_with("POST http://provider.invalid/v1?a=b HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nhost: provider.invalid\r\n"), "{request}");
    assert!(request.contains("\r\nproxy-authorization: Basic YW5uOnMgdA==\r\n"), "{request}");
}

#[tokio::test]
async fn https_goes_through_a_tunnel_that_is_asked_for_by_connect() {
    let proxy = Server::start(async |mut stream: TcpStream, _, log: Log| {
        log.read(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
        // What comes through the tunnel is the first message of a TLS handshake.
        let mut first = [0; 3];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(first, [22, 3, 1]);
    })
    .await;
    let transport = transport_with(&[("HTTPS_PROXY", format!("http://ann:pw@127.0.0.1:{}", proxy.port))]);

    let error = fails(&transport, "https://provider.invalid/v1").await;

    assert_eq!(error.kind, Network);
    assert_eq!(error.message, "provider.invalid closed the connection during the TLS handshake");
    let request = &proxy.requests()[0];
    assert!(request.starts_with("CONNECT provider.invalid:443 HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("Proxy-Authorization: Basic YW5uOnB3\r\n"), "{request}");
    assert!(!request.contains("canary-key"), "{request}");
}

#[tokio::test]
async fn a_proxy_that_refuses_the_tunnel_is_named() {
    let proxy =
        Server::answering("HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n").await;
    let transport = transport_with(&[("HTTPS_PROXY", format!("http://127.0.0.1:{}", proxy.port))]);

    let error = fails(&transport, "https://provider.invalid/v1").await;

    let proxy = format!("the proxy 127.0.0.1:{} opened no connection to provider.invalid", proxy.port);
    assert!(error.message.starts_with(&proxy), "{error}");
    assert!(error.message.contains("authorization required"), "{error}");
    assert_eq!(error.cost, AttemptCost::Nothing);
}

#[tokio::test]
async fn a_socks_proxy_is_told_the_name_of_the_host() {
    let proxy = Server::start(async |mut stream: TcpStream, _, log: Log| {
        let mut greeting = [0; 3];
        stream.read_exact(&mut greeting).await.unwrap();
        assert_eq!(greeting, [5, 1, 0]);
        stream.write_all(&[5, 0]).await.unwrap();
        let mut request = [0; 4 + 1 + 16 + 2];
        stream.read_exact(&mut request).await.unwrap();
        assert_eq!(&request[..4], [5, 1, 0, 3]);
        assert_eq!(&request[5..21], b"provider.invalid");
        assert_eq!(request[21..], 80_u16.to_be_bytes());
        stream.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 80]).await.unwrap();
        answer_all(stream, log, HELLO).await;
    })
    .await;
    let transport = transport_with(&[("ALL_PROXY", format!("socks5h://127.0.0.1:{}", proxy.port))]);

    let answer = post(&transport, "http://provider.invalid/v1", "{}").await.unwrap();

    assert_eq!(answer, (200, "hello".to_owned()));
    assert!(proxy.requests()[0].starts_with("POST /v1 HTTP/1.1\r\n"));
}

#[tokio::test]
async fn hosts_in_no_proxy_are_reached_directly() {
    let proxy = Server::answering(HELLO).await;
    let transport = transport_with(&[
        ("HTTP_PROXY", format!("http://127.0.0.1:{}", proxy.port)),
        ("no_proxy", "other.example, provider.invalid".to_owned()),
    ]);

    let error = fails(&transport, "http://eu.provider.invalid/v1").await;

    assert_eq!(
        error.message,
        "could not resolve host eu.provider.invalid; are you offline, or is the name misspelled?"
    );
    assert_eq!(post(&transport, "http://elsewhere.invalid/v1", "{}").await.unwrap().0, 200);
    assert_eq!(proxy.requests().len(), 1);
}

#[tokio::test]
async fn this_machine_is_never_reached_through_a_proxy() {
    let (proxy, server) = (Server::answering(HELLO).await, Server::answering(HELLO).await);
    let transport = transport_with(&[("ALL_PROXY", format!("http://127.0.0.1:{}", proxy.port))]);

    post(&transport, &server.address(), "{}").await.unwrap();
    post(&transport, &format!("http://localhost:{}/", server.port), "{}").await.unwrap();

    assert_eq!((proxy.connections(), server.requests().len()), (0, 2));
}

#[tokio::test]
async fn a_proxy_that_cannot_be_reached_is_told_from_the_provider() {
    let transport = transport_with(&[("ALL_PROXY", "http://proxy.invalid:3128".to_owned())]);

    for address in ["http://provider.invalid/", "https://provider.invalid/"] {
        let error = fails(&transport, address).await;
        assert_eq!(
            error.message,
            "the proxy cannot be used: could not resolve host proxy.invalid; are you offline, or is the name misspelled?"
        );
        assert_eq!((error.kind, error.cost), (Network, AttemptCost::Nothing));
    }
}

#[test]
fn a_proxy_that_cannot_be_read_is_refused_without_showing_its_password() {
    for proxy in ["http://user:canary@", "socks4://user:canary@127.0.0.1:1", "gopher://canary"] {
        let settings = HttpSettings { https_proxy: Some(proxy.to_owned()), ..HttpSettings::default() };
        let shown = format!("{settings:?}");
        let error = HttpTransport::new(settings).err().expect("the proxy must be refused");
        assert_eq!(error.kind, Invalid);
        assert!(error.message.contains("`HTTPS_PROXY`"), "{error}");
        assert!(!error.message.contains("canary") && !shown.contains("canary"), "{error} {shown}");
    }
}

#[test]
fn a_project_chooses_no_proxy() {
    let variables = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"];
    let variables = variables.map(|name| (name.to_owned(), "http://evil.example".to_owned()));
    let environment = Environment::empty().with_project(variables);

    assert_eq!(HttpSettings::from_environment(&environment), HttpSettings::default());
}
