//! TLS, with certificates made for the test.

use std::path::PathBuf;
use std::sync::Arc;

use llm_do_core::ModelErrorKind::{Invalid, Network};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::server::{Log, Server, answer_all};
use super::*;
use crate::Environment;

const HELLO: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

/// Starts a server with a certificate for a name; returns it with the certificate's file.
async fn secured_server(name: &str, directory: &tempfile::TempDir) -> (Server, PathBuf) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let file = directory.path().join("certificate.pem");
    std::fs::write(&file, made.cert.pem()).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = Server::start(move |stream: TcpStream, _, log: Log| {
        let acceptor = acceptor.clone();
        async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                answer_all(stream, log, HELLO).await;
            }
        }
    })
    .await;
    (server, file)
}

fn trusting(variable: &str, path: &std::path::Path) -> HttpTransport {
    let variables = [(variable.to_owned(), path.to_str().unwrap().to_owned())];
    let environment: Environment = variables.into_iter().collect();
    HttpTransport::new(HttpSettings::from_environment(&environment)).unwrap()
}

#[tokio::test]
async fn a_certificate_of_an_unknown_issuer_is_refused_for_good() {
    let directory = tempfile::tempdir().unwrap();
    let (server, _) = secured_server("localhost", &directory).await;

    let error = fails(&transport(), &format!("https://localhost:{}/", server.port)).await;

    assert_eq!(error.kind, Invalid);
    assert!(error.message.starts_with("certificate of localhost is not trusted"), "{error}");
    assert!(error.message.contains("SSL_CERT_FILE"), "{error}");
    assert_eq!(error.cost, AttemptCost::Nothing);
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_certificate_in_the_users_file_or_directory_is_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let (server, file) = secured_server("localhost", &directory).await;
    let address = format!("https://localhost:{}/v1", server.port);

    for transport in [trusting("SSL_CERT_FILE", &file), trusting("SSL_CERT_DIR", directory.path())] {
        assert_eq!(post(&transport, &address, "{}").await.unwrap(), (200, "hello".to_owned()));
        assert_eq!(post(&transport, &address, "{}").await.unwrap(), (200, "hello".to_owned()));
    }

    assert_eq!((server.connections(), server.requests().len()), (2, 4));
}

#[tokio::test]
async fn a_certificate_of_another_host_is_refused_though_its_issuer_is_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let (server, file) = secured_server("elsewhere.example", &directory).await;

    let error =
        fails(&trusting("SSL_CERT_FILE", &file), &format!("https://localhost:{}/", server.port)).await;

    assert_eq!(
        (error.kind, error.message.as_str()),
        (Invalid, "certificate of localhost is that of another host")
    );
}

#[tokio::test]
async fn a_certificate_file_that_gives_nothing_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let (server, _) = secured_server("localhost", &directory).await;
    let missing = directory.path().join("missing.pem");

    let error =
        fails(&trusting("SSL_CERT_FILE", &missing), &format!("https://localhost:{}/", server.port)).await;

    assert_eq!(error.kind, Invalid);
    assert!(error.message.starts_with("certificates in `"), "{error}");
    assert!(error.message.contains("missing.pem") && error.message.contains("SSL_CERT_FILE"), "{error}");
}

#[tokio::test]
async fn a_projects_own_variable_adds_no_trust() {
    let directory = tempfile::tempdir().unwrap();
    let (server, file) = secured_server("localhost", &directory).await;
    let variables = [("SSL_CERT_FILE".to_owned(), file.to_str().unwrap().to_owned())];
    let environment = Environment::empty().with_project(variables);
    let transport = HttpTransport::new(HttpSettings::from_environment(&environment)).unwrap();

    let error = fails(&transport, &format!("https://localhost:{}/", server.port)).await;

    assert!(error.message.starts_with("certificate of localhost is not trusted"), "{error}");
}

#[tokio::test]
async fn a_server_without_tls_is_told_from_one_that_is_not_trusted() {
    let server = Server::start(async |mut stream: TcpStream, _, _: Log| {
        let mut first = [0; 3];
        stream.read_exact(&mut first).await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    })
    .await;

    let error = fails(&transport(), &format!("https://127.0.0.1:{}/", server.port)).await;

    let expected = format!("127.0.0.1:{} does not speak TLS: use `http://` in its address", server.port);
    assert_eq!((error.kind, &error.message), (Network, &expected));
    assert_eq!((error.is_passing(), error.cost), (false, AttemptCost::Nothing));
}
