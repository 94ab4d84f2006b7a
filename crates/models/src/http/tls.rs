//! Reads the trusted certificates, once, when the first `https` address is asked for.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use llm_do_core::{ModelError, ModelErrorKind};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use rustls_native_certs::{CertificateResult, load_certs_from_paths, load_native_certs};
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;

use super::connection::Connection;
use super::{HttpSettings, failure};

/// Secures connections. Reading the system's certificates takes milliseconds, so it waits until they are needed.
pub(super) struct Tls {
    file: Option<PathBuf>,
    directories: Vec<PathBuf>,
    timeout: Duration,
    connector: OnceCell<TlsConnector>,
}

impl Tls {
    pub(super) fn new(settings: &HttpSettings) -> Self {
        Self {
            file: settings.certificate_file.clone(),
            directories: settings.certificate_directories.clone(),
            // Half of the time for the whole connection, so that this limit ends before that one and names the cause.
            timeout: settings.connect_timeout / 2,
            connector: OnceCell::new(),
        }
    }

    /// Secures an open connection to a host, whose certificate must be trusted.
    pub(super) async fn secure(
        &self,
        connection: Connection,
        address: &Uri,
    ) -> Result<Connection, ModelError> {
        let host = address.host().unwrap_or_default();
        let connector = self.connector.get_or_try_init(|| self.load()).await?;
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name).map_err(|_| failure::unresolved(host))?;
        match tokio::time::timeout(self.timeout, connector.connect(name, connection)).await {
            Ok(Ok(secured)) => Ok(Connection::secured(secured)),
            Ok(Err(error)) => Err(failure::tls_error(&error, address)),
            Err(_) => Err(failure::silent_handshake(address, self.timeout)),
        }
    }

    async fn load(&self) -> Result<TlsConnector, ModelError> {
        let (file, directories) = (self.file.clone(), self.directories.clone());
        let loaded = tokio::task::spawn_blocking(move || connector(file.as_deref(), &directories)).await;
        loaded.unwrap_or_else(|_| Err(invalid("certificates could not be loaded".to_owned())))
    }
}

fn connector(file: Option<&Path>, directories: &[PathBuf]) -> Result<TlsConnector, ModelError> {
    let roots = if file.is_none() && directories.is_empty() {
        roots_of_system()
    } else {
        roots_of_user(file, directories)?
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid(format!("certificates cannot be checked: {error}")))?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Returns what the system trusts. Systems without any, such as small containers, trust what Mozilla trusts.
fn roots_of_system() -> RootCertStore {
    let mut roots = store(load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

/// Returns what the user's files trust. A file that gives nothing is an error: the user meant it to be used.
fn roots_of_user(file: Option<&Path>, directories: &[PathBuf]) -> Result<RootCertStore, ModelError> {
    let mut certificates = Vec::new();
    if let Some(file) = file {
        certificates.extend(found(load_certs_from_paths(Some(file), None), "SSL_CERT_FILE", file)?);
    }
    for directory in directories {
        certificates.extend(found(load_certs_from_paths(None, Some(directory)), "SSL_CERT_DIR", directory)?);
    }
    Ok(store(certificates))
}

fn found(
    result: CertificateResult,
    variable: &str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, ModelError> {
    if !result.certs.is_empty() {
        return Ok(result.certs);
    }
    let why = result.errors.first().map_or_else(|| "there are none".to_owned(), ToString::to_string);
    let path = path.display();
    Err(invalid(format!("certificates in `{path}`, which `{variable}` names, cannot be used: {why}")))
}

fn store(certificates: Vec<CertificateDer<'static>>) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    roots
}

fn invalid(message: String) -> ModelError {
    failure::unsent(ModelErrorKind::Invalid, message)
}
