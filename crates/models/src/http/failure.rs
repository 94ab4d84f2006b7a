//! Says what went wrong on the way to a provider, in words that a person can act on.
//!
//! The messages name the host and nothing else of the request. An error that came before the request could leave
//! this machine is marked as not charged, so that nothing is counted for it but the attempt.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::time::Duration;

use http::Uri;
use http::uri::Authority;
use hyper_util::client::legacy;
use llm_do_core::{ModelError, ModelErrorKind};
use rustls::{AlertDescription, CertificateError};

use super::proxies::is_this_machine;

/// What to do about a server without TLS.
const USE_HTTP: &str = "use `http://` in its address";

/// Returns whether a server of the provider, not its proxy, seems not to speak TLS.
pub(crate) fn is_without_tls(error: &ModelError) -> bool {
    error.message.ends_with(USE_HTTP) && !error.message.starts_with(PROXY_UNUSABLE)
}

/// How the message about a proxy begins that could not be reached.
const PROXY_UNUSABLE: &str = "the proxy cannot be used";

/// No program has opened the port of an address of this machine.
const NOTHING_LISTENS: &str = "nothing listens at";

/// Returns whether nothing listens at the provider's address on this machine.
pub(crate) fn is_absent(error: &ModelError) -> bool {
    error.message.starts_with(NOTHING_LISTENS)
}

/// No address is known for a host's name.
#[derive(Debug, thiserror::Error)]
#[error("the name is not known")]
pub(super) struct Unresolved;

/// An error of a request that the provider cannot have seen.
pub(super) fn unsent(kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
    ModelError::new(kind, message).not_charged()
}

/// The name of the host has no address.
pub(super) fn unresolved(host: &str) -> ModelError {
    let message = format!("could not resolve host {host}; are you offline, or is the name misspelled?");
    unsent(ModelErrorKind::Network, message)
}

/// Connecting took too long.
pub(super) fn too_slow(address: &Uri, limit: Duration) -> ModelError {
    let host = named(address);
    unsent(ModelErrorKind::Network, format!("no connection to {host} within {limit:?}"))
}

/// No connection could be opened.
pub(super) fn connect_error(error: &(dyn Error + 'static), address: &Uri) -> ModelError {
    if find::<Unresolved>(error).is_some() {
        return unresolved(address.host().unwrap_or_default());
    }
    let host = named(address);
    let kind = find::<io::Error>(error).map(io::Error::kind);
    if kind == Some(ErrorKind::ConnectionRefused) && address.host().is_some_and(is_this_machine) {
        return nothing_listens(host);
    }
    let message = match kind {
        Some(ErrorKind::ConnectionRefused) => format!("connection refused by {host}: nothing listens there"),
        Some(ErrorKind::TimedOut) => format!("connecting to {host} timed out"),
        Some(ErrorKind::ConnectionReset) => format!("{host} reset the connection"),
        _ => format!("could not connect to {host}: {}", deepest(error)),
    };
    unsent(ModelErrorKind::Network, message)
}

/// No program on this machine has opened the port. Waiting does not open it: somebody has to start the server.
fn nothing_listens(host: &str) -> ModelError {
    let error = unsent(ModelErrorKind::Network, format!("{NOTHING_LISTENS} {host}"));
    ModelError { is_final: true, ..error }
}

/// The handshake of TLS failed. A certificate that is not trusted stays so, however often it is tried.
pub(super) fn tls_error(error: &io::Error, address: &Uri) -> ModelError {
    let host = named(address);
    let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        return unfinished_handshake("closed the connection during the TLS handshake", address);
    };
    let message = match (certificate_problem(tls), tls) {
        (Some(problem), _) => {
            let host = address.host().unwrap_or_default();
            return unsent(ModelErrorKind::Invalid, format!("certificate of {host} {problem}"));
        }
        // What it sent is not a message of TLS.
        (None, rustls::Error::InvalidMessage(_)) => format!("{host} does not speak TLS: {USE_HTTP}"),
        (None, _) => format!("the TLS handshake with {host} failed: {tls}"),
    };
    ModelError { is_final: true, ..unsent(ModelErrorKind::Network, message) }
}

/// The host was connected to, and said nothing in the handshake.
pub(super) fn silent_handshake(address: &Uri, limit: Duration) -> ModelError {
    unfinished_handshake(&format!("did not answer the TLS handshake within {limit:?}"), address)
}

/// A server without TLS waits for the end of the request that it takes the handshake for, or closes the connection. So
/// may an overloaded host, but public ones have the usual port: only they are worth another attempt.
fn unfinished_handshake(what: &str, address: &Uri) -> ModelError {
    let has_usual_port = matches!(address.port_u16(), None | Some(443));
    let is_final = !has_usual_port || address.host().is_some_and(is_this_machine);
    let hint = if is_final { format!(" and may not speak TLS: {USE_HTTP}") } else { String::new() };
    let message = format!("{} {what}{hint}", named(address));
    ModelError { is_final, ..unsent(ModelErrorKind::Network, message) }
}

fn certificate_problem(error: &rustls::Error) -> Option<String> {
    use CertificateError as Problem;
    Some(match error {
        rustls::Error::InvalidCertificate(problem) => match problem {
            Problem::UnknownIssuer => {
                "is not trusted: its issuer is unknown. If your network or server has an \
                authority of its own, set `SSL_CERT_FILE` to its certificate"
                    .to_owned()
            }
            Problem::Expired | Problem::ExpiredContext { .. } => "has expired".to_owned(),
            Problem::NotValidYet | Problem::NotValidYetContext { .. } => {
                "is not valid yet: check the clock of this machine".to_owned()
            }
            Problem::NotValidForName | Problem::NotValidForNameContext { .. } => {
                "is that of another host".to_owned()
            }
            other => format!("is not trusted: {other}"),
        },
        rustls::Error::NoCertificatesPresented => "is missing".to_owned(),
        rustls::Error::AlertReceived(alert) if is_of_certificate(*alert) => {
            format!("could not be agreed on: the host says {alert:?}")
        }
        _ => return None,
    })
}

fn is_of_certificate(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateRequired
    )
}

/// The proxy, not the provider, could not be reached.
pub(super) fn proxy_error(error: ModelError) -> ModelError {
    let is_certificate = error.kind == ModelErrorKind::Invalid;
    let message = if is_certificate {
        format!("{} (this host is your proxy)", error.message)
    } else {
        format!("{PROXY_UNUSABLE}: {}", error.message)
    };
    ModelError { message, ..error }
}

/// The proxy opened no tunnel.
pub(super) fn tunnel_error(error: &(dyn Error + 'static), proxy: &Uri, address: &Uri) -> ModelError {
    let (proxy, host) = (named(proxy), named(address));
    let message = format!("the proxy {proxy} opened no connection to {host}: {}", deepest(error));
    unsent(ModelErrorKind::Network, message)
}

/// A request failed before the head of its response came.
pub(super) fn request_error(error: &legacy::Error, host: &Authority) -> ModelError {
    if let Some(error) = find::<ModelError>(error) {
        return error.clone();
    }
    let host = without_user(host);
    let message = format!("{host} {} before it answered", broken(error));
    let is_unsent = find::<hyper::Error>(error).is_some_and(hyper::Error::is_canceled);
    match is_unsent || error.is_connect() {
        true => unsent(ModelErrorKind::Network, message),
        false => ModelError::new(ModelErrorKind::Network, message),
    }
}

/// The body of a response broke off.
pub(super) fn body_error(error: &hyper::Error, host: &Authority) -> ModelError {
    let message = format!("{} {} in the middle of the answer", without_user(host), broken(error));
    ModelError::new(ModelErrorKind::Network, message)
}

fn broken(error: &(dyn Error + 'static)) -> String {
    let protocol = find::<hyper::Error>(error);
    if protocol.is_some_and(hyper::Error::is_parse) {
        return format!("sent what is not HTTP ({})", deepest(error));
    }
    match find::<io::Error>(error).map(io::Error::kind) {
        Some(ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe) => {
            "reset the connection".to_owned()
        }
        Some(ErrorKind::UnexpectedEof) => "closed the connection".to_owned(),
        None if protocol.is_some_and(|error| error.is_incomplete_message() || error.is_canceled()) => {
            "closed the connection".to_owned()
        }
        _ => format!("lost the connection ({})", deepest(error)),
    }
}

fn named(address: &Uri) -> &str {
    address.authority().map(without_user).unwrap_or_default()
}

/// Returns host and port. A user's name and password may precede them.
fn without_user(authority: &Authority) -> &str {
    let text = authority.as_str();
    text.rsplit_once('@').map_or(text, |(_, host)| host)
}

fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    chain(error).find_map(|error| error.downcast_ref::<E>())
}

fn deepest<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    chain(error).last().unwrap_or(error)
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}
